/* request.c - one call that takes jobs: what is shown, what is due under the lock, and waiting.
 *
 * Guards     T  the timeline lock
 *
 * Edges      described elsewhere: E3 tenure.c, C1 inside.c, G2 sender.c, I2 I3 inbox.c, J1 slab.h,
 *            and of takings.c (with a store) Q7, of topic.c T1 W3, of waiter.c W2
 */
#include "job/request.h"

#include "job/lease.h"
#include "job/spin_take.h"
#include "os/atomic.h"
#include "queue/inside.h"
#include "queue/queue.h"
#include "queue/stored.h"
#include "queue/take.h"
#include "queue/tenure.h"

/* ---- Under the lock ---- */

/* The head of the timeline, if it is due and for this taker.  False: it is not, or has to go
 * through a line. */
static bool take_head(struct due_queue *q, const struct due__request *r, int64_t now_ns,
                      struct due__slot *s)
{
    struct due__timeline *tl = &q->timeline;
    uint64_t w;

    for (uint32_t looked = 0; looked < DUE__MOVES_MAX; looked++) {
        if (due__timeline_bound(tl) > now_ns || !due__head_ready(q) || !due__timeline_head(tl, s) ||
            due__slot_deadline(*s) > now_ns)
            return false;
        struct due__job *j = due__job_at(&q->slab, due__slot_job(*s));
        bool alive = due__slot_alive(&q->slab, *s, &w);
        struct due__facts f = due__facts_load(j);

        const struct due__topic *t = due__topic_at(q, f.topic);
        if (alive && (due__word_state(w) != DUE__WAITING || /* a lease has ended: by the line */
                      t->paused || due__gated(t, f) || !due__wants(&r->wanted, f.topic)))
            return false;
        due__timeline_pop(tl);
        due__prefetch_ahead(q);
        if (alive && due__word_claim(&j->word, &w, DUE__CLAIMED)) { /* J1 */
            due__note_taken(q, due__slot_job(*s), w);
            due__note_ready(q, *s);
            return true;
        }
    }
    return false;
}

/* Is what this taker gets known only when all that is due stands in its line?  Not if it wants one
 * topic, or there is but one, in the order by deadline: the timeline has the same. */
static inline bool needs_lines(const struct due_queue *q, const struct due__request *r)
{
    return q->order != DUE_ORDER_DEADLINE ||
           (r->wanted.count != 1 && due__load_relaxed(&q->topic_count) > 1); /* T1: a count */
}

/* Nothing is ready in any line: up to @max jobs from the timeline, as they stand.  They need no
 * line. */
static size_t take_heads(struct due_queue *q, const struct due__request *r, int64_t now_ns,
                         struct due__slot *slots, size_t max)
{
    size_t got = 0;

    if (!q->shows || due__timeline_bound(&q->timeline) > now_ns || due__topics_ready(q))
        return 0;
    if (needs_lines(q, r) && !due__head_alone(q, now_ns))
        return 0;
    while (got < max && take_head(q, r, now_ns, &slots[got]))
        got++;
    return got;
}

/* Is anything left in the inbox that was there when the call first looked?  It may come first.
 * What came later may be left, or the call might never end. */
static bool left_in_inbox(struct due_queue *q, struct due__request *r)
{
    if (!due__inbox_knocked(&q->inbox) || r->last == NULL ||
        r->rounds++ > due__slab_end(&q->slab) / DUE__PROXY_BATCH)
        return false;
    return (due__load_acquire(&r->last->word) & DUE__LINKED) != 0; /* J1 */
}

