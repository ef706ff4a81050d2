/* The figures. */
#include "lab/lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "due/metrics.h"
#include "lab/exposition.h"
#include "os/atomic.h"
#include "queue/queue.h"

LAB_TEST(stats, of_a_new_queue_are_zero)
{
    struct lab lab = lab_open();
    struct due_stats s = lab_stats(&lab);

    cr_expect_eq(s.enqueued + s.dequeued + s.cancelled + s.discarded, 0u);
    cr_expect_eq(s.waiting + s.ready + s.lent, 0u);
    cr_expect_eq(s.mended, 0u);
    lab_close(&lab);
}

/* DelayQueue, A9: counts follow every way in and out */
LAB_TEST(stats, follow_every_way_in_and_out)
{
    struct lab lab = lab_open();
    due_job job;

    due_id cancelled = lab_enqueue(&lab, "cancelled", .at_ns = 1);
    lab_enqueue(&lab, "taken", .at_ns = 1);
    lab_enqueue(&lab, "lent", .at_ns = 2);
    lab_enqueue(&lab, "cleared", .at_ns = 100);
    lab_turn_to(&lab, 50);
    cr_expect_eq(due_cancel(lab.q, cancelled, NULL), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "taken");
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);

    struct due_stats s = lab_stats(&lab);
    cr_expect_eq(s.enqueued, 4u);
    cr_expect_eq(s.cancelled, 1u);
    cr_expect_eq(s.dequeued, 2u);
    cr_expect_eq(s.lent, 1u);
    cr_expect_eq(s.waiting, 1u);
    cr_expect_eq(s.discarded, 0u);

    cr_expect_eq(due_clear(lab.q, 0, NULL), 0);
    due_job_done(&job);
    s = lab_stats(&lab);
    cr_expect_eq(s.discarded, 1u);
    cr_expect_eq(s.lent, 0u);
    cr_expect_eq(s.waiting, 0u);
    lab_close(&lab);
}

LAB_TEST(stats, count_what_is_ready)
{
    struct lab lab = lab_open();

    for (int i = 0; i < 10; i++)
        lab_enqueue(&lab, "job", .at_ns = 1 + i);
    cr_expect_eq(lab_stats(&lab).ready, 0u);
    lab_turn_to(&lab, 4);
    cr_expect_eq(lab_stats(&lab).ready, 4u);
    cr_expect_eq(lab_stats(&lab).waiting, 10u);
    lab_dequeue(&lab);
    cr_expect_eq(lab_stats(&lab).ready, 3u);
    lab_close(&lab);
}

LAB_TEST(stats, count_ready_jobs_that_go_otherwise)
{
    struct lab lab = lab_open();
    due_id id[4];

    for (int i = 0; i < 4; i++)
        id[i] = lab_enqueue(&lab, "job", .delay_ns = 0);
    due_poll(lab.q, NULL);
    cr_expect_eq(lab_stats(&lab).ready, 4u);
    cr_expect_eq(due_cancel(lab.q, id[0], NULL), 0);
    cr_expect_eq(lab_stats(&lab).ready, 3u);
    cr_expect_eq(due_reschedule(lab.q, id[1], 100), 0);
    cr_expect_eq(lab_stats(&lab).ready, 2u);
    cr_expect_eq(due_promote(lab.q, id[1]), 0);
    cr_expect_eq(lab_stats(&lab).ready, 3u);
    cr_expect_eq(due_clear(lab.q, 0, NULL), 0);
    cr_expect_eq(lab_stats(&lab).ready, 0u);
    lab_close(&lab);
}

LAB_TEST(stats, count_a_lent_job_that_was_cancelled)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "job", .delay_ns = 5);
    due_job job;

    cr_assert_eq(due_cancel(lab.q, id, &job), 0);
    cr_expect_eq(lab_stats(&lab).lent, 1u);
    cr_expect_eq(lab_stats(&lab).waiting, 0u);
    due_job_done(&job);
    cr_expect_eq(lab_stats(&lab).lent, 0u);
    lab_close(&lab);
}

