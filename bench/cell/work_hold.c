/* work_hold.c - as many come as go: hold, timeout.
 *
 * Where the clock must stand for the next head is told beforehand by a heap of the cell's own: the
 * deadlines do not depend on which of several equal jobs is taken, for the job put back is always
 * the next number.
 *
 * On a virtual clock each hold begins with turning it.  On the machine's own (--real) the thread
 * waits until the head is due, and only what comes after that is measured: a look at the clock is
 * then the subject's part.
 */
#include <stdlib.h>

#include "cell.h"
#include "heap.h"

#define REAL_GAP_NS  1000 /* between two heads on the machine's clock: longer than a hold */
#define REAL_LATE_NS 500  /* how late one is asked for; a subject's clock may be that coarse */
#define REAL_FILL_NS 500  /* in which a job is put in beforehand */

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

/* The job that was taken comes again, as hold @i. */
static inline void put_back(struct cell *c, struct bench_job *job, int64_t head_ns, uint64_t number)
{
    struct cell_thread *t = &c->threads[0];

    cell_tally(t, job);
    cell_done(t, 1);
    cell_job(c, job, number, cell_grain(c, head_ns + cell_delay(c, number)), t->bytes);
    c->s->enqueue(c->q, 0, job, NULL);
}

/* Apart, for instructions are counted by function. */
static __attribute__((noinline)) void holds(struct cell *c, const int64_t *head, size_t from,
                                            size_t to, size_t live)
{
    struct bench_job *job = c->threads[0].jobs;

    for (size_t i = from; i < to; i++) {
        cell_turn(c, head[i]);
        if (!c->s->dequeue(c->q, 0, job, false))
            cell_die(CELL_WRONG, "no job at %lld, the next deadline", (long long)head[i]);
        if (job->at_ns != head[i])
            cell_die(CELL_WRONG, "job %llu came, due at %lld, instead of that due at %lld",
                     (unsigned long long)job->number, (long long)job->at_ns, (long long)head[i]);
        put_back(c, job, head[i], live + i);
    }
}

/* On the machine's clock, which several heads may have passed: their order is not looked at. */
static int64_t holds_real(struct cell *c, const int64_t *head, size_t from, size_t to, size_t live)
{
    struct cell_thread *t = &c->threads[0];
    struct bench_job *job = t->jobs;
    int64_t busy_ns = 0;

    for (size_t i = from; i < to; i++) {
        int64_t start;

        while ((start = bench_clock_real()) < head[i] + REAL_LATE_NS)
            ;
        while (!c->s->dequeue(c->q, 0, job, false)) {
            if (bench_clock_real() > start + CELL_S)
                cell_die(CELL_WRONG, "no job a second after a deadline");
        }
        int64_t at_ns = job->at_ns;
        put_back(c, job, head[i], live + i);
        int64_t end = bench_clock_real();
        t->tally.early += at_ns > end;
        busy_ns += end - start;
    }
    return busy_ns;
}

/* The heads come due from now on, one in REAL_GAP_NS on average. */
static void work_hold_real(struct cell *c, size_t live, size_t jobs)
{
    c->o.spread_ns = cell_mean_spread(c->o.shape) / CELL_S * (int64_t)live * REAL_GAP_NS;
    cell_prepare(c, 1);
    cell_stream(c, live + 2 * jobs);
    cell_open(c, live, 1, false);
    c->base_ns = 0;
    int64_t *head = foretell(c, live, 2 * jobs);
    c->base_ns = bench_clock_real() + (int64_t)live * REAL_FILL_NS;
    for (size_t i = 0; i < 2 * jobs; i++)
        head[i] += c->base_ns;
    cell_fill(&c->threads[0], 0, 1, live, NULL);
    holds_real(c, head, 0, jobs, live);
    cell_begin(c);
    int64_t busy_ns = holds_real(c, head, jobs, 2 * jobs, live);
    cell_end(c);
    c->wall_s = (double)busy_ns / 1e9;
    c->cpu_s = c->wall_s; /* the waiting between is the cell's */
    c->value = (double)busy_ns / (double)jobs;
    if (c->empty)
        return;
    cell_nap(head[2 * jobs - 1] + c->o.spread_ns + CELL_S / 100 - bench_clock_real());
    while (cell_take(&c->threads[0], false) > 0) {
        cell_tally(&c->threads[0], c->threads[0].jobs);
        cell_done(&c->threads[0], 1);
    }
    cell_collect(c);
    cell_close(c);
    cell_check(c, live + 2 * jobs);
}

void work_hold(struct cell *c)
{
    size_t live = (size_t)c->o.live;
    size_t jobs = (size_t)c->o.jobs;

    c->o.batch = 0;
    if (c->o.real) {
        work_hold_real(c, live, jobs);
        return;
    }
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
    if (c->empty)
        return;
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
    if (c->empty)
        return;
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
