/* share_change.c - new jobs, and what their holders say became of them. */
#include "store/share_frame.h"

/* One job is put and claimed; lets a lease that is short end. */
static bool one_held(struct sharing *t, int64_t lease_ns, struct sharing_held *h)
{
    if (!sharing_all_join(t, 2))
        return false;
    return sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(5)), lease_ns, h);
}

/* The same, and another process has it now. */
static bool one_lapsed(struct sharing *t, struct sharing_held *old, struct sharing_held *now)
{
    if (!one_held(t, SHARE_SHORT_NS, old))
        return false;
    sharing_pass(t, SHARE_PASS_NS);
    sharing_claim(t, 1, 0, SHARE_LONG_NS);
    if (!sharing_sent(t, 1) || !sharing_got(t, &old->job, 1))
        return false;
    *now = t->held[0];
    return true;
}

static void puts_a_job_for_whoever_comes(struct sharing *t)
{
    if (!sharing_all_join(t, 2))
        return;
    size_t job = sharing_job(t, "a", -DUE_MS(5));
    sharing_put(t, job);
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    sharing_claim(t, 1, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && sharing_got(t, &job, 1), "the other one has it");
    SHARE_CHECK(t, t->held[0].lapsed_ns == 0, "no lease of it has ended");
    sharing_claim(t, 1, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, NULL, 0), "and nobody else");
}

static void is_gone_when_done(struct sharing *t)
{
    struct sharing_held h;

    if (!one_held(t, SHARE_LONG_NS, &h))
        return;
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 0), "done");
    SHARE_ANSWERS(t, sharing_find(t, 1, h.job), DUE_ENOENT);
    SHARE_CHECK(t, sharing_drain(t, 1, 0), "nothing is left");
    sharing_done(t, h);
    SHARE_ANSWERS(t, sharing_send(t, 0), 0);
    SHARE_CHECK(t, t->results[0] == DUE_ESTALE, "twice: %s", due_error_name(t->results[0]));
}

static void waits_again_when_given_back(struct sharing *t)
{
    struct sharing_held h;

    if (!one_held(t, SHARE_LONG_NS, &h))
        return;
    sharing_back(t, h, sharing_now(t) - DUE_MS(1));
    SHARE_CHECK(t, sharing_sent(t, 0), "given back");
    SHARE_ANSWERS(t, sharing_find(t, 1, h.job), 0);
    sharing_claim(t, 1, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && sharing_got(t, &h.job, 1), "due again, with one failure");
    SHARE_CHECK(t, t->held[0].lapsed_ns == 0 && t->held[0].held != h.held, "a lease of its own");
}

static void waits_until_its_new_time(struct sharing *t)
{
    struct sharing_held h;

    if (!one_held(t, SHARE_LONG_NS, &h))
        return;
    sharing_back(t, h, sharing_now(t) + SHARE_LATER_NS);
    SHARE_CHECK(t, sharing_sent(t, 0), "given back");
    SHARE_CHECK(t, sharing_drain(t, 1, 0), "not due");
    SHARE_ANSWERS(t, sharing_find(t, 1, h.job), 0);
}

static void is_dead_when_buried(struct sharing *t)
{
    struct sharing_held h;
    size_t dead[2];

    if (!one_held(t, SHARE_LONG_NS, &h))
        return;
    sharing_bury(t, h, "no good");
    SHARE_CHECK(t, sharing_sent(t, 0), "buried");
    SHARE_CHECK(t, sharing_drain(t, 1, 0), "it is not due");
    SHARE_CHECK(t, sharing_dead(t, 1, 0, 2, dead) == 1 && dead[0] == h.job, "it is shown");
    SHARE_ANSWERS(t, sharing_find(t, 1, h.job), 0);
    sharing_done(t, h);
    SHARE_ANSWERS(t, sharing_send(t, 0), 0);
    SHARE_CHECK(t, t->results[0] == DUE_ESTALE, "nobody holds it");
}

