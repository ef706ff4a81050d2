/* bell.c - bells and alarms.
 *
 * Debian 12's C library can lose the wake-up of a condition variable on which several threads wait,
 * so a bell has one waiter, always.  Timeouts run on the monotonic clock.  No wait is a point of
 * thread cancellation.
 *
 * Edges      C1  ring exchanges the word for "rung" -> wait takes "rung" away: what the ringer
 *                wrote before, the waiter sees after.
 *            C2  wait: word "sleeps", then the kernel compares it; ring: word "rung", then wakes.
 *                Either the ringer finds "sleeps" and wakes, or the kernel finds "rung".
 *            C3  alarm: wait sets the timer, then looks at the word; ring sets the word, then the
 *                timer into the past.  Either the look sees the ring, or the timer's last setting
 *                is the ringer's.
 */
#define _GNU_SOURCE
#include "os/bell.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "due/due.h"
#include "os/atomic.h"
#include "os/clock.h"
#include "os/futex.h"

enum { QUIET = 0, RUNG = 1, SLEEPS = 2 };

int due__alarm_init(struct due__bell *b, clockid_t clock)
{
    int rc = due__bell_init(b);

    if (rc != 0)
        return rc;
    b->fd = timerfd_create(clock, TFD_CLOEXEC | TFD_NONBLOCK);
    if (b->fd >= 0)
        return 0;
    int error = errno;
    due__bell_destroy(b, false);
    return error == EINVAL ? DUE_ENOTSUP : DUE_ESYS;
}

static bool alarm_ring(struct due__bell *b)
{
    due__xchg_seq(&b->word, RUNG); /* C1, C3 */
    due__timer_set(b->fd, 1);
    return true;
}

bool due__alarm_wait(struct due__bell *b, int64_t at_ns, int64_t until_ns)
{
    long slack = due__slack_tighten();
    struct pollfd ready = { .fd = b->fd, .events = POLLIN };
    int cancel;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);

    due__timer_set(b->fd, at_ns);
    while (due__load_seq(&b->word) != RUNG) { /* C3 */
        struct timespec left;
        struct timespec *limit = NULL;

        if (until_ns != DUE_FOREVER) {
            int64_t ns = until_ns - due__monotonic_now();

            left = due__timespec(ns > 0 ? ns : 0);
            limit = &left;
        }
        int n = ppoll(&ready, 1, limit, NULL);
        if (n >= 0 || errno != EINTR)
            break;
    }
    pthread_setcancelstate(cancel, NULL);
    due__slack_restore(slack);
    return due__xchg_seq(&b->word, QUIET) == RUNG; /* C1 */
}

#ifdef DUE_BELL_COND

int due__bell_init(struct due__bell *b)
{
    pthread_condattr_t attr;

    b->word = QUIET;
    b->fd = -1;
    if (pthread_mutex_init(&b->mutex, NULL) != 0)
        return DUE_ENOMEM;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    int failed = pthread_cond_init(&b->cond, &attr);
    pthread_condattr_destroy(&attr);
    if (failed) {
        pthread_mutex_destroy(&b->mutex);
        return DUE_ENOMEM;
    }
    return 0;
}

void due__bell_destroy(struct due__bell *b, bool forked)
{
    if (b->fd >= 0)
        close(b->fd);
    if (forked)
        return;
    pthread_cond_destroy(&b->cond);
    pthread_mutex_destroy(&b->mutex);
}

bool due__bell_ring(struct due__bell *b)
{
    if (b->fd >= 0)
        return alarm_ring(b);
    pthread_mutex_lock(&b->mutex);
    uint32_t before = b->word;
    b->word = RUNG;
    pthread_mutex_unlock(&b->mutex);
    if (before == SLEEPS)
        pthread_cond_signal(&b->cond);
    return before == SLEEPS;
}

bool due__bell_wait(struct due__bell *b, int64_t until_ns, bool precise)
{
    long slack = precise && until_ns != DUE_FOREVER ? due__slack_tighten() : -1;
    struct timespec until = due__timespec(until_ns);
    int rc = 0;
    int cancel;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&b->mutex);
    while (b->word != RUNG && rc == 0) {
        b->word = SLEEPS;
        rc = until_ns == DUE_FOREVER ? pthread_cond_wait(&b->cond, &b->mutex)
                                     : pthread_cond_timedwait(&b->cond, &b->mutex, &until);
    }
    bool rung = b->word == RUNG;
    b->word = QUIET;
    pthread_mutex_unlock(&b->mutex);
    pthread_setcancelstate(cancel, NULL);
    due__slack_restore(slack);
    return rung;
}

bool due__bell_take(struct due__bell *b)
{
    pthread_mutex_lock(&b->mutex);
    bool rung = b->word == RUNG;
    if (rung)
        b->word = QUIET;
    pthread_mutex_unlock(&b->mutex);
    return rung;
}

#else

int due__bell_init(struct due__bell *b)
{
    b->word = QUIET;
    b->fd = -1;
    return 0;
}

void due__bell_destroy(struct due__bell *b, bool forked)
{
    (void)forked;
    if (b->fd >= 0)
        close(b->fd);
}

bool due__bell_ring(struct due__bell *b)
{
    if (b->fd >= 0)
        return alarm_ring(b);
    if (due__xchg_seq(&b->word, RUNG) != SLEEPS) /* C1, C2 */
        return false;
    due__futex_wake(&b->word);
    return true;
}

bool due__bell_wait(struct due__bell *b, int64_t until_ns, bool precise)
{
    for (;;) {
        uint32_t found = RUNG;

        if (due__cas_seq(&b->word, &found, QUIET)) /* C1 */
            return true;
        if (until_ns != DUE_FOREVER && due__monotonic_now() >= until_ns) {
            found = SLEEPS;
            due__cas_seq(&b->word, &found, QUIET); /* C2: a ring in between stays for the next */
            return false;
        }
        found = QUIET;
        due__cas_seq(&b->word, &found, SLEEPS); /* C2 */
        if (found != RUNG)
            due__futex_wait(&b->word, SLEEPS, until_ns, precise);
    }
}

bool due__bell_take(struct due__bell *b)
{
    uint32_t rung = RUNG;

    return due__load_seq(&b->word) == RUNG && due__cas_seq(&b->word, &rung, QUIET); /* C1 */
}

#endif
