/* Groups, of which one job runs at a time, and limits of topics: who is kept back, and that every
 * pass comes back exactly once. */
#include <stdio.h>

#include "queue/queue.h"
#include "lab/limiter_lab.h"
#include "lab/take.h"

/* ---- Groups ---- */

LAB_TEST(group, runs_one_job_after_another)
{
    struct lab lab = lab_open();
    due_job job;

    lab_enqueue(&lab, "a", .at_ns = 1, .more = EXTRA(OF("g")));
    lab_enqueue(&lab, "b", .at_ns = 2, .more = EXTRA(OF("g")));
    lab_enqueue(&lab, "c", .at_ns = 3, .more = EXTRA(OF("g")));
    lab_turn_to(&lab, 10);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_null(lab_dequeue(&lab), "a second one runs");
    limiter_right(&lab);
    cr_expect_eq(lab_stats(&lab).passed, 1u);
    cr_expect_eq(lab_stats(&lab).kept_back, 2u);
    cr_expect_str_eq(lab_text(&lab, &job), "a");
    cr_expect_str_eq(lab_dequeue(&lab), "b");
    cr_expect_str_eq(lab_dequeue(&lab), "c");
    limiter_close(&lab);
}

LAB_TEST(group, runs_beside_other_groups_and_jobs_of_none)
{
    struct lab lab = lab_open();
    due_job stuck;

    lab_enqueue(&lab, "stuck", .at_ns = 1, .more = EXTRA(OF("g")));
    lab_enqueue(&lab, "behind it", .at_ns = 2, .more = EXTRA(OF("g")));
    lab_enqueue(&lab, "h", .at_ns = 3, .more = EXTRA(OF("h")));
    lab_enqueue(&lab, "none", .at_ns = 4);
    lab_enqueue(&lab, "i", .at_ns = 5, .more = EXTRA(OF("i")));
    lab_turn_to(&lab, 10);
    cr_assert_eq(due_dequeue(lab.q, &stuck, 0), 0);
    cr_expect_str_eq(lab_dequeue_all(&lab), "h none i");
    due_job_done(&stuck);
    cr_expect_str_eq(lab_dequeue_all(&lab), "behind it");
    limiter_close(&lab);
}

LAB_TEST(group, of_the_same_name_in_another_topic_is_another)
{
    struct lab lab = lab_open();
    int mail = lab_topic(&lab, "mail");
    due_job job;

    lab_enqueue(&lab, "a", .at_ns = 1, .more = EXTRA(OF("g")));
    lab_enqueue(&lab, "b", .at_ns = 2, .more = EXTRA(OF("g")), .topic = mail);
    lab_turn_to(&lab, 10);
    cr_assert_eq(take_from(lab.q, &(int){ 0 }, 1, &job, 0), 0);
    cr_expect_str_eq(lab_dequeue_from(&lab, mail), "b");
    due_job_done(&job);
    limiter_close(&lab);
}

LAB_TEST(group, names_are_bytes_of_any_value_and_length)
{
    struct lab lab = lab_open();
    static const char bytes[DUE_KEY_MAX];
    due_job jobs[8];

    for (size_t len = 1; len <= DUE_KEY_MAX; len += 127) /* zeroes, and all different */
        lab_enqueue(&lab, "x", .more = EXTRA(.group = bytes, .group_len = len));
    lab_enqueue(&lab, "y", .more = EXTRA(.group = bytes, .group_len = 1));
    cr_assert_eq(take_some(lab.q, NULL, 0, jobs, 8, 0), 3);
    for (int i = 0; i < 3; i++)
        due_job_done(&jobs[i]);
    cr_expect_str_eq(lab_dequeue_all(&lab), "y");
    limiter_close(&lab);
}

