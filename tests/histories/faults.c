/* faults.c - what is done to the processes of a history, to their links, and to the server. */
#define _GNU_SOURCE
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "histories/histories.h"
#include "lab/crew.h"

static int any(struct history_round *r)
{
    return (int)history_below(r, HISTORY_PROCESSES);
}

/* A while, so short that others are in the middle of something. */
static void pass(struct history_round *r, int64_t most_ns)
{
    crew_sleep(DUE_US((int64_t)history_below(r, (uint64_t)(most_ns / 1000)) + 1));
}

/* ---- At a command ---------------------------------------------------------------------------- */

static struct fault_cell any_cell(struct history_round *r, enum fault_what what)
{
    static const enum fault_where places[] = { FAULT_BEFORE, FAULT_MID_COMMAND, FAULT_SENT,
                                               FAULT_MID_REPLY };

    return (struct fault_cell){ .command = 1 + history_below(r, 30),
                                .name = history_below(r, 3) > 0 ? "EVALSHA" : NULL,
                                .where = places[history_below(r, 4)],
                                .what = what };
}

/* The process has come to some point of some command, and goes no further.  False: not in time. */
static bool hold(struct history_round *r, int i)
{
    struct fault_cell cell = any_cell(r, FAULT_STALL);

    fault_proxy_plan(r->proxy[i], &cell, 1);
    return fault_proxy_wait(r->proxy[i], 1, 200);
}

static void let_go(struct history_round *r, int i)
{
    fault_proxy_plan(r->proxy[i], NULL, 0);
}

/* ---- Processes ------------------------------------------------------------------------------- */

static void end_process(struct history_round *r, int i)
{
    kill(r->pid[i], SIGKILL);
    waitpid(r->pid[i], NULL, 0);
}

static void kill_process(struct history_round *r)
{
    int i = any(r);

    if (history_below(r, 3) > 0)
        (void)hold(r, i);
    end_process(r, i);
    let_go(r, i);
    history_replace(r, i);
}

/* Longer than any lease here, and longer than anything may take. */
static void stop_process(struct history_round *r)
{
    int i = any(r);
    int64_t ns = DUE_MS(20 + (int64_t)history_below(r, 600));

    if (history_below(r, 2) == 0)
        (void)hold(r, i);
    kill(r->pid[i], SIGSTOP);
    crew_sleep(ns / 2);
    let_go(r, i);
    crew_sleep(ns / 2);
    kill(r->pid[i], SIGCONT);
}

/* Minutes before or behind, and back. */
static void skew_clock(struct history_round *r)
{
    int i = any(r);
    int64_t ns = DUE_S((int64_t)history_below(r, 1200)) - DUE_S(600);

    r->control->skew_ns[i] = history_below(r, 4) == 0 ? 0 : ns;
}

/* ---- Connections ----------------------------------------------------------------------------- */

/* At some of the next commands, of some processes. */
static void cut(struct history_round *r)
{
    static const enum fault_what ways[] = { FAULT_RESET, FAULT_CLOSE, FAULT_HALF };
    struct fault_cell cells[8];
    int last = any(r);

    for (int i = 0; i < HISTORY_PROCESSES; i++) {
        size_t n = i == last ? 1 + (size_t)history_below(r, 8) : (size_t)history_below(r, 8);

        for (size_t k = 0; k < n; k++)
            cells[k] = any_cell(r, ways[history_below(r, 3)]);
        fault_proxy_plan(r->proxy[i], cells, n);
    }
    (void)fault_proxy_wait(r->proxy[last], 1, 200);
    if (history_below(r, 4) == 0)
        fault_proxy_cut(r->proxy[any(r)]);
}

/* Longer than an answer is waited for, or shorter; what was sent arrives then, behind what the
 * process has sent meanwhile on another connection. */
static void hole(struct history_round *r)
{
    uint64_t which = 1 + history_below(r, (1 << HISTORY_PROCESSES) - 1);

    for (int i = 0; i < HISTORY_PROCESSES; i++) {
        struct fault_cell cell = any_cell(r, FAULT_STALL);

        if ((which >> i & 1) != 0)
            fault_proxy_plan(r->proxy[i], &cell, 1);
    }
    pass(r, DUE_MS(900));
    for (int i = 0; i < HISTORY_PROCESSES; i++)
        let_go(r, i);
}

static void trickle(struct history_round *r)
{
    int i = any(r);
    struct fault_cell cell = any_cell(r, FAULT_TRICKLE);

    cell.where = history_below(r, 2) == 0 ? FAULT_BEFORE : FAULT_SENT;
    cell.delay_ms = 1;
    fault_proxy_plan(r->proxy[i], &cell, 1);
    (void)fault_proxy_wait(r->proxy[i], 1, 200);
    pass(r, DUE_MS(600));
    (void)fault_proxy_settle(r->proxy[i], 0); /* at full speed again: some are long */
}

static void lag(struct history_round *r)
{
    int i = any(r);

    fault_proxy_lag(r->proxy[i], 1 + (unsigned)history_below(r, 60));
    pass(r, DUE_MS(300));
    fault_proxy_lag(r->proxy[i], 0);
}

static void kill_links(struct history_round *r)
{
    static const char *const types[] = { "normal", "pubsub" };

    (void)HISTORY_NUMBER(r->server.socket, "CLIENT", "KILL", "TYPE", types[history_below(r, 2)]);
}

/* ---- The server ------------------------------------------------------------------------------ */

static void kill_server(struct history_round *r)
{
    int i = any(r);

    if (history_below(r, 3) > 0)
        (void)hold(r, i);
    redis_server_kill(&r->server);
    let_go(r, i);
    if (history_below(r, 4) == 0) { /* a process, too, while there is none */
        end_process(r, i);
        history_restart(r);
        history_replace(r, i);
        return;
    }
    pass(r, DUE_MS(history_below(r, 3) == 0 ? 900 : 20));
    history_restart(r);
}

