/* kernel_time.h - the calls of the kernel whose times are those of the C library, for tests that
 * have a clock_gettime() of their own.  Of 32-bit processors the older calls have shorter times. */
#ifndef LAB_KERNEL_TIME_H
#define LAB_KERNEL_TIME_H

#include <sys/syscall.h>

#ifdef SYS_clock_gettime64
#define KERNEL_CLOCK_GETTIME   SYS_clock_gettime64
#define KERNEL_TIMERFD_SETTIME SYS_timerfd_settime64
#else
#define KERNEL_CLOCK_GETTIME   SYS_clock_gettime
#define KERNEL_TIMERFD_SETTIME SYS_timerfd_settime
#endif

#endif
