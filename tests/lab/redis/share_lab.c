/* share_lab.c - writers of a shared queue, for tests of its scripts by themselves. */
#include "lab/redis/share_lab.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/redis/share_words.h"

/* ---- The link -------------------------------------------------------------------------------- */

/* Those that change jobs come first, and then their kinds for queues in the order of priority. */
enum { PUT, WORK, EDIT, ASIDE, PUT_PLAIN, WORK_PLAIN, RANKS };
enum { JOIN = 2 * RANKS, LEAVE, BEAT, CENSUS, PAGE };

#define IN_ORDER_OF(by)                                                                         \
    &due__script_put##by, &due__script_work##by, &due__script_edit##by, &due__script_aside##by, \
        &due__script_put_plain##by, &due__script_work_plain##by

static const struct due__script *const scripts[SHARE_SCRIPTS] = {
    IN_ORDER_OF(),     IN_ORDER_OF(_by_rank), &due__script_join, &due__script_leave,
    &due__script_beat, &due__script_census,   &due__script_page
};

int share_tied;

static int kind_of(const struct share *s, int script)
{
    return s->by_rank && script < RANKS ? RANKS + script : script;
}

static void load(struct share *s, int script, const char *clock, int torn)
{
    size_t len;
    char *text = share_text(scripts[script], clock, torn, &len);
    redisReply *r = redisCommand(s->link, "SCRIPT LOAD %b", text, len);

    if (r == NULL || r->type != REDIS_REPLY_STRING || r->len != 40)
        share_fail(r != NULL && r->str != NULL ? r->str : "script load");
    memcpy(s->sha[script], r->str, 41);
    if (clock == NULL && torn == 0 && strcmp(r->str, scripts[script]->sha) != 0)
        share_fail("the server's name of a script is another");
    freeReplyObject(r);
    free(text);
}

void share_tear(struct share *s, const char *clock, int command)
{
    for (int i = 0; i < 2 * RANKS; i++)
        load(s, i, clock, command);
}

void share_begin(struct share *s, const char *socket, const char *queue, const char *clock)
{
    memset(s, 0, sizeof *s);
    snprintf(s->socket, sizeof s->socket, "%s", socket);
    snprintf(s->queue, sizeof s->queue, "due:{%s}:", queue);
    snprintf(s->prefix, sizeof s->prefix, "%sr:", s->queue);
    s->link = redisConnectUnix(socket);
    if (s->link == NULL || s->link->err != 0)
        share_fail("no connection");
    for (int i = 0; i < SHARE_SCRIPTS; i++)
        load(s, i, clock, 0);
}

void share_end(struct share *s)
{
    if (s->reply != NULL)
        freeReplyObject(s->reply);
    if (s->bell != NULL)
        redisFree(s->bell);
    redisFree(s->link);
    memset(s, 0, sizeof *s);
}

void share_topics(struct share *s, ...)
{
    va_list args;
    const char *name;

    va_start(args, s);
    for (s->topics = 0; (name = va_arg(args, const char *)) != NULL; s->topics++)
        snprintf(s->topic[s->topics], sizeof s->topic[0], "%s", name);
    va_end(args);
}

/* ---- Sending --------------------------------------------------------------------------------- */

static void begin(struct share *s, int script, int keys)
{
    words.n = words.pack_at = 0;
    words.used = words.packed = 0;
    word("EVALSHA");
    word(s->sha[script]);
    word_number(keys);
}

static void word_keys(const struct share *s, const char *const *names)
{
    for (; *names != NULL; names++) {
        if ((*names)[strlen(*names) - 1] != ':')
            word_key(s, *names, "");
        for (int i = 0; (*names)[strlen(*names) - 1] == ':' && i < s->topics; i++)
            word_key(s, *names, s->topic[i]);
    }
}

static void begin_exchange(struct share *s, int script, int lane)
{
    static const char *const fixed[] = { "fence", "writers", "c",  "h",  "w",  "j",  "a", "dead",
                                         "b",     "topics",  "wr", "w:", "t:", "l:", NULL };
    int kind = kind_of(s, script);
    bool numbered = script < RANKS && script != ASIDE;

    begin(s, kind, 0);
    word_keys(s, fixed);
    word_keys(s, scripts[kind]->behind);
    words.at[2] = words.text + words.used;
    words.len[2] = (size_t)snprintf(words.text + words.used, 8, "%d", words.n - 3);
    words.used += 8;
    word(s->fence);
    word(s->lane[lane]);
    pack_double(numbered ? ++s->number[lane] : 0);
    pack_double(s->stamp);
    pack((uint64_t)s->topics, 1);
    word_bytes(words.pack, 0); /* how long it is in the end says send_words() */
    words.pack_at = words.n - 1;
    for (int i = 0; i < s->topics; i++)
        word(s->topic[i]);
}

