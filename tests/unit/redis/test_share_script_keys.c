/* test_share_script_keys.c - the scripts of a shared queue by themselves: unique keys, and what is
 * left of them.
 */
#include "lab/redis/share_case.h"

TestSuite(keys, .init = serve, .fini = stop, .timeout = 60);

static const char *put_keyed(struct share *s, int n, int64_t score, const char *key)
{
    struct share_job j = job(n, score);

    j.key = key;
    share_put(s, &j, 1);
    cr_assert_eq(s->answer.code, 'D', "%s", s->answer.error);
    return s->answer.status;
}

static struct share_outcome ended(char kind, int n, int64_t lease, int64_t score)
{
    return (struct share_outcome){
        .kind = kind, .topic = 1, .id = id(n), .lease = lease, .score = score, .entry = "e"
    };
}

#define KEYS_LEFT() COUNT("EXISTS due:{q}:k due:{q}:kx due:{q}:jk")

Test(keys, leave_nothing_behind_whatever_ends_their_job)
{
    static const char ways[] = "aKcx";

    for (const char *way = ways; *way != '\0'; way++) {
        cr_expect_str_empty(put_keyed(&one, 1, T0, "key"));
        cr_expect_eq(COUNT("HEXISTS due:{q}:k key"), 1);
        int64_t lease = *way != 'c' ? claim(&one, 1)->lease : 0;
        if (*way == 'x')
            finish(&one, ended('b', 1, lease, T0));
        if (*way == 'a' || *way == 'K')
            finish(&one, ended(*way, 1, lease, T0 + 50));
        struct share_change c = { .kind = *way, .topic = 1, .id = id(1), .believed = -1 };
        if (*way == 'c' || *way == 'x')
            share_edit(&two, &c, 1);
        cr_expect_str_empty(two.answer.status);
        if (*way == 'K') {
            cr_expect_eq(COUNT("ZSCORE due:{q}:kx key"), T0 + 50);
            cr_expect_eq(COUNT("EXISTS due:{q}:jk"), 0);
            turn(T0 + 50);
            share_beat(&two);
            turn(T0);
        }
        cr_expect_eq(KEYS_LEFT(), 0, "%c", *way);
    }
}

/* Of the jobs of one change one has another holder by now. */
Test(keys, of_stale_ones_stay_as_they_are)
{
    put_keyed(&one, 1, T0, "first");
    put_keyed(&one, 2, T0, "second");
    int64_t lease = claim(&one, 2)->lease;
    turn(lease);
    claim(&two, 1);
    struct share_outcome both[] = { ended('a', 1, lease, 0), ended('a', 2, lease, 0) };

    share_work(&one, both, 2, (struct share_claim){ 0 });
    cr_expect_str_eq(one.answer.status, "sd");
    cr_expect_eq(COUNT("HEXISTS due:{q}:jk %s", id(1)), 1);
    cr_expect_eq(COUNT("HEXISTS due:{q}:k second"), 0);
    cr_expect_str_eq(put_keyed(&one, 3, T0, "first"), "e");
    cr_expect_str_empty(finish(&two, ended('a', 1, two.answer.lease, 0)));
    cr_expect_eq(KEYS_LEFT(), 0);
}

/* Of several that end at once, one without a key. */
Test(keys, are_kept_each_until_its_own_time)
{
    put_keyed(&one, 1, T0, "first");
    put(&one, 2, T0);
    put_keyed(&one, 3, T0, "third");
    int64_t lease = claim(&one, 3)->lease;
    struct share_outcome all[] = { ended('K', 1, lease, T0 + 50), ended('K', 2, lease, T0 + 60),
                                   ended('K', 3, lease, T0 + 70) };

    share_work(&one, all, 3, (struct share_claim){ 0 });
    cr_expect_str_empty(one.answer.status);
    cr_expect_eq(COUNT("ZSCORE due:{q}:kx first"), T0 + 50);
    cr_expect_eq(COUNT("ZSCORE due:{q}:kx third"), T0 + 70);
    cr_expect_eq(COUNT("ZCARD due:{q}:kx"), 2);
    cr_expect_eq(COUNT("EXISTS due:{q}:jk"), 0);
}

