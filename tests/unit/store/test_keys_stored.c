/* Unique keys in a queue with a store: what is there when, and what comes back. */
#include <stdio.h>

#include "os/atomic.h"
#include "queue/queue.h"
#include "lab/shop.h"
#include "store/sender.h"
#include "lab/take.h"

#define LEASE 100

/* The program dies, and starts again at @ns; it is still reading. */
static void shop_again(struct shop *s, int64_t ns)
{
    shop_die(s);
    shop_begin(s, (struct lab_options){ .start_ns = ns }, NULL);
}

static due_job reserve(struct shop *s)
{
    due_job job = { 0 };

    while (lab_stats(&s->lab).loading)
        crew_sleep(DUE_MS(1));
    cr_assert_eq(take_leased(s->lab.q, &job, LEASE, 0), 0);
    return job;
}

/* Whose the key is in the store; *@until_ns: 0, or so long it is kept. */
static due_id on_disk(struct shop *s, const char *key, int64_t *until_ns)
{
    due_id id = { { 0 } };

    cr_assert(memory_disk_key(s->disk, key, strlen(key), &id, until_ns));
    return id;
}

static bool disk_free_of(struct shop *s, const char *key)
{
    return !memory_disk_key(s->disk, key, strlen(key), NULL, NULL);
}

/* ---- There and back ---- */

Test(keys_stored, a_key_comes_back_with_its_job, .timeout = 60)
{
    struct shop s = shop_make();
    due_id id;
    due_id other;
    int64_t until = -1;

    cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "tea", &id, .at_ns = 50, KEEPS(7)), 0);
    cr_expect(due_id_equal(on_disk(&s, "k", &until), id));
    cr_expect_eq(until, 0);
    shop_again(&s, 0);
    cr_expect_eq(shop_put_as(&s, DUE_KEY_REFUSE, "jam", &other, .delay_ns = 0), DUE_EEXIST);
    cr_expect(due_id_equal(id, other));
    cr_expect_eq(due_id_of_key(s.lab.q, "k", 1, &other), 0);
    cr_expect_eq(due_cancel_key(s.lab.q, "k", 1, NULL), 0);
    cr_expect(disk_free_of(&s, "k"));
    cr_expect_eq(shop_put_as(&s, DUE_KEY_REFUSE, "jam", NULL, .delay_ns = 0), 0);
    shop_close(&s);
}

/* How the job is done: dequeued, or acked. */
static void done(struct shop *s, bool ack)
{
    due_job job = { 0 };

    if (ack) {
        job = reserve(s);
        cr_assert_eq(due_ack(&job), 0);
    } else {
        cr_assert_eq(lab_take(&s->lab, &job), 0);
        due_job_done(&job);
    }
}

Test(keys_stored, a_kept_key_survives_a_restart_and_then_its_time_is_over, .timeout = 60)
{
    for (int ack = 0; ack < 2; ack++) {
        struct shop s = shop_make(.start_ns = 5);
        due_id id;
        due_id other;
        int64_t until;

        cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "tea", &id, KEEPS(100)), 0);
        done(&s, ack);
        cr_expect(due_id_equal(on_disk(&s, "k", &until), id));
        cr_expect_eq(until, 105);
        shop_again(&s, 104);
        cr_expect_eq(shop_put_as(&s, DUE_KEY_REPLACE, "jam", &other, .delay_ns = 0), DUE_EEXIST);
        cr_expect(due_id_equal(id, other));
        cr_expect_eq(due_id_of_key(s.lab.q, "k", 1, &other), DUE_ENOENT);
        lab_advance(&s.lab, 1);
        cr_expect_eq(shop_put_as(&s, DUE_KEY_REFUSE, "jam", &other, .delay_ns = 0), 0);
        cr_expect(due_id_equal(on_disk(&s, "k", &until), other));
        cr_expect_eq(until, 0);
        shop_close(&s);
    }
}