/* Longer than an answer is waited for, mostly. */
static void stop_server(struct history_round *r)
{
    int i = any(r);

    if (history_below(r, 3) == 0)
        (void)hold(r, i);
    redis_server_freeze(&r->server);
    let_go(r, i);
    crew_sleep(DUE_MS(20 + (int64_t)history_below(r, 900)));
    bool dies = history_below(r, 3) == 0;
    if (dies)
        end_process(r, i);
    redis_server_thaw(&r->server);
    if (dies)
        history_replace(r, i);
}

static void flush_scripts(struct history_round *r)
{
    for (uint64_t n = 1 + history_below(r, 20); n > 0; n--) {
        (void)HISTORY_NUMBER(r->server.socket, "SCRIPT", "FLUSH");
        pass(r, DUE_MS(3));
    }
}

/* A script of somebody else goes on and on, and all others are told so. */
static void be_busy(struct history_round *r)
{
    (void)HISTORY_NUMBER(r->server.socket, "CONFIG", "SET", "lua-time-limit", "5");
    history_busy(r->server.socket, 10 + (unsigned)history_below(r, 250));
}

static void be_full(struct history_round *r)
{
    (void)HISTORY_NUMBER(r->server.socket, "CONFIG", "SET", "maxmemory", "1");
    if (history_below(r, 3) == 0)
        fault_proxy_cut(r->proxy[any(r)]);
    pass(r, DUE_MS(150));
    (void)HISTORY_NUMBER(r->server.socket, "CONFIG", "SET", "maxmemory", "0");
}

/* ---- A server that has lost something -------------------------------------------------------- */

/* Its log ends @cut: a place between two scripts, drawn from the last ones. */
static void cut_log(struct history_round *r)
{
    static const char multi[] = "*1\r\n$5\r\nMULTI\r\n";
    static char tail[1 << 18];
    char path[512];
    DIR *dir;

    snprintf(path, sizeof path, "%s/appendonlydir", r->folder);
    dir = opendir(path);
    CREW_CHECK(dir != NULL, ": %s", path);
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir))
        if (strstr(e->d_name, ".incr.aof") != NULL)
            snprintf(path, sizeof path, "%s/appendonlydir/%.100s", r->folder, e->d_name);
    closedir(dir);
    FILE *file = fopen(path, "r+e");
    CREW_CHECK(file != NULL, ": %s", path);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    long from = size > (long)sizeof tail ? size - (long)sizeof tail : 0;
    fseek(file, from, SEEK_SET);
    size_t n = fread(tail, 1, sizeof tail, file);
    size_t back = 1 + (size_t)history_below(r, 40);
    size_t at = n;
    while (at > 0 && back > 0)
        back -= --at + sizeof multi - 1 <= n && memcmp(tail + at, multi, sizeof multi - 1) == 0;
    if (back == 0)
        CREW_CHECK(ftruncate(fileno(file), from + (long)at) == 0, "");
    fclose(file);
}

/* What was answered last is gone, as on a machine that failed; or all is. */
static void lose(struct history_round *r, bool all)
{
    int i = any(r);

    if (history_below(r, 2) == 0)
        (void)hold(r, i);
    for (int k = 0; k < HISTORY_PROCESSES; k++)
        (void)fault_proxy_move(r->proxy[k], "/nowhere");
    redis_server_kill(&r->server);
    let_go(r, i);
    if (!all)
        cut_log(r);
    else
        history_forget(r);
    history_restart(r);
    uint64_t above = history_stamp(r->server.socket);
    int64_t below = history_time(r->server.socket);
    CREW_CHECK(below > 0, "");
    replay_log_line(r->log, "lost %llu %lld\n", (unsigned long long)above, (long long)below);
    for (int k = 0; k < HISTORY_PROCESSES; k++)
        (void)fault_proxy_move(r->proxy[k], r->server.socket);
}

static void lose_some(struct history_round *r)
{
    lose(r, false);
}

static void lose_all(struct history_round *r)
{
    lose(r, true);
}

/* ---- Any of them ----------------------------------------------------------------------------- */

static const struct fault {
    const char *name;
    void (*strike)(struct history_round *r);
} faults[] = {
    { "kill", kill_process },
    { "stop", stop_process },
    { "skew", skew_clock },
    { "cut", cut },
    { "hole", hole },
    { "trickle", trickle },
    { "lag", lag },
    { "unlink", kill_links },
    { "server-kill", kill_server },
    { "server-stop", stop_server },
    { "flush", flush_scripts },
    { "busy", be_busy },
    { "full", be_full },
    { "tail", lose_some },
    { "empty", lose_all },
    { "evict", history_evict },
    { "turn", history_turn },
};

#define N_FAULTS (sizeof faults / sizeof faults[0])

unsigned history_fault(const char *name, size_t len)
{
    for (unsigned i = 0; i < N_FAULTS; i++)
        if (strlen(faults[i].name) == len && memcmp(faults[i].name, name, len) == 0)
            return 1U << i;
    return 0;
}

bool history_fault_loses(unsigned faults_of)
{
    return (faults_of & (history_fault("tail", 4) | history_fault("empty", 5))) != 0;
}

const char *history_fault_name(unsigned i)
{
    return i < N_FAULTS ? faults[i].name : NULL;
}

void history_strike(struct history_round *r)
{
    unsigned i;

    do
        i = (unsigned)history_below(r, N_FAULTS);
    while ((r->faults >> i & 1) == 0);
    pass(r, DUE_MS(60));
    faults[i].strike(r);
    r->done[i]++;
}
