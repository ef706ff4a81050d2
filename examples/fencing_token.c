/* fencing_token.c - a consumer that was stopped for too long cannot undo what another has done.
 *
 * Each lease of a shared queue has a token that is higher than those before it, in all processes.
 * It is stored with the row that is written, and a write counts only if its token is higher.  So it
 * does not matter that the first holder of the job does not know that its lease is over: its write
 * changes nothing, and its ack is refused.
 *
 *     fencing_token [URL [FILE]]  such as unix:///run/redis/redis.sock, or $DUE_STORE_URL;
 *                                 the rows are in FILE (accounts.db)
 */
#include <due/due.h>
#include <due/redis.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static due_queue *open_queue(const char *url)
{
    due_options options = { DUE_OPTIONS_INIT, .name = "accounts", .share = DUE_SHARED,
                            .lease_ns = DUE_MS(300) };
    due_queue *q = NULL;
    due_error error;

    if (due_redis_open(&options.store, url, NULL, &error) == 0 &&
        due_open(&q, &options, &error) == 0)
        return q;
    fprintf(stderr, "%s %s\n", error.text, error.hint);
    due_redis_free(options.store);
    exit(1);
}

static sqlite3 *open_rows(const char *file)
{
    sqlite3 *db;

    if (sqlite3_open(file, &db) != SQLITE_OK || sqlite3_busy_timeout(db, 5000) != SQLITE_OK ||
        sqlite3_exec(db,
                     "CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, balance INTEGER,"
                     " token INTEGER NOT NULL DEFAULT 0);"
                     "INSERT OR IGNORE INTO account (name, balance) VALUES ('anna', 100)",
                     NULL, NULL, NULL) != SQLITE_OK)
        exit(1);
    return db;
}

/* How many rows were changed: 1, or 0 if somebody with a later lease was here. */
static int set_balance(sqlite3 *db, int balance, uint64_t token)
{
    sqlite3_stmt *change;

    if (sqlite3_prepare_v2(db,
                           "UPDATE account SET balance = ?, token = ?2"
                           " WHERE name = 'anna' AND token < ?2",
                           -1, &change, NULL) != SQLITE_OK)
        exit(1);
    sqlite3_bind_int(change, 1, balance);
    sqlite3_bind_int64(change, 2, (sqlite3_int64)token);
    if (sqlite3_step(change) != SQLITE_DONE)
        exit(1);
    sqlite3_finalize(change);
    return sqlite3_changes(db);
}

static int balance_of(sqlite3 *db)
{
    sqlite3_stmt *look;

    if (sqlite3_prepare_v2(db, "SELECT balance FROM account", -1, &look, NULL) != SQLITE_OK ||
        sqlite3_step(look) != SQLITE_ROW)
        exit(1);
    int balance = sqlite3_column_int(look, 0);
    sqlite3_finalize(look);
    return balance;
}

/* It is stopped in the middle of its job, as a machine may be that is moved or out of memory. */
static void be_slow(const char *url, const char *file)
{
    due_queue *q = open_queue(url);
    due_job job;

    if (due_reserve(q, &job, DUE_S(10)) != 0)
        exit(1);
    raise(SIGSTOP);
    sqlite3 *db = open_rows(file);
    printf("the one that was stopped goes on: it changes %d rows\n",
           set_balance(db, 90, job.token));
    printf("and its ack is answered with %s\n", due_error_name(due_ack(&job)));
    due_job_done(&job);
    sqlite3_close(db);
    fflush(stdout);
    exit(due_close(q, DUE_CLOSE_DISCARD, DUE_S(5)) || due_free(q));
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : getenv("DUE_STORE_URL");
    const char *file = argc > 2 ? argv[2] : "accounts.db";
    due_spec spec = { DUE_SPEC_INIT, .data = "anna pays 10", .len = 12 };
    due_job job;
    int status;

    if (url == NULL)
        return 77;
    pid_t slow = fork(); /* before this process opens any queue */
    if (slow == 0)
        be_slow(url, file);
    due_queue *q = open_queue(url);
    if (due_enqueue(q, &spec, DUE_S(5), NULL) != 0 || waitpid(slow, &status, WUNTRACED) != slow ||
        !WIFSTOPPED(status))
        return 1;
    printf("a consumer has the job, and is stopped\n");
    if (due_reserve(q, &job, DUE_S(10)) != 0)
        return 1;
    sqlite3 *db = open_rows(file);
    printf("another gets it when the lease is over: it changes %d row\n",
           set_balance(db, 90, job.token));
    int rc = due_ack(&job);
    rc = rc || set_balance(db, 70, job.token + 1) != 1; /* and somebody else's job, later on */
    fflush(stdout);
    kill(slow, SIGCONT);
    rc = rc || waitpid(slow, &status, 0) != slow || status != 0;
    printf("the balance is %d\n", balance_of(db));
    sqlite3_close(db);
    return rc || due_close(q, DUE_CLOSE_DISCARD, DUE_S(5)) || due_free(q);
}
