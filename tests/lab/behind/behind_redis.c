/* behind_redis.c - a store in Redis behind every memory disk, with LAB_STORE=redis.
 *
 * The program has one server.  Criterion starts the program once more for each test: they find the
 * server of the first in the environment, and it ends with that one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "due/redis.h"
#include "lab/crew.h"
#include "lab/memory_behind.h"
#include "lab/redis/redis_server.h"

#define SERVER "LAB_REDIS"

static struct redis_server server; /* of the first, */
static pid_t first;                /* and not of its children */

static void *behind_place(void)
{
    return &server;
}

static due_store *behind_make(void *place)
{
    due_redis_options options = { DUE_REDIS_OPTIONS_INIT, .lease_ns = DUE_S(600) };
    const char *url = getenv(SERVER);
    due_store *store = NULL;
    due_error error = { .text = "" };

    (void)place;
    CREW_CHECK(url != NULL, "");
    int rc = due_redis_open(&store, url, &options, &error);
    CREW_CHECK(rc == 0, ": %s: %s", due_error_name(rc), error.text);
    return store;
}

static void behind_remove(void *place)
{
    (void)place;
}

static struct memory_behind_maker behind_redis = {
    .name = "redis", .place = behind_place, .make = behind_make, .remove = behind_remove
};

static void behind_end(void)
{
    if (getpid() == first)
        redis_server_stop(&server);
}

__attribute__((constructor)) static void behind_begin(void)
{
    const char *wanted = getenv("LAB_STORE");

    memory_behind_offer(&behind_redis);
    if (wanted == NULL || strcmp(wanted, "redis") != 0 || getenv(SERVER) != NULL)
        return;
    int rc = redis_server_start(&server, NULL);
    if (rc == REDIS_SERVER_MISSING)
        _Exit(rc);
    CREW_CHECK(rc == 0, ": the server does not start");
    first = getpid();
    setenv(SERVER, server.url, 1);
    atexit(behind_end);
}
