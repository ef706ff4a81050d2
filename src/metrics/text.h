/* text.h - the text of the figures, as Prometheus reads it, while it is being written. */
#ifndef DUE__TEXT_H
#define DUE__TEXT_H

#include <stddef.h>

/* The text so far: all of it is counted, and as much written as there is room for. */
struct due__text {
    char *at;    /* O */
    size_t size; /* O */
    size_t len;  /* O */
};

void due__text_bytes(struct due__text *t, const char *bytes, size_t n);
/* A short piece. */
void due__text_add(struct due__text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The text of a label.  Bytes that are no UTF-8 stand there as \\xff would. */
void due__text_label(struct due__text *t, const char *text);

#endif
