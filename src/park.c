/* park.c - the kernel's futex and timer slack: with channel.c the only places that wait.
 *
 * The explorer replaces this file by its own, so everything above it is explored as it is.
 */
#define _GNU_SOURCE
#include "park.h"

#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "due/due.h"

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

void due__park(const uint32_t *word, uint32_t value, int64_t until_ns, bool precise)
{
    struct timespec until;
    struct timespec *limit = NULL;
    long slack = -1;

    if (until_ns != DUE_FOREVER) {
        until = due__timespec(until_ns);
        limit = &until;
        if (precise)
            slack = due__slack_tighten();
    }
    /* The bitset form takes an absolute time on the monotonic clock. */
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, limit, NULL, FUTEX_BITSET_MATCH_ANY);
    if (slack > 0)
        due__slack_restore(slack);
}

void due__unpark(const uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
