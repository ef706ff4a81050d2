/* test_redis_little_time.c - a store whose calls have less time than an answer takes, whose opening
 * is broken off, or whose next batch lies ready when something else is asked.
 */
#include "lab/redis/redis_fake.h"
#include "lab/redis/redis_proxy_lab.h"

#define LAG_MS  60
#define ROUNDS  2000 /* of calls; some tens are enough */
#define LITTLE  DUE_MS(4)
#define A_BREAK 60 /* commands of an opening, at least */

/* Jobs of three topics, one of them dead, and one whose place is gone. */
static void stock(due_store *store)
{
    static const char *const topics[] = { "", "a", "b" };
    due_change changes[30];

    for (uint64_t i = 0; i < 30; i++) {
        changes[i] = i == 7 ? dead(i + 1, 5000) : put(i + 1, (int64_t)(5000 + i));
        changes[i].record.topic = topics[i % 3];
    }
    cr_assert_eq(commit(store, changes, 30, 1), 0);
    due_change keep = put(40, 5);
    keep.kind = DUE_CHANGE_KEEP;
    keep.record.key = "k";
    keep.record.key_len = 1;
    keep.key_kept_ns = DUE_S(1000000000);
    cr_assert_eq(commit_one(store, keep, 2), 0);
    ASK("ZREMRANGEBYRANK", "due:{q}:t:a", "0", "0");
}

/* Until one answers otherwise; -1: none does. */
#define IN_THE_END(rc, call)                                                   \
    do {                                                                       \
        int rounds = 0;                                                        \
                                                                               \
        do                                                                     \
            rc = (call);                                                       \
        while ((rc == DUE_EAGAIN || rc == DUE_EINDOUBT) && ++rounds < ROUNDS); \
        cr_expect_lt(rounds, ROUNDS, "it begins anew each time");              \
    } while (0)

REDIS_PROXY_TEST(redis_little_time, a_load_gets_to_its_end)
{
    due_store *store = opened_by_proxy((due_redis_options){ 0 });
    struct seen seen = { .times = calloc(101, sizeof(unsigned)) };
    int rc = 1;

    stock(store);
    fault_proxy_lag(proxy, LAG_MS);
    for (int call = 0; (rc == 1 || rc == DUE_EAGAIN) && call < ROUNDS; call++)
        rc = store->verbs->load(store, call == 0, 8, see, &seen, soon(LITTLE));
    cr_expect_eq(rc, 0);
    cr_expect_eq(seen.n, 29u);
    fault_proxy_lag(proxy, 0);
    cr_expect_eq(load_all(store, 8, &seen), 0);
    cr_expect_eq(stats_of(store).quarantined, 1u, "at the latest when there is time");
    free(seen.times);
    free(seen.data);
    finish(store);
}

static int no_key(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    unsigned *shown = ctx;

    (void)key, (void)len, (void)id, (void)until_ns;
    ++*shown;
    return 0;
}

REDIS_PROXY_TEST(redis_little_time, so_does_every_other_call)
{
    due_store *store = opened_by_proxy((due_redis_options){ 0 });
    struct seen seen = { .times = calloc(101, sizeof(unsigned)) };
    unsigned keys = 0;
    int64_t held;
    int rc = 1;

    stock(store);
    fault_proxy_lag(proxy, LAG_MS);
    for (int call = 0; (rc == 1 || rc == DUE_EAGAIN) && call < ROUNDS; call++)
        rc = store->verbs->keys(store, call == 0, 8, no_key, &keys, soon(LITTLE));
    cr_expect_eq(rc, 0);
    cr_expect_eq(keys, 1u);
    IN_THE_END(rc, store->verbs->find(store, id_of(0, 3), see, &seen, soon(LITTLE)));
    cr_expect_eq(rc, 0);
    cr_expect_eq(seen.n, 1u);
    IN_THE_END(rc, store->verbs->find(store, id_of(0, 77), see, &seen, soon(LITTLE)));
    cr_expect_eq(rc, DUE_ENOENT);
    IN_THE_END(rc, store->verbs->renew(store, &held, soon(LITTLE)));
    cr_expect_eq(rc, 0);
    due_change change = put(50, 5);
    IN_THE_END(rc, store->verbs->commit(store, &change, 1, 3, soon(LITTLE)));
    cr_expect_eq(rc, 0);
    IN_THE_END(rc, store->verbs->ready(store, soon(LITTLE)));
    cr_expect_eq(rc, 0);
    fault_proxy_lag(proxy, 0);
    free(seen.times);
    free(seen.data);
    finish(store);
}

enum { KEYS = 3000 };

static int note_key(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    unsigned *times = ctx;
    char text[16];

    (void)id, (void)until_ns;
    snprintf(text, sizeof text, "%.*s", (int)len, (const char *)key);
    times[strtoul(text, NULL, 10) % KEYS]++;
    return 0;
}

