/* Lateness and handling time of topics that are measured by themselves; and a job that is counted
 * where it is, as it cannot be buried. */
#include <stdio.h>
#include <stdlib.h>

#include "due/metrics.h"
#include "lab/exposition.h"
#include "lab/lab.h"
#include "lab/take.h"

static struct due_metrics metrics(struct lab *lab)
{
    struct due_metrics m;

    cr_assert_eq(due_metrics_read(lab->q, &m), 0);
    return m;
}

struct durations {
    due_histogram late;
    due_histogram held;
};

static struct durations durations(struct lab *lab, int topic)
{
    struct durations d;

    cr_assert_eq(due_topic_durations(lab->q, topic, &d.late, &d.held), 0);
    return d;
}

LAB_TEST(durations, of_a_topic_count_for_the_queue_too)
{
    struct lab lab = lab_open(.with.metrics = 1);
    int mail = lab_topic(&lab, "mail");
    due_job jobs[4];

    for (int i = 0; i < 2; i++) { /* the second time it has its own */
        lab_enqueue(&lab, "late", .delay_ns = DUE_US(10));
        lab_enqueue(&lab, "later", .delay_ns = DUE_US(10), .topic = mail);
        lab_enqueue(&lab, "latest", .delay_ns = DUE_US(10), .topic = mail);
        lab_advance(&lab, DUE_US(110));
        cr_assert_eq(take_leased_some(lab.q, NULL, 0, jobs, 4, DUE_S(1), 0), 3);
        lab_advance(&lab, DUE_MS(7));
        cr_assert_eq(due_ack_batch(jobs, 3, NULL), 3);
        cr_expect_eq(durations(&lab, mail).late.count, (uint64_t)i * 2);
        cr_expect_eq(due_topic_measure(lab.q, mail), 0);
    }
    struct durations d = durations(&lab, mail);
    cr_expect_eq(d.late.sum_ns, 2 * (uint64_t)DUE_US(100));
    cr_expect_eq(d.late.bucket[due_histogram_bucket(DUE_US(100))], 2u);
    cr_expect_eq(d.held.count, 2u);
    cr_expect_eq(d.held.sum_ns, 2 * (uint64_t)DUE_MS(7));
    cr_expect_eq(durations(&lab, 0).late.count + durations(&lab, 0).held.count, 0u);
    cr_expect_eq(metrics(&lab).late.count, 6u);
    cr_expect_eq(metrics(&lab).late.sum_ns, 6 * (uint64_t)DUE_US(100));
    cr_expect_eq(metrics(&lab).held.sum_ns, 6 * (uint64_t)DUE_MS(7));
    lab_close(&lab);
}

LAB_TEST(durations, of_rounds_count_too)
{
    const due_extra repeating = { DUE_EXTRA_INIT, .every_ns = DUE_S(100) };

    for (int n = 1; n <= 10; n += 9) {
        struct lab lab = lab_open(.with.metrics = 1);
        int mail = lab_topic(&lab, "mail");
        due_job jobs[10];

        cr_expect_eq(due_topic_measure(lab.q, mail), 0);
        for (int i = 0; i < n; i++)
            lab_enqueue(&lab, "again", .delay_ns = 10, .topic = mail, .more = &repeating);
        for (int round = 1; round <= 2; round++) {
            lab_advance(&lab, round == 1 ? DUE_US(100) + 10 : DUE_S(100));
            int rc = take_some(lab.q, &mail, 1, jobs, 10, 0);
            cr_assert_eq(rc, n, "%s", due_error_name(rc));
            due_jobs_done(jobs, (size_t)n);
            due_histogram late = durations(&lab, mail).late;
            cr_expect_eq(late.count, (uint64_t)(round * n));
            cr_expect_eq(late.sum_ns, (uint64_t)(round * n) * DUE_US(100));
        }
        lab_close(&lab);
    }
}

static size_t bytes_out(struct lab *lab)
{
    return atomic_load(&lab->state->memory.bytes);
}

