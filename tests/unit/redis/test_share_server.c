/* test_share_server.c - the scripts of a shared queue on servers as they are: full, in a cluster,
 * with a user who may do little, with keys that are something else; who may join; how long it
 * takes.
 */
#include <unistd.h>

#include "lab/redis/redis_user.h"
#include "lab/redis/share_case.h"

TestSuite(join, .init = serve, .fini = stop, .timeout = 60);

Test(join, gives_each_writer_a_higher_number_and_all_the_same_fence)
{
    cr_expect_gt(strtoll(two.writer, NULL, 10), strtoll(one.writer, NULL, 10));
    cr_expect_str_eq(one.fence, two.fence);
    cr_expect_eq(strncmp(one.fence, "s:", 2), 0);
    cr_expect_eq(COUNT("HLEN due:{q}:p"), 2);
    cr_expect_gt(COUNT("PTTL due:{q}:owner"), 0);
    share_leave(&one);
    cr_expect_eq(one.answer.left, 1);
    share_leave(&two);
    cr_expect_eq(two.answer.left, 0);
    cr_expect_eq(COUNT("EXISTS due:{q}:owner due:{q}:w due:{q}:c due:{q}:p"), 0);
}

Test(join, stays_away_from_a_queue_that_is_another_s)
{
    freeReplyObject(share_ask(&one, "SET due:{q}:owner %s", "1 host boot pid 1"));
    share_join(&two);
    cr_expect_eq(two.answer.code, 'O');
    freeReplyObject(share_ask(&one, "DEL due:{q}:owner"));
    freeReplyObject(share_ask(&one, "HSET due:{q}:meta mode owner"));
    share_join(&two);
    cr_expect_eq(two.answer.code, 'M');
    freeReplyObject(share_ask(&one, "HSET due:{q}:meta mode shared least_reader 4"));
    share_join(&two);
    cr_expect_eq(two.answer.code, 'V');
    freeReplyObject(share_ask(&one, "HSET due:{q}:meta least_reader 2 partitions 4"));
    share_join(&two);
    cr_expect_eq(two.answer.code, 'N');
}

/* Every script that writes, once. */
static const char *codes(struct share *s)
{
    static char seen[6];
    struct share_change cancel = { 'c', 1, id(1), -1, NULL, 0, NULL };

    share_put(s, &(struct share_job[]){ job(1, T0) }[0], 1);
    seen[0] = s->answer.code;
    share_work(s, NULL, 0, (struct share_claim){ .need = 1, .lease_us = LEASE });
    seen[1] = s->answer.code;
    share_edit(s, &cancel, 1);
    seen[2] = s->answer.code;
    share_beat(s);
    seen[3] = s->answer.code;
    share_leave(s);
    seen[4] = s->answer.code;
    return seen;
}

Test(join, fences_every_script_by_what_stands_in_fence)
{
    freeReplyObject(share_ask(&two, "SET due:{q}:fence 7:other"));
    cr_expect_str_eq(codes(&one), "FFFFF");
    freeReplyObject(share_ask(&two, "DEL due:{q}:fence"));
    cr_expect_str_eq(codes(&one), "LLLLL");
    freeReplyObject(share_ask(&two, "SET due:{q}:fence s:other"));
    cr_expect_str_eq(codes(&one), "LLLLL", "a shared queue that was made anew");
    cr_expect_eq(COUNT("EXISTS due:{q}:j due:{q}:t:a due:{q}:l:a"), 0);
}

Test(join, tells_who_was_evicted_from_who_was_lost)
{
    freeReplyObject(share_ask(&two, "HSET due:{q}:writers %s X %s X", one.lane[0], one.lane[1]));
    cr_expect_str_eq(codes(&one), "FFFFF");
    freeReplyObject(share_ask(&one, "HDEL due:{q}:writers %s %s", two.lane[0], two.lane[1]));
    cr_expect_str_eq(codes(&two), "LLLLL");
    cr_expect_eq(COUNT("EXISTS due:{q}:j"), 0);
}

