/* contents.h - what a job is: its deadline, its priority, its bytes, its headers; so far as that is
 * known.
 *
 *   Lanes   A call that may change a job keeps its lane; one that may change any job of a key keeps
 *           that key's.  Where two keep one lane at a time it is not known which was first, and
 *           what they may have changed is not known from then on.
 *   Looks   Who has the job, finds it, lists it or peeks at it must see just what is known, if
 *           nobody has kept its lane since he began.
 */
#ifndef SIMULATE_CONTENTS_H
#define SIMULATE_CONTENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "plan.h"

struct book;

enum content_field {
    CONTENT_TIME = 1,
    CONTENT_PRIORITY = 2,
    CONTENT_BYTES = 4,
    CONTENT_HEADERS = 8,
    CONTENT_ALL = 15
};

struct content {
    unsigned fields;  /* that are known, or changed */
    int64_t least_ns; /* of its deadline */
    int64_t most_ns;
    bool timed; /* changed: its deadline was said, and not counted from a clock */
    int priority;
    uint64_t bytes;   /* the number that they follow from */
    uint64_t headers; /* likewise; 0: it has none */
};

struct content_lane {
    unsigned calls; /* under way */
    bool overlap;   /* two or more of them were so at a time */
    uint64_t event; /* in which the last of them ended */
};

/* Of a job; part of its book. */
struct content_facts {
    struct content is;
    bool moved;               /* perhaps it waits for another time than its deadline */
    bool never;               /* an enqueue with this number has begun no job */
    unsigned key;             /* 0: none */
    struct content_lane lane; /* if it has no key */
};

void contents_begin(const struct plan *p);
void contents_life(void); /* a program begins, or owns the jobs from now on */

/* A call asks for a change of it, and is told so.  False: it is not known what it has changed. */
void contents_ask(struct book *b);
bool contents_told(struct book *b, int rc, const struct content *change);
/* An enqueue of @own by a key was told that the job @b has what it brought, by its policy. */
void contents_enqueued(struct book *own, struct book *b, enum due_key_policy policy,
                       const struct content *brought);
/* Whoever had it may have given it back: it waits for whatever. */
void contents_moved(struct book *b);
void contents_forget(struct book *b);

/* It was seen so, by a call that began in this event. */
void contents_seen(const struct book *b, uint64_t begun, const struct content *seen);
/* Does it wait for its deadline, which is ahead? */
bool contents_timed(const struct book *b);
/* A call that began in this event says so of its deadline. */
void contents_remaining(const struct book *b, uint64_t begun, int64_t least_ns, int64_t most_ns);
/* The number that its bytes follow from; 0: that is not known. */
uint64_t contents_bytes(const struct book *b, uint64_t begun);

#endif
