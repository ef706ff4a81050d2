/* at_hand.c - free places for who has the timeline lock: fetched from a shard, many at a time.
 *
 * Guards     T  the timeline lock
 */
#include "queue/at_hand.h"

bool due__places_fetch(struct due_queue *q)
{
    struct due__shard *it = due__shard_enter(&q->slab);

    q->place_count = (uint32_t)due__shard_take(&q->slab, it, q->place, DUE__FETCH);
    due__shard_leave(it);
    return q->place_count > 0;
}
