/* file_jobs.c - the jobs of a file, one after another.
 *
 * The key of a job is its slice of time and its id, so each page sorts what its slice has left.
 * Where a slice is crowded, pages grow: else a slice of n jobs would be sorted n / PAGE_MIN times.
 */
#include "inspect/inspect.h"

#ifdef CTL_HAVE_SQLITE

#include <stdio.h>
#include <string.h>

#include "inspect/file.h"
#include "sqlite/row.h"

#define SLICE (DUE__SQLITE_RECORD + 1)

enum { PAGE_MIN = 256, PAGE_MAX = 16384 };

static const char waiting[] = "SELECT " DUE__SQLITE_COLUMNS ", slice FROM job WHERE died IS NULL"
                              " AND (slice, until, id) > (?1, ?2, ?3)"
                              " ORDER BY slice, until, id LIMIT ?4";
static const char dead[] =
    "SELECT " DUE__SQLITE_COLUMNS ", slice FROM job WHERE died IS NOT NULL AND ?1 = ?1"
    " AND (died, slice, id) > (?2, -1, ?3)"
    " ORDER BY died, slice, id LIMIT ?4";

static const char named[] = DUE__SQLITE_SLICES
    " SELECT " DUE__SQLITE_COLUMNS " FROM one CROSS JOIN job ON slice = number AND id = ?1";

/* Where the last page has ended. */
struct place {
    int64_t slice, at_ns;
    due_id id;
};

/* The rows of a page.  How many; -1: the visit has ended it; -2: it cannot be read. */
static int show_page(sqlite3_stmt *row, bool is_dead, int most, struct place *from,
                     ctl_jobs_visit *visit, void *ctx)
{
    int column = is_dead ? DUE__SQLITE_DIED : DUE__SQLITE_UNTIL;
    bool more = true;
    int n = 0;
    int rc = SQLITE_ROW;

    sqlite3_bind_int64(row, 1, from->slice);
    sqlite3_bind_int64(row, 2, from->at_ns);
    sqlite3_bind_blob(row, 3, from->id.byte, DUE_STORE_ID_BYTES, SQLITE_TRANSIENT);
    sqlite3_bind_int(row, 4, most);
    while (more && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        struct due__record_room room;
        due_record record = { .topic = "" };
        due_id id = { { 0 } };

        if (!due__sqlite_row_id(row, DUE__SQLITE_ID, &id))
            return -2;
        record.id = from->id = id;
        from->slice = sqlite3_column_int64(row, SLICE);
        from->at_ns = sqlite3_column_int64(row, column);
        more = visit(ctx, id, due__sqlite_row_read(row, &record, &room), &record);
        n++;
    }
    sqlite3_reset(row);
    return !more ? -1 : rc == SQLITE_DONE ? n : -2;
}

/* What a query shows, page by page: no transaction stays open meanwhile.  As show_page(). */
static int show(sqlite3 *db, const char *query, bool is_dead, ctl_jobs_visit *visit, void *ctx)
{
    struct place from = { .slice = INT64_MIN, .at_ns = INT64_MIN };
    sqlite3_stmt *row = NULL;
    int most = PAGE_MIN;
    int n = -2;

    if (sqlite3_prepare_v2(db, query, -1, &row, NULL) == SQLITE_OK) {
        do {
            int64_t slice = from.slice;

            n = show_page(row, is_dead, most, &from, visit, ctx);
            if (from.slice != slice)
                most = PAGE_MIN;
            else if (most < PAGE_MAX)
                most *= 2;
        } while (n > 0);
    }
    sqlite3_finalize(row);
    return n;
}

int ctl_file_jobs(const char *path, ctl_jobs_visit *visit, void *ctx)
{
    sqlite3 *db;
    int status = ctl_file_open(path, &db);

    if (status != 0)
        return status;
    int n = show(db, waiting, false, visit, ctx);
    if (n == 0)
        n = show(db, dead, true, visit, ctx);
    if (n == -2)
        return ctl_file_broken(db, path);
    sqlite3_close(db);
    return CTL_FINE;
}

/* As show_page(), of one job. */
static int show_named(sqlite3_stmt *row, due_id id, ctl_jobs_visit *visit, void *ctx)
{
    struct due__record_room room;
    due_record record = { .id = id, .topic = "" };
    int rc;

    sqlite3_bind_blob(row, 1, id.byte, DUE_STORE_ID_BYTES, SQLITE_TRANSIENT);
    rc = sqlite3_step(row);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return -2;
    int read = rc == SQLITE_ROW ? due__sqlite_row_read(row, &record, &room) : DUE_ENOENT;
    bool more = visit(ctx, id, read, &record);
    sqlite3_reset(row);
    return more ? 0 : -1;
}

int ctl_file_jobs_named(const char *path, const due_id *ids, size_t n, ctl_jobs_visit *visit,
                        void *ctx)
{
    sqlite3_stmt *row = NULL;
    sqlite3 *db;
    int status = ctl_file_open(path, &db);

    if (status != 0)
        return status;
    int rc = sqlite3_prepare_v2(db, named, -1, &row, NULL) == SQLITE_OK ? 0 : -2;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = show_named(row, ids[i], visit, ctx);
    sqlite3_finalize(row);
    if (rc == -2)
        return ctl_file_broken(db, path);
    sqlite3_close(db);
    return CTL_FINE;
}

#else

#include <stdio.h>

int ctl_file_jobs_named(const char *path, const due_id *ids, size_t n, ctl_jobs_visit *visit,
                        void *ctx)
{
    (void)ids;
    (void)n;
    return ctl_file_jobs(path, visit, ctx);
}

int ctl_file_jobs(const char *path, ctl_jobs_visit *visit, void *ctx)
{
    (void)visit;
    (void)ctx;
    fprintf(stderr, "duectl: %s: built without SQLite, and so without files\n", path);
    return CTL_USAGE;
}

#endif