/* Who beats often does not make it shorter for those who do not. */
Test(join, keeps_the_owners_key_for_as_long_as_all_need_it)
{
    freeReplyObject(share_ask(&one, "PEXPIRE due:{q}:owner 900000"));
    share_join(&two);
    cr_expect_gt(COUNT("PTTL due:{q}:owner"), 600000);
    for (int i = 0; i < 100; i++)
        freeReplyObject(share_ask(&one, "HSET due:{q}:p %d x", i));
    share_beat(&two);
    cr_expect_gt(COUNT("PTTL due:{q}:owner"), 600000);
    freeReplyObject(share_ask(&one, "DEL due:{q}:owner"));
    share_beat(&two);
    cr_expect_gt(COUNT("PTTL due:{q}:owner"), 300000);
    cr_expect_leq(COUNT("PTTL due:{q}:owner"), 6000 * COUNT("HLEN due:{q}:p"));
}

TestSuite(census, .init = serve, .fini = stop, .timeout = 60);

Test(census, counts_what_waits_is_ready_and_is_out)
{
    put(&one, 1, T0 + 50);
    put(&one, 2, T0 - 3);
    put(&one, 3, T0 - 2);
    claim(&two, 1);
    redisReply *r = share_census(&one);

    cr_assert_eq(r->elements, 9u);
    cr_expect_eq(r->element[1]->integer, 3);
    cr_expect_eq(r->element[3]->integer, 2);
    cr_expect_eq(r->element[5]->integer, 1, "delayed");
    cr_expect_eq(r->element[6]->integer, 1, "ready");
    cr_expect_eq(r->element[7]->integer, 1, "leased");
    cr_expect_eq(strtoll(r->element[8]->str, NULL, 10), T0 - 2);
    freeReplyObject(r);
}

static void expect_ready(long long ready, int64_t oldest)
{
    redisReply *r = share_census(&one);

    cr_assert_eq(r->elements, 9u);
    cr_expect_eq(r->element[6]->integer, ready);
    cr_expect_eq(strtoll(r->element[8]->str, NULL, 10), oldest, "%s", r->element[8]->str);
    freeReplyObject(r);
}

Test(census, counts_what_lapsed_as_ready_since_the_end_of_its_lease)
{
    struct share_change cancel = { 'c', 1, id(2), -1, NULL, 0, NULL };

    put(&one, 1, T0);
    claim(&two, 1);
    put(&one, 2, T0 + 7);
    turn(T0 + LEASE);
    expect_ready(2, T0 + 7);
    share_edit(&one, &cancel, 1);
    expect_ready(1, T0 + LEASE);
    put(&one, 3, T0 + LEASE + 1);
    turn(T0 + LEASE + 1);
    expect_ready(2, T0 + LEASE);
}

TestSuite(work, .init = serve, .fini = stop, .timeout = 60);

/* ---- Keys that are missing, empty or something else ------------------------------------------ */

static const char *const keys[] = { "c", "h",   "w",   "j",   "a",      "dead", "b",
                                    "p", "t:a", "l:a", "w:a", "topics", "wr" };

/* A job's whole life, with whatever answers; a wrong type ends a script with an error. */
static void live(int n)
{
    share_put(&one, &(struct share_job[]){ job(n, T0) }[0], 1);
    cr_expect(one.answer.code == 'D' || one.answer.code == 'E');
    if (one.answer.code == 'E')
        share_again(&one, 0);
    share_work(&two, NULL, 0, (struct share_claim){ .need = 9, .lease_us = LEASE, .wait = "a" });
    cr_expect(two.answer.code == 'D' || two.answer.code == 'E');
    if (two.answer.code == 'E')
        share_again(&two, 1);
    share_beat(&one);
    cr_expect(one.answer.code == 'D' || one.answer.code == 'E');
}

Test(work, is_never_wrong_after_any_key_went_or_was_something_else)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        freeReplyObject(share_ask(&one, "DEL due:{q}:%s", keys[i]));
        live((int)i + 1);
        freeReplyObject(share_ask(&one, "RENAME due:{q}:%s due:{q}:saved", keys[i]));
        freeReplyObject(share_ask(&one, "RPUSH due:{q}:%s x", keys[i]));
        live((int)i + 100);
        freeReplyObject(share_ask(&one, "DEL due:{q}:%s", keys[i]));
        freeReplyObject(share_ask(&one, "RENAME due:{q}:saved due:{q}:%s", keys[i]));
        turn(T0 + (int64_t)(i + 1) * 3 * LEASE);
        wait_for(&two, 200);
        cr_expect_eq(two.answer.code, 'D');
    }
    int64_t last = T0 + 100 * (int64_t)LEASE;
    int most = 0;
    turn(last);
    for (int count = -1; count != 0; most += count > 0)
        count = claim(&two, 200)->count;
    cr_expect_geq(most, 1);
    for (int n = 200; n < 203; n++)
        put(&one, n, last);
    cr_expect_eq(claim(&two, 5)->count, 3, "and new jobs come as ever");
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

