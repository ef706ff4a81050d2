/* test_share_answers.c - the shared face of the Redis store: what a call costs, and answers that
 * make no sense, of joining, of a beat, and of each step of a conversion.
 */
#include "lab/redis/share_convert_lab.h"

/* ---- What a call costs ----------------------------------------------------------------------- */

#define COMMANDS(n, call)                                                         \
    do {                                                                          \
        fault_proxy_plan(proxy, NULL, 0);                                         \
        cr_expect_eq(call, 0);                                                    \
        cr_expect_eq(fault_proxy_commands(proxy), (uint64_t)(n), "%s: %d", #call, \
                     (int)fault_proxy_commands(proxy));                           \
    } while (0)

/* Once the scripts are there, in either order. */
REDIS_PROXY_TEST(share_cost, of_a_put_a_claim_an_end_and_a_beat_is_a_command_each)
{
    struct due_claim one = { .need = 1, .lease_ns = DUE_S(600) };
    struct due_beat beat = { 0 };
    due_change other = put(2, 5);

    other.record.topic = "other";
    for (int i = 0; i < 2; i++) {
        ASK("FLUSHALL");
        by_priority = i == 1;
        struct sharer s = joined_by_proxy();
        cr_expect_eq(s.verbs->beat(s.store, &beat, soon(LONG_NS)), 0);
        due_change first = put(1, 5);
        COMMANDS(1, call_once(&s, &first, 1, NULL, LONG_NS));
        cr_expect_eq(s.results[0], 0);
        COMMANDS(1, call_once(&s, NULL, 0, &one, LONG_NS));
        cr_assert_eq(s.n_held, 1u);
        COMMANDS(1, say(&s, of_held(&s, 0, DUE_CHANGE_DROP)));
        COMMANDS(1, say(&s, other));
        COMMANDS(1, claim(&s, 1));
        cr_expect_eq(s.n_held, 1u, "what it has put itself it asks for");
        COMMANDS(1, claim(&s, 1));
        COMMANDS(1, s.verbs->beat(s.store, &beat, soon(LONG_NS)));
        go(&s);
    }
}

/* As many changes as there may be, each of which has a name of its own for its topic. */
static void many_of(struct sharer *s, size_t topics, bool named)
{
    static due_change changes[DUE__SHARE_CHANGES];
    static char names[DUE__SHARE_CHANGES][8];
    uint64_t commands = (topics + DUE__SHARE_TOPICS - 1) / DUE__SHARE_TOPICS;

    for (size_t i = 0; i < DUE__SHARE_CHANGES; i++) {
        snprintf(names[i], sizeof names[i], "t%zu", i % topics);
        changes[i] = put(1 + i, 5 + (int64_t)i);
        changes[i].record.topic = names[i];
    }
    COMMANDS(commands, call_once(s, changes, DUE__SHARE_CHANGES, NULL, LONG_NS));
    for (size_t i = 0; i < DUE__SHARE_CHANGES; i++) {
        cr_expect_eq(s->results[i], 0, "%zu", i);
        changes[i] = drop(1 + i, 5 + (int64_t)i);
        changes[i].record.topic = named ? names[i] : NULL;
    }
    COMMANDS(commands + !named, call_once(s, changes, DUE__SHARE_CHANGES, NULL, LONG_NS));
    for (size_t i = 0; i < DUE__SHARE_CHANGES; i++)
        cr_expect_eq(s->results[i], 0, "%zu of %zu topics", i, topics);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":0\r\n");
}

REDIS_PROXY_TEST(share_cost, of_as_many_changes_as_there_may_be_is_a_command_for_eight_topics)
{
    char url[128];

    snprintf(url, sizeof url, "unix://%s/proxy", server.dir);
    for (int i = 0; i < 2; i++) {
        by_priority = i == 1;
        struct sharer s = joined_at(url, (due_redis_options){ .answer_ns = LONG_NS });
        cr_assert_eq(say(&s, put(999, 5)) + say(&s, drop(999, 5)), 0);
        for (size_t topics = 1; topics <= 17; topics += topics == 1 ? 7 : topics == 8 ? 1 : 8)
            for (int named = 0; named < 2; named++)
                many_of(&s, topics, named == 1);
        go(&s);
        ASK("FLUSHALL");
    }
}

