/* test_share_scripts.c - the scripts of a shared queue by themselves: jobs come, are handed out
 * once, and end; what is sent twice happens once.
 */
#include "lab/redis/share_case.h"

TestSuite(put, .init = serve, .fini = stop, .timeout = 60);
TestSuite(work, .init = serve, .fini = stop, .timeout = 60);

Test(put, stores_a_job_where_its_topic_and_the_head_say)
{
    put(&one, 1, T0 + 500);

    cr_expect_str_empty(one.answer.status);
    cr_expect_eq(COUNT("HLEN due:{q}:j"), 1);
    cr_expect_eq(COUNT("ZSCORE due:{q}:t:a %s", id(1)), T0 + 500);
    cr_expect_eq(COUNT("ZSCORE due:{q}:h a"), T0 + 500);
    cr_expect_eq(COUNT("HEXISTS due:{q}:topics a"), 1);
}

Test(put, gives_a_repeated_number_the_same_answer_and_does_nothing)
{
    put(&one, 1, T0 + 500);
    int64_t stamp = one.answer.stamp;
    int64_t now = one.answer.now;

    turn(T0 + 77);
    share_again(&one, 0);
    put(&one, 2, T0 + 400);

    cr_expect_eq(one.answer.stamp, stamp);
    cr_expect_eq(one.answer.now, now);
    cr_expect_eq(COUNT("HLEN due:{q}:j"), 1);
}

Test(work, hands_out_in_order_of_time_then_id_and_never_early)
{
    put(&one, 3, T0 + 20);
    put(&one, 1, T0 + 20);
    put(&one, 2, T0 + 10);
    put(&one, 4, T0 + 21);

    turn(T0 + 20);
    struct share_answer *a = claim(&two, 10);
    cr_assert_eq(a->count, 3);
    cr_expect_str_eq(a->job[0].id, id(2));
    cr_expect_str_eq(a->job[1].id, id(1));
    cr_expect_str_eq(a->job[2].id, id(3));
    cr_expect_eq(a->lease, T0 + 20 + LEASE);
    cr_expect_str_eq(a->job[0].record, "record");
    cr_expect_eq(claim(&one, 10)->count, 0);
    cr_expect_eq(COUNT("ZSCORE due:{q}:h a"), T0 + 21);
}

Test(work, says_whether_more_is_due)
{
    put(&one, 1, T0);
    put(&one, 2, T0);
    put(&one, 3, T0 + 1);

    cr_expect_eq(claim(&one, 1)->more, 1);
    cr_expect_eq(claim(&one, 1)->more, 1, "there may be");
    cr_expect_eq(claim(&one, 1)->count, 0);
    cr_expect_eq(claim(&one, 1)->more, 0);
    turn(T0 + 1);
    cr_expect_eq(claim(&one, 2)->more, 0, "it was short");
    cr_expect_eq(one.answer.count, 1);
}

/* What ends beside a claim may come before all else; of a limited topic the head is exact. */
Test(work, looks_for_the_head_where_more_than_a_claim_has_changed)
{
    put(&one, 1, T0);
    put(&one, 2, T0);
    cr_expect_eq(claim(&one, 3)->count, 2);
    cr_expect_eq(COUNT("ZSCORE due:{q}:h a"), T0 + LEASE);
    struct share_outcome back[] = {
        { 'r', 1, id(1), one.answer.lease, T0, NULL },
        { 'r', 1, id(2), one.answer.lease, T0, NULL },
    };
    share_work(&one, back, 2, (struct share_claim){ 1, 0, LEASE, NULL });
    cr_expect_eq(one.answer.count, 1);
    cr_expect_eq(COUNT("ZSCORE due:{q}:h a"), T0, "the other one waits");
    freeReplyObject(share_ask(&one, "HSET due:{q}:topics a %s", "0 2"));
    cr_expect_eq(claim(&one, 1)->count, 1);
    cr_expect_eq(COUNT("ZSCORE due:{q}:h a"), T0 + LEASE, "none can be had");
}

