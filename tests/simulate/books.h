/* books.h - what the ledger of the crash tests does not know: how long a call may take, who waits
 * for what, how many jobs are inside, from which topic a job comes.
 *
 * Of each job the books keep the latest time at which it must have become due, where that is known;
 * so they can tell, whenever nobody can go on, that nobody waits for a job that is there.
 *
 * Of several programs that want one queue the books are those of its owner.  A call that a program
 * begins when it was replaced must fail, whether it knows that already or not; but that it may have
 * for good what had left the store before.
 */
#ifndef SIMULATE_BOOKS_H
#define SIMULATE_BOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contents.h"
#include "deaths.h"
#include "plan.h"
#include "rounds.h"
#include "rules.h"

#define BOOKS_JOBS    16384u
#define BOOKS_ANY     UINT32_MAX /* any topic */
#define BOOKS_CALLERS 8u
#define BOOKS_NAMED   6u /* by one call */

/* What a call waits for.  WAIT_LOOK: it changes nothing; WAIT_CLEAR: it may have any job. */
enum book_wait { WAIT_NONE, WAIT_JOB, WAIT_ROOM, WAIT_OTHER, WAIT_LOOK, WAIT_CLEAR };

/* A job; it may come to carry the number of another one, which has replaced what it carried. */
struct book {
    due_id id;
    bool met;  /* its id is known */
    int topic; /* number among the plan's */
    bool keyed;
    bool carried; /* it is a pointer */
    bool told;    /* put, and told so */
    uint64_t told_event;
    bool gone;             /* left, and told so, */
    bool gone_maybe;       /* by an ack that found it cancelled, unless another cancel had it */
    uint64_t gone_event;   /* last in this one */
    bool shown;            /* to on_discard, by a queue with a store: */
    uint64_t shown_event;  /* last in this one; 0: not, or the ledger knows it */
    uint64_t shown_number; /* of its bytes */
    bool ending;           /* it repeats, and a handler cancels it, at whatever time */
    bool revoked;          /* cancelled while somebody had it: it leaves when he gives it back */
    uint8_t calls;         /* under way that name it, */
    uint8_t looks;         /* of these: that leave it where it is */
    uint8_t lent;          /* to so many, who have its bytes */
    uint64_t revoked_event;
    uint64_t returned; /* event in which a call that names it was last answered */
    uint32_t serial;   /* of the last one that began */
    uint64_t owner;    /* who was told of it last: store_taken() */
    /* It is due by then unless somebody says otherwise; DUE_FOREVER: not known. */
    int64_t due_by_ns;
    uint64_t due_since;   /* event since which that is known */
    uint64_t denied;      /* event in which somebody was told that it is not there; 0: none */
    int64_t lease_end_ns; /* whoever had it on a lease has it no longer than this */
    struct rule_facts rule;
    struct death_facts death;
    struct round_facts round;
    struct content_facts content;
};

/* A call under way. */
struct caller {
    enum book_wait wait;
    unsigned process; /* the machine's, in which it runs */
    uint32_t topics;  /* WAIT_JOB: a bit for each */
    bool replaced;    /* another program owned the jobs when it began, */
    bool fails;       /* and it must fail */
    bool waited;      /* it has been asleep in the queue: it may be freed before the call returns */
    int64_t begun_ns;
    int64_t clock_ns; /* what the queue's clock showed then */
    int64_t timeout_ns;
    int64_t lease_ns;                 /* for which it takes jobs; DUE_FOREVER: for good */
    struct book *job;                 /* that is named; or NULL */
    bool looks;                       /* and stays where it is */
    struct book *others[BOOKS_NAMED]; /* that are named too */
    unsigned n_others;
    uint32_t serial;
    bool alone; /* no other call that names it was under way when this one began */
    struct rule_call rule;
};

void books_begin(const struct plan *p, int64_t (*now)(void));
void books_names_begin(const struct plan *p); /* parts of that */
void books_looks_begin(const struct plan *p); /* */
int64_t books_now(void);                      /* what the queue's clock shows, without a step */
void books_life(void); /* the running program, or one that begins, owns the jobs: nobody has
                          called yet, nor has he a job */