Test(work, takes_and_ends_batches_of_every_size)
{
    static const int sizes[] = { 1, 255, 256 };
    static struct share_job jobs[SHARE_MOST];
    static struct share_outcome done[SHARE_MOST];

    for (size_t k = 0; k < 3; k++) {
        for (int i = 0; i < sizes[k]; i++) {
            jobs[i] = job(i, T0 - i);
            jobs[i].entry = "entry";
            jobs[i].is_long = i == 1;
            jobs[i].record = "record";
        }
        share_put(&one, jobs, sizes[k]);
        cr_assert_eq(one.answer.code, 'D', "%s", one.answer.error);
        cr_assert_eq(claim(&two, SHARE_MOST)->count, sizes[k]);
        share_again(&two, 1);
        cr_assert_eq(claim(&two, SHARE_MOST)->count, sizes[k]);
        for (int i = 0; i < sizes[k]; i++)
            done[i] = (struct share_outcome){ 'n', 1, id(i), two.answer.lease, T0, "e" };
        share_work(&two, done, sizes[k], (struct share_claim){ 0 });
        cr_expect_str_empty(two.answer.status);
        cr_assert_eq(claim(&two, SHARE_MOST)->count, sizes[k]);
        for (int i = 0; i < sizes[k]; i++)
            done[i] = (struct share_outcome){ 'a', 1, id(i), two.answer.lease, 0, NULL };
        share_work(&two, done, sizes[k], (struct share_claim){ 0 });
        cr_expect_str_empty(two.answer.status);
        cr_expect_eq(COUNT("EXISTS due:{q}:j due:{q}:a due:{q}:b due:{q}:t:a due:{q}:l:a"), 0);
    }
}

/* ---- Many due at once ------------------------------------------------------------------------ */

Test(work, takes_no_longer_however_many_are_due, .timeout = 120)
{
    freeReplyObject(share_ask(
        &one, "EVAL %s 2 due:{q}:t:a due:{q}:j 100000 %lld",
        "for i=1,ARGV[1] do local id=string.format('id%012d',i) "
        "redis.call('ZADD',KEYS[1],ARGV[2],id) redis.call('HSET',KEYS[2],id,'record') end",
        (long long)T0 - 9));
    freeReplyObject(share_ask(&one, "CONFIG SET slowlog-log-slower-than 100000"));
    freeReplyObject(share_ask(&one, "SLOWLOG RESET"));
    share_listen(&one);
    wait_for(&one, 0);
    for (int i = 0; i < 50; i++) {
        cr_assert_eq(claim(&two, SHARE_MOST)->count, SHARE_MOST);
        share_beat(&one);
    }
    cr_expect_lt(COUNT("SLOWLOG LEN"), 50, "each of them");
    cr_expect_eq(COUNT("ZCARD due:{q}:l:a"), 50 * SHARE_MOST);
}

/* ---- After a year ---------------------------------------------------------------------------- */

/* A consumer that was away for so long finds all that was left: what waited, and what another had
 * claimed, who never came back.  Nothing but the owner's key ever expires. */
Test(work, finds_all_that_was_left_a_year_ago)
{
    int64_t year = INT64_C(366) * 86400 * 1000000;

    put(&one, 1, T0 - 9);
    cr_assert_eq(claim(&one, 1)->count, 1);
    int64_t over = one.answer.lease;
    for (int i = 2; i <= 9; i++)
        put(&one, i, T0 + i * year / 9);
    cr_expect_eq(COUNT("EVAL %s 0", "local n=0 for _,k in ipairs(redis.call('KEYS','due:*')) do "
                                    "if redis.call('PTTL',k)>=0 then n=n+1 end end return n"),
                 1);
    cr_expect_gt(COUNT("PTTL due:{q}:owner"), 0);
    turn(T0 + 2 * year);
    cr_assert_eq(claim(&two, 100)->count, 9);
    for (int i = 0; i < 9; i++) {
        const struct share_job *got = &two.answer.job[i];
        cr_expect_str_eq(got->id, id(1 + i));
        cr_expect_str_eq(got->record, "record");
        cr_expect_eq(got->over, i == 0 ? over : 0);
    }
}

