/* test_share_convert_late.c - the Redis store: conversions that take long, of which a step comes
 * late, that several begin at once, or in the middle of which the server falls back.
 */
#include "lab/redis/share_convert_lab.h"

#include <pthread.h>

static const char *by_proxy(void)
{
    static char url[128];

    snprintf(url, sizeof url, "unix://%s/proxy", server.dir);
    return url;
}

/* The process is gone, and its leases and beats have ended. */
static void die(due_store *store)
{
    due_redis_free(store);
    ASK("DEL", "due:{q}:owner");
}

static due_change mail(uint64_t sequence)
{
    due_change c = put(sequence, 5);

    c.record.topic = "mail";
    return c;
}

/* Three jobs are out, and who holds them is killed. */
static void leave_three_out(void)
{
    struct sharer s = joined();
    due_change puts[] = { mail(1), mail(2), mail(3) };

    cr_assert_eq(exchange(&s, puts, 3, NULL), 0);
    cr_assert_eq(claim(&s, 3), 0);
    cr_assert_eq(s.n_held, 3u);
    die(s.store);
}

/* ---- While an opening is under way ----------------------------------------------------------- */

struct opening {
    due_store *store;
    bool shares;
    int64_t wait_ns;
    int rc;
    due_error error;
    struct due_store_info info;
    _Atomic bool over;
    pthread_t thread;
};

static void *open_it(void *arg)
{
    struct opening *o = arg;
    struct due_store_open how = { .name = "q", .until_ns = soon(o->wait_ns) };

    o->rc = o->shares ? o->store->verbs->shared->join(o->store, &how, &o->info, &o->error)
                      : o->store->verbs->open(o->store, &how, &o->info, &o->error);
    o->over = true;
    return NULL;
}

static void begin_opening(struct opening *o, bool shares, const char *url, due_redis_options how)
{
    *o = (struct opening){ .store = make(how, url), .shares = shares, .wait_ns = LONG_NS };
    cr_assert_eq(pthread_create(&o->thread, NULL, open_it, o), 0);
}

static void end_opening(struct opening *o, const char *when)
{
    pthread_join(o->thread, NULL);
    cr_expect_eq(o->rc, 0, "%s: %s", when, o->error.text);
}

/* ---- Fallen back ----------------------------------------------------------------------------- */

/* What a replica may have that has taken over: what was folded is out, what was indexed is not. */
static const char back_text[] =
    "local mode = redis.call('HGET', KEYS[1], 'mode') "
    "if mode == 'sharing' then redis.call('DEL', KEYS[4], KEYS[5]) return 1 end "
    "if mode == 'shared' or string.sub(redis.call('GET', KEYS[6]), 1, 2) == 's:' then return 0 end "
    "redis.call('HSET', KEYS[1], 'mode', 'owning') "
    "for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do "
    "redis.call('ZADD', KEYS[3], 4e15, id) redis.call('ZREM', KEYS[2], id) end return 1";

static bool fall_back(void)
{
    return strcmp(ASK("EVAL", back_text, "6", "due:{q}:meta", "due:{q}:t:mail", "due:{q}:l:mail",
                      "due:{q}:jk", "due:{q}:h", "due:{q}:fence"),
                  ":1\r\n") == 0;
}

/* Opened by the proxy; the connection breaks at the command, and the next one leads to a server
 * that has fallen back.  False: there are not so many commands. */
static bool open_and_fall_back(bool shares, uint64_t command, unsigned *fallen)
{
    struct fault_cell cells[] = {
        { .command = command, .where = FAULT_BEFORE, .what = FAULT_RESET },
        { .command = 2, .where = FAULT_ACCEPT, .what = FAULT_STALL },
    };
    struct opening o;
    char when[64];

    snprintf(when, sizeof when, "mode %d, command %d", shares, (int)command);
    fault_proxy_plan(proxy, cells, 2);
    begin_opening(&o, shares, by_proxy(), (due_redis_options){ 0 });
    bool struck = fault_proxy_wait(proxy, 2, 300);
    if (struck)
        *fallen += fall_back();
    fault_proxy_go_on(proxy);
    end_opening(&o, when);
    fault_proxy_plan(proxy, NULL, 0);
    die(o.store);
    return struck;
}

