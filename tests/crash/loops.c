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
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "crew.h"
#include "fault_proxy.h"
#include "ledger.h"
#include "redis_server.h"

#define LINE_TEXT 512
#define KNOWN     90 /* jobs that the next worker is told of */
#define BALANCE   10 /* cycles between two balances */
#define RENEWAL   20 /* cycles with one server, a multiple of that */
#define REPORT    1000
#define PATIENCE  DUE_S(30)
#define COMMANDS  150 /* a command is chosen among so many */

enum victim { CLIENT, SERVER, BOTH };

struct run {
    const char *worker_path;
    const char *level;
    uint64_t random;
    int only;      /* this victim; -1: any */
    unsigned each; /* --each; 0: at random */
    unsigned step; /* of that */
    struct redis_server server;
    struct fault_proxy *proxy;
    char proxy_path[112];
    char known_path[112];
    struct ledger *ledger;
    /* The worker. */
    pid_t pid;
    int out; /* its lines */
    int in;  /* its orders */
    unsigned life;
    char text[1 << 16];
    size_t have;
    bool open;
    bool loaded; /* it has read all that was stored */
    bool quiet;
    uint64_t held;
    FILE *trace;            /* NULL, or where all lines go */
    char opened[LINE_TEXT]; /* what it said of its opening */
    char known[KNOWN][40];
    size_t n_known;
    /* Counts. */
    unsigned kills[3];
    unsigned at_command;
    unsigned mirrors; /* times that the worker had to put jobs again */
    unsigned wrong;
    bool torn; /* the log of a server that is gone was */
};

static int64_t wall_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- The worker's lines ---- */

/* What the driver itself wants to know of a line. */
static void overhear(struct run *r, const char *line)
{
    char verb[24];
    char one[80] = "";
    char two[40] = "";
    char three[40] = "";
    int n = sscanf(line, "%*u %*d %23s %79s %39s %39s", verb, one, two, three);

    if (n < 1)
        return;
    if (strcmp(verb, "open!") == 0) {
        snprintf(r->opened, sizeof r->opened, "%.400s", line);
        r->open = true;
    } else if (strcmp(verb, "loaded") == 0) {
        r->loaded = true;
    } else if (strcmp(verb, "quiet") == 0) {
        r->held = strtoull(one, NULL, 10);
        r->quiet = true;
    } else if (strcmp(verb, "log") == 0 && strstr(line, "put again from memory") != NULL) {
        r->mirrors++;
    } else if (strcmp(verb, "enqueue!") == 0 && strcmp(two, "DUE_OK") == 0) {
        size_t at = r->n_known < KNOWN ? r->n_known++ : crew_below(&r->random, KNOWN);
        snprintf(r->known[at], sizeof r->known[at], "%s", three);
    }
}

static void eat_lines(struct run *r)
{
    char *from = r->text;
    char *end;

    while ((end = memchr(from, '\n', r->have - (size_t)(from - r->text))) != NULL) {
        *end = '\0';
        overhear(r, from);
        if (r->trace != NULL)
            fprintf(r->trace, "%s\n", from);
        ledger_line(r->ledger, from);
        from = end + 1;
    }
    r->have -= (size_t)(from - r->text);
    memmove(r->text, from, r->have);
}

/* Read for so long; false: the worker's end is closed. */
static bool listen_to(struct run *r, int64_t ns)
{
    int64_t end_ns = crew_now_ns() + ns;

    for (;;) {
        int64_t left = end_ns - crew_now_ns();
        struct pollfd wait = { .fd = r->out, .events = POLLIN };
        int rc = poll(&wait, 1, left > 0 ? (int)(left / 1000000) : 0);

        if (rc > 0) {
            ssize_t got = read(r->out, r->text + r->have, sizeof r->text - r->have);
            if (got <= 0)
                return false;
            r->have += (size_t)got;
            eat_lines(r);
        }
        if (crew_now_ns() >= end_ns && rc <= 0)
            return true;
    }
}

/* Until *@flag, or it has struck, or the worker is gone. */
static void wait_for(struct run *r, const bool *flag, bool struck_too, const char *what)
{
    int64_t end_ns = crew_now_ns() + PATIENCE;

    while (!*flag && !(struck_too && fault_proxy_struck(r->proxy) > 0)) {
        bool there = listen_to(r, DUE_MS(2));

        CREW_CHECK(*flag || there, ": the worker ended, %s: %s", what, r->opened);
        CREW_CHECK(crew_now_ns() < end_ns, ": waited in vain, %s", what);
    }
}

/* ---- The worker's lives ---- */

static void write_known(const struct run *r)
{
    FILE *file = fopen(r->known_path, "w");

    CREW_CHECK(file != NULL, "");
    for (size_t i = 0; i < r->n_known; i++)
        fprintf(file, "%s\n", r->known[i]);
    fclose(file);
}

