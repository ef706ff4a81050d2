/* test_share_script_groups.c - the scripts of a shared queue by themselves: groups, and what half
 * of a script leaves of them.
 */
#include "lab/redis/share_group_case.h"

TestSuite(groups, .init = serve, .fini = stop, .timeout = 120);

Test(groups, have_one_where_claims_look_and_the_others_beside_it)
{
    put_chain(1, 3);
    put(&one, 4, T0 - 50);
    cr_expect_eq(COUNT("ZCARD due:{q}:t:a"), 2);
    cr_expect_eq(KEPT(), 2);
    cr_expect_eq(COUNT("ZSCORE due:{q}:g:a %s", id(3)), T0 - 98);
    cr_expect_eq(COUNT("HLEN due:{q}:jg"), 3);
    check_groups();
    CLAIMS(1, 4);
    check_groups();
    cr_expect_eq(KEPT(), 2);
    cr_expect_eq(COUNT("ZCARD due:{q}:t:a"), 0);
    cr_expect_str_empty(end(&two, 'a', 1, two.answer.lease, 0));
    check_groups();
    CLAIMS(2);
}

/* In one put of many, in whatever order, and in the next. */
Test(groups, are_sorted_as_they_come)
{
    static struct share_job jobs[SHARE_MOST];

    for (int i = 0; i < SHARE_MOST; i++) {
        jobs[i] = grouped(i, T0 - 1000 + i * 7 % SHARE_MOST, i % 3 == 0 ? "g" : "h");
        if (i % 5 == 0)
            jobs[i].group = NULL;
    }
    share_put(&one, jobs, SHARE_MOST);
    cr_assert_eq(one.answer.code, 'D', "%s", one.answer.error);
    check_groups();
    cr_expect_eq(COUNT("ZCARD due:{q}:t:a"), 2 + (SHARE_MOST + 4) / 5);
    put_grouped(280, T0 - 2000, "g");
    put_grouped(281, T0 - 1, "h");
    check_groups();
    int64_t last = 0;
    while (claim(&two, 200)->count > 0) {
        static struct share_outcome done[SHARE_MOST];
        static char ids[SHARE_MOST][SHARE_ID + 1];
        int of_g = 0;

        for (int i = 0; i < two.answer.count; i++) {
            int number = atoi(two.answer.job[i].id + 2);
            bool g = number == 280 || (number % 3 == 0 && number % 5 != 0 && number < 256);

            memcpy(ids[i], two.answer.job[i].id, SHARE_ID);
            done[i] = (struct share_outcome){
                .kind = 'a', .topic = 1, .id = ids[i], .lease = two.answer.lease
            };
            of_g += g;
            int64_t at = number == 280 ? T0 - 2000 : T0 - 1000 + number * 7 % SHARE_MOST;
            cr_expect(!g || at > last, "in order");
            last = g ? at : last;
        }
        cr_expect_leq(of_g, 1);
        share_work(&two, done, two.answer.count, (struct share_claim){ 0 });
        cr_assert_eq(two.answer.code, 'D', "%s", two.answer.error);
        cr_expect_str_empty(two.answer.status);
        check_groups();
    }
    cr_expect_eq(LEFT(), 0);
    cr_expect_eq(COUNT("EXISTS due:{q}:j due:{q}:t:a due:{q}:l:a"), 0);
}

Test(groups, leave_nothing_behind_whatever_ends_their_jobs)
{
    static const char ways[] = "aKcCx";

    for (const char *way = ways; *way != '\0'; way++) {
        put_chain(1, 3);
        int64_t lease = *way == 'c' || *way == 'C' ? 0 : claim(&two, 9)->lease;
        for (int n = *way == 'C' ? 3 : 1; n >= 1 && n <= 3; n += *way == 'C' ? -1 : 1) {
            if (*way == 'c' || *way == 'C')
                cr_expect_str_empty(edit_one('c', n, 0));
            else if (*way == 'x')
                cr_expect_str_empty(end(&two, 'b', n, lease, T0));
            else
                cr_expect_str_empty(end(&two, *way, n, lease, T0 + 50));
            check_groups();
            if (*way == 'x')
                cr_expect_str_empty(edit_one('x', n, 0));
            if (lease != 0 && n < 3)
                CLAIMS(n + 1);
        }
        cr_expect_eq(LEFT(), 0, "%c", *way);
        cr_expect_eq(COUNT("EXISTS due:{q}:j due:{q}:t:a due:{q}:l:a due:{q}:dead"), 0);
    }
}

