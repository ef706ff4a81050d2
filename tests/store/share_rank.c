/* share_rank.c - a shared queue in the order of priority: of what is due the highest comes. */
#include "store/share_frame.h"

/* A job of topic "a" with that priority, due at the store's time and @in_ns. */
static size_t ranked(struct sharing *t, int64_t in_ns, int priority)
{
    size_t job = sharing_job(t, "a", in_ns);
    due_record *r = &t->base.jobs[job].record;

    r->priority = (uint8_t)priority;
    r->id = suite_id(priority, t->base.info[0].writer, job);
    return job;
}

static bool join_ranked(struct sharing *t, int n)
{
    t->by_rank = true;
    return sharing_all_join(t, n);
}

/* Puts one in an exchange of its own. */
static size_t put_ranked(struct sharing *t, int64_t in_ns, int priority)
{
    size_t job = ranked(t, in_ns, priority);

    sharing_put(t, job);
    (void)sharing_sent(t, 0);
    return job;
}

/* Process @s claims so many, and these come, in this order. */
static bool claims(struct sharing *t, int s, size_t need, const size_t *jobs, size_t n)
{
    sharing_claim(t, need, 0, SHARE_LONG_NS);
    return sharing_sent(t, s) && sharing_got(t, jobs, n);
}

#define CLAIMS(t, s, need, ...)                               \
    claims((t), (s), (need), (const size_t[]){ __VA_ARGS__ }, \
           sizeof(size_t[]){ __VA_ARGS__ } / sizeof(size_t))

static void gives_the_highest_of_what_is_due(struct sharing *t)
{
    if (!join_ranked(t, 2))
        return;
    size_t low = put_ranked(t, -DUE_MS(900), 1);
    size_t high = put_ranked(t, -DUE_MS(100), 9);
    size_t middle = put_ranked(t, -DUE_MS(500), 5);
    (void)put_ranked(t, SHARE_LATER_NS, 255);
    SHARE_CHECK(t, CLAIMS(t, 1, 1, high), "one");
    size_t higher = put_ranked(t, -DUE_MS(1), 6);
    SHARE_CHECK(t, CLAIMS(t, 0, 2, higher, middle), "a newcomer passes the lower ones");
    SHARE_CHECK(t, CLAIMS(t, 1, 9, low), "and what is not due keeps nobody waiting");
}

/* In one exchange, in whatever order. */
static void goes_by_time_and_arrival_among_equals(struct sharing *t)
{
    if (!join_ranked(t, 1))
        return;
    int64_t now_ns = sharing_now(t);
    static const struct {
        int priority;
        int64_t ago_ns;
    } make[] = { { 7, DUE_MS(5) }, { 0, DUE_MS(50) }, { 7, DUE_MS(9) },
                 { 7, DUE_MS(5) }, { 255, 0 },        { 0, DUE_MS(60) } };
    static const size_t order[] = { 4, 2, 0, 3, 5, 1 };
    size_t jobs[6];
    size_t wanted[6];

    for (size_t i = 0; i < 6; i++) {
        jobs[i] = ranked(t, 0, make[i].priority);
        due_record *r = &t->base.jobs[jobs[i]].record;
        r->deadline_ns = r->until_ns = now_ns - make[i].ago_ns;
        sharing_put(t, jobs[i]);
    }
    for (size_t i = 0; i < 6; i++)
        wanted[i] = jobs[order[i]];
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    SHARE_CHECK(t, claims(t, 0, 4, wanted, 4) && claims(t, 0, 4, wanted + 4, 2), "in order");
}

/* All 256, each with one that is due and one that is not. */
static void has_every_priority(struct sharing *t)
{
    size_t jobs[256];
    size_t wanted[256];

    if (!join_ranked(t, 1))
        return;
    for (int i = 0; i < 256; i++) {
        int priority = i * 73 % 256;

        jobs[priority] = ranked(t, -DUE_MS(1 + i), priority);
        sharing_put(t, jobs[priority]);
        if (i % 64 == 63)
            SHARE_CHECK(t, sharing_sent(t, 0), "put");
    }
    for (int i = 0; i < 256; i++) {
        sharing_put(t, ranked(t, SHARE_LATER_NS, i));
        if (i % 64 == 63)
            SHARE_CHECK(t, sharing_sent(t, 0), "put");
        wanted[i] = jobs[255 - i];
    }
    SHARE_CHECK(t, claims(t, 0, 100, wanted, 100), "the first");
    SHARE_CHECK(t, claims(t, 0, 300, wanted + 100, 156), "and the others");
}

