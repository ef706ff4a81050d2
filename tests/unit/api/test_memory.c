/* Every allocation made to fail in turn: a clean error, nothing leaked, the queue still works. */
#include "lab/lab.h"

#include <stdio.h>

#define LARGE "a payload that does not fit into the thirty-two bytes of a job"

/* An open queue whose allocator fails the allocation @fail_at; NULL when opening failed. */
static due_queue *open_flaky(struct flaky *memory, size_t fail_at, size_t reserve)
{
    due_options options = { DUE_OPTIONS_INIT, .allocator = &memory->hooks, .reserve = reserve,
                            .proxies = (enum due_proxies)lab_proxies };
    due_error error = { .text = "" };
    due_queue *q = NULL;

    flaky_init(memory, fail_at);
    int rc = due_open(&q, &options, &error);
    if (rc == 0)
        return q;
    cr_assert_eq(rc, DUE_ENOMEM, "%s", due_error_name(rc));
    cr_expect_str_not_empty(error.text, "whoever opens is told, at allocation %zu", fail_at);
    cr_assert_null(q);
    return NULL;
}

static void close_flaky(due_queue *q, struct flaky *memory)
{
    int rc;

    memory->fail_at = FLAKY_NEVER;
    memory->fail_on = false;
    rc = due_close(q, DUE_CLOSE_DISCARD, DUE_FOREVER);
    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    cr_assert_eq(due_free(q), 0);
    cr_assert_eq(atomic_load(&memory->live), 0u, "%zu blocks leaked", atomic_load(&memory->live));
    cr_assert_eq(atomic_load(&memory->bad), 0u);
}

/* The queue must take a job and give it back. */
static void expect_works(due_queue *q)
{
    due_spec spec = { DUE_SPEC_INIT, .data = LARGE, .len = sizeof LARGE, .priority = 255 };
    due_job job;

    cr_assert_eq(due_enqueue(q, &spec, 0, NULL), 0);
    cr_assert_eq(due_dequeue(q, &job, DUE_S(20)), 0);
    due_job_done(&job);
}

LAB_TEST(memory, running_out_while_opening_leaves_nothing_behind)
{
    for (size_t n = 0;; n++) {
        struct flaky memory;
        due_queue *q = open_flaky(&memory, n, 0);

        if (q != NULL) {
            close_flaky(q, &memory);
            cr_assert_gt(n, 0u);
            return;
        }
        cr_assert_eq(atomic_load(&memory.live), 0u, "allocation %zu", n);
        cr_assert_eq(atomic_load(&memory.bad), 0u, "allocation %zu", n);
    }
}

LAB_TEST(memory, running_out_while_reserving_leaves_nothing_behind)
{
    for (size_t n = 0;; n++) {
        struct flaky memory;
        due_queue *q = open_flaky(&memory, n, 10000);

        if (q != NULL) {
            close_flaky(q, &memory);
            return;
        }
        cr_assert_eq(atomic_load(&memory.live), 0u, "allocation %zu", n);
    }
}

/* Runs @verb with the allocation after @n further ones failing, for every n it can fail at, on a
 * queue of its own each time. */
static void fail_in_turn(int (*verb)(due_queue *q), const char *name)
{
    for (size_t n = 0;; n++) {
        struct flaky memory;
        due_queue *q = open_flaky(&memory, FLAKY_NEVER, 0);

        cr_assert_not_null(q);
        flaky_fail_in(&memory, n);
        size_t at = memory.fail_at;
        int rc = verb(q);
        bool failed = atomic_load(&memory.calls) > at;

        memory.fail_at = FLAKY_NEVER;
        cr_assert(rc >= 0 || rc == DUE_ENOMEM || rc == DUE_ETIMEDOUT, "%s: %s", name,
                  due_error_name(rc));
        expect_works(q);
        close_flaky(q, &memory);
        if (!failed)
            return;
    }
}

static int enqueue_small(due_queue *q)
{
    due_spec spec = { DUE_SPEC_INIT, .data = "small", .len = 5, .delay_ns = DUE_S(1000) };

    return due_enqueue(q, &spec, 0, NULL);
}

static int enqueue_large(due_queue *q)
{
    due_spec spec = { DUE_SPEC_INIT, .data = LARGE, .len = sizeof LARGE, .delay_ns = DUE_S(1000) };

    return due_enqueue(q, &spec, 0, NULL);
}

LAB_TEST(memory, running_out_in_an_enqueue_is_an_error_and_no_more)
{
    fail_in_turn(enqueue_small, "small");
    fail_in_turn(enqueue_large, "large");
}

