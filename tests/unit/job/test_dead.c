/* Jobs that die: of their last attempt, by hand, or of old age; and cancelling what is reserved. */
#include <stdio.h>

#include "lab/lab.h"
#include "lab/take.h"

#define LEASE 100

static const due_retry twice = { .kind = DUE_RETRY_FIXED, .attempts_max = 2, .delay_ns = 50 };

static due_job reserve(struct lab *lab)
{
    due_job job = { 0 };

    cr_assert_eq(take_leased(lab->q, &job, LEASE, 0), 0);
    return job;
}

/* The only dead job there is. */
static due_dead only_dead(struct lab *lab)
{
    uint64_t cursor = 0;
    due_dead dead[2] = { 0 };

    cr_assert_eq(due_list_dead(lab->q, &cursor, dead, 2), 1);
    return dead[0];
}

/* ---- Dying ---- */

LAB_TEST(dead, after_the_last_attempt_by_nack)
{
    struct lab lab = lab_open(.start_ns = 1000, .with.retry = twice);
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 1010, .priority = 7);

    lab_turn_to(&lab, 1010);
    due_job job = reserve(&lab);
    cr_expect_eq(due_nack(&job, 5), 0);
    lab_advance(&lab, 5);
    job = reserve(&lab);
    cr_expect_eq(due_nack(&job, 5), 0, "its own delay does not change that it is the last");
    cr_expect_null(job.queue);
    lab_advance(&lab, 1000000);
    cr_expect_null(lab_dequeue(&lab));

    due_dead dead = only_dead(&lab);
    cr_expect(due_id_equal(dead.id, id));
    cr_expect_eq(dead.cause, DUE_CAUSE_ATTEMPTS);
    cr_expect_eq(dead.attempts, 2u);
    cr_expect_eq(dead.failures, 2u);
    cr_expect_eq(dead.deadline_ns, 1010);
    cr_expect_eq(dead.died_ns, 1015);
    cr_expect_eq(dead.priority, 7);
    cr_expect_eq(dead.len, 3u);
    cr_expect_str_eq(dead.reason, "");
    struct due_stats s = lab_stats(&lab);
    cr_expect_eq(s.dead, 1u);
    cr_expect_eq(s.waiting, 0u);
    cr_expect_eq(s.leased, 0u);
    cr_expect_eq(s.nacked, 2u);
    cr_expect_eq(s.retried, 1u);
    cr_expect_eq(s.buried, 1u);
    lab_close(&lab);
}

LAB_TEST(dead, after_the_last_attempt_by_the_end_of_its_lease)
{
    struct lab lab = lab_open(.with.retry = twice);

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    due_job first = reserve(&lab);
    lab_advance(&lab, LEASE);
    due_job second = reserve(&lab);
    cr_expect_eq(second.attempts, 2u);
    lab_advance(&lab, LEASE - 1);
    cr_expect_eq(lab_stats(&lab).dead, 0u);
    lab_advance(&lab, 1);
    due_job third;
    cr_expect_eq(take_leased(lab.q, &third, LEASE, 0), DUE_EAGAIN);
    cr_expect_eq(only_dead(&lab).cause, DUE_CAUSE_ATTEMPTS);
    cr_expect_eq(only_dead(&lab).failures, 2u);
    cr_expect_eq(due_ack(&second), DUE_ESTALE);
    cr_expect_eq(due_ack(&first), DUE_ESTALE);
    cr_expect_eq(lab_stats(&lab).dead, 1u, "a late ack brought it back");
    cr_expect_eq(lab_stats(&lab).leased, 0u);
    cr_expect_eq(lab_stats(&lab).lapsed, 2u);
    lab_close(&lab);
}

/* ---- Without memory for a grave ---- */

static void forbid_memory(struct lab *lab, bool yes)
{
    struct flaky *memory = &lab->state->memory;

    flaky_fail_in(memory, 0);
    memory->fail_on = yes;
    if (!yes)
        memory->fail_at = FLAKY_NEVER;
}

