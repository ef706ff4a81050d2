/* work_through.c - producers put in while consumers take: through, drain, slow, burst. */
#include <stdlib.h>

#include "cell.h"

enum { BURSTS = 200, THINK_JOBS = 1000 };

#define BURST_IDLE_NS INT64_C(5000000)
#define BURST_LOOK_NS INT64_C(100000)
#define BURST_MOST_NS (10 * CELL_S)

/* The first threads produce, the others consume. */
static void prepare(struct cell *c, unsigned producers, unsigned consumers)
{
    if (consumers == 0)
        cell_die(CELL_USAGE, "there must be a consumer");
    cell_prepare(c, producers + consumers);
    for (unsigned i = 0; i < producers + consumers; i++) {
        c->threads[i].producer = i;
        c->threads[i].consumer = i >= producers ? i - producers : 0;
    }
}

/* A producer's part of the stream. */
static void put_in(struct cell_thread *t)
{
    const struct cell *c = t->cell;
    size_t batch = c->o.batch > 0 ? c->o.batch : 1;
    unsigned step = c->o.producers;
    bool dated = c->o.spread_ns > 0;
    int64_t now = 0;
    size_t n = 0;

    for (size_t i = t->index; i < c->count; i += step) {
        int64_t at = 0;

        if (dated) {
            now = n == 0 ? bench_now() : now;
            at = now + cell_delay(c, i);
            t->latest_ns = at > t->latest_ns ? at : t->latest_ns;
        }
        cell_job(c, &t->jobs[n], i, at, t->bytes + n * c->o.payload);
        if (++n < batch && i + step < c->count)
            continue;
        cell_put(t, n, NULL);
        n = 0;
    }
}

static void produce(struct cell_thread *t)
{
    put_in(t);
    cell_finished(t, t->cell->o.producers, t->cell->o.consumers);
}

static void think(int64_t ns)
{
    int64_t until = bench_clock_real() + ns;

    while (bench_clock_real() < until)
        ;
}

static void consume(struct cell_thread *t)
{
    const struct cell *c = t->cell;
    bool dated = c->o.spread_ns > 0;
    int64_t think_ns = *(const int64_t *)c->own;
    uint64_t thousands = 0;
    int64_t now;

    while (!cell_consume(t, dated ? &now : NULL)) {
        if (think_ns > 0 && t->tally.count / THINK_JOBS > thousands) {
            thousands = t->tally.count / THINK_JOBS;
            think(think_ns);
        }
    }
}

static void both(struct cell_thread *t)
{
    if (t->index < t->cell->o.producers)
        produce(t);
    else
        consume(t);
}

static void close_and_check(struct cell *c, uint64_t count)
{
    cell_collect(c);
    uint64_t taken = c->out.count;
    cell_drain(&c->threads[0], false, NULL);
    cell_collect(c);
    /* Topics take turns, so an end may come before the last jobs of other topics. */
    if (c->out.count > taken && c->o.topics == 1)
        cell_die(CELL_WRONG, "%llu jobs came after the latest",
                 (unsigned long long)(c->out.count - taken));
    cell_close(c);
    cell_check(c, count);
}

static void through(struct cell *c, int64_t think_ns, void (*body)(struct cell_thread *t))
{
    c->own = &think_ns;
    prepare(c, c->o.producers, c->o.consumers);
    cell_stream(c, (size_t)c->o.jobs);
    cell_open(c, c->count, c->o.consumers, false);
    cell_threads(c, body);
    c->value = (double)c->count / c->wall_s / 1e6;
    close_and_check(c, c->count);
}

void work_through(struct cell *c)
{
    through(c, 0, both);
}

static void put_in_and_drain(struct cell_thread *t)
{
    struct cell *c = t->cell;

    if (t->index >= c->o.producers) {
        consume(t);
        return;
    }
    put_in(t);
    if (atomic_fetch_add(&c->finished, 1) + 1 == c->o.producers)
        c->s->drain(c->q);
}

