/* test_redis_asked.c - what a server is asked while a store is read: so many commands of each kind,
 * so that no page is smaller, or asked for twice, and nothing is looked for without need. */
#include "lab/redis/redis_store_lab.h"

/* Of the last question: "zrange 3 hmget 2", in this order. */
static const char *asked(void)
{
    static const char *const verbs[] = { "hkeys", "hlen", "zcount", "zrange", "zscore",
                                         "hmget", "hget", "hscan",  "zscan",  "zadd",
                                         "zrem",  "hset", "hsetnx", "hdel" };
    static char text[512];
    static char stats[65536];
    size_t len = 0;

    snprintf(stats, sizeof stats, "%s", ASK("INFO", "commandstats"));
    text[0] = '\0';
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        char name[64];

        snprintf(name, sizeof name, "cmdstat_%s:calls=", verbs[i]);
        const char *at = strstr(stats, name);
        if (at != NULL)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%s %ld", len > 0 ? " " : "",
                                    verbs[i], strtol(at + strlen(name), NULL, 10));
    }
    ASK("CONFIG", "RESETSTAT");
    return text;
}

#define expect_asked(text) cr_expect_str_eq(asked(), text)

static void put_n(due_store *store, uint64_t n, uint64_t *number)
{
    *number = fill(store, n, 1000, 700, *number);
    asked();
}

static size_t read_all(due_store *store, size_t max)
{
    struct seen seen = { 0 };

    cr_expect_eq(load_all(store, max, &seen), 0);
    free(seen.data);
    return seen.n;
}

REDIS_TEST(redis_asked, pages_that_double_until_all_is_read)
{
    static const struct {
        uint64_t jobs;
        size_t max;
        const char *asked;
    } cases[] = { { 0, 0, "hkeys 2 hlen 2 zcount 2 zrange 2" },
                  { 1, 0, "hkeys 2 hlen 2 zcount 3 zrange 4 hmget 1" },
                  { 15, 0, "hkeys 2 hlen 2 zcount 3 zrange 4 hmget 1" },
                  { 16, 0, "hkeys 2 hlen 2 zcount 3 zrange 5 hmget 1" },
                  { 17, 0, "hkeys 2 hlen 2 zcount 3 zrange 5 hmget 2" },
                  { 100, 0, "hkeys 2 hlen 2 zcount 3 zrange 6 hmget 3" },
                  { 1000, 0, "hkeys 2 hlen 2 zcount 3 zrange 9 hmget 6" },
                  { 1000, 256, "hkeys 2 hlen 2 zcount 3 zrange 10 hmget 7" },
                  { 1000, 10, "hkeys 2 hlen 2 zcount 3 zrange 104 hmget 100" },
                  { 5000, 0, "hkeys 2 hlen 2 zcount 3 zrange 13 hmget 10" } };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        due_store *store = opened((due_redis_options){ 0 });
        uint64_t number = 1;

        if (cases[i].jobs > 0)
            put_n(store, cases[i].jobs, &number);
        asked();
        cr_expect_eq(read_all(store, cases[i].max), cases[i].jobs);
        expect_asked(cases[i].asked);
        finish(store);
        ASK("FLUSHALL");
    }
}

REDIS_TEST(redis_asked, for_what_only_some_have_where_there_is_any)
{
    due_store *store = opened((due_redis_options){ 0 });
    uint64_t number = 1;

    put_n(store, 20, &number);
    read_all(store, 0);
    expect_asked("hkeys 2 hlen 2 zcount 3 zrange 5 hmget 2");
    cr_assert_eq(commit_one(store, move(3, 1000 + 2 * 700, 9999), number++), 0); /* an entry */
    asked();
    read_all(store, 0);
    expect_asked("hkeys 2 hlen 2 zcount 3 zrange 5 hmget 4");
    cr_assert_eq(commit_one(store, dead(30, 5), number++), 0);
    asked();
    read_all(store, 0);
    expect_asked("hkeys 2 hlen 2 zcount 3 zrange 5 hmget 6");
    due_change keyed = put(31, 5);
    keyed.record.key = "k";
    keyed.record.key_len = 1;
    cr_assert_eq(commit_one(store, keyed, number++), 0);
    asked();
    read_all(store, 0);
    expect_asked("hkeys 2 hlen 2 zcount 3 zrange 5 hmget 7");
    keyed = drop(31, 5);
    keyed.record.key = "k";
    keyed.record.key_len = 1;
    keyed.key_kept_ns = DUE_S(9);
    cr_assert_eq(commit_one(store, keyed, number++), 0);
    finish(store);
}

