/* sharing.c - a queue that many processes share: whether it is one, who they are, and turning one
 * out.  docs/redis-layout.md has the keys.
 */
#include "inspect/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/share/share.h"

/* ---- Is it one? ------------------------------------------------------------------------------ */

int ctl_shared_read(struct ctl_server *s, const struct ctl_keys *k, bool *shared)
{
    redisReply *mode = CTL_ASK(s, "HGET", k->meta, "mode");

    *shared = mode != NULL && due__reply_is_text(mode) && strcmp(mode->str, "shared") == 0;
    if (mode != NULL && mode->type != REDIS_REPLY_NIL &&
        !ctl_answer_is(mode, REDIS_REPLY_STRING, "meta")) {
        freeReplyObject(mode);
        return ctl_server_status(s);
    }
    int status = mode != NULL ? 0 : CTL_BROKEN;
    freeReplyObject(mode);
    return status;
}

int ctl_server_is_shared(const struct ctl_look *look, bool *shared)
{
    struct ctl_server server;
    struct ctl_keys keys;
    int status = ctl_server_open(&server, look->url);

    *shared = false;
    if (status != 0)
        return status;
    ctl_keys_make(&keys, look->queue);
    status = ctl_shared_read(&server, &keys, shared);
    ctl_server_close(&server);
    return status;
}

/* ---- Who they are ---------------------------------------------------------------------------- */

/* The lists that are asked for together. */
enum { OWNER, TOPICS, NUMBERS, ASKED };

static int ask_lists(struct ctl_server *s, const struct ctl_keys *k, redisReply *a[ASKED])
{
    due__link_words(s->link, 2, (const char *const[]){ "GET", k->owner });
    due__link_words(s->link, 2, (const char *const[]){ "HKEYS", k->topics });
    due__link_words(s->link, 2, (const char *const[]){ "HKEYS", k->people });
    if (!ctl_server_go(s, ASKED, a))
        return CTL_BROKEN;
    bool fine = (a[OWNER]->type == REDIS_REPLY_NIL || due__reply_is_text(a[OWNER])) &&
                ctl_answer_is(a[TOPICS], REDIS_REPLY_ARRAY, "topics") &&
                ctl_answer_is(a[NUMBERS], REDIS_REPLY_ARRAY, "p") &&
                due__reply_is_texts(a[TOPICS]) && due__reply_is_texts(a[NUMBERS]);
    if (fine)
        return 0;
    ctl_answers_free(ASKED, a);
    return ctl_server_status(s);
}

/* What is said of all writers @from: a command with their names, or those of their lanes. */
static redisReply *ask_all(struct ctl_server *s, const char *command, const char *key,
                           const redisReply *numbers, const char *lane)
{
    redisReply *answer = NULL;
    char name[32];

    due__link_command(s->link, 2 + numbers->elements);
    due__link_text(s->link, command);
    due__link_text(s->link, key);
    for (size_t i = 0; i < numbers->elements; i++) {
        snprintf(name, sizeof name, "%.24s%s", numbers->element[i]->str, lane);
        due__link_text(s->link, name);
    }
    if (!ctl_server_go(s, 1, &answer))
        return NULL;
    if (ctl_answer_is(answer, REDIS_REPLY_ARRAY, command) &&
        due__reply_is_fields(answer, numbers->elements))
        return answer;
    freeReplyObject(answer);
    return NULL;
}

/* Do they stand in `w`, or in that of a topic?  False: said what went wrong. */
static bool note_waits(struct ctl_server *s, const struct ctl_keys *k, const redisReply *topics,
                       const redisReply *numbers, struct ctl_process *all)
{
    char key[sizeof k->waits + 2 + DUE_TOPIC_LENGTH];

    for (size_t t = 0; t <= topics->elements; t++) {
        snprintf(key, sizeof key, "%s%s%s", k->waits, t == 0 ? "" : ":",
                 t == 0 ? "" : topics->element[t - 1]->str);
        redisReply *scores = ask_all(s, "ZMSCORE", key, numbers, "");
        if (scores == NULL)
            return false;
        for (size_t i = 0; i < numbers->elements; i++)
            all[i].waits = all[i].waits || due__reply_is_text(scores->element[i]);
        freeReplyObject(scores);
    }
    return true;
}

static void note_text(struct ctl_process *p, const redisReply *number, const redisReply *text)
{
    struct due_process_seen seen;
    char host[256];

    if (!due__share_read_process(number, text, &seen, host))
        return;
    p->number = seen.writer;
    p->pid = seen.pid;
    p->started_ns = seen.started_ns;
    p->seen_ns = seen.seen_ns;
    p->held = seen.held;
    snprintf(p->host, sizeof p->host, "%.127s", host);
}

static int by_number(const void *a, const void *b)
{
    const struct ctl_process *p = a;
    const struct ctl_process *q = b;

    return (p->number > q->number) - (p->number < q->number);
}

