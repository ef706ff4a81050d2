/* takeover.c - an owner that was stopped for longer than its lease, replaced, and goes on.
 *
 * It must hand nothing out any more, write nothing, and answer DUE_EFENCED.  Whoever stands by
 * hands out again within a lease and a second, whether the owner was stopped or killed.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/crew.h"
#include "due/redis.h"
#include "lab/redis/redis_server.h"
#include "lab/take.h"

#define LEASE    DUE_S(1) /* long against what a busy machine keeps a thread waiting */
#define JOBS     20
#define MANY     5000
#define PATIENCE 20000              /* ms */
#define TIMES    3                  /* that it is measured */
#define OWED     (LEASE + DUE_S(1)) /* the median */
#define LATE     (LEASE + DUE_S(5)) /* the worst: a busy machine can hold up one of them */

/* What the processes tell each other. */
struct board {
    atomic_int ready;      /* the owner has done its first part */
    atomic_int go;         /* it shall do its second */
    atomic_int opened;     /* the other one owns the jobs */
    atomic_int again;      /* and has handed out the first */
    atomic_int over;       /* it may close */
    _Atomic int64_t since; /* when that was */
    atomic_uint handed[MANY];
};

static struct redis_server server;
static struct board *board;
static int64_t lease_ns = LEASE;

static void await(atomic_int *flag, const char *what)
{
    for (int i = 0; !atomic_load(flag); i++) {
        CREW_CHECK(i < PATIENCE, ": waited in vain: %s", what);
        crew_sleep(DUE_MS(1));
    }
}

static due_queue *open_as(bool standby, enum due_confirm confirm)
{
    due_redis_options redis = { DUE_REDIS_OPTIONS_INIT, .lease_ns = lease_ns,
                                .backoff_min_ns = DUE_MS(5), .standby = standby };
    due_options options = { DUE_OPTIONS_INIT, .name = "q", .confirm = confirm };
    due_queue *q = NULL;
    due_error error;

    CREW_CHECK(due_redis_open(&options.store, server.url, &redis, &error) == 0, "");
    int rc = due_open(&q, &options, &error);
    CREW_CHECK(rc == 0, ": %s", error.text);
    return q;
}

static void close_it(due_queue *q)
{
    CREW_CHECK(due_close(q, DUE_CLOSE_DISCARD, DUE_S(10)) == 0, "");
    CREW_CHECK(due_free(q) == 0, "");
}

static due_id put(due_queue *q, uint32_t number, int64_t delay_ns)
{
    due_spec spec = { DUE_SPEC_INIT, .data = &number, .len = sizeof number, .delay_ns = delay_ns };
    due_id id;

    int rc = due_enqueue(q, &spec, 0, &id);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    return id;
}

static uint32_t number_of(due_job *job)
{
    uint32_t number;

    CREW_CHECK(job->len == sizeof number, "");
    memcpy(&number, job->data, sizeof number);
    CREW_CHECK(number < MANY, "");
    return number;
}

/* By dequeue and by reserve in turn.  False: nothing was had. */
static bool take(due_queue *q, int64_t timeout_ns)
{
    static atomic_uint turn;
    due_job job;
    bool lease = atomic_fetch_add(&turn, 1) % 2 == 0;
    int rc = lease ? take_leased(q, &job, DUE_S(60), timeout_ns) : due_dequeue(q, &job, timeout_ns);

    if (rc != 0)
        return false;
    uint32_t number = number_of(&job);
    if (!lease || due_ack(&job) == 0)
        atomic_fetch_add(&board->handed[number], 1);
    due_job_done(&job);
    return true;
}

static char *ask(const char *one, const char *two)
{
    static char answers[4][4096];
    static unsigned turn;
    char *answer = answers[turn++ % 4];

    CREW_CHECK(redis_server_ask(&server, (const char *const[]){ one, two, NULL }, answer, 4096) > 0,
               "");
    return answer;
}

/* Everything that a write would change. */
static void snapshot(char text[12288])
{
    snprintf(text, 12288, "%s%s%s", ask("GET", "due:{q}:fence"), ask("HGETALL", "due:{q}:writers"),
             ask("HLEN", "due:{q}:j"));
}

static pid_t child(void (*run)(void))
{
    fflush(stdout);
    pid_t pid = fork();

    CREW_CHECK(pid >= 0, "");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* also if it is stopped: who fails leaves nobody */
        crew_watchdog("crash_takeover, a child", 60);
        run();
        fflush(stdout);
        _exit(0);
    }
    return pid;
}

