/* due.h - an in-process priority delay queue.
 *
 * A queue holds jobs until their deadline, then hands each to exactly one caller.
 *
 *   Order    Per topic the earliest deadline leaves first; among equals the higher priority, then
 *            the earlier arrival (of one producer).  DUE_BY_PRIORITY: among jobs that are due, the
 *            higher priority first.
 *   Time     int64_t nanoseconds, on the queue's clock.  A job is never handed out before its
 *            deadline.  Times too far ahead saturate at DUE_FOREVER, which never comes.
 *            Timeouts are counted on the monotonic clock, whatever the queue's clock (on a manual
 *            clock: on that clock).  0 does not wait; DUE_FOREVER waits without end.
 *   Errors   A call that can fail returns 0 (or a number) or a negative DUE_E* code, and then has
 *            changed nothing, nor what its arguments point to, but where it says so; only a handle
 *            (*queue, a single *job) is then NULL or zero, so that giving it back does nothing.
 *   Store    With a store, a call that changes something waits for it, for up to its own timeout or
 *            store_timeout_ns in all, and may also answer DUE_ETIMEDOUT, DUE_ENOSPC, DUE_EACCES,
 *            DUE_EDURABILITY, DUE_EFENCED: nothing has changed; or DUE_EINDOUBT, the one exception:
 *            it was sent, the answer did not come, and the queue sees it through.
 *
 * Before you start
 *   1. Not across fork(): in a child every call returns DUE_EFORK, and due_free() only gives the
 *      memory back.
 *   2. A job that was handed out stays the queue's memory until due_job_done(): call it for each.
 *   3. Close before you free: due_free() of an open queue answers DUE_EBUSY.
 *   4. The hooks (log, thread start, discard, event, settled, restore) must not call their queue,
 *      nor turn its manual clock.  Any other queue they may open, use, close and free.
 *
 * Threads: may these two run at the same time on one queue?
 *              enqueue  dequeue  cancel  close  free
 *     enqueue    yes      yes     yes     yes    NO    an enqueue during close gets DUE_ECLOSED
 *     dequeue             yes     yes     yes    NO    a dequeue that waits gets DUE_ECLOSED
 *     cancel                      yes     yes    NO    dequeue or cancel wins, never both
 *     close                               yes    NO
 * "cancel" stands for every call that names a job, a topic or the whole queue.
 */
#ifndef DUE_DUE_H
#define DUE_DUE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define DUE_API          __attribute__((visibility("default")))
#define DUE_MUST_CHECK   __attribute__((warn_unused_result))
#define DUE_NONNULL(...) __attribute__((nonnull(__VA_ARGS__)))
#else
#define DUE_API
#define DUE_MUST_CHECK
#define DUE_NONNULL(...)
#endif

#define DUE_VERSION_MAJOR 0
#define DUE_VERSION_MINOR 1
#define DUE_VERSION_PATCH 0

/* ---- Errors ---------------------------------------------------------------------------------- */

/* Every error of the library: name, value, text.  The values are negative errno values. */
#define DUE_ERRORS(X)                                                              \
    X(EINVAL, -EINVAL, "an argument is not allowed")                               \
    X(ENOMEM, -ENOMEM, "out of memory")                                            \
    X(EAGAIN, -EAGAIN, "nothing there, or no room, and not asked to wait")         \
    X(ETIMEDOUT, -ETIMEDOUT, "the timeout has passed")                             \
    X(ECLOSED, -ESHUTDOWN, "the queue is closed")                                  \
    X(ENOENT, -ENOENT, "no such job: unknown, or finished")                        \
    X(EBUSY, -EBUSY, "the job is being handled, or the queue is in use")           \
    X(EEXIST, -EEXIST, "a job has this key already")                               \
    X(EDEADLK, -EDEADLK, "it would wait for the caller itself")                    \
    X(EFORK, -ECHILD, "the queue belongs to the parent process")                   \
    X(ENOTSUP, -EOPNOTSUPP, "not supported here")                                  \
    X(ELIMIT, -EOVERFLOW, "a fixed limit is reached (jobs, topics, payload size)") \
    X(ESYS, -EIO, "the system refused a thread or a descriptor")                   \
    X(ESTALE, -ESTALE, "the lease has ended: somebody else may have the job")      \
    X(EINDOUBT, -EINPROGRESS, "sent to the store, and no answer in time")          \
    X(EFENCED, -EOWNERDEAD, "another process owns the stored jobs now")            \
    X(ESTORE, -ENOTCONN, "the store cannot be reached")                            \
    X(ENOSPC, -ENOSPC, "the store is full")                                        \
    X(EDURABILITY, -ENOLCK, "the store is less durable than required")             \
    X(EACCES, -EACCES, "the store refuses: user, password or permission")          \
    X(EVERSION, -EPROTO, "stored by a newer version")                              \
    X(ELOST, -ENODATA, "the store has lost what it had confirmed")                 \
    X(ECORRUPT, -EBADMSG, "stored or received bytes make no sense")

enum due_errno {
#define DUE_ERROR_ENUM(name, value, text) DUE_##name = (value),
    DUE_ERRORS(DUE_ERROR_ENUM)
#undef DUE_ERROR_ENUM
};

/**
 * The name ("DUE_EINVAL") and the text ("an argument is not allowed") of a DUE_E* code; of 0,
 * "DUE_OK" and "no error"; of anything else, "DUE_EUNKNOWN" and "unknown error".
 *
 * Threads:  any
 * Errors:   none
 */
DUE_API const char *due_error_name(int code);
DUE_API const char *due_error_text(int code);

