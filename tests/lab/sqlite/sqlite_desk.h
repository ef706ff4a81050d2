/* sqlite_desk.h - a store on a file, called as a queue calls it, and SQLite itself beside it. */
#ifndef SQLITE_DESK_H
#define SQLITE_DESK_H

#include <sqlite3.h>
#include <time.h>

#include "lab/sqlite/sqlite_place.h"

struct sqlite_desk {
    struct sqlite_place place;
    due_store *store;
    struct due_store_info info;
    due_error error;
    uint64_t number; /* of the last batch */
    char log[512];   /* the last line */
};

static inline int64_t sqlite_desk_now(void *clock)
{
    (void)clock;
    return 0;
}

static inline void sqlite_desk_log(void *queue, enum due_log_level level, const char *text)
{
    struct sqlite_desk *d = queue;

    (void)level;
    snprintf(d->log, sizeof d->log, "%s", text);
}

/* Open @name's queue, waiting so long for its owner. */
static inline int sqlite_desk_open_as(struct sqlite_desk *d, const char *name, int64_t wait_ns)
{
    struct due_store_open how = { .name = name,
                                  .until_ns = crew_now_ns() + wait_ns,
                                  .now = sqlite_desk_now,
                                  .log = sqlite_desk_log,
                                  .queue = d };

    d->error = (due_error){ "", "" };
    d->number = 0;
    d->store = sqlite_place_store(&d->place);
    int rc = d->store->verbs->open(d->store, &how, &d->info, &d->error);
    if (rc != 0) {
        due_sqlite_free(d->store);
        d->store = NULL;
    }
    return rc;
}

static inline int sqlite_desk_open(struct sqlite_desk *d)
{
    return sqlite_desk_open_as(d, "queue", 0);
}

static inline void sqlite_desk_shut(struct sqlite_desk *d)
{
    if (d->store == NULL)
        return;
    (void)d->store->verbs->close(d->store, crew_now_ns() + DUE_S(5));
    due_sqlite_free(d->store);
    d->store = NULL;
}

static inline due_record sqlite_desk_record(unsigned char number)
{
    return (due_record){ .id = { { 255, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, number } },
                         .deadline_ns = number,
                         .until_ns = number,
                         .topic = "",
                         .data = "payload",
                         .len = 7 };
}

static inline int sqlite_desk_commit(struct sqlite_desk *d, const due_change *change,
                                     int64_t wait_ns)
{
    int rc = d->store->verbs->commit(d->store, change, 1, d->number + 1, crew_now_ns() + wait_ns);

    d->number += rc == 0;
    return rc;
}

static inline int sqlite_desk_put(struct sqlite_desk *d, unsigned char number, int64_t wait_ns)
{
    due_change change = { .kind = DUE_CHANGE_PUT, .record = sqlite_desk_record(number) };

    return sqlite_desk_commit(d, &change, wait_ns);
}

static inline int sqlite_desk_count(void *ctx, const due_record *record)
{
    (void)record;
    ++*(unsigned *)ctx;
    return 0;
}

/* How many jobs the store shows; or an error. */
static inline int sqlite_desk_jobs(struct sqlite_desk *d)
{
    unsigned shown = 0;
    int rc = 1;

    for (int rewind = 1; rc == 1; rewind = 0)
        rc = d->store->verbs->load(d->store, rewind, 50, sqlite_desk_count, &shown,
                                   crew_now_ns() + DUE_S(5));
    return rc < 0 ? rc : (int)shown;
}

/* ---- SQLite itself ---- */

static inline sqlite3 *sqlite_desk_other(const struct sqlite_desk *d)
{
    sqlite3 *db = NULL;

    CREW_CHECK(sqlite3_open(d->place.path, &db) == SQLITE_OK, "");
    return db;
}

/* The first value of the first row, or "". */
static inline const char *sqlite_desk_ask(sqlite3 *db, const char *text)
{
    static char answer[256];
    sqlite3_stmt *statement = NULL;

    CREW_CHECK(sqlite3_prepare_v2(db, text, -1, &statement, NULL) == SQLITE_OK, ": %s",
               sqlite3_errmsg(db));
    int rc = sqlite3_step(statement);
    const unsigned char *value = rc == SQLITE_ROW ? sqlite3_column_text(statement, 0) : NULL;
    snprintf(answer, sizeof answer, "%s", value != NULL ? (const char *)value : "");
    rc = sqlite3_finalize(statement);
    CREW_CHECK(rc == SQLITE_OK, ": %s", sqlite3_errmsg(db));
    return answer;
}

static inline void sqlite_desk_begin(struct sqlite_desk *d)
{
    *d = (struct sqlite_desk){ .number = 0 };
    sqlite_place_open(&d->place);
}

static inline void sqlite_desk_end(struct sqlite_desk *d)
{
    sqlite_desk_shut(d);
    sqlite_place_close(&d->place);
}

#endif