LAB_TEST(group, keeps_strict_order_through_failures_and_delays)
{
    struct lab lab = lab_open(.with.retry = { .kind = DUE_RETRY_FIXED, .delay_ns = 500 });
    static const char *const texts[] = { "a", "b", "c", "d" };

    for (int i = 0; i < 4; i++)
        lab_enqueue(&lab, texts[i], .at_ns = 1 + i, .more = EXTRA(OF("g")));
    lab_turn_to(&lab, 100);
    for (int i = 0; i < 4; i++) {
        for (int failures = 0; failures < 3; failures++) {
            due_job job = limiter_reserve(&lab);

            cr_expect_eq(memcmp(job.data, texts[i], 1), 0);
            cr_expect_eq(due_nack(&job, failures == 1 ? 0 : DUE_DELAY_POLICY), 0);
            if (failures != 1) {
                limiter_nothing(&lab); /* nobody overtakes while it waits to be tried again */
                limiter_right(&lab);
                lab_advance(&lab, 500);
            }
        }
        due_job job = limiter_reserve(&lab);
        lab_advance(&lab, LEASE); /* nor when its lease ends */
        cr_expect_eq(due_ack(&job), DUE_ESTALE);
        job = limiter_reserve(&lab);
        cr_expect_eq(memcmp(job.data, texts[i], 1), 0);
        cr_expect_eq(due_ack(&job), 0);
    }
    cr_expect_eq(lab_stats(&lab).passed, 0u);
    limiter_close(&lab);
}

LAB_TEST(group, takes_turns_by_the_order_of_the_topic)
{
    struct lab lab = lab_open(.with.order = DUE_ORDER_PRIORITY);

    lab_enqueue(&lab, "through", .at_ns = 1, .priority = 1, .more = EXTRA(OF("g")));
    lab_turn_to(&lab, 5);
    cr_expect_eq(due_poll(lab.q, NULL), 1);
    lab_enqueue(&lab, "low", .at_ns = 5, .priority = 2, .more = EXTRA(OF("g")));
    lab_enqueue(&lab, "high", .at_ns = 5, .priority = 9, .more = EXTRA(OF("g")));
    lab_enqueue(&lab, "middle", .at_ns = 5, .priority = 5, .more = EXTRA(OF("g")));
    cr_expect_str_eq(lab_dequeue_all(&lab), "through high middle low",
                     "who was let through stays before those who come later");
    limiter_close(&lab);
}

/* What was put in before stands in the order, also if nobody has sorted it in yet. */
LAB_TEST(group, lets_nobody_through_before_who_was_left_in_the_inbox)
{
    for (int64_t at = 0; at < 50 * 100; at += 100) {
        struct lab lab = lab_open(.start_ns = at);

        lab_enqueue(&lab, "late", .at_ns = at + 20, .more = EXTRA(OF("g")));
        lab_enqueue(&lab, "soon", .at_ns = at + 10,
                    .more = EXTRA(OF("g"), .key = "k", .key_len = 1));
        lab_turn_to(&lab, at + 30);
        cr_assert_str_eq(lab_dequeue(&lab), "soon", "round %lld", (long long)at / 100);
        cr_expect_str_eq(lab_dequeue(&lab), "late");
        limiter_close(&lab);
    }
}

/* On a clock that can be set back what is due is moved before the inbox is emptied; but not to a
 * limiter. */
LAB_TEST(limiter, lets_nobody_through_before_who_was_left_on_a_clock_with_steps)
{
    struct lab lab = lab_open(.kernel = true, .with.clock = DUE_CLOCK_REALTIME);
    int64_t at = due_now(lab.q) + DUE_MS(30);
    struct due__tenure t;

    cr_assert_eq(due_topic_limit(lab.q, 0, 1), 0);
    lab_enqueue(&lab, "late", .at_ns = at);
    due__drain_all(lab.q);
    due__enter(lab.q, &t);
    lab_enqueue(&lab, "soon", .at_ns = at - 1);
    while (due_now(lab.q) <= at)
        ;
    due__tenure_end(lab.q, &t);
    cr_expect_str_eq(lab_dequeue(&lab), "soon");
    cr_expect_str_eq(lab_dequeue(&lab), "late");
    limiter_close(&lab);
}

