/* secret.c - memory for passwords. */
#define _GNU_SOURCE
#include "redis/os/secret.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* In front of each. */
struct head {
    size_t bytes; /* of the whole mapping */
    size_t padding;
};

void *due__secret_new(size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    size_t all = bytes + sizeof(struct head);
    struct head *head = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (head == MAP_FAILED)
        return NULL;
    /* A kernel that cannot do it has no dumps to fear, or nobody to ask. */
    (void)madvise(head, all, MADV_DONTDUMP);
    head->bytes = all;
    return head + 1;
}

void due__secret_free(void *secret)
{
    if (secret == NULL)
        return;
    struct head *head = (struct head *)secret - 1;
    size_t all = head->bytes;

    explicit_bzero(head, all);
    munmap(head, all);
}

/* Below, volatile keeps the compiler from making a call or vectors of the loop. */

void due__secret_copy(void *to, const void *from, size_t n)
{
    volatile char *into = to;
    const volatile char *bytes = from;

    for (size_t i = 0; i < n; i++)
        into[i] = bytes[i];
}

size_t due__secret_length(const char *text, size_t max)
{
    const volatile char *bytes = text;
    size_t n = 0;

    while (n < max && bytes[n] != '\0')
        n++;
    return n;
}

const char *due__secret_find(const char *bytes, char c, size_t n)
{
    const volatile char *in = bytes;

    for (size_t i = 0; i < n; i++) {
        if (in[i] == c)
            return bytes + i;
    }
    return NULL;
}
