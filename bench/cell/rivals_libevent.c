/* rivals_libevent.c - an evtimer for each job, embedded in it, in one event_base.
 *
 * libevent counts in microseconds: deadlines are rounded up to the next.  Where the clock is real,
 * the base is opened with EVENT_BASE_FLAG_PRECISE_TIMER, as by a user who wants his timers on time;
 * it costs a system call with each pass of the loop.
 *
 * libev, in the same program, has calls with the names of libevent's.  Which of the two is called
 * depends on the order in which they were linked: libevent must be the first.
 */
#include <event2/event.h>
#include <event2/event_struct.h>

#include "rivals_loop.h"

#define US_NS INT64_C(1000)
#define S_US  INT64_C(1000000)

struct job {
    struct event timer;
    struct loop_job kept;
};

struct queue {
    struct loop_jobs jobs;
    struct event_base *base;
};

static void fire(evutil_socket_t none, short what, void *queue)
{
    struct queue *q = queue;

    (void)none;
    (void)what;
    loop_ring_put(&q->jobs.fired, event_base_get_running_event(q->base));
}

/* The base counts from its own look at the clock, cut to microseconds; so does this. */
static void start(struct queue *q, struct job *job)
{
    int64_t now_us = bench_now() / US_NS;
    int64_t at_us = (job->kept.at_ns + US_NS - 1) / US_NS;
    int64_t after = at_us > now_us ? at_us - now_us : 0;
    struct timeval t = { .tv_sec = after / S_US, .tv_usec = after % S_US };

    evtimer_assign(&job->timer, q->base, fire, q);
    if (evtimer_add(&job->timer, &t) != 0)
        loop_die("out of memory");
}

/* The base's own array of timers grows and is touched when it is first used. */
static void reserve(struct queue *q)
{
    const struct timeval day = { .tv_sec = 86400 };
    size_t n = q->jobs.pool.count;

    for (size_t i = 0; i < n; i++) {
        struct job *job = loop_pool_job(&q->jobs.pool, i);

        evtimer_assign(&job->timer, q->base, fire, q);
        if (evtimer_add(&job->timer, &day) != 0)
            loop_die("out of memory");
    }
    for (size_t i = n; i > 0; i--) {
        struct job *job = loop_pool_job(&q->jobs.pool, i - 1);

        evtimer_del(&job->timer);
    }
}

static void *queue_open(const struct bench_setup *setup)
{
    struct queue *q = loop_must(calloc(1, sizeof *q));
    struct event_config *config = loop_must(event_config_new());
    uint64_t asked = rivals_clock_asked();

    if (strcmp(event_get_version(), LIBEVENT_VERSION) != 0)
        loop_die("another library has taken the names of libevent");
    if (!setup->virtual_clock)
        event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    q->base = loop_must(event_base_new_with_config(config));
    event_config_free(config);
    event_base_update_cache_time(q->base);
    loop_check_clock(setup, asked);
    loop_jobs_open(&q->jobs, setup, sizeof(struct job));
    reserve(q);
    return q;
}

static void queue_close(void *queue)
{
    struct queue *q = queue;

    event_base_free(q->base);
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

    /* EVLOOP_NONBLOCK alone would look once more after something has fired. */
    int flags = wait ? EVLOOP_ONCE : EVLOOP_ONCE | EVLOOP_NONBLOCK;

    (void)thread;
    while (job == NULL) {
        int rc = event_base_loop(q->base, flags);

        job = loop_ring_take(&q->jobs.fired);
        if (job == NULL && !wait)
            return false;
        if (job == NULL && rc != 0)
            loop_die("libevent waits for a job, and there is none");
    }
    loop_jobs_lend(&q->jobs, job, &job->kept, out);
    return true;
}

static bool queue_cancel(void *queue, unsigned thread, union bench_handle handle)
{
    struct queue *q = queue;
    struct job *job = handle.ptr;

    (void)thread;
    if (!evtimer_pending(&job->timer, NULL))
        return false;
    evtimer_del(&job->timer);
    loop_pool_give(&q->jobs.pool, job);
    return true;
}

const struct bench_subject bench_libevent = {
    .name = "libevent",
    .about = "libevent " LIBEVENT_VERSION ", an evtimer for each job; whole microseconds",
    .can = BENCH_ONE_THREAD | BENCH_CANCEL | BENCH_VIRTUAL | BENCH_PAYLOAD,
    .open = queue_open,
    .close = queue_close,
    .enqueue = queue_enqueue,
    .dequeue = queue_dequeue,
    .done = loop_jobs_done,
    .cancel = queue_cancel,
    .grain_ns = US_NS,
};
