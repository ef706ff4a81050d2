/* redis_replica.c - private servers that follow one another. */
#include "lab/redis/redis_replica.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TRIES 4000 /* of 5 ms each, until a replica is in step */
#define PORTS 5    /* somebody else can take one before the server does */

/* A port that nobody has just now, or -1. */
static int free_port(void)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int port = -1;

    if (fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0 &&
        getsockname(fd, (struct sockaddr *)&a, &len) == 0)
        port = ntohs(a.sin_port);
    if (fd >= 0)
        close(fd);
    return port;
}

/* False: there is not room for all. */
static int append(const char **words, size_t *n, const char *const *more)
{
    for (size_t i = 0; more != NULL && more[i] != NULL; i++) {
        if (*n == REDIS_SERVER_OPTIONS)
            return 0;
        words[(*n)++] = more[i];
    }
    words[*n] = NULL;
    return 1;
}

/* Start it with a port of its own. */
static int start_with(struct redis_server *s, const char *const *options,
                      const char *const *besides)
{
    const char *words[REDIS_SERVER_OPTIONS + 1];
    char port[16];
    int rc = -1;

    for (int i = 0; i < PORTS && rc != 0 && rc != REDIS_SERVER_MISSING; i++) {
        const char *const own[] = {
            "--bind", "127.0.0.1", "--port", port, "--repl-diskless-sync-delay", "0", NULL
        };
        size_t n = 0;

        snprintf(port, sizeof port, "%d", free_port());
        if (!append(words, &n, options) || !append(words, &n, besides) || !append(words, &n, own))
            return -1;
        rc = redis_server_start(s, words);
        if (rc != 0 && rc != REDIS_SERVER_MISSING)
            redis_server_stop(s);
    }
    return rc;
}

/* The port of @s, as text. */
static int port_of(const struct redis_server *s, char port[16])
{
    char answer[128];
    long n = redis_server_ask(s, (const char *const[]){ "CONFIG", "GET", "port", NULL }, answer,
                              sizeof answer);

    return n > 0 && sscanf(answer, "*2 $4 port $%*d %15[0-9]", port) == 1 ? 0 : -1;
}

static int in_step(const struct redis_server *replica)
{
    char answer[8192];

    for (int i = 0; i < TRIES; i++) {
        long n = redis_server_ask(replica, (const char *const[]){ "INFO", "replication", NULL },
                                  answer, sizeof answer);
        if (n > 0 && strstr(answer, "master_link_status:up") != NULL)
            return 0;
        poll(NULL, 0, 5);
    }
    fprintf(stderr, "redis_replica: it does not follow; see %s/server.log\n", replica->dir);
    return -1;
}

int redis_primary_start(struct redis_server *primary, const char *const *options)
{
    return start_with(primary, options, NULL);
}

int redis_replica_start(struct redis_server *replica, const struct redis_server *primary,
                        const char *const *options)
{
    char port[16];

    if (port_of(primary, port) != 0)
        return -1;
    int rc = start_with(replica, options,
                        (const char *const[]){ "--replicaof", "127.0.0.1", port, NULL });
    if (rc == 0)
        rc = in_step(replica);
    if (rc != 0)
        redis_server_stop(replica);
    return rc;
}

int redis_replica_promote(const struct redis_server *replica)
{
    char answer[128];
    long n = redis_server_ask(replica, (const char *const[]){ "REPLICAOF", "NO", "ONE", NULL },
                              answer, sizeof answer);

    return n > 0 && answer[0] == '+' ? 0 : -1;
}
