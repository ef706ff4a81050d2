/* owner.c - becoming the owner of the file, staying it, and seeing that the file stays.
 *
 * Two things say who owns it.  The lock of the file beside it keeps a second program out while the
 * first lives.  The number in the table owner, which rises with each opening, stands in the way of
 * whoever was passed by all the same, since somebody has removed the lock's file: each transaction
 * asks for it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/time.h"
#include "base/wait.h"
#include "sqlite/session.h"

#define WRITERS       (INT64_C(1) << 48)
#define LOOK_MIN_NS   DUE_MS(2)
#define LOOK_MAX_NS   DUE_MS(100)
#define VACUUM_NS     DUE_MS(20) /* of a renewal, for giving free pages back */
#define VACUUM_PAGES  256        /* as in its statement */
#define FREE_MIN      1024       /* so many free pages are kept, */
#define FREE_FRACTION 8          /* and an eighth of all */

/* ---- The path -------------------------------------------------------------------------------- */

/* Two programs that name the file in different ways must find the same lock beside it. */
static int resolve(struct due__sqlite *s)
{
    char folder[DUE__SQLITE_PATH];
    const char *name = strrchr(s->given, '/') + 1;
    char *real = realpath(s->given, NULL);
    int n;

    if (real != NULL) {
        n = snprintf(s->path, sizeof s->path, "%s", real);
    } else {
        snprintf(folder, sizeof folder, "%.*s", (int)(name - s->given), s->given);
        real = realpath(folder, NULL);
        if (real == NULL)
            return due__sqlite_errno(s, errno == EACCES ? DUE_EACCES : DUE_ESTORE, s->given);
        n = snprintf(s->path, sizeof s->path, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name);
    }
    free(real);
    snprintf(s->owner_path, sizeof s->owner_path, "%s-owner", s->path);
    if ((size_t)n < sizeof s->path)
        return 0;
    due__sqlite_say(s, "", "the path is too long");
    return DUE_ELIMIT;
}

/* ---- Becoming the owner ---------------------------------------------------------------------- */

static int take_lock(struct due__sqlite *s, char *holder)
{
    int rc = due__file_lock_take(&s->lock, s->owner_path, holder);

    if (rc == DUE_EBUSY)
        due__sqlite_say(s, "stop that one, or wait for it as its standby",
                        "%.60s is owned by %.100s", strrchr(s->path, '/') + 1, holder);
    else if (rc == DUE_ENOMEM)
        due__sqlite_say(s, "", "no memory");
    else if (rc != 0)
        (void)due__sqlite_errno(s, rc, s->owner_path);
    return rc;
}

static int wait_for_lock(struct due__sqlite *s, int64_t until_ns)
{
    struct due__ears ears = { .fd = -1, .bell = s->bell };
    char holder[DUE__HOLDER];
    int64_t pause_ns = LOOK_MIN_NS;
    bool told = false;

    for (;;) {
        int rc = take_lock(s, holder);
        int64_t now_ns = due__mono_ns();

        if (rc != DUE_EBUSY || now_ns >= until_ns)
            return rc;
        if (!told)
            due__store_log(&s->how, DUE_LOG_INFO, "%.100s: waiting for %.100s", s->path, holder);
        told = true;
        pause_ns = due__ns_first(2 * pause_ns, LOOK_MAX_NS);
        int64_t end_ns = due__ns_first(due__ns_after(now_ns, pause_ns), until_ns);
        if (due__wait(&ears, 0, end_ns) != DUE__WAIT_TIME)
            return rc;
    }
}

/* Whose queue is it, and who had it last? */
static int read_owner(struct due__sqlite *s, int64_t *writer)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(s->db, "SELECT writer, queue FROM owner", -1, &statement, NULL);

    if (rc == 0)
        rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        const unsigned char *queue = sqlite3_column_text(statement, 1);

        *writer = sqlite3_column_int64(statement, 0);
        rc = 0;
        if (queue == NULL || strcmp((const char *)queue, s->name) != 0) {
            due__sqlite_say(s, "name that queue, or another file",
                            "%.70s holds the queue %.64s, not %.64s", strrchr(s->path, '/') + 1,
                            queue != NULL ? (const char *)queue : "", s->name);
            rc = DUE_ENOTSUP;
        }
    } else {
        rc = due__sqlite_error(s, rc == SQLITE_DONE ? SQLITE_CORRUPT : rc);
    }
    sqlite3_finalize(statement);
    return rc;
}

/* The number of this opening: higher than any of before.  A file that was made anew since the last
 * one was removed under us knows none. */
static int claim(struct due__sqlite *s)
{
    int64_t last = 0;
    int code = due__sqlite_run(s, DUE__SQL_BEGIN, NULL);
    int rc = code != 0 ? due__sqlite_error(s, code) : read_owner(s, &last);
    uint64_t writer = (uint64_t)last + 1 > s->writer ? (uint64_t)last + 1 : s->writer;

    if (writer < s->how.writer_min)
        writer = s->how.writer_min;
    if (rc == 0 && (last < 0 || writer >= WRITERS))
        rc = due__sqlite_error(s, SQLITE_CORRUPT);
    if (rc == 0) {
        sqlite3_bind_int64(s->statement[DUE__SQL_CLAIM], 1, (sqlite3_int64)writer);
        code = due__sqlite_run(s, DUE__SQL_CLAIM, NULL);
        if (code == 0)
            code = due__sqlite_run(s, DUE__SQL_COMMIT, NULL);
        rc = code != 0 ? due__sqlite_error(s, code) : 0;
    }
    if (rc != 0)
        due__sqlite_rollback(s);
    else
        s->writer = writer;
    return rc;
}

