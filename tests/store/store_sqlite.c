/* store_sqlite.c - the suite on the SQLite store, in a folder of the test's own, at each level. */
#include <stdio.h>
#include <stdlib.h>

#ifdef DUE_HAVE_SQLITE

#include "lab/sqlite/sqlite_place.h"
#include "store/store_suite.h"

static int suite(struct sqlite_place *place, enum due_durability level, const char *only)
{
    struct store_maker maker = { .name = "sqlite store",
                                 .make = sqlite_place_store,
                                 .ctx = place,
                                 .fresh = sqlite_place_fresh,
                                 .end_lease = sqlite_place_end_lease,
                                 .lose = sqlite_place_remove,
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
    int failed = suite(&place, DUE_DURABLE_ALWAYS, only);
    failed |= suite(&place, DUE_DURABLE_EVERYSEC, only != NULL ? only : "c");
    failed |= suite(&place, DUE_DURABLE_NONE, only != NULL ? only : "commit");
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
