/* test_share_wake.c - who is rung when something is due: exactly one, and who looks by itself. */
#include "lab/redis/share_case.h"

static struct share more[6];

static void serve_many(void)
{
    serve();
    for (int i = 0; i < 6; i++)
        writer(&more[i]);
    share_listen(&one);
    share_listen(&two);
    for (int i = 0; i < 6; i++)
        share_listen(&more[i]);
}

static void stop_many(void)
{
    for (int i = 0; i < 6; i++) {
        if (more[i].link != NULL)
            share_end(&more[i]);
    }
    stop();
}

TestSuite(wake, .init = serve_many, .fini = stop_many, .timeout = 60);

/* How many of the six were rung; the last of them in *who. */
static int rung(int *who)
{
    int n = 0;

    for (int i = 0; i < 6; i++) {
        int rings = share_rung(&more[i]);
        n += rings;
        if (rings > 0 && who != NULL)
            *who = i;
    }
    return n;
}

/* Nobody was rung, and of the six these two were told to come then, or nobody (-1). */
static void expect_told(int first, int64_t first_alarm, int second, int64_t second_alarm)
{
    cr_expect_eq(rung(NULL), 0);
    for (int i = 0; i < 6; i++) {
        const struct share_told *told = &more[i].told;
        bool expected = i == first || i == second;
        cr_expect_eq(told->times, expected ? 1 : 0, "%d was told %d times", i, told->times);
        if (expected)
            cr_expect_eq(told->alarm_us, i == first ? first_alarm : second_alarm);
    }
}

/* Some do not hear any more: until the server knows. */
static void fall_deaf(int n)
{
    for (int i = 0; i < n; i++) {
        int hears = 1;

        redisFree(more[i].bell);
        more[i].bell = NULL;
        while (hears) {
            redisReply *r = share_ask(&one, "PUBSUB NUMSUB %s%s", more[i].prefix, more[i].writer);
            hears = r->element[1]->integer != 0;
            freeReplyObject(r);
        }
    }
}

/* The six sleep, one after the other. */
static void all_sleep(void)
{
    for (int i = 0; i < 6; i++) {
        turn(T0 + i);
        cr_assert_eq(wait_for(&more[i], 1)->alarm, 0);
    }
}

/* They wait for that head: one leads, one is the deputy, four sleep. */
static void all_sleep_behind(int64_t head)
{
    for (int i = 0; i < 6; i++) {
        int64_t alarm = i == 0 ? head : i == 1 ? head + GRACE : 0;
        cr_assert_eq(wait_for(&more[i], 1)->alarm, alarm);
    }
}

/* A clock that was set back: who was rung after now will not come, as far as we know. */
Test(wake, counts_nobody_who_was_rung_in_the_future)
{
    all_sleep();
    freeReplyObject(share_ask(&one, "ZADD due:{q}:w %lld ghost", -(long long)T0 - 1000000));
    put(&one, 1, T0);
    cr_expect_eq(one.answer.rang, 1);
    cr_expect_eq(rung(NULL), 1);
}

Test(wake, rings_the_longest_sleeper_and_nobody_else_for_a_job_that_is_due)
{
    int who = -1;

    all_sleep();
    put(&one, 1, T0);
    cr_expect_eq(one.answer.rang, 1);
    cr_expect_eq(rung(&who), 1);
    cr_expect_eq(who, 0);
    put(&one, 2, T0);
    cr_expect_eq(rung(NULL), 0, "one is under way, and will ring the next");
    cr_expect_eq(wait_for(&more[0], 1)->count, 1);
    cr_expect_eq(rung(&who), 1);
    cr_expect_eq(who, 1);
    cr_expect_eq(wait_for(&more[1], 1)->count, 1);
    int64_t over = T0 + LEASE + 5;
    expect_told(2, over, 3, over + GRACE); /* the end of the first lease is the next head */
}

