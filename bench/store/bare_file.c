/* bare_file.c - a delay queue as one would write it with SQLite alone. */
#include "bare_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void must_be(struct bare_file *b, int rc, int expected)
{
    if (rc == expected)
        return;
    fprintf(stderr, "SQLite: %s\n", sqlite3_errmsg(b->db));
    exit(1);
}

static void run(struct bare_file *b, const char *text)
{
    must_be(b, sqlite3_exec(b->db, text, NULL, NULL, NULL), SQLITE_OK);
}

static sqlite3_stmt *prepare(struct bare_file *b, const char *text)
{
    sqlite3_stmt *statement = NULL;

    must_be(b, sqlite3_prepare_v2(b->db, text, -1, &statement, NULL), SQLITE_OK);
    return statement;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct bare_file bare_file_open(const char *path, const char *synchronous, bool indexed)
{
    struct bare_file b = { .seed = 1 };
    char text[64];

    must_be(&b, sqlite3_open(path, &b.db), SQLITE_OK);
    run(&b, "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 4096;"
            "PRAGMA cache_size = -32768;"
            "CREATE TABLE job (id INTEGER PRIMARY KEY, due INTEGER NOT NULL, data BLOB NOT NULL)");
    snprintf(text, sizeof text, "PRAGMA synchronous = %s", synchronous);
    run(&b, text);
    if (indexed)
        run(&b, "CREATE INDEX job_due ON job (due)");
    b.put = prepare(&b, "INSERT INTO job (due, data) VALUES (?1, ?2)");
    b.take = prepare(&b, "DELETE FROM job WHERE id IN (SELECT id FROM job ORDER BY due LIMIT ?1)"
                         " RETURNING data");
    b.read = prepare(&b, "SELECT id, due, data FROM job ORDER BY due");
    return b;
}

void bare_file_close(struct bare_file *b)
{
    sqlite3_finalize(b->put);
    sqlite3_finalize(b->take);
    sqlite3_finalize(b->read);
    must_be(b, sqlite3_close(b->db), SQLITE_OK);
}

double bare_file_put(struct bare_file *b, size_t jobs, size_t batch, size_t payload)
{
    static const char bytes[4096];
    double begin = now();

    for (size_t at = 0; at < jobs; at += batch) {
        run(b, "BEGIN IMMEDIATE");
        for (size_t i = 0; i < batch; i++) {
            b->seed = b->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            sqlite3_bind_int64(b->put, 1, (sqlite3_int64)(b->seed >> 20));
            sqlite3_bind_blob(b->put, 2, bytes, (int)payload, SQLITE_STATIC);
            must_be(b, sqlite3_step(b->put), SQLITE_DONE);
            sqlite3_reset(b->put);
        }
        run(b, "COMMIT");
    }
    return now() - begin;
}

double bare_file_take(struct bare_file *b, size_t jobs, size_t batch)
{
    double begin = now();

    for (size_t at = 0; at < jobs; at += batch) {
        size_t got = 0;

        run(b, "BEGIN IMMEDIATE");
        sqlite3_bind_int64(b->take, 1, (sqlite3_int64)batch);
        while (sqlite3_step(b->take) == SQLITE_ROW)
            got += sqlite3_column_bytes(b->take, 0) > 0;
        must_be(b, sqlite3_reset(b->take), SQLITE_OK);
        must_be(b, got == batch ? SQLITE_OK : SQLITE_ERROR, SQLITE_OK);
        run(b, "COMMIT");
    }
    return now() - begin;
}

double bare_file_read(struct bare_file *b, size_t jobs)
{
    double begin = now();
    size_t got = 0;

    while (sqlite3_step(b->read) == SQLITE_ROW)
        got += sqlite3_column_bytes(b->read, 2) > 0;
    must_be(b, sqlite3_reset(b->read), SQLITE_OK);
    must_be(b, got == jobs ? SQLITE_OK : SQLITE_ERROR, SQLITE_OK);
    return now() - begin;
}
