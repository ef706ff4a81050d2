/* Timers: a pointer at a time, or after a delay, in one call. */
#include "lab/lab.h"
#include "lab/shop.h"

#include "queue/queue.h"

static int thing; /* what is carried */

/* What is due now is this one. */
static void expect_now(struct lab *lab, due_id id, void *ptr, int64_t deadline_ns)
{
    due_job job;

    cr_assert_eq(due_dequeue(lab->q, &job, 0), 0);
    cr_expect(due_id_equal(job.id, id), "another job");
    cr_expect_eq(job.ptr, ptr);
    cr_expect_null(job.data);
    cr_expect_eq(job.len, 0u);
    cr_expect_eq(job.topic, 0);
    cr_expect_eq(job.priority, 0);
    cr_expect_eq(job.deadline_ns, deadline_ns);
    due_job_done(&job);
}

static void expect_none(struct lab *lab)
{
    due_job job;

    cr_expect_eq(due_dequeue(lab->q, &job, 0), DUE_EAGAIN);
}

LAB_TEST(enqueue_at, hands_the_pointer_out_at_its_time)
{
    struct lab lab = lab_open(.start_ns = 1000);
    due_id id;

    cr_assert_eq(due_enqueue_at(lab.q, 1500, &thing, &id), 0);
    lab_turn_to(&lab, 1499);
    expect_none(&lab);
    lab_turn_to(&lab, 1500);
    expect_now(&lab, id, &thing, 1500);
    lab_close(&lab);
}

LAB_TEST(enqueue_at, counts_a_delay_from_the_call)
{
    struct lab lab = lab_open(.start_ns = 1000);
    due_id id;

    cr_assert_eq(due_enqueue_after(lab.q, 500, &thing, &id), 0);
    lab_turn_to(&lab, 1499);
    expect_none(&lab);
    lab_turn_to(&lab, 1500);
    expect_now(&lab, id, &thing, 1500);
    lab_close(&lab);
}

/* Unlike in a spec, 0 is a time as any other: long ago. */
LAB_TEST(enqueue_at, takes_what_has_passed_as_due)
{
    struct lab lab = lab_open(.start_ns = 1000);
    due_id late, first, now;

    cr_assert_eq(due_enqueue_at(lab.q, 999, &thing, &late), 0);
    cr_assert_eq(due_enqueue_at(lab.q, 0, &thing, &first), 0);
    expect_now(&lab, first, &thing, 0);
    expect_now(&lab, late, &thing, 999);
    cr_assert_eq(due_enqueue_after(lab.q, 0, &thing, &now), 0);
    expect_now(&lab, now, &thing, 1000);
    lab_close(&lab);
}

LAB_TEST(enqueue_at, needs_neither_a_pointer_nor_room_for_the_id)
{
    struct lab lab = lab_open(.start_ns = 10);
    due_id id;

    cr_assert_eq(due_enqueue_at(lab.q, 5, NULL, &id), 0);
    expect_now(&lab, id, NULL, 5);
    cr_assert_eq(due_enqueue_at(lab.q, 5, &thing, NULL), 0);
    cr_assert_eq(due_enqueue_after(lab.q, 5, NULL, NULL), 0);
    cr_expect_eq(lab_stats(&lab).waiting, 2u);
    lab_close(&lab);
}

LAB_TEST(enqueue_at, keeps_its_turn_among_jobs_with_a_spec)
{
    struct lab lab = lab_open(.start_ns = 10);
    int things[6];
    due_job job;

    for (int i = 0; i < 6; i++) {
        due_spec spec = { DUE_SPEC_INIT, .at_ns = 20, .ptr = &things[i] };
        int rc = i % 3 == 0   ? due_enqueue(lab.q, &spec, 0, NULL)
                 : i % 3 == 1 ? due_enqueue_at(lab.q, 20, &things[i], NULL)
                              : due_enqueue_after(lab.q, 10, &things[i], NULL);
        cr_assert_eq(rc, 0);
    }
    lab_turn_to(&lab, 20);
    for (int i = 0; i < 6; i++) {
        cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
        cr_expect_eq(job.ptr, &things[i]);
        due_job_done(&job);
    }
    lab_close(&lab);
}

LAB_TEST(enqueue_at, refuses_a_negative_time)
{
    static const int64_t wrong[] = { -1, INT64_MIN };
    struct lab lab = lab_open(.start_ns = 10);
    due_id id = { { 1 } };

    for (int i = 0; i < 2; i++) {
        cr_expect_eq(due_enqueue_at(lab.q, wrong[i], &thing, &id), DUE_EINVAL);
        cr_expect_eq(due_enqueue_after(lab.q, wrong[i], &thing, &id), DUE_EINVAL);
    }
    cr_expect_eq(id.byte[0], 1, "a refused enqueue wrote an id");
    cr_expect_eq(lab_stats(&lab).waiting, 0u);
    lab_close(&lab);
}

LAB_TEST(enqueue_at, never_comes_at_the_end_of_time)
{
    struct lab lab = lab_open(.start_ns = 10);

    cr_assert_eq(due_enqueue_at(lab.q, DUE_FOREVER, &thing, NULL), 0);
    cr_assert_eq(due_enqueue_after(lab.q, DUE_FOREVER - 5, &thing, NULL), 0);
    cr_expect_eq(due_next_deadline(lab.q), DUE_FOREVER);
    lab_close(&lab);
}

