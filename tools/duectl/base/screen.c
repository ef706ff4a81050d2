/* screen.c - standard output and standard error.
 *
 * Both may be one terminal, so whoever writes erases the progress line first; it comes back with
 * the next look of the watch.  Only then is standard output written under the lock: elsewhere a
 * reader who does not read must not keep anything from being said.
 */
#include "base/base.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { SAID_MAX = 4096 };

void ctl_screen_open(struct ctl_screen *s, bool progress, bool exec)
{
    bool out = isatty(STDOUT_FILENO);

    pthread_mutex_init(&s->lock, NULL);
    s->shared = out && isatty(STDERR_FILENO);
    s->shows_progress = false;
    /* Commands that write to the terminal, and somebody who types there, would be in its way. */
    s->wants_progress =
        progress && isatty(STDERR_FILENO) && !isatty(STDIN_FILENO) && !(exec && out);
    atomic_init(&s->given_up, false);
}

static bool screen_lock(struct ctl_screen *s)
{
    if (atomic_load(&s->given_up))
        return false;
    pthread_mutex_lock(&s->lock);
    return true;
}

static void screen_unlock(struct ctl_screen *s, bool locked)
{
    if (locked)
        pthread_mutex_unlock(&s->lock);
}

/* What cannot be said on standard error cannot be said. */
static void complain(const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDERR_FILENO, text, len);

        if (n < 0 && errno != EINTR)
            return;
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        }
    }
}

static void erase(struct ctl_screen *s)
{
    static const char sequence[] = "\r\033[K";

    if (s->shows_progress)
        complain(sequence, sizeof sequence - 1);
    s->shows_progress = false;
}

/* Leave out the first @done bytes. */
static void advance(struct iovec **pieces, int *n, size_t done)
{
    while (*n > 0 && done >= (*pieces)->iov_len) {
        done -= (*pieces)->iov_len;
        (*pieces)++;
        (*n)--;
    }
    if (*n > 0) {
        (*pieces)->iov_base = (char *)(*pieces)->iov_base + done;
        (*pieces)->iov_len -= done;
    }
}

static int write_all(struct iovec *pieces, int n)
{
    struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

    while (n > 0) {
        ssize_t done = writev(STDOUT_FILENO, pieces, n);

        if (done >= 0)
            advance(&pieces, &n, (size_t)done);
        else if (errno == EAGAIN)
            poll(&out, 1, -1);
        else if (errno != EINTR)
            return -errno;
    }
    return 0;
}

int ctl_screen_write(struct ctl_screen *s, struct iovec *pieces, int n)
{
    bool locked = s->shared && screen_lock(s);
    int rc;

    if (locked)
        erase(s);
    rc = write_all(pieces, n);
    screen_unlock(s, locked);
    return rc;
}

void ctl_say(struct ctl_screen *s, const char *format, ...)
{
    char text[SAID_MAX];
    bool locked;
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len < 0)
        return;
    if (len >= SAID_MAX) {
        len = SAID_MAX - 1;
        text[len - 1] = '\n';
    }

    locked = screen_lock(s);
    erase(s);
    complain(text, (size_t)len);
    screen_unlock(s, locked);
}

/* How many characters stand in one line of the terminal, whose size may change at any time.  The
 * last column stays free: some terminals go on to the next line with it. */
static int line_room(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return SAID_MAX / 2;
    return size.ws_col - 1;
}

void ctl_screen_progress(struct ctl_screen *s, const char *text)
{
    char line[SAID_MAX];
    int len;

    /* Somebody is writing: the next look comes soon. */
    if (!s->wants_progress || pthread_mutex_trylock(&s->lock) != 0)
        return;
    if (text == NULL) {
        erase(s);
    } else {
        len = snprintf(line, sizeof line, "\r%.*s\033[K", line_room(), text);
        complain(line, (size_t)len);
        s->shows_progress = true;
    }
    pthread_mutex_unlock(&s->lock);
}
