/* test_redis_survey.c - what an opening reads of the server: each answer of its survey, as it may
 * be and as it must not be.
 */
#include "lab/redis/redis_proxy_lab.h"
#include "redis/owner/owner.h"

#define WRITERS_END UINT64_C(281474976710655) /* 2^48 - 1 */

/* The @nth command @name of an opening is answered so. */
struct answer {
    const char *name;
    uint64_t nth;
    const char *text;
    int rc;
};

static due_store *opened_with(const struct answer *a, int *rc)
{
    struct fault_cell cell = { .command = a->nth,
                               .name = a->name,
                               .where = FAULT_SENT,
                               .what = FAULT_REPLACE,
                               .text = a->text };
    char url[128];

    ASK("FLUSHALL");
    snprintf(url, sizeof url, "unix://%s/proxy", server.dir);
    due_store *store = make((due_redis_options){ 0 }, url);
    fault_proxy_plan(proxy, &cell, 1);
    *rc = take(store, LONG_NS, &info, &error);
    cr_expect_eq(fault_proxy_struck(proxy), 1u, "%s %s", a->name, a->text);
    return store;
}

static void check_answers(const struct answer *answers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct answer *a = &answers[i];
        int rc;
        due_store *store = opened_with(a, &rc);

        cr_expect_eq(rc, a->rc, "%s %s: %s", a->name, a->text, due_error_name(rc));
        cr_expect_eq(due__link_is_up(inside(store)->link), rc == 0, "%s %s", a->name, a->text);
        finish(store);
    }
}

#define CHECK(answers) check_answers(answers, sizeof(answers) / sizeof *(answers))

REDIS_PROXY_TEST(redis_survey, takes_a_time_of_seconds_and_microseconds)
{
    static const struct answer answers[] = {
        { "TIME", 1, "*2\r\n$10\r\n1700000000\r\n$6\r\n999999", 0 },
        { "TIME", 1, "*2\r\n$10\r\n1700000000\r\n$1\r\n0", 0 },
        { "TIME", 1, "*2\r\n$10\r\n9223372035\r\n$6\r\n999999", 0 },
        { "TIME", 1, "*2\r\n$10\r\n9223372036\r\n$1\r\n0", DUE_ECORRUPT },
        { "TIME", 1, "*2\r\n$10\r\n1700000000\r\n$7\r\n1000000", DUE_ECORRUPT },
        { "TIME", 1, "*2\r\n$1\r\nx\r\n$1\r\n0", DUE_ECORRUPT },
        { "TIME", 1, "*2\r\n$1\r\n1\r\n$1\r\nx", DUE_ECORRUPT },
        { "TIME", 1, "*1\r\n$10\r\n1700000000", DUE_ECORRUPT },
        { "TIME", 1, "*3\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1", DUE_ECORRUPT },
        { "TIME", 1, "$10\r\n1700000000", DUE_ECORRUPT },
        { "TIME", 1, "-ERR no time", DUE_ECORRUPT },
    };

    CHECK(answers);
}

/* The first GET is of the fence, the second of the owner. */
REDIS_PROXY_TEST(redis_survey, takes_a_fence_of_a_writer_and_who_that_was)
{
    static const struct answer answers[] = {
        { "GET", 1, "$-1", 0 },
        { "GET", 1, "$3\r\n7:a", 0 },
        { "GET", 1, "$47\r\n7:012345678901234567890123456789012345678901234", 0 },
        { "GET", 1, "$48\r\n7:0123456789012345678901234567890123456789012345", DUE_ECORRUPT },
        { "GET", 1, "$1\r\n7", DUE_ECORRUPT },
        { "GET", 1, "$3\r\nx:a", DUE_ECORRUPT },
        { "GET", 1, ":7", DUE_ECORRUPT },
        { "GET", 2, "$-1", 0 },
        { "GET", 2, "$4\r\nours", 0 }, /* and its lease says that it has just gone */
        { "PTTL", 1, "$1\r\n7", DUE_ECORRUPT },
        { "HGET", 1, "$1\r\nx", DUE_ECORRUPT },
        { "HGET", 1, "$1\r\n7", 0 },
        { "HKEYS", 1, "$1\r\n7", DUE_ECORRUPT },
        { "HKEYS", 1, "*2\r\n$1\r\nx\r\n$1\r\n7", 0 },
    };

    CHECK(answers);
}