Test(wake, has_a_leader_and_a_deputy_for_a_new_head_and_no_more)
{
    all_sleep();
    put(&one, 1, T0 + 1000);
    cr_expect_eq(one.answer.rang, 0, "nobody has to ask whether they have come");
    expect_told(0, T0 + 1000, 1, T0 + 1000 + GRACE);
    cr_expect_eq(more[0].told.stamp, one.answer.stamp);
    cr_expect_eq(more[0].told.now_us, T0 + 5);
    put(&one, 2, T0 + 1001);
    expect_told(-1, 0, -1, 0); /* covered twice */
    put(&one, 3, T0 + 999);
    expect_told(2, T0 + 999, -1, 0);
    cr_expect_eq(wait_for(&more[2], 1)->alarm, T0 + 999, "it asks all the same");
    expect_told(-1, 0, -1, 0);
}

Test(wake, tells_the_next_when_whom_it_would_tell_is_gone)
{
    all_sleep();
    fall_deaf(2);
    put(&one, 1, T0 + 1000);
    cr_expect_eq(COUNT("ZCARD due:{q}:w"), 4);
    cr_expect_eq(share_rung(&more[2]), 0);
    cr_expect_eq(more[2].told.alarm_us, T0 + 1000);
    cr_expect_eq(share_rung(&more[3]), 0);
    cr_expect_eq(more[3].told.alarm_us, T0 + 1000 + GRACE);
}

/* A number that is sent again may tell somebody: that counts as much as if it were a new one. */
Test(wake, tells_with_the_highest_stamp)
{
    put(&one, 1, T0 + 9000);
    all_sleep_behind(T0 + 9000);
    claim(&two, 1);
    int64_t early = two.answer.stamp;
    put(&one, 2, T0 + 8000);
    int64_t late = one.answer.stamp;
    for (int i = 0; i < 6; i++)
        share_rung(&more[i]);
    freeReplyObject(share_ask(&one, "ZREM due:{q}:w %s", more[2].writer));
    share_again(&two, 1);
    claim(&two, 1);
    cr_expect_eq(two.answer.stamp, early);
    expect_told(3, T0 + 8000, -1, 0);
    cr_expect_eq(more[3].told.stamp, late);
    freeReplyObject(share_ask(&one, "ZREM due:{q}:w %s", more[3].writer));
    share_beat(&one);
    expect_told(4, T0 + 8000, -1, 0);
    cr_expect_eq(more[4].told.stamp, late);
}

Test(wake, wakes_the_deputy_alone_when_the_leader_does_not_come)
{
    all_sleep();
    put(&one, 1, T0 + 1000);
    expect_told(0, T0 + 1000, 1, T0 + 1000 + GRACE);
    turn(T0 + 1000 + GRACE);
    cr_expect_eq(wait_for(&more[1], 1)->count, 1);
}

Test(wake, does_not_count_on_whoever_was_rung_and_did_not_come)
{
    int who = -1;

    all_sleep();
    put(&one, 1, T0);
    cr_expect_eq(rung(&who), 1);
    turn(T0 + 5 + GRACE - 1);
    share_beat(&one);
    cr_expect_eq(one.answer.rang, 0);
    turn(T0 + 5 + GRACE);
    share_beat(&one);
    cr_expect_eq(one.answer.rang, 1);
    cr_expect_eq(one.answer.late, 1);
    cr_expect_eq(rung(&who), 1);
    cr_expect_eq(who, 1);
}

Test(wake, says_that_it_was_late_only_after_the_grace)
{
    all_sleep();
    put(&one, 1, T0 + 5);
    turn(T0 + 5 + GRACE);
    share_beat(&one);
    cr_expect_eq(one.answer.rang, 1);
    cr_expect_eq(one.answer.late, 0);
    turn(T0 + 5 + 2 * GRACE);
    share_beat(&one);
    cr_expect_eq(one.answer.rang, 1);
    cr_expect_eq(one.answer.late, 1);
}

Test(wake, strikes_off_whoever_is_gone_and_rings_the_next)
{
    int who = -1;

    all_sleep();
    fall_deaf(3);
    put(&one, 1, T0);
    for (int i = 3; i < 6; i++) {
        if (share_rung(&more[i]) > 0)
            who = i;
    }
    cr_expect_eq(who, 3);
    cr_expect_eq(COUNT("ZCARD due:{q}:w"), 3);
}

