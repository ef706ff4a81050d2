/* The end of a pool: stop and close, in whatever order, and what becomes of the jobs. */
#include "queue/tenure.h"
#include "lab/workers_lab.h"
#include "lab/take.h"

#define LEASE 100

/* ---- Stop ------------------------------------------------------------------------------------ */

static int stop_now(void *pool)
{
    return due_workers_stop(pool, DUE_FOREVER);
}

LAB_TEST(workers_stop, waits_for_the_handlers_and_leaves_the_rest_in_the_queue)
{
    struct lab lab = lab_open();
    struct desk desk = desk_open(&lab, 2);
    struct crew_thread stopper;

    for (int i = 0; i < 3; i++)
        lab_enqueue(&lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    desk_until_begun(&desk);
    crew_go(&stopper, stop_now, desk.pool);
    crew_until_asleep(&stopper);
    cr_expect_eq(due_job_stopping(desk.state->at), 1, "the handler was not told");
    desk_let_go(&desk, due_answer_ack());
    WAIT_UNTIL(desk_stats(&desk).acked == 1);
    crew_until_asleep(&stopper);
    cr_expect(!atomic_load(&stopper.back), "a handler runs still");
    desk_let_go(&desk, due_answer_ack());
    cr_expect_eq(crew_join(&stopper), 0);
    cr_expect_eq(desk_stats(&desk).threads, 0u);
    cr_expect_eq(lab_stats(&lab).waiting, 1u);
    due_job job;
    cr_assert_eq(take_leased(lab.q, &job, LEASE, 0), 0);
    cr_expect_eq(job.attempts, 1u, "what was not begun counts as an attempt");
    cr_expect_eq(job.failures, 0u);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(due_workers_stop(desk.pool, 0), 0, "again");
    desk_close(&desk);
    lab_close(&lab);
}

LAB_TEST(workers_stop, a_handler_that_does_not_return_loses_nothing)
{
    struct lab lab = lab_open();
    struct desk desk = desk_open_with(&lab, 1, .lease_ns = LEASE);
    due_job job;

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    cr_expect_eq(due_workers_stop(desk.pool, 0), DUE_EAGAIN);
    cr_expect_eq(due_workers_free(desk.pool), DUE_EBUSY);

    struct crew_thread stopper;
    crew_go(&stopper, stop_now, desk.pool);
    crew_until_asleep(&stopper);
    lab_advance(&lab, LEASE / 2);
    WAIT_UNTIL(desk_stats(&desk).extended == 1); /* the lease is kept as long as a stop waits */
    desk_let_go(&desk, due_answer_nack(10));
    cr_expect_eq(crew_join(&stopper), 0);
    cr_expect_eq(desk_stats(&desk).retried, 1u);
    lab_advance(&lab, 10);
    cr_assert_eq(take_leased(lab.q, &job, LEASE, 0), 0);
    cr_expect_eq(job.attempts, 2u);
    cr_expect_eq(due_ack(&job), 0);
    desk_close(&desk);
    lab_close(&lab);
}

static bool somebody_waits(struct due_queue *q)
{
    struct due__tenure t;

    due__enter(q, &t);
    bool some = q->all != NULL;
    due__tenure_end(q, &t);
    return some;
}

/* The next who has the waiter would look at it, and a pool that has gone is freed memory. */
LAB_TEST(workers_stop, whoever_has_waited_leaves_nothing_behind_that_calls_the_next_away)
{
    for (int kernel = 0; kernel < 2; kernel++) {
        struct lab lab = lab_open(.kernel = kernel);
        struct desk desk = desk_open(&lab, 1);
        unsigned made = 0;

        WAIT_UNTIL(somebody_waits(lab.q));
        lab_enqueue(&lab, "tea", .delay_ns = kernel ? DUE_US(100) : 0);
        desk_until_begun(&desk);
        desk_let_go(&desk, due_answer_ack());
        WAIT_UNTIL(somebody_waits(lab.q));
        desk_close(&desk);
        for (const struct due__waiter *w = lab.q->made; w != NULL; w = w->made_next, made++)
            cr_expect_null(w->quit, "%d: of a pool that is freed", kernel);
        cr_expect_gt(made, 0u);
        lab_close(&lab);
    }
}

/* What waits for it is the queue's: once there it is used again.  How many are there at a time is
 * chance, but not as many as there were pools. */
LAB_TEST(workers_stop, as_often_as_it_is_asked_for_takes_no_more_memory)
{
    enum { FIRST = 5, POOLS = 40 };
    struct lab lab = lab_open();
    size_t live = 0;

    for (int i = 0; i < POOLS; i++) {
        struct desk desk = desk_open(&lab, 2);

        lab_enqueue(&lab, "tea", .delay_ns = 0);
        desk_until_begun(&desk);
        for (int asked = 0; asked < 3; asked++)
            cr_expect_eq(due_workers_stop(desk.pool, 0), DUE_EAGAIN);
        desk_let_go(&desk, due_answer_ack());
        desk_close(&desk);
        if (i < FIRST)
            live = atomic_load(&lab.state->memory.live);
    }
    cr_expect_lt(atomic_load(&lab.state->memory.live), live + POOLS - FIRST);
    lab_close(&lab);
}

static int stop_for_a_lease(void *pool)
{
    return due_workers_stop(pool, LEASE / 4);
}

LAB_TEST(workers_stop, after_its_timeout_the_leases_run_out)
{
    struct lab lab = lab_open();
    struct desk desk = desk_open_with(&lab, 1, .lease_ns = LEASE);
    struct crew_thread stopper;
    due_job job;

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    crew_go(&stopper, stop_for_a_lease, desk.pool);
    crew_until_asleep(&stopper);
    lab_advance(&lab, LEASE / 4);
    cr_expect_eq(crew_join(&stopper), DUE_ETIMEDOUT);
    lab_advance(&lab, LEASE);
    cr_assert_eq(take_leased(lab.q, &job, LEASE, 0), 0, "the job was not handed out again");
    cr_expect_eq(job.attempts, 2u);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(desk_stats(&desk).extended, 0u);
    desk_let_go(&desk, due_answer_ack());
    cr_expect_eq(due_workers_stop(desk.pool, DUE_FOREVER), 0);
    cr_expect_eq(desk_stats(&desk).lost, 1u);
    cr_expect_eq(lab_stats(&lab).acked, 1u);
    desk_close(&desk);
    lab_close(&lab);
}

/* ---- Close ----------------------------------------------------------------------------------- */

LAB_TEST(workers_close, a_drain_delivers_what_is_left_and_what_is_tried_again)
{
    struct lab lab = lab_open();
    struct desk desk = desk_open(&lab, 1);
    struct crew_call close = { .q = NULL };

    lab_enqueue(&lab, "now", .delay_ns = 0);
    lab_enqueue(&lab, "later", .at_ns = 50);
    desk_until_begun(&desk);
    crew_call_close(&close, lab.q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    crew_call_asleep(&close);
    due_spec spec = { DUE_SPEC_INIT };
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_ECLOSED);
    cr_expect_eq(due_job_stopping(desk.state->at), 0, "a drain lets handlers finish");
    desk_let_go(&desk, due_answer_nack(10));
    WAIT_UNTIL(desk_stats(&desk).retried == 1);
    lab_turn_to(&lab, 10);
    desk_until_begun(&desk);
    cr_expect_str_eq(desk.state->text, "now");
    cr_expect_eq(desk.state->job.attempts, 2u);
    desk_let_go(&desk, due_answer_ack());
    WAIT_UNTIL(desk_stats(&desk).idle == 1);
    lab_turn_to(&lab, 50);
    desk_until_begun(&desk);
    cr_expect_str_eq(desk.state->text, "later");
    desk_let_go(&desk, due_answer_ack());
    cr_expect_eq(crew_call_answer(&close), 0);
    cr_expect_eq(lab_stats(&lab).acked, 2u);
    cr_expect_eq(desk_stats(&desk).threads, 0u, "who has closed can free the pool");
    desk_close(&desk);
    lab_close(&lab);
}

LAB_TEST(workers_close, waits_for_a_handler_as_long_as_it_was_told)
{
    struct lab lab = lab_open();
    struct desk desk = desk_open(&lab, 1);
    struct crew_call close = { .q = NULL };

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    crew_call_close(&close, lab.q, DUE_CLOSE_DRAIN, 10);
    crew_call_asleep(&close);
    lab_advance(&lab, 10);
    cr_expect_eq(crew_call_answer(&close), DUE_ETIMEDOUT);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, 0), DUE_ETIMEDOUT);
    cr_expect_eq(due_job_stopping(desk.state->at), 1);
    desk_let_go(&desk, due_answer_ack());
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(lab_stats(&lab).acked, 1u, "a handler that ends after the close is not heard");
    cr_expect_eq(lab_stats(&lab).discarded, 0u);
    desk_close(&desk);
    lab_close(&lab);
}

