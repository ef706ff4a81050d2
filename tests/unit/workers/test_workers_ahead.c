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

static void ahead_open(struct ahead *a)
{
    due_workers_options options = { DUE_WORKERS_INIT };

    *a = (struct ahead){ .lab = lab_open(.kernel = true) };
    sem_init(&a->go, 0, 0);
    cr_assert_eq(due_workers_start(&a->pool, a->lab.q, NULL, 0, 1, ahead_handle, a, &options), 0);
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

Test(workers_ahead, what_stands_behind_a_slow_handler_goes_back_after_a_while, .timeout = 30)
{
    struct due_workers_stats s = { 0 };
    struct ahead a;

    ahead_open(&a);
    while (s.given_back == 0) {
        crew_sleep(DUE_MS(1));
        cr_assert_eq(due_workers_stats_read(a.pool, &s), 0);
    }
    cr_expect_eq(s.ahead, 0u);
    ahead_take_the_rest(&a);
    ahead_close(&a);
}

Test(workers_ahead, what_was_not_begun_goes_back_as_soon_as_the_pool_is_to_stop, .timeout = 30)
{
    struct due_workers_stats s;
    struct ahead a;

    ahead_open(&a);
    cr_expect_eq(due_workers_stop(a.pool, 0), DUE_EAGAIN);
    cr_assert_eq(due_workers_stats_read(a.pool, &s), 0);
    cr_expect_eq(s.ahead, 0u);
    ahead_take_the_rest(&a);
    ahead_close(&a);
}
