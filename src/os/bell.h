/* bell.h - where a proxy or a caller waits: a condition variable with a deadline.
 *
 * A bell is a condition variable for one waiter, with a memory: a ring that comes before the wait
 * is not lost.  Spurious returns are allowed; whoever waits looks at the queue again.  Bells live
 * as long as their queue, so a late ring touches nothing that is gone.
 *
 * An alarm is a bell that also knows a time on a clock futexes cannot wait on (realtime,
 * boottime): a timerfd.  The one who owns the queue's timer waits on it.
 */
#ifndef DUE__BELL_H
#define DUE__BELL_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#ifdef DUE_BELL_COND
#include <pthread.h>
#endif

struct due__bell {
#ifdef DUE_BELL_COND
    pthread_mutex_t mutex; /* A  its own guard */
    pthread_cond_t cond;   /* A  its own guard; one waiter ever */
#endif
    uint32_t word; /* A  futex: 0 quiet, 1 rung, 2 somebody sleeps; condition variable: its mutex */
    int fd;        /* I  -1, or the timerfd of an alarm */
};

int due__bell_init(struct due__bell *b);
int due__alarm_init(struct due__bell *b, clockid_t clock);
/* @forked: in a child, where those who wait are not; only the descriptor is closed. */
void due__bell_destroy(struct due__bell *b, bool forked);

/* Wake whoever waits, or the next one to wait.  True if a sleeping thread was woken. */
bool due__bell_ring(struct due__bell *b);

/* Wait until rung or @until_ns (monotonic).  True: rung, and the ring is used up. */
bool due__bell_wait(struct due__bell *b, int64_t until_ns, bool precise);

/* The alarm's wait: until rung, @at_ns on the alarm's clock, or @until_ns on the monotonic one. */
bool due__alarm_wait(struct due__bell *b, int64_t at_ns, int64_t until_ns);

/* Has it rung?  Then the ring is used up. */
bool due__bell_take(struct due__bell *b);

#endif
