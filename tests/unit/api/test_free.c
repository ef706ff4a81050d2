/* Giving a queue back. */
#include "lab/lab.h"

#include <fcntl.h>

Test(free, of_nothing_is_allowed)
{
    cr_expect_eq(due_free(NULL), 0);
}

LAB_TEST(free, refuses_an_open_queue_and_leaves_it_working)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "job", .delay_ns = 0);
    cr_expect_eq(due_free(lab.q), DUE_EBUSY);
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    lab_close(&lab);
}

LAB_TEST(free, refuses_a_queue_that_still_drains)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "job", .delay_ns = 5);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    cr_expect_eq(due_free(lab.q), DUE_EBUSY);
    lab_advance(&lab, 5);
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    lab_close(&lab);
}

LAB_TEST(free, refuses_while_a_job_is_lent)
{
    struct lab lab = lab_open();
    due_job job;

    lab_enqueue(&lab, "job", .delay_ns = 0);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(due_free(lab.q), DUE_EBUSY);
    cr_expect_str_eq(lab_text(&lab, &job), "job");
    lab_close(&lab);
}

LAB_TEST(free, closes_the_descriptor)
{
    struct lab lab = lab_open();
    int fd = due_fd(lab.q);

    cr_assert_geq(fd, 0);
    lab_close(&lab);
    cr_expect_eq(fcntl(fd, F_GETFD), -1);
}

LAB_TEST(free, ends_every_thread_of_the_queue)
{
    unsigned before = crew_threads();
    struct lab lab = lab_open();

    lab_enqueue(&lab, "job", .delay_ns = 5);
    lab_close(&lab);
    cr_expect_eq(crew_threads(), before);
}

LAB_TEST(free, gives_back_everything_after_hard_use)
{
    static const char large[] = "a payload that does not fit into the thirty-two bytes of a job";
    struct lab lab = lab_open();
    uint64_t seed = 4;

    for (int i = 0; i < 20000; i++) {
        int topic = lab_topic(&lab, i % 3 == 0 ? "a" : "b");
        due_id id = lab_enqueue(&lab, i % 2 == 0 ? large : "small", .topic = topic,
                                .delay_ns = (int64_t)crew_below(&seed, 1000000));

        if (i % 3 == 0)
            cr_assert_eq(due_cancel(lab.q, id, NULL), 0);
        if (i % 7 == 0)
            lab_advance(&lab, 300);
        if (i % 5 == 0)
            lab_dequeue(&lab);
    }
    lab_close(&lab);
}
