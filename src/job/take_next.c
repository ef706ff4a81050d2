/* take_next.c - the next job in one tenure of the lock, when nothing is shown that could be taken
 * without it.
 *
 * A queue with one topic, in the order by deadline, has what comes next in one of two places: first
 * in the topic's line, or if that is empty at the head of the timeline.  So while nothing lies in
 * the inbox, and nobody waits for what else is due, it is taken from there, and neither a line nor
 * a turn has to be seen to.  With several topics what is due is moved to their lines, and whose
 * turn it is has one; unless the head alone is due, which needs no line.  In every other case the
 * caller goes the usual way (request.c), which does the same with more looks.
 *
 * Guards     T  the timeline lock
 *
 * Edges      described elsewhere: E3 tenure.c, I2 I3 inbox.c, J1 slab.h, C2 closing.c, W3 topic.c
 */
#include "job/take_next.h"

#include "job/dead_letter.h"
#include "job/lease.h"
#include "job/release.h"
#include "os/atomic.h"
#include "queue/take.h"
#include "queue/tenure.h"

/* Under the lock: may the next job be taken from the lines or from the timeline as they are? */
static inline bool next_known(struct due_queue *q)
{
    return q->all == NULL && due__inbox_quiet(&q->inbox); /* I2 */
}

/* Under the lock: the time to tell how late a job is, which may be by the counter.  What is due is
 * told by the clock alone, at *@due_ns: now, or when it was looked at last if that makes no
 * difference, because the next job is in the line, was due even then, or is not due for a while. */
static inline int64_t look(struct due_queue *q, bool in_line, int64_t *due_ns)
{
    if (q->counter.trusted) {
        int64_t now = due__clock_about(&q->clock, &q->counter);
        int64_t bound = due__timeline_bound(&q->timeline);

        *due_ns = q->counter.at_ns;
        if (in_line || bound <= *due_ns || bound - DUE__COUNTER_LAG_NS > now)
            return now;
    }
    return *due_ns = due__clock_now(&q->clock);
}

/* The first live job of the line, which is *@job.  False: there is none, or many dead ones stand
 * before it. */
static inline __attribute__((always_inline)) bool line_take(struct due_queue *q,
                                                            struct due__topic *topic,
                                                            struct due__slot *s,
                                                            struct due__job **job)
{
    for (uint32_t looked = 0; topic->line.count > 0 && looked < DUE__DEAD_MAX; looked++) {
        *s = due__line_pop(&topic->line, &q->nodes);
        q->in_lines--;
        *job = due__job_at(&q->slab, due__slot_job(*s));
        if (due__take_slot_of(q, topic, *job, *s)) {
            if (topic->line.count > 0)
                due__topic_refill(q, topic);
            return true;
        }
    }
    return false;
}

/* Nothing is due at the head, before which so many dead ones were: that may have taken a while. */
static inline enum due__next none(uint32_t dead)
{
    return dead == 0 ? DUE__NEXT_NOTHING : DUE__NEXT_ASK;
}

/* The head of the timeline, if it waits, is due at @due_ns, and is of this topic or, with several,
 * of one that is wanted. */
static inline __attribute__((always_inline)) enum due__next head_take(
    struct due_queue *q, const struct due__topic *topic, const struct due__wanted *wanted,
    int64_t due_ns, struct due__slot *s, struct due__job **job)
{
    struct due__timeline *tl = &q->timeline;
    uint64_t w;

    for (uint32_t dead = 0; dead < DUE__MOVES_MAX; dead++) {
        if (due__timeline_count(tl) == 0)
            return none(dead);
        const struct due__slot *first = due__timeline_first(tl);
        if (first == NULL) {
            if (due__timeline_bound_behind(tl) > due_ns)
                return none(dead);
            if (!due__head_load(q) || (first = due__timeline_first(tl)) == NULL)
                return DUE__NEXT_ASK;
        }
        if (due__slot_deadline(*first) > due_ns)
            return none(dead);
        *s = *first;
        struct due__job *j = *job = due__job_at(&q->slab, due__slot_job(*s));
        bool alive = due__slot_alive_of(j, *s, &w);

        struct due__facts f = due__facts_load(j);

        if (wanted != NULL)
            topic = due__topic_at(q, f.topic);
        if (alive && (due__word_state(w) != DUE__WAITING || due__gated(topic, f) ||
                      (wanted != NULL && (topic->paused || !due__wants(wanted, f.topic)))))
            return DUE__NEXT_ASK; /* a lease has ended, or it has to go through a line */
        due__timeline_pop_first(tl, first);
        due__prefetch_ahead(q);
        if (alive && due__word_claim(&j->word, &w, DUE__CLAIMED)) { /* J1 */
            due__note_ready(q, *s);
            return DUE__NEXT_TAKEN;
        }
    }
    return DUE__NEXT_ASK;
}

/* Nothing is due, or everything has been moved: is that the answer, or does the queue close, or
 * something come yet? */
