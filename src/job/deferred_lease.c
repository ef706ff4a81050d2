/* deferred_lease.c - leases that stand in no timeline yet.
 *
 * A lease is a deadline in the timeline, and most are answered long before it comes: then its slot
 * was put in, left behind and swept out for nothing.  A pool of workers has somebody who looks
 * after its jobs anyway.  So it takes them as a dequeue does (nobody else can have them), but
 * says so (DEFERRED), and only promises the lease: its keeper makes it a real one before
 * half of it is over.  A job that is acked before that has cost what a dequeue costs.
 *
 * Only jobs that have nothing beside their payload, and no past, are promised: of them nothing has
 * to be remembered.  And only without a store, not where each step of a job is counted or told
 * (events.h), and not on a manual clock, where a lease ends while the clock is turned.  All others
 * get a real lease at once.
 *
 * Edges      described elsewhere: J1 slab.h, R1 to R3 lease.c
 */
#include "job/deferred_lease.h"

#include <string.h>

#include "job/claim.h"
#include "job/dead_letter.h"
#include "job/handover.h"
#include "job/lease.h"
#include "job/release.h"
#include "os/atomic.h"
#include "queue/job_records.h"
#include "queue/queue.h"

static struct due__job *place_of(const due_job *job, uint32_t *number)
{
    uint32_t generation;

    due__handle_read(job->place, number, &generation);
    return due__job_at(&job->queue->slab, *number);
}

static bool plain(struct due_queue *q, struct due__slot s)
{
    uint32_t number = due__slot_job(s);
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, number)->word); /* J1: the caller's own */

    return q->events == NULL && /* who is told of jobs is told of their leases */
           due__is_plain(q, number) && !(w & DUE__PASSED);
}

static void defer_one(struct due_queue *q, struct due__slot s, int64_t now_ns, due_job *job)
{
    uint32_t number = due__slot_job(s);
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_relaxed(&j->word); /* J1: the caller's own */

    due__word_keep(&j->word, due__word_as(w, DUE__DEFERRED)); /* J1: likewise */
    due__job_fill(q, number, due__slot_deadline(s), now_ns, job);
    job->attempts = 1;
    job->token = 1;
}

int due__lease_deferred(struct due_queue *q, const struct due__slot *slots, size_t n,
                        int64_t lease_ns, int64_t now_ns, due_job *jobs)
{
    int64_t now = now_ns != 0 ? now_ns : due__clock_now(&q->clock);
    size_t deferred = 0;
    int rc = due__lease_records(q, slots, n);

    if (rc != 0)
        return rc;
    for (size_t i = 0; i < n; i++) {
        if (plain(q, slots[i])) {
            defer_one(q, slots[i], now, &jobs[i]);
            deferred++;
        } else {
            due__lease_start(q, &slots[i], 1, lease_ns, now, &jobs[i]);
        }
    }
    if (deferred == 0)
        return 0;
    struct due__shard *it = due__shard_enter(&q->slab);
    it->leased += deferred;
    it->lent += deferred;
    it->unready += deferred;
    due__shard_leave(it);
    return 0;
}

bool due__promised(const due_job *job)
{
    uint32_t number;

    return due__word_state(due__load_relaxed(&place_of(job, &number)->word)) == /* J1 */
           DUE__DEFERRED;
}

bool due__deferred_stopping(const due_job *job, bool *deferred)
{
    uint32_t number;
    struct due__job *j = place_of(job, &number);

    *deferred = due__word_state(due__load_acquire(&j->word)) == DUE__DEFERRED; /* J1 */
    return *deferred && due__revoked(job->queue, number);                      /* R3 */
}

/* Under the lock: the record of a lease that is real from now on. */
static void remember(struct due_queue *q, uint32_t number, const due_job *job, uint32_t limit)
{
    struct due__lease *l = due__lease_at(q, number);

    due__past_begin(q, number, job->deadline_ns);
    due__store_relaxed(&l->token, (uint32_t)job->token); /* R1 */
    due__store_relaxed(&l->attempts, job->attempts);     /* R1 */
    due__store_relaxed(&l->limit, limit);                /* R1 */
    due__store_relaxed(&l->holders, 2); /* R2: the job's own life, and its holder */
}

void due__deferred_keep(const due_job *job, int64_t until_ns)
{
    struct due_queue *q = job->queue;
    struct due__tenure t;
    uint32_t number;
    struct due__job *j = place_of(job, &number);
    uint32_t limit = due__lease_limited(q, j) ? due__retry_limit(due__retry_of(q, j)) : 0;

    due__enter(q, &t);
    uint64_t w = due__load_relaxed(&j->word); /* J1: the caller's own */
    remember(q, number, job, limit);
    due__replace(q, number, w | DUE__HELD, DUE__LEASED,
                 until_ns > due__due_ns(q) ? until_ns : due__time_add(due__due_ns(q), 1));
    due__tenure_end(q, &t);
}

void due__deferred_ack(due_job *job)
{
    uint32_t number;

    struct due__job *j = place_of(job, &number);
    due__ack_at_once(job, j, number);
}

void due__deferred_return(due_job *job)
{
    struct due_queue *q = job->queue;
    uint32_t number;
    struct due__job *j = place_of(job, &number);
    uint64_t w = due__load_relaxed(&j->word); /* J1: the caller's own */
    struct due__shard *it = due__shard_enter(&q->slab);

    it->unleased++;
    it->done++;
    due__shard_leave(it);
    due__word_keep(&j->word, due__word_as(w, DUE__CLAIMED)); /* J1: likewise */
    due__unclaim(q, number, false);
    memset(job, 0, sizeof *job);
}
