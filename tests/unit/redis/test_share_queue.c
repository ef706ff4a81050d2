/* test_share_queue.c - the shared face of the Redis store: many processes, their topics, the bell,
 * who is there, and what has become of the server.
 */
#include "lab/redis/share_store_lab.h"

#include <pthread.h>

/* ---- Jobs ------------------------------------------------------------------------------------ */

SHARE_TEST(share_queue, puts_and_claims_more_topics_than_one_script_names)
{
    struct sharer s = joined();
    struct sharer other = joined();
    static due_change puts[20];
    static char names[20][16];
    size_t got = 0;

    for (int i = 0; i < 20; i++) {
        snprintf(names[i], sizeof names[i], "topic-%d", i);
        puts[i] = put((uint64_t)i + 1, 5 + i);
        puts[i].record.topic = names[i];
    }
    cr_assert_eq(exchange(&s, puts, 20, NULL), 0);
    for (int tries = 0; tries < 20 && got < 20; tries++) {
        cr_assert_eq(claim(&other, 20), 0);
        got += other.n_held;
        cr_expect(other.n_held == 20 - got + other.n_held || other.answer.more == 1);
        static due_change ends[20];
        for (size_t i = 0; i < other.n_held; i++)
            ends[i] = of_held(&other, i, DUE_CHANGE_DROP);
        cr_assert_eq(exchange(&other, ends, other.n_held, NULL), 0);
    }
    cr_expect_eq(got, 20u);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":0\r\n");
    go(&s);
    go(&other);
}

/* One topic never runs dry; what is due in another gets its turn. */
SHARE_TEST(share_queue, forgets_no_topic_while_another_has_more_than_it_takes)
{
    struct sharer s = joined();
    static due_change puts[256];
    due_change rare = put(999, 50);
    size_t claims = 0;

    for (uint64_t i = 0; i < 256; i++)
        puts[i] = put(i + 1, DUE_MS(1));
    cr_assert_eq(exchange(&s, puts, 256, NULL), 0);
    cr_assert_eq(claim(&s, 1), 0);
    struct sharer other = joined();
    rare.record.topic = "rare";
    cr_assert_eq(exchange(&other, &rare, 1, NULL), 0);
    do
        cr_assert_eq(claim(&s, 1), 0);
    while (strcmp(s.topic[0], "rare") != 0 && ++claims < 30);
    cr_expect_lt(claims, 10u);
    go(&s);
    go(&other);
}

SHARE_TEST(share_queue, counts_its_exchanges_and_knows_which_topics_are_entered)
{
    struct sharer s = joined();
    uint64_t before = stats_of(s.store).batches;

    cr_expect_eq(say(&s, put(1, 5)), 0);
    cr_expect(due__redis_topic(inside(s.store), "", 0)->entered);
    cr_expect_not(due__redis_topic(inside(s.store), "other", 5)->entered);
    cr_expect_eq(claim(&s, 1), 0);
    cr_expect_eq(stats_of(s.store).batches, before + 2);
    go(&s);
}

SHARE_TEST(share_queue, reads_what_is_long_by_itself)
{
    struct sharer s = joined();
    static char bytes[200000];
    due_change puts[] = { put(1, 5), put(2, 6), put(3, 7) };

    memset(bytes, 'x', sizeof bytes);
    puts[1].record.data = bytes;
    puts[1].record.len = sizeof bytes;
    cr_assert_eq(exchange(&s, puts, 3, NULL), 0);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:b"), ":1\r\n");
    cr_assert_eq(claim(&s, 3), 0);
    cr_assert_eq(s.n_held, 3u);
    cr_expect_eq(s.len[1], sizeof bytes);
    cr_expect_eq(s.len[0] + s.len[2], 2u);
    for (size_t i = 0; i < 3; i++)
        cr_expect_eq(say(&s, of_held(&s, i, DUE_CHANGE_DROP)), 0);
    go(&s);
}

