/* work_lateness.c - how late a job is taken that was put in long before. */
#include <sys/prctl.h>
#include <time.h>

#include "cell.h"

#define LEAD_NS     INT64_C(50000000) /* between putting in and the first */
#define LEAD_JOB_NS 2000              /* and for each job */

struct taken {
    int64_t *late_ns;
    size_t count;
};

static void take_on_time(struct cell_thread *t)
{
    struct taken *taken = t->own;
    bool ended = false;

    while (!ended) {
        size_t n = cell_take(t, true);
        int64_t now = bench_now();
        unsigned ends = 0;
        int64_t end_ns = 0;

        for (size_t i = 0; i < n; i++) {
            const struct bench_job *job = &t->jobs[i];

            if (job->number == CELL_POISON) {
                ends++;
                end_ns = job->at_ns;
                continue;
            }
            t->tally.early += job->at_ns > now;
            if (taken->count < t->cell->count)
                taken->late_ns[taken->count++] = now - job->at_ns;
            cell_tally(t, job);
        }
        cell_done(t, n);
        if (ends > 1)
            cell_put_ends(t, ends - 1, end_ns);
        ended = ends > 0;
    }
}

static void say_percentiles(struct cell *c, int64_t *late_ns, size_t n)
{
    if (n == 0)
        return; /* the check will say what is missing */
    cell_sort(late_ns, n);
    c->value = cell_percentile_us(late_ns, n, 50);
    cell_say(c, "p10_us", cell_percentile_us(late_ns, n, 10));
    cell_say(c, "p90_us", cell_percentile_us(late_ns, n, 90));
    cell_say(c, "p99_us", cell_percentile_us(late_ns, n, 99));
    cell_say(c, "p999_us", cell_percentile_us(late_ns, n, 99.9));
    cell_say(c, "cpu_us_per_job", c->cpu_s * 1e6 / (double)n);
}

static void prepare(struct cell *c)
{
    unsigned consumers = c->o.consumers;
    struct taken *taken = cell_alloc(consumers, sizeof *taken);

    if (c->o.spread_ns == CELL_DEFAULT)
        c->o.spread_ns = c->o.jobs * c->o.gap_ns;
    cell_prepare(c, consumers);
    cell_stream(c, (size_t)c->o.jobs);
    for (unsigned i = 0; i < consumers; i++) {
        taken[i].late_ns = cell_alloc(c->count, sizeof *taken[i].late_ns);
        c->threads[i].own = &taken[i];
        c->threads[i].consumer = i;
    }
    c->own = taken;
}

void work_lateness(struct cell *c)
{
    prepare(c);
    struct taken *taken = c->own;
    int64_t *late = cell_alloc(c->count * c->o.consumers, sizeof *late);
    size_t n = 0;

    cell_open(c, c->count, c->o.consumers, false);
    c->base_ns = bench_now() + LEAD_NS + c->o.jobs * LEAD_JOB_NS;
    cell_fill(&c->threads[0], 0, 1, c->count, NULL);
    cell_put_ends(&c->threads[0], c->o.consumers, c->base_ns + c->o.spread_ns + CELL_S / 1000);
    cell_threads(c, take_on_time);
    for (unsigned i = 0; i < c->o.consumers; i++) {
        for (size_t k = 0; k < taken[i].count; k++)
            late[n++] = taken[i].late_ns[k];
    }
    say_percentiles(c, late, n);
    if (c->o.topics > 1) /* topics take turns: an end may come before the last of other topics */
        cell_drain(&c->threads[0], false, NULL);
    cell_collect(c);
    cell_close(c);
    cell_check(c, c->count);
}

/* ---- The limit ------------------------------------------------------------------------------- */

/* Sleep until each instant, with a timer slack of 1 ns: the kernel does no better. */
static void sleep_until(struct cell *c, int64_t at_ns)
{
    int64_t wake = at_ns - c->o.spin_ns;
    struct timespec t = { .tv_sec = wake / CELL_S, .tv_nsec = wake % CELL_S };

    if (bench_now() < wake) {
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
            ;
    }
    while (bench_now() < at_ns)
        ;
}

void limit_lateness(struct cell *c)
{
    if (c->o.consumers > 1)
        cell_die(CELL_CANNOT, "the limit of lateness is that of one thread");
    prepare(c);
    int64_t *at = cell_alloc(c->count, sizeof *at);
    struct taken *taken = c->own;
    struct cell_thread *t = &c->threads[0];

    c->base_ns = bench_now() + LEAD_NS + c->o.jobs * LEAD_JOB_NS;
    for (size_t i = 0; i < c->count; i++) {
        at[i] = c->base_ns + cell_delay(c, i);
        t->tally.count++;
        t->tally.hash += cell_mix(i);
    }
    cell_sort(at, c->count);
    prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
    cell_begin(c);
    for (size_t i = 0; i < c->count; i++) {
        sleep_until(c, at[i]);
        taken->late_ns[i] = bench_now() - at[i];
    }
    cell_end(c);
    say_percentiles(c, taken->late_ns, c->count);
    cell_collect(c);
    cell_check(c, c->count);
}