/* What due_open() says about a failure, for people: never a secret in it. */
typedef struct due_error {
    char text[192]; /* what happened */
    char hint[192]; /* what to do about it, or empty */
} due_error;

/* ---- Time ------------------------------------------------------------------------------------ */

#define DUE_NS(n)   ((int64_t)(n))
#define DUE_US(n)   ((int64_t)(n)*1000)
#define DUE_MS(n)   ((int64_t)(n)*1000000)
#define DUE_S(n)    ((int64_t)(n)*1000000000)
#define DUE_FOREVER INT64_MAX

enum due_clock_kind {
    DUE_CLOCK_MONOTONIC = 0, /* stands still while the machine is suspended; nobody can set it */
    DUE_CLOCK_BOOTTIME,      /* like it, but goes on during suspend */
    DUE_CLOCK_REALTIME       /* the wall clock, ns since 1970: a step forward fires what it passed,
                                a step back waits on */
};

/* A clock that stands still until it is turned by hand, for tests. */
typedef struct due_clock due_clock;

/**
 * A new manual clock that shows @start_ns (0 or more); NULL without memory or for a negative time.
 *
 * Threads:  any
 * Owner:    the caller, until due_clock_free()
 * Errors:   NULL
 */
DUE_API due_clock *due_clock_manual(int64_t start_ns) DUE_MUST_CHECK;

/**
 * Turn a manual clock forward by @by_ns, or to @to_ns.  In every open queue of this clock, everyone
 * whose time has come, or for whom a job has become due, is woken before the call returns.
 *
 * Threads:  any; not a hook of a queue on it
 * Cost:     as much as becomes due, if anybody waits
 * Errors:   DUE_EINVAL: negative, or back in time.  It stops at DUE_FOREVER - 1.
 */
DUE_API int due_clock_advance(due_clock *clock, int64_t by_ns) DUE_NONNULL(1);
DUE_API int due_clock_turn_to(due_clock *clock, int64_t to_ns) DUE_NONNULL(1);

/**
 * What the clock shows.
 *
 * Threads:  any
 * Errors:   none
 */
DUE_API int64_t due_clock_now(const due_clock *clock) DUE_NONNULL(1);

/**
 * Give the clock back.
 *
 * Threads:  one; no queue of this clock may still be open
 * Errors:   DUE_EBUSY: a queue of this clock has not been freed, or somebody turns it
 */
DUE_API int due_clock_free(due_clock *clock);

/* ---- Jobs ------------------------------------------------------------------------------------ */

typedef struct due_queue due_queue;

/* The name of a job.  Opaque: compare with due_id_equal(), print with due_id_format(). */
typedef struct due_id {
    unsigned char byte[16];
} due_id;

#define DUE_ID_TEXT 33 /* bytes that due_id_format() writes: 32 hexadecimal digits and a NUL */

/**
 * Compare, print and read ids.  An id that was read is as good as the one that was printed: in the
 * same process, and with a store in any that has the queue open, as long as the job is stored.
 *
 * Threads:  any
 * Errors:   due_id_parse: DUE_EINVAL: not 32 hexadecimal digits
 */
DUE_API int due_id_equal(due_id a, due_id b);
DUE_API char *due_id_format(due_id id, char text[DUE_ID_TEXT]) DUE_NONNULL(2);
DUE_API int due_id_parse(const char *text, due_id *id) DUE_NONNULL(1, 2) DUE_MUST_CHECK;

#define DUE_PAYLOAD_MAX  (UINT32_C(1) << 30) /* bytes of one payload */
#define DUE_TOPIC_MAX    65535               /* topics of one queue, the default topic included */
#define DUE_TOPIC_LENGTH 255                 /* bytes of a topic's name */
#define DUE_JOBS_MAX     ((size_t)1 << 28)   /* jobs that one queue can hold */
#define DUE_HEADERS_MAX  256                 /* bytes of the headers of one job */
#define DUE_KEY_MAX      255                 /* bytes of a unique key, and of a group's name */
#define DUE_RUNGS_MAX    16                  /* delays of a ladder */
#define DUE_REASON_BYTES 48                  /* of why a job is dead, the NUL included */

/* When a job that was reserved and not acked is handed out again. */
enum due_retry_kind {
    DUE_RETRY_INHERIT = 0, /* as its topic says, then its queue, then: at once, without end */
    DUE_RETRY_FIXED,       /* delay_ns after each failure */
    DUE_RETRY_EXPONENTIAL, /* at random between 0 and delay_ns, then twice as much after each more,
                              up to cap_ns */
    DUE_RETRY_LADDER       /* the first delay after the first failure, and so on */
};

typedef struct due_retry {
    enum due_retry_kind kind;
    uint32_t attempts_max; /* a job that fails in its last attempt is dead; 0: no limit, but a
                              ladder's end is one */
    int64_t delay_ns;      /* */
    int64_t cap_ns;        /* 0: none */
    uint32_t rungs;        /* of a ladder: 1 to DUE_RUNGS_MAX */
    uint32_t reserved;     /* */
    int64_t rung_ns[DUE_RUNGS_MAX];
} due_retry;

/* What services that notify others use: 15 s 3 m 10 m 30 m 30 m 1 h 2 h 6 h 15 h, then dead. */
#define DUE_RETRY_LADDER_OF_HOURS                          \
    {                                                      \
        .kind = DUE_RETRY_LADDER, .rungs = 9, .rung_ns = { \
            DUE_S(15),                                     \
            DUE_S(180),                                    \
            DUE_S(600),                                    \
            DUE_S(1800),                                   \
            DUE_S(1800),                                   \
            DUE_S(3600),                                   \
            DUE_S(7200),                                   \
            DUE_S(21600),                                  \
            DUE_S(54000)                                   \
        }                                                  \
    }

