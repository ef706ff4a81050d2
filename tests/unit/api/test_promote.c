/* Running a waiting job now. */
#include "lab/lab.h"
#include "lab/take.h"

LAB_TEST(promote, makes_a_delayed_job_due)
{
    struct lab lab = lab_open(.start_ns = 100);
    due_id id = lab_enqueue(&lab, "job", .at_ns = 500);

    cr_expect_eq(due_promote(lab.q, id), 0);
    due_info info = lab_find(&lab, id);
    cr_expect_leq(info.deadline_ns, 100);
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    lab_turn_to(&lab, 1000);
    cr_expect_null(lab_dequeue(&lab), "it came twice");
    lab_close(&lab);
}

LAB_TEST(promote, works_on_a_job_that_would_never_come)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "job", .at_ns = DUE_FOREVER);

    cr_expect_eq(due_promote(lab.q, id), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    lab_close(&lab);
}

LAB_TEST(promote, of_a_due_job_still_hands_it_out_once)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "job", .delay_ns = 0);

    cr_expect_eq(due_promote(lab.q, id), 0);
    cr_expect_eq(due_promote(lab.q, id), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    cr_expect_null(lab_dequeue(&lab));
    lab_close(&lab);
}

LAB_TEST(promote, keeps_id_topic_priority_and_bytes)
{
    struct lab lab = lab_open();
    int topic = lab_topic(&lab, "mail");
    due_id id = lab_enqueue(&lab, "letter", .at_ns = 10, .topic = topic, .priority = 200);
    due_job job;

    cr_expect_eq(due_promote(lab.q, id), 0);
    cr_assert_eq(take_from(lab.q, &topic, 1, &job, 0), 0);
    cr_expect(due_id_equal(job.id, id));
    cr_expect_eq(job.priority, 200);
    cr_expect_geq(job.lateness_ns, 0);
    cr_expect_str_eq(lab_text(&lab, &job), "letter");
    lab_close(&lab);
}

LAB_TEST(promote, does_not_overtake_what_was_due_before)
{
    struct lab lab = lab_open(.start_ns = 100);
    due_id id = lab_enqueue(&lab, "promoted", .at_ns = 500);

    lab_enqueue(&lab, "overdue", .at_ns = 50);
    cr_expect_eq(due_promote(lab.q, id), 0);
    cr_expect_str_eq(lab_dequeue_all(&lab), "overdue promoted");
    lab_close(&lab);
}

LAB_TEST(promote, can_be_cancelled_and_put_off_again)
{
    struct lab lab = lab_open();
    due_id one = lab_enqueue(&lab, "one", .at_ns = 500);
    due_id two = lab_enqueue(&lab, "two", .at_ns = 500);

    cr_expect_eq(due_promote(lab.q, one), 0);
    cr_expect_eq(due_promote(lab.q, two), 0);
    cr_expect_eq(due_cancel(lab.q, one, NULL), 0);
    cr_expect_eq(due_reschedule(lab.q, two, 700), 0);
    cr_expect_null(lab_dequeue(&lab));
    lab_turn_to(&lab, 700);
    cr_expect_str_eq(lab_dequeue(&lab), "two");
    lab_close(&lab);
}

LAB_TEST(promote, of_many_gives_each_of_them_once)
{
    enum { JOBS = 1000 };
    struct lab lab = lab_open();
    static due_id id[JOBS];
    static char tag[JOBS];
    due_job job;

    for (int i = 0; i < JOBS; i++)
        id[i] = lab_enqueue(&lab, NULL, .at_ns = 1000 + i, .ptr = &tag[i]);
    for (int i = 0; i < JOBS; i += 2)
        cr_assert_eq(due_promote(lab.q, id[i]), 0);
    memset(tag, 0, sizeof tag);
    for (int i = 0; i < JOBS / 2; i++) {
        cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
        ++*(char *)job.ptr;
        due_job_done(&job);
    }
    cr_expect_null(lab_dequeue(&lab));
    for (int i = 0; i < JOBS; i++)
        cr_expect_eq(tag[i], i % 2 == 0, "%d", i);
    lab_close(&lab);
}
