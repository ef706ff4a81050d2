/* share_words.h - the words of a command, as share_lab.c puts them together, one command at a time.
 */
#ifndef SHARE_WORDS_H
#define SHARE_WORDS_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/redis/share_lab.h"

#define WORDS 4096

/* The words of one command.  Numbers are written into `text`. */
struct words {
    const char *at[WORDS];
    size_t len[WORDS];
    int n;
    char text[WORDS * 8];
    size_t used;
    char pack[8192]; /* the word of numbers, */
    size_t packed;   /* so much of it, */
    int pack_at;     /* and where it stands; 0: nowhere */
};

static struct words words;

static inline void share_fail(const char *what)
{
    fprintf(stderr, "share_lab: %s\n", what);
    abort();
}

static inline void word_bytes(const char *at, size_t len)
{
    if (words.n == WORDS)
        share_fail("too many words");
    words.at[words.n] = at;
    words.len[words.n++] = len;
}

static inline void word(const char *text)
{
    word_bytes(text, strlen(text));
}

static inline void word_id(const char *id)
{
    word_bytes(id, SHARE_ID);
}

static inline void word_pair(const char *id, const char *text)
{
    word_id(id);
    word(text);
}

static inline void word_number(int64_t n)
{
    char *at = words.text + words.used;
    int len = snprintf(at, sizeof words.text - words.used, "%" PRId64, n);

    words.used += (size_t)len + 1;
    if (words.used >= sizeof words.text)
        share_fail("too many numbers");
    word_bytes(at, (size_t)len);
}

static inline void word_key(const struct share *s, const char *end, const char *more)
{
    char *at = words.text + words.used;
    int len = snprintf(at, sizeof words.text - words.used, "%s%s%s", s->queue, end, more);

    words.used += (size_t)len + 1;
    if (words.used >= sizeof words.text)
        share_fail("too many keys");
    word_bytes(at, (size_t)len);
}

/* Numbers in one word, as struct.unpack() reads them: of so many bytes, and doubles. */
static inline void pack(uint64_t number, int bytes)
{
    for (; bytes > 0; bytes--, number >>= 8)
        words.pack[words.packed++] = (char)(number & 0xff);
}

static inline void pack_double(int64_t number)
{
    double value = (double)number;
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    pack(bits, 8);
}

#endif