/* What an enqueue does when a live job (delayed, ready, leased or dead) has its key.  A job that is
 * changed keeps its id, topic and group, with a store its priority too, and the answer is 0 with
 * its id; it begins anew, and if it was dead it waits again.  Of a job that somebody has the key is
 * taken over: the new job is another, and that one goes on without a key, but comes no more if it
 * repeats.  A key that is kept for a job that is done: DUE_EEXIST, whatever the policy. */
enum due_key_policy {
    DUE_KEY_REFUSE = 0, /* DUE_EEXIST, and that job's id */
    DUE_KEY_REPLACE,    /* that job gets the new content and deadline */
    DUE_KEY_EARLIEST,   /* that job stays, with the earlier of the two deadlines */
    DUE_KEY_DEBOUNCE    /* that job gets the new content, and the later of the two deadlines */
};

/* A job that comes again after it was acked, or taken for good, under the same id, until it is
 * cancelled or dead or the queue drains (with a store it stays there then). */
enum due_repeat {
    DUE_REPEAT_SKIP = 0, /* every_ns after its deadline; deadlines that have passed are left out */
    DUE_REPEAT_ONCE,     /* the same, but if any has passed the last of them comes, at once */
    DUE_REPEAT_AFTER     /* every_ns after it was done */
};

/* A job to be enqueued.  Zero means default. */
typedef struct due_spec {
    size_t size;      /* DUE_SPEC_INIT */
    int64_t delay_ns; /* from now, or */
    int64_t at_ns;    /* on the queue's clock; not both */
    const void *data; /* bytes, copied, or */
    size_t len;       /* */
    void *ptr;        /* a pointer, carried; not both */
    int topic;        /* from due_topic(); 0 is the default topic "" */
    int priority;     /* 0 to 255, higher first */

    const void *headers;        /* bytes beside the payload, copied: at most DUE_HEADERS_MAX */
    size_t headers_len;         /* */
    const due_retry *retry;     /* copied; NULL: DUE_RETRY_INHERIT */
    int64_t ttl_ns;             /* so long after its deadline it is dead, unless handed out; or */
    int64_t expires_ns;         /* from then on; not both; 0: never */
    const void *key;            /* copied: at most DUE_KEY_MAX bytes; NULL: none */
    size_t key_len;             /* */
    int64_t keep_key_ns;        /* its key stays taken so long after the job is done */
    enum due_key_policy on_key; /* */
    enum due_repeat repeat;     /* */
    int64_t every_ns;           /* 0: it does not come again */
    const void *group;          /* copied: of a group's jobs, in one topic, one runs at a time; */
    size_t group_len;           /* the next comes when it has ended: at most DUE_KEY_MAX */
} due_spec;

#define DUE_SPEC_INIT .size = sizeof(due_spec)

/* A job that was handed out, filled by the library.  It may be copied; one copy is done with. */
typedef struct due_job {
    due_id id;
    const void *data;    /* lent until due_job_done(); NULL when a pointer is carried or len is 0 */
    size_t len;          /* */
    void *ptr;           /* the pointer carried, now the receiver's */
    int64_t deadline_ns; /* */
    int64_t lateness_ns; /* from the deadline to the hand-over, as the clock was last looked at in
                            the call; never negative */
    int topic;           /* */
    int priority;        /* */
    due_queue *queue;    /* NULL: nothing to be done with */
    uint32_t attempts;   /* times it was handed out by due_reserve(), this one included */
    uint32_t failures;   /* times it was given back: by due_nack(), or because a lease ended */
    uint64_t token;      /* of the lease; 0: not reserved */
    const void *headers; /* lent as data is; NULL if there are none */
    size_t headers_len;  /* */
    void *pool;          /* the library's: of whose handler it is (due/workers.h) */
    uint64_t round;      /* the library's: lent by a job that comes again */
    uint64_t place;      /* the library's: where the job is */
} due_job;

/* What can be said of a job that still waits. */
typedef struct due_info {
    due_id id;
    int64_t deadline_ns;
    size_t len;
    int topic;
    int priority;
    int ready; /* 1: its deadline has passed */
    uint32_t reserved[7];
} due_info;

/* Why a job is dead. */
enum due_cause {
    DUE_CAUSE_BURIED = 1, /* due_bury() */
    DUE_CAUSE_ATTEMPTS,   /* its last attempt failed */
    DUE_CAUSE_EXPIRED     /* its time had passed before it was handed out */
};

/* A dead job. */
typedef struct due_dead {
    due_id id;
    int64_t deadline_ns; /* its own */
    int64_t died_ns;     /* */
    size_t len;          /* */
    int topic;           /* */
    int priority;        /* */
    uint32_t attempts;   /* */
    uint32_t failures;   /* */
    enum due_cause cause;
    char reason[DUE_REASON_BYTES]; /* what due_bury() was told, cut to fit; else empty */
    uint32_t reserved[3];
} due_dead;

/* ---- Opening --------------------------------------------------------------------------------- */

/* Memory for everything a queue holds.  Both hooks may be called from any thread: never under the
 * timeline's lock, but perhaps under a smaller one of that queue.  So they must not call a queue of
 * theirs, nor be a point of thread cancellation.  @size of free is that of the allocation. */
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

enum due_order { DUE_BY_DEADLINE = 0, DUE_BY_PRIORITY };

enum due_log_level { DUE_LOG_INFO = 0, DUE_LOG_WARNING, DUE_LOG_ERROR };

struct due_store; /* due/store.h */
struct due_event; /* due/metrics.h */

