/* rules.h - what must hold of a job that is handed out: its order, that its topic is not paused,
 * and that no more run than may.
 *
 *   Order   Whoever takes gets no job that is later than another of its topic which was in the
 *           queue when he began, if that one is then had by somebody who began when he had ended.
 *           It may have been in somebody's hand meanwhile: so not if it was reserved before, or
 *           looked at meanwhile, and not where calls give back what they have taken because there
 *           is no memory.  Nor if a put was under way, unless somebody took before that.
 *   Pauses  A call that began when a topic was paused gets none of its jobs until it is resumed;
 *           also in a later life, if the store keeps that.  But of a stored queue it may get what
 *           an earlier call has begun to take, and left: a poll, or one that was in doubt.
 *   Limits  A job runs from its hand-over until somebody says that it has ended: of a topic with a
 *           limit no more than so many run at a time, of a group one.  If the limit was changed
 *           that is so as soon as one of them came in after that.
 *   Turns   A topic of which a job is due is not passed over by call after call, if nobody else
 *           takes.
 *
 * Events are numbered: calls that begin and end.
 */
#ifndef SIMULATE_RULES_H
#define SIMULATE_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "plan.h"

struct book;

/* Of a job; part of its book. */
struct rule_facts {
    struct book *next; /* of those that are in the queue and have not been touched */
    struct book *last;
    int64_t at_ns;
    uint64_t in;     /* event in which it was told to be in; 0: not, or touched since */
    uint64_t passed; /* event in which somebody had a later one instead; 0: none */
    bool placed;     /* sorted in before it was due, so nobody else is at its limiter first */
    int group;       /* 0: none */
    unsigned since;  /* so often its topic's limit had been changed when it was asked for */
    bool running;    /* surely: handed out, and nobody has asked for its end */
    bool limited;    /* so by a call that began when its topic had had a limit: it counts */
    bool counted;    /* perhaps: nobody has been told of its end */
};

/* Of a call that takes; part of its caller. */
struct rule_call {
    uint64_t begun;   /* event */
    int64_t clock_ns; /* the queue's clock then */
    bool gap;         /* a put was under way: what is put behind it may not be seen yet */
    int64_t
        lease_until_ns; /* not before that do leases end that it has begun; DUE_FOREVER: it takes
                               for good */
};

void rules_begin(const struct plan *p);
void rules_life(void); /* a program begins, or owns the jobs from now on: nothing runs */
uint64_t rules_event(void);

void rules_puts(int more); /* so many more calls that put are under way */
void rules_call(struct rule_call *c);
void rules_in(struct book *b, int64_t at_ns); /* told to be in, due at @at_ns */
/* Somebody names it, has it, or it is gone: its order is not known any more. */
void rules_touched(struct book *b);
/* Has a call named it since this event?  Then somebody may have had it for a moment, in which it
 * did not wait: who reads many bytes of it, or changes it. */
bool rules_named_since(const struct book *b, uint64_t event);
/* @others take meanwhile. */
void rules_handed(struct book *b, const struct rule_call *c, const due_job *job, int64_t now_ns,
                  bool others);
void rules_left_out(void); /* a call that takes has left in doubt */
/* By a call that took of these topics, and no other took meanwhile. */
void rules_turn(const struct book *b, const struct rule_call *c, uint32_t topics);
void rules_ends(struct book *b);  /* somebody asks for its end */
void rules_ended(struct book *b); /* and is told of it */
/* May one more of its topic and group be let through, as far as is known? */
bool rules_free(const struct book *b);

/* It is asked for. */
void rules_new(struct book *b);
/* A call that gives the topic this limit, 0: none, begins; or ends: has it done so? */
void rules_limit_begins(int topic, unsigned limit);
void rules_limit_ends(int topic, unsigned limit, bool done);

void rules_pause_begins(int topic);
void rules_pause_ends(int topic, bool paused);

#endif
