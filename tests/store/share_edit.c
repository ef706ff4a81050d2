/* share_edit.c - what those who know a job's id do to it, while nobody holds it. */
#include "store/share_frame.h"

/* A job that waits, one that is held, one that is dead. */
struct three {
    size_t waits;
    struct sharing_held held;
    size_t dead;
};

static bool three_states(struct sharing *t, struct three *it)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 2))
        return false;
    it->dead = sharing_job(t, "a", -DUE_MS(5));
    if (!sharing_have(t, 0, it->dead, SHARE_LONG_NS, &h))
        return false;
    sharing_bury(t, h, "no good");
    if (!sharing_sent(t, 0) ||
        !sharing_have(t, 0, sharing_job(t, "b", -DUE_MS(5)), SHARE_LONG_NS, &it->held))
        return false;
    it->waits = sharing_job(t, "a", SHARE_LATER_NS);
    sharing_put(t, it->waits);
    return sharing_sent(t, 0);
}

/* The result of the one change that was gathered. */
static int result(struct sharing *t, int s)
{
    int rc = sharing_send(t, s);

    return rc != 0 ? rc : t->results[0];
}

static void cancels_what_waits(struct sharing *t)
{
    struct three it;

    if (!three_states(t, &it))
        return;
    sharing_cancel(t, it.waits);
    SHARE_ANSWERS(t, result(t, 1), 0);
    SHARE_ANSWERS(t, sharing_find(t, 0, it.waits), DUE_ENOENT);
    sharing_cancel(t, it.waits);
    SHARE_ANSWERS(t, result(t, 0), DUE_ENOENT);
}

static void cancels_what_is_due(struct sharing *t)
{
    if (!sharing_all_join(t, 2))
        return;
    size_t job = sharing_job(t, "a", -DUE_MS(5));
    sharing_put(t, job);
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    sharing_cancel(t, job);
    SHARE_ANSWERS(t, result(t, 1), 0);
    SHARE_CHECK(t, sharing_drain(t, 0, 0), "nothing is due");
}

/* By whoever knows the id, and not the topic. */
static void cancels_by_the_id_alone(struct sharing *t)
{
    struct three it;

    if (!three_states(t, &it))
        return;
    for (int i = 0; i < 2; i++) {
        sharing_cancel(t, i == 0 ? it.held.job : it.waits);
        t->base.changes[0].record.topic = NULL;
        SHARE_ANSWERS(t, result(t, 1), i == 0 ? DUE_EBUSY : 0);
    }
    SHARE_ANSWERS(t, sharing_find(t, 0, it.waits), DUE_ENOENT);
    sharing_cancel(t, it.waits);
    t->base.changes[0].record.topic = NULL;
    SHARE_ANSWERS(t, result(t, 1), DUE_ENOENT);
}

/* Whatever is asked of it, also by its holder, as long as he does not name the lease. */
static void leaves_alone_what_is_held(struct sharing *t)
{
    struct three it;

    if (!three_states(t, &it))
        return;
    for (int s = 0; s < 2; s++) {
        sharing_cancel(t, it.held.job);
        SHARE_ANSWERS(t, result(t, s), DUE_EBUSY);
        sharing_move(t, it.held.job, sharing_now(t) + SHARE_LATER_NS);
        SHARE_ANSWERS(t, result(t, s), DUE_EBUSY);
    }
    sharing_done(t, it.held);
    SHARE_CHECK(t, sharing_sent(t, 0), "its holder ends it");
}

static void leaves_alone_a_job_of_a_lease_that_is_over(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 2) ||
        !sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(5)), SHARE_SHORT_NS, &h))
        return;
    sharing_pass(t, SHARE_PASS_NS);
    sharing_cancel(t, h.job);
    SHARE_ANSWERS(t, result(t, 1), DUE_EBUSY);
    SHARE_CHECK(t, sharing_drain(t, 1, 1), "it is due");
}

