/* extend.c - while a job is out: its lease goes on, or its holder asks whether it does.
 *
 * Guards     T  the timeline lock
 *
 * Edges      described elsewhere: J1 slab.h, R1 R3 lease.c, X1 share.c
 */
#include "api/ack.h"
#include "api/held.h"
#include "job/deferred_lease.h"
#include "job/lease.h"
#include "os/atomic.h"
#include "queue/job_records.h"
#include "queue/place.h"
#include "queue/queue.h"
#include "queue/stored.h"
#include "queue/tenure.h"

/* Under the lock: the leased job of this token, made MOVING; *w gets that word.  DUE_ESTALE. */
static int hold_still(struct due_queue *q, uint32_t number, uint32_t token, int64_t now_ns,
                      enum due__state as, uint64_t *w)
{
    struct due__job *j = due__job_at(&q->slab, number);
    const struct due__lease *l = due__lease_at(q, number);

    *w = due__load_acquire(&j->word); /* J1, R1 */
    do {
        if (due__word_state(*w) != DUE__LEASED || due__load_relaxed(&l->token) != token || /* R1 */
            due__load_relaxed(&j->deadline_ns) <= now_ns)                                  /* J1 */
            return DUE_ESTALE;
    } while (!due__word_claim(&j->word, w, as)); /* J1 */
    *w = due__word_as(*w, as);
    return 0;
}

/* Of a shared queue: the lease is extended in the store first.  If @by polls nobody waits. */
static int extend_shared(const due_job *job, uint32_t number, int64_t lease_ns,
                         struct due__deadline *by)
{
    struct due_queue *q = job->queue;
    struct due__tenure t;
    uint64_t w;

    due__enter(q, &t);
    bool other = q->journal->extending(q, number); /* X1 of share.c */
    q->journal->extend_mark(q, number, true);      /* X1: before the word */
    int rc = hold_still(q, number, due__token_of(job->token), due__clock_now(&q->clock),
                        DUE__CLAIMED, &w);
    if (rc != 0)
        q->journal->extend_mark(q, number, other);
    due__tenure_end(q, &t);
    if (rc != 0)
        return rc;
    due__count(q, number, DUE__F_LEASED, -1);
    rc = q->journal->change(q, number, DUE__EXTEND, lease_ns, by);
    if (!due__answers(rc))
        q->journal->extend_undo(q, number);
    return rc;
}

static int lease_extend(due_job *job, int64_t lease_ns, struct due__deadline *by)
{
    struct due_queue *q = job->queue;
    struct due__tenure t;
    uint32_t number;
    uint64_t w;
    int rc = lease_ns <= 0 ? DUE_EINVAL : due__held(job, &number);

    if (rc != 0)
        return rc;
    if (job->pool != NULL)
        ((const struct due__holder *)job->pool)->settle(job);
    if (q->shared)
        return extend_shared(job, number, lease_ns, by);
    due__enter(q, &t);
    int64_t now = due__clock_now(&q->clock);
    rc = hold_still(q, number, due__token_of(job->token), now, DUE__MOVING, &w);
    if (rc == 0)
        due__replace(q, number, w, DUE__LEASED,
                     due__time_add(now > due__due_ns(q) ? now : due__due_ns(q), lease_ns));
    due__tenure_end(q, &t);
    return rc == 0 ? due__state_of(q) : rc;
}

int due__lease_extend(due_job *job, int64_t lease_ns)
{
    struct due__deadline by = { .polls = true };

    return lease_extend(job, lease_ns, &by);
}

/* A lease that goes on is as much a promise as one that begins: nobody else has the job. */
int due_extend(due_job *job, int64_t lease_ns)
{
    struct due_queue *q = job->queue;
    struct due__deadline by = { 0 };
    int rc = lease_extend(job, lease_ns, &by);

    return rc == 0 ? due__held_until(q, &by) : rc;
}

bool due__lease_stopping(const due_job *job)
{
    struct due_queue *q = job->queue;
    uint32_t number;

    if (due__held(job, &number) != 0)
        return true;
    const struct due__job *j = due__job_at(&q->slab, number);
    const struct due__lease *l = due__lease_at(q, number);
    uint64_t w = due__load_acquire(&j->word); /* J1, R1 */
    enum due__state state = due__word_state(w);

    if (state == DUE__CLAIMED && q->shared && q->journal->extending(q, number)) /* X1 of share.c */
        return due__load_relaxed(&l->revoked) == due__word_generation(w) ||     /* R3 */
               due__load_relaxed(&j->deadline_ns) <= due__clock_now(&q->clock); /* J1 */
    return (state != DUE__LEASED && state != DUE__MOVING) ||
           due__load_relaxed(&l->token) != due__token_of(job->token) ||     /* R1 */
           due__load_relaxed(&l->revoked) == due__word_generation(w) ||     /* R3 */
           due__load_relaxed(&j->deadline_ns) <= due__clock_now(&q->clock); /* J1 */
}
