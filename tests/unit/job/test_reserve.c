/* Jobs that are answered for: reserve, ack, nack, extend. */
#include "os/atomic.h"
#include "queue/queue.h"
#include "due/workers.h"
#include "lab/lab.h"
#include "queue/job_records.h"
#include "lab/take.h"

#define LEASE 100

static due_job reserve(struct lab *lab)
{
    due_job job = { 0 };

    cr_assert_eq(take_leased(lab->q, &job, LEASE, 0), 0);
    return job;
}

static bool text_is(const due_job *job, const char *text)
{
    return job->len == strlen(text) && memcmp(job->data, text, job->len) == 0;
}

LAB_TEST(reserve, an_ack_ends_it)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10);

    lab_turn_to(&lab, 9);
    due_job job;
    cr_expect_eq(take_leased(lab.q, &job, LEASE, 0), DUE_EAGAIN);
    lab_turn_to(&lab, 10);
    job = reserve(&lab);
    cr_expect(text_is(&job, "tea"));
    cr_expect(due_id_equal(job.id, id));
    cr_expect_eq(job.attempts, 1u);
    cr_expect_eq(job.failures, 0u);
    cr_expect_eq(job.deadline_ns, 10);
    cr_expect_eq(lab_stats(&lab).leased, 1u);
    cr_expect_eq(lab_stats(&lab).waiting, 0u);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_null(job.queue);
    cr_expect_eq(due_ack(&job), DUE_EINVAL, "a zeroed job was acked");
    cr_expect_eq(lab_stats(&lab).acked, 1u);
    cr_expect_eq(lab_stats(&lab).leased, 0u);
    lab_turn_to(&lab, 10000);
    cr_expect_null(lab_dequeue(&lab), "it came again");
    lab_close(&lab);
}

LAB_TEST(reserve, a_lease_that_ends_gives_it_back_to_the_nanosecond)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "tea", .at_ns = 10);
    lab_turn_to(&lab, 20);
    due_job first = reserve(&lab);
    lab_turn_to(&lab, 20 + LEASE - 1);
    due_job second;
    cr_expect_eq(take_leased(lab.q, &second, LEASE, 0), DUE_EAGAIN);
    lab_turn_to(&lab, 20 + LEASE);
    second = reserve(&lab);
    cr_expect(text_is(&second, "tea"));
    cr_expect_eq(second.attempts, 2u);
    cr_expect_eq(second.failures, 1u);
    cr_expect_eq(second.deadline_ns, 10, "its own deadline was overwritten");
    cr_expect(text_is(&first, "tea"), "the first holder lost the bytes");
    cr_expect_eq(due_ack(&first), DUE_ESTALE);
    cr_expect_null(first.queue);
    cr_expect_eq(due_ack(&second), 0);
    lab_close(&lab);
}

LAB_TEST(reserve, a_late_answer_changes_nothing)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    due_job late[3];
    for (int i = 0; i < 3; i++) {
        late[i] = reserve(&lab);
        lab_advance(&lab, LEASE);
    }
    due_job job = reserve(&lab);
    cr_expect_eq(due_extend(&late[0], LEASE), DUE_ESTALE);
    cr_expect_not_null(late[0].queue, "an extend let go of it");
    cr_expect_eq(due_nack(&late[0], 0), DUE_ESTALE);
    cr_expect_eq(due_ack(&late[1]), DUE_ESTALE);
    due_job_done(&late[2]);
    cr_expect_eq(lab_stats(&lab).lent, 1u);
    cr_expect(text_is(&job, "tea"));
    cr_expect_eq(due_ack(&job), 0);
    lab_close(&lab);
}

LAB_TEST(reserve, an_answer_after_the_end_of_the_lease_is_late_though_nobody_has_the_job)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    due_job job = reserve(&lab);
    lab_advance(&lab, LEASE);
    cr_expect_eq(due_ack(&job), DUE_ESTALE);
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    lab_close(&lab);
}

/* Whoever answers for @job is in time. */
typedef bool answer_fn(due_job *job);

