/* lock.h - a small mutual exclusion lock that can be tried.
 *
 * Where there are futexes it is one word; built with DUE_BELL_COND it is the C library's mutex.
 * Release is a read-modify-write and therefore a full fence: whoever holds the timeline lock looks
 * at the inbox after it, and that look must not pass the release (core.c, edge E1).
 */
#ifndef DUE__LOCK_H
#define DUE__LOCK_H

#include <stdbool.h>
#include <stdint.h>

#ifdef DUE_BELL_COND
#include <pthread.h>

struct due__lock {
    pthread_mutex_t mutex; /* A  its own guard */
    uint32_t fence;        /* A  edge E1 of core.c: touched after each release */
};
#else
struct due__lock {
    uint32_t word; /* A  0 free, 1 held, 2 held and somebody may sleep */
};
#endif

void due__lock_init(struct due__lock *l);
void due__lock_destroy(struct due__lock *l);
bool due__lock_try(struct due__lock *l);
void due__lock_acquire(struct due__lock *l);
void due__lock_release(struct due__lock *l);

/* Is it held by anybody, at this moment?  For tests. */
bool due__lock_held(struct due__lock *l);

#endif
