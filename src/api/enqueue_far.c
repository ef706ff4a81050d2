/* enqueue_far.c - the shortest way of an enqueue, and the verbs that put in a timer.
 *
 * Most jobs bring a pointer, and their time is ahead: whoever puts one in writes a line of the slab
 * and a slot of the timeline.  So whatever is rare is asked before anything is done, and is a call
 * at the end, with the arguments as they came: nothing need be saved for it, and the way has no
 * frame.  What is asked under the lock: that the queue does not close (E3), that a place is at hand
 * there, that the inbox is quiet (I2), so that nothing stands in it that came before, and that the
 * job's time is after all that has left the timeline, and not before what somebody sleeps for or
 * counts on.  In every other case the job is placed by enqueue.c, in the tenure that has begun.
 *
 * It need not ask whether anything is late (I3): it shows no job to anybody.
 *
 * A job without delay goes to the line of its topic, if the queue does not close, the inbox is
 * quiet, nothing is late, and there is a place.  In every other case the tenure ends with nothing
 * done, and enqueue.c begins another.
 *
 * Guards     T  the timeline lock
 *
 * Edges      described elsewhere: E1 E2 E3 tenure.c, I2 I3 inbox.c, J1 slab.h, W3 topic.c, C2
 *            closing.c
 */
#include "api/enqueue_far.h"

#include "api/enqueue.h"
#include "os/atomic.h"
#include "os/probe.h"
#include "queue/at_hand.h"
#include "queue/place.h"
#include "queue/queue.h"
#include "queue/tenure.h"

/* ---- What is rare ---- */

static due_spec spec_of(int64_t delay_ns, int64_t at_ns, unsigned flags, void *ptr, uint64_t facts)
{
    struct due__facts f = due__facts_read(facts);
    due_spec spec = { DUE_SPEC_INIT,          .delay_ns = delay_ns, .at_ns = at_ns,
                      .priority = f.priority, .topic = f.topic,     .ptr = ptr };

    spec.flags = flags;
    return spec;
}

/* The lock is not ours. */
static __attribute__((noinline)) int far_otherwise(struct due_queue *q, int64_t at_ns, void *ptr,
                                                   due_id *id, uint64_t facts)
{
    due_spec spec = spec_of(0, at_ns, DUE_SPEC_AT, ptr, facts);

    return due__enqueue_checked(q, &spec, 0, id);
}

/* In a tenure that has begun, in any other way. */
static __attribute__((noinline)) int far_usual(struct due_queue *q, int64_t at_ns, void *ptr,
                                               due_id *id, uint64_t facts)
{
    due_spec spec = spec_of(0, at_ns, DUE_SPEC_AT, ptr, facts);

    return due__enqueue_locked(q, &spec, id) ? 0 : due__enqueue_checked(q, &spec, 0, id);
}

/* The same of a job without delay. */
static __attribute__((noinline)) int now_otherwise(struct due_queue *q, void *ptr, due_id *id,
                                                   uint64_t facts)
{
    due_spec spec = spec_of(0, 0, 0, ptr, facts);

    return due__enqueue_checked(q, &spec, 0, id);
}

static __attribute__((noinline)) int now_undone(struct due_queue *q, void *ptr, due_id *id,
                                                uint64_t facts)
{
    due__short_end(q);
    return now_otherwise(q, ptr, id, facts);
}

/* The lock was tried, and not just got. */
static __attribute__((noinline)) int now_tried(struct due_queue *q, void *ptr, due_id *id,
                                               uint64_t facts, enum due__tried how)
{
    if (how == DUE__TRIED_BUSY || !due__lock_try_rest(&q->lock, how)) /* E1 */
        return now_otherwise(q, ptr, id, facts);
    due__measure_begin(q);
    return now_undone(q, ptr, id, facts);
}

/* The end of a tenure in which a slot was inserted, or not.  0. */
static __attribute__((noinline)) int far_kept(struct due_queue *q, enum due__inserted inserted)
{
    if (inserted != DUE__INSERTED)
        due__kept_otherwise(q, inserted);
    due__short_end(q);
    return 0;
}

