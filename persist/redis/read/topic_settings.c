/* topic_settings.c - showing what holds back topics.
 *
 * The hash `topics` says it of each topic that was ever used: "PAUSED LIMIT", or "0" where there is
 * nothing.  Such a one is shown too: a call about all topics means it, also if it has no job just
 * now.  All of it is read in one call, the names first and then what is said of them, page by page;
 * whatever keeps that from its end, the next call begins anew.  A value that is neither, as of a
 * later version, holds nothing back: it is nobody's we know.
 */
#include <string.h>

#include "redis/read/read.h"

#define PAGE 1000u

static bool is_setting(const redisReply *value, int *paused, int64_t *held_max)
{
    const char *space = memchr(value->str, ' ', (size_t)value->len);
    uint64_t first = 0;
    uint64_t second = 0;

    if (space == NULL || !due__reply_digits(value->str, (size_t)(space - value->str), &first))
        return false;
    space++;
    if (!due__reply_digits(space, (size_t)(value->str + value->len - space), &second))
        return false;
    *paused = first == 1; /* as the scripts have it */
    *held_max = second < INT64_MAX ? (int64_t)second : INT64_MAX;
    return *paused != 0 || second > 0;
}

static int read_names(struct due__redis *s, redisReply **names, int64_t until_ns)
{
    int ready = due__flight_ready(s, DUE__FLIGHT_SETTINGS, 0, until_ns);

    if (ready == 0)
        due__redis_word(s, s->keys.topics, 0, "HKEYS");
    int rc = due__redis_fly(s, DUE__FLIGHT_SETTINGS, 0, 1, ready, until_ns);
    if (rc != 0)
        return rc;
    if (!due__reply_is_texts(s->air.kept[0]))
        return due__redis_mistaken(s);
    *names = due__flight_take(s, 0);
    due__flight_end(s);
    return 0;
}

static int read_page(struct due__redis *s, const redisReply *names, size_t from, size_t n,
                     redisReply **values, int64_t until_ns)
{
    int ready = due__flight_ready(s, DUE__FLIGHT_SETTINGS, 1 + from, until_ns);

    if (ready == 0) {
        due__redis_word(s, s->keys.topics, n, "HMGET");
        for (size_t i = from; i < from + n; i++)
            due__link_bytes(s->link, names->element[i]->str, (size_t)names->element[i]->len);
    }
    int rc = due__redis_fly(s, DUE__FLIGHT_SETTINGS, 1 + from, 1, ready, until_ns);
    if (rc != 0)
        return rc;
    if (!due__reply_is_fields(s->air.kept[0], n))
        return due__redis_mistaken(s);
    *values = due__flight_take(s, 0);
    due__flight_end(s);
    return 0;
}

static int show(const redisReply *name, const redisReply *value, due_store_visit_topic *visit,
                void *ctx)
{
    int64_t held_max = 0;
    int paused = 0;

    bool holds = due__reply_is_text(value) && is_setting(value, &paused, &held_max);
    if (strlen(name->str) != (size_t)name->len) /* no topic has a NUL in its name */
        return holds ? DUE_ECORRUPT : 0;
    return visit(ctx, name->str, paused, held_max);
}

/* Once, from one end to the other. */
static int show_all(struct due__redis *s, due_store_visit_topic *visit, void *ctx, int64_t until_ns)
{
    redisReply *names = NULL;
    int rc = read_names(s, &names, until_ns);

    for (size_t at = 0; rc == 0 && at < names->elements; at += PAGE) {
        size_t n = names->elements - at < PAGE ? names->elements - at : PAGE;
        redisReply *values = NULL;

        rc = read_page(s, names, at, n, &values, until_ns);
        for (size_t i = 0; rc == 0 && i < n; i++)
            rc = show(names->element[at + i], values->element[i], visit, ctx);
        if (values != NULL)
            freeReplyObject(values);
    }
    if (names != NULL)
        freeReplyObject(names);
    return rc;
}

int due__redis_settings(struct due__redis *s, due_store_visit_topic *visit, void *ctx,
                        int64_t until_ns)
{
    int rc;

    do {
        rc = due__redis_up(s, until_ns);
        if (rc != 0 && rc != DUE_EDURABILITY)
            return rc;
        if (s->lost)
            return 0; /* told by who called */
        rc = show_all(s, visit, ctx, until_ns);
        if (rc == DUE_ESTORE && until_ns <= due__mono_ns())
            rc = DUE_EAGAIN;
    } while (rc == DUE_ESTORE);
    if ((rc == DUE_EACCES || rc == DUE_ECORRUPT) && due__link_is_up(s->link))
        due__redis_unreadable(s, s->keys.topics, rc);
    return rc;
}
