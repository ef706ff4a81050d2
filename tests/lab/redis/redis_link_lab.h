/* redis_link_lab.h - links to try, and what the tests of them share. */
#ifndef REDIS_LINK_LAB_H
#define REDIS_LINK_LAB_H

#include <criterion/criterion.h>
#include <hiredis.h>
#include <stdio.h>
#include <string.h>

#include "lab/redis/redis_fake.h"
#include "redis/link/link.h"
#include "redis/resp/reply.h"
#include "base/time.h"

/* For what shall not fail: changed by tests of what does. */
static inline struct due__link_limits link_limits(void)
{
    return (struct due__link_limits){ .connect_ns = DUE_S(20),
                                      .answer_ns = DUE_S(20),
                                      .backoff_min_ns = DUE_MS(1),
                                      .backoff_max_ns = DUE_MS(20),
                                      .reply_elements = 1000,
                                      .reply_bytes = (size_t)4 << 20 };
}

static inline int64_t in_ns(int64_t ns)
{
    return due__ns_after(due__mono_ns(), ns);
}

static inline struct due__link *link_of(const char *url, struct due__link_limits limits)
{
    struct due__address address;
    due_error error;

    cr_assert_eq(due__address_parse(&address, url, &error), 0, "%s", error.text);
    struct due__link *l = due__link_new(&address, &limits, "t");
    cr_assert_not_null(l);
    return l;
}

static inline struct due__link *link_to(const char *url)
{
    return link_of(url, link_limits());
}

static inline void link_is_up(struct due__link *l)
{
    bool fresh;

    cr_assert_eq(due__link_up(l, &fresh, in_ns(DUE_S(20))), 0, "%s", due__link_trouble(l));
}

static inline int link_asks(struct due__link *l, const char *word)
{
    due__link_words(l, 1, &word);
    return due__link_send(l, in_ns(DUE_S(20)));
}

/* The text of the next reply, which must come. */
static inline const char *link_hears(struct due__link *l)
{
    static char text[256];
    redisReply *reply;
    int rc = due__link_reply(l, &reply, in_ns(DUE_S(20)));

    cr_assert_eq(rc, 0, "%s: %s", due_error_name(rc), due__link_trouble(l));
    snprintf(text, sizeof text, "%s", reply->str != NULL ? reply->str : "");
    freeReplyObject(reply);
    return text;
}

static inline int link_fails(struct due__link *l, int64_t until_ns)
{
    redisReply *reply;
    int rc = due__link_reply(l, &reply, until_ns);

    if (rc == 0)
        freeReplyObject(reply);
    return rc;
}

#endif
