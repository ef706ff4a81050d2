/* What a worker has fetched ahead goes back if it does not come to it. */
#include "lab/workers_lab.h"

#define JOBS 100u /* that are there at least, until the pool has fetched some ahead */

struct ahead {
    struct lab lab;
    due_workers *pool;
    unsigned put;        /* jobs, so far */
    atomic_bool open;    /* the pool can be asked */
    atomic_bool stands;  /* in the handler, with jobs ahead of it */
    atomic_uint handled; /* handlers that were called */
    sem_t go;
};

/* Quick, until there are jobs ahead. */
static void ahead_handle(void *ctx, const due_job *job, due_answer *answer)
{
    struct ahead *a = ctx;
    struct due_workers_stats s;

    (void)job;
    atomic_fetch_add(&a->handled, 1);
    while (!atomic_load(&a->open))
        sched_yield();
    cr_assert_eq(due_workers_stats_read(a->pool, &s), 0);
    if (s.ahead > 0 && !atomic_exchange(&a->stands, true)) {
        while (sem_wait(&a->go) != 0)
            continue;
    }
    *answer = due_answer_ack();
}

/* A lease so long that it calls nobody: what goes back does so for want of patience.  @real: it is
 * not only promised. */
static void ahead_open(struct ahead *a, size_t threads, size_t in_flight_max, bool real)
{
    due_workers_options options = { DUE_WORKERS_INIT, .lease_ns = DUE_S(3600),
                                    .in_flight_max = in_flight_max };

    *a = (struct ahead){ .lab = lab_open(.kernel = true, .with.metrics = real) };
    sem_init(&a->go, 0, 0);
    cr_assert_eq(due_workers_start(&a->pool, a->lab.q, NULL, 0, threads, ahead_handle, a, &options),
                 0);
    atomic_store(&a->open, true);
    while (!atomic_load(&a->stands)) {
        for (; a->put < atomic_load(&a->handled) + JOBS; a->put++)
            lab_enqueue(&a->lab, "job", .delay_ns = 0);
        sched_yield();
    }
}

/* All that is not with the handler is there for whoever asks. */
static void ahead_take_the_rest(struct ahead *a)
{
    unsigned left = a->put - atomic_load(&a->handled);
    due_job job;

    for (; left > 0; left--) {
        cr_assert_eq(due_dequeue(a->lab.q, &job, DUE_S(5)), 0, "%u are not there", left);
        due_job_done(&job);
    }
    cr_expect_eq(due_dequeue(a->lab.q, &job, 0), DUE_EAGAIN);
}

static void ahead_close(struct ahead *a)
{
    sem_post(&a->go);
    cr_expect_eq(due_workers_stop(a->pool, DUE_FOREVER), 0);
    cr_expect_eq(due_workers_free(a->pool), 0);
    sem_destroy(&a->go);
    lab_close(&a->lab);
}

/* However few they are. */
Test(workers_ahead, what_stands_behind_a_slow_handler_goes_back_after_a_while, .timeout = 60)
{
    static const size_t in_flight_max[] = { 0, 3, 2 };

    for (int i = 0; i < 6; i++) {
        struct due_workers_stats s = { 0 };
        struct ahead a;

        ahead_open(&a, 1, in_flight_max[i % 3], i < 3);
        while (s.given_back == 0) {
            crew_sleep(DUE_MS(1));
            cr_assert_eq(due_workers_stats_read(a.pool, &s), 0);
        }
        cr_expect_eq(s.ahead, 0u);
        ahead_take_the_rest(&a);
        ahead_close(&a);
    }
}

Test(workers_ahead, what_was_not_begun_goes_back_as_soon_as_the_pool_is_to_stop, .timeout = 30)
{
    for (int real = 0; real < 2; real++) {
        struct due_workers_stats s;
        struct ahead a;

        ahead_open(&a, 1, 0, real);
        uint64_t ahead = lab_stats(&a.lab).leased - 1; /* but the handler's */
        cr_expect_eq(due_workers_stop(a.pool, 0), DUE_EAGAIN);
        cr_assert_eq(due_workers_stats_read(a.pool, &s), 0);
        cr_expect_eq(s.ahead, 0u);
        cr_expect_eq(s.given_back, ahead);
        cr_expect_eq(lab_stats(&a.lab).leased, 1u);
        ahead_take_the_rest(&a);
        cr_expect_eq(lab_stats(&a.lab).lent, 1u);
        ahead_close(&a);
    }
}

/* It need not wait until they go back, not even for the last one; and who had them goes on
 * afterwards.  On a machine that is slow some go back, but not each time. */
Test(workers_ahead, whoever_is_idle_takes_what_stands_behind_a_slow_handler, .timeout = 60)
{
    unsigned all = 0; /* times that all were taken so */

    for (int i = 0; i < 100 && (i < 10 || all == 0); i++) {
        struct due_workers_stats s;
        struct ahead a;

        ahead_open(&a, 2, 0, false);
        WAIT_UNTIL(atomic_load(&a.handled) == a.put);
        sem_post(&a.go);
        do
            cr_assert_eq(due_workers_stats_read(a.pool, &s), 0);
        while (s.acked < a.put);
        cr_expect_eq(atomic_load(&a.handled), a.put);
        all += s.given_back == 0;
        ahead_close(&a);
    }
    cr_expect_gt(all, 0u);
}

/* ---- How many ---- */

