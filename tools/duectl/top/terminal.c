/* terminal.c - the terminal while a page is on it: taken, asked for keys, given back.
 *
 * The page has a screen of its own, so what was there before is there again in the end, however
 * that comes: a key, a signal, an error.  Keys come one by one and are not shown; Ctrl-C stays the
 * signal that it is.  What is said on standard error meanwhile would be lost with that screen: it
 * is put aside, and said when the terminal is given back.
 */
#define _GNU_SOURCE
#include "top/top.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 24, CTRL_D = 4 };

static struct termios as_it_was;

/* ---- Taken, given back ----------------------------------------------------------------------- */

int top_terminal_rows(void)
{
    struct winsize size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : ROWS;
}

/* What comes on standard error goes into memory; where that cannot be, it stays as it is. */
static void put_aside(struct top_terminal *t)
{
    if (!isatty(STDERR_FILENO))
        return;
    t->said_fd = memfd_create("duectl-said", MFD_CLOEXEC);
    t->error_fd = t->said_fd < 0 ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (t->error_fd >= 0)
        (void)dup2(t->said_fd, STDERR_FILENO);
}

static void say_all(struct top_terminal *t)
{
    char said[4096];
    ssize_t n;

    if (t->error_fd >= 0) {
        fflush(stderr);
        (void)dup2(t->error_fd, STDERR_FILENO);
        close(t->error_fd);
        for (off_t at = 0; (n = pread(t->said_fd, said, sizeof said, at)) > 0; at += n)
            (void)!write(STDERR_FILENO, said, (size_t)n);
    }
    if (t->said_fd >= 0)
        close(t->said_fd);
    t->error_fd = t->said_fd = -1;
}

void top_terminal_take(struct top_terminal *t)
{
    struct termios ours;

    if (!t->shows || t->taken)
        return;
    t->keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &as_it_was) == 0;
    if (t->keys) {
        ours = as_it_was;
        ours.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        ours.c_cc[VMIN] = 0;
        ours.c_cc[VTIME] = 0;
        t->keys = tcsetattr(STDIN_FILENO, TCSADRAIN, &ours) == 0;
    }
    put_aside(t);
    fputs("\033[?1049h\033[?25l\033[H\033[J", stdout);
    t->taken = true;
}

void top_terminal_give_back(struct top_terminal *t)
{
    if (!t->taken)
        return;
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    if (t->keys)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &as_it_was);
    t->taken = false;
    say_all(t);
}

int top_terminal_open(struct top_terminal *t, bool shows)
{
    const char *kind = getenv("TERM");
    sigset_t set;

    *t = (struct top_terminal){ .said_fd = -1, .error_fd = -1, .window_fd = -1 };
    t->shows = shows && isatty(STDOUT_FILENO) && kind != NULL && kind[0] != '\0' &&
               strcmp(kind, "dumb") != 0;
    t->signal_fd = ctl_signals_open();
    if (t->signal_fd < 0)
        return CTL_BROKEN;
    if (!t->shows)
        return 0;
    sigemptyset(&set);
    sigaddset(&set, SIGWINCH);
    sigaddset(&set, SIGTSTP);
    sigaddset(&set, SIGCONT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    t->window_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (t->window_fd >= 0)
        return 0;
    fprintf(stderr, "duectl: %s\n", strerror(errno));
    return CTL_BROKEN;
}

/* ---- What happens ---------------------------------------------------------------------------- */

/* Who is stopped leaves the terminal to others, and takes it again when he goes on. */
static void window_changed(struct top_terminal *t)
{
    struct signalfd_siginfo info;

    while (read(t->window_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGTSTP)
            continue;
        top_terminal_give_back(t);
        raise(SIGSTOP);
        top_terminal_take(t);
    }
}

/* Is a key among them that ends?  A terminal that is gone does, too. */
static bool key_ends(struct top_terminal *t, short events)
{
    char keys[64];
    ssize_t n = read(STDIN_FILENO, keys, sizeof keys);

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return true;
    for (ssize_t i = 0; i < n; i++) {
        if (keys[i] == 'q' || keys[i] == 'Q' || keys[i] == CTRL_D)
            return true;
    }
    if (n <= 0 && (events & POLLHUP))
        return true;
    t->keys = t->keys && isatty(STDIN_FILENO);
    return false;
}

enum top_event top_terminal_wait(struct top_terminal *t, int64_t until_ns)
{
    struct pollfd fds[3] = { { .fd = t->signal_fd, .events = POLLIN },
                             { .fd = t->window_fd, .events = POLLIN },
                             { .fd = t->keys ? STDIN_FILENO : -1, .events = POLLIN } };

    for (;;) {
        int64_t left_ns = until_ns - top_now_ns(CLOCK_MONOTONIC);
        struct timespec left = { 0, 0 };

        if (left_ns > 0)
            left = (struct timespec){ left_ns / DUE_S(1), left_ns % DUE_S(1) };
        int n = ppoll(fds, 3, &left, NULL);
        if (n == 0 || (n < 0 && errno != EINTR))
            return TOP_TIME;
        if (n > 0 && (fds[0].revents & POLLIN)) {
            t->signal = ctl_signal_next(t->signal_fd);
            if (t->signal != 0)
                return TOP_SIGNAL;
        }
        if (n > 0 && fds[2].revents != 0 && key_ends(t, fds[2].revents))
            return TOP_QUIT;
        if (n > 0 && (fds[1].revents & POLLIN)) {
            window_changed(t);
            return TOP_RESIZED;
        }
    }
}
