/* test_redis_load.c - reading everything back. */
#include "lab/redis/redis_store_lab.h"

static unsigned shown_ahead[2];

static void load_count(uint64_t n, int64_t step_ns, size_t max)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { .times = calloc(n + 2, sizeof(unsigned)) };

    fill(store, n, 1000, step_ns, 1);
    cr_expect_eq(load_all(store, max, &seen), 0);
    cr_expect_eq(seen.n, n);
    for (uint64_t i = 1; i <= n; i++)
        cr_expect_eq(seen.times[i], 1u);
    cr_expect_eq(store->verbs->load(store, 0, max, see, &seen, soon(LONG_NS)), 0);
    cr_expect_eq(seen.n, n);
    free(seen.times);
    free(seen.data);
    finish(store);
    ASK("FLUSHALL");
}

REDIS_TEST(redis_load, shows_each_job_once)
{
    uint64_t sizes[] = { 0, 1, 255, 256, 257, 5000 };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        load_count(sizes[i], 0, 256);
        load_count(sizes[i], 700, 1000);
        load_count(sizes[i] % 600, 700, 1);
        load_count(sizes[i], 1500, 0);
    }
}

/* Earlier first within a topic, one topic after another. */
static int see_in_order(void *ctx, const due_record *record)
{
    struct seen *seen = ctx;

    if (seen->n == 0 || strcmp(seen->topic, record->topic) != 0)
        seen->until_ns = INT64_MIN;
    cr_expect_geq(record->until_ns, seen->until_ns);
    seen->until_ns = record->until_ns;
    return see(ctx, record);
}

REDIS_TEST(redis_load, goes_by_topic_and_time)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { 0 };
    char topic[32];
    int rc = 1;

    for (uint64_t i = 1; i <= 300; i++) {
        due_change c = put(i, (int64_t)((i * 7919) % 1009) * 1000);
        snprintf(topic, sizeof topic, "topic %d", (int)(i % 20));
        c.record.topic = topic;
        cr_assert_eq(commit_one(store, c, i), 0);
    }
    for (int call = 0; rc == 1; call++)
        rc = store->verbs->load(store, call == 0, 7, see_in_order, &seen, soon(LONG_NS));
    cr_expect_eq(rc, 0);
    cr_expect_eq(seen.n, 300u);
    free(seen.data);
    finish(store);
}

/* Every page is followed by a batch that removes what was shown, moves some of what was shown, and
 * adds jobs before and behind: all others are shown, each once. */
static void load_under_fire(uint64_t n, int64_t step_ns, size_t max, bool all)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { .times = calloc(4 * n + 2, sizeof(unsigned)) };
    uint64_t number = fill(store, n, 1000000, step_ns, 1);
    char *gone = calloc(4 * n + 2, 1);
    uint64_t fresh = n;
    int rc = 1;

    for (int call = 0; rc == 1; call++) {
        rc = store->verbs->load(store, call == 0, max, see, &seen, soon(LONG_NS));
        cr_assert_geq(rc, 0);
        due_change changes[256];
        size_t k = 0;
        for (uint64_t i = 1; i <= n && k < 250; i++) {
            if (seen.times[i] > 0 && !gone[i] && (all || (i * 2654435761u) % 3 == 0)) {
                changes[k++] = drop(i, 1000000 + (int64_t)(i - 1) * step_ns);
                gone[i] = 1;
            }
        }
        if (fresh + 2 < 4 * n) {
            changes[k++] = put(++fresh, 5);
            changes[k++] = put(++fresh, INT64_MAX - 1);
        }
        if (k > 0)
            cr_assert_eq(commit(store, changes, k, number++), 0);
    }
    for (uint64_t i = 1; i <= n; i++)
        cr_expect_eq(seen.times[i], 1u, "%d: %u", (int)i, seen.times[i]);
    free(seen.times);
    free(seen.data);
    free(gone);
    finish(store);
    ASK("FLUSHALL");
}

REDIS_TEST(redis_load, is_exact_while_jobs_come_and_go)
{
    load_under_fire(2000, 0, 256, true);
    load_under_fire(2000, 0, 256, false);
    load_under_fire(2000, 700, 100, true);
    load_under_fire(2000, 1700, 1000, false);
    load_under_fire(300, 1, 1, false);
    load_under_fire(300, 0, 3, true);
}