/* The lock was released: who slept for it wakes, and what was put in meanwhile is sorted in.  0. */
static __attribute__((noinline)) int far_released(struct due_queue *q, enum due__released how)
{
    if (how != DUE__RELEASED)
        due__lock_release_rest(&q->lock, how); /* E1 */
    if (due__inbox_knocked(&q->inbox))         /* E1 */
        due__short_settle(q, false);
    return 0;
}

/* ---- The way ---- */

/* In a tenure that has begun, with a place at hand. */
static inline __attribute__((always_inline)) int far_place(struct due_queue *q, int64_t at_ns,
                                                           void *ptr, due_id *id, uint64_t facts)
{
    if ((due__load_seq(&q->state) & DUE__REFUSING) ||               /* E3 */
        !due__inbox_quiet(&q->inbox) ||                             /* I2 */
        q->arrival >= DUE__ARRIVAL_MAX ||                           /* all to be numbered anew */
        at_ns <= due__slot_deadline(q->gone) || at_ns < q->armed || /* it is near */
        at_ns < due__load_relaxed(&q->sole_until))                  /* W3: under the lock */
        return far_usual(q, at_ns, ptr, id, facts);

    uint32_t number = due__place_next(q);
    DUE__PROBE3(enqueue, q, number, at_ns);
    struct due__job *j = due__job_at(&q->slab, number);
    due__job_ahead(j);
    uint32_t arrival = q->arrival++;
    uint64_t free = due__word_of_free(&j->word);
    struct due__slot s = due__slot_make(at_ns, due__facts_read(facts).priority, arrival, number);

    j->payload.ptr = ptr;
    due__store_relaxed(&j->facts, facts);       /* J1 */
    due__store_relaxed(&j->deadline_ns, at_ns); /* J1 */
    if (id != NULL)
        *id = due__id_of(q, free | number);
    due__placed_count(q); /* C2 of closing.c: before anybody sees it */
    due__word_set(&j->word, due__word_waiting(free, arrival)); /* J1 */
    enum due__inserted inserted = due__timeline_insert(&q->timeline, s);
    if (inserted != DUE__INSERTED || q->debts != 0)
        return far_kept(q, inserted);
    due__measure_end(q);
    enum due__released how = due__lock_release_quick(&q->lock); /* E1 */
    if (how != DUE__RELEASED || due__inbox_knocked(&q->inbox))  /* E1 */
        return far_released(q, how);
    return 0;
}

/* The same, when places are to be fetched first; @rest: or have been from @it, whose lock is to be
 * seen to. */
static __attribute__((noinline)) int far_fetch_any(struct due_queue *q, int64_t at_ns, void *ptr,
                                                   due_id *id, uint64_t facts,
                                                   struct due__shard *it, enum due__released rest)
{
    if (it != NULL)
        due__lock_release_rest(&it->lock, rest); /* S */
    return it != NULL || due__places_fetch(q) ? far_place(q, at_ns, ptr, id, facts)
                                              : far_usual(q, at_ns, ptr, id, facts);
}

static __attribute__((noinline)) int far_fetch(struct due_queue *q, int64_t at_ns, void *ptr,
                                               due_id *id, uint64_t facts)
{
    enum due__released rest;
    struct due__shard *it = due__places_last(q, &rest);

    return it != NULL && rest == DUE__RELEASED ? far_place(q, at_ns, ptr, id, facts)
                                               : far_fetch_any(q, at_ns, ptr, id, facts, it, rest);
}

/* The lock was tried, and not just got. */
static __attribute__((noinline)) int far_tried(struct due_queue *q, int64_t at_ns, void *ptr,
                                               due_id *id, uint64_t facts, enum due__tried how)
{
    if (how == DUE__TRIED_BUSY || !due__lock_try_rest(&q->lock, how)) /* E1 */
        return far_otherwise(q, at_ns, ptr, id, facts);
    due__measure_begin(q);
    return far_usual(q, at_ns, ptr, id, facts);
}

