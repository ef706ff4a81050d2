/* load.c - showing what is stored: all of it in pages, one job, the retained keys.
 *
 * No transaction is left open between two pages, and each job is shown as it is stored when its
 * turn comes, whenever it was read; in which order they come says cursor.c.
 */
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "sqlite/row.h"
#include "sqlite/session.h"

/* ---- A job ----------------------------------------------------------------------------------- */

/* A key that has gone over to another job is not shown. */
static int judge_key(struct due__sqlite *s, due_record *r)
{
    sqlite3_stmt *statement = s->statement[DUE__SQL_KEY_OWNER];
    int64_t lives = 0;

    if (r->key_len == 0)
        return 0;
    sqlite3_bind_blob(statement, 1, r->key, (int)r->key_len, SQLITE_STATIC);
    sqlite3_bind_blob(statement, 2, r->id.byte, DUE_STORE_ID_BYTES, SQLITE_STATIC);
    int rc = due__sqlite_number(s, DUE__SQL_KEY_OWNER, &lives);
    if (rc != 0 && rc != SQLITE_DONE)
        return due__sqlite_error(s, rc);
    if (!lives) {
        r->key = NULL;
        r->key_len = 0;
        r->keep_key_ns = 0;
    }
    return 0;
}

static int show_record(struct due__sqlite *s, due_record *record, due_store_visit *visit, void *ctx)
{
    int rc = judge_key(s, record);

    return rc == 0 ? visit(ctx, record) : rc;
}

/* Show the job of the row.  DUE_ECORRUPT, DUE_EVERSION: it makes no sense, or not here. */
static int show(struct due__sqlite *s, sqlite3_stmt *row, due_id id, due_store_visit *visit,
                void *ctx)
{
    struct due__record_room room;
    due_record record = { .id = id };
    int rc = due__sqlite_row_read(row, &record, &room);

    return rc == 0 ? show_record(s, &record, visit, ctx) : rc;
}

/* ---- What cannot be shown -------------------------------------------------------------------- */

static void note_newer(struct due__sqlite *s, due_id id)
{
    char text[DUE_ID_TEXT];

    if (!s->newer_told)
        due__store_log(&s->how, DUE_LOG_ERROR,
                       "job %s was stored by a newer version (DUE_EVERSION): it stays in the "
                       "store, and is not handed out here",
                       due_id_format(id, text));
    s->newer_told = true;
}

/* The end of what a load reads in one transaction. */
static void read_end(struct due__sqlite *s)
{
    if (!sqlite3_get_autocommit(s->db) && due__sqlite_run(s, DUE__SQL_COMMIT, NULL) != 0)
        due__sqlite_rollback(s);
}

static int move_aside(struct due__sqlite *s, int64_t slice, due_id id)
{
    static const enum due__sqlite_statement steps[] = { DUE__SQL_ASIDE, DUE__SQL_DROP };
    read_end(s);
    int rc = due__sqlite_run(s, DUE__SQL_BEGIN, NULL);
    int owner = rc == 0 ? due__sqlite_fence(s) : 0;

    for (size_t i = 0; i < 2 && rc == 0 && owner == 0; i++) {
        sqlite3_bind_blob(s->statement[steps[i]], 1, id.byte, DUE_STORE_ID_BYTES, SQLITE_STATIC);
        sqlite3_bind_int64(s->statement[steps[i]], 2, slice);
        rc = due__sqlite_run(s, steps[i], NULL);
    }
    if (rc == 0 && owner == 0) {
        sqlite3_bind_int64(s->statement[DUE__SQL_ADD], 1, -1);
        rc = due__sqlite_run(s, DUE__SQL_ADD, NULL);
    }
    if (rc == 0 && owner == 0)
        rc = due__sqlite_run(s, DUE__SQL_COMMIT, NULL);
    if (rc != 0 || owner != 0)
        due__sqlite_rollback(s);
    return owner != 0 ? owner : rc;
}

/* A job that makes no sense goes where nobody loads it from.  If that cannot be done it stays, and
 * is met again the next time. */
