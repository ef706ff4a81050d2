/* Figures of topics, histograms, and the text that they make. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "due/metrics.h"
#include "lab/exposition.h"
#include "lab/lab.h"
#include "lab/take.h"

#define LEASE 1000

static struct due_topic_stats topic_stats(struct lab *lab, int topic)
{
    struct due_topic_stats s;

    cr_assert_eq(due_topic_stats_read(lab->q, topic, &s), 0);
    cr_expect_eq(s.enqueued + s.restored, s.delayed + s.ready + s.leased + s.dead + s.dequeued +
                                              s.acked + s.cancelled + s.discarded + s.kept);
    return s;
}

static struct due_metrics metrics(struct lab *lab)
{
    struct due_metrics m;

    cr_assert_eq(due_metrics_read(lab->q, &m), 0);
    return m;
}

static due_job reserve(struct lab *lab)
{
    due_job job = { 0 };

    cr_assert_eq(take_leased(lab->q, &job, LEASE, 0), 0);
    return job;
}

/* ---- Histograms ---- */

Test(histogram, a_duration_is_below_the_bound_of_its_bucket_and_not_below_the_one_before)
{
    for (int shift = 0; shift < 63; shift++) {
        for (int64_t around = -2; around <= 2; around++) {
            int64_t ns = ((int64_t)1 << shift) + around;
            unsigned b = due_histogram_bucket(ns);

            cr_assert_lt(b, (unsigned)DUE_HISTOGRAM_BUCKETS);
            cr_assert(ns < due_histogram_bound(b), "%lld", (long long)ns);
            cr_assert(b == 0 || ns >= due_histogram_bound(b - 1), "%lld", (long long)ns);
        }
    }
    cr_expect_eq(due_histogram_bucket(-5), 0u);
    cr_expect_eq(due_histogram_bucket(INT64_MAX), (unsigned)DUE_HISTOGRAM_BUCKETS - 1);
    cr_expect_eq(due_histogram_bound(DUE_HISTOGRAM_BUCKETS - 1), DUE_FOREVER);
}

Test(histogram, bounds_rise_by_an_eighth_at_most)
{
    for (unsigned b = 8; b < DUE_HISTOGRAM_BUCKETS - 1; b++) {
        int64_t low = due_histogram_bound(b - 1);
        int64_t high = due_histogram_bound(b);

        cr_assert(high > low && (high - low) * 8 <= low, "bucket %u", b);
    }
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

Test(histogram, percentiles_are_the_exact_ones_or_at_most_an_eighth_more)
{
    enum { N = 20000 };
    static int64_t ns[N];
    static due_histogram h;
    const double parts[] = { 0, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1 };
    uint64_t random = 42;

    for (size_t i = 0; i < N; i++) {
        ns[i] = (int64_t)crew_below(&random, UINT64_C(1) << (10 + crew_below(&random, 35)));
        h.bucket[due_histogram_bucket(ns[i])]++;
        h.count++;
    }
    qsort(ns, N, sizeof ns[0], ascending);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        size_t rank = (size_t)ceil(parts[i] * N);
        int64_t exact = ns[rank > 0 ? rank - 1 : 0];
        int64_t read = due_histogram_quantile(&h, parts[i]);

        cr_expect(read > exact && read <= exact + exact / 8 + 128, "%g: %lld, exactly %lld",
                  parts[i], (long long)read, (long long)exact);
    }
}

Test(histogram, an_empty_one_has_no_percentiles_and_sums_are_those_of_both)
{
    due_histogram a = { 0 };
    due_histogram b = { .count = 3, .sum_ns = 30 };

    cr_expect_eq(due_histogram_quantile(&a, 0.5), 0);
    b.bucket[7] = 3;
    due_histogram_add(&a, &b);
    due_histogram_add(&a, &b);
    cr_expect_eq(a.count, 6u);
    cr_expect_eq(a.sum_ns, 60u);
    cr_expect_eq(a.bucket[7], 6u);
    cr_expect_eq(due_histogram_quantile(&a, 0.5), due_histogram_bound(7));
}

