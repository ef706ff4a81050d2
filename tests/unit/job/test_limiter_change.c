/* Jobs of groups and of limited topics that are changed, or come again. */
#include "queue/queue.h"
#include "lab/limiter_lab.h"

LAB_TEST(limiter_change, of_the_content_leaves_a_job_in_its_group)
{
    struct lab lab = lab_open();
    static const char more[] = "a payload that is longer than what fits into the place of a job";
    due_job job;

    due_id a = lab_enqueue(&lab, "a", .at_ns = 1, .more = EXTRA(OF("g")));
    due_id b = lab_enqueue(&lab, "b", .at_ns = 2, .more = EXTRA(OF("g")));
    due_id c = lab_enqueue(&lab, "c", .at_ns = 500, .more = EXTRA(OF("g")));
    lab_turn_to(&lab, 10);
    cr_expect_eq(due_poll(lab.q, NULL), 1);
    cr_expect_eq(due_update(lab.q, a, "A", 1), 0, "let through already");
    limiter_right(&lab);
    cr_expect_eq(due_update(lab.q, b, more, sizeof more - 1), 0, "kept back");
    cr_expect_eq(due_update(lab.q, c, "C", 1), 0, "delayed");
    cr_expect_eq(lab_stats(&lab).passed, 1u);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(memcmp(job.data, "A", 1), 0);
    cr_expect_null(lab_dequeue(&lab));
    lab_turn_to(&lab, 500);
    cr_expect_null(lab_dequeue(&lab));
    due_job_done(&job);
    cr_expect_str_eq(lab_dequeue(&lab), more);
    cr_expect_str_eq(lab_dequeue(&lab), "C");
    cr_expect_eq(lab.q->limiters.groups, 0u);
    limiter_close(&lab);
}

LAB_TEST(limiter_change, of_the_time_gives_the_pass_back)
{
    struct lab lab = lab_open();

    due_id a = lab_enqueue(&lab, "a", .at_ns = 1, .more = EXTRA(OF("g")));
    lab_enqueue(&lab, "b", .at_ns = 2, .more = EXTRA(OF("g")));
    lab_turn_to(&lab, 10);
    cr_expect_eq(due_poll(lab.q, NULL), 1);
    due_spec later = { DUE_SPEC_INIT, .at_ns = 50, .data = "A", .len = 1 };
    cr_expect_eq(due_amend(lab.q, a, &later, DUE_SET_TIME | DUE_SET_DATA), 0);
    cr_expect_eq(lab_stats(&lab).passed, 1u);
    limiter_right(&lab);
    cr_expect_str_eq(lab_dequeue_all(&lab), "b");
    lab_turn_to(&lab, 50);
    cr_expect_str_eq(lab_dequeue_all(&lab), "A");
    limiter_close(&lab);
}

LAB_TEST(limiter_change, of_the_priority_gives_another_place_at_the_limiter)
{
    struct lab lab = lab_open(.with.order = DUE_ORDER_PRIORITY);
    due_job job;

    lab_enqueue(&lab, "a", .at_ns = 1, .more = EXTRA(OF("g")));
    lab_enqueue(&lab, "b", .at_ns = 2, .more = EXTRA(OF("g")));
    due_id c = lab_enqueue(&lab, "c", .at_ns = 3, .more = EXTRA(OF("g")));
    lab_turn_to(&lab, 10);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    due_spec urgent = { DUE_SPEC_INIT, .priority = 9 };
    cr_expect_eq(due_amend(lab.q, c, &urgent, DUE_SET_PRIORITY), 0);
    limiter_right(&lab);
    due_job_done(&job);
    cr_expect_str_eq(lab_dequeue_all(&lab), "c b");
    limiter_close(&lab);
}

LAB_TEST(limiter_change, to_the_next_round_lets_others_of_the_group_through)
{
    struct lab lab = lab_open();

    due_id a = lab_enqueue(&lab, "a", .at_ns = 1, .more = EXTRA(.every_ns = 100, OF("g")));
    lab_enqueue(&lab, "b", .at_ns = 2, .more = EXTRA(OF("g")));
    cr_expect_eq(due_topic_limit(lab.q, 0, 1), 0);
    lab_turn_to(&lab, 10);
    due_job job = limiter_reserve(&lab);
    cr_expect(due_id_equal(job.id, a));
    limiter_nothing(&lab);
    cr_expect_eq(due_ack(&job), 0);
    limiter_right(&lab);
    job = limiter_reserve(&lab);
    cr_expect_eq(memcmp(job.data, "b", 1), 0);
    lab_turn_to(&lab, 101);
    limiter_nothing(&lab);
    cr_expect_eq(due_ack(&job), 0);
    job = limiter_reserve(&lab);
    cr_expect(due_id_equal(job.id, a));
    cr_expect_eq(due_cancel(lab.q, a, NULL), DUE_EBUSY);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(lab_stats(&lab).passed, 0u);
    limiter_close(&lab);
}

LAB_TEST(limiter_change, to_the_next_round_comes_at_once_when_it_is_taken_for_good)
{
    struct lab lab = lab_open();
    due_job job;

    due_id a = lab_enqueue(&lab, "a", .at_ns = 1, .more = EXTRA(.every_ns = 100, OF("g")));
    lab_enqueue(&lab, "b", .at_ns = 2, .more = EXTRA(OF("g")));
    lab_turn_to(&lab, 10);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect(due_id_equal(job.id, a));
    cr_expect_eq(lab_stats(&lab).passed, 1u);
    cr_expect_str_eq(lab_dequeue_all(&lab), "b");
    due_job_done(&job);
    limiter_right(&lab);
    lab_turn_to(&lab, 101);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    due_job_done(&job);
    cr_expect_eq(due_cancel(lab.q, a, NULL), 0);
    cr_expect_eq(lab.q->limiters.groups, 0u);
    limiter_close(&lab);
}
