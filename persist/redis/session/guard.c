/* guard.c - the beginnings of commands, and the watch that stands behind each EXEC. */
#include <string.h>

#include "redis/session/session.h"

void due__redis_word(struct due__redis *s, const char *key, size_t arguments, const char *name)
{
    due__link_command(s->link, 2 + arguments);
    due__link_text(s->link, name);
    due__link_text(s->link, key);
}

void due__redis_bare(struct due__redis *s, const char *name)
{
    due__link_command(s->link, 1);
    due__link_text(s->link, name);
}

void due__redis_guard(struct due__redis *s)
{
    due__redis_word(s, s->keys.fence, 1, "WATCH");
    due__link_text(s->link, s->keys.writers);
    due__redis_word(s, s->keys.fence, 0, "GET");
}

bool due__redis_is_our_fence(const struct due__redis *s, const redisReply *r)
{
    size_t len = strlen(s->fence);

    return due__reply_is_text(r) && (size_t)r->len == len && memcmp(r->str, s->fence, len) == 0;
}

void due__redis_guarded(struct due__redis *s, size_t at)
{
    const redisReply *watch = s->air.kept[at];

    s->armed = watch->type == REDIS_REPLY_STATUS && due__redis_is_our_fence(s, s->air.kept[at + 1]);
    if (s->armed)
        s->checked_ns = s->air.sent_ns;
}

int due__redis_transact(struct due__redis *s, enum due__flight_kind kind, size_t queued, int ready,
                        int64_t until_ns)
{
    int rc = ready;

    if (rc == 0) {
        due__redis_bare(s, "EXEC");
        due__redis_guard(s);
        s->armed = false; /* until its answer is seen */
        rc = due__flight_start(s, kind, 0, 1 + queued, 3, until_ns);
    }
    if (rc >= 0)
        rc = due__flight_land(s, until_ns);
    if (rc != 0)
        return rc;
    /* A look answers with what it has found. */
    if (kind != DUE__FLIGHT_SWEEP_LOOK && due__flight_is_odd(s, s->air.kept[0])) {
        due__flight_crash(s);
        return DUE_ESTORE;
    }
    due__redis_guarded(s, 1);
    return 0;
}
