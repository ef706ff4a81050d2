/* A queue in the order of priority that is owned by one process and shared by many, by turns; on
 * the store in memory, and on Redis.
 */
#include "lab/redis/shared_both.h"

#include <stdio.h>

#include "lab/take.h"

static struct lab_options owner(void)
{
    struct lab_options o = as_owner();

    o.start_ns = DUE_MS(1); /* the store's grain is 1 us */
    o.with.order = DUE_ORDER_PRIORITY;
    return o;
}

/* Who says that order, or none. */
static struct lab_options sharer(bool says)
{
    struct lab_options o = as_sharer();

    o.start_ns = DUE_MS(1);
    o.with.order = says ? DUE_ORDER_PRIORITY : DUE_ORDER_DEADLINE;
    o.with.prefetch_max = 1000;
    return o;
}

static struct {
    int last;
    int64_t at_ns;
} drained[2]; /* of each topic the one that came last; no later one comes before it */

/* So many, of all priorities and some times that are over, some in a far time, in two topics. */
static void fill(struct shop *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        due_spec spec = { DUE_SPEC_INIT, .at_ns = i % 10 == 9 ? FAR : DUE_US(1 + (int64_t)(i % 13)),
                          .topic = i % 2 == 0 ? 0 : lab_topic(&s->lab, "mail"),
                          .priority = (int)(i * 31 % 256) };

        cr_assert_eq(due_enqueue(s->lab.q, &spec, 0, NULL), 0);
    }
    cr_assert_eq(due_flush(s->lab.q, DUE_FOREVER), 0);
    for (int t = 0; t < 2; t++)
        drained[t].last = 255, drained[t].at_ns = 0;
}

/* @n of a topic come, in that order. */
static void drain_topic(struct shop *s, int t, size_t n, const char *when)
{
    int topic = t == 0 ? 0 : lab_topic(&s->lab, "mail");
    due_job jobs[50];

    for (size_t came = 0; came < n;) {
        size_t left = n - came < 50 ? n - came : 50;
        int got = take_leased_some(s->lab.q, &topic, 1, jobs, left, DUE_S(600), DUE_S(60));

        cr_assert_gt(got, 0, "%s: %zu came of %zu, and then %s", when, came, n,
                     due_error_name(got));
        for (int i = 0; i < got; i++, came++) {
            int priority = jobs[i].priority;
            int64_t then_ns = jobs[i].deadline_ns;

            cr_assert(priority < drained[t].last ||
                          (priority == drained[t].last && then_ns >= drained[t].at_ns),
                      "%s: %d behind %d", when, priority, drained[t].last);
            drained[t].last = priority;
            drained[t].at_ns = then_ns;
            cr_assert_eq(due_ack(&jobs[i]), 0);
        }
    }
}

static void drain(struct shop *s, size_t n, const char *when)
{
    for (int t = 0; t < 2; t++)
        drain_topic(s, t, n, when);
}

/* All that are left, and no more: so many of each topic. */
static void drain_all(struct shop *s, size_t n, size_t mail)
{
    due_job job;

    drain_topic(s, 0, n, "the rest");
    drain_topic(s, 1, mail, "the rest");
    cr_expect_eq(take_leased_some(s->lab.q, NULL, 0, &job, 1, DUE_S(600), 0), DUE_EAGAIN);
}

/* Closed in order, and opened again. */
static void reopen(struct shop *s, struct lab_options with)
{
    lab_close(&s->lab);
    shop_open(s, with);
}

static void go_through(enum where where, size_t n)
{
    struct shop s = shop_new(where, owner());

    fill(&s, n);
    reopen(&s, sharer(true));
    drain(&s, n / 10, "shared");
    reopen(&s, owner());
#ifdef DUE_HAVE_REDIS
    if (where == IN_REDIS)
        cr_expect_str_eq(ASK("EXISTS", "due:{queue}:o:", "due:{queue}:o:mail"), ":0\r\n");
#endif
    drain(&s, n / 10, "owned again");
    reopen(&s, as_owner()); /* by time meanwhile: that is the owner's */
    reopen(&s, sharer(false));
    drain(&s, n / 10, "shared again, as it was");
    reopen(&s, sharer(true));
    drain_all(&s, n / 5, n / 10);
    shop_close(&s);
}

BOTH_TEST(stored_order, holds_for_ten_jobs_whoever_has_the_queue)
{
    go_through(where, 40);
}

