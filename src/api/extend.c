/* extend.c - while a job is out: its lease goes on, or its holder asks whether it does.
 *
 * That of a job in a handler's hand is extended by the keeper of its pool as well, perhaps at the
 * same time.  Then neither makes it shorter, and the handler waits for what is on its way to a
 * store: the job is his, whoever extends it.
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

/* Under the lock: as hold_still(), of a shared queue.  DUE_EBUSY: its lease is being extended. */
static int hold_extending(struct due_queue *q, uint32_t number, uint32_t token)
{
    const struct due__lease *l = due__lease_at(q, number);
    uint64_t w = due__load_acquire(&due__job_at(&q->slab, number)->word); /* J1, R1 */

    if (due__load_relaxed(&l->token) != token) /* R1 */
        return DUE_ESTALE;
    if (due__word_state(w) != DUE__LEASED)
        return due__word_state(w) == DUE__CLAIMED && q->journal->extending(q, number) /* X1 */
                   ? DUE_EBUSY
                   : DUE_ESTALE;
    q->journal->extend_mark(q, number, true); /* X1 of share.c: before the word */
    int rc = hold_still(q, number, token, due__clock_now(&q->clock), DUE__CLAIMED, &w);
    if (rc != 0)
        q->journal->extend_mark(q, number, false); /* X1: it has been answered for, or has ended */
    return rc;
}

/* Until when a lease goes that ends at @end_ns so far: no less where its pool has a keeper. */
static int64_t later(const due_job *job, const struct due__deadline *by, int64_t end_ns,
                     int64_t until_ns)
{
    bool kept = job->pool != NULL || by->polls; /* it is the keeper's call that does */

    return kept && end_ns > until_ns ? end_ns : until_ns;
}

/* *@lease_ns as later() says. */
static int try_extending(const due_job *job, uint32_t number, const struct due__deadline *by,
                         int64_t *lease_ns)
{
    struct due_queue *q = job->queue;
    const struct due__job *j = due__job_at(&q->slab, number);
    struct due__tenure t;

    due__enter(q, &t);
    int rc = hold_extending(q, number, due__token_of(job->token));
    int64_t left = due__load_relaxed(&j->deadline_ns) - due__clock_now(&q->clock); /* J1 */
    due__tenure_end(q, &t);
    if (rc == 0)
        *lease_ns = later(job, by, left, *lease_ns);
    return rc;
}

/* The same, and what extends it already is waited for, unless @by polls. */
static int await_extending(const due_job *job, uint32_t number, struct due__deadline *by,
                           int64_t *lease_ns)
{
    struct due_queue *q = job->queue;
    int rc = try_extending(job, number, by, lease_ns);

    while (rc == DUE_EBUSY && !by->polls) {
        uint64_t news = q->journal->news(q); /* and then it is looked at: N1 of store/wait.c */

        rc = try_extending(job, number, by, lease_ns);
        int waited = rc == DUE_EBUSY ? q->journal->unsettled(q, number, 0, news, by, NULL) : 0;
        if (waited != 0)
            return waited;
    }
    return rc;
}

/* Of a shared queue: the lease is extended in the store first.  If @by polls nobody waits. */
static int extend_shared(const due_job *job, uint32_t number, int64_t lease_ns,
                         struct due__deadline *by)
{
    struct due_queue *q = job->queue;
    int rc = await_extending(job, number, by, &lease_ns);

    if (rc != 0)
        return rc;
    due__count(q, number, DUE__F_LEASED, -1);
    rc = q->journal->change(q, number, DUE__EXTEND, lease_ns, by);
    if (!due__answers(rc))
        q->journal->extend_undo(q, number);
    return rc;
}

static int extend_here(const due_job *job, uint32_t number, int64_t lease_ns,
                       const struct due__deadline *by)
{
    struct due_queue *q = job->queue;
    const struct due__job *j = due__job_at(&q->slab, number);
    struct due__tenure t;
    uint64_t w;

    due__enter(q, &t);
    int64_t now = due__clock_now(&q->clock);
    int rc = hold_still(q, number, due__token_of(job->token), now, DUE__MOVING, &w);
    if (rc == 0) {
        int64_t from = now > due__due_ns(q) ? now : due__due_ns(q);
        int64_t end = due__load_relaxed(&j->deadline_ns); /* J1: MOVING */

        due__replace(q, number, w, DUE__LEASED, later(job, by, end, due__time_add(from, lease_ns)));
    }
    due__tenure_end(q, &t);
    return rc == 0 ? due__state_of(q) : rc;
}

static int lease_extend(due_job *job, int64_t lease_ns, struct due__deadline *by)
{
    struct due_queue *q = job->queue;
    uint32_t number;
    int rc = lease_ns <= 0 ? DUE_EINVAL : due__held(job, &number);

    if (rc != 0)
        return rc;
    if (job->pool != NULL)
        ((const struct due__holder *)job->pool)->settle(job);
    return q->shared ? extend_shared(job, number, lease_ns, by)
                     : extend_here(job, number, lease_ns, by);
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

/* The lease of a job: its word, and its end.  0; DUE_EBUSY: it is being extended in the store;
 * DUE_ESTALE: it is not its holder's any more. */
static int look_at(const due_job *job, uint32_t number, uint64_t *w, int64_t *end_ns)
{
    struct due_queue *q = job->queue;
    const struct due__job *j = due__job_at(&q->slab, number);
    uint64_t seen;

    *w = due__load_acquire(&j->word); /* J1, R1 */
    do {
        enum due__state state = due__word_state(*w);

        seen = *w;
        *end_ns = due__load_relaxed(&j->deadline_ns); /* J1 */
        if (due__load_relaxed(&due__lease_at(q, number)->token) !=
            due__token_of(job->token)) /* R1 */
            return DUE_ESTALE;
        if (state == DUE__LEASED || state == DUE__MOVING)
            return 0;
        if (state != DUE__CLAIMED || !q->shared)
            return DUE_ESTALE;
        if (q->journal->extending(q, number)) /* X1 of share.c */
            return DUE_EBUSY;
        *w = due__load_acquire(&j->word); /* J1, R1: or that is over by now */
    } while (*w != seen);
    return DUE_ESTALE;
}

int due__lease_end(const due_job *job, int64_t *end_ns)
{
    uint32_t number;
    uint64_t w;
    int rc = due__held(job, &number);

    return rc == 0 ? look_at(job, number, &w, end_ns) : rc;
}

bool due__lease_stopping(const due_job *job)
{
    struct due_queue *q = job->queue;
    uint32_t number;
    int64_t end;
    uint64_t w;

    if (due__held(job, &number) != 0)
        return true;
    int rc = look_at(job, number, &w, &end);
    return (rc != 0 && rc != DUE_EBUSY) || end <= due__clock_now(&q->clock) ||
           due__state_of(q) != 0 || /* no answer of ours counts any more */
           due__load_relaxed(&due__lease_at(q, number)->revoked) ==
               due__word_generation(w); /* R3 */
}
