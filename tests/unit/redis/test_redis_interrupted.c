/* test_redis_interrupted.c - reading back that is interrupted again and again gets on all the same,
 * and what comes after it can be interrupted as before.
 */
#include "lab/redis/redis_proxy_lab.h"

#define PATIENCE 3u /* calls that an interrupt may end before one goes on */
#define LATE_MS  20 /* each answer: so that who waits is there when the bell has rung */

static int no_key(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    (void)ctx, (void)key, (void)len, (void)id, (void)until_ns;
    return 0;
}

static int read_all(due_store *store, bool keys, struct seen *seen, int64_t until_ns)
{
    return keys ? store->verbs->keys(store, 1, 0, no_key, NULL, until_ns)
                : store->verbs->load(store, 1, 0, see, seen, until_ns);
}

static void ends_in_the_end(bool keys)
{
    due_store *store = opened_by_proxy((due_redis_options){ 0 });
    struct seen seen = { 0 };
    unsigned *cut = &inside(store)->cut_short;
    int64_t held;

    cr_assert_eq(commit_one(store, put(1, 5), 1), 0);
    cr_expect_eq(read_all(store, keys, &seen, soon(LONG_NS)), 0);
    cr_expect_eq(*cut, 0u, "it was not interrupted");
    fault_proxy_lag(proxy, LATE_MS);
    cr_expect_eq(read_all(store, keys, &seen, soon(DUE_MS(1))), DUE_EAGAIN);
    cr_expect_eq(*cut, 0u, "it was the time that was up");
    for (unsigned i = 0; i < PATIENCE; i++) {
        cr_expect_eq(*cut, i);
        store->verbs->interrupt(store);
        cr_expect_eq(read_all(store, keys, &seen, soon(LONG_NS)), DUE_EAGAIN, "%u", i);
    }
    cr_expect_eq(*cut, PATIENCE);
    store->verbs->interrupt(store);
    cr_expect_eq(read_all(store, keys, &seen, soon(LONG_NS)), 0, "now it is deaf");
    cr_expect_eq(*cut, 0u);
    cr_expect_eq(store->verbs->renew(store, &held, soon(LONG_NS)), DUE_EAGAIN,
                 "and hears again what it has not heard");
    cr_expect_eq(store->verbs->renew(store, &held, soon(LONG_NS)), 0);
    fault_proxy_lag(proxy, 0);
    free(seen.data);
    finish(store);
}

REDIS_PROXY_TEST(redis_interrupted, load_gets_on_after_three_calls)
{
    ends_in_the_end(false);
}

REDIS_PROXY_TEST(redis_interrupted, reading_of_keys_gets_on_after_three_calls)
{
    ends_in_the_end(true);
}
