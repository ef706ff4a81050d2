/* request.h - what one call wants that takes jobs. */
#ifndef DUE__REQUEST_H
#define DUE__REQUEST_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "due/due.h"
#include "os/atomic.h"
#include "queue/queue.h"
#include "queue/take.h"

struct due__request {
    struct due__wanted wanted;
    due_job *jobs;
    size_t max; /* at most INT_MAX */
    int64_t timeout_ns;
    int64_t lease_ns; /* 0: for good; less than 0: promised */
    int64_t until_ns; /* of the monotonic clock, or the manual one; DUE_FOREVER before it waits */
    int64_t woke_ns;  /* the clock as it was read since the last sleep; 0: not yet */
    int64_t now_ns;   /* the clock as the last look read it, if little was done since; else 0 */
    bool leased;      /* what was taken has begun its lease */
    bool spins;       /* its caller can spin for it (spin_take.c) */
    bool inside;      /* the call has begun to wait, or may wait for a store: until it returns */
    bool last_look;   /* its time is up: it takes what is there also if a proxy is to */
    uint32_t rounds;  /* tenures that ended with jobs left in the inbox */
    const struct due__job *last; /* the last job in the inbox when the first of them began */
    const uint32_t *quit;        /* not 0: do not wait, DUE_ETIMEDOUT; or NULL */
    struct due__waiter *waiter;  /* what it waits as while its caller spins; else NULL */
    int64_t spin_until_ns;       /* the deadline that it spins for */
    uint64_t landed;             /* with a store: takings that have landed, as it has seen them */
};

/* ---- dequeue.c ---- */

#define DUE__SPINS  INT_MIN /* why nothing was taken: its caller is to spin, and ask again */
#define DUE__LANDED 1 /* why nothing was taken: a taking has landed (takings.c), to be looked at */

/* All that is taken at once, by whatever way, or waited for: how many; if none, *@rc. */
size_t due__take_some(struct due_queue *q, struct due__request *r, struct due__slot *slots,
                      int *rc);

/* ---- dequeue_stored.c ---- */

/* With a store: the jobs must leave it first. */
int due__dequeue_stored(struct due_queue *q, struct due__request *r);

/* The topic that has all turns, plus 1; 0: there is none, or it has to share. */
static inline uint32_t due__sole(struct due_queue *q)
{
    int64_t until_ns = due__load_acquire(&q->sole_until); /* W3 */
    uint32_t topic = due__load_acquire(&q->sole);         /* W3: after it */

    if (topic == DUE__NO_TOPIC)
        return 0;
    if (topic == 0 || until_ns < 0 || until_ns == DUE_FOREVER)
        return topic;
    return due__clock_passed(&q->clock, until_ns) ? 0 : topic;
}

/* Without the lock: is nothing there to be taken, of any topic?  False: ask with it. */
static inline __attribute__((always_inline)) bool due__nothing_yet(struct due_queue *q)
{
    if (due__load_relaxed(&q->sole_until) < 0 || !q->short_takes || /* no edge: a guess */
        !due__inbox_quiet(&q->inbox))                               /* I2 */
        return false;
    int64_t until_ns = due__load_seq(&q->sole_until);                   /* W3 */
    return until_ns >= 0 && due__load_seq(&q->sole) == DUE__NO_TOPIC && /* W3 */
           !(due__load_seq(&q->state) & DUE__REFUSING) &&               /* E3 */
           !due__clock_passed(&q->clock, until_ns);
}

/* The topic of which what is shown may be taken without the lock; NULL: there is none. */
static inline __attribute__((always_inline)) struct due__topic *due__topic_shown(
    struct due_queue *q, const struct due__wanted *wanted)
{
    uint32_t topic;

    if (!due__shown_is_next(q))
        return NULL;
    if (wanted->topics == NULL)
        topic = due__sole(q);
    else
        topic = wanted->count == 1 ? (uint32_t)wanted->topics[0] + 1 : 0;
    return topic != 0 ? due__topic_at(q, topic - 1) : NULL;
}

/* What is shown, without the lock: up to @max jobs of these topics, or of any. */
static inline __attribute__((always_inline)) size_t due__take_fast(struct due_queue *q,
                                                                   const struct due__wanted *wanted,
                                                                   struct due__slot *slots,
                                                                   size_t max)
{
    struct due__topic *topic = due__topic_shown(q, wanted);

    if (topic == NULL)
        return 0;
    if (max == 1)
        return due__take_one_shown(q, topic, slots);
    return due__take_shown(q, topic, slots, max < DUE__TAKE_MAX ? max : DUE__TAKE_MAX);
}

#endif
