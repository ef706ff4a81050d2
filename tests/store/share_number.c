/* share_number.c - an exchange whose answer did not come has one effect and one answer. */
#include "store/share_frame.h"

static bool can_doubt(struct sharing *t)
{
    return suite_has(&t->base, t->maker->doubt != NULL, "no hook doubt");
}

/* The next exchange of process @s is in doubt. */
static void doubt(struct sharing *t, int s, bool lands)
{
    t->maker->doubt(t->maker->store.ctx, t->base.stores[s], t->work, lands);
}

/* Sends it, and the answer does not come.  A store may find out by itself what came of it. */
static bool in_doubt(struct sharing *t, int s)
{
    int rc = sharing_send_once(t, s);

    if (rc == 0)
        suite_skip(&t->base, "the store sends it once more by itself");
    return rc != 0 && suite_answers(&t->base, rc, DUE_EINDOUBT, __FILE__, __LINE__, "exchange");
}

/* One of each kind of change, of a job that suits it. */
enum { PUT, CANCEL, MOVE, DONE, BACK, BURIAL, START, EXTEND, RELEASE, KINDS };

static size_t gather(struct sharing *t, int kind)
{
    struct sharing_held h = { .held = 0 };
    size_t job = sharing_job(t, "a", kind < DONE ? SHARE_LATER_NS : -DUE_MS(5));

    if (kind == PUT)
        sharing_put(t, job);
    if (kind == CANCEL || kind == MOVE) {
        sharing_put(t, job);
        (void)sharing_sent(t, 0);
    }
    if (kind >= DONE && !sharing_have(t, 0, job, SHARE_LONG_NS, &h))
        return job;
    switch (kind) {
    case CANCEL:
        sharing_cancel(t, job);
        break;
    case MOVE:
        sharing_move(t, job, t->base.jobs[job].record.until_ns + DUE_S(1));
        break;
    case DONE:
        sharing_done(t, h);
        break;
    case BACK:
        sharing_back(t, h, sharing_now(t) + SHARE_LATER_NS);
        break;
    case BURIAL:
        sharing_bury(t, h, "no good");
        break;
    case START:
        sharing_start(t, h, 1);
        break;
    case EXTEND:
        sharing_extend(t, h, SHARE_LONG_NS);
        break;
    case RELEASE:
        sharing_release(t, h);
        break;
    default:
        break;
    }
    return job;
}

/* Each kind of change, and the answer got lost before or after it took effect. */
static void every_change_has_one_effect(struct sharing *t)
{
    if (!can_doubt(t) || !sharing_all_join(t, 1))
        return;
    for (int kind = 0; kind < KINDS; kind++)
        for (int lands = 0; lands < 2; lands++) {
            size_t job = gather(t, kind);
            bool gone = kind == CANCEL || kind == DONE;

            doubt(t, 0, lands);
            SHARE_ANSWERS(t, sharing_send(t, 0), 0);
            SHARE_CHECK(t, t->results[0] == 0, "kind %d, %d: %s", kind, lands,
                        due_error_name(t->results[0]));
            SHARE_ANSWERS(t, sharing_find(t, 0, job), gone ? DUE_ENOENT : 0);
            if (kind == RELEASE) /* out of the way of the next one */
                SHARE_CHECK(t, sharing_drain(t, 0, 1), "it is due");
        }
}

/* What was refused is refused once more, though it would not be now. */
static void every_refusal_is_repeated(struct sharing *t)
{
    struct sharing_held h;

    if (!can_doubt(t) || !sharing_all_join(t, 2) ||
        !sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(5)), SHARE_LONG_NS, &h))
        return;
    sharing_cancel(t, h.job);
    doubt(t, 1, true);
    if (!in_doubt(t, 1))
        return;
    struct due_change asked = t->base.changes[0];
    sharing_forget(t);
    sharing_release(t, h);
    SHARE_CHECK(t, sharing_sent(t, 0), "released meanwhile");
    sharing_cancel(t, h.job);
    t->base.changes[0] = asked;
    SHARE_ANSWERS(t, sharing_send(t, 1), 0);
    SHARE_CHECK(t, t->results[0] == DUE_EBUSY, "%s", due_error_name(t->results[0]));
    SHARE_CHECK(t, sharing_drain(t, 0, 1), "it is there still");
}

