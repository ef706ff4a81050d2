/* file_verify.c - whether the queue in a file is whole; and mending it.
 *
 * SQLite looks at its pages and indexes, this file at what they hold: every record readable, every
 * job in the topic that its record names, every unique key somebody's.  What is to be mended is
 * mended by who owns the queue, in one transaction, so that nothing of it is done or all.
 */
#include "inspect/inspect.h"

#ifdef CTL_HAVE_SQLITE

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "due/sqlite.h"
#include "inspect/file.h"
#include "sqlite/row.h"

#define OPEN_NS DUE_S(1)

enum { PAGE = 256 };
enum { FRONT = DUE__SQLITE_RECORD + 1, NAME, SLICE };

enum wrong { FINE, DAMAGED, NEWER, TOPIC, TEXT_AT, NOBODYS_KEY, OTHERS_KEY, WRONGS };

static const char *const texts[WRONGS] = {
    "",
    "jobs whose record is damaged",
    "jobs of a later version: not touched",
    "jobs of a topic that is not there, or not theirs",
    "jobs whose text does not begin where it is said to",
    "keys of jobs that are not there",
    "keys of jobs that do not name them",
};

struct check {
    sqlite3 *db;
    bool repair;
    uint64_t found[WRONGS];
    bool pages; /* SQLite finds something wrong */
    uint64_t jobs, looked_at;
};

/* A row that is to be mended. */
struct finding {
    enum wrong wrong;
    due_id id;
    int64_t front;
    char topic[DUE_TOPIC_LENGTH + 1];
    unsigned char key[DUE_KEY_MAX];
    int key_len;
};

/* ---- Statements ------------------------------------------------------------------------------ */

/* Run it with the id, or key, as ?1, the topic as ?2, the number as ?3.  False: SQLite refuses. */
static bool run(struct check *c, const char *text, const struct finding *f)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(c->db, text, -1, &statement, NULL);

    if (rc == SQLITE_OK && f->wrong == OTHERS_KEY)
        sqlite3_bind_blob(statement, 1, f->key, f->key_len, SQLITE_STATIC);
    else if (rc == SQLITE_OK)
        sqlite3_bind_blob(statement, 1, f->id.byte, DUE_STORE_ID_BYTES, SQLITE_STATIC);
    if (rc == SQLITE_OK && sqlite3_bind_parameter_count(statement) >= 2)
        sqlite3_bind_blob(statement, 2, f->topic, (int)strlen(f->topic), SQLITE_STATIC);
    if (rc == SQLITE_OK && sqlite3_bind_parameter_count(statement) >= 3)
        sqlite3_bind_int64(statement, 3, f->front);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    sqlite3_finalize(statement);
    return rc == SQLITE_DONE;
}

