/* signals.c - the signals that stop a command, as something to wait for. */
#define _GNU_SOURCE
#include "base/base.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

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

int ctl_signal_next(int signal_fd)
{
    struct signalfd_siginfo info;

    return read(signal_fd, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}
