/* memory_disk.h - the inside of memory_store.h: what the disk does for its stores.
 *
 * Guards  I  set when made, then constant      D  the disk's lock      A  atomic
 */
#ifndef MEMORY_DISK_H
#define MEMORY_DISK_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "lab/memory_behind.h"
#include "lab/memory_jobs.h"
#include "lab/memory_keys.h"
#include "lab/memory_real.h"
#include "lab/memory_share.h"
#include "lab/memory_store.h"

#define MEMORY_RECENT 64 /* ids shown last, for MEMORY_REPEAT */

struct memory_store;

/* Guard: D.  How to take one batch back. */
struct memory_undo {
    uint64_t writer;
    uint64_t number;
    size_t n;
    due_id *ids;
    struct memory_job **was;         /* NULL: was not there */
    struct memory_key **key;         /* as it was; NULL: not concerned */
    struct memory_setting *settings; /* as they were; NULL: not concerned */
    size_t n_settings;
};

struct memory_disk {
    pthread_mutex_t lock;               /* I */
    pthread_cond_t test;                /* I: tests wait here for calls */
    struct memory_disk_options options; /* I */
    struct memory_jobs jobs;            /* D */
    struct memory_keys keys;            /* D */
    struct memory_store *stores;        /* D */
    struct memory_store *owner;         /* D: NULL: nobody */
    int64_t owned_until_ns;             /* D: on the boottime clock */
    uint64_t writer;                    /* D: the last one given */
    uint64_t landed;                    /* D: the owner's last batch that is here */
    uint64_t batches;                   /* D */
    uint64_t loads;                     /* D: begun so far */
    struct memory_undo *undo;           /* D */
    size_t n_undo;                      /* D */
    bool undo_short;                    /* D: the oldest were let go */
    struct memory_entry *log;           /* D */
    size_t n_log;                       /* D */
    size_t log_room;                    /* D */
    struct memory_behind *behind;       /* D: NULL: none */
    struct memory_real *real;           /* I: NULL: what is shared lies here */
    struct memory_share share;          /* D */
    char wrong[256];                    /* D */
};

/* Calls of one lane come one at a time.  Who owns the jobs has one lane only, the first. */
enum memory_lane_of {
    MEMORY_LANE_PUT,
    MEMORY_LANE_WORK,
    MEMORY_LANE_LISTEN, /* interrupted by wake() */
    MEMORY_LANES
};

struct memory_lane {
    atomic_bool inside;  /* A: a call is under way */
    bool interrupted;    /* D */
    uint64_t given;      /* D: shared: the last number seen, */
    uint64_t given_hash; /* D: what was in it, */
    uint64_t acked;      /* D: the last one answered, */
    bool doubt;          /* D: and the one behind it is in doubt */
};

/* What goes wrong in one call. */
struct memory_call {
    enum memory_verb verb;
    enum memory_lane_of lane;
    int64_t until_ns;
    bool has[MEMORY_FAULTS];
    struct memory_limiter *limiter;       /* of MEMORY_BLOCK */
    struct memory_limiter *after_limiter; /* of MEMORY_BLOCK_AFTER */
    int answer;
    size_t slow_us;
    size_t lose;
    size_t repeat;
};

struct memory_limiter {
    struct memory_disk *disk; /* I */
    bool open;                /* D */
    unsigned reached;         /* D: calls that have come here */
};

struct memory_store {
    due_store head;            /* I */
    struct memory_disk *disk;  /* I */
    struct memory_store *next; /* D: of the disk */
    pthread_cond_t wake;       /* I: a call of this object waits here */
    pid_t pid;                 /* I */
    struct memory_lane lanes[MEMORY_LANES];
    bool joined;                     /* D: it shares the jobs */
    bool rung;                       /* D */
    bool deaf;                       /* D: it cannot be rung, and knows */
    bool swallows;                   /* D: it cannot be rung, and nobody knows */
    struct due_heard heard;          /* D: it was told to come then; alarm_ns 0: it was not */
    uint64_t rings;                  /* D: times it was rung */
    int64_t (*now)(void *clock);     /* D: of its queue, shared */
    void *clock;                     /* D */
    bool opened;                     /* D */
    bool closed;                     /* D */
    bool crashed;                    /* D */
    bool fenced;                     /* D */
    bool lost;                       /* D: DUE_ELOST is to be told */
    bool told;                       /* D: it was: a DROP may be of a job that was lost */
    uint64_t writer;                 /* D */
    uint64_t given;                  /* D: the last batch number seen, */
    uint64_t given_hash;             /* D: what was in it, */
    uint64_t acked;                  /* D: the last one confirmed, */
    uint64_t doubt;                  /* D: and the one in doubt, or 0 */
    const due_change *prepared;      /* D: for send(), */
    size_t n_prepared;               /* D: so many, */
    uint64_t prepared_number;        /* D: as this batch, */
    uint64_t prepared_hash;          /* D: and what was in it */
    bool air;                        /* D: the one in doubt was sent, and lands with commit() */
    uint64_t calls[MEMORY_VERBS];    /* D */
    struct memory_fault *faults;     /* D */
    size_t n_faults;                 /* D */
    struct memory_dice dice;         /* D */
    uint64_t load;                   /* D: the one under way, or 0 */
    struct memory_place at;          /* D: the last place it showed */
    due_id recent[MEMORY_RECENT];    /* D */
    uint64_t shown;                  /* D: jobs shown in it */
    bool keys_begun;                 /* D */
    uint64_t keys_at;                /* D: number of the last key shown */
    struct due_store_stats counters; /* D */
    due_store *real;                 /* D: NULL: none, or not yet */
    unsigned real_calls;             /* D: that are in it now */
    uint64_t real_landed[2];         /* D: by lane: the last number that has taken effect */
};

