/* file_look.c - looking into a file of SQLite: `restore` and `doctor` of one. */
#include "inspect/inspect.h"

#ifdef CTL_HAVE_SQLITE

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inspect/file.h"

#define APPLICATION "1685415217" /* as docs/sqlite-layout.md says */
#define STEPS       100000       /* of SQLite between two looks at how long it has taken */
#define LINE        1024         /* the longest that is shown; the longest topic has 255 bytes */
#define OWNER       160          /* the same of what is said of an owner */

/* Of each topic, and of the dead: its name, and numbers. */
static const char topics[] =
    "SELECT name, count(*), min(until), max(until), sum(attempts > 0), max(attempts)"
    " FROM job JOIN topic ON number = job.topic WHERE died IS NULL GROUP BY number ORDER BY name";
static const char dead[] =
    "SELECT NULL, count(*), min(died), max(died), sum(attempts > 0), max(attempts) FROM job"
    " WHERE died IS NOT NULL HAVING count(*) > 0";

/* ---- Questions ------------------------------------------------------------------------------- */

int ctl_file_broken(sqlite3 *db, const char *path)
{
    fprintf(stderr, "duectl: %s: %s\n", path, sqlite3_errmsg(db));
    sqlite3_close(db);
    return CTL_BROKEN;
}

bool ctl_file_texts(sqlite3 *db, const char *query, void (*say)(void *ctx, const char *text),
                    void *ctx)
{
    char shown[LINE];
    sqlite3_stmt *row = NULL;
    int rc = sqlite3_prepare_v2(db, query, -1, &row, NULL);

    while (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(row, 0);
        size_t len = (size_t)sqlite3_column_bytes(row, 0);

        ctl_text_show(shown, sizeof shown, text == NULL ? "" : text, len);
        say(ctx, shown);
        rc = SQLITE_OK;
    }
    sqlite3_finalize(row);
    return rc == SQLITE_DONE;
}

static int still_at_work(void *doing)
{
    ctl_progress(doing, 0, 0);
    return 0; /* go on */
}

void ctl_file_watch(sqlite3 *db, const char *doing)
{
    sqlite3_progress_handler(db, STEPS, still_at_work, (void *)(uintptr_t)doing);
}

/* The first value of the first row; -1: there is none. */
int64_t ctl_file_number(sqlite3 *db, const char *query)
{
    sqlite3_stmt *row = NULL;
    int64_t value = -1;

    if (sqlite3_prepare_v2(db, query, -1, &row, NULL) == SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW)
        value = sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    return value;
}