/* A job whose place was lost, a record that is none, topics that are not listed. */
REDIS_TEST(redis_asked, for_what_stands_nowhere_once)
{
    due_store *store = opened((due_redis_options){ 0 });
    uint64_t number = 1;

    put_n(store, 20, &number);
    ASK("EVAL", "return redis.call('ZREM', KEYS[1], redis.call('ZRANGE', KEYS[1], 0, 0)[1])", "1",
        "due:{q}:t:");
    asked();
    cr_expect_eq(read_all(store, 0), 19u);
    expect_asked(
        "hkeys 2 hlen 2 zcount 3 zrange 5 zscore 80 hmget 2 hget 20 hscan 1 hset 1 hdel 2");
    cr_expect_eq(read_all(store, 0), 19u);
    expect_asked("hkeys 2 hlen 2 zcount 3 zrange 5 hmget 2");
    ASK("EVAL", "return redis.call('HSET', KEYS[1], redis.call('ZRANGE', KEYS[2], 0, 0)[1], 'x')",
        "2", "due:{q}:j", "due:{q}:t:");
    asked();
    cr_expect_eq(read_all(store, 0), 18u);
    expect_asked("hkeys 2 hlen 2 zcount 3 zrange 7 hmget 3 zrem 1 hset 1 hdel 2");
    ASK("DEL", "due:{q}:topics");
    asked();
    cr_expect_eq(read_all(store, 0), 0u, "the queue has them, as it has put them itself");
    expect_asked("hkeys 2 hlen 2 zcount 2 zrange 2 zscore 72 hget 18 hscan 1");
    finish(store);
}

static int see_topic(void *ctx, const char *topic, int paused, int64_t held_max)
{
    (void)topic, (void)paused, (void)held_max;
    ++*(size_t *)ctx;
    return 0;
}

/* A thousand at a time. */
REDIS_TEST(redis_asked, what_holds_back_topics_page_by_page)
{
    static const struct {
        const char *topics, *asked;
    } cases[] = { { "0", "hkeys 1" },
                  { "1", "hkeys 1 hmget 1" },
                  { "1000", "hkeys 1 hmget 1" },
                  { "1001", "hkeys 1 hmget 2" },
                  { "2000", "hkeys 1 hmget 2" },
                  { "2001", "hkeys 1 hmget 3" } };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        due_store *store = opened((due_redis_options){ 0 });
        size_t n = 0;

        ASK("EVAL", "for i = 1, tonumber(ARGV[1]) do redis.call('HSET', KEYS[1], i, '1 0') end",
            "1", "due:{q}:topics", cases[i].topics);
        asked();
        cr_expect_eq(store->verbs->topics(store, see_topic, &n, soon(LONG_NS)), 0);
        expect_asked(cases[i].asked);
        cr_expect_eq(n, strtoul(cases[i].topics, NULL, 10));
        finish(store);
        ASK("FLUSHALL");
    }
}

/* The third is refused once, for want of room. */
static int see_key(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    size_t *n = ctx;

    (void)key, (void)len, (void)id, (void)until_ns;
    return ++*n == 3 ? DUE_EAGAIN : 0;
}

REDIS_TEST(redis_asked, a_page_of_kept_keys_that_is_gone_on_with_once)
{
    due_store *store = opened((due_redis_options){ 0 });
    due_change changes[10];
    size_t n = 0;

    for (uint64_t i = 0; i < 5; i++) {
        changes[i] = put(i + 1, 5);
        changes[5 + i] = drop(i + 1, 5);
        changes[i].record.key = changes[5 + i].record.key = &"abcde"[i];
        changes[i].record.key_len = changes[5 + i].record.key_len = 1;
        changes[5 + i].key_kept_ns = DUE_S(9);
    }
    cr_assert_eq(commit(store, changes, 5, 1), 0);
    cr_assert_eq(commit(store, changes + 5, 5, 2), 0);
    asked();
    cr_expect_eq(store->verbs->keys(store, 1, 100, see_key, &n, soon(LONG_NS)), DUE_EAGAIN);
    cr_expect_eq(n, 3u);
    cr_expect_eq(store->verbs->keys(store, 0, 100, see_key, &n, soon(LONG_NS)), 0);
    cr_expect_eq(n, 6u);
    expect_asked("hmget 2 zscan 1");
    finish(store);
}
