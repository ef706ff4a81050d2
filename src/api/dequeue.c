/* dequeue.c - taking jobs out: from what is shown, from under the lock, or by waiting.
 *
 * Edges      described elsewhere: C2 closing.c, R3 lease.c
 *
 * Not here   How jobs are found, and waited for: request.c.
 */
#include "api/dequeue.h"

#include <limits.h>
#include <string.h>

#include "job/claim.h"
#include "job/dead_letter.h"
#include "job/deferred_lease.h"
#include "job/handover.h"
#include "job/lease.h"
#include "job/release.h"
#include "job/request.h"
#include "job/spin_take.h"
#include "job/take_next.h"
#include "os/atomic.h"
#include "queue/capacity.h"
#include "queue/closing.h"
#include "queue/inside.h"
#include "queue/queue.h"

#define MISSED 1 /* no answer of a call that takes one job */

/* The taken jobs go to the caller, for good or on a lease.  Answers how many of them the caller has
 * (0: they were not to be handed out), or an error; the others wait again. */
static int hand_out(struct due_queue *q, const struct due__request *r, struct due__slot *slots,
                    size_t n)
{
    due_job *jobs = r->jobs;
    int rc = 0;

    if (r->leased)
        return (int)n;
    n = due__attempts_check(q, slots, n, NULL, &rc);
    if (n == 0)
        return rc;
    if (r->lease_ns == 0) {
        due__hand_over(q, slots, n, r->now_ns, jobs);
        return (int)n;
    }
    rc = r->lease_ns > 0 ? due__lease_begin(q, slots, n, r->lease_ns, r->now_ns, jobs)
                         : due__lease_deferred(q, slots, n, -r->lease_ns, r->now_ns, jobs);
    if (rc != 0)
        due__put_back(q, slots, n);
    return rc == 0 ? (int)n : rc;
}

static int dequeue(struct due_queue *q, struct due__request *r)
{
    struct due__slot slots[DUE__TAKE_MAX];
    size_t taken = 0;
    int rc = 0;

    while (r->max > 0) {
        size_t got = due__take_some(q, r, slots, &rc);

        if (got == 0)
            break;
        rc = hand_out(q, r, slots, got);
        if (rc < 0)
            break;
        taken += (size_t)rc;
        r->jobs += rc;
        r->max -= (size_t)rc;
        if (rc > 0)
            r->timeout_ns = 0; /* the rest is what is due now */
    }
    return taken > 0 ? (int)taken : rc;
}

int due__take_out(struct due_queue *q, const int *topics, size_t n, due_job *jobs, size_t max,
                  int64_t lease_ns, int64_t timeout_ns, const uint32_t *quit)
{
    struct due__request r = { .wanted = { .topics = topics, .count = n },
                              .jobs = jobs,
                              .max = max < INT_MAX ? max : INT_MAX,
                              .lease_ns = lease_ns,
                              .timeout_ns = timeout_ns,
                              .until_ns = DUE_FOREVER,
                              .quit = quit };

    if (due__forked(q))
        return DUE_EFORK;
    if (timeout_ns < 0 || max == 0 || !due__topics_there(q, topics, n))
        return DUE_EINVAL;
    if (lease_ns != 0 && !due__load_relaxed(&q->reserves))
        due__store_relaxed(&q->reserves, 1); /* R3 of lease.c: before it takes */
    if (timeout_ns == 0 && due__nothing_yet(q))
        return DUE_EAGAIN;
    r.inside = due__inside_stored(q);
    int rc = q->commits == NULL ? dequeue(q, &r) : due__dequeue_stored(q, &r);
    due__inside_end(q, r.inside);
    return rc;
}

/* One job, by the usual way. */
static __attribute__((noinline)) int one_by_asking(due_queue *q, const struct due__wanted *wanted,
                                                   due_job *job, int64_t lease_ns,
                                                   int64_t timeout_ns)
{
    return due__one_or_named(
        job, due__take_out(q, wanted->topics, wanted->count, job, 1, lease_ns, timeout_ns, NULL));
}

/* The same of one for good that may have to be spun for: that is done here, close to the caller. */
static __attribute__((noinline)) int one_by_spinning(due_queue *q, due_job *job, int64_t timeout_ns)
{
    struct due__request r = {
        .jobs = job, .max = 1, .timeout_ns = timeout_ns, .until_ns = DUE_FOREVER, .spins = true
    };
    int rc;

    while ((rc = dequeue(q, &r)) == DUE__SPINS) {
        if (due__spin_take(q, &r))
            return 0;
    }
    due__inside_end(q, r.inside);
    return due__one_or_named(job, rc);
}

