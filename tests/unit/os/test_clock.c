/* Clocks: one that is turned by hand, and those of the kernel. */
#define _GNU_SOURCE
#include "lab/kernel_time.h"
#include "lab/lab.h"

#include <time.h>
#include <unistd.h>

#include "os/clock.h"

/* The kernel's clocks, of which one may be ahead, as after a suspend. */
static time_t boottime_ahead_s;
static unsigned exact_reads; /* of a clock that is no note */

int clock_gettime(clockid_t id, struct timespec *t)
{
    int rc = (int)syscall(KERNEL_CLOCK_GETTIME, id, t);

    if (id == CLOCK_BOOTTIME)
        t->tv_sec += boottime_ahead_s;
    exact_reads += id == CLOCK_MONOTONIC || id == CLOCK_REALTIME;
    return rc;
}

Test(manual_clock, shows_what_it_was_set_to)
{
    due_clock *clock = due_clock_manual(1234);

    cr_assert_not_null(clock);
    cr_expect_eq(due_clock_now(clock), 1234);
    cr_expect_eq(due_clock_advance(clock, 6), 0);
    cr_expect_eq(due_clock_now(clock), 1240);
    cr_expect_eq(due_clock_turn_to(clock, 5000), 0);
    cr_expect_eq(due_clock_now(clock), 5000);
    cr_expect_eq(due_clock_advance(clock, 0), 0);
    cr_expect_eq(due_clock_turn_to(clock, 5000), 0);
    cr_expect_eq(due_clock_now(clock), 5000);
    cr_expect_eq(due_clock_free(clock), 0);
}

Test(manual_clock, cannot_begin_before_zero)
{
    cr_expect_null(due_clock_manual(-1));
    cr_expect_null(due_clock_manual(INT64_MIN));
}

Test(manual_clock, cannot_be_turned_back)
{
    due_clock *clock = due_clock_manual(100);

    cr_expect_eq(due_clock_advance(clock, -1), DUE_EINVAL);
    cr_expect_eq(due_clock_turn_to(clock, 99), DUE_EINVAL);
    cr_expect_eq(due_clock_turn_to(clock, -5), DUE_EINVAL);
    cr_expect_eq(due_clock_now(clock), 100);
    cr_expect_eq(due_clock_free(clock), 0);
}

Test(manual_clock, stops_one_before_for_ever)
{
    due_clock *clock = due_clock_manual(INT64_MAX - 10);

    cr_expect_eq(due_clock_advance(clock, INT64_MAX), 0);
    cr_expect_eq(due_clock_now(clock), DUE_FOREVER - 1);
    cr_expect_eq(due_clock_turn_to(clock, DUE_FOREVER), 0);
    cr_expect_eq(due_clock_now(clock), DUE_FOREVER - 1);
    cr_expect_eq(due_clock_free(clock), 0);
}

Test(manual_clock, begins_at_most_one_before_for_ever)
{
    due_clock *clock = due_clock_manual(DUE_FOREVER);

    cr_assert_not_null(clock);
    cr_expect_eq(due_clock_now(clock), DUE_FOREVER - 1);
    cr_expect_eq(due_clock_free(clock), 0);
}

Test(time, is_added_up_to_for_ever_and_down_to_zero)
{
    cr_expect_eq(due__time_add(5, 7), 12);
    cr_expect_eq(due__time_add(5, -5), 0);
    cr_expect_eq(due__time_add(5, -6), 0);
    cr_expect_eq(due__time_add(5, INT64_MIN), 0);
    cr_expect_eq(due__time_add(-1, INT64_MIN), 0);
    cr_expect_eq(due__time_add(DUE_FOREVER, 0), DUE_FOREVER);
    cr_expect_eq(due__time_add(DUE_FOREVER, 1), DUE_FOREVER);
    cr_expect_eq(due__time_add(1, DUE_FOREVER), DUE_FOREVER);
    cr_expect_eq(due__time_add(DUE_FOREVER - 1, 1), DUE_FOREVER);
    cr_expect_eq(due__time_add(DUE_FOREVER, DUE_FOREVER), DUE_FOREVER);
}