Test(keys_stored, what_is_not_kept_leaves_with_its_job, .timeout = 60)
{
    struct shop s = shop_make();
    due_job job;
    due_id id;

    cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "dequeued", NULL, .delay_ns = 0), 0);
    done(&s, false);
    cr_expect(disk_free_of(&s, "k"));
    cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "acked", NULL, .delay_ns = 0), 0);
    done(&s, true);
    cr_expect(disk_free_of(&s, "k"));
    cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "cancelled", &id, KEEPS(9)), 0);
    cr_assert_eq(due_cancel(s.lab.q, id, NULL), 0);
    cr_expect(disk_free_of(&s, "k"));
    cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "lent", &id, KEEPS(9)), 0);
    cr_assert_eq(due_cancel(s.lab.q, id, &job), 0);
    due_job_done(&job);
    cr_expect(disk_free_of(&s, "k"));
    cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "cleared", NULL, KEEPS(9)), 0);
    cr_assert_eq(due_clear(s.lab.q, DUE_ALL_TOPICS, NULL), 0);
    cr_expect(disk_free_of(&s, "k"));
    cr_expect_eq(memory_disk_keys(s.disk), 0u);
    shop_close(&s);
}

/* Those that are no longer kept leave the store with what is sent afterwards. */
Test(keys_stored, the_store_does_not_keep_keys_for_ever, .timeout = 60)
{
    enum { KEYS = 500 };
    struct shop s = shop_make();
    char key[16];

    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < KEYS; i++) {
            snprintf(key, sizeof key, "%d.%d", round, i);
            cr_assert_eq(shop_put(&s, key, "x", NULL, (due_spec){ KEEPS(10) }), 0);
            done(&s, false);
        }
        lab_advance(&s.lab, 10);
    }
    cr_expect_leq(memory_disk_keys(s.disk), 2u * KEYS);
    shop_again(&s, 1000);
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "5.%d", i);
        cr_assert_eq(shop_put(&s, key, "x", NULL, (due_spec){ KEEPS(10) }), 0);
        done(&s, true);
    }
    cr_expect_leq(memory_disk_keys(s.disk), KEYS + KEYS / 2u);
    shop_close(&s);
}

/* ---- Taking over ---- */

Test(keys_stored, a_key_that_was_taken_over_is_the_later_jobs_after_a_restart, .timeout = 60)
{
    struct shop s = shop_make();
    due_id first;
    due_id second;
    due_id id;

    cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "tea", &first, .priority = 1), 0);
    due_job job = reserve(&s);
    cr_assert_eq(shop_put_as(&s, DUE_KEY_REPLACE, "jam", &second, .at_ns = 9, .priority = 200), 0);
    cr_expect(due_id_equal(on_disk(&s, "k", NULL), second));
    due_job_done(&job); /* it dies with it */
    shop_again(&s, 0);
    cr_expect_eq(due_id_of_key(s.lab.q, "k", 1, &id), 0);
    cr_expect(due_id_equal(id, second));
    cr_expect_eq(lab_stats(&s.lab).restored, 2u);

    job = reserve(&s);
    cr_expect(due_id_equal(job.id, first));
    cr_expect_eq(due_ack(&job), 0);
    cr_expect(due_id_equal(on_disk(&s, "k", NULL), second), "the first one's removal left it");
    cr_assert_eq(due_cancel(s.lab.q, second, NULL), 0);
    cr_expect(disk_free_of(&s, "k"));
    shop_close(&s);
}

