/* Unique keys: every policy in every state of the job that has the key, and when it is free. */
#include <stdio.h>

#include "lab/lab.h"
#include "lab/take.h"

#define LEASE 100

/* Enqueue a text under a key: the answer, and whose id it was. */
static due_job reserve(struct lab *lab)
{
    due_job job = { 0 };

    cr_assert_eq(take_leased(lab->q, &job, LEASE, 0), 0);
    return job;
}

/* The live job that has the key. */
static due_id holder(struct lab *lab, const char *key)
{
    due_id id = { { 0 } };

    cr_assert_eq(due_id_of_key(lab->q, key, strlen(key), &id), 0);
    return id;
}

static bool is_free(struct lab *lab, const char *key)
{
    due_id id;

    return due_id_of_key(lab->q, key, strlen(key), &id) == DUE_ENOENT;
}

static const enum due_key_policy all[] = { DUE_KEY_REFUSE, DUE_KEY_REPLACE, DUE_KEY_EARLIEST,
                                           DUE_KEY_DEBOUNCE };

/* ---- The four policies, while the job waits ---- */

LAB_TEST(keys, a_second_job_of_a_key_is_refused_and_told_whose_it_is)
{
    struct lab lab = lab_open();
    due_id first;
    due_id second = { { 0 } };

    cr_assert_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "tea", &first, .at_ns = 10), 0);
    cr_expect_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "jam", &second, .at_ns = 5), DUE_EEXIST);
    cr_expect(due_id_equal(first, second));
    cr_expect_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "jam", NULL, .at_ns = 5), DUE_EEXIST);
    cr_expect_eq(lab_stats(&lab).waiting, 1u);
    lab_turn_to(&lab, 10);
    cr_expect_str_eq(lab_dequeue_all(&lab), "tea");
    lab_close(&lab);
}

LAB_TEST(keys, replacing_gives_the_job_new_content_and_its_deadline)
{
    struct lab lab = lab_open();
    due_id first;
    due_id second;

    cr_assert_eq(lab_put_as(&lab, DUE_KEY_REPLACE, "tea", &first, .at_ns = 10, .priority = 1), 0);
    cr_expect_eq(lab_put_as(&lab, DUE_KEY_REPLACE, "jam and bread", &second, .at_ns = 30,
                            .priority = 7, .more = EXTRA(.headers = "h:1", .headers_len = 3)),
                 0);
    cr_expect(due_id_equal(first, second));
    due_info info = lab_find(&lab, first);
    cr_expect_eq(info.deadline_ns, 30);
    cr_expect_eq(info.priority, 7);
    cr_expect_eq(info.len, 13u);
    lab_turn_to(&lab, 29);
    cr_expect_null(lab_dequeue(&lab));
    lab_turn_to(&lab, 30);

    due_job job;
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect(due_id_equal(job.id, first));
    cr_expect_eq(job.headers_len, 3u);
    cr_expect_eq(memcmp(job.headers, "h:1", 3), 0);
    cr_expect_str_eq(lab_text(&lab, &job), "jam and bread");
    cr_expect_null(lab_dequeue(&lab));
    lab_close(&lab);
}

LAB_TEST(keys, the_earliest_of_two_deadlines_holds_and_the_content_stays)
{
    struct lab lab = lab_open();
    due_id first;
    due_id second;

    cr_assert_eq(lab_put_as(&lab, DUE_KEY_EARLIEST, "tea", &first, .at_ns = 20), 0);
    cr_expect_eq(lab_put_as(&lab, DUE_KEY_EARLIEST, "jam", &second, .at_ns = 30), 0);
    cr_expect(due_id_equal(first, second));
    cr_expect_eq(lab_find(&lab, first).deadline_ns, 20);
    cr_expect_eq(lab_put_as(&lab, DUE_KEY_EARLIEST, "ham", NULL, .at_ns = 10), 0);
    cr_expect_eq(lab_find(&lab, first).deadline_ns, 10);
    lab_turn_to(&lab, 10);
    cr_expect_str_eq(lab_dequeue_all(&lab), "tea");
    lab_close(&lab);
}

