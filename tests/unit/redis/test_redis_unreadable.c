/* Loading what cannot all be read: a newer version's records, what makes no sense, and keys that
 * hold something else.  What can be read is shown, nothing is destroyed, and what is wrong is said.
 */
#include "inspect/server.h"
#include "lab/redis/redis_poke.h"
#include "lab/redis/redis_store_lab.h"

#define JOBS_KEY "due:{q}:j"

static char errors[4096]; /* lines of the log that are errors */

static void keep_errors(void *queue, enum due_log_level level, const char *text)
{
    size_t len = strlen(errors);

    (void)queue;
    if (level == DUE_LOG_ERROR || level == DUE_LOG_WARNING)
        snprintf(errors + len, sizeof errors - len, "%s\n", text);
}

static unsigned lines(const char *text, const char *with)
{
    unsigned n = 0;

    for (const char *at = strstr(text, with); at != NULL; at = strstr(at + 1, with))
        n++;
    return n;
}

static due_store *opened_loudly(void)
{
    due_store *store = make((due_redis_options){ 0 }, NULL);
    struct due_store_open how = { .name = "q", .until_ns = soon(LONG_NS), .log = keep_errors };

    errors[0] = '\0';
    cr_assert_eq(store->verbs->open(store, &how, &info, &error), 0, "%s", error.text);
    return store;
}

/* The job says that it makes no sense, by its sequence. */
static int see_or_refuse(void *ctx, const due_record *record)
{
    return record->deadline_ns < 0 ? DUE_ECORRUPT : see(ctx, record);
}

/* All pages of @max; between two of them some of what was shown is dropped.  Answers the last. */
static int load_between_batches(due_store *store, uint64_t n, size_t max, struct seen *seen,
                                uint64_t *number)
{
    int rc = 1;
    uint64_t dropped = 0;

    for (int call = 0; rc == 1; call++) {
        rc = store->verbs->load(store, call == 0, max, see_or_refuse, seen, soon(LONG_NS));
        while (rc == 1 && dropped < n && seen->times[dropped + 1] > 0) {
            dropped++;
            cr_assert_eq(commit_one(store, drop(dropped, 1000 * (int64_t)dropped), (*number)++), 0);
            if (dropped % 3 == 0)
                break;
        }
    }
    return rc;
}

/* @n jobs; those at @first and every @step are of a newer version. */
static void newer_are_passed_over(uint64_t n, uint64_t first, uint64_t step, size_t max)
{
    due_store *store = opened_loudly();
    struct seen seen = { .times = calloc(n + 1, sizeof(unsigned)) };
    uint64_t number = fill(store, n, 1000, 1000, 1);
    uint64_t newer = 0;
    char id[DUE_ID_TEXT];
    char all[64];

    for (uint64_t i = first; i <= n; i += step, newer++)
        poke_newer(server.socket, JOBS_KEY, id_of(0, i));
    cr_expect_eq(load_between_batches(store, n, max, &seen, &number), 0);
    for (uint64_t i = 1; i <= n; i++) {
        bool is_newer = i >= first && (i - first) % step == 0;

        cr_expect(is_newer ? seen.times[i] == 0 : seen.times[i] >= 1, "%d of %d, %zu: %u", (int)i,
                  (int)n, max, seen.times[i]);
    }
    cr_expect_eq(stats_of(store).quarantined, 0u);
    cr_expect_eq(lines(errors, "DUE_EVERSION"), 1u, "%s", errors);
    cr_expect_not_null(strstr(errors, due_id_format(id_of(0, first), id)), "%s", errors);
    snprintf(all, sizeof all, "%d jobs of a newer version stay in the store", (int)newer);
    cr_expect_eq(lines(errors, all), newer > 1, "%s", errors);
    cr_expect_eq(lines(errors, "newer version stay"), newer > 1, "%s", errors);
    for (uint64_t i = first; i <= n; i += step) {
        unsigned char bytes[1024];

        cr_expect_gt(poke_get(server.socket, JOBS_KEY, id_of(0, i), bytes, sizeof bytes), 0u);
        cr_expect_eq(bytes[0], DUE__RECORD_VERSION + 1);
    }
    free(seen.times);
    free(seen.data);
    finish(store);
    ASK("FLUSHALL");
}

REDIS_TEST(redis_load, passes_over_what_a_newer_version_wrote)
{
    static const size_t pages[] = { 1, 2, 7, 0 };

    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        newer_are_passed_over(10, 1, 20, pages[i]);
        newer_are_passed_over(10, 10, 20, pages[i]);
        newer_are_passed_over(60, 1, 2, pages[i]);
        newer_are_passed_over(60, 2, 5, pages[i]);
    }
    newer_are_passed_over(3000, 5, 7, 100);
    newer_are_passed_over(3000, 1, 1, 0);
}

