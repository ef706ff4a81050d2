/* store.h - what a store must do, for those who write one.
 *
 * A store keeps the jobs of one queue where they outlive the process.  The queue gives it changes
 * in batches and reads everything back when it opens; the jobs that wait stay in memory besides,
 * and what is due is known there.  A store decides nothing.
 *
 *   Open     Each store object serves one open queue.  It is given to due_open() by way of
 *            due_options.store; due_free() frees it.
 *   Batch    All of it or nothing of it lands, in the order of the changes.  No two changes of a
 *            batch name the same job.  Batches are numbered from 1, without gaps, per opening.
 *            commit() alone makes one.  A store that can have one under way while it makes the
 *            next ready has prepare() and send() besides; for any other these are NULL.
 *   Threads  The queue makes one call at a time, from any of its threads or its callers' threads;
 *            only interrupt() may come at any moment.  A call may block until its @until_ns (on
 *            CLOCK_MONOTONIC), no longer, and must not burn the processor meanwhile.
 *   Signals  A call must not raise SIGPIPE, and goes on after EINTR.
 *   Secrets  No password in a due_error, nor in anything logged.
 *   Bytes    Payloads, headers, keys and groups are any bytes; a topic's name has no NUL in it.
 *   Topics   What holds back a topic (a pause, a limit) is no job's.  A store that has topics()
 *            keeps it, for an owner and for those who share the queue, and from one to the other.
 *   Keys     A job's topic and key never change.  A key belongs to one live job, or is kept for a
 *            while after its job is gone; the queue sees to that.  A PUT may take the key of a job
 *            that is stored still: that one has none from then on, nor is it ever shown with it
 *            again, also when the key is free.  It is enough to keep of each key whose it is, in
 *            the batches that say so, and to show a job with the key of its record only if it is.
 *
 * The conformance suite (tests/store/store_suite.h) says the same as a program: run it on your
 * store.
 */
#ifndef DUE_STORE_H
#define DUE_STORE_H

#include "due/due.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A stored job's id: 14 bytes, and two of zero.  Ids compare bytewise as priority (higher first),
 * then arrival: 255 - priority (1), writer (6), sequence (7), big-endian.  The upper 12 bits of the
 * sequence are 0: they are for the partition, of a queue that will have several. */
#define DUE_STORE_ID_BYTES 14

/* A job as a store keeps it.  Times are ns since 1970 (or those of the queue's manual clock). */
typedef struct due_record {
    due_id id;           /* */
    int64_t deadline_ns; /* the job's own; never changes but by due_reschedule() */
    int64_t until_ns;    /* when it is to be handed out next: the deadline, or a retry later;
                            DUE_FOREVER: never */
    const char *topic;   /* its name; valid during the call */
    const void *data;    /* valid during the call; NULL if len is 0 */
    size_t len;          /* */
    uint32_t attempts;   /* times handed out by reserve */
    uint32_t failures;   /* times given back by nack or a lease that ended */
    int priority;        /* 0 to 255 */

    /* What only some jobs have; zero: not.  As in due_spec; valid during the call. */
    const void *headers;
    size_t headers_len;
    const due_retry *retry;
    int64_t ttl_ns;
    int64_t expires_ns;
    const void *key;
    size_t key_len;
    int64_t keep_key_ns;
    const void *group;
    size_t group_len;
    int64_t every_ns;
    enum due_repeat repeat;

    enum due_cause cause; /* it is dead, and why; 0: it is not */
    int64_t died_ns;      /* */
    const char *reason;   /* at most DUE_REASON_BYTES with its NUL; NULL or "": none */

    /* Shared, by find(): what the store knows its content by, whatever that is. */
    const void *mark;
    size_t mark_len;
} due_record;

enum due_change_kind {
    DUE_CHANGE_PUT = 1, /* a job, whole: replaces what the store has under its id; dead if it has a
                           cause, else not */
    DUE_CHANGE_MOVE,    /* deadline_ns, until_ns, attempts and failures; if it was dead it is not
                           any more */
    DUE_CHANGE_BURY,    /* the job is dead: the same, and cause, died_ns and reason */
    DUE_CHANGE_DROP,    /* the job is gone */
    DUE_CHANGE_KEEP,    /* a key is taken until key_kept_ns, by the job of this id, which is gone */
    DUE_CHANGE_FORGET,  /* a key that was kept for the job of this id is free */

