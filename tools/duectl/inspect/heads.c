/* heads.c - whether what only a shared queue has is right; nothing is written.
 *
 * Each topic of which a job can be claimed needs a head in `h` that is no later than that job, or
 * nobody is woken for it; in the order of priority `o:TOPIC` has as many jobs as `t:TOPIC`; `jk`
 * and `b` say something of jobs that are stored.  The queue may be in use: a script leaves all of
 * this right, and each look is one transaction.
 */
#include "inspect/server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHOWN_MAX = 20, /* findings of a kind that are told one by one */
    LOOK = 7        /* commands of one at a topic */
};

struct heads {
    struct ctl_server *server;
    const struct ctl_keys *keys;
    const char *hash; /* that is looked through */
    bool by_rank;
    uint64_t wrong;
};

static const char *name_of(const struct heads *h, const char *end, char key[160])
{
    snprintf(key, 160, "%s%s", h->keys->base, end);
    return key;
}

/* ---- Heads of topics ------------------------------------------------------------------------- */

static void ask_first(struct heads *h, char of, struct ctl_text topic)
{
    due__link_command(h->server->link, 5);
    due__link_text(h->server->link, "ZRANGE");
    ctl_key_of_topic(h->server, h->keys, of, topic);
    due__link_text(h->server->link, "0");
    due__link_text(h->server->link, "0");
    due__link_text(h->server->link, "WITHSCORES");
}

static void ask_count(struct heads *h, char of, struct ctl_text topic)
{
    due__link_command(h->server->link, 2);
    due__link_text(h->server->link, "ZCARD");
    ctl_key_of_topic(h->server, h->keys, of, topic);
}

static void ask_about(struct heads *h, struct ctl_text topic)
{
    struct due__link *l = h->server->link;
    char key[160];

    due__link_words(l, 1, (const char *const[]){ "MULTI" });
    ask_first(h, 't', topic);
    ask_first(h, 'l', topic);
    ask_count(h, 'l', topic);
    due__link_command(l, 3);
    due__link_text(l, "ZSCORE");
    due__link_text(l, name_of(h, "h", key));
    due__link_bytes(l, topic.at, topic.len);
    due__link_command(l, 3);
    due__link_text(l, "HGET");
    due__link_text(l, h->keys->topics);
    due__link_bytes(l, topic.at, topic.len);
    ask_count(h, 't', topic);
    ask_count(h, 'o', topic);
    due__link_words(l, 1, (const char *const[]){ "EXEC" });
}

/* The score of the first member; INT64_MAX: there is none. */
static int64_t first_of(const redisReply *range)
{
    return range->type == REDIS_REPLY_ARRAY && range->elements == 2 &&
                   due__reply_is_text(range->element[1])
               ? ctl_score_read(range->element[1])
               : INT64_MAX;
}

/* When the next of its jobs can be claimed; INT64_MAX: none can. */
static int64_t wanted(redisReply *const *answers)
{
    int64_t waits = first_of(answers[0]);
    int64_t lapses = first_of(answers[1]);
    long long held = answers[2]->type == REDIS_REPLY_INTEGER ? answers[2]->integer : 0;
    long long limit = 0;
    int paused = 0;

    if (due__reply_is_text(answers[4]) &&
        sscanf(answers[4]->str, "%d %lld", &paused, &limit) != 2) /* "0": nothing holds it back */
        paused = 0;
    if (paused != 0)
        return INT64_MAX;
    if (limit > 0 && held >= limit)
        return lapses;
    return waits < lapses ? waits : lapses;
}

/* Whoever `o` lacks comes behind all others; what it has too many of is passed over. */
static void judge_ranks(struct heads *h, struct ctl_text topic, redisReply *const *answers)
{
    if (!h->by_rank || answers[5]->type != REDIS_REPLY_INTEGER ||
        (answers[6]->type == REDIS_REPLY_INTEGER && answers[5]->integer == answers[6]->integer))
        return;
    h->wrong++;
    ctl_report_wrong("topic", topic.at, topic.len, "has other jobs by priority than it has");
}

