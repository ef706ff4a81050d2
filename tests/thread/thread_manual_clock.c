/* thread_manual_clock.c - several queues on one manual clock, turned by two threads while others
 * wait with timeouts, put in, open, close, and free queues with leases that end meanwhile.
 */
#include <stdio.h>

#include "lab/crew.h"
#include "lab/take.h"

#define QUEUES 3

struct world {
    due_clock *clock;
    due_queue *q[QUEUES];
    enum due_proxies proxies;
    atomic_bool stop;
    atomic_uint number;
    atomic_ullong taken;
    atomic_ullong timeouts;
    uint64_t seed;
};

static int turn(void *arg)
{
    struct world *w = arg;
    uint64_t seed = w->seed + atomic_fetch_add(&w->number, 1);

    while (!atomic_load(&w->stop)) {
        int rc = due_clock_advance(w->clock, (int64_t)crew_below(&seed, 1000));

        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
    return 0;
}

static int consume(void *arg)
{
    struct world *w = arg;
    unsigned self = atomic_fetch_add(&w->number, 1);
    due_queue *q = w->q[self % QUEUES];
    uint64_t seed = w->seed + self;

    for (;;) {
        int64_t begin = due_now(q);
        int64_t timeout = (int64_t)crew_below(&seed, 3000);
        due_job job;
        int rc = due_dequeue(q, &job, timeout);

        if (rc == DUE_ECLOSED)
            return 0;
        if (rc == DUE_ETIMEDOUT) {
            CREW_CHECK(due_now(q) >= begin + timeout, ": after %lld ns",
                       (long long)(due_now(q) - begin));
            atomic_fetch_add(&w->timeouts, 1);
        } else if (rc != DUE_EAGAIN) {
            CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
            CREW_CHECK(due_now(q) >= job.deadline_ns, ": early");
            atomic_fetch_add(&w->taken, 1);
            due_job_done(&job);
        }
    }
}

static int produce(void *arg)
{
    struct world *w = arg;
    uint64_t seed = w->seed + atomic_fetch_add(&w->number, 1);

    while (!atomic_load(&w->stop)) {
        due_spec spec = { DUE_SPEC_INIT, .delay_ns = (int64_t)crew_below(&seed, 3000) };
        int rc = due_enqueue(w->q[crew_below(&seed, QUEUES)], &spec, 2000, NULL);

        CREW_CHECK(rc == 0 || rc == DUE_ETIMEDOUT || rc == DUE_ECLOSED, ": %s", due_error_name(rc));
    }
    return 0;
}

/* Queues that come and go on the same clock. */
static int come_and_go(void *arg)
{
    struct world *w = arg;

    while (!atomic_load(&w->stop)) {
        due_options options = { DUE_OPTIONS_INIT, .manual = w->clock, .proxies = w->proxies };
        due_queue *q = crew_open(&options);
        due_spec spec = { DUE_SPEC_INIT, .delay_ns = 500 };
        due_job job;
        int rc = due_enqueue(q, &spec, 0, NULL);

        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        rc = due_dequeue(q, &job, DUE_FOREVER);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        due_job_done(&job);
        crew_close(q, DUE_CLOSE_DRAIN);
    }
    return 0;
}

static void on_discard(void *ctx, const due_job *job)
{
    (void)job;
    atomic_fetch_add((atomic_uint *)ctx, 1);
}

#define LEASES 1000u

struct turner {
    struct crew_thread thread;
    due_clock *clock;
    atomic_bool go;
};

static int turn_once(void *arg)
{
    struct turner *t = arg;

    while (!atomic_load(&t->go))
        ;
    return due_clock_advance(t->clock, DUE_S(1));
}

/* A queue is freed with jobs whose holders have let go of them, while somebody turns the clock past
 * the ends of their leases: each is discarded once. */
static void free_leased(enum due_proxies proxies)
{
    atomic_uint discarded = 0;
    struct turner t = { .clock = due_clock_manual(0) };
    due_options options = { DUE_OPTIONS_INIT, .manual = t.clock, .proxies = proxies,
                            .on_discard = on_discard, .ctx = &discarded };
    due_queue *q = crew_open(&options);
    due_spec spec = { DUE_SPEC_INIT, .topic = due_topic(q, "second") };
    due_job job;

    for (unsigned i = 0; i < LEASES; i++) {
        int rc = due_enqueue(q, &spec, 0, NULL);

        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        rc = take_leased(q, &job, 1000, DUE_FOREVER);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        due_job_done(&job);
    }
    int rc = due_close(q, DUE_CLOSE_DISCARD, DUE_FOREVER);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    crew_go(&t.thread, turn_once, &t);
    atomic_store(&t.go, true);
    while ((rc = due_free(q)) == DUE_EBUSY) /* who turns the clock has one in hand */
        ;
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    rc = crew_join(&t.thread);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    CREW_CHECK(atomic_load(&discarded) == LEASES, ": %u", atomic_load(&discarded));
    rc = due_clock_free(t.clock);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
}

static void round_of(enum due_proxies proxies, int64_t ns, uint64_t seed)
{
    struct world w = { .seed = seed, .proxies = proxies, .clock = due_clock_manual(0) };
    int (*const duties[])(void *) = { turn, turn, produce, come_and_go };
    struct crew_thread consumers[QUEUES];
    struct crew_thread others[4];

    for (int i = 0; i < QUEUES; i++) {
        due_options options = { DUE_OPTIONS_INIT, .manual = w.clock, .proxies = proxies,
                                .capacity = i == 0 ? 4 : 1000 };

        w.q[i] = crew_open(&options);
    }
    for (int i = 0; i < QUEUES; i++)
        crew_go(&consumers[i], consume, &w);
    for (int i = 0; i < 4; i++)
        crew_go(&others[i], duties[i], &w);
    crew_sleep(ns);
    atomic_store(&w.stop, true);
    /* The clock must go on until those who wait on it have left. */
    for (int i = 3; i >= 0; i--) {
        while (!atomic_load(&others[i].back)) {
            int rc = due_clock_advance(w.clock, 1000);

            CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        }
        crew_join(&others[i]);
    }
    for (int i = 0; i < QUEUES; i++) {
        int rc = due_close(w.q[i], DUE_CLOSE_DISCARD, DUE_FOREVER);

        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
    for (int i = 0; i < QUEUES; i++)
        crew_join(&consumers[i]);
    for (int i = 0; i < QUEUES; i++)
        crew_close(w.q[i], DUE_CLOSE_DISCARD);
    int rc = due_clock_free(w.clock);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    printf("  %-8s %llu jobs, %llu timeouts\n", crew_mode_names[proxies],
           (unsigned long long)atomic_load(&w.taken), (unsigned long long)atomic_load(&w.timeouts));
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);

    for (int mode = 0; mode < 3; mode++) {
        crew_doing(crew_mode_names[mode]);
        round_of((enum due_proxies)mode, o.ns / 3, o.seed);
        for (int64_t end = crew_now_ns() + o.ns / 6; crew_now_ns() < end;)
            free_leased((enum due_proxies)mode);
    }
    printf("thread_manual_clock: everyone was woken at the clock's time\n");
    return 0;
}
