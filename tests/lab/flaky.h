/* flaky.h - memory that is counted, checked, and refused on demand.
 *
 * Every block remembers its size in front of it, so a free with another size, or of something that
 * was never allocated, is noticed; and has a mark behind it, so that it is noticed when more was
 * written than there is room for.  Memory is filled when it is given and when it comes back.
 */
#ifndef FLAKY_H
#define FLAKY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "due/due.h"

#define FLAKY_NEVER SIZE_MAX

struct flaky {
    due_allocator hooks; /* for due_options.allocator */
    size_t fail_at;      /* the allocation to refuse, counted from 0; FLAKY_NEVER */
    bool fail_on;        /* refuse all that come after it, too */
    void (*on_alloc)(void *ctx, size_t size); /* sees each allocation before it is made, or NULL */
    void *on_alloc_ctx;
    atomic_size_t calls; /* allocations asked for */
    atomic_size_t live;  /* blocks that are out */
    atomic_size_t bytes; /* and their bytes */
    atomic_size_t bad;   /* frees of a wrong size, of a wrong block, or of one that was overrun */
};

struct flaky_block {
    size_t size;
    size_t mark;
};

#define FLAKY_MARK ((size_t)0x5eed5eed5eed5eed)

/* The mark behind @block, wherever that is. */
static inline bool flaky_is_whole(const struct flaky_block *block)
{
    size_t behind;

    memcpy(&behind, (const char *)(block + 1) + block->size, sizeof behind);
    return behind == block->mark;
}

static inline void *flaky_alloc(void *ctx, size_t size)
{
    struct flaky *flaky = ctx;
    size_t call = atomic_fetch_add(&flaky->calls, 1);

    if (flaky->on_alloc != NULL)
        flaky->on_alloc(flaky->on_alloc_ctx, size);
    if (call == flaky->fail_at || (flaky->fail_on && call > flaky->fail_at))
        return NULL;
    struct flaky_block *block = malloc(sizeof *block + size + sizeof block->mark);
    if (block == NULL)
        return NULL;
    *block = (struct flaky_block){ .size = size, .mark = FLAKY_MARK ^ size };
    memset(block + 1, 0xa5, size);
    memcpy((char *)(block + 1) + size, &block->mark, sizeof block->mark);
    atomic_fetch_add(&flaky->live, 1);
    atomic_fetch_add(&flaky->bytes, size);
    return block + 1;
}

static inline void flaky_free(void *ctx, void *memory, size_t size)
{
    struct flaky *flaky = ctx;
    struct flaky_block *block = (struct flaky_block *)memory - 1;

    if (memory == NULL || block->size != size || block->mark != (FLAKY_MARK ^ size) ||
        !flaky_is_whole(block)) {
        atomic_fetch_add(&flaky->bad, 1);
        return;
    }
    memset(block, 0x5a, sizeof *block + size);
    free(block);
    atomic_fetch_sub(&flaky->live, 1);
    atomic_fetch_sub(&flaky->bytes, size);
}

/* What is free is kept and given again: pages that the kernel gives anew each time, to be filled,
 * cost more than all else that many tests do. */
static inline void flaky_keep_pages(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

/* Refuses the allocation @fail_at.  Not to be moved: its hooks point to it. */
static inline void flaky_init(struct flaky *flaky, size_t fail_at)
{
    flaky_keep_pages();
    memset(flaky, 0, sizeof *flaky);
    flaky->hooks = (due_allocator){ .alloc = flaky_alloc, .free = flaky_free, .ctx = flaky };
    flaky->fail_at = fail_at;
}

/* Refuses the allocation that comes @n further ones from now. */
static inline void flaky_fail_in(struct flaky *flaky, size_t n)
{
    flaky->fail_at = atomic_load(&flaky->calls) + n;
}

#endif
