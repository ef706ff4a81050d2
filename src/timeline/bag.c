/* bag.c - slots in no order, in a chain of chunks.
 *
 * A sweep walks the chain from the newest chunk on and moves what is alive forward, so that behind
 * it all chunks but one are full and the rest has gone back to the pool.  It needs no chunk.
 *
 * Guards     T  timeline lock
 *
 * Always     every chunk in the chain holds at least one slot; count is the sum: due__bag_check
 */
#include "timeline/bag.h"

#include <assert.h>
#include <string.h>

void due__bag_drop_chunk(struct due__bag *b, struct due__pool *pool)
{
    struct due__chunk *c = b->chunk;

    assert(c != NULL);
    b->chunk = c->next;
    b->fill = b->chunk != NULL ? b->chunk->count : DUE__CHUNK_SLOTS;
    due__pool_give(pool, c);
}

static uint32_t filled(const struct due__bag *b, const struct due__chunk *c)
{
    return c == b->chunk ? b->fill : c->count;
}

static void set_filled(struct due__bag *b, struct due__chunk *c, uint32_t n)
{
    if (c == b->chunk)
        b->fill = n;
    c->count = n;
}

bool due__bag_sweep(struct due__bag *b, struct due__pool *pool, struct due__chunk **at,
                    due__keep_fn *keep, const void *ctx, size_t *looked, size_t *dropped)
{
    struct due__chunk *last = *at;
    struct due__chunk *c = last != NULL ? last->next : b->chunk;
    uint32_t before, kept, room;

    if (c == NULL)
        return true;
    if (c->next != NULL)
        __builtin_prefetch(c->next);

    before = filled(b, c);
    kept = (uint32_t)keep(ctx, c->slot, before);
    *looked += before;
    *dropped += before - kept;
    b->count -= before - kept;

    if (last == NULL) {
        set_filled(b, c, kept);
        if (kept == 0)
            due__bag_drop_chunk(b, pool);
        else
            *at = c;
        return b->chunk == NULL;
    }

    room = DUE__CHUNK_SLOTS - filled(b, last);
    if (kept <= room) {
        memcpy(last->slot + filled(b, last), c->slot, kept * sizeof *c->slot);
        set_filled(b, last, filled(b, last) + kept);
        last->next = c->next;
        due__pool_give(pool, c);
        return last->next == NULL;
    }
    kept -= room;
    memcpy(last->slot + filled(b, last), c->slot + kept, room * sizeof *c->slot);
    set_filled(b, last, DUE__CHUNK_SLOTS);
    set_filled(b, c, kept);
    *at = c;
    return c->next == NULL;
}

bool due__bag_check(const struct due__bag *b, size_t *chunks)
{
    size_t count = 0;

    for (const struct due__chunk *c = b->chunk; c != NULL; c = c->next) {
        uint32_t n = filled(b, c);

        if (n == 0 || n > DUE__CHUNK_SLOTS)
            return false;
        for (uint32_t i = 0; i < n; i++)
            if (due__slot_before(c->slot[i], b->min) || due__slot_before(b->max, c->slot[i]))
                return false;
        count += n;
        ++*chunks;
    }
    return count == b->count && (b->chunk != NULL ? count > 0 : b->fill == DUE__CHUNK_SLOTS);
}
