/* atomic.h - the atomic operations of the library, by the order they need.
 *
 * Everything two threads may touch without a lock goes through these names, so that the order is
 * said at every use, the explorer (tests/explore) can take over at each of them, and
 * ThreadSanitizer sees real atomics.  The fields are plain integers and pointers.
 *
 * due__cas* take the address of the expected value and fill in what was found on failure.
 *
 * Numbers of 64 bits change in one step also where words have 32, if they lie on a multiple of 8.
 * i386 lays them on multiples of 4 in structs, so those that are shared are given _Alignas(8).
 */
#ifndef DUE__ATOMIC_H
#define DUE__ATOMIC_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if __GCC_ATOMIC_LLONG_LOCK_FREE != 2
#error "libdue needs a processor that changes 64 bits in one step: see docs/platforms.md"
#endif

#ifdef DUE__EXPLORE
#include "explore_atomic.h" /* tests/explore: the same names, under a scheduler */
#else

#if UINTPTR_MAX < UINT64_MAX
/* A field that is not aligned to its size does not compile; a pointer to such a one is a bug. */
#define due__aligned(p) sizeof(char[__alignof__(*(p)) >= sizeof(*(p)) ? 1 : -1])
#define due__whole(p)   ((__typeof__(p))due__whole_at((p), due__aligned(p) * sizeof(*(p))))

static inline void *due__whole_at(const volatile void *p, size_t size)
{
    assert(((uintptr_t)p & (size - 1)) == 0);
    (void)size;
    return (void *)(uintptr_t)p;
}
#else
#define due__whole(p) (p)
#endif

#define due__load_relaxed(p)     __atomic_load_n(due__whole(p), __ATOMIC_RELAXED)
#define due__load_acquire(p)     __atomic_load_n(due__whole(p), __ATOMIC_ACQUIRE)
#define due__load_seq(p)         __atomic_load_n(due__whole(p), __ATOMIC_SEQ_CST)
#define due__store_relaxed(p, v) __atomic_store_n(due__whole(p), (v), __ATOMIC_RELAXED)
#define due__store_release(p, v) __atomic_store_n(due__whole(p), (v), __ATOMIC_RELEASE)
#define due__store_seq(p, v)     __atomic_store_n(due__whole(p), (v), __ATOMIC_SEQ_CST)
#define due__xchg_seq(p, v)      __atomic_exchange_n(due__whole(p), (v), __ATOMIC_SEQ_CST)
#define due__add_relaxed(p, v)   __atomic_fetch_add(due__whole(p), (v), __ATOMIC_RELAXED)
#define due__add_seq(p, v)       __atomic_fetch_add(due__whole(p), (v), __ATOMIC_SEQ_CST)
#define due__sub_seq(p, v)       __atomic_fetch_sub(due__whole(p), (v), __ATOMIC_SEQ_CST)
#define due__or_seq(p, v)        __atomic_fetch_or(due__whole(p), (v), __ATOMIC_SEQ_CST)
#define due__and_seq(p, v)       __atomic_fetch_and(due__whole(p), (v), __ATOMIC_SEQ_CST)
#define due__cas_acq_rel(p, expected, desired)                                                 \
    __atomic_compare_exchange_n(due__whole(p), (expected), (desired), false, __ATOMIC_ACQ_REL, \
                                __ATOMIC_ACQUIRE)
#define due__cas_seq(p, expected, desired)                                                     \
    __atomic_compare_exchange_n(due__whole(p), (expected), (desired), false, __ATOMIC_SEQ_CST, \
                                __ATOMIC_SEQ_CST)

#endif

/* Tell the processor that this thread spins. */
static inline void due__relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Between two looks of a thread that spins for long; @idle: it has time. */
static inline void due__spin_pause(bool idle)
{
#ifdef DUE__EXPLORE
    explore_spin();
#endif
    if (idle)
        due__relax();
}

#endif
