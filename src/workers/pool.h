/* pool.h - what a pool of workers is made of.
 *
 * Guards     I  set at start, then constant      W  the worker's lock      A  atomic, see Edges
 *            T  the queue's timeline lock        O  its worker's alone     K  the keeper's alone
 *            P  the lock of the pools' figures
 * Lock order 1. the lock of the pools' figures   2. a worker's lock   3. the timeline lock.  One
 *            worker's lock at a time.  None is held in a handler, or while a store is waited for:
 *            the keeper, which has a worker's, sends what can be sent at once.
 *
 * The edges F1 to F5 are described in worker.c and keeper.c.
 */
#ifndef DUE__POOL_H
#define DUE__POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "due/workers.h"
#include "job/deferred_lease.h"
#include "queue/queue.h"

#define DUE__AHEAD_MAX   32u        /* jobs that a worker reserves at a time */
#define DUE__AHEAD_NS    DUE_MS(1)  /* so much work it may have before it */
#define DUE__PATIENCE_NS DUE_MS(10) /* how long nobody may take from it before it is given back: */
#define DUE__AHEAD_LEASE 8          /* and both are at most this part of a lease */

struct due__worker {
    struct due__holder holder; /* I  first: what due_job.pool leads to */
    struct due__lock lock;     /* W */
    bool running;              /* W  the job is in a handler, and the keeper may extend its lease */
    bool deferred;             /* W  its lease stands in no timeline yet (deferred_lease.c) */
    bool lost;                 /* W  it cannot be extended any more */
    int64_t renewed_ns;        /* W  when its lease began, or was extended; on the queue's clock */
    int64_t limit_ns;          /* W  it is not extended beyond this; likewise */
    int64_t tried_end_ns;      /* W  where its lease ended when that was tried; INT64_MIN: never */
    int64_t again_ns;          /* W  it is not tried again before this; on the queue's clock */
    due_job job;               /* W  while it runs, and then its worker's; the handler reads it */
    uint32_t busy;             /* A  no edge: has a job, for the figures */
    _Alignas(8) uint64_t acked;      /* A  no edge: counters with one writer */
    _Alignas(8) uint64_t retried;    /* A  likewise */
    _Alignas(8) uint64_t buried;     /* A  likewise */
    _Alignas(8) uint64_t lost_count; /* A  likewise */
    _Alignas(8) uint64_t unanswered; /* A  likewise */
    uint64_t extended;               /* W */
    uint64_t given_back;             /* W */

    uint32_t count;                /* A  F1, F4: jobs that stand here, not begun; written under W */
    uint32_t at;                   /* W  the first of them */
    uint64_t taken;                /* W  how many were ever begun from here */
    int64_t reserved_ns;           /* W  when they were reserved; on the queue's clock */
    due_job ahead[DUE__AHEAD_MAX]; /* W  or its worker's alone, while count is 0 */

    uint64_t seen;             /* K  taken, as the keeper saw it first */
    int64_t seen_ns;           /* K  when that was, on what timeouts are counted on */
    int64_t pace_ns;           /* O  what a job takes, as measured; monotonic */
    int64_t fetched_ns;        /* O  when the jobs ahead came; monotonic */
    uint32_t fetched;          /* O  how many they were */
    uint32_t batch;            /* O  how many it asked for */
    int64_t pause_ns;          /* O  how long it timed waits after an error */
    struct due__waiter *rest;  /* I  the queue's: it waits between two tries */
    struct due_workers *pool;  /* I */
    struct due__thread thread; /* I */
};

struct due_workers {
    struct due_queue *q;         /* I */
    const int *topics;           /* I */
    size_t topic_count;          /* I */
    size_t threads;              /* I */
    size_t bytes;                /* I  of the whole allocation */
    struct due__counted counted; /* P  in the row where its figures are added up */
    due_handler *handler;        /* I */
    void *ctx;                   /* I */
    int64_t lease_ns;            /* I */
    int64_t extend_max_ns;       /* I */
    bool promises;               /* I  leases are only promised at first (deferred_lease.c) */
    uint32_t batch_max;          /* I  jobs that one worker may reserve at a time */
    uint32_t alive;              /* A  F5: workers that have not ended */
    uint32_t inside;             /* T  workers that are not out of the queue, if all were started */
    uint32_t quit;               /* A  F2: 1: take no more */
    uint32_t abandoned;          /* A  no edge: 1: extend no lease any more */
    uint32_t idle;               /* A  F1: workers that wait for a job */
    _Alignas(
        8) int64_t watch_ns;     /* A  F3: when the keeper looks; on what timeouts are counted on */
    struct due__waiter *rest;    /* I  the queue's: the keeper waits */
    struct due__thread keeper;   /* I */
    struct due__worker worker[]; /* I */
};

/* ---- pool.c ---- */

void due__handling_begin(const struct due_workers *pool); /* the calling thread is a worker */

/* ---- worker.c ---- */

void due__work(void *worker); /* a worker's thread */

/* No new job is to be begun. */
bool due__workers_leaving(const struct due_workers *pool);

/* All have ended, and none will touch its jobs any more. */
bool due__workers_ended(const struct due_workers *pool);

/* The job of a handler that runs: its lease is a real one from here on. */
void due__worker_settle(const due_job *job);

/* What @w has not begun goes back to the queue. */
void due__worker_give_back(struct due__worker *w);

/* Under the lock of @w: a promised lease becomes a real one, that ends at @until_ns. */
void due__worker_keep(struct due__worker *w, int64_t until_ns);

/* ---- keeper.c ---- */

void due__keep(void *pool); /* the keeper's thread */

/* A worker has reserved something: the keeper must look within @in_ns. */
void due__keep_events(struct due_workers *pool, int64_t now_ns, int64_t in_ns);

/* How long what stands with a worker may stand there untouched. */
static inline int64_t due__patience(const struct due_workers *pool)
{
    int64_t most = pool->lease_ns / DUE__AHEAD_LEASE;

    return most < DUE__PATIENCE_NS ? most : DUE__PATIENCE_NS;
}

#endif
