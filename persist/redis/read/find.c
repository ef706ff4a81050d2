/* find.c - one job, by its id; and how a job is read from what is stored of it. */
#include <string.h>

#include "redis/read/read.h"

int due__redis_read_job(const struct due__redis *s, const struct due__redis_topic *line,
                        due_record *record, struct due__record_room *room, const redisReply *id,
                        const redisReply *job, const redisReply *entry)
{
    *record = (due_record){ .deadline_ns = 0 };
    if (id->len != DUE_STORE_ID_BYTES || job == NULL || !due__reply_is_text(job))
        return DUE_ECORRUPT;
    memcpy(record->id.byte, id->str, DUE_STORE_ID_BYTES);
    int rc = due__record_read(record, room, job->str, (size_t)job->len);
    if (rc == 0 && entry != NULL && entry->type != REDIS_REPLY_NIL) {
        rc = due__reply_is_text(entry)
                 ? due__entry_read(record, room, entry->str, (size_t)entry->len)
                 : DUE_ECORRUPT;
    }
    if (rc != 0 || line == NULL)
        return rc;
    if ((line == s->dead) != (record->cause != 0))
        return DUE_ECORRUPT;
    return line == s->dead || strcmp(record->topic, line->key + line->name_at) == 0 ? 0
                                                                                    : DUE_ECORRUPT;
}

static uint64_t tag_of(due_id id)
{
    uint64_t tag = 0;

    for (size_t i = 0; i < DUE_STORE_ID_BYTES; i++)
        tag = (tag ^ id.byte[i]) * UINT64_C(1099511628211);
    return tag;
}

/* The job, and with a key what that leads to. */
static void ask(struct due__redis *s, due_id id, const void *key, size_t len)
{
    due__redis_word(s, s->keys.jobs, 1, "HGET");
    due__link_bytes(s->link, id.byte, DUE_STORE_ID_BYTES);
    due__redis_word(s, s->keys.again, 1, "HGET");
    due__link_bytes(s->link, id.byte, DUE_STORE_ID_BYTES);
    if (len == 0)
        return;
    due__redis_word(s, s->keys.unique, 1, "HGET");
    due__link_bytes(s->link, key, len);
}

static bool is_field(const redisReply *r)
{
    return due__reply_is_text(r) || r->type == REDIS_REPLY_NIL;
}

/* The answers of a flight are there. */
static int found(struct due__redis *s, due_id id, due_store_visit *visit, void *ctx)
{
    struct due__record_room room;
    redisReply name = { .type = REDIS_REPLY_STRING, .str = (char *)id.byte };
    redisReply *got[3];
    due_record record;

    name.len = DUE_STORE_ID_BYTES;
    for (size_t i = 0; i < s->air.got; i++)
        if (!is_field(s->air.kept[i]))
            return due__redis_mistaken(s);
    for (size_t i = 0; i < 3; i++)
        got[i] = due__flight_take(s, i);
    due__flight_end(s);
    int rc = got[0]->type == REDIS_REPLY_NIL
                 ? DUE_ENOENT
                 : due__redis_read_job(s, NULL, &record, &room, &name, got[0], got[1]);
    s->has_entries = s->has_entries || got[1]->type != REDIS_REPLY_NIL;
    s->has_dead = s->has_dead || (rc == 0 && record.cause != 0);
    if (rc == 0) {
        due__redis_judge_key(&record, got[2]);
        rc = visit(ctx, &record);
    }
    for (size_t i = 0; i < 3; i++)
        if (got[i] != NULL)
            freeReplyObject(got[i]);
    return rc;
}

/* 0: what is to be known of the job is in the air's answers.  One with a key is asked for once
 * more, together with that. */
static int look(struct due__redis *s, due_id id, int64_t until_ns)
{
    uint64_t tag = tag_of(id);
    unsigned char bytes[DUE_KEY_MAX];
    const void *key;
    size_t len;

    if (s->air.kind == DUE__FLIGHT_FIND_KEY && s->air.tag == tag)
        return due__flight_land(s, until_ns);
    int ready = due__flight_ready(s, DUE__FLIGHT_FIND, tag, until_ns);
    if (ready == 0)
        ask(s, id, NULL, 0);
    int rc = due__redis_fly(s, DUE__FLIGHT_FIND, tag, 2, ready, until_ns);
    if (rc != 0)
        return rc;
    const redisReply *job = s->air.kept[0];
    if (!due__reply_is_text(job) || !due__record_key(job->str, (size_t)job->len, &key, &len))
        return 0;
    memcpy(bytes, key, len);
    due__flight_end(s);
    ask(s, id, bytes, len);
    return due__redis_fly(s, DUE__FLIGHT_FIND_KEY, tag, 3, 0, until_ns);
}

int due__redis_find(struct due__redis *s, due_id id, due_store_visit *visit, void *ctx,
                    int64_t until_ns)
{
    for (;;) {
        int rc = due__redis_up(s, until_ns);
        if (rc != 0 && rc != DUE_EDURABILITY)
            return rc;
        rc = look(s, id, until_ns);
        if (rc == 0)
            rc = found(s, id, visit, ctx);
        if (rc != DUE_ESTORE)
            return rc;
        if (until_ns <= due__mono_ns())
            return DUE_EAGAIN;
    }
}
