/* redis_store_lab.h - what the tests of the Redis store share: a server of their own, jobs and
 * batches.
 */
#ifndef REDIS_STORE_LAB_H
#define REDIS_STORE_LAB_H

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "due/redis.h"
#include "lab/redis/redis_server.h"
#include "redis/write/write.h"

#define LONG_NS DUE_S(20)

static struct redis_server server; /* the test's own */

static inline void serve(const char *const *options)
{
    int rc = redis_server_start(&server, options);

    if (rc == REDIS_SERVER_MISSING)
        cr_skip_test("redis-server is not installed");
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

#define ASK(...) ask((const char *const[]){ __VA_ARGS__, NULL })

static inline const char *ask(const char *const *words)
{
    static char answer[65536];

    cr_assert_geq(redis_server_ask(&server, words, answer, sizeof answer), 0);
    return answer;
}

static inline int64_t soon(int64_t ns)
{
    return due__mono_ns() + ns;
}

static inline due_store *make(due_redis_options o, const char *url)
{
    due_store *store = NULL;
    due_error error;

    o.size = sizeof(due_redis_options);
    o.backoff_min_ns = DUE_MS(5);
    cr_assert_eq(due_redis_open(&store, url != NULL ? url : server.url, &o, &error), 0, "%s",
                 error.text);
    return store;
}

static char logged[1024] __attribute__((unused));

static inline void keep_log(void *queue, enum due_log_level level, const char *text)
{
    (void)queue;
    (void)level;
    snprintf(logged, sizeof logged, "%s", text);
}

static inline int take(due_store *store, int64_t wait_ns, struct due_store_info *info,
                       due_error *error)
{
    struct due_store_open how = { .name = "q", .until_ns = soon(wait_ns), .log = keep_log };

    return store->verbs->open(store, &how, info, error);
}

static struct due_store_info info; /* of the last opening */
static due_error error;            /* */

static inline due_store *opened(due_redis_options o)
{
    due_store *store = make(o, NULL);

    cr_assert_eq(take(store, LONG_NS, &info, &error), 0, "%s", error.text);
    return store;
}

static inline void finish(due_store *store)
{
    store->verbs->close(store, soon(LONG_NS));
    due_redis_free(store);
}

static inline due_id id_of(int priority, uint64_t sequence)
{
    due_id id = { { 0 } };

    id.byte[0] = (unsigned char)(255 - priority);
    for (int i = 0; i < 6; i++)
        id.byte[6 - i] = (unsigned char)(info.writer >> (8 * i));
    for (int i = 0; i < 7; i++)
        id.byte[13 - i] = (unsigned char)(sequence >> (8 * i));
    return id;
}

static inline due_change put(uint64_t sequence, int64_t when)
{
    return (due_change){ .kind = DUE_CHANGE_PUT,
                         .record = { .id = id_of(0, sequence),
                                     .deadline_ns = when,
                                     .until_ns = when,
                                     .topic = "",
                                     .data = "x",
                                     .len = 1 } };
}

static inline due_change dead(uint64_t sequence, int64_t died_ns)
{
    due_change c = put(sequence, 5);

    c.record.cause = DUE_CAUSE_BURIED;
    c.record.died_ns = died_ns;
    return c;
}

static inline due_change move(uint64_t sequence, int64_t was, int64_t when)
{
    due_change c = put(sequence, when);

    c.kind = DUE_CHANGE_MOVE;
    c.was_ns = was;
    c.record.data = NULL;
    c.record.len = 0;
    return c;
}

static inline due_change drop(uint64_t sequence, int64_t was)
{
    due_change c = move(sequence, was, 0);

    c.kind = DUE_CHANGE_DROP;
    return c;
}

static inline int commit(due_store *store, due_change *changes, size_t n, uint64_t number)
{
    return store->verbs->commit(store, changes, n, number, soon(LONG_NS));
}

static inline int commit_one(due_store *store, due_change change, uint64_t number)
{
    return commit(store, &change, 1, number);
}

/* n jobs of these sequences, at @first_ns and every @step_ns; batches from @number on. */
static inline uint64_t fill(due_store *store, uint64_t n, int64_t first_ns, int64_t step_ns,
                            uint64_t number)
{
    due_change changes[256];

    for (uint64_t i = 0; i < n;) {
        size_t k = 0;
        for (; k < 256 && i < n; k++, i++)
            changes[k] = put(i + 1, first_ns + (int64_t)i * step_ns);
        cr_assert_eq(commit(store, changes, k, number++), 0);
    }
    return number;
}

struct seen {
    size_t n;
    due_record record;
    char topic[256];
    unsigned char *data;
    unsigned *times; /* by sequence, if not NULL */
    int64_t until_ns;
    int answer;
};

static inline uint64_t sequence_of(due_id id)
{
    uint64_t sequence = 0;

    for (int i = 7; i < 14; i++)
        sequence = sequence << 8 | id.byte[i];
    return sequence;
}

static inline int see(void *ctx, const due_record *record)
{
    struct seen *seen = ctx;

    if (seen->answer != 0)
        return seen->answer;
    seen->n++;
    seen->record = *record;
    snprintf(seen->topic, sizeof seen->topic, "%s", record->topic);
    free(seen->data);
    seen->data = malloc(record->len + 1);
    if (record->len > 0)
        memcpy(seen->data, record->data, record->len);
    if (seen->times != NULL)
        seen->times[sequence_of(record->id)]++;
    return 0;
}

static inline int load_all(due_store *store, size_t max, struct seen *seen)
{
    int rc = store->verbs->load(store, 1, max, see, seen, soon(LONG_NS));

    while (rc == 1)
        rc = store->verbs->load(store, 0, max, see, seen, soon(LONG_NS));
    return rc;
}

/* Pages of scans that the server was asked for. */
static inline long scans(void)
{
    const char *stats = strstr(ASK("INFO", "commandstats"), "cmdstat_hscan:calls=");

    return stats != NULL ? strtol(stats + strlen("cmdstat_hscan:calls="), NULL, 10) : 0;
}

static inline struct due__redis *inside(due_store *store)
{
    return (struct due__redis *)store;
}

static inline struct due_store_stats stats_of(due_store *store)
{
    struct due_store_stats stats;

    store->verbs->stats(store, &stats);
    return stats;
}

static inline void nap(int64_t ns)
{
    struct timespec t = { .tv_sec = ns / DUE_S(1), .tv_nsec = ns % DUE_S(1) };

    nanosleep(&t, NULL);
}

#define REDIS_TEST(name, promise) \
    Test(name, promise, .init = serve_plainly, .fini = stop, .timeout = 200)

#endif