Test(share_convert_late, begins_anew_on_a_server_that_has_fallen_back_while_it_is_owned,
     .init = serve_by_proxy, .fini = stop_both, .timeout = 100)
{
    unsigned fallen = 0;
    bool more = true;

    for (uint64_t i = 8; more; i++) {
        leave_three_out();
        more = open_and_fall_back(false, i, &fallen);
        cr_expect_str_eq(ASK("ZCARD", "due:{q}:t:mail"), ":3\r\n", "command %d", (int)i);
        nothing_else("fallen back");
        ASK("FLUSHALL");
    }
    cr_expect_gt(fallen, 5u, "%u", fallen);
}

Test(share_convert_late, begins_anew_on_a_server_that_has_fallen_back_while_it_is_shared,
     .init = serve_by_proxy, .fini = stop_both, .timeout = 100)
{
    unsigned fallen = 0;

    free(fill_all(9).line);
    for (uint64_t i = 8; i < 40; i++) {
        (void)open_and_fall_back(true, i, &fallen);
        cr_expect_str_eq(ASK("HLEN", "due:{q}:jk"), ":1\r\n", "command %d", (int)i);
        cr_expect_str_eq(ASK("ZCARD", "due:{q}:h"), ":2\r\n", "command %d", (int)i);
        finish(opened((due_redis_options){ 0 }));
    }
    cr_expect_gt(fallen, 5u, "%u", fallen);
}

/* It was owned for long, and then the server is one from before. */
SHARE_TEST(share_convert_late, an_owner_makes_it_his_again_on_a_server_that_has_fallen_back)
{
    leave_three_out();
    due_store *owner = opened((due_redis_options){ 0 });

    free(shelf_of(owner).line);
    cr_expect(fall_back());
    due__link_down(inside(owner)->link);
    cr_expect_eq(owner->verbs->ready(owner, soon(LONG_NS)), DUE_ELOST);
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:t:mail"), ":3\r\n");
    nothing_else("fallen back");
    cr_expect_eq(owner->verbs->ready(owner, soon(LONG_NS)), 0);
    struct shelf now = shelf_of(owner);
    cr_expect_eq(now.n, 3u);
    free(now.line);
    finish(owner);
}

/* Nothing names its topic any more: `topics` was lost, and it is paused, so it has no head. */
SHARE_TEST(share_convert_late, finds_a_job_that_was_out_in_a_topic_that_nothing_names)
{
    struct sharer s = joined();
    due_change puts[] = { mail(1), mail(2), put(3, 5) };
    due_change pause = {
        .kind = DUE_CHANGE_TOPIC, .paused = 1, .held_max = -1, .record = { .topic = "mail" }
    };

    cr_assert_eq(exchange(&s, puts, 3, NULL), 0);
    cr_assert_eq(claim(&s, 3), 0);
    cr_assert_eq(s.n_held, 3u);
    due_change failed = of_held(&s, 0, DUE_CHANGE_MOVE);
    for (size_t i = 0; i < 3; i++) /* it has an entry, and is out once more */
        if (s.sequence[i] == 1)
            failed = of_held(&s, i, DUE_CHANGE_BEGIN), failed.record = s.held[i].record;
    failed.record.topic = "mail";
    failed.record.attempts = 4;
    cr_assert_eq(say(&s, failed), 0);
    cr_assert_eq(say(&s, pause), 0);
    die(s.store);
    ASK("DEL", "due:{q}:topics");
    due_store *store = opened((due_redis_options){ 0 });
    struct shelf now = shelf_of(store);
    cr_expect_eq(now.n, 3u, "%zu", now.n);
    cr_expect(now.n > 0 && strstr(now.line[0], " a4 ") != NULL, "%s", now.line[0]);
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:q", "due:{q}:l:mail", "due:{q}:l:"), ":0\r\n");
    cr_expect_str_eq(ASK("ZCOUNT", "due:{q}:t:mail", "0", "1"), ":2\r\n");
    cr_expect_str_eq(ASK("HEXISTS", "due:{q}:topics", "mail"), ":1\r\n");
    free(now.line);
    finish(store);
}

