/* tenure.h - what a tenure of the lock leaves for its end. */
#ifndef DUE__TENURE_H
#define DUE__TENURE_H

#include "queue/queue.h"

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
