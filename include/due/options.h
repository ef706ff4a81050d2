/* options.h - how a queue is opened.
 */
#ifndef DUE_OPTIONS_H
#define DUE_OPTIONS_H

#include "due/job.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Memory for everything a queue holds.  Both hooks may be called from any thread: never under the
 * timeline's lock, but perhaps under a smaller one of that queue.  So they must not call a queue of
 * theirs, nor be a point of thread cancellation.  Memory is aligned as malloc() does it, to 8 bytes
 * at least.  @size of free is that of the allocation. */
typedef struct due_allocator {
    void *(*alloc)(void *ctx, size_t size);
    void (*free)(void *ctx, void *memory, size_t size);
    void *ctx;
} due_allocator;

enum due_proxies {
    DUE_PROXIES_ADAPTIVE = 0, /* threads that step in where a caller would have to wait */
    DUE_PROXIES_ALWAYS,       /* every operation goes through its proxy: for tests */
    DUE_PROXIES_NEVER         /* no threads: the callers do everything */
};

enum due_order { DUE_ORDER_DEADLINE = 0, DUE_ORDER_PRIORITY };

enum due_log_level { DUE_LOG_INFO = 0, DUE_LOG_WARNING, DUE_LOG_ERROR };

struct due_store; /* due/store.h */
struct due_event; /* due/metrics.h */

enum due_confirm {
    DUE_CONFIRM_SYNC = 0, /* what changes something returns when the store has confirmed it */
    DUE_CONFIRM_ASYNC     /* it returns at once; see due_flush() and on_settled */
};

enum due_share {
    DUE_OWNED = 0, /* one process has the jobs of a store, and reads them when it opens */
    DUE_SHARED     /* any number of processes: each takes what is due, and the store has the rest */
};

/* How to open a queue.  Zero means default. */
typedef struct due_options {
    size_t size;                    /* DUE_OPTIONS_INIT */
    const char *name;               /* 1 to 64 of [A-Za-z0-9._-]; default "queue" */
    size_t capacity;                /* most jobs delayed, ready, reserved; 0: DUE_JOBS_MAX, or of a
                                       shared queue what it is for the others */
    size_t reserve;                 /* jobs whose memory is touched now rather than later */
    enum due_clock_kind clock;      /* */
    due_clock *manual;              /* instead of clock */
    enum due_proxies proxies;       /* */
    enum due_order order;           /* of due jobs, in every topic; a shared queue's is what it was
                                       made with: DUE_ORDER_DEADLINE is either, DUE_ORDER_PRIORITY
                                       answers DUE_EINVAL if it is the other, unless nobody
                                       shares the queue and it is empty */
    int64_t spin_ns;                /* wake this much early and spin: less late, more CPU;
                                       on the monotonic clock; due_dequeue() gains most */
    const due_allocator *allocator; /* copied; default malloc, free and the kernel's pages */
    void (*on_log)(void *ctx, enum due_log_level level, const char *text);
    void (*on_thread_start)(void *ctx, const char *name); /* in each thread of the library */
    void (*on_discard)(void *ctx, const due_job *job);    /* its bytes are lent for the call; its
                                                             pointer is the hook's */
    void *ctx;                                            /* of all hooks that have none here: */
    void *log_ctx;                                        /* */
    void *thread_ctx;                                     /* */
    void *discard_ctx;                                    /* */
    void *event_ctx;                                      /* */
    void *settled_ctx;                                    /* */
    void *restore_ctx;                                    /* */

    /* See due/metrics.h. */
    int metrics; /* 1: jobs are counted by topic, and timed */
    void (*on_event)(void *ctx, const struct due_event *event); /* told each step of each job */

    /* Reserved jobs: for how long, what becomes of those that are not acked, and of dead ones. */
    int64_t lease_ns;     /* of due_reserve(), and of pools that say no other; default 30 s */
    due_retry retry;      /* of topics and jobs that have none of their own */
    int64_t dead_keep_ns; /* dead jobs are discarded so long after their death; 0: never */
    size_t dead_max;      /* and the oldest of more than so many; 0: no limit */
    int attempts_lazy;    /* with a store, 1: attempts are written when they have failed; 0: also
                              before the hand-over, where their number is limited */

    /* A queue with a store; see due/store.h and due/redis.h.  Its clock is the wall clock (or a
       manual one), and it has its proxies. */
    struct due_store *store;  /* the queue's from a due_open() that succeeds until due_free() */
    enum due_confirm confirm; /* */
    int64_t store_timeout_ns; /* how long a call waits for the store; default 5 s */
    int64_t open_timeout_ns;  /* how long due_open() waits for store and last owner; 15 s */
    size_t unsettled_max;     /* changes on their way to the store, above which every enqueue waits,
                                 whatever @confirm says, and then DUE_ETIMEDOUT; default 100,000 */
    size_t unsettled_bytes_max; /* the same of bytes; updates wait too; default 256 MiB */
    void (*on_settled)(void *ctx, due_id id, int rc); /* a change nobody waits for has come to its
                                                         end: 0 or why the store refused it */
    void (*on_restore)(void *ctx, uint64_t restored, int finished); /* while stored jobs come */

    /* One queue, many processes; a store that cannot do that answers DUE_ENOTSUP.  A queue that was
     * opened otherwise before becomes so; while somebody has it so: DUE_EBUSY. */
    enum due_share share; /* */
    size_t prefetch_max;  /* most jobs that one claim takes ahead of those who wait for one; 0: 256;
                             1: none */
} due_options;

#define DUE_OPTIONS_INIT .size = sizeof(due_options)

#ifdef __cplusplus
}
#endif

#endif
