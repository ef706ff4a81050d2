/* draft.c - what a job is to become takes the place of what it is.
 *
 * Guards     T  the timeline lock, for due__draft_apply()
 *
 * Edges      described elsewhere: J1 slab.h, R1 lease.c
 */
#include "job/draft.h"

#include "job/dead_letter.h"
#include "job/lease.h"
#include "os/atomic.h"
#include "queue/extras.h"
#include "queue/job_records.h"
#include "queue/queue.h"

void due__draft_exchange(struct due__job *j, struct due__job *made)
{
    struct due__job old = { .word = 0 };
    struct due__facts was = due__facts_load(j);
    struct due__facts is = due__facts_load(made);

    old.payload = j->payload;
    j->payload = made->payload;
    made->payload = old.payload;
    if ((is.payload & DUE__EXTRAS) && (was.payload & DUE__EXTRAS)) {
        due__extras_inherit(due__extras_at(j), due__extras_at(made));
        is.payload |= was.payload & DUE__GROUPED; /* it has the group, and what it was has not */
        was.payload &= (uint8_t)~DUE__GROUPED;
    }
    due__facts_store(j, is);
    due__facts_store(made, was);
}

/* A job of the caller's own, with its new content, waits until @at_ns. */
static void anew(struct due_queue *q, uint32_t number, uint64_t w, int64_t at_ns)
{
    struct due__lease *l = (w & DUE__HELD) ? due__lease_at(q, number) : NULL;

    if (l != NULL) {
        due__store_relaxed(&l->deadline_ns, at_ns); /* R1 */
        due__store_relaxed(&l->attempts, 0);        /* R1 */
        due__store_relaxed(&l->failures, 0);        /* R1 */
    }
    if (l != NULL && due__is_dying(q, number))
        due__revive_locked(q, number, at_ns);
    else
        due__wait_again(q, number, due__limiter_left(q, number, w), at_ns);
}

void due__draft_apply(struct due_queue *q, uint32_t number, struct due__draft *d)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_relaxed(&j->word);        /* J1: the caller's own */
    int64_t at = due__load_relaxed(&j->deadline_ns); /* J1 */

    due__draft_exchange(j, &d->made);
    if (d->what & DUE__SET_ANEW) {
        anew(q, number, w, d->at_ns);
        return;
    }
    if ((w & DUE__HELD) && due__is_dying(q, number)) {
        due__bury_locked(q, number);
        return;
    }
    if (d->what & DUE_SET_TIME) {
        at = d->at_ns;
        if (w & DUE__HELD)
            due__store_relaxed(&due__lease_at(q, number)->deadline_ns, at); /* R1 */
        w = due__limiter_left(q, number, w);
    }
    due__wait_again(q, number, w, at);
}

void due__draft_free(struct due_queue *q, struct due__draft *d)
{
    due__job_release(&q->slab, &d->made);
    due__alloc_free(&q->alloc, d, sizeof *d);
}