/* ---- Topics ---- */

/* Of four that are reserved, three are answered for; two others are cancelled. */
static void after_answers(struct lab *lab, int mail, const due_id *id, due_job *job)
{
    struct due_topic_stats s;

    cr_expect_eq(due_ack(&job[0]), 0);
    cr_expect_eq(due_nack(&job[1], 500), 0);
    cr_expect_eq(due_bury(&job[2], NULL), 0);
    s = topic_stats(lab, mail);
    cr_expect_eq(s.acked, 1u);
    cr_expect_eq(s.nacked, 1u);
    cr_expect_eq(s.retried, 1u);
    cr_expect_eq(s.died, 1u);
    cr_expect_eq(s.dead, 1u);
    cr_expect_eq(s.leased, 1u);

    cr_expect_eq(due_kick(lab->q, id[2]), 0);
    cr_expect_eq(due_cancel(lab->q, id[4], NULL), 0);
    cr_expect_eq(due_cancel(lab->q, id[8], NULL), 0);
    s = topic_stats(lab, mail);
    cr_expect_eq(s.kicked, 1u);
    cr_expect_eq(s.dead, 0u);
    cr_expect_eq(s.ready, 1u);
    cr_expect_eq(s.cancelled, 2u);
}

/* A lease ends, a job is taken for good, the others are cleared. */
static void at_the_end(struct lab *lab, int mail, due_job *held)
{
    struct due_topic_stats s;

    lab_advance(lab, LEASE);
    s = topic_stats(lab, mail);
    cr_expect_eq(s.leased, 0u);
    cr_expect_eq(s.retried, 2u);
    due_job_done(held);

    due_job taken;
    cr_assert_eq(take_from(lab->q, &mail, 1, &taken, 0), 0);
    due_job_done(&taken);
    s = topic_stats(lab, mail);
    cr_expect_eq(s.dequeued, 1u);
    cr_expect_eq(s.delivered, 5u);
    cr_expect_eq(due_clear(lab->q, mail, NULL), 0);
    s = topic_stats(lab, mail);
    cr_expect_eq(s.discarded, 5u);
    cr_expect_eq(s.delayed + s.ready + s.leased + s.dead, 0u);
    cr_expect_eq(topic_stats(lab, 0).ready, 1u);
}

LAB_TEST(topic_stats, add_up_whatever_becomes_of_the_jobs)
{
    due_id id[9];
    due_job job[4] = { 0 };
    struct lab lab =
        lab_open(.with.metrics = 1, .with.retry = { .kind = DUE_RETRY_FIXED, .attempts_max = 2 });
    int mail = due_topic(lab.q, "mail");

    lab_enqueue(&lab, "of another topic", .at_ns = 5);
    for (int i = 0; i < 9; i++)
        id[i] = lab_enqueue(&lab, "job", .at_ns = 10 + i, .topic = mail);
    struct due_topic_stats s = topic_stats(&lab, mail);
    cr_expect_eq(s.enqueued, 9u);
    cr_expect_eq(s.delayed, 9u);
    cr_expect_eq(s.oldest_ns, DUE_FOREVER);

    lab_turn_to(&lab, 14);
    s = topic_stats(&lab, mail);
    cr_expect_eq(s.ready, 5u);
    cr_expect_eq(s.delayed, 4u);
    cr_expect_eq(s.oldest_ns, 10);

    for (int i = 0; i < 4; i++)
        cr_assert_eq(take_leased_from(lab.q, &mail, 1, &job[i], LEASE, 0), 0);
    s = topic_stats(&lab, mail);
    cr_expect_eq(s.leased, 4u);
    cr_expect_eq(s.ready, 1u);
    cr_expect_eq(s.delivered, 4u);
    cr_expect_eq(s.oldest_ns, 14);

    after_answers(&lab, mail, id, job);
    at_the_end(&lab, mail, &job[3]);
    lab_close(&lab);
}

