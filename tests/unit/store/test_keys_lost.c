/* Keys that a store has lost the end of: a job gave its key up to another, which is gone, and in
 * the store it is the first one's again. */
#include <stdio.h>

#include "lab/shop.h"
#include "lab/take.h"

#define LEASE 100

/* A reserved job whose key another one took over; @keep_ns: how long that stays taken. */
static due_job give_up(struct shop *s, int64_t keep_ns, due_id *second)
{
    due_job job = { 0 };

    cr_assert_eq(shop_put_as(s, DUE_KEY_REFUSE, "tea", NULL, .delay_ns = 0), 0);
    cr_assert_eq(take_leased(s->lab.q, &job, LEASE, 0), 0);
    cr_assert_eq(shop_put_as(s, DUE_KEY_REPLACE, "jam", second, KEEPS(keep_ns)), 0);
    return job;
}

static bool key_there(struct shop *s, due_id *id)
{
    return memory_disk_key(s->disk, "k", 1, id, NULL);
}

/* What changed the key last is lost: two batches. */
static void lose(struct shop *s, const due_job *first)
{
    due_id id;

    memory_disk_lose(s->disk, 2);
    cr_assert(key_there(s, &id));
    cr_assert(due_id_equal(id, first->id), "this proves nothing");
}

/* What was lost is put again, and what came back is gone, by the proxy. */
static void until_mended(struct shop *s)
{
    for (int i = 0; i < 3000 && key_there(s, NULL); i++)
        crew_sleep(DUE_MS(1));
}

Test(keys_lost, a_key_that_is_nobodys_is_free_again_while_the_first_job_lives, .timeout = 60)
{
    struct shop s = shop_make();
    due_id second;

    due_job job = give_up(&s, 0, &second);
    cr_assert_eq(due_cancel(s.lab.q, second, NULL), 0);
    cr_expect_not(key_there(&s, NULL));
    lose(&s, &job);
    lab_enqueue(&s.lab, "other", .at_ns = 90);
    until_mended(&s);
    cr_expect_not(key_there(&s, NULL));
    cr_expect_eq(memory_disk_jobs(s.disk), 2u);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(memory_disk_keys(s.disk), 0u);
    shop_close(&s);
}

/* Its removal goes with the batch that hears of the loss. */
Test(keys_lost, a_key_that_is_nobodys_is_free_with_the_first_job, .timeout = 60)
{
    struct shop s = shop_make();
    due_id second;

    due_job job = give_up(&s, 0, &second);
    cr_assert_eq(due_cancel(s.lab.q, second, NULL), 0);
    lose(&s, &job);
    cr_expect_eq(due_ack(&job), 0);
    until_mended(&s);
    cr_expect_eq(memory_disk_keys(s.disk), 0u);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    shop_close(&s);
}

/* It is kept for the second one, or a third has it: that stays as it is. */
Test(keys_lost, a_key_that_is_somebodys_stays_his, .timeout = 60)
{
    for (int third = 0; third < 2; third++) {
        struct shop s = shop_make();
        due_job other = { 0 };
        due_id second;
        due_id id;

        due_job job = give_up(&s, third ? 0 : 1000, &second);
        cr_assert_eq(lab_take(&s.lab, &other), 0);
        due_job_done(&other);
        lose(&s, &job);
        if (third) /* it is on its way as the loss is heard of */
            cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "ham", &second, .at_ns = 90), 0);
        else
            lab_enqueue(&s.lab, "other", .at_ns = 90);
        for (int i = 0; i < 3000 && memory_disk_jobs(s.disk) < 2; i++)
            crew_sleep(DUE_MS(1));
        for (int i = 0; i < 3000 && !(key_there(&s, &id) && due_id_equal(id, second)); i++)
            crew_sleep(DUE_MS(1));
        cr_expect_eq(due_ack(&job), 0);
        lab_close(&s.lab); /* not before everything is mended */
        cr_assert(key_there(&s, &id), "%d", third);
        cr_expect(due_id_equal(id, second), "%d", third);
        cr_expect_null(memory_disk_wrong(s.disk));
        memory_disk_free(s.disk);
    }
}

/* ---- Kept long enough ---- */

#define MANY    96  /* with each batch the queue forgets those of some shards */
#define KEY_LEN 200 /* long ones: a block of their own size each */

static const char *name(int i, char key[KEY_LEN + 1])
{
    snprintf(key, KEY_LEN + 1, "%0*d", KEY_LEN, i);
    return key;
}

