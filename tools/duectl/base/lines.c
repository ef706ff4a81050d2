/* lines.c - a file or a pipe becomes lines.
 *
 * A line is given away as soon as its end has come, so a pipe that stays open is read as it is
 * written.  A line ends with LF or CR LF, the last one also with the end of the input; no other
 * byte means anything here.  A line that is too long is given away once, cut, and then skipped.
 */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 16 };

struct splitter {
    const struct ctl_sink *sink;
    char *line; /* what has come of the line so far */
    size_t room;
    size_t kept;
    uint64_t len; /* what has come, kept or not */
    uint64_t number;
};

bool ctl_input_open(struct ctl_input *in, const char *file)
{
    struct stat about;

    in->name = file == NULL ? "-" : file;
    in->fd = STDIN_FILENO;
    if (strcmp(in->name, "-") != 0)
        in->fd = open(in->name, O_RDONLY | O_CLOEXEC);
    if (in->fd < 0 || fstat(in->fd, &about) != 0) {
        fprintf(stderr, "duectl: %s: %s\n", in->name, strerror(errno));
        return false;
    }
    if (S_ISDIR(about.st_mode)) {
        fprintf(stderr, "duectl: %s: %s\n", in->name, strerror(EISDIR));
        ctl_input_close(in);
        return false;
    }
    return true;
}

void ctl_input_close(struct ctl_input *in)
{
    if (in->fd > STDERR_FILENO)
        close(in->fd);
    in->fd = -1;
}

/* Keep a part of a line: 0 or -ENOMEM.  CTL_LINE_MAX bytes are kept, and a carriage return. */
static int keep(struct splitter *s, const char *part, size_t len)
{
    size_t fits = CTL_LINE_MAX + 1 - s->kept;

    s->len += len;
    if (len > fits)
        len = fits;
    if (s->room < s->kept + len) {
        size_t room = s->room == 0 ? 256 : s->room;
        char *larger;

        while (room < s->kept + len)
            room *= 2;
        larger = realloc(s->line, room);
        if (larger == NULL)
            return -ENOMEM;
        s->line = larger;
        s->room = room;
    }
    if (len > 0)
        memcpy(s->line + s->kept, part, len);
    s->kept += len;
    return 0;
}

/* The line has ended: give it away, and begin the next one. */
static bool give_line(struct splitter *s)
{
    struct ctl_line line = { .bytes = s->line, .number = ++s->number };
    uint64_t len = s->len;

    if (len == s->kept && len > 0 && s->line[len - 1] == '\r')
        len--;
    line.too_long = len > CTL_LINE_MAX;
    line.len = line.too_long ? CTL_LINE_MAX : (size_t)len;
    s->kept = 0;
    s->len = 0;
    return s->sink->line(s->sink->ctx, &line);
}

/* 0, 1: the sink stopped, or -ENOMEM. */
static int split(struct splitter *s, const char *chunk, size_t len)
{
    int rc = 0;

    while (rc == 0 && len > 0) {
        const char *end = memchr(chunk, '\n', len);
        size_t part = end == NULL ? len : (size_t)(end - chunk);
        size_t used = end == NULL ? part : part + 1;

        rc = keep(s, chunk, part);
        if (rc == 0 && end != NULL)
            rc = give_line(s) ? 0 : 1;
        chunk += used;
        len -= used;
    }
    return rc;
}

/* Wait until there is something to read: 0.  1: told to stop, or -errno. */
static int wait_for_input(int fd, int stop_fd)
{
    struct pollfd ready[] = {
        { .fd = fd, .events = POLLIN },
        { .fd = stop_fd, .events = POLLIN },
    };

    while (poll(ready, 2, -1) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    return ready[1].revents != 0;
}

/* Whatever has come has been given away. */
static bool pause_reading(struct splitter *s)
{
    return s->sink->paused == NULL || s->sink->paused(s->sink->ctx);
}

/* The input has ended: 0, or 1: the sink stopped. */
static int end_reading(struct splitter *s)
{
    return (s->len == 0 || give_line(s)) && pause_reading(s) ? 0 : 1;
}

/* Read one chunk: its length, 0 at the end of the input, or -errno. */
static ssize_t read_chunk(int fd, char *chunk)
{
    ssize_t n = read(fd, chunk, CHUNK);

    return n < 0 ? -errno : n;
}

static int read_all(struct splitter *s, int fd, int stop_fd, char *chunk)
{
    for (;;) {
        int rc = wait_for_input(fd, stop_fd);
        ssize_t n = rc == 0 ? read_chunk(fd, chunk) : 0;

        if (rc != 0)
            return rc;
        if (n == -EINTR || n == -EAGAIN)
            continue;
        if (n < 0)
            return (int)n;
        s->sink->arrived(s->sink->ctx);
        if (n == 0)
            return end_reading(s);
        rc = split(s, chunk, (size_t)n);
        if (rc == 0 && !pause_reading(s))
            rc = 1;
        if (rc != 0)
            return rc;
    }
}

int ctl_lines_read(const struct ctl_input *in, int stop_fd, const struct ctl_sink *sink)
{
    struct splitter s = { .sink = sink };
    char *chunk = malloc(CHUNK);
    int rc = chunk == NULL ? -ENOMEM : read_all(&s, in->fd, stop_fd, chunk);

    free(chunk);
    free(s.line);
    return rc;
}
