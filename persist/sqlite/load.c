/* load.c - showing what is stored: all of it in pages, one job, the retained keys.
 *
 * A page is a query of its own, from the place of the job that was shown last, so no transaction is
 * left open between two of them, and each shows what is stored when it is asked.  What moves from
 * behind that place to before it meanwhile is noted, and shown by its id.
 */
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "sqlite/row.h"
#include "sqlite/session.h"

/* ---- Places ---------------------------------------------------------------------------------- */

static int compare(const struct due__sqlite_place *a, const struct due__sqlite_place *b)
{
    if (a->dead != b->dead)
        return a->dead ? 1 : -1;
    if (a->topic != b->topic)
        return a->topic < b->topic ? -1 : 1;
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns ? -1 : 1;
    return memcmp(a->id.byte, b->id.byte, DUE_STORE_ID_BYTES);
}

static void begin(struct due__sqlite_load *l)
{
    l->active = true;
    l->n_passed = 0;
    l->at = (struct due__sqlite_place){ .topic = INT64_MIN, .at_ns = INT64_MIN };
}

void due__sqlite_moved(struct due__sqlite *s, const struct due__sqlite_place *from,
                       const struct due__sqlite_place *to)
{
    struct due__sqlite_load *l = &s->load;

    if (!l->active || compare(to, &l->at) > 0 || (from != NULL && compare(from, &l->at) <= 0))
        return;
    if (l->n_passed == l->passed_room) {
        size_t room = l->passed_room == 0 ? 64 : 2 * l->passed_room;
        due_id *more = realloc(l->passed, room * sizeof *more);

        if (more == NULL) {
            begin(l); /* what cannot be noted is shown with all else, once more */
            return;
        }
        l->passed = more;
        l->passed_room = room;
    }
    l->passed[l->n_passed++] = to->id;
}

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