Test(durations, of_topics_cost_nothing_unless_they_are_asked_for)
{
    struct lab lab = lab_open(.with.metrics = 1);
    char name[32];

    lab_enqueue(&lab, "memory for jobs", .delay_ns = 0);
    cr_expect_str_eq(lab_dequeue(&lab), "memory for jobs");
    size_t before = bytes_out(&lab);
    for (int i = 1; i <= 20; i++) {
        snprintf(name, sizeof name, "t%d", i);
        cr_assert_eq(lab_topic(&lab, name), i);
        lab_enqueue(&lab, name, .topic = i, .delay_ns = 0);
        cr_expect_str_eq(lab_dequeue(&lab), name);
    }
    size_t topics = bytes_out(&lab) - before;
    before = bytes_out(&lab);
    flaky_fail_in(&lab.state->memory, 0);
    cr_expect_eq(due_topic_measure(lab.q, 1), DUE_ENOMEM);
    cr_expect_eq(bytes_out(&lab), before);
    cr_expect_eq(due_topic_measure(lab.q, 1), 0);
    size_t one = bytes_out(&lab) - before;
    cr_expect_gt(one, sizeof(struct durations));
    cr_expect_lt(topics, 5 * one, "20 topics: %zu bytes, one that is measured: %zu", topics, one);
    cr_expect_eq(due_topic_measure(lab.q, 1), 0);
    cr_expect_eq(bytes_out(&lab), before + one, "a second time it costs nothing");
    lab_close(&lab);
}

Test(durations, of_a_topic_are_had_only_where_they_are_measured)
{
    struct lab lab = lab_open();
    struct durations d;

    cr_expect_eq(due_topic_measure(lab.q, 0), DUE_ENOTSUP);
    cr_expect_eq(due_topic_measure(lab.q, 1), DUE_EINVAL);
    cr_expect_eq(due_topic_durations(lab.q, 1, &d.late, &d.held), DUE_EINVAL);
    lab_enqueue(&lab, "a", .delay_ns = 0);
    cr_expect_str_eq(lab_dequeue(&lab), "a");
    cr_expect_eq(durations(&lab, 0).late.count, 0u);
    lab_close(&lab);
}

LAB_TEST(exposition, has_durations_of_the_topics_that_are_measured_and_of_no_others)
{
    struct lab lab = lab_open(.with.metrics = 1);
    int mail = lab_topic(&lab, "mail");
    int odd = lab_topic(&lab, "\"odd\"");
    due_job job;

    char *text = exposition_text(lab.q);
    cr_expect_null(strstr(text, "due_topic_lateness_seconds"));
    free(text);
    cr_assert_eq(due_topic_measure(lab.q, mail), 0);
    cr_assert_eq(due_topic_measure(lab.q, odd), 0);
    lab_enqueue(&lab, "a", .delay_ns = DUE_S(1), .topic = mail);
    lab_enqueue(&lab, "b", .delay_ns = DUE_S(1));
    lab_advance(&lab, DUE_S(3));
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(take_leased(lab.q, &job, DUE_S(9), 0), 0);
        lab_advance(&lab, DUE_S(1));
        cr_assert_eq(due_ack(&job), 0);
    }
    text = exposition_text(lab.q);
    const char *bad = exposition_check(text);
    cr_expect_null(bad, "%s", bad);
#define MAIL(name, more) exposition_value(text, name "{queue=\"queue\",topic=\"mail\"" more "}")
    cr_expect_eq(MAIL("due_topic_lateness_seconds_count", ""), 1);
    cr_expect_geq(MAIL("due_topic_lateness_seconds_sum", ""), 2);
    cr_expect_eq(MAIL("due_topic_lateness_seconds_bucket", ",le=\"+Inf\""), 1);
    cr_expect_eq(MAIL("due_topic_handling_seconds_count", ""), 1);
    cr_expect_eq(MAIL("due_topic_handling_seconds_sum", ""), 1);
    cr_expect_eq(exposition_value(text, "due_topic_lateness_seconds_count{queue=\"queue\","
                                        "topic=\"\\\"odd\\\"\"}"),
                 0);
    cr_expect_null(strstr(text, "due_topic_lateness_seconds_count{queue=\"queue\",topic=\"\"}"));
    cr_expect_eq(exposition_value(text, "due_lateness_seconds_count{queue=\"queue\"}"), 2);
    cr_expect_eq(exposition_value(text, "due_handling_seconds_sum{queue=\"queue\"}"), 2);
    free(text);
    lab_close(&lab);
}

