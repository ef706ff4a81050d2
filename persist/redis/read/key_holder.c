/* key_holder.c - whose the keys are that records name.
 *
 * A record names the key that its job came with, and is not written again when another job takes
 * that over.  Whose a key is says the `k` hash, which every batch keeps right.  So the keys of a
 * page are looked up there before it is shown, and a job that has lost its own has none.
 */
#include <string.h>

#include "redis/read/read.h"

void due__redis_judge_key(due_record *record, const redisReply *owner)
{
    if (record->key_len == 0 ||
        (owner != NULL && due__reply_is_text(owner) && owner->len == DUE_STORE_ID_BYTES &&
         memcmp(owner->str, record->id.byte, DUE_STORE_ID_BYTES) == 0))
        return;
    record->key = NULL;
    record->key_len = 0;
    record->keep_key_ns = 0;
}

static bool key_of(const redisReply *job, const void **key, size_t *len)
{
    return due__reply_is_text(job) && due__record_key(job->str, (size_t)job->len, key, len);
}

const redisReply *due__redis_next_owner(const struct due__redis_load *l)
{
    const void *key;
    size_t len;

    if (l->owners == NULL || !key_of(l->jobs->element[l->at], &key, &len))
        return NULL;
    return l->owners->element[l->owner];
}

static void ask(struct due__redis *s, size_t n)
{
    const redisReply *jobs = s->load->jobs;
    const void *key;
    size_t len;

    due__redis_word(s, s->keys.unique, n, "HMGET");
    for (size_t i = 0; i < jobs->elements; i++)
        if (key_of(jobs->element[i], &key, &len))
            due__link_bytes(s->link, key, len);
}

int due__redis_whose(struct due__redis *s, int64_t until_ns)
{
    struct due__redis_load *l = s->load;
    const void *key;
    size_t len;
    size_t n = 0;

    if (l->whose)
        return 0;
    for (size_t i = 0; i < l->jobs->elements; i++)
        n += key_of(l->jobs->element[i], &key, &len);
    if (n > 0) {
        int ready = due__flight_ready(s, DUE__FLIGHT_WHOSE, 0, until_ns);

        if (ready == 0)
            ask(s, n);
        int rc = due__redis_fly(s, DUE__FLIGHT_WHOSE, 0, 1, ready, until_ns);
        if (rc != 0)
            return rc;
        if (!due__reply_is_fields(s->air.kept[0], n))
            return due__redis_mistaken(s);
        l->owners = due__flight_take(s, 0);
        due__flight_end(s);
    }
    l->whose = true;
    return 0;
}
