/* share_topic.c - what holds back the jobs of a topic, for all who share the queue. */
#include "store/share_frame.h"

static bool put_some(struct sharing *t, const char *topic, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sharing_put(t, sharing_job(t, topic, -DUE_MS(50) + (int64_t)i * DUE_MS(1)));
    return sharing_sent(t, 0);
}

static bool hold_back(struct sharing *t, const char *topic, int64_t paused, int64_t held_max)
{
    sharing_hold_back(t, topic, paused, held_max);
    return sharing_sent(t, 1);
}

/* So many come, of topic "a". */
static bool claims(struct sharing *t, int s, size_t need, size_t n)
{
    static const char *const a[] = { "a" };

    sharing_claim(t, need, 0, SHARE_LONG_NS);
    sharing_of(t, a, 1);
    return sharing_sent(t, s) && suite_check(&t->base, t->n_held == n, __FILE__, __LINE__,
                                             "%zu came, not %zu", t->n_held, n);
}

static void pauses_a_topic_for_all(struct sharing *t)
{
    if (!sharing_all_join(t, 3) || !put_some(t, "a", 2))
        return;
    SHARE_CHECK(t, hold_back(t, "a", 1, -1), "paused");
    SHARE_CHECK(t, claims(t, 2, 2, 0) && !t->answer.more, "nothing");
    SHARE_CHECK(t, put_some(t, "a", 1) && put_some(t, "b", 1), "others come");
    SHARE_CHECK(t, sharing_drain(t, 2, 1), "the other topic's");
    SHARE_CHECK(t, hold_back(t, "a", 0, -1), "resumed");
    SHARE_CHECK(t, sharing_drain(t, 2, 3), "those that were held back");
}

static void counts_what_is_held_of_a_limited_topic(struct sharing *t)
{
    struct sharing_held h[2];

    if (!sharing_all_join(t, 3) || !hold_back(t, "a", -1, 2) || !put_some(t, "a", 6))
        return;
    SHARE_CHECK(t, claims(t, 0, 5, 2) && !t->answer.more, "two, and no more");
    h[0] = t->held[0];
    h[1] = t->held[1];
    SHARE_CHECK(t, claims(t, 2, 5, 0) && !t->answer.more, "for all");
    sharing_done(t, h[0]);
    SHARE_CHECK(t, sharing_sent(t, 0) && claims(t, 2, 5, 1), "one more");
    sharing_back(t, h[1], sharing_now(t) - DUE_S(60)); /* before all others, however slow we are */
    SHARE_CHECK(t, sharing_sent(t, 0) && claims(t, 2, 5, 1) && t->held[0].job == h[1].job,
                "one that waits again is counted when it is held");
    sharing_bury(t, t->held[0], "no good");
    SHARE_CHECK(t, sharing_sent(t, 2) && claims(t, 0, 5, 1), "the dead are not");
    SHARE_CHECK(t, hold_back(t, "a", -1, 3) && claims(t, 0, 5, 1), "a higher limit");
    SHARE_CHECK(t, hold_back(t, "a", -1, 1) && claims(t, 0, 5, 0), "a lower one");
    SHARE_CHECK(t, hold_back(t, "a", -1, 0) && claims(t, 0, 5, 1), "none any more");
}

/* What has lapsed is held still, until somebody else holds it. */
static void lets_leases_lapse_in_a_limited_topic(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 2) || !hold_back(t, "a", -1, 1) ||
        !sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(9)), SHARE_LONG_NS, &h) ||
        !put_some(t, "a", 2))
        return;
    SHARE_CHECK(t, claims(t, 1, 2, 0), "it is held");
    sharing_extend(t, h, SHARE_SHORT_NS); /* only now, however slow we are */
    SHARE_CHECK(t, sharing_sent(t, 0), "a shorter lease");
    sharing_pass(t, SHARE_PASS_NS);
    SHARE_CHECK(t, claims(t, 1, 2, 1) && t->held[0].job == h.job && t->held[0].lapsed_ns != 0,
                "the one that lapsed, and no other");
    SHARE_CHECK(t, hold_back(t, "a", 1, -1), "paused");
    sharing_done(t, t->held[0]);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims(t, 1, 2, 0), "nothing");
    SHARE_CHECK(t, hold_back(t, "a", 0, -1) && claims(t, 1, 2, 1), "the limit has stayed");
}

/* Who waits for what is held back sleeps, and is rung when it is let go. */
static void rings_who_waits_when_it_lets_go(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 2) || !hold_back(t, "a", 1, -1) || !put_some(t, "a", 2))
        return;
    sharing_wait(t, 1, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && t->answer.alarm_ns == 0, "it sleeps until it is rung");
    sharing_put(t, sharing_job(t, "a", -DUE_MS(5)));
    SHARE_CHECK(t, sharing_sent(t, 1) && t->answer.rang == 0, "not for what is held back");
    SHARE_CHECK(t, hold_back(t, "a", 0, 1) && t->answer.rang == 1, "resumed");
    sharing_wait(t, 1, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && t->n_held == 1, "it comes");
    h = t->held[0];
    sharing_wait(t, 1, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && t->n_held == 0 && t->answer.alarm_ns > 0,
                "another leads, for the end of that lease");
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 0) && t->answer.rang == 1, "there is room, and it is rung");
    sharing_wait(t, 1, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && t->n_held == 1, "it comes");
}

const struct suite_test_shared share_topic_tests[] = {
    { "topic: pauses for all", pauses_a_topic_for_all },
    { "topic: counts what is held of a limited one", counts_what_is_held_of_a_limited_topic },
    { "topic: lets leases lapse in a limited one", lets_leases_lapse_in_a_limited_topic },
    { "topic: rings who waits when it lets go", rings_who_waits_when_it_lets_go },
    { NULL, NULL },
};
