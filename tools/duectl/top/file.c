/* file.c - a sample from the file in which a program shows its figures: due/figures.h.
 *
 * It is read, not mapped: a file that somebody makes shorter while it is looked into is then an
 * error, and no signal that kills.  Nothing in it is believed: names have an end, counts of rows
 * are within bounds, and whatever is a time may be any number.
 *
 * Edges      B1, B2 of figures_file.c, of which this is the reader's end.  The number, the set and
 *            the number again are read by one call each, with a fence between them, so what they
 *            find is in that order.
 */
#define _GNU_SOURCE
#include "top/top.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TRIES      100       /* to read a set that is not written over meanwhile, */
#define PAUSE_NS   DUE_MS(5) /* so long apart */
#define SILENCE_NS DUE_S(2)  /* longer than it said: the program is stopped, or hangs */

int64_t top_now_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return DUE_S(now.tv_sec) + now.tv_nsec;
}

/* ---- A set, whole ---------------------------------------------------------------------------- */

static bool read_at(int fd, void *to, size_t n, size_t at)
{
    return pread(fd, to, n, (off_t)at) == (ssize_t)n;
}

static const char *check_head(const struct due_figures_head *head)
{
    if (memcmp(head->magic, DUE_FIGURES_MAGIC, sizeof head->magic) != 0)
        return "this is no file of figures";
    if (head->version != DUE_FIGURES_VERSION || head->head_bytes != sizeof *head ||
        head->set_bytes != sizeof(struct due_figures))
        return "its figures are those of another version";
    return NULL;
}

/* One try: NULL and *@again, or what is wrong. */
static const char *try_read(int fd, struct due_figures *f, bool *again)
{
    struct due_figures_head head;
    uint64_t number;

    if (!read_at(fd, &head, sizeof head, 0))
        return "this is no file of figures";
    const char *wrong = check_head(&head);
    if (wrong != NULL)
        return wrong;
    size_t at = sizeof head + (size_t)(head.number % 2) * sizeof *f;
    atomic_thread_fence(memory_order_acquire); /* B1 of figures_file.c */
    if (!read_at(fd, f, sizeof *f, at))
        return "it is too short";
    atomic_thread_fence(memory_order_acquire); /* B2 of figures_file.c */
    if (!read_at(fd, &number, sizeof number, offsetof(struct due_figures_head, number)))
        return "it is too short";
    *again = head.number == 0 || number != head.number;
    return *again ? NULL : top_figures_check(f, number);
}

static const char *read_set(int fd, struct due_figures *f)
{
    static const struct timespec pause = { .tv_nsec = PAUSE_NS };
    bool again = true;

    for (int i = 0; i < TRIES; i++) {
        const char *wrong = try_read(fd, f, &again);

        if (wrong != NULL || !again)
            return wrong;
        nanosleep(&pause, NULL);
    }
    return "there are no figures in it";
}

/* Does a program write it? */
static bool is_alive(int fd)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1 };

    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_WRLCK;
}

/* ---- What a set says ------------------------------------------------------------------------- */

const char *top_figures_check(struct due_figures *f, uint64_t number)
{
    if (f->number != number || f->topics_here > DUE_FIGURES_TOPICS ||
        f->pools_here > DUE_FIGURES_POOLS || f->topics_here > f->topics)
        return "its figures make no sense";
    f->queue[sizeof f->queue - 1] = '\0';
    for (uint32_t i = 0; i < f->topics_here; i++)
        f->topic[i].name[sizeof f->topic[i].name - 1] = '\0';
    for (uint32_t i = 0; i < f->pools_here; i++)
        f->pool[i].name[sizeof f->pool[i].name - 1] = '\0';
    f->late.count = 0;
    for (unsigned b = 0; b < DUE_HISTOGRAM_BUCKETS; b++)
        f->late.count += f->late.bucket[b];
    return NULL;
}

static int64_t overdue(int64_t oldest_ns, int64_t now_ns)
{
    int64_t ns;

    if (oldest_ns == DUE_FOREVER || __builtin_sub_overflow(now_ns, oldest_ns, &ns))
        return -1;
    return ns > 0 ? ns : 0;
}

static struct top_counts counts_of(const struct due_figures *f)
{
    const struct due_stats *s = &f->stats;

