/* Unique keys where the outcome of an enqueue is unknown: tried again and again, it makes one job.
 * (E13, H4) */
#include "lab/shop.h"

#define TRIES      10
#define TIMEOUT_NS DUE_MS(100)
#define KEEP_NS    1000

static int put(struct shop *s, enum due_key_policy policy, due_id *id)
{
    due_spec spec = { DUE_SPEC_INIT, .more = EXTRA(.key = "k", .key_len = 1, .on_key = policy,
                                                   .keep_key_ns = KEEP_NS) };

    spec.data = "tea";
    spec.len = 3;
    spec.at_ns = 50;
    return due_enqueue(s->lab.q, &spec, 0, id);
}

/* There is one job, and whoever tries again after it was taken is told so. */
static void expect_one(struct shop *s, due_id id)
{
    due_id other;

    cr_expect_eq(memory_disk_jobs(s->disk), 1u);
    cr_expect_eq(memory_disk_keys(s->disk), 1u);
    cr_expect(memory_disk_find(s->disk, id, NULL), "it is another");
    cr_expect_eq(due_id_of_key(s->lab.q, "k", 1, &other), 0);
    cr_expect(due_id_equal(id, other));
    lab_turn_to(&s->lab, 50);
    cr_expect_str_eq(lab_dequeue_all(&s->lab), "tea");
    cr_expect_eq(memory_disk_jobs(s->disk), 0u);
    cr_expect_eq(put(s, DUE_KEY_REFUSE, &other), DUE_EEXIST);
    cr_expect(due_id_equal(id, other));
    cr_expect_str_eq(lab_dequeue_all(&s->lab), "");
}

/* Whoever refuses is told whose the key is; whoever would change that job cannot, until its end is
 * known. */
Test(keys_doubt, an_enqueue_in_doubt_that_is_tried_ten_times_makes_one_job, .timeout = 60)
{
    for (int landed = 0; landed < 2; landed++)
        for (int policy = DUE_KEY_REFUSE; policy <= DUE_KEY_DEBOUNCE; policy++) {
            struct shop s = shop_make(.with.store_timeout_ns = TIMEOUT_NS);
            due_id first;
            due_id id;

            shop_fail(&s, MEMORY_COMMIT, MEMORY_ALWAYS,
                      landed ? MEMORY_DOUBT_LANDED : MEMORY_DOUBT_NOT);
            cr_expect_eq(put(&s, (enum due_key_policy)policy, &first), DUE_EINDOUBT);
            for (int i = 1; i < TRIES; i++) {
                int rc = put(&s, (enum due_key_policy)policy, &id);

                cr_expect_eq(rc, policy == DUE_KEY_REFUSE ? DUE_EEXIST : DUE_ETIMEDOUT, "%s",
                             due_error_name(rc));
                cr_expect(rc != DUE_EEXIST || due_id_equal(id, first));
            }
            memory_store_forgive(s.store);
            cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
            expect_one(&s, first);
            shop_close(&s);
        }
}

/* It had not landed, and is refused when it is sent again: then the key is free. */
Test(keys_doubt, an_enqueue_in_doubt_that_is_refused_leaves_the_key_to_the_next_try, .timeout = 60)
{
    struct shop s = shop_make(.with.store_timeout_ns = TIMEOUT_NS);
    due_id id;

    shop_fail(&s, MEMORY_COMMIT, MEMORY_ALWAYS, MEMORY_DOUBT_NOT);
    cr_expect_eq(put(&s, DUE_KEY_REFUSE, &id), DUE_EINDOUBT);
    cr_expect_eq(put(&s, DUE_KEY_REFUSE, &id), DUE_EEXIST);
    memory_store_forgive(s.store);
    shop_fail(&s, MEMORY_COMMIT, MEMORY_ALWAYS, MEMORY_FULL);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    for (int i = 2; i < TRIES - 1; i++)
        cr_expect_eq(put(&s, DUE_KEY_REFUSE, NULL), DUE_ENOSPC);
    memory_store_forgive(s.store);
    cr_expect_eq(put(&s, DUE_KEY_REFUSE, &id), 0);
    expect_one(&s, id);
    shop_close(&s);
}

/* A change of the job that has the key, which had not landed, and is refused when it is sent again:
 * the key is kept for as long as was said before it. */
