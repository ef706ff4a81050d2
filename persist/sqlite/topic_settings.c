/* topic_settings.c - what holds back topics, in a table of its own.
 *
 * The table is made by the first change that holds one back, in its transaction: so a file whose
 * queue never did so is as before, and one that an older version has written needs nothing.  Older
 * versions do not know the table, and let it be.  All this is rare, so that its statements are not
 * kept.
 */
#include <string.h>

#include "sqlite/session.h"

static const char make_text[] = "CREATE TABLE IF NOT EXISTS held_back (topic BLOB NOT NULL PRIMARY"
                                " KEY, paused INTEGER NOT NULL, most INTEGER NOT NULL)"
                                " STRICT, WITHOUT ROWID";
static const char set_text[] = "INSERT OR REPLACE INTO held_back VALUES (?1, ?2, ?3)";
static const char free_text[] = "DELETE FROM held_back WHERE topic = ?1";
static const char show_text[] = "SELECT topic, paused, most FROM held_back";

/* *@is: there is such a table. */
static int is_there(struct due__sqlite *s, bool *is)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(s->db,
                                  "SELECT 1 FROM sqlite_schema WHERE type = 'table'"
                                  " AND name = 'held_back'",
                                  -1, &statement, NULL);

    if (code == 0)
        code = sqlite3_step(statement);
    *is = code == SQLITE_ROW;
    sqlite3_finalize(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE ? 0 : code;
}

static int change_row(struct due__sqlite *s, const due_change *change, const char *text)
{
    const char *topic = change->record.topic;
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(s->db, text, -1, &statement, NULL);

    if (code != 0)
        return code;
    sqlite3_bind_blob(statement, 1, topic, (int)strlen(topic), SQLITE_STATIC);
    if (text == set_text) {
        sqlite3_bind_int64(statement, 2, change->paused > 0);
        sqlite3_bind_int64(statement, 3, change->held_max > 0 ? change->held_max : 0);
    }
    code = sqlite3_step(statement);
    sqlite3_finalize(statement);
    return code == SQLITE_DONE ? 0 : code;
}

int due__sqlite_set_topic(struct due__sqlite *s, const due_change *change)
{
    bool holds = change->paused > 0 || change->held_max > 0;
    bool there = false;
    int code = is_there(s, &there);

    if (code != 0 || (!there && !holds))
        return code;
    if (!there)
        code = sqlite3_exec(s->db, make_text, NULL, NULL, NULL);
    return code == 0 ? change_row(s, change, holds ? set_text : free_text) : code;
}

/* One row.  0, or why it cannot be shown. */
static int show(struct due__sqlite *s, sqlite3_stmt *row, due_store_visit_topic *visit, void *ctx)
{
    const void *bytes = sqlite3_column_blob(row, 0);
    size_t len = (size_t)sqlite3_column_bytes(row, 0);
    char topic[DUE_TOPIC_LENGTH + 1];

    if (len > DUE_TOPIC_LENGTH || (len > 0 && memchr(bytes, 0, len) != NULL))
        return due__sqlite_error(s, SQLITE_CORRUPT);
    if (len > 0)
        memcpy(topic, bytes, len);
    topic[len] = '\0';
    return visit(ctx, topic, sqlite3_column_int64(row, 1) != 0, sqlite3_column_int64(row, 2));
}

int due__sqlite_settings(struct due__sqlite *s, due_store_visit_topic *visit, void *ctx)
{
    sqlite3_stmt *row = NULL;
    bool there = false;
    int rc = due__sqlite_fence(s);

    if (rc != 0)
        return rc;
    int code = is_there(s, &there);
    if (code == 0 && there)
        code = sqlite3_prepare_v2(s->db, show_text, -1, &row, NULL);
    if (code != 0 || !there)
        return code != 0 ? due__sqlite_error(s, code) : 0;
    while (rc == 0 && (code = sqlite3_step(row)) == SQLITE_ROW)
        rc = show(s, row, visit, ctx);
    sqlite3_finalize(row);
    if (rc == 0 && code != SQLITE_DONE)
        rc = due__sqlite_error(s, code);
    return rc;
}
