/* round.c - one round: a server, processes that share a queue on it, faults, and in the end a look
 * at what is left.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "due/redis.h"
#include "histories/calls.h"
#include "histories/histories.h"
#include "lab/crew.h"
#include "lab/redis/redis_user.h"
#include "store/share_plant.h"
#include "store/share_replay.h"
#include "store/share_steps.h"

uint64_t history_below(struct history_round *r, uint64_t n)
{
    return crew_below(&r->random, n);
}

struct history_control *history_control_map(const char *folder, bool create)
{
    char path[256];

    snprintf(path, sizeof path, "%s/control", folder);
    int fd = open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0600);
    CREW_CHECK(fd >= 0 && ftruncate(fd, sizeof(struct history_control)) == 0, ": %s", path);
    void *at =
        mmap(NULL, sizeof(struct history_control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CREW_CHECK(at != MAP_FAILED, "");
    close(fd);
    return at;
}

static void path_of(const struct history_round *r, char path[256], int i)
{
    snprintf(path, 256, "%s/process-%d-%u.log", r->folder, i, r->life[i]);
}

void history_clear(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    char path[512];

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.' && unlink(path) != 0)
            history_clear(path);
    }
    if (dir != NULL)
        closedir(dir);
    rmdir(folder);
}

/* ---- Processes ------------------------------------------------------------------------------- */

void history_spawn(struct history_round *r, int i)
{
    char index[16];
    char life[16];

    snprintf(index, sizeof index, "%d", i);
    snprintf(life, sizeof life, "%u", ++r->life[i]);
    r->pid[i] = fork();
    CREW_CHECK(r->pid[i] >= 0, "");
    if (r->pid[i] > 0)
        return;
    execl("/proc/self/exe", "histories", r->calls ? "--caller" : "--process", r->folder, index,
          life, (char *)NULL);
    _exit(127);
}

/* What was written down of a lane that has answered something later than that. */
static bool append_told(const char *told, uint64_t older, int log)
{
    char text[16384];
    unsigned long long stamp = 0;
    FILE *f = fopen(told, "re");
    size_t n = f != NULL ? fread(text, 1, sizeof text - 1, f) : 0;

    text[n] = '\0';
    if (f != NULL)
        fclose(f);
    bool later = sscanf(text, "mem %llu", &stamp) == 1 && stamp > older;
    if (later)
        CREW_CHECK(write(log, text, n) == (ssize_t)n, "");
    return later;
}

bool history_replace_fenced(struct history_round *r, int i, const char *const told[2], bool sure)
{
    struct replay_open open_end;
    char path[256];

    CREW_CHECK(fault_proxy_settle(r->proxy[i], 20000), "");
    path_of(r, path, i);
    CREW_CHECK(replay_read_open(&open_end, path), ": %s", path);
    CREW_CHECK(truncate(path, open_end.end) == 0, ": %s", path);
    int log = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    bool known = !open_end.begun ||
                 append_told(told[open_end.work], open_end.stamp[open_end.work], log) || sure;
    close(log);
    history_spawn(r, i);
    return known;
}

void history_replace(struct history_round *r, int i)
{
    struct replay_open open_end;
    char path[256];

    CREW_CHECK(fault_proxy_settle(r->proxy[i], 20000), "");
    path_of(r, path, i);
    if (access(path, R_OK) == 0) {
        CREW_CHECK(replay_read_open(&open_end, path), ": %s", path);
        CREW_CHECK(truncate(path, open_end.end) == 0, ": %s", path);
        int log = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        /* Twice: what was sent before may be read behind what is asked first. */
        (void)history_stamp(r->server.socket);
        CREW_CHECK(!open_end.begun ||
                       history_remember(r->server.socket, open_end.writer, open_end.work,
                                        open_end.stamp[open_end.work], 0, log),
                   "");
        close(log);
    }
    history_spawn(r, i);
}

/* Has the server found that its log ends in the middle of something?  Then half of a script may be
 * done that nobody has heard of (run_torn() of the crash loops). */
static bool is_torn(const struct history_round *r)
{
    char line[512];
    char path[128];
    bool torn = false;

    snprintf(path, sizeof path, "%s/server.log", r->server.dir);
    FILE *f = fopen(path, "re");
    while (f != NULL && !torn && fgets(line, sizeof line, f) != NULL)
        torn = strstr(line, "Truncating the AOF") != NULL;
    if (f != NULL)
        fclose(f);
    return torn;
}

void history_restart(struct history_round *r)
{
    setenv("LD_PRELOAD", DUE_TURNED_LIBRARY, 1);
    CREW_CHECK(redis_server_run(&r->server) == 0, ": the server does not come back");
    unsetenv("LD_PRELOAD");
    r->torn = r->torn || is_torn(r);
}

