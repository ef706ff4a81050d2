/* rivals_libev.c - an ev_timer for each job, embedded in it, in one loop.
 *
 * libev counts in seconds, as a double, from the time that the loop has last looked at.  It fires a
 * timer when the time is past its instant, not when it is the instant.  A clock that stands at a
 * deadline would therefore never fire it: on a virtual clock each is set half a nanosecond earlier.
 * There every instant is a whole nanosecond, so that none is early by that.
 */
#include <ev.h>

#include "rivals_loop.h"

#define TEXT(x)  #x
#define VALUE(x) TEXT(x)

struct job {
    ev_timer timer;
    struct loop_job kept;
};

struct queue {
    struct loop_jobs jobs;
    struct ev_loop *loop;
    bool virtual_clock;
    int64_t seen_ns; /* what the loop has last looked at, or a little earlier */
};

static void fire(struct ev_loop *loop, ev_timer *timer, int what)
{
    struct queue *q = ev_userdata(loop);

    (void)what;
    loop_ring_put(&q->jobs.fired, timer);
}

static void look(struct queue *q)
{
    q->seen_ns = bench_now();
    ev_now_update(q->loop);
}

static void start(struct queue *q, struct job *job)
{
    if (!q->virtual_clock)
        look(q);
    double after = (double)(job->kept.at_ns - q->seen_ns) * 1e-9;

    ev_timer_init(&job->timer, fire, q->virtual_clock ? after - 0.5e-9 : after, 0);
    ev_timer_start(q->loop, &job->timer);
}

/* The loop's own array of timers grows and is touched when it is first used. */
static void reserve(struct queue *q)
{
    size_t n = q->jobs.pool.count;

    for (size_t i = 0; i < n; i++) {
        struct job *job = loop_pool_job(&q->jobs.pool, i);

        ev_timer_init(&job->timer, fire, 86400, 0);
        ev_timer_start(q->loop, &job->timer);
    }
    for (size_t i = n; i > 0; i--) {
        struct job *job = loop_pool_job(&q->jobs.pool, i - 1);

        ev_timer_stop(q->loop, &job->timer);
    }
}

static void *queue_open(const struct bench_setup *setup)
{
    struct queue *q = loop_must(calloc(1, sizeof *q));
    uint64_t asked = rivals_clock_asked();

    q->loop = loop_must(ev_loop_new(EVFLAG_AUTO));
    q->virtual_clock = setup->virtual_clock;
    ev_set_userdata(q->loop, q);
    look(q);
    loop_check_clock(setup, asked);
    loop_jobs_open(&q->jobs, setup, sizeof(struct job));
    reserve(q);
    return q;
}

static void queue_close(void *queue)
{
    struct queue *q = queue;

    ev_loop_destroy(q->loop);
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
        if (q->virtual_clock)
            q->seen_ns = bench_now(); /* so does ev_run() */
        bool active = ev_run(q->loop, wait ? EVRUN_ONCE : EVRUN_NOWAIT);

        job = loop_ring_take(&q->jobs.fired);
        if (job == NULL && !wait)
            return false;
        if (job == NULL && !active)
            loop_die("libev waits for a job, and there is none");
    }
    loop_jobs_lend(&q->jobs, job, &job->kept, out);
    return true;
}

static bool queue_cancel(void *queue, unsigned thread, union bench_handle handle)
{
    struct queue *q = queue;
    struct job *job = handle.ptr;

    (void)thread;
    if (!ev_is_active(&job->timer))
        return false;
    ev_timer_stop(q->loop, &job->timer);
    loop_pool_give(&q->jobs.pool, job);
    return true;
}

const struct bench_subject bench_libev = {
    .name = "libev",
    .about = "libev " VALUE(EV_VERSION_MAJOR) "." VALUE(EV_VERSION_MINOR) ", an ev_timer a job",
    .can = BENCH_ONE_THREAD | BENCH_CANCEL | BENCH_VIRTUAL | BENCH_PAYLOAD,
    .open = queue_open,
    .close = queue_close,
    .enqueue = queue_enqueue,
    .dequeue = queue_dequeue,
    .done = loop_jobs_done,
    .cancel = queue_cancel,
};
