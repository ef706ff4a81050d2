/* shared_shelf.h - the store of scenarios whose jobs many processes share: the queue that is
 * explored is one of them, or two are, and what the others do is up to the scenario.
 *
 * It knows who holds each job, under which lease and until when, and of each queue whether it
 * waits.  A call of it takes effect in one step, as a script of a server does.
 */
#ifndef DUE__EXPLORE_SHARED_SHELF_H
#define DUE__EXPLORE_SHARED_SHELF_H

#include "due/store_shared.h"
#include "explore.h"
#include "os/bell.h"

#define SHARED_JOBS   3u
#define SHARED_QUEUES 2u

enum shared_state { SHARED_NONE, SHARED_WAITS, SHARED_HELD, SHARED_DONE };

struct shared_shelf;

struct shared_job {
    due_id id;
    enum shared_state state;
    int64_t due_ns;   /* WAITS: from then on */
    uint64_t held;    /* HELD: by this lease; else by the last one; 0: there was none */
    int64_t until_ns; /* HELD: until then */
    const struct shared_shelf *by; /* HELD: by this queue; NULL: by another process */
    bool revoked;                  /* HELD: and cancelled meanwhile */
    unsigned content;              /* its bytes, and what they are known by */
    uint32_t attempts;
    uint32_t failures;
};

/* What the last exchange of a lane was answered. */
struct shared_answer {
    uint64_t number;
    uint64_t stamp;
    size_t n;                        /* what was sent: so many changes, */
    due_change changes[SHARED_JOBS]; /* these, */
    bool claims;                     /* and with a claim */
    size_t claimed;                  /* of so many jobs */
    int64_t lease_ns;
    int results[SHARED_JOBS];
    uint64_t held[SHARED_JOBS]; /* of each job: the lease of our claim; 0: not claimed */
    int64_t lapsed_ns[SHARED_JOBS];
};

/* What all processes see of it. */
struct shared_all {
    struct shared_job job[SHARED_JOBS];
    struct shared_shelf *queue[SHARED_QUEUES]; /* those that are explored */
    uint64_t stamp;                            /* of the last exchange of anybody */
    uint64_t leases;                           /* so many there have been */
    unsigned capacity;                         /* 0: none */
    unsigned turns;                            /* written where others may come before */
};

/* As one queue has it. */
struct shared_shelf {
    due_store head;
    struct shared_all *all;
    struct shared_job *job; /* of all */
    struct due__bell bell;  /* of listen() */
    bool rung;              /* and it has not said so yet */
    struct due_heard told;  /* nor this; alarm_ns 0: there is nothing */
    bool waits;             /* we are written down as those who wait, */
    int64_t alarm_ns;       /* until then; 0: until we are rung */
    bool counted;           /* we were rung, or our alarm is over, and we have not come yet */
    bool waits_room;        /* we are written down as those who wait for room */
    bool left;
    unsigned away;   /* exchanges that answer DUE_EAGAIN still, and did nothing */
    unsigned doubt;  /* exchanges that answer in doubt still, having taken effect */
    unsigned unsent; /* the first of these, of those with changes */
    unsigned unsure; /* and the second */
    unsigned resent; /* exchanges that came once more */
    struct shared_answer lane[2];
};

/* It is memory of the scenario; @beside: the same jobs, for another queue; NULL: its own. */
void shared_make(struct shared_shelf *it, const struct shared_shelf *beside);

/* Another process puts job @n, due at @due_ns; claims all that is due, for so long. */
void shared_put(struct shared_shelf *it, unsigned n, int64_t due_ns);
void shared_claim_elsewhere(struct shared_shelf *it, int64_t lease_ns);

/* By the store's clock the lease of job @n is over. */
void shared_over(struct shared_shelf *it, unsigned n);

/* Another process gives job @n other bytes, if it waits. */
void shared_amend(struct shared_shelf *it, unsigned n);

/* Another process cancels job @n, or, if somebody has it, sees to it that it does not come again:
 * DUE_EBUSY. */
int shared_revoke(struct shared_shelf *it, unsigned n);

/* Another process has done what it had to do with job @n, if it waits: did it?  Or puts it if there
 * is room: is there? */
bool shared_end_elsewhere(struct shared_shelf *it, unsigned n);
bool shared_put_if_room(struct shared_shelf *it, unsigned n);
/* Is there one that no other process has put? */
bool shared_has_put(const struct shared_shelf *it);
/* So many more may come. */
unsigned shared_room(const struct shared_shelf *it);

/* NULL: it was never there. */
struct shared_job *shared_get(struct shared_shelf *it, due_id id);
unsigned shared_number(const struct shared_shelf *it, const struct shared_job *job);

/* Something is due in the store, or a lease is over: anybody might claim it now. */
bool shared_due(const struct shared_shelf *it);

/* The store counts on this queue to come, and it has not: it was rung, or its alarm is over. */
bool shared_owes(const struct shared_shelf *it);

#endif