/* Each key is some job's, which is gone, and is kept until 10. */
static void keep_many(struct shop *s, enum due_key_policy policy)
{
    char key[KEY_LEN + 1];
    due_job job = { 0 };

    for (int i = 0; i < MANY; i++) {
        due_spec spec = { KEEPS(10) };

        cr_assert_eq(lab_put_key(&s->lab, name(i, key), policy, "jam", NULL, spec), 0);
        cr_assert_eq(lab_take(&s->lab, &job), 0);
        due_job_done(&job);
    }
}

/* The clock is turned at one of the next allocations for a key. */
struct turn {
    due_clock *clock;
    atomic_int left;
};

static void turn(void *ctx, size_t size)
{
    struct turn *t = ctx;

    if (size >= KEY_LEN && size < 2 * KEY_LEN && atomic_fetch_sub(&t->left, 1) == 1)
        due_clock_turn_to(t->clock, 20);
}

/* After the loss the store is told again of half of them; then all are over, and what is to be
 * forgotten is looked for, for the same batch. */
Test(keys_lost, a_key_is_not_kept_and_forgotten_at_once, .timeout = 60)
{
    struct shop s = shop_make();
    struct turn t = { .clock = s.lab.clock };

    keep_many(&s, DUE_KEY_REFUSE);
    memory_disk_lose(s.disk, 1);
    atomic_store(&t.left, MANY / 2);
    s.lab.state->memory.on_alloc_ctx = &t;
    s.lab.state->memory.on_alloc = turn;
    lab_enqueue(&s.lab, "other", .at_ns = 90);
    cr_expect_eq(due_clock_now(s.lab.clock), 20, "this proves nothing");
    shop_close(&s);
}

/* Of jobs that live their keys were taken over, and that was lost. */
static void lose_many(struct shop *s)
{
    char key[KEY_LEN + 1];
    due_job job[MANY];

    for (int i = 0; i < MANY; i++) {
        cr_assert_eq(shop_put(s, name(i, key), "tea", NULL, (due_spec){ .delay_ns = 0 }), 0);
        cr_assert_eq(take_leased(s->lab.q, &job[i], LEASE, 0), 0);
    }
    uint64_t before = memory_disk_batches(s->disk);
    keep_many(s, DUE_KEY_REPLACE);
    for (int i = 0; i < MANY; i++)
        due_job_done(&job[i]);
    lab_turn_to(&s->lab, 20);
    memory_disk_lose(s->disk, (size_t)(memory_disk_batches(s->disk) - before));
}

/* How many of the keys are a live job's on the disk. */
static int live_keys(struct shop *s)
{
    char key[KEY_LEN + 1];
    int n = 0;

    for (int i = 0; i < MANY; i++) {
        int64_t until = -1;

        n += memory_disk_key(s->disk, name(i, key), KEY_LEN, NULL, &until) && until == 0;
    }
    return n;
}

Test(keys_lost, a_key_that_was_kept_long_enough_is_not_the_first_jobs_again, .timeout = 60)
{
    struct shop s = shop_make();
    char key[KEY_LEN + 1];
    due_id id;

    lose_many(&s);
    cr_assert_eq(live_keys(&s), MANY, "this proves nothing");
    lab_enqueue(&s.lab, "other", .at_ns = 90);
    for (int i = 0; i < 3000 && live_keys(&s) > 0; i++)
        crew_sleep(DUE_MS(1));
    cr_expect_eq(live_keys(&s), 0);
    shop_crash(&s, (struct lab_options){ .start_ns = 20 });
    for (int i = 0; i < MANY; i++)
        cr_expect_eq(due_id_of_key(s.lab.q, name(i, key), KEY_LEN, &id), DUE_ENOENT);
    cr_expect_eq(memory_disk_jobs(s.disk), MANY + 1u);
    shop_close(&s);
}

/* Jobs that are done, and whose keys are kept until 10; and the store has lost that they are done,
 * but has been told of the keys again, and then the program has died. */
