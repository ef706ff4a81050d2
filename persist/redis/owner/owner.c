/* owner.c - who an owner is, and whether it still lives.
 *
 * The owner key names a process so that another one of the same machine can tell that it is gone:
 * by its number and the time at which it started, in the same boot and the same namespace of
 * process numbers.  Of any other machine or container only the lease can tell.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "redis/owner/owner.h"

#define BOOT_ID 36

struct owner {
    char host[256];
    char boot[64];
    char namespace[32];
    int64_t pid;
    uint64_t start;
};

/* The beginning of a small file, with a NUL.  Answers its length, or -1. */
static ssize_t slurp(const char *path, char *text, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return -1;
    n = read(fd, text, room - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n;
}

/* When a process started, in ticks after boot.  1: it runs; 0: it is gone, or only its parent has
 * not looked; -1: cannot be told. */
static int started(int64_t pid, uint64_t *start)
{
    char path[64];
    char text[1024];
    char state;
    long threads;

    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    if (slurp(path, text, sizeof text) <= 0)
        return access("/proc/self/stat", R_OK) == 0 && access(path, F_OK) != 0 ? 0 : -1;
    /* The name stands in parentheses and may hold anything, so count from the last one. */
    const char *at = strrchr(text, ')');
    if (at == NULL ||
        sscanf(at + 1,
               " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d"
               " %" SCNu64,
               &state, &threads, start) != 3)
        return -1;
    return (state == 'Z' || state == 'X') && threads <= 1 ? 0 : 1;
}

static void keep_graphs(char *text)
{
    for (; *text != '\0'; text++)
        if (!isgraph((unsigned char)*text))
            *text = '?';
}

/* What is not known stays "-", which is like nothing else. */
static void this_machine(struct owner *o)
{
    char link[64];
    ssize_t n = readlink("/proc/self/ns/pid", link, sizeof link - 1);

    *o = (struct owner){ .host = "-", .boot = "-", .namespace = "-" };
    if (gethostname(o->host, sizeof o->host - 1) != 0 || o->host[0] == '\0')
        snprintf(o->host, sizeof o->host, "-");
    keep_graphs(o->host);
    if (slurp("/proc/sys/kernel/random/boot_id", o->boot, sizeof o->boot) >= BOOT_ID)
        o->boot[BOOT_ID] = '\0';
    else
        snprintf(o->boot, sizeof o->boot, "-");
    if (n > 0 && (size_t)n < sizeof o->namespace) {
        memcpy(o->namespace, link, (size_t)n);
        o->namespace[n] = '\0';
        keep_graphs(o->namespace);
    }
}

int due__owner_write(char text[DUE__REDIS_OWNER])
{
    struct owner o;

    this_machine(&o);
    o.pid = getpid();
    if (started(o.pid, &o.start) != 1)
        snprintf(o.boot, sizeof o.boot, "-");
    int n = snprintf(text, DUE__REDIS_OWNER, "1 %s %s %s %" PRId64 " %" PRIu64, o.host, o.boot,
                     o.namespace, o.pid, o.start);
    return n > 0 && n < DUE__REDIS_OWNER ? 0 : DUE_ESYS;
}

static bool owner_read(struct owner *o, const char *text)
{
    int end = 0;

    *o = (struct owner){ .host = "" };
    if (sscanf(text, "1 %255s %63s %31s %" SCNd64 " %" SCNu64 "%n", o->host, o->boot, o->namespace,
               &o->pid, &o->start, &end) != 5)
        return false;
    return text[end] == '\0' && o->pid > 0;
}

enum due__owner_life due__owner_life(const char *text)
{
    struct owner o;
    struct owner here;
    uint64_t start;

    this_machine(&here);
    if (!owner_read(&o, text) || here.boot[0] == '-' || here.namespace[0] == '-' ||
        strcmp(o.boot, here.boot) != 0 || strcmp(o.namespace, here.namespace) != 0)
        return DUE__OWNER_UNKNOWN;
    int runs = started(o.pid, &start);
    if (runs < 0)
        return DUE__OWNER_UNKNOWN;
    return runs == 0 || start != o.start ? DUE__OWNER_DEAD : DUE__OWNER_LIVES;
}

bool due__owner_name(const char *text, char *host, size_t room, int64_t *pid)
{
    struct owner o;

    if (!owner_read(&o, text))
        return false;
    keep_graphs(o.host);
    snprintf(host, room, "%s", o.host);
    *pid = o.pid;
    return true;
}

void due__owner_show(const char *text, char *shown, size_t room)
{
    struct owner o;

    if (owner_read(&o, text)) {
        keep_graphs(o.host);
        snprintf(shown, room, "process %" PRId64 " on host %.64s", o.pid, o.host);
    } else {
        snprintf(shown, room, "an owner of an unknown kind");
    }
}