REDIS_TEST(redis_find, answers_that_a_newer_version_wrote_it)
{
    due_store *store = opened_loudly();
    struct seen seen = { 0 };

    cr_assert_eq(commit_one(store, put(1, 5000), 1), 0);
    poke_newer(server.socket, JOBS_KEY, id_of(0, 1));
    cr_expect_eq(store->verbs->find(store, id_of(0, 1), see, &seen, soon(LONG_NS)), DUE_EVERSION);
    finish(store);
}

/* Whole bytes that say what no job can be: the queue answers so, and the store sets them aside. */
REDIS_TEST(redis_load, sets_aside_what_makes_no_sense_to_the_queue)
{
    due_store *store = opened_loudly();
    struct seen seen = { .times = calloc(301, sizeof(unsigned)) };
    uint64_t number = fill(store, 300, 1000, 1000, 1);

    for (uint64_t i = 3; i <= 300; i += 50)
        poke_nonsense(server.socket, JOBS_KEY, id_of(0, i));
    cr_expect_eq(load_between_batches(store, 300, 9, &seen, &number), 0);
    for (uint64_t i = 1; i <= 300; i++)
        cr_expect_eq(seen.times[i] >= 1, i % 50 != 3, "%d", (int)i);
    cr_expect_eq(stats_of(store).quarantined, 6u);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:q"), ":6\r\n");
    cr_expect_not_null(strstr(errors, "6 damaged"), "%s", errors);
    free(seen.times);
    free(seen.data);
    finish(store);
}

/* What the queue would set aside `duectl verify` calls damaged, and nothing else. */
Test(verify, judges_what_makes_no_sense_as_the_queue_does)
{
    static const struct {
        due_record record;
        int rc;
    } all[] = {
        { { .deadline_ns = 5 }, 0 },
        { { .deadline_ns = -1 }, DUE_ECORRUPT },
        { { .deadline_ns = 5, .ttl_ns = 1 }, 0 },
        { { .deadline_ns = 5, .ttl_ns = 1, .expires_ns = 1 }, DUE_ECORRUPT },
        { { .deadline_ns = 5, .every_ns = 1, .repeat = DUE_REPEAT_AFTER }, 0 },
        { { .deadline_ns = 5, .repeat = DUE_REPEAT_AFTER }, DUE_ECORRUPT },
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        unsigned char bytes[DUE__RECORD_FRONT];
        struct due__record_room room;
        due_record record = all[i].record;
        due_record back;

        record.topic = "";
        record.id = (due_id){ { 1, 2, 3 } };
        redisReply id = { .type = REDIS_REPLY_STRING, .str = (char *)record.id.byte };
        redisReply job = { .type = REDIS_REPLY_STRING, .str = (char *)bytes };
        id.len = DUE_STORE_ID_BYTES;
        job.len = due__record_front(&record, bytes);
        cr_expect_eq(ctl_record_read(&back, &room, &id, &job, NULL), all[i].rc, "%zu", i);
    }
}

/* ---- Keys that hold something else ----------------------------------------------------------- */

static void put_in(due_store *store, uint64_t sequence, const char *topic, uint64_t *number)
{
    due_change c = put(sequence, 5000);

    c.record.topic = topic;
    cr_assert_eq(commit_one(store, c, (*number)++), 0);
}

/* @key holds something else, and jobs 1 to @hidden are behind it; 20 others are not. */
static void the_rest_is_shown(const char *key, uint64_t hidden)
{
    due_store *store = opened_loudly();
    struct seen seen = { .times = calloc(41, sizeof(unsigned)) };
    uint64_t number = 1;
    unsigned again = 0;

    for (uint64_t i = 1; i <= 30; i++)
        put_in(store, i, i <= 5 ? "a" : i <= 10 ? "b" : i <= 20 ? "c" : "", &number);
    if (strcmp(key, "due:{q}:dead") == 0)
        cr_assert_eq(commit_one(store, dead(31, 6000), number++), 0);
    ASK("RENAME", key, "due:{q}:saved");
    ASK("SET", key, "something else");
    cr_expect_eq(load_all(store, 3, &seen), DUE_ECORRUPT, "%s", key);
    cr_expect_eq(seen.n, 30u - hidden, "%s: %zu", key, seen.n);
    cr_expect_not_null(strstr(errors, key), "%s", errors);
    for (int i = 0; i < 5; i++)
        cr_expect_eq(store->verbs->load(store, 0, 3, see, &seen, soon(LONG_NS)), DUE_ECORRUPT);
    cr_expect_eq(lines(errors, key), 1u, "%s", errors);
    for (uint64_t i = 1; i <= 31; i++)
        again += seen.times[i] > 1;
    cr_expect_eq(again, 0u, "%s: what was read is not read again", key);
    ASK("DEL", key);
    ASK("RENAME", "due:{q}:saved", key);
    int rc = 1;
    while (rc == 1)
        rc = store->verbs->load(store, 0, 3, see, &seen, soon(LONG_NS));
    cr_expect_eq(rc, 0, "%s", key);
    cr_expect_eq(seen.n, strcmp(key, "due:{q}:dead") == 0 ? 31u : 30u, "%s: %zu", key, seen.n);
    free(seen.times);
    free(seen.data);
    finish(store);
    ASK("FLUSHALL");
}

