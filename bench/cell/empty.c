/* empty.c - the subject "empty": every operation does nothing, so that what is measured is the
 * cell: the stream of jobs, the calls through the table, the loop.
 */
#include "cell.h"

static void *empty_open(const struct bench_setup *setup)
{
    static char queue;

    (void)setup;
    return &queue;
}

static void empty_close(void *q)
{
    (void)q;
}

static void empty_enqueue(void *q, unsigned thread, const struct bench_job *job,
                          union bench_handle *handle)
{
    (void)q;
    (void)thread;
    if (handle != NULL)
        handle->number = job->number;
}

/* Nothing is ever due, but in hold, where the head is. */
static bool empty_nothing(void *q, unsigned thread, struct bench_job *job, bool wait)
{
    (void)q;
    (void)thread;
    (void)job;
    (void)wait;
    return false;
}

static bool empty_dequeue(void *q, unsigned thread, struct bench_job *job, bool wait)
{
    (void)q;
    (void)thread;
    (void)wait;
    *job = (struct bench_job){ .at_ns = bench_clock_stands() ? bench_now() : 0 };
    return true;
}

static bool empty_cancel(void *q, unsigned thread, union bench_handle handle)
{
    (void)q;
    (void)thread;
    (void)handle;
    return true;
}

static bool empty_reschedule(void *q, unsigned thread, union bench_handle handle, int64_t at_ns)
{
    (void)q;
    (void)thread;
    (void)handle;
    (void)at_ns;
    return true;
}

static const struct bench_subject never_due = {
    .name = "empty",
    .can = BENCH_VIRTUAL,
    .open = empty_open,
    .close = empty_close,
    .enqueue = empty_enqueue,
    .dequeue = empty_nothing,
    .cancel = empty_cancel,
    .reschedule = empty_reschedule,
};

static const struct bench_subject always_due = {
    .name = "empty",
    .can = BENCH_VIRTUAL,
    .open = empty_open,
    .close = empty_close,
    .enqueue = empty_enqueue,
    .dequeue = empty_dequeue,
};

void work_empty(struct cell *c, const struct cell_workload *w)
{
    bool known = w->run == work_enqueue || w->run == work_cancel || w->run == work_timeout ||
                 w->run == work_hold || w->run == work_reschedule || w->run == work_nothing;

    if (!known || c->o.producers > 1 || c->o.batch > 0 || c->o.payload > 0 || c->o.topics > 1)
        cell_die(CELL_CANNOT, "the empty cell is that of one thread, one by one");
    c->s = w->run == work_hold ? &always_due : &never_due;
    c->empty = true;
    w->run(c);
}
