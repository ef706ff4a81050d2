/* The descriptor for event loops. */
#include "lab/lab.h"

#include "os/atomic.h"
#include "queue/queue.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

static bool readable(int fd, int wait_ms)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, wait_ms) == 1 && (p.revents & POLLIN) != 0;
}

static int fd_of(struct lab *lab)
{
    int fd = due_fd(lab->q);

    cr_assert_geq(fd, 0, "%s", due_error_name(fd));
    return fd;
}

/* Take until there is nothing, as the contract says; how many there were. */
static int take_all(struct lab *lab)
{
    int n = 0;

    while (lab_dequeue(lab) != NULL)
        n++;
    return n;
}

LAB_TEST(fd, is_always_the_same_and_not_inherited)
{
    struct lab lab = lab_open();
    int fd = fd_of(&lab);

    cr_expect_eq(fd_of(&lab), fd);
    cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    lab_close(&lab);
}

/* Of a program that has closed its standard input.  No other can be had. */
LAB_TEST(fd, may_be_the_first_of_all)
{
    struct lab lab = lab_open();
    struct rlimit limit;

    close(0);
    cr_assert_eq(fd_of(&lab), 0);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 1;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    int again = due_fd(lab.q);
    limit.rlim_cur = before;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_expect_eq(again, 0, "%d", again);
    lab_enqueue(&lab, "job", .delay_ns = 0);
    cr_expect(readable(0, 5000));
    lab_close(&lab);
    cr_expect_eq(fcntl(0, F_GETFD), -1, "it is still open");
}

static unsigned descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    cr_assert_not_null(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

/* In a thread that was cancelled: the call is no point of that. */
static int ask(void *q)
{
    int cancel;

    pthread_cancel(pthread_self());
    int fd = due_fd(q);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    return fd;
}

/* The other has made one too, but has the lock first. */
LAB_TEST(fd, is_that_of_who_asked_first)
{
    struct lab lab = lab_open();
    struct crew_thread second;

    close(0);
    due__lock_acquire(&lab.q->lock);
    int first = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    unsigned before = descriptors();
    cr_assert_eq(first, 0);
    crew_go(&second, ask, lab.q);
    crew_until_asleep(&second);
    cr_expect_eq(descriptors(), before + 1, "this proves nothing");
    due__store_release(&lab.q->fd_want, DUE_FOREVER);
    due__store_release(&lab.q->fd, first);
    due__lock_release(&lab.q->lock);
    cr_expect_eq(crew_join(&second), first);
    cr_expect_eq(descriptors(), before, "its own is still open");
    lab_close(&lab);
}

LAB_TEST(fd, is_readable_when_a_job_is_due)
{
    struct lab lab = lab_open();
    int fd = fd_of(&lab);

    lab_enqueue(&lab, "job", .at_ns = 100);
    take_all(&lab);
    cr_expect_not(readable(fd, 0));
    lab_turn_to(&lab, 100);
    cr_expect(readable(fd, 5000));
    cr_expect_eq(take_all(&lab), 1);
    cr_expect_not(readable(fd, 0));
    lab_close(&lab);
}

/* libzmq#3641 shows the other kind */
LAB_TEST(fd, stays_readable_until_everything_is_taken)
{
    struct lab lab = lab_open();
    int fd = fd_of(&lab);

    for (int i = 0; i < 3; i++)
        lab_enqueue(&lab, "job", .delay_ns = 0);
    for (int i = 0; i < 3; i++) {
        cr_expect(readable(fd, 5000), "%d", i);
        cr_expect_not_null(lab_dequeue(&lab));
    }
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_not(readable(fd, 0));
    lab_close(&lab);
}

/* Nobody has looked in vain yet. */
LAB_TEST(fd, is_not_left_readable_by_the_last_job_that_was_taken)
{
    struct lab lab = lab_open();
    int fd = fd_of(&lab);

    lab_enqueue(&lab, "job", .delay_ns = 0);
    cr_expect(readable(fd, 5000));
    cr_expect_not_null(lab_dequeue(&lab));
    lab_enqueue(&lab, "later", .at_ns = 1000);
    due__drain_all(lab.q);
    cr_expect_not(readable(fd, 0));
    lab_close(&lab);
}

LAB_TEST(fd, is_readable_for_what_was_due_before_it_was_asked_for)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "job", .delay_ns = 0);
    due_poll(lab.q, NULL);
    cr_expect(readable(fd_of(&lab), 5000));
    lab_close(&lab);
}

