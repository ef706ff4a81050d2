/* inside.c - callers that wait inside a queue, and those who close it and wait for them.
 *
 * Who closes may free the queue as soon as it is told that it is closed.  So a call that has once
 * begun to wait counts as inside until it returns, and counting itself out is the last thing it
 * does to the queue.  The same holds for those who close: the queue cannot be freed before the last
 * of them has counted itself out.
 *
 * Guards     X  the lock of those who leave and close      A  atomic, see Edges
 *
 * Edges      C1  a caller that may sleep counts itself inside, then looks at the state under the
 *                timeline's lock; leaving, it counts itself out.  Close sets CLOSING, then says by
 *                a flag in the count that it looks at it.  Either close sees the caller, or the
 *                caller sees CLOSING; and who leaves either was counted out before the flag, or
 *                sees it and leaves by the lock (C4).
 *            C3  whoever finds the queue's own waiter free takes it; giving it back releases it
 *            C4  who leaves and finds the flag counts itself out with the lock, and rings those who
 *                close if it is the last; close looks at the count with the lock.  So when it finds
 *                nobody inside, whoever was has released the lock, and the release is the last
 *                thing that touches the queue.
 *            C5  who closes sets its bit, then has the timeline's lock, then looks at a manual
 *                clock and is in line; who turns that stores the time, then has the lock, and looks
 *                at the state there.  If close had it first, the bit is seen, and the line is
 *                looked at; else close sees the new time.  (He comes only if he is asked to: K2
 *                of clock.c.)
 */
#include "queue/inside.h"

#include "os/atomic.h"
#include "queue/queue.h"

#define WATCHED 1u /* in the count: somebody who closes has looked at it */
#define CALLER  2u

void due__inside_enter(struct due_queue *q)
{
    due__add_seq(&q->inside, CALLER); /* C1 */
}

/* Those who close stay in line and look for themselves. */
static void ring_closers(struct due_queue *q)
{
    for (struct due__waiter *w = q->closers.first; w != NULL; w = w->line_next)
        due__bell_ring(&w->bell);
}

void due__inside_leave(struct due_queue *q)
{
    uint32_t inside = due__load_seq(&q->inside); /* C1 */

    while (!(inside & WATCHED)) {
        if (due__cas_seq(&q->inside, &inside, inside - CALLER)) /* C1 */
            return;
    }
    due__lock_acquire(&q->leaving);                             /* C4 */
    if (due__sub_seq(&q->inside, CALLER) == (CALLER | WATCHED)) /* C1, C4 */
        ring_closers(q);
    due__lock_release(&q->leaving); /* C4 */
}

/* ---- Those who close ---- */

/* Closing must not fail for want of memory: the first of those who close has a waiter ready. */
static struct due__waiter *closer_get(struct due_queue *q)
{
    return due__xchg_seq(&q->closer_taken, 1) == 0 ? &q->closer : due__waiter_get(q); /* C3 */
}

static void closer_put(struct due_queue *q, struct due__waiter *w)
{
    if (w != &q->closer)
        due__waiter_put(q, w);
    else
        due__store_release(&q->closer_taken, 0); /* C3 */
}

struct due__waiter *due__closer_enter(struct due_queue *q)
{
    struct due__waiter *w;

    due__listener_hear(&q->turns); /* K2 */
    due__lock_acquire(&q->leaving);
    q->closing++;
    due__lock_release(&q->leaving);
    w = closer_get(q);
    if (w == NULL)
        due__closer_leave(q, NULL, false);
    return w;
}

void due__closer_leave(struct due_queue *q, struct due__waiter *w, bool ended)
{
    if (w != NULL)
        closer_put(q, w);
    due__lock_acquire(&q->leaving);
    if (ended) {
        q->ending = DUE__ENDED;
        ring_closers(q);
    }
    q->closing--;
    due__lock_release(&q->leaving); /* C4: as of those inside */
}

void due__closers_ring(struct due_queue *q)
{
    due__lock_acquire(&q->leaving);
    ring_closers(q);
    due__lock_release(&q->leaving);
}

void due__closers_tick(struct due_queue *q, int64_t now_ns)
{
    due__lock_acquire(&q->leaving);
    for (struct due__waiter *w = q->closers.first; w != NULL; w = w->line_next) {
        if (w->until_ns <= now_ns)
            due__bell_ring(&w->bell);
    }
    due__lock_release(&q->leaving);
}

/* With the lock: is everybody out, and is the queue ended, or to be ended by the caller?  Then how;
 * DUE__NOT_ENDED: not yet. */
static enum due__ending look(struct due_queue *q)
{
    if (!(due__load_seq(&q->state) & DUE__CLOSING) ||         /* C1 */
        (due__or_seq(&q->inside, WATCHED) & ~WATCHED) != 0 || /* C1, C4 */
        q->ending == DUE__ENDING)
        return DUE__NOT_ENDED;
    if (q->ending == DUE__NOT_ENDED) {
        q->ending = DUE__ENDING;
        return DUE__ENDING;
    }
    return DUE__ENDED;
}

int due__closer_wait(struct due_queue *q, struct due__waiter *w, int64_t until_ns,
                     enum due__ending *ending)
{
    for (;;) {
        due__lock_acquire(&q->leaving);
        if (w->linked)
            due__waiters_remove(&q->closers, w);
        *ending = look(q);
        w->linked = *ending == DUE__NOT_ENDED && /* C5 */
                    (until_ns == DUE_FOREVER || due__timeout_now(q) < until_ns);
        w->until_ns = until_ns;
        if (w->linked)
            due__waiters_add(&q->closers, w);
        bool waits = w->linked;
        due__lock_release(&q->leaving);
        if (!waits)
            return *ending == DUE__NOT_ENDED ? DUE_ETIMEDOUT : 0;
        due__bell_wait(&w->bell, q->clock.manual != NULL ? DUE_FOREVER : until_ns, false);
    }
}

bool due__inside_any(struct due_queue *q)
{
    due__lock_acquire(&q->leaving); /* C4 */
    bool any = q->ending != DUE__ENDED || q->closing > 0 ||
               (due__load_seq(&q->inside) & ~WATCHED) != 0; /* C1 */
    due__lock_release(&q->leaving);
    return any;
}

static _Thread_local const struct due_queue *handled_here; /* O  of the thread */

void due__handling_begun(const struct due_queue *q)
{
    handled_here = q;
}

bool due__handling(const struct due_queue *q)
{
    return handled_here == q;
}