#define META(format, least, mode, partitions) \
    "*8\r\n$1\r\n" format "\r\n$1\r\n" least "\r\n" mode "\r\n$1\r\n" partitions

REDIS_PROXY_TEST(redis_survey, takes_what_it_knows_to_be_a_queue)
{
    static const struct answer answers[] = {
        { "HMGET", 1, "*8\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1", 0 },
        { "HMGET", 1, "*7\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1", DUE_ECORRUPT },
        { "HMGET", 1, META("1", "1", "$5\r\nowner", "1") "\r\n$1\r\na\r\n$1\r\n7\r\n$-1\r\n$-1",
          0 },
        { "HMGET", 1, META("9", "1", "$5\r\nowner", "1") "\r\n$1\r\na\r\n$1\r\n7\r\n$-1\r\n$-1",
          0 },
        { "HMGET", 1, META("9", "2", "$5\r\nowner", "1") "\r\n$1\r\na\r\n$1\r\n7\r\n$-1\r\n$-1",
          DUE_EVERSION },
        { "HMGET", 1, META("1", "1", "$5\r\nshare", "1") "\r\n$1\r\na\r\n$1\r\n7\r\n$-1\r\n$-1",
          DUE_ENOTSUP },
        { "HMGET", 1, META("1", "1", "$5\r\nowner", "2") "\r\n$1\r\na\r\n$1\r\n7\r\n$-1\r\n$-1",
          DUE_ENOTSUP },
        { "HMGET", 1, META("x", "1", "$5\r\nowner", "1") "\r\n$1\r\na\r\n$1\r\n7\r\n$-1\r\n$-1",
          DUE_ECORRUPT },
        { "HMGET", 1, META("1", "x", "$5\r\nowner", "1") "\r\n$1\r\na\r\n$1\r\n7\r\n$-1\r\n$-1",
          DUE_ECORRUPT },
        { "HMGET", 1, META("1", "1", "$-1", "1") "\r\n$1\r\na\r\n$1\r\n7\r\n$-1\r\n$-1",
          DUE_ECORRUPT },
        { "HMGET", 1, META("1", "1", "$5\r\nowner", "x") "\r\n$1\r\na\r\n$1\r\n7\r\n$-1\r\n$-1",
          DUE_ECORRUPT },
        { "HMGET", 1, META("1", "1", "$5\r\nowner", "1") "\r\n$-1\r\n$1\r\n7\r\n$-1\r\n$-1",
          DUE_ECORRUPT },
        { "HMGET", 1, META("1", "1", "$5\r\nowner", "1") "\r\n$1\r\na\r\n$1\r\nx\r\n$-1\r\n$-1",
          DUE_ECORRUPT },
    };

    CHECK(answers);
}

/* An incarnation of 39 letters, and one that is too long. */
REDIS_PROXY_TEST(redis_survey, takes_the_life_of_the_keys_as_it_is_written)
{
    static const char life[] = "0123456789012345678901234567890123456789";

    for (int len = 39; len <= 40; len++) {
        char reply[160];
        struct answer a = { "HMGET", 1, reply, len == 39 ? 0 : DUE_ECORRUPT };
        int rc;

        snprintf(reply, sizeof reply,
                 META("1", "1", "$5\r\nowner", "1") "\r\n$%d\r\n%.*s\r\n$1\r\n7\r\n$-1\r\n$-1", len,
                 len, life);
        due_store *store = opened_with(&a, &rc);
        cr_expect_eq(rc, a.rc, "%d", len);
        cr_expect(rc != 0 || memcmp(inside(store)->incarnation, life, 39) == 0, "%s",
                  inside(store)->incarnation);
        finish(store);
    }
}

