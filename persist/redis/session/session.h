/* session.h - the inside of the Redis store, shared by its files.
 *
 * Which folder holds what: persist/README.md.
 *
 * Guards     I  set at open, then constant      C  only the call under way, one at a time
 *            S  the lock of the counters
 *
 * docs/redis-layout.md says what the keys hold.
 */
#ifndef DUE__REDIS_STORE_H
#define DUE__REDIS_STORE_H

#include <hiredis.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "due/redis.h"
#include "record/record.h"
#include "redis/link/link.h"

#define DUE__REDIS_FORMAT   1
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
    DUE__FLIGHT_CLOSE
};

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

/* A topic that was met. */
struct due__redis_topic {
    struct due__redis_topic *next; /* in its bucket */
    struct due__redis_topic *also; /* in the batch */
    uint64_t batch;                /* the batch that `also` and what follows are of */
    size_t adds, drops;            /* changes of it in the batch */
    size_t add, drop;              /* the first, + 1 */
    bool entered;                  /* stands in the `topics` hash */

    struct due__redis_topic *after[2]; /* in the chains of due__redis.enter */

    uint64_t read;  /* the pass of the load that has read it to its end, */
    uint64_t noted; /* and that is to read it besides what is listed */

    size_t key_len;
    size_t name_at; /* of the name, in key */
    char key[];     /* of its zset */
};

struct due__redis_topics {
    struct due__redis_topic **bucket;
    size_t buckets, count;
};

/* Where in a topic: just behind the member of this score and id. */
struct due__redis_cursor {
    bool set;
    int64_t score;
    due_id id;
};

struct due__redis_stray {
    due_id id;
};

/* A member of the page that cannot be shown where it stands. */
struct due__redis_bad {
    size_t at;     /* its position in the page */
    bool nonsense; /* its bytes are whole, and the queue can do nothing with what they say */
};

/* The search for records that stand nowhere, once everything was shown. */
struct due__redis_sweep {
    bool over;          /* nothing is left to be done */
    bool counted;       /* there are more records than members */
    unsigned tries;     /* counts that were begun; then, how often the page was asked for */
    uint64_t stamp;     /* of the last batch before the count */
    redisReply *topics; /* their names */
    size_t at;          /* the next one to count */
    long long records;  /* */
    long long placed;   /* members so far */
    uint64_t link;      /* the connection that the cursor is of */
    char cursor[24];    /* of the scan; empty: it begins */
    size_t found;       /* and set aside, to be told */
};

/* How far the reading back has come. */
struct due__redis_load {
    bool begun;
    bool ended;
    bool stale;                    /* something was committed since the page was asked for */
    bool calm;                     /* nothing was committed during the last call */
    redisReply *topics;            /* their names */
    size_t topic;                  /* which one */
    struct due__redis_topic *line; /* its zset */
    struct due__redis_cursor cursor;
    uint64_t rank;        /* members up to the cursor */
    uint64_t asked;       /* rank of the page of ids that was asked for last */
    size_t page;          /* members asked for */
    redisReply *ids;      /* the page that is being shown, */
    redisReply *jobs;     /* its records, */
    redisReply *entries;  /* their entries, or NULL, */
    redisReply *owners;   /* the ids that the keys of its records lead to; NULL: none names one, */
    bool whose;           /* or they were not asked for yet, */
    size_t owner;         /* the next of them, */
    size_t at;            /* and the next one to show */
    bool last;            /* it is the topic's last page */
    redisReply *next_ids; /* the page after it, its records asked for or not */
    size_t next_asked;    /* how many it could have been */
    size_t seen_bytes, seen_jobs;
    size_t newer;  /* records of a newer version that were passed over */
    size_t passed; /* members behind the cursor that were not shown, up to the rank */
    struct due__redis_bad *bad;
    size_t n_bad, bad_room;
    size_t bad_passed; /* those of them that are behind the cursor */
    struct {
        struct due__redis_cursor cursor;
        uint64_t rank;
        size_t passed;
    } before;                           /* the page: there it begins again if it is given up */
    int blocked;                        /* why a topic could not be read; 0: all could */
    size_t damaged;                     /* of those of the page */
    size_t set_aside;                   /* in this load */
    size_t put_back;                    /* likewise */
    struct due__redis_topic **unlisted; /* topics to be read besides, once the sweep is over */
    size_t n_unlisted, unlisted_room;
    size_t hidden;                   /* jobs of other openings that stood there */
    bool scanned;                    /* all records were looked through */
    char scan[24];                   /* how far; empty: it begins */
    char scan_next[24];              /* and once the page was shown */
    uint64_t scan_link;              /* the connection that it is of */
    struct due__redis_stray *strays; /* jobs moved behind the cursor before they were shown */
    size_t n_strays, stray_room, stray;
    struct due__redis_sweep sweep;
};

