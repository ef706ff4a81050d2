/* tsan.h - what ThreadSanitizer is told, in a program that is checked while its library is not.
 *
 * It sees the program's own reads and writes, and the library's calls of memcpy() and free(), but
 * no atomic operation of a library that was not built for it; so it would take each job that goes
 * from one thread to another for a race.  It is asked for at run time.  A library that was built
 * for it says nothing here: then its own atomics are looked at.
 */
#ifndef DUE__TSAN_H
#define DUE__TSAN_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define DUE__TSAN_SEES
#endif
#endif
#if defined __SANITIZE_THREAD__ || defined DUE__EXPLORE
#define DUE__TSAN_SEES
#endif

/* There only if ThreadSanitizer is. */
extern void __tsan_acquire(void *at) __attribute__((weak));
extern void __tsan_release(void *at) __attribute__((weak));

/* Is the program checked, and we are not? */
static inline bool due__tsan_blind(void)
{
#ifdef DUE__TSAN_SEES
    return false;
#else
    return __tsan_release != NULL;
#endif
}

/* What this thread has done before is seen by who calls due__tsan_acquire() of the same @at. */
static inline void due__tsan_release(const void *at)
{
    if (due__tsan_blind())
        __tsan_release((void *)at);
}

static inline void due__tsan_acquire(const void *at)
{
    if (due__tsan_blind())
        __tsan_acquire((void *)at);
}

#endif
