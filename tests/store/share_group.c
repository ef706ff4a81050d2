/* share_group.c - groups: one job of each is had at a time, by whichever process. */
#include "store/share_frame.h"

/* Put @n jobs, each due a millisecond after the one before it; all are due. */
static bool put_all(struct sharing *t, const size_t *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sharing_put(t, jobs[i]);
    return sharing_sent(t, 0);
}

/* So many of group @group, due since 50 ms and later. */
static bool put_group(struct sharing *t, const char *group, size_t *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        jobs[i] = sharing_grouped(t, "a", -DUE_MS(50) + (int64_t)i * DUE_MS(1), group);
    return put_all(t, jobs, n);
}

/* Process @s claims up to 9 jobs, and these come. */
static bool claims(struct sharing *t, int s, const size_t *jobs, size_t n)
{
    sharing_claim(t, 9, 0, SHARE_LONG_NS);
    return sharing_sent(t, s) && sharing_got(t, jobs, n) && !t->answer.more;
}

static bool claims_one(struct sharing *t, int s, size_t job, struct sharing_held *h)
{
    bool came = claims(t, s, &job, 1);

    if (came)
        *h = t->held[0];
    return came;
}

static bool claims_none(struct sharing *t, int s)
{
    return claims(t, s, NULL, 0);
}

#define SOON_NS DUE_MS(400) /* longer than a few exchanges take, wherever */

static void pass_soon(struct sharing *t)
{
    for (int i = 0; i < 7; i++)
        sharing_pass(t, SHARE_PASS_NS);
}

static void one_at_a_time_in_order(struct sharing *t)
{
    struct sharing_held h;
    size_t g[3];

    if (!sharing_all_join(t, 3) || !put_group(t, "g", g, 3))
        return;
    for (size_t i = 0; i < 3; i++) {
        SHARE_CHECK(t, claims_one(t, 1, g[i], &h), "the next");
        SHARE_CHECK(t, claims_none(t, 2) && claims_none(t, 1), "for all");
        sharing_done(t, h);
        SHARE_CHECK(t, sharing_sent(t, 1), "done");
    }
    SHARE_CHECK(t, claims_none(t, 0), "there is no other");
    SHARE_CHECK(t, put_group(t, "g", g, 1) && claims_one(t, 0, g[0], &h), "and no pass is left");
}

/* Whatever is a beginning of another one's name, or has all bytes. */
static void others_are_not_held_up(struct sharing *t)
{
    static const char *const names[] = { "g", "h", "gg", "g0", "G" };
    static char longest[DUE_KEY_MAX + 1];
    size_t first[8];
    size_t n = 0;

    if (!sharing_all_join(t, 2))
        return;
    memset(longest, 'g', DUE_KEY_MAX);
    for (size_t i = 0; i < 5; i++)
        first[n++] = sharing_grouped(t, "a", -DUE_MS(90) + (int64_t)i, names[i]);
    first[n++] = sharing_grouped(t, "a", -DUE_MS(80), longest);
    first[n] = sharing_grouped(t, "a", -DUE_MS(70), "g"); /* a byte of zero in it */
    t->base.jobs[first[n]].record.group = "g\0x";
    t->base.jobs[first[n++]].record.group_len = 3;
    first[n++] = sharing_job(t, "a", -DUE_MS(60));
    SHARE_CHECK(t, put_all(t, first, n), "put");
    size_t behind = sharing_grouped(t, "a", -DUE_MS(55), names[0]);
    sharing_put(t, behind);
    for (size_t i = 1; i < 4; i++)
        sharing_put(t, sharing_grouped(t, "a", -DUE_MS(50), names[i]));
    sharing_put(t, sharing_grouped(t, "a", -DUE_MS(50), longest));
    SHARE_CHECK(t, sharing_sent(t, 0) && claims(t, 1, first, n), "one of each");
    struct sharing_held h = t->held[0];
    SHARE_CHECK(t, claims_none(t, 0), "and no other");
    size_t elsewhere = sharing_grouped(t, "b", -DUE_MS(40), "g");
    sharing_put(t, elsewhere);
    SHARE_CHECK(t, sharing_sent(t, 0) && claims(t, 1, &elsewhere, 1),
                "a group of another topic is another");
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_one(t, 0, behind, &h), "and keeps back nobody");
}

