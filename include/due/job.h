/* job.h - jobs: their names, what is put in, what is handed out, and what can be known of one.
 */
#ifndef DUE_JOB_H
#define DUE_JOB_H

#include "due/base.h"

#ifdef __cplusplus
extern "C" {
#endif

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
    uint32_t reserved[3];  /* */
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

/* What else a due_spec says. */
enum due_spec_flag {
    DUE_SPEC_AT = 1 /* its time is at_ns, also if that is 0: long ago */
};

/* What only some jobs have.  Zero means default. */
typedef struct due_extra {
    size_t size;                /* DUE_EXTRA_INIT */
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
} due_extra;

#define DUE_EXTRA_INIT .size = sizeof(due_extra)

/* A job to be enqueued.  Zero means default. */
typedef struct due_spec {
    size_t size;           /* DUE_SPEC_INIT; all of a batch have the same */
    int64_t delay_ns;      /* from now, or */
    int64_t at_ns;         /* on the queue's clock; not both; 0 counts with DUE_SPEC_AT */
    const void *data;      /* bytes, copied, or */
    size_t len;            /* */
    void *ptr;             /* a pointer, carried; not both */
    int topic;             /* from due_topic(); 0 is the default topic "" */
    int priority;          /* 0 to 255, higher first */
    unsigned flags;        /* DUE_SPEC_* */
    const due_extra *more; /* read during the call, several jobs may share one; NULL: nothing */
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
    uint32_t attempts;   /* times it was handed out on a lease, this one included; a snooze
                            takes one back */
    uint32_t failures;   /* times it was given back: by due_nack(), or because a lease ended */
    uint64_t token;      /* of the lease; 0: not reserved */
    const void *headers; /* lent as data is; NULL if there are none */
    size_t headers_len;  /* */
    void *pool;          /* the library's: of whose handler it is (due/workers.h) */
    uint64_t round;      /* the library's: lent by a job that comes again */
    uint64_t place;      /* the library's: where the job is */
    uint64_t reserved[2]; /* */
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

#ifdef __cplusplus
}
#endif

#endif
