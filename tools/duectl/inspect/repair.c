/* repair.c - what duectl verify --repair does about what it found.
 *
 * It becomes the owner for that time, as a program that opens the queue would, so nobody else
 * writes meanwhile; and each change is guarded by the fence, so nothing is written if somebody has
 * taken the queue over after all.  A queue that many processes share becomes one that is owned for
 * that time: what was out waits again, and what only a shared queue has is made anew at the end.
 */
#include "inspect/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "due/redis.h"

#define OPEN_NS DUE_S(2)

/* Also whom opening waits for, and what for. */
static void log_text(void *queue, enum due_log_level level, const char *text)
{
    (void)queue;
    (void)level;
    fprintf(stderr, "duectl: %s\n", text);
}

static int64_t wall_now(void *clock)
{
    struct timespec now;

    (void)clock;
    clock_gettime(CLOCK_REALTIME, &now);
    return DUE_S(now.tv_sec) + now.tv_nsec;
}

static bool say(int rc, const due_error *error)
{
    fprintf(stderr, "duectl: not repaired: %s%s%s\n",
            error->text[0] != '\0' ? error->text : due_error_text(rc),
            error->hint[0] == '\0' ? "" : "; ", error->hint);
    return false;
}

/* Which fence is ours: nobody can have come after us so soon. */
static bool read_fence(struct ctl_repair *r)
{
    redisReply *answer = CTL_ASK(r->server, "GET", r->keys->fence);
    bool fine = ctl_answer_is(answer, REDIS_REPLY_STRING, "fence");

    if (fine)
        snprintf(r->fence, sizeof r->fence, "%s", answer->str);
    freeReplyObject(answer);
    return fine;
}

bool ctl_repair_begin(struct ctl_repair *r, const char *url, const char *queue, bool shared)
{
    due_redis_options options = { DUE_REDIS_OPTIONS_INIT, .client_name = "duectl" };
    struct due_store_open how = { .name = queue, .now = wall_now, .log = log_text };
    due_error error = { "", "" };
    int rc;

    options.allow_eviction = 1; /* it cannot be worse for it */
    rc = due_redis_open(&r->store, url, &options, &error);
    if (rc == 0 && shared)
        rc = due_redis_open(&r->again, url, &options, &error);
    if (rc != 0) {
        due_redis_free(r->store);
        r->store = NULL;
        return say(rc, &error);
    }
    r->queue = queue;
    how.until_ns = due__mono_ns() + OPEN_NS;
    rc = r->store->verbs->open(r->store, &how, &r->info, &error);
    if (rc == 0 && read_fence(r)) {
        r->renewed_ns = due__mono_ns();
        return true;
    }
    if (rc == 0)
        r->store->verbs->close(r->store, due__mono_ns() + OPEN_NS);
    else
        say(rc, &error);
    due_redis_free(r->store);
    due_redis_free(r->again);
    r->store = r->again = NULL;
    return false;
}

bool ctl_repair_end(struct ctl_repair *r)
{
    if (r->store == NULL)
        return true;
    r->store->verbs->close(r->store, due__mono_ns() + OPEN_NS);
    due_redis_free(r->store);
    r->store = NULL;
    return ctl_share_again(r->again, r->queue) == 0;
}

/* ---- One change ------------------------------------------------------------------------------ */

/* The lease is renewed as often as the library does it. */
static bool renew(struct ctl_repair *r)
{
    int64_t now = due__mono_ns();
    int64_t held;

    if (now - r->renewed_ns < r->info.renew_ns)
        return true;
    r->renewed_ns = now;
    return r->store->verbs->renew(r->store, &held, now + OPEN_NS) == 0;
}

static bool guard(struct ctl_repair *r)
{
    struct due__link *l = r->server->link;
    redisReply *a[2];
    bool ours;

    if (!renew(r))
        return false;
    due__link_words(l, 2, (const char *const[]){ "WATCH", r->keys->fence });
    due__link_words(l, 2, (const char *const[]){ "GET", r->keys->fence });
    if (!ctl_server_go(r->server, 2, a))
        return false;
    ours = due__reply_is_text(a[1]) && strcmp(a[1]->str, r->fence) == 0;
    ctl_answers_free(2, a);
    return ours;
}

/* A hash's field of this job is removed. */
static size_t remove_field(struct ctl_repair *r, const char *key, const struct ctl_finding *f)
{
    due__link_command(r->server->link, 3);
    due__link_text(r->server->link, "HDEL");
    due__link_text(r->server->link, key);
    due__link_bytes(r->server->link, f->id.byte, DUE_STORE_ID_BYTES);
    return 1;
}

