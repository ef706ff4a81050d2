/* records.h - what only reserved or stored jobs need, in arrays beside the slab.
 *
 * An array covers one segment of the slab and is made when the first of its jobs needs it, so a
 * queue that uses neither leases nor a store has none.
 */
#ifndef DUE__RECORDS_H
#define DUE__RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/alloc.h"
#include "mem/slab.h"
#include "os/atomic.h"

/* Of a job that was ever reserved, or has a past; its word says so (DUE__HELD). */
struct due__lease {
    _Alignas(8) int64_t
        deadline_ns;   /* A  R1: the job's own; in the slab stands when it is next due */
    uint32_t token;    /* A  R1: of the lease; counts up */
    uint32_t attempts; /* A  R1: times handed out */
    uint32_t failures; /* A  relaxed counter */
    uint32_t holders;  /* A  R2: copies out, and one more while the job lives */
    uint32_t limit;    /* A  R1: of attempts, when it was last reserved; 0: none */
    uint32_t revoked;  /* A  R3: the use of the place that is not to be handed out again */
};

#define DUE__COUNTED UINT32_MAX /* as the limit: the attempt that is about to begin is counted */

_Static_assert(sizeof(struct due__lease) == 32, "a lease is half a cache line");

/* Of a job that is dead, or on its way to be. */
struct due__dead_letter {
    int64_t died_ns;               /* O  its owner's until it is DEAD, then constant */
    uint32_t next;                 /* T  died after it: place plus 1 */
    uint32_t prev;                 /* T  died before it */
    uint8_t cause;                 /* O  enum due_cause; 0: it is not */
    char reason[DUE_REASON_BYTES]; /* O */
};

/* One kind of record, by place. */
struct due__records {
    size_t size;                  /* I  of one record */
    void *segment[DUE__SEGMENTS]; /* A  L3: set once */
};

void due__records_init(struct due__records *s, size_t size);
void due__records_destroy(struct due__records *s, struct due__alloc *alloc);

/* Have the record of place @number.  False: no memory. */
bool due__records_make(struct due__records *s, struct due__alloc *alloc, uint32_t number);

/* Have the records of the first @n places, and their memory faulted in; before there are others who
 * might use them.  False: no memory. */
bool due__records_reserve(struct due__records *s, struct due__alloc *alloc, uint32_t n);

/* The place of a record. */
uint32_t due__records_number(const struct due__records *s, const void *record);

static inline bool due__records_has(const struct due__records *s, uint32_t number)
{
    return due__load_acquire(&s->segment[due__segment_of(number)]) != NULL; /* L3 */
}

/* The record of a place that was made before. */
static inline void *due__records_at(const struct due__records *s, uint32_t number)
{
    uint32_t k = due__segment_of(number);
    unsigned char *base = due__load_acquire(&s->segment[k]); /* L3 */

    return base + (size_t)(number - due__segment_first(k)) * s->size;
}

/* The record of a place, if it was made, will be looked at, and written, soon. */
static inline void due__records_prefetch(const struct due__records *s, uint32_t number)
{
    uint32_t k = due__segment_of(number);
    const unsigned char *base = due__load_acquire(&s->segment[k]); /* L3 */

    if (base != NULL)
        __builtin_prefetch(base + (size_t)(number - due__segment_first(k)) * s->size, 1);
}

#endif
