/* What a library must leave alone: timer slack, cancellation, signals, the rest of the process. */
#include "lab/lab.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lab/forbid.h"

/* C10: a caller that leads sets its timer slack, and must give it back */
LAB_TEST(platform, timer_slack_of_a_caller_is_as_it_was)
{
    static const enum due_clock_kind kinds[] = { DUE_CLOCK_MONOTONIC, DUE_CLOCK_BOOTTIME,
                                                 DUE_CLOCK_REALTIME };

    cr_assert_eq(prctl(PR_SET_TIMERSLACK, 77777UL), 0);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct lab lab = lab_open(.kernel = true, .with.clock = kinds[i]);
        due_job job;

        lab_enqueue(&lab, "job", .delay_ns = DUE_MS(5));
        cr_assert_eq(due_dequeue(lab.q, &job, DUE_S(20)), 0);
        due_job_done(&job);
        cr_expect_eq(prctl(PR_GET_TIMERSLACK), 77777, "clock %zu", i);
        lab_enqueue(&lab, "never", .at_ns = DUE_FOREVER);
        cr_expect_eq(due_dequeue(lab.q, &job, DUE_MS(2)), DUE_ETIMEDOUT);
        cr_expect_eq(prctl(PR_GET_TIMERSLACK), 77777, "clock %zu", i);
        lab_close(&lab);
    }
}

#define FUTEX_WAIT_CALL 455 /* of Linux 6.7, the same on every machine */

/* From now on the kernel of this process is an older one: it has no futex_wait. */
static bool without_futex_wait(void)
{
    if (!forbid(FUTEX_WAIT_CALL, ENOSYS))
        return false;
    return syscall(FUTEX_WAIT_CALL, NULL, 0, 0, 0, NULL, 0) == -1 && errno == ENOSYS;
}

static int64_t processor_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * DUE_S(1) + t.tv_nsec;
}

LAB_TEST(platform, timed_sleep_of_an_older_kernel_sleeps_and_gives_the_slack_back)
{
    if (!without_futex_wait())
        cr_skip("system calls cannot be filtered here");
    cr_assert_eq(prctl(PR_SET_TIMERSLACK, 77777UL), 0);
    struct lab lab = lab_open(.kernel = true);
    int64_t before = processor_ns();
    due_job job;

    lab_enqueue(&lab, "job", .delay_ns = DUE_MS(400));
    cr_assert_eq(due_dequeue(lab.q, &job, DUE_S(20)), 0);
    cr_expect_geq(job.lateness_ns, 0);
    due_job_done(&job);
    cr_expect_lt(processor_ns() - before, DUE_MS(200), "it does not sleep");
    cr_expect_eq(prctl(PR_GET_TIMERSLACK), 77777);
    lab_close(&lab);
}

LAB_TEST(platform, errno_of_a_caller_is_no_channel)
{
    struct lab lab = lab_open(.kernel = true);
    due_job job;

    lab_enqueue(&lab, "job", .delay_ns = DUE_MS(1));
    cr_assert_eq(due_dequeue(lab.q, &job, DUE_S(20)), 0, "with any errno");
    due_job_done(&job);
    errno = EINTR;
    lab_enqueue(&lab, "job", .delay_ns = 0);
    cr_assert_eq(due_dequeue(lab.q, &job, DUE_S(20)), 0);
    due_job_done(&job);
    lab_close(&lab);
}

LAB_TEST(platform, signal_dispositions_are_not_touched)
{
    struct sigaction before[32];
    struct sigaction after;

    for (int i = 1; i < 32; i++)
        sigaction(i, NULL, &before[i]);
    struct lab lab = lab_open();
    lab_enqueue(&lab, "job", .delay_ns = 0);
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    lab_close(&lab);
    for (int i = 1; i < 32; i++) {
        sigaction(i, NULL, &after);
        cr_expect(before[i].sa_handler == after.sa_handler, "signal %d", i);
    }
}

LAB_TEST(platform, random_numbers_and_locale_are_not_touched)
{
    srand(42);
    int expected = rand();
    const char *locale = setlocale(LC_ALL, NULL);
    char before[64];

    strncpy(before, locale, sizeof before - 1);
    before[sizeof before - 1] = '\0';
    srand(42);
    struct lab lab = lab_open();
    lab_enqueue(&lab, "job", .delay_ns = 0);
    lab_close(&lab);
    cr_expect_eq(rand(), expected);
    cr_expect_str_eq(setlocale(LC_ALL, NULL), before);
}

/* ---- D4: no verb is a point of thread cancellation ---- */

struct doomed {
    struct lab *lab;
    due_job job;
    atomic_int tid;
    atomic_int rc;
    atomic_bool ended;
};

static int wait_and_be_cancelled(void *arg)
{
    struct doomed *doomed = arg;

    atomic_store(&doomed->rc, due_dequeue(doomed->lab->q, &doomed->job, DUE_FOREVER));
    atomic_store(&doomed->ended, true);
    pthread_testcancel();
    return 1;
}

LAB_TEST(platform, thread_cancellation_waits_until_the_verb_is_over)
{
    struct lab lab = lab_open();
    struct doomed doomed = { .lab = &lab };
    struct crew_thread thread;

    crew_go(&thread, wait_and_be_cancelled, &doomed);
    crew_until_asleep(&thread);
    cr_assert_eq(pthread_cancel(thread.id), 0);
    crew_until_asleep(&thread);
    cr_expect_not(atomic_load(&doomed.ended));
    lab_enqueue(&lab, "job", .delay_ns = 0);
    pthread_join(thread.id, NULL);
    cr_expect(atomic_load(&doomed.ended), "it was cancelled inside the verb");
    cr_assert_eq(atomic_load(&doomed.rc), 0);
    cr_expect_str_eq(lab_text(&lab, &doomed.job), "job");
    lab_close(&lab);
}

static int wait_for_room_and_be_cancelled(void *arg)
{
    struct doomed *doomed = arg;
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = 5 };

    atomic_store(&doomed->rc, due_enqueue(doomed->lab->q, &spec, DUE_FOREVER, NULL));
    atomic_store(&doomed->ended, true);
    pthread_testcancel();
    return 1;
}

LAB_TEST(platform, thread_cancellation_does_not_lose_room)
{
    struct lab lab = lab_open(.with.capacity = 1);
    struct doomed doomed = { .lab = &lab };
    struct crew_thread thread;

    lab_enqueue(&lab, "in the way", .delay_ns = 0);
    crew_go(&thread, wait_for_room_and_be_cancelled, &doomed);
    crew_until_asleep(&thread);
    cr_assert_eq(pthread_cancel(thread.id), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "in the way");
    pthread_join(thread.id, NULL);
    cr_expect(atomic_load(&doomed.ended));
    cr_expect_eq(atomic_load(&doomed.rc), 0);
    cr_expect_eq(lab_stats(&lab).waiting, 1u);
    lab_close(&lab);
}
