/* fresh.h - a job before it is the queue's: a place is had and filled, or given back.
 *
 * Edges      described elsewhere: J1 slab.h
 */
#ifndef DUE__FRESH_H
#define DUE__FRESH_H

#include <string.h>

#include "os/atomic.h"
#include "os/probe.h"
#include "os/tsan.h"
#include "queue/extras.h"
#include "queue/queue.h"

/* Free places that the caller owns, up to @n: growing the slab until there is one. */
int due__places_make(struct due_queue *q, uint32_t *number, size_t n, size_t *got);

/* A job with a front: everything it has is in its block. */
int due__fill_extras(struct due_queue *q, uint32_t number, const due_spec *s);

/* More bytes than fit into a job. */
bool due__fill_apart(struct due_queue *q, struct due__job *j, const due_spec *s);

static inline int due__places_take(struct due_queue *q, uint32_t *number, size_t n, size_t *got)
{
    *got = due__slab_take(&q->slab, number, n);
    return *got > 0 ? 0 : due__places_make(q, number, n, got);
}

/* What is to be known of the job beside its content, of the kind @payload. */
static inline __attribute__((always_inline)) void due__fill_facts(struct due__job *j,
                                                                  uint32_t number,
                                                                  const due_spec *s,
                                                                  unsigned payload, int64_t now_ns,
                                                                  struct due__fresh *it)
{
    if (s->delay_ns == 0 && !due__timed(s))
        payload |= DUE__NOW;
    it->job = j;
    it->deadline_ns = due__timed(s) ? s->at_ns : due__time_add(now_ns, s->delay_ns);
    it->f = (struct due__facts){ .len = (uint32_t)s->len,
                                 .topic = (uint16_t)s->topic,
                                 .priority = (uint8_t)s->priority,
                                 .payload = (uint8_t)payload };
    it->number = number;
    due__job_ahead(j);
    it->generation = due__word_generation(due__load_relaxed(&j->word)); /* J1: the caller's own */
    due__tsan_release(j);
}

/* Fill the place @number with a job that brings a pointer, or at most DUE__INLINE_BYTES.  It stays
 * private to the caller until it is submitted. */
static inline __attribute__((always_inline)) void due__fill_plain(struct due_queue *q,
                                                                  uint32_t number,
                                                                  const due_spec *s, int64_t now_ns,
                                                                  struct due__fresh *it)
{
    struct due__job *j = due__job_at(&q->slab, number);
    bool carries = s->data == NULL && s->ptr != NULL;

    if (carries)
        j->payload.ptr = s->ptr;
    else if (s->len > 0)
        memcpy(j->payload.bytes, s->data, s->len);
    due__fill_facts(j, number, s, carries ? DUE__POINTER : DUE__BYTES_INLINE, now_ns, it);
    DUE__PROBE3(enqueue, q, number, it->deadline_ns);
}

/* The same with any job; @extras: it needs some. */
static inline __attribute__((always_inline)) int due__fill_in(struct due_queue *q, uint32_t number,
                                                              const due_spec *s, bool extras,
                                                              int64_t now_ns, struct due__fresh *it)
{
    unsigned payload = DUE__BYTES_APART;

    if (!extras && s->len <= DUE__INLINE_BYTES) {
        due__fill_plain(q, number, s, now_ns, it);
        return 0;
    }
    if (extras) {
        payload = DUE__EXTRAS | (unsigned)(s->ptr != NULL ? DUE__POINTER : DUE__BYTES_APART);
        payload |= s->more->group_len > 0 ? DUE__GROUPED : 0;
        int rc = due__fill_extras(q, number, s);
        if (rc != 0)
            return rc;
    } else if (!due__fill_apart(q, due__job_at(&q->slab, number), s)) {
        return DUE_ENOMEM;
    }
    due__fill_facts(due__job_at(&q->slab, number), number, s, payload, now_ns, it);
    DUE__PROBE3(enqueue, q, number, it->deadline_ns);
    return 0;
}

/* As due__fill_in(), when somebody may be told of the job. */
static inline int due__fill_watched(struct due_queue *q, uint32_t number, const due_spec *s,
                                    int64_t now_ns, struct due__fresh *it)
{
    if (q->events != NULL && !due__events_make(q, number))
        return DUE_ENOMEM;
    return due__fill_in(q, number, s, due__extras_needed(s), now_ns, it);
}

/* A free place, the caller's. */
int due__place_take(struct due_queue *q, uint32_t *number);

/* Fill it.  Its bytes go back by due__job_release_fresh() as long as nobody else knows it. */
int due__fill(struct due_queue *q, uint32_t number, const due_spec *s, struct due__fresh *it);

void due__job_release_fresh(struct due_queue *q, const struct due__fresh *it);

/* A job of the caller's that the queue did not accept: as if it had never been.  @w: its word. */
void due__refuse(struct due_queue *q, const struct due__fresh *it, uint64_t w);

/* It is told so, if somebody is. */
void due__tell_refused(struct due_queue *q, const struct due__fresh *it, uint64_t w);

#endif
