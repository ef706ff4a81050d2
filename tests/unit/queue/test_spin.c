/* Dequeues that spin (spin_ns) until their job is due, on the clock that they spin on. */
#include <unistd.h>

#include "lab/lab.h"
#include "lab/take.h"

#define SPIN .kernel = true, .with.spin_ns = DUE_S(10000)

/* A consumer has had time to begin to spin.  (If it has not, the test shows less.) */
static void call_spinning(struct crew_call *call, struct lab *lab)
{
    crew_call_dequeue(call, lab->q, DUE_FOREVER);
    crew_sleep(DUE_MS(2));
}

/* What it has is done with. */
static const char *answer_of(struct crew_call *call, struct lab *lab)
{
    return crew_call_answer(call) == 0 ? lab_text(lab, &call->job) : NULL;
}

LAB_TEST(spin, takes_a_job_when_it_is_due)
{
    struct lab lab = lab_open(SPIN);
    due_info info;

    for (int i = 0; i < 3; i++) {
        due_job job;

        due_id id = lab_enqueue(&lab, "tea", .delay_ns = DUE_MS(1));
        cr_assert_eq(due_dequeue(lab.q, &job, DUE_FOREVER), 0);
        cr_expect_geq(due_now(lab.q), job.deadline_ns, "early");
        cr_expect_geq(job.lateness_ns, 0);
        cr_expect_arr_eq(job.id.byte, id.byte, sizeof id.byte);
        cr_expect_eq(due_cancel(lab.q, id, NULL), DUE_EBUSY);
        cr_expect_str_eq(lab_text(&lab, &job), "tea");
    }
    cr_expect_eq(lab_stats(&lab).dequeued, 3u);
    cr_expect_eq(lab_stats(&lab).waiting, 0u);
    lab_enqueue(&lab, "milk", .priority = 0);
    cr_assert_eq(due_peek(lab.q, &info), 0);
    cr_expect_eq(lab_stats(&lab).ready, 1u, "those that were spun for are not counted as ready");
    lab_close(&lab);
}

/* What it carries is read when the job is the caller's own. */
LAB_TEST(spin, hands_out_what_each_job_carries)
{
    struct lab lab = lab_open(SPIN);
    char large[100];
    due_job job;
    int mine;

    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    for (int i = 0; i < 3; i++) {
        lab_enqueue(&lab, "tea", .delay_ns = DUE_MS(1));
        cr_assert_eq(due_dequeue(lab.q, &job, DUE_FOREVER), 0);
        cr_expect_str_eq(lab_text(&lab, &job), "tea");
        lab_enqueue(&lab, large, .delay_ns = DUE_MS(1), .priority = 200);
        cr_assert_eq(due_dequeue(lab.q, &job, DUE_FOREVER), 0);
        cr_expect_eq(job.priority, 200);
        cr_expect_null(job.ptr);
        cr_expect_str_eq(lab_text(&lab, &job), large);
        cr_assert_eq(due_enqueue_after(lab.q, DUE_MS(1), &mine, NULL), 0);
        cr_assert_eq(due_dequeue(lab.q, &job, DUE_FOREVER), 0);
        cr_expect_eq(job.ptr, &mine);
        cr_expect_null(job.data);
        cr_expect_eq(job.len, 0u);
        due_job_done(&job);
    }
    lab_close(&lab);
}

/* Nor is a job lost on the way, or memory. */
LAB_TEST(spin, takes_the_first_of_ten_thousand)
{
    struct lab lab = lab_open(SPIN);
    size_t blocks = 0;

    for (int i = 0; i < 10000; i++)
        lab_enqueue(&lab, "milk", .delay_ns = DUE_S(1000 + i));
    for (int i = 0; i < 100; i++) {
        due_job job;

        lab_enqueue(&lab, "tea", .delay_ns = DUE_US(100));
        cr_assert_eq(due_dequeue(lab.q, &job, DUE_FOREVER), 0);
        cr_expect_str_eq(lab_text(&lab, &job), "tea");
        if (i == 10)
            blocks = atomic_load(&lab.state->memory.live);
    }
    cr_expect_leq(atomic_load(&lab.state->memory.live), blocks, "each take has kept a block");
    cr_expect_eq(lab_stats(&lab).waiting, 10000u);
    cr_expect_eq(lab_stats(&lab).dequeued, 100u);
    lab_close(&lab);
}

LAB_TEST(spin, is_in_vain_for_a_job_that_is_cancelled)
{
    struct lab lab = lab_open(SPIN);
    struct crew_call call;
    due_id id = lab_enqueue(&lab, "cancelled", .delay_ns = DUE_S(1000));

    call_spinning(&call, &lab);
    cr_expect_eq(due_cancel(lab.q, id, NULL), 0);
    lab_enqueue(&lab, "tea", .delay_ns = DUE_MS(1));
    cr_expect_str_eq(answer_of(&call, &lab), "tea");
    lab_close(&lab);
}

