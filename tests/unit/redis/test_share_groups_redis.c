/* test_share_groups_redis.c - the shared face of the Redis store: who does not know groups, while
 * others have some.
 */
#include "lab/redis/share_store_lab.h"

/* A job without a group is claimed, before there are groups or after, and done: the answers of
 * both are lost, and each comes when it is asked for again. */
static void lose_answers(bool before)
{
    static const struct fault_cell lost = {
        .command = 1, .name = "EVALSHA", .where = FAULT_SENT, .what = FAULT_CLOSE
    };
    struct sharer s = joined_by_proxy();
    struct sharer other = joined();
    due_change grouped = put(2, DUE_S(9000000000));

    grouped.record.group = "g";
    grouped.record.group_len = 1;
    cr_assert_eq(claim(&s, 1), 0, "so that the scripts are there");
    cr_assert_eq(say(&other, put(1, 5)), 0);
    if (before)
        cr_assert_eq(say(&other, grouped), 0);
    fault_proxy_plan(proxy, &lost, 1);
    cr_assert_eq(claim(&s, 1), 0);
    cr_assert_eq(s.n_held, 1u);
    if (!before)
        cr_assert_eq(say(&other, grouped), 0);
    fault_proxy_plan(proxy, &lost, 1);
    cr_expect_eq(say(&s, of_held(&s, 0, DUE_CHANGE_DROP)), 0);
    cr_expect_eq(fault_proxy_struck(proxy), 1u);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1\r\n");
    go(&s);
    go(&other);
}

REDIS_PROXY_TEST(share_groups, is_told_again_what_it_did_though_others_have_groups)
{
    lose_answers(true);
}

REDIS_PROXY_TEST(share_groups, is_told_again_what_it_did_though_others_have_groups_by_now)
{
    lose_answers(false);
}
