/* test_redis_orphans.c - records that stand nowhere are found, and nothing else is. */
#include "lab/redis/redis_proxy_lab.h"

#define REMOVE_FIRST                                                                               \
    "for i = 1, #KEYS do redis.call('ZREM', KEYS[i], redis.call('ZRANGE', KEYS[i], 0, 0)[1]) end " \
    "return #KEYS"

/* 2,000 jobs of 40 topics, one of ten dead; the next number. */
static uint64_t fill_topics(due_store *store)
{
    uint64_t number = 1;
    char topic[40][8];
    due_change changes[200];

    for (uint64_t i = 0; i < 2000;) {
        size_t n = 0;

        for (; n < 200; n++, i++) {
            snprintf(topic[i % 40], sizeof topic[0], "%d", (int)(i % 40));
            changes[n] = i % 10 == 9 ? dead(i + 1, 5000) : put(i + 1, 5000);
            changes[n].record.topic = topic[i % 40];
        }
        cr_assert_eq(commit(store, changes, n, number++), 0);
    }
    return number;
}

REDIS_TEST(redis_orphans, sets_aside_what_stands_nowhere)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { .times = calloc(2101, sizeof(unsigned)) };
    uint64_t number = fill_topics(store);

    cr_expect_eq(load_all(store, 100, &seen), 0);
    cr_expect_eq(seen.n, 2000u);
    cr_expect_eq(scans(), 0, "nothing is missing");
    ASK("EVAL", REMOVE_FIRST, "4", "due:{q}:t:3", "due:{q}:t:38", "due:{q}:dead", "due:{q}:t:20");
    seen.n = 0;
    cr_expect_eq(load_all(store, 100, &seen), 0);
    cr_expect_eq(seen.n, 1996u);
    cr_expect_gt(scans(), 1);
    cr_expect_eq(stats_of(store).quarantined, 4u);
    cr_expect_not_null(strstr(logged, "4 records that stood in no topic"), "%s", logged);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1996\r\n");
    cr_expect_str_eq(ASK("HLEN", "due:{q}:q"), ":4\r\n");
    cr_assert_eq(commit_one(store, put(2100, 5), number), 0, "it is guarded still");
    seen.n = 0;
    cr_expect_eq(load_all(store, 100, &seen), 0);
    cr_expect_eq(seen.n, 1997u);
    free(seen.times);
    free(seen.data);
    finish(store);
}

/* While batches come between, and the connection breaks. */
REDIS_TEST(redis_orphans, sets_nothing_aside_that_comes_meanwhile)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { .times = calloc(9000, sizeof(unsigned)) };
    uint64_t number = fill_topics(store);
    uint64_t fresh = 2000;
    int rc = 1;

    ASK("EVAL", REMOVE_FIRST, "1", "due:{q}:t:7");
    for (int call = 0; rc == 1 || rc == DUE_EAGAIN; call++) {
        rc = store->verbs->load(store, call == 0, 100, see, &seen,
                                soon(call % 3 == 0 ? DUE_MS(1) : LONG_NS));
        cr_assert_eq(commit_one(store, put(++fresh, 5 + call), number++), 0);
        if (call % 5 == 4)
            due__link_down(inside(store)->link);
    }
    cr_expect_eq(rc, 0);
    cr_expect_leq(stats_of(store).quarantined, 1u);
    seen.n = 0;
    cr_expect_eq(load_all(store, 100, &seen), 0);
    cr_expect_eq(seen.n, fresh - 1);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:q"), ":1\r\n");
    cr_expect_leq(stats_of(store).quarantined, 1u, "an answer that was lost was not counted");
    free(seen.times);
    free(seen.data);
    finish(store);
}

/* Something else stands where its topic should: the server does what it can of the batch, and the
 * caller is told that the job was not put in.  It does not come when that is put right. */
REDIS_TEST(redis_orphans, does_not_bring_back_what_was_refused)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { 0 };
    due_change odd = put(2, 5000);

    odd.record.topic = "odd";
    cr_assert_eq(commit_one(store, put(1, 5000), 1), 0);
    ASK("SET", "due:{q}:t:odd", "no zset");
    cr_expect_eq(commit_one(store, odd, 2), DUE_ECORRUPT);
    ASK("DEL", "due:{q}:t:odd");
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":2\r\n");
    cr_expect_eq(load_all(store, 100, &seen), 0);
    cr_expect_eq(seen.n, 1u);
    cr_expect_eq(stats_of(store).quarantined, 1u);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1\r\n");
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:t:odd"), ":0\r\n");
    free(seen.data);
    finish(store);
}

