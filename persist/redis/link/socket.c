/* socket.c - the addresses behind a host's name, and sockets to them. */
#define _GNU_SOURCE
#include "redis/link/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Seconds until the kernel asks whether a silent server is still there, between two such questions,
 * and how many go unanswered. */
#define KEEP_IDLE_S  30
#define KEEP_AGAIN_S 10
#define KEEP_TIMES   3

static const char *trouble_of(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return "the connection was refused";
    case ENOENT:
        return "there is no such socket";
    case EACCES:
    case EPERM:
        return "the system does not let us connect";
    case EMFILE:
    case ENFILE:
        return "there are no descriptors left";
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return "the host cannot be reached";
    case EAGAIN:
        return "the server has too many connections waiting";
    default:
        return "the connection failed";
    }
}

static void find_path(struct due__targets *t, const char *path)
{
    t->path.sun_family = AF_UNIX;
    strncpy(t->path.sun_path, path, sizeof t->path.sun_path - 1);
    t->local = (struct addrinfo){ .ai_family = AF_UNIX,
                                  .ai_addr = (struct sockaddr *)&t->path,
                                  .ai_addrlen = sizeof t->path };
    t->next = &t->local;
}

bool due__targets_find(struct due__targets *t, const struct due__address *address)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
    char port[16];

    *t = (struct due__targets){ 0 };
    if (address->path != NULL) {
        find_path(t, address->path);
        return true;
    }
    snprintf(port, sizeof port, "%d", address->port);
    int rc = getaddrinfo(address->host, port, &hints, &t->found);

    if (rc == EAI_NONAME) {
        hints.ai_flags = AI_NUMERICSERV;
        rc = getaddrinfo(address->host, port, &hints, &t->found);
    }
    if (rc != 0)
        t->found = NULL;
    t->next = t->found;
    return rc == 0;
}

void due__targets_free(struct due__targets *t)
{
    if (t->found != NULL)
        freeaddrinfo(t->found);
    *t = (struct due__targets){ 0 };
}

size_t due__targets_left(const struct due__targets *t)
{
    size_t n = 0;

    for (const struct addrinfo *at = t->next; at != NULL; at = at->ai_next)
        n++;
    return n;
}

static void set_option(int fd, int level, int option, int value)
{
    /* A system that has it not does without. */
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

static void set_tcp_options(int fd)
{
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_AGAIN_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEP_TIMES);
}

int due__targets_begin(struct due__targets *t, const char **trouble)
{
    const struct addrinfo *to = t->next;
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    t->next = to->ai_next;
    if (fd < 0) {
        *trouble = trouble_of(errno);
        return -1;
    }
    if (to->ai_family != AF_UNIX)
        set_tcp_options(fd);
    /* After EINTR the kernel goes on connecting, as it does after EINPROGRESS. */
    if (connect(fd, to->ai_addr, to->ai_addrlen) == 0 || errno == EINPROGRESS || errno == EINTR)
        return fd;
    *trouble = trouble_of(errno);
    close(fd);
    return -1;
}

/* A port that nobody listens at may be the one the kernel picked for us: we talk to ourselves. */
static bool is_our_own(int fd)
{
    struct sockaddr_storage ours = { 0 };
    struct sockaddr_storage theirs = { 0 };
    socklen_t ours_len = sizeof ours;
    socklen_t theirs_len = sizeof theirs;

    if (getsockname(fd, (struct sockaddr *)&ours, &ours_len) != 0 ||
        getpeername(fd, (struct sockaddr *)&theirs, &theirs_len) != 0)
        return false;
    return ours.ss_family != AF_UNIX && ours_len == theirs_len &&
           memcmp(&ours, &theirs, ours_len) == 0;
}

bool due__socket_connected(int fd, const char **trouble)
{
    int error = 0;
    socklen_t len = sizeof error;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    if (error == 0 && is_our_own(fd))
        error = ECONNREFUSED;
    if (error != 0)
        *trouble = trouble_of(error);
    return error == 0;
}
