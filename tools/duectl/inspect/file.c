/* file.c - a store that is a file: which name means one, and the store of a run. */
#include "inspect/inspect.h"

#include <stdio.h>
#include <string.h>

static const char scheme[] = "sqlite:";

/* An address with a mistake is none the less no path: it may have a password in it, and paths are
 * shown. */
const char *ctl_file_of(const char *store)
{
    size_t len = sizeof scheme - 1;

    if (strncmp(store, scheme, len) == 0)
        return store + len;
    return store[strcspn(store, ":/")] == ':' ? NULL : store;
}

#ifdef CTL_HAVE_SQLITE

#include "due/sqlite.h"

static due_store *store_at(const char *path, const due_sqlite_options *sqlite)
{
    due_store *store = NULL;
    due_error error;

    if (due_sqlite_open(&store, path, sqlite, &error) == 0)
        return store;
    fprintf(stderr, "duectl: %s%s%s\n", error.text, error.hint[0] == '\0' ? "" : "; ", error.hint);
    return NULL;
}

due_store *ctl_file_store(const struct ctl_options *options)
{
    due_sqlite_options sqlite = { DUE_SQLITE_OPTIONS_INIT, .durability = options->require,
                                  .standby = options->standby };

    return store_at(ctl_file_of(options->store), &sqlite);
}

due_store *ctl_file_store_of(const char *path, bool must_exist, int *status)
{
    due_sqlite_options sqlite = { DUE_SQLITE_OPTIONS_INIT, .must_exist = must_exist };

    *status = CTL_USAGE;
    return store_at(path, &sqlite);
}

#else

static due_store *missing(void)
{
    fputs("duectl: this duectl was built without SQLite, and so without files; install "
          "libsqlite3-dev and build it again\n",
          stderr);
    return NULL;
}

due_store *ctl_file_store(const struct ctl_options *options)
{
    (void)options;
    return missing();
}

due_store *ctl_file_store_of(const char *path, bool must_exist, int *status)
{
    (void)path;
    (void)must_exist;
    *status = CTL_USAGE;
    return missing();
}

#endif
