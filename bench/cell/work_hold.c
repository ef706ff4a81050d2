/* work_hold.c - as many come as go: hold, timeout.
 *
 * Where the clock must stand for the next head is told beforehand by a heap of the cell's own: the
 * deadlines do not depend on which of several equal jobs is taken, for the job put back is always
 * the next number.
 */
#include <stdlib.h>

#include "cell.h"
#include "heap.h"

/* ---- hold ------------------------------------------------------------------------------------ */

/* The deadlines of the heads, one after another, when @live jobs wait and @holds are made. */
static int64_t *foretell(const struct cell *c, size_t live, size_t holds)
{
    int64_t *head = cell_alloc(holds, sizeof *head);
    struct heap h = { .slot = cell_alloc(live, sizeof *h.slot) };

    for (size_t i = 0; i < live; i++)
        heap_push(&h, (struct heap_slot){ cell_grain(c, c->base_ns + cell_delay(c, i)), i });
    for (size_t i = 0; i < holds; i++) {
        head[i] = heap_pop(&h).at_ns;
        heap_push(&h, (struct heap_slot){ cell_grain(c, head[i] + cell_delay(c, live + i)), i });
    }
    free(h.slot);
    return head;
}

static void holds(struct cell *c, const int64_t *head, size_t from, size_t to, size_t live)
{
    struct cell_thread *t = &c->threads[0];
    struct bench_job *job = t->jobs;

    for (size_t i = from; i < to; i++) {
        cell_turn(c, head[i]);
        if (!c->s->dequeue(c->q, 0, job, false))
            cell_die(CELL_WRONG, "no job at %lld, the next deadline", (long long)head[i]);
        if (job->at_ns != head[i])
            cell_die(CELL_WRONG, "job %llu came, due at %lld, instead of that due at %lld",
                     (unsigned long long)job->number, (long long)job->at_ns, (long long)head[i]);
        cell_tally(t, job);
        cell_done(t, 1);
        cell_job(c, job, live + i, cell_grain(c, head[i] + cell_delay(c, live + i)), t->bytes);
        c->s->enqueue(c->q, 0, job, NULL);
    }
}

void work_hold(struct cell *c)
{
    size_t live = (size_t)c->o.live;
    size_t jobs = (size_t)c->o.jobs;

    c->o.batch = 0;
    if (c->o.spread_ns == CELL_DEFAULT)
        c->o.spread_ns = cell_mean_spread(c->o.shape);
    cell_prepare(c, 1);
    cell_stream(c, live + 2 * jobs);
    cell_open(c, live, 1, true);
    c->base_ns = CELL_START;
    int64_t *head = foretell(c, live, 2 * jobs);
    cell_fill(&c->threads[0], 0, 1, live, NULL);
    holds(c, head, 0, jobs, live);
    cell_begin(c);
    holds(c, head, jobs, 2 * jobs, live);
    cell_end(c);
    c->value = c->wall_s * 1e9 / (double)jobs;
    cell_turn(c, head[2 * jobs - 1] + c->o.spread_ns + CELL_S);
    cell_drain(&c->threads[0], false, NULL);
    cell_collect(c);
    cell_close(c);
    cell_check(c, live + 2 * jobs);
}

/* ---- timeout --------------------------------------------------------------------------------- */

/* Of one thread: its jobs that wait, the oldest at @oldest. */
struct waiting {
    union bench_handle *ring;
    size_t count;
    size_t oldest;
};

static void cancel_oldest(struct cell_thread *t, struct waiting *w)
{
    const struct cell *c = t->cell;

    if (!c->s->cancel(c->q, t->producer, w->ring[w->oldest]))
        cell_die(CELL_WRONG, "the oldest job of thread %u could not be cancelled", t->producer);
}

static void pairs(struct cell_thread *t)
{
    const struct cell *c = t->cell;
    struct waiting *w = t->own;
    unsigned step = c->o.producers;

    for (size_t i = t->index + w->count * step; i < c->count; i += step) {
        union bench_handle handle;

        cell_job_far(c, t->jobs, i, t->bytes);
        c->s->enqueue(c->q, t->producer, t->jobs, &handle);
        cancel_oldest(t, w);
        w->ring[w->oldest] = handle;
        w->oldest = w->oldest + 1 < w->count ? w->oldest + 1 : 0;
    }
}

void work_timeout(struct cell *c)
{
    unsigned producers = c->o.producers;
    size_t live = (size_t)c->o.live;

    if (live < producers)
        cell_die(CELL_USAGE, "--live must be at least --producers");
    c->o.batch = 0;
    cell_prepare(c, producers);
    cell_stream(c, live + (size_t)c->o.jobs);
    struct waiting *all = cell_alloc(producers, sizeof *all);
    cell_open(c, live + producers, 1, true);
    c->base_ns = bench_now() + 30 * CELL_S;
    for (unsigned p = 0; p < producers; p++) {
        all[p].count = (live - p - 1) / producers + 1;
        all[p].ring = cell_alloc(all[p].count, sizeof *all[p].ring);
        cell_fill(&c->threads[p], p, producers, live, all[p].ring);
        c->threads[p].own = &all[p];
    }
    cell_threads(c, pairs);
    c->value = (double)c->o.jobs / c->wall_s / 1e6;
    for (unsigned p = 0; p < producers; p++) {
        for (all[p].oldest = 0; all[p].oldest < all[p].count; all[p].oldest++)
            cancel_oldest(&c->threads[p], &all[p]);
    }
    if (c->s->can & BENCH_VIRTUAL)
        cell_turn(c, c->base_ns + c->o.spread_ns + CELL_S);
    if (cell_take(&c->threads[0], false) > 0)
        cell_die(CELL_WRONG, "job %llu came although it was cancelled",
                 (unsigned long long)c->threads[0].jobs[0].number);
    for (size_t i = 0; i < c->count; i++) {
        c->out.count++;
        c->out.hash += cell_mix(i);
    }
    cell_close(c);
    cell_check(c, c->count);
}
