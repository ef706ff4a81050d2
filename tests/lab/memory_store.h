/* memory_store.h - a whole store in memory, which can be made to fail, for tests.
 *
 * The disk is what survives: any number of stores may be opened on it, one after another as a
 * program that crashes and starts again does, or at once as two programs do that both want the
 * jobs.  It keeps one queue, whatever its name.
 *
 *     struct memory_disk *disk = memory_disk_new(NULL);
 *     due_store *store = memory_store_new(disk);
 *     memory_store_fault(store, (struct memory_fault){ .verb = MEMORY_COMMIT, .call = 2,
 *                                                      .kind = MEMORY_DOUBT_LANDED });
 *     ... due_open() with options.store = store, and the test ...
 *     cr_expect_null(memory_disk_wrong(disk));
 *     memory_disk_free(disk);
 *
 * The disk writes down every change that lands, and sees to it that the queue keeps its side of
 * store.h; memory_disk_wrong() says what it did not keep.
 *
 * Threads  any, unless said otherwise; the stores are freed before their disk
 */
#ifndef MEMORY_STORE_H
#define MEMORY_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "due/store.h"

struct memory_disk;

/* ---- Faults ---- */

enum memory_verb {
    MEMORY_OPEN,
    MEMORY_READY,
    MEMORY_COMMIT,
    MEMORY_SEND,
    MEMORY_LOAD,
    MEMORY_FIND,
    MEMORY_KEYS,
    MEMORY_RENEW,
    MEMORY_CLOSE,
    MEMORY_JOIN,
    MEMORY_PUT,  /* exchanges with no claim, of jobs that nobody holds */
    MEMORY_WORK, /* the other exchanges */
    MEMORY_DEAD_JOBS,
    MEMORY_PAGE,
    MEMORY_CENSUS,
    MEMORY_PROCESSES,
    MEMORY_BEAT,
    MEMORY_LISTEN,
    MEMORY_LEAVE,
    MEMORY_TOPICS,
    MEMORY_VERBS
};

/* What goes wrong in a call.  Several may meet in one: they happen in this order.  A commit that is
 * in doubt stays so while it is not reached. */
enum memory_fault_kind {
    MEMORY_BLOCK = 1, /* stands at .limiter; none: until interrupted, or its time is up */
    MEMORY_SLOW,      /* does nothing for .count microseconds; if its time is up then, as BLOCK */
    MEMORY_LOSE,      /* the disk loses its last .count batches, as memory_disk_lose() */
    MEMORY_FENCE,     /* somebody else takes the jobs, as memory_disk_fence() */
    MEMORY_CRASH,     /* the object is dead from here on, as memory_store_crash() */
    MEMORY_AWAY,      /* not reached: DUE_EAGAIN; open: DUE_ESTORE */
    MEMORY_ANSWER,    /* does nothing and answers .answer */
    MEMORY_FULL,      /* commit: DUE_ENOSPC, unless all its changes are removals; an exchange: so
                         are its PUTs answered */
    MEMORY_DOUBT_NOT, /* commit, an exchange: does not land, DUE_EINDOUBT */
    MEMORY_DOUBT_LANDED, /* the same, and it lands; send: lands at once, not with commit */
    MEMORY_REPEAT,       /* load: shows the jobs of the last .count shown once more */
    MEMORY_CRASH_AFTER,  /* done, and then dead: no answer comes */
    MEMORY_BLOCK_AFTER,  /* done, and then stands at .limiter before it answers */
    MEMORY_FAULTS
};

#define MEMORY_ALWAYS UINT64_MAX

/* A place where calls wait until the test opens it. */
struct memory_limiter;

struct memory_fault {
    enum memory_verb verb;
    uint64_t call;  /* which, from 1, of this verb of this object; 0: the next one */
    uint64_t times; /* how many in a row; 0 means 1; MEMORY_ALWAYS */
    enum memory_fault_kind kind;
    int answer;
    size_t count;
    struct memory_limiter *limiter;
};

/* Faults at random: of 1,000 calls of a verb that can fail so. */
struct memory_dice {
    uint64_t seed;
    unsigned per_mille[MEMORY_FAULTS]; /* not BLOCK, SLOW, ANSWER or BLOCK_AFTER */
    size_t lose_max;                   /* most batches of one loss; 0 means 3 */
};

