/* shelf.h - the store of scenarios: what has landed, job by job, and how it fails. */
#ifndef DUE__EXPLORE_SHELF_H
#define DUE__EXPLORE_SHELF_H

#include "due/store.h"
#include "explore.h"

#define SHELF_JOBS 4u

struct shelf_job {
    due_id id;
    bool there;
    size_t len;
    size_t headers_len;
    int64_t until_ns;
};

/* Of the only key there is. */
enum shelf_key { SHELF_KEY_FREE, SHELF_KEY_OF_JOB, SHELF_KEY_KEPT };

struct shelf {
    due_store head;
    size_t batch_max;
    bool closed;
    bool fenced;      /* somebody else has the jobs */
    unsigned away;    /* calls of ready that fail still */
    unsigned doubt;   /* calls of commit that answer in doubt still, the batch having landed */
    unsigned deaf;    /* calls of commit that hear nothing still: DUE_EAGAIN */
    unsigned full;    /* calls of commit that take nothing but removals still */
    unsigned refuses; /* calls of commit that take nothing still: DUE_EACCES */
    bool ahead;       /* batches are sent ahead */
    size_t room;      /* bytes that may be on their way to it; 0: any */
    uint64_t number;
    uint64_t answered;
    unsigned dropped;        /* jobs, so far */
    const due_record *shown; /* what is loaded; ids are given by their order */
    size_t n_shown;
    const due_change *prepared;
    size_t n_prepared;
    struct shelf_job job[SHELF_JOBS];
    enum shelf_key key;
    due_id key_id;
    bool paused; /* the only topic there is */
};

/* It is memory of the scenario. */
void shelf_make(struct shelf *it, size_t batch_max);
/* It fails no more. */
void shelf_mend(struct shelf *it);
/* NULL: it is not there. */
const struct shelf_job *shelf_get(const struct shelf *it, due_id id);
unsigned shelf_count(const struct shelf *it);

/* A queue that was opened with it need not read it first: there is nothing, and that is no part of
 * these scenarios. */
void shelf_loaded(due_queue *q);

/* In idle: nothing is left to be sent, and nobody waits for what has ended. */
void shelf_at_rest(const due_queue *q);

#endif