LAB_TEST(fd, becomes_readable_again_for_the_next_job)
{
    struct lab lab = lab_open();
    int fd = fd_of(&lab);

    for (int i = 1; i <= 20; i++) {
        lab_enqueue(&lab, "job", .at_ns = 10 * i);
        take_all(&lab);
        cr_expect_not(readable(fd, 0), "%d", i);
        lab_turn_to(&lab, 10 * i);
        cr_expect(readable(fd, 5000), "%d", i);
        cr_expect_eq(take_all(&lab), 1);
    }
    lab_close(&lab);
}

LAB_TEST(fd, becomes_readable_for_a_rescheduled_a_promoted_and_a_resumed_job)
{
    struct lab lab = lab_open(.start_ns = 100);
    int fd = fd_of(&lab);
    due_id one = lab_enqueue(&lab, "one", .at_ns = 5000);
    due_id two = lab_enqueue(&lab, "two", .at_ns = 5000);

    take_all(&lab);
    cr_expect_eq(due_reschedule(lab.q, one, 50), 0);
    cr_expect(readable(fd, 5000), "rescheduled");
    cr_expect_eq(take_all(&lab), 1);
    cr_expect_eq(due_promote(lab.q, two), 0);
    cr_expect(readable(fd, 5000), "promoted");
    cr_expect_eq(take_all(&lab), 1);

    cr_expect_eq(due_pause(lab.q, 0), 0);
    lab_enqueue(&lab, "three", .delay_ns = 0);
    cr_expect_eq(take_all(&lab), 0);
    cr_expect_eq(due_resume(lab.q, 0), 0);
    cr_expect(readable(fd, 5000), "resumed");
    cr_expect_eq(take_all(&lab), 1);
    lab_close(&lab);
}

LAB_TEST(fd, is_not_left_readable_by_a_paused_topic)
{
    struct lab lab = lab_open();
    int fd = fd_of(&lab);

    cr_expect_eq(due_pause(lab.q, 0), 0);
    lab_enqueue(&lab, "held back", .delay_ns = 0);
    cr_expect_eq(take_all(&lab), 0);
    cr_expect_not(readable(fd, 0));
    lab_close(&lab);
}

/* On the kernel's clocks it is the kernel that makes it readable, in time. */
LAB_TEST(fd, becomes_readable_by_itself_on_every_clock)
{
    static const enum due_clock_kind kinds[] = { DUE_CLOCK_MONOTONIC, DUE_CLOCK_BOOTTIME,
                                                 DUE_CLOCK_REALTIME };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct lab lab = lab_open(.kernel = true, .with.clock = kinds[i]);
        int fd = fd_of(&lab);
        due_job job;

        cr_expect_eq(take_all(&lab), 0);
        lab_enqueue(&lab, "late", .delay_ns = DUE_S(1000));
        lab_enqueue(&lab, "job", .delay_ns = DUE_MS(5));
        for (int looks = 0;; looks++) {
            cr_assert(readable(fd, 20000), "clock %zu: never readable", i);
            if (due_dequeue(lab.q, &job, 0) == 0)
                break;
            cr_assert_lt(looks, 100, "clock %zu: readable again and again for nothing", i);
        }
        cr_expect_geq(due_now(lab.q), job.deadline_ns);
        due_job_done(&job);
        cr_expect_eq(take_all(&lab), 0);
        cr_expect_not(readable(fd, 0));
        lab_close(&lab);
    }
}