static inline struct memory_store *memory_store_of(due_store *store)
{
    return (struct memory_store *)(void *)store;
}

static inline struct memory_store *memory_store_lock(due_store *store)
{
    pthread_mutex_lock(&memory_store_of(store)->disk->lock);
    return memory_store_of(store);
}

/* A job as it is shown: without its key, if that has gone over to another one. */
due_record memory_disk_shown(const struct memory_disk *disk, const struct memory_job *job);

/* All of these with the disk's lock held. */
void memory_wrong(struct memory_disk *disk, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void memory_lose(struct memory_disk *disk, size_t batches);
void memory_take_over(struct memory_disk *disk, struct memory_store *by);
void memory_crash(struct memory_store *s);
void memory_wake_all(struct memory_disk *disk);
/* What goes wrong in the store's call @number of its verb. */
void memory_write_down(struct memory_store *s, const due_change *change, uint64_t number);
/* @s is one of those who share the jobs, under a new number. */
void memory_join(struct memory_disk *disk, struct memory_store *s, uint64_t writer_min);
void memory_choose_faults(struct memory_store *s, struct memory_call *call, uint64_t number);
/* Whether the queue may give this batch now; if not, memory_wrong() has been told. */
const char *memory_record_wrong(const struct memory_store *s, const due_change *change);
bool memory_any_id_twice(const due_change *changes, size_t n);
bool memory_check_batch(struct memory_store *s, const due_change *changes, size_t n,
                        uint64_t number);
uint64_t memory_hash(const due_change *changes, size_t n);
void memory_land(struct memory_store *s, const due_change *changes, size_t n, uint64_t number);

int64_t memory_boottime_ns(void);
int64_t memory_monotonic_ns(void);

/* ---- A call ---- */

struct memory_call memory_call_begin(struct memory_store *s, enum memory_verb verb,
                                     enum memory_lane_of lane, int64_t until_ns);
int memory_call_end(struct memory_store *s, enum memory_lane_of lane, int rc); /* and unlocks */
/* What goes wrong before anything is done; 0: nothing. */
int memory_before(struct memory_store *s, struct memory_call *call);
/* What goes wrong once everything is done: whether the answer never comes. */
bool memory_after(struct memory_store *s, struct memory_call *call);
/* An interrupt is good for one call. */
bool memory_interrupted(struct memory_store *s, enum memory_lane_of lane);
/* Until woken, or (false) the time is up. */
bool memory_sleep_until(struct memory_store *s, int64_t until_ns);
/* Until nobody owns the jobs any more, or those who share them have gone; false: interrupted, or
 * the time is up. */
bool memory_wait_for_owner(struct memory_store *s, int64_t until_ns, bool shares, due_error *error);
void memory_store_info(struct memory_store *s, struct due_store_info *info);

/* ---- Shared ---- */

extern const struct due_shared_verbs memory_shared_verbs;
extern const struct due_shared_verbs memory_real_verbs;

bool memory_share_lost(const struct memory_store *s); /* it had joined, and the disk forgot it */
enum memory_lane_of memory_exchange_lane(const due_change *changes, size_t n,
                                         const struct due_claim *claim);
/* Whether the queue may give this exchange now; if not, memory_wrong() has been told. */
bool memory_check_exchange(struct memory_store *s, const due_change *changes, size_t n,
                           uint64_t number, const struct due_claim *claim);

#endif
