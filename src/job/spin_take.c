/* spin_take.c - a caller that spins until the next job is due, and has it in hand before that.
 *
 * Who spins (spin_ns) has time to spare until the job is due, and none after that.  So what can be
 * done before is: shortly before the deadline it takes the lock, and keeps it.  The job's slot
 * leaves the timeline, the timer goes to the next, the caller's copy is filled in.  Then it looks
 * at the clock, and when the job is due one swap of its word makes it the caller's.  What is left
 * is to release the lock, and to return.
 *
 * Nothing is promised to who spins.  The job waits until that swap: a cancel that comes before it
 * has won.  Whoever else could change what is next needs the lock, or leaves a job in the inbox and
 * knocks.  A knock ends the wait: the slot goes back, and the caller looks again in the usual way
 * (request.c), which does also what is not plain, or paused, or stands in a line.
 *
 * What is done then was last done a job ago: the code has left the caches while its caller slept,
 * and to fetch it takes several times as long as to take the job.  So it is gone through a few
 * times before, as far as it can be without taking anything.  And the verb itself calls it: each
 * function between them would be cold, and be returned through without the processor's knowing
 * where to.
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
#include "queue/place.h"
#include "queue/take.h"
#include "queue/tenure.h"

/* How long before it is due: gone through for the first time, then after half of that; and the lock
 * is kept.  Who waits for a lock spins for about as long, where a pause of the processor is not
 * very short, and else sleeps. */
#define FIRST_NS INT64_C(8000)
#define KEEP_NS  INT64_C(500)

/* Under the lock: does @w still wait, and is the head of the timeline what it would get, a plain
 * job that is due @at_ns or before?  Then *s is its slot, and *word its word. */
static inline bool head_is_next(struct due_queue *q, const struct due__waiter *w, int64_t at_ns,
                                struct due__slot *s, uint64_t *word)
{
    const struct due__topic *topic = due__topic_at(q, 0);

    if (!w->linked || q->several || topic->paused || topic->line.count > 0 ||
        due__window_count(&topic->window) > 0 || !due__inbox_quiet(&q->inbox) || /* I2 */
        due__timeline_front(&q->timeline) == 0 || !due__timeline_head(&q->timeline, s) ||
        due__slot_deadline(*s) > at_ns)
        return false;
    const struct due__job *j = due__job_at(&q->slab, due__slot_job(*s));
    return due__slot_alive_of(j, *s, word) && due__word_state(*word) == DUE__WAITING &&
           !due__gated(topic, due__facts_load(j)) && due__is_plain(q, due__slot_job(*s));
}

/* Under the lock, until the clock (*@now_ns) shows @at_ns: the job becomes the caller's, if its
 * word is @word still and nothing has come. */
static inline bool claim_when_due(struct due_queue *q, struct due__job *j, uint64_t word,
                                  int64_t at_ns, int64_t *now_ns)
{
    for (;;) {
        *now_ns = due__monotonic_now();   /* I3: before the look at the inbox */
        if (!due__inbox_quiet(&q->inbox)) /* I2 */
            return false;
        if (due__load_relaxed(&j->word) != word) /* J1: a guess, which the swap makes sure of */
            return false;
        if (*now_ns >= at_ns)
            return due__word_claim(&j->word, &word, DUE__CLAIMED); /* J1 */
        due__spin_pause(false);
    }
}

/* Under the lock: the head, which is the slot @s of @j with the word @word, to who waits as @w.
 * False: it was not to be had; then @w is out of line, and does not lead. */
static inline bool take_head(struct due_queue *q, struct due__tenure *t, struct due__waiter *w,
                             struct due__slot s, struct due__job *j, uint64_t word, int64_t *now_ns)
{
    due__timeline_pop(&q->timeline);
    due__unpark_job(q, w);
    due__pass_lead(q, t); /* who leads then takes what else is due */
    if (claim_when_due(q, j, word, due__slot_deadline(s), now_ns)) {
        due__note_ready(q, s);
        due__taken_count(q); /* C2 of closing.c */
        due__waiter_free(q, w);
        return true;
    }
    if (due__slot_alive_of(j, s, &word))
        due__keep_waiting(q, s); /* who leads is told, if need be */
    return false;
}

/* The next job to the caller, if it is due @at_ns or before; @keep: once it is.  Else all that is
 * done ahead of that which can be done in vain. */
static __attribute__((noinline)) bool take_when_due(struct due_queue *q, struct due__waiter *w,
                                                    int64_t at_ns, bool keep, due_job *job)
{
    struct due__job *j = NULL;
    struct due__tenure t;
    struct due__slot s;
    uint64_t word;
    int64_t now = 0;
    bool taken = false;

    due__enter(q, &t);
    if (head_is_next(q, w, at_ns, &s, &word)) {
        j = due__job_at(&q->slab, due__slot_job(s));
        due__job_fill_facts(q, j, due__facts_load(j), due__slot_job(s), due__slot_deadline(s), job);
        taken = keep && take_head(q, &t, w, s, j, word, &now);
    }
    due__tenure_end(q, &t);
    if (taken)
        due__job_fill_content(j, due__facts_load(j), now, job);
    return taken;
}

/* With a job that was counted, and without a waiter, out of the queue. */
static inline void leave(struct due_queue *q)
{
    if (q->capacity > 0)
        due__capacity_give(q, 1);
    due__left(q, 1);      /* C2 of closing.c */
    due__inside_leave(q); /* C1 of inside.c */
}

bool due__spin_take(struct due_queue *q, struct due__request *r)
{
    struct due__waiter *w = r->waiter;
    int64_t before = FIRST_NS;
    bool keep = false;
    int64_t now;

    do {
        now = due__monotonic_now();
        if (due__bell_take(&w->bell))
            break;
        if (now >= r->spin_until_ns - before) {
            keep = now >= r->spin_until_ns - KEEP_NS;
            if (take_when_due(q, w, r->spin_until_ns, keep, r->jobs)) {
                leave(q);
                return true;
            }
            before /= 2;
        }
        due__spin_pause(before == FIRST_NS);
    } while (!keep);
    r->woke_ns = now >= r->spin_until_ns ? now : 0;
    return false;
}