LAB_TEST(fd, becomes_readable_for_a_job_put_in_by_another_thread)
{
    struct lab lab = lab_open(.kernel = true);
    int fd = fd_of(&lab);
    struct crew_call call;

    for (int i = 0; i < 50; i++) {
        cr_assert_eq(take_all(&lab), 0);
        crew_call_enqueue(&call, lab.q,
                          (due_spec){ DUE_SPEC_INIT, .delay_ns = DUE_US(50) * (i % 5) }, 0);
        due_job job;
        do
            cr_assert(readable(fd, 20000), "%d: never readable", i);
        while (due_dequeue(lab.q, &job, 0) != 0);
        due_job_done(&job);
        cr_assert_eq(crew_call_answer(&call), 0);
    }
    lab_close(&lab);
}

/* What is put before the next deadline sets the descriptor though nobody takes, or leads; that it
 * brings a pointer makes no difference. */
LAB_TEST(fd, becomes_readable_for_a_pointer_put_before_the_head_on_every_clock)
{
    static const enum due_clock_kind kinds[] = { DUE_CLOCK_MONOTONIC, DUE_CLOCK_BOOTTIME,
                                                 DUE_CLOCK_REALTIME };
    static int job_of[2];

    for (size_t i = 0; i < 2 * sizeof kinds / sizeof kinds[0]; i++) {
        struct lab lab = lab_open(.kernel = true, .with.clock = kinds[i / 2]);
        int fd = fd_of(&lab);
        int64_t now = due_now(lab.q);
        due_job job;

        for (int k = 0; k < 20; k++)
            cr_assert_eq(due_enqueue_at(lab.q, now + DUE_S(1000 + k), &job_of[0], NULL), 0);
        cr_assert_eq(due_dequeue(lab.q, &job, 0), DUE_EAGAIN);
        due__drain_all(lab.q);
        cr_assert_not(readable(fd, 0), "%zu", i);
        if (i % 2 == 0)
            cr_assert_eq(due_enqueue_after(lab.q, DUE_MS(5), &job_of[1], NULL), 0);
        else
            cr_assert_eq(due_enqueue_at(lab.q, now + DUE_MS(50), &job_of[1], NULL), 0);
        do
            cr_assert(readable(fd, 5000), "%zu: never readable", i);
        while (due_dequeue(lab.q, &job, 0) != 0);
        cr_expect_eq(job.ptr, &job_of[1]);
        due_job_done(&job);
        lab_close(&lab);
    }
}

/* The same where time is turned by hand. */
LAB_TEST(fd, becomes_readable_for_a_pointer_put_before_the_head)
{
    static int job_of[2];
    struct lab lab = lab_open();
    int fd = fd_of(&lab);
    due_job job;

    cr_assert_eq(due_enqueue_at(lab.q, 1000, &job_of[0], NULL), 0);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), DUE_EAGAIN);
    cr_assert_eq(due_enqueue_at(lab.q, 100, &job_of[1], NULL), 0);
    due__drain_all(lab.q);
    cr_expect_not(readable(fd, 0));
    lab_turn_to(&lab, 100);
    cr_expect(readable(fd, 5000));
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(job.ptr, &job_of[1]);
    due_job_done(&job);
    lab_close(&lab);
}

/* What it is to be set to: DUE_FOREVER, the head's time, or 0, which has passed. */
static int64_t set_to(struct lab *lab)
{
    return due__load_acquire(&lab->q->fd_want);
}

