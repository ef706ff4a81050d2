/* chunks.h - chunks of one kilobyte, taken under the timeline lock, supplied outside it.
 *
 * Whatever keeps slots (timeline buckets, ready lines) is made of chunks, because no memory may be
 * asked for under the lock.  The slab supplies chunks before it hands out places, enough for every
 * place's slot to be anywhere, so that taking one under the lock cannot fail as long as dead slots
 * are swept in time.  The count for a span of 4,096 places:
 *
 *   66         the live slots of the timeline, at most one for each place, in full chunks
 *   132        the dead ones: a sweep begins when they outnumber the live, ends within twice that
 *   64 + 4     one partly filled chunk for each bucket of two levels (a split makes one bucket for
 *              64 to 128 slots), and the chunks the buckets themselves stand in (16 in each)
 *   66 + 171   ready lines: a run of slots, and nodes of a heap (24 in a chunk)
 *
 * makes 503, and DUE__CHUNKS_PER_SPAN is the next whole number of blocks.  What does not grow with
 * the places (small splits, with up to 64 buckets for fewer slots, and the reserve that inserts
 * leave to splits) is DUE__CHUNKS_AT_OPEN.
 * Untouched chunks are only addresses.
 */
#ifndef DUE__CHUNKS_H
#define DUE__CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/alloc.h"
#include "mem/slot.h"

#define DUE__CHUNK_BYTES 1024u
#define DUE__CHUNK_SLOTS 63u

#define DUE__BLOCK_CHUNKS    63u                       /* 64 KiB; the first chunk is the header */
#define DUE__CHUNKS_PER_SPAN (8u * DUE__BLOCK_CHUNKS)  /* for every 4,096 places */
#define DUE__CHUNKS_AT_OPEN  (16u * DUE__BLOCK_CHUNKS) /* once for a queue */

struct due__chunk {
    struct due__chunk *next;
    uint32_t first; /* slots before this one are used up */
    uint32_t count; /* slots from 0 up to here are filled */
    struct due__slot slot[DUE__CHUNK_SLOTS];
};

struct due__region;      /* one mapping, many chunks */
struct due__chunk_block; /* 64 KiB, aligned: a chunk's address leads to its header */

struct due__pool {
    struct due__alloc *alloc;      /* I */
    struct due__chunk *free;       /* T  given back, most recent first */
    struct due__chunk_block *cold; /* T  blocks with free chunks that a trim has looked at */
    struct due__region *fresh;     /* T  newest region that may have chunks never taken */
    size_t free_count;             /* T  chunks that can be taken now, fresh ones included */
    size_t total;                  /* T  chunks supplied so far */
    struct due__region *regions;   /* T  newest first */
    bool near;                     /* T  fresh chunks will be taken soon that were never touched */
};

void due__pool_init(struct due__pool *p, struct due__alloc *alloc);
void due__pool_destroy(struct due__pool *p);

/* Outside the lock: a region of at least @chunks chunks, NULL without memory.  Under it: adopt. */
struct due__region *due__region_new(struct due__alloc *alloc, size_t chunks);
void due__region_free(struct due__alloc *alloc, struct due__region *r);
void due__pool_adopt(struct due__pool *p, struct due__region *r);

/* Under the lock.  NULL only when the pool is used up.  A taken chunk: next, first, count zero. */
struct due__chunk *due__pool_take(struct due__pool *p);

/* The same of one that was given back, if there is one. */
static inline struct due__chunk *due__pool_take_used(struct due__pool *p)
{
    struct due__chunk *c = p->free;

    p->free = c->next;
    __builtin_prefetch(p->free, 1); /* where the next one after it is, and its first slots */
    p->free_count--;
    c->next = NULL;
    c->first = 0;
    c->count = 0;
    return c;
}

void due__pool_give(struct due__pool *p, struct due__chunk *c);

/* When fresh chunks are near whose pages were never touched, a page fault under the lock would make
 * everybody wait.  Under the lock: claim the next block of them.  False: none is near.  Outside:
 * touch it. */
bool due__pool_warm_claim(struct due__pool *p, void **block);
void due__pool_warm(void *block);

/* Under the lock: give the pages of free chunks back to the kernel, looking at no more than
 * @budget chunks; true when there was nothing left to look at.  It costs one system call for at
 * least four chunks. */
bool due__pool_trim(struct due__pool *p, size_t budget);

#endif
