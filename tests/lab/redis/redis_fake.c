/* redis_fake.c - a server that says what a test tells it to say. */
#define _GNU_SOURCE
#include "lab/redis/redis_fake.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void *run(void *arg)
{
    struct fake *fake = arg;

    for (;;) {
        int fd = accept4(fake->listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0 && (errno == EINTR || errno == EMFILE) && !atomic_load(&fake->stop)) {
            usleep(1000);
            continue;
        }
        if (fd < 0 || atomic_load(&fake->stop)) {
            if (fd >= 0)
                close(fd);
            return NULL;
        }
        fake->serve(fake, fd, atomic_fetch_add(&fake->accepted, 1));
        close(fd);
    }
}

static void start_thread(struct fake *fake)
{
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&fake->thread, NULL, run, fake) != 0)
        abort();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void fake_start(struct fake *fake, fake_serve *serve, void *ctx)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };

    *fake = (struct fake){ .serve = serve, .ctx = ctx };
    snprintf(fake->dir, sizeof fake->dir, "/tmp/due-fake-XXXXXX");
    if (mkdtemp(fake->dir) == NULL)
        abort();
    snprintf(fake->path, sizeof fake->path, "%s/s", fake->dir);
    snprintf(fake->url, sizeof fake->url, "unix://%s", fake->path);
    memcpy(at.sun_path, fake->path, strlen(fake->path) + 1);
    fake->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fake->listener, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(fake->listener, 16) != 0)
        abort();
    start_thread(fake);
}

void fake_start_tcp(struct fake *fake, fake_serve *serve, void *ctx)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;

    *fake = (struct fake){ .serve = serve, .ctx = ctx };
    fake->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fake->listener, (struct sockaddr *)&at, len) != 0 || listen(fake->listener, 16) != 0 ||
        getsockname(fake->listener, (struct sockaddr *)&at, &len) != 0)
        abort();
    snprintf(fake->url, sizeof fake->url, "redis://localhost:%d", ntohs(at.sin_port));
    start_thread(fake);
}

void fake_stop(struct fake *fake)
{
    atomic_store(&fake->stop, true);
    shutdown(fake->listener, SHUT_RDWR);
    pthread_join(fake->thread, NULL);
    close(fake->listener);
    if (fake->path[0] != '\0')
        unlink(fake->path);
    if (fake->dir[0] != '\0')
        rmdir(fake->dir);
}

static bool hear_bytes(int fd, char *to, size_t len)
{
    while (len > 0) {
        ssize_t n = recv(fd, to, len, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        to += n;
        len -= (size_t)n;
    }
    return true;
}

/* The number of a line such as "$12\r\n". */
static bool hear_number(int fd, char kind, size_t *number)
{
    char line[32];
    size_t at = 0;

    do {
        if (at == sizeof line - 1 || !hear_bytes(fd, line + at, 1))
            return false;
    } while (line[at++] != '\n');
    line[at] = '\0';
    *number = (size_t)strtoul(line + 1, NULL, 10);
    return line[0] == kind;
}

bool fake_hear(struct fake *fake, int fd, char text[FAKE_TEXT])
{
    static char word[1 << 20];
    size_t words;
    size_t len;
    size_t at = 0;

    text[0] = '\0';
    if (!hear_number(fd, '*', &words))
        return false;
    for (size_t i = 0; i < words; i++) {
        if (!hear_number(fd, '$', &len) || len + 2 > sizeof word || !hear_bytes(fd, word, len + 2))
            return false;
        int n = snprintf(text + at, FAKE_TEXT - at, "%s%.*s", i > 0 ? " " : "",
                         len < 100 ? (int)len : 100, word);
        at += n > 0 && at + (size_t)n < FAKE_TEXT ? (size_t)n : 0;
    }
    len = strlen(fake->heard);
    snprintf(fake->heard + len, sizeof fake->heard - len, "%s\n", text);
    return true;
}

bool fake_say_bytes(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;

    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

bool fake_say(int fd, const char *text)
{
    return fake_say_bytes(fd, text, strlen(text));
}

bool fake_answer(struct fake *fake, int fd, const char *reply)
{
    char text[FAKE_TEXT];

    return fake_hear(fake, fd, text) && fake_say(fd, reply);
}

bool fake_greet(struct fake *fake, int fd, int n)
{
    for (int i = 0; i < n; i++) {
        if (!fake_answer(fake, fd, i == n - 1 ? "+PONG\r\n" : "+OK\r\n"))
            return false;
    }
    return true;
}

void fake_ignore(int fd)
{
    char bytes[4096];
    ssize_t n;

    do
        n = recv(fd, bytes, sizeof bytes, 0);
    while (n > 0 || (n < 0 && errno == EINTR));
}
