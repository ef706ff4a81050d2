/* Giving a waiting job another deadline. */
#include "lab/lab.h"

LAB_TEST(reschedule, to_an_earlier_time_is_exact)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "job", .at_ns = 1000);

    cr_expect_eq(due_reschedule(lab.q, id, 500), 0);
    lab_turn_to(&lab, 499);
    cr_expect_null(lab_dequeue(&lab));
    lab_turn_to(&lab, 500);
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    lab_turn_to(&lab, 2000);
    cr_expect_null(lab_dequeue(&lab), "it came twice");
    lab_close(&lab);
}

LAB_TEST(reschedule, to_a_later_time_is_exact)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "job", .at_ns = 500);

    cr_expect_eq(due_reschedule(lab.q, id, 1000), 0);
    lab_turn_to(&lab, 999);
    cr_expect_null(lab_dequeue(&lab));
    lab_turn_to(&lab, 1000);
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    lab_close(&lab);
}

LAB_TEST(reschedule, into_the_past_makes_it_due)
{
    struct lab lab = lab_open(.start_ns = 100);
    due_id id = lab_enqueue(&lab, "job", .at_ns = 500);

    cr_expect_eq(due_reschedule(lab.q, id, 0), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    lab_close(&lab);
}

/* tokio: reset of a job that has expired and was not yet taken */
LAB_TEST(reschedule, of_a_due_job_takes_it_back_into_the_future)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "job", .at_ns = 10);

    lab_turn_to(&lab, 20);
    cr_expect_eq(due_reschedule(lab.q, id, 30), 0);
    cr_expect_null(lab_dequeue(&lab));
    lab_turn_to(&lab, 30);
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    lab_close(&lab);
}

LAB_TEST(reschedule, can_be_done_again_and_again)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "job", .at_ns = 10);

    for (int i = 0; i < 10000; i++)
        cr_assert_eq(due_reschedule(lab.q, id, 1000 + (i * 7919) % 1000), 0);
    cr_expect_eq(due_reschedule(lab.q, id, 1500), 0);
    lab_turn_to(&lab, 1499);
    cr_expect_null(lab_dequeue(&lab));
    lab_turn_to(&lab, 5000);
    cr_expect_str_eq(lab_dequeue_all(&lab), "job");
    lab_close(&lab);
}

LAB_TEST(reschedule, keeps_id_topic_priority_and_bytes)
{
    struct lab lab = lab_open();
    int topic = lab_topic(&lab, "mail");
    due_id id = lab_enqueue(&lab, "letter", .at_ns = 10, .topic = topic, .priority = 200);
    due_job job;

    cr_expect_eq(due_reschedule(lab.q, id, 20), 0);
    due_info info = lab_find(&lab, id);
    cr_expect_eq(info.deadline_ns, 20);
    lab_turn_to(&lab, 20);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect(due_id_equal(job.id, id));
    cr_expect_eq(job.topic, topic);
    cr_expect_eq(job.priority, 200);
    cr_expect_str_eq(lab_text(&lab, &job), "letter");
    lab_close(&lab);
}

LAB_TEST(reschedule, puts_the_job_last_among_equals)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "1", .at_ns = 10);

    lab_enqueue(&lab, "2", .at_ns = 10);
    lab_enqueue(&lab, "3", .at_ns = 10);
    cr_expect_eq(due_reschedule(lab.q, id, 10), 0);
    lab_turn_to(&lab, 10);
    cr_expect_str_eq(lab_dequeue_all(&lab), "2 3 1");
    lab_close(&lab);
}

/* Also behind those that the caller left for somebody else to sort in. */
LAB_TEST(reschedule, puts_the_job_last_among_many_equals_that_have_just_come)
{
    enum { JOBS = 300 };
    static due_spec specs[JOBS];
    static due_id ids[JOBS];

    for (int round = 0; round < 50; round++) {
        struct lab lab = lab_open();
        due_id last = { { 0 } };
        due_job job;

        for (int i = 0; i < JOBS; i++)
            specs[i] = (due_spec){ DUE_SPEC_INIT, .at_ns = 10 };
        cr_assert_eq(due_enqueue_batch(lab.q, specs, JOBS, 0, ids), JOBS);
        cr_assert_eq(due_reschedule(lab.q, ids[0], 10), 0);
        lab_turn_to(&lab, 10);
        while (due_dequeue(lab.q, &job, 0) == 0) {
            last = job.id;
            due_job_done(&job);
        }
        cr_assert(due_id_equal(last, ids[0]), "round %d: not the last", round);
        lab_close(&lab);
    }
}

LAB_TEST(reschedule, can_put_a_job_off_for_ever)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "job", .at_ns = 10);

    cr_expect_eq(due_reschedule(lab.q, id, DUE_FOREVER), 0);
    lab_turn_to(&lab, DUE_FOREVER);
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_eq(due_reschedule(lab.q, id, 10), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    lab_close(&lab);
}

LAB_TEST(reschedule, refuses_a_negative_time)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "job", .at_ns = 10);

    cr_expect_eq(due_reschedule(lab.q, id, -1), DUE_EINVAL);
    cr_expect_eq(due_reschedule(lab.q, id, INT64_MIN), DUE_EINVAL);
    cr_expect_eq(lab_find(&lab, id).deadline_ns, 10);
    lab_close(&lab);
}

