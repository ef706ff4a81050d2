/* redis_canary.c - a password is nowhere in what a core dump of the program would hold.
 *
 * A child opens a stored queue with a password, wipes its own copy, works, loses the connection and
 * says the password again, tries a wrong one, and stops.  Its parent then looks through all of its
 * memory that the kernel would dump.  Nobody but the parent has the password in one piece.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/core_look.h"
#include "lab/crew.h"
#include "due/redis.h"
#include "lab/redis/redis_server.h"

/* The canary, and what must be found so that the search is known to work: each byte is one more. */
static const char canary_as[CORE_SECRET + 1] = "dbobsz.4g:c2e1.pg.uif.nf";
static const char control_as[CORE_SECRET + 1] = "dpouspm.5b8d1f.pg.uif.nf";

static void say_to(const struct redis_server *s, bool with_password, const char *const *words)
{
    char answer[256];
    long n = redis_server_ask(s, words, answer, sizeof answer);

    CREW_CHECK(n > 0 && (with_password || answer[0] == '+'), ": %s", answer);
}

/* In a child of its own, which takes what it knows along. */
static void aside(const struct redis_server *s, void (*run)(const struct redis_server *))
{
    int status;
    pid_t pid = fork();

    CREW_CHECK(pid >= 0, "");
    if (pid == 0) {
        run(s);
        _exit(0);
    }
    CREW_CHECK(waitpid(pid, &status, 0) == pid && status == 0, ": %d", status);
}

static void set_password(const struct redis_server *s)
{
    char secret[CORE_SECRET + 1];

    core_spell(canary_as, secret);
    say_to(s, false, (const char *const[]){ "CONFIG", "SET", "requirepass", secret, NULL });
}

/* ---- The program ----------------------------------------------------------------------------- */

/* A store at its URL, of which nothing is left. */
static due_store *store_with(const struct redis_server *s, const char *as, const char *more)
{
    char secret[CORE_SECRET + 1];
    char url[256];
    due_store *store = NULL;
    due_error error = { .text = "" };

    core_spell(as, secret);
    snprintf(url, sizeof url, "unix://:%s%s@%s", secret, more, s->socket);
    int rc = due_redis_open(&store, url, NULL, &error);
    explicit_bzero(url, sizeof url);
    explicit_bzero(secret, sizeof secret);
    CREW_CHECK(rc == 0, ": %s", error.text);
    return store;
}

static void put(due_queue *q)
{
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3 };
    int rc = due_enqueue(q, &spec, 0, NULL);

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
}

static void be_the_program(const struct redis_server *s)
{
    due_options options = { DUE_OPTIONS_INIT, .name = "canary" };
    due_options refused = { DUE_OPTIONS_INIT, .name = "other", .open_timeout_ns = DUE_MS(500) };
    char *control = malloc(CORE_SECRET + 1);
    due_error error = { .text = "" };
    struct due_stats stats;
    due_queue *q;
    due_queue *none;
    due_job job;

    CREW_CHECK(control != NULL, "");
    core_spell(control_as, control);
    options.store = store_with(s, canary_as, "");
    int rc = due_open(&q, &options, &error);
    CREW_CHECK(rc == 0, ": %s", error.text);
    put(q);
    refused.store = store_with(s, canary_as, "x");
    CREW_CHECK(due_open(&none, &refused, &error) == DUE_EACCES, ": %s", error.text);
    due_redis_free(refused.store);
    raise(SIGSTOP); /* its connection is cut here */
    put(q);
    CREW_CHECK(due_dequeue(q, &job, DUE_S(5)) == 0, "");
    due_job_done(&job);
    CREW_CHECK(due_stats_read(q, &stats) == 0 && stats.settled >= 3, "");
    raise(SIGSTOP); /* and here is looked at */
    CREW_CHECK(due_close(q, DUE_CLOSE_DISCARD, DUE_S(10)) == 0 && due_free(q) == 0, "");
    free(control);
}

static void until_stopped(pid_t pid)
{
    int status;

    CREW_CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status), ": %d", status);
}

/* ---- The test ------------------------------------------------------------------------------- */

static void cut(const struct redis_server *s)
{
    redis_server_kill((struct redis_server *)(uintptr_t)s);
    CREW_CHECK(redis_server_run((struct redis_server *)(uintptr_t)s) == 0, "");
}

int main(void)
{
    static struct redis_server server;
    static struct core_look look;
    int status;
    int rc = redis_server_start(&server, NULL);

    if (rc == REDIS_SERVER_MISSING)
        return 77;
    CREW_CHECK(rc == 0, ": the server does not start");
    crew_watchdog("redis_canary", 60);
    aside(&server, set_password);
    pid_t pid = fork();
    CREW_CHECK(pid >= 0, "");
    if (pid == 0) {
        crew_watchdog("redis_canary, the program", 50);
        be_the_program(&server);
        _exit(0);
    }
    until_stopped(pid);
    cut(&server);
    aside(&server, set_password);
    kill(pid, SIGCONT);
    until_stopped(pid);
    core_spell(canary_as, look.canary);
    core_spell(control_as, look.control);
    bool could = core_look_through(&look, pid);
    kill(pid, SIGCONT);
    CREW_CHECK(waitpid(pid, &status, 0) == pid && status == 0, ": %d", status);
    redis_server_stop(&server);
    if (!could) {
        printf("redis_canary: the memory of another process cannot be read here\n");
        return 77;
    }
    printf("redis_canary: %" PRIu64 " KiB looked through, the control found %u times, the "
           "password %u times\n",
           look.bytes / 1024, look.controls, look.canaries);
    return look.controls > 0 && look.canaries == 0 ? 0 : 1;
}
