/* redis_replica.h - private servers that follow one another.
 *
 * Clients use their UNIX sockets; a replica follows over a port of 127.0.0.1, since servers do so
 * over nothing else.
 */
#ifndef REDIS_REPLICA_H
#define REDIS_REPLICA_H

#include "lab/redis/redis_server.h"

/* A server that others can follow.  As redis_server_start(). */
int redis_primary_start(struct redis_server *primary, const char *const *options);
/* One that follows it, and can be followed; it has all that the primary has.  The same. */
int redis_replica_start(struct redis_server *replica, const struct redis_server *primary,
                        const char *const *options);
/* It follows nobody any more, and can be written.  0 or -1. */
int redis_replica_promote(const struct redis_server *replica);

#endif