static int open_and_claim(struct due__sqlite *s)
{
    int rc = due__sqlite_connect(s);

    if (rc == 0)
        rc = claim(s);
    if (rc != 0 && s->db != NULL)
        due__sqlite_disconnect(s);
    return rc;
}

int due__sqlite_take_over(struct due__sqlite *s, int64_t until_ns)
{
    int rc = resolve(s);

    if (rc == 0)
        rc = wait_for_lock(s, until_ns);
    if (rc == 0)
        rc = open_and_claim(s);
    if (rc != 0) { /* it may be no queue, or not be there: then nothing of ours lies beside it */
        due__file_lock_undo(s->lock, s->owner_path);
        s->lock = NULL;
    }
    return rc;
}

/* ---- Staying it ------------------------------------------------------------------------------ */

static int fenced(struct due__sqlite *s, const char *why)
{
    if (!s->fenced)
        due__store_log(&s->how, DUE_LOG_ERROR, "%.150s %s", s->path, why);
    s->fenced = true;
    return DUE_EFENCED;
}

/* The file was removed.  As long as nobody else has the lock it is made again, and the queue puts
 * into it what it holds. */
static int make_again(struct due__sqlite *s)
{
    char holder[DUE__HOLDER];
    int rc = 0;

    if (s->db != NULL)
        due__store_log(&s->how, DUE_LOG_WARNING, "%.150s was removed", s->path);
    due__sqlite_disconnect(s);
    if (!due__file_lock_is_at(s->lock, s->owner_path)) {
        due__file_lock_drop(s->lock);
        s->lock = NULL;
        rc = take_lock(s, holder);
    }
    if (rc == DUE_EBUSY)
        return fenced(s, "belongs to another program now");
    if (rc == 0 && s->set.must_exist) {
        errno = ENOENT;
        rc = due__sqlite_errno(s, DUE_ESTORE, s->path);
    }
    if (rc == 0)
        rc = open_and_claim(s);
    if (rc == 0)
        s->lost = true;
    return rc == DUE_ESTORE ? DUE_EAGAIN : rc;
}

int due__sqlite_up(struct due__sqlite *s)
{
    struct stat file;

    if (s->fenced)
        return DUE_EFENCED;
    int rc = stat(s->path, &file);
    if (rc == 0 && s->db != NULL && file.st_dev == s->device && file.st_ino == s->inode)
        return 0;
    if (rc == 0 && s->db != NULL)
        return fenced(s, "was replaced by another file");
    if (rc != 0 && errno != ENOENT) {
        (void)due__sqlite_errno(s, DUE_ESTORE, s->path);
        return DUE_EAGAIN;
    }
    return make_again(s);
}

int due__sqlite_fence(struct due__sqlite *s)
{
    int64_t writer = 0;
    int rc = due__sqlite_number(s, DUE__SQL_OWNER, &writer);

    if (rc != 0)
        return due__sqlite_error(s, rc == SQLITE_DONE ? SQLITE_CORRUPT : rc);
    return (uint64_t)writer == s->writer ? 0 : fenced(s, "belongs to another program now");
}

/* At level EVERYSEC SQLite writes without waiting for the disk: that is done here.  The log alone
 * has what is not in the file yet; no lock of SQLite's is on it, so it may be closed again. */
static int sync_log(struct due__sqlite *s)
{
    char path[DUE__SQLITE_PATH + 8];
    int rc = 0;

    if (s->set.durability != DUE_DURABLE_EVERYSEC || !s->unsynced)
        return 0;
    snprintf(path, sizeof path, "%s-wal", s->path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fdatasync(fd) != 0) {
        (void)due__sqlite_errno(s, DUE_ESTORE, path);
        rc = DUE_EAGAIN;
    }
    if (fd >= 0)
        close(fd);
    s->unsynced = rc != 0;
    return rc;
}

/* Give pages back that were freed, for a while.  What cannot be done now is done later. */
static void shrink(struct due__sqlite *s)
{
    int64_t end_ns = due__ns_first(due__ns_after(due__mono_ns(), VACUUM_NS), s->until_ns);
    int64_t pages = 0;
    int64_t unused = 0;

    do {
        if (due__sqlite_number(s, DUE__SQL_PAGES, &pages) != 0 ||
            due__sqlite_number(s, DUE__SQL_FREE_PAGES, &unused) != 0 ||
            unused < FREE_MIN + VACUUM_PAGES || unused < pages / FREE_FRACTION ||
            due__sqlite_run(s, DUE__SQL_VACUUM, NULL) != 0)
            return;
    } while (due__mono_ns() < end_ns);
}

int due__sqlite_renew(struct due__sqlite *s, int64_t *held_ns)
{
    int rc = due__sqlite_fence(s);

    if (rc == 0)
        rc = sync_log(s);
    if (rc == 0)
        shrink(s);
    *held_ns = DUE_FOREVER; /* until this process ends, or somebody removes the lock */
    return rc;
}

void due__sqlite_leave(struct due__sqlite *s)
{
    if (s->db != NULL && !s->fenced)
        (void)sync_log(s);
    due__sqlite_disconnect(s);
    due__file_lock_drop(s->lock);
    s->lock = NULL;
}