/* As of one machine that is switched off. */
Test(wake, finds_who_lives_behind_many_who_are_gone)
{
    all_sleep();
    fall_deaf(5);
    put(&one, 1, T0 + 1000);
    cr_expect_eq(share_rung(&more[5]), 0);
    cr_expect_eq(more[5].told.alarm_us, T0 + 1000);
    cr_expect_eq(COUNT("ZCARD due:{q}:w"), 1);
    for (int i = 0; i < 60; i++)
        freeReplyObject(share_ask(&one, "ZADD due:{q}:w 6000000000000000 gone%d", i));
    put(&one, 2, T0);
    cr_expect_eq(share_rung(&more[5]), 1);
}

Test(wake, rings_two_while_far_more_is_due_than_was_asked)
{
    all_sleep();
    for (int i = 1; i <= 9; i++)
        put(&one, i, T0);
    cr_expect_eq(rung(NULL), 1);
    cr_expect_eq(wait_for(&more[0], 1)->count, 1);
    cr_expect_eq(rung(NULL), 2);
    turn(T0 + 5 + 2 * GRACE);
    share_again(&more[0], 1);
    cr_expect_eq(wait_for(&more[0], 1)->count, 1);
    cr_expect_eq(rung(NULL), 2, "those did not come, and the answer was lost");
}

Test(wake, covers_those_who_wait_for_one_topic_by_its_head)
{
    struct share_claim want = { .need = 1, .lease_us = LEASE, .wait = "t" };

    share_topics(&more[0], "a", "b", NULL);
    share_topics(&more[1], "b", NULL);
    share_work(&more[0], NULL, 0, want);
    share_work(&more[1], NULL, 0, want);
    put(&one, 1, T0);
    cr_expect_eq(share_rung(&more[0]), 1);
    cr_expect_eq(share_rung(&more[1]), 0);
    share_topics(&one, "b", NULL);
    put(&one, 2, T0);
    cr_expect_eq(share_rung(&more[0]) + share_rung(&more[1]), 1);
    share_work(&more[0], NULL, 0, want);
    cr_expect_eq(more[0].answer.count, 1);
    cr_expect_eq(COUNT("ZCARD due:{q}:w:a"), 0, "who has enough waits nowhere");
    cr_expect_eq(COUNT("ZCARD due:{q}:w:b"), 1);
}

Test(wake, leaves_the_next_head_covered_when_somebody_goes)
{
    all_sleep();
    put(&one, 1, T0 + 1000);
    rung(NULL);
    share_leave(&more[0]);
    cr_expect_eq(more[0].answer.code, 'D');
    expect_told(2, T0 + 1000, -1, 0);
    share_leave(&more[0]);
    cr_expect_eq(more[0].answer.code, 'L');
}

Test(wake, asks_nobody_for_a_deadline_that_never_comes)
{
    put(&one, 1, INT64_C(9007199254740991));
    cr_expect_eq(wait_for(&more[0], 1)->alarm, 0);
    cr_expect_eq(rung(NULL), 0);
    put(&one, 2, INT64_C(6000000000000000)); /* from there on nothing is a deadline */
    cr_expect_eq(rung(NULL), 0);
}

Test(wake, tells_of_a_job_that_was_moved_to_an_earlier_time)
{
    put(&one, 1, T0 + 9000);
    all_sleep_behind(T0 + 9000);
    struct share_change sooner = { 'm', 1, id(1), T0 + 9000, "", T0 + 500, "e" };
    share_edit(&one, &sooner, 1);
    expect_told(2, T0 + 500, -1, 0);
}

Test(wake, does_not_count_on_alarms_that_are_long_over)
{
    put(&one, 1, T0 + 1000);
    all_sleep_behind(T0 + 1000);
    turn(T0 + 1000 + 3 * GRACE);
    cr_assert_eq(claim(&two, 1)->count, 1);
    int64_t over = T0 + 1000 + 3 * GRACE + LEASE; /* which nobody looks at */
    expect_told(2, over, 3, over + GRACE);
}