LAB_TEST(keys, debouncing_waits_from_the_last_call_on)
{
    struct lab lab = lab_open();
    due_id first;
    due_id second;

    cr_assert_eq(lab_put_as(&lab, DUE_KEY_DEBOUNCE, "a", &first, .delay_ns = 10), 0);
    for (int i = 0; i < 5; i++) {
        lab_advance(&lab, 9);
        cr_expect_null(lab_dequeue(&lab));
        cr_expect_eq(lab_put_as(&lab, DUE_KEY_DEBOUNCE, "b", &second, .delay_ns = 10), 0);
        cr_expect(due_id_equal(first, second));
    }
    cr_expect_eq(lab_put_as(&lab, DUE_KEY_DEBOUNCE, "last", NULL, .delay_ns = 3), 0);
    cr_expect_eq(lab_find(&lab, first).deadline_ns, 55, "the later of the two");
    lab_advance(&lab, 9);
    cr_expect_null(lab_dequeue(&lab));
    lab_advance(&lab, 1);
    cr_expect_str_eq(lab_dequeue_all(&lab), "last");
    lab_close(&lab);
}

LAB_TEST(keys, a_ready_job_can_be_changed_too)
{
    struct lab lab = lab_open();
    due_id id;

    cr_assert_eq(lab_put_as(&lab, DUE_KEY_REPLACE, "tea", &id, .at_ns = 10), 0);
    lab_enqueue(&lab, "other", .at_ns = 10);
    lab_turn_to(&lab, 10);
    (void)lab_stats(&lab);
    cr_expect_eq(due_poll(lab.q, NULL), 2);
    cr_expect_eq(lab_put_as(&lab, DUE_KEY_EARLIEST, "jam", NULL, .at_ns = 20), 0);
    cr_expect_eq(lab_find(&lab, id).deadline_ns, 10);
    cr_expect_eq(lab_put_as(&lab, DUE_KEY_DEBOUNCE, "jam", NULL, .at_ns = 20), 0);
    cr_expect_str_eq(lab_dequeue_all(&lab), "other");
    lab_turn_to(&lab, 20);
    cr_expect_str_eq(lab_dequeue_all(&lab), "jam");
    lab_close(&lab);
}

LAB_TEST(keys, topic_and_id_stay_when_content_is_replaced)
{
    struct lab lab = lab_open();
    int mail = lab_topic(&lab, "mail");
    due_id id;

    cr_assert_eq(lab_put_as(&lab, DUE_KEY_REPLACE, "tea", &id, .topic = mail), 0);
    cr_expect_eq(lab_put_as(&lab, DUE_KEY_REPLACE, "jam", NULL, .topic = 0), 0);
    cr_expect_eq(lab_find(&lab, id).topic, mail);
    cr_expect_str_eq(lab_dequeue_from(&lab, mail), "jam");
    lab_close(&lab);
}

/* ---- While somebody has the job ---- */

LAB_TEST(keys, a_reserved_job_refuses)
{
    struct lab lab = lab_open();
    due_id id = { { 0 } };

    cr_assert_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "tea", NULL, .delay_ns = 0), 0);
    due_job job = reserve(&lab);
    cr_expect_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "jam", &id, .delay_ns = 0), DUE_EEXIST);
    cr_expect(due_id_equal(id, job.id));
    cr_expect_eq(due_nack(&job, 0), 0);
    cr_expect_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "jam", NULL, .delay_ns = 0), DUE_EEXIST);
    cr_expect_str_eq(lab_dequeue_all(&lab), "tea");
    cr_expect(is_free(&lab, "k"));
    lab_close(&lab);
}

