/* keys.c - the keys of a stored queue, and its jobs page by page; nothing is written. */
#include "inspect/server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    PAGE = 512,
    HEAD = 9 /* answers that say what a queue is */
};

void ctl_keys_make(struct ctl_keys *k, const char *queue)
{
    const struct {
        char *key;
        const char *end;
    } all[] = { { k->meta, "meta" }, { k->fence, "fence" },     { k->owner, "owner" },
                { k->jobs, "j" },    { k->again, "a" },         { k->topics, "topics" },
                { k->aside, "q" },   { k->dead, "dead" },       { k->unique, "k" },
                { k->kept, "kx" },   { k->writers, "writers" }, { k->people, "p" },
                { k->waits, "w" },   { k->rings, "r:" },        { k->waits_room, "wr" } };

    snprintf(k->base, sizeof k->base, "due:{%s}:", queue);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        snprintf(all[i].key, sizeof k->meta, "%s%s", k->base, all[i].end);
}

/* ---- The head -------------------------------------------------------------------------------- */

/* Who owns it, for people, into @head->owner. */
static void show_owner(struct ctl_head *head, const redisReply *owner, const redisReply *left)
{
    char shown[160];
    const char *life;

    due__owner_show(owner->str, shown, sizeof shown);
    switch (due__owner_life(owner->str)) {
    case DUE__OWNER_LIVES:
        life = ", which lives";
        break;
    case DUE__OWNER_DEAD:
        life = ", which is gone";
        break;
    default:
        life = "";
    }
    snprintf(head->owner, sizeof head->owner, "%s%s; its lease ends in %.1f s", shown, life,
             left->type == REDIS_REPLY_INTEGER ? (double)left->integer / 1000 : 0.0);
}

static void say_owner(struct ctl_head *head, const redisReply *owner, const redisReply *left,
                      const redisReply *people, const char *mode)
{
    if (strcmp(mode, "owning") == 0 || strcmp(mode, "sharing") == 0)
        ctl_report_line(
            CTL_NOTABLE, "mode    %s, and that %s",
            mode[0] == 'o' ? "shared before, becomes owned" : "owned before, becomes shared",
            due__reply_is_text(owner) ? "is under way"
                                      : "was interrupted: the next opening goes on with it");
    head->owner[0] = '\0';
    if (strcmp(mode, "shared") == 0) {
        head->processes = (uint64_t)people->integer;
        ctl_report_line(CTL_PLAIN,
                        "owner   none, it is shared: %s; %lld processes were seen within a day",
                        due__reply_is_text(owner) ? "processes have it open" : "nobody has it open",
                        people->integer);
        return;
    }
    if (due__reply_is_text(owner))
        show_owner(head, owner, left);
    ctl_report_line(CTL_PLAIN, "owner   %s", head->owner[0] == '\0' ? "none" : head->owner);
}

/* The value of a field of meta, or "". */
static const char *meta_text(const redisReply *meta, const char *field)
{
    for (size_t i = 0; i + 1 < meta->elements; i += 2) {
        const redisReply *name = meta->element[i];
        const redisReply *value = meta->element[i + 1];

        if (due__reply_is_text(name) && strcmp(name->str, field) == 0)
            return due__reply_is_text(value) ? value->str : "";
    }
    return "";
}

/* The same of a number, or -1. */
static int64_t meta_number(const redisReply *meta, const char *field)
{
    const char *text = meta_text(meta, field);
    uint64_t number;

    return due__reply_digits(text, strlen(text), &number) ? (int64_t)number : -1;
}

static int head_judge(struct ctl_server *s, const char *queue, redisReply **a,
                      struct ctl_head *head)
{
    static const char *const names[HEAD] = { "meta", "owner", "owner", "j", "a",
                                             "q",    "dead",  "kx",    "p" };
    static const int types[HEAD] = { REDIS_REPLY_ARRAY,   -1,
                                     REDIS_REPLY_INTEGER, REDIS_REPLY_INTEGER,
                                     REDIS_REPLY_INTEGER, REDIS_REPLY_INTEGER,
                                     REDIS_REPLY_INTEGER, REDIS_REPLY_INTEGER,
                                     REDIS_REPLY_INTEGER };

    for (size_t i = 0; i < HEAD; i++) {
        bool fine = types[i] < 0 ? a[i]->type == REDIS_REPLY_NIL || due__reply_is_text(a[i])
                                 : a[i]->type == types[i];

        if (!fine) {
            ctl_answer_is(a[i], types[i], names[i]);
            return ctl_server_status(s);
        }
    }
    if (a[0]->elements == 0) {
        fprintf(stderr, "duectl: %s: there is no such queue\n", queue);
        return CTL_FAULTS;
    }
    const char *mode = meta_text(a[0], "mode");
    head->shared =
        strcmp(mode, "shared") == 0 || strcmp(mode, "owning") == 0 || strcmp(mode, "sharing") == 0;
    if (meta_number(a[0], "least_reader") >
        (head->shared ? DUE__REDIS_SHARED : DUE__REDIS_FORMAT)) {
        fprintf(stderr, "duectl: %s: %s\n", queue, due_error_text(DUE_EVERSION));
        return CTL_FAULTS;
    }
    head->settled = head->shared && strcmp(mode, "shared") == 0;
    head->by_rank = strcmp(meta_text(a[0], "order"), "priority") == 0;
    head->owned = a[1]->type != REDIS_REPLY_NIL;
    head->jobs = (uint64_t)a[3]->integer;
    head->again = (uint64_t)a[4]->integer;
    head->aside = (uint64_t)a[5]->integer;
    head->dead = (uint64_t)a[6]->integer;
    head->kept = (uint64_t)a[7]->integer;
    return 0;
}

