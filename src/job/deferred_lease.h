/* deferred_lease.h - leases that need not stand in the timeline yet. */
#ifndef DUE__DEFERRED_LEASE_H
#define DUE__DEFERRED_LEASE_H

#include "queue/queue.h"

/* Of whose handler a job is (due_job.pool). */
struct due__holder {
    void (*settle)(const due_job *job); /* I  its lease is a real one from here on */
};

/* As due__lease_begin(), but the leases of some need not stand in the timeline yet. */
int due__lease_deferred(struct due_queue *q, const struct due__slot *slots, size_t n,
                        int64_t lease_ns, int64_t now_ns, due_job *jobs);
/* Is the lease of this job, which the caller has, only promised? */
bool due__promised(const due_job *job);
/* A promised lease stands in the timeline from here on, and ends at @until_ns; the job is answered
 * for as any. */
void due__deferred_keep(const due_job *job, int64_t until_ns);
/* A promised job is done. */
void due__deferred_ack(due_job *job);
/* It goes back to where it stood, as if it had not been handed out, and *@job is zeroed. */
void due__deferred_return(due_job *job);
/* Was it cancelled?  *@promised: was its lease promised still? */
bool due__deferred_stopping(const due_job *job, bool *deferred);

#endif