enum due_confirm {
    DUE_CONFIRM_SYNC = 0, /* what changes something returns when the store has confirmed it */
    DUE_CONFIRM_ASYNC     /* it returns at once; see due_flush() and on_settled */
};

/* How to open a queue.  Zero means default. */
typedef struct due_options {
    size_t size;                    /* DUE_OPTIONS_INIT */
    const char *name;               /* 1 to 64 of [A-Za-z0-9._-]; default "queue" */
    size_t capacity;                /* most jobs delayed, ready, reserved; 0: DUE_JOBS_MAX */
    size_t reserve;                 /* jobs whose memory is touched now rather than later */
    enum due_clock_kind clock;      /* */
    due_clock *manual;              /* instead of clock */
    enum due_proxies proxies;       /* */
    enum due_order order;           /* of due jobs, in every topic */
    int64_t spin_ns;                /* wake this much early and spin: less late, more CPU;
                                       on the monotonic clock */
    const due_allocator *allocator; /* copied; default malloc, free and the kernel's pages */
    void (*on_log)(void *ctx, enum due_log_level level, const char *text);
    void (*on_thread_start)(void *ctx, const char *name); /* in each thread of the library */
    void (*on_discard)(void *ctx, const due_job *job);    /* its bytes are lent for the call; its
                                                             pointer is the hook's */
    void *ctx;                                            /* of all hooks */

    /* See due/metrics.h. */
    int metrics; /* 1: jobs are counted by topic, and timed */
    void (*on_event)(void *ctx, const struct due_event *event); /* told each step of each job */

    /* What becomes of reserved jobs that are not acked, and of dead ones. */
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
} due_options;

#define DUE_OPTIONS_INIT .size = sizeof(due_options)

/**
 * Open a queue.  @options may be NULL, @error may be NULL.
 *
 * Threads:  any
 * Owner:    the caller, until due_close() and due_free()
 * Cost:     two threads (three with DUE_PROXIES_ALWAYS, none with DUE_PROXIES_NEVER); a descriptor
 *           on the realtime and boottime clocks
 * Errors:   DUE_EINVAL, DUE_ENOMEM, DUE_ESYS (thread or descriptor refused), DUE_ENOTSUP (clock);
 *           with a store those of its open(), see due/store.h: DUE_EBUSY, DUE_ESTORE, DUE_EACCES,
 *           DUE_EVERSION, DUE_EDURABILITY, DUE_ECORRUPT, DUE_ELIMIT, DUE_ENOSPC
 */
DUE_API int due_open(due_queue **queue, const due_options *options, due_error *error)
    DUE_NONNULL(1) DUE_MUST_CHECK;

enum due_close_mode {
    DUE_CLOSE_DRAIN = 0, /* deliver what is held, each job at its deadline, before closing */
    DUE_CLOSE_DISCARD    /* hand everything held to on_discard now; with a store, leave it there */
};

/**
 * Close a queue: enqueues are refused from now on.  DRAIN goes on delivering until no job is left;
 * DISCARD gives every job that still waits to on_discard; with a store what is on its way there is
 * sent first, for up to @timeout_ns, and the jobs stay there.  Then everyone who waits gets
 * DUE_ECLOSED, and after 0 touches the queue no more.  Jobs handed out earlier may still be done
 * with.  May be called again after DUE_ETIMEDOUT, also with another mode; once closed it answers 0.
 *
 * Threads:  any
 * Errors:   DUE_EINVAL, DUE_EFORK, DUE_ETIMEDOUT: jobs left, or callers or handlers have not left
 *           yet; DUE_EDEADLK: in a handler; DUE_ENOMEM: only while another thread closes too
 */
DUE_API int due_close(due_queue *q, enum due_close_mode mode, int64_t timeout_ns)
    DUE_NONNULL(1) DUE_MUST_CHECK;

/**
 * Give back a closed queue.  NULL is allowed.
 *
 * Threads:  one, after every other call has returned, but for those that waited when it was closed
 * Errors:   DUE_EBUSY: not closed, one who waited or another due_close() still inside, a lent job
 *           not yet done with, or a pool of workers not yet freed.
 *           In a child after fork: 0, and the child's copy of the memory is given back.
 */
DUE_API int due_free(due_queue *q);

/**
 * The number of the topic called @name (at most DUE_TOPIC_LENGTH bytes), made if it is new; "" is
 * topic 0.  due_topic_name: its name, valid until due_free(), or NULL for a number never given.
 *
 * Threads:  any
 * Errors:   DUE_EINVAL, DUE_ENOMEM, DUE_ELIMIT (DUE_TOPIC_MAX), DUE_ECLOSED, DUE_EFORK
 */
DUE_API int due_topic(due_queue *q, const char *name) DUE_NONNULL(1, 2) DUE_MUST_CHECK;
DUE_API const char *due_topic_name(due_queue *q, int topic) DUE_NONNULL(1);

/**
 * What the queue's clock shows; in a child after fork DUE_EFORK.
 *
 * Threads:  any
 * Errors:   DUE_EFORK
 */
DUE_API int64_t due_now(const due_queue *q) DUE_NONNULL(1);

/* ---- Putting in ------------------------------------------------------------------------------ */

/**
 * Give @q the job described by @spec; without a time in that it is due at a moment of this call.
 * @id may be NULL.  @timeout_ns is how long to wait for room in a queue with a capacity.
 *
 * Threads:  any; waits for a consumer only if the queue is full; with a group or a key it takes a
 *           lock for a moment
 * Owner:    spec->data is copied; spec->ptr is the queue's on success, the caller's on any error;
 *           one that is replaced, because of its key, is shown to on_discard
 * Sees:     what was written before the enqueue, the dequeuer sees after the dequeue
 * Cost:     O(1); at most one allocation if there are more than 32 bytes
 * Errors:   DUE_EINVAL, DUE_ENOMEM, DUE_ELIMIT, DUE_EAGAIN (full, timeout 0), DUE_ETIMEDOUT (full
 *           for all of @timeout_ns), DUE_EEXIST (its key is taken; @id has that job's),
 *           DUE_ECLOSED, DUE_EFORK; with a store as said above (DUE_EINDOUBT: @id has the job's)
 */