void history_forget(struct history_round *r)
{
    char path[256];

    snprintf(path, sizeof path, "%s/appendonlydir", r->folder);
    history_clear(path);
}

/* ---- Checking -------------------------------------------------------------------------------- */

struct round_file {
    uint64_t seed, capacity;
    int by_rank, may_be_full, keeps, calls;
    long jobs, dead, rest; /* what the server had in the end; -1: not known */
};

static void write_round(const struct history_round *r, const struct round_file *f)
{
    char path[256];

    snprintf(path, sizeof path, "%s/round", r->folder);
    FILE *file = fopen(path, "we");
    CREW_CHECK(file != NULL, "");
    fprintf(file, "%" PRIu64 " %" PRIu64 " %d %d %d %d %ld %ld %ld\n", f->seed, f->capacity,
            f->by_rank, f->may_be_full, f->keeps, f->calls, f->jobs, f->dead, f->rest);
    fclose(file);
}

static bool read_round(const char *folder, struct round_file *f)
{
    char path[256];

    snprintf(path, sizeof path, "%s/round", folder);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    int n =
        fscanf(file, "%" SCNu64 " %" SCNu64 " %d %d %d %d %ld %ld %ld", &f->seed, &f->capacity,
               &f->by_rank, &f->may_be_full, &f->keeps, &f->calls, &f->jobs, &f->dead, &f->rest);
    fclose(file);
    return n == 9;
}

static bool read_logs(struct replay *all, const char *folder)
{
    struct dirent **names = NULL;
    int n = scandir(folder, &names, NULL, alphasort);
    bool fine = n >= 0;

    for (int i = 0; i < n; i++) {
        char path[512];

        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        if (strstr(names[i]->d_name, ".log") != NULL)
            fine = fine && replay_read(all, path);
        free(names[i]);
    }
    free(names);
    return fine;
}

/* What the callers heard, if they have written that down. */
static const char *check_calls(const char *folder, const struct replay *exchanges,
                               const char *plant, uint64_t seed)
{
    struct calls all = { .n = 0 };
    struct dirent **names = NULL;
    static char files[256][64];
    const char *wrong = NULL;
    int n = scandir(folder, &names, NULL, alphasort);

    for (int i = 0; i < n; i++) {
        char path[512];
        size_t len = strlen(names[i]->d_name);

        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        if (len > 6 && strcmp(names[i]->d_name + len - 6, ".calls") == 0 && i < 256) {
            snprintf(files[i], sizeof files[i], "%.*s.log", (int)(len - 6), names[i]->d_name);
            if (!calls_read(&all, path, files[i]))
                wrong = "calls cannot be read";
        }
        free(names[i]);
    }
    free(names);
    if (wrong == NULL && plant != NULL && !calls_plant(&all, plant, seed))
        wrong = HISTORY_NOT_PLANTED;
    if (wrong == NULL && all.n > 0)
        wrong = calls_check(&all, exchanges);
    calls_free(&all);
    return wrong;
}

static bool is_of_calls(const char *plant)
{
    for (const struct replay_planted *p = call_plants; plant != NULL && p->name != NULL; p++)
        if (strcmp(p->name, plant) == 0)
            return true;
    return false;
}

const char *history_check(const char *folder, const char *plant, uint64_t seed, size_t *exchanges)
{
    bool of_calls = is_of_calls(plant);
    static char said[600];
    struct round_file f;
    const char *wrong = NULL;

    if (!read_round(folder, &f))
        return "the folder has no history";
    struct replay all = { .grain_ns = 1000,
                          .capacity = f.capacity,
                          .by_rank = f.by_rank != 0,
                          .may_be_full = f.may_be_full != 0,
                          .keeps = f.keeps != 0,
                          .more = f.calls != 0 };
    if (!read_logs(&all, folder))
        wrong = "a log cannot be read";
    if (wrong == NULL && plant != NULL && !of_calls && !replay_plant(&all, plant, seed))
        wrong = HISTORY_NOT_PLANTED;
    if (wrong == NULL)
        wrong = replay_check(&all);
    if (wrong == NULL && f.calls != 0)
        wrong = check_calls(folder, &all, of_calls ? plant : NULL, seed);
    *exchanges = all.n;
    if (wrong == NULL && f.jobs >= 0 &&
        (all.left != 0 || (long)all.dead != f.dead || f.jobs != f.dead || f.rest != 0)) {
        snprintf(said, sizeof said,
                 "%zu jobs are left, and %zu dead ones; the server has %ld records, %ld dead, and "
                 "%ld keys that should be gone",
                 all.left, all.dead, f.jobs, f.dead, f.rest);
        wrong = said;
    }
    if (wrong != NULL && wrong != said)
        wrong = strncpy(said, wrong, sizeof said - 1);
    replay_free(&all);
    return wrong;
}

