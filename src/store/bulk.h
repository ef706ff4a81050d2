/* bulk.h - many stored jobs cancelled or cleared by one call. */
#ifndef DUE__BULK_H
#define DUE__BULK_H

#include "queue/queue.h"

#define DUE__TOGETHER 256u /* stored jobs that are claimed and sent at once */

/* As due_cancel_batch() of a stored queue. */
int due__cancel_all(struct due_queue *q, const due_id *ids, size_t n, int *results);
/* As due_clear() of a stored queue; *@cleared is how many were, also if it fails. */
int due__clear_stored(struct due_queue *q, int topic, uint64_t *cleared);

#endif