/* Several at once, each of a group of its own, behind whom nobody is kept back. */
Test(groups, leave_nothing_behind_that_end_at_once)
{
    struct share_job jobs[] = { grouped(1, T0 - 3, "g"), grouped(2, T0 - 2, "h") };

    share_put(&one, jobs, 2);
    cr_assert_eq(claim(&two, 9)->count, 2);
    const int64_t lease = two.answer.lease;
    const struct share_outcome done[] = {
        { .kind = 'a', .topic = 1, .id = id(1), .lease = lease },
        { .kind = 'a', .topic = 1, .id = id(2), .lease = lease },
    };
    share_work(&two, done, 2, (struct share_claim){ 0 });
    cr_expect_eq(two.answer.code, 'D', "%s", two.answer.error);
    cr_expect_eq(LEFT(), 0);
}

Test(groups, stay_in_order_whatever_is_done_to_those_that_wait)
{
    put_chain(1, 4);
    int64_t lease = claim(&two, 1)->lease;
    cr_expect_str_empty(edit_one('m', 4, T0 - 5000)); /* kept back: to the beginning */
    check_groups();
    cr_expect_str_empty(edit_one('m', 2, T0 - 98)); /* to where it stands */
    check_groups();
    cr_expect_str_empty(edit_one('c', 3, 0));
    check_groups();
    cr_expect_str_empty(end(&two, 'n', 1, lease, T0 + 500)); /* it keeps the pass */
    check_groups();
    CLAIMS_NONE();
    cr_expect_str_empty(edit_one('m', 1, T0 - 1));
    check_groups();
    CLAIMS(4);
    cr_expect_str_empty(end(&two, 'o', 4, two.answer.lease, T0 - 2));
    check_groups();
    CLAIMS(2);
    cr_expect_str_empty(end(&two, 'r', 2, two.answer.lease, T0 - 98));
    check_groups();
    cr_expect_str_empty(edit_one('m', 4, T0 - 6000));
    check_groups();
    CLAIMS(2);
    cr_expect_str_empty(end(&two, 'b', 2, two.answer.lease, T0));
    CLAIMS(4);
    cr_expect_str_empty(edit_one('k', 2, T0 - 7000));
    check_groups();
    cr_expect_str_empty(end(&two, 'a', 4, two.answer.lease, 0));
    CLAIMS(2);
    cr_expect_str_empty(end(&two, 'a', 2, two.answer.lease, 0));
    CLAIMS(1);
}

/* Nobody of the group is held: one that was kept back stands in front, and no longer in both. */
Test(groups, have_in_front_who_is_moved_to_the_beginning)
{
    put_chain(1, 3);
    cr_expect_str_empty(edit_one('m', 3, T0 - 5000));
    check_groups();
    cr_expect_eq(KEPT(), 2);
    cr_expect_eq(COUNT("ZCARD due:{q}:t:a"), 1);
    CLAIMS(3);
    cr_expect_str_empty(end(&two, 'a', 3, two.answer.lease, 0));
    check_groups();
    CLAIMS(1);
}