/* All of them, or NULL: said why not. */
static struct ctl_process *read_all(struct ctl_server *s, const struct ctl_keys *k,
                                    redisReply *const a[ASKED])
{
    size_t n = a[NUMBERS]->elements;
    struct ctl_process *all = calloc(n + 1, sizeof *all);

    if (all == NULL) {
        fprintf(stderr, "duectl: %s\n", due_error_text(DUE_ENOMEM));
        return NULL;
    }
    if (n == 0)
        return all;
    redisReply *texts = ask_all(s, "HMGET", k->people, a[NUMBERS], "");
    redisReply *lanes = texts == NULL ? NULL : ask_all(s, "HMGET", k->writers, a[NUMBERS], ":w");
    bool fine = lanes != NULL && note_waits(s, k, a[TOPICS], a[NUMBERS], all);

    for (size_t i = 0; fine && i < n; i++) {
        note_text(&all[i], a[NUMBERS]->element[i], texts->element[i]);
        all[i].evicted =
            due__reply_is_text(lanes->element[i]) && strcmp(lanes->element[i]->str, "X") == 0;
    }
    freeReplyObject(texts);
    freeReplyObject(lanes);
    if (fine)
        qsort(all, n, sizeof *all, by_number);
    else
        free(all);
    return fine ? all : NULL;
}

/* Of a queue that one process owns, alone. */
static void show_owner(const redisReply *owner, ctl_process_visit *visit, void *ctx)
{
    struct ctl_process p = { .number = 0 };

    if (due__reply_is_text(owner) && due__owner_name(owner->str, p.host, sizeof p.host, &p.pid))
        (void)visit(ctx, &p);
}

static int show_all(struct ctl_server *s, const struct ctl_keys *k, bool shared,
                    ctl_process_visit *visit, void *ctx)
{
    redisReply *a[ASKED];
    int status = ask_lists(s, k, a);

    if (status != 0)
        return status;
    if (!shared) {
        show_owner(a[OWNER], visit, ctx);
    } else {
        struct ctl_process *all = read_all(s, k, a);

        status = all == NULL ? ctl_server_status(s) : 0;
        for (size_t i = 0; all != NULL && i < a[NUMBERS]->elements; i++)
            if (all[i].number != 0 && !visit(ctx, &all[i]))
                break;
        free(all);
    }
    ctl_answers_free(ASKED, a);
    return status;
}

/* A queue that is there: 0, or an exit status. */
static int open_queue(struct ctl_server *s, struct ctl_keys *k, const struct ctl_look *look,
                      bool *shared)
{
    int status = ctl_server_open(s, look->url);

    if (status != 0)
        return status;
    ctl_keys_make(k, look->queue);
    status = ctl_queue_is_there(s, k, look->queue);
    if (status == 0)
        status = ctl_shared_read(s, k, shared);
    if (status != 0)
        ctl_server_close(s);
    return status;
}

int ctl_server_processes(const struct ctl_look *look, ctl_process_visit *visit, void *ctx)
{
    struct ctl_server server;
    struct ctl_keys keys;
    bool shared;
    int status = open_queue(&server, &keys, look, &shared);

    if (status != 0)
        return status;
    status = show_all(&server, &keys, shared, visit, ctx);
    ctl_server_close(&server);
    return status;
}

/* ---- Turning one out ------------------------------------------------------------------------- */

/* 0 or DUE_ENOENT; anything else: said why nothing is known. */
static int evict_one(struct ctl_server *s, const struct ctl_keys *k, const redisReply *topics,
                     const char *number)
{
    redisReply *answer = NULL;

    due__link_command(s->link, 3 + 4 + topics->elements + 2);
    due__link_text(s->link, "EVAL");
    due__link_bytes(s->link, due__script_evict.text, due__script_evict.len);
    due__link_number(s->link, (int64_t)(4 + topics->elements));
    due__link_text(s->link, k->writers);
    due__link_text(s->link, k->people);
    due__link_text(s->link, k->waits);
    due__link_text(s->link, k->waits_room);
    for (size_t t = 0; t < topics->elements; t++) {
        struct ctl_text topic = { topics->element[t]->str, (size_t)topics->element[t]->len };
        ctl_key_of_topic(s, k, 'w', topic);
    }
    due__link_text(s->link, number);
    due__link_text(s->link, k->rings);
    if (!ctl_server_go(s, 1, &answer))
        return DUE_ESTORE;
    int rc = answer->type == REDIS_REPLY_NIL                      ? DUE_ENOENT
             : ctl_answer_is(answer, REDIS_REPLY_STRING, "evict") ? 0
                                                                  : DUE_ESTORE;
    freeReplyObject(answer);
    return rc;
}

static int evict_all(struct ctl_server *s, const struct ctl_keys *k, const struct ctl_look *look,
                     ctl_evict_done *done, void *ctx)
{
    redisReply *topics = CTL_ASK(s, "HKEYS", k->topics);
    bool fine = ctl_answer_is(topics, REDIS_REPLY_ARRAY, "topics") && due__reply_is_texts(topics);
    int rc = fine ? 0 : DUE_ESTORE;

    for (size_t i = 0; i < look->word_count && rc != DUE_ESTORE; i++) {
        rc = evict_one(s, k, topics, look->words[i]);
        if (rc != DUE_ESTORE)
            done(ctx, look->words[i], rc);
    }
    freeReplyObject(topics);
    return rc == DUE_ESTORE ? ctl_server_status(s) : 0;
}

int ctl_server_evict(const struct ctl_look *look, ctl_evict_done *done, void *ctx)
{
    struct ctl_server server;
    struct ctl_keys keys;
    bool shared;
    int status = open_queue(&server, &keys, look, &shared);

    if (status != 0)
        return status;
    if (shared) {
        status = evict_all(&server, &keys, look, done, ctx);
    } else {
        fprintf(stderr, "duectl: the queue %s is owned by one process, alone\n", look->queue);
        status = CTL_FAULTS;
    }
    ctl_server_close(&server);
    return status;
}
