/* batch.c - a batch of changes is a transaction, and its number is written down in it.
 *
 * So whether it has landed need not be guessed: whoever asks again with the same number changes
 * nothing if it has.  A commit that failed may have landed all the same, if what failed was to wait
 * for the disk: it is in doubt, and done again.
 */
#include <limits.h>
#include <string.h>

#include "sqlite/session.h"

/* ---- Binding --------------------------------------------------------------------------------- */

static void bind_id(sqlite3_stmt *statement, int at, const due_id *id)
{
    sqlite3_bind_blob(statement, at, id->byte, DUE_STORE_ID_BYTES, SQLITE_STATIC);
}

/* What may change of a job: ?1 to ?8. */
static void bind_state(sqlite3_stmt *statement, const due_record *r)
{
    const char *reason = r->reason != NULL ? r->reason : "";

    bind_id(statement, 1, &r->id);
    sqlite3_bind_int64(statement, 2, r->until_ns);
    if (r->deadline_ns == r->until_ns)
        sqlite3_bind_null(statement, 3);
    else
        sqlite3_bind_int64(statement, 3, r->deadline_ns);
    sqlite3_bind_int64(statement, 4, r->attempts);
    sqlite3_bind_int64(statement, 5, r->failures);
    for (int i = 6; i <= 8; i++)
        sqlite3_bind_null(statement, i);
    if (r->cause == 0)
        return;
    sqlite3_bind_int64(statement, 6, r->died_ns);
    sqlite3_bind_int(statement, 7, (int)r->cause);
    if (reason[0] != '\0')
        sqlite3_bind_blob(statement, 8, reason, (int)strnlen(reason, DUE_REASON_BYTES - 1),
                          SQLITE_STATIC);
}

/* The record, in one piece. */
static int write_record(struct due__sqlite *s, const due_record *r, size_t *front, size_t *len)
{
    if (r->len > INT_MAX - DUE__RECORD_FRONT)
        return SQLITE_TOOBIG;
    return due__scratch_record(&s->scratch, r, front, len) == 0 ? 0 : SQLITE_NOMEM;
}

/* ---- Places ---------------------------------------------------------------------------------- */

static struct due__sqlite_place place_of(const due_record *r, int64_t topic)
{
    bool dead = r->cause != 0;

    return (struct due__sqlite_place){ .dead = dead,
                                       .topic = dead ? 0 : topic,
                                       .at_ns = dead ? r->died_ns : r->until_ns,
                                       .id = r->id };
}

/* A load under way must not pass it over. */
static int note_move(struct due__sqlite *s, const due_change *change)
{
    int64_t topic = 0;

    if (!s->load.active)
        return 0;
    int rc = due__sqlite_topic(s, change->record.topic, &topic);
    if (rc != 0)
        return rc;
    struct due__sqlite_place to = place_of(&change->record, topic);
    struct due__sqlite_place from = { .dead = change->was_dead != 0,
                                      .topic = change->was_dead ? 0 : topic,
                                      .at_ns = change->was_ns,
                                      .id = change->record.id };
    due__sqlite_moved(s, &from, &to);
    return 0;
}

/* ---- Changes --------------------------------------------------------------------------------- */

static int put_key(struct due__sqlite *s, const due_record *r, int64_t kept_ns)
{
    sqlite3_stmt *statement = s->statement[DUE__SQL_KEY_PUT];

    sqlite3_bind_blob(statement, 1, r->key, (int)r->key_len, SQLITE_STATIC);
    bind_id(statement, 2, &r->id);
    if (kept_ns != 0)
        sqlite3_bind_int64(statement, 3, kept_ns);
    else
        sqlite3_bind_null(statement, 3);
    return due__sqlite_run(s, DUE__SQL_KEY_PUT, NULL);
}

static int free_key(struct due__sqlite *s, const due_record *r)
{
    sqlite3_stmt *statement = s->statement[DUE__SQL_KEY_FREE];

    sqlite3_bind_blob(statement, 1, r->key, (int)r->key_len, SQLITE_STATIC);
    bind_id(statement, 2, &r->id);
    return due__sqlite_run(s, DUE__SQL_KEY_FREE, NULL);
}

static int put_as(struct due__sqlite *s, enum due__sqlite_statement which, const due_record *r,
                  int64_t topic)
{
    sqlite3_stmt *statement = s->statement[which];
    size_t front = 0;
    size_t len = 0;
    int rc = write_record(s, r, &front, &len);

    if (rc != 0)
        return rc;
    bind_state(statement, r);
    sqlite3_bind_int64(statement, 9, topic);
    sqlite3_bind_blob(statement, 10, s->scratch.bytes, (int)len, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 11, (sqlite3_int64)front);
    return due__sqlite_run(s, which, NULL);
}

