/* share_wait.c - who waits, and who is rung. */
#include "store/share_frame.h"

/* Nobody has rung, as far as can be told in that time. */
#define QUIET_NS DUE_MS(30)

static int hear_for(struct sharing *t, int s, struct due_heard *heard, int64_t ns)
{
    int64_t end_ns = suite_now_ns() + ns;
    int rc;

    do
        rc = sharing_verbs(t, s)->listen(t->base.stores[s], heard, end_ns);
    while (rc == DUE_EAGAIN && suite_now_ns() < end_ns);
    return rc;
}

static int listen_for(struct sharing *t, int s, int64_t ns)
{
    struct due_heard heard;

    return hear_for(t, s, &heard, ns);
}

static bool rung(struct sharing *t, int s)
{
    struct due_heard heard = { .alarm_ns = -1 };

    return hear_for(t, s, &heard, SUITE_SOON_NS) == 1 && heard.alarm_ns == 0;
}

/* It is told to come then, by the exchange that was answered last, and when that was. */
static bool told(struct sharing *t, int s, int64_t alarm_ns)
{
    struct due_heard heard = { .alarm_ns = 0 };

    return hear_for(t, s, &heard, SUITE_SOON_NS) == 1 &&
           llabs(heard.alarm_ns - alarm_ns) <= DUE_US(2) && heard.stamp == t->answer.stamp &&
           heard.now_ns >= t->answer.now_ns - DUE_US(2) &&
           heard.now_ns < t->answer.now_ns + SUITE_SOON_NS;
}

static bool quiet(struct sharing *t, int s)
{
    return listen_for(t, s, QUIET_NS) == 0;
}

/* So many have joined, and hear; a ring that may have been missed before is over. */
static bool listeners(struct sharing *t, int n)
{
    if (!sharing_all_join(t, n))
        return false;
    for (int s = 0; s < n; s++)
        for (int i = 0; i < 100 && listen_for(t, s, QUIET_NS) != 0; i++)
            ;
    return true;
}

/* Claims as process @s, again while it is told that there is more than the topics that it knew. */
static bool claims(struct sharing *t, int s, size_t need, size_t extra)
{
    for (int i = 0; i < 20; i++) {
        sharing_claim(t, need, extra, SHARE_LONG_NS);
        if (!sharing_sent(t, s))
            return false;
        if (t->n_held > 0 || !t->answer.more)
            break;
    }
    return true;
}

/* Process @s waits for a job of any topic. */
static bool waits(struct sharing *t, int s)
{
    sharing_wait(t, 1, SHARE_LONG_NS);
    return sharing_sent(t, s) && sharing_got(t, NULL, 0);
}

static bool put_by(struct sharing *t, int s, const char *topic, int64_t in_ns)
{
    sharing_put(t, sharing_job(t, topic, in_ns));
    return sharing_sent(t, s);
}

static void rings_one_who_waits(struct sharing *t)
{
    if (!listeners(t, 4))
        return;
    for (int s = 1; s < 4; s++) {
        SHARE_CHECK(t, waits(t, s), "%d waits", s);
        SHARE_CHECK(t, t->answer.alarm_ns == 0, "until it is rung");
    }
    SHARE_CHECK(t, put_by(t, 0, "a", -DUE_MS(1)), "put");
    SHARE_CHECK(t, t->answer.rang == 1, "rang %u", t->answer.rang);
    SHARE_CHECK(t, rung(t, 1), "who has waited longest");
    SHARE_CHECK(t, quiet(t, 1), "once");
    SHARE_CHECK(t, quiet(t, 2) && quiet(t, 3), "nobody else");
    SHARE_CHECK(t, sharing_drain(t, 1, 1), "and it is there");
}

