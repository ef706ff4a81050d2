/* session.h - the Redis store's object, and one exchange with its server.
 *
 * Guards     I  set at open, then constant      C  only the call under way, one at a time
 *            S  the lock of the counters
 *
 * docs/redis-layout.md says what the keys hold.
 */
#ifndef DUE__REDIS_SESSION_H
#define DUE__REDIS_SESSION_H

#include <hiredis.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"
#include "base/time.h"
#include "due/redis.h"
#include "record/scratch.h"
#include "redis/link/link.h"
#include "redis/resp/reply.h"

#define DUE__REDIS_FORMAT   1
#define DUE__REDIS_SHARED   3  /* highest format of a queue that is shared, or becoming so */
#define DUE__REDIS_WRITERS  16 /* numbers of so many openings are kept */
#define DUE__REDIS_KEY      384
#define DUE__REDIS_FENCE    48
#define DUE__REDIS_OWNER    512
#define DUE__REDIS_KEPT     16                  /* replies of one flight that are kept */
#define DUE__REDIS_BULK     ((size_t)512 << 20) /* most bytes of one argument, if not set lower */
#define DUE__REDIS_BESIDE   2048 /* of those, kept for what stands before a payload */
#define DUE__REDIS_PROBE_NS DUE_S(30)

/* A field of the `a` hash that is no job's, and its value: longer than the 64 bytes up to which a
 * server keeps a small hash as one string. */
#define DUE__REDIS_TABLE "table"
#define DUE__REDIS_TABLE_TEXT \
    "a value that is too long for the compact form of a hash makes it a table"

/* What is in the air: sent, and not all of its answers read. */
enum due__flight_kind {
    DUE__FLIGHT_NONE = 0,
    DUE__FLIGHT_PROBE,      /* what the server is */
    DUE__FLIGHT_SURVEY,     /* who owns the queue, watching the fence only */
    DUE__FLIGHT_SURVEY_ALL, /* the same, watching all that a claim rests on */
    DUE__FLIGHT_CLAIM,
    DUE__FLIGHT_BATCH,
    DUE__FLIGHT_RENEW,
    DUE__FLIGHT_FIND,
    DUE__FLIGHT_FIND_KEY, /* the same of a job with a key, and whose that is */
    DUE__FLIGHT_TOPICS,
    DUE__FLIGHT_IDS,
    DUE__FLIGHT_PAGE,
    DUE__FLIGHT_WHOSE, /* whose the page's keys are */
    DUE__FLIGHT_COUNT,
    DUE__FLIGHT_ASIDE,
    DUE__FLIGHT_SCAN, /* all records */
    DUE__FLIGHT_SURE,
    DUE__FLIGHT_SWEEP,       /* how many records there are, or a page of them */
    DUE__FLIGHT_SWEEP_COUNT, /* and members of topics */
    DUE__FLIGHT_SWEEP_LOOK,  /* where the records of the page stand */
    DUE__FLIGHT_KEPT,        /* keys that are kept, */
    DUE__FLIGHT_OF,          /* and whose they were */
    DUE__FLIGHT_SETTINGS,    /* what holds back topics */
    DUE__FLIGHT_CONVERT, /* a queue that was shared becomes one that is owned, or the other way */
    DUE__FLIGHT_CLOSE
};

/* Whose a queue is, as `mode` in its meta says. */
enum due__redis_mode {
    DUE__MODE_OWNER,   /* one process's at a time */
    DUE__MODE_SHARED,  /* many processes' */
    DUE__MODE_OWNING,  /* it was shared, and somebody began to make it one that is owned */
    DUE__MODE_SHARING, /* the other way round */
    DUE__MODE_UNKNOWN
};

struct due__redis;

struct due__flight {
    enum due__flight_kind kind;  /* */
    size_t statuses;             /* answers to come that only have to be no error: MULTI, QUEUED */
    size_t expected;             /* answers after them, to be kept */
    size_t got;                  /* of those */
    size_t refused;              /* statuses that were errors, or none */
    size_t queued;               /* commands of its transaction; 0: it has none */
    enum due__reply_class worst; /* what kind of */
    uint64_t tag;                /* of what was asked */
    bool script;                 /* a batch as a script: no MULTI */
    int64_t sent_ns;             /* boottime, before it was sent */
    /* What the asker does once it has landed, if somebody else needs the air; or NULL. */
    void (*over)(struct due__redis *s);
    redisReply *kept[DUE__REDIS_KEPT];
};