/* Nobody is there to be told when the lease ends: the job waits, and who is about to take it is. */
LAB_TEST(dead, a_second_later_when_there_is_no_memory_at_the_end_of_the_last_lease)
{
    struct lab lab = lab_open(.with.retry = { .kind = DUE_RETRY_FIXED, .attempts_max = 1 });
    due_id id = lab_enqueue(&lab, "tea", .delay_ns = 0);
    due_job job = reserve(&lab);

    due_job_done(&job);
    forbid_memory(&lab, true);
    lab_advance(&lab, LEASE);
    cr_expect_eq(take_leased(lab.q, &job, LEASE, 0), DUE_EAGAIN);
    cr_expect_eq(lab_stats(&lab).dead, 0u);
    cr_expect_eq(lab_stats(&lab).waiting, 1u);
    for (int i = 0; i < 3; i++) {
        lab_advance(&lab, DUE_S(1));
        cr_expect_eq(take_leased(lab.q, &job, LEASE, 0), DUE_ENOMEM);
        cr_expect_eq(lab_stats(&lab).ready, 1u);
    }
    forbid_memory(&lab, false);
    cr_expect_eq(take_leased(lab.q, &job, LEASE, 0), DUE_EAGAIN, "it had one attempt");
    due_dead dead = only_dead(&lab);
    cr_expect(due_id_equal(dead.id, id));
    cr_expect_eq(dead.cause, DUE_CAUSE_ATTEMPTS);
    cr_expect_eq(dead.attempts, 1u);
    cr_expect_eq(dead.failures, 1u);
    cr_expect_eq(lab_stats(&lab).lapsed, 1u);
    cr_expect_eq(lab_stats(&lab).waiting, 0u);
    lab_close(&lab);
}

LAB_TEST(dead, or_its_holder_is_told_that_there_is_no_memory)
{
    struct lab lab = lab_open(.with.retry = { .kind = DUE_RETRY_FIXED, .attempts_max = 1 });

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    due_job job = reserve(&lab);
    forbid_memory(&lab, true);
    cr_expect_eq(due_nack(&job, 0), DUE_ENOMEM);
    cr_expect_eq(due_bury(&job, "why"), DUE_ENOMEM);
    cr_expect_eq(lab_stats(&lab).leased, 1u, "it is his still");
    forbid_memory(&lab, false);
    cr_expect_eq(due_nack(&job, 0), 0);
    cr_expect_eq(only_dead(&lab).failures, 1u);
    lab_close(&lab);
}

LAB_TEST(dead, cost_memory_and_not_those_that_may_die)
{
    const due_retry policies[] = { { .kind = DUE_RETRY_FIXED },
                                   { .kind = DUE_RETRY_FIXED, .attempts_max = 9 } };
    size_t bytes[2];

    for (int i = 0; i < 2; i++) {
        struct lab lab = lab_open(.with.retry = policies[i]);

        lab_enqueue(&lab, "tea", .delay_ns = 0);
        due_job job = reserve(&lab);
        bytes[i] = atomic_load(&lab.state->memory.bytes);
        cr_expect_eq(due_nack(&job, 0), 0);
        lab_close(&lab);
    }
    cr_expect_eq(bytes[0], bytes[1]);
}

LAB_TEST(dead, buried_with_a_reason_that_is_cut_to_fit)
{
    struct lab lab = lab_open();
    char reason[2 * DUE_REASON_BYTES];

    memset(reason, 'x', sizeof reason);
    reason[sizeof reason - 1] = '\0';
    lab_enqueue(&lab, "tea", .delay_ns = 0);
    due_job job = reserve(&lab);
    cr_expect_eq(due_bury(&job, reason), 0);
    cr_expect_null(job.queue);
    due_dead dead = only_dead(&lab);
    cr_expect_eq(dead.cause, DUE_CAUSE_BURIED);
    cr_expect_eq(strlen(dead.reason), (size_t)DUE_REASON_BYTES - 1);
    cr_expect_eq(dead.attempts, 1u);
    cr_expect_eq(dead.failures, 0u, "burying is no failure of an attempt");
    lab_close(&lab);
}