static bool is_same(struct ctl_text a, struct ctl_text b)
{
    if (a.at == NULL || b.at == NULL)
        return a.at == b.at;
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

/* Out of all that it stands in, but @but (NULL: of everything). */
static size_t leave_topics(struct ctl_repair *r, const struct ctl_finding *f,
                           const struct ctl_text *but)
{
    struct due__link *l = r->server->link;
    size_t n = 0;

    for (size_t i = 0; i < f->in_count; i++) {
        if (but != NULL && is_same(f->in[i], *but))
            continue;
        due__link_command(l, 3);
        due__link_text(l, "ZREM");
        ctl_topic_key(r->server, r->keys, f->in[i]);
        due__link_bytes(l, f->id.byte, DUE_STORE_ID_BYTES);
        n++;
    }
    return n;
}

/* Its bytes go where the library sets damaged records aside. */
static size_t set_aside(struct ctl_repair *r, const struct ctl_finding *f)
{
    struct due__link *l = r->server->link;
    bool there = f->record != NULL && due__reply_is_text(f->record);

    due__link_command(l, 4);
    due__link_text(l, there ? "HSET" : "HSETNX");
    due__link_text(l, r->keys->aside);
    due__link_bytes(l, f->id.byte, DUE_STORE_ID_BYTES);
    due__link_bytes(l, there ? f->record->str : "", there ? (size_t)f->record->len : 0);
    return 1 + leave_topics(r, f, NULL) + remove_field(r, r->keys->jobs, f) +
           remove_field(r, r->keys->again, f);
}

/* One argument each: the key `topics`, and a name. */
static void name_topic(struct ctl_repair *r, struct ctl_text topic)
{
    due__link_text(r->server->link, r->keys->topics);
    due__link_bytes(r->server->link, topic.at, topic.len);
}

/* A topic that is not entered is not found by whoever opens the queue. */
static void enter_topic(struct ctl_repair *r, struct ctl_text topic)
{
    due__link_command(r->server->link, 4);
    due__link_text(r->server->link, "HSETNX");
    name_topic(r, topic);
    due__link_text(r->server->link, "0");
}

/* Where its record says. */
static size_t put_in_place(struct ctl_repair *r, const struct ctl_finding *f)
{
    struct due__link *l = r->server->link;
    bool dead = f->topic.at == NULL;

    if (!dead)
        enter_topic(r, f->topic);
    due__link_command(l, 4);
    due__link_text(l, "ZADD");
    ctl_topic_key(r->server, r->keys, f->topic);
    due__link_number(l, f->score);
    due__link_bytes(l, f->id.byte, DUE_STORE_ID_BYTES);
    return (dead ? 1u : 2u) + leave_topics(r, f, &f->topic);
}

static size_t ask(struct ctl_repair *r, const struct ctl_finding *f)
{
    switch (f->wrong) {
    case CTL_NO_RECORD:
    case CTL_DAMAGED:
        return set_aside(r, f);
    case CTL_NOWHERE:
    case CTL_TWICE:
    case CTL_SHIFTED:
        return put_in_place(r, f);
    default:
        return remove_field(r, r->keys->again, f);
    }
}

/* After @n commands in a transaction.  True: it was done. */
static bool done(struct ctl_repair *r, size_t n)
{
    redisReply **got = calloc(n + 2, sizeof(redisReply *)); /* MULTI's, the commands', EXEC's */

    if (got == NULL) {
        due__link_forget(r->server->link); /* or what is asked next would stand in it */
        return false;
    }
    due__link_words(r->server->link, 1, (const char *const[]){ "EXEC" });
    bool fine = ctl_server_go(r->server, n + 2, got);
    if (fine) {
        fine = got[n + 1]->type == REDIS_REPLY_ARRAY;
        ctl_answers_free(n + 2, got);
    }
    free(got);
    return fine;
}

bool ctl_repair_job(struct ctl_repair *r, const struct ctl_finding *found)
{
    if (!guard(r))
        return false;
    due__link_words(r->server->link, 1, (const char *const[]){ "MULTI" });
    return done(r, ask(r, found));
}

/* Nothing is set for it: no pause, and no limit; and that is watched. */
static bool is_plain(struct ctl_repair *r, struct ctl_text topic, bool *plain)
{
    struct due__link *l = r->server->link;
    redisReply *a[2];

    due__link_words(l, 2, (const char *const[]){ "WATCH", r->keys->topics });
    due__link_command(l, 3);
    due__link_text(l, "HGET");
    name_topic(r, topic);
    if (!ctl_server_go(r->server, 2, a))
        return false;
    *plain = due__reply_is_text(a[1]) && strcmp(a[1]->str, "0") == 0;
    ctl_answers_free(2, a);
    return true;
}

bool ctl_repair_topic(struct ctl_repair *r, struct ctl_text topic, bool enter)
{
    struct due__link *l = r->server->link;
    bool plain = true;

    if (!guard(r) || (!enter && !is_plain(r, topic, &plain)))
        return false;
    if (!plain)
        return true;
    due__link_words(l, 1, (const char *const[]){ "MULTI" });
    if (enter) {
        enter_topic(r, topic);
    } else {
        due__link_command(l, 3);
        due__link_text(l, "HDEL");
        name_topic(r, topic);
    }
    return done(r, 1);
}

bool ctl_repair_key(struct ctl_repair *r, struct ctl_text key, const due_id *id)
{
    struct due__link *l = r->server->link;

    if (!guard(r))
        return false;
    due__link_words(l, 1, (const char *const[]){ "MULTI" });
    due__link_command(l, id != NULL ? 4 : 3);
    due__link_text(l, id != NULL ? "HSET" : "HDEL");
    due__link_text(l, r->keys->unique);
    due__link_bytes(l, key.at, key.len);
    if (id != NULL)
        due__link_bytes(l, id->byte, DUE_STORE_ID_BYTES);
    due__link_command(l, 3);
    due__link_text(l, "ZREM");
    due__link_text(l, r->keys->kept);
    due__link_bytes(l, key.at, key.len);
    return done(r, 2);
}
