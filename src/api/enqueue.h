/* enqueue.h - putting a job in, for calls that do more than that. */
#ifndef DUE__ENQUEUE_H
#define DUE__ENQUEUE_H

#include "queue/queue.h"

/* Enqueue a job as one that is new.  1; 0: its key is not to be had now; or an error. */
int due__enqueue_new(struct due_queue *q, const due_spec *spec, int64_t timeout_ns,
                     struct due__deadline *by, due_id *id, bool *inside);

/* Enqueue a job with a key: 1, or an error. */
int due__enqueue_keyed(struct due_queue *q, const due_spec *s, int64_t timeout_ns,
                       struct due__deadline *by, due_id *id, bool *inside);

#endif
