/* A look in vain notes until when there is nothing, and the next one does not come to the lock: so
 * whatever makes a job due has to be seen by the one after that.  Each way is tried on each clock,
 * with one topic and with several, one by one and with room for many. */
#include "lab/lab.h"

#include <poll.h>

#include "job/request.h"
#include "lab/take.h"
#include "queue/queue.h"

#define NEAR_NS DUE_US(50)
#define FAR_NS  DUE_S(3600)

struct course {
    struct lab lab;
    int topic;    /* of the jobs that come due */
    bool several; /* taken with room for many */
    due_id far;   /* a job that waits all the time */
    due_job job;  /* a reserved one */
    due_id id;
};

/* The clock comes to @at_ns. */
static void await(struct lab *lab, int64_t at_ns)
{
    if (lab->clock != NULL)
        lab_turn_to(lab, at_ns);
    while (due_now(lab->q) < at_ns)
        continue;
}

static int look(struct course *c, due_job *job)
{
    due_job jobs[2];

    if (!c->several)
        return due_dequeue(c->lab.q, job, 0);
    int rc = take_some(c->lab.q, NULL, 0, jobs, 2, 0);
    if (rc > 0)
        *job = jobs[0];
    if (rc > 1) /* a round of a job that repeats, which came meanwhile */
        due_job_done(&jobs[1]);
    return rc > 0 ? 0 : rc;
}

/* Looks in vain until a look needs no lock, if one ever does. */
static void in_vain(struct course *c)
{
    due_job job;

    for (int i = 0; i < 4; i++)
        cr_assert_eq(look(c, &job), DUE_EAGAIN);
    if (c->lab.q->short_takes)
        cr_assert(due__nothing_yet(c->lab.q), "each look comes to the lock");
}

/* The same, unless the clock comes to @at_ns meanwhile and a job with it: false. */
static bool in_vain_before(struct course *c, int64_t at_ns)
{
    due_job job;
    int rc = DUE_EAGAIN;

    for (int i = 0; i < 4 && rc == DUE_EAGAIN; i++)
        rc = look(c, &job);
    if (rc == DUE_EAGAIN)
        return true;
    cr_assert_eq(rc, 0);
    cr_assert_geq(due_now(c->lab.q), at_ns, "early");
    due_job_done(&job);
    return false;
}

static void expect(struct course *c, const char *text, const char *how)
{
    due_job job = { .ptr = NULL };
    int rc = look(c, &job);

    cr_assert_eq(rc, 0, "%s: the look after that answers %s", how, due_error_name(rc));
    cr_expect_str_eq(lab_text(&c->lab, &job), text, "%s", how);
}

/* ---- The ways ---- */

static void put_now(struct course *c)
{
    in_vain(c);
    lab_enqueue(&c->lab, "now", .topic = c->topic);
    expect(c, "now", "put without delay");
    in_vain(c);
}

static void put_before(struct course *c)
{
    int64_t at_ns = due_now(c->lab.q) + NEAR_NS;

    in_vain(c);
    lab_enqueue(&c->lab, "soon", .topic = c->topic, .at_ns = at_ns);
    await(&c->lab, at_ns);
    expect(c, "soon", "put before all that waits");
    in_vain(c);
}

static void put_by_short_verb(struct course *c)
{
    int64_t at_ns = due_now(c->lab.q) + NEAR_NS;
    due_job job;

    in_vain(c);
    cr_assert_eq(due_enqueue_at(c->lab.q, at_ns, c, NULL), 0);
    await(&c->lab, at_ns);
    cr_assert_eq(look(c, &job), 0, "by due_enqueue_at()");
    due_job_done(&job);
    in_vain(c);
    cr_assert_eq(due_enqueue_after(c->lab.q, NEAR_NS, c, NULL), 0);
    await(&c->lab, due_now(c->lab.q) + NEAR_NS);
    cr_assert_eq(look(c, &job), 0, "by due_enqueue_after()");
    due_job_done(&job);
    in_vain(c);
    cr_assert_eq(due_enqueue_after(c->lab.q, 0, c, NULL), 0);
    cr_assert_eq(look(c, &job), 0, "by due_enqueue_after() without delay");
    due_job_done(&job);
}

