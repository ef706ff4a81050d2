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

static bool read_count(sqlite3_stmt *row, int column, uint32_t *count)
{
    int64_t value = sqlite3_column_int64(row, column);

    *count = (uint32_t)value;
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

int due__sqlite_row_read(sqlite3_stmt *row, due_record *r, struct due__record_room *room)
{
    int len = sqlite3_column_bytes(row, DUE__SQLITE_RECORD);
    const void *bytes = sqlite3_column_blob(row, DUE__SQLITE_RECORD);

    if (bytes == NULL)
        return DUE_ECORRUPT;
    int rc = due__record_read(r, room, bytes, (size_t)len);
    if (rc != 0)
        return rc;
    r->until_ns = sqlite3_column_int64(row, DUE__SQLITE_UNTIL);
    r->deadline_ns = sqlite3_column_type(row, DUE__SQLITE_DEADLINE) == SQLITE_NULL
                         ? r->until_ns
                         : sqlite3_column_int64(row, DUE__SQLITE_DEADLINE);
    if (r->until_ns < 0 || r->deadline_ns < 0 ||
        !read_count(row, DUE__SQLITE_ATTEMPTS, &r->attempts) ||
        !read_count(row, DUE__SQLITE_FAILURES, &r->failures))
        return DUE_ECORRUPT;
    if (sqlite3_column_type(row, DUE__SQLITE_DIED) != SQLITE_NULL)
        rc = read_death(row, r, room->reason);
    return rc;
}
