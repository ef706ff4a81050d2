/* place.c - the file of a control socket: made, taken over, taken away.
 *
 * It is its user's alone from the moment it can be seen: the mode of the descriptor is that of the
 * file.  A file that somebody else has put in its place stays.
 */
#define _GNU_SOURCE
#include "server/server.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

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

int due__ctl_place_take(struct due__ctl_place *p, int fd)
{
    struct stat file;

    if (fchmod(fd, 0600) != 0)
        return errno;
    int rc = bind_to(p, fd);
    if (rc == EADDRINUSE && remove_stale(p))
        rc = bind_to(p, fd);
    if (rc != 0)
        return rc;
    if (lstat(p->address.sun_path, &file) != 0)
        return errno;
    p->device = file.st_dev;
    p->inode = file.st_ino;
    return listen(fd, DUE__CTL_CLIENTS_MAX) == 0 ? 0 : errno;
}

void due__ctl_place_leave(const struct due__ctl_place *p)
{
    struct stat file;

    if (p->inode != 0 && lstat(p->address.sun_path, &file) == 0 && file.st_dev == p->device &&
        file.st_ino == p->inode)
        (void)unlink(p->address.sun_path);
}