static bool is_acked(due_job *job)
{
    return due_ack(job) == 0;
}

static bool is_acked_together(due_job *job)
{
    return due_ack_batch(job, 1, NULL) == 1;
}

static bool is_nacked(due_job *job)
{
    return due_nack(job, 0) == 0;
}

static bool is_buried(due_job *job)
{
    return due_bury(job, "why") == 0;
}

static bool is_extended(due_job *job)
{
    return due_extend(job, LEASE) == 0;
}

static bool goes_on(due_job *job)
{
    return !due_job_stopping(job);
}

LAB_TEST(reserve, who_has_no_lease_is_told_to_stop)
{
    struct lab lab = lab_open();
    due_job job;

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(due_job_stopping(&job), 1, "it was taken for good");
    due_job_done(&job);
    cr_expect_eq(due_job_stopping(&job), 1, "it was done with");
    lab_close(&lab);
}

/* Nobody looks at the queue before that. */
LAB_TEST(reserve, a_lease_ends_for_each_answer_at_its_nanosecond)
{
    static answer_fn *const answers[] = { is_acked,  is_acked_together, is_nacked,
                                          is_buried, is_extended,       goes_on };

    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        for (int64_t late = -1; late < 2; late++) {
            struct lab lab = lab_open(.start_ns = 7);
            lab_enqueue(&lab, "tea", .at_ns = 5);
            due_job job = reserve(&lab);

            lab_turn_to(&lab, 7 + LEASE + late);
            cr_expect_eq(answers[i](&job), late < 0, "answer %zu, %d ns", i, (int)late);
            due_job_done(&job);
            lab_close(&lab);
        }
    }
}

/* The kernel's note of the time is milliseconds old: a lease that has ended since has ended. */
LAB_TEST(reserve, a_lease_ends_at_its_time_on_each_clock_of_the_kernel)
{
    static const enum due_clock_kind clocks[] = { DUE_CLOCK_MONOTONIC, DUE_CLOCK_BOOTTIME,
                                                  DUE_CLOCK_REALTIME };

    for (int i = 0; i < 30; i++) {
        struct lab lab = lab_open(.kernel = true, .with.clock = clocks[i % 3]);
        due_job job;

        lab_enqueue(&lab, "tea", .delay_ns = 0);
        cr_assert_eq(take_leased(lab.q, &job, DUE_US(50), DUE_S(10)), 0);
        int64_t until = due_now(lab.q) + DUE_US(50); /* it began before */
        while (due_now(lab.q) < until)
            ;
        cr_expect_eq(due_ack(&job), DUE_ESTALE, "%d", i);
        due_job_done(&job);
        lab_close(&lab);
    }
}

LAB_TEST(reserve, a_nack_gives_it_back_after_its_delay)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "tea", .at_ns = 10);
    lab_turn_to(&lab, 50);
    due_job job = reserve(&lab);
    cr_expect_eq(due_nack(&job, -2), DUE_EINVAL);
    cr_expect_eq(due_nack(&job, 30), 0);
    cr_expect_null(job.queue);
    lab_turn_to(&lab, 79);
    cr_expect_eq(take_leased(lab.q, &job, LEASE, 0), DUE_EAGAIN);
    lab_turn_to(&lab, 80);
    job = reserve(&lab);
    cr_expect_eq(job.attempts, 2u);
    cr_expect_eq(job.failures, 1u);
    cr_expect_eq(job.deadline_ns, 10);
    cr_expect_eq(due_nack(&job, 0), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "tea", "at once");
    lab_close(&lab);
}

LAB_TEST(reserve, an_extended_lease_ends_later)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    due_job job = reserve(&lab);
    lab_turn_to(&lab, LEASE - 1);
    cr_expect_eq(due_extend(&job, 0), DUE_EINVAL);
    cr_expect_eq(due_extend(&job, LEASE), 0);
    lab_turn_to(&lab, 2 * LEASE - 2);
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_eq(due_extend(&job, 5), 0, "also to an earlier end");
    lab_turn_to(&lab, 2 * LEASE + 3);
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    cr_expect_eq(due_ack(&job), DUE_ESTALE);
    lab_close(&lab);
}

