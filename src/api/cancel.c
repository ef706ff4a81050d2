/* cancel.c - due_cancel(), due_cancel_batch(), due_clear().
 *
 * Edges      described elsewhere: J1 slab.h, C2 closing.c
 */
#include "job/cancel.h"

#include <limits.h>

#include "api/dequeue.h"
#include "api/pages.h"
#include "job/bulk.h"
#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/extras.h"
#include "queue/inside.h"
#include "queue/queue.h"
#include "queue/stored.h"

/* A job that is nobody's any more, and is to be counted. */
struct cancelled {
    uint32_t number; /* O */
    bool ready;      /* O  it stood in a line */
    bool block;      /* O  it has one: bytes, headers or a policy */
};

/* The usual case, a job that was sorted in and is not wanted back, goes in one step from waiting to
 * free.  The way to it, and on to the end of the call, is kept short, so that the processor can
 * fetch the jobs of several cancels at a time: whatever is rare is a call at the end, for which
 * nothing need be saved.  False: nothing was done. */
static inline __attribute__((always_inline)) bool cancel_swap(struct due_queue *q, due_id id,
                                                              struct cancelled *c)
{
    uint32_t generation;
    uint64_t next;

    if (!due__id_read_made(q, id, &c->number, &generation))
        return false;
    struct due__job *j = due__job_at(&q->slab, c->number);
    uint64_t w = due__load_acquire(&j->word); /* J1 */
    uint64_t differs = w ^ due__word(generation, 0, DUE__WAITING);

    if ((differs & ~(uint64_t)(DUE__STAMP_MASK << 8 | DUE__READY)) != 0 ||
        !due__word_next(generation, &next) ||
        (due__facts_load(j).payload & DUE__EXTRAS)) /* so it may have a key, now and later */
        return false;
    c->ready = (w & DUE__READY) != 0;
    if (!due__word_cancel(&j->word, &w, next)) /* J1 */
        return false;
    c->block = due__job_has_block(due__facts_load(j)); /* since a change may leave the word as it
                                                          was, but not what was read before */
    return true;
}

/* Who was counted as the @count-th in a shard, of whose lock the @rest is to be seen to. */
static __attribute__((noinline)) int cancel_after(struct due_queue *q, struct due__shard *it,
                                                  uint64_t count, enum due__released rest)
{
    if (rest != DUE__RELEASED)
        due__lock_release_rest(&it->lock, rest); /* S */
    due__cancelled(q, count);
    return 0;
}

/* Within a shard: it is counted, and its place is free. */
static inline __attribute__((always_inline)) int cancel_in(struct due_queue *q,
                                                           struct due__shard *it,
                                                           const struct cancelled *c)
{
    uint64_t count = ++it->cancelled; /* C2 of closing.c */

    it->unready += c->ready;
    it->magazine[it->count++] = c->number;
    enum due__released rest = due__lock_release_last(&it->lock); /* S */
    if (rest != DUE__RELEASED)
        return cancel_after(q, it, count, rest);
    if ((due__load_seq(&q->state) & DUE__DRAINING) || /* C2 of closing.c */
        count % DUE__SWEEP_EVERY == 0 || q->capacity > 0)
        return cancel_after(q, it, count, DUE__RELEASED);
    return 0;
}

/* The same of a shard whose magazine is full. */
static __attribute__((noinline)) int cancel_full(struct due_queue *q, struct due__shard *it,
                                                 struct cancelled c)
{
    due__shard_spill(&q->slab, it);
    return cancel_in(q, it, &c);
}

/* Any, whatever the shard. */
static __attribute__((noinline)) int cancel_anywhere(struct due_queue *q, struct cancelled c)
{
    if (c.block)
        due__job_release(
            &q->slab,
            due__job_at(&q->slab, c.number)); /* still the caller's: it is in no magazine yet */
    struct due__shard *it = due__shard_enter(&q->slab);
    return it->count == DUE__MAGAZINE ? cancel_full(q, it, c) : cancel_in(q, it, &c);
}

/* Its shard's lock was tried, and not just got. */
static __attribute__((noinline)) int cancel_tried(struct due_queue *q, struct due__shard *it,
                                                  struct cancelled c, enum due__tried how)
{
    due__shard_tried(it, how);
    return cancel_anywhere(q, c);
}

/* 0. */
static inline __attribute__((always_inline)) int cancel_count(struct due_queue *q,
                                                              const struct cancelled *c)
{
    uint32_t offset = due__thread_offset;

    if (c->block || offset == 0)
        return cancel_anywhere(q, *c);
    struct due__shard *it = due__shard_at(&q->slab, offset);
    enum due__tried how = due__lock_try_quick(&it->lock); /* S */
    if (how != DUE__TRIED_GOT)
        return cancel_tried(q, it, *c, how);
    return it->count == DUE__MAGAZINE ? cancel_full(q, it, *c) : cancel_in(q, it, c);
}