DUE_API int due_enqueue(due_queue *q, const due_spec *spec, int64_t timeout_ns, due_id *id)
    DUE_NONNULL(1, 2) DUE_MUST_CHECK;

/**
 * Give @n jobs at once.  @ids may be NULL, or has room for @n.  Waits for room as above; jobs are
 * taken in order, and the call answers how many were (1 to @n), or an error if none was.  One whose
 * key is taken ends it; its place in @ids then has the id of who has the key.  With a store so do
 * jobs in doubt (DUE_EINDOUBT), of which each has its id in @ids, behind those of the jobs taken.
 *
 * Threads:  any
 * Owner:    as due_enqueue(), for the jobs taken
 * Cost:     less than @n single calls
 * Errors:   as due_enqueue(); DUE_EINVAL (any of @specs, or @n is 0)
 */
DUE_API int due_enqueue_batch(due_queue *q, const due_spec *specs, size_t n, int64_t timeout_ns,
                              due_id *ids) DUE_NONNULL(1, 2) DUE_MUST_CHECK;

/* ---- Taking out ------------------------------------------------------------------------------ */

/**
 * Take a due job for good (at most once: a crash now loses it).  Topics with something due take
 * turns.  due_dequeue_from: only of these topics.
 *
 * Threads:  any
 * Owner:    the job's bytes are lent until due_job_done(); a carried pointer is the caller's
 * Errors:   DUE_EAGAIN (timeout 0), DUE_ETIMEDOUT, DUE_ECLOSED, DUE_EINVAL, DUE_ENOMEM (to wait
 *           takes a waiter's place), DUE_EFORK; with a store also DUE_ESTORE (a job is due, but the
 *           store is away), DUE_EFENCED, what it refused, for DUE_ETIMEDOUT why it cannot be read,
 *           and DUE_EINDOUBT (job->id is leaving it).  Timeout 0 waits for none: DUE_EAGAIN
 */
DUE_API int due_dequeue(due_queue *q, due_job *job, int64_t timeout_ns)
    DUE_NONNULL(1, 2) DUE_MUST_CHECK;
DUE_API int due_dequeue_from(due_queue *q, const int *topics, size_t n, due_job *job,
                             int64_t timeout_ns) DUE_NONNULL(1, 2, 4) DUE_MUST_CHECK;

/**
 * Take up to @max jobs at once, those due now; waits only for the first.  The answer is how many (1
 * to @max); with a store the ids behind them, up to one of zero, are in doubt.  @topics NULL: any.
 *
 * Threads:  any
 * Owner:    as due_dequeue(), for each
 * Errors:   as due_dequeue()
 */
DUE_API int due_dequeue_batch(due_queue *q, const int *topics, size_t n, due_job *jobs, size_t max,
                              int64_t timeout_ns) DUE_NONNULL(1, 4) DUE_MUST_CHECK;

/**
 * Say that a job which was handed out is done with: its bytes go back to the queue, and @job is
 * zeroed.  On a zeroed job it does nothing.  Call it once for each job, on any one copy of it.
 *
 * Threads:  any
 * Errors:   none
 */
DUE_API void due_job_done(due_job *job) DUE_NONNULL(1);

/* ---- Taking out for a while ------------------------------------------------------------------ */

/**
 * Take a due job on a lease of @lease_ns (1 or more): it leaves the queue with due_ack().  If the
 * lease ends before that, or due_nack() gives it back, it is handed out again, to anybody; what the
 * first holder then says is answered with DUE_ESTALE and changes nothing.  With a store this is at
 * least once: the stored job stays until the ack.
 *
 * Threads:  any
 * Owner:    the job's bytes are lent until due_ack(), due_nack() or due_job_done()
 * Errors:   as due_dequeue(); DUE_EINVAL: no lease
 */
DUE_API int due_reserve(due_queue *q, due_job *job, int64_t lease_ns, int64_t timeout_ns)
    DUE_NONNULL(1, 2) DUE_MUST_CHECK;
DUE_API int due_reserve_from(due_queue *q, const int *topics, size_t n, due_job *job,
                             int64_t lease_ns, int64_t timeout_ns)
    DUE_NONNULL(1, 2, 4) DUE_MUST_CHECK;

/**
 * As due_dequeue_batch(), each on a lease of @lease_ns.
 *
 * Threads:  any
 * Owner:    as due_reserve(), for each
 * Errors:   as due_reserve()
 */
DUE_API int due_reserve_batch(due_queue *q, const int *topics, size_t n, due_job *jobs, size_t max,
                              int64_t lease_ns, int64_t timeout_ns)
    DUE_NONNULL(1, 4) DUE_MUST_CHECK;

/**
 * The reserved job is done: it leaves the queue.  Its bytes go back and @job is zeroed, also with
 * DUE_ESTALE and DUE_EINDOUBT; with any other error nothing has changed.  On a zeroed job it
 * answers DUE_EINVAL.  due_job_done() of a reserved job lets go of it without an answer.
 *
 * Threads:  any
 * Errors:   DUE_ESTALE (the lease has ended), DUE_EINVAL (not reserved), DUE_EFORK; with a store
 *           also DUE_EINDOUBT, DUE_ETIMEDOUT, DUE_EFENCED, and what the store refused it with
 */