/* ---- It takes long --------------------------------------------------------------------------- */

/* How often it was nobody's while it became shared. */
static unsigned count_lapses(struct opening *o)
{
    static const char look[] = "return redis.call('HGET', KEYS[1], 'mode') == 'sharing' and "
                               "redis.call('EXISTS', KEYS[2]) == 0 and 1 or 0";
    unsigned n = 0;

    while (!o->over) {
        n += strcmp(ASK("EVAL", look, "2", "due:{q}:meta", "due:{q}:owner"), ":1\r\n") == 0;
        nap(DUE_MS(5));
    }
    pthread_join(o->thread, NULL);
    cr_expect_eq(o->rc, 0, "%s", o->error.text);
    return n;
}

/* Plain jobs, of which nothing is written down. */
REDIS_PROXY_TEST(share_convert_late, keeps_the_lease_while_jobs_are_read)
{
    due_store *owner = opened((due_redis_options){ 0 });
    struct opening o;

    fill(owner, 10000, 5, 1000, 1);
    finish(owner);
    fault_proxy_plan(proxy, NULL, 0);
    fault_proxy_lag(proxy, 20);
    int64_t began = due__mono_ns();
    begin_opening(&o, true, by_proxy(), (due_redis_options){ .lease_ns = DUE_MS(600) });
    cr_expect_eq(count_lapses(&o), 0u);
    cr_expect_gt(due__mono_ns() - began, DUE_MS(800), "it took too short to see anything");
    fault_proxy_lag(proxy, 0);
    die(o.store);
}

/* What is begun is brought to its end, and then counts. */
REDIS_PROXY_TEST(share_convert_late, may_take_longer_than_the_opening_has)
{
    due_store *owner = opened((due_redis_options){ 0 });
    struct sharer s = { .n_held = 0 };

    fill(owner, 10000, 5, 1000, 1);
    finish(owner);
    fault_proxy_plan(proxy, NULL, 0);
    fault_proxy_lag(proxy, 40);
    int64_t began = due__mono_ns();
    cr_expect_eq(join_as(&s, make((due_redis_options){ 0 }, by_proxy()), DUE_MS(700)), 0, "%s",
                 error.text);
    cr_expect_gt(due__mono_ns() - began, DUE_MS(700), "it took too short to see anything");
    fault_proxy_lag(proxy, 0);
    cr_expect_eq(claim(&s, 9), 0);
    cr_expect_eq(s.n_held, 9u);
    go(&s);
}

