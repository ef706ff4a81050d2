/* chunks.c - chunks of one kilobyte.
 *
 * A chunk given back goes onto a stack, so that the next one taken is warm.  A trim empties that
 * stack: it notes each chunk in the header of its block, and when the four chunks of a page are
 * all noted, the page goes back to the kernel.  Chunks are taken from the stack first, then from
 * blocks (any page, so that memory in use stays together), then fresh ones.
 *
 * Guards     I  set when the region is made, then constant      T  timeline lock
 *
 * Always     free_count is the chunks on the stack, those noted in blocks and the fresh ones.
 *
 * Not here   How many chunks there must be: chunks.h.  When they are supplied: the slab.
 */
#include "mem/chunks.h"

#include <assert.h>
#include <string.h>

#define BLOCK_BYTES  (DUE__CHUNK_BYTES * (DUE__BLOCK_CHUNKS + 1))
#define PAGE_CHUNKS  (DUE__PAGE / DUE__CHUNK_BYTES)
#define CHUNKS(page) (UINT64_C(0xf) << ((page)*PAGE_CHUNKS))

_Static_assert(sizeof(struct due__chunk) == DUE__CHUNK_BYTES, "a chunk is one kilobyte");
_Static_assert(PAGE_CHUNKS == 4, "a page is four chunks");

struct due__region {
    struct due__region *next;       /* T  older one */
    struct due__region *next_fresh; /* T  older one that may have fresh chunks */
    void *memory;                   /* I  what was allocated */
    size_t size;                    /* I */
    size_t chunks;                  /* I */
    size_t used;                    /* T  chunks taken at least once */
    size_t warm;                    /* T  blocks touched ahead of that */
};

/* Stands in the first chunk of each block, written when the block's first chunk is taken. */
struct due__chunk_block {
    struct due__chunk_block *next; /* T  in the pool's list of cold blocks */
    uint64_t cold;                 /* T  bit n: chunk n is free and not on the stack */
    bool listed;                   /* T */
    uint32_t idle;                 /* T  bit n: page n was given back to the kernel */
};

static struct due__chunk_block *block_of(struct due__chunk *c)
{
    return (struct due__chunk_block *)(void *)((unsigned char *)c -
                                               ((uintptr_t)c & (uintptr_t)(BLOCK_BYTES - 1)));
}

static unsigned index_of(struct due__chunk *c)
{
    return (unsigned)(((uintptr_t)c & (uintptr_t)(BLOCK_BYTES - 1)) / DUE__CHUNK_BYTES);
}

static unsigned char *first_block(struct due__region *r)
{
    unsigned char *memory = r->memory;

    return memory + (-(uintptr_t)memory & (uintptr_t)(BLOCK_BYTES - 1));
}

void due__pool_init(struct due__pool *p, struct due__alloc *alloc)
{
    *p = (struct due__pool){ .alloc = alloc };
}

void due__pool_destroy(struct due__pool *p)
{
    struct due__region *next;

    for (struct due__region *r = p->regions; r != NULL; r = next) {
        next = r->next;
        due__region_free(p->alloc, r);
    }
    *p = (struct due__pool){ .alloc = p->alloc };
}

/* What describes a region has a page of its own: a few bytes of the C library's, asked for while a
 * queue grows, would keep its heap from shrinking when all the payloads below them are gone. */
struct due__region *due__region_new(struct due__alloc *alloc, size_t chunks)
{
    size_t blocks = chunks / DUE__BLOCK_CHUNKS + (chunks % DUE__BLOCK_CHUNKS > 0);

    if (blocks >= SIZE_MAX / BLOCK_BYTES) /* of 32 bits: so many have no addresses */
        return NULL;
    struct due__region *r = due__alloc_region(alloc, sizeof *r);
    if (r == NULL)
        return NULL;
    r->size = (blocks + 1) * BLOCK_BYTES - DUE__PAGE; /* room to align the first block */
    r->chunks = blocks * DUE__BLOCK_CHUNKS;
    r->memory = due__alloc_region_raw(alloc, r->size);
    if (r->memory == NULL) {
        due__alloc_region_free(alloc, r, sizeof *r);
        return NULL;
    }
    return r;
}