LAB_TEST(topic_stats, know_who_died_of_age_and_what_is_ready_after_that)
{
    struct lab lab = lab_open(.with.metrics = 1);

    lab_enqueue(&lab, "old", .at_ns = 10, .more = EXTRA(.ttl_ns = 5));
    lab_enqueue(&lab, "young", .at_ns = 12);
    lab_turn_to(&lab, 20);
    cr_expect_str_eq(lab_dequeue(&lab), "young");
    struct due_topic_stats s = topic_stats(&lab, 0);
    cr_expect_eq(s.died, 1u);
    cr_expect_eq(s.expired, 1u);
    cr_expect_eq(s.dead, 1u);
    cr_expect_eq(s.ready, 0u);
    cr_expect_eq(s.dequeued, 1u);
    cr_expect_eq(lab_stats(&lab).ready, 0u);
    lab_close(&lab);
}

LAB_TEST(topic_stats, lose_a_reserved_job_that_was_cancelled)
{
    struct lab lab = lab_open(.with.metrics = 1);
    due_id id = lab_enqueue(&lab, "tea", .delay_ns = 0);
    due_job job = reserve(&lab);

    cr_expect_eq(due_cancel(lab.q, id, NULL), DUE_EBUSY);
    cr_expect_eq(due_nack(&job, 0), 0);
    struct due_topic_stats s = topic_stats(&lab, 0);
    cr_expect_eq(s.cancelled, 1u);
    cr_expect_eq(s.leased, 0u);
    lab_close(&lab);
}

LAB_TEST(topic_stats, follow_a_job_that_is_moved)
{
    struct lab lab = lab_open(.with.metrics = 1);
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10);

    lab_turn_to(&lab, 10);
    cr_expect_eq(topic_stats(&lab, 0).ready, 1u);
    cr_expect_eq(due_reschedule(lab.q, id, 50), 0);
    cr_expect_eq(topic_stats(&lab, 0).ready, 0u);
    cr_expect_eq(topic_stats(&lab, 0).delayed, 1u);
    cr_expect_eq(due_promote(lab.q, id), 0);
    cr_expect_eq(topic_stats(&lab, 0).ready, 1u);
    lab_close(&lab);
}

LAB_TEST(topic_stats, count_each_round_of_a_job_that_repeats_once)
{
    struct lab lab = lab_open(.with.metrics = 1);
    int mail = lab_topic(&lab, "mail");

    lab_enqueue(&lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 100), .topic = mail);
    for (int round = 0; round < 3; round++) {
        lab_turn_to(&lab, 10 + round * 200);
        cr_expect_str_eq(lab_dequeue(&lab), "tea");
        lab_turn_to(&lab, 110 + round * 200);
        due_job job = reserve(&lab);
        cr_expect_eq(due_ack(&job), 0);
    }
    struct due_topic_stats s = topic_stats(&lab, mail);
    cr_expect_eq(s.delivered, 6u);
    cr_expect_eq(s.enqueued, 1u);
    cr_expect_eq(s.ready, 0u);
    cr_expect_eq(s.delayed, 1u);
    cr_expect_eq(metrics(&lab).delivered, 6u);
    lab_close(&lab);
}

Test(topic_stats, of_a_queue_that_did_not_ask_for_them_are_zero)
{
    struct lab lab = lab_open();
    struct due_topic_stats s;

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    cr_assert_eq(due_topic_stats_read(lab.q, 0, &s), 0);
    cr_expect_eq(s.enqueued + s.ready + s.delayed, 0u);
    cr_expect_eq(s.oldest_ns, 0);
    cr_expect_eq(due_topic_stats_read(lab.q, 1, &s), DUE_EINVAL);
    cr_expect_eq(due_topic_stats_read(lab.q, -1, &s), DUE_EINVAL);
    cr_expect_eq(metrics(&lab).late.count, 0u);
    lab_close(&lab);
}