Test(keys, that_are_over_are_forgotten_some_at_a_time)
{
    for (int i = 1; i <= 20; i++) {
        char key[8];

        snprintf(key, sizeof key, "%d", i);
        put_keyed(&one, i, T0, key);
        int64_t lease = claim(&one, 1)->lease;
        finish(&one, ended('K', i, lease, T0 + 50));
    }
    cr_expect_eq(COUNT("ZCARD due:{q}:kx"), 20);
    turn(T0 + 50);
    share_beat(&one);
    cr_expect_eq(COUNT("ZCARD due:{q}:kx"), 4);
    cr_expect_eq(COUNT("HLEN due:{q}:k"), 4);
    put_keyed(&one, 30, T0, "another");
    cr_expect_eq(COUNT("EXISTS due:{q}:kx"), 0);
    cr_expect_eq(COUNT("HLEN due:{q}:k"), 1);
}

/* However many end in an exchange, or come: as many of those before them are forgotten. */
Test(keys, that_are_over_do_not_become_more)
{
    struct share_job jobs[60];
    struct share_outcome ends[60];
    char names[60][12];

    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 60; i++) {
            snprintf(names[i], sizeof names[i], "%d %d", round, i);
            jobs[i] = job(i, T0);
            jobs[i].key = names[i];
        }
        share_put(&one, jobs, 60);
        cr_assert_eq(one.answer.code, 'D', "%s", one.answer.error);
        cr_expect_eq(COUNT("EXISTS due:{q}:kx"), 0, "a put forgets as many as it has keys");
        int64_t lease = claim(&one, 60)->lease;
        for (int i = 0; i < 60; i++)
            ends[i] = ended('K', i, lease, T0 + round * 50 + 49);
        share_work(&one, ends, 60, (struct share_claim){ 0 });
        turn(T0 + round * 50 + 50);
    }
}

/* As many as end are forgotten, whatever is put in meanwhile. */
Test(keys, that_are_over_are_forgotten_by_as_many_as_end)
{
    struct share_job jobs[50];
    struct share_outcome ends[50];
    char names[50][12];

    for (int i = 0; i < 50; i++) {
        snprintf(names[i], sizeof names[i], "%d", i);
        jobs[i] = job(i, T0);
        jobs[i].key = names[i];
        freeReplyObject(share_ask(&one, "ZADD due:{q}:kx %lld old%d", T0 + 5LL, i));
    }
    share_put(&one, jobs, 50);
    int64_t lease = claim(&one, 50)->lease;
    turn(T0 + 5);
    for (int i = 0; i < 50; i++)
        ends[i] = ended('K', i, lease, T0 + 90);
    share_work(&one, ends, 50, (struct share_claim){ 0 });
    cr_expect_eq(COUNT("ZCARD due:{q}:kx"), 50, "the old ones have gone");
    cr_expect_eq(COUNT("HLEN due:{q}:k"), 50);
}

Test(keys, of_a_job_that_is_nowhere_are_nobodys)
{
    freeReplyObject(share_ask(&one, "HSET due:{q}:k key %s", id(9)));

    cr_expect_str_empty(put_keyed(&one, 1, T0, "key"));
    cr_expect_str_eq(put_keyed(&two, 2, T0, "key"), "e");
    cr_expect_eq(COUNT("HLEN due:{q}:j"), 1);
}

/* Of a put that is torn where its job gets a place: that is nowhere, and whoever comes next has the
 * key. */
Test(keys, are_given_behind_the_place_of_their_job)
{
    struct share_job j = job(1, T0);

    j.key = "key";
    freeReplyObject(share_ask(&one, "SET due:{q}:t:a %s", "no zset"));
    share_put(&one, &j, 1);
    cr_assert_eq(one.answer.code, 'E');
    freeReplyObject(share_ask(&one, "DEL due:{q}:t:a"));
    cr_expect_eq(KEYS_LEFT(), 0);
    cr_expect_str_empty(put_keyed(&two, 2, T0, "key"));
}

/* What is forgotten goes from `kx` first: a key that is only there is another job's to have, and
 * would be forgotten with it. */
