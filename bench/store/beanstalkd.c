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
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "beanstalkd_wire.h"

#define CALLERS 64
#define TRIES   1000 /* of 5 ms each, until it answers */

/* ---- The server ---- */

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
        wire_fail("no folder for its log");
    b->pid = fork();
    if (b->pid == 0)
        run_server(b, sync_ms);
    for (int i = 0; i < TRIES && fd < 0; i++) {
        if (b->pid < 0 || waitpid(b->pid, NULL, WNOHANG) != 0) {
            b->pid = 0;
            beanstalkd_stop(b);
            return false;
        }
        fd = wire_dial(b->socket);
        if (fd < 0)
            nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
    }
    if (fd < 0)
        wire_fail("it does not answer");
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

/* ---- Callers ---- */

struct caller {
    struct wire wire;
    size_t jobs, ahead, payload;
    unsigned delay_s;
    uint64_t seed;
};

static void *put(void *arg)
{
    struct caller *c = arg;
    struct wire *w = &c->wire;
    char line[WIRE_LINE];

    for (size_t done = 0; done < c->jobs;) {
        size_t n = c->jobs - done < c->ahead ? c->jobs - done : c->ahead;

        for (size_t i = 0; i < n; i++) {
            c->seed = c->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            unsigned delay = c->delay_s > 0 ? c->delay_s + (unsigned)(c->seed >> 40) % 17592 : 0;
            w->out_len +=
                (size_t)sprintf(w->out + w->out_len, "put 0 %u 600 %zu\r\n", delay, c->payload);
            memset(w->out + w->out_len, 'x', c->payload);
            memcpy(w->out + w->out_len + c->payload, "\r\n", 2);
            w->out_len += c->payload + 2;
        }
        wire_send(w);
        for (size_t i = 0; i < n; i++)
            wire_expect(w, line, "INSERTED");
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
    static struct caller all[CALLERS];
    pthread_t threads[CALLERS];

    for (unsigned i = 0; i < callers; i++) {
        all[i] = (struct caller){ .jobs = jobs / callers,
                                  .ahead = ahead,
                                  .payload = payload,
                                  .delay_s = delay_s,
                                  .seed = i + 1 };
        wire_open(&all[i].wire, b->socket, ahead * (payload + 64));
    }
    double begin = seconds();
    for (unsigned i = 0; i < callers; i++)
        pthread_create(&threads[i], NULL, put, &all[i]);
    for (unsigned i = 0; i < callers; i++)
        pthread_join(threads[i], NULL);
    double took = seconds() - begin;
    for (unsigned i = 0; i < callers; i++)
        wire_close(&all[i].wire);
    return took;
}

double beanstalkd_take(struct beanstalkd *b, size_t jobs, size_t ahead)
{
    static struct wire w;
    char line[WIRE_LINE];
    unsigned long long *ids = malloc(ahead * sizeof *ids);

    wire_open(&w, b->socket, ahead * 64);
    if (ids == NULL)
        wire_fail("no memory");
    double begin = seconds();
    for (size_t done = 0; done < jobs; done += ahead) {
        for (size_t i = 0; i < ahead; i++)
            w.out_len += (size_t)sprintf(w.out + w.out_len, "reserve\r\n");
        wire_send(&w);
        for (size_t i = 0; i < ahead; i++) {
            wire_expect(&w, line, "RESERVED ");
            ids[i] = strtoull(line + 9, NULL, 10);
            wire_expect(&w, line, "");
        }
        for (size_t i = 0; i < ahead; i++)
            w.out_len += (size_t)sprintf(w.out + w.out_len, "delete %llu\r\n", ids[i]);
        wire_send(&w);
        for (size_t i = 0; i < ahead; i++)
            wire_expect(&w, line, "DELETED");
    }
    double took = seconds() - begin;
    wire_close(&w);
    free(ids);
    return took;
}