LAB_TEST(group, passes_over_those_that_were_cancelled_and_a_trim_sweeps_them_out)
{
    struct lab lab = lab_open();
    due_id ids[300];
    due_job job;

    lab_enqueue(&lab, "first", .at_ns = 1, .more = EXTRA(OF("g")));
    for (int i = 0; i < 300; i++)
        ids[i] = lab_enqueue(&lab, "x", .at_ns = 2 + i, .more = EXTRA(OF("g")));
    lab_turn_to(&lab, 1000);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(lab_stats(&lab).kept_back, 300u);
    for (int i = 0; i < 299; i++)
        cr_expect_eq(due_cancel(lab.q, ids[i], NULL), 0);
    cr_expect_eq(due_trim(lab.q), 0);
    cr_expect_eq(lab_stats(&lab).kept_back, 1u);
    limiter_right(&lab);
    cr_expect_eq(due_reschedule(lab.q, ids[299], 1000), 0); /* leaves another dead one */
    due_job_done(&job);
    cr_expect_str_eq(lab_dequeue_all(&lab), "x");
    limiter_close(&lab);
}

LAB_TEST(group, is_forgotten_with_its_last_job_and_what_waits_dead_with_it)
{
    struct lab lab = lab_open();
    due_id ids[1500];

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1500; i++)
            ids[i] = lab_enqueue(&lab, "x", .at_ns = 1, .more = EXTRA(OF("g")));
        lab_turn_to(&lab, 10 + round);
        cr_expect_eq(lab_stats(&lab).kept_back, 1499u);
        cr_expect_eq(lab.q->limiters.groups, 1u);
        cr_expect_eq(due_cancel_batch(lab.q, ids + 1, 1499, NULL), 1499);
        cr_expect_eq(due_cancel(lab.q, ids[0], NULL), 0);
        cr_expect_eq(lab_stats(&lab).kept_back, 0u);
        cr_expect_eq(lab.q->limiters.groups, 0u);
        limiter_right(&lab);
    }
    limiter_close(&lab);
}

/* A sweep that stands at a limiter goes on with the next when nobody waits there any more. */
LAB_TEST(limiter, that_is_emptied_is_left_by_the_sweep_that_stands_at_it)
{
    struct lab lab = lab_open();
    const struct due__limiter *at;
    const struct due__limiter *next;
    struct due__tenure t;
    due_job first;
    due_job second;

    lab_enqueue(&lab, "g", .at_ns = 1, .more = EXTRA(OF("g")));
    lab_enqueue(&lab, "h", .at_ns = 2, .more = EXTRA(OF("h")));
    lab_enqueue(&lab, "g", .at_ns = 3, .more = EXTRA(OF("g")));
    lab_enqueue(&lab, "h", .at_ns = 4, .more = EXTRA(OF("h")));
    lab_turn_to(&lab, 5);
    cr_assert_eq(due_dequeue(lab.q, &first, 0), 0);
    cr_assert_eq(due_dequeue(lab.q, &second, 0), 0);
    due__enter(lab.q, &t);
    due__limiters_sweep_begin(lab.q);
    at = lab.q->limiters.sweep;
    cr_assert_not_null(at);
    next = at->next[DUE__LIMITERS_WAITED_AT];
    cr_assert_not_null(next);
    due__tenure_end(lab.q, &t);
    due_job_done(next->name[0] == 'g' ? &first : &second);
    cr_expect_eq(lab.q->limiters.sweep, at, "it stands at the other one");
    due_job_done(next->name[0] == 'g' ? &second : &first);
    cr_expect_null(lab.q->limiters.sweep, "nobody waits anywhere");
    cr_expect_str_eq(lab_dequeue_all(&lab), "g h");
    limiter_close(&lab);
}

/* ---- Every end of a job gives its pass back ---- */

enum end {
    DONE,
    ACK,
    ACK_BATCH,
    BURY,
    LAST_ATTEMPT,
    LAST_LEASE,
    EXPIRES,
    CANCEL_READY,
    CANCEL_READY_LENT,
    MOVE_READY,
    CANCEL_RESERVED_NACK,
    CANCEL_RESERVED_LEASE,
    CANCEL_RETRY,
    CANCEL_RETRY_LENT,
    MOVE_RETRY,
    LET_GO_LEASE,
    ENDS
};

