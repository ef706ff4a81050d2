/* test_share_convert.c - the Redis store: a shared queue becomes an owned one, and the other way,
 * wherever that is interrupted.
 */
#include "lab/matrix.h"
#include "lab/redis/share_convert_lab.h"

#include <pthread.h>

#define KILL_NS DUE_MS(40)

/* The process is gone, and its leases and beats have ended. */
static void die(due_store *store)
{
    due_redis_free(store);
    ASK("DEL", "due:{q}:owner");
}

/* In the order of priority just those that wait stand in `o`, in any other nobody. */
static void check_ranks(void)
{
    static const char script[] =
        "for _, topic in ipairs({'', 'mail'}) do "
        "  local t = redis.call('ZRANGE', 'due:{q}:t:' .. topic, 0, -1, 'WITHSCORES') "
        "  local o = 'due:{q}:o:' .. topic "
        "  if redis.call('ZCARD', o) ~= #t / 2 * ARGV[1] then return topic .. ' other' end "
        "  for i = 1, #t * ARGV[1], 2 do "
        "    if not redis.call('ZSCORE', o, string.sub(t[i], 1, 1) .. "
        "      string.format('%016.0f', t[i + 1]) .. string.sub(t[i], 2)) then return topic end "
        "  end "
        "end return 'fine'";

    cr_expect_str_eq(ASK("EVAL", script, "0", by_priority ? "1" : "0"), "$4\r\nfine\r\n");
}

/* Shared by one who holds much, and is killed: an attempt has begun of the first, if any. */
static void share_and_die(struct sharer *s)
{
    *s = joined();
    check_ranks();
    cr_assert_eq(claim(s, 200), 0);
    check_ranks();
    die(s->store);
}

SHARE_TEST(share_convert, leaves_ten_jobs_as_they_were)
{
    struct shelf was = fill_all(10);
    struct sharer s;

    for (int i = 0; i < 3; i++) {
        share_and_die(&s);
        cr_expect_geq(s.n_held, 6u);
        due_store *store = opened((due_redis_options){ 0 });
        nothing_else("owned again");
        struct shelf now = shelf_of(store);
        same(&now, &was, "there and back");
        finish(store);
    }
    free(was.line);
}

SHARE_TEST(share_convert, leaves_ten_thousand_jobs_as_they_were)
{
    struct shelf was = fill_all(10000);
    struct sharer s = joined();
    size_t n = 0;

    cr_expect_str_eq(ASK("HLEN", "due:{q}:jk"), ":1000\r\n");
    cr_expect_str_eq(ASK("HLEN", "due:{q}:b"), ":100\r\n");
    do {
        cr_assert_eq(claim(&s, 250), 0);
        n += s.n_held;
    } while (s.n_held > 0 || s.answer.more);
    cr_expect_eq(n, 7000u, "%zu", n);
    die(s.store);
    due_store *store = opened((due_redis_options){ 0 });
    nothing_else("owned again");
    struct shelf now = shelf_of(store);
    same(&now, &was, "there and back");
    finish(store);
    free(was.line);
}

/* What a holder had said counts: an attempt that had begun, one that had failed. */
SHARE_TEST(share_convert, keeps_what_was_said_of_jobs_that_were_out)
{
    free(fill_all(8).line); /* the third to fifth, and more, are due */
    struct sharer s = joined();

    cr_assert_eq(claim(&s, 3), 0);
    cr_assert_eq(s.n_held, 3u);
    due_change begun = of_held(&s, 0, DUE_CHANGE_BEGIN);
    begun.record = s.held[0].record;
    begun.record.topic = s.topic[0];
    begun.record.attempts = 1;
    cr_assert_eq(say(&s, begun), 0);
    uint64_t first = s.sequence[0];
    due_change failed = of_held(&s, 1, DUE_CHANGE_MOVE);
    uint64_t second = s.sequence[1];
    failed.record.deadline_ns = 7000;
    failed.record.until_ns = FAR_NS;
    failed.record.attempts = failed.record.failures = 4;
    cr_assert_eq(say(&s, failed), 0);
    due_id ids[] = { begun.record.id, failed.record.id };
    die(s.store);
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { .n = 0 };
    cr_assert_eq(store->verbs->find(store, ids[0], see, &seen, soon(LONG_NS)), 0);
    cr_expect(seen.record.attempts == 1 && seen.record.failures == 0, "of %d", (int)first);
    cr_expect_eq(seen.record.until_ns, begun.record.until_ns);
    cr_assert_eq(store->verbs->find(store, ids[1], see, &seen, soon(LONG_NS)), 0);
    cr_expect(seen.record.attempts == 4 && seen.record.failures == 4, "of %d", (int)second);
    cr_expect_eq(seen.record.until_ns, FAR_NS);
    free(seen.data);
    finish(store);
}