LAB_TEST(dead, a_late_bury_changes_nothing)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    due_job late = reserve(&lab);
    lab_advance(&lab, LEASE);
    due_job job = reserve(&lab);
    cr_expect_eq(due_bury(&late, "no"), DUE_ESTALE);
    cr_expect_eq(lab_stats(&lab).dead, 0u);
    cr_expect_eq(due_ack(&job), 0);
    lab_close(&lab);
}

/* ---- And after ---- */

LAB_TEST(dead, a_kick_brings_it_back_as_if_it_never_had_been)
{
    struct lab lab = lab_open(.with.retry = twice);
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10);

    for (int round = 0; round < 3; round++) {
        lab_advance(&lab, 50);
        for (int i = 0; i < 2; i++) {
            due_job job = reserve(&lab);

            cr_expect_eq(job.attempts, (uint32_t)i + 1);
            cr_expect_eq(job.deadline_ns, 10);
            cr_expect(due_id_equal(job.id, id));
            cr_expect_eq(due_nack(&job, 0), 0);
        }
        cr_expect_eq(lab_stats(&lab).dead, 1u);
        cr_expect_eq(due_kick(lab.q, id), 0);
        cr_expect_eq(lab_stats(&lab).dead, 0u);
        cr_expect_eq(lab_stats(&lab).waiting, 1u);
        cr_expect_eq(due_kick(lab.q, id), DUE_ENOENT, "it is not dead");
    }
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    cr_expect_eq(due_kick(lab.q, id), DUE_ENOENT);
    lab_close(&lab);
}

static void bury_all(struct lab *lab, const char *reason)
{
    due_job job;

    while (take_leased(lab->q, &job, LEASE, 0) == 0)
        cr_assert_eq(due_bury(&job, reason), 0);
}

LAB_TEST(dead, kick_and_clear_by_topic)
{
    struct lab lab = lab_open();
    int mail = due_topic(lab.q, "mail");
    uint64_t n = 0;

    for (int i = 0; i < 600; i++)
        lab_enqueue(&lab, "tea", .delay_ns = 0, .topic = i % 3 == 0 ? mail : 0);
    bury_all(&lab, NULL);
    cr_expect_eq(lab_stats(&lab).dead, 600u);
    cr_expect_eq(due_kick_all(lab.q, mail, &n), 0);
    cr_expect_eq(n, 200u);
    cr_expect_eq(lab_stats(&lab).waiting, 200u);
    cr_expect_eq(due_clear_dead(lab.q, mail, &n), 0);
    cr_expect_eq(n, 0u);
    cr_expect_eq(due_clear_dead(lab.q, DUE_ALL_TOPICS, &n), 0);
    cr_expect_eq(n, 400u);
    cr_expect_eq(lab_stats(&lab).discarded, 400u);
    cr_expect_eq(due_clear_dead(lab.q, 9, &n), DUE_EINVAL);
    cr_expect_eq(due_kick_all(lab.q, 9, &n), DUE_EINVAL);
    lab_close(&lab);
}

LAB_TEST(dead, a_cancel_takes_it_for_good)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .delay_ns = 0);
    due_id other = lab_enqueue(&lab, "milk", .delay_ns = 0);
    due_job job;

    bury_all(&lab, NULL);
    cr_expect_eq(due_cancel(lab.q, id, &job), 0);
    cr_expect_eq(job.len, 3u);
    due_job_done(&job);
    cr_expect_eq(due_cancel(lab.q, other, NULL), 0);
    cr_expect_eq(due_cancel(lab.q, other, NULL), DUE_ENOENT);
    cr_expect_eq(lab_stats(&lab).dead, 0u);
    cr_expect_eq(lab_stats(&lab).cancelled, 2u);
    lab_close(&lab);
}

