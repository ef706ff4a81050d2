/* share_case.h - what the tests of a shared queue's scripts share: a server, two writers, a clock.
 *
 * The time is a list that the test writes (share_turn), so nothing is slept through.
 */
#ifndef SHARE_CASE_H
#define SHARE_CASE_H

#include <criterion/criterion.h>

#include <string.h>

#include "lab/redis/redis_server.h"
#include "lab/redis/share_lab.h"

#define T0    INT64_C(1800000000000000) /* where the clock begins, in us */
#define LEASE 1000000
#define GRACE 20000

static struct redis_server server;
static struct share one, two;
static int by_rank; /* the queue is in the order of priority */

static inline void serve_with(const char *const *options)
{
    int rc = redis_server_start(&server, options);

    if (rc == REDIS_SERVER_MISSING)
        cr_skip_test("redis-server is not installed");
    cr_assert_eq(rc, 0);
}

static inline void writer(struct share *s)
{
    share_begin(s, server.socket, "q", "clock");
    s->by_rank = by_rank;
    share_join(s);
    cr_assert_eq(s->answer.code, 'J', "%s", s->answer.error);
    share_topics(s, "a", NULL);
}

static inline void serve(void)
{
    serve_with(NULL);
    share_begin(&one, server.socket, "q", "clock");
    share_turn(&one, "clock", T0);
    share_end(&one);
    writer(&one);
    writer(&two);
}

static inline void serve_by_rank(void)
{
    by_rank = 1;
    serve();
}

static inline void stop(void)
{
    if (one.link != NULL)
        share_end(&one);
    if (two.link != NULL)
        share_end(&two);
    redis_server_stop(&server);
}

static inline void turn(int64_t us)
{
    share_turn(&one, "clock", us);
}

static inline const char *id(int n)
{
    static char ids[300][SHARE_ID + 1];

    snprintf(ids[n], sizeof ids[n], "id%012d", n);
    return ids[n];
}

static inline struct share_job job(int n, int64_t score)
{
    struct share_job j = { .score = score };

    memcpy(j.id, id(n), SHARE_ID);
    return j;
}

static inline void put(struct share *s, int n, int64_t score)
{
    share_put(s, &(struct share_job[]){ job(n, score) }[0], 1);
    cr_assert_eq(s->answer.code, 'D', "%s", s->answer.error);
}

static inline struct share_answer *claim(struct share *s, int need)
{
    share_work(s, NULL, 0, (struct share_claim){ .need = need, .lease_us = LEASE });
    cr_assert_eq(s->answer.code, 'D', "%s", s->answer.error);
    return &s->answer;
}

static inline struct share_answer *wait_for(struct share *s, int need)
{
    share_work(s, NULL, 0, (struct share_claim){ .need = need, .lease_us = LEASE, .wait = "a" });
    cr_assert_eq(s->answer.code, 'D', "%s", s->answer.error);
    return &s->answer;
}

static inline const char *finish(struct share *s, struct share_outcome done)
{
    done.topic = 1;
    share_work(s, &done, 1, (struct share_claim){ 0 });
    cr_assert_eq(s->answer.code, 'D', "%s", s->answer.error);
    return s->answer.status;
}

/* What a command of integers answers. */
#define COUNT(...) count(share_ask(&one, __VA_ARGS__))

static inline long long count(redisReply *r)
{
    long long n = r->type == REDIS_REPLY_STRING ? strtoll(r->str, NULL, 10) : r->integer;

    if (r->type == REDIS_REPLY_NIL || r->type == REDIS_REPLY_ERROR)
        n = -1;
    freeReplyObject(r);
    return n;
}

/* In the order of priority `o` has exactly those that wait, without scores: see by_rank.lua. */
static inline void check_ranks(const char *when)
{
    static const char script[] =
        "local t = redis.call('ZRANGE', 'due:{q}:t:a', 0, -1, 'WITHSCORES') "
        "local o = redis.call('ZRANGE', 'due:{q}:o:a', 0, -1) local has = {} "
        "for i = 1, #o do has[o[i]] = true end "
        "if #o ~= #t / 2 then return 'o has ' .. #o .. ', t has ' .. #t / 2 end "
        "if redis.call('ZCOUNT', 'due:{q}:o:a', 0, 0) ~= #o then return 'o has scores' end "
        "for i = 1, #t, 2 do local id = t[i] "
        "  if not has[string.sub(id, 1, 1) .. string.format('%016.0f', tonumber(t[i + 1])) .. "
        "    string.sub(id, 2)] then return 'o lacks ' .. id end end return ''";
    redisReply *r = share_ask(&one, "EVAL %s 0", script);

    cr_assert_eq(r->len, 0u, "%s: %s", when, r->str);
    freeReplyObject(r);
}

#endif
