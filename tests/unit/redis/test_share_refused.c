/* test_share_refused.c - the shared face of the Redis store: what a server refuses, or cannot do,
 * and answers that make no sense.
 */
#include "lab/redis/share_store_lab.h"

/* Its script cache is emptied at any moment. */
SHARE_TEST(share_refused, loads_the_scripts_again)
{
    struct sharer s = joined();

    for (int i = 0; i < 3; i++) {
        ASK("SCRIPT", "FLUSH");
        one_life(&s);
        ASK("SCRIPT", "FLUSH");
        cr_expect_eq(s.verbs->beat(s.store, &(struct due_beat){ 0 }, soon(LONG_NS)), 0);
    }
    ASK("SCRIPT", "FLUSH");
    go(&s);
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:p"), ":0\r\n", "it has left");
}

/* What passes by is waited for. */
REDIS_PROXY_TEST(share_refused, goes_on_when_the_server_can_again)
{
    static const char *const says[] = {
        "-LOADING Redis is loading the dataset in memory",
        "-BUSY Redis is busy running a script",
        "-READONLY You can't write against a read only replica.",
        "-MISCONF Redis is configured to save RDB snapshots",
        "-NOREPLICAS Not enough good replicas to write.",
        "-NOSCRIPT No matching script. Please use EVAL.",
        "-ERR Error running script (call to f_1): @user_script:4: -READONLY You can't write"
    };
    struct sharer s = joined_by_proxy();

    for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
        for (uint64_t at = 1; at <= 5; at++) {
            struct fault_cell cell = { .command = at,
                                       .name = "EVALSHA",
                                       .where = FAULT_BEFORE,
                                       .what = FAULT_REPLACE,
                                       .text = says[i] };
            fault_proxy_plan(proxy, &cell, 1);
            one_life(&s);
            cr_expect_eq(fault_proxy_struck(proxy), 1u, "%s", says[i]);
        }
    }
    go(&s);
}

SHARE_TEST(share_refused, puts_nothing_into_a_full_server_and_works_it_off)
{
    struct sharer s = joined();
    due_change puts[] = { put(1, 5), put(2, 5) };
    due_change more = put(3, 5);

    cr_assert_eq(exchange(&s, puts, 2, NULL), 0);
    ASK("CONFIG", "SET", "maxmemory", "1");
    cr_expect_eq(say(&s, more), DUE_ENOSPC);
    cr_expect_eq(claim(&s, 2), 0);
    cr_assert_eq(s.n_held, 2u);
    due_change ends[] = { of_held(&s, 0, DUE_CHANGE_DROP), of_held(&s, 1, DUE_CHANGE_MOVE) };
    cr_expect_eq(exchange(&s, ends, 2, NULL), 0);
    cr_expect_eq(s.verbs->beat(s.store, &(struct due_beat){ 0 }, soon(LONG_NS)), 0);
    cr_expect_eq(say(&s, drop(2, 5)) + say(&s, drop(1, 5)), DUE_ENOENT, "one of them was left");
    ASK("CONFIG", "SET", "maxmemory", "0");
    cr_expect_eq(say(&s, more), 0);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1\r\n");
    go(&s);
}

/* It was in doubt before the server was full: what may still arrive must not land, or be known to
 * have landed. */
REDIS_PROXY_TEST(share_refused, uses_a_number_up_that_was_in_doubt_when_the_server_was_full)
{
    struct sharer s = joined_by_proxy();
    struct fault_cell lost = { .command = 1, .where = FAULT_BEFORE, .what = FAULT_STALL };
    due_change c = put(1, 5);
    due_change next = put(2, 5);

    fault_proxy_plan(proxy, &lost, 1);
    cr_expect_eq(call_once(&s, &c, 1, NULL, DUE_MS(20)), DUE_EINDOUBT);
    cr_assert(fault_proxy_wait(proxy, 1, 5000));
    due__link_down(inside(s.store)->link);
    ASK("CONFIG", "SET", "maxmemory", "1");
    cr_expect_eq(say(&s, c), DUE_ENOSPC);
    ASK("CONFIG", "SET", "maxmemory", "0");
    cr_assert(fault_proxy_settle(proxy, 5000));
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":0\r\n", "it came late, and did nothing");
    cr_expect_eq(say(&s, next), 0);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1\r\n");
    struct fault_cell landed = { .command = 1, .where = FAULT_SENT, .what = FAULT_RESET };
    struct fault_cell full = { .command = 2,
                               .name = "EVALSHA",
                               .where = FAULT_BEFORE,
                               .what = FAULT_REPLACE,
                               .text = "-OOM command not allowed" };
    fault_proxy_plan(proxy, (struct fault_cell[]){ landed, full }, 2);
    cr_expect_eq(say(&s, c), 0, "it had landed");
    cr_expect_eq(fault_proxy_struck(proxy), 2u);
    go(&s);
}

