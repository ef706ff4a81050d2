/* sqlite_place.h - a folder of the test's own for one file, and stores on it. */
#ifndef SQLITE_PLACE_H
#define SQLITE_PLACE_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "due/sqlite.h"
#include "lab/crew.h"

struct sqlite_place {
    char folder[64];
    char path[96]; /* of the file */
    due_sqlite_options options;
};

/* In memory, where there is such a folder: what is tested is what the store does, not the disk. */
static inline void sqlite_place_open(struct sqlite_place *p)
{
    struct stat shm;
    bool fast = stat("/dev/shm", &shm) == 0 && access("/dev/shm", W_OK) == 0;

    *p = (struct sqlite_place){ .options = { DUE_SQLITE_OPTIONS_INIT } };
    snprintf(p->folder, sizeof p->folder, "%s/due-sqlite-XXXXXX", fast ? "/dev/shm" : "/tmp");
    CREW_CHECK(mkdtemp(p->folder) != NULL, "");
    snprintf(p->path, sizeof p->path, "%s/jobs.db", p->folder);
}

/* What begins with the file's name and ends in @end goes; NULL: all of it. */
static inline void sqlite_place_unlink(const struct sqlite_place *p, const char *end)
{
    static const char *const ends[] = { "", "-wal", "-shm", "-owner", "-journal" };
    char path[128];

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (end != NULL && strcmp(end, ends[i]) != 0)
            continue;
        snprintf(path, sizeof path, "%s%s", p->path, ends[i]);
        (void)unlink(path);
    }
}

static inline void sqlite_place_close(const struct sqlite_place *p)
{
    sqlite_place_unlink(p, NULL);
    CREW_CHECK(rmdir(p->folder) == 0, ": %s is not empty", p->folder);
}

/* ---- Hooks of a store_maker ---- */

static inline due_store *sqlite_place_store(void *place)
{
    struct sqlite_place *p = place;
    due_store *store = NULL;
    due_error error = { .text = "" };
    int rc = due_sqlite_open(&store, p->path, &p->options, &error);

    CREW_CHECK(rc == 0, ": %s: %s", due_error_name(rc), error.text);
    return store;
}

static inline void sqlite_place_fresh(void *place)
{
    sqlite_place_unlink(place, NULL);
}

/* Whoever comes next finds no lock. */
static inline void sqlite_place_end_lease(void *place)
{
    sqlite_place_unlink(place, "-owner");
}

/* The file is gone, and what belongs to it. */
static inline void sqlite_place_remove(void *place)
{
    sqlite_place_unlink(place, "");
    sqlite_place_unlink(place, "-wal");
    sqlite_place_unlink(place, "-shm");
}

#endif
