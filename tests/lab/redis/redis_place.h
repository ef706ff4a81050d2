/* redis_place.h - a Redis server of the test's own behind the fault proxy, and stores on it. */
#ifndef REDIS_PLACE_H
#define REDIS_PLACE_H

#include <stdio.h>

#include "lab/crew.h"
#include "due/redis.h"
#include "lab/fault_proxy.h"
#include "lab/redis/redis_server.h"

struct place {
    struct redis_server server;
    struct fault_proxy *proxy;
    char proxy_path[112];
    char url[160];
    due_redis_options options;
};

/* The rest, when the server runs. */
static inline void place_begin(struct place *p)
{
    snprintf(p->proxy_path, sizeof p->proxy_path, "%s/proxy", p->server.dir);
    snprintf(p->url, sizeof p->url, "unix://%s", p->proxy_path);
    p->proxy = fault_proxy_start(p->proxy_path, p->server.socket);
    CREW_CHECK(p->proxy != NULL, ": no proxy");
    p->options = (due_redis_options){ DUE_REDIS_OPTIONS_INIT, .backoff_min_ns = DUE_MS(1) };
}

/* False: there is no redis-server to be started. */
static inline bool place_open(struct place *p)
{
    int rc = redis_server_start(&p->server, NULL);

    if (rc == REDIS_SERVER_MISSING)
        return false;
    CREW_CHECK(rc == 0, ": the server does not start");
    place_begin(p);
    return true;
}

static inline void place_close(struct place *p)
{
    fault_proxy_stop(p->proxy);
    redis_server_stop(&p->server);
}

static inline due_store *place_store(void *place)
{
    struct place *p = place;
    due_store *store = NULL;
    due_error error = { .text = "" };
    int rc = due_redis_open(&store, p->url, &p->options, &error);

    CREW_CHECK(rc == 0, ": %s: %s", due_error_name(rc), error.text);
    return store;
}

#endif
