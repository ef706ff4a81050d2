/* share_join.c - who comes, goes, is killed, evicted, or forgotten by the store. */
#include "store/share_frame.h"

static void gives_a_writer_number_to_each(struct sharing *t)
{
    uint64_t last = 0;

    for (int s = 0; s < SUITE_STORES; s++) {
        SHARE_ANSWERS(t, sharing_join(t, s), 0);
        SHARE_CHECK(t, t->base.info[s].writer > last, "process %d", s);
        SHARE_CHECK(t, t->base.info[s].writer < UINT64_C(1) << 48, "48 bits");
        SHARE_CHECK(t, t->base.info[s].batch_changes > 0 && t->base.info[s].batch_bytes > 0,
                    "room in an exchange");
        last = t->base.info[s].writer;
    }
    sharing_leave(t, 3);
    t->base.writer_min = last + 1000000;
    SHARE_ANSWERS(t, sharing_join(t, 3), 0);
    SHARE_CHECK(t, t->base.info[3].writer >= last + 1000000, "at least what was asked for");
}

static void keeps_its_jobs_when_all_have_gone(struct sharing *t)
{
    if (!sharing_all_join(t, 2))
        return;
    size_t job = sharing_job(t, "a", -DUE_MS(5));
    sharing_put(t, job);
    sharing_put(t, sharing_job(t, "b", SHARE_LATER_NS));
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    sharing_leave(t, 0);
    sharing_leave(t, 1);
    SHARE_ANSWERS(t, sharing_join(t, 0), 0);
    sharing_claim(t, 9, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, &job, 1), "it is there");
}

/* Whoever held it has left, or was killed. */
static void keeps_a_lease_until_it_ends(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 1))
        return;
    for (int killed = 0; killed < 2; killed++) {
        SHARE_ANSWERS(t, sharing_join(t, 1), 0);
        if (!sharing_have(t, 1, sharing_job(t, "a", -DUE_MS(5)), DUE_MS(300), &h))
            return;
        int64_t over_ns = t->answer.now_ns + DUE_MS(300);
        if (killed)
            sharing_vanish(t, 1);
        else
            sharing_leave(t, 1);
        sharing_claim(t, 1, 0, SHARE_LONG_NS);
        SHARE_CHECK(t, sharing_sent(t, 0), "claim");
        SHARE_CHECK(t, t->n_held == 0 || t->answer.now_ns >= over_ns, "it is held");
        if (t->n_held == 0) {
            sharing_pass(t, DUE_MS(320));
            sharing_claim(t, 1, 0, SHARE_LONG_NS);
            SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, &h.job, 1), "then it is due");
        }
        SHARE_CHECK(t, t->held[0].lapsed_ns > 0, "nobody had answered for it");
        sharing_done(t, t->held[0]);
        SHARE_CHECK(t, sharing_sent(t, 0), "done");
    }
}

static void fences_who_is_evicted(struct sharing *t)
{
    struct sharing_held h;

    if (!suite_has(&t->base, t->maker->evict != NULL, "no hook evict") || !sharing_all_join(t, 2) ||
        !sharing_have(t, 1, sharing_job(t, "a", -DUE_MS(5)), SHARE_LONG_NS, &h))
        return;
    t->maker->evict(t->maker->store.ctx, t->base.stores[1]);
    for (int again = 0; again < 2; again++) {
        sharing_done(t, h);
        SHARE_ANSWERS(t, sharing_send(t, 1), DUE_EFENCED);
        sharing_put(t, sharing_job(t, "a", 0));
        SHARE_ANSWERS(t, sharing_send(t, 1), DUE_EFENCED);
        sharing_claim(t, 1, 0, SHARE_LONG_NS);
        SHARE_ANSWERS(t, sharing_send(t, 1), DUE_EFENCED);
        SHARE_ANSWERS(
            t, sharing_verbs(t, 1)->beat(t->base.stores[1], &(struct due_beat){ 0 }, suite_soon()),
            DUE_EFENCED);
    }
    sharing_put(t, sharing_job(t, "a", -DUE_MS(5)));
    SHARE_CHECK(t, sharing_sent(t, 0), "the other one goes on");
    SHARE_CHECK(t, sharing_drain(t, 0, 1), "and claims");
}

