/* redis_share_once.c - consumers as processes on one shared queue, some of them killed: each job is
 * done once, and what a killed one had comes again when its lease is over.
 *
 *     redis_share_once [--jobs N] [--kills N] [--lease-ms N] [--late-ms N]
 *
 * Four processes of two threads take a hundred, have them for a millisecond, and ack them.  Each
 * job has a place in a mapping that all share, where whoever has it writes so, and counts that the
 * server has confirmed its ack: twice is an error at once.  One process after another is killed in
 * the middle, at whatever it does, and another takes its place.  In the end nothing is left on the
 * server, and a job whose ack nobody could count was in the hands of one that was killed.
 *
 * It prints how long after the lease's length, counted from the kill, those jobs came again that a
 * thread of a killed process had: no lease had begun later.  With --late-ms 99 of 100 must not
 * be later than that; without it none by half a minute, since the machine may have others to serve.
 *
 * Guards     A  atomic: written by whoever has the job, read by the process that kills
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "due/metrics.h"
#include "due/redis.h"
#include "lab/crew.h"
#include "lab/redis/redis_server.h"
#include "lab/take.h"

enum { CONSUMERS = 4, THREADS = 2, AT_ONCE = 100, PUT = 256, KILLS = 32, LATE_MOST_S = 30 };

struct place {
    atomic_uint had;    /* A: 1 + the consumer that took it last */
    atomic_uint acked;  /* A */
    atomic_uint from;   /* A: 1 + the one that had been killed from which it was taken, */
    atomic_llong again; /* A: when that was */
};

static struct world {
    atomic_uint acked;                         /* A: jobs */
    atomic_bool over;                          /* A */
    atomic_llong killed_ns[CONSUMERS + KILLS]; /* A: 0: it was not */
    struct place place[];
} * w;

static struct {
    unsigned jobs, kills;
    int64_t lease_ns, late_ns;
} how = { 40000, 3, DUE_S(1), 0 };

static struct redis_server server;
static int gates[CONSUMERS + KILLS][2]; /* pipes: a gate is open when nobody can write into it */
static pid_t consumers[CONSUMERS + KILLS];

static due_queue *open_queue(void)
{
    due_options options = { DUE_OPTIONS_INIT, .name = "once", .share = DUE_SHARED };
    due_error error = { "", "" };
    due_queue *q;

    options.prefetch_max = AT_ONCE;
    options.open_timeout_ns = options.store_timeout_ns = DUE_S(60);
    int rc = due_redis_open(&options.store, server.url, NULL, &error);
    CREW_CHECK(rc == 0, ": %s", error.text);
    rc = due_open(&q, &options, &error);
    CREW_CHECK(rc == 0, ": %s: %s", due_error_name(rc), error.text);
    return q;
}

static void close_queue(due_queue *q)
{
    CREW_CHECK(due_close(q, DUE_CLOSE_DISCARD, DUE_S(10)) == 0, "");
    CREW_CHECK(due_free(q) == 0, "");
}

/* ---- Consumers ---- */

struct consumer {
    due_queue *q;
    unsigned number;
    struct crew_thread thread;
};

static struct place *place_of(const due_job *job)
{
    uint32_t number;

    CREW_CHECK(job->len == sizeof number, ": a job of %zu bytes", job->len);
    memcpy(&number, job->data, sizeof number);
    CREW_CHECK(number < how.jobs, ": job %u", number);
    return &w->place[number];
}

static void take_note(const due_job *job, unsigned number)
{
    struct place *place = place_of(job);
    unsigned before = atomic_exchange(&place->had, number + 1);

    CREW_CHECK(atomic_load(&place->acked) == 0, ": a job that was done comes again");
    if (before != 0 && atomic_load(&w->killed_ns[before - 1]) != 0) {
        atomic_store(&place->from, before);
        atomic_store(&place->again, crew_now_ns());
    }
}

/* Nothing is due, or the machine has no time for us: then jobs may have begun an attempt. */
static bool out_of_time(int rc)
{
    return rc == DUE_ETIMEDOUT || rc == DUE_EINDOUBT || rc == DUE_ESTORE;
}

/* One whose lease was over meanwhile comes again. */
static void count(struct place *place, int result)
{
    CREW_CHECK(result == 0 || result == DUE_ESTALE, ": %s", due_error_name(result));
    if (result != 0)
        return;
    CREW_CHECK(atomic_fetch_add(&place->acked, 1) == 0, ": a job was done twice");
    atomic_fetch_add(&w->acked, 1);
}

