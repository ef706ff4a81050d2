/* Priorities, in both orders. */
#include "lab/lab.h"

LAB_TEST(priority, decides_among_equal_deadlines)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "low", .at_ns = 5, .priority = 0);
    lab_enqueue(&lab, "high", .at_ns = 5, .priority = 255);
    lab_enqueue(&lab, "middle", .at_ns = 5, .priority = 128);
    lab_enqueue(&lab, "high2", .at_ns = 5, .priority = 255);
    lab_turn_to(&lab, 5);
    cr_expect_str_eq(lab_dequeue_all(&lab), "high high2 middle low");
    lab_close(&lab);
}

LAB_TEST(priority, yields_to_the_deadline)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "later", .at_ns = 6, .priority = 255);
    lab_enqueue(&lab, "earlier", .at_ns = 5, .priority = 0);
    lab_turn_to(&lab, 10);
    cr_expect_str_eq(lab_dequeue_all(&lab), "earlier later");
    lab_close(&lab);
}

LAB_TEST(priority, orders_every_value)
{
    struct lab lab = lab_open();
    due_job job;

    for (int i = 0; i < 256; i++)
        lab_enqueue(&lab, NULL, .at_ns = 5, .priority = i * 73 % 256);
    lab_turn_to(&lab, 5);
    for (int i = 255; i >= 0; i--) {
        cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
        cr_assert_eq(job.priority, i);
        due_job_done(&job);
    }
    lab_close(&lab);
}

LAB_TEST(by_priority, takes_the_highest_of_what_is_due)
{
    struct lab lab = lab_open(.with.order = DUE_ORDER_PRIORITY);

    lab_enqueue(&lab, "low", .at_ns = 1, .priority = 1);
    lab_enqueue(&lab, "high", .at_ns = 5, .priority = 9);
    lab_enqueue(&lab, "middle", .at_ns = 3, .priority = 5);
    lab_turn_to(&lab, 5);
    cr_expect_str_eq(lab_dequeue_all(&lab), "high middle low");
    lab_close(&lab);
}

LAB_TEST(by_priority, does_not_wait_for_what_is_not_due)
{
    struct lab lab = lab_open(.with.order = DUE_ORDER_PRIORITY);

    lab_enqueue(&lab, "high", .at_ns = 100, .priority = 255);
    lab_enqueue(&lab, "low", .at_ns = 5, .priority = 0);
    lab_turn_to(&lab, 99);
    cr_expect_str_eq(lab_dequeue(&lab), "low");
    cr_expect_null(lab_dequeue(&lab));
    lab_turn_to(&lab, 100);
    cr_expect_str_eq(lab_dequeue(&lab), "high");
    lab_close(&lab);
}

LAB_TEST(by_priority, takes_by_deadline_then_arrival_among_equals)
{
    struct lab lab = lab_open(.with.order = DUE_ORDER_PRIORITY);

    lab_enqueue(&lab, "3", .at_ns = 5, .priority = 7);
    lab_enqueue(&lab, "4", .at_ns = 5, .priority = 7);
    lab_enqueue(&lab, "2", .at_ns = 4, .priority = 7);
    lab_enqueue(&lab, "1", .at_ns = 5, .priority = 8);
    lab_turn_to(&lab, 5);
    cr_expect_str_eq(lab_dequeue_all(&lab), "1 2 3 4");
    lab_close(&lab);
}

LAB_TEST(by_priority, lets_a_newcomer_pass_everything_lower)
{
    enum { JOBS = 300 };
    struct lab lab = lab_open(.with.order = DUE_ORDER_PRIORITY);
    due_job job;

    for (int i = 0; i < JOBS; i++)
        lab_enqueue(&lab, NULL, .delay_ns = 0, .priority = 10);
    for (int i = 0; i < JOBS; i++) {
        lab_enqueue(&lab, NULL, .delay_ns = 0, .priority = 11 + i % 200);
        cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
        cr_assert_eq(job.priority, 11 + i % 200);
        due_job_done(&job);
    }
    cr_expect_eq(lab_stats(&lab).waiting, JOBS);
    lab_close(&lab);
}

LAB_TEST(by_priority, holds_within_each_topic)
{
    struct lab lab = lab_open(.with.order = DUE_ORDER_PRIORITY);
    int topic = lab_topic(&lab, "mail");

    lab_enqueue(&lab, "b", .delay_ns = 0, .topic = topic, .priority = 1);
    lab_enqueue(&lab, "x", .delay_ns = 0, .priority = 99);
    lab_enqueue(&lab, "a", .delay_ns = 0, .topic = topic, .priority = 2);
    cr_expect_str_eq(lab_dequeue_from(&lab, topic), "a");
    cr_expect_str_eq(lab_dequeue_from(&lab, topic), "b");
    cr_expect_str_eq(lab_dequeue_from(&lab, 0), "x");
    lab_close(&lab);
}

LAB_TEST(by_priority, is_what_peek_shows)
{
    struct lab lab = lab_open(.with.order = DUE_ORDER_PRIORITY);
    due_info info;

    lab_enqueue(&lab, "low", .at_ns = 1, .priority = 1);
    lab_enqueue(&lab, "high", .at_ns = 2, .priority = 2);
    lab_turn_to(&lab, 5);
    cr_assert_eq(due_peek(lab.q, &info), 0);
    cr_expect_eq(info.priority, 2);
    lab_close(&lab);
}
