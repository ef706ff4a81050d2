/* session.h - the SQLite store's object, its connection, and what may be wrong with it.
 *
 * Guards     I  set at open, then constant      C  only the call under way, one at a time
 *            S  the lock of the counters
 *
 * docs/sqlite-layout.md says what the tables hold.
 */
#ifndef DUE__SQLITE_SESSION_H
#define DUE__SQLITE_SESSION_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"
#include "base/name.h"
#include "due/sqlite.h"
#include "record/scratch.h"
#include "sqlite/file_lock.h"
#include "sqlite/prefetch.h"

#define DUE__SQLITE_TOPICS 256 /* numbers that are remembered, a power of two */
#define DUE__SQLITE_PATH   1024

/* The statements; their text is in statements.c. */
enum due__sqlite_statement {
    DUE__SQL_BEGIN,
    DUE__SQL_READ,
    DUE__SQL_COMMIT,
    DUE__SQL_ROLLBACK,
    DUE__SQL_CLAIM,
    DUE__SQL_OWNER,
    DUE__SQL_NUMBER,
    DUE__SQL_ADD,
    DUE__SQL_COUNT,
    DUE__SQL_PUT,
    DUE__SQL_MOVE,
    DUE__SQL_MOVE_FAR,
    DUE__SQL_DROP,
    DUE__SQL_LOCATE,
    DUE__SQL_KEY_PUT,
    DUE__SQL_KEY_FREE,
    DUE__SQL_KEY_OWNER,
    DUE__SQL_KEYS,
    DUE__SQL_TOPIC,
    DUE__SQL_TOPIC_ADD,
    DUE__SQL_SLICE,
    DUE__SQL_ROWS,
    DUE__SQL_DEAD,
    DUE__SQL_FIND,
    DUE__SQL_ASIDE,
    DUE__SQL_FREE_PAGES,
    DUE__SQL_PAGES,
    DUE__SQL_VACUUM,
    DUE__SQL_STATEMENTS
};

/* A job lies in the slice of its time, and a dead one in that of the dead: so what is put in lies
 * where something was put in lately, and what is due together lies together. */
#define DUE__SQLITE_DEAD  (-1)
#define DUE__SQLITE_SLICE 40 /* bits: 2^40 ns, 18 minutes */

static inline int64_t due__sqlite_slice(bool dead, int64_t until_ns)
{
    return dead || until_ns < 0 ? DUE__SQLITE_DEAD : until_ns >> DUE__SQLITE_SLICE;
}

static inline int64_t due__sqlite_slice_end(int64_t slice)
{
    return slice >= INT64_MAX >> DUE__SQLITE_SLICE
               ? INT64_MAX
               : (slice + 1) * ((int64_t)1 << DUE__SQLITE_SLICE) - 1;
}

/* A place in the order of a load: what waits by time and id, then the dead by that. */
struct due__sqlite_place {
    int64_t at_ns;
    due_id id;
};

struct due__sqlite_gathered {
    struct due__sqlite_place place;
    size_t kept; /* prefetch.h: where; 0: it is not */
};

struct due__sqlite_passed {
    bool dead;
    struct due__sqlite_place place;
};

/* Where a load stands.  Of what waits, everything up to @at was gathered; then that of the dead. */
struct due__sqlite_load {
    bool active;                           /* C: it has begun, and not come to its end */
    bool dead;                             /* C: what waits was gathered */
    bool scans;                            /* C: a slice was not read to its end yet */
    bool cut;                              /* C: some of the slice are left: there were too many */
    int64_t slice;                         /* C: of those gathered */
    struct due__sqlite_place at;           /* C */
    struct due__sqlite_place floor;        /* C: of the slice, what stands behind this */
    due_id last;                           /* C: of the slice, the id that was read last, */
    size_t scanned;                        /* C: and its length; 0: none */
    struct due__sqlite_gathered *gathered; /* C: in order, unless scans */
    size_t n, next, room;                  /* C: next: that is shown next */
    struct due__sqlite_prefetch prefetch;  /* C: of those gathered, but the dead */
    struct due__sqlite_passed *passed;     /* C: jobs that came to a place up to @at */
    size_t n_passed, passed_room;          /* C */
};

/* The same of the retained keys: the one that was shown last. */
struct due__sqlite_keys {
    unsigned char at[DUE_KEY_MAX]; /* C */
    size_t len;                    /* C */
};

struct due__sqlite_topic {
    char *name; /* NULL: none */
    int64_t number;
};