static void does_not_cancel_the_dead(struct sharing *t)
{
    struct three it;

    if (!three_states(t, &it))
        return;
    sharing_cancel(t, it.dead);
    t->base.changes[0].was_dead = 0;
    SHARE_ANSWERS(t, result(t, 1), DUE_ENOENT);
    SHARE_ANSWERS(t, sharing_find(t, 0, it.dead), 0);
}

static void strikes_off_the_dead_only(struct sharing *t)
{
    struct three it;

    if (!three_states(t, &it))
        return;
    sharing_strike(t, it.waits);
    t->base.changes[0].was_dead = 1;
    SHARE_ANSWERS(t, result(t, 1), DUE_ENOENT);
    sharing_strike(t, it.dead);
    SHARE_ANSWERS(t, result(t, 1), 0);
    SHARE_ANSWERS(t, sharing_find(t, 0, it.dead), DUE_ENOENT);
    SHARE_ANSWERS(t, sharing_find(t, 0, it.waits), 0);
}

/* The first to have died is dropped if it has not died anew, and as long as there are too many. */
static void strikes_off_those_that_are_too_many(struct sharing *t)
{
    struct sharing_held h;
    size_t dead[3];
    size_t shown[3];

    if (!sharing_all_join(t, 2))
        return;
    for (int i = 0; i < 3; i++) {
        dead[i] = sharing_job(t, i == 1 ? "a" : "b", -DUE_MS(5));
        if (!sharing_have(t, 0, dead[i], SHARE_LONG_NS, &h))
            return;
        sharing_bury(t, h, "no good");
        SHARE_CHECK(t, sharing_sent(t, 0), "buried");
    }
    sharing_strike(t, dead[0]);
    t->base.changes[0].was_ns += DUE_MS(1);
    SHARE_ANSWERS(t, result(t, 1), DUE_EAGAIN);
    sharing_strike(t, dead[0]);
    t->base.changes[0].dead_max = 3;
    SHARE_ANSWERS(t, result(t, 1), DUE_EAGAIN);
    for (int i = 0; i < 3; i++) {
        sharing_strike(t, dead[i]);
        t->base.changes[i].dead_max = 1;
    }
    SHARE_ANSWERS(t, sharing_send(t, 1), 0);
    SHARE_CHECK(t, t->results[0] + t->results[1] + t->results[2] == DUE_EAGAIN, "%d %d %d",
                t->results[0], t->results[1], t->results[2]);
    SHARE_CHECK(t, sharing_dead(t, 0, 0, 3, shown) == 1, "one is left");
    sharing_kick(t, shown[0], sharing_now(t) - DUE_MS(1));
    SHARE_ANSWERS(t, result(t, 0), 0);
    sharing_strike(t, shown[0]);
    t->base.changes[0].was_dead = 1;
    SHARE_ANSWERS(t, result(t, 1), DUE_ENOENT);
    SHARE_CHECK(t, sharing_drain(t, 1, 1), "it was kicked, and stays");
}

static void moves_to_an_earlier_and_a_later_time(struct sharing *t)
{
    struct three it;

    if (!three_states(t, &it))
        return;
    sharing_move(t, it.waits, sharing_now(t) - DUE_MS(1));
    SHARE_ANSWERS(t, result(t, 1), 0);
    SHARE_ANSWERS(t, sharing_find(t, 0, it.waits), 0);
    sharing_move(t, it.waits, sharing_now(t) + 2 * SHARE_LATER_NS);
    SHARE_ANSWERS(t, result(t, 0), 0);
    SHARE_CHECK(t, sharing_drain(t, 0, 0), "not due any more");
    sharing_move(t, it.waits, sharing_now(t) - DUE_MS(1));
    SHARE_ANSWERS(t, result(t, 1), 0);
    SHARE_CHECK(t, sharing_drain(t, 0, 1), "due");
}

