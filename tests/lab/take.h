/* take.h - due_take() for one purpose each, with its options as arguments. */
#ifndef LAB_TAKE_H
#define LAB_TAKE_H

#include "due/due.h"

/* Up to @max jobs for good, or on a lease; of these topics, or of any (NULL). */
static inline int take_some(due_queue *q, const int *topics, size_t n, due_job *jobs, size_t max,
                            int64_t timeout_ns)
{
    const due_take_options how = { DUE_TAKE_INIT, .topics = topics, .topic_count = n };

    return due_take(q, &how, jobs, max, timeout_ns);
}

static inline int take_leased_some(due_queue *q, const int *topics, size_t n, due_job *jobs,
                                   size_t max, int64_t lease_ns, int64_t timeout_ns)
{
    const due_take_options how = { DUE_TAKE_INIT, .topics = topics, .topic_count = n,
                                   .lease_ns = lease_ns };

    return due_take(q, &how, jobs, max, timeout_ns);
}

/* One job: 0, or an error. */
static inline int take_from(due_queue *q, const int *topics, size_t n, due_job *job,
                            int64_t timeout_ns)
{
    int rc = take_some(q, topics, n, job, 1, timeout_ns);

    return rc > 0 ? 0 : rc;
}

static inline int take_leased_from(due_queue *q, const int *topics, size_t n, due_job *job,
                                   int64_t lease_ns, int64_t timeout_ns)
{
    int rc = take_leased_some(q, topics, n, job, 1, lease_ns, timeout_ns);

    return rc > 0 ? 0 : rc;
}

static inline int take_leased(due_queue *q, due_job *job, int64_t lease_ns, int64_t timeout_ns)
{
    return take_leased_from(q, NULL, 0, job, lease_ns, timeout_ns);
}

#endif
