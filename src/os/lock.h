/* lock.h - a small mutual exclusion lock that can be tried.
 *
 * Where there are futexes it is one word; built with DUE_BELL_COND it is the C library's mutex.
 * Release is a read-modify-write and therefore a full fence: whoever holds the timeline lock looks
 * at the inbox after it, and that look must not pass the release (tenure.c, edge E1).  It is also
 * the last touch of the lock: who has it next may free it (a wake-up after it names only the
 * address); but for one that may be biased, of which due__lock_release_last() is that.
 *
 * A lock may be biased: whoever was the only one to hold it for a while then enters and leaves it
 * without a locked instruction, and without a fence, until another one comes (lock.c, edge L2).
 * Whoever tries it in vain has met somebody who looks at the inbox all the same, after that.
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

/* A branch, and no number that is asked later. */
#define due__rare(condition) __builtin_expect((condition), 0)

/* What has become of a try. */
enum due__tried {
    DUE__TRIED_BUSY,
    DUE__TRIED_GOT,
    DUE__TRIED_LOST,   /* it is not over: the bias was taken away meanwhile */
    DUE__TRIED_BIASED, /* nor here: another one has, or had, the bias */
};

/* And of a release. */
enum due__released {
    DUE__RELEASED,
    DUE__RELEASED_WAITER, /* somebody may sleep for it */
    DUE__RELEASED_LOST,   /* the bias was taken away meanwhile, and no fence has been passed */
    DUE__TO_GRANT,        /* it is still held: the bias is to be granted first */
};

struct due__lock;

#if defined(DUE_WATCH_LOCKS) && !defined(DUE__EXPLORE)
/* A build for tests: of who has just got the lock, and of who is about to leave it. */
void due__watch_got(struct due__lock *l);
void due__watch_leaving(struct due__lock *l);
#else
static inline void due__watch_got(struct due__lock *l)
{
    (void)l;
}

static inline void due__watch_leaving(struct due__lock *l)
{
    (void)l;
}
#endif

/* The rest of a quick try: was it got?  And of a quick release. */
bool due__lock_try_rest(struct due__lock *l, enum due__tried how);
void due__lock_release_rest(struct due__lock *l, enum due__released how);

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

static inline enum due__tried due__lock_try_quick(struct due__lock *l)
{
    return due__lock_try(l) ? DUE__TRIED_GOT : DUE__TRIED_BUSY;
}

static inline enum due__released due__lock_release_quick(struct due__lock *l)
{
    due__lock_release(l);
    return DUE__RELEASED;
}

static inline bool due__lock_is_biased(const struct due__lock *l)
{
    (void)l;
    return false;
}

#define due__lock_release_last due__lock_release_quick

#else

/* Instead of a thread's number, which is not 0. */
#define DUE__NO_THREAD 0u               /* so that a lock that is all zeros is free */
#define DUE__REVOKED   (UINT32_MAX - 1) /* nobody has the bias; who had it may still be inside */
#define DUE__NO_SELF   (UINT32_MAX - 2) /* of a thread that has no number yet */

/* Most are not biased, and have but the word in use. */
struct due__lock {
    uint32_t word;   /* A  0 free, 1 held, 2 held and somebody may sleep */
    uint32_t bias;   /* A  L2: the thread that needs no word; or DUE__NO_THREAD, DUE__REVOKED */
    uint32_t inside; /* A  L2: that thread, as long as it is inside; or DUE__NO_THREAD */
    uint32_t owner;  /* L  who ever had the bias: nobody else can; or DUE__NO_THREAD */
    uint32_t last;   /* L  who held it last, */
    uint32_t row;    /* L  and so many times in a row */
    uint32_t after;  /* L  so many times in a row are wanted; 0: it is never biased */
};

/* The rare halves of the calls below. */
void due__lock_wait(struct due__lock *l, enum due__tried how);

#ifdef DUE__EXPLORE
uint32_t explore_self(void);
#define due__self() explore_self()
#else
/* The calling thread's number. */
extern _Thread_local uint32_t due__thread_self __attribute__((tls_model("initial-exec")));
#define due__self() due__thread_self
#endif

/* Nothing is moved over it by the compiler; for others due__threads_fence() does the rest. */
#define due__here_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)

