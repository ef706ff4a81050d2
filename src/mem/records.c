/* records.c - records beside the slab, a segment at a time.
 *
 * Edges      L3  whoever makes a segment's array swaps its zeroed memory in -> whoever loads the
 *                pointer sees the zeroes.  Two may try at once: one of them frees its own.
 */
#include "mem/records.h"

#include <string.h>

void due__records_init(struct due__records *s, size_t size)
{
    memset(s, 0, sizeof *s);
    s->size = size;
}

static size_t bytes(const struct due__records *s, uint32_t k)
{
    return s->size * due__segment_places(k);
}

void due__records_destroy(struct due__records *s, struct due__alloc *alloc)
{
    for (uint32_t k = 0; k < DUE__SEGMENTS; k++)
        due__alloc_region_free(alloc, s->segment[k], bytes(s, k));
}

uint32_t due__records_number(const struct due__records *s, const void *record)
{
    const unsigned char *at = record;

    for (uint32_t k = DUE__SEGMENTS; k-- > 0;) { /* the last segments hold most of the places */
        const unsigned char *base = due__load_acquire(&s->segment[k]); /* L3 */

        if (base != NULL && at >= base && at < base + bytes(s, k))
            return due__segment_first(k) + (uint32_t)((size_t)(at - base) / s->size);
    }
    return DUE__NO_JOB;
}

bool due__records_reserve(struct due__records *s, struct due__alloc *alloc, uint32_t n)
{
    for (uint32_t i = 0; i < n;) {
        uint32_t k = due__segment_of(i);
        uint32_t places = due__segment_places(k);

        if (!due__records_make(s, alloc, i))
            return false;
        due__alloc_touch(due__records_at(s, i), s->size * (n - i < places ? n - i : places));
        i += places;
    }
    return true;
}

bool due__records_make(struct due__records *s, struct due__alloc *alloc, uint32_t number)
{
    uint32_t k = due__segment_of(number);
    void *none = NULL;

    if (due__load_acquire(&s->segment[k]) != NULL) /* L3 */
        return true;
    void *made = due__alloc_region(alloc, bytes(s, k));
    if (made == NULL)
        return false;
    if (!due__cas_acq_rel(&s->segment[k], &none, made)) /* L3 */
        due__alloc_region_free(alloc, made, bytes(s, k));
    return true;
}