/* An answer of work with one group of jobs that were claimed, and what a group may have. */
#define CLAIMED(count, group) \
    "*9\r\n:9\r\n:9\r\n$0\r\n\r\n:9\r\n:0\r\n:0\r\n:0\r\n:" count "\r\n" group
#define ID     "$14\r\n01234567890123\r\n"
#define NONE   "$0\r\n\r\n"
#define A_TEXT "*1\r\n$1\r\nr\r\n"

/* Nothing of it is an error that is said to nobody, nor a crash. */
REDIS_PROXY_TEST(share_refused, believes_no_answer_that_makes_no_sense)
{
    static const char *const says[] = {
        "+OK",
        ":1",
        "$-1",
        "*0",
        "*1\r\n:1",
        "*2\r\n:1\r\n:2",
        "*1\r\n$1\r\nZ",
        "*4\r\n:9\r\n:9\r\n$1\r\nz\r\n:0",
        "*4\r\n:9\r\n:9\r\n$2\r\ndd\r\n:0",
        "*4\r\n:-9\r\n:9\r\n$0\r\n\r\n:0",
        "*4\r\n:9\r\n:9\r\n:5\r\n:0",
        "*8\r\n:9\r\n:9\r\n$0\r\n\r\n:9\r\n:0\r\n:0\r\n:0\r\n:7",
        "*8\r\n:9\r\n:9\r\n$0\r\n\r\n:9\r\n:-2\r\n:0\r\n:0\r\n:0",
        "*8\r\n:9\r\n:9\r\n$1\r\ns\r\n:9\r\n:0\r\n:0\r\n:0\r\n:0",
        "*8\r\n:9\r\n:9\r\n$0\r\n\r\n:9\r\n:0\r\n:0\r\n:0\r\n:4611686018427387904",
        CLAIMED("1", "*5\r\n:99\r\n" ID NONE A_TEXT NONE),
        CLAIMED("1", "*5\r\n:0\r\n" ID NONE A_TEXT NONE),
        CLAIMED("1", "*5\r\n$1\r\n1\r\n" ID NONE A_TEXT NONE),
        CLAIMED("1", "*4\r\n:1\r\n" ID NONE A_TEXT),
        CLAIMED("1", "*5\r\n:1\r\n$3\r\n012\r\n" NONE A_TEXT NONE),
        CLAIMED("1", "*5\r\n:1\r\n" NONE NONE A_TEXT NONE),
        CLAIMED("1", "*5\r\n:1\r\n:7\r\n" NONE A_TEXT NONE),
        CLAIMED("1", "*5\r\n:1\r\n" ID NONE NONE NONE),
        CLAIMED("1", "*5\r\n:1\r\n" ID A_TEXT A_TEXT NONE),
        CLAIMED("1", "*5\r\n:1\r\n" ID "*1\r\n$-1\r\n" A_TEXT NONE),
        CLAIMED("1", "*5\r\n:1\r\n" ID "*2\r\n$1\r\n5\r\n$1\r\n5\r\n" A_TEXT NONE),
        CLAIMED("1", "*5\r\n:1\r\n" ID "$1\r\n5\r\n" A_TEXT NONE),
        CLAIMED("1", "*5\r\n:1\r\n" ID NONE "*2\r\n$1\r\nr\r\n$1\r\nr\r\n" NONE),
        CLAIMED("1", "*5\r\n:1\r\n" ID NONE A_TEXT "*1\r\n:5\r\n"),
        CLAIMED("1", "*5\r\n:1\r\n" ID NONE A_TEXT "*0\r\n"),
        CLAIMED("1", "*5\r\n:1\r\n" ID NONE "*1\r\n:5\r\n" NONE),
        CLAIMED("1", "*5\r\n:1\r\n" ID NONE "*1\r\n*0\r\n" NONE),
        CLAIMED("1", "*5\r\n:1\r\n" ID NONE A_TEXT ":5\r\n"),
        CLAIMED("2", "*5\r\n:1\r\n" ID NONE A_TEXT NONE),
        CLAIMED("0", "*5\r\n:1\r\n" ID NONE A_TEXT NONE),
        CLAIMED("1", "$1\r\na\r\n"),
    };
    struct sharer s = joined_by_proxy();
    due_change c = put(1, 5);

    cr_assert_eq(say(&s, c), 0);
    for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
        struct fault_cell cell = { .command = 1,
                                   .name = "EVALSHA",
                                   .where = FAULT_SENT,
                                   .what = FAULT_REPLACE,
                                   .text = says[i] };
        fault_proxy_plan(proxy, &cell, 1);
        cr_expect_eq(say(&s, drop(77, 0)), DUE_ENOENT, "edit %zu", i);
        fault_proxy_plan(proxy, &cell, 1);
        cr_expect_eq(claim(&s, 1), 0, "work %zu", i);
        cr_expect_eq(s.n_held, 1u, "%zu", i);
        cr_expect_eq(say(&s, of_held(&s, 0, DUE_CHANGE_RELEASE)), 0);
    }
    go(&s);
}

