/* test_redis_pages.c - a load that stops amid a page, or behind one, and what is changed then. */
#include "lab/redis/redis_proxy_lab.h"

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

/* What the server says to stand before a page, and does not: the page is looked for anew. */
REDIS_PROXY_TEST(redis_pages, leaves_nothing_out_whatever_is_said_to_stand_before_it)
{
    static const char *const says[] = { "*2\r\n:7\r\n$1\r\n5",
                                        "*2\r\n$14\r\nfourteen bytes\r\n:5",
                                        "*2\r\n$-1\r\n$1\r\n5",
                                        "*2\r\n$5\r\nshort\r\n$1\r\n5",
                                        "*2\r\n$14\r\nfourteen bytes\r\n$1\r\nx",
                                        "*2\r\n$14\r\nfourteen bytes\r\n$5\r\n99999",
                                        "*1\r\n$14\r\nfourteen bytes",
                                        "*0",
                                        ":1",
                                        "$1\r\n5" };

    for (size_t i = 0; i < sizeof says / sizeof says[0]; i++) {
        struct fault_cell cell = { .command = 1,
                                   .name = "ZRANGE",
                                   .where = FAULT_SENT,
                                   .what = FAULT_REPLACE,
                                   .text = says[i] };
        struct some seen = { .n_max = 100 };
        due_store *store = opened_by_proxy((due_redis_options){ 0 });
        uint64_t number = fill(store, 40, 5000, 1000, 1);

        cr_expect_eq(store->verbs->load(store, 1, 8, see_some, &seen, soon(LONG_NS)), 1);
        cr_assert_eq(commit_one(store, put(50, 99000), number), 0); /* it is looked at again */
        fault_proxy_plan(proxy, &cell, 1);
        cr_expect_eq(load_on(store, &seen), 0, "%s", says[i]);
        cr_expect_eq(fault_proxy_struck(proxy), 1u);
        for (int job = 1; job <= 40; job++)
            cr_expect_geq(seen.times[job], 1u, "%s: %d was left out", says[i], job);
        finish(store);
        ASK("FLUSHALL");
    }
}

/* Records, entries, and owners of keys that are none: nothing is taken for them, and once the
 * server says what it has the load goes on. */
REDIS_PROXY_TEST(redis_pages, of_nonsense_are_refused)
{
    static const char *const says[] = { ":1",     "*0",       "$5\r\nhello",
                                        "+hello", "*1\r\n*0", "*2\r\n:1\r\n:2",
                                        "*-1" };

    for (size_t i = 0; i < sizeof says / sizeof says[0]; i++) {
        for (unsigned at = 1; at <= 6; at++) {
            struct fault_cell cell = { .command = at,
                                       .name = "HMGET",
                                       .where = FAULT_SENT,
                                       .what = FAULT_REPLACE,
                                       .text = says[i] };
            struct some seen = { .n_max = 1000 };
            due_store *store = opened_by_proxy((due_redis_options){ 0 });
            due_change change = put(50, 5);
            uint64_t number = fill(store, 20, 5000, 1000, 1);
            int calls = 0;
            int rc;

            change.record.key = "k";
            change.record.key_len = 1;
            cr_assert_eq(commit_one(store, change, number++), 0);
            if (i % 2 == 0) /* it has an entry */
                cr_assert_eq(commit_one(store, move(2, 6000, 7000), number), 0);
            fault_proxy_plan(proxy, &cell, 1);
            do
                rc = store->verbs->load(store, calls == 0, 100, see_some, &seen, soon(LONG_NS));
            while (rc != 0 && ++calls < 20);
            fault_proxy_plan(proxy, NULL, 0); /* that may be asked for less often */
            cr_expect_eq(rc, 0, "%s: %s", says[i], due_error_name(rc));
            for (int job = 1; job <= 20; job++)
                cr_expect_geq(seen.times[job], 1u, "%s: %d", says[i], job);
            finish(store);
            ASK("FLUSHALL");
        }
    }
}

/* ---- A page whose keys come late ---- */

static int see_keys(void *ctx, const due_record *record)
{
    cr_expect_eq(record->key_len, 1u, "%d has lost its key", (int)sequence_of(record->id));
    if (record->key_len == 1)
        cr_expect_eq(*(const char *)record->key, 'a' + (char)sequence_of(record->id));
    ++*(unsigned *)ctx;
    return 0;
}

/* A call has its records, and ends before it is told whose their keys are: the next one asks. */
REDIS_PROXY_TEST(redis_pages, has_its_keys_after_a_call_that_ended_before_they_came)
{
    static const enum fault_what ways[] = { FAULT_STALL, FAULT_CLOSE };

    for (size_t way = 0; way < 2; way++) {
        struct fault_cell late = {
            .command = 2, .name = "HMGET", .where = FAULT_SENT, .what = ways[way]
        };
        due_store *store = opened_by_proxy((due_redis_options){ 0 });
        unsigned shown = 0;
        char key[6];

        for (uint64_t i = 1; i <= 5; i++) {
            due_change c = put(i, 5000);

            key[i] = (char)('a' + (char)i);
            c.record.key = &key[i];
            c.record.key_len = 1;
            cr_assert_eq(commit_one(store, c, i), 0);
        }
        fault_proxy_plan(proxy, &late, 1);
        int rc = store->verbs->load(store, 1, 100, see_keys, &shown, soon(DUE_MS(200)));
        if (ways[way] == FAULT_STALL) {
            cr_expect_eq(rc, DUE_EAGAIN);
            cr_expect_eq(shown, 0u);
        }
        cr_expect_eq(fault_proxy_struck(proxy), 1u);
        fault_proxy_go_on(proxy);
        while (rc == 1 || rc == DUE_EAGAIN)
            rc = store->verbs->load(store, 0, 100, see_keys, &shown, soon(LONG_NS));
        cr_expect_eq(rc, 0, "%s", due_error_name(rc));
        cr_expect_geq(shown, 5u);
        finish(store);
        ASK("FLUSHALL");
    }
}

/* ---- Little time, and any number ---- */

/* Each call begins something, whatever time it has, and the next one goes on with that. */
REDIS_TEST(redis_pages, come_to_an_end_without_any_time)
{
    struct some seen = { .n_max = 1000 };
    due_store *store = opened((due_redis_options){ 0 });
    int calls = 0;
    int rc;

    fill(store, 40, 5000, 1000, 1);
    do {
        rc = store->verbs->load(store, calls == 0, 100, see_some, &seen, soon(0));
        nap(DUE_MS(1));
    } while ((rc == 1 || rc == DUE_EAGAIN) && ++calls < 2000);
    cr_expect_eq(rc, 0, "after %d calls: %s", calls, due_error_name(rc));
    for (int i = 1; i <= 40; i++)
        cr_expect_geq(seen.times[i], 1u, "%d", i);
    finish(store);
}

/* Without a number they are as large as they may be, and not of one job each. */
REDIS_TEST(redis_pages, are_large_where_nobody_says_how_many)
{
    struct some seen = { .n_max = 10000 };
    due_store *store = opened((due_redis_options){ 0 });

    fill(store, 2000, 5000, 1000, 1);
    ASK("CONFIG", "RESETSTAT");
    cr_expect_eq(store->verbs->load(store, 1, 0, see_some, &seen, soon(LONG_NS)), 0);
    cr_expect_eq(seen.n, 2000u);
    const char *stats = strstr(ASK("INFO", "commandstats"), "cmdstat_hmget:calls=");
    cr_assert_not_null(stats);
    cr_expect_lt(strtol(stats + strlen("cmdstat_hmget:calls="), NULL, 10), 30);
    finish(store);
}
