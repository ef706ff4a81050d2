/* stored_world.h - a stored queue, and what its callers were told of each job.
 *
 * The store is the one in memory, and fails by dice; or there is none, and then everything is known
 * for sure.  Of each job the world knows what may be: in
 * the queue, gone, or either, as long as a change is in doubt, not flushed, or was refused to
 * nobody.  stored_resolve() lets the store be, waits until nothing is on its way, and then
 * everything must be as it was told, and the same in the queue and on the disk.
 *
 *   stored_world.c          opening, closing
 *   stored_resolve.c        resolving
 *   stored_known.h          what may be said of a job
 *   stored_verbs.c          putting in, naming a job; the table of all verbs
 *   stored_verbs_take.c     taking out
 *   stored_limiters.c          groups, and limits of topics
 *   stored_verbs_topic.c    topics that are paused; their policies
 *   stored_verbs_leases.c   answering for a reserved job
 *   stored_verbs_dead.c     dead jobs
 *   stored_limits.c         time limits, and how long dead jobs are kept
 *   stored_verbs_keys.c     unique keys
 *   stored_verbs_update.c   other content, time, policy
 *   stored_verbs_repeat.c   jobs that come again
 */
#ifndef STORED_WORLD_H
#define STORED_WORLD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "due/due.h"
#include "lab/flaky.h"
#include "lab/memory_store.h"

#define STORED_ROOM     3000 /* jobs that one script can make */
#define STORED_TIMES    40
#define STORED_HELD     24
#define STORED_TOPICS   3
#define STORED_KEYS     8
#define STORED_CONTENTS 6
#define STORED_TRIES    1000 /* of a call that the store refuses */
#define STORED_BYTES    192  /* of a payload, 128; then headers */

/* Bits of a script's pattern. */
#define STORED_ASYNC   0x01u
#define STORED_ALWAYS  0x02u
#define STORED_BOUNDED 0x04u
#define STORED_SMALL   0x08u /* small batches */
#define STORED_AWAY    0x10u
#define STORED_DOUBT   0x20u
#define STORED_FULL    0x40u
#define STORED_LOSES   0x80u
#define STORED_TAKES   0x100u   /* keys may be taken over */
#define STORED_KEEPS   0x200u   /* and kept for a while */
#define STORED_NONE    0x400u   /* no store: nothing is opened again, nothing fails */
#define STORED_NEVER   0x800u   /* and no threads */
#define STORED_GATES   0x1000u  /* groups, and limits of topics */
#define STORED_AGAIN   0x2000u  /* who opens writes everything again */
#define STORED_URGENT  0x4000u  /* ordered by priority */
#define STORED_TOPICAL 0x8000u  /* topics are paused, and have policies */
#define STORED_MORTAL  0x10000u /* jobs have time limits */
#define STORED_ROTS    0x20000u /* dead jobs are kept for a while */
#define STORED_CROWDS  0x40000u /* and so many only */

#define STORED_DEAD_KEEP_NS 150
#define STORED_DEAD_MAX     6

/* When a job may be due, and with what deadline of its own. */
struct stored_time {
    int64_t until;
    int64_t deadline;
};

/* When it dies, unless handed out before.  Both 0: never. */
struct stored_limit {
    int64_t ttl;
    int64_t expires;
};

