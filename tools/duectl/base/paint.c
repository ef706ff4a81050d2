/* paint.c - lines for somebody at a terminal: cut to its width, and coloured.
 *
 * Elsewhere they are as they come.  There are no colours if NO_COLOR is set to anything, or the
 * terminal is a dumb one.  A character counts as one column.
 */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void ctl_paint_open(struct ctl_paint *p)
{
    const char *without = getenv("NO_COLOR");
    const char *kind = getenv("TERM");
    struct winsize size;

    *p = (struct ctl_paint){ .terminal = isatty(STDOUT_FILENO) };
    if (!p->terminal)
        return;
    p->coloured = (without == NULL || without[0] == '\0') && kind != NULL && kind[0] != '\0' &&
                  strcmp(kind, "dumb") != 0;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        p->columns = size.ws_col;
}

/* The beginning of a line, of so many columns. */
static size_t cut(const char *line, size_t len, size_t columns)
{
    size_t column = 0;

    for (size_t at = 0; at < len; at++) {
        if (((unsigned char)line[at] & 0xc0) == 0x80)
            continue;
        if (column++ == columns)
            return at;
    }
    return len;
}

bool ctl_paint_line(const struct ctl_paint *p, enum ctl_colour colour, const char *line, size_t len)
{
    static const char *const begins[] = { "", "\033[1m", "\033[33m", "\033[31m" };
    bool painted = p->coloured && colour != CTL_PLAIN;

    if (!p->terminal)
        return fwrite(line, 1, len, stdout) == len;
    len -= len > 0 && line[len - 1] == '\n';
    if (p->columns > 0)
        len = cut(line, len, (size_t)p->columns);
    if (painted)
        fputs(begins[colour], stdout);
    bool fine = fwrite(line, 1, len, stdout) == len;
    return fputs(painted ? "\033[0m\n" : "\n", stdout) >= 0 && fine;
}
