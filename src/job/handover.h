/* handover.h - a job while it is with a caller, and its end. */
#ifndef DUE__HANDOVER_H
#define DUE__HANDOVER_H

#include "queue/queue.h"

#define DUE__ACKS_MOST 32u

/* The taken jobs, for good, for the caller.  @now_ns: the clock, if it was just read; else 0. */
void due__hand_over(struct due_queue *q, const struct due__slot *slots, size_t n, int64_t now_ns,
                    due_job *jobs);

/* Without a store: the claimed job @j of place @number, a plain one, is acked, and the caller's
 * copy let go of. */
void due__ack_at_once(due_job *job, struct due__job *j, uint32_t number);

/* The same of several, which are counted together.  Their copies are the caller's to clear. */
struct due__acks {
    uint32_t last[DUE__ACKS_MOST]; /* O  places that are to be given back */
    size_t n_last;                 /* O */
    size_t n;                      /* O  so many were acked, DUE__ACKS_MOST at most */
};

void due__acks_add(struct due_queue *q, struct due__acks *a, struct due__job *j, uint32_t number);
void due__acks_end(struct due_queue *q, const struct due__acks *a);

/* What its end will need, into the cache. */
void due__prefetch_end(struct due_queue *q, const due_job *job, uint32_t number);

#endif