struct stored_job {
    due_id id;
    int number;
    int content[STORED_CONTENTS]; /* its payload follows from one of these */
    int contents;
    int head[STORED_CONTENTS]; /* and its headers from one of these; 0: none */
    int heads;
    int topic; /* which of the world's */
    int priority;
    bool in;      /* it waits or is reserved, if all went as it should */
    bool unsure;  /* or the opposite */
    bool dirty;   /* told by an asynchronous call, and not flushed: the store may not have it yet */
    bool shaky;   /* a call that failed may have it still, or its removal is under way */
    bool loose;   /* put in without delay: the queue may give it a later deadline */
    bool plain;   /* not reserved since it was last confirmed: the store knows its time */
    bool lapsing; /* reserved by somebody who has let go, or whose change is in doubt */
    uint64_t arrival; /* among equals; those that were kicked together have the same */
    struct stored_time time[STORED_TIMES]; /* one of these; the last is the one wanted */
    int times;
    int64_t leased_until;     /* INT64_MIN: not reserved */
    uint32_t lease_limit;     /* of its attempts, when that began; 0: none */
    uint64_t token;           /* of its last lease */
    uint32_t attempts;        /* at most */
    uint32_t attempts_least;  /* in the queue */
    uint32_t attempts_stored; /* confirmed: at least */
    uint32_t failures;        /* at most */
    uint32_t nacks;           /* confirmed: at least */
    bool revoked;             /* cancelled while it was reserved */
    bool dead;                /* it is dead, if all went as it should; then it is in, too */
    bool mortal;              /* or the opposite */
    bool doomed;              /* its last attempt has failed, and nothing can refuse its death */
    enum due_cause cause;     /* of one that is dead for sure; 0: not known */
    int64_t died;             /* */
    int64_t ailing; /* since when it may be dead, if it is not known when it died; and 1 */
    int64_t buried; /* when it was first seen dead in this queue, and 1; 0: not yet */
    struct stored_limit limit[STORED_CONTENTS]; /* it has one of these */
    int limits;
    due_retry retry;                /* its own, or DUE_RETRY_INHERIT */
    int64_t every;                  /* 0: it does not come again */
    enum due_repeat repeat;         /* */
    bool rounding;                  /* it may be in a later round than its times say: */
    int64_t rounding_from;          /* one may have ended since */
    bool asked;                     /* a take that did not get it may have begun its next round, */
    int64_t asked_ns;               /* then at the earliest */
    int64_t begun_at[STORED_TIMES]; /* the round of one of these deadlines is the next one's, */
    int begun;                      /* so many, however far the job has come by then */
    bool late;                      /* as that which was handed out just now */
    uint64_t taken_step;            /* in which it was last taken for good */
    int group;                      /* 0: none */
    uint64_t ripened;               /* when its time came, in arrivals */
    bool pass_group;                /* it runs, and has its group's pass, */
    bool pass_topic;                /* and its topic's, */
    bool pass_unsure;               /* unless its run is over */
    int key;        /* its number, and 1; it has it unless the key is unsure; 0: none */
    bool seen;      /* listed as one that waits */
    bool laid;      /* listed as dead, */
    due_dead grave; /* and how */
};

/* Who has a unique key, if that is known. */
struct stored_key {
    int owner;          /* the number of the live job that has it, and 1; 0: none */
    bool unsure;        /* or another, or none */
    bool known;         /* when resolving began */
    int64_t kept_until; /* 0, or a time that has passed: nobody has it */
    due_id kept_id;     /* for this job */
};

struct stored_world {
    struct memory_disk *disk; /* NULL: no store */
    due_store *store;
    due_queue *q;
    due_clock *clock;
    struct flaky memory;
    unsigned pattern;
    int topic[STORED_TOPICS];         /* their numbers since it was opened */
    size_t limit[STORED_TOPICS];      /* 0: none */
    size_t limit_most[STORED_TOPICS]; /* so many may run still; 0: not known */
    bool gated[STORED_TOPICS];        /* it has had a limit */
    bool paused[STORED_TOPICS];
    due_retry policy[STORED_TOPICS]; /* of jobs without one of their own */
    uint64_t seed;
    int64_t now;
    struct stored_job job[STORED_ROOM];
    int made;
    uint64_t arrivals;
    uint64_t steps;
    struct stored_key key[STORED_KEYS];
    bool fresh; /* just opened: what the queue knows is what the disk has */
    due_job held[STORED_HELD];
    int held_count;
    pthread_mutex_t lock; /* guards what on_settled notes */
    due_id refused[STORED_ROOM];
    int refused_count;
    const char *wrong; /* what was found, or NULL */
};

enum stored_verb {
    ENQUEUE,
    BATCH,
    DEQUEUE,
    DEQUEUE_BATCH,
    RESERVE,
    ACK,
    NACK,
    BURY,
    EXTEND,
    DONE,
    CANCEL,
    CANCEL_LENT,
    RESCHEDULE,
    PROMOTE,
    CLEAR,
    KICK,
    KICK_ALL,
    CLEAR_DEAD,
    ENQUEUE_KEY,
    ENQUEUE_REPEATING,
    FIND_KEY,
    CANCEL_KEY,
    UPDATE,
    FLUSH,
    ADVANCE,
    REOPEN,
    CRASH,
    SET_LIMIT,
    PAUSE,
    RESUME,
    SET_POLICY,
    RESOLVE,
    LOSE,
    VERBS
};

