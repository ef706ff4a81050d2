/* held.h - a job that its holder says something of. */
#ifndef DUE__HELD_H
#define DUE__HELD_H

#include "queue/queue.h"

/* The place of a reserved job; its holder keeps it from being used anew. */
static inline int due__held(const due_job *job, uint32_t *number)
{
    struct due_queue *q = job->queue;
    uint32_t generation;

    if (q == NULL || job->token == 0)
        return DUE_EINVAL;
    if (due__forked(q))
        return DUE_EFORK;
    return due__handle_read(job->place, number, &generation) ? 0 : DUE_EINVAL;
}

/* Has the call answered for the job, so that its copy is let go of? */
static inline bool due__answers(int rc)
{
    return rc == 0 || rc == DUE_ESTALE || rc == DUE_EINDOUBT;
}

#endif
