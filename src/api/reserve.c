/* reserve.c - the verbs that take jobs out for a while, or several, or of some topics.
 *
 * Not here   How jobs are taken, and the verb that takes one for good: dequeue.c.  Leases: lease.c.
 */
#include "api/dequeue.h"
#include "job/release.h"
#include "os/sized.h"
#include "queue/queue.h"

int due__one_or_none(due_job *job, int rc)
{
    if (rc >= 0)
        return 0;
    if (job != NULL)
        due__job_clear(job);
    return rc;
}

int due__one_or_named(due_job *job, int rc)
{
    return rc == DUE_EINDOUBT ? rc : due__one_or_none(job, rc);
}

int due_take(due_queue *q, const due_take_options *options, due_job *jobs, size_t max,
             int64_t timeout_ns)
{
    due_take_options o = { DUE_TAKE_INIT };
    int rc = 0;

    if (options != NULL && options->size == sizeof o)
        o = *options;
    else if (options != NULL)
        rc = due__sized_read(&o, sizeof o, options);

    if (o.lease_ns == DUE_LEASE_DEFAULT)
        o.lease_ns = q->lease_ns;
    if (rc == 0 && o.lease_ns < 0)
        rc = DUE_EINVAL;
    if (rc == 0 && max == 1) {
        rc = due__take_one(q, o.topics, o.topic_count, jobs, o.lease_ns, timeout_ns);
        return rc == 0 ? 1 : rc;
    }
    if (rc == 0)
        rc = due__take_out(q, o.topics, o.topic_count, jobs, max, o.lease_ns, timeout_ns, NULL);
    if (rc < 0 && max > 0)
        due__one_or_named(&jobs[0], rc);
    return rc;
}