static const redisReply *element(const struct share *s, size_t i)
{
    if (s->reply->type != REDIS_REPLY_ARRAY || i >= s->reply->elements)
        share_fail("an answer is too short");
    return s->reply->element[i];
}

static int64_t number_at(const struct share *s, size_t i)
{
    const redisReply *r = element(s, i);

    if (r->type == REDIS_REPLY_STRING)
        return strtoll(r->str, NULL, 10);
    if (r->type != REDIS_REPLY_INTEGER)
        share_fail("an answer has no number");
    return r->integer;
}

static redisReply *ask_words(struct share *s)
{
    redisReply *r = redisCommandArgv(s->link, words.n, words.at, words.len);

    if (r == NULL)
        share_fail("connection lost");
    return r;
}

/* Sends it.  1: done, and begins with stamp and time. */
static int send_words(struct share *s)
{
    struct share_answer *a = &s->answer;

    if (s->reply != NULL)
        freeReplyObject(s->reply);
    memset(a, 0, sizeof *a);
    if (words.pack_at > 0)
        words.len[words.pack_at] = words.packed;
    s->reply = ask_words(s);
    a->code = 'E';
    if (s->reply->type == REDIS_REPLY_ERROR)
        snprintf(a->error, sizeof a->error, "%s", s->reply->str);
    if (s->reply->type != REDIS_REPLY_ARRAY)
        return 0;
    if (element(s, 0)->type == REDIS_REPLY_STRING) {
        a->code = element(s, 0)->str[0];
        return 0;
    }
    a->code = 'D';
    a->stamp = number_at(s, 0);
    a->now = number_at(s, 1);
    if (a->stamp > s->stamp)
        s->stamp = a->stamp;
    return 1;
}

static void status_at(struct share *s, size_t i)
{
    snprintf(s->answer.status, sizeof s->answer.status, "%s", element(s, i)->str);
}

static void send_changes(struct share *s)
{
    if (send_words(s)) {
        status_at(s, 2);
        s->answer.rang = number_at(s, 3);
    }
}

void share_join(struct share *s)
{
    static const char *const fixed[] = { "fence", "writers", "c", "meta", "w",
                                         "p",     "owner",   "j", NULL };

    begin(s, JOIN, 8);
    word_keys(s, fixed);
    word("nonce");
    word("incarnation");
    word_number(3);
    word_number(60000);
    word("host 1");
    word_number(0);
    word(s->capacity);
    word(s->by_rank ? "priority" : "");
    send_words(s);
    if (s->answer.code != 'J')
        return;
    snprintf(s->writer, sizeof s->writer, "%s", element(s, 1)->str);
    snprintf(s->fence, sizeof s->fence, "%s", element(s, 2)->str);
    snprintf(s->lane[0], sizeof s->lane[0], "%s:p", s->writer);
    snprintf(s->lane[1], sizeof s->lane[1], "%s:w", s->writer);
    s->number[0] = s->number[1] = 0;
    s->answer.stamp = s->stamp = number_at(s, 3);
    s->answer.now = number_at(s, 4);
    s->by_rank = number_at(s, 6) != 0;
}

static bool is_of(const struct share_job *job, int topic)
{
    return job->topic == topic || (job->topic == 0 && topic == 1);
}

/* As groups.lua has them. */
static void groups_of(const struct share *s, const struct share_job *jobs, int n)
{
    static char names[SHARE_MOST][128];

    for (int i = 0; i < n; i++) {
        if (jobs[i].group == NULL)
            continue;
        const char *topic = s->topic[jobs[i].topic > 0 ? jobs[i].topic - 1 : 0];
        int len = snprintf(names[i], sizeof names[i], "%s%c%c%s", topic, 0,
                           (int)strlen(jobs[i].group), jobs[i].group);
        word_id(jobs[i].id);
        word_bytes(names[i], (size_t)len);
    }
}

/* The jobs of a topic, first the one that is due first. */
static void places_of(const struct share_job *jobs, int n, int topic)
{
    int first = -1;
    int of = 0;

    for (int i = 0; i < n; i++) {
        if (is_of(&jobs[i], topic)) {
            first = first < 0 || jobs[i].score < jobs[first].score ? i : first;
            of++;
        }
    }
    for (int i = -1; i < n; i++) {
        int job = i < 0 ? first : i;
        if (job >= 0 && i != first && is_of(&jobs[job], topic)) {
            word_number(jobs[job].score);
            word_id(jobs[job].id);
        }
    }
    pack(1, 1);
    pack((uint64_t)of, 2);
}