static int consume(void *arg)
{
    const struct consumer *c = arg;
    struct place *place[AT_ONCE];
    due_job jobs[AT_ONCE];
    int results[AT_ONCE];

    while (!atomic_load(&w->over)) {
        int n = take_leased_some(c->q, NULL, 0, jobs, AT_ONCE, how.lease_ns, DUE_MS(200));

        CREW_CHECK(n > 0 || out_of_time(n), ": %s", due_error_name(n));
        for (int i = 0; i < n; i++) {
            place[i] = place_of(&jobs[i]);
            take_note(&jobs[i], c->number);
        }
        if (n > 0) {
            crew_sleep(DUE_MS(1)); /* or nobody who is killed has a job that he is not acking */
            CREW_CHECK(due_ack_batch(jobs, (size_t)n, results) >= 0, "");
        }
        for (int i = 0; i < n; i++)
            count(place[i], results[i]);
    }
    return 0;
}

static void be_consumer(unsigned number)
{
    struct consumer all[THREADS];
    due_queue *q = open_queue();

    for (unsigned i = 0; i < THREADS; i++) {
        all[i] = (struct consumer){ .q = q, .number = number };
        crew_go(&all[i].thread, consume, &all[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
        crew_join(&all[i].thread);
    close_queue(q);
}

/* They are made before a queue is opened here, with which come threads, and wait. */
static void begin(unsigned number)
{
    char none;

    CREW_CHECK(pipe(gates[number]) == 0, "");
    consumers[number] = fork();
    CREW_CHECK(consumers[number] >= 0, ": fork");
    if (consumers[number] != 0) {
        close(gates[number][0]);
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 0; i <= number; i++)
        close(gates[i][1]);
    CREW_CHECK(read(gates[number][0], &none, 1) == 0, "");
    if (!atomic_load(&w->over))
        be_consumer(number);
    _exit(0); /* no leaks of who forked are looked for */
}

/* ---- All of them ---- */

static void put_all(due_queue *q)
{
    uint32_t numbers[PUT];
    due_spec specs[PUT];

    for (uint32_t at = 0; at < how.jobs;) {
        uint32_t n = how.jobs - at < PUT ? how.jobs - at : PUT;

        for (uint32_t i = 0; i < n; i++) {
            numbers[i] = at + i;
            specs[i] = (due_spec){ DUE_SPEC_INIT, .data = &numbers[i], .len = sizeof numbers[i] };
        }
        int rc = due_enqueue_batch(q, specs, n, DUE_FOREVER, NULL);
        CREW_CHECK(rc == (int)n, ": %s", due_error_name(rc));
        at += n;
    }
}

static void look_at_all(void)
{
    for (unsigned i = 0; i < CONSUMERS + how.kills; i++) {
        siginfo_t end = { .si_pid = 0 };

        if (consumers[i] != 0)
            CREW_CHECK(waitid(P_PID, (id_t)consumers[i], &end, WEXITED | WNOHANG | WNOWAIT) == 0,
                       "");
        CREW_CHECK(end.si_pid == 0, ": a process has failed");
    }
}

static void wait_for(unsigned acked)
{
    while (atomic_load(&w->acked) < acked) {
        look_at_all();
        crew_sleep(DUE_MS(1));
    }
}

/* The one that has been there longest; the next takes its place. */
static void kill_one(unsigned number)
{
    atomic_store(&w->killed_ns[number], crew_now_ns());
    kill(consumers[number], SIGKILL);
    CREW_CHECK(waitpid(consumers[number], NULL, 0) == consumers[number], "");
    consumers[number] = 0;
    close(gates[CONSUMERS + number][1]);
}

static void nothing_left(void)
{
    char answer[64];
    const char *const words[] = {
        "EXISTS", "due:{once}:j", "due:{once}:a", "due:{once}:b", "due:{once}:t:", "due:{once}:l:",
        NULL
    };

    CREW_CHECK(redis_server_ask(&server, words, answer, sizeof answer) > 0, "");
    CREW_CHECK(strncmp(answer, ":0", 2) == 0, ": %s keys are left", answer);
}

/* Until nothing is left, and then a while, for those that come a second time. */
static void work_off(due_queue *q)
{
    struct due_queue_census c = { .ready = 1 };

    while (c.delayed + c.ready + c.leased > 0) {
        look_at_all();
        CREW_CHECK(due_census(q, DUE_ALL_TOPICS, &c, DUE_S(60)) == 0, "");
        crew_sleep(DUE_MS(1));
    }
    CREW_CHECK(c.dead == 0, "");
    nothing_left();
    crew_sleep(DUE_MS(100));
    atomic_store(&w->over, true);
    for (unsigned i = 0; i < CONSUMERS + how.kills; i++) {
        int status = 0;

        if (consumers[i] == 0)
            continue;
        CREW_CHECK(waitpid(consumers[i], &status, 0) == consumers[i], "");
        CREW_CHECK(status == 0, ": a process has failed");
    }
}

/* ---- What has become of them ---- */

static int by_size(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;

    return (*x > *y) - (*x < *y);
}

static void judge(void)
{
    int64_t *late = calloc(how.jobs, sizeof *late);
    size_t again = 0;
    unsigned uncounted = 0;

    CREW_CHECK(late != NULL, "");
    for (uint32_t i = 0; i < how.jobs; i++) {
        const struct place *place = &w->place[i];
        unsigned had = atomic_load(&place->had);
        unsigned from = atomic_load(&place->from);

        if (atomic_load(&place->acked) == 0) {
            CREW_CHECK(had != 0 && atomic_load(&w->killed_ns[had - 1]) != 0, ": job %u is lost", i);
            uncounted++;
        }
        if (from != 0)
            late[again++] =
                atomic_load(&place->again) - how.lease_ns - atomic_load(&w->killed_ns[from - 1]);
    }
    CREW_CHECK(uncounted <= how.kills * THREADS * AT_ONCE, ": %u jobs", uncounted);
    qsort(late, again, sizeof *late, by_size);
    int64_t p99 = again > 0 ? late[again * 99 / 100] : 0;
    int64_t most_ns = how.late_ns > 0 ? how.late_ns : DUE_S(LATE_MOST_S);
    printf("redis_share_once: %u jobs, each once; %u killed, %zu of their jobs came again, behind "
           "kill and lease %.1f ms p50, %.1f p99, %.1f at most; of %u the ack was not counted\n",
           how.jobs, how.kills, again, again > 0 ? (double)late[again / 2] / 1e6 : 0,
           (double)p99 / 1e6, again > 0 ? (double)late[again - 1] / 1e6 : 0, uncounted);
    CREW_CHECK(p99 <= most_ns, ": they were late");
    free(late);
}

static void read_arguments(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        long n = strtol(argv[i + 1], NULL, 10);

        CREW_CHECK(n > 0, ": %s", argv[i + 1]);
        if (strcmp(argv[i], "--jobs") == 0)
            how.jobs = (unsigned)n;
        else if (strcmp(argv[i], "--kills") == 0)
            how.kills = n < KILLS ? (unsigned)n : KILLS;
        else if (strcmp(argv[i], "--lease-ms") == 0)
            how.lease_ns = DUE_MS(n);
        else if (strcmp(argv[i], "--late-ms") == 0)
            how.late_ns = DUE_MS(n);
        else
            crew_fail(__FILE__, __LINE__, "%s is no option", argv[i]);
    }
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv);
    crew_watchdog("redis_share_once", 300);
    size_t bytes = sizeof *w + how.jobs * sizeof w->place[0];
    w = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CREW_CHECK(w != MAP_FAILED, "");
    crew_doing("starting");
    if (redis_server_start(&server, NULL) == REDIS_SERVER_MISSING) {
        printf("redis_share_once: redis-server is not installed\n");
        return 77;
    }
    for (unsigned i = 0; i < CONSUMERS + how.kills; i++)
        begin(i);
    due_queue *q = open_queue();
    put_all(q);
    crew_doing("with all of them");
    for (unsigned i = 0; i < CONSUMERS; i++)
        close(gates[i][1]);
    for (unsigned k = 0; k < how.kills; k++) {
        wait_for((unsigned)((uint64_t)how.jobs * (k + 1) / (how.kills + 1)));
        crew_doing("without one that was killed");
        kill_one(k);
    }
    work_off(q);
    judge();
    close_queue(q);
    redis_server_stop(&server);
    return 0;
}