SHARE_TEST(share_queue, sets_aside_what_is_damaged_or_missing)
{
    struct sharer s = joined();
    static char bytes[20000];
    due_change puts[] = { put(1, 5), put(2, 6), put(3, 7) };

    puts[0].record.data = bytes; /* long, and with an entry */
    puts[0].record.len = sizeof bytes;
    puts[0].record.attempts = puts[1].record.attempts = 1;
    cr_assert_eq(exchange(&s, puts, 3, NULL), 0);
    redisContext *c = redisConnectUnix(server.socket);
    freeReplyObject(
        redisCommand(c, "HSET due:{q}:j %b garbage", puts[0].record.id.byte, (size_t)14));
    freeReplyObject(redisCommand(c, "HDEL due:{q}:j %b", puts[1].record.id.byte, (size_t)14));
    redisFree(c);
    cr_assert_eq(claim(&s, 3), 0);
    cr_expect_eq(s.n_held, 1u);
    cr_expect_eq(s.answer.claimed, 1u);
    cr_expect_eq(s.sequence[0], 3u);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:q"), ":2\r\n");
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:l:"), ":1\r\n");
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:a", "due:{q}:b"), ":0\r\n");
    cr_expect_eq(stats_of(s.store).quarantined, 2u);
    go(&s);
}

/* Jobs of one group, one behind the other. */
static void put_group(struct sharer *s, uint64_t first, size_t n)
{
    due_change puts[9];

    for (size_t i = 0; i < n; i++) {
        puts[i] = put(first + i, 5 + (int64_t)i);
        puts[i].record.group = "g";
        puts[i].record.group_len = 1;
    }
    cr_assert_eq(exchange(s, puts, n, NULL), 0);
}

/* Its length is one byte of what a script is told. */
SHARE_TEST(share_queue, takes_no_group_whose_name_is_too_long)
{
    static const char name[DUE_KEY_MAX + 1];
    struct sharer s = joined();
    due_change longest = put(1, 5);

    longest.record.group = name;
    longest.record.group_len = sizeof name;
    cr_expect_eq(exchange(&s, &longest, 1, NULL), DUE_EINVAL);
    longest.record.group_len--;
    cr_expect_eq(say(&s, longest), 0);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:jg"), ":1\r\n");
    go(&s);
}

static void damage(redisContext *c, uint64_t n)
{
    const due_change job = put(n, 5);

    freeReplyObject(redisCommand(c, "HSET due:{q}:j %b garbage", job.record.id.byte, (size_t)14));
}

/* A server that has lost this script, but not that which claims, gets it anew. */
SHARE_TEST(share_queue, sets_aside_by_a_script_that_the_server_has_lost)
{
    struct sharer s = joined();
    redisContext *c = redisConnectUnix(server.socket);

    put_group(&s, 1, 2);
    damage(c, 1);
    freeReplyObject(redisCommand(c, "SCRIPT FLUSH"));
    freeReplyObject(
        redisCommand(c, "SCRIPT LOAD %b", due__script_work.text, (size_t)due__script_work.len));
    redisFree(c);
    cr_assert_eq(claim(&s, 3), 0);
    cr_expect_eq(s.n_held, 0u);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:q"), ":1\r\n");
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:l:"), ":0\r\n");
    cr_assert_eq(claim(&s, 3), 0);
    cr_expect_eq(s.n_held, 1u, "the next of its group");
    go(&s);
}

/* A full server has no room for its bytes; nothing is lost for that. */
SHARE_TEST(share_queue, sets_nothing_aside_that_cannot_be_kept)
{
    struct sharer s = joined();
    redisContext *c = redisConnectUnix(server.socket);

    put_group(&s, 1, 2);
    damage(c, 1);
    freeReplyObject(redisCommand(c, "CONFIG SET maxmemory 1"));
    cr_assert_eq(claim(&s, 3), 0);
    cr_expect_eq(s.n_held, 0u);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":2\r\n");
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:l:"), ":1\r\n", "until its lease is over");
    freeReplyObject(redisCommand(c, "CONFIG SET maxmemory 0"));
    redisFree(c);
    go(&s);
}

/* One that is rung for it, and does not come, is asked after by whoever rang: so that one is told.
 * All others that wait are awake at the end of the lease of job 9, or were rung for the put. */
SHARE_TEST(share_queue, tells_that_it_rang_for_who_follows_a_job_that_it_sets_aside)
{
    struct sharer s = joined();
    struct sharer other[4] = { joined(), joined(), joined(), joined() };
    redisContext *c = redisConnectUnix(server.socket);

    cr_assert_eq(say(&s, put(9, 5)), 0);
    cr_assert_eq(claim(&s, 1), 0);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(await(&other[i], 1), 0);
    put_group(&s, 1, 2);
    cr_expect_eq(s.answer.rang, 1u);
    damage(c, 1);
    redisFree(c);
    cr_assert_eq(nanosleep(&(struct timespec){ .tv_nsec = 30000000 }, NULL), 0);
    cr_assert_eq(claim(&s, 1), 0);
    cr_expect_eq(s.n_held, 0u);
    cr_expect_eq(s.answer.rang, 1u);
    for (int i = 0; i < 4; i++)
        go(&other[i]);
    go(&s);
}

