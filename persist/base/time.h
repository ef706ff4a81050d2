/* time.h - clocks in ns, and sums that do not wrap. */
#ifndef DUE__BASE_TIME_H
#define DUE__BASE_TIME_H

#include <stdint.h>
#include <time.h>

#define DUE__NS_PER_S INT64_C(1000000000)

static inline int64_t due__clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * DUE__NS_PER_S + t.tv_nsec;
}

static inline int64_t due__mono_ns(void)
{
    return due__clock_ns(CLOCK_MONOTONIC);
}

/* Goes on while the machine sleeps. */
static inline int64_t due__boot_ns(void)
{
    return due__clock_ns(CLOCK_BOOTTIME);
}

static inline int64_t due__ns_after(int64_t from_ns, int64_t by_ns)
{
    int64_t sum;

    return __builtin_add_overflow(from_ns, by_ns, &sum) ? INT64_MAX : sum;
}

static inline int64_t due__ns_first(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#endif