static inline __attribute__((always_inline)) int far_put(struct due_queue *q, int64_t at_ns,
                                                         void *ptr, due_id *id, uint64_t facts)
{
    if (due__load_seq(&q->state) & DUE__ACTIVE) /* E2 */
        return far_otherwise(q, at_ns, ptr, id, facts);
    enum due__tried how = due__lock_try_quick(&q->lock); /* E1 */
    if (how != DUE__TRIED_GOT)
        return far_tried(q, at_ns, ptr, id, facts, how);
    due__measure_begin(q);
    return q->place_count > 0 ? far_place(q, at_ns, ptr, id, facts)
                              : far_fetch(q, at_ns, ptr, id, facts);
}

/* ---- Due at once ---- */

/* The same of a job without delay, at @now_ns, which goes to the line of its topic. */
static inline __attribute__((always_inline)) int now_put(struct due_queue *q, int64_t now_ns,
                                                         void *ptr, due_id *id, uint64_t facts)
{
    if (due__load_seq(&q->state) & DUE__ACTIVE) /* E2 */
        return now_otherwise(q, ptr, id, facts);
    enum due__tried how = due__lock_try_quick(&q->lock); /* E1 */
    if (how != DUE__TRIED_GOT)
        return now_tried(q, ptr, id, facts, how);
    due__measure_begin(q);
    /* Of a quiet inbox nothing is late that has still to come; but until a drain answers what was
     * said, takers go by the lock, and the usual way drains. */
    if ((due__load_seq(&q->state) & DUE__REFUSING) ||                 /* E3 */
        !due__inbox_quiet(&q->inbox) || due__inbox_late(&q->inbox) || /* I2, I3 */
        (q->place_count == 0 && !due__places_fetch(q)))
        return now_undone(q, ptr, id, facts);

    uint32_t number = due__place_next(q);
    DUE__PROBE3(enqueue, q, number, now_ns);
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t free = due__word_of_free(&j->word);

    due__job_ahead(j);
    j->payload.ptr = ptr;
    if (id != NULL)
        *id = due__id_of(q, free | number);
    due__placed_count(q);     /* C2 of closing.c: before anybody sees it */
    due__move_due(q, now_ns); /* so that it goes straight to its topic */
    due__place_now(q,
                   &(struct due__fresh){ .job = j,
                                         .deadline_ns = now_ns,
                                         .f = due__facts_read(facts | due__now_fact()),
                                         .number = number,
                                         .generation = due__word_generation(free) },
                   0);
    due__short_end(q);
    return 0;
}

int due__enqueue_far(struct due_queue *q, int64_t at_ns, void *ptr, due_id *id, uint64_t facts)
{
    return far_put(q, at_ns, ptr, id, facts);
}

int due__enqueue_delayed(struct due_queue *q, int64_t delay_ns, void *ptr, due_id *id,
                         uint64_t facts)
{
    int64_t now = due__clock_now(&q->clock);

    return delay_ns > 0 ? far_put(q, due__time_add(now, delay_ns), ptr, id, facts)
                        : now_put(q, now, ptr, id, facts);
}

/* ---- The verbs ---- */

/* Any other time. */
static __attribute__((noinline)) int enqueue_pointer(struct due_queue *q, int64_t delay_ns,
                                                     int64_t at_ns, unsigned flags, void *ptr,
                                                     due_id *id)
{
    due_spec spec = spec_of(delay_ns, at_ns, flags, ptr, 0);

    return due_enqueue(q, &spec, 0, id);
}

int due_enqueue_at(due_queue *q, int64_t at_ns, void *ptr, due_id *id)
{
    if (at_ns < 0 || !due__quickly(q))
        return enqueue_pointer(q, 0, at_ns, DUE_SPEC_AT, ptr, id);
    return far_put(q, at_ns, ptr, id, due__pointer_facts(0, 0, ptr));
}

int due_enqueue_after(due_queue *q, int64_t delay_ns, void *ptr, due_id *id)
{
    if (delay_ns < 0 || !due__quickly(q))
        return enqueue_pointer(q, delay_ns, 0, 0, ptr, id);
    return due__enqueue_delayed(q, delay_ns, ptr, id, due__pointer_facts(0, 0, ptr));
}
