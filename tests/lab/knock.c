/* knock.c - what a call does before it has a lock, and after it has let go of it. */
#define _GNU_SOURCE
#include "lab/knock.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lab/crew.h"
#include "lab/kernel_call.h"

const char *const knock_names[] = { "under it", "before it", "after it", "never", "blind" };

#ifdef DUE_BELL_COND

bool knock_sleeps(const struct due__lock *lock)
{
    (void)lock;
    return true;
}

void knock_asleep(struct due__bell *bell)
{
    (void)bell;
}

enum knock knock_nth(struct due__lock *lock, unsigned nth, void (*call)(void *),
                     enum knock_far (*far)(void *), void *arg)
{
    (void)lock;
    (void)nth;
    (void)far;
    call(arg);
    return KNOCK_BLIND;
}

enum knock knock_bell(struct due__bell *bell, void (*call)(void *), enum knock_far (*far)(void *),
                      void *arg)
{
    (void)bell;
    (void)far;
    call(arg);
    return KNOCK_BLIND;
}

#else

#ifdef SYS_futex_time64
#define FUTEX SYS_futex_time64
#else
#define FUTEX SYS_futex
#endif

enum turn { CALLS, LETS_GO, GOES_ON, ENDED };

struct door {
    const uint32_t *word; /* of the lock, or of the bell */
    void (*call)(void *);
    enum knock_far (*far)(void *);
    void *arg;
    atomic_uint before; /* sections that are to be passed by */
    atomic_int turn;
    bool woken;
    enum knock_far after; /* how far it was then */
};

static struct door door;
static _Thread_local bool is_caller;

/* In the call's thread, which wakes who sleeps. */
static void wakes(void)
{
    if (atomic_load(&door.before) == 0) {
        door.after = door.far(door.arg);
        door.woken = true;
        is_caller = false;
        return;
    }
    atomic_store(&door.turn, LETS_GO);
    while (atomic_load(&door.turn) != GOES_ON)
        sched_yield();
    atomic_store(&door.turn, CALLS);
}

/* Instead of the C library's, which is asked.  It looks where no arguments may be. */
__attribute__((no_sanitize_address)) long syscall(long number, ...)
{
    long argument[6];
    va_list list;

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        argument[i] = va_arg(list, long);
    va_end(list);
    if (is_caller && number == FUTEX && (argument[1] & FUTEX_CMD_MASK) == FUTEX_WAKE &&
        argument[0] == (long)door.word)
        wakes();
    return kernel_call(number, argument);
}

static void door_is(const uint32_t *word, unsigned before, void (*call)(void *),
                    enum knock_far (*far)(void *), void *arg)
{
    door.word = word;
    door.call = call;
    door.far = far;
    door.arg = arg;
    door.woken = false;
    door.after = KNOCK_NOTHING;
    atomic_store(&door.before, before);
    atomic_store(&door.turn, CALLS);
}

static int caller(void *arg)
{
    (void)arg;
    is_caller = true;
    door.call(door.arg);
    is_caller = false;
    atomic_store(&door.turn, ENDED);
    return 0;
}

/* True: the call sleeps for the lock, or is about to.  False: it has ended. */
static bool knocks(void)
{
    while (due__load_seq(door.word) != 2) {
        if (atomic_load(&door.turn) == ENDED)
            return false;
        sched_yield();
    }
    return true;
}

enum knock knock_nth(struct due__lock *lock, unsigned nth, void (*call)(void *),
                     enum knock_far (*far)(void *), void *arg)
{
    struct crew_thread thread;
    enum knock_far early = KNOCK_NOTHING;
    bool came;

    door_is(&lock->word, nth - 1, call, far, arg);
    due__lock_acquire(lock);
    crew_go(&thread, caller, NULL);
    while ((came = knocks()) && atomic_load(&door.before) > 0) {
        due__lock_release(lock);
        while (atomic_load(&door.turn) == CALLS)
            sched_yield();
        due__lock_acquire(lock);
        atomic_fetch_sub(&door.before, 1);
        if (atomic_load(&door.turn) == LETS_GO)
            atomic_store(&door.turn, GOES_ON);
    }
    if (came)
        early = far(arg);
    due__lock_release(lock);
    crew_join(&thread);
    if (!came)
        return KNOCK_NEVER;
    return early != KNOCK_NOTHING    ? KNOCK_EARLY
           : door.after == KNOCK_ALL ? KNOCK_UNDER
                                     : KNOCK_LATE;
}

bool knock_sleeps(const struct due__lock *lock)
{
    return due__load_seq(&lock->word) == 2;
}

void knock_asleep(struct due__bell *bell)
{
    due__store_seq(&bell->word, 2);
}

enum knock knock_bell(struct due__bell *bell, void (*call)(void *), enum knock_far (*far)(void *),
                      void *arg)
{
    door_is(&bell->word, 0, call, far, arg);
    is_caller = true;
    call(arg);
    is_caller = false;
    return !door.woken ? KNOCK_NEVER : door.after == KNOCK_ALL ? KNOCK_UNDER : KNOCK_EARLY;
}

#endif
