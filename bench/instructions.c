/* instructions.c - what one thread does, cell by cell, for bench/instructions to count.
 *
 *   instructions [--tiny]     some thousands of operations of each cell (tiny: some)
 *
 * Only what runs inside a counted_ function counts: the calls, and the caller's own code around
 * them, as gcc or clang make it.  What it takes to get there (a queue with jobs in it) does not.
 * Nothing depends on the day: numbers come from a seed, time is turned by hand where it decides.
 */
#include <due/due.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

enum { BATCH = 32, MANY = 8192, LIVE = 1000, TOPICS = 4 };

struct cell {
    due_queue *q;
    due_clock *clock; /* NULL: the kernel's */
    due_id *ids;
    uint64_t random;
    size_t n;
};

#define COUNTED static __attribute__((noinline)) void

static void must(int rc, const char *what)
{
    if (rc < 0) {
        fprintf(stderr, "instructions: %s: %s\n", what, due_error_name(rc));
        exit(1);
    }
}

static void cell_open(struct cell *c, size_t n, bool by_hand)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = DUE_PROXIES_NEVER };

    *c = (struct cell){ .random = 42, .n = n, .ids = calloc(n, sizeof *c->ids) };
    if (c->ids == NULL)
        exit(1);
    if (by_hand && (c->clock = due_clock_manual(1)) == NULL)
        exit(1);
    options.manual = c->clock;
    if (!by_hand) /* which is always looked at: what a counter spares depends on the time between */
        options.clock = DUE_CLOCK_BOOTTIME;
    must(due_open(&c->q, &options, NULL), "due_open");
}

static void cell_close(struct cell *c)
{
    must(due_close(c->q, DUE_CLOSE_DISCARD, DUE_S(10)), "due_close");
    must(due_free(c->q), "due_free");
    if (c->clock != NULL)
        must(due_clock_free(c->clock), "due_clock_free");
    free(c->ids);
}

/* Far ahead, and no two alike. */
static int64_t far(struct cell *c)
{
    return DUE_S(1000000000) + (int64_t)(measure_random(&c->random) % 1000000000);
}

/* @n jobs, due at once or far ahead, each with its id. */
static void fill(struct cell *c, size_t n, bool due)
{
    for (size_t i = 0; i < n; i++) {
        due_spec s = { DUE_SPEC_INIT, .at_ns = due ? 1 : far(c), .ptr = c };

        must(due_enqueue(c->q, &s, 0, &c->ids[i]), "due_enqueue");
    }
}

static inline void empty(struct cell *c)
{
    due_job job;

    while (due_dequeue(c->q, &job, 0) == 0)
        due_job_done(&job);
}

/* ---- One operation after another ------------------------------------------------------------- */

COUNTED counted_far(struct cell *c)
{
    for (size_t i = 0; i < c->n; i++) {
        due_spec s = { DUE_SPEC_INIT, .at_ns = far(c), .ptr = c };

        must(due_enqueue(c->q, &s, 0, &c->ids[i]), "due_enqueue");
    }
}

COUNTED counted_far_delay(struct cell *c)
{
    for (size_t i = 0; i < c->n; i++) {
        due_spec s = { DUE_SPEC_INIT, .delay_ns = far(c), .ptr = c };

        must(due_enqueue(c->q, &s, 0, &c->ids[i]), "due_enqueue");
    }
}

/* The short verbs. */
COUNTED counted_far_at(struct cell *c)
{
    for (size_t i = 0; i < c->n; i++)
        must(due_enqueue_at(c->q, far(c), c, &c->ids[i]), "due_enqueue_at");
}

COUNTED counted_far_after(struct cell *c)
{
    for (size_t i = 0; i < c->n; i++)
        must(due_enqueue_after(c->q, far(c), c, &c->ids[i]), "due_enqueue_after");
}

COUNTED counted_far_batch(struct cell *c)
{
    for (size_t i = 0; i + BATCH <= c->n; i += BATCH) {
        due_spec s[BATCH];

        for (size_t k = 0; k < BATCH; k++)
            s[k] = (due_spec){ DUE_SPEC_INIT, .at_ns = far(c), .ptr = c };
        must(due_enqueue_batch(c->q, s, BATCH, 0, &c->ids[i]), "due_enqueue_batch");
    }
}

COUNTED counted_round(struct cell *c)
{
    for (size_t i = 0; i < c->n; i++) {
        due_spec s = { DUE_SPEC_INIT, .ptr = c };
        due_job job;

        must(due_enqueue(c->q, &s, 0, NULL), "due_enqueue");
        must(due_dequeue(c->q, &job, 0), "due_dequeue");
        due_job_done(&job);
    }
}

