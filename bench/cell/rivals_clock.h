/* rivals_clock.h - the clock of bench_loops.
 *
 * Event loops ask the system for the time.  The program therefore has a clock_gettime() of its own,
 * which the shared libraries find before that of libc.  While the clock is virtual, it answers
 * every monotonic clock with what bench_now() shows; all else it passes on.
 *
 * Only what a library asks through clock_gettime() can be turned, not what it asks the kernel
 * itself: rivals_loop.h says how that is noticed.
 */
#ifndef BENCH_RIVALS_CLOCK_H
#define BENCH_RIVALS_CLOCK_H

#include <stdint.h>
#include <time.h>

/* The clock_gettime() of libc. */
int rivals_clock_libc(clockid_t id, struct timespec *t);

/* How often a virtual clock has answered clock_gettime(). */
uint64_t rivals_clock_asked(void);

#endif
