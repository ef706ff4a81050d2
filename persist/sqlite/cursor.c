/* cursor.c - in which order a load shows the jobs, and which of them it would pass over.
 *
 * Jobs lie in slices of time, by id in each.  So a slice is read, sorted by time, and then shown
 * (prefetch.h); the dead have an index.  No transaction is left open meanwhile: what comes to a
 * place that was gathered already is noted, and shown besides.
 */
#include <stdlib.h>
#include <string.h>

#include "sqlite/row.h"
#include "sqlite/session.h"

/* ---- Places ---------------------------------------------------------------------------------- */

static int compare_places(const struct due__sqlite_place *a, const struct due__sqlite_place *b)
{
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns ? -1 : 1;
    return memcmp(a->id.byte, b->id.byte, DUE_STORE_ID_BYTES);
}

static int compare_for_sort(const void *a, const void *b)
{
    const struct due__sqlite_gathered *x = a;
    const struct due__sqlite_gathered *y = b;

    return compare_places(&x->place, &y->place);
}

/* Was everything up to @place gathered? */
static bool behind_cursor(const struct due__sqlite_load *l, bool dead,
                          const struct due__sqlite_place *place)
{
    if (dead != l->dead)
        return l->dead;
    return compare_places(place, &l->at) <= 0;
}

void due__sqlite_cursor_begin(struct due__sqlite_load *l)
{
    l->active = true;
    l->dead = l->scans = l->cut = false;
    l->n = l->next = l->n_passed = 0;
    l->slice = DUE__SQLITE_DEAD;
    l->at = l->floor = (struct due__sqlite_place){ .at_ns = INT64_MIN };
}

void due__sqlite_cursor_end(struct due__sqlite_load *l)
{
    free(l->gathered);
    due__sqlite_prefetch_free(&l->prefetch);
    free(l->passed);
    *l = (struct due__sqlite_load){ .active = false };
}

void due__sqlite_changed(struct due__sqlite *s, int64_t slice, due_id id)
{
    if (s->load.active && slice == s->load.slice)
        due__sqlite_prefetch_changed(&s->load.prefetch, id);
}

void due__sqlite_moved(struct due__sqlite *s, bool dead, int64_t at_ns, due_id id)
{
    struct due__sqlite_load *l = &s->load;
    struct due__sqlite_passed it = { .dead = dead, .place = { .at_ns = at_ns, .id = id } };

    if (!l->active || !behind_cursor(l, dead, &it.place))
        return;
    if (l->n_passed == l->passed_room) {
        size_t room = l->passed_room == 0 ? 64 : 2 * l->passed_room;
        struct due__sqlite_passed *more = realloc(l->passed, room * sizeof *more);

        if (more == NULL) {
            due__sqlite_cursor_begin(l); /* what cannot be noted is shown with all else once more */
            return;
        }
        l->passed = more;
        l->passed_room = room;
    }
    l->passed[l->n_passed++] = it;
}

/* ---- Gathering ------------------------------------------------------------------------------- */

/* Sort them, and let go of all but the earliest. */
static void keep_earliest(struct due__sqlite_load *l, size_t most)
{
    if (l->n > 0)
        qsort(l->gathered, l->n, sizeof *l->gathered, compare_for_sort);
    if (l->n <= most)
        return;
    l->n = most;
    l->cut = true;
}

static int gather_place(struct due__sqlite_load *l, size_t most,
                        const struct due__sqlite_place *place, sqlite3_stmt *row)
{
    if (compare_places(place, &l->floor) <= 0)
        return 0;
    if (l->n == 2 * most)
        keep_earliest(l, most);
    if (l->cut && compare_places(place, &l->gathered[most - 1].place) > 0)
        return 0;
    if (l->n == l->room) {
        size_t room = l->room == 0 ? 1024 : 2 * l->room;
        struct due__sqlite_gathered *more = realloc(l->gathered, room * sizeof *more);

        if (more == NULL)
            return SQLITE_NOMEM;
        l->gathered = more;
        l->room = room;
    }
    l->gathered[l->n++] = (struct due__sqlite_gathered){
        .place = *place, .kept = row != NULL ? due__sqlite_prefetch_add(&l->prefetch, row) : 0
    };
    return 0;
}

/* Begin with the next slice, or with what was left of one.  0, SQLITE_DONE: there is none, or an
 * error. */
