/* What a worker makes of how long its handlers take: it is read, and set, in the worker, whose
 * thread calls the handler. */
#include "os/atomic.h"
#include "lab/workers_lab.h"
#include "workers/pool.h"

/* ---- How many jobs it asks for at a time ---- */

/* What the handler sets before a fetch, and how many are asked for then. */
struct ask {
    uint32_t batch;  /* asked for the last time */
    int64_t pace_ns; /* what a job takes */
    uint32_t idle;   /* others that wait */
    uint32_t wanted;
};

#define KEPT UINT32_MAX /* what was asked for the last time is left as it is */

struct asker {
    const struct ask *ask;
    unsigned n;
    atomic_uint done;
    uint32_t asked[16];
};

/* The first job of each fetch: what was asked for is noted, and what the next one is to go by is
 * set.  What is measured is left out of it. */
static void asking_handle(void *ctx, const due_job *job, due_answer *answer)
{
    struct asker *a = ctx;
    struct due__worker *me = job->pool;
    unsigned done = atomic_load(&a->done);

    *answer = due_answer_ack();
    if (me->fetched == 0 || done > a->n)
        return;
    if (done > 0) {
        a->asked[done - 1] = me->batch;
        due__sub_seq(&me->pool->idle, a->ask[done - 1].idle);
    }
    me->fetched = 0;
    if (done < a->n) {
        if (a->ask[done].batch != KEPT)
            me->batch = a->ask[done].batch;
        me->pace_ns = a->ask[done].pace_ns;
        due__add_seq(&me->pool->idle, a->ask[done].idle);
    }
    atomic_store(&a->done, done + 1);
}

static void expect_asked(int64_t lease_ns, size_t in_flight_max, const struct ask *ask, unsigned n)
{
    due_workers_options o = { DUE_WORKERS_INIT, .lease_ns = lease_ns,
                              .in_flight_max = in_flight_max };
    struct asker a = { .ask = ask, .n = n };
    struct lab lab = lab_open(.kernel = true);
    due_workers *pool;

    cr_assert_eq(due_workers_start(&pool, lab.q, NULL, 0, 1, asking_handle, &a, &o), 0);
    while (atomic_load(&a.done) <= n) {
        if (lab_stats(&lab).waiting < 1000)
            lab_enqueue(&lab, "tea", .delay_ns = 0);
        else
            sched_yield();
    }
    cr_expect_eq(due_workers_stop(pool, DUE_FOREVER), 0);
    cr_expect_eq(due_workers_free(pool), 0);
    for (unsigned i = 0; i < n; i++)
        cr_expect_eq(a.asked[i], ask[i].wanted, "%u: %u of %zu", i, a.asked[i], in_flight_max);
    lab_close(&lab);
}

/* Twice as many each time, up to what is allowed. */
Test(worker, asks_for_twice_as_many_each_time_as_it_may_have, .timeout = 60)
{
    static const struct ask any[] = {
        { .batch = 0, .wanted = 1 },     { .batch = KEPT, .wanted = 2 },
        { .batch = KEPT, .wanted = 4 },  { .batch = KEPT, .wanted = 8 },
        { .batch = KEPT, .wanted = 16 }, { .batch = KEPT, .wanted = 32 },
        { .batch = KEPT, .wanted = 32 }, { .batch = 15, .wanted = 30 },
        { .batch = 16, .wanted = 32 },   { .batch = 7, .wanted = 14 }
    };
    static const struct ask twenty[] = { { .batch = 4, .wanted = 8 },
                                         { .batch = KEPT, .wanted = 16 },
                                         { .batch = KEPT, .wanted = 20 },
                                         { .batch = 9, .wanted = 18 },
                                         { .batch = 10, .wanted = 20 } };
    static const struct ask five[] = { { .batch = 0, .wanted = 1 },
                                       { .batch = KEPT, .wanted = 2 },
                                       { .batch = KEPT, .wanted = 5 } };

    expect_asked(DUE_S(3600), 0, any, sizeof any / sizeof any[0]);
    expect_asked(DUE_S(3600), 20, twenty, sizeof twenty / sizeof twenty[0]);
    expect_asked(DUE_S(3600), 5, five, sizeof five / sizeof five[0]);
    expect_asked(DUE_S(3600), 32, any, sizeof any / sizeof any[0]);
    expect_asked(DUE_S(3600), 33, any, sizeof any / sizeof any[0]);
}

