/* loops.c - worker and server are killed again and again, and nothing that was promised is lost.
 *
 *     crash_loops --worker PATH --level always|everysec|none
 *                 [--cycles N] [--seed N] [--kill worker|server|both] [--trace FILE]
 *                 [--each C]
 *
 * A cycle kills the worker, the server, or both: at a random moment, or while a command of the
 * worker stands at some point of its way, where the fault proxy holds it.  Then they go on.  Every
 * ten cycles everything is taken out, and the ledger is balanced; every thousand it is told how
 * things stand.
 *
 * Every twenty, when everything has been taken out, the server is killed once more, has nothing to
 * give back, and makes way for an empty one.  Its log only grows: after a hundred cycles a start
 * takes longer to read it than all else in a cycle.
 *
 * With --each it goes by the book instead: each of the first C commands of a worker, from its
 * opening on, at each point of its way, with each victim.
 *
 * Nothing confirmed may be lost, doubled, early or out of order
 *     at level always      whatever is killed
 *     at the other levels  when only the worker is killed; and when only the server is, because
 *                          the worker puts everything again
 * What those levels lose when both are killed, or the server while the worker still reads what was
 * stored, is counted and printed.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crew.h"
#include "run.h"

#define BALANCE  10 /* cycles between two balances */
#define RENEWAL  20 /* cycles with one server, a multiple of that */
#define REPORT   1000
#define COMMANDS 150 /* a command is chosen among so many */

/* ---- A check ---- */

/* The worker is quiet: the store must have what it holds, and nothing else. */
static void check_mirror(struct run *r)
{
    r->quiet = false;
    run_order(r, 'q');
    run_until(r, &r->quiet, false, "to be quiet");
    int64_t end_ns = crew_now_ns() + RUN_PATIENCE;
    /* What was cancelled while it was reserved goes when its lease ends: so it is asked again. */
    while (!run_holds(r, r->held) && crew_now_ns() < end_ns) {
        run_listen(r, DUE_MS(50));
        r->quiet = false;
        run_order(r, 'q');
        run_until(r, &r->quiet, false, "to be quiet");
    }
    if (crew_now_ns() >= end_ns && !run_holds(r, r->held)) {
        run_tell(r, r->held);
        r->wrong++;
    }
    run_order(r, 'g');
}

/* ---- A cycle ---- */

static const enum fault_where points[] = { FAULT_BEFORE, FAULT_MID_COMMAND, FAULT_SENT,
                                           FAULT_MID_REPLY };

/* A command that will be held at some point of its way. */
static void plan(struct run *r)
{
    struct fault_cell cell = { .command = 1 + crew_below(&r->random, COMMANDS),
                               .where = points[crew_below(&r->random, 4)],
                               .what = FAULT_STALL };

    if (r->each > 0) {
        cell.command = 1 + r->step / 12;
        cell.where = points[r->step / 3 % 4];
    } else if (crew_below(&r->random, 3) == 0) {
        cell.name = "EXEC";
        cell.command = 1 + crew_below(&r->random, 10);
    }
    fault_proxy_plan(r->proxy, &cell, 1);
}

static enum victim choose(struct run *r)
{
    if (r->only >= 0)
        return (enum victim)r->only;
    return (enum victim)(r->each > 0 ? r->step % 3 : crew_below(&r->random, 3));
}

static void strike(struct run *r, enum victim victim)
{
    bool client_first = crew_below(&r->random, 2) == 0;
    bool loaded = r->loaded; /* it cannot put again what it has not read */

    if (victim == CLIENT || (victim == BOTH && client_first))
        kill(r->pid, SIGKILL);
    if (victim != CLIENT)
        redis_server_kill(&r->server);
    if (victim != SERVER)
        run_kill(r);
    fault_proxy_plan(r->proxy, NULL, 0);
    if (victim != SERVER)
        fault_proxy_cut(r->proxy);
    if (victim == CLIENT)
        return;
    loaded &= r->loaded;
    run_listen(r, crew_below(&r->random, 3) > 0 || r->pid == 0 ? 0 : DUE_MS(30));
    run_restart(r);
    if ((victim == BOTH || !loaded) && strcmp(r->level, "always") != 0)
        ledger_risk(r->ledger);
}

static const char *flags_of(struct run *r)
{
    static const char *const flags[] = { "-", "a", "d", "-", "ad", "-" };

    return flags[crew_below(&r->random, 6)];
}

