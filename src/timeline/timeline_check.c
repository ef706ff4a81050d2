/* timeline_check.c - the slow way, for tests: is each slot where it belongs?
 *
 * Guards     T  timeline lock
 */
#include "timeline/timeline.h"

bool due__timeline_check(struct due__timeline *tl, size_t *chunks)
{
    due__key edge = tl->edge;
    size_t count = due__timeline_front(tl);
    size_t owed = 0;
    uint32_t unsettled = 0;

    *chunks = 0;
    if (!due__heap_check(&tl->heap) || tl->rungs + tl->spares != DUE__TIMELINE_RUNGS)
        return false;
    for (size_t i = 0; i < tl->heap.count; i++)
        if (!due__key_before(due__slot_key(tl->heap.slot[i]), edge))
            return false;
    for (size_t i = tl->run_at; i < tl->run_end; i++)
        if (!due__key_before(due__slot_key(tl->run[i]), edge) ||
            (i > tl->run_at && !due__slot_before(tl->run[i - 1], tl->run[i])))
            return false;

    for (uint32_t i = tl->rungs; i-- > 0;) {
        struct due__rung *r = tl->rung[i];

        if (!due__rung_check(r, edge, chunks) || (i > 0 && !due__key_same(r->end, tl->end[i])) ||
            (i > 0 && due__key_before(tl->rung[i - 1]->end, r->end)))
            return false;
        edge = due__key_before(edge, r->end) ? r->end : edge;
        count += r->count;
        unsettled += r->source.count > 0;
        owed += r->source.count > 0 ? r->buckets : 0;
    }
    for (uint32_t i = tl->rungs; i < DUE__TIMELINE_RUNGS; i++)
        if (!due__key_same(tl->end[i], due__key_of(0, 0)))
            return false;
    return count == tl->count && unsettled == tl->unsettled && owed == tl->owed &&
           tl->closer_ns == due__timeline_closer(tl);
}