LAB_TEST(dead, kept_for_a_time_and_then_shown_to_on_discard)
{
    struct lab lab = lab_open(.with.dead_keep_ns = 1000);

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    bury_all(&lab, NULL);
    lab_advance(&lab, 999);
    cr_expect_eq(lab_stats(&lab).dead, 1u);
    lab_advance(&lab, 1);
    cr_expect_eq(lab_stats(&lab).dead, 0u);
    cr_expect_eq(lab_stats(&lab).discarded, 1u);
    cr_expect_eq(lab.state->discarded, 1u);
    cr_expect_str_eq(lab.state->discarded_text, "tea");
    lab_close(&lab);
}

LAB_TEST(dead, the_oldest_of_too_many_go)
{
    struct lab lab = lab_open(.with.dead_max = 3);
    char text[8];

    for (int i = 0; i < 10; i++) {
        snprintf(text, sizeof text, "%d", i);
        lab_enqueue(&lab, text, .delay_ns = 0);
        bury_all(&lab, NULL);
        cr_expect_eq(lab_stats(&lab).dead, i < 3 ? (unsigned)i + 1 : 3u);
        if (i >= 3) {
            snprintf(text, sizeof text, "%d", i - 3);
            cr_expect_str_eq(lab.state->discarded_text, text, "not the oldest");
        }
    }
    cr_expect_eq(lab_stats(&lab).discarded, 7u);
    lab_close(&lab);
}

/* Also among very many, if it is one of the first. */
LAB_TEST(dead, is_as_old_as_it_was_when_it_is_changed)
{
    enum { MOST = 600 };
    struct lab lab = lab_open(.with.dead_max = MOST);
    due_id id[MOST];
    char text[16];

    for (int i = 0; i < 2 * MOST; i++) {
        snprintf(text, sizeof text, "%d", i);
        due_id its = lab_enqueue(&lab, text, .delay_ns = 0);
        if (i < MOST)
            id[i] = its;
        bury_all(&lab, NULL);
        lab_advance(&lab, 1);
        for (int k = 0; k < MOST && i == MOST - 1; k += k == 0 ? 200 : 399) {
            snprintf(text, sizeof text, "%d", k); /* the first, one behind it, and the last */
            cr_assert_eq(due_update(lab.q, id[k], text, strlen(text)), 0);
        }
        if (i >= MOST) {
            snprintf(text, sizeof text, "%d", i - MOST);
            cr_assert_str_eq(lab.state->discarded_text, text, "not the oldest");
        }
    }
    cr_expect_eq(lab_stats(&lab).dead, (unsigned)MOST);
    lab_close(&lab);
}

LAB_TEST(dead, takes_no_room)
{
    struct lab lab = lab_open(.with.capacity = 1);
    due_id id = lab_enqueue(&lab, "tea", .delay_ns = 0);
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = 0 };

    bury_all(&lab, NULL);
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), 0);
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_EAGAIN);
    cr_expect_eq(due_kick(lab.q, id), 0, "it comes back also where there is no room");
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_EAGAIN);
    lab_dequeue(&lab);
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_EAGAIN);
    lab_dequeue(&lab);
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), 0);
    lab_close(&lab);
}

LAB_TEST(dead, a_draining_close_does_not_wait_for_it)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    bury_all(&lab, NULL);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), 0);
    lab_close(&lab);
}

LAB_TEST(dead, a_draining_close_waits_until_the_last_one_is)
{
    struct lab lab = lab_open(.with.retry = twice);
    due_job job;

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    job = reserve(&lab);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    cr_expect_eq(due_nack(&job, 0), 0);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    job = reserve(&lab);
    cr_expect_eq(due_nack(&job, 0), 0);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), 0);
    lab_close(&lab);
}

