/* reschedule.c - due_reschedule(), due_promote().
 *
 * The usual case, a job that waits in the timeline and shall wait there again, needs neither a look
 * at the clock nor what is due moved first: with a deadline after all that has left the timeline it
 * stands where it belongs, as a new job with that deadline would.  So that the processor can fetch
 * the jobs of several calls at a time, the way is kept short.
 *
 * Edges      described elsewhere: E3 tenure.c, I2 I3 inbox.c, J1 slab.h, R1 lease.c
 */
#include "api/reschedule.h"

#include "job/amend.h"
#include "job/claim.h"
#include "job/lease.h"
#include "os/atomic.h"
#include "os/tsan.h"
#include "queue/closing.h"
#include "queue/inside.h"
#include "queue/job_records.h"
#include "queue/place.h"
#include "queue/queue.h"
#include "queue/stored.h"
#include "queue/tenure.h"

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

/* In a queue whose journal need not be asked: as that amends a job, in fewer steps. */
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
    int rc;
    do {
        rc = due__id_find(q, id, &by, &number, &generation);
        if (rc == 0)
            rc = due__reschedule(q, number, generation, at_ns, &by);
        if (!due__is_elsewhere(q, rc))
            break;
        struct due__ask ask = { .kind = DUE__ASK_MOVE, .id = id, .at_ns = at_ns };

        if (at_ns == AT_NOW)
            ask.at_ns = due__jobs_now(q);
        rc = q->journal->ask(q, &ask, &by);
    } while (due__came_meanwhile(q, id, rc));
    rc = due__named(q, rc);
    due__inside_end(q, inside);
    return rc;
}

/* Under the lock, with an empty inbox: a plain job that waits in the timeline gets another place
 * there.  It may be taken or cancelled until the swap; what is in the way, the usual way says.
 * False: nothing was done. */
static inline __attribute__((always_inline)) bool move_plain(struct due_queue *q, uint32_t number,
                                                             uint32_t generation, int64_t at_ns)
{
    if (at_ns <= due__slot_deadline(q->gone))
        return false;                        /* it may have to go into a line */
    uint32_t arrival = due__next_arrival(q); /* before the look: that may give all another one */
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_acquire(&j->word); /* J1 */
    uint64_t differs = w ^ due__word(generation, 0, DUE__WAITING);

    if ((differs & ~(uint64_t)(DUE__STAMP_MASK << 8)) != 0 ||
        !due__word_claim(&j->word, &w, DUE__MOVING)) /* J1 */
        return false;
    struct due__facts f = due__facts_load(j); /* until the word is set it is ours */
    if (f.payload & DUE__NOW) {
        f.payload &= (uint8_t)~DUE__NOW;
        due__facts_store(j, f);
    }
    due__store_relaxed(&j->deadline_ns, at_ns); /* J1 */
    due__tsan_release(j);                       /* its last holder's */
    struct due__slot s = due__slot_make(at_ns, f.priority, arrival, number);
    due__word_set(&j->word, due__word_stamped(w, due__slot_arrival(s))); /* J1 */
    due__keep_waiting(q, s); /* its place may be another job's by now */
    return true;
}

/* False: nothing was done. */
static inline __attribute__((always_inline)) bool reschedule_plain(struct due_queue *q, due_id id,
                                                                   int64_t at_ns)
{
    uint32_t number;
    uint32_t generation;

    if (!q->short_ways || due__forked(q) || !due__id_read_made(q, id, &number, &generation))
        return false;
    due__short_enter(q);
    bool moved = due__inbox_quiet(&q->inbox) && !due__inbox_late(&q->inbox) && /* I2, I3 */
                 !(due__load_seq(&q->state) & DUE__CLOSING) && /* E3: who closes takes the lock */
                 move_plain(q, number, generation, at_ns);
    due__short_end(q);
    return moved;
}

static __attribute__((noinline)) int reschedule_usual(due_queue *q, due_id id, int64_t at_ns)
{
    if (at_ns < 0)
        return due__forked(q) ? DUE_EFORK : DUE_EINVAL;
    return reschedule(q, id, at_ns);
}

int due_reschedule(due_queue *q, due_id id, int64_t at_ns)
{
    if (at_ns >= 0 && reschedule_plain(q, id, at_ns))
        return 0;
    return reschedule_usual(q, id, at_ns);
}

int due_promote(due_queue *q, due_id id)
{
    return reschedule(q, id, AT_NOW);
}
