/* loops.c - worker and server are killed again and again, and nothing that was promised is lost.
 *
 *     crash_loops --worker PATH --level always|everysec|none
 *                 [--cycles N] [--seed N] [--kill worker|server|both|rewrite] [--each C]
 *                 [--trace FILE]
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
 * opening on, one cycle after the other, and all of them cut there; every time at another point of
 * its way and with another victim, until after 12 C cycles it was each point with each victim.
 *
 * Where both are killed while the answer to a batch is held, the server's log is cut off within
 * that batch: as it is if the kill comes while that is written, which is rare.  Half of it lands by
 * that, but not before the server's second start.
 *
 * With --kill rewrite there is a second kill, of either or both, at a command with which the worker
 * writes everything again: because the server has come back with nothing, or because server and
 * worker had been killed before.
 *
 * Nothing confirmed may be lost, doubled, early or out of order
 *     at level always      whatever is killed
 *     at the other levels  when only the worker is killed; and when only the server is, because
 *                          the worker puts everything again
 * What those levels lose when both are killed, or the server while the worker still reads what was
 * stored, is counted and printed; and at any level what a worker loses that dies before it has
 * written again what a server has lost with its disk.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/crew.h"
#include "run.h"

#define BALANCE  10 /* cycles between two balances */
#define RENEWAL  20 /* cycles with one server, a multiple of that */
#define REPORT   1000
#define COMMANDS 150 /* a command is chosen among so many */
#define OPENING  70  /* those of a worker until it has read everything, about */
#define REWRITE  80  /* in which it writes everything again */

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

/* ---- A kill ---- */

static const enum fault_where points[] = { FAULT_BEFORE, FAULT_MID_COMMAND, FAULT_SENT,
                                           FAULT_MID_REPLY };

/* Of the point and the victim, with --each: another one for each command, and when it is its turn
 * again. */
static unsigned combination(const struct run *r)
{
    return r->step % r->each + r->step / r->each * 5 + r->shift;
}

/* A command that will be held at some point of its way. */
static void plan(struct run *r)
{
    struct fault_cell cell = { .command = 1 + crew_below(&r->random, COMMANDS),
                               .where = points[crew_below(&r->random, 4)],
                               .what = FAULT_STALL };

    if (r->each > 0) {
        cell.command = 1 + r->step % r->each;
        cell.where = points[combination(r) % 4];
    } else if (crew_below(&r->random, 3) == 0) {
        cell.name = "EXEC";
        cell.command = 1 + crew_below(&r->random, 10);
    }
    fault_proxy_plan(r->proxy, &cell, 1);
}

/* Of the next @n, after the first @from. */
static void plan_among(struct run *r, uint64_t from, uint64_t n)
{
    struct fault_cell cell = { .command = from + 1 + crew_below(&r->random, n),
                               .where = points[crew_below(&r->random, 4)],
                               .what = FAULT_STALL };

    fault_proxy_plan(r->proxy, &cell, 1);
}

/* A batch has landed, and its answer does not come: of a worker that has read everything, as one
 * that opens sends an empty transaction too. */
static void hold_answer(struct run *r)
{
    struct fault_cell exec = {
        .name = "EXEC", .command = 1, .where = FAULT_MID_REPLY, .what = FAULT_STALL
    };
    int64_t end_ns = crew_now_ns() + DUE_S(1);

    fault_proxy_plan(r->proxy, &exec, 1);
    r->unanswered = true;
    while (fault_proxy_struck(r->proxy) == 0 && crew_now_ns() < end_ns)
        run_listen(r, DUE_MS(1));
}

static enum victim choose(struct run *r)
{
    if (r->only >= 0)
        return (enum victim)r->only;
    return (enum victim)(r->each > 0 ? combination(r) % 3 : crew_below(&r->random, 3));
}

/* The server is started, and with it lands half of a batch, if its log was torn when that was so
 * last.  False: that may take what was confirmed, as nobody who is @there with all jobs, or was
 * since, has written them again. */
static bool start_again(struct run *r, bool there)
{
    unsigned torn = run_torn(r);
    bool safe = !r->half || r->whole || there;

    run_restart(r);
    if (r->half)
        ledger_half(r->ledger, r->whole);
    r->half = run_torn(r) > torn;
    r->half_life = r->pid != 0 ? r->life : 0;
    r->whole = false;
    return safe;
}

