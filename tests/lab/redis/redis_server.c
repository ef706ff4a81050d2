/* redis_server.c - a private redis-server for a test. */
#include "lab/redis/redis_server.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIES 4000 /* of 5 ms each, until the server answers */

/* Whether some folder of PATH has it. */
static int installed(void)
{
    const char *path = getenv("PATH");
    char full[512];

    while (path != NULL && *path != '\0') {
        size_t len = strcspn(path, ":");
        snprintf(full, sizeof full, "%.*s/redis-server", (int)len, path);
        if (access(full, X_OK) == 0)
            return 1;
        path += len + (path[len] == ':');
    }
    return 0;
}

static int dial(const struct redis_server *s)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    memcpy(to.sun_path, s->socket, strlen(s->socket) + 1);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Where the value that begins at @at ends, or NULL if bytes of it are missing. */
static const char *value_end(const char *at, const char *end)
{
    const char *line = memchr(at, '\n', (size_t)(end - at));
    long n;

    if (line == NULL)
        return NULL;
    n = strtol(at + 1, NULL, 10);
    line++;
    if (*at == '$' && n >= 0)
        return end - line >= n + 2 ? line + n + 2 : NULL;
    for (; *at == '*' && n > 0 && line != NULL; n--)
        line = line < end ? value_end(line, end) : NULL;
    return line;
}

static int send_words(int fd, const char *const *words)
{
    char head[32];
    size_t n = 0;

    while (words[n] != NULL)
        n++;
    int len = snprintf(head, sizeof head, "*%zu\r\n", n);
    if (send(fd, head, (size_t)len, MSG_NOSIGNAL) != len)
        return -1;
    for (size_t i = 0; i < n; i++) {
        size_t bytes = strlen(words[i]);
        len = snprintf(head, sizeof head, "$%zu\r\n", bytes);
        if (send(fd, head, (size_t)len, MSG_NOSIGNAL) != len ||
            send(fd, words[i], bytes, MSG_NOSIGNAL) != (ssize_t)bytes ||
            send(fd, "\r\n", 2, MSG_NOSIGNAL) != 2)
            return -1;
    }
    return 0;
}

/* Reads until one whole value is there, or the room is full, or 10 s have passed. */
static long read_value(int fd, char *answer, size_t room)
{
    size_t have = 0;

    while (have + 1 < room) {
        struct pollfd wait = { .fd = fd, .events = POLLIN };
        if (poll(&wait, 1, 10000) <= 0)
            return -1;
        ssize_t got = recv(fd, answer + have, room - 1 - have, 0);
        if (got <= 0)
            return -1;
        have += (size_t)got;
        answer[have] = '\0';
        if (value_end(answer, answer + have) != NULL)
            break;
    }
    return (long)have;
}

long redis_server_ask(const struct redis_server *s, const char *const *words, char *answer,
                      size_t room)
{
    int fd = dial(s);
    long got = -1;

    if (fd < 0)
        return -1;
    if (send_words(fd, words) == 0)
        got = read_value(fd, answer, room);
    close(fd);
    return got;
}

/* It answers, be it with an error: a password may be asked for. */
static int answers(const struct redis_server *s)
{
    char answer[128];
    long got = redis_server_ask(s, (const char *const[]){ "PING", NULL }, answer, sizeof answer);

    return got > 0 && strncmp(answer, "-LOADING", 8) != 0;
}

static void exec_server(const struct redis_server *s)
{
    char *argv[16 + REDIS_SERVER_OPTIONS];
    size_t n = 0;
    int log = open("server.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (log >= 0) {
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
    }
    const char *const fixed[] = {
        "redis-server", "--port",       "0",       "--save", "",    "--appendonly",
        "no",           "--unixsocket", s->socket, "--dir",  s->dir
    };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        argv[n++] = strdup(fixed[i]);
    for (size_t i = 0; i < s->n_options; i++)
        argv[n++] = strdup(s->options[i]);
    argv[n] = NULL;
    execvp("redis-server", argv);
    _exit(127);
}

int redis_server_run(struct redis_server *s)
{
    unlink(s->socket);
    pid_t parent = getpid();
    s->pid = fork();
    if (s->pid < 0)
        return -1;
    if (s->pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || chdir(s->dir) != 0)
            _exit(127);
        exec_server(s);
    }
    for (int i = 0; i < TRIES; i++) {
        if (answers(s))
            return 0;
        if (waitpid(s->pid, NULL, WNOHANG) == s->pid) {
            s->pid = 0;
            break;
        }
        poll(NULL, 0, 5);
    }
    fprintf(stderr, "redis_server: it does not answer; see %s/server.log\n", s->dir);
    return -1;
}

int redis_server_start(struct redis_server *s, const char *const *options)
{
    memset(s, 0, sizeof *s);
    if (!installed())
        return REDIS_SERVER_MISSING;
    for (size_t i = 0; options != NULL && options[i] != NULL; i++) {
        if (i == REDIS_SERVER_OPTIONS || strlen(options[i]) >= sizeof s->options[i])
            return -1;
        memcpy(s->options[i], options[i], strlen(options[i]) + 1);
        s->n_options = i + 1;
    }
    snprintf(s->dir, sizeof s->dir, "/tmp/due_redis_XXXXXX");
    if (mkdtemp(s->dir) == NULL)
        return -1;
    snprintf(s->socket, sizeof s->socket, "%s/redis.sock", s->dir);
    snprintf(s->url, sizeof s->url, "unix://%s", s->socket);
    int rc = redis_server_run(s);
    if (rc != 0)
        redis_server_kill(s);
    return rc;
}

static void end(struct redis_server *s, int signal)
{
    if (s->pid <= 0)
        return;
    kill(s->pid, signal);
    while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    s->pid = 0;
}

void redis_server_kill(struct redis_server *s)
{
    end(s, SIGKILL);
}

void redis_server_halt(struct redis_server *s)
{
    end(s, SIGTERM);
}

void redis_server_freeze(struct redis_server *s)
{
    int status;

    kill(s->pid, SIGSTOP);
    while (waitpid(s->pid, &status, WUNTRACED) < 0 && errno == EINTR)
        continue;
}

void redis_server_thaw(struct redis_server *s)
{
    kill(s->pid, SIGCONT);
}

/* Removes a folder with what is in it. */
static void remove_dir(const char *path)
{
    char name[512];
    DIR *dir = opendir(path);
    struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (unlink(name) != 0)
            remove_dir(name);
    }
    if (dir != NULL)
        closedir(dir);
    rmdir(path);
}

void redis_server_stop(struct redis_server *s)
{
    redis_server_kill(s);
    if (s->dir[0] != '\0')
        remove_dir(s->dir);
    s->dir[0] = '\0';
}
