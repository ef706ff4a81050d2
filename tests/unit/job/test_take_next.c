/* The next job in one tenure: what is due is told by the clock, whatever the counter says. */
#include "lab/lab.h"

#include "job/take_next.h"
#include "lab/take.h"
#include "queue/queue.h"

#define FAR_NS DUE_MS(500)

/* The counter says that a second has passed since the clock was looked at. */
static void lie(struct due_queue *q)
{
    q->counter = (struct due__counter){ .trusted = true,
                                        .at = due__counter_read() - (UINT64_C(1) << 22),
                                        .at_ns = due_now(q),
                                        .width = UINT64_MAX,
                                        .rate = UINT64_C(1) << 40 };
}

/* Takes, for good or on a lease, while the counter lies; a job may come only if the clock has come
 * to its deadline. */
static void expect_none_early_so(struct lab *lab, bool leased)
{
    due_job job;

    lie(lab->q);
    int rc = leased ? due_reserve(lab->q, &job, 0) : due_dequeue(lab->q, &job, 0);
    if (rc == DUE_EAGAIN)
        return;
    cr_assert_eq(rc, 0);
    cr_expect_leq(job.deadline_ns, due_now(lab->q), "early");
    if (leased)
        cr_expect_eq(due_ack(&job), 0);
    else
        due_job_done(&job);
}

static void expect_none_early(struct lab *lab)
{
    expect_none_early_so(lab, false);
    expect_none_early_so(lab, true);
}

Test(take_next, hands_out_nothing_early_though_the_counter_runs_ahead)
{
    struct lab lab = lab_open(.kernel = true);

    cr_assert(lab.q->short_takes);
    lab_enqueue(&lab, "later", .delay_ns = FAR_NS);
    for (int i = 0; i < 100; i++)
        expect_none_early(&lab);
    lab_close(&lab);
}

/* What was in the line and is not alive any more says nothing of what waits behind it. */
Test(take_next, hands_out_nothing_early_behind_what_was_cancelled_in_the_line)
{
    struct lab lab = lab_open(.kernel = true);

    for (int i = 0; i < 100; i++) {
        due_id ready = lab_enqueue(&lab, "now", .delay_ns = 0);

        lab_enqueue(&lab, "later", .delay_ns = FAR_NS);
        cr_assert_eq(due_cancel(lab.q, ready, NULL), 0);
        expect_none_early(&lab);
    }
    lab_close(&lab);
}

Test(take_next, tells_no_negative_lateness_though_the_counter_lags)
{
    struct lab lab = lab_open(.kernel = true);
    due_job job;

    lab_enqueue(&lab, "now", .delay_ns = 0);
    lie(lab.q);
    lab.q->counter.rate = 0;
    lab.q->counter.at_ns = 0;
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_geq(job.lateness_ns, 0);
    due_job_done(&job);
    lab_close(&lab);
}

/* When the lease of a job ends. */
static int64_t lease_end(struct due_queue *q, const due_job *job)
{
    uint32_t number;
    uint32_t generation;

    cr_assert(due__handle_read(job->place, &number, &generation));
    return due__load_relaxed(&due__job_at(&q->slab, number)->deadline_ns); /* J1 */
}

/* Reserves while the counter says what it may at worst. */
static void expect_whole_lease(struct lab *lab, size_t n, const char *how)
{
    struct due_queue *q = lab->q;
    due_take_options o = { DUE_TAKE_INIT, .lease_ns = q->lease_ns };
    due_job jobs[2];
    int64_t before = due_now(q);

    q->counter = (struct due__counter){ .trusted = true,
                                        .at = due__counter_read(),
                                        .at_ns = before - DUE__COUNTER_LAG_NS,
                                        .width = UINT64_MAX };
    int rc = n == 1 ? due_reserve(q, jobs, 0) : due_take(q, &o, jobs, n, 0);
    cr_assert_eq(rc, n == 1 ? 0 : (int)n, "%s: %d", how, rc);
    for (size_t i = 0; i < n; i++) {
        cr_expect_geq(lease_end(q, &jobs[i]), before + q->lease_ns, "%s: short", how);
        cr_expect_geq(jobs[i].lateness_ns, 0, "%s", how);
        cr_expect_eq(jobs[i].attempts, 1u);
    }
    cr_expect_eq(due_ack_batch(jobs, n, NULL), (int)n);
}

