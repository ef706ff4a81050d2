/* capacity.h - room in a queue that can be full. */
#ifndef DUE__CAPACITY_H
#define DUE__CAPACITY_H

#include "queue/queue.h"

/* Room for up to @n jobs, waiting up to @timeout_ns for the first: how many, or an error.  @inside:
 * as due__inside_once(). */
int due__capacity_take(struct due_queue *q, size_t n, int64_t timeout_ns, bool *inside);
void due__capacity_give(struct due_queue *q, size_t n);
/* Restored jobs take room also where there is none. */
void due__capacity_force(struct due_queue *q, size_t n);

#endif