/* How many there have been, with this one. */
static long long commands(void)
{
    redisReply *r = share_ask(&one, "INFO commandstats");
    long long n = 0;

    for (const char *at = r->str; (at = strstr(at, "calls=")) != NULL; at++)
        n += strtoll(at + 6, NULL, 10);
    freeReplyObject(r);
    return n;
}

/* Of one job, while nobody waits: that of the script itself, and this one's, are counted, too. */
Test(work, makes_few_commands_for_one_job)
{
    for (int i = 1; i <= 3; i++)
        put(&one, i, T0);
    for (int i = 1; i <= 2; i++) {
        long long was = commands();
        cr_expect_eq(claim(&one, 1)->count, 1);
        cr_expect_eq(commands() - was, 2 + 12, "a claim");
        was = commands();
        cr_expect_str_empty(
            finish(&one, (struct share_outcome){ 'a', 1, id(i), one.answer.lease, 0, NULL }));
        cr_expect_eq(commands() - was, 2 + 9, "an ack");
    }
}

/* What cannot be had of one topic is had of the next. */
Test(work, takes_as_many_as_are_needed_wherever_they_are)
{
    share_topics(&one, "b", NULL);
    for (int i = 1; i <= 4; i++)
        put(&one, i, T0);
    share_topics(&one, "a", "b", NULL);
    cr_expect_eq(claim(&one, 2)->count, 2, "nothing is there");
    put(&two, 5, T0);
    freeReplyObject(share_ask(&one, "HSET due:{q}:topics a %s", "1 0"));
    cr_expect_eq(claim(&one, 2)->count, 2, "it is paused");
}

Test(put, sees_to_the_head_of_a_topic_that_has_a_limit)
{
    freeReplyObject(share_ask(&one, "HSET due:{q}:topics a %s", "0 1"));
    put(&one, 1, T0 + 5);
    cr_expect_eq(COUNT("ZSCORE due:{q}:h a"), T0 + 5);
    put(&one, 2, T0 + 3);
    cr_expect_eq(COUNT("ZSCORE due:{q}:h a"), T0 + 3);
    turn(T0 + 5);
    cr_expect_eq(claim(&one, 2)->count, 1);
    int64_t lease = one.answer.lease;
    put(&one, 3, T0 + 4);
    cr_expect_eq(COUNT("ZSCORE due:{q}:h a"), lease, "no other before one has ended");
}

Test(work, takes_lapsed_jobs_first_and_says_whose_lease_it_was)
{
    put(&one, 1, T0);
    put(&one, 2, T0 - 5);
    cr_assert_eq(claim(&one, 1)->count, 1);
    int64_t lease = one.answer.lease;

    turn(lease - 1);
    cr_expect_str_eq(claim(&two, 1)->job[0].id, id(1));
    cr_expect_eq(two.answer.job[0].over, 0);
    turn(lease);
    cr_assert_eq(claim(&two, 1)->count, 1);
    cr_expect_str_eq(two.answer.job[0].id, id(2));
    cr_expect_eq(two.answer.job[0].over, lease);
    cr_expect_gt(two.answer.lease, lease);
}

Test(work, refuses_whoever_lost_the_lease_and_spares_the_new_holder)
{
    static const char kinds[] = "anbret";

    put(&one, 1, T0);
    claim(&one, 1);
    int64_t lease = one.answer.lease;
    turn(lease);
    claim(&two, 1);
    for (const char *k = kinds; *k != '\0'; k++) {
        const char *status = finish(
            &one, (struct share_outcome){
                      .kind = *k, .id = id(1), .lease = lease, .score = T0, .entry = "late" });
        cr_expect_str_eq(status, "s", "%c", *k);
    }
    cr_expect_eq(COUNT("ZSCORE due:{q}:l:a %s", id(1)), two.answer.lease);
    cr_expect_eq(COUNT("HLEN due:{q}:a"), 0);
    cr_expect_str_empty(finish(
        &two, (struct share_outcome){ .kind = 'a', .id = id(1), .lease = two.answer.lease }));
    cr_expect_eq(COUNT("EXISTS due:{q}:j due:{q}:l:a due:{q}:t:a due:{q}:a"), 0);
}

