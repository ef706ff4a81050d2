/* session.c - what may be wrong with the file, for people. */
#include "sqlite/session.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void due__sqlite_say(struct due__sqlite *s, const char *hint, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(s->trouble, sizeof s->trouble, format, args);
    va_end(args);
    snprintf(s->hint, sizeof s->hint, "%s", hint);
}

int due__sqlite_errno(struct due__sqlite *s, int rc, const char *path)
{
    int number = errno;

    due__sqlite_say(s, rc == DUE_EACCES ? "may this user write there?" : "does its folder exist?",
                    "%.120s cannot be opened: %.40s", path, strerror(number));
    return rc;
}

/* ---- Errors of SQLite ------------------------------------------------------------------------ */

static bool is_full(int number)
{
    return number == ENOSPC || number == EDQUOT || number == EFBIG;
}

static int file_error(struct due__sqlite *s, int number)
{
    bool denied = number == EACCES || number == EPERM || number == EROFS;

    errno = number;
    return due__sqlite_errno(s, denied ? DUE_EACCES : DUE_ESTORE, s->path);
}

/* The answers that no other error of the same class has. */
static int other_error(struct due__sqlite *s, int code)
{
    switch (code & 0xff) {
    case SQLITE_NOTADB:
        due__sqlite_say(s, "is this the right file?", "%.140s is no SQLite database", s->path);
        return DUE_ENOTSUP;
    case SQLITE_NOMEM:
        due__sqlite_say(s, "", "no memory");
        return DUE_ENOMEM;
    case SQLITE_TOOBIG:
        due__sqlite_say(s, "", "SQLite takes no value so large");
        return DUE_ELIMIT;
    default:
        due__sqlite_say(s, "see docs/sqlite-layout.md for what can be done",
                        "%.90s is damaged: %.60s", s->path,
                        s->db != NULL ? sqlite3_errmsg(s->db) : sqlite3_errstr(code));
        return DUE_ECORRUPT;
    }
}

int due__sqlite_error(struct due__sqlite *s, int code)
{
    int number = s->db != NULL ? sqlite3_system_errno(s->db) : 0;
    const char *text = sqlite3_errstr(code & 0xff);

    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        due__sqlite_say(s, "does another program, or sqlite3, write to it?",
                        "%.120s is locked by another program", s->path);
        return DUE_EAGAIN;
    case SQLITE_INTERRUPT:
        due__sqlite_say(s, "", "the time was up");
        return DUE_EAGAIN;
    case SQLITE_FULL:
        due__sqlite_say(s, "make room on the disk", "there is no room for %.120s", s->path);
        return DUE_ENOSPC;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        due__sqlite_say(s, "may this user write to it, and to its folder?",
                        "%.120s cannot be written to", s->path);
        return DUE_EACCES;
    case SQLITE_CANTOPEN:
        return file_error(s, number);
    case SQLITE_IOERR:
        if (is_full(number)) {
            due__sqlite_say(s, "make room on the disk", "there is no room for %.120s", s->path);
            return DUE_ENOSPC;
        }
        due__sqlite_say(s, "is the disk sound, and no network file system?", "%.90s: %.30s (%.40s)",
                        s->path, text, number != 0 ? strerror(number) : "no errno");
        return DUE_EAGAIN;
    default:
        return other_error(s, code);
    }
}

/* ---- In the log ------------------------------------------------------------------------------ */

void due__sqlite_tell(struct due__sqlite *s, int rc)
{
    bool away = rc == DUE_EAGAIN || rc == DUE_EINDOUBT || rc == DUE_EACCES;

    if (!s->open || s->closed || s->fenced)
        return;
    if (!s->away && away && s->trouble[0] != '\0') {
        s->away = true;
        due__store_log(&s->how, DUE_LOG_WARNING, "the store cannot be used: %s", s->trouble);
    } else if (s->away && rc >= 0) {
        s->away = false;
        due__store_log(&s->how, DUE_LOG_INFO, "the store at %.120s can be used again", s->path);
    }
    if (rc >= 0)
        s->trouble[0] = '\0';
}