    /* Of a shared queue only: what its holder says of a job that he does not end. */
    DUE_CHANGE_BEGIN,   /* an attempt begins: attempts and failures; he holds it still */
    DUE_CHANGE_EXTEND,  /* he holds it for lease_ns more, from now on */
    DUE_CHANGE_RELEASE, /* it was not begun: it waits again, as if it had not been claimed; but it
                           keeps its group's pass */

    DUE_CHANGE_AMEND, /* of a shared queue, and nobody's: the job, whole, in place of what it was */
    DUE_CHANGE_TOPIC  /* of no job: what holds back those of record.topic.  Of a queue that is owned
                         only if the store has the verb topics(), and then both are said */
};

/* One change of one job. */
typedef struct due_change {
    enum due_change_kind kind;
    int is_new;          /* PUT: 1: the store has no job of this id; 0: it may have */
    int64_t was_ns;      /* MOVE, BURY, DROP, AMEND: until_ns as the store has it; died_ns if it is
                            dead */
    int was_dead;        /* MOVE, BURY, DROP, AMEND: 1: the store has it as dead */
    int was_kept;        /* PUT: 1: the store may have its key as kept, for a job that is gone */
    int64_t key_kept_ns; /* KEEP; DROP, and shared, MOVE of what is held if that is its end
                            (DUE_REVOKED): the key stays taken until then; 0: it is free */
    due_record
        record;    /* PUT, AMEND: all; MOVE, BURY: all but data and len; DROP: id, topic, priority,
                            and its key if that is to be free, or kept; KEEP, FORGET: id and key.
                            Shared, DROP and MOVE of what nobody holds: the topic may be NULL, if it
                            is not known */
    uint64_t held; /* shared: the lease with which the job was claimed; 0: nobody holds it */
    int64_t lease_ns;  /* EXTEND */
    due_id from;       /* shared, PUT: its key may be taken over from that job; zeros: from none */
    int anew;          /* AMEND: 1: attempts and failures, which say what they were, are 0 then */
    int64_t paused;    /* TOPIC: 1: none of its jobs is claimed; 0; -1: as it is */
    int64_t held_max;  /* TOPIC: so many are held at a time; 0: any number; -1: as it is */
    uint64_t dead_max; /* shared, DROP of a dead job: only if more than so many are dead; 0: however
                          many */
    int keeps_pass;    /* shared, MOVE of what is held: 1: it keeps its group's pass while it waits;
                          0: the next of the group may come before it */
    int keeps_room;    /* shared, PUT: 1: it had room before, and is put whatever the capacity is */
    int revokes;       /* shared, DROP of what nobody holds and is not dead: 1: if somebody holds
                          it after all, it is not to come again */
} due_change;

/* How sure it is that a change that landed stays. */
enum due_durability {
    DUE_DURABLE_UNKNOWN = 0, /* the store cannot tell */
    DUE_DURABLE_NONE,        /* lost with the store's process */
    DUE_DURABLE_EVERYSEC,    /* on disk about a second later */
    DUE_DURABLE_ALWAYS       /* on disk before the answer */
};

/* What due_open() asks of a store. */
struct due_store_open {
    const char *name;            /* the queue's */
    int64_t until_ns;            /* give up: DUE_EBUSY */
    int64_t (*now)(void *clock); /* the queue's clock, for stores that compare it to their own */
    void *clock;
    void (*log)(void *queue, enum due_log_level level, const char *text); /* one line, no secrets */
    void *queue;
    uint64_t writer_min;  /* its writer is to be no lower than this, below 2^48: jobs are put whose
                             ids another store has given */
    uint64_t capacity;    /* join(): of the queue from now on, for all who share it; UINT64_MAX: it
                             has none any more; 0: it stays as it is */
    uint64_t by_priority; /* join(): 1: of jobs that are due the highest priority is to come first;
                             DUE_EINVAL: it is shared already, its order is another, and somebody
                             shares it or it has jobs; 0: it stays as it is, in a new queue by
                             time */
    uint64_t reserved[1]; /* zero */
};

