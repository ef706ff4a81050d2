/* Jobs that come again. */
#include "queue/extras.h"
#include "lab/lab.h"
#include "job/repeat.h"
#include "lab/take.h"

#define LEASE 1000000

static due_job reserve(struct lab *lab)
{
    due_job job = { 0 };

    cr_assert_eq(take_leased(lab->q, &job, LEASE, 0), 0);
    return job;
}

static due_job take(struct lab *lab)
{
    due_job job = { 0 };

    cr_assert_eq(due_dequeue(lab->q, &job, 0), 0);
    return job;
}

static int ack_one(struct lab *lab)
{
    due_job job = reserve(lab);

    return due_ack(&job);
}

static const char *const kinds[] = { "skip", "once", "after" };

/* ---- When ---- */

LAB_TEST(repeat, comes_again_after_each_ack)
{
    for (int kind = DUE_REPEAT_SKIP; kind <= DUE_REPEAT_AFTER; kind++) {
        struct lab lab = lab_open();
        due_id id = lab_enqueue(&lab, "tea", .at_ns = 5,
                                .more = EXTRA(.every_ns = 10, .repeat = (enum due_repeat)kind));

        for (int round = 0; round < 5; round++) {
            lab_turn_to(&lab, 4 + 10 * round);
            cr_expect_null(lab_dequeue(&lab), "%s: too early", kinds[kind]);
            lab_advance(&lab, 1);
            due_job job = reserve(&lab);
            cr_expect(due_id_equal(job.id, id));
            cr_expect_eq(job.deadline_ns, 5 + 10 * round, "%s", kinds[kind]);
            cr_expect_eq(job.attempts, 1u);
            cr_expect_eq(due_ack(&job), 0);
            cr_expect_eq(lab_find(&lab, id).deadline_ns, 15 + 10 * round);
        }
        struct due_stats s = lab_stats(&lab);
        cr_expect_eq(s.repeated, 5u);
        cr_expect_eq(s.acked, 0u, "it has not left");
        cr_expect_eq(s.waiting, 1u);
        cr_expect_eq(s.leased, 0u);
        cr_expect_eq(s.ready, 0u);
        cr_expect_eq(due_cancel(lab.q, id, NULL), 0);
        lab_advance(&lab, 1000);
        cr_expect_null(lab_dequeue(&lab));
        lab_close(&lab);
    }
}

/* Acked late: 27 after its deadline, with a round each 10. */
LAB_TEST(repeat, what_was_missed_is_left_out_or_made_up_for_once_or_moves_the_rest)
{
    const int64_t next[][3] = { { 130, 140, 150 }, { 120, 130, 140 }, { 137, 147, 157 } };

    for (int kind = DUE_REPEAT_SKIP; kind <= DUE_REPEAT_AFTER; kind++) {
        struct lab lab = lab_open();
        due_id id = lab_enqueue(&lab, "tea", .at_ns = 100,
                                .more = EXTRA(.every_ns = 10, .repeat = (enum due_repeat)kind));

        lab_turn_to(&lab, 127);
        for (int round = 0; round < 3; round++) {
            cr_expect_eq(ack_one(&lab), 0);
            cr_expect_eq(lab_find(&lab, id).deadline_ns, next[kind][round], "%s, round %d",
                         kinds[kind], round);
            if (next[kind][round] > due_now(lab.q))
                lab_turn_to(&lab, next[kind][round]);
        }
        lab_close(&lab);
    }
}

/* A deadline that is just now has not passed. */
LAB_TEST(repeat, a_round_that_is_due_now_is_not_missed)
{
    for (int kind = DUE_REPEAT_SKIP; kind <= DUE_REPEAT_ONCE; kind++) {
        for (int64_t now = 110; now <= 120; now += 10) {
            struct lab lab = lab_open();
            due_id id = lab_enqueue(&lab, "tea", .at_ns = 100,
                                    .more = EXTRA(.every_ns = 10, .repeat = (enum due_repeat)kind));

            lab_turn_to(&lab, now);
            cr_expect_eq(ack_one(&lab), 0);
            cr_expect_eq(lab_find(&lab, id).deadline_ns, now);
            lab_close(&lab);
        }
    }
}

/* A tick each nanosecond, a century later. */
LAB_TEST(repeat, far_behind_is_not_counted_up)
{
    for (int kind = DUE_REPEAT_SKIP; kind <= DUE_REPEAT_AFTER; kind++) {
        struct lab lab = lab_open();
        int64_t later = DUE_S(3155760000);
        due_id id = lab_enqueue(&lab, "tea", .at_ns = 1,
                                .more = EXTRA(.every_ns = 1, .repeat = (enum due_repeat)kind));

        lab_turn_to(&lab, later);
        cr_expect_eq(ack_one(&lab), 0);
        int64_t at = lab_find(&lab, id).deadline_ns;
        cr_expect_eq(at, kind == DUE_REPEAT_AFTER ? later + 1 : later, "%s", kinds[kind]);
        lab_close(&lab);
    }
}