/* A millisecond's, and an eighth of a lease. */
Test(worker, asks_for_no_more_than_it_does_in_a_millisecond_or_a_part_of_a_lease, .timeout = 60)
{
    static const struct ask ms[] = {
        { .batch = 32, .pace_ns = 31249, .wanted = 32 },
        { .batch = 32, .pace_ns = 31250, .wanted = 31 },
        { .batch = 32, .pace_ns = 333332, .wanted = 3 },
        { .batch = 32, .pace_ns = 333333, .wanted = 2 },
        { .batch = 32, .pace_ns = 499999, .wanted = 2 },
        { .batch = 32, .pace_ns = 500000, .wanted = 1 },
        { .batch = 32, .pace_ns = 999999, .wanted = 1 },
        { .batch = 32, .pace_ns = DUE_S(9), .wanted = 1 },
    };
    static const struct ask half[] = {
        { .batch = 32, .pace_ns = 15624, .wanted = 32 },
        { .batch = 32, .pace_ns = 15625, .wanted = 31 },
        { .batch = 32, .pace_ns = 249999, .wanted = 2 },
        { .batch = 32, .pace_ns = 250000, .wanted = 1 },
    };

    expect_asked(DUE_S(3600), 0, ms, sizeof ms / sizeof ms[0]);
    expect_asked(DUE_MS(8), 0, ms, sizeof ms / sizeof ms[0]);
    expect_asked(DUE_MS(4), 0, half, sizeof half / sizeof half[0]);
}

Test(worker, asks_for_one_while_others_are_idle, .timeout = 60)
{
    static const struct ask ask[] = { { .batch = 32, .idle = 1, .wanted = 1 },
                                      { .batch = 32, .idle = 0, .wanted = 32 },
                                      { .batch = 32, .idle = 2, .wanted = 1 } };

    expect_asked(DUE_S(3600), 0, ask, sizeof ask / sizeof ask[0]);
}

/* ---- How long its handlers take ---- */

struct pace {
    uint32_t fetched; /* at a time */
    int64_t took_s;   /* all of them; and what the handler takes besides */
    int64_t before_s; /* what it took one to take */
    int64_t after_s;  /* what it takes it to take then; and a little more */
};

static const struct pace paces[] = {
    { 1, 1000, 0, 1000 }, { 4, 4000, 0, 1000 },     { 4, 4000, 999, 1000 }, { 1, 0, 800, 700 },
    { 2, 0, 1600, 1400 }, { 1, 9200, 10000, 9900 }, { 0, 5000, 77, 77 },
};

enum { PACES = sizeof paces / sizeof paces[0] };

struct pacer {
    atomic_uint done;
    int64_t pace_ns[PACES];
};

static void pacing_handle(void *ctx, const due_job *job, due_answer *answer)
{
    struct pacer *p = ctx;
    struct due__worker *me = job->pool;
    unsigned done = atomic_load(&p->done);

    *answer = due_answer_ack();
    if (done > PACES)
        return;
    if (done > 0)
        p->pace_ns[done - 1] = me->pace_ns;
    if (done < PACES) {
        me->fetched = paces[done].fetched;
        me->pace_ns = DUE_S(paces[done].before_s);
        me->fetched_ns = crew_now_ns() - DUE_S(paces[done].took_s);
    }
    atomic_store(&p->done, done + 1);
}

/* A second more or less is what a slow machine has taken. */
Test(worker, takes_itself_to_be_slower_at_once_and_faster_in_time, .timeout = 60)
{
    due_workers_options o = { DUE_WORKERS_INIT, .lease_ns = DUE_S(3600), .in_flight_max = 1 };
    struct lab lab = lab_open(.kernel = true);
    struct pacer p = { .done = 0 };
    due_workers *pool;

    for (unsigned i = 0; i < 2 * PACES; i++)
        lab_enqueue(&lab, "tea", .delay_ns = 0);
    cr_assert_eq(due_workers_start(&pool, lab.q, NULL, 0, 1, pacing_handle, &p, &o), 0);
    WAIT_UNTIL(atomic_load(&p.done) > PACES);
    cr_expect_eq(due_workers_stop(pool, DUE_FOREVER), 0);
    cr_expect_eq(due_workers_free(pool), 0);
    for (unsigned i = 0; i < PACES; i++) {
        cr_expect_geq(p.pace_ns[i], DUE_S(paces[i].after_s), "%u", i);
        cr_expect_lt(p.pace_ns[i], DUE_S(paces[i].after_s + 30), "%u", i);
    }
    lab_close(&lab);
}

/* ---- Copies ---- */

/* An extend settles the lease of the job that it is about, not of another that runs by then. */
Test(worker, leaves_its_lease_alone_when_a_copy_of_its_last_job_is_extended, .timeout = 60)
{
    struct lab lab = lab_open(.kernel = true);
    struct desk desk = desk_open(&lab, 1);
    struct due__worker *w = &desk.pool->worker[0];

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    due_job first = *desk.state->at;
    desk_let_go(&desk, due_answer_ack());
    lab_enqueue(&lab, "cake", .delay_ns = 0);
    desk_until_begun(&desk);
    due_job second = *desk.state->at;
    cr_expect_eq(due_extend(&first, DUE_S(60)), DUE_ESTALE);
    due__lock_acquire(&w->lock);
    cr_expect(w->running && w->deferred, "it has become a real one");
    due__lock_release(&w->lock);
    cr_expect_eq(due_extend(&second, DUE_S(60)), 0);
    due__lock_acquire(&w->lock);
    cr_expect(w->running && !w->deferred);
    due__lock_release(&w->lock);
    desk_let_go(&desk, due_answer_ack());
    desk_close(&desk);
    lab_close(&lab);
}
