/* ends.c - what each job costs when a queue of a million of them ends or pauses.
 *
 *   ends [--tiny]     a million jobs, 5 rounds (tiny: 10,000 jobs, 1 round)
 *
 * Each round goes through all ways in turn: jobs are put in, what is measured is done with all of
 * them, and the queue is closed.  What counts is the processor time of the whole process, worker
 * proxy included, divided by the jobs; the least and the median of the rounds are shown, and the
 * median beside that of the way that does the same with neither an end nor a pause.  Every job
 * must come out, or go, exactly once.
 */
#include <due/due.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "measure.h"

enum { ROUNDS = 5, MOST_THREADS = 4 };

enum before { DUE, FAR, CANCELLED };

struct work {
    due_queue *q;
    due_id *ids;
    size_t jobs;
    size_t threads;
    uint64_t gone; /* atomic: jobs that came out, or were cleared or discarded */
};

struct way {
    const char *name;
    void (*run)(struct work *w);
    enum before before; /* what the queue holds */
    size_t threads;
    size_t beside; /* the way it is compared with */
    double ns[ROUNDS];
};

static void must(int rc, const char *what)
{
    if (rc < 0) {
        fprintf(stderr, "ends: %s: %s\n", what, due_error_name(rc));
        exit(1);
    }
}

static int64_t processor_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- Taking ---------------------------------------------------------------------------------- */

static void *take_until_closed(void *arg)
{
    struct work *w = arg;
    uint64_t n = 0;
    due_job job;
    int rc;

    while ((rc = due_dequeue(w->q, &job, DUE_FOREVER)) == 0) {
        due_job_done(&job);
        n++;
    }
    must(rc == DUE_ECLOSED ? 0 : rc, "due_dequeue");
    __atomic_fetch_add(&w->gone, n, __ATOMIC_RELAXED);
    return NULL;
}

static void *take_what_is_due(void *arg)
{
    struct work *w = arg;
    uint64_t n = 0;
    due_job job;

    while (due_dequeue(w->q, &job, 0) == 0) {
        due_job_done(&job);
        n++;
    }
    __atomic_fetch_add(&w->gone, n, __ATOMIC_RELAXED);
    return NULL;
}

static void *reserve_what_is_due(void *arg)
{
    struct work *w = arg;
    uint64_t n = 0;
    due_job job;

    while (due_reserve(w->q, &job, 0) == 0) {
        must(due_ack(&job), "due_ack");
        n++;
    }
    __atomic_fetch_add(&w->gone, n, __ATOMIC_RELAXED);
    return NULL;
}

/* In as many threads as the way has. */
static void with_threads(struct work *w, void *(*body)(void *arg))
{
    pthread_t thread[MOST_THREADS];

    for (size_t i = 1; i < w->threads; i++) {
        if (pthread_create(&thread[i], NULL, body, w) != 0)
            must(DUE_ESYS, "pthread_create");
    }
    body(w);
    for (size_t i = 1; i < w->threads; i++)
        pthread_join(thread[i], NULL);
}

/* ---- Ways ------------------------------------------------------------------------------------ */

static void take(struct work *w)
{
    with_threads(w, take_what_is_due);
}

static void reserve(struct work *w)
{
    with_threads(w, reserve_what_is_due);
}

/* The queue drains from here on. */
static void drain_begin(struct work *w)
{
    int rc = due_close(w->q, DUE_CLOSE_DRAIN, 0);

    must(rc == DUE_ETIMEDOUT ? 0 : rc, "due_close");
}

static void drain(struct work *w)
{
    drain_begin(w);
    with_threads(w, take_until_closed);
}

static void drain_acked(struct work *w)
{
    drain_begin(w);
    with_threads(w, reserve_what_is_due);
}

static void discard(struct work *w)
{
    struct due_stats stats;

    must(due_close(w->q, DUE_CLOSE_DISCARD, DUE_S(60)), "due_close");
    must(due_stats_read(w->q, &stats), "due_stats_read");
    w->gone = stats.discarded;
}

static void clear(struct work *w)
{
    must(due_clear(w->q, DUE_ALL_TOPICS, &w->gone), "due_clear");
}

static void cancel(struct work *w)
{
    for (size_t i = 0; i < w->jobs; i++)
        must(due_cancel(w->q, w->ids[i], NULL), "due_cancel");
    w->gone = w->jobs;
}