/* ---- The end --------------------------------------------------------------------------------- */

#define KEY "due:{" HISTORY_QUEUE "}:"

/* All that waits, or is held, is claimed and ended: by exchanges of the history. */
static void drain(struct history_round *r)
{
    static const char *const topics[] = { "a", "b", "c" };
    static struct sharing t;
    static struct replay replay;
    char url[160];
    char path[256];
    unsigned quiet = 0;

    snprintf(url, sizeof url, "unix://%s", r->server.socket);
    snprintf(path, sizeof path, "%s/drain.log", r->folder);
    replay = (struct replay){ .log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) };
    history_join(&t, &replay, url, r->control);
    for (int i = 0; i < 3; i++) {
        sharing_hold_back(&t, topics[i], 0, 0);
        CREW_CHECK(share_send(&t, 0, true), "");
    }
    while (quiet < 4) {
        sharing_claim(&t, 100, 0, DUE_S(60));
        CREW_CHECK(share_send(&t, 0, true), "");
        size_t n = t.n_held;
        for (size_t i = 0; i < n; i++)
            sharing_done(&t, t.held[i]);
        CREW_CHECK(n == 0 || share_send(&t, 0, true), "");
        quiet = n == 0 ? quiet + 1 : 0;
        if (n == 0)
            crew_sleep(DUE_MS(50));
    }
    t.replay = NULL;
    sharing_end(&t);
    close(replay.log);
    replay_free(&replay);
}

/* What hashes say of jobs that are not there. */
static const char of_nobody[] =
    "local n = 0 "
    "for i = 2, #KEYS do for _, id in ipairs(redis.call('HKEYS', KEYS[i])) do "
    "if id ~= 'table' and redis.call('HEXISTS', KEYS[1], id) == 0 then n = n + 1 end end end "
    "return n";

static void end_round(struct history_round *r, struct round_file *f)
{
    /* What was put then is due then, and every lease is over. */
    history_turn_by(r, r->most_ahead_ns - r->ahead[1] + DUE_S(60));
    drain(r);
    f->jobs = (long)HISTORY_NUMBER(r->server.socket, "HLEN", KEY "j");
    f->dead = (long)HISTORY_NUMBER(r->server.socket, "ZCARD", KEY "dead");
    f->rest = (long)HISTORY_NUMBER(r->server.socket, "EXISTS", KEY "t:a", KEY "t:b", KEY "t:c",
                                   KEY "l:a", KEY "l:b", KEY "l:c", KEY "o:a", KEY "o:b", KEY "o:c",
                                   KEY "g", KEY "g:a", KEY "g:b", KEY "g:c", KEY "gh", KEY "x");
    f->rest += (long)HISTORY_NUMBER(r->server.socket, "EVAL", of_nobody, "5", KEY "j", KEY "a",
                                    KEY "jk", KEY "jg", KEY "b");
}

/* ---- A round --------------------------------------------------------------------------------- */

/* The processes are a user who may do what docs/redis-layout.md says, and nothing else. */
static void write_users(const struct history_round *r)
{
    static const char *const may[] = { REDIS_USER_MAY, REDIS_SHARED_MAY, "+config|get" };
    char path[256];

    snprintf(path, sizeof path, "%s/users.acl", r->folder);
    FILE *file = fopen(path, "we");
    CREW_CHECK(file != NULL, "");
    fprintf(file, "user due on >canary ~due:{*}:* &due:{*}:*");
    for (size_t i = 0; i < sizeof may / sizeof may[0]; i++)
        fprintf(file, " %s", may[i]);
    fprintf(file, "\n");
    fclose(file);
}