Test(keys_doubt, a_change_in_doubt_that_is_refused_leaves_how_long_the_key_is_kept, .timeout = 60)
{
    const int64_t keep_ns[][2] = { { KEEP_NS, 0 }, { 0, KEEP_NS } };

    for (int i = 0; i < 2; i++) {
        struct shop s = shop_make(.with.store_timeout_ns = TIMEOUT_NS);

        cr_assert_eq(
            shop_put_as(&s, DUE_KEY_REFUSE, "tea", NULL, .at_ns = 50, KEEPS(keep_ns[i][0])), 0);
        shop_fail(&s, MEMORY_COMMIT, MEMORY_ALWAYS, MEMORY_DOUBT_NOT);
        cr_expect_eq(
            shop_put_as(&s, DUE_KEY_REPLACE, "jam", NULL, .at_ns = 50, KEEPS(keep_ns[i][1])),
            DUE_EINDOUBT);
        memory_store_forgive(s.store);
        shop_fail(&s, MEMORY_COMMIT, MEMORY_ALWAYS, MEMORY_FULL);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        memory_store_forgive(s.store);
        lab_turn_to(&s.lab, 50);
        cr_expect_str_eq(lab_dequeue_all(&s.lab), "tea");
        cr_expect_eq(shop_put_as(&s, DUE_KEY_REFUSE, "ham", NULL, .at_ns = 90),
                     keep_ns[i][0] > 0 ? DUE_EEXIST : 0);
        shop_close(&s);
    }
}

/* Each try is of another life of the program, which dies in it.  That of number @lands has landed,
 * and was not heard of. */
static void try_in_many_lives(int lands)
{
    struct shop s = shop_make(.with.store_timeout_ns = TIMEOUT_NS);
    due_id first = { { 0 } };

    for (int i = 0; i < TRIES; i++) {
        due_id id;

        shop_fail(&s, MEMORY_COMMIT, 1, i == lands ? MEMORY_CRASH_AFTER : MEMORY_CRASH);
        int rc = put(&s, DUE_KEY_REFUSE, &id);
        if (i < lands)
            cr_expect(rc == DUE_EINDOUBT || rc == DUE_ETIMEDOUT, "%d: %s", i, due_error_name(rc));
        else
            cr_expect_eq(rc, i == lands ? DUE_EINDOUBT : DUE_EEXIST, "%d: %s", i,
                         due_error_name(rc));
        if (i == lands)
            first = id;
        cr_expect(i < lands || due_id_equal(id, first), "%d", i);
        cr_expect_eq(due_close(s.lab.q, DUE_CLOSE_DISCARD, TIMEOUT_NS), 0);
        shop_crash(&s, (struct lab_options){ .with.store_timeout_ns = TIMEOUT_NS });
        cr_expect_eq(memory_disk_jobs(s.disk), (size_t)(i >= lands), "%d", i);
    }
    expect_one(&s, first);
    shop_close(&s);
}

Test(keys_doubt, an_enqueue_tried_by_ten_lives_makes_one_job, .timeout = 60)
{
    for (int lands = 0; lands < TRIES; lands += 3)
        try_in_many_lives(lands);
}

/* ---- An owner who may have been replaced ----------------------------------------------------- */

/* The job that has the key is left as it is, and so the store is told of nothing. */
Test(keys_doubt, an_enqueue_that_changes_nothing_is_not_confirmed_by_who_may_own_nothing,
     .timeout = 60)
{
    static const struct memory_disk_options disk = { .lease_ns = DUE_MS(30) };
    struct shop s =
        shop_new(&disk, (struct lab_options){ .start_ns = 5, .with.store_timeout_ns = TIMEOUT_NS });
    due_id id;
    due_id other = { { 0 } };

    cr_assert_eq(put(&s, DUE_KEY_REFUSE, &id), 0);
    cr_assert_eq(put(&s, DUE_KEY_EARLIEST, &other), 0);
    cr_expect(due_id_equal(id, other));
    shop_fail(&s, MEMORY_RENEW, MEMORY_ALWAYS, MEMORY_AWAY);
    crew_sleep(DUE_MS(100)); /* its lease is over: another one may have handed the job out */
    cr_expect_eq(put(&s, DUE_KEY_EARLIEST, &other), DUE_ETIMEDOUT);
    memory_store_forgive(s.store);
    shop_close(&s);
}
