/* A hundred thousand leases that end at once: nobody is held up by them for long, and none of the
 * jobs is lost. */
#include <stdio.h>
#include <stdlib.h>

#include "lab/workers_lab.h"
#include "lab/take.h"

#define JOBS  100000u
#define BATCH 500u

/* What is meant is 10 ms.  The best of five runs is held to what a busy machine keeps too, and what
 * costs twenty times as much does not. */
#define MEANT DUE_MS(10)
#define RUNS  5
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(CRITERION_LIKE_H)
#define SLOW 1
#elif defined(__has_feature)
#define SLOW (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SLOW 0
#endif
#define BOUND (SLOW ? DUE_S(2) : DUE_MS(100))

static void put_all(struct lab *lab, int topic)
{
    due_spec specs[BATCH];

    for (size_t i = 0; i < BATCH; i++)
        specs[i] = (due_spec){ DUE_SPEC_INIT, .topic = topic };
    for (size_t n = 0; n < JOBS; n += BATCH)
        cr_assert_eq(due_enqueue_batch(lab->q, specs, BATCH, 0, NULL), (int)BATCH);
}

/* Each on a lease that ends at @end_ns, held by nobody.  False: it was too late for that. */
static bool reserve_all(struct lab *lab, int topic, int64_t end_ns)
{
    due_job jobs[BATCH];

    for (size_t n = 0; n < JOBS;) {
        int64_t lease = end_ns - due_now(lab->q);

        if (lease <= 0)
            return false;
        int got = take_leased_some(lab->q, &topic, 1, jobs, BATCH, lease, DUE_FOREVER);
        cr_assert_gt(got, 0, "%s", due_error_name(got));
        n += (size_t)got;
        for (int i = 0; i < got; i++)
            due_job_done(&jobs[i]);
    }
    return true;
}

/* All of them come again, once, as jobs that have failed.  On the kernel's clock some leases end
 * later, by what the machine held us up while we asked for them. */
static void take_all(struct lab *lab, int topic)
{
    int64_t patience = lab->clock == NULL ? DUE_S(20) : 0;
    due_job jobs[BATCH];
    size_t n = 0;
    int got;

    while ((got = take_leased_some(lab->q, &topic, 1, jobs, BATCH, DUE_S(600),
                                   n < JOBS ? patience : 0)) > 0) {
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
    cr_assert(reserve_all(&lab, stalled, 1000));
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

static void note(void *ctx, const due_job *job, due_answer *answer)
{
    struct late *late = ctx;

    atomic_store(&late->ns, job->lateness_ns);
    *answer = due_answer_ack();
}

/* How late a job is that falls due in @ahead_ns, right after @leases ended; its handlers have
 * nothing to do.  -1: so many cannot be reserved in that time. */
static int64_t late_after(bool leases, int64_t ahead_ns)
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
    int64_t end = due_now(lab.q) + ahead_ns;
    bool in_time = !leases || reserve_all(&lab, stalled, end);
    if (in_time) {
        lab_enqueue(&lab, "tea", .topic = fresh, .at_ns = end + DUE_US(100));
        while (atomic_load(&late.ns) < 0)
            crew_sleep(DUE_MS(1)); /* leaves the processor to those who are measured */
        if (leases)
            take_all(&lab, stalled);
    }
    cr_expect_eq(due_workers_stop(pool, DUE_FOREVER), 0);
    cr_expect_eq(due_workers_free(pool), 0);
    lab_close(&lab);
    return atomic_load(&late.ns);
}

/* The same, with as much time as this machine needs. */
static int64_t late_after_leases(void)
{
    int64_t late;

    for (int64_t ahead_ns = DUE_MS(500); (late = late_after(true, ahead_ns)) < 0; ahead_ns *= 2)
        continue;
    return late;
}

static int by_time(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;

    return (*x > *y) - (*x < *y);
}

Test(many_leases, that_end_at_once_hold_up_a_new_job_by_little, .timeout = 120)
{
    int64_t alone = late_after(false, DUE_MS(50));
    int64_t after[RUNS];

    for (int i = 0; i < RUNS; i++)
        after[i] = late_after_leases();
    qsort(after, RUNS, sizeof after[0], by_time);
    fprintf(stderr,
            "many_leases: late by %lld us alone, after %u leases by %lld at best, %lld in the "
            "median, %lld at worst (meant: %lld)\n",
            (long long)alone / 1000, JOBS, (long long)after[0] / 1000,
            (long long)after[RUNS / 2] / 1000, (long long)after[RUNS - 1] / 1000,
            (long long)MEANT / 1000);
    cr_expect_lt(after[0], BOUND, "%lld us", (long long)after[0] / 1000);
}
