/* clock.c - clocks of the kernel, and one that is turned by hand.
 *
 * Turning calls each listener of a manual clock with the lock released, so what a listener calls
 * may turn other clocks, and open and free queues of this one.  A call counts itself in its entry
 * of the list, and the entry stays until the calls in it have returned.  A listener that nobody has
 * asked to hear of turns is passed over.
 *
 * Guards     I  set once      M  the manual clock's lock      A  atomic, see Edges
 * Lock order It is held for a look at the list only, and no other lock is taken under it.
 *
 * Edges      K1  turning stores now -> due_clock_now loads it
 *            K2  who waits for a time says that his listener hears, then looks at the clock;
 *                turning stores now, then looks who hears.  All sequentially consistent.  Either
 *                his look shows the new time, or the listener is called.
 */
#define _GNU_SOURCE
#include "os/clock.h"

#include <stdlib.h>
#include <sys/timerfd.h>

#include "os/atomic.h"
#include "os/bell.h"
#include "os/lock.h"

#define NS_PER_S INT64_C(1000000000)

struct due_clock {
    _Alignas(8) int64_t now_ns;      /* A  K1; written under M */
    struct due__lock lock;           /* M */
    struct due__listener *listeners; /* M */
    uint32_t turns;                  /* M  calls that turn it, and have released the lock */
};

struct timespec due__timespec(int64_t ns)
{
    return (struct timespec){ .tv_sec = ns / NS_PER_S, .tv_nsec = (long)(ns % NS_PER_S) };
}

int64_t due__kernel_now(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

int64_t due__monotonic_now(void)
{
    return due__kernel_now(CLOCK_MONOTONIC);
}

/* Whoever looks seldom would pay for anchors that nobody uses. */
#define SELDOM_NS INT64_C(50000)

int64_t due__clock_anchor(const struct due__clock *c, struct due__counter *counter)
{
    bool in_use = counter->agreed;
    uint64_t before = in_use ? due__counter_read() : 0;
    int64_t now = due__clock_now(c);
    if (now - counter->at_ns > SELDOM_NS || (!in_use && due__counter_measuring(counter, now))) {
        counter->at_ns = now;
        counter->width = 0;
        return now;
    }
    if (!in_use) { /* it is time for the counter too */
        before = due__counter_read_after();
        now = due__clock_now(c);
    }
    due__counter_anchor(counter, before, now, due__counter_read_after());
    return now;
}

/* The kernel notes the time at each of its ticks, a few milliseconds apart; to read the note costs
 * a fifth of reading the clock.  It lies behind, by far less than a second. */
static inline bool noted_now(const struct due__clock *c, int64_t *noted_ns)
{
    if (c->manual != NULL || c->id == CLOCK_BOOTTIME)
        return false;
    *noted_ns =
        due__kernel_now(c->id == CLOCK_REALTIME ? CLOCK_REALTIME_COARSE : CLOCK_MONOTONIC_COARSE);
    return true;
}

int64_t due__clock_latest(const struct due__clock *c)
{
    int64_t noted;

    return noted_now(c, &noted) ? due__time_add(noted, NS_PER_S) : due__clock_now(c);
}

bool due__clock_passed(const struct due__clock *c, int64_t at_ns)
{
    int64_t noted;

    if (noted_now(c, &noted) && due__time_add(noted, NS_PER_S) < at_ns)
        return false;
    return due__clock_now(c) >= at_ns;
}

int64_t due__thread_cpu_now(void)
{
    return due__kernel_now(CLOCK_THREAD_CPUTIME_ID);
}

int due__clock_init(struct due__clock *c, enum due_clock_kind kind, due_clock *manual)
{
    struct timespec t;

    *c = (struct due__clock){ .id = CLOCK_MONOTONIC, .manual = manual };
    switch (kind) {
    case DUE_CLOCK_MONOTONIC:
        break;
    case DUE_CLOCK_BOOTTIME:
        c->id = CLOCK_BOOTTIME;
        break;
    case DUE_CLOCK_REALTIME:
        c->id = CLOCK_REALTIME;
        c->steps = true;
        break;
    default:
        return DUE_EINVAL;
    }
    if (manual != NULL && kind != DUE_CLOCK_MONOTONIC)
        return DUE_EINVAL;
    return clock_gettime(c->id, &t) == 0 ? 0 : DUE_ENOTSUP;
}

void due__timer_set(int fd, int64_t at_ns)
{
    struct itimerspec at = { 0 };

    if (at_ns != DUE_FOREVER)
        at.it_value = due__timespec(at_ns > 0 ? at_ns : 1);
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL);
}

