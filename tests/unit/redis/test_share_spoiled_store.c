/* test_share_spoiled_store.c - keys of a shared queue that are missing, make no sense, or are
 * something else, met by the shared face of the Redis store.
 */
#include "lab/matrix.h"
#include "lab/redis/share_spoil.h"
#include "lab/redis/share_store_lab.h"

/* What is no job's id stands in a topic: it goes, and is no reason to wait for those behind it. */
SHARE_TEST(share_spoiled, member_of_a_topic_that_is_no_id_goes)
{
    static const char *const odd[] = { "", "x", "an id of more than fourteen bytes" };
    struct sharer s = joined();

    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        cr_assert_eq(say(&s, put(1 + i, 5)), 0);
        ASK("ZADD", "due:{q}:t:", "0", odd[i]);
        size_t held = 0;
        for (int tries = 0; held == 0 && tries < 20; tries++) {
            struct due_claim c = { .need = 5, .lease_ns = DUE_S(600) };
            int rc = call_once(&s, NULL, 0, &c, DUE_MS(200));
            cr_expect(rc == 0 || rc == DUE_EAGAIN || rc == DUE_EINDOUBT, "%s", due_error_name(rc));
            held += rc == 0 ? s.n_held : 0;
        }
        cr_assert_eq(held, 1u, "'%s'", odd[i]);
        cr_expect_eq(say(&s, of_held(&s, 0, DUE_CHANGE_DROP)), 0);
        cr_expect_str_eq(ASK("EXISTS", "due:{q}:t:", "due:{q}:l:", "due:{q}:j"), ":0\r\n", "'%s'",
                         odd[i]);
    }
    go(&s);
}

/* The end of a lease makes no sense: it is over, and who claims the job is told so. */
SHARE_TEST(share_spoiled, end_of_a_lease_that_is_none_is_one_that_was_let_pass)
{
    static const char *const odd[] = { "-5", "-inf", "0.5", "-1e300" };
    struct sharer s = joined();
    struct sharer other = joined();

    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        cr_assert_eq(say(&s, put(1 + i, 5)), 0);
        cr_assert_eq(claim(&s, 1), 0);
        cr_assert_eq(s.n_held, 1u);
        ASK("EVAL", "redis.call('ZADD', KEYS[1], ARGV[1], redis.call('ZRANGE', KEYS[1], 0, 0)[1])",
            "1", "due:{q}:l:", odd[i]);
        struct due_claim c = { .need = 1, .lease_ns = DUE_S(600) };
        cr_expect_eq(call_once(&other, NULL, 0, &c, LONG_NS), 0, "%s", odd[i]);
        cr_assert_eq(other.n_held, 1u, "%s", odd[i]);
        cr_expect_gt(other.held[0].lapsed_ns, 0, "%s", odd[i]);
        cr_expect_eq(say(&s, of_held(&s, 0, DUE_CHANGE_DROP)), DUE_ESTALE);
        cr_expect_eq(say(&other, of_held(&other, 0, DUE_CHANGE_DROP)), 0);
    }
    go(&other);
    go(&s);
}

/* ---- Each key, each call --------------------------------------------------------------------- */

/* What is done to a queue of some of everything; what is held is of the last claim. */
static due_id at(uint64_t sequence)
{
    return put(sequence, 5).record.id;
}

static int nothing(void *ctx, const due_record *r)
{
    (void)ctx;
    (void)r;
    return 0;
}

static int no_topic(void *ctx, const struct due_census_topic *t)
{
    (void)ctx;
    (void)t;
    return 0;
}

static int no_process(void *ctx, const struct due_process_seen *p)
{
    (void)ctx;
    (void)p;
    return 0;
}

static due_change tied(uint64_t sequence, const char *key, const char *group)
{
    due_change c = put(sequence, 5);

    c.record.key = key;
    c.record.key_len = key != NULL ? strlen(key) : 0;
    c.record.group = group;
    c.record.group_len = group != NULL ? strlen(group) : 0;
    return c;
}

static due_change of_topic(int64_t paused, int64_t held_max)
{
    due_change c = { .kind = DUE_CHANGE_TOPIC, .paused = paused, .held_max = held_max };

    c.record.topic = "other";
    return c;
}

static due_change revoking(uint64_t sequence)
{
    due_change c = drop(sequence, 5);

    c.revokes = 1;
    return c;
}