/* One step.  False: the queue did not do what it had told; w->wrong says what. */
typedef bool stored_step(struct stored_world *w, uint32_t n, uint64_t value);

bool stored_apply(struct stored_world *w, unsigned verb, uint32_t n, uint64_t value);

stored_step stored_ack, stored_nack, stored_bury, stored_extend, stored_done;
stored_step stored_kick, stored_kick_all, stored_clear_dead;
stored_step stored_put_keyed, stored_find_key, stored_cancel_key;
stored_step stored_update;
stored_step stored_put_repeating;
stored_step stored_reserve, stored_limit;
stored_step stored_pause, stored_resume, stored_policy;
bool stored_dequeue(struct stored_world *w, uint32_t n, bool many);

bool stored_open(struct stored_world *w);
bool stored_close(struct stored_world *w, bool crash, int64_t timeout_ns);
/* @dice: the store fails again after it. */
bool stored_resolve(struct stored_world *w, bool dice);

/* Without a store: no thread of the queue's own is about to bury a job, or to let it go. */
bool stored_at_rest(struct stored_world *w);

/* A job to be put in, with what it points to. */
struct stored_draft {
    due_spec spec;
    due_extra more;
    unsigned char bytes[STORED_BYTES];
};

/* Before the jobs are resolved, and after. */
void stored_keys_begin(struct stored_world *w);
bool stored_keys_resolve(struct stored_world *w);

/* @j has gone, @done: as it should, or by somebody's order; if not @sure, it may be. */
void stored_key_ended(struct stored_world *w, const struct stored_job *j, bool done, bool sure);

/* A round of @j has ended, @sure: the store has the next one.  May it be due then, if that is not
 * known for sure? */
void stored_next_round(struct stored_world *w, struct stored_job *j, bool sure);
bool stored_round_may_be(const struct stored_world *w, const struct stored_job *j, int64_t until);

/* What limit the next job gets.  Is the time of @j over, for sure or perhaps?  Somebody has tried
 * to take jobs, of @topic or with -1 of any: those whose time is over are dead by now, or may be;
 * if @all, nothing else was there.  Of the dead some may have been discarded, because it is long
 * ago, or there are too many.  Has @j died so long ago, or perhaps? */
void stored_limit_life(const struct stored_world *w, struct stored_job *j, due_extra *more,
                       uint64_t value);
bool stored_expired(const struct stored_world *w, const struct stored_job *j, bool surely);
bool stored_expire(struct stored_world *w, int topic, bool all);
void stored_age(struct stored_world *w);
bool stored_overdue(const struct stored_world *w, const struct stored_job *j);

/* @j is handed out, @ends: for good: may it run?  If nothing is: may it be kept back?  @k was to be
 * handed out before @j: at the same limiters, so that it had to be?  @topic, or with -1 each, has
 * nothing to give: true, if it counts right. */
bool stored_let_through(struct stored_world *w, struct stored_job *j, bool ends);
bool stored_kept_back(const struct stored_world *w, const struct stored_job *j);
bool stored_same_limiters(const struct stored_world *w, const struct stored_job *k,
                          const struct stored_job *j);
bool stored_drained(struct stored_world *w, int topic);

/* The job that stored_new_job() made is put in. */
bool stored_put(struct stored_world *w, const due_spec *spec);

/* What becomes of the next job to be put in, and of one that was cancelled with this answer. */
struct stored_job *stored_new_job(struct stored_world *w, uint64_t value, struct stored_draft *d);
void stored_keep_job(struct stored_world *w, due_id id, bool in, bool unsure);
bool stored_cancelled(struct stored_world *w, struct stored_job *j, int rc, bool lent);

/* Whether the store fails from now on; what the queue counts. */
void stored_dice(struct stored_world *w, bool on);
struct due_stats stored_stats(struct stored_world *w);

/* Something is wrong. */
bool stored_wrong(struct stored_world *w, const char *what, const struct stored_job *j);

/* What on_settled told is applied to the jobs. */
void stored_note_refused(struct stored_world *w);
struct stored_job *stored_find(struct stored_world *w, due_id id);
void stored_payload(int content, unsigned char *bytes, size_t *len);
void stored_headers(int head, unsigned char *bytes, size_t *len);

#endif
