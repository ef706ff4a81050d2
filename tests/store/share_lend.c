/* share_lend.c - a job is dropped as it was when it was looked at, by who wants its bytes. */
#include "store/share_frame.h"

#define WAITS 0
#define DEAD  1

/* A job that waits, or one that is dead. */
static bool one_job(struct sharing *t, int state, size_t *job)
{
    struct sharing_held h;

    *job = sharing_job(t, "a", state == DEAD ? -DUE_MS(5) : SHARE_LATER_NS);
    if (state == WAITS) {
        sharing_put(t, *job);
        return sharing_sent(t, 0);
    }
    if (!sharing_have(t, 0, *job, SHARE_LONG_NS, &h))
        return false;
    sharing_bury(t, h, "no good");
    return sharing_sent(t, 0);
}

/* The result of the one change that was gathered. */
static int result(struct sharing *t, int s)
{
    int rc = sharing_send(t, s);

    return rc != 0 ? rc : t->results[0];
}

static void drops_what_was_seen(struct sharing *t)
{
    struct due_census_all all;
    size_t job;

    if (!sharing_all_join(t, 2))
        return;
    for (int state = WAITS; state <= DEAD; state++)
        for (int by_id = 0; by_id < 2; by_id++) {
            if (!one_job(t, state, &job))
                return;
            SHARE_CHECK(t, sharing_look(t, 1, job), "it is there");
            for (int i = 0; i < 2; i++) {
                sharing_lend(t, job);
                if (by_id)
                    t->base.changes[0].record.topic = NULL;
                if (state == DEAD) /* whose counts are not looked at */
                    t->base.changes[0].record.attempts++;
                SHARE_ANSWERS(t, result(t, 1), i == 0 ? 0 : DUE_ENOENT);
                SHARE_ANSWERS(t, sharing_find(t, 0, job), DUE_ENOENT);
            }
        }
    SHARE_ANSWERS(t, sharing_census(t, 0, &all), 0);
    SHARE_CHECK(t, all.jobs == 0 && all.dead == 0, "nothing is left");
}

/* It was moved, it has failed, its bytes are others, or it is held: since then, or so he thinks. */
static void drops_nothing_else(struct sharing *t)
{
    struct sharing_held h;
    size_t job;

    if (!sharing_all_join(t, 2))
        return;
    for (int state = WAITS; state <= DEAD; state++) {
        if (!one_job(t, state, &job) || !sharing_look(t, 1, job))
            return;
        int64_t until_ns = t->base.jobs[job].record.until_ns;
        sharing_lend(t, job);
        t->base.changes[0].was_ns += DUE_MS(1);
        SHARE_ANSWERS(t, result(t, 1), DUE_EAGAIN);
        sharing_lend(t, job);
        t->base.changes[0].was_dead = state == WAITS;
        SHARE_ANSWERS(t, result(t, 1), DUE_ENOENT);
        if (state == WAITS) {
            sharing_lend(t, job);
            t->base.changes[0].record.failures++;
            SHARE_ANSWERS(t, result(t, 1), DUE_EAGAIN);
        }
        sharing_amend(t, job, until_ns, "other", 5);
        SHARE_ANSWERS(t, result(t, 0), 0);
        sharing_lend(t, job);
        SHARE_ANSWERS(t, result(t, 1), DUE_EAGAIN);
        SHARE_ANSWERS(t, sharing_find(t, 0, job), 0);
        SHARE_CHECK(t, sharing_look(t, 1, job), "it is there");
        sharing_lend(t, job);
        SHARE_ANSWERS(t, result(t, 1), 0);
    }
    if (!sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(5)), SHARE_LONG_NS, &h) ||
        !sharing_look(t, 1, h.job))
        return;
    sharing_lend(t, h.job);
    SHARE_ANSWERS(t, result(t, 1), DUE_EBUSY);
    sharing_lend(t, sharing_job(t, "a", 0));
    SHARE_ANSWERS(t, result(t, 1), DUE_ENOENT);
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 0), "its holder ends it");
}

/* What has failed is known by its counts and by the time of its next attempt. */
static void drops_what_had_failed(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 2) ||
        !sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(5)), SHARE_LONG_NS, &h))
        return;
    sharing_start(t, h, 1);
    SHARE_CHECK(t, sharing_sent(t, 0), "begun");
    sharing_back(t, h, sharing_now(t) + SHARE_LATER_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_look(t, 1, h.job), "given back");
    sharing_lend(t, h.job);
    t->base.changes[0].record.attempts = 0;
    SHARE_ANSWERS(t, result(t, 1), DUE_EAGAIN);
    sharing_lend(t, h.job);
    SHARE_ANSWERS(t, result(t, 1), 0);
    SHARE_ANSWERS(t, sharing_find(t, 0, h.job), DUE_ENOENT);
}

/* Long ones are known elsewhere, too, and a claim must not look for them there. */
static void drops_what_is_long(struct sharing *t)
{
    static char much[20000];

    memset(much, 'm', sizeof much);
    if (!sharing_all_join(t, 2))
        return;
    size_t job = sharing_job_of(t, "a", -DUE_MS(5), much, sizeof much);
    sharing_put(t, job);
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_look(t, 1, job), "put");
    sharing_lend(t, job);
    SHARE_ANSWERS(t, result(t, 1), 0);
    SHARE_CHECK(t, sharing_drain(t, 0, 0), "nothing is due");
    sharing_put(t, job); /* under the same id, and short */
    t->base.changes[0].record.data = "x";
    t->base.changes[0].record.len = t->base.jobs[job].record.len = 1;
    t->base.jobs[job].record.data = "x";
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_drain(t, 0, 1), "due, with its bytes");
}