/* While it opens, at a command, or at a random moment. */
static void cycle(struct run *r)
{
    enum victim victim = choose(r);
    bool by_command = crew_below(&r->random, 2) == 0 || r->each > 0;
    bool planned = false;

    if (r->each > 0)
        run_send_home(r); /* each command of a new one */
    if (r->pid == 0) {
        planned = by_command && (crew_below(&r->random, 2) == 0 || r->each > 0);
        if (planned)
            plan(r);
        run_spawn(r, flags_of(r));
        run_until(r, &r->open, planned, "to be open");
    }
    if (!planned && by_command)
        plan(r);
    int64_t end_ns = crew_now_ns() + DUE_MS(500);
    while (by_command && fault_proxy_struck(r->proxy) == 0 && crew_now_ns() < end_ns)
        run_listen(r, DUE_MS(1));
    if (!by_command)
        run_listen(r, (int64_t)crew_below(&r->random, 60) * 1000000);
    r->at_command += fault_proxy_struck(r->proxy) > 0;
    r->kills[victim]++;
    if (r->trace != NULL)
        fprintf(r->trace, "0 %" PRId64 " kill %d\n", run_wall_ns(), (int)victim);
    strike(r, victim);
    if (victim == SERVER) {
        run_until(r, &r->open, false, "to be open");
        run_listen(r, (int64_t)crew_below(&r->random, 30) * 1000000);
        check_mirror(r);
    }
}

static void balance(struct run *r)
{
    run_send_home(r);
    run_spawn(r, "D");
    run_send_home(r);
    if (!run_holds(r, 0)) {
        run_tell(r, 0);
        r->wrong++;
    }
    ledger_balance(r->ledger);
}

/* Everything has been taken out, and the next cycles begin with an empty server.  What the old one
 * has written is read a last time: nothing may come of it. */
static void renew(struct run *r)
{
    redis_server_kill(&r->server);
    run_restart(r);
    if (strcmp(r->level, "always") != 0)
        ledger_risk(r->ledger);
    balance(r);
    run_stop(r);
    ledger_forget(r->ledger);
    r->n_known = 0;
    CREW_CHECK(run_start(r) == 0, ": the server does not start");
}

static bool report(const struct run *r, unsigned cycles)
{
    struct ledger_verdict v = ledger_verdict(r->ledger);

    printf("crash %s: %u cycles (%u worker, %u server, %u both; %u at a command, %u mirrored), "
           "%" PRIu64 " confirmed, %" PRIu64 " handed over; lost %" PRIu64 ", doubled %" PRIu64
           ", early %" PRIu64 ", out of order %" PRIu64 ", phantom %" PRIu64 ", stale %" PRIu64
           ", risen %" PRIu64 ", keys %" PRIu64 "; cut short in a dequeue %" PRIu64
           "; both killed: missing %" PRIu64 ", back again %" PRIu64 "%s\n",
           r->level, cycles, r->kills[CLIENT], r->kills[SERVER], r->kills[BOTH], r->at_command,
           r->mirrors, v.told, v.handed, v.lost, v.doubled, v.early, v.disorder, v.phantom, v.stale,
           v.risen, v.keys, v.excused, v.missing, v.returned,
           r->torn || run_was_torn(r) ? "; the log was torn" : "");
    fflush(stdout);
    return r->wrong + v.lost + v.doubled + v.early + v.disorder + v.phantom + v.stale + v.risen +
                   v.keys ==
               0 &&
           v.told > 0;
}

/* Answers how many cycles. */
static unsigned options(struct run *r, int argc, char **argv)
{
    static const char *const victims[] = { "worker", "server", "both" };
    unsigned cycles = 20;

    *r = (struct run){ .level = "always", .random = 1, .only = -1 };
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];

        if (strcmp(argv[i], "--worker") == 0)
            r->worker_path = value;
        else if (strcmp(argv[i], "--level") == 0)
            r->level = value;
        else if (strcmp(argv[i], "--cycles") == 0)
            cycles = (unsigned)strtoul(value, NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0)
            r->random = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--each") == 0)
            r->each = (unsigned)strtoul(value, NULL, 10);
        else if (strcmp(argv[i], "--trace") == 0)
            r->trace = fopen(value, "w");
        for (int v = 0; v < 3 && strcmp(argv[i], "--kill") == 0; v++)
            if (strcmp(value, victims[v]) == 0)
                r->only = v;
    }
    CREW_CHECK(r->worker_path != NULL, ": --worker PATH is missing");
    return r->each > 0 ? 12 * r->each : cycles;
}

int main(int argc, char **argv)
{
    static struct run r;
    unsigned cycles = options(&r, argc, argv);

    signal(SIGPIPE, SIG_IGN);
    int rc = run_start(&r);
    if (rc == REDIS_SERVER_MISSING)
        return 77;
    CREW_CHECK(rc == 0, ": the server does not start");
    r.ledger = ledger_new();
    for (unsigned i = 1; i <= cycles; i++) {
        cycle(&r);
        r.step = i;
        if (i % BALANCE == 0 || i == cycles)
            balance(&r);
        if (i % RENEWAL == 0 && i < cycles)
            renew(&r);
        if (i % REPORT == 0 && i < cycles)
            report(&r, i);
    }
    bool good = report(&r, cycles);
    run_stop(&r);
    ledger_free(r.ledger);
    return good ? 0 : 1;
}