/* The note of the kernel is only asked whether the clock need be read. */
Test(time, has_passed_or_not_on_every_clock)
{
    static const enum due_clock_kind kinds[] = { DUE_CLOCK_MONOTONIC, DUE_CLOCK_BOOTTIME,
                                                 DUE_CLOCK_REALTIME };
    struct due__clock clock;

    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(due__clock_init(&clock, kinds[i], NULL), 0);
        int64_t now = due__clock_now(&clock);
        cr_expect(due__clock_passed(&clock, now), "clock %zu", i);
        cr_expect(due__clock_passed(&clock, now - DUE_S(2)), "clock %zu", i);
        cr_expect_not(due__clock_passed(&clock, now + DUE_MS(900)), "clock %zu", i);
        cr_expect_not(due__clock_passed(&clock, now + DUE_S(3600)), "clock %zu", i);
    }
    due_clock *manual = due_clock_manual(1000);
    cr_assert_eq(due__clock_init(&clock, DUE_CLOCK_MONOTONIC, manual), 0);
    cr_expect(due__clock_passed(&clock, 1000));
    cr_expect_not(due__clock_passed(&clock, 1001));
    cr_expect_eq(due_clock_free(manual), 0);
}

/* The monotonic clock stood still meanwhile, and so did what the kernel notes of it. */
Test(time, has_passed_where_the_machine_was_suspended)
{
    struct due__clock clock;

    cr_assert_eq(due__clock_init(&clock, DUE_CLOCK_BOOTTIME, NULL), 0);
    int64_t now = due__clock_now(&clock);
    cr_expect_not(due__clock_passed(&clock, now + DUE_S(3600)));
    boottime_ahead_s = 3600;
    cr_expect(due__clock_passed(&clock, now + DUE_S(3600)));
}

Test(time, that_is_far_is_told_by_the_note_alone)
{
    static const enum due_clock_kind kinds[] = { DUE_CLOCK_MONOTONIC, DUE_CLOCK_REALTIME };
    struct due__clock clock;

    for (size_t i = 0; i < 2; i++) {
        cr_assert_eq(due__clock_init(&clock, kinds[i], NULL), 0);
        int64_t now = due__clock_now(&clock);
        exact_reads = 0;
        bool far = due__clock_passed(&clock, now + DUE_S(60));
        unsigned reads = exact_reads;
        cr_expect_not(far);
        cr_expect_eq(reads, 0u, "clock %zu was read", i);
    }
}

LAB_TEST(manual_clock, cannot_be_freed_while_a_queue_is_on_it)
{
    due_clock *clock = due_clock_manual(0);
    struct lab lab = lab_open(.clock = clock);

    cr_expect_eq(due_clock_free(clock), DUE_EBUSY);
    lab_close(&lab);
    cr_expect_eq(due_clock_free(clock), 0);
    cr_expect_eq(due_clock_free(NULL), 0);
}

LAB_TEST(manual_clock, serves_several_queues)
{
    due_clock *clock = due_clock_manual(0);
    struct lab one = lab_open(.clock = clock);
    struct lab two = lab_open(.clock = clock);
    struct crew_call call;

    lab_enqueue(&one, "one", .at_ns = 10);
    lab_enqueue(&two, "two", .at_ns = 10);
    crew_call_dequeue(&call, two.q, DUE_FOREVER);
    crew_call_asleep(&call);
    cr_expect_eq(due_clock_turn_to(clock, 10), 0);
    cr_expect_str_eq(lab_dequeue(&one), "one");
    cr_assert_eq(crew_call_answer(&call), 0);
    cr_expect_str_eq(lab_text(&two, &call.job), "two");
    lab_close(&one);
    cr_expect_eq(due_clock_turn_to(clock, 20), 0);
    lab_close(&two);
    cr_expect_eq(due_clock_free(clock), 0);
}

LAB_TEST(manual_clock, is_what_due_now_shows)
{
    struct lab lab = lab_open(.start_ns = 77);

    cr_expect_eq(due_now(lab.q), 77);
    lab_advance(&lab, 3);
    cr_expect_eq(due_now(lab.q), 80);
    lab_close(&lab);
}

LAB_TEST(manual_clock, that_jumps_far_moves_everything_that_was_passed)
{
    struct lab lab = lab_open();

    for (int i = 0; i < 10000; i++)
        lab_enqueue(&lab, NULL, .at_ns = 1 + (int64_t)i * DUE_S(1000));
    lab_turn_to(&lab, DUE_FOREVER);
    cr_expect_eq(lab_stats(&lab).ready, 10000u);
    lab_close(&lab);
}

/* ---- The kernel's clocks ---- */

static const struct {
    enum due_clock_kind kind;
    clockid_t id;
} kernel_clocks[] = {
    { DUE_CLOCK_MONOTONIC, CLOCK_MONOTONIC },
    { DUE_CLOCK_BOOTTIME, CLOCK_BOOTTIME },
    { DUE_CLOCK_REALTIME, CLOCK_REALTIME },
};

