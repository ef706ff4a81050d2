/* Stopping and resuming a topic. */
#include "lab/lab.h"

LAB_TEST(pause, stops_handing_out_and_resume_goes_on)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "job", .delay_ns = 0);
    cr_expect_eq(due_pause(lab.q, 0), 0);
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_eq(due_resume(lab.q, 0), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    lab_close(&lab);
}

LAB_TEST(pause, lets_jobs_become_due_meanwhile_and_keeps_their_order)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "b", .at_ns = 20);
    cr_expect_eq(due_pause(lab.q, 0), 0);
    lab_enqueue(&lab, "c", .at_ns = 30);
    lab_turn_to(&lab, 25);
    cr_expect_null(lab_dequeue(&lab));
    lab_enqueue(&lab, "a", .at_ns = 10);
    lab_turn_to(&lab, 35);
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_eq(due_resume(lab.q, 0), 0);
    cr_expect_str_eq(lab_dequeue_all(&lab), "a b c");
    lab_close(&lab);
}

LAB_TEST(pause, of_one_topic_leaves_the_others_running)
{
    struct lab lab = lab_open();
    int topic = lab_topic(&lab, "paused");

    cr_expect_eq(due_pause(lab.q, topic), 0);
    lab_enqueue(&lab, "paused", .delay_ns = 0, .topic = topic);
    lab_enqueue(&lab, "runs", .delay_ns = 0);
    cr_expect_str_eq(lab_dequeue_all(&lab), "runs");
    cr_expect_null(lab_dequeue_from(&lab, topic));
    cr_expect_eq(due_resume(lab.q, topic), 0);
    cr_expect_str_eq(lab_dequeue_from(&lab, topic), "paused");
    lab_close(&lab);
}

LAB_TEST(pause, of_all_topics_means_those_that_exist)
{
    struct lab lab = lab_open();
    int before = lab_topic(&lab, "before");

    cr_expect_eq(due_pause(lab.q, DUE_ALL_TOPICS), 0);
    int after = lab_topic(&lab, "after");
    lab_enqueue(&lab, "default", .delay_ns = 0);
    lab_enqueue(&lab, "before", .delay_ns = 0, .topic = before);
    lab_enqueue(&lab, "after", .delay_ns = 0, .topic = after);
    cr_expect_str_eq(lab_dequeue_all(&lab), "after");
    cr_expect_eq(due_resume(lab.q, DUE_ALL_TOPICS), 0);
    cr_expect_str_eq(lab_dequeue_from(&lab, 0), "default");
    cr_expect_str_eq(lab_dequeue_from(&lab, before), "before");
    lab_close(&lab);
}

LAB_TEST(pause, twice_is_undone_by_one_resume)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "job", .delay_ns = 0);
    cr_expect_eq(due_resume(lab.q, 0), 0, "it was not even paused");
    cr_expect_eq(due_pause(lab.q, 0), 0);
    cr_expect_eq(due_pause(lab.q, 0), 0);
    cr_expect_eq(due_resume(lab.q, 0), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    lab_close(&lab);
}

LAB_TEST(pause, refuses_a_topic_that_was_never_given)
{
    static const int wrong[] = { 1, -2, DUE_TOPIC_MAX, INT32_MAX, INT32_MIN };
    struct lab lab = lab_open();

    lab_enqueue(&lab, "job", .delay_ns = 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cr_expect_eq(due_pause(lab.q, wrong[i]), DUE_EINVAL, "%d", wrong[i]);
        cr_expect_eq(due_resume(lab.q, wrong[i]), DUE_EINVAL, "%d", wrong[i]);
    }
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    lab_close(&lab);
}

LAB_TEST(pause, lets_jobs_be_cancelled_rescheduled_and_found)
{
    struct lab lab = lab_open();
    due_id one = lab_enqueue(&lab, "one", .delay_ns = 0);
    due_id two = lab_enqueue(&lab, "two", .delay_ns = 0);

    cr_expect_eq(due_pause(lab.q, 0), 0);
    cr_expect_eq(due_cancel(lab.q, one, NULL), 0);
    cr_expect_eq(lab_find(&lab, two).ready, 1);
    cr_expect_eq(due_reschedule(lab.q, two, 100), 0);
    cr_expect_eq(due_resume(lab.q, 0), 0);
    cr_expect_null(lab_dequeue(&lab));
    lab_turn_to(&lab, 100);
    cr_expect_str_eq(lab_dequeue_all(&lab), "two");
    lab_close(&lab);
}

