/* liveness_busy_inbox.c - callers that do not wait come back while producers never pause.
 *
 * Producers put jobs in and cancel them at once, faster than anybody sorts in.  A take with timeout
 * 0, a peek and a poll must still end, and the places of jobs cancelled in the inbox must be used
 * again: the slab must not grow with the number of jobs that came and went.
 */
#include <stdio.h>

#include "lab/crew.h"

#define PRODUCERS 3
#define BATCH     64

struct world {
    due_queue *q;
    atomic_bool stop;
    atomic_ullong gone;
};

static int churn(void *arg)
{
    struct world *w = arg;
    due_spec specs[BATCH];
    due_id ids[BATCH];

    for (int i = 0; i < BATCH; i++)
        specs[i] = (due_spec){ DUE_SPEC_INIT, .delay_ns = DUE_S(1000) };
    while (!atomic_load(&w->stop)) {
        int n = due_enqueue_batch(w->q, specs, BATCH, 0, ids);

        CREW_CHECK(n > 0, ": %s", due_error_name(n));
        n = due_cancel_batch(w->q, ids, (size_t)n, NULL);
        CREW_CHECK(n > 0, ": %s", due_error_name(n));
        atomic_fetch_add(&w->gone, (unsigned long long)n);
    }
    return 0;
}

static void round_of(enum due_proxies proxies, int64_t ns)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies };
    struct world w = { .q = crew_open(&options) };
    struct crew_thread threads[PRODUCERS];
    int64_t end = crew_now_ns() + ns;
    struct due_stats stats;
    due_info info;
    due_job job;
    int calls = 0;

    for (int i = 0; i < PRODUCERS; i++)
        crew_go(&threads[i], churn, &w);
    while (crew_now_ns() < end) { /* the watchdog barks if one of these does not come back */
        int rc = due_dequeue(w.q, &job, 0);
        CREW_CHECK(rc == DUE_EAGAIN, ": %s", due_error_name(rc));
        rc = due_peek(w.q, &info);
        CREW_CHECK(rc == 0 || rc == DUE_EAGAIN, ": %s", due_error_name(rc));
        rc = due_poll(w.q, NULL);
        CREW_CHECK(rc == 0, ": %d", rc);
        calls++;
    }
    int rc = due_stats_read(w.q, &stats);
    CREW_CHECK(rc == 0 && stats.memory_bytes < (UINT64_C(2) << 30), ": %llu bytes",
               (unsigned long long)stats.memory_bytes);
    atomic_store(&w.stop, true);
    for (int i = 0; i < PRODUCERS; i++)
        crew_join(&threads[i]);
    printf("  %-8s %d rounds of calls while %llu jobs came and went\n", crew_mode_names[proxies],
           calls, (unsigned long long)atomic_load(&w.gone));
    crew_close(w.q, DUE_CLOSE_DISCARD);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 1.5);

    for (int mode = 0; mode < 3; mode++) {
        crew_doing(crew_mode_names[mode]);
        round_of((enum due_proxies)mode, o.ns / 3);
    }
    return 0;
}