LAB_TEST(keys, of_a_reserved_job_the_key_is_taken_over)
{
    for (size_t i = 1; i < sizeof all / sizeof all[0]; i++) {
        struct lab lab = lab_open();
        due_id second;

        cr_assert_eq(
            lab_put_as(&lab, DUE_KEY_REFUSE, "tea", NULL, .more = EXTRA(.keep_key_ns = 1000)), 0);
        due_job job = reserve(&lab);
        cr_expect_eq(lab_put_as(&lab, all[i], "jam", &second, .at_ns = 50), 0);
        cr_expect_not(due_id_equal(job.id, second));
        cr_expect(due_id_equal(holder(&lab, "k"), second));
        cr_expect_eq(lab_stats(&lab).waiting, 1u);
        cr_expect_eq(lab_stats(&lab).leased, 1u);

        /* The first goes on without a key: neither a nack nor an ack touches it. */
        cr_expect_eq(due_nack(&job, 0), 0);
        job = reserve(&lab);
        cr_expect_str_eq((due_id_equal(job.id, second) ? "jam" : "tea"), "tea");
        cr_expect_eq(due_ack(&job), 0);
        cr_expect(due_id_equal(holder(&lab, "k"), second));
        lab_turn_to(&lab, 50);
        cr_expect_str_eq(lab_dequeue_all(&lab), "jam");
        cr_expect(is_free(&lab, "k"));
        lab_close(&lab);
    }
}

/* Bytes that are lent must stay as they are, also after the lease. */
LAB_TEST(keys, a_job_whose_last_holder_still_reads_it_is_not_replaced_in_place)
{
    struct lab lab = lab_open();
    due_id second;

    cr_assert_eq(lab_put_as(&lab, DUE_KEY_REPLACE, "tea", NULL, .delay_ns = 0), 0);
    due_job job = reserve(&lab);
    lab_advance(&lab, LEASE);
    cr_expect_eq(due_poll(lab.q, NULL), 1);
    cr_expect_eq(lab_put_as(&lab, DUE_KEY_REPLACE, "jam", &second, .delay_ns = 0), 0);
    cr_expect_not(due_id_equal(job.id, second));
    cr_expect_eq(memcmp(job.data, "tea", 3), 0);
    cr_expect_eq(due_ack(&job), DUE_ESTALE);
    cr_expect_str_eq(lab_dequeue_all(&lab), "tea jam");
    lab_close(&lab);
}

LAB_TEST(keys, other_content_begins_with_no_failures)
{
    const due_retry once = { .kind = DUE_RETRY_FIXED, .attempts_max = 2 };
    struct lab lab = lab_open();

    cr_assert_eq(lab_put_as(&lab, DUE_KEY_REPLACE, "tea", NULL, .more = EXTRA(.retry = &once)), 0);
    due_job job = reserve(&lab);
    cr_expect_eq(due_nack(&job, 50), 0);
    cr_expect_eq(lab_put_as(&lab, DUE_KEY_REPLACE, "jam", NULL, .more = EXTRA(.retry = &once)), 0);
    job = reserve(&lab);
    cr_expect_eq(job.attempts, 1u);
    cr_expect_eq(job.failures, 0u);
    cr_expect_eq(due_nack(&job, 0), 0);
    cr_expect_eq(lab_stats(&lab).dead, 0u);
    cr_expect_str_eq(lab_dequeue_all(&lab), "jam");
    lab_close(&lab);
}

/* ---- Dead jobs ---- */

LAB_TEST(keys, a_dead_job_has_its_key_and_comes_back_unless_refused)
{
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct lab lab = lab_open();
        due_id second;

        cr_assert_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "tea", NULL, .delay_ns = 0), 0);
        due_job job = reserve(&lab);
        due_id first = job.id;
        cr_assert_eq(due_bury(&job, "bad"), 0);
        cr_expect(due_id_equal(holder(&lab, "k"), first));
        int rc = lab_put_as(&lab, all[i], "jam", &second, .at_ns = 50);
        cr_expect(due_id_equal(first, second));
        if (all[i] == DUE_KEY_REFUSE) {
            cr_expect_eq(rc, DUE_EEXIST);
            cr_expect_eq(lab_stats(&lab).dead, 1u);
        } else {
            cr_expect_eq(rc, 0);
            cr_expect_eq(lab_stats(&lab).dead, 0u);
            cr_expect_eq(lab_stats(&lab).kicked, 1u);
            lab_turn_to(&lab, 49);
            cr_expect_null(lab_dequeue(&lab));
            lab_turn_to(&lab, 50);
            job = reserve(&lab);
            cr_expect_eq(job.attempts, 1u);
            cr_expect_eq(job.deadline_ns, 50);
            cr_expect_eq(memcmp(job.data, all[i] == DUE_KEY_EARLIEST ? "tea" : "jam", 3), 0);
            cr_expect_eq(due_ack(&job), 0);
        }
        lab_close(&lab);
    }
}

