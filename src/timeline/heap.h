/* heap.h - a binary heap of slots in one array of fixed room.  Guard: the timeline lock. */
#ifndef DUE__HEAP_H
#define DUE__HEAP_H

#include <stdbool.h>
#include <stddef.h>

#include "mem/slot.h"

struct due__heap {
    struct due__slot *slot; /* T  children of i stand together in one cache line */
    size_t count;           /* T */
    size_t room;            /* I */
};

/* @array has room for @room slots and one of padding, and is aligned to a cache line. */
void due__heap_init(struct due__heap *h, struct due__slot *array, size_t room);
void due__heap_push(struct due__heap *h, struct due__slot s);   /* count < room */
struct due__slot due__heap_top(const struct due__heap *h);      /* count > 0 */
struct due__slot due__heap_pop(struct due__heap *h);            /* count > 0 */
void due__heap_append(struct due__heap *h, struct due__slot s); /* unordered, then build */
void due__heap_append_run(struct due__heap *h, const struct due__slot *run, size_t n);
void due__heap_build(struct due__heap *h);       /* bottom-up, O(count) */
bool due__heap_check(const struct due__heap *h); /* the slow way, for tests */

#endif