/* ---- Interrupted ----------------------------------------------------------------------------- */

/* From the command on nothing reaches the server any more, nor comes back. */
static void kill_at(uint64_t command, enum fault_where where)
{
    struct fault_cell cells[16] = { { .command = command, .where = where, .what = FAULT_RESET } };

    for (uint64_t i = 1; i < 16; i++)
        cells[i] =
            (struct fault_cell){ .command = i + 1, .where = FAULT_ACCEPT, .what = FAULT_RESET };
    fault_proxy_plan(proxy, cells, 16);
}

/* Open it, owned or shared, by way of the proxy, with so much patience. */
static due_store *open_by_proxy(bool shares, int64_t wait_ns, int *rc)
{
    struct sharer s = { .n_held = 0 };
    due_redis_options o = { .answer_ns = wait_ns,
                            .connect_ns = wait_ns,
                            .backoff_max_ns = KILL_NS };
    char url[128];

    snprintf(url, sizeof url, "unix://%s/proxy", server.dir);
    due_store *store = make(o, url);
    *rc = shares ? join_as(&s, store, wait_ns) : take(store, wait_ns, &info, &error);
    return store;
}

/* Put it into the other mode, so that an opening converts it. */
static void prepare_for(bool shares)
{
    struct sharer s;

    if (shares)
        finish(opened((due_redis_options){ 0 }));
    else
        share_and_die(&s);
}

static uint64_t commands_of(bool shares)
{
    int rc;

    prepare_for(shares);
    fault_proxy_plan(proxy, NULL, 0);
    due_store *store = open_by_proxy(shares, LONG_NS, &rc);
    cr_assert_eq(rc, 0, "%s", error.text);
    uint64_t n = fault_proxy_commands(proxy);
    die(store);
    return n;
}

/* An opening that is killed there, and then one in either mode. */
static void kill_and_open(bool shares, bool then, uint64_t command, enum fault_where where,
                          const struct shelf *was)
{
    char when[128];
    int rc;

    snprintf(when, sizeof when, "%s killed at command %d (%d), then %s",
             shares ? "sharing" : "owning", (int)command, (int)where, then ? "shared" : "owned");
    prepare_for(shares);
    kill_at(command, where);
    due_store *store = open_by_proxy(shares, KILL_NS, &rc);
    cr_expect(rc == 0 || rc == DUE_ESTORE || rc == DUE_EAGAIN || rc == DUE_EBUSY, "%s: %d", when,
              rc);
    if (rc == 0)
        cr_expect_str_eq(ASK("HGET", "due:{q}:meta", "mode"),
                         shares ? "$6\r\nshared\r\n" : "$5\r\nowner\r\n", "%s", when);
    die(store);
    fault_proxy_plan(proxy, NULL, 0);
    if (then) {
        struct sharer s;

        share_and_die(&s);
        cr_expect(s.n_held == 0 || s.n_held == 7, "%s: claimed %zu", when, s.n_held);
        cr_expect_str_eq(ASK("ZCOUNT", "due:{q}:t:", "-inf", "1e15"), ":0\r\n", "%s: all", when);
        cr_expect_str_eq(ASK("ZCOUNT", "due:{q}:t:mail", "-inf", "1e15"), ":0\r\n", "%s", when);
        cr_expect_str_eq(ASK("HLEN", "due:{q}:jk"), ":1\r\n", "%s", when);
    }
    store = opened((due_redis_options){ 0 });
    nothing_else(when);
    struct shelf now = shelf_of(store);
    same(&now, was, when);
    finish(store);
}

static void kill_everywhere(bool shares)
{
    struct shelf was = fill_all(9);
    uint64_t commands = commands_of(shares);
    unsigned cells = 0;

    cr_assert_gt(commands, 15u);
    for (uint64_t i = 1; i <= commands; i++)
        for (int where = FAULT_BEFORE; where <= FAULT_SENT; where += FAULT_SENT)
            for (int then = 0; then < 2; then++)
                if (cells++ % DUE_MATRIX_EVERY == 0)
                    kill_and_open(shares, then != 0, i, (enum fault_where)where, &was);
    free(was.line);
}

