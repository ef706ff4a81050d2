/* test_share_spoiled_store.c - keys of a shared queue that are missing, make no sense, or are
 * something else, met by the shared face of the Redis store.
 */
#include "lab/redis/share_store_lab.h"

/* What is no job's id stands in a topic: it goes, and is no reason to wait for those behind it. */
SHARE_TEST(share_spoiled, member_of_a_topic_that_is_no_id_goes)
{
    static const char *const odd[] = { "", "x", "an id of more than fourteen bytes" };
    struct sharer s = joined();

    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        cr_assert_eq(say(&s, put(1 + i, 5)), 0);
        ASK("ZADD", "due:{q}:t:", "0", odd[i]);
        size_t held = 0;
        for (int tries = 0; held == 0 && tries < 20; tries++) {
            struct due_claim c = { .need = 5, .lease_ns = DUE_S(600) };
            int rc = call_once(&s, NULL, 0, &c, DUE_MS(200));
            cr_expect(rc == 0 || rc == DUE_EAGAIN || rc == DUE_EINDOUBT, "%s", due_error_name(rc));
            held += rc == 0 ? s.n_held : 0;
        }
        cr_assert_eq(held, 1u, "'%s'", odd[i]);
        cr_expect_eq(say(&s, of_held(&s, 0, DUE_CHANGE_DROP)), 0);
        cr_expect_str_eq(ASK("EXISTS", "due:{q}:t:", "due:{q}:l:", "due:{q}:j"), ":0\r\n", "'%s'",
                         odd[i]);
    }
    go(&s);
}

/* The end of a lease makes no sense: it is over, and who claims the job is told so. */
SHARE_TEST(share_spoiled, end_of_a_lease_that_is_none_is_one_that_was_let_pass)
{
    static const char *const odd[] = { "-5", "-inf", "0.5", "-1e300" };
    struct sharer s = joined();
    struct sharer other = joined();

    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        cr_assert_eq(say(&s, put(1 + i, 5)), 0);
        cr_assert_eq(claim(&s, 1), 0);
        cr_assert_eq(s.n_held, 1u);
        ASK("EVAL", "redis.call('ZADD', KEYS[1], ARGV[1], redis.call('ZRANGE', KEYS[1], 0, 0)[1])",
            "1", "due:{q}:l:", odd[i]);
        struct due_claim c = { .need = 1, .lease_ns = DUE_S(600) };
        cr_expect_eq(call_once(&other, NULL, 0, &c, LONG_NS), 0, "%s", odd[i]);
        cr_assert_eq(other.n_held, 1u, "%s", odd[i]);
        cr_expect_gt(other.held[0].lapsed_ns, 0, "%s", odd[i]);
        cr_expect_eq(say(&s, of_held(&s, 0, DUE_CHANGE_DROP)), DUE_ESTALE);
        cr_expect_eq(say(&other, of_held(&other, 0, DUE_CHANGE_DROP)), 0);
    }
    go(&other);
    go(&s);
}
