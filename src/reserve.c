/* reserve.c - the verbs that take jobs out for a while, or several, or of some topics.
 *
 * Not here   How jobs are taken, and the verb that takes one for good: dequeue.c.  Leases: lease.c.
 */
#include "core.h"

int due_dequeue_batch(due_queue *q, const int *topics, size_t n, due_job *jobs, size_t max,
                      int64_t timeout_ns)
{
    return due__take_out(q, topics, n, jobs, max, 0, timeout_ns, NULL);
}

int due_dequeue_from(due_queue *q, const int *topics, size_t n, due_job *job, int64_t timeout_ns)
{
    int rc = due__take_out(q, topics, n, job, 1, 0, timeout_ns, NULL);

    return rc < 0 ? rc : 0;
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
    int rc = due_reserve_batch(q, topics, n, job, 1, lease_ns, timeout_ns);

    return rc < 0 ? rc : 0;
}

int due_reserve(due_queue *q, due_job *job, int64_t lease_ns, int64_t timeout_ns)
{
    int rc = due_reserve_batch(q, NULL, 0, job, 1, lease_ns, timeout_ns);

    return rc < 0 ? rc : 0;
}
