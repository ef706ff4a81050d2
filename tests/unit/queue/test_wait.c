/* Dequeues that wait.  Threads are known to sleep before the clock is turned. */
#include "lab/lab.h"
#include "queue/queue.h"

#include <fcntl.h>
#include <unistd.h>

LAB_TEST(wait, ends_when_the_job_comes_due)
{
    struct lab lab = lab_open();
    struct crew_call call;

    lab_enqueue(&lab, "tea", .at_ns = 100);
    crew_call_dequeue(&call, lab.q, DUE_FOREVER);
    crew_call_asleep(&call);
    lab_turn_to(&lab, 99);
    cr_expect_not(atomic_load(&call.thread.back), "early");
    lab_turn_to(&lab, 100);
    cr_assert_eq(crew_call_answer(&call), 0);
    cr_expect_eq(call.job.deadline_ns, 100);
    cr_expect_eq(call.job.lateness_ns, 0);
    due_job_done(&call.job);
    lab_close(&lab);
}

/* DelayQueue: a timed take waits its whole timeout although a job that is not due exists; B10 */
LAB_TEST(wait, lasts_its_whole_timeout_although_a_job_is_held)
{
    struct lab lab = lab_open(.start_ns = 1000);
    struct crew_call call;

    lab_enqueue(&lab, "later", .delay_ns = DUE_S(10));
    lab_enqueue(&lab, "never", .at_ns = DUE_FOREVER);
    crew_call_dequeue(&call, lab.q, 500);
    crew_call_asleep(&call);
    lab_turn_to(&lab, 1499);
    crew_call_asleep(&call);
    cr_expect_not(atomic_load(&call.thread.back), "the timeout came early");
    lab_turn_to(&lab, 1500);
    cr_expect_eq(crew_call_answer(&call), DUE_ETIMEDOUT);
    cr_expect_eq(lab_stats(&lab).waiting, 2u);
    lab_close(&lab);
}

/* DelayQueue: zero timeout takes what is due */
LAB_TEST(wait, does_not_happen_when_a_job_is_due)
{
    struct lab lab = lab_open();
    due_job job;

    lab_enqueue(&lab, "due", .delay_ns = 0);
    cr_assert_eq(due_dequeue(lab.q, &job, DUE_FOREVER), 0);
    due_job_done(&job);
    lab_close(&lab);
}

/* B2: a new earlier job must wake whoever sleeps for a later one */
LAB_TEST(wait, ends_for_an_earlier_job_that_came_later)
{
    struct lab lab = lab_open();
    struct crew_call call;

    lab_enqueue(&lab, "late", .at_ns = DUE_S(10));
    crew_call_dequeue(&call, lab.q, DUE_FOREVER);
    crew_call_asleep(&call);
    lab_enqueue(&lab, "early", .at_ns = 5);
    lab_turn_to(&lab, 5);
    cr_assert_eq(crew_call_answer(&call), 0);
    cr_expect_eq(call.job.deadline_ns, 5);
    due_job_done(&call.job);
    lab_close(&lab);
}

LAB_TEST(wait, ends_for_a_job_that_is_due_at_once)
{
    struct lab lab = lab_open();
    struct crew_call call;

    crew_call_dequeue(&call, lab.q, DUE_FOREVER);
    crew_call_asleep(&call);
    lab_enqueue(&lab, "now", .delay_ns = 0);
    cr_assert_eq(crew_call_answer(&call), 0);
    cr_expect_str_eq(lab_text(&lab, &call.job), "now");
    lab_close(&lab);
}

/* B3: a reset into the past */
LAB_TEST(wait, ends_for_a_job_rescheduled_into_the_past)
{
    struct lab lab = lab_open(.start_ns = 100);
    struct crew_call call;
    due_id id = lab_enqueue(&lab, "job", .at_ns = DUE_S(10));

    crew_call_dequeue(&call, lab.q, DUE_FOREVER);
    crew_call_asleep(&call);
    cr_expect_eq(due_reschedule(lab.q, id, 50), 0);
    cr_assert_eq(crew_call_answer(&call), 0);
    cr_expect_eq(call.job.deadline_ns, 50);
    due_job_done(&call.job);
    lab_close(&lab);
}

LAB_TEST(wait, ends_for_a_promoted_job)
{
    struct lab lab = lab_open(.start_ns = 100);
    struct crew_call call;
    due_id id = lab_enqueue(&lab, "job", .at_ns = DUE_FOREVER);

    crew_call_dequeue(&call, lab.q, DUE_FOREVER);
    crew_call_asleep(&call);
    cr_expect_eq(due_promote(lab.q, id), 0);
    cr_assert_eq(crew_call_answer(&call), 0);
    due_job_done(&call.job);
    lab_close(&lab);
}

