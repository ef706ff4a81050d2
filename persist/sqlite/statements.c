/* statements.c - everything that is asked of SQLite while a queue is open, prepared once. */
#include "sqlite/row.h"
#include "sqlite/session.h"

#define COLUMNS DUE__SQLITE_COLUMNS

static const char *const texts[DUE__SQL_STATEMENTS] = {
    [DUE__SQL_BEGIN] = "BEGIN IMMEDIATE",
    [DUE__SQL_READ] = "BEGIN",
    [DUE__SQL_COMMIT] = "COMMIT",
    [DUE__SQL_ROLLBACK] = "ROLLBACK",
    [DUE__SQL_CLAIM] = "UPDATE owner SET writer = ?1, batch = 0",
    [DUE__SQL_OWNER] = "SELECT writer FROM owner",
    [DUE__SQL_NUMBER] = "UPDATE owner SET batch = ?1, jobs = jobs + ?3"
                        " WHERE writer = ?2 AND batch < ?1",
    [DUE__SQL_ADD] = "UPDATE owner SET jobs = jobs + ?1",
    [DUE__SQL_COUNT] = "SELECT jobs FROM owner",
    [DUE__SQL_PUT] = "INSERT INTO job (" COLUMNS ", front, slice)"
                     " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?10, ?11, ?12, ?9)",
    [DUE__SQL_MOVE] = "UPDATE job SET until = ?2, deadline = ?3, attempts = ?4, failures = ?5,"
                      " died = ?6, cause = ?7, reason = ?8 WHERE slice = ?9 AND id = ?1",
    [DUE__SQL_MOVE_FAR] = "UPDATE job SET until = ?2, deadline = ?3, attempts = ?4, failures = ?5,"
                          " died = ?6, cause = ?7, reason = ?8, slice = ?10"
                          " WHERE slice = ?9 AND id = ?1",
    [DUE__SQL_DROP] = "DELETE FROM job WHERE slice = ?2 AND id = ?1",
    [DUE__SQL_LOCATE] =
        DUE__SQLITE_SLICES " SELECT slice FROM one JOIN job ON slice = number AND id = ?1",
    [DUE__SQL_KEY_PUT] =
        "INSERT INTO key (key, job, kept) VALUES (?1, ?2, ?3)"
        " ON CONFLICT (key) DO UPDATE SET job = excluded.job, kept = excluded.kept",
    [DUE__SQL_KEY_FREE] = "DELETE FROM key WHERE key = ?1 AND job = ?2",
    [DUE__SQL_KEY_OWNER] = "SELECT kept IS NULL FROM key WHERE key = ?1 AND job = ?2",
    [DUE__SQL_KEYS] = "SELECT key, job, kept FROM key WHERE key > ?1 AND kept IS NOT NULL"
                      " ORDER BY key LIMIT ?2",
    [DUE__SQL_TOPIC] = "SELECT number FROM topic WHERE name = ?1",
    [DUE__SQL_TOPIC_ADD] = "INSERT INTO topic (name) VALUES (?1)",
    [DUE__SQL_SLICE] = "SELECT slice FROM job WHERE slice > ?1 ORDER BY slice LIMIT 1",
    [DUE__SQL_ROWS] = "SELECT id, until, deadline, attempts, failures, died, cause, reason, topic,"
                      " CASE WHEN length(record) <= ?3 THEN record END"
                      " FROM job WHERE slice = ?1 AND id > ?2 ORDER BY id",
    [DUE__SQL_DEAD] = "SELECT died, id FROM job WHERE died IS NOT NULL"
                      " AND (died, slice, id) > (?1, -1, ?2) ORDER BY died, slice, id LIMIT ?3",
    [DUE__SQL_FIND] = "SELECT " COLUMNS " FROM job WHERE slice = ?2 AND id = ?1",
    [DUE__SQL_ASIDE] =
        "INSERT OR REPLACE INTO aside SELECT * FROM job WHERE slice = ?2 AND id = ?1",
    [DUE__SQL_FREE_PAGES] = "PRAGMA freelist_count",
    [DUE__SQL_PAGES] = "PRAGMA page_count",
    [DUE__SQL_VACUUM] = "PRAGMA incremental_vacuum(256)",
};

int due__sqlite_prepare(struct due__sqlite *s)
{
    int rc = 0;

    for (size_t i = 0; i < DUE__SQL_STATEMENTS && rc == 0; i++)
        rc = sqlite3_prepare_v3(s->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &s->statement[i],
                                NULL);
    return rc;
}

void due__sqlite_finalize(struct due__sqlite *s)
{
    for (size_t i = 0; i < DUE__SQL_STATEMENTS; i++) {
        sqlite3_finalize(s->statement[i]);
        s->statement[i] = NULL;
    }
}

int due__sqlite_run(struct due__sqlite *s, enum due__sqlite_statement which, int *changed)
{
    sqlite3_stmt *statement = s->statement[which];
    int rc;

    do
        rc = sqlite3_step(statement);
    while (rc == SQLITE_ROW);
    if (changed != NULL)
        *changed = sqlite3_changes(s->db);
    sqlite3_reset(statement);
    return rc == SQLITE_DONE ? 0 : rc;
}

int due__sqlite_number(struct due__sqlite *s, enum due__sqlite_statement which, int64_t *number)
{
    sqlite3_stmt *statement = s->statement[which];
    int rc = sqlite3_step(statement);

    if (rc == SQLITE_ROW)
        *number = sqlite3_column_int64(statement, 0);
    sqlite3_reset(statement);
    return rc == SQLITE_ROW ? 0 : rc;
}

void due__sqlite_rollback(struct due__sqlite *s)
{
    if (!sqlite3_get_autocommit(s->db))
        (void)due__sqlite_run(s, DUE__SQL_ROLLBACK, NULL); /* it ends in any case */
    due__sqlite_topics_forget(s);
}
