/* spin_take.c - a caller that spins until the next job is due, and takes it.
 *
 * Who spins (spin_ns) has time to spare until the job is due, and none after that.  What it has to
 * do then was last done a job ago: the code has left the caches while it slept, and to fetch it
 * takes several times as long as to take the job.  So the take stands in one function, which is
 * gone through a few times while its caller spins, as far as the question whether the job is due.
 * And the verb itself calls it: each function between them would be cold, and be returned through
 * without the processor's knowing where to.
 *
 * Nothing is promised to who spins.  It waits in line meanwhile, as if it slept, and the job is
 * everybody's: to be cancelled, to be moved, to be taken, to come second.  When it is due by the
 * clock, the holder of the lock takes what then is the head of the timeline, if that is a plain job
 * and nothing stands before it in an inbox, a line or a window.  Whatever is otherwise is left to
 * the usual way (request.c).
 *
 * Guards     T  the timeline lock
 *
 * Edges      described elsewhere: C1 inside.c, C2 closing.c, I2 I3 inbox.c, J1 slab.h
 */
#include "job/spin_take.h"

#include "job/dead_letter.h"
#include "job/release.h"
#include "os/atomic.h"
#include "queue/capacity.h"
#include "queue/closing.h"
#include "queue/inside.h"
#include "queue/tenure.h"

#define FIRST_NS INT64_C(8000) /* so long before it is due for the first time, then half of that */
#define LAST_NS  INT64_C(500)  /* and so long before it is due at the latest */

/* Under the lock: does @w still wait, and is the head of the timeline what it would get, a plain
 * job?  Then *s is its slot, and *word its word. */
static inline bool head_is_next(struct due_queue *q, const struct due__waiter *w,
                                struct due__slot *s, uint64_t *word)
{
    const struct due__topic *topic = due__topic_at(q, 0);

    if (!w->linked || q->several || topic->paused || topic->line.count > 0 ||
        due__window_count(&topic->window) > 0 || !due__inbox_quiet(&q->inbox) || /* I2 */
        due__timeline_front(&q->timeline) == 0 || !due__timeline_head(&q->timeline, s))
        return false;
    const struct due__job *j = due__job_at(&q->slab, due__slot_job(*s));
    return due__slot_alive_of(j, *s, word) && due__word_state(*word) == DUE__WAITING &&
           !due__gated(topic, due__facts_load(j)) && due__is_plain(q, due__slot_job(*s));
}

/* The next job, if it is due at @now_ns, to the caller. */
static __attribute__((noinline)) bool take_if_due(struct due_queue *q, struct due__waiter *w,
                                                  int64_t now_ns, due_job *job)
{
    struct due__tenure t;
    struct due__slot s;
    uint64_t word;

    due__enter(q, &t); /* I3: the clock was read before */
    bool taken = head_is_next(q, w, &s, &word) && due__slot_deadline(s) <= now_ns &&
                 due__word_claim(&due__job_at(&q->slab, due__slot_job(s))->word, &word,
                                 DUE__CLAIMED); /* J1 */
    if (taken) {
        due__timeline_pop(&q->timeline);
        due__note_ready(q, s);
        due__store_release(&q->taken, q->taken + 1); /* C2 of closing.c */
        due__unpark_job(q, w);
        due__pass_lead(q, &t); /* who leads then takes what else is due */
    }
    due__tenure_end(q, &t);
    if (taken)
        due__job_fill_plain(q, due__slot_job(s), due__slot_deadline(s), now_ns, job);
    return taken;
}

/* With a job that was counted, out of the queue. */
static inline void leave(struct due_queue *q, struct due__waiter *w)
{
    if (q->capacity > 0)
        due__capacity_give(q, 1);
    due__left(q, 1); /* C2 of closing.c */
    due__waiter_put(q, w);
    due__inside_leave(q); /* C1 of inside.c */
}

bool due__spin_take(struct due_queue *q, struct due__request *r)
{
    struct due__waiter *w = r->waiter;
    int64_t before = FIRST_NS;
    int64_t now;

    for (;;) {
        now = due__monotonic_now();
        if (due__bell_take(&w->bell))
            break;
        if (now >= r->spin_until_ns - before) {
            if (take_if_due(q, w, now, r->jobs)) {
                leave(q, w);
                return true;
            }
            if (now >= r->spin_until_ns)
                break;
            before = before > LAST_NS ? before / 2 : 0;
        }
        due__spin_pause(before == FIRST_NS);
    }
    r->woke_ns = now >= r->spin_until_ns ? now : 0;
    return false;
}
