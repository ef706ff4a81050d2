/* tenure.c - the tenure of the timeline lock: what whoever holds it does for everybody.
 *
 * A producer tries the lock.  Free: it sorts its job in, and takes along what others left in the
 * inbox.  Busy: it leaves the job in the inbox and goes.  So nobody waits for the lock to submit,
 * and the timeline stays in the cache of one core while contention lasts.
 *
 * Edges      E1  put: link the node, knock, then look at the state, then try the lock.  Drain:
 *                answer the knock, then take.  Leave: release the lock, then look for a knock.
 *                All sequentially consistent.  If the try fails, the tenure it met is released
 *                after the knock, so either that release's look sees it, or a later drain has
 *                answered it and seen the node.  A node behind another producer's gap is seen by
 *                nobody until that producer has linked, and then its knock, look and try are
 *                still to come.  A word left in unswept is like a node: it stands before the
 *                knock, and is looked for after the answer.
 *            E2  the proxy clears ACTIVE, then looks for a knock; put knocks, then looks at the
 *                state.  Either the proxy sees the knock, or the producer sees ACTIVE gone and
 *                tries the lock itself.
 *            E3  close sets DRAINING or CLOSING, then takes the lock and drains; put links, then
 *                looks at the state.  Either the drain sees the node, or the producer sees the
 *                state and withdraws its job.
 *
 * Always     N1  somebody waits who takes a topic with a job shown: then another one was called for
 *                that topic and is under way (N4 of waiter.c)
 *
 * Not here   Waiters and the timer: waiter.c.  Topics: topic.c.
 */
#include "queue/compaction.h"
#include "queue/tenure.h"

#include "os/atomic.h"
#include "queue/queue.h"

/* ---- Tenure ---- */

#ifdef DUE_MEASURE_TENURE
void due__measure_begin(struct due_queue *q)
{
    q->tenure_begin_ns = (uint64_t)due__thread_cpu_now();
}

void due__measure_end(struct due_queue *q)
{
    uint64_t ns = (uint64_t)due__thread_cpu_now() - q->tenure_begin_ns;

    if (ns > q->tenure_max_ns)
        q->tenure_max_ns = ns;
}
#endif

/* Call a waiter for each of the topics with new jobs, unless one is under way, or the proxy that
 * does.  True: more are to be called than can be rung. */
static bool call_waiters(struct due_queue *q, struct due__tenure *t)
{
    bool proxy = q->proxies == DUE_PROXIES_ALWAYS && q->fresh != NULL;

    if (proxy && !due__tenure_room(t))
        return true;
    if (proxy)
        due__tenure_ring(t, &q->dequeue_bell);
    while (q->fresh != NULL) {
        struct due__topic *topic = q->fresh;

        if (!proxy && !due__call_for(q, t, topic))
            return true;
        q->fresh = topic->fresh_next;
        topic->fresh = false;
    }
    return false;
}

static void wake_worker(struct due_queue *q, struct due__tenure *t)
{
    if (q->proxies != DUE_PROXIES_NEVER)
        due__tenure_ring(t, q->lead == &q->worker ? due__lead_bell(q) : &q->worker.bell);
}

/* What is to be done after the release, besides ringing. */
struct after {
    bool more;       /* another tenure: not everybody could be rung */
    bool fd;         /* arm the descriptor */
    void *cold;      /* touch these chunks */
    uint32_t dying;  /* place plus 1: jobs to be seen to */
    uint32_t untold; /* likewise: to be told of */
    bool wants;      /* somebody has begun to wait: the journal is to know */
};