Test(groups, count_and_are_listed_where_they_would_stand)
{
    put_chain(1, 3);
    put(&one, 4, T0 - 99);
    put_grouped(5, T0 + 50, "g");
    redisReply *r = share_census(&one);

    cr_assert_eq(r->elements, 9u);
    cr_expect_eq(r->element[5]->integer, 1, "delayed");
    cr_expect_eq(r->element[6]->integer, 4, "ready");
    cr_expect_eq(strtoll(r->element[8]->str, NULL, 10), T0 - 100);
    freeReplyObject(r);
    static const int order[] = { 1, 2, 4, 3, 5 };
    const char *from = "";
    int64_t score = -1;
    for (int at = 0; at < 5; at += 2) {
        r = share_page(&one, 2, score, from);
        cr_assert_eq(r->type, REDIS_REPLY_ARRAY, "%s", r->str);
        cr_assert_eq(r->elements, at < 4 ? 4u : 2u);
        for (size_t i = 0; i < r->elements / 2; i++)
            cr_expect_eq(memcmp(r->element[2 * i + 1]->str, id(order[at + (int)i]), SHARE_ID), 0,
                         "%d", at);
        from = id(order[at + (int)r->elements / 2 - 1]);
        score = strtoll(r->element[r->elements - 2]->str, NULL, 10);
        freeReplyObject(r);
    }
}

Test(groups, ring_who_waits_when_somebody_follows)
{
    put_chain(1, 2);
    int64_t lease = claim(&one, 1)->lease;
    share_listen(&two);
    wait_for(&two, 1);
    cr_expect_eq(two.answer.alarm, lease, "for the end of that lease");
    put_grouped(3, T0 - 1, "g");
    cr_expect_eq(share_rung(&two), 0);
    cr_expect_str_empty(end(&one, 'a', 1, lease, 0));
    cr_expect_eq(share_rung(&two), 1);
    wait_for(&two, 1);
    cr_expect_eq(two.answer.count, 1);
    cr_expect_str_empty(end(&two, 'n', 2, two.answer.lease, T0 + 900000));
    wait_for(&two, 1);
    cr_expect_str_empty(edit_one('c', 2, 0));
    cr_expect_eq(share_rung(&two), 1);
}

/* What comes once more, as after a loss, does not stand behind itself. */
Test(groups, keep_where_it_is_what_is_put_again)
{
    put_chain(1, 2);
    put_grouped(1, T0 - 100, "g");
    check_groups();
    put_grouped(1, T0 - 50, "g");
    check_groups();
    cr_expect_eq(KEPT(), 1);
    int64_t lease = claim(&two, 1)->lease;
    put_grouped(1, T0 - 100, "g");
    check_groups();
    cr_expect_eq(KEPT(), 1);
    CLAIMS_NONE();
    cr_expect_str_eq(edit_one('c', 1, 0), "o");
    cr_expect_str_empty(end(&two, 'a', 1, lease, 0));
    CLAIMS(2);
    DO("ZADD due:{q}:g:a %lld %s", (long long)T0, id(2)); /* as if it had come behind itself */
    cr_expect_str_eq(edit_one('c', 2, 0), "o");
    cr_expect_str_empty(end(&two, 'a', 2, two.answer.lease, 0));
    CLAIMS_NONE();
}

/* In whatever order they are cancelled, each answer is that of its own job; and the head is that of
 * who is left. */
Test(groups, are_cancelled_by_many_at_once)
{
    struct share_change c[] = {
        { 'c', 1, id(1), -1, NULL, 0, "" }, { 'c', 1, id(2), -1, NULL, 0, "" },
        { 'c', 1, id(1), -1, NULL, 0, "" }, { 'm', 1, id(5), -1, NULL, T0 + 7, "e" },
        { 'c', 1, id(9), -1, NULL, 0, "" }, { 'c', 1, id(3), -1, NULL, 0, "" }
    };

    put_chain(1, 5);
    share_edit(&one, c, 6);
    cr_expect_str_eq(one.answer.status, "ddudud");
    check_groups();
    cr_expect_eq(COUNT("ZSCORE due:{q}:h a"), T0 - 97);
    CLAIMS(4);
    cr_expect_str_empty(end(&two, 'a', 4, two.answer.lease, 0));
    cr_expect_eq(COUNT("ZSCORE due:{q}:h a"), T0 + 7);
    cr_expect_str_empty(edit_one('c', 5, 0));
    cr_expect_eq(LEFT(), 0);
    cr_expect_eq(COUNT("EXISTS due:{q}:h"), 0, "of nobody");
}

