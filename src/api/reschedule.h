/* reschedule.h - a waiting job gets another deadline. */
#ifndef DUE__RESCHEDULE_H
#define DUE__RESCHEDULE_H

#include "queue/queue.h"

/* As due_reschedule(), of the job @number in that use of its place. */
int due__reschedule(struct due_queue *q, uint32_t number, uint32_t generation, int64_t at_ns,
                    struct due__deadline *by);

/* A job of a shared queue that was claimed ahead goes back into the store, where it can be changed.
 * DUE_ENOENT: it has; DUE_EBUSY. */
int due__release_ahead(struct due_queue *q, uint32_t number, uint32_t generation,
                       struct due__deadline *by);

#endif
