/* taking_inside.h - a taking as taking.c and takings.c see it. */
#ifndef DUE__TAKING_INSIDE_H
#define DUE__TAKING_INSIDE_H

#include "store/taking.h"

/* How the change of a job has ended; otherwise what the store said, or 0: it has landed. */
enum {
    DUE__PENDING = 1, /* not yet */
    DUE__GONE = 2     /* nobody of the taking is concerned with it any more */
    /* DUE__LEFT: the same, but its round is held still */
};

struct due__taking {
    struct due__submission submission; /* D */
    struct due__taking *next;          /* D */
    enum due__purpose purpose;         /* O  TAKE or ATTEMPT */
    size_t room;                       /* I  jobs */
    bool was_left;                     /* O  the call that began it has gone */
    size_t n;                          /* O */
    size_t rounds;                     /* O  so many of them repeat: of those a round is taken */
    struct due__slot *slots; /* O  in the order in which they were taken, and are handed out */
    uint32_t *numbers;       /* O  their places */
    uint8_t *purposes;       /* O  of each: enum due__purpose; NO_CHANGE: it is leased as it is */
    int *results;            /* D  and what became of each */
    due_id *ids;             /* O  and what they are called */
    due_job *jobs;           /* O  of the rounds, filled in */
};

/* Is a round taken of job @i? */
static inline bool due__taking_is_round(const struct due__taking *t, size_t i)
{
    return t->purposes[i] == DUE__ROUND;
}

/* ---- taking.c ---- */

/* The taken jobs are to be left in the inbox.  NULL: no memory, and they wait again. */
struct due__taking *due__taking_begin(struct due_queue *q, const struct due__slot *slots, size_t n,
                                      enum due__purpose purpose);
/* Nothing is left of it. */
void due__taking_end(struct due_queue *q, struct due__taking *t);
/* What was not sent waits again. */
void due__taking_take_back(struct due_queue *q, struct due__taking *t);
/* What was refused waits again.  If nobody will know whether a job has left, who sends has shown it
 * to on_discard; its id is kept for who took it, among the first: how many of those there are. */
size_t due__taking_sort_out(struct due_queue *q, struct due__taking *t);
/* What has become of job @i; 0: it has landed, and nobody has had it. */
int due__taking_result(struct due__commits *c, const struct due__taking *t, size_t i);
static inline bool due__taking_landed(struct due__commits *c, const struct due__taking *t, size_t i)
{
    return due__taking_result(c, t, i) == 0;
}
/* Somebody has. */
void due__taking_had(struct due__commits *c, struct due__taking *t, size_t i);
/* Is it of the topics that the request wants? */
bool due__taking_wanted(const struct due_queue *q, const struct due__request *r,
                        const struct due__taking *t, size_t i);
/* What a taking for the request is about. */
enum due__purpose due__taking_purpose(const struct due__request *r);
/* A job that has left the store, or had an attempt counted, for nobody: it goes back there, to be
 * sent. */
void due__taking_give_back(struct due_queue *q, struct due__taking *t, size_t i);
/* The same of one that was cancelled meanwhile: it goes. */
void due__taking_revoke(struct due_queue *q, struct due__taking *t, size_t i);
/* Nothing of it is under way, or has landed and is nobody's; and the same under the calls' lock. */
bool due__taking_empty(const struct due__taking *t);
bool due__taking_over(struct due__commits *c, const struct due__taking *t);
/* All that stand in a list, and their memory. */
void due__taking_drop_all(struct due_queue *q, struct due__taking *t);

/* ---- takings_left.c ---- */

/* Under the calls' lock: it is left in the list; or the one that @at points to is taken out, and is
 * the caller's. */
void due__takings_add(struct due__commits *c, struct due__taking *t);
struct due__taking *due__takings_take(struct due__commits *c, struct due__taking **at);
/* Something has landed that was left: all who take look. */
void due__takings_call(struct due_queue *q);
/* It is over, and left; its rounds stay for whoever comes, as of a poll, and the others go back
 * into the store.  True: some do, and are to be sent. */
bool due__taking_give_plain(struct due_queue *q, struct due__taking *t);
/* It is over, and what is left of it was for nobody: true: something goes back into the store, and
 * is to be sent. */
bool due__taking_return(struct due_queue *q, struct due__taking *t);

#endif
