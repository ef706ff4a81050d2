/* work_handoff.c - from putting in a job due at once to a consumer that is blocked in its take. */
#define _GNU_SOURCE /* SCHED_IDLE */
#include <sched.h>
#include <stdlib.h>

#include "cell.h"

#define SETTLE_NS  INT64_C(200000) /* until the consumer is asleep for certain */
#define LOOK_NS    INT64_C(20000)
#define GIVE_UP_NS (10 * CELL_S)

enum { PRODUCER, CONSUMER, HOG }; /* index of the threads */

struct handoff {
    unsigned core[2]; /* of the producer, of the consumer */
    int64_t *whole_ns;
    int64_t *call_ns;
    int64_t *alone_ns;
    atomic_ullong ready __attribute__((aligned(128))); /* the consumer has begun so many takes */
    atomic_llong taken_ns;                             /* when its last returned; 0: not yet */
    atomic_bool over __attribute__((aligned(128)));
};

static void pause_a_little(const struct cell *c)
{
    if (c->o.where == WHERE_SAME)
        cell_nap(LOOK_NS); /* the consumer needs the core */
    else
        for (int i = 0; i < 16; i++)
            atomic_signal_fence(memory_order_seq_cst);
}

static void settle(const struct cell *c)
{
    int64_t until = bench_clock_real() + SETTLE_NS;

    if (c->o.where == WHERE_SAME)
        cell_nap(SETTLE_NS);
    while (bench_clock_real() < until)
        ;
}

static void check_time(int64_t give_up)
{
    if (bench_clock_real() > give_up)
        cell_die(CELL_WRONG, "a job that was put in did not come out");
}

static int64_t hand_over(struct cell_thread *t, struct handoff *h, size_t i)
{
    const struct cell *c = t->cell;
    int64_t give_up = bench_clock_real() + GIVE_UP_NS;
    int64_t taken;

    while (atomic_load_explicit(&h->ready, memory_order_acquire) <= i) {
        pause_a_little(c);
        check_time(give_up);
    }
    settle(c);
    atomic_store_explicit(&h->taken_ns, 0, memory_order_relaxed);
    cell_job(c, t->jobs, i, 0, t->bytes);
    int64_t start = bench_now();
    c->s->enqueue(c->q, t->producer, t->jobs, NULL);
    h->call_ns[i] = bench_now() - start;
    while ((taken = atomic_load_explicit(&h->taken_ns, memory_order_acquire)) == 0) {
        pause_a_little(c);
        check_time(give_up);
    }
    return taken - start;
}

static void take_over(struct cell_thread *t, struct handoff *h)
{
    for (size_t i = 0; i < t->cell->count; i++) {
        atomic_store_explicit(&h->ready, i + 1, memory_order_release);
        t->cell->s->dequeue(t->cell->q, 0, t->jobs, true);
        int64_t now = bench_now();
        t->tally.early += t->jobs->at_ns > now;
        cell_tally(t, t->jobs);
        cell_done(t, 1);
        atomic_store_explicit(&h->taken_ns, now, memory_order_release);
    }
}

/* Keeps the consumer's core from idling, and gives way to whoever has work. */
static void hog(struct handoff *h)
{
    struct sched_param none = { 0 };

    if (pthread_setschedparam(pthread_self(), SCHED_IDLE, &none) != 0)
        cell_die(CELL_CANNOT, "no thread of policy SCHED_IDLE to be had");
    while (!atomic_load_explicit(&h->over, memory_order_relaxed))
        ;
}

static void body(struct cell_thread *t)
{
    struct handoff *h = t->cell->own;

    if (!cell_pin(&h->core[t->index == PRODUCER ? 0 : 1], 1))
        cell_die(CELL_CANNOT, "a thread cannot be pinned");
    if (t->index == CONSUMER) {
        take_over(t, h);
    } else if (t->index == HOG) {
        hog(h);
    } else {
        for (size_t i = 0; i < t->cell->count; i++)
            h->whole_ns[i] = hand_over(t, h, i);
        atomic_store_explicit(&h->over, true, memory_order_relaxed);
    }
}

/* What the enqueue costs while nobody waits. */
static void alone(struct cell *c, struct handoff *h)
{
    struct cell_thread *t = &c->threads[PRODUCER];

    for (size_t i = 0; i < c->count; i++) {
        cell_job(c, t->jobs, i, 0, t->bytes);
        int64_t start = bench_now();
        c->s->enqueue(c->q, t->producer, t->jobs, NULL);
        h->alone_ns[i] = bench_now() - start;
        if (!c->s->dequeue(c->q, 0, t->jobs, false))
            cell_die(CELL_WRONG, "a job due at once was not there");
        cell_done(t, 1);
    }
}

static void choose_cores(const struct cell *c, struct handoff *h)
{
    unsigned n = cell_cores(h->core, 2);

    if (c->o.where == WHERE_SAME) {
        h->core[1] = h->core[0];
        if (n == 0 || !cell_pin(h->core, 1))
            cell_die(CELL_CANNOT, "this process cannot be pinned");
    } else if (n < 2) {
        cell_die(CELL_CANNOT, "this takes two cores");
    }
}

void work_handoff(struct cell *c)
{
    struct handoff *h = cell_alloc(1, sizeof *h);

    c->own = h;
    c->o.batch = 0;
    choose_cores(c, h);
    cell_prepare(c, c->o.where == WHERE_AWAKE ? 3 : 2);
    cell_stream(c, (size_t)c->o.jobs);
    h->whole_ns = cell_alloc(c->count, sizeof *h->whole_ns);
    h->call_ns = cell_alloc(c->count, sizeof *h->call_ns);
    h->alone_ns = cell_alloc(c->count, sizeof *h->alone_ns);
    cell_open(c, c->count, 1, false);
    alone(c, h);
    cell_threads(c, body);
    cell_sort(h->whole_ns, c->count);
    cell_sort(h->call_ns, c->count);
    cell_sort(h->alone_ns, c->count);
    c->value = cell_percentile_us(h->whole_ns, c->count, 50);
    cell_say(c, "p90_us", cell_percentile_us(h->whole_ns, c->count, 90));
    cell_say(c, "call_p50_us", cell_percentile_us(h->call_ns, c->count, 50));
    cell_say(c, "call_alone_p50_us", cell_percentile_us(h->alone_ns, c->count, 50));
    cell_collect(c);
    cell_close(c);
    cell_check(c, c->count);
}