/* Redis before 7 with lua-replicate-commands off, as it says it: of a join, of the first step by
 * which an owner's queue becomes shared, and if it was switched off later. */
REDIS_PROXY_TEST(share_refused, by_a_server_whose_scripts_must_not_write_what_is_said)
{
    static const char says[] =
        "-ERR Error running script (call to f_bfad): @user_script:1: @user_script: 1: Write "
        "commands not allowed after non deterministic commands. Call redis.replicate_commands() "
        "at the start of your script.";
    struct fault_cell cell = {
        .command = 1, .name = "EVALSHA", .where = FAULT_BEFORE, .what = FAULT_REPLACE, .text = says
    };
    char url[128];
    struct sharer s;

    snprintf(url, sizeof url, "unix://%s/proxy", server.dir);
    fault_proxy_plan(proxy, &cell, 1);
    cr_expect_eq(join_as(&s, make((due_redis_options){ 0 }, url), LONG_NS), DUE_ENOTSUP);
    cr_expect_not_null(strstr(error.hint, "lua-replicate-commands"), "%s", error.hint);
    due_redis_free(s.store);
    finish(opened((due_redis_options){ 0 }));
    cell.name = "EVAL";
    fault_proxy_plan(proxy, &cell, 1);
    cr_expect_eq(join_as(&s, make((due_redis_options){ 0 }, url), LONG_NS), DUE_ENOTSUP);
    cr_expect_eq(fault_proxy_struck(proxy), 1u);
    cr_expect_not_null(strstr(ASK("HGETALL", "due:{q}:meta"), "owner"));
    due_redis_free(s.store);
    s = joined_by_proxy();
    cell.name = "EVALSHA";
    fault_proxy_plan(proxy, &cell, 1);
    cr_expect_eq(say(&s, put(1, 5)), DUE_ENOTSUP);
    fault_proxy_plan(proxy, &cell, 1);
    cr_expect_eq(s.verbs->beat(s.store, &(struct due_beat){ 0 }, soon(LONG_NS)), DUE_ENOTSUP);
    cr_expect_eq(say(&s, put(1, 5)), 0);
    go(&s);
}

/* It could not be told in microseconds: a job would be due again at once, or never. */
SHARE_TEST(share_refused, a_lease_that_is_longer_than_the_longest_is_asked_of_nobody)
{
    static const int64_t leases[] = { DUE_CLAIM_LEASE_MAX + 1, DUE_FOREVER - 999, DUE_FOREVER };
    struct due_claim c = { .need = 1, .lease_ns = DUE_CLAIM_LEASE_MAX };
    struct sharer s = joined();

    cr_assert_eq(say(&s, put(1, 5)), 0);
    for (size_t i = 0; i < 3; i++) {
        struct due_claim longer = { .need = 1, .lease_ns = leases[i] };

        cr_expect_eq(call_once(&s, NULL, 0, &longer, LONG_NS), DUE_EINVAL, "%zu", i);
    }
    cr_assert_eq(exchange(&s, NULL, 0, &c), 0);
    cr_assert_eq(s.n_held, 1u);
    due_change more = of_held(&s, 0, DUE_CHANGE_EXTEND);
    for (size_t i = 0; i < 3; i++) {
        more.lease_ns = leases[i];
        cr_expect_eq(say(&s, more), DUE_EINVAL, "%zu", i);
    }
    more.lease_ns = DUE_CLAIM_LEASE_MAX;
    cr_expect_eq(say(&s, more), 0);
    cr_expect_eq(say(&s, of_held(&s, 0, DUE_CHANGE_DROP)), 0);
    go(&s);
}

