/* capacity.c - room in a queue with a capacity, and callers that wait for it.
 *
 * Edges      S1  give frees room, then looks whether somebody waits; take says that it waits, then
 *                tries for room once more before it sleeps.  All four sequentially consistent:
 *                either the giver sees the waiter, or the waiter sees the room.
 *            described elsewhere: E3 tenure.c, G2 sender.c
 */
#include "queue/capacity.h"

#include "os/atomic.h"
#include "queue/inside.h"
#include "queue/queue.h"
#include "queue/stored.h"

static size_t try_take(struct due_queue *q, size_t n)
{
    uint64_t used = due__load_seq(&q->used); /* S1 */

    while (used < q->capacity) {
        uint64_t room = q->capacity - used;
        uint64_t want = n < room ? n : room;

        if (due__cas_seq(&q->used, &used, used + want)) /* S1 */
            return (size_t)want;
    }
    return 0;
}

/* Ring the first who wait for room. */
static void call_first(struct due_queue *q, size_t n)
{
    struct due__tenure t;
    struct due__waiter *w;

    due__enter(q, &t);
    while (n-- > 0 && (w = q->capacity_line.first) != NULL && due__tenure_room(&t)) {
        due__waiters_remove(&q->capacity_line, w);
        w->linked = false;
        due__store_release(&w->called, 1); /* W2 of waiter.c */
        due__tenure_ring(&t, &w->bell);
    }
    due__tenure_end(q, &t);
}

void due__capacity_give(struct due_queue *q, size_t n)
{
    due__sub_seq(&q->used, n);                   /* S1 */
    if (due__load_seq(&q->capacity_waiting) > 0) /* S1 */
        call_first(q, n);
}

void due__capacity_force(struct due_queue *q, size_t n)
{
    due__add_seq(&q->used, n); /* S1: more than the capacity, until so many have gone */
}

/* One try and, if there is no room, one sleep.  Answers as due__capacity_take, or 0: again. */
static int try_or_sleep(struct due_queue *q, struct due__waiter *w, size_t n, int64_t until_ns)
{
    struct due__tenure t;
    size_t got;

    due__enter(q, &t);
    if (w->linked)
        due__waiters_remove(&q->capacity_line, w);
    w->linked = false;
    got = try_take(q, n); /* S1 */
    int rc = (int)got;
    if (got == 0 && (due__load_seq(&q->state) & DUE__REFUSING)) /* E3 of tenure.c */
        rc = DUE_ECLOSED;
    else if (got == 0 && due__state_of(q) != 0)
        rc = DUE_EFENCED; /* G2 of sender.c: nobody takes a job any more */
    else if (got == 0 && due__timeout_now(q) >= until_ns && until_ns != DUE_FOREVER)
        rc = DUE_ETIMEDOUT;
    if (rc == 0) {
        w->until_ns = until_ns;
        w->timed_out = false;
        w->linked = true;
        due__store_relaxed(&w->called, 0); /* W2 of waiter.c: not in line yet */
        due__waiters_add(&q->capacity_line, w);
    }
    due__tenure_end(q, &t);
    if (rc == 0)
        due__bell_wait(&w->bell, q->clock.manual != NULL ? DUE_FOREVER : until_ns, false);
    return rc;
}

int due__capacity_take(struct due_queue *q, size_t n, int64_t timeout_ns, bool *inside)
{
    size_t got = try_take(q, n);
    int rc = 0;

    if (got > 0)
        return (int)got;
    if (timeout_ns == 0)
        return DUE_EAGAIN;
    struct due__waiter *w = due__waiter_get(q);
    if (w == NULL)
        return DUE_ENOMEM;

    int64_t until = due__time_add(due__timeout_now(q), timeout_ns);
    due__inside_once(q, inside);
    due__add_seq(&q->capacity_waiting, 1); /* S1 */
    while (rc == 0)
        rc = try_or_sleep(q, w, n, until);
    due__sub_seq(&q->capacity_waiting, 1); /* S1 */
    /* Called, but leaving without the room, or leaving some of it: the next one may have it. */
    if (due__load_acquire(&w->called) != 0 && (rc < 0 || due__load_seq(&q->used) < q->capacity))
        call_first(q, 1);
    due__waiter_put(q, w);
    return rc;
}
