/* handover.c - taken jobs, for good, to their caller, and how he is done with them.
 *
 * Edges      described elsewhere: J1 slab.h, R2 lease.c
 */
#include "job/handover.h"

#include "job/key_table.h"
#include "job/lease.h"
#include "job/release.h"
#include "job/repeat.h"
#include "os/atomic.h"
#include "os/probe.h"
#include "queue/capacity.h"
#include "queue/closing.h"
#include "queue/extras.h"
#include "queue/job_records.h"
#include "queue/queue.h"

#define DONE_AT_ONCE 32u /* jobs that are done with in one visit to a shard */

void due__prefetch_end(struct due_queue *q, const due_job *job, uint32_t number)
{
    __builtin_prefetch(job->data, 1);
    if (q->stored)
        q->journal->prefetch_end(q, number);
}

/* A job that was taken for good has no key any more. */
static inline void end_key(struct due_queue *q, uint32_t number)
{
    if (due__facts_load(due__job_at(&q->slab, number)).payload & DUE__EXTRAS)
        due__key_end(q, number, true);
}

void due__hand_over(struct due_queue *q, const struct due__slot *slots, size_t n, int64_t now_ns,
                    due_job *jobs)
{
    int64_t now = now_ns != 0 ? now_ns : due__clock_now(&q->clock);
    bool again = false;

    for (size_t i = 0; i < n; i++) {
        again |=
            due__job_fill(q, due__slot_job(slots[i]), due__slot_deadline(slots[i]), now, &jobs[i]);
        if (n > 1)
            due__prefetch_end(q, &jobs[i], due__slot_job(slots[i]));
    }
    size_t repeating = again ? due__repeat_taken(q, slots, n, jobs) : 0;
    for (size_t i = 0; i < n; i++) {
        if (jobs[i].round != 0) /* it waits again, and may be anybody's */
            continue;
        end_key(q, due__slot_job(slots[i]));
        due__step(q, due__slot_job(slots[i]), DUE__S_DEQUEUED, 0);
        DUE__PROBE3(dequeue, q, due__slot_job(slots[i]), jobs[i].lateness_ns);
    }
    due__late(q, jobs, n);
    n -= repeating; /* they have not left */

    struct due__shard *it = due__shard_enter(&q->slab);
    it->dequeued += n; /* C2 of closing.c */
    due__shard_leave(it);
    if (q->capacity > 0 && n > 0)
        due__capacity_give(q, n);
    due__left(q, n);
}

/* Who waits for room or for the last job is told before the caller is done with his @n. */
static __attribute__((noinline)) void acked_for_others(struct due_queue *q, size_t n)
{
    if (q->capacity > 0)
        due__capacity_give(q, n);
    due__left(q, n);
    struct due__shard *it = due__shard_enter(&q->slab);
    it->done += n;
    due__shard_leave(it);
}

/* A job of the caller's own leaves.  True: nobody else holds it, and its place is to be given
 * back. */
static inline __attribute__((always_inline)) bool ack_begin(struct due_queue *q, struct due__job *j,
                                                            uint32_t number)
{
    uint64_t w = due__load_relaxed(&j->word); /* J1: the caller's own */
    bool last = true;

    if (w & DUE__HELD) {            /* the job's own life ends, and our hold of it: both at once */
        due__word_end(&j->word, w); /* J1 */
        last = due__holders_leave_both(due__lease_at(q, number));
    }
    if (last)
        due__job_release(&q->slab, j);
    return last;
}

/* Within a shard, and out of it: @n jobs that have left are counted. */
static inline __attribute__((always_inline)) void ack_end(struct due_queue *q,
                                                          struct due__shard *it, size_t n)
{
    it->acked += n; /* C2 of closing.c */
    it->unleased += n;
    bool more = q->capacity > 0 || (due__load_seq(&q->state) & DUE__DRAINING); /* C2 of closing.c */
    it->done += more ? 0 : n; /* from here on the queue may be freed */
    due__shard_leave(it);
    if (more)
        acked_for_others(q, n);
}

void due__ack_at_once(due_job *job, struct due__job *j, uint32_t number)
{
    struct due_queue *q = job->queue;
    bool last = ack_begin(q, j, number);
    struct due__shard *it = due__shard_enter(&q->slab);

    if (last)
        due__place_done_of(q, it, j, number);
    ack_end(q, it, 1);
    due__job_clear(job);
}

void due__acks_add(struct due_queue *q, struct due__acks *a, struct due__job *j, uint32_t number)
{
    if (ack_begin(q, j, number))
        a->last[a->n_last++] = number;
    a->n++;
}

void due__acks_end(struct due_queue *q, const struct due__acks *a)
{
    if (a->n == 0)
        return;
    struct due__shard *it = due__shard_enter(&q->slab);
    for (size_t i = 0; i < a->n_last; i++)
        due__place_done(q, it, a->last[i]);
    ack_end(q, it, a->n);
}

/* A copy of a job that is done with. */
struct done {
    uint32_t number; /* O  its place */
    bool counts;     /* O  there was such a job */
    bool last;       /* O  nobody else holds it: its place is to be given back */
};