static bool mend(struct check *c, const struct finding *f)
{
    switch (f->wrong) {
    case DAMAGED:
        return run(c, "INSERT OR REPLACE INTO aside SELECT * FROM job WHERE id = ?1", f) &&
               run(c, "DELETE FROM job WHERE id = ?1", f);
    case TOPIC:
        return run(c, "INSERT OR IGNORE INTO topic (name) SELECT ?2 WHERE ?1 = ?1", f) &&
               run(c,
                   "UPDATE job SET topic = (SELECT number FROM topic WHERE name = ?2)"
                   " WHERE id = ?1",
                   f);
    case TEXT_AT:
        return run(c, "UPDATE job SET front = ?3 WHERE id = ?1 AND ?2 = ?2", f);
    case OTHERS_KEY:
        return run(c, "DELETE FROM key WHERE key = ?1", f);
    default:
        return true;
    }
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

static enum wrong judge(sqlite3_stmt *row, struct finding *f)
{
    struct due__record_room room;
    due_record record = { .id = f->id };
    int rc = due__sqlite_row_read(row, &record, &room);
    const void *name = sqlite3_column_blob(row, NAME);
    size_t len = (size_t)sqlite3_column_bytes(row, NAME);

    if (rc != 0)
        return rc == DUE_EVERSION ? NEWER : DAMAGED;
    f->front = sqlite3_column_bytes(row, DUE__SQLITE_RECORD) - (int64_t)record.len;
    memcpy(f->topic, record.topic, strlen(record.topic) + 1);
    if (sqlite3_column_type(row, NAME) == SQLITE_NULL || len != strlen(record.topic) ||
        (len > 0 && memcmp(name, record.topic, len) != 0))
        return TOPIC;
    return sqlite3_column_int64(row, FRONT) == f->front ? FINE : TEXT_AT;
}

struct place {
    int64_t slice;
    due_id id;
};

/* The rows behind @from, which goes on with them.  How many; -1: they cannot be read. */
static int look_at_page(struct check *c, sqlite3_stmt *row, struct place *from,
                        struct finding *found, size_t *n)
{
    int rows = 0;
    int rc;

    *n = 0;
    sqlite3_bind_int64(row, 1, from->slice);
    sqlite3_bind_blob(row, 2, from->id.byte, DUE_STORE_ID_BYTES, SQLITE_TRANSIENT);
    while ((rc = sqlite3_step(row)) == SQLITE_ROW) {
        struct finding *f = &found[*n];

        *f = (struct finding){ .front = 0 };
        if (!due__sqlite_row_id(row, DUE__SQLITE_ID, &f->id))
            return -1;
        *from = (struct place){ .slice = sqlite3_column_int64(row, SLICE), .id = f->id };
        f->wrong = judge(row, f);
        c->found[f->wrong]++;
        ctl_progress("verify: jobs", ++c->looked_at, c->jobs);
        *n += f->wrong != FINE;
        rows++;
    }
    sqlite3_reset(row);
    return rc == SQLITE_DONE ? rows : -1;
}

static bool mend_page(struct check *c, const struct finding *found, size_t n)
{
    for (size_t i = 0; c->repair && i < n; i++)
        if (!mend(c, &found[i]))
            return false;
    return true;
}

static bool look_at_jobs(struct check *c)
{
    static struct finding found[PAGE];
    sqlite3_stmt *row = NULL;
    struct place from = { .slice = INT64_MIN };
    size_t n;
    int rows = -1;

    if (sqlite3_prepare_v2(c->db,
                           "SELECT " DUE__SQLITE_COLUMNS ", front,"
                           " (SELECT name FROM topic WHERE number = job.topic), slice FROM job"
                           " WHERE (slice, id) > (?1, ?2) ORDER BY slice, id LIMIT 256",
                           -1, &row, NULL) == SQLITE_OK) {
        do
            rows = look_at_page(c, row, &from, found, &n);
        while (rows > 0 && mend_page(c, found, n));
    }
    sqlite3_finalize(row);
    return rows == 0;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static bool names_key(sqlite3_stmt *row, const struct finding *f)
{
    const void *key;
    size_t len;
    const void *bytes = sqlite3_column_blob(row, 1);
    size_t bytes_len = (size_t)sqlite3_column_bytes(row, 1);

    return bytes != NULL && due__record_key(bytes, bytes_len, &key, &len) &&
           len == (size_t)f->key_len && memcmp(key, f->key, len) == 0;
}

/* One page of keys behind @last, as look_at_page(). */
static int look_at_key_page(struct check *c, sqlite3_stmt *row, struct finding *last,
                            struct finding *found, size_t *n)
{
    int rows = 0;
    int rc;

    *n = 0;
    sqlite3_bind_blob(row, 1, last->key, last->key_len, SQLITE_TRANSIENT);
    while ((rc = sqlite3_step(row)) == SQLITE_ROW) {
        struct finding *f = &found[*n];
        const void *key = sqlite3_column_blob(row, 0);
        int len = sqlite3_column_bytes(row, 0);

        *f = (struct finding){ .wrong = OTHERS_KEY };
        if (key == NULL || len > DUE_KEY_MAX)
            return -1;
        memcpy(f->key, key, (size_t)len);
        f->key_len = len;
        *last = *f;
        if (!names_key(row, f)) {
            c->found[OTHERS_KEY]++;
            ++*n;
        }
        rows++;
    }
    sqlite3_reset(row);
    return rc == SQLITE_DONE ? rows : -1;
}

static bool look_at_keys(struct check *c)
{
    static struct finding found[PAGE];
    static const char nobodys[] = "kept IS NULL AND job NOT IN (SELECT id FROM job)";
    char text[160];
    struct finding last = { .key_len = 0 };
    sqlite3_stmt *row = NULL;
    size_t n;
    int rows = -1;

    snprintf(text, sizeof text, "SELECT count(*) FROM key WHERE %s", nobodys);
    int64_t count = ctl_file_number(c->db, text);
    if (count < 0)
        return false;
    c->found[NOBODYS_KEY] += (uint64_t)count;
    snprintf(text, sizeof text, "DELETE FROM key WHERE %s AND ?1 = ?1", nobodys);
    if (c->repair && count > 0 && !run(c, text, &last))
        return false;
    if (sqlite3_prepare_v2(c->db,
                           DUE__SQLITE_SLICES
                           " SELECT key.key, job.record FROM key CROSS JOIN one CROSS JOIN job"
                           " ON job.slice = one.number AND job.id = key.job"
                           " WHERE kept IS NULL AND key.key > ?1 ORDER BY key.key LIMIT 256",
                           -1, &row, NULL) == SQLITE_OK) {
        do
            rows = look_at_key_page(c, row, &last, found, &n);
        while (rows > 0 && mend_page(c, found, n));
    }
    sqlite3_finalize(row);
    return rows == 0;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static bool is_sound(sqlite3 *db)
{
    return ctl_file_number(db, "SELECT count(*) = 1 AND max(integrity_check) = 'ok'"
                               " FROM pragma_integrity_check") == 1;
}

static void say_page(void *ctx, const char *text)
{
    (void)ctx;
    ctl_report_wrong("page", NULL, 0, text);
}

/* Indexes can be made anew from their tables; pages cannot. */
static void look_at_pages(struct check *c)
{
    c->pages = !is_sound(c->db);
    ctl_progress_end();
    if (!c->pages)
        return;
    (void)ctl_file_texts(c->db, "PRAGMA integrity_check(20)", say_page, NULL);
    if (!c->repair || sqlite3_exec(c->db, "REINDEX", NULL, NULL, NULL) != SQLITE_OK)
        return;
    c->pages = !is_sound(c->db);
    if (!c->pages)
        ctl_report_line(CTL_NOTABLE, "made anew: the indexes");
}

/* How many of a kind. */
static void say_found(const struct check *c, int kind)
{
    ctl_report_line(CTL_BAD, "wrong   %" PRIu64 " %s", c->found[kind], texts[kind]);
    ctl_object_begin();
    ctl_object_text("wrong", kind < NOBODYS_KEY ? "jobs" : "keys");
    ctl_object_number("count", c->found[kind]);
    ctl_object_text("text", texts[kind]);
    ctl_object_end();
}

static void tell_numbers(const struct check *c, uint64_t wrong, uint64_t left, bool readable)
{
    ctl_object_begin();
    ctl_object_flag("whole", left == 0 && readable && !c->pages);
    ctl_object_number("records", c->looked_at);
    ctl_object_number("wrong", wrong);
    ctl_object_number("repaired", c->repair ? wrong - left : 0);
    ctl_object_flag("pages", !c->pages);
    ctl_object_flag("readable", readable);
    ctl_object_end();
}

/* Say what was found: how much of it is left. */
static uint64_t tell(const struct check *c, bool readable)
{
    uint64_t wrong = 0;
    char text[200];

    for (int i = DAMAGED; i < WRONGS; i++) {
        if (c->found[i] > 0)
            say_found(c, i);
        wrong += c->found[i];
    }
    uint64_t left = c->repair && readable ? c->found[NEWER] : wrong;
    if (wrong > 0 && c->repair)
        ctl_report_line(left > 0 ? CTL_BAD : CTL_NOTABLE, "%" PRIu64 " wrong, %" PRIu64 " repaired",
                        wrong, wrong - left);
    if (!readable) {
        snprintf(text, sizeof text, "not all of it can be read: %.120s", sqlite3_errmsg(c->db));
        ctl_report_wrong("file", NULL, 0, text);
    }
    if (c->pages || !readable)
        ctl_report_line(CTL_BAD,
                        "pages of the file are damaged: docs/sqlite-layout.md says what to do");
    else if (wrong == 0)
        ctl_report_line(CTL_PLAIN, "whole");
    else if (!c->repair)
        ctl_report_line(CTL_BAD, "not whole: --repair sets right what it can");
    tell_numbers(c, wrong, left, readable);
    return left + c->pages + !readable;
}

static int verify(struct check *c)
{
    ctl_file_watch(c->db, "verify: reads the file");
    bool readable = !c->repair || sqlite3_exec(c->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == 0;

    look_at_pages(c);
    int64_t jobs = ctl_file_number(c->db, "SELECT jobs FROM owner");
    c->jobs = jobs > 0 ? (uint64_t)jobs : 0;
    readable = readable && look_at_jobs(c) && look_at_keys(c);
    ctl_progress_end();
    if (c->repair && readable)
        readable = sqlite3_exec(c->db, "UPDATE owner SET jobs = (SELECT count(*) FROM job); COMMIT",
                                NULL, NULL, NULL) == 0;
    uint64_t left = tell(c, readable);
    return left == 0 ? CTL_FINE : CTL_FAULTS;
}

/* ---- Owning it ------------------------------------------------------------------------------- */

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return DUE_S(now.tv_sec) + now.tv_nsec;
}

static int64_t wall_ns(void *clock)
{
    (void)clock;
    return clock_ns(CLOCK_REALTIME);
}

/* What it says, it says in its answer too. */
static void log_nothing(void *queue, enum due_log_level level, const char *text)
{
    (void)queue;
    (void)level;
    (void)text;
}

static bool read_name(sqlite3 *db, char *name, size_t room)
{
    sqlite3_stmt *row = NULL;
    bool fine = sqlite3_prepare_v2(db, "SELECT queue FROM owner", -1, &row, NULL) == SQLITE_OK &&
                sqlite3_step(row) == SQLITE_ROW && sqlite3_column_text(row, 0) != NULL;

    if (fine)
        snprintf(name, room, "%s", (const char *)sqlite3_column_text(row, 0));
    sqlite3_finalize(row);
    return fine;
}

/* Become the owner.  NULL: said why not. */
static due_store *own(sqlite3 *db, const char *path)
{
    struct due_store_open how = { .now = wall_ns, .log = log_nothing };
    struct due_store_info info;
    due_error error = { "", "" };
    char name[80];
    int status;
    due_store *store = ctl_file_store_of(path, true, &status);

    if (store == NULL)
        return NULL;
    how.until_ns = clock_ns(CLOCK_MONOTONIC) + OPEN_NS;
    how.name = read_name(db, name, sizeof name) ? name : "duectl";
    int rc = store->verbs->open(store, &how, &info, &error);
    if (rc == 0)
        return store;
    fprintf(stderr, "duectl: not repaired: %s%s%s\n",
            error.text[0] != '\0' ? error.text : due_error_text(rc),
            error.hint[0] == '\0' ? "" : "; ", error.hint);
    ctl_store_free(store);
    return NULL;
}

int ctl_file_verify(const char *path, const struct ctl_look *look)
{
    struct check c = { .repair = look->repair };
    due_store *store = NULL;
    int status = ctl_file_open(path, &c.db);

    if (status != 0)
        return status;
    if (c.repair) {
        store = own(c.db, path);
        sqlite3_close(c.db);
        if (store == NULL)
            return CTL_BROKEN;
        if (sqlite3_open_v2(path, &c.db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
            ctl_store_free(store);
            return ctl_file_broken(c.db, path);
        }
        sqlite3_busy_timeout(c.db, 5000);
    }
    status = verify(&c);
    sqlite3_close(c.db);
    if (store != NULL)
        (void)store->verbs->close(store, clock_ns(CLOCK_MONOTONIC) + OPEN_NS);
    ctl_store_free(store);
    return status;
}

#else

#include <stdio.h>

int ctl_file_verify(const char *path, const struct ctl_look *look)
{
    (void)look;
    fprintf(stderr, "duectl: %s: built without SQLite, and so without files\n", path);
    return CTL_USAGE;
}

#endif
