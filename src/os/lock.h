/* lock.h - a small mutual exclusion lock that can be tried.
 *
 * Where there are futexes it is one word; built with DUE_BELL_COND it is the C library's mutex.
 * Release is a read-modify-write and therefore a full fence: whoever holds the timeline lock looks
 * at the inbox after it, and that look must not pass the release (tenure.c, edge E1).  It is also
 * the last touch of the lock: who has it next may free it (a wake-up after it names only the
 * address).
 *
 * "untold" is a lock that guards nothing but a few numbers, and is entered so often that even to
 * ask whether ThreadSanitizer wants to hear of it would cost something; and any lock on a way that
 * is not gone where it does.
 */
#ifndef DUE__LOCK_H
#define DUE__LOCK_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/atomic.h"
#include "os/tsan.h"

#ifdef DUE_BELL_COND
#include <pthread.h>

struct due__lock {
    pthread_mutex_t mutex; /* A  its own guard */
};

bool due__lock_try(struct due__lock *l);
void due__lock_acquire(struct due__lock *l);
void due__lock_release(struct due__lock *l);
#define due__lock_try_untold     due__lock_try
#define due__lock_acquire_untold due__lock_acquire
#define due__lock_release_untold due__lock_release

static inline bool due__lock_release_waiter(struct due__lock *l)
{
    due__lock_release(l);
    return false;
}
void due__lock_wake(struct due__lock *l);

#else

struct due__lock {
    uint32_t word; /* A  0 free, 1 held, 2 held and somebody may sleep */
};

/* The rare halves of the calls below. */
void due__lock_wait(struct due__lock *l);
void due__lock_wake(struct due__lock *l);

static inline bool due__lock_try_untold(struct due__lock *l)
{
    uint32_t free = 0;

    if (due__load_seq(&l->word) != 0) /* E1: saves a failing exchange */
        return false;
    return due__cas_seq(&l->word, &free, 1); /* L1, and E1 of tenure.c */
}

static inline bool due__lock_try(struct due__lock *l)
{
    bool got = due__lock_try_untold(l);

    if (got)
        due__tsan_acquire(l);
    return got;
}

static inline void due__lock_acquire(struct due__lock *l)
{
    if (!due__lock_try(l))
        due__lock_wait(l);
}

static inline void due__lock_acquire_untold(struct due__lock *l)
{
    if (!due__lock_try_untold(l))
        due__lock_wait(l);
}

/* An untold one, for who wakes himself whoever may sleep: true, if somebody may. */
static inline bool due__lock_release_waiter(struct due__lock *l)
{
    uint32_t was = due__xchg_seq(&l->word, 0); /* L1, and E1 of tenure.c: a full fence */

    assert(was != 0); /* else somebody did something that he had no right to */
    return was == 2;
}

static inline void due__lock_release_untold(struct due__lock *l)
{
    if (due__lock_release_waiter(l))
        due__lock_wake(l);
}

static inline void due__lock_release(struct due__lock *l)
{
    due__tsan_release(l);
    due__lock_release_untold(l);
}

#endif

void due__lock_init(struct due__lock *l);
void due__lock_destroy(struct due__lock *l);

/* Is it held by anybody, at this moment?  For tests. */
bool due__lock_held(struct due__lock *l);

#endif
