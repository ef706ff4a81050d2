/* redis_share_speed.c - what the scripts of a shared queue cost the server, beside the same by bare
 * commands; in the check with a few jobs, so that it goes on working.
 *
 *     redis_share_speed [JOBS [WAITING]]
 *
 * Figures are microseconds of the server's processor time for a job, the least of five runs (of
 * one, where nothing is asked for); and how long a put, its ring and the claim take.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "lab/redis/redis_server.h"
#include "lab/redis/share_lab.h"

static struct redis_server server;
static struct share s;
static int jobs = 2560, waiting = 1000, runs = 1;
static int groups; /* of the jobs that are put; 0: they have none */
static int ranks;  /* likewise, priorities; 0: the order is by time */

static void check(int fine, const char *what)
{
    if (!fine) {
        fprintf(stderr, "redis_share_speed: %s: %c %s\n", what, s.answer.code, s.answer.error);
        redis_server_stop(&server);
        exit(1);
    }
}

/* The server's processor time so far, in us. */
static double used(void)
{
    redisReply *r = share_ask(&s, "INFO cpu");
    const char *user = strstr(r->str, "used_cpu_user:");
    const char *sys = strstr(r->str, "used_cpu_sys:");
    double us = 1e6 * (strtod(user + 14, NULL) + strtod(sys + 13, NULL));

    freeReplyObject(r);
    return us;
}

static void empty(void)
{
    freeReplyObject(share_ask(&s, "FLUSHALL"));
    s.by_rank = ranks > 0;
    share_tied = 0;
    share_join(&s);
    check(s.answer.code == 'J', "join");
    share_topics(&s, "", NULL);
    freeReplyObject(share_ask(
        &s, "EVAL %s 2 due:{q}:t: due:{q}:j %d",
        "for i=1,ARGV[1] do local id=string.format('zz%012d',i) "
        "redis.call('ZADD',KEYS[1],9e15,id) redis.call('HSET',KEYS[2],id,string.rep('x',76)) end",
        waiting));
}

static struct share_job batch[SHARE_MOST];

static void fill_batch(int from, int n)
{
    static char record[77];
    static char group[SHARE_MOST][16];

    memset(record, 'x', 76);
    for (int i = 0; i < n; i++) {
        batch[i] = (struct share_job){ .score = 1 + from + i, .record = record };
        snprintf(batch[i].id, sizeof batch[i].id, "id%012d", from + i);
        if (ranks > 0)
            batch[i].id[0] = (char)('A' + (from + i) % ranks);
        if (groups > 0) {
            snprintf(group[i], sizeof group[i], "g%d", (from + i) % groups);
            batch[i].group = group[i];
        }
    }
}

static void put_all(int by)
{
    for (int at = 0; at < jobs; at += by) {
        fill_batch(at, by);
        share_put(&s, batch, by);
        check(s.answer.code == 'D', "put");
    }
}

/* As an owner's batch: MULTI HSET ZADD HSET EXEC. */
static void put_bare(int by)
{
    for (int at = 0; at < jobs; at += by) {
        const char *hset[2 + 2 * SHARE_MOST] = { "HSET", "due:{q}:j" };
        const char *zadd[2 + 2 * SHARE_MOST] = { "ZADD", "due:{q}:t:" };
        static char score[SHARE_MOST][24];

        fill_batch(at, by);
        for (int i = 0; i < by; i++) {
            snprintf(score[i], sizeof score[i], "%" PRId64, batch[i].score);
            hset[2 + 2 * i] = batch[i].id;
            hset[3 + 2 * i] = batch[i].record;
            zadd[2 + 2 * i] = score[i];
            zadd[3 + 2 * i] = batch[i].id;
        }
        redisAppendCommand(s.link, "MULTI");
        redisAppendCommandArgv(s.link, 2 + 2 * by, hset, NULL);
        redisAppendCommandArgv(s.link, 2 + 2 * by, zadd, NULL);
        redisAppendCommand(s.link, "HSET due:{q}:writers 1 %d", at);
        redisAppendCommand(s.link, "EXEC");
        for (int i = 0; i < 5; i++) {
            void *r = NULL;
            check(redisGetReply(s.link, &r) == REDIS_OK, "EXEC");
            freeReplyObject(r);
        }
    }
}