static void put_by_batch(struct course *c)
{
    due_spec specs[2] = {
        { DUE_SPEC_INIT, .at_ns = due_now(c->lab.q) + FAR_NS / 2, .topic = c->topic, .ptr = c },
        { DUE_SPEC_INIT, .at_ns = due_now(c->lab.q) + NEAR_NS, .topic = c->topic, .ptr = c },
    };
    due_id ids[2];
    due_job job;

    in_vain(c);
    cr_assert_eq(due_enqueue_batch(c->lab.q, specs, 2, 0, ids), 2);
    await(&c->lab, specs[1].at_ns);
    cr_assert_eq(look(c, &job), 0, "by a batch");
    due_job_done(&job);
    cr_expect_eq(due_cancel(c->lab.q, ids[0], NULL), 0);
}

/* Somebody holds the lock when it is put, so it stays in the inbox. */
static void put_into_the_inbox(struct course *c)
{
    struct due__tenure held;

    in_vain(c);
    due__enter(c->lab.q, &held);
    lab_enqueue(&c->lab, "now", .topic = c->topic);
    due__lock_release(&c->lab.q->lock); /* without the look at the inbox that comes after it */
    expect(c, "now", "left in the inbox");
}

static void moved(struct course *c)
{
    due_id id = lab_enqueue(&c->lab, "moved", .topic = c->topic, .delay_ns = FAR_NS);

    in_vain(c);
    cr_assert_eq(due_reschedule(c->lab.q, id, due_now(c->lab.q)), 0);
    expect(c, "moved", "rescheduled");
    id = lab_enqueue(&c->lab, "moved", .topic = c->topic, .delay_ns = FAR_NS);
    in_vain(c);
    int64_t at_ns = due_now(c->lab.q) + NEAR_NS;
    cr_assert_eq(due_reschedule(c->lab.q, id, at_ns), 0);
    await(&c->lab, at_ns);
    expect(c, "moved", "rescheduled to a time ahead");
    id = lab_enqueue(&c->lab, "moved", .topic = c->topic, .delay_ns = FAR_NS);
    in_vain(c);
    cr_assert_eq(due_promote(c->lab.q, id), 0);
    expect(c, "moved", "promoted");
}

static void amended(struct course *c)
{
    due_id id = lab_enqueue(&c->lab, "amended", .topic = c->topic, .delay_ns = FAR_NS);
    due_spec spec = { DUE_SPEC_INIT, .at_ns = due_now(c->lab.q) };

    in_vain(c);
    cr_assert_eq(due_amend(c->lab.q, id, &spec, DUE_SET_TIME), 0);
    expect(c, "amended", "amended");
}

static void reserve(struct course *c)
{
    lab_enqueue(&c->lab, "leased", .topic = c->topic);
    cr_assert_eq(take_leased(c->lab.q, &c->job, FAR_NS, 0), 0);
    in_vain(c);
}

static void given_back(struct course *c)
{
    reserve(c);
    cr_assert_eq(due_snooze(&c->job, 0), 0);
    expect(c, "leased", "given back");
    reserve(c);
    cr_assert_eq(due_snooze(&c->job, NEAR_NS), 0);
    await(&c->lab, due_now(c->lab.q) + NEAR_NS);
    expect(c, "leased", "given back for a while");
}

static void lapsed(struct course *c)
{
    int64_t at_ns = due_now(c->lab.q) + DUE_MS(10);

    lab_enqueue(&c->lab, "leased", .topic = c->topic);
    cr_assert_eq(take_leased(c->lab.q, &c->job, DUE_MS(10), 0), 0);
    if (in_vain_before(c, at_ns)) {
        await(&c->lab, due_now(c->lab.q) + DUE_MS(10) + DUE__COUNTER_LAG_NS);
        expect(c, "leased", "whose lease has ended");
    }
    due_job_done(&c->job);
}