/* What a store says of itself once it is open. */
struct due_store_info {
    uint64_t writer;                /* 48 bits: higher than that of every earlier opening */
    size_t batch_changes;           /* most changes of one batch */
    size_t batch_bytes;             /* most payload bytes of a batch; one change always fits */
    int64_t renew_ns;               /* how often to renew; DUE_FOREVER: never */
    enum due_durability durability; /* in force now */
    uint64_t jobs;                  /* about how many are stored */
    size_t payload_max;             /* most bytes of one payload; 0: as many as the queue takes */
    int put_again;                  /* 1: what it shows is right, but may not be after its next
                                       start: the queue writes everything again once it has read it,
                                       as after DUE_ELOST */
    int64_t held_ns;                /* what renew() would tell now; 0: that is asked */
    uint64_t capacity;              /* join(): of the queue; 0: it has none */
    uint64_t by_priority;           /* join(): 1: that is its order; 0: it is by time */
    uint64_t reserved[2];           /* zero */
};

/* Sees one stored job, or one kept key.  Answers 0 to go on, or an error that ends the call; of a
 * job in load(), DUE_ECORRUPT: what is said of it makes no sense.  Then the call goes on behind it,
 * and the store sets it aside if it can. */
typedef int due_store_visit(void *ctx, const due_record *record);
typedef int due_store_visit_key(void *ctx, const void *key, size_t len, due_id id,
                                int64_t until_ns);

/* Sees what holds back a topic: as in due_change.  Answers 0 to go on, or an error that ends the
 * call. */
typedef int due_store_visit_topic(void *ctx, const char *topic, int paused, int64_t held_max);

/* What due_stats_read() shows of a store. */
struct due_store_stats {
    uint64_t batches;               /* landed */
    uint64_t resent;                /* batches that were sent again because they had not landed */
    uint64_t connects;              /* */
    uint64_t bytes_out;             /* */
    uint64_t bytes_in;              /* */
    uint64_t quarantined;           /* damaged records set aside, as far as answers came */
    int64_t round_trip_ns;          /* of the last batch */
    enum due_durability durability; /* in force when last looked */
    int connected;                  /* 1: the last call found it so */
    uint64_t reserved[4];           /* */
};

typedef struct due_store due_store;
struct due_shared_verbs; /* due/store_shared.h */

struct due_store_verbs {
    size_t size; /* sizeof(struct due_store_verbs).  A shorter one is of an older header: it lacks
                    the verbs at the end, and is refused (DUE_EINVAL) without those that are needed,
                    which are all up to shared */

    /**
     * Take possession of the queue's jobs, alone, waiting up to how->until_ns for the last owner,
     * or for those who share them.  If they were shared they are not any more: who held one is
     * refused from then on, and it waits, with the attempts that are stored.  That may take longer.
     *
     * Errors:   DUE_EBUSY: somebody who lives owns it (host and pid in @error) or shares it;
     *           DUE_ESTORE: cannot be reached; DUE_EACCES; DUE_EVERSION: stored by a newer version;
     *           DUE_EDURABILITY: less than required, or it may drop jobs by itself; DUE_ENOTSUP:
     *           not a server, or not a stored queue, that can be used; DUE_ECORRUPT: what is stored
     *           is no queue; DUE_ELIMIT: too many topics; DUE_ENOSPC: too full for a new owner;
     *           DUE_ENOMEM
     */
    int (*open)(due_store *s, const struct due_store_open *how, struct due_store_info *info,
                due_error *error);

    /**
     * Be ready for a batch: reached, and still the owner's.  Cheap if nothing is wrong.
     *
     * Errors:   DUE_EAGAIN: not now, call again; DUE_EFENCED: somebody else owns the jobs, for
     *           good; DUE_ELOST: reached, but it has lost batches that had landed: the queue will
     *           put everything it holds again and drop what it does not know (said once for each
     *           loss).  A batch that was in doubt has then not landed: it may come again with other
     *           changes, and from then on a DROP or FORGET may be of what is not there, or of what
     *           is not as it says; DUE_EDURABILITY, DUE_EACCES: reached, but must not be used as it
     *           is now
     */
    int (*ready)(due_store *s, int64_t until_ns);

    /**
     * Make the changes of batch @number; if send() sent it, see what came of it.  After
     * DUE_EINDOUBT the queue calls again with the same number and the same changes, until another
     * answer comes; the store must find out whether the batch landed, and send it again only if it
     * did not.
     *
     * Errors:   DUE_EAGAIN: nothing was sent; DUE_EINDOUBT: sent, and no answer yet; DUE_ENOSPC:
     *           full, nothing of it landed; DUE_EFENCED: the same, and the jobs belong to somebody
     *           else now; any other: refused, nothing of it landed
     */
    int (*commit)(due_store *s, const due_change *changes, size_t n, uint64_t number,
                  int64_t until_ns);

