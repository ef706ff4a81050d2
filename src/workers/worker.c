/* worker.c - what a worker does: fetch, begin, call the handler, answer.
 *
 * A worker that fetches more than one job stands before its jobs as long as its handlers are fast.
 * Whatever stands with it, any worker of the pool takes before it waits for a new job; so nothing
 * stands behind a handler while somebody is idle.
 *
 * Edges      F1  fetch writes a worker's count, then looks whether anybody is idle; who is to wait
 *                counts itself idle, then looks at every count.  All four sequentially consistent:
 *                either the fetcher sees the idle one, and gives back what it cannot begin at once,
 *                or the idle one sees the jobs.
 *            F2  stop sets quit, then rings those who wait for a job -> a worker looks at quit
 *                under the lock before it waits, and whenever it has none in hand
 *            F4  whoever takes a job that stands with a worker copies it, then lowers the count ->
 *                the worker sees that none is left, and writes over them
 *            F5  a worker that ends counts itself out, then leaves the queue and rings the keeper
 *                -> the keeper, and who has stopped the pool or closed the queue, see none left
 *            described elsewhere: F3 keeper.c, C1 inside.c, E3 tenure.c
 *
 * Not here   Extending leases, and giving back what stands with a stuck worker: keeper.c.
 */
#include "api/ack.h"
#include "api/dequeue.h"
#include "job/deferred_lease.h"
#include "os/atomic.h"
#include "queue/inside.h"
#include "queue/timed_wait.h"
#include "workers/pool.h"

#define PAUSE_MIN_NS DUE_MS(10)
#define PAUSE_MAX_NS DUE_S(1)

bool due__workers_leaving(const struct due_workers *pool)
{
    return due__load_seq(&pool->quit) ||                                            /* F2 */
           (due__load_seq(&pool->q->state) & DUE__CLOSING) || due__forked(pool->q); /* E3 */
}

bool due__workers_ended(const struct due_workers *pool)
{
    return due__load_seq(&pool->alive) == 0; /* F5 */
}

/* ---- Beginning a job ---- */

/* Under the lock of @from: the first job that stands with it, and when it was reserved. */
static bool pop(struct due__worker *from, due_job *job, int64_t *reserved_ns)
{
    uint32_t count = due__load_relaxed(&from->count); /* F4: under the lock */

    if (count == 0)
        return false;
    *job = from->ahead[from->at++];
    *reserved_ns = from->reserved_ns;
    from->taken++;
    due__store_release(&from->count, count - 1); /* F4 */
    return true;
}

/* Under the lock of @me: the job in its hand is in a handler from here on. */
static void run(struct due__worker *me, int64_t reserved_ns)
{
    me->job.pool = me;
    me->renewed_ns = reserved_ns;
    me->limit_ns = due__time_add(reserved_ns, me->pool->extend_max_ns);
    me->tried_end_ns = INT64_MIN;
    me->again_ns = INT64_MIN;
    me->deferred = me->pool->promises && due__promised(&me->job);
    me->lost = false;
    me->running = true;
    due__store_relaxed(&me->busy, 1); /* no edge: for the figures */
}

/* The first job that stands with @me is begun. */
static bool begin(struct due__worker *me)
{
    int64_t reserved_ns;

    if (due__load_seq(&me->count) == 0) /* F1, F4 */
        return false;
    due__lock_acquire(&me->lock);
    bool some = pop(me, &me->job, &reserved_ns);
    if (some)
        run(me, reserved_ns);
    due__lock_release(&me->lock);
    return some;
}

/* The same of one that stands with @from. */
static bool begin_of(struct due__worker *me, struct due__worker *from)
{
    due_job job;
    int64_t reserved_ns;

    if (due__load_seq(&from->count) == 0) /* F1 */
        return false;
    due__lock_acquire(&from->lock);
    bool some = pop(from, &job, &reserved_ns);
    due__lock_release(&from->lock);
    if (!some)
        return false;
    due__lock_acquire(&me->lock);
    me->job = job;
    run(me, reserved_ns);
    due__lock_release(&me->lock);
    return true;
}

/* One that stands with somebody else. */
static bool begin_any(struct due__worker *me)
{
    struct due_workers *pool = me->pool;
    size_t own = (size_t)(me - pool->worker);

    for (size_t i = 1; i < pool->threads; i++) {
        if (begin_of(me, &pool->worker[(own + i) % pool->threads]))
            return true;
    }
    return false;
}

void due__worker_keep(struct due__worker *w, int64_t until_ns)
{
    due__deferred_keep(&w->job, until_ns);
    w->renewed_ns = until_ns - w->pool->lease_ns;
    w->deferred = false;
}

