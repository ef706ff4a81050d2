/* server_jobs.c - the jobs of a queue on a server, one after another. */
#include "inspect/server.h"

#include <stdio.h>
#include <string.h>

struct shown {
    ctl_jobs_visit *visit;
    void *ctx;
    bool stopped;   /* by the visit */
    bool shared;    /* the queue: */
    bool claimed;   /* what is shown now is out, */
    int64_t now_us; /* at this time of the server */
};

/* Of a shared queue the server says which jobs are on a lease, and until when. */
static void note_lease(due_record *record, bool claimed, int64_t score_us, int64_t now_us)
{
    static const struct ctl_job_mark leased = { .lease = CTL_LEASED };
    static const struct ctl_job_mark waits = { .lease = CTL_NOT_LEASED };

    record->mark = claimed && score_us > now_us ? &leased : &waits;
    record->mark_len = sizeof leased;
    if (claimed && score_us >= 0 && score_us < INT64_MAX / 1000)
        record->until_ns = score_us * 1000;
}

/* False: said why it is not known. */
static bool read_time(struct ctl_server *s, int64_t *now_us)
{
    redisReply *time = CTL_ASK(s, "TIME");
    uint64_t part[2] = { 0, 0 };
    bool fine = ctl_answer_is(time, REDIS_REPLY_ARRAY, "time") && due__reply_is_array(time, 2);

    for (size_t i = 0; fine && i < 2; i++)
        fine = due__reply_is_text(time->element[i]) &&
               due__reply_digits(time->element[i]->str, (size_t)time->element[i]->len, &part[i]);
    freeReplyObject(time);
    *now_us = (int64_t)(part[0] * 1000000 + part[1]);
    return fine;
}

static bool show(void *ctx, const struct ctl_found *found)
{
    struct shown *s = ctx;
    struct due__record_room room;
    due_record record = { .topic = "" };
    int rc = ctl_record_read(&record, &room, found->id, found->record, found->entry);
    due_id id = { { 0 } };

    if (found->id->len == DUE_STORE_ID_BYTES)
        memcpy(id.byte, found->id->str, DUE_STORE_ID_BYTES);
    if (s->shared && rc == 0 && record.cause == 0)
        note_lease(&record, s->claimed, found->score, s->now_us);
    s->stopped = !s->visit(s->ctx, id, rc, &record);
    return !s->stopped;
}

static int show_all(struct ctl_server *s, const struct ctl_keys *k, struct shown *to)
{
    redisReply *topics = CTL_ASK(s, "HKEYS", k->topics);
    bool fine = ctl_answer_is(topics, REDIS_REPLY_ARRAY, "topics");

    for (size_t i = 0; fine && i < topics->elements; i++) {
        const redisReply *topic = topics->element[i];

        struct ctl_text name = { topic->str, (size_t)topic->len };

        /* As a job goes, so that none is missed; one that goes meanwhile may be seen twice. */
        to->claimed = false;
        fine = due__reply_is_text(topic) &&
               (!to->shared || ctl_walk_kept_back(s, k, name, show, to)) &&
               ctl_walk(s, k, name, show, to);
        to->claimed = to->shared;
        fine = fine && (!to->shared || ctl_walk_claimed(s, k, name, show, to));
    }
    freeReplyObject(topics);
    to->claimed = false;
    fine = fine && ctl_walk(s, k, CTL_DEAD, show, to);
    return fine || to->stopped ? CTL_FINE : ctl_server_status(s);
}

/* 0, or an exit status. */
static int begin(struct ctl_server *s, const struct ctl_keys *k, const struct ctl_look *look,
                 struct shown *to)
{
    int status = ctl_queue_is_there(s, k, look->queue);

    if (status == 0)
        status = ctl_shared_read(s, k, &to->shared);
    if (status == 0 && to->shared && !read_time(s, &to->now_us))
        status = ctl_server_status(s);
    return status;
}

int ctl_server_jobs(const struct ctl_look *look, ctl_jobs_visit *visit, void *ctx)
{
    struct shown to = { .visit = visit, .ctx = ctx };
    struct ctl_server server;
    struct ctl_keys keys;
    int status = ctl_server_open(&server, look->url);

    if (status != 0)
        return status;
    ctl_keys_make(&keys, look->queue);
    status = begin(&server, &keys, look, &to);
    if (status == 0)
        status = show_all(&server, &keys, &to);
    ctl_server_close(&server);
    return status;
}

static void ask_for(struct ctl_server *s, const char *key, due_id id)
{
    due__link_command(s->link, 3);
    due__link_text(s->link, "HGET");
    due__link_text(s->link, key);
    due__link_bytes(s->link, (const char *)id.byte, DUE_STORE_ID_BYTES);
}

/* When the lease of a job ends, if it is on one.  False: said why that is not known. */
static bool ask_lease(struct ctl_server *s, const struct ctl_keys *k, due_record *record,
                      int64_t now_us)
{
    struct ctl_text topic = { record->topic, strlen(record->topic) };
    redisReply *score = NULL;

    due__link_command(s->link, 3);
    due__link_text(s->link, "ZSCORE");
    ctl_key_of_topic(s, k, 'l', topic);
    due__link_bytes(s->link, (const char *)record->id.byte, DUE_STORE_ID_BYTES);
    if (!ctl_server_go(s, 1, &score))
        return false;
    bool claimed = due__reply_is_text(score);
    bool fine = claimed || score->type == REDIS_REPLY_NIL ||
                ctl_answer_is(score, REDIS_REPLY_STRING, "a lease");
    if (fine)
        note_lease(record, claimed, claimed ? ctl_score_read(score) : -1, now_us);
    freeReplyObject(score);
    return fine;
}

/* 0, or an exit status. */
static int show_named(struct ctl_server *s, const struct ctl_keys *k, due_id id, struct shown *to)
{
    redisReply name = { .type = REDIS_REPLY_STRING,
                        .str = (char *)id.byte,
                        .len = DUE_STORE_ID_BYTES };
    struct due__record_room room;
    due_record record = { .topic = "" };
    redisReply *a[2];

    ask_for(s, k->jobs, id);
    ask_for(s, k->again, id);
    if (!ctl_server_go(s, 2, a))
        return CTL_BROKEN;
    bool fine = true;
    for (size_t i = 0; fine && i < 2; i++)
        fine = a[i]->type == REDIS_REPLY_NIL || ctl_answer_is(a[i], REDIS_REPLY_STRING, "a job");
    int rc = fine ? ctl_record_read(&record, &room, &name, a[0], a[1]) : 0;
    if (fine && rc == 0 && to->shared && record.cause == 0)
        fine = ask_lease(s, k, &record, to->now_us);
    if (fine)
        to->stopped = !to->visit(to->ctx, id, rc, &record);
    ctl_answers_free(2, a);
    return fine ? CTL_FINE : ctl_server_status(s);
}

int ctl_server_jobs_named(const struct ctl_look *look, const due_id *ids, size_t n,
                          ctl_jobs_visit *visit, void *ctx)
{
    struct shown to = { .visit = visit, .ctx = ctx };
    struct ctl_server server;
    struct ctl_keys keys;
    int status = ctl_server_open(&server, look->url);

    if (status != 0)
        return status;
    ctl_keys_make(&keys, look->queue);
    status = begin(&server, &keys, look, &to);
    for (size_t i = 0; status == 0 && !to.stopped && i < n; i++)
        status = show_named(&server, &keys, ids[i], &to);
    ctl_server_close(&server);
    return status;
}
