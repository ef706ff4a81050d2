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
#include "common.h"
#include "due/redis.h"
#include "lab/redis/redis_server.h"

static struct redis_server server;

/* ---- Helpers ---- */

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

void bench_store_empty(void)
{
    char answer[64];

    ask((const char *const[]){ "FLUSHALL", NULL }, answer, sizeof answer);
}

due_store *bench_store_new(int64_t spin_ns)
{
    due_redis_options redis = { DUE_REDIS_OPTIONS_INIT, .spin_ns = spin_ns };
    due_error error;
    due_store *store;

    must(due_redis_open(&store, server.url, &redis, &error));
    return store;
}

/* ---- Writing ---- */

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

    bench_store_empty();
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
        bench_store_empty();
    }
}

static void run_callers(void)
{
    struct bare b = bare_open(server.socket);
    size_t few = jobs / 20 > 100 ? jobs / 20 : 100;
    double one = (double)few / bare_round_trip(&b, few, PAYLOAD);

    bare_close(&b);
    bench_store_empty();
    note("enqueue, one caller", "jobs/s", callers(1, few, 0), one);
    note("enqueue, one caller, spin_ns 100 us", "jobs/s", callers(1, few, DUE_US(100)), one);
    note("enqueue, 16 callers (bare: one a round trip)", "jobs/s", callers(16, jobs / 2, 0), one);
    note("enqueue, 64 callers (bare: one a round trip)", "jobs/s", callers(64, jobs, 0), one);
}

static void run_async(void)
{
    double bare = bare_rate(bare_put, jobs);

    bench_store_empty();
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
    bench_store_empty();
}

/* ---- Taking out ---- */

static double bare_drop_rate(void)
{
    struct bare b = bare_open(server.socket);
    size_t total = jobs / BATCH * BATCH;

    bare_put(&b, total, BATCH, PAYLOAD);
    double took = bare_drop(&b, total, BATCH);
    bare_close(&b);
    bench_store_empty();
    return (double)total / took;
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
        bench_store_empty();
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
        bench_store_empty();
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
    bench_store_empty();
}

static const struct part parts[] = { { "batches", run_batches }, { "callers", run_callers },
                                     { "async", run_async },     { "removal", run_removal },
                                     { "workers", run_workers }, { "restore", run_restore } };

int main(int argc, char **argv)
{
    const char *only = NULL;

    if (!arguments(argc, argv, &only))
        return 2;
    int rc = redis_server_start(&server, (const char *const[]){ "--save", "", NULL });
    if (rc != 0)
        return rc == REDIS_SERVER_MISSING ? 77 : 1;
    run_parts(parts, sizeof parts / sizeof *parts, only);
    redis_server_stop(&server);
    print_rows();
    return 0;
}
