/* greeting.h - the first commands on a connection: AUTH, SELECT, CLIENT SETNAME, PING. */
#ifndef DUE__REDIS_GREETING_H
#define DUE__REDIS_GREETING_H

#include <stdbool.h>
#include <stddef.h>

#include "redis/link/link.h"
#include "redis/resp/bytes.h"

#define DUE__GREETINGS 4

enum due__greeting_kind {
    DUE__GREETING_AUTH,
    DUE__GREETING_SELECT,
    DUE__GREETING_NAME,
    DUE__GREETING_PING
};

struct due__greeting {
    struct due__bytes bytes; /* in secret memory: the password is in them */
    enum due__greeting_kind kinds[DUE__GREETINGS];
    size_t n;
};

/* Written once, for all connections to come; the password is wiped out of the address.  False: no
 * memory. */
bool due__greeting_write(struct due__greeting *g, struct due__address *address, const char *name);
void due__greeting_free(struct due__greeting *g);

/* 0: a fine answer to the @i-th; DUE_EACCES: refused; DUE_ESTORE: not now, or no server of this
 * kind.  *@trouble says why. */
int due__greeting_judge(const struct due__greeting *g, size_t i, const struct redisReply *reply,
                        const char **trouble);

#endif