static int count_job(void *ctx, const due_record *r)
{
    (void)r;
    ++*(size_t *)ctx;
    return 0;
}

/* What stands in a page, and what is said of the jobs, is asked for one after the other. */
SHARE_TEST(share_queue, shows_no_job_that_was_kicked_since_its_page_was_made)
{
    struct sharer s = joined();
    const due_change job = put(1, 5);
    struct due_page dead = { .from_ns = INT64_MIN };
    struct due_page waits = { .topic = "", .from_ns = INT64_MIN };
    size_t shown[2] = { 0 };

    cr_assert_eq(say(&s, job), 0);
    redisContext *c = redisConnectUnix(server.socket);
    freeReplyObject(redisCommand(c, "ZADD due:{q}:dead 1 %b", job.record.id.byte, (size_t)14));
    redisFree(c);
    cr_expect_eq(s.verbs->page(s.store, &dead, 9, count_job, &shown[0], soon(LONG_NS)), 0);
    cr_expect_eq(s.verbs->page(s.store, &waits, 9, count_job, &shown[1], soon(LONG_NS)), 0);
    cr_expect_eq(shown[0], 0u, "it is not dead");
    cr_expect_eq(shown[1], 1u);
    cr_expect_eq(dead.from_ns, 1000, "and is passed over");
    go(&s);
}

/* Who cancels or moves by id need not know the topic; the counts are looked at. */
SHARE_TEST(share_queue, finds_the_topic_of_a_job_that_is_changed_by_its_id)
{
    struct sharer s = joined();
    due_change puts[] = { put(1, 100), put(2, 100) };

    puts[0].record.topic = "a";
    puts[1].record.topic = "b";
    cr_assert_eq(exchange(&s, puts, 2, NULL), 0);
    due_change moves[] = { move(1, 100, 5), drop(2, 100), drop(3, 0) };
    for (int i = 0; i < 3; i++)
        moves[i].record.topic = NULL;
    cr_assert_eq(exchange(&s, moves, 3, NULL), 0);
    cr_expect(s.results[0] == 0 && s.results[1] == 0 && s.results[2] == DUE_ENOENT);
    due_change again = move(1, 5, 9);
    again.record.topic = NULL;
    again.record.attempts = 1;
    cr_expect_eq(say(&s, again), DUE_EAGAIN, "it has no attempts");
    again.record.attempts = 0;
    again.was_ns = 4000;
    cr_expect_eq(say(&s, again), DUE_EAGAIN, "another time");
    again.was_ns = 5;
    cr_expect_eq(say(&s, again), 0);
    cr_assert_eq(claim(&s, 1), 0);
    cr_expect_eq(s.held[0].record.until_ns, 9);
    cr_expect_eq(say(&s, drop(1, 0)), DUE_ENOENT, "in the topic that is said it is not");
    again = drop(1, 0);
    again.record.topic = NULL;
    cr_expect_eq(say(&s, again), DUE_EBUSY);
    go(&s);
}

SHARE_TEST(share_queue, takes_no_change_that_is_not_of_a_shared_queue)
{
    struct sharer s = joined();
    due_change c = put(1, 5);
    int result;

    c.held = 5;
    cr_expect_eq(say(&s, c), DUE_ENOTSUP);
    c = drop(1, 5);
    c.kind = DUE_CHANGE_KEEP;
    cr_expect_eq(say(&s, c), DUE_ENOTSUP);
    c.kind = DUE_CHANGE_BURY;
    cr_expect_eq(say(&s, c), DUE_ENOTSUP);
    cr_expect_eq(s.verbs->exchange(s.store, &c, 257, 1, &result, NULL, see_claimed, &s, &s.answer,
                                   soon(LONG_NS)),
                 DUE_EINVAL);
    cr_expect_eq(say(&s, put(1, 5)), 0);
    go(&s);
}

/* ---- The bell -------------------------------------------------------------------------------- */

