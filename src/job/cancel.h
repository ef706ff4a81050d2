/* cancel.h - taking a job back, whatever it is doing. */
#ifndef DUE__CANCEL_H
#define DUE__CANCEL_H

#include "os/atomic.h"
#include "queue/capacity.h"
#include "queue/closing.h"
#include "queue/compaction.h"
#include "queue/queue.h"

#define DUE__SWEEP_EVERY \
    512u /* cancels in a shard after which to see whether a sweep is worth it */

struct due__key_name; /* key_table.h */

/* What follows a cancel that was counted. */
static inline void due__cancelled(struct due_queue *q, uint64_t count)
{
    if (q->capacity > 0)
        due__capacity_give(q, 1);
    due__left(q, 1);
    if (count % DUE__SWEEP_EVERY == 0)
        due__sweep_sometimes(q);
}

/* due_cancel() of that job; with a name, if it has that key when it becomes the caller's, or else
 * DUE_ENOENT. */
int due__cancel_any(struct due_queue *q, uint32_t number, uint32_t generation,
                    const struct due__key_name *name, due_job *job, struct due__deadline *by);

/* A job of the caller's own is cancelled: counted, and gone. */
void due__cancel_end(struct due_queue *q, uint32_t number);

/* As due_cancel(), waiting for the store until @by. */
int due__cancel(struct due_queue *q, due_id id, due_job *job, struct due__deadline *by);
/* The same in a shared queue of a job that lies in the store, if it has that key; or DUE_ENOENT. */
int due__cancel_with_key(struct due_queue *q, due_id id, const void *key, size_t len, due_job *job,
                         struct due__deadline *by);

#endif
