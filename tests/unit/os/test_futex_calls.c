/* What the kernel is asked for by who sleeps, who wakes, and who passes a fence for all threads,
 * and what follows from each of its answers.  Its calls go through syscall() and prctl(), which
 * stand here. */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "due/due.h"
#include "lab/kernel_call.h"
#include "os/clock.h"
#include "os/futex.h"

#ifdef SYS_futex_time64
#define FUTEX SYS_futex_time64
#else
#define FUTEX SYS_futex
#endif
#define FUTEX2_WAIT 455

enum { MOST = 16 };

struct called {
    long number;
    long argument[6];
};

static struct called called[MOST];
static size_t calls;
static const int *answers; /* an errno or 0 for each of them, as long as there are some */
static size_t answers_left;
static int slack_is = -1; /* of the thread; -1: the kernel says */
static long slack_set[MOST];
static size_t slacks;

__attribute__((no_sanitize_address)) long syscall(long number, ...)
{
    long a[6];
    va_list list;

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    bool ours = number == SYS_membarrier || number == FUTEX || number == FUTEX2_WAIT;
    if (!ours || answers_left == 0)
        return kernel_call(number, a);
    called[calls].number = number;
    memcpy(called[calls++].argument, a, sizeof a);
    answers_left--;
    errno = *answers;
    return *answers++ == 0 ? 0 : -1;
}

__attribute__((no_sanitize_address)) int prctl(int option, ...)
{
    va_list list;

    va_start(list, option);
    unsigned long value = va_arg(list, unsigned long);
    va_end(list);
    if (slack_is >= 0 && option == PR_GET_TIMERSLACK)
        return slack_is;
    if (option == PR_SET_TIMERSLACK)
        slack_set[slacks++] = (long)value;
    return (int)kernel_call(SYS_prctl, (const long[6]){ option, (long)value });
}

static void answer(const int *with, size_t n)
{
    answers = with;
    answers_left = n;
    calls = slacks = 0;
}

#define ANSWER(...) \
    answer((const int[]){ __VA_ARGS__ }, sizeof((int[]){ __VA_ARGS__ }) / sizeof(int))

static void expect_call(size_t i, long number, size_t n, const long *argument)
{
    cr_assert_lt(i, calls);
    cr_expect_eq(called[i].number, number, "call %zu is %ld", i, called[i].number);
    for (size_t k = 0; k < n; k++)
        cr_expect_eq(called[i].argument[k], argument[k], "call %zu, argument %zu: %ld", i, k,
                     called[i].argument[k]);
}

static void expect_barrier(size_t i, long command)
{
    const long argument[] = { command, 0 };

    expect_call(i, SYS_membarrier, 2, argument);
}

/* ---- Fences ---- */

