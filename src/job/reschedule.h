/* reschedule.h - a waiting job gets another deadline. */
#ifndef DUE__RESCHEDULE_H
#define DUE__RESCHEDULE_H

#include "queue/queue.h"

/* Under the lock.  Nobody else moves jobs, but they may be taken or cancelled until the swap. */
int due__move_to(struct due_queue *q, uint32_t number, uint32_t generation, int64_t at_ns);

/* A stored job gets another deadline, there first. */
int due__reschedule_stored(struct due_queue *q, uint32_t number, uint32_t generation, int64_t at_ns,
                           struct due__deadline *by);

#endif
