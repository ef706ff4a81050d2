/* test_share_script_room.c - the capacity of a shared queue as its scripts see to it. */
#include "lab/redis/share_case.h"

/* A queue of that capacity. */
static void serve_full(void)
{
    serve();
    snprintf(one.capacity, sizeof one.capacity, "3");
    share_join(&one);
    cr_assert_eq(one.answer.code, 'J', "%s", one.answer.error);
}

TestSuite(room, .init = serve_full, .fini = stop, .timeout = 60);

static const char *put_all(struct share *s, const struct share_job *jobs, int n)
{
    share_put(s, jobs, n);
    cr_assert_eq(s->answer.code, 'D', "%s", s->answer.error);
    return s->answer.status;
}

static const char *put_some(struct share *s, int from, int n)
{
    static struct share_job jobs[SHARE_MOST];

    for (int i = 0; i < n; i++)
        jobs[i] = job(from + i, T0);
    return put_all(s, jobs, n);
}

static int64_t asks(struct share *s, int waits)
{
    s->waits_room = waits;
    share_beat(s);
    cr_assert_eq(s->answer.code, 'D', "%s", s->answer.error);
    return s->answer.room;
}

static void cancel(struct share *s, int n)
{
    struct share_change c = { 'c', 1, id(n), -1, NULL, 0, NULL };

    share_edit(s, &c, 1);
    cr_assert_eq(s->answer.code, 'D', "%s", s->answer.error);
    cr_assert_str_empty(s->answer.status);
}

Test(room, refuses_the_last_ones)
{
    cr_expect_str_eq(put_some(&two, 1, 5), "dddff");
    share_again(&two, 0);
    cr_expect_str_eq(put_some(&two, 1, 5), "dddff", "once more");
    cr_expect_eq(COUNT("HLEN due:{q}:j"), 3);
    cr_expect_str_eq(put_some(&one, 6, 2), "ff", "all");
    cr_expect_eq(COUNT("HLEN due:{q}:j"), 3);
    cr_expect_eq(COUNT("ZCARD due:{q}:t:a"), 3);
    cancel(&one, 1);
    cr_expect_str_empty(put_some(&one, 8, 1));
}

Test(room, lets_in_who_keeps_his)
{
    struct share_job jobs[] = { job(4, T0), job(5, T0), job(6, T0) };

    jobs[1].keeps = 1;
    cr_expect_str_empty(put_some(&two, 1, 3));
    cr_expect_str_eq(put_all(&one, jobs, 3), "fdf");
    cr_expect_eq(COUNT("HEXISTS due:{q}:j %s", id(5)), 1);
    cancel(&one, 1);
    cancel(&one, 2);
    cancel(&one, 3);
    one.shut = 1;
    cr_expect_str_eq(put_all(&one, jobs, 3), "fdf", "and nobody else, though there is room");
}

/* Those that are in whatever there is take room, too. */
Test(room, is_less_by_who_keeps_his)
{
    struct share_job jobs[] = { job(1, T0), job(2, T0), job(3, T0), job(4, T0) };

    jobs[0].keeps = 1;
    cr_expect_str_eq(put_all(&one, jobs, 4), "dddf");
    cr_expect_eq(COUNT("HLEN due:{q}:j"), 3);
}

/* A key that was to be had is not, so neither has it another of the same exchange. */
Test(room, gives_no_key_without_room)
{
    struct share_job jobs[] = { job(4, T0), job(5, T0), job(6, T0) };

    jobs[0].key = "had";
    cr_expect_str_empty(put_all(&one, jobs, 1));
    cr_expect_str_empty(put_some(&two, 1, 2));
    jobs[1].key = "had";
    jobs[2].key = "free";
    struct share_job more[] = { jobs[1], jobs[2], job(7, T0) };
    more[2].key = "free";
    cr_expect_str_eq(put_all(&two, more, 3), "eff");
    cr_expect_eq(COUNT("HEXISTS due:{q}:k free"), 0);
    cr_expect_eq(COUNT("HLEN due:{q}:jk"), 1);
}

