/* reschedule.c - due_reschedule(), due_promote().
 *
 * Edges      described elsewhere: E3 tenure.c, I2 inbox.c, J1 slab.h, R1 lease.c
 */
#include "api/reschedule.h"

#include "job/amend.h"
#include "job/claim.h"
#include "job/lease.h"
#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/inside.h"
#include "queue/job_records.h"
#include "queue/queue.h"

#define AT_NOW (-1) /* the time that it is when the job is claimed */

static int reschedule_decide(struct due_queue *q, struct due__amendment *a, uint64_t w,
                             int64_t now_ns)
{
    (void)q;
    (void)w;
    a->purpose = DUE__MOVE;
    if (a->want_ns == AT_NOW)
        a->want_ns = now_ns;
    return 0;
}

/* Under the lock.  Nobody else moves jobs, but they may be taken or cancelled until the swap. */
static int move_locked(struct due_queue *q, uint32_t number, uint32_t generation, int64_t at_ns)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_acquire(&j->word); /* J1 */
    int rc;

    do {
        rc = due__obstacle(w, generation);
        if (rc != 0)
            return rc;
    } while (!due__word_claim(&j->word, &w, DUE__MOVING)); /* J1 */
    if (w & DUE__HELD)
        due__store_relaxed(&due__lease_at(q, number)->deadline_ns, at_ns); /* R1 of lease.c */
    w = due__limiter_left(q, number, w);
    due__replace(q, number, w, DUE__WAITING, at_ns);
    return 0;
}

/* The usual case, in a queue whose journal need not be asked: as that amends a job, in fewer
 * steps. */
static int reschedule_short(struct due_queue *q, uint32_t number, uint32_t generation,
                            int64_t at_ns)
{
    struct due__tenure t;
    int rc = DUE_ECLOSED;

    due__enter(q, &t);
    if (!due__inbox_quiet(&q->inbox)) { /* I2: what the caller put in before stands before it */
        due__tenure_end(q, &t);
        due__drain_all(q);
        due__enter(q, &t);
    }
    if (!(due__load_seq(&q->state) & DUE__CLOSING)) { /* E3: whoever closes takes the lock after */
        int64_t now_ns = due__clock_now(&q->clock);

        due__drain_or_say(q, DUE__FOREIGN_MAX);
        due__move_due(q, now_ns);
        rc = move_locked(q, number, generation, at_ns == AT_NOW ? now_ns : at_ns);
        if (at_ns <= now_ns) /* AT_NOW too */
            due__move_due(q, now_ns);
    }
    due__tenure_end(q, &t);
    return rc;
}

int due__reschedule(struct due_queue *q, uint32_t number, uint32_t generation, int64_t at_ns,
                    struct due__deadline *by)
{
    struct due__amendment a = { .number = number,
                                .generation = generation,
                                .of = DUE__IF_WAITING,
                                .last = true,
                                .decide = reschedule_decide,
                                .want_ns = at_ns };

    uint64_t w = due__load_acquire(&due__job_at(&q->slab, number)->word); /* J1 */

    if (due__lapsed(q, number, w))
        due__lapse(q, number, by);
    if (q->short_ways)
        return reschedule_short(q, number, generation, at_ns);
    return q->journal->amend(q, &a, by);
}

static int reschedule(struct due_queue *q, due_id id, int64_t at_ns)
{
    struct due__deadline by = { 0 };
    uint32_t number;
    uint32_t generation;

    if (due__forked(q))
        return DUE_EFORK;
    bool inside = due__inside_stored(q);
    int rc = due__id_find(q, id, &by, &number, &generation);
    if (rc == 0)
        rc = due__reschedule(q, number, generation, at_ns, &by);
    rc = due__named(q, rc);
    due__inside_end(q, inside);
    return rc;
}

int due_reschedule(due_queue *q, due_id id, int64_t at_ns)
{
    if (at_ns < 0)
        return due__forked(q) ? DUE_EFORK : DUE_EINVAL;
    return reschedule(q, id, at_ns);
}

int due_promote(due_queue *q, due_id id)
{
    return reschedule(q, id, AT_NOW);
}
