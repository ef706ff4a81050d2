/* The next job in one tenure: what is due is told by the clock, whatever the counter says. */
#include "lab/lab.h"

#include "job/claim.h"
#include "job/take_next.h"
#include "lab/take.h"
#include "queue/counts.h"
#include "queue/queue.h"

#define FAR_NS DUE_MS(500)

static void set_counter(struct due_queue *q, struct due__counter counter)
{
    due__lock_acquire(&q->lock);
    q->counter = counter;
    due__lock_release(&q->lock);
}

/* The counter says that a second has passed since the clock was looked at. */
static void lie(struct due_queue *q)
{
    set_counter(q, (struct due__counter){ .trusted = true,
                                          .at = due__counter_read() - (UINT64_C(1) << 22),
                                          .at_ns = due_now(q),
                                          .width = UINT64_MAX,
                                          .rate = UINT64_C(1) << 40 });
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
    set_counter(lab.q, (struct due__counter){ .trusted = true,
                                              .at = due__counter_read() - (UINT64_C(1) << 22),
                                              .width = UINT64_MAX });
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

    set_counter(q, (struct due__counter){ .trusted = true,
                                          .at = due__counter_read(),
                                          .at_ns = before - DUE__COUNTER_LAG_NS,
                                          .width = UINT64_MAX });
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

/* ---- When it is told, and when the usual way is to be gone ---- */

struct situation {
    const char *name;
    void (*make)(struct lab *lab);
    enum due__next take;
    enum due__next reserve;
    size_t wanted; /* 1: of the topic "other" alone */
};

static const due_retry thrice = { .kind = DUE_RETRY_FIXED, .attempts_max = 3 };

static void nothing(struct lab *lab)
{
    (void)lab;
}

static void later(struct lab *lab)
{
    lab_enqueue(lab, "later", .at_ns = 101);
}

static void now(struct lab *lab)
{
    lab_enqueue(lab, "now", .at_ns = 100);
}

static void first(struct lab *lab)
{
    now(lab);
}

static void now_and_later(struct lab *lab)
{
    now(lab);
    later(lab);
}

static void with_headers(struct lab *lab)
{
    lab_enqueue(lab, "now", .at_ns = 100, .more = EXTRA(.headers = "h", .headers_len = 1));
}

static void apart(struct lab *lab)
{
    static const char text[] = "a text that has a block of its own as it is far too long for one";

    lab_enqueue(lab, text, .at_ns = 100);
}

static void in_line(struct lab *lab)
{
    now(lab);
    cr_assert_eq(due_poll(lab->q, NULL), 1);
}

static void paused(struct lab *lab)
{
    now(lab);
    cr_assert_eq(due_pause(lab->q, 0), 0);
}

static void limited(struct lab *lab)
{
    now(lab);
    cr_assert_eq(due_topic_limit(lab->q, 0, 1), 0);
}

static void with_attempts(struct lab *lab)
{
    now(lab);
    cr_assert_eq(due_topic_retry(lab->q, 0, &thrice), 0);
}

static void gone_before(struct lab *lab)
{
    due_id id = lab_enqueue(lab, "gone", .at_ns = 99);

    now(lab);
    cr_assert_eq(due_cancel(lab->q, id, NULL), 0);
}

static void gone_before_later(struct lab *lab)
{
    due_id id = lab_enqueue(lab, "gone", .at_ns = 99);

    later(lab);
    cr_assert_eq(due_cancel(lab->q, id, NULL), 0);
}

static void held(struct lab *lab)
{
    due_job job;

    now(lab);
    cr_assert_eq(take_leased(lab->q, &job, 50, 0), 0);
    due_job_done(&job); /* and its lease goes on */
}

static void failed(struct lab *lab)
{
    due_job job;

    now(lab);
    cr_assert_eq(take_leased(lab->q, &job, 50, 0), 0);
    cr_assert_eq(due_nack(&job, 0), 0);
}

static void closed(struct lab *lab)
{
    cr_assert_eq(due_close(lab->q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
}

static int other(struct lab *lab)
{
    return lab_topic(lab, "other");
}

static void of_other(struct lab *lab)
{
    lab_enqueue(lab, "other", .at_ns = 100, .topic = other(lab));
}

static void other_later(struct lab *lab)
{
    lab_enqueue(lab, "other", .at_ns = 101, .topic = other(lab));
}

static void of_both(struct lab *lab)
{
    now(lab);
    of_other(lab);
}

static void of_the_first(struct lab *lab)
{
    (void)other(lab);
    now(lab);
}

static void other_paused(struct lab *lab)
{
    of_other(lab);
    cr_assert_eq(due_pause(lab->q, other(lab)), 0);
}

static void other_with_headers(struct lab *lab)
{
    lab_enqueue(lab, "other", .at_ns = 100, .topic = other(lab),
                .more = EXTRA(.headers = "h", .headers_len = 1));
}

static const struct situation situations[] = {
    { "nothing", nothing, DUE__NEXT_NOTHING, DUE__NEXT_NOTHING, 0 },
    { "later", later, DUE__NEXT_NOTHING, DUE__NEXT_NOTHING, 0 },
    { "now", now, DUE__NEXT_DONE, DUE__NEXT_DONE, 0 },
    { "the first", first, DUE__NEXT_DONE, DUE__NEXT_TAKEN, 0 },
    { "now and later", now_and_later, DUE__NEXT_DONE, DUE__NEXT_DONE, 0 },
    { "with headers", with_headers, DUE__NEXT_TAKEN, DUE__NEXT_TAKEN, 0 },
    { "apart", apart, DUE__NEXT_DONE, DUE__NEXT_DONE, 0 },
    { "in the line", in_line, DUE__NEXT_DONE, DUE__NEXT_DONE, 0 },
    { "paused", paused, DUE__NEXT_ASK, DUE__NEXT_ASK, 0 },
    { "limited", limited, DUE__NEXT_ASK, DUE__NEXT_ASK, 0 },
    { "with attempts", with_attempts, DUE__NEXT_DONE, DUE__NEXT_TAKEN, 0 },
    { "gone before", gone_before, DUE__NEXT_DONE, DUE__NEXT_DONE, 0 },
    { "gone before later", gone_before_later, DUE__NEXT_ASK, DUE__NEXT_ASK, 0 },
    { "held", held, DUE__NEXT_NOTHING, DUE__NEXT_NOTHING, 0 },
    { "failed", failed, DUE__NEXT_TAKEN, DUE__NEXT_TAKEN, 0 },
    { "closed", closed, DUE__NEXT_ASK, DUE__NEXT_ASK, 0 },
    { "of other", of_other, DUE__NEXT_DONE, DUE__NEXT_DONE, 0 },
    { "of other, which is wanted", of_other, DUE__NEXT_DONE, DUE__NEXT_DONE, 1 },
    { "other later", other_later, DUE__NEXT_NOTHING, DUE__NEXT_NOTHING, 0 },
    { "of both", of_both, DUE__NEXT_DONE, DUE__NEXT_DONE, 0 },
    { "of both, one wanted", of_both, DUE__NEXT_DONE, DUE__NEXT_DONE, 1 },
    { "of the first", of_the_first, DUE__NEXT_DONE, DUE__NEXT_DONE, 0 },
    { "of the first, other wanted", of_the_first, DUE__NEXT_NOTHING, DUE__NEXT_NOTHING, 1 },
    { "other paused", other_paused, DUE__NEXT_NOTHING, DUE__NEXT_NOTHING, 1 },
    { "other with headers", other_with_headers, DUE__NEXT_TAKEN, DUE__NEXT_TAKEN, 1 },
};

static void expect_next(const struct situation *it, bool leased)
{
    struct lab lab = lab_open(.start_ns = 100);
    struct due__slot s = { 0, 0 };
    due_job job = { .queue = NULL };
    int64_t at = 7;
    int topic = 1;
    struct due__wanted wanted = { .topics = it->wanted ? &topic : NULL, .count = it->wanted };

    if (it->make != first) { /* there are places for leases */
        now(&lab);
        cr_assert_eq(take_leased(lab.q, &job, 50, 0), 0);
        cr_assert_eq(due_ack(&job), 0);
    }
    it->make(&lab);
    uint64_t waiting = due__waiting(lab.q);
    enum due__next expected = leased ? it->reserve : it->take;
    enum due__next next = leased ? due__reserve_next(lab.q, &wanted, 50, &s, &at, &job)
                                 : due__take_next(lab.q, &wanted, &s, &job);
    cr_expect_eq(next, expected, "%s, leased %d: %d", it->name, leased, (int)next);
    bool got = next == DUE__NEXT_DONE || next == DUE__NEXT_TAKEN;
    if (next == DUE__NEXT_DONE) {
        cr_expect_eq(job.deadline_ns, 100, "%s", it->name);
        cr_expect_eq(job.lateness_ns, 0, "%s", it->name);
        cr_expect_eq(job.topic, it->wanted ? 1 : job.topic, "%s", it->name);
        if (leased)
            cr_expect_eq(due_ack(&job), 0, "%s", it->name);
        else
            due_job_done(&job);
    } else if (next == DUE__NEXT_TAKEN) {
        due__put_back(lab.q, &s, 1);
        got = false;
    }
    cr_expect_eq(due__waiting(lab.q), waiting - got, "%s", it->name);
    lab_close(&lab);
}

Test(take_next, tells_what_it_can_and_leaves_the_rest_to_the_usual_way, .timeout = 60)
{
    for (size_t i = 0; i < sizeof situations / sizeof situations[0]; i++) {
        expect_next(&situations[i], false);
        expect_next(&situations[i], true);
    }
}
