/* redis_share_room.c - producers and consumers as processes, and a shared queue with few places.
 *
 * Producers put more than there is room for and wait; one is stopped for a while, so that rings go
 * to it in vain, and one is killed.  Whoever looks finds no more jobs than the capacity; whatever
 * was accepted is acked once; and as long as there is room and somebody left who waits, puts go on.
 * The same with a single place, for which five have waited first who were killed then.
 *
 * All processes are made before a queue is opened here, and wait behind a gate.  With it come its
 * threads, and what one of them holds at the moment of a fork, as a lock of AddressSanitizer's
 * allocator, the child would wait for without end.
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

enum {
    WAITERS = 5, /* that are killed */
    PRODUCERS = 4,
    CONSUMERS = 2,
    THREADS = 3,     /* of a producer */
    STOPPED = 1,     /* this one */
    KILLED = 2,      /* and this one */
    EACH = 400,      /* jobs of a thread, at most */
    BATCH_MOST = 40, /* at once: more than there is room for */
    CALL_MOST_S = 8  /* no call may wait that long while others are served; a beat is longer */
};

/* Shared by all processes. */
struct world {
    unsigned capacity, each;
    atomic_uint sure;               /* jobs that were accepted */
    atomic_uint acked;              /* */
    atomic_uint ready;              /* producers that have the queue open */
    atomic_bool through[PRODUCERS]; /* it has put all, or was killed */
    atomic_bool over;               /* nothing more comes */
    atomic_uchar seen[PRODUCERS * THREADS * EACH + 1];
};

enum { FIRST, SECOND, GATES };

static struct world *w;
static struct redis_server server;
static int gates[GATES][2]; /* pipes: a gate is open when nobody can write into it */
static pid_t waiters[WAITERS], producers[PRODUCERS], consumers[CONSUMERS]; /* 0: ended */

static due_queue *open_queue(size_t capacity)
{
    due_options options = { DUE_OPTIONS_INIT,
                            .name = "room",
                            .share = DUE_SHARED,
                            .capacity = capacity,
                            .prefetch_max = 1,
                            .open_timeout_ns = DUE_S(60),
                            .store_timeout_ns = DUE_S(60) }; /* one is stopped meanwhile */
    due_error error = { "", "" };
    due_queue *q;
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

/* ---- Producers ---- */

struct producer {
    due_queue *q;
    uint32_t first; /* its numbers begin there */
    uint64_t seed;
    struct crew_thread thread;
};

static int produce(void *arg)
{
    struct producer *p = arg;
    uint32_t numbers[BATCH_MOST];
    due_spec specs[BATCH_MOST];

    for (uint32_t at = 0; at < w->each;) {
        size_t n = crew_below(&p->seed, 3) == 0 ? crew_below(&p->seed, BATCH_MOST) + 1 : 1;

        n = n < w->each - at ? n : w->each - at;
        for (uint32_t i = 0; i < n; i++) {
            numbers[i] = p->first + at + i;
            specs[i] = (due_spec){ DUE_SPEC_INIT, .data = &numbers[i], .len = sizeof numbers[i] };
        }
        int rc = due_enqueue_batch(p->q, specs, n, DUE_FOREVER, NULL);
        CREW_CHECK(rc > 0 && (size_t)rc <= n, ": %s", due_error_name(rc));
        atomic_fetch_add(&w->sure, (unsigned)rc);
        at += (uint32_t)rc;
    }
    return 0;
}

static int be_producer(unsigned number)
{
    struct producer all[THREADS];
    due_queue *q = open_queue(number == 0 ? w->capacity : 0);

    for (unsigned i = 0; i < THREADS; i++) {
        uint32_t first = (number * THREADS + i) * w->each;

        all[i] = (struct producer){ .q = q, .first = first, .seed = 77 + first };
        crew_go(&all[i].thread, produce, &all[i]);
    }
    atomic_fetch_add(&w->ready, 1);
    for (unsigned i = 0; i < THREADS; i++)
        crew_join(&all[i].thread);
    atomic_store(&w->through[number], true);
    close_queue(q);
    return 0;
}

/* It waits for room, and is killed. */
static int be_waiter(unsigned number)
{
    due_spec spec = { DUE_SPEC_INIT, .data = &number, .len = sizeof number };

    return due_enqueue(open_queue(0), &spec, DUE_FOREVER, NULL) == 0 ? 1 : 2;
}

/* ---- Consumers ---- */

static int be_consumer(unsigned number)
{
    due_queue *q = open_queue(0);
    uint64_t seed = 5 + number;
    due_job job;

    while (!atomic_load(&w->over)) {
        int rc = take_leased(q, &job, DUE_S(30), DUE_MS(50));

        CREW_CHECK(rc == 0 || rc == DUE_ETIMEDOUT, ": %s", due_error_name(rc));
        if (rc != 0)
            continue;
        uint32_t job_number;
        memcpy(&job_number, job.data, sizeof job_number);
        if (crew_below(&seed, 4) == 0) {
            CREW_CHECK(due_nack(&job, 0) == 0, "");
            continue;
        }
        unsigned before = atomic_fetch_add(&w->seen[job_number], 1);
        CREW_CHECK(before == 0, ": job %u was done twice", job_number);
        CREW_CHECK(due_ack(&job) == 0, "");
        atomic_fetch_add(&w->acked, 1);
    }
    close_queue(q);
    return 0;
}

/* ---- All of them ---- */

/* A process that runs when its gate is open. */
static pid_t begin(int (*run)(unsigned number), unsigned number, int gate)
{
    pid_t pid = fork();
    char none;

    CREW_CHECK(pid >= 0, ": fork");
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < GATES; i++)
        close(gates[i][1]);
    CREW_CHECK(read(gates[gate][0], &none, 1) == 0, "");
    _exit(run(number)); /* no leaks of who forked are looked for */
}

