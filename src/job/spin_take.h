/* spin_take.h - a caller that spins until the next job is due, and takes it. */
#ifndef DUE__SPIN_TAKE_H
#define DUE__SPIN_TAKE_H

#include "job/request.h"

/* Spin as the waiter of @r, which leads, until its job is due or it is rung.  True: the first of
 * its jobs is the caller's, and the call has nothing more to do in the queue.  False: it is to look
 * again, in the usual way. */
bool due__spin_take(struct due_queue *q, struct due__request *r);

#endif
