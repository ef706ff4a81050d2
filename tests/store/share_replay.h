/* share_replay.h - a history of a shared store, and whether a model gives the same answers.
 *
 * Each exchange is written down with what was asked and answered.  Stamps are the store's own
 * order: the exchanges of all processes, sorted by them, are run through a model that is simple
 * enough to be right, which must answer each change in the same way and have the same jobs to be
 * claimed.  No search: one pass.
 *
 * Threads  one history each; replay_add() brings several together
 */
#ifndef SHARE_REPLAY_H
#define SHARE_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "due/store_shared.h"

struct replay_exchange;

struct replay {
    struct replay_exchange *exchanges;
    size_t n;
    size_t room;
    uint64_t seen;     /* the content of the job that was looked at last */
    int64_t grain_ns;  /* times are rounded up to that; 0: exact */
    uint64_t capacity; /* of the queue; 0: it has none */
    bool by_rank;      /* its order is by priority */
    int log;           /* what is written down goes to that file alone; 0: it stays here */
    bool may_be_full;  /* the store may have answered DUE_ENOSPC */
    bool keeps;        /* what was confirmed is not lost */
    bool more;         /* a queue made the exchanges: see share_model.h */
    struct replay_lost *lost;
    size_t n_lost;
    struct replay_turn *turns;
    size_t n_turns;
    struct replay_evicted *evicted;
    size_t n_evicted;
    size_t left; /* by a check: jobs that wait or are held in the end, */
    size_t dead; /* and dead ones */
};

/* A job was looked at: an AMEND, or a DROP with a mark, believes that it is so. */
void replay_seen(struct replay *r, const due_record *record);
/* An exchange begins; what is asked for is copied, but for keys and groups, which have to stay. */
void replay_asked(struct replay *r, const due_change *changes, size_t n,
                  const struct due_claim *claim);
/* It shows a claimed job; forgotten when it is asked for once more. */
void replay_shown(struct replay *r, const due_claimed *job);
void replay_again(struct replay *r);
/* It was answered.  An exchange that never is has to be taken out: nobody knows about it. */
void replay_answered(struct replay *r, const int *results, const struct due_exchange *answer);
void replay_unanswered(struct replay *r);

/* Whatever has a stamp between these is gone from the store, as if it had not been. */
void replay_lost(struct replay *r, uint64_t above, uint64_t below);

/* The store's clock was turned between these times, both monotonic: it may have shown @peak_ns
 * before that, and is ahead of that clock by @ahead_ns since. */
void replay_turned(struct replay *r, int64_t from_ns, int64_t to_ns, int64_t peak_ns,
                   int64_t ahead_ns);
/* Was it, between these times?  The first that is said is none. */
bool replay_was_turned(const struct replay *r, int64_t from_ns, int64_t to_ns);
/* That writer is turned out by then (monotonic), and makes no exchange any more. */
void replay_evicted(struct replay *r, uint64_t writer, int64_t at_ns);

/* What the other one has written down, too; it is empty then. */
void replay_add(struct replay *r, struct replay *other);
/* NULL: the model gave the same answers; else what differs, valid until the next call. */
const char *replay_check(struct replay *r);
void replay_free(struct replay *r);

#endif
