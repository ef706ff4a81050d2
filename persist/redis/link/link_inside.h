/* link_inside.h - what a link is made of, for the files that make it. */
#ifndef DUE__REDIS_LINK_INSIDE_H
#define DUE__REDIS_LINK_INSIDE_H

#include "redis/link/backoff.h"
#include "redis/link/link.h"
#include "redis/link/socket.h"
#include "redis/resp/bytes.h"
#include "redis/link/greeting.h"
#include "redis/resp/reader.h"

enum due__link_state { DUE__LINK_DOWN, DUE__LINK_CONNECTING, DUE__LINK_GREETING, DUE__LINK_UP };

struct due__link {
    struct due__address address; /* without its password, which only the greeting holds */
    struct due__link_limits limits;
    enum due__link_state state;
    int fd;           /* -1: none */
    int bell;         /* an eventfd, readable once it was rung */
    bool interrupted; /* it was rung while there was something to read: the next wait ends */
    bool deaf;        /* the bell is not listened to */

    struct due__targets targets; /* while connecting */
    int64_t target_until_ns;     /* of the target being tried */
    int64_t greeted_until_ns;    /* of all targets, and the greeting */

    struct due__greeting greeting;
    size_t greeting_sent; /* bytes of it */
    size_t greeted;       /* answers to it */

    struct due__backoff backoff;
    bool owes;           /* a write is under way, or was refused, and none has been done since */
    int64_t retry_ns;    /* not connected before then */
    int64_t up_ns;       /* since when it is up */
    uint64_t answers;    /* given to the caller since then */
    const char *trouble; /* what went wrong last */

    struct due__bytes output;
    struct due__bytes rest; /* what was sent in part: its commands are pending */
    size_t rest_sent;       /* bytes of it */
    size_t formatted;       /* commands in output */
    size_t arguments;       /* that the last of them still lacks */
    size_t pending;         /* commands sent and not yet answered */
    bool looked;            /* since the last answer: the link was quiet */
    int64_t answer_ns;      /* when the next answer must have come */
    int64_t awake_ns;       /* until then it is waited for without sleeping */
    size_t came;            /* bytes of it since that was last put off */

    struct due__bytes input; /* bytes received */
    size_t taken;            /* of them, by the reader */
    struct due__reader *reader;

    struct due__link_counts counts; /* read by any thread: relaxed */
};

/* It goes down now: when to connect again.  retry.c */
void due__link_plan_retry(struct due__link *l);

#endif
