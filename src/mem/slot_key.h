/* slot_key.h - a slot as one number of 128 bits, and what is computed with it.
 *
 * Where the compiler has such numbers it computes with them.  Where it has not, as on processors of
 * 32 bits, a number is two halves.  The calls by halves are compiled everywhere, so that a test can
 * hold both against each other.  Sums and differences wrap, as those of all unsigned numbers do.
 *
 * Guard: none, numbers.
 */
#ifndef DUE__SLOT_KEY_H
#define DUE__SLOT_KEY_H

#include <stdbool.h>
#include <stdint.h>

/* ---- By halves ---- */

struct due__halves {
    uint64_t hi;
    uint64_t lo;
};

static inline __attribute__((unused)) bool due__halves_before(struct due__halves a,
                                                              struct due__halves b)
{
    return (a.hi < b.hi) | ((a.hi == b.hi) & (a.lo < b.lo));
}

static inline __attribute__((unused)) bool due__halves_same(struct due__halves a,
                                                            struct due__halves b)
{
    return ((a.hi ^ b.hi) | (a.lo ^ b.lo)) == 0;
}

static inline __attribute__((unused)) struct due__halves due__halves_plus(struct due__halves a,
                                                                          struct due__halves b)
{
    uint64_t lo = a.lo + b.lo;

    return (struct due__halves){ .hi = a.hi + b.hi + (lo < a.lo), .lo = lo };
}

static inline __attribute__((unused)) struct due__halves due__halves_minus(struct due__halves a,
                                                                           struct due__halves b)
{
    return (struct due__halves){ .hi = a.hi - b.hi - (a.lo < b.lo), .lo = a.lo - b.lo };
}

/* Times 2^@n, and divided by it; @n is less than 128.  (No number is shifted by as many bits as it
 * has.) */
static inline __attribute__((unused)) struct due__halves due__halves_up(struct due__halves a,
                                                                        uint32_t n)
{
    if (n >= 64)
        return (struct due__halves){ .hi = a.lo << (n - 64), .lo = 0 };
    return (struct due__halves){ .hi = a.hi << n | a.lo >> 1 >> (63 - n), .lo = a.lo << n };
}

static inline __attribute__((unused)) struct due__halves due__halves_down(struct due__halves a,
                                                                          uint32_t n)
{
    if (n >= 64)
        return (struct due__halves){ .hi = 0, .lo = a.hi >> (n - 64) };
    return (struct due__halves){ .hi = a.hi >> n, .lo = a.lo >> n | a.hi << 1 << (63 - n) };
}

/* ---- As one number, where there are such ---- */

#ifdef __SIZEOF_INT128__

__extension__ typedef unsigned __int128 due__key; /* a slot as one number */

static inline due__key due__key_of(uint64_t hi, uint64_t lo)
{
    return (due__key)hi << 64 | lo;
}

static inline uint64_t due__key_high(due__key a)
{
    return (uint64_t)(a >> 64);
}

static inline uint64_t due__key_low(due__key a)
{
    return (uint64_t)a;
}

static inline bool due__key_before(due__key a, due__key b)
{
    return a < b;
}

static inline bool due__key_same(due__key a, due__key b)
{
    return a == b;
}

static inline due__key due__key_plus(due__key a, due__key b)
{
    return a + b;
}

static inline due__key due__key_minus(due__key a, due__key b)
{
    return a - b;
}

static inline due__key due__key_up(due__key a, uint32_t n)
{
    return a << n;
}

static inline due__key due__key_down(due__key a, uint32_t n)
{
    return a >> n;
}

#else

typedef struct due__halves due__key; /* a slot as one number */

static inline due__key due__key_of(uint64_t hi, uint64_t lo)
{
    return (due__key){ .hi = hi, .lo = lo };
}

static inline uint64_t due__key_high(due__key a)
{
    return a.hi;
}

static inline uint64_t due__key_low(due__key a)
{
    return a.lo;
}

#define due__key_before due__halves_before
#define due__key_same   due__halves_same
#define due__key_plus   due__halves_plus
#define due__key_minus  due__halves_minus
#define due__key_up     due__halves_up
#define due__key_down   due__halves_down

#endif

/* The number after @a. */
static inline due__key due__key_next(due__key a)
{
    return due__key_plus(a, due__key_of(0, 1));
}

#endif
