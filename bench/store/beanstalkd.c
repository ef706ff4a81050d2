/* beanstalkd.c - the work queue of that name, on a private server with a log on the same disk. */
#include "beanstalkd.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALLERS 64
#define TRIES   1000 /* of 5 ms each, until it answers */

static void fail(const char *what)
{
    fprintf(stderr, "beanstalkd: %s\n", what);
    exit(1);
}

/* ---- The server ---- */

static int dial(const struct beanstalkd *b)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || strlen(b->socket) >= sizeof to.sun_path)
        fail("its socket cannot be had");
    memcpy(to.sun_path, b->socket, strlen(b->socket) + 1);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

static void run_server(const struct beanstalkd *b, int sync_ms)
{
    char address[240];
    char sync[16];
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(null, 1);
    dup2(null, 2);
    snprintf(address, sizeof address, "unix:%s", b->socket);
    snprintf(sync, sizeof sync, "-f%d", sync_ms);
    execlp("beanstalkd", "beanstalkd", "-l", address, "-b", b->folder, sync, (char *)NULL);
    _exit(127);
}

bool beanstalkd_start(struct beanstalkd *b, const char *folder, int sync_ms)
{
    int fd = -1;

    snprintf(b->folder, sizeof b->folder, "%.180s/beanstalkd", folder);
    snprintf(b->socket, sizeof b->socket, "%.190s/socket", b->folder);
    if (mkdir(b->folder, 0700) != 0)
        fail("no folder for its log");
    b->pid = fork();
    if (b->pid == 0)
        run_server(b, sync_ms);
    for (int i = 0; i < TRIES && fd < 0; i++) {
        if (b->pid < 0 || waitpid(b->pid, NULL, WNOHANG) != 0) {
            b->pid = 0;
            beanstalkd_stop(b);
            return false;
        }
        fd = dial(b);
        if (fd < 0)
            nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
    }
    if (fd < 0)
        fail("it does not answer");
    close(fd);
    return true;
}

void beanstalkd_stop(struct beanstalkd *b)
{
    DIR *folder = opendir(b->folder);

    if (b->pid > 0) {
        kill(b->pid, SIGKILL);
        waitpid(b->pid, NULL, 0);
    }
    for (struct dirent *it; folder != NULL && (it = readdir(folder)) != NULL;)
        (void)unlinkat(dirfd(folder), it->d_name, 0);
    if (folder != NULL)
        closedir(folder);
    (void)rmdir(b->folder);
}

/* ---- A caller ---- */

struct wire {
    int fd;
    size_t jobs, ahead, payload;
    unsigned delay_s;
    uint64_t seed;
    char *out; /* requests */
    size_t out_len;
    char in[65536]; /* what was received, and not read yet */
    size_t at, end;
};

static void wire_open(struct wire *w, const struct beanstalkd *b)
{
    w->fd = dial(b);
    w->out = malloc(w->ahead * (w->payload + 64));
    w->out_len = w->at = w->end = 0;
    if (w->fd < 0 || w->out == NULL)
        fail("no connection");
}

static void wire_close(struct wire *w)
{
    close(w->fd);
    free(w->out);
}

static void wire_send(struct wire *w)
{
    for (size_t sent = 0; sent < w->out_len;) {
        ssize_t n = send(w->fd, w->out + sent, w->out_len - sent, MSG_NOSIGNAL);

        if (n <= 0)
            fail("it has gone");
        sent += (size_t)n;
    }
    w->out_len = 0;
}

static char wire_byte(struct wire *w)
{
    if (w->at == w->end) {
        ssize_t n = recv(w->fd, w->in, sizeof w->in, 0);

        if (n <= 0)
            fail("it has gone");
        w->at = 0;
        w->end = (size_t)n;
    }
    return w->in[w->at++];
}

/* The next line of its answers, which must begin so. */
static void wire_line(struct wire *w, char line[80], const char *begin)
{
    size_t len = 0;

    for (char byte = wire_byte(w); byte != '\n'; byte = wire_byte(w))
        if (byte != '\r' && len < 79)
            line[len++] = byte;
    line[len] = '\0';
    if (strncmp(line, begin, strlen(begin)) != 0)
        fail(line);
}

static void *put(void *arg)
{
    struct wire *w = arg;
    char line[80];

    for (size_t done = 0; done < w->jobs;) {
        size_t n = w->jobs - done < w->ahead ? w->jobs - done : w->ahead;

        for (size_t i = 0; i < n; i++) {
            w->seed = w->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            unsigned delay = w->delay_s > 0 ? w->delay_s + (unsigned)(w->seed >> 40) % 17592 : 0;
            w->out_len +=
                (size_t)sprintf(w->out + w->out_len, "put 0 %u 600 %zu\r\n", delay, w->payload);
            memset(w->out + w->out_len, 'x', w->payload);
            memcpy(w->out + w->out_len + w->payload, "\r\n", 2);
            w->out_len += w->payload + 2;
        }
        wire_send(w);
        for (size_t i = 0; i < n; i++)
            wire_line(w, line, "INSERTED");
        done += n;
    }
    return NULL;
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double beanstalkd_put(struct beanstalkd *b, unsigned callers, size_t jobs, size_t ahead,
                      size_t payload, unsigned delay_s)
{
    static struct wire wires[CALLERS];
    pthread_t threads[CALLERS];

    for (unsigned i = 0; i < callers; i++) {
        wires[i] = (struct wire){ .jobs = jobs / callers,
                                  .ahead = ahead,
                                  .payload = payload,
                                  .delay_s = delay_s,
                                  .seed = i + 1 };
        wire_open(&wires[i], b);
    }
    double begin = seconds();
    for (unsigned i = 0; i < callers; i++)
        pthread_create(&threads[i], NULL, put, &wires[i]);
    for (unsigned i = 0; i < callers; i++)
        pthread_join(threads[i], NULL);
    double took = seconds() - begin;
    for (unsigned i = 0; i < callers; i++)
        wire_close(&wires[i]);
    return took;
}

double beanstalkd_take(struct beanstalkd *b, size_t jobs, size_t ahead)
{
    static struct wire w;
    char line[80];
    unsigned long long *ids = malloc(ahead * sizeof *ids);

    w = (struct wire){ .jobs = jobs, .ahead = ahead };
    wire_open(&w, b);
    if (ids == NULL)
        fail("no memory");
    double begin = seconds();
    for (size_t done = 0; done < jobs; done += ahead) {
        for (size_t i = 0; i < ahead; i++)
            w.out_len += (size_t)sprintf(w.out + w.out_len, "reserve\r\n");
        wire_send(&w);
        for (size_t i = 0; i < ahead; i++) {
            wire_line(&w, line, "RESERVED ");
            ids[i] = strtoull(line + 9, NULL, 10);
            wire_line(&w, line, "");
        }
        for (size_t i = 0; i < ahead; i++)
            w.out_len += (size_t)sprintf(w.out + w.out_len, "delete %llu\r\n", ids[i]);
        wire_send(&w);
        for (size_t i = 0; i < ahead; i++)
            wire_line(&w, line, "DELETED");
    }
    double took = seconds() - begin;
    wire_close(&w);
    free(ids);
    return took;
}