static void tells_who_was_forgotten(struct sharing *t)
{
    if (!suite_has(&t->base, t->maker->lose != NULL, "no hook lose") || !sharing_all_join(t, 2))
        return;
    sharing_put(t, sharing_job(t, "a", -DUE_MS(5)));
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    size_t job = sharing_job(t, "a", -DUE_MS(5));
    t->maker->lose(t->maker->store.ctx);
    for (int again = 0; again < 2; again++) {
        sharing_put(t, job);
        SHARE_ANSWERS(t, sharing_send(t, 0), DUE_ELOST);
        sharing_claim(t, 1, 0, SHARE_LONG_NS);
        SHARE_ANSWERS(t, sharing_send(t, 1), DUE_ELOST);
    }
    uint64_t writer = t->base.info[0].writer;
    SHARE_ANSWERS(t, sharing_join(t, 0), 0);
    SHARE_CHECK(t, t->base.info[0].writer != writer, "another process");
    sharing_put(t, sharing_job(t, "a", -DUE_MS(4)));
    SHARE_CHECK(t, sharing_sent(t, 0), "it goes on");
    SHARE_CHECK(t, sharing_drain(t, 0, 1), "with what is there");
}

/* What nobody had been told of may be lost without a word: it is made once more. */
static void makes_again_what_was_lost_in_doubt(struct sharing *t)
{
    if (!suite_has(&t->base, t->maker->lose_last != NULL && t->maker->doubt != NULL,
                   "no hook lose_last, or doubt") ||
        !sharing_all_join(t, 1))
        return;
    sharing_put(t, sharing_job(t, "a", -DUE_MS(5)));
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    sharing_put(t, sharing_job(t, "a", -DUE_MS(4)));
    t->maker->doubt(t->maker->store.ctx, t->base.stores[0], false, true);
    SHARE_ANSWERS(t, sharing_send_once(t, 0), DUE_EINDOUBT);
    t->maker->lose_last(t->maker->store.ctx);
    SHARE_CHECK(t, sharing_sent(t, 0), "once more");
    SHARE_CHECK(t, sharing_drain(t, 0, 2), "both are there");
}

static void tells_of_a_loss_of_what_was_answered(struct sharing *t)
{
    if (!suite_has(&t->base, t->maker->lose_last != NULL, "no hook lose_last") ||
        !sharing_all_join(t, 2))
        return;
    sharing_put(t, sharing_job(t, "a", -DUE_MS(5)));
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    t->maker->lose_last(t->maker->store.ctx);
    sharing_put(t, sharing_job(t, "a", -DUE_MS(5)));
    SHARE_ANSWERS(t, sharing_send(t, 0), DUE_ELOST);
    SHARE_CHECK(t, sharing_drain(t, 1, 0), "nothing was done, and others go on");
}

static int beat_with(struct sharing *t, int s, struct due_beat beat)
{
    int64_t end_ns = suite_soon();
    int rc;

    do
        rc = sharing_verbs(t, s)->beat(t->base.stores[s], &beat, end_ns);
    while (rc == DUE_EAGAIN && suite_now_ns() < end_ns);
    return rc;
}

static int beat_for(struct sharing *t, int s, int64_t turn_ns)
{
    return beat_with(t, s, (struct due_beat){ .turn_ns = turn_ns, .dead_max = 7 });
}

