/* closing.c - a queue that closes, or drains: who is told, and when nothing is left.
 *
 * Edges      C2  whoever takes a job out of the queue counts it in a shard, then looks at the
 *                state; close sets DRAINING, then sums the counts, each under its shard's lock.
 *                Whoever is later in a shard sees what the other wrote before: so of all who take
 *                and sum, the last one sees that nothing is left.  Jobs in places at hand are
 *                counted before their word is written; whoever takes one reads the word, then
 *                counts it as gone in a shard; what has come is summed after that.
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
    if ((due__load_seq(&q->state) & DUE__CLOSING) || due__waiting(q) > 0) /* C2 */
        return;
    if (due__loading(q)) /* what is stored is to be delivered too */
        return;
    if (!(due__or_seq(&q->state, DUE__CLOSING) & DUE__CLOSING)) /* C1 of inside.c, E3 */
        due__wake_all(q, true);
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
