/* cancel.c - any job that waits or is dead is taken back; one that somebody has is marked.
 *
 * Edges      described elsewhere: J1 slab.h, C2 closing.c, R4 lease.c
 *
 * Not here   The usual case, a plain job that waits: api/cancel.c.
 */
#include "job/cancel.h"

#include "job/claim.h"
#include "job/dead_letter.h"
#include "job/handover.h"
#include "job/key_table.h"
#include "job/lease.h"
#include "job/release.h"
#include "os/atomic.h"
#include "os/probe.h"
#include "queue/stored.h"

/* A claimed job that may have been dead goes. */
static void leave_dead(struct due_queue *q, uint32_t number, uint64_t w)
{
    if ((w & DUE__HELD) && due__is_dying(q, number))
        due__dead_letter_close(q, number);
}

void due__cancel_end(struct due_queue *q, uint32_t number)
{
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, number)->word); /* J1: the caller's own */

    due__key_end(q, number, false);
    leave_dead(q, number, w);
    due__step(q, number, DUE__S_CANCELLED, w);
    DUE__PROBE2(cancel, q, number);
    bool last = due__job_unhold(q, number, w);
    struct due__shard *it = due__shard_enter(&q->slab);
    uint64_t count = ++it->cancelled; /* C2 of closing.c */

    it->unready += (w & DUE__READY) != 0;
    if (last)
        due__place_done(q, it, number);
    due__shard_leave(it);
    due__cancelled(q, count);
}

/* A claimed job, to be given to who cancelled it. */
static void lend(struct due_queue *q, uint32_t number, uint64_t w, due_job *job)
{
    int64_t deadline = due__load_relaxed(&due__job_at(&q->slab, number)->deadline_ns); /* J1 */

    due__key_end(q, number, false);
    leave_dead(q, number, w);
    due__step(q, number, DUE__S_CANCELLED, w);
    DUE__PROBE2(cancel, q, number);
    if (w & DUE__PASSED)
        due__limiter_leave(q, number);
    due__job_fill(q, number, deadline, 0, job);
    struct due__shard *it = due__shard_enter(&q->slab);
    uint64_t count = ++it->cancelled; /* C2 of closing.c */
    it->unready += (w & DUE__READY) != 0;
    it->lent++;
    due__shard_leave(it);
    due__cancelled(q, count);
}

/* A job that waits or is dead becomes the caller's own, as by due__claim(); one that somebody has
 * is marked, so that it is not handed out again. */
static int claim_any(struct due_queue *q, uint32_t number, uint32_t generation,
                     const struct due__key_name *name, struct due__deadline *by, uint64_t *w)
{
    for (;;) {
        int rc = due__claim_settled(q, number, generation, name, by, w);
        bool dead = rc == DUE_ENOENT && due__word_state(*w) == DUE__DEAD &&
                    due__word_generation(*w) == generation;

        if (dead) {
            if (due__dead_claim_one(q, number, generation, name, DUE__CLAIMED) == 0)
                return 0;
            if (name != NULL)
                return DUE_ENOENT; /* the caller looks whose the key is now */
        } else if (rc == DUE_EBUSY) {
            rc = due__lease_cancel(q, number, generation, name);
            if (rc != DUE_EAGAIN)
                return rc;
        } else {
            return rc;
        }
    }
}

/* Any job that waits or is dead, with its bytes lent to the caller or not. */
int due__cancel_any(struct due_queue *q, uint32_t number, uint32_t generation,
                    const struct due__key_name *name, due_job *job, struct due__deadline *by)
{
    uint64_t w;
    int rc = claim_any(q, number, generation, name, by, &w);

    if (rc != 0)
        return rc;
    enum due__purpose purpose = job != NULL ? DUE__LEND : DUE__CANCEL;
    if (!due__end_unsent(q, number, w, purpose))
        rc = q->journal->change(q, number, purpose, 0, by);
    if (rc != 0 && rc != DUE_EINDOUBT && rc != DUE_ESTALE)
        due__give_up(q, number);
    if (rc == 0 && job != NULL)
        lend(q, number, w, job);
    return rc;
}

/* A job that somebody has was marked.  Of a shared queue it may be on its way to its next round,
 * and the mark came too late: then it is the store's alone when that has landed.  Whatever else is
 * on its way here is waited for too, as nobody says which it is. */
static bool on_its_way(const struct due_queue *q, uint32_t number, uint32_t generation)
{
    uint64_t w = due__load_acquire(&due__job_at(&q->slab, number)->word); /* J1 */

    return q->shared &&
           (due__word_generation(w) != generation || due__word_state(w) == DUE__CLAIMED);
}

int due__cancel(struct due_queue *q, due_id id, due_job *job, struct due__deadline *by)
{
    return due__cancel_with_key(q, id, NULL, 0, job, by);
}

int due__cancel_with_key(struct due_queue *q, due_id id, const void *key, size_t len, due_job *job,
                         struct due__deadline *by)
{
    struct due__ask ask = {
        .kind = DUE__ASK_CANCEL, .id = id, .key = key, .key_len = len, .job = job
    };
    uint32_t marked[2] = { DUE__NO_JOB };
    uint32_t number;
    uint32_t generation;
    int rc;

    for (;;) {
        rc = due__id_find(q, id, by, &number, &generation);
        if (rc == 0)
            rc = due__cancel_any(q, number, generation, NULL, job, by);
        if (rc != DUE_EBUSY || (marked[0] == number && marked[1] == generation) ||
            !on_its_way(q, number, generation))
            break;
        marked[0] = number;
        marked[1] = generation;
        (void)q->journal->news(q); /* R4 */
        rc = q->journal->flush(q, by);
        if (rc != 0)
            return rc;
    }
    /* Who has it here may die, or let his lease pass: the store has to know. */
    bool marks = rc == DUE_EBUSY && due__in_store(q);
    if (!marks && !due__is_elsewhere(q, rc))
        return rc;
    rc = q->journal->ask(q, &ask, by);
    if (!marks && due__came_meanwhile(q, id, rc))
        return due__cancel_with_key(q, id, key, len, job, by);
    bool here = marks || marked[0] != DUE__NO_JOB;
    return rc == DUE_ENOENT && here ? DUE_EBUSY : rc; /* it saw the mark */
}
