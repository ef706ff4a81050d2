/* poll.h - one's own turn of a queue, for the calls that need it. */
#ifndef DUE__POLL_H
#define DUE__POLL_H

#include <stdint.h>

struct due_queue;

/* See to leases that have ended; turning a manual clock moves only what somebody waits for. */
void due__lapse_now(struct due_queue *q);
/* As due_next_deadline(), but on q->clock, of a shared queue too. */
int64_t due__next_here(struct due_queue *q);

#endif