/* Of those who want it one has it, and another when he has had it for long enough. */
static void gives_the_turn_to_one_at_a_time(struct sharing *t)
{
    int64_t end_ns = suite_soon();
    int rc = 0;

    if (!sharing_all_join(t, 3))
        return;
    SHARE_ANSWERS(t, beat_for(t, 0, 0), 0);
    SHARE_ANSWERS(t, beat_for(t, 1, SHARE_LONG_NS), DUE_BEAT_TURN);
    for (int s = 0; s < 3; s++)
        SHARE_ANSWERS(t, beat_for(t, s, SHARE_LONG_NS), 0);
    sharing_vanish(t, 1);
    while (rc == 0 && suite_now_ns() < end_ns)
        rc = beat_for(t, 2, 1);
    SHARE_ANSWERS(t, rc, DUE_BEAT_TURN);
    SHARE_ANSWERS(t, beat_for(t, 0, SHARE_LONG_NS), 0);
}

static void gives_those_who_ask_for_something_else_a_turn_of_their_own(struct sharing *t)
{
    struct due_beat others[] = { { .turn_ns = SHARE_LONG_NS, .dead_max = 70 },
                                 { .turn_ns = SHARE_LONG_NS, .dead_keep_ns = 7 },
                                 { .turn_ns = SHARE_LONG_NS, .dead_keep_ns = 7, .dead_max = 7 } };

    if (!sharing_all_join(t, 2))
        return;
    SHARE_ANSWERS(t, beat_for(t, 0, SHARE_LONG_NS), DUE_BEAT_TURN);
    for (int i = 0; i < 3; i++) {
        SHARE_ANSWERS(t, beat_with(t, 1, others[i]), DUE_BEAT_TURN);
        SHARE_ANSWERS(t, beat_with(t, 0, others[i]), 0);
    }
    SHARE_ANSWERS(t, beat_for(t, 1, SHARE_LONG_NS), 0);
}

static void is_not_owned_while_it_is_shared(struct sharing *t)
{
    if (!sharing_all_join(t, 1))
        return;
    SHARE_ANSWERS(t, suite_open_in_vain(&t->base, 1), DUE_EBUSY);
    sharing_vanish(t, 1);
    sharing_put(t, sharing_job(t, "a", -DUE_MS(5)));
    SHARE_CHECK(t, sharing_sent(t, 0), "they go on");
}

static void is_not_shared_while_it_is_owned(struct sharing *t)
{
    int rc = DUE_ESTORE;

    SHARE_ANSWERS(t, suite_open(&t->base, 1), 0);
    for (int64_t ns = DUE_MS(100); rc == DUE_ESTORE && ns < SUITE_SOON_NS; ns *= 3) {
        t->soon_ns = ns;
        rc = sharing_join(t, 0);
    }
    t->soon_ns = 0;
    SHARE_ANSWERS(t, rc, DUE_EBUSY);
    SHARE_CHECK(t, t->base.error.text[0] != '\0', "who has it");
    SHARE_ANSWERS(t, suite_ready(&t->base, 1), 0);
    suite_close(&t->base, 1);
}

const struct suite_test_shared share_join_tests[] = {
    { "join: a writer number for each", gives_a_writer_number_to_each },
    { "join: jobs stay when all have gone", keeps_its_jobs_when_all_have_gone },
    { "join: a lease stays until it ends", keeps_a_lease_until_it_ends },
    { "join: who is evicted is fenced", fences_who_is_evicted },
    { "join: who was forgotten is told", tells_who_was_forgotten },
    { "join: what was lost in doubt is made again", makes_again_what_was_lost_in_doubt },
    { "join: a loss of what was answered is told", tells_of_a_loss_of_what_was_answered },
    { "join: the turn is one process's at a time", gives_the_turn_to_one_at_a_time },
    { "join: who asks for something else has a turn of its own",
      gives_those_who_ask_for_something_else_a_turn_of_their_own },
    { "join: not owned while shared", is_not_owned_while_it_is_shared },
    { "join: not shared while owned", is_not_shared_while_it_is_owned },
    { NULL, NULL },
};
