/* await.c - what opening waits for: a server, and an owner, or those who share it, that are to go.
 *
 * Each may take for ever, so it is logged once, with the name of whoever is waited for.
 */
#include <string.h>

#include "redis/owner/owner.h"

#define SAY_NS  DUE_S(1)    /* so long a connection may take before that is logged */
#define LOOK_NS DUE_MS(200) /* between two looks whether those who share a queue have gone */
#define LAST_NS DUE_MS(50)  /* so soon before the end nobody looks again */

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

bool due__redis_is_shared(const struct due__redis_survey *w)
{
    return w->owned && strncmp(w->owner, "2 shared", 8) == 0;
}

int due__redis_await_owner(struct due__redis *s, const struct due__redis_survey *w,
                           int64_t until_ns)
{
    char who[160];
    int64_t now = due__mono_ns();
    int64_t left = w->owner_ms >= 0 ? DUE_MS(w->owner_ms + 1) : s->set.lease_ns;
    bool shared = due__redis_is_shared(w);

    due__owner_show(w->owner, who, sizeof who);
    /* They may go at any moment, or have done what they do, and then nothing has to end. */
    bool passes =
        shared || s->joining || w->mode == DUE__MODE_OWNING || w->mode == DUE__MODE_SHARING;
    if (passes)
        left = left < LOOK_NS ? left : LOOK_NS;
    if (shared)
        due__redis_say(s, "share it, or end them first", "the queue is shared by others");
    else
        due__redis_say(s, "close it there, or wait longer, or open as standby",
                       "the queue is owned by %s", who);
    if (until_ns <= now || (s->awaited[0] != '\0' && until_ns - now < LAST_NS))
        return DUE_EBUSY;
    if (strcmp(s->awaited, w->owner) != 0) {
        if (shared)
            due__store_log(&s->how, DUE_LOG_INFO, "waits for those who share it to go");
        else
            due__store_log(&s->how, DUE_LOG_INFO, "waits for its owner to go: %s", who);
        memcpy(s->awaited, w->owner, sizeof s->awaited);
    }
    int64_t rest = (until_ns - now) / 4 * 3; /* and one more look before time is up */
    return due__link_pause(s->link, now + (left < rest ? left : rest)) != 0 ? DUE_EBUSY : 0;
}
