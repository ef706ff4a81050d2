/* thread_workers_slow.c - handlers that are slow, stuck, or take longer than they may hold up
 * nobody else; and a pool that has nothing to do costs nothing.
 */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/crew.h"
#include "due/workers.h"
#include "lab/take.h"

#define BACKLOG 15000u

#define UNTIL(so)               \
    do {                        \
        while (!(so))           \
            crew_sleep(100000); \
    } while (0)

struct world {
    due_queue *q;
    sem_t go;            /* for who is stuck */
    uint32_t stuck_at;   /* the job whose handler is */
    atomic_uint stuck;   /* handlers that are */
    atomic_uint done;    /* */
    atomic_uint again;   /* handed out for the second time */
    int64_t takes_ns;    /* a handler */
    atomic_uint stopped; /* handlers that were told to */
    atomic_uint *times;  /* each job was handled by handle_once() */
};

static uint32_t number_of(const due_job *job)
{
    uint32_t number;

    memcpy(&number, job->data, sizeof number);
    return number;
}

static void enqueue(struct world *w, uint32_t number, int topic, int64_t delay_ns)
{
    due_spec spec = { DUE_SPEC_INIT, .data = &number, .len = sizeof number, .topic = topic,
                      .delay_ns = delay_ns };
    int rc = due_enqueue(w->q, &spec, DUE_FOREVER, NULL);

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
}

static void handle(void *ctx, const due_job *job, due_answer *answer)
{
    struct world *w = ctx;

    if (job->attempts > 1)
        atomic_fetch_add(&w->again, 1);
    if (number_of(job) == w->stuck_at) {
        atomic_fetch_add(&w->stuck, 1);
        while (sem_wait(&w->go) != 0)
            continue;
    } else if (w->takes_ns > 0) {
        crew_sleep(w->takes_ns);
    }
    atomic_fetch_add(&w->done, 1);
    *answer = due_answer_ack();
}

static due_workers *start(struct world *w, size_t threads, const due_workers_options *options,
                          due_handler *handler)
{
    due_workers *pool;

    w->q = crew_open(&(due_options){ DUE_OPTIONS_INIT });
    sem_init(&w->go, 0, 0);
    int rc = due_workers_start(&pool, w->q, NULL, 0, threads, handler, w, options);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    return pool;
}

static struct due_workers_stats figures(due_workers *pool)
{
    struct due_workers_stats s;
    int rc = due_workers_stats_read(pool, &s);

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    return s;
}

static void finish(struct world *w, due_workers *pool)
{
    int rc = due_close(w->q, DUE_CLOSE_DRAIN, DUE_FOREVER);

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    rc = due_workers_free(pool);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    crew_close(w->q, DUE_CLOSE_DISCARD);
    sem_destroy(&w->go);
}

/* One of four threads is stuck: the others do everything else, of all topics, at its time. */
static void one_is_stuck(void)
{
    enum { JOBS = 20000 };
    struct world w = { .stuck_at = 5000 };
    due_workers *pool = start(&w, 4, NULL, handle);

    crew_doing("one is stuck");
    int other = due_topic(w.q, "other");
    CREW_CHECK(other > 0, ": %d", other);
    for (uint32_t i = 0; i < JOBS; i++)
        enqueue(&w, i, i % 2 == 0 ? 0 : other, i % 3 == 0 ? (int64_t)i * 1000 : 0);
    UNTIL(atomic_load(&w.done) == JOBS - 1);
    UNTIL(figures(pool).running == 1); /* the last one may not have returned yet */
    CREW_CHECK(atomic_load(&w.again) == 0, ": %u", atomic_load(&w.again));
    sem_post(&w.go);
    finish(&w, pool);
    CREW_CHECK(atomic_load(&w.done) == JOBS, ": %u", atomic_load(&w.done));
}

/* The only thread of a pool is stuck, in the middle of many quick jobs: what it has fetched ahead
 * goes to a consumer that has nothing to do with the pool. */