Test(work, accepts_a_late_ack_when_nobody_else_has_had_the_job)
{
    put(&one, 1, T0);
    claim(&one, 1);
    turn(one.answer.lease + 5);

    cr_expect_str_empty(finish(
        &one, (struct share_outcome){ .kind = 'a', .id = id(1), .lease = one.answer.lease }));
    cr_expect_eq(COUNT("HLEN due:{q}:j"), 0);
}

Test(work, puts_back_what_failed_and_buries_what_is_dead)
{
    put(&one, 1, T0);
    put(&one, 2, T0);
    claim(&one, 2);
    int64_t lease = one.answer.lease;
    struct share_outcome done[] = {
        { .kind = 'n', .topic = 1, .id = id(1), .lease = lease, .score = T0 + 9, .entry = "e1" },
        { .kind = 'b', .topic = 1, .id = id(2), .lease = lease, .score = T0 + 3, .entry = "e2" }
    };

    share_work(&one, done, 2, (struct share_claim){ 0 });
    cr_expect_str_empty(one.answer.status);
    cr_expect_eq(COUNT("ZSCORE due:{q}:t:a %s", id(1)), T0 + 9);
    cr_expect_eq(COUNT("ZSCORE due:{q}:dead %s", id(2)), T0 + 3);
    cr_expect_eq(COUNT("EXISTS due:{q}:l:a"), 0);
    cr_expect_eq(COUNT("HLEN due:{q}:a"), 2);
    cr_expect_eq(COUNT("ZSCORE due:{q}:h a"), T0 + 9);
    turn(T0 + 9);
    cr_assert_eq(claim(&two, 5)->count, 1);
    cr_expect_str_eq(two.answer.job[0].entry, "e1");
}

Test(work, extends_a_lease_counts_an_attempt_and_gives_back_what_was_not_begun)
{
    put(&one, 1, T0);
    put(&one, 2, T0);
    claim(&one, 2);
    int64_t lease = one.answer.lease;
    struct share_outcome done[] = {
        { .kind = 'e', .topic = 1, .id = id(1), .lease = lease, .score = 3 * LEASE },
        { .kind = 'r', .topic = 1, .id = id(2), .lease = lease, .score = T0 }
    };

    turn(T0 + 10);
    share_work(&one, done, 2, (struct share_claim){ 0 });
    cr_expect_str_empty(one.answer.status);
    cr_expect_eq(COUNT("ZSCORE due:{q}:l:a %s", id(1)), T0 + 10 + 3 * LEASE);
    cr_expect_eq(COUNT("ZSCORE due:{q}:t:a %s", id(2)), T0);
    cr_expect_str_empty(finish(
        &one, (struct share_outcome){
                  .kind = 't', .id = id(1), .lease = T0 + 10 + 3 * LEASE, .entry = "began" }));
    cr_expect_eq(COUNT("HEXISTS due:{q}:a %s", id(1)), 1);
}

Test(work, answers_for_each_job_of_a_group_by_itself)
{
    for (int i = 1; i <= 3; i++)
        put(&one, i, T0);
    claim(&one, 3);
    int64_t lease = one.answer.lease;
    struct share_outcome done[] = { { 'a', 1, id(1), lease, 0, NULL },
                                    { 'a', 1, id(2), lease - 1, 0, NULL },
                                    { 'a', 1, id(3), lease, 0, NULL },
                                    { 'a', 1, id(9), lease, 0, NULL } };

    share_work(&one, done, 4, (struct share_claim){ 0 });
    cr_expect_str_eq(one.answer.status, "dsds");
    cr_expect_eq(COUNT("HLEN due:{q}:j"), 1);
    share_again(&one, 1);
    share_work(&one, done, 4, (struct share_claim){ 0 });
    cr_expect_str_eq(one.answer.status, "dsds");
}