/* It is due since its lease is over, with the priority that it has. */
static void puts_what_lapsed_where_its_priority_is(struct sharing *t)
{
    struct sharing_held h;

    if (!join_ranked(t, 2))
        return;
    size_t low = ranked(t, -DUE_MS(900), 2);
    if (!sharing_have(t, 0, low, SHARE_SHORT_NS, &h))
        return;
    sharing_pass(t, SHARE_PASS_NS);
    size_t high = put_ranked(t, -DUE_MS(1), 3);
    size_t lowest = put_ranked(t, -DUE_MS(800), 1);
    SHARE_CHECK(t, CLAIMS(t, 1, 1, high), "the higher one that waits");
    SHARE_CHECK(t, CLAIMS(t, 1, 2, low, lowest), "then the others");
    SHARE_CHECK(t, t->held[0].lapsed_ns != 0 && t->held[1].lapsed_ns == 0, "and who had it");
}

static void holds_in_a_limited_topic(struct sharing *t)
{
    struct sharing_held h;

    if (!join_ranked(t, 2))
        return;
    sharing_hold_back(t, "a", -1, 2);
    SHARE_CHECK(t, sharing_sent(t, 1), "limited");
    size_t low = put_ranked(t, -DUE_MS(900), 1);
    size_t high = put_ranked(t, -DUE_MS(100), 9);
    size_t middle = put_ranked(t, -DUE_MS(500), 5);
    SHARE_CHECK(t, CLAIMS(t, 0, 9, high, middle), "two, the highest");
    h = t->held[1];
    sharing_claim(t, 9, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && t->n_held == 0 && !t->answer.more, "no more");
    sharing_extend(t, h, SHARE_SHORT_NS);
    SHARE_CHECK(t, sharing_sent(t, 0), "a shorter lease");
    sharing_pass(t, SHARE_PASS_NS);
    size_t urgent = put_ranked(t, -DUE_MS(1), 200);
    SHARE_CHECK(t, CLAIMS(t, 1, 9, middle), "what lapsed has its place, and no other");
    sharing_done(t, t->held[0]);
    SHARE_CHECK(t, sharing_sent(t, 1) && CLAIMS(t, 1, 9, urgent), "then the highest");
    sharing_done(t, t->held[0]);
    SHARE_CHECK(t, sharing_sent(t, 1) && CLAIMS(t, 1, 9, low), "then the last");
}

/* Of a group the first in time comes first, whatever the others' priorities. */
static void lets_a_group_pass_by_time(struct sharing *t)
{
    struct sharing_held h;

    if (!join_ranked(t, 2))
        return;
    size_t jobs[3];
    for (int i = 0; i < 3; i++) {
        jobs[i] = ranked(t, -DUE_MS(900 - i * 100), 1 + i);
        t->base.jobs[jobs[i]].record.group = "g";
        t->base.jobs[jobs[i]].record.group_len = 1;
        sharing_put(t, jobs[i]);
    }
    size_t other = ranked(t, -DUE_MS(1), 2);
    sharing_put(t, other);
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    SHARE_CHECK(t, CLAIMS(t, 1, 9, other, jobs[0]), "one of the group, by its own priority");
    h = t->held[1];
    sharing_back(t, h, sharing_now(t) - DUE_MS(1)); /* it keeps its pass */
    size_t last = ranked(t, -DUE_MS(1), 0);
    sharing_put(t, last);
    SHARE_CHECK(t, sharing_sent(t, 1) && CLAIMS(t, 1, 1, jobs[0]), "again");
    sharing_round(t, t->held[0], sharing_now(t) + SHARE_LATER_NS); /* without it */
    SHARE_CHECK(t, sharing_sent(t, 1) && CLAIMS(t, 1, 9, jobs[1], last), "the next in time");
    sharing_cancel(t, jobs[0]);
    SHARE_CHECK(t, sharing_sent(t, 0), "cancelled");
    sharing_bury(t, t->held[0], "no good");
    SHARE_CHECK(t, sharing_sent(t, 1) && CLAIMS(t, 1, 9, jobs[2]), "and the last");
}

/* Whatever becomes of a job, it waits where it is to wait and nowhere else. */
static void follows_a_job_through_its_life(struct sharing *t)
{
    if (!join_ranked(t, 2))
        return;
    size_t a = put_ranked(t, -DUE_MS(900), 5);
    size_t b = put_ranked(t, -DUE_MS(800), 5);
    size_t c = put_ranked(t, SHARE_LATER_NS, 9);
    sharing_move(t, a, sharing_now(t) - DUE_MS(700)); /* behind b */
    sharing_move(t, c, sharing_now(t) - DUE_MS(1));   /* before all */
    SHARE_CHECK(t, sharing_sent(t, 0) && CLAIMS(t, 1, 9, c, b, a), "moved");
    sharing_back(t, t->held[0], sharing_now(t) - DUE_MS(1));
    sharing_release(t, t->held[1]);
    sharing_bury(t, t->held[2], "no good");
    SHARE_CHECK(t, sharing_sent(t, 1), "given back");
    size_t d = put_ranked(t, -DUE_MS(1), 7);
    SHARE_CHECK(t, CLAIMS(t, 0, 9, c, d, b), "back");
    sharing_kick(t, a, sharing_now(t) - DUE_S(2));
    SHARE_CHECK(t, sharing_sent(t, 0), "kicked");
    size_t e = put_ranked(t, -DUE_MS(1), 6);
    sharing_move(t, e, sharing_now(t) + SHARE_LATER_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && CLAIMS(t, 0, 9, a), "and what is not due any more");
    sharing_cancel(t, e);
    SHARE_CHECK(t, sharing_sent(t, 0), "cancelled");
    size_t f = put_ranked(t, SHARE_LATER_NS, 8);
    size_t g = put_ranked(t, -DUE_S(9), 7);
    SHARE_CHECK(t, sharing_look(t, 0, f), "look");
    sharing_amend(t, f, sharing_now(t) - DUE_MS(1), "other", 5);
    SHARE_CHECK(t, sharing_sent(t, 0) && CLAIMS(t, 0, 9, f, g), "amended");
}

