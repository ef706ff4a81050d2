/* thread_leader.c - whoever owns the timer leaves in every way: with a job, by its timeout, called
 * for another topic, by close.  The others must still get their jobs in time.
 *
 * Consumers with very different timeouts and topics; each job must be taken within seconds of its
 * deadline, though the consumer that watched the clock for it has gone.
 */
#include <stdio.h>

#include "lab/crew.h"
#include "lab/take.h"

#define CONSUMERS 4
#define LATE_NS   DUE_S(8) /* less than a heartbeat: that must not be what helps */

struct world {
    due_queue *q;
    int topics[3];
    atomic_ullong taken;
    atomic_llong latest;
    atomic_uint number;
    uint64_t seed;
};

static void taken(struct world *w, due_job *job)
{
    long long late = job->lateness_ns;
    long long latest = atomic_load(&w->latest);

    CREW_CHECK(late < LATE_NS, ": %lld ms late", late / 1000000);
    while (late > latest && !atomic_compare_exchange_weak(&w->latest, &latest, late))
        ;
    atomic_fetch_add(&w->taken, 1);
    due_job_done(job);
}

/* The first waits without end, for everything; the others come and go. */
static int consume(void *arg)
{
    struct world *w = arg;
    uint64_t self = atomic_fetch_add(&w->number, 1);
    uint64_t seed = w->seed + self;
    due_job job;
    int rc;

    do {
        int64_t timeout = self == 0 ? DUE_FOREVER : (int64_t)crew_below(&seed, 400000);
        size_t first = (size_t)crew_below(&seed, 3);
        size_t n = 1 + (size_t)crew_below(&seed, 3 - first);

        if (self < 2)
            rc = due_dequeue(w->q, &job, timeout);
        else
            rc = take_from(w->q, w->topics + first, n, &job, timeout);
        if (rc == 0)
            taken(w, &job);
        CREW_CHECK(rc == 0 || rc == DUE_ETIMEDOUT || rc == DUE_ECLOSED || rc == DUE_EAGAIN, ": %s",
                   due_error_name(rc));
    } while (rc != DUE_ECLOSED);
    return 0;
}

/* One job at a time, now and then, so that consumers really sleep. */
static void produce(struct world *w, int64_t ns)
{
    int64_t end = crew_now_ns() + ns;
    uint64_t seed = w->seed;
    uint64_t given = 0;

    while (crew_now_ns() < end) {
        due_spec spec = { DUE_SPEC_INIT, .delay_ns = (int64_t)crew_below(&seed, 600000),
                          .topic = w->topics[crew_below(&seed, 3)] };
        int rc = due_enqueue(w->q, &spec, 0, NULL);

        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        given++;
        while (atomic_load(&w->taken) + 2 < given)
            crew_sleep(50000);
    }
}

static uint64_t round_of(enum due_proxies proxies, enum due_clock_kind clock, int64_t ns,
                         uint64_t seed)
{
    struct world w = { .seed = seed };
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .clock = clock };
    struct crew_thread threads[CONSUMERS];

    w.q = crew_open(&options);
    w.topics[1] = due_topic(w.q, "a");
    w.topics[2] = due_topic(w.q, "b");
    for (int i = 0; i < CONSUMERS; i++)
        crew_go(&threads[i], consume, &w);
    produce(&w, ns);
    int rc = due_close(w.q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    for (int i = 0; i < CONSUMERS; i++)
        crew_join(&threads[i]);
    crew_close(w.q, DUE_CLOSE_DRAIN);
    printf("  %-8s latest %lld us\n", crew_mode_names[proxies],
           (long long)atomic_load(&w.latest) / 1000);
    return atomic_load(&w.taken);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    uint64_t jobs = 0;

    for (int mode = 0; mode < 3; mode++) {
        crew_doing(crew_mode_names[mode]);
        jobs += round_of((enum due_proxies)mode, DUE_CLOCK_MONOTONIC, o.ns / 4, o.seed);
        jobs += round_of((enum due_proxies)mode, DUE_CLOCK_REALTIME, o.ns / 12, o.seed);
    }
    printf("thread_leader: %llu jobs in time\n", (unsigned long long)jobs);
    return 0;
}
