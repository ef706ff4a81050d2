/* repeating.c - a job that comes again, under one id, until it is cancelled.
 *
 * A backup is due each hour.  It is answered for as any reserved job: a round that fails is tried
 * again, and the next one begins anew.  Between two rounds it is told another directory.
 */
#include <due/due.h>
#include <stdio.h>

#define MINUTE DUE_S(60)
#define HOUR   (60 * MINUTE)

static int64_t minutes(int64_t ns)
{
    return ns / MINUTE;
}

static int back_up(due_queue *q, due_clock *clock, int fails)
{
    due_job job;

    if (due_reserve(q, &job, 0) != 0)
        return 1;
    printf("%4lld  backup of %.*s, due at %lld, attempt %u\n",
           (long long)minutes(due_clock_now(clock)), (int)job.len, (const char *)job.data,
           (long long)minutes(job.deadline_ns), job.attempts);
    return (fails ? due_nack(&job, 5 * MINUTE) : due_ack(&job)) != 0;
}

static int work(due_queue *q, due_clock *clock)
{
    due_extra hourly = { DUE_EXTRA_INIT, .every_ns = HOUR, .repeat = DUE_REPEAT_SKIP };
    due_spec spec = { DUE_SPEC_INIT, .at_ns = HOUR, .data = "/var/a", .len = 6, .more = &hourly };
    due_id backup;
    int wrong = due_enqueue(q, &spec, 0, &backup) != 0;

    due_clock_turn_to(clock, HOUR);
    wrong += back_up(q, clock, 1);
    due_clock_advance(clock, 5 * MINUTE);
    wrong += back_up(q, clock, 0);

    wrong += due_update(q, backup, "/var/b", 6) != 0;
    due_clock_turn_to(clock, 2 * HOUR);
    wrong += back_up(q, clock, 0);

    due_clock_turn_to(clock, 5 * HOUR + MINUTE); /* the machine was off meanwhile */
    wrong += back_up(q, clock, 0);
    due_clock_turn_to(clock, 6 * HOUR);
    wrong += back_up(q, clock, 0);

    wrong += due_cancel(q, backup, NULL) != 0;
    due_clock_advance(clock, 10 * HOUR);
    printf("%4lld  %s\n", (long long)minutes(due_clock_now(clock)),
           due_next_deadline(q) == DUE_FOREVER ? "no backup any more" : "NOT OK");
    return wrong;
}

int main(void)
{
    due_clock *clock = due_clock_manual(0);
    due_options options = { DUE_OPTIONS_INIT, .manual = clock, .lease_ns = 10 * MINUTE };
    due_queue *q;

    if (clock == NULL || due_open(&q, &options, NULL) != 0)
        return 1;
    int wrong = work(q, clock);
    wrong += due_close(q, DUE_CLOSE_DRAIN, 0) != 0 || due_free(q) != 0;
    return due_clock_free(clock) != 0 || wrong > 0;
}