int ctl_head_read(struct ctl_server *s, const struct ctl_keys *k, const char *queue,
                  struct ctl_head *head)
{
    redisReply *a[HEAD];
    int status;

    due__link_words(s->link, 2, (const char *const[]){ "HGETALL", k->meta });
    due__link_words(s->link, 2, (const char *const[]){ "GET", k->owner });
    due__link_words(s->link, 2, (const char *const[]){ "PTTL", k->owner });
    due__link_words(s->link, 2, (const char *const[]){ "HLEN", k->jobs });
    due__link_words(s->link, 2, (const char *const[]){ "HLEN", k->again });
    due__link_words(s->link, 2, (const char *const[]){ "HLEN", k->aside });
    due__link_words(s->link, 4, (const char *const[]){ "ZCOUNT", k->dead, "-inf", "+inf" });
    due__link_words(s->link, 4, (const char *const[]){ "ZCOUNT", k->kept, "-inf", "+inf" });
    due__link_words(s->link, 2, (const char *const[]){ "HLEN", k->people });
    if (!ctl_server_go(s, HEAD, a))
        return CTL_BROKEN;
    status = head_judge(s, queue, a, head);
    if (status == 0) {
        ctl_report_line(CTL_PLAIN, "queue   %s at %s", queue, s->where);
        say_owner(head, a[1], a[2], a[8], meta_text(a[0], "mode"));
        if (head->by_rank && head->shared)
            ctl_report_line(CTL_PLAIN, "order   by priority");
    }
    ctl_answers_free(HEAD, a);
    return status;
}

int ctl_queue_is_there(struct ctl_server *s, const struct ctl_keys *k, const char *queue)
{
    redisReply *there = CTL_ASK(s, "HLEN", k->meta);
    int status = ctl_answer_is(there, REDIS_REPLY_INTEGER, "meta") ? 0 : CTL_BROKEN;

    if (status == 0 && there->integer == 0) {
        fprintf(stderr, "duectl: there is no queue %s at %s\n", queue, s->where);
        status = CTL_FAULTS;
    }
    freeReplyObject(there);
    return status;
}

/* ---- The walk -------------------------------------------------------------------------------- */

void ctl_key_of_topic(struct ctl_server *s, const struct ctl_keys *k, char of,
                      struct ctl_text topic)
{
    char key[sizeof k->base + 2 + DUE_TOPIC_LENGTH];
    int n = snprintf(key, sizeof key, "%s%c:", k->base, of);
    size_t len = topic.len <= DUE_TOPIC_LENGTH ? topic.len : DUE_TOPIC_LENGTH;

    memcpy(key + n, topic.at, len);
    due__link_bytes(s->link, key, (size_t)n + len);
}

void ctl_topic_key(struct ctl_server *s, const struct ctl_keys *k, struct ctl_text topic)
{
    if (topic.at == NULL)
        due__link_text(s->link, k->dead);
    else
        ctl_key_of_topic(s, k, 't', topic);
}

static redisReply *page_ids(struct ctl_server *s, const struct ctl_keys *k, struct ctl_text topic,
                            char letter, int64_t from)
{
    redisReply *ids = NULL;

    due__link_command(s->link, 5);
    due__link_text(s->link, "ZRANGE");
    if (letter != 't')
        ctl_key_of_topic(s, k, letter, topic);
    else
        ctl_topic_key(s, k, topic);
    due__link_number(s->link, from);
    due__link_number(s->link, from + PAGE - 1);
    due__link_text(s->link, "WITHSCORES");
    if (!ctl_server_go(s, 1, &ids))
        return NULL;
    if (ctl_answer_is(ids, REDIS_REPLY_ARRAY, "a topic") && ids->elements % 2 == 0)
        return ids;
    freeReplyObject(ids);
    return NULL;
}

static void ask_for(struct ctl_server *s, const char *key, const redisReply *ids)
{
    due__link_command(s->link, 2 + ids->elements / 2);
    due__link_text(s->link, "HMGET");
    due__link_text(s->link, key);
    for (size_t i = 0; i < ids->elements; i += 2)
        due__link_bytes(s->link, ids->element[i]->str, (size_t)ids->element[i]->len);
}

