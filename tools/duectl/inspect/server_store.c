/* server_store.c - the store of a run that is on a server. */
#include "inspect/inspect.h"

#include <stdio.h>

#include "due/redis.h"

due_store *ctl_server_store(const struct ctl_options *options)
{
    due_redis_options redis = { DUE_REDIS_OPTIONS_INIT, .client_name = "duectl" };
    due_store *store = NULL;
    due_error error;

    redis.require = options->require;
    redis.assume = options->assume;
    redis.standby = options->standby;
    if (due_redis_open(&store, options->store, &redis, &error) == 0)
        return store;
    fprintf(stderr, "duectl: %s%s%s\n", error.text, error.hint[0] == '\0' ? "" : "; ", error.hint);
    return NULL;
}