/* Where the last owner did not close, only a start of the server that it knew is no other one. */
REDIS_PROXY_TEST(redis_survey, is_unsure_where_a_start_of_the_server_is_another)
{
    static const struct {
        const char *text; /* of the start, as the last owner wrote it */
        uint32_t put_again;
    } starts[] = { { "$-1", 0 },
                   { "$0\r\n", 1 },
                   { "$1\r\n?", 1 },
                   { "$5\r\nother", 1 },
                   { "$48\r\n012345678901234567890123456789012345678901234567", 1 },
                   { ":7", 1 } };

    ASK("CONFIG", "SET", "appendonly", "yes");
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        char reply[160];
        struct answer a = { "HMGET", 1, reply, 0 };
        int rc;

        snprintf(reply, sizeof reply,
                 META("1", "1", "$5\r\nowner", "1") "\r\n$1\r\na\r\n$1\r\n7\r\n%s\r\n$-1",
                 starts[i].text);
        due_store *store = opened_with(&a, &rc);
        cr_expect_eq(rc, 0, "%s: %s", starts[i].text, error.text);
        cr_expect_eq(info.put_again != 0, starts[i].put_again != 0, "%s", starts[i].text);
        finish(store);
    }
}

/* Only the start that was written there; of what makes no sense there is none. */
REDIS_PROXY_TEST(redis_survey, knows_after_which_start_half_a_batch_may_land)
{
    char start[48] = "none";

    ASK("CONFIG", "SET", "appendonly", "yes");
    for (int i = 0; i < 6; i++) {
        static const char *const other[] = {
            "$-1", "$5\r\nother", "$0\r\n", ":7",
            "$48\r\n012345678901234567890123456789012345678901234567"
        };
        char reply[200];
        char ours[sizeof start + 24];
        struct answer a = { "HMGET", 1, reply, 0 };
        int rc;

        snprintf(ours, sizeof ours, "$%zu\r\n%s", strlen(start), start);
        snprintf(reply, sizeof reply,
                 META("1", "1", "$5\r\nowner", "1") "\r\n$1\r\na\r\n$1\r\n7\r\n$-1\r\n%s",
                 i < 5 ? other[i] : ours);
        due_store *store = opened_with(&a, &rc);
        cr_expect_eq(rc, 0, "%d: %s", i, error.text);
        cr_expect_eq(inside(store)->late, i == 5, "%d", i);
        cr_expect(!inside(store)->unsure && info.put_again == 0, "%d", i);
        cr_expect_eq(due__redis_probe(inside(store), false, soon(LONG_NS)), 0);
        cr_expect_eq(inside(store)->late, i == 5, "%d: it is the same start", i);
        cr_expect_not(inside(store)->unsure, "%d: it is the same start", i);
        snprintf(start, sizeof start, "%s", inside(store)->server);
        finish(store);
    }
}

/* ---- The number of a writer ------------------------------------------------------------------ */

static uint64_t writer_with(const char *name, const char *text, int rc)
{
    struct answer a = { name, 1, text, rc };
    int got;
    due_store *store = opened_with(&a, &got);

    cr_expect_eq(got, rc, "%s", error.text);
    finish(store);
    return info.writer;
}

REDIS_PROXY_TEST(redis_survey, numbers_a_writer_by_the_servers_clock_and_above_all_others)
{
    static const uint64_t high = UINT64_C(281474976710000);

    cr_expect_eq(writer_with("TIME", "*2\r\n$10\r\n1700000000\r\n$6\r\n123999", 0),
                 UINT64_C(1700000000123));
    cr_expect_eq(writer_with("HKEYS", "*2\r\n$15\r\n281474976710000\r\n$1\r\n7", 0), high + 1);
    cr_expect_eq(writer_with("HKEYS", "*2\r\n$1\r\n7\r\n$15\r\n281474976710000", 0), high + 1);
    cr_expect_eq(writer_with("GET", "$17\r\n281474976710000:a", 0), high + 1);
    cr_expect_eq(writer_with("HMGET",
                             META("1", "1", "$5\r\nowner",
                                  "1") "\r\n$1\r\na\r\n$15\r\n281474976710000\r\n$-1\r\n$-1",
                             0),
                 high + 1);
    cr_expect_eq(writer_with("HKEYS", "*1\r\n$15\r\n281474976710654", 0), WRITERS_END);
    writer_with("HKEYS", "*1\r\n$15\r\n281474976710655", DUE_ECORRUPT);
    cr_expect_not_null(strstr(error.text, "counter of writers"), "%s", error.text);
}

