/* timeline_sweep.c - dropping dead slots, a few at a time.
 *
 * A job that was cancelled or moved leaves its slot behind.  A pass goes through the timeline
 * bucket by bucket, from the farthest in time to the front, and closes up what is left, so that
 * chunks go back.  Between its steps the timeline is used as always: slots move from buckets to
 * nearer ones, that is, to where the pass has yet to come.
 *
 * Each rung knows how far it has been swept (unswept counts down).  A bucket that is loaded or
 * split while the pass stands in it is abandoned: what it held is met again, nearer.  A bucket that
 * only its first slots leave is begun again.  A split under way is first brought to its end.
 *
 * Guards     T  timeline lock
 *
 * Not here   Which slots are dead, and when to sweep: the queue.  Closing up a bag: bag.c.
 */
#include "timeline/timeline.h"

/* Chooses the next bag to sweep, from the farthest in time on, so that what moves meanwhile is met
 * rather late than never.  False: there is none. */
static bool next_bag(struct due__timeline *tl, size_t budget)
{
    struct due__sweep *sweep = &tl->sweep;

    for (uint32_t i = 0; i < tl->rungs; i++) {
        struct due__rung *r = tl->rung[i];

        if (r->unswept == 0)
            continue;
        if (r->source.count > 0 && due__timeline_settle(tl, r, budget) > 0)
            return true;
        sweep->bucket = due__rung_last(r, r->unswept);
        if (sweep->bucket == DUE__RUNG_NONE) {
            r->unswept = 0;
            continue;
        }
        r->unswept = sweep->bucket;
        sweep->rung = r;
        sweep->bag = due__rung_bucket(r, sweep->bucket);
        sweep->at = NULL;
        return true;
    }
    return false;
}

static void sweep_front(struct due__timeline *tl, size_t *dropped)
{
    size_t before = due__timeline_front(tl);

    tl->looked += before;
    tl->heap.count = tl->keep(tl->ctx, tl->heap.slot, tl->heap.count);
    due__heap_build(&tl->heap);
    tl->run_end =
        tl->run_at + (uint32_t)tl->keep(tl->ctx, tl->run + tl->run_at, tl->run_end - tl->run_at);
    *dropped += before - due__timeline_front(tl);
    tl->count -= before - due__timeline_front(tl);
}

bool due__timeline_sweep(struct due__timeline *tl, size_t budget, size_t *dropped)
{
    struct due__sweep *sweep = &tl->sweep;
    size_t limit = tl->looked + budget;

    if (!sweep->on) {
        *sweep = (struct due__sweep){ .on = true };
        for (uint32_t i = 0; i < tl->rungs; i++)
            tl->rung[i]->unswept = tl->rung[i]->buckets;
    }
    while (tl->looked < limit) {
        struct due__bag *bag = sweep->bag;
        size_t gone = 0;

        if (bag == NULL) {
            if (next_bag(tl, limit - tl->looked))
                continue;
            sweep_front(tl, dropped);
            sweep->on = false;
            return true;
        }
        if (due__bag_sweep(bag, tl->pool, &sweep->at, tl->keep, tl->ctx, &tl->looked, &gone))
            sweep->bag = NULL;
        tl->count -= gone;
        sweep->rung->count -= gone;
        *dropped += gone;
        if (bag->count == 0)
            due__rung_clear(sweep->rung, sweep->bucket);
    }
    return false;
}
