/* pool_stats.h - the pools of workers that a queue has or had, by name: for its figures.
 *
 * A pool is freed before its queue, and another of its name may follow.  What it has counted must
 * not be lost with it, since counters never fall.  So pools of one name share a row, which stays.
 *
 * Guards     I  set when it is made      P  the lock of the pools' figures
 * Lock order 1. the lock of the pools' figures   2. a worker's lock.  Nothing else is locked in it,
 *            and no hook is called.
 */
#ifndef DUE__POOL_STATS_H
#define DUE__POOL_STATS_H

#include "due/workers.h"
#include "os/lock.h"

/* Of a pool: its part of a row. */
struct due__counted {
    struct due__row *row;      /* P  where its figures are added up */
    struct due__counted *next; /* P  in that row */
    void (*add_up)(struct due__counted *, struct due_workers_stats *); /* I */
};

struct due__row {
    struct due__row *next;         /* P  in the order in which they were made */
    struct due__counted *pools;    /* P  those that were not freed */
    struct due_workers_stats done; /* P  what those have counted that were */
    struct due_workers_stats sum;  /* P  of all, when due__pool_stats_sum() looked */
    char name[65];                 /* I */
};

struct due__pool_stats {
    struct due__lock lock; /* P */
    struct due__row *rows; /* P */
};

/* A row of the caller's own, for a pool that is about to be; NULL: no memory. */
struct due__row *due__row_new(struct due_queue *q, const char *name);
void due__row_free(struct due_queue *q, struct due__row *row);

/* The pool has begun: it is in the row of that name, which is @row if there was none; else @row is
 * freed.  It has ended: what it has counted stays. */
void due__pool_stats_enter(struct due_queue *q, struct due__counted *pool, struct due__row *row);
void due__pool_stats_leave(struct due_queue *q, struct due__counted *pool);

/* With the lock of the pools' figures: fill in the sum of each row. */
void due__pool_stats_sum(struct due__pool_stats *r);

void due__pool_stats_init(struct due__pool_stats *r);
void due__pool_stats_free(struct due_queue *q);

#endif