/* Only if the key that is named is the job's; and it is free after that. */
static void drops_by_its_key(struct sharing *t)
{
    if (!sharing_all_join(t, 2))
        return;
    for (int other = 1; other >= 0; other--) {
        size_t job = sharing_job(t, "a", SHARE_LATER_NS);

        t->base.jobs[job].record.key = "k";
        t->base.jobs[job].record.key_len = 1;
        sharing_put(t, job);
        SHARE_ANSWERS(t, result(t, 0), other ? 0 : DUE_EEXIST);
        job = other ? job : job - 1;
        SHARE_CHECK(t, sharing_look(t, 1, job), "it is there");
        sharing_lend(t, job);
        t->base.changes[0].record.key = other ? "l" : "k";
        SHARE_ANSWERS(t, result(t, 1), other ? DUE_EAGAIN : 0);
    }
    size_t next = sharing_job(t, "a", SHARE_LATER_NS);
    t->base.jobs[next].record.key = "k";
    t->base.jobs[next].record.key_len = 1;
    sharing_put(t, next);
    SHARE_ANSWERS(t, result(t, 0), 0);
}

/* Whether it stood in front, or was kept back; and the next one comes. */
static void drops_of_a_group(struct sharing *t)
{
    size_t jobs[3];

    if (!sharing_all_join(t, 2))
        return;
    for (int i = 0; i < 3; i++) {
        jobs[i] = sharing_grouped(t, "a", -DUE_MS(30 - i), "g");
        sharing_put(t, jobs[i]);
        SHARE_CHECK(t, sharing_sent(t, 0), "put");
    }
    for (int i = 1; i >= 0; i--) {
        SHARE_CHECK(t, sharing_look(t, 1, jobs[i]), "it is there");
        sharing_lend(t, jobs[i]);
        SHARE_ANSWERS(t, result(t, 1), 0);
    }
    sharing_claim(t, 2, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && sharing_got(t, &jobs[2], 1), "the last one");
}

/* All of a group in one exchange, with others. */
static void drops_many_at_once(struct sharing *t)
{
    size_t jobs[6];

    if (!sharing_all_join(t, 2))
        return;
    for (int i = 0; i < 6; i++) {
        jobs[i] = i < 3 ? sharing_grouped(t, "a", -DUE_MS(30 - i), "g")
                        : sharing_job(t, i == 5 ? "b" : "a", -DUE_MS(5));
        sharing_put(t, jobs[i]);
    }
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_look(t, 1, jobs[0]), "put");
    for (int i = 0; i < 6; i++) {
        if (i == 4)
            sharing_cancel(t, jobs[i]);
        else
            sharing_lend(t, jobs[i]); /* all with the first one's mark */
    }
    SHARE_ANSWERS(t, sharing_send(t, 1), 0);
    for (int i = 0; i < 6; i++)
        SHARE_CHECK(t, t->results[i] == (i == 0 || i == 4 ? 0 : DUE_EAGAIN), "%d: %s", i,
                    due_error_name(t->results[i]));
    SHARE_CHECK(t, sharing_drain(t, 0, 3), "of the group one, and two others");
}

/* Whether the answer got lost before or after it took effect; and what another did since counts
 * only if it had not. */
static void one_drop_has_one_answer(struct sharing *t)
{
    if (!suite_has(&t->base, t->maker->doubt != NULL, "no hook doubt") || !sharing_all_join(t, 2))
        return;
    for (int state = WAITS; state <= DEAD; state++)
        for (int lands = 0; lands < 2; lands++) {
            size_t job;

            if (!one_job(t, state, &job) || !sharing_look(t, 1, job))
                return;
            sharing_lend(t, job);
            t->maker->doubt(t->maker->store.ctx, t->base.stores[1], t->work, lands);
            SHARE_ANSWERS(t, result(t, 1), 0);
            SHARE_ANSWERS(t, sharing_find(t, 0, job), DUE_ENOENT);
        }
}

static void a_refusal_stays(struct sharing *t)
{
    size_t job;

    if (!suite_has(&t->base, t->maker->doubt != NULL, "no hook doubt") || !sharing_all_join(t, 2) ||
        !one_job(t, WAITS, &job) || !sharing_look(t, 1, job))
        return;
    int64_t until_ns = t->base.jobs[job].record.until_ns;
    sharing_lend(t, job);
    t->base.changes[0].was_ns += DUE_MS(1);
    due_change asked = t->base.changes[0];
    t->maker->doubt(t->maker->store.ctx, t->base.stores[1], t->work, true);
    int rc = sharing_send_once(t, 1);
    if (rc == 0) {
        suite_skip(&t->base, "the store sends it once more by itself");
        return;
    }
    SHARE_ANSWERS(t, rc, DUE_EINDOUBT);
    sharing_forget(t);
    sharing_move(t, job, until_ns + DUE_MS(1)); /* now it is as he thought */
    SHARE_ANSWERS(t, result(t, 0), 0);
    sharing_lend(t, job);
    t->base.changes[0] = asked;
    SHARE_ANSWERS(t, result(t, 1), DUE_EAGAIN);
    SHARE_ANSWERS(t, sharing_find(t, 0, job), 0);
}

const struct suite_test_shared share_lend_tests[] = {
    { "lend: drops what was seen", drops_what_was_seen },
    { "lend: drops nothing else", drops_nothing_else },
    { "lend: drops what had failed", drops_what_had_failed },
    { "lend: drops what is long", drops_what_is_long },
    { "lend: drops by its key", drops_by_its_key },
    { "lend: drops of a group", drops_of_a_group },
    { "lend: drops many at once", drops_many_at_once },
    { "lend: one drop has one answer", one_drop_has_one_answer },
    { "lend: a refusal stays", a_refusal_stays },
    { NULL, NULL },
};
