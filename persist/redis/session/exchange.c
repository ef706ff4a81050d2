/* exchange.c - commands out and their replies in, also over several calls.
 *
 * A call may run out of time while answers are outstanding.  They are not given up: the flight
 * stays in the air, and the next call that wants the same goes on reading.  A call that wants
 * something else lets it land first.
 */
#include "redis/session/session.h"

void due__flight_end(struct due__redis *s)
{
    for (size_t i = 0; i < DUE__REDIS_KEPT; i++)
        if (s->air.kept[i] != NULL)
            freeReplyObject(s->air.kept[i]);
    s->air = (struct due__flight){ 0 };
}

redisReply *due__flight_take(struct due__redis *s, size_t at)
{
    redisReply *reply = s->air.kept[at];

    s->air.kept[at] = NULL;
    return reply;
}

void due__flight_crash(struct due__redis *s)
{
    due__link_down(s->link);
    due__flight_end(s);
    s->armed = false;
}

enum due__reply_class due__flight_worst(struct due__redis *s)
{
    enum due__reply_class worst = s->air.worst;

    for (size_t i = 0; i < s->air.got && worst == DUE__REPLY_FINE; i++)
        worst = due__redis_classify(s, s->air.kept[i]);
    return worst;
}

bool due__flight_is_odd(const struct due__redis *s, const redisReply *exec)
{
    if (exec->type == REDIS_REPLY_NIL || exec->type == REDIS_REPLY_ERROR)
        return false;
    if (s->air.refused > 0 || !due__reply_is_array(exec, s->air.queued))
        return true;
    for (size_t i = 0; i < exec->elements; i++) {
        int type = exec->element[i]->type;

        if (type != REDIS_REPLY_INTEGER && type != REDIS_REPLY_STATUS && type != REDIS_REPLY_ERROR)
            return true;
    }
    return false;
}

static bool is_complete(const struct due__flight *air)
{
    return air->statuses == 0 && air->got == air->expected;
}

/* The first error says what is wrong; those behind it are its consequences. */
static void take_status(struct due__redis *s, redisReply *reply)
{
    struct due__flight *air = &s->air;
    enum due__reply_class class = due__redis_classify(s, reply);

    if (class == DUE__REPLY_FINE && reply->type != REDIS_REPLY_STATUS)
        class = DUE__REPLY_WRONG;
    if (class != DUE__REPLY_FINE) {
        air->refused++;
        if (air->worst == DUE__REPLY_FINE)
            air->worst = class;
    }
    air->statuses--;
    freeReplyObject(reply);
}

int due__flight_land(struct due__redis *s, int64_t until_ns)
{
    struct due__flight *air = &s->air;

    while (!is_complete(air)) {
        redisReply *reply = NULL;
        int rc = due__link_reply(s->link, &reply, until_ns);

        if (rc == DUE_EAGAIN)
            return rc;
        if (rc != 0) {
            due__flight_crash(s);
            return DUE_ESTORE;
        }
        if (air->statuses > 0)
            take_status(s, reply);
        else
            air->kept[air->got++] = reply;
    }
    return 0;
}

/* Let what others began come to its end. */
static int clear_air(struct due__redis *s, int64_t until_ns)
{
    if (s->air.kind == DUE__FLIGHT_NONE)
        return 0;
    int rc = due__flight_land(s, until_ns);
    if (rc != 0)
        return rc;
    if (s->air.over != NULL)
        s->air.over(s);
    due__flight_end(s);
    return 0;
}

int due__flight_ready(struct due__redis *s, enum due__flight_kind kind, uint64_t tag,
                      int64_t until_ns)
{
    if (s->air.kind == kind && kind != DUE__FLIGHT_NONE && s->air.tag == tag)
        return 1;
    int rc = clear_air(s, until_ns);
    if (rc == 0 && s->prepared != 0) {
        s->prepared = 0;
        due__link_forget(s->link);
    }
    return rc;
}

int due__flight_start(struct due__redis *s, enum due__flight_kind kind, uint64_t tag,
                      size_t statuses, size_t expected, int64_t until_ns)
{
    int64_t before_ns = due__boot_ns();
    int rc = due__link_send(s->link, until_ns);

    if (rc == DUE_ENOMEM) {
        due__link_forget(s->link);
        return rc;
    }
    if (rc != 0) {
        s->unsent = rc == DUE_EAGAIN;
        due__flight_crash(s);
        return DUE_ESTORE;
    }
    s->unsent = false;
    s->air = (struct due__flight){ .kind = kind,
                                   .statuses = statuses,
                                   .expected = expected,
                                   .queued = statuses > 0 ? statuses - 1 : 0, /* behind MULTI */
                                   .tag = tag,
                                   .worst = DUE__REPLY_FINE,
                                   .sent_ns = before_ns };
    return 0;
}

int due__redis_mistaken(struct due__redis *s)
{
    enum due__reply_class worst = due__flight_worst(s);

    if (worst == DUE__REPLY_FINE) {
        due__flight_crash(s);
        return DUE_ECORRUPT;
    }
    int rc = due__redis_error(s, worst);
    due__flight_end(s);
    return rc;
}

int due__redis_fly(struct due__redis *s, enum due__flight_kind kind, uint64_t tag, size_t expected,
                   int ready, int64_t until_ns)
{
    int rc = ready;

    if (rc == 0)
        rc = due__flight_start(s, kind, tag, 0, expected, until_ns);
    return rc < 0 ? rc : due__flight_land(s, until_ns);
}
