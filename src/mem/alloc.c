/* alloc.c - memory from the user's hooks or from malloc and the kernel.
 *
 * A region from the kernel is an anonymous mapping: pages cost nothing until they are touched.  A
 * user's allocator knows no pages, so a region from it is padded to begin on one, and the word in
 * front of it remembers what is to be freed.
 *
 * Not here   Which memory is taken when: chunks.c and the slab.
 */
#include "mem/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static size_t whole_pages(size_t size)
{
    return (size + DUE__PAGE - 1) & ~(size_t)(DUE__PAGE - 1);
}

static size_t padded(size_t size)
{
    return whole_pages(size) + DUE__PAGE + sizeof(void *);
}

void due__alloc_init(struct due__alloc *a, const due_allocator *hooks)
{
    a->hooks = hooks != NULL ? *hooks : (due_allocator){ .alloc = NULL };
}

void *due__alloc_new(struct due__alloc *a, size_t size)
{
    void *memory;

    if (a->hooks.alloc == NULL)
        return calloc(1, size);

    memory = a->hooks.alloc(a->hooks.ctx, size);
    if (memory != NULL)
        memset(memory, 0, size);
    return memory;
}

void *due__alloc_raw(struct due__alloc *a, size_t size)
{
    return a->hooks.alloc == NULL ? malloc(size) : a->hooks.alloc(a->hooks.ctx, size);
}

void due__alloc_free(struct due__alloc *a, void *memory, size_t size)
{
    if (a->hooks.alloc == NULL)
        free(memory);
    else if (memory != NULL)
        a->hooks.free(a->hooks.ctx, memory, size);
}

void *due__alloc_region_raw(struct due__alloc *a, size_t size)
{
    unsigned char *raw;
    unsigned char *region;

    if (size > SIZE_MAX - 4 * (size_t)DUE__PAGE)
        return NULL;
    if (a->hooks.alloc == NULL) {
        region = mmap(NULL, whole_pages(size), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return region == MAP_FAILED ? NULL : region;
    }

    raw = a->hooks.alloc(a->hooks.ctx, padded(size));
    if (raw == NULL)
        return NULL;
    region = raw + sizeof(void *);
    region += -(uintptr_t)region & (DUE__PAGE - 1);
    memcpy(region - sizeof(void *), &raw, sizeof raw);
    return region;
}

void *due__alloc_region(struct due__alloc *a, size_t size)
{
    void *region = due__alloc_region_raw(a, size);

    if (region != NULL && a->hooks.alloc != NULL)
        memset(region, 0, whole_pages(size));
    return region;
}

void due__alloc_region_free(struct due__alloc *a, void *region, size_t size)
{
    void *raw;

    if (region == NULL)
        return;
    if (a->hooks.alloc == NULL) {
        munmap(region, whole_pages(size));
        return;
    }
    memcpy(&raw, (unsigned char *)region - sizeof(void *), sizeof raw);
    a->hooks.free(a->hooks.ctx, raw, padded(size));
}

bool due__alloc_give_back(struct due__alloc *a, void *part, size_t size)
{
    return a->hooks.alloc == NULL && madvise(part, size, MADV_DONTNEED) == 0;
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; without it pages come when they are first written */
#endif

void due__alloc_touch(void *part, size_t size)
{
    madvise(part, size, MADV_POPULATE_WRITE);
}

#define HUGE_PAGE \
    ((uintptr_t)2 << 20) /* where they are larger none lies wholly in a part: no harm */

void due__alloc_touch_large(struct due__alloc *a, void *part, size_t size)
{
    uintptr_t from = ((uintptr_t)part + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    uintptr_t to = ((uintptr_t)part + size) & ~(HUGE_PAGE - 1);
    bool asked =
        a->hooks.alloc == NULL && from < to && madvise((void *)from, to - from, MADV_HUGEPAGE) == 0;

    due__alloc_touch(part, size);
    if (asked) /* or what was given back would be made one again */
        madvise((void *)from, to - from, MADV_NOHUGEPAGE);
}
