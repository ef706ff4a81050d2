/* stats.c - what a queue has done and holds: the shards' counters, summed.
 *
 * What is told of a queue is summed with all shards entered at a time, and with the timeline's
 * lock: so all of it is of one moment.  A job that is just being taken is counted as waiting until
 * its taker has counted it.
 */
#include "metrics/read.h"

#include "api/poll.h"
#include "os/atomic.h"
#include "queue/counts.h"
#include "queue/queue.h"

/* Without the lock: what has its own guards. */
static void apart(struct due_queue *q, struct due_stats *s)
{
    q->journal->stats(q, s);
    s->kept_bytes = due__payloads_bytes(&q->slab.payloads);
    s->proxy_calls = due__load_relaxed(&q->proxy_calls); /* no edge: a counter */
    s->rings = due__load_relaxed(&q->rings);             /* no edge: a counter */
    s->nacked = due__load_relaxed(&q->nacked);           /* no edge: a counter */
    s->retried = due__load_relaxed(&q->retried);         /* no edge: a counter */
    s->buried = due__load_relaxed(&q->buried);           /* no edge: a counter */
    s->kicked = due__load_relaxed(&q->kicked);           /* no edge: a counter */
    s->repeated = due__load_relaxed(&q->repeated);       /* no edge: a counter */
}

/* Under the lock: the jobs. */
static void count_jobs(struct due_queue *q, struct due_stats *s)
{
    struct due__sums all = due__sum_up(q);
    uint64_t over = all.unleased + q->lapsed;

    s->enqueued = all.enqueued - all.refused;
    s->dequeued = all.dequeued;
    s->cancelled = all.cancelled;
    s->discarded = all.discarded;
    s->acked = all.acked;
    s->kept = all.kept;
    s->dead = due__sums_dead(&all);
    s->lent = due__sums_leased(&all);
    s->leased = all.leased > over ? all.leased - over : 0;
    if (s->leased > due__sums_held(&all)) /* who has given one back has not counted that yet */
        s->leased = due__sums_held(&all);
    s->waiting = due__sums_held(&all) - s->leased;
    s->ready = due__sums_ready(q, &all);
    if (s->ready > s->waiting) /* nor who has one whose lease is over already, that it left */
        s->ready = s->waiting;
}

void due__stats_fill(struct due_queue *q, struct due_stats *stats)
{
    struct due__tenure t;
    struct due_stats s = { 0 };

    apart(q, &s);
    due__enter(q, &t);
    count_jobs(q, &s);
    s.lapsed = q->lapsed;
    s.direct = q->direct + due__load_relaxed(&q->placed) - q->aside; /* no edge: under the lock */
    s.delegated = q->delegated;
    s.heartbeats = q->beats;
    s.mended = q->mended;
    s.counter = q->counter.trusted;
    s.passed = q->limiters.passed;
    s.kept_back = q->limiters.slots;
    s.slots = due__timeline_count(&q->timeline) + q->in_lines;
    s.memory_bytes = due__slab_bytes(&q->slab) + q->pool.total * DUE__CHUNK_BYTES;
    s.tenure_max_ns = q->tenure_max_ns;
    due__tenure_end(q, &t);
    *stats = s;
}

int due_stats_read(due_queue *q, struct due_stats *stats)
{
    if (due__forked(q))
        return DUE_EFORK;
    due__lapse_now(q);
    due__stats_fill(q, stats);
    return 0;
}
