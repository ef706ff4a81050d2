/* place.h - a job that is its enqueuer's alone, into the timeline or to the line of its topic.
 *
 * Here, and not behind a call, because it is a part of the shortest way of an enqueue.
 *
 * Guards     T  the timeline lock, for every call
 *
 * Edges      described elsewhere: J1 slab.h, W3 topic.c
 */
#ifndef DUE__PLACE_H
#define DUE__PLACE_H

#include "os/atomic.h"
#include "queue/compaction.h"
#include "queue/queue.h"

/* A slot that has left the timeline, or needs not go there, goes to the line of its topic, through
 * the topic's limiters if it has any.  Two of its facts, since a struct of small parts would be put
 * together in memory. */
void due__keep_ready(struct due_queue *q, struct due__slot s, unsigned topic, unsigned payload);

/* A slot was inserted, but otherwise than usual, or was not: then it is when there is room. */
void due__kept_otherwise(struct due_queue *q, enum due__inserted inserted);

/* The arrival numbers are used up: everything gets another. */
void due__renumber(struct due_queue *q);

static inline void due__sweep_if_many(struct due_queue *q)
{
    if (due__timeline_count(&q->timeline) + q->in_lines >= q->sweep_at)
        due__sweep_look(q);
}

/* A slot that is not due goes to the timeline. */
static inline void due__keep_waiting(struct due_queue *q, struct due__slot s)
{
    enum due__inserted inserted = due__timeline_insert(&q->timeline, s);

    if (inserted != DUE__INSERTED)
        due__kept_otherwise(q, inserted);
    if (due__slot_deadline(s) < q->armed)
        q->debts |= DUE__DEBT_LEAD;
    if (due__slot_deadline(s) < due__load_relaxed(&q->sole_until)) /* W3: under the lock */
        due__sole_until(q);
}

static inline uint32_t due__next_arrival(struct due_queue *q)
{
    if (q->arrival >= DUE__ARRIVAL_MAX)
        due__renumber(q);
    return q->arrival++;
}

/* A job without delay is due when it is submitted, at whatever moment of that call: at @least_ns,
 * if its clock was read before that and the call returned, or will return, after it. */
static inline int64_t due__submitted(const struct due_queue *q, struct due__facts f,
                                     int64_t deadline_ns, int64_t least_ns)
{
    bool early = (f.payload & DUE__NOW) && deadline_ns < least_ns && !q->clock.steps;

    return early ? least_ns : deadline_ns;
}

static inline __attribute__((always_inline)) void due__place_now(struct due_queue *q,
                                                                 const struct due__fresh *it,
                                                                 uint64_t flags)
{
    int64_t deadline = due__submitted(q, it->f, it->deadline_ns, q->published_ns);
    struct due__slot s = due__slot_make(deadline, it->f.priority, due__next_arrival(q), it->number);
    bool ready = due__moved(q, s);

    due__facts_store(it->job, it->f);
    due__store_relaxed(&it->job->deadline_ns, deadline); /* J1 */
    if (ready)
        due__note(q, it->number, due__word(it->generation, 0, 0));
    due__word_begin(&it->job->word, it->generation, due__slot_arrival(s), DUE__WAITING,
                    (ready ? DUE__READY : 0) | flags); /* J1: nobody else had it until here */
    if (ready)
        due__keep_ready(q, s, it->f.topic,
                        it->f.payload); /* its place may be another job's by now */
    else
        due__keep_waiting(q, s);
}

#endif