/* Any other. */
static __attribute__((noinline)) int cancel_any(due_queue *q, due_id id, due_job *job)
{
    struct due__deadline by = { 0 };

    if (due__forked(q))
        return due__one_or_none(job, DUE_EFORK);
    bool inside = due__inside_stored(q);
    int rc = due__named(q, due__cancel(q, id, job, &by));
    due__inside_end(q, inside);
    return due__one_or_none(job, rc);
}

int due_cancel(due_queue *q, due_id id, due_job *job)
{
    struct cancelled c;

    if (job == NULL && q->short_ways && !due__forked(q) && cancel_swap(q, id, &c))
        return cancel_count(q, &c);
    return cancel_any(q, id, job);
}

#define LOOK_AHEAD    8u  /* ids of a batch whose jobs are on their way into the cache */
#define COUNT_AT_ONCE 32u /* of a batch, before a shard is entered */

static void prefetch(struct due_queue *q, due_id id)
{
    uint32_t number;
    uint32_t generation;

    if (due__id_read(q, id, &number, &generation))
        due__job_prefetch(&q->slab, number);
}

/* Jobs of a batch that are to be counted. */
struct uncounted {
    uint32_t number[COUNT_AT_ONCE]; /* O */
    size_t n;                       /* O */
    uint64_t ready;                 /* O  so many stood in a line */
};

static void count_all(struct due_queue *q, struct uncounted *u)
{
    if (u->n == 0)
        return;
    struct due__shard *it = due__shard_enter(&q->slab);
    uint64_t before = it->cancelled;

    it->cancelled = before + u->n; /* C2 of closing.c */
    it->unready += u->ready;
    for (size_t i = 0; i < u->n; i++)
        due__shard_push(&q->slab, it, u->number[i]);
    due__shard_leave(it);
    if (q->capacity > 0)
        due__capacity_give(q, u->n);
    due__left(q, u->n);
    if (before / DUE__SWEEP_EVERY != (before + u->n) / DUE__SWEEP_EVERY)
        due__sweep_sometimes(q);
    u->n = 0;
    u->ready = 0;
}

/* One of a batch.  As due_cancel(). */
static inline int cancel_one(struct due_queue *q, due_id id, struct uncounted *u)
{
    struct cancelled c;

    if (!cancel_swap(q, id, &c)) {
        count_all(q, u); /* the other may have to wait */
        return cancel_any(q, id, NULL);
    }
    if (c.block)
        due__job_release(&q->slab, due__job_at(&q->slab, c.number)); /* the caller's until then */
    u->number[u->n++] = c.number;
    u->ready += c.ready;
    if (u->n == COUNT_AT_ONCE)
        count_all(q, u);
    return 0;
}

int due_cancel_batch(due_queue *q, const due_id *ids, size_t n, int *results)
{
    struct uncounted u;
    int cancelled = 0;

    u.n = 0;
    u.ready = 0;
    if (due__forked(q))
        return DUE_EFORK;
    if (n > INT_MAX)
        return DUE_EINVAL;
    if (!q->short_ways) {
        bool inside = due__inside_stored(q);

        cancelled = due__cancel_all(q, ids, n, results);
        due__inside_end(q, inside);
        return cancelled;
    }
    for (size_t i = 0; i < n && i < LOOK_AHEAD; i++)
        prefetch(q, ids[i]);
    for (size_t i = 0; i < n; i++) {
        if (i + LOOK_AHEAD < n)
            prefetch(q, ids[i + LOOK_AHEAD]);
        int rc = cancel_one(q, ids[i], &u);

        cancelled += rc == 0;
        if (results != NULL)
            results[i] = rc;
    }
    count_all(q, &u);
    return cancelled;
}

int due_clear(due_queue *q, int topic, uint64_t *cleared)
{
    uint64_t n = 0;

    if (due__forked(q))
        return DUE_EFORK;
    if (topic != DUE_ALL_TOPICS && due_topic_name(q, topic) == NULL)
        return DUE_EINVAL;
    bool inside = due__inside_stored(q);
    int rc = due__clear_all(q, topic, &n);
    if (rc == 0 && due__in_store(q))
        rc = due__pages_clear(q, topic, &n);
    due__inside_end(q, inside);
    if (cleared != NULL && (rc == 0 || n > 0))
        *cleared = n;
    return rc;
}
