/* closing.h - a queue that closes, or drains: who is told, and when nothing is left. */
#ifndef DUE__CLOSING_H
#define DUE__CLOSING_H

#include "os/atomic.h"
#include "queue/queue.h"

/* Draining has begun, and what was submitted before is in: if no job is left, close. */
void due__drained(struct due_queue *q);

#define DUE__SOME UINT64_MAX /* jobs, nobody knows how many */

/* @n jobs were counted as gone, in whatever shard: if the queue drains, were they the last? */
void due__left_draining(struct due_queue *q, uint64_t n);

static inline void due__left(struct due_queue *q, uint64_t n)
{
    if (due__load_seq(&q->state) & DUE__DRAINING) /* C2 of closing.c */
        due__left_draining(q, n);
}

/* Everyone who waits for a job or for room looks again. */
void due__wake_consumers(struct due_queue *q);

/* Those who wait for a job, or timed wait, and have this @quit. */
void due__quit_ring(struct due_queue *q, const uint32_t *quit);

/* End the proxies' threads, once. */
void due__stop_proxies(struct due_queue *q);

/* Does what comes back not wait any more, but stay in the store, or leave? */
static inline bool due__closed(const struct due_queue *q)
{
    return q->journal->closed(q);
}

/* What a call that names a job answers, @rc so far: once a queue is closed it does not know any
 * more what it has left to its store. */
static inline int due__named(const struct due_queue *q, int rc)
{
    return rc == DUE_ENOENT && q->journal->keeps_jobs && due__closed(q) ? DUE_ECLOSED : rc;
}

/* Everyone who waits for room looks again and, with @consumers, everyone who waits for a job. */
void due__wake_all(struct due_queue *q, bool consumers);

#endif