static void begin_all(bool dead_waiters)
{
    for (int i = 0; i < GATES; i++)
        CREW_CHECK(pipe(gates[i]) == 0, "");
    for (unsigned i = 0; i < WAITERS && dead_waiters; i++)
        waiters[i] = begin(be_waiter, i, FIRST);
    for (unsigned i = 0; i < PRODUCERS; i++)
        producers[i] = begin(be_producer, i, SECOND);
    for (unsigned i = 0; i < CONSUMERS; i++)
        consumers[i] = begin(be_consumer, i, SECOND);
    for (int i = 0; i < GATES; i++)
        close(gates[i][0]);
}

static void end(pid_t *pid)
{
    int status;

    CREW_CHECK(waitpid(*pid, &status, 0) == *pid && WIFEXITED(status) && WEXITSTATUS(status) == 0,
               ": a process has failed");
    *pid = 0;
}

static void end_by_force(pid_t *pid)
{
    kill(*pid, SIGKILL);
    CREW_CHECK(waitpid(*pid, NULL, 0) == *pid, "");
    *pid = 0;
}

/* None has ended but in order. */
static void look_at_all(const pid_t *pids, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        siginfo_t how = { .si_pid = 0 };

        if (pids[i] != 0)
            CREW_CHECK(waitid(P_PID, (id_t)pids[i], &how, WEXITED | WNOHANG | WNOWAIT) == 0, "");
        CREW_CHECK(how.si_pid == 0 || (how.si_code == CLD_EXITED && how.si_status == 0),
                   ": a process has failed");
    }
}

static unsigned going(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < PRODUCERS; i++)
        n += !atomic_load(&w->through[i]);
    return n;
}

struct watch {
    due_queue *q;
    unsigned sure;      /* at the last look that found more */
    int64_t since_ns;   /* nothing was put although there was room */
    int64_t longest_ns; /* that lasted */
    uint64_t looks;
    uint64_t full;    /* of them, with no room */
    uint64_t waiting; /* with a process that waited for it */
    uint64_t rung;    /* with one that was rung */
};

/* How many of those that wait for room have such a score. */
static unsigned in_line(const char *from, const char *to)
{
    char answer[64];
    const char *const words[] = { "ZCOUNT", "due:{room}:wr", from, to, NULL };

    CREW_CHECK(redis_server_ask(&server, words, answer, sizeof answer) > 0 && answer[0] == ':', "");
    return (unsigned)strtoul(answer + 1, NULL, 10);
}

static void look(struct watch *v)
{
    struct due_queue_census c;
    unsigned sure = atomic_load(&w->sure);
    int64_t now = crew_now_ns();

    look_at_all(producers, PRODUCERS);
    look_at_all(consumers, CONSUMERS);
    CREW_CHECK(due_census(v->q, DUE_ALL_TOPICS, &c, DUE_S(60)) == 0, "");
    uint64_t jobs = c.delayed + c.ready + c.leased;
    unsigned waiting = in_line("0", "+inf");
    unsigned rung = in_line("-inf", "(0");
    CREW_CHECK(jobs <= w->capacity, ": %llu jobs", (unsigned long long)jobs);
    v->looks++;
    v->full += jobs == w->capacity;
    v->waiting += waiting > 0;
    v->rung += rung > 0;
    if (sure != v->sure || jobs == w->capacity || going() == 0) {
        v->sure = sure;
        v->since_ns = now;
    }
    if (now - v->since_ns > v->longest_ns)
        v->longest_ns = now - v->since_ns;
    CREW_CHECK(now - v->since_ns < DUE_S(CALL_MOST_S),
               ": there is room, and nobody puts: %llu jobs, %u accepted, %u acked, %u go on, "
               "%u wait and %u were rung",
               (unsigned long long)jobs, sure, atomic_load(&w->acked), going(), waiting, rung);
}