static int listen_for(struct sharer *s, int64_t ns)
{
    struct due_heard heard;
    int rc;

    do
        rc = s->verbs->listen(s->store, &heard, soon(ns));
    while (rc == DUE_EAGAIN);
    return rc;
}

REDIS_PROXY_TEST(share_bell, rings_and_may_have_rung_after_each_connection)
{
    struct sharer s = joined_by_proxy();
    struct sharer other = joined();

    cr_assert_eq(await(&s, 1), 0);
    cr_expect_eq(s.answer.alarm_ns, 0);
    cr_expect_eq(listen_for(&s, DUE_MS(20)), 0, "nobody has rung");
    cr_assert_eq(say(&other, put(1, 5)), 0);
    cr_expect_eq(other.answer.rang, 1u);
    cr_expect_eq(listen_for(&s, LONG_NS), 1);
    cr_expect_eq(listen_for(&s, DUE_MS(20)), 0, "once");
    s.verbs->wake(s.store);
    cr_expect_eq(listen_for(&s, LONG_NS), 0, "woken");
    fault_proxy_cut(proxy);
    cr_expect_eq(listen_for(&s, LONG_NS), 1, "cut: a ring may have been missed");
    cr_assert_eq(await(&s, 1), 0);
    cr_expect_eq(s.n_held, 1u);
    go(&s);
    go(&other);
}

REDIS_PROXY_TEST(share_bell, sees_by_itself_that_nobody_is_there_any_more)
{
    struct sharer s = joined_by_proxy();
    struct fault_cell cell = {
        .command = 1, .name = "PING", .where = FAULT_BEFORE, .what = FAULT_STALL
    };

    inside(s.store)->share->bell.every_ns = DUE_MS(30);
    fault_proxy_plan(proxy, NULL, 0);
    for (int64_t end = soon(DUE_MS(150)); due__mono_ns() < end;)
        cr_expect_eq(listen_for(&s, DUE_MS(20)), 0, "it is asked, and answers");
    cr_expect_geq(fault_proxy_commands(proxy), 1u);
    fault_proxy_plan(proxy, &cell, 1);
    struct due_heard heard;
    int64_t end = soon(LONG_NS);
    while (s.verbs->listen(s.store, &heard, soon(DUE_MS(50))) >= 0 && due__mono_ns() < end)
        ;
    cr_expect_lt(due__mono_ns(), end, "it does not answer");
    fault_proxy_go_on(proxy);
    cr_expect_eq(listen_for(&s, LONG_NS), 1);
    go(&s);
}

/* Who waits for topics by name stands in those and in no other. */
SHARE_TEST(share_bell, waits_only_where_the_last_claim_says)
{
    static const char *const a[] = { "a" }, *const b[] = { "b" };
    struct sharer s = joined();
    struct due_claim c = { .topics = a, .topic_count = 1, .need = 1, .lease_ns = 5, .waits = 1 };

    cr_assert_eq(exchange(&s, NULL, 0, &c), 0);
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:w:a"), ":1\r\n");
    c.topics = b;
    cr_assert_eq(exchange(&s, NULL, 0, &c), 0);
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:w:a"), ":0\r\n");
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:w:b"), ":1\r\n");
    cr_assert_eq(await(&s, 1), 0);
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:w:a", "due:{q}:w:b"), ":0\r\n");
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:w"), ":1\r\n");
    c.topics = a;
    cr_assert_eq(exchange(&s, NULL, 0, &c), 0);
    go(&s);
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:w:a", "due:{q}:w", "due:{q}:writers"), ":1\r\n");
}

/* ---- Who is there ---------------------------------------------------------------------------- */

static int count_process(void *ctx, const struct due_process_seen *seen)
{
    size_t *n = ctx;

    cr_expect_eq(seen->pid, getpid());
    cr_expect_gt(seen->seen_ns, DUE_S(1700000000));
    cr_expect_gt(seen->started_ns, DUE_S(1700000000));
    cr_expect_leq(seen->started_ns, seen->seen_ns);
    cr_expect_gt(strlen(seen->host), 0u);
    (*n)++;
    return 0;
}