REDIS_TEST(redis_survey, numbers_a_writer_no_lower_than_the_queue_wants)
{
    due_store *store = make((due_redis_options){ 0 }, NULL);
    struct due_store_open how = {
        .name = "q", .until_ns = soon(LONG_NS), .log = keep_log, .writer_min = WRITERS_END - 9
    };

    cr_assert_eq(store->verbs->open(store, &how, &info, &error), 0, "%s", error.text);
    cr_expect_eq(info.writer, WRITERS_END - 9);
    finish(store);
}

/* ---- The lease ------------------------------------------------------------------------------- */

static long left_of_lease_ms(void)
{
    return strtol(ASK("PTTL", "due:{q}:owner") + 1, NULL, 10);
}

REDIS_TEST(redis_survey, has_the_lease_that_was_wanted_from_the_claim_and_from_each_renewal)
{
    const long lease_ms = 3600000;
    due_store *store = opened((due_redis_options){ .lease_ns = DUE_MS(lease_ms) });
    int64_t before = due__boot_ns();
    int64_t held;

    cr_expect(left_of_lease_ms() > lease_ms - 60000 && left_of_lease_ms() <= lease_ms);
    cr_expect_leq(info.held_ns, before + DUE_MS(lease_ms));
    cr_expect_gt(info.held_ns, before + DUE_MS(lease_ms) - DUE_S(60));
    ASK("PEXPIRE", "due:{q}:owner", "10000");
    cr_assert_eq(store->verbs->renew(store, &held, soon(LONG_NS)), 0);
    cr_expect(left_of_lease_ms() > lease_ms - 60000 && left_of_lease_ms() <= lease_ms);
    cr_expect_geq(held, before + DUE_MS(lease_ms));
    cr_expect_leq(held, due__boot_ns() + DUE_MS(lease_ms));
    ASK("DEL", "due:{q}:owner"); /* it has ended, and is taken anew */
    cr_assert_eq(store->verbs->renew(store, &held, soon(LONG_NS)), 0);
    cr_expect(left_of_lease_ms() > lease_ms - 60000 && left_of_lease_ms() <= lease_ms);
    finish(store);
}

/* Whoever was refused has not seen that the fence still is his. */
REDIS_PROXY_TEST(redis_survey, has_not_looked_where_it_was_refused)
{
    struct fault_cell refused = { .command = 1,
                                  .name = "PEXPIRE",
                                  .where = FAULT_SENT,
                                  .what = FAULT_REPLACE,
                                  .text = "-NOPERM no lease for you" };
    due_store *store = opened_by_proxy((due_redis_options){ 0 });
    int64_t held = 0;
    int64_t checked_ns = inside(store)->checked_ns;
    int64_t held_ns = inside(store)->held_ns;

    fault_proxy_plan(proxy, &refused, 1);
    due__link_owes(inside(store)->link);
    cr_expect_eq(store->verbs->renew(store, &held, soon(LONG_NS)), DUE_EACCES);
    cr_expect(due__link_is_owing(inside(store)->link));
    cr_expect(inside(store)->armed, "the guard is as it was");
    cr_expect_eq(inside(store)->checked_ns, checked_ns);
    cr_expect_eq(inside(store)->held_ns, held_ns);
    cr_expect_eq(held, 0);
    cr_expect_eq(store->verbs->renew(store, &held, soon(LONG_NS)), 0);
    cr_expect_gt(inside(store)->checked_ns, checked_ns);
    cr_expect_gt(held, held_ns);
    finish(store);
}

/* What stands there is not what it wrote, though its number and its fence are there: an older copy,
 * or another queue. */