static void rings_nobody_who_does_not_wait(struct sharing *t)
{
    if (!listeners(t, 2))
        return;
    sharing_claim(t, 1, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && t->answer.alarm_ns == -1, "it does not wait");
    SHARE_CHECK(t, put_by(t, 0, "a", -DUE_MS(1)) && t->answer.rang == 0, "nobody waits");
    sharing_wait(t, 1, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && t->n_held == 1, "it gets what it needs");
    SHARE_CHECK(t, t->answer.alarm_ns == -1, "and does not wait");
    SHARE_CHECK(t, put_by(t, 0, "a", -DUE_MS(1)) && t->answer.rang == 0, "nobody waits");
    SHARE_CHECK(t, quiet(t, 1), "nor is rung");
}

/* One leads, one comes a little later in case it does not, the others sleep. */
static void sets_two_alarms_for_a_head(struct sharing *t)
{
    int64_t head_ns;

    if (!listeners(t, 4) || !put_by(t, 0, "a", SHARE_LATER_NS))
        return;
    head_ns = t->base.jobs[0].record.until_ns;
    for (int s = 0; s < 4; s++) {
        int64_t wanted_ns = s == 0 ? head_ns : s == 1 ? head_ns + DUE_RING_NS : 0;

        SHARE_CHECK(t, waits(t, s), "%d waits", s);
        SHARE_CHECK(t, llabs(t->answer.alarm_ns - wanted_ns) <= DUE_US(2), "alarm of %d: %lld off",
                    s, (long long)(t->answer.alarm_ns - wanted_ns));
        SHARE_CHECK(t, t->answer.rang == 0, "nobody needs to be rung");
    }
}

static void tells_of_an_earlier_head(struct sharing *t)
{
    if (!listeners(t, 3) || !put_by(t, 0, "a", 2 * SHARE_LATER_NS))
        return;
    for (int s = 1; s < 3; s++)
        SHARE_CHECK(t, waits(t, s) && t->answer.alarm_ns > 0, "both have alarms");
    SHARE_CHECK(t, put_by(t, 0, "a", SHARE_LATER_NS) && t->answer.rang == 0, "nobody is rung");
    int64_t head_ns = t->base.jobs[1].record.until_ns;
    SHARE_CHECK(t, told(t, 1, head_ns), "the one that would have come first comes for it");
    SHARE_CHECK(t, told(t, 2, head_ns + DUE_RING_NS), "and the other one a little later");
    SHARE_CHECK(t, put_by(t, 0, "a", SHARE_LATER_NS), "another one");
    SHARE_CHECK(t, quiet(t, 1) && quiet(t, 2), "that is known");
}

/* Nobody has to ask for it: who sleeps is told, and the others sleep on. */
static void tells_two_of_a_head(struct sharing *t)
{
    if (!listeners(t, 4))
        return;
    for (int s = 1; s < 4; s++)
        SHARE_CHECK(t, waits(t, s) && t->answer.alarm_ns == 0, "%d sleeps", s);
    SHARE_CHECK(t, put_by(t, 0, "a", SHARE_LATER_NS) && t->answer.rang == 0, "nobody is rung");
    int64_t head_ns = t->base.jobs[0].record.until_ns;
    SHARE_CHECK(t, told(t, 1, head_ns), "who has waited longest");
    SHARE_CHECK(t, told(t, 2, head_ns + DUE_RING_NS), "and the next, a little later");
    SHARE_CHECK(t, quiet(t, 3), "nobody else");
}

/* The last thing that it hears is that time, or a ring (0): messages that come while it listens are
 * not put together. */
static bool hears_last(struct sharing *t, int s, int64_t alarm_ns)
{
    struct due_heard heard = { .alarm_ns = 0 };
    struct due_heard last = { .alarm_ns = DUE_FOREVER };

    while (llabs(last.alarm_ns - alarm_ns) > DUE_US(2) &&
           hear_for(t, s, &heard, SUITE_SOON_NS) == 1)
        last = heard;
    return llabs(last.alarm_ns - alarm_ns) <= DUE_US(2) && quiet(t, s);
}