LAB_TEST(stats, tell_who_sorted_each_job_in)
{
    struct lab lab = lab_open();

    for (int i = 0; i < 1000; i++)
        lab_enqueue(&lab, "job", .delay_ns = 1 + i);
    due_poll(lab.q, NULL);
    struct due_stats s = lab_stats(&lab);
    cr_expect_eq(s.direct + s.delegated, 1000u, "%ju and %ju", (uintmax_t)s.direct,
                 (uintmax_t)s.delegated);
    if (lab_proxies == DUE_PROXIES_ALWAYS)
        cr_expect_eq(s.direct, 0u);
    else if (lab_proxies == DUE_PROXIES_NEVER)
        cr_expect_eq(s.delegated, 0u, "one thread alone has nobody to leave a job to");
    else /* the worker proxy may be at work in the queue at any moment */
        cr_expect_gt(s.direct, 0u);
    lab_close(&lab);
}

LAB_TEST(stats, do_not_change_for_what_was_refused)
{
    struct lab lab = lab_open();
    due_spec wrong = { DUE_SPEC_INIT, .delay_ns = -1 };

    for (int i = 0; i < 100; i++)
        cr_expect_eq(due_enqueue(lab.q, &wrong, 0, NULL), DUE_EINVAL);
    struct due_stats s = lab_stats(&lab);
    cr_expect_eq(s.enqueued, 0u);
    cr_expect_eq(s.waiting, 0u);
    lab_close(&lab);
}

/* A4: many jobs come and go; what is left is little */
LAB_TEST(stats, show_memory_that_trim_has_given_back)
{
    enum { JOBS = 50000 };
    struct lab lab = lab_open();
    static due_id id[JOBS];

    for (int i = 0; i < JOBS; i++)
        id[i] = lab_enqueue(&lab, NULL, .delay_ns = 1 + i);
    due_poll(lab.q, NULL);
    cr_expect_geq(lab_stats(&lab).slots, JOBS);
    cr_expect_gt(lab_stats(&lab).memory_bytes, (size_t)JOBS * 16);
    cr_expect_eq(due_cancel_batch(lab.q, id, JOBS, NULL), JOBS);
    cr_expect_eq(due_trim(lab.q), 0);
    cr_expect_leq(lab_stats(&lab).slots, 100u, "%ju slots", (uintmax_t)lab_stats(&lab).slots);
    lab_enqueue(&lab, "still works", .delay_ns = 0);
    cr_expect_str_eq(lab_dequeue(&lab), "still works");
    lab_close(&lab);
}

static size_t resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    unsigned long pages = 0;

    cr_assert_not_null(f);
    cr_assert_eq(fscanf(f, "%*u %lu", &pages), 1);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* A4, J2: without an allocator of the user's, pages go back to the kernel */
Test(stats, show_nothing_that_the_kernel_has_not_got_back_after_trim, .timeout = 60)
{
    enum { JOBS = 300000 };
    static due_id id[JOBS];
    due_options options = { DUE_OPTIONS_INIT, .proxies = DUE_PROXIES_NEVER };
    due_spec spec = { DUE_SPEC_INIT, .data = "thirty-two bytes at the very most", .len = 32 };
    due_queue *q;

    memset(id, 1, sizeof id);
    cr_assert_eq(due_open(&q, &options, NULL), 0);
    size_t before = resident_bytes();
    for (int i = 0; i < JOBS; i++) {
        spec.delay_ns = DUE_S(1000) + (int64_t)i * 7919 % JOBS * DUE_MS(1);
        cr_assert_eq(due_enqueue(q, &spec, 0, &id[i]), 0);
    }
    size_t grown = resident_bytes() - before;
    cr_expect_eq(due_cancel_batch(q, id, JOBS, NULL), JOBS);
    cr_expect_eq(due_trim(q), 0);
    size_t left = resident_bytes() > before ? resident_bytes() - before : 0;
#ifndef __SANITIZE_ADDRESS__ /* its shadow of the pages stays */
    cr_expect_leq(left, grown / 10, "%zu of %zu bytes are left", left, grown);
#else
    cr_expect_leq(left, grown / 3, "%zu of %zu bytes are left", left, grown);
#endif
    cr_expect_leq(grown, (size_t)JOBS * 100, "%zu bytes a job", grown / JOBS);
    cr_expect_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(due_free(q), 0);
}

/* A job that is taken and found to be too old was ready, and is not any more. */
LAB_TEST(stats, do_not_count_as_ready_what_has_died_of_age)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "tea", .at_ns = 10, .more = EXTRA(.ttl_ns = 5));
    lab_turn_to(&lab, 20);
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_eq(lab_stats(&lab).dead, 1u);
    cr_expect_eq(lab_stats(&lab).ready, 0u);
    lab_close(&lab);
}