static void kicked(struct course *c)
{
    reserve(c);
    due_id id = c->job.id;
    cr_assert_eq(due_bury(&c->job, "of a test"), 0);
    in_vain(c);
    cr_assert_eq(due_kick(c->lab.q, id), 0);
    expect(c, "leased", "kicked");
}

static void resumed(struct course *c)
{
    cr_assert_eq(due_pause(c->lab.q, c->topic), 0);
    lab_enqueue(&c->lab, "paused", .topic = c->topic);
    in_vain(c);
    cr_assert_eq(due_resume(c->lab.q, c->topic), 0);
    expect(c, "paused", "resumed");
}

static void repeated(struct course *c)
{
    int64_t every_ns = DUE_MS(10);

    in_vain(c);
    due_id id =
        lab_enqueue(&c->lab, "round", .topic = c->topic, .more = EXTRA(.every_ns = every_ns));
    expect(c, "round", "the first round");
    int64_t at_ns = due_now(c->lab.q) + every_ns;
    if (in_vain_before(c, at_ns - every_ns)) {
        await(&c->lab, at_ns);
        expect(c, "round", "the next round");
    }
    cr_expect_eq(due_cancel(c->lab.q, id, NULL), 0);
}

static void closed(struct course *c)
{
    due_job job;

    in_vain(c);
    cr_assert_eq(due_cancel(c->lab.q, c->far, NULL), 0);
    cr_assert_eq(due_close(c->lab.q, DUE_CLOSE_DRAIN, 0), 0);
    cr_expect_eq(look(c, &job), DUE_ECLOSED);
}

/* ---- On which queues ---- */

static const enum due_clock_kind kernel_clocks[] = { DUE_CLOCK_MONOTONIC, DUE_CLOCK_REALTIME,
                                                     DUE_CLOCK_BOOTTIME };

static void try_on(void (*way)(struct course *c), bool kernel, enum due_clock_kind kind,
                   bool topics, bool several)
{
    struct course c = { .lab = lab_open(.kernel = kernel, .start_ns = 1000, .with.clock = kind),
                        .several = several };

    if (topics)
        c.topic = lab_topic(&c.lab, "another");
    c.far = lab_enqueue(&c.lab, "far", .delay_ns = FAR_NS);
    way(&c);
    lab_close(&c.lab);
}

static void each(void (*way)(struct course *c))
{
    for (unsigned which = 0; which < 4; which++) {
        try_on(way, false, DUE_CLOCK_MONOTONIC, which & 1, which & 2);
        for (size_t i = 0; i < sizeof kernel_clocks / sizeof kernel_clocks[0]; i++)
            try_on(way, true, kernel_clocks[i], which & 1, which & 2);
    }
}

#define WAY(name, way)          \
    LAB_TEST(nothing_yet, name) \
    {                           \
        each(way);              \
    }

WAY(is_over_when_one_is_put_without_delay, put_now)
WAY(is_over_when_an_earlier_one_is_put_and_its_time_comes, put_before)
WAY(is_over_for_the_short_verbs, put_by_short_verb)
WAY(is_over_for_a_batch, put_by_batch)
WAY(is_over_for_one_that_was_left_in_the_inbox, put_into_the_inbox)
WAY(is_over_when_one_is_moved, moved)
WAY(is_over_when_one_is_amended, amended)
WAY(is_over_when_one_is_given_back, given_back)
WAY(is_over_when_a_lease_ends, lapsed)
WAY(is_over_when_a_dead_one_is_kicked, kicked)
WAY(is_over_when_a_topic_is_resumed, resumed)
WAY(is_over_when_the_next_round_comes, repeated)
WAY(is_over_when_the_queue_is_closed, closed)

/* ---- Limiters, and the descriptor ---- */

static void let_through(struct course *c)
{
    due_job first;

    in_vain(c);
    lab_enqueue(&c->lab, "first", .topic = c->topic);
    cr_assert_eq(due_topic_limit(c->lab.q, c->topic, 1), 0);
    lab_enqueue(&c->lab, "second", .topic = c->topic);
    cr_assert_eq(look(c, &first), 0);
    in_vain(c);
    due_job_done(&first);
    expect(c, "second", "let through");
}

