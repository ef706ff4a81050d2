/* key_table.h - unique keys: which job has one, and which are kept after their job is done.
 *
 * Each job with a key has a node of its own, which its front points to.  Of the nodes with the same
 * bytes one at most is in the table, and its job has the key; a job whose key was taken over goes
 * on without it.  When the job is done, a node that is to be kept becomes the table's.
 */
#ifndef DUE__KEY_TABLE_H
#define DUE__KEY_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "due/due.h"
#include "mem/inbox.h"
#include "os/lock.h"

struct due__extras;
struct due__job;

#define DUE__KEY_SHARDS 64u

struct due__key {
    struct due__key *next; /* X  in its chain */
    uint64_t hash;         /* I */
    int64_t term_ns;       /* X  how long it is kept when its job is done; of a kept one: until */
    union {
        due_id id; /* X  of a kept one, and over one: the job that had it; shared: from which it is
                      to be taken over */
        struct due__key *under; /* X  else: whose it was, and is again if this is refused */
    } of;                       /* X */
    int64_t kept_ns;       /* X  until when the store keeps it: over a kept one, for that job; of
                                      a job that has left the store: for this one; else 0 */
    uint32_t place;        /* X  of its job, plus 1; 0: it is kept */
    uint32_t generation;   /* X */
    uint8_t len;           /* I */
    bool linked;           /* X  it is in the table */
    bool over_kept;        /* X  the store has it as kept, until it has the job */
    bool returns;          /* X  its job has left the store, and is on its way back */
    bool gone;             /* X  a call has answered that its job leaves, before the store did */
    bool gone_kept;        /* X  and keeps the key */
    bool changed;          /* O  another call than its job's own has changed the job */
    uint8_t on_key;        /* I  enum due_key_policy of the enqueue */
    unsigned char bytes[]; /* I */
};

/* Nodes whose hashes are alike.  Most looks are for a key that is not there, and see that by the
 * filter, without a look at any node. */
struct due__key_chain {
    struct due__key *first; /* X */
    uint64_t filter;        /* X  a bit for each node, by its hash */
};

struct due__key_shard {
    struct due__lock lock; /* X */
    uint32_t count;        /* A  nodes: written under X, and for others a bound */
    uint32_t room;         /* A  chains, a power of two, or 0: likewise */
    uint32_t kept;         /* A  of the nodes, those that are kept: likewise */
    uint32_t hand;         /* X  the chain to look at next for what need not be kept any more */
    uint32_t old_room;     /* X  chains of the table that is being left */
    uint32_t moved;        /* X  of those, moved to the other */
    uint32_t spent_room;   /* X */
    struct due__key_chain *chain; /* A  written under X, and for others a hint */
    struct due__key_chain *old;   /* X  the table that is being left, or NULL */
    struct due__key_chain *spent; /* X  one that was left, to be freed after the release */
} __attribute__((aligned(DUE__LINE)));

struct due__keys {
    uint64_t seed[2];                             /* I */
    struct due__key_shard shard[DUE__KEY_SHARDS]; /* X  each its own */
};

/* A key as a call names it. */
struct due__key_name {
    const void *bytes;
    size_t len;
    uint64_t hash;
};

/* What spec->more points to of an enqueue that is to take its key over from a job, in a shared
 * queue: its on_key is DUE__KEY_TAKE_OVER. */
struct due__key_taking {
    due_extra more; /* first */
    due_id from;
};

#define DUE__KEY_TAKE_OVER UINT8_MAX

/* A node that is in no table; NULL: no memory.  The first one makes the table. */
struct due__key *due__key_new(struct due_queue *q, const due_extra *x);
/* Nodes that are in no table, through next, go back. */
void due__key_drop(struct due_queue *q, struct due__key *first);

/* ---- Within a shard ---- */

struct due__key_shard *due__key_enter(struct due__keys *keys, uint64_t hash);
void due__key_leave(struct due_queue *q, struct due__key_shard *it);

/* The key's shard, entered, if the key is that job's still; or NULL.  Until it is left nobody takes
 * the key over. */
struct due__key_shard *due__key_enter_of(struct due_queue *q, const struct due__key_name *name,
                                         uint32_t number, uint32_t generation);

/* The node with these bytes that is in the table, or NULL. */
struct due__key *due__key_find(struct due__key_shard *it, const void *bytes, size_t len,
                               uint64_t hash);
/* @key is in the table from here on, in the stead of @was, unless that is NULL. */
void due__key_link(struct due__key_shard *it, struct due__key *key, struct due__key *was);