Test(work, hands_the_same_jobs_to_whoever_asks_again_but_not_those_that_lapsed)
{
    put(&one, 1, T0);
    put(&one, 2, T0);
    claim(&one, 2);
    struct share_answer first = one.answer;

    put(&two, 3, T0);
    share_again(&one, 1);
    claim(&one, 2);
    cr_expect_eq(one.answer.count, 2);
    cr_expect_eq(one.answer.lease, first.lease);
    cr_expect_eq(one.answer.stamp, first.stamp);
    cr_expect_str_eq(one.answer.job[1].id, id(2));
    turn(first.lease);
    claim(&two, 1);
    share_again(&one, 1);
    claim(&one, 2);
    cr_assert_eq(one.answer.count, 1);
    cr_expect_str_eq(one.answer.job[0].id, id(2));
}

Test(work, tells_a_number_that_was_passed_from_one_that_the_server_lost)
{
    claim(&one, 1);
    claim(&one, 1);
    share_again(&one, 1);
    share_again(&one, 1);
    share_work(&one, NULL, 0, (struct share_claim){ .need = 1, .lease_us = LEASE });
    cr_expect_eq(one.answer.code, 'P');
    one.number[1] = 7;
    share_work(&one, NULL, 0, (struct share_claim){ .need = 1, .lease_us = LEASE });
    cr_expect_eq(one.answer.code, 'L');
}

Test(work, raises_stamps_also_over_a_clock_that_was_set_back)
{
    claim(&one, 1);
    int64_t stamp = one.answer.stamp;

    turn(T0 - 5000000);
    cr_expect_gt(claim(&two, 1)->stamp, stamp);
    two.stamp = T0 + 9000000;
    cr_expect_geq(claim(&two, 1)->stamp, T0 + 9000000);
    cr_expect_gt(claim(&one, 1)->stamp, T0 + 9000000);
}

Test(work, leaves_out_what_is_long_and_says_what_is_missing)
{
    struct share_job jobs[] = { job(1, T0), job(2, T0), job(3, T0) };

    jobs[0].is_long = 1;
    jobs[0].record = "long";
    share_put(&one, jobs, 3);
    freeReplyObject(share_ask(&one, "HDEL due:{q}:j %s", id(2)));
    claim(&one, 3);
    cr_assert_eq(one.answer.count, 3);
    cr_expect_str_empty(one.answer.job[0].record);
    cr_expect_null(one.answer.job[1].record);
    cr_expect_str_eq(one.answer.job[2].record, "record");
}

Test(work, believes_t_of_a_job_that_half_a_script_has_left_in_both)
{
    put(&one, 1, T0 + 100);
    freeReplyObject(share_ask(&one, "ZADD due:{q}:l:a %lld %s", (long long)T0 - 1, id(1)));

    cr_expect_eq(claim(&one, 1)->count, 0);
    cr_expect_eq(COUNT("EXISTS due:{q}:l:a"), 0);
    turn(T0 + 100);
    cr_expect_eq(claim(&one, 2)->count, 1);
    cr_expect_eq(one.answer.job[0].over, 0);
}

/* Else it would come again, though there is nothing of it any more. */
Test(work, sets_aside_what_half_a_script_has_left_in_both)
{
    put(&one, 1, T0 - 5);
    cr_expect_eq(claim(&one, 1)->count, 1);
    freeReplyObject(share_ask(&one, "ZADD due:{q}:t:a %lld %s", (long long)T0 - 5, id(1)));
    share_aside(&one, id(1));
    cr_expect_eq(one.answer.code, 'D', "%s", one.answer.error);
    cr_expect_eq(COUNT("EXISTS due:{q}:j due:{q}:t:a due:{q}:l:a due:{q}:h"), 0);
}

