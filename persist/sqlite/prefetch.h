/* prefetch.h - jobs that a load has read already, and shows in one of its next calls.
 *
 * A load reads a slice in the order of its table, and shows it in the order of time.  What it has
 * read is kept meanwhile, as far as there is room, so that it need not be looked up again; but for
 * jobs that were changed since then.
 *
 * Guards     C  only the call under way (session.h)
 */
#ifndef DUE__SQLITE_PREFETCH_H
#define DUE__SQLITE_PREFETCH_H

#include "sqlite/row.h"

#define DUE__SQLITE_PREFETCH_RECORD 4096 /* bytes: a longer record is looked up */

/* Zero: empty. */
struct due__sqlite_prefetch {
    unsigned char *bytes; /* C: rows, one behind another */
    size_t used, room;    /* C */
    size_t most;          /* C: bytes */
    due_id *changed;      /* C: a hash table of jobs; one without an id is free */
    size_t n, slots;      /* C: a power of two, or 0 */
    bool lost;            /* C: there was no memory for it: nothing is taken from here */
};

/* Forget all of it, and keep so many bytes from now on. */
void due__sqlite_prefetch_begin(struct due__sqlite_prefetch *p, size_t most);
void due__sqlite_prefetch_free(struct due__sqlite_prefetch *p);

/* Bytes of a record that would be kept now. */
size_t due__sqlite_prefetch_room(const struct due__sqlite_prefetch *p);

/* Keep what the row says: where it is, or 0: it is not. */
size_t due__sqlite_prefetch_add(struct due__sqlite_prefetch *p, sqlite3_stmt *row);

/* The job was changed. */
void due__sqlite_prefetch_changed(struct due__sqlite_prefetch *p, due_id id);

/* What was kept of the job at @at; valid until something is added.  False: look it up. */
bool due__sqlite_prefetch_get(const struct due__sqlite_prefetch *p, size_t at, due_id id,
                              struct due__sqlite_row *row);

#endif