Test(share_convert, goes_on_wherever_who_owns_it_was_killed, .init = serve_by_proxy,
     .fini = stop_both, .timeout = 300)
{
    kill_everywhere(false);
}

Test(share_convert, goes_on_wherever_who_shares_it_was_killed, .init = serve_by_proxy,
     .fini = stop_both, .timeout = 300)
{
    kill_everywhere(true);
}

/* The same in the order of priority, which has more steps. */
Test(share_convert, goes_on_by_priority_wherever_who_owns_it_was_killed, .init = serve_by_proxy,
     .fini = stop_both, .timeout = 300)
{
    by_priority = true;
    kill_everywhere(false);
}

Test(share_convert, goes_on_by_priority_wherever_who_shares_it_was_killed, .init = serve_by_proxy,
     .fini = stop_both, .timeout = 300)
{
    by_priority = true;
    kill_everywhere(true);
}

/* The opener lives, and connects again. */
REDIS_PROXY_TEST(share_convert, goes_on_by_itself_wherever_the_connection_breaks)
{
    struct shelf was = fill_all(9);

    for (int shares = 0; shares < 2; shares++) {
        uint64_t commands = commands_of(shares != 0);

        for (uint64_t i = 1; i <= commands; i++)
            for (int where = FAULT_BEFORE; where <= FAULT_MID_REPLY; where++) {
                struct fault_cell cell = { .command = i,
                                           .where = (enum fault_where)where,
                                           .what = FAULT_RESET };
                int rc;

                prepare_for(shares != 0);
                fault_proxy_plan(proxy, &cell, 1);
                due_store *store = open_by_proxy(shares != 0, LONG_NS, &rc);
                cr_expect_eq(rc, 0, "mode %d, command %d (%d): %s", shares, (int)i, where,
                             error.text);
                die(store);
                store = opened((due_redis_options){ 0 });
                struct shelf now = shelf_of(store);
                same(&now, &was, "the connection broke");
                finish(store);
            }
    }
    free(was.line);
}

/* ---- Who may, and who may not ---------------------------------------------------------------- */

SHARE_TEST(share_convert, says_who_has_it)
{
    due_store *owner = opened((due_redis_options){ 0 });
    struct sharer s = { .n_held = 0 };
    due_store *store = make((due_redis_options){ 0 }, NULL);
    char us[64];

    snprintf(us, sizeof us, "process %d", (int)getpid());
    cr_expect_eq(join_as(&s, store, DUE_S(1)), DUE_EBUSY);
    cr_expect_not_null(strstr(error.text, us), "%s", error.text);
    finish(owner);
    cr_expect_eq(join_as(&s, store, LONG_NS), 0, "%s", error.text);
    due_store *late = make((due_redis_options){ 0 }, NULL);
    cr_expect_eq(take(late, DUE_S(1), &info, &error), DUE_EBUSY);
    cr_expect_not_null(strstr(error.text, "shared"), "%s", error.text);
    cr_expect_not_null(strstr(error.text, us), "%s", error.text);
    cr_expect_str_eq(ASK("HGET", "due:{q}:meta", "mode"), "$6\r\nshared\r\n");
    go(&s);
    cr_expect_eq(take(late, LONG_NS, &info, &error), 0, "%s", error.text);
    finish(late);
}

static void *leave_soon(void *arg)
{
    nap(DUE_MS(100));
    go(arg);
    return NULL;
}

SHARE_TEST(share_convert, waits_until_those_have_gone_who_share_it)
{
    struct sharer s = joined();
    due_store *store = make((due_redis_options){ 0 }, NULL);
    pthread_t thread;

    cr_assert_eq(pthread_create(&thread, NULL, leave_soon, &s), 0);
    cr_expect_eq(take(store, LONG_NS, &info, &error), 0, "%s", error.text);
    pthread_join(thread, NULL);
    finish(store);
}

