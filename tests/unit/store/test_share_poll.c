/* One queue for many processes: takes that do not wait at all. */
#include "lab/mall.h"
#include "store/share.h"

/* The proxy of the process has looked at everything there is. */
static void until_looked(struct mall *m, size_t i)
{
    for (int n = 0; n < 2; n++) { /* the first time it may be in the midst of it */
        uint64_t before = memory_store_calls(m->store[i], MEMORY_LISTEN);

        due__proxy_call(m->lab[i].q);
        memory_store_until(m->store[i], MEMORY_LISTEN, before + 1);
    }
}

/* Asks, lets the answer come, and asks again, for as long as that is not told otherwise. */
static int poll_leased(struct mall *m, due_job *jobs, size_t max, int64_t lease_ns)
{
    int rc = DUE_EAGAIN;

    for (int n = 0; n < 10 && rc == DUE_EAGAIN; n++) {
        rc = take_leased_some(m->lab[0].q, NULL, 0, jobs, max, lease_ns, 0);
        until_looked(m, 0);
    }
    return rc;
}

/* A job has come for who polls, and has lain there for more than an eighth of its lease when he
 * asks again: he has it, whether there is one or many. */
MALL_TEST(share_poll, has_a_job_that_has_lain_there_for_a_while)
{
    enum { JOBS = 20 };
    struct mall m = mall_make(1);
    int64_t now = 0;
    due_job job;

    for (int i = 0; i < JOBS; i++)
        lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    for (int i = 0; i < JOBS; i++) {
        cr_expect_eq(take_leased(m.lab[0].q, &job, 1000, 0), DUE_EAGAIN);
        until_looked(&m, 0);
        mall_turn_to(&m, now += 200);
        int rc = poll_leased(&m, &job, 1, 1000);
        cr_assert_eq(rc, 1, "%s", due_error_name(rc));
        cr_expect_eq(due_ack(&job), 0);
    }
    mall_close(&m);
}

/* It was claimed for a shorter lease than the one that is wanted now: it is claimed anew, for that,
 * and nobody is told that the store is away. */
MALL_TEST(share_poll, has_a_job_that_was_claimed_for_a_shorter_lease)
{
    static const int64_t longer[] = { 150, 1000, DUE_S(3600) };

    for (size_t i = 0; i < sizeof longer / sizeof longer[0]; i++) {
        struct mall m = mall_make(1);
        due_job job;

        lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
        cr_expect_eq(take_leased(m.lab[0].q, &job, 100, 0), DUE_EAGAIN);
        until_looked(&m, 0);
        int rc = poll_leased(&m, &job, 1, longer[i]);
        cr_assert_eq(rc, 1, "%s", due_error_name(rc));
        mall_turn_to(&m, longer[i] - longer[i] / 4 - 1); /* it is so long nobody else's */
        cr_expect_eq(due_extend(&job, 100), 0);
        cr_expect_eq(due_ack(&job), 0);
        mall_close(&m);
    }
}

/* Of several that have come, some have lain there for too long. */
MALL_TEST(share_poll, has_those_that_are_held_for_long_enough)
{
    struct mall m = mall_make(0);
    due_job jobs[4];

    mall_join(&m, (struct lab_options){ .with.prefetch_max = 8 });
    for (int i = 0; i < 4; i++)
        lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_expect_eq(take_leased(m.lab[0].q, &jobs[0], 100, 0), DUE_EAGAIN);
    until_looked(&m, 0);
    int had = 0;
    for (int n = 0; n < 20 && had < 4; n++) {
        int rc = poll_leased(&m, jobs + had, (size_t)(4 - had), 1000);

        cr_assert_gt(rc, 0, "%s", due_error_name(rc));
        had += rc;
    }
    cr_assert_eq(had, 4);
    mall_turn_to(&m, 700);
    cr_expect_eq(due_ack_batch(jobs, 4, NULL), 4);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

/* He looks so seldom that what has come for him has gone back when he does. */
static int poll_seldom(struct mall *m, int64_t *now_ns, due_job *jobs, size_t max, int64_t lease_ns)
{
    int rc = DUE_EAGAIN;

    for (int n = 0; n < 4 && rc == DUE_EAGAIN; n++) {
        until_looked(m, 0);
        mall_turn_to(m, *now_ns += DUE_S(10));
        until_looked(m, 0);
        rc = take_leased_some(m->lab[0].q, NULL, 0, jobs, max, lease_ns, 0);
    }
    return rc;
}

static void have_seldom(int n, int64_t lease_ns, const due_extra *more)
{
    struct mall m = mall_make(0);
    int64_t now = 0;
    due_job job;

    mall_join(&m, (struct lab_options){ .with.prefetch_max = 8 });
    cr_expect_eq(take_leased(m.lab[0].q, &job, lease_ns, 0), DUE_EAGAIN);
    for (int i = 0; i < n; i++)
        lab_enqueue(&m.lab[0], "tea", .delay_ns = 0, .more = more);
    for (int i = 0; i < n; i++) {
        int rc = poll_seldom(&m, &now, &job, 1, lease_ns);

        cr_assert_eq(rc, 1, "job %d: %s", i, due_error_name(rc));
        cr_expect_leq(job.attempts, 1u);
        if (lease_ns > 0)
            cr_expect_eq(due_ack(&job), 0);
        else
            due_job_done(&job);
    }
    cr_expect_eq(poll_seldom(&m, &now, &job, 1, lease_ns), DUE_EAGAIN);
    mall_close(&m);
}

MALL_TEST(share_poll, has_its_jobs_however_seldom_it_is_made)
{
    static const due_retry twice = { .kind = DUE_RETRY_FIXED, .attempts_max = 2 };
    const due_extra limited = { DUE_EXTRA_INIT, .retry = &twice };

    for (int n = 1; n <= 20; n += 19) {
        have_seldom(n, 0, NULL);
        have_seldom(n, 1000, NULL);
        have_seldom(n, DUE_S(3600), NULL);
        have_seldom(n, DUE_S(3600), &limited);
    }
}

/* What lies there for who looks now and then is not kept from who waits. */
MALL_TEST(share_poll, that_is_seldom_made_leaves_the_job_to_who_waits)
{
    struct mall m = mall_make(2);
    due_job job;

    lab_enqueue(&m.lab[1], "tea", .delay_ns = 0);
    cr_expect_eq(take_leased(m.lab[0].q, &job, DUE_S(3600), 0), DUE_EAGAIN);
    until_looked(&m, 0);
    mall_turn_to(&m, DUE_S(3));
    until_looked(&m, 0);
    cr_assert_eq(mall_reserve(&m, 1, &job, 1000), 0);
    cr_expect_eq(due_ack(&job), 0);
    mall_close(&m);
}
