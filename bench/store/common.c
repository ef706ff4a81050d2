/* common.c - what the benchmarks of a queue with a store share: callers, jobs, and the table. */
#include "common.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

size_t jobs = 200000;
int rounds = 5;

/* ---- A queue ---- */

static atomic_int finished;
static _Thread_local uint64_t seed = 1;

double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void on_restore(void *ctx, uint64_t restored, int done)
{
    (void)ctx;
    (void)restored;
    if (done)
        atomic_store(&finished, 1);
}

due_queue *queue_open(enum due_confirm confirm, int64_t spin_ns)
{
    due_options o = { DUE_OPTIONS_INIT,
                      .name = "bench",
                      .confirm = confirm,
                      .unsettled_max = 1u << 26,
                      .unsettled_bytes_max = SIZE_MAX,
                      .store_timeout_ns = DUE_S(60),
                      .reserve = jobs,
                      .on_restore = on_restore };
    due_error error;
    due_queue *q;

    atomic_store(&finished, 0);
    o.store = bench_store_new(spin_ns);
    int rc = due_open(&q, &o, &error);
    if (rc != 0) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    return q;
}

void loaded(void)
{
    while (!atomic_load(&finished))
        nanosleep(&(struct timespec){ 0, 200000 }, NULL);
}

void queue_close(due_queue *q)
{
    must(due_close(q, DUE_CLOSE_DISCARD, DUE_S(60)));
    must(due_free(q));
}

/* Due at a random moment of @within_ns. */
due_spec spec_within(int64_t from_ns, int64_t within_ns)
{
    static const char bytes[PAYLOAD];

    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (due_spec){ DUE_SPEC_INIT, .at_ns = from_ns + (int64_t)(seed >> 20) % within_ns,
                       .data = bytes, .len = sizeof bytes };
}

due_spec spec_at(int64_t from_ns)
{
    return spec_within(from_ns, HOURS);
}

/* ---- Rows ---- */

struct row {
    const char *name;
    const char *unit;
    double own[ROUNDS];
    double bare[ROUNDS]; /* 0: nothing to compare with */
    int n;
};

#define ROWS 60

static struct row rows[ROWS];
static size_t row_count;

void note(const char *name, const char *unit, double own, double bare)
{
    size_t i = 0;

    while (i < row_count && strcmp(rows[i].name, name) != 0)
        i++;
    if (i == ROWS)
        must(DUE_ELIMIT);
    if (i == row_count)
        rows[row_count++] = (struct row){ .name = name, .unit = unit };
    rows[i].own[rows[i].n] = own;
    rows[i].bare[rows[i].n++] = bare;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double middle(const double *values, int n)
{
    double sorted[ROUNDS];

    memcpy(sorted, values, (size_t)n * sizeof *values);
    qsort(sorted, (size_t)n, sizeof *sorted, compare);
    return sorted[n / 2];
}

void print_rows(void)
{
    printf("%zu jobs of %d bytes, medians of %d\n\n", jobs, PAYLOAD, rounds);
    printf("%-46s %12s %12s %8s  %s\n", "", "libdue", "bare", "of bare", "");
    for (size_t i = 0; i < row_count; i++) {
        const struct row *r = &rows[i];
        double own = middle(r->own, r->n);
        double bare = middle(r->bare, r->n);

        if (bare > 0)
            printf("%-46s %12.4g %12.4g %8.2f  %s\n", r->name, own, bare, own / bare, r->unit);
        else
            printf("%-46s %12.4g %12s %8s  %s\n", r->name, own, "", "", r->unit);
    }
}

/* ---- Callers ---- */

struct caller {
    due_queue *q;
    size_t n;
};

static void *call(void *arg)
{
    const struct caller *c = arg;
    int64_t from = due_now(c->q) + DUE_S(3600);

    for (size_t i = 0; i < c->n; i++) {
        due_spec spec = spec_at(from);
        must(due_enqueue(c->q, &spec, 0, NULL));
    }
    return NULL;
}

/* Jobs per second of so many callers, each waiting for each of its jobs. */
double callers(unsigned n, size_t total, int64_t spin_ns)
{
    pthread_t threads[64];
    due_queue *q = queue_open(DUE_CONFIRM_SYNC, spin_ns);
    struct caller c = { q, total / n };

    loaded();
    double begin = now();
    for (unsigned i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, call, &c);
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    double took = now() - begin;
    queue_close(q);
    bench_store_empty();
    return (double)(c.n * n) / took;
}

void share(unsigned n, void *(*run)(void *), const struct share *all)
{
    pthread_t threads[SHARES];
    struct share each[SHARES];

    for (unsigned i = 0; i < n; i++) {
        each[i] = *all;
        each[i].jobs = all->jobs / BATCH / n * BATCH;
        each[i].index = i;
        if (i + 1 < n)
            pthread_create(&threads[i], NULL, run, &each[i]);
    }
    run(&each[n - 1]);
    for (unsigned i = 0; i + 1 < n; i++)
        pthread_join(threads[i], NULL);
}

void *put_share(void *arg)
{
    const struct share *s = arg;
    due_spec specs[BATCH];

    seed = 1 + s->index;
    for (size_t put = 0; put < s->jobs;) {
        for (size_t i = 0; i < BATCH; i++)
            specs[i] = spec_within(s->from_ns, s->within_ns);
        int rc = due_enqueue_batch(s->q, specs, BATCH, 0, NULL);
        must(rc);
        put += (size_t)rc;
    }
    return NULL;
}

/* Answers how many jobs were put. */
size_t put_batches(due_queue *q, unsigned callers, int64_t from, int64_t within_ns)
{
    share(callers, put_share,
          &(struct share){ .q = q, .jobs = jobs, .from_ns = from, .within_ns = within_ns });
    return jobs / BATCH / callers * BATCH * callers;
}

void *take_share(void *arg)
{
    const struct share *s = arg;
    due_job out[BATCH];

    for (size_t got = 0; got < s->jobs;) {
        size_t most = s->jobs - got < BATCH ? s->jobs - got : BATCH;
        due_take_options how = { DUE_TAKE_INIT, .lease_ns = s->reserve ? DUE_S(600) : 0 };
        int n = due_take(s->q, &how, out, most, DUE_S(10));
        must(n);
        if (s->reserve)
            must(due_ack_batch(out, (size_t)n, NULL));
        for (int i = 0; !s->reserve && i < n; i++)
            due_job_done(&out[i]);
        got += (size_t)n;
    }
    return NULL;
}

/* Jobs that came due one after another while they waited. */
size_t put_to_wait(due_queue *q, unsigned callers)
{
    int64_t from = due_now(q);
    size_t put = put_batches(q, callers, from, DUE_S(1));

    while (due_now(q) < from + DUE_S(1) + DUE_MS(100))
        nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
    return put;
}

/* ---- The program ---- */

bool arguments(int argc, char **argv, const char **only)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--tiny") == 0) {
            jobs = 2560;
            rounds = 1;
        } else if (strcmp(argv[i], "--jobs") == 0 && i + 1 < argc) {
            jobs = (size_t)strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            rounds = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            *only = argv[++i];
        } else {
            fprintf(stderr, "usage: %s [--jobs N] [--rounds N] [--tiny] [--only PART]\n", argv[0]);
            return false;
        }
    }
    return jobs >= BATCH && rounds >= 1 && rounds <= ROUNDS;
}

void run_parts(const struct part *parts, size_t n, const char *only)
{
    for (int round = 0; round < rounds; round++)
        for (size_t i = 0; i < n; i++)
            if (only == NULL || strcmp(only, parts[i].name) == 0)
                parts[i].run();
}
