/* test_redis_store.c - what the Redis store keeps, and what it refuses, against a real server. */
#include "lab/redis/redis_store_lab.h"
#include "lab/redis/redis_user.h"

/* ---- What is stored -------------------------------------------------------------------------- */

static void round_trip(due_store *store, const void *data, size_t len, const char *topic,
                       uint64_t number)
{
    due_change c = put(number, 1234567890123456789);
    struct seen seen = { 0 };

    c.record.data = len > 0 ? data : NULL;
    c.record.len = len;
    c.record.topic = topic;
    c.record.until_ns += 999;
    c.record.attempts = 7;
    c.record.failures = 3;
    cr_assert_eq(commit_one(store, c, number), 0);
    cr_assert_eq(store->verbs->find(store, c.record.id, see, &seen, soon(LONG_NS)), 0);
    cr_expect_eq(seen.record.len, len);
    cr_expect(len == 0 || memcmp(seen.data, data, len) == 0);
    cr_expect_str_eq(seen.topic, topic);
    cr_expect_eq(seen.record.deadline_ns, c.record.deadline_ns);
    cr_expect_eq(seen.record.until_ns, c.record.until_ns);
    cr_expect_eq(seen.record.attempts, 7u);
    cr_expect_eq(seen.record.failures, 3u);
    free(seen.data);
}

REDIS_TEST(redis_store, keeps_every_byte)
{
    static const char resp[] = "\r\n*1\r\n$8\r\nFLUSHALL\r\n\0\xff";
    due_store *store = opened((due_redis_options){ 0 });
    char *large = malloc(1 << 20);
    char name[256];

    for (int i = 0; i < 1 << 20; i++)
        large[i] = (char)(i * 7 + i / 256);
    memset(name, 0xfe, 255);
    name[255] = '\0';
    round_trip(store, NULL, 0, "", 1);
    round_trip(store, "\0", 1, "a topic\r\n{x}", 2);
    round_trip(store, resp, sizeof resp, name, 3);
    round_trip(store, large, 1 << 20, "", 4);
    finish(store);

    struct seen seen = { 0 };
    store = opened((due_redis_options){ 0 });
    cr_expect_eq(info.jobs, 4u);
    cr_expect_eq(load_all(store, 2, &seen), 0);
    cr_expect_eq(seen.n, 4u);
    free(seen.data);
    free(large);
    finish(store);
}

REDIS_TEST(redis_store, finds_a_job_with_the_key_that_it_has)
{
    due_store *store = opened((due_redis_options){ 0 });
    due_change first = put(1, 5000);
    due_change second = put(2, 5000);
    struct seen seen = { 0 };

    first.record.key = second.record.key = "a key";
    first.record.key_len = second.record.key_len = 5;
    cr_assert_eq(commit_one(store, first, 1), 0);
    cr_assert_eq(store->verbs->find(store, id_of(0, 1), see, &seen, soon(LONG_NS)), 0);
    cr_expect_eq(seen.record.key_len, 5u);
    cr_assert_eq(commit_one(store, second, 2), 0); /* takes it over */
    cr_assert_eq(store->verbs->find(store, id_of(0, 1), see, &seen, soon(LONG_NS)), 0);
    cr_expect_eq(seen.record.key_len, 0u);
    cr_assert_eq(store->verbs->find(store, id_of(0, 2), see, &seen, soon(LONG_NS)), 0);
    cr_expect_eq(seen.record.key_len, 5u);
    free(seen.data);
    finish(store);
}

/* Two that take over in the same millisecond may have one number: then this tells them apart. */
REDIS_TEST(redis_store, has_another_nonce_at_each_opening)
{
    char nonce[2][sizeof(((struct due__redis *)0)->nonce)];

    for (int i = 0; i < 2; i++) {
        due_store *store = opened((due_redis_options){ 0 });

        memcpy(nonce[i], inside(store)->nonce, sizeof nonce[i]);
        cr_expect_eq(strlen(nonce[i]), sizeof nonce[i] - 1);
        finish(store);
    }
    cr_expect_str_neq(nonce[0], nonce[1]);
}

/* Somebody has taken it over: the guard of the handing over holds that back. */
REDIS_TEST(redis_store, is_not_handed_over_unless_the_server_says_so)
{
    due_store *store = opened((due_redis_options){ 0 });

    ASK("SET", "due:{q}:fence", "1:another");
    ASK("SET", "due:{q}:owner", "1:another");
    int rc = store->verbs->close(store, soon(LONG_NS));
    cr_expect_eq(rc, DUE_EFENCED, "%s", due_error_name(rc));
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:owner"), ":1\r\n");
    store->verbs->free(store);
}

