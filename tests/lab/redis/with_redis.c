/* with_redis.c - runs a command beside a private redis-server, for tests that are scripts and for
 * the examples.
 *
 *     with_redis [REDIS-OPTION...] -- COMMAND [ARGUMENT...]
 *
 * The command finds the server in DUE_STORE_URL, its socket in REDIS_SOCKET, and the process in
 * REDIS_PID.  The exit status is the command's; 77: redis-server is not installed.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/redis/redis_server.h"

static struct redis_server server;
static volatile sig_atomic_t child;

/* Whoever is told to end ends the command; the rest follows. */
static void pass_on(int signal)
{
    if (child > 0)
        kill(child, signal);
}

static pid_t start(char **command)
{
    char pid[16];
    pid_t parent = getpid();
    pid_t started = fork();

    if (started != 0)
        return started;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    snprintf(pid, sizeof pid, "%d", (int)server.pid);
    if (getppid() != parent || setenv("DUE_STORE_URL", server.url, 1) != 0 ||
        setenv("REDIS_SOCKET", server.socket, 1) != 0 || setenv("REDIS_PID", pid, 1) != 0)
        _exit(127);
    execvp(command[0], command);
    fprintf(stderr, "with_redis: %s: %s\n", command[0], strerror(errno));
    _exit(127);
}

static int wait_for(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return 1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    const char *options[REDIS_SERVER_OPTIONS + 1] = { NULL };
    struct sigaction action = { .sa_handler = pass_on };
    int n = 0;
    int rc;

    while (n + 1 < argc && strcmp(argv[n + 1], "--") != 0)
        n++;
    if (n + 2 >= argc || n > REDIS_SERVER_OPTIONS) {
        fprintf(stderr, "usage: with_redis [REDIS-OPTION...] -- COMMAND [ARGUMENT...]\n");
        return 2;
    }
    for (int i = 0; i < n; i++)
        options[i] = argv[i + 1];
    rc = redis_server_start(&server, options);
    if (rc != 0)
        return rc == REDIS_SERVER_MISSING ? 77 : 1;
    child = start(argv + n + 2);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    rc = child > 0 ? wait_for(child) : 1;
    redis_server_stop(&server);
    return rc;
}
