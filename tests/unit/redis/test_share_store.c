/* test_share_store.c - the shared face of the Redis store: what is said happens once, whatever
 * becomes of the connection.
 */
#include "lab/redis/share_store_lab.h"

/* ---- In doubt -------------------------------------------------------------------------------- */

REDIS_PROXY_TEST(share_doubt, leaves_one_effect_and_one_answer_wherever_the_connection_breaks)
{
    struct sharer s = joined_by_proxy();

    fault_proxy_plan(proxy, NULL, 0);
    one_life(&s);
    uint64_t commands = fault_proxy_commands(proxy);
    cr_assert_geq(commands, 5u);
    for (uint64_t i = 1; i <= commands; i++) {
        for (int where = FAULT_BEFORE; where <= FAULT_MID_REPLY; where++) {
            struct fault_cell cell = { .command = i,
                                       .where = (enum fault_where)where,
                                       .what = FAULT_RESET };
            fault_proxy_plan(proxy, &cell, 1);
            one_life(&s);
            cr_expect_eq(fault_proxy_struck(proxy), 1u, "command %d", (int)i);
            cr_expect_str_eq(ASK("EXISTS", "due:{q}:j", "due:{q}:t:", "due:{q}:l:", "due:{q}:a"),
                             ":0\r\n");
        }
    }
    go(&s);
}

/* The answer comes after the call's time, or never: the connection is given up then. */
REDIS_PROXY_TEST(share_doubt, waits_for_an_answer_that_is_late)
{
    struct sharer s = joined_by_proxy();
    struct fault_cell cell = { .command = 1, .where = FAULT_SENT, .what = FAULT_STALL };
    due_change c = put(1, 5);
    due_change other = put(2, 5);

    fault_proxy_plan(proxy, &cell, 1);
    cr_expect_eq(call_once(&s, &c, 1, NULL, DUE_MS(20)), DUE_EINDOUBT);
    cr_expect_eq(
        call_once(&s, NULL, 0, &(struct due_claim){ .need = 1, .lease_ns = 1 }, DUE_MS(20)),
        DUE_EAGAIN, "the other lane waits, and has sent nothing");
    fault_proxy_go_on(proxy);
    cr_expect_eq(exchange(&s, &c, 1, NULL), 0);
    fault_proxy_plan(proxy, &cell, 1);
    cr_expect_eq(exchange(&s, &other, 1, NULL), 0, "answer_ns gives it up");
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":2\r\n");
    go(&s);
}

/* Of an exchange of several scripts one is done, and the next is told that we were turned out, or
 * are lost: of what was done the caller is not told that it was not. */
REDIS_PROXY_TEST(share_doubt, is_told_before_the_end_that_comes_in_the_middle)
{
    static const char *const told[] = { "*1\r\n$1\r\nF", "*1\r\n$1\r\nL" };

    for (int i = 0; i < 2; i++) {
        struct sharer s = joined_by_proxy();
        struct fault_cell cell = { .command = 2,
                                   .name = "EVALSHA",
                                   .where = FAULT_BEFORE,
                                   .what = FAULT_REPLACE,
                                   .text = told[i] };
        int end = i == 0 ? DUE_EFENCED : DUE_ELOST;

        cr_assert_eq(say(&s, put(1, 5)), 0);
        cr_assert_eq(claim(&s, 1), 0);
        const due_change changes[] = { put(2, DUE_S(4000000000)), of_held(&s, 0, DUE_CHANGE_DROP) };
        fault_proxy_plan(proxy, &cell, 1);
        cr_expect_eq(call_once(&s, changes, 2, NULL, LONG_NS), DUE_EINDOUBT);
        const struct due__share *h = inside(s.store)->share;
        ASK("HSET", "due:{q}:writers", h->lane[0].name, "X", h->lane[1].name, "X");
        cr_expect_eq(call_once(&s, changes, 2, NULL, LONG_NS), end);
        cr_expect_eq(claim(&s, 1), end);
        cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":2\r\n");
        due_redis_free(s.store);
        ASK("FLUSHALL");
    }
}