REDIS_TEST(redis_store, takes_nothing_any_more_once_it_is_closed)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { 0 };

    cr_assert_eq(store->verbs->close(store, soon(LONG_NS)), 0);
    cr_expect_eq(commit_one(store, put(1, 5000), 1), DUE_ECLOSED);
    cr_expect_eq(store->verbs->find(store, id_of(0, 1), see, &seen, soon(LONG_NS)), DUE_ECLOSED);
    cr_expect_eq(store->verbs->close(store, soon(LONG_NS)), 0, "once more is nothing");
    store->verbs->free(store);
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:j"), ":0\r\n");
}

REDIS_TEST(redis_store, moves_and_replaces_a_job)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { 0 };

    cr_assert_eq(commit_one(store, put(1, 5000), 1), 0);
    due_change moved = move(1, 5000, 9001);
    moved.record.attempts = 2;
    cr_assert_eq(commit_one(store, moved, 2), 0);
    cr_expect_str_eq(ASK("ZSCORE", "due:{q}:t:", (const char *)"x"), "$-1\r\n");
    cr_expect_str_eq(ASK("HLEN", "due:{q}:a"), ":1\r\n");
    cr_assert_eq(store->verbs->find(store, id_of(0, 1), see, &seen, soon(LONG_NS)), 0);
    cr_expect_eq(seen.record.until_ns, 9001);
    cr_expect_eq(seen.record.attempts, 2u);
    cr_assert_eq(commit_one(store, put(1, 7000), 3), 0);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:a"), ":0\r\n");
    cr_assert_eq(store->verbs->find(store, id_of(0, 1), see, &seen, soon(LONG_NS)), 0);
    cr_expect_eq(seen.record.until_ns, 7000);
    cr_assert_eq(commit_one(store, drop(1, 7000), 4), 0);
    cr_expect_eq(store->verbs->find(store, id_of(0, 1), see, &seen, soon(LONG_NS)), DUE_ENOENT);
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:j", "due:{q}:a", "due:{q}:t:"), ":0\r\n");
    free(seen.data);
    finish(store);
}

REDIS_TEST(redis_store, does_not_grow_over_many_cycles)
{
    due_store *store = opened((due_redis_options){ 0 });
    uint64_t number = 1;
    due_change changes[100];
    char before[64];

    for (int cycle = 0; cycle < 300; cycle++) {
        for (uint64_t i = 0; i < 100; i++)
            changes[i] = put((uint64_t)cycle * 100 + i + 1, 1000000 + (int64_t)i);
        cr_assert_eq(commit(store, changes, 100, number++), 0);
        for (uint64_t i = 0; i < 100; i++)
            changes[i] = move((uint64_t)cycle * 100 + i + 1, 1000000 + (int64_t)i, 5000);
        cr_assert_eq(commit(store, changes, 100, number++), 0);
        for (uint64_t i = 0; i < 100; i++)
            changes[i] = drop((uint64_t)cycle * 100 + i + 1, 5000);
        cr_assert_eq(commit(store, changes, 100, number++), 0);
        if (cycle == 0)
            snprintf(before, sizeof before, "%.63s", ASK("DBSIZE"));
    }
    cr_expect_str_eq(ASK("DBSIZE"), before);
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:j", "due:{q}:t:"), ":0\r\n");
    cr_expect_str_eq(ASK("HLEN", "due:{q}:a"), ":1\r\n", "the field that makes it a table");
    finish(store);
}

static void expect_calls(const char *command, int calls)
{
    char line[64];

    snprintf(line, sizeof line, "cmdstat_%s:calls=%d,", command, calls);
    cr_expect_not_null(strstr(ASK("INFO", "commandstats"), line), "%s", line);
}

REDIS_TEST(redis_store, needs_one_command_for_all_jobs_of_a_topic)
{
    due_store *store = opened((due_redis_options){ 0 });
    due_change drops[256];

    fill(store, 256, 1000, 1000, 1);
    ASK("CONFIG", "RESETSTAT");
    fill(store, 256, 1000, 1000, 2);
    expect_calls("hset", 2);
    expect_calls("zadd", 1);
    expect_calls("multi", 1);
    expect_calls("exec", 1);
    expect_calls("watch", 1);
    expect_calls("get", 1);
    cr_expect_null(strstr(ASK("INFO", "commandstats"), "cmdstat_hdel"));
    for (uint64_t i = 0; i < 256; i++)
        drops[i] = drop(i + 1, 1000 + (int64_t)i * 1000);
    cr_assert_eq(commit(store, drops, 256, 3), 0);
    expect_calls("hdel", 1);
    expect_calls("zrem", 1);
    finish(store);
}