struct due__redis_keys {
    char meta[DUE__REDIS_KEY];
    char fence[DUE__REDIS_KEY];
    char owner[DUE__REDIS_KEY];
    char writers[DUE__REDIS_KEY];
    char jobs[DUE__REDIS_KEY];
    char again[DUE__REDIS_KEY]; /* the `a` hash */
    char topics[DUE__REDIS_KEY];
    char aside[DUE__REDIS_KEY]; /* the `q` hash */
    char dead[DUE__REDIS_KEY];
    char unique[DUE__REDIS_KEY]; /* the `k` hash */
    char kept[DUE__REDIS_KEY];   /* the `kx` zset */
    char topic[DUE__REDIS_KEY];  /* the beginning of the zsets' names */
    size_t topic_len;
};

struct due__redis_topic;
struct due__redis_load;
struct due__redis_kept;
struct due__share;

struct due__redis_topics {
    struct due__redis_topic **bucket;
    size_t buckets, count;
};

struct due__redis {
    due_store base;                  /* I */
    struct due__link *link;          /* I: its calls C, but the interrupt */
    struct due_redis_options set;    /* I: with the defaults filled in */
    char prefix[33];                 /* I */
    char where[128];                 /* I: the server, for people */
    char name[65];                   /* I */
    struct due_store_open how;       /* I: but name and until_ns */
    struct due__redis_keys keys;     /* I */
    char owner[DUE__REDIS_OWNER];    /* I: what the owner key says of us */
    char awaited[DUE__REDIS_OWNER];  /* C: the owner that was said to be waited for */
    bool awaits_server;              /* C: the same was said of the server */
    char nonce[17];                  /* I */
    char fence[DUE__REDIS_FENCE];    /* I: writer:nonce */
    uint64_t writer;                 /* I */
    char incarnation[40];            /* C */
    char server[48];                 /* C: this start of the server; empty: it does not tell */
    bool unsure;                     /* C: see torn_log.c */
    bool late;                       /* C: likewise: with the server's next start */
    bool read_once;                  /* C: all that is stored was shown since we opened it */
    size_t statuses;                 /* C: of the batch being formatted: answers before EXEC's */
    bool open;                       /* C: we became the owner */
    enum due__redis_mode mode;       /* C: as the last takeover found it */
    bool joining;                    /* C: who takes over is to share it in the end */
    bool met_sharers;                /* C: the last takeover met processes that share it */
    bool closed;                     /* C */
    bool fenced;                     /* C: for good */
    bool armed;                      /* C: the fence is watched and was seen to be ours */
    bool lost;                       /* C: to be said by ready(), renew() or load() */
    bool rewrite;                    /* C: the number on the server is not what landed */
    bool retaking;                   /* C: what is left is being taken over */
    bool probe_due;                  /* C */
    bool below;                      /* C: less durable than required */
    enum due_durability durability;  /* C */
    int64_t probed_ns;               /* C: boottime */
    int64_t held_ns;                 /* C: boottime */
    int64_t checked_ns;              /* C: boottime, of the last look at the fence */
    int64_t rival_ns;                /* C: boottime until which an older owner's lease may run */
    uint64_t landed;                 /* C: number of the last batch that did */
    uint64_t counted;                /* C: of the last that the load has taken into account */
    uint64_t told;                   /* C: of the last that the queue was told has landed */
    uint64_t doubt;                  /* C: number of the batch in doubt, or 0 */
    uint64_t unconfirmed;            /* C: landed, but too few replicas have it */
    uint64_t sent;                   /* C: the last that was ever sent */
    int verdict;                     /* C: on the last batch that came to its end */
    bool unsent;                     /* C: of the flight that failed to start, nothing had left */
    uint64_t stamp;                  /* C: of the batch being formatted */
    unsigned cut_short;              /* C: loads in a row that an interrupt has ended */
    bool has_entries;                /* C: the `a` hash may hold something */
    bool has_dead;                   /* C: the `dead` zset may */
    bool lossy;                      /* C: something was lost: what is stored may be other */
    uint64_t sequence_high;          /* C: highest of our own writer that was put */
    uint64_t sequence_old[2];        /* C: before the last even batch, and the last odd one */
    uint64_t formatted[2];           /* C: numbers of these */
    uint64_t prepared;               /* C: number of the batch that lies in the link, or 0 */
    size_t prepared_bytes;           /* C: how long it is there */
    int64_t batch_ns;                /* C: monotonic, when the last batch was sent */
    int64_t server_ns;               /* C: its clock less ours, when it was taken over */
    uint64_t jobs;                   /* C: as the last probe found it */
    size_t payload_max;              /* C: likewise */
    struct due__flight air;          /* C */
    struct due__redis_topics topics; /* C */
    struct due__redis_topic *first;  /* C: the topics of the batch formatted last */
    size_t *order;                   /* C: per change, the next of its topic and kind, + 1 */
    size_t order_room;               /* C */
    struct due__scratch scratch;     /* C: a record being written */
    struct due__redis_load *load;    /* I: what it points to C */
    uint64_t writes;                 /* C: rises when what is stored may have changed */
    uint64_t losses;                 /* C: how often the server has lost data */
    uint64_t pass;                   /* C: of the load, from its beginning to its end */
    bool newer_told;                 /* C: that there are records of a newer version */
    bool unreadable_told;            /* C: that a key cannot be read */
    struct due__redis_kept *kept;    /* I: likewise */
    struct due__share *share;        /* I: likewise */
    struct due__redis_topic *dead;   /* C: the dead, as if they were a topic; or NULL yet */
    char trouble[192];               /* C: the text for the error of open */
    char hint[192];                  /* C */
    char denied[DUE__REPLY_COMMAND]; /* C: the command that was refused last; empty: a key */
    bool unknown;                    /* C: since the server does not know it */
    bool away;                       /* C: it was told that the store cannot be used */
    pthread_mutex_t lock;            /* I */
    struct due_store_stats shown;    /* S */

