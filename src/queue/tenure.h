/* tenure.h - the end of a tenure of the lock, and what is left for it. */
#ifndef DUE__TENURE_H
#define DUE__TENURE_H

#include "queue/queue.h"

/* The tenure_end of each queue.  If anything is @owing, pay it: call the waiters that new jobs are
 * for, release the lock, ring.  Then look at the inbox again and, up to a budget, sort in what is
 * found there. */
void due__tenure_settle(struct due_queue *q, struct due__tenure *t, bool owing);

/* As due__catch_up(), when somebody will come after us for what is left in the inbox. */
void due__help_sort(struct due_queue *q, uint32_t max);

/* Is there anything between a due job and the line of its topic @t?  Under the lock. */
static inline bool due__gated(const struct due__topic *t, struct due__facts f)
{
    return t->limiter != NULL || (f.payload & DUE__GROUPED);
}

/* Will what is owed at the end of this tenure make jobs ready: by a death, or at a limiter? */
static inline bool due__more_to_come(const struct due_queue *q)
{
    return (q->debts & (DUE__DEBT_DYING | DUE__DEBT_LIMITERS)) != 0;
}

#endif