/* Of those that came together or one by one, later or earlier. */
static void the_first_of_those_that_wait_comes_first(struct sharing *t)
{
    struct sharing_held h;
    size_t g[4];

    if (!sharing_all_join(t, 2))
        return;
    for (size_t i = 0; i < 4; i++) { /* each before the one that came before it */
        g[i] = sharing_grouped(t, "a", -DUE_S(1) - (int64_t)i * DUE_S(5), "g");
        sharing_put(t, g[i]);
        SHARE_CHECK(t, i == 0 || i == 2 || sharing_sent(t, 0), "put");
    }
    for (size_t i = 4; i-- > 0;) {
        SHARE_CHECK(t, claims_one(t, 1, g[i], &h), "the first");
        sharing_done(t, h);
        SHARE_CHECK(t, sharing_sent(t, 1), "done");
    }
}

/* Of one time by priority, then as they came. */
static void those_of_one_time_come_by_their_ids(struct sharing *t)
{
    int64_t at_ns;
    struct sharing_held h;
    size_t g[3];

    if (!sharing_all_join(t, 2))
        return;
    at_ns = sharing_now(t) - DUE_MS(50);
    for (size_t i = 0; i < 3; i++) {
        g[i] = sharing_grouped(t, "a", 0, "g");
        due_record *r = &t->base.jobs[g[i]].record;

        r->deadline_ns = r->until_ns = at_ns;
        r->priority = i == 2 ? 9 : 0;
        r->id = suite_id(r->priority, t->base.info[0].writer, g[i]);
        sharing_put(t, g[i]);
        SHARE_CHECK(t, i == 1 || sharing_sent(t, 0), "put");
    }
    static const size_t order[] = { 2, 0, 1 };
    for (size_t i = 0; i < 3; i++) {
        SHARE_CHECK(t, claims_one(t, 1, g[order[i]], &h), "number %zu", i);
        sharing_done(t, h);
        SHARE_CHECK(t, sharing_sent(t, 1), "done");
    }
}

static void a_delayed_one_keeps_back_nobody(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 2))
        return;
    size_t later = sharing_grouped(t, "a", SOON_NS, "g");
    size_t now = sharing_grouped(t, "a", -DUE_S(2), "g");
    sharing_put(t, later);
    SHARE_CHECK(t, sharing_sent(t, 0), "one that is not due");
    sharing_put(t, now);
    SHARE_CHECK(t, sharing_sent(t, 0) && claims_one(t, 1, now, &h), "and one that is");
    pass_soon(t);
    SHARE_CHECK(t, claims_none(t, 1), "it is due, and kept back");
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_one(t, 0, later, &h), "then it comes");
}

static void one_that_is_tried_again_keeps_its_pass(struct sharing *t)
{
    struct sharing_held h;
    size_t g[2];

    if (!sharing_all_join(t, 2) || !put_group(t, "g", g, 2))
        return;
    SHARE_CHECK(t, claims_one(t, 0, g[0], &h), "the first");
    sharing_back(t, h, sharing_now(t) + SOON_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && claims_none(t, 1), "it waits, and nobody overtakes it");
    size_t earlier = sharing_grouped(t, "a", -DUE_S(9), "g");
    sharing_put(t, earlier);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_none(t, 1), "nor does one that comes later");
    pass_soon(t);
    SHARE_CHECK(t, claims_one(t, 1, g[0], &h), "again, elsewhere");
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_one(t, 0, earlier, &h), "then the others");
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 0) && claims_one(t, 0, g[1], &h), "in order");
}