/* As put_needs.lua has them.  True: there are keys or groups. */
static bool counts_of(const struct share *s, const struct share_job *jobs, int n, bool packs)
{
    int of[5] = { 0 };

    for (int i = 0; i < n; i++) {
        of[0] += jobs[i].entry != NULL;
        of[1] += jobs[i].is_long != 0;
        of[2] += jobs[i].key != NULL;
        of[3] += jobs[i].keeps != 0;
        of[4] += jobs[i].group != NULL;
    }
    if (packs) {
        pack((uint64_t)n, 2);
        for (int i = 0; i < 5; i++)
            pack((uint64_t)of[i], 2);
        pack((uint64_t)s->shut, 1);
    }
    return of[2] + of[4] > 0;
}

void share_put(struct share *s, const struct share_job *jobs, int n)
{
    bool tied = counts_of(s, jobs, n, false);

    share_tied = share_tied || tied;
    begin_exchange(s, tied ? PUT : PUT_PLAIN, 0);
    counts_of(s, jobs, n, true);
    for (int i = 0; i < n; i++)
        word_pair(jobs[i].id, jobs[i].record != NULL ? jobs[i].record : "record");
    for (int i = 0; i < n; i++)
        if (jobs[i].entry != NULL)
            word_pair(jobs[i].id, jobs[i].entry);
    for (int i = 0; i < n; i++) {
        if (jobs[i].is_long) {
            word_id(jobs[i].id);
            word_number((int64_t)strlen(jobs[i].record));
        }
    }
    for (int t = 1; t <= s->topics; t++)
        places_of(jobs, n, t);
    for (int i = 0; i < n; i++) {
        if (jobs[i].key != NULL) {
            word_pair(jobs[i].id, jobs[i].key);
            word(jobs[i].from != NULL ? jobs[i].from : "");
        }
    }
    for (int i = 0; i < n; i++)
        if (jobs[i].keeps)
            word_id(jobs[i].id);
    groups_of(s, jobs, n);
    send_changes(s);
}

/* Those of one kind and topic stand together; each share_outcome keeps its place in the order. */
static int run_of(const struct share_outcome *done, int n)
{
    int same = 1;

    while (same < n && done[same].kind == done[0].kind && done[same].topic == done[0].topic &&
           (done[0].kind != 'e' || done[same].score == done[0].score))
        same++;
    return same;
}

static void outcome_words(const struct share_outcome *done, int n)
{
    const char kind = done[0].kind;

    pack((unsigned char)kind, 1);
    pack((uint64_t)done[0].topic, 1);
    pack((uint64_t)n, 2);
    size_t runs_at = words.packed;
    int runs = 0;
    pack(0, 2);
    for (int i = 0; i < n; i++)
        word_id(done[i].id);
    for (int i = 0, many; i < n; i += many, runs++) {
        for (many = 1; i + many < n && done[i + many].lease == done[i].lease;)
            many++;
        pack((uint64_t)many, 2);
        word_number(done[i].lease);
    }
    words.pack[runs_at] = (char)(runs & 0xff);
    words.pack[runs_at + 1] = (char)(runs >> 8);
    if (kind == 'e')
        word_number(done[0].score);
    for (int i = 0; i < n && kind == 'K'; i++)
        word_number(done[i].score);
    for (int i = 0; i < n && strchr("noObt", kind) != NULL; i++)
        word_pair(done[i].id, done[i].entry);
    for (int i = 0; i < n && strchr("noObr", kind) != NULL; i++) {
        word_number(done[i].score);
        word_id(done[i].id);
    }
    for (int i = 0; i < n && kind == 'O'; i++)
        word_number(done[i].score);
}

static void read_jobs(struct share *s)
{
    struct share_answer *a = &s->answer;
    struct share_job *job = a->job;
    size_t at = 8;

    for (; at < s->reply->elements && element(s, at)->type == REDIS_REPLY_ARRAY; at++) {
        redisReply *const *group = element(s, at)->element;

        for (size_t i = 0; i < group[3]->elements; i++, job++) {
            if (job == a->job + a->count)
                share_fail("more jobs than an answer counts");
            job->topic = (int)group[0]->integer;
            memcpy(job->id, group[1]->str + i * SHARE_ID, SHARE_ID);
            job->over = group[2]->elements > 0 ? atoll(group[2]->element[i]->str) : 0;
            job->record = group[3]->element[i]->str;
            job->entry = group[4]->elements > 0 ? group[4]->element[i]->str : NULL;
            job->entry = job->entry != NULL ? job->entry : "";
        }
    }
    if (job != a->job + a->count)
        share_fail("fewer jobs than an answer counts");
    for (; at + 1 < s->reply->elements; at += 2, a->heads++) {
        snprintf(a->name[a->heads], sizeof a->name[0], "%s", element(s, at)->str);
        a->head[a->heads] = number_at(s, at + 1);
    }
}