/* Until so many are through, but whoever is stopped. */
static void watch_until(struct watch *v, unsigned acked)
{
    while (atomic_load(&w->acked) < acked)
        look(v);
}

/* Those that wait first, and have died when there is room for them. */
static void wait_and_die(due_queue *q)
{
    uint32_t number = PRODUCERS * THREADS * EACH;
    due_spec in_the_way = { DUE_SPEC_INIT, .data = &number, .len = sizeof number };

    for (unsigned i = 0; i < w->capacity; i++)
        CREW_CHECK(due_enqueue(q, &in_the_way, 0, NULL) == 0, "");
    atomic_fetch_add(&w->sure, w->capacity);
    close(gates[FIRST][1]);
    while (in_line("0", "+inf") < WAITERS) {
        look_at_all(waiters, WAITERS);
        crew_sleep(DUE_MS(1));
    }
    for (unsigned i = 0; i < WAITERS; i++)
        end_by_force(&waiters[i]);
}

static void stop_and_kill(struct watch *v)
{
    const unsigned all = PRODUCERS * THREADS * w->each;

    watch_until(v, all / 10);
    crew_doing("without the one that is stopped");
    kill(producers[STOPPED], SIGSTOP);
    watch_until(v, all / 10 + all / 6);
    crew_doing("with all of them");
    kill(producers[STOPPED], SIGCONT);
    watch_until(v, all / 3);
    crew_doing("without the one that was killed");
    end_by_force(&producers[KILLED]);
    atomic_store(&w->through[KILLED], true);
    while (going() > 0)
        look(v);
    for (unsigned i = 0; i < PRODUCERS; i++) {
        if (i != KILLED)
            end(&producers[i]);
    }
}

/* All that was accepted is acked once; of the one that was killed perhaps more. */
static void work_off(due_queue *q)
{
    unsigned sure = atomic_load(&w->sure);
    struct due_queue_census c = { .ready = 1 };

    while (c.delayed + c.ready + c.leased > 0)
        CREW_CHECK(due_census(q, DUE_ALL_TOPICS, &c, DUE_S(60)) == 0, "");
    for (int i = 0; i < 500 && atomic_load(&w->acked) < sure; i++)
        crew_sleep(DUE_MS(10)); /* counted after the ack */
    atomic_store(&w->over, true);
    for (unsigned i = 0; i < CONSUMERS; i++)
        end(&consumers[i]);
    unsigned acked = atomic_load(&w->acked);
    CREW_CHECK(acked >= sure && acked <= sure + THREADS * w->capacity, ": %u of %u", acked, sure);
}

static int run_with(unsigned capacity, unsigned each, bool dead_waiters)
{
    crew_doing("starting");
    if (redis_server_start(&server, NULL) == REDIS_SERVER_MISSING)
        return 77;
    memset(w, 0, sizeof *w);
    w->capacity = capacity;
    w->each = each;
    begin_all(dead_waiters);
    due_queue *first = open_queue(capacity); /* before anybody puts */
    if (dead_waiters)
        wait_and_die(first);
    else
        close(gates[FIRST][1]);
    close(gates[SECOND][1]);
    while (atomic_load(&w->ready) < PRODUCERS) { /* until then nobody need put */
        look_at_all(producers, PRODUCERS);
        crew_sleep(DUE_MS(1));
    }
    crew_doing("with all of them");
    struct watch v = { .q = first, .since_ns = crew_now_ns() };
    stop_and_kill(&v);
    work_off(first);
    CREW_CHECK(v.full > 0 && v.waiting > 0 && v.rung > 0, ": full %llu, waiting %llu, rung %llu",
               (unsigned long long)v.full, (unsigned long long)v.waiting,
               (unsigned long long)v.rung);
    close_queue(first);
    redis_server_stop(&server);
    printf("redis_share_room: %u jobs through %u place(s); of %llu looks full in %llu, waiters "
           "in %llu, some rung in %llu; room unused for %.1f ms at most\n",
           atomic_load(&w->acked), capacity, (unsigned long long)v.looks,
           (unsigned long long)v.full, (unsigned long long)v.waiting, (unsigned long long)v.rung,
           (double)v.longest_ns / 1e6);
    fflush(stdout); /* before the next fork */
    return 0;
}

int main(void)
{
    crew_watchdog("redis_share_room", 300);
    w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CREW_CHECK(w != MAP_FAILED, "");
    int rc = run_with(12, EACH, false);
    if (rc == 0)
        rc = run_with(1, EACH / 4, true);
    if (rc != 0)
        printf("redis_share_room: redis-server is not installed\n");
    return rc;
}
