/* queue.c - putting in and taking, on behalf of the workloads. */
#include <stdlib.h>
#include <string.h>

#include "cell.h"

void cell_open(struct cell *c, size_t held, unsigned consumers, bool turned)
{
    struct bench_setup setup = {
        .jobs = held + CELL_SLACK + consumers * (c->o.batch + 1),
        .producers = c->thread_count, /* consumers put surplus ends back */
        .consumers = consumers > 0 ? consumers : 1,
        .batch = c->o.batch,
        .payload = c->o.payload,
        .topics = c->o.topics,
        .virtual_clock = turned && (c->s->can & BENCH_VIRTUAL) != 0,
        .spin_ns = c->o.spin_ns,
        .lean = c->lean,
        .spec = c->o.spec,
        .line = c->o.line,
    };

    if (setup.virtual_clock)
        bench_clock_virtual(CELL_START);
    c->grain_ns = setup.virtual_clock ? c->s->grain_ns : 0;
    c->q = c->s->open(&setup);
    if (c->q == NULL)
        cell_die(CELL_WRONG, "the subject could not be opened");
    c->base_ns = bench_now() + CELL_FAR;
}

void cell_close(struct cell *c)
{
    c->s->close(c->q);
    c->q = NULL;
}

void cell_turn(struct cell *c, int64_t now_ns)
{
    bench_clock_turn(now_ns);
    if (c->s->turned != NULL)
        c->s->turned(c->q, now_ns);
}

bool cell_intact(const struct cell *c, const struct bench_job *job)
{
    uint64_t first;
    uint64_t last;
    size_t end = c->o.payload - c->o.payload % sizeof last;

    if (job->len != c->o.payload || job->data == NULL)
        return false;
    memcpy(&first, job->data, sizeof first);
    memcpy(&last, (const unsigned char *)job->data + end - sizeof last, sizeof last);
    return first == job->number && last == job->number;
}

void cell_fill(struct cell_thread *t, size_t from, size_t step, size_t end,
               union bench_handle *handles)
{
    const struct cell *c = t->cell;
    size_t batch = c->o.batch > 0 ? c->o.batch : 1;
    size_t n = 0;

    for (size_t i = from; i < end; i += step) {
        cell_job_far(c, &t->jobs[n], i, t->bytes + n * c->o.payload);
        if (++n < batch && i + step < end)
            continue;
        cell_put(t, n, handles);
        handles = handles != NULL ? handles + n : NULL;
        n = 0;
    }
}

/* A job that was taken on a clock that was turned. */
static void drained(struct cell_thread *t, const struct bench_job *job, bool dated,
                    const bool *gone)
{
    const struct cell *c = t->cell;
    unsigned long long number = job->number;

    if (number >= c->count)
        cell_die(CELL_WRONG, "there is no job %llu", number);
    if (gone != NULL && gone[number])
        cell_die(CELL_WRONG, "job %llu came although it was cancelled", number);
    if (dated && job->at_ns != cell_grain(c, c->base_ns + cell_delay(c, number)))
        cell_die(CELL_WRONG, "job %llu has not the deadline it was given", number);
    if (job->at_ns < t->latest_ns && c->o.topics == 1)
        cell_die(CELL_WRONG, "job %llu, due at %lld, came after job %llu, due at %lld", number,
                 (long long)job->at_ns, (unsigned long long)t->latest_number,
                 (long long)t->latest_ns);
    t->latest_ns = job->at_ns;
    t->latest_number = job->number;
    if ((c->s->can & BENCH_NO_TIME) == 0)
        t->tally.early += job->at_ns > bench_now();
    cell_tally(t, job);
}

void cell_drain(struct cell_thread *t, bool dated, const bool *gone)
{
    size_t n;

    t->latest_ns = 0;
    while ((n = cell_take(t, false)) > 0) {
        for (size_t i = 0; i < n; i++)
            drained(t, &t->jobs[i], dated, gone);
        cell_done(t, n);
    }
}

bool cell_consume(struct cell_thread *t, int64_t *now_ns)
{
    size_t n = cell_take(t, true);
    unsigned ends = 0;
    int64_t end_ns = 0;

    if (now_ns != NULL)
        *now_ns = bench_now();
    for (size_t i = 0; i < n; i++) {
        const struct bench_job *job = &t->jobs[i];

        if (job->number == CELL_POISON) {
            ends++;
            end_ns = job->at_ns;
            continue;
        }
        if (now_ns != NULL)
            t->tally.early += job->at_ns > *now_ns;
        cell_tally(t, job);
    }
    cell_done(t, n);
    if (ends > 1)
        cell_put_ends(t, ends - 1, end_ns);
    return ends > 0 || n == 0;
}

void cell_put_ends(struct cell_thread *t, unsigned n, int64_t at_ns)
{
    for (unsigned i = 0; i < n; i++) {
        cell_job(t->cell, &t->jobs[0], CELL_POISON, at_ns, t->bytes);
        t->jobs[0].topic = 0;
        cell_put(t, 1, NULL);
    }
}

void cell_finished(struct cell_thread *t, unsigned producers, unsigned consumers)
{
    struct cell *c = t->cell;
    int64_t latest = bench_now();

    if (atomic_fetch_add(&c->finished, 1) + 1 < producers)
        return;
    for (unsigned i = 0; i < producers; i++) {
        if (c->threads[i].latest_ns > latest)
            latest = c->threads[i].latest_ns;
    }
    latest++; /* later than all, where equal deadlines are in any order */
    t->end_ns = bench_clock_real();
    cell_put_ends(t, consumers, latest);
}