BOTH_TEST(stored_order, holds_for_ten_thousand_jobs_whoever_has_the_queue)
{
    go_through(where, 10000);
}

/* What an opening in that order answers while the queue is by time. */
static void expect_refused(struct shop *s)
{
    due_error error = { .text = "" };
    due_options o = { DUE_OPTIONS_INIT, .share = DUE_SHARED, .order = DUE_ORDER_PRIORITY,
                      .store = shop_store(s), .manual = s->lab.clock };
    due_queue *q;

    cr_assert_eq(due_open(&q, &o, &error), DUE_EINVAL);
    cr_expect(error.text[0] != '\0' && error.hint[0] != '\0');
    o.store->verbs->free(o.store);
}

/* Who came first said nothing, put nothing, or nothing that is left, and has gone: whoever comes
 * then says what the order is. */
static void take_up(enum where where, size_t n)
{
    struct shop s = shop_new(where, sharer(false));

    expect_refused(&s); /* it is there */
    reopen(&s, sharer(true));
    fill(&s, n);
    drain(&s, n / 10, "by priority");
    reopen(&s, sharer(false));
    drain_all(&s, n / 5 * 2, n / 10 * 3);
    shop_close(&s);
}

BOTH_TEST(stored_order, is_that_of_who_comes_to_an_empty_queue_with_ten_jobs)
{
    take_up(where, 40);
}

BOTH_TEST(stored_order, is_that_of_who_comes_to_an_empty_queue_with_ten_thousand_jobs)
{
    take_up(where, 10000);
}

/* A job that waits is enough: nobody has to be there. */
BOTH_TEST(stored_order, is_not_another_while_one_job_is_left)
{
    struct shop s = shop_new(where, sharer(false));

    lab_enqueue(&s.lab, NULL, .at_ns = FAR);
    cr_assert_eq(due_flush(s.lab.q, DUE_FOREVER), 0);
    lab_close(&s.lab);
    expect_refused(&s);
    shop_open(&s, sharer(false));
    shop_close(&s);
}

/* It was shared by time: that order it keeps until somebody owns it. */
BOTH_TEST(stored_order, is_another_when_it_was_owned_in_between)
{
    struct shop s = shop_new(where, sharer(false));

    fill(&s, 40);
    expect_refused(&s);
    reopen(&s, as_owner());
    reopen(&s, sharer(true));
    drain(&s, 16, "by priority");
    shop_close(&s);
}

/* What was out when its process died, and who had it comes as an owner. */
BOTH_TEST(stored_order, holds_for_what_was_out)
{
    struct shop s = shop_new(where, sharer(true));
    due_job jobs[4];

    fill(&s, 40);
    int n = take_leased_some(s.lab.q, NULL, 0, jobs, 4, DUE_S(600), DUE_FOREVER);
    cr_assert_gt(n, 0);
    for (int i = 0; i < n; i++)
        due_job_done(&jobs[i]);
    shop_crash(&s, owner());
    drain(&s, 4, "owned");
    reopen(&s, sharer(false));
    drain(&s, 12, "shared");
    shop_close(&s);
}

#ifdef DUE_HAVE_REDIS

/* Who died long ago, and is in the list of those who share the queue, does not count. */
Test(stored_order, is_that_of_who_comes_when_others_died_long_ago, .init = serve_plainly,
     .fini = stop)
{
    struct shop s = shop_new(IN_REDIS, sharer(false));

    lab_close(&s.lab);
    ASK("HSET", "due:{queue}:p", "7", "gone 0 1 1 1");
    shop_open(&s, sharer(true));
    fill(&s, 40);
    drain(&s, 4, "by priority");
    cr_expect_str_eq(ASK("HEXISTS", "due:{queue}:p", "7"), ":0\r\n");
    cr_expect_str_eq(ASK("HGET", "due:{queue}:meta", "least_reader"), "$1\r\n3\r\n");
    shop_close(&s);
}

/* As the guide says: nobody comes in between who makes it one by time. */
Test(stored_order, is_what_was_written_while_it_was_owned, .init = serve_plainly, .fini = stop)
{
    struct shop s = shop_new(IN_REDIS, sharer(false));

    fill(&s, 40);
    reopen(&s, as_owner());
    ASK("HSET", "due:{queue}:meta", "order", "priority");
    reopen(&s, sharer(false));
    drain_all(&s, 20, 16);
    shop_close(&s);
}

#endif
