/* bytes.h - a row of bytes that grows, and commands written into it.
 *
 * Memory that is wanting is remembered in `failed` and what was asked for is left out, so that a
 * writer looks once, at the end.
 */
#ifndef DUE__REDIS_BYTES_H
#define DUE__REDIS_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct due__bytes {
    char *at;
    size_t len;
    size_t room;
    bool fixed;  /* the memory is somebody else's: it neither grows nor shrinks */
    bool failed; /* not everything is in it */
};

/* Room for @more bytes behind the last: false, and marked as failed, if there is no memory. */
bool due__bytes_reserve(struct due__bytes *b, size_t more);
/* Empty; memory beyond @keep bytes (not 0) is given back. */
void due__bytes_clear(struct due__bytes *b, size_t keep);
void due__bytes_free(struct due__bytes *b);

/* The parts of a command as the server reads them. */
void due__bytes_command(struct due__bytes *b, size_t arguments);
void due__bytes_argument(struct due__bytes *b, const void *bytes, size_t len);
void due__bytes_text(struct due__bytes *b, const char *text);
/* A text that stays out of vector registers: see secret.h. */
void due__bytes_secret(struct due__bytes *b, const char *text);
void due__bytes_number(struct due__bytes *b, int64_t number);

#endif
