/* test_clock_steps.c - the wall clock is set while jobs wait.  (C2)
 *
 * The program's own clock_gettime() stands before the C library's and adds a step to the realtime
 * clock.  The kernel's timers do not know of it, so only what does not sleep is tested here.
 */
#include <criterion/criterion.h>

#include <poll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "queue/queue.h"
#include "due/workers.h"
#include "lab/kernel_time.h"
#include "lab/memory_store.h"
#include "lab/take.h"

static _Atomic int64_t step_s;     /* the threads of a stored queue read it too */
static _Atomic int64_t stopped_ns; /* the realtime clock stands here; 0: it goes */

int clock_gettime(clockid_t id, struct timespec *t)
{
    int rc = (int)syscall(KERNEL_CLOCK_GETTIME, id, t);

    if (rc == 0 && id == CLOCK_REALTIME)
        t->tv_sec += step_s;
    if (rc == 0 && id == CLOCK_REALTIME && stopped_ns != 0) {
        t->tv_sec = stopped_ns / DUE_S(1);
        t->tv_nsec = (long)(stopped_ns % DUE_S(1));
    }
    return rc;
}

static _Atomic int stepped_fd = -1; /* a timer that is set as if the kernel knew of the step */

int timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *was)
{
    struct itimerspec shifted = *at;

    if (fd == stepped_fd && at->it_value.tv_sec > step_s)
        shifted.it_value.tv_sec -= step_s;
    return (int)syscall(KERNEL_TIMERFD_SETTIME, fd, flags, &shifted, was);
}

static due_queue *open_on(enum due_clock_kind clock)
{
    due_options options = { DUE_OPTIONS_INIT, .clock = clock, .proxies = DUE_PROXIES_NEVER };
    due_queue *q = NULL;

    cr_assert_eq(due_open(&q, &options, NULL), 0);
    return q;
}

static void shut(due_queue *q)
{
    step_s = 0;
    cr_assert_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(10)), 0);
    cr_assert_eq(due_free(q), 0);
}

static void put(due_queue *q, int64_t at_ns, int64_t delay_ns)
{
    due_spec spec = { DUE_SPEC_INIT, .at_ns = at_ns, .delay_ns = delay_ns };

    cr_assert_eq(due_enqueue(q, &spec, 0, NULL), 0);
}

static int take(due_queue *q, due_job *job)
{
    int rc = due_dequeue(q, job, 0);

    if (rc == 0)
        due_job_done(job);
    return rc;
}

Test(clock_step, forward_fires_what_it_passed, .timeout = 20)
{
    due_queue *q = open_on(DUE_CLOCK_REALTIME);
    due_job job;

    put(q, due_now(q) + DUE_S(3600), 0);
    cr_expect_eq(take(q, &job), DUE_EAGAIN);
    step_s = 3601;
    cr_expect_eq(take(q, &job), 0);
    shut(q);
}

Test(clock_step, back_waits_on, .timeout = 20)
{
    due_queue *q = open_on(DUE_CLOCK_REALTIME);
    due_job job;

    step_s = 7200;
    put(q, 0, 0); /* everything up to two hours ahead has been moved */
    cr_expect_eq(take(q, &job), 0);
    step_s = 0;
    put(q, due_now(q) + DUE_S(3600), 0);
    cr_expect_eq(take(q, &job), DUE_EAGAIN, "due by the clock as it was, not as it is");
    step_s = 3601;
    cr_expect_eq(take(q, &job), 0);
    shut(q);
}

Test(clock_step, back_leaves_a_job_without_delay_due_at_once, .timeout = 20)
{
    due_queue *q = open_on(DUE_CLOCK_REALTIME);
    due_job job;

    step_s = 10 * 365 * 86400;
    put(q, 0, 0);
    cr_expect_eq(take(q, &job), 0);
    step_s = 0;
    put(q, 0, 0);
    cr_assert_eq(due_dequeue(q, &job, 0), 0);
    cr_expect_leq(job.deadline_ns, due_now(q));
    due_job_done(&job);
    shut(q);
}

static bool readable(int fd, int wait_ms)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, wait_ms) == 1;
}

/* The time was reached and, by the clock as it is now, was not: it is waited for once more, to the
 * same deadline, or who polls would be called for nothing until then. */
