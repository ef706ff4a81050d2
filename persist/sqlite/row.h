/* row.h - a job from a row of the table. */
#ifndef DUE__SQLITE_ROW_H
#define DUE__SQLITE_ROW_H

#include <sqlite3.h>
#include <stdbool.h>

#include "record/record.h"

/* The columns, in the order in which they are asked for. */
#define DUE__SQLITE_COLUMNS \
    "id, until, deadline, attempts, failures, died, cause, reason, topic, record"

/* The slices that there are, each found from the one before: there are few. */
#define DUE__SQLITE_SLICES                                             \
    "WITH RECURSIVE one (number) AS (SELECT min(slice) FROM job UNION" \
    " SELECT (SELECT min(slice) FROM job WHERE slice > number) FROM one WHERE number IS NOT NULL)"

enum due__sqlite_column {
    DUE__SQLITE_ID,
    DUE__SQLITE_UNTIL,
    DUE__SQLITE_DEADLINE,
    DUE__SQLITE_ATTEMPTS,
    DUE__SQLITE_FAILURES,
    DUE__SQLITE_DIED,
    DUE__SQLITE_CAUSE,
    DUE__SQLITE_REASON,
    DUE__SQLITE_TOPIC_NUMBER,
    DUE__SQLITE_RECORD
};

/* What a row says of a job that waits, but its id. */
struct due__sqlite_row {
    int64_t until_ns, deadline_ns, attempts, failures;
    const void *record; /* NULL: none */
    size_t len;
};

/* False: it is none. */
bool due__sqlite_row_id(sqlite3_stmt *row, int column, due_id *id);

/* The job @record->id of the row: all but whose its key is.  What it points to is valid until the
 * next step.  DUE_ECORRUPT, DUE_EVERSION. */
int due__sqlite_row_read(sqlite3_stmt *row, due_record *record, struct due__record_room *room);

/* The same in two steps: what the row says, which is valid until the next step, and the job of it,
 * which is not dead. */
struct due__sqlite_row due__sqlite_row_of(sqlite3_stmt *row);
int due__sqlite_row_job(const struct due__sqlite_row *from, due_record *record,
                        struct due__record_room *room);

#endif