static void work_all(int by)
{
    static struct share_outcome done[SHARE_MOST];
    static char ids[SHARE_MOST][SHARE_ID + 1];
    int n = 0;

    for (int ended = 0; ended < jobs; ended += n) {
        share_work(&s, done, n, (struct share_claim){ by, 0, 60000000, NULL });
        check(s.answer.code == 'D' && s.answer.status[0] == '\0', "work");
        n = s.answer.count;
        for (int i = 0; i < n; i++) {
            memcpy(ids[i], s.answer.job[i].id, sizeof ids[i]);
            done[i] = (struct share_outcome){ 'a', 1, ids[i], s.answer.lease, 0, NULL };
        }
        check(n > 0, "nothing is due");
    }
}

/* Claims alone. */
static void claim_all(int by)
{
    for (int claimed = 0; claimed < jobs; claimed += s.answer.count) {
        share_work(&s, NULL, 0, (struct share_claim){ by, 0, 60000000, NULL });
        check(s.answer.code == 'D' && s.answer.count > 0, "nothing is due");
    }
}

/* A claim and an end that look at nothing. */
static void work_bare(int by)
{
    static const char text[] =
        "if #ARGV>2 then redis.call('ZREM',KEYS[2],unpack(ARGV,3)) "
        "redis.call('HDEL',KEYS[3],unpack(ARGV,3)) end "
        "local ids=redis.call('ZRANGEBYSCORE',KEYS[1],'-inf',ARGV[2],'LIMIT',0,ARGV[1]) "
        "if #ids==0 then return ids end local add={} "
        "for i=1,#ids do add[2*i-1]=ARGV[2] add[2*i]=ids[i] end "
        "redis.call('ZADD',KEYS[2],unpack(add)) redis.call('ZREM',KEYS[1],unpack(ids)) "
        "local r=redis.call('HMGET',KEYS[3],unpack(ids)) "
        "for i=1,#r do ids[#ids+1]=r[i] end return ids";
    redisReply *sha = share_ask(&s, "SCRIPT LOAD %s", text);
    redisReply *last = NULL;
    char number[16];

    snprintf(number, sizeof number, "%d", by);
    for (int claimed = 0;;) {
        const char *words[8 + SHARE_MOST] = { "EVALSHA",    sha->str,    "3",    "due:{q}:t:",
                                              "due:{q}:l:", "due:{q}:j", number, "8e15" };
        int n = last != NULL ? (int)last->elements / 2 : 0;
        for (int i = 0; i < n; i++)
            words[8 + i] = last->element[i]->str;
        redisReply *r = redisCommandArgv(s.link, 8 + n, words, NULL);
        check(r != NULL && r->type == REDIS_REPLY_ARRAY, "bare");
        if (last != NULL)
            freeReplyObject(last);
        last = r;
        claimed += (int)r->elements / 2;
        if (r->elements == 0) {
            check(claimed >= jobs, "bare: nothing is due");
            break;
        }
    }
    freeReplyObject(last);
    freeReplyObject(sha);
}

static double best_put(void (*put)(int), int by)
{
    double best = 1e9;

    for (int i = 0; i < runs; i++) {
        empty();
        double before = used();
        put(by);
        double us = (used() - before) / jobs;
        best = us < best ? us : best;
    }
    return best;
}

static double best_work(void (*work)(int), int by)
{
    double best = 1e9;

    for (int i = 0; i < runs; i++) {
        empty();
        put_all(256);
        double before = used();
        work(by);
        double us = (used() - before) / jobs;
        best = us < best ? us : best;
    }
    return best;
}

/* The script without that line of it. */
static void without(const char *line)
{
    const struct due__script *script = &due__script_work_plain;
    const char *at = strstr(script->text, line);
    size_t len = strlen(line);
    char *text = malloc(script->len + 1);

    check(at != NULL && text != NULL, "the line is not there");
    memcpy(text, script->text, (size_t)(at - script->text));
    memcpy(text + (at - script->text), at + len,
           script->len + 1 - (size_t)(at - script->text) - len);
    redisReply *r = share_ask(&s, "SCRIPT LOAD %s", text);
    for (int i = 0; i < SHARE_SCRIPTS; i++)
        if (strcmp(s.sha[i], script->sha) == 0)
            memcpy(s.sha[i], r->str, sizeof s.sha[i]);
    freeReplyObject(r);
    free(text);
}

