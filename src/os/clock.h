/* clock.h - the only room that reads a clock. */
#ifndef DUE__CLOCK_H
#define DUE__CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "due/due.h"
#include "os/atomic.h"
#include "os/counter.h"

_Static_assert(sizeof(time_t) >= 8, "times of 64 bits: -D_TIME_BITS=64 -D_FILE_OFFSET_BITS=64");

struct due__bell;

/* A queue's clock. */
struct due__clock {
    clockid_t id;      /* I  of a kernel clock */
    due_clock *manual; /* I  or this one */
    bool steps;        /* I  can go back: realtime */
};

/* DUE_EINVAL: no such kind.  DUE_ENOTSUP: the kernel does not have it. */
int due__clock_init(struct due__clock *c, enum due_clock_kind kind, due_clock *manual);
int64_t due__kernel_now(clockid_t id);

static inline int64_t due__clock_now(const struct due__clock *c)
{
    return c->manual != NULL ? due_clock_now(c->manual) : due__kernel_now(c->id);
}

/* The time, where the counter is not good; a look soon after another makes it so. */
int64_t due__clock_anchor(const struct due__clock *c, struct due__counter *counter);

/* The time, or up to DUE__COUNTER_LAG_NS less, by a counter that is trusted. */
static inline int64_t due__clock_about(const struct due__clock *c, struct due__counter *counter)
{
    int64_t ns;

    return due__counter_ns(counter, due__counter_read(), &ns) ? ns : due__clock_anchor(c, counter);
}

/* Has it come to @at_ns?  Cheaper than reading the clock while that is more than a second ahead. */
bool due__clock_passed(const struct due__clock *c, int64_t at_ns);
/* A time that has not been passed yet, at most a second ahead: as cheap. */
int64_t due__clock_latest(const struct due__clock *c);

int64_t due__monotonic_now(void);

static inline int64_t due__boottime_now(void)
{
    return due__kernel_now(CLOCK_BOOTTIME);
}

int64_t due__thread_cpu_now(void); /* this thread's processor time */

/* Who is called when a manual clock was turned; at the same time by each thread that turns it. */
struct due__listener {
    struct due__listener *next; /* M  of clock.c */
    void (*turned)(void *arg);  /* I */
    void *arg;                  /* I */
    struct due__bell *left;     /* M  who wants to leave waits here; NULL: nobody */
    uint32_t calls;             /* M  that have not returned */
    uint32_t hears;             /* A  K2 of clock.c: somebody wants it to be called */
};

/* Who waits for a time says so before he looks at the clock: if the time comes after that look, the
 * listener is called. */
static inline void due__listener_hear(struct due__listener *l)
{
    due__store_seq(&l->hears, 1); /* K2 */
}

void due__clock_join(due_clock *clock, struct due__listener *l);
/* Nobody is in turned() any more, nor will be.  Waits on the caller's @bell for those who are. */
void due__clock_leave(due_clock *clock, struct due__listener *l, struct due__bell *bell);
/* In a child after fork: without the lock, and nobody is waited for. */
void due__clock_forget(due_clock *clock, struct due__listener *l);

/* Never less than 0 nor more than DUE_FOREVER. */
static inline int64_t due__time_add(int64_t a, int64_t b)
{
    int64_t sum;

    if (__builtin_add_overflow(a, b, &sum))
        return b > 0 ? DUE_FOREVER : 0;
    return sum < 0 ? 0 : sum;
}

struct timespec due__timespec(int64_t ns);

/* Set a timerfd to an absolute time; DUE_FOREVER stops it. */
void due__timer_set(int fd, int64_t at_ns);

#endif