struct due__sqlite {
    due_store base;                               /* I */
    struct due_sqlite_options set;                /* I: with the defaults filled in */
    char given[DUE__SQLITE_PATH];                 /* I: the path, absolute, */
    char path[DUE__SQLITE_PATH];                  /* I: and without links, once it was opened */
    char owner_path[DUE__SQLITE_PATH + 8];        /* I */
    char name[DUE__NAME_MAX + 1];                 /* I */
    pid_t pid;                                    /* I: in a child nothing of this may be touched */
    int bell;                                     /* I: an eventfd; interrupts */
    struct due_store_open how;                    /* I: but name and until_ns */
    struct due__file_lock *lock;                  /* C */
    sqlite3 *db;                                  /* C: NULL: not open */
    sqlite3_stmt *statement[DUE__SQL_STATEMENTS]; /* C */
    dev_t device;                                 /* C: of the file that is open */
    ino_t inode;                                  /* C */
    int64_t page_bytes;                           /* C: of its pages */
    bool open;                                    /* C: we became the owner */
    bool closed;                                  /* C */
    bool fenced;                                  /* C: for good */
    bool lost;                                    /* C: to be said by ready(), renew() or load() */
    bool away;                                    /* C: it was told that the store cannot be used */
    bool unsynced;                                /* C: at level EVERYSEC: since the last renewal */
    int64_t balance;                              /* C: jobs that the batch under way added */
    bool newer_told;                              /* C: that there are jobs of a newer version */
    uint64_t writer;                              /* C */
    uint64_t landed;             /* C: number of the last batch that is known to have */
    int64_t until_ns;            /* C: of the call under way */
    struct due__scratch scratch; /* C: a record being written */
    struct due__sqlite_topic topic[DUE__SQLITE_TOPICS]; /* C: by a hash of the name */
    size_t gather_max;   /* I: places in memory; of a larger slice the earliest, and so on */
    size_t scan_max;     /* I: rows read in one call to gather them */
    size_t prefetch_max; /* I: bytes kept of them */
    struct due__sqlite_load load; /* C */
    struct due__sqlite_keys keys; /* C */
    char trouble[192];            /* C: the text for the error of open, or the log */
    char hint[192];               /* C */
    pthread_mutex_t counters;     /* I */
    struct due_store_stats shown; /* S */
};

/* ---- session.c */
/* Remember what went wrong, for the error of open(). */
void due__sqlite_say(struct due__sqlite *s, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What an error of SQLite is to the caller, and to people.  DUE_EAGAIN: it may pass. */
int due__sqlite_error(struct due__sqlite *s, int code);
/* The same of a call that failed with errno, not of SQLite. */
int due__sqlite_errno(struct due__sqlite *s, int rc, const char *path);
/* A call has ended with @rc: tell once that the store has gone, and once that it is back. */
void due__sqlite_tell(struct due__sqlite *s, int rc);

/* ---- statements.c */
int due__sqlite_prepare(struct due__sqlite *s);
void due__sqlite_finalize(struct due__sqlite *s);
/* Run one that shows no row.  0 or an error of SQLite; *@changed, unless NULL: how many rows. */
int due__sqlite_run(struct due__sqlite *s, enum due__sqlite_statement which, int *changed);
/* One number of the first row.  0, SQLITE_DONE: no row, or an error. */
int due__sqlite_number(struct due__sqlite *s, enum due__sqlite_statement which, int64_t *number);
/* Undo what a transaction did so far, if there is one. */
void due__sqlite_rollback(struct due__sqlite *s);

/* ---- schema.c */
/* Open the file, and make it if it is new.  0, or DUE_*; what is wrong is said. */
int due__sqlite_connect(struct due__sqlite *s);
void due__sqlite_disconnect(struct due__sqlite *s);

/* ---- owner.c */
/* Wait for the last owner until @until_ns, and become the next. */
int due__sqlite_take_over(struct due__sqlite *s, int64_t until_ns);
/* Is the file there, and still ours?  As ready() of store.h.  What it answers with is the first
 * look only; due__sqlite_fence() asks the file itself. */
int due__sqlite_up(struct due__sqlite *s);
int due__sqlite_fence(struct due__sqlite *s);
int due__sqlite_renew(struct due__sqlite *s, int64_t *held_ns);
/* Give the file up. */
void due__sqlite_leave(struct due__sqlite *s);

/* ---- batch.c */
/* Could a batch be written now?  While somebody else writes, it could not: that is waited for here,
 * so that what the batch would be about is nobody's yet.  DUE_EAGAIN. */
int due__sqlite_writable(struct due__sqlite *s);
int due__sqlite_commit(struct due__sqlite *s, const due_change *changes, size_t n, uint64_t number);

/* ---- load.c */
int due__sqlite_load(struct due__sqlite *s, int rewind, size_t max, due_store_visit *visit,
                     void *ctx);
int due__sqlite_find(struct due__sqlite *s, due_id id, due_store_visit *visit, void *ctx);
int due__sqlite_keys(struct due__sqlite *s, int rewind, size_t max, due_store_visit_key *visit,
                     void *ctx);
/* The slice of a job.  0, SQLITE_DONE: there is no such job, or an error of SQLite. */
int due__sqlite_locate(struct due__sqlite *s, due_id id, int64_t *slice);

/* ---- cursor.c */
void due__sqlite_cursor_begin(struct due__sqlite_load *l);
void due__sqlite_cursor_end(struct due__sqlite_load *l);
/* Gather what is to be shown next, if all that was gathered has been shown.  1: there may be some;
 * 0: that was all; or DUE_*. */
int due__sqlite_gather(struct due__sqlite *s);
/* A job of the slice was changed, or is gone: what was read of it before does not hold. */
void due__sqlite_changed(struct due__sqlite *s, int64_t slice, due_id id);
/* A job has come to this place: if the load would pass it over so, it is shown yet. */
void due__sqlite_moved(struct due__sqlite *s, bool dead, int64_t at_ns, due_id id);

/* ---- topic_settings.c */
/* What holds back a topic: written down, as a part of a transaction.  An error of SQLite, or 0. */
int due__sqlite_set_topic(struct due__sqlite *s, const due_change *change);
/* As topics() of store.h. */
int due__sqlite_settings(struct due__sqlite *s, due_store_visit_topic *visit, void *ctx);

/* ---- topics.c */
/* The number of a topic, which is written down if it is new.  0 or an error of SQLite. */
int due__sqlite_topic(struct due__sqlite *s, const char *name, int64_t *number);
/* Some that were written down were not, after all. */
void due__sqlite_topics_forget(struct due__sqlite *s);

#endif
