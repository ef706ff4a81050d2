/* work_wait.c - what is done to jobs that wait: reschedule, nothing. */
#include "cell.h"

/* ---- reschedule ------------------------------------------------------------------------------ */

struct waiting {
    union bench_handle *handle; /* by number */
    uint32_t *order;            /* which is next, over and over */
    int64_t *at_ns;             /* by number: the deadline it has by now */
};

static void reschedule_all(struct cell_thread *t)
{
    const struct cell *c = t->cell;
    struct waiting *w = t->own;
    size_t live = (size_t)c->o.live;
    size_t next = 0;

    for (size_t i = live; i < c->count; i++) {
        uint32_t number = w->order[next];
        int64_t at_ns = cell_grain(c, c->base_ns + cell_delay(c, i));

        next = next + 1 < live ? next + 1 : 0;
        if (!c->s->reschedule(c->q, 0, w->handle[number], at_ns))
            cell_die(CELL_WRONG, "job %u could not be given another deadline", number);
        w->at_ns[number] = at_ns;
    }
}

/* Each comes at its last deadline, in the order of these. */
static void take_rescheduled(struct cell_thread *t, const struct waiting *w)
{
    const struct cell *c = t->cell;
    int64_t latest_ns = 0;

    while (c->s->dequeue(c->q, 0, t->jobs, false)) {
        const struct bench_job *job = t->jobs;

        if (job->number >= (uint64_t)c->o.live || job->at_ns != w->at_ns[job->number])
            cell_die(CELL_WRONG, "job %llu has not the deadline it was given last",
                     (unsigned long long)job->number);
        if (job->at_ns < latest_ns && c->o.topics == 1)
            cell_die(CELL_WRONG, "job %llu came after a later one",
                     (unsigned long long)job->number);
        latest_ns = job->at_ns;
        cell_tally(t, job);
        cell_done(t, 1);
    }
}

void work_reschedule(struct cell *c)
{
    size_t live = (size_t)c->o.live;
    struct cell_thread *t;

    c->o.batch = 0;
    cell_prepare(c, 1);
    cell_stream(c, live + (size_t)c->o.jobs);
    struct waiting w = { .handle = cell_alloc(live, sizeof *w.handle),
                         .order = cell_alloc(live, sizeof *w.order),
                         .at_ns = cell_alloc(live, sizeof *w.at_ns) };
    t = &c->threads[0];
    t->own = &w;
    cell_open(c, live, 1, true);
    cell_fill(t, 0, 1, live, w.handle);
    for (size_t i = 0; i < live; i++) {
        w.order[i] = (uint32_t)i;
        w.at_ns[i] = cell_grain(c, c->base_ns + cell_delay(c, i));
    }
    cell_shuffle(c, w.order, live);
    cell_threads(c, reschedule_all);
    c->value = c->wall_s * 1e9 / (double)c->o.jobs;
    if (c->empty)
        return;
    cell_turn(c, c->base_ns + c->o.spread_ns + CELL_S);
    take_rescheduled(t, &w);
    cell_collect(c);
    cell_close(c);
    cell_check(c, live);
}

/* ---- nothing --------------------------------------------------------------------------------- */

static void look_in_vain(struct cell_thread *t)
{
    const struct cell *c = t->cell;

    for (int64_t i = 0; i < c->o.jobs; i++) {
        if (c->s->dequeue(c->q, 0, t->jobs, false))
            cell_die(CELL_WRONG, "job %llu came before its time",
                     (unsigned long long)t->jobs[0].number);
    }
}

void work_nothing(struct cell *c)
{
    size_t live = (size_t)c->o.live;

    c->o.batch = 0;
    cell_prepare(c, 1);
    cell_stream(c, live);
    cell_open(c, live, 1, false);
    cell_fill(&c->threads[0], 0, 1, live, NULL);
    look_in_vain(&c->threads[0]); /* as often as is measured: until all is as it stays */
    cell_threads(c, look_in_vain);
    c->value = c->wall_s * 1e9 / (double)c->o.jobs;
    if (!c->empty)
        cell_close(c);
}
