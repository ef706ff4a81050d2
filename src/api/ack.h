/* ack.h - answers for a job, for pools of workers. */
#ifndef DUE__ACK_H
#define DUE__ACK_H

#include "queue/queue.h"

/* As due_nack() without delay, but as if the job had never been handed out. */
int due__lease_release(due_job *job);
/* As due_extend(), without waiting for the store.  DUE_EBUSY: of a shared queue; it is being
 * extended already, and not known how that ends. */
int due__lease_extend(due_job *job, int64_t lease_ns);
/* When the lease ends, on the queue's clock.  0; DUE_EBUSY: as above, and that is its end so far;
 * DUE_ESTALE: it is not its holder's any more. */
int due__lease_end(const due_job *job, int64_t *end_ns);
/* Should its holder stop: the lease has ended, or the job was cancelled? */
bool due__lease_stopping(const due_job *job);

#endif
