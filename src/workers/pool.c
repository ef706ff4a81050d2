/* pool.c - the verbs of a pool of workers: start, stop, free, and what it has done.
 *
 * Each worker counts as a caller inside its queue for all of its life: so whoever closes the queue
 * waits for the handlers, and the last worker to leave tells him.
 *
 * Edges      described elsewhere: F1 F2 F5 worker.c, F3 keeper.c, C1 inside.c, E3 tenure.c
 */
#include "workers/pool.h"

#include <stdio.h>
#include <string.h>

#include "api/ack.h"
#include "api/open.h"
#include "job/deferred_lease.h"
#include "os/atomic.h"
#include "os/sized.h"
#include "queue/closing.h"
#include "queue/inside.h"
#include "queue/timed_wait.h"
#include "store/share.h"

#define EXTEND_MAX_NS DUE_S(600)

/* ---- Whose handler runs ---- */

static _Thread_local const struct due_workers *pool_here; /* O  of the thread */

void due__handling_begin(const struct due_workers *pool)
{
    due__handling_begun(pool->q);
    pool_here = pool;
}

/* ---- Starting ---- */

static int options_check(const due_workers_options *o, size_t threads)
{
    if (threads == 0 || threads > DUE_WORKERS_MAX)
        return DUE_EINVAL;
    if (o->lease_ns < 0 || o->extend_max_ns < 0)
        return DUE_EINVAL;
    if (o->name != NULL && !due__name_ok(o->name))
        return DUE_EINVAL;
    return o->in_flight_max != 0 && o->in_flight_max < threads ? DUE_EINVAL : 0;
}

static void add_up(struct due__worker *w, struct due_workers_stats *s)
{
    due__lock_acquire(&w->lock);
    s->running += due__load_relaxed(&w->busy);          /* no edge: a figure */
    s->acked += due__load_relaxed(&w->acked);           /* no edge: a figure */
    s->retried += due__load_relaxed(&w->retried);       /* no edge: a figure */
    s->buried += due__load_relaxed(&w->buried);         /* no edge: a figure */
    s->lost += due__load_relaxed(&w->lost_count);       /* no edge: a figure */
    s->unanswered += due__load_relaxed(&w->unanswered); /* no edge: a figure */
    s->ahead += due__load_relaxed(&w->count);           /* no edge: a figure */
    s->extended += w->extended;
    s->given_back += w->given_back;
    due__lock_release(&w->lock);
}

static void sum_up(struct due__counted *counted, struct due_workers_stats *s)
{
    struct due_workers *pool = caa_container_of(counted, struct due_workers, counted);

    s->threads += due__load_relaxed(&pool->alive); /* no edge: a figure */
    s->idle += due__load_relaxed(&pool->idle);     /* no edge: a figure */
    for (size_t i = 0; i < pool->threads; i++)
        add_up(&pool->worker[i], s);
    s->handled = s->acked + s->retried + s->buried + s->lost + s->unanswered;
}

static struct due_workers *make(struct due_queue *q, const int *topics, size_t n, size_t threads,
                                const due_workers_options *o)
{
    size_t workers = sizeof(struct due_workers) + threads * sizeof(struct due__worker);
    size_t bytes = workers + n * sizeof *topics;
    struct due_workers *pool = due__alloc_new(&q->alloc, bytes);
    size_t share = o->in_flight_max / threads;

    if (pool == NULL)
        return NULL;
    pool->q = q;
    pool->bytes = bytes;
    pool->threads = threads;
    pool->alive = (uint32_t)threads;
    pool->inside = (uint32_t)threads;
    pool->topic_count = n;
    if (n > 0) {
        int *own = (int *)(void *)((char *)pool + workers);

        memcpy(own, topics, n * sizeof *topics);
        pool->topics = own;
    }
    pool->lease_ns = o->lease_ns != 0 ? o->lease_ns : q->lease_ns;
    if (q->shared) /* the keeper counts from its end */
        pool->lease_ns = due__sharing_lease_fit(pool->lease_ns);
    pool->extend_max_ns = o->extend_max_ns != 0 ? o->extend_max_ns : EXTEND_MAX_NS;
    pool->batch_max = share == 0 || share > DUE__AHEAD_MAX ? DUE__AHEAD_MAX : (uint32_t)share;
    pool->promises = q->short_ways && q->clock.manual == NULL;
    pool->watch_ns = DUE_FOREVER;
    for (size_t i = 0; i < threads; i++) {
        pool->worker[i].pool = pool;
        pool->worker[i].holder.settle = due__worker_settle;
        due__lock_init(&pool->worker[i].lock);
    }
    return pool;
}