static void strike(struct run *r, enum victim victim)
{
    bool client_first = crew_below(&r->random, 2) == 0;
    bool loaded = r->loaded; /* it cannot put again what it has not read */
    bool tears = r->unanswered && victim == BOTH && fault_proxy_struck(r->proxy) > 0;

    r->unanswered = false;
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
    if (tears)
        run_tear(r);
    bool safe = start_again(r, victim == SERVER && loaded);
    if (!safe || ((victim == BOTH || !loaded) && strcmp(r->level, "always") != 0))
        ledger_risk(r->ledger);
}

static const char *flags_of(struct run *r)
{
    static const char *const flags[] = { "-", "a", "d", "-", "ad", "-" };

    return flags[crew_below(&r->random, 6)];
}

static void tell_kill(const struct run *r, enum victim victim)
{
    if (r->trace != NULL)
        fprintf(r->trace, "0 %" PRId64 " kill %d\n", run_wall_ns(), (int)victim);
}

/* ---- While everything is written again ---- */

/* A worker that has read all there is, and has something. */
static void have_jobs(struct run *r)
{
    if (r->pid == 0) {
        run_spawn(r, flags_of(r));
        run_until(r, &r->open, false, "to be open");
    }
    run_until(r, &r->loaded, false, "to have loaded");
    run_listen(r, DUE_MS(10) + (int64_t)crew_below(&r->random, 30) * 1000000);
}

/* The server comes back with nothing, under a worker that lives.  That is held where it has to
 * claim its jobs once more, and from there on commands are counted. */
static void empty(struct run *r)
{
    struct fault_cell claim = {
        .name = "EXEC", .command = 1, .where = FAULT_BEFORE, .what = FAULT_STALL
    };

    tell_kill(r, SERVER);
    redis_server_kill(&r->server);
    fault_proxy_plan(r->proxy, &claim, 1);
    run_empty(r);
    run_restart(r);
    r->half = false; /* it went with the log */
    run_until(r, &r->rewritten, true, "to come back");
    plan_among(r, 0, REWRITE);
}

/* Both are killed.  At the level `always` nothing is lost, and the next worker writes it again; the
 * log is torn if it can be. */
static void begin_again(struct run *r, bool torn)
{
    char flags[8];

    if (torn)
        hold_answer(r);
    tell_kill(r, BOTH);
    strike(r, BOTH);
    plan_among(r, OPENING, REWRITE);
    snprintf(flags, sizeof flags, "%sw", flags_of(r));
    run_spawn(r, flags);
}

/* One command of it is held, if it comes that far, and then there is a kill again.  What may be
 * lost with the worker comes last before the next balance, so that all else may not. */
static void cycle_rewrite(struct run *r)
{
    unsigned turn = r->step % BALANCE;
    bool always = strcmp(r->level, "always") == 0;
    bool emptied = turn % 2 == 1 || turn == BALANCE - 2 || !always;
    enum victim victim = turn == BALANCE - 2   ? CLIENT
                         : turn == BALANCE - 1 ? BOTH
                         : emptied             ? SERVER
                                               : (enum victim)crew_below(&r->random, 3);

    have_jobs(r);
    r->rewritten = false;
    if (emptied)
        empty(r);
    else
        begin_again(r, victim != BOTH && crew_below(&r->random, 2) == 0); /* see start_again() */
    int64_t end_ns = crew_now_ns() + DUE_S(1);
    while (!r->rewritten && fault_proxy_struck(r->proxy) == 0 && crew_now_ns() < end_ns)
        run_listen(r, DUE_MS(1));
    run_listen(r, 0); /* what it has said until then */
    r->at_command += fault_proxy_struck(r->proxy) > 0;
    r->at_rewrite[victim] += r->rewriting;
    r->kills[victim]++;
    tell_kill(r, victim);
    strike(r, victim);
    if (emptied && victim != SERVER)
        ledger_risk(r->ledger);
    if (victim == SERVER)
        check_mirror(r);
}