#define CLOCKS (sizeof kernel_clocks / sizeof kernel_clocks[0])

static int64_t now_on(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

LAB_TEST(kernel_clock, is_what_due_now_shows)
{
    for (size_t i = 0; i < CLOCKS; i++) {
        struct lab lab = lab_open(.kernel = true, .with.clock = kernel_clocks[i].kind);
        int64_t before = now_on(kernel_clocks[i].id);
        int64_t now = due_now(lab.q);

        cr_expect_leq(before, now, "clock %zu", i);
        cr_expect_leq(now, now_on(kernel_clocks[i].id), "clock %zu", i);
        lab_close(&lab);
    }
}

/* The original's second defect, on the real clocks: never early by 1 ns */
LAB_TEST(kernel_clock, never_hands_a_job_out_early)
{
    enum { JOBS = 40 };

    for (size_t i = 0; i < CLOCKS; i++) {
        struct lab lab = lab_open(.kernel = true, .with.clock = kernel_clocks[i].kind);
        uint64_t seed = 7 + i;
        due_job job;

        for (int k = 0; k < JOBS; k++)
            lab_enqueue(&lab, NULL, .delay_ns = 1 + (int64_t)crew_below(&seed, 40000000));
        for (int k = 0; k < JOBS; k++) {
            cr_assert_eq(due_dequeue(lab.q, &job, DUE_S(30)), 0);
            int64_t now = now_on(kernel_clocks[i].id);
            cr_expect_geq(now, job.deadline_ns, "clock %zu: early by %jd ns", i,
                          (intmax_t)(job.deadline_ns - now));
            cr_expect_geq(job.lateness_ns, 0);
            due_job_done(&job);
        }
        lab_close(&lab);
    }
}

LAB_TEST(kernel_clock, hands_a_job_out_at_an_absolute_time)
{
    for (size_t i = 0; i < CLOCKS; i++) {
        struct lab lab = lab_open(.kernel = true, .with.clock = kernel_clocks[i].kind);
        int64_t at = now_on(kernel_clocks[i].id) + DUE_MS(15);
        due_job job;

        lab_enqueue(&lab, NULL, .at_ns = at);
        cr_assert_eq(due_dequeue(lab.q, &job, DUE_S(30)), 0);
        cr_expect_eq(job.deadline_ns, at);
        cr_expect_geq(now_on(kernel_clocks[i].id), at);
        due_job_done(&job);
        lab_close(&lab);
    }
}

LAB_TEST(kernel_clock, counts_timeouts_in_real_time_whatever_it_is)
{
    for (size_t i = 0; i < CLOCKS; i++) {
        struct lab lab = lab_open(.kernel = true, .with.clock = kernel_clocks[i].kind);
        int64_t begin = crew_now_ns();
        due_job job;

        lab_enqueue(&lab, NULL, .at_ns = DUE_FOREVER);
        cr_expect_eq(due_dequeue(lab.q, &job, DUE_MS(10)), DUE_ETIMEDOUT);
        cr_expect_geq(crew_now_ns() - begin, DUE_MS(10), "clock %zu", i);
        lab_close(&lab);
    }
}

LAB_TEST(kernel_clock, wakes_a_consumer_for_an_earlier_job)
{
    for (size_t i = 0; i < CLOCKS; i++) {
        struct lab lab = lab_open(.kernel = true, .with.clock = kernel_clocks[i].kind);
        struct crew_call call;

        lab_enqueue(&lab, "late", .delay_ns = DUE_S(100));
        crew_call_dequeue(&call, lab.q, DUE_FOREVER);
        crew_call_asleep(&call);
        lab_enqueue(&lab, "early", .delay_ns = DUE_MS(5));
        cr_assert_eq(crew_call_answer(&call), 0);
        cr_expect_str_eq(lab_text(&lab, &call.job), "early");
        lab_close(&lab);
    }
}

/* Spinning is for lateness, not for earliness. */
LAB_TEST(kernel_clock, is_never_early_when_it_spins)
{
    struct lab lab = lab_open(.kernel = true, .with.spin_ns = DUE_US(200));
    due_job job;

    for (int k = 0; k < 20; k++) {
        lab_enqueue(&lab, NULL, .delay_ns = DUE_US(100) + k * DUE_US(50));
        cr_assert_eq(due_dequeue(lab.q, &job, DUE_S(30)), 0);
        cr_expect_geq(crew_now_ns(), job.deadline_ns);
        due_job_done(&job);
    }
    lab_close(&lab);
}