LAB_TEST(pause, of_many_due_jobs_loses_none_of_them)
{
    enum { JOBS = 1000 };
    struct lab lab = lab_open();
    int64_t last = 0;
    due_job job;

    for (int i = 0; i < JOBS; i++)
        lab_enqueue(&lab, NULL, .at_ns = 1 + (int64_t)i * 7919 % JOBS);
    lab_turn_to(&lab, JOBS);
    for (int i = 0; i < JOBS; i++) {
        if (i % 10 == 0) {
            cr_assert_eq(due_pause(lab.q, DUE_ALL_TOPICS), 0);
            cr_assert_eq(due_dequeue(lab.q, &job, 0), DUE_EAGAIN);
            cr_assert_eq(due_resume(lab.q, DUE_ALL_TOPICS), 0);
        }
        cr_assert_eq(due_dequeue(lab.q, &job, 0), 0, "%d", i);
        cr_assert_eq(job.deadline_ns, ++last);
        due_job_done(&job);
    }
    lab_close(&lab);
}

LAB_TEST(pause, does_not_keep_close_from_discarding)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "due", .delay_ns = 0);
    lab_enqueue(&lab, "later", .delay_ns = 10);
    cr_expect_eq(due_pause(lab.q, DUE_ALL_TOPICS), 0);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(atomic_load(&lab.state->discarded), 2u);
    lab_close(&lab);
}

enum waits { ANY, ONE_TOPIC, TWO_TOPICS, TOGETHER, ON_LEASE, ON_LEASE_TOGETHER, WAITS };

static void call(struct crew_call *c, struct lab *lab, enum waits how, const int *topics)
{
    switch (how) {
    case ANY:
        crew_call_dequeue(c, lab->q, DUE_FOREVER);
        break;
    case ONE_TOPIC:
    case TWO_TOPICS:
        crew_call_dequeue_from(c, lab->q, topics, how == TWO_TOPICS ? 2 : 1, DUE_FOREVER);
        break;
    case TOGETHER:
        crew_call_dequeue_batch(c, lab->q, DUE_FOREVER);
        break;
    case ON_LEASE:
        crew_call_reserve(c, lab->q, topics, 2, 1000, DUE_FOREVER);
        break;
    default:
        crew_call_reserve_batch(c, lab->q, NULL, 0, 1000, DUE_FOREVER);
    }
    crew_call_asleep(c);
}

static bool comes_back(struct crew_call *c)
{
    for (int i = 0; i < 3000 && !atomic_load(&c->thread.back); i++)
        crew_sleep(DUE_MS(1));
    return atomic_load(&c->thread.back);
}

/* However they wait, and whether their jobs were due before the pause or became it meanwhile. */
LAB_TEST(pause, is_ended_for_those_who_wait)
{
    for (enum waits how = ANY; how < WAITS; how++) {
        for (int way = 0; way < 4; way++) {
            struct lab lab = lab_open(.start_ns = 5);
            const int topics[2] = { lab_topic(&lab, "a"), lab_topic(&lab, "b") };
            int64_t at = way & 1 ? 5 : 9;
            struct crew_call c;

            lab_enqueue(&lab, "tea", .at_ns = at, .topic = topics[0]);
            due_poll(lab.q, NULL);
            cr_assert_eq(due_pause(lab.q, way & 2 ? DUE_ALL_TOPICS : topics[0]), 0);
            call(&c, &lab, how, topics);
            lab_turn_to(&lab, 9);
            crew_call_asleep(&c);
            cr_expect_not(atomic_load(&c.thread.back), "way %d of %d", way, (int)how);
            cr_assert_eq(due_resume(lab.q, way & 2 ? DUE_ALL_TOPICS : topics[0]), 0);
            bool back = comes_back(&c);
            if (!back)
                cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_S(10)), 0);
            int rc = crew_call_answer(&c);
            cr_assert(back, "way %d of %d", way, (int)how);
            cr_expect_geq(rc, 0, "%s", due_error_name(rc));
            if (how >= ON_LEASE)
                cr_expect_eq(due_ack(&c.job), 0);
            due_job_done(&c.job);
            lab_close(&lab);
        }
    }
}
