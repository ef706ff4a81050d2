/* Taking one job out, without waiting.  What waits: test_wait.c. */
#include "lab/lab.h"
#include "lab/take.h"

/* C5 */
LAB_TEST(dequeue, holds_a_job_until_its_deadline)
{
    struct lab lab = lab_open(.start_ns = 1000);

    lab_enqueue(&lab, "tea", .at_ns = 1500);
    lab_turn_to(&lab, 1499);
    cr_expect_null(lab_dequeue(&lab));
    lab_turn_to(&lab, 1500);
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    lab_close(&lab);
}

LAB_TEST(dequeue, answers_eagain_when_nothing_is_there_or_due)
{
    struct lab lab = lab_open();
    due_job job;

    cr_expect_eq(due_dequeue(lab.q, &job, 0), DUE_EAGAIN);
    lab_enqueue(&lab, "later", .delay_ns = 1);
    cr_expect_eq(due_dequeue(lab.q, &job, 0), DUE_EAGAIN);
    lab_close(&lab);
}

LAB_TEST(dequeue, refuses_a_negative_timeout)
{
    struct lab lab = lab_open();
    due_job job;

    lab_enqueue(&lab, "left alone", .delay_ns = 0);
    cr_expect_eq(due_dequeue(lab.q, &job, -1), DUE_EINVAL);
    cr_expect_eq(due_dequeue(lab.q, &job, INT64_MIN), DUE_EINVAL);
    cr_expect_str_eq(lab_dequeue(&lab), "left alone");
    lab_close(&lab);
}

LAB_TEST(dequeue, takes_the_earliest_deadline_first)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "c", .at_ns = 30);
    lab_enqueue(&lab, "a", .at_ns = 10);
    lab_enqueue(&lab, "d", .at_ns = 40);
    lab_enqueue(&lab, "b", .at_ns = 20);
    lab_turn_to(&lab, 100);
    cr_expect_str_eq(lab_dequeue_all(&lab), "a b c d");
    lab_close(&lab);
}

LAB_TEST(dequeue, takes_an_earlier_job_that_came_after_others_were_due)
{
    struct lab lab = lab_open(.start_ns = 100);

    lab_enqueue(&lab, "b", .at_ns = 50);
    lab_enqueue(&lab, "c", .at_ns = 60);
    cr_expect_eq(lab_stats(&lab).waiting, 2u);
    lab_enqueue(&lab, "a", .at_ns = 40);
    cr_expect_str_eq(lab_dequeue_all(&lab), "a b c");
    lab_close(&lab);
}

/* A8 */
LAB_TEST(dequeue, keeps_the_order_of_arrival_among_equal_deadlines)
{
    enum { JOBS = 100000 };
    static char tag[JOBS];
    struct lab lab = lab_open();
    due_job job;

    for (int i = 0; i < JOBS; i++)
        lab_enqueue(&lab, NULL, .at_ns = 77, .ptr = &tag[i]);
    lab_turn_to(&lab, 77);
    for (int i = 0; i < JOBS; i++) {
        cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
        cr_assert_eq(job.ptr, &tag[i], "job %td in place of %d", (char *)job.ptr - tag, i);
        due_job_done(&job);
    }
    lab_close(&lab);
}

/* PEERS: the original's successor gives eight jobs of one deadline back as 1 8 7 6 5 4 3 2 */
LAB_TEST(dequeue, gives_eight_jobs_of_one_deadline_back_in_order)
{
    struct lab lab = lab_open();
    static const char *const texts[] = { "1", "2", "3", "4", "5", "6", "7", "8" };

    for (int i = 0; i < 8; i++)
        lab_enqueue(&lab, texts[i], .at_ns = 5);
    lab_turn_to(&lab, 5);
    cr_expect_str_eq(lab_dequeue_all(&lab), "1 2 3 4 5 6 7 8");
    lab_close(&lab);
}

LAB_TEST(dequeue, keeps_the_order_of_jobs_without_delay)
{
    struct lab lab = lab_open(.start_ns = 10);

    lab_enqueue(&lab, "1", .delay_ns = 0);
    lab_enqueue(&lab, "2", .delay_ns = 0);
    lab_advance(&lab, 1);
    lab_enqueue(&lab, "3", .delay_ns = 0);
    lab_enqueue(&lab, "4", .delay_ns = 0);
    cr_expect_str_eq(lab_dequeue_all(&lab), "1 2 3 4");
    lab_close(&lab);
}