LAB_TEST(repeat, the_end_of_time_saturates)
{
    for (int kind = DUE_REPEAT_SKIP; kind <= DUE_REPEAT_AFTER; kind++) {
        struct lab lab = lab_open();
        due_id id = lab_enqueue(
            &lab, "tea", .at_ns = DUE_FOREVER - 10,
            .more = EXTRA(.every_ns = DUE_FOREVER - 1, .repeat = (enum due_repeat)kind));

        lab_turn_to(&lab, DUE_FOREVER - 5);
        cr_expect_eq(ack_one(&lab), 0);
        cr_expect_eq(lab_find(&lab, id).deadline_ns, DUE_FOREVER);
        lab_turn_to(&lab, DUE_FOREVER - 1);
        cr_expect_null(lab_dequeue(&lab));
        lab_close(&lab);
    }
}

/* ---- Within a round ---- */

LAB_TEST(repeat, failures_begin_anew_with_each_round)
{
    const due_retry policy = { .kind = DUE_RETRY_FIXED, .attempts_max = 3, .delay_ns = 2 };
    struct lab lab = lab_open();
    due_id id =
        lab_enqueue(&lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 100, .retry = &policy));

    for (int round = 0; round < 4; round++) {
        lab_turn_to(&lab, 10 + 100 * round);
        for (uint32_t i = 0; i < 2; i++) {
            due_job job = reserve(&lab);

            cr_expect_eq(job.attempts, i + 1);
            cr_expect_eq(job.failures, i);
            cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
            lab_advance(&lab, 2);
        }
        due_job job = reserve(&lab);
        cr_expect_eq(job.attempts, 3u);
        cr_expect_eq(job.deadline_ns, 10 + 100 * round, "the round's, not the retry's");
        cr_expect_eq(due_ack(&job), 0);
        cr_expect_eq(lab_find(&lab, id).deadline_ns, 110 + 100 * round, "the grid stays");
    }
    cr_expect_eq(lab_stats(&lab).dead, 0u);
    lab_close(&lab);
}

LAB_TEST(repeat, a_dead_one_does_not_come_again_until_it_is_kicked)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 100));

    lab_turn_to(&lab, 10);
    due_job job = reserve(&lab);
    cr_expect_eq(due_bury(&job, "broken"), 0);
    lab_turn_to(&lab, 1015);
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_eq(due_kick(lab.q, id), 0);
    cr_expect_eq(ack_one(&lab), 0);
    cr_expect_eq(lab_find(&lab, id).deadline_ns, 1110, "on its old grid");
    lab_close(&lab);
}

LAB_TEST(repeat, each_round_has_the_time_limit_anew)
{
    struct lab lab = lab_open();
    due_id id =
        lab_enqueue(&lab, "tea", .at_ns = 1000000, .more = EXTRA(.every_ns = 100, .ttl_ns = 20));

    lab_turn_to(&lab, 1000019);
    cr_expect_eq(ack_one(&lab), 0);
    lab_turn_to(&lab, 1000119);
    cr_expect_eq(ack_one(&lab), 0);
    lab_turn_to(&lab, 1000220);
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_eq(lab_stats(&lab).dead, 1u);
    cr_expect_eq(due_cancel(lab.q, id, NULL), 0);
    lab_close(&lab);
}

LAB_TEST(repeat, who_is_late_does_not_end_the_next_round)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 4 * LEASE));

    lab_turn_to(&lab, 10);
    due_job late = reserve(&lab);
    lab_advance(&lab, LEASE);
    cr_expect_eq(ack_one(&lab), 0);
    cr_expect_eq(memcmp(late.data, "tea", 3), 0);
    lab_turn_to(&lab, 10 + 4 * LEASE);
    due_job second = reserve(&lab);
    cr_expect_eq(due_ack(&late), DUE_ESTALE);
    cr_expect_eq(due_ack(&second), 0);
    cr_expect_eq(lab_find(&lab, id).deadline_ns, 10 + 8 * LEASE);
    lab_close(&lab);
}

LAB_TEST(repeat, a_reschedule_moves_the_grid)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 100));

    cr_expect_eq(due_reschedule(lab.q, id, 33), 0);
    lab_turn_to(&lab, 40);
    cr_expect_eq(ack_one(&lab), 0);
    cr_expect_eq(lab_find(&lab, id).deadline_ns, 133);
    lab_close(&lab);
}

