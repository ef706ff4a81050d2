/* sqlite.h - the SQLite store: a queue's jobs in one file, of SQLite 3.37 or later.
 *
 * The file holds one queue.  Beside it lie FILE-wal and FILE-shm while it is open, which belong to
 * it, and FILE-owner, which says who has it open; its lock is let go when that process ends,
 * however it ends.  All four are on a file system of this machine: SQLite shares memory between
 * processes, which no network file system has.
 *
 * Anybody may read the file meanwhile: sqlite3 jobs.db 'select * from jobs'.  docs/sqlite-layout.md
 * says what lies where.  A program that writes to it holds up the queue for as long as it does, at
 * most until a call's time is up.
 *
 * A payload has at most 999 MB: DUE_ELIMIT.  A thread that calls such a queue needs 32 KiB of
 * stack, of which SQLite takes half.
 */
#ifndef DUE_SQLITE_H
#define DUE_SQLITE_H

#include "due/due.h"
#include "due/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the file is used.  Zero means default. */
typedef struct due_sqlite_options {
    size_t size;                    /* DUE_SQLITE_OPTIONS_INIT */
    enum due_durability durability; /* of what was confirmed.  A program that is killed loses none
                                       of it at any level; a machine that loses its power:
                                       ALWAYS (default): nothing;
                                       EVERYSEC: about the last second;
                                       NONE: what was not written yet, and perhaps the file */
    int standby;                    /* 1: wait without end for the owner to go */
    int must_exist;                 /* 1: do not make the file if it is not there, nor a queue in
                                       one that is empty (DUE_ENOTSUP) */
    size_t batch_changes;           /* most changes of one batch; 1,024 */
    size_t batch_bytes;             /* 16 MiB */
    size_t cache_bytes;             /* of the file that are kept in memory, at most; 32 MiB */
    uint32_t reserved[16];          /* zero */
} due_sqlite_options;

#define DUE_SQLITE_OPTIONS_INIT .size = sizeof(due_sqlite_options)

/**
 * A store in the file at @path, for due_options.store.  Nothing is opened yet.
 *
 * Threads:  any
 * Owner:    the caller, until a due_open() that succeeds: from then on the queue
 * Errors:   DUE_EINVAL, DUE_ENOTSUP (an option of a newer version), DUE_ELIMIT (a path too long),
 *           DUE_ENOMEM; *@store is NULL then, and @error, unless NULL, says what is wrong
 */
DUE_API int due_sqlite_open(due_store **store, const char *path, const due_sqlite_options *options,
                            due_error *error) DUE_NONNULL(1, 2) DUE_MUST_CHECK;

/**
 * Free a store that no queue took over.  NULL is allowed.
 *
 * Threads:  one
 * Errors:   none
 */
DUE_API void due_sqlite_free(due_store *store);

#ifdef __cplusplus
}
#endif

#endif
