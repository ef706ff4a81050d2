/* With DUE_CONFIRM_ASYNC: once a call has answered that a job is gone its key is nobody's, or is
 * kept, though the store has not heard of it yet. */
#include <stdio.h>

#include "lab/shop.h"
#include "lab/take.h"

#define LEASE 1000

/* The ways for a job to leave; the first two are acks. */
static int ack(struct shop *s, due_id id, due_job *job)
{
    (void)s, (void)id;
    return due_ack(job);
}

static int ack_batch(struct shop *s, due_id id, due_job *job)
{
    (void)s, (void)id;
    return due_ack_batch(job, 1, NULL) - 1;
}

static int cancel(struct shop *s, due_id id, due_job *job)
{
    (void)job;
    return due_cancel(s->lab.q, id, NULL);
}

static int cancel_batch(struct shop *s, due_id id, due_job *job)
{
    (void)job;
    return due_cancel_batch(s->lab.q, &id, 1, NULL) - 1;
}

static int cancel_key(struct shop *s, due_id id, due_job *job)
{
    (void)id, (void)job;
    return due_cancel_key(s->lab.q, "k", 1, NULL);
}

static int clear(struct shop *s, due_id id, due_job *job)
{
    uint64_t cleared = 0;

    (void)id, (void)job;
    return due_clear(s->lab.q, DUE_ALL_TOPICS, &cleared) == 0 ? (int)cleared - 1 : -1;
}

static int (*const ways[])(struct shop *, due_id, due_job *) = { ack,          ack_batch,  cancel,
                                                                 cancel_batch, cancel_key, clear };
#define ACKS 2u
#define WAYS (sizeof ways / sizeof ways[0])

static void flush(struct shop *s)
{
    cr_assert_eq(due_flush(s->lab.q, DUE_S(30)), 0);
}

/* A stored job with the key, reserved if it is to be acked; nothing is settled from here on. */
static due_id put_first(struct shop *s, bool reserved, int64_t keep_ns, due_job *job)
{
    due_id id;

    cr_assert_eq(shop_put_as(s, DUE_KEY_REFUSE, "tea", &id, KEEPS(keep_ns)), 0);
    flush(s);
    if (reserved)
        cr_assert_eq(take_leased(s->lab.q, job, LEASE, 0), 0);
    shop_fail(s, MEMORY_READY, MEMORY_ALWAYS, MEMORY_AWAY);
    return id;
}

static void expect_on_disk(struct shop *s, due_id id)
{
    due_id there;

    cr_expect(memory_disk_key(s->disk, "k", 1, &there, NULL));
    cr_expect(due_id_equal(there, id));
}

Test(keys_gone, a_key_is_free_when_its_job_was_answered_to_be_gone, .timeout = 60)
{
    for (size_t way = 0; way < WAYS; way++)
        for (int policy = DUE_KEY_REFUSE; policy <= DUE_KEY_DEBOUNCE; policy++) {
            struct shop s = shop_make(.with.confirm = DUE_CONFIRM_ASYNC);
            due_job job = { 0 };
            due_id first = put_first(&s, way < ACKS, way < ACKS ? 0 : 50, &job);
            due_id id;

            cr_assert_eq(ways[way](&s, first, &job), 0, "%zu", way);
            cr_expect_eq(due_id_of_key(s.lab.q, "k", 1, &id), DUE_ENOENT, "%zu", way);
            cr_expect_eq(due_cancel_key(s.lab.q, "k", 1, NULL), DUE_ENOENT, "%zu", way);
            int rc = shop_put_as(&s, (enum due_key_policy)policy, "jam", &id, .at_ns = 90);
            cr_expect_eq(rc, 0, "%zu, %d: %s", way, policy, due_error_name(rc));
            cr_expect_not(due_id_equal(id, first));
            memory_store_forgive(s.store);
            flush(&s);
            expect_on_disk(&s, id);
            cr_expect_eq(memory_disk_jobs(s.disk), 1u);
            shop_close(&s);
        }
}

