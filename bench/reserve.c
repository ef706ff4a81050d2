/* reserve.c - what it costs to answer for a job: reserve and ack beside dequeue, and a pool of
 * workers beside threads that dequeue.
 *
 *   reserve [--tiny]     a million jobs that are due, 9 rounds (tiny: 10,000 jobs, 1 round)
 *
 * Each round fills a queue for each subject in turn and then lets 1 or 4 threads empty it, twice;
 * only the second emptying counts.  So what the machine does meanwhile meets all alike, and memory
 * that is touched for the first time nobody.  The last column is the
 * rate as a part of that of dequeue, one by one or in batches, with as many threads.  The sum of
 * the jobs' numbers must be the same for all.
 */
#include <due/due.h>
#include <due/workers.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "measure.h"

enum { BATCH = 32, THREADS = 4, ROUNDS = 9 };

struct work;

struct subject {
    const char *name;
    void (*empty)(struct work *w);    /* in each thread; NULL: a pool */
    size_t threads;                   /* */
    size_t beside;                    /* the subject it is compared with */
    double million_per_s[ROUNDS + 1]; /* */
};

struct work {
    due_queue *q;
    const struct subject *subject;
    size_t jobs;
    uint64_t sum; /* atomic */
    pthread_barrier_t start;
};

static void fail(const char *what, int rc)
{
    fprintf(stderr, "reserve: %s: %s\n", what, due_error_name(rc));
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static uint64_t number_of(const due_job *job)
{
    uint64_t number;

    memcpy(&number, job->data, sizeof number);
    return number;
}

/* ---- Subjects -------------------------------------------------------------------------------- */

static void dequeue_one(struct work *w)
{
    uint64_t sum = 0;
    due_job job;

    while (due_dequeue(w->q, &job, 0) == 0) {
        sum += number_of(&job);
        due_job_done(&job);
    }
    __atomic_fetch_add(&w->sum, sum, __ATOMIC_RELAXED);
}

static void dequeue_many(struct work *w)
{
    due_job jobs[BATCH];
    uint64_t sum = 0;
    int n;

    while ((n = due_take(w->q, NULL, jobs, BATCH, 0)) > 0) {
        for (int i = 0; i < n; i++) {
            sum += number_of(&jobs[i]);
            due_job_done(&jobs[i]);
        }
    }
    __atomic_fetch_add(&w->sum, sum, __ATOMIC_RELAXED);
}

static void reserve_one(struct work *w)
{
    uint64_t sum = 0;
    due_job job;

    while (due_reserve(w->q, &job, 0) == 0) {
        sum += number_of(&job);
        if (due_ack(&job) != 0)
            fail("due_ack", 0);
    }
    __atomic_fetch_add(&w->sum, sum, __ATOMIC_RELAXED);
}

static void reserve_many(struct work *w)
{
    due_job jobs[BATCH];
    uint64_t sum = 0;
    int n;

    while ((n = due_take(w->q, &(due_take_options){ DUE_TAKE_INIT, .lease_ns = DUE_S(30) }, jobs,
                         BATCH, 0)) > 0) {
        for (int i = 0; i < n; i++)
            sum += number_of(&jobs[i]);
        if (due_ack_batch(jobs, (size_t)n, NULL) != n)
            fail("due_ack_batch", 0);
    }
    __atomic_fetch_add(&w->sum, sum, __ATOMIC_RELAXED);
}

/* Each of the pool's threads has a sum of its own. */
static struct {
    uint64_t sum __attribute__((aligned(64)));
} sums[THREADS];

static unsigned threads_seen; /* atomic */
static _Thread_local uint64_t *sum_here;

static void handle(void *ctx, const due_job *job, due_answer *answer)
{
    (void)ctx;
    if (sum_here == NULL)
        sum_here = &sums[__atomic_fetch_add(&threads_seen, 1, __ATOMIC_RELAXED) % THREADS].sum;
    *sum_here += number_of(job);
    *answer = due_answer_ack();
}

static struct subject subjects[] = {
    { .name = "dequeue", .empty = dequeue_one, .threads = 1, .beside = 0 },
    { .name = "reserve, ack", .empty = reserve_one, .threads = 1, .beside = 0 },
    { .name = "dequeue 32", .empty = dequeue_many, .threads = 1, .beside = 2 },
    { .name = "reserve, ack 32", .empty = reserve_many, .threads = 1, .beside = 2 },
    { .name = "dequeue", .empty = dequeue_one, .threads = THREADS, .beside = 4 },
    { .name = "reserve, ack", .empty = reserve_one, .threads = THREADS, .beside = 4 },
    { .name = "dequeue 32", .empty = dequeue_many, .threads = THREADS, .beside = 6 },
    { .name = "reserve, ack 32", .empty = reserve_many, .threads = THREADS, .beside = 6 },
    { .name = "pool", .empty = NULL, .threads = THREADS, .beside = 4 },
};

enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

/* ---- A round --------------------------------------------------------------------------------- */

static void fill(struct work *w)
{
    for (uint64_t at = 0; at < w->jobs;) {
        uint64_t number[BATCH];
        due_spec specs[BATCH];
        size_t n = w->jobs - at < BATCH ? (size_t)(w->jobs - at) : BATCH;

        for (size_t i = 0; i < n; i++) {
            number[i] = at + i;
            specs[i] = (due_spec){ DUE_SPEC_INIT, .data = &number[i], .len = sizeof number[i] };
        }
        int rc = due_enqueue_batch(w->q, specs, n, 0, NULL);
        if (rc < 0)
            fail("due_enqueue_batch", rc);
        at += (uint64_t)rc;
    }
}

static void *thread(void *arg)
{
    struct work *w = arg;

    pthread_barrier_wait(&w->start);
    w->subject->empty(w);
    return NULL;
}

/* How long the threads take. */
static int64_t threads_ns(struct work *w, size_t n)
{
    pthread_t id[THREADS];

    pthread_barrier_init(&w->start, NULL, (unsigned)n + 1);
    for (size_t i = 0; i < n; i++) {
        if (pthread_create(&id[i], NULL, thread, w) != 0)
            fail("pthread_create", DUE_ESYS);
    }
    pthread_barrier_wait(&w->start);
    int64_t begin = now_ns();
    for (size_t i = 0; i < n; i++)
        pthread_join(id[i], NULL);
    int64_t ns = now_ns() - begin;
    pthread_barrier_destroy(&w->start);
    return ns;
}

static struct due_workers_stats figures(due_workers *pool)
{
    struct due_workers_stats s;
    int rc = due_workers_stats_read(pool, &s);

    if (rc != 0)
        fail("due_workers_stats", rc);
    return s;
}

/* The same of a pool, its threads started meanwhile: they wait, since the topic is paused. */
static int64_t pool_ns(struct work *w, size_t n)
{
    due_workers *pool = NULL;
    int rc = due_pause(w->q, 0);

    if (rc == 0)
        rc = due_workers_start(&pool, w->q, NULL, 0, n, handle, w, NULL);
    if (rc != 0)
        fail("due_workers_start", rc);
    while (figures(pool).idle < n)
        usleep(100);
    int64_t begin = now_ns();
    rc = due_resume(w->q, 0);
    while (figures(pool).acked < w->jobs)
        usleep(100);
    int64_t ns = now_ns() - begin;
    if (rc == 0)
        rc = due_workers_stop(pool, DUE_S(10));
    if (rc == 0)
        rc = due_workers_free(pool);
    if (rc != 0)
        fail("the pool's end", rc);
    for (size_t i = 0; i < THREADS; i++) {
        w->sum += sums[i].sum;
        sums[i].sum = 0;
    }
    __atomic_store_n(&threads_seen, 0, __ATOMIC_RELAXED);
    return ns;
}

/* A million jobs a second. */
static double measure(const struct subject *s, size_t jobs)
{
    struct work w = { .subject = s, .jobs = jobs };
    int rc = due_open(&w.q, &(due_options){ DUE_OPTIONS_INIT, .reserve = jobs }, NULL);

    if (rc != 0)
        fail("due_open", rc);
    int64_t ns = 0;
    for (int pass = 0; pass < 2; pass++) { /* the first one touches the memory */
        w.sum = 0;
        fill(&w);
        ns = s->empty != NULL ? threads_ns(&w, s->threads) : pool_ns(&w, s->threads);
    }
    if (w.sum != (uint64_t)jobs * (jobs - 1) / 2)
        fail(s->name, DUE_ELOST);
    rc = due_close(w.q, DUE_CLOSE_DISCARD, DUE_S(10));
    if (rc != 0 || due_free(w.q) != 0)
        fail("due_close", rc);
    return (double)jobs * 1e3 / (double)ns;
}

/* ---- The table ------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(const struct subject *s, size_t rounds)
{
    double sorted[ROUNDS];

    memcpy(sorted, s->million_per_s, rounds * sizeof sorted[0]);
    qsort(sorted, rounds, sizeof sorted[0], compare);
    return sorted[rounds / 2];
}

/* The median of the rounds' own ratios: what is beside it in the same round. */
static double part(const struct subject *s, size_t rounds)
{
    struct subject ratio = { .name = s->name };

    for (size_t r = 0; r < rounds; r++)
        ratio.million_per_s[r] = s->million_per_s[r] / subjects[s->beside].million_per_s[r];
    return median(&ratio, rounds);
}

int main(int argc, char **argv)
{
    bool tiny = measure_option(argc, argv, "--tiny");
    size_t jobs = tiny ? 10000 : 1000000;
    size_t rounds = tiny ? 1 : ROUNDS;

    for (size_t r = 0; r < rounds; r++) {
        for (size_t i = 0; i < SUBJECTS; i++)
            subjects[i].million_per_s[r] = measure(&subjects[i], jobs);
    }
    for (size_t i = 0; i < SUBJECTS; i++)
        printf("reserve  jobs=%zu  threads=%zu  %-16s %6.2f million/s  %4.2f of %s\n", jobs,
               subjects[i].threads, subjects[i].name, median(&subjects[i], rounds),
               part(&subjects[i], rounds), subjects[subjects[i].beside].name);
    return 0;
}
