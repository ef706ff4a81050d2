/* heap.h - a raw binary heap of 16-byte slots: no lock, no names, no clock. */
#ifndef BENCH_HEAP_H
#define BENCH_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct heap_slot {
    int64_t at_ns;
    uint64_t number;
};

struct heap {
    struct heap_slot *slot; /* room for as many as will ever be in it */
    size_t count;
};

static inline void heap_push(struct heap *h, struct heap_slot s)
{
    size_t i = h->count++;

    while (i > 0 && s.at_ns < h->slot[(i - 1) / 2].at_ns) {
        h->slot[i] = h->slot[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h->slot[i] = s;
}

static inline struct heap_slot heap_pop(struct heap *h)
{
    struct heap_slot top = h->slot[0];
    struct heap_slot last = h->slot[--h->count];
    size_t i = 0;

    for (size_t child = 1; child < h->count; child = 2 * i + 1) {
        if (child + 1 < h->count && h->slot[child + 1].at_ns < h->slot[child].at_ns)
            child++;
        if (h->slot[child].at_ns >= last.at_ns)
            break;
        h->slot[i] = h->slot[child];
        i = child;
    }
    h->slot[i] = last;
    return top;
}

#endif
