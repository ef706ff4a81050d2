/* socket.h - the addresses behind a host's name, and sockets to them. */
#ifndef DUE__REDIS_SOCKET_H
#define DUE__REDIS_SOCKET_H

#include <netdb.h>
#include <stdbool.h>
#include <sys/un.h>

#include "redis/link/link.h"

/* What to try, one after the other.  All zero: none. */
struct due__targets {
    struct addrinfo *found; /* of getaddrinfo(); NULL: none, or a UNIX socket */
    struct addrinfo *next;  /* not yet tried */
    struct addrinfo local;  /* the one of a UNIX socket */
    struct sockaddr_un path;
};

/* Numeric addresses and UNIX sockets at once; names are looked up, for as long as that takes. */
bool due__targets_find(struct due__targets *t, const struct due__address *address);
void due__targets_free(struct due__targets *t);
size_t due__targets_left(const struct due__targets *t);

/* A socket that never blocks, connecting to the next target; or -1, and *@trouble says why. */
int due__targets_begin(struct due__targets *t, const char **trouble);

/* The socket has become writable: is it connected?  If not, *@trouble says why. */
bool due__socket_connected(int fd, const char **trouble);

#endif