LAB_TEST(spin, ends_for_an_earlier_job_that_came_later)
{
    struct lab lab = lab_open(SPIN);
    struct crew_call call;

    lab_enqueue(&lab, "later", .delay_ns = DUE_S(1000));
    call_spinning(&call, &lab);
    lab_enqueue(&lab, "tea", .delay_ns = DUE_MS(1));
    cr_expect_str_eq(answer_of(&call, &lab), "tea");
    cr_expect_eq(lab_stats(&lab).waiting, 1u);
    lab_close(&lab);
}

LAB_TEST(spin, ends_for_its_job_when_that_is_moved)
{
    struct lab lab = lab_open(SPIN);
    struct crew_call call;
    due_id id = lab_enqueue(&lab, "tea", .delay_ns = DUE_S(1000));

    call_spinning(&call, &lab);
    cr_expect_eq(due_reschedule(lab.q, id, due_now(lab.q)), 0);
    cr_expect_str_eq(answer_of(&call, &lab), "tea");
    lab_close(&lab);
}

LAB_TEST(spin, ends_when_the_queue_closes)
{
    struct lab lab = lab_open(SPIN);
    struct crew_call call;

    lab_enqueue(&lab, "later", .delay_ns = DUE_S(1000));
    call_spinning(&call, &lab);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_S(10)), 0);
    cr_expect_eq(crew_call_answer(&call), DUE_ECLOSED);
    lab_close(&lab);
}

LAB_TEST(spin, ends_a_drain_with_the_last_job)
{
    struct lab lab = lab_open(SPIN);
    struct crew_call call;

    lab_enqueue(&lab, "tea", .delay_ns = DUE_MS(5));
    call_spinning(&call, &lab);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, DUE_S(10)), 0);
    cr_expect_str_eq(answer_of(&call, &lab), "tea");
    lab_close(&lab);
}

LAB_TEST(spin, is_no_longer_than_the_timeout)
{
    struct lab lab = lab_open(SPIN);
    due_job job;

    lab_enqueue(&lab, "later", .delay_ns = DUE_S(1000));
    int64_t before = crew_now_ns();
    cr_expect_eq(due_dequeue(lab.q, &job, DUE_MS(1)), DUE_ETIMEDOUT);
    cr_expect_lt(crew_now_ns() - before, DUE_S(5));
    lab_close(&lab);
}

LAB_TEST(spin, gives_room_to_who_waits_for_it)
{
    struct lab lab = lab_open(SPIN, .with.capacity = 1);
    struct crew_call call;
    due_spec spec = { DUE_SPEC_INIT, .data = "milk", .len = 4 };

    lab_enqueue(&lab, "tea", .delay_ns = DUE_MS(5));
    call_spinning(&call, &lab);
    cr_expect_eq(due_enqueue(lab.q, &spec, DUE_S(10), NULL), 0);
    cr_expect_str_eq(answer_of(&call, &lab), "tea");
    cr_expect_str_eq(lab_dequeue(&lab), "milk");
    lab_close(&lab);
}

/* As far as it was paused in time. */
LAB_TEST(spin, gives_no_job_of_a_topic_that_is_paused)
{
    struct lab lab = lab_open(SPIN);
    struct crew_call call;
    int64_t at = due_now(lab.q) + DUE_MS(20);

    lab_enqueue(&lab, "tea", .at_ns = at);
    call_spinning(&call, &lab);
    cr_expect_eq(due_pause(lab.q, 0), 0);
    bool in_time = due_now(lab.q) < at;
    while (due_now(lab.q) < at + DUE_MS(5))
        crew_sleep(DUE_MS(1));
    cr_expect(!in_time || !atomic_load(&call.thread.back));
    cr_expect_eq(due_resume(lab.q, 0), 0);
    cr_expect_str_eq(answer_of(&call, &lab), "tea");
    lab_close(&lab);
}

/* Each of several that spin gets one; who does not lead sleeps until it does. */
LAB_TEST(spin, serves_several)
{
    struct lab lab = lab_open(SPIN);
    struct crew_call call[3];

    for (int i = 0; i < 3; i++)
        lab_enqueue(&lab, "tea", .delay_ns = DUE_MS(2 + 2 * (i / 2)));
    for (int i = 0; i < 3; i++)
        crew_call_dequeue(&call[i], lab.q, DUE_FOREVER);
    for (int i = 0; i < 3; i++)
        cr_expect_str_eq(answer_of(&call[i], &lab), "tea");
    lab_close(&lab);
}

