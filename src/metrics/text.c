/* text.c - a text of unknown length, into room of any. */
#include "metrics/text.h"

#include <stdarg.h>
#include <stdio.h>

void due__text_bytes(struct due__text *t, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++, t->len++) {
        if (t->len + 1 < t->size)
            t->at[t->len] = bytes[i];
    }
}

void due__text_add(struct due__text *t, const char *format, ...)
{
    char piece[256];
    va_list args;

    va_start(args, format);
    int n = vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    due__text_bytes(t, piece, n < (int)sizeof piece ? (size_t)n : sizeof piece - 1);
}

/* ---- Labels ---- */

/* How many bytes of UTF-8 begin here; 0: it is none. */
static size_t utf8_length(const unsigned char *s)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

    if (s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) /* also at the end of the text */
            return 0;
    }
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0; /* longer than need be, a surrogate, or beyond the last */
    return n;
}

void due__text_label(struct due__text *t, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    while (*s != '\0') {
        size_t n = utf8_length(s);

        if (n == 0)
            due__text_add(t, "\\\\x%02x", *s++);
        else if (*s == '\n')
            due__text_bytes(t, "\\n", 2), s++;
        else if (*s == '\\' || *s == '"')
            due__text_add(t, "\\%c", *s++);
        else
            due__text_bytes(t, (const char *)s, n), s += n;
    }
}
