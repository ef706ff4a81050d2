/* stored_redis_lab.h - what the tests of queues stored in Redis share: a server of their own. */
#ifndef STORED_REDIS_LAB_H
#define STORED_REDIS_LAB_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "due/redis.h"
#include "lab/lab.h"
#include "lab/redis/redis_server.h"

static struct redis_server server; /* the test's own */

static inline void serve(const char *const *options)
{
    int rc = redis_server_start(&server, options);

    if (rc == REDIS_SERVER_MISSING)
        cr_skip("redis-server is not installed");
    cr_assert_eq(rc, 0);
}

static inline void serve_plainly(void)
{
    serve(NULL);
}

static inline void stop(void)
{
    redis_server_stop(&server);
}

#define STORED_TEST(suite, name) \
    Test(suite, name, .init = serve_plainly, .fini = stop, .timeout = 100)

#define ASK(...) ask((const char *const[]){ __VA_ARGS__, NULL })

static inline const char *ask(const char *const *words)
{
    static char answers[4][16384];
    static unsigned turn;
    char *answer = answers[turn++ % 4];

    cr_assert_geq(redis_server_ask(&server, words, answer, sizeof answers[0]), 0);
    return answer;
}

static inline due_store *store_at(const char *url, due_redis_options o)
{
    due_store *store = NULL;
    due_error error;

    o.size = sizeof(due_redis_options);
    o.backoff_min_ns = DUE_MS(1);
    o.backoff_max_ns = DUE_MS(20);
    int rc = due_redis_open(&store, url, &o, &error);
    cr_assert_eq(rc, 0, "%s", error.text);
    return store;
}

/* A queue that has read everything. */
static inline struct lab open_with(struct lab_options o, due_redis_options r)
{
    o.with.size = sizeof(due_options);
    if (o.with.store == NULL)
        o.with.store = store_at(server.url, r);
    struct lab lab = lab_open_with(&o);
    while (lab_stats(&lab).loading)
        crew_sleep(DUE_MS(1));
    return lab;
}

#define OPEN(...)                                                   \
    open_with((struct lab_options){ .kernel = false, __VA_ARGS__ }, \
              (due_redis_options){ .size = 0 })

/* What a log has told: a loss, and its end. */
struct lines {
    atomic_uint lost;
    atomic_uint whole;
};

static inline void count_lines(void *ctx, enum due_log_level level, const char *text)
{
    struct lines *lines = ctx;

    (void)level;
    if (strstr(text, "lost") != NULL)
        atomic_fetch_add(&lines->lost, 1);
    if (strstr(text, "has everything again") != NULL)
        atomic_fetch_add(&lines->whole, 1);
}

static inline void forget(void *ctx, const due_job *job)
{
    (void)ctx;
    (void)job;
}

/* Jobs that carry their number, due from 10 to 59. */
static inline void put_many(struct lab *lab, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        due_spec spec = { DUE_SPEC_INIT, .at_ns = 10 + i * 7 % 50, .data = &i, .len = sizeof i };
        cr_assert_eq(due_enqueue(lab->q, &spec, 0, NULL), 0);
    }
}

#endif