uint64_t books_count(void);
uint64_t books_new(void);                /* the number of a new job, or of new bytes for one */
struct book *books_job(uint64_t number); /* that began with it; NULL: none */
uint64_t books_number(const struct book *b);
struct book *books_find(due_id id);                  /* NULL: nobody has seen it */
struct book *books_meet(uint64_t number, due_id id); /* the job of this id, seen with that number */
void books_each_unmet(void (*what)(struct book *b)); /* whose id is not known */

/* @thread calls: it may wait so long. */
void books_call(unsigned thread, enum book_wait wait, uint32_t topics, int64_t timeout_ns);
void books_lease(unsigned thread, int64_t lease_ns);  /* and takes jobs for so long only */
void books_name(unsigned thread, struct book *b);     /* and what it calls names this job */
void books_name_too(unsigned thread, struct book *b); /* one of several */
void books_looks_at(unsigned thread, struct book *b); /* and moves it not */
void books_return(unsigned thread, int rc);
/* What it calls has shown the job. */
void books_seen(unsigned thread, const struct book *b, const struct content *seen);
void books_remaining(unsigned thread, const struct book *b, int64_t least_ns, int64_t most_ns);
uint64_t books_bytes(unsigned thread, const struct book *b); /* contents_bytes() */
/* It says that nothing is due before that; or that these are all that wait, by number. */
void books_next(unsigned thread, int64_t next_ns);
/* Nobody else has taken jobs since it began, and nobody does. */
bool books_undisturbed(unsigned thread);
/* The call of a thread; and have others taken jobs since it began, or may they be about to? */
struct caller *books_caller(unsigned thread);
bool books_taken_since(const struct caller *c);
/* Nobody else is in a call. */
bool books_alone(unsigned thread);
void books_listed(unsigned thread, const bool *listed);
/* The job that was named does not run, if nobody has named it since. */
void books_ended(unsigned thread);
/* It is said not to be there; or to be somebody's. */
void books_denied(unsigned thread);
void books_not_there(struct book *b); /* likewise, one of several */
void books_busy(unsigned thread);
void books_key_taken(unsigned thread, const struct book *own); /* to what would be a job of it */
void books_unknown(unsigned thread); /* to a call that would find it, be it dead */
/* Whoever has it asks for something that concerns its lease, for so long from now on; 0: not. */
void books_holder(struct book *b, int64_t lease_ns);
void books_holder_told(struct book *b);
/* It is due by then, if nobody else has named it meanwhile. */
void books_due_by(unsigned thread, int64_t due_by_ns);

/* A call that clears this topic, -1: any, begins or ends; and is told that it has done so. */
void books_clears(int topic);
void books_cleared(unsigned thread, int topic);

void books_put_asked(void);
void books_put_refused(void);
void books_put(struct book *b, int64_t due_by_ns);
void books_gone(struct book *b);
void books_discarded(struct book *b); /* it is about to be, so far as figures go */
void books_revoked(struct book *b);
/* With bytes of @number. */
void books_handed(unsigned thread, struct book *b, uint64_t number, int topic, const due_job *job);
void books_let_go(struct book *b); /* who was handed it has not its bytes any more */
/* Taken for good, or acked, and told so: it has left, or waits for its next round. */
void books_done(unsigned thread, struct book *b, int64_t deadline_ns, bool acked);
void books_given_back(unsigned thread, uint32_t attempts);         /* the job that was named */
void books_handled(struct book *b, int topic, const due_job *job); /* some time ago */
uint64_t books_inside(void); /* but for those that were revoked */
uint64_t books_left(void);   /* so many have left, or were refused, and somebody was told */
/* No more than so many can be inside, if as many as @left_before had left before. */
uint64_t books_inside_most(uint64_t left_before);

/* Nobody can go on unless time passes. */
void books_idle(void);
void books_closed(unsigned thread); /* a close has answered 0, by the program of this thread */
/* Is this thread in a call in which it has waited? */
bool books_waits(unsigned thread);

#endif
