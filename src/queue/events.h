/* events.h - what becomes of jobs, counted by topic and told to a hook: for queues that ask for it.
 *
 * Nobody asked: there is no watch, and all that is left of it is a look at a pointer that never
 * changes, at each step of a job.  The steps are named here once; events.c says what each means.
 */
#ifndef DUE__EVENTS_H
#define DUE__EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "due/metrics.h"
#include "queue/queue.h"

/* Figures of a topic.  The last ones rise and fall; they are sums of what the shards have. */
enum due__figure {
    DUE__F_ENQUEUED,
    DUE__F_RESTORED,
    DUE__F_DEQUEUED,
    DUE__F_RESERVED,
    DUE__F_ACKED,
    DUE__F_NACKED,
    DUE__F_RETRIED,
    DUE__F_DIED,
    DUE__F_EXPIRED,
    DUE__F_KICKED,
    DUE__F_CANCELLED,
    DUE__F_DISCARDED,
    DUE__F_KEPT,
    DUE__F_READY,
    DUE__F_LEASED,
    DUE__F_DEAD,
    DUE__FIGURES
};

/* Those of one topic, as the threads of one shard have counted them: two cache lines. */
struct due__tally {
    _Alignas(8) uint64_t figure[DUE__FIGURES]; /* A  relaxed counters */
};

/* A duration's histogram, likewise. */
struct due__gauge {
    _Alignas(8) uint64_t sum_ns;                        /* A  relaxed counter */
    _Alignas(8) uint64_t bucket[DUE_HISTOGRAM_BUCKETS]; /* A  relaxed counters */
};

struct due__measured {
    struct due__gauge late; /* A  relaxed counters */
    struct due__gauge held; /* A  relaxed counters */
} __attribute__((aligned(DUE__LINE)));

/* What is still to be told of a job, by place.  Made as zeroes: that is a free lock also where it
 * is the C library's (of glibc and musl). */
struct due__untold {
    _Alignas(8) uint64_t steps; /* A  Z1 of events.c: generation 32 | DUE__TOLD_* */
    uint32_t next;              /* A  Z2: place plus 1 */
    struct due__lock teller;    /* Z  who tells of the job */
};

/* When a job was reserved last, by place. */
struct due__since {
    _Alignas(8) int64_t ns; /* A  R1 of lease.c */
};

#define DUE__TOLD_RETRIED   1u
#define DUE__TOLD_KICKED    2u
#define DUE__TOLD_READY     4u
#define DUE__TOLD_LISTED    8u /* it is in the list of who will tell */
#define DUE__TOLD_DELIVERED 16u
#define DUE__TOLD_REPEATED  32u

struct due__events {
    void (*on_event)(void *ctx, const due_event *event); /* I  or NULL */
    void *event_ctx;                                     /* I */
    bool counts;                                         /* I  by topic, and durations */
    struct due__records untold;                          /* A  its own edges; unused: no hook */
    struct due__records since;                           /* A  struct due__since; if it counts */
    uint32_t list;                                       /* T  place plus 1: to be told of */
    struct due__measured measured[DUE__SHARDS];          /* A  its own: of topics that have none */
};

/* Asked for at open: made, and given back. */
int due__events_open(struct due_queue *q, const due_options *o);
void due__events_free(struct due_queue *q);

/* The figures of a new topic; NULL: no memory.  And back. */
struct due__tally *due__tallies_new(struct due_queue *q);
void due__tallies_free(struct due_queue *q, struct due__tally *tallies);

/* A topic's, summed; the falling ones never below 0. */
void due__tallies_sum(const struct due__topic *t, uint64_t sums[DUE__FIGURES]);
/* All that was measured. */
void due__measured_sum(const struct due_queue *q, due_histogram *late, due_histogram *held);

/* What is measured of @t is the topic's own from here on.  DUE_ENOMEM. */
int due__topic_measure(struct due_queue *q, struct due__topic *t);
void due__measured_free(struct due_queue *q, struct due__measured *measured);

/* Its lateness, or (@held) how long it was held.  False: they are not its own, and *@h is zeroed.
 */
bool due__topic_measured(const struct due__topic *t, bool held, due_histogram *h);

/* As due_topic_stats_read(), of the first @n topics, without a look at what is due: metrics.c. */
int due__topics_figures(struct due_queue *q, uint32_t n, struct due_topic_stats *each);
/* The earliest deadline of what is ready, of all topics; DUE_FOREVER: nothing is. */
int64_t due__oldest_of_all(struct due_queue *q);
/* As due_census(): of all topics, and of each of @n topics from @first on: census.c. */
int due__census_each(struct due_queue *q, struct due_queue_census *all,
                     struct due_queue_census *each, size_t first, size_t n, int64_t timeout_ns);

/* ---- The steps of a job of the caller's own, before it goes on; without the lock ---- */

enum due__step {
    DUE__S_ENTERED,   /* it is about to be submitted; counted only */
    DUE__S_PRODUCED,  /* it is about to be the queue's; told only */
    DUE__S_BACK,      /* it was not submitted after all, and nobody was told that it would be */
    DUE__S_REFUSED,   /* the same, and it was told */
    DUE__S_DEQUEUED,  /* */
    DUE__S_RESERVED,  /* */
    DUE__S_ACKED,     /* */
    DUE__S_RETRIED,   /* after a nack */
    DUE__S_DIED,      /* its dead letter says why */
    DUE__S_KICKED,    /* */
    DUE__S_ROUND,     /* it was taken for good, and comes again */
    DUE__S_REPEATED,  /* it was taken, or acked, and waits for its next round */
    DUE__S_CANCELLED, /* */
    DUE__S_DISCARDED, /* */
    DUE__S_KEPT,      /* */
    DUE__STEPS
};

