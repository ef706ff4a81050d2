/* One queue for many processes: a lease that is being made longer in the store. */
#include "lab/mall.h"

static int extend_main(void *arg)
{
    return due_extend(arg, 1000);
}

static int ack_main(void *arg)
{
    return due_ack(arg);
}

MALL_TEST(share_extend, under_way_a_lease_is_answered_for_after_that)
{
    struct mall m = mall_make(1);
    struct memory_limiter *gate = memory_limiter_new(m.disk);
    struct crew_thread extends;
    struct crew_thread acks;
    due_job job;

    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    due_job same = job;
    memory_store_fault(
        m.store[0],
        (struct memory_fault){ .verb = MEMORY_WORK, .kind = MEMORY_BLOCK_AFTER, .limiter = gate });
    crew_go(&extends, extend_main, &job);
    memory_limiter_reached(gate, 1);
    crew_go(&acks, ack_main, &same);
    crew_until_asleep(&acks);
    memory_limiter_open(gate);
    cr_expect_eq(crew_join(&extends), 0);
    cr_expect_eq(crew_join(&acks), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    memory_limiter_free(gate);
    mall_close(&m);
}

static int cancel_main(void *arg)
{
    const due_job *job = arg;

    return due_cancel(job->queue, job->id, NULL);
}

/* Nothing that he says of his jobs counts any more, as soon as it is known. */
MALL_TEST(share_extend, of_who_was_turned_out_is_told_to_stop_before_his_leases_end)
{
    for (size_t n = 1; n <= 10; n += 9) {
        struct mall m = mall_make(2);
        due_job others;
        due_job jobs[10];

        lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
        cr_assert_eq(mall_reserve(&m, 0, &others, 100), 0);
        for (size_t i = 0; i < n; i++) {
            lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
            cr_assert_eq(mall_reserve(&m, 1, &jobs[i], 100), 0);
        }
        memory_store_evict(m.store[1]);
        for (size_t i = 0; i < n; i++)
            cr_expect_eq(due_job_stopping(&jobs[i]), 0, "he does not know it yet");
        int rc = due_extend(&jobs[0], 100);
        cr_expect_eq(rc, DUE_EFENCED, "%s", due_error_name(rc)); /* it was not, for sure */
        for (size_t i = 0; i < n; i++) {
            cr_expect_eq(due_job_stopping(&jobs[i]), 1, "%zu of %zu", i, n);
            cr_expect_eq(due_ack(&jobs[i]), DUE_EFENCED);
            cr_expect_eq(due_job_stopping(&jobs[i]), 1, "%zu of %zu", i, n);
            due_job_done(&jobs[i]);
        }
        cr_expect_eq(due_job_stopping(&others), 0);
        cr_expect_eq(due_ack(&others), 0);
        cr_expect_eq(memory_disk_jobs(m.disk), n);
        mall_close(&m);
    }
}

/* Its holder goes on meanwhile, unless it ends here before that is known, or is cancelled. */
MALL_TEST(share_extend, under_way_a_job_is_gone_on_with)
{
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        struct mall m = mall_make(1);
        struct memory_limiter *gate = memory_limiter_new(m.disk);
        struct crew_thread extends;
        struct crew_thread cancels;
        due_job job;

        lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
        cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
        due_job same = job;
        memory_store_fault(m.store[0], (struct memory_fault){ .verb = MEMORY_WORK,
                                                              .kind = MEMORY_BLOCK_AFTER,
                                                              .limiter = gate });
        crew_go(&extends, extend_main, &job);
        memory_limiter_reached(gate, 1);
        cr_expect_eq(due_job_stopping(&same), 0);
        if (cancelled) {
            crew_go(&cancels, cancel_main, &same);
            crew_until_asleep(&cancels);
        } else {
            mall_turn_to(&m, 99);
            cr_expect_eq(due_job_stopping(&same), 0);
            mall_turn_to(&m, 100);
        }
        cr_expect_eq(due_job_stopping(&same), 1);
        memory_limiter_open(gate);
        cr_expect_eq(crew_join(&extends), 0);
        if (cancelled)
            cr_expect_eq(crew_join(&cancels), DUE_EBUSY);
        cr_expect_eq(due_job_stopping(&job), cancelled);
        cr_expect_eq(due_ack(&job), 0);
        cr_expect_eq(memory_disk_jobs(m.disk), 0u);
        memory_limiter_free(gate);
        mall_close(&m);
    }
}