/* It had not taken effect: what has happened meanwhile counts. */
static void what_never_came_meets_what_is_now(struct sharing *t)
{
    struct sharing_held h;

    if (!can_doubt(t) || !sharing_all_join(t, 2) ||
        !sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(5)), SHARE_LONG_NS, &h))
        return;
    sharing_cancel(t, h.job);
    doubt(t, 1, false);
    if (!in_doubt(t, 1))
        return;
    struct due_change asked = t->base.changes[0];
    sharing_forget(t);
    sharing_release(t, h);
    SHARE_CHECK(t, sharing_sent(t, 0), "released meanwhile");
    sharing_cancel(t, h.job);
    t->base.changes[0] = asked;
    SHARE_ANSWERS(t, sharing_send(t, 1), 0);
    SHARE_CHECK(t, t->results[0] == 0, "%s", due_error_name(t->results[0]));
    SHARE_ANSWERS(t, sharing_find(t, 0, h.job), DUE_ENOENT);
}

static void a_claim_shows_the_same_jobs(struct sharing *t)
{
    size_t jobs[4];

    if (!can_doubt(t) || !sharing_all_join(t, 2))
        return;
    for (int i = 0; i < 4; i++) {
        jobs[i] = sharing_job(t, "a", -DUE_MS(50 - i));
        sharing_put(t, jobs[i]);
    }
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    for (int lands = 0; lands < 2; lands++) {
        sharing_claim(t, 2, 0, SHARE_LONG_NS);
        doubt(t, 0, lands);
        SHARE_CHECK(t, sharing_sent(t, 0), "claim");
        SHARE_CHECK(t, sharing_got(t, jobs + 2L * lands, 2), "two of them");
    }
    SHARE_CHECK(t, sharing_drain(t, 1, 0), "no more were claimed");
}

/* However much is claimed, and whatever was answered before that; some ends are not plain. */
static void a_claim_of_any_size_shows_the_same_jobs(struct sharing *t)
{
    static const size_t sizes[] = { 1, 60, 2, 9, 1, 3, 100, 1 };
    struct sharing_held h = { .held = 1 };

    if (!can_doubt(t) || !sharing_all_join(t, 2))
        return;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int lands = 0; lands < 2; lands++) {
            size_t first = t->base.n_jobs;
            size_t jobs[100];

            for (size_t k = 0; k < sizes[i]; k++)
                sharing_put(t, jobs[k] = sharing_job(t, "a", DUE_US((int64_t)k) - DUE_MS(50)));
            SHARE_CHECK(t, sharing_sent(t, 1), "put");
            h.job = first;
            sharing_done(t, h); /* by a lease that nobody had */
            sharing_claim(t, sizes[i], 0, SHARE_LONG_NS);
            doubt(t, 0, lands);
            SHARE_ANSWERS(t, sharing_send(t, 0), 0);
            SHARE_ANSWERS(t, t->results[0], DUE_ESTALE);
            SHARE_CHECK(t, sharing_got(t, jobs, sizes[i]), "%zu, %d", sizes[i], lands);
        }
    SHARE_CHECK(t, sharing_drain(t, 1, 0), "no more were claimed");
}

/* Of what it had claimed one has gone to somebody else since. */
static void a_claim_leaves_out_what_has_lapsed(struct sharing *t)
{
    size_t job;

    if (!can_doubt(t) || !sharing_all_join(t, 2))
        return;
    job = sharing_job(t, "a", -DUE_MS(5));
    sharing_put(t, job);
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    sharing_claim(t, 1, 0, SHARE_SHORT_NS);
    doubt(t, 0, true);
    if (!in_doubt(t, 0))
        return;
    sharing_forget(t);
    sharing_pass(t, SHARE_PASS_NS);
    sharing_claim(t, 1, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && sharing_got(t, &job, 1), "another has it");
    sharing_claim(t, 1, 0, SHARE_SHORT_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, NULL, 0), "it is left out");
}