static void begins_an_attempt_and_holds_it_still(struct sharing *t)
{
    struct sharing_held h;

    if (!one_held(t, SHARE_LONG_NS, &h))
        return;
    sharing_start(t, h, 1);
    SHARE_CHECK(t, sharing_sent(t, 0), "begun");
    SHARE_CHECK(t, sharing_drain(t, 1, 0), "held still");
    SHARE_ANSWERS(t, sharing_find(t, 1, h.job), 0);
    sharing_start(t, h, 2);
    SHARE_CHECK(t, sharing_sent(t, 0), "once more, by the same lease");
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 0), "done");
}

static void tells_attempts_of_a_lease_that_ended(struct sharing *t)
{
    struct sharing_held h;

    if (!one_held(t, SHARE_SHORT_NS, &h))
        return;
    sharing_start(t, h, 3);
    SHARE_CHECK(t, sharing_sent(t, 0), "begun");
    sharing_pass(t, SHARE_PASS_NS);
    sharing_claim(t, 1, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && sharing_got(t, &h.job, 1), "with its attempts");
}

static void is_held_longer_when_extended(struct sharing *t)
{
    struct sharing_held h;

    if (!one_held(t, SHARE_SHORT_NS, &h))
        return;
    sharing_extend(t, h, SHARE_LONG_NS);
    SHARE_ANSWERS(t, sharing_send(t, 0), 0);
    sharing_pass(t, SHARE_PASS_NS);
    SHARE_CHECK(t, sharing_drain(t, 1, 0), "held");
    sharing_extend(t, h, SHARE_SHORT_NS);
    SHARE_CHECK(t, sharing_sent(t, 0), "by the same lease, and shorter");
    sharing_pass(t, SHARE_PASS_NS);
    sharing_claim(t, 1, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && sharing_got(t, &h.job, 1), "then it is over");
    SHARE_CHECK(t, t->held[0].lapsed_ns > 0, "and that is told");
}

/* Nobody comes for it before that. */
static void is_held_by_the_longest_lease(struct sharing *t)
{
    struct sharing_held h;

    if (!one_held(t, DUE_CLAIM_LEASE_MAX, &h))
        return;
    SHARE_CHECK(t, sharing_drain(t, 1, 0), "claimed");
    sharing_start(t, h, 2);
    SHARE_CHECK(t, sharing_sent(t, 0), "begun");
    sharing_extend(t, h, DUE_CLAIM_LEASE_MAX);
    SHARE_CHECK(t, sharing_sent(t, 0), "extended");
    sharing_wait(t, 1, DUE_CLAIM_LEASE_MAX);
    SHARE_CHECK(t, sharing_sent(t, 1) && t->n_held == 0, "held");
    int64_t in_ns = t->answer.alarm_ns - t->answer.now_ns;
    SHARE_CHECK(t, t->answer.alarm_ns <= 0 || in_ns > DUE_CLAIM_LEASE_MAX - DUE_S(600),
                "somebody else looks in %lld ns", (long long)in_ns);
    sharing_extend(t, h, SHARE_SHORT_NS);
    SHARE_CHECK(t, sharing_sent(t, 0), "shorter");
    sharing_pass(t, SHARE_PASS_NS);
    sharing_claim(t, 1, 0, DUE_CLAIM_LEASE_MAX);
    SHARE_CHECK(t, sharing_sent(t, 1) && sharing_got(t, &h.job, 1), "then it is over");
    sharing_done(t, t->held[0]);
    SHARE_CHECK(t, sharing_sent(t, 1), "done");
    SHARE_ANSWERS(t, sharing_find(t, 0, h.job), DUE_ENOENT);
}

static void is_done_by_its_lease_when_extended(struct sharing *t)
{
    struct sharing_held h;

    if (!one_held(t, SHARE_LONG_NS, &h))
        return;
    sharing_extend(t, h, 2 * SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 0), "extended");
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 0), "done");
    SHARE_ANSWERS(t, sharing_find(t, 0, h.job), DUE_ENOENT);
}