Test(work, prefetches_only_while_nobody_else_waits)
{
    share_listen(&two);
    wait_for(&two, 1);
    for (int i = 1; i <= 4; i++)
        put(&one, i, T0);
    share_work(&one, NULL, 0, (struct share_claim){ 1, 2, LEASE, NULL });
    cr_expect_eq(one.answer.count, 3, "who was rung counts no more: %d", one.answer.count);
    wait_for(&two, 2);
    share_work(&one, NULL, 0, (struct share_claim){ 1, 2, LEASE, NULL });
    cr_expect_eq(one.answer.count, 0);
    put(&one, 5, T0 + 9);
    put(&one, 6, T0 + 9);
    cr_expect_eq(wait_for(&two, 2)->alarm, T0 + 9);
    turn(T0 + 9);
    share_work(&one, NULL, 0, (struct share_claim){ 1, 2, LEASE, NULL });
    cr_expect_eq(one.answer.count, 1);
}

Test(work, names_a_topic_with_something_due_that_was_not_asked)
{
    share_topics(&one, "b", NULL);
    put(&one, 1, T0);
    wait_for(&two, 1);
    cr_expect_eq(two.answer.more, 1);
    cr_expect_eq(two.answer.alarm, -1);
    cr_assert_eq(two.answer.heads, 1);
    cr_expect_str_eq(two.answer.name[0], "b");
    cr_expect_eq(COUNT("EXISTS due:{q}:w"), 0);
}

TestSuite(edit, .init = serve, .fini = stop, .timeout = 60);

static const char *edit(struct share *s, struct share_change c)
{
    share_edit(s, &c, 1);
    cr_assert_eq(s->answer.code, 'D', "%s", s->answer.error);
    return s->answer.status;
}

Test(edit, cancels_what_waits_wherever_it_waits)
{
    share_topics(&one, "b", "a", NULL);
    struct share_job jobs[] = { job(1, T0 + 5), job(2, T0 + 5) };
    jobs[0].topic = 2;
    jobs[1].topic = 1;
    share_put(&one, jobs, 2);

    cr_expect_str_empty(edit(&one, (struct share_change){ 'c', 0, id(1), -1, NULL, 0, NULL }));
    cr_expect_str_eq(edit(&one, (struct share_change){ 'c', 0, id(1), -1, NULL, 0, NULL }), "u");
    cr_expect_eq(COUNT("HLEN due:{q}:j"), 1);
    cr_expect_eq(COUNT("EXISTS due:{q}:t:a"), 0);
}

Test(edit, says_of_a_job_that_is_out_that_it_is)
{
    put(&one, 1, T0);
    claim(&two, 1);
    cr_expect_str_eq(edit(&one, (struct share_change){ 'c', 0, id(1), -1, NULL, 0, NULL }), "o");
    cr_expect_str_eq(edit(&one, (struct share_change){ 'm', 1, id(1), T0, "", 1, "e" }), "o");
    cr_expect_eq(COUNT("HLEN due:{q}:j"), 1);
}

Test(edit, moves_a_job_only_if_it_is_as_believed)
{
    put(&one, 1, T0 + 5);
    cr_expect_str_eq(edit(&one, (struct share_change){ 'm', 1, id(1), T0 + 6, "", T0 + 2, "e" }),
                     "c");
    cr_expect_str_eq(edit(&one, (struct share_change){ 'm', 1, id(1), T0 + 5, "x", T0 + 2, "e" }),
                     "c");
    cr_expect_str_empty(
        edit(&one, (struct share_change){ 'm', 1, id(1), T0 + 5, "", T0 + 2, "e" }));
    cr_expect_eq(COUNT("ZSCORE due:{q}:t:a %s", id(1)), T0 + 2);
    cr_expect_eq(COUNT("ZSCORE due:{q}:h a"), T0 + 2);
    share_again(&one, 0);
    cr_expect_str_empty(
        edit(&one, (struct share_change){ 'm', 1, id(1), T0 + 5, "", T0 + 2, "e" }));
}

/* Nobody needs one, and some are welcome; of a group only one at a time, also if who claims does
 * not know yet that there are groups. */
