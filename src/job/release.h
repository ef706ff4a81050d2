/* release.h - what the holder of a job sees of it, and the end of a hold. */
#ifndef DUE__RELEASE_H
#define DUE__RELEASE_H

#include <string.h>

#include "mem/records.h"
#include "os/atomic.h"
#include "os/tsan.h"
#include "queue/extras.h"
#include "queue/queue.h"

/* A copy of a job that nothing is to be done with any more.  (In two halves, since gcc clears up to
 * 80 bytes without a loop.) */
static inline void due__job_clear(due_job *job)
{
    memset(job, 0, sizeof *job / 2);
    memset((char *)job + sizeof *job / 2, 0, sizeof *job - sizeof *job / 2);
}

/* What a plain job has not: zero.  (Field by field it is half as many instructions as a struct that
 * is cleared and then filled in.) */
static inline void due__job_fill_rest(due_job *job)
{
    job->attempts = 0;
    job->failures = 0;
    job->token = 0;
    job->headers = NULL;
    job->headers_len = 0;
    job->pool = NULL;
    job->round = 0;
    job->reserved[0] = 0;
    job->reserved[1] = 0;
}

/* The taken job @number, for the caller; @now_ns 0: nobody asks how late it is.  True: it comes
 * again. */
bool due__job_fill(struct due_queue *q, uint32_t number, int64_t deadline_ns, int64_t now_ns,
                   due_job *job);
/* The same of one that is plain, and was never reserved, in a queue without a store; which is @j,
 * with the facts @f.  In two halves.  This one also for who does not own it yet: who holds the lock
 * and then swaps its word from what it was before all this was read has read what is so, since no
 * job waits again without the lock. */
static inline void due__job_fill_facts(struct due_queue *q, const struct due__job *j,
                                       struct due__facts f, uint32_t number, int64_t deadline_ns,
                                       due_job *job)
{
    uint32_t generation = due__word_generation(due__load_relaxed(&j->word)); /* J1: as said */

    job->id = due__id_made(q, number, generation);
    job->len = f.len;
    job->deadline_ns = deadline_ns;
    job->topic = f.topic;
    job->priority = f.priority;
    job->queue = q;
    job->place = due__handle(number, generation);
    due__job_fill_rest(job);
}

/* What it carries, and how late it is: of the caller's own. */
static inline void due__job_fill_content(const struct due__job *j, struct due__facts f,
                                         int64_t now_ns, due_job *job)
{
    bool pointer = (f.payload & DUE__PAYLOAD_MASK) == DUE__POINTER;
    bool apart = (f.payload & DUE__PAYLOAD_MASK) == DUE__BYTES_APART;
    const void *bytes = apart ? j->payload.ptr : j->payload.bytes;

    due__tsan_acquire(j);
    job->data = pointer || f.len == 0 ? NULL : bytes;
    job->ptr = pointer ? j->payload.ptr : NULL;
    job->lateness_ns = now_ns > job->deadline_ns ? now_ns - job->deadline_ns : 0;
}

static inline void due__job_fill_plain_of(struct due_queue *q, const struct due__job *j,
                                          uint32_t number, int64_t deadline_ns, int64_t now_ns,
                                          due_job *job)
{
    struct due__facts f = due__facts_load(j);

    due__job_fill_facts(q, j, f, number, deadline_ns, job);
    due__job_fill_content(j, f, now_ns, job);
}

static inline void due__job_fill_plain(struct due_queue *q, uint32_t number, int64_t deadline_ns,
                                       int64_t now_ns, due_job *job)
{
    due__job_fill_plain_of(q, due__job_at(&q->slab, number), number, deadline_ns, now_ns, job);
}

/* One copy of a job that was reserved is let go.  As due__job_unhold(). */
bool due__lease_let_go(struct due_queue *q, uint32_t number);
/* The life of a lent job is over, whose node the inbox held: does it still?  Then the place is free
 * when it does not. */
bool due__place_linked(struct due_queue *q, uint32_t number);

/* Within a shard: a lent job's place is free, unless the inbox still holds its node. */
static inline void due__place_done_of(struct due_queue *q, struct due__shard *it,
                                      struct due__job *j, uint32_t number)
{
    if (q->stored)
        q->journal->forget(q, number); /* N1 of id_index.c */
    if ((due__load_acquire(&j->word) & DUE__LINKED) && due__place_linked(q, number)) /* J1 */
        return;
    if (due__word_free(&j->word)) /* J1 */
        due__shard_push(&q->slab, it, number);
}

static inline void due__place_done(struct due_queue *q, struct due__shard *it, uint32_t number)
{
    due__place_done_of(q, it, due__job_at(&q->slab, number), number);
}

/* @n of a job's holders leave.  True: they were the last. */
static inline bool due__holders_leave(struct due__lease *l, uint32_t n)
{
    due__tsan_release(l);
    bool last = due__sub_seq(&l->holders, n) == n; /* R2 of lease.c */
    if (last)
        due__tsan_acquire(l);
    return last;
}

/* The life of a job of the caller's own ends, and he lets go of it.  True: nobody else holds it.
 * As nobody else can come to hold it, that is so for good if it is so now. */
static inline bool due__holders_leave_both(struct due__lease *l)
{
    if (due__load_acquire(&l->holders) != 2) /* R2 of lease.c */
        return due__holders_leave(l, 2);
    due__store_relaxed(&l->holders, 0); /* R2: nobody looks any more */
    return true;
}

/* As due__job_unhold(), of a job with a pass: that goes back first. */
bool due__job_unhold_passed(struct due_queue *q, uint32_t number, uint64_t w);

/* The life of a job of the caller's own ends; @w is its word.  True: nobody else holds it, its
 * bytes are released, and the place is the caller's to give back.  False: whoever lets go of it
 * last does that. */
static inline __attribute__((always_inline)) bool due__job_unhold(struct due_queue *q,
                                                                  uint32_t number, uint64_t w)
{
    struct due__job *j = due__job_at(&q->slab, number);

    if (w & DUE__PASSED)
        return due__job_unhold_passed(q, number, w);
    if (w & DUE__HELD) {
        due__word_end(&j->word, w); /* J1 */
        return due__lease_let_go(q, number);
    }
    due__job_release(&q->slab, j);
    return true;
}

#endif
