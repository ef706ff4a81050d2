/* limit.h - what stands between "due" and a topic's line: limits of topics, and groups.
 *
 * A limiter lets so many jobs through at a time: one of a group, or as many of a topic as its limit
 * says.  Each that is let through has a pass until it ends; the others wait at the limiter, in
 * their topic's order.  Takers know nothing of it: what stands in a line may be taken.
 *
 * Guards     I  set when it is made, then constant      T  the timeline lock      A  atomic
 */
#ifndef DUE__LIMIT_H
#define DUE__LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "due/due.h"
#include "mem/slab.h"
#include "queue/ready_line.h"

struct due__region;
struct due__topic;

/* Lists that a limiter may be in. */
enum due__limiter_list {
    DUE__LIMITERS_WAITED_AT, /* slots wait there */
    DUE__LIMITERS_REOPENED,  /* and it is open: before the release some are let through */
    DUE__LIMITER_LISTS
};

struct due__limiter {
    struct due_queue *queue;                       /* I */
    struct due__line line;                         /* T  who waits here */
    size_t running;                                /* T  passes that are out */
    size_t limit;                                  /* T  how many may be; 0: any number */
    struct due__limiter *next[DUE__LIMITER_LISTS]; /* T */
    struct due__limiter *prev[DUE__LIMITER_LISTS]; /* T */
    struct due__limiter *chain;                    /* T  of a group: the next in its bucket */
    uint32_t jobs;        /* A  U1 of group.c: the group's, delayed ones too */
    uint32_t hash;        /* I */
    uint16_t topic;       /* I */
    uint16_t len;         /* I  of the group's name; 0: the topic's own limiter */
    bool reopened;        /* T  in that list */
    unsigned char name[]; /* I */
};

#define DUE__LIMITER_SEGMENTS 23u /* of buckets: 64, then as many as there are, for 2^28 groups */

/* All limiters of a queue. */
struct due__limiters {
    struct due__limiter **segment[DUE__LIMITER_SEGMENTS]; /* T  groups by name: linear hashing */
    uint32_t buckets;                                     /* T  in use */
    size_t groups;                                        /* T */
    struct due__limiter *first[DUE__LIMITER_LISTS];       /* T */
    struct due__limiter *sweep;                           /* T  the next one a sweep looks at */
    size_t slots;  /* T  that wait at limiters, dead ones included */
    size_t passed; /* T  jobs with a pass */
    bool any;      /* T  there has been one */
    bool reading;  /* T  the store's jobs are being read: groups let nobody through */
};

/* Of a job with a group: which passes it has.  Any other job has its topic's, or none. */
#define DUE__PASS_GROUP 1u
#define DUE__PASS_TOPIC 2u

/* ---- Groups: group.c ---- */

/* The group of this name in @topic, with one job more.  DUE_ENOMEM.  Not under the lock. */
int due__group_join(struct due_queue *q, int topic, const void *name, size_t len,
                    struct due__limiter **group);
/* One job less.  Not under the lock. */
void due__group_part(struct due__limiter *group);

/* ---- Limits of topics: not under the lock ---- */

/* What a topic's first limit needs: a limiter, and chunks for its line; or nothing.
 * Guard: none, its maker's. */
struct due__limit_parts {
    struct due__limiter *limiter;
    struct due__region *chunks;
};

/* Made before, so that the limit can be set without fail; none for no limit.  DUE_ENOMEM. */
int due__limit_make(struct due_queue *q, int topic, size_t max_running,
                    struct due__limit_parts *parts);
void due__limit_unmake(struct due_queue *q, struct due__limit_parts *parts);
/* The parts are used, or given back.  False: it has had no limit so far, and there are no parts. */
bool due__limit_set(struct due_queue *q, uint32_t topic, size_t max_running,
                    struct due__limit_parts *parts);

/* ---- On the way to a line: under the lock ---- */

/* Slot @s, in the timeline's form, stands for a READY job that has a limiter: to the limiter, or
 * past it into the line of its topic. */
void due__limiter_arrive(struct due_queue *q, struct due__slot s);

/* Through limiters that have opened, up to a number.  False: more are to go. */
bool due__limiters_admit(struct due_queue *q);

/* ---- Passes ---- */

/* The caller's own job, with word @w, is not running any more: its passes go back, and its word is
 * to be the answer.  Under the lock. */
uint64_t due__limiter_return(struct due_queue *q, uint32_t number, uint64_t w);

static inline uint64_t due__limiter_left(struct due_queue *q, uint32_t number, uint64_t w)
{
    return (w & DUE__PASSED) ? due__limiter_return(q, number, w) : w;
}

/* The same of a CLAIMED job, without the lock; its word is changed. */
void due__limiter_leave(struct due_queue *q, uint32_t number);

/* ---- Back from a store ---- */

/* Before anybody else has the queue: it begins to read its jobs.  Not under the lock: it has. */
void due__limiters_hold(struct due_queue *q);
void due__limiters_open(struct due_queue *q);

/* Under the lock: a job that comes back had failed, and is to be tried again.  It has its group's
 * pass still, unless somebody else has.  What its word gets: DUE__PASSED, or 0. */
uint64_t due__limiter_resume(struct due_queue *q, struct due__job *j, struct due__facts f);

/* ---- All limiters ---- */

/* Between limit.c and group.c: the first slot of a limiter's line, under the lock; a limiter that
 * nobody knows any more; the groups in a bucket. */
struct due__slot due__limiter_pop(struct due_queue *q, struct due__limiter *g);
void due__limiter_free(struct due_queue *q, struct due__limiter *g);
struct due__limiter *due__group_first(struct due_queue *q, uint32_t bucket);

/* Under the lock: any slot that waits at a limiter, in its line's form.  False: none does. */
bool due__limiters_pop(struct due_queue *q, struct due__slot *s);

/* Under the lock: a sweep of all the limiters that are waited at now begins; a piece of it.  True:
 * it is over. */
void due__limiters_sweep_begin(struct due_queue *q);
bool due__limiters_sweep(struct due_queue *q, due__keep_fn *keep, size_t budget);

void due__limiters_destroy(struct due_queue *q);

/* The slow way, for tests, when no call is running: are lists, counts and passes right? */
bool due__limiters_check(struct due_queue *q);

#endif