/* Told one time after another before it listens: the earliest counts, and a ring before that. */
static void hears_the_earliest_of_what_it_is_told(struct sharing *t)
{
    if (!listeners(t, 2))
        return;
    SHARE_CHECK(t, waits(t, 1), "it sleeps");
    for (int i = 4; i > 1; i--)
        SHARE_CHECK(t, put_by(t, 0, "a", i * SHARE_LATER_NS), "earlier and earlier");
    SHARE_CHECK(t, hears_last(t, 1, t->base.jobs[2].record.until_ns), "the last one");
    SHARE_CHECK(t, put_by(t, 0, "a", SHARE_LATER_NS), "another time");
    SHARE_CHECK(t, put_by(t, 0, "a", -DUE_MS(1)) && t->answer.rang == 1, "and a ring");
    SHARE_CHECK(t, hears_last(t, 1, 0), "it is rung");
}

/* The alarms that are set come after it, if not by much. */
static void leads_for_a_head_before_the_alarms(struct sharing *t)
{
    size_t job;

    if (!listeners(t, 4) || !put_by(t, 0, "a", SHARE_LATER_NS))
        return;
    for (int s = 1; s < 4; s++)
        SHARE_CHECK(t, waits(t, s), "%d waits", s);
    job = sharing_job(t, "a", SHARE_LATER_NS);
    t->base.jobs[job].record.until_ns = t->base.jobs[0].record.until_ns - DUE_MS(10);
    t->base.jobs[job].record.deadline_ns = t->base.jobs[job].record.until_ns;
    sharing_put(t, job);
    SHARE_CHECK(t, sharing_sent(t, 0), "put, however long that has taken");
    SHARE_CHECK(t, told(t, 3, t->base.jobs[1].record.until_ns), "the one that sleeps comes for it");
    SHARE_CHECK(t, quiet(t, 1) && quiet(t, 2), "the first of the others comes soon after that");
}

/* What was not claimed, for want of the names of its topics, is not waited for. */
static void does_not_wait_while_more_is_due(struct sharing *t)
{
    char name[16];

    if (!listeners(t, 1))
        return;
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "topic %d", i);
        SHARE_CHECK(t, put_by(t, 0, name, -DUE_MS(1)), "put");
    }
    size_t got = 0;
    for (int i = 0; i < 20; i++) {
        sharing_wait(t, 100, SHARE_LONG_NS);
        SHARE_CHECK(t, sharing_sent(t, 0), "claim");
        got += t->n_held;
        SHARE_CHECK(t, got == 20 || t->answer.more != 0, "%zu of 20", got);
        SHARE_CHECK(t, got == 20 || t->answer.alarm_ns == -1, "%zu of 20", got);
        if (!t->answer.more)
            break;
    }
    SHARE_CHECK(t, got == 20, "%zu of 20", got);
}

static void does_not_ring_for_a_later_head(struct sharing *t)
{
    if (!listeners(t, 3) || !put_by(t, 0, "a", SHARE_LATER_NS))
        return;
    for (int s = 1; s < 3; s++)
        SHARE_CHECK(t, waits(t, s), "%d waits", s);
    SHARE_CHECK(t, put_by(t, 0, "a", 2 * SHARE_LATER_NS) && t->answer.rang == 0, "nobody");
    SHARE_CHECK(t, quiet(t, 1) && quiet(t, 2), "is rung");
}

/* Whoever was rung is stopped: a look after the grace rings the next one. */
static void rings_another_if_one_does_not_come(struct sharing *t)
{
    if (!listeners(t, 3))
        return;
    for (int s = 1; s < 3; s++)
        SHARE_CHECK(t, waits(t, s), "%d waits", s);
    SHARE_CHECK(t, put_by(t, 0, "a", -DUE_MS(1)) && rung(t, 1), "the first is rung");
    sharing_pass(t, 2 * DUE_RING_NS);
    SHARE_ANSWERS(
        t, sharing_verbs(t, 0)->beat(t->base.stores[0], &(struct due_beat){ 0 }, suite_soon()), 1);
    SHARE_CHECK(t, rung(t, 2), "then the second");
    SHARE_CHECK(t, sharing_drain(t, 2, 1), "and it is there");
    SHARE_ANSWERS(
        t, sharing_verbs(t, 0)->beat(t->base.stores[0], &(struct due_beat){ 0 }, suite_soon()), 0);
}

