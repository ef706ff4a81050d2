/* run.c - the worker and the server of the crash loops. */
#define _GNU_SOURCE
#include "run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lab/crew.h"
#include "lab/redis/redis_server.h"

int64_t run_wall_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- The worker's lines ---- */

/* Of what the store has lost, or may lose. */
static void overhear_log(struct run *r, const char *line)
{
    bool lost = strstr(line, "put again from memory") != NULL;

    r->mirrors += lost;
    if (lost || strstr(line, "written to the store again, to be sure") != NULL) {
        r->rewriting = true;
    } else if (strstr(line, "the store has everything again") != NULL) {
        r->rewriting = false;
        r->rewritten = r->whole = true;
    }
}

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
    } else if (strcmp(verb, "log") == 0) {
        overhear_log(r, line);
    } else if (strcmp(verb, "enqueue!") == 0 && strcmp(two, "DUE_OK") == 0) {
        size_t at = r->n_known < RUN_KNOWN ? r->n_known++ : crew_below(&r->random, RUN_KNOWN);
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

bool run_listen(struct run *r, int64_t ns)
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

void run_until(struct run *r, const bool *flag, bool struck_too, const char *what)
{
    int64_t end_ns = crew_now_ns() + RUN_PATIENCE;

    while (!*flag && !(struck_too && fault_proxy_struck(r->proxy) > 0)) {
        bool there = run_listen(r, DUE_MS(2));

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
    char life[24];
    char seed[24];

    snprintf(life, sizeof life, "%u", r->life);
    snprintf(seed, sizeof seed, "%" PRIu64, r->random % 1000000007);
    dup2(in, STDIN_FILENO);
    dup2(out, 9); /* out of the way of what is in use */
    dup2(9, 3);
    close(9);
    signal(SIGPIPE, SIG_DFL);
    execl(r->worker_path, r->worker_path, r->url, life, seed, flags, r->known_path, (char *)NULL);
    _exit(127);
}

void run_spawn(struct run *r, const char *flags)
{
    int out[2];
    int in[2];

    write_known(r);
    CREW_CHECK(pipe2(out, O_CLOEXEC) == 0 && pipe2(in, O_CLOEXEC) == 0, "");
    r->life++;
    r->have = 0;
    r->open = r->loaded = r->quiet = r->rewriting = r->rewritten = false;
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

    while (run_listen(r, DUE_MS(100)))
        continue;
    while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    r->pid = 0;
    close(r->out);
    close(r->in);
    ledger_death(r->ledger, run_wall_ns());
    return status;
}

void run_kill(struct run *r)
{
    kill(r->pid, SIGKILL);
    bury(r);
}

void run_order(const struct run *r, char what)
{
    CREW_CHECK(write(r->in, &what, 1) == 1, "");
}

void run_send_home(struct run *r)
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

unsigned run_torn(const struct run *r)
{
    char path[112];
    char line[512];
    unsigned n = 0;

    snprintf(path, sizeof path, "%s/server.log", r->server.dir);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        n += strstr(line, "Truncating the AOF") != NULL;
    if (file != NULL)
        fclose(file);
    return n;
}

bool run_is_unsure(const struct run *r)
{
    char answer[64];
    const char *const words[] = { "HGET", "due:{crash}:meta", "server", NULL };

    return redis_server_ask(&r->server, words, answer, sizeof answer) < 0 ||
           strncmp(answer, "$1\r\n?", 5) == 0;
}

/* Entries of jobs: all fields but the one that makes the hash a table. */
static long entries(const struct run *r)
{
    char answer[64];
    const char *const words[] = { "HEXISTS", "due:{crash}:a", "table", NULL };
    bool table = redis_server_ask(&r->server, words, answer, sizeof answer) > 0 && answer[1] == '1';

    return count(r, "HLEN", "due:{crash}:a") - table;
}

bool run_holds(const struct run *r, uint64_t jobs)
{
    long records = count(r, "HLEN", "due:{crash}:j");
    bool rest = entries(r) != 0 || count(r, "HLEN", "due:{crash}:k") != 0;

    if (stored(r) != (long)jobs || records != (long)jobs)
        return false;
    return jobs > 0 || !rest || run_torn(r) > 0;
}

void run_tell(const struct run *r, uint64_t held)
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

void run_empty(const struct run *r)
{
    static const char *const parts[] = { "appendonlydir", "." };
    char path[400];

    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", r->server.dir, parts[i]);
        DIR *folder = opendir(path);
        const struct dirent *entry;
        while (folder != NULL && (entry = readdir(folder)) != NULL) {
            if (strstr(entry->d_name, ".aof") == NULL && strstr(entry->d_name, ".rdb") == NULL)
                continue;
            snprintf(path, sizeof path, "%s/%s/%s", r->server.dir, parts[i], entry->d_name);
            CREW_CHECK(unlink(path) == 0, ": %s", path);
        }
        if (folder != NULL)
            closedir(folder);
    }
}

/* The part of its log that it has written to; NULL: there is none. */
static FILE *log_open(const struct run *r)
{
    char path[400];
    FILE *file = NULL;

    snprintf(path, sizeof path, "%s/appendonlydir", r->server.dir);
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder != NULL && file == NULL && (entry = readdir(folder)) != NULL) {
        if (strstr(entry->d_name, ".incr.aof") == NULL)
            continue;
        snprintf(path, sizeof path, "%s/appendonlydir/%.200s", r->server.dir, entry->d_name);
        file = fopen(path, "r+");
    }
    if (folder != NULL)
        closedir(folder);
    return file;
}