/* Whether it is taken from what is shown, or from the timeline; and at a place that had a lease
 * before, or the first. */
Test(take_next, begins_no_lease_that_is_shorter_than_it_was_asked_for)
{
    struct lab lab = lab_open(.kernel = true);

    for (int round = 0; round < 3; round++) {
        for (size_t n = 1; n <= 2; n++) {
            for (size_t i = 0; i < n; i++)
                lab_enqueue(&lab, "now", .delay_ns = 0);
            expect_whole_lease(&lab, n, "shown");
            for (size_t i = 0; i < n; i++)
                lab_enqueue(&lab, "soon", .at_ns = due_now(lab.q) + DUE_US(20));
            for (int64_t until = due_now(lab.q) + DUE_US(50); due_now(lab.q) < until;)
                continue;
            expect_whole_lease(&lab, n, "in the timeline");
        }
    }
    lab_close(&lab);
}

/* With several topics: whose turn it is, or of the one that is asked for, and no other. */
Test(take_next, serves_several_topics_in_one_tenure)
{
    struct lab lab = lab_open(.start_ns = 1);
    int topic = due_topic(lab.q, "other");
    struct due__wanted any = { .topics = NULL };
    struct due__wanted other = { .topics = &topic, .count = 1 };
    struct due__slot s;
    due_job job;

    lab_enqueue(&lab, "first", .at_ns = 1);
    lab_enqueue(&lab, "second", .at_ns = 1);
    lab_enqueue(&lab, "other", .at_ns = 1, .topic = topic);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(due__take_next(lab.q, &any, &s, &job), DUE__NEXT_DONE);
        cr_expect_eq(job.topic, i == 1 ? topic : 0, "job %d", i);
        due_job_done(&job);
    }
    lab_enqueue(&lab, "first", .at_ns = 1);
    cr_expect_eq(due__take_next(lab.q, &other, &s, &job), DUE__NEXT_NOTHING);
    lab_enqueue(&lab, "other", .at_ns = 1, .topic = topic);
    cr_assert_eq(due__take_next(lab.q, &other, &s, &job), DUE__NEXT_DONE);
    cr_expect_eq(job.topic, topic);
    due_job_done(&job);
    lab_close(&lab);
}

Test(take_next, takes_one_of_the_topics_that_are_there_and_no_other)
{
    struct lab lab = lab_open(.start_ns = 1);
    int topics[] = { 0, 7 };
    due_job job;

    lab_enqueue(&lab, "now", .at_ns = 1);
    cr_expect_eq(take_from(lab.q, topics, 2, &job, 0), DUE_EINVAL);
    cr_expect_eq(take_from(lab.q, NULL, 1, &job, 0), DUE_EINVAL);
    cr_expect_eq(take_from(lab.q, topics, 0, &job, 0), DUE_EINVAL);
    cr_assert_eq(take_from(lab.q, topics, 1, &job, 0), 0);
    due_job_done(&job);
    lab_close(&lab);
}

/* Where there is no short way, or the kernel does not tell its time by the counter, or the time is
 * not its, nobody looks at the counter. */
Test(take_next, says_whether_it_has_the_counter)
{
    struct lab kernel = lab_open(.kernel = true);
    struct lab turned = lab_open(.start_ns = 5);
    struct lab other = lab_open(.kernel = true, .with.clock = DUE_CLOCK_BOOTTIME);
    struct lab timed = lab_open(.kernel = true, .with.metrics = 1);

    cr_expect_eq(lab_stats(&kernel).counter, due__counter_trusted());
    cr_expect_eq(lab_stats(&turned).counter, 0u);
    cr_expect_eq(lab_stats(&other).counter, 0u);
    cr_expect_eq(lab_stats(&timed).counter, 0u);
    lab_close(&timed);
    lab_close(&other);
    lab_close(&turned);
    lab_close(&kernel);
}