/* They come at once, each with less time than a lease. */
REDIS_PROXY_TEST(share_convert_late, lets_several_share_it_that_come_at_once)
{
    due_store *owner = opened((due_redis_options){ 0 });
    struct opening o[6];

    fill(owner, 3000, 5, 1000, 1);
    finish(owner);
    fault_proxy_plan(proxy, NULL, 0);
    fault_proxy_lag(proxy, 10);
    int64_t began = due__mono_ns();
    for (size_t i = 0; i < 6; i++) {
        o[i] = (struct opening){ .store = make((due_redis_options){ .lease_ns = DUE_S(200) },
                                               i % 2 == 0 ? by_proxy() : NULL),
                                 .shares = true,
                                 .wait_ns = DUE_S(100) };
        cr_assert_eq(pthread_create(&o[i].thread, NULL, open_it, &o[i]), 0);
    }
    for (size_t i = 0; i < 6; i++)
        end_opening(&o[i], "at once");
    cr_expect_lt(due__mono_ns() - began, DUE_S(40), "one has awaited the lease of another");
    fault_proxy_lag(proxy, 0);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:p"), ":6\r\n");
    for (size_t i = 0; i < 6; i++) {
        o[i].store->verbs->shared->leave(o[i].store, soon(LONG_NS));
        due_redis_free(o[i].store);
    }
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* Before each step in turn the lease ends, and one comes late that was made for another. */
REDIS_PROXY_TEST(share_convert_late, makes_up_for_a_lease_that_ended_and_a_step_that_comes_late)
{
    bool more = true;

    for (uint64_t i = 1; more; i++) {
        struct fault_cell cell = {
            .command = i, .name = "EVAL", .where = FAULT_BEFORE, .what = FAULT_STALL
        };
        struct opening o;

        leave_three_out();
        fault_proxy_plan(proxy, &cell, 1);
        begin_opening(&o, false, by_proxy(), (due_redis_options){ .lease_ns = DUE_S(60) });
        more = fault_proxy_wait(proxy, 1, 300);
        ASK("DEL", more ? "due:{q}:owner" : "nothing");
        if (more)
            ASK("EVAL", "redis.call('HSET', KEYS[1], 'x', 'y') redis.call('HSET', KEYS[2], 'x', 1)",
                "2", "due:{q}:jk", "due:{q}:b");
        fault_proxy_go_on(proxy);
        end_opening(&o, "late");
        cr_expect_str_eq(ASK("EXISTS", "due:{q}:owner"), ":1\r\n", "step %d", (int)i);
        nothing_else("late");
        finish(o.store);
        ASK("FLUSHALL");
        cr_expect(more || i > 4);
    }
}

/* Of an opening that was given up: its fence still is the last. */
SHARE_TEST(share_convert_late, refuses_a_step_that_is_not_of_its_mode)
{
    static const struct due__script *const steps[] = { &due__script_fold,  &due__script_clear,
                                                       &due__script_own,   &due__script_index,
                                                       &due__script_heads, &due__script_share };
    due_store *owner = opened((due_redis_options){ 0 });
    struct due__redis *s = inside(owner);

    cr_assert_eq(commit_one(owner, put(1, 5), 1), 0);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        for (int mode = DUE__MODE_OWNING; mode <= DUE__MODE_SHARING; mode++) {
            cr_assert_eq(due__flight_ready(s, DUE__FLIGHT_NONE, 0, soon(LONG_NS)), 0);
            s->mode = (enum due__redis_mode)mode;
            due__share_ours(s, steps[i], NULL, 0, NULL, 0, 0);
            cr_expect_eq(due__share_done(s, soon(LONG_NS)), DUE__SHARE_ANEW, "%s", steps[i]->name);
            s->mode = DUE__MODE_OWNER;
        }
    cr_expect_str_eq(ASK("HGET", "due:{q}:meta", "mode"), "$5\r\nowner\r\n");
    finish(owner);
}

REDIS_PROXY_TEST(share_convert_late, leaves_it_to_the_next_at_once_if_it_fails)
{
    struct fault_cell cell = { .command = 2,
                               .name = "EVAL",
                               .where = FAULT_BEFORE,
                               .what = FAULT_REPLACE,
                               .text = "-WRONGTYPE of a key" };
    due_store *store;

    leave_three_out();
    fault_proxy_plan(proxy, &cell, 1);
    store = make((due_redis_options){ .lease_ns = DUE_S(60) }, by_proxy());
    cr_expect_lt(take(store, LONG_NS, &info, &error), 0);
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:owner"), ":0\r\n");
    due_redis_free(store);
    store = opened((due_redis_options){ 0 });
    nothing_else("failed");
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:t:mail"), ":3\r\n");
    finish(store);
}

/* Before each step in turn somebody else opens the queue, and closes it.  Who was at it says so;
 * but where only the last step of sharing it was left, it begins anew. */
static int open_while_it_is_opened(bool shares, uint64_t step, bool *more)
{
    struct fault_cell cell = {
        .command = step, .name = "EVAL", .where = FAULT_BEFORE, .what = FAULT_STALL
    };
    struct opening o;

    fault_proxy_plan(proxy, &cell, 1);
    begin_opening(&o, shares, by_proxy(), (due_redis_options){ .lease_ns = DUE_S(60) });
    *more = fault_proxy_wait(proxy, 1, 300);
    if (*more) {
        ASK("DEL", "due:{q}:owner");
        finish(opened((due_redis_options){ 0 }));
    }
    fault_proxy_go_on(proxy);
    pthread_join(o.thread, NULL);
    cr_expect(o.rc == 0 || o.rc == DUE_EBUSY, "step %d: %s", (int)step, due_error_name(o.rc));
    if (o.rc != 0)
        cr_expect_not_null(strstr(o.error.text, "another process has opened the queue meanwhile"),
                           "step %d: %s", (int)step, o.error.text);
    die(o.store);
    return o.rc;
}

REDIS_PROXY_TEST(share_convert_late, is_given_up_where_another_opens_the_queue_meanwhile)
{
    for (int shares = 0; shares < 2; shares++) {
        bool more = true;
        int rc = DUE_EBUSY;
        uint64_t i = 1;

        for (;; i++) {
            ASK("FLUSHALL");
            leave_three_out();
            if (shares)
                finish(opened((due_redis_options){ 0 }));
            int now = open_while_it_is_opened(shares != 0, i, &more);
            if (!more)
                break;
            cr_expect_eq(rc, DUE_EBUSY, "before step %d, which is not the last", (int)i);
            rc = now;
        }
        cr_expect_gt(i, 3u);
        cr_expect_eq(rc, shares ? 0 : DUE_EBUSY, "%s", due_error_name(rc));
    }
}

/* ---- What only those who shared it had ------------------------------------------------------- */

SHARE_TEST(share_convert_late, forgets_who_waited_for_a_topic)
{
    static const char *const names[] = { "mail" };
    struct due_claim waits = {
        .topics = names, .topic_count = 1, .need = 1, .lease_ns = DUE_S(600), .waits = 1
    };
    struct sharer s = joined();

    cr_assert_eq(say(&s, put(1, 5)), 0);
    cr_assert_eq(say(&s, mail(2)), 0);
    cr_assert_eq(claim(&s, 2), 0);
    cr_assert_eq(s.n_held, 2u);
    cr_assert_eq(exchange(&s, NULL, 0, &waits), 0);
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:w:mail"), ":1\r\n");
    die(s.store);
    finish(opened((due_redis_options){ 0 }));
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:w:mail", "due:{q}:w"), ":0\r\n");
}

/* Nobody need be unsure any more of what a server may have given back that was started again. */
SHARE_TEST(share_convert_late, forgets_the_server_of_an_owner_who_was_killed)
{
    due_store *owner = opened((due_redis_options){ 0 });

    cr_assert_eq(commit_one(owner, put(1, 5), 1), 0);
    die(owner);
    cr_expect_str_eq(ASK("HEXISTS", "due:{q}:meta", "server"), ":1\r\n");
    struct sharer s = joined();
    cr_expect_str_eq(ASK("HEXISTS", "due:{q}:meta", "server"), ":0\r\n");
    go(&s);
}

/* A topic of a single job, too. */
SHARE_TEST(share_convert_late, enters_each_job_by_its_priority)
{
    due_store *owner = opened((due_redis_options){ 0 });
    due_change low = put(1, 5);

    low.record.id = id_of(7, 1);
    low.record.priority = 7;
    cr_assert_eq(commit_one(owner, low, 1), 0);
    cr_assert_eq(commit_one(owner, mail(2), 2), 0);
    cr_assert_eq(commit_one(owner, mail(3), 3), 0);
    finish(owner);
    by_priority = true;
    struct sharer s = joined();
    cr_expect_str_eq(ASK("ZCOUNT", "due:{q}:o:", "0", "0"), ":1\r\n");
    cr_expect_str_eq(ASK("ZCOUNT", "due:{q}:o:mail", "0", "0"), ":2\r\n");
    go(&s);
}