REDIS_TEST(redis_store, keeps_few_numbers_of_writers)
{
    uint64_t last = 0;
    char writer[40][24];

    for (int i = 0; i < 40; i++) {
        due_store *store = opened((due_redis_options){ 0 });
        cr_expect_gt(info.writer, last);
        last = info.writer;
        snprintf(writer[i], sizeof writer[i], "%llu", (unsigned long long)last);
        finish(store);
    }
    cr_expect_str_eq(ASK("HLEN", "due:{q}:writers"), ":17\r\n");
    for (int i = 23; i < 40; i++)
        cr_expect_str_eq(ASK("HEXISTS", "due:{q}:writers", writer[i]), ":1\r\n", "%d", i);
}

/* What may stand there besides is known once a job was shown, and taken back with it. */
REDIS_TEST(redis_store, learns_from_a_job_that_it_shows_what_there_is)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct due__redis *s = inside(store);
    due_change tried = put(3, 5000);
    struct seen seen = { 0 };

    tried.record.attempts = 1;
    cr_assert_eq(commit_one(store, put(1, 5000), 1), 0);
    cr_assert_eq(commit_one(store, dead(2, 6000), 2), 0);
    cr_assert_eq(commit_one(store, tried, 3), 0);
    for (uint64_t i = 1; i <= 3; i++) {
        s->has_dead = s->has_entries = false;
        cr_assert_eq(store->verbs->find(store, id_of(0, i), see, &seen, soon(LONG_NS)), 0);
        cr_expect_eq(s->has_dead, i == 2, "%d", (int)i);
        cr_expect_eq(s->has_entries, i != 1, "%d", (int)i);
    }
    free(seen.data);
    finish(store);
}

/* When each of the kept keys, which are one byte, is free. */
static int note_until(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    int64_t *until = ctx;

    cr_assert_eq(len, 1u);
    cr_expect_eq(sequence_of(id), *(const unsigned char *)key, "it is another job's");
    until[*(const unsigned char *)key] = until_ns;
    return 0;
}

/* They are stored as microseconds, and a key must not be free before its time. */
REDIS_TEST(redis_keys, are_kept_to_the_microsecond_and_not_less_than_asked)
{
    static const int64_t times[] = { 1,
                                     999,
                                     1000,
                                     1001,
                                     DUE_S(5),
                                     INT64_C(1800000000123456000),
                                     INT64_C(1800000000123456001),
                                     INT64_C(1800000000123456999),
                                     INT64_C(9007199254740991999), /* 2^53 microseconds */
                                     DUE_FOREVER };
    enum { TIMES = sizeof times / sizeof times[0] };
    due_store *store = opened((due_redis_options){ 0 });
    int64_t until[256] = { 0 };
    unsigned char key[TIMES];
    int rc;

    for (unsigned char i = 0; i < TIMES; i++) { /* by itself, or with the end of its job */
        due_change c = put(i, 5);

        key[i] = i;
        c.record.key = &key[i];
        c.record.key_len = 1;
        c.record.keep_key_ns = times[i];
        cr_assert_eq(commit_one(store, c, 2u * i + 1), 0);
        due_change end = drop(i, 5);
        end.record.key = &key[i];
        end.record.key_len = 1;
        end.key_kept_ns = times[i];
        cr_assert_eq(commit_one(store, end, 2u * i + 2), 0);
    }
    for (int call = 0;
         (rc = store->verbs->keys(store, call == 0, 3, note_until, until, soon(LONG_NS))) == 1;
         call++)
        ;
    cr_expect_eq(rc, 0);
    for (int i = 0; i < TIMES; i++) {
        cr_expect_geq(until[i], times[i], "%d: %lld", i, (long long)until[i]);
        if (times[i] < INT64_MAX - DUE_US(2))
            cr_expect_lt(until[i], times[i] + DUE_US(1), "%d: %lld", i, (long long)until[i]);
    }
    finish(store);
}

/* ---- What is refused ------------------------------------------------------------------------- */

REDIS_TEST(redis_open, refuses_a_newer_format)
{
    due_store *store = opened((due_redis_options){ 0 });

    finish(store);
    ASK("HSET", "due:{q}:meta", "format", "2");
    finish(opened((due_redis_options){ 0 }));
    ASK("HSET", "due:{q}:meta", "least_reader", "2");
    store = make((due_redis_options){ 0 }, NULL);
    cr_expect_eq(take(store, LONG_NS, &info, &error), DUE_EVERSION);
    cr_expect_not_null(strstr(error.text, "format 2"));
    due_redis_free(store);
}