/* How far the showing of kept keys has come. */
struct due__redis_kept {
    bool ended;
    char cursor[24];  /* of the scan; empty: it begins */
    uint64_t link;    /* the connection that it is of: on another server it means nothing */
    uint64_t stamp;   /* of the last batch before the page */
    redisReply *page; /* keys and scores of the scan, until they have been shown */
    size_t at;        /* the first that was not */
};

/* What a survey found. */
struct due__redis_survey {
    bool fenced;           /* there is a fence, */
    bool ours;             /* and it is ours */
    uint64_t fence_writer; /* */
    char fence[DUE__REDIS_FENCE];
    bool owned; /* there is an owner key */
    char owner[DUE__REDIS_OWNER];
    int64_t owner_ms; /* left of its lease; -1: without end */
    bool meta;
    int64_t format, least_reader, partitions;
    bool shared;
    bool same; /* the incarnation that we know */
    char incarnation[40];
    char server[48];      /* the start of the server that the last owner met; empty: it closed */
    uint64_t last_writer; /* the highest anywhere */
    bool numbered;        /* our writer's number is there */
    uint64_t number;
    int64_t server_us;
    size_t writers;
    uint64_t old_writers[DUE__REDIS_WRITERS]; /* the highest, falling */
    size_t stale_writers;
    uint64_t stale_writer[DUE__REDIS_WRITERS]; /* others, to be forgotten */
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
    bool read_once;                  /* C: all that is stored was shown since we opened it */
    size_t statuses;                 /* C: of the batch being formatted: answers before EXEC's */
    bool open;                       /* C: we became the owner */
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
    unsigned char *scratch;          /* C */
    size_t scratch_room;             /* C */
    struct due__redis_load load;     /* C */
    uint64_t pass;                   /* C: of the load, from its beginning to its end */
    bool newer_told;                 /* C: that there are records of a newer version */
    bool unreadable_told;            /* C: that a key cannot be read */
    struct due__redis_kept kept;     /* C */
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

/* ---- redis/store.c */
int64_t due__redis_monotonic(void);
int64_t due__redis_boottime(void);
void due__redis_log(struct due__redis *s, enum due_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void due__redis_count(struct due__redis *s, uint64_t batches, uint64_t resent, uint64_t aside);
bool due__redis_is_text(const redisReply *r);
bool due__redis_is_array(const redisReply *r, size_t elements);
/* An array of texts; or of what fields of a hash are: texts, or nothing. */
bool due__redis_is_texts(const redisReply *r);
bool due__redis_is_fields(const redisReply *r, size_t elements);
void due__redis_print(char text[24], int64_t number);
/* A number of decimal digits and nothing else. */
bool due__redis_digits(const char *text, size_t len, uint64_t *number);

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

/* ---- owner.c */
int due__owner_write(char text[DUE__REDIS_OWNER]);
enum due__owner_life { DUE__OWNER_UNKNOWN, DUE__OWNER_LIVES, DUE__OWNER_DEAD };
enum due__owner_life due__owner_life(const char *text);
/* "process 12 on host a"; for people. */
void due__owner_show(const char *text, char *shown, size_t room);

/* ---- survey.c */
/* 0; DUE_EAGAIN: under way; DUE_ESTORE: the link is down; or what is wrong with the answers. */
int due__redis_survey(struct due__redis *s, bool all, struct due__redis_survey *w,
                      int64_t until_ns);
/* The beginning of a command: its name and the key; @arguments more follow. */
void due__redis_word(struct due__redis *s, const char *key, size_t arguments, const char *name);
void due__redis_bare(struct due__redis *s, const char *name);
/* The commands that stand behind each EXEC, and their two answers from @at on: the guard of what is
 * sent next. */
void due__redis_guard(struct due__redis *s);
void due__redis_guarded(struct due__redis *s, size_t at);
bool due__redis_is_our_fence(const struct due__redis *s, const redisReply *r);

/* ---- claim.c */
int due__redis_take_over(struct due__redis *s, int64_t until_ns);

/* Connect, as due__link_up(); if that takes long it is logged. */
int due__redis_connect(struct due__redis *s, bool *fresh, int64_t until_ns);
/* Sleep until the owner's lease may have ended.  0: look again; DUE_EBUSY: time is up. */
int due__redis_await_owner(struct due__redis *s, const struct due__redis_survey *w,
                           int64_t until_ns);
/* May somebody have taken over unseen, since the lease may have ended? */
bool due__redis_lease_in_doubt(const struct due__redis *s);
/* Reached, the owner, and ready for a batch.  As ready(), but DUE_ELOST is left to s->lost. */
int due__redis_up(struct due__redis *s, int64_t until_ns);
int due__redis_renew(struct due__redis *s, int64_t *held_ns, int64_t until_ns);
int due__redis_hand_over(struct due__redis *s, int64_t until_ns);

/* ---- script.c */
void due__script_claim(struct due__redis *s, const struct due__redis_survey *was,
                       const char *const *meta, size_t n_meta);
void due__script_remove(struct due__redis *s, const due_change *changes, size_t n, uint64_t number);

/* ---- durability.c */
int due__redis_probe(struct due__redis *s, bool opening, int64_t until_ns);

/* ---- change.c */
int64_t due__redis_score(int64_t ns);
/* Whether a job of the batch @number can be in the store from before it. */
bool due__redis_may_be_stored(const struct due__redis *s, due_id id, uint64_t number);
/* The job's sequence, if this opening made its id; else 0. */
uint64_t due__redis_sequence(const struct due__redis *s, due_id id);
/* Out of which zset the change takes the job, or may have to; and into which it puts it. */
bool due__change_leaves_topic(const struct due__redis *s, const due_change *c, uint64_t number);
bool due__change_enters_topic(const due_change *c);
/* It stands there already, at that time. */
bool due__change_stays(const struct due__redis *s, const due_change *c);
bool due__change_leaves_dead(const struct due__redis *s, const due_change *c, uint64_t number);
bool due__change_enters_dead(const due_change *c);
bool due__change_has_entry(const due_change *c);
/* A plain job that may have been stored with an entry before. */
bool due__change_is_stale(const struct due__redis *s, const due_change *c, uint64_t number);
bool due__change_frees_key(const due_change *c); /* it is taken no more */
bool due__change_takes_key(const due_change *c); /* by a live job, or it is kept */
bool due__change_keeps_key(const due_change *c); /* after its job is gone */
bool due__change_unkeeps_key(const struct due__redis *s, const due_change *c); /* not, or no more */
/* Of the changes of a batch those that one command is about. */
typedef bool due__redis_choice(const struct due__redis *s, const due_change *c, uint64_t number);
due__redis_choice due__choose_drops, due__choose_entries, due__choose_frees, due__choose_unkeeps;

/* ---- format.c */
/* Write the batch @number into the link's buffer, with the guard behind it. */
int due__format_batch(struct due__redis *s, const due_change *changes, size_t n, uint64_t number);
/* The same of removals only, as a script. */
int due__format_script(struct due__redis *s, const due_change *changes, size_t n, uint64_t number);
/* The same of nothing but its number. */
void due__format_number(struct due__redis *s, uint64_t number);
/* The batch @number has landed (@entered: its new topics too), or is formatted anew. */
void due__format_over(struct due__redis *s, uint64_t number, bool entered);

/* ---- torn_log.c */
/* Before a takeover from whom @was tells of: are we to be unsure? */
void due__redis_suspect(struct due__redis *s, const struct due__redis_survey *was);
/* What `meta` is to say of the server. */
const char *due__redis_server(const struct due__redis *s);
/* Ask for the next page of the names of all records.  0: they are in the load's next_ids; and then
 * they were shown. */
int due__redis_scan(struct due__redis *s, int64_t until_ns);
void due__redis_scanned(struct due__redis_load *l);
/* All that is stored was shown.  0, or an error: to be called again. */
int due__redis_all_read(struct due__redis *s, int64_t until_ns);

/* ---- redis/batch.c */
/* What commit() refuses at once, and else the batch's bytes into the link. */
int due__redis_format(struct due__redis *s, const due_change *changes, size_t n, uint64_t number);
/* Send a batch that was formatted.  As due__flight_start(). */
int due__redis_launch(struct due__redis *s, uint64_t number, bool script, int64_t until_ns);
int due__redis_commit(struct due__redis *s, const due_change *changes, size_t n, uint64_t number,
                      int64_t until_ns);
/* The batch that was in the air has landed or not. */
void due__redis_batch_over(struct due__redis *s);

/* ---- redis/pipeline.c */
/* Format it behind the one in the air.  DUE_EAGAIN: not now. */
int due__redis_prepare(struct due__redis *s, const due_change *changes, size_t n, uint64_t number);
/* Send it.  0; DUE_EAGAIN: nothing was sent. */
int due__redis_send(struct due__redis *s, uint64_t number, int64_t until_ns);

/* ---- load.c */
int due__redis_load(struct due__redis *s, int rewind, size_t max, due_store_visit *visit, void *ctx,
                    int64_t until_ns);
void due__redis_load_over(struct due__redis *s); /* a page that was in the air has come */
void due__redis_load_stale(struct due__redis *s);
void due__redis_load_again(struct due__redis *s); /* from its beginning */
void due__redis_load_forget(struct due__redis *s);

/* ---- show.c */
/* Show the page from where it stands.  0: all of it is done. */
int due__redis_show_page(struct due__redis *s, size_t *shown, due_store_visit *visit, void *ctx);

/* ---- end.c */
/* All topics were read.  0: the load is over; 1: more is left, perhaps topics. */
int due__redis_load_end(struct due__redis *s, size_t *shown, size_t max, due_store_visit *visit,
                        void *ctx, int64_t until_ns);

/* ---- cursor.c */
/* The job is to be shown at the end.  False: no memory. */
bool due__redis_load_stray(struct due__redis *s, due_id id);
int due__cursor_compare(int64_t score, const unsigned char *id, const struct due__redis_cursor *c);
void due__redis_load_count(struct due__redis *s, const due_change *changes, size_t n,
                           uint64_t number);

/* ---- find.c */
/* One flight, formatted if @ready is 0.  0: its answers are there; or an error. */
int due__redis_fly(struct due__redis *s, enum due__flight_kind kind, uint64_t tag, size_t expected,
                   int ready, int64_t until_ns);
/* What the answer of a flight was, if it was none of those expected.  If it was no error either,
 * the link is of no use any more. */
int due__redis_mistaken(struct due__redis *s);
/* Of the topic @line, or one of the dead, if it is not NULL. */
int due__redis_read_job(const struct due__redis *s, const struct due__redis_topic *line,
                        due_record *record, struct due__record_room *room, const redisReply *id,
                        const redisReply *job, const redisReply *entry);
int due__redis_find(struct due__redis *s, due_id id, due_store_visit *visit, void *ctx,
                    int64_t until_ns);

/* ---- key_holder.c */
/* Have what the keys of the page lead to.  0; as a flight. */
int due__redis_whose(struct due__redis *s, int64_t until_ns);
/* Of the page's next job what its key leads to; NULL: it names none. */
const redisReply *due__redis_next_owner(const struct due__redis_load *l);
/* The record has no key unless that leads to its job. */
void due__redis_judge_key(due_record *record, const redisReply *owner);

/* ---- redis/retained_keys.c */
int due__redis_kept(struct due__redis *s, int rewind, size_t max, due_store_visit_key *visit,
                    void *ctx, int64_t until_ns);
void due__redis_kept_forget(struct due__redis *s);

/* ---- quarantine.c */
/* Set the page's damaged members aside, and put the others that it does not show back into their
 * place.  Moves nothing if that is refused. */
int due__redis_set_aside(struct due__redis *s, int64_t until_ns);

/* ---- orphans.c */
/* Go on with it by one step: the count, or a page.  1: more is left; 0: it is over, done or given
 * up.  DUE_EAGAIN, DUE_ESTORE, DUE_ENOMEM: to be called again. */
int due__redis_sweep(struct due__redis *s, int64_t until_ns);
void due__redis_sweep_forget(struct due__redis *s);

/* ---- unlisted.c */
/* If the load has not read the topic, it is to do so at its end.  0, or DUE_ENOMEM. */
int due__redis_unread(struct due__redis *s, struct due__redis_topic *t);
/* Enter those into `topics`.  0, also if it is refused; or an error: to be called again. */
int due__redis_enter_unlisted(struct due__redis *s, int64_t until_ns);

/* ---- redis/topic.c */
/* NULL: no memory. */
struct due__redis_topic *due__redis_topic(struct due__redis *s, const char *name, size_t len);
/* The zset of the dead as one more; NULL: no memory. */
struct due__redis_topic *due__redis_dead(struct due__redis *s);
void due__redis_topics_forget(struct due__redis *s);
void due__redis_topics_free(struct due__redis *s);

#endif