/* Sort in, move what is due, take.  *@done: nothing that is due was left behind. */
static size_t look(struct due_queue *q, struct due__request *r, struct due__slot *slots, bool *done)
{
    int64_t now =
        r->woke_ns != 0 ? r->woke_ns : due__clock_now(&q->clock); /* I3: before the drain */
    size_t max = r->max < DUE__TAKE_MAX ? r->max : DUE__TAKE_MAX;
    size_t got = 0;

    *done = false;
    r->woke_ns = 0;
    r->now_ns = 0;
    if (due__inbox_quiet(&q->inbox)) { /* I2 */
        r->now_ns = now;
        got = take_heads(q, r, now, slots, max);
        if (got == max && q->all == NULL)
            return got; /* nobody waits for the rest of what is due */
    } else {
        if (r->rounds == 0)
            r->last = due__last_in_inbox(q);
        if (q->clock.steps && !q->limiters.any) /* as in due__catch_up() */
            due__move_due(q, now);
        due__inbox_mark(&q->inbox, now);
        bool complete = due__drain_or_say(q, DUE__PROXY_BATCH);
        if (!complete && left_in_inbox(q, r)) {
            r->woke_ns = now; /* what comes due from here on is not waited for */
            return 0;
        }
    }
    *done = due__move_due(q, now);
    if (needs_lines(q, r)) {
        if (!*done && got == 0) {
            r->woke_ns = now; /* what comes due from here on is not waited for */
            return 0;
        }
        due__sole_until(q);
    }
    if (q->proxies == DUE_PROXIES_ALWAYS && r->timeout_ns != 0 && !r->last_look)
        return 0; /* the dequeue proxy takes */
    while (got < max) {
        size_t more;
        enum due__found found = due__take_ready(q, &r->wanted, slots + got, max - got, &more);

        got += more;
        if (found != DUE__FOUND) {
            *done = *done && found == DUE__NOTHING;
            break;
        }
    }
    return got;
}

/* ---- Waiting ---- */

/* What to answer when there is nothing: 0 to go on waiting, or unless *@done to look again. */
static int verdict(struct due_queue *q, struct due__request *r, bool *done)
{
    if (due__load_seq(&q->state) & DUE__CLOSING) /* E3: whoever closes has rung us */
        return DUE_ECLOSED;
    if (due__state_of(q) != 0) /* G2 of sender.c: so has whoever fenced */
        return DUE_EFENCED;
    if (q->journal->landed(q) != r->landed) /* Q7 of takings.c */
        return DUE__LANDED;
    if (r->quit != NULL && due__load_seq(r->quit)) /* E3: so has whoever says so */
        return DUE_ETIMEDOUT;
    if (!*done)
        return 0;
    if (r->timeout_ns == 0)
        return DUE_EAGAIN;
    if (r->until_ns == DUE_FOREVER || due__timeout_now(q) < r->until_ns)
        return 0;
    if (q->proxies != DUE_PROXIES_ALWAYS || r->last_look)
        return DUE_ETIMEDOUT;
    r->last_look = true;
    *done = false;
    return 0;
}

enum step { OVER, AGAIN, NEEDS_WAITER, SPINS };

/* Is the caller, who leads, to spin from now on until a job is due @at_ns?  @alone: as told under
 * the lock by due__spin_serves(). */
static bool spins_now(const struct due_queue *q, const struct due__request *r, bool alone,
                      int64_t at_ns)
{
    return r->spins && alone && q->short_takes && q->clock.manual == NULL && q->alarm.fd < 0 &&
           at_ns < r->until_ns && due__monotonic_now() >= at_ns - q->spin_ns;
}

/* Under the lock: what the dequeue proxy has put into the waiter's hand, or a look of one's own. */
static int look_or_hand(struct due_queue *q, struct due__request *r, struct due__waiter *w,
                        struct due__slot *slots, size_t *got, bool *done)
{
    *done = true;
    *got = 0;
    if (w != NULL && w->hand != DUE__NO_JOB) {
        struct due__job *j = due__job_at(&q->slab, w->hand);

        slots[(*got)++] =
            due__slot_make(due__load_relaxed(&j->deadline_ns), 0, 0, w->hand); /* J1 */
        w->hand = DUE__NO_JOB;
    } else {
        *got = look(q, r, slots, done);
    }
    if (*got > 0)
        return 0;
    *done = *done && !due__more_to_come(q);
    int rc = verdict(q, r, done);
    if (rc == DUE_EAGAIN) {
        due__fd_again(q);
        due__sole_none(q);
    }
    return rc;
}

/* How much of one topic's. */
static size_t at_once(const struct due_queue *q, const struct due__request *r)
{
    size_t most = needs_lines(q, r) ? 1 : DUE__TAKE_MAX;

    return r->max < most ? r->max : most;
}

