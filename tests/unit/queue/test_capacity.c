/* A queue that can be full. */
#include "lab/lab.h"

#include "os/atomic.h"
#include "queue/queue.h"
#include "lab/take.h"

static const due_spec one_more = { DUE_SPEC_INIT, .delay_ns = 5 };

/* A10 */
LAB_TEST(capacity, refuses_what_does_not_fit_and_takes_it_after_a_dequeue)
{
    struct lab lab = lab_open(.with.capacity = 2);

    lab_enqueue(&lab, "1", .delay_ns = 0);
    lab_enqueue(&lab, "2", .delay_ns = 5);
    cr_expect_eq(due_enqueue(lab.q, &one_more, 0, NULL), DUE_EAGAIN);
    cr_expect_eq(lab_stats(&lab).enqueued, 2u);
    cr_expect_str_eq(lab_dequeue(&lab), "1");
    cr_expect_eq(due_enqueue(lab.q, &one_more, 0, NULL), 0);
    cr_expect_eq(due_enqueue(lab.q, &one_more, 0, NULL), DUE_EAGAIN);
    lab_close(&lab);
}

LAB_TEST(capacity, does_not_count_lent_jobs)
{
    struct lab lab = lab_open(.with.capacity = 1);
    due_job job;

    lab_enqueue(&lab, "1", .delay_ns = 0);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(due_enqueue(lab.q, &one_more, 0, NULL), 0);
    due_job_done(&job);
    cr_expect_eq(due_enqueue(lab.q, &one_more, 0, NULL), DUE_EAGAIN);
    lab_close(&lab);
}

/* Netty: accepts again after a cancel; A9: exact under cancels */
LAB_TEST(capacity, is_exact_through_every_way_out)
{
    struct lab lab = lab_open(.with.capacity = 3);
    due_id id[3];
    due_job job;

    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 3; i++)
            id[i] = lab_enqueue(&lab, NULL, .delay_ns = 0);
        cr_assert_eq(due_enqueue(lab.q, &one_more, 0, NULL), DUE_EAGAIN);
        cr_assert_eq(due_cancel(lab.q, id[round % 3], NULL), 0);
        id[round % 3] = lab_enqueue(&lab, NULL, .delay_ns = 0);
        cr_assert_eq(due_enqueue(lab.q, &one_more, 0, NULL), DUE_EAGAIN);
        cr_assert_eq(due_cancel(lab.q, id[round % 3], &job), 0);
        due_job_done(&job);
        cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
        due_job_done(&job);
        cr_assert_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
    }
    cr_expect_eq(lab_stats(&lab).waiting, 0u);
    lab_close(&lab);
}

LAB_TEST(capacity, is_not_changed_by_reschedule_and_promote)
{
    struct lab lab = lab_open(.with.capacity = 2);
    due_id id = lab_enqueue(&lab, "1", .delay_ns = 10);

    for (int i = 0; i < 10; i++) {
        cr_expect_eq(due_reschedule(lab.q, id, 10 + i), 0);
        cr_expect_eq(due_promote(lab.q, id), 0);
    }
    lab_enqueue(&lab, "2", .delay_ns = 10);
    cr_expect_eq(due_enqueue(lab.q, &one_more, 0, NULL), DUE_EAGAIN);
    lab_close(&lab);
}

/* Or whoever gives room back would look for them each time. */
static void expect_nobody_waits(struct lab *lab)
{
    cr_expect_eq(due__load_seq(&lab->q->capacity_waiting), 0u);
    cr_expect_null(lab->q->capacity_line.first);
}

LAB_TEST(capacity, makes_an_enqueue_wait_its_whole_timeout)
{
    struct lab lab = lab_open(.with.capacity = 1);
    struct crew_call call;

    lab_enqueue(&lab, "in the way", .delay_ns = DUE_S(1));
    crew_call_enqueue(&call, lab.q, one_more, 100);
    crew_call_asleep(&call);
    lab_turn_to(&lab, 99);
    crew_call_asleep(&call);
    cr_expect_not(atomic_load(&call.thread.back));
    lab_turn_to(&lab, 100);
    cr_expect_eq(crew_call_answer(&call), DUE_ETIMEDOUT);
    cr_expect_eq(lab_stats(&lab).enqueued, 1u);
    expect_nobody_waits(&lab);
    lab_close(&lab);
}

