/* Giving a queue back. */
#include "lab/lab.h"

#include "job/handover.h"
#include "job/take_next.h"
#include "queue/queue.h"

#include <fcntl.h>

Test(free, of_nothing_is_allowed)
{
    cr_expect_eq(due_free(NULL), 0);
}

LAB_TEST(free, refuses_an_open_queue_and_leaves_it_working)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "job", .delay_ns = 0);
    cr_expect_eq(due_free(lab.q), DUE_EBUSY);
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    lab_close(&lab);
}

LAB_TEST(free, refuses_a_queue_that_still_drains)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "job", .delay_ns = 5);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    cr_expect_eq(due_free(lab.q), DUE_EBUSY);
    lab_advance(&lab, 5);
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    lab_close(&lab);
}

LAB_TEST(free, refuses_while_a_job_is_lent)
{
    struct lab lab = lab_open();
    due_job job;

    lab_enqueue(&lab, "job", .delay_ns = 0);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(due_free(lab.q), DUE_EBUSY);
    cr_expect_str_eq(lab_text(&lab, &job), "job");
    lab_close(&lab);
}

LAB_TEST(free, closes_the_descriptor)
{
    struct lab lab = lab_open();
    int fd = due_fd(lab.q);

    cr_assert_geq(fd, 0);
    lab_close(&lab);
    cr_expect_eq(fcntl(fd, F_GETFD), -1);
}

LAB_TEST(free, ends_every_thread_of_the_queue)
{
    unsigned before = crew_threads();
    struct lab lab = lab_open();

    lab_enqueue(&lab, "job", .delay_ns = 5);
    lab_close(&lab);
    cr_expect_eq(crew_threads(), before);
}

LAB_TEST(free, gives_back_everything_after_hard_use)
{
    static const char large[] = "a payload that does not fit into the thirty-two bytes of a job";
    struct lab lab = lab_open();
    uint64_t seed = 4;

    for (int i = 0; i < 20000; i++) {
        int topic = lab_topic(&lab, i % 3 == 0 ? "a" : "b");
        due_id id = lab_enqueue(&lab, i % 2 == 0 ? large : "small", .topic = topic,
                                .delay_ns = (int64_t)crew_below(&seed, 1000000));

        if (i % 3 == 0)
            cr_assert_eq(due_cancel(lab.q, id, NULL), 0);
        if (i % 7 == 0)
            lab_advance(&lab, 300);
        if (i % 5 == 0)
            lab_dequeue(&lab);
    }
    lab_close(&lab);
}

/* A lease that has ended is seen to by who turns the clock, and its job discarded. */
struct turner {
    due_queue *q;
    due_clock *clock;
    atomic_bool shown;
    atomic_bool go_on;
    atomic_bool freed;
};

static void show(void *ctx, const due_job *job)
{
    struct turner *it = ctx;

    (void)job;
    atomic_store(&it->shown, true);
    while (!atomic_load(&it->go_on))
        crew_sleep(DUE_US(100));
}

static int turn_it(void *arg)
{
    struct turner *it = arg;

    return due_clock_advance(it->clock, 100);
}

static int free_it(void *arg)
{
    struct turner *it = arg;
    int rc = due_free(it->q);

    atomic_store(&it->freed, true);
    return rc;
}

Test(free, waits_for_who_turns_the_clock_and_discards, .timeout = 60)
{
    struct turner it = { .clock = due_clock_manual(1) };
    due_options o = { DUE_OPTIONS_INIT, .manual = it.clock, .on_discard = show, .ctx = &it,
                      .lease_ns = 50 };
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3, .at_ns = 1 };
    struct crew_thread turner;
    struct crew_thread owner;
    due_job job;

    cr_assert_eq(due_open(&it.q, &o, NULL), 0);
    cr_assert_geq(due_topic(it.q, "another"), 0);
    cr_assert_eq(due_enqueue(it.q, &spec, 0, NULL), 0);
    cr_assert_eq(due_reserve(it.q, &job, 0), 0);
    due_job_done(&job);
    cr_assert_eq(due_close(it.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    crew_go(&turner, turn_it, &it);
    while (!atomic_load(&it.shown))
        crew_sleep(DUE_US(100));
    crew_go(&owner, free_it, &it);
    crew_sleep(DUE_MS(5));
    cr_expect_not(atomic_load(&it.freed));
    atomic_store(&it.go_on, true);
    cr_expect_eq(crew_join(&turner), 0);
    cr_expect_eq(crew_join(&owner), 0);
    cr_expect_eq(due_clock_free(it.clock), 0);
}

/* A queue that could not be freed has its clock still. */
LAB_TEST(free, that_is_refused_leaves_the_clock_to_the_queue)
{
    struct lab lab = lab_open();
    due_job job;

    lab_topic(&lab, "another");
    lab_enqueue(&lab, "lent", .delay_ns = 0);
    lab_enqueue(&lab, "late", .delay_ns = 0);
    cr_assert_eq(lab_take(&lab, &job), 0);
    due_job held;
    cr_assert_eq(lab_reserve(&lab, &held, 50), 0);
    due_job_done(&held);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(due_free(lab.q), DUE_EBUSY);
    lab_advance(&lab, 50);
    cr_expect_eq(atomic_load(&lab.state->discarded), 1u, "who turns the clock sees to it");
    cr_expect_str_eq(lab_text(&lab, &job), "lent");
    lab_close(&lab);
}

/* Whoever does not wait is not counted as inside; but his job has come, and has not gone. */
LAB_TEST(free, is_refused_while_somebody_is_about_to_have_a_job)
{
    struct lab lab = lab_open(.start_ns = 5);
    const struct due__wanted any = { .topics = NULL };
    struct due__slot s;
    due_job job;

    for (int others = 0; others < 3; others++)
        lab_enqueue(&lab, "another", .at_ns = 9);
    lab_enqueue(&lab, "tea", .at_ns = 5, .more = EXTRA(.headers = "h", .headers_len = 1));
    if (due__take_next(lab.q, &any, &s, &job) == DUE__NEXT_TAKEN) {
        cr_assert_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
        cr_expect_eq(due_free(lab.q), DUE_EBUSY);
        due__hand_over(lab.q, &s, 1, 0, &job);
        cr_expect_eq(due_free(lab.q), DUE_EBUSY);
        due_job_done(&job);
    }
    lab_close(&lab);
}