/* All that is due goes to its line meanwhile. */
static void pause_and_resume(struct work *w)
{
    must(due_pause(w->q, 0), "due_pause");
    must(due_poll(w->q, NULL), "due_poll");
    must(due_resume(w->q, 0), "due_resume");
    with_threads(w, take_what_is_due);
}

static void trim(struct work *w)
{
    must(due_trim(w->q), "due_trim");
    w->gone = w->jobs;
}

enum { TAKE, TAKE_4, RESERVE, CANCEL };

static struct way ways[] = {
    [TAKE] = { "take", take, DUE, 1, TAKE, { 0 } },
    [TAKE_4] = { "take", take, DUE, 4, TAKE_4, { 0 } },
    [RESERVE] = { "reserve, ack", reserve, DUE, 1, RESERVE, { 0 } },
    [CANCEL] = { "cancel", cancel, FAR, 1, CANCEL, { 0 } },
    { "drain", drain, DUE, 1, TAKE, { 0 } },
    { "drain", drain, DUE, 4, TAKE_4, { 0 } },
    { "drain with acks", drain_acked, DUE, 1, RESERVE, { 0 } },
    { "pause, resume", pause_and_resume, DUE, 1, TAKE, { 0 } },
    { "pause, resume", pause_and_resume, DUE, 4, TAKE_4, { 0 } },
    { "discard", discard, FAR, 1, CANCEL, { 0 } },
    { "clear", clear, FAR, 1, CANCEL, { 0 } },
    { "trim", trim, CANCELLED, 1, CANCEL, { 0 } },
};

/* ---- The table ------------------------------------------------------------------------------- */

static void fill(struct work *w, enum before before)
{
    uint64_t random = 42;

    for (size_t i = 0; i < w->jobs; i++) {
        int64_t at =
            before == DUE ? 1 : DUE_S(1000000000) + (int64_t)(measure_random(&random) >> 8);

        must(due_enqueue_at(w->q, at, w, &w->ids[i]), "due_enqueue_at");
    }
    for (size_t i = 0; before == CANCELLED && i < w->jobs; i++)
        must(due_cancel(w->q, w->ids[i], NULL), "due_cancel");
}

static double measure(const struct way *way, size_t jobs)
{
    struct work w = { .jobs = jobs, .threads = way->threads, .ids = calloc(jobs, sizeof *w.ids) };

    if (w.ids == NULL)
        must(DUE_ENOMEM, "the program's own memory");
    must(due_open(&w.q, &(due_options){ DUE_OPTIONS_INIT, .reserve = jobs }, NULL), "due_open");
    fill(&w, way->before);
    int64_t begin = processor_ns();
    way->run(&w);
    int64_t ns = processor_ns() - begin;
    if (w.gone != jobs) {
        fprintf(stderr, "ends: %s: %llu jobs of %zu\n", way->name, (unsigned long long)w.gone,
                jobs);
        exit(1);
    }
    must(due_close(w.q, DUE_CLOSE_DISCARD, DUE_S(60)), "due_close");
    must(due_free(w.q), "due_free");
    free(w.ids);
    return (double)ns / (double)jobs;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    bool tiny = measure_option(argc, argv, "--tiny");
    size_t jobs = tiny ? 10000 : 1000000;
    size_t rounds = tiny ? 1 : ROUNDS;
    size_t count = sizeof ways / sizeof ways[0];

    for (size_t r = 0; r < rounds; r++) {
        for (size_t i = 0; i < count; i++)
            ways[i].ns[r] = measure(&ways[i], jobs);
    }
    for (size_t i = 0; i < count; i++)
        qsort(ways[i].ns, rounds, sizeof ways[i].ns[0], compare);
    for (size_t i = 0; i < count; i++) {
        const struct way *beside = &ways[ways[i].beside];

        printf("ends  jobs=%zu  threads=%zu  %-16s least %6.1f  median %6.1f ns a job", jobs,
               ways[i].threads, ways[i].name, ways[i].ns[0], ways[i].ns[rounds / 2]);
        if (beside != &ways[i])
            printf("  %4.2f of %s", ways[i].ns[rounds / 2] / beside->ns[rounds / 2], beside->name);
        puts("");
    }
    return 0;
}