/* A claim may name eight, and what is due in each comes. */
SHARE_TEST(share_cost, of_a_claim_for_eight_topics_is_nothing_but_time)
{
    const char *names[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i" };
    struct due_claim c = {
        .need = 9, .lease_ns = DUE_S(600), .topics = names, .topic_count = DUE__SHARE_TOPICS
    };
    struct sharer s = joined();

    for (size_t i = 0; i < 9; i++) {
        due_change one = put(1 + i, 5);
        one.record.topic = names[i];
        cr_assert_eq(say(&s, one), 0);
    }
    cr_expect_eq(exchange(&s, NULL, 0, &c), 0);
    cr_assert_eq(s.n_held, 8u);
    for (size_t i = 0; i < 8; i++)
        cr_expect_eq(s.sequence[i], 1 + i);
    c.topic_count = 9;
    cr_expect_eq(exchange(&s, NULL, 0, &c), DUE_EINVAL);
    go(&s);
}

/* ---- Durability ------------------------------------------------------------------------------ */

/* By the log, or to who opens by the error alone. */
SHARE_TEST(share_durability, that_is_less_than_is_required_is_told_once)
{
    due_redis_options require = { .require = DUE_DURABLE_EVERYSEC };
    struct due_beat beat = { 0 };

    ASK("CONFIG", "SET", "appendonly", "yes");
    ASK("CONFIG", "SET", "save", "");
    struct sharer s = joined_at(NULL, require);
    ASK("CONFIG", "SET", "appendonly", "no");
    for (int i = 0; i < 3; i++) {
        logged[0] = '\0';
        inside(s.store)->probed_ns = 0;
        cr_expect_eq(s.verbs->beat(s.store, &beat, soon(LONG_NS)), 0);
        cr_expect_eq(strstr(logged, "durability in force is") != NULL, i == 0, "%s", logged);
    }
    struct sharer late = { .n_held = 0 };
    due_store *store = make(require, NULL);
    logged[0] = '\0';
    cr_expect_eq(join_as(&late, store, LONG_NS), DUE_EDURABILITY);
    cr_expect_not_null(strstr(error.text, "durability in force is"), "%s", error.text);
    cr_expect_str_empty(logged);
    due_redis_free(store);
    go(&s);
}

/* ---- Who is there ---------------------------------------------------------------------------- */

static int count_waits(void *ctx, const struct due_process_seen *seen)
{
    *(size_t *)ctx += seen->waits ? 1 : 0;
    return 0;
}

SHARE_TEST(share_people, are_said_to_wait_while_they_do)
{
    struct sharer s = joined();
    struct sharer other = joined();

    cr_assert_eq(await(&s, 1), 0);
    cr_assert_eq(await(&other, 1), 0);
    for (size_t waits = 3; waits-- > 0;) {
        size_t n = 0;

        for (int i = 0; i < 50; i++)
            cr_expect_eq(s.verbs->processes(s.store, count_waits, &n, soon(LONG_NS)), 0);
        cr_expect_eq(n, 50 * waits);
        cr_assert_eq(claim(waits == 2 ? &other : &s, 1), 0);
    }
    go(&other);
    go(&s);
}

/* ---- Said again ------------------------------------------------------------------------------ */

/* What the visitor could not take, and another has by now, is not shown again. */
SHARE_TEST(share_again, a_claim_shows_only_what_is_held_still)
{
    struct due_claim brief = { .need = 2, .lease_ns = DUE_MS(1) };
    struct sharer s = joined();
    struct sharer other = joined();
    due_change puts[] = { put(1, 5), put(2, 6) };

    cr_assert_eq(exchange(&s, puts, 2, NULL), 0);
    s.refuse = DUE_ENOMEM;
    cr_expect_eq(exchange(&s, NULL, 0, &brief), DUE_ENOMEM);
    cr_assert_eq(nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL), 0);
    cr_assert_eq(claim(&other, 1), 0);
    cr_assert_eq(other.n_held, 1u, "its lease was over");
    s.refuse = 0;
    cr_expect_eq(exchange(&s, NULL, 0, &brief), 0);
    cr_assert_eq(s.n_held, 1u);
    cr_expect_neq(s.sequence[0], other.sequence[0]);
    go(&s);
    go(&other);
}

