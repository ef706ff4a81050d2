/* share_capacity.c - callers of a shared queue that wait for room.
 *
 * The store counts, and refuses a job for which there is no room.  Its caller then stands in the
 * line of those who wait for room, as in any queue, and the proxy asks the store: either there is
 * room by now, or the store writes down that this process waits, and rings it.  Rung, the proxy
 * asks again how many may come, and so many are called, who stand first.  Each puts its job again,
 * and stands in front of the others if another process was faster.  Only when all that were called
 * have come back the store is asked for the rest of the line, or it would tell of the same room
 * twice.
 *
 * A room that was called for and not taken, since its caller was refused for another reason, is
 * told to the store, which rings the next process.  A ring that comes when nobody waits any more is
 * passed on likewise.
 *
 * Guards     K  the key (sender.c)      T  the timeline lock      O  the proxy's own
 *            A  atomic, see Edges
 *
 * Edges      X4  who waits stands in the line, under T, then calls the proxy; who has put again
 *                says so (room_called, room_left), then calls it.  The proxy is called, and then
 *                looks.
 *            described elsewhere: E3 tenure.c, G2 sender.c, W2 waiter.c, X3 share_claim.c
 */
#include "os/atomic.h"
#include "queue/inside.h"
#include "queue/queue.h"
#include "queue/waiter.h"
#include "store/share.h"

void due__sharing_full(struct due__sharing *sh)
{
    if (due__load_relaxed(&sh->capacity) == 0) /* no edge: a guess */
        due__store_relaxed(&sh->capacity, 1);  /* no edge: the next beat tells */
}

/* ---- Who waits ---- */

/* 1: it was called; 0: it stands in the line, in @front of the others or behind them; or why it
 * does not any more. */
static int stand(struct due_queue *q, struct due__waiter *w, int64_t until_ns, bool front)
{
    struct due__tenure t;
    int rc = 0;

    due__enter(q, &t);                      /* X4 */
    if (due__load_acquire(&w->called) != 0) /* W2 of waiter.c */
        rc = 1;
    else if (due__load_seq(&q->state) & DUE__REFUSING) /* E3 */
        rc = DUE_ECLOSED;
    else if (due__load_seq(&q->commits->fenced)) /* G2 */
        rc = DUE_EFENCED;
    else if (until_ns != DUE_FOREVER && due__timeout_now(q) >= until_ns)
        rc = DUE_ETIMEDOUT;
    if (rc != 0 && w->linked)
        due__waiters_remove(&q->capacity_line, w);
    else if (rc == 0 && !w->linked && front)
        due__waiters_add_first(&q->capacity_line, w);
    else if (rc == 0 && !w->linked)
        due__waiters_add(&q->capacity_line, w);
    w->linked = rc == 0;
    w->until_ns = until_ns;
    w->timed_out = false;
    due__tenure_end(q, &t);
    return rc;
}

int due__sharing_await_room(struct due_queue *q, int64_t timeout_ns, struct due__deadline *by,
                            bool *inside)
{
    struct due__sharing *sh = q->commits->share;
    struct due__waiter *w = due__waiter_get(q);

    if (w == NULL)
        return DUE_ENOMEM;
    bool lost = by->room_ns != 0; /* it was called, and others were faster */
    if (!lost)
        by->room_ns = due__time_add(due__timeout_now(q), timeout_ns);
    due__inside_once(q, inside);
    due__add_seq(&sh->room_waiting, 1); /* X4 */
    int rc = stand(q, w, by->room_ns, lost);
    if (rc == 0)
        due__proxy_call(q); /* X4 */
    while (rc == 0) {
        due__bell_wait(&w->bell, q->clock.manual != NULL ? DUE_FOREVER : by->room_ns, false);
        rc = stand(q, w, by->room_ns, lost);
    }
    due__sub_seq(&sh->room_waiting, 1); /* X4 */
    due__store_relaxed(&w->called, 0);  /* W2 of waiter.c: out of line */
    due__waiter_put(q, w);
    by->at_ns = 0; /* the store has its time again */
    return rc;
}

void due__sharing_came(struct due_queue *q, bool used)
{
    struct due__sharing *sh = q->commits->share;

    if (!used)
        due__store_seq(&sh->room_left, 1);                       /* X4 */
    bool last = due__sub_seq(&sh->room_called, 1) == 1;          /* X4 */
    if (!used || (last && due__load_seq(&sh->room_waiting) > 0)) /* X4 */
        due__proxy_call(q);
}

/* ---- With the key ---- */

/* Call the first of the line: how many. */
static uint64_t call_first(struct due_queue *q, uint64_t most)
{
    struct due__sharing *sh = q->commits->share;
    struct due__tenure t;
    struct due__waiter *w;
    uint64_t n = 0;
    bool more = true;

    while (more) {
        due__enter(q, &t);
        while (n < most && (w = q->capacity_line.first) != NULL && due__tenure_room(&t)) {
            due__waiters_remove(&q->capacity_line, w);
            w->linked = false;
            due__add_seq(&sh->room_called, 1); /* X4 */
            due__store_release(&w->called, 1); /* W2 of waiter.c */
            due__tenure_ring(&t, &w->bell);
            n++;
        }
        more = n < most && q->capacity_line.first != NULL;
        due__tenure_end(q, &t);
    }
    return n;
}

static bool any_in_line(struct due_queue *q)
{
    struct due__sharing *sh = q->commits->share;
    struct due__tenure t;

    if (due__load_seq(&sh->room_waiting) == 0) /* X4 */
        return false;
    due__enter(q, &t); /* X4 */
    bool any = q->capacity_line.first != NULL;
    due__tenure_end(q, &t);
    return any;
}

bool due__sharing_asks_room(struct due_queue *q, bool *waits)
{
    struct due__sharing *sh = q->commits->share;

    if (due__load_seq(&sh->room_left) != 0) { /* X4 */
        due__store_seq(&sh->room_left, 0);    /* X4: looked at below */
        sh->room_tells = true;
    }
    *waits = any_in_line(q);
    sh->room_rung = sh->room_rung && sh->room_asked;
    if (sh->room_rung || sh->room_tells)
        return true;
    return *waits && !sh->room_asked && due__load_seq(&sh->room_called) == 0; /* X4 */
}

void due__sharing_told_room(struct due_queue *q, const struct due_beat *beat)
{
    struct due__sharing *sh = q->commits->share;

    due__store_relaxed(&sh->capacity, beat->capacity); /* no edge: a guess */
    sh->room_asked = beat->waits_room && beat->room == 0 && beat->capacity > 0;
    sh->room_rung = sh->room_tells = false;
    if (!beat->waits_room || (beat->room == 0 && beat->capacity > 0))
        return;
    if (call_first(q, beat->capacity > 0 ? beat->room : UINT64_MAX) == 0) {
        due__store_seq(&sh->room_left, 1); /* X4: they have gone meanwhile */
        due__proxy_call(q);
    }
}
