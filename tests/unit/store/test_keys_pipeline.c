/* A key that is taken over while batches follow each other without a pause: the job that has it is
 * put in by one, and who had it goes with the next. */
#include "lab/shop.h"
#include "lab/take.h"

static const struct due_store_verbs *own_verbs;

/* What is called for once, when the next batch is sent: so it comes into the one behind that. */
static due_job *to_ack;
static int acked;

static int send_and_ack(due_store *s, uint64_t number, int64_t until_ns)
{
    due_job *job = to_ack;
    int rc = own_verbs->send(s, number, until_ns);

    to_ack = NULL;
    if (job != NULL)
        acked = due_ack(job);
    return rc;
}

/* After a restart too the key is that of the second. */
Test(keys_pipeline, the_one_who_took_a_key_over_has_it_when_the_other_has_gone, .timeout = 60)
{
    for (int i = 0; i < 5; i++) {
        struct shop s = { .disk = memory_disk_new(NULL) };
        struct due_store_verbs verbs;
        due_job job;
        due_id second;
        due_id found;

        s.store = memory_store_new(s.disk);
        own_verbs = s.store->verbs;
        verbs = *own_verbs;
        verbs.send = send_and_ack;
        s.store->verbs = &verbs;
        s.lab = lab_open(.start_ns = 5, .with.store = s.store, .with.confirm = DUE_CONFIRM_ASYNC);
        shop_wait_loaded(&s);
        cr_assert_eq(shop_put(&s, "k", "tea", NULL, (due_spec){ .at_ns = 1 }), 0);
        cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        cr_assert_eq(take_leased(s.lab.q, &job, 100, 0), 0);
        acked = -1;
        to_ack = &job;
        cr_assert_eq(
            lab_put_key(&s.lab, "k", DUE_KEY_REPLACE, "cake", &second, (due_spec){ .at_ns = 50 }),
            0);
        cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        cr_expect_eq(acked, 0, "%s", due_error_name(acked));
        cr_expect_eq(memory_disk_jobs(s.disk), 1u);
        cr_expect_eq(memory_disk_keys(s.disk), 1u);
        shop_crash(&s, (struct lab_options){ .start_ns = 5 });
        cr_expect_eq(due_id_of_key(s.lab.q, "k", 1, &found), 0);
        cr_expect(due_id_equal(found, second));
        cr_expect_eq(shop_put(&s, "k", "once more", NULL, (due_spec){ .at_ns = 1 }), DUE_EEXIST);
        shop_close(&s);
    }
}