/* By how much the server's clock is ahead (lab/turned). */
static void map_ahead(struct history_round *r)
{
    char path[256];

    snprintf(path, sizeof path, "%s/ahead", r->folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CREW_CHECK(fd >= 0 && ftruncate(fd, HISTORY_AHEAD) == 0, ": %s", path);
    void *at = mmap(NULL, HISTORY_AHEAD, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CREW_CHECK(at != MAP_FAILED, "");
    close(fd);
    r->ahead = at;
    setenv("DUE_TURNED", path, 1);
}

static bool begin(struct history_round *r)
{
    char path[256];
    char users[256];

    /* In memory, since what is on no disk is synced at once. */
    snprintf(r->folder, sizeof r->folder, "/dev/shm/due_histories_XXXXXX");
    if (mkdtemp(r->folder) == NULL) {
        snprintf(r->folder, sizeof r->folder, "/tmp/due_histories_XXXXXX");
        CREW_CHECK(mkdtemp(r->folder) != NULL, "");
    }
    write_users(r);
    map_ahead(r);
    snprintf(users, sizeof users, "%s/users.acl", r->folder);
    const char *const options[] = { "--appendonly",
                                    "yes",
                                    "--appendfsync",
                                    "always",
                                    "--auto-aof-rewrite-percentage",
                                    "0",
                                    "--dir",
                                    r->folder,
                                    "--aclfile",
                                    users,
                                    NULL };
    setenv("LD_PRELOAD", DUE_TURNED_LIBRARY, 1);
    int rc = redis_server_start(&r->server, options);
    unsetenv("LD_PRELOAD");
    if (rc == REDIS_SERVER_MISSING)
        return false;
    CREW_CHECK(rc == 0, ": the server does not start");
    r->control = history_control_map(r->folder, true);
    r->control->seed = r->seed;
    r->control->capacity = history_below(r, 3) == 0 ? 6 + history_below(r, 30) : 0;
    r->control->by_rank = history_below(r, 3) == 0;
    snprintf(r->control->server, sizeof r->control->server, "%s", r->server.socket);
    snprintf(path, sizeof path, "%s/server.log", r->folder);
    r->log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CREW_CHECK(r->log > 0, "");
    history_turn_by(r, 0);
    for (int i = 0; i < HISTORY_PROCESSES; i++) {
        snprintf(path, sizeof path, "%s/proxy-%d", r->folder, i);
        r->proxy[i] = fault_proxy_start(path, r->server.socket);
        CREW_CHECK(r->proxy[i] != NULL, "");
        history_spawn(r, i);
    }
    return true;
}

/* They end in order.  False: one did not. */
static bool stop(struct history_round *r)
{
    bool fine = true;

    r->control->stop = 1;
    for (int i = 0; i < HISTORY_PROCESSES; i++) {
        int status = 0;

        waitpid(r->pid[i], &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            printf("histories: process %d, life %u ended with %d\n", i, r->life[i], status);
            fine = false;
        }
        fine = fine && fault_proxy_settle(r->proxy[i], 20000);
    }
    return fine;
}

/* One of them has ended by itself: it found something wrong. */
static bool all_live(struct history_round *r)
{
    for (int i = 0; i < HISTORY_PROCESSES; i++) {
        siginfo_t info = { .si_pid = 0 };

        if (waitid(P_PID, (id_t)r->pid[i], &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid != 0)
            return false;
    }
    return true;
}

/* On a busy machine a round takes longer. */
#define LEAST_STEPS 400

static uint64_t steps_of(const struct history_round *r)
{
    uint64_t steps = 0;

    for (int i = 0; i < HISTORY_PROCESSES; i++)
        steps += r->control->steps[i];
    return steps;
}

enum history_said history_run(struct history_round *r, size_t *exchanges)
{
    int64_t end_ns = crew_now_ns() + r->ns;
    int64_t late_ns = end_ns + 4 * r->ns;
    const char *wrong = NULL;

    if (!begin(r)) {
        history_clear(r->folder);
        return HISTORY_MISSING;
    }
    struct round_file f = { .seed = r->seed,
                            .capacity = r->control->capacity,
                            .by_rank = r->control->by_rank,
                            .may_be_full = (r->faults & history_fault("full", 4)) != 0,
                            .keeps = !history_fault_loses(r->faults),
                            .calls = r->calls,
                            .jobs = -1 };
    write_round(r, &f);
    bool fine = true;
    while (fine &&
           (crew_now_ns() < end_ns || (steps_of(r) < LEAST_STEPS && crew_now_ns() < late_ns))) {
        if (r->faults != 0)
            history_strike(r);
        else
            crew_sleep(DUE_MS(50));
        fine = all_live(r);
    }
    fine = stop(r) && fine;
    if (fine) {
        end_round(r, &f);
        write_round(r, &f);
    }
    for (int i = 0; i < HISTORY_PROCESSES; i++)
        fault_proxy_stop(r->proxy[i]);
    redis_server_stop(&r->server);
    close(r->log);
    munmap(r->control, sizeof *r->control);
    munmap((void *)(uintptr_t)r->ahead, HISTORY_AHEAD);
    if (fine && r->torn)
        printf("histories: the log was torn: nothing can be said\n");
    else if (fine)
        wrong = history_check(r->folder, NULL, 0, exchanges);
    if (wrong != NULL)
        printf("histories: %s\n", wrong);
    if (fine && wrong == NULL) {
        if (!r->keep)
            history_clear(r->folder);
        return HISTORY_RIGHT;
    }
    printf("histories: seed %" PRIu64 ": the logs are in %s; once more: histories --check %s\n",
           r->seed, r->folder, r->folder);
    return HISTORY_WRONG;
}