static due_change of_dead(uint64_t sequence, enum due_change_kind kind)
{
    due_change c = kind == DUE_CHANGE_DROP ? drop(sequence, 5) : move(sequence, 5, 7);

    c.was_dead = 1;
    return c;
}

/* An exchange that is not begun anew while it is in doubt: what it answers. */
static int one(struct sharer *s, due_change change)
{
    int rc = call_once(s, &change, 1, NULL, DUE_MS(20));

    if (rc == DUE_EINDOUBT)
        rc = call_once(s, &change, 1, NULL, DUE_MS(20));
    return rc;
}

static int look(struct sharer *s, int which)
{
    const struct due_shared_verbs *v = s->verbs;
    struct due_page dead = { .from_ns = INT64_MIN };
    struct due_page waits = { .topic = "", .from_ns = INT64_MIN };
    struct due_census_all all = { 0 };
    struct due_heard heard;
    due_id id;

    switch (which) {
    case 0:
        return v->dead(s->store, 0, 9, nothing, NULL, soon(DUE_MS(20)));
    case 1:
        return v->page(s->store, &dead, 9, nothing, NULL, soon(DUE_MS(20)));
    case 2:
        return v->page(s->store, &waits, 9, nothing, NULL, soon(DUE_MS(20)));
    case 3:
        return v->census(s->store, &all, no_topic, NULL, soon(DUE_MS(20)));
    case 4:
        return v->processes(s->store, no_process, NULL, soon(DUE_MS(20)));
    case 5:
        return v->holder(s->store, "k3", 2, &id, soon(DUE_MS(20)));
    case 6:
        return s->store->verbs->find(s->store, at(3), nothing, NULL, soon(DUE_MS(20)));
    case 7:
        return v->listen(s->store, &heard, soon(0));
    default:
        return v->beat(s->store, &(struct due_beat){ .turn_ns = 1, .waits_room = 1 },
                       soon(DUE_MS(20)));
    }
}

/* Some of everything: 1 waits, 2 waits with a group and 4 behind it, 3 with a key, 5 is dead, 6 is
 * held, 7 is held and was cancelled; 8 waits long, in another topic. */
static void fill_some(struct sharer *s)
{
    due_change later = put(8, DUE_S(9000000000));
    struct due_claim one_more = { .need = 1, .lease_ns = DUE_S(600) };

    cr_assert_eq(say(s, put(5, 1)), 0);
    cr_assert_eq(claim(s, 1), 0);
    due_change bury = of_held(s, 0, DUE_CHANGE_BURY);
    bury.record.cause = DUE_CAUSE_BURIED;
    bury.record.died_ns = 5;
    cr_assert_eq(say(s, bury), 0);
    cr_assert_eq(say(s, put(7, 1)), 0);
    cr_assert_eq(claim(s, 1), 0);
    cr_assert_eq(say(s, revoking(7)), DUE_EBUSY);
    cr_assert_eq(say(s, put(6, 2)), 0);
    cr_assert_eq(exchange(s, NULL, 0, &one_more), 0);
    cr_assert_eq(say(s, put(1, 5)), 0);
    cr_assert_eq(say(s, tied(2, NULL, "g")), 0);
    cr_assert_eq(say(s, tied(3, "k3", NULL)), 0);
    cr_assert_eq(say(s, tied(4, NULL, "g")), 0);
    later.record.topic = "other";
    cr_assert_eq(say(s, later), 0);
    cr_assert_eq(say(s, of_topic(0, 5)), 0);
}

static char cell[200];

/* One that a caller may have: not that it asked wrongly, nor that there is no memory. */
static void expect_code(const char *call, int rc)
{
    static const int codes[] = { DUE_ECORRUPT, DUE_EAGAIN, DUE_EINDOUBT, DUE_ESTORE, DUE_EFENCED,
                                 DUE_ELOST,    DUE_ENOENT, DUE_ENOTSUP,  DUE_EBUSY,  DUE_EVERSION };
    bool known = rc >= 0;

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        known = known || rc == codes[i];
    cr_expect(known, "%s, %s: %s", cell, call, due_error_name(rc));
}

