/* trouble.c - what is wrong with a server, for people: at open, and in the log.
 *
 * A store that goes is told once, with the reason, and once when it is back.  It is back when a
 * write has been done; or, if none was outstanding, when it was reached and is still ours.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "redis/session/session.h"

void due__redis_say(struct due__redis *s, const char *hint, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(s->trouble, sizeof s->trouble, format, args);
    va_end(args);
    snprintf(s->hint, sizeof s->hint, "%s", hint);
}

/* ---- Error replies --------------------------------------------------------------------------- */

/* What is to be waited for. */
static const struct {
    const char *trouble;
    const char *hint;
} waits[] = {
    [DUE__REPLY_AGAIN] = { "it is loading, busy, or short of replicas or clients",
                           "wait until it is ready" },
    [DUE__REPLY_READONLY] = { "it is read-only, a replica",
                              "name its primary, or wait until it is promoted" },
    [DUE__REPLY_ELSEWHERE] = { "the keys are another server's of its cluster",
                               "name the server that has them" },
    [DUE__REPLY_DISK] = { "it cannot write to its disk (MISCONF)",
                          "make room on its disk, and look into its log" },
};

enum due__reply_class due__redis_classify(struct due__redis *s, const redisReply *reply)
{
    enum due__reply_class class = due__reply_classify(reply);

    if (class == DUE__REPLY_DENIED) {
        due__reply_command(reply, s->denied);
        s->unknown = due__reply_is_unknown(reply);
    }
    return class;
}

static void say_denied(struct due__redis *s)
{
    if (s->unknown)
        due__redis_say(s, "the library needs it: was it renamed, or disabled?",
                       "the server does not know the command %s", s->denied);
    else if (s->denied[0] != '\0')
        due__redis_say(s, "see docs/redis-layout.md for what the user must be allowed",
                       "the server refuses the user the command %s", s->denied);
    else
        due__redis_say(s, "see docs/redis-layout.md for what the user must be allowed",
                       "the server refuses the user a command or a key");
}

/* Where "later" is the answer, the connection is given up: its backoff is the pause. */
int due__redis_error(struct due__redis *s, enum due__reply_class class)
{
    switch (class) {
    case DUE__REPLY_AGAIN:
    case DUE__REPLY_READONLY:
    case DUE__REPLY_ELSEWHERE:
    case DUE__REPLY_DISK:
        due__link_refused(s->link, waits[class].trouble);
        s->armed = false;
        return DUE_ESTORE;
    case DUE__REPLY_FULL:
        due__redis_say(s, "raise its maxmemory", "the server is full");
        return DUE_ENOSPC;
    case DUE__REPLY_UNABLE:
        due__redis_say(s, "CONFIG SET lua-replicate-commands yes",
                       "the server lets no script write that has read its clock");
        return DUE_ENOTSUP;
    case DUE__REPLY_DENIED:
        say_denied(s);
        return DUE_EACCES;
    default:
        due__redis_say(s, "are the keys of this name used by something else?",
                       "what is stored at %.100s makes no sense", s->where);
        return DUE_ECORRUPT;
    }
}

/* ---- At open --------------------------------------------------------------------------------- */

int due__redis_unreached(struct due__redis *s)
{
    const char *trouble = due__link_trouble(s->link);
    const char *hint = NULL;

    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++)
        if (waits[i].trouble == trouble)
            hint = waits[i].hint;
    due__redis_say(s, hint != NULL ? hint : "is the server there, and does it answer?",
                   "the server at %.80s cannot be %s: %.80s", s->where,
                   hint != NULL ? "used" : "reached", trouble);
    return DUE_ESTORE;
}

/* ---- In the log ------------------------------------------------------------------------------ */

void due__redis_unreadable(struct due__redis *s, const char *key, int rc)
{
    if (!s->unreadable_told)
        due__store_log(&s->how, DUE_LOG_WARNING, "%.120s cannot be read: %s (%s)", key,
                       rc == DUE_EACCES ? "the user must not" : "it holds something else",
                       due_error_name(rc));
    s->unreadable_told = true;
}

/* A call has ended so: has the store gone, or is it back? */
void due__redis_tell(struct due__redis *s, int rc)
{
    bool up = due__link_is_up(s->link);
    bool away = rc == DUE_EAGAIN || rc == DUE_EINDOUBT || rc == DUE_ESTORE;

    if (!s->open || s->closed || s->fenced)
        return;
    if (!s->away && ((away && !up) || rc == DUE_EACCES)) {
        s->away = true;
        due__store_log(&s->how, DUE_LOG_WARNING, "the store at %.80s cannot be used: %.100s",
                       s->where, rc == DUE_EACCES ? s->trouble : due__link_trouble(s->link));
    } else if (s->away && rc >= 0 && up && s->armed && !due__link_is_owing(s->link)) {
        s->away = false;
        due__store_log(&s->how, DUE_LOG_INFO, "the store at %.80s can be used again", s->where);
    }
}