void work_drain(struct cell *c)
{
    c->lean = true;
    through(c, 0, put_in_and_drain);
}

void work_slow(struct cell *c)
{
    int64_t first = INT64_MAX;
    int64_t last = 0;

    through(c, c->o.think_ns, both);
    for (unsigned i = 0; i < c->o.producers; i++) {
        const struct cell_thread *t = &c->threads[i];

        first = t->start_ns < first ? t->start_ns : first;
        last = t->end_ns > last ? t->end_ns : last;
    }
    c->wall_s = (double)(last - first) / 1e9;
    c->value = (double)c->count / c->wall_s / 1e6;
}

/* ---- burst ----------------------------------------------------------------------------------- */

/* What a consumer shows to the producer, on a cache line of its own. */
struct shown {
    atomic_ullong count; /* jobs taken, stored after last_ns */
    atomic_llong last_ns;
} __attribute__((aligned(128)));

static void burst_consume(struct cell_thread *t)
{
    struct shown *shown = t->own;
    int64_t now;

    while (!cell_consume(t, &now)) {
        atomic_store_explicit(&shown->last_ns, now, memory_order_relaxed);
        atomic_store_explicit(&shown->count, t->tally.count, memory_order_release);
    }
}

/* Wait, without being in the way, until @count jobs are out.  The time of the last. */
static int64_t burst_out(const struct cell *c, uint64_t count)
{
    int64_t give_up = bench_clock_real() + BURST_MOST_NS;
    int64_t last = 0;
    uint64_t out;

    do {
        cell_nap(BURST_LOOK_NS);
        out = 0;
        for (unsigned i = 1; i < c->thread_count; i++) {
            struct shown *shown = c->threads[i].own;
            out += atomic_load_explicit(&shown->count, memory_order_acquire);
        }
        if (bench_clock_real() > give_up)
            cell_die(CELL_WRONG, "%llu jobs of %llu came out, and no more", (unsigned long long)out,
                     (unsigned long long)count);
    } while (out < count);
    for (unsigned i = 1; i < c->thread_count; i++) {
        struct shown *shown = c->threads[i].own;
        int64_t ns = atomic_load_explicit(&shown->last_ns, memory_order_relaxed);
        last = ns > last ? ns : last;
    }
    return last;
}

static void burst_produce(struct cell_thread *t)
{
    const struct cell *c = t->cell;
    size_t batch = c->o.batch > 0 ? c->o.batch : 1;
    int64_t *took = t->own;
    size_t each = c->count / BURSTS;

    for (size_t b = 0; b < BURSTS; b++) {
        cell_nap(BURST_IDLE_NS);
        int64_t start = bench_clock_real();
        for (size_t i = 0; i < each;) {
            size_t n = each - i < batch ? each - i : batch;
            for (size_t k = 0; k < n; k++)
                cell_job(c, &t->jobs[k], b * each + i + k, 0, t->bytes + k * c->o.payload);
            cell_put(t, n, NULL);
            i += n;
        }
        took[b] = burst_out(c, (b + 1) * each) - start;
    }
    cell_finished(t, 1, c->o.consumers);
}

static void burst_both(struct cell_thread *t)
{
    if (t->index == 0)
        burst_produce(t);
    else
        burst_consume(t);
}

void work_burst(struct cell *c)
{
    size_t each = c->o.jobs > BURSTS ? (size_t)c->o.jobs / BURSTS : 1;
    int64_t *took = cell_alloc(BURSTS, sizeof *took);

    prepare(c, 1, c->o.consumers);
    cell_stream(c, each * BURSTS);
    c->threads[0].own = took;
    for (unsigned i = 1; i < c->thread_count; i++)
        c->threads[i].own = cell_alloc(1, sizeof(struct shown));
    cell_open(c, c->count, c->o.consumers, false);
    cell_threads(c, burst_both);
    cell_sort(took, BURSTS);
    c->value = cell_percentile_us(took, BURSTS, 50) * 1e3 / (double)each;
    close_and_check(c, c->count);
}
