/* rest.c - a queue that was closed, looked through. */
#include "lab/rest.h"

#include <inttypes.h>
#include <stdio.h>

#include "queue/queue.h"
#include "store/sender.h"

static char wrong[200];

/* Places that a job, or nobody, has: those not at hand, in no magazine, in no chain, not fresh. */
static uint64_t places_used(const due_queue *q)
{
    const struct due__slab *s = &q->slab;
    uint64_t used = due__slab_end(s) - q->place_count;

    for (size_t i = 0; i < DUE__SHARDS; i++)
        used -= s->shard[i].count;
    for (uint32_t at = 0; at < due__slab_end(s); at += DUE__SPAN_JOBS) {
        const struct due__span *it = s->spans[due__segment_of(at)] + (at >> DUE__SPAN_SHIFT);

        used -= it->free_count + (DUE__SPAN_JOBS - it->fresh);
    }
    return used;
}

/* Those that were used as often as one can be: they are nobody's for good. */
static uint64_t places_retired(const struct due__slab *s)
{
    uint64_t n = 0;

    for (uint32_t at = 0; at < due__slab_end(s); at++)
        n += due__load_acquire(&due__job_at(s, at)->word) == due__word(UINT32_MAX, 0, DUE__DONE);
    return n;
}

static uint64_t index_count(const struct due__index *x)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < DUE__INDEX_SHARDS; i++)
        n += x->shard[i].count;
    return n;
}

/* Nobody waits, and nothing is on its way. */
static const char *commits_wrong(const struct due__commits *c, uint64_t used)
{
    if (c->submitted != c->settled)
        return "a change is on its way still";
    if (c->submitted_bytes != c->settled_bytes)
        return "bytes are on no way";
    if (c->first != NULL || c->line != NULL)
        return "a call waits still";
    if (c->takings != NULL || c->takings_ready != 0 || c->takings_under_way != 0)
        return "a taking is left";
    if (c->sender != DUE__SENDER_IDLE || c->carry != 0 || c->now->count != 0 || c->next->count != 0)
        return "a batch is left";
    if (c->settings.first != NULL || c->settings.left != 0)
        return "a pause or a limit is on its way still";
    if (index_count(&c->index) != used) {
        snprintf(wrong, sizeof wrong, "%" PRIu64 " places, %" PRIu64 " names", used,
                 index_count(&c->index));
        return wrong;
    }
    return NULL;
}

const char *rest_wrong(due_queue *q)
{
    struct due_stats s;
    uint64_t used = places_used(q);

    if (due_stats_read(q, &s) != 0)
        return "no stats";
    if (used != s.leased + s.dead)
        used -= places_retired(&q->slab);
    if (used != s.leased + s.dead) {
        snprintf(wrong, sizeof wrong,
                 "%" PRIu64 " places are in use: %" PRIu64 " leased, %" PRIu64 " dead", used,
                 s.leased, s.dead);
        return wrong;
    }
    return q->commits != NULL ? commits_wrong(q->commits, used) : NULL;
}
