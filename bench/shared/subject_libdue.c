/* subject_libdue.c - a shared queue of libdue on a private redis-server without a log: the whole
 * queue, by the calls that its users have.
 *
 * The threads of a process share one queue.  A batch is taken by one call and acked by one, and as
 * much is what one claim may take ahead; without batches nothing is taken ahead.
 */
#include <stdlib.h>

#include "due/due.h"
#include "due/metrics.h"
#include "due/redis.h"
#include "lab/redis/redis_server.h"
#include "shared_cell.h"

static struct redis_server server;

struct libdue {
    due_queue *q;
    const struct shared_options *o;
    struct taken {
        due_job jobs[SHARED_BATCH];
        size_t n;
    } taken[SHARED_CREW];
};

static void must(int rc, const char *what)
{
    if (rc < 0)
        shared_die(SHARED_WRONG, "%s: %s", what, due_error_name(rc));
}

static void libdue_stop(void)
{
    redis_server_stop(&server);
}

static void libdue_start(void)
{
    int rc = redis_server_start(&server, NULL);

    if (rc != 0)
        shared_die(rc == REDIS_SERVER_MISSING ? SHARED_CANNOT : SHARED_WRONG, "%s",
                   rc == REDIS_SERVER_MISSING ? "redis-server is not installed"
                                              : "redis-server does not start");
}

static pid_t libdue_server(void)
{
    return server.pid;
}

static void *libdue_open(const struct shared_options *o, unsigned threads, bool puts)
{
    due_options how = { DUE_OPTIONS_INIT, .name = "bench", .share = DUE_SHARED };
    struct libdue *c = calloc(1, sizeof *c);
    due_error error;

    (void)threads;
    if (c == NULL)
        shared_die(SHARED_WRONG, "no memory");
    c->o = o;
    how.prefetch_max = puts || o->batch == 0 ? 1 : o->batch;
    how.store_timeout_ns = DUE_S(30);
    if (due_redis_open(&how.store, server.url, NULL, &error) != 0 ||
        due_open(&c->q, &how, &error) != 0)
        shared_die(SHARED_WRONG, "%s", error.text);
    return c;
}

static void libdue_close(void *client)
{
    struct libdue *c = client;

    must(due_close(c->q, DUE_CLOSE_DISCARD, DUE_S(10)), "due_close");
    must(due_free(c->q), "due_free");
    free(c);
}

static void libdue_put(void *client, unsigned thread, const struct shared_job *jobs, size_t n)
{
    static _Thread_local unsigned char bytes[SHARED_BATCH][SHARED_PAYLOAD];
    struct libdue *c = client;
    due_spec specs[SHARED_BATCH];

    (void)thread;
    for (size_t i = 0; i < n; i++) {
        specs[i] = (due_spec){ DUE_SPEC_INIT, .delay_ns = jobs[i].delay_ns, .data = bytes[i] };
        specs[i].len = c->o->payload;
        shared_payload(c->o, jobs[i].number, bytes[i]);
    }
    if (n == 1) {
        must(due_enqueue(c->q, specs, DUE_S(30), NULL), "due_enqueue");
        return;
    }
    int put = due_enqueue_batch(c->q, specs, n, DUE_S(30), NULL);
    must(put, "due_enqueue_batch");
    if ((size_t)put != n)
        shared_die(SHARED_WRONG, "%d jobs of %zu were put in", put, n);
}

static size_t libdue_take(void *client, unsigned thread, struct shared_job *jobs)
{
    struct libdue *c = client;
    struct taken *t = &c->taken[thread];
    due_take_options how = { DUE_TAKE_INIT, .lease_ns = DUE_S(60) };
    int n = due_take(c->q, &how, t->jobs, c->o->batch > 0 ? c->o->batch : 1, DUE_MS(200));

    if (n == DUE_ETIMEDOUT || n == DUE_EAGAIN)
        return 0;
    must(n, "due_take");
    t->n = (size_t)n;
    for (size_t i = 0; i < t->n; i++)
        jobs[i] = shared_read(c->o, t->jobs[i].data, t->jobs[i].len);
    return t->n;
}

static void libdue_done(void *client, unsigned thread)
{
    struct libdue *c = client;
    struct taken *t = &c->taken[thread];
    int results[SHARED_BATCH];

    must(due_ack_batch(t->jobs, t->n, results), "due_ack_batch");
    for (size_t i = 0; i < t->n; i++)
        must(results[i], "due_ack_batch");
}

static struct shared_count libdue_count(void *client)
{
    struct libdue *c = client;
    struct due_queue_census census;

    must(due_census(c->q, DUE_ALL_TOPICS, &census, DUE_S(10)), "due_census");
    return (struct shared_count){ census.delayed, census.ready + census.leased };
}

const struct shared_subject shared_libdue = { .name = "libdue-shared",
                                              .about = "a shared queue of libdue on Redis",
                                              .start = libdue_start,
                                              .stop = libdue_stop,
                                              .server = libdue_server,
                                              .open = libdue_open,
                                              .close = libdue_close,
                                              .put = libdue_put,
                                              .take = libdue_take,
                                              .done = libdue_done,
                                              .count = libdue_count };