/* A job that was taken by a short way, and may have to be looked at. */
static __attribute__((noinline)) int one_taken(due_queue *q, const struct due__wanted *wanted,
                                               due_job *job, int64_t lease_ns, int64_t timeout_ns,
                                               struct due__slot s, int64_t now_ns)
{
    struct due__request r = { .jobs = job, .max = 1, .lease_ns = lease_ns, .now_ns = now_ns };
    int rc = hand_out(q, &r, &s, 1);

    return rc == 0 ? one_by_asking(q, wanted, job, lease_ns, timeout_ns)
                   : due__one_or_named(job, rc);
}

/* The first that is shown of @topic.  MISSED: somebody was quicker. */
static __attribute__((noinline)) int one_shown(due_queue *q, struct due__topic *topic,
                                               const struct due__wanted *wanted, due_job *job,
                                               int64_t lease_ns, int64_t timeout_ns)
{
    struct due__slot s;

    if (!due__take_one_shown(q, topic, &s))
        return MISSED;
    if (lease_ns != 0 && due__lease_plain(q, &s, 1, lease_ns, 0, job))
        return 0;
    if (lease_ns != 0 || !due__is_plain(q, due__slot_job(s)))
        return one_taken(q, wanted, job, lease_ns, timeout_ns, s, 0);
    due__job_fill_plain(q, due__slot_job(s), due__slot_deadline(s), due__clock_now(&q->clock), job);

    struct due__shard *it = due__shard_enter(&q->slab);
    it->dequeued++; /* C2 of closing.c */
    due__shard_leave(it);
    if (q->capacity > 0)
        due__capacity_give(q, 1);
    due__left(q, 1);
    return 0;
}

/* A look for one has ended without a job that needs nothing more. */
static __attribute__((noinline)) int one_not_done(due_queue *q, const struct due__wanted *wanted,
                                                  due_job *job, int64_t lease_ns,
                                                  int64_t timeout_ns, enum due__next next,
                                                  struct due__slot s, int64_t now_ns)
{
    if (next == DUE__NEXT_TAKEN)
        return one_taken(q, wanted, job, lease_ns, timeout_ns, s, now_ns);
    if (q->spin_ns > 0 && lease_ns == 0 && wanted->topics == NULL)
        return one_by_spinning(q, job, timeout_ns);
    return one_by_asking(q, wanted, job, lease_ns, timeout_ns);
}

/* One job, by the shortest way that there is. */
static inline __attribute__((always_inline)) int one(due_queue *q, const struct due__wanted *wanted,
                                                     due_job *job, int64_t lease_ns,
                                                     int64_t timeout_ns)
{
    struct due__slot s;
    int64_t now = 0;

    if (!q->short_ways || due__forked(q) || timeout_ns < 0 ||
        ((wanted->topics != NULL || wanted->count > 0) &&
         !due__topics_there(q, wanted->topics, wanted->count)) ||
        (lease_ns != 0 && !due__load_relaxed(&q->reserves))) /* R3 of lease.c: the usual way says */
        return one_by_asking(q, wanted, job, lease_ns, timeout_ns);
    struct due__topic *shown = due__topic_shown(q, wanted);
    if (shown != NULL && due__window_count(&shown->window) > 0) { /* a guess: others take too */
        int rc = one_shown(q, shown, wanted, job, lease_ns, timeout_ns);

        if (rc != MISSED)
            return rc;
    }
    if (timeout_ns == 0 && due__nothing_yet(q))
        return due__one_or_none(job, DUE_EAGAIN);
    enum due__next next = lease_ns == 0 ? due__take_next(q, wanted, &s, job)
                                        : due__reserve_next(q, wanted, lease_ns, &s, &now, job);
    if (next == DUE__NEXT_NOTHING && timeout_ns == 0)
        return due__one_or_none(job, DUE_EAGAIN);
    if (next != DUE__NEXT_DONE)
        return one_not_done(q, wanted, job, lease_ns, timeout_ns, next, s, now);
    if (lease_ns != 0)
        return 0;
    if (q->capacity > 0)
        due__capacity_give(q, 1);
    due__left(q, 1); /* C2 of closing.c: it was counted */
    return 0;
}

static const struct due__wanted any = { .topics = NULL };

int due_dequeue(due_queue *q, due_job *job, int64_t timeout_ns)
{
    return one(q, &any, job, 0, timeout_ns);
}

int due_reserve(due_queue *q, due_job *job, int64_t timeout_ns)
{
    return one(q, &any, job, q->lease_ns, timeout_ns);
}

int due__take_one(struct due_queue *q, const int *topics, size_t n, due_job *job, int64_t lease_ns,
                  int64_t timeout_ns)
{
    const struct due__wanted wanted = { .topics = topics, .count = n };

    return one(q, &wanted, job, lease_ns, timeout_ns);
}
