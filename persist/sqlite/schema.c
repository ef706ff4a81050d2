/* schema.c - opening the file: is it ours, of a version that is known, and how is it to be used? */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/time.h"
#include "base/wait.h"
#include "sqlite/session.h"

#define APPLICATION    0x64756531 /* "due1" */
#define FORMAT         1
#define PROGRESS_STEPS 20000 /* of SQLite's machine, between two looks at the clock */
#define BUSY_MIN_NS    DUE_MS(1)
#define BUSY_MAX_NS    DUE_MS(25)
#define CHUNK          65536 /* bytes by which the file grows, and shrinks */

/* docs/sqlite-layout.md shows the same. */
static const char schema[] =
    "CREATE TABLE owner (one INTEGER PRIMARY KEY CHECK (one = 1), queue TEXT NOT NULL,"
    " writer INTEGER NOT NULL, batch INTEGER NOT NULL, jobs INTEGER NOT NULL) STRICT;"
    "CREATE TABLE topic (number INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE) STRICT;"
    "CREATE TABLE job (slice INTEGER NOT NULL, id BLOB NOT NULL CHECK (length(id) = 14),"
    " until INTEGER NOT NULL, deadline INTEGER, attempts INTEGER NOT NULL,"
    " failures INTEGER NOT NULL, died INTEGER, cause INTEGER, reason BLOB,"
    " topic INTEGER NOT NULL, front INTEGER NOT NULL, record BLOB NOT NULL,"
    " PRIMARY KEY (slice, id)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX job_dead ON job (died) WHERE died IS NOT NULL;"
    "CREATE TABLE key (key BLOB NOT NULL PRIMARY KEY, job BLOB NOT NULL, kept INTEGER)"
    " STRICT, WITHOUT ROWID;"
    "CREATE TABLE aside (slice ANY, id BLOB NOT NULL PRIMARY KEY, until ANY, deadline ANY,"
    " attempts ANY,"
    " failures ANY, died ANY, cause ANY, reason ANY, topic ANY, front ANY, record ANY)"
    " STRICT, WITHOUT ROWID;"
    "CREATE VIEW jobs AS SELECT hex(id) AS id,"
    " CASE WHEN died IS NOT NULL THEN 'dead' WHEN attempts > failures THEN 'reserved'"
    " ELSE 'waiting' END AS state,"
    " CAST(name AS TEXT) AS topic,"
    " CASE WHEN until = 9223372036854775807 THEN 'never' ELSE"
    " strftime('%Y-%m-%d %H:%M:%f', until / 1000000000.0, 'unixepoch') END AS deadline,"
    " CAST(substr(record, front + 1) AS TEXT) AS text, attempts,"
    " CAST(reason AS TEXT) AS reason"
    " FROM job JOIN topic ON number = job.topic ORDER BY died, until;"
    "PRAGMA application_id = 1685415217;"
    "PRAGMA user_version = 1;";

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Somebody else writes: once more, or not? */
static int on_busy(void *ctx, int times)
{
    struct due__sqlite *s = ctx;
    int64_t now_ns = due__mono_ns();
    int64_t pause_ns = times < 5 ? BUSY_MIN_NS << times : BUSY_MAX_NS;
    struct due__ears ears = { .fd = -1, .bell = s->bell };

    if (now_ns >= s->until_ns)
        return 0;
    int64_t end_ns = due__ns_first(due__ns_after(now_ns, pause_ns), s->until_ns);
    return due__wait(&ears, 0, end_ns) == DUE__WAIT_TIME;
}

/* Is the time of the call up? */
static int on_progress(void *ctx)
{
    const struct due__sqlite *s = ctx;

    return due__mono_ns() >= s->until_ns;
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* The number that a pragma or query answers. */
static int ask(struct due__sqlite *s, const char *text, int64_t *number)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(s->db, text, -1, &statement, NULL);

    if (rc == 0)
        rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
        *number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return rc == SQLITE_ROW ? 0 : rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
}

static int tell(struct due__sqlite *s, const char *text)
{
    return sqlite3_exec(s->db, text, NULL, NULL, NULL);
}

/* Without write-ahead log readers and the queue would hold up one another. */
static int use_log(struct due__sqlite *s)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(s->db, "PRAGMA journal_mode = WAL", -1, &statement, NULL);
    bool wal = false;

    if (rc == 0)
        rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        const unsigned char *mode = sqlite3_column_text(statement, 0);
        wal = mode != NULL && strcmp((const char *)mode, "wal") == 0;
    }
    sqlite3_finalize(statement);
    if (rc != SQLITE_ROW)
        return due__sqlite_error(s, rc);
    if (wal)
        return 0;
    due__sqlite_say(s, "use a file system of this machine",
                    "SQLite can keep no write-ahead log of %.120s", s->path);
    return DUE_ENOTSUP;
}

