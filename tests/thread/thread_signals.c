/* thread_signals.c - a storm of signals, without SA_RESTART, at every thread that waits.  (B15)
 *
 * No wait ends early because of it, nothing is lost, and no timeout comes before its time.
 */
#include <signal.h>
#include <stdio.h>

#include "lab/crew.h"

#define CALLERS 4

static atomic_ullong heard;

static void on_signal(int number)
{
    (void)number;
    atomic_fetch_add(&heard, 1);
}

struct world {
    due_queue *q;
    atomic_uint number;
    atomic_bool stop;
    atomic_ullong given;
    atomic_ullong taken;
    atomic_ullong timeouts;
    uint64_t seed;
};

static int consume(void *arg)
{
    struct world *w = arg;
    uint64_t seed = w->seed + atomic_fetch_add(&w->number, 1);

    for (;;) {
        int64_t timeout = (int64_t)crew_below(&seed, 3000000) + 1;
        int64_t begin = crew_now_ns();
        due_job job;
        int rc = due_dequeue(w->q, &job, timeout);

        if (rc == DUE_ECLOSED)
            return 0;
        if (rc == DUE_ETIMEDOUT) {
            CREW_CHECK(crew_now_ns() - begin >= timeout, ": %lld ns early",
                       (long long)(timeout - (crew_now_ns() - begin)));
            atomic_fetch_add(&w->timeouts, 1);
            continue;
        }
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        CREW_CHECK(due_now(w->q) >= job.deadline_ns, ": early");
        atomic_fetch_add(&w->taken, 1);
        due_job_done(&job);
    }
}

static int produce(void *arg)
{
    struct world *w = arg;
    uint64_t seed = w->seed + atomic_fetch_add(&w->number, 1);

    while (!atomic_load(&w->stop)) {
        due_spec spec = { DUE_SPEC_INIT, .delay_ns = (int64_t)crew_below(&seed, 1000000) };
        int rc = due_enqueue(w->q, &spec, DUE_FOREVER, NULL);

        if (rc == DUE_ECLOSED)
            return 0;
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        atomic_fetch_add(&w->given, 1);
    }
    return 0;
}

static void round_of(enum due_proxies proxies, enum due_clock_kind clock, int64_t ns, uint64_t seed)
{
    struct world w = { .seed = seed };
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .clock = clock, .capacity = 8 };
    struct crew_thread threads[CALLERS];
    int64_t end = crew_now_ns() + ns;
    unsigned at = 0;

    w.q = crew_open(&options);
    for (int i = 0; i < CALLERS; i++)
        crew_go(&threads[i], i < 3 ? consume : produce, &w);
    while (crew_now_ns() < end) {
        pthread_kill(threads[at++ % CALLERS].id, SIGUSR1);
        if (at % 16 == 0)
            crew_sleep(50000);
    }
    atomic_store(&w.stop, true);
    int rc = due_close(w.q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    for (int i = 0; i < CALLERS; i++)
        crew_join(&threads[i]);
    CREW_CHECK(atomic_load(&w.given) == atomic_load(&w.taken), ": %llu and %llu",
               (unsigned long long)atomic_load(&w.given),
               (unsigned long long)atomic_load(&w.taken));
    printf("  %-8s %llu jobs, %llu timeouts\n", crew_mode_names[proxies],
           (unsigned long long)atomic_load(&w.taken), (unsigned long long)atomic_load(&w.timeouts));
    crew_close(w.q, DUE_CLOSE_DRAIN);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    struct sigaction action = { .sa_handler = on_signal };

    sigaction(SIGUSR1, &action, NULL);
    for (int mode = 0; mode < 3; mode++) {
        crew_doing(crew_mode_names[mode]);
        round_of((enum due_proxies)mode, DUE_CLOCK_MONOTONIC, o.ns / 6, o.seed);
        round_of((enum due_proxies)mode, DUE_CLOCK_REALTIME, o.ns / 6, o.seed);
    }
    printf("thread_signals: %llu signals, no wait was cut short\n",
           (unsigned long long)atomic_load(&heard));
    return 0;
}