static void all_are_stuck(void)
{
    enum { JOBS = 20000 };
    struct world w = { .stuck_at = JOBS / 2 };
    due_job job;

    crew_doing("all are stuck");
    w.q = crew_open(&(due_options){ DUE_OPTIONS_INIT });
    sem_init(&w.go, 0, 0);
    for (uint32_t i = 0; i < JOBS; i++)
        enqueue(&w, i, 0, 0);
    due_workers *pool;
    int rc = due_workers_start(&pool, w.q, NULL, 0, 1, handle, &w, NULL);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    UNTIL(atomic_load(&w.stuck) == 1);
    uint32_t left = JOBS - 1 - atomic_load(&w.done);
    for (uint32_t i = 0; i < left; i++) {
        rc = take_leased(w.q, &job, DUE_S(60), DUE_FOREVER);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        CREW_CHECK(job.attempts == 1, ": what was not begun counts as an attempt");
        CREW_CHECK(job.failures == 0, " is not so");
        rc = due_ack(&job);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
    CREW_CHECK(figures(pool).ahead == 0, " is not so");
    sem_post(&w.go);
    finish(&w, pool);
    CREW_CHECK(atomic_load(&w.done) == JOBS - left, ": %u", atomic_load(&w.done));
}

/* Each is handled once, and a lease that ends would leave it dead. */
static void handle_once(void *ctx, const due_job *job, due_answer *answer)
{
    struct world *w = ctx;
    unsigned before = atomic_fetch_add(&w->times[number_of(job)], 1);

    CREW_CHECK(before == 0, ": job %u for the second time", number_of(job));
    handle(ctx, job, answer);
}

/* 15,000 jobs of 3 ms that are due at once: more than @threads handle while one lease lasts, so who
 * reserved his whole share at once would lose the end of it. */
static void more_than_a_lease_can_hold(size_t threads)
{
    struct world w = { .stuck_at = UINT32_MAX, .takes_ns = DUE_MS(3) };
    due_workers_options o = { DUE_WORKERS_INIT, .lease_ns = DUE_S(5) };
    due_workers *pool;
    struct due_stats s;

    crew_doing("more than a lease can hold");
    w.times = calloc(BACKLOG, sizeof *w.times);
    CREW_CHECK(w.times != NULL, ": no memory");
    w.q = crew_open(&(due_options){ DUE_OPTIONS_INIT,
                                    .metrics = 1, /* else leases are only promised */
                                    .retry = { .kind = DUE_RETRY_FIXED, .attempts_max = 1 } });
    sem_init(&w.go, 0, 0);
    for (uint32_t i = 0; i < BACKLOG; i++)
        enqueue(&w, i, 0, 0);
    int64_t begin = crew_now_ns();
    int rc = due_workers_start(&pool, w.q, NULL, 0, threads, handle_once, &w, &o);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    do {
        crew_sleep(DUE_MS(1));
        rc = due_stats_read(w.q, &s);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        CREW_CHECK(s.lapsed == 0 && s.dead == 0, ": %llu leases ended, %llu jobs are dead",
                   (unsigned long long)s.lapsed, (unsigned long long)s.dead);
    } while (s.acked < BACKLOG);
    CREW_CHECK(crew_now_ns() - begin > o.lease_ns, ": one lease was enough");
    finish(&w, pool);
    CREW_CHECK(atomic_load(&w.done) == BACKLOG, ": %u", atomic_load(&w.done));
    free(w.times);
}

/* A handler that goes on until it is told to stop. */
static void overrun(void *ctx, const due_job *job, due_answer *answer)
{
    struct world *w = ctx;

    if (job->attempts == 1) {
        while (!due_job_stopping(job))
            crew_sleep(100000);
        atomic_fetch_add(&w->stopped, 1);
        while (sem_wait(&w->go) != 0)
            continue;
    } else {
        atomic_fetch_add(&w->again, 1);
    }
    *answer = due_answer_ack();
}

/* It is told when its lease can be extended no more, the job is handed out again, and what it
 * answers changes nothing.  False: it was not so, as where nobody was let run in time. */
static bool takes_longer_than_it_may(void)
{
    struct world w = { .stuck_at = UINT32_MAX };
    due_workers_options o = { DUE_WORKERS_INIT, .lease_ns = DUE_MS(200),
                              .extend_max_ns = DUE_MS(500) };
    due_workers *pool = start(&w, 2, &o, overrun);

    crew_doing("takes longer than it may");
    int64_t begin = crew_now_ns();
    enqueue(&w, 0, 0, 0);
    UNTIL(atomic_load(&w.stopped) == 1 && figures(pool).acked == 1);
    bool right = crew_now_ns() - begin >= DUE_MS(500) && atomic_load(&w.again) == 1 &&
                 figures(pool).extended > 0;
    sem_post(&w.go);
    UNTIL(figures(pool).handled >= 2);
    right = right && figures(pool).lost == 1;
    finish(&w, pool);
    return right;
}

/* After the last job its threads sleep: none wakes up, and no processor time is used. */
static void has_nothing_to_do(void)
{
    struct world w = { .stuck_at = UINT32_MAX };
    due_workers_options o = { DUE_WORKERS_INIT, .lease_ns = DUE_MS(20) };
    due_workers *pool = start(&w, 8, &o, handle);

    crew_doing("has nothing to do");
    for (uint32_t i = 0; i < 1000; i++)
        enqueue(&w, i, 0, 0);
    UNTIL(figures(pool).acked == 1000 && figures(pool).idle == 8);
    crew_sleep(DUE_MS(100)); /* the keeper looks for half a lease after the last job */
    uint64_t switches = 0;
    int64_t cpu = 0;
    for (int i = 0; i == 0 || (i < 10 && switches > 4);
         i++) { /* a sanitizer's thread may be busy */
        switches = crew_switches();
        cpu = crew_cpu_ns();
        crew_sleep(DUE_MS(300));
        switches = crew_switches() - switches;
        cpu = crew_cpu_ns() - cpu;
    }
    CREW_CHECK(switches <= 4, ": %llu threads woke up", (unsigned long long)switches);
    CREW_CHECK(cpu < DUE_MS(30), ": %lld us", (long long)cpu / 1000);
    finish(&w, pool);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);

    one_is_stuck();
    all_are_stuck();
    for (unsigned tries = 1; !takes_longer_than_it_may(); tries++)
        CREW_CHECK(tries < 20, ": its lease does not end once, after all that it may last");
    /* For 5.6 s, or for four and a half leases. */
    more_than_a_lease_can_hold(o.ns > DUE_S(5) ? 2 : 8);
    has_nothing_to_do();
    printf("thread_workers_slow: nobody was held up\n");
    return 0;
}
