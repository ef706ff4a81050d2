/* redis_no_memory.c - every allocation of a link fails in turn, hiredis's own too.
 *
 * The allocator of this program counts the calls of one thread and refuses one of them, or all from
 * one on.  Whatever fails, the link answers with an error, goes on once there is memory, and gives
 * everything back in the end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/redis/redis_fake.h"
#include "redis/link/link.h"
#include "redis/os/time.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_ALLOCATOR 0
#elif defined(__has_feature)
#define OWN_ALLOCATOR !(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define OWN_ALLOCATOR 1
#endif

#if !OWN_ALLOCATOR || !defined(__GLIBC__)

int main(void)
{
    printf("the allocator is not ours here\n");
    return 77;
}

#else

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *memory);

/* For all of the program, shared libraries too. */
#define SHOWN __attribute__((visibility("default")))

static __thread bool counting;
static __thread long left; /* calls until the one that is refused */
static __thread bool refuse_all;
static __thread long refused;
static __thread bool watching;
static __thread long live; /* blocks that are out */

static bool refuses(void)
{
    if (!counting || left-- > 0)
        return false;
    if (left < -1 && !refuse_all)
        return false;
    refused++;
    errno = ENOMEM;
    return true;
}

static void *given(void *memory)
{
    live += watching && memory != NULL;
    return memory;
}

SHOWN void *malloc(size_t size)
{
    return refuses() ? NULL : given(__libc_malloc(size));
}

SHOWN void *calloc(size_t n, size_t size)
{
    return refuses() ? NULL : given(__libc_calloc(n, size));
}

SHOWN void *realloc(void *old, size_t size)
{
    if (refuses())
        return NULL;
    void *memory = __libc_realloc(old, size);
    return old == NULL ? given(memory) : memory;
}

SHOWN void free(void *memory)
{
    live -= watching && memory != NULL;
    __libc_free(memory);
}

static void serve(struct fake *fake, int fd, int nth)
{
    static char big[300000];
    char text[FAKE_TEXT];

    (void)nth;
    if (!fake_greet(fake, fd, 2))
        return;
    fake->heard[0] = '\0';
    while (fake_hear(fake, fd, text)) {
        if (!fake_say(fd, "*3\r\n$5\r\nhello\r\n*2\r\n:1\r\n$-1\r\n$300000\r\n") ||
            !fake_say_bytes(fd, big, sizeof big) || !fake_say(fd, "\r\n"))
            return;
    }
}

/* One command and its answer, as often as it takes; 0, or what stopped it. */
static int talk(struct due__link *l)
{
    static char big[100000];
    redisReply *reply;
    bool fresh;
    int rc = due__link_up(l, &fresh, due__ns_after(due__mono_ns(), DUE_MS(20)));

    if (rc != 0)
        return rc;
    due__link_command(l, 2);
    due__link_text(l, "GET");
    due__link_bytes(l, big, sizeof big);
    rc = due__link_send(l, due__ns_after(due__mono_ns(), DUE_S(20)));
    if (rc != 0)
        return rc;
    rc = due__link_reply(l, &reply, due__ns_after(due__mono_ns(), DUE_S(20)));
    if (rc == 0)
        freeReplyObject(reply);
    return rc;
}

/* With the @n-th allocation refused.  1: there were fewer; -1: something is wrong. */
static int attempt(const char *url, long n, bool all)
{
    static const struct due__link_limits limits = { .connect_ns = DUE_S(20),
                                                    .answer_ns = DUE_S(20),
                                                    .backoff_min_ns = DUE_MS(1),
                                                    .backoff_max_ns = DUE_MS(2),
                                                    .reply_elements = 100,
                                                    .reply_bytes = 1 << 20 };
    struct due__address address;
    struct due__link *l = NULL;
    int rc;

    left = n;
    live = refused = 0;
    watching = true;
    refuse_all = all;
    counting = true;
    rc = due__address_parse(&address, url, NULL);
    if (rc == 0)
        l = due__link_new(&address, &limits, "t");
    /* A busy machine is no reason to stop before it has come to the refused one. */
    for (int i = 0; i < 1000 && l != NULL && (i == 0 || (rc == DUE_EAGAIN && refused == 0)); i++)
        rc = talk(l);
    counting = false;
    /* Now there is memory again. */
    for (int i = 0; i < 100 && l != NULL && (i == 0 || rc != 0); i++)
        rc = talk(l);
    due__link_free(l);
    due__address_wipe(&address);
    watching = false;
    if (live != 0) {
        printf("allocation %ld: %ld blocks are still out\n", n, live);
        return -1;
    }
    if (l != NULL && rc != 0) {
        printf("allocation %ld: %s afterwards\n", n, due_error_name(rc));
        return -1;
    }
    return refused == 0;
}

static int sweep(const char *url, bool all)
{
    int rc = 0;
    long n = 0;

    for (; rc == 0 && n < 10000; n++)
        rc = attempt(url, n, all);
    if (rc == 1 && n < 15) {
        printf("only %ld allocations: hiredis does not come to us for memory\n", n - 1);
        return 1;
    }
    if (rc == 1)
        printf("%ld allocations, %s\n", n - 1, all ? "all from one on" : "one at a time");
    return rc == 1 ? 0 : 1;
}

int main(void)
{
    struct fake fake;
    char url[192];

    fake_start(&fake, serve, NULL);
    snprintf(url, sizeof url, "unix://%s?db=0", fake.path);
    int failed = sweep(url, false) + sweep(url, true);
    fake_stop(&fake);
    return failed > 0;
}

#endif