/* One that cannot be read is out of the way. */
Test(groups, go_on_behind_a_job_that_is_set_aside)
{
    put_chain(1, 2);
    claim(&two, 1);
    share_aside(&two, id(1));
    cr_assert_eq(two.answer.code, 'D', "%s", two.answer.error);
    cr_expect_eq(COUNT("HLEN due:{q}:j"), 1);
    check_groups();
    CLAIMS(2);
    cr_expect_str_empty(end(&two, 'a', 2, two.answer.lease, 0));
    cr_expect_eq(LEFT(), 0);
    put(&one, 3, T0);
    claim(&two, 1);
    share_aside(&two, id(3));
    cr_expect_eq(COUNT("EXISTS due:{q}:j due:{q}:l:a"), 0);
}

/* ---- Half of a script ------------------------------------------------------------------------ */

static void front(int n, const char *more)
{
    char who[20];

    snprintf(who, sizeof who, "%s%s", id(n), more);
    DO("HSET due:{q}:gh %b %s", "a\0\1g", (size_t)4, who);
}

/* Each step of the end of job 1, behind which 2 and 3 wait, without what comes after it; then its
 * holder says once more that it is done. */
Test(groups, that_are_torn_at_an_end_are_whole_when_it_is_said_again)
{
    for (int steps = 0; steps <= 5; steps++) {
        put_chain(1, 3);
        int64_t lease = claim(&two, 1)->lease;
        if (steps > 0)
            DO("ZADD due:{q}:t:a NX %lld %s", (long long)T0 - 99, id(2));
        if (steps > 1)
            front(2, "");
        if (steps > 2)
            DO("ZREM due:{q}:g:a %s", id(2));
        if (steps > 3)
            DO("ZREM due:{q}:g %b", "a\0\1g1799999999999901id000000000002", (size_t)34);
        if (steps > 4)
            DO("ZREM due:{q}:l:a %s", id(1));
        cr_expect_str_eq(end(&two, 'a', 1, lease, 0), steps > 4 ? "s" : "");
        if (steps > 4)
            DO("HDEL due:{q}:jg %s", id(1));
        for (int n = 2; n <= 3; n++) {
            CLAIMS(n);
            cr_expect_str_empty(end(&two, 'a', n, two.answer.lease, 0));
        }
        CLAIMS_NONE();
        DO("DEL due:{q}:j due:{q}:jg");
        cr_expect_eq(LEFT(), 0, "%d", steps);
    }
}

/* The same, and its holder says nothing any more: its lease ends beside another's. */
Test(groups, that_are_torn_at_an_end_let_one_through_at_a_time)
{
    put_chain(1, 3);
    claim(&two, 1);
    DO("ZADD due:{q}:t:a NX %lld %s", (long long)T0 - 99, id(2));
    CLAIMS_NONE();
    cr_expect_eq(KEPT(), 2);
    DO("ZADD due:{q}:t:a NX %lld %s", (long long)T0 - 99, id(2));
    front(2, "");
    CLAIMS(2);
    int64_t lease = two.answer.lease;
    turn(T0 + 1);
    DO("ZADD due:{q}:l:a %lld %s", (long long)T0, id(1));
    CLAIMS_NONE();
    cr_expect_str_empty(end(&two, 'a', 2, lease, 0));
    check_groups();
    CLAIMS(3);
    cr_expect_str_empty(end(&two, 'a', 3, two.answer.lease, 0));
    CLAIMS(1);
    cr_expect_str_empty(end(&two, 'a', 1, two.answer.lease, 0));
    cr_expect_eq(LEFT(), 0);
}

/* One that is kept back was to be moved to the front, to a later time, and stands there already. */
Test(groups, that_are_torn_at_a_move_do_not_come_early)
{
    put_chain(1, 2);
    int64_t lease = claim(&two, 1)->lease;
    DO("ZADD due:{q}:t:a %lld %s", (long long)T0 + 500, id(2));
    cr_expect_str_empty(end(&two, 'a', 1, lease, 0));
    cr_expect_eq(COUNT("ZSCORE due:{q}:t:a %s", id(2)), T0 + 500);
    CLAIMS_NONE();
    turn(T0 + 500);
    CLAIMS(2);
}

