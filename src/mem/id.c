/* id.c - the names of jobs: which queue, which place, which use of the place. */
#include <stdio.h>
#include <string.h>

#include "due/due.h"

int due_id_equal(due_id a, due_id b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

char *due_id_format(due_id id, char text[DUE_ID_TEXT])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < sizeof id.byte; i++) {
        text[2 * i] = digits[id.byte[i] >> 4];
        text[2 * i + 1] = digits[id.byte[i] & 15];
    }
    text[2 * sizeof id.byte] = '\0';
    return text;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int due_id_parse(const char *text, due_id *id)
{
    due_id read;

    for (size_t i = 0; i < sizeof read.byte; i++) {
        int high = digit(text[2 * i]);
        int low = high < 0 ? -1 : digit(text[2 * i + 1]);

        if (low < 0)
            return DUE_EINVAL;
        read.byte[i] = (unsigned char)(high << 4 | low);
    }
    if (text[2 * sizeof read.byte] != '\0')
        return DUE_EINVAL;
    *id = read;
    return 0;
}