DUE_API int due_ack(due_job *job) DUE_NONNULL(1);

/**
 * Acks @n jobs, as due_ack() each; with a store those of one queue that stand together are one
 * change.  @results, unless NULL, gets each one's answer.  The answer is how many were acked.
 *
 * Threads:  any
 * Errors:   DUE_EINVAL (@n over INT_MAX)
 */
DUE_API int due_ack_batch(due_job *jobs, size_t n, int *results) DUE_NONNULL(1);

#define DUE_BY_POLICY (-1)

/**
 * Give the reserved job back, to be handed out again no earlier than in @delay_ns (0: at once;
 * DUE_BY_POLICY: as its retry policy says).  If it was its last attempt, it is dead.
 *
 * Threads:  any; waits for the timeline's lock
 * Errors:   as due_ack(); DUE_ENOMEM: it should be dead, and nothing has changed
 */
DUE_API int due_nack(due_job *job, int64_t delay_ns) DUE_NONNULL(1);

/**
 * The reserved job is dead, for the @reason given (NULL: none): kept, not handed out until kicked.
 *
 * Threads:  any; waits for the timeline's lock
 * Errors:   as due_ack(); DUE_ENOMEM: nothing has changed
 */
DUE_API int due_bury(due_job *job, const char *reason) DUE_NONNULL(1);

/**
 * The lease now ends @lease_ns from now.  @job stays as it is, whatever the answer.
 *
 * Threads:  any; waits for the timeline's lock
 * Errors:   DUE_ESTALE, DUE_EINVAL, DUE_EFORK; with a store also DUE_EFENCED, and DUE_ETIMEDOUT (it
 *           is away for so long that somebody else may own the jobs)
 */
DUE_API int due_extend(due_job *job, int64_t lease_ns) DUE_NONNULL(1);

/**
 * How jobs of @topic that have no policy of their own are tried again; it is asked when they fail.
 *
 * Threads:  any
 * Errors:   DUE_EINVAL, DUE_ELIMIT (255 different policies), DUE_EFORK
 */
DUE_API int due_topic_retry(due_queue *q, int topic, const due_retry *retry) DUE_NONNULL(1, 3);

/* ---- Dead jobs ------------------------------------------------------------------------------- */

/**
 * Hand a dead job out again, at once, as if it never had been: no attempts, no failures, and of its
 * time limit only what it was given anew.  due_kick_all: all of @topic (or DUE_ALL_TOPICS), and
 * *@kicked, unless NULL, gets their number, also if a store fails when some are back.
 *
 * Threads:  any; waits for the timeline's lock
 * Errors:   DUE_ENOENT (not dead), DUE_EBUSY (being changed), DUE_EINVAL, DUE_ECLOSED, DUE_EFORK
 */
DUE_API int due_kick(due_queue *q, due_id id) DUE_NONNULL(1);
DUE_API int due_kick_all(due_queue *q, int topic, uint64_t *kicked) DUE_NONNULL(1);

/**
 * List dead jobs, as due_list() those that wait.  due_clear_dead: discard them, as due_clear().
 *
 * Threads:  any
 * Errors:   DUE_EINVAL, DUE_EFORK; with a store as said above
 */
DUE_API int due_list_dead(due_queue *q, uint64_t *cursor, due_dead *dead, size_t max)
    DUE_NONNULL(1, 2, 3) DUE_MUST_CHECK;
DUE_API int due_clear_dead(due_queue *q, int topic, uint64_t *cleared) DUE_NONNULL(1);

/* ---- Naming a job ---------------------------------------------------------------------------- */

/**
 * Take a job back that has not been handed out, or is dead.  The answer is final: after 0 nobody
 * will get it; after DUE_EBUSY somebody has it, and has not yet called due_job_done(); a reserved
 * job is then not handed out again, also if its lease ends or it is given back, and a repeating one
 * does not come again.  With @job the cancelled job is lent to the caller as by a dequeue; without
 * (NULL) its bytes are released and a carried pointer is the caller's.
 *
 * Threads:  any
 * Cost:     O(1); without a lock if nobody has the job
 * Errors:   DUE_EBUSY, DUE_ENOENT (unknown, finished, or of another queue), DUE_ENOMEM (nobody was
 *           told), DUE_EFORK; with a store as said above
 */
DUE_API int due_cancel(due_queue *q, due_id id, due_job *job) DUE_NONNULL(1);

/**
 * Cancel @n jobs, as due_cancel() without taking them back; with a store up to 256 at a time are
 * one change.  @results, unless NULL, gets each answer.  The answer is how many were cancelled.
 *
 * Threads:  any
 * Errors:   DUE_EINVAL (@n over INT_MAX), DUE_EFORK
 */
DUE_API int due_cancel_batch(due_queue *q, const due_id *ids, size_t n, int *results)
    DUE_NONNULL(1, 2);

/**
 * The id of the live job (delayed, ready, reserved or dead) that has the unique key @key of @len
 * bytes; and take it back, as due_cancel() by its id.  A key that is only kept is no job's.
 *
 * Threads:  any; with a store also waits until the stored jobs were read
 * Errors:   as due_cancel(); DUE_ENOENT (no live job has it), DUE_EINVAL (@len)
 */
DUE_API int due_find_key(due_queue *q, const void *key, size_t len, due_id *id)
    DUE_NONNULL(1, 2, 4) DUE_MUST_CHECK;
DUE_API int due_cancel_key(due_queue *q, const void *key, size_t len, due_job *job)
    DUE_NONNULL(1, 2);

