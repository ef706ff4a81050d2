/* deaths.h - of which jobs may die by themselves: attempts that are limited, and time limits.
 *
 *   Limit     No job is handed out once more after its last attempt, nor by a call that began when
 *             its time was over.
 *   Counts    Each attempt is counted once, none is left out, and each but the last has failed.
 *             Where attempts are limited that holds over restarts too: none is counted again.
 *   Causes    A dead job says why, and that is so: somebody has buried it, for the reason given;
 *             or it has had all its attempts; or its time was over when it died.
 *   Retries   What is given back by its policy does not come before that says, nor much later.
 */
#ifndef SIMULATE_DEATHS_H
#define SIMULATE_DEATHS_H

#include <stdbool.h>
#include <stdint.h>

#include "plan.h"

struct book;
struct rule_call;

/* Of a job; part of its book. */
struct death_facts {
    uint8_t retry;      /* its own policy, among the plan's; 0: none */
    bool vague;         /* its limits are not known: another job may have brought it others */
    bool amended;       /* it may have had more attempts already than its policy allows */
    bool kicked;        /* perhaps: then it has no time limit any more */
    bool buried;        /* perhaps */
    bool all_seen;      /* each attempt, but for those that somebody is about to have */
    unsigned kicks;     /* under way */
    int64_t ttl_ns;     /* 0: none */
    int64_t expires_ns; /* likewise */
    uint64_t anew;   /* event in which it last began anew: of calls before that nothing is known */
    uint64_t seen;   /* a bit for each attempt since then that somebody had, */
    uint64_t maybe;  /* or of which that is not known */
    uint32_t failed; /* attempts that it had when it was last given back */
    uint32_t again;  /* its next attempt is this one once more; 0: not, or not known */
    uint64_t again_event; /* since then */
    uint32_t least;       /* that it has had at least in earlier lives, by the store */
};

void deaths_begin(const struct plan *p);
void deaths_life(struct book *b); /* a program begins */
/* May it die by itself? */
bool deaths_mortal(const struct book *b);
/* May it be dead, and go by itself?  Where only so many dead are kept, or not for long, whoever
 * finds that has it for a moment, and a call may miss it before on_discard is told. */
bool deaths_crowded_out(const struct book *b);
bool deaths_limited(const struct book *b); /* in its attempts */
/* Does it, if this attempt fails? */
bool deaths_last(const struct book *b, uint32_t attempts);

/* Its policy or its time limit is to be changed; by a call that was told so, and was the only one:
 * what is set is of enum due_set. */
void deaths_amend(struct book *b);
void deaths_amended(unsigned thread, struct book *b, unsigned what, unsigned retry, int64_t ttl_ns);

/* A call had it on a lease, or for good; @others take meanwhile. */
void deaths_handed(struct book *b, const struct rule_call *c, const due_job *job, bool others);
void deaths_handled(const struct book *b, const due_job *job); /* by a handler */
/* So it was by a call, which is told so. */
void deaths_given_back(struct book *b, const struct rule_call *c, uint32_t attempts);
/* It is asked to be put off: this attempt will not count; and is told so. */
void deaths_snooze(struct book *b, uint32_t attempts);
void deaths_snoozed(struct book *b, uint32_t attempts);
/* A kick of it begins, or has ended; NULL: of one whose name nobody was told. */
void deaths_kick(struct book *b);
void deaths_kicked(struct book *b);
/* A call that kicks all of a topic, -1: any, begins or has ended. */
void deaths_kick_all(int topic);
void deaths_kicked_all(int topic);
bool deaths_kicking(void);
/* It is listed, by a call that began in this event; NULL: as above. */
void deaths_listed(const struct book *b, const due_dead *dead, uint64_t begun);
/* A failure is the @failures-th: the least and the most that its policy lets it wait. */
void deaths_delay(const struct book *b, uint32_t failures, int64_t *least_ns, int64_t *most_ns);

#endif