/* ---- Topics ---------------------------------------------------------------------------------- */

SHARE_TEST(share_topics, are_entered_with_their_first_job_though_they_were_claimed_from_before)
{
    static const char *const names[] = { "new" };
    struct due_claim c = { .topics = names, .topic_count = 1, .need = 1, .lease_ns = DUE_S(600) };
    struct sharer s = joined();
    due_change job = put(1, 5);

    job.record.topic = "new";
    cr_assert_eq(exchange(&s, NULL, 0, &c), 0);
    cr_assert_eq(say(&s, job), 0);
    cr_expect_str_eq(ASK("HEXISTS", "due:{q}:topics", "new"), ":1\r\n");
    go(&s);
}

/* A part names eight topics: where all of them are those of what is said, who waits elsewhere is
 * taken from there by what is said next. */
SHARE_TEST(share_topics, of_those_that_wait_are_left_by_the_next_who_has_room_to_name_them)
{
    static const char *const names[] = { "z" };
    struct due_claim waits = {
        .topics = names, .topic_count = 1, .need = 1, .lease_ns = DUE_S(600), .waits = 1
    };
    struct sharer s = joined();
    due_change puts[9];
    due_change ends[9];
    char topic[9][4];
    size_t n = 0;
    size_t last = 0;

    for (size_t i = 0; i < 9; i++) {
        snprintf(topic[i], sizeof topic[i], "t%d", (int)(i % 8));
        puts[i] = put(i + 1, 5);
        puts[i].record.topic = topic[i];
    }
    cr_assert_eq(exchange(&s, puts, 9, NULL), 0);
    cr_assert_eq(claim(&s, 9), 0);
    cr_assert_eq(s.n_held, 9u);
    for (size_t i = 0; i < 9; i++) {
        if (s.sequence[i] == 9)
            last = i;
        else
            ends[n++] = of_held(&s, i, DUE_CHANGE_DROP);
    }
    ends[8] = of_held(&s, last, DUE_CHANGE_DROP);
    struct sharer held = s; /* the topics of the changes lie in it */
    for (size_t i = 0; i < 9; i++)
        ends[i].record.topic = held.topic[i < 8 ? (i < last ? i : i + 1) : last];
    cr_assert_eq(exchange(&s, NULL, 0, &waits), 0);
    cr_assert_eq(exchange(&s, ends, 8, NULL), 0);
    for (size_t i = 0; i < 8; i++)
        cr_expect_eq(s.results[i], 0);
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:w:z"), ":1\r\n", "there was no room");
    cr_expect_eq(say(&s, ends[8]), 0);
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:w:z"), ":0\r\n");
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":0\r\n");
    go(&s);
}

/* ---- Answers that make no sense -------------------------------------------------------------- */

static struct fault_cell answer_of(uint64_t command, const char *name, const char *text)
{
    return (struct fault_cell){
        .command = command, .name = name, .where = FAULT_SENT, .what = FAULT_REPLACE, .text = text
    };
}

/* Of one who joins: the writer is too high, is none, or is none that has a name; the fence is
 * none; the stamp, the time, the capacity, the order are no numbers; there is one word more. */
