/* bare_file.h - what SQLite can do by itself: a table of jobs with an index by time, and a loop. */
#ifndef BENCH_BARE_FILE_H
#define BENCH_BARE_FILE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bare_file {
    sqlite3 *db;
    sqlite3_stmt *put, *take, *read;
    uint64_t seed;
};

/* @synchronous: FULL or NORMAL.  @indexed: jobs can be found by their time. */
struct bare_file bare_file_open(const char *path, const char *synchronous, bool indexed);
void bare_file_close(struct bare_file *b);

/* Each answers the seconds it took for @jobs jobs, so many a transaction. */
double bare_file_put(struct bare_file *b, size_t jobs, size_t batch, size_t payload);
double bare_file_take(struct bare_file *b, size_t jobs, size_t batch); /* the earliest */
double bare_file_read(struct bare_file *b, size_t jobs);               /* all, by time */

#endif