struct memory_limiter *memory_limiter_new(struct memory_disk *disk);
void memory_limiter_open(
    struct memory_limiter *limiter); /* for good: whoever stands there goes on */
void memory_limiter_reached(struct memory_limiter *limiter,
                            unsigned calls);              /* wait until so many have */
void memory_limiter_free(struct memory_limiter *limiter); /* nobody stands there */

/* ---- The disk ---- */

struct memory_disk_options {
    int64_t lease_ns;               /* an owner that did not renew for so long may be replaced;
                                       0: never, until memory_disk_end_lease() */
    size_t batch_changes;           /* 0 means 256 */
    size_t batch_bytes;             /* 0 means 16 MiB */
    enum due_durability durability; /* */
    uint64_t writer;                /* the last writer number given; 0 is the default */
    bool put_again;                 /* its owners are to write everything again */
    int64_t (*now)(void *clock);    /* shared: the disk's clock; NULL: that of who calls */
    void *clock;                    /* */
    bool real;                      /* who shares it may do so in a real store: memory_real.h */
};

/* One change that landed. */
struct memory_entry {
    uint64_t writer;
    uint64_t number; /* of the batch */
    enum due_change_kind kind;
    due_id id;
    int64_t until_ns; /* DROP: as it was; KEEP: of the key */
    size_t len;
    bool dead; /* PUT, BURY: from then on; MOVE, DROP: before */
};

struct memory_disk *memory_disk_new(const struct memory_disk_options *options);
void memory_disk_free(struct memory_disk *disk); /* NULL is allowed */

/* The first thing that a queue did against store.h, or NULL.  Valid until the disk is freed. */
const char *memory_disk_wrong(struct memory_disk *disk);

/* Forget the last batches or exchanges (SIZE_MAX: everything).  If one of them had been confirmed
 * to the present owner, or to one who shares the jobs, it is told DUE_ELOST. */
void memory_disk_lose(struct memory_disk *disk, size_t batches);
void memory_disk_end_lease(struct memory_disk *disk); /* as if the owner had not renewed */
void memory_disk_fence(struct memory_disk *disk);     /* another program opens it, and leaves */

size_t memory_disk_jobs(struct memory_disk *disk);
/* Whether the job is there; @record, unless NULL, without what it would point to. */
bool memory_disk_find(struct memory_disk *disk, due_id id, due_record *record);
/* Whether the key is taken; *@until_ns, unless NULL: 0: by a live job, else so long. */
bool memory_disk_key(struct memory_disk *disk, const void *key, size_t len, due_id *id,
                     int64_t *until_ns);
/* Whether the topic is paused; *@held_max, unless NULL: its limit. */
bool memory_disk_setting(struct memory_disk *disk, const char *topic, int64_t *held_max);
size_t memory_disk_keys(struct memory_disk *disk); /* those of live jobs, and the kept ones */
/* All jobs in order, one by one.  The disk is locked meanwhile: @visit must not call anything. */
int memory_disk_each(struct memory_disk *disk, due_store_visit *visit, void *ctx);
uint64_t memory_disk_batches(struct memory_disk *disk); /* that landed, of all writers */
bool memory_disk_entry(struct memory_disk *disk, size_t i, struct memory_entry *entry);

/* ---- A store ---- */

due_store *memory_store_new(struct memory_disk *disk);
/* One that keeps no pauses and no limits, as it was built against an older header. */
due_store *memory_store_old(struct memory_disk *disk);
void memory_store_fault(due_store *store, struct memory_fault fault);
void memory_store_forgive(due_store *store); /* none of these faults any more */
void memory_store_dice(due_store *store, const struct memory_dice *dice);

/* The program that has this store is dead: what had landed stays, nothing more does, its calls come
 * back with DUE_EAGAIN or DUE_EINDOUBT when they are interrupted or their time is up, and the next
 * one may own the jobs at once. */
void memory_store_crash(due_store *store);

/* Shared: it has been told to go, and will find out. */
void memory_store_evict(due_store *store);
/* Shared: rings to it are lost, and nobody sees that. */
void memory_store_swallow(due_store *store, bool swallows);
uint64_t memory_store_rings(due_store *store); /* times it was rung */

uint64_t memory_store_calls(due_store *store, enum memory_verb verb);             /* begun so far */
void memory_store_until(due_store *store, enum memory_verb verb, uint64_t calls); /* wait */

#endif
