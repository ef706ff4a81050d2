/* request.h - what one call wants that takes jobs. */
#ifndef DUE__REQUEST_H
#define DUE__REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "due/due.h"

struct due_queue;
struct due__job;
struct due__slot;

struct due__request {
    const int *topics;
    size_t topic_count;
    due_job *jobs;
    size_t max; /* at most INT_MAX */
    int64_t timeout_ns;
    int64_t lease_ns; /* 0: for good; less than 0: promised */
    int64_t until_ns; /* of the monotonic clock, or the manual one; DUE_FOREVER before it waits */
    int64_t woke_ns;  /* the clock as it was read since the last sleep; 0: not yet */
    int64_t now_ns;   /* the clock as the last look read it, if little was done since; else 0 */
    bool leased;      /* what was taken has begun its lease */
    bool inside;      /* the call has begun to wait, or may wait for a store: until it returns */
    bool last_look;   /* its time is up: it takes what is there also if a proxy is to */
    uint32_t rounds;  /* tenures that ended with jobs left in the inbox */
    const struct due__job *last; /* the last job in the inbox when the first of them began */
    const uint32_t *quit;        /* not 0: do not wait, DUE_ETIMEDOUT; or NULL */
    uint64_t landed;             /* with a store: takings that have landed, as it has seen them */
};

/* ---- dequeue.c ---- */

#define DUE__LANDED 1 /* why nothing was taken: a taking has landed (takings.c), to be looked at */

bool due__request_wants(const struct due__request *r, int topic);
/* All that is taken at once, by whatever way, or waited for: how many; if none, *@rc. */
size_t due__take_some(struct due_queue *q, struct due__request *r, struct due__slot *slots,
                      int *rc);

/* ---- dequeue_stored.c ---- */

/* With a store: the jobs must leave it first. */
int due__dequeue_stored(struct due_queue *q, struct due__request *r);

#endif