LAB_TEST(repeat, can_be_changed_between_two_rounds)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 100));

    lab_turn_to(&lab, 10);
    cr_expect_eq(ack_one(&lab), 0);
    cr_expect_eq(due_update(lab.q, id, "milk", 4), 0);
    lab_turn_to(&lab, 110);
    due_job job = reserve(&lab);
    cr_expect_eq(memcmp(job.data, "milk", 4), 0);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(lab_find(&lab, id).deadline_ns, 210);
    lab_close(&lab);
}

/* ---- Taken for good ---- */

LAB_TEST(repeat, waits_again_while_its_bytes_are_lent)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 10));

    lab_turn_to(&lab, 10);
    due_job first = take(&lab);
    cr_expect_eq(first.token, 0u);
    cr_expect_eq(first.deadline_ns, 10);
    cr_expect_eq(due_ack(&first), DUE_EINVAL, "it was not reserved");
    cr_expect_eq(lab_find(&lab, id).deadline_ns, 20);
    cr_expect_eq(due_update(lab.q, id, "milk", 4), DUE_EBUSY);
    lab_turn_to(&lab, 20);
    due_job second = take(&lab);
    cr_expect_eq(second.deadline_ns, 20);
    cr_expect_eq(lab_stats(&lab).lent, 2u);
    cr_expect_eq(lab_stats(&lab).waiting, 1u);
    cr_expect_eq(due_cancel(lab.q, id, NULL), 0);
    cr_expect_eq(memcmp(first.data, "tea", 3), 0, "valid until it is let go");
    due_job_done(&first);
    cr_expect_eq(memcmp(second.data, "tea", 3), 0);
    cr_expect_eq(due_free(lab.q), DUE_EBUSY);
    due_job_done(&second);
    cr_expect_eq(lab_stats(&lab).lent, 0u);
    cr_expect_eq(lab_stats(&lab).dequeued, 0u);
    cr_expect_eq(lab_stats(&lab).repeated, 2u);
    lab_close(&lab);
}

LAB_TEST(repeat, in_a_batch_with_others)
{
    struct lab lab = lab_open();
    due_job jobs[40];

    for (int i = 0; i < 20; i++) {
        lab_enqueue(&lab, "plain", .at_ns = 10);
        lab_enqueue(&lab, "again", .at_ns = 10, .more = EXTRA(.every_ns = 10));
    }
    lab_turn_to(&lab, 10);
    cr_expect_eq(take_some(lab.q, NULL, 0, jobs, 40, 0), 40);
    for (int i = 0; i < 40; i++)
        cr_expect_str_eq(lab_text(&lab, &jobs[i]), i % 2 ? "again" : "plain");
    struct due_stats s = lab_stats(&lab);
    cr_expect_eq(s.waiting, 20u);
    cr_expect_eq(s.dequeued, 20u);
    cr_expect_eq(s.lent, 0u);
    lab_turn_to(&lab, 20);
    cr_expect_eq(take_some(lab.q, NULL, 0, jobs, 40, 0), 20);
    for (int i = 0; i < 20; i++)
        due_job_done(&jobs[i]);
    lab_close(&lab);
}

LAB_TEST(repeat, with_every_shape_of_content)
{
    struct lab lab = lab_open();
    int thing = 1;
    due_spec spec = { DUE_SPEC_INIT, .ptr = &thing, .at_ns = 10, .more = EXTRA(.every_ns = 10) };

    cr_assert_eq(due_enqueue(lab.q, &spec, 0, NULL), 0);
    for (int round = 1; round < 4; round++) {
        lab_turn_to(&lab, 10 * round);
        due_job job = take(&lab);
        cr_expect_eq(job.ptr, &thing);
        due_job_done(&job);
    }
    lab_close(&lab);
}

/* ---- Its end ---- */

LAB_TEST(repeat, cancelled_while_reserved_it_ends_with_the_ack)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 10));

    lab_turn_to(&lab, 10);
    due_job job = reserve(&lab);
    cr_expect_eq(due_cancel(lab.q, id, NULL), DUE_EBUSY);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(due_cancel(lab.q, id, NULL), DUE_ENOENT);
    cr_expect_eq(lab_stats(&lab).acked, 1u);
    cr_expect_eq(lab_stats(&lab).waiting, 0u);
    lab_advance(&lab, 1000);
    cr_expect_null(lab_dequeue(&lab));
    lab_close(&lab);
}

