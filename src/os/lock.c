/* lock.c - the lock of lock.h: its rare halves, and the C library's mutex instead.
 *
 * Edges      L1  release writes the word, or who is inside -> try and acquire read it: what one
 *                holder wrote, the next one sees.
 *            L2  a thread that has the bias says that it is inside, then looks whether it still has
 *                the bias; when it leaves it says so, then looks again.  Whoever wants the lock has
 *                the word, takes the bias away, has all threads pass a fence (futex.h), and then
 *                looks who is inside.  So either the owner sees that the bias is gone, or he is
 *                seen inside, and waited for.  If he is seen there he sees on his way out that the
 *                bias is gone, and passes a fence himself; but not where nobody may have knocked
 *                (due__lock_release_last).
 *
 * Of the timeline's lock: a try that finds the owner inside gives the word back, and looks once
 * more.  If the owner is still inside then, his look at the inbox is still to come, and he has
 * passed a fence by then; so what anybody had put in who met the word meanwhile is seen by him (E1
 * of tenure.c).  If he has gone the try begins again.
 *
 * Who waits for the owner looks again and again, for he is inside for less than a microsecond, if
 * he has the processor.  He wakes nobody, so that a shard may be freed by who has seen him leave.
 *
 * The owner may have looked at the bias long ago when he says that he is inside: it may be gone by
 * then, and another one may hold the word.  He sees that at once, and takes it back.  So nobody but
 * he may write there, and no other thread ever gets the bias of a lock.  He gets it after a number
 * of tenures in a row, by himself and with the word; that number is doubled each time it is taken
 * away.
 *
 * Guards     L  the lock's own      A  atomic, see Edges
 *
 * Always     N1  who holds the word, and has found nobody to have the bias, holds the lock alone
 */
#include "os/lock.h"

#include "due/due.h"
#include "os/atomic.h"
#include "os/clock.h"
#include "os/futex.h"

#ifdef DUE_BELL_COND

void due__lock_init(struct due__lock *l)
{
    pthread_mutex_init(&l->mutex, NULL);
}