REDIS_PROXY_TEST(share_answers, of_joining_are_not_believed_if_they_make_no_sense)
{
    static const char *const says[] = {
        "*7\r\n$1\r\nJ\r\n$15\r\n281474976710656\r\n$3\r\ns:x\r\n:9\r\n:9\r\n:0\r\n:0",
        "*7\r\n$1\r\nJ\r\n$3\r\n12x\r\n$3\r\ns:x\r\n:9\r\n:9\r\n:0\r\n:0",
        "*7\r\n$1\r\nJ\r\n$0\r\n\r\n$3\r\ns:x\r\n:9\r\n:9\r\n:0\r\n:0",
        "*7\r\n$1\r\nJ\r\n$2\r\n12\r\n$0\r\n\r\n:9\r\n:9\r\n:0\r\n:0",
        "*7\r\n$1\r\nJ\r\n$2\r\n12\r\n$3\r\ns:x\r\n:-9\r\n:9\r\n:0\r\n:0",
        "*7\r\n$1\r\nJ\r\n$2\r\n12\r\n$3\r\ns:x\r\n:9\r\n:-9\r\n:0\r\n:0",
        "*7\r\n$1\r\nJ\r\n$2\r\n12\r\n$3\r\ns:x\r\n:9\r\n:9\r\n:-1\r\n:0",
        "*7\r\n$1\r\nJ\r\n$2\r\n12\r\n$3\r\ns:x\r\n:9\r\n:9\r\n:0\r\n:-1",
        "*8\r\n$1\r\nJ\r\n$2\r\n12\r\n$3\r\ns:x\r\n:9\r\n:9\r\n:0\r\n:0\r\n:0",
    };
    struct sharer s = { .n_held = 0 };
    char url[128];

    snprintf(url, sizeof url, "unix://%s/proxy", server.dir);
    due_store *store = make((due_redis_options){ 0 }, url);
    for (size_t i = 0; i < sizeof says / sizeof says[0]; i++) {
        struct fault_cell cell = answer_of(1, "EVALSHA", says[i]);

        fault_proxy_plan(proxy, &cell, 1);
        cr_expect_eq(join_as(&s, store, LONG_NS), DUE_ECORRUPT, "%d", (int)i);
        cr_expect_eq(fault_proxy_struck(proxy), 1u);
    }
    cr_expect_eq(join_as(&s, store, LONG_NS), 0, "%s", error.text);
    cr_expect_eq(say(&s, put(1, 5)), 0);
    go(&s);
}

/* Each of its numbers in turn is none. */
REDIS_PROXY_TEST(share_answers, of_a_beat_are_not_believed_if_they_make_no_sense)
{
    static const int numbers[] = { 0, 1, 4, 5, 6, 7, 8 };
    struct sharer s = joined_by_proxy();
    struct due_beat beat = { 0 };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char text[128] = "*9";

        for (int word = 0; word < 9; word++)
            strcat(text, word == numbers[i] ? "\r\n:-1" : "\r\n:9");
        struct fault_cell cell = answer_of(1, "EVALSHA", text);
        fault_proxy_plan(proxy, &cell, 1);
        cr_expect_eq(s.verbs->beat(s.store, &beat, soon(LONG_NS)), DUE_ECORRUPT, "%d", numbers[i]);
    }
    struct fault_cell short_one =
        answer_of(1, "EVALSHA", "*8\r\n:9\r\n:9\r\n:9\r\n:9\r\n:0\r\n:0\r\n:0\r\n:0");
    fault_proxy_plan(proxy, &short_one, 1);
    cr_expect_eq(s.verbs->beat(s.store, &beat, soon(LONG_NS)), DUE_ECORRUPT);
    cr_expect_eq(s.verbs->beat(s.store, &beat, soon(LONG_NS)), 0);
    cr_expect_eq(beat.renew_ns, DUE_S(10));
    go(&s);
}

/* Nobody is subscribed by them, so it is tried again, and then a ring is heard. */
REDIS_PROXY_TEST(share_answers, of_subscribing_are_not_believed_if_they_make_no_sense)
{
    static const char *const says[] = { "-NOPERM x", ":7", "*3\r\n$4\r\nelse\r\n$1\r\nc\r\n:1",
                                        "*2\r\n$9\r\nsubscribe\r\n$1\r\nc" };
    struct sharer other = joined();

    for (size_t i = 0; i < sizeof says / sizeof says[0]; i++) {
        struct fault_cell cell = answer_of(1, "SUBSCRIBE", says[i]);
        struct due_heard heard;
        int rc = DUE_EAGAIN;

        cell.where = FAULT_BEFORE;
        fault_proxy_plan(proxy, &cell, 1);
        struct sharer s = joined_by_proxy();
        cr_expect_eq(fault_proxy_struck(proxy), 1u);
        cr_assert_eq(await(&s, 1), 0);
        cr_assert_eq(say(&other, put(i + 1, 5)), 0);
        for (int64_t end = soon(LONG_NS); rc == DUE_EAGAIN && due__mono_ns() < end;)
            rc = s.verbs->listen(s.store, &heard, soon(DUE_S(5)));
        cr_expect_eq(rc, 1, "%s", says[i]);
        cr_assert_eq(claim(&s, 1), 0);
        cr_assert_eq(s.n_held, 1u);
        cr_expect_eq(say(&s, of_held(&s, 0, DUE_CHANGE_DROP)), 0);
        go(&s);
    }
    go(&other);
}