Test(work, claims_what_is_only_welcome)
{
    const struct share_claim welcome = { .need = 0, .extra = 4, .lease_us = LEASE };
    struct share_job grouped[] = { job(3, T0), job(4, T0) };

    put(&one, 1, T0);
    put(&one, 2, T0);
    share_work(&one, NULL, 0, welcome);
    cr_assert_eq(one.answer.code, 'D', "%s", one.answer.error);
    cr_expect_eq(one.answer.count, 2);
    grouped[0].group = grouped[1].group = "g";
    share_put(&one, grouped, 2);
    cr_assert_eq(one.answer.code, 'D', "%s", one.answer.error);
    share_tied = 0;
    share_work(&one, NULL, 0, welcome);
    cr_assert_eq(one.answer.code, 'D', "%s", one.answer.error);
    cr_expect_eq(one.answer.count, 1);
    cr_expect_eq(share_tied, 1, "it was told");
}

/* With its lease, which is over at its very end, not before. */
Test(edit, drops_a_job_whose_holder_has_let_it_pass)
{
    for (int early = 1; early >= 0; early--) {
        put(&one, 1, T0);
        turn(claim(&one, 1)->lease - early);
        cr_expect_str_eq(edit(&two, (struct share_change){ 'c', 1, id(1), -1, NULL, 1, NULL }),
                         early ? "o" : "");
        cr_expect_eq(COUNT("HEXISTS due:{q}:x %s", id(1)), early);
        cr_expect_eq(COUNT("EXISTS due:{q}:j"), early);
        cr_expect_eq(COUNT("EXISTS due:{q}:h"), early, "nothing is to come any more");
        if (early)
            finish(&one, (struct share_outcome){ 'a', 1, id(1), one.answer.lease, 0, NULL });
        turn(T0);
    }
}

Test(edit, lets_the_dead_wait_again_or_drops_them)
{
    for (int i = 1; i <= 2; i++) {
        put(&one, i, T0);
        claim(&one, 1);
        finish(&one, (struct share_outcome){ 'b', 1, id(i), one.answer.lease, T0 + 1, "dead" });
    }
    cr_expect_str_empty(
        edit(&one, (struct share_change){ 'k', 1, id(1), T0 + 1, "", T0 + 7, "again" }));
    cr_expect_str_empty(edit(&one, (struct share_change){ 'x', 1, id(2), -1, NULL, 0, NULL }));
    cr_expect_str_eq(edit(&one, (struct share_change){ 'k', 1, id(2), -1, NULL, 0, "" }), "u");
    cr_expect_eq(COUNT("EXISTS due:{q}:dead"), 0);
    cr_expect_eq(COUNT("ZSCORE due:{q}:t:a %s", id(1)), T0 + 7);
    cr_expect_eq(COUNT("HLEN due:{q}:j"), 1);
    cr_expect_eq(COUNT("HLEN due:{q}:a"), 1);
}

/* It is entered among the long ones, and off that list again; and an entry goes that is none. */
Test(edit, exchanges_the_content_of_a_job)
{
    const struct share_change still = { 'u', 1, id(1), T0 + 5, "", T0 + 5, "entry" };
    const struct share_change plain = { 'u', 1, id(1), T0 + 5, "", T0 + 5, "" };

    put(&one, 1, T0 + 5);
    share_amend(&one, still, "not this", "new", 1);
    cr_expect_str_eq(one.answer.status, "c");
    cr_expect_eq(COUNT("EXISTS due:{q}:b"), 0);
    share_amend(&one, still, "record", "new", 1);
    cr_expect_str_empty(one.answer.status, "%s", one.answer.error);
    cr_expect_eq(COUNT("HLEN due:{q}:b"), 1);
    cr_expect_eq(COUNT("HLEN due:{q}:a"), 1);
    share_amend(&one, plain, "record", "newer", 0);
    cr_expect_str_eq(one.answer.status, "c", "it is not that any more");
    freeReplyObject(share_ask(&one, "DEL due:{q}:a"));
    share_amend(&one, plain, "new", "newer", 0);
    cr_expect_str_empty(one.answer.status);
    cr_expect_eq(COUNT("EXISTS due:{q}:b"), 0);
    cr_expect_eq(COUNT("EXISTS due:{q}:a"), 0);
    cr_expect_eq(COUNT("HSTRLEN due:{q}:j %s", id(1)), 5);
    share_again(&one, 0);
    share_amend(&one, plain, "new", "newer", 0);
    cr_expect_str_empty(one.answer.status, "the same answer again");
}

