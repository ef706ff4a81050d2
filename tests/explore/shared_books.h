/* shared_books.h - what must hold of a shared queue whenever everybody rests. */
#ifndef DUE__EXPLORE_SHARED_BOOKS_H
#define DUE__EXPLORE_SHARED_BOOKS_H

#include "queue/queue.h"
#include "shared_shelf.h"

/* In idle: nobody holds a lock; what lies here or is leased here is held by this queue in the
 * store, under that lease, and for at least as long; if the store counts on this queue to come, it
 * has; and the store knows of those who wait.  Unless @skewed, when the store's clock is not ours.
 */
void shared_rest(const due_queue *q, const struct shared_shelf *it, bool skewed);
/* Will the queue look by itself, in some milliseconds, whether somebody waits? */
bool shared_looks_again(const due_queue *q);

/* The same of jobs alone; in threads, without a step. */
void shared_held(const due_queue *q, const struct shared_shelf *it);

/* In check, where nobody is in a call any more: the figures are those of the jobs that are here. */
void shared_sums(due_queue *q);

#endif
