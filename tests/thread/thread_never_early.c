/* thread_never_early.c - no job is handed out before its deadline, on any clock, in any mode.
 *
 * Each consumer reads the queue's clock itself when it has a job.  On the manual clock the clock is
 * turned by a thread of its own while others put in and take out.
 */
#include <stdio.h>

#include "lab/crew.h"

struct world {
    due_queue *q;
    due_clock *clock; /* NULL: the kernel's */
    atomic_bool stop;
    atomic_ullong taken;
    uint64_t seed;
};

static int produce(void *arg)
{
    struct world *w = arg;
    uint64_t seed = w->seed;

    while (!atomic_load(&w->stop)) {
        due_spec spec = { DUE_SPEC_INIT, .delay_ns = 0 };
        int64_t now = due_now(w->q);
        int64_t delay = (int64_t)crew_below(&seed, UINT64_C(1) << crew_below(&seed, 22));

        if (crew_below(&seed, 2) == 0)
            spec.delay_ns = delay;
        else
            spec.at_ns = now + delay;
        due_id id;
        int rc = due_enqueue(w->q, &spec, DUE_S(60), &id);
        if (rc == DUE_ECLOSED)
            break;
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        if (crew_below(&seed, 4) == 0) {
            rc = due_reschedule(w->q, id, now + 2 * delay);
            CREW_CHECK(rc == 0 || rc == DUE_EBUSY || rc == DUE_ENOENT || rc == DUE_ECLOSED, ": %s",
                       due_error_name(rc));
        }
    }
    return 0;
}

static int consume(void *arg)
{
    struct world *w = arg;
    due_job job;
    int rc;

    while ((rc = due_dequeue(w->q, &job, DUE_MS(50))) != DUE_ECLOSED) {
        if (rc == DUE_ETIMEDOUT)
            continue;
        int64_t now = due_now(w->q);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        CREW_CHECK(now >= job.deadline_ns, ": early by %lld ns",
                   (long long)(job.deadline_ns - now));
        CREW_CHECK(job.lateness_ns >= 0, ": %lld", (long long)job.lateness_ns);
        atomic_fetch_add(&w->taken, 1);
        due_job_done(&job);
    }
    return 0;
}

static int turn(void *arg)
{
    struct world *w = arg;
    uint64_t seed = w->seed + 1;

    while (!atomic_load(&w->stop)) {
        int rc = due_clock_advance(w->clock, (int64_t)crew_below(&seed, 20000));

        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
    return 0;
}

static uint64_t round_of(enum due_proxies proxies, int clock, int64_t ns, uint64_t seed)
{
    struct world w = { .seed = seed };
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .capacity = 500 };
    struct crew_thread threads[5];
    size_t n = 0;

    if (clock < 3)
        options.clock = (enum due_clock_kind)clock;
    else
        options.manual = w.clock = due_clock_manual(0);
    w.q = crew_open(&options);
    crew_go(&threads[n++], produce, &w);
    crew_go(&threads[n++], produce, &w);
    crew_go(&threads[n++], consume, &w);
    crew_go(&threads[n++], consume, &w);
    if (w.clock != NULL)
        crew_go(&threads[n++], turn, &w);
    crew_sleep(ns);
    int rc = due_close(w.q, DUE_CLOSE_DISCARD, DUE_FOREVER);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    atomic_store(&w.stop, true);
    for (size_t i = 0; i < n; i++)
        crew_join(&threads[i]);
    crew_close(w.q, DUE_CLOSE_DISCARD);
    rc = due_clock_free(w.clock);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    return atomic_load(&w.taken);
}

int main(int argc, char **argv)
{
    static const char *const clocks[] = { "monotonic", "boottime", "realtime", "manual" };
    struct crew_options o = crew_options(argc, argv, 2);
    uint64_t taken = 0;

    for (int clock = 0; clock < 4; clock++)
        for (int mode = 0; mode < 3; mode++) {
            crew_doing(clocks[clock]);
            taken += round_of((enum due_proxies)mode, clock, o.ns / 12, o.seed);
        }
    printf("thread_never_early: %llu jobs, none early\n", (unsigned long long)taken);
    return 0;
}
