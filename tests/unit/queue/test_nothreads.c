/* DUE_PROXIES_NEVER: the callers do everything. */
#include "lab/lab.h"

Test(nothreads, starts_no_thread)
{
    unsigned before = crew_threads();
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);

    cr_expect_eq(crew_threads(), before);
    lab_enqueue(&lab, "job", .delay_ns = 0);
    cr_expect_eq(crew_threads(), before);
    lab_close(&lab);
}

Test(nothreads, tells_when_to_come_again)
{
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    int64_t next = 0;

    cr_expect_eq(due_poll(lab.q, &next), 0);
    cr_expect_eq(next, DUE_FOREVER);
    cr_expect_eq(due_next_deadline(lab.q), DUE_FOREVER);
    lab_enqueue(&lab, "b", .at_ns = 20);
    lab_enqueue(&lab, "a", .at_ns = 10);
    cr_expect_eq(due_poll(lab.q, &next), 0);
    cr_expect_eq(next, 10);
    cr_expect_eq(due_next_deadline(lab.q), 10);
    lab_turn_to(&lab, 10);
    cr_expect_eq(due_poll(lab.q, &next), 1);
    cr_expect_str_eq(lab_dequeue(&lab), "a");
    cr_expect_eq(due_poll(lab.q, &next), 0);
    cr_expect_eq(next, 20);
    lab_close(&lab);
}

/* A loop as a program without threads would write it, on the real clock. */
Test(nothreads, serves_a_loop_that_sleeps_until_the_next_deadline, .timeout = 60)
{
    struct lab lab = lab_open(.kernel = true, .with.proxies = DUE_PROXIES_NEVER);
    int seen = 0;

    for (int i = 0; i < 10; i++)
        lab_enqueue(&lab, "job", .delay_ns = DUE_MS(2) * i);
    while (seen < 10) {
        int64_t next;

        due_poll(lab.q, &next);
        if (next > due_now(lab.q))
            crew_sleep(next - due_now(lab.q));
        while (lab_dequeue(&lab) != NULL)
            seen++;
    }
    cr_expect_eq(due_next_deadline(lab.q), DUE_FOREVER);
    lab_close(&lab);
}

Test(nothreads, lets_a_caller_wait_on_the_real_clock, .timeout = 60)
{
    struct lab lab = lab_open(.kernel = true, .with.proxies = DUE_PROXIES_NEVER);
    due_job job;

    lab_enqueue(&lab, "job", .delay_ns = DUE_MS(10));
    cr_assert_eq(due_dequeue(lab.q, &job, DUE_S(30)), 0);
    cr_expect_geq(crew_now_ns(), job.deadline_ns);
    due_job_done(&job);
    lab_close(&lab);
}

LAB_TEST(poll, counts_what_can_be_taken)
{
    struct lab lab = lab_open();
    int64_t next;

    for (int i = 0; i < 1000; i++)
        lab_enqueue(&lab, NULL, .at_ns = 1 + i);
    lab_turn_to(&lab, 400);
    cr_expect_eq(due_poll(lab.q, &next), 400);
    for (int i = 0; i < 400; i++)
        cr_assert_not_null(lab_dequeue(&lab));
    cr_expect_eq(due_poll(lab.q, &next), 0);
    cr_expect_eq(next, 401);
    lab_close(&lab);
}

LAB_TEST(poll, works_without_room_for_the_next_deadline)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, NULL, .delay_ns = 0);
    cr_expect_eq(due_poll(lab.q, NULL), 1);
    lab_close(&lab);
}

LAB_TEST(next_deadline, is_not_later_than_now_when_something_is_due)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "job", .at_ns = 10);
    lab_turn_to(&lab, 30);
    cr_expect_leq(due_next_deadline(lab.q), 30);
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    cr_expect_eq(due_next_deadline(lab.q), DUE_FOREVER);
    lab_close(&lab);
}

LAB_TEST(next_deadline, follows_every_change)
{
    struct lab lab = lab_open();
    due_id a = lab_enqueue(&lab, "a", .at_ns = 100);
    due_id b = lab_enqueue(&lab, "b", .at_ns = 200);

    cr_expect_eq(due_next_deadline(lab.q), 100);
    cr_expect_eq(due_reschedule(lab.q, a, 300), 0);
    cr_expect_eq(due_next_deadline(lab.q), 200);
    cr_expect_eq(due_cancel(lab.q, b, NULL), 0);
    cr_expect_eq(due_next_deadline(lab.q), 300);
    cr_expect_eq(due_reschedule(lab.q, a, DUE_FOREVER), 0);
    cr_expect_eq(due_next_deadline(lab.q), DUE_FOREVER);
    lab_close(&lab);
}

/* ---- When the next one is due ---- */

/* Many stand before it, and are held back: more than are moved at a time, and nobody has moved them
 * when it is asked for. */
LAB_TEST(next_deadline, is_not_that_of_many_that_are_due_and_paused)
{
    struct lab lab = lab_open(.kernel = true);
    int topic = lab_topic(&lab, "paused");
    int64_t at = due_now(lab.q) + DUE_MS(5);

    cr_assert_eq(due_pause(lab.q, topic), 0);
    for (int i = 0; i < 500; i++)
        lab_enqueue(&lab, "held back", .at_ns = at + i, .topic = topic);
    while (due_now(lab.q) <= at + 500)
        crew_sleep(DUE_MS(1));
    cr_expect_eq(due_next_deadline(lab.q), DUE_FOREVER);
    lab_enqueue(&lab, "next", .at_ns = at + DUE_S(1000));
    cr_expect_eq(due_next_deadline(lab.q), at + DUE_S(1000));
    cr_expect_eq(due_resume(lab.q, topic), 0);
    cr_expect_leq(due_next_deadline(lab.q), at + 500);
    lab_close(&lab);
}

/* What stood at the head is gone, and behind it are more than are sorted at a time. */
LAB_TEST(next_deadline, is_that_of_the_first_of_very_many)
{
    enum { JOBS = 100000 };
    struct lab lab = lab_open(.with.reserve = JOBS);
    int topic = lab_topic(&lab, "paused");
    uint64_t seed = 5;

    cr_assert_eq(due_pause(lab.q, topic), 0);
    for (int i = 0; i < 10; i++)
        lab_enqueue(&lab, "held back", .at_ns = 1 + i, .topic = topic);
    int64_t first = DUE_S(100) + 7;
    for (int i = 0; i < JOBS; i++)
        lab_enqueue(&lab, NULL, .at_ns = first + 1 + (int64_t)crew_below(&seed, 1000000));
    lab_enqueue(&lab, NULL, .at_ns = first);
    lab_turn_to(&lab, 20);
    due_poll(lab.q, NULL);
    cr_expect_eq(due_next_deadline(lab.q), first);
    cr_expect_eq(due_next_deadline(lab.q), first);
    lab_turn_to(&lab, first);
    cr_expect_eq(due_next_deadline(lab.q), first);
    lab_close(&lab);
}
