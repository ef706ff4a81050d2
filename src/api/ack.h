/* ack.h - answers for a job, for pools of workers. */
#ifndef DUE__ACK_H
#define DUE__ACK_H

#include "queue/queue.h"

/* As due_nack() without delay, but as if the job had never been handed out. */
int due__lease_release(due_job *job);
/* As due_extend(), without waiting for the store. */
int due__lease_extend(due_job *job, int64_t lease_ns);
/* Should its holder stop: the lease has ended, or the job was cancelled? */
bool due__lease_stopping(const due_job *job);

#endif
