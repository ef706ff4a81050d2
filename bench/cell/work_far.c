/* work_far.c - jobs far away: enqueue, cancel, mixed, memory.  Nothing becomes due by itself. */
#include <stdlib.h>

#include "cell.h"

/* Nothing may be due yet. */
static void none_is_due(struct cell *c)
{
    if ((c->s->can & BENCH_NO_TIME) == 0 && cell_take(&c->threads[0], false) > 0)
        cell_die(CELL_WRONG, "job %llu came before its time",
                 (unsigned long long)c->threads[0].jobs[0].number);
}

static void turn_past_all(struct cell *c)
{
    if (c->s->can & BENCH_VIRTUAL)
        cell_turn(c, c->base_ns + c->o.spread_ns + CELL_S);
}

/* ---- enqueue --------------------------------------------------------------------------------- */

static void put_own(struct cell_thread *t)
{
    cell_fill(t, t->index, t->cell->o.producers, t->cell->count, NULL);
}

void work_enqueue(struct cell *c)
{
    cell_prepare(c, c->o.producers);
    cell_stream(c, (size_t)c->o.jobs);
    cell_open(c, c->count, 1, true);
    cell_threads(c, put_own);
    c->value = (double)c->count / c->wall_s / 1e6;
    if (c->empty)
        return;
    none_is_due(c);
    turn_past_all(c);
    cell_drain(&c->threads[0], true, NULL);
    cell_collect(c);
    cell_close(c);
    cell_check(c, c->count);
}

/* ---- What is cancelled, and in which order --------------------------------------------------- */

/* Of one thread: the jobs that it cancels. */
struct doomed {
    union bench_handle *handles; /* in the order put in, then in the order to be cancelled */
    union bench_handle *shuffled;
    uint32_t *order;
    size_t put;  /* jobs of this thread */
    size_t many; /* of them to be cancelled */
};

static size_t stripe(const struct cell *c, unsigned producer, unsigned producers)
{
    return c->count > producer ? (c->count - producer - 1) / producers + 1 : 0;
}

static struct doomed *doomed_new(const struct cell *c, unsigned producers, unsigned percent)
{
    struct doomed *all = cell_alloc(producers, sizeof *all);

    for (unsigned p = 0; p < producers; p++) {
        struct doomed *d = &all[p];

        d->put = stripe(c, p, producers);
        d->many = d->put * percent / 100;
        d->handles = cell_alloc(d->put, sizeof *d->handles);
        d->shuffled = cell_alloc(d->put, sizeof *d->shuffled);
        d->order = cell_alloc(d->put, sizeof *d->order);
    }
    return all;
}

static void doomed_shuffle(struct cell *c, struct doomed *d)
{
    for (size_t i = 0; i < d->put; i++)
        d->order[i] = (uint32_t)i;
    cell_shuffle(c, d->order, d->put);
    for (size_t i = 0; i < d->many; i++)
        d->shuffled[i] = d->handles[d->order[i]];
}

static void cancel_batches(struct cell_thread *t)
{
    const struct cell *c = t->cell;
    const struct doomed *d = t->own;
    size_t batch = c->o.batch;

    for (size_t i = 0; i < d->many; i += batch) {
        size_t n = d->many - i < batch ? d->many - i : batch;

        if (!c->s->cancel_batch(c->q, t->producer, d->shuffled + i, n))
            cell_die(CELL_WRONG, "some of the jobs from %zu on of thread %u could not be cancelled",
                     i, t->producer);
    }
}

static void cancel_own(struct cell_thread *t)
{
    const struct cell *c = t->cell;
    const struct doomed *d = t->own;

    if (c->o.batch > 0 && c->s->cancel_batch != NULL) {
        cancel_batches(t);
        return;
    }
    for (size_t i = 0; i < d->many; i++) {
        if (!c->s->cancel(c->q, t->producer, d->shuffled[i]))
            cell_die(CELL_WRONG, "the job put in as %u of thread %u could not be cancelled",
                     d->order[i], t->producer);
    }
}