LAB_TEST(reschedule, answers_ebusy_for_a_job_that_is_lent_and_enoent_afterwards)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "job", .delay_ns = 0);
    due_job job;

    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(due_reschedule(lab.q, id, 100), DUE_EBUSY);
    cr_expect_eq(due_promote(lab.q, id), DUE_EBUSY);
    due_job_done(&job);
    cr_expect_eq(due_reschedule(lab.q, id, 100), DUE_ENOENT);
    cr_expect_eq(due_promote(lab.q, id), DUE_ENOENT);
    lab_close(&lab);
}

LAB_TEST(reschedule, works_while_the_queue_drains)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "job", .at_ns = 1000);

    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    cr_expect_eq(due_reschedule(lab.q, id, 5), 0);
    lab_turn_to(&lab, 5);
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    lab_close(&lab);
}

/* ---- A7: every state against every change, and every pair of them ---- */

enum { EARLIER, LATER, PAST, PROMOTED, CANCELLED, TAKEN, CHANGES };

struct fate {
    due_id id;
    bool gone;
    int64_t deadline_ns;
};

static void change(struct lab *lab, struct fate *fate, int what)
{
    int64_t now = due_now(lab->q);
    int64_t to = what == EARLIER ? now + 10 : what == LATER ? now + 1000 : now - 10;
    due_job job;
    int rc;

    switch (what) {
    case CANCELLED:
        cr_assert_eq(due_cancel(lab->q, fate->id, NULL), fate->gone ? DUE_ENOENT : 0);
        fate->gone = true;
        return;
    case TAKEN:
        rc = due_dequeue(lab->q, &job, 0);
        cr_assert_eq(rc, fate->gone || fate->deadline_ns > now ? DUE_EAGAIN : 0);
        if (rc == 0) {
            cr_assert(due_id_equal(job.id, fate->id));
            cr_assert_eq(job.deadline_ns, fate->deadline_ns);
            due_job_done(&job);
            fate->gone = true;
        }
        return;
    case PROMOTED:
        cr_assert_eq(due_promote(lab->q, fate->id), fate->gone ? DUE_ENOENT : 0);
        if (!fate->gone)
            fate->deadline_ns = lab_find(lab, fate->id).deadline_ns;
        cr_assert(fate->gone || fate->deadline_ns <= now);
        return;
    default:
        cr_assert_eq(due_reschedule(lab->q, fate->id, to), fate->gone ? DUE_ENOENT : 0);
        fate->deadline_ns = to;
    }
}

LAB_TEST(reschedule, and_cancel_and_take_in_every_state_have_a_definite_end)
{
    for (int start = 0; start < 2; start++)
        for (int script = 0; script < CHANGES * CHANGES * CHANGES; script++) {
            struct lab lab = lab_open(.start_ns = 1000);
            struct fate fate = { .deadline_ns = start == 0 ? 1100 : 900 };

            fate.id = lab_enqueue(&lab, "job", .at_ns = fate.deadline_ns);
            if (start == 1)
                cr_assert_eq(due_poll(lab.q, NULL), 1);
            change(&lab, &fate, script % CHANGES);
            change(&lab, &fate, script / CHANGES % CHANGES);
            lab_advance(&lab, 20);
            change(&lab, &fate, script / CHANGES / CHANGES);
            lab_turn_to(&lab, 100000);
            change(&lab, &fate, TAKEN);
            cr_assert(fate.gone, "start %d script %d", start, script);
            cr_assert_null(lab_dequeue(&lab));
            lab_close(&lab);
        }
}

/* B12, go #38119: a storm of resets does not hold others up */
LAB_TEST(reschedule, storm_does_not_delay_other_jobs)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "stormy", .at_ns = 1000000);

    for (int64_t at = 1; at <= 100; at++)
        lab_enqueue(&lab, NULL, .at_ns = at * 10);
    for (int64_t now = 1; now <= 1000; now++) {
        due_job job;

        for (int i = 0; i < 20; i++)
            cr_assert_eq(due_reschedule(lab.q, id, 1000000 + i), 0);
        lab_turn_to(&lab, now);
        int rc = due_dequeue(lab.q, &job, 0);
        cr_assert_eq(rc, now % 10 == 0 ? 0 : DUE_EAGAIN, "at %jd", (intmax_t)now);
        if (rc == 0)
            due_job_done(&job);
    }
    lab_close(&lab);
}

/* A5 */
LAB_TEST(reschedule, storm_leaves_no_growing_heap_behind)
{
    enum { LIVE = 500 };
    struct lab lab = lab_open();
    due_id id[LIVE];
    uint64_t seed = 9;
    uint64_t most = 0;

    for (int i = 0; i < LIVE; i++)
        id[i] = lab_enqueue(&lab, NULL, .at_ns = DUE_S(1));
    for (int i = 0; i < 100000; i++) {
        int64_t at = 1 + (int64_t)crew_below(&seed, 1u << 30);

        cr_assert_eq(due_reschedule(lab.q, id[crew_below(&seed, LIVE)], at), 0);
        if (i % 1000 == 0 && lab_stats(&lab).slots > most)
            most = lab_stats(&lab).slots;
    }
    cr_expect_leq(most, 40 * LIVE, "%ju slots for %d jobs", (uintmax_t)most, LIVE);
    lab_close(&lab);
}