/* Who moves it believes that it stands where it does not, or that it was never handed out. */
static void moves_only_what_has_not_changed(struct sharing *t)
{
    struct three it;

    if (!three_states(t, &it))
        return;
    sharing_move(t, it.waits, sharing_now(t));
    t->base.changes[0].was_ns -= DUE_MS(1);
    SHARE_ANSWERS(t, result(t, 1), DUE_EAGAIN);
    SHARE_ANSWERS(t, sharing_find(t, 0, it.waits), 0);
    sharing_start(t, it.held, 1);
    SHARE_CHECK(t, sharing_sent(t, 0), "begun");
    sharing_release(t, it.held);
    SHARE_CHECK(t, sharing_sent(t, 0), "released");
    sharing_move(t, it.held.job, sharing_now(t) + SHARE_LATER_NS);
    t->base.changes[0].record.attempts = 0;
    SHARE_ANSWERS(t, result(t, 1), DUE_EAGAIN);
    sharing_move(t, it.held.job, sharing_now(t) + SHARE_LATER_NS);
    SHARE_ANSWERS(t, result(t, 1), 0);
    SHARE_ANSWERS(t, sharing_find(t, 0, it.held.job), 0);
}

static void moves_nothing_unknown_or_dead(struct sharing *t)
{
    struct three it;

    if (!three_states(t, &it))
        return;
    size_t unknown = sharing_job(t, "a", 0);
    sharing_move(t, unknown, sharing_now(t));
    SHARE_ANSWERS(t, result(t, 1), DUE_ENOENT);
    sharing_move(t, it.dead, sharing_now(t));
    t->base.changes[0].was_dead = 0;
    t->base.changes[0].record.cause = 0;
    SHARE_ANSWERS(t, result(t, 1), DUE_ENOENT);
    SHARE_ANSWERS(t, sharing_find(t, 0, it.dead), 0);
}

static void brings_back_the_dead(struct sharing *t)
{
    struct three it;
    size_t shown[2];

    if (!three_states(t, &it))
        return;
    sharing_kick(t, it.dead, sharing_now(t) - DUE_MS(1));
    t->base.changes[0].was_ns += DUE_MS(1);
    SHARE_ANSWERS(t, result(t, 1), DUE_EAGAIN);
    sharing_kick(t, it.dead, sharing_now(t) - DUE_MS(1));
    SHARE_ANSWERS(t, result(t, 1), 0);
    SHARE_CHECK(t, sharing_dead(t, 0, 0, 2, shown) == 0, "nobody is dead");
    sharing_claim(t, 2, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, &it.dead, 1), "due, and not dead");
    sharing_kick(t, it.waits, sharing_now(t));
    t->base.changes[0].was_dead = 1;
    SHARE_ANSWERS(t, result(t, 1), DUE_ENOENT);
}

/* Edits, new jobs and ends together: each has its own answer. */
static void makes_all_changes_in_one_exchange(struct sharing *t)
{
    struct three it;

    if (!three_states(t, &it))
        return;
    size_t fresh = sharing_job(t, "new", -DUE_MS(5));
    size_t unknown = sharing_job(t, "new", -DUE_MS(5));
    sharing_cancel(t, it.waits);
    sharing_cancel(t, unknown);
    sharing_put(t, fresh);
    sharing_kick(t, it.dead, sharing_now(t) + SHARE_LATER_NS);
    sharing_done(t, it.held);
    SHARE_ANSWERS(t, sharing_send(t, 0), 0);
    SHARE_CHECK(t,
                t->results[0] == 0 && t->results[1] == DUE_ENOENT && t->results[2] == 0 &&
                    t->results[3] == 0 && t->results[4] == 0,
                "%d %d %d %d %d", t->results[0], t->results[1], t->results[2], t->results[3],
                t->results[4]);
    SHARE_CHECK(t, sharing_drain(t, 1, 1), "the new one is due");
    SHARE_ANSWERS(t, sharing_find(t, 1, it.dead), 0);
    SHARE_ANSWERS(t, sharing_find(t, 1, it.waits), DUE_ENOENT);
    SHARE_ANSWERS(t, sharing_find(t, 1, it.held.job), DUE_ENOENT);
}