static inline enum due__next nothing(struct due_queue *q, int64_t due_ns)
{
    if ((due__load_seq(&q->state) & DUE__CLOSING) || due__more_to_come(q)) /* E3 */
        return DUE__NEXT_ASK;
    due__all_moved(q, due_ns);
    due__fd_again(q);
    due__sole_none(q);
    return DUE__NEXT_NOTHING;
}

/* Of the only topic. */
static inline __attribute__((always_inline)) enum due__next take_of_one(struct due_queue *q,
                                                                        struct due__topic *topic,
                                                                        int64_t due_ns,
                                                                        struct due__slot *s,
                                                                        struct due__job **job)
{
    if (topic->paused || due__window_count(&topic->window) > 0)
        return DUE__NEXT_ASK;
    if (topic->line.count == 0)
        return head_take(q, topic, NULL, due_ns, s, job);
    return line_take(q, topic, s, job) ? DUE__NEXT_TAKEN : DUE__NEXT_ASK;
}

/* Of several topics: whose turn it is. */
static __attribute__((noinline)) enum due__next take_of_several(struct due_queue *q,
                                                                const struct due__wanted *wanted,
                                                                int64_t due_ns, struct due__slot *s,
                                                                struct due__job **job)
{
    size_t got;

    if (due__timeline_bound(&q->timeline) <= due_ns) {
        if (due__head_ready(q) && !due__topics_ready(q) &&
            (wanted->count == 1 || due__head_alone(q, due_ns)) &&
            head_take(q, NULL, wanted, due_ns, s, job) == DUE__NEXT_TAKEN)
            return DUE__NEXT_TAKEN;
        if (!due__move_due(q, due_ns))
            return DUE__NEXT_ASK;
    }
    if (due__load_relaxed(&q->sole_until) <= due_ns) /* W3: under the lock */
        due__sole_until(q);
    switch (due__take_ready(q, wanted, s, 1, &got)) {
    case DUE__FOUND:
        *job = due__job_at(&q->slab, due__slot_job(*s));
        return DUE__NEXT_TAKEN;
    case DUE__NOTHING:
        return DUE__NEXT_NOTHING;
    default:
        return DUE__NEXT_ASK;
    }
}

/* A taken job is counted if it is plain; or begins its lease. */
static inline bool taken(struct due_queue *q, int64_t lease_ns, struct due__slot s,
                         struct due__job *j, int64_t now_ns, due_job *job)
{
    if (lease_ns != 0)
        return due__lease_one_at_once(q, s, j, lease_ns, now_ns, job);
    bool plain = due__is_plain_of(j);
    if (plain)
        due__taken_count(q); /* C2 of closing.c */
    return plain;
}

static inline __attribute__((always_inline)) enum due__next take_next(
    struct due_queue *q, const struct due__wanted *wanted, int64_t lease_ns, struct due__slot *s,
    struct due__job **j, int64_t *now_ns, due_job *job)
{
    struct due__topic *topic = due__topic_at(q, 0);
    struct due__slot of_several; /* its address is taken, so that the others may be in registers */
    struct due__job *j_of_several;
    enum due__next next = DUE__NEXT_ASK;
    int64_t due_ns;

    if (!q->short_takes)
        return DUE__NEXT_ASK;
    due__lock_acquire_untold(&q->lock);
    due__measure_begin(q);
    bool in_line = topic->line.count > 0 && !q->several;
    *now_ns = look(q, in_line, &due_ns); /* I3: before the look at the inbox */
    if (next_known(q)) {
        if (!q->several) {
            next = take_of_one(q, topic, due_ns, s, j);
        } else {
            next = take_of_several(q, wanted, due_ns, &of_several, &j_of_several);
            if (next == DUE__NEXT_TAKEN) {
                *s = of_several;
                *j = j_of_several;
            }
        }
        if (next == DUE__NEXT_TAKEN && taken(q, lease_ns, *s, *j, *now_ns, job))
            next = DUE__NEXT_DONE;
        else if (next == DUE__NEXT_NOTHING)
            next = nothing(q, due_ns);
    }
    due__short_end_untold(q);
    return next;
}

enum due__next due__take_next(struct due_queue *q, const struct due__wanted *wanted,
                              struct due__slot *s, due_job *job)
{
    struct due__slot slot;
    struct due__job *j = NULL;
    int64_t now;
    enum due__next next = take_next(q, wanted, 0, &slot, &j, &now, NULL);

    if (next == DUE__NEXT_DONE)
        due__job_fill_plain_of(q, j, due__slot_job(slot), due__slot_deadline(slot), now, job);
    else
        *s = slot;
    return next;
}

enum due__next due__reserve_next(struct due_queue *q, const struct due__wanted *wanted,
                                 int64_t lease_ns, struct due__slot *s, int64_t *now_ns,
                                 due_job *job)
{
    struct due__job *j = NULL;

    return take_next(q, wanted, lease_ns, s, &j, now_ns, job);
}