LAB_TEST(reserve, a_reserved_job_is_being_handled)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .delay_ns = 0);
    due_job job = reserve(&lab);
    due_info info;

    cr_expect_eq(due_reschedule(lab.q, id, 5), DUE_EBUSY);
    cr_expect_eq(due_find(lab.q, id, &info), DUE_EBUSY);
    cr_expect_eq(due_nack(&job, 10), 0);
    cr_expect_eq(due_find(lab.q, id, &info), 0);
    cr_expect_eq(due_cancel(lab.q, id, NULL), 0);
    cr_expect_eq(due_find(lab.q, id, &info), DUE_ENOENT);
    lab_close(&lab);
}

LAB_TEST(reserve, a_job_that_failed_can_be_dequeued_cancelled_and_moved)
{
    struct lab lab = lab_open();
    due_id ids[3];
    const char *text[] = { "one", "two", "three" };

    for (int i = 0; i < 3; i++) {
        ids[i] = lab_enqueue(&lab, text[i], .at_ns = 1 + i);
        lab_turn_to(&lab, 1 + i);
        due_job job = reserve(&lab);
        cr_assert_eq(due_nack(&job, 1000), 0);
    }
    cr_expect_eq(due_reschedule(lab.q, ids[0], 500), 0);
    lab_turn_to(&lab, 500);
    due_job job;
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(job.deadline_ns, 500);
    cr_expect_eq(job.attempts, 1u);
    due_job_done(&job);
    cr_expect_eq(due_cancel(lab.q, ids[1], &job), 0);
    cr_expect(text_is(&job, "two"));
    due_job_done(&job);
    cr_expect_eq(due_promote(lab.q, ids[2]), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "three");
    lab_close(&lab);
}

LAB_TEST(reserve, the_last_who_holds_it_gives_the_bytes_back)
{
    struct lab lab = lab_open();
    char big[1000];

    memset(big, 'x', sizeof big);
    due_spec spec = { DUE_SPEC_INIT, .data = big, .len = sizeof big };
    cr_assert_eq(due_enqueue(lab.q, &spec, 0, NULL), 0);
    due_job stale = reserve(&lab);
    lab_advance(&lab, LEASE);
    due_job job = reserve(&lab);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(memcmp(stale.data, big, sizeof big), 0);
    cr_expect_eq(lab_stats(&lab).lent, 1u);
    cr_expect_eq(due_free(lab.q), DUE_EBUSY);
    cr_expect_eq(due_ack(&stale), DUE_ESTALE);
    lab_close(&lab);
}

LAB_TEST(reserve, in_batches_and_by_topic)
{
    struct lab lab = lab_open();
    int mail = lab_topic(&lab, "mail");
    due_job jobs[8];
    int results[8];

    for (int i = 0; i < 5; i++)
        lab_enqueue(&lab, "mail", .topic = mail);
    lab_enqueue(&lab, "other", .delay_ns = 0);
    cr_expect_eq(take_leased_some(lab.q, &mail, 1, jobs, 8, -2, 0), DUE_EINVAL);
    cr_assert_eq(take_leased_some(lab.q, &mail, 1, jobs, 8, LEASE, 0), 5);
    cr_expect_eq(take_leased_from(lab.q, &mail, 1, &jobs[5], LEASE, 0), DUE_EAGAIN);
    lab_advance(&lab, 1);
    cr_expect_eq(due_nack(&jobs[4], 0), 0);
    cr_expect_eq(due_ack_batch(jobs, 5, results), 4);
    for (int i = 0; i < 5; i++)
        cr_expect_eq(results[i], i < 4 ? 0 : DUE_EINVAL);
    cr_expect_eq(lab_stats(&lab).acked, 4u);
    cr_expect_eq(lab_stats(&lab).waiting, 2u);
    lab_close(&lab);
}