/* The oldest one also when dead slots stand before it, in a paused topic, and by priority. */
LAB_TEST(metrics, know_the_oldest_job)
{
    for (int order = DUE_ORDER_DEADLINE; order <= DUE_ORDER_PRIORITY; order++) {
        struct lab lab = lab_open(.with.order = (enum due_order)order);
        int slow = due_topic(lab.q, "slow");
        due_id gone[200];

        cr_expect_eq(metrics(&lab).oldest_ns, DUE_FOREVER);
        for (int i = 0; i < 200; i++)
            gone[i] = lab_enqueue(&lab, "gone", .at_ns = 1 + i, .topic = slow, .priority = 5);
        lab_enqueue(&lab, "old", .at_ns = 300, .topic = slow, .priority = 1);
        lab_enqueue(&lab, "younger", .at_ns = 301, .topic = slow, .priority = 9);
        lab_enqueue(&lab, "of another topic", .at_ns = 302);
        lab_turn_to(&lab, 1000);
        cr_expect_eq(metrics(&lab).oldest_ns, 1);
        for (int i = 0; i < 200; i++)
            cr_assert_eq(due_cancel(lab.q, gone[i], NULL), 0);
        cr_expect_eq(metrics(&lab).oldest_ns, 300);
        cr_expect_eq(due_pause(lab.q, slow), 0);
        cr_expect_eq(metrics(&lab).oldest_ns, 300);
        cr_expect_eq(due_clear(lab.q, slow, NULL), 0);
        cr_expect_eq(metrics(&lab).oldest_ns, 302);
        cr_expect_eq(metrics(&lab).now_ns, 1000);
        lab_close(&lab);
    }
}

/* A handler that hangs is what the figure is for. */
LAB_TEST(metrics, know_the_oldest_job_that_is_kept_back)
{
    for (int order = DUE_ORDER_DEADLINE; order <= DUE_ORDER_PRIORITY; order++) {
        struct lab lab = lab_open(.with.order = (enum due_order)order);
        int limited = due_topic(lab.q, "limited");
        due_job hung[2];

        cr_assert_eq(due_topic_limit(lab.q, limited, 1), 0);
        for (int i = 0; i < 3; i++) {
            lab_enqueue(&lab, "one", .at_ns = 10 + i, .topic = limited);
            lab_enqueue(&lab, "of a group", .at_ns = 20 + i,
                        .more = EXTRA(.group = "g", .group_len = 1));
        }
        lab_turn_to(&lab, 100);
        cr_assert_eq(take_leased_some(lab.q, NULL, 0, hung, 2, DUE_S(30), 0), 2);
        cr_expect_eq(metrics(&lab).oldest_ns, 11);
        struct due_topic_stats s;
        cr_assert_eq(due_topic_stats_read(lab.q, 0, &s), 0);
        cr_expect_eq(s.oldest_ns, 21);
        cr_assert_eq(due_topic_stats_read(lab.q, limited, &s), 0);
        cr_expect_eq(s.oldest_ns, 11);
        cr_expect_eq(due_ack_batch(hung, 2, NULL), 2);
        lab_close(&lab);
    }
}

LAB_TEST(metrics, measure_lateness_and_handling)
{
    struct lab lab = lab_open(.with.metrics = 1);

    lab_enqueue(&lab, "a", .at_ns = DUE_US(10));
    lab_enqueue(&lab, "b", .at_ns = DUE_US(20));
    lab_turn_to(&lab, DUE_US(110));
    cr_expect_str_eq(lab_dequeue(&lab), "a"); /* 100 us late */
    lab_turn_to(&lab, DUE_US(1020));
    due_job job = { 0 };
    cr_assert_eq(take_leased(lab.q, &job, DUE_S(1), 0), 0); /* 1 ms late */
    lab_advance(&lab, DUE_MS(7));
    cr_expect_eq(due_ack(&job), 0);

    struct due_metrics m = metrics(&lab);
    cr_expect_eq(m.late.count, 2u);
    cr_expect_eq(m.late.sum_ns, (uint64_t)DUE_US(1100));
    cr_expect_eq(due_histogram_quantile(&m.late, 0.5),
                 due_histogram_bound(due_histogram_bucket(DUE_US(100))));
    cr_expect_eq(due_histogram_quantile(&m.late, 1),
                 due_histogram_bound(due_histogram_bucket(DUE_MS(1))));
    cr_expect_eq(m.held.count, 1u);
    cr_expect_eq(m.held.sum_ns, (uint64_t)DUE_MS(7));
    lab_close(&lab);
}