static void waits_as_before_when_released(struct sharing *t)
{
    struct sharing_held h;

    if (!one_held(t, SHARE_LONG_NS, &h))
        return;
    sharing_release(t, h);
    SHARE_CHECK(t, sharing_sent(t, 0), "released");
    SHARE_ANSWERS(t, sharing_find(t, 0, h.job), 0);
    sharing_claim(t, 1, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && sharing_got(t, &h.job, 1), "due");
    SHARE_CHECK(t, t->held[0].lapsed_ns == 0, "no lease has ended");
}

/* Each kind of change, of a job that another has claimed since, by the lease before that. */
static void refuses_a_lease_that_is_over(struct sharing *t)
{
    struct sharing_held old;
    struct sharing_held now;

    if (!one_lapsed(t, &old, &now))
        return;
    SHARE_CHECK(t, now.held != old.held, "another lease");
    for (int kind = 0; kind < 6; kind++) {
        if (kind == 0)
            sharing_done(t, old);
        if (kind == 1)
            sharing_back(t, old, sharing_now(t));
        if (kind == 2)
            sharing_bury(t, old, "late");
        if (kind == 3)
            sharing_start(t, old, 9);
        if (kind == 4)
            sharing_extend(t, old, DUE_S(1));
        if (kind == 5)
            sharing_release(t, old);
        SHARE_ANSWERS(t, sharing_send(t, 0), 0);
        SHARE_CHECK(t, t->results[0] == DUE_ESTALE, "kind %d: %s", kind,
                    due_error_name(t->results[0]));
        SHARE_ANSWERS(t, sharing_find(t, 1, old.job), 0);
        SHARE_CHECK(t, sharing_drain(t, 0, 0), "the other one holds it still (kind %d)", kind);
    }
    sharing_done(t, now);
    SHARE_CHECK(t, sharing_sent(t, 1), "and may end it");
}

/* The same of a job that waits, and of one that is unknown. */
static void refuses_a_lease_that_nobody_has(struct sharing *t)
{
    if (!sharing_all_join(t, 1))
        return;
    size_t job = sharing_job(t, "a", SHARE_LATER_NS);
    size_t unknown = sharing_job(t, "a", 0);
    sharing_put(t, job);
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    for (int kind = 0; kind < 6; kind++)
        for (int i = 0; i < 2; i++) {
            struct sharing_held h = { .job = i == 0 ? job : unknown, .held = 1234567 };

            if (kind == 0)
                sharing_done(t, h);
            if (kind == 1)
                sharing_back(t, h, sharing_now(t));
            if (kind == 2)
                sharing_bury(t, h, "late");
            if (kind == 3)
                sharing_start(t, h, 9);
            if (kind == 4)
                sharing_extend(t, h, DUE_S(1));
            if (kind == 5)
                sharing_release(t, h);
            SHARE_ANSWERS(t, sharing_send(t, 0), 0);
            SHARE_CHECK(t, t->results[0] == DUE_ESTALE, "kind %d: %s", kind,
                        due_error_name(t->results[0]));
        }
    SHARE_ANSWERS(t, sharing_find(t, 0, job), 0);
    SHARE_ANSWERS(t, sharing_find(t, 0, unknown), DUE_ENOENT);
}

/* Nobody else has had the job: it counts. */
static void takes_a_late_word_if_nobody_has_claimed_since(struct sharing *t)
{
    struct sharing_held h;

    if (!one_held(t, SHARE_SHORT_NS, &h))
        return;
    sharing_pass(t, SHARE_PASS_NS);
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 0), "done, late");
    SHARE_CHECK(t, sharing_drain(t, 1, 0), "nothing is left");
}

