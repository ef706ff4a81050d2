/* futex.c - the kernel's futex and timer slack: with bell.c the only places that wait.
 *
 * The explorer replaces this file by its own, so everything above it is explored as it is.
 */
#define _GNU_SOURCE
#include "os/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "due/due.h"
#include "os/atomic.h"
#include "os/clock.h"

#if defined(SYS_futex_wait)
#define FUTEX2_WAIT SYS_futex_wait
#elif defined(__x86_64__) || defined(__aarch64__) || defined(__i386__) || defined(__arm__)
#define FUTEX2_WAIT 455 /* the headers of older kernels do not know it */
#endif
#ifdef SYS_futex_time64 /* for 32 bits, since Linux 5.1; SYS_futex has times of 32 bits there */
#define FUTEX SYS_futex_time64
#else
#define FUTEX SYS_futex
#endif
#define FUTEX2_WORD (2u | FUTEX_PRIVATE_FLAG) /* of 32 bits, of this process */

long due__slack_tighten(void)
{
    int before = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);

    if (before <= 1)
        return -1;
    prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
    return before;
}

void due__slack_restore(long slack)
{
    if (slack > 0)
        prctl(PR_SET_TIMERSLACK, (unsigned long)slack, 0, 0, 0);
}

/* Since Linux 6.7 a futex can be waited on without any slack, whatever the thread's is: one call
 * instead of four.  False: not here. */
static bool park_exactly(const uint32_t *word, uint32_t value, const struct timespec *until)
{
#ifdef FUTEX2_WAIT
    static uint32_t refused; /* A  relaxed */

    if (due__load_relaxed(&refused)) /* no edge: at worst it is found out twice */
        return false;
    if (syscall(FUTEX2_WAIT, word, (unsigned long)value, (unsigned long)FUTEX_BITSET_MATCH_ANY,
                FUTEX2_WORD, until, CLOCK_MONOTONIC) == 0 ||
        errno == ETIMEDOUT || errno == EAGAIN || errno == EINTR)
        return true;
    due__store_relaxed(&refused, 1); /* no edge: as above */
#else
    (void)word;
    (void)value;
    (void)until;
#endif
    return false;
}

/* ---- A fence for all threads ---- */

enum { UNKNOWN, REFUSED, READY };

bool due__threads_fence_ready(void)
{
    static uint32_t known = UNKNOWN;         /* A  relaxed */
    uint32_t is = due__load_relaxed(&known); /* no edge: at worst it is found out twice */

    if (is == UNKNOWN) {
        is = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0
                 ? READY
                 : REFUSED;
        due__store_relaxed(&known, is); /* no edge: as above */
    }
    return is == READY;
}

void due__threads_fence(void)
{
    const uint32_t nobody = 0;

    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
        return;
    /* It is not registered any more, or is forbidden by now.  Then a store reaches the others all
     * the same, within less than a microsecond; and who was before it has gone on by then. */
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
        return;
    for (int64_t until = due__monotonic_now() + DUE_MS(1); due__monotonic_now() < until;)
        due__futex_wait(&nobody, 0, until, false);
}

/* ---- Sleeping ---- */

void due__futex_wait(const uint32_t *word, uint32_t value, int64_t until_ns, bool precise)
{
    struct timespec until;
    struct timespec *limit = NULL;
    long slack = -1;

    if (until_ns != DUE_FOREVER) {
        until = due__timespec(until_ns);
        limit = &until;
        if (precise) {
            if (park_exactly(word, value, limit))
                return;
            slack = due__slack_tighten();
        }
    }
    /* The bitset form takes an absolute time on the monotonic clock. */
    syscall(FUTEX, word, FUTEX_WAIT_BITSET_PRIVATE, value, limit, NULL, FUTEX_BITSET_MATCH_ANY);
    if (slack > 0)
        due__slack_restore(slack);
}

void due__futex_wake(const uint32_t *word)
{
    syscall(FUTEX, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