Test(keys_gone, a_key_is_kept_when_its_job_was_answered_to_be_acked, .timeout = 60)
{
    for (size_t way = 0; way < ACKS; way++)
        for (int policy = DUE_KEY_REFUSE; policy <= DUE_KEY_DEBOUNCE; policy++) {
            struct shop s = shop_make(.with.confirm = DUE_CONFIRM_ASYNC);
            due_job job = { 0 };
            due_id first = put_first(&s, true, 50, &job);
            due_id id;

            cr_assert_eq(ways[way](&s, first, &job), 0);
            cr_expect_eq(due_id_of_key(s.lab.q, "k", 1, &id), DUE_ENOENT);
            int rc = shop_put_as(&s, (enum due_key_policy)policy, "jam", &id, .at_ns = 90);
            cr_expect_eq(rc, DUE_EEXIST, "%s", due_error_name(rc));
            cr_expect(due_id_equal(id, first));
            memory_store_forgive(s.store);
            flush(&s);
            cr_expect_eq(memory_disk_jobs(s.disk), 0u);
            expect_on_disk(&s, first);
            lab_advance(&s.lab, 50);
            cr_expect_eq(shop_put_as(&s, DUE_KEY_REFUSE, "jam", &id, .at_ns = 90), 0);
            shop_close(&s);
        }
}

/* What the store refuses has not happened: the key is the job's again. */
Test(keys_gone, a_key_stays_with_a_job_whose_end_is_refused, .timeout = 60)
{
    for (size_t way = 0; way < WAYS; way++) {
        struct shop s = shop_make(.with.confirm = DUE_CONFIRM_ASYNC);
        due_job job = { 0 };
        due_id first = put_first(&s, way < ACKS, 50, &job);
        due_id id;

        memory_store_forgive(s.store);
        memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                           .kind = MEMORY_ANSWER,
                                                           .answer = DUE_EACCES });
        cr_assert_eq(ways[way](&s, first, &job), 0, "%zu", way);
        flush(&s);
        cr_expect_eq(due_id_of_key(s.lab.q, "k", 1, &id), 0, "%zu", way);
        cr_expect(due_id_equal(id, first));
        cr_expect_eq(shop_put_as(&s, DUE_KEY_REFUSE, "jam", &id, .at_ns = 90), DUE_EEXIST);
        expect_on_disk(&s, first);
        shop_close(&s);
    }
}

Test(keys_gone, other_content_of_a_key_begins_with_no_failures, .timeout = 60)
{
    const due_retry twice = { .kind = DUE_RETRY_FIXED, .attempts_max = 2 };
    struct shop s = shop_make();
    due_job job;

    cr_assert_eq(shop_put_as(&s, DUE_KEY_REPLACE, "tea", NULL, .more = EXTRA(.retry = &twice)), 0);
    cr_assert_eq(take_leased(s.lab.q, &job, 100, 0), 0);
    cr_expect_eq(due_nack(&job, 50), 0);
    cr_expect_eq(shop_put_as(&s, DUE_KEY_REPLACE, "jam", NULL, .more = EXTRA(.retry = &twice)), 0);
    cr_assert_eq(take_leased(s.lab.q, &job, 100, 0), 0);
    cr_expect_eq(job.attempts, 1u);
    cr_expect_eq(job.failures, 0u);
    cr_expect_str_eq(lab_text(&s.lab, &job), "jam");
    shop_close(&s);
}

/* ---- Those that were kept long enough ---- */

/* The store is told to forget no more of them at once than it takes. */
Test(keys_gone, that_are_over_are_forgotten_as_far_as_a_batch_has_room, .timeout = 60)
{
    enum { KEYS = 600, MORE = 400 };
    static const struct memory_disk_options small = { .batch_changes = 2 };
    struct shop s = shop_new(&small, (struct lab_options){ .start_ns = 1 });
    char key[16];

    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "%d", i);
        cr_assert_eq(shop_put(&s, key, "x", NULL, (due_spec){ KEEPS(10) }), 0);
        cr_assert_str_eq(lab_dequeue(&s.lab), "x");
    }
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    cr_expect_geq(memory_disk_keys(s.disk), KEYS / 2u);
    lab_advance(&s.lab, 100);
    for (int i = 0; i < MORE; i++) {
        lab_enqueue(&s.lab, "x", .delay_ns = 0);
        cr_assert_str_eq(lab_dequeue(&s.lab), "x");
    }
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    cr_expect_leq(memory_disk_keys(s.disk), KEYS / 2u, "%zu", memory_disk_keys(s.disk));
    shop_close(&s);
}
