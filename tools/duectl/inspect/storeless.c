/* storeless.c - what is said where the library was built without the Redis store. */
#include "inspect/inspect.h"

#include <stdio.h>

static int missing(void)
{
    fputs("duectl: this duectl was built without hiredis, and so without servers; install "
          "libhiredis-dev and build it again\n",
          stderr);
    return CTL_USAGE;
}

due_store *ctl_store_new(const struct ctl_options *options)
{
    if (ctl_file_of(options->store) != NULL)
        return ctl_file_store(options);
    missing();
    return NULL;
}

void ctl_store_free(due_store *store)
{
    if (store != NULL)
        store->verbs->free(store);
}

int ctl_restore(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return missing();
}

int ctl_doctor(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return missing();
}

int ctl_verify(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return missing();
}
