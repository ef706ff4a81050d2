/* reserve.c - the verbs that take jobs out for a while, or several, or of some topics.
 *
 * Not here   How jobs are taken, and the verb that takes one for good: dequeue.c.  Leases: lease.c.
 */
#include <string.h>

#include "api/dequeue.h"
#include "queue/queue.h"

int due__one_or_none(due_job *job, int rc)
{
    if (rc >= 0)
        return 0;
    if (job != NULL)
        memset(job, 0, sizeof *job);
    return rc;
}

int due__one_or_named(due_job *job, int rc)
{
    return rc == DUE_EINDOUBT ? rc : due__one_or_none(job, rc);
}

int due_dequeue_batch(due_queue *q, const int *topics, size_t n, due_job *jobs, size_t max,
                      int64_t timeout_ns)
{
    return due__take_out(q, topics, n, jobs, max, 0, timeout_ns, NULL);
}

int due_dequeue_from(due_queue *q, const int *topics, size_t n, due_job *job, int64_t timeout_ns)
{
    return due__one_or_named(job, due__take_out(q, topics, n, job, 1, 0, timeout_ns, NULL));
}

int due_reserve_batch(due_queue *q, const int *topics, size_t n, due_job *jobs, size_t max,
                      int64_t lease_ns, int64_t timeout_ns)
{
    if (lease_ns <= 0)
        return DUE_EINVAL;
    return due__take_out(q, topics, n, jobs, max, lease_ns, timeout_ns, NULL);
}

int due_reserve_from(due_queue *q, const int *topics, size_t n, due_job *job, int64_t lease_ns,
                     int64_t timeout_ns)
{
    return due__one_or_named(job, due_reserve_batch(q, topics, n, job, 1, lease_ns, timeout_ns));
}

int due_reserve(due_queue *q, due_job *job, int64_t lease_ns, int64_t timeout_ns)
{
    return due__one_or_named(job, due_reserve_batch(q, NULL, 0, job, 1, lease_ns, timeout_ns));
}
