/* metrics.h - what a queue has done, how late it was, and what happens to its jobs.
 *
 *   Figures   due_metrics_read() and due_topic_stats_read() fill in structs; due_metrics_write()
 *             writes the same, and those of the pools of workers, as text that Prometheus and
 *             its kin read.  docs/metrics.md names every line.
 *   Opt in    With due_options.metrics jobs are counted by topic, and lateness and handling time
 *             are measured; of a topic for which due_topic_measure() is called also by themselves.
 *             Without it a queue pays nothing for them, and they read as zero.
 *   Events    With due_options.on_event each step in the life of each job is told.
 */
#ifndef DUE_METRICS_H
#define DUE_METRICS_H

#include "due/due.h"
#include "due/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Histograms ------------------------------------------------------------------------------ */

/* Durations, in 8 buckets for each doubling from 1,024 ns to about 20 hours, in 8 of 128 ns each
 * below that, and one for all beyond: what is read from it is at most an eighth too high. */
#define DUE_HISTOGRAM_BUCKETS 297

typedef struct due_histogram {
    uint64_t count;
    uint64_t sum_ns;
    uint64_t bucket[DUE_HISTOGRAM_BUCKETS];
} due_histogram;

/**
 * The durations of a bucket are less than its bound, and not less than that of the one before;
 * DUE_FOREVER for the last, and for any number beyond.  due_histogram_bucket: where a duration
 * belongs; negative ones count as 0.
 *
 * Threads:  any
 * Errors:   none
 */
DUE_API int64_t due_histogram_bound(unsigned bucket);
DUE_API unsigned due_histogram_bucket(int64_t ns);

/**
 * What the part @part (0 to 1; 0.99: 99 of 100) of all durations stays below: the bound of the
 * bucket in which that one is.  0 if nothing was counted.
 *
 * Threads:  any, while nobody changes @h
 * Errors:   none
 */
DUE_API int64_t due_histogram_quantile(const due_histogram *h, double part) DUE_NONNULL(1);

/**
 * Add what @from has counted to @to: of several queues, or of several processes.
 *
 * Threads:  any, while nobody changes either
 * Errors:   none
 */
DUE_API void due_histogram_add(due_histogram *to, const due_histogram *from) DUE_NONNULL(1, 2);

/* ---- Figures --------------------------------------------------------------------------------- */

/* The jobs of one topic.  Exact when no call is running, and then enqueued + restored is what is
 * here now (delayed, ready, leased, dead) and what has left (dequeued, acked, cancelled, discarded,
 * kept).  All but oldest_ns need due_options.metrics. */
struct due_topic_stats {
    uint64_t enqueued;    /* since open */
    uint64_t restored;    /* read from the store */
    uint64_t delivered;   /* times handed out, for good or on a lease */
    uint64_t dequeued;    /* of those, for good */
    uint64_t acked;       /* */
    uint64_t nacked;      /* */
    uint64_t retried;     /* times a job waits again after a nack, a snooze, or a lease */
    uint64_t died;        /* times a job died */
    uint64_t expired;     /* of those, because its time had passed */
    uint64_t kicked;      /* times a dead job came back */
    uint64_t cancelled;   /* */
    uint64_t discarded;   /* */
    uint64_t kept;        /* left to the store by due_close() */
    uint64_t delayed;     /* now */
    uint64_t ready;       /* now: moved to the topic, not yet taken */
    uint64_t leased;      /* now */
    uint64_t dead;        /* now */
    int64_t oldest_ns;    /* the earliest deadline, or time of a retry, among what is ready, held
                             back by its group or a limit or not; DUE_FOREVER: nothing is */
    uint64_t reserved[4]; /* */
};

/**
 * Fill in @stats.
 *
 * Threads:  any; waits for the timeline's lock
 * Cost:     O(1); with DUE_ORDER_PRIORITY, and while a group or a limit holds jobs back, oldest_ns
 *           takes a look at every job
 * Errors:   DUE_EINVAL (no such topic), DUE_EFORK
 */
DUE_API int due_topic_stats_read(due_queue *q, int topic, struct due_topic_stats *stats)
    DUE_NONNULL(1, 3);

/**
 * From now on @topic has histograms of its own, of the lateness and the handling time of its jobs,
 * until due_free(); what they count counts for the queue too.  Asked for again it answers 0.
 *
 * Threads:  any
 * Cost:     76 KiB of address space, of which 4 to 12 KiB are touched for each of up to 16 groups
 *           of threads; hand-overs and answers cost what they did
 * Errors:   DUE_EINVAL (no such topic), DUE_ENOTSUP (without due_options.metrics), DUE_ENOMEM,
 *           DUE_EFORK
 */
