/* draft.h - other content, or another time, for a job that waits.
 *
 * A draft is what a job is to become, made ready before anybody is disturbed.  Exchanging it for
 * what the job is takes a moment under the timeline lock.
 */
#ifndef DUE__DRAFT_H
#define DUE__DRAFT_H

#include <stdint.h>

#include "due/due.h"
#include "mem/slab.h"

#define DUE__SET_ANEW 0x100u /* as if it had never been handed out; a dead one waits again */

struct due_queue;

struct due__draft {
    struct due__job made; /* O  facts and payload only: what it is to be; after that, what it was */
    int64_t at_ns;        /* O  with DUE_SET_TIME */
    unsigned what;        /* O  DUE_SET_*, DUE__SET_ANEW */
};

/* The job @j gets what was made, and the other way round.  The job stays in its group: what is let
 * go of is not of it any more, and what was made has got the rest of the front. */
void due__draft_exchange(struct due__job *j, struct due__job *made);

/* Under the lock: a job of the caller's own (CHANGING) becomes what @d says, and waits, or is dead,
 * again. */
void due__draft_apply(struct due_queue *q, uint32_t number, struct due__draft *d);

/* With what it holds. */
void due__draft_free(struct due_queue *q, struct due__draft *d);

#endif
