/* enqueue_delegated.h - jobs left in the inbox, for somebody else to sort in. */
#ifndef DUE__ENQUEUE_DELEGATED_H
#define DUE__ENQUEUE_DELEGATED_H

#include "queue/queue.h"

/* Leave it in the inbox. */
void due__put_fresh(struct due_queue *q, const struct due__fresh *it);
/* Leave @n filled jobs in the inbox.  From here on they wait, and anybody may cancel them. */
void due__put_all(struct due_queue *q, const struct due__fresh *jobs, size_t n);
/* The same, because the lock was busy, and see that somebody sorts them in.  Answers how many were
 * accepted: all of them, unless the queue closes; those that were not are gone. */
size_t due__submit_delegated(struct due_queue *q, const struct due__fresh *jobs, size_t n);
/* The same of jobs of which some have keys: each goes into the inbox while its key is looked at,
 * and the first that cannot have its key ends it.  Those from there on are given up. */
size_t due__submit_keyed(struct due_queue *q, const struct due__fresh *jobs, size_t n);

#endif