LAB_TEST(keys, the_limit_of_a_dead_jobs_new_content_holds)
{
    struct lab lab = lab_open();

    cr_assert_eq(lab_put_as(&lab, DUE_KEY_REPLACE, "tea", NULL, .more = EXTRA(.ttl_ns = 5)), 0);
    lab_advance(&lab, 5);
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_eq(lab_stats(&lab).dead, 1u);
    cr_expect_eq(lab_put_as(&lab, DUE_KEY_REPLACE, "jam", NULL, .more = EXTRA(.ttl_ns = 7)), 0);
    lab_advance(&lab, 7);
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_eq(lab_stats(&lab).dead, 1u);
    cr_expect_eq(lab_put_as(&lab, DUE_KEY_REPLACE, "ham", NULL, .delay_ns = 0), 0);
    lab_advance(&lab, 100);
    cr_expect_str_eq(lab_dequeue_all(&lab), "ham");
    lab_close(&lab);
}

LAB_TEST(keys, a_dead_job_that_is_cleared_frees_its_key)
{
    struct lab lab = lab_open(.with.dead_keep_ns = 10);

    cr_assert_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "tea", NULL, .more = EXTRA(.keep_key_ns = 1000)),
                 0);
    due_job job = reserve(&lab);
    cr_assert_eq(due_bury(&job, NULL), 0);
    lab_advance(&lab, 10);
    cr_expect_eq(due_poll(lab.q, NULL), 0);
    cr_expect(is_free(&lab, "k"));
    cr_expect_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "jam", NULL, .delay_ns = 0), 0);
    job = reserve(&lab);
    cr_assert_eq(due_bury(&job, NULL), 0);
    cr_expect_eq(due_clear_dead(lab.q, DUE_ALL_TOPICS, NULL), 0);
    cr_expect(is_free(&lab, "k"));
    lab_close(&lab);
}

/* ---- When a key is free ---- */

LAB_TEST(keys, whatever_ends_the_job_frees_the_key)
{
    struct lab lab = lab_open();
    due_job job;
    due_id id;

    cr_assert_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "dequeued", NULL, .delay_ns = 0), 0);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect(is_free(&lab, "k"), "as soon as somebody has it");
    cr_assert_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "cancelled", &id, .delay_ns = 5), 0);
    due_job_done(&job);
    cr_assert_eq(due_cancel(lab.q, id, NULL), 0);
    cr_assert_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "taken back", &id, .delay_ns = 5), 0);
    cr_assert_eq(due_cancel(lab.q, id, &job), 0);
    cr_assert_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "cleared", &id, .delay_ns = 5), 0);
    due_job_done(&job);
    cr_assert_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
    cr_assert_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "acked", &id, .delay_ns = 0), 0);
    job = reserve(&lab);
    cr_expect_eq(due_ack(&job), 0);
    cr_assert_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "revoked", &id, .delay_ns = 0), 0);
    job = reserve(&lab);
    cr_expect_eq(due_cancel(lab.q, id, NULL), DUE_EBUSY);
    cr_expect_eq(due_nack(&job, 0), 0);
    cr_expect(is_free(&lab, "k"));
    lab_close(&lab);
}

LAB_TEST(keys, a_key_is_kept_after_completion_for_as_long_as_asked)
{
    for (int acked = 0; acked < 2; acked++) {
        struct lab lab = lab_open(.start_ns = 7);
        due_job job;
        due_id id = { { 0 } };

        cr_assert_eq(
            lab_put_as(&lab, DUE_KEY_REFUSE, "tea", NULL, .more = EXTRA(.keep_key_ns = 100)), 0);
        if (acked)
            job = reserve(&lab);
        else
            cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
        due_id first = job.id;
        if (acked)
            cr_assert_eq(due_ack(&job), 0);
        else
            due_job_done(&job);
        lab_advance(&lab, 99);
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
            cr_expect_eq(lab_put_as(&lab, all[i], "jam", &id, .delay_ns = 0), DUE_EEXIST);
            cr_expect(due_id_equal(first, id));
        }
        cr_expect(is_free(&lab, "k"), "it is no live job's");
        cr_expect_eq(due_cancel_key(lab.q, "k", 1, NULL), DUE_ENOENT);
        lab_advance(&lab, 1);
        cr_expect_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "ham", NULL, .delay_ns = 0), 0);
        cr_expect_str_eq(lab_dequeue_all(&lab), "ham");
        lab_close(&lab);
    }
}