LAB_TEST(enqueue_at, does_not_wait_for_room)
{
    struct lab lab = lab_open(.start_ns = 10, .with.capacity = 1);
    due_id id;

    cr_assert_eq(due_enqueue_at(lab.q, 5, &thing, &id), 0);
    cr_expect_eq(due_enqueue_at(lab.q, 5, &thing, NULL), DUE_EAGAIN);
    cr_expect_eq(due_enqueue_after(lab.q, 5, &thing, NULL), DUE_EAGAIN);
    expect_now(&lab, id, &thing, 5);
    cr_assert_eq(due_enqueue_after(lab.q, 0, &thing, &id), 0);
    expect_now(&lab, id, &thing, 10);
    lab_close(&lab);
}

LAB_TEST(enqueue_at, is_refused_by_a_queue_that_closes)
{
    struct lab lab = lab_open(.start_ns = 10);
    due_id id;

    cr_assert_eq(due_enqueue_at(lab.q, 20, &thing, &id), 0);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    cr_expect_eq(due_enqueue_at(lab.q, 20, &thing, NULL), DUE_ECLOSED);
    cr_expect_eq(due_enqueue_after(lab.q, 20, &thing, NULL), DUE_ECLOSED);
    lab_turn_to(&lab, 20);
    expect_now(&lab, id, &thing, 20);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, DUE_S(10)), 0);
    cr_expect_eq(due_enqueue_at(lab.q, 20, &thing, NULL), DUE_ECLOSED);
    lab_close(&lab);
}

/* Somebody has the lock: it is left in the inbox. */
LAB_TEST(enqueue_at, goes_in_while_the_lock_is_busy)
{
    struct lab lab = lab_open(.start_ns = 10);
    struct due__tenure t;
    due_id first, second;

    lab_enqueue(&lab, "far", .at_ns = 500); /* so that there are places */
    due__enter(lab.q, &t);
    cr_assert_eq(due_enqueue_at(lab.q, 12, &thing, &second), 0);
    cr_assert_eq(due_enqueue_after(lab.q, 1, &thing, &first), 0);
    due__tenure_end(lab.q, &t);
    lab_turn_to(&lab, 12);
    expect_now(&lab, first, &thing, 11);
    expect_now(&lab, second, &thing, 12);
    lab_close(&lab);
}

static int discarded;

static void count_discarded(void *ctx, const due_job *job)
{
    (void)ctx;
    discarded += job->ptr == &thing;
}

static int told;

static void count_told(void *ctx, const due_event *event)
{
    (void)ctx;
    told += event->kind == DUE_EVENT_PRODUCED;
}

LAB_TEST(enqueue_at, is_shown_to_the_hooks)
{
    struct lab lab =
        lab_open(.start_ns = 10, .with.on_discard = count_discarded, .with.on_event = count_told);

    discarded = told = 0;
    cr_assert_eq(due_enqueue_at(lab.q, 20, &thing, NULL), 0);
    cr_assert_eq(due_enqueue_after(lab.q, 20, &thing, NULL), 0);
    lab_close(&lab);
    cr_expect_eq(told, 2);
    cr_expect_eq(discarded, 2);
}

/* The pointer would mean nothing to the next process; without one it is a job as any other. */
Test(enqueue_at, gives_a_store_no_pointer, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 10);
    due_id id = { { 0 } };

    cr_expect_eq(due_enqueue_at(s.lab.q, 20, &thing, NULL), DUE_EINVAL);
    cr_expect_eq(due_enqueue_after(s.lab.q, 20, &thing, NULL), DUE_EINVAL);
    cr_assert_eq(due_enqueue_after(s.lab.q, 20, NULL, &id), 0);
    cr_expect_eq(memory_disk_jobs(s.disk), 1u);
    shop_crash(&s, (struct lab_options){ .start_ns = 30 });
    due_job job;
    cr_assert_eq(lab_take(&s.lab, &job), 0);
    cr_expect(due_id_equal(job.id, id));
    cr_expect_eq(job.deadline_ns, 30);
    due_job_done(&job);
    shop_close(&s);
}

/* On real clocks: not early. */
Test(enqueue_at, keeps_its_time_on_every_clock, .timeout = 60)
{
    for (int clock = DUE_CLOCK_MONOTONIC; clock <= DUE_CLOCK_REALTIME; clock++) {
        struct lab lab = lab_open(.kernel = true, .with.clock = (enum due_clock_kind)clock);
        int64_t now = due_now(lab.q);
        due_job job;

        cr_assert_eq(due_enqueue_after(lab.q, DUE_MS(2), &thing, NULL), 0);
        cr_assert_eq(due_enqueue_at(lab.q, now + DUE_MS(1), &thing, NULL), 0);
        for (int i = 1; i <= 2; i++) {
            cr_assert_eq(due_dequeue(lab.q, &job, DUE_S(20)), 0);
            if (clock != DUE_CLOCK_REALTIME) /* which may be set meanwhile */
                cr_expect_geq(due_now(lab.q), now + DUE_MS(i));
            due_job_done(&job);
        }
        lab_close(&lab);
    }
}
