/* await.c - what opening waits for: a server, and an owner that is to go.
 *
 * Either may take for ever, so it is logged once, with the name of whoever is waited for.
 */
#include <string.h>

#include "redis/owner/owner.h"

#define SAY_NS DUE_S(1) /* so long a connection may take before that is logged */

int due__redis_connect(struct due__redis *s, bool *fresh, int64_t until_ns)
{
    int64_t say_ns = due__mono_ns() + SAY_NS;
    bool patient = !s->awaits_server && say_ns < until_ns;
    int rc = due__link_up(s->link, fresh, patient ? say_ns : until_ns);

    if (rc == DUE_EAGAIN && patient && due__mono_ns() >= say_ns) {
        due__store_log(&s->how, DUE_LOG_INFO, "waits for the server at %.80s: %.80s", s->where,
                       due__link_trouble(s->link));
        s->awaits_server = true;
        rc = due__link_up(s->link, fresh, until_ns);
    }
    if (rc == 0)
        s->awaits_server = false;
    return rc;
}

int due__redis_await_owner(struct due__redis *s, const struct due__redis_survey *w,
                           int64_t until_ns)
{
    char who[160];
    int64_t now = due__mono_ns();
    int64_t left = w->owner_ms >= 0 ? DUE_MS(w->owner_ms + 1) : s->set.lease_ns;

    due__owner_show(w->owner, who, sizeof who);
    due__redis_say(s, "close it there, or wait longer, or open as standby",
                   "the queue is owned by %s", who);
    if (until_ns <= now)
        return DUE_EBUSY;
    if (strcmp(s->awaited, w->owner) != 0) {
        due__store_log(&s->how, DUE_LOG_INFO, "waits for its owner to go: %s", who);
        memcpy(s->awaited, w->owner, sizeof s->awaited);
    }
    bool enough = left < until_ns - now;
    int rc = due__link_pause(s->link, enough ? now + left : until_ns);
    return rc != 0 || !enough ? DUE_EBUSY : 0;
}
