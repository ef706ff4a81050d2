/* fault_bytes.c - buffers, and just enough of RESP to see where things end. */
#include "lab/fault_bytes.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST 32 /* arrays in arrays */

size_t fault_bytes_n(const struct fault_bytes *b)
{
    return b->end - b->begin;
}

void fault_bytes_add(struct fault_bytes *b, const void *bytes, size_t n)
{
    if (b->begin > 0 && (b->begin == b->end || b->room - b->end < n)) {
        memmove(b->data, b->data + b->begin, fault_bytes_n(b));
        b->end -= b->begin;
        b->begin = 0;
    }
    if (b->room - b->end < n) {
        b->room = 2 * b->room + n + 4096;
        b->data = realloc(b->data, b->room);
        if (b->data == NULL) {
            fprintf(stderr, "fault proxy: no memory\n");
            abort();
        }
    }
    if (n > 0)
        memcpy(b->data + b->end, bytes, n);
    b->end += n;
}

void fault_bytes_skip(struct fault_bytes *b, size_t n)
{
    b->begin += n;
}

void fault_bytes_move(struct fault_bytes *from, struct fault_bytes *to, size_t n)
{
    if (n > 0)
        fault_bytes_add(to, from->data + from->begin, n);
    fault_bytes_skip(from, n);
}

void fault_bytes_free(struct fault_bytes *b)
{
    free(b->data);
    *b = (struct fault_bytes){ 0 };
}

/* ---- RESP ---- */

/* Reads along the bytes. */
struct reader {
    const char *at;
    const char *end;
};

/* A line without its end; NULL: not whole yet. */
static const char *take_line(struct reader *r)
{
    const char *line = r->at;
    const char *end = r->at == r->end ? NULL : memchr(line, '\n', (size_t)(r->end - line));

    if (end == NULL)
        return NULL;
    r->at = end + 1;
    return line;
}

/* A number as in "$3\r\n", behind its first byte.  What is no number answers -2. */
static long number_of(const char *line)
{
    long n = 0;
    int digits = 0;

    if (line[1] == '-')
        return line[2] == '1' ? -1 : -2;
    for (line++; *line >= '0' && *line <= '9' && digits < 10; line++, digits++)
        n = 10 * n + (*line - '0');
    return digits == 0 || (*line != '\r' && *line != '\n') ? -2 : n;
}

/* Bytes of a string and its line end. */
static int take_bulk(struct reader *r, long n)
{
    if (n < 0)
        return n == -1 ? 1 : -1;
    if (r->end - r->at < n + 2)
        return 0;
    r->at += n + 2;
    return 1;
}

/* 1: taken, 0: not whole yet, -1: no RESP. */
static int take_value(struct reader *r, int depth)
{
    const char *line = take_line(r);
    int rc = 1;

    if (line == NULL)
        return 0;
    if (*line == '$')
        return take_bulk(r, number_of(line));
    if (*line != '*')
        return strchr("+-:", *line) != NULL && *line != '\0' ? 1 : -1;
    long n = number_of(line);
    if (n < -1 || depth == 0)
        return -1;
    for (long i = 0; i < n && rc == 1; i++)
        rc = take_value(r, depth - 1);
    return rc;
}

static struct reader reader_of(const struct fault_bytes *b)
{
    static const char nothing[1];

    if (fault_bytes_n(b) == 0)
        return (struct reader){ nothing, nothing };
    return (struct reader){ (const char *)b->data + b->begin, (const char *)b->data + b->end };
}

long fault_reply_length(const struct fault_bytes *b)
{
    struct reader r = reader_of(b);
    const char *begin = r.at;
    int rc = take_value(&r, DEEPEST);

    return rc == 1 ? r.at - begin : rc;
}

/* A line that is no array is a command of its own, typed by hand. */
long fault_command_length(const struct fault_bytes *b)
{
    struct reader r = reader_of(b);
    const char *begin = r.at;

    if (r.at == r.end)
        return 0;
    if (*r.at == '*')
        return fault_reply_length(b);
    return take_line(&r) == NULL ? 0 : r.at - begin;
}

void fault_command_name(const struct fault_bytes *b, char *name, size_t room)
{
    struct reader r = reader_of(b);
    size_t n = 0;

    if (r.at < r.end && *r.at == '*' && take_line(&r) != NULL)
        (void)take_line(&r);
    while (r.at < r.end && n + 1 < room && !isspace((unsigned char)*r.at))
        name[n++] = (char)toupper((unsigned char)*r.at++);
    name[n] = '\0';
}