    struct due__redis_topic *enter[2]; /* C: that the last even batch enters; the last odd one */
};

/* ---- session.c */
void due__redis_count(struct due__redis *s, uint64_t batches, uint64_t resent, uint64_t aside);
/* A verb ends with @rc, which it answers: what stats() shows is copied then, as the rest belongs to
 * the call under way. */
int due__redis_show(struct due__redis *s, int rc);

/* ---- trouble.c */
/* Remember what went wrong, for the error of open(). */
void due__redis_say(struct due__redis *s, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The class of a reply; what is denied is remembered, to be told. */
enum due__reply_class due__redis_classify(struct due__redis *s, const redisReply *reply);
/* What an error reply is to the caller.  Never 0 for an error. */
int due__redis_error(struct due__redis *s, enum due__reply_class class);
/* Say why the server was not to be had in time.  DUE_ESTORE. */
int due__redis_unreached(struct due__redis *s);
/* A key that holds jobs cannot be read: said once, until all can. */
void due__redis_unreadable(struct due__redis *s, const char *key, int rc);
/* A call has ended with @rc. */
void due__redis_tell(struct due__redis *s, int rc);

/* ---- exchange.c */
/* Clear the air for a flight of @kind and @tag.  1: it is under way already; 0: format it now, then
 * due__flight_start(); or an error.  What was prepared is forgotten then. */
int due__flight_ready(struct due__redis *s, enum due__flight_kind kind, uint64_t tag,
                      int64_t until_ns);
/* Send what was formatted.  0; DUE_ESTORE: the link is down (s->unsent: and nothing was sent);
 * DUE_ENOMEM. */
int due__flight_start(struct due__redis *s, enum due__flight_kind kind, uint64_t tag,
                      size_t statuses, size_t expected, int64_t until_ns);
/* Read its answers.  0: all are there, until due__flight_end(); DUE_EAGAIN: still under way;
 * DUE_ESTORE: the link is down and the flight is over. */
int due__flight_land(struct due__redis *s, int64_t until_ns);
void due__flight_end(struct due__redis *s);
/* Take a kept answer out of the flight. */
redisReply *due__flight_take(struct due__redis *s, size_t at);
/* The link is of no use any more. */
void due__flight_crash(struct due__redis *s);
/* The class of the worst answer of the flight, kept ones included. */
enum due__reply_class due__flight_worst(struct due__redis *s);
/* No EXEC answers this to the transaction of the flight: what was done is not known, nor what the
 * answers of the link are worth. */
bool due__flight_is_odd(const struct due__redis *s, const redisReply *exec);
/* One flight, formatted if @ready is 0.  0: its answers are there; or an error. */
int due__redis_fly(struct due__redis *s, enum due__flight_kind kind, uint64_t tag, size_t expected,
                   int ready, int64_t until_ns);
/* What the answer of a flight was, if it was none of those expected.  If it was no error either,
 * the link is of no use any more. */
int due__redis_mistaken(struct due__redis *s);

/* ---- guard.c */
/* The beginning of a command: its name and the key; @arguments more follow. */
void due__redis_word(struct due__redis *s, const char *key, size_t arguments, const char *name);
void due__redis_bare(struct due__redis *s, const char *name);
/* The commands that stand behind each EXEC, and their two answers from @at on: the guard of what is
 * sent next. */
void due__redis_guard(struct due__redis *s);
void due__redis_guarded(struct due__redis *s, size_t at);
/* A transaction, of which MULTI and @queued commands were formatted if @ready is 0: EXEC and the
 * guard of what comes next behind it, sent, and its answers read.  0: EXEC's is the first that is
 * kept; or an error. */
int due__redis_transact(struct due__redis *s, enum due__flight_kind kind, size_t queued, int ready,
                        int64_t until_ns);
bool due__redis_is_our_fence(const struct due__redis *s, const redisReply *r);

#endif
