/* draft.h - other content, or another time, for a job that waits.
 *
 * A draft is what a job is to become, made ready before anybody is disturbed.  Exchanging it for
 * what the job is takes a moment under the timeline lock.
 */
#ifndef DUE__DRAFT_H
#define DUE__DRAFT_H

#include <stdbool.h>
#include <stdint.h>

#include "due/due.h"
#include "mem/slab.h"
#include "queue/journal.h"

#define DUE__SET_ANEW 0x100u /* as if it had never been handed out; a dead one waits again */

struct due__extras; /* extras.h */
struct due_queue;

struct due__draft {
    struct due__job made; /* O  facts and payload only: what it is to be; after that, what it was */
    due_id id;            /* O  the job's, with DUE__SET_ANEW */
    int64_t keep_key_ns;  /* O  with DUE__SET_ANEW */
    int64_t at_ns;        /* O  with DUE_SET_TIME */
    int64_t ttl_ns;       /* O  with DUE_SET_LIMIT */
    int64_t expires_ns;   /* O  with DUE_SET_LIMIT */
    uint16_t retry;       /* O  with DUE_SET_RETRY: the number of the policy */
    uint8_t priority;     /* O  with DUE_SET_PRIORITY */
    bool whole;           /* O  made takes the place of what there is, numbers and all */
    unsigned what;        /* O  DUE_SET_*, DUE__SET_ANEW */
};

/* The draft in a journal's number, if its purpose has one. */
static inline struct due__draft *due__draft_wanted(enum due__purpose purpose, int64_t want_ns)
{
    return purpose == DUE__UPDATE ? (struct due__draft *)(intptr_t)want_ns : NULL;
}

/* The job @j gets what was made, and the other way round.  The job stays in its group: what is let
 * go of is not of it any more, and what was made has got the rest of the front. */
void due__draft_exchange(struct due__job *j, struct due__job *made);

/* The numbers that the draft names, in a front. */
void due__draft_numbers(const struct due__draft *d, struct due__extras *extras);

/* Under the lock: a job of the caller's own becomes what @d says, and waits, or is dead, again.
 * One that is MOVING, so that nobody has seen it, keeps its place unless that is to be another. */
void due__draft_apply(struct due_queue *q, uint32_t number, struct due__draft *d);

/* A pointer that the job carried, and no job carries any more, is shown to the hook for what is
 * discarded. */
void due__draft_show(struct due_queue *q, const struct due__draft *d);
/* With what it holds. */
void due__draft_free(struct due_queue *q, struct due__draft *d);

#endif