due_clock *due_clock_manual(int64_t start_ns)
{
    if (start_ns < 0)
        return NULL;
    due_clock *clock = calloc(1, sizeof *clock);
    if (clock == NULL)
        return NULL;
    due__lock_init(&clock->lock);
    clock->now_ns = start_ns < DUE_FOREVER ? start_ns : DUE_FOREVER - 1;
    return clock;
}

int64_t due_clock_now(const due_clock *clock)
{
    return due__load_seq(&clock->now_ns); /* K1, K2 */
}

/* With the lock, which is released meanwhile. */
static __attribute__((noinline)) void tell(due_clock *clock, struct due__listener *l)
{
    clock->turns++;
    l->calls++;
    due__lock_release(&clock->lock);
    l->turned(l->arg);
    due__lock_acquire(&clock->lock);
    if (--l->calls == 0 && l->left != NULL)
        due__bell_ring(l->left); /* who leaves goes on with the lock: after us */
    clock->turns--;
}

/* With the lock.  Who begins to listen while it is released reads the new time. */
static inline void turn(due_clock *clock, int64_t to_ns)
{
    due__store_seq(&clock->now_ns, to_ns < DUE_FOREVER ? to_ns : DUE_FOREVER - 1); /* K1, K2 */
    for (struct due__listener *l = clock->listeners; l != NULL; l = l->next) {
        if (l->left == NULL && due__load_seq(&l->hears)) /* K2 */
            tell(clock, l);
    }
}

int due_clock_advance(due_clock *clock, int64_t by_ns)
{
    if (by_ns < 0)
        return DUE_EINVAL;
    due__lock_acquire(&clock->lock);
    turn(clock, due__time_add(clock->now_ns, by_ns));
    due__lock_release(&clock->lock);
    return 0;
}

int due_clock_turn_to(due_clock *clock, int64_t to_ns)
{
    int rc = DUE_EINVAL;

    due__lock_acquire(&clock->lock);
    if (to_ns >= clock->now_ns) {
        turn(clock, to_ns);
        rc = 0;
    }
    due__lock_release(&clock->lock);
    return rc;
}

int due_clock_free(due_clock *clock)
{
    if (clock == NULL)
        return 0;
    if (!due__lock_try(&clock->lock)) /* somebody turns it, here or before a fork */
        return DUE_EBUSY;
    int busy = clock->listeners != NULL || clock->turns > 0;
    due__lock_release(&clock->lock);
    if (busy)
        return DUE_EBUSY;
    due__lock_destroy(&clock->lock);
    free(clock);
    return 0;
}

void due__clock_join(due_clock *clock, struct due__listener *l)
{
    due__lock_acquire(&clock->lock);
    l->left = NULL;
    l->next = clock->listeners;
    clock->listeners = l;
    due__lock_release(&clock->lock);
}

void due__clock_forget(due_clock *clock, struct due__listener *l)
{
    struct due__listener **at = &clock->listeners;

    while (*at != NULL && *at != l)
        at = &(*at)->next;
    if (*at == l)
        *at = l->next;
}

void due__clock_leave(due_clock *clock, struct due__listener *l, struct due__bell *bell)
{
    due__lock_acquire(&clock->lock);
    l->left = bell;
    while (l->calls > 0) {
        due__lock_release(&clock->lock);
        due__bell_wait(bell, DUE_FOREVER, false);
        due__lock_acquire(&clock->lock);
    }
    due__clock_forget(clock, l);
    due__lock_release(&clock->lock);
}