LAB_TEST(capacity, lets_a_waiting_enqueue_in_after_a_dequeue)
{
    struct lab lab = lab_open(.with.capacity = 1);
    struct crew_call call;

    lab_enqueue(&lab, "first", .delay_ns = 0);
    crew_call_enqueue(&call, lab.q, one_more, DUE_FOREVER);
    crew_call_asleep(&call);
    cr_expect_str_eq(lab_dequeue(&lab), "first");
    cr_expect_eq(crew_call_answer(&call), 0);
    cr_expect_eq(lab_stats(&lab).waiting, 1u);
    expect_nobody_waits(&lab);
    lab_close(&lab);
}

LAB_TEST(capacity, lets_a_waiting_enqueue_in_after_a_cancel)
{
    struct lab lab = lab_open(.with.capacity = 1);
    struct crew_call call;
    due_id id = lab_enqueue(&lab, "first", .delay_ns = 10);

    crew_call_enqueue(&call, lab.q, one_more, DUE_FOREVER);
    crew_call_asleep(&call);
    cr_expect_eq(due_cancel(lab.q, id, NULL), 0);
    cr_expect_eq(crew_call_answer(&call), 0);
    expect_nobody_waits(&lab);
    lab_close(&lab);
}

/* B6, B8: one who left by timeout must not have used up the room of the next */
LAB_TEST(capacity, is_not_used_up_by_a_caller_that_timed_out)
{
    struct lab lab = lab_open(.with.capacity = 1);
    struct crew_call brief;
    struct crew_call patient;

    lab_enqueue(&lab, "first", .delay_ns = 0);
    crew_call_enqueue(&brief, lab.q, one_more, 10);
    crew_call_asleep(&brief);
    crew_call_enqueue(&patient, lab.q, one_more, DUE_FOREVER);
    crew_call_asleep(&patient);
    lab_turn_to(&lab, 10);
    cr_expect_eq(crew_call_answer(&brief), DUE_ETIMEDOUT);
    cr_expect_str_eq(lab_dequeue(&lab), "first");
    cr_expect_eq(crew_call_answer(&patient), 0);
    expect_nobody_waits(&lab);
    lab_close(&lab);
}

LAB_TEST(capacity, lets_as_many_in_as_there_is_room)
{
    enum { CALLERS = 6 };
    struct lab lab = lab_open(.with.capacity = CALLERS);
    struct crew_call call[CALLERS];

    for (int i = 0; i < CALLERS; i++)
        lab_enqueue(&lab, NULL, .delay_ns = 0);
    for (int i = 0; i < CALLERS; i++) {
        crew_call_enqueue(&call[i], lab.q, one_more, DUE_FOREVER);
        crew_call_asleep(&call[i]);
    }
    cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
    for (int i = 0; i < CALLERS; i++)
        cr_expect_eq(crew_call_answer(&call[i]), 0);
    cr_expect_eq(lab_stats(&lab).enqueued, 2 * CALLERS);
    expect_nobody_waits(&lab);
    lab_close(&lab);
}

LAB_TEST(capacity, makes_a_batch_wait_for_its_first_job)
{
    struct lab lab = lab_open(.with.capacity = 1);
    struct crew_call call;

    lab_enqueue(&lab, "first", .delay_ns = 0);
    crew_call_enqueue_batch(&call, lab.q, one_more, DUE_FOREVER);
    crew_call_asleep(&call);
    cr_expect_str_eq(lab_dequeue(&lab), "first");
    cr_expect_eq(crew_call_answer(&call), 1);
    expect_nobody_waits(&lab);
    lab_close(&lab);
}

LAB_TEST(capacity, keeps_a_carried_pointer_with_the_caller_on_failure)
{
    struct lab lab = lab_open(.with.capacity = 1);
    due_spec spec = { DUE_SPEC_INIT, .ptr = &lab };

    lab_enqueue(&lab, "in the way", .delay_ns = 5);
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_EAGAIN);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(atomic_load(&lab.state->discarded), 1u);
    cr_expect_null(lab.state->last_discarded.ptr);
    lab_close(&lab);
}

