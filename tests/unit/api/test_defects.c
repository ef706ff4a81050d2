/* The four defects of the original three-proxy queue, each as a test that would fail on it.  Its
 * fourth, close leaving blocked callers blocked, is wakes_a_caller_blocked_in_every_verb in
 * test_close.c. */
#include "lab/lab.h"

/* It burned 1.69 s of processor time in a wait of 3.48 s: seconds were used as nanoseconds. */
LAB_TEST(defects, waiting_for_seconds_costs_next_to_no_processor_time)
{
    struct lab lab = lab_open(.kernel = true);
    struct crew_call call[3];

    lab_enqueue(&lab, "tea", .delay_ns = DUE_MS(1200));
    int64_t cpu = crew_cpu_ns();
    for (int i = 0; i < 3; i++)
        crew_call_dequeue(&call[i], lab.q, DUE_MS(1400));
    int taken = 0;
    for (int i = 0; i < 3; i++) {
        taken += crew_call_answer(&call[i]) == 0;
        due_job_done(&call[i].job);
    }
    cpu = crew_cpu_ns() - cpu;
    cr_expect_eq(taken, 1);
    cr_expect_leq(cpu, DUE_MS(60), "%jd us of processor time", (intmax_t)cpu / 1000);
    lab_close(&lab);
}

/* It delivered up to 988 ms early: deadlines were compared as whole seconds. */
LAB_TEST(defects, a_job_is_not_early_by_a_fraction_of_a_second)
{
    struct lab lab = lab_open(.start_ns = DUE_S(5) + DUE_MS(10));

    lab_enqueue(&lab, "job", .at_ns = DUE_S(5) + DUE_MS(998));
    for (int64_t at = DUE_S(5) + DUE_MS(11); at < DUE_S(5) + DUE_MS(998); at += DUE_MS(7)) {
        lab_turn_to(&lab, at);
        cr_assert_null(lab_dequeue(&lab), "early by %jd ns",
                       (intmax_t)(DUE_S(5) + DUE_MS(998) - at));
    }
    lab_turn_to(&lab, DUE_S(5) + DUE_MS(998) - 1);
    cr_expect_null(lab_dequeue(&lab));
    lab_turn_to(&lab, DUE_S(5) + DUE_MS(998));
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    lab_close(&lab);
}

/* It delivered one job twice and lost another: it looked at the head, handed it over, and then
 * removed whatever was the head by then.  Here an earlier job comes when the first is selected. */
LAB_TEST(defects, an_earlier_job_between_selection_and_hand_over_loses_nothing)
{
    struct lab lab = lab_open(.start_ns = 100);
    due_info selected;

    for (int round = 0; round < 100; round++) {
        lab_enqueue(&lab, "later", .at_ns = 50);
        cr_assert_eq(due_poll(lab.q, NULL), 1);
        cr_assert_eq(due_peek(lab.q, &selected), 0);
        lab_enqueue(&lab, "earlier", .at_ns = 10);
        cr_assert_str_eq(lab_dequeue_all(&lab), "earlier later");
    }
    lab_close(&lab);
}

/* The same with a consumer that sleeps: it is called for one job, and an earlier one comes before
 * it is awake. */
LAB_TEST(defects, an_earlier_job_between_call_and_wake_up_loses_nothing)
{
    struct lab lab = lab_open(.start_ns = 100);

    for (int round = 0; round < 200; round++) {
        struct crew_call call;
        due_job job;

        crew_call_dequeue(&call, lab.q, DUE_FOREVER);
        if (round % 4 == 0)
            crew_call_asleep(&call);
        due_id later = lab_enqueue(&lab, "later", .at_ns = 50);
        due_id earlier = lab_enqueue(&lab, "earlier", .at_ns = 10);

        cr_assert_eq(crew_call_answer(&call), 0);
        cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
        cr_assert_not(due_id_equal(call.job.id, job.id), "delivered twice");
        cr_assert(due_id_equal(job.id, later) || due_id_equal(job.id, earlier));
        due_job_done(&job);
        due_job_done(&call.job);
        cr_assert_null(lab_dequeue(&lab));
    }
    lab_close(&lab);
}

/* Its close left blocked callers blocked: only its proxies heard it. */
LAB_TEST(defects, close_is_heard_by_blocked_callers)
{
    struct lab lab = lab_open(.kernel = true, .with.capacity = 1);
    struct crew_call consumer;
    struct crew_call producer;
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = 1 };

    lab_enqueue(&lab, "in the way", .delay_ns = DUE_S(1000));
    crew_call_dequeue(&consumer, lab.q, DUE_FOREVER);
    crew_call_asleep(&consumer);
    crew_call_enqueue(&producer, lab.q, spec, DUE_FOREVER);
    crew_call_asleep(&producer);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_S(30)), 0);
    cr_expect_eq(crew_call_answer(&consumer), DUE_ECLOSED);
    cr_expect_eq(crew_call_answer(&producer), DUE_ECLOSED);
    lab_close(&lab);
}
