/* extras.c - jobs with more than a payload: checking what they are given, and keeping it. */
#include "queue/extras.h"

#include <string.h>

#include "queue/queue.h"

static const char *key_wrong(const due_extra *x)
{
    if ((x->key != NULL) != (x->key_len > 0) || x->key_len > DUE_KEY_MAX)
        return "a key has 1 to DUE_KEY_MAX bytes; without key, key_len is 0";
    if (x->keep_key_ns < 0)
        return "keep_key_ns is negative";
    if (x->on_key < DUE_KEY_REFUSE || x->on_key > DUE_KEY_DEBOUNCE)
        return "on_key is none of DUE_KEY_*";
    return NULL;
}

static const char *repeat_wrong(const due_extra *x)
{
    if (x->every_ns < 0)
        return "every_ns is negative";
    if (x->repeat < DUE_REPEAT_SKIP || x->repeat > DUE_REPEAT_AFTER)
        return "repeat is none of DUE_REPEAT_*";
    if (x->every_ns == 0 && x->repeat != DUE_REPEAT_SKIP)
        return "repeat without every_ns";
    return NULL;
}

const char *due__extras_wrong(const due_extra *x)
{
    const char *wrong;

    if (x->headers == NULL ? x->headers_len > 0 : x->headers_len > DUE_HEADERS_MAX)
        return "headers have at most DUE_HEADERS_MAX bytes; without headers, headers_len is 0";
    if ((x->group != NULL) != (x->group_len > 0) || x->group_len > DUE_KEY_MAX)
        return "a group has 1 to DUE_KEY_MAX bytes; without group, group_len is 0";
    if (x->ttl_ns < 0 || x->expires_ns < 0)
        return "ttl_ns or expires_ns is negative";
    if (x->ttl_ns != 0 && x->expires_ns != 0)
        return "both ttl_ns and expires_ns are set";
    wrong = key_wrong(x);
    if (wrong == NULL)
        wrong = repeat_wrong(x);
    if (wrong == NULL && x->retry != NULL)
        wrong = due__retry_wrong(x->retry);
    return wrong;
}

int due__extras_new(struct due_queue *q, const due_spec *s, struct due__extras **extras)
{
    const due_extra *x = s->more;
    uint16_t retry = 0;
    int rc = x->retry != NULL ? due__retry_number(q, x->retry, &retry) : 0;

    if (rc != 0)
        return rc;
    struct due__extras *f =
        due__payload_new(&q->slab.payloads, DUE__EXTRAS_BYTES + x->headers_len + s->len);
    if (f == NULL)
        return DUE_ENOMEM;
    memset(f, 0, DUE__EXTRAS_BYTES);
    f->ptr = s->ptr;
    f->ttl_ns = x->ttl_ns;
    f->expires_ns = x->expires_ns;
    f->every_ns = x->every_ns;
    f->headers_len = (uint16_t)x->headers_len;
    f->retry = retry;
    f->repeat = (uint8_t)x->repeat;
    if (x->headers_len > 0)
        memcpy(f->bytes, x->headers, x->headers_len);
    if (s->len > 0)
        memcpy(f->bytes + x->headers_len, s->data, s->len);
    if (x->group_len > 0) {
        rc = due__group_join(q, s->topic, x->group, x->group_len, &f->limiter);
        if (rc != 0) {
            due__payload_free(&q->slab.payloads, f, DUE__EXTRAS_BYTES + x->headers_len + s->len);
            return rc;
        }
    }
    *extras = f;
    return 0;
}

void due__extras_inherit(struct due__extras *extras, const struct due__extras *old)
{
    extras->key = old->key;
    extras->limiter = old->limiter;
    extras->passes = old->passes;
}

void due__extras_drop(struct due_queue *q, struct due__extras *extras, size_t len)
{
    due__payload_free(&q->slab.payloads, extras, DUE__EXTRAS_BYTES + extras->headers_len + len);
}

/* ---- The payload, wherever it stands ---- */

const void *due__job_bytes(const struct due__job *j, struct due__facts f)
{
    const struct due__extras *extras = due__extras_at(j);

    if (f.len == 0 || (f.payload & DUE__PAYLOAD_MASK) == DUE__POINTER)
        return NULL;
    if (f.payload & DUE__EXTRAS)
        return extras->bytes + extras->headers_len;
    return (f.payload & DUE__PAYLOAD_MASK) == DUE__BYTES_APART ? j->payload.ptr : j->payload.bytes;
}

void *due__job_pointer(const struct due__job *j, struct due__facts f)
{
    if ((f.payload & DUE__PAYLOAD_MASK) != DUE__POINTER)
        return NULL;
    return (f.payload & DUE__EXTRAS) ? due__extras_at(j)->ptr : j->payload.ptr;
}

size_t due__block_bytes(const struct due__job *j, struct due__facts f)
{
    return (f.payload & DUE__EXTRAS) ? DUE__EXTRAS_BYTES + due__extras_at(j)->headers_len + f.len
                                     : f.len;
}

void due__block_free(struct due__slab *s, struct due__job *j, struct due__facts f)
{
    if (f.payload & DUE__GROUPED)
        due__group_part(due__extras_at(j)->limiter);
    due__payload_free(&s->payloads, j->payload.ptr, due__block_bytes(j, f));
}