/* ---- Between its pages ---- */

/* A change of the job @sequence of fill_topics(). */
static due_change of_topic(due_change c, uint64_t sequence, char name[8])
{
    snprintf(name, 8, "%d", (int)((sequence - 1) % 40));
    c.record.topic = name;
    return c;
}

static due_change buried(uint64_t sequence)
{
    due_change c = move(sequence, 5000, 5000);

    c.kind = DUE_CHANGE_BURY;
    c.record.cause = DUE_CAUSE_BURIED;
    c.record.died_ns = 8000;
    return c;
}

/* One change of every sort, of the ten jobs behind @base; a new one that is due at @base.  Its
 * first number is @number. */
struct batch {
    due_change changes[5];
    char name[5][8];
};

static void gather(struct batch *b, uint64_t base)
{
    due_change kicked = move(base + 10, 5000, 7000);

    kicked.was_dead = 1;
    b->changes[0] = of_topic(drop(base + 1, 5000), base + 1, b->name[0]);
    b->changes[1] = of_topic(move(base + 2, 5000, 9000), base + 2, b->name[1]);
    b->changes[2] = of_topic(buried(base + 3), base + 3, b->name[2]);
    b->changes[3] = of_topic(kicked, base + 10, b->name[3]);
    b->changes[4] = of_topic(put(10000 + base, (int64_t)base), base, b->name[4]);
}

/* One page a call, whatever comes between; every other batch is on its way meanwhile. */
REDIS_TEST(redis_orphans, lets_batches_come_between_its_pages)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { 0 };
    uint64_t number = fill_topics(store);
    uint64_t base = 100;
    long pages = 0;
    int rc = 1;

    ASK("EVAL", REMOVE_FIRST, "4", "due:{q}:t:3", "due:{q}:t:38", "due:{q}:dead", "due:{q}:t:20");
    for (int call = 0; rc == 1; call++, base += 10) {
        struct batch b;
        long before = scans();

        gather(&b, base);
        if (call % 2 == 1 && store->verbs->prepare(store, b.changes, 5, number) == 0)
            cr_expect_eq(store->verbs->send(store, number, soon(LONG_NS)), 0);
        rc = store->verbs->load(store, call == 0, 100, see, &seen, soon(LONG_NS));
        cr_expect_leq(scans() - before, 1);
        pages += scans() - before;
        cr_assert_eq(commit(store, b.changes, 5, number++), 0);
    }
    cr_expect_eq(rc, 0);
    cr_expect_gt(pages, 1);
    cr_expect_lt(base, 1900u);
    cr_expect_eq(stats_of(store).quarantined, 4u);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:q"), ":4\r\n");
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1996\r\n");
    seen.n = 0;
    cr_expect_eq(load_all(store, 100, &seen), 0);
    cr_expect_eq(seen.n, 1996u);
    free(seen.data);
    finish(store);
}

/* What it shows may have gone with that batch. */
REDIS_PROXY_TEST(redis_orphans, reads_a_page_anew_that_a_batch_overtook)
{
    struct fault_cell stall = {
        .command = 1, .name = "HSCAN", .where = FAULT_SENT, .what = FAULT_STALL
    };
    due_store *store = opened_by_proxy((due_redis_options){ 0 });
    struct seen seen = { 0 };
    uint64_t number = fill_topics(store);
    due_change changes[200];
    char name[200][8];
    size_t n = 0;
    int rc = 1;

    ASK("EVAL", REMOVE_FIRST, "1", "due:{q}:t:3");
    fault_proxy_plan(proxy, &stall, 1);
    for (int call = 0; fault_proxy_struck(proxy) == 0; call++) {
        rc = store->verbs->load(store, call == 0, 100, see, &seen, soon(DUE_MS(200)));
        cr_assert(rc == 1 || rc == DUE_EAGAIN, "%s", due_error_name(rc));
    }
    cr_expect_eq(rc, DUE_EAGAIN);
    fault_proxy_go_on(proxy);
    for (uint64_t i = 1001; n < 200; i++)
        if (i % 10 != 0)
            changes[n] = of_topic(drop(i, 5000), i, name[n]), n++;
    cr_assert_eq(commit(store, changes, n, number), 0);
    do
        rc = store->verbs->load(store, 0, 100, see, &seen, soon(LONG_NS));
    while (rc == 1);
    cr_expect_eq(rc, 0);
    cr_expect_eq(stats_of(store).quarantined, 1u);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:q"), ":1\r\n");
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1799\r\n");
    free(seen.data);
    finish(store);
}