    /**
     * Get batch @number ready for send(), in place of what was prepared before; the batch before it
     * may be under way.  A hint: what was prepared may be forgotten at any time, by the store, or
     * by the queue, which then gives other changes that number.  Does not wait.
     *
     * Errors:   any: nothing is prepared
     */
    int (*prepare)(due_store *s, const due_change *changes, size_t n, uint64_t number);

    /**
     * Send the batch that was prepared last, number @number, and do not wait for the answer.  The
     * batch before it has landed, and commit() has said so.  The changes stay as they were given,
     * and are given to commit() with that number: other calls may come before, and if one answers
     * DUE_ELOST this batch has not landed either.
     *
     * Errors:   DUE_EAGAIN: nothing was sent; the batch goes to ready() and commit()
     */
    int (*send)(due_store *s, uint64_t number, int64_t until_ns);

    /**
     * Show the next stored jobs, about @max of them, earliest first within a topic, and the dead
     * ones, in the order of death, at the end.  The first call begins; batches may be committed
     * between two calls.  A job is shown at least once if it is stored, and not PUT again, during
     * all of them; never after a DROP of it has landed, and never as it was before a MOVE or BURY
     * that has landed, also if it was read ahead.  @rewind: begin again, also if the answer is
     * DUE_EAGAIN; the next call, without it, goes on from there.
     *
     * Answers:  1: call again for more, of which there may be none; 0: that was the end
     * Errors:   DUE_EAGAIN: call again to go on; what @visit answered; as ready()
     */
    int (*load)(due_store *s, int rewind, size_t max, due_store_visit *visit, void *ctx,
                int64_t until_ns);

    /**
     * Show the job @id, if it is stored.
     *
     * Errors:   DUE_ENOENT; DUE_EAGAIN; as ready()
     */
    int (*find)(due_store *s, due_id id, due_store_visit *visit, void *ctx, int64_t until_ns);

    /**
     * Show the next keys that are kept, about @max of them, in any order; not those of live jobs,
     * which load() shows.  Else as load(): each that is kept during all of the calls at least once,
     * never after a FORGET of it has landed.  A time may be shown rounded up to whole microseconds.
     *
     * Answers:  1: more are left; 0: that was the end
     * Errors:   as load()
     */
    int (*keys)(due_store *s, int rewind, size_t max, due_store_visit_key *visit, void *ctx,
                int64_t until_ns);

    /**
     * Stay the owner.  *@held_ns: until then (CLOCK_BOOTTIME) nobody else can have become it.
     *
     * Errors:   as ready()
     */
    int (*renew)(due_store *s, int64_t *held_ns, int64_t until_ns);

    /**
     * Give up ownership, so that the next owner need not wait.  The object stays, until free().
     *
     * Errors:   none that matter: if it cannot be told, the next owner waits for the lease to end
     */
    int (*close)(due_store *s, int64_t until_ns);

    /* Make the call under way return early, once.  Any thread, any moment, also from a child. */
    void (*interrupt)(due_store *s);

    void (*stats)(due_store *s, struct due_store_stats *stats); /* any thread */
    void (*free)(due_store *s);                                 /* @forked children too: no I/O */

    const struct due_shared_verbs *shared; /* NULL: it cannot be shared */

    /* sizeof(due_change), as the store was built; 0: as when this was the first field that older
     * headers lack.  It tells what the sizes of verbs do not: in another layout than the library's
     * no change could be read, and the store is refused (DUE_EINVAL). */
    size_t change_size;

    /**
     * Show what holds back topics: each that is paused or limited, also by those who shared the
     * queue; others may be shown as neither.  NULL: such things cannot be stored, and the queue
     * keeps them in memory.
     *
     * Answers 0, or an error: as load(), or what @visit answered
     */
    int (*topics)(due_store *s, due_store_visit_topic *visit, void *ctx, int64_t until_ns);
};

/* A store begins with this. */
struct due_store {
    const struct due_store_verbs *verbs;
};

#ifdef __cplusplus
}
#endif

#endif