Test(futex_calls, a_fence_is_one_call_where_it_is_registered, .timeout = 10)
{
    ANSWER(0, ENOSYS, ENOSYS);
    due__threads_fence();
    cr_expect_eq(calls, 1u);
    expect_barrier(0, MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    answers_left = 0;
}

Test(futex_calls, a_fence_is_registered_again_where_it_is_not_any_more, .timeout = 10)
{
    ANSWER(EPERM, 0, 0, ENOSYS);
    due__threads_fence();
    cr_expect_eq(calls, 3u);
    expect_barrier(0, MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    expect_barrier(1, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
    expect_barrier(2, MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    answers_left = 0;
}

/* Then a millisecond passes. */
Test(futex_calls, a_fence_that_is_refused_is_waited_for, .timeout = 10)
{
    int64_t before = due__monotonic_now();

    ANSWER(EPERM, EPERM, EPERM);
    due__threads_fence();
    cr_expect_eq(calls, 3u);
    cr_expect_geq(due__monotonic_now() - before, DUE_MS(1));
}

Test(futex_calls, a_fence_is_registered_once, .timeout = 10)
{
    ANSWER(0, ENOSYS);
    cr_expect(due__threads_fence_ready());
    cr_expect(due__threads_fence_ready());
    cr_expect_eq(calls, 1u);
    expect_barrier(0, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
    answers_left = 0;
}

Test(futex_calls, a_fence_that_the_kernel_does_not_have_is_asked_for_once, .timeout = 10)
{
    ANSWER(ENOSYS, 0);
    cr_expect_not(due__threads_fence_ready());
    cr_expect_not(due__threads_fence_ready());
    cr_expect_eq(calls, 1u);
    answers_left = 0;
}

/* ---- Sleeping and waking ---- */

#ifndef DUE_BELL_COND

static const uint32_t word = 7;

static void expect_wait(size_t i, bool limited)
{
    const long argument[] = { (long)&word, FUTEX_WAIT_BITSET_PRIVATE, 7 };

    expect_call(i, FUTEX, 3, argument);
    cr_expect_eq(called[i].argument[3] != 0, limited);
    cr_expect_eq((uint32_t)called[i].argument[5], FUTEX_BITSET_MATCH_ANY);
}

Test(futex_calls, who_wakes_wakes_one, .timeout = 10)
{
    const long argument[] = { (long)&word, FUTEX_WAKE_PRIVATE, 1 };

    ANSWER(0);
    due__futex_wake(&word);
    expect_call(0, FUTEX, 3, argument);
}

Test(futex_calls, who_sleeps_without_a_limit_or_inexactly_makes_one_call, .timeout = 10)
{
    for (int precise = 0; precise < 2; precise++) {
        ANSWER(0, ENOSYS);
        due__futex_wait(&word, 7, DUE_FOREVER, precise);
        cr_expect_eq(calls, 1u);
        expect_wait(0, false);
    }
    ANSWER(0, ENOSYS);
    due__futex_wait(&word, 7, DUE_S(5), false);
    cr_expect_eq(calls, 1u);
    expect_wait(0, true);
    cr_expect_eq(slacks, 0u);
    answers_left = 0;
}

/* Since Linux 6.7 in one call.  Where it is refused his slack is set for the while, and that call
 * is not tried again. */
Test(futex_calls, who_sleeps_exactly_is_not_late_by_his_slack, .timeout = 10)
{
    static const int over[] = { 0, ETIMEDOUT, EAGAIN, EINTR };

    slack_is = 50000;
    for (size_t i = 0; i < sizeof over / sizeof *over; i++) {
        ANSWER(over[i], EFAULT);
        due__futex_wait(&word, 7, DUE_S(5), true);
        if (called[0].number != FUTEX2_WAIT)
            cr_skip_test("built where there is no such call");
        cr_expect_eq(calls, 1u, "%s", strerror(over[i]));
        cr_expect_eq(called[0].argument[0], (long)&word);
        cr_expect_eq(called[0].argument[1], 7);
        cr_expect_eq((uint32_t)called[0].argument[2], FUTEX_BITSET_MATCH_ANY);
        cr_expect_eq(slacks, 0u);
    }
    ANSWER(ENOSYS, ETIMEDOUT);
    due__futex_wait(&word, 7, DUE_S(5), true);
    cr_expect_eq(calls, 2u);
    expect_wait(1, true);
    cr_expect_eq(slacks, 2u);
    cr_expect_eq(slack_set[0], 1);
    cr_expect_eq(slack_set[1], 50000);
    ANSWER(ETIMEDOUT, EFAULT);
    due__futex_wait(&word, 7, DUE_S(5), true);
    cr_expect_eq(calls, 1u);
    expect_wait(0, true);
    cr_expect_eq(slacks, 2u);
    answers_left = 0;
}

/* ---- Slack ---- */

Test(futex_calls, a_slack_is_set_and_restored_only_where_there_is_one, .timeout = 10)
{
    static const int rows[] = { 0, 1, 2, 50000 };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool there = rows[i] > 1;

        slack_is = rows[i];
        slacks = 0;
        long before = due__slack_tighten();
        cr_expect_eq(slacks, (size_t)there, "%d", rows[i]);
        cr_expect_eq(before > 0, there, "%d: %ld", rows[i], before);
        cr_expect(!there || (before == rows[i] && slack_set[0] == 1));
        due__slack_restore(before);
        cr_expect_eq(slacks, (size_t)(2 * there), "%d", rows[i]);
        cr_expect(!there || slack_set[1] == rows[i]);
    }
}

#endif