/* 0, or an exit status: said why not. */
int ctl_file_open(const char *path, sqlite3 **db)
{
    *db = NULL;
    if (sqlite3_open_v2(path, db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
        return ctl_file_broken(*db, path);
    sqlite3_busy_timeout(*db, 5000);
    if (ctl_file_number(*db,
                        "SELECT application_id = " APPLICATION " FROM pragma_application_id") == 1)
        return 0;
    bool none = sqlite3_errcode(*db) == SQLITE_OK || sqlite3_errcode(*db) == SQLITE_NOTADB;
    if (!none)
        return ctl_file_broken(*db, path);
    fprintf(stderr, "duectl: %s holds no queue\n", path);
    sqlite3_close(*db);
    return CTL_FAULTS;
}

/* ---- The commands ---------------------------------------------------------------------------- */

/* Counts those that cannot be read. */
static bool list_job(void *ctx, due_id id, int rc, const due_record *record)
{
    uint64_t *unreadable = ctx;

    (void)id;
    if (rc == 0) /* rounded down, as where a server keeps it */
        ctl_restore_line((record->cause != 0 ? record->died_ns : record->until_ns) / 1000, record);
    else
        ++*unreadable;
    return true;
}

/* Each job, a line.  An exit status. */
static int list_jobs(const char *path)
{
    uint64_t unreadable = 0;
    int status = ctl_file_jobs(path, list_job, &unreadable);

    if (unreadable > 0)
        fprintf(stderr, "duectl: %" PRIu64 " jobs cannot be read: duectl verify says more\n",
                unreadable);
    return status == CTL_FINE && unreadable > 0 ? CTL_FAULTS : status;
}

/* What the query says of each topic, or of the dead.  False: that cannot be read. */
static bool show_sums(sqlite3 *db, const char *query)
{
    sqlite3_stmt *row = NULL;
    int rc = sqlite3_prepare_v2(db, query, -1, &row, NULL);

    while (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        bool of_dead = query == dead;
        struct ctl_sum sum = { .jobs = (uint64_t)sqlite3_column_int64(row, 1),
                               .first_us = sqlite3_column_int64(row, 2) / 1000,
                               .last_us = sqlite3_column_int64(row, 3) / 1000,
                               .tried = (uint64_t)sqlite3_column_int64(row, 4),
                               .most = (uint64_t)sqlite3_column_int64(row, 5) };
        const void *name = sqlite3_column_blob(row, 0);

        ctl_restore_sum(of_dead        ? NULL
                        : name == NULL ? ""
                                       : name,
                        (size_t)sqlite3_column_bytes(row, 0), &sum);
        rc = SQLITE_OK;
    }
    sqlite3_finalize(row);
    return rc == SQLITE_DONE;
}

static bool show_head(sqlite3 *db, bool list)
{
    sqlite3_stmt *row = NULL;
    bool fine = sqlite3_prepare_v2(db,
                                   "SELECT count(*), count(died), (SELECT count(*) FROM aside),"
                                   " (SELECT queue FROM owner) FROM job",
                                   -1, &row, NULL) == SQLITE_OK &&
                sqlite3_step(row) == SQLITE_ROW;

    if (fine) {
        const char *queue = (const char *)sqlite3_column_text(row, 3);
        const uint64_t n[] = { (uint64_t)sqlite3_column_int64(row, 0),
                               (uint64_t)sqlite3_column_int64(row, 1),
                               (uint64_t)sqlite3_column_int64(row, 2) };

        ctl_report_line(CTL_PLAIN,
                        "jobs    %" PRIu64 ", %" PRIu64 " of them dead; %" PRIu64
                        " damaged records set aside",
                        n[0], n[1], n[2]);
        if (!list) {
            ctl_object_begin();
            ctl_object_text("queue", queue == NULL ? "" : queue);
            ctl_object_flag("shared", false);
            ctl_object_number("jobs", n[0]);
            ctl_object_number("dead", n[1]);
            ctl_object_number("aside", n[2]);
            ctl_object_end();
        }
    }
    sqlite3_finalize(row);
    return fine;
}

int ctl_file_restore(const char *path, const struct ctl_look *look)
{
    sqlite3 *db;
    int status = ctl_file_open(path, &db);

    if (status != 0)
        return status;
    ctl_file_watch(db, "restore: reads the file");
    bool fine = show_head(db, look->list);
    if (fine && !look->list) {
        ctl_restore_heading();
        fine = show_sums(db, topics) && show_sums(db, dead);
    }
    ctl_progress_end();
    if (!fine)
        return ctl_file_broken(db, path);
    sqlite3_close(db);
    return look->list ? list_jobs(path) : CTL_FINE;
}

/* ---- doctor ---------------------------------------------------------------------------------- */

static void say_fine(const char *what, const char *text)
{
    ctl_report_line(CTL_PLAIN, "%-7s %s", what, text);
    ctl_object_begin();
    ctl_object_text("check", what);
    ctl_object_text("result", "ok");
    ctl_object_text("text", text);
    ctl_object_end();
}

static void say_row(void *what, const char *text)
{
    say_fine(what, text);
}

/* What the owner of the file says of itself; false: nobody has it open. */
static bool read_owner(const char *path, char text[OWNER])
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    char *whole = realpath(path, NULL); /* beside which an owner has its lock */
    char name[PATH_MAX + sizeof "-owner"];

    snprintf(name, sizeof name, "%.*s-owner", PATH_MAX - 1, whole != NULL ? whole : path);
    free(whole);
    int fd = open(name, O_RDONLY | O_CLOEXEC); /* to ask is to read: also of another user's */
    bool held = fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    ssize_t n = held ? pread(fd, text, OWNER - 1, 0) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return held;
}

static void say_owner(const char *path)
{
    char text[OWNER];

    say_fine("owner", read_owner(path, text) ? text : "nobody");
}

/* "pid 123 on host, since 2026-01-31 12:00:00 UTC" */
static void read_process(struct ctl_process *p, const char *text)
{
    long pid;
    int at = 0;

    if (sscanf(text, "pid %ld on %n", &pid, &at) != 1 || at == 0)
        return;
    p->pid = pid;
    snprintf(p->host, sizeof p->host, "%.*s", (int)strcspn(text + at, ","), text + at);
}

/* Is that the queue in the file? */
static bool is_queue(sqlite3 *db, const char *queue)
{
    sqlite3_stmt *row = NULL;
    bool its = sqlite3_prepare_v2(db, "SELECT 1 FROM owner WHERE queue = ?", -1, &row, NULL) ==
                   SQLITE_OK &&
               sqlite3_bind_text(row, 1, queue, -1, SQLITE_STATIC) == SQLITE_OK &&
               sqlite3_step(row) == SQLITE_ROW;

    sqlite3_finalize(row);
    return its;
}

int ctl_file_processes(const struct ctl_look *look, const char *path, ctl_process_visit *visit,
                       void *ctx)
{
    struct ctl_process owner = { .number = 0 };
    char text[OWNER];
    sqlite3 *db;
    int status = ctl_file_open(path, &db);

    if (status != 0)
        return status;
    bool its = is_queue(db, look->queue);
    sqlite3_close(db);
    if (!its) {
        fprintf(stderr, "duectl: there is no such queue: %s\n", look->queue);
        return CTL_FAULTS;
    }
    if (read_owner(path, text)) {
        read_process(&owner, text);
        (void)visit(ctx, &owner);
    }
    return CTL_FINE;
}

static int64_t length_of(const char *path, const char *end)
{
    char name[1100];
    struct stat file;

    snprintf(name, sizeof name, "%.1000s%s", path, end);
    return stat(name, &file) == 0 ? (int64_t)file.st_size : 0;
}

int ctl_file_doctor(const char *path, const struct ctl_look *look)
{
    char size[160];
    sqlite3 *db;
    int status = ctl_file_open(path, &db);

    (void)look;
    if (status != 0)
        return status;
    say_owner(path);
    bool fine = ctl_file_texts(
        db, "SELECT queue || '; its last opening has the number ' || writer FROM owner", say_row,
        (void *)(uintptr_t) "queue");
    fine = fine && ctl_file_texts(db, "PRAGMA user_version", say_row, (void *)(uintptr_t) "format");
    snprintf(size, sizeof size, "%" PRId64 " bytes, %" PRId64 " of them free; the log %" PRId64,
             length_of(path, ""),
             ctl_file_number(db, "SELECT freelist_count * page_size FROM pragma_freelist_count,"
                                 " pragma_page_size"),
             length_of(path, "-wal"));
    say_fine("size", size);
    say_fine("kept",
             "whatever is killed loses nothing; how much a loss of power takes is what its owner"
             " asked for (due_sqlite_options.durability, duectl run --require)");
    if (!fine)
        return ctl_file_broken(db, path);
    sqlite3_close(db);
    ctl_object_begin();
    ctl_object_number("changes", 0);
    ctl_object_end();
    return CTL_FINE;
}

#else

#include <stdio.h>

static int missing(const char *path)
{
    fprintf(stderr, "duectl: %s: built without SQLite, and so without files\n", path);
    return CTL_USAGE;
}

int ctl_file_restore(const char *path, const struct ctl_look *look)
{
    (void)look;
    return missing(path);
}

int ctl_file_doctor(const char *path, const struct ctl_look *look)
{
    (void)look;
    return missing(path);
}

int ctl_file_processes(const struct ctl_look *look, const char *path, ctl_process_visit *visit,
                       void *ctx)
{
    (void)look;
    (void)visit;
    (void)ctx;
    return missing(path);
}

#endif