/* A12, B3: the head moves away or goes; the wait goes on, exactly to the next */
LAB_TEST(wait, goes_on_to_the_next_job_when_the_head_has_gone)
{
    struct lab lab = lab_open();
    struct crew_call call;
    due_id cancelled = lab_enqueue(&lab, "cancelled", .at_ns = 10);
    due_id moved = lab_enqueue(&lab, "moved", .at_ns = 20);

    lab_enqueue(&lab, "next", .at_ns = 30);
    crew_call_dequeue(&call, lab.q, DUE_FOREVER);
    crew_call_asleep(&call);
    cr_expect_eq(due_cancel(lab.q, cancelled, NULL), 0);
    cr_expect_eq(due_reschedule(lab.q, moved, 40), 0);
    lab_turn_to(&lab, 29);
    crew_call_asleep(&call);
    cr_expect_not(atomic_load(&call.thread.back));
    lab_turn_to(&lab, 30);
    cr_assert_eq(crew_call_answer(&call), 0);
    cr_expect_str_eq(lab_text(&lab, &call.job), "next");
    lab_close(&lab);
}

/* tokio #6751: the last job goes while somebody waits; a later one is still delivered */
LAB_TEST(wait, survives_the_removal_of_the_last_job)
{
    struct lab lab = lab_open();
    struct crew_call call;
    due_id last = lab_enqueue(&lab, "last", .at_ns = 10);

    crew_call_dequeue(&call, lab.q, DUE_FOREVER);
    crew_call_asleep(&call);
    cr_expect_eq(due_cancel(lab.q, last, NULL), 0);
    lab_turn_to(&lab, 10);
    crew_call_asleep(&call);
    lab_enqueue(&lab, "another", .at_ns = 20);
    lab_turn_to(&lab, 20);
    cr_assert_eq(crew_call_answer(&call), 0);
    cr_expect_str_eq(lab_text(&lab, &call.job), "another");
    lab_close(&lab);
}

LAB_TEST(wait, ends_when_the_paused_topic_is_resumed)
{
    struct lab lab = lab_open();
    struct crew_call call;

    cr_expect_eq(due_pause(lab.q, 0), 0);
    lab_enqueue(&lab, "held back", .delay_ns = 0);
    crew_call_dequeue(&call, lab.q, DUE_FOREVER);
    crew_call_asleep(&call);
    cr_expect_not(atomic_load(&call.thread.back));
    cr_expect_eq(due_resume(lab.q, 0), 0);
    cr_assert_eq(crew_call_answer(&call), 0);
    cr_expect_str_eq(lab_text(&lab, &call.job), "held back");
    lab_close(&lab);
}

/* DelayQueue: two consumers with 50 and 500 each get their own; B6 */
LAB_TEST(wait, of_two_with_different_timeouts_end_each_at_its_own)
{
    struct lab lab = lab_open();
    struct crew_call brief;
    struct crew_call patient;

    crew_call_dequeue(&brief, lab.q, 50);
    crew_call_asleep(&brief);
    crew_call_dequeue(&patient, lab.q, 500);
    crew_call_asleep(&patient);
    lab_turn_to(&lab, 50);
    cr_expect_eq(crew_call_answer(&brief), DUE_ETIMEDOUT);
    crew_call_asleep(&patient);
    cr_expect_not(atomic_load(&patient.thread.back));
    lab_turn_to(&lab, 500);
    cr_expect_eq(crew_call_answer(&patient), DUE_ETIMEDOUT);
    lab_close(&lab);
}

/* The one who led leaves by its timeout: somebody else must watch the clock from then on. */
LAB_TEST(wait, of_the_others_is_timed_after_the_first_has_left)
{
    struct lab lab = lab_open();
    struct crew_call first;
    struct crew_call second;

    lab_enqueue(&lab, "job", .at_ns = 100);
    crew_call_dequeue(&first, lab.q, 50);
    crew_call_asleep(&first);
    crew_call_dequeue(&second, lab.q, DUE_FOREVER);
    crew_call_asleep(&second);
    lab_turn_to(&lab, 50);
    cr_expect_eq(crew_call_answer(&first), DUE_ETIMEDOUT);
    lab_turn_to(&lab, 100);
    cr_assert_eq(crew_call_answer(&second), 0);
    due_job_done(&second.job);
    lab_close(&lab);
}

