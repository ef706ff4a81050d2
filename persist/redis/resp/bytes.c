/* bytes.c - a row of bytes that grows, and commands written into it. */
#include "redis/resp/bytes.h"

#include <stdlib.h>
#include <string.h>

#include "redis/os/secret.h"

#define FIRST_ROOM  ((size_t)4096)
#define NUMBER_TEXT 24 /* a sign, 20 digits, and a bit */

static bool grow(struct due__bytes *b, size_t more)
{
    size_t room = b->room < FIRST_ROOM ? FIRST_ROOM : b->room;

    if (b->fixed || more > SIZE_MAX / 4 - b->len)
        return false;
    while (room - b->len < more)
        room *= 2;
    char *at = realloc(b->at, room);
    if (at == NULL)
        return false;
    b->at = at;
    b->room = room;
    return true;
}

bool due__bytes_reserve(struct due__bytes *b, size_t more)
{
    if (b->failed)
        return false;
    if (b->room - b->len >= more || grow(b, more))
        return true;
    b->failed = true;
    return false;
}

void due__bytes_clear(struct due__bytes *b, size_t keep)
{
    b->len = 0;
    b->failed = false;
    if (b->fixed || b->room <= keep || keep == 0)
        return;
    char *at = realloc(b->at, keep); /* to less: what is left is there either way */
    if (at == NULL)
        return;
    b->at = at;
    b->room = keep;
}

void due__bytes_free(struct due__bytes *b)
{
    if (!b->fixed)
        free(b->at);
    *b = (struct due__bytes){ 0 };
}

/* The digits of @number, at the end of @text: where they begin. */
static char *digits(uint64_t number, char text[NUMBER_TEXT])
{
    char *at = text + NUMBER_TEXT;

    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    return at;
}

/* "*12\r\n" or "$12\r\n".  There must be room for it. */
static void header(struct due__bytes *b, char kind, size_t n)
{
    char text[NUMBER_TEXT];
    char *from = digits(n, text);
    size_t len = (size_t)(text + NUMBER_TEXT - from);
    char *to = b->at + b->len;

    *to++ = kind;
    memcpy(to, from, len);
    memcpy(to + len, "\r\n", 2);
    b->len += 1 + len + 2;
}

void due__bytes_command(struct due__bytes *b, size_t arguments)
{
    if (due__bytes_reserve(b, NUMBER_TEXT + 3))
        header(b, '*', arguments);
}

void due__bytes_argument(struct due__bytes *b, const void *bytes, size_t len)
{
    if (len > SIZE_MAX / 8) {
        b->failed = true;
        return;
    }
    if (!due__bytes_reserve(b, len + NUMBER_TEXT + 5))
        return;
    header(b, '$', len);
    if (len > 0)
        memcpy(b->at + b->len, bytes, len);
    memcpy(b->at + b->len + len, "\r\n", 2);
    b->len += len + 2;
}

void due__bytes_secret(struct due__bytes *b, const char *text)
{
    size_t len = due__secret_length(text, SIZE_MAX / 8);

    if (!due__bytes_reserve(b, len + NUMBER_TEXT + 5))
        return;
    header(b, '$', len);
    due__secret_copy(b->at + b->len, text, len);
    memcpy(b->at + b->len + len, "\r\n", 2);
    b->len += len + 2;
}

void due__bytes_text(struct due__bytes *b, const char *text)
{
    due__bytes_argument(b, text, strlen(text));
}

void due__bytes_number(struct due__bytes *b, int64_t number)
{
    char text[NUMBER_TEXT];
    char *from = digits(number < 0 ? -(uint64_t)number : (uint64_t)number, text);

    if (number < 0)
        *--from = '-';
    due__bytes_argument(b, from, (size_t)(text + NUMBER_TEXT - from));
}
