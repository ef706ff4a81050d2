/* signals.c - the signals that stop a command, as something to wait for. */
#define _GNU_SOURCE
#include "base/base.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define SAME_NS DUE_MS(250)

/* What was ignored when the program was started stays ignored. */
int ctl_signals_open(void)
{
    static const int stops[] = { SIGINT, SIGTERM, SIGHUP };
    sigset_t set;
    int fd;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
        struct sigaction now;

        if (sigaction(stops[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(&set, stops[i]);
    }
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        fprintf(stderr, "duectl: %s\n", strerror(errno));
    return fd;
}

/* Who stops a process and its group, as timeout(1) does, sends the same signal twice. */
int ctl_signal_next(int signal_fd)
{
    static int last;
    static int64_t last_ns;
    struct signalfd_siginfo info;

    while (read(signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        int64_t now_ns = DUE_S(now.tv_sec) + now.tv_nsec;
        if ((int)info.ssi_signo == last && now_ns - last_ns < SAME_NS)
            continue;
        last = (int)info.ssi_signo;
        last_ns = now_ns;
        return last;
    }
    return 0;
}