/* Two of three: those take turns, what comes again goes to them too, and the third is left. */
LAB_TEST(reserve, of_several_topics_at_once)
{
    struct lab lab = lab_open();
    int two[] = { lab_topic(&lab, "mail"), lab_topic(&lab, "post") };
    int third = lab_topic(&lab, "fax");
    int taken[2] = { 0, 0 };
    due_job job;

    lab_enqueue(&lab, "left alone", .topic = third);
    for (int i = 0; i < 6; i++)
        lab_enqueue(&lab, "job", .topic = two[i / 3]);
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(take_leased_from(lab.q, two, 2, &job, LEASE, 0), 0);
        cr_assert(job.topic == two[0] || job.topic == two[1]);
        taken[job.topic == two[1]]++;
        cr_expect_eq(due_ack(&job), 0);
    }
    cr_expect_eq(taken[0], 2, "they take turns");
    for (int i = 0; i < 2; i++) { /* one comes again by a nack, one as its lease ends */
        cr_assert_eq(take_leased_from(lab.q, two, 2, &job, LEASE, 0), 0);
        if (i == 0)
            cr_expect_eq(due_nack(&job, LEASE), 0);
        due_job_done(&job);
    }
    cr_expect_eq(take_leased_from(lab.q, two, 2, &job, LEASE, 0), DUE_EAGAIN);
    lab_advance(&lab, LEASE);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(take_leased_from(lab.q, two, 2, &job, LEASE, 0), 0);
        cr_expect_eq(job.attempts, 2u);
        cr_expect_eq(due_ack(&job), 0);
    }
    cr_expect_eq(take_leased_from(lab.q, two, 2, &job, LEASE, 0), DUE_EAGAIN);
    cr_expect_eq(take_leased_from(lab.q, (int[]){ two[0], third, 99 }, 3, &job, LEASE, 0),
                 DUE_EINVAL);
    cr_expect_str_eq(lab_dequeue_all(&lab), "left alone");
    lab_close(&lab);
}

LAB_TEST(reserve, a_batch_of_several_topics_at_once)
{
    struct lab lab = lab_open();
    int two[] = { lab_topic(&lab, "mail"), lab_topic(&lab, "post") };
    int third = lab_topic(&lab, "fax");
    int of[2] = { 0, 0 };
    due_job jobs[8];

    lab_enqueue(&lab, "left alone", .topic = third);
    lab_enqueue(&lab, "also", .topic = 0);
    for (int i = 0; i < 5; i++)
        lab_enqueue(&lab, "job", .topic = two[i % 2]);
    cr_assert_eq(take_leased_some(lab.q, two, 2, jobs, 8, LEASE, 0), 5);
    for (int i = 0; i < 5; i++) {
        cr_assert(jobs[i].topic == two[0] || jobs[i].topic == two[1]);
        of[jobs[i].topic == two[1]]++;
    }
    cr_expect_eq(of[0], 3);
    cr_expect_eq(of[1], 2);
    cr_expect_eq(due_ack_batch(jobs, 5, NULL), 5);
    cr_expect_eq(take_leased_some(lab.q, two, 2, jobs, 8, LEASE, 0), DUE_EAGAIN);
    cr_expect_str_eq(lab_dequeue_from(&lab, third), "left alone");
    cr_expect_str_eq(lab_dequeue_all(&lab), "also");
    lab_close(&lab);
}

/* A job of either topic ends the wait, and one of the third does not. */
LAB_TEST(reserve, waits_for_several_topics_at_once)
{
    for (int i = 0; i < 4; i++) {
        struct lab lab = lab_open();
        int two[] = { lab_topic(&lab, "mail"), lab_topic(&lab, "post") };
        int third = lab_topic(&lab, "fax");
        bool batch = i >= 2;
        struct crew_call call;

        if (batch)
            crew_call_reserve_batch(&call, lab.q, two, 2, LEASE, DUE_FOREVER);
        else
            crew_call_reserve(&call, lab.q, two, 2, LEASE, DUE_FOREVER);
        crew_call_asleep(&call);
        lab_enqueue(&lab, "left alone", .topic = third);
        crew_call_asleep(&call);
        cr_expect_not(atomic_load(&call.thread.back));
        lab_enqueue(&lab, "tea", .topic = two[i % 2]);
        cr_assert_eq(crew_call_answer(&call), (int)batch);
        cr_expect(text_is(&call.job, "tea"));
        cr_expect_eq(due_ack(&call.job), 0);
        cr_expect_str_eq(lab_dequeue_all(&lab), "left alone");
        lab_close(&lab);
    }
}