REDIS_TEST(redis_load, is_exact_for_a_hundred_thousand)
{
    load_under_fire(100000, 0, 256, true);
}

REDIS_TEST(redis_load, shows_a_job_that_was_moved_behind_it)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { .times = calloc(2000, sizeof(unsigned)) };
    uint64_t number = fill(store, 1000, 1000000, 1000, 1);

    cr_expect_eq(store->verbs->load(store, 1, 100, see, &seen, soon(LONG_NS)), 1);
    cr_assert_eq(commit_one(store, move(1000, 1000000 + 999 * 1000, 5), number++), 0);
    cr_assert_eq(commit_one(store, move(1, 1000000, 900000000), number++), 0);
    while (store->verbs->load(store, 0, 100, see, &seen, soon(LONG_NS)) == 1)
        continue;
    for (uint64_t i = 2; i <= 1000; i++)
        cr_expect_eq(seen.times[i], 1u);
    cr_expect_eq(seen.times[1], 2u);
    free(seen.times);
    free(seen.data);
    finish(store);
}

/* Also of those that are shown at the end, after all pages. */
REDIS_TEST(redis_load, shows_about_as_many_a_call_as_was_asked_for)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { .times = calloc(2000, sizeof(unsigned)) };
    uint64_t number = fill(store, 1000, 1000000, 1000, 1);
    size_t before;
    int rc;

    cr_expect_eq(store->verbs->load(store, 1, 100, see, &seen, soon(LONG_NS)), 1);
    for (uint64_t i = 991; i <= 1000; i++)
        cr_assert_eq(commit_one(store, move(i, 1000000 + (int64_t)(i - 1) * 1000, 5), number++), 0);
    do {
        before = seen.n;
        rc = store->verbs->load(store, 0, 1, see, &seen, soon(LONG_NS));
        cr_expect_leq(seen.n - before, before < 990 ? 990u : 1u);
    } while (rc == 1);
    cr_expect_eq(rc, 0);
    for (uint64_t i = 1; i <= 1000; i++)
        cr_expect_eq(seen.times[i], 1u, "%d: %u", (int)i, seen.times[i]);
    free(seen.times);
    free(seen.data);
    finish(store);
}

/* Whether answers were on their way while a job was shown. */
static int see_ahead(void *ctx, const due_record *record)
{
    struct due__redis *s = ctx;

    (void)record;
    shown_ahead[s->air.kind == DUE__FLIGHT_PAGE]++;
    return 0;
}

/* But not what a batch that came meanwhile has made old. */
REDIS_TEST(redis_load, asks_for_the_next_page_before_it_shows_one)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct due__redis *s = inside(store);
    uint64_t number = fill(store, 3000, 1000000, 1000, 1);

    cr_expect_eq(store->verbs->load(store, 1, 0, see_ahead, s, soon(LONG_NS)), 0);
    cr_expect_gt(shown_ahead[true], 1000u);
    cr_expect_gt(shown_ahead[false], 0u, "behind the last page there is none");
    cr_expect_eq(shown_ahead[true] + shown_ahead[false], 3000u);
    cr_assert_eq(store->verbs->load(store, 1, 1, see_ahead, s, soon(LONG_NS)), 1);
    memset(shown_ahead, 0, sizeof shown_ahead);
    for (int rc = 1; rc == 1; number++) {
        cr_assert_eq(commit_one(store, put(4000 + number, 5), number), 0);
        rc = store->verbs->load(store, 0, 1, see_ahead, s, soon(LONG_NS));
    }
    cr_expect_eq(shown_ahead[true], 0u);
    finish(store);
}

/* Sees the first of the jobs that were moved: then the server loses everything. */
struct losing {
    struct seen seen;
    due_store *store;
};

static int see_and_lose(void *ctx, const due_record *record)
{
    struct losing *losing = ctx;

    if (record->until_ns == 5 && losing->store != NULL) {
        ASK("FLUSHALL");
        due__link_down(inside(losing->store)->link);
        losing->store = NULL;
    }
    return see(&losing->seen, record);
}