LAB_TEST(keys, what_is_not_completed_keeps_no_key)
{
    struct lab lab = lab_open();
    due_id id;

    cr_assert_eq(
        lab_put_as(&lab, DUE_KEY_REFUSE, "tea", &id, .more = EXTRA(.keep_key_ns = DUE_FOREVER)), 0);
    cr_assert_eq(due_cancel(lab.q, id, NULL), 0);
    cr_assert_eq(
        lab_put_as(&lab, DUE_KEY_REFUSE, "tea", &id, .more = EXTRA(.keep_key_ns = DUE_FOREVER)), 0);
    cr_assert_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
    cr_expect_eq(
        lab_put_as(&lab, DUE_KEY_REFUSE, "jam", NULL, .more = EXTRA(.keep_key_ns = DUE_FOREVER)),
        0);
    cr_expect_str_eq(lab_dequeue(&lab), "jam");
    cr_expect_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "ham", NULL, .delay_ns = 0), DUE_EEXIST);
    lab_close(&lab);
}

LAB_TEST(keys, how_long_it_is_kept_is_as_last_said)
{
    struct lab lab = lab_open();

    cr_assert_eq(lab_put_as(&lab, DUE_KEY_REPLACE, "tea", NULL, .more = EXTRA(.keep_key_ns = 1000)),
                 0);
    cr_assert_eq(lab_put_as(&lab, DUE_KEY_REPLACE, "jam", NULL, .more = EXTRA(.keep_key_ns = 10)),
                 0);
    cr_assert_eq(lab_put_as(&lab, DUE_KEY_EARLIEST, "ham", NULL, .more = EXTRA(.keep_key_ns = 5)),
                 0);
    cr_expect_str_eq(lab_dequeue(&lab), "jam");
    lab_advance(&lab, 9);
    cr_expect_eq(lab_put_as(&lab, DUE_KEY_REPLACE, "ham", NULL, .delay_ns = 0), DUE_EEXIST);
    lab_advance(&lab, 1);
    cr_expect_eq(lab_put_as(&lab, DUE_KEY_REPLACE, "ham", NULL, .delay_ns = 0), 0);
    lab_close(&lab);
}

/* Sweeping is seen by the memory that comes back. */
LAB_TEST(keys, kept_keys_go_when_their_time_is_over)
{
    struct lab lab = lab_open();
    char key[16];

    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 5000; i++) {
            snprintf(key, sizeof key, "%d.%d", round, i);
            cr_assert_eq(lab_put_key(&lab, key, DUE_KEY_REFUSE, "x", NULL,
                                     (due_spec){ .more = EXTRA(.keep_key_ns = 10) }),
                         0);
            cr_assert_str_eq(lab_dequeue(&lab), "x");
        }
        lab_advance(&lab, 10);
    }
    cr_expect_eq(due_trim(lab.q), 0);
    size_t before = lab.state->memory.bytes;
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof key, "5.%d", i);
        cr_assert_eq(lab_put_key(&lab, key, DUE_KEY_REFUSE, "x", NULL,
                                 (due_spec){ .more = EXTRA(.keep_key_ns = 10) }),
                     0);
        cr_assert_str_eq(lab_dequeue(&lab), "x");
    }
    lab_advance(&lab, 10);
    cr_expect_eq(due_trim(lab.q), 0);
    cr_expect_leq(lab.state->memory.bytes, before + 65536);
    lab_close(&lab);
}

/* ---- Keys are bytes ---- */