LAB_TEST(reserve, a_capacity_counts_it_until_it_is_answered_for)
{
    struct lab lab = lab_open(.with.capacity = 1);
    due_spec spec = { DUE_SPEC_INIT, .data = "b", .len = 1 };

    lab_enqueue(&lab, "a", .delay_ns = 0);
    due_job job = reserve(&lab);
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_EAGAIN);
    cr_expect_eq(due_nack(&job, 0), 0);
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_EAGAIN);
    job = reserve(&lab);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), 0);
    lab_close(&lab);
}

LAB_TEST(reserve, draining_waits_for_the_answer)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    due_job job = reserve(&lab);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    cr_expect_eq(due_nack(&job, 5), 0);
    lab_advance(&lab, 5);
    job = reserve(&lab);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), 0);
    lab_close(&lab);
}

LAB_TEST(reserve, a_closed_queue_takes_answers)
{
    struct lab lab = lab_open();
    due_job job[3];

    for (int i = 0; i < 3; i++) {
        lab_enqueue(&lab, "tea", .delay_ns = 0);
        job[i] = reserve(&lab);
    }
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, 0), 0);
    cr_expect_eq(due_ack(&job[0]), 0);
    cr_expect_eq(due_nack(&job[1], 10), 0);
    due_job_done(&job[2]);
    lab_close(&lab);
}

LAB_TEST(reserve, without_memory_the_job_waits_on)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    due_job job;
    lab.state->memory.fail_at = 0;
    lab.state->memory.fail_on = true;
    int rc = take_leased(lab.q, &job, LEASE, 0);
    lab.state->memory.fail_on = false;
    lab.state->memory.fail_at = FLAKY_NEVER;
    cr_expect_eq(rc, DUE_ENOMEM);
    job = reserve(&lab);
    cr_expect_eq(job.attempts, 1u);
    cr_expect_eq(due_ack(&job), 0);
    lab_close(&lab);
}

/* A peek must not drop what stands at the head of the timeline only until a lease ends. */
LAB_TEST(reserve, a_peek_leaves_the_end_of_a_lease_where_it_is)
{
    struct lab lab = lab_open();
    due_info info;

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    due_job job = reserve(&lab);
    cr_expect_eq(due_peek(lab.q, &info), DUE_EAGAIN);
    due_id late = lab_enqueue(&lab, "late", .at_ns = 100 * LEASE);
    due_id later = lab_enqueue(&lab, "later", .at_ns = 200 * LEASE);
    cr_expect_eq(due_peek(lab.q, &info), 0);
    cr_expect(due_id_equal(info.id, late), "not the next one to become due");
    cr_expect_eq(due_cancel(lab.q, late, NULL), 0);
    cr_expect_eq(due_peek(lab.q, &info), 0);
    cr_expect(due_id_equal(info.id, later));
    lab_advance(&lab, LEASE);
    cr_expect_str_eq(lab_dequeue(&lab), "tea", "the end of its lease was lost");
    due_job_done(&job);
    lab_close(&lab);
}

/* Of a job that comes again each millisecond that takes 50 days. */
LAB_TEST(reserve, goes_on_when_the_token_has_come_around)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "a", .at_ns = 1);
    lab_turn_to(&lab, 1);
    due_job job = reserve(&lab);
    uint32_t number, generation;
    cr_assert(due__handle_read(job.place, &number, &generation));
    cr_assert_eq(due_nack(&job, 0), 0);
    due__store_relaxed(&due__lease_at(lab.q, number)->token, UINT32_MAX);
    job = reserve(&lab);
    cr_expect_neq(job.token, 0u, "it would be taken for a job that is not reserved");
    cr_expect_eq(due_ack(&job), 0);
    lab_close(&lab);
}