int64_t ctl_score_read(const redisReply *score)
{
    double us = strtod(score->str, NULL);

    return us >= 0 && us < (double)INT64_MAX ? (int64_t)us : -1;
}

static bool show_page(struct ctl_text topic, const redisReply *ids, redisReply **answers,
                      ctl_visit *visit, void *ctx)
{
    size_t n = ids->elements / 2;

    if (!ctl_answer_is(answers[0], REDIS_REPLY_ARRAY, "j") ||
        !ctl_answer_is(answers[1], REDIS_REPLY_ARRAY, "a") || answers[0]->elements != n ||
        answers[1]->elements != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        struct ctl_found found = { .id = ids->element[2 * i],
                                   .record = answers[0]->element[i],
                                   .entry = answers[1]->element[i],
                                   .topic = topic };

        found.score = ctl_score_read(ids->element[2 * i + 1]);
        if (!visit(ctx, &found))
            return false;
    }
    return true;
}

static bool all_texts(const redisReply *ids)
{
    for (size_t i = 0; i < ids->elements; i++) {
        if (!due__reply_is_text(ids->element[i]))
            return false;
    }
    return true;
}

static bool walk(struct ctl_server *s, const struct ctl_keys *k, struct ctl_text topic, char letter,
                 ctl_visit *visit, void *ctx)
{
    bool fine = true;
    size_t n = PAGE;

    for (int64_t from = 0; fine && n == PAGE; from += PAGE) {
        redisReply *ids = page_ids(s, k, topic, letter, from);
        redisReply *answers[2];

        if (ids == NULL)
            return false;
        n = ids->elements / 2;
        fine = n <= PAGE && all_texts(ids);
        if (!fine)
            fprintf(stderr, "duectl: a topic: an answer that makes no sense\n");
        if (fine && n > 0) {
            ask_for(s, k->jobs, ids);
            ask_for(s, k->again, ids);
            fine = ctl_server_go(s, 2, answers);
            if (fine) {
                fine = show_page(topic, ids, answers, visit, ctx);
                ctl_answers_free(2, answers);
            }
        }
        freeReplyObject(ids);
    }
    return fine;
}

bool ctl_walk(struct ctl_server *s, const struct ctl_keys *k, struct ctl_text topic,
              ctl_visit *visit, void *ctx)
{
    return walk(s, k, topic, 't', visit, ctx);
}

bool ctl_walk_claimed(struct ctl_server *s, const struct ctl_keys *k, struct ctl_text topic,
                      ctl_visit *visit, void *ctx)
{
    return walk(s, k, topic, 'l', visit, ctx);
}

bool ctl_walk_kept_back(struct ctl_server *s, const struct ctl_keys *k, struct ctl_text topic,
                        ctl_visit *visit, void *ctx)
{
    return walk(s, k, topic, 'g', visit, ctx);
}

bool ctl_scan(struct ctl_server *s, const char *command, const char *key, const char *match,
              ctl_page *add, void *ctx)
{
    char cursor[32] = "0";
    bool more = true;

    while (more) {
        redisReply *page = key != NULL
                               ? CTL_ASK(s, command, key, cursor, "COUNT", "1000")
                               : CTL_ASK(s, command, cursor, "MATCH", match, "COUNT", "1000");
        bool fine = ctl_answer_is(page, REDIS_REPLY_ARRAY, command) &&
                    due__reply_is_array(page, 2) && due__reply_is_text(page->element[0]) &&
                    page->element[0]->len < (int)sizeof cursor &&
                    page->element[1]->type == REDIS_REPLY_ARRAY && add(ctx, page->element[1]);

        if (fine)
            memcpy(cursor, page->element[0]->str, (size_t)page->element[0]->len + 1);
        freeReplyObject(page);
        if (!fine)
            return false;
        more = strcmp(cursor, "0") != 0;
    }
    return true;
}

/* What a queue takes back; anything else it has set aside (src/store/restore.c). */
static bool is_sane(const due_record *r)
{
    return r->deadline_ns >= 0 && r->until_ns >= 0 && (r->ttl_ns == 0 || r->expires_ns == 0) &&
           (r->every_ns > 0 || r->repeat == DUE_REPEAT_SKIP);
}

int ctl_record_read(due_record *record, struct due__record_room *room, const redisReply *id,
                    const redisReply *bytes, const redisReply *entry)
{
    if (bytes == NULL || bytes->type == REDIS_REPLY_NIL)
        return DUE_ENOENT;
    int rc = due__redis_read_job(NULL, NULL, record, room, id, bytes, entry);
    return rc == 0 && !is_sane(record) ? DUE_ECORRUPT : rc;
}

bool ctl_stands_in(const due_record *record, struct ctl_text topic)
{
    if (record->cause != 0 || topic.at == NULL)
        return record->cause != 0 && topic.at == NULL;
    return strlen(record->topic) == topic.len && memcmp(record->topic, topic.at, topic.len) == 0;
}

int64_t ctl_score_of(const due_record *record)
{
    return due__redis_score(record->cause != 0 ? record->died_ns : record->until_ns);
}
