/* workers.h - threads that take jobs from a queue, hand them to a function, and answer for them.
 *
 *     static void greet(void *ctx, const due_job *job, due_answer *answer)
 *     {
 *         *answer = say(ctx, job->data, job->len) ? due_answer_ack()
 *                                                 : due_answer_nack(DUE_DELAY_POLICY);
 *     }
 *
 *     due_workers *w;
 *     int rc = due_workers_start(&w, q, NULL, 0, 4, greet, out, NULL);
 *
 *   Leases   Each job is reserved (due_reserve).  While its handler runs the lease is extended, up
 *            to extend_max_ns in all.  Then it runs out: the job is handed out again, to anybody,
 *            and what the first handler answers changes nothing.
 *   Stuck    A handler that does not return keeps one thread, and nothing else.  As long as
 *            handlers are fast, a thread reserves a millisecond's worth of jobs at a time.  What a
 *            thread has not begun any other thread of the pool takes; if none does, it goes back
 *            into the queue within a hundredth of a second, and that counts as no attempt.
 *   Stop     due_close(DUE_CLOSE_DRAIN) delivers what is there, due_workers_stop() leaves it there;
 *            both wait for the handlers that run, for up to their timeout.  They may come in any
 *            order and at the same time.
 *
 * Before you start
 *   1. A handler answers through its last argument.  It must not ack, nack, bury or be done with
 *      the job it was given; it may call anything else, on this queue too.
 *   2. From a handler due_close() of its own queue and due_workers_stop() of its own pool would
 *      wait for itself: they answer DUE_EDEADLK.
 *   3. Stop or close, then due_workers_free(), then due_free().
 *   4. The threads block all signals, are called "due:QUEUE:0", "due:QUEUE:1" ..., "due:QUEUE:k",
 *      and call on_thread_start() of the queue.  A handler must not end its thread.
 */
#ifndef DUE_WORKERS_H
#define DUE_WORKERS_H

#include <string.h>

#include "due/due.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What a handler answers ------------------------------------------------------------------ */

enum due_answer_kind {
    DUE_ANSWER_NONE = 0, /* none was given: as DUE_ANSWER_NACK with DUE_DELAY_POLICY, so that
                            nothing is lost */
    DUE_ANSWER_ACK,      /* due_ack() */
    DUE_ANSWER_NACK,     /* due_nack() */
    DUE_ANSWER_SNOOZE,   /* due_snooze() */
    DUE_ANSWER_BURY      /* due_bury() */
};

#define DUE_ANSWER_WHY \
    DUE_REASON_BYTES /* bytes of a reason, its NUL included; longer ones are cut */

/* Made by the functions below, or filled in. */
typedef struct due_answer {
    enum due_answer_kind kind;
    int64_t delay_ns;         /* of _NACK (or DUE_DELAY_POLICY) and _SNOOZE; less is 0 */
    char why[DUE_ANSWER_WHY]; /* of DUE_ANSWER_BURY */
    uint64_t reserved[2];     /* zero */
} due_answer;

/* It is done. */
static inline due_answer due_answer_ack(void)
{
    due_answer answer;

    memset(&answer, 0, sizeof answer);
    answer.kind = DUE_ANSWER_ACK;
    return answer;
}

/* Not this time: again in @delay_ns, or (DUE_DELAY_POLICY) when the retry policy says. */
static inline due_answer due_answer_nack(int64_t delay_ns)
{
    due_answer answer = due_answer_ack();

    answer.kind = DUE_ANSWER_NACK;
    answer.delay_ns = delay_ns;
    return answer;
}

/* Not now: again in @delay_ns, and this attempt does not count. */
static inline due_answer due_answer_snooze(int64_t delay_ns)
{
    due_answer answer = due_answer_nack(delay_ns);

    answer.kind = DUE_ANSWER_SNOOZE;
    return answer;
}

/* Never again, because of @why (NULL: no reason). */
static inline due_answer due_answer_bury(const char *why)
{
    due_answer answer = due_answer_ack();
    size_t n;

    answer.kind = DUE_ANSWER_BURY;
    for (n = 0; why != NULL && why[n] != '\0' && n < DUE_ANSWER_WHY - 1; n++)
        answer.why[n] = why[n];
    return answer;
}

/* Called in a thread of the pool.  The job and its bytes are valid until it returns; *@answer, in
 * which nothing was said yet, is what becomes of the job. */
typedef void due_handler(void *ctx, const due_job *job, due_answer *answer);

/* ---- A pool ---------------------------------------------------------------------------------- */

