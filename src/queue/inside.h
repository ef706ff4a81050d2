/* inside.h - callers that wait inside a queue, and those who close it. */
#ifndef DUE__INSIDE_H
#define DUE__INSIDE_H

#include "queue/queue.h"

/* The calling thread runs handlers of this queue from here on.  And: does it? */
void due__handling_begun(const struct due_queue *q);
bool due__handling(const struct due_queue *q);

/* A caller that may sleep comes and goes: close waits for the last one.  After it has left it must
 * not touch the queue any more. */
void due__inside_enter(struct due_queue *q);
void due__inside_leave(struct due_queue *q);

/* The same of a call that waits only sometimes; *@inside: whether it has come. */
static inline void due__inside_once(struct due_queue *q, bool *inside)
{
    if (!*inside)
        due__inside_enter(q);
    *inside = true;
}

/* A call on a stored queue may have to wait for the store at any step. */
static inline bool due__inside_stored(struct due_queue *q)
{
    if (q->stored)
        due__inside_enter(q);
    return q->stored;
}

static inline void due__inside_end(struct due_queue *q, bool inside)
{
    if (inside)
        due__inside_leave(q);
}

/* Is anybody inside, or still closing, or was the queue not closed? */
bool due__inside_any(struct due_queue *q);

/* One who closes comes, with what he waits on; NULL: no memory.  He leaves with it; @ended: he has
 * ended the queue.  After that he must not touch it. */
struct due__waiter *due__closer_enter(struct due_queue *q);
void due__closer_leave(struct due_queue *q, struct due__waiter *w, bool ended);
/* Until the queue is closed and everybody out, and it has ended or the caller is to end it
 * (*@ending).  0, or DUE_ETIMEDOUT. */
int due__closer_wait(struct due_queue *q, struct due__waiter *w, int64_t until_ns,
                     enum due__ending *ending);
/* All who close look again; those whose timeout a manual clock has passed. */
void due__closers_ring(struct due_queue *q);
void due__closers_tick(struct due_queue *q, int64_t now_ns);

#endif