/* The same where they wait for a topic by its name. */
static void rings_another_for_a_topic_by_name(struct sharing *t)
{
    static const char *const wanted[] = { "a" };

    if (!listeners(t, 3))
        return;
    for (int s = 1; s < 3; s++) {
        sharing_wait(t, 1, SHARE_LONG_NS);
        sharing_of(t, wanted, 1);
        SHARE_CHECK(t, sharing_sent(t, s) && t->answer.alarm_ns == 0, "%d waits", s);
    }
    SHARE_CHECK(t, put_by(t, 0, "a", -DUE_MS(1)) && rung(t, 1), "the first is rung");
    sharing_pass(t, 2 * DUE_RING_NS);
    SHARE_ANSWERS(
        t, sharing_verbs(t, 0)->beat(t->base.stores[0], &(struct due_beat){ 0 }, suite_soon()), 1);
    SHARE_CHECK(t, rung(t, 2), "then the second");
    SHARE_CHECK(t, sharing_drain(t, 2, 1), "and it is there");
}

static void rings_past_who_was_killed(struct sharing *t)
{
    if (!listeners(t, 3))
        return;
    for (int s = 1; s < 3; s++)
        SHARE_CHECK(t, waits(t, s), "%d waits", s);
    sharing_vanish(t, 1);
    SHARE_CHECK(t, put_by(t, 0, "a", -DUE_MS(1)), "put");
    SHARE_CHECK(t, !t->maker->knows_deaths || rung(t, 2), "the other one");
    if (!t->maker->knows_deaths &&
        listen_for(t, 2, DUE_MS(200)) != 1) { /* its end was not known yet */
        sharing_pass(t, 2 * DUE_RING_NS);
        SHARE_ANSWERS(
            t, sharing_verbs(t, 0)->beat(t->base.stores[0], &(struct due_beat){ 0 }, suite_soon()),
            1);
        SHARE_CHECK(t, rung(t, 2), "after the grace");
    }
    SHARE_CHECK(t, sharing_drain(t, 2, 1), "it is there");
}

static void rings_for_its_own_topics_only(struct sharing *t)
{
    static const char *const wanted[] = { "mine", "ours" };

    if (!listeners(t, 2))
        return;
    sharing_wait(t, 1, SHARE_LONG_NS);
    sharing_of(t, wanted, 2);
    SHARE_CHECK(t, sharing_sent(t, 1) && t->answer.alarm_ns == 0, "it waits");
    SHARE_CHECK(t, put_by(t, 0, "yours", -DUE_MS(1)) && t->answer.rang == 0, "another's");
    SHARE_CHECK(t, quiet(t, 1), "it is not rung");
    SHARE_CHECK(t, put_by(t, 0, "ours", -DUE_MS(1)) && t->answer.rang == 1, "one of its own");
    SHARE_CHECK(t, rung(t, 1), "it is");
}

/* The one who was to come goes: another takes its place. */
static void tells_when_who_leads_leaves(struct sharing *t)
{
    if (!listeners(t, 4) || !put_by(t, 0, "a", SHARE_LATER_NS))
        return;
    for (int s = 1; s < 4; s++)
        SHARE_CHECK(t, waits(t, s), "%d waits", s);
    sharing_leave(t, 1);
    SHARE_CHECK(t, told(t, 3, t->base.jobs[0].record.until_ns), "the one that sleeps");
}

/* Acks alone end it too. */
static void ends_to_wait_with_the_next_exchange(struct sharing *t)
{
    struct sharing_held h;

    if (!listeners(t, 2) || !sharing_have(t, 1, sharing_job(t, "a", -DUE_MS(1)), SHARE_LONG_NS, &h))
        return;
    sharing_wait(t, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && t->answer.alarm_ns > 0, "until the lease ends");
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 1), "done");
    SHARE_CHECK(t, put_by(t, 0, "a", -DUE_MS(1)) && t->answer.rang == 0, "nobody waits");
}

