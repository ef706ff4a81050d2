/* A job that is given back without having failed: in memory, with a store, by a pool's handler. */
#include "due/workers.h"
#include "lab/shop.h"
#include "lab/take.h"
#include "lab/workers_lab.h"

#define LEASE 100

static const due_retry once = { .kind = DUE_RETRY_FIXED, .attempts_max = 1 };

static due_job reserve(struct lab *lab)
{
    due_job job = { 0 };
    int rc = lab_reserve(lab, &job, LEASE);

    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    return job;
}

/* Whatever the queue, a handler that is refused ten times has not failed once. */
static void snooze_ten_times(struct lab *lab)
{
    int64_t now = 10;

    lab_enqueue(lab, "tea", .at_ns = 10, .more = EXTRA(.retry = &once));
    for (int i = 0; i < 10; i++) {
        lab_turn_to(lab, now);
        due_job job = reserve(lab);
        cr_expect_eq(job.attempts, 1u);
        cr_expect_eq(job.failures, 0u);
        cr_expect_eq(job.deadline_ns, 10);
        cr_expect_eq(due_snooze(&job, 50), 0);
        cr_expect_null(job.queue);
        lab_turn_to(lab, now + 49);
        cr_expect_eq(lab_reserve(lab, &job, LEASE), DUE_EAGAIN);
        now += 50;
    }
    struct due_stats s = lab_stats(lab);
    cr_expect_eq(s.retried, 10u);
    cr_expect_eq(s.nacked, 0u);
    cr_expect_eq(s.dead, 0u);
    cr_expect_eq(s.leased, 0u);
}

Test(snooze, is_no_attempt_and_no_failure, .timeout = 60)
{
    struct lab lab = lab_open();

    snooze_ten_times(&lab);
    lab_turn_to(&lab, 1000);
    due_job job = reserve(&lab);
    cr_expect_eq(due_nack(&job, 0), 0);
    cr_expect_eq(lab_stats(&lab).dead, 1u, "this was its last attempt");
    lab_close(&lab);
}

Test(snooze, is_no_attempt_in_the_store_either, .timeout = 60)
{
    for (int lazy = 0; lazy < 2; lazy++) {
        struct shop s = shop_make(.with.attempts_lazy = lazy);

        snooze_ten_times(&s.lab);
        shop_crash(&s, (struct lab_options){ .start_ns = 500 });
        cr_expect_eq(lab_stats(&s.lab).waiting, 1u);
        lab_turn_to(&s.lab, 509);
        due_job job;
        cr_expect_eq(lab_reserve(&s.lab, &job, LEASE), DUE_EAGAIN, "its delay is stored");
        lab_turn_to(&s.lab, 510);
        job = reserve(&s.lab);
        cr_expect_eq(job.attempts, 1u);
        cr_expect_eq(job.failures, 0u);
        cr_expect_eq(due_ack(&job), 0);
        cr_expect_eq(memory_disk_jobs(s.disk), 0u);
        shop_close(&s);
    }
}

Test(snooze, that_the_store_refuses_changes_nothing, .timeout = 60)
{
    struct shop s = shop_make();

    lab_enqueue(&s.lab, "tea", .at_ns = 10);
    lab_turn_to(&s.lab, 10);
    due_job job = reserve(&s.lab);
    shop_fail(&s, MEMORY_COMMIT, MEMORY_ALWAYS, MEMORY_FULL);
    cr_expect_eq(due_snooze(&job, 50), DUE_ENOSPC);
    cr_expect_not_null(job.queue);
    cr_expect_eq(job.attempts, 1u);
    memory_store_forgive(s.store);
    cr_expect_eq(due_ack(&job), 0);
    shop_close(&s);
}

/* The caller was told that all is well before the store was asked: the lease goes on, to its end.
 * So it is with the next round of a job that comes again. */
Test(snooze, that_is_refused_when_nobody_waits_leaves_the_job_to_its_lease, .timeout = 60)
{
    for (int round = 0; round < 2; round++) {
        struct shop s = shop_make(.with.confirm = DUE_CONFIRM_ASYNC);

        lab_enqueue(&s.lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = round ? 1000 : 0));
        lab_turn_to(&s.lab, 10);
        due_job job = reserve(&s.lab);
        cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        shop_fail(&s, MEMORY_COMMIT, MEMORY_ALWAYS, MEMORY_FULL);
        cr_expect_eq(round ? due_ack(&job) : due_snooze(&job, 50), 0);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        struct due_stats of = lab_stats(&s.lab);
        cr_expect_eq(of.leased, 1u, "%d: %ju", round, (uintmax_t)of.leased);
        cr_expect_eq(of.waiting, 0u);
        memory_store_forgive(s.store);
        lab_turn_to(&s.lab, 9 + LEASE);
        cr_expect_eq(lab_reserve(&s.lab, &job, LEASE), DUE_EAGAIN, "%d: early", round);
        lab_turn_to(&s.lab, 10 + LEASE);
        job = reserve(&s.lab);
        cr_expect_eq(job.attempts, 2u, "%d", round);
        cr_expect_eq(job.failures, 1u, "%d", round);
        of = lab_stats(&s.lab);
        cr_expect_eq(of.lapsed, 1u, "%d: %ju", round, (uintmax_t)of.lapsed);
        cr_expect_eq(of.leased, 1u, "%d: %ju", round, (uintmax_t)of.leased);
        cr_expect_eq(due_cancel(s.lab.q, job.id, NULL), DUE_EBUSY);
        cr_expect_eq(due_ack(&job), 0);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        cr_expect_eq(memory_disk_jobs(s.disk), 0u);
        shop_close(&s);
    }
}

Test(snooze, is_refused_after_the_lease_and_for_less_than_no_time, .timeout = 60)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "tea", .at_ns = 10);
    lab_turn_to(&lab, 10);
    due_job job = reserve(&lab);
    cr_expect_eq(due_snooze(&job, -1), DUE_EINVAL);
    lab_advance(&lab, LEASE);
    cr_expect_eq(due_snooze(&job, 0), DUE_ESTALE);
    cr_expect_eq(due_snooze(&job, 0), DUE_EINVAL, "a zeroed job");
    lab_close(&lab);
}

/* Somebody has cancelled it meanwhile: it does not come again. */
Test(snooze, of_a_cancelled_job_ends_it, .timeout = 60)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10);

    lab_turn_to(&lab, 10);
    due_job job = reserve(&lab);
    cr_expect_eq(due_cancel(lab.q, id, NULL), DUE_EBUSY);
    cr_expect_eq(due_snooze(&job, 0), 0);
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_eq(lab_stats(&lab).waiting, 0u);
    lab_close(&lab);
}

Test(snooze, is_an_answer_of_a_handler_too, .timeout = 60)
{
    struct lab lab = lab_open();
    struct desk desk = desk_open(&lab, 1);

    lab_enqueue(&lab, "tea", .at_ns = 10, .more = EXTRA(.retry = &once));
    lab_turn_to(&lab, 20);
    desk_until_begun(&desk);
    desk_let_go(&desk, due_answer_snooze(30));
    WAIT_UNTIL(desk_stats(&desk).retried == 1);
    lab_turn_to(&lab, 50);
    desk_until_begun(&desk);
    cr_expect_eq(desk.state->job.attempts, 1u);
    desk_let_go(&desk, due_answer_snooze(-30));
    desk_until_begun(&desk);
    cr_expect_eq(desk.state->job.attempts, 1u);
    desk_let_go(&desk, due_answer_ack());
    WAIT_UNTIL(desk_stats(&desk).acked == 1);
    desk_close(&desk);
    lab_close(&lab);
}
