/* figures_file.c - the file of due/figures.h: made, mapped, written, removed.
 *
 * Only its one writer changes it, and never waits for a reader, of whom it does not know.  It has a
 * lock on the first byte, so that readers and the next writer can tell whether it is alive; the
 * lock is that of the open file description, so it ends with the process, and not before because
 * some other part of the program has looked into the file.
 *
 * A page that cannot be had when it is written kills a program: so all blocks are there from the
 * beginning, and the length is looked at before each set.
 *
 * Edges      B1  who writes stores the words of set n (release each), then n as the number; who
 *                reads loads the number n (acquire), and finds what was stored before it.
 *            B2  who writes stores n + 1 as the number before it stores any word of set n + 2
 *                (release), which takes the place of set n; who reads loads the words (acquire),
 *                then the number again.  If any word was of set n + 2, the number is not n any
 *                more.
 *                The other end of both is tools/duectl/top/file.c, which reads by system calls
 *                with a fence between them.
 *
 * Not here   What is written: figures.c.
 */
#define _GNU_SOURCE
#include "metrics/figures_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/atomic.h"

/* ---- Writing ---- */

void due__figures_put(uint64_t *number, uint64_t *sets, size_t set_words, const void *set,
                      size_t used_words, uint64_t set_number)
{
    uint64_t *to = sets + (set_number % 2) * set_words;
    const char *from = set;

    for (size_t i = 0; i < used_words; i++) {
        uint64_t word;

        memcpy(&word, from + i * sizeof word, sizeof word); /* its fields are of other types */
        due__store_release(&to[i], word);                   /* B2, and B1 */
    }
    due__store_release(number, set_number); /* B1, and B2 */
}

bool due__figures_file_put(struct due__figures_file *f, struct due_figures *set)
{
    size_t used = sizeof *set - sizeof set->topic + set->topics_here * sizeof set->topic[0];
    uint64_t *number = &f->head->number;
    struct stat st;

    if (fstat(f->fd, &st) != 0 || st.st_size < (off_t)DUE__FIGURES_BYTES)
        return false;
    set->number = due__load_relaxed(number) + 1; /* B1: the writer's own */
    if (set->number == 0)
        set->number = 2; /* 0 is none, and the places take turns */
    due__figures_put(number, (uint64_t *)(f->head + 1), sizeof *set / sizeof(uint64_t), set,
                     used / sizeof(uint64_t), set->number);
    return true;
}

/* ---- Opening ---- */

static int error_of(int err)
{
    switch (err) {
    case ENOENT:
    case ENOTDIR:
        return DUE_ENOENT;
    case EACCES:
    case EPERM:
    case EROFS:
        return DUE_EACCES;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return DUE_ENOSPC;
    case EISDIR:
    case ELOOP:
    case ENXIO:
    case ENAMETOOLONG:
        return DUE_EINVAL;
    case EOPNOTSUPP:
        return DUE_ENOTSUP;
    case ENOMEM:
        return DUE_ENOMEM;
    default:
        return DUE_ESYS;
    }
}

/* The file is nobody's, and is ours from here on. */
static int lock_it(int fd)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1 };

    if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return 0;
    return errno == EAGAIN || errno == EACCES ? DUE_EBUSY : DUE_ENOTSUP;
}

/* What is there is empty, or was left behind by another one, and is what @path still means. */
static int look_at(int fd, const char *path)
{
    struct due_figures_head head;
    struct stat here;
    struct stat there;

    if (fstat(fd, &here) != 0)
        return DUE_ESYS;
    if (!S_ISREG(here.st_mode))
        return DUE_EINVAL;
    if (here.st_size > 0 && (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
                             memcmp(head.magic, DUE_FIGURES_MAGIC, sizeof head.magic) != 0))
        return DUE_EINVAL;
    if (stat(path, &there) != 0 || there.st_ino != here.st_ino || there.st_dev != here.st_dev)
        return DUE_EBUSY; /* its writer has removed it just now */
    return 0;
}

/* All blocks are there, and the head is right; numbers go on where another has left off. */
static int lay_out(struct due__figures_file *f)
{
    int err = ftruncate(f->fd, (off_t)DUE__FIGURES_BYTES) == 0
                  ? posix_fallocate(f->fd, 0, (off_t)DUE__FIGURES_BYTES)
                  : errno;

    if (err != 0)
        return err == EINVAL ? DUE_ENOTSUP : error_of(err);
    void *map = mmap(NULL, DUE__FIGURES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
    if (map == MAP_FAILED)
        return error_of(errno);
    f->head = map;
    memcpy(f->head->magic, DUE_FIGURES_MAGIC, sizeof f->head->magic);
    f->head->version = DUE_FIGURES_VERSION;
    f->head->head_bytes = sizeof(struct due_figures_head);
    f->head->set_bytes = sizeof(struct due_figures);
    return 0;
}

int due__figures_file_open(struct due__figures_file *f, const char *path)
{
    if (strlen(path) >= sizeof f->path || path[0] == '\0')
        return DUE_EINVAL;
    strcpy(f->path, path);
    f->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644);
    if (f->fd < 0)
        return error_of(errno);
    int rc = lock_it(f->fd);
    if (rc == 0)
        rc = look_at(f->fd, path);
    if (rc == 0) {
        rc = lay_out(f);
        if (rc == 0)
            return 0;
        (void)unlink(path); /* it was empty, or of no use to anybody */
    }
    close(f->fd);
    return rc;
}

void due__figures_file_close(struct due__figures_file *f, bool remove)
{
    struct stat here;
    struct stat there;

    if (remove && fstat(f->fd, &here) == 0 && stat(f->path, &there) == 0 &&
        here.st_ino == there.st_ino && here.st_dev == there.st_dev)
        (void)unlink(f->path);
    munmap(f->head, DUE__FIGURES_BYTES);
    close(f->fd);
}