/* Of a batch those before the failure are in, and the answer says how many. */
static int enqueue_batch(due_queue *q)
{
    due_spec specs[8];
    struct due_stats s;

    for (int i = 0; i < 8; i++)
        specs[i] = (due_spec){ DUE_SPEC_INIT, .delay_ns = DUE_S(1000), .data = LARGE,
                               .len = sizeof LARGE };
    int rc = due_enqueue_batch(q, specs, 8, 0, NULL);
    cr_assert_eq(due_stats_read(q, &s), 0);
    cr_assert_eq(s.enqueued, rc > 0 ? (uint64_t)rc : 0u, "answered %d, but %ju are in", rc,
                 (uintmax_t)s.enqueued);
    return rc;
}

/* Payloads that use the memory of those before them, or need their own. */
static int payloads_again(due_queue *q)
{
    static const unsigned char bytes[70000];
    int last = 0;

    for (size_t i = 0; i < 60; i++) {
        due_spec spec = { DUE_SPEC_INIT, .data = bytes, .len = 33 + i * 1117 % 69000 };
        due_job job;
        int rc = due_enqueue(q, &spec, 0, NULL);

        last = rc != 0 ? rc : last;
        rc = i % 3 == 0 ? due_dequeue(q, &job, 0) : DUE_EAGAIN;
        if (rc == 0)
            due_job_done(&job);
        cr_assert(rc == 0 || rc == DUE_EAGAIN, "%s", due_error_name(rc));
    }
    cr_assert_eq(due_clear(q, DUE_ALL_TOPICS, NULL), 0);
    return last;
}

LAB_TEST(memory, running_out_where_payloads_are_kept_is_an_error_and_no_more)
{
    fail_in_turn(payloads_again, "payloads");
}

LAB_TEST(memory, running_out_in_a_batch_keeps_what_was_taken)
{
    fail_in_turn(enqueue_batch, "batch");
}

static int many_enqueues(due_queue *q)
{
    int last = 0;

    for (int i = 0; i < 20000; i++) {
        due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(1000) + i % 100 };
        int rc = due_enqueue(q, &spec, 0, NULL);

        cr_assert(rc == 0 || rc == DUE_ENOMEM, "%s", due_error_name(rc));
        last = rc != 0 ? rc : last;
    }
    return last;
}

LAB_TEST(memory, running_out_while_growing_is_an_error_and_no_more)
{
    fail_in_turn(many_enqueues, "growing");
}

/* What one piece had memory for, and the next had not, is given back each time. */
LAB_TEST(memory, running_out_again_and_again_while_growing_takes_no_more)
{
    for (size_t n = 0; n < 3; n++) {
        struct flaky memory;
        due_queue *q = open_flaky(&memory, FLAKY_NEVER, 0);
        due_spec spec = { DUE_SPEC_INIT, .data = "small", .len = 5, .delay_ns = DUE_S(1000) };
        size_t before = 0;

        cr_assert_not_null(q);
        for (int i = 0; i < 20; i++) {
            flaky_fail_in(&memory, n);
            memory.fail_on = true;
            int rc;
            do
                rc = due_enqueue(q, &spec, 0, NULL);
            while (rc == 0);
            cr_assert_eq(rc, DUE_ENOMEM, "%s", due_error_name(rc));
            size_t bytes = atomic_load(&memory.bytes);
            cr_assert(i == 0 || bytes == before, "%zu bytes, then %zu", before, bytes);
            before = bytes;
        }
        close_flaky(q, &memory);
    }
}

static int many_topics(due_queue *q)
{
    int last = 0;

    for (int i = 0; i < 600; i++) {
        char name[24];

        snprintf(name, sizeof name, "topic-%d", i);
        int topic = due_topic(q, name);
        cr_assert(topic > 0 || topic == DUE_ENOMEM, "%s", due_error_name(topic));
        if (topic < 0) {
            last = topic;
            topic = due_topic(q, name);
        }
        cr_assert_gt(topic, 0);
        cr_assert_str_eq(due_topic_name(q, topic), name);
    }
    return last;
}

Test(memory, running_out_while_making_topics_is_an_error_and_no_more, .timeout = 60)
{
    lab_proxies = DUE_PROXIES_NEVER;
    for (size_t n = 0; n < 40; n++) {
        struct flaky memory;
        due_queue *q = open_flaky(&memory, FLAKY_NEVER, 0);

        flaky_fail_in(&memory, n);
        many_topics(q);
        memory.fail_at = FLAKY_NEVER;
        expect_works(q);
        close_flaky(q, &memory);
    }
}

