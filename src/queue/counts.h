/* counts.h - what the shards count of a queue's jobs, summed. */
#ifndef DUE__COUNTS_H
#define DUE__COUNTS_H

#include "queue/queue.h"

/* Everything the shards count. */
struct due__sums {
    uint64_t enqueued, refused, dequeued, cancelled, discarded, acked, kept, unready, lent, done,
        leased, unleased, died, revived;
};

/* Under the lock, or not: of one moment. */
struct due__sums due__sum_up(struct due_queue *q);
/* What has come and is not gone: it waits, or is reserved. */
uint64_t due__sums_held(const struct due__sums *all);
/* What is dead: nothing is counted there and among what is held, nor in neither. */
uint64_t due__sums_dead(const struct due__sums *all);
/* Who has one in hand, and is not done with it. */
uint64_t due__sums_leased(const struct due__sums *all);
/* What is ready. */
uint64_t due__sums_ready(const struct due_queue *q, const struct due__sums *all);

/* Jobs that wait, delayed or ready: of one moment.  The other shares them out (C2 of closing.c). */
uint64_t due__waiting(struct due_queue *q);
uint64_t due__waiting_shared(struct due_queue *q);

/* Jobs that are ready: of one moment. */
uint64_t due__ready_count(struct due_queue *q);

#endif
