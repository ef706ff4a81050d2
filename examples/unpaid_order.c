/* unpaid_order.c - an order that is not paid is reminded of, at growing intervals, and given up.
 *
 * Each order is one job.  To be due is to be reminded; to give the job back is to try again later,
 * as the queue's ladder says: after 15 s, 3 m, 10 m, and so on up to 15 h.  The payment cancels the
 * job by its key, which is the order's number, so nobody has to remember its id.  An order whose
 * ladder is used up is dead, and waits for somebody to look at it.
 *
 * The clock is turned by hand, so that a day takes no time.
 */
#include <due/due.h>
#include <stdio.h>
#include <string.h>

#define PAID   "order 17"
#define UNPAID "order 42"

static int failures;

static void expect(int holds, const char *what)
{
    if (!holds)
        printf("NOT OK: %s\n", what);
    failures += !holds;
}

static void say(const due_queue *q, const char *text, size_t len)
{
    int s = (int)(due_now(q) / DUE_S(1));

    printf("%2d:%02d:%02d  %.*s ", s / 3600, s / 60 % 60, s % 60, (int)len, text);
}

/* The first reminder goes out 15 minutes after the order. */
static void ordered(due_queue *q, const char *order)
{
    due_extra once = { DUE_EXTRA_INIT, .key = order, .key_len = strlen(order) };
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(900), .data = order, .len = strlen(order),
                      .more = &once };

    expect(due_enqueue(q, &spec, 0, NULL) == 0, "an order is taken down");
}

/* DUE_EBUSY would say that a reminder is going out just now: then it is the last one. */
static void paid(due_queue *q, const char *order)
{
    int rc = due_cancel_key(q, order, strlen(order), NULL);

    expect(rc == 0 || rc == DUE_EBUSY, "an order that is paid had been waiting");
    say(q, order, strlen(order));
    printf("is paid\n");
}

/* Remind of everything that is due.  Nobody has paid yet, so each comes again. */
static void remind(due_queue *q)
{
    due_job job;

    while (due_reserve(q, &job, 0) == 0) {
        say(q, job.data, job.len);
        printf("is not paid: reminder %u\n", job.attempts);
        expect(due_nack(&job, DUE_DELAY_POLICY) == 0, "it comes again, as the ladder says");
    }
}

/* What the ladder has given up.  The bytes of a dead job are had by taking it out. */
static void give_up(due_queue *q)
{
    uint64_t cursor = 0;
    due_dead dead;
    due_job job;

    while (due_list_dead(q, &cursor, &dead, 1) == 1) {
        if (due_cancel(q, dead.id, &job) != 0)
            continue;
        say(q, job.data, job.len);
        printf("is given up after %u reminders\n", dead.attempts);
        expect(dead.cause == DUE_CAUSE_ATTEMPTS, "it has died of too many attempts");
        due_job_done(&job);
    }
}

int main(void)
{
    due_clock *clock = due_clock_manual(0);
    due_options options = { DUE_OPTIONS_INIT, .manual = clock, .retry = DUE_RETRY_LADDER_OF_HOURS };
    const int64_t payment_ns = DUE_S(3600);
    int64_t next_ns;
    due_queue *q;

    if (clock == NULL || due_open(&q, &options, NULL) != 0)
        return 1;
    ordered(q, PAID);
    ordered(q, UNPAID);

    /* From one deadline to the next; a real service would wait in due_reserve(). */
    while ((next_ns = due_next_deadline(q)) < payment_ns) {
        due_clock_turn_to(clock, next_ns);
        remind(q);
    }
    due_clock_turn_to(clock, payment_ns);
    paid(q, PAID);
    while ((next_ns = due_next_deadline(q)) != DUE_FOREVER) {
        due_clock_turn_to(clock, next_ns);
        remind(q);
    }
    give_up(q);

    expect(due_close(q, DUE_CLOSE_DRAIN, 0) == 0 && due_free(q) == 0, "nothing was left behind");
    return due_clock_free(clock) != 0 || failures > 0;
}