/* It is noticed while the next of them is asked for. */
REDIS_TEST(redis_load, is_given_up_when_the_server_loses_everything_at_its_end)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct losing losing = { .store = store };
    uint64_t number = fill(store, 100, 1000000, 1000, 1);

    cr_expect_eq(store->verbs->load(store, 1, 10, see_and_lose, &losing, soon(LONG_NS)), 1);
    for (uint64_t i = 99; i <= 100; i++)
        cr_assert_eq(commit_one(store, move(i, 1000000 + (int64_t)(i - 1) * 1000, 5), number++), 0);
    cr_expect_eq(store->verbs->load(store, 0, 0, see_and_lose, &losing, soon(LONG_NS)), DUE_ELOST);
    cr_expect_null(losing.store);
    cr_expect_eq(commit_one(store, put(101, 5), number++), 0);
    cr_expect_eq(store->verbs->load(store, 0, 0, see, &losing.seen, soon(LONG_NS)), 0);
    cr_expect_eq(losing.seen.n, 100u, "99 until it was lost, and the one put since");
    free(losing.seen.data);
    finish(store);
}

/* All of one deadline: the order of their ids says what has been read, and what not. */
REDIS_TEST(redis_load, is_exact_among_jobs_of_one_time)
{
    enum { TIES = 60 };

    for (int way = 0; way < 3; way++) {
        due_store *store = opened((due_redis_options){ 0 });
        unsigned times[2 * TIES + 1] = { 0 };
        struct seen seen = { .times = times };
        uint64_t writer = info.writer;
        uint64_t number = 1;

        for (uint64_t i = 1; i < TIES; i++)
            cr_assert_eq(commit_one(store, put(2 * i, 5000), number++), 0);
        finish(store);
        store = opened((due_redis_options){ 0 });
        info.writer = writer;
        cr_assert_eq(store->verbs->load(store, 1, 8, see, &seen, soon(LONG_NS)), 1);
        uint64_t read = seen.n;
        cr_assert_lt(read, 20u);
        number = 1;
        for (uint64_t i = 0; i < 8; i++) { /* around what was read, behind it, or ahead */
            uint64_t at = way == 0 ? 2 * i + 1 : 2 * (read + 2 + i) + 1;
            cr_assert_eq(commit_one(store, way < 2 ? put(at, 5000) : drop(at - 1, 5000), number++),
                         0);
        }
        int rc;
        while ((rc = store->verbs->load(store, 0, 8, see, &seen, soon(LONG_NS))) == 1)
            ;
        cr_expect_eq(rc, 0);
        for (uint64_t i = 1; i < TIES; i++) {
            bool dropped = way == 2 && i >= read + 2 && i < read + 10;
            cr_expect_eq(times[2 * i], dropped ? 0u : 1u, "way %d: %d, %u times", way, (int)i,
                         times[2 * i]);
        }
        if (way == 1) {
            for (uint64_t i = read + 2; i < read + 10; i++)
                cr_expect_eq(times[2 * i + 1], 1u, "%d, %u times", (int)i, times[2 * i + 1]);
        }
        free(seen.data);
        finish(store);
        ASK("FLUSHALL");
    }
}

/* What somebody else removes makes the rank wrong; it is noticed. */
REDIS_TEST(redis_load, mends_a_rank_that_is_too_high)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { .times = calloc(2000, sizeof(unsigned)) };
    uint64_t number = fill(store, 1000, 1000000, 1000, 1);

    cr_expect_eq(store->verbs->load(store, 1, 300, see, &seen, soon(LONG_NS)), 1);
    ASK("ZREMRANGEBYRANK", "due:{q}:t:", "0", "99");
    cr_assert_eq(commit_one(store, put(1500, INT64_MAX - 1), number++), 0);
    while (store->verbs->load(store, 0, 100, see, &seen, soon(LONG_NS)) == 1)
        continue;
    for (uint64_t i = 1; i <= 1000; i++)
        cr_expect_geq(seen.times[i], 1u);
    free(seen.times);
    free(seen.data);
    finish(store);
}