void due__worker_settle(const due_job *job)
{
    struct due__worker *w = job->pool;

    if (!w->pool->promises)
        return;
    due__lock_acquire(&w->lock);
    if (w->running && w->deferred && due_id_equal(w->job.id, job->id))
        due__worker_keep(w, due__time_add(w->renewed_ns, w->pool->lease_ns));
    due__lock_release(&w->lock);
}

/* ---- Giving back ---- */

/* Back to where it stood, as if it had not been reserved. */
static void release(const struct due_workers *pool, due_job *job)
{
    if (pool->promises && due__promised(job))
        due__deferred_return(job);
    else if (due__lease_release(job) != 0)
        due_job_done(job); /* its lease runs out */
}

/* All that stand with @w; how many. */
static uint32_t take_away(struct due__worker *w, due_job jobs[DUE__AHEAD_MAX])
{
    uint32_t n = 0;

    due__lock_acquire(&w->lock);
    uint32_t count = due__load_relaxed(&w->count); /* F4: under the lock */
    while (n < count) {
        jobs[n] = w->ahead[w->at + n];
        n++;
    }
    due__store_release(&w->count, 0); /* F4 */
    w->given_back += n;
    due__lock_release(&w->lock);
    return n;
}

void due__worker_give_back(struct due__worker *w)
{
    due_job jobs[DUE__AHEAD_MAX];
    uint32_t n = take_away(w, jobs);

    for (uint32_t i = 0; i < n; i++)
        release(w->pool, &jobs[i]);
}

/* ---- Fetching ---- */

/* What the last jobs took.  Slower counts at once, faster only in time. */
static void measure(struct due__worker *me, int64_t now_ns)
{
    if (me->fetched == 0)
        return;
    int64_t pace = (now_ns - me->fetched_ns) / me->fetched;

    me->pace_ns = pace > me->pace_ns ? pace : (7 * me->pace_ns + pace) / 8;
    me->fetched = 0;
}

/* How many jobs to ask for: a millisecond's worth and a part of a lease at most, and not many more
 * than last time.  One if others are idle; and where a clock is turned by hand, since nobody can
 * tell what is fast there. */
static uint32_t batch(struct due__worker *me)
{
    const struct due_workers *pool = me->pool;
    int64_t budget = pool->lease_ns / DUE__AHEAD_LEASE;
    uint32_t most = me->batch < pool->batch_max / 2 ? me->batch * 2 : pool->batch_max;

    if (budget > DUE__AHEAD_NS)
        budget = DUE__AHEAD_NS;
    int64_t fits = budget / (me->pace_ns + 1);
    if (pool->q->clock.manual != NULL || fits < 1 || most < 1 ||
        due__load_relaxed(&pool->idle) > 0) /* F1: looked at again */
        return 1;
    return fits < most ? (uint32_t)fits : most;
}

static int reserve(struct due__worker *me, uint32_t max, int64_t timeout_ns)
{
    struct due_workers *pool = me->pool;

    return due__take_out(pool->q, pool->topics, pool->topic_count, me->ahead, max,
                         pool->promises ? -pool->lease_ns : pool->lease_ns, timeout_ns,
                         &pool->quit);
}

/* Nothing is due: take what stands with others, or wait.  As due__take_out(); 0: one was begun. */
static int wait_for_one(struct due__worker *me)
{
    struct due_workers *pool = me->pool;
    int rc = 0;

    due__add_seq(&pool->idle, 1); /* F1 */
    if (!begin_any(me))
        rc = reserve(me, 1, DUE_FOREVER);
    due__sub_seq(&pool->idle, 1); /* F1 */
    return rc;
}

/* @n jobs lie in ahead: they stand with @me, and the first is begun. */
static void stand(struct due__worker *me, uint32_t n)
{
    struct due_workers *pool = me->pool;
    int64_t reserved_ns;

    due__lock_acquire(&me->lock);
    me->at = 0;
    me->reserved_ns = due__clock_now(&pool->q->clock);
    due__store_seq(&me->count, n); /* F1 */
    if (pop(me, &me->job, &reserved_ns))
        run(me, reserved_ns);
    due__lock_release(&me->lock);
    if (n > 1 && due__load_seq(&pool->idle) > 0) /* F1 */
        due__worker_give_back(me);
    due__keep_events(pool, due__timeout_now(pool->q),
                     n > 1 ? due__patience(pool) : pool->lease_ns / 2);
}

/* An error that may pass: timed wait, each time longer.  False: it will not. */
static bool pause_after(struct due__worker *me, int rc)
{
    struct due_queue *q = me->pool->q;

    if (rc == DUE_ECLOSED || rc == DUE_EFORK || rc == DUE_EFENCED || rc == DUE_EINVAL) {
        if (rc != DUE_ECLOSED)
            due__log(q, DUE_LOG_ERROR, "%s: a worker ends: %s", q->name, due_error_text(rc));
        return false;
    }
    if (rc == DUE_ETIMEDOUT) /* called away; or the store is, and the call has waited for it */
        return true;
    me->pause_ns = me->pause_ns < PAUSE_MAX_NS / 2 ? me->pause_ns * 2 : PAUSE_MAX_NS;
    due__timed_wait(q, me->rest, due__time_add(due__timeout_now(q), me->pause_ns));
    return true;
}