static void a_next_round_gives_the_pass_back(struct sharing *t)
{
    struct sharing_held h;
    struct sharing_held other;
    size_t g[2];

    if (!sharing_all_join(t, 2) || !put_group(t, "g", g, 2))
        return;
    SHARE_CHECK(t, claims_one(t, 0, g[0], &h), "the first");
    sharing_round(t, h, sharing_now(t) + SOON_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && claims_one(t, 1, g[1], &other), "the next comes");
    pass_soon(t);
    SHARE_CHECK(t, claims_none(t, 0), "the round waits for it");
    sharing_done(t, other);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_one(t, 1, g[0], &h), "and comes");
    sharing_round(t, h, sharing_now(t) + SOON_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_none(t, 1), "it is alone, and not due");
    pass_soon(t);
    SHARE_CHECK(t, claims_one(t, 0, g[0], &h), "another round");
}

static void the_dead_have_no_pass(struct sharing *t)
{
    struct sharing_held h;
    size_t g[2];

    if (!sharing_all_join(t, 2) || !put_group(t, "g", g, 2))
        return;
    SHARE_CHECK(t, claims_one(t, 0, g[0], &h), "the first");
    sharing_bury(t, h, "no good");
    SHARE_CHECK(t, sharing_sent(t, 0) && claims_one(t, 1, g[1], &h), "the next");
    sharing_kick(t, g[0], sharing_now(t));
    SHARE_CHECK(t, sharing_sent(t, 0) && claims_none(t, 0), "kicked, it is kept back");
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_one(t, 0, g[0], &h), "and comes");
    sharing_bury(t, h, "no good");
    SHARE_CHECK(t, sharing_sent(t, 0), "dead again");
    sharing_strike(t, g[0]);
    SHARE_CHECK(t, sharing_sent(t, 0) && put_group(t, "g", g, 1) && claims_one(t, 1, g[0], &h),
                "nothing is left of it");
}

/* Whoever waits with the pass, and is cancelled, moved, or gets another time with other content. */
static void who_is_taken_out_of_turn_gives_it_back(struct sharing *t)
{
    struct sharing_held h;
    size_t g[4];

    if (!sharing_all_join(t, 2) || !put_group(t, "g", g, 4))
        return;
    SHARE_CHECK(t, claims_one(t, 0, g[0], &h), "the first");
    sharing_back(t, h, sharing_now(t) + SHARE_LATER_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && claims_none(t, 1), "it has the pass");
    SHARE_CHECK(t, sharing_look(t, 1, g[0]), "it is there");
    sharing_amend(t, g[0], t->base.jobs[g[0]].record.until_ns, "other", 5);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_none(t, 1), "also with other content");
    sharing_move(t, g[0], sharing_now(t) + SHARE_LATER_NS + 1);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_one(t, 1, g[1], &h), "moved");
    sharing_back(t, h, sharing_now(t) + SHARE_LATER_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_none(t, 1), "it has it now");
    sharing_cancel(t, g[1]);
    SHARE_CHECK(t, sharing_sent(t, 0) && claims_one(t, 1, g[2], &h), "cancelled");
    sharing_back(t, h, sharing_now(t) + SHARE_LATER_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_none(t, 1) && sharing_look(t, 0, g[2]), "and it");
    sharing_amend(t, g[2], sharing_now(t) + SHARE_LATER_NS + DUE_S(1), "late", 4);
    SHARE_CHECK(t, sharing_sent(t, 0) && claims_one(t, 1, g[3], &h), "another time");
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_none(t, 1), "the others are not due");
}