SHARE_TEST(share_people, are_shown_and_forgotten_after_a_day)
{
    struct sharer s = joined();
    size_t n = 0;

    ASK("HSET", "due:{q}:p", "17", "old 1 1600000000000000 1600000000000000", "18", "old 1 2 3 4",
        "19", "old 1 2 3 4");
    ASK("HSET", "due:{q}:writers", "17:p", "1 1 1", "17:w", "1 1 1");
    ASK("HSET", "due:{q}:c", "17:p", "answer", "17:w", "answer");
    ASK("ZADD", "due:{q}:w", "6000000000000001", "17");
    struct sharer other = joined();
    cr_expect_eq(s.verbs->processes(s.store, count_process, &n, soon(LONG_NS)), 0);
    cr_expect_eq(n, 2u);
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:w", "due:{q}:c"), ":0\r\n");
    cr_expect_str_eq(ASK("HLEN", "due:{q}:writers"), ":4\r\n");
    go(&other);
    n = 0;
    cr_expect_eq(s.verbs->processes(s.store, count_process, &n, soon(LONG_NS)), 0);
    cr_expect_eq(n, 1u);
    ASK("DEL", "due:{q}:owner", "due:{q}:p");
    cr_expect_eq(s.verbs->processes(s.store, count_process, &n, soon(LONG_NS)), 0);
    cr_expect_eq(n, 1u, "it has not lived since");
    int beat = s.verbs->beat(s.store, &(struct due_beat){ 0 }, soon(LONG_NS));
    cr_expect_eq(beat, 0, "%s", due_error_name(beat));
    cr_expect_str_eq(ASK("GET", "due:{q}:owner"), "$8\r\n2 shared\r\n", "a beat puts it back");
    go(&s);
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:owner"), ":0\r\n");
}

SHARE_TEST(share_people, keep_away_from_an_owner_and_an_owner_from_them)
{
    due_store *owner = opened((due_redis_options){ 0 });
    struct sharer s = { .n_held = 0 };
    due_store *store = make((due_redis_options){ 0 }, NULL);

    cr_expect_eq(join_as(&s, store, DUE_MS(500)), DUE_EBUSY);
    cr_expect_not_null(strstr(error.text, "owned by process"), "%s", error.text);
    finish(owner);
    cr_expect_eq(join_as(&s, store, LONG_NS), 0, "%s", error.text);
    due_store *late = make((due_redis_options){ 0 }, NULL);
    int rc = take(late, DUE_MS(500), &info, &error);
    cr_expect_eq(rc, DUE_EBUSY, "%s: %s", due_error_name(rc), error.text);
    cr_expect_not_null(strstr(error.text, "shared by others, such as process"), "%s", error.text);
    go(&s);
    rc = take(late, DUE_MS(500), &info, &error);
    cr_expect_eq(rc, 0, "%s: %s", due_error_name(rc), error.text);
    finish(late);
}

/* What a later version of the library may write. */
SHARE_TEST(share_people, keep_away_from_what_they_do_not_understand)
{
    struct sharer s = joined();
    struct sharer late = { .n_held = 0 };
    due_store *store = make((due_redis_options){ 0 }, NULL);
    size_t n = 0;

    ASK("HSET", "due:{q}:meta", "partitions", "2");
    cr_expect_eq(join_as(&late, store, LONG_NS), DUE_ENOTSUP, "%s", error.text);
    ASK("HSET", "due:{q}:meta", "partitions", "1", "least_reader", "99");
    cr_expect_eq(join_as(&late, store, LONG_NS), DUE_EVERSION, "%s", error.text);
    ASK("HSET", "due:{q}:meta", "least_reader", "2");
    ASK("HSET", "due:{q}:p", "x", "h 1 1 1", "18", "h 1");
    cr_expect_eq(s.verbs->processes(s.store, count_process, &n, soon(LONG_NS)), 0);
    cr_expect_eq(n, 1u, "others are passed over");
    ASK("HDEL", "due:{q}:p", "x", "18");
    cr_expect_eq(join_as(&late, store, LONG_NS), 0, "%s", error.text);
    go(&late);
    go(&s);
}