void run_tear(struct run *r)
{
    static const char multi[] = "*1\r\n$5\r\nMULTI\r\n";
    static const char exec[] = "*1\r\n$4\r\nEXEC\r\n";
    static char tail[4 << 20];
    size_t begin = sizeof multi - 1;
    size_t end = sizeof exec - 1;
    FILE *file = log_open(r);

    if (file == NULL)
        return;
    CREW_CHECK(fseek(file, 0, SEEK_END) == 0, "");
    long size = ftell(file);
    long from = size > (long)sizeof tail ? size - (long)sizeof tail : 0;
    CREW_CHECK(fseek(file, from, SEEK_SET) == 0, "");
    size_t n = fread(tail, 1, sizeof tail, file);
    size_t at = n > begin + end && memcmp(tail + n - end, exec, end) == 0 ? n - end : 0;
    while (at > 0 && memcmp(tail + at, multi, begin) != 0)
        at--;
    if (at > 0) {
        size_t cut = at + begin + crew_below(&r->random, n - at - begin);

        CREW_CHECK(ftruncate(fileno(file), from + (long)cut) == 0, "");
        r->tears++;
    }
    fclose(file);
}

void run_restart(struct run *r)
{
    CREW_CHECK(redis_server_run(&r->server) == 0, ": the server does not come back");
}

int run_start(struct run *r)
{
    const char *const options[] = { "--appendonly", strcmp(r->level, "none") == 0 ? "no" : "yes",
                                    "--appendfsync",
                                    strcmp(r->level, "always") == 0 ? "always" : "everysec", NULL };
    int rc = redis_server_start(&r->server, options);

    if (rc != 0)
        return rc;
    snprintf(r->proxy_path, sizeof r->proxy_path, "%s/proxy", r->server.dir);
    snprintf(r->url, sizeof r->url, "unix://%s", r->proxy_path);
    snprintf(r->known_path, sizeof r->known_path, "%s/known", r->server.dir);
    r->proxy = fault_proxy_start(r->proxy_path, r->server.socket);
    CREW_CHECK(r->proxy != NULL, ": no proxy");
    return 0;
}

void run_stop(struct run *r)
{
    r->torn |= run_torn(r) > 0;
    fault_proxy_stop(r->proxy);
    redis_server_stop(&r->server);
}
