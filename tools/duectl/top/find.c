/* find.c - the files of figures that a process has: what it has mapped says so.
 *
 * Only who may look at the memory map of a process is shown it: its own user, and root.
 */
#define _GNU_SOURCE
#include "top/top.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES = 400 }; /* bytes of the queues' names that are said */

/* What was found so far. */
struct found {
    int64_t pid;
    const char *queue; /* that is wanted; NULL: any */
    char *path;
    size_t room;
    unsigned count;
    char names[NAMES];
    char seen[PATH_MAX]; /* the last that was looked at: both its mappings stand together */
};

/* The path of a line of /proc/PID/maps that is a file written through it, in place; or NULL.  There
 * a line feed is "\012". */
static char *path_of(char *line, uint64_t *inode)
{
    char access[8];
    int at = 0;

    if (sscanf(line, "%*s %7s %*s %*s %" SCNu64 " %n", access, inode, &at) < 2 || at == 0 ||
        strcmp(access, "rw-s") != 0 || *inode == 0 || line[at] != '/')
        return NULL;
    char *path = line + at;
    path[strcspn(path, "\n")] = '\0';
    char *to = path;
    for (const char *from = path; *from != '\0'; to++) {
        bool feed = strncmp(from, "\\012", 4) == 0;

        *to = feed ? '\n' : *from;
        from += feed ? 4 : 1;
    }
    *to = '\0';
    return path;
}

/* Is this a file of figures?  The name of its queue, from the set that was written last. */
static bool look_into(const char *path, uint64_t inode, char queue[72])
{
    struct due_figures_head head;
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return false;
    bool fine = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_ino == inode &&
                pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head &&
                memcmp(head.magic, DUE_FIGURES_MAGIC, sizeof head.magic) == 0;
    if (fine) {
        size_t at = sizeof head + (head.number % 2) * sizeof(struct due_figures) +
                    offsetof(struct due_figures, queue);

        if (pread(fd, queue, 71, (off_t)at) != 71)
            queue[0] = '\0';
        queue[71] = '\0';
    }
    close(fd);
    return fine;
}

static void note(struct found *f, const char *path, uint64_t inode)
{
    char whole[PATH_MAX + 64];
    char shown[80];
    char queue[72];

    /* As that process sees it: it may have a root of its own. */
    snprintf(whole, sizeof whole, "/proc/%" PRId64 "/root%s", f->pid, path);
    if (!look_into(whole, inode, queue) || strlen(whole) >= f->room)
        return;
    if (f->queue != NULL && strcmp(f->queue, queue) != 0)
        return;
    if (f->count++ == 0)
        strcpy(f->path, whole);
    ctl_text_show(shown, sizeof shown, queue, strlen(queue));
    if (strlen(f->names) + strlen(shown) + 3 < sizeof f->names) {
        strcat(f->names, f->names[0] != '\0' ? ", " : "");
        strcat(f->names, shown);
    }
}

static void look_through(struct found *f, FILE *maps)
{
    char *line = NULL;
    size_t room = 0;

    while (getline(&line, &room, maps) > 0) {
        uint64_t inode;
        const char *path = path_of(line, &inode);

        if (path == NULL || strlen(path) >= sizeof f->seen || strcmp(path, f->seen) == 0)
            continue;
        strcpy(f->seen, path);
        note(f, path, inode);
    }
    free(line);
}

int top_find(char *path, size_t room, int64_t pid, const char *queue)
{
    struct found f = { .pid = pid, .queue = queue, .path = path, .room = room };
    char maps_path[64];

    snprintf(maps_path, sizeof maps_path, "/proc/%" PRId64 "/maps", pid);
    FILE *maps = fopen(maps_path, "re");
    if (maps == NULL) {
        fprintf(stderr, "duectl: process %" PRId64 ": %s\n", pid,
                errno == ENOENT ? "there is none" : strerror(errno));
        return CTL_FAULTS;
    }
    look_through(&f, maps);
    fclose(maps);
    if (f.count == 1)
        return TOP_TAKEN;
    if (f.count == 0)
        fprintf(stderr,
                "duectl: process %" PRId64 " shows no figures%s%s: due_figures_open() makes "
                "it do so\n",
                pid, queue != NULL ? " of queue " : "", queue != NULL ? queue : "");
    else
        fprintf(stderr, "duectl: process %" PRId64 " has several queues: choose with --queue: %s\n",
                pid, f.names);
    return f.count == 0 ? CTL_FAULTS : CTL_USAGE;
}
