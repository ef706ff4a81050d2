/* dequeue.h - taking jobs out, for who calls for somebody else. */
#ifndef DUE__DEQUEUE_H
#define DUE__DEQUEUE_H

#include "queue/queue.h"

/* Of these topics, or of any: up to @max jobs, for good (@lease_ns 0), on a lease, or on one that
 * is promised (less than 0: of so long).  Unless @quit is NULL the caller can be called away: when
 * *@quit is not 0 it does not wait, DUE_ETIMEDOUT; who sets it then calls due__quit_ring(). */
int due__take_out(struct due_queue *q, const int *topics, size_t n, due_job *jobs, size_t max,
                  int64_t lease_ns, int64_t timeout_ns, const uint32_t *quit);
/* One of these topics, or of any, for good or on a lease.  0 or an error, with *@job zeroed. */
int due__take_one(struct due_queue *q, const int *topics, size_t n, due_job *job, int64_t lease_ns,
                  int64_t timeout_ns);
/* What a call for one job answers that got @rc; without the job *@job, unless NULL, is zeroed. */
int due__one_or_none(due_job *job, int rc);
/* The same of one that takes it: in doubt it is named. */
int due__one_or_named(due_job *job, int rc);

#endif
