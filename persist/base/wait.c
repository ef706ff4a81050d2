/* wait.c - waiting for a socket and for the bell that interrupts it.
 *
 * A thread that sleeps is woken late: on an idle machine that takes longer than a server there
 * needs for one job.  Who stays awake asks again and again, and lets others run in between.
 */
#define _GNU_SOURCE
#include "base/wait.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/time.h"

static bool rung(int bell)
{
    uint64_t times;

    return read(bell, &times, sizeof times) == (ssize_t)sizeof times;
}

/* As poll(), for @ns. */
static int poll_for(struct pollfd *p, int64_t ns)
{
    struct timespec t = { 0 };

    if (ns > 0)
        t = (struct timespec){ .tv_sec = ns / DUE__NS_PER_S,
                               .tv_nsec = (long)(ns % DUE__NS_PER_S) };
    return ppoll(p, 2, &t, NULL);
}

enum due__wait due__wait(const struct due__ears *e, int64_t awake_ns, int64_t until_ns)
{
    for (;;) {
        struct pollfd p[2] = { { .fd = e->bell, .events = POLLIN },
                               { .fd = e->fd, .events = e->events } };
        int64_t now = due__mono_ns();
        bool awake = now < awake_ns && now < until_ns;
        int n = poll_for(p, awake ? 0 : until_ns - now);

        if (n > 0 && p[0].revents != 0 && rung(e->bell))
            return p[1].revents != 0 ? DUE__WAIT_BOTH : DUE__WAIT_BELL;
        if (n > 0 && p[1].revents != 0)
            return DUE__WAIT_READY;
        if ((n == 0 && !awake) || (n < 0 && errno != EINTR))
            return DUE__WAIT_TIME;
        if (n == 0)
            sched_yield();
    }
}