Test(keys, that_are_half_forgotten_stay_with_whoever_has_them_next)
{
    freeReplyObject(share_ask(&one, "SET due:{q}:k %s", "no hash"));
    freeReplyObject(share_ask(&one, "ZADD due:{q}:kx 1 key"));
    share_beat(&one);
    cr_assert_eq(one.answer.code, 'E');
    cr_expect_eq(COUNT("EXISTS due:{q}:kx"), 0);
    freeReplyObject(share_ask(&one, "DEL due:{q}:k"));

    freeReplyObject(share_ask(&one, "ZADD due:{q}:kx 1 key"));
    cr_expect_str_empty(put_keyed(&one, 1, T0, "key"));
    cr_expect_str_eq(put_keyed(&two, 2, T0, "key"), "e");
}

Test(keys, that_are_taken_ring_nobody)
{
    put_keyed(&one, 1, T0 + 900000, "key");
    share_listen(&two);
    wait_for(&two, 1);
    cr_expect_str_eq(put_keyed(&one, 2, T0, "key"), "e");
    cr_expect_eq(share_rung(&two), 0);
    cr_expect_eq(COUNT("ZSCORE due:{q}:h a"), T0 + 900000);
    cr_expect_str_empty(put_keyed(&one, 3, T0, "other"));
    cr_expect_eq(share_rung(&two), 1);
}

/* ---- One of several cannot have its key ---- */

/* The first is another's key, which is due in the far future. */
static void put_three(int64_t second, int64_t third)
{
    struct share_job jobs[] = { job(2, T0), job(3, second), job(4, third) };

    cr_expect_str_empty(put_keyed(&one, 1, T0 + 9000, "had"));
    jobs[0].key = "had";
    share_put(&two, jobs, 3);
    cr_assert_eq(two.answer.code, 'D', "%s", two.answer.error);
    cr_expect_str_eq(two.answer.status, "edd");
}

Test(keys, that_are_refused_do_not_make_the_others_late)
{
    put_three(T0 + 100, T0 + 200);
    cr_expect_eq(COUNT("ZSCORE due:{q}:h a"), T0 + 100, "the first of those that are in");
    turn(T0 + 100);
    cr_expect_eq(claim(&one, 1)->count, 1);
}

Test(keys, that_are_refused_call_for_the_others_all_the_same)
{
    share_listen(&one);
    wait_for(&one, 1);
    put_three(T0, T0 + 200);
    cr_expect_eq(two.answer.rang, 1);
    cr_expect_eq(share_rung(&one), 1);
    cr_expect_eq(claim(&one, 1)->count, 1);
}

/* That nothing was put is told by a server that is full, too: nothing is needed for it. */
Test(keys, that_are_refused_by_a_full_server_are_so_for_that_reason)
{
    cr_expect_str_empty(put_keyed(&one, 1, T0 + 9000, "had"));
    freeReplyObject(share_ask(&one, "CONFIG SET maxmemory 1"));
    cr_expect_str_eq(put_keyed(&two, 2, T0, "had"), "e");
    freeReplyObject(share_ask(&one, "CONFIG SET maxmemory 0"));
    share_again(&two, 0);
    cr_expect_str_eq(put_keyed(&two, 2, T0, "had"), "e", "the same answer again");
    cr_expect_eq(COUNT("HLEN due:{q}:j"), 1);
}

/* Whoever drops a dead job by its key says which that is: it may be another's by now. */
Test(keys, name_the_dead_that_are_dropped)
{
    struct share_change drop = { 'x', 1, id(1), -1, NULL, 0, "other" };

    cr_expect_str_empty(put_keyed(&one, 1, T0, "key"));
    cr_expect_str_empty(put_keyed(&one, 2, T0 + 9000, "other"));
    finish(&one, ended('b', 1, claim(&one, 1)->lease, T0));
    for (int i = 0; i < 2; i++) {
        share_edit(&two, &drop, 1);
        cr_expect_str_eq(two.answer.status, "c", "%s", drop.entry);
        drop.entry = "nobody's";
    }
    cr_expect_eq(COUNT("ZCARD due:{q}:dead"), 1);
    drop.entry = "key";
    share_edit(&two, &drop, 1);
    cr_expect_str_empty(two.answer.status);
    cr_expect_eq(COUNT("EXISTS due:{q}:dead"), 0);
}