/* Its record names the key still.  @ended: how the second one is gone. */
static void expect_not_given_back(void (*ended)(struct shop *s, due_id second), int64_t keep_ns)
{
    struct shop s = shop_make();
    due_id second;
    due_id id;

    cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "tea", NULL, KEEPS(keep_ns)), 0);
    due_job job = reserve(&s);
    cr_assert_eq(shop_put_as(&s, DUE_KEY_REPLACE, "jam", &second, KEEPS(keep_ns)), 0);
    ended(&s, second);
    due_job_done(&job); /* it dies with it */
    shop_again(&s, 20);
    cr_expect_eq(due_id_of_key(s.lab.q, "k", 1, &id), DUE_ENOENT);
    cr_expect(disk_free_of(&s, "k"));
    cr_expect_eq(shop_put_as(&s, DUE_KEY_REFUSE, "ham", &second, .at_ns = 90), 0);
    job = reserve(&s);
    cr_expect_eq(memcmp(job.data, "tea", 3), 0);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect(due_id_equal(on_disk(&s, "k", NULL), second), "the first one's removal left it");
    shop_close(&s);
}

static void cancelled(struct shop *s, due_id second)
{
    cr_assert_eq(due_cancel(s->lab.q, second, NULL), 0);
}

static void acked(struct shop *s, due_id second)
{
    due_job job = reserve(s);

    cr_expect(due_id_equal(job.id, second));
    cr_assert_eq(due_ack(&job), 0);
}

/* And the time is over for which its key was kept. */
static void acked_and_forgotten(struct shop *s, due_id second)
{
    acked(s, second);
    lab_turn_to(&s->lab, 20);
    for (int i = 0; i < 64 && !disk_free_of(s, "k"); i++)
        lab_enqueue(&s->lab, "other", .at_ns = 99);
    cr_expect(disk_free_of(s, "k"));
}

Test(keys_stored, a_job_that_lost_its_key_has_it_not_again_after_a_restart, .timeout = 60)
{
    expect_not_given_back(cancelled, 0);
    expect_not_given_back(acked, 0);
    expect_not_given_back(acked_and_forgotten, 10);
}

Test(keys_stored, a_takeover_that_the_store_refuses_gives_the_key_back, .timeout = 60)
{
    struct shop s = shop_make();
    due_id id;

    cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "tea", NULL, KEEPS(50)), 0);
    due_job job = reserve(&s);
    memory_store_fault(s.store,
                       (struct memory_fault){ .verb = MEMORY_COMMIT, .kind = MEMORY_FULL });
    cr_expect_eq(shop_put_as(&s, DUE_KEY_REPLACE, "jam", &id, .at_ns = 9), DUE_ENOSPC);
    cr_expect_eq(due_id_of_key(s.lab.q, "k", 1, &id), 0);
    cr_expect(due_id_equal(id, job.id));
    due_id first = job.id;
    cr_expect_eq(due_ack(&job), 0);
    int64_t until;
    cr_expect(due_id_equal(on_disk(&s, "k", &until), first));
    cr_expect_eq(until, 50);
    cr_expect_eq(lab_stats(&s.lab).waiting, 0u);
    shop_close(&s);
}

Test(keys_stored, a_job_that_the_store_refuses_has_no_key, .timeout = 60)
{
    struct shop s = shop_make(.with.store_timeout_ns = DUE_MS(30));
    due_id id;

    memory_store_fault(s.store,
                       (struct memory_fault){ .verb = MEMORY_COMMIT, .kind = MEMORY_FULL });
    cr_expect_eq(shop_put_as(&s, DUE_KEY_REFUSE, "tea", NULL, .delay_ns = 0), DUE_ENOSPC);
    cr_expect_eq(due_id_of_key(s.lab.q, "k", 1, &id), DUE_ENOENT);
    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_READY, .kind = MEMORY_AWAY, .times = MEMORY_ALWAYS });
    cr_expect_eq(shop_put_as(&s, DUE_KEY_REFUSE, "jam", NULL, .delay_ns = 0), DUE_ETIMEDOUT);
    cr_expect_eq(due_id_of_key(s.lab.q, "k", 1, &id), DUE_ENOENT);
    memory_store_forgive(s.store);
    cr_expect_eq(shop_put_as(&s, DUE_KEY_REFUSE, "ham", NULL, .delay_ns = 0), 0);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "ham");
    shop_close(&s);
}

/* ---- Changing the job that has the key ---- */

