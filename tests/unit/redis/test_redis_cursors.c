/* test_redis_cursors.c - pages of scans that are none: nothing is taken for one, and what does not
 * fit is not written anywhere. */
#include "lab/redis/redis_proxy_lab.h"

#define DIGITS_23 "00000000000000000000001"

static const char *const none[] = { "*2\r\n$24\r\n0" DIGITS_23 "\r\n*0",
                                    "*2\r\n$46\r\n" DIGITS_23 DIGITS_23 "\r\n*0",
                                    "*2\r\n$1\r\n0\r\n*1\r\n$14\r\nfourteen bytes",
                                    "*2\r\n$1\r\n0\r\n*2\r\n$1\r\n0\r\n:0",
                                    "*2\r\n$1\r\n0\r\n$1\r\n0",
                                    "*2\r\n:0\r\n*0",
                                    "*1\r\n$1\r\n0",
                                    "*3\r\n$1\r\n0\r\n*0\r\n*0" };
static const char longest[] = "*2\r\n$23\r\n" DIGITS_23 "\r\n*0"; /* that fits */

#define NONE (sizeof none / sizeof none[0])

/* The first scan of this name is answered so. */
static void answer_with(const char *name, const char *says)
{
    fault_proxy_plan(
        proxy,
        &(struct fault_cell){
            .command = 1, .name = name, .where = FAULT_SENT, .what = FAULT_REPLACE, .text = says },
        1);
}

static int note_key(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    (void)id;
    cr_expect_eq(len, 3u);
    cr_expect_eq(memcmp(key, "tea", 3), 0);
    cr_expect_eq(until_ns, 7000000);
    ++*(unsigned *)ctx;
    return 0;
}

REDIS_PROXY_TEST(redis_cursors, of_kept_keys_that_are_none_are_refused)
{
    due_store *store = opened_by_proxy((due_redis_options){ 0 });

    ASK("ZADD", "due:{q}:kx", "7000", "tea");
    ASK("HSET", "due:{q}:k", "tea", "fourteen bytes");
    for (size_t i = 0; i < NONE; i++) {
        unsigned shown = 0;

        cr_assert_eq(store->verbs->ready(store, soon(LONG_NS)), 0);
        answer_with("ZSCAN", none[i]);
        cr_expect_eq(store->verbs->keys(store, 1, 9, note_key, &shown, soon(LONG_NS)), DUE_ECORRUPT,
                     "%s", none[i]);
        cr_expect_eq(shown, 0u, "%s", none[i]);
        cr_expect_eq(store->verbs->keys(store, 0, 9, note_key, &shown, soon(LONG_NS)), 0, "%s",
                     none[i]);
        cr_expect_eq(shown, 1u, "%s", none[i]);
    }
    unsigned shown = 0;
    answer_with("ZSCAN", longest);
    cr_expect_eq(store->verbs->keys(store, 1, 9, note_key, &shown, soon(LONG_NS)), 1);
    cr_expect_eq(shown, 0u);
    finish(store);
}

/* As long as it is not known which records are good all are scanned. */
REDIS_PROXY_TEST(redis_cursors, of_records_that_are_none_are_refused)
{
    due_store *store = opened_by_proxy((due_redis_options){ 0 });

    fill(store, 20, 5000, 1, 1);
    for (size_t i = 0; i <= NONE; i++) {
        struct seen seen = { .times = calloc(21, sizeof(unsigned)) };
        int calls = 0;
        int rc;

        cr_assert_eq(store->verbs->ready(store, soon(LONG_NS)), 0);
        inside(store)->unsure = true;
        answer_with("HSCAN", i < NONE ? none[i] : longest);
        do
            rc = store->verbs->load(store, calls == 0, 100, see, &seen, soon(LONG_NS));
        while (rc == 1 && ++calls < 9);
        cr_expect_eq(rc, i < NONE ? DUE_ECORRUPT : 0, "%zu: %s", i, due_error_name(rc));
        cr_expect_eq(fault_proxy_struck(proxy), 1u);
        while (rc != 0 && ++calls < 18)
            rc = store->verbs->load(store, 0, 100, see, &seen, soon(LONG_NS));
        cr_expect_eq(rc, 0, "%zu: %s", i, due_error_name(rc));
        for (int job = 1; job <= 20; job++)
            cr_expect_eq(seen.times[job], 2u, "%zu: %d", i, job);
        free(seen.times);
        free(seen.data);
    }
    finish(store);
}

/* Also when all had been shown. */
REDIS_PROXY_TEST(redis_cursors, of_kept_keys_begin_anew_after_a_loss)
{
    due_store *store = opened_by_proxy((due_redis_options){ 0 });
    unsigned shown = 0;

    for (unsigned i = 1; i <= 2; i++) {
        ASK("ZADD", "due:{q}:kx", "7000", "tea");
        ASK("HSET", "due:{q}:k", "tea", "fourteen bytes");
        cr_expect_eq(store->verbs->keys(store, i == 1, 9, note_key, &shown, soon(LONG_NS)), 0);
        cr_expect_eq(shown, i);
        cr_expect_eq(store->verbs->keys(store, 0, 9, note_key, &shown, soon(LONG_NS)), 0);
        cr_expect_eq(shown, i, "once");
        ASK("FLUSHALL");
        due__link_down(inside(store)->link);
        cr_expect_eq(store->verbs->keys(store, 0, 9, note_key, &shown, soon(LONG_NS)), DUE_ELOST);
    }
    cr_expect_eq(store->verbs->keys(store, 0, 9, note_key, &shown, soon(LONG_NS)), 0);
    cr_expect_eq(shown, 2u, "there is none any more");
    finish(store);
}