LAB_TEST(workers_close, what_is_tried_again_in_a_closed_queue_is_discarded)
{
    struct lab lab = lab_open();
    struct desk desk = desk_open(&lab, 1);

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    lab_enqueue(&lab, "cake", .at_ns = 1000);
    desk_until_begun(&desk);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, 0), DUE_ETIMEDOUT);
    cr_expect_eq(atomic_load(&lab.state->discarded), 1u);
    desk_let_go(&desk, due_answer_nack(0));
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(atomic_load(&lab.state->discarded), 2u);
    cr_expect_str_eq(lab.state->discarded_text, "tea");
    desk_close(&desk);
    lab_close(&lab);
}

LAB_TEST(workers_close, after_a_stop_a_drain_waits_for_jobs_that_nobody_takes)
{
    struct lab lab = lab_open();
    struct desk desk = desk_open(&lab, 1);

    lab_enqueue(&lab, "tea", .at_ns = 1000);
    cr_expect_eq(due_workers_stop(desk.pool, DUE_FOREVER), 0);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, 0), 0);
    cr_expect_eq(due_free(lab.q), DUE_EBUSY, "its pool is not freed");
    desk_close(&desk);
    lab_close(&lab);
}

/* On a kernel clock too, where leases are only promised. */
Test(workers_close, a_cancelled_job_is_told_to_its_handler_and_not_tried_again, .timeout = 60)
{
    for (int kernel = 0; kernel < 2; kernel++) {
        struct lab lab = lab_open(.kernel = kernel);
        struct desk desk = desk_open(&lab, 1);

        due_id id = lab_enqueue(&lab, "tea", .delay_ns = 0);
        desk_until_begun(&desk);
        cr_expect_eq(due_job_stopping(desk.state->at), 0);
        cr_expect_eq(due_cancel(lab.q, id, NULL), DUE_EBUSY);
        cr_expect_eq(due_job_stopping(desk.state->at), 1);
        desk_let_go(&desk, due_answer_nack(0));
        WAIT_UNTIL(desk_stats(&desk).handled == 1);
        cr_expect_eq(lab_stats(&lab).cancelled, 1u);
        cr_expect_eq(lab_stats(&lab).waiting, 0u);
        cr_expect_eq(lab_stats(&lab).leased, 0u);
        desk_close(&desk);
        lab_close(&lab);
    }
}

