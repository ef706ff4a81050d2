/* store_sqlite.c - the suite on the SQLite store, in a folder of the test's own, at each level.
 *
 * Between SQLite and the system stands a disk that can be full, and that fails when it is told to.
 * Under ThreadSanitizer one level is enough: to threads they are alike.
 */
#include <stdio.h>
#include <stdlib.h>

#ifdef DUE_HAVE_SQLITE

#include "lab/sqlite/disk_vfs.h"
#include "lab/sqlite/sqlite_place.h"
#include "store/store_suite.h"

/* What comes next cannot reach the file, once. */
static void cut(void *place)
{
    (void)place;
    disk.next[DISK_LOCK] = true;
}

static void full(void *place, bool is_full)
{
    (void)place;
    disk.full = is_full;
}

/* All of it was written, but not synced; or not even written.  A level that does not sync then has
 * no doubt. */
static void doubt(void *place, bool lands)
{
    (void)place;
    disk.next[lands ? DISK_SYNC : DISK_WRITE] = true;
}

static int suite(struct sqlite_place *place, enum due_durability level, const char *only)
{
    struct store_maker maker = { .name = "sqlite store",
                                 .make = sqlite_place_store,
                                 .ctx = place,
                                 .fresh = sqlite_place_fresh,
                                 .end_lease = sqlite_place_end_lease,
                                 .cut = cut,
                                 .lose = sqlite_place_remove,
                                 .full = full,
                                 .doubt = doubt,
                                 .jobs = 20000 };

    place->options.durability = level;
    return store_suite_run(&maker, only);
}

int main(void)
{
    struct sqlite_place place;
    const char *only = getenv("STORE_SUITE_ONLY");

    crew_watchdog("store_sqlite", 280);
    sqlite_place_open(&place);
    disk_begin(place.path);
    int failed = suite(&place, DUE_DURABLE_ALWAYS, only);
#ifndef __SANITIZE_THREAD__
    failed |= suite(&place, DUE_DURABLE_EVERYSEC, only != NULL ? only : "c");
    failed |= suite(&place, DUE_DURABLE_NONE, only != NULL ? only : "commit");
#endif
    disk_end();
    sqlite_place_close(&place);
    return failed;
}

#else

int main(void)
{
    printf("store_sqlite: built without the SQLite store\n");
    return 77;
}

#endif
