/* name.h - names of queues and prefixes. */
#ifndef DUE__BASE_NAME_H
#define DUE__BASE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define DUE__NAME_MAX 64 /* bytes of a queue's name */

/* 1 to @most of the letters that need no quoting anywhere. */
static inline bool due__is_name(const char *name, size_t most)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789._-";
    size_t len = strnlen(name, most + 1);

    return len > 0 && len <= most && strspn(name, allowed) == len;
}

#endif
