/* stored.h - what a queue's journal is asked before anything is done. */
#ifndef DUE__STORED_H
#define DUE__STORED_H

#include "queue/queue.h"

/* What a call gets that needs the store: 0, or DUE_EFENCED. */
static inline int due__state_of(const struct due_queue *q)
{
    return q->stored ? q->journal->state(q) : 0;
}

/* Is the store still being read? */
static inline bool due__loading(const struct due_queue *q)
{
    return q->stored && q->journal->loading(q);
}

/* How many takes have landed whose taker did not wait; *@coming: others may come. */
static inline uint32_t due__left_over(const struct due_queue *q, bool *coming)
{
    *coming = false;
    return q->stored ? q->journal->left(q, coming) : 0;
}

/* The caller's own job, whose word was @w when he got it, is to leave for that purpose.  If the
 * journal was never told of it, it leaves.  False: it was told. */
static inline bool due__end_unsent(struct due_queue *q, uint32_t number, uint64_t w,
                                   enum due__purpose purpose)
{
    bool unsent = (w & q->journal->unsent) != 0;

    if (unsent)
        q->journal->end_unsent(q, number, purpose);
    return unsent;
}

/* May a lease go on, or begin? */
static inline int due__held_until(struct due_queue *q, struct due__deadline *by)
{
    return q->stored ? q->journal->held(q, by) : 0;
}

/* The time that the deadlines of its jobs are counted on. */
static inline int64_t due__jobs_now(const struct due_queue *q)
{
    return q->stored ? q->journal->now(q) : due__clock_now(&q->clock);
}

/* A call that names a job has the answer @rc: is the store to be asked, as the job is not here? */
static inline bool due__is_elsewhere(const struct due_queue *q, int rc)
{
    return q->shared && (rc == DUE_ENOENT || rc == DUE_ESTALE) && !q->journal->closed(q);
}

/* Are there jobs that are not here, for a call about all of them? */
static inline bool due__in_store(const struct due_queue *q)
{
    return q->shared && !q->journal->closed(q);
}

/* Are pauses and limits of topics to be written down? */
static inline bool due__holds_back_stored(const struct due_queue *q)
{
    return q->settings;
}

#endif