LAB_TEST(metrics, sum_up_what_is_counted_by_topic)
{
    struct lab lab = lab_open(.with.metrics = 1);
    int mail = due_topic(lab.q, "mail");
    due_job job;

    lab_enqueue(&lab, "a", .at_ns = 10);
    lab_enqueue(&lab, "b", .at_ns = 10, .topic = mail);
    lab_enqueue(&lab, "late", .at_ns = 10, .more = EXTRA(.ttl_ns = 5), .topic = mail);
    lab_turn_to(&lab, 20);
    cr_expect_str_eq(lab_dequeue(&lab), "a");
    cr_assert_eq(take_leased(lab.q, &job, DUE_S(1), 0), 0);
    cr_expect_eq(due_nack(&job, 0), 0);
    cr_assert_eq(take_leased(lab.q, &job, DUE_S(1), 0), 0);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(take_leased(lab.q, &job, DUE_S(1), 0), DUE_EAGAIN);
    cr_expect_eq(metrics(&lab).delivered, 3u);
    cr_expect_eq(metrics(&lab).expired, 1u);
    lab_close(&lab);
    lab = lab_open();
    lab_enqueue(&lab, "a", .delay_ns = 0);
    cr_expect_str_eq(lab_dequeue(&lab), "a");
    cr_expect_eq(metrics(&lab).delivered, 0u, "nobody asked for it");
    lab_close(&lab);
}

/* ---- The text ---- */

LAB_TEST(exposition, is_what_prometheus_reads)
{
    struct lab lab = lab_open(.with.metrics = 1, .with.name = "orders");
    int odd = due_topic(lab.q, "a \"quote\", a \\, a \n line, \xc3\xa4, \xff");

    lab_enqueue(&lab, "1", .at_ns = 10, .topic = odd);
    lab_enqueue(&lab, "2", .at_ns = DUE_S(3));
    lab_turn_to(&lab, DUE_S(1));
    char *text = exposition_text(lab.q);
    const char *bad = exposition_check(text);
    cr_expect_null(bad, "%s", bad);
    cr_expect_eq(exposition_value(text, "due_jobs_enqueued_total{queue=\"orders\"}"), 2);
    cr_expect_eq(exposition_value(text, "due_jobs{queue=\"orders\",state=\"delayed\"}"), 1);
    cr_expect_eq(exposition_value(text, "due_next_deadline_seconds{queue=\"orders\"}"), 0);
    cr_expect_eq(exposition_value(text, "due_oldest_ready_age_seconds{queue=\"orders\"}"),
                 0.999999990);
    cr_expect_eq(
        exposition_value(text, "due_topic_jobs{queue=\"orders\",topic=\"a \\\"quote\\\", a \\\\, a "
                               "\\n line, \xc3\xa4, \\\\xff\",state=\"ready\"}"),
        1);
    cr_expect_str_eq(lab_dequeue(&lab), "1");
    free(text);
    text = exposition_text(lab.q);
    cr_expect_eq(exposition_value(text, "due_next_deadline_seconds{queue=\"orders\"}"), 2);
    cr_expect_eq(exposition_value(text, "due_lateness_seconds_count{queue=\"orders\"}"), 1);
    cr_expect_eq(exposition_value(text, "due_lateness_seconds_sum{queue=\"orders\"}"), 0.99999999);
    cr_expect_eq(
        exposition_value(text, "due_lateness_seconds_bucket{queue=\"orders\",le=\"+Inf\"}"), 1);
    free(text);
    lab_close(&lab);
}