/* A job that has been let through ends before it is reserved.  False: another way. */
static bool end_ready(struct lab *lab, enum end how, due_id id)
{
    due_job job = { 0 };

    switch (how) {
    case DONE:
        cr_assert_eq(due_dequeue(lab->q, &job, 0), 0);
        break;
    case CANCEL_READY:
        cr_assert_eq(due_cancel(lab->q, id, NULL), 0);
        break;
    case CANCEL_READY_LENT:
        cr_assert_eq(due_cancel(lab->q, id, &job), 0);
        break;
    case MOVE_READY:
        cr_assert_eq(due_reschedule(lab->q, id, 9000), 0);
        break;
    default:
        return false;
    }
    due_job_done(&job);
    return true;
}

/* Its holder answers for it, or lets go of it. */
static void answer(struct lab *lab, enum end how, due_job *job)
{
    switch (how) {
    case ACK:
        cr_assert_eq(due_ack(job), 0);
        break;
    case ACK_BATCH:
        cr_assert_eq(due_ack_batch(job, 1, NULL), 1);
        break;
    case BURY:
        cr_assert_eq(due_bury(job, "why"), 0);
        break;
    case LAST_ATTEMPT:
    case CANCEL_RESERVED_NACK:
        cr_assert_eq(due_nack(job, 0), 0);
        break;
    case EXPIRES:
        cr_assert_eq(due_nack(job, 600), 0);
        lab_advance(lab, 600);
        break;
    case LAST_LEASE:
    case LET_GO_LEASE:
    case CANCEL_RESERVED_LEASE:
        due_job_done(job);
        lab_advance(lab, LEASE);
        break;
    default:
        cr_assert_eq(due_nack(job, 300), 0);
    }
}

/* "a" is ready and has been let through; afterwards it does not stand before "b" any more. */
static void end(struct lab *lab, enum end how, due_id id)
{
    static const due_retry once = { .kind = DUE_RETRY_FIXED, .attempts_max = 1 };
    due_job job;

    if (how == LAST_ATTEMPT || how == LAST_LEASE)
        cr_assert_eq(due_topic_retry(lab->q, 0, &once), 0);
    if (end_ready(lab, how, id))
        return;
    job = limiter_reserve(lab);
    cr_assert(due_id_equal(job.id, id));
    if (how == CANCEL_RESERVED_NACK || how == CANCEL_RESERVED_LEASE)
        cr_assert_eq(due_cancel(lab->q, id, NULL), DUE_EBUSY);
    answer(lab, how, &job);
    if (how == CANCEL_RETRY)
        cr_assert_eq(due_cancel(lab->q, id, NULL), 0);
    if (how == CANCEL_RETRY_LENT) {
        cr_assert_eq(due_cancel(lab->q, id, &job), 0);
        due_job_done(&job);
    }
    if (how == MOVE_RETRY)
        cr_assert_eq(due_reschedule(lab->q, id, 9000), 0);
    if (how == LET_GO_LEASE) {
        job = limiter_reserve(lab);
        cr_assert(due_id_equal(job.id, id), "the end of a lease is not the end");
        cr_assert_eq(due_ack(&job), 0);
    }
}

static void every_end(bool group, bool limit)
{
    for (enum end how = DONE; how < ENDS; how++) {
        struct lab lab = lab_open();
        const char *name = group ? "g" : NULL;
        due_spec a = { DUE_SPEC_INIT, .at_ns = 10,
                       .more = EXTRA(.ttl_ns = how == EXPIRES ? 500 : 0, .group = name,
                                     .group_len = group) };
        due_spec b = { DUE_SPEC_INIT, .at_ns = 11,
                       .more = EXTRA(.group = name, .group_len = group) };

        if (limit)
            cr_assert_eq(due_topic_limit(lab.q, 0, 1), 0);
        due_id id = lab_enqueue_spec(&lab, "a", a);
        lab_enqueue_spec(&lab, "b", b);
        lab_turn_to(&lab, 20);
        cr_expect_eq(due_poll(lab.q, NULL), 1, "end %d", how);
        cr_expect_eq(lab_stats(&lab).passed, 1u, "end %d", how);
        end(&lab, how, id);
        due_job job = limiter_reserve(&lab);
        cr_expect_eq(memcmp(job.data, "b", 1), 0, "end %d", how);
        limiter_right(&lab);
        cr_expect_eq(lab_stats(&lab).passed, 1u, "end %d", how);
        cr_expect_eq(due_ack(&job), 0);
        cr_expect_eq(lab_stats(&lab).passed, 0u, "end %d", how);
        limiter_right(&lab);
        lab_turn_to(&lab, 9000); /* what was moved comes in its turn */
        if (how == MOVE_READY || how == MOVE_RETRY)
            cr_expect_str_eq(lab_dequeue_all(&lab), "a", "end %d", how);
        limiter_close(&lab);
    }
}