SHARE_TEST(share_people, know_when_they_are_lost_fenced_or_evicted)
{
    struct sharer s = joined();
    struct sharer other = joined();
    struct sharer third = joined();

    ASK("FLUSHALL");
    cr_expect_eq(say(&s, put(1, 5)), DUE_ELOST);
    cr_expect_eq(s.verbs->beat(s.store, &(struct due_beat){ 0 }, soon(LONG_NS)), DUE_ELOST);
    cr_expect_eq(join_as(&s, s.store, LONG_NS), 0);
    cr_expect_eq(say(&s, put(1, 5)), 0);
    cr_expect_eq(listen_for(&s, LONG_NS), 1, "subscribed by its new name");
    cr_expect_eq(claim(&other, 1), DUE_ELOST, "the queue was made anew");
    cr_expect_eq(join_as(&other, other.store, LONG_NS), 0);
    cr_expect_eq(claim(&other, 1), 0);
    cr_expect_eq(other.n_held, 1u);
    const struct due__share *h = inside(other.store)->share;
    ASK("HSET", "due:{q}:writers", h->lane[0].name, "X", h->lane[1].name, "X");
    cr_expect_eq(say(&other, of_held(&other, 0, DUE_CHANGE_DROP)), DUE_EFENCED);
    cr_expect_eq(claim(&other, 1), DUE_EFENCED);
    ASK("SET", "due:{q}:fence", "7:owner");
    cr_expect_eq(claim(&s, 1), DUE_EFENCED);
    cr_expect_eq(s.verbs->beat(s.store, &(struct due_beat){ 0 }, soon(LONG_NS)), DUE_EFENCED);
    go(&s);
    go(&other);
    go(&third);
}

/* The queue is kept from owners for three beats; no shorter than others want it, who beat less
 * often. */
SHARE_TEST(share_people, keep_the_queue_for_as_long_as_they_live)
{
    struct sharer s = joined();

    for (int i = 0; i < 2; i++) {
        int left_ms = atoi(ASK("PTTL", "due:{q}:owner") + 1);

        cr_expect(left_ms > 10000 && left_ms <= 30000, "%d", left_ms);
        ASK("PEXPIRE", "due:{q}:owner", "1000");
        cr_expect_eq(s.verbs->beat(s.store, &(struct due_beat){ 0 }, soon(LONG_NS)), 0);
    }
    ASK("PEXPIRE", "due:{q}:owner", "100000");
    cr_expect_eq(s.verbs->beat(s.store, &(struct due_beat){ 0 }, soon(LONG_NS)), 0);
    cr_expect_gt(atoi(ASK("PTTL", "due:{q}:owner") + 1), 90000);
    go(&s);
}

/* So many say that they live as seldom as befits so many, also those who came before the others. */
SHARE_TEST(share_people, beat_less_often_the_more_there_are)
{
    struct sharer s = joined();
    struct due_beat beat = { 0 };
    char name[16];

    for (int i = 0; i < 99; i++) {
        snprintf(name, sizeof name, "9%d", i);
        ASK("HSET", "due:{q}:p", name, "host 0 1 1 1");
    }
    cr_expect_eq(s.verbs->beat(s.store, &beat, soon(LONG_NS)), 0);
    cr_expect_eq(beat.renew_ns, DUE_S(200));
    ASK("DEL", "due:{q}:p");
    cr_expect_eq(s.verbs->beat(s.store, &beat, soon(LONG_NS)), 0);
    cr_expect_eq(beat.renew_ns, DUE_S(10));
    go(&s);
}

/* ---- Two lanes ------------------------------------------------------------------------------- */

#define MANY 60

static void *put_many(void *arg)
{
    for (uint64_t i = 1; i <= MANY; i++)
        cr_expect_eq(say(arg, put(i, 5)), 0);
    return NULL;
}

/* One thread puts, another claims and ends: as a queue does. */
SHARE_TEST(share_lanes, are_used_by_two_threads_at_a_time)
{
    static struct sharer putter, worker;
    pthread_t thread;
    size_t done = 0;
    int64_t end = soon(LONG_NS);

    worker = joined();
    putter = worker;
    cr_assert_eq(pthread_create(&thread, NULL, put_many, &putter), 0);
    while (done < MANY && due__mono_ns() < end) {
        static due_change ends[100];
        cr_assert_eq(claim(&worker, 100), 0);
        for (size_t i = 0; i < worker.n_held; i++)
            ends[i] = of_held(&worker, i, DUE_CHANGE_DROP);
        done += worker.n_held;
        if (worker.n_held > 0)
            cr_assert_eq(exchange(&worker, ends, worker.n_held, NULL), 0);
    }
    pthread_join(thread, NULL);
    cr_expect_eq(done, (size_t)MANY);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":0\r\n");
    go(&worker);
}
