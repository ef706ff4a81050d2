/* bulk.h - many jobs cancelled or cleared by one call. */
#ifndef DUE__BULK_H
#define DUE__BULK_H

#include "queue/queue.h"

#define DUE__TOGETHER 256u /* jobs that are claimed and handed to the journal at once */

/* As due_cancel_batch(), and due_clear(); *@cleared is how many were, also if it fails. */
int due__cancel_all(struct due_queue *q, const due_id *ids, size_t n, int *results);
int due__clear_all(struct due_queue *q, int topic, uint64_t *cleared);

#endif