LAB_TEST(limiter, gets_a_group_s_pass_back_at_every_end_of_a_job)
{
    every_end(true, false);
}

LAB_TEST(limiter, gets_a_limit_s_pass_back_at_every_end_of_a_job)
{
    every_end(false, true);
}

LAB_TEST(limiter, gets_both_passes_back_at_every_end_of_a_job)
{
    every_end(true, true);
}

/* A cancelled job has ended, however long its caller looks at its bytes. */
LAB_TEST(limiter, gets_a_pass_back_from_who_is_cancelled_while_its_bytes_are_lent)
{
    for (int i = 0; i < 6; i++) {
        struct lab lab = lab_open();
        due_spec spec = { DUE_SPEC_INIT, .at_ns = 10, .more = i % 3 != 1 ? EXTRA(OF("g")) : NULL };

        if (i % 3 != 0)
            cr_assert_eq(due_topic_limit(lab.q, 0, 1), 0);
        due_id id = lab_enqueue_spec(&lab, "a", spec);
        lab_enqueue_spec(&lab, "b", spec);
        lab_turn_to(&lab, 20);
        cr_expect_eq(due_poll(lab.q, NULL), 1);
        if (i >= 3) { /* it has its pass while it waits to be tried again */
            due_job failed = limiter_reserve(&lab);
            cr_assert_eq(due_nack(&failed, 300), 0);
            limiter_nothing(&lab);
        }
        due_job lent;
        cr_assert_eq(due_cancel(lab.q, id, &lent), 0);
        due_job next = limiter_reserve(&lab);
        cr_expect_eq(memcmp(next.data, "b", 1), 0, "way %d", i);
        cr_expect_eq(memcmp(lent.data, "a", 1), 0, "way %d", i);
        cr_expect_eq(lab_stats(&lab).passed, 1u, "way %d", i);
        due_job_done(&lent);
        cr_expect_eq(due_ack(&next), 0);
        limiter_close(&lab);
    }
}

LAB_TEST(limiter, gets_passes_back_from_what_is_cleared_killed_and_discarded)
{
    struct lab lab = lab_open(.with.retry = { .kind = DUE_RETRY_FIXED, .attempts_max = 1 });

    cr_expect_eq(due_topic_limit(lab.q, 0, 3), 0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 9; i++) {
            char group = (char)('a' + i % 3);
            due_spec spec = { DUE_SPEC_INIT,
                              .more = i % 4 != 0 ? EXTRA(.group = &group, .group_len = 1) : NULL };

            lab_enqueue_spec(&lab, "x", spec);
        }
        due_job job = limiter_reserve(&lab);
        cr_expect_eq(lab_stats(&lab).passed, 4u, "one waits between its group and its topic");
        cr_expect_eq(due_nack(&job, 0), 0);
        cr_expect_eq(lab_stats(&lab).passed, 3u);
        if (round == 2)
            break;
        cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
        cr_expect_eq(lab_stats(&lab).passed, 0u);
        limiter_right(&lab);
        cr_expect_eq(due_kick_all(lab.q, DUE_ALL_TOPICS, NULL), 0);
        cr_expect_eq(lab_stats(&lab).passed, 1u);
        cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
        cr_expect_eq(lab_stats(&lab).passed, 0u);
    }
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_S(10)), 0);
    cr_expect_eq(lab_stats(&lab).passed, 0u);
    limiter_close(&lab);
}