/**
 * Give a waiting job another deadline (@at_ns on the queue's clock, 0 or more), or run it now.
 * Its id, topic and priority stay; among equals it stands last.
 *
 * Threads:  any; waits for the timeline's lock
 * Errors:   DUE_EBUSY, DUE_ENOENT, DUE_EINVAL, DUE_ECLOSED (discarded), DUE_ENOMEM, DUE_EFORK
 */
DUE_API int due_reschedule(due_queue *q, due_id id, int64_t at_ns) DUE_NONNULL(1);
DUE_API int due_promote(due_queue *q, due_id id) DUE_NONNULL(1);

/* What due_amend() changes; the fields of due_spec that say how. */
enum due_set {
    DUE_SET_DATA = 1,     /* data, len */
    DUE_SET_HEADERS = 2,  /* headers, headers_len */
    DUE_SET_TIME = 4,     /* delay_ns or at_ns, as due_reschedule() */
    DUE_SET_PRIORITY = 8, /* priority: among equals it stands last; not with a store */
    DUE_SET_RETRY = 16,   /* retry */
    DUE_SET_LIMIT = 32    /* ttl_ns or expires_ns; both 0: none */
};

/**
 * Give a waiting job other content, or change what @what names (DUE_SET_*, one or several) to what
 * @spec says, in one step: who takes or looks sees all of it or nothing.  Its id stays, and its
 * place among equals too unless its time or priority changes (with a store: it stands last until
 * the next opening).  A dead job can be changed but for its time and limit, and then be kicked.
 * A job that carries a pointer keeps it.
 *
 * Threads:  any; waits for the timeline's lock
 * Owner:    what @spec points to is copied
 * Cost:     a copy; headers, a retry policy or a limit copy the payload too, if the job had none
 * Errors:   DUE_EBUSY (somebody has the job, or its bytes still, after a lease that has ended),
 *           DUE_ENOENT, DUE_EINVAL (also: new data or a pointer for a job that carries one),
 *           DUE_ELIMIT, DUE_ENOMEM, DUE_ECLOSED, DUE_ENOTSUP (DUE_SET_PRIORITY, with a store),
 *           DUE_EFORK
 */
DUE_API int due_update(due_queue *q, due_id id, const void *data, size_t len) DUE_NONNULL(1);
DUE_API int due_amend(due_queue *q, due_id id, const due_spec *spec, unsigned what)
    DUE_NONNULL(1, 3);

/**
 * What is known of a waiting job; how long until its deadline (0 or less: it is due).
 *
 * Threads:  any
 * Cost:     O(1), without a lock unless a lease has just ended
 * Errors:   DUE_EBUSY, DUE_ENOENT, DUE_EFORK
 */
DUE_API int due_find(due_queue *q, due_id id, due_info *info) DUE_NONNULL(1, 3) DUE_MUST_CHECK;
DUE_API int due_remaining(due_queue *q, due_id id, int64_t *ns) DUE_NONNULL(1, 3) DUE_MUST_CHECK;

/* ---- The whole queue ------------------------------------------------------------------------- */

/**
 * What would be handed out next of what is due, in topics that are not paused; if nothing is, the
 * next job to become due, of any topic.
 *
 * Threads:  any; waits for the timeline's lock
 * Cost:     O(1); if nothing is due, and a lease ends before the next job is, a look at every job
 * Errors:   DUE_EAGAIN (nothing held), DUE_EFORK
 */
DUE_API int due_peek(due_queue *q, due_info *info) DUE_NONNULL(1, 2) DUE_MUST_CHECK;

/**
 * List waiting jobs, in no order.  *@cursor starts at 0 and is moved; the answer is how many were
 * written (0: the end).  A job that waits during the whole listing is listed exactly once; jobs
 * that come or go meanwhile may or may not be.
 *
 * Threads:  any; without a lock but for leases that just ended: a store is told of what dies then
 * Errors:   DUE_EINVAL, DUE_EFORK
 */
DUE_API int due_list(due_queue *q, uint64_t *cursor, due_info *infos, size_t max)
    DUE_NONNULL(1, 2, 3) DUE_MUST_CHECK;

#define DUE_ALL_TOPICS (-1)

/**
 * Cancel every waiting job of @topic (or DUE_ALL_TOPICS), each shown to on_discard.  *@cleared,
 * unless NULL, gets their number, also if a store fails when some are gone.  Jobs that come
 * meanwhile may or may not be among them.  With a store all are read first, as for dead ones.
 *
 * Threads:  any; without a lock
 * Errors:   DUE_EINVAL, DUE_EFORK; with a store as said above
 */
DUE_API int due_clear(due_queue *q, int topic, uint64_t *cleared) DUE_NONNULL(1);

/**
 * Stop and resume handing out the jobs of @topic (or DUE_ALL_TOPICS: of those that exist).  Jobs
 * become due meanwhile, and keep their order.  A consumer that is already taking may still get one.
 *
 * Threads:  any; waits for the timeline's lock
 * Errors:   DUE_EINVAL (no such topic), DUE_EFORK
 */
DUE_API int due_pause(due_queue *q, int topic) DUE_NONNULL(1);
DUE_API int due_resume(due_queue *q, int topic) DUE_NONNULL(1);

/**
 * Let at most @max_running jobs of @topic run at a time; 0: any number.  A job runs from when it is
 * let through to be taken until it ends: by due_ack(), due_job_done() of one that was dequeued, a
 * cancel, or its death; so also while it waits to be tried again.  A new deadline ends that too.
 * The others are kept back in their order; one that was let through stands before any that comes
 * later, also of higher priority.  The limit may change at any time: a lower one waits for jobs to
 * end.  Jobs that were handed out before the topic had its first limit do not count.
 *
 * Threads:  any; waits for the timeline's lock
 * Errors:   DUE_EINVAL (no such topic), DUE_ENOMEM, DUE_EFORK
 */
