/* liveness_timeout_race.c - timeouts end at the very instant at which jobs come.  (B8)
 *
 * The wake-up of a caller that has just left by timeout must neither be lost to the others nor stay
 * for its next wait: two consumers with timeouts about as long as the jobs' delays, and one that
 * waits without end.  Afterwards nobody may spin.
 */
#include <stdio.h>

#include "lab/crew.h"

#define LATE_NS DUE_S(8) /* less than a heartbeat */

struct world {
    due_queue *q;
    atomic_ullong taken;
    atomic_ullong timeouts;
    atomic_uint number;
    uint64_t seed;
};

static int consume(void *arg)
{
    struct world *w = arg;
    unsigned self = atomic_fetch_add(&w->number, 1);
    uint64_t seed = w->seed + self;

    for (;;) {
        int64_t timeout = self == 0 ? DUE_FOREVER : 50000 + (int64_t)crew_below(&seed, 20000);
        due_job job;
        int rc = due_dequeue(w->q, &job, timeout);

        if (rc == DUE_ECLOSED)
            return 0;
        if (rc == DUE_ETIMEDOUT) {
            atomic_fetch_add(&w->timeouts, 1);
            continue;
        }
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        CREW_CHECK(job.lateness_ns < LATE_NS, ": %lld ms late",
                   (long long)job.lateness_ns / 1000000);
        atomic_fetch_add(&w->taken, 1);
        due_job_done(&job);
    }
}

static uint64_t race(enum due_proxies proxies, int64_t ns, uint64_t seed)
{
    struct world w = { .seed = seed };
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies };
    struct crew_thread consumers[3];
    int64_t end = crew_now_ns() + ns;
    uint64_t given = 0;

    w.q = crew_open(&options);
    for (int i = 0; i < 3; i++)
        crew_go(&consumers[i], consume, &w);
    while (crew_now_ns() < end) {
        due_spec spec = { DUE_SPEC_INIT, .delay_ns = 45000 + (int64_t)crew_below(&seed, 20000) };
        int rc = due_enqueue(w.q, &spec, 0, NULL);

        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        given++;
        while (atomic_load(&w.taken) < given)
            CREW_CHECK(crew_now_ns() < end + DUE_S(20), ": %llu of %llu were taken",
                       (unsigned long long)atomic_load(&w.taken), (unsigned long long)given);
    }
    int rc = due_close(w.q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    for (int i = 0; i < 3; i++)
        crew_join(&consumers[i]);
    crew_close(w.q, DUE_CLOSE_DRAIN);
    return given;
}

/* B10, B11: a wait with a job that never comes, after all that, costs nothing and ends in time. */
static void quiet(enum due_proxies proxies)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies };
    due_queue *q = crew_open(&options);
    due_spec never = { DUE_SPEC_INIT, .at_ns = DUE_FOREVER };
    due_job job;
    int rc = due_enqueue(q, &never, 0, NULL);

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    for (int i = 0; i < 20; i++) { /* calls that are given up leave nothing behind */
        rc = due_dequeue(q, &job, 1);
        CREW_CHECK(rc == DUE_ETIMEDOUT, ": %s", due_error_name(rc));
    }
    int64_t begin = crew_now_ns();
    int64_t cpu = crew_cpu_ns();
    rc = due_dequeue(q, &job, DUE_MS(100));
    cpu = crew_cpu_ns() - cpu;
    CREW_CHECK(rc == DUE_ETIMEDOUT, ": %s", due_error_name(rc));
    CREW_CHECK(crew_now_ns() - begin >= DUE_MS(100), ": early");
    CREW_CHECK(cpu < DUE_MS(20), ": %lld us of processor time", (long long)cpu / 1000);
    crew_close(q, DUE_CLOSE_DISCARD);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 1);
    uint64_t jobs = 0;

    for (int mode = 0; mode < 3; mode++) {
        crew_doing(crew_mode_names[mode]);
        jobs += race((enum due_proxies)mode, o.ns / 3, o.seed);
        quiet((enum due_proxies)mode);
    }
    printf("liveness_timeout_race: %llu jobs, none held up\n", (unsigned long long)jobs);
    return 0;
}