/* What is kept back is found, counted, listed, moved, changed and cancelled like any other. */
static void what_is_kept_back_is_there(struct sharing *t)
{
    struct due_census_all all;
    struct due_page at = { .topic = "a", .from_ns = INT64_MIN };
    struct sharing_held h;
    size_t g[5];
    size_t seen[9];
    bool more;

    if (!sharing_all_join(t, 2) || !put_group(t, "g", g, 5))
        return;
    size_t later = sharing_grouped(t, "a", SHARE_LATER_NS, "g");
    size_t other = sharing_job(t, "a", SHARE_LATER_NS / 2);
    sharing_put(t, later);
    sharing_put(t, other);
    SHARE_CHECK(t, sharing_sent(t, 0) && claims_one(t, 0, g[0], &h), "the first");
    SHARE_ANSWERS(t, sharing_find(t, 1, g[1]), 0);
    SHARE_ANSWERS(t, sharing_census(t, 1, &all), 0);
    struct due_census_topic n = sharing_counted("a");
    SHARE_CHECK(t, n.ready == 4 && n.delayed == 2 && n.leased == 1, "%d, %d, %d", (int)n.ready,
                (int)n.delayed, (int)n.leased);
    SHARE_CHECK(t, n.oldest_ns / 1000 == (t->base.jobs[g[1]].record.until_ns + 999) / 1000,
                "oldest");
    size_t page = sharing_page(t, 1, &at, 3, seen, &more);
    SHARE_CHECK(t, page == 3 && more && seen[0] == g[1] && seen[2] == g[3], "a page");
    page = sharing_page(t, 1, &at, 9, seen, &more);
    SHARE_CHECK(t, page == 3 && !more && seen[0] == g[4] && seen[1] == other && seen[2] == later,
                "and the rest");
    sharing_cancel(t, g[1]);
    sharing_move(t, g[2], sharing_now(t) + SHARE_LATER_NS);
    sharing_move(t, later, sharing_now(t) - DUE_S(9)); /* now it is the first */
    SHARE_CHECK(t, sharing_sent(t, 1) && sharing_look(t, 1, g[3]), "changed");
    sharing_amend(t, g[3], t->base.jobs[g[3]].record.until_ns, "else", 4);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_none(t, 1), "all are kept back still");
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 0) && claims_one(t, 1, later, &h), "in the new order");
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_one(t, 1, g[3], &h), "then");
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_one(t, 1, g[4], &h), "and then");
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_none(t, 1), "one is not due");
}

/* The one in front, which nobody has had yet, makes way. */
static void one_in_front_that_goes_is_followed(struct sharing *t)
{
    struct sharing_held h;
    size_t g[4];

    if (!sharing_all_join(t, 2) || !put_group(t, "g", g, 4))
        return;
    sharing_cancel(t, g[0]);
    SHARE_CHECK(t, sharing_sent(t, 0), "cancelled");
    sharing_move(t, g[1], sharing_now(t) + SHARE_LATER_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && claims_one(t, 1, g[2], &h), "moved");
    sharing_done(t, h);
    sharing_move(t, g[3], sharing_now(t) - DUE_S(9));
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_one(t, 1, g[3], &h), "moved to before it was");
}

/* What is let lapse is had again, with the pass; also if its process was killed. */
static void a_lease_that_is_over_keeps_the_pass(struct sharing *t)
{
    struct sharing_held h;
    size_t g[2];

    if (!sharing_all_join(t, 3))
        return;
    g[0] = sharing_grouped(t, "a", -DUE_MS(9), "g");
    g[1] = sharing_grouped(t, "a", -DUE_MS(8), "g");
    SHARE_CHECK(t, sharing_have(t, 1, g[0], SOON_NS, &h), "had");
    sharing_put(t, g[1]);
    SHARE_CHECK(t, sharing_sent(t, 0), "another");
    sharing_vanish(t, 1);
    SHARE_CHECK(t, claims_none(t, 2), "its lease is not over");
    pass_soon(t);
    struct sharing_held again;
    SHARE_CHECK(t, claims_one(t, 2, g[0], &again) && again.lapsed_ns != 0, "the same once more");
    SHARE_CHECK(t, claims_none(t, 0), "and the other is kept back");
    sharing_done(t, again);
    SHARE_CHECK(t, sharing_sent(t, 2) && claims_one(t, 0, g[1], &h), "until it has ended");
}