/* From none at all to hours, each once; on a clock turned by hand a job is as late as that. */
LAB_TEST(exposition, counts_in_each_line_of_a_histogram_what_took_no_longer)
{
    static const int64_t late_ns[] = { 0,    1,    2,         7,        100,
                                       4095, 4096, DUE_MS(3), DUE_S(2), DUE_S(20000) };
    enum { JOBS = sizeof late_ns / sizeof late_ns[0] };
    static const char bucket[] = "due_lateness_seconds_bucket{queue=\"queue\",le=\"";
    struct lab lab = lab_open(.with.metrics = 1);
    unsigned lines = 0;

    for (int i = 0; i < JOBS; i++) {
        lab_enqueue(&lab, "x", .at_ns = due_now(lab.q) + 1);
        lab_advance(&lab, late_ns[i] + 1);
        cr_expect_str_eq(lab_dequeue(&lab), "x");
    }
    char *text = exposition_text(lab.q);
    for (const char *at = strstr(text, bucket); at != NULL; at = strstr(at + 1, bucket), lines++) {
        long long s = 0;
        long long ns = 0;
        unsigned count = 0;
        unsigned expected = 0;

        if (sscanf(at + strlen(bucket), "%lld.%lld\"} %u", &s, &ns, &count) != 3)
            continue; /* +Inf */
        for (int i = 0; i < JOBS; i++)
            expected += late_ns[i] <= DUE_S(s) + ns;
        cr_expect_eq(count, expected, "%lld.%09lld: %u, not %u", s, ns, count, expected);
    }
    cr_expect_gt(lines, 10u);
    cr_expect_eq(exposition_value(text, "due_lateness_seconds_bucket{queue=\"queue\",le=\"+Inf\"}"),
                 JOBS);
    cr_expect_eq(exposition_value(text, "due_lateness_seconds_count{queue=\"queue\"}"), JOBS);
    free(text);
    lab_close(&lab);
}

/* The first ends with the microsecond of 1,024 ns, the last with 20 hours of them. */
LAB_TEST(exposition, has_a_line_of_a_histogram_for_each_factor_of_four)
{
    static const char bucket[] = "due_handling_seconds_bucket{queue=\"queue\",le=\"";
    struct lab lab = lab_open(.with.metrics = 1);
    char *text = exposition_text(lab.q);
    int64_t bound = 1024;
    unsigned lines = 0;

    for (const char *at = strstr(text, bucket); at != NULL; at = strstr(at + 1, bucket)) {
        long long s = 0;
        long long ns = 0;

        if (sscanf(at + strlen(bucket), "%lld.%lld\"}", &s, &ns) != 2)
            continue; /* +Inf */
        cr_expect_eq(DUE_S(s) + ns, bound - 1, "%lld.%09lld", s, ns);
        bound *= 4;
        lines++;
    }
    cr_expect_eq(lines, 19u);
    free(text);
    lab_close(&lab);
}

LAB_TEST(exposition, has_durations_of_the_default_topic_where_that_is_measured)
{
    struct lab lab = lab_open(.with.metrics = 1);

    lab_topic(&lab, "mail");
    cr_assert_eq(due_topic_measure(lab.q, 0), 0);
    lab_enqueue(&lab, "a", .delay_ns = 0);
    cr_expect_str_eq(lab_dequeue(&lab), "a");
    char *text = exposition_text(lab.q);
    cr_expect_eq(
        exposition_value(text, "due_topic_lateness_seconds_count{queue=\"queue\",topic=\"\"}"), 1);
    free(text);
    lab_close(&lab);
}

/* Whoever is about to take it has no memory for its grave: it is back where it stood. */
LAB_TEST(topic_stats, keep_one_as_ready_that_is_too_old_and_cannot_be_buried)
{
    struct lab lab = lab_open(.with.metrics = 1);
    struct flaky *memory = &lab.state->memory;
    struct due_topic_stats s;
    due_job job;

    lab_enqueue(&lab, "old", .at_ns = 10, .more = EXTRA(.ttl_ns = 5));
    lab_turn_to(&lab, 20);
    flaky_fail_in(memory, 0);
    memory->fail_on = true;
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(due_dequeue(lab.q, &job, 0), DUE_ENOMEM);
        cr_assert_eq(due_topic_stats_read(lab.q, 0, &s), 0);
        cr_expect_eq(s.ready, 1u, "%d: %d", i, (int)s.ready);
        cr_expect_eq(s.dead, 0u);
        cr_expect_eq(s.died, 0u);
    }
    memory->fail_on = false;
    memory->fail_at = FLAKY_NEVER;
    cr_expect_eq(due_dequeue(lab.q, &job, 0), DUE_EAGAIN);
    cr_assert_eq(due_topic_stats_read(lab.q, 0, &s), 0);
    cr_expect_eq(s.ready, 0u);
    cr_expect_eq(s.dead, 1u);
    cr_expect_eq(s.expired, 1u);
    lab_close(&lab);
}
