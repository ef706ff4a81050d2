/* test_redis_pages.c - a load that stops amid a page, or behind one, and what is changed then. */
#include "lab/redis/redis_store_lab.h"

struct some {
    size_t n, n_max; /* shown, and how many are to be */
    int64_t until_max_ns;
    unsigned times[100]; /* by sequence */
};

static int see_some(void *ctx, const due_record *record)
{
    struct some *seen = ctx;

    if (seen->n == seen->n_max)
        return DUE_ENOMEM;
    seen->n++;
    seen->times[sequence_of(record->id) % 100]++;
    if (record->until_ns > seen->until_max_ns)
        seen->until_max_ns = record->until_ns;
    return 0;
}

static int load_on(due_store *store, struct some *seen)
{
    int rc;

    do
        rc = store->verbs->load(store, 0, 100, see_some, seen, soon(LONG_NS));
    while (rc == 1);
    return rc;
}

/* The first @shown of 20 jobs, and then no more; they are read ahead. */
static due_store *opened_amid_a_page(struct some *seen, size_t shown, uint64_t *number)
{
    due_store *store = opened((due_redis_options){ 0 });

    *number = fill(store, 20, 5000, 1000, 1);
    seen->n_max = shown;
    cr_expect_eq(store->verbs->load(store, 1, 100, see_some, seen, soon(LONG_NS)), DUE_ENOMEM);
    cr_expect_eq(seen->n, shown);
    return store;
}

/* What a batch has removed since then, or moved to where all was read: nothing is as it was. */
REDIS_TEST(redis_pages, shows_nothing_of_a_page_that_a_batch_has_changed)
{
    for (size_t shown = 0; shown < 8; shown++) {
        struct some seen = { 0 };
        uint64_t number;
        due_store *store = opened_amid_a_page(&seen, shown, &number);

        for (uint64_t i = 9; i <= 20; i++) /* behind what was shown, some in the page after it */
            cr_assert_eq(commit_one(store, drop(i, 5000 + (int64_t)(i - 1) * 1000), number++), 0);
        cr_assert_eq(commit_one(store, move(8, 12000, 99000), number), 0);
        seen.n_max = 100;
        seen.until_max_ns = 0;
        cr_expect_eq(load_on(store, &seen), 0);
        for (int i = 1; i <= 20; i++)
            cr_expect(i < 9 ? seen.times[i] > 0 : seen.times[i] == 0, "%zu: %d: %u times", shown, i,
                      seen.times[i]);
        cr_expect_eq(seen.until_max_ns, 99000);
        cr_expect_eq(seen.times[8], 1u, "%zu: it was shown as it was", shown);
        finish(store);
        ASK("FLUSHALL");
    }
}

/* Somebody else has removed some that were shown: then the rank of the next one is lower. */
REDIS_TEST(redis_pages, leaves_nothing_out_however_few_have_gone_before_it)
{
    for (int gone = 1; gone <= 3; gone++) {
        struct some seen = { .n_max = 100 };
        due_store *store = opened((due_redis_options){ 0 });
        uint64_t number = fill(store, 40, 5000, 1000, 1);

        cr_expect_eq(store->verbs->load(store, 1, 8, see_some, &seen, soon(LONG_NS)), 1);
        cr_expect_eq(seen.n, 8u);
        for (int i = 0; i < gone; i++)
            ASK("ZPOPMIN", "due:{q}:t:");
        cr_assert_eq(commit_one(store, put(50, 99000), number), 0); /* it is looked at again */
        cr_expect_eq(load_on(store, &seen), 0);
        for (int i = 1; i <= 40; i++)
            cr_expect_geq(seen.times[i], 1u, "%d: %d was left out", gone, i);
        finish(store);
        ASK("FLUSHALL");
    }
}

/* After a loss it begins anew, and what was read before that is not shown. */
REDIS_TEST(redis_pages, shows_nothing_of_a_page_that_was_lost)
{
    for (size_t shown = 0; shown < 8; shown++) {
        struct some seen = { 0 };
        uint64_t number;
        due_store *store = opened_amid_a_page(&seen, shown, &number);

        ASK("FLUSHALL");
        due__link_down(inside(store)->link);
        seen.n_max = 100;
        cr_expect_eq(store->verbs->load(store, 0, 100, see_some, &seen, soon(LONG_NS)), DUE_ELOST);
        cr_expect_eq(seen.n, shown);
        cr_assert_eq(commit_one(store, put(50, 5), number), 0);
        cr_expect_eq(load_on(store, &seen), 0);
        cr_expect_eq(seen.n, shown + 1);
        cr_expect_eq(seen.times[50], 1u);
        finish(store);
        ASK("FLUSHALL");
    }
}