/* An answer of who was too late moves nobody. */
static void a_late_answer_lets_nobody_through(struct sharing *t)
{
    struct sharing_held h;
    struct sharing_held again;
    size_t g[2];

    if (!sharing_all_join(t, 2))
        return;
    g[0] = sharing_grouped(t, "a", -DUE_MS(9), "g");
    g[1] = sharing_grouped(t, "a", -DUE_MS(8), "g");
    SHARE_CHECK(t, sharing_have(t, 0, g[0], SOON_NS, &h), "had");
    sharing_put(t, g[1]);
    SHARE_CHECK(t, sharing_sent(t, 0), "another");
    pass_soon(t);
    SHARE_CHECK(t, claims_one(t, 1, g[0], &again), "once more");
    sharing_done(t, h);
    SHARE_ANSWERS(t, sharing_send(t, 0), 0);
    SHARE_CHECK(t, t->results[0] == DUE_ESTALE && claims_none(t, 0), "too late");
    sharing_done(t, again);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_one(t, 0, g[1], &h), "in time");
}

static void one_that_was_not_begun_comes_first_again(struct sharing *t)
{
    struct sharing_held h;
    size_t g[2];

    if (!sharing_all_join(t, 2) || !put_group(t, "g", g, 2))
        return;
    SHARE_CHECK(t, claims_one(t, 0, g[0], &h), "the first");
    sharing_release(t, h);
    size_t earlier = sharing_grouped(t, "a", -DUE_S(9), "g");
    SHARE_CHECK(t, sharing_sent(t, 0), "released");
    sharing_put(t, earlier);
    SHARE_CHECK(t, sharing_sent(t, 0) && claims_one(t, 1, g[0], &h), "it has the pass still");
    sharing_start(t, h, 1);
    SHARE_CHECK(t, sharing_sent(t, 1), "begun");
    sharing_extend(t, h, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_none(t, 0), "and for longer");
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_one(t, 0, earlier, &h), "then the others");
}

/* Who waits sleeps while the group is held, is rung when it is free, and looks by himself when its
 * lease ends. */
static void who_waits_is_rung_when_one_follows(struct sharing *t)
{
    struct sharing_held h;
    size_t g[3];

    if (!sharing_all_join(t, 3) || !put_group(t, "g", g, 2))
        return;
    SHARE_CHECK(t, claims_one(t, 0, g[0], &h), "the first");
    sharing_wait(t, 1, SHARE_LONG_NS);
    SHARE_CHECK(t,
                sharing_sent(t, 1) && t->n_held == 0 &&
                    t->answer.alarm_ns > sharing_now(t) + SHARE_LONG_NS / 2,
                "it waits for the end of the lease");
    g[2] = sharing_grouped(t, "a", -DUE_MS(1), "g");
    sharing_put(t, g[2]);
    SHARE_CHECK(t, sharing_sent(t, 2) && t->answer.rang == 0, "what is kept back rings nobody");
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 0) && t->answer.rang == 1, "what follows does");
    sharing_wait(t, 1, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && sharing_got(t, &g[1], 1), "it comes");
    h = t->held[0];
    sharing_back(t, h, sharing_now(t) + SHARE_LATER_NS);
    SHARE_CHECK(t, sharing_sent(t, 1), "and waits to be tried again");
    sharing_wait(t, 1, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 2) && t->n_held == 0, "nothing is due");
    sharing_cancel(t, g[1]);
    SHARE_CHECK(t, sharing_sent(t, 0) && t->answer.rang == 1, "a cancel lets the next through");
}

static void a_limit_and_a_pause_hold_back_too(struct sharing *t)
{
    struct sharing_held h;
    size_t g[2];
    size_t k[2];

    if (!sharing_all_join(t, 2))
        return;
    for (size_t i = 0; i < 2; i++) {
        g[i] = sharing_grouped(t, "a", DUE_MS(40) * (int64_t)i - DUE_MS(900), "g");
        k[i] = sharing_grouped(t, "a", DUE_MS(40) * (int64_t)i - DUE_MS(880), "k");
        sharing_put(t, g[i]);
        sharing_put(t, k[i]);
    }
    sharing_hold_back(t, "a", -1, 1);
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    SHARE_CHECK(t, claims_one(t, 0, g[0], &h), "one of all");
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 0) && claims_one(t, 1, k[0], &h), "the first of both groups");
    sharing_hold_back(t, "a", 1, 0);
    SHARE_CHECK(t, sharing_sent(t, 0), "paused, without a limit");
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_none(t, 0), "nobody");
    sharing_hold_back(t, "a", 0, -1);
    const size_t both[] = { g[1], k[1] };
    SHARE_CHECK(t, sharing_sent(t, 0) && claims(t, 1, both, 2), "the next of each");
}

