/* progress.c - how far a command has come, for whoever waits for it at a terminal.
 *
 * A command that has taken more than a second says so in one line of standard error, a few times a
 * second, and takes that away when it has something else to say, or is done.  The cursor is left at
 * the line's beginning, so what is said without that overwrites it.  Where standard error is no
 * terminal nothing is ever shown.
 *
 * A command that has a screen (screen.c) has a line of its own there.
 *
 * Threads  one shows it, the main thread; where nobody does any may end it
 */
#include "base/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define AFTER_NS DUE_S(1)
#define EVERY_NS DUE_MS(200)

enum { LINE = 256 };

static int64_t next_ns; /* when to show it again */
static bool wanted, shown;

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return DUE_S(now.tv_sec) + now.tv_nsec;
}

static size_t line_room(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2 || size.ws_col > LINE)
        return LINE - 1;
    return size.ws_col - 1u;
}

static void say(const char *text)
{
    size_t len = strlen(text);

    while (len > 0) {
        ssize_t n = write(STDERR_FILENO, text, len);

        if (n <= 0)
            return; /* what cannot be said there cannot be said */
        text += n;
        len -= (size_t)n;
    }
}

void ctl_progress_begin(void)
{
    const char *term = getenv("TERM");

    wanted = isatty(STDERR_FILENO) && term != NULL && strcmp(term, "dumb") != 0;
    next_ns = now_ns() + AFTER_NS;
}

void ctl_progress(const char *doing, uint64_t done, uint64_t all)
{
    char text[LINE], line[LINE + 16];

    if (!wanted)
        return;
    int64_t now = now_ns();
    if (now < next_ns)
        return;
    next_ns = now + EVERY_NS;
    if (all > 0 && done <= all)
        snprintf(text, sizeof text, "duectl: %s: %" PRIu64 " of %" PRIu64 ", %d %%", doing, done,
                 all, (int)((double)done / (double)all * 100));
    else if (done > 0)
        snprintf(text, sizeof text, "duectl: %s: %" PRIu64, doing, done);
    else
        snprintf(text, sizeof text, "duectl: %s", doing);
    snprintf(line, sizeof line, "\r%.*s\033[K\r", (int)line_room(), text);
    fflush(stdout); /* what was said before stands before it */
    say(line);
    shown = true;
}

void ctl_progress_end(void)
{
    if (!shown)
        return;
    say("\r\033[K");
    shown = false;
}
