/* take.h - one job from waiting to lent, and what is ready of topics.
 *
 * Edges      described elsewhere: I3 inbox.c, J1 slab.h
 */
#ifndef DUE__TAKE_H
#define DUE__TAKE_H

#include "os/atomic.h"
#include "queue/queue.h"

#define DUE__TAKE_MAX 32u /* slots taken by one swap */

/* The topics that a call takes jobs of: NULL and 0, any. */
struct due__wanted {
    const int *topics;
    size_t count;
};

static inline bool due__wants(const struct due__wanted *w, int topic)
{
    for (size_t i = 0; i < w->count; i++) {
        if (w->topics[i] == topic)
            return true;
    }
    return w->topics == NULL;
}

/* Under the lock: is nothing due but the head of the timeline, as far as can be told at once? */
bool due__head_alone(const struct due_queue *q, int64_t now_ns);

/* Somebody is changing a job (MOVING), under the lock: wait for that. */
void due__wait_moved(struct due_queue *q);

/* The job that was put in last, NULL if none.  It may be sorted in by now. */
const struct due__job *due__last_in_inbox(const struct due_queue *q);

/* A slot seems dead: is its job only being changed, by who holds the lock, and stands for it after
 * that?  Then that was waited for.  With the lock ourselves there is none. */
bool due__was_moving(struct due_queue *q, struct due__slot s, uint64_t w);

/* The job of @s, which is @j, becomes the caller's, unless somebody was quicker.  Being ready and
 * the topic are asked as well: a slot taken long ago may look alive again in a place that was used
 * anew. */
static inline __attribute__((always_inline)) bool due__take_slot_of(struct due_queue *q,
                                                                    const struct due__topic *t,
                                                                    struct due__job *j,
                                                                    struct due__slot s)
{
    uint64_t w;

    while (due__slot_alive_of(j, s, &w) || due__was_moving(q, s, w)) {
        if (due__word_state(w) == DUE__MOVING)
            continue;
        if (!(w & DUE__READY) || due__facts_load(j).topic != t->number)
            return false;
        if (due__word_take(&j->word, &w)) /* J1 */
            return true;
    }
    return false;
}

static inline __attribute__((always_inline)) bool due__take_slot(struct due_queue *q,
                                                                 const struct due__topic *t,
                                                                 struct due__slot s)
{
    return due__take_slot_of(q, t, due__job_at(&q->slab, due__slot_job(s)), s);
}

/* Of @n slots that were taken out of @t's line or window, those whose jobs become the caller's, in
 * front; how many. */
size_t due__take_all(struct due_queue *q, const struct due__topic *t, struct due__slot *slots,
                     size_t n);

/* Take up to @max live jobs of topic @t without the lock. */
size_t due__take_shown(struct due_queue *q, struct due__topic *t, struct due__slot *slots,
                       size_t max);

/* As due__take_shown() of one job. */
static inline __attribute__((always_inline)) bool due__take_one_shown(struct due_queue *q,
                                                                      struct due__topic *t,
                                                                      struct due__slot *slot)
{
    struct due__slot soon;

    while (due__window_pop(&t->window, slot, DUE__PREFETCH_TAKES, &soon)) {
        due__job_prefetch(&q->slab, due__slot_job(soon));
        if (due__take_slot(q, t, *slot))
            return true;
    }
    return false;
}

/* Under the lock: one was taken for good there. */
static inline void due__taken_count(struct due_queue *q)
{
    uint64_t taken = due__load_relaxed(&q->taken); /* no edge: written under T */

    due__store_release(&q->taken, taken + 1); /* C2 of closing.c */
}

/* What is shown is next only if nothing that was submitted may stand before it, and not by
 * priority, where a job that came due meanwhile may. */
static inline bool due__shown_is_next(struct due_queue *q)
{
    return q->shows && !due__inbox_late(&q->inbox); /* I3 of inbox.c */
}

/* Under the lock: up to @max live jobs for a taker of these topics; *@got of them.  AGAIN: there
 * may be some behind many cancelled ones. */
enum due__found { DUE__NOTHING, DUE__FOUND, DUE__AGAIN };
enum due__found due__take_ready(struct due_queue *q, const struct due__wanted *wanted,
                                struct due__slot *slots, size_t max, size_t *got);

#endif
