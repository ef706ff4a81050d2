/* rounds.h - what must hold of jobs that come again.  The ledger is not told of them: to it each of
 * their hand-overs is a call that had nothing.
 *
 *   Once      Two rounds of a job that were done with have not the same deadline, and none comes
 *             that is not later than one that was done with before it was asked for.
 *   When      The deadline of the next round follows from that of the last one, or from when that
 *             was done with; no round comes before its own.
 *   Bytes     It comes with what it was enqueued with, or what an update gave it.
 *   End       A job that was cancelled does not come again, nor one that was cancelled while
 *             somebody had it; and who has never been cancelled is there when it is asked for by
 *             its name in the end.
 *
 * Over restarts all this holds of what was confirmed.
 */
#ifndef SIMULATE_ROUNDS_H
#define SIMULATE_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

#include "plan.h"

struct book;
struct rule_call;

#define ROUNDS_KEPT 16u

/* Of a job; part of its book. */
struct round_facts {
    int64_t every_ns; /* 0: it does not come again */
    enum due_repeat kind;
    unsigned handled;          /* times by a pool */
    uint64_t of;               /* of bytes that an update has brought: the number of the job */
    uint64_t anew;             /* event in which its time was last changed, or may have been */
    int64_t done[ROUNDS_KEPT]; /* deadlines of the last rounds since then, in no order */
    unsigned n_done;
    uint64_t done_event; /* in which the last of them was told */
    int64_t done_most_ns;
    int64_t handed_most_ns; /* the latest deadline with which it came */
    bool known;             /* what comes next, unless somebody is about to have it: */
    uint64_t known_event;   /* since then */
    int64_t next_ns;        /* the earliest deadline that it may have */
    int64_t next_most_ns;   /* and the latest */
    uint64_t ended;         /* event in which it was told to have been cancelled; 0: not */
    bool doubt;             /* it may have been, or not be there at all */
    uint64_t told;          /* event in which somebody was last told to have a round */
    uint64_t unsure;        /* event in which a round was last done with, none knows which */
    bool late;              /* that was taken for good, perhaps before the job was named */
};

void rounds_begin(const struct plan *p);
void rounds_new(struct book *b);
void rounds_life(struct book *b);
bool rounds_repeats(const struct book *b);
/* May the job of this id be one that comes again?  @b: its book; NULL: nobody has seen it. */
bool rounds_maybe(const struct book *b);

/* Somebody names it, and may change when it comes; or has done so. */
void rounds_named(struct book *b);
/* Handed out, with bytes of @number; @others take meanwhile. */
void rounds_handed(struct book *b, const struct rule_call *c, const due_job *job, uint64_t number,
                   int64_t now_ns, bool others);
void rounds_handled(struct book *b, int64_t deadline_ns); /* handed to a handler */
void rounds_asked(struct book *b); /* its round may be done with from now on */
/* It was taken for good, or acked, by the call @c, which is told so: that round is done with.
 * Answers whether the next one is known: it is due at next_most_ns at the latest. */
bool rounds_done(struct book *b, const struct rule_call *c, int64_t deadline_ns, int64_t now_ns);
void rounds_ended(struct book *b); /* a cancel is told that nobody will get it any more */
void rounds_doubt(struct book *b);

#endif