Test(room, is_told_to_who_was_rung_first)
{
    share_listen(&one);
    share_listen(&two);
    put_some(&one, 1, 3);
    cr_expect_eq(asks(&one, 1), 0);
    turn(T0 + 5);
    cr_expect_eq(asks(&two, 1), 0);
    turn(T0 + 7);
    cr_expect_eq(asks(&one, 1), 0, "it keeps its place");
    cancel(&two, 1);
    cr_expect_eq(two.answer.rang, 1);
    cr_expect_eq(share_rung(&one), 1);
    cr_expect_eq(COUNT("ZSCORE due:{q}:wr %s", one.writer), -(T0 + 7));
    cr_expect_eq(asks(&two, 1), 0, "one will come for it");
    cr_expect_eq(asks(&one, 1), 1);
    cr_expect_eq(COUNT("ZSCORE due:{q}:wr %s", one.writer), -(T0 + 7), "it is on its way still");
    turn(T0 + 6 + GRACE);
    share_beat(&one);
    cr_expect_eq(share_rung(&two), 0);
    turn(T0 + 7 + GRACE);
    share_beat(&one);
    cr_expect_eq(one.answer.rang, 1, "and does not come");
    cr_expect_eq(share_rung(&two), 1);
    cr_expect_str_empty(put_some(&two, 9, 1));
    cr_expect_eq(COUNT("ZSCORE due:{q}:wr %s", two.writer), -1, "it has come");
}

/* Each comes when its grace is over, and another one is on its way. */
Test(room, is_told_to_who_was_rung_however_late_it_comes)
{
    share_listen(&one);
    share_listen(&two);
    put_some(&one, 1, 3);
    cr_expect_eq(asks(&one, 1), 0);
    turn(T0 + 1);
    cr_expect_eq(asks(&two, 1), 0);
    cancel(&two, 1);
    cr_expect_eq(share_rung(&one), 1);
    turn(T0 + 1 + GRACE);
    share_beat(&two);
    cr_expect_eq(two.answer.rang, 0, "it waits itself, and is told");
    cr_expect_eq(two.answer.room, 1);
    turn(T0 + 2 + GRACE);
    cr_expect_str_empty(put_some(&two, 4, 1));
    cr_expect_eq(asks(&two, 1), 0);
    cancel(&one, 2);
    cr_expect_eq(share_rung(&two), 1);
    turn(T0 + 9 + GRACE);
    cr_expect_eq(asks(&one, 1), 1, "though the other one will come");
    cr_expect_str_empty(put_some(&one, 5, 1));
    cr_expect_eq(asks(&two, 1), 0, "and finds it faster");
    cr_expect_gt(COUNT("ZSCORE due:{q}:wr %s", two.writer), 0);
}

/* But for those who will. */
Test(room, is_told_to_who_is_late_as_far_as_nobody_comes_for_it)
{
    static struct share three;

    writer(&three);
    share_listen(&one);
    share_listen(&two);
    put_some(&one, 1, 3);
    asks(&one, 1);
    turn(T0 + 1);
    asks(&two, 1);
    cancel(&three, 1);
    turn(T0 + 1 + GRACE);
    cancel(&three, 2);
    cr_expect_eq(share_rung(&one) + share_rung(&two), 2);
    cr_expect_eq(asks(&one, 1), 1);
    share_end(&three);
}

/* Who has rung nobody but itself may be killed: another one comes besides. */
Test(room, that_one_makes_for_itself_is_told_to_another_too)
{
    share_listen(&one);
    share_listen(&two);
    put_some(&one, 1, 3);
    asks(&one, 1);
    turn(T0 + 1);
    asks(&two, 1);
    cancel(&one, 1);
    cr_expect_eq(one.answer.rang, 2);
    cr_expect_eq(share_rung(&one), 1);
    cr_expect_eq(share_rung(&two), 1);
    cr_expect_eq(COUNT("ZSCORE due:{q}:wr %s", one.writer), GRACE - (T0 + 1));
    cr_expect_eq(COUNT("ZSCORE due:{q}:wr %s", two.writer), -(T0 + 1));
    cr_expect_eq(asks(&one, 1), 1);
    cr_expect_eq(asks(&two, 1), 1);
    cr_expect_str_empty(put_some(&two, 4, 1));
    cr_expect_str_eq(put_some(&one, 5, 1), "f");
    cr_expect_eq(asks(&one, 1), 0);
    cancel(&two, 2);
    cr_expect_eq(share_rung(&one), 1, "in its turn");
    cr_expect_eq(two.answer.rang, 1);
    cancel(&two, 3);
    cr_expect_eq(two.answer.rang, 0, "nobody else waits");
}

