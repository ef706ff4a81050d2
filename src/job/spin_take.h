/* spin_take.h - a caller that spins until the next job is due, and takes it. */
#ifndef DUE__SPIN_TAKE_H
#define DUE__SPIN_TAKE_H

#include "job/request.h"
#include "queue/topic.h"

/* Under the lock: can that be of use, with one topic, of which only the time keeps jobs back? */
static inline bool due__spin_serves(const struct due_queue *q)
{
    const struct due__topic *t = due__topic_at(q, 0);

    return !q->several && !t->paused && t->limiter == NULL;
}

/* Spin as the waiter of @r, which leads, until its job is due or it is rung.  True: the first of
 * its jobs is the caller's, and the call has nothing more to do in the queue.  False: it is to look
 * again, in the usual way. */
bool due__spin_take(struct due_queue *q, struct due__request *r);

#endif
