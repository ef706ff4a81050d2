/* discard.h - jobs that leave otherwise than by hand-over. */
#ifndef DUE__DISCARD_H
#define DUE__DISCARD_H

#include "queue/queue.h"

/* A claimed job, whose word was @w before, leaves otherwise than by hand-over: counted, shown to
 * on_discard, given back. */
void due__discard(struct due_queue *q, uint32_t number, uint64_t w);

/* A job of the caller's own stays in the store, and leaves the queue. */
void due__keep_stored(struct due_queue *q, uint32_t number);

/* One that was just made to wait again: if the queue has closed meanwhile it stays in the store, or
 * is discarded. */
void due__keep_if_closed(struct due_queue *q, uint32_t number, uint32_t generation);

/* Before the queue is freed: jobs that were reserved and let go of without an answer. */
void due__leases_discard(struct due_queue *q);

#endif