Test(room, that_is_left_goes_to_the_next)
{
    share_listen(&one);
    share_listen(&two);
    put_some(&one, 1, 3);
    asks(&one, 1);
    turn(T0 + 1);
    asks(&two, 1);
    cancel(&two, 2);
    cr_expect_eq(share_rung(&one), 1);
    cr_expect_eq(share_rung(&two), 0);
    asks(&one, 0);
    cr_expect_eq(share_rung(&two), 1);
    share_leave(&two);
    cr_expect_eq(COUNT("EXISTS due:{q}:wr"), 0);
}

Test(room, rings_eight_at_a_time_and_then_the_next)
{
    static struct share many[10];

    put_some(&one, 1, 3);
    freeReplyObject(share_ask(&one, "HSET due:{q}:writers capacity 30"));
    put_some(&one, 4, 27);
    for (int i = 0; i < 10; i++) {
        writer(&many[i]);
        share_listen(&many[i]);
        cr_expect_eq(asks(&many[i], 1), 0);
    }
    static struct share_change drops[12];
    for (int i = 0; i < 12; i++)
        drops[i] = (struct share_change){ 'c', 1, id(1 + i), -1, NULL, 0, NULL };
    share_edit(&one, drops, 12);
    cr_expect_eq(one.answer.rang, 8);
    int rings = 0;
    for (int i = 0; i < 10; i++)
        rings += share_rung(&many[i]);
    cr_expect_eq(rings, 8);
    cr_expect_str_empty(put_some(&many[0], 100, 1));
    cr_expect_eq(many[0].answer.rang, 2, "there is room for all");
    for (int i = 0; i < 10; i++)
        share_end(&many[i]);
}

Test(room, of_a_queue_that_has_no_capacity_any_more_is_for_all)
{
    share_listen(&two);
    put_some(&one, 1, 3);
    asks(&two, 1);
    snprintf(one.capacity, sizeof one.capacity, "0");
    share_join(&one);
    share_beat(&one);
    cr_expect_eq(one.answer.rang, 1);
    cr_expect_eq(one.answer.late, 1, "and looks whether it comes");
    cr_expect_eq(one.answer.capacity, 0);
    cr_expect_eq(share_rung(&two), 1);
    cr_expect_gt(asks(&two, 1), 1000);
    cr_expect_str_empty(put_some(&two, 4, 9));
}

Test(room, of_a_queue_that_has_no_capacity_any_more_is_for_who_was_refused_just_before)
{
    put_some(&one, 1, 3);
    cr_expect_str_eq(put_some(&two, 4, 1), "f");
    snprintf(one.capacity, sizeof one.capacity, "0");
    share_join(&one);
    cr_expect_eq(COUNT("EXISTS due:{q}:wr"), 0);
    cr_expect_gt(asks(&two, 1), 1000);
    cr_expect_eq(two.answer.capacity, 0);
}

/* Jobs of many topics, from a process that does not know of the capacity: all or none. */
Test(room, is_for_all_or_for_none_where_jobs_go_not_in_turn)
{
    struct share_job jobs[] = { job(4, T0), job(5, T0) };

    jobs[1].keeps = 1;
    one.shut = 2;
    cr_expect_str_eq(put_all(&one, jobs, 2), "fd");
    one.shut = 3;
    cr_expect_str_empty(put_some(&one, 6, 4), "others of them are in");
    freeReplyObject(share_ask(&one, "HDEL due:{q}:writers capacity"));
    one.shut = 2;
    cr_expect_str_empty(put_some(&one, 10, 4), "there is none");
}

