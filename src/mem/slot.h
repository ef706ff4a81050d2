/* slot.h - sixteen bytes that stand for a job wherever jobs are kept in order.
 *
 * A slot is one 128-bit key, most significant half first.  Two forms hold the same facts:
 *
 *   by deadline   deadline 64 | 255 - priority 8 | arrival 28 | job 28
 *   by priority   255 - priority 8 | deadline 64 | arrival 28 | job 28
 *
 * so that plain comparison of the key is the order promised to the user.  Deadlines are never
 * negative.  No two live slots are equal: the job differs.
 */
#ifndef DUE__SLOT_H
#define DUE__SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/slot_key.h"

#define DUE__JOB_BITS     28
#define DUE__ARRIVAL_BITS 28
#define DUE__JOB_MAX      ((UINT32_C(1) << DUE__JOB_BITS) - 1)
#define DUE__ARRIVAL_MAX  ((UINT32_C(1) << DUE__ARRIVAL_BITS) - 1)

/* Aligned for the halves to be read and written in one step, in a window. */
struct due__slot {
    _Alignas(8) uint64_t hi;
    _Alignas(8) uint64_t lo;
};

static inline struct due__slot due__slot_make(int64_t deadline_ns, unsigned priority,
                                              uint32_t arrival, uint32_t job)
{
    return (struct due__slot){
        .hi = (uint64_t)deadline_ns,
        .lo = (uint64_t)(255u - priority) << (DUE__ARRIVAL_BITS + DUE__JOB_BITS) |
              (uint64_t)arrival << DUE__JOB_BITS | job,
    };
}

static inline int64_t due__slot_deadline(struct due__slot s)
{
    return (int64_t)s.hi;
}

static inline uint32_t due__slot_arrival(struct due__slot s)
{
    return (uint32_t)(s.lo >> DUE__JOB_BITS) & DUE__ARRIVAL_MAX;
}

static inline uint32_t due__slot_job(struct due__slot s)
{
    return (uint32_t)s.lo & DUE__JOB_MAX;
}

/* By halves, and volatile so that the compiler leaves it so: a slot comes in two registers; when
 * it is gathered in memory to be stored as one vector, the load waits for both stores, some 6 ns
 * each time. */
static inline void due__slot_store(struct due__slot *to, struct due__slot s)
{
    *(volatile uint64_t *)&to->hi = s.hi;
    *(volatile uint64_t *)&to->lo = s.lo;
}

static inline due__key due__slot_key(struct due__slot s)
{
    return due__key_of(s.hi, s.lo);
}

static inline struct due__slot due__slot_of(due__key key)
{
    return (struct due__slot){ .hi = due__key_high(key), .lo = due__key_low(key) };
}

/* As one number: the compiler makes it a compare and a subtract with borrow, without branches. */
static inline bool due__slot_before(struct due__slot a, struct due__slot b)
{
    return due__key_before(due__slot_key(a), due__slot_key(b));
}

static inline bool due__slot_same(struct due__slot a, struct due__slot b)
{
    return due__key_same(due__slot_key(a), due__slot_key(b));
}

/* The least of the deadlines after @ns. */
static inline struct due__slot due__slot_after(int64_t ns)
{
    return (struct due__slot){ .hi = (uint64_t)ns + 1, .lo = 0 };
}

/* From the form by deadline to the form by priority, and back. */
static inline struct due__slot due__slot_by_priority(struct due__slot s)
{
    return (struct due__slot){
        .hi = (s.lo >> 56) << 56 | s.hi >> 8,
        .lo = (s.hi & 0xff) << 56 | (s.lo & (UINT64_MAX >> 8)),
    };
}

static inline struct due__slot due__slot_by_deadline(struct due__slot s)
{
    return (struct due__slot){
        .hi = s.hi << 8 | s.lo >> 56,
        .lo = (s.hi >> 56) << 56 | (s.lo & (UINT64_MAX >> 8)),
    };
}

#endif