/* What is not plain takes the usual way. */
LAB_TEST(spin, takes_any_job)
{
    struct lab lab = lab_open(SPIN);
    due_extra more = { DUE_EXTRA_INIT, .group = "g", .group_len = 1, .headers = "h",
                       .headers_len = 1 };
    due_job job;

    lab_enqueue(&lab, "tea", .delay_ns = DUE_MS(1), .more = &more);
    cr_assert_eq(due_dequeue(lab.q, &job, DUE_FOREVER), 0);
    cr_expect_eq(job.headers_len, 1u);
    cr_expect_str_eq(lab_text(&lab, &job), "tea");
    int topic = lab_topic(&lab, "other");
    lab_enqueue(&lab, "milk", .delay_ns = DUE_MS(1), .topic = topic);
    cr_assert_eq(due_dequeue(lab.q, &job, DUE_FOREVER), 0);
    cr_expect_eq(job.topic, topic);
    cr_expect_str_eq(lab_text(&lab, &job), "milk");
    lab_close(&lab);
}

/* Whoever else waits in such a queue gets what he waits for. */
LAB_TEST(spin, is_for_one_job_that_is_taken_for_good)
{
    struct lab lab = lab_open(SPIN);
    due_job jobs[2];

    for (int i = 0; i < 8; i++) {
        int way = i % 4; /* the second time others than the usual ways are open too */

        lab_enqueue(&lab, "tea", .delay_ns = DUE_MS(1));
        int rc = way == 0   ? due_reserve(lab.q, jobs, DUE_FOREVER)
                 : way == 1 ? take_leased_some(lab.q, NULL, 0, jobs, 2, DUE_S(10), DUE_FOREVER)
                 : way == 2 ? take_some(lab.q, NULL, 0, jobs, 2, DUE_FOREVER)
                            : take_from(lab.q, &(int){ 0 }, 1, jobs, DUE_FOREVER);
        cr_assert_eq(rc, way == 1 || way == 2, "way %d: %s", way, due_error_name(rc));
        cr_expect_geq(due_now(lab.q), jobs[0].deadline_ns);
        if (way < 2)
            cr_expect_eq(due_ack(&jobs[0]), 0);
        else
            cr_expect_str_eq(lab_text(&lab, &jobs[0]), "tea");
    }
    lab_close(&lab);
}

LAB_TEST(spin, takes_a_job_when_it_is_due_on_every_clock)
{
    static const enum due_clock_kind kinds[] = { DUE_CLOCK_MONOTONIC, DUE_CLOCK_BOOTTIME,
                                                 DUE_CLOCK_REALTIME };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        close(0); /* so that where it has an alarm that is the first descriptor of all */
        struct lab lab = lab_open(SPIN, .with.clock = kinds[i]);
        due_job job;

        for (int k = 0; k < 3; k++) {
            lab_enqueue(&lab, "tea", .delay_ns = DUE_MS(1));
            cr_assert_eq(due_dequeue(lab.q, &job, DUE_S(20)), 0, "clock %zu", i);
            cr_expect_geq(due_now(lab.q), job.deadline_ns, "clock %zu: early", i);
            cr_expect_str_eq(lab_text(&lab, &job), "tea");
        }
        lab_close(&lab);
    }
}

/* Until then the caller sleeps: here a hundred milliseconds, and spins for the last one. */
LAB_TEST(spin, begins_as_long_before_a_job_as_was_said)
{
    struct lab lab = lab_open(.kernel = true, .with.spin_ns = DUE_MS(1));
    due_job job;

    int64_t before = crew_cpu_ns();
    lab_enqueue(&lab, "tea", .delay_ns = DUE_MS(100));
    cr_assert_eq(due_dequeue(lab.q, &job, DUE_FOREVER), 0);
    cr_expect_lt(crew_cpu_ns() - before, DUE_MS(30));
    cr_expect_str_eq(lab_text(&lab, &job), "tea");
    lab_close(&lab);
}

/* Whoever spins does not sleep: of many times once at least nothing else makes him. */
Test(spin, is_no_sleep, .timeout = 60)
{
    struct lab lab = lab_open(SPIN, .with.proxies = DUE_PROXIES_NEVER);
    uint64_t least = UINT64_MAX;
    due_job job;

    for (int i = 0; i < 200 && least > 0; i++) {
        lab_enqueue(&lab, "tea", .delay_ns = DUE_US(300));
        uint64_t before = crew_switches();
        cr_assert_eq(due_dequeue(lab.q, &job, DUE_FOREVER), 0);
        uint64_t slept = crew_switches() - before;
        least = slept < least ? slept : least;
        cr_expect_str_eq(lab_text(&lab, &job), "tea");
    }
    cr_expect_eq(least, 0u, "%ju times at least", (uintmax_t)least);
    lab_close(&lab);
}
