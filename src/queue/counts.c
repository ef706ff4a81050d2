/* counts.c - what the shards count of a queue's jobs, summed.
 *
 * Edges      described elsewhere: C2 closing.c
 */
#include "queue/counts.h"

#include "os/atomic.h"

/* @share: what waits, all but one job, is shared out to the shards. */
static struct due__sums sum_up(struct due_queue *q, bool share)
{
    struct due__sums all = { 0 };

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
    uint64_t reserved = due__load_relaxed(&q->reserved); /* no edge: a figure */
    all.leased += reserved;
    all.lent += reserved;
    all.unready += reserved;
    all.dequeued += due__load_acquire(&q->taken);  /* C2 of closing.c: after what is in shards */
    all.enqueued += due__load_relaxed(&q->placed); /* C2 of closing.c: after it */
    uint64_t held = share ? due__sums_held(&all) : 0;
    for (size_t i = DUE__SHARDS; i-- > 0;) {
        if (share) /* C2 of closing.c */
            q->slab.shard[i].spare = held > 0 ? (held - 1) / DUE__SHARDS : 0;
        due__lock_release(&q->slab.shard[i].lock);
    }
    return all;
}

struct due__sums due__sum_up(struct due_queue *q)
{
    return sum_up(q, false);
}

uint64_t due__waiting(struct due_queue *q)
{
    struct due__sums all = sum_up(q, false);

    return due__sums_held(&all);
}

uint64_t due__waiting_shared(struct due_queue *q)
{
    struct due__sums all = sum_up(q, true);

    return due__sums_held(&all);
}

uint64_t due__sums_held(const struct due__sums *all)
{
    return all->enqueued + all->revived - all->refused - all->dequeued - all->cancelled -
           all->discarded - all->acked - all->kept - all->died;
}

uint64_t due__sums_dead(const struct due__sums *all)
{
    return all->died - all->revived;
}

uint64_t due__sums_leased(const struct due__sums *all)
{
    uint64_t lent = all->lent + all->dequeued;

    return lent > all->done ? lent - all->done : 0;
}

uint64_t due__sums_ready(const struct due_queue *q, const struct due__sums *all)
{
    uint64_t ready = q->readied - q->unreadied;
    uint64_t left = all->dequeued + all->unready;

    return ready > left ? ready - left : 0;
}

uint64_t due__ready_count(struct due_queue *q)
{
    struct due__tenure t;

    due__enter(q, &t);
    struct due__sums all = due__sum_up(q);
    uint64_t ready = due__sums_ready(q, &all);
    due__tenure_end(q, &t);
    return ready;
}
