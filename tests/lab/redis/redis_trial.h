/* redis_trial.h - all that an owner does, from opening to closing, on a server of the test's own
 * behind the fault proxy: what each cell of a matrix of faults is made of.
 *
 * A call has TRIAL_ONCE, is back soon after it, and is made again while it answers DUE_EAGAIN or
 * DUE_EINDOUBT.  Any other error is shown to may(), which says whether it is to be; then the call
 * is made again too.  A batch that is answered with an error has not landed, one that is confirmed
 * has.  The first thing that is wrong ends the trial.
 *
 * Threads  a trial is one thread's, and so is its place while the trial runs
 */
#ifndef REDIS_TRIAL_H
#define REDIS_TRIAL_H

#include "lab/redis/redis_batches.h"

#define TRIAL_ONCE DUE_MS(400)
#define TRIAL_LATE DUE_S(3)    /* on a busy machine */
#define TRIAL_CPU  DUE_MS(300) /* of its thread, which waits: less than one call that spins */

struct trial {
    struct place *place;
    char name[32];                                          /* of the queue */
    bool (*may)(struct trial *t, const char *call, int rc); /* NULL: nothing may be */
    void *ctx;                                              /* of may() */
    const struct redis_server *replica;                     /* has what was confirmed, or NULL */

    due_store *store; /* NULL: not open */
    struct due_store_info info;
    uint64_t author;   /* the writer whose jobs they are; 0: itself */
    struct seen seen;  /* by trial_reads() */
    unsigned told;     /* errors that may() let pass */
    int64_t cpu_ns;    /* of the thread, when it began; and in the end, what it took */
    int64_t began_ns;  /* the call under way */
    const char *wrong; /* what was; NULL: nothing */
    int rc;            /* and what it answered */
};

/* On an empty server.  The name says which queue it is, so that what comes late is of no other. */
void trial_begin(struct trial *t, struct place *place, const char *matrix, size_t number);
/* An owner of the queue that lives in this process is as good as dead. */
bool trial_opens(struct trial *t);
void trial_gives(struct trial *t, unsigned char k); /* batch @k of redis_batches.h */
void trial_commits(struct trial *t, const due_change *changes, size_t n, uint64_t number);
/* The same of what a full server refuses. */
void trial_is_full(struct trial *t, const due_change *changes, size_t n, uint64_t number);
void trial_reads(struct trial *t);      /* all jobs, all kept keys */
void trial_stays(struct trial *t);      /* renews, and finds job 3 */
void trial_closes(struct trial *t);     /* if it is open; frees the store */
void trial_lives(struct trial *t);      /* all of this, with all batches */
void trial_takes_over(struct trial *t); /* and without any */
/* The same queue, by an owner of its own: its three batches are there.  Whatever stalled goes on
 * when he has it, and changes nothing. */
void trial_verify(struct trial *t);
/* True: nothing was wrong.  Else it is said, with @what. */
bool trial_end(struct trial *t, const char *what);

void trial_complain(struct trial *t, const char *what, int rc);
bool trial_has_landed(const struct trial *t, const struct redis_server *server, uint64_t number);
/* One command to the place's server, past the proxy. */
void trial_ask(const struct trial *t, const char *const *words);
#define TRIAL_ASK(t, ...) trial_ask(t, (const char *const[]){ __VA_ARGS__, NULL })

/* ---- Many of them ---- */

#define MATRIX_PLACES 8 /* most of a cell is waiting, so some are run at a time */

struct matrix {
    struct place places[MATRIX_PLACES];
    bool (*run)(struct place *place, size_t cell, void *ctx); /* true: as it should be */
    void *ctx;
};

/* False: there is no redis-server to be started. */
bool matrix_open(struct matrix *m);
void matrix_close(struct matrix *m);
/* [--every N] takes one cell of N in a row, each time another one of them; default all. */
void matrix_options(int argc, char **argv);
/* What is tried, and how much of it was as it should be. */
void matrix_say(const char *what, size_t right, size_t tried);
/* Of cells 0 to @cells - 1; *@tried, how many that were, and how many were as they should be, are
 * added to. */
void matrix_run(struct matrix *m, size_t cells, size_t *tried, size_t *right);

#endif