static void do_all(struct sharer *s)
{
    struct sharer held = *s;
    struct due_claim c = { .need = 5, .lease_ns = DUE_S(600), .waits = 1 };
    due_change extend = of_held(&held, 0, DUE_CHANGE_EXTEND);
    due_change again = of_held(&held, 0, DUE_CHANGE_MOVE);
    struct sharer newcomer;

    extend.lease_ns = DUE_S(600);
    for (int i = 0; i < 9; i++)
        expect_code("a look", look(s, i));
    expect_code("put", one(s, put(20, 5)));
    expect_code("put of a key and a group", one(s, tied(21, "k21", "g")));
    expect_code("put over", one(s, tied(22, "k3", NULL)));
    expect_code("begin", one(s, of_held(&held, 0, DUE_CHANGE_BEGIN)));
    expect_code("extend", one(s, extend));
    expect_code("nack", one(s, again));
    expect_code("claim", call_once(s, NULL, 0, &c, DUE_MS(20)));
    expect_code("ack", one(s, of_held(&held, 0, DUE_CHANGE_DROP)));
    expect_code("cancel", one(s, drop(1, 5)));
    expect_code("revoke", one(s, revoking(3)));
    expect_code("move", one(s, move(4, 5, 9)));
    expect_code("kick", one(s, of_dead(5, DUE_CHANGE_MOVE)));
    expect_code("drop of a dead one", one(s, of_dead(5, DUE_CHANGE_DROP)));
    expect_code("limit", one(s, of_topic(-1, 7)));
    expect_code("join", join_as(&newcomer, make((due_redis_options){ 0 }, NULL), DUE_MS(20)));
    due_redis_free(newcomer.store);
}

/* As it was, but for who has joined: another one, who does all. */
static void put_right_and_drain(void)
{
    ASK("EVAL",
        "redis.call('DEL', unpack(redis.call('KEYS', 'due:{q}:*'))) "
        "local was = redis.call('HGETALL', 'saved') "
        "for i = 1, #was, 2 do redis.call('RESTORE', was[i], 0, was[i + 1]) end "
        "redis.call('PEXPIRE', 'due:{q}:owner', 60000)",
        "0");
    struct sharer s = joined();
    unsigned seen = 0;

    for (int i = 0; i < 3; i++) {
        cr_expect_eq(claim(&s, 9), 0, "%s", cell);
        struct sharer had = s;
        for (size_t k = 0; k < had.n_held; k++) {
            seen |= 1U << had.sequence[k];
            cr_expect_eq(say(&s, of_held(&had, k, DUE_CHANGE_DROP)), 0, "%s", cell);
        }
    }
    cr_expect_eq(seen, 1U << 1 | 1U << 2 | 1U << 3 | 1U << 4, "%s: %x", cell, seen);
    go(&s);
}

static void try_cell(const char *key, const struct spoil *how)
{
    char text[SPOIL_TEXT];

    snprintf(cell, sizeof cell, "%s is %s", key, how->name);
    ASK("FLUSHALL");
    struct sharer s = joined();
    fill_some(&s);
    ASK("EVAL",
        "for _, key in ipairs(redis.call('KEYS', 'due:{q}:*')) do "
        "redis.call('HSET', 'saved', key, redis.call('DUMP', key)) end",
        "0");
    char full[80];
    snprintf(full, sizeof full, "due:{q}:%s", key);
    spoil_text(how, text);
    cr_assert_neq(ASK("EVAL", text, "0", full)[0], '-', "%s", cell);
    do_all(&s);
    s.verbs->leave(s.store, soon(DUE_MS(20)));
    due_redis_free(s.store);
    put_right_and_drain();
}

static void try_all(void)
{
    int cells = 0;

    for (int k = 0; k < SPOIL_KEYS; k++) {
        char name[16];

        snprintf(name, sizeof name, "%s", spoil_keys[k].name);
        if (name[1] == ':') /* the default topic has none */
            name[strcmp(name + 2, "b") == 0 ? 1 : 2] = '\0';
        if (strlen(name) == 1 && strchr("tw", name[0]) != NULL)
            snprintf(name, sizeof name, "%c:other", spoil_keys[k].name[0]);
        for (int i = 0; i < SPOILS; i++)
            if (strchr(spoils[i].types, spoil_keys[k].type) != NULL &&
                cells++ % DUE_MATRIX_EVERY == 0)
                try_cell(name, &spoils[i]);
    }
}

Test(share_spoiled, keys_are_told_by_errors_and_all_comes_once_they_are_right,
     .init = serve_plainly, .fini = stop, .timeout = 1500)
{
    try_all();
    by_priority = true;
    try_all();
}
