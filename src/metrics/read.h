/* read.h - figures, for who has seen to what has changed of itself: leases that have ended, jobs
 * that have become due. */
#ifndef DUE__METRICS_READ_H
#define DUE__METRICS_READ_H

#include "due/metrics.h"

void due__stats_fill(struct due_queue *q, struct due_stats *stats);

#endif
