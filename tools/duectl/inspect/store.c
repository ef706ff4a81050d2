/* store.c - the store of a run. */
#include "inspect/inspect.h"

#include <stdio.h>

#include "due/redis.h"

due_store *ctl_store_new(const struct ctl_options *options)
{
    due_redis_options redis = { DUE_REDIS_OPTIONS_INIT, .client_name = "duectl" };
    due_store *store = NULL;
    due_error error;

    if (ctl_file_of(options->store) != NULL)
        return ctl_file_store(options);
    redis.require = options->require;
    redis.assume = options->assume;
    redis.standby = options->standby;
    if (due_redis_open(&store, options->store, &redis, &error) == 0)
        return store;
    fprintf(stderr, "duectl: %s%s%s\n", error.text, error.hint[0] == '\0' ? "" : "; ", error.hint);
    return NULL;
}

void ctl_store_free(due_store *store)
{
    if (store != NULL)
        store->verbs->free(store);
}
