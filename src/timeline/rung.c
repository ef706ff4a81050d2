/* rung.c - a stretch of time cut into buckets of equal width.
 *
 * Guards     T  timeline lock
 *
 * Always     a slot is never in a later bucket than the one its key belongs to, nor in one that is
 *            done with; a bucket's bit is set exactly if it holds a slot: due__rung_check
 *
 * Not here   When to split and what to load: timeline.c.
 */
#include "timeline/rung.h"

#include <assert.h>
#include <string.h>

static uint32_t pages(const struct due__rung *r)
{
    return (r->buckets + 15) / 16;
}

static bool take_pages(struct due__rung *r, struct due__pool *pool)
{
    if (pool->free_count < pages(r))
        return false;
    for (uint32_t i = 0; i < pages(r); i++)
        r->page[i] = (struct due__bag *)(void *)due__pool_take(pool);
    for (uint32_t n = 0; n < r->buckets; n++)
        due__bag_init(due__rung_bucket(r, n));
    return true;
}

bool due__rung_open(struct due__rung *r, struct due__pool *pool)
{
    memset(r, 0, sizeof *r);
    r->buckets = 1;
    r->shift = 127;
    r->end = due__key_of(UINT64_MAX, UINT64_MAX);
    due__bag_init(&r->source);
    return take_pages(r, pool);
}

bool due__rung_split(struct due__rung *r, struct due__pool *pool, struct due__bag *source,
                     uint32_t wish, due__key end)
{
    due__key max = due__slot_key(source->max);
    due__key most = due__key_of(0, wish);

    memset(r, 0, sizeof *r);
    r->start = due__slot_key(source->min);
    while (!due__key_before(due__key_down(due__key_minus(max, r->start), r->shift), most)) {
        r->shift++;
        if (r->shift == 64)
            r->start = due__key_of(due__key_high(r->start), 0); /* a whole nanosecond */
    }
    r->buckets = (uint32_t)due__key_low(due__key_down(due__key_minus(max, r->start), r->shift)) + 1;
    if (!take_pages(r, pool))
        return false;

    r->end = due__key_plus(r->start, due__key_up(due__key_of(0, r->buckets), r->shift));
    if (due__key_before(end, r->end))
        r->end = end;
    due__rung_pass(r, 0);
    r->count = source->count;
    r->source = *source;
    due__bag_init(source);
    return true;
}

/* The @n slots before @end to where they belong, the last one first.  How many: fewer if the pool
 * is used up.  (What decides of the rung is held here meanwhile: each store to a slot would have it
 * read again.) */
static uint32_t settle_coarse(struct due__rung *r, struct due__pool *pool,
                              const struct due__slot *end, uint32_t n)
{
    const struct due__rung held = { .start = r->start,
                                    .from_ns = r->from_ns,
                                    .shift = r->shift,
                                    .current = r->current,
                                    .buckets = r->buckets };
    uint32_t i = 0;

    for (; i < n; i++) {
        end--;
        struct due__slot s = { .hi = end->hi, .lo = end->lo };

        if (!due__rung_put_into(r, pool, due__rung_index_coarse(&held, s.hi), s))
            break;
    }
    return i;
}

static uint32_t settle_fine(struct due__rung *r, struct due__pool *pool,
                            const struct due__slot *end, uint32_t n)
{
    uint32_t i = 0;

    while (i < n && due__rung_put(r, pool, end[-1 - (ptrdiff_t)i]))
        i++;
    return i;
}

size_t due__rung_settle(struct due__rung *r, struct due__pool *pool, size_t budget)
{
    struct due__bag *source = &r->source;
    size_t done = 0;

    while (done < budget && source->count > 0) {
        struct due__chunk *c = source->chunk;
        const struct due__slot *end = c->slot + source->fill;
        uint32_t n = source->fill < budget - done ? source->fill : (uint32_t)(budget - done);

        if (c->next != NULL)
            __builtin_prefetch(&c->next->slot[DUE__CHUNK_SLOTS - 1]);
        uint32_t settled =
            due__rung_coarse(r) ? settle_coarse(r, pool, end, n) : settle_fine(r, pool, end, n);
        source->fill -= settled;
        source->count -= settled;
        done += settled;
        if (source->fill == 0)
            due__bag_drop_chunk(source, pool);
        if (settled < n)
            break;
    }
    return done;
}

uint32_t due__rung_first(const struct due__rung *r)
{
    for (uint32_t i = r->current / 64; i < (r->buckets + 63) / 64; i++)
        if (r->used[i] != 0)
            return i * 64 + (uint32_t)__builtin_ctzll(r->used[i]);
    return DUE__RUNG_NONE;
}

uint32_t due__rung_last(const struct due__rung *r, uint32_t limit)
{
    while (limit > 0) {
        uint32_t word = (limit - 1) / 64;
        uint64_t used = r->used[word] & UINT64_MAX >> (63 - (limit - 1) % 64);

        if (used != 0)
            return word * 64 + 63 - (uint32_t)__builtin_clzll(used);
        limit = word * 64;
    }
    return DUE__RUNG_NONE;
}

due__key due__rung_bucket_end(const struct due__rung *r, uint32_t n)
{
    due__key end;

    if (n + 1 == r->buckets)
        return r->end;
    end = due__key_plus(r->start, due__key_up(due__key_of(0, n + 1), r->shift));
    return due__key_before(end, r->end) ? end : r->end;
}

void due__rung_close(struct due__rung *r, struct due__pool *pool)
{
    assert(r->count == 0 && r->source.chunk == NULL);
    for (uint32_t i = 0; i < pages(r); i++)
        due__pool_give(pool, (struct due__chunk *)(void *)r->page[i]);
}

static bool check_bag(const struct due__rung *r, const struct due__bag *b, uint32_t n,
                      due__key edge)
{
    for (const struct due__chunk *c = b->chunk; c != NULL; c = c->next)
        for (uint32_t i = 0; i < (c == b->chunk ? b->fill : c->count); i++) {
            due__key key = due__slot_key(c->slot[i]);

            if (due__key_before(key, edge) || !due__key_before(key, r->end))
                return false;
            if (n != DUE__RUNG_NONE && due__rung_index(r, key) != n)
                return false;
        }
    return true;
}

bool due__rung_check(struct due__rung *r, due__key edge, size_t *chunks)
{
    size_t count = r->source.count;

    if (!due__bag_check(&r->source, chunks) || !check_bag(r, &r->source, DUE__RUNG_NONE, edge))
        return false;
    for (uint32_t n = 0; n < DUE__RUNG_BUCKETS; n++) {
        bool used = due__rung_used(r, n);
        struct due__bag *b;

        if (n >= r->buckets) {
            if (used)
                return false;
            continue;
        }
        b = due__rung_bucket(r, n);
        if (used != (b->count > 0) || (used && n < r->current) || !due__bag_check(b, chunks) ||
            !check_bag(r, b, n, edge))
            return false;
        count += b->count;
    }
    *chunks += pages(r);
    return count == r->count;
}