/* What a torn claim has left in `l` to make it large is no job that somebody holds. */
Test(edit, limits_a_topic_in_which_a_torn_claim_has_left_its_long_member)
{
    char long_member[65];
    struct share_change limit = { 's', 1, id(0), -1, NULL, 0, "1" };
    struct share_change wider = { 's', 1, id(0), -1, NULL, 0, "2" };

    memset(long_member, ' ', sizeof long_member);
    freeReplyObject(share_ask(&one, "ZADD due:{q}:l:a +inf %b", long_member, sizeof long_member));
    cr_expect_str_empty(edit(&one, limit));
    put(&one, 1, T0);
    cr_expect_eq(COUNT("ZSCORE due:{q}:h a"), T0);
    cr_expect_eq(claim(&two, 5)->count, 1);
    cr_expect_str_empty(edit(&one, wider));
    put(&one, 2, T0);
    freeReplyObject(share_ask(&one, "ZADD due:{q}:l:a +inf %b", long_member, sizeof long_member));
    cr_expect_eq(claim(&two, 5)->count, 1, "limited before");
}

/* The script that knows no keys leaves it to the other to end what was cancelled: but not where
 * nothing is claimed. */
Test(work, is_for_the_other_script_only_where_a_lease_may_be_claimed)
{
    put(&one, 1, T0);
    cr_expect_eq(claim(&one, 1)->count, 1);
    freeReplyObject(share_ask(&one, "HSET due:{q}:x %s 1", id(1)));
    cr_expect_eq(claim(&two, 1)->count, 0, "it is held");
    turn(T0 + LEASE);
    freeReplyObject(share_ask(&one, "HSET due:{q}:topics a %s", "1 0"));
    cr_expect_eq(claim(&two, 1)->count, 0, "it is paused");
    freeReplyObject(share_ask(&one, "HSET due:{q}:topics a %s", "0 0"));
    share_work(&two, NULL, 0, (struct share_claim){ .need = 1, .lease_us = LEASE });
    cr_expect_eq(two.answer.code, 'R');
    cr_expect_eq(COUNT("ZCARD due:{q}:l:a"), 1, "and nothing was done");
}

/* What cannot be claimed is no head that anybody looks for. */
Test(edit, has_no_head_of_a_topic_that_is_paused)
{
    put(&one, 1, T0 + 5);
    cr_expect_str_empty(edit(&one, (struct share_change){ 's', 1, id(0), -1, NULL, 1, "" }));
    cr_expect_eq(COUNT("EXISTS due:{q}:h"), 0);
    put(&one, 2, T0 + 4);
    cr_expect_eq(COUNT("EXISTS due:{q}:h"), 0);
    cr_expect_str_empty(edit(&one, (struct share_change){ 's', 1, id(0), -1, NULL, 0, "" }));
    cr_expect_eq(COUNT("ZSCORE due:{q}:h a"), T0 + 4);
}

Test(edit, repeats_what_it_answered)
{
    struct share_change two_of[] = { { 'c', 1, id(1), -1, NULL, 0, NULL },
                                     { 'c', 1, id(2), -1, NULL, 0, NULL } };

    put(&one, 1, T0 + 5);
    share_edit(&one, two_of, 2);
    cr_expect_str_eq(one.answer.status, "du");
    share_again(&one, 0);
    share_edit(&one, two_of, 2);
    cr_expect_str_eq(one.answer.status, "du");
}