/* @w: its word, if it may be ready still; else 0. */
void due__events_step(struct due_queue *q, uint32_t number, enum due__step step, uint64_t w);

static inline void due__step(struct due_queue *q, uint32_t number, enum due__step step, uint64_t w)
{
    if (q->events != NULL)
        due__events_step(q, number, step, w);
}

/* The same of taken jobs, with their slots. */
static inline void due__steps(struct due_queue *q, const struct due__slot *slots, size_t n,
                              enum due__step step)
{
    for (size_t i = 0; q->events != NULL && i < n; i++)
        due__events_step(q, due__slot_job(slots[i]), step, 0);
}

/* Jobs that are filled in and about to be submitted, or were refused then; @told: and told. */
void due__events_enter(struct due_queue *q, const struct due__fresh *jobs, size_t n, bool told);

/* The same of a job that was read from the store; @held: it has a lease record. */
void due__events_restored(struct due_queue *q, const struct due__fresh *it, bool held);

/* Tell now what was noted of a job of the caller's own. */
void due__events_flush(struct due_queue *q, uint32_t number);

/* Everything a step of place @number may need is there.  False: no memory. */
bool due__events_make(struct due_queue *q, uint32_t number);

/* ---- With or without the lock: a figure of a job's topic changes ---- */

void due__events_count(struct due_queue *q, uint32_t number, enum due__figure figure, int64_t by);

static inline void due__count(struct due_queue *q, uint32_t number, enum due__figure figure,
                              int64_t by)
{
    if (q->events != NULL)
        due__events_count(q, number, figure, by);
}

/* Of a topic: of a job that may be somebody's already, and its place another job's. */
void due__events_count_in(struct due_queue *q, uint32_t topic, enum due__figure figure, int64_t by);

static inline void due__count_in(struct due_queue *q, uint32_t topic, enum due__figure figure,
                                 int64_t by)
{
    if (q->events != NULL)
        due__events_count_in(q, topic, figure, by);
}

/* How late jobs were handed out; after how long a lease was answered. */
void due__events_late(struct due_queue *q, const due_job *jobs, size_t n);
void due__events_reserved(struct due_queue *q, uint32_t number, int64_t now_ns);
void due__events_answered(struct due_queue *q, uint32_t number);

static inline void due__late(struct due_queue *q, const due_job *jobs, size_t n)
{
    if (q->events != NULL)
        due__events_late(q, jobs, n);
}

static inline void due__reserved(struct due_queue *q, uint32_t number, int64_t now_ns)
{
    if (q->events != NULL)
        due__events_reserved(q, number, now_ns);
}

static inline void due__answered(struct due_queue *q, uint32_t number)
{
    if (q->events != NULL)
        due__events_answered(q, number);
}

/* ---- Under the timeline's lock ---- */

/* The job @number whose word was @w is about to be ready, or (@steps) to wait again; to be told
 * after the release.  It is MOVING, or the caller's own. */
void due__events_note(struct due_queue *q, uint32_t number, uint64_t w, uint32_t steps);
void due__events_repeated(struct due_queue *q, uint32_t number, bool taken);

/* The job @number, whose word was @w, is about to be ready. */
static inline void due__note(struct due_queue *q, uint32_t number, uint64_t w)
{
    uint32_t steps = DUE__TOLD_READY;

    if (q->events == NULL)
        return;
    if (due__word_state(w) == DUE__LEASED) /* its lease has ended */
        steps |= DUE__TOLD_RETRIED;
    due__events_note(q, number, w, steps);
}

/* The same, and the word of the job, *@w, becomes @ready.  False: *@w is another by now. */
bool due__events_ready(struct due_queue *q, uint32_t number, uint64_t *w, uint64_t ready);

static inline bool due__become_ready(struct due_queue *q, uint32_t number, uint64_t *w,
                                     uint64_t ready)
{
    if (q->events != NULL)
        return due__events_ready(q, number, w, ready);
    return due__word_swap(&due__job_at(&q->slab, number)->word, w, ready); /* J1 */
}

/* The caller has taken it from the timeline as it became due. */
static inline void due__note_taken(struct due_queue *q, uint32_t number, uint64_t w)
{
    if (q->events == NULL)
        return;
    due__events_count(q, number, DUE__F_READY, 1);
    due__events_note(q, number, w, DUE__TOLD_READY);
}

/* The job @number, dead until now, is about to wait. */
static inline void due__note_kicked(struct due_queue *q, uint32_t number, uint64_t w)
{
    if (q->events == NULL)
        return;
    due__events_count(q, number, DUE__F_KICKED, 1);
    due__events_note(q, number, w, DUE__TOLD_KICKED);
}

/* A job of the caller's own is about to wait for its next round; @taken: it was taken for good, and
 * what was noted before has been told. */
static inline void due__note_repeated(struct due_queue *q, uint32_t number, bool taken)
{
    if (q->events != NULL)
        due__events_repeated(q, number, taken);
}

/* What is to be told of: place plus 1 of the first. */
static inline uint32_t due__events_list(struct due_queue *q)
{
    uint32_t first = q->events->list;

    q->events->list = 0;
    return first;
}

/* After the release: those of the list. */
void due__events_tell(struct due_queue *q, uint32_t first);

#endif
