/* signals.c - signals as something to wait for.  It knows no queue. */
#define _GNU_SOURCE
#include "due/signals.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "os/clock.h"

struct due_signals {
    int fd;          /* I */
    sigset_t opened; /* I  those that were not blocked before */
};

/* DUE_EINVAL: one of them cannot be blocked. */
static int set_of(const int *numbers, size_t n, sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < n; i++) {
        if (numbers[i] == SIGKILL || numbers[i] == SIGSTOP || sigaddset(set, numbers[i]) != 0)
            return DUE_EINVAL;
    }
    return n > 0 ? 0 : DUE_EINVAL;
}

int due_signals_open(due_signals **signals, const int *numbers, size_t n)
{
    sigset_t set;
    sigset_t before;

    *signals = NULL;
    if (set_of(numbers, n, &set) != 0)
        return DUE_EINVAL;
    due_signals *s = calloc(1, sizeof *s);
    if (s == NULL)
        return DUE_ENOMEM;
    s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->fd < 0) {
        free(s);
        return DUE_ESYS;
    }
    pthread_sigmask(SIG_BLOCK, &set, &before);
    sigemptyset(&s->opened);
    for (size_t i = 0; i < n; i++) {
        if (!sigismember(&before, numbers[i]))
            sigaddset(&s->opened, numbers[i]);
    }
    *signals = s;
    return 0;
}

/* The number of one that has arrived, or 0. */
static int taken(const due_signals *s)
{
    struct signalfd_siginfo info;

    return read(s->fd, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}

int due_signals_wait(due_signals *s, int64_t timeout_ns)
{
    struct pollfd ready = { .fd = s->fd, .events = POLLIN };
    int64_t until = due__time_add(due__monotonic_now(), timeout_ns);
    int number;

    if (timeout_ns < 0)
        return DUE_EINVAL;
    while ((number = taken(s)) == 0) {
        int64_t left = until == DUE_FOREVER ? DUE_FOREVER : until - due__monotonic_now();
        struct timespec limit = due__timespec(left > 0 ? left : 0);

        if (timeout_ns == 0)
            return DUE_EAGAIN;
        if (left <= 0)
            return DUE_ETIMEDOUT;
        if (ppoll(&ready, 1, left == DUE_FOREVER ? NULL : &limit, NULL) < 0 && errno != EINTR)
            return DUE_ESYS;
    }
    return number;
}

int due_signals_fd(const due_signals *s)
{
    return s->fd;
}

void due_signals_close(due_signals *s)
{
    if (s == NULL)
        return;
    close(s->fd);
    pthread_sigmask(SIG_UNBLOCK, &s->opened, NULL);
    free(s);
}