static void lose_and_die(struct shop *s)
{
    char key[KEY_LEN + 1];
    due_job job = { 0 };

    for (int i = 0; i < MANY; i++)
        cr_assert_eq(shop_put(s, name(i, key), "tea", NULL, (due_spec){ KEEPS(10) }), 0);
    uint64_t before = memory_disk_batches(s->disk);
    for (int i = 0; i < MANY; i++) {
        cr_assert_eq(lab_take(&s->lab, &job), 0);
        due_job_done(&job);
    }
    shop_fail(s, MEMORY_LOAD, MEMORY_ALWAYS, MEMORY_AWAY); /* what came back is not looked at */
    memory_disk_lose(s->disk, (size_t)(memory_disk_batches(s->disk) - before));
    cr_assert_eq(live_keys(s), MANY, "this proves nothing");
    lab_enqueue(&s->lab, "other", .at_ns = 90);
    for (int i = 0; i < 3000 && live_keys(s) > 0; i++)
        crew_sleep(DUE_MS(1));
    shop_crash(s, (struct lab_options){ .start_ns = 20 });
    cr_assert_eq(memory_disk_jobs(s->disk), MANY + 1u, "this proves nothing");
    cr_assert_eq(memory_disk_keys(s->disk), MANY, "this proves nothing");
}

/* The next one has the jobs, and kept keys that they had, whose time is over: those of some are
 * looked for when the first batch goes. */
Test(keys_lost, a_key_is_not_forgotten_in_a_batch_that_removes_its_job, .timeout = 60)
{
    struct shop s = shop_make(.with.store_timeout_ns = DUE_S(1)); /* so long a close waits for it */

    lose_and_die(&s);
    cr_assert_eq(due_clear(s.lab.q, DUE_ALL_TOPICS, NULL), 0);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    for (int i = 0; i < 64 && memory_disk_keys(s.disk) > 0; i++)
        lab_enqueue(&s.lab, "other", .at_ns = 90);
    cr_expect_eq(memory_disk_keys(s.disk), 0u, "and then they are");
    shop_close(&s);
}

/* ---- Two claims ---- */

static const struct due_store_verbs *memory_verbs;

struct both {
    due_store_visit *visit;
    void *ctx;
};

static int show_with_key(void *ctx, const due_record *record)
{
    struct both *both = ctx;
    due_record with = *record;

    with.key = "k";
    with.key_len = 1;
    return both->visit(both->ctx, &with);
}

static int load_with_key(due_store *store, int rewind, size_t max, due_store_visit *visit,
                         void *ctx, int64_t until_ns)
{
    struct both both = { .visit = visit, .ctx = ctx };

    return memory_verbs->load(store, rewind, max, show_with_key, &both, until_ns);
}

/* A store that went back in time while it was read: it has shown both of two jobs with the key.
 * It is the one's that was enqueued later, whatever their priorities, and whichever came first. */
Test(keys_lost, of_two_jobs_that_come_back_with_a_key_the_later_one_has_it, .timeout = 60)
{
    for (int way = 0; way < 4; way++) {
        struct shop s = shop_make();
        struct due_store_verbs verbs = *s.store->verbs;
        due_id later;
        due_id id;

        memory_verbs = s.store->verbs;
        verbs.load = load_with_key;
        lab_enqueue(&s.lab, "tea", .at_ns = 50, .priority = way & 1 ? 200 : 1);
        later =
            lab_enqueue(&s.lab, "jam", .at_ns = way & 2 ? 40 : 60, .priority = way & 1 ? 1 : 200);
        shop_die(&s);
        shop_begin(&s, (struct lab_options){ .kernel = false }, &verbs);
        shop_wait_loaded(&s);
        cr_expect_eq(lab_stats(&s.lab).restored, 2u);
        cr_expect_eq(due_id_of_key(s.lab.q, "k", 1, &id), 0);
        cr_expect(due_id_equal(id, later), "way %d", way);
        shop_close(&s);
    }
}

/* The same of many, wherever the latest of them is read: each place that it may get is a place. */
Test(keys_lost, of_many_jobs_that_come_back_with_a_key_the_latest_has_it, .timeout = 60)
{
    enum { JOBS = 70 };

    for (int way = 0; way < JOBS; way++) {
        struct shop s = shop_make();
        struct due_store_verbs verbs = *s.store->verbs;
        due_id id;

        memory_verbs = s.store->verbs;
        verbs.load = load_with_key;
        for (int i = 0; i < JOBS - 1; i++)
            lab_enqueue(&s.lab, "tea", .at_ns = 1000 + 10 * i);
        due_id latest = lab_enqueue(&s.lab, "jam", .at_ns = 995 + 10 * way);
        shop_die(&s);
        shop_begin(&s, (struct lab_options){ .kernel = false }, &verbs);
        shop_wait_loaded(&s);
        cr_expect_eq(due_id_of_key(s.lab.q, "k", 1, &id), 0);
        cr_expect(due_id_equal(id, latest), "read as number %d", way);
        shop_close(&s);
    }
}
