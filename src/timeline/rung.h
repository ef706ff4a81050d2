/* rung.h - a stretch of time cut into buckets of equal width.
 *
 * Guard: the timeline lock.  A rung takes every slot before its end that is not earlier than what
 * the rungs nearer in time take: what is before its first bucket goes into that one.  It is made
 * from a bag, over the bag's own smallest and largest slot, so the width adapts to what is there.
 * The bag is then sorted into the buckets piece by piece (settling); new slots go to their bucket
 * at once meanwhile.
 *
 * The buckets stand in chunks of the pool, sixteen in each, and are empty from the beginning, so an
 * insert looks at nothing but the bag.  A map tells which are not.
 */
#ifndef DUE__RUNG_H
#define DUE__RUNG_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "timeline/bag.h"

#define DUE__RUNG_BUCKETS 1024u /* at most, in one rung */
#define DUE__RUNG_NONE    UINT32_MAX

struct due__rung {
    due__key start;   /* T  where bucket 0 begins */
    due__key end;     /* T  the first key that is not taken here */
    size_t count;     /* T  slots in the buckets and in the source */
    uint32_t shift;   /* T  a bucket is 2^shift wide */
    uint32_t buckets; /* T */
    uint32_t current; /* T  buckets before this one are done with */
    uint32_t unswept; /* T  in a sweep: buckets before this one, and the source if above all */
    uint64_t from_ns; /* T  of a coarse one: where the current bucket begins */
    struct due__bag source;                        /* T  still to be sorted into the buckets */
    uint64_t used[DUE__RUNG_BUCKETS / 64];         /* T  bit n: bucket n is not empty */
    struct due__bag *page[DUE__RUNG_BUCKETS / 16]; /* T  the buckets */
};

static inline struct due__bag *due__rung_bucket(struct due__rung *r, uint32_t n)
{
    return &r->page[n / 16][n % 16];
}

static inline bool due__rung_used(const struct due__rung *r, uint32_t n)
{
    return (r->used[n / 64] >> (n % 64) & 1) != 0;
}

static inline void due__rung_mark(struct due__rung *r, uint32_t n)
{
    r->used[n / 64] |= UINT64_C(1) << (n % 64);
}

static inline void due__rung_clear(struct due__rung *r, uint32_t n)
{
    r->used[n / 64] &= ~(UINT64_C(1) << (n % 64));
}

/* Nearly always a bucket is wider than a nanosecond; then the start is a whole one, and half of a
 * key says all. */
static inline bool due__rung_coarse(const struct due__rung *r)
{
    return r->shift >= 64;
}

/* The bucket for a deadline before the end of such a rung. */
static inline uint32_t due__rung_index_coarse(const struct due__rung *r, uint64_t deadline)
{
    uint64_t at = deadline > r->from_ns ? deadline : r->from_ns;
    uint64_t index = (at - due__key_high(r->start)) >> (r->shift & 63);

    assert(index < r->buckets && index >= r->current);
    return (uint32_t)index;
}

/* The bucket for a key before the rung's end. */
static inline uint32_t due__rung_index(const struct due__rung *r, due__key key)
{
    if (due__rung_coarse(r))
        return due__rung_index_coarse(r, due__key_high(key));
    due__key from = due__key_before(key, r->start) ? r->start : key;
    uint64_t index = due__key_low(due__key_down(due__key_minus(from, r->start), r->shift));

    assert(index < r->buckets);
    return (uint32_t)index < r->current ? r->current : (uint32_t)index;
}

/* Buckets before @n are done with. */
static inline void due__rung_pass(struct due__rung *r, uint32_t n)
{
    r->current = n;
    if (due__rung_coarse(r))
        r->from_ns = due__key_high(r->start) + ((uint64_t)n << (r->shift & 63));
}

/* A slot to bucket @n, where it belongs.  False: the bag is full, or empty, and the pool used up;
 * then nothing has changed. */
static inline bool due__rung_put_into(struct due__rung *r, struct due__pool *pool, uint32_t n,
                                      struct due__slot s)
{
    struct due__bag *b = due__rung_bucket(r, n);

    if (due__bag_full(b)) {
        if (!due__bag_put(b, pool, s))
            return false;
        due__rung_mark(r, n);
    } else {
        due__bag_append(b, s);
    }
    return true;
}

/* A slot before the rung's end to where it belongs.  As due__rung_put_into(). */
static inline bool due__rung_put(struct due__rung *r, struct due__pool *pool, struct due__slot s)
{
    return due__rung_put_into(r, pool, due__rung_index(r, due__slot_key(s)), s);
}

/* A rung of one bucket without end.  False: the pool is used up. */
bool due__rung_open(struct due__rung *r, struct due__pool *pool);

/* A rung of at most @wish buckets for the slots of @source, which it takes over.  It ends before
 * @end.  False: the pool is used up, nothing changed. */
bool due__rung_split(struct due__rung *r, struct due__pool *pool, struct due__bag *source,
                     uint32_t wish, due__key end);

/* Chunks that a rung of @buckets may need beyond those of its source: one partly filled in each
 * bucket, those the buckets stand in, and one before the source has given back its first. */
static inline size_t due__rung_need(uint32_t buckets)
{
    return buckets + (buckets + 15) / 16 + 1;
}

/* Sort at most @budget slots of the source; how many were looked at. */
size_t due__rung_settle(struct due__rung *r, struct due__pool *pool, size_t budget);

/* The first bucket that is not empty; the last one before @limit; DUE__RUNG_NONE without one. */
uint32_t due__rung_first(const struct due__rung *r);
uint32_t due__rung_last(const struct due__rung *r, uint32_t limit);

/* Where bucket @n ends. */
due__key due__rung_bucket_end(const struct due__rung *r, uint32_t n);

/* An empty rung's chunks go back. */
void due__rung_close(struct due__rung *r, struct due__pool *pool);

/* The slow way, for tests: is each slot where it belongs, not before @edge?  Adds to @chunks. */
bool due__rung_check(struct due__rung *r, due__key edge, size_t *chunks);

#endif