/* ---- A cycle ---- */

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
    int64_t end_ns = crew_now_ns() + (r->each > 0 ? RUN_PATIENCE : DUE_MS(500));
    while (by_command && fault_proxy_struck(r->proxy) == 0 && crew_now_ns() < end_ns)
        run_listen(r, DUE_MS(1));
    if (!by_command && victim == BOTH && r->loaded && crew_below(&r->random, 2) == 0)
        hold_answer(r);
    else if (!by_command)
        run_listen(r, (int64_t)crew_below(&r->random, 60) * 1000000);
    r->at_command += fault_proxy_struck(r->proxy) > 0;
    r->kills[victim]++;
    tell_kill(r, victim);
    strike(r, victim);
    if (victim == SERVER) {
        run_until(r, &r->open, false, "to be open");
        run_listen(r, (int64_t)crew_below(&r->random, 30) * 1000000);
        check_mirror(r);
    }
}

/* What half a batch may have put comes before all is taken out: the server is started again, when
 * all jobs have been written again.  Who lives has sent that batch again, whole. */
static void land_half(struct run *r)
{
    bool sent_again = r->pid != 0 && r->life == r->half_life;

    if (r->half && !sent_again && !r->whole) {
        if (r->pid == 0)
            run_spawn(r, "-");
        run_until(r, &r->open, false, "to be open");
        int64_t end_ns = crew_now_ns() + RUN_PATIENCE;
        while (run_is_unsure(r)) {
            CREW_CHECK(crew_now_ns() < end_ns, ": not everything is written again");
            run_listen(r, DUE_MS(5));
        }
        r->whole = true;
    }
    run_send_home(r);
    if (r->half && !sent_again) {
        redis_server_halt(&r->server);
        start_again(r, false);
    }
    r->half = false;
}

static void balance(struct run *r)
{
    land_half(r);
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
    start_again(r, false);
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
    unsigned at_rewrite = r->at_rewrite[CLIENT] + r->at_rewrite[SERVER] + r->at_rewrite[BOTH];

    printf("crash %s: %u cycles (%u worker, %u server, %u both; %u at a command, "
           "%u mirrored, %u cut in that), "
           "%" PRIu64 " confirmed, %" PRIu64 " handed over; lost %" PRIu64 ", doubled %" PRIu64
           ", early %" PRIu64 ", out of order %" PRIu64 ", phantom %" PRIu64 ", stale %" PRIu64
           ", risen %" PRIu64 ", keys %" PRIu64 "; cut short in a dequeue %" PRIu64
           "; both killed: missing %" PRIu64 ", back again %" PRIu64 "; %u logs cut off%s\n",
           r->level, cycles, r->kills[CLIENT], r->kills[SERVER], r->kills[BOTH], r->at_command,
           r->mirrors, at_rewrite, v.told, v.handed, v.lost, v.doubled, v.early, v.disorder,
           v.phantom, v.stale, v.risen, v.keys, v.excused, v.missing, v.returned, r->tears,
           r->torn || run_torn(r) > 0 ? "; the log was torn" : "");
    fflush(stdout);
    if (r->each > 0 && r->at_command != cycles)
        printf("  %u cycles were not cut at a command\n", cycles - r->at_command);
    if (r->rewrite && at_rewrite < cycles / 4)
        printf("  too few were cut while everything was written again\n");
    return (r->each == 0 || r->at_command == cycles) && (!r->rewrite || at_rewrite >= cycles / 4) &&
           r->wrong + v.lost + v.doubled + v.early + v.disorder + v.phantom + v.stale + v.risen +
                   v.keys ==
               0 &&
           v.told > 0;
}

/* Answers how many cycles. */
static unsigned options(struct run *r, int argc, char **argv)
{
    static const char *const victims[] = { "worker", "server", "both" };
    unsigned cycles = 0;

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
        else if (strcmp(argv[i], "--kill") == 0)
            r->rewrite = strcmp(value, "rewrite") == 0;
        for (int v = 0; v < 3 && strcmp(argv[i], "--kill") == 0; v++)
            if (strcmp(value, victims[v]) == 0)
                r->only = v;
    }
    CREW_CHECK(r->worker_path != NULL, ": --worker PATH is missing");
    r->shift = (unsigned)(r->random % 12);
    return cycles > 0 ? cycles : r->each > 0 ? 12 * r->each : 20;
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
        if (r.rewrite)
            cycle_rewrite(&r);
        else
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