/* Nobody waited when all was got that there was, in more topics than a claim names. */
static void waits_for_what_is_left(struct sharing *t)
{
    enum { N = 20 };
    char names[N][8];

    if (!listeners(t, 2))
        return;
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i);
        const char *of[] = { names[i] };
        size_t job = sharing_job(t, names[i], -DUE_MS(5));

        SHARE_CHECK(t, (sharing_put(t, job), sharing_sent(t, 0)), "put");
        sharing_claim(t, 1, 0, SHARE_LONG_NS);
        sharing_of(t, of, 1);
        SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, &job, 1), "got");
    }
    int claims = 0;
    do {
        sharing_wait(t, claims % 2 == 0, SHARE_LONG_NS);
        SHARE_CHECK(t, sharing_sent(t, 1) && t->n_held == 0, "nothing is due");
    } while (t->answer.alarm_ns < 0 && ++claims < N);
    SHARE_CHECK(t, t->answer.alarm_ns >= 0 && t->answer.more == 0, "it waits in the end");
    SHARE_CHECK(t, put_by(t, 0, "t7", -DUE_MS(1)) && t->answer.rang == 1 && rung(t, 1), "rung");
}

/* Also where it waited for a topic by its name, and whatever it does is of another. */
static void ends_to_wait_for_a_topic_by_name(struct sharing *t)
{
    static const char *const wanted[] = { "b" };
    struct sharing_held h;

    if (!listeners(t, 3) || !sharing_have(t, 1, sharing_job(t, "a", -DUE_MS(1)), SHARE_LONG_NS, &h))
        return;
    sharing_wait(t, 1, SHARE_LONG_NS);
    sharing_of(t, wanted, 1);
    SHARE_CHECK(t, sharing_sent(t, 1) && t->answer.alarm_ns == 0, "it waits");
    SHARE_CHECK(t, put_by(t, 0, "b", SHARE_LATER_NS), "put");
    SHARE_CHECK(t, told(t, 1, t->base.jobs[1].record.until_ns), "it is to come for that");
    sharing_wait(t, 1, SHARE_LONG_NS);
    sharing_of(t, wanted, 1);
    SHARE_CHECK(t, sharing_sent(t, 2) && t->answer.alarm_ns > 0, "another after it");
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 1), "done");
    SHARE_CHECK(t, told(t, 2, t->base.jobs[1].record.until_ns), "the other comes first");
    SHARE_CHECK(t, put_by(t, 0, "b", -DUE_MS(1)) && rung(t, 2) && quiet(t, 1), "nobody else");
}

static void waits_without_a_claim(struct sharing *t)
{
    if (!listeners(t, 2))
        return;
    sharing_wait(t, 0, 0);
    SHARE_CHECK(t, sharing_sent(t, 1) && t->answer.alarm_ns == 0, "it waits");
    SHARE_CHECK(t, put_by(t, 0, "a", -DUE_MS(1)) && rung(t, 1), "and is rung");
}

static void passes_a_ring_on(struct sharing *t)
{
    if (!listeners(t, 3))
        return;
    for (int s = 1; s < 3; s++)
        SHARE_CHECK(t, waits(t, s), "%d waits", s);
    SHARE_CHECK(t, put_by(t, 0, "a", -DUE_MS(1)) && rung(t, 1), "the first is rung");
    sharing_claim(t, 0, 0, 0);
    SHARE_CHECK(t, sharing_sent(t, 1), "it has no use for it");
    SHARE_CHECK(t, rung(t, 2), "the second has");
}

/* Somebody sleeps for want of it. */
static void gives_nothing_extra_while_others_wait(struct sharing *t)
{
    if (!listeners(t, 3))
        return;
    for (int s = 1; s < 3; s++)
        SHARE_CHECK(t, waits(t, s), "%d waits", s);
    for (int i = 0; i < 3; i++)
        sharing_put(t, sharing_job(t, "a", -DUE_MS(1)));
    SHARE_CHECK(t, sharing_sent(t, 0) && t->answer.rang == 1, "three jobs, one ring");
    SHARE_CHECK(t, claims(t, 1, 1, 5) && t->n_held == 1, "%zu jobs", t->n_held);
    SHARE_CHECK(t, rung(t, 2), "the next one is rung");
    SHARE_CHECK(t, claims(t, 2, 1, 5) && t->n_held == 2, "all that is left");
}

