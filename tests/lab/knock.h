/* knock.h - what a call does before it has a lock, and after it has let go of it.
 *
 * The test holds the lock until the call sleeps for it: what is to be done under it must not have
 * been begun by then.  So the call gets the lock as one that others may sleep for, and wakes them
 * when it lets go of it.  The kernel is called for that through syscall(), which stands here: all
 * that was to be done under the lock must have been done by then.  No time passes for any of it,
 * and nothing depends on who is quicker.
 */
#ifndef KNOCK_H
#define KNOCK_H

#include <stdbool.h>

#include "os/bell.h"
#include "os/lock.h"

/* Can anything be said in this build? */
#ifdef DUE_BELL_COND
enum { KNOCKS = 0 };
#else
enum { KNOCKS = 1 };
#endif

/* How far it is. */
enum knock_far { KNOCK_NOTHING, KNOCK_PART, KNOCK_ALL };

enum knock {
    KNOCK_UNDER, /* it is done under the lock */
    KNOCK_EARLY, /* at least in part before it */
    KNOCK_LATE,  /* at least in part after it */
    KNOCK_NEVER, /* the call ended, and did not want the lock so often */
    KNOCK_BLIND  /* nothing can be said in this build: its locks are the C library's */
};

/* @call(@arg) in a thread of its own, which takes the lock for the @nth time, from 1 on: is it then
 * that what @far(@arg) looks for is done?  The lock must not be held, and nobody else may want it
 * meanwhile. */
enum knock knock_nth(struct due__lock *lock, unsigned nth, void (*call)(void *),
                     enum knock_far (*far)(void *), void *arg);

static inline enum knock knock(struct due__lock *lock, void (*call)(void *),
                               enum knock_far (*far)(void *), void *arg)
{
    return knock_nth(lock, 1, call, far, arg);
}

/* Does somebody sleep for the lock, which is held? */
bool knock_sleeps(const struct due__lock *lock);

/* From now on somebody seems to sleep for the bell. */
void knock_asleep(struct due__bell *bell);

/* @call(@arg) in this thread, which rings a bell that somebody sleeps for, or seems to: is it done
 * by then?  KNOCK_EARLY: he would have been woken before it; KNOCK_NEVER: nobody was rung. */
enum knock knock_bell(struct due__bell *bell, void (*call)(void *), enum knock_far (*far)(void *),
                      void *arg);

#define KNOCK_IS(what, how)                                                            \
    do {                                                                               \
        enum knock is = (what);                                                        \
        cr_expect(is == (how) || is == KNOCK_BLIND, "%s: %s", knock_names[is], #what); \
    } while (0)

extern const char *const knock_names[];

#endif