LAB_TEST(keys, keys_of_all_lengths_and_bytes_are_told_apart)
{
    struct lab lab = lab_open();
    unsigned char bytes[DUE_KEY_MAX];
    due_id id[DUE_KEY_MAX + 1];
    due_id found;

    memset(bytes, 0, sizeof bytes);
    for (size_t n = 1; n <= DUE_KEY_MAX; n++) {
        due_spec s = { DUE_SPEC_INIT, .delay_ns = 1, .more = EXTRA(.key = bytes, .key_len = n) };

        cr_assert_eq(due_enqueue(lab.q, &s, 0, &id[n]), 0, "%zu", n);
        cr_assert_eq(due_enqueue(lab.q, &s, 0, NULL), DUE_EEXIST, "%zu", n);
    }
    for (size_t n = 1; n <= DUE_KEY_MAX; n++) {
        cr_assert_eq(due_id_of_key(lab.q, bytes, n, &found), 0);
        cr_assert(due_id_equal(found, id[n]));
        bytes[n - 1] = 0xff; /* in a longer key only */
        cr_assert_eq(due_id_of_key(lab.q, bytes, n, &found), DUE_ENOENT);
        bytes[n - 1] = 0;
    }
    cr_expect_eq(lab_stats(&lab).waiting, (uint64_t)DUE_KEY_MAX);
    lab_close(&lab);
}

Test(keys, what_is_no_key_is_refused)
{
    struct lab lab = lab_open();
    unsigned char bytes[DUE_KEY_MAX + 1] = { 0 };
    due_spec longer = { DUE_SPEC_INIT, .more = EXTRA(.key = bytes, .key_len = DUE_KEY_MAX + 1) };
    due_spec empty = { DUE_SPEC_INIT, .more = EXTRA(.key = bytes) };
    due_spec none = { DUE_SPEC_INIT, .more = EXTRA(.key_len = 1) };
    due_spec negative = { DUE_SPEC_INIT,
                          .more = EXTRA(.key = bytes, .key_len = 1, .keep_key_ns = -1) };
    due_id id;

    cr_expect_eq(due_enqueue(lab.q, &longer, 0, NULL), DUE_EINVAL);
    cr_expect_eq(due_enqueue(lab.q, &empty, 0, NULL), DUE_EINVAL);
    cr_expect_eq(due_enqueue(lab.q, &none, 0, NULL), DUE_EINVAL);
    cr_expect_eq(due_enqueue(lab.q, &negative, 0, NULL), DUE_EINVAL);
    cr_expect_eq(due_id_of_key(lab.q, bytes, 0, &id), DUE_EINVAL);
    cr_expect_eq(due_id_of_key(lab.q, bytes, DUE_KEY_MAX + 1, &id), DUE_EINVAL);
    cr_expect_eq(due_id_of_key(lab.q, bytes, 1, &id), DUE_ENOENT);
    cr_expect_eq(due_cancel_key(lab.q, bytes, 0, NULL), DUE_EINVAL);
    lab_close(&lab);
}

LAB_TEST(keys, many_keys_are_found_while_the_table_grows_and_shrinks)
{
    struct lab lab = lab_open();
    enum { N = 30000 };
    char key[16];
    due_id id;

    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof key, "%d", i);
        cr_assert_eq(lab_put_key(&lab, key, DUE_KEY_REFUSE, "x", NULL, (due_spec){ .delay_ns = 1 }),
                     0);
        snprintf(key, sizeof key, "%d", i / 2);
        cr_assert_eq(due_id_of_key(lab.q, key, strlen(key), &id), 0, "%d of %d", i / 2, i);
    }
    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof key, "%d", i);
        cr_assert_eq(due_cancel_key(lab.q, key, strlen(key), NULL), 0);
        if (i % 5000 == 0)
            cr_assert_eq(due_trim(lab.q), 0);
        snprintf(key, sizeof key, "%d", i + (N - i) / 2);
        cr_assert_eq(due_id_of_key(lab.q, key, strlen(key), &id) == 0, i < N - 1, "%d", i);
    }
    cr_expect_eq(lab_stats(&lab).waiting, 0u);
    lab_close(&lab);
}
