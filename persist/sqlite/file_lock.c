/* file_lock.c - a lock that is let go when its process ends, however it ends.
 *
 * It is the process's own, as fcntl() has them: a child that lives on after a fork does not inherit
 * it, as it would a lock of the open file.  For that such a lock has two traps.  It does not keep
 * out the process that has it; and it is gone when that closes any descriptor of the file.  So the
 * locks that this process has are listed, and a file that is locked here is not opened again.
 *
 * A file that was made for a lock is removed again if that turns out to be for nothing.  Somebody
 * may have opened it meanwhile: so whoever has locked one looks whether others find it, too.
 *
 * Guards     L  the lock of the list      O  the owner's own
 */
#define _GNU_SOURCE
#include "sqlite/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "due/base.h"

struct due__file_lock {
    int fd;                      /* O */
    dev_t device;                /* O */
    ino_t inode;                 /* O */
    pid_t pid;                   /* O: whose process has it */
    bool first;                  /* O: nobody had locked the file before */
    struct due__file_lock *next; /* L */
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct due__file_lock *list; /* L */

/* Is the file locked by this process?  A child's list is its parent's: it does not count. */
static bool is_ours(const struct stat *file)
{
    for (const struct due__file_lock *l = list; l != NULL; l = l->next)
        if (l->device == file->st_dev && l->inode == file->st_ino && l->pid == getpid())
            return true;
    return false;
}

static int error_of(int number)
{
    return number == EACCES || number == EPERM || number == EROFS ? DUE_EACCES : DUE_ESTORE;
}

/* "pid 123 on host, since 2026-01-31 12:00:00 UTC" */
static void write_holder(int fd)
{
    char host[72] = "";
    char text[DUE__HOLDER];
    char since[32] = "";
    time_t now = time(NULL);
    struct tm t;

    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    if (gmtime_r(&now, &t) != NULL)
        strftime(since, sizeof since, "%Y-%m-%d %H:%M:%S UTC", &t);
    int n = snprintf(text, sizeof text, "pid %ld on %s, since %s\n", (long)getpid(), host, since);
    /* What is not written is not said. */
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n)
        (void)ftruncate(fd, 0);
}

static void read_holder(int fd, char holder[DUE__HOLDER])
{
    ssize_t n = pread(fd, holder, DUE__HOLDER - 1, 0);

    holder[n > 0 ? n : 0] = '\0';
    holder[strcspn(holder, "\n")] = '\0';
}

/* Do others find what is locked at the path? */
static bool is_found(const struct due__file_lock *lock, const char *path)
{
    struct stat there;

    return stat(path, &there) == 0 && there.st_dev == lock->device && there.st_ino == lock->inode;
}

static bool lock_all(int fd)
{
    struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    return fcntl(fd, F_SETLK, &all) == 0;
}

/* Lock what was opened.  Nobody else of this process has it.  DUE_EAGAIN: it is not the file of
 * that path any more. */
static int lock_it(struct due__file_lock *lock, const char *path, char *holder)
{
    struct stat file;
    int rc = 0;

    if (!lock_all(lock->fd)) {
        rc = errno == EACCES || errno == EAGAIN ? DUE_EBUSY : DUE_ESTORE;
        if (rc == DUE_EBUSY)
            read_holder(lock->fd, holder);
    } else if (fstat(lock->fd, &file) != 0) {
        rc = DUE_ESTORE;
    } else if (!is_found(lock, path)) {
        rc = DUE_EAGAIN;
    }
    if (rc != 0) {
        int number = errno;

        close(lock->fd);
        errno = number;
        return rc;
    }
    lock->first = file.st_size == 0; /* whoever made it: he has not come to that */
    write_holder(lock->fd);
    lock->pid = getpid();
    lock->next = list;
    list = lock;
    return 0;
}

static int take(struct due__file_lock *lock, const char *path, char *holder)
{
    struct stat file;

    if (stat(path, &file) == 0 && is_ours(&file)) {
        snprintf(holder, DUE__HOLDER, "pid %ld, this process", (long)getpid());
        return DUE_EBUSY;
    }
    lock->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
    if (lock->fd < 0)
        return error_of(errno);
    if (fstat(lock->fd, &file) != 0) {
        close(lock->fd);
        return DUE_ESTORE;
    }
    if (is_ours(&file)) /* it was put here just now: closing it would let go of the lock */
        return DUE_EBUSY;
    lock->device = file.st_dev;
    lock->inode = file.st_ino;
    return lock_it(lock, path, holder);
}

int due__file_lock_take(struct due__file_lock **lock, const char *path, char holder[DUE__HOLDER])
{
    struct due__file_lock *made = calloc(1, sizeof *made);
    int rc = DUE_ENOMEM;

    holder[0] = '\0';
    if (made != NULL) {
        pthread_mutex_lock(&list_lock);
        do
            rc = take(made, path, holder);
        while (rc == DUE_EAGAIN);
        pthread_mutex_unlock(&list_lock);
    }
    if (rc != 0) {
        int number = errno;

        free(made);
        made = NULL;
        errno = number;
    }
    *lock = made;
    return rc;
}

bool due__file_lock_is_at(const struct due__file_lock *lock, const char *path)
{
    return lock != NULL && is_found(lock, path);
}

void due__file_lock_undo(struct due__file_lock *lock, const char *path)
{
    if (lock != NULL && lock->first && due__file_lock_is_at(lock, path))
        (void)unlink(path); /* what stays is a file that nobody has locked */
    due__file_lock_drop(lock);
}

void due__file_lock_drop(struct due__file_lock *lock)
{
    struct due__file_lock **at = &list;

    if (lock == NULL)
        return;
    pthread_mutex_lock(&list_lock);
    while (*at != lock)
        at = &(*at)->next;
    *at = lock->next;
    close(lock->fd);
    pthread_mutex_unlock(&list_lock);
    free(lock);
}
