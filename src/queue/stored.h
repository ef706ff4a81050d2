/* stored.h - what is asked of a queue with a store before anything is done. */
#ifndef DUE__STORED_H
#define DUE__STORED_H

#include "os/atomic.h"
#include "queue/queue.h"

/* What a call gets that needs the store: 0, or DUE_EFENCED. */
static inline int due__commit_state(const struct due_queue *q)
{
    return due__load_seq(&q->commits->fenced) ? DUE_EFENCED : 0; /* G2 of sender.c */
}

/* Is the store still being read? */
static inline bool due__commit_loading(const struct due_queue *q)
{
    return due__reader_loads(q->commits);
}

#endif
