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

/* The last places of a slab that is full but for a few, as it is where who puts in a job has just
 * cancelled another: the shard that they are from, of whose lock *@rest is to be seen to, unless it
 * is DUE__RELEASED.  NULL: it is not such a slab, and due__places_fetch() is to be called. */
static inline __attribute__((always_inline)) struct due__shard *due__places_last(
    struct due_queue *q, enum due__released *rest)
{
    uint32_t offset = due__thread_offset;

    *rest = DUE__RELEASED;
    if (offset == 0 || !due__load_relaxed(&q->slab.bare)) /* no edge: a guess */
        return NULL;
    struct due__shard *it = due__shard_at(&q->slab, offset);
    enum due__tried how = due__lock_try_quick(&it->lock); /* S */
    if (how != DUE__TRIED_GOT) {
        due__shard_tried(it, how);
        return NULL;
    }
    uint32_t left = it->count;
    if (left == 0 || left > DUE__FETCH) {
        due__shard_leave(it);
        return NULL;
    }
    it->count = 0;
    q->place_count = left;
    do {
        left--;
        q->place[left] = it->magazine[left];
    } while (left > 0);
    *rest = due__lock_release_last(&it->lock); /* S */
    return it;
}

/* A job has one of them.  (What is stored so is read so: the store may still be on its way.) */
static inline void due__placed_count(struct due_queue *q)
{
    uint64_t placed = due__load_relaxed(&q->placed); /* no edge: written under T */

    due__store_relaxed(&q->placed, placed + 1); /* C2 of closing.c */
}

/* One of them, which there is. */
static inline uint32_t due__place_next(struct due_queue *q)
{
    uint32_t n = q->place_count - 1;

    q->place_count = n;
    return q->place[n];
}

#endif
