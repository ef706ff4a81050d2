/* server_jobs.c - the jobs of a queue on a server, one after another. */
#include "inspect/server.h"

#include <stdio.h>
#include <string.h>

struct shown {
    ctl_jobs_visit *visit;
    void *ctx;
    bool stopped; /* by the visit */
};

static bool show(void *ctx, const struct ctl_found *found)
{
    struct shown *s = ctx;
    struct due__record_room room;
    due_record record = { .topic = "" };
    int rc = ctl_record_read(&record, &room, found->id, found->record, found->entry);
    due_id id = { { 0 } };

    if (found->id->len == DUE_STORE_ID_BYTES)
        memcpy(id.byte, found->id->str, DUE_STORE_ID_BYTES);
    s->stopped = !s->visit(s->ctx, id, rc, &record);
    return !s->stopped;
}

static int show_all(struct ctl_server *s, const struct ctl_keys *k, struct shown *to)
{
    redisReply *topics = CTL_ASK(s, "HKEYS", k->topics);
    bool fine = ctl_answer_is(topics, REDIS_REPLY_ARRAY, "topics");

    for (size_t i = 0; fine && i < topics->elements; i++) {
        const redisReply *topic = topics->element[i];

        fine = due__reply_is_text(topic) &&
               ctl_walk(s, k, (struct ctl_text){ topic->str, (size_t)topic->len }, show, to);
    }
    freeReplyObject(topics);
    fine = fine && ctl_walk(s, k, CTL_DEAD, show, to);
    return fine || to->stopped ? CTL_FINE : ctl_server_status(s);
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
    status = ctl_queue_is_there(&server, &keys, look->queue);
    if (status == 0)
        status = show_all(&server, &keys, &to);
    ctl_server_close(&server);
    return status;
}