/* What is owed to others before the lock is released. */
static void settle(struct due_queue *q, struct due__tenure *t, struct after *after)
{
    *after = (struct after){ .cold = NULL };

    /* On a manual clock nobody leads: whoever sorted in something due moves it, if that makes a
     * difference: to those who wait, or to whose turn it is. */
    if (q->debts & DUE__DEBT_TURN)
        after->more = !due__catch_up(q, DUE__FOREIGN_MAX);
    bool reopened = (q->debts & DUE__DEBT_LIMITERS) && !due__limiters_admit(q);
    after->more |= reopened;

    uint32_t debts = q->debts;
    q->debts = (debts & DUE__DEBT_ALWAYS) | (reopened ? DUE__DEBT_LIMITERS : 0);
    if ((debts & DUE__DEBT_CALLS) && call_waiters(q, t)) {
        q->debts |= DUE__DEBT_CALLS;
        after->more = true;
    }
    if ((debts & DUE__DEBT_LEAD) && q->lead != NULL &&
        due__timeline_bound(&q->timeline) < q->armed) {
        q->armed = DUE__AWAKE;
        due__tenure_ring(t, due__lead_bell(q));
    }
    if (debts & DUE__DEBT_WORKER)
        wake_worker(q, t);
    if (debts & DUE__DEBT_SWEEP)
        due__sweep_help(q, DUE__SWEEP_STEP);
    else if (debts & DUE__DEBT_HOME)
        due__sweep_home(q, DUE__SWEEP_PIECE / 4);
    if (debts & DUE__DEBT_DYING) {
        after->dying = q->dying;
        q->dying = 0;
    }
    if (debts & DUE__DEBT_TELL)
        after->untold = due__events_list(q);
    if (debts & DUE__DEBT_WANTS) {
        after->wants = q->tickets != q->tickets_told;
        q->tickets_told = q->tickets;
    }
    if (q->pool.near && q->proxies == DUE_PROXIES_NEVER) {
        due__pool_warm_claim(&q->pool, &after->cold);
    } else if (q->pool.near && !q->warming) {
        q->warming = true;
        wake_worker(q, t);
    }
    if (debts & DUE__DEBT_FD)
        after->fd = due__fd_note(q);
}

static void call_proxy(struct due_queue *q)
{
    due__or_seq(&q->state, DUE__ACTIVE);  /* E2 */
    due__add_relaxed(&q->proxy_calls, 1); /* no edge: a counter */
    due__bell_ring(&q->enqueue_bell);
}

/* After the release, when somebody had knocked.  True: the lock is ours again, and jobs were sorted
 * in. */
static bool second_look(struct due_queue *q, struct due__tenure *t)
{
    if (due__load_seq(&q->state) & DUE__ACTIVE) /* E2: the proxy will look */
        return false;
    if (t->rounds == DUE__ROUNDS_MAX && q->proxies != DUE_PROXIES_NEVER) {
        call_proxy(q);
        return false;
    }
    if (!due__lock_try(&q->lock)) /* E1: whoever holds it will look */
        return false;
    due__begin(q, t);
    t->rounds++;
    due__help_sort(q, DUE__FOREIGN_MAX);
    return true;
}

static void leave_once(struct due_queue *q, struct due__tenure *t)
{
    struct after after;

    for (;;) {
        settle(q, t, &after);
        due__measure_end(q);
        due__lock_release(&q->lock); /* E1 */
        for (uint32_t i = 0; i < t->rings; i++) {
            if (due__bell_ring(t->ring[i]))
                due__add_relaxed(&q->rings, 1); /* no edge: a counter */
        }
        if (after.fd)
            due__fd_arm(q);
        if (after.cold != NULL)
            due__pool_warm(after.cold);
        if (after.wants)
            q->journal->wanted(q); /* X3 of share_claim.c */
        due__events_tell(q, after.untold);
        if (after.dying != 0)
            q->life->see_to(q, after.dying);
        if (!after.more)
            return;
        due__lock_acquire(&q->lock);
        due__begin(q, t);
    }
}

void due__tenure_settle(struct due_queue *q, struct due__tenure *t, bool owing)
{
    if (owing)
        leave_once(q, t);
    while (due__inbox_knocked(&q->inbox) && second_look(q, t)) /* E1 */
        leave_once(q, t);
}

void due__short_settle(struct due_queue *q, bool owing)
{
    struct due__tenure t = { .rings = 0 };

    q->tenure_end(q, &t, owing);
}
