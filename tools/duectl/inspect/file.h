/* file.h - a file of SQLite that is looked into, without owning its queue. */
#ifndef DUECTL_FILE_H
#define DUECTL_FILE_H

#include <sqlite3.h>

#include "inspect/inspect.h"

/* Open it to be read, if it holds a queue.  0, or an exit status: said why not. */
int ctl_file_open(const char *path, sqlite3 **db);
/* Say what is wrong with it, and close it: the exit status. */
int ctl_file_broken(sqlite3 *db, const char *path);
/* The first value of the first row; -1: there is none. */
int64_t ctl_file_number(sqlite3 *db, const char *query);

/* While SQLite is at work say so on a terminal, after a second: ctl_progress().  @doing stays. */
void ctl_file_watch(sqlite3 *db, const char *doing);

/* The first column of each row, as it can be shown, for @say.  False: that cannot be read. */
bool ctl_file_texts(sqlite3 *db, const char *query, void (*say)(void *ctx, const char *text),
                    void *ctx);

#endif
