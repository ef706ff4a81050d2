/* test_redis_entries.c - jobs whose times and counts are not their record's: what that costs the
 * server, and that it is read back. */
#include "lab/redis/redis_store_lab.h"

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

/* What job 1 was changed to, and its removal from there. */
static void change_and_removal(bool dies, due_change *change, due_change *removal)
{
    *change = move(1, 5, 9);
    change->record.attempts = 1;
    if (dies) {
        change->kind = DUE_CHANGE_BURY;
        change->record.cause = DUE_CAUSE_BURIED;
        change->record.died_ns = 7;
    }
    *removal = drop(1, dies ? 7 : 9);
    removal->was_dead = dies;
}

static void expect_nothing_left(void)
{
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:j", "due:{q}:a", "due:{q}:t:", "due:{q}:dead"),
                     ":0\r\n");
}

/* It landed, and its answer was never heard. */
REDIS_TEST(redis_entries, of_a_batch_in_doubt_are_removed_with_their_jobs)
{
    for (int dies = 0; dies < 2; dies++) {
        due_store *store = opened((due_redis_options){ 0 });
        due_change change;
        due_change removal;

        change_and_removal(dies, &change, &removal);
        cr_assert_eq(commit_one(store, put(1, 5), 1), 0);
        redis_server_freeze(&server);
        cr_expect_eq(store->verbs->commit(store, &change, 1, 2, soon(DUE_MS(20))), DUE_EINDOUBT);
        due__link_down(inside(store)->link);
        redis_server_thaw(&server);
        cr_expect_eq(commit_one(store, change, 2), 0);
        cr_expect_eq(stats_of(store).resent, 0u, "this proves nothing");
        cr_expect_eq(commit_one(store, removal, 3), 0);
        expect_nothing_left();
        finish(store);
    }
}

/* The removal is formatted while the batch before it is in the air. */
REDIS_TEST(redis_entries, of_a_batch_in_the_air_are_removed_with_their_jobs)
{
    for (int dies = 0; dies < 2; dies++) {
        due_store *store = opened((due_redis_options){ 0 });
        due_change change;
        due_change removal;

        change_and_removal(dies, &change, &removal);
        cr_assert_eq(commit_one(store, put(1, 5), 1), 0);
        cr_assert_eq(store->verbs->prepare(store, &change, 1, 2), 0);
        cr_assert_eq(store->verbs->send(store, 2, soon(LONG_NS)), 0);
        cr_assert_eq(store->verbs->prepare(store, &removal, 1, 3), 0);
        cr_expect_eq(commit_one(store, change, 2), 0);
        cr_assert_eq(store->verbs->send(store, 3, soon(LONG_NS)), 0);
        cr_expect_eq(commit_one(store, removal, 3), 0);
        expect_nothing_left();
        finish(store);
    }
}
