/* stats.c - what a queue has done and holds: the shards' counters, summed.
 *
 * What is told of a queue is summed with all shards entered at a time, and with the timeline's
 * lock: so all of it is of one moment.  A job that is just being taken is counted as waiting until
 * its taker has counted it.
 */
#include "queue/queue.h"

#include "os/atomic.h"

/* What is gone is summed first, and no count ever falls: so whatever is seen to have gone is seen
 * to have come, and the difference is 0 only if nothing waited at the turn between the two. */
uint64_t due__waiting(struct due_queue *q)
{
    uint64_t gone = 0;
    uint64_t come = 0;

    for (size_t i = 0; i < DUE__SHARDS; i++) {
        struct due__shard *it = &q->slab.shard[i];

        due__lock_acquire(&it->lock);
        gone += it->refused + it->dequeued + it->cancelled + it->discarded + it->acked + it->kept +
                it->died; /* C2 of close.c */
        due__lock_release(&it->lock);
    }
    for (size_t i = 0; i < DUE__SHARDS; i++) {
        struct due__shard *it = &q->slab.shard[i];

        due__lock_acquire(&it->lock);
        come += it->enqueued + it->revived;
        due__lock_release(&it->lock);
    }
    return come + due__load_relaxed(&q->placed) - gone; /* C2 of close.c */
}

/* Everything the shards count. */
struct sums {
    uint64_t enqueued, refused, dequeued, cancelled, discarded, acked, kept, unready, lent, done,
        leased, unleased, died, revived;
};

/* Under the lock, or not: of one moment. */
static struct sums sum_up(struct due_queue *q)
{
    struct sums all = { 0 };

    for (size_t i = 0; i < DUE__SHARDS; i++)
        due__lock_acquire(&q->slab.shard[i].lock);
    for (size_t i = 0; i < DUE__SHARDS; i++) {
        const struct due__shard *it = &q->slab.shard[i];

        all.enqueued += it->enqueued;
        all.refused += it->refused;
        all.dequeued += it->dequeued;
        all.cancelled += it->cancelled;
        all.discarded += it->discarded;
        all.unready += it->unready;
        all.lent += it->lent;
        all.done += it->done;
        all.acked += it->acked;
        all.kept += it->kept;
        all.leased += it->leased;
        all.unleased += it->unleased;
        all.died += it->died;
        all.revived += it->revived;
    }
    all.enqueued += due__load_relaxed(&q->placed); /* C2 of close.c */
    for (size_t i = DUE__SHARDS; i-- > 0;)
        due__lock_release(&q->slab.shard[i].lock);
    return all;
}

/* What has come and is not gone: it waits, or is reserved. */
static uint64_t held(const struct sums *all)
{
    return all->enqueued + all->revived - all->refused - all->dequeued - all->cancelled -
           all->discarded - all->acked - all->kept - all->died;
}

static uint64_t ready_count(const struct due_queue *q, const struct sums *all)
{
    uint64_t ready = q->readied - q->unreadied;
    uint64_t left = all->dequeued + all->unready;

    return ready > left ? ready - left : 0;
}

uint64_t due__ready_count(struct due_queue *q)
{
    struct due__tenure t;

    due__enter(q, &t);
    struct sums all = sum_up(q);
    uint64_t ready = ready_count(q, &all);
    due__leave(q, &t);
    return ready;
}

/* Without the lock: what has its own guards. */
static void apart(struct due_queue *q, struct due_stats *s)
{
    if (q->commits != NULL)
        due__commits_stats(q, s);
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
    struct sums all = sum_up(q);
    uint64_t lent = all.lent + all.dequeued;
    uint64_t over = all.unleased + q->lapsed;

    s->enqueued = all.enqueued - all.refused;
    s->dequeued = all.dequeued;
    s->cancelled = all.cancelled;
    s->discarded = all.discarded;
    s->acked = all.acked;
    s->kept = all.kept;
    s->lent = lent > all.done ? lent - all.done : 0;
    s->leased = all.leased > over ? all.leased - over : 0;
    if (s->leased > held(&all)) /* who has given one back has not counted that yet */
        s->leased = held(&all);
    s->waiting = held(&all) - s->leased;
    s->ready = ready_count(q, &all);
    if (s->ready > s->waiting) /* nor who has one whose lease is over already, that it left */
        s->ready = s->waiting;
}

int due_stats(due_queue *q, struct due_stats *stats)
{
    struct due__tenure t;
    struct due_stats s = { 0 };

    if (due__forked(q))
        return DUE_EFORK;
    if (q->clock.manual != NULL) /* turning it moves only what somebody waits for */
        due_poll(q, NULL);
    else
        due__lapse_all(q, NULL);
    apart(q, &s);
    due__enter(q, &t);
    count_jobs(q, &s);
    s.lapsed = q->lapsed;
    s.dead = q->dead_count;
    s.direct = q->direct;
    s.delegated = q->delegated;
    s.heartbeats = q->beats;
    s.mended = q->mended;
    s.passed = q->gates.passed;
    s.kept_back = q->gates.slots;
    s.slots = due__timeline_count(&q->timeline) + q->in_lines;
    s.memory_bytes = due__slab_bytes(&q->slab) + q->pool.total * DUE__CHUNK_BYTES;
    s.tenure_max_ns = q->tenure_max_ns;
    due__leave(q, &t);
    *stats = s;
    return 0;
}