LAB_TEST(event_loop, has_its_descriptor_set_to_the_head_to_the_nanosecond)
{
    struct lab lab = lab_open(.kernel = true);
    int64_t now = due__clock_now(&lab.q->clock);

    fd_of(&lab);
    cr_expect_eq(set_to(&lab), DUE_FOREVER);
    lab_enqueue(&lab, "behind", .at_ns = now + DUE_S(2000));
    cr_expect_eq(take_all(&lab), 0);
    cr_expect_eq(set_to(&lab), now + DUE_S(2000));
    due_id id = lab_enqueue(&lab, "head", .at_ns = now + DUE_S(1000) + 1);
    cr_expect_eq(take_all(&lab), 0);
    cr_expect_eq(set_to(&lab), now + DUE_S(1000) + 1);
    cr_assert_eq(due_reschedule(lab.q, id, now + DUE_S(500)), 0);
    cr_expect_eq(take_all(&lab), 0);
    cr_expect_eq(set_to(&lab), now + DUE_S(500));
    cr_assert_eq(due_pause(lab.q, 0), 0);
    lab_enqueue(&lab, "paused", .delay_ns = 0);
    cr_expect_eq(take_all(&lab), 0);
    cr_expect_eq(set_to(&lab), now + DUE_S(500), "what is paused is nobody's");
    cr_assert_eq(due_resume(lab.q, 0), 0);
    cr_expect_eq(set_to(&lab), 0);
    cr_expect_eq(take_all(&lab), 1);
    cr_expect_eq(set_to(&lab), now + DUE_S(500));
    cr_assert_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(set_to(&lab), 0, "a take says that it is closed");
    lab_close(&lab);
}

/* Whoever looks in vain has it set anew, to the same time too: a clock may have been set back. */
LAB_TEST(event_loop, has_its_descriptor_set_when_its_time_changes_or_somebody_has_looked_in_vain)
{
    struct lab lab = lab_open(.start_ns = 10);
    struct due__tenure t;

    fd_of(&lab);
    lab_enqueue(&lab, "tea", .at_ns = 20);
    cr_expect_eq(take_all(&lab), 0);
    due__enter(lab.q, &t);
    cr_expect_not(due__fd_note(lab.q));
    cr_expect_not(due__fd_note(lab.q));
    due__fd_again(lab.q);
    cr_expect(due__fd_note(lab.q));
    cr_expect_not(due__fd_note(lab.q));
    due__store_release(&lab.q->fd_want, 7);
    cr_expect(due__fd_note(lab.q));
    cr_expect_eq(set_to(&lab), DUE_FOREVER, "it is set into the past when the clock is turned");
    cr_expect_not(due__fd_note(lab.q));
    due__tenure_end(lab.q, &t);
    lab_turn_to(&lab, 19);
    cr_expect_eq(take_all(&lab), 0);
    cr_expect_eq(set_to(&lab), DUE_FOREVER);
    lab_turn_to(&lab, 20);
    cr_expect_eq(set_to(&lab), 0);
    cr_expect_eq(take_all(&lab), 1);
    cr_expect_eq(set_to(&lab), DUE_FOREVER);
    lab_close(&lab);
}

LAB_TEST(fd, works_with_epoll)
{
    struct lab lab = lab_open();
    struct epoll_event event = { .events = EPOLLIN };
    int set = epoll_create1(EPOLL_CLOEXEC);

    cr_assert_geq(set, 0);
    cr_assert_eq(epoll_ctl(set, EPOLL_CTL_ADD, fd_of(&lab), &event), 0);
    lab_enqueue(&lab, "job", .at_ns = 10);
    take_all(&lab);
    cr_expect_eq(epoll_wait(set, &event, 1, 0), 0);
    lab_turn_to(&lab, 10);
    cr_expect_eq(epoll_wait(set, &event, 1, 20000), 1); /* the kernel's timer may take a moment */
    cr_expect_eq(epoll_wait(set, &event, 1, 0), 1, "level-triggered");
    cr_expect_eq(take_all(&lab), 1);
    cr_expect_eq(epoll_wait(set, &event, 1, 0), 0);
    close(set);
    lab_close(&lab);
}

LAB_TEST(fd, does_not_wake_a_loop_for_jobs_far_ahead)
{
    struct lab lab = lab_open(.kernel = true);
    int fd = fd_of(&lab);

    for (int i = 0; i < 100; i++)
        lab_enqueue(&lab, "later", .delay_ns = DUE_S(1000) - i);
    lab_enqueue(&lab, "never", .at_ns = DUE_FOREVER);
    cr_expect_eq(take_all(&lab), 0);
    cr_expect_not(readable(fd, 20));
    lab_close(&lab);
}

LAB_TEST(fd, is_refused_when_closed)
{
    struct lab lab = lab_open();

    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(due_fd(lab.q), DUE_ECLOSED);
    lab_close(&lab);
}