static int open_with(due_redis_options o)
{
    due_store *store = make(o, NULL);
    int rc = take(store, LONG_NS, &info, &error);

    finish(store);
    return rc;
}

REDIS_TEST(redis_open, refuses_less_durability_than_is_required)
{
    cr_expect_eq(open_with((due_redis_options){ .require = DUE_DURABLE_EVERYSEC }),
                 DUE_EDURABILITY);
    cr_expect_not_null(strstr(error.text, "in force is none"), "%s", error.text);
    cr_expect_not_null(strstr(error.hint, "appendfsync everysec or always"), "%s", error.hint);
    cr_expect_eq(open_with((due_redis_options){ .require = DUE_DURABLE_EVERYSEC,
                                                .assume = DUE_DURABLE_ALWAYS }),
                 DUE_EDURABILITY);
    ASK("CONFIG", "SET", "appendonly", "yes");
    cr_expect_eq(open_with((due_redis_options){ .require = DUE_DURABLE_EVERYSEC }), 0);
    cr_expect_eq(open_with((due_redis_options){ .require = DUE_DURABLE_ALWAYS }), DUE_EDURABILITY);
    cr_expect_not_null(strstr(error.text, "in force is everysec"), "%s", error.text);
    cr_expect_not_null(strstr(error.hint, "and appendfsync always"), "%s", error.hint);
    ASK("CONFIG", "SET", "appendfsync", "always");
    cr_expect_eq(open_with((due_redis_options){ .require = DUE_DURABLE_ALWAYS }), 0);
    cr_expect_eq(info.durability, DUE_DURABLE_ALWAYS);
}

REDIS_TEST(redis_open, notices_durability_that_falls)
{
    int64_t held;

    ASK("CONFIG", "SET", "appendonly", "yes");
    due_store *store = opened((due_redis_options){ .require = DUE_DURABLE_EVERYSEC });
    ASK("CONFIG", "SET", "appendfsync", "no");
    inside(store)->probed_ns -= DUE__REDIS_PROBE_NS;
    cr_expect_eq(store->verbs->renew(store, &held, soon(LONG_NS)), DUE_EDURABILITY);
    cr_expect_eq(store->verbs->ready(store, soon(LONG_NS)), DUE_EDURABILITY);
    cr_expect_eq(commit_one(store, put(1, 1), 1), DUE_EDURABILITY);
    ASK("CONFIG", "SET", "appendfsync", "everysec");
    inside(store)->probed_ns -= DUE__REDIS_PROBE_NS;
    cr_expect_eq(store->verbs->renew(store, &held, soon(LONG_NS)), 0);
    cr_expect_eq(commit_one(store, put(1, 1), 1), 0);
    finish(store);
}

