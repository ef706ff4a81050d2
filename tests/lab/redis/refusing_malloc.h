/* refusing_malloc.h - an allocator that counts the calls of one thread and refuses one of them, or
 * all from one on.  A program that includes this has it for all of itself, shared libraries too.
 */
#ifndef REFUSING_MALLOC_H
#define REFUSING_MALLOC_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define REFUSING_MALLOC 0
#elif defined(__has_feature)
#define REFUSING_MALLOC !(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define REFUSING_MALLOC 1
#endif

#if REFUSING_MALLOC

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *memory);

#define REFUSING_SHOWN __attribute__((visibility("default")))

static __thread struct {
    bool counting;
    bool all;                       /* refuse all from the one on */
    bool (*spares)(const void *by); /* whose calls are neither counted nor refused; may be NULL */
    long left;                      /* calls until the one that is refused */
    long refused;
    bool watching;
    long live; /* blocks that are out */
} refusing;

static bool refusing_does(const void *by)
{
    if (!refusing.counting || (refusing.spares != NULL && refusing.spares(by)))
        return false;
    if (refusing.left-- > 0)
        return false;
    if (refusing.left < -1 && !refusing.all)
        return false;
    refusing.refused++;
    errno = ENOMEM;
    return true;
}

static void *refusing_gives(void *memory)
{
    refusing.live += refusing.watching && memory != NULL;
    return memory;
}

REFUSING_SHOWN void *malloc(size_t size)
{
    return refusing_does(__builtin_return_address(0)) ? NULL : refusing_gives(__libc_malloc(size));
}

REFUSING_SHOWN void *calloc(size_t n, size_t size)
{
    return refusing_does(__builtin_return_address(0)) ? NULL
                                                      : refusing_gives(__libc_calloc(n, size));
}

REFUSING_SHOWN void *realloc(void *old, size_t size)
{
    if (refusing_does(__builtin_return_address(0)))
        return NULL;
    void *memory = __libc_realloc(old, size);
    return old == NULL ? refusing_gives(memory) : memory;
}

REFUSING_SHOWN void free(void *memory)
{
    refusing.live -= refusing.watching && memory != NULL;
    __libc_free(memory);
}

#endif
#endif