static void exec_worker(const struct run *r, int in, int out, const char *flags)
{
    char url[160];
    char life[24];
    char seed[24];

    snprintf(url, sizeof url, "unix://%s", r->proxy_path);
    snprintf(life, sizeof life, "%u", r->life);
    snprintf(seed, sizeof seed, "%" PRIu64, r->random % 1000000007);
    dup2(in, STDIN_FILENO);
    dup2(out, 9); /* out of the way of what is in use */
    dup2(9, 3);
    close(9);
    signal(SIGPIPE, SIG_DFL);
    execl(r->worker_path, r->worker_path, url, life, seed, flags, r->known_path, (char *)NULL);
    _exit(127);
}

static void spawn(struct run *r, const char *flags)
{
    int out[2];
    int in[2];

    write_known(r);
    CREW_CHECK(pipe2(out, O_CLOEXEC) == 0 && pipe2(in, O_CLOEXEC) == 0, "");
    r->life++;
    r->have = 0;
    r->open = r->loaded = r->quiet = false;
    r->opened[0] = '\0';
    ledger_life(r->ledger, strchr(flags, 'a') != NULL, strchr(flags, 'D') != NULL);
    r->pid = fork();
    CREW_CHECK(r->pid >= 0, "");
    if (r->pid == 0)
        exec_worker(r, in[0], out[1], flags);
    close(in[0]);
    close(out[1]);
    r->out = out[0];
    r->in = in[1];
}

/* What it still said, and the end of its life. */
static int bury(struct run *r)
{
    int status = 0;

    while (listen_to(r, DUE_MS(100)))
        continue;
    while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    r->pid = 0;
    close(r->out);
    close(r->in);
    ledger_death(r->ledger, wall_ns());
    return status;
}

static void kill_worker(struct run *r)
{
    kill(r->pid, SIGKILL);
    bury(r);
}

static void order(const struct run *r, char what)
{
    CREW_CHECK(write(r->in, &what, 1) == 1, "");
}

/* It goes of its own will. */
static void send_home(struct run *r)
{
    if (r->pid == 0)
        return;
    close(r->in);
    r->in = -1;
    int status = bury(r);
    CREW_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, ": the worker ended with %d: %s",
               status, r->opened);
}

/* ---- The server ---- */

static long count(const struct run *r, const char *command, const char *key)
{
    char answer[64];
    long n = redis_server_ask(&r->server, (const char *const[]){ command, key, NULL }, answer,
                              sizeof answer);

    return n > 1 && answer[0] == ':' ? strtol(answer + 1, NULL, 10) : -1;
}

/* Jobs that can be read back: what is in the topics, and dead.  -1: the server does not answer. */
static long stored(const struct run *r)
{
    static const char *const lines[] = { "due:{crash}:t:", "due:{crash}:t:a", "due:{crash}:t:b",
                                         "due:{crash}:dead" };
    long sum = 0;

    for (size_t i = 0; i < 4; i++) {
        long n = count(r, "ZCARD", lines[i]);

        if (n < 0)
            return -1;
        sum += n;
    }
    return sum;
}

/* A server up to Redis 8.0 or Valkey 8.1 that was killed while it wrote a transaction into its log
 * cuts off the last command only, and does what is left of the transaction with the next one when
 * it starts once more: half of a batch that nobody had an answer to. */
static bool log_was_torn(const struct run *r)
{
    char path[112];
    char line[512];
    bool torn = false;

    snprintf(path, sizeof path, "%s/server.log", r->server.dir);
    FILE *file = fopen(path, "r");
    while (file != NULL && !torn && fgets(line, sizeof line, file) != NULL)
        torn = strstr(line, "Truncating the AOF") != NULL;
    if (file != NULL)
        fclose(file);
    return torn;
}

/* Entries of jobs: all fields but the one that makes the hash a table. */
static long entries(const struct run *r)
{
    char answer[64];
    const char *const words[] = { "HEXISTS", "due:{crash}:a", "table", NULL };
    bool table = redis_server_ask(&r->server, words, answer, sizeof answer) > 0 && answer[1] == '1';

    return count(r, "HLEN", "due:{crash}:a") - table;
}

/* The server holds @jobs jobs, the record of each and no other, and nothing else if there are none:
 * no entries, no keys. */
static bool holds(const struct run *r, uint64_t jobs)
{
    long records = count(r, "HLEN", "due:{crash}:j");
    long rest = entries(r) + count(r, "HLEN", "due:{crash}:k");

    return stored(r) == (long)jobs && ((records == (long)jobs && (jobs > 0 || rest == 0)) ||
                                       (records >= (long)jobs && log_was_torn(r)));
}

