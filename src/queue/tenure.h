/* tenure.h - the end of a tenure of the lock, and what is left for it. */
#ifndef DUE__TENURE_H
#define DUE__TENURE_H

#include "os/atomic.h"
#include "os/tsan.h"
#include "queue/queue.h"

/* The tenure_end of each queue.  If anything is @owing, pay it: call the waiters that new jobs are
 * for, release the lock, ring.  Then look at the inbox again and, up to a budget, sort in what is
 * found there. */
void due__tenure_settle(struct due_queue *q, struct due__tenure *t, bool owing);

/* ---- A short tenure: of a call that rings nobody itself ---- */

/* Its end, when anything is @owing, or somebody has knocked. */
void due__short_settle(struct due_queue *q, bool owing);

static inline void due__short_begin(struct due_queue *q)
{
    due__measure_begin(q);
    if (q->clock.steps)
        due__look_back(q);
}

static inline void due__short_enter(struct due_queue *q)
{
    due__lock_acquire(&q->lock);
    due__short_begin(q);
}

static inline bool due__short_try(struct due_queue *q)
{
    if (!due__lock_try(&q->lock)) /* E1 */
        return false;
    due__short_begin(q);
    return true;
}

/* @told: ThreadSanitizer is told of the lock, where it wants to hear of it. */
static inline __attribute__((always_inline)) void due__short_end_as(struct due_queue *q, bool told)
{
    if (q->debts != 0 || q->pool.near) {
        due__short_settle(q, true);
        return;
    }
    due__measure_end(q);
    if (told)
        due__tsan_release(&q->lock);
    due__lock_release_untold(&q->lock); /* E1 */
    if (due__inbox_knocked(&q->inbox))  /* E1 */
        due__short_settle(q, false);
}

static inline void due__short_end(struct due_queue *q)
{
    due__short_end_as(q, true);
}

/* On a way that is not gone where it wants to. */
static inline void due__short_end_untold(struct due_queue *q)
{
    due__short_end_as(q, false);
}

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