static void answers_each_change_by_itself(struct sharing *t)
{
    struct sharing_held h[3];
    size_t jobs[3];

    if (!sharing_all_join(t, 2))
        return;
    for (int i = 0; i < 3; i++) {
        jobs[i] = sharing_job(t, i == 1 ? "b" : "a", -DUE_MS(3 - i));
        if (!sharing_have(t, 0, jobs[i], i == 1 ? SHARE_SHORT_NS : SHARE_LONG_NS, &h[i]))
            return;
    }
    sharing_pass(t, SHARE_PASS_NS);
    sharing_claim(t, 1, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && sharing_got(t, &jobs[1], 1), "the second is another's");
    sharing_done(t, h[0]);
    sharing_done(t, h[1]);
    sharing_back(t, h[2], sharing_now(t) + SHARE_LATER_NS);
    SHARE_ANSWERS(t, sharing_send(t, 0), 0);
    SHARE_CHECK(t, t->results[0] == 0 && t->results[1] == DUE_ESTALE && t->results[2] == 0,
                "%d %d %d", t->results[0], t->results[1], t->results[2]);
    SHARE_ANSWERS(t, sharing_find(t, 0, jobs[0]), DUE_ENOENT);
    SHARE_ANSWERS(t, sharing_find(t, 0, jobs[1]), 0);
    SHARE_ANSWERS(t, sharing_find(t, 0, jobs[2]), 0);
}

/* What is ended is not claimed by the same exchange, what is given back is. */
static void ends_before_it_claims(struct sharing *t)
{
    struct sharing_held h[2];
    size_t jobs[2];

    if (!sharing_all_join(t, 1))
        return;
    for (int i = 0; i < 2; i++) {
        jobs[i] = sharing_job(t, "a", -DUE_MS(5));
        if (!sharing_have(t, 0, jobs[i], SHARE_LONG_NS, &h[i]))
            return;
    }
    sharing_done(t, h[0]);
    sharing_back(t, h[1], sharing_now(t) - DUE_MS(5));
    sharing_claim(t, 2, 0, SHARE_LONG_NS);
    sharing_expect(t);
    SHARE_ANSWERS(t, sharing_send(t, 0), 0);
    SHARE_CHECK(t, t->n_held == 1 && t->held[0].job == jobs[1], "%zu jobs", t->n_held);
}

/* Every kind at once, of two topics. */
static void makes_all_kinds_in_one_exchange(struct sharing *t)
{
    struct sharing_held h[6];

    if (!sharing_all_join(t, 2))
        return;
    for (int i = 0; i < 6; i++)
        if (!sharing_have(t, 0, sharing_job(t, i % 2 ? "a" : "b", -DUE_MS(5)), SHARE_LONG_NS,
                          &h[i]))
            return;
    sharing_extend(t, h[4], SHARE_LONG_NS);
    sharing_done(t, h[0]);
    sharing_back(t, h[1], sharing_now(t) + SHARE_LATER_NS);
    sharing_start(t, h[3], 1);
    sharing_bury(t, h[2], "dead");
    sharing_release(t, h[5]);
    SHARE_CHECK(t, sharing_sent(t, 0), "all of them");
    SHARE_ANSWERS(t, sharing_find(t, 0, h[0].job), DUE_ENOENT);
    for (int i = 1; i < 6; i++)
        SHARE_ANSWERS(t, sharing_find(t, 0, h[i].job), 0);
    SHARE_CHECK(t, sharing_drain(t, 1, 1), "only what was released is due");
}