static void ended_well(pid_t pid)
{
    int status;

    CREW_CHECK(waitpid(pid, &status, 0) == pid, "");
    CREW_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, ": status %d", status);
}

static void stop_it(pid_t pid)
{
    int status;

    kill(pid, SIGSTOP);
    CREW_CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status), "");
}

static void begin(void)
{
    memset(board, 0, sizeof *board);
    ask("FLUSHALL", NULL);
}

/* ---- Stopped while nothing goes on: not one hand-over more ---- */

static void expect_fenced(int rc, const char *what)
{
    CREW_CHECK(rc == DUE_EFENCED, ": %s answered %s", what, due_error_name(rc));
}

static int wait_for_a_job(void *arg)
{
    due_queue *q = arg;
    int topic = due_topic(q, "empty");
    due_job job;

    return take_from(q, &topic, 1, &job, DUE_FOREVER);
}

static enum due_confirm calm_confirm;

static void calm_owner(void)
{
    due_queue *q = open_as(false, calm_confirm);
    due_spec spec = { DUE_SPEC_INIT, .data = "more", .len = 4 };
    struct crew_thread sleeper;
    due_job held;
    due_job nacked;
    due_job job;
    due_id far = put(q, JOBS, DUE_S(3600));

    for (uint32_t i = 0; i < JOBS; i++)
        put(q, i, 0);
    CREW_CHECK(due_flush(q, DUE_S(10)) == 0, "");
    CREW_CHECK(take(q, DUE_S(20)) && take(q, DUE_S(20)), "");
    CREW_CHECK(due_flush(q, DUE_S(10)) == 0, "");
    CREW_CHECK(take_leased(q, &held, DUE_S(3600), DUE_S(20)) == 0, "");
    CREW_CHECK(take_leased(q, &nacked, DUE_S(3600), DUE_S(20)) == 0, "");
    crew_go(&sleeper, wait_for_a_job, q);
    crew_until_asleep(&sleeper);
    atomic_store(&board->ready, 1);
    await(&board->go, "to go on"); /* stopped here */
    expect_fenced(take_leased(q, &job, DUE_S(1), DUE_S(20)), "reserve");
    expect_fenced(due_dequeue(q, &job, DUE_S(20)), "dequeue");
    expect_fenced(take_some(q, NULL, 0, &job, 1, DUE_S(20)), "dequeue_batch");
    expect_fenced(due_enqueue(q, &spec, 0, NULL), "enqueue");
    expect_fenced(due_cancel(q, far, NULL), "cancel");
    expect_fenced(due_reschedule(q, far, 1), "reschedule");
    expect_fenced(due_promote(q, far), "promote");
    expect_fenced(due_extend(&held, DUE_S(60)), "extend");
    expect_fenced(take_leased_some(q, NULL, 0, &job, 1, DUE_S(1), DUE_S(20)), "reserve_batch");
    expect_fenced(due_enqueue_batch(q, &spec, 1, 0, NULL), "enqueue_batch");
    expect_fenced(due_update(q, far, "new", 3), "update");
    expect_fenced(due_bury(&nacked, "why"), "bury");
    expect_fenced(due_flush(q, DUE_S(10)), "flush");
    expect_fenced(due_ack(&held), "ack");
    expect_fenced(due_nack(&nacked, 0), "nack");
    expect_fenced(crew_join(&sleeper), "a dequeue that waited");
    due_job_done(&held);
    due_job_done(&nacked);
    close_it(q);
}

/* Is there a job to be had, or may there be one yet?  What a take that ran out of time has begun is
 * had by a later one, or goes back. */
static bool more_to_take(due_queue *q)
{
    struct due_stats stats;

    CREW_CHECK(due_stats_read(q, &stats) == 0, "");
    return stats.loading || stats.unsettled > 0 || due_poll(q, NULL) != 0;
}

static void stand_by(void)
{
    due_queue *q = open_as(true, DUE_CONFIRM_SYNC);

    atomic_store(&board->opened, 1);
    while (!atomic_load(&board->over)) {
        if (!take(q, DUE_MS(1)) || atomic_load(&board->again))
            continue;
        atomic_store(&board->since, crew_now_ns());
        atomic_store(&board->again, 1);
    }
    while (more_to_take(q))
        take(q, DUE_MS(1));
    close_it(q);
}

static int64_t took[TIMES]; /* from a stop or a kill until a job is handed out again */
static unsigned n_took;

static void note_takeover(const char *what, int64_t from_ns)
{
    await(&board->again, "for the takeover");
    int64_t ns = atomic_load(&board->since) - from_ns;

    printf("%s: handed out again after %.3f s\n", what, (double)ns / 1e9);
    CREW_CHECK(ns < LATE, ": far too late");
    CREW_CHECK(n_took < TIMES, "");
    took[n_took++] = ns;
}