/* Beside the same without groups: each job of one of its own, and ten of each. */
static void with_groups(void)
{
    static const int sizes[] = { 1, 10, 100 };
    const int all[] = { jobs, jobs / 10 };

    double bare = best_work(claim_all, 100);
    groups = jobs;
    double grouped = best_work(claim_all, 100);
    groups = 0;
    printf("claim alone by 100    %5.2f us  grouped  %5.2f  %.2f times\n", bare, grouped,
           grouped / bare);
    for (size_t g = 0; g < 2; g++) {
        double plain = best_put(put_all, 256);
        groups = all[g];
        double put = best_put(put_all, 256);
        printf("%2d of each group: put by 256 %5.2f us  %.2f times\n", jobs / groups, put,
               put / plain);
        for (size_t i = 0; i < 3; i++) {
            groups = 0;
            plain = best_work(work_all, sizes[i]);
            groups = all[g];
            double work = best_work(work_all, sizes[i]);
            printf("   claim and ack by %-4d %5.2f us  %.2f times\n", sizes[i], work, work / plain);
        }
        groups = 0;
    }
}

/* Beside the same in the order of time. */
static void by_priority(void)
{
    static const int sizes[] = { 1, 10, 100 };

    double plain = best_put(put_all, 256);
    ranks = 8;
    double put = best_put(put_all, 256);
    printf("8 priorities: put by 256  %5.2f us  %.2f times\n", put, put / plain);
    for (size_t i = 0; i < 3; i++) {
        ranks = 0;
        plain = best_work(work_all, sizes[i]);
        ranks = 8;
        double work = best_work(work_all, sizes[i]);
        printf("   claim and ack by %-4d  %5.2f us  %.2f times\n", sizes[i], work, work / plain);
    }
    ranks = 0;
}

static int by_size(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void rings(void)
{
    static struct share sleeper;
    static int64_t took[2000];
    int n = runs > 1 ? 2000 : 50;

    empty();
    share_begin(&sleeper, server.socket, "q", NULL);
    share_join(&sleeper);
    share_listen(&sleeper);
    share_topics(&sleeper, "", NULL);
    for (int i = 0; i < n; i++) {
        void *r = NULL;
        share_work(&sleeper, NULL, 0, (struct share_claim){ 256, 0, 60000000, "a" });
        share_rung(&sleeper);
        int64_t begun = due__mono_ns();
        fill_batch(i, 1);
        share_put(&s, batch, 1);
        check(s.answer.rang == 1, "nobody was rung");
        redisGetReply(sleeper.bell, &r);
        share_work(&sleeper, NULL, 0, (struct share_claim){ 1, 0, 60000000, "a" });
        took[i] = due__mono_ns() - begun;
        freeReplyObject(r);
        check(sleeper.answer.count == 1, "the job was not there");
    }
    qsort(took, (size_t)n, sizeof *took, by_size);
    printf("put, ring and claim   p50 %" PRId64 " us  p99 %" PRId64 "  max %" PRId64 "\n",
           took[n / 2] / 1000, took[n * 99 / 100] / 1000, took[n - 1] / 1000);
    share_end(&sleeper);
}

int main(int argc, char **argv)
{
    static const int sizes[] = { 1, 10, 100 };
    int rc = redis_server_start(&server, NULL);

    if (rc != 0)
        return rc == REDIS_SERVER_MISSING ? 77 : 1;
    runs = argc > 1 ? 5 : 1;
    jobs = argc > 1 ? atoi(argv[1]) / 2560 * 2560 : jobs;
    waiting = argc > 2 ? atoi(argv[2]) : waiting;
    share_begin(&s, server.socket, "q", NULL);
    double put = best_put(put_all, 256);
    double bare = best_put(put_bare, 256);
    printf("put by 256            %5.2f us  in MULTI %5.2f  %.2f times\n", put, bare, put / bare);
    for (size_t i = 0; i < 3; i++) {
        double work = best_work(work_all, sizes[i]);
        bare = best_work(work_bare, sizes[i]);
        printf("claim and ack by %-4d %5.2f us  bare     %5.2f  %.2f times\n", sizes[i], work, bare,
               work / bare);
    }
    with_groups();
    by_priority();
    rings();
    without("call('HSET', KEYS[3], ARGV[2], kept)");
    printf("claim and ack by 100  %5.2f us  without `c`\n", best_work(work_all, 100));
    share_end(&s);
    redis_server_stop(&server);
    return 0;
}
