/* buffer.c - bytes that grow. */
#include "text/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST ((size_t)4096)

bool due__ctl_buffer_grow(struct due__ctl_buffer *b, size_t more)
{
    size_t room = b->room < FIRST ? FIRST : b->room;

    if (more > SIZE_MAX / 4 || b->len > SIZE_MAX / 4) {
        b->failed = true;
        return false;
    }
    while (room < b->len + more)
        room *= 2;
    if (room == b->room)
        return true;
    char *bytes = realloc(b->bytes, room);
    if (bytes == NULL) {
        b->failed = true;
        return false;
    }
    b->bytes = bytes;
    b->room = room;
    return true;
}

void due__ctl_buffer_add(struct due__ctl_buffer *b, const void *bytes, size_t len)
{
    if (len == 0 || !due__ctl_buffer_grow(b, len))
        return;
    memcpy(b->bytes + b->len, bytes, len);
    b->len += len;
}

void due__ctl_buffer_text(struct due__ctl_buffer *b, const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n > 0)
        due__ctl_buffer_add(b, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

void due__ctl_buffer_free(struct due__ctl_buffer *b)
{
    free(b->bytes);
    *b = (struct due__ctl_buffer){ 0 };
}
