/* redis_replica.h - two private servers, of which one follows the other.
 *
 * Clients use their UNIX sockets; the replica follows over a port of 127.0.0.1, since servers do
 * so over nothing else.
 */
#ifndef REDIS_REPLICA_H
#define REDIS_REPLICA_H

#include "redis_server.h"

/* Start both with these words, and wait until the replica has all that the primary has.  As
 * redis_server_start(); nothing runs if it fails. */
int redis_replica_start(struct redis_server *primary, struct redis_server *replica,
                        const char *const *options);
/* It follows nobody any more, and can be written.  0 or -1. */
int redis_replica_promote(const struct redis_server *replica);

#endif
