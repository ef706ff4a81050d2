/* due_poll(): what is ready to be taken, and nothing else. */
#include "lab/lab.h"
#include "lab/take.h"

#define A_JOBS 3
#define B_JOBS 2

static void put(struct lab *lab, int topic, int n)
{
    for (int i = 0; i < n; i++)
        lab_enqueue(lab, "tea", .at_ns = 10, .topic = topic);
}

/* How many can be taken: as many as were told. */
static int taken(struct lab *lab)
{
    due_job job;
    int n = 0;

    while (due_dequeue(lab->q, &job, 0) == 0) {
        due_job_done(&job);
        n++;
    }
    return n;
}

LAB_TEST(poll, counts_no_job_of_a_paused_topic)
{
    struct lab lab = lab_open();
    int a = lab_topic(&lab, "a");
    int64_t next;

    put(&lab, a, A_JOBS);
    put(&lab, 0, B_JOBS);
    lab_turn_to(&lab, 10);
    cr_expect_eq(due_poll(lab.q, &next), A_JOBS + B_JOBS);
    cr_expect_leq(next, 10);
    cr_assert_eq(due_pause(lab.q, a), 0);
    cr_expect_eq(due_poll(lab.q, NULL), B_JOBS);
    cr_assert_eq(due_pause(lab.q, DUE_ALL_TOPICS), 0);
    cr_expect_eq(due_poll(lab.q, NULL), 0);
    cr_assert_eq(due_resume(lab.q, 0), 0);
    cr_expect_eq(due_poll(lab.q, NULL), B_JOBS);
    cr_expect_eq(taken(&lab), B_JOBS);
    cr_expect_eq(due_poll(lab.q, NULL), 0);
    cr_assert_eq(due_resume(lab.q, a), 0);
    cr_expect_eq(due_poll(lab.q, NULL), A_JOBS);
    cr_expect_eq(taken(&lab), A_JOBS);
    cr_expect_eq(due_poll(lab.q, &next), 0);
    cr_expect_eq(next, DUE_FOREVER);
    lab_close(&lab);
}

/* Of a limited topic those that may run now. */
LAB_TEST(poll, counts_as_many_as_a_limit_lets_through)
{
    struct lab lab = lab_open();
    int a = lab_topic(&lab, "a");
    due_job job;

    cr_assert_eq(due_topic_limit(lab.q, a, 2), 0);
    put(&lab, a, A_JOBS);
    put(&lab, 0, B_JOBS);
    lab_turn_to(&lab, 10);
    cr_expect_eq(due_poll(lab.q, NULL), 2 + B_JOBS);
    cr_assert_eq(take_leased_from(lab.q, &a, 1, &job, 100, 0), 0);
    cr_expect_eq(due_poll(lab.q, NULL), 1 + B_JOBS);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(due_poll(lab.q, NULL), 2 + B_JOBS);
    lab_close(&lab);
}

LAB_TEST(poll, counts_no_job_that_was_cancelled)
{
    struct lab lab = lab_open();
    due_id id[A_JOBS];

    for (int i = 0; i < A_JOBS; i++)
        id[i] = lab_enqueue(&lab, "tea", .at_ns = 10);
    lab_turn_to(&lab, 10);
    for (int i = 0; i < A_JOBS; i++) {
        cr_expect_eq(due_poll(lab.q, NULL), A_JOBS - i);
        cr_assert_eq(due_cancel(lab.q, id[i], NULL), 0);
    }
    cr_expect_eq(due_poll(lab.q, NULL), 0);
    lab_close(&lab);
}