/* It was to be kept back, and is still in front, too. */
Test(groups, that_are_torn_when_one_was_to_be_kept_back_forget_that)
{
    put_chain(1, 1);
    DO("ZADD due:{q}:g 0 %b", "a\0\1g1799999999999900id000000000001", (size_t)34);
    DO("ZADD due:{q}:g:a %lld %s", (long long)T0 - 100, id(1));
    cr_expect_str_empty(edit_one('m', 1, T0 - 50));
    check_groups();
    CLAIMS(1);
    cr_expect_str_empty(end(&two, 'a', 1, two.answer.lease, 0));
    cr_expect_eq(LEFT(), 0);
}

/* A claim that was torn behind its pass; and a job in front of all others that nobody has. */
Test(groups, whose_front_was_torn_are_not_stuck)
{
    put_chain(1, 2);
    front(1, "!");
    CLAIMS(1);
    cr_expect_str_empty(end(&two, 'a', 1, two.answer.lease, 0));
    CLAIMS(2);
    cr_expect_str_empty(end(&two, 'a', 2, two.answer.lease, 0));
    front(9, "!"); /* who is nowhere */
    put_grouped(3, T0 - 1, "g");
    front(9, "");
    CLAIMS(3);
    DO("DEL due:{q}:gh");
    cr_expect_str_empty(end(&two, 'a', 3, two.answer.lease, 0));
    put_grouped(4, T0 - 1, "g");
    check_groups();
    put_grouped(5, T0 - 1, "g");
    CLAIMS(4);
    DO("DEL due:{q}:gh");
    cr_expect_str_empty(end(&two, 'a', 4, two.answer.lease, 0));
    check_groups();
    CLAIMS(5);
}

static const char *const keys[] = { "jg", "gh", "g", "g:a", "j", "t:a", "l:a" };

/* A job of a group, whatever answers. */
static void live(int n)
{
    struct share_job j = grouped(n, T0, "g");

    share_put(&one, &j, 1);
    if (one.answer.code == 'E')
        share_again(&one, 0);
    share_work(&two, NULL, 0, (struct share_claim){ .need = 9, .lease_us = LEASE });
    if (two.answer.code == 'E')
        share_again(&two, 1);
    struct share_outcome ends[9];
    int count = two.answer.code == 'D' ? two.answer.count : 0;
    static char ids[9][SHARE_ID + 1];
    for (int i = 0; i < count; i++) {
        memcpy(ids[i], two.answer.job[i].id, SHARE_ID);
        ends[i] =
            (struct share_outcome){ i % 2 == 0 ? 'n' : 'o', 1, ids[i], two.answer.lease, T0, "e" };
    }
    share_work(&two, ends, count, (struct share_claim){ 0 });
    if (two.answer.code == 'E')
        share_again(&two, 1);
    struct share_change c = { 'm', 1, id(n), -1, NULL, T0 + 1, "" };
    share_edit(&one, &c, 1);
    cr_expect(one.answer.code == 'D' || one.answer.code == 'E');
    if (one.answer.code == 'E')
        share_again(&one, 0);
    redisReply *r = share_page(&one, 9, -1, "");
    freeReplyObject(r);
}

/* All that come are done, whoever they are. */
static void work_off(const char *key)
{
    static struct share_outcome done[SHARE_MOST];
    static char ids[SHARE_MOST][SHARE_ID + 1];

    for (int turns = 0; claim(&two, 200)->count > 0; turns++) {
        cr_assert_lt(turns, 50, "%s", key);
        for (int i = 0; i < two.answer.count; i++) {
            memcpy(ids[i], two.answer.job[i].id, SHARE_ID);
            done[i] = (struct share_outcome){ 'a', 1, ids[i], two.answer.lease, 0, NULL };
        }
        share_work(&two, done, two.answer.count, (struct share_claim){ 0 });
        cr_assert_eq(two.answer.code, 'D', "%s: %s", key, two.answer.error);
    }
}