Test(clock_step, back_sets_the_descriptor_anew, .timeout = 20)
{
    due_queue *q = open_on(DUE_CLOCK_REALTIME);
    due_job job;

    int fd = due_fd(q);
    stepped_fd = fd;
    cr_assert_geq(fd, 0);
    put(q, due_now(q) + DUE_MS(20), 0);
    cr_expect(readable(fd, 10000));
    step_s = -2;
    cr_expect_eq(take(q, &job), DUE_EAGAIN);
    cr_expect_not(readable(fd, 0), "nothing is due for two seconds");
    step_s = 3600;
    put(q, due_now(q) + DUE_S(3600), 0); /* somebody comes, as the kernel's timer did not step */
    cr_expect(readable(fd, 10000));
    cr_expect_eq(take(q, &job), 0);
    cr_expect_eq(take(q, &job), DUE_EAGAIN);
    cr_expect_not(readable(fd, 0));
    stepped_fd = -1;
    shut(q);
}

/* A tenure moves some of those that are due, and the clock is set back to just before that: what
 * stands before the next of them, in their order, has not been moved with them. */
Test(clock_step, back_by_a_nanosecond_shows_no_job_early, .timeout = 20)
{
    due_queue *q = open_on(DUE_CLOCK_REALTIME);
    int64_t at = due_now(q) + DUE_S(3600);
    due_spec urgent = { DUE_SPEC_INIT, .at_ns = at, .priority = 1,
                        .topic = due_topic(q, "urgent") };
    due_spec far = { DUE_SPEC_INIT, .at_ns = at + DUE_S(1) };
    due_id id;
    due_job job;

    for (unsigned i = 0; i < 10 * DUE__MOVES_MAX; i++)
        put(q, at, 0);
    cr_assert_eq(due_enqueue(q, &far, 0, &id), 0);
    stopped_ns = at;
    cr_assert_eq(due_reschedule(q, id, at + DUE_S(2)), 0);
    stopped_ns = at - 1;
    cr_assert_eq(due_enqueue(q, &urgent, 0, NULL), 0);
    cr_expect_eq(take_from(q, &urgent.topic, 1, &job, 0), DUE_EAGAIN, "early by 1 ns");
    stopped_ns = at;
    cr_expect_eq(take_from(q, &urgent.topic, 1, &job, 0), 0);
    due_job_done(&job);
    stopped_ns = 0;
    shut(q);
}

Test(clock_step, does_not_move_a_monotonic_queue, .timeout = 20)
{
    due_queue *q = open_on(DUE_CLOCK_MONOTONIC);
    due_job job;

    put(q, 0, DUE_S(3600));
    step_s = 10 * 365 * 86400;
    cr_expect_eq(take(q, &job), DUE_EAGAIN);
    step_s = -step_s;
    put(q, 0, 0);
    cr_expect_eq(take(q, &job), 0);
    shut(q);
}

/* They are on the wall clock too: they end while their holders are at work, and what those answer
 * then changes nothing. */
Test(clock_step, forward_ends_the_leases_of_a_stored_queue, .timeout = 20)
{
    struct memory_disk *disk = memory_disk_new(NULL);
    due_options options = { DUE_OPTIONS_INIT, .store = memory_store_new(disk) };
    due_queue *q = NULL;
    due_job first = { 0 };
    due_job second = { 0 };

    cr_assert_eq(due_open(&q, &options, NULL), 0);
    put(q, 0, 0);
    cr_assert_eq(take_leased(q, &first, DUE_S(30), DUE_S(5)), 0);
    cr_expect_eq(take_leased(q, &second, DUE_S(30), 0), DUE_EAGAIN);
    cr_expect_eq(due_job_stopping(&first), 0);
    step_s = 31;
    cr_expect_eq(due_job_stopping(&first), 1);
    cr_assert_eq(take_leased(q, &second, DUE_S(30), 0), 0);
    cr_expect_eq(second.failures, 1u);
    cr_expect_eq(due_ack(&first), DUE_ESTALE);
    step_s = 0; /* set back: the second lease lasts so much longer */
    cr_expect_eq(due_job_stopping(&second), 0);
    cr_expect_eq(due_ack(&second), 0);
    cr_expect_eq(memory_disk_jobs(disk), 0u);
    shut(q);
    cr_expect_null(memory_disk_wrong(disk));
    memory_disk_free(disk);
}