/* And nothing else in its place, though more is due: that would be a second claim. */
static void a_claim_of_what_has_lapsed_claims_nothing_else(struct sharing *t)
{
    size_t jobs[2];

    if (!can_doubt(t) || !sharing_all_join(t, 2))
        return;
    sharing_put(t, jobs[0] = sharing_job(t, "a", -DUE_MS(5)));
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    sharing_claim(t, 1, 0, SHARE_SHORT_NS);
    doubt(t, 0, true);
    if (!in_doubt(t, 0))
        return;
    sharing_forget(t);
    sharing_pass(t, SHARE_PASS_NS);
    sharing_claim(t, 1, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && sharing_got(t, &jobs[0], 1), "another has it");
    uint64_t taken = t->answer.stamp;
    sharing_put(t, jobs[1] = sharing_job(t, "a", -DUE_MS(5)));
    SHARE_CHECK(t, sharing_sent(t, 1), "put");
    sharing_claim(t, 1, 0, SHARE_SHORT_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, NULL, 0), "nothing");
    SHARE_CHECK(t, t->answer.stamp < taken, "as it was");
    SHARE_CHECK(t, sharing_drain(t, 1, 1), "the other job is there");
}

/* The answer is that of the exchange, also its stamp, though time and others have gone on. */
static void an_answer_is_repeated_as_it_was(struct sharing *t)
{
    size_t job;

    if (!can_doubt(t) || !sharing_all_join(t, 2))
        return;
    job = sharing_job(t, "a", SHARE_LATER_NS);
    sharing_put(t, job);
    doubt(t, 0, true);
    if (!in_doubt(t, 0))
        return;
    struct due_change asked = t->base.changes[0];
    sharing_forget(t);
    sharing_put(t, sharing_job(t, "a", SHARE_LATER_NS));
    SHARE_CHECK(t, sharing_sent(t, 1), "the other one goes on");
    uint64_t later = t->answer.stamp;
    int64_t later_ns = t->answer.now_ns;
    sharing_put(t, job);
    t->base.changes[0] = asked;
    SHARE_CHECK(t, sharing_sent(t, 0), "once more");
    SHARE_CHECK(t, t->answer.stamp < later && t->answer.now_ns <= later_ns, "as it was");
}

/* One lane is in doubt: the other one does not wait for it. */
static void lanes_have_numbers_of_their_own(struct sharing *t)
{
    size_t jobs[2];

    if (!can_doubt(t) || !sharing_all_join(t, 1))
        return;
    jobs[0] = sharing_job(t, "a", -DUE_MS(5));
    jobs[1] = sharing_job(t, "a", -DUE_MS(4));
    sharing_put(t, jobs[0]);
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    sharing_put(t, jobs[1]);
    doubt(t, 0, true);
    if (!in_doubt(t, 0))
        return;
    struct due_change asked = t->base.changes[0];
    t->base.jobs[jobs[1]].stored = true;
    sharing_forget(t);
    for (int i = 0; i < 2; i++) {
        sharing_claim(t, 1, 0, SHARE_LONG_NS);
        SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, &jobs[i], 1), "claim %d", i);
    }
    sharing_put(t, jobs[1]);
    t->base.changes[0] = asked;
    SHARE_CHECK(t, sharing_sent(t, 0), "the put, once more");
    SHARE_CHECK(t, sharing_drain(t, 0, 0), "it was put once");
}

static void a_visit_that_refuses_is_made_again(struct sharing *t)
{
    size_t job;

    if (!sharing_all_join(t, 1))
        return;
    job = sharing_job(t, "a", -DUE_MS(5));
    sharing_put(t, job);
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    sharing_claim(t, 1, 0, SHARE_LONG_NS);
    t->base.refuse = DUE_ENOMEM;
    SHARE_ANSWERS(t, sharing_send_once(t, 0), DUE_ENOMEM);
    t->base.refuse = 0;
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, &job, 1), "the same job");
    SHARE_CHECK(t, sharing_drain(t, 0, 0), "claimed once");
}

const struct suite_test_shared share_number_tests[] = {
    { "number: every change has one effect", every_change_has_one_effect },
    { "number: every refusal is repeated", every_refusal_is_repeated },
    { "number: what never came meets what is now", what_never_came_meets_what_is_now },
    { "number: a claim shows the same jobs", a_claim_shows_the_same_jobs },
    { "number: a claim leaves out what has lapsed", a_claim_leaves_out_what_has_lapsed },
    { "number: a claim of what has lapsed claims nothing else",
      a_claim_of_what_has_lapsed_claims_nothing_else },
    { "number: a claim of any size shows the same jobs", a_claim_of_any_size_shows_the_same_jobs },
    { "number: an answer is repeated as it was", an_answer_is_repeated_as_it_was },
    { "number: lanes have numbers of their own", lanes_have_numbers_of_their_own },
    { "number: a visit that refuses is made again", a_visit_that_refuses_is_made_again },
    { NULL, NULL },
};
