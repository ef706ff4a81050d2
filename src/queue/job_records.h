/* job_records.h - the records of jobs that were reserved, or are dead. */
#ifndef DUE__JOB_RECORDS_H
#define DUE__JOB_RECORDS_H

#include "os/atomic.h"
#include "queue/queue.h"

static inline struct due__lease *due__lease_at(const struct due_queue *q, uint32_t number)
{
    return due__records_at(&q->leases, number);
}

static inline struct due__dead_letter *due__dead_letter_at(const struct due_queue *q,
                                                           uint32_t number)
{
    return due__records_at(&q->dead_letters, number);
}

/* What a lease record keeps of the token in a due_job: of another lease of the same place it
 * differs. */
static inline uint32_t due__token_of(uint64_t token)
{
    return (uint32_t)token;
}

/* Has the store counted the attempt of a taken job, before its lease begins? */
static inline bool due__lease_counted(const struct due_queue *q, uint32_t number)
{
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, number)->word); /* J1: the caller's own */

    return (w & DUE__HELD) &&
           due__load_relaxed(&due__lease_at(q, number)->limit) == DUE__COUNTED; /* R1 */
}

#endif
