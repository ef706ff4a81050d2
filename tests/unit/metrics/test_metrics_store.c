/* What the page of a queue says of its store. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "due/metrics.h"
#include "lab/exposition.h"
#include "lab/shop.h"

static double value(const char *text, const char *name, const char *label)
{
    char line[128];

    snprintf(line, sizeof line, "%s{queue=\"queue\"%s}", name, label);
    return exposition_value(text, line);
}

/* Each number beside the one that due_stats_read() and the store itself tell. */
static void expect_page(struct shop *s, double answers, double loading)
{
    struct due_metrics m;

    cr_assert_eq(due_metrics_read(s->lab.q, &m), 0);
    const struct {
        const char *name;
        double is;
    } lines[] = {
        { "due_store_connected", m.store.connected },
        { "due_store_answers", answers },
        { "due_store_loading", loading },
        { "due_store_round_trip_seconds", (double)m.store.round_trip_ns / 1e9 },
        { "due_store_batches_total", (double)m.store.batches },
        { "due_store_batches_resent_total", (double)m.store.resent },
        { "due_store_connects_total", (double)m.store.connects },
        { "due_store_sent_bytes_total", (double)m.store.bytes_out },
        { "due_store_received_bytes_total", (double)m.store.bytes_in },
        { "due_store_quarantined_total", (double)m.store.quarantined },
        { "due_store_changes_settled_total", (double)m.stats.settled },
        { "due_store_jobs_kept_total", (double)m.stats.kept },
        { "due_store_jobs_mirrored_total", (double)m.stats.mirrored },
        { "due_store_changes_unsettled", (double)m.stats.unsettled },
        { "due_store_unsettled_bytes", (double)m.stats.unsettled_bytes },
    };
    char *text = exposition_text(s->lab.q);
    cr_expect_null(exposition_check(text), "%s", exposition_check(text));
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        cr_expect_float_eq(value(text, lines[i].name, ""), lines[i].is, 1e-9, "%s: %g, not %g",
                           lines[i].name, value(text, lines[i].name, ""), lines[i].is);
    cr_expect_eq(value(text, "due_store_durability", ",level=\"always\""),
                 m.store.durability == DUE_DURABLE_ALWAYS);
    cr_expect_eq(value(text, "due_store_durability", ",level=\"none\""),
                 m.store.durability == DUE_DURABLE_NONE);
    free(text);
}

/* A store that counts what the one in memory does not. */
static void many(due_store *store, struct due_store_stats *stats)
{
    (void)store;
    *stats = (struct due_store_stats){ .batches = 11,
                                       .resent = 12,
                                       .connects = 13,
                                       .bytes_out = 14,
                                       .bytes_in = 15,
                                       .quarantined = 16,
                                       .round_trip_ns = 17,
                                       .durability = DUE_DURABLE_ALWAYS,
                                       .connected = 1 };
}

Test(metrics_store, says_all_that_the_store_counts, .timeout = 60)
{
    struct shop s = { .disk = memory_disk_new(NULL) };
    due_store *store = memory_store_new(s.disk);
    struct due_store_verbs verbs = *store->verbs;

    store->verbs->free(store);
    verbs.stats = many;
    shop_begin(&s, (struct lab_options){ .with.confirm = DUE_CONFIRM_ASYNC }, &verbs);
    shop_wait_loaded(&s);
    lab_enqueue(&s.lab, "tea", .at_ns = 5);
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    expect_page(&s, 1, 0);
    shop_close(&s);
}

Test(metrics_store, says_what_is_on_its_way_and_that_nobody_answers, .timeout = 60)
{
    struct shop s = shop_make(.with.confirm = DUE_CONFIRM_ASYNC);
    due_job job;

    memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                       .times = MEMORY_ALWAYS,
                                                       .kind = MEMORY_AWAY });
    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_READY, .times = MEMORY_ALWAYS, .kind = MEMORY_AWAY });
    lab_enqueue(&s.lab, "tea", .at_ns = 5);
    while (lab_stats(&s.lab).store_state == 0)
        crew_sleep(DUE_MS(1));
    cr_expect_gt(lab_stats(&s.lab).unsettled_bytes, 0u);
    expect_page(&s, 0, 0);
    memory_store_forgive(s.store);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    lab_turn_to(&s.lab, 5);
    cr_assert_eq(lab_take(&s.lab, &job), 0);
    due_job_done(&job);
    shop_close(&s);
}

static struct due_topic_stats topic_stats(struct shop *s, int topic)
{
    struct due_topic_stats stats;

    cr_assert_eq(due_topic_stats_read(s->lab.q, topic, &stats), 0);
    return stats;
}

/* Somebody puts a job with the same key in when a call, which has found none, asks for the memory
 * of its own. */
struct meanwhile {
    struct shop *s;
    int topic;
    unsigned put;
};

#define LARGE 70000 /* never from memory that is kept: each time it is asked for */

static void *put_first(void *arg)
{
    struct meanwhile *m = arg;

    lab_enqueue(&m->s->lab, "tea", .topic = m->topic, .delay_ns = 5,
                .more = EXTRA(.key = "k", .key_len = 1));
    return NULL;
}

static void on_alloc(void *ctx, size_t size)
{
    struct meanwhile *m = ctx;
    pthread_t other;

    if (size < LARGE || m->put++ > 0)
        return;
    cr_assert_eq(pthread_create(&other, NULL, put_first, m), 0);
    pthread_join(other, NULL);
}

/* In the place that a job of a third topic had. */
Test(metrics_store, do_not_count_a_job_that_was_not_let_in, .timeout = 60)
{
    for (int confirm = DUE_CONFIRM_SYNC; confirm <= DUE_CONFIRM_ASYNC; confirm++) {
        static char large[LARGE];
        struct shop s = shop_make(.with.metrics = 1, .with.confirm = (enum due_confirm)confirm);
        int mail = lab_topic(&s.lab, "mail");
        int post = lab_topic(&s.lab, "post");
        struct meanwhile m = { .s = &s, .topic = post };
        due_spec spec = { DUE_SPEC_INIT, .data = large, .len = LARGE, .topic = mail,
                          .more = EXTRA(.key = "k", .key_len = 1) };

        for (int i = 0; i < 4; i++)
            lab_enqueue(&s.lab, "gone", .delay_ns = 0);
        cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0); /* in doubt they are not there */
        for (int i = 0; i < 4; i++)
            cr_expect_str_eq(lab_dequeue(&s.lab), "gone");
        cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        s.lab.state->memory.on_alloc_ctx = &m;
        s.lab.state->memory.on_alloc = on_alloc;
        cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), DUE_EEXIST);
        s.lab.state->memory.on_alloc = NULL;
        cr_expect_gt(m.put, 0u, "this proves nothing");
        cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        cr_expect_eq(topic_stats(&s, 0).enqueued, 4u);
        cr_expect_eq(topic_stats(&s, mail).enqueued, 0u);
        cr_expect_eq(topic_stats(&s, mail).delayed, 0u);
        cr_expect_eq(topic_stats(&s, post).enqueued, 1u);
        cr_expect_eq(lab_stats(&s.lab).enqueued, 5u);
        shop_close(&s);
    }
}
