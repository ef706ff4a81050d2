/* redis_no_memory.c - every allocation of a link fails in turn, hiredis's own too.
 *
 * Whatever fails, the link answers with an error, goes on once there is memory, and gives back what
 * it has in the end.  What stands on a link: test_redis_memory.c.
 */
#include <hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/redis/redis_fake.h"
#include "lab/redis/refusing_malloc.h"
#include "redis/link/link.h"
#include "base/time.h"

#if !REFUSING_MALLOC

int main(void)
{
    printf("the allocator is not ours here\n");
    return 77;
}

#else

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

    refusing.left = n;
    refusing.live = refusing.refused = 0;
    refusing.watching = true;
    refusing.all = all;
    refusing.counting = true;
    rc = due__address_parse(&address, url, NULL);
    if (rc == 0)
        l = due__link_new(&address, &limits, "t");
    /* A busy machine is no reason to stop before it has come to the refused one. */
    for (int i = 0;
         i < 1000 && l != NULL && (i == 0 || (rc == DUE_EAGAIN && refusing.refused == 0)); i++)
        rc = talk(l);
    refusing.counting = false;
    /* Now there is memory again. */
    for (int i = 0; i < 100 && l != NULL && (i == 0 || rc != 0); i++)
        rc = talk(l);
    due__link_free(l);
    due__address_wipe(&address);
    refusing.watching = false;
    if (refusing.live != 0) {
        printf("allocation %ld: %ld blocks are still out\n", n, refusing.live);
        return -1;
    }
    if (l != NULL && rc != 0) {
        printf("allocation %ld: %s afterwards\n", n, due_error_name(rc));
        return -1;
    }
    return refusing.refused == 0;
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
