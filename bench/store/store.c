/* store.c - a queue with a Redis store, beside what the same server does by itself.
 *
 * bench_store [--jobs N] [--rounds N] [--tiny] [--only batches|callers|async|removal|restore]:
 * starts a private redis-server without a log, runs each row as often as there are rounds, and
 * prints medians.  "of bare" is the ratio to the same bytes written by hand in the same round.
 */
#include <sys/resource.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bare.h"
#include "due/redis.h"
#include "lab/redis/redis_server.h"

#define PAYLOAD 64
#define BATCH   256
#define ROUNDS  9

static size_t jobs = 200000;
static int rounds = 5;
static struct redis_server server;

/* ---- Helpers ---- */

#define must(call)                                                       \
    do {                                                                 \
        int must_rc = (call);                                            \
        if (must_rc < 0) {                                               \
            fprintf(stderr, "%s: %s\n", #call, due_error_name(must_rc)); \
            exit(1);                                                     \
        }                                                                \
    } while (0)

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double cpu(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void ask(const char *const *words, char *answer, size_t room)
{
    if (redis_server_ask(&server, words, answer, room) < 0) {
        fprintf(stderr, "the server does not answer\n");
        exit(1);
    }
}

/* The number behind @name in what INFO says of @section. */
static double info_of(const char *section, const char *name)
{
    static char answer[16384];

    ask((const char *const[]){ "INFO", section, NULL }, answer, sizeof answer);
    const char *at = strstr(answer, name);
    return at != NULL ? strtod(at + strlen(name), NULL) : 0;
}

static double server_cpu(void)
{
    return info_of("cpu", "used_cpu_sys:") + info_of("cpu", "used_cpu_user:");
}

static void flush_server(void)
{
    char answer[64];

    ask((const char *const[]){ "FLUSHALL", NULL }, answer, sizeof answer);
}

static atomic_int finished;

static void on_restore(void *ctx, uint64_t restored, int done)
{
    (void)ctx;
    (void)restored;
    if (done)
        atomic_store(&finished, 1);
}

static due_queue *queue_open(enum due_confirm confirm, int64_t spin_ns)
{
    due_redis_options redis = { DUE_REDIS_OPTIONS_INIT, .spin_ns = spin_ns };
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
    must(due_redis_open(&o.store, server.url, &redis, &error));
    int rc = due_open(&q, &o, &error);
    if (rc != 0) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    return q;
}

static void loaded(void)
{
    while (!atomic_load(&finished))
        nanosleep(&(struct timespec){ 0, 200000 }, NULL);
}

static void queue_close(due_queue *q)
{
    must(due_close(q, DUE_CLOSE_DISCARD, DUE_S(60)));
    must(due_free(q));
}

static _Thread_local uint64_t seed = 1;

#define HOURS ((int64_t)1 << 44)

/* Due at a random moment of @within_ns. */
static due_spec spec_within(int64_t from_ns, int64_t within_ns)
{
    static const char bytes[PAYLOAD];

    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (due_spec){ DUE_SPEC_INIT, .at_ns = from_ns + (int64_t)(seed >> 20) % within_ns,
                       .data = bytes, .len = sizeof bytes };
}

static due_spec spec_at(int64_t from_ns)
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

#define ROWS 40

static struct row rows[ROWS];
static size_t row_count;

static void note(const char *name, const char *unit, double own, double bare)
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

static void print_rows(void)
{
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

/* ---- Writing ---- */

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
static double callers(unsigned n, size_t total, int64_t spin_ns)
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
    flush_server();
    return (double)(c.n * n) / took;
}

/* So many threads do the same, each for its share of the jobs. */
struct share {
    due_queue *q;
    size_t jobs;
    unsigned index;
    int64_t from_ns, within_ns; /* of those who put */
    bool reserve;               /* of those who take */
};

#define SHARES 8

static void share(unsigned n, void *(*run)(void *), const struct share *all)
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

static void *put_share(void *arg)
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
static size_t put_batches(due_queue *q, unsigned callers, int64_t from, int64_t within_ns)
{
    share(callers, put_share,
          &(struct share){ .q = q, .jobs = jobs, .from_ns = from, .within_ns = within_ns });
    return jobs / BATCH / callers * BATCH * callers;
}

static double bare_rate(double (*run)(struct bare *, size_t, size_t, size_t), size_t total)
{
    struct bare b = bare_open(server.socket);
    double took = run(&b, total / BATCH * BATCH, BATCH, PAYLOAD);

    bare_close(&b);
    return (double)(total / BATCH * BATCH) / took;
}

/* The bare writer has two batches under way, which keep the server busy all the time. */
static void run_batches(void)
{
    static const struct {
        const char *name;
        unsigned callers;
    } runs[] = {
        { "enqueue, batches of 256", 1 },
        { "enqueue, batches of 256, two callers", 2 },
        { "enqueue, batches of 256, four callers", 4 },
        { "enqueue, batches of 256, eight callers", SHARES },
    };
    double bare_begin = server_cpu();
    double bare = bare_rate(bare_put, jobs);
    double bare_cpu = (server_cpu() - bare_begin) / (double)jobs;

    flush_server();
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        double memory = info_of("memory", "used_memory:");
        due_queue *q = queue_open(DUE_CONFIRM_SYNC, 0);

        loaded();
        double begin = now();
        double client = cpu();
        double the_server = server_cpu();
        double put = (double)put_batches(q, runs[i].callers, due_now(q) + DUE_S(3600), HOURS);
        double took = now() - begin;
        the_server = server_cpu() - the_server;
        note(runs[i].name, "jobs/s", put / took, bare);
        if (runs[i].callers == SHARES) {
            note("  processor time of the client", "us a job", (cpu() - client) / put * 1e6, 0);
            note("  processor time of the server", "us a job", the_server / put * 1e6,
                 bare_cpu * 1e6);
            note("  memory of the server", "bytes a job",
                 (info_of("memory", "used_memory:") - memory) / put, 0);
        }
        queue_close(q);
        flush_server();
    }
}

static void run_callers(void)
{
    struct bare b = bare_open(server.socket);
    size_t few = jobs / 20 > 100 ? jobs / 20 : 100;
    double one = (double)few / bare_round_trip(&b, few, PAYLOAD);

    bare_close(&b);
    flush_server();
    note("enqueue, one caller", "jobs/s", callers(1, few, 0), one);
    note("enqueue, one caller, spin_ns 100 us", "jobs/s", callers(1, few, DUE_US(100)), one);
    note("enqueue, 16 callers (bare: one a round trip)", "jobs/s", callers(16, jobs / 2, 0), one);
    note("enqueue, 64 callers (bare: one a round trip)", "jobs/s", callers(64, jobs, 0), one);
}

static void run_async(void)
{
    double bare = bare_rate(bare_put, jobs);

    flush_server();
    due_queue *q = queue_open(DUE_CONFIRM_ASYNC, 0);
    int64_t from = due_now(q) + DUE_S(3600);
    loaded();
    double begin = now();
    for (size_t i = 0; i < jobs; i++) {
        due_spec spec = spec_at(from);
        must(due_enqueue(q, &spec, 0, NULL));
    }
    double submitted = now() - begin;
    must(due_flush(q, DUE_S(60)));
    double took = now() - begin;
    note("enqueue, asynchronous: what the caller sees", "ns a job", submitted / (double)jobs * 1e9,
         0);
    note("enqueue, asynchronous: until confirmed", "jobs/s", (double)jobs / took, bare);
    queue_close(q);
    flush_server();
}

/* ---- Taking out ---- */

static double bare_drop_rate(void)
{
    struct bare b = bare_open(server.socket);
    size_t total = jobs / BATCH * BATCH;

    bare_put(&b, total, BATCH, PAYLOAD);
    double took = bare_drop(&b, total, BATCH);
    bare_close(&b);
    flush_server();
    return (double)total / took;
}

static void *take_share(void *arg)
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
static size_t put_to_wait(due_queue *q, unsigned callers)
{
    int64_t from = due_now(q);
    size_t put = put_batches(q, callers, from, DUE_S(1));

    while (due_now(q) < from + DUE_S(1) + DUE_MS(100))
        nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
    return put;
}

struct removal {
    const char *name;
    unsigned callers;
    bool reserve;
    bool wait; /* for the jobs to come due; else they are overdue when they are put in */
};

static const struct removal removals[] = {
    { "dequeue, batches of 256, put in overdue", 1, false, false },
    { "reserve and ack, the same", 1, true, false },
    { "dequeue, batches of 256, came due", 1, false, true },
    { "reserve and ack, came due", 1, true, true },
    { "dequeue, came due, two callers", 2, false, true },
    { "reserve and ack, came due, two callers", 2, true, true },
    { "dequeue, came due, four callers", 4, false, true },
    { "reserve and ack, came due, four callers", 4, true, true },
};

/* Jobs that are overdue when they are put in, which a heap has to sort; and jobs that came due. */
static void run_removal(void)
{
    double bare = bare_drop_rate();

    for (size_t i = 0; i < sizeof removals / sizeof *removals; i++) {
        const struct removal *r = &removals[i];
        due_queue *q = queue_open(DUE_CONFIRM_SYNC, 0);

        loaded();
        size_t put = r->wait ? put_to_wait(q, r->callers) : put_batches(q, r->callers, 1, HOURS);
        double begin = now();
        share(r->callers, take_share,
              &(struct share){ .q = q, .jobs = put, .reserve = r->reserve });
        note(r->name, "jobs/s", (double)put / (now() - begin), bare);
        queue_close(q);
        flush_server();
    }
}

/* ---- Workers ---- */

#define WORKERS 8
#define AT_ONCE 64

static atomic_size_t acked;
static atomic_size_t wanted; /* jobs that there are */

static void *work(void *arg)
{
    due_queue *q = arg;
    due_job out[AT_ONCE];

    while (atomic_load(&acked) < atomic_load(&wanted)) {
        int n = due_take(q, &(due_take_options){ DUE_TAKE_INIT, .lease_ns = DUE_S(600) }, out,
                         AT_ONCE, DUE_MS(20));

        if (n == DUE_ETIMEDOUT || n == DUE_EINDOUBT)
            continue; /* another has the last ones, or they come with the next call */
        must(n);
        if (due_ack_batch(out, (size_t)n, NULL) != n)
            must(DUE_ESTALE);
        atomic_fetch_add(&acked, (size_t)n);
    }
    return NULL;
}

/* Threads that reserve and ack jobs that came due.  With a limit each attempt is stored before the
 * hand-over. */
static void run_workers(void)
{
    for (int limited = 0; limited < 2; limited++) {
        pthread_t threads[WORKERS];
        due_queue *q = queue_open(DUE_CONFIRM_SYNC, 0);

        loaded();
        if (limited)
            must(due_topic_retry(q, 0, &(due_retry){ .kind = DUE_RETRY_FIXED, .attempts_max = 3 }));
        size_t put = put_to_wait(q, 1);
        atomic_store(&acked, 0);
        atomic_store(&wanted, put);
        double begin = now();
        for (unsigned i = 0; i < WORKERS; i++)
            pthread_create(&threads[i], NULL, work, q);
        for (unsigned i = 0; i < WORKERS; i++)
            pthread_join(threads[i], NULL);
        double took = now() - begin;
        if (atomic_load(&acked) != put)
            must(DUE_ELOST);
        note(limited ? "8 workers, reserve and ack, attempts stored" : "8 workers, reserve and ack",
             "jobs/s", (double)put / took, 0);
        queue_close(q);
        flush_server();
    }
}

static void run_restore(void)
{
    due_queue *q = queue_open(DUE_CONFIRM_SYNC, 0);

    loaded();
    size_t put = put_batches(q, 1, due_now(q) + DUE_S(3600), HOURS);
    queue_close(q);
    struct bare b = bare_open(server.socket);
    double bare = (double)put / bare_read(&b, "bench", put, 1000);
    bare_close(&b);
    double begin = now();
    q = queue_open(DUE_CONFIRM_SYNC, 0);
    double opened = now() - begin;
    due_spec spec = spec_at(due_now(q) + DUE_S(3600));
    must(due_enqueue(q, &spec, 0, NULL));
    double accepted = now() - begin;
    loaded();
    note("restore", "jobs/s", (double)put / (now() - begin), bare);
    note("open, until the call returns", "ms", opened * 1e3, 0);
    note("open, until a job is confirmed", "ms", accepted * 1e3, 0);
    queue_close(q);
    flush_server();
}

struct part {
    const char *name;
    void (*run)(void);
};

static const struct part parts[] = { { "batches", run_batches }, { "callers", run_callers },
                                     { "async", run_async },     { "removal", run_removal },
                                     { "workers", run_workers }, { "restore", run_restore } };

static void run_round(const char *only)
{
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (only == NULL || strcmp(only, parts[i].name) == 0)
            parts[i].run();
    }
}

int main(int argc, char **argv)
{
    const char *only = NULL;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--tiny") == 0) {
            jobs = 2560;
            rounds = 1;
        } else if (strcmp(argv[i], "--jobs") == 0 && i + 1 < argc) {
            jobs = (size_t)strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            rounds = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            only = argv[++i];
        } else {
            fprintf(stderr, "usage: bench_store [--jobs N] [--rounds N] [--tiny] [--only PART]\n");
            return 2;
        }
    }
    if (jobs < BATCH || rounds < 1 || rounds > ROUNDS)
        return 2;
    int rc = redis_server_start(&server, (const char *const[]){ "--save", "", NULL });
    if (rc != 0)
        return rc == REDIS_SERVER_MISSING ? 77 : 1;
    for (int i = 0; i < rounds; i++)
        run_round(only);
    redis_server_stop(&server);
    printf("%zu jobs of %d bytes, medians of %d\n\n", jobs, PAYLOAD, rounds);
    print_rows();
    return 0;
}