struct kept {
    unsigned n;
    size_t len;
    bool over;
};

static int note_any(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    struct kept *kept = ctx;

    (void)key, (void)id;
    *kept = (struct kept){ .n = kept->n + 1, .len = len, .over = until_ns == 0 };
    return 0;
}

/* Most have more in a large store.  Behind this one a few of a hundred are left. */
REDIS_PROXY_TEST(redis_cursors, of_one_digit_are_gone_on_with)
{
    static const char seven[] = "*2\r\n$1\r\n7\r\n*0";
    due_store *store = opened_by_proxy((due_redis_options){ 0 });
    struct kept kept = { .n = 0 };
    struct seen seen = { 0 };
    char key[8];

    ASK("CONFIG", "SET", "hash-max-listpack-entries", "0");
    ASK("CONFIG", "SET", "zset-max-listpack-entries", "0");
    fill(store, 100, 5000, 1, 1);
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "%d", i);
        ASK("ZADD", "due:{q}:kx", "7000", key);
    }
    answer_with("ZSCAN", seven);
    cr_expect_eq(store->verbs->keys(store, 1, 1000, note_any, &kept, soon(LONG_NS)), 1);
    cr_expect_eq(store->verbs->keys(store, 0, 1000, note_any, &kept, soon(LONG_NS)), 0);
    cr_expect_lt(kept.n, 100u);
    inside(store)->unsure = true; /* so all records are scanned */
    answer_with("HSCAN", seven);
    cr_expect_eq(load_all(store, 1000, &seen), 0);
    cr_expect_eq(fault_proxy_struck(proxy), 1u);
    cr_expect_geq(seen.n, 100u);
    cr_expect_lt(seen.n, 200u);
    inside(store)->unsure = false; /* so those are that stand nowhere */
    ASK("DEL", "due:{q}:t:");
    answer_with("HSCAN", seven);
    cr_expect_eq(load_all(store, 1000, &seen), 0);
    cr_expect_eq(fault_proxy_struck(proxy), 1u);
    cr_expect_lt(stats_of(store).quarantined, 100u);
    free(seen.data);
    finish(store);
}

/* What no queue could have put there is passed over; a key of nobody's is over. */
REDIS_PROXY_TEST(redis_cursors, of_kept_keys_show_those_that_can_be)
{
    static char key[DUE_KEY_MAX + 2];
    static const struct {
        size_t len;
        const char *id;
        unsigned shown;
        bool over;
    } cases[] = { { 0, "fourteen bytes", 0, false },
                  { 1, "fourteen bytes", 1, false },
                  { DUE_KEY_MAX, "fourteen bytes", 1, false },
                  { DUE_KEY_MAX + 1, "fourteen bytes", 0, false },
                  { 5, "thirteen byte", 0, false },
                  { 5, "fifteen bytes..", 0, false },
                  { 5, NULL, 1, true } };
    due_store *store = opened_by_proxy((due_redis_options){ 0 });

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kept kept = { .n = 0 };

        memset(key, 'k', sizeof key);
        key[cases[i].len] = '\0';
        ASK("ZADD", "due:{q}:kx", "7000", key);
        if (cases[i].id != NULL)
            ASK("HSET", "due:{q}:k", key, cases[i].id);
        cr_expect_eq(store->verbs->keys(store, 1, 9, note_any, &kept, soon(LONG_NS)), 0);
        cr_expect_eq(kept.n, cases[i].shown, "%zu", i);
        cr_expect_eq(kept.len, cases[i].shown * cases[i].len, "%zu", i);
        cr_expect_eq(kept.over, cases[i].over, "%zu", i);
        ASK("DEL", "due:{q}:kx", "due:{q}:k");
    }
    finish(store);
}

REDIS_PROXY_TEST(redis_cursors, of_kept_keys_that_cannot_be_read_are_said_to_be_so)
{
    due_store *store = opened_by_proxy((due_redis_options){ 0 });
    unsigned shown = 0;

    ASK("SET", "due:{q}:kx", "no set");
    logged[0] = '\0';
    cr_expect_eq(store->verbs->keys(store, 1, 9, note_key, &shown, soon(LONG_NS)), DUE_ECORRUPT);
    cr_expect_not_null(strstr(logged, "due:{q}:kx"), "%s", logged);
    finish(store);
}

/* A record that cannot be read keeps back none of its page. */
REDIS_PROXY_TEST(redis_cursors, of_records_pass_by_those_that_cannot_be_read)
{
    due_store *store = opened_by_proxy((due_redis_options){ 0 });
    struct seen seen = { .times = calloc(21, sizeof(unsigned)) };

    ASK("HSET", "due:{q}:j", "fourteen bytes", "rubbish", "fourteen hytes", "rubbish");
    fill(store, 20, 5000, 1, 1);
    for (size_t max = 0; max < 200; max += 99) {
        memset(seen.times, 0, 21 * sizeof *seen.times);
        inside(store)->unsure = true;
        cr_expect_eq(load_all(store, max, &seen), 0);
        for (int job = 1; job <= 20; job++)
            cr_expect_eq(seen.times[job], 2u, "%zu: %d", max, job);
    }
    free(seen.times);
    free(seen.data);
    finish(store);
}
