/* What has to get on however much is put in at the same time, so that batches are always full; of
 * loading see test_stored_loading.c. */
#include "lab/flood.h"
#include "lab/shop.h"

#define JOBS 600u /* more than two batches */
#define KEYS 40u

/* Behind all that the flood puts in. */
#define LAST .at_ns = DUE_S(2000)

static void put_some(struct shop *s, due_id *ids)
{
    for (uint32_t i = 0; i < JOBS; i++)
        ids[i] = lab_enqueue(&s->lab, "tea", LAST);
    cr_assert_eq(due_flush(s->lab.q, DUE_S(30)), 0);
}

/* Keys of jobs that are done, kept up to time 100. */
static void keep_some(struct shop *s, uint32_t n)
{
    char key[16];

    for (uint32_t i = 0; i < n; i++) {
        snprintf(key, sizeof key, "key %u", i);
        cr_assert_eq(shop_put(s, key, "tea", NULL, (due_spec){ KEEPS(100) }), 0);
        cr_assert_eq(due_flush(s->lab.q, DUE_S(30)), 0);
        cr_expect_str_eq(lab_dequeue(&s->lab), "tea");
    }
    cr_assert_eq(due_flush(s->lab.q, DUE_S(30)), 0);
    cr_assert_eq(memory_disk_keys(s->disk), n);
}

/* Until all of them are stored, or none. */
static void wait_until(struct shop *s, const due_id *ids, bool stored)
{
    for (uint32_t left = JOBS; left > 0;) {
        crew_sleep(DUE_MS(1));
        while (left > 0 && memory_disk_find(s->disk, ids[left - 1], NULL) == stored)
            left--;
    }
}

static struct shop shop_flooded(void)
{
    return shop_make(.start_ns = 1, .with = { FLOODED });
}

/* Batches are slow enough for the flood to fill each. */
static void flood_in(struct flood *flood, struct shop *s)
{
    shop_slow(s, MEMORY_COMMIT, 20000);
    flood_begin(flood, s->lab.q);
    while (lab_stats(&s->lab).settled < 3000)
        crew_sleep(DUE_MS(1));
}

Test(stored_flood, jobs_that_the_store_lost_are_put_again, .timeout = 200)
{
    struct shop s = shop_flooded();
    due_id ids[JOBS];
    struct flood flood = { .keyed = false };

    put_some(&s, ids);
    flood_in(&flood, &s);
    memory_disk_lose(s.disk, SIZE_MAX);
    wait_until(&s, ids, true);
    flood_end(&flood);
    shop_close(&s);
}

Test(stored_flood, keys_that_the_store_lost_are_kept_again, .timeout = 200)
{
    struct shop s = shop_flooded();
    struct flood flood = { .keyed = false };

    keep_some(&s, KEYS);
    flood_in(&flood, &s);
    memory_disk_lose(s.disk, SIZE_MAX);
    while (memory_disk_keys(s.disk) < KEYS)
        crew_sleep(DUE_MS(1));
    flood_end(&flood);
    shop_close(&s);
}

/* No batch names one of them twice, though those of a shard are looked at anew when it grows, as it
 * does now. */
Test(stored_flood, keys_that_the_store_lost_are_told_once_while_others_come, .timeout = 200)
{
    for (int round = 0; round < 120; round++) {
        struct shop s = shop_flooded();
        struct flood flood = { .keyed = true };

        keep_some(&s, 8 * KEYS);
        memory_disk_lose(s.disk, SIZE_MAX);
        flood_begin(&flood, s.lab.q);
        while (memory_disk_keys(s.disk) < 16 * KEYS)
            crew_sleep(DUE_US(100));
        flood_end(&flood);
        shop_close(&s);
    }
}

/* What was cleared comes back as the store loses that, and lies behind all that is put. */
Test(stored_flood, jobs_that_a_loss_brought_back_are_dropped, .timeout = 200)
{
    struct shop s = shop_flooded();
    due_id ids[JOBS];
    struct flood flood = { .keyed = false };

    put_some(&s, ids);
    cr_assert_eq(due_clear(s.lab.q, DUE_ALL_TOPICS, NULL), 0);
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    cr_assert_eq(memory_disk_jobs(s.disk), 0u);
    while (memory_disk_jobs(s.disk) < JOBS)
        memory_disk_lose(s.disk, 1);
    shop_slow(&s, MEMORY_LOAD, 100000);
    flood_begin(&flood, s.lab.q);
    wait_until(&s, ids, false);
    flood_end(&flood);
    shop_close(&s);
}

Test(stored_flood, keys_that_are_over_are_forgotten, .timeout = 200)
{
    struct shop s = shop_flooded();
    struct flood flood = { .keyed = false };

    keep_some(&s, KEYS);
    flood_in(&flood, &s);
    lab_turn_to(&s.lab, 200);
    while (memory_disk_keys(s.disk) > 0)
        crew_sleep(DUE_MS(1));
    flood_end(&flood);
    shop_close(&s);
}

/* ---- A flood that fills each batch to the last change ---- */

#define ROOM    16u /* changes of a batch */
#define BATCHES 60u /* in which the lost ones have to be there: every other is theirs */

static const struct due_store_verbs *own_verbs;
static struct shop *flooded; /* once there is a flood */
static atomic_uint filled;   /* batches since then */
static due_id lost[4 * ROOM];
static unsigned there; /* of those, when the flood has ended */

static int commit_behind_more(due_store *store, const due_change *changes, size_t n,
                              uint64_t number, int64_t until_ns)
{
    due_spec spec = { DUE_SPEC_INIT, .at_ns = DUE_S(1000) };

    if (atomic_load(&filled) < BATCHES) {
        for (unsigned i = 0; i < ROOM; i++)
            (void)!due_enqueue(flooded->lab.q, &spec, 0, NULL);
        if (atomic_load(&filled) == BATCHES - 1) {
            for (unsigned i = 0; i < 4 * ROOM; i++)
                there += memory_disk_find(flooded->disk, lost[i], NULL);
        }
        atomic_fetch_add(&filled, 1);
    }
    return own_verbs->commit(store, changes, n, number, until_ns);
}

/* As much waits again before each batch goes: only then is it seen whether they have their turn. */
Test(stored_flood, jobs_that_the_store_lost_have_every_other_batch, .timeout = 60)
{
    struct shop s = { .disk =
                          memory_disk_new(&(struct memory_disk_options){ .batch_changes = ROOM }) };
    struct due_store_verbs verbs;

    s.store = memory_store_new(s.disk);
    own_verbs = s.store->verbs;
    verbs = *own_verbs;
    verbs.commit = commit_behind_more;
    verbs.prepare = NULL;
    verbs.send = NULL;
    s.store->verbs = &verbs;
    flooded = &s;
    there = 0;
    atomic_store(&filled, BATCHES); /* not yet */
    s.lab = lab_open(.start_ns = 1, .with.store = s.store, .with.confirm = DUE_CONFIRM_ASYNC);
    for (unsigned i = 0; i < 4 * ROOM; i++)
        lost[i] = lab_enqueue(&s.lab, "tea", LAST);
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    memory_disk_lose(s.disk, SIZE_MAX);
    atomic_store(&filled, 0);
    lab_enqueue(&s.lab, "more", LAST);
    while (atomic_load(&filled) < BATCHES)
        crew_sleep(DUE_MS(1));
    cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    cr_expect_eq(there, 4 * ROOM);
    shop_close(&s);
}
