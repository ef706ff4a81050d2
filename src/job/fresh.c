/* fresh.c - a job before it is the queue's: a place is had and filled, or given back.
 *
 * Edges      described elsewhere: J1 slab.h, R3 lease.c
 */
#include "job/fresh.h"

#include <string.h>

#include "job/handover.h"
#include "job/key_table.h"
#include "job/release.h"
#include "os/atomic.h"
#include "queue/extras.h"
#include "queue/queue.h"

int due__grow(struct due_queue *q)
{
    uint32_t places = due__slab_next_places(&q->slab);
    struct due__tenure t;

    if (places == 0)
        return DUE_ELIMIT;
    void *segment = due__slab_segment(&q->slab, places);
    if (segment == NULL)
        return DUE_ENOMEM;
    struct due__region *region =
        due__region_new(&q->alloc, (size_t)places / DUE__SPAN_JOBS * DUE__CHUNKS_PER_SPAN);
    if (region == NULL) {
        due__slab_segment_free(&q->slab, places, segment);
        return DUE_ENOMEM;
    }
    due__enter(q, &t); /* the chunks come first: whoever has a place has its chunks */
    due__pool_adopt(&q->pool, region);
    due__tenure_end(q, &t);
    due__slab_add(&q->slab, places, segment);
    return 0;
}

/* Jobs that were cancelled in the inbox keep their places until they are taken out of it: before
 * the slab grows, see to that.  True: some were there. */
static bool help(struct due_queue *q)
{
    struct due__tenure t;

    due__enter(q, &t);
    uint64_t before = q->delegated;
    due__drain(q, DUE__PROXY_BATCH);
    bool some = q->delegated != before;
    due__tenure_end(q, &t);
    return some;
}

int due__places_make(struct due_queue *q, uint32_t *number, size_t n, size_t *got)
{
    do {
        int rc = help(q) ? 0 : due__grow(q);

        if (rc != 0)
            return rc;
        *got = due__slab_take(&q->slab, number, n);
    } while (*got == 0);
    return 0;
}

int due__place_take(struct due_queue *q, uint32_t *number)
{
    size_t got;

    return due__places_take(q, number, 1, &got);
}

/* Also if it is taken for good: its next round does, or it is found dead, and kicked. */
static bool may_come_back(const due_extra *x)
{
    return x->every_ns != 0 || x->ttl_ns != 0 || x->expires_ns != 0;
}

int due__fill_extras(struct due_queue *q, uint32_t number, const due_spec *s)
{
    struct due__extras *extras;

    if (s->more->every_ns != 0 && !due__records_make(&q->leases, &q->alloc, number))
        return DUE_ENOMEM;
    if (may_come_back(s->more))
        due__store_relaxed(&q->reserves, 1); /* R3 of lease.c: before it can be taken */
    int rc = due__extras_new(q, s, &extras);

    if (rc != 0)
        return rc;
    if (s->more->key != NULL) {
        extras->key = due__key_new(q, s->more);
        if (extras->key == NULL) {
            if (extras->limiter != NULL)
                due__group_part(extras->limiter);
            due__extras_drop(q, extras, s->len);
            return DUE_ENOMEM;
        }
    }
    due__job_at(&q->slab, number)->payload.ptr = extras;
    return 0;
}

bool due__fill_apart(struct due_queue *q, struct due__job *j, const due_spec *s)
{
    j->payload.ptr = due__payload_new(&q->slab.payloads, s->len);
    if (j->payload.ptr == NULL)
        return false;
    memcpy(j->payload.ptr, s->data, s->len);
    return true;
}

int due__fill(struct due_queue *q, uint32_t number, const due_spec *s, struct due__fresh *it)
{
    int rc = due__fill_watched(q, number, s, 0, it);

    it->f.payload &= (uint8_t)~DUE__NOW;
    return rc;
}

void due__job_release_fresh(struct due_queue *q, const struct due__fresh *it)
{
    if (it->f.payload & DUE__EXTRAS)
        due__key_undo(q, due__extras_at(it->job));
    if (due__job_has_block(it->f))
        due__block_free(&q->slab, it->job, it->f);
}

void due__tell_refused(struct due_queue *q, const struct due__fresh *it, uint64_t w)
{
    due__facts_store(it->job, it->f);                           /* it may not have got so far */
    due__store_relaxed(&it->job->deadline_ns, it->deadline_ns); /* J1 */
    due__events_step(q, it->number, DUE__S_REFUSED, w);
}

void due__refuse(struct due_queue *q, const struct due__fresh *it, uint64_t w)
{
    if (q->events != NULL)
        due__tell_refused(q, it, w);
    if (w & DUE__PASSED)
        due__limiter_leave(q, it->number);
    if (w == 0) {
        due__job_release_fresh(q, it);
    } else { /* its content may be another by now */
        due__key_undo(q, due__extras_of(it->job));
        due__job_release(&q->slab, it->job);
    }

    struct due__shard *shard = due__shard_enter(&q->slab);
    shard->refused++;
    shard->unready += (w & DUE__READY) != 0;
    due__place_done(q, shard, it->number);
    due__shard_leave(shard);
}
