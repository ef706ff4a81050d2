/* closing.c - a queue that closes, or drains: who is told, and when nothing is left.
 *
 * Edges      C2  whoever takes a job out of the queue counts it in a shard, then looks at the
 *                state; close sets DRAINING, enters the timeline's lock once, and sums the counts,
 *                with all shards' locks.  Whoever counted before is in the sum, and whoever counts
 *                after it sees DRAINING.  If jobs are left, the sum shares all but one of them out
 *                to the shards: so many may leave in each (SPARE) before anybody need sum again.
 *                Whoever leaves pays from the spare of a shard after it has counted; who finds too
 *                little there sums, and shares out anew.
 *                A job in a place at hand is counted under the timeline's lock before its word is
 *                written: so before close has the lock, and whoever counts it as gone does later.
 *                Who takes one under that lock counts it there (taken); the sum reads that before
 *                it reads what was placed, and after the shards: so no job is gone in it that has
 *                not come.
 *                A shard's lock may be biased, and then there is no fence between the count and
 *                the look.  But the sum has all shards, none of them by a try: so either the fence
 *                that it has all threads pass comes before that look, or it waits until the count
 *                is seen.
 *
 * Always     N1  what the shards have to spare, less what is counted as gone and not yet paid, is
 *                less than what waits.  So once all have paid and nothing is left, somebody found
 *                too little after the latest sum, and he sums.  Jobs that come only add to what
 *                waits.
 *            N2  nobody sums before close has: until then the spare has no end.  A producer that
 *                looked at the state before DRAINING was set may still place its job; close has the
 *                lock after it.
 *            described elsewhere: E3 tenure.c, C1 inside.c
 *
 * Not here   What becomes of the jobs that are left: discard.c.
 */
#include "queue/closing.h"

#include "os/atomic.h"
#include "queue/counts.h"
#include "queue/inside.h"
#include "queue/queue.h"
#include "queue/stored.h"
#include "queue/timed_wait.h"

/* Everyone who waits for room is called and, with @consumers, everyone who waits for a job or timed
 * waits; those who come later see the state. */
void due__wake_all(struct due_queue *q, bool consumers)
{
    struct due__tenure t;
    bool more;

    do {
        due__enter(q, &t);
        while (consumers && q->all != NULL && due__tenure_room(&t))
            due__call(q, &t, q->all, NULL);
        while (q->capacity_line.first != NULL && due__tenure_room(&t)) {
            struct due__waiter *w = q->capacity_line.first;

            due__waiters_remove(&q->capacity_line, w);
            w->linked = false;
            due__tenure_ring(&t, &w->bell);
        }
        more = (consumers && q->all != NULL) || q->capacity_line.first != NULL;
        if (consumers && !due__timed_wait_ring(q, &t, NULL))
            more = true;
        due__tenure_end(q, &t);
    } while (more);
    due__closers_ring(q);
}

void due__wake_consumers(struct due_queue *q)
{
    due__wake_all(q, true);
}

void due__quit_ring(struct due_queue *q, const uint32_t *quit)
{
    struct due__tenure t;
    bool all;

    do {
        due__enter(q, &t);
        all = due__timed_wait_ring(q, &t, quit);
        for (struct due__waiter *next, *w = q->all; all && w != NULL; w = next) {
            next = w->all_next;
            if (w->quit != quit)
                continue;
            all = due__tenure_room(&t);
            if (all)
                due__call(q, &t, w, NULL);
        }
        due__tenure_end(q, &t);
    } while (!all);
}

void due__drained(struct due_queue *q)
{
    if ((due__load_seq(&q->state) & DUE__CLOSING) || due__waiting_shared(q) > 0) /* C2 */
        return;
    if (due__loading(q)) /* what is stored is to be delivered too */
        return;
    if (!(due__or_seq(&q->state, DUE__CLOSING) & DUE__CLOSING)) /* C1 of inside.c, E3 */
        due__wake_all(q, true);
}

void due__left_draining(struct due_queue *q, uint64_t n)
{
    struct due__shard *it = due__shard_enter(&q->slab);
    bool enough = it->spare == DUE__SPARE_ALL || it->spare >= n; /* C2 */

    if (enough && it->spare != DUE__SPARE_ALL)
        it->spare -= n;
    due__shard_leave(it);
    if (!enough)
        due__drained(q);
}

void due__stop_proxies(struct due_queue *q)
{
    int cancel;

    if (due__or_seq(&q->state, DUE__STOPPED) & DUE__STOPPED) /* no edge: once */
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* a join is a point of it */
    due__bell_ring(&q->enqueue_bell);
    q->journal->interrupt(q);
    due__bell_ring(&q->worker.bell);
    if (q->alarm.fd >= 0)
        due__bell_ring(&q->alarm);
    due__bell_ring(&q->dequeue_bell);
    for (size_t i = 0; i < sizeof q->threads / sizeof q->threads[0]; i++)
        due__thread_join(&q->threads[i]);
    pthread_setcancelstate(cancel, NULL);
}