DUE_API int due_topic_measure(due_queue *q, int topic) DUE_NONNULL(1);

/**
 * Fill in what was measured of @topic: zeroes unless due_topic_measure() was called for it.
 *
 * Threads:  any; without a lock
 * Errors:   DUE_EINVAL (no such topic), DUE_EFORK
 */
DUE_API int due_topic_durations(due_queue *q, int topic, due_histogram *late, due_histogram *held)
    DUE_NONNULL(1, 3, 4);

/* A queue as a whole. */
struct due_metrics {
    struct due_stats stats;
    int64_t now_ns;       /* the queue's clock */
    int64_t oldest_ns;    /* as in due_topic_stats, of all topics, paused ones too */
    int64_t next_ns;      /* as due_next_deadline() */
    int64_t heartbeat_ns; /* when the worker proxy last looked at everything (it does while
                             somebody waits, or memory is idle); -1: never */
    due_histogram late;   /* from the deadline to the hand-over; of all topics, as held is */
    due_histogram held;   /* from due_reserve() to the answer; one that the store refuses counts
                             again when it is given again */
    int stored;           /* 1: it has a store, and these are its figures */
    struct due_store_stats store;
    uint64_t delivered; /* of all topics, as in due_topic_stats: need due_options.metrics */
    uint64_t expired;   /* */
    uint64_t reserved[2];
};

/**
 * Fill in @metrics.
 *
 * Threads:  any; waits for the timeline's lock
 * Cost:     a look at every topic; with DUE_ORDER_PRIORITY at every job
 * Errors:   DUE_EFORK
 */
DUE_API int due_metrics_read(due_queue *q, struct due_metrics *metrics) DUE_NONNULL(1, 2);

#define DUE_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8" /* its Content-Type */

/* Topics that are written one by one: those with the lowest numbers.  Histograms: of as many of
 * those that are measured by themselves. */
#define DUE_METRICS_TOPICS 1000

/**
 * Write everything as text, in the format 0.0.4 of Prometheus, and a NUL.  As snprintf() the answer
 * is the length of the whole text, and no more than @size bytes are written; @buffer may be NULL if
 * @size is 0.  The text of the next call may be longer.
 *
 * Threads:  any; waits for the timeline's lock
 * Errors:   DUE_EFORK, DUE_ENOMEM
 */
DUE_API int due_metrics_write(due_queue *q, char *buffer, size_t size)
    DUE_NONNULL(1) DUE_MUST_CHECK;

/* ---- The whole of a queue, whoever shares it ------------------------------------------------- */

/* How much a queue holds.  Of a shared one the figures are the store's, of what all processes have;
 * of any other they are this process's. */
struct due_queue_census {
    uint64_t delayed;   /* */
    uint64_t ready;     /* due, and not taken; with those whose lease is over */
    uint64_t leased;    /* */
    uint64_t dead;      /* of all topics, whichever was asked for; and so are head_ns, processes */
    int64_t now_ns;     /* the time of what follows: the store's, or the queue's clock */
    int64_t oldest_ns;  /* the earliest time of what is ready; DUE_FOREVER: nothing is */
    int64_t head_ns;    /* the next job is due no earlier; DUE_FOREVER: nothing waits */
    uint64_t processes; /* that have the queue open; who died with it open, or was evicted, is
                             counted for a day */
    uint64_t reserved[6]; /* */
};

/**
 * Count the jobs of @topic (or DUE_ALL_TOPICS).  The topics of a shared queue have numbers here
 * once all of them were counted.
 *
 * Threads:  any; waits for the timeline's lock; with a store until that has answered, or the stored
 *           jobs were read, up to @timeout_ns, and due_options.store_timeout_ns at most
 * Cost:     for one topic a look at every job; of a shared queue a script of the store, which does
 *           not depend on how many jobs there are
 * Errors:   DUE_EINVAL (no such topic; @timeout_ns below 0), DUE_EAGAIN (@timeout_ns is 0, and the
 *           store would have to be waited for), DUE_ETIMEDOUT, DUE_EFENCED, DUE_ECLOSED (a shared
 *           queue that is closed), DUE_ENOMEM, DUE_EFORK
 */
DUE_API int due_census(due_queue *q, int topic, struct due_queue_census *census, int64_t timeout_ns)
    DUE_NONNULL(1, 3) DUE_MUST_CHECK;

#define DUE_HOST_BYTES 128 /* with its NUL; a longer name is cut */