LAB_TEST(dequeue, tells_everything_about_a_job)
{
    struct lab lab = lab_open(.start_ns = 100);
    int topic = lab_topic(&lab, "mail");
    due_id id = lab_enqueue(&lab, "letter", .at_ns = 150, .topic = topic, .priority = 7);
    due_job job;

    lab_turn_to(&lab, 175);
    memset(&job, 0x5a, sizeof job);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect(due_id_equal(job.id, id));
    cr_expect_eq(job.len, 6u);
    cr_expect_arr_eq(job.data, "letter", 6);
    cr_expect_null(job.ptr);
    cr_expect_eq(job.deadline_ns, 150);
    cr_expect_eq(job.lateness_ns, 25);
    cr_expect_eq(job.topic, topic);
    cr_expect_eq(job.priority, 7);
    cr_expect_eq(job.queue, lab.q);
    due_job_done(&job);
    lab_close(&lab);
}

LAB_TEST(dequeue, hands_out_each_job_once)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "only", .delay_ns = 0);
    cr_expect_str_eq(lab_dequeue(&lab), "only");
    cr_expect_null(lab_dequeue(&lab));
    lab_advance(&lab, DUE_S(100));
    cr_expect_null(lab_dequeue(&lab));
    lab_close(&lab);
}

/* A11: after a stall of many deadlines all of them come at once, in order */
LAB_TEST(dequeue, gives_everything_after_a_long_stall_in_order)
{
    enum { JOBS = 20000 };
    struct lab lab = lab_open();
    uint64_t seed = 11;
    int64_t last = 0;
    due_job job;

    for (int i = 0; i < JOBS; i++) {
        int bits = (int)crew_below(&seed, 60);

        lab_enqueue(&lab, NULL, .at_ns = 1 + (int64_t)crew_below(&seed, UINT64_C(1) << bits));
    }
    lab_turn_to(&lab, INT64_C(1) << 61);
    for (int i = 0; i < JOBS; i++) {
        cr_assert_eq(due_dequeue(lab.q, &job, 0), 0, "lost %d jobs", JOBS - i);
        cr_assert_geq(job.deadline_ns, last);
        last = job.deadline_ns;
        due_job_done(&job);
    }
    cr_expect_null(lab_dequeue(&lab));
    lab_close(&lab);
}

/* A11, C5: never early for random deadlines, and never late on a clock turned by hand */
LAB_TEST(dequeue, is_exact_for_random_deadlines)
{
    enum { JOBS = 3000 };
    struct lab lab = lab_open();
    uint64_t seed = 5;
    int64_t now = 0;
    int taken = 0;
    due_job job;

    for (int i = 0; i < JOBS; i++)
        lab_enqueue(&lab, NULL, .at_ns = 1 + (int64_t)crew_below(&seed, 1000000));
    while (taken < JOBS) {
        int64_t next = due_next_deadline(lab.q);

        cr_assert_gt(next, now);
        lab_turn_to(&lab, next - 1);
        cr_assert_eq(due_dequeue(lab.q, &job, 0), DUE_EAGAIN, "early");
        lab_turn_to(&lab, now = next);
        while (due_dequeue(lab.q, &job, 0) == 0) {
            cr_assert_eq(job.deadline_ns, now);
            cr_assert_eq(job.lateness_ns, 0);
            due_job_done(&job);
            taken++;
        }
    }
    lab_close(&lab);
}

/* A12: a head that goes away or moves leaves the next one exact */
LAB_TEST(dequeue, is_exact_for_the_next_job_when_the_head_has_gone)
{
    struct lab lab = lab_open();
    due_id head = lab_enqueue(&lab, "head", .at_ns = 10);
    due_id moved = lab_enqueue(&lab, "moved", .at_ns = 20);

    lab_enqueue(&lab, "next", .at_ns = 30);
    cr_expect_eq(due_cancel(lab.q, head, NULL), 0);
    cr_expect_eq(due_reschedule(lab.q, moved, 40), 0);
    lab_turn_to(&lab, 29);
    cr_expect_null(lab_dequeue(&lab));
    lab_turn_to(&lab, 30);
    cr_expect_str_eq(lab_dequeue(&lab), "next");
    lab_turn_to(&lab, 39);
    cr_expect_null(lab_dequeue(&lab));
    lab_turn_to(&lab, 40);
    cr_expect_str_eq(lab_dequeue(&lab), "moved");
    lab_close(&lab);
}