/* It had failed before it died: its counts begin anew. */
static void brings_back_what_had_failed(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 2) ||
        !sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(5)), SHARE_LONG_NS, &h))
        return;
    sharing_back(t, h, sharing_now(t) - DUE_MS(1));
    SHARE_CHECK(t, sharing_sent(t, 0), "given back");
    sharing_claim(t, 1, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && sharing_got(t, &h.job, 1), "claimed");
    sharing_bury(t, t->held[0], "no good");
    SHARE_CHECK(t, sharing_sent(t, 1), "buried");
    sharing_kick(t, h.job, sharing_now(t) - DUE_MS(1));
    SHARE_ANSWERS(t, result(t, 0), 0);
    sharing_claim(t, 1, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && sharing_got(t, &h.job, 1), "due, and nothing has failed");
}

/* ---- Other content ---- */

static char much[20000]; /* more than a claim answers with */

static void amends_what_waits(struct sharing *t)
{
    struct three it;

    memset(much, 'm', sizeof much);
    if (!three_states(t, &it))
        return;
    const struct {
        const char *data;
        size_t len;
    } contents[] = { { "other", 5 }, { much, sizeof much }, { "short again", 11 }, { NULL, 0 } };
    for (size_t i = 0; i < 4; i++) {
        int64_t until_ns = sharing_now(t) + SHARE_LATER_NS + DUE_S((int64_t)i);

        SHARE_CHECK(t, sharing_look(t, 1, it.waits), "it is there");
        sharing_amend(t, it.waits, until_ns, contents[i].data, contents[i].len);
        SHARE_ANSWERS(t, result(t, 1), 0);
        SHARE_ANSWERS(t, sharing_find(t, 0, it.waits), 0);
    }
    SHARE_CHECK(t, sharing_look(t, 0, it.waits), "it is there");
    sharing_amend(t, it.waits, sharing_now(t) - DUE_MS(1), much, sizeof much);
    SHARE_ANSWERS(t, result(t, 1), 0);
    SHARE_CHECK(t, sharing_drain(t, 0, 1), "due, with its bytes");
}

static void amends_only_what_is_as_it_was_seen(struct sharing *t)
{
    struct three it;

    if (!three_states(t, &it) || !sharing_look(t, 0, it.waits))
        return;
    int64_t until_ns = t->base.jobs[it.waits].record.until_ns;
    sharing_amend(t, it.waits, until_ns, "first", 5);
    SHARE_ANSWERS(t, result(t, 0), 0);
    sharing_amend(t, it.waits, until_ns, "second", 6); /* of what it was before */
    SHARE_ANSWERS(t, result(t, 1), DUE_EAGAIN);
    SHARE_CHECK(t, sharing_look(t, 1, it.waits), "it is there");
    sharing_amend(t, it.waits, until_ns, "second", 6);
    t->base.changes[0].was_ns += DUE_MS(1);
    SHARE_ANSWERS(t, result(t, 1), DUE_EAGAIN);
    sharing_amend(t, it.waits, until_ns, "second", 6);
    t->base.changes[0].record.attempts = 1;
    SHARE_ANSWERS(t, result(t, 1), DUE_EAGAIN);
    SHARE_ANSWERS(t, sharing_find(t, 0, it.waits), 0);
    sharing_amend(t, it.waits, until_ns, "second", 6);
    SHARE_ANSWERS(t, result(t, 1), 0);
    SHARE_ANSWERS(t, sharing_find(t, 0, it.waits), 0);
}

/* What had failed keeps its counts and its deadline; the time of its next attempt too. */
static void amends_what_had_failed(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 2) ||
        !sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(5)), SHARE_LONG_NS, &h))
        return;
    sharing_back(t, h, sharing_now(t) + SHARE_LATER_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_look(t, 1, h.job), "given back");
    sharing_amend(t, h.job, 0, "other", 5);
    t->base.changes[0].record.deadline_ns = t->base.jobs[h.job].record.deadline_ns;
    t->base.changes[0].record.until_ns = t->base.jobs[h.job].record.until_ns;
    SHARE_ANSWERS(t, result(t, 1), 0);
    SHARE_ANSWERS(t, sharing_find(t, 0, h.job), 0);
    SHARE_CHECK(t, sharing_drain(t, 0, 0), "it waits still");
}

