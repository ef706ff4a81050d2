/* manual_clock.c - how to test code that has timeouts, without waiting for them.
 *
 * The code under test is a log-in that ends after half an hour of silence.  Its queue is opened on
 * a clock that stands still until the test turns it, so the test is exact to the nanosecond and
 * takes no time.
 */
#include <due/due.h>
#include <stdio.h>

#define MINUTE       DUE_S(60)
#define LOG_IN_LASTS (30 * MINUTE)

/* ---- The code under test: it knows nothing of the clock ---- */

struct log_in {
    due_queue *q;
    due_id timer;
    int active;
};

static int log_in_begin(struct log_in *l, due_queue *q)
{
    l->q = q;
    l->active = due_enqueue_after(q, LOG_IN_LASTS, l, &l->timer) == 0;
    return l->active;
}

static void log_in_touch(struct log_in *l)
{
    (void)due_reschedule(l->q, l->timer, due_now(l->q) + LOG_IN_LASTS);
}

/* What the program's loop would do; here it takes what is due and returns. */
static void log_in_expire(due_queue *q)
{
    due_job job;

    while (due_dequeue(q, &job, 0) == 0) {
        ((struct log_in *)job.ptr)->active = 0;
        due_job_done(&job);
    }
}

/* ---- The test ---- */

static int failures;

static void expect(int holds, const char *what)
{
    printf("%-7s %s\n", holds ? "ok" : "NOT OK", what);
    failures += !holds;
}

int main(void)
{
    due_clock *clock = due_clock_manual(0);
    due_options options = { DUE_OPTIONS_INIT, .manual = clock };
    struct log_in ann;
    due_queue *q;

    if (clock == NULL || due_open(&q, &options, NULL) != 0)
        return 1;

    expect(log_in_begin(&ann, q), "a log-in begins");

    due_clock_advance(clock, 20 * MINUTE);
    log_in_touch(&ann);
    due_clock_advance(clock, LOG_IN_LASTS - 1);
    log_in_expire(q);
    expect(ann.active, "it lasts for half an hour after the last sign of life, less 1 ns");

    due_clock_advance(clock, 1);
    log_in_expire(q);
    expect(!ann.active, "and then it ends");
    expect(due_clock_now(clock) == 50 * MINUTE, "the clock shows 50 minutes, which took no time");

    expect(due_close(q, DUE_CLOSE_DISCARD, 0) == 0 && due_free(q) == 0, "nothing was left behind");
    return due_clock_free(clock) != 0 || failures > 0;
}
