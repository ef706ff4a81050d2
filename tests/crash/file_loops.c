/* file_loops.c - a worker whose queue is in a file is killed again and again; nothing is lost.
 *
 *     crash_files --worker PATH --level always|everysec|none [--cycles N] [--seed N]
 *
 * A cycle kills the worker at a random moment: while it opens the file, or at work.  What was
 * written is the system's then, so nothing confirmed may be lost, doubled, early or out of order at
 * any level.  Every ten cycles everything is taken out, the ledger is balanced, and the file must
 * be sound and empty.
 */
#include <inttypes.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/crew.h"
#include "lab/sqlite/sqlite_place.h"
#include "run.h"

#define BALANCE 10 /* cycles between two balances */

/* The first value that the file answers. */
static void ask(const struct run *r, const char *text, char answer[64])
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;

    answer[0] = '\0';
    if (sqlite3_open(r->url, &db) == SQLITE_OK &&
        sqlite3_prepare_v2(db, text, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        snprintf(answer, 64, "%s", (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    sqlite3_close(db);
}

static void spawn(struct run *r, const char *what)
{
    char flags[8];

    snprintf(flags, sizeof flags, "%s%s", what,
             strcmp(r->level, "always") == 0     ? ""
             : strcmp(r->level, "everysec") == 0 ? "e"
                                                 : "n");
    run_spawn(r, flags);
}

static void cycle(struct run *r)
{
    static const char *const flags[] = { "-", "a", "d", "-", "ad", "-" };

    spawn(r, flags[crew_below(&r->random, 6)]);
    if (crew_below(&r->random, 4) > 0)
        run_until(r, &r->open, false, "to be open");
    run_listen(r, (int64_t)crew_below(&r->random, 60) * 1000000);
    run_kill(r);
    r->kills[CLIENT]++;
}

static void balance(struct run *r)
{
    static const char *const questions[][2] = { { "PRAGMA integrity_check", "ok" },
                                                { "SELECT count(*) FROM job", "0" },
                                                { "SELECT count(*) FROM key", "0" },
                                                { "SELECT count(*) FROM aside", "0" } };
    char answer[64];

    spawn(r, "D");
    run_send_home(r);
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        ask(r, questions[i][0], answer);
        if (strcmp(answer, questions[i][1]) == 0)
            continue;
        printf("  cycle %u: %s: %s\n", r->step, questions[i][0], answer);
        r->wrong++;
    }
    ledger_balance(r->ledger);
}

static bool report(const struct run *r)
{
    struct ledger_verdict v = ledger_verdict(r->ledger);
    uint64_t wrong = r->wrong + v.lost + v.doubled + v.early + v.disorder + v.phantom + v.stale +
                     v.risen + v.keys;

    printf("crash of a file, %s: %u kills, %" PRIu64 " confirmed, %" PRIu64
           " handed over; lost %" PRIu64 ", doubled %" PRIu64 ", early %" PRIu64
           ", out of order %" PRIu64 ", phantom %" PRIu64 ", stale %" PRIu64 ", risen %" PRIu64
           ", keys %" PRIu64 "; cut short in a dequeue %" PRIu64 "\n",
           r->level, r->kills[CLIENT], v.told, v.handed, v.lost, v.doubled, v.early, v.disorder,
           v.phantom, v.stale, v.risen, v.keys, v.excused);
    return wrong == 0 && v.told > 0;
}

int main(int argc, char **argv)
{
    static struct run r;
    struct sqlite_place place;
    unsigned cycles = 20;

    r = (struct run){ .level = "always", .random = 1, .only = -1 };
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--worker") == 0)
            r.worker_path = argv[i + 1];
        else if (strcmp(argv[i], "--level") == 0)
            r.level = argv[i + 1];
        else if (strcmp(argv[i], "--cycles") == 0)
            cycles = (unsigned)strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0)
            r.random = strtoull(argv[i + 1], NULL, 10);
    }
    CREW_CHECK(r.worker_path != NULL, ": --worker PATH is missing");
    signal(SIGPIPE, SIG_IGN);
    sqlite_place_open(&place);
    snprintf(r.url, sizeof r.url, "%s", place.path);
    snprintf(r.known_path, sizeof r.known_path, "%s/known", place.folder);
    r.ledger = ledger_new();
    for (r.step = 1; r.step <= cycles; r.step++) {
        cycle(&r);
        if (r.step % BALANCE == 0 || r.step == cycles)
            balance(&r);
    }
    bool good = report(&r);
    ledger_free(r.ledger);
    unlink(r.known_path);
    sqlite_place_close(&place);
    return good ? 0 : 1;
}