/* One who has a queue open. */
typedef struct due_process {
    uint64_t number; /* it has it in the store, and `duectl evict` names it so; 0: not shared */
    char host[DUE_HOST_BYTES]; /* */
    int64_t pid;               /* on that host */
    int64_t started_ns;        /* when it joined; 0: the queue is not shared */
    int64_t seen_ns;      /* when it was last heard of, as it is with every beat: each 10 s, and
                             2 s for each process if there are more than five */
    uint64_t held;        /* jobs that it had on a lease then */
    int32_t waits;        /* 1: it waits for jobs, or to be told of some */
    int32_t self;         /* 1: it is this one, as this queue */
    uint64_t reserved[4]; /* */
} due_process;

/**
 * List who has the queue open.  *@cursor starts at 0 and is moved; the answer is how many were
 * written (0: the end).  Times are as in a census.  A queue that is not shared has one, this one.
 *
 * Threads:  any; as due_census()
 * Cost:     of a shared queue a command of the store for each topic
 * Errors:   DUE_EINVAL (@max is 0 or over INT_MAX; @timeout_ns below 0); else as due_census()
 */
DUE_API int due_processes(due_queue *q, uint64_t *cursor, due_process *processes, size_t max,
                          int64_t timeout_ns) DUE_NONNULL(1, 2, 3) DUE_MUST_CHECK;

/**
 * Write what the whole queue holds, and what this process has of it, as text; docs/metrics.md has
 * the names.  The text and the answer are as those of due_metrics_write(), whose text may follow.
 * Topics are those with the lowest numbers, up to DUE_METRICS_TOPICS.
 *
 * Threads:  any; as due_census()
 * Cost:     of a shared queue those of due_census() and due_processes(); else a look at every job
 * Errors:   as due_census()
 */
DUE_API int due_census_write(due_queue *q, char *buffer, size_t size, int64_t timeout_ns)
    DUE_NONNULL(1) DUE_MUST_CHECK;

/* ---- Events ---------------------------------------------------------------------------------- */

enum due_event_kind {
    DUE_EVENT_PRODUCED = 1, /* it was enqueued; with a store: and stored */
    DUE_EVENT_RESTORED,     /* it was read from the store */
    DUE_EVENT_READY,        /* its deadline has passed, and it may be taken */
    DUE_EVENT_DELIVERED,    /* it was handed out, for good or on a lease */
    DUE_EVENT_ACKED,        /* the last one of a job, as are the three below */
    DUE_EVENT_CANCELLED,    /* */
    DUE_EVENT_DISCARDED,    /* by a clear, a close, or because the queue closed meanwhile */
    DUE_EVENT_KEPT,         /* due_close() left it to the store */
    DUE_EVENT_RETRIED,      /* it waits again after a nack or a snooze, or a lease has ended */
    DUE_EVENT_DEAD,         /* cause says why */
    DUE_EVENT_KICKED,       /* it was dead, and waits again */
    DUE_EVENT_REPEATED      /* it was acked, or taken for good, and waits for its next round */
};

/* A step in the life of a job.
 *
 *   Order     The events of one job come one after the other, in the order of its life.  Those of
 *             different jobs come at the same time, from different threads.
 *   By whom   The thread that made the step; or, if the job goes on before that one has told of it,
 *             the thread with which it goes on.  No lock is held but the one by which who tells of
 *             a job waits for who tells of the same job.
 *   When      Before the call returns; so a hook that sleeps makes calls late, and the library's
 *             own threads.  DELIVERED comes before the receiver has the job.
 *   Store     A change that waits for the store is told when it has landed.  PRODUCED is missing if
 *             a job was cancelled before it was stored, or refused after DUE_CONFIRM_ASYNC.
 *   Not       From the hook no call of this queue, nor a turn of its manual clock; and no lock that
 *             is ever held in such a call.  Other queues may be opened, used and freed. */
typedef struct due_event {
    enum due_event_kind kind;
    due_id id;
    int topic;            /* */
    int priority;         /* */
    int64_t at_ns;        /* the queue's clock when it is told */
    int64_t deadline_ns;  /* the job's own */
    uint32_t attempts;    /* DELIVERED: this one included */
    uint32_t failures;    /* */
    enum due_cause cause; /* DEAD: why; else 0 */
    int leased;           /* DELIVERED: 1: on a lease; 0: for good */
    uint32_t reserved[4]; /* */
} due_event;

/**
 * The name of a kind of event: "produced", "ready" and so on; of anything else, "unknown".
 *
 * Threads:  any
 * Errors:   none
 */
DUE_API const char *due_event_name(enum due_event_kind kind);

#ifdef __cplusplus
}
#endif

#endif