/* It hung, and lives on. */
SHARE_TEST(share_convert, fences_who_shared_it_and_calls_again)
{
    struct sharer s = joined();
    due_change puts[] = { put(1, 5), put(2, 5), put(3, 5) };

    cr_assert_eq(exchange(&s, puts, 3, NULL), 0);
    cr_assert_eq(claim(&s, 2), 0);
    ASK("DEL", "due:{q}:owner");
    due_store *owner = opened((due_redis_options){ 0 });
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(claim(&s, 5), DUE_EFENCED);
        cr_expect_eq(s.n_held, 0u, "nothing is handed out");
        cr_expect_eq(say(&s, put(4, 5)), DUE_EFENCED);
        cr_expect_eq(s.verbs->beat(s.store, &(struct due_beat){ 0 }, soon(LONG_NS)), DUE_EFENCED);
    }
    go(&s);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":3\r\n");
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:t:"), ":3\r\n");
    finish(owner);
}

SHARE_TEST(share_convert, fences_who_owned_it_and_calls_again)
{
    due_store *owner = opened((due_redis_options){ 0 });
    struct sharer s = { .n_held = 0 };
    struct due_store_info theirs = info;

    cr_assert_eq(commit_one(owner, put(1, 5), 1), 0);
    ASK("DEL", "due:{q}:owner");
    s = joined();
    cr_expect_gt(info.writer, theirs.writer);
    cr_expect_eq(commit_one(owner, put(2, 5), 2), DUE_EFENCED);
    cr_expect_eq(claim(&s, 5), 0);
    cr_expect_eq(s.n_held, 1u);
    go(&s); /* nobody has it, and it is not the old owner's still */
    cr_expect_eq(commit_one(owner, put(3, 5), 2), DUE_EFENCED);
    due_redis_free(owner);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1\r\n");
}

/* The one that wakes up when nobody shares it any more must not take it back. */
SHARE_TEST(share_convert, fences_an_owner_who_hung_while_others_shared_it_and_left)
{
    due_store *owner = opened((due_redis_options){ 0 });

    cr_assert_eq(commit_one(owner, put(1, 5), 1), 0);
    ASK("DEL", "due:{q}:owner");
    struct sharer s = joined();
    cr_assert_eq(claim(&s, 1), 0);
    cr_assert_eq(say(&s, of_held(&s, 0, DUE_CHANGE_DROP)), 0);
    go(&s);
    due__link_down(inside(owner)->link);
    cr_expect_eq(owner->verbs->ready(owner, soon(LONG_NS)), DUE_EFENCED);
    cr_expect_eq(commit_one(owner, put(2, 5), 2), DUE_EFENCED);
    due_redis_free(owner);
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:j", "due:{q}:owner"), ":0\r\n");
}

/* ---- Refused --------------------------------------------------------------------------------- */

/* It must be read by an owner first, who writes all jobs again. */
SHARE_TEST(share_convert, leaves_a_queue_whose_log_may_be_torn_to_an_owner)
{
    due_store *owner = opened((due_redis_options){ 0 });
    struct sharer s = { .n_held = 0 };
    due_store *store = make((due_redis_options){ .assume = DUE_DURABLE_ALWAYS }, NULL);

    cr_assert_eq(commit_one(owner, put(1, 5), 1), 0);
    die(owner);
    ASK("HSET", "due:{q}:meta", "server", "another");
    ASK("CONFIG", "SET", "appendonly", "yes");
    cr_expect_eq(join_as(&s, store, LONG_NS), DUE_ENOTSUP, "%s", error.text);
    cr_expect_not_null(strstr(error.hint, "owned"), "%s", error.hint);
    due_redis_free(store);
    cr_expect_str_eq(ASK("HGET", "due:{q}:meta", "mode"), "$5\r\nowner\r\n");
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:t:"), ":1\r\n");
}

SHARE_TEST(share_convert, is_done_on_a_full_server_too)
{
    struct shelf was = fill_all(9);
    struct sharer s;

    ASK("CONFIG", "SET", "maxmemory", "1");
    share_and_die(&s);
    cr_expect_eq(s.n_held, 7u);
    due_store *store = opened((due_redis_options){ 0 });
    nothing_else("full");
    struct shelf now = shelf_of(store);
    same(&now, &was, "full");
    finish(store);
    free(was.line);
}