REDIS_TEST(redis_load, goes_on_after_a_visit_that_failed_and_a_lost_connection)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { .times = calloc(2000, sizeof(unsigned)) };
    int rc = 1;

    fill(store, 1000, 1000000, 0, 1);
    for (int call = 0; rc == 1 || rc == DUE_ENOMEM; call++) {
        seen.answer = call % 3 == 1 ? DUE_ENOMEM : 0;
        rc = store->verbs->load(store, call == 0, 100, see, &seen, soon(LONG_NS));
        if (call % 4 == 3)
            due__link_down(inside(store)->link);
    }
    cr_expect_eq(rc, 0);
    for (uint64_t i = 1; i <= 1000; i++)
        cr_expect_eq(seen.times[i], 1u);
    free(seen.times);
    free(seen.data);
    finish(store);
}

static void serve_durably(void)
{
    serve((const char *const[]){ "--appendonly", "yes", "--appendfsync", "always", NULL });
}

/* Its owner was killed, and the server with it. */
static due_store *opened_after_both_died(due_store *store)
{
    redis_server_kill(&server);
    due_redis_free(store);
    cr_assert_eq(redis_server_run(&server), 0);
    ASK("DEL", "due:{q}:owner"); /* it was this process */
    store = opened((due_redis_options){ 0 });
    cr_assert(info.put_again);
    return store;
}

/* Most places of the table are empty, so some pages are too: the call is over all the same. */
Test(redis_load, asks_for_one_page_of_a_scan_a_call, .init = serve_durably, .fini = stop,
     .timeout = 60)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { .times = calloc(1001, sizeof(unsigned)) };
    uint64_t number = fill(store, 1000, 5000, 0, 1);
    long pages = 0;
    int rc = 1;

    for (uint64_t i = 1; i <= 850;) {
        due_change changes[170];
        size_t n = 0;

        for (; n < 170; n++, i++)
            changes[n] = drop(i, 5000);
        cr_assert_eq(commit(store, changes, n, number++), 0);
    }
    store = opened_after_both_died(store);
    for (int call = 0; rc == 1; call++) {
        long before = scans();

        rc = store->verbs->load(store, call == 0, 2, see, &seen, soon(LONG_NS));
        cr_expect_leq(scans() - before, 1);
        pages += scans() - before;
    }
    cr_expect_eq(rc, 0);
    cr_expect_gt(pages, 50);
    for (uint64_t i = 851; i <= 1000; i++)
        cr_expect_geq(seen.times[i], 2u);
    free(seen.times);
    free(seen.data);
    finish(store);
}

REDIS_TEST(redis_load, sets_damaged_records_aside)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { .times = calloc(2000, sizeof(unsigned)) };

    fill(store, 600, 1000000, 1000, 1);
    ASK("ZADD", "due:{q}:t:", "5", "short");
    ASK("ZADD", "due:{q}:t:", "1005", "fourteen bytes");
    ASK("ZADD", "due:{q}:t:", "1600", "fourteen hytes");
    ASK("HSET", "due:{q}:j", "fourteen hytes", "rubbish that is no record");
    cr_expect_eq(load_all(store, 100, &seen), 0);
    cr_expect_eq(seen.n, 600u);
    for (uint64_t i = 1; i <= 600; i++)
        cr_expect_eq(seen.times[i], 1u);
    cr_expect_eq(stats_of(store).quarantined, 3u);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:q"), ":3\r\n");
    cr_expect_str_eq(ASK("HGET", "due:{q}:q", "fourteen hytes"),
                     "$25\r\nrubbish that is no record\r\n");
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":600\r\n");
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:t:"), ":600\r\n");
    cr_expect_not_null(strstr(logged, "3 damaged"), "%s", logged);
    free(seen.times);
    free(seen.data);
    finish(store);
}