/* Is the file a queue of ours?  *@fresh: it is empty. */
static int check(struct due__sqlite *s, bool *fresh)
{
    int64_t application = 0;
    int64_t format = 0;
    int64_t tables = 0;
    int rc = ask(s, "PRAGMA application_id", &application);

    if (rc == 0)
        rc = ask(s, "PRAGMA user_version", &format);
    if (rc == 0)
        rc = ask(s, "SELECT count(*) FROM sqlite_schema", &tables);
    if (rc != 0)
        return due__sqlite_error(s, rc);
    *fresh = application == 0 && format == 0 && tables == 0;
    if (*fresh && s->set.must_exist) {
        due__sqlite_say(s, "name another file", "%.120s is empty: it holds no queue", s->path);
        return DUE_ENOTSUP;
    }
    if (!*fresh && application != APPLICATION) {
        due__sqlite_say(s, "name another file", "%.120s is the database of another program",
                        s->path);
        return DUE_ENOTSUP;
    }
    if (format > FORMAT) {
        due__sqlite_say(s, "use that version of the library",
                        "%.120s was written by a newer version, in format %lld", s->path,
                        (long long)format);
        return DUE_EVERSION;
    }
    if (sqlite3_db_readonly(s->db, "main") == 1)
        return due__sqlite_error(s, SQLITE_READONLY);
    return 0;
}

/* Free pages are given back to the system in pieces: see renew.  That must be said before there is
 * a page. */
static int make_tables(struct due__sqlite *s)
{
    sqlite3_stmt *owner = NULL;
    int rc = tell(s, "BEGIN IMMEDIATE");

    if (rc == 0)
        rc = tell(s, schema);
    if (rc == 0)
        rc = sqlite3_prepare_v2(s->db, "INSERT INTO owner VALUES (1, ?1, 0, 0, 0)", -1, &owner,
                                NULL);
    if (rc == 0) {
        sqlite3_bind_text(owner, 1, s->name, -1, SQLITE_STATIC);
        rc = sqlite3_step(owner);
        rc = rc == SQLITE_DONE ? 0 : rc;
    }
    sqlite3_finalize(owner);
    if (rc == 0)
        rc = tell(s, "COMMIT");
    if (rc != 0) {
        rc = due__sqlite_error(s, rc);
        if (!sqlite3_get_autocommit(s->db))
            (void)tell(s, "ROLLBACK");
    }
    return rc;
}

static int settings(struct due__sqlite *s)
{
    static const char *const levels[] = { [DUE_DURABLE_NONE] = "PRAGMA synchronous = OFF",
                                          [DUE_DURABLE_EVERYSEC] = "PRAGMA synchronous = NORMAL",
                                          [DUE_DURABLE_ALWAYS] = "PRAGMA synchronous = FULL" };
    char cache[64];
    int chunk = CHUNK;
    int rc = tell(s, levels[s->set.durability]);

    snprintf(cache, sizeof cache, "PRAGMA cache_size = -%zu", s->set.cache_bytes / 1024 + 1);
    if (rc == 0)
        rc = tell(s, cache);
    if (rc == 0)
        rc = tell(s, "PRAGMA wal_autocheckpoint = 4096; PRAGMA journal_size_limit = 67108864;"
                     "PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON");
    if (rc == 0)
        rc = ask(s, "PRAGMA page_size", &s->page_bytes);
    if (rc == 0)
        rc = sqlite3_file_control(s->db, NULL, SQLITE_FCNTL_CHUNK_SIZE, &chunk);
    return rc != 0 ? due__sqlite_error(s, rc) : 0;
}

static int open_it(struct due__sqlite *s)
{
    int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (s->set.must_exist ? 0 : SQLITE_OPEN_CREATE);
    struct stat file;
    int rc = sqlite3_open_v2(s->path, &s->db, flags, NULL);

    if (rc == 0)
        rc = sqlite3_extended_result_codes(s->db, 1);
    if (rc != 0)
        return due__sqlite_error(s, rc);
    if (stat(s->path, &file) != 0)
        return due__sqlite_errno(s, DUE_ESTORE, s->path);
    s->device = file.st_dev;
    s->inode = file.st_ino;
    sqlite3_busy_handler(s->db, on_busy, s);
    sqlite3_progress_handler(s->db, PROGRESS_STEPS, on_progress, s);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)NULL);
    return 0;
}

int due__sqlite_connect(struct due__sqlite *s)
{
    bool fresh = false;
    int rc = open_it(s);

    if (rc == 0)
        rc = check(s, &fresh);
    if (rc == 0 && fresh) {
        int vacuum = tell(s, "PRAGMA auto_vacuum = INCREMENTAL");
        rc = vacuum != 0 ? due__sqlite_error(s, vacuum) : 0;
    }
    if (rc == 0)
        rc = use_log(s);
    if (rc == 0)
        rc = settings(s);
    if (rc == 0 && fresh)
        rc = make_tables(s);
    if (rc == 0) {
        rc = due__sqlite_prepare(s);
        rc = rc != 0 ? due__sqlite_error(s, rc) : 0;
    }
    if (rc != 0)
        due__sqlite_disconnect(s);
    return rc;
}

void due__sqlite_disconnect(struct due__sqlite *s)
{
    due__sqlite_finalize(s);
    due__sqlite_topics_forget(s);
    sqlite3_close(s->db);
    s->db = NULL;
}