/* What was given up arrives after its number was passed. */
REDIS_PROXY_TEST(share_doubt, does_nothing_when_it_comes_late)
{
    struct sharer s = joined_by_proxy();
    struct fault_cell cell = { .command = 1, .where = FAULT_BEFORE, .what = FAULT_STALL };
    due_change c = put(1, 5);

    fault_proxy_plan(proxy, &cell, 1);
    cr_expect_eq(call_once(&s, &c, 1, NULL, DUE_MS(20)), DUE_EINDOUBT);
    cr_assert(fault_proxy_wait(proxy, 1, 5000));
    due__link_down(inside(s.store)->link);
    cr_expect_eq(exchange(&s, &c, 1, NULL), 0);
    cr_assert_eq(claim(&s, 1), 0);
    cr_assert_eq(s.n_held, 1u);
    cr_expect_eq(say(&s, of_held(&s, 0, DUE_CHANGE_DROP)), 0);
    cr_assert(fault_proxy_settle(proxy, 5000));
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":0\r\n");
    go(&s);
}

/* Told by the same number again: also after it was answered. */
SHARE_TEST(share_doubt, shows_the_same_jobs_again_when_the_visitor_could_not_take_them)
{
    struct sharer s = joined();
    struct sharer other = joined();
    due_change puts[] = { put(1, 5), put(2, 5) };

    cr_assert_eq(exchange(&s, puts, 2, NULL), 0);
    s.refuse = DUE_ENOMEM;
    cr_expect_eq(claim(&s, 2), DUE_ENOMEM);
    s.refuse = 0;
    cr_expect_eq(claim(&other, 2), 0);
    cr_expect_eq(other.n_held, 0u);
    cr_expect_eq(claim(&s, 2), 0);
    cr_expect_eq(s.n_held, 2u);
    go(&s);
    go(&other);
}

/* The record of a long job is read when its claim has been answered: then the job may be gone. */
REDIS_PROXY_TEST(share_doubt, leaves_out_a_long_job_that_others_have_ended_since)
{
    static const char bytes[20000] = "long";
    struct sharer s = joined_by_proxy();
    struct sharer other = joined();
    struct fault_cell cell = {
        .command = 1, .name = "HGET", .where = FAULT_BEFORE, .what = FAULT_RESET
    };
    struct due_claim short_one = { .need = 1, .lease_ns = 1 };
    due_change c = put(1, 5);

    c.record.data = bytes;
    c.record.len = sizeof bytes;
    cr_assert_eq(exchange(&s, &c, 1, NULL), 0);
    fault_proxy_plan(proxy, &cell, 1);
    cr_expect_eq(call_once(&s, NULL, 0, &short_one, DUE_S(5)), DUE_EINDOUBT);
    cr_expect_eq(claim(&other, 1), 0);
    cr_assert_eq(other.n_held, 1u);
    cr_expect_eq(say(&other, of_held(&other, 0, DUE_CHANGE_DROP)), 0);
    cr_expect_eq(exchange(&s, NULL, 0, &short_one), 0);
    cr_expect_eq(s.n_held, 0u);
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:q", "due:{q}:j"), ":0\r\n", "nothing is set aside");
    go(&s);
    go(&other);
}

/* ---- All that a job may have ----------------------------------------------------------------- */

enum { FAILED = 1, LONG = 2, KEYED = 4, KEEPS = 8, GROUPED = 16, KINDS = 32 };

static int is_as_put(void *ctx, const due_record *r)
{
    unsigned kind = (unsigned)sequence_of(r->id) - 1;
    unsigned *seen = ctx;
    char key[8];

    snprintf(key, sizeof key, "k%02u", kind);
    cr_expect_eq(r->attempts, kind & FAILED ? kind : 0u, "%u", kind);
    cr_expect_eq(r->failures, kind & FAILED ? 1u : 0u, "%u", kind);
    cr_expect_eq(r->len, kind & LONG ? 20000u + kind : 1u, "%u", kind);
    cr_expect_eq(r->key_len, kind & KEYED ? 3u : 0u, "%u", kind);
    if (r->key_len == 3)
        cr_expect_arr_eq(r->key, key, 3);
    cr_expect_eq(r->group_len, kind & GROUPED ? 2u : 0u, "%u", kind);
    cr_expect_str_eq(r->topic, kind % 3 == 0 ? "a" : kind % 3 == 1 ? "b" : "c");
    cr_expect_eq(r->until_ns, 1000 * (100 - (int64_t)kind), "%u", kind);
    ++*seen;
    return 0;
}