LAB_TEST(repeat, a_draining_close_ends)
{
    struct lab lab = lab_open();
    due_job job;

    lab_enqueue(&lab, "acked", .at_ns = 10, .more = EXTRA(.every_ns = 10));
    lab_enqueue(&lab, "taken", .at_ns = 10, .more = EXTRA(.every_ns = 10));
    lab_turn_to(&lab, 5);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    lab_turn_to(&lab, 10);
    job = reserve(&lab);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    job = take(&lab);
    due_job_done(&job);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), 0);
    cr_expect_eq(lab_stats(&lab).acked, 1u);
    cr_expect_eq(lab_stats(&lab).dequeued, 1u);
    lab_close(&lab);
}

LAB_TEST(repeat, a_discarding_close_shows_it_once)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 10));
    lab_turn_to(&lab, 10);
    due_job job = take(&lab);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, 0), 0);
    cr_expect_eq(lab_stats(&lab).discarded, 1u);
    cr_expect_eq(memcmp(job.data, "tea", 3), 0);
    due_job_done(&job);
    lab_close(&lab);
}

LAB_TEST(repeat, keeps_its_room)
{
    struct lab lab = lab_open(.with.capacity = 2);
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 5 };
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 10));

    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), 0);
    for (int round = 1; round < 5; round++) {
        lab_turn_to(&lab, 10 * round);
        if (round == 1)
            lab_dequeue(&lab);
        else
            cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_EAGAIN);
        if (round % 2)
            cr_expect_eq(ack_one(&lab), 0);
        else
            cr_expect_str_eq(lab_dequeue(&lab), "tea");
        if (round == 1)
            cr_expect_eq(due_enqueue(lab.q, &(due_spec){ DUE_SPEC_INIT, .at_ns = 1000 }, 0, NULL),
                         0);
    }
    cr_expect_eq(due_cancel(lab.q, id, NULL), 0);
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), 0);
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_EAGAIN, "the room came back once");
    lab_close(&lab);
}

/* What a round needs is had when the job is put in. */
LAB_TEST(repeat, a_round_needs_no_memory)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 10));
    lab.state->memory.fail_on = true;
    flaky_fail_in(&lab.state->memory, 0);
    for (int round = 1; round < 5; round++) {
        lab_turn_to(&lab, 10 * round);
        if (round % 2)
            cr_expect_str_eq(lab_dequeue(&lab), "tea");
        else
            cr_expect_eq(ack_one(&lab), 0);
    }
    lab.state->memory.fail_on = false;
    lab.state->memory.fail_at = FLAKY_NEVER;
    lab_close(&lab);
}

LAB_TEST(repeat, enqueued_without_memory_nothing_has_changed)
{
    unsigned failed = 0;

    for (size_t n = 0; n < 6; n++) {
        struct lab lab = lab_open();
        due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3, .at_ns = 10,
                          .more = EXTRA(.every_ns = 10) };

        flaky_fail_in(&lab.state->memory, n);
        int rc = due_enqueue(lab.q, &spec, 0, NULL);
        lab.state->memory.fail_at = FLAKY_NEVER;
        cr_expect(rc == 0 || rc == DUE_ENOMEM);
        failed += rc != 0;
        lab_turn_to(&lab, 10);
        if (rc == 0)
            cr_expect_str_eq(lab_dequeue(&lab), "tea");
        else
            cr_expect_null(lab_dequeue(&lab));
        lab_close(&lab);
    }
    cr_expect_gt(failed, 0u, "no allocation failed");
}

/* Between two rounds the others of its group have their turn. */
LAB_TEST(repeat, in_a_group_each_round_stands_in_line)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "again", .at_ns = 10,
                .more = EXTRA(.every_ns = 10, .group = "g", .group_len = 1));
    lab_enqueue(&lab, "plain", .at_ns = 11, .more = EXTRA(.group = "g", .group_len = 1));
    lab_turn_to(&lab, 11);
    due_job job = reserve(&lab);
    cr_expect_null(lab_dequeue(&lab), "two of one group");
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "plain");
    for (int round = 2; round < 5; round++) {
        lab_turn_to(&lab, 10 * round);
        cr_expect_str_eq(lab_dequeue(&lab), "again");
    }
    cr_expect_eq(lab_stats(&lab).passed, 0u);
    lab_close(&lab);
}

/* ---- Clocks that are set ---- */

/* The next deadline follows from the last one, wherever the clock has gone. */
Test(repeat, a_clock_that_was_set_back_changes_nothing_of_the_grid)
{
    struct due__extras front = { .every_ns = 100, .repeat = DUE_REPEAT_SKIP };

    cr_expect_eq(due__repeat_next(&front, 1000, 400), 1100);
    front.repeat = DUE_REPEAT_ONCE;
    cr_expect_eq(due__repeat_next(&front, 1000, 400), 1100);
    front.repeat = DUE_REPEAT_AFTER;
    cr_expect_eq(due__repeat_next(&front, 1000, 400), 500);
}