COUNTED counted_round_short(struct cell *c)
{
    for (size_t i = 0; i < c->n; i++) {
        due_job job;

        must(due_enqueue_after(c->q, 0, c, NULL), "due_enqueue_after");
        must(due_dequeue(c->q, &job, 0), "due_dequeue");
        due_job_done(&job);
    }
}

COUNTED counted_round_batch(struct cell *c)
{
    for (size_t i = 0; i + BATCH <= c->n; i += BATCH) {
        due_spec s[BATCH];
        due_job jobs[BATCH];

        for (size_t k = 0; k < BATCH; k++)
            s[k] = (due_spec){ DUE_SPEC_INIT, .ptr = c };
        must(due_enqueue_batch(c->q, s, BATCH, 0, NULL), "due_enqueue_batch");
        must(due_take(c->q, NULL, jobs, BATCH, 0), "due_take");
        due_jobs_done(jobs, BATCH);
    }
}

/* Of several topics, by who takes any. */
COUNTED counted_topics(struct cell *c)
{
    for (size_t i = 0; i < c->n; i++) {
        due_spec s = { DUE_SPEC_INIT, .ptr = c, .topic = (int)(i % TOPICS) };
        due_job job;

        must(due_enqueue(c->q, &s, 0, NULL), "due_enqueue");
        must(due_dequeue(c->q, &job, 0), "due_dequeue");
        due_job_done(&job);
    }
}

/* Of one of several topics. */
COUNTED counted_topic(struct cell *c)
{
    int topic = 1;
    due_take_options o = { DUE_TAKE_INIT, .topics = &topic, .topic_count = 1 };

    for (size_t i = 0; i < c->n; i++) {
        due_spec s = { DUE_SPEC_INIT, .ptr = c, .topic = topic };
        due_job job;

        must(due_enqueue(c->q, &s, 0, NULL), "due_enqueue");
        must(due_take(c->q, &o, &job, 1, 0), "due_take");
        due_job_done(&job);
    }
}

/* The clock is turned to the next deadline; its job is taken and comes again. */
COUNTED counted_hold(struct cell *c)
{
    for (size_t i = 0; i < c->n; i++) {
        int64_t next = due_next_deadline(c->q);
        due_job job;

        must(due_clock_turn_to(c->clock, next), "due_clock_turn_to");
        must(due_dequeue(c->q, &job, 0), "due_dequeue");
        due_spec s = { DUE_SPEC_INIT,
                       .at_ns = next + (int64_t)(measure_random(&c->random) % 1000000),
                       .ptr = job.ptr };
        due_job_done(&job);
        must(due_enqueue(c->q, &s, 0, NULL), "due_enqueue");
    }
}

COUNTED counted_hold_short(struct cell *c)
{
    for (size_t i = 0; i < c->n; i++) {
        int64_t next = due_next_deadline(c->q);
        due_job job;

        must(due_clock_turn_to(c->clock, next), "due_clock_turn_to");
        must(due_dequeue(c->q, &job, 0), "due_dequeue");
        int64_t at_ns = next + (int64_t)(measure_random(&c->random) % 1000000);
        void *ptr = job.ptr;
        due_job_done(&job);
        must(due_enqueue_at(c->q, at_ns, ptr, NULL), "due_enqueue_at");
    }
}

/* A timeout is set and, long before its time, no longer needed. */
COUNTED counted_timeout(struct cell *c)
{
    for (size_t i = 0; i < c->n; i++) {
        size_t at = measure_random(&c->random) % c->n;
        due_spec s = { DUE_SPEC_INIT, .at_ns = far(c), .ptr = c };

        must(due_cancel(c->q, c->ids[at], NULL), "due_cancel");
        must(due_enqueue(c->q, &s, 0, &c->ids[at]), "due_enqueue");
    }
}

COUNTED counted_timeout_short(struct cell *c)
{
    for (size_t i = 0; i < c->n; i++) {
        size_t at = measure_random(&c->random) % c->n;

        must(due_cancel(c->q, c->ids[at], NULL), "due_cancel");
        must(due_enqueue_at(c->q, far(c), c, &c->ids[at]), "due_enqueue_at");
    }
}

COUNTED counted_cancel(struct cell *c)
{
    for (size_t i = 0; i < c->n; i++)
        must(due_cancel(c->q, c->ids[i], NULL), "due_cancel");
}

COUNTED counted_cancel_batch(struct cell *c)
{
    for (size_t i = 0; i + BATCH <= c->n; i += BATCH)
        must(due_cancel_batch(c->q, &c->ids[i], BATCH, NULL), "due_cancel_batch");
}

COUNTED counted_reschedule(struct cell *c)
{
    for (size_t i = 0; i < c->n; i++)
        must(due_reschedule(c->q, c->ids[i], far(c)), "due_reschedule");
}

