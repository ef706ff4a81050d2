/* bag.h - slots in no order, in a chain of chunks; knows its smallest and its largest.
 *
 * Guard: the timeline lock.  A bag is one cache line: an append touches it and the line that the
 * slot goes to.  Only the newest chunk grows, so the bag counts it and the others count their own.
 * An empty bag counts as if that were full, so that one look tells whether there is room.
 * The next line of slots is fetched ahead: the lock's release waits until all that was written has
 * arrived, and so would wait for memory on every fourth append.
 */
#ifndef DUE__BAG_H
#define DUE__BAG_H

#include <stdbool.h>
#include <stddef.h>

#include "mem/chunks.h"
#include "mem/slot.h"

/* Of @n slots, those that still stand for their jobs to the front, in their order; how many. */
typedef size_t due__keep_fn(const void *ctx, struct due__slot *slot, size_t n);

struct due__bag {
    _Alignas(64) struct due__chunk *chunk; /* T  newest first; NULL: empty */
    uint32_t fill;                         /* T  slots in the newest chunk; empty: as if full */
    uint32_t count;                        /* T  slots in all */
    struct due__slot min;                  /* T  no slot is before this one */
    struct due__slot max;                  /* T  no slot is after this one */
};

static inline void due__bag_init(struct due__bag *b)
{
    b->chunk = NULL;
    b->fill = DUE__CHUNK_SLOTS;
    b->count = 0;
}

/* Must a chunk be taken for the next slot? */
static inline bool due__bag_full(const struct due__bag *b)
{
    return b->fill == DUE__CHUNK_SLOTS;
}

/* A bag that is neither full nor empty gets one more. */
static inline void due__bag_append(struct due__bag *b, struct due__slot s)
{
    struct due__slot *to = b->chunk->slot + b->fill;

    due__slot_store(to, s);
    __builtin_prefetch((const char *)to + 64, 1); /* behind the last one it does no harm */
    b->fill++;
    b->count++;
    if (s.hi <= b->min.hi && due__slot_before(s, b->min)) /* half a slot says nearly always */
        due__slot_store(&b->min, s);
    if (s.hi >= b->max.hi && due__slot_before(b->max, s))
        due__slot_store(&b->max, s);
}

/* False only if a chunk is needed and the pool is used up. */
static inline bool due__bag_put(struct due__bag *b, struct due__pool *pool, struct due__slot s)
{
    if (due__bag_full(b)) {
        struct due__chunk *c = due__pool_take(pool);

        if (c == NULL)
            return false;
        if (b->chunk != NULL)
            b->chunk->count = b->fill;
        c->next = b->chunk;
        b->chunk = c;
        b->fill = 0;
    }
    if (b->count == 0)
        b->min = b->max = s;
    due__bag_append(b, s);
    return true;
}

/* The newest chunk is used up: on to the one behind it. */
void due__bag_drop_chunk(struct due__bag *b, struct due__pool *pool);

/* One step of a sweep: looks at one chunk, drops the slots that are not alive and closes up.  @at
 * is the last chunk swept so far (NULL: begin), and is moved on.  Adds to @looked and @dropped.
 * True when the whole bag was swept.  Appends between the steps do no harm; before a chunk is
 * dropped elsewhere, the sweep must be abandoned if it stands at that chunk. */
bool due__bag_sweep(struct due__bag *b, struct due__pool *pool, struct due__chunk **at,
                    due__keep_fn *keep, const void *ctx, size_t *looked, size_t *dropped);

/* The slow way, for tests: are the counts and the bounds right?  Adds its chunks to @chunks. */
bool due__bag_check(const struct due__bag *b, size_t *chunks);

#endif
