/* explore_system.h - comes before every file of the library in a build for the explorer: what the
 * library asks of the system goes to system.c.  Only futex.c is left out and replaced as a whole.
 */
#ifndef DUE__EXPLORE_SYSTEM_H
#define DUE__EXPLORE_SYSTEM_H

#define calloc               explore_calloc
#define free                 explore_free
#define mmap                 explore_mmap
#define munmap               explore_munmap
#define madvise              explore_madvise
#define clock_gettime        explore_clock_gettime
#define timerfd_create       explore_timerfd_create
#define timerfd_settime      explore_timerfd_settime
#define ppoll                explore_ppoll
#define close                explore_close
#define getrandom            explore_getrandom
#define pthread_create       explore_pthread_create
#define pthread_join         explore_pthread_join
#define pthread_setname_np   explore_pthread_setname
#define pthread_mutex_lock   explore_pthread_mutex_lock
#define pthread_mutex_unlock explore_pthread_mutex_unlock

/* How many jobs one tenure sorts in for others is for scenarios to say (explore.h).  A place that
 * is given back is used again by the next enqueue, as it may be. */
extern unsigned explore_budget;
/* After so many tenures in a row a lock is biased; 0: never.  For scenarios to say. */
extern unsigned explore_bias;
#define DUE__BIAS_AFTER  explore_bias
#define DUE__FETCH       1u
#define DUE__FOREIGN_MAX (explore_budget > 0 ? explore_budget : 64u)
#define DUE__PROXY_BATCH (explore_budget > 0 ? explore_budget : 256u)

#endif