LAB_TEST(wait, of_the_first_to_come_ends_first)
{
    enum { CALLERS = 4 };
    struct lab lab = lab_open();
    struct crew_call call[CALLERS];

    for (int i = 0; i < CALLERS; i++) {
        crew_call_dequeue(&call[i], lab.q, DUE_FOREVER);
        crew_call_asleep(&call[i]);
    }
    for (int i = 0; i < CALLERS; i++) {
        lab_enqueue(&lab, "job", .at_ns = 10 * (i + 1));
        lab_turn_to(&lab, 10 * (i + 1));
        cr_assert_eq(crew_call_answer(&call[i]), 0, "caller %d", i);
        cr_expect_eq(call[i].job.deadline_ns, 10 * (i + 1));
        due_job_done(&call[i].job);
    }
    lab_close(&lab);
}

LAB_TEST(wait, of_everybody_ends_when_enough_comes_due_at_once)
{
    enum { CALLERS = 8 };
    struct lab lab = lab_open();
    struct crew_call call[CALLERS];

    for (int i = 0; i < CALLERS; i++) {
        crew_call_dequeue(&call[i], lab.q, DUE_FOREVER);
        crew_call_asleep(&call[i]);
        lab_enqueue(&lab, NULL, .at_ns = 10);
    }
    lab_turn_to(&lab, 10);
    for (int i = 0; i < CALLERS; i++) {
        cr_assert_eq(crew_call_answer(&call[i]), 0);
        due_job_done(&call[i].job);
    }
    lab_close(&lab);
}

/* nfs-ganesha #1102: a wake-up must not go to one who cannot use it */
LAB_TEST(wait, for_one_topic_is_not_ended_by_another)
{
    struct lab lab = lab_open();
    int a = lab_topic(&lab, "a");
    int b = lab_topic(&lab, "b");
    struct crew_call for_a;
    struct crew_call for_b;

    crew_call_dequeue_from(&for_a, lab.q, &a, 1, DUE_FOREVER);
    crew_call_asleep(&for_a);
    crew_call_dequeue_from(&for_b, lab.q, &b, 1, DUE_FOREVER);
    crew_call_asleep(&for_b);
    lab_enqueue(&lab, "for b", .at_ns = 5, .topic = b);
    lab_turn_to(&lab, 5);
    cr_assert_eq(crew_call_answer(&for_b), 0);
    cr_expect_str_eq(lab_text(&lab, &for_b.job), "for b");
    crew_call_asleep(&for_a);
    cr_expect_not(atomic_load(&for_a.thread.back));
    lab_enqueue(&lab, "for a", .topic = a);
    cr_assert_eq(crew_call_answer(&for_a), 0);
    cr_expect_str_eq(lab_text(&lab, &for_a.job), "for a");
    lab_close(&lab);
}

LAB_TEST(wait, for_several_topics_ends_for_any_of_them)
{
    struct lab lab = lab_open();
    int topics[] = { lab_topic(&lab, "a"), lab_topic(&lab, "b"), lab_topic(&lab, "c") };
    struct crew_call call;

    for (int i = 0; i < 3; i++) {
        crew_call_dequeue_from(&call, lab.q, topics, 3, DUE_FOREVER);
        crew_call_asleep(&call);
        lab_enqueue(&lab, NULL, .topic = topics[i]);
        cr_assert_eq(crew_call_answer(&call), 0, "%d", i);
        cr_expect_eq(call.job.topic, topics[i]);
        due_job_done(&call.job);
    }
    lab_close(&lab);
}

/* What stands behind them in the caller's array is not asked for: a job of that is the other's, who
 * has come later. */
LAB_TEST(wait, for_several_topics_is_not_for_the_one_behind_them)
{
    for (size_t n = 2; n < 4; n++) {
        struct lab lab = lab_open(.kernel = true);
        struct crew_call first, other;
        int topics[4];

        for (int i = 0; i < 4; i++)
            topics[i] = due_topic(lab.q, (const char *[]){ "mail", "post", "news", "bills" }[i]);
        crew_call_dequeue_from(&first, lab.q, topics, n, DUE_FOREVER);
        crew_call_asleep(&first);
        crew_call_dequeue(&other, lab.q, DUE_S(20));
        crew_call_asleep(&other);
        lab_enqueue(&lab, "other's", .topic = topics[n]);
        cr_expect_eq(crew_call_answer(&other), 0);
        cr_expect_eq(other.job.topic, topics[n]);
        due_job_done(&other.job);
        lab_enqueue(&lab, "first's", .topic = topics[n - 1]);
        cr_expect_eq(crew_call_answer(&first), 0);
        cr_expect_eq(first.job.topic, topics[n - 1]);
        due_job_done(&first.job);
        lab_close(&lab);
    }
}

