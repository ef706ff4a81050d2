/* test_redis_given_back.c - what a store has read it gives back: answers, lists, what it remembers
 * of a load, whether that came to its end, was begun anew, or its connection broke.
 */
#include "lab/redis/redis_proxy_lab.h"
#include "lab/redis/refusing_malloc.h"

#if REFUSING_MALLOC

#define KEY_OF(i) ((const char *)"0123456789abcdefghijklmnopqrstuv" + (i) % 32)

#define REMOVE_FIRST "redis.call('ZREM', KEYS[1], redis.call('ZRANGE', KEYS[1], 0, 0)[1]) return 1"
#define SPOIL_FIRST \
    "redis.call('HSET', KEYS[1], redis.call('ZRANGE', KEYS[2], 0, 0)[1], 'x') return 1"

static int see_none(void *ctx, const due_record *record)
{
    (void)ctx, (void)record;
    return 0;
}

/* The first is taken; there is no room for the second, so that the page stays as it is. */
static int see_one(void *ctx, const due_record *record)
{
    int *n = ctx;

    (void)record;
    return (*n)++ == 0 ? 0 : DUE_ENOMEM;
}

static int see_one_key(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    int *n = ctx;

    (void)key, (void)len, (void)id, (void)until_ns;
    return (*n)++ == 0 ? 0 : DUE_ENOMEM;
}

static int see_key(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    (void)ctx, (void)key, (void)len, (void)id, (void)until_ns;
    return 0;
}

static int see_topic(void *ctx, const char *topic, int paused, int64_t held_max)
{
    (void)ctx, (void)topic, (void)paused, (void)held_max;
    return 0;
}

static due_change in(due_change c, uint64_t i)
{
    static const char *const topics[] = { "a", "b", "c" };

    c.record.topic = topics[i % 3];
    if (c.kind == DUE_CHANGE_PUT && i % 2 == 0) {
        c.record.key = KEY_OF(i / 2);
        c.record.key_len = 1;
    }
    return c;
}

/* Jobs of three topics, some dead, half of them with keys, ten of which are kept. */
static uint64_t fill_all(due_store *store)
{
    due_change changes[60];

    for (uint64_t i = 0; i < 60; i++)
        changes[i] = in(i % 10 == 9 ? dead(i + 1, 500) : put(i + 1, 1000 + (int64_t)i), i);
    cr_assert_eq(commit(store, changes, 60, 1), 0);
    for (uint64_t i = 0; i < 10; i++) {
        changes[i] = in(drop(2 * i + 1, 1000 + 2 * (int64_t)i), 2 * i);
        changes[i].record.key = KEY_OF(i);
        changes[i].record.key_len = 1;
        changes[i].key_kept_ns = DUE_S(100);
    }
    cr_assert_eq(commit(store, changes, 10, 2), 0);
    return 3;
}

static int page(due_store *store, int rewind, size_t max, int64_t ns)
{
    return store->verbs->load(store, rewind, max, see_none, NULL, soon(ns));
}

static void read_to_the_end(due_store *store, size_t max)
{
    int rc = page(store, 1, max, LONG_NS);

    for (int i = 0; rc == 1 && i < 1000; i++)
        rc = page(store, 0, max, LONG_NS);
    cr_expect_eq(rc, 0, "%s", due_error_name(rc));
}

static void keys_to_the_end(due_store *store)
{
    int rc = store->verbs->keys(store, 1, 3, see_key, NULL, soon(LONG_NS));

    while (rc == 1)
        rc = store->verbs->keys(store, 0, 3, see_key, NULL, soon(LONG_NS));
    cr_expect_eq(rc, 0);
}

/* Pages that are given up: for a batch, for a new beginning, for want of time, with the link. */
static uint64_t begin_and_break_off(due_store *store, uint64_t number)
{
    for (int i = 0; i < 4; i++) {
        cr_expect_geq(page(store, 1, 3, LONG_NS), 0);
        cr_expect_geq(page(store, 0, 3, LONG_NS), 0);
        int n = 0;
        if (i == 0 || i == 3) { /* behind what was shown, wherever that is */
            due_change moved[3];
            for (uint64_t k = 0; k < 3; k++)
                moved[k] = in(i == 0 ? move(51 + k, 1050 + (int64_t)k, 1)
                                     : move(51 + k, 1, 1050 + (int64_t)k),
                              50 + k);
            cr_assert_eq(commit(store, moved, 3, number++), 0);
        }
        cr_expect_eq(store->verbs->load(store, 0, 9, see_one, &n, soon(LONG_NS)), DUE_ENOMEM);
        n = 0;
        store->verbs->keys(store, 1, 9, see_one_key, &n, soon(LONG_NS));
        if (i == 0)
            cr_assert_eq(commit_one(store, in(put(100, 7), 0), number++), 0);
        else if (i == 1)
            page(store, 0, 3, -1);
        else if (i == 2)
            due__link_down(inside(store)->link);
        page(store, 0, 3, LONG_NS);
        store->verbs->keys(store, i != 1, 3, see_key, NULL, soon(i == 3 ? -1 : LONG_NS));
        if (i == 2)
            due__link_down(inside(store)->link);
    }
    return number;
}

static void live(void)
{
    due_store *store = opened((due_redis_options){ 0 });
    uint64_t number = begin_and_break_off(store, fill_all(store));

    read_to_the_end(store, 7);
    keys_to_the_end(store);
    for (uint64_t i = 1; i < 8; i++)
        store->verbs->find(store, id_of(0, 11 * i), see_none, NULL, soon(LONG_NS));
    cr_assert_eq(commit_one(store,
                            (due_change){
                                .kind = DUE_CHANGE_TOPIC, .paused = 1, .record = { .topic = "a" } },
                            number),
                 0);
    cr_expect_eq(store->verbs->topics(store, see_topic, NULL, soon(LONG_NS)), 0);
    ASK("EVAL", REMOVE_FIRST, "1", "due:{q}:t:b");
    read_to_the_end(store, 100);
    ASK("EVAL", SPOIL_FIRST, "2", "due:{q}:j", "due:{q}:t:a");
    read_to_the_end(store, 100);
    ASK("DEL", "due:{q}:topics");
    read_to_the_end(store, 5);
    cr_expect_geq(stats_of(store).quarantined, 2u);
    finish(store);
    ASK("FLUSHALL");
}

/* Once before, for what is kept as long as the program lives. */
REDIS_TEST(redis_given_back, all_that_was_read)
{
    live();
    refusing.watching = true;
    long before = refusing.live;
    live();
    long after = refusing.live;
    refusing.watching = false;
    cr_expect_eq(after, before);
}

#else

Test(redis_given_back, is_not_ours_to_count_here)
{
    cr_skip_test("the allocator is the sanitizer's");
}

#endif