REDIS_TEST(redis_open, refuses_eviction)
{
    ASK("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
    cr_expect_eq(open_with((due_redis_options){ 0 }), DUE_EDURABILITY);
    cr_expect_not_null(strstr(error.text, "allkeys-lru"));
    cr_expect_eq(open_with((due_redis_options){ .allow_eviction = 1 }), 0);
}

REDIS_TEST(redis_open, says_when_the_server_is_not_there)
{
    redis_server_kill(&server);
    due_store *store = make((due_redis_options){ 0 }, NULL);
    cr_expect_eq(take(store, DUE_MS(100), &info, &error), DUE_ESTORE);
    cr_expect_not_null(strstr(error.text, "cannot be reached"));
    due_redis_free(store);
}

/* The documented permissions are enough for all verbs, and without CONFIG too. */
REDIS_TEST(redis_open, needs_no_more_than_the_documented_permissions)
{
    static const char *const with[] = { "+config|get", "-config" };
    char url[256];

    for (int i = 0; i < 2; i++) {
        ASK("ACL", "SETUSER", "due", "reset", "on", ">canary", "~due:{q}:*", REDIS_USER_MAY,
            with[i]);
        ASK("FLUSHALL");
        ASK("CONFIG", "SET", "appendonly", "yes");
        snprintf(url, sizeof url, "unix://due:canary@%s", server.socket);
        due_store *store = make((due_redis_options){ 0 }, url);
        cr_assert_eq(take(store, LONG_NS, &info, &error), 0, "%s", error.text);
        cr_expect_eq(info.durability, i == 0 ? DUE_DURABLE_EVERYSEC : DUE_DURABLE_UNKNOWN);
        fill(store, 500, 1000, 0, 1);
        cr_assert_eq(commit_one(store, move(1, 1000, 5), 3), 0);
        ASK("ZADD", "due:{q}:t:", "5", "short");
        ASK("EVAL", "return redis.call('ZREM', KEYS[1], redis.call('ZRANGE', KEYS[1], 9, 9)[1])",
            "1", "due:{q}:t:");
        struct seen seen = { 0 };
        int64_t held;
        cr_expect_eq(load_all(store, 100, &seen), 0);
        cr_expect_eq(stats_of(store).quarantined, 2u);
        cr_expect_eq(store->verbs->renew(store, &held, soon(LONG_NS)), 0);
        ASK("CONFIG", "SET", "maxmemory", "1");
        cr_expect_eq(commit_one(store, drop(1, 5), 4), 0);
        ASK("CONFIG", "SET", "maxmemory", "0");
        ASK("ACL", "SETUSER", "due", "-hset");
        cr_expect_eq(commit_one(store, put(900, 5), 5), DUE_EACCES);
        free(seen.data);
        finish(store);
    }
    due_store *store = make((due_redis_options){ 0 }, url);
    cr_expect_eq(take(store, LONG_NS, &info, &error), DUE_EACCES);
    cr_expect_null(strstr(error.text, "canary"));
    due_redis_free(store);
}

REDIS_TEST(redis_options, say_how_large_a_batch_may_be)
{
    due_store *store = opened((due_redis_options){ .batch_changes = 7, .batch_bytes = 5000 });

    cr_expect_eq(info.batch_changes, 7u);
    cr_expect_eq(info.batch_bytes, 5000u);
    finish(store);
    store = opened((due_redis_options){ 0 });
    cr_expect_eq(info.batch_bytes, (size_t)16 << 20);
    finish(store);
}

Test(redis_options, are_checked)
{
    due_store *store = NULL;
    due_redis_options good = { DUE_REDIS_OPTIONS_INIT };
    due_redis_options bad[10];

    for (size_t i = 0; i < 10; i++)
        bad[i] = good;
    bad[0].size = 0;
    bad[1].prefix = "no spaces";
    bad[2].client_name = "no\nlines";
    bad[3].lease_ns = 1;
    bad[4].answer_ns = -1;
    bad[5].wait_replicas = -1;
    bad[6].reserved[15] = 1;
    bad[7].require = (enum due_durability)9;
    bad[8].batch_changes = 1000000;
    bad[9].spin_ns = -1;
    for (size_t i = 0; i < 10; i++) {
        error.text[0] = '\0';
        cr_expect_eq(due_redis_open(&store, "redis://h", &bad[i], &error), DUE_EINVAL, "%d",
                     (int)i);
        cr_expect_neq(error.text[0], '\0', "%d", (int)i);
    }
    good.prefix = "a-prefix_of.32-letters-0123456789"; /* and one more */
    cr_expect_eq(due_redis_open(&store, "redis://h", &good, &error), DUE_EINVAL);
    good.prefix++;
    cr_assert_eq(due_redis_open(&store, "redis://h", &good, &error), 0);
    due_redis_free(store);
    store = (due_store *)&error;
    cr_expect_eq(due_redis_open(&store, "nonsense", NULL, &error), DUE_EINVAL);
    cr_expect_null(store, "so that due_redis_free() does nothing");
    cr_assert_eq(due_redis_open(&store, "redis://h", NULL, NULL), 0);
    due_redis_free(store);
    due_redis_free(NULL);
}

static int options_tried(due_redis_options o)
{
    due_store *store = NULL;
    int rc = due_redis_open(&store, "redis://h", &o, &error);

    due_redis_free(store);
    return rc;
}

Test(redis_options, may_be_as_large_as_their_bounds_and_no_larger)
{
    static char name[130]; /* of one more than there may be */
    due_redis_options good = { DUE_REDIS_OPTIONS_INIT,      .batch_changes = 16384,
                               .lease_ns = DUE_MS(20),      .answer_ns = DUE_S(86400 * 365),
                               .client_name = name + 1,     .require = DUE_DURABLE_ALWAYS,
                               .assume = DUE_DURABLE_ALWAYS };
    due_redis_options bad[6];

    memset(name, 'x', sizeof name - 1);
    cr_expect_eq(options_tried(good), 0, "%s", error.text);
    for (size_t i = 0; i < 6; i++)
        bad[i] = good;
    bad[0].batch_changes++;
    bad[1].lease_ns--;
    bad[2].answer_ns++;
    bad[3].client_name = name;
    bad[4].require = (enum due_durability)(DUE_DURABLE_ALWAYS + 1);
    bad[5].assume = (enum due_durability)(DUE_DURABLE_ALWAYS + 1);
    for (size_t i = 0; i < 6; i++)
        cr_expect_eq(options_tried(bad[i]), DUE_EINVAL, "%zu", i);
}
