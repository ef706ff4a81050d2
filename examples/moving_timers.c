/* moving_timers.c - what timers are asked for elsewhere, with libdue: start, stop, move, repeat;
 * and timerfd beside it.
 */
#include <due/due.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* ---- One timerfd for each timer ------------------------------------------------------------- */

static int by_timerfd(void)
{
    struct itimerspec in = { .it_value = { .tv_nsec = 10000000 } };
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct pollfd look = { fd, POLLIN, 0 };
    uint64_t times;

    if (fd < 0 || timerfd_settime(fd, 0, &in, NULL) != 0)
        return 1;
    if (poll(&look, 1, -1) != 1 || read(fd, &times, sizeof times) != sizeof times)
        return 1;
    printf("timerfd: %d\n", (int)times);
    return close(fd);
}

/* ---- One descriptor for all ----------------------------------------------------------------- */

static int by_one_descriptor(due_queue *q)
{
    struct pollfd look = { due_fd(q), POLLIN, 0 };
    due_job job;
    int rc = DUE_EAGAIN, times = 0;

    for (int i = 1; i <= 3; i++)
        if (due_enqueue_after(q, DUE_MS(5 * i), NULL, NULL) != 0)
            return 1;
    while (times < 3 && poll(&look, 1, -1) == 1)
        while ((rc = due_dequeue(q, &job, 0)) == 0) {
            due_job_done(&job);
            times++;
        }
    printf("one descriptor: %d\n", times);
    return rc == DUE_EAGAIN ? 0 : rc;
}

/* ---- Start, stop, move ---------------------------------------------------------------------- */

struct connection {
    const char *name;
    due_id timer;
};

static int start(due_queue *q, struct connection *c)
{
    return due_enqueue_after(q, DUE_S(30), c, &c->timer);
}

static int has_spoken(due_queue *q, struct connection *c)
{
    return due_reschedule(q, c->timer, due_now(q) + DUE_S(30));
}

static int has_left(due_queue *q, struct connection *c)
{
    switch (due_cancel(q, c->timer, NULL)) {
    case 0:
        printf("%s: stopped before it came\n", c->name);
        return 0;
    case DUE_EBUSY: /* somebody has it now */
    case DUE_ENOENT:
        printf("%s: it came first\n", c->name);
        return 0;
    default:
        return 1;
    }
}

static int came(due_queue *q)
{
    due_job job;
    int rc;

    while ((rc = due_dequeue(q, &job, 0)) == 0) {
        printf("%s: silent for too long\n", ((struct connection *)job.ptr)->name);
        due_job_done(&job);
    }
    return rc == DUE_EAGAIN ? 0 : rc;
}

static int connections(due_queue *q, due_clock *clock)
{
    struct connection a = { .name = "a" }, b = { .name = "b" }, c = { .name = "c" };

    if (start(q, &a) || start(q, &b) || start(q, &c) || due_clock_advance(clock, DUE_S(20)))
        return 1;
    if (has_spoken(q, &a) || has_left(q, &b) || due_clock_advance(clock, DUE_S(10)) || came(q))
        return 1;
    return has_left(q, &c) || due_clock_advance(clock, DUE_S(20)) || came(q);
}

/* ---- Again and again ------------------------------------------------------------------------ */

static int ticks(due_queue *q, due_clock *clock)
{
    due_extra again = { DUE_EXTRA_INIT, .every_ns = DUE_S(10) };
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(10), .data = "tick", .len = 4,
                      .more = &again };
    due_job job;
    due_id id;

    if (due_enqueue(q, &spec, 0, &id) != 0)
        return 1;
    for (int i = 1; i <= 3; i++) {
        if (due_clock_advance(clock, DUE_S(10)) != 0 || due_dequeue(q, &job, 0) != 0)
            return 1;
        printf("tick %d\n", i);
        due_job_done(&job);
    }
    return due_cancel(q, id, NULL);
}

static int finish(due_queue *q)
{
    return due_close(q, DUE_CLOSE_DISCARD, DUE_S(1)) || due_free(q);
}

int main(void)
{
    due_clock *clock = due_clock_manual(0);
    due_options options = { DUE_OPTIONS_INIT, .manual = clock };
    due_queue *q, *turned;

    if (clock == NULL || due_open(&q, NULL, NULL) != 0 || due_open(&turned, &options, NULL) != 0)
        return 1;
    if (by_timerfd() || by_one_descriptor(q) || connections(turned, clock) || ticks(turned, clock))
        return 1;
    return finish(q) || finish(turned) || due_clock_free(clock);
}
