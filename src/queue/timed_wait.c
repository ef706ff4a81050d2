/* timed_wait.c - those who wait for a time or a ring, but for no job: the threads of a pool, and
 * who stops one.
 *
 * They stand in a list, so that a manual clock finds them when it is turned, and whoever closes the
 * queue or stops their pool (quit, NULL for those whom neither concerns) can ring them.
 *
 * Guards     T  the timeline lock
 *
 * Edges      described elsewhere: E3 tenure.c, F2 worker.c
 */
#include "queue/timed_wait.h"

#include "os/atomic.h"
#include "queue/queue.h"

/* Stand in the list, unless it is time already, or to quit. */
static bool begin_wait(struct due_queue *q, struct due__waiter *w, int64_t until_ns)
{
    struct due__tenure t;

    due__enter(q, &t);
    bool early = until_ns == DUE_FOREVER || due__timeout_now(q) < until_ns;
    if (w->quit != NULL && (due__load_seq(w->quit) || (due__load_seq(&q->state) & DUE__CLOSING)))
        early = false; /* E3, and F2 of worker.c: whoever says so rings the list */
    if (early)
        due__timed_wait_link(q, w, until_ns);
    due__tenure_end(q, &t);
    return early;
}

void due__timed_wait(struct due_queue *q, struct due__waiter *w, int64_t until_ns)
{
    struct due__tenure t;

    if (!begin_wait(q, w, until_ns))
        return;
    due__bell_wait(&w->bell, q->clock.manual != NULL ? DUE_FOREVER : until_ns, false);
    due__enter(q, &t);
    due__timed_wait_unlink(q, w);
    due__tenure_end(q, &t);
}

void due__timed_wait_link(struct due_queue *q, struct due__waiter *w, int64_t until_ns)
{
    w->until_ns = until_ns;
    w->timed_out = false;
    w->linked = true;
    due__waiters_add(&q->timed_waits, w);
}

void due__timed_wait_unlink(struct due_queue *q, struct due__waiter *w)
{
    if (w->linked)
        due__waiters_remove(&q->timed_waits, w);
    w->linked = false;
}

bool due__timed_wait_ring(struct due_queue *q, struct due__tenure *t, const uint32_t *quit)
{
    for (struct due__waiter *w = q->timed_waits.first; w != NULL; w = w->line_next) {
        if (w->timed_out || w->quit == NULL || (quit != NULL && w->quit != quit))
            continue;
        if (!due__tenure_room(t))
            return false;
        w->timed_out = true; /* it is awake, and will come */
        due__tenure_ring(t, &w->bell);
    }
    return true;
}