REDIS_TEST(redis_survey, takes_another_life_of_the_keys_for_a_loss)
{
    due_store *store = opened((due_redis_options){ 0 });

    cr_assert_eq(commit_one(store, put(1, 5), 1), 0);
    ASK("HSET", "due:{q}:meta", "incarnation", "another");
    due__link_down(inside(store)->link);
    cr_expect_eq(store->verbs->ready(store, soon(LONG_NS)), DUE_ELOST);
    cr_expect_eq(store->verbs->ready(store, soon(LONG_NS)), 0);
    finish(store);
}

/* Of one of whom nobody knows: as soon as it is over, and not for as long as another might be. */
REDIS_PROXY_TEST(redis_survey, looks_again_at_once_where_a_lease_has_no_time_left)
{
    struct fault_cell cells[] = {
        { .command = 2,
          .name = "GET",
          .where = FAULT_SENT,
          .what = FAULT_REPLACE,
          .text = "$17\r\n1 h boot ns 12 34" },
        { .command = 1, .name = "PTTL", .where = FAULT_SENT, .what = FAULT_REPLACE, .text = ":0" }
    };
    int64_t began = due__mono_ns();

    fault_proxy_plan(proxy, cells, 2);
    due_store *store = opened_by_proxy((due_redis_options){ .lease_ns = DUE_S(60) });
    cr_expect_lt(due__mono_ns() - began, DUE_S(10));
    cr_expect_eq(fault_proxy_struck(proxy), 2u);
    finish(store);
}

/* In an older copy of the data somebody was the owner, and may live: his lease is waited for. */
REDIS_TEST(redis_survey, waits_for_an_older_owner_of_whom_nobody_knows)
{
    due_store *store = opened((due_redis_options){ 0 });

    cr_assert_eq(commit_one(store, put(1, 5), 1), 0);
    ASK("SET", "due:{q}:fence", "1:older");
    ASK("SET", "due:{q}:owner", "of another kind", "PX", "3600000");
    due__link_down(inside(store)->link);
    cr_expect_eq(store->verbs->ready(store, soon(DUE_MS(100))), DUE_EAGAIN);
    cr_expect_str_eq(ASK("GET", "due:{q}:fence"), "$7\r\n1:older\r\n");
    due_redis_free(store);
}

/* A lease that was renewed is a write; but of a batch that is under way only that batch tells. */
REDIS_TEST(redis_survey, takes_a_renewal_for_a_write_unless_a_batch_is_under_way)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct due__redis *s = inside(store);
    int64_t held;

    due__link_owes(s->link);
    s->sent = s->landed + 1;
    cr_assert_eq(store->verbs->renew(store, &held, soon(LONG_NS)), 0);
    cr_expect(due__link_is_owing(s->link));
    s->sent = s->landed;
    cr_assert_eq(store->verbs->renew(store, &held, soon(LONG_NS)), 0);
    cr_expect_not(due__link_is_owing(s->link));
    finish(store);
}

/* The second EXEC of an opening is that of its claim. */
REDIS_PROXY_TEST(redis_survey, takes_only_a_full_server_for_one)
{
    static const struct answer answers[] = {
        { "EXEC", 2, "-EXECABORT Transaction discarded because of: OOM command not allowed", 0 },
        { "EXEC", 2, "-EXECABORT Transaction discarded because of previous errors.", DUE_ECORRUPT },
    };

    CHECK(answers);
}

/* Who may not know what the server is does without; who is to come again does so. */
REDIS_PROXY_TEST(redis_survey, does_without_what_the_server_does_not_tell)
{
    static const struct answer answers[] = { { "INFO", 1, "-NOPERM no info for you", 0 },
                                             { "INFO", 1, "-WRONGTYPE it is none", 0 },
                                             { "INFO", 1, "-LOADING not yet", 0 } };

    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        int rc;
        due_store *store = opened_with(&answers[i], &rc);

        cr_expect_eq(rc, 0, "%s: %s", answers[i].text, error.text);
        cr_expect_eq(info.durability, i < 2 ? DUE_DURABLE_UNKNOWN : DUE_DURABLE_NONE, "%zu", i);
        cr_expect_eq(stats_of(store).connects, i < 2 ? 1u : 2u, "%zu", i);
        finish(store);
    }
}
