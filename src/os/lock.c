/* lock.c - the lock of lock.h: its rare halves, and the C library's mutex instead.
 *
 * Edges      L1  release writes the word -> try and acquire read it: what one holder wrote, the
 *                next one sees.
 */
#include "os/lock.h"

#include "due/due.h"
#include "os/atomic.h"
#include "os/futex.h"

#ifdef DUE_BELL_COND

void due__lock_init(struct due__lock *l)
{
    pthread_mutex_init(&l->mutex, NULL);
}

void due__lock_destroy(struct due__lock *l)
{
    pthread_mutex_destroy(&l->mutex);
}

bool due__lock_try(struct due__lock *l)
{
    return pthread_mutex_trylock(&l->mutex) == 0;
}

void due__lock_acquire(struct due__lock *l)
{
    pthread_mutex_lock(&l->mutex);
}

void due__lock_release(struct due__lock *l)
{
    uint32_t fence = 0;

    pthread_mutex_unlock(&l->mutex);
    due__xchg_seq(&fence, 1); /* E1: a full fence between the release and the look */
}

void due__lock_wake(struct due__lock *l)
{
    (void)l; /* the C library's mutex has woken him */
}

bool due__lock_held(struct due__lock *l)
{
    if (!due__lock_try(l))
        return true;
    pthread_mutex_unlock(&l->mutex);
    return false;
}

#else

#define SPINS 60 /* about a microsecond: as long as a usual tenure */

void due__lock_init(struct due__lock *l)
{
    l->word = 0;
}

void due__lock_destroy(struct due__lock *l)
{
    (void)l;
}

void due__lock_wait(struct due__lock *l)
{
#ifndef DUE__EXPLORE
    for (int i = 0; i < SPINS; i++) {
        due__relax();
        if (due__lock_try(l))
            return;
    }
#endif
    while (due__xchg_seq(&l->word, 2) != 0) /* L1 */
        due__futex_wait(&l->word, 2, DUE_FOREVER, false);
    due__tsan_acquire(l);
}

void due__lock_wake(struct due__lock *l)
{
    due__futex_wake(&l->word);
}

bool due__lock_held(struct due__lock *l)
{
    return due__load_seq(&l->word) != 0; /* no edge: a guess */
}

#endif
