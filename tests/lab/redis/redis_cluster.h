/* redis_cluster.h - a server of the test's own that is a node in cluster mode: of one slot, so that
 * a script that touches a key of another one ends with an error, or of all of them.
 */
#ifndef REDIS_CLUSTER_H
#define REDIS_CLUSTER_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lab/redis/redis_server.h"

enum { REDIS_SLOTS = 16384 };

/* Until a command for this key is not refused. */
static inline bool redis_cluster_is_up(const struct redis_server *s, const char *key)
{
    const char *const words[] = { "DEL", key, NULL };
    char answer[128] = "";

    for (int i = 0; i < 3000 && answer[0] != ':'; i++) {
        if (i > 0)
            usleep(10000);
        if (redis_server_ask(s, words, answer, sizeof answer) < 0)
            return false;
    }
    return answer[0] == ':';
}

static inline bool redis_cluster_take(const struct redis_server *s, unsigned from, unsigned upto)
{
    static char text[REDIS_SLOTS][8];
    static const char *words[REDIS_SLOTS + 3];
    char answer[128];
    size_t n = 0;

    words[n++] = "CLUSTER";
    words[n++] = "ADDSLOTS";
    for (unsigned slot = from; slot < upto; slot++) {
        snprintf(text[slot], sizeof text[slot], "%u", slot % REDIS_SLOTS);
        words[n++] = text[slot];
    }
    words[n] = NULL;
    return redis_server_ask(s, words, answer, sizeof answer) > 0 && answer[0] == '+';
}

/* As redis_server_start().  @key: the slot of that one; NULL: all. */
static inline int redis_cluster_start(struct redis_server *s, const char *key)
{
    char port[8]; /* of the cluster's bus: that of another test's node is taken */
    const char *const options[] = { "--cluster-enabled",
                                    "yes",
                                    "--cluster-config-file",
                                    "nodes.conf",
                                    "--cluster-require-full-coverage",
                                    "no",
                                    "--port",
                                    "0",
                                    "--cluster-port",
                                    port,
                                    NULL };
    int rc = -1;
    for (unsigned i = 0; i < 5 && rc == -1; i++) {
        snprintf(port, sizeof port, "%u", 20000 + ((unsigned)getpid() * 7 + i * 997) % 10000);
        rc = redis_server_start(s, options);
    }
    unsigned slot = 0;

    if (rc != 0)
        return rc;
    if (key != NULL) {
        const char *const words[] = { "CLUSTER", "KEYSLOT", key, NULL };
        char answer[128];

        if (redis_server_ask(s, words, answer, sizeof answer) < 0 ||
            sscanf(answer, ":%u", &slot) != 1)
            return -1;
    }
    bool taken = redis_cluster_take(s, slot, key != NULL ? slot + 1 : REDIS_SLOTS);
    return taken && redis_cluster_is_up(s, key != NULL ? key : "x") ? 0 : -1;
}

#endif
