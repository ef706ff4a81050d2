/* file_look.c - looking into a file of SQLite: `restore` and `doctor` of one. */
#include "inspect/inspect.h"

#ifdef CTL_HAVE_SQLITE

#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inspect/file.h"

#define APPLICATION "1685415217" /* as docs/sqlite-layout.md says */
#define STEPS       100000       /* of SQLite between two looks at how long it has taken */
#define LINE        1024         /* the longest that is shown; the longest topic has 255 bytes */

#define DATE(column)                                                \
    "CASE WHEN " column " = 9223372036854775807 THEN 'never' ELSE " \
    "strftime('%Y-%m-%dT%H:%M:%fZ', " column " / 1e9, 'unixepoch') END"

static const char summary[] =
    "SELECT count(*) || ', ' || count(died) || ' of them dead; ' || (SELECT count(*) FROM aside) ||"
    " ' damaged records set aside' FROM job";
static const char topics[] =
    "SELECT printf('%-20s %9d  %-24s  %-24s %8d %8d', CASE WHEN length(name) = 0 THEN '-'"
    " ELSE CAST(name AS TEXT) END, count(*), " DATE("min(until)") ", " DATE(
        "max(until)") ","
                      " sum(attempts > 0), max(attempts)) FROM job JOIN topic ON number = job.topic"
                      " WHERE died IS NULL GROUP BY number ORDER BY name";
static const char dead[] =
    "SELECT printf('%-20s %9d  %-24s  %-24s %8d %8d', '(dead)', count(*), " DATE(
        "min(died)") ","
                     " " DATE("max(died)") ", sum(attempts > 0), max(attempts)) FROM job WHERE "
                                           "died IS NOT NULL"
                                           " HAVING count(*) > 0";
/* ---- Questions ------------------------------------------------------------------------------- */

int ctl_file_broken(sqlite3 *db, const char *path)
{
    fprintf(stderr, "duectl: %s: %s\n", path, sqlite3_errmsg(db));
    sqlite3_close(db);
    return CTL_BROKEN;
}

/* The first column of each row, a line each, behind @label.  False: that cannot be read. */
bool ctl_file_print(sqlite3 *db, const char *label, const char *query)
{
    char shown[LINE];
    sqlite3_stmt *row = NULL;
    int rc = sqlite3_prepare_v2(db, query, -1, &row, NULL);

    while (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(row, 0);
        size_t len = (size_t)sqlite3_column_bytes(row, 0);

        ctl_progress_end();
        printf("%s%s\n", label, text == NULL ? "" : ctl_text_show(shown, sizeof shown, text, len));
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
    if (sqlite3_errcode(*db) != SQLITE_OK)
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

int ctl_file_restore(const char *path, const struct ctl_look *look)
{
    sqlite3 *db;
    int status = ctl_file_open(path, &db);

    if (status != 0)
        return status;
    ctl_file_watch(db, "restore: reads the file");
    bool fine = ctl_file_print(db, "jobs    ", summary);
    if (fine && !look->list) {
        printf("%-20s %9s  %-24s  %-24s %8s %8s\n", "topic", "jobs", "first due", "last due",
               "tried", "most");
        fine = ctl_file_print(db, "", topics) && ctl_file_print(db, "", dead);
    }
    ctl_progress_end();
    if (!fine)
        return ctl_file_broken(db, path);
    sqlite3_close(db);
    status = look->list ? list_jobs(path) : CTL_FINE;
    return fflush(stdout) != 0 ? CTL_BROKEN : status;
}

/* Who has it open, if anybody has. */
static void say_owner(const char *path)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    char name[1100];
    char text[160] = "";

    snprintf(name, sizeof name, "%.1000s-owner", path);
    int fd = open(name, O_RDWR | O_CLOEXEC);
    bool held = fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    ssize_t n = held ? pread(fd, text, sizeof text - 1, 0) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    printf("owner   %s\n", held ? text : "nobody");
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
    sqlite3 *db;
    int status = ctl_file_open(path, &db);

    (void)look;
    if (status != 0)
        return status;
    say_owner(path);
    bool fine =
        ctl_file_print(db, "queue   ",
                       "SELECT queue || '; its last opening has the number ' || writer FROM owner");
    fine = fine && ctl_file_print(db, "format  ", "PRAGMA user_version");
    printf("size    %" PRId64 " bytes, %" PRId64 " of them free; the log %" PRId64 "\n",
           length_of(path, ""),
           ctl_file_number(db, "SELECT freelist_count * page_size FROM pragma_freelist_count,"
                               " pragma_page_size"),
           length_of(path, "-wal"));
    puts("kept    whatever is killed loses nothing; how much a loss of power takes is what its "
         "owner asked for\n        (due_sqlite_options.durability, duectl run --require)");
    if (!fine)
        return ctl_file_broken(db, path);
    sqlite3_close(db);
    return fflush(stdout) != 0 ? CTL_BROKEN : CTL_FINE;
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

#endif