/* A job of each kind in one exchange, the later ones due first. */
static void put_each_kind(struct sharer *s)
{
    static char much[20000 + KINDS];
    static char keys[KINDS][8];
    due_change puts[KINDS];

    for (unsigned kind = 0; kind < KINDS; kind++) {
        due_change *c = &puts[kind];

        *c = put(kind + 1, 1000 * (100 - (int64_t)kind));
        c->record.topic = kind % 3 == 0 ? "a" : kind % 3 == 1 ? "b" : "c";
        c->record.attempts = kind & FAILED ? kind : 0;
        c->record.failures = kind & FAILED ? 1 : 0;
        if (kind & LONG) {
            c->record.data = much;
            c->record.len = 20000 + kind;
        }
        snprintf(keys[kind], sizeof keys[kind], "k%02u", kind);
        c->record.key = kind & KEYED ? keys[kind] : NULL;
        c->record.key_len = kind & KEYED ? 3 : 0;
        c->keeps_room = kind & KEEPS ? 1 : 0;
        c->record.group = kind & GROUPED ? keys[kind % 2] : NULL;
        c->record.group_len = kind & GROUPED ? 2 : 0;
    }
    cr_expect_eq(exchange(s, puts, KINDS, NULL), 0);
}

/* Of a queue with so much room. */
static struct sharer joined_with(uint64_t capacity)
{
    struct sharer s = { .store = make((due_redis_options){ 0 }, NULL) };
    struct due_store_open how = { .name = "q",
                                  .until_ns = soon(LONG_NS),
                                  .log = keep_log,
                                  .by_priority = by_priority,
                                  .capacity = capacity };

    s.verbs = s.store->verbs->shared;
    cr_assert_eq(s.verbs->join(s.store, &how, &info, &error), 0, "%s", error.text);
    return s;
}

SHARE_TEST(share_put, brings_all_that_each_of_its_jobs_has)
{
    for (int i = 0; i < 4; i++) {
        by_priority = i % 2 == 1;
        struct sharer s = i < 2 ? joined() : joined_with(100);
        due_id id;

        put_each_kind(&s);
        unsigned seen = 0;
        for (unsigned kind = 0; kind < KINDS; kind++) {
            char key[8];

            cr_expect_eq(s.results[kind], 0, "%u", kind);
            cr_expect_eq(
                s.store->verbs->find(s.store, id_of(0, kind + 1), is_as_put, &seen, soon(LONG_NS)),
                0, "%u", kind);
            snprintf(key, sizeof key, "k%02u", kind);
            int rc = s.verbs->holder(s.store, key, 3, &id, soon(LONG_NS));
            cr_expect_eq(rc, kind & KEYED ? 0 : DUE_ENOENT, "%u: %s", kind, due_error_name(rc));
            if (kind & KEYED)
                cr_expect_eq(sequence_of(id), kind + 1);
        }
        cr_expect_eq(seen, (unsigned)KINDS);
        cr_expect_str_eq(ASK("HLEN", "due:{q}:jg"), ":16\r\n");
        cr_expect_str_eq(ASK("HLEN", "due:{q}:b"), ":16\r\n", "as many are long");
        go(&s);
        ASK("FLUSHALL");
    }
}

