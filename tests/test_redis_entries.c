/* test_redis_entries.c - jobs whose times and counts are not their record's: what that costs the
 * server, and that it is read back. */
#include "redis_store_lab.h"

enum { JOBS = 40 };

static due_change changes[JOBS];

static long calls_of(const char *command)
{
    char line[64];
    const char *at;

    snprintf(line, sizeof line, "cmdstat_%s:calls=", command);
    at = strstr(ASK("INFO", "commandstats"), line);
    return at != NULL ? strtol(at + strlen(line), NULL, 10) : 0;
}

static void commit_all(due_store *store, uint64_t number)
{
    int rc = store->verbs->commit(store, changes, JOBS, number, soon(LONG_NS));

    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
}

static int count_attempts(void *ctx, const due_record *r)
{
    *(unsigned *)ctx += 1000 + r->attempts;
    return 0;
}

/* A thousand for each job that is shown, and its attempts. */
static unsigned load(due_store *store)
{
    unsigned sum = 0;
    int rc;

    for (int call = 0;
         (rc = store->verbs->load(store, call == 0, 9, count_attempts, &sum, soon(LONG_NS))) == 1;
         call++)
        ;
    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    return sum;
}

static due_store *filled(void)
{
    due_store *store = opened((due_redis_options){ 0 });

    cr_assert_eq(load(store), 0u);
    for (uint64_t i = 0; i < JOBS; i++)
        changes[i] = put(1 + i, DUE_S((int64_t)i));
    commit_all(store, 1);
    return store;
}

/* One more attempt of each. */
static void attempt(due_store *store, uint64_t number, int64_t later_ns)
{
    for (uint64_t i = 0; i < JOBS; i++) {
        changes[i] = move(1 + i, DUE_S((int64_t)i), DUE_S((int64_t)i) + later_ns);
        changes[i].record.attempts = 1;
    }
    commit_all(store, number);
}

REDIS_TEST(redis_entries, many_entries_make_a_table)
{
    due_store *store = filled();

    attempt(store, 2, 0);
    cr_expect_str_eq(ASK("OBJECT", "ENCODING", "due:{q}:a"), "$9\r\nhashtable\r\n");
    cr_expect_eq(load(store), JOBS * 1001u, "the field that makes it one is no job");
    for (uint64_t i = 0; i < JOBS; i++)
        changes[i] = drop(1 + i, DUE_S((int64_t)i));
    commit_all(store, 3);
    cr_expect_str_eq(ASK("HKEYS", "due:{q}:a"), "*1\r\n$5\r\ntable\r\n");
    cr_expect_eq(load(store), 0u);
    finish(store);
}

REDIS_TEST(redis_entries, a_few_entries_stay_compact)
{
    due_store *store = filled();
    due_change c = move(1, 0, 0);

    c.record.attempts = 1;
    cr_assert_eq(store->verbs->commit(store, &c, 1, 2, soon(LONG_NS)), 0);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:a"), ":1\r\n");
    finish(store);
}

REDIS_TEST(redis_entries, an_attempt_does_not_touch_the_topic)
{
    due_store *store = filled();
    long before = calls_of("zadd");

    cr_assert_eq(before, 1);
    attempt(store, 2, 0);
    cr_expect_eq(calls_of("zadd"), before);
    cr_expect_eq(load(store), JOBS * 1001u);
    attempt(store, 3, 999); /* less than a microsecond, but scores are rounded up */
    cr_expect_eq(calls_of("zadd"), before + 1);
    finish(store);
}

/* What the zset has may be other then. */
REDIS_TEST(redis_entries, after_a_loss_an_attempt_says_where_the_job_stands)
{
    due_store *store = filled();
    long before = calls_of("zadd");

    inside(store)->lossy = true;
    attempt(store, 2, 0);
    cr_expect_eq(calls_of("zadd"), before + 1);
    finish(store);
}

/* Nor is it known of jobs that were not read yet. */
REDIS_TEST(redis_entries, before_all_was_read_an_attempt_says_where_the_job_stands)
{
    due_store *store = filled();
    uint64_t writer = info.writer;

    finish(store);
    store = opened((due_redis_options){ 0 });
    info.writer = writer; /* the jobs are those of the first opening */
    long before = calls_of("zadd");
    attempt(store, 1, 0);
    cr_expect_eq(calls_of("zadd"), before + 1);
    finish(store);
}