/* Of a queue that has no other threads just those; and nobody is woken for a job that is not due,
 * nor where nobody sleeps. */
LAB_TEST(stats, count_each_sleeper_that_is_woken_once)
{
    enum { JOBS = 5 };

    for (int kernel = 0; kernel < 2; kernel++) {
        struct lab lab = lab_open(.kernel = kernel);
        uint64_t woken = 0;

        for (int i = 0; i < JOBS; i++) {
            struct crew_call c;

            crew_call_dequeue(&c, lab.q, DUE_FOREVER);
            crew_call_asleep(&c);
            uint64_t before = lab_stats(&lab).rings;
            lab_enqueue(&lab, "now", .delay_ns = 0);
            cr_assert_eq(crew_call_answer(&c), 0);
            due_job_done(&c.job);
            woken += lab_stats(&lab).rings - before;
        }
        if (lab_proxies == DUE_PROXIES_NEVER)
            cr_expect_eq(woken, (uint64_t)JOBS);
        else
            cr_expect_geq(woken, (uint64_t)JOBS);
        uint64_t before = lab_stats(&lab).rings;
        lab_enqueue(&lab, "now", .delay_ns = 0);
        if (lab_proxies == DUE_PROXIES_NEVER)
            cr_expect_eq(lab_stats(&lab).rings, before);
        lab_close(&lab);
    }
}

/* Places that nobody has are counted, in whole spans, as long as they have their pages.  No proxy
 * gives them back meanwhile. */
Test(memory, that_was_given_back_is_neither_counted_as_idle_nor_lost, .timeout = 60)
{
    enum { JOBS = 20000 };
    static due_spec specs[JOBS];
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    size_t bytes = 0;

    for (int i = 0; i < JOBS; i++)
        specs[i] = (due_spec){ DUE_SPEC_INIT, .at_ns = 5 + INT64_C(1000000) * i };
    for (int round = 0; round < 5; round++) {
        cr_assert_eq(due_enqueue_batch(lab.q, specs, JOBS, 0, NULL), JOBS);
        cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
        due__slab_trim(&lab.q->slab, UINT32_MAX, true);
        cr_expect_gt(due__load_relaxed(&lab.q->slab.idle), 0u);
        cr_expect_eq(due_trim(lab.q), 0);
        cr_expect_eq(due__load_relaxed(&lab.q->slab.idle), 0u);
        if (round == 1)
            bytes = atomic_load(&lab.state->memory.bytes);
    }
    cr_expect_leq(atomic_load(&lab.state->memory.bytes), bytes, "it is used again");
    lab_close(&lab);
}

/* What has left may be counted before what has come: then there are none, and not less. */
LAB_TEST(stats, of_a_topic_are_not_negative_between_two_counts)
{
    struct lab lab = lab_open(.with.metrics = 1);
    uint64_t *figure = due__topic_at(lab.q, 0)->tallies[0].figure;
    struct due_topic_stats s;

    due__add_relaxed(&figure[DUE__F_READY], UINT64_MAX);
    due__add_relaxed(&figure[DUE__F_LEASED], UINT64_MAX);
    cr_assert_eq(due_topic_stats_read(lab.q, 0, &s), 0);
    cr_expect_eq(s.ready, 0u, "%ju", (uintmax_t)s.ready);
    cr_expect_eq(s.leased, 0u, "%ju", (uintmax_t)s.leased);
    due__add_relaxed(&figure[DUE__F_READY], 1);
    due__add_relaxed(&figure[DUE__F_LEASED], 1);
    lab_close(&lab);
}

/* Where all jobs are looked at, and there is one of the first topic that has no room: what stands
 * behind that is left alone, or the lab would say so. */
LAB_TEST(stats, of_some_topics_are_of_no_other)
{
    struct lab lab = lab_open(.with.metrics = 1, .with.order = DUE_ORDER_PRIORITY);
    char name[16];

    for (int i = 1; i <= DUE_METRICS_TOPICS + 1; i++) {
        snprintf(name, sizeof name, "t%d", i);
        lab_enqueue(&lab, "tea", .topic = lab_topic(&lab, name), .at_ns = 10 + i);
    }
    lab_turn_to(&lab, 5000);
    free(exposition_text(lab.q));
    lab_close(&lab);
}
