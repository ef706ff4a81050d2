/* Topics: names, numbers, turns. */
#include "lab/lab.h"
#include "lab/take.h"

#include <stdio.h>

LAB_TEST(topic, has_one_number_for_one_name)
{
    struct lab lab = lab_open();
    int a = lab_topic(&lab, "a");
    int b = lab_topic(&lab, "b");

    cr_expect_gt(a, 0);
    cr_expect_gt(b, 0);
    cr_expect_neq(a, b);
    cr_expect_eq(lab_topic(&lab, "a"), a);
    cr_expect_eq(lab_topic(&lab, "b"), b);
    lab_close(&lab);
}

LAB_TEST(topic, without_a_name_is_number_zero)
{
    struct lab lab = lab_open();

    cr_expect_eq(lab_topic(&lab, ""), 0);
    cr_expect_str_eq(due_topic_name(lab.q, 0), "");
    lab_close(&lab);
}

LAB_TEST(topic, name_is_copied_and_given_back)
{
    struct lab lab = lab_open();
    char name[] = "letters";
    int topic = lab_topic(&lab, name);

    memset(name, '#', sizeof name - 1);
    cr_expect_str_eq(due_topic_name(lab.q, topic), "letters");
    cr_expect_eq(lab_topic(&lab, "letters"), topic);
    lab_close(&lab);
}

LAB_TEST(topic, has_no_name_when_it_was_never_given)
{
    static const int numbers[] = { 1, -1, DUE_TOPIC_MAX, INT32_MAX, INT32_MIN };
    struct lab lab = lab_open();

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        cr_expect_null(due_topic_name(lab.q, numbers[i]), "%d", numbers[i]);
    lab_close(&lab);
}

LAB_TEST(topic, takes_any_bytes_up_to_the_limit)
{
    struct lab lab = lab_open();
    char name[DUE_TOPIC_LENGTH + 2];

    memset(name, 0xfe, sizeof name);
    name[DUE_TOPIC_LENGTH + 1] = '\0';
    cr_expect_eq(due_topic(lab.q, name), DUE_EINVAL);
    name[DUE_TOPIC_LENGTH] = '\0';
    int topic = lab_topic(&lab, name);
    cr_expect_str_eq(due_topic_name(lab.q, topic), name);
    cr_expect_gt(lab_topic(&lab, "with blanks,\nnew lines and {braces}"), 0);
    lab_close(&lab);
}

LAB_TEST(topic, is_told_from_others_that_begin_alike)
{
    struct lab lab = lab_open();
    int one = lab_topic(&lab, "mail");
    int two = lab_topic(&lab, "mail ");
    int three = lab_topic(&lab, "mai");

    cr_expect(one != two && two != three && one != three);
    lab_close(&lab);
}

/* Whenever a table of names is full a larger one takes its place, with all that were there. */
LAB_TEST(topic, keeps_its_number_however_many_others_come)
{
    enum { TOPICS = 600 };
    struct lab lab = lab_open();
    char name[24];

    for (int i = 1; i <= TOPICS; i++) {
        snprintf(name, sizeof name, "topic-%d", i);
        cr_assert_eq(lab_topic(&lab, name), i, "they are numbered in their order");
        for (int k = 1; k <= i; k += i < 80 ? 1 : 97) {
            snprintf(name, sizeof name, "topic-%d", k);
            cr_assert_eq(lab_topic(&lab, name), k, "with %d", i);
            cr_assert_str_eq(due_topic_name(lab.q, k), name);
        }
        cr_assert_eq(lab_topic(&lab, ""), 0);
    }
    lab_close(&lab);
}

Test(topic, numbers_end_at_the_limit_and_the_queue_goes_on, .timeout = 60)
{
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    char name[24];

    for (int i = 1; i < DUE_TOPIC_MAX; i++) {
        snprintf(name, sizeof name, "%d", i);
        cr_assert_gt(lab_topic(&lab, name), 0);
    }
    cr_expect_eq(due_topic(lab.q, "one too many"), DUE_ELIMIT);
    cr_expect_str_eq(due_topic_name(lab.q, lab_topic(&lab, "777")), "777");
    lab_enqueue(&lab, "last", .topic = lab_topic(&lab, "65534"));
    lab_enqueue(&lab, "first", .topic = lab_topic(&lab, "1"));
    cr_expect_not_null(lab_dequeue(&lab));
    cr_expect_not_null(lab_dequeue(&lab));
    lab_close(&lab);
}

LAB_TEST(topic, is_refused_when_closed)
{
    struct lab lab = lab_open();

    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, DUE_FOREVER), 0);
    cr_expect_eq(due_topic(lab.q, "new"), DUE_ECLOSED);
    lab_close(&lab);
}

