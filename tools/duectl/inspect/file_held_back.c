/* file_held_back.c - which topics of a queue in a file are paused or limited, as is stored there.
 * docs/sqlite-layout.md has the table, which is there once anything was.
 */
#include "inspect/inspect.h"

#ifdef CTL_HAVE_SQLITE

#include <string.h>

#include "inspect/file.h"

static const char query[] = "SELECT topic, paused, most FROM held_back";

/* False: the visitor has enough. */
static bool show(sqlite3_stmt *row, ctl_held_back_visit *visit, void *ctx)
{
    const void *bytes = sqlite3_column_blob(row, 0);
    size_t len = (size_t)sqlite3_column_bytes(row, 0);
    char topic[DUE_TOPIC_LENGTH + 1];
    bool paused = sqlite3_column_int64(row, 1) != 0;
    int64_t limit = sqlite3_column_int64(row, 2);

    if (len > DUE_TOPIC_LENGTH || (!paused && limit <= 0))
        return true; /* of nobody we know */
    if (len > 0)
        memcpy(topic, bytes, len);
    topic[len] = '\0';
    return visit(ctx, topic, paused, limit > 0 ? (uint64_t)limit : 0);
}

int ctl_file_held_back(const char *path, ctl_held_back_visit *visit, void *ctx)
{
    sqlite3_stmt *row = NULL;
    sqlite3 *db;
    int status = ctl_file_open(path, &db);
    int rc = SQLITE_DONE;

    if (status != 0)
        return status;
    if (ctl_file_number(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'held_back'") > 0)
        rc = sqlite3_prepare_v2(db, query, -1, &row, NULL);
    while (row != NULL && (rc = sqlite3_step(row)) == SQLITE_ROW && show(row, visit, ctx))
        ;
    sqlite3_finalize(row);
    if (rc != SQLITE_DONE && rc != SQLITE_ROW)
        return ctl_file_broken(db, path);
    sqlite3_close(db);
    return CTL_FINE;
}

#else

/* Whoever asks has been told already that there are no files. */
int ctl_file_held_back(const char *path, ctl_held_back_visit *visit, void *ctx)
{
    (void)path;
    (void)visit;
    (void)ctx;
    return CTL_USAGE;
}

#endif