LAB_TEST(dequeue_from, takes_only_of_the_topics_named)
{
    struct lab lab = lab_open();
    int a = lab_topic(&lab, "a");
    int b = lab_topic(&lab, "b");

    lab_enqueue(&lab, "b", .topic = b);
    lab_enqueue(&lab, "default", .topic = 0);
    cr_expect_null(lab_dequeue_from(&lab, a));
    cr_expect_str_eq(lab_dequeue_from(&lab, 0), "default");
    cr_expect_null(lab_dequeue_from(&lab, 0));
    cr_expect_str_eq(lab_dequeue_from(&lab, b), "b");
    lab_close(&lab);
}

LAB_TEST(dequeue_from, takes_of_any_of_several_topics)
{
    struct lab lab = lab_open();
    int topics[] = { lab_topic(&lab, "a"), lab_topic(&lab, "b"), lab_topic(&lab, "a") };
    due_job job;

    lab_enqueue(&lab, NULL, .topic = 0);
    lab_enqueue(&lab, NULL, .topic = topics[1]);
    cr_assert_eq(take_from(lab.q, topics, 3, &job, 0), 0);
    cr_expect_eq(job.topic, topics[1]);
    due_job_done(&job);
    cr_expect_eq(take_from(lab.q, topics, 3, &job, 0), DUE_EAGAIN);
    lab_close(&lab);
}

LAB_TEST(dequeue_from, refuses_wrong_arguments)
{
    struct lab lab = lab_open();
    static const int wrong[][2] = { { 0, 1 }, { 0, -1 }, { 0, DUE_TOPIC_MAX }, { 0, INT32_MAX } };
    int topic = 0;
    due_job job;

    lab_enqueue(&lab, "left alone", .delay_ns = 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        cr_expect_eq(take_from(lab.q, wrong[i], 2, &job, 0), DUE_EINVAL, "%zu", i);
    cr_expect_eq(take_from(lab.q, &topic, 0, &job, 0), DUE_EINVAL);
    cr_expect_eq(take_from(lab.q, &topic, 1, &job, -1), DUE_EINVAL);
    cr_expect_str_eq(lab_dequeue(&lab), "left alone");
    lab_close(&lab);
}

/* A timeout says how long to wait for a job that is not there; it is not what a ready job needs to
 * be handed over. */
LAB_TEST(dequeue, has_a_ready_job_however_short_the_timeout)
{
    enum { TIMES = 200, KINDS = 3 };
    static const enum due_clock_kind clocks[KINDS] = { DUE_CLOCK_MONOTONIC, DUE_CLOCK_REALTIME,
                                                       DUE_CLOCK_BOOTTIME };

    for (int i = 0; i <= KINDS; i++) {
        struct lab lab =
            lab_open(.kernel = i < KINDS, .with.clock = i < KINDS ? clocks[i] : clocks[0]);
        int topic = lab_topic(&lab, "topic");
        due_job job;

        for (int n = 0; n < TIMES; n++) {
            int64_t timeout_ns = n % 4 == 0 ? 1 : DUE_US(n % 4);

            lab_enqueue(&lab, NULL, .topic = topic);
            int rc = n % 3 == 0   ? due_dequeue(lab.q, &job, timeout_ns)
                     : n % 3 == 1 ? take_from(lab.q, &topic, 1, &job, timeout_ns)
                                  : take_some(lab.q, NULL, 0, &job, 1, timeout_ns);
            cr_assert_eq(rc, n % 3 == 2, "clock %d, %d: %s", i, n, due_error_name(rc));
            due_job_done(&job);
            if (i == KINDS)
                break; /* nobody turns this clock meanwhile */
        }
        lab_close(&lab);
    }
}
