/* What one take brings is in order, whatever has to be done in the store before each of its jobs is
 * handed out: a plain one leaves it, one that repeats gets the time of its next round there, and of
 * one whose attempts are limited this one is counted.  On every clock, in every mode, with and
 * without a store, few jobs and many, for good and on a lease, by deadline and by priority.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lab/shop.h"
#include "lab/take.h"

#define MOST     300u /* more than leave a store at once */
#define AGAIN_NS DUE_S(1000000000)
#define LEASE_NS DUE_S(1000)

static const enum due_clock_kind kernel_clocks[] = { DUE_CLOCK_MONOTONIC, DUE_CLOCK_BOOTTIME,
                                                     DUE_CLOCK_REALTIME };

static const due_retry limited = { .kind = DUE_RETRY_FIXED, .attempts_max = 3, .delay_ns = 1 };

struct order {
    struct shop s; /* its lab, with or without the rest */
    bool stored;
    int topics[2];
    int next[2]; /* of each topic: which is to come */
};

/* How it is taken. */
struct way {
    unsigned n;         /* jobs */
    unsigned max;       /* at most so many at a time */
    int64_t lease_ns;   /* 0: for good */
    int64_t timeout_ns; /* 0: it asks again */
};

static void begin(struct order *o, bool stored, struct lab_options with)
{
    *o = (struct order){ .stored = stored };
    if (stored)
        o->s = shop_new(NULL, with);
    else
        o->s.lab = lab_open_with(&with);
    o->topics[1] = lab_topic(&o->s.lab, "others");
}

static void end(struct order *o)
{
    if (o->stored)
        shop_close(&o->s);
    else
        lab_close(&o->s.lab);
}

/* Of all four kinds, in two topics, put in out of order.  By priority those of one time. */
static void fill(struct order *o, unsigned n, bool by_priority)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned at = (i * 7 + 3) % n; /* no number of jobs here has a 7 in it */
        char text[16];

        snprintf(text, sizeof text, "%u", at);
        lab_enqueue(&o->s.lab, text, .at_ns = by_priority ? 1000 : 1000 + (int64_t)at,
                    .priority = by_priority ? 255 - (int)at : 0, .topic = o->topics[at / 5 % 2],
                    .more = EXTRA(.every_ns = at % 3 == 1 ? AGAIN_NS : 0,
                                  .retry = at % 5 % 2 == 1 ? &limited : NULL));
    }
    if (o->stored)
        cr_assert_eq(due_flush(o->s.lab.q, DUE_S(20)), 0);
    o->next[0] = 0;
    o->next[1] = 5;
}

/* The job is the next of its topic. */
static void expect_next(struct order *o, const struct way *w, const due_job *job)
{
    int t = job->topic == o->topics[1];
    char text[16] = "";

    memcpy(text, job->data, job->len);
    cr_assert_eq(atoi(text), o->next[t], "%s, not %d, of %u, %u at a time, %s, %s", text,
                 o->next[t], w->n, w->max, w->lease_ns > 0 ? "leased" : "for good",
                 w->timeout_ns > 0 ? "waiting" : "asking");
    if (++o->next[t] % 5 == 0)
        o->next[t] += 5;
}

/* Up to so many, of one topic or of any (NULL). */
static unsigned take_next(struct order *o, const struct way *w, const int *topic)
{
    due_job jobs[MOST];
    int got;

    do
        got = take_leased_some(o->s.lab.q, topic, topic != NULL, jobs, w->max, w->lease_ns,
                               w->timeout_ns);
    while (got == DUE_EAGAIN);
    cr_assert_gt(got, 0, "%s", due_error_name(got));
    for (int i = 0; i < got; i++)
        expect_next(o, w, &jobs[i]);
    if (w->lease_ns > 0)
        cr_expect_eq(due_ack_batch(jobs, (size_t)got, NULL), got);
    for (int i = 0; i < got && w->lease_ns == 0; i++)
        due_job_done(&jobs[i]);
    return (unsigned)got;
}

/* Those of one topic, then of the other; or as they come. */
static void take_all(struct order *o, const struct way *w, bool apart)
{
    unsigned second = 0; /* jobs of the second topic */

    for (unsigned at = 0; at < w->n; at++)
        second += at / 5 % 2;
    for (unsigned got = 0; got < w->n;)
        got += take_next(o, w, apart ? &o->topics[got >= w->n - second] : NULL);
}

static void check(bool stored, struct lab_options with, bool apart)
{
    static const unsigned numbers[] = { 10, 100, MOST };
    struct order o;

    with.with.size = sizeof(due_options);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        for (int kind = 0; kind < 8; kind++) {
            const struct way w = { .n = numbers[i],
                                   .max = kind & 1 ? 7 : numbers[i],
                                   .lease_ns = kind & 2 ? LEASE_NS : 0,
                                   .timeout_ns = kind & 4 ? 0 : DUE_S(20) };
            bool by_priority = with.with.order == DUE_ORDER_PRIORITY;

            if (by_priority && numbers[i] > 256)
                continue;
            begin(&o, stored, with);
            fill(&o, w.n, by_priority);
            if (o.s.lab.clock != NULL)
                lab_turn_to(&o.s.lab, 2000);
            take_all(&o, &w, apart);
            end(&o);
        }
    }
}

static void on_each_clock(bool stored, struct lab_options with)
{
    for (int apart = 0; apart < 2; apart++) {
        check(stored, with, apart != 0);
        with.kernel = true;
        for (size_t i = 0; i < sizeof kernel_clocks / sizeof kernel_clocks[0]; i++) {
            if (stored && kernel_clocks[i] != DUE_CLOCK_REALTIME)
                continue; /* what it stores has to be of use after a restart */
            with.with.clock = kernel_clocks[i];
            check(stored, with, apart != 0);
        }
        with.kernel = false;
        with.with.clock = 0;
    }
}

static const struct lab_options by_deadline = { .kernel = false };
static const struct lab_options by_priority = { .with.order = DUE_ORDER_PRIORITY };
static const struct lab_options by_deadline_async = { .with.confirm = DUE_CONFIRM_ASYNC };
static const struct lab_options by_priority_async = { .with.order = DUE_ORDER_PRIORITY,
                                                      .with.confirm = DUE_CONFIRM_ASYNC };

static void in_memory(void)
{
    on_each_clock(false, by_deadline);
    on_each_clock(false, by_priority);
}

Test(take_order, of_a_queue_in_memory, .timeout = 300)
{
    lab_each_mode(in_memory);
}

/* In the modes that a queue with a store has. */
static void stored(struct lab_options with)
{
    for (lab_proxies = DUE_PROXIES_ADAPTIVE; lab_proxies <= DUE_PROXIES_ALWAYS; lab_proxies++)
        on_each_clock(true, with);
}

Test(take_order, of_a_stored_queue_by_deadline, .timeout = 300)
{
    stored(by_deadline);
}

Test(take_order, of_a_stored_queue_by_priority, .timeout = 300)
{
    stored(by_priority);
}

Test(take_order, of_a_stored_queue_that_does_not_wait_to_be_confirmed, .timeout = 300)
{
    stored(by_deadline_async);
    stored(by_priority_async);
}