static due_record stored(struct shop *s, due_id id)
{
    due_record r;

    cr_assert(memory_disk_find(s->disk, id, &r));
    return r;
}

Test(keys_stored, a_waiting_job_is_changed_in_the_store_and_after_a_restart, .timeout = 60)
{
    static const struct {
        enum due_key_policy policy;
        int64_t at_ns;
        int64_t then_ns;
        const char *text;
    } cases[] = {
        { DUE_KEY_REPLACE, 10, 10, "jam" },  { DUE_KEY_REPLACE, 30, 30, "jam" },
        { DUE_KEY_EARLIEST, 10, 10, "tea" }, { DUE_KEY_EARLIEST, 30, 20, "tea" },
        { DUE_KEY_DEBOUNCE, 10, 20, "jam" }, { DUE_KEY_DEBOUNCE, 30, 30, "jam" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct shop s = shop_make();
        due_id id;
        due_id other;

        cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "tea", &id, .at_ns = 20, .priority = 3), 0);
        cr_expect_eq(
            shop_put_as(&s, cases[i].policy, "jam", &other, .at_ns = cases[i].at_ns, KEEPS(9)), 0);
        cr_expect(due_id_equal(id, other));
        cr_expect_eq(lab_find(&s.lab, id).deadline_ns, cases[i].then_ns, "%zu", i);
        cr_expect_eq(stored(&s, id).deadline_ns, cases[i].then_ns, "%zu", i);
        cr_expect_eq(stored(&s, id).priority, 3);
        cr_expect(due_id_equal(on_disk(&s, "k", NULL), id));
        shop_again(&s, 0);
        cr_expect_eq(shop_put_as(&s, DUE_KEY_REFUSE, "ham", NULL, .at_ns = 1), DUE_EEXIST);
        lab_turn_to(&s.lab, cases[i].then_ns - 1);
        cr_expect_null(lab_dequeue(&s.lab));
        lab_turn_to(&s.lab, cases[i].then_ns);
        cr_expect_str_eq(lab_dequeue_all(&s.lab), cases[i].text);
        bool kept = cases[i].policy != DUE_KEY_EARLIEST;
        cr_expect_eq(disk_free_of(&s, "k"), !kept);
        shop_close(&s);
    }
}

Test(keys_stored, a_change_that_the_store_refuses_has_not_been, .timeout = 60)
{
    struct shop s = shop_make();
    due_id id;

    cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "tea", &id, .at_ns = 20, KEEPS(7)), 0);
    for (int policy = DUE_KEY_REPLACE; policy <= DUE_KEY_DEBOUNCE; policy++) {
        memory_store_fault(s.store,
                           (struct memory_fault){ .verb = MEMORY_COMMIT, .kind = MEMORY_FULL });
        cr_expect_eq(shop_put_as(&s, (enum due_key_policy)policy, "jam", NULL, .at_ns = 10),
                     DUE_ENOSPC);
    }
    cr_expect_eq(lab_find(&s.lab, id).deadline_ns, 20);
    lab_turn_to(&s.lab, 20);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "tea");
    int64_t until;
    cr_expect(due_id_equal(on_disk(&s, "k", &until), id));
    cr_expect_eq(until, 27);
    shop_close(&s);
}

