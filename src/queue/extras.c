/* extras.c - jobs with more than a payload: checking what they are given, and keeping it. */
#include "queue/extras.h"

#include <string.h>

#include "queue/queue.h"

/* The bytes of a headers, key or group: there or not, and how many. */
static bool bytes_ok(const void *bytes, size_t len, size_t max, bool empty_allowed)
{
    if (bytes == NULL)
        return len == 0;
    return len <= max && (len > 0 || empty_allowed);
}

static bool repeat_ok(const due_extra *x)
{
    if (x->every_ns < 0 || x->repeat < DUE_REPEAT_SKIP || x->repeat > DUE_REPEAT_AFTER)
        return false;
    return x->every_ns > 0 || x->repeat == DUE_REPEAT_SKIP;
}

int due__extras_check(const due_extra *x)
{
    if (!bytes_ok(x->headers, x->headers_len, DUE_HEADERS_MAX, true) ||
        !bytes_ok(x->key, x->key_len, DUE_KEY_MAX, false) ||
        !bytes_ok(x->group, x->group_len, DUE_KEY_MAX, false))
        return DUE_EINVAL;
    if (x->ttl_ns < 0 || x->expires_ns < 0 || (x->ttl_ns != 0 && x->expires_ns != 0))
        return DUE_EINVAL;
    if (x->keep_key_ns < 0 || x->on_key < DUE_KEY_REFUSE || x->on_key > DUE_KEY_DEBOUNCE)
        return DUE_EINVAL;
    if (!repeat_ok(x))
        return DUE_EINVAL;
    return x->retry != NULL ? due__retry_check(x->retry) : 0;
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