static bool look_at_topic(struct heads *h, struct ctl_text topic)
{
    redisReply *got[LOOK + 2];

    ask_about(h, topic);
    if (!ctl_server_go(h->server, LOOK + 2, got))
        return false;
    const redisReply *all = got[LOOK + 1];
    bool fine = ctl_answer_is(all, REDIS_REPLY_ARRAY, "a topic") && all->elements == LOOK;
    if (fine) {
        judge_ranks(h, topic, all->element);
        int64_t next = wanted(all->element);
        bool has = due__reply_is_text(all->element[3]);

        if (next != INT64_MAX && (!has || ctl_score_read(all->element[3]) > next)) {
            h->wrong++;
            ctl_report_wrong("topic", topic.at, topic.len,
                             has ? "has a late head: nobody is woken for its jobs"
                                 : "has no head: nobody is woken for its jobs");
        }
    }
    ctl_answers_free(LOOK + 2, got);
    return fine;
}

static bool look_at_topics(struct heads *h)
{
    redisReply *topics = CTL_ASK(h->server, "HKEYS", h->keys->topics);
    bool fine = ctl_answer_is(topics, REDIS_REPLY_ARRAY, "topics") && due__reply_is_texts(topics);

    for (size_t i = 0; fine && i < topics->elements; i++) {
        const redisReply *name = topics->element[i];

        fine = look_at_topic(h, (struct ctl_text){ name->str, (size_t)name->len });
    }
    freeReplyObject(topics);
    return fine;
}

/* ---- What is said of jobs -------------------------------------------------------------------- */

static void ask_field(struct heads *h, const char *key, const redisReply *id)
{
    due__link_command(h->server->link, 3);
    due__link_text(h->server->link, "HEXISTS");
    due__link_text(h->server->link, key);
    due__link_bytes(h->server->link, id->str, (size_t)id->len);
}

/* One whose job was not there. */
static bool look_at_job(struct heads *h, const redisReply *id)
{
    redisReply *got[4];
    char key[160];
    char text[DUE_ID_TEXT];
    char why[48];
    due_id of = { { 0 } };

    due__link_words(h->server->link, 1, (const char *const[]){ "MULTI" });
    ask_field(h, name_of(h, h->hash, key), id);
    ask_field(h, h->keys->jobs, id);
    due__link_words(h->server->link, 1, (const char *const[]){ "EXEC" });
    if (!ctl_server_go(h->server, 4, got))
        return false;
    const redisReply *all = got[3];
    bool fine = ctl_answer_is(all, REDIS_REPLY_ARRAY, "a job") && all->elements == 2;
    if (id->len == DUE_STORE_ID_BYTES)
        memcpy(of.byte, id->str, DUE_STORE_ID_BYTES);
    if (fine && all->element[0]->integer == 1 && all->element[1]->integer == 0 &&
        (++h->wrong <= SHOWN_MAX || ctl_report_is_json())) {
        snprintf(why, sizeof why, "stands in %s without a job", h->hash);
        ctl_report_wrong("job", due_id_format(of, text), DUE_ID_TEXT - 1, why);
    }
    ctl_answers_free(4, got);
    return fine;
}

/* Of a page those that have no record. */
static bool add_page(void *ctx, const redisReply *page)
{
    struct heads *h = ctx;
    size_t n = page->elements / 2;

    if (n == 0)
        return true;
    for (size_t i = 0; i < page->elements; i++)
        if (!due__reply_is_text(page->element[i]))
            return ctl_answer_is(page->element[i], REDIS_REPLY_STRING, h->hash);
    for (size_t i = 0; i < n; i++)
        ask_field(h, h->keys->jobs, page->element[2 * i]);
    redisReply **there = calloc(n, sizeof(redisReply *));
    bool fine = there != NULL && ctl_server_go(h->server, n, there);
    for (size_t i = 0; fine && i < n; i++)
        if (there[i]->type == REDIS_REPLY_INTEGER && there[i]->integer == 0)
            fine = look_at_job(h, page->element[2 * i]);
    if (there != NULL && there[0] != NULL)
        ctl_answers_free(n, there);
    free(there);
    return fine;
}

bool ctl_heads_check(struct ctl_server *s, const struct ctl_keys *k, const struct ctl_head *head,
                     uint64_t *wrong)
{
    static const char *const hashes[] = { "jk", "b" };
    struct heads h = { .server = s, .keys = k, .by_rank = head->by_rank };
    bool fine = look_at_topics(&h);
    char key[160];

    for (size_t i = 0; fine && i < sizeof hashes / sizeof hashes[0]; i++) {
        h.hash = hashes[i];
        fine = ctl_scan(s, "HSCAN", name_of(&h, h.hash, key), NULL, add_page, &h);
    }
    *wrong += h.wrong;
    return fine;
}