Test(keys_stored, a_dead_job_comes_back_in_the_store_too, .timeout = 60)
{
    for (int policy = DUE_KEY_REPLACE; policy <= DUE_KEY_DEBOUNCE; policy++) {
        struct shop s = shop_make();
        due_id id;

        cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "tea", NULL, .delay_ns = 0), 0);
        due_job job = reserve(&s);
        due_id first = job.id;
        cr_assert_eq(due_bury(&job, "bad"), 0);
        cr_assert_eq(stored(&s, first).cause, DUE_CAUSE_BURIED);
        cr_expect_eq(shop_put_as(&s, DUE_KEY_REFUSE, "jam", NULL, .at_ns = 50), DUE_EEXIST);
        cr_expect_eq(shop_put_as(&s, (enum due_key_policy)policy, "jam", &id, .at_ns = 50), 0);
        cr_expect(due_id_equal(first, id));
        due_record r = stored(&s, id);
        cr_expect_eq((int)r.cause, 0);
        cr_expect_eq(r.until_ns, 50);
        cr_expect_eq(r.attempts, 0u);
        shop_again(&s, 50);
        job = reserve(&s);
        cr_expect_eq(job.attempts, 1u);
        cr_expect_eq(memcmp(job.data, policy == DUE_KEY_EARLIEST ? "tea" : "jam", 3), 0);
        cr_expect_eq(due_ack(&job), 0);
        cr_expect_eq(memory_disk_keys(s.disk), 0u);
        shop_close(&s);
    }
}

/* As in a queue of memory, also if its time limit makes it a PUT. */
Test(keys_stored, the_new_deadline_of_a_dead_job_is_its_own, .timeout = 60)
{
    for (int i = 0; i < 6; i++) {
        enum due_key_policy policy = (enum due_key_policy)(DUE_KEY_REPLACE + i % 3);
        struct shop s = shop_make(.start_ns = 10);
        due_id id;

        cr_assert_eq(
            shop_put_as(&s, DUE_KEY_REFUSE, "tea", &id, .more = EXTRA(.ttl_ns = i < 3 ? 0 : 5)), 0);
        due_job job = reserve(&s);
        cr_assert_eq(due_bury(&job, "bad"), 0);
        cr_expect_eq(shop_put_as(&s, policy, "jam", NULL, .at_ns = 50), 0);
        cr_expect_eq(stored(&s, id).deadline_ns, 50, "%d", i);
        for (int again = 0; again < 2; again++) {
            lab_turn_to(&s.lab, 50);
            job = reserve(&s);
            cr_expect_eq(job.deadline_ns, 50, "%d %d", i, again);
            due_job_done(&job);
            shop_again(&s, 10);
        }
        shop_close(&s);
    }
}

/* The first one's PUT is under way: the second waits for that, and changes it then. */
Test(keys_stored, a_job_on_its_way_to_the_store_is_waited_for, .timeout = 60)
{
    struct shop s = shop_make(.with.confirm = DUE_CONFIRM_ASYNC);
    due_id id;
    due_id other;

    cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "tea", &id, .at_ns = 20), 0);
    cr_expect_eq(shop_put_as(&s, DUE_KEY_REFUSE, "jam", &other, .at_ns = 30), DUE_EEXIST);
    for (int i = 0; i < 20; i++) {
        cr_expect_eq(shop_put_as(&s, DUE_KEY_REPLACE, "jam", &other, .at_ns = 30 + i), 0);
        cr_expect(due_id_equal(id, other));
    }
    cr_expect_eq(due_flush(s.lab.q, DUE_S(5)), 0);
    cr_expect_eq(lab_find(&s.lab, id).deadline_ns, 49);
    cr_expect_eq(memory_disk_jobs(s.disk), 1u);
    shop_close(&s);
}

/* ---- Losses ---- */

/* Each of them, however many have room in a batch and wherever they stand in the table. */
static void lose_and_put_again(size_t batch)
{
    enum { KEYS = 300 };
    struct shop s = shop_new(&(struct memory_disk_options){ .batch_changes = batch },
                             (struct lab_options){ .start_ns = 0 });
    char key[16];
    due_id id;
    int64_t until = 0;

    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "kept %d", i);
        cr_assert_eq(shop_put(&s, key, "x", NULL, (due_spec){ KEEPS(1000 + i) }), 0);
    }
    for (int i = 0; i < KEYS; i++)
        done(&s, true);
    cr_assert_eq(shop_put(&s, "live", "x", &id, (due_spec){ .at_ns = 9 }), 0);
    memory_disk_lose(s.disk, SIZE_MAX);
    cr_expect_eq(memory_disk_keys(s.disk), 0u);
    cr_assert_eq(shop_put(&s, "new", "x", NULL, (due_spec){ .at_ns = 9 }), 0);
    while (due__load_seq(&s.lab.q->commits->lacking)) /* it is put again by the proxy */
        crew_sleep(DUE_MS(1));
    cr_assert_eq(memory_disk_keys(s.disk), KEYS + 2u, "%zu in a batch", batch);
    shop_again(&s, 0);
    cr_expect_eq(shop_put(&s, "live", "y", NULL, (due_spec){ .at_ns = 9 }), DUE_EEXIST);
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "kept %d", i);
        on_disk(&s, key, &until);
        cr_expect_eq(until, 1000 + i);
        cr_expect_eq(shop_put(&s, key, "y", NULL, (due_spec){ .at_ns = 9 }), DUE_EEXIST);
    }
    shop_close(&s);
}