/* Show the job of the row.  DUE_ECORRUPT, DUE_EVERSION: it makes no sense, or not here. */
static int show(struct due__sqlite *s, sqlite3_stmt *row, due_id id, due_store_visit *visit,
                void *ctx)
{
    struct due__record_room room;
    due_record record = { .id = id };
    int rc = due__sqlite_row_read(row, &record, &room);

    if (rc == 0)
        rc = judge_key(s, &record);
    if (rc == 0)
        rc = visit(ctx, &record);
    return rc;
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

static int move_aside(struct due__sqlite *s, due_id id)
{
    static const enum due__sqlite_statement steps[] = { DUE__SQL_ASIDE, DUE__SQL_DROP };
    int rc = due__sqlite_run(s, DUE__SQL_BEGIN, NULL);
    int owner = rc == 0 ? due__sqlite_fence(s) : 0;

    for (size_t i = 0; i < 2 && rc == 0 && owner == 0; i++) {
        sqlite3_bind_blob(s->statement[steps[i]], 1, id.byte, DUE_STORE_ID_BYTES, SQLITE_STATIC);
        rc = due__sqlite_run(s, steps[i], NULL);
    }
    if (rc == 0 && owner == 0)
        rc = due__sqlite_run(s, DUE__SQL_COMMIT, NULL);
    if (rc != 0 || owner != 0)
        due__sqlite_rollback(s);
    return owner != 0 ? owner : rc;
}

/* A job that makes no sense goes where nobody loads it from.  If that cannot be done it stays, and
 * is met again the next time. */
static void set_aside(struct due__sqlite *s, due_id id)
{
    char text[DUE_ID_TEXT];
    bool aside = move_aside(s, id) == 0;

    due__store_log(&s->how, DUE_LOG_ERROR, "job %s is damaged (DUE_ECORRUPT)%s",
                   due_id_format(id, text),
                   aside ? ": it was set aside, into the table aside" : "");
    pthread_mutex_lock(&s->counters);
    s->shown.quarantined += aside;
    pthread_mutex_unlock(&s->counters);
}

/* ---- A page ---------------------------------------------------------------------------------- */

struct shown_page {
    due_store_visit *visit;
    void *ctx;
    size_t left;  /* so many more */
    size_t rows;  /* of the last query */
    due_id bad;   /* a job that makes no sense ended it: */
    bool has_bad; /* it is to be set aside */
};

/* The rows of a query.  0: all were shown, or up to one that makes no sense; or what ends the call.
 */
static int show_rows(struct due__sqlite *s, sqlite3_stmt *row, struct shown_page *p)
{
    struct due__sqlite_load *l = &s->load;
    int code;
    int rc = 0;

    p->rows = 0;
    while (rc == 0 && !p->has_bad && (code = sqlite3_step(row)) == SQLITE_ROW) {
        struct due__sqlite_place at = { .dead = l->at.dead };

        if (!due__sqlite_row_id(row, DUE__SQLITE_ID, &at.id)) {
            rc = due__sqlite_error(s, SQLITE_CORRUPT);
            break;
        }
        at.topic = at.dead ? 0 : sqlite3_column_int64(row, DUE__SQLITE_TOPIC_NUMBER);
        at.at_ns = sqlite3_column_int64(row, at.dead ? DUE__SQLITE_DIED : DUE__SQLITE_UNTIL);
        rc = show(s, row, at.id, p->visit, p->ctx);
        if (rc == DUE_EVERSION)
            note_newer(s, at.id);
        p->has_bad = rc == DUE_ECORRUPT;
        p->bad = at.id;
        if (rc == DUE_EVERSION || rc == DUE_ECORRUPT)
            rc = 0;
        if (rc == 0) {
            l->at = at;
            p->rows++;
        }
    }
    sqlite3_reset(row);
    if (rc == 0 && !p->has_bad && code != SQLITE_DONE)
        rc = due__sqlite_error(s, code);
    return rc;
}

/* What stands behind l->at.  1: there may be more of this kind. */
static int show_behind(struct due__sqlite *s, struct shown_page *p)
{
    struct due__sqlite_load *l = &s->load;
    sqlite3_stmt *row = s->statement[l->at.dead ? DUE__SQL_DEAD : DUE__SQL_PAGE];
    struct due__sqlite_place from = l->at; /* it stays, while l->at goes on */
    size_t most = p->left;

    if (!l->at.dead)
        sqlite3_bind_int64(row, 1, from.topic);
    sqlite3_bind_int64(row, 2, from.at_ns);
    sqlite3_bind_blob(row, 3, from.id.byte, DUE_STORE_ID_BYTES, SQLITE_STATIC);
    sqlite3_bind_int64(row, 4, (sqlite3_int64)most);
    int rc = show_rows(s, row, p);
    p->left -= p->rows;
    if (rc != 0)
        return rc;
    if (p->has_bad) {
        p->has_bad = false;
        set_aside(s, p->bad);
        return 1;
    }
    return p->rows == most;
}

/* Those that came to before l->at from behind it. */
static int show_passed(struct due__sqlite *s, struct shown_page *p)
{
    struct due__sqlite_load *l = &s->load;
    int rc = 0;

    while (rc == 0 && l->n_passed > 0 && p->left > 0) {
        rc = due__sqlite_find(s, l->passed[l->n_passed - 1], p->visit, p->ctx);
        if (rc == DUE_ENOENT || rc == DUE_EVERSION || rc == DUE_ECORRUPT)
            rc = 0; /* gone; or met and seen to by the next load */
        if (rc == 0) {
            l->n_passed--;
            p->left--;
        }
    }
    return rc;
}

int due__sqlite_load(struct due__sqlite *s, int rewind, size_t max, due_store_visit *visit,
                     void *ctx)
{
    struct due__sqlite_load *l = &s->load;
    struct shown_page p = { .visit = visit, .ctx = ctx, .left = max > 0 ? max : 1 };

    if (rewind)
        begin(l);
    int rc = due__sqlite_fence(s);
    if (rc == 0)
        rc = show_passed(s, &p);
    while (rc == 0 && p.left > 0) {
        rc = show_behind(s, &p);
        if (rc == 0 && !l->at.dead) {
            l->at = (struct due__sqlite_place){ .dead = true, .at_ns = INT64_MIN };
        } else if (rc == 0) {
            l->active = false;
            return 0;
        } else if (rc == 1) {
            rc = 0;
            if (due__mono_ns() >= s->until_ns)
                break;
        }
    }
    return rc == 0 ? 1 : rc;
}

/* ---- One job --------------------------------------------------------------------------------- */

int due__sqlite_find(struct due__sqlite *s, due_id id, due_store_visit *visit, void *ctx)
{
    sqlite3_stmt *row = s->statement[DUE__SQL_FIND];
    int rc = DUE_ENOENT;

    sqlite3_bind_blob(row, 1, id.byte, DUE_STORE_ID_BYTES, SQLITE_STATIC);
    int code = sqlite3_step(row);
    if (code == SQLITE_ROW)
        rc = show(s, row, id, visit, ctx);
    sqlite3_reset(row);
    return code == SQLITE_ROW || code == SQLITE_DONE ? rc : due__sqlite_error(s, code);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

/* Show the key of the row, and go on behind it. */
static int show_key(struct due__sqlite_keys *k, sqlite3_stmt *row, due_store_visit_key *visit,
                    void *ctx)
{
    const void *key = sqlite3_column_blob(row, 0);
    int len = sqlite3_column_bytes(row, 0);
    due_id id;

    if (key == NULL || len > DUE_KEY_MAX || !due__sqlite_row_id(row, 1, &id))
        return DUE_ECORRUPT;
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
        rc = show_key(k, row, visit, ctx);
        shown += rc == 0;
    }
    sqlite3_reset(row);
    if (rc != 0)
        return rc;
    if (code != SQLITE_DONE)
        return due__sqlite_error(s, code);
    return shown == (max > 0 ? max : 1);
}