static void keep_many(due_store *store)
{
    char names[100][16];
    due_change changes[100];

    for (unsigned i = 0; i < KEYS; i += 100) {
        for (unsigned k = 0; k < 100; k++) {
            snprintf(names[k], sizeof names[k], "%u", i + k);
            changes[k] = put(100 + i + k, 5);
            changes[k].kind = DUE_CHANGE_KEEP;
            changes[k].record.key = names[k];
            changes[k].record.key_len = strlen(names[k]);
            changes[k].key_kept_ns = DUE_S(1000000000);
        }
        cr_assert_eq(commit(store, changes, 100, 1 + i / 100), 0);
    }
}

/* Page by page, also if the connection breaks: behind another one it begins anew. */
REDIS_TEST(redis_little_time, many_keys_are_read_to_their_end)
{
    due_store *store = opened((due_redis_options){ 0 });

    keep_many(store);
    for (int breaks = 0; breaks < 2; breaks++) {
        unsigned *times = calloc(KEYS, sizeof *times);
        unsigned missing = 0;
        int calls = 0;
        int rc;

        cr_assert_not_null(times);
        do {
            rc = store->verbs->keys(store, calls == 0, 100, note_key, times, soon(LONG_NS));
            if (breaks && calls == 7)
                due__link_down(inside(store)->link);
        } while ((rc == 1 || rc == DUE_EAGAIN) && ++calls < ROUNDS);
        cr_expect_eq(rc, 0);
        cr_expect_gt(calls, 7, "in pages");
        for (int i = 0; i < KEYS; i++)
            missing += times[i] == 0;
        cr_expect_eq(missing, 0u);
        free(times);
    }
    finish(store);
}

/* Wherever that happens: it has time for another attempt. */
REDIS_PROXY_TEST(redis_little_time, an_opening_whose_connection_breaks_is_tried_again)
{
    char url[128];

    snprintf(url, sizeof url, "unix://%s/proxy", server.dir);
    for (uint64_t i = 1; i < A_BREAK; i++) {
        struct fault_cell cell = { .command = i, .where = FAULT_SENT, .what = FAULT_CLOSE };
        due_store *store = make((due_redis_options){ 0 }, url);

        fault_proxy_plan(proxy, &cell, 1);
        cr_expect_eq(take(store, LONG_NS, &info, &error), 0, "%d: %s", (int)i, error.text);
        fault_proxy_plan(proxy, NULL, 0);
        finish(store);
    }
}

/* It lies in the link's buffer: whatever is asked then is not sent behind it. */
REDIS_TEST(redis_little_time, a_batch_that_lies_ready_does_not_go_with_what_is_asked)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { .times = calloc(101, sizeof(unsigned)) };

    for (uint64_t number = 1; number <= 3; number++) {
        due_change one = put(number, 5);

        cr_assert_eq(store->verbs->prepare(store, &one, 1, number), 0);
        cr_expect_eq(store->verbs->find(store, one.record.id, see, &seen, soon(LONG_NS)),
                     DUE_ENOENT);
        cr_expect_eq(commit_one(store, one, number), 0);
        cr_expect_eq(store->verbs->find(store, one.record.id, see, &seen, soon(LONG_NS)), 0);
    }
    cr_expect_eq(seen.n, 3u);
    free(seen.times);
    free(seen.data);
    finish(store);
}

static due_store *asked;
static unsigned told;

static void ask_for_figures(void *queue, enum due_log_level level, const char *text)
{
    struct due_store_stats s;

    (void)queue, (void)level, (void)text;
    asked->verbs->stats(asked, &s);
    told++;
}

/* Nothing is locked meanwhile. */
REDIS_TEST(redis_little_time, who_is_told_of_trouble_may_ask_for_the_figures)
{
    struct due_store_open how = { .name = "q", .until_ns = soon(LONG_NS), .log = ask_for_figures };
    due_change one = put(1, 5);

    asked = make((due_redis_options){ 0 }, NULL);
    cr_assert_eq(asked->verbs->open(asked, &how, &info, &error), 0, "%s", error.text);
    told = 0;
    cr_assert_eq(unlink(server.socket), 0);
    due__link_down(inside(asked)->link);
    for (int i = 0; i < 100 && told == 0; i++)
        cr_expect_lt(asked->verbs->commit(asked, &one, 1, 1, soon(DUE_MS(20))), 0);
    cr_expect_gt(told, 0u);
    asked->verbs->close(asked, soon(DUE_MS(20)));
    due_redis_free(asked);
}

static void serve_a_flood(struct fake *fake, int fd, int nth)
{
    char text[FAKE_TEXT];

    (void)nth;
    if (fake_greet(fake, fd, 2) && fake_hear(fake, fd, text) && fake_say(fd, "$600000000\r\n"))
        fake_ignore(fd);
}

/* More than a record may have: it is not waited for. */
Test(redis_little_time, a_server_that_announces_too_much_is_not_waited_for, .timeout = 60)
{
    struct fake fake;

    fake_start(&fake, serve_a_flood, NULL);
    due_store *store = make((due_redis_options){ .answer_ns = DUE_S(50) }, fake.url);
    cr_expect_lt(take(store, DUE_S(3), &info, &error), 0);
    cr_expect_gt(atomic_load(&fake.accepted), 1, "it is left, and tried again");
    due_redis_free(store);
    fake_stop(&fake);
}