static int dequeue_that_waits(due_queue *q)
{
    due_job job;

    return due_dequeue(q, &job, DUE_MS(1));
}

LAB_TEST(memory, running_out_in_a_dequeue_that_waits_is_an_error_and_no_more)
{
    fail_in_turn(dequeue_that_waits, "dequeue");
}

static int jobs_that_become_due(due_queue *q)
{
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = 1 };
    int rc = due_enqueue(q, &spec, 0, NULL);
    due_job job;

    if (rc != 0)
        return rc;
    rc = due_dequeue(q, &job, DUE_S(20));
    if (rc == DUE_ENOMEM)
        rc = due_dequeue(q, &job, DUE_S(20));
    cr_assert_eq(rc, 0, "a job was lost: %s", due_error_name(rc));
    due_job_done(&job);
    return 0;
}

LAB_TEST(memory, running_out_does_not_lose_a_job_that_becomes_due)
{
    fail_in_turn(jobs_that_become_due, "becoming due");
}

static int change_and_look(due_queue *q)
{
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(1000) };
    struct due_stats stats;
    due_info info;
    due_id id;
    int rc = due_enqueue(q, &spec, 0, &id);

    if (rc != 0)
        return rc;
    rc = due_reschedule(q, id, due_now(q) + DUE_S(2000));
    cr_assert(rc == 0 || rc == DUE_ENOMEM, "%s", due_error_name(rc));
    rc = due_promote(q, id);
    cr_assert(rc == 0 || rc == DUE_ENOMEM, "%s", due_error_name(rc));
    cr_assert_eq(due_find(q, id, &info), 0);
    cr_assert_eq(due_stats_read(q, &stats), 0);
    cr_assert_eq(due_trim(q), 0);
    rc = due_fd(q);
    cr_assert(rc >= 0 || rc == DUE_ENOMEM, "%s", due_error_name(rc));
    return due_cancel(q, id, NULL);
}

LAB_TEST(memory, running_out_while_changing_and_looking_is_an_error_and_no_more)
{
    fail_in_turn(change_and_look, "changing");
}

/* Close must be possible without memory: it is what a program does then. */
LAB_TEST(memory, that_has_run_out_for_good_does_not_keep_a_queue_from_closing)
{
    struct flaky memory;
    due_queue *q = open_flaky(&memory, FLAKY_NEVER, 0);

    cr_assert_eq(enqueue_large(q), 0);
    cr_assert_eq(enqueue_small(q), 0);
    flaky_fail_in(&memory, 0);
    memory.fail_on = true;
    int rc = due_close(q, DUE_CLOSE_DISCARD, DUE_FOREVER);
    cr_expect_eq(rc, 0, "%s", due_error_name(rc));
    close_flaky(q, &memory);
}

/* Jobs that are in go on being delivered when no memory is to be had. */
LAB_TEST(memory, that_has_run_out_for_good_does_not_hold_deliveries_up)
{
    struct flaky memory;
    due_queue *q = open_flaky(&memory, FLAKY_NEVER, 0);
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = 1 };
    int taken = 0;
    due_job job;

    for (int i = 0; i < 2000; i++)
        cr_assert_eq(due_enqueue(q, &spec, 0, NULL), 0);
    flaky_fail_in(&memory, 0);
    memory.fail_on = true;
    while (taken < 2000) {
        int rc = due_dequeue(q, &job, 0);

        cr_assert(rc == 0 || rc == DUE_EAGAIN, "%s", due_error_name(rc));
        if (rc == 0) {
            due_job_done(&job);
            taken++;
        }
    }
    close_flaky(q, &memory);
}

LAB_TEST(memory, for_a_manual_clock_is_given_back_too)
{
    due_clock *clock = due_clock_manual(0);
    struct flaky memory;
    due_queue *q = NULL;

    cr_assert_not_null(clock);
    for (size_t n = 0; q == NULL; n++) {
        due_options options = { DUE_OPTIONS_INIT, .allocator = &memory.hooks, .manual = clock,
                                .proxies = (enum due_proxies)lab_proxies };

        flaky_init(&memory, n);
        int rc = due_open(&q, &options, NULL);
        cr_assert(rc == 0 || rc == DUE_ENOMEM, "%s", due_error_name(rc));
        if (rc != 0)
            cr_assert_eq(due_clock_advance(clock, 1), 0, "a queue that is gone stayed on it");
    }
    close_flaky(q, &memory);
    cr_expect_eq(due_clock_free(clock), 0);
}