/* Of whom is asked in which topics jobs are that are changed by their ids. */
REDIS_PROXY_TEST(share_answers, of_topics_are_not_believed_if_they_make_no_sense)
{
    static const char *const says[] = { ":7", "*0", "*1\r\n$-1", "*2\r\n$-1\r\n:7", "+x" };
    struct sharer s = joined_by_proxy();
    due_change moves[] = { move(1, 5, 5), drop(3, 0) };

    cr_assert_eq(say(&s, put(1, 5)), 0);
    moves[0].record.topic = moves[1].record.topic = NULL;
    for (size_t i = 0; i < sizeof says / sizeof says[0]; i++) {
        struct fault_cell cell = answer_of(1, "HMGET", says[i]);

        fault_proxy_plan(proxy, &cell, 1);
        cr_expect_eq(exchange(&s, moves, 2, NULL), DUE_ECORRUPT, "%s", says[i]);
    }
    cr_expect_eq(exchange(&s, moves, 2, NULL), 0);
    cr_expect(s.results[0] == 0 && s.results[1] == DUE_ENOENT);
    go(&s);
}

static void die(due_store *store)
{
    due_redis_free(store);
    ASK("DEL", "due:{q}:owner");
}

/* In the other mode, with jobs that are out where it was shared. */
static void prepare_for(bool shares)
{
    if (shares) {
        finish(opened((due_redis_options){ 0 }));
    } else {
        struct sharer s = joined();

        cr_assert_eq(claim(&s, 200), 0);
        die(s.store);
    }
}

/* It is converted by way of the proxy.  What came of it. */
static int convert(bool shares, const struct fault_cell *cell)
{
    struct sharer s = { .n_held = 0 };
    char url[128];

    prepare_for(shares);
    snprintf(url, sizeof url, "unix://%s/proxy", server.dir);
    due_store *store = make((due_redis_options){ .answer_ns = DUE_S(2) }, url);
    fault_proxy_plan(proxy, cell, cell != NULL);
    int rc = shares ? join_as(&s, store, LONG_NS) : take(store, LONG_NS, &info, &error);
    die(store);
    return rc;
}

/* It is done, or it is said that it is not; and whoever comes next finds all jobs as they were. */
static void answer_everywhere(bool shares, const char *text)
{
    struct shelf was = fill_all(9);

    cr_assert_eq(convert(shares, NULL), 0);
    uint64_t commands = fault_proxy_commands(proxy);
    cr_assert_gt(commands, 15u);
    for (uint64_t i = 1; i <= commands; i++) {
        struct fault_cell cell = answer_of(i, NULL, text);
        char when[64];
        int rc = convert(shares, &cell);

        snprintf(when, sizeof when, "mode %d, command %d", shares, (int)i);
        cr_expect(rc <= 0, "%s: %d", when, rc);
        fault_proxy_plan(proxy, NULL, 0);
        due_store *store = opened((due_redis_options){ 0 });
        nothing_else(when);
        struct shelf now = shelf_of(store);
        same(&now, &was, when);
        finish(store);
    }
    free(was.line);
}

Test(share_answers, of_a_queue_that_becomes_owned_lose_no_job, .init = serve_by_proxy,
     .fini = stop_both, .timeout = 300)
{
    answer_everywhere(false, ":7");
}

Test(share_answers, of_a_queue_that_becomes_shared_lose_no_job, .init = serve_by_proxy,
     .fini = stop_both, .timeout = 300)
{
    answer_everywhere(true, ":7");
}

Test(share_answers, of_a_queue_that_becomes_shared_by_priority_lose_no_job, .init = serve_by_proxy,
     .fini = stop_both, .timeout = 300)
{
    by_priority = true;
    answer_everywhere(true, "+x");
}