static void amends_the_dead_or_kicks_them(struct sharing *t)
{
    struct due_census_all all;
    struct three it;
    size_t shown[2];

    if (!three_states(t, &it) || !sharing_look(t, 1, it.dead))
        return;
    sharing_amend(t, it.dead, 0, "other", 5);
    SHARE_ANSWERS(t, result(t, 1), 0);
    SHARE_ANSWERS(t, sharing_find(t, 0, it.dead), 0);
    SHARE_CHECK(t, sharing_dead(t, 0, 0, 2, shown) == 1 && shown[0] == it.dead, "dead as before");
    SHARE_CHECK(t, sharing_drain(t, 0, 0), "and not due");
    for (int i = 0; i < 2; i++) {
        sharing_amend(t, it.dead, 0, "kicked", 6); /* the first time, of what it was */
        t->base.changes[0].record.cause = 0;
        t->base.changes[0].record.died_ns = 0;
        t->base.changes[0].record.reason = NULL;
        t->base.changes[0].record.attempts = t->base.changes[0].record.failures = 0;
        t->base.changes[0].record.until_ns = sharing_now(t) - DUE_MS(1);
        SHARE_ANSWERS(t, result(t, 1), i == 0 ? DUE_EAGAIN : 0);
        SHARE_CHECK(t, sharing_look(t, 1, it.dead), "it is there");
    }
    SHARE_ANSWERS(t, sharing_census(t, 0, &all), 0);
    SHARE_CHECK(t, all.dead == 0, "nobody is dead");
    SHARE_CHECK(t, sharing_drain(t, 0, 1), "it is due");
}

static void amends_nothing_held_or_unknown(struct sharing *t)
{
    struct three it;

    if (!three_states(t, &it) || !sharing_look(t, 1, it.held.job))
        return;
    sharing_amend(t, it.held.job, sharing_now(t), "other", 5);
    SHARE_ANSWERS(t, result(t, 1), DUE_EBUSY);
    SHARE_ANSWERS(t, sharing_find(t, 0, it.held.job), 0);
    sharing_amend(t, it.waits, sharing_now(t), "other", 5);
    t->base.changes[0].was_dead = 1;
    t->base.changes[0].record.cause = DUE_CAUSE_BURIED;
    SHARE_ANSWERS(t, result(t, 1), DUE_ENOENT);
    SHARE_CHECK(t, sharing_look(t, 1, it.waits), "it is there");
    sharing_amend(t, sharing_job(t, "a", 0), sharing_now(t), "other", 5);
    SHARE_ANSWERS(t, result(t, 1), DUE_ENOENT);
}

const struct suite_test_shared share_edit_tests[] = {
    { "edit: amends what waits", amends_what_waits },
    { "edit: amends only what is as it was seen", amends_only_what_is_as_it_was_seen },
    { "edit: amends what had failed", amends_what_had_failed },
    { "edit: amends the dead, or kicks them", amends_the_dead_or_kicks_them },
    { "edit: amends nothing held or unknown", amends_nothing_held_or_unknown },
    { "edit: brings back what had failed", brings_back_what_had_failed },
    { "edit: cancels what waits", cancels_what_waits },
    { "edit: cancels what is due", cancels_what_is_due },
    { "edit: cancels by the id alone", cancels_by_the_id_alone },
    { "edit: leaves alone what is held", leaves_alone_what_is_held },
    { "edit: leaves alone what is due since its lease is over",
      leaves_alone_a_job_of_a_lease_that_is_over },
    { "edit: does not cancel the dead", does_not_cancel_the_dead },
    { "edit: strikes off the dead only", strikes_off_the_dead_only },
    { "edit: strikes off those that are too many", strikes_off_those_that_are_too_many },
    { "edit: moves to an earlier and a later time", moves_to_an_earlier_and_a_later_time },
    { "edit: moves only what has not changed", moves_only_what_has_not_changed },
    { "edit: moves nothing unknown or dead", moves_nothing_unknown_or_dead },
    { "edit: brings back the dead", brings_back_the_dead },
    { "edit: all changes in one exchange", makes_all_changes_in_one_exchange },
    { NULL, NULL },
};
