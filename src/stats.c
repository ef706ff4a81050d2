/* stats.c - what a queue has done and holds: the shards' counters, summed.
 *
 * Every counter is written by many threads without an order; a sum is exact when nobody is at work.
 */
#include "core.h"

#include "atomic.h"

uint64_t due__ready_count(struct due_queue *q)
{
    struct due__tenure t;
    uint64_t unready = 0;

    for (size_t i = 0; i < DUE__SHARDS; i++)
        unready += due__load_relaxed(&q->slab.shard[i].unready); /* no edge: a counter */
    due__enter(q, &t);
    uint64_t ready = q->readied - q->unreadied;
    due__leave(q, &t);
    return ready > unready ? ready - unready : 0;
}

int due_stats(due_queue *q, struct due_stats *stats)
{
    struct due__tenure t;
    struct due_stats s = { 0 };
    uint64_t done = 0;
    uint64_t lent = 0;

    if (due__forked(q))
        return DUE_EFORK;
    for (size_t i = 0; i < DUE__SHARDS; i++) {
        struct due__shard *it = &q->slab.shard[i];

        done += due__load_relaxed(&it->done);             /* no edge: a counter */
        lent += due__load_relaxed(&it->lent);             /* no edge: a counter */
        s.dequeued += due__load_relaxed(&it->dequeued);   /* no edge: a counter */
        s.cancelled += due__load_relaxed(&it->cancelled); /* no edge: a counter */
        s.discarded += due__load_relaxed(&it->discarded); /* no edge: a counter */
    }
    s.waiting = due__waiting(q);
    s.ready = due__ready_count(q);
    s.enqueued = s.waiting + s.dequeued + s.cancelled + s.discarded;
    s.lent = lent > done ? lent - done : 0;
    s.proxy_calls = due__load_relaxed(&q->proxy_calls); /* no edge: a counter */
    s.rings = due__load_relaxed(&q->rings);             /* no edge: a counter */

    due__enter(q, &t);
    s.direct = q->direct;
    s.delegated = q->delegated;
    s.heartbeats = q->beats;
    s.mended = q->mended;
    s.slots = due__timeline_count(&q->timeline) + q->in_lines;
    s.memory_bytes = due__slab_bytes(&q->slab) + q->pool.total * DUE__CHUNK_BYTES;
    s.tenure_max_ns = q->tenure_max_ns;
    due__leave(q, &t);
    *stats = s;
    return 0;
}