/* ---- Time limits ---- */

LAB_TEST(ttl, counts_from_the_deadline)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "tea", .at_ns = 1000000, .more = EXTRA(.ttl_ns = 10));
    lab_enqueue(&lab, "milk", .at_ns = 1000000, .more = EXTRA(.ttl_ns = 11));
    lab_turn_to(&lab, 1000010);
    cr_expect_str_eq(lab_dequeue(&lab), "milk");
    cr_expect_null(lab_dequeue(&lab));
    due_dead dead = only_dead(&lab);
    cr_expect_eq(dead.cause, DUE_CAUSE_EXPIRED);
    cr_expect_eq(dead.deadline_ns, 1000000);
    cr_expect_eq(dead.attempts, 0u);
    lab_close(&lab);
}

LAB_TEST(ttl, may_be_an_instant)
{
    struct lab lab = lab_open(.start_ns = 100);

    lab_enqueue(&lab, "tea", .at_ns = 200, .more = EXTRA(.expires_ns = 205));
    lab_turn_to(&lab, 204);
    due_job job = reserve(&lab);
    cr_expect_eq(due_nack(&job, 1), 0);
    lab_turn_to(&lab, 205);
    cr_expect_eq(take_leased(lab.q, &job, LEASE, 0), DUE_EAGAIN, "tried again after its time");
    cr_expect_eq(only_dead(&lab).cause, DUE_CAUSE_EXPIRED);
    cr_expect_eq(due_kick(lab.q, only_dead(&lab).id), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    lab_close(&lab);
}

/* It has no timer: until somebody is about to take it, the job waits. */
LAB_TEST(ttl, is_looked_at_when_somebody_is_about_to_take_the_job)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 100, .more = EXTRA(.ttl_ns = 10));
    due_info info;

    lab_turn_to(&lab, 1000);
    cr_assert_eq(due_peek(lab.q, &info), 0);
    cr_expect(due_id_equal(info.id, id));
    cr_expect_eq(lab_stats(&lab).waiting, 1u);
    cr_expect_eq(lab_stats(&lab).dead, 0u);
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_eq(due_peek(lab.q, &info), DUE_EAGAIN);
    cr_expect_eq(lab_stats(&lab).waiting, 0u);
    cr_expect_eq(lab_stats(&lab).dead, 1u);
    lab_close(&lab);
}

LAB_TEST(ttl, moves_with_the_deadline)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 100, .more = EXTRA(.ttl_ns = 10));

    cr_expect_eq(due_reschedule(lab.q, id, 1000), 0);
    lab_turn_to(&lab, 1009);
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    lab_close(&lab);
}

/* A batch is given what is left, and one that finds only expired jobs goes on waiting. */
LAB_TEST(ttl, leaves_the_rest_of_a_batch)
{
    struct lab lab = lab_open();
    due_job jobs[8];

    for (int i = 0; i < 6; i++)
        lab_enqueue(&lab, "tea", .at_ns = 100, .more = EXTRA(.ttl_ns = i % 2 ? 10 : 0));
    lab_turn_to(&lab, 110);
    cr_expect_eq(take_some(lab.q, NULL, 0, jobs, 8, 0), 3);
    for (int i = 0; i < 3; i++)
        due_job_done(&jobs[i]);
    cr_expect_eq(lab_stats(&lab).dead, 3u);
    lab_close(&lab);
}

/* kombu: a delay longer than the visibility timeout is delivered again and again. */
LAB_TEST(ttl, a_delay_far_longer_than_the_lease_is_delivered_once)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "tea", .delay_ns = (int64_t)1000 * LEASE);
    for (int i = 0; i < 999; i++) {
        due_job job;

        lab_advance(&lab, LEASE);
        cr_expect_eq(take_leased(lab.q, &job, LEASE, 0), DUE_EAGAIN);
    }
    lab_advance(&lab, LEASE);
    due_job job = reserve(&lab);
    cr_expect_eq(job.attempts, 1u);
    cr_expect_eq(due_ack(&job), 0);
    lab_advance(&lab, (int64_t)1000 * LEASE);
    cr_expect_null(lab_dequeue(&lab));
    lab_close(&lab);
}

