/* file_salvage.c - what can be read of a file whose pages are damaged.
 *
 * The table is walked by its slices and ids from both ends, as far as that goes.  Which of the dead
 * lie between is found by way of their index, which is a tree of pages of its own, from both ends
 * likewise.  Each job is then looked up where it lies.  What waits has no index: of that which lies
 * between, some may be missed, and that is said.
 */
#include "inspect/inspect.h"

#ifdef CTL_HAVE_SQLITE

#include <stdio.h>
#include <string.h>

#include "inspect/file.h"
#include "sqlite/row.h"

/* Where a walk has come: slice and id; or along the index, the time of death and the id. */
struct step {
    int64_t at;
    due_id id;
};

struct salvage {
    sqlite3 *db;
    sqlite3_stmt *job, *owner; /* a job by its place; whether a key is still its */
    ctl_jobs_visit *visit;
    void *ctx;
    struct step low, high; /* of the table, what lies between was not reached yet */
    bool ended;            /* by the visit */
    bool missed;           /* an index cannot be read to its end either */
};

/* ---- One job --------------------------------------------------------------------------------- */

/* A key that went over to another job is not shown.  Of a table that cannot be read nothing is
 * known: then each has its own. */
static void judge_key(struct salvage *s, due_record *r)
{
    if (r->key_len == 0)
        return;
    sqlite3_bind_blob(s->owner, 1, r->key, (int)r->key_len, SQLITE_STATIC);
    sqlite3_bind_blob(s->owner, 2, r->id.byte, DUE_STORE_ID_BYTES, SQLITE_STATIC);
    int rc = sqlite3_step(s->owner);
    bool lost = rc == SQLITE_DONE || (rc == SQLITE_ROW && sqlite3_column_int(s->owner, 0) == 0);
    sqlite3_reset(s->owner);
    if (lost) {
        r->key_len = 0;
        r->keep_key_ns = 0;
    }
}

static void show(struct salvage *s, int64_t slice, due_id id)
{
    struct due__record_room room;
    due_record record = { .id = id, .topic = "" };
    int rc = DUE_ECORRUPT;

    sqlite3_bind_blob(s->job, 1, id.byte, DUE_STORE_ID_BYTES, SQLITE_STATIC);
    sqlite3_bind_int64(s->job, 2, slice);
    if (sqlite3_step(s->job) == SQLITE_ROW)
        rc = due__sqlite_row_read(s->job, &record, &room);
    if (rc == 0)
        judge_key(s, &record);
    s->ended = !s->visit(s->ctx, id, rc, &record);
    sqlite3_reset(s->job);
}

/* ---- Walks ----------------------------------------------------------------------------------- */

static int compare(const struct step *x, const struct step *y)
{
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return memcmp(x->id.byte, y->id.byte, DUE_STORE_ID_BYTES);
}

static bool is_between(const struct salvage *s, const struct step *place)
{
    return compare(place, &s->low) > 0 && compare(place, &s->high) < 0;
}

/* Show the job of each row that lies between; *@at is the last row.  With @until, up to there.
 * True: that was all. */
static bool walk(struct salvage *s, const char *query, struct step *at, const struct step *until)
{
    sqlite3_stmt *row = NULL;
    int rc = sqlite3_prepare_v2(s->db, query, -1, &row, NULL);

    if (rc == SQLITE_OK)
        rc = SQLITE_ROW;
    while (rc == SQLITE_ROW && !s->ended && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        struct step now = { .at = sqlite3_column_int64(row, 1) };
        struct step place = { .at = sqlite3_column_int64(row, 2) };

        if (!due__sqlite_row_id(row, 0, &now.id))
            continue;
        if (until != NULL && compare(&now, until) <= 0) {
            rc = SQLITE_DONE;
            break;
        }
        *at = now;
        place.id = now.id;
        if (is_between(s, &place))
            show(s, place.at, place.id);
    }
    sqlite3_finalize(row);
    return rc == SQLITE_DONE;
}