/* The waiters are the queue's, and never freed before it: who has found one in the list rings it
 * without the lock, perhaps when its thread has gone on already, and ended. */
static int waiters_get(struct due_workers *pool)
{
    pool->rest = due__waiter_get(pool->q);
    if (pool->rest == NULL)
        return DUE_ENOMEM;
    for (size_t i = 0; i < pool->threads; i++) {
        struct due__worker *w = &pool->worker[i];

        w->rest = due__waiter_get(pool->q);
        if (w->rest == NULL)
            return DUE_ENOMEM;
        w->rest->quit = &pool->quit;
    }
    return 0;
}

static void waiter_put(struct due_queue *q, struct due__waiter *w)
{
    if (w != NULL)
        due__waiter_put(q, w);
}

/* In a child process the waiters are left to the queue: somebody may have held its lock. */
static void destroy(struct due_workers *pool, bool forked)
{
    struct due__alloc *alloc = &pool->q->alloc;

    if (!forked)
        waiter_put(pool->q, pool->rest);
    for (size_t i = 0; i < pool->threads; i++) {
        if (!forked)
            waiter_put(pool->q, pool->worker[i].rest);
        due__lock_destroy(&pool->worker[i].lock);
    }
    due__alloc_free(alloc, pool, pool->bytes);
}

/* Those that were started end. */
static void dismiss(struct due_workers *pool, size_t started)
{
    struct due_queue *q = pool->q;

    due__store_seq(&pool->quit, 1); /* F2 */
    due__quit_ring(q, &pool->quit);
    due__sub_seq(&pool->alive, (uint32_t)(pool->threads - started)); /* F5 */
    for (size_t i = started; i < pool->threads; i++)
        due__inside_leave(q);
    due__bell_ring(&pool->rest->bell);
    for (size_t i = 0; i < started; i++)
        due__thread_join(&pool->worker[i].thread);
    due__thread_join(&pool->keeper);
}

/* DUE_ESYS: none is left. */
static int threads_start(struct due_workers *pool)
{
    size_t started = 0;
    int rc;

    for (size_t i = 0; i < pool->threads; i++)
        due__inside_enter(pool->q); /* C1 of inside.c */
    rc = due__thread_start_named(&pool->keeper, pool->q, "k", due__keep, pool);
    while (rc == 0 && started < pool->threads) {
        struct due__worker *w = &pool->worker[started];
        char number[12];

        snprintf(number, sizeof number, "%u", (unsigned)started);
        rc = due__thread_start_named(&w->thread, pool->q, number, due__work, w);
        started += rc == 0;
    }
    if (rc != 0)
        dismiss(pool, started);
    return rc;
}

/* How many pools there are: with one the queue cannot be freed. */
static void count_pool(struct due_queue *q, bool more)
{
    struct due__tenure t;

    due__enter(q, &t);
    q->pools = more ? q->pools + 1 : q->pools - 1;
    due__tenure_end(q, &t);
}

int due_workers_start(due_workers **workers, due_queue *q, const int *topics, size_t topic_count,
                      size_t threads, due_handler *handler, void *ctx,
                      const due_workers_options *options)
{
    due_workers_options given = { DUE_WORKERS_INIT };
    const due_workers_options *o = &given;

    *workers = NULL;
    if (due__forked(q))
        return DUE_EFORK;
    int rc = options != NULL ? due__sized_read(&given, sizeof given, options) : 0;
    if (rc != 0)
        return rc;
    if (options_check(o, threads) != 0 || topic_count > DUE_TOPIC_MAX ||
        !due__topics_there(q, topics, topic_count))
        return DUE_EINVAL;
    if (due__load_seq(&q->state) & DUE__CLOSING) /* E3 */
        return DUE_ECLOSED;
    struct due__row *row = due__row_new(q, o->name != NULL ? o->name : "workers");
    if (row == NULL)
        return DUE_ENOMEM;
    rc = DUE_ENOMEM;
    struct due_workers *pool = make(q, topics, topic_count, threads, o);
    if (pool == NULL)
        goto free_row;
    pool->handler = handler;
    pool->ctx = ctx;
    rc = waiters_get(pool);
    if (rc != 0)
        goto free_pool;
    count_pool(q, true);
    rc = threads_start(pool);
    if (rc != 0) {
        count_pool(q, false);
        goto free_pool;
    }
    pool->counted.add_up = sum_up;
    due__pool_stats_enter(q, &pool->counted, row);
    *workers = pool;
    return 0;

free_pool:
    destroy(pool, false);
free_row:
    due__row_free(q, row);
    return rc;
}