void share_work(struct share *s, const struct share_outcome *done, int n, struct share_claim claim)
{
    struct share_answer *a = &s->answer;
    int groups = 0;

    const char *wait = claim.wait != NULL && claim.wait[0] != '\0' ? claim.wait : "n";
    begin_exchange(s, share_tied ? WORK : WORK_PLAIN, 1);
    for (int i = 0; i < n; i += run_of(done + i, n - i))
        groups++;
    pack((uint64_t)groups, 2);
    pack((uint64_t)claim.need, 2);
    pack((uint64_t)claim.extra, 2);
    pack_double(claim.lease_us);
    pack((unsigned char)wait[0], 1);
    pack(wait[1] != '\0' ? (uint64_t)atoi(wait + 1) : (uint64_t)s->topics, 1);
    for (int i = 0; i < n; i += run_of(done + i, n - i))
        outcome_words(done + i, run_of(done + i, n - i));
    if (!send_words(s)) {
        if (a->code == 'G' && !share_tied) { /* nothing was done */
            share_tied = 1;
            share_again(s, 1);
            share_work(s, done, n, claim);
        }
        return;
    }
    status_at(s, 2);
    a->lease = number_at(s, 3);
    a->alarm = number_at(s, 4);
    a->more = number_at(s, 5);
    a->rang = number_at(s, 6);
    a->count = (int)number_at(s, 7);
    read_jobs(s);
}

static void words_of_change(const struct share_change *c)
{
    static char kinds[256][2];

    kinds[(unsigned char)c->kind][0] = c->kind;
    word(kinds[(unsigned char)c->kind]);
    word_number(c->topic);
    word_id(c->id);
    if (c->believed >= 0)
        word_number(c->believed);
    else
        word("");
    word(c->was != NULL ? c->was : "");
    word_number(c->score);
    word(c->entry != NULL ? c->entry : "");
}

void share_edit(struct share *s, const struct share_change *changes, int n)
{
    begin_exchange(s, EDIT, 0);
    word_number(n);
    for (int i = 0; i < n; i++)
        words_of_change(&changes[i]);
    send_changes(s);
}

void share_amend(struct share *s, struct share_change change, const char *was, const char *record,
                 int is_long)
{
    begin_exchange(s, EDIT, 0);
    word_number(1);
    words_of_change(&change);
    word(was);
    word(record);
    word(is_long ? "99999" : "");
    word("");
    send_changes(s);
}

void share_beat_for(struct share *s, int64_t turn)
{
    begin_exchange(s, BEAT, 1);
    word("host 1");
    word_number(60000);
    word_number(turn);
    word_number(0);
    word_number(0);
    word_number(s->waits_room);
    if (send_words(s)) {
        s->answer.room = number_at(s, 6);
        s->answer.capacity = number_at(s, 7);
        s->answer.turn = number_at(s, 5);
        s->answer.alarm = number_at(s, 2);
        s->answer.rang = number_at(s, 3);
        s->answer.late = number_at(s, 4);
    }
}

void share_leave(struct share *s)
{
    begin_exchange(s, LEAVE, 1);
    word(s->lane[0]);
    if (send_words(s)) {
        s->answer.left = number_at(s, 2);
        s->answer.rang = number_at(s, 3);
    }
}

redisReply *share_census(struct share *s)
{
    static const char *const fixed[] = { "j", "dead", "p", "h", NULL };

    begin(s, CENSUS, 4 + 3 * s->topics);
    word_keys(s, fixed);
    for (int i = 0; i < s->topics; i++) {
        word_key(s, "t:", s->topic[i]);
        word_key(s, "l:", s->topic[i]);
        word_key(s, "g:", s->topic[i]);
    }
    return ask_words(s);
}

redisReply *share_page(struct share *s, int max, int64_t score, const char *id)
{
    begin(s, PAGE, 2);
    word_key(s, "t:", s->topic[0]);
    word_key(s, "g:", s->topic[0]);
    word_number(max);
    if (score < 0)
        word("");
    else
        word_number(score);
    word(id);
    return ask_words(s);
}

void share_aside(struct share *s, const char *id)
{
    begin_exchange(s, ASIDE, 1);
    word_id(id);
    (void)send_words(s);
}