Test(workers_close, a_job_that_is_given_up_is_dead_and_says_why, .timeout = 60)
{
    for (int kernel = 0; kernel < 2; kernel++) {
        struct lab lab = lab_open(.kernel = kernel);
        struct desk desk = desk_open(&lab, 1);
        uint64_t cursor = 0;
        due_dead dead;

        lab_enqueue(&lab, "tea", .delay_ns = 0);
        desk_until_begun(&desk);
        desk_let_go(&desk, due_answer_bury("no such address"));
        WAIT_UNTIL(desk_stats(&desk).buried == 1);
        cr_assert_eq(due_list_dead(lab.q, &cursor, &dead, 1), 1);
        cr_expect_eq(dead.cause, DUE_CAUSE_BURIED);
        cr_expect_str_eq(dead.reason, "no such address");
        cr_expect_eq(dead.attempts, 1u);
        desk_close(&desk);
        lab_close(&lab);
    }
}

Test(workers_close, a_job_that_fails_in_its_last_attempt_is_dead, .timeout = 60)
{
    for (int kernel = 0; kernel < 2; kernel++) {
        struct lab lab = lab_open(.kernel = kernel,
                                  .with.retry = { .kind = DUE_RETRY_FIXED, .attempts_max = 3 });
        struct desk desk = desk_open(&lab, 1);

        lab_enqueue(&lab, "tea", .delay_ns = 0);
        for (unsigned i = 1; i <= 3; i++) {
            desk_until_begun(&desk);
            cr_expect_eq(desk.state->job.attempts, i);
            cr_expect_eq(desk.state->job.failures, i - 1);
            desk_let_go(&desk, due_answer_nack(DUE_DELAY_POLICY));
        }
        WAIT_UNTIL(lab_stats(&lab).dead == 1);
        desk_close(&desk);
        lab_close(&lab);
    }
}
