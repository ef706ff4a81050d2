/* rivals_libuv.c - a uv_timer_t for each job, embedded in it, in one loop.
 *
 * libuv counts in milliseconds: deadlines are rounded up to the next, and all jobs of a millisecond
 * fire in one pass of the loop.  A timer is made known to the loop once, and then started and
 * stopped; one that was allocated by itself must be closed before it can be freed, which the next
 * pass of the loop does.
 */
#include <uv.h>

#include "rivals_loop.h"

#define TEXT(x)  #x
#define VALUE(x) TEXT(x)
#define MS_NS    INT64_C(1000000)

struct job {
    uv_timer_t timer;
    struct loop_job kept;
};

struct queue {
    struct loop_jobs jobs;
    uv_loop_t loop;
};

/* uv_run() would otherwise go on to sleep until the next timer. */
static void fire(uv_timer_t *timer)
{
    struct queue *q = timer->loop->data;

    loop_ring_put(&q->jobs.fired, timer);
    uv_stop(timer->loop);
}

static void start(struct queue *q, struct job *job)
{
    uint64_t at_ms = (uint64_t)((job->kept.at_ns + MS_NS - 1) / MS_NS);
    uint64_t now_ms = uv_now(&q->loop);

    if (!loop_pool_has(&q->jobs.pool, job))
        uv_timer_init(&q->loop, &job->timer);
    uv_timer_start(&job->timer, fire, at_ms > now_ms ? at_ms - now_ms : 0, 0);
}

static void *queue_open(const struct bench_setup *setup)
{
    struct queue *q = loop_must(calloc(1, sizeof *q));
    uint64_t asked = rivals_clock_asked();

    if (uv_loop_init(&q->loop) != 0)
        loop_die("libuv has no loop");
    q->loop.data = q;
    uv_update_time(&q->loop);
    loop_check_clock(setup, asked);
    loop_jobs_open(&q->jobs, setup, sizeof(struct job));
    for (size_t i = 0; i < q->jobs.pool.count; i++) {
        struct job *job = loop_pool_job(&q->jobs.pool, i);

        uv_timer_init(&q->loop, &job->timer);
    }
    return q;
}

static void closed(uv_handle_t *timer)
{
    free(timer);
}

static void give_back(struct queue *q, struct job *job)
{
    if (loop_pool_has(&q->jobs.pool, job))
        loop_pool_give(&q->jobs.pool, job);
    else
        uv_close((uv_handle_t *)&job->timer, closed);
}

static void close_one(uv_handle_t *timer, void *queue)
{
    const struct queue *q = queue;

    if (!uv_is_closing(timer))
        uv_close(timer, loop_pool_has(&q->jobs.pool, timer) ? NULL : closed);
}

static void queue_close(void *queue)
{
    struct queue *q = queue;

    uv_walk(&q->loop, close_one, q);
    uv_run(&q->loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&q->loop) != 0)
        loop_die("libuv does not close its loop");
    loop_jobs_close(&q->jobs);
    free(q);
}

static void queue_enqueue(void *queue, unsigned thread, const struct bench_job *in,
                          union bench_handle *handle)
{
    struct queue *q = queue;
    struct job *job = loop_pool_take(&q->jobs.pool);

    (void)thread;
    loop_job_in(&job->kept, in);
    start(q, job);
    if (handle != NULL)
        handle->ptr = job;
}

static bool queue_dequeue(void *queue, unsigned thread, struct bench_job *out, bool wait)
{
    struct queue *q = queue;
    struct job *job = loop_ring_take(&q->jobs.fired);

    (void)thread;
    while (job == NULL) {
        int alive = uv_run(&q->loop, wait ? UV_RUN_ONCE : UV_RUN_NOWAIT);

        job = loop_ring_take(&q->jobs.fired);
        if (job == NULL && !wait)
            return false;
        if (job == NULL && !alive)
            loop_die("libuv waits for a job, and there is none");
    }
    loop_jobs_lend(&q->jobs, job, &job->kept, out);
    return true;
}

static void queue_done(void *queue, unsigned thread, struct bench_job *jobs, size_t n)
{
    struct queue *q = queue;

    (void)thread;
    (void)jobs;
    (void)n;
    give_back(q, q->jobs.lent);
}

static bool queue_cancel(void *queue, unsigned thread, union bench_handle handle)
{
    struct queue *q = queue;
    struct job *job = handle.ptr;

    (void)thread;
    if (!uv_is_active((uv_handle_t *)&job->timer))
        return false;
    uv_timer_stop(&job->timer);
    give_back(q, job);
    return true;
}

/* Timers that were closed are freed by a pass of the loop. */
static void queue_trim(void *queue)
{
    struct queue *q = queue;

    uv_run(&q->loop, UV_RUN_NOWAIT);
}

const struct bench_subject bench_libuv = {
    .name = "libuv",
    .about = "libuv " VALUE(UV_VERSION_MAJOR) "." VALUE(UV_VERSION_MINOR) "." VALUE(
        UV_VERSION_PATCH) ", a uv_timer_t for each job; whole milliseconds",
    .can = BENCH_ONE_THREAD | BENCH_CANCEL | BENCH_VIRTUAL | BENCH_PAYLOAD,
    .open = queue_open,
    .close = queue_close,
    .enqueue = queue_enqueue,
    .dequeue = queue_dequeue,
    .done = queue_done,
    .cancel = queue_cancel,
    .trim = queue_trim,
    .grain_ns = MS_NS,
};