static void set_aside(struct due__sqlite *s, int64_t slice, due_id id)
{
    char text[DUE_ID_TEXT];
    bool aside = move_aside(s, slice, id) == 0;

    due__store_log(&s->how, DUE_LOG_ERROR, "job %s is damaged (DUE_ECORRUPT)%s",
                   due_id_format(id, text),
                   aside ? ": it was set aside, into the table aside" : "");
    pthread_mutex_lock(&s->counters);
    s->shown.quarantined += aside;
    pthread_mutex_unlock(&s->counters);
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

/* Show the job that lies there.  DUE_ENOENT: it does not. */
static int show_at(struct due__sqlite *s, int64_t slice, due_id id, due_store_visit *visit,
                   void *ctx)
{
    sqlite3_stmt *row = s->statement[DUE__SQL_FIND];
    int rc = DUE_ENOENT;

    sqlite3_bind_blob(row, 1, id.byte, DUE_STORE_ID_BYTES, SQLITE_STATIC);
    sqlite3_bind_int64(row, 2, slice);
    int code = sqlite3_step(row);
    if (code == SQLITE_ROW)
        rc = show(s, row, id, visit, ctx);
    sqlite3_reset(row);
    return code == SQLITE_ROW || code == SQLITE_DONE ? rc : due__sqlite_error(s, code);
}

/* A load has shown a job, with @rc: what cannot be shown is seen to, and what is gone holds up
 * nothing. */
static int shown_next(struct due__sqlite *s, int64_t slice, due_id id, int rc)
{
    if (rc == DUE_EVERSION)
        note_newer(s, id);
    else if (rc == DUE_ECORRUPT && sqlite3_errcode(s->db) != SQLITE_CORRUPT)
        set_aside(s, slice, id);
    else if (rc != DUE_ENOENT)
        return rc;
    return 0;
}

/* Show a job of the slice from what was read of it, or look it up. */
static int show_next(struct due__sqlite *s, const struct due__sqlite_gathered *it,
                     due_store_visit *visit, void *ctx)
{
    const struct due__sqlite_load *l = &s->load;
    due_id id = it->place.id;
    due_record record = { .id = id };
    struct due__record_room room;
    struct due__sqlite_row row;

    if (!due__sqlite_prefetch_get(&l->prefetch, it->kept, id, &row))
        return shown_next(s, l->slice, id, show_at(s, l->slice, id, visit, ctx));
    int rc = due__sqlite_row_job(&row, &record, &room);
    if (rc == 0)
        rc = show_record(s, &record, visit, ctx);
    return shown_next(s, l->slice, id, rc);
}

/* Those that came to where the load had been. */
static int show_passed(struct due__sqlite *s, size_t *left, due_store_visit *visit, void *ctx)
{
    struct due__sqlite_load *l = &s->load;
    int rc = 0;

    while (l->n_passed > 0 && *left > 0) {
        const struct due__sqlite_passed *it = &l->passed[l->n_passed - 1];
        int64_t slice = due__sqlite_slice(it->dead, it->place.at_ns);
        due_id id = it->place.id;

        rc = shown_next(s, slice, id, show_at(s, slice, id, visit, ctx));
        if (rc != 0)
            break;
        l->n_passed--;
        --*left;
    }
    return rc;
}

static int show_gathered(struct due__sqlite *s, size_t *left, due_store_visit *visit, void *ctx)
{
    struct due__sqlite_load *l = &s->load;
    int rc = 0;

    while (*left > 0 && l->next < l->n) {
        rc = show_next(s, &l->gathered[l->next], visit, ctx);
        if (rc != 0)
            break;
        l->next++;
        --*left;
        if ((*left & 63) == 0 && due__mono_ns() >= s->until_ns)
            break;
    }
    return rc;
}

static int load_page(struct due__sqlite *s, size_t left, due_store_visit *visit, void *ctx)
{
    struct due__sqlite_load *l = &s->load;
    int rc = due__sqlite_fence(s);

    if (rc == 0)
        rc = show_passed(s, &left, visit, ctx);
    while (rc == 0 && left > 0) {
        if (l->scans || l->next == l->n)
            rc = due__sqlite_gather(s);
        if (rc == 0 && l->next == l->n) {
            due__sqlite_cursor_end(l);
            return 0;
        }
        if (rc < 0 || l->scans)
            break;
        rc = show_gathered(s, &left, visit, ctx);
        if (due__mono_ns() >= s->until_ns)
            break;
    }
    return rc >= 0 ? 1 : rc;
}

/* In one transaction, which ends before anything is written, and with the call. */
int due__sqlite_load(struct due__sqlite *s, int rewind, size_t max, due_store_visit *visit,
                     void *ctx)
{
    if (rewind || !s->load.active)
        due__sqlite_cursor_begin(&s->load);
    int rc = due__sqlite_run(s, DUE__SQL_READ, NULL);
    rc = rc == 0 ? load_page(s, max > 0 ? max : 1, visit, ctx) : due__sqlite_error(s, rc);
    read_end(s);
    return rc;
}

/* ---- One job --------------------------------------------------------------------------------- */

int due__sqlite_locate(struct due__sqlite *s, due_id id, int64_t *slice)
{
    sqlite3_bind_blob(s->statement[DUE__SQL_LOCATE], 1, id.byte, DUE_STORE_ID_BYTES, SQLITE_STATIC);
    return due__sqlite_number(s, DUE__SQL_LOCATE, slice);
}

int due__sqlite_find(struct due__sqlite *s, due_id id, due_store_visit *visit, void *ctx)
{
    int64_t slice = 0;
    int code = due__sqlite_locate(s, id, &slice);

    if (code == SQLITE_DONE)
        return DUE_ENOENT;
    return code == 0 ? show_at(s, slice, id, visit, ctx) : due__sqlite_error(s, code);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

/* Keys come in their order: in a damaged file too, so that there is an end to them. */
static bool is_behind(const struct due__sqlite_keys *k, const void *key, size_t len)
{
    int order = memcmp(key, k->at, len < k->len ? len : k->len);

    return order > 0 || (order == 0 && len > k->len);
}

/* Show the key of the row, and go on behind it. */
static int show_key(struct due__sqlite *s, sqlite3_stmt *row, due_store_visit_key *visit, void *ctx)
{
    struct due__sqlite_keys *k = &s->keys;
    const void *key = sqlite3_column_blob(row, 0);
    int len = sqlite3_column_bytes(row, 0);
    due_id id;

    if (key == NULL || len > DUE_KEY_MAX || !due__sqlite_row_id(row, 1, &id) ||
        !is_behind(k, key, (size_t)len))
        return due__sqlite_error(s, SQLITE_CORRUPT);
    int rc = visit(ctx, key, (size_t)len, id, sqlite3_column_int64(row, 2));
    if (rc == 0) {
        memcpy(k->at, key, (size_t)len);
        k->len = (size_t)len;
    }
    return rc;
}

int due__sqlite_keys(struct due__sqlite *s, int rewind, size_t max, due_store_visit_key *visit,
                     void *ctx)
{
    struct due__sqlite_keys *k = &s->keys;
    sqlite3_stmt *row = s->statement[DUE__SQL_KEYS];
    struct due__sqlite_keys from;
    size_t shown = 0;
    int code = SQLITE_DONE;

    if (rewind)
        k->len = 0;
    int rc = due__sqlite_fence(s);
    if (rc != 0)
        return rc;
    from = *k;
    sqlite3_bind_blob(row, 1, from.at, (int)from.len, SQLITE_STATIC);
    sqlite3_bind_int64(row, 2, (sqlite3_int64)(max > 0 ? max : 1));
    while (rc == 0 && (code = sqlite3_step(row)) == SQLITE_ROW) {
        rc = show_key(s, row, visit, ctx);
        shown += rc == 0;
    }
    sqlite3_reset(row);
    if (rc != 0)
        return rc;
    if (code != SQLITE_DONE)
        return due__sqlite_error(s, code);
    return shown == (max > 0 ? max : 1);
}
