/* server_store.c - a store on a server: of a run, or of a command that is to own it. */
#include "inspect/server.h"

#include <stdio.h>

#include "due/redis.h"

static due_store *store_at(const char *url, const due_redis_options *redis)
{
    due_store *store = NULL;
    due_error error;

    if (due_redis_open(&store, url, redis, &error) == 0)
        return store;
    fprintf(stderr, "duectl: %s%s%s\n", error.text, error.hint[0] == '\0' ? "" : "; ", error.hint);
    return NULL;
}

due_store *ctl_server_store(const struct ctl_options *options)
{
    due_redis_options redis = { DUE_REDIS_OPTIONS_INIT, .client_name = "duectl" };

    redis.require = options->require;
    redis.assume = options->assume;
    redis.standby = options->standby;
    return store_at(options->store, &redis);
}

/* Opening would make the queue.  0, or an exit status: said why not. */
static int is_there(const struct ctl_look *look)
{
    struct ctl_server server;
    struct ctl_keys keys;
    int status = ctl_server_open(&server, look->url);

    if (status != 0)
        return status;
    ctl_keys_make(&keys, look->queue);
    status = ctl_queue_is_there(&server, &keys, look->queue);
    ctl_server_close(&server);
    return status;
}

due_store *ctl_server_store_of(const struct ctl_look *look, bool must_exist, int *status)
{
    due_redis_options redis = { DUE_REDIS_OPTIONS_INIT, .client_name = "duectl" };

    redis.allow_eviction = must_exist; /* what is there is only read */
    *status = must_exist ? is_there(look) : 0;
    if (*status != 0)
        return NULL;
    *status = CTL_USAGE;
    return store_at(look->url, &redis);
}