/* ---- Cancelling what is reserved ---- */

LAB_TEST(revoke, a_cancelled_lease_is_not_tried_again)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .delay_ns = 0);

    due_job job = reserve(&lab);
    cr_expect_eq(due_cancel(lab.q, id, NULL), DUE_EBUSY);
    cr_expect_eq(due_extend(&job, LEASE), 0, "it is its holder's still");
    cr_expect_eq(due_nack(&job, 0), 0);
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_eq(lab_stats(&lab).cancelled, 1u);
    cr_expect_eq(lab_stats(&lab).nacked, 1u);
    cr_expect_eq(lab_stats(&lab).leased, 0u);
    cr_expect_eq(due_cancel(lab.q, id, NULL), DUE_ENOENT);
    lab_close(&lab);
}

LAB_TEST(revoke, nor_when_the_lease_ends_nor_when_it_is_buried)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .delay_ns = 0);

    due_job job = reserve(&lab);
    cr_expect_eq(due_cancel(lab.q, id, NULL), DUE_EBUSY);
    lab_advance(&lab, LEASE);
    due_job other;
    cr_expect_eq(take_leased(lab.q, &other, LEASE, 0), DUE_EAGAIN);
    cr_expect_eq(lab_stats(&lab).cancelled, 1u);
    cr_expect_eq(due_ack(&job), DUE_ESTALE);

    id = lab_enqueue(&lab, "milk", .delay_ns = 0);
    job = reserve(&lab);
    cr_expect_eq(due_cancel(lab.q, id, NULL), DUE_EBUSY);
    cr_expect_eq(due_bury(&job, "why"), 0);
    cr_expect_eq(lab_stats(&lab).dead, 0u);
    cr_expect_eq(lab_stats(&lab).cancelled, 2u);
    cr_expect_eq(lab_stats(&lab).nacked, 0u, "it was buried, not given back");
    lab_close(&lab);
}

LAB_TEST(revoke, an_ack_still_counts_as_one)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .delay_ns = 0);

    due_job job = reserve(&lab);
    cr_expect_eq(due_cancel(lab.q, id, NULL), DUE_EBUSY);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(lab_stats(&lab).acked, 1u);
    cr_expect_eq(lab_stats(&lab).cancelled, 0u);
    lab_close(&lab);
}

/* ---- An end ---- */

/* A reserved job keeps the queue from its end; on every clock. */
LAB_TEST(dead, what_is_dead_is_not_kicked_in_a_queue_that_closes)
{
    for (int kernel = 0; kernel < 2; kernel++) {
        struct lab lab = lab_open(.kernel = kernel);
        uint64_t kicked = 9;
        due_job job;

        due_id id = lab_enqueue(&lab, "tea", .delay_ns = 0);
        cr_assert_eq(take_leased(lab.q, &job, DUE_S(100), 0), 0);
        cr_expect_eq(due_bury(&job, NULL), 0);
        lab_enqueue(&lab, "cake", .delay_ns = 0);
        cr_assert_eq(take_leased(lab.q, &job, DUE_S(100), 0), 0);
        cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, 0), 0);
        cr_expect_eq(due_kick(lab.q, id), DUE_ECLOSED);
        cr_expect_eq(due_kick_all(lab.q, DUE_ALL_TOPICS, &kicked), DUE_ECLOSED);
        cr_expect_eq(due_kick_all(lab.q, 0, &kicked), DUE_ECLOSED);
        cr_expect_eq(kicked, 9u);
        cr_expect_eq(lab_stats(&lab).waiting, 0u);
        cr_expect_eq(due_ack(&job), 0);
        lab_close(&lab);
    }
}