/* Bytes of UTF-8 that stand for no character: a reader refuses the whole page for one of them. */
LAB_TEST(exposition, of_names_that_are_no_text_is_text)
{
    static const struct {
        const char *name;
        const char *label;
    } cases[] = {
        { "\xed\x9f\xbf \xee\x80\x80", "\xed\x9f\xbf \xee\x80\x80" }, /* around surrogates */
        { "\xed\xa0\x80", "\\\\xed\\\\xa0\\\\x80" },                  /* the first one */
        { "\xed\xbf\xbf", "\\\\xed\\\\xbf\\\\xbf" },                  /* the last one */
        { "\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf" }, /* of four */
        { "\xf4\x90\x80\x80", "\\\\xf4\\\\x90\\\\x80\\\\x80" },
        { "\xe0\x9f\xbf|\xe0\xa0\x80", "\\\\xe0\\\\x9f\\\\xbf|\xe0\xa0\x80" }, /* too long */
        { "\xc1\xbf \xc2\x80", "\\\\xc1\\\\xbf \xc2\x80" },
        { "\xf0\x8f\xbf\xbf", "\\\\xf0\\\\x8f\\\\xbf\\\\xbf" },
        { "\xe2\x82", "\\\\xe2\\\\x82" }, /* cut off */
        { "\xc3\xc3\xa4", "\\\\xc3\xc3\xa4" },
    };
    struct lab lab = lab_open(.with.metrics = 1, .with.name = "orders");

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        lab_enqueue(&lab, "x", .at_ns = 10, .topic = due_topic(lab.q, cases[i].name));
    char *text = exposition_text(lab.q);
    const char *bad = exposition_check(text);
    cr_expect_null(bad, "%s", bad);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[160];

        snprintf(line, sizeof line,
                 "due_topic_jobs{queue=\"orders\",topic=\"%s\",state=\"delayed\"}", cases[i].label);
        cr_expect_eq(exposition_value(text, line), 1, "%s", line);
    }
    free(text);
    lab_close(&lab);
}

LAB_TEST(exposition, shows_what_limiters_hold_and_rounds_that_were_done)
{
    struct lab lab = lab_open(.with.name = "orders");
    due_job job;

    lab_enqueue(&lab, "1", .at_ns = 10, .more = EXTRA(.group = "g", .group_len = 1));
    lab_enqueue(&lab, "2", .at_ns = 10, .more = EXTRA(.group = "g", .group_len = 1));
    lab_enqueue(&lab, "3", .at_ns = 10, .more = EXTRA(.group = "g", .group_len = 1));
    lab_enqueue(&lab, "tick", .at_ns = 5, .more = EXTRA(.every_ns = DUE_S(1)));
    lab_turn_to(&lab, 10);
    cr_expect_str_eq(lab_dequeue(&lab), "tick");
    cr_assert_eq(take_leased(lab.q, &job, DUE_S(1), 0), 0);
    char *text = exposition_text(lab.q);
    cr_expect_eq(exposition_value(text, "due_passed_jobs{queue=\"orders\"}"), 1);
    cr_expect_eq(exposition_value(text, "due_kept_back_jobs{queue=\"orders\"}"), 2);
    cr_expect_eq(exposition_value(text, "due_jobs_repeated_total{queue=\"orders\"}"), 1);
    free(text);
    cr_expect_eq(due_ack(&job), 0);
    lab_close(&lab);
}

Test(exposition, says_how_long_it_is_and_writes_no_more_than_there_is_room_for)
{
    struct lab lab = lab_open(.with.metrics = 1);
    int need = due_metrics_write(lab.q, NULL, 0);
    char *text = malloc((size_t)need + 1);
    char *some = malloc((size_t)need + 1);

    cr_assert(need > 0 && text != NULL && some != NULL);
    cr_expect_eq(due_metrics_write(lab.q, text, (size_t)need + 1), need);
    for (size_t size = 1; size <= (size_t)need; size = size * 2 + 1) {
        memset(some, '#', (size_t)need + 1);
        cr_expect_eq(due_metrics_write(lab.q, some, size), need);
        cr_expect_eq(memcmp(some, text, size - 1), 0);
        cr_expect_eq(some[size - 1], '\0');
        cr_expect_eq(some[size], '#');
    }
    free(text);
    free(some);
    lab_close(&lab);
}