/* As a handler sees it: nothing is fetched meanwhile, and what stands elsewhere only goes. */
struct bound {
    due_workers *pool;
    size_t most;
    bool other; /* the first handler stays in its job, and another worker goes on */
    atomic_bool open;
    atomic_uint handled;
    atomic_bool stays;
    atomic_uint over;    /* more than may be */
    atomic_bool reached; /* as many as may be, of one worker */
    sem_t go;
};

static void bound_handle(void *ctx, const due_job *job, due_answer *answer)
{
    struct bound *b = ctx;
    struct due_workers_stats s;

    (void)job;
    atomic_fetch_add(&b->handled, 1);
    while (!atomic_load(&b->open))
        sched_yield();
    *answer = due_answer_ack();
    if (b->other && !atomic_exchange(&b->stays, true)) {
        while (sem_wait(&b->go) != 0)
            continue;
        return;
    }
    if (due_workers_stats_read(b->pool, &s) != 0 || s.running + s.ahead > b->most)
        atomic_fetch_add(&b->over, 1);
    if (s.running + s.ahead == b->most / (1 + b->other) + b->other)
        atomic_store(&b->reached, true);
}

/* Until it has fetched as many as it may; unless @all, which a slow machine may never do, or a
 * while. */
static void expect_at_most(size_t threads, size_t in_flight_max, size_t most, bool all)
{
    struct bound b = { .most = most, .other = threads > 1 };
    due_workers_options o = { DUE_WORKERS_INIT, .lease_ns = DUE_S(3600),
                              .in_flight_max = in_flight_max };
    struct lab lab = lab_open(.kernel = true);
    unsigned put = 0;

    sem_init(&b.go, 0, 0);
    cr_assert_eq(due_workers_start(&b.pool, lab.q, NULL, 0, threads, bound_handle, &b, &o), 0);
    atomic_store(&b.open, true);
    while (!(atomic_load(&b.reached) || (!all && atomic_load(&b.handled) > 20000))) {
        for (; put < atomic_load(&b.handled) + JOBS; put++)
            lab_enqueue(&lab, "job", .delay_ns = 0);
        sched_yield();
    }
    sem_post(&b.go);
    cr_expect_eq(atomic_load(&b.over), 0u, "more than %zu of %zu threads", most, threads);
    cr_expect_eq(due_workers_stop(b.pool, DUE_FOREVER), 0);
    cr_expect_eq(due_workers_free(b.pool), 0);
    sem_destroy(&b.go);
    lab_close(&lab);
}

Test(workers_ahead, no_more_are_in_flight_than_may_be, .timeout = 100)
{
    for (size_t most = 1; most <= 5; most++)
        expect_at_most(1, most, most, true);
    expect_at_most(2, 2, 2, true);
    expect_at_most(2, 4, 4, true);
    expect_at_most(2, 5, 5, true);
    expect_at_most(1, 0, 32, false);
    expect_at_most(1, 100, 100, false);
}

/* ---- Who is slow ---- */

struct slow {
    due_workers *pool;
    int64_t takes_ns; /* a handler, or longer */
    atomic_bool open;
    atomic_uint handled;
    atomic_uint ahead; /* handlers that had jobs ahead of them */
};

static void slow_handle(void *ctx, const due_job *job, due_answer *answer)
{
    int64_t end = crew_now_ns() + ((struct slow *)ctx)->takes_ns;
    struct slow *b = ctx;
    struct due_workers_stats s;

    (void)job;
    while (!atomic_load(&b->open) || crew_now_ns() < end)
        sched_yield();
    if (due_workers_stats_read(b->pool, &s) != 0 || s.ahead > 0)
        atomic_fetch_add(&b->ahead, 1);
    atomic_fetch_add(&b->handled, 1);
    *answer = due_answer_ack();
}

/* With as many jobs at hand as a worker may fetch: how many handlers had some ahead. */
static unsigned slow_run(bool kernel, int64_t lease_ns, int64_t takes_ns)
{
    due_workers_options o = { DUE_WORKERS_INIT, .lease_ns = lease_ns };
    struct lab lab = lab_open(.kernel = kernel);
    struct slow b = { .takes_ns = takes_ns };

    for (unsigned i = 0; i < JOBS; i++)
        lab_enqueue(&lab, "job", .delay_ns = 0);
    cr_assert_eq(due_workers_start(&b.pool, lab.q, NULL, 0, 1, slow_handle, &b, &o), 0);
    atomic_store(&b.open, true);
    WAIT_UNTIL(atomic_load(&b.handled) >= JOBS / 2);
    cr_expect_eq(due_workers_stop(b.pool, DUE_FOREVER), 0);
    cr_expect_eq(due_workers_free(b.pool), 0);
    lab_close(&lab);
    return atomic_load(&b.ahead);
}

/* Of what is not done in a millisecond, or in an eighth of a lease, two are not fetched at once. */
Test(workers_ahead, a_worker_whose_handlers_are_slow_fetches_one_job_at_a_time, .timeout = 60)
{
    cr_expect_eq(slow_run(true, DUE_S(3600), DUE_US(600)), 0u);
    cr_expect_eq(slow_run(true, DUE_MS(4), DUE_US(300)), 0u);
}

/* Nobody can tell how fast they are. */
Test(workers_ahead, on_a_clock_turned_by_hand_one_job_is_fetched_at_a_time, .timeout = 60)
{
    cr_expect_eq(slow_run(false, 0, 0), 0u);
}
