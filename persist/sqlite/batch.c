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

/* Take the job out of where it is told to lie; if it does not, it is looked for. */
static int take_out(struct due__sqlite *s, due_id id, int64_t slice, bool look)
{
    sqlite3_stmt *statement = s->statement[DUE__SQL_DROP];
    int changed = 0;

    bind_id(statement, 1, &id);
    sqlite3_bind_int64(statement, 2, slice);
    int rc = due__sqlite_run(s, DUE__SQL_DROP, &changed);
    s->balance -= changed;
    if (changed > 0)
        due__sqlite_changed(s, slice, id);
    if (rc != 0 || changed > 0 || !look)
        return rc;
    rc = due__sqlite_locate(s, id, &slice);
    if (rc != 0)
        return rc == SQLITE_DONE ? 0 : rc;
    return take_out(s, id, slice, false);
}

/* It comes where its time says, whatever was stored of it before. */
static int put(struct due__sqlite *s, const due_change *change)
{
    sqlite3_stmt *statement = s->statement[DUE__SQL_PUT];
    const due_record *r = &change->record;
    bool dead = r->cause != 0;
    int64_t slice = due__sqlite_slice(dead, r->until_ns);
    int64_t topic = 0;
    size_t front = 0;
    size_t len = 0;
    int rc = due__sqlite_topic(s, r->topic, &topic);

    if (rc == 0)
        rc = write_record(s, r, &front, &len);
    if (rc == 0 && !change->is_new) {
        rc = take_out(s, r->id, slice, true);
        due__sqlite_moved(s, dead, dead ? r->died_ns : r->until_ns, r->id);
    }
    if (rc != 0)
        return rc;
    bind_state(statement, r);
    sqlite3_bind_int64(statement, 9, slice);
    sqlite3_bind_int64(statement, 10, topic);
    sqlite3_bind_blob(statement, 11, s->scratch.bytes, (int)len, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 12, (sqlite3_int64)front);
    rc = due__sqlite_run(s, DUE__SQL_PUT, NULL);
    s->balance += rc == 0;
    return rc == 0 && r->key_len > 0 ? put_key(s, r, 0) : rc;
}

/* Within its slice, or into another. */
static int move_from(struct due__sqlite *s, const due_record *r, int64_t from, int *changed)
{
    int64_t to = due__sqlite_slice(r->cause != 0, r->until_ns);
    enum due__sqlite_statement which = from == to ? DUE__SQL_MOVE : DUE__SQL_MOVE_FAR;

    bind_state(s->statement[which], r);
    sqlite3_bind_int64(s->statement[which], 9, from);
    if (from != to)
        sqlite3_bind_int64(s->statement[which], 10, to);
    int rc = due__sqlite_run(s, which, changed);
    if (*changed > 0)
        due__sqlite_changed(s, from, r->id);
    return rc;
}

static int move(struct due__sqlite *s, const due_change *change)
{
    due_record r = change->record;
    int64_t from = due__sqlite_slice(change->was_dead, change->was_ns);
    int changed = 0;

    if (change->kind == DUE_CHANGE_MOVE)
        r.cause = 0;
    int rc = move_from(s, &r, from, &changed);
    if (rc == 0 && changed == 0) {
        rc = due__sqlite_locate(s, r.id, &from);
        if (rc == 0)
            rc = move_from(s, &r, from, &changed);
        else if (rc == SQLITE_DONE)
            rc = 0;
    }
    if (rc == 0)
        due__sqlite_moved(s, r.cause != 0, r.cause != 0 ? r.died_ns : r.until_ns, r.id);
    return rc;
}

static int drop(struct due__sqlite *s, const due_change *change)
{
    const due_record *r = &change->record;
    int rc = take_out(s, r->id, due__sqlite_slice(change->was_dead, change->was_ns), true);

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
    case DUE_CHANGE_TOPIC:
        return due__sqlite_set_topic(s, change);
    default:
        return SQLITE_MISUSE;
    }
}

/* ---- The batch ------------------------------------------------------------------------------- */

enum end { MADE, LANDED_BEFORE, REFUSED, UNKNOWN };

/* By how much there will be more jobs, nearly always. */
static int64_t balance_of(const due_change *changes, size_t n)
{
    int64_t balance = 0;

    for (size_t i = 0; i < n; i++)
        balance += (changes[i].kind == DUE_CHANGE_PUT && changes[i].is_new) -
                   (changes[i].kind == DUE_CHANGE_DROP);
    return balance;
}

/* Write its number down: only its owner can, and only once. */
static int number_it(struct due__sqlite *s, uint64_t number, int64_t balance, enum end *end)
{
    sqlite3_stmt *statement = s->statement[DUE__SQL_NUMBER];
    int changed = 0;

    sqlite3_bind_int64(statement, 1, (sqlite3_int64)number);
    sqlite3_bind_int64(statement, 2, (sqlite3_int64)s->writer);
    sqlite3_bind_int64(statement, 3, balance);
    int rc = due__sqlite_run(s, DUE__SQL_NUMBER, &changed);
    if (rc == 0 && changed == 0)
        *end = LANDED_BEFORE;
    return rc;
}

static bool removes(const due_change *change)
{
    bool lets_go = change->kind == DUE_CHANGE_TOPIC && change->paused <= 0 && change->held_max <= 0;

    return lets_go || change->kind == DUE_CHANGE_DROP || change->kind == DUE_CHANGE_FORGET;
}

/* Does it only make room? */
static bool only_removes(const due_change *changes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!removes(&changes[i]))
            return false;
    return true;
}

/* The file gets room for what the log holds: then the log can always be written into it, and used
 * once more for removals, though the disk is full. */
static int reserve_room(struct due__sqlite *s)
{
    int64_t pages = 0;
    int rc = due__sqlite_number(s, DUE__SQL_PAGES, &pages);
    sqlite3_int64 bytes = pages * s->page_bytes;

    if (rc == 0 && sqlite3_file_control(s->db, NULL, SQLITE_FCNTL_SIZE_HINT, &bytes) != 0)
        rc = SQLITE_FULL;
    return rc;
}

/* One attempt.  Answers an error of SQLite. */
static int attempt(struct due__sqlite *s, const due_change *changes, size_t n, uint64_t number,
                   enum end *end)
{
    int64_t balance = balance_of(changes, n);

    *end = MADE;
    s->balance = 0;
    int rc = due__sqlite_run(s, DUE__SQL_BEGIN, NULL);
    if (rc == 0)
        rc = number_it(s, number, balance, end);
    for (size_t i = 0; i < n && rc == 0 && *end == MADE; i++)
        rc = make(s, &changes[i]);
    if (rc == 0 && *end == MADE && s->balance != balance) {
        sqlite3_bind_int64(s->statement[DUE__SQL_ADD], 1, s->balance - balance);
        rc = due__sqlite_run(s, DUE__SQL_ADD, NULL);
    }
    if (rc == 0 && *end == MADE && !only_removes(changes, n))
        rc = reserve_room(s);
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

int due__sqlite_writable(struct due__sqlite *s)
{
    int code = due__sqlite_run(s, DUE__SQL_BEGIN, NULL);
    int rc = code != 0 ? due__sqlite_error(s, code) : 0;

    if (code == 0 && due__sqlite_run(s, DUE__SQL_COMMIT, NULL) != 0)
        due__sqlite_rollback(s);
    return rc == DUE_EAGAIN ? rc : 0; /* any other is the batch's to find out */
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