void due__region_free(struct due__alloc *alloc, struct due__region *r)
{
    if (r == NULL)
        return;
    due__alloc_region_free(alloc, r->memory, r->size);
    due__alloc_region_free(alloc, r, sizeof *r);
}

void due__pool_adopt(struct due__pool *p, struct due__region *r)
{
    r->next = p->regions;
    p->regions = r;
    r->next_fresh = p->fresh;
    p->fresh = r;
    p->total += r->chunks;
    p->free_count += r->chunks;
}

/* A chunk that a trim has noted, from the block at the head of the list; NULL: there is none. */
static struct due__chunk *take_cold(struct due__pool *p)
{
    struct due__chunk_block *b = p->cold;
    unsigned index;

    if (b == NULL)
        return NULL;
    index = (unsigned)__builtin_ctzll(b->cold);
    b->cold &= b->cold - 1;
    b->idle &= ~(1u << (index / PAGE_CHUNKS));
    if (b->cold == 0) {
        p->cold = b->next;
        b->listed = false;
    }
    return (struct due__chunk *)(void *)((unsigned char *)b + index * (size_t)DUE__CHUNK_BYTES);
}

/* The block that will be begun within the next half block, if it is not warm; 0: none. */
static size_t cold_block(const struct due__pool *p)
{
    const struct due__region *r = p->fresh;

    if (r == NULL || r->used < DUE__BLOCK_CHUNKS / 2)
        return 0;
    size_t next = (r->used + DUE__BLOCK_CHUNKS / 2) / DUE__BLOCK_CHUNKS;
    return next > r->warm && next < r->chunks / DUE__BLOCK_CHUNKS ? next : 0;
}

static struct due__chunk *take_fresh(struct due__pool *p)
{
    struct due__region *r = p->fresh;
    unsigned char *block;
    size_t index;

    while (r != NULL && r->used == r->chunks)
        r = p->fresh = r->next_fresh;
    if (r == NULL)
        return NULL;

    block = first_block(r) + r->used / DUE__BLOCK_CHUNKS * BLOCK_BYTES;
    index = r->used % DUE__BLOCK_CHUNKS;
    if (index == 0)
        *(struct due__chunk_block *)(void *)block = (struct due__chunk_block){ .next = NULL };
    r->used++;
    p->near = cold_block(p) != 0;
    return (struct due__chunk *)(void *)(block + (index + 1) * DUE__CHUNK_BYTES);
}

bool due__pool_warm_claim(struct due__pool *p, void **block)
{
    size_t next = cold_block(p);

    if (next == 0)
        return false;
    p->fresh->warm = next;
    p->near = cold_block(p) != 0;
    *block = first_block(p->fresh) + next * BLOCK_BYTES;
    return true;
}

void due__pool_warm(void *block)
{
    due__alloc_touch(block, BLOCK_BYTES);
}

struct due__chunk *due__pool_take(struct due__pool *p)
{
    struct due__chunk *c;

    if (p->free != NULL)
        return due__pool_take_used(p);
    if ((c = take_cold(p)) == NULL && (c = take_fresh(p)) == NULL)
        return NULL;

    p->free_count--;
    c->next = NULL;
    c->first = 0;
    c->count = 0;
    return c;
}

void due__pool_give(struct due__pool *p, struct due__chunk *c)
{
    assert(c != NULL);
    c->next = p->free;
    p->free = c;
    p->free_count++;
}

bool due__pool_trim(struct due__pool *p, size_t budget)
{
    for (; budget > 0 && p->free != NULL; budget--) {
        struct due__chunk *c = p->free;
        struct due__chunk_block *b = block_of(c);
        unsigned index = index_of(c);
        unsigned page = index / PAGE_CHUNKS;

        p->free = c->next;
        b->cold |= UINT64_C(1) << index;
        if (!b->listed) {
            b->listed = true;
            b->next = p->cold;
            p->cold = b;
        }
        if ((b->cold & CHUNKS(page)) == CHUNKS(page) && (b->idle & 1u << page) == 0 &&
            due__alloc_give_back(p->alloc, (unsigned char *)b + page * (size_t)DUE__PAGE,
                                 DUE__PAGE))
            b->idle |= 1u << page;
    }
    return p->free == NULL;
}