/* Those in front have died: they are struck off until somebody hears. */
Test(room, is_rung_for_past_five_who_have_gone)
{
    static struct share gone[5];

    put_some(&one, 1, 3);
    for (int i = 0; i < 5; i++) {
        writer(&gone[i]);
        turn(T0 + i);
        cr_expect_eq(asks(&gone[i], 1), 0);
    }
    turn(T0 + 5);
    share_listen(&two);
    cr_expect_eq(asks(&two, 1), 0);
    cancel(&one, 1);
    cr_expect_eq(one.answer.rang, 1);
    cr_expect_eq(share_rung(&two), 1);
    cr_expect_eq(COUNT("ZCARD due:{q}:wr"), 1);
    for (int i = 0; i < 5; i++)
        share_end(&gone[i]);
}

Test(room, is_had_first_by_who_was_rung_and_too_late)
{
    static struct share three;

    writer(&three);
    share_listen(&two);
    share_listen(&three);
    put_some(&one, 1, 3);
    asks(&two, 1);
    turn(T0 + 1);
    asks(&three, 1);
    cancel(&one, 1);
    cr_expect_eq(share_rung(&two), 1);
    cr_expect_str_empty(put_some(&one, 4, 1), "a faster one");
    cr_expect_str_eq(put_some(&two, 5, 1), "f");
    cr_expect_lt(COUNT("ZSCORE due:{q}:wr %s", two.writer), -1, "it has not got in");
    turn(T0 + 2);
    cr_expect_eq(asks(&two, 1), 0);
    cancel(&one, 2);
    cr_expect_eq(share_rung(&two), 1);
    cr_expect_eq(share_rung(&three), 0, "which has waited for less long");
    share_end(&three);
}

/* What has no room is not in its group, and does not stand in front of it. */
Test(room, is_not_in_a_group_of_those_that_have_none)
{
    struct share_job jobs[] = { job(4, T0), job(5, T0), job(6, T0) };

    for (int i = 0; i < 3; i++)
        jobs[i].group = i < 2 ? "g" : "h";
    jobs[1].key = "k";
    put_some(&one, 1, 2);
    cr_expect_str_eq(put_all(&two, jobs, 3), "dff");
    cr_expect_eq(COUNT("HLEN due:{q}:jg"), 1);
    cr_expect_eq(COUNT("HLEN due:{q}:gh"), 1);
    cr_expect_eq(COUNT("EXISTS due:{q}:g due:{q}:g:a due:{q}:k"), 0);
    cr_expect_str_eq(put_all(&two, jobs + 1, 2), "ff");
    cancel(&one, 1);
    cr_expect_str_eq(put_all(&two, jobs + 1, 2), "df");
    cr_expect_eq(COUNT("HLEN due:{q}:jg"), 2);
    cr_expect_eq(COUNT("HLEN due:{q}:gh"), 1, "behind the first");
    cr_expect_eq(COUNT("ZCARD due:{q}:g:a"), 1);
    cr_expect_eq(COUNT("EXISTS due:{q}:k"), 1);
}

/* One that keeps its room is found behind words of groups, too. */
Test(room, is_kept_by_one_of_a_group)
{
    struct share_job jobs[] = { job(4, T0), job(5, T0) };

    jobs[0].group = jobs[1].group = "g";
    jobs[1].keeps = 1;
    put_some(&one, 1, 3);
    cr_expect_str_eq(put_all(&two, jobs, 2), "fd");
    cr_expect_eq(COUNT("HEXISTS due:{q}:jg %s", id(5)), 1);
    cr_expect_eq(COUNT("HLEN due:{q}:jg"), 1);
}

/* What cannot be read leaves room behind. */
Test(room, is_made_by_what_is_set_aside)
{
    share_listen(&two);
    put_some(&one, 1, 3);
    asks(&two, 1);
    share_aside(&one, id(2));
    cr_expect_eq(one.answer.code, 'D', "%s", one.answer.error);
    cr_expect_eq(share_rung(&two), 1);
}

