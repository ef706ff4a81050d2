/* store.c - the store of a run. */
#include "inspect/inspect.h"

due_store *ctl_store_new(const struct ctl_options *options)
{
    return ctl_file_of(options->store) != NULL ? ctl_file_store(options)
                                               : ctl_server_store(options);
}

void ctl_store_free(due_store *store)
{
    if (store != NULL)
        store->verbs->free(store);
}
