/* at_hand.h - free places that whoever has the timeline lock may use without entering a shard.
 *
 * Guards     T  the timeline lock, for every call
 */
#ifndef DUE__AT_HAND_H
#define DUE__AT_HAND_H

#include "os/atomic.h"
#include "queue/queue.h"

/* More of them, when there are none.  False: a shard has none. */
bool due__places_fetch(struct due_queue *q);

/* What has become of a look for the last places of a slab that is full but for a few, as it is
 * where who puts in a job has just cancelled another. */
enum due__last {
    DUE__LAST_GOT,
    DUE__LAST_GOT_WAITER, /* and somebody may sleep for *@it, who is to be woken */
    DUE__LAST_ASK         /* it is not such a slab: by due__places_fetch() */
};

static inline __attribute__((always_inline)) enum due__last due__places_last(struct due_queue *q,
                                                                             struct due__shard **at)
{
    uint32_t offset = due__thread_offset;

    *at = NULL;
    if (offset == 0 || !due__load_relaxed(&q->slab.bare)) /* no edge: a guess */
        return DUE__LAST_ASK;
    struct due__shard *it = *at = due__shard_at(&q->slab, offset);
    if (!due__lock_try_untold(&it->lock))
        return DUE__LAST_ASK;
    uint32_t left = it->count;
    if (left == 0 || left > DUE__FETCH) {
        due__shard_leave(it);
        return DUE__LAST_ASK;
    }
    it->count = 0;
    q->place_count = left;
    do {
        left--;
        q->place[left] = it->magazine[left];
    } while (left > 0);
    return due__lock_release_waiter(&it->lock) ? DUE__LAST_GOT_WAITER : DUE__LAST_GOT; /* S */
}

/* One of them, which there is. */
static inline uint32_t due__place_next(struct due_queue *q)
{
    uint32_t n = q->place_count - 1;

    q->place_count = n;
    return q->place[n];
}

#endif