static int begin_slice(struct due__sqlite *s)
{
    struct due__sqlite_load *l = &s->load;
    struct due__sqlite_place floor = { .at_ns = INT64_MIN };
    int64_t slice = l->slice;

    /* Whatever a damaged file answers with, what goes on only forwards comes to its end. */
    if (l->cut) {
        floor = l->at;
    } else {
        sqlite3_bind_int64(s->statement[DUE__SQL_SLICE], 1, slice);
        int rc = due__sqlite_number(s, DUE__SQL_SLICE, &slice);
        if (rc != 0)
            return rc;
        if (slice <= l->slice)
            return SQLITE_CORRUPT;
    }
    l->slice = slice;
    l->floor = floor;
    l->at = (struct due__sqlite_place){ .at_ns = due__sqlite_slice_end(slice) };
    memset(l->at.id.byte, 0xff, DUE_STORE_ID_BYTES);
    l->scanned = 0;
    l->cut = false;
    due__sqlite_prefetch_begin(&l->prefetch, s->prefetch_max);
    l->scans = true;
    return 0;
}

/* Read on in the slice: all of it, or so many rows.  An error of SQLite, or 0. */
static int scan_slice(struct due__sqlite *s)
{
    struct due__sqlite_load *l = &s->load;
    sqlite3_stmt *row = s->statement[DUE__SQL_ROWS];
    size_t rows = 0;
    int code = SQLITE_ROW;
    int rc = 0;

    sqlite3_bind_int64(row, 1, l->slice);
    sqlite3_bind_blob(row, 2, l->last.byte, (int)l->scanned, SQLITE_TRANSIENT);
    sqlite3_bind_int64(row, 3, (sqlite3_int64)due__sqlite_prefetch_room(&l->prefetch));
    while (rc == 0 && rows < s->scan_max && (code = sqlite3_step(row)) == SQLITE_ROW) {
        struct due__sqlite_place place = { .at_ns = sqlite3_column_int64(row, DUE__SQLITE_UNTIL) };

        bool forwards = due__sqlite_row_id(row, DUE__SQLITE_ID, &place.id) &&
                        (l->scanned == 0 || memcmp(place.id.byte, l->last.byte, l->scanned) > 0);
        rc = forwards ? gather_place(l, s->gather_max, &place, row) : SQLITE_CORRUPT;
        if (rc == 0) {
            l->last = place.id;
            l->scanned = DUE_STORE_ID_BYTES;
        }
        rows++;
    }
    sqlite3_reset(row);
    if (rc != 0 || code == SQLITE_ROW)
        return rc;
    if (code != SQLITE_DONE)
        return code;
    keep_earliest(l, s->gather_max);
    if (l->cut)
        l->at = l->gathered[l->n - 1].place;
    l->scans = false;
    return 0;
}

/* The dead, in the order of their index. */
static int gather_dead(struct due__sqlite *s)
{
    struct due__sqlite_load *l = &s->load;
    sqlite3_stmt *row = s->statement[DUE__SQL_DEAD];
    int code = SQLITE_ROW;
    int rc = 0;

    l->floor = l->at;
    l->cut = false;
    sqlite3_bind_int64(row, 1, l->floor.at_ns);
    sqlite3_bind_blob(row, 2, l->floor.id.byte, DUE_STORE_ID_BYTES, SQLITE_STATIC);
    sqlite3_bind_int64(row, 3, (sqlite3_int64)s->gather_max);
    while (rc == 0 && (code = sqlite3_step(row)) == SQLITE_ROW) {
        struct due__sqlite_place place = { .at_ns = sqlite3_column_int64(row, 0) };

        bool forwards = due__sqlite_row_id(row, 1, &place.id) && compare_places(&place, &l->at) > 0;
        rc = forwards ? gather_place(l, s->gather_max, &place, NULL) : SQLITE_CORRUPT;
        if (rc == 0)
            l->at = place;
    }
    sqlite3_reset(row);
    if (rc == 0 && code != SQLITE_DONE)
        rc = code;
    return l->n > 0 ? 0 : rc; /* those that were read are in order */
}

int due__sqlite_gather(struct due__sqlite *s)
{
    struct due__sqlite_load *l = &s->load;
    int rc = 0;

    if (!l->scans)
        l->n = l->next = 0;
    if (!l->dead && !l->scans) {
        rc = begin_slice(s);
        if (rc == SQLITE_DONE) {
            l->dead = true;
            l->slice = DUE__SQLITE_DEAD;
            l->at = (struct due__sqlite_place){ .at_ns = INT64_MIN };
            rc = 0;
        }
    }
    if (rc == 0)
        rc = l->dead ? gather_dead(s) : scan_slice(s);
    if (rc != 0)
        return due__sqlite_error(s, rc);
    return !l->dead || l->n > 0;
}