static int by_time(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;

    return (*x > *y) - (*x < *y);
}

static void check_takeovers(void)
{
    CREW_CHECK(n_took == TIMES, ": %u", n_took);
    qsort(took, TIMES, sizeof took[0], by_time);
    printf("takeovers: %.3f s in the median, %.3f at worst, with a lease of %.1f\n",
           (double)took[TIMES / 2] / 1e9, (double)took[TIMES - 1] / 1e9, (double)LEASE / 1e9);
    CREW_CHECK(took[TIMES / 2] < OWED, ": later than a lease and a second");
}

static void check_each_once(uint32_t n, unsigned missing_at_most)
{
    unsigned missing = 0;

    for (uint32_t i = 0; i < n; i++) {
        unsigned times = atomic_load(&board->handed[i]);

        CREW_CHECK(times <= 1, ": job %u came %u times", i, times);
        missing += times == 0;
    }
    CREW_CHECK(missing <= missing_at_most, ": %u of %u jobs are missing", missing, n);
}

static void stopped_calm(void)
{
    char before[12288];
    char after[12288];

    begin();
    pid_t owner = child(calm_owner);
    await(&board->ready, "for the owner");
    stop_it(owner);
    int64_t from_ns = crew_now_ns();
    pid_t other = child(stand_by);
    note_takeover("stopped", from_ns);
    crew_sleep(2 * LEASE);
    snapshot(before);
    kill(owner, SIGCONT);
    atomic_store(&board->go, 1);
    ended_well(owner);
    snapshot(after);
    CREW_CHECK(strcmp(before, after) == 0, ": it has written: %s instead of %s", after, before);
    atomic_store(&board->over, 1);
    ended_well(other);
    check_each_once(JOBS, 0);
    CREW_CHECK(strcmp(ask("HLEN", "due:{q}:j"), ":1\r\n") == 0, "");
}

/* ---- Stopped in the middle of everything ---- */

static int take_and_put(void *arg)
{
    due_queue *q = arg;
    due_spec spec = { DUE_SPEC_INIT, .data = "\xff\xff\xff\xff", .len = 4 };

    spec.delay_ns = DUE_S(3600);
    while (due_enqueue(q, &spec, 0, NULL) != DUE_EFENCED)
        take(q, 0);
    return 0;
}

/* What had left the store before is handed out still; until the last of what was sent has its
 * answer a call that does not wait says that there is nothing yet. */
static void take_until_fenced(due_queue *q)
{
    due_job job;
    int rc;

    do {
        rc = due_dequeue(q, &job, 0);
        if (rc == 0) {
            atomic_fetch_add(&board->handed[number_of(&job)], 1);
            due_job_done(&job);
        }
    } while (rc == 0 || rc == DUE_EAGAIN || rc == DUE_EINDOUBT);
    expect_fenced(rc, "dequeue");
}

static void busy_owner(void)
{
    due_queue *q = open_as(false, DUE_CONFIRM_SYNC);
    struct crew_thread threads[3];

    for (uint32_t i = 0; i < MANY; i++) {
        due_spec spec = { DUE_SPEC_INIT, .data = &i, .len = sizeof i };
        CREW_CHECK(due_enqueue_batch(q, &spec, 1, 0, NULL) == 1, "");
    }
    for (int i = 0; i < 3; i++)
        crew_go(&threads[i], take_and_put, q);
    crew_sleep(DUE_MS(50));
    atomic_store(&board->ready, 1);
    for (int i = 0; i < 3; i++)
        crew_join(&threads[i]);
    take_until_fenced(q);
    close_it(q);
}

static void stopped_busy(void)
{
    begin();
    pid_t owner = child(busy_owner);
    await(&board->ready, "for the owner");
    stop_it(owner);
    pid_t other = child(stand_by);
    await(&board->opened, "for the takeover");
    crew_sleep(LEASE);
    kill(owner, SIGCONT);
    ended_well(owner);
    atomic_store(&board->over, 1);
    ended_well(other);
    /* Each thread may have lost one, in a dequeue that stood at its commit. */
    check_each_once(MANY, 3);
}

/* ---- Killed, with somebody standing by ---- */

static void killed_owner(void)
{
    due_queue *q = open_as(false, DUE_CONFIRM_SYNC);
    due_job job;

    for (uint32_t i = 0; i < JOBS; i++)
        put(q, i, 0);
    CREW_CHECK(take_leased(q, &job, DUE_S(3600), DUE_S(20)) == 0, "");
    atomic_store(&board->ready, 1);
    await(&board->go, "for nothing");
}

