/* thread_redis_link.c - a link that goes up and down, talks and waits, while two threads interrupt
 * it and read its counters.
 */
#include <hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/redis/redis_fake.h"
#include "redis/link/link.h"
#include "base/time.h"

static atomic_bool done;

static void serve(struct fake *fake, int fd, int nth)
{
    (void)nth;
    if (!fake_greet(fake, fd, 2))
        return;
    while (fake_answer(fake, fd, "+OK\r\n"))
        fake->heard[0] = '\0';
}

static void *disturb(void *link)
{
    uint64_t bytes = 0;

    while (!atomic_load(&done)) {
        due__link_interrupt(link);
        struct due__link_counts counts = due__link_count(link);
        if (counts.bytes_in + counts.bytes_out < bytes)
            return "the counters went back";
        bytes = counts.bytes_in + counts.bytes_out;
        usleep(50);
    }
    return NULL;
}

/* 0, or a word for what is wrong. */
static const char *talk(struct due__link *l, int64_t until_ns, long *interrupted)
{
    redisReply *reply;
    bool fresh;
    int rc;

    while ((rc = due__link_up(l, &fresh, until_ns)) == DUE_EAGAIN)
        ++*interrupted;
    due__link_words(l, 1, (const char *const[]){ "PING" });
    if (rc != 0 || due__link_send(l, until_ns) != 0)
        return "it is not up";
    while ((rc = due__link_reply(l, &reply, until_ns)) == DUE_EAGAIN)
        ++*interrupted;
    if (rc != 0)
        return due__link_trouble(l);
    freeReplyObject(reply);
    return NULL;
}

static int64_t seconds(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--seconds") == 0)
            return strtoll(argv[i + 1], NULL, 10);
    }
    return 1;
}

int main(int argc, char **argv)
{
    static const struct due__link_limits limits = {
        .connect_ns = DUE_S(60), .answer_ns = DUE_S(60), .reply_elements = 100, .reply_bytes = 1000
    };
    int64_t end_ns = due__ns_after(due__mono_ns(), DUE_S(seconds(argc, argv)));
    const char *wrong = NULL;
    struct due__address address;
    struct fake fake;
    pthread_t threads[2];
    long interrupted = 0;
    long talks = 0;

    fake_start(&fake, serve, NULL);
    if (due__address_parse(&address, fake.url, NULL) != 0)
        return 1;
    struct due__link *l = due__link_new(&address, &limits, "t");
    for (int i = 0; i < 2 && l != NULL; i++)
        pthread_create(&threads[i], NULL, disturb, l);
    while (l != NULL && wrong == NULL && due__mono_ns() < end_ns) {
        wrong = talk(l, due__ns_after(end_ns, DUE_S(60)), &interrupted);
        if (++talks % 4 == 0)
            due__link_down(l);
    }
    atomic_store(&done, true);
    for (int i = 0; i < 2 && l != NULL; i++) {
        void *said = NULL;

        pthread_join(threads[i], &said);
        wrong = said != NULL ? said : wrong;
    }
    due__link_free(l);
    fake_stop(&fake);
    printf("%ld talks, %ld interrupted: %s\n", talks, interrupted, wrong != NULL ? wrong : "fine");
    return wrong != NULL || talks == 0 || interrupted == 0;
}
