/* Signals as something to wait for. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/crew.h"
#include "due/signals.h"

static bool blocked(int number)
{
    sigset_t set;

    pthread_sigmask(SIG_SETMASK, NULL, &set);
    return sigismember(&set, number);
}

Test(signals, what_arrives_is_waited_for_instead_of_ending_the_process, .timeout = 10)
{
    due_signals *s;

    cr_assert_eq(due_signals_open(&s, (const int[]){ SIGTERM, SIGUSR1 }, 2), 0);
    struct pollfd ready = { .fd = due_signals_fd(s), .events = POLLIN };
    cr_expect_eq(poll(&ready, 1, 0), 0);
    cr_expect_eq(due_signals_wait(s, 0), DUE_EAGAIN);
    cr_expect_eq(due_signals_wait(s, DUE_MS(1)), DUE_ETIMEDOUT);
    kill(getpid(), SIGTERM);
    cr_expect_eq(poll(&ready, 1, 0), 1);
    cr_expect_eq(due_signals_wait(s, DUE_FOREVER), SIGTERM);
    kill(getpid(), SIGUSR1);
    cr_expect_eq(due_signals_wait(s, 0), SIGUSR1);
    cr_expect_eq(due_signals_wait(s, 0), DUE_EAGAIN);
    due_signals_close(s);
}

/* What lay where the call has its own variables is nothing to it. */
static __attribute__((noinline)) void fill_stack(void)
{
    volatile unsigned char bytes[4096];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = 0xff;
}

Test(signals, others_than_those_asked_for_are_not_waited_for, .timeout = 10)
{
    due_signals *s;

    fill_stack();
    cr_assert_eq(due_signals_open(&s, (const int[]){ SIGTERM }, 1), 0);
    for (int number = 1; number <= SIGTERM; number++)
        cr_expect_eq(blocked(number), number == SIGTERM, "signal %d", number);
    due_signals_close(s);
    for (int number = 1; number <= SIGTERM; number++)
        cr_expect_not(blocked(number), "signal %d", number);
}

/* Its descriptor too: a program may open and close them as often as it likes. */
Test(signals, leave_nothing_behind_when_they_are_closed, .timeout = 10)
{
    int first = -1;

    for (int i = 0; i < 3; i++) {
        due_signals *s;

        cr_assert_eq(due_signals_open(&s, (const int[]){ SIGTERM }, 1), 0);
        int fd = due_signals_fd(s);
        cr_expect(first < 0 || fd == first, "the last one is open still");
        first = fd;
        cr_expect_neq(fcntl(fd, F_GETFD), -1);
        due_signals_close(s);
        cr_expect_eq(fcntl(fd, F_GETFD), -1);
        cr_expect_eq(errno, EBADF);
        cr_expect_not(blocked(SIGTERM));
    }
}

static int wait_for_it(void *s)
{
    return due_signals_wait(s, DUE_FOREVER);
}

Test(signals, who_waits_is_woken, .timeout = 10)
{
    struct crew_thread waiter;
    due_signals *s;

    cr_assert_eq(due_signals_open(&s, (const int[]){ SIGTERM }, 1), 0);
    crew_go(&waiter, wait_for_it, s);
    crew_until_asleep(&waiter);
    kill(getpid(), SIGTERM);
    cr_expect_eq(crew_join(&waiter), SIGTERM);
    due_signals_close(s);
}

Test(signals, only_what_was_asked_for_is_blocked_and_only_that_is_unblocked, .timeout = 10)
{
    struct sigaction before;
    struct sigaction after;
    due_signals *s;
    sigset_t own;

    sigemptyset(&own);
    sigaddset(&own, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &own, NULL);
    sigaction(SIGUSR1, NULL, &before);
    cr_assert_eq(due_signals_open(&s, (const int[]){ SIGUSR1, SIGUSR2 }, 2), 0);
    cr_expect(blocked(SIGUSR1));
    cr_expect(blocked(SIGUSR2));
    cr_expect(!blocked(SIGHUP));
    sigaction(SIGUSR1, NULL, &after);
    cr_expect(before.sa_handler == after.sa_handler, "a disposition was changed");
    due_signals_close(s);
    cr_expect(!blocked(SIGUSR1));
    cr_expect(blocked(SIGUSR2), "it was blocked before");
}

Test(signals, what_was_not_taken_does_what_it_does_by_default, .timeout = 10)
{
    int status;
    pid_t pid = fork();

    cr_assert_geq(pid, 0);
    if (pid == 0) {
        due_signals *s;

        signal(SIGTERM, SIG_DFL);
        if (due_signals_open(&s, (const int[]){ SIGTERM }, 1) != 0)
            _exit(1);
        kill(getpid(), SIGTERM);
        due_signals_close(s);
        _exit(2);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "%d", status);
}

static bool no_descriptors;

int signalfd(int fd, const sigset_t *mask, int flags)
{
    if (!no_descriptors)
        return (int)syscall(SYS_signalfd4, fd, mask, (size_t)_NSIG / 8, flags);
    errno = EMFILE;
    return -1;
}

#ifdef __GLIBC__ /* musl does not say how much is out */
Test(signals, without_a_descriptor_nothing_has_happened)
{
    due_signals *s;
    int refused = 0;

    no_descriptors = true;
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 100; i++)
        refused += due_signals_open(&s, (const int[]){ SIGTERM }, 1) == DUE_ESYS;
    size_t after = mallinfo2().uordblks;
    cr_expect_eq(refused, 100);
    cr_expect_lt(after - before, 3000u, "%zu bytes did not go back", after - before);
    cr_expect(!blocked(SIGTERM));
    cr_expect_null(s);
}
#endif

Test(signals, what_makes_no_sense_is_refused)
{
    due_signals *s = NULL;

    cr_expect_eq(due_signals_open(&s, (const int[]){ SIGTERM }, 0), DUE_EINVAL);
    cr_expect_eq(due_signals_open(&s, (const int[]){ SIGTERM, SIGKILL }, 2), DUE_EINVAL);
    cr_expect_eq(due_signals_open(&s, (const int[]){ SIGSTOP }, 1), DUE_EINVAL);
    cr_expect_eq(due_signals_open(&s, (const int[]){ 4711 }, 1), DUE_EINVAL);
    cr_expect_eq(due_signals_open(&s, (const int[]){ -1 }, 1), DUE_EINVAL);
    cr_expect(!blocked(SIGTERM), "a call that fails has changed nothing");
    cr_expect_null(s);
    due_signals_close(NULL);
    cr_assert_eq(due_signals_open(&s, (const int[]){ SIGTERM }, 1), 0);
    cr_expect_eq(due_signals_wait(s, -1), DUE_EINVAL);
    due_signals_close(s);
}