void due__lock_init_biased(struct due__lock *l)
{
    due__lock_init(l);
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

bool due__lock_try_rest(struct due__lock *l, enum due__tried how)
{
    (void)l;
    return how == DUE__TRIED_GOT;
}

void due__lock_release_rest(struct due__lock *l, enum due__released how)
{
    (void)l;
    (void)how;
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

/* What a revocation costs is some microseconds, a few hundred tenures' worth: so it is little, even
 * if each is followed by another as soon as it can be. */
#ifndef DUE__BIAS_AFTER_MAX
#define DUE__BIAS_AFTER_MAX 4096u
#endif
#ifndef DUE__BIAS_AFTER /* the explorer and some builds for tests set them lower */
#define DUE__BIAS_AFTER 64u
#endif

#ifndef DUE__EXPLORE
_Thread_local uint32_t due__thread_self = DUE__NO_SELF;

/* False: there are no numbers left. */
static bool number_me(void)
{
    static uint32_t last;                       /* A  relaxed */
    uint32_t number = due__load_relaxed(&last); /* no edge: a counter */

    while (number < DUE__NO_SELF - 1) {
        if (due__cas_acq_rel(&last, &number, number + 1)) { /* no edge: a counter */
            due__thread_self = number + 1;
            return true;
        }
    }
    return false;
}
#else
static bool number_me(void)
{
    return false; /* in a scenario's setup */
}
#endif

void due__lock_init(struct due__lock *l)
{
    *l = (struct due__lock){ .bias = DUE__NO_THREAD };
}

void due__lock_init_biased(struct due__lock *l)
{
    due__lock_init(l);
    l->after = due__threads_fence_ready() ? DUE__BIAS_AFTER : 0;
}

void due__lock_destroy(struct due__lock *l)
{
    (void)l;
}

/* ---- Bias: L2 ---- */

/* With the word, which is about to be released, after so many tenures in a row. */
static void grant(struct due__lock *l)
{
    l->row = 0;
    if (due__self() == DUE__NO_SELF && !number_me())
        return;
    uint32_t me = due__self();
    l->last = me;
    if (l->after == 0 || (l->owner != DUE__NO_THREAD && l->owner != me))
        return;
    l->owner = me;
    due__store_release(&l->bias, me); /* L2 */
}

/* With the word.  False: who had the bias is inside. */
static bool take_bias(struct due__lock *l)
{
    uint32_t bias = due__load_seq(&l->bias); /* L2 */

    if (bias == DUE__NO_THREAD)
        return true;
    if (bias != DUE__REVOKED) {
        due__store_seq(&l->bias, DUE__REVOKED); /* L2 */
        due__threads_fence();                   /* L2 */
    }
    if (due__load_seq(&l->inside) != DUE__NO_THREAD) /* L2, L1 */
        return false;
    due__store_seq(&l->bias, DUE__NO_THREAD); /* L2 */
    if (l->after < DUE__BIAS_AFTER_MAX)
        l->after *= 2;
    return true;
}

/* Who looks for the word, and has it: try on. */
static bool try_biased(struct due__lock *l)
{
    uint32_t free;

    do {
        if (take_bias(l))
            return true;
        if (due__xchg_seq(&l->word, 0) == 2) /* E1 of tenure.c */
            due__futex_wake(&l->word);
        if (due__load_seq(&l->inside) != DUE__NO_THREAD) /* L2, E1 of tenure.c: he will look */
            return false;
        free = 0;
    } while (due__load_seq(&l->word) == 0 && due__cas_seq(&l->word, &free, 1)); /* L1 */
    return false;
}

/* Who said that he is inside, and has the bias no more: as anybody else. */
static bool try_lost(struct due__lock *l)
{
    uint32_t free = 0;

    due__store_seq(&l->inside, DUE__NO_THREAD);                            /* L2 */
    if (due__load_seq(&l->word) != 0 || !due__cas_seq(&l->word, &free, 1)) /* L1 */
        return false;
    return try_biased(l);
}

/* ---- The rest of short ways ---- */

static bool try_rest(struct due__lock *l, enum due__tried how)
{
    switch (how) {
    case DUE__TRIED_LOST:
        return try_lost(l);
    case DUE__TRIED_BIASED:
        return try_biased(l);
    default:
        return how == DUE__TRIED_GOT;
    }
}

bool due__lock_try_rest(struct due__lock *l, enum due__tried how)
{
    bool got = try_rest(l, how);

    if (got)
        due__watch_got(l);
    return got;
}

void due__lock_release_rest(struct due__lock *l, enum due__released how)
{
    uint32_t fence = 0;

    if (how == DUE__RELEASED_LOST)
        due__xchg_seq(&fence, 1); /* L2, E1 of tenure.c: before he looks */
    if (how == DUE__TO_GRANT) {
        grant(l);
        if (due__xchg_seq(&l->word, 0) == 2) /* L1, and E1 of tenure.c: a full fence */
            how = DUE__RELEASED_WAITER;
    }
    if (how == DUE__RELEASED_WAITER)
        due__futex_wake(&l->word);
}

/* ---- Waiting ---- */

#define AGAIN_NS DUE_US(50)

/* The @turn-th time: the owner of the bias may go on. */
static void wait_for_owner(unsigned turn)
{
#ifdef DUE__EXPLORE
    (void)turn;
    explore_yield();
#else
    const uint32_t nobody = 0;

    if (turn < SPINS)
        due__relax();
    else
        due__futex_wait(&nobody, 0, due__monotonic_now() + AGAIN_NS, false);
#endif
}

void due__lock_wait(struct due__lock *l, enum due__tried how)
{
    if (how != DUE__TRIED_BUSY && due__lock_try_rest(l, how))
        return;
#ifndef DUE__EXPLORE
    for (int i = 0; i < SPINS; i++) {
        due__relax();
        if (due__lock_try_untold(l))
            return;
    }
#endif
    while (due__xchg_seq(&l->word, 2) != 0) /* L1 */
        due__futex_wait(&l->word, 2, DUE_FOREVER, false);
    for (unsigned turn = 0; !take_bias(l); turn++)
        wait_for_owner(turn);
    due__watch_got(l);
}

#if defined(DUE_WATCH_LOCKS) && !defined(DUE__EXPLORE)
void (*due__lock_watcher)(struct due__lock *l, bool got);

void due__watch_got(struct due__lock *l)
{
    if (due__lock_watcher != NULL)
        due__lock_watcher(l, true);
}

void due__watch_leaving(struct due__lock *l)
{
    if (due__lock_watcher != NULL)
        due__lock_watcher(l, false);
}
#endif

bool due__lock_held(struct due__lock *l)
{
    return due__load_seq(&l->word) != 0 ||              /* no edge: a guess */
           due__load_seq(&l->inside) != DUE__NO_THREAD; /* no edge: likewise */
}

#endif