static inline void reserve(struct cell *c)
{
    for (size_t i = 0; i < c->n; i++) {
        due_job job;

        must(due_reserve(c->q, &job, 0), "due_reserve");
        must(due_ack(&job), "due_ack");
    }
}

COUNTED counted_reserve(struct cell *c)
{
    reserve(c);
}

COUNTED counted_reserve_batch(struct cell *c)
{
    due_take_options o = { DUE_TAKE_INIT, .lease_ns = DUE_LEASE_DEFAULT };
    due_job jobs[BATCH];

    for (size_t i = 0; i + BATCH <= c->n; i += BATCH) {
        must(due_take(c->q, &o, jobs, BATCH, 0), "due_take");
        must(due_ack_batch(jobs, BATCH, NULL), "due_ack_batch");
    }
}

COUNTED counted_nothing(struct cell *c)
{
    due_job job;

    for (size_t i = 0; i < c->n; i++) {
        if (due_dequeue(c->q, &job, 0) != DUE_EAGAIN)
            exit(1);
    }
}

/* ---- The whole queue ------------------------------------------------------------------------- */

/* It closes as soon as everything was handed out. */
COUNTED counted_drain(struct cell *c)
{
    if (due_close(c->q, DUE_CLOSE_DRAIN, 0) != DUE_ETIMEDOUT)
        exit(1);
    empty(c);
}

/* The same, with leases. */
COUNTED counted_drain_acked(struct cell *c)
{
    if (due_close(c->q, DUE_CLOSE_DRAIN, 0) != DUE_ETIMEDOUT)
        exit(1);
    reserve(c);
}

COUNTED counted_discard(struct cell *c)
{
    must(due_close(c->q, DUE_CLOSE_DISCARD, DUE_S(10)), "due_close");
}

COUNTED counted_clear(struct cell *c)
{
    must(due_clear(c->q, DUE_ALL_TOPICS, NULL), "due_clear");
}

/* What comes due while its topic is paused is handed out when it goes on. */
COUNTED counted_pause(struct cell *c)
{
    must(due_pause(c->q, 0), "due_pause");
    must(due_poll(c->q, NULL), "due_poll");
    must(due_resume(c->q, 0), "due_resume");
    empty(c);
}

COUNTED counted_trim(struct cell *c)
{
    must(due_trim(c->q), "due_trim");
}

/* ---- The table ------------------------------------------------------------------------------- */

enum before { NONE, FAR, DUE, HELD, CANCELLED, NAMED };

static const struct {
    void (*run)(struct cell *c);
    enum before before; /* what the queue holds */
} cells[] = {
    { counted_far, NONE },         { counted_far_delay, NONE },    { counted_far_batch, NONE },
    { counted_far_at, NONE },      { counted_far_after, NONE },    { counted_round, NONE },
    { counted_round_batch, NONE }, { counted_hold, HELD },         { counted_timeout, FAR },
    { counted_round_short, NONE }, { counted_hold_short, HELD },   { counted_timeout_short, FAR },
    { counted_cancel, FAR },       { counted_cancel_batch, FAR },  { counted_reschedule, FAR },
    { counted_reserve, DUE },      { counted_reserve_batch, DUE }, { counted_nothing, NONE },
    { counted_drain, DUE },        { counted_drain_acked, DUE },   { counted_discard, FAR },
    { counted_clear, FAR },        { counted_pause, DUE },         { counted_trim, CANCELLED },
    { counted_topics, NAMED },     { counted_topic, NAMED },
};

static void prepare(struct cell *c, enum before before)
{
    for (size_t i = 0; before == HELD && i < LIVE; i++) {
        due_spec s = { DUE_SPEC_INIT, .at_ns = 1 + (int64_t)i * 1000, .ptr = c };

        must(due_enqueue(c->q, &s, 0, NULL), "due_enqueue");
    }
    for (int i = 1; before == NAMED && i < TOPICS; i++)
        must(due_topic(c->q, (char[]){ 'a' + (char)i, 0 }), "due_topic");
    if (before == FAR || before == DUE || before == CANCELLED)
        fill(c, c->n, before == DUE);
    for (size_t i = 0; before == CANCELLED && i < c->n; i++)
        must(due_cancel(c->q, c->ids[i], NULL), "due_cancel");
}

int main(int argc, char **argv)
{
    size_t n = measure_option(argc, argv, "--tiny") ? 64 : MANY;

    printf("%zu\n", n);
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        struct cell c;

        cell_open(&c, n, cells[i].before == HELD);
        prepare(&c, cells[i].before);
        cells[i].run(&c);
        cell_close(&c);
    }
    return 0;
}