LAB_TEST(topics, take_turns)
{
    enum { TOPICS = 3, EACH = 50 };
    struct lab lab = lab_open();
    int topics[TOPICS] = { 0, lab_topic(&lab, "a"), lab_topic(&lab, "b") };
    int taken[TOPICS] = { 0 };
    due_job job;

    for (int t = 0; t < TOPICS; t++)
        for (int i = 0; i < EACH; i++)
            lab_enqueue(&lab, NULL, .delay_ns = 0, .topic = topics[t]);
    for (int i = 0; i < TOPICS * EACH; i++) {
        cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
        taken[job.topic]++;
        due_job_done(&job);
        for (int t = 0; t < TOPICS; t++)
            cr_assert_leq(abs(taken[t] - (i + 1) / TOPICS), 2, "after %d topic %d had %d", i + 1, t,
                          taken[t]);
    }
    lab_close(&lab);
}

/* Two take from two topics each, one after the other. */
LAB_TEST(topics, take_turns_whoever_else_is_served_in_between)
{
    enum { TOPICS = 4, EACH = 50 };
    struct lab lab = lab_open();
    int topics[TOPICS] = { 0, lab_topic(&lab, "a"), lab_topic(&lab, "b"), lab_topic(&lab, "c") };
    int taken[TOPICS] = { 0 };
    due_job job;

    for (int i = 0; i < TOPICS * EACH; i++)
        lab_enqueue(&lab, NULL, .delay_ns = 0, .topic = topics[i % TOPICS]);
    for (int i = 0; i < TOPICS * EACH; i++) {
        int timeout_s = i % 8 < 4 ? 0 : 30;

        cr_assert_eq(take_from(lab.q, topics + i % 2 * 2, 2, &job, DUE_S(timeout_s)), 0);
        taken[job.topic]++;
        due_job_done(&job);
        for (int t = 0; t < TOPICS; t++)
            cr_assert_leq(abs(taken[t] - (i + 1) / TOPICS), 1, "after %d topic %d had %d", i + 1, t,
                          taken[t]);
    }
    lab_close(&lab);
}

/* A slow consumer of one topic must not hold another topic's jobs up. */
LAB_TEST(topics, do_not_hold_each_other_up)
{
    struct lab lab = lab_open();
    int slow = lab_topic(&lab, "slow");
    int quick = lab_topic(&lab, "quick");

    for (int i = 0; i < 5000; i++)
        lab_enqueue(&lab, "slow", .at_ns = 1 + i % 10, .topic = slow);
    lab_enqueue(&lab, "quick", .at_ns = 5, .topic = quick);
    lab_turn_to(&lab, 10);
    cr_expect_str_eq(lab_dequeue_from(&lab, quick), "quick");
    lab_close(&lab);
}

LAB_TEST(topics, by_the_thousand_keep_their_jobs_apart)
{
    enum { TOPICS = 1000 };
    struct lab lab = lab_open();
    static int topics[TOPICS];
    char name[24];
    due_job job;

    for (int i = 0; i < TOPICS; i++) {
        snprintf(name, sizeof name, "topic-%d", i);
        topics[i] = lab_topic(&lab, name);
        for (int k = 0; k < 3; k++)
            lab_enqueue(&lab, NULL, .at_ns = 3 - k, .topic = topics[i]);
    }
    lab_turn_to(&lab, 3);
    for (int i = TOPICS - 1; i >= 0; i--)
        for (int k = 0; k < 3; k++) {
            cr_assert_eq(take_from(lab.q, &topics[i], 1, &job, 0), 0);
            cr_assert_eq(job.topic, topics[i]);
            cr_assert_eq(job.deadline_ns, k + 1);
            due_job_done(&job);
        }
    cr_expect_null(lab_dequeue(&lab));
    lab_close(&lab);
}

LAB_TEST(topics, all_get_their_turn_when_one_is_flooded)
{
    struct lab lab = lab_open();
    int flooded = lab_topic(&lab, "flooded");
    int quiet = lab_topic(&lab, "quiet");
    bool seen = false;
    due_job job;

    for (int i = 0; i < 1000; i++)
        lab_enqueue(&lab, NULL, .at_ns = 1, .topic = flooded);
    lab_enqueue(&lab, NULL, .at_ns = 5, .topic = quiet);
    lab_turn_to(&lab, 5);
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
        seen = seen || job.topic == quiet;
        due_job_done(&job);
        lab_enqueue(&lab, NULL, .at_ns = 1, .topic = flooded);
    }
    cr_expect(seen);
    lab_close(&lab);
}

/* Nobody waits, and nobody looks in between. */
LAB_TEST(topics, have_their_turns_in_the_order_in_which_a_clock_found_them_due)
{
    enum { TOPICS = 3 };
    struct lab lab = lab_open();
    int topics[TOPICS] = { 0, lab_topic(&lab, "a"), lab_topic(&lab, "b") };

    lab_enqueue(&lab, "second", .at_ns = 20, .topic = topics[1]);
    lab_enqueue(&lab, "first", .at_ns = 10, .topic = topics[2]);
    lab_turn_to(&lab, 15);
    lab_turn_to(&lab, 25);
    lab_enqueue(&lab, "third", .at_ns = 5, .topic = topics[0]);
    cr_expect_str_eq(lab_dequeue(&lab), "first");
    cr_expect_str_eq(lab_dequeue(&lab), "second");
    cr_expect_str_eq(lab_dequeue(&lab), "third");
    lab_close(&lab);
}
