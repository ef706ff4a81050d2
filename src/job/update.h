/* update.h - other content, or another time, for a job that waits.
 *
 * A draft is what a job is to become, made ready before anybody is disturbed.  Exchanging it for
 * what the job is takes a moment under the timeline lock.
 */
#ifndef DUE__UPDATE_H
#define DUE__UPDATE_H

#include <stdint.h>

#include "store/sender.h"
#include "due/due.h"
#include "mem/slab.h"
#include "store/id_index.h"

#define DUE__SET_ANEW 0x100u /* as if it had never been handed out; a dead one waits again */

struct due__draft {
    struct due__job made; /* O  facts and payload only: what it is to be; after that, what it was */
    int64_t at_ns;        /* O  with DUE_SET_TIME */
    unsigned what;        /* O  DUE_SET_*, DUE__SET_ANEW */
};

/* Change what @what says of a waiting job, or of a dead one, as due_amend() does; @at_ns stands for
 * the time in @s.  Of @s is looked at what @what names. */
int due__rewrite(struct due_queue *q, uint32_t number, uint32_t generation, const due_spec *s,
                 unsigned what, int64_t at_ns, struct due__deadline *by);

/* Under the lock: a job of the caller's own (CHANGING) becomes what @d says, and waits, or is dead,
 * again. */
void due__draft_apply(struct due_queue *q, uint32_t number, struct due__draft *d);

/* With what it holds. */
void due__draft_free(struct due_queue *q, struct due__draft *d);

/* What it takes on the way to the store. */
static inline uint32_t due__draft_bytes(const struct due__draft *d)
{
    return due__owed_bytes(&d->made, due__facts_load(&d->made));
}

/* The draft of a job that is on its way to the store (DUE__UPDATE). */
static inline struct due__draft *due__draft_of(const struct due__stored *s)
{
    return (struct due__draft *)(intptr_t)s->want_ns;
}

#endif
