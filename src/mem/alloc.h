/* alloc.h - where the queue's memory comes from: the user's allocator, or the kernel's pages.
 *
 * Small things come from the allocator hooks.  Large regions (slab spans, chunk regions) are
 * mapped from the kernel when the user gave no allocator, so that untouched pages cost nothing and
 * idle ones can be given back; with a user's allocator they come from it and stay until free.
 */
#ifndef DUE__ALLOC_H
#define DUE__ALLOC_H

#include <stdbool.h>
#include <stddef.h>

#include "due/due.h"

#define DUE__PAGE 4096u

struct due__alloc {
    due_allocator hooks; /* I  zero: malloc, free and the kernel */
};

void due__alloc_init(struct due__alloc *a, const due_allocator *hooks);

/* Zeroed memory of @size bytes, aligned for any type; NULL when there is none. */
void *due__alloc_new(struct due__alloc *a, size_t size);
/* The same with whatever it contains. */
void *due__alloc_raw(struct due__alloc *a, size_t size);
void due__alloc_free(struct due__alloc *a, void *memory, size_t size);

/* A zeroed region of whole pages, aligned to a page; NULL when there is none. */
void *due__alloc_region(struct due__alloc *a, size_t size);

/* The same with whatever it contains: nothing of it is touched. */
void *due__alloc_region_raw(struct due__alloc *a, size_t size);
void due__alloc_region_free(struct due__alloc *a, void *region, size_t size);

/* Have the pages of a part of a region there before they are needed; its content stays. */
void due__alloc_touch(void *part, size_t size);

/* The same of a large part, before there are others who might use it: in huge pages, where they lie
 * wholly in it and the kernel has them for who asks.  Later faults get small ones again, so what is
 * given back stays so. */
void due__alloc_touch_large(struct due__alloc *a, void *part, size_t size);

/* Give the pages of a part of a region back; it reads as zero afterwards.  False: they stay as
 * they are (a user's allocator). */
bool due__alloc_give_back(struct due__alloc *a, void *part, size_t size);

#endif