/* A great many leases have ended: each claim is as short as ever, and they come first. */
Test(work, claims_a_few_of_very_many_ended_leases, .timeout = 120)
{
    freeReplyObject(share_ask(
        &one, "EVAL %s 3 due:{q}:l:a due:{q}:j due:{q}:h 100000 %lld",
        "for i=1,ARGV[1] do local id=string.format('zz%012d',i) "
        "redis.call('ZADD',KEYS[1],ARGV[2],id) redis.call('HSET',KEYS[2],id,'record') end "
        "redis.call('ZADD',KEYS[3],ARGV[2],'a')",
        (long long)T0 - 9));
    freeReplyObject(share_ask(&one, "CONFIG SET slowlog-log-slower-than 100000"));
    freeReplyObject(share_ask(&one, "SLOWLOG RESET"));
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(claim(&two, SHARE_MOST)->count, SHARE_MOST);
        cr_expect_eq(two.answer.job[0].over, T0 - 9);
    }
    cr_expect_lt(COUNT("SLOWLOG LEN"), 20, "each of them");
    cr_expect_eq(COUNT("ZCOUNT due:{q}:l:a -inf %lld", (long long)T0), 100000 - 20 * SHARE_MOST);
}

/* ---- Other servers --------------------------------------------------------------------------- */

static void plain_writer(struct share *s)
{
    share_begin(s, server.socket, "q", NULL);
    share_join(s);
    cr_assert_eq(s->answer.code, 'J', "%s", s->answer.error);
    share_topics(s, "a", NULL);
}

TestSuite(server, .fini = stop, .timeout = 120);

Test(server, that_is_full_takes_no_job_but_lets_all_be_worked_off)
{
    static char payload[4096];
    struct share_outcome done = { 'n', 1, id(2), 0, 1, "entry" };
    struct share_change cancel = { 'c', 1, id(1), -1, NULL, 0, NULL };

    serve_with((const char *const[]){ "--maxmemory", "3mb", NULL });
    plain_writer(&one);
    memset(payload, 'x', sizeof payload - 1);
    int n = 0;
    for (;; n++) {
        struct share_job jobs[] = { job(n % 300, 1) };
        snprintf(jobs[0].id, sizeof jobs[0].id, "id%012d", n);
        jobs[0].record = payload;
        jobs[0].group = n % 2 == 0 ? "g" : NULL;
        share_put(&one, jobs, 1);
        if (one.answer.code == 'E')
            break;
    }
    cr_expect_not_null(strstr(one.answer.error, "OOM"), "%s", one.answer.error);
    cr_expect_gt(n, 10);
    cr_expect_eq(COUNT("HLEN due:{q}:j"), n);
    cr_expect_eq(COUNT("ZCARD due:{q}:t:a") + COUNT("ZCARD due:{q}:g:a"), n);
    share_again(&one, 0);
    plain_writer(&two); /* who works it off may come now */
    share_edit(&one, &cancel, 1);
    cr_expect_eq(one.answer.code, 'D', "%s", one.answer.error);
    share_beat_for(&two, 1);
    cr_expect_eq(two.answer.code, 'D', "%s", two.answer.error);
    cr_expect_eq(two.answer.turn, 1);
    claim(&two, 1);
    freeReplyObject(share_ask(&one, "CONFIG SET maxmemory 1")); /* also when much has gone */
    share_aside(&two, id(0));
    cr_expect_eq(two.answer.code, 'D', "%s", two.answer.error);
    cr_expect_eq(claim(&two, 1)->count, 1);
    done.lease = two.answer.lease;
    cr_expect_str_empty(finish(&two, done));
    while (claim(&two, 50)->count > 0) {
        static struct share_outcome all[50];
        static char ids[50][SHARE_ID + 1];
        int k = two.answer.count;
        for (int i = 0; i < k; i++) {
            memcpy(ids[i], two.answer.job[i].id, SHARE_ID);
            all[i] = (struct share_outcome){ 'a', 1, ids[i], two.answer.lease, 0, NULL };
        }
        share_work(&two, all, k, (struct share_claim){ 0 });
        cr_assert_eq(two.answer.code, 'D', "%s", two.answer.error);
        cr_expect_str_empty(two.answer.status);
    }
    cr_expect_eq(COUNT("EXISTS due:{q}:j due:{q}:t:a due:{q}:l:a due:{q}:g:a"), 0);
    freeReplyObject(share_ask(&one, "CONFIG SET maxmemory 3mb"));
    put(&one, 1, 1);
}

