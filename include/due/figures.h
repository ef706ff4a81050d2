/* figures.h - what a running program tells of its queue, in a small file that others may look into.
 *
 *   Writing   due_figures_open() gives a queue a file, which its worker proxy fills in twice a
 *             second.  Who puts in and takes out jobs does nothing for it, and a queue that was not
 *             asked pays nothing.
 *   Reading   `duectl top` shows it.  Whoever may read the file may look as often as he likes:
 *             nothing is locked, and the program does not notice.  docs/metrics.md says how.
 *   Whole     There is room for two sets of figures, and the one that was written last is left
 *             alone while the next is written.  So a reader has a whole set, or sees by its number
 *             that he was too slow; also if the program dies while it writes.
 *   Alive     While the program has the queue, it holds a lock on the file (of an open file
 *             description, for writing, on its first byte), which the kernel ends with it.  A
 *             reader asks for that with F_OFD_GETLK, which locks nothing.
 */
#ifndef DUE_FIGURES_H
#define DUE_FIGURES_H

#include "due/metrics.h"
#include "due/workers.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DUE_FIGURES_MAGIC   "duefigs"
#define DUE_FIGURES_VERSION 1

/* Of the topics with the lowest numbers, and of the first names of pools, there are figures. */
#define DUE_FIGURES_TOPICS 128
#define DUE_FIGURES_POOLS  16

/* How often they are written: nearly so often, or not for as long as writing them took twenty times
 * over.  Nobody need read them more often. */
#define DUE_FIGURES_EVERY_NS DUE_MS(500)

/* What the file begins with.  Numbers are in the byte order of the machine; there is no padding,
 * here or below. */
struct due_figures_head {
    char magic[8];        /* DUE_FIGURES_MAGIC */
    uint32_t version;     /* DUE_FIGURES_VERSION: another one is laid out differently */
    uint32_t head_bytes;  /* the two sets begin here */
    uint64_t set_bytes;   /* of each */
    uint64_t number;      /* of the set that was written last: it lies in the first place if that is
                             even, else in the second.  0: none was */
    uint64_t reserved[4]; /* */
};

struct due_figures_topic {
    char name[256]; /* with its NUL */
    struct due_topic_stats stats;
};

struct due_figures_pool {
    char name[72]; /* with its NUL */
    struct due_workers_stats stats;
};

/* One set. */
struct due_figures {
    uint64_t number;        /* as in the head */
    int64_t pid;            /* of the program, as it sees itself */
    int64_t opened_ns;      /* the file was; since 1970 */
    int64_t written_ns;     /* this was; since 1970 */
    int64_t monotonic_ns;   /* likewise, on CLOCK_MONOTONIC */
    int64_t next_ns;        /* not written again before this, on that clock */
    int64_t now_ns;         /* the queue's clock */
    int64_t oldest_ns;      /* as in due_metrics; DUE_FOREVER: nothing is ready */
    uint32_t closed;        /* 1: the queue is, and this is its last set */
    uint32_t measured;      /* 1: with due_options.metrics; without, topics and late are zero, but
                                 for names and oldest_ns */
    uint32_t stored;        /* 1: it has a store */
    uint32_t topics;        /* that the queue has */
    uint32_t topics_here;   /* of those, in topic[] */
    uint32_t pools_here;    /* in pool[] */
    uint64_t reserved[8];   /* */
    char queue[72];         /* its name, with a NUL */
    struct due_stats stats; /* without what a lease that has ended, and nobody has seen, changes */
    due_histogram late;     /* as in due_metrics */
    due_histogram held;     /* */
    struct due_figures_pool pool[DUE_FIGURES_POOLS];
    struct due_figures_topic topic[DUE_FIGURES_TOPICS];
};

/**
 * From now on the figures of @q stand in the file at @path, until due_free(), which removes it.
 * What is due is moved to its topic now and then even if nobody takes jobs.  A file that a program
 * has left behind when it died is used again; anything else is left alone.  If somebody makes the
 * file shorter, that is logged, and no more is written.
 *
 * Threads:  any
 * Cost:     126 KiB, which are the file's, and 88 KiB of memory; a look at every topic, twice a
 *           second, in the worker proxy; where due_metrics_read() looks at every job, this does too
 * Errors:   DUE_EEXIST (it has one already), DUE_EBUSY (another queue writes that one), DUE_EINVAL
 *           (the path is too long, or something else is there), DUE_ENOENT (there is no such
 *           directory), DUE_EACCES, DUE_ENOSPC, DUE_ENOTSUP (without proxies; or the file system
 *           cannot), DUE_ENOMEM, DUE_ESYS, DUE_EFORK
 */
DUE_API int due_figures_open(due_queue *q, const char *path) DUE_NONNULL(1, 2) DUE_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