/* One look under the lock and, if there is nothing, one sleep.  OVER: *@got jobs, or *@rc.  SPINS:
 * @w stands in line. */
static enum step look_or_sleep(struct due_queue *q, struct due__request *r, struct due__waiter *w,
                               struct due__slot *slots, size_t *got, int *rc)
{
    struct due__tenure t;
    bool done;

    due__enter(q, &t);
    if (w != NULL)
        due__unpark_job(q, w);
    *rc = look_or_hand(q, r, w, slots, got, &done);
    bool over = *got > 0 || *rc != 0;
    if (*got > 0 && r->lease_ns > 0 && q->short_ways)
        r->leased = due__lease_at_once(q, slots, *got, r->lease_ns, r->now_ns, r->jobs);
    if (over && w != NULL && q->lead == w)
        due__pass_lead(q, &t);
    if (over || !done || w == NULL) {
        if (!over && done)
            due__inside_once(q, &r->inside); /* C1 of inside.c: before the next look */
        due__tenure_end(q, &t);
        return over ? OVER : done ? NEEDS_WAITER : AGAIN;
    }
    w->topics = r->wanted.topics;
    w->topic_count = r->wanted.count;
    w->quit = r->quit;
    w->until_ns = r->until_ns;
    due__park_job(q, &t, w);
    bool lead = q->lead == w;
    bool alone = due__spin_serves(q);
    int64_t at_ns = w->on_alarm ? q->armed : w->wakes_ns;
    due__tenure_end(q, &t);
    r->rounds = 0;
    r->now_ns = 0;
    if (lead && spins_now(q, r, alone, at_ns)) {
        r->waiter = w;
        r->spin_until_ns = at_ns;
        *rc = DUE__SPINS;
        return SPINS;
    }
    r->woke_ns = due__sleep(q, w, lead, at_ns, r->until_ns);

    /* Called for a topic, and not the leader by then: take what is shown, without the lock. */
    uint32_t called = due__load_acquire(&w->called); /* W2 */
    if (called == 0 || (called & DUE__CALLED_LEAD) || !due__shown_is_next(q))
        return AGAIN;
    *got = due__take_shown(q, due__topic_at(q, called - 1), slots, at_once(q, r));
    if (*got == 0)
        return AGAIN;
    due__arrive(q, w);
    return OVER;
}

/* Nothing was there, or it was spun for in vain: wait.  As take_slow(). */
static size_t take_waiting(struct due_queue *q, struct due__request *r, struct due__slot *slots,
                           int *rc)
{
    struct due__waiter *w = r->waiter != NULL ? r->waiter : due__waiter_get(q);
    enum step step;
    size_t got = 0;

    if (w == NULL) {
        *rc = DUE_ENOMEM;
        return 0;
    }
    if (r->until_ns == DUE_FOREVER) /* else it goes on: what was taken was not to be handed out */
        r->until_ns = due__time_add(due__timeout_now(q), r->timeout_ns);
    r->waiter = NULL;
    do {
        step = look_or_sleep(q, r, w, slots, &got, rc);
    } while (step == AGAIN);
    if (step == OVER)
        due__waiter_put(q, w);
    return got;
}

/* Under the lock: how many were taken; if none, *@rc. */
static size_t take_slow(struct due_queue *q, struct due__request *r, struct due__slot *slots,
                        int *rc)
{
    enum step step;
    size_t got;

    do {
        step = look_or_sleep(q, r, NULL, slots, &got, rc);
    } while (step == AGAIN);
    return step == OVER ? got : take_waiting(q, r, slots, rc);
}

/* All that is taken at once, by whatever way. */
size_t due__take_some(struct due_queue *q, struct due__request *r, struct due__slot *slots, int *rc)
{
    if (r->waiter != NULL)
        return take_waiting(q, r, slots, rc);
    size_t got = due__take_fast(q, &r->wanted, slots, r->max);

    r->now_ns = 0;
    r->leased = false;
    return got > 0 ? got : take_slow(q, r, slots, rc);
}
