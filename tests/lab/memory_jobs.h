/* memory_jobs.h - the jobs of a memory disk: found by id, and in the order of a load.
 *
 * That order is the topic's number, then until_ns, then the id bytewise.  Dead jobs stand behind
 * all topics, by the time of death.
 */
#ifndef MEMORY_JOBS_H
#define MEMORY_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "due/store.h"

#define MEMORY_DEAD SIZE_MAX /* the topic of their places */

/* Where a job stands in the order. */
struct memory_place {
    size_t topic;
    int64_t until_ns; /* or when it died */
    due_id id;
};

struct memory_job {
    struct memory_place place;
    due_record record; /* what it points to is the job's own, but for the topic: NULL */
    size_t topic;
    due_retry retry;               /* of the record */
    char reason[DUE_REASON_BYTES]; /* of the record */
    void *bytes;                   /* of the record: payload, headers, key and group */
    uint64_t content;              /* another one for each content: its mark */
    uint64_t shown;                /* the last load that showed it */
    uint64_t held;                 /* its lease, which ends at its place's time; 0: nobody's */
    uint64_t holder;               /* the writer that has it on that lease */
    bool passed;                   /* it has its group's pass */
    bool revoked;                  /* it was cancelled while somebody held it */
    uint32_t weight;               /* of its node: the heaviest is the root */
    struct memory_job *left;
    struct memory_job *right;
    struct memory_job *next; /* in its chain of the table */
};

struct memory_jobs {
    struct memory_job *root;
    struct memory_job **table;
    size_t slots; /* of the table: a power of two, or none yet */
    size_t count;
    char **topics;
    size_t n_topics;
    size_t last_topic; /* the one asked for last */
    uint64_t random;   /* for the weights */
    uint64_t contents; /* that there were */
};

/* Memory, or the end of the program. */
void *memory_need(void *memory);

/* The number of a topic, which is made if it is new. */
size_t memory_jobs_topic(struct memory_jobs *jobs, const char *name);

struct memory_job *memory_jobs_find(const struct memory_jobs *jobs, due_id id);
/* A job that is not among them, of its own memory; the jobs take it over. */
void memory_jobs_add(struct memory_jobs *jobs, struct memory_job *job);
/* Taken out, and the caller's. */
void memory_jobs_take(struct memory_jobs *jobs, struct memory_job *job);
/* The first one behind a place; NULL: the end. */
struct memory_job *memory_jobs_behind(const struct memory_jobs *jobs,
                                      const struct memory_place *place);
struct memory_job *memory_jobs_first(const struct memory_jobs *jobs);
int memory_place_compare(const struct memory_place *a, const struct memory_place *b);

/* A job of its own memory as a record says, a copy of a job, and a record as a job says. */
struct memory_job *memory_job_new(struct memory_jobs *jobs, const due_record *record);
struct memory_job *memory_job_copy(struct memory_jobs *jobs, const struct memory_job *job);
/* It moves, is dead or is not any more, as the record says. */
void memory_job_change(struct memory_job *job, const due_record *record);
due_record memory_job_record(const struct memory_jobs *jobs, const struct memory_job *job);
void memory_job_free(struct memory_job *job);

void memory_jobs_clear(struct memory_jobs *jobs); /* the topics stay */
void memory_jobs_free(struct memory_jobs *jobs);

#endif
