/* file_lock.c - a lock that is let go when its process ends, however it ends.
 *
 * It is the process's own, as fcntl() has them: a child that lives on after a fork does not inherit
 * it, as it would a lock of the open file.  For that such a lock has two traps.  It does not keep
 * out the process that has it; and it is gone when that closes any descriptor of the file.  So the
 * locks that this process has are listed, and a file that is locked here is not opened again.
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

/* Lock what was opened.  Nobody else of this process has it. */
static int lock_it(struct due__file_lock *lock, int fd, const struct stat *file, char *holder)
{
    struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    if (fcntl(fd, F_SETLK, &all) != 0) {
        int number = errno;

        if (number == EACCES || number == EAGAIN)
            read_holder(fd, holder);
        close(fd);
        errno = number;
        return number == EACCES || number == EAGAIN ? DUE_EBUSY : DUE_ESTORE;
    }
    write_holder(fd);
    *lock = (struct due__file_lock){
        .fd = fd, .device = file->st_dev, .inode = file->st_ino, .pid = getpid(), .next = list
    };
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
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
    if (fd < 0)
        return error_of(errno);
    if (fstat(fd, &file) != 0) {
        close(fd);
        return DUE_ESTORE;
    }
    if (is_ours(&file)) /* it was put here just now: closing it would let go of the lock */
        return DUE_EBUSY;
    return lock_it(lock, fd, &file, holder);
}

int due__file_lock_take(struct due__file_lock **lock, const char *path, char holder[DUE__HOLDER])
{
    struct due__file_lock *made = calloc(1, sizeof *made);
    int rc = DUE_ENOMEM;

    holder[0] = '\0';
    if (made != NULL) {
        pthread_mutex_lock(&list_lock);
        rc = take(made, path, holder);
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
    struct stat file;

    return lock != NULL && stat(path, &file) == 0 && file.st_dev == lock->device &&
           file.st_ino == lock->inode;
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