typedef struct due_workers due_workers;

#define DUE_WORKERS_MAX 256 /* threads of one pool */

/* Zero means default. */
typedef struct due_workers_options {
    size_t size;           /* DUE_WORKERS_INIT */
    int64_t lease_ns;      /* default due_options.lease_ns */
    int64_t extend_max_ns; /* from the hand-over to the end of the last lease; default 10 minutes;
                              not more than lease_ns: never extended; DUE_FOREVER: as long as it
                              runs */
    size_t in_flight_max;  /* most jobs reserved at a time, being handled or not yet begun; at
                              least one for each thread; default 32 for each thread */
    const char *name;      /* in due_metrics_write(), where pools of one name are added up; 1 to 64
                              of [A-Za-z0-9._-]; default "workers" */
} due_workers_options;

#define DUE_WORKERS_INIT .size = sizeof(due_workers_options)

/**
 * Start @threads threads (and one that extends leases) that take jobs of @topics, or of any topic
 * (NULL and 0), and give each to @handler with @ctx.  @options may be NULL.
 *
 * Threads:  any; also a handler
 * Owner:    the caller, until due_workers_free(); @topics is copied
 * Cost:     nothing while there is no job: no thread wakes up
 * Errors:   DUE_EINVAL, DUE_ENOTSUP (an option of a newer version), DUE_ENOMEM, DUE_ESYS (a thread
 *           was refused), DUE_ECLOSED, DUE_EFORK
 */
DUE_API int due_workers_start(due_workers **workers, due_queue *q, const int *topics,
                              size_t topic_count, size_t threads, due_handler *handler, void *ctx,
                              const due_workers_options *options)
    DUE_NONNULL(1, 2, 6) DUE_MUST_CHECK;

/**
 * Take no more jobs, and wait until no handler runs.  What was reserved and not begun is given back
 * at once, and counts as no attempt.  Handlers that run are told by due_job_stopping(); they keep
 * their leases until @timeout_ns has passed.  Then nothing is lost: the leases run out, and the
 * jobs are handed out again.  May be called again; @timeout_ns 0 only asks, and does not give up
 * the leases.
 *
 * Threads:  any; in a handler of this pool only with @timeout_ns 0
 * Errors:   DUE_EAGAIN (asked; not all have stopped, timeout 0), DUE_ETIMEDOUT, DUE_EDEADLK,
 *           DUE_EINVAL, DUE_ENOMEM (nothing has changed), DUE_EFORK
 */
DUE_API int due_workers_stop(due_workers *workers, int64_t timeout_ns)
    DUE_NONNULL(1) DUE_MUST_CHECK;

/**
 * Give back a pool that was stopped, or whose queue is closed.  NULL is allowed.
 *
 * Threads:  one, after every other call on this pool has returned
 * Errors:   DUE_EBUSY: not all of its threads have ended; in a handler of the pool always
 */
DUE_API int due_workers_free(due_workers *workers);

/* What a pool has done and does.  The figures of one thread belong together. */
struct due_workers_stats {
    uint64_t threads;    /* now: that have not ended */
    uint64_t running;    /* now: in a handler, or answering for it */
    uint64_t idle;       /* now: threads that wait for a job */
    uint64_t ahead;      /* now: reserved, not yet begun */
    uint64_t handled;    /* handlers that have returned; each is one of the next five */
    uint64_t acked;      /* */
    uint64_t retried;    /* snoozed ones too */
    uint64_t buried;     /* */
    uint64_t lost;       /* the lease had ended before the answer: it changed nothing */
    uint64_t unanswered; /* the answer was refused, as by a store that is away: the lease runs out;
                            or it is in doubt: the queue sees it through */
    uint64_t extended;   /* times a lease was extended */
    uint64_t given_back; /* jobs that were reserved and not begun */
    uint64_t reserved[8];
};

/**
 * Fill in @stats.
 *
 * Threads:  any
 * Errors:   DUE_EFORK
 */
DUE_API int due_workers_stats_read(due_workers *workers, struct due_workers_stats *stats)
    DUE_NONNULL(1, 2);

/**
 * Should whoever has this reserved job end soon?  1: its lease has ended, or its queue is known to
 * be another's (DUE_EFENCED), so the answer will change nothing; or it was cancelled, so it will
 * not be tried again; or its pool stops; or its queue is closed.  0: go on.
 *
 * Threads:  any, while the job is out; without a lock
 * Errors:   none
 */
DUE_API int due_job_stopping(const due_job *job) DUE_NONNULL(1);

#ifdef __cplusplus
}
#endif

#endif