Test(keys_stored, lost_keys_are_put_again_live_and_kept, .timeout = 60)
{
    const size_t batch[] = { 1, 2, 3, 5, 16, 256 };

    for (size_t i = 0; i < sizeof batch / sizeof batch[0]; i++)
        lose_and_put_again(batch[i]);
}

/* What was removed comes back as the store loses that, and is dropped again, with its key. */
Test(keys_stored, a_key_that_came_back_with_a_loss_goes_with_its_job, .timeout = 60)
{
    struct shop s = shop_make();
    due_id id;

    cr_assert_eq(shop_put(&s, "k", "tea", &id, (due_spec){ .delay_ns = 0 }), 0);
    cr_assert_eq(shop_put(&s, "l", "jam", NULL, (due_spec){ .at_ns = 90 }), 0);
    done(&s, true);
    cr_expect(disk_free_of(&s, "k"));
    memory_disk_lose(s.disk, 1);
    cr_expect(due_id_equal(on_disk(&s, "k", NULL), id));
    cr_assert_eq(shop_put(&s, "m", "ham", NULL, (due_spec){ .at_ns = 90 }), 0);
    while (memory_disk_jobs(s.disk) != 2) /* by the proxy */
        crew_sleep(DUE_MS(1));
    cr_expect(disk_free_of(&s, "k"));
    cr_expect_eq(memory_disk_keys(s.disk), 2u);
    shop_close(&s);
}

/* A key that is kept no longer comes back as the store loses that, with what is kept still. */
Test(keys_stored, a_kept_key_that_came_back_with_a_loss_is_forgotten_again, .timeout = 60)
{
    struct shop s = shop_make();
    int64_t until = 0;
    uint64_t before;

    cr_assert_eq(shop_put(&s, "k", "tea", NULL, (due_spec){ KEEPS(10) }), 0);
    cr_assert_eq(shop_put(&s, "l", "jam", NULL, (due_spec){ KEEPS(500) }), 0);
    done(&s, true);
    done(&s, false);
    lab_turn_to(&s.lab, 20);
    do { /* one batch in so many looks at its shard */
        before = memory_disk_batches(s.disk);
        lab_enqueue(&s.lab, "other", .at_ns = 99);
    } while (!disk_free_of(&s, "k"));
    memory_disk_lose(s.disk, (size_t)(memory_disk_batches(s.disk) - before));
    on_disk(&s, "k", &until);
    cr_expect_eq(until, 10);
    lab_enqueue(&s.lab, "other", .at_ns = 99);
    for (int i = 0; i < 3000 && !disk_free_of(&s, "k"); i++) /* by the proxy */
        crew_sleep(DUE_MS(5));
    cr_expect(disk_free_of(&s, "k"));
    on_disk(&s, "l", &until);
    cr_expect_eq(until, 500);
    cr_expect_eq(memory_disk_keys(s.disk), 1u);
    shop_close(&s);
}

