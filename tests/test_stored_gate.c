/* Limits and groups of a stored queue: what the store refuses changes no pass, what lands does,
 * and a restart begins with none. */
#include "gate_lab.h"
#include "shop.h"

static void gated_open(struct shop *s)
{
    struct lab_options with = { .start_ns = 100 };

    with.with.store_timeout_ns = DUE_S(5);
    with.with.retry = (due_retry){ .kind = DUE_RETRY_FIXED, .attempts_max = 3 };
    shop_open(s, with);
    cr_assert_eq(due_topic_limit(s->lab.q, 0, 2), 0);
}

static struct shop gated_new(void)
{
    struct shop s = { .disk = memory_disk_new(NULL) };

    gated_open(&s);
    return s;
}

static void gated_close(struct shop *s)
{
    gate_lost_nothing(&s->lab);
    shop_close(s);
}

/* The next @times calls of a batch are refused. */
static void refuse(struct shop *s, uint64_t times)
{
    memory_store_fault(s->store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                        .times = times,
                                                        .kind = MEMORY_ANSWER,
                                                        .answer = DUE_EACCES });
}

static uint64_t passed(struct shop *s)
{
    gate_right(&s->lab);
    return lab_stats(&s->lab).passed;
}

Test(stored_gate, gets_passes_back_when_an_end_has_landed, .timeout = 60)
{
    struct shop s = gated_new();
    due_id ids[6];
    due_job job;

    for (int i = 0; i < 6; i++)
        ids[i] = lab_enqueue(&s.lab, "x", .at_ns = 10 + i, OF("g"));
    job = gate_reserve(&s.lab);
    gate_nothing(&s.lab);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(passed(&s), 1u);
    cr_expect_eq(due_cancel(s.lab.q, ids[1], NULL), 0);
    cr_expect_eq(passed(&s), 1u);
    cr_expect_eq(due_reschedule(s.lab.q, ids[2], 500), 0);
    cr_expect_eq(passed(&s), 1u);
    job = gate_reserve(&s.lab);
    cr_expect(due_id_equal(job.id, ids[3]));
    cr_expect_eq(due_cancel(s.lab.q, ids[3], NULL), DUE_EBUSY);
    cr_expect_eq(due_nack(&job, 0), 0);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(5)), 0);
    cr_expect_eq(passed(&s), 1u);
    cr_expect_eq(due_cancel(s.lab.q, ids[4], &job), 0);
    cr_expect_eq(passed(&s), 1u);
    due_job_done(&job);
    cr_expect_str_eq(lab_dequeue(&s.lab), "x");
    cr_expect_eq(passed(&s), 0u);
    cr_expect_eq(due_clear(s.lab.q, DUE_ALL_TOPICS, NULL), 0);
    gated_close(&s);
}

Test(stored_gate, keeps_the_pass_of_a_job_whose_end_was_refused, .timeout = 60)
{
    struct shop s = gated_new();
    due_id a = lab_enqueue(&s.lab, "a", .at_ns = 10, OF("g"));
    due_job job;

    lab_enqueue(&s.lab, "b", .at_ns = 11, OF("g"));
    refuse(&s, 1);
    cr_expect_eq(due_reserve(s.lab.q, &job, LEASE, 0), DUE_EACCES, "its attempt");
    cr_expect_eq(passed(&s), 1u);
    job = gate_reserve(&s.lab);
    cr_expect(due_id_equal(job.id, a));
    refuse(&s, 3);
    cr_expect_eq(due_ack(&job), DUE_EACCES);
    cr_expect_eq(due_nack(&job, 0), DUE_EACCES);
    cr_expect_eq(due_bury(&job, NULL), DUE_EACCES);
    cr_expect_eq(passed(&s), 1u);
    gate_nothing(&s.lab);
    cr_expect_eq(due_nack(&job, 0), 0);
    refuse(&s, 2);
    cr_expect_eq(due_cancel(s.lab.q, a, NULL), DUE_EACCES);
    cr_expect_eq(due_reschedule(s.lab.q, a, 500), DUE_EACCES);
    cr_expect_eq(passed(&s), 1u);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "a b");
    gated_close(&s);
}

Test(stored_gate, passes_begin_anew_after_a_crash, .timeout = 60)
{
    struct shop s = gated_new();
    due_job jobs[4];

    for (int i = 0; i < 4; i++)
        lab_enqueue(&s.lab, "x", .at_ns = 10 + i);
    cr_assert_eq(due_reserve_batch(s.lab.q, NULL, 0, jobs, 4, LEASE, 0), 2);
    due_job_done(&jobs[0]);
    due_job_done(&jobs[1]);
    shop_die(&s);
    gated_open(&s);
    cr_expect_eq(lab_stats(&s.lab).waiting, 4u);
    cr_expect_eq(passed(&s), 2u, "of those that are ready");
    cr_assert_eq(due_reserve_batch(s.lab.q, NULL, 0, jobs, 4, LEASE, 0), 2);
    for (int i = 0; i < 2; i++)
        cr_expect_eq(due_ack(&jobs[i]), 0);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "x x");
    gated_close(&s);
}

Test(stored_gate, a_group_is_the_same_after_a_crash, .timeout = 60)
{
    struct shop s = gated_new();
    due_job job;

    lab_enqueue(&s.lab, "a", .at_ns = 10, OF("g"));
    lab_enqueue(&s.lab, "b", .at_ns = 11, OF("g"));
    lab_enqueue(&s.lab, "h", .at_ns = 12, OF("h"));
    job = gate_reserve(&s.lab);
    due_job_done(&job);
    shop_die(&s);
    gated_open(&s);
    job = gate_reserve(&s.lab);
    cr_expect_eq(memcmp(job.data, "a", 1), 0);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "h");
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "b");
    cr_expect_eq(passed(&s), 0u);
    gated_close(&s);
}