/* A job is begun.  False: the worker is to end. */
static bool fetch(struct due__worker *me)
{
    struct due_workers *pool = me->pool;
    bool goes_on = true;

    while (goes_on && !due__workers_leaving(pool)) {
        int64_t now = due__monotonic_now();

        measure(me, now);
        me->batch = batch(me);
        int rc = reserve(me, me->batch, 0);
        if (rc == DUE_EAGAIN) {
            rc = wait_for_one(me);
            now = due__monotonic_now();
        }
        if (rc > 0)
            stand(me, (uint32_t)rc);
        if (rc >= 0) {
            me->fetched = rc > 0 ? (uint32_t)rc : 1;
            me->fetched_ns = now;
            me->pause_ns = PAUSE_MIN_NS / 2;
            return true;
        }
        goes_on = pause_after(me, rc);
    }
    return false;
}

/* ---- Answering ---- */

static void count_up(uint64_t *count)
{
    uint64_t before = due__load_relaxed(count); /* no edge: a counter, one writer */

    due__store_relaxed(count, before + 1); /* no edge: likewise */
}

/* *@count gets the counter of this answer. */
static int answer_once(struct due__worker *me, const due_answer *answer, uint64_t **count)
{
    switch (answer->kind) {
    case DUE_ANSWER_ACK:
        *count = &me->acked;
        return due_ack(&me->job);
    case DUE_ANSWER_BURY:
        *count = &me->buried;
        return due_bury(&me->job, answer->why); /* of which it takes no more than there is */
    case DUE_ANSWER_SNOOZE:
        *count = &me->retried;
        return due_snooze(&me->job, answer->delay_ns < 0 ? 0 : answer->delay_ns);
    case DUE_ANSWER_NACK:
        *count = &me->retried;
        return due_nack(&me->job, answer->delay_ns < DUE_DELAY_POLICY ? 0 : answer->delay_ns);
    default:
        *count = &me->retried;
        return due_nack(&me->job, DUE_DELAY_POLICY);
    }
}

/* Say it until it is heard, or the lease has ended.  The job's copy is let go of. */
static void answer(struct due__worker *me, const due_answer *answer)
{
    uint64_t *count;
    int rc;

    do {
        rc = answer_once(me, answer, &count);
    } while (rc == DUE_ETIMEDOUT && !due_job_stopping(&me->job)); /* the store is away */
    if (rc != 0)
        count = rc == DUE_ESTALE ? &me->lost_count : &me->unanswered;
    due_job_done(&me->job); /* does nothing if it was let go of */
    count_up(count);
}

static void handle(struct due__worker *me)
{
    struct due_workers *pool = me->pool;
    due_answer answered = { .kind = DUE_ANSWER_NONE };

    pool->handler(pool->ctx, &me->job, &answered);
    due__lock_acquire(&me->lock);
    me->running = false; /* from here on the keeper leaves the job alone */
    bool deferred = me->deferred;
    if (deferred && answered.kind != DUE_ANSWER_ACK)
        due__worker_keep(me, due__time_add(due__clock_now(&pool->q->clock), pool->lease_ns));
    due__lock_release(&me->lock);
    if (deferred && answered.kind == DUE_ANSWER_ACK) {
        due__deferred_ack(&me->job);
        count_up(&me->acked);
    } else {
        answer(me, &answered);
    }
    due__store_relaxed(&me->busy, 0); /* no edge: for the figures */
}

/* ---- A worker's life ---- */

/* Its thread is joined before the pool is freed, so both are there to the end.  It is no worker any
 * more before it is out of its queue, so that who has closed that can free the pool; and it is gone
 * only after that, so that who has stopped the pool can close without waiting. */
static void leave(struct due__worker *me)
{
    struct due_workers *pool = me->pool;
    struct due_queue *q = pool->q;
    struct due__tenure t;
    bool told;

    due__worker_give_back(me);
    due__sub_seq(&pool->alive, 1); /* F5 */
    due__inside_leave(q);          /* C1 of inside.c */
    do {
        due__enter(q, &t);
        told = pool->inside > 1 || due__timed_wait_ring(q, &t, &pool->quit);
        if (told)
            pool->inside--;
        due__tenure_end(q, &t);
    } while (!told);
    due__bell_ring(&pool->rest->bell); /* the keeper may end too */
}

void due__work(void *worker)
{
    struct due__worker *me = worker;

    due__handling_begin(me->pool);
    me->pause_ns = PAUSE_MIN_NS / 2;
    while (!due__workers_leaving(me->pool) && (begin(me) || fetch(me)))
        handle(me);
    leave(me);
}