/* The order is that of who made it shared, until nobody shares it and it has no job; who says none
 * has it as it is. */
static void is_of_who_made_it(struct sharing *t)
{
    t->by_rank = false;
    SHARE_ANSWERS(t, sharing_join(t, 0), 0);
    SHARE_CHECK(t, t->base.info[0].by_priority == 0, "by time");
    t->by_rank = true;
    SHARE_ANSWERS(t, sharing_join(t, 1), DUE_EINVAL);
    SHARE_CHECK(t, t->base.error.text[0] != '\0' && t->base.error.hint[0] != '\0',
                "it is said why");
    sharing_leave(t, 0);
    SHARE_ANSWERS(t, sharing_join(t, 1), 0);
    SHARE_CHECK(t, t->base.info[1].by_priority == 1, "it was empty, and nobody shared it");
}

static void is_told_to_who_says_none(struct sharing *t)
{
    if (!join_ranked(t, 1))
        return;
    SHARE_CHECK(t, t->base.info[0].by_priority == 1, "by priority");
    t->by_rank = false;
    SHARE_ANSWERS(t, sharing_join(t, 1), 0);
    SHARE_CHECK(t, t->base.info[1].by_priority == 1, "it is told");
    size_t low = put_ranked(t, -DUE_MS(900), 1);
    size_t high = ranked(t, -DUE_MS(1), 2);
    sharing_put(t, high);
    SHARE_CHECK(t, sharing_sent(t, 1) && CLAIMS(t, 1, 9, high, low), "and has it");
    sharing_leave(t, 0);
    sharing_leave(t, 1);
    SHARE_ANSWERS(t, sharing_join(t, 2), 0);
    SHARE_CHECK(t, t->base.info[2].by_priority == 1, "it stays");
}

/* As many as no claim can take. */
static void holds_among_ten_thousand(struct sharing *t)
{
    enum { MANY = 10000 };
    size_t most = t->maker->store.jobs != 0 && t->maker->store.jobs < MANY
                      ? (size_t)t->maker->store.jobs
                      : MANY;
    size_t left = most;
    int last = 255;
    int64_t at_ns = INT64_MIN;

    if (!join_ranked(t, 2))
        return;
    int64_t now_ns = sharing_now(t);
    for (size_t i = 0; i < most; i++) {
        size_t job =
            suite_job(&t->base, "a", now_ns - DUE_MS(1 + (int64_t)(i * 7919 % most)), "w", 1);
        due_record *r = &t->base.jobs[job].record;

        r->priority = (uint8_t)(i * 31 % 256);
        r->id = suite_id(r->priority, t->base.info[0].writer, job);
        sharing_put(t, job);
        if (i % 200 == 199 || i + 1 == most)
            SHARE_CHECK(t, sharing_sent(t, 0), "put");
    }
    while (left > 0) {
        sharing_claim(t, 250, 0, SHARE_LONG_NS);
        SHARE_CHECK(t, sharing_sent(t, 1) && t->n_held > 0 && t->n_held <= left, "claim");
        for (size_t i = 0; i < t->n_held; i++) {
            const due_record *r = &t->base.jobs[t->held[i].job].record;

            SHARE_CHECK(t, r->priority < last || (r->priority == last && r->until_ns >= at_ns),
                        "%d behind %d", r->priority, last);
            last = r->priority;
            at_ns = r->until_ns;
        }
        left -= t->n_held;
    }
}

const struct suite_test_shared share_rank_tests[] = {
    { "rank: gives the highest of what is due", gives_the_highest_of_what_is_due },
    { "rank: goes by time and arrival among equals", goes_by_time_and_arrival_among_equals },
    { "rank: has every priority", has_every_priority },
    { "rank: puts what lapsed where its priority is", puts_what_lapsed_where_its_priority_is },
    { "rank: holds in a limited topic", holds_in_a_limited_topic },
    { "rank: lets a group pass by time", lets_a_group_pass_by_time },
    { "rank: follows a job through its life", follows_a_job_through_its_life },
    { "rank: is of who made it", is_of_who_made_it },
    { "rank: is told to who says none", is_told_to_who_says_none },
    { "rank: holds among ten thousand", holds_among_ten_thousand },
    { NULL, NULL },
};