/* Its bytes go back, unless somebody else holds it. */
static inline __attribute__((always_inline)) struct done done_begin(struct due_queue *q,
                                                                    const due_job *job)
{
    struct done d = { .counts = false };
    uint32_t generation;

    if (!due__handle_read(job->place, &d.number, &generation))
        return d;
    uint64_t w = due__load_acquire(&due__job_at(&q->slab, d.number)->word); /* J1 */
    bool reserved = job->token != 0 || job->round != 0;

    d.counts =
        reserved || (due__word_generation(w) == generation && due__word_state(w) == DUE__CLAIMED);
    if (d.counts)
        d.last = reserved ? due__lease_let_go(q, d.number) : due__job_unhold(q, d.number, w);
    return d;
}

/* Within a shard: it is counted, and its place is free. */
static inline __attribute__((always_inline)) void done_end(struct due_queue *q,
                                                           struct due__shard *it, struct done d)
{
    it->done += d.counts;
    if (d.last)
        due__place_done(q, it, d.number);
}

/* Any. */
static __attribute__((noinline)) void done_any(struct due_queue *q, due_job *job)
{
    struct done d = { .counts = false };

    if (q != NULL && !due__forked(q))
        d = done_begin(q, job);
    if (d.counts) {
        struct due__shard *it = due__shard_enter(&q->slab);

        done_end(q, it, d);
        due__shard_leave(it);
    }
    due__job_clear(job);
}

/* Within a shard, whose magazine has room: it is counted, and its place is free, with @next as its
 * word. */
static inline __attribute__((always_inline)) enum due__released done_in(struct due__shard *it,
                                                                        struct due__job *j,
                                                                        uint32_t number,
                                                                        uint64_t next)
{
    it->done++;
    due__word_set(&j->word, next); /* J1: as due__word_free() */
    it->magazine[it->count++] = number;
    return due__lock_release_last(&it->lock); /* S */
}

static __attribute__((noinline)) void done_rest(struct due__shard *it, due_job *job,
                                                enum due__released rest)
{
    due__lock_release_rest(&it->lock, rest);
    due__job_clear(job);
}

/* The same of a shard whose magazine is full. */
static __attribute__((noinline)) void done_full(struct due_queue *q, struct due__shard *it,
                                                struct due__job *j, uint32_t number, uint64_t next,
                                                due_job *job)
{
    due__shard_spill(&q->slab, it);
    done_rest(it, job, done_in(it, j, number, next));
}

/* The shard's lock was tried, and not just got. */
static __attribute__((noinline)) void done_tried(struct due_queue *q, struct due__shard *it,
                                                 due_job *job, enum due__tried how)
{
    due__shard_tried(it, how);
    done_any(q, job);
}

/* Nearly always it is a plain job of a queue of memory, taken for good.  What is rare is a call at
 * the end, for which nothing need be saved. */
void due_job_done(due_job *job)
{
    due_queue *q = job->queue;
    uint32_t number;
    uint32_t generation;
    uint64_t next;

    if (q == NULL || due__forked(q) || q->stored || (job->token | job->round) != 0 ||
        !due__handle_read(job->place, &number, &generation) || !due__word_next(generation, &next)) {
        done_any(q, job);
        return;
    }
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t differs =
        due__load_acquire(&j->word) ^ due__word(generation, 0, DUE__CLAIMED); /* J1 */
    uint32_t offset = due__thread_offset;
    if ((differs & ~(uint64_t)(DUE__STAMP_MASK << 8 | DUE__READY)) != 0 ||
        due__job_has_block(due__facts_load(j)) || offset == 0) {
        done_any(q, job);
        return;
    }
    struct due__shard *it = due__shard_at(&q->slab, offset);
    enum due__tried how = due__lock_try_quick(&it->lock); /* S */
    if (how != DUE__TRIED_GOT) {
        done_tried(q, it, job, how);
        return;
    }
    if (it->count == DUE__MAGAZINE) {
        done_full(q, it, j, number, next, job);
        return;
    }
    enum due__released rest = done_in(it, j, number, next);
    if (rest != DUE__RELEASED)
        done_rest(it, job, rest);
    else
        due__job_clear(job);
}

/* Some of @n jobs, those of one queue that stand first: how many. */
static size_t some_done(due_job *jobs, size_t n)
{
    struct due_queue *q = jobs->queue;
    bool there = q != NULL && !due__forked(q);
    struct done d[DONE_AT_ONCE];
    size_t count = 0;

    for (; count < n && count < DONE_AT_ONCE && jobs[count].queue == q; count++) {
        if (there)
            d[count] = done_begin(q, &jobs[count]);
        due__job_clear(&jobs[count]);
    }
    if (there) {
        struct due__shard *it = due__shard_enter(&q->slab);

        for (size_t i = 0; i < count; i++)
            done_end(q, it, d[i]);
        due__shard_leave(it);
    }
    return count;
}

void due_jobs_done(due_job *jobs, size_t n)
{
    for (size_t at = 0; at < n;)
        at += some_done(jobs + at, n - at);
}

void due__ack_end(struct due_queue *q, uint32_t number)
{
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, number)->word); /* J1: the caller's own */

    due__step(q, number, DUE__S_ACKED, 0);
    DUE__PROBE2(ack, q, number);
    due__key_end(q, number, true);
    bool last = due__job_unhold(q, number, w);
    struct due__shard *it = due__shard_enter(&q->slab);

    it->acked++; /* C2 of closing.c */
    it->unleased++;
    if (last)
        due__place_done(q, it, number);
    due__shard_leave(it);
    if (q->capacity > 0)
        due__capacity_give(q, 1);
    due__left(q, 1);
}