LAB_TEST(wait, can_be_as_short_as_a_nanosecond)
{
    struct lab lab = lab_open();
    struct crew_call call;

    crew_call_dequeue(&call, lab.q, 1);
    crew_call_asleep(&call);
    lab_advance(&lab, 1);
    cr_expect_eq(crew_call_answer(&call), DUE_ETIMEDOUT);
    lab_close(&lab);
}

LAB_TEST(wait, that_is_endless_is_not_ended_by_the_end_of_time)
{
    struct lab lab = lab_open();
    struct crew_call call;

    crew_call_dequeue(&call, lab.q, DUE_FOREVER);
    crew_call_asleep(&call);
    lab_turn_to(&lab, DUE_FOREVER - 1);
    crew_call_asleep(&call);
    cr_expect_not(atomic_load(&call.thread.back));
    lab_enqueue(&lab, "job", .delay_ns = 0);
    cr_assert_eq(crew_call_answer(&call), 0);
    due_job_done(&call.job);
    lab_close(&lab);
}

/* The lead is handed to one who sleeps, who is then called for a job and leaves: the next consumer
 * must watch the clock again.  A heartbeat would hide it after ten seconds. */
LAB_TEST(wait, is_timed_after_the_lead_was_left_to_a_sleeper_that_got_a_job)
{
    struct lab lab = lab_open(.kernel = true);
    struct crew_call brief;
    struct crew_call called;
    struct crew_call next;

    crew_call_dequeue(&brief, lab.q, DUE_MS(30));
    crew_call_asleep(&brief);
    crew_call_dequeue(&called, lab.q, DUE_FOREVER);
    crew_call_asleep(&called);
    cr_expect_eq(crew_call_answer(&brief), DUE_ETIMEDOUT);
    lab_enqueue(&lab, "now", .delay_ns = 0);
    cr_assert_eq(crew_call_answer(&called), 0);
    due_job_done(&called.job);

    crew_call_dequeue(&next, lab.q, DUE_S(5));
    crew_call_asleep(&next);
    lab_enqueue(&lab, "soon", .delay_ns = DUE_MS(10));
    cr_assert_eq(crew_call_answer(&next), 0);
    cr_expect_lt(next.job.lateness_ns, DUE_S(2), "nobody watched the clock");
    due_job_done(&next.job);
    lab_close(&lab);
}

/* A program that has closed its standard input: the queue's own alarm may be descriptor 0. */
Test(wait, ends_also_where_the_first_descriptor_is_the_queues, .timeout = 30)
{
    struct crew_call call;

    close(0);
    struct lab lab = lab_open(.kernel = true, .with.clock = DUE_CLOCK_REALTIME);
    cr_assert_neq(fcntl(0, F_GETFD), -1, "it is in use again");
    lab_enqueue(&lab, "later", .delay_ns = DUE_S(3600));
    crew_call_dequeue(&call, lab.q, DUE_FOREVER);
    crew_call_asleep(&call);
    lab_enqueue(&lab, "now", .delay_ns = DUE_MS(2));
    cr_assert_eq(crew_call_answer(&call), 0);
    cr_expect_str_eq(lab_text(&lab, &call.job), "now");
    lab_close(&lab);
}

/* The alarm of such a clock is a descriptor, and may be the first of all. */
LAB_TEST(wait, goes_on_in_a_program_without_standard_input)
{
    static const enum due_clock_kind kinds[] = { DUE_CLOCK_BOOTTIME, DUE_CLOCK_REALTIME };
    enum { CONSUMERS = 3 };

    for (size_t i = 0; i < 2; i++) {
        close(0);
        struct lab lab = lab_open(.kernel = true, .with.clock = kinds[i]);
        struct crew_call call[CONSUMERS];
        struct crew_thread *all[CONSUMERS];

        cr_assert_eq(lab.q->alarm.fd, 0, "this proves nothing");
        for (int k = 0; k < CONSUMERS; k++) {
            crew_call_dequeue(&call[k], lab.q, DUE_FOREVER);
            all[k] = &call[k].thread;
        }
        crew_until_all_asleep(all, CONSUMERS);
        for (int k = 0; k < CONSUMERS; k++)
            lab_enqueue(&lab, "tea", .delay_ns = DUE_MS(4 * (CONSUMERS - k)));
        for (int k = 0; k < CONSUMERS; k++) {
            cr_assert_eq(crew_call_answer(&call[k]), 0);
            cr_expect_str_eq(lab_text(&lab, &call[k].job), "tea");
        }
        lab_close(&lab);
        cr_expect_eq(fcntl(0, F_GETFD), -1, "it is still open");
    }
}