/* A torn script leaves a job in two places: it is in one of them. */
SHARE_TEST(share_convert, puts_a_job_that_stands_twice_where_it_waits)
{
    struct sharer s = joined();
    due_change puts[] = { put(1, 5), put(2, 6) };

    cr_assert_eq(exchange(&s, puts, 2, NULL), 0);
    cr_assert_eq(claim(&s, 2), 0);
    redisContext *c = redisConnectUnix(server.socket);
    freeReplyObject(redisCommand(c, "ZADD due:{q}:t: 77 %b", puts[0].record.id.byte, (size_t)14));
    freeReplyObject(redisCommand(c, "HDEL due:{q}:j %b", puts[1].record.id.byte, (size_t)14));
    redisFree(c);
    die(s.store);
    due_store *store = opened((due_redis_options){ 0 });
    cr_expect_str_eq(ASK("ZCOUNT", "due:{q}:t:", "77", "77"), ":1\r\n");
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:t:"), ":1\r\n");
    nothing_else("twice");
    finish(store);
}

/* Keys go on being what they were: of a live job, or kept. */
SHARE_TEST(share_convert, keeps_the_keys_of_jobs_and_of_those_that_are_gone)
{
    free(fill_all(4).line);
    struct sharer s = joined();
    due_change other = put(500, 5);

    other.record.key = "k3";
    other.record.key_len = 2;
    cr_expect_eq(say(&s, other), DUE_EEXIST);
    other.record.key = "gone";
    other.record.key_len = 4;
    cr_expect_eq(say(&s, other), DUE_EEXIST);
    struct due_claim c = { .need = 9, .lease_ns = DUE_S(9) };
    cr_assert_eq(exchange(&s, NULL, 0, &c), 0);
    for (size_t i = 0; i < s.n_held; i++)
        if (s.sequence[i] == 3)
            cr_expect_eq(say(&s, of_held(&s, i, DUE_CHANGE_DROP)), 0);
    other.record.key = "k3";
    other.record.key_len = 2;
    cr_expect_eq(say(&s, other), 0, "it is free with its job");
    go(&s);
}

/* Pauses and limits are stored, and claims go by them again; nor are tokens lower than before. */
SHARE_TEST(share_convert, keeps_pauses_limits_and_the_highest_stamp)
{
    struct sharer s = joined();
    due_change puts[] = { put(1, 5), put(2, 5), put(3, 5), put(4, 5) };
    due_change pause = {
        .kind = DUE_CHANGE_TOPIC, .paused = 1, .held_max = -1, .record = { .topic = "mail" }
    };
    due_change limit = {
        .kind = DUE_CHANGE_TOPIC, .paused = -1, .held_max = 1, .record = { .topic = "" }
    };

    puts[0].record.topic = puts[1].record.topic = "mail";
    cr_assert_eq(exchange(&s, puts, 4, NULL), 0);
    cr_assert(say(&s, pause) == 0 && say(&s, limit) == 0);
    ASK("HSET", "due:{q}:writers", "stamp", "4000000000000000");
    go(&s);
    finish(opened((due_redis_options){ 0 }));
    nothing_else("owned");
    s = joined();
    cr_expect_str_eq(ASK("ZRANGE", "due:{q}:h", "0", "-1"), "*1\r\n$0\r\n\r\n");
    cr_expect_eq(claim(&s, 4), 0);
    cr_expect_eq(s.n_held, 1u, "%zu", s.n_held);
    cr_expect_gt(s.answer.stamp, UINT64_C(4000000000000000));
    pause.paused = 0;
    cr_assert_eq(say(&s, pause), 0);
    cr_expect_eq(claim(&s, 4), 0);
    cr_expect_eq(s.n_held, 2u, "%zu", s.n_held);
    go(&s);
}

/* Each of its steps keeps the lease of who opens, however slow the server is. */
REDIS_PROXY_TEST(share_convert, is_not_taken_over_while_it_takes_long)
{
    struct shelf was = fill_all(9);
    struct sharer s;
    char url[128];

    share_and_die(&s);
    fault_proxy_plan(proxy, NULL, 0);
    fault_proxy_lag(proxy, 30);
    snprintf(url, sizeof url, "unix://%s/proxy", server.dir);
    due_store *store = make((due_redis_options){ .lease_ns = DUE_MS(300) }, url);
    int64_t began = due__mono_ns();
    cr_expect_eq(take(store, LONG_NS, &info, &error), 0, "%s", error.text);
    cr_expect_gt(due__mono_ns() - began, DUE_MS(300));
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:owner"), ":1\r\n");
    fault_proxy_lag(proxy, 0);
    struct shelf now = shelf_of(store);
    same(&now, &was, "slow");
    finish(store);
    free(was.line);
}
