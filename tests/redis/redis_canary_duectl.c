/* redis_canary_duectl.c - a password given to duectl is nowhere in what a core dump would hold.
 *
 * Each command that takes a URL is started with it, as an argument and in the environment, and held
 * by the proxy: where it says the password to the server, and later.  Its parent then looks through
 * all of its memory that the kernel would dump.  The control is the name of the queue.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/core_look.h"
#include "lab/crew.h"
#include "lab/fault_proxy.h"
#include "lab/redis/redis_server.h"

#define WORDS    8
#define PATIENCE 20000 /* ms */

static const char canary_as[CORE_SECRET + 1] = "dbobsz.4g:c2e1.pg.uif.nf";
static const char control_as[CORE_SECRET + 1] = "dpouspm.5b8d1f.pg.uif.nf";

/* URL stands for the URL, QUEUE for the queue's name; without URL it is in the environment. */
static const char *const commands[][WORDS] = {
    { "run", "--queue", "QUEUE", "--store", "URL" },
    { "run", "--queue", "QUEUE", "--store=URL" },
    { "run", "--queue", "QUEUE" },
    { "work", "--queue", "QUEUE", "--store", "URL", "--exec", "true" },
    { "work", "--queue", "QUEUE", "--exec", "true" },
    { "restore", "--queue", "QUEUE", "URL" },
    { "verify", "--queue", "QUEUE", "URL" },
    { "verify", "--queue", "QUEUE", "--repair" },
    { "doctor", "--queue", "QUEUE", "URL" },
    { "stats", "--queue", "QUEUE", "URL" },
    { "show", "--queue", "QUEUE", "URL", "ff000000000001000000000000010000" },
    { "cancel", "--queue", "QUEUE", "ff000000000001000000000000010000", "--store=URL" },
    { "push", "--queue", "QUEUE" },
    { "push", "--shared", "--queue", "QUEUE" },
    { "ps", "--queue", "QUEUE", "URL" },
    { "evict", "--yes", "--queue", "QUEUE", "URL", "17" },
};

/* The commands on their way to the server at which it is looked. */
static const struct {
    uint64_t command;
    enum fault_where where;
} moments[] = { { 1, FAULT_BEFORE }, { 1, FAULT_SENT }, { 4, FAULT_BEFORE } };

static struct redis_server server;
static struct fault_proxy *proxy;
static char proxy_path[112];

static void say(const char *const *words)
{
    char answer[256];
    long n = redis_server_ask(&server, words, answer, sizeof answer);

    CREW_CHECK(n > 0 && answer[0] == '+', ": %s", answer);
}

static bool in_words(const char *const *words)
{
    for (int i = 0; i < WORDS && words[i] != NULL; i++) {
        if (strstr(words[i], "URL") != NULL)
            return true;
    }
    return false;
}

/* In the child: what it knows is gone with its memory. */
static void become(const char *duectl, const char *const *words, const struct core_look *l)
{
    char url[256];
    char text[WORDS + 1][300];
    char *argv[WORDS + 2] = { (char *)(uintptr_t)duectl };
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    snprintf(url, sizeof url, "unix://:%s@%s", l->canary, proxy_path);
    for (int i = 0; i < WORDS && words[i] != NULL; i++) {
        const char *at = strstr(words[i], "URL");

        if (strcmp(words[i], "QUEUE") == 0)
            snprintf(text[i], sizeof text[i], "%s", l->control);
        else if (at != NULL)
            snprintf(text[i], sizeof text[i], "%.*s%s", (int)(at - words[i]), words[i], url);
        else
            snprintf(text[i], sizeof text[i], "%s", words[i]);
        argv[i + 1] = text[i];
    }
    if (in_words(words))
        unsetenv("DUE_STORE_URL");
    else
        setenv("DUE_STORE_URL", url, 1);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    execv(duectl, argv);
    _exit(127);
}

/* How often the password is found in it there. */
static unsigned look_at(const char *duectl, const char *const *words, size_t moment,
                        struct core_look *l)
{
    struct fault_cell cell = { .command = moments[moment].command,
                               .where = moments[moment].where,
                               .what = FAULT_STALL };
    unsigned canaries = l->canaries;
    unsigned controls = l->controls;

    fault_proxy_plan(proxy, &cell, 1);
    pid_t pid = fork();
    CREW_CHECK(pid >= 0, "");
    if (pid == 0)
        become(duectl, words, l);
    CREW_CHECK(fault_proxy_wait(proxy, 1, PATIENCE), ": %s does not come so far", words[0]);
    kill(pid, SIGSTOP);
    CREW_CHECK(waitpid(pid, NULL, WUNTRACED) == pid, "");
    bool could = core_look_through(l, pid);
    kill(pid, SIGKILL);
    CREW_CHECK(waitpid(pid, NULL, 0) == pid, "");
    fault_proxy_plan(proxy, NULL, 0);
    fault_proxy_cut(proxy);
    if (!could) {
        printf("redis_canary_duectl: the memory of another process cannot be read here\n");
        redis_server_stop(&server);
        exit(77);
    }
    CREW_CHECK(l->controls > controls, ": %s: the control was not found", words[0]);
    if (l->canaries > canaries)
        printf("  %s, %s, at command %d: found\n", words[0],
               in_words(words) ? "in an argument" : "in the environment", (int)cell.command);
    return l->canaries - canaries;
}

int main(void)
{
    static struct core_look look;
    const char *duectl = getenv("DUECTL");
    unsigned looks = 0;
    unsigned wrong = 0;

    if (duectl == NULL)
        return 77;
    int rc = redis_server_start(&server, NULL);
    if (rc == REDIS_SERVER_MISSING)
        return 77;
    CREW_CHECK(rc == 0, ": the server does not start");
    crew_watchdog("redis_canary_duectl", 200);
    core_spell(canary_as, look.canary);
    core_spell(control_as, look.control);
    say((const char *const[]){ "CONFIG", "SET", "requirepass", look.canary, NULL });
    snprintf(proxy_path, sizeof proxy_path, "%s/proxy", server.dir);
    proxy = fault_proxy_start(proxy_path, server.socket);
    CREW_CHECK(proxy != NULL, ": no proxy");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        for (size_t m = 0; m < sizeof moments / sizeof moments[0]; m++) {
            wrong += look_at(duectl, commands[i], m, &look) > 0;
            looks++;
        }
    }
    fault_proxy_stop(proxy);
    redis_server_stop(&server);
    printf("redis_canary_duectl: %u looks at %zu commands, and the registers of %u threads, the "
           "password "
           "found in %u\n",
           looks, sizeof commands / sizeof commands[0], look.registers, wrong);
    return wrong > 0;
}
