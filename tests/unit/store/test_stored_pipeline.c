/* What a stored queue does with the next batch while one is with the store. */
#include "lab/shop.h"
#include "lab/take.h"

static struct shop shop_with(const struct due_store_verbs *verbs, struct lab_options with)
{
    struct shop s = { .disk =
                          memory_disk_new(&(struct memory_disk_options){ .batch_changes = 2 }) };

    shop_begin(&s, with, verbs);
    shop_wait_loaded(&s);
    return s;
}

#define shop_small(...) shop_with(NULL, (struct lab_options){ .kernel = false, __VA_ARGS__ })

static due_spec tea(void)
{
    return (due_spec){ DUE_SPEC_INIT, .data = "tea", .len = 3, .at_ns = 10 };
}

/* The batch behind the refused one was filled before anybody knew.  due_enqueue_batch() tries again
 * with what is left, under other ids. */
Test(stored_pipeline, no_job_is_in_that_was_given_behind_a_refused_one, .timeout = 60)
{
    struct shop s = shop_small();
    struct memory_entry entry;
    due_spec spec[8];

    for (int i = 0; i < 8; i++)
        spec[i] = tea();
    memory_store_fault(
        s.store, (struct memory_fault){ .verb = MEMORY_COMMIT, .call = 2, .kind = MEMORY_FULL });
    cr_expect_eq(due_enqueue_batch(s.lab.q, spec, 8, 0, NULL), 8);
    cr_expect_eq(memory_disk_jobs(s.disk), 8u);
    for (size_t i = 0; memory_disk_entry(s.disk, i, &entry); i++)
        cr_expect_eq(entry.id.byte[13], i < 2 ? i : i + 6, "%zu: %d", i, entry.id.byte[13]);
    shop_close(&s);
}

Test(stored_pipeline, the_next_batch_is_sent_before_the_last_one_is_worked_off, .timeout = 60)
{
    struct shop s = shop_small(.with.confirm = DUE_CONFIRM_ASYNC);
    struct memory_limiter *first = memory_limiter_new(s.disk);
    struct memory_limiter *second = memory_limiter_new(s.disk);

    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_COMMIT, .kind = MEMORY_BLOCK, .limiter = first });
    memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_SEND,
                                                       .call = 2,
                                                       .kind = MEMORY_BLOCK_AFTER,
                                                       .limiter = second });
    lab_enqueue(&s.lab, "one", .at_ns = 10);
    memory_limiter_reached(first, 1);
    lab_enqueue(&s.lab, "two", .at_ns = 10);
    lab_enqueue(&s.lab, "three", .at_ns = 10);
    memory_limiter_open(first);
    memory_limiter_reached(second, 1);
    cr_expect_eq(memory_disk_jobs(s.disk), 1u, "the second batch lands when it is asked for");
    cr_expect_eq(lab_stats(&s.lab).settled, 0u);
    memory_limiter_open(second);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    cr_expect_eq(lab_stats(&s.lab).settled, 3u);
    cr_expect_eq(memory_disk_jobs(s.disk), 3u);
    shop_close(&s);
    memory_limiter_free(first);
    memory_limiter_free(second);
}

/* Batches that were sent are in doubt until the store has been heard. */
Test(stored_pipeline, what_was_sent_and_not_heard_is_seen_to, .timeout = 60)
{
    for (int landed = 0; landed < 2; landed++) {
        struct shop s = shop_small(.with.store_timeout_ns = DUE_MS(20));
        due_spec spec = tea();
        due_id id;

        memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                           .times = MEMORY_ALWAYS,
                                                           .kind = MEMORY_AWAY });
        if (landed)
            memory_store_fault(
                s.store, (struct memory_fault){ .verb = MEMORY_SEND, .kind = MEMORY_DOUBT_LANDED });
        cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, &id), DUE_EINDOUBT);
        cr_expect_eq(memory_disk_find(s.disk, id, NULL), landed != 0);
        memory_store_forgive(s.store);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        cr_expect(memory_disk_find(s.disk, id, NULL));
        cr_expect_eq(lab_stats(&s.lab).waiting, 1u);
        shop_close(&s);
    }
}

Test(stored_pipeline, what_is_not_sent_ahead_is_sent_all_the_same, .timeout = 60)
{
    struct shop s = shop_small();
    due_spec spec[9];

    for (int i = 0; i < 9; i++)
        spec[i] = tea();
    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_SEND, .times = MEMORY_ALWAYS, .kind = MEMORY_AWAY });
    cr_expect_eq(due_enqueue_batch(s.lab.q, spec, 9, 0, NULL), 9);
    cr_expect_geq(memory_store_calls(s.store, MEMORY_SEND), 4u);
    cr_expect_eq(memory_disk_jobs(s.disk), 9u);
    shop_close(&s);
}

Test(stored_pipeline, a_store_need_not_have_it, .timeout = 60)
{
    struct memory_disk *disk = memory_disk_new(NULL);
    due_store *any = memory_store_new(disk);
    struct due_store_verbs verbs = *any->verbs;
    due_job jobs[200];
    due_spec spec[200];

    verbs.prepare = NULL;
    verbs.send = NULL;
    any->verbs->free(any);
    memory_disk_free(disk);
    struct shop s = shop_with(&verbs, (struct lab_options){ .kernel = false });
    for (int i = 0; i < 200; i++)
        spec[i] = tea();
    cr_assert_eq(due_enqueue_batch(s.lab.q, spec, 200, 0, NULL), 200);
    cr_expect_eq(memory_disk_jobs(s.disk), 200u);
    lab_turn_to(&s.lab, 10);
    cr_assert_eq(take_some(s.lab.q, NULL, 0, jobs, 200, 1), 200);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    for (int i = 0; i < 200; i++)
        due_job_done(&jobs[i]);
    shop_close(&s);
}

/* A call with many changes leaves them a piece at a time; each is in the store when it returns. */
Test(stored_pipeline, a_large_batch_is_confirmed_as_a_whole, .timeout = 60)
{
    struct memory_disk *disk = memory_disk_new(NULL);
    due_store *store = memory_store_new(disk);
    struct lab lab = lab_open(.with.store = store);
    due_spec spec[256];
    due_id id[256];
    due_job jobs[256];
    int results[256];

    for (int i = 0; i < 256; i++)
        spec[i] = tea();
    cr_assert_eq(due_enqueue_batch(lab.q, spec, 256, 0, id), 256);
    for (int i = 0; i < 256; i++)
        cr_expect(memory_disk_find(disk, id[i], NULL), "%d", i);
    cr_expect_geq(memory_store_calls(store, MEMORY_SEND), 2u);
    lab_turn_to(&lab, 10);
    cr_assert_eq(take_leased_some(lab.q, NULL, 0, jobs, 256, DUE_S(60), 1), 256);
    cr_expect_eq(due_ack_batch(jobs, 256, results), 256);
    cr_expect_eq(memory_disk_jobs(disk), 0u);
    lab_close(&lab);
    cr_expect_null(memory_disk_wrong(disk));
    memory_disk_free(disk);
}