static inline __attribute__((always_inline)) enum due__tried due__lock_try_once(struct due__lock *l)
{
    uint32_t me = due__self();
    uint32_t free = 0;

    if (due__load_relaxed(&l->bias) == me) {    /* L2 */
        if (due__load_relaxed(&l->inside) != 0) /* L2: in a signal handler: as if another held it */
            return DUE__TRIED_BUSY;
        due__store_relaxed(&l->inside, me); /* L2 */
        due__here_fence();
        if (due__rare(due__load_acquire(&l->bias) != me)) /* L2 */
            return DUE__TRIED_LOST;
        return DUE__TRIED_GOT;
    }
    if (due__load_relaxed(&l->inside) == me) /* L2: likewise, when the bias has just been lost */
        return DUE__TRIED_BUSY;
    if (due__load_seq(&l->word) != 0 ||    /* E1: saves a failing exchange */
        !due__cas_seq(&l->word, &free, 1)) /* L1, and E1 of tenure.c */
        return DUE__TRIED_BUSY;
    return due__load_seq(&l->bias) == DUE__NO_THREAD ? DUE__TRIED_GOT : DUE__TRIED_BIASED; /* L2 */
}

/* All that a way needs which is kept short: what is neither got nor busy is for
 * due__lock_try_rest(). */
static inline __attribute__((always_inline)) enum due__tried due__lock_try_quick(
    struct due__lock *l)
{
    enum due__tried how = due__lock_try_once(l);

    if (how == DUE__TRIED_GOT)
        due__watch_got(l);
    return how;
}

static inline bool due__lock_try_untold(struct due__lock *l)
{
    enum due__tried how = due__lock_try_quick(l);

    return how == DUE__TRIED_GOT || (how != DUE__TRIED_BUSY && due__lock_try_rest(l, how));
}

static inline bool due__lock_try(struct due__lock *l)
{
    bool got = due__lock_try_untold(l);

    if (got)
        due__tsan_acquire(l);
    return got;
}

static inline void due__lock_acquire_untold(struct due__lock *l)
{
    enum due__tried how = due__lock_try_quick(l);

    if (how != DUE__TRIED_GOT)
        due__lock_wait(l, how);
}

static inline void due__lock_acquire(struct due__lock *l)
{
    due__lock_acquire_untold(l);
    due__tsan_acquire(l);
}

/* With the word. */
static inline __attribute__((always_inline)) enum due__released due__lock_release_word(
    struct due__lock *l, uint32_t me)
{
    if (l->last != me) {
        l->last = me;
        l->row = 0;
    } else if (due__rare(++l->row == l->after)) {
        return DUE__TO_GRANT;
    }
    uint32_t was = due__xchg_seq(&l->word, 0); /* L1, and E1 of tenure.c: a full fence */

    assert(was != 0); /* else somebody did something that he had no right to */
    return was == 2 ? DUE__RELEASED_WAITER : DUE__RELEASED;
}

/* Likewise: unless it is released, it is for due__lock_release_rest(). */
static inline __attribute__((always_inline)) enum due__released due__lock_release_quick(
    struct due__lock *l)
{
    uint32_t me = due__self();

    due__watch_leaving(l);
    if (due__load_relaxed(&l->inside) != me) /* L2 */
        return due__lock_release_word(l, me);
    due__store_release(&l->inside, DUE__NO_THREAD); /* L2, L1 */
    due__here_fence();
    return due__rare(due__load_relaxed(&l->bias) != me) ? DUE__RELEASED_LOST
                                                        : DUE__RELEASED; /* L2 */
}

/* The same where no knock is looked for after it: no fence, and the last touch of the lock. */
static inline __attribute__((always_inline)) enum due__released due__lock_release_last(
    struct due__lock *l)
{
    uint32_t me = due__self();

    due__watch_leaving(l);
    if (due__load_relaxed(&l->inside) != me) /* L2 */
        return due__lock_release_word(l, me);
    due__store_release(&l->inside, DUE__NO_THREAD); /* L2, L1 */
    return DUE__RELEASED;
}

static inline void due__lock_release_untold(struct due__lock *l)
{
    enum due__released how = due__lock_release_quick(l);

    if (how != DUE__RELEASED)
        due__lock_release_rest(l, how);
}

static inline void due__lock_release(struct due__lock *l)
{
    due__tsan_release(l);
    due__lock_release_untold(l);
}

/* Of who holds it: by its bias, and has nobody taken that away yet? */
static inline bool due__lock_is_biased(const struct due__lock *l)
{
    uint32_t me = due__self();

    return due__load_relaxed(&l->inside) == me &&
           due__load_relaxed(&l->bias) == me; /* L2: a guess */
}

#endif

void due__lock_init(struct due__lock *l);
/* One that may be biased. */
void due__lock_init_biased(struct due__lock *l);
void due__lock_destroy(struct due__lock *l);

/* Is it held by anybody, at this moment?  For tests. */
bool due__lock_held(struct due__lock *l);

#endif