/* A call whose time is up before the answer comes: another sees it. */
REDIS_PROXY_TEST(redis_orphans, counts_what_a_late_answer_says)
{
    struct fault_cell stall = {
        .command = 1, .name = "HDEL", .where = FAULT_SENT, .what = FAULT_STALL
    };
    due_store *store = opened_by_proxy((due_redis_options){ 0 });
    struct seen seen = { 0 };
    int rc = 1;

    fill_topics(store);
    ASK("EVAL", REMOVE_FIRST, "1", "due:{q}:t:3");
    fault_proxy_plan(proxy, &stall, 1);
    for (int call = 0; rc == 1; call++)
        rc = store->verbs->load(store, call == 0, 100, see, &seen, soon(DUE_S(2)));
    cr_expect_eq(rc, DUE_EAGAIN);
    cr_expect_eq(fault_proxy_struck(proxy), 1u);
    fault_proxy_go_on(proxy);
    do
        rc = store->verbs->load(store, 0, 100, see, &seen, soon(LONG_NS));
    while (rc == 1);
    cr_expect_eq(rc, 0);
    cr_expect_eq(stats_of(store).quarantined, 1u);
    cr_expect_not_null(strstr(logged, "1 records that stood in no topic"), "%s", logged);
    free(seen.data);
    finish(store);
}

/* Else a load would never end, on a connection that is slow for it. */
REDIS_TEST(redis_orphans, gives_up_a_page_that_is_broken_off_again_and_again)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { 0 };
    uint64_t number = fill_topics(store);
    int calls = 0;
    int rc = 1;

    ASK("EVAL", REMOVE_FIRST, "1", "due:{q}:t:3");
    for (int call = 0; !inside(store)->load->sweep.counted; call++) {
        rc = store->verbs->load(store, call == 0, 100, see, &seen, soon(LONG_NS));
        cr_assert_eq(rc, 1);
    }
    for (; rc != 0 && calls < 50; calls++) {
        rc = store->verbs->load(store, 0, 100, see, &seen, soon(0));
        cr_assert(rc == 0 || rc == 1 || rc == DUE_EAGAIN, "%s", due_error_name(rc));
        cr_assert_eq(commit_one(store, put(3000 + number, 5), number), 0);
        number++;
    }
    cr_expect_eq(rc, 0, "it has ended after %d calls", calls);
    free(seen.data);
    finish(store);
}

/* Each page begins its attempts anew. */
REDIS_TEST(redis_orphans, has_each_page_at_the_fourth_attempt)
{
    due_store *store = opened((due_redis_options){ 0 });
    const struct due__redis_sweep *sweep = &inside(store)->load->sweep;
    struct seen seen = { 0 };
    uint64_t number = fill_topics(store);
    unsigned broken = 0;
    long good = 0;
    int rc = 1;

    ASK("EVAL", REMOVE_FIRST, "3", "due:{q}:t:3", "due:{q}:t:38", "due:{q}:t:20");
    for (int call = 0; rc == 1 || rc == DUE_EAGAIN; call++) {
        bool break_off = sweep->counted && broken < 3;

        rc = store->verbs->load(store, call == 0, 100, see, &seen, soon(break_off ? 0 : LONG_NS));
        if (sweep->counted && sweep->tries == 0) {
            good++;
            broken = 0;
        }
        if (break_off) {
            cr_assert_eq(commit_one(store, put(3000 + number, 5), number), 0);
            number++;
            broken++;
        }
        cr_assert_lt(call, 500);
    }
    cr_expect_eq(rc, 0);
    cr_expect_gt(good, 1);
    cr_expect_eq(stats_of(store).quarantined, 3u);
    free(seen.data);
    finish(store);
}

/* ---- What the server says ---- */

static int load_logged(due_store *store, struct seen *seen)
{
    logged[0] = '\0';
    seen->n = 0;
    return load_all(store, 100, seen);
}

