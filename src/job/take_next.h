/* take_next.h - the next job in one tenure of the lock: the short way of a call that takes one. */
#ifndef DUE__TAKE_NEXT_H
#define DUE__TAKE_NEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "queue/queue.h"
#include "queue/take.h"

enum due__next {
    DUE__NEXT_DONE,    /* the caller has it, and it is filled in: nothing more is to be done */
    DUE__NEXT_TAKEN,   /* the caller has it */
    DUE__NEXT_NOTHING, /* nothing is due */
    DUE__NEXT_ASK      /* that cannot be told here: by the usual way */
};

/* One job of a queue that has short ways, of these topics, for good.  @s: its slot.  DONE: it is
 * plain, and was counted as dequeued. */
enum due__next due__take_next(struct due_queue *q, const struct due__wanted *wanted,
                              struct due__slot *s, due_job *job);
/* The same on a lease, with the clock at @now_ns.  DONE: the lease has begun. */
enum due__next due__reserve_next(struct due_queue *q, const struct due__wanted *wanted,
                                 int64_t lease_ns, struct due__slot *s, int64_t *now_ns,
                                 due_job *job);

#endif
