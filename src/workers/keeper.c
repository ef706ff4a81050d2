/* keeper.c - the keeper of a pool: extends the leases of running handlers, and gives back
 * what stands with a worker that does not come for it.
 *
 * While nothing is reserved it sleeps without end, so an idle pool costs nothing.  Once rung it
 * goes on looking for half a lease, so that jobs that come one by one need not ring it each time.
 *
 * Edges      F3  a worker reserves, then looks when the keeper will look; the keeper says when,
 *                then looks at every worker.  All four sequentially consistent (a worker's lock is,
 *                as its release is a full fence): either the worker sees that it is too late for
 *                its jobs, and rings, or the keeper sees them.
 *            described elsewhere: F1, F4 and F5 worker.c
 *
 * Not here   Whoever handles a job looks himself whether its lease has ended: pool.c.
 */
#include "api/ack.h"
#include "os/atomic.h"
#include "queue/timed_wait.h"
#include "workers/pool.h"

#define TRIES 8 /* in a lease, to extend it in a store that does not answer, or refuses */

void due__keep_events(struct due_workers *pool, int64_t now_ns, int64_t in_ns)
{
    int64_t by_ns = due__time_add(now_ns, in_ns);

    if (due__load_seq(&pool->watch_ns) <= by_ns) /* F3 */
        return;
    due__store_seq(&pool->watch_ns, by_ns); /* F3: the others need not ring too */
    due__bell_ring(&pool->rest->bell);
}

/* Until when the lease of @w goes if it is extended now: as long as it is, or not beyond its limit.
 * What it has it keeps. */
static int64_t until_when(const struct due__worker *w, int64_t now_ns)
{
    const struct due_workers *pool = w->pool;
    int64_t end = due__time_add(w->renewed_ns, pool->lease_ns);
    int64_t until = due__time_add(now_ns, pool->lease_ns);

    if (until > w->limit_ns)
        until = w->limit_ns;
    if (until < end || due__load_relaxed(&pool->abandoned)) /* no edge: soon enough */
        return end;
    return until;
}

static int extend_to(const due_job *job, int64_t lease_ns)
{
    due_job copy = *job;

    copy.pool = NULL; /* it is a real lease, and we have the worker's lock */
    return due__lease_extend(&copy, lease_ns);
}

/* Under the lock of @w: the end of its lease is as it is by now, whoever has moved it.  False: that
 * is not known, since it is being extended in the store. */
static bool note_end(struct due__worker *w)
{
    int64_t end;
    int rc = w->deferred ? 0 : due__lease_end(&w->job, &end);

    if (rc == 0 && !w->deferred)
        w->renewed_ns = end - w->pool->lease_ns;
    w->lost = w->lost || (rc != 0 && rc != DUE_EBUSY);
    return rc != DUE_EBUSY;
}

/* The same: its lease is extended.  If that has to be tried again it counts once. */
static void renew(struct due__worker *w, int64_t now_ns, int64_t again_ns)
{
    int64_t end = due__time_add(w->renewed_ns, w->pool->lease_ns);
    int64_t until = until_when(w, now_ns);
    int rc = 0;

    if (w->deferred)
        due__worker_keep(w, until);
    else if (until > end)
        rc = extend_to(&w->job, until - now_ns);
    w->lost = until <= end || (rc != 0 && rc != DUE_EBUSY); /* it cannot be extended any more */
    w->extended += rc == 0 && !w->lost && w->tried_end_ns != end;
    w->tried_end_ns = end;
    w->again_ns = again_ns;
}

/* The same, if half of it is over.  How long until that is to be looked at. */
static int64_t extend(struct due__worker *w)
{
    const struct due_workers *pool = w->pool;
    int64_t now = due__clock_now(&pool->q->clock);
    int64_t half = pool->lease_ns - pool->lease_ns / 2;
    int64_t part = pool->lease_ns / TRIES + 1;
    bool known = note_end(w);

    if (known && !w->lost && due__time_add(w->renewed_ns, half) <= now && w->again_ns <= now) {
        renew(w, now, due__time_add(now, part));
        known = note_end(w);
    }
    int64_t left = due__time_add(w->renewed_ns, half) - now;
    if (w->lost)
        return DUE_FOREVER;
    if (known && left > 0)
        return left < half ? left : half;
    return w->again_ns > now ? w->again_ns - now : part;
}

/* Nobody has begun one of the jobs that stand with @w for a while: they go back.  How long until
 * that may have to be done. */
static int64_t relieve(struct due__worker *w, uint64_t taken, int64_t now_ns)
{
    if (taken != w->seen || w->seen_ns == 0) {
        w->seen = taken;
        w->seen_ns = now_ns;
    }
    int64_t left = w->seen_ns + due__patience(w->pool) - now_ns;
    if (left > 0)
        return left;
    due__worker_give_back(w);
    w->seen_ns = 0;
    return DUE_FOREVER;
}

/* How long until @w has to be looked at again; DUE_FOREVER: it has nothing. */
static int64_t look_at(struct due__worker *w, int64_t now_ns)
{
    int64_t next = DUE_FOREVER;

    due__lock_acquire(&w->lock);
    if (w->running)
        next = extend(w);
    uint64_t taken = w->taken;
    bool stands = due__load_relaxed(&w->count) > 0; /* F3: under the lock */
    due__lock_release(&w->lock);

    if (!stands) {
        w->seen_ns = 0;
        return next;
    }
    int64_t then = relieve(w, taken, now_ns);
    return then < next ? then : next;
}

/* At every worker: when to look again. */
static int64_t look(struct due_workers *pool, int64_t now_ns)
{
    int64_t next = DUE_FOREVER;

    for (size_t i = 0; i < pool->threads; i++) {
        int64_t then = look_at(&pool->worker[i], now_ns);

        if (then < next)
            next = then;
    }
    return due__time_add(now_ns, next);
}

void due__keep(void *arg)
{
    struct due_workers *pool = arg;
    struct due_queue *q = pool->q;
    int64_t first = DUE_FOREVER;
    int64_t stay_ns = 0;

    while (!due__workers_ended(pool)) {
        int64_t now = due__timeout_now(q);

        if (first == DUE_FOREVER)
            stay_ns = due__time_add(now, pool->lease_ns / 2);
        first = look(pool, now);
        if (first == DUE_FOREVER && now < stay_ns)
            first = stay_ns;
        due__store_seq(&pool->watch_ns, first); /* F3 */
        int64_t next = look(pool, due__timeout_now(q));
        due__timed_wait(q, pool->rest, next < first ? next : first);
    }
}
