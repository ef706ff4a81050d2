/* shared_hall.h - a shared queue for scenarios, and the books kept of what it hands out.
 *
 * Whatever a call was told must be so in the store: a job that was dequeued is done there, by the
 * lease under which it was handed out, and no lease is handed out twice.  When everybody rests
 * nobody waits for a job that is due, whether it lies here or in the store.
 */
#ifndef DUE__EXPLORE_SHARED_HALL_H
#define DUE__EXPLORE_SHARED_HALL_H

#include "due/workers.h"
#include "queue/queue.h"
#include "shared_shelf.h"

#define LEASE    DUE_MS(10)
#define PATIENCE DUE_MS(5) /* with the store */
#define HANDED   8u
#define FOREIGN  DUE_S(500) /* the lease of another process: it outlasts every scenario */

struct hall {
    due_queue *q;
    struct shared_shelf shelf;
    uint64_t handed[HANDED]; /* leases that were handed out */
    unsigned hands;
    int put; /* what an enqueue answered, 1: there was none; and its job */
    due_id id;
    due_workers *pool;
    unsigned handled; /* by the pool */
    bool closing, closed;
    bool skewed;                    /* the store's clock is not ours */
    bool refused;                   /* what who closes gives back may not reach the store */
    due_job job;                    /* that was reserved */
    struct due__bell reserved, had; /* rung then: for who extends it, and another process */
    struct due__bell begun;         /* who extends it is about to */
    struct due__bell sleeper;       /* nobody rings it */
    bool followed;                  /* an ack waited for an extension when a close began */
    int64_t wall_ns;                /* what the queue's clock is ahead of the store's */
};

extern struct hall *hall;

/* In setup: opened, with leases of @lease_ns or as long as ever; and with a job that is due. */
void hall_open_for(int64_t lease_ns);
void hall_open(void);
void hall_open_with_a_job(void);

/* In threads. */
void hall_dequeue(void *arg);
void hall_dequeue_then(void *arg);
void hall_look(void *arg);
void hall_reserve_and_ack(void *arg);
void hall_enqueue(void *arg);
void hall_put_elsewhere(void *arg);
void hall_see_it_back(void *arg);
void hall_put_later_elsewhere(void *arg);
void hall_claim_elsewhere(void *arg);
void hall_reserve_it(void *arg);
void hall_steal(void *arg);
void hall_reserve_and_nack(void *arg);
void hall_extend_it(void *arg);
void hall_cancel_there(void *arg);
void hall_stop_pool(void *arg);
void hall_close_now(void *arg);
void hall_close_soon(void *arg);
void hall_sleep(int64_t ns);
void hall_hand(uint64_t lease); /* it is handed out */
bool hall_late(int rc);         /* the store was not asked in time, or has not answered */

/* Of a pool.  All threads here are one of the system, so they share what a worker says of itself:
 * who is none says so, or those of later scenarios are taken for one. */
void hall_not_in_handler(void);
void hall_handle(void *ctx, const due_job *job, due_answer *answer);

void hall_idle(void);
void hall_check(void);

#endif