DUE_API int due_topic_limit(due_queue *q, int topic, size_t max_running) DUE_NONNULL(1);

/**
 * Give back the memory of cancelled jobs, and idle pages, now; by itself it happens in pieces.
 *
 * Threads:  any; takes the timeline's lock in pieces
 * Errors:   DUE_EFORK
 */
DUE_API int due_trim(due_queue *q) DUE_NONNULL(1);

/**
 * Wait until everything that was changed before this call has been confirmed by the store, or
 * refused.  Without a store it answers 0; once the jobs are somebody else's, DUE_EFENCED.
 *
 * Threads:  any
 * Errors:   DUE_ETIMEDOUT, DUE_EFENCED, DUE_ECLOSED, DUE_EINVAL, DUE_ENOMEM, DUE_EFORK
 */
DUE_API int due_flush(due_queue *q, int64_t timeout_ns) DUE_NONNULL(1) DUE_MUST_CHECK;

/* What a queue has done and holds.  Jobs are all counted at one moment during the call; one that is
 * just being taken counts as waiting until its taker has it. */
struct due_stats {
    uint64_t enqueued;    /* since open */
    uint64_t dequeued;    /* handed out */
    uint64_t cancelled;   /* by due_cancel and due_cancel_batch */
    uint64_t discarded;   /* by due_clear and due_close */
    uint64_t waiting;     /* now: delayed and ready */
    uint64_t ready;       /* now: moved to their topics, not yet taken */
    uint64_t lent;        /* now: handed out, not yet done with */
    uint64_t direct;      /* enqueues that were sorted in by their caller */
    uint64_t delegated;   /* enqueues that were left for somebody else to sort in */
    uint64_t proxy_calls; /* times the enqueue proxy was called in */
    uint64_t rings;       /* times a sleeping thread was woken */
    uint64_t heartbeats;  /* looks of the worker proxy at everything */
    uint64_t mended;      /* what a heartbeat found undone: each is a bug of the library */
    uint64_t slots; /* 16-byte slots in the timeline and the ready lines, dead ones included */
    uint64_t memory_bytes;    /* address space taken for jobs and slots */
    uint64_t tenure_max_ns;   /* longest hold of the timeline's lock, in processor time; 0 unless
                               built to measure it (DUE_MEASURE_TENURE) */
    uint64_t kept_bytes;      /* memory of payloads that are gone, kept for the next ones */
    uint64_t leased;          /* now: reserved, not yet answered, and the lease has not ended */
    uint64_t restored;        /* jobs read from the store */
    uint64_t unsettled;       /* changes on their way to the store */
    uint64_t settled;         /* changes that the store has confirmed or refused */
    uint64_t batches;         /* in which they were sent */
    uint64_t mirrored;        /* jobs put into the store again because it had lost them */
    uint64_t kept;            /* jobs that due_close() left to the store */
    uint64_t acked;           /* jobs that left by due_ack() */
    uint64_t nacked;          /* times a job was given back by due_nack() */
    uint64_t retried;         /* times a job waits again after a nack, or the end of a lease */
    uint64_t lapsed;          /* leases that ended by themselves */
    uint64_t buried;          /* times a job died */
    uint64_t kicked;          /* times a dead job came back */
    uint64_t dead;            /* now */
    uint64_t passed;          /* now: jobs that a limit or a group has let through, not ended */
    uint64_t kept_back;       /* now: due jobs that one keeps back, cancelled ones perhaps too */
    int32_t loading;          /* 1: stored jobs are still being read */
    int32_t store_state;      /* the last answer of the store: 0, or a DUE_E* code */
    uint64_t repeated;        /* rounds of repeating jobs that are followed by another */
    uint64_t unsettled_bytes; /* of the jobs and updates among those */
    uint64_t reserved[5];
};

/**
 * Fill in @stats.
 *
 * Threads:  any; waits for the timeline's lock
 * Errors:   DUE_EFORK
 */
DUE_API int due_stats(due_queue *q, struct due_stats *stats) DUE_NONNULL(1, 2);

/* ---- Event loops and programs without threads ------------------------------------------------ */

/**
 * A descriptor for poll, epoll or select that is readable when a job may be due.  Level-triggered:
 * take with timeout 0 until DUE_EAGAIN, which makes it unreadable until the next job is due.  It
 * may be readable with nothing to take; it is never unreadable with something to take.
 *
 * Threads:  any
 * Owner:    the queue: closed by due_free()
 * Errors:   DUE_ESYS (no descriptor to be had), DUE_ECLOSED, DUE_EFORK
 */
DUE_API int due_fd(due_queue *q) DUE_NONNULL(1) DUE_MUST_CHECK;

/**
 * Do the proxies' work in the calling thread: sort in what was submitted, move what is due.  The
 * answer is the number of jobs ready to be taken, at most INT_MAX (while a limit or a group keeps
 * others back, cancelled ones may be counted).  *@next_ns, unless NULL, gets due_next_deadline().
 *
 * Threads:  any; needed only with DUE_PROXIES_NEVER, allowed always
 * Errors:   DUE_EFORK
 */
DUE_API int due_poll(due_queue *q, int64_t *next_ns) DUE_NONNULL(1);

/**
 * When the next job is due, on the queue's clock: not later than due_now() if one already is,
 * DUE_FOREVER if none is held.
 *
 * Threads:  any; waits for the timeline's lock
 * Errors:   DUE_EFORK
 */
DUE_API int64_t due_next_deadline(due_queue *q) DUE_NONNULL(1);

#ifdef __cplusplus
}
#endif

#endif