/* Whatever a record can have comes back, by a claim and by find(). */
static void keeps_all_of_a_record(struct sharing *t)
{
    due_retry retry = {
        .kind = DUE_RETRY_LADDER, .attempts_max = 9, .rungs = 2, .rung_ns = { DUE_S(1), DUE_S(2) }
    };

    if (!sharing_all_join(t, 2))
        return;
    size_t job = sharing_job_of(t, "with all", -DUE_MS(5), "\0\r\n*1", 5);
    due_record *r = &t->base.jobs[job].record;
    r->id = suite_id(200, t->base.info[0].writer, job);
    r->priority = 200;
    r->headers = "a=b";
    r->headers_len = 3;
    r->retry = &retry;
    r->ttl_ns = DUE_S(77);
    r->expires_ns = r->until_ns + DUE_S(99);
    r->attempts = 4;
    r->failures = 3;
    r->deadline_ns -= 123;
    sharing_put(t, job);
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    SHARE_ANSWERS(t, sharing_find(t, 1, job), 0);
    sharing_claim(t, 1, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && sharing_got(t, &job, 1), "claimed");
    SHARE_ANSWERS(t, sharing_find(t, 0, job), 0);
}

/* The end of a round: the job is the same, with another deadline, and as if it was never begun. */
static void waits_for_its_next_round(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 2))
        return;
    size_t job = sharing_job(t, "a", -DUE_MS(5));
    t->base.jobs[job].record.every_ns = DUE_S(60);
    t->base.jobs[job].record.repeat = DUE_REPEAT_ONCE;
    if (!sharing_have(t, 0, job, SHARE_LONG_NS, &h))
        return;
    sharing_start(t, h, 1);
    SHARE_CHECK(t, sharing_sent(t, 0), "begun");
    for (int i = 0; i < 2; i++) {
        int64_t next_ns = sharing_now(t) + (i == 0 ? -DUE_MS(1) : SHARE_LATER_NS);
        struct sharing_held late = { .job = h.job, .held = h.held + 1 };

        for (int k = 0; k < 2; k++) { /* by who does not have it, and by its holder */
            sharing_back(t, k == 0 ? late : h, next_ns);
            t->base.changes[0].record.deadline_ns = next_ns;
            t->base.changes[0].record.attempts = t->base.changes[0].record.failures = 0;
            SHARE_ANSWERS(t, sharing_send(t, i), 0);
            SHARE_ANSWERS(t, t->results[0], k == 0 ? DUE_ESTALE : 0);
        }
        SHARE_ANSWERS(t, sharing_find(t, 1 - i, job), 0);
        if (i == 1)
            break;
        sharing_claim(t, 1, 0, SHARE_LONG_NS);
        SHARE_CHECK(t, sharing_sent(t, 1) && sharing_got(t, &job, 1), "its next round");
        h = t->held[0];
    }
    SHARE_CHECK(t, sharing_drain(t, 0, 0), "it is not due");
}

const struct suite_test_shared share_change_tests[] = {
    { "put: for whoever comes", puts_a_job_for_whoever_comes },
    { "put: keeps all of a record", keeps_all_of_a_record },
    { "end: is gone when done", is_gone_when_done },
    { "end: waits again when given back", waits_again_when_given_back },
    { "end: waits until its new time", waits_until_its_new_time },
    { "end: waits for its next round", waits_for_its_next_round },
    { "end: is dead when buried", is_dead_when_buried },
    { "end: an attempt begins, and it is held still", begins_an_attempt_and_holds_it_still },
    { "end: attempts are told after the lease", tells_attempts_of_a_lease_that_ended },
    { "end: is held longer when extended", is_held_longer_when_extended },
    { "end: is held by the longest lease", is_held_by_the_longest_lease },
    { "end: is done by its lease when extended", is_done_by_its_lease_when_extended },
    { "end: waits as before when released", waits_as_before_when_released },
    { "end: refuses a lease that is over", refuses_a_lease_that_is_over },
    { "end: refuses a lease that nobody has", refuses_a_lease_that_nobody_has },
    { "end: takes a late word if nobody has claimed since",
      takes_a_late_word_if_nobody_has_claimed_since },
    { "end: answers each change by itself", answers_each_change_by_itself },
    { "end: comes before the claim", ends_before_it_claims },
    { "end: all kinds in one exchange", makes_all_kinds_in_one_exchange },
    { NULL, NULL },
};