/* Nearly always it is new. */
static int put(struct due__sqlite *s, const due_change *change)
{
    const due_record *r = &change->record;
    int64_t topic = 0;
    int rc = due__sqlite_topic(s, r->topic, &topic);

    if (rc == 0)
        rc = put_as(s, DUE__SQL_PUT, r, topic);
    if ((rc & 0xff) == SQLITE_CONSTRAINT) {
        struct due__sqlite_place to = place_of(r, topic);

        rc = put_as(s, DUE__SQL_REPLACE, r, topic);
        due__sqlite_moved(s, NULL, &to);
    }
    if (rc == 0 && r->key_len > 0)
        rc = put_key(s, r, 0);
    return rc;
}

static int move(struct due__sqlite *s, const due_change *change)
{
    due_record r = change->record;

    if (change->kind == DUE_CHANGE_MOVE)
        r.cause = 0;
    bind_state(s->statement[DUE__SQL_MOVE], &r);
    int rc = due__sqlite_run(s, DUE__SQL_MOVE, NULL);
    return rc == 0 ? note_move(s, change) : rc;
}

static int drop(struct due__sqlite *s, const due_change *change)
{
    const due_record *r = &change->record;

    bind_id(s->statement[DUE__SQL_DROP], 1, &r->id);
    int rc = due__sqlite_run(s, DUE__SQL_DROP, NULL);
    if (rc == 0 && r->key_len > 0)
        rc = change->key_kept_ns != 0 ? put_key(s, r, change->key_kept_ns) : free_key(s, r);
    return rc;
}

static int make(struct due__sqlite *s, const due_change *change)
{
    switch (change->kind) {
    case DUE_CHANGE_PUT:
        return put(s, change);
    case DUE_CHANGE_MOVE:
    case DUE_CHANGE_BURY:
        return move(s, change);
    case DUE_CHANGE_DROP:
        return drop(s, change);
    case DUE_CHANGE_KEEP:
        return put_key(s, &change->record, change->key_kept_ns);
    case DUE_CHANGE_FORGET:
        return free_key(s, &change->record);
    default:
        return SQLITE_MISUSE;
    }
}

/* ---- The batch ------------------------------------------------------------------------------- */

enum end { MADE, LANDED_BEFORE, REFUSED, UNKNOWN };

/* Write its number down: only its owner can, and only once. */
static int number_it(struct due__sqlite *s, uint64_t number, enum end *end)
{
    sqlite3_stmt *statement = s->statement[DUE__SQL_NUMBER];
    int changed = 0;

    sqlite3_bind_int64(statement, 1, (sqlite3_int64)number);
    sqlite3_bind_int64(statement, 2, (sqlite3_int64)s->writer);
    int rc = due__sqlite_run(s, DUE__SQL_NUMBER, &changed);
    if (rc == 0 && changed == 0)
        *end = LANDED_BEFORE;
    return rc;
}

/* One attempt.  Answers an error of SQLite. */
static int attempt(struct due__sqlite *s, const due_change *changes, size_t n, uint64_t number,
                   enum end *end)
{
    *end = MADE;
    int rc = due__sqlite_run(s, DUE__SQL_BEGIN, NULL);
    if (rc == 0)
        rc = number_it(s, number, end);
    for (size_t i = 0; i < n && rc == 0 && *end == MADE; i++)
        rc = make(s, &changes[i]);
    if (rc == 0 && *end == MADE) {
        rc = due__sqlite_run(s, DUE__SQL_COMMIT, NULL);
        if (rc != 0)
            *end = UNKNOWN;
    } else if (rc != 0) {
        *end = REFUSED;
    }
    if (*end != MADE)
        due__sqlite_rollback(s);
    return rc;
}

/* Does it only make room? */
static bool only_removes(const due_change *changes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (changes[i].kind != DUE_CHANGE_DROP && changes[i].kind != DUE_CHANGE_FORGET)
            return false;
    return true;
}

/* What the caller is told of an attempt that failed.  A commit may have failed behind its last
 * write: whether that reached the disk only a later opening would show. */
static int failure(struct due__sqlite *s, int code, enum end end)
{
    int rc = due__sqlite_error(s, code);

    if (end == UNKNOWN && (code & 0xff) == SQLITE_IOERR && rc != DUE_ENOSPC)
        return DUE_EINDOUBT;
    return rc;
}

int due__sqlite_commit(struct due__sqlite *s, const due_change *changes, size_t n, uint64_t number)
{
    enum end end;

    if (number <= s->landed)
        return 0;
    int code = attempt(s, changes, n, number, &end);
    due__scratch_shrink(&s->scratch);
    if ((code & 0xff) == SQLITE_FULL && only_removes(changes, n)) {
        /* What the log holds goes into the file, and its room is used once more: that was kept for
         * removals, since whatever else comes is refused. */
        code = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
        if (code == 0)
            code = attempt(s, changes, n, number, &end);
        else
            code = SQLITE_FULL;
    }
    if (code != 0)
        return failure(s, code, end);
    if (end == LANDED_BEFORE) {
        int rc = due__sqlite_fence(s); /* or it is not ours any more */
        if (rc != 0)
            return rc;
    }
    s->landed = number;
    s->unsynced = true;
    return 0;
}