Test(exposition, names_the_first_topics_only_and_says_how_many_there_are)
{
    struct lab lab = lab_open(.with.metrics = 1);
    char name[32];

    for (int i = 1; i <= DUE_METRICS_TOPICS; i++) {
        snprintf(name, sizeof name, "t%d", i);
        cr_assert_eq(due_topic(lab.q, name), i);
    }
    char *text = exposition_text(lab.q);
    cr_expect_eq(exposition_value(text, "due_topics{queue=\"queue\"}"), DUE_METRICS_TOPICS + 1);
    snprintf(name, sizeof name, "topic=\"t%d\"", DUE_METRICS_TOPICS - 1);
    cr_expect_not_null(strstr(text, name));
    snprintf(name, sizeof name, "topic=\"t%d\"", DUE_METRICS_TOPICS);
    cr_expect_null(strstr(text, name));
    free(text);
    cr_assert_eq(due_topic_measure(lab.q, DUE_METRICS_TOPICS), 0);
    text = exposition_text(lab.q);
    cr_expect_not_null(strstr(text, name), "it was asked for");
    free(text);
    lab_close(&lab);
}

/* The reader must be able to find something. */
Test(exposition, the_reader_refuses_what_is_wrong)
{
    const char *const head = "# HELP a_total b\n# TYPE a_total counter\n";
    const char *const wrong[] = { "a_total 1\na_total 1\n",
                                  "a_total{x=\"\\q\"} 1\n",
                                  "a_total -1\n",
                                  "a_total 1",
                                  "b 1\n",
                                  "a_total{x=\"1} 1\n",
                                  "a_total x\n",
                                  "# HELP a_total b\n",
                                  "# TYPE c gauge\n" };
    const char *const histogram = "# HELP h b\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\n"
                                  "h_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n";
    char text[256];

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(text, sizeof text, "%s%s", head, wrong[i]);
        cr_expect_not_null(exposition_check(text), "%s", text);
    }
    cr_expect_not_null(exposition_check(histogram));
    snprintf(text, sizeof text, "%sa_total{x=\"1\"} 1\na_total{x=\"2\"} 1\n", head);
    cr_expect_null(exposition_check(text));
}

Test(metrics, gives_back_everything_whichever_allocation_fails)
{
    for (size_t n = 0;; n++) {
        struct flaky flaky;
        due_queue *q = NULL;

        flaky_init(&flaky, n);
        due_allocator hooks = flaky.hooks;
        int rc = due_open(&q, &(due_options){ DUE_OPTIONS_INIT, .allocator = &hooks, .metrics = 1 },
                          NULL);
        if (rc == 0) {
            cr_expect_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(1)), 0);
            cr_expect_eq(due_free(q), 0);
            cr_expect_eq(atomic_load(&flaky.live), 0u);
            cr_expect_gt(n, 2u);
            return;
        }
        cr_assert_eq(rc, DUE_ENOMEM);
        cr_assert_eq(atomic_load(&flaky.live), 0u);
    }
}

/* Nine digits behind the point, so that a reader does not take them for another number. */
Test(exposition, names_each_bucket_by_the_last_nanosecond_that_is_in_it)
{
    struct lab lab = lab_open(.with.metrics = 1);
    char *text = exposition_text(lab.q);
    unsigned named = 0;

    for (const char *at = strstr(text, "le=\""); at != NULL; at = strstr(at + 1, "le=\"")) {
        char *point;
        char *end;
        long long s = strtoll(at + 4, &point, 10);

        if (*point != '.')
            continue; /* +Inf */
        int64_t ns = DUE_S(s) + strtoll(point + 1, &end, 10);
        cr_expect_eq(end - point, 10);
        cr_expect_eq(due_histogram_bound(due_histogram_bucket(ns)), ns + 1, "%.24s", at);
        named++;
    }
    cr_expect_gt(named, 10u);
    free(text);
    lab_close(&lab);
}