REDIS_TEST(redis_load, shows_the_rest_if_a_key_holds_something_else)
{
    the_rest_is_shown("due:{q}:dead", 0);
    the_rest_is_shown("due:{q}:t:a", 5);
    the_rest_is_shown("due:{q}:t:b", 5);
    the_rest_is_shown("due:{q}:t:c", 10);
    the_rest_is_shown("due:{q}:t:", 10);
}

/* ---- Pages that are read anew ---------------------------------------------------------------- */

/* Somebody who cannot take one job at once, or at whose sight the connection is lost. */
struct failing {
    struct seen *seen;
    uint64_t at; /* the sequence; 0: no more */
    bool cut;
};

static int see_or_fail(void *ctx, const due_record *record)
{
    struct failing *f = ctx;

    if (f->at == 0 || !due_id_equal(record->id, id_of(0, f->at)))
        return see(f->seen, record);
    f->at = 0;
    if (!f->cut)
        return DUE_ENOMEM;
    ASK("CLIENT", "KILL", "TYPE", "normal");
    return see(f->seen, record);
}

/* ZADD or ZREM with the job. */
static void poke_place(const char *command, const char *key, const char *score, due_id id)
{
    const char *words[] = { command, key, score, (const char *)id.byte };
    const size_t lens[] = { 4, strlen(key), strlen(score), DUE_STORE_ID_BYTES };
    const char *rem[] = { command, key, (const char *)id.byte };
    const size_t rem_lens[] = { 4, strlen(key), DUE_STORE_ID_BYTES };

    if (score[0] != '\0')
        freeReplyObject(poke(server.socket, 4, words, lens));
    else
        freeReplyObject(poke(server.socket, 3, rem, rem_lens));
}

/* Of the jobs at @score one is damaged, and one belongs to another topic.  The page is given up at
 * job @at, and read anew. */
static void what_was_noted_is_met_again(const char *score, uint64_t at, bool cut, uint64_t n)
{
    due_store *store = opened_loudly();
    struct seen seen = { .times = calloc(n + 2, sizeof(unsigned)) };
    struct failing failing = { .seen = &seen, .at = at, .cut = cut };
    uint64_t number = fill(store, n - 1, 1000, 1000, 1);
    int rc = 1;

    put_in(store, n, "b", &number);
    poke_place("ZREM", "due:{q}:t:b", "", id_of(0, n));
    poke_place("ZADD", "due:{q}:t:", score, id_of(0, n));
    poke_place("ZADD", "due:{q}:t:", score, id_of(0, n - 1));
    poke_set(server.socket, JOBS_KEY, id_of(0, n - 1), (const unsigned char *)"damaged", 7);
    for (int call = 0; rc == 1 || rc == DUE_ENOMEM; call++) {
        rc = store->verbs->load(store, call == 0, 0, see_or_fail, &failing, soon(LONG_NS));
        if (rc == DUE_ENOMEM)
            cr_assert_eq(commit_one(store, put(n + 1, INT64_C(1) << 40), number++), 0);
    }
    cr_expect_eq(rc, 0);
    for (uint64_t i = 1; i <= n; i++)
        cr_expect_eq(seen.times[i] >= 1, i != n - 1, "%d of %d at %d", (int)i, (int)n, (int)at);
    cr_expect_eq(stats_of(store).quarantined, 1u, "%d at %d", (int)n, (int)at);
    free(seen.times);
    free(seen.data);
    finish(store);
    ASK("FLUSHALL");
}

REDIS_TEST(redis_load, sets_aside_what_a_page_that_was_given_up_had_noted)
{
    static const uint64_t sizes[] = { 10, 3000 };

    for (size_t i = 0; i < 2; i++)
        for (uint64_t at = 1; at <= 5; at += 2) {
            what_was_noted_is_met_again("0", at, false, sizes[i]);
            what_was_noted_is_met_again("2", at, false, sizes[i]);
            what_was_noted_is_met_again("0", at, true, sizes[i]);
            what_was_noted_is_met_again("2", at, true, sizes[i]);
        }
}
