/* heap.c - a binary heap of slots.
 *
 * The children of i are 2i+1 and 2i+2.  The array begins one slot behind a cache line, so that
 * each pair of children shares a line.  A pop walks the hole down along the smaller children to
 * the bottom, without asking whether the last slot would fit earlier (it came from the bottom, so
 * it hardly ever does), then lets the last slot rise from there.  Which child is smaller is
 * computed, not branched on: it is a coin toss that no predictor learns.
 *
 * Guards     I  set at init, then constant      T  timeline lock
 *
 * Always     no slot is before its parent: due__heap_check
 */
#include "timeline/heap.h"

#include <assert.h>
#include <string.h>

void due__heap_init(struct due__heap *h, struct due__slot *array, size_t room)
{
    *h = (struct due__heap){ .slot = array + 1, .room = room };
}

static void rise(struct due__slot *slot, size_t i, struct due__slot s)
{
    while (i > 0) {
        size_t parent = (i - 1) / 2;

        if (!due__slot_before(s, slot[parent]))
            break;
        due__slot_store(&slot[i], slot[parent]);
        i = parent;
    }
    due__slot_store(&slot[i], s);
}

/* Moves the hole at @i to the bottom of a heap of @n slots; where it ended up. */
static size_t sink_hole(struct due__slot *slot, size_t i, size_t n)
{
    size_t child;

    while (4 * i + 6 < n) {
        size_t grand = 4 * i + 3;
        size_t left = due__slot_before(slot[grand + 1], slot[grand]);
        size_t right = 2u + due__slot_before(slot[grand + 3], slot[grand + 2]);
        size_t which = due__slot_before(slot[2 * i + 2], slot[2 * i + 1]);

        child = 2 * i + 1 + which;
        grand += left + (-which & (right - left)); /* no branch, whatever the compiler thinks */
        due__slot_store(&slot[i], slot[child]);
        due__slot_store(&slot[child], slot[grand]);
        i = grand;
    }
    for (child = 2 * i + 1; child + 1 < n; child = 2 * i + 1) {
        child += due__slot_before(slot[child + 1], slot[child]);
        due__slot_store(&slot[i], slot[child]);
        i = child;
    }
    if (child < n) {
        due__slot_store(&slot[i], slot[child]);
        i = child;
    }
    return i;
}

/* Puts @s at @i or below, for building: most slots there stay near where they are. */
static void sink(struct due__slot *slot, size_t i, size_t n, struct due__slot s)
{
    for (size_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n)
            child += due__slot_before(slot[child + 1], slot[child]);
        if (!due__slot_before(slot[child], s))
            break;
        due__slot_store(&slot[i], slot[child]);
        i = child;
    }
    due__slot_store(&slot[i], s);
}

void due__heap_push(struct due__heap *h, struct due__slot s)
{
    assert(h->count < h->room);
    rise(h->slot, h->count++, s);
}

struct due__slot due__heap_top(const struct due__heap *h)
{
    assert(h->count > 0);
    return h->slot[0];
}

struct due__slot due__heap_pop(struct due__heap *h)
{
    struct due__slot top = due__heap_top(h);
    struct due__slot last = h->slot[--h->count];

    if (h->count > 0)
        rise(h->slot, sink_hole(h->slot, 0, h->count), last);
    return top;
}

void due__heap_append(struct due__heap *h, struct due__slot s)
{
    assert(h->count < h->room);
    h->slot[h->count++] = s;
}

void due__heap_append_run(struct due__heap *h, const struct due__slot *run, size_t n)
{
    assert(n <= h->room - h->count);
    memcpy(h->slot + h->count, run, n * sizeof *run);
    h->count += n;
}

void due__heap_build(struct due__heap *h)
{
    for (size_t i = h->count / 2; i-- > 0;)
        sink(h->slot, i, h->count, h->slot[i]);
}

bool due__heap_check(const struct due__heap *h)
{
    if (h->count > h->room)
        return false;
    for (size_t i = 1; i < h->count; i++)
        if (due__slot_before(h->slot[i], h->slot[(i - 1) / 2]))
            return false;
    return true;
}
