/* store.c - the store of a run, or of a command that is to own it. */
#include "inspect/inspect.h"

due_store *ctl_store_new(const struct ctl_options *options)
{
    return ctl_file_of(options->store) != NULL ? ctl_file_store(options)
                                               : ctl_server_store(options);
}

due_store *ctl_store_of(const struct ctl_look *look, bool must_exist, int *status)
{
    const char *path = ctl_file_of(look->url);

    return path != NULL ? ctl_file_store_of(path, must_exist, status)
                        : ctl_server_store_of(look, must_exist, status);
}

void ctl_store_free(due_store *store)
{
    if (store != NULL)
        store->verbs->free(store);
}