/* A clock that was set back: who was rung after now has been gone for long, as far as we know. */
Test(room, is_not_kept_for_who_was_rung_in_the_future_or_a_day_ago)
{
    share_listen(&two);
    put_some(&one, 1, 3);
    asks(&two, 1);
    freeReplyObject(share_ask(&one, "ZADD due:{q}:wr %lld ghost", -(long long)T0 - 1000000));
    cancel(&one, 1);
    cr_expect_eq(share_rung(&two), 1);
    freeReplyObject(
        share_ask(&one, "ZADD due:{q}:wr %lld gone %lld not", -(long long)T0, -(long long)T0 - 1));
    turn(T0 + 86400000000);
    share_beat(&one);
    cr_expect_eq(COUNT("ZSCORE due:{q}:wr not"), -T0 - 1);
    turn(T0 + 86400000002);
    share_beat(&one);
    cr_expect_eq(COUNT("ZCARD due:{q}:wr"), 1, "but for the ghost");
    cr_expect_eq(COUNT("ZSCORE due:{q}:wr ghost"), -T0 - 1000000);
}

Test(room, is_not_waited_for_by_who_has_left_whatever_the_capacity_is)
{
    put_some(&one, 1, 3);
    asks(&two, 1);
    freeReplyObject(share_ask(&one, "HDEL due:{q}:writers capacity"));
    share_leave(&two);
    cr_expect_eq(COUNT("EXISTS due:{q}:wr"), 0);
}

/* What the server refuses for want of memory is not done at all. */
Test(room, does_not_help_a_full_server)
{
    put_some(&one, 1, 2);
    freeReplyObject(share_ask(&one, "ZADD due:{q}:wr %lld %s", -(long long)T0, one.writer));
    freeReplyObject(share_ask(&one, "CONFIG SET maxmemory 1"));
    share_put(&one, &(struct share_job[]){ job(3, T0) }[0], 1);
    cr_expect_eq(one.answer.code, 'E');
    freeReplyObject(share_ask(&one, "CONFIG SET maxmemory 0"));
    cr_expect_eq(COUNT("HLEN due:{q}:j"), 2);
    cr_expect_eq(COUNT("ZCARD due:{q}:wr"), 1);
}

/* Something else, or nothing, where the capacity and those who wait for room should be. */
Test(room, is_never_wrong_after_any_key_went_or_was_something_else)
{
    static const char *const keys[] = { "wr", "j", "dead" };

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        put_some(&one, 1, 4);
        asks(&two, 1);
        freeReplyObject(share_ask(&one, "DEL due:{q}:saved"));
        freeReplyObject(share_ask(&one, "RENAME due:{q}:%s due:{q}:saved", keys[i]));
        share_put(&one, &(struct share_job[]){ job(20, T0) }[0], 1);
        cr_expect(one.answer.code == 'D', "%s is missing", keys[i]);
        freeReplyObject(share_ask(&one, "DEL due:{q}:%s", keys[i]));
        freeReplyObject(share_ask(&one, "RPUSH due:{q}:%s x", keys[i]));
        share_put(&one, &(struct share_job[]){ job(21, T0) }[0], 1);
        cr_expect_eq(one.answer.code, 'E', "%s is a list", keys[i]);
        share_again(&one, 0);
        two.waits_room = 1;
        share_beat(&two);
        cr_expect_eq(two.answer.code, 'E', "%s is a list", keys[i]);
        freeReplyObject(share_ask(&one, "DEL due:{q}:%s", keys[i]));
        freeReplyObject(share_ask(&one, "RENAME due:{q}:saved due:{q}:%s", keys[i]));
        cr_expect_eq(asks(&two, 0), 0);
    }
    freeReplyObject(share_ask(&one, "HSET due:{q}:writers capacity many"));
    cr_expect_str_empty(put_some(&two, 30, 5), "that is none");
    freeReplyObject(share_ask(&one, "HSET due:{q}:writers capacity 4"));
    cr_expect_str_eq(put_some(&two, 40, 2), "ff");
}
