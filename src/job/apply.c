/* apply.c - what becomes of a job when a change of it has landed.
 *
 * Guards     T  the timeline lock, for due__change_apply()
 *
 * Edges      described elsewhere: J1 slab.h, R1 R3 lease.c, C2 closing.c
 *
 * Not here   Where a change lands: journal.h.  What follows one that was refused, or whose caller
 *            has left: store/apply.c.
 */
#include "job/apply.h"

#include "job/cancel.h"
#include "job/dead_letter.h"
#include "job/discard.h"
#include "job/draft.h"
#include "job/key_table.h"
#include "job/lease.h"
#include "job/repeat.h"
#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/extras.h"
#include "queue/job_records.h"
#include "queue/queue.h"

bool due__change_locks(enum due__purpose purpose)
{
    return purpose == DUE__PUT || purpose >= DUE__MOVE;
}

void due__change_tell(struct due_queue *q, const struct due__change *c)
{
    static const enum due__step steps[DUE__RELEASE + 1] = {
        [DUE__PUT] = DUE__S_PRODUCED,   [DUE__GIVE_BACK] = DUE__S_RETRIED,
        [DUE__SNOOZE] = DUE__S_RETRIED, [DUE__BURY] = DUE__S_DIED,
        [DUE__KICK] = DUE__S_KICKED,    [DUE__REVIVE] = DUE__S_KICKED,
        [DUE__ROUND] = DUE__S_REPEATED,
    };

    if (q->events == NULL || steps[c->purpose] == 0)
        return;
    if (c->purpose == DUE__ROUND && !c->waited)
        return; /* its taker has left */
    if (c->purpose == DUE__ROUND)
        due__step(q, c->number, DUE__S_ROUND, 0);
    due__step(q, c->number, steps[c->purpose], 0);
}

/* It waits, until another time. */
static void apply_move(struct due_queue *q, const struct due__change *c, uint64_t w)
{
    if (w & DUE__HELD)
        due__store_relaxed(&due__lease_at(q, c->number)->deadline_ns, c->at_ns); /* R1 */
    due__wait_again(q, c->number, due__limiter_left(q, c->number, w), c->at_ns);
}

/* It waits for its next round, unless the queue ends. */
static void apply_round(struct due_queue *q, struct due__change *c)
{
    bool acked = c->purpose == DUE__REPEAT;

    if (!acked && !c->waited) /* its taker has left */
        return;
    if (!due__repeat_locked(q, c->number, c->at_ns, acked))
        c->purpose = (uint8_t)q->journal->no_round;
    if (acked && c->purpose != DUE__ACK) /* which counts that itself */
        due__lease_answered(q);
}

void due__change_apply(struct due_queue *q, struct due__change *c)
{
    uint64_t w =
        due__load_relaxed(&due__job_at(&q->slab, c->number)->word); /* J1: claimed for it */

    switch (c->purpose) {
    case DUE__PUT:
        due__key_settled(q, c->number);
        due__sort_sent(q, c->number);
        break;
    case DUE__RETURN:
        due__key_settled(q, c->number);
        break;
    case DUE__MOVE:
        apply_move(q, c, w);
        break;
    case DUE__GIVE_BACK:
        due__given_back(q, c->number, w, c->at_ns);
        break;
    case DUE__SNOOZE:
        due__snoozed(q, c->number, w, c->at_ns);
        break;
    case DUE__ATTEMPT:
        if (c->waited)
            due__lease_count(q, c->number);
        break;
    case DUE__BURY:
        due__dead_letter_count(q);
        if (due__revoked(q, c->number)) /* cancelled on its way here: it goes */
            due__wait_again(q, c->number, w, DUE_FOREVER);
        else
            due__bury_locked(q, c->number);
        break;
    case DUE__REVIVE:
        due__store_relaxed(&due__lease_at(q, c->number)->deadline_ns, c->at_ns); /* R1 */
        /* fall through */
    case DUE__KICK:
        due__kick_locked(q, c->number, c->at_ns);
        break;
    case DUE__UPDATE:
        due__draft_apply(q, c->number, c->draft);
        break;
    case DUE__REPEAT:
    case DUE__ROUND:
        apply_round(q, c);
        break;
    default:
        break;
    }
}

void due__change_end(struct due_queue *q, const struct due__change *c)
{
    switch (c->purpose) {
    case DUE__LEAVE:
        due__keep_stored(q, c->number);
        break;
    case DUE__UPDATE:
        due__draft_show(q, c->draft);
        due__draft_free(q, c->draft);
        break;
    case DUE__BURY:
        due__buried(q);
        break;
    case DUE__LEND:
        if (!c->waited)
            due__cancel_end(q, c->number);
        break;
    case DUE__CANCEL:
        due__cancel_end(q, c->number);
        break;
    case DUE__ACK:
        due__ack_end(q, c->number);
        break;
    case DUE__GIVE_BACK:
    case DUE__SNOOZE:
        due__lease_answered(q);
        break;
    case DUE__CLEAR: /* who waits discards it */
        if (!c->waited)
            due__discard(q, c->number,
                         due__load_relaxed(
                             &due__job_at(&q->slab, c->number)->word)); /* J1: claimed for it */
        break;
    default:
        break;
    }
}
