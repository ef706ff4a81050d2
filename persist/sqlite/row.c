/* row.c - a job from a row of the table. */
#include "sqlite/row.h"

#include <string.h>

bool due__sqlite_row_id(sqlite3_stmt *row, int column, due_id *id)
{
    const void *bytes = sqlite3_column_blob(row, column);

    if (sqlite3_column_bytes(row, column) != DUE_STORE_ID_BYTES || bytes == NULL)
        return false;
    *id = (due_id){ { 0 } };
    memcpy(id->byte, bytes, DUE_STORE_ID_BYTES);
    return true;
}

static bool is_count(int64_t value)
{
    return value >= 0 && value <= UINT32_MAX;
}

static int read_death(sqlite3_stmt *row, due_record *r, char reason[DUE_REASON_BYTES])
{
    const void *bytes = sqlite3_column_blob(row, DUE__SQLITE_REASON);
    int len = sqlite3_column_bytes(row, DUE__SQLITE_REASON);
    int cause = sqlite3_column_int(row, DUE__SQLITE_CAUSE);

    r->died_ns = sqlite3_column_int64(row, DUE__SQLITE_DIED);
    if (r->died_ns < 0 || cause <= 0 || len >= DUE_REASON_BYTES ||
        (len > 0 && memchr(bytes, '\0', (size_t)len) != NULL))
        return DUE_ECORRUPT;
    if (cause > DUE_CAUSE_EXPIRED)
        return DUE_EVERSION;
    if (len > 0)
        memcpy(reason, bytes, (size_t)len);
    reason[len] = '\0';
    r->cause = (enum due_cause)cause;
    r->reason = reason;
    return 0;
}

struct due__sqlite_row due__sqlite_row_of(sqlite3_stmt *row)
{
    struct due__sqlite_row to = { .until_ns = sqlite3_column_int64(row, DUE__SQLITE_UNTIL),
                                  .attempts = sqlite3_column_int64(row, DUE__SQLITE_ATTEMPTS),
                                  .failures = sqlite3_column_int64(row, DUE__SQLITE_FAILURES) };

    to.deadline_ns = sqlite3_column_type(row, DUE__SQLITE_DEADLINE) == SQLITE_NULL
                         ? to.until_ns
                         : sqlite3_column_int64(row, DUE__SQLITE_DEADLINE);
    to.record = sqlite3_column_blob(row, DUE__SQLITE_RECORD);
    to.len = (size_t)sqlite3_column_bytes(row, DUE__SQLITE_RECORD);
    return to;
}

int due__sqlite_row_job(const struct due__sqlite_row *from, due_record *r,
                        struct due__record_room *room)
{
    if (from->record == NULL)
        return DUE_ECORRUPT;
    int rc = due__record_read(r, room, from->record, from->len);
    if (rc != 0)
        return rc;
    if (from->until_ns < 0 || from->deadline_ns < 0 || !is_count(from->attempts) ||
        !is_count(from->failures))
        return DUE_ECORRUPT;
    r->until_ns = from->until_ns;
    r->deadline_ns = from->deadline_ns;
    r->attempts = (uint32_t)from->attempts;
    r->failures = (uint32_t)from->failures;
    return 0;
}

int due__sqlite_row_read(sqlite3_stmt *row, due_record *r, struct due__record_room *room)
{
    struct due__sqlite_row from = due__sqlite_row_of(row);
    int rc = due__sqlite_row_job(&from, r, room);

    if (rc == 0 && sqlite3_column_type(row, DUE__SQLITE_DIED) != SQLITE_NULL)
        rc = read_death(row, r, room->reason);
    return rc;
}