/* The names of the topics are asked for twice: by the load, and by the count at its end. */
REDIS_PROXY_TEST(redis_orphans, takes_nothing_for_a_name_that_is_none)
{
    static const char *const says[] = { "*1\r\n:7", "*2\r\n$1\r\n0\r\n$-1",
                                        "*1\r\n*0", "*1\r\n*1\r\n$1\r\n0",
                                        "*1\r\n+0", "$1\r\n0",
                                        ":3",       "*-1" };
    due_store *store = opened_by_proxy((due_redis_options){ 0 });
    struct seen seen = { 0 };

    fill_topics(store);
    ASK("EVAL", REMOVE_FIRST, "1", "due:{q}:t:3");
    for (size_t i = 0; i < sizeof says / sizeof says[0]; i++) {
        struct fault_cell cell = { .command = 2,
                                   .name = "HKEYS",
                                   .where = FAULT_SENT,
                                   .what = FAULT_REPLACE,
                                   .text = says[i] };

        /* The connection goes with the answer; the next one begins with other names. */
        cr_assert_eq(store->verbs->ready(store, soon(LONG_NS)), 0);
        fault_proxy_plan(proxy, &cell, 1);
        cr_expect_eq(load_logged(store, &seen), 0, "%s", says[i]);
        cr_expect_eq(seen.n, 1999u, "%s", says[i]);
        cr_expect_not_null(strstr(logged, "were not looked for"), "%s: %s", says[i], logged);
        cr_expect_str_eq(ASK("EXISTS", "due:{q}:q"), ":0\r\n", "%s", says[i]);
    }
    cr_expect_eq(load_logged(store, &seen), 0);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:q"), ":1\r\n");
    free(seen.data);
    finish(store);
}

#define DIGITS_23 "00000000000000000000001"

/* A cursor that does not fit would be written over what stands behind it. */
REDIS_PROXY_TEST(redis_orphans, takes_nothing_for_a_page_that_is_none)
{
    static const char *const says[] = { "*2\r\n$24\r\n0" DIGITS_23 "\r\n*0",
                                        "*2\r\n$46\r\n" DIGITS_23 DIGITS_23 "\r\n*0",
                                        "*2\r\n$1\r\n0\r\n*1\r\n$14\r\nfourteen bytes",
                                        "*2\r\n$1\r\n0\r\n*2\r\n$1\r\n0\r\n:0",
                                        "*2\r\n$1\r\n0\r\n$1\r\n0",
                                        "*2\r\n:0\r\n*0",
                                        "*1\r\n$1\r\n0",
                                        "*3\r\n$1\r\n0\r\n*0\r\n*0" };
    due_store *store = opened_by_proxy((due_redis_options){ 0 });
    struct seen seen = { 0 };

    fill_topics(store);
    ASK("EVAL", REMOVE_FIRST, "1", "due:{q}:t:3");
    for (size_t i = 0; i < sizeof says / sizeof says[0]; i++) {
        struct fault_cell cell = { .command = 1,
                                   .name = "HSCAN",
                                   .where = FAULT_SENT,
                                   .what = FAULT_REPLACE,
                                   .text = says[i] };

        cr_assert_eq(store->verbs->ready(store, soon(LONG_NS)), 0);
        fault_proxy_plan(proxy, &cell, 1);
        cr_expect_eq(load_logged(store, &seen), 0, "%s", says[i]);
        cr_expect_eq(seen.n, 1999u, "%s", says[i]);
        cr_expect_not_null(strstr(logged, "were not looked for"), "%s: %s", says[i], logged);
        cr_expect_str_eq(ASK("EXISTS", "due:{q}:q"), ":0\r\n", "%s", says[i]);
    }
    free(seen.data);
    finish(store);
}

/* One of as many digits as there is room for begins the scan where the server says. */
REDIS_PROXY_TEST(redis_orphans, goes_on_where_the_longest_cursor_says)
{
    struct fault_cell cell = { .command = 1,
                               .name = "HSCAN",
                               .where = FAULT_SENT,
                               .what = FAULT_REPLACE,
                               .text = "*2\r\n$23\r\n" DIGITS_23 "\r\n*0" };
    due_store *store = opened_by_proxy((due_redis_options){ 0 });
    struct seen seen = { 0 };

    fill_topics(store);
    fault_proxy_plan(proxy, &cell, 1);
    ASK("EVAL", REMOVE_FIRST, "1", "due:{q}:t:3");
    cr_expect_eq(load_logged(store, &seen), 0);
    cr_expect_null(strstr(logged, "were not looked for"), "%s", logged);
    cr_expect_gt(scans(), 1);
    free(seen.data);
    finish(store);
}