/* All of them were cancelled: they have come out, and must not come again. */
static void doomed_tally(struct cell *c, const struct doomed *all, unsigned producers, bool *gone)
{
    for (unsigned p = 0; p < producers; p++) {
        for (size_t i = 0; i < all[p].many; i++) {
            uint64_t number = p + (uint64_t)all[p].order[i] * producers;

            gone[number] = true;
            c->out.count++;
            c->out.hash += cell_mix(number);
        }
    }
}

/* ---- cancel ---------------------------------------------------------------------------------- */

void work_cancel(struct cell *c)
{
    unsigned producers = c->o.producers;

    cell_prepare(c, producers);
    cell_stream(c, (size_t)c->o.jobs);
    bool *gone = cell_alloc(c->count, sizeof *gone);
    struct doomed *all = doomed_new(c, producers, 100);
    cell_open(c, c->count, 1, true);
    for (unsigned p = 0; p < producers; p++) {
        cell_fill(&c->threads[p], p, producers, c->count, all[p].handles);
        doomed_shuffle(c, &all[p]);
        c->threads[p].own = &all[p];
    }
    cell_threads(c, cancel_own);
    c->value = (double)c->count / c->wall_s / 1e6;
    if (c->empty)
        return;
    doomed_tally(c, all, producers, gone);
    turn_past_all(c);
    cell_drain(&c->threads[0], true, gone);
    cell_collect(c);
    cell_close(c);
    cell_check(c, c->count);
}

/* ---- mixed ----------------------------------------------------------------------------------- */

void work_mixed(struct cell *c)
{
    struct cell_thread *t;

    cell_prepare(c, 1);
    cell_stream(c, (size_t)c->o.jobs);
    bool *gone = cell_alloc(c->count, sizeof *gone);
    struct doomed *d = doomed_new(c, 1, c->o.percent);
    t = &c->threads[0];
    t->own = d;
    cell_open(c, c->count, 1, true);
    cell_begin(c);
    cell_fill(t, 0, 1, c->count, d->handles);
    cell_end(c);
    doomed_shuffle(c, d);
    cell_begin(c);
    cancel_own(t);
    turn_past_all(c);
    cell_drain(t, false, NULL);
    cell_end(c);
    c->value = c->wall_s * 1e9 / (double)c->count;
    doomed_tally(c, d, 1, gone);
    cell_collect(c);
    cell_close(c);
    cell_check(c, c->count);
}

/* ---- memory ---------------------------------------------------------------------------------- */

void work_memory(struct cell *c)
{
    bool cancels = (c->s->can & BENCH_CANCEL) != 0;
    struct cell_thread *t;

    c->lean = true;
    cell_prepare(c, 1);
    cell_stream(c, (size_t)c->o.jobs);
    bool *gone = cell_alloc(c->count, sizeof *gone);
    struct doomed *d = doomed_new(c, 1, cancels ? 100 : 0);
    t = &c->threads[0];
    t->own = d;
    int64_t before = cell_resident();
    cell_begin(c);
    cell_open(c, c->count, 1, true);
    cell_fill(t, 0, 1, c->count, cancels ? d->handles : NULL);
    cell_end(c);
    int64_t full = cell_resident();
    doomed_shuffle(c, d);
    cancel_own(t);
    turn_past_all(c);
    doomed_tally(c, d, 1, gone);
    cell_drain(t, true, gone);
    if (c->s->trim != NULL)
        c->s->trim(c->q);
    int64_t after = cell_resident();
    c->value = (double)(full - before) / (double)c->count;
    if (full > before)
        cell_say(c, "given_back_percent", 100 * (double)(full - after) / (double)(full - before));
    cell_collect(c);
    cell_close(c);
    cell_check(c, c->count);
}