SHARE_TEST(share_put, into_a_full_queue_brings_those_that_have_their_room)
{
    for (int i = 0; i < 2; i++) {
        by_priority = i == 1;
        struct sharer s = joined_with(1);
        unsigned seen = 0;

        cr_assert_eq(say(&s, put(99, 5)), 0);
        put_each_kind(&s);
        for (unsigned kind = 0; kind < KINDS; kind++) {
            cr_expect_eq(s.results[kind] == 0, (kind & KEEPS) != 0, "%u", kind);
            int rc =
                s.store->verbs->find(s.store, id_of(0, kind + 1), is_as_put, &seen, soon(LONG_NS));
            cr_expect_eq(rc, kind & KEEPS ? 0 : DUE_ENOENT, "%u", kind);
        }
        cr_expect_eq(seen, KINDS / 2u);
        go(&s);
        ASK("FLUSHALL");
    }
}

/* ---- Looking --------------------------------------------------------------------------------- */

/* What is asked for one job is understood, or said to be wrong, and nothing of it stays. */
REDIS_PROXY_TEST(share_look, at_a_job_is_made_again_or_says_what_is_wrong)
{
    static const struct {
        enum fault_what what;
        const char *text;
        int rc;
    } cases[] = { { FAULT_RESET, NULL, 0 },
                  { FAULT_REPLACE, "*0", DUE_ECORRUPT },
                  { FAULT_REPLACE, ":5", DUE_ECORRUPT },
                  { FAULT_REPLACE, "-WRONGTYPE Operation against a key", DUE_ECORRUPT },
                  { FAULT_REPLACE, "$4\r\nshrt", DUE_ECORRUPT } };
    struct sharer s = joined_by_proxy();
    due_change c = put(1, 5);
    struct seen seen = { .n = 0 };

    c.record.attempts = 1; /* so that it has an entry */
    cr_assert_eq(say(&s, c), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint64_t at = 1; at <= 2; at++) {
            struct fault_cell cell = { .command = at,
                                       .name = "HGET",
                                       .where = FAULT_SENT,
                                       .what = cases[i].what,
                                       .text = cases[i].text };

            fault_proxy_plan(proxy, &cell, 1);
            size_t before = seen.n;
            int rc = s.store->verbs->find(s.store, c.record.id, see, &seen, soon(LONG_NS));
            cr_expect_eq(rc, cases[i].rc, "%zu, %d: %s", i, (int)at, due_error_name(rc));
            cr_expect_eq(seen.n, before + (rc == 0));
            rc = s.store->verbs->find(s.store, c.record.id, see, &seen, soon(LONG_NS));
            cr_expect_eq(rc, 0, "%zu, %d: %s", i, (int)at, due_error_name(rc));
        }
    }
    go(&s);
}

static void *put_slowly(void *arg)
{
    due_change c = put(1, 5);

    cr_expect_eq(say(arg, c), 0);
    return NULL;
}

/* One call at a time: whoever has not his turn in time has sent nothing. */
REDIS_PROXY_TEST(share_look, has_its_turn_or_is_told_so)
{
    char url[128];
    pthread_t thread;

    snprintf(url, sizeof url, "unix://%s/proxy", server.dir);
    struct sharer s = joined_at(url, (due_redis_options){ .answer_ns = LONG_NS });
    struct sharer same = s;
    struct fault_cell cell = { .command = 1, .where = FAULT_SENT, .what = FAULT_STALL };
    fault_proxy_plan(proxy, &cell, 1);
    cr_assert_eq(pthread_create(&thread, NULL, put_slowly, &s), 0);
    cr_assert(fault_proxy_wait(proxy, 1, 5000));
    struct due_claim c = { .need = 1, .lease_ns = DUE_S(600) };
    cr_expect_eq(call_once(&same, NULL, 0, &c, DUE_MS(20)), DUE_EAGAIN);
    struct seen seen = { .n = 0 };
    cr_expect_eq(same.store->verbs->find(same.store, id_of(0, 1), see, &seen, soon(DUE_MS(20))),
                 DUE_EAGAIN);
    fault_proxy_go_on(proxy);
    pthread_join(thread, NULL);
    cr_expect_eq(claim(&same, 1), 0);
    cr_expect_eq(same.n_held, 1u);
    go(&same);
}
