/* sort.c - a few hundred slots in order.
 *
 * What costs in sorting so few is not the comparisons but the branches on them, which are coin
 * tosses.  So there are none: eight slots are put in order by counting, for each, how many come
 * before it, and sorted stretches are merged by computing which one gives the next slot.  A merge
 * works from both ends at once, because each end by itself waits for the slot before.
 */
#include "timeline/sort.h"

#include <string.h>

enum { BLOCK = 8 };

/* BLOCK slots in order; @from and @to may be the same. */
static void rank_block(const struct due__slot *from, struct due__slot *to)
{
    struct due__slot block[BLOCK];
    size_t place[BLOCK] = { 0 };

    memcpy(block, from, sizeof block);
#pragma GCC unroll 8
    for (size_t i = 1; i < BLOCK; i++) {
#pragma GCC unroll 8
        for (size_t j = 0; j < i; j++) {
            size_t before = due__slot_before(block[i], block[j]);

            place[j] += before;
            place[i] += 1 - before;
        }
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < BLOCK; i++)
        to[place[i]] = block[i];
}

/* Fewer than BLOCK. */
static void insert_few(const struct due__slot *from, size_t n, struct due__slot *to)
{
    for (size_t i = 0; i < n; i++) {
        struct due__slot s = from[i];
        size_t at = i;

        for (; at > 0 && due__slot_before(s, to[at - 1]); at--)
            to[at] = to[at - 1];
        to[at] = s;
    }
}

/* @b if @choose is 1, else @a. */
static inline const struct due__slot *either(const struct due__slot *a, const struct due__slot *b,
                                             size_t choose)
{
    return (const struct due__slot *)((uintptr_t)a ^
                                      (((uintptr_t)a ^ (uintptr_t)b) & -(uintptr_t)choose));
}

/* Two stretches, one behind the other: @a slots, then @b slots. */
static void merge(const struct due__slot *from, size_t a, size_t b, struct due__slot *to)
{
    const struct due__slot *a_low = from, *a_high = from + a;
    const struct due__slot *b_low = from + a, *b_high = from + a + b;
    struct due__slot *low = to, *high = to + a + b;

    for (size_t both = a < b ? a : b; both > 0; both--) { /* neither can run out in as many */
        size_t b_first = due__slot_before(*b_low, *a_low);
        size_t a_last = due__slot_before(b_high[-1], a_high[-1]);

        *low++ = *either(a_low, b_low, b_first);
        b_low += b_first;
        a_low += 1 - b_first;
        *--high = either(b_high, a_high, a_last)[-1];
        a_high -= a_last;
        b_high -= 1 - a_last;
    }
    while (a_low < a_high && b_low < b_high) {
        size_t b_first = due__slot_before(*b_low, *a_low);

        *low++ = *either(a_low, b_low, b_first);
        b_low += b_first;
        a_low += 1 - b_first;
    }
    memcpy(low, a_low, (size_t)(a_high - a_low) * sizeof *low);
    memcpy(low + (a_high - a_low), b_low, (size_t)(b_high - b_low) * sizeof *low);
}

void due__sort(struct due__slot *slot, size_t n, struct due__slot *spare)
{
    struct due__slot *from = slot;
    struct due__slot *to = spare;
    size_t at;

    for (size_t width = BLOCK; width < n; width *= 2) { /* so that the last merge ends in @slot */
        from = to;
        to = from == slot ? spare : slot;
    }
    for (at = 0; at + BLOCK <= n; at += BLOCK)
        rank_block(slot + at, from + at);
    insert_few(slot + at, n - at, from + at);

    for (size_t width = BLOCK; width < n; width *= 2) {
        struct due__slot *swap = from;

        for (at = 0; at < n; at += 2 * width) {
            size_t a = n - at < width ? n - at : width;
            size_t b = n - at - a < width ? n - at - a : width;

            merge(from + at, a, b, to + at);
        }
        from = to;
        to = swap;
    }
}