/* ---- Stopping ---- */

/* 1: all workers have ended; 0: again, after a sleep; or DUE_ETIMEDOUT. */
static int gone_or_sleep(struct due_workers *pool, struct due__waiter *w, int64_t until_ns)
{
    struct due_queue *q = pool->q;
    struct due__tenure t;
    int rc = 0;

    due__enter(q, &t);
    due__timed_wait_unlink(q, w);
    if (pool->inside == 0)
        rc = 1;
    else if (until_ns != DUE_FOREVER && due__timeout_now(q) >= until_ns)
        rc = DUE_ETIMEDOUT;
    else
        due__timed_wait_link(q, w, until_ns);
    due__tenure_end(q, &t);
    if (rc == 0)
        due__bell_wait(&w->bell, q->clock.manual != NULL ? DUE_FOREVER : until_ns, false);
    return rc;
}

int due_workers_stop(due_workers *pool, int64_t timeout_ns)
{
    struct due_queue *q = pool->q;
    int rc = 0;

    if (due__forked(q))
        return DUE_EFORK;
    if (timeout_ns < 0)
        return DUE_EINVAL;
    if (timeout_ns > 0 && pool_here == pool)
        return DUE_EDEADLK;
    struct due__waiter *w = due__waiter_get(q);
    if (w == NULL)
        return DUE_ENOMEM;
    int64_t until = due__time_add(due__timeout_now(q), timeout_ns);
    due__store_seq(&pool->quit, 1); /* F2 */
    due__quit_ring(q, &pool->quit);
    for (size_t i = 0; i < pool->threads; i++)
        due__worker_give_back(&pool->worker[i]);
    w->quit = &pool->quit;
    while (rc == 0)
        rc = gone_or_sleep(pool, w, until);
    due__waiter_put(q, w);
    if (rc == 1)
        return 0;
    if (timeout_ns == 0)
        return DUE_EAGAIN;
    due__store_relaxed(&pool->abandoned, 1); /* no edge: soon enough */
    return rc;
}

int due_workers_free(due_workers *pool)
{
    int cancel;

    if (pool == NULL)
        return 0;
    struct due_queue *q = pool->q;
    if (due__forked(q)) {
        destroy(pool, true);
        return 0;
    }
    if (!due__workers_ended(pool))
        return DUE_EBUSY;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* a join is a point of it */
    for (size_t i = 0; i < pool->threads; i++)
        due__thread_join(&pool->worker[i].thread);
    due__thread_join(&pool->keeper);
    pthread_setcancelstate(cancel, NULL);
    due__pool_stats_leave(pool->q, &pool->counted);
    destroy(pool, false);
    count_pool(q, false);
    return 0;
}

/* ---- What it has done ---- */

int due_workers_stats_read(due_workers *pool, struct due_workers_stats *stats)
{
    struct due_workers_stats s = { 0 };

    if (due__forked(pool->q))
        return DUE_EFORK;
    sum_up(&pool->counted, &s);
    *stats = s;
    return 0;
}

/* ---- A handler asks ---- */

int due_job_stopping(const due_job *job)
{
    const struct due__worker *w = job->pool;
    struct due_queue *q = job->queue;
    bool deferred;

    if (q == NULL || job->token == 0 || due__forked(q))
        return 1;
    if ((w != NULL && due__load_seq(&w->pool->quit)) || /* F2 */
        (due__load_seq(&q->state) & DUE__CLOSING))      /* E3 */
        return 1;
    if (w != NULL && w->pool->promises) {
        bool cancelled = due__deferred_stopping(job, &deferred);

        if (deferred)
            return cancelled;
    }
    return due__lease_stopping(job);
}