static const struct step before_all = { .at = INT64_MIN };

/* All places, from both ends.  True: that was all. */
static bool walk_table(struct salvage *s)
{
    struct step up = before_all;
    struct step down = { .at = INT64_MAX };
    bool all =
        walk(s, "SELECT id, slice, slice FROM job NOT INDEXED ORDER BY slice, id", &up, NULL);

    if (all || s->ended)
        return all;
    s->low = up;
    memset(down.id.byte, 0xff, DUE_STORE_ID_BYTES);
    all = walk(s, "SELECT id, slice, slice FROM job NOT INDEXED ORDER BY slice DESC, id DESC",
               &down, &up);
    s->high = down;
    return all;
}

#define DEAD "SELECT id, died, slice FROM job INDEXED BY job_dead WHERE died IS NOT NULL"

static void walk_all(struct salvage *s)
{
    struct step up = before_all;
    struct step down = before_all;

    s->low = before_all;
    s->high.at = INT64_MAX;
    memset(s->high.id.byte, 0xff, DUE_STORE_ID_BYTES);
    if (walk_table(s) || s->ended)
        return;
    s->missed = true;
    if (!walk(s, DEAD " ORDER BY died, slice, id", &up, NULL) && !s->ended)
        (void)walk(s, DEAD " ORDER BY died DESC, slice DESC, id DESC", &down, &up);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

/* The keys that are kept.  True: that was all. */
static bool walk_keys(struct salvage *s, due_store_visit_key *visit)
{
    sqlite3_stmt *row = NULL;
    int rc = sqlite3_prepare_v2(s->db, "SELECT key, job, kept FROM key WHERE kept IS NOT NULL", -1,
                                &row, NULL);

    if (rc == SQLITE_OK)
        rc = SQLITE_ROW;
    while (!s->ended && rc == SQLITE_ROW && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        due_id id;
        const void *key = sqlite3_column_blob(row, 0);
        int len = sqlite3_column_bytes(row, 0);

        if (key != NULL && len <= DUE_KEY_MAX && due__sqlite_row_id(row, 1, &id))
            s->ended = visit(s->ctx, key, (size_t)len, id, sqlite3_column_int64(row, 2)) != 0;
    }
    sqlite3_finalize(row);
    return rc == SQLITE_DONE;
}

/* ---- All of it ------------------------------------------------------------------------------- */

int ctl_file_salvage(const char *path, ctl_jobs_visit *visit, due_store_visit_key *visit_key,
                     void *ctx, bool *all)
{
    struct salvage s = { .visit = visit, .ctx = ctx };
    int status = ctl_file_open(path, &s.db);

    if (status != 0)
        return status;
    if (sqlite3_prepare_v2(s.db,
                           "SELECT " DUE__SQLITE_COLUMNS " FROM job WHERE slice = ?2 AND id = ?1",
                           -1, &s.job, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(s.db, "SELECT kept IS NULL FROM key WHERE key = ?1 AND job = ?2", -1,
                           &s.owner, NULL) != SQLITE_OK) {
        sqlite3_finalize(s.job);
        return ctl_file_broken(s.db, path);
    }
    walk_all(&s);
    *all = !s.ended && walk_keys(&s, visit_key) && !s.missed;
    sqlite3_finalize(s.job);
    sqlite3_finalize(s.owner);
    sqlite3_close(s.db);
    return s.ended ? CTL_BROKEN : CTL_FINE;
}

#else

#include <stdio.h>

int ctl_file_salvage(const char *path, ctl_jobs_visit *visit, due_store_visit_key *visit_key,
                     void *ctx, bool *all)
{
    (void)visit;
    (void)visit_key;
    (void)ctx;
    (void)all;
    fprintf(stderr, "duectl: %s: built without SQLite, and so without files\n", path);
    return CTL_USAGE;
}

#endif
