/* tenure.c - the longest hold of the timeline's lock, in processor time.
 *
 *   tenure [--tiny]      10 million jobs, then 60 % cancelled, the rest delivered (tiny: 100,000)
 *
 * Linked with a library built to measure it (DUE_MEASURE_TENURE).  Deadlines are spread so that
 * buckets load and split all the time; the clock is turned by hand, so that nothing sleeps.
 */
#include <due/due.h>

#include <stdio.h>
#include <stdlib.h>

#include "measure.h"

static uint64_t longest(due_queue *q)
{
    struct due_stats s;

    if (due_stats_read(q, &s) != 0)
        exit(1);
    return s.tenure_max_ns;
}

static void deliver(due_queue *q, due_clock *clock, size_t n, int64_t step_ns)
{
    due_job jobs[32];

    while (n > 0) {
        int got = due_take(q, NULL, jobs, 32, 0);

        if (got == DUE_EAGAIN && due_clock_advance(clock, step_ns) != 0)
            exit(1);
        for (int i = 0; i < got; i++)
            due_job_done(&jobs[i]);
        n -= got > 0 ? (size_t)got : 0;
    }
}

int main(int argc, char **argv)
{
    size_t n = measure_option(argc, argv, "--tiny") ? 100000 : 10000000;
    int64_t spread_ns = (int64_t)n * 1000;
    uint64_t state = 42;
    due_id *ids = malloc(n * sizeof *ids);
    due_clock *clock = due_clock_manual(DUE_S(1));
    due_options options = { DUE_OPTIONS_INIT, .manual = clock };
    due_queue *q;
    size_t cancelled = 0;

    if (ids == NULL || clock == NULL || due_open(&q, &options, NULL) != 0)
        return 1;
    for (size_t i = 0; i < n; i++) {
        due_spec s = { DUE_SPEC_INIT,
                       .delay_ns = 1 + (int64_t)(measure_random(&state) % (uint64_t)spread_ns) };
        if (due_enqueue(q, &s, 0, &ids[i]) != 0)
            return 1;
    }
    printf("tenure   n=%zu  longest while filling     %6.1f us\n", n, (double)longest(q) / 1e3);
    for (size_t i = 0; i < n; i++) {
        if (measure_random(&state) % 10 < 6)
            cancelled += due_cancel(q, ids[i], NULL) == 0;
    }
    printf("tenure   n=%zu  and cancelling 60 %%       %6.1f us\n", n, (double)longest(q) / 1e3);
    deliver(q, clock, n - cancelled, spread_ns / 1000);
    printf("tenure   n=%zu  and delivering the rest   %6.1f us (owed: 200 on an idle machine)\n", n,
           (double)longest(q) / 1e3);
    free(ids);
    return due_close(q, DUE_CLOSE_DISCARD, DUE_S(10)) != 0 || due_free(q) != 0 ||
           due_clock_free(clock) != 0;
}