/* What is kept back, and nobody finds any more, comes when it is moved. */
static void move_what_is_left(const char *key)
{
    put_grouped(292, T0 + INT64_C(1000000000), "other"); /* so that there are groups */
    for (int turns = 0; KEPT() > 0; turns++) {
        redisReply *r = share_ask(&one, "ZRANGE due:{q}:g:a 0 0");
        struct share_change c = { 'm', 1, r->element[0]->str, -1, NULL, T0, "e" };

        cr_assert_lt(turns, 20, "%s", key);
        share_edit(&one, &c, 1);
        cr_assert_eq(one.answer.code, 'D', "%s: %s", key, one.answer.error);
        cr_expect_str_empty(one.answer.status);
        freeReplyObject(r);
        work_off(key);
    }
    cr_expect_str_empty(edit_one('c', 292, 0));
}

/* What is kept back is found by `g`, and its group by `jg`.  All others come, whatever went, and
 * leave nothing. */
static void expect_whole(const char *key)
{
    work_off(key);
    if (strcmp(key, "g") == 0 || strcmp(key, "jg") == 0)
        move_what_is_left(key);
    check_groups();
    cr_expect_eq(KEPT(), 0, "%s", key);
    put_grouped(290, T0, "h");
    put_grouped(291, T0, "h");
    CLAIMS(290);
    cr_expect_str_empty(end(&two, 'a', 290, two.answer.lease, 0));
    CLAIMS(291);
    cr_expect_str_empty(end(&two, 'a', 291, two.answer.lease, 0));
}

Test(groups, are_never_wrong_after_any_key_went_or_was_something_else)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        put_chain(1, 3);
        DO("DEL due:{q}:%s", keys[i]);
        live((int)i + 10);
        DO("RENAME due:{q}:%s due:{q}:saved", keys[i]);
        DO("RPUSH due:{q}:%s x", keys[i]);
        live((int)i + 100);
        DO("DEL due:{q}:%s", keys[i]);
        DO("RENAME due:{q}:saved due:{q}:%s", keys[i]);
        turn(T0 + (int64_t)(i + 1) * 3 * LEASE);
        live((int)i + 200);
        turn(T0 + (int64_t)(i + 2) * 3 * LEASE);
        expect_whole(keys[i]);
        DO("DEL due:{q}:j due:{q}:t:a due:{q}:l:a due:{q}:g:a due:{q}:g due:{q}:gh due:{q}:jg "
           "due:{q}:a");
        turn(T0);
    }
    put_chain(1, 3);
    CLAIMS(1);
}

/* The plain script answers that it does not know groups, and has done nothing: the other one is
 * asked with the same number.  It ends jobs that have no group. */
Test(groups, are_met_by_a_claim_that_knew_of_none)
{
    struct share_job jobs[] = { job(1, T0), job(2, T0), job(3, T0 + 9) };

    jobs[0].group = jobs[1].group = "g";
    share_put(&one, jobs, 3);
    share_tied = 0;
    cr_assert_eq(claim(&two, 3)->count, 1, "one of a group");
    cr_expect_eq(share_tied, 1);
    cr_expect_eq(two.number[1], 1);
    turn(T0 + 9);
    cr_assert_eq(claim(&one, 3)->count, 1, "the other waits for it");
    share_tied = 0;
    struct share_outcome done = { 'a', 1, id(3), one.answer.lease, 0, NULL };
    share_work(&one, &done, 1, (struct share_claim){ 0 });
    cr_expect_eq(one.answer.code, 'D');
    cr_expect_str_empty(one.answer.status);
    cr_expect_eq(share_tied, 0);
    cr_expect_eq(COUNT("HLEN due:{q}:jg"), 2);
    share_again(&one, 1);
    share_work(&one, &done, 1, (struct share_claim){ 0 });
    cr_expect_eq(one.answer.code, 'D', "told again by a script that knows no groups");
    cr_expect_str_empty(one.answer.status);
    cr_expect_eq(share_tied, 0);
}
