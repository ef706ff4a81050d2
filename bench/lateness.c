/* lateness.c - how late a job is handed out here, and how late the kernel's own sleep is.
 *
 *   lateness [--tiny]      10,000 jobs at random instants over 10 s, one consumer (tiny: 50, 50 ms)
 *
 * The limit measured in the same run: a thread that sleeps until absolute instants of the same
 * kind with a timer slack of 1 ns.  Both run at the same time in alternating slices of a second, so
 * that a neighbour's load hits both alike.
 */
#include <due/due.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "measure.h"

struct lateness {
    int64_t *ns;
    size_t count;
    size_t early;
};

static void note(struct lateness *l, int64_t late_ns)
{
    l->early += late_ns < 0;
    l->ns[l->count++] = late_ns;
}

/* @n random instants in a slice that begins soon, in order. */
static void instants(int64_t *at, size_t n, int64_t slice_ns, uint64_t *state)
{
    int64_t begin = measure_now_ns() + DUE_MS(1);

    for (size_t i = 0; i < n; i++)
        at[i] = begin + (int64_t)(measure_random(state) % (uint64_t)slice_ns);
    measure_sort(at, n);
}

static void bare_slice(const int64_t *at, size_t n, struct lateness *l)
{
    for (size_t i = 0; i < n; i++) {
        struct timespec t = { .tv_sec = at[i] / 1000000000, .tv_nsec = at[i] % 1000000000 };

        if (measure_now_ns() >= at[i])
            continue; /* two instants closer than a wake-up: not a sleep */
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
            ;
        note(l, measure_now_ns() - at[i]);
    }
}

/* The same instants, but for those that come while the consumer is still awake. */
static void queue_slice(due_queue *q, const int64_t *at, size_t n, struct lateness *l)
{
    due_job job;

    for (size_t i = 0; i < n; i++) {
        due_spec s = { DUE_SPEC_INIT, .at_ns = at[i] };
        if (due_enqueue(q, &s, 0, NULL) != 0)
            exit(1);
    }
    for (size_t i = 0; i < n; i++) {
        int64_t asleep = measure_now_ns();
        if (due_dequeue(q, &job, DUE_S(60)) != 0)
            exit(1);
        int64_t now = measure_now_ns();
        if (asleep < job.deadline_ns)
            note(l, now - job.deadline_ns);
        else
            l->early += now < job.deadline_ns;
        due_job_done(&job);
    }
}

static void print(const char *name, struct lateness *l)
{
    measure_sort(l->ns, l->count);
    printf(
        "lateness %-8s p50 %6.1f us  p90 %6.1f us  p99 %6.1f us  max %8.1f us  n=%zu  early %zu\n",
        name, (double)measure_percentile(l->ns, l->count, 50) / 1e3,
        (double)measure_percentile(l->ns, l->count, 90) / 1e3,
        (double)measure_percentile(l->ns, l->count, 99) / 1e3, (double)l->ns[l->count - 1] / 1e3,
        l->count, l->early);
}

int main(int argc, char **argv)
{
    bool tiny = measure_option(argc, argv, "--tiny");
    size_t slices = tiny ? 1 : 10;
    size_t n = tiny ? 50 : 1000;
    int64_t slice_ns = tiny ? DUE_MS(50) : DUE_S(1);
    uint64_t state = 42;
    struct lateness bare = { .ns = malloc(slices * n * sizeof(int64_t)) };
    struct lateness queue = { .ns = malloc(slices * n * sizeof(int64_t)) };
    int64_t *at = malloc(n * sizeof *at);
    due_queue *q;

    if (bare.ns == NULL || queue.ns == NULL || at == NULL || due_open(&q, NULL, NULL) != 0)
        return 1;
    for (size_t i = 0; i < slices; i++) {
        int slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);

        instants(at, n, slice_ns, &state);
        prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
        bare_slice(at, n, &bare);
        prctl(PR_SET_TIMERSLACK, (unsigned long)slack, 0, 0, 0);
        instants(at, n, slice_ns, &state);
        queue_slice(q, at, n, &queue);
    }
    print("bare", &bare);
    print("libdue", &queue);
    printf("lateness p50 is %.2f times the bare sleep's (owed: 1.3)\n",
           (double)measure_percentile(queue.ns, queue.count, 50) /
               (double)measure_percentile(bare.ns, bare.count, 50));
    free(bare.ns);
    free(queue.ns);
    free(at);
    return due_close(q, DUE_CLOSE_DISCARD, DUE_S(10)) != 0 || due_free(q) != 0 || queue.early > 0;
}