/* A tenure rings 32 bells at most: whoever was let in lets in the next. */
LAB_TEST(capacity, lets_more_in_than_one_tenure_can_ring)
{
    enum { CALLERS = 70 };
    struct lab lab = lab_open(.with.capacity = CALLERS);
    struct crew_call call[CALLERS];
    due_job jobs[CALLERS];
    size_t taken = 0;

    for (int i = 0; i < CALLERS; i++)
        lab_enqueue(&lab, NULL, .delay_ns = 0);
    for (int i = 0; i < CALLERS; i++) {
        crew_call_enqueue(&call[i], lab.q, one_more, DUE_FOREVER);
        crew_call_asleep(&call[i]);
    }
    while (taken < CALLERS) {
        int got = take_some(lab.q, NULL, 0, jobs, CALLERS - taken, 0);

        cr_assert_gt(got, 0);
        for (int i = 0; i < got; i++)
            due_job_done(&jobs[i]);
        taken += (size_t)got;
    }
    for (int i = 0; i < CALLERS; i++)
        cr_expect_eq(crew_call_answer(&call[i]), 0);
    cr_expect_eq(lab_stats(&lab).waiting, (uint64_t)CALLERS);
    expect_nobody_waits(&lab);
    lab_close(&lab);
}

LAB_TEST(capacity, wakes_a_waiting_enqueue_at_close)
{
    struct lab lab = lab_open(.with.capacity = 1);
    struct crew_call call;

    lab_enqueue(&lab, "in the way", .delay_ns = 5);
    crew_call_enqueue(&call, lab.q, one_more, DUE_FOREVER);
    crew_call_asleep(&call);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    cr_expect_eq(crew_call_answer(&call), DUE_ECLOSED);
    expect_nobody_waits(&lab);
    lab_close(&lab);
}

LAB_TEST(capacity, gives_room_back_when_memory_runs_out)
{
    static const char large[] = "a payload that does not fit into the thirty-two bytes of a job";
    struct lab lab = lab_open(.with.capacity = 1, .with.reserve = 10);
    due_spec spec = { DUE_SPEC_INIT, .data = large, .len = sizeof large };

    for (int i = 0; i < 3; i++) {
        flaky_fail_in(&lab.state->memory, 0);
        cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_ENOMEM);
    }
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), 0);
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_EAGAIN);
    lab_close(&lab);
}

/* Nor are there ever more than it says, whoever gives jobs back. */
LAB_TEST(capacity, keeps_the_room_of_a_reserved_job_until_it_is_done)
{
    struct lab lab = lab_open(.with.capacity = 2);
    due_spec spec = { DUE_SPEC_INIT };
    due_job job;

    lab_enqueue(&lab, "a", .delay_ns = 0);
    lab_enqueue(&lab, "b", .delay_ns = 0);
    cr_assert_eq(take_leased(lab.q, &job, 100, 0), 0);
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_EAGAIN);
    cr_expect_eq(due_nack(&job, 0), 0, "it has no room to come back to");
    cr_expect_eq(lab_stats(&lab).waiting, 2u);
    cr_assert_eq(take_leased(lab.q, &job, 100, 0), 0);
    lab_advance(&lab, 100);
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_EAGAIN, "its lease has ended");
    cr_expect_eq(lab_stats(&lab).waiting, 2u);
    cr_expect_eq(due_ack(&job), DUE_ESTALE);
    cr_assert_eq(take_leased(lab.q, &job, 100, 0), 0);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), 0, "an ack gives room");
    lab_close(&lab);
}

/* Neither for room nor for a job, nor for the end: whatever they waited on is used again. */
LAB_TEST(capacity, callers_that_waited_in_vain_leave_no_memory_behind)
{
    struct lab lab = lab_open(.kernel = true, .with.capacity = 1);
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(1000) };
    size_t blocks = 0;
    due_job job;

    cr_assert_eq(due_enqueue(lab.q, &spec, 0, NULL), 0);
    for (int i = 0; i < 40; i++) {
        cr_assert_eq(due_enqueue(lab.q, &spec, 1, NULL), DUE_ETIMEDOUT);
        cr_assert_eq(due_enqueue_batch(lab.q, &spec, 1, 1, NULL), DUE_ETIMEDOUT);
        cr_assert_eq(due_dequeue(lab.q, &job, 1), DUE_ETIMEDOUT);
        cr_assert_eq(take_leased(lab.q, &job, DUE_S(1), 1), DUE_ETIMEDOUT);
        if (i == 5)
            blocks = atomic_load(&lab.state->memory.live);
    }
    for (int i = 0; i < 40; i++)
        cr_assert_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 1), DUE_ETIMEDOUT);
    cr_expect_leq(atomic_load(&lab.state->memory.live), blocks, "a call has kept a block");
    lab_close(&lab);
}