    return (struct top_counts){ .enqueued = s->enqueued,
                                .dequeued = s->dequeued,
                                .acked = s->acked,
                                .failed = s->retried + s->buried,
                                .waiting = s->waiting,
                                .ready = s->ready,
                                .leased = s->leased,
                                .dead = s->dead,
                                .overdue_ns = overdue(f->oldest_ns, f->now_ns) };
}

static struct top_counts counts_of_topic(const struct due_topic_stats *s, int64_t now_ns)
{
    return (struct top_counts){ .enqueued = s->enqueued,
                                .dequeued = s->dequeued,
                                .acked = s->acked,
                                .failed = s->retried + s->died,
                                .waiting = s->delayed + s->ready,
                                .ready = s->ready,
                                .leased = s->leased,
                                .dead = s->dead,
                                .overdue_ns = overdue(s->oldest_ns, now_ns) };
}

static void sample_of(struct top_sample *s, const struct due_figures *f)
{
    int64_t now_ns = top_now_ns(CLOCK_MONOTONIC);
    int64_t wait_ns;

    s->of_store = false;
    s->measured = f->measured != 0;
    s->closed = f->closed != 0;
    s->number = f->number;
    s->pid = f->pid;
    s->opened_ns = f->opened_ns;
    s->taken_ns = f->written_ns > 0 ? f->written_ns : 0;
    s->monotonic_ns = f->monotonic_ns;
    s->next_ns = -1;
    s->store_state = f->stored ? f->stats.store_state : 0;
    if (__builtin_sub_overflow(now_ns, f->monotonic_ns, &s->age_ns) || s->age_ns < 0)
        s->age_ns = 0;
    if (__builtin_sub_overflow(f->next_ns, f->monotonic_ns, &wait_ns) || wait_ns < 0)
        wait_ns = 0;
    s->silent = !s->closed && s->age_ns > SILENCE_NS && s->age_ns - SILENCE_NS > wait_ns;
    memcpy(s->queue, f->queue, sizeof s->queue);
    s->all = counts_of(f);
    s->late = f->late;
    s->topics = f->topics;
    s->topics_here = f->topics_here;
    for (uint32_t i = 0; i < f->topics_here; i++) {
        memcpy(s->topic[i].name, f->topic[i].name, sizeof s->topic[i].name);
        s->topic[i].counts = counts_of_topic(&f->topic[i].stats, f->now_ns);
    }
    s->pools_here = f->pools_here;
    memcpy(s->pool, f->pool, f->pools_here * sizeof f->pool[0]);
}

/* ---- The file -------------------------------------------------------------------------------- */

/* Opened, if it is one: else -1, and why not. */
static int open_it(const char *path, const char **why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    *why = strerror(errno);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    *why = "this is no file of figures";
    close(fd);
    return -1;
}

/* The file that is there now, or, if there is none any more, the one that was there. */
static bool open_again(struct top_file *file)
{
    const char *why;
    int fd = open_it(file->path, &why);

    if (fd < 0 && file->fd < 0)
        fprintf(stderr, "duectl: %s: %s\n", file->named, why);
    if (fd < 0)
        return file->fd >= 0;
    top_file_close(file);
    file->fd = fd;
    return true;
}

/* Nobody writes it any more: who ends as he should removes it. */
static int ended(const struct top_file *file, struct top_sample *s)
{
    char date[CTL_DUMP_DATE];
    struct stat st;

    if (fstat(file->fd, &st) == 0 && st.st_nlink == 0) {
        s->closed = true;
        return TOP_TAKEN;
    }
    fprintf(stderr,
            "duectl: %s: process %lld, which wrote it, has ended; its last figures are of %s\n",
            file->named, (long long)s->pid, ctl_dump_date(date, s->taken_ns));
    return CTL_FAULTS;
}

int top_file_take(struct top_file *file, struct top_sample *s)
{
    struct due_figures *f = malloc(sizeof *f);
    int status = CTL_FAULTS;

    if (f == NULL) {
        fprintf(stderr, "duectl: %s\n", due_error_text(DUE_ENOMEM));
        return CTL_BROKEN;
    }
    if (open_again(file)) {
        const char *wrong = read_set(file->fd, f);

        if (wrong != NULL) {
            fprintf(stderr, "duectl: %s: %s\n", file->named, wrong);
        } else {
            sample_of(s, f);
            status = s->closed || is_alive(file->fd) ? TOP_TAKEN : ended(file, s);
        }
    }
    free(f);
    return status;
}

void top_file_close(struct top_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}
