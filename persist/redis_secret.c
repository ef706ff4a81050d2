/* redis_secret.c - memory for passwords. */
#define _GNU_SOURCE
#include "redis_secret.h"

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