/* Its job has left the store, and is not handed out yet, as others of the call are under way. */
Test(keys_stored, a_key_to_be_kept_is_kept_though_its_removal_was_lost, .timeout = 60)
{
    struct shop s = shop_new(&(struct memory_disk_options){ .batch_changes = 3 },
                             (struct lab_options){ .start_ns = 0 });
    char key[6][2] = { "a", "b", "c", "d", "e", "f" };
    due_job jobs[6];

    for (int i = 0; i < 6; i++)
        cr_assert_eq(shop_put(&s, key[i], "tea", NULL, (due_spec){ KEEPS(100) }), 0);
    uint64_t before = memory_store_calls(s.store, MEMORY_COMMIT);
    memory_store_fault(
        s.store, (struct memory_fault){
                     .verb = MEMORY_COMMIT, .call = before + 2, .kind = MEMORY_LOSE, .count = 1 });
    cr_expect_eq(take_some(s.lab.q, NULL, 0, jobs, 6, 1), 6);
    for (int i = 0; i < 6; i++)
        due_job_done(&jobs[i]);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    while (memory_disk_jobs(s.disk) != 0) /* by the proxy */
        crew_sleep(DUE_MS(1));
    for (int i = 0; i < 6; i++) {
        int64_t until = 0;

        for (int n = 0; n < 3000 && disk_free_of(&s, key[i]); n++)
            crew_sleep(DUE_MS(1));
        on_disk(&s, key[i], &until);
        cr_expect_eq(until, 100);
    }
    shop_close(&s);
}

/* ---- Loading ---- */

/* A page is not shown: nobody knows yet whether the key is free. */
Test(keys_stored, while_stored_jobs_are_read_a_keyed_call_waits, .timeout = 60)
{
    struct shop s = shop_make();
    due_id id;

    cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "tea", &id, .at_ns = 50), 0);
    memory_store_crash(s.store);
    lab_close(&s.lab);
    s.store = memory_store_new(s.disk);
    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_LOAD, .kind = MEMORY_AWAY, .times = MEMORY_ALWAYS });
    s.lab = lab_open(.with.store = s.store, .with.store_timeout_ns = DUE_MS(30));
    cr_expect_eq(shop_put_as(&s, DUE_KEY_REFUSE, "jam", NULL, .at_ns = 50), DUE_ETIMEDOUT);
    cr_expect_eq(due_id_of_key(s.lab.q, "k", 1, &id), DUE_ETIMEDOUT);
    memory_store_forgive(s.store);
    int rc;
    do
        rc = shop_put_as(&s, DUE_KEY_REFUSE, "jam", NULL, .at_ns = 50);
    while (rc == DUE_ETIMEDOUT);
    cr_expect_eq(rc, DUE_EEXIST);
    shop_close(&s);
}

/* ---- Batches ---- */

Test(keys_stored, new_keys_of_a_batch_are_one_change, .timeout = 60)
{
    enum { JOBS = 200 };
    struct shop s = shop_make();
    unsigned char keys[JOBS];
    due_extra more[JOBS];
    due_spec specs[JOBS];
    due_id ids[JOBS];

    for (int i = 0; i < JOBS; i++) {
        keys[i] = (unsigned char)i;
        more[i] = (due_extra){ DUE_EXTRA_INIT, .key = &keys[i], .key_len = 1 };
        specs[i] = (due_spec){ DUE_SPEC_INIT, .at_ns = 9, .more = &more[i] };
    }
    (void)lab_stats(&s.lab);
    cr_assert_eq(due_enqueue_batch(s.lab.q, specs, JOBS, 0, ids), JOBS);
    cr_expect_leq(memory_disk_batches(s.disk), 4u);
    cr_expect_eq(memory_disk_keys(s.disk), (size_t)JOBS);
    cr_expect_eq(due_enqueue_batch(s.lab.q, specs, JOBS, 0, ids), DUE_EEXIST);
    cr_assert_eq(due_cancel(s.lab.q, ids[0], NULL), 0);
    cr_expect_eq(due_enqueue_batch(s.lab.q, specs, JOBS, 0, NULL), 1);
    shop_close(&s);
}