/* A burst wakes as many as it needs, each the next ones. */
static void rings_two_if_much_is_due(struct sharing *t)
{
    if (!listeners(t, 4))
        return;
    for (int s = 1; s < 4; s++)
        SHARE_CHECK(t, waits(t, s), "%d waits", s);
    for (int i = 0; i < 9; i++)
        sharing_put(t, sharing_job(t, "a", -DUE_MS(1)));
    SHARE_CHECK(t, sharing_sent(t, 0) && rung(t, 1), "the first is rung");
    SHARE_CHECK(t, claims(t, 1, 1, 0) && t->n_held == 1, "one of nine");
    SHARE_CHECK(t, rung(t, 2) && rung(t, 3), "both others");
}

/* A lease is a deadline like any other. */
static void has_an_alarm_for_the_end_of_a_lease(struct sharing *t)
{
    struct sharing_held h;

    if (!listeners(t, 2) || !sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(1)), SHARE_LONG_NS, &h))
        return;
    int64_t over_ns = t->answer.now_ns + SHARE_LONG_NS;
    SHARE_CHECK(t, waits(t, 1), "it waits");
    SHARE_CHECK(t, llabs(t->answer.alarm_ns - over_ns) <= DUE_US(2), "until the lease ends");
}

static void listens_until_it_is_woken(struct sharing *t)
{
    if (!listeners(t, 1))
        return;
    int64_t begun_ns = suite_now_ns();
    sharing_verbs(t, 0)->wake(t->base.stores[0]);
    SHARE_CHECK(t, listen_for(t, 0, SUITE_SOON_NS) != DUE_EAGAIN, "woken");
    SHARE_CHECK(t, suite_now_ns() - begun_ns < SUITE_SOON_NS / 2, "at once");
}

const struct suite_test_shared share_wait_tests[] = {
    { "wait: one who waits is rung", rings_one_who_waits },
    { "wait: nobody is rung who does not wait", rings_nobody_who_does_not_wait },
    { "wait: two alarms for a head", sets_two_alarms_for_a_head },
    { "wait: told of an earlier head", tells_of_an_earlier_head },
    { "wait: two are told of a head", tells_two_of_a_head },
    { "wait: the earliest of what is told", hears_the_earliest_of_what_it_is_told },
    { "wait: leads for a head before the alarms", leads_for_a_head_before_the_alarms },
    { "wait: not while more is due", does_not_wait_while_more_is_due },
    { "wait: not rung for a later head", does_not_ring_for_a_later_head },
    { "wait: another is rung if one does not come", rings_another_if_one_does_not_come },
    { "wait: another is rung for a topic by name", rings_another_for_a_topic_by_name },
    { "wait: rung past who was killed", rings_past_who_was_killed },
    { "wait: rung for its own topics only", rings_for_its_own_topics_only },
    { "wait: told when who leads leaves", tells_when_who_leads_leaves },
    { "wait: ends with the next exchange", ends_to_wait_with_the_next_exchange },
    { "wait: ends for a topic by name", ends_to_wait_for_a_topic_by_name },
    { "wait: begins without a claim", waits_without_a_claim },
    { "wait: a ring is passed on", passes_a_ring_on },
    { "wait: nothing extra while others wait", gives_nothing_extra_while_others_wait },
    { "wait: two are rung if much is due", rings_two_if_much_is_due },
    { "wait: an alarm for the end of a lease", has_an_alarm_for_the_end_of_a_lease },
    { "wait: for what is left", waits_for_what_is_left },
    { "wait: listens until it is woken", listens_until_it_is_woken },
    { NULL, NULL },
};