static void killed(void)
{
    begin();
    pid_t owner = child(killed_owner);
    await(&board->ready, "for the owner");
    pid_t other = child(stand_by);
    crew_sleep(2 * LEASE + LEASE / 4); /* it is renewed meanwhile */
    CREW_CHECK(!atomic_load(&board->opened), ": it was taken over alive");
    int64_t from_ns = crew_now_ns();
    kill(owner, SIGKILL);
    CREW_CHECK(waitpid(owner, NULL, 0) == owner, "");
    note_takeover("killed", from_ns);
    atomic_store(&board->over, 1);
    ended_well(other);
    check_each_once(JOBS, 0);
}

/* ---- Two owners of one number ---- */

static void ask_words(const char *const *words)
{
    char answer[64];

    CREW_CHECK(redis_server_ask(&server, words, answer, sizeof answer) > 0 && answer[0] != '-', "");
}

/* The server now has what an older copy would have, before the last takeover. */
static void set_back(void)
{
    ask_words((const char *const[]){ "HSET", "due:{q}:meta", "writer", "100000000000000", NULL });
    ask_words(
        (const char *const[]){ "SET", "due:{q}:fence", "100000000000000:0123456789abcdef", NULL });
    ask_words((const char *const[]){ "HDEL", "due:{q}:writers", "100000000000001", NULL });
    ask("DEL", "due:{q}:owner");
}

/* How often an owner has said to the server that it lives. */
static long renewals(void)
{
    static char answer[65536];

    CREW_CHECK(redis_server_ask(&server, (const char *const[]){ "INFO", "commandstats", NULL },
                                answer, sizeof answer) > 0,
               "");
    const char *calls = strstr(answer, "cmdstat_pexpire:calls=");
    return calls != NULL ? strtol(calls + strlen("cmdstat_pexpire:calls="), NULL, 10) : 0;
}

/* As after a failover to a copy that has not seen the last takeover. */
static void same_number(void)
{
    due_job job;

    begin();
    lease_ns = DUE_S(60); /* the first does not look in between */
    close_it(open_as(false, DUE_CONFIRM_SYNC));
    set_back();
    long before = renewals();
    due_queue *first = open_as(false, DUE_CONFIRM_SYNC);
    put(first, 2, 0);
    /* It renews at once, and then in twenty seconds: not just when the server is set back. */
    for (int i = 0; renewals() == before; i++) {
        CREW_CHECK(i < PATIENCE, ": it does not renew");
        crew_sleep(DUE_MS(1));
    }
    CREW_CHECK(take_leased(first, &job, DUE_S(60), DUE_S(20)) == 0 && due_ack(&job) == 0, "");
    put(first, 1, 0);
    char *fence = ask("GET", "due:{q}:fence");
    CREW_CHECK(strstr(fence, "100000000000001:") != NULL, ": %s", fence);
    set_back();
    due_queue *second = open_as(false, DUE_CONFIRM_SYNC);
    fence = ask("GET", "due:{q}:fence");
    CREW_CHECK(strstr(fence, "100000000000001:") != NULL, ": %s", fence);
    int rc = due_dequeue(first, &job, DUE_S(5)); /* it was sent: or nobody knows any more */
    CREW_CHECK(rc == DUE_EFENCED || rc == DUE_EINDOUBT, "%s", due_error_name(rc));
    expect_fenced(take_leased(first, &job, DUE_S(1), DUE_S(5)), "the same, to reserve");
    while (!take(second, DUE_MS(10)))
        continue;
    CREW_CHECK(atomic_load(&board->handed[1]) == 1, "");
    close_it(first);
    close_it(second);
}

int main(void)
{
    int rc = redis_server_start(&server, NULL);

    if (rc == REDIS_SERVER_MISSING)
        return 77;
    CREW_CHECK(rc == 0, ": the server does not start");
    crew_watchdog("crash_takeover", 100);
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CREW_CHECK(board != MAP_FAILED, "");
    crew_doing("stopped calm");
    stopped_calm();
    crew_doing("stopped calm, asynchronous");
    calm_confirm = DUE_CONFIRM_ASYNC;
    stopped_calm();
    crew_doing("stopped busy");
    stopped_busy();
    crew_doing("killed");
    killed();
    check_takeovers();
    crew_doing("same number"); /* last: it makes threads in this process */
    same_number();
    munmap(board, sizeof *board);
    redis_server_stop(&server);
    return 0;
}
