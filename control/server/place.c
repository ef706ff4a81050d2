/* place.c - the file of a control socket: made, taken over, taken away.
 *
 * It is its user's alone from the moment it can be seen: the mode of the descriptor is that of the
 * file.  A file that somebody else has put in its place stays.
 *
 * Between bind() and listen() a socket looks like one that a dead process has left, and between a
 * look at such a one and its removal another process may have put its own there.  So whoever makes
 * or takes over a file has its folder locked meanwhile.  Where a folder cannot be locked nothing is
 * taken over.
 */
#define _GNU_SOURCE
#include "server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TRY_NS DUE_MS(2) /* until the lock is tried for again, */
#define TRIES  1000      /* and how often: who holds it makes a file, and is done */

/* ---- Its folder ------------------------------------------------------------------------------ */

static const char *name_of(const struct due__ctl_place *p)
{
    const char *slash = strrchr(p->address.sun_path, '/');

    return slash == NULL ? p->address.sun_path : slash + 1;
}

/* A descriptor, or -1 and errno.  It is good also when the program goes to another folder. */
static int folder_open(const struct due__ctl_place *p)
{
    char folder[sizeof p->address.sun_path + 1] = ".";
    size_t len = (size_t)(name_of(p) - p->address.sun_path);

    if (len > 0) {
        memcpy(folder, p->address.sun_path, len);
        folder[len] = '\0';
    }
    return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* 0 or an errno; EAGAIN: somebody keeps it locked. */
static int folder_lock(int fd)
{
    const struct timespec pause = { .tv_nsec = TRY_NS };

    for (int i = 0; i < TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return 0;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return errno;
        (void)nanosleep(&pause, NULL);
    }
    return EAGAIN;
}

/* ---- Its file -------------------------------------------------------------------------------- */

static int bind_to(const struct due__ctl_place *p, int fd)
{
    return bind(fd, (const struct sockaddr *)&p->address, sizeof p->address) == 0 ? 0 : errno;
}

/* What a process has left behind that is gone goes; anything else stays. */
static bool remove_stale(const struct due__ctl_place *p)
{
    const struct sockaddr *to = (const struct sockaddr *)&p->address;
    struct stat file;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool gone = fd >= 0 && lstat(p->address.sun_path, &file) == 0 && S_ISSOCK(file.st_mode) &&
                connect(fd, to, sizeof p->address) != 0 && errno == ECONNREFUSED;

    if (fd >= 0)
        close(fd);
    return gone && unlink(p->address.sun_path) == 0;
}

/* Made there, and listening.  0 or an errno. */
static int make(struct due__ctl_place *p, int fd, bool locked)
{
    struct stat file;
    int rc = bind_to(p, fd);

    if (rc == EADDRINUSE && locked && remove_stale(p))
        rc = bind_to(p, fd);
    if (rc != 0)
        return rc;
    if (fstatat(p->folder_fd, name_of(p), &file, AT_SYMLINK_NOFOLLOW) != 0)
        return errno;
    p->device = file.st_dev;
    p->inode = file.st_ino;
    return listen(fd, DUE__CTL_CLIENTS_MAX) == 0 ? 0 : errno;
}

/* Unlocked by name: a child of fork() may have a copy of the descriptor, which holds the lock. */
int due__ctl_place_take(struct due__ctl_place *p, int fd)
{
    if (fchmod(fd, 0600) != 0)
        return errno;
    p->folder_fd = folder_open(p);
    if (p->folder_fd < 0)
        return errno;
    int locked = folder_lock(p->folder_fd);
    if (locked == EAGAIN)
        return EADDRINUSE;
    int rc = make(p, fd, locked == 0);
    if (locked == 0)
        (void)flock(p->folder_fd, LOCK_UN);
    return rc;
}

void due__ctl_place_leave(const struct due__ctl_place *p)
{
    struct stat file;

    if (p->inode != 0 && fstatat(p->folder_fd, name_of(p), &file, AT_SYMLINK_NOFOLLOW) == 0 &&
        file.st_dev == p->device && file.st_ino == p->inode)
        (void)unlinkat(p->folder_fd, name_of(p), 0);
}
