/* repeat.c - jobs that come again: when, and as what.
 *
 * A repeating job has one id and one place for all its rounds.  When a round is done with, by an
 * ack or because somebody took it for good, the same job waits again, as if it had never been
 * handed out: no attempts, no failures, and the deadline of the next round.  The bytes that the
 * taker has are the job's, so he is counted among its holders (R2 of lease.c) until he lets go.
 *
 * A job that died, was cancelled, or whose queue drains does not come again; where there is a
 * store, a queue that drains leaves it there for the next opening.  A job of a shared queue leaves
 * memory at the end of each round, and waits for the next in the store, for whoever claims it.
 *
 * Edges      described elsewhere: C2 closing.c, E3 tenure.c, J1 slab.h, R1 R2 R3 lease.c
 */
#include "job/repeat.h"

#include <string.h>

#include "job/dead_letter.h"
#include "job/handover.h"
#include "job/key_table.h"
#include "job/lease.h"
#include "job/release.h"
#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/extras.h"
#include "queue/job_records.h"
#include "queue/queue.h"
#include "queue/stored.h"

/* ---- When ---- */

int64_t due__repeat_next(const struct due__extras *extras, int64_t deadline_ns, int64_t now_ns)
{
    int64_t next = due__time_add(deadline_ns, extras->every_ns);

    if (extras->repeat == DUE_REPEAT_AFTER)
        return due__time_add(now_ns, extras->every_ns);
    if (next >= now_ns)
        return next;
    int64_t past =
        (now_ns - deadline_ns) % extras->every_ns; /* since the last one that has passed */
    if (past == 0 || extras->repeat == DUE_REPEAT_ONCE)
        return now_ns - past;
    return due__time_add(now_ns, extras->every_ns - past);
}

bool due__repeats(const struct due_queue *q, uint32_t number)
{
    const struct due__extras *extras = due__extras_of(due__job_at(&q->slab, number));

    if (extras == NULL || extras->every_ns == 0)
        return false;
    return extras->key == NULL ||
           !due__key_lost(q, extras->key); /* else another job has taken over */
}

int64_t due__repeat_at(const struct due_queue *q, uint32_t number)
{
    const struct due__extras *extras = due__extras_of(due__job_at(&q->slab, number));
    int64_t was = due__load_relaxed(&due__lease_at(q, number)->deadline_ns); /* R1 */

    return due__repeat_next(extras, was, due__jobs_now(q));
}

/* ---- Waiting again ---- */

/* Does no further round begin?  A job with a store waits until the store is closed: what is lost
 * there meanwhile can be put again; but not in a queue that drains, which would not end. */
static bool refusing(const struct due_queue *q)
{
    if (due__load_seq(&q->state) & DUE__DRAINING) /* C2 of closing.c, E3: under the lock */
        return true;
    return due__closed(q);
}

/* Under the lock: a job of the caller's own waits for its next round. */
static void again(struct due_queue *q, uint32_t number, int64_t at_ns)
{
    struct due__lease *l = due__lease_at(q, number);
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, number)->word); /* J1: the caller's own */

    due__store_relaxed(&l->deadline_ns, at_ns); /* R1 */
    due__store_relaxed(&l->attempts, 0);        /* R1 */
    due__store_relaxed(&l->failures, 0);        /* R1 */
    due__add_relaxed(&q->repeated, 1);          /* no edge: a counter */
    w = due__limiter_left(q, number, w);        /* this round has ended */
    due__replace(q, number, w, DUE__WAITING, at_ns);
}

bool due__repeat_locked(struct due_queue *q, uint32_t number, int64_t at_ns, bool acked)
{
    if (due__revoked(q, number)) {
        due__dying_enlist(q, number); /* it goes */
        return true;
    }
    if (refusing(q))
        return false;
    if (acked)
        due__note_repeated(q, number, false);
    again(q, number, at_ns);
    return true;
}

/* ---- Taken for good ---- */

/* A taken job's bytes are lent to one more. */
static void hold(struct due_queue *q, struct due__slot s, due_job *job)
{
    uint32_t number = due__slot_job(s);
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_relaxed(&j->word); /* J1: the caller's own */

    if (!(w & DUE__HELD)) {
        due__past_begin(q, number, due__slot_deadline(s));
        due__word_keep(&j->word, w | DUE__HELD); /* J1 */
    }
    due__add_seq(&due__lease_at(q, number)->holders, 1); /* R2 */
    job->round = 1;
}

void due__round_drop(struct due_queue *q, due_job *job, uint32_t number)
{
    job->round = 0;
    if (!due__lease_let_go(q, number))
        return;
    struct due__shard *it = due__shard_enter(&q->slab);
    due__place_done(q, it, number);
    due__shard_leave(it);
}

void due__rounds_end(struct due_queue *q, size_t n)
{
    if (n == 0)
        return;
    struct due__shard *it = due__shard_enter(&q->slab);

    it->lent += n;
    it->unready += n;
    due__shard_leave(it);
}

size_t due__repeat_taken(struct due_queue *q, const struct due__slot *slots, size_t n,
                         due_job *jobs)
{
    struct due__tenure t;
    size_t more = 0;

    for (size_t i = 0; q->events != NULL && i < n; i++)
        due__events_flush(q, due__slot_job(slots[i]));
    due__enter(q, &t);
    due__catch_up(q, DUE__FOREIGN_MAX);
    for (size_t i = 0; i < n && !refusing(q); i++) {
        uint32_t number = due__slot_job(slots[i]);

        if (!due__repeats(q, number) || due__revoked(q, number))
            continue;
        hold(q, slots[i], &jobs[i]);
        due__note_repeated(q, number, true);
        again(q, number, due__repeat_at(q, number));
        more++;
    }
    due__tenure_end(q, &t);
    due__rounds_end(q, more);
    return more;
}

bool due__round_begin(struct due_queue *q, struct due__slot s, int64_t now_ns, due_job *job)
{
    uint32_t number = due__slot_job(s);

    if (!due__repeats(q, number))
        return false;
    due__job_fill(q, number, due__slot_deadline(s), now_ns, job);
    hold(q, s, job);
    return true;
}