/* Where the two differ: records, jobs by topic, entries, what was set aside. */
static void tell_difference(const struct run *r, uint64_t held)
{
    printf("  cycle %u: the worker holds %" PRIu64
           " jobs; the server has %ld records, %ld, %ld and "
           "%ld in its topics, %ld dead, %ld entries, %ld keys, %ld set aside\n",
           r->step, held, count(r, "HLEN", "due:{crash}:j"), count(r, "ZCARD", "due:{crash}:t:"),
           count(r, "ZCARD", "due:{crash}:t:a"), count(r, "ZCARD", "due:{crash}:t:b"),
           count(r, "ZCARD", "due:{crash}:dead"), entries(r), count(r, "HLEN", "due:{crash}:k"),
           count(r, "HLEN", "due:{crash}:q"));
    fflush(stdout);
}

static void restart_server(struct run *r)
{
    CREW_CHECK(redis_server_run(&r->server) == 0, ": the server does not come back");
}

/* The worker is quiet: the store must have what it holds, and nothing else. */
static void check_mirror(struct run *r)
{
    r->quiet = false;
    order(r, 'q');
    wait_for(r, &r->quiet, false, "to be quiet");
    int64_t end_ns = crew_now_ns() + PATIENCE;
    /* What was cancelled while it was reserved goes when its lease ends: so it is asked again. */
    while (!holds(r, r->held) && crew_now_ns() < end_ns) {
        listen_to(r, DUE_MS(50));
        r->quiet = false;
        order(r, 'q');
        wait_for(r, &r->quiet, false, "to be quiet");
    }
    if (crew_now_ns() >= end_ns && !holds(r, r->held)) {
        tell_difference(r, r->held);
        r->wrong++;
    }
    order(r, 'g');
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
        kill_worker(r);
    fault_proxy_plan(r->proxy, NULL, 0);
    if (victim != SERVER)
        fault_proxy_cut(r->proxy);
    if (victim == CLIENT)
        return;
    loaded &= r->loaded;
    listen_to(r, crew_below(&r->random, 3) > 0 || r->pid == 0 ? 0 : DUE_MS(30));
    restart_server(r);
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
        send_home(r); /* each command of a new one */
    if (r->pid == 0) {
        planned = by_command && (crew_below(&r->random, 2) == 0 || r->each > 0);
        if (planned)
            plan(r);
        spawn(r, flags_of(r));
        wait_for(r, &r->open, planned, "to be open");
    }
    if (!planned && by_command)
        plan(r);
    int64_t end_ns = crew_now_ns() + DUE_MS(500);
    while (by_command && fault_proxy_struck(r->proxy) == 0 && crew_now_ns() < end_ns)
        listen_to(r, DUE_MS(1));
    if (!by_command)
        listen_to(r, (int64_t)crew_below(&r->random, 60) * 1000000);
    r->at_command += fault_proxy_struck(r->proxy) > 0;
    r->kills[victim]++;
    if (r->trace != NULL)
        fprintf(r->trace, "0 %" PRId64 " kill %d\n", wall_ns(), (int)victim);
    strike(r, victim);
    if (victim == SERVER) {
        wait_for(r, &r->open, false, "to be open");
        listen_to(r, (int64_t)crew_below(&r->random, 30) * 1000000);
        check_mirror(r);
    }
}

static void balance(struct run *r)
{
    send_home(r);
    spawn(r, "D");
    send_home(r);
    if (!holds(r, 0)) {
        tell_difference(r, 0);
        r->wrong++;
    }
    ledger_balance(r->ledger);
}

static int start(struct run *r)
{
    const char *const options[] = { "--appendonly", strcmp(r->level, "none") == 0 ? "no" : "yes",
                                    "--appendfsync",
                                    strcmp(r->level, "always") == 0 ? "always" : "everysec", NULL };
    int rc = redis_server_start(&r->server, options);

    if (rc != 0)
        return rc;
    snprintf(r->proxy_path, sizeof r->proxy_path, "%s/proxy", r->server.dir);
    snprintf(r->known_path, sizeof r->known_path, "%s/known", r->server.dir);
    r->proxy = fault_proxy_start(r->proxy_path, r->server.socket);
    CREW_CHECK(r->proxy != NULL, ": no proxy");
    return 0;
}

static void stop(struct run *r)
{
    r->torn |= log_was_torn(r);
    fault_proxy_stop(r->proxy);
    redis_server_stop(&r->server);
}

/* Everything has been taken out, and the next cycles begin with an empty server.  What the old one
 * has written is read a last time: nothing may come of it. */
static void renew(struct run *r)
{
    redis_server_kill(&r->server);
    restart_server(r);
    if (strcmp(r->level, "always") != 0)
        ledger_risk(r->ledger);
    balance(r);
    stop(r);
    ledger_forget(r->ledger);
    r->n_known = 0;
    CREW_CHECK(start(r) == 0, ": the server does not start");
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
           r->torn || log_was_torn(r) ? "; the log was torn" : "");
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
    int rc = start(&r);
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
    stop(&r);
    ledger_free(r.ledger);
    return good ? 0 : 1;
}