void due__key_unlink(struct due__key_shard *it, struct due__key *key);
/* @by more of them are kept. */
void due__key_count_retained(struct due__key_shard *it, uint32_t by);
/* What need not be kept any more, of the next @chains chains and at most @max, is put before @gone;
 * how many. */
uint32_t due__key_sweep(struct due__key_shard *it, uint32_t chains, uint32_t max, int64_t now_ns,
                        struct due__key **gone);

/* ---- key_owner.c: the life of a job with a key ---- */

/* A job of the caller's own ends; @done: by being handed out or acked, so that its key may be kept.
 * Called while the job's place is the caller's still. */
void due__key_end(struct due_queue *q, uint32_t number, bool done);

/* A job did not come in after all: its key is whose it was before.  @front: its own, or NULL. */
void due__key_undo(struct due_queue *q, struct due__extras *extras);

/* A job has come in, or is in the store again: nobody gets its key back. */
void due__key_settled(struct due_queue *q, uint32_t number);

/* What the store is to be told of a job's key. */
struct due__key_told {
    bool has;      /* it is the job's still */
    bool was_kept; /* it may be kept there */
    bool free;     /* it is nobody's any more */
    uint32_t by; /* place plus 1 of who is taking it over, if that is not in the store yet; or 0 */
};

/* Has another job taken it over? */
bool due__key_lost(const struct due_queue *q, const struct due__key *key);

struct due__key_told due__key_tell(struct due_queue *q, const struct due__key *key);

/* May the store keep the key, as far as the queue knows? */
bool due__key_may_be_retained(struct due_queue *q, const void *bytes, size_t len);

/* A call is about to answer that a job of the caller's has left, as soon as that is on its way to
 * the store: acked (@done), cancelled or cleared.  And: the store has refused it. */
void due__key_gone(struct due_queue *q, uint32_t number, bool done);
void due__key_stays(struct due_queue *q, uint32_t number);

/* A job of the sender's has left the store, which keeps its key until @until_ns. */
void due__key_retained(struct due_queue *q, uint32_t number, int64_t until_ns);
/* With its shard, and with a store its key (K of sender.h): does the store keep it?  So also if the
 * removal of its job has landed, and whoever has taken that has not got it yet; but not if the job
 * is on its way back. */
bool due__key_is_retained(const struct due_queue *q, const struct due__key *key);
/* The job has left the store for nobody, and is put in again. */
void due__key_returns(struct due_queue *q, uint32_t number);

/* A key from the store is the job's (@place is the job's, plus 1) or kept until @until_ns, unless
 * a later job has it.  @key: the caller's, and the table's from here on, or of its job. */
void due__key_restore(struct due_queue *q, struct due__key *key, due_id id);

/* ---- All of them ---- */

/* Of shard @shard what need not be kept any more, at most @max, of the next @chains chains: out of
 * the table, and before *@gone.  How many. */
uint32_t due__keys_take_expired(struct due_queue *q, uint32_t shard, uint32_t chains, uint32_t max,
                                struct due__key **gone);
/* One of those is in the table again, as the store has not forgotten it.  False: its key is
 * somebody's by now, who has taken over what is kept. */
bool due__key_relink(struct due_queue *q, struct due__key *key);

/* What is known of a kept key. */
struct due__retained_key {
    due_id id;
    int64_t until_ns;
    size_t len;
    unsigned char bytes[DUE_KEY_MAX];
};

/* How far somebody has come with a shard: the next key is in this chain, and of those there that
 * have not been had the one with the least hash.  Others may come and go meanwhile. */
struct due__keys_at {
    uint32_t chain;
    uint32_t room; /* of the table; 0: it was not looked at */
    uint64_t hash; /* the least one that was not had */
};

/* Copies of at most @max of the shard's kept keys, from *@at on, which begins as zeroes.  How many.
 * There are more only if that comes to @max, or if the next ones, whose hashes are the same, are
 * more than that: *@all says that there are none. */
uint32_t due__keys_copy_retained(struct due_queue *q, uint32_t shard, struct due__keys_at *at,
                                 struct due__retained_key *kept, uint32_t max, bool *all);

/* What need not be kept any more goes. */
void due__keys_sweep(struct due_queue *q);
void due__keys_free(struct due_queue *q, bool forked);
/* The node of one job, in a child after fork. */
void due__key_drop_forked(struct due_queue *q, struct due__key *key);

#endif