/* A job whose key is another's is not in the way of its group. */
static void a_key_that_is_taken_leaves_no_trace(struct sharing *t)
{
    struct sharing_held h;
    size_t g[3];

    if (!sharing_all_join(t, 2))
        return;
    for (size_t i = 0; i < 3; i++) {
        g[i] = sharing_grouped(t, "a", -DUE_MS(50) + (int64_t)i * DUE_MS(1), i == 0 ? "h" : "g");
        t->base.jobs[g[i]].record.key = i < 2 ? "key" : "other";
        t->base.jobs[g[i]].record.key_len = i < 2 ? 3 : 5;
        sharing_put(t, g[i]);
    }
    SHARE_ANSWERS(t, sharing_send(t, 0), 0);
    SHARE_CHECK(t, t->results[0] == 0 && t->results[1] == DUE_EEXIST && t->results[2] == 0, "put");
    const size_t both[] = { g[0], g[2] };
    SHARE_CHECK(t, claims(t, 1, both, 2), "the others");
    h = t->held[1];
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 1) && claims_none(t, 1), "and nothing more");
}

/* Sent once more, an exchange lets through the same, and nobody else. */
static void an_exchange_in_doubt_lets_through_once(struct sharing *t)
{
    struct sharing_held h;
    size_t g[3];

    if (!suite_has(&t->base, t->maker->doubt != NULL, "no answer can be lost"))
        return;
    if (!sharing_all_join(t, 2) || !put_group(t, "g", g, 3))
        return;
    t->maker->doubt(t->maker->store.ctx, t->base.stores[0], true, true);
    SHARE_CHECK(t, claims_one(t, 0, g[0], &h), "the first");
    sharing_done(t, h);
    sharing_claim(t, 9, 0, SHARE_LONG_NS);
    t->maker->doubt(t->maker->store.ctx, t->base.stores[0], true, true);
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, &g[1], 1), "one follows");
    SHARE_CHECK(t, claims_none(t, 1), "and only that");
}

const struct suite_test_shared share_group_tests[] = {
    { "group: one at a time, in order", one_at_a_time_in_order },
    { "group: others are not held up", others_are_not_held_up },
    { "group: the first of those that wait comes first", the_first_of_those_that_wait_comes_first },
    { "group: those of one time come by their ids", those_of_one_time_come_by_their_ids },
    { "group: a delayed one keeps back nobody", a_delayed_one_keeps_back_nobody },
    { "group: one that is tried again keeps its pass", one_that_is_tried_again_keeps_its_pass },
    { "group: a next round gives the pass back", a_next_round_gives_the_pass_back },
    { "group: the dead have no pass", the_dead_have_no_pass },
    { "group: who is taken out of turn gives it back", who_is_taken_out_of_turn_gives_it_back },
    { "group: what is kept back is there", what_is_kept_back_is_there },
    { "group: one in front that goes is followed", one_in_front_that_goes_is_followed },
    { "group: a lease that is over keeps the pass", a_lease_that_is_over_keeps_the_pass },
    { "group: a late answer lets nobody through", a_late_answer_lets_nobody_through },
    { "group: one that was not begun comes first again", one_that_was_not_begun_comes_first_again },
    { "group: who waits is rung when one follows", who_waits_is_rung_when_one_follows },
    { "group: a limit and a pause hold back too", a_limit_and_a_pause_hold_back_too },
    { "group: a key that is taken leaves no trace", a_key_that_is_taken_leaves_no_trace },
    { "group: an exchange in doubt lets through once", an_exchange_in_doubt_lets_through_once },
    { NULL, NULL },
};