/* Each key in turn holds something else: an error, and all is well when it is gone. */
SHARE_TEST(share_refused, says_so_of_a_key_that_holds_something_else)
{
    static const char *const keys[] = {
        "j", "a", "b", "h", "w", "c", "topics", "t:", "l:", "dead"
    };

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char key[32];
        due_change bury;

        ASK("FLUSHALL");
        struct sharer s = joined();
        snprintf(key, sizeof key, "due:{q}:%s", keys[i]);
        ASK("SET", key, "something else");
        int rc = say(&s, put(1, 5));
        rc = rc != 0 ? rc : await(&s, 1);
        bury = s.n_held > 0 ? of_held(&s, 0, DUE_CHANGE_BURY) : drop(1, 5);
        bury.record.cause = bury.kind == DUE_CHANGE_BURY ? DUE_CAUSE_BURIED : 0;
        rc = rc != 0 ? rc : say(&s, bury);
        rc = rc != 0 ? rc : await(&s, 1);
        rc = rc != 0 ? rc : say(&s, put(2, 5));
        rc = rc != 0 ? rc : say(&s, drop(2, 5));
        cr_expect_eq(rc, DUE_ECORRUPT, "%s: %s", keys[i], due_error_name(rc));
        ASK("DEL", key);
        cr_expect_eq(say(&s, put(3, 5)), 0, "%s", keys[i]);
        go(&s);
    }
}

SHARE_TEST(share_refused, tells_no_secret_to_whoever_may_not)
{
    char url[160];
    struct sharer s = { .n_held = 0 };

    ASK("ACL", "SETUSER", "due", "on", ">canary", "~due:{q}:*", "&due:{q}:*", "+@all", "-evalsha");
    snprintf(url, sizeof url, "unix://due:canary@%s", server.socket);
    due_store *store = make((due_redis_options){ 0 }, url);
    cr_expect_eq(join_as(&s, store, LONG_NS), DUE_EACCES);
    cr_expect_null(strstr(error.text, "canary"));
    cr_expect_not_null(strstr(error.text, "evalsha"), "%s", error.text);
    due_redis_free(store);
}

/* The user may not load a script any more when it has connected anew: no reason to try on. */
SHARE_TEST(share_refused, says_so_when_the_scripts_cannot_be_loaded_again)
{
    char url[160];

    ASK("ACL", "SETUSER", "due", "on", ">canary", "~due:{q}:*", "&due:{q}:*", "+@all");
    snprintf(url, sizeof url, "unix://due:canary@%s", server.socket);
    struct sharer s = joined_at(url, (due_redis_options){ 0 });
    ASK("ACL", "SETUSER", "due", "-script");
    due__link_down(inside(s.store)->link);
    due_change c = put(1, 5);
    cr_expect_eq(call_once(&s, &c, 1, NULL, LONG_NS), DUE_EACCES);
    ASK("ACL", "SETUSER", "due", "+script");
    cr_expect_eq(say(&s, c), 0);
    go(&s);
}

/* Then nothing is put, and what is there is still seen and worked off. */
SHARE_TEST(share_refused, puts_nothing_where_less_is_durable_than_is_required)
{
    ASK("CONFIG", "SET", "appendonly", "yes");
    ASK("CONFIG", "SET", "save", "");
    struct sharer s = joined_at(NULL, (due_redis_options){ .require = DUE_DURABLE_EVERYSEC });
    struct seen seen = { .n = 0 };
    due_change c = put(1, 5);

    cr_expect_eq(say(&s, c), 0);
    ASK("CONFIG", "SET", "appendonly", "no");
    inside(s.store)->probed_ns = 0;
    cr_expect_eq(s.verbs->beat(s.store, &(struct due_beat){ 0 }, soon(LONG_NS)), 0);
    cr_expect_eq(say(&s, put(2, 5)), DUE_EDURABILITY);
    cr_expect_eq(s.store->verbs->find(s.store, c.record.id, see, &seen, soon(LONG_NS)), 0);
    cr_expect_eq(s.verbs->beat(s.store, &(struct due_beat){ 0 }, soon(LONG_NS)), 0);
    s.verbs->leave(s.store, soon(LONG_NS));
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:p"), ":0\r\n", "it has left");
    due_redis_free(s.store);
}