/* Of one of each as of many; and a record that is not there is set aside as nothing. */
REDIS_TEST(redis_load, says_so_of_a_single_record_too)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { 0 };

    cr_assert_eq(commit_one(store, put(1, 5000), 1), 0);
    ASK("ZADD", "due:{q}:t:", "5", "fourteen bytes");
    cr_expect_eq(load_all(store, 100, &seen), 0);
    cr_expect_not_null(strstr(logged, "1 damaged records"), "%s", logged);
    cr_expect_str_eq(ASK("HGET", "due:{q}:q", "fourteen bytes"), "$0\r\n\r\n");
    ASK("EVAL",
        "local id = redis.call('ZPOPMIN', KEYS[1])[1] return redis.call('ZADD', KEYS[2], 1, id)",
        "2", "due:{q}:t:", "due:{q}:dead");
    cr_expect_eq(load_all(store, 100, &seen), 0);
    cr_expect_not_null(strstr(logged, "1 jobs stood in the wrong place"), "%s", logged);
    finish(store);
    store = opened((due_redis_options){ 0 }); /* of one's own jobs it is not said */
    ASK("DEL", "due:{q}:topics");
    cr_expect_eq(load_all(store, 100, &seen), 0);
    cr_expect_not_null(strstr(logged, "1 jobs stood in topics that were missing"), "%s", logged);
    ASK("DEL", "due:{q}:t:");
    cr_expect_eq(load_all(store, 100, &seen), 0);
    cr_expect_not_null(strstr(logged, "1 records that stood in no topic"), "%s", logged);
    cr_expect_eq(seen.n, 3u);
    logged[0] = '\0';
    cr_expect_eq(load_all(store, 100, &seen), 0);
    cr_expect_str_empty(logged, "it was said: %s", logged);
    free(seen.data);
    finish(store);
}

/* ---- The dead -------------------------------------------------------------------------------- */

/* Where the job stands and where its entry says do not agree: the entry is right. */
REDIS_TEST(redis_load, puts_back_what_stands_among_the_dead_and_is_not_or_the_other_way_round)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { 0 };

    cr_assert_eq(commit_one(store, put(1, 5000), 1), 0);
    cr_assert_eq(commit_one(store, dead(2, 6000), 2), 0);
    cr_assert_eq(commit_one(store, put(3, 7000), 3), 0);
    cr_assert_eq(commit_one(store, dead(4, 8000), 4), 0);
    ASK("EVAL",
        "local t, d = KEYS[1], KEYS[2] "
        "local live, dead = redis.call('ZRANGE', t, 0, 0)[1], redis.call('ZRANGE', d, 0, 0)[1] "
        "redis.call('ZREM', t, live) redis.call('ZADD', d, 1, live) "
        "redis.call('ZREM', d, dead) redis.call('ZADD', t, 1, dead) return 1",
        "2", "due:{q}:t:", "due:{q}:dead");
    cr_expect_eq(load_all(store, 100, &seen), 0);
    cr_expect_eq(seen.n, 4u);
    cr_expect_eq(stats_of(store).quarantined, 0u);
    cr_expect_not_null(strstr(logged, "2 jobs stood in the wrong place"), "%s", logged);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:q"), ":0\r\n");
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:t:"), ":2\r\n");
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:dead"), ":2\r\n");
    seen.n = 0;
    cr_expect_eq(load_all(store, 100, &seen), 0);
    cr_expect_eq(seen.n, 4u);
    free(seen.data);
    finish(store);
}

/* On a server that has gone back in time a job may be dead or not, whatever it is to the queue. */
REDIS_TEST(redis_loss, of_a_burial_or_a_kick_leaves_a_job_in_one_place_only)
{
    due_store *store = opened((due_redis_options){ 0 });
    due_change back = put(2, 9);
    due_change gone = drop(3, 9);
    due_change other = dead(4, 7);

    for (uint64_t i = 1; i <= 4; i++) {
        due_change c = i == 4 ? put(i, 5) : dead(i, 6);
        cr_assert_eq(commit_one(store, c, i), 0);
    }
    ASK("SAVE");
    for (uint64_t i = 1; i <= 3; i++) { /* kicked, which is lost */
        due_change c = move(i, 6, 9);
        c.was_dead = 1;
        cr_assert_eq(commit_one(store, c, 4 + i), 0);
    }
    redis_server_kill(&server);
    cr_assert_eq(redis_server_run(&server), 0);
    cr_expect_eq(store->verbs->ready(store, soon(LONG_NS)), DUE_ELOST);
    cr_expect_eq(store->verbs->ready(store, soon(LONG_NS)), 0);
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:dead"), ":3\r\n");
    due_change all[] = { put(1, 9), back, gone, other };
    cr_expect_eq(commit(store, all, 4, 8), 0);
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:dead"), ":1\r\n");
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:t:"), ":2\r\n");
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":3\r\n");
    struct seen seen = { 0 };
    cr_expect_eq(load_all(store, 1, &seen), 0);
    cr_expect_eq(seen.n, 3u);
    cr_expect_eq(stats_of(store).quarantined, 0u);
    free(seen.data);
    finish(store);
}
