/* handover.h - a job while it is with a caller, and its end. */
#ifndef DUE__HANDOVER_H
#define DUE__HANDOVER_H

#include "queue/queue.h"

/* The taken jobs, for good, for the caller.  @now_ns: the clock, if it was just read; else 0. */
void due__hand_over(struct due_queue *q, const struct due__slot *slots, size_t n, int64_t now_ns,
                    due_job *jobs);

/* The life of a job of the caller's own ends; @w is its word.  True: nobody else holds it, its
 * bytes are released, and the place is the caller's to give back.  False: whoever lets go of it
 * last does that. */
bool due__job_unhold(struct due_queue *q, uint32_t number, uint64_t w);

/* Without a store: the claimed job of place @number, a plain one, is acked, and the caller's copy
 * let go of. */
void due__ack_at_once(due_job *job, uint32_t number);

/* The taken job @number, for the caller.  True: it comes again. */
bool due__job_fill(struct due_queue *q, uint32_t number, int64_t deadline_ns, int64_t now_ns,
                   due_job *job);
/* Within a shard: a lent job's place is free, unless the inbox still holds its node. */
void due__place_done(struct due_queue *q, struct due__shard *it, uint32_t number);
/* What its end will need, into the cache. */
void due__prefetch_end(struct due_queue *q, const due_job *job, uint32_t number);

#endif
