/* deadline_verbs.h - every call of a queue whose store does not do what it should: does it end in
 * time?
 */
#ifndef DEADLINE_VERBS_H
#define DEADLINE_VERBS_H

#include "lab/lab.h"

#define DEADLINE_JOBS  600 /* more than is sent together */
#define DEADLINE_SHORT DUE_MS(3)
#define DEADLINE_LONG  DUE_MS(50)
#define DEADLINE_BOUND DUE_S(4) /* this machine may be busy */

struct deadline_stand {
    due_queue *q;
    const char *state;        /* what is wrong with the store */
    due_id id[DEADLINE_JOBS]; /* the first half are due, unless they are reserved */
    due_id dead;
    due_job held[3]; /* reserved */
};

/* While the store is well.  @lapsed: the first half are reserved for the last time, and nobody has
 * looked at them since their leases ended. */
void deadline_fill(struct deadline_stand *s, struct lab *lab, bool lapsed);
void deadline_hold(struct deadline_stand *s, struct lab *lab);
/* All verbs with this timeout; @all false: those only that take one. */
void deadline_try(struct deadline_stand *s, int64_t timeout_ns, bool all);
/* One of them, by its number; false: there are no more. */
bool deadline_try_one(struct deadline_stand *s, size_t number, int64_t timeout_ns);
/* What is held is let go of, and the queue closed. */
void deadline_close(struct deadline_stand *s, int64_t timeout_ns);

#endif
