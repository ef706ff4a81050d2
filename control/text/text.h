/* text.h - bytes that grow, and lines of JSON, written and read.
 *
 *   buffer.c      bytes that grow
 *   json_write.c  bytes as a string of JSON
 *   json_read.c   what stands in a line, piece by piece
 *
 * Threads  whoever has the buffer or the line
 */
#ifndef DUE__CTL_TEXT_H
#define DUE__CTL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Bytes ----------------------------------------------------------------------------------- */

/* Zero: empty. */
struct due__ctl_buffer {
    char *bytes;
    size_t len;
    size_t room;
    bool failed; /* no memory: what was added last is not there */
};

/* Make room for @more bytes.  False: no memory. */
bool due__ctl_buffer_grow(struct due__ctl_buffer *b, size_t more);
void due__ctl_buffer_add(struct due__ctl_buffer *b, const void *bytes, size_t len);
void due__ctl_buffer_text(struct due__ctl_buffer *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void due__ctl_buffer_free(struct due__ctl_buffer *b);

/* ---- Lines, written -------------------------------------------------------------------------- */

/* A string of JSON; or, if it is no text, {"base64":...}. */
void due__ctl_json_put(struct due__ctl_buffer *b, const void *bytes, size_t len);
/* How many bytes the character at @at has, of @left; 0: it is no UTF-8. */
size_t due__ctl_utf8_length(const void *at, size_t left);

/* A string of JSON: bytes that are none are shown as question marks. */
void due__ctl_json_shown(struct due__ctl_buffer *b, const void *bytes, size_t len);
/* ---- Lines, read ----------------------------------------------------------------------------- */

/* A line being read: its strings are decoded in place, where they stand. */
struct due__ctl_json {
    char *line;
    size_t len;
    size_t at;
    const char *fault; /* NULL: none so far */
};

/* Each answers false if that is not what stands there: @j->fault says what was expected, and @j->at
 * is where. */
bool due__ctl_json_fault(struct due__ctl_json *j, const char *fault);
bool due__ctl_json_sign(struct due__ctl_json *j, char sign); /* blanks before it are passed over */
bool due__ctl_json_is(struct due__ctl_json *j, char sign); /* the same; but it is no fault if not */
bool due__ctl_json_end(struct due__ctl_json *j);           /* the same: nothing is left */
bool due__ctl_json_string(struct due__ctl_json *j, char **text, size_t *len);
bool due__ctl_json_number(struct due__ctl_json *j, int64_t most,
                          int64_t *value); /* whole, from 0 */
bool due__ctl_json_bytes(struct due__ctl_json *j, char **bytes,
                         size_t *len); /* string, or base64 */

#endif