WAY(is_over_when_a_limiter_opens, let_through)

static void of_a_group(struct course *c)
{
    due_job first;

    in_vain(c);
    for (int i = 0; i < 2; i++)
        lab_enqueue(&c->lab, "grouped", .topic = c->topic,
                    .more = EXTRA(.group = "g", .group_len = 1));
    cr_assert_eq(look(c, &first), 0);
    in_vain(c);
    due_job_done(&first);
    expect(c, "grouped", "the next of its group");
}

WAY(is_over_when_the_next_of_a_group_may_run, of_a_group)

/* A look in vain has the descriptor set to the next deadline again. */
static void set_again(struct course *c)
{
    due_job job;

    in_vain(c);
    struct pollfd p = { .fd = due_fd(c->lab.q), .events = POLLIN };
    cr_assert_geq(p.fd, 0);
    lab_enqueue(&c->lab, "now", .topic = c->topic);
    cr_expect_eq(poll(&p, 1, 10000), 1, "a job is ready");
    expect(c, "now", "with a descriptor");
    cr_assert_eq(look(c, &job), DUE_EAGAIN);
    cr_expect_eq(poll(&p, 1, 0), 0, "nothing is ready");
    in_vain(c);
    int64_t at_ns = due_now(c->lab.q) + NEAR_NS;
    lab_enqueue(&c->lab, "soon", .topic = c->topic, .at_ns = at_ns);
    await(&c->lab, at_ns);
    cr_expect_eq(poll(&p, 1, 10000), 1, "another is ready");
    expect(c, "soon", "with a descriptor");
    in_vain(c);
    cr_expect_eq(poll(&p, 1, 0), 0, "nothing is ready again");
}

WAY(leaves_the_descriptor_as_it_should_be, set_again)

/* ---- What it is good for ---- */

/* Whoever holds the lock: nobody who looks in vain waits for it. */
Test(nothing_yet, needs_no_lock, .timeout = 60)
{
    for (int topics = 1; topics <= 2; topics++) {
        struct course c = { .lab = lab_open(.kernel = true) };
        struct due__tenure held;
        due_job job;

        if (topics == 2)
            lab_topic(&c.lab, "another");
        lab_enqueue(&c.lab, "far", .delay_ns = FAR_NS);
        in_vain(&c);
        due__enter(c.lab.q, &held);
        cr_expect_eq(due_dequeue(c.lab.q, &job, 0), DUE_EAGAIN);
        cr_expect_eq(take_some(c.lab.q, NULL, 0, &job, 1, 0), DUE_EAGAIN);
        due__tenure_end(c.lab.q, &held);
        cr_expect_eq(due_poll(c.lab.q, NULL), 0);
        lab_close(&c.lab);
    }
}

/* due_poll() says when, too, though nothing is there. */
LAB_TEST(nothing_yet, due_poll_says_when)
{
    struct lab lab = lab_open(.start_ns = 1000);
    struct course c = { .lab = lab };
    int64_t next;

    due_id id = lab_enqueue(&lab, "far", .at_ns = 5000);
    lab_enqueue(&lab, "farther", .at_ns = 7000);
    in_vain(&c);
    cr_expect_eq(due_poll(lab.q, &next), 0);
    cr_expect_eq(next, 5000);
    cr_expect_eq(due_cancel(lab.q, id, NULL), 0);
    cr_expect_eq(due_poll(lab.q, &next), 0);
    cr_expect_eq(next, 7000);
    lab_turn_to(&lab, 7000);
    cr_expect_eq(due_poll(lab.q, NULL), 1);
    cr_expect_str_eq(lab_dequeue(&lab), "farther");
    in_vain(&c);
    cr_expect_eq(due_poll(lab.q, &next), 0);
    cr_expect_eq(next, DUE_FOREVER);
    lab_close(&lab);
}