/* Jobs that stand where only a shared queue has any wait again until when they did, not sooner. */
REDIS_TEST(redis_orphans, puts_back_what_was_held_as_it_was)
{
    for (int of = 0; of < 2; of++) {
        const char *to = of ? "due:{q}:g:a" : "due:{q}:l:a";
        due_store *store = opened((due_redis_options){ 0 });
        struct seen seen = { .times = calloc(10, sizeof(unsigned)) };
        due_change changes[4];

        for (uint64_t i = 0; i < 4; i++) {
            changes[i] = put(i + 1, 5000);
            changes[i].record.topic = "a";
        }
        cr_assert_eq(commit(store, changes, 4, 1), 0);
        for (uint64_t i = 1; i < 4; i += 2) { /* the second and the fourth were tried before */
            changes[i] = move(i + 1, 5000, 9000 * (int64_t)i);
            changes[i].record.topic = "a";
            changes[i].record.deadline_ns = 5000;
            changes[i].record.attempts = changes[i].record.failures = 1;
            cr_assert_eq(commit_one(store, changes[i], 1 + i), 0);
        }
        finish(store);
        ASK("RENAME", "due:{q}:t:a", to);
        store = opened((due_redis_options){ 0 });
        cr_expect_eq(load_all(store, 100, &seen), 0);
        cr_expect_eq(seen.n, 4u);
        cr_expect_str_eq(ASK("EXISTS", to, "due:{q}:q"), ":0\r\n");
        cr_expect_str_eq(ASK("ZCOUNT", "due:{q}:t:a", "5", "5"), ":2\r\n");
        cr_expect_str_eq(ASK("ZCOUNT", "due:{q}:t:a", "9", "9"), ":1\r\n");
        cr_expect_str_eq(ASK("ZCOUNT", "due:{q}:t:a", "27", "27"), ":1\r\n");
        free(seen.times);
        free(seen.data);
        finish(store);
        ASK("FLUSHALL");
    }
}

/* It may be what puts a record where it belongs: so it is asked for first, and then all that was to
 * be set aside is. */
REDIS_PROXY_TEST(redis_orphans, sees_first_what_became_of_a_batch_in_doubt)
{
    static const enum fault_what ways[] = { FAULT_STALL, FAULT_RESET };

    for (size_t way = 0; way < 2; way++) {
        struct fault_cell lost = {
            .command = 1, .name = "EXEC", .where = FAULT_SENT, .what = ways[way]
        };
        due_store *store = opened_by_proxy((due_redis_options){ 0 });
        struct seen seen = { 0 };
        uint64_t number = fill_topics(store);
        int rc = 1;

        ASK("EVAL", REMOVE_FIRST, "1", "due:{q}:t:3");
        for (int call = 0; !inside(store)->load->sweep.counted; call++) {
            rc = store->verbs->load(store, call == 0, 100, see, &seen, soon(LONG_NS));
            cr_assert_eq(rc, 1);
        }
        due_change change = put(3000, 5);
        fault_proxy_plan(proxy, &lost, 1);
        cr_assert_eq(store->verbs->prepare(store, &change, 1, number), 0);
        cr_assert_eq(store->verbs->send(store, number, soon(LONG_NS)), 0);
        cr_assert(fault_proxy_wait(proxy, 1, 20000));
        fault_proxy_go_on(proxy);
        while (rc == 1 || rc == DUE_EAGAIN)
            rc = store->verbs->load(store, 0, 100, see, &seen, soon(LONG_NS));
        cr_expect_eq(rc, 0, "%s", due_error_name(rc));
        cr_expect_eq(stats_of(store).quarantined, 1u, "%zu", way);
        cr_expect_eq(commit_one(store, change, number), 0);
        cr_expect_eq(load_all(store, 100, &seen), 0);
        cr_expect_eq(stats_of(store).quarantined, 1u, "%zu: once", way);
        free(seen.data);
        finish(store);
        ASK("FLUSHALL");
    }
}

/* One that cannot be read stays, and the others are put back all the same. */
REDIS_TEST(redis_orphans, puts_back_what_can_be_read)
{
    for (int bad = 0; bad < 3; bad++) {
        due_store *store = opened((due_redis_options){ 0 });
        struct seen seen = { 0 };
        due_change changes[3];

        for (uint64_t i = 0; i < 3; i++) {
            changes[i] = put(i + 1, 5000);
            changes[i].record.topic = "a";
        }
        cr_assert_eq(commit(store, changes, 3, 1), 0);
        finish(store);
        ASK("RENAME", "due:{q}:t:a", "due:{q}:l:a");
        ASK("EVAL",
            "redis.call('HSET', KEYS[2], redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[1])[1], 'x') "
            "return 1",
            "2", "due:{q}:l:a", "due:{q}:a", (const char *[]){ "0", "1", "2" }[bad]);
        store = opened((due_redis_options){ 0 });
        cr_expect_eq(load_all(store, 100, &seen), 0);
        cr_expect_eq(seen.n, 2u, "%d: %zu", bad, seen.n);
        cr_expect_str_eq(ASK("ZCARD", "due:{q}:t:a"), ":2\r\n");
        cr_expect_str_eq(ASK("ZCARD", "due:{q}:l:a"), ":1\r\n");
        free(seen.data);
        finish(store);
        ASK("FLUSHALL");
    }
}