/* A whole life by every script. */
static void whole_life(void)
{
    share_listen(&two);
    wait_for(&two, 1);
    struct share_job jobs[] = { job(1, 1), job(2, 1), job(3, 1) };
    share_topics(&one, "a", "b", NULL);
    share_topics(&two, "a", "b", NULL);
    jobs[0].topic = 1;
    jobs[1].topic = 2;
    jobs[2].topic = 1;
    jobs[0].group = jobs[2].group = "g"; /* it stands behind the first */
    share_put(&one, jobs, 3);
    cr_assert_eq(one.answer.code, 'D', "%s", one.answer.error);
    cr_expect_eq(share_rung(&two), 1);
    cr_expect_eq(claim(&two, 5)->count, 2);
    cr_expect_str_empty(
        finish(&two, (struct share_outcome){ 'b', 1, id(1), two.answer.lease, 2, "dead" }));
    redisReply *page = share_page(&one, 5, -1, "");
    cr_expect(page->type == REDIS_REPLY_ARRAY && page->elements == 2, "%s", page->str);
    freeReplyObject(page);
    cr_expect_eq(claim(&two, 5)->count, 1, "the next of its group");
    share_aside(&two, id(3));
    cr_expect_eq(two.answer.code, 'D', "%s", two.answer.error);
    struct share_change drop = { 'x', 1, id(1), -1, NULL, 0, NULL };
    share_edit(&one, &drop, 1);
    cr_expect_eq(one.answer.code, 'D', "%s", one.answer.error);
    cr_expect_str_empty(one.answer.status);
    redisReply *r = share_census(&one);
    cr_expect_eq(r->type, REDIS_REPLY_ARRAY, "%s", r->str);
    freeReplyObject(r);
    two.waits_room = 1;
    share_beat(&two);
    cr_expect_eq(two.answer.code, 'D', "%s", two.answer.error);
    snprintf(two.capacity, sizeof two.capacity, "1");
    share_join(&two);
    cr_expect_eq(two.answer.code, 'J', "%s", two.answer.error);
    for (int n = 50; n < 52; n++) {
        share_put(&two, &(struct share_job[]){ job(n, T0) }[0], 1);
        cr_expect_eq(two.answer.code, 'D', "%s", two.answer.error);
    }
    cr_expect_str_eq(two.answer.status, "f", "there is one");
    share_beat(&two);
    cr_expect_eq(two.answer.code, 'D', "%s", two.answer.error);
    share_leave(&two);
    cr_expect_eq(two.answer.code, 'D', "%s", two.answer.error);
}

Test(server, in_cluster_mode_finds_all_keys_in_one_slot)
{
    serve_with((const char *const[]){ "--cluster-enabled", "yes", "--cluster-config-file",
                                      "nodes.conf", "--cluster-require-full-coverage", "no",
                                      "--port", "0", NULL });
    redisContext *c = redisConnectUnix(server.socket);
    redisReply *slot = redisCommand(c, "CLUSTER KEYSLOT due:{q}:j");
    freeReplyObject(redisCommand(c, "CLUSTER ADDSLOTS %d", (int)slot->integer));
    freeReplyObject(slot);
    for (int up = 0; !up;) {
        redisReply *r = redisCommand(c, "DEL due:{q}:j");
        up = r->type == REDIS_REPLY_INTEGER;
        freeReplyObject(r);
        usleep(10000);
    }
    redisFree(c);
    plain_writer(&one);
    plain_writer(&two);
    whole_life();
}

/* The user of docs/redis-layout.md, and what shared queues need besides. */
Test(server, lets_a_user_in_who_may_do_what_the_page_says)
{
    static const char *const may[] = { REDIS_USER_MAY, REDIS_SHARED_MAY };
    char rules[1024] = "";

    for (size_t i = 0; i < sizeof may / sizeof *may; i++) {
        strcat(rules, " ");
        strcat(rules, may[i]);
    }
    serve_with(NULL);
    redisContext *c = redisConnectUnix(server.socket);
    char set[1200];
    snprintf(set, sizeof set, "ACL SETUSER default reset on nopass ~due:{q}:* &due:{q}:*%s", rules);
    redisReply *r = redisCommand(c, set);
    cr_assert_eq(r->type, REDIS_REPLY_STATUS, "%s", r->str);
    freeReplyObject(r);
    redisFree(c);
    plain_writer(&one);
    plain_writer(&two);
    whole_life();
}
