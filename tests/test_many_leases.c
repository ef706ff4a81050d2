/* A hundred thousand leases that end at once: nobody is held up by them for long, and none of the
 * jobs is lost. */
#include <stdio.h>

#include "workers_lab.h"

#define JOBS  100000u
#define BATCH 500u

/* What is meant is 10 ms; a test must also hold on a busy machine, and under sanitizers. */
#define MEANT DUE_MS(10)
#define BOUND DUE_S(2)

static void put_all(struct lab *lab, int topic)
{
    due_spec specs[BATCH];

    for (size_t i = 0; i < BATCH; i++)
        specs[i] = (due_spec){ DUE_SPEC_INIT, .topic = topic };
    for (size_t n = 0; n < JOBS; n += BATCH)
        cr_assert_eq(due_enqueue_batch(lab->q, specs, BATCH, 0, NULL), (int)BATCH);
}

/* Each on a lease that ends at @end_ns, held by nobody. */
static void reserve_all(struct lab *lab, int topic, int64_t end_ns)
{
    due_job jobs[BATCH];

    for (size_t n = 0; n < JOBS;) {
        int64_t lease = end_ns - due_now(lab->q);

        cr_assert_gt(lease, 0, "reserving took too long for this test");
        int got = due_reserve_batch(lab->q, &topic, 1, jobs, BATCH, lease, DUE_FOREVER);
        cr_assert_gt(got, 0, "%s", due_error_name(got));
        n += (size_t)got;
        for (int i = 0; i < got; i++)
            due_job_done(&jobs[i]);
    }
}

/* All of them come again, once, as jobs that have failed. */
static void take_all(struct lab *lab, int topic)
{
    due_job jobs[BATCH];
    size_t n = 0;
    int got;

    while ((got = due_reserve_batch(lab->q, &topic, 1, jobs, BATCH, DUE_S(600), 0)) > 0) {
        n += (size_t)got;
        for (int i = 0; i < got; i++) {
            cr_assert_eq(jobs[i].attempts, 2u);
            cr_assert_eq(jobs[i].failures, 1u);
        }
        cr_assert_eq(due_ack_batch(jobs, (size_t)got, NULL), got);
    }
    cr_expect_eq(got, DUE_EAGAIN, "%s", due_error_name(got));
    cr_expect_eq(n, JOBS);
    struct due_stats s = lab_stats(lab);
    cr_expect_eq(s.lapsed, (uint64_t)JOBS);
    cr_expect_eq(s.leased, 0u);
}

LAB_TEST(many_leases, that_end_at_once_come_again_once_each_and_let_others_through)
{
    struct lab lab = lab_open();
    int stalled = lab_topic(&lab, "stalled");
    int fresh = lab_topic(&lab, "fresh");

    put_all(&lab, stalled);
    reserve_all(&lab, stalled, 1000);
    lab_enqueue(&lab, "tea", .topic = fresh, .at_ns = 1001);
    cr_expect_eq(lab_stats(&lab).leased, (uint64_t)JOBS);
    lab_turn_to(&lab, 1001);
    cr_expect_str_eq(lab_dequeue_from(&lab, fresh), "tea");
    take_all(&lab, stalled);
    lab_close(&lab);
}

struct late {
    atomic_llong ns; /* -1: not yet */
};

static due_answer note(void *ctx, const due_job *job)
{
    struct late *late = ctx;

    atomic_store(&late->ns, job->lateness_ns);
    return due_done();
}

/* How late a job is that falls due right after @leases ended; its handlers have nothing to do. */
static int64_t late_after(bool leases)
{
    struct lab lab = lab_open(.kernel = true);
    int stalled = lab_topic(&lab, "stalled");
    int fresh = lab_topic(&lab, "fresh");
    struct late late = { .ns = -1 };
    due_workers *pool;

    int rc = due_workers_start(&pool, lab.q, &fresh, 1, 2, note, &late, NULL);
    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    if (leases)
        put_all(&lab, stalled);
    int64_t end = due_now(lab.q) + (leases ? DUE_S(2) : DUE_MS(50));
    if (leases)
        reserve_all(&lab, stalled, end);
    lab_enqueue(&lab, "tea", .topic = fresh, .at_ns = end + DUE_US(100));
    while (atomic_load(&late.ns) < 0)
        crew_sleep(DUE_MS(1)); /* leaves the processor to those who are measured */
    if (leases)
        take_all(&lab, stalled);
    cr_expect_eq(due_workers_stop(pool, DUE_FOREVER), 0);
    cr_expect_eq(due_workers_free(pool), 0);
    lab_close(&lab);
    return atomic_load(&late.ns);
}

Test(many_leases, that_end_at_once_hold_up_a_new_job_by_little, .timeout = 60)
{
    int64_t alone = late_after(false);
    int64_t after = late_after(true);

    fprintf(stderr, "many_leases: late by %lld us alone, %lld us after %u leases (meant: %lld)\n",
            (long long)alone / 1000, (long long)after / 1000, JOBS, (long long)MEANT / 1000);
    cr_expect_lt(after, BOUND, "%lld us", (long long)after / 1000);
}
