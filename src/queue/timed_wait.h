/* timed_wait.h - waiting for a time or a ring, but for no job. */
#ifndef DUE__TIMED_WAIT_H
#define DUE__TIMED_WAIT_H

#include "queue/queue.h"

/* Sleep until rung, or until @until_ns on what timeouts are counted on; or shorter. */
void due__timed_wait(struct due_queue *q, struct due__waiter *w, int64_t until_ns);
/* Under the lock: the same for who has more to look at before it sleeps. */
void due__timed_wait_link(struct due_queue *q, struct due__waiter *w, int64_t until_ns);
void due__timed_wait_unlink(struct due_queue *q, struct due__waiter *w);
/* Under the lock: ring those who timed wait and have this @quit, or any (NULL).  False: not all. */
bool due__timed_wait_ring(struct due_queue *q, struct due__tenure *t, const uint32_t *quit);

#endif
