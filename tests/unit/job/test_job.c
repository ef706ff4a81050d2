/* Jobs that were handed out: whose bytes they are, and until when. */
#include "lab/lab.h"

#define LARGE "a payload that does not fit into the thirty-two bytes of a job"

LAB_TEST(job, is_zeroed_when_it_is_done_with)
{
    struct lab lab = lab_open();
    due_job zero;
    due_job job;

    memset(&zero, 0, sizeof zero);
    lab_enqueue(&lab, "job", .delay_ns = 0);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    due_job_done(&job);
    cr_expect_arr_eq(&job, &zero, sizeof job);
    due_job_done(&job);
    lab_close(&lab);
}

LAB_TEST(job, may_be_copied_and_one_copy_done_with)
{
    struct lab lab = lab_open();
    due_job job;

    lab_enqueue(&lab, LARGE, .delay_ns = 0);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    due_job copy = job;
    memset(&job, 0, sizeof job);
    cr_expect_str_eq(lab_text(&lab, &copy), LARGE);
    lab_close(&lab);
}

LAB_TEST(job, keeps_its_bytes_until_it_is_done_with)
{
    struct lab lab = lab_open();
    due_job small;
    due_job large;

    lab_enqueue(&lab, "small", .delay_ns = 0);
    lab_enqueue(&lab, LARGE, .delay_ns = 0);
    cr_assert_eq(due_dequeue(lab.q, &small, 0), 0);
    cr_assert_eq(due_dequeue(lab.q, &large, 0), 0);
    for (int i = 0; i < 1000; i++) {
        lab_enqueue(&lab, i % 2 == 0 ? "other" : LARGE "!", .delay_ns = 0);
        cr_assert_not_null(lab_dequeue(&lab));
    }
    cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
    cr_expect_eq(due_trim(lab.q), 0);
    cr_expect_str_eq(lab_text(&lab, &small), "small");
    cr_expect_str_eq(lab_text(&lab, &large), LARGE);
    lab_close(&lab);
}

LAB_TEST(job, may_be_done_with_in_any_order)
{
    enum { JOBS = 300 };
    struct lab lab = lab_open();
    static due_job job[JOBS];

    for (int i = 0; i < JOBS; i++)
        lab_enqueue(&lab, LARGE, .delay_ns = 0);
    for (int i = 0; i < JOBS; i++)
        cr_assert_eq(due_dequeue(lab.q, &job[i], 0), 0);
    cr_expect_eq(lab_stats(&lab).lent, JOBS);
    for (int i = 0; i < JOBS; i++)
        due_job_done(&job[(size_t)i * 7 % JOBS]);
    cr_expect_eq(lab_stats(&lab).lent, 0u);
    lab_close(&lab);
}

static int done_in_a_thread(void *arg)
{
    due_job_done(arg);
    return 0;
}

LAB_TEST(job, may_be_done_with_by_another_thread)
{
    struct lab lab = lab_open();
    struct crew_thread thread;
    due_job job;

    lab_enqueue(&lab, LARGE, .delay_ns = 0);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    crew_go(&thread, done_in_a_thread, &job);
    cr_expect_eq(crew_join(&thread), 0);
    cr_expect_null(job.queue);
    lab_close(&lab);
}

LAB_TEST(job, may_be_done_with_after_close)
{
    struct lab lab = lab_open();
    due_job job;

    lab_enqueue(&lab, LARGE, .delay_ns = 0);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, DUE_FOREVER), 0);
    cr_expect_str_eq(lab_text(&lab, &job), LARGE);
    lab_close(&lab);
}

LAB_TEST(job, of_a_carried_pointer_leaves_the_pointer_alone)
{
    struct lab lab = lab_open();
    int value = 5;
    due_job job;

    lab_enqueue(&lab, NULL, .ptr = &value);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    int *pointer = job.ptr;
    due_job_done(&job);
    cr_expect_eq(*pointer, 5);
    lab_close(&lab);
}

static void forbid(void *ctx, const due_job *job)
{
    (void)job;
    ++*(int *)ctx;
}

LAB_TEST(job, that_was_handed_out_or_cancelled_is_not_discarded)
{
    int discarded = 0;
    struct lab lab = lab_open(.with.on_discard = forbid, .with.ctx = &discarded);
    due_id id = lab_enqueue(&lab, "cancelled", .delay_ns = 5);
    due_job job;

    cr_expect_eq(due_cancel(lab.q, id, NULL), 0);
    lab_enqueue(&lab, "taken", .delay_ns = 0);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    due_job_done(&job);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(discarded, 0);
    lab_close(&lab);
}
