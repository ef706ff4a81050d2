/* test_redis_batch.c - batches in doubt, and on a full server. */
#define _GNU_SOURCE
#include "redis/link/link_inside.h"
#include "lab/redis/redis_proxy_lab.h"
#include "lab/redis/redis_user.h"

/* ---- What is no batch ---- */

/* Of the longest that a job can have test_redis_large.c puts everything. */
REDIS_TEST(redis_batch, of_what_no_queue_sends_is_refused)
{
    static char bytes[DUE_HEADERS_MAX + 1];
    char topic[DUE_TOPIC_LENGTH + 2];
    due_store *store = opened((due_redis_options){ 0 });
    due_change c[7];

    memset(topic, 't', sizeof topic);
    topic[DUE_TOPIC_LENGTH + 1] = '\0';
    for (uint64_t i = 0; i < 7; i++)
        c[i] = put(i + 1, 1);
    c[0].record.key_len = DUE_KEY_MAX + 1;
    c[1].record.headers_len = DUE_HEADERS_MAX + 1;
    c[2].record.group_len = DUE_KEY_MAX + 1;
    c[3].record.topic = NULL;
    c[4].record.topic = topic;
    c[5].kind = DUE_CHANGE_DROP;
    c[5].record.topic = NULL;
    for (size_t i = 0; i < 6; i++) {
        c[i].record.key = c[i].record.group = c[i].record.headers = bytes;
        cr_expect_eq(commit_one(store, c[i], 1), DUE_EINVAL, "%zu", i);
    }
    cr_expect_eq(store->verbs->prepare(store, c + 6, 1, 0), DUE_EINVAL, "it has no number");
    cr_expect_eq(commit(store, c + 6, 0, 1), DUE_EINVAL, "it is empty");
    cr_expect_eq(commit_one(store, c[6], 1), 0, "nothing is left of those before");
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1\r\n");
    finish(store);
}

REDIS_TEST(redis_batch, of_as_many_changes_as_was_said_is_taken_and_of_more_not)
{
    static due_change c[2000];
    due_store *store = opened((due_redis_options){ 0 });

    cr_assert_lt(info.batch_changes, 2000u);
    for (uint64_t i = 0; i < 2000; i++)
        c[i] = put(i + 1, 1);
    cr_expect_eq(commit(store, c, info.batch_changes + 1, 1), DUE_EINVAL);
    cr_expect_eq(commit(store, c, info.batch_changes, 1), 0);
    finish(store);
}

/* ---- Batches in doubt ------------------------------------------------------------------------ */

REDIS_TEST(redis_batch, that_landed_unheard_is_not_sent_again)
{
    due_store *store = opened((due_redis_options){ 0 });
    due_change c = put(1, 1);

    redis_server_freeze(&server);
    cr_expect_eq(store->verbs->commit(store, &c, 1, 1, soon(DUE_MS(20))), DUE_EINDOUBT);
    due__link_down(inside(store)->link);
    redis_server_thaw(&server);
    cr_expect_eq(commit_one(store, c, 1), 0);
    cr_expect_eq(stats_of(store).resent, 0u);
    cr_expect_eq(stats_of(store).batches, 1u);
    cr_expect_eq(stats_of(store).connects, 2u);
    finish(store);
}

REDIS_TEST(redis_batch, in_the_air_is_heard_in_the_next_call)
{
    due_store *store = opened((due_redis_options){ 0 });
    due_change c = put(1, 1);

    redis_server_freeze(&server);
    cr_expect_eq(store->verbs->commit(store, &c, 1, 1, soon(DUE_MS(20))), DUE_EINDOUBT);
    cr_expect_eq(store->verbs->commit(store, &c, 1, 1, 0), DUE_EINDOUBT);
    cr_expect_eq(store->verbs->ready(store, 0), 0);
    redis_server_thaw(&server);
    cr_expect_eq(store->verbs->ready(store, soon(LONG_NS)), 0);
    cr_expect_eq(commit_one(store, c, 1), 0);
    cr_expect_eq(stats_of(store).connects, 1u);
    cr_expect_eq(stats_of(store).batches, 1u);
    finish(store);
}

Test(redis_batch, that_did_not_land_is_sent_again, .fini = stop, .timeout = 60)
{
    serve((const char *const[]){ "--appendonly", "yes", "--appendfsync", "always", NULL });
    due_store *store = opened((due_redis_options){ .require = DUE_DURABLE_ALWAYS });
    due_change c = put(2, 1);

    cr_expect_eq(info.batch_changes, 1024u);
    cr_assert_eq(commit_one(store, put(1, 1), 1), 0);
    redis_server_freeze(&server);
    cr_expect_eq(store->verbs->commit(store, &c, 1, 2, soon(DUE_MS(20))), DUE_EINDOUBT);
    redis_server_kill(&server);
    cr_expect_eq(store->verbs->commit(store, &c, 1, 2, soon(DUE_MS(20))), DUE_EINDOUBT);
    cr_assert_eq(redis_server_run(&server), 0);
    cr_expect_eq(commit_one(store, c, 2), 0);
    cr_expect_eq(stats_of(store).resent, 1u);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":2\r\n");
    finish(store);
}

REDIS_TEST(redis_batch, that_landed_before_the_fence_fell_has_landed)
{
    due_store *store = opened((due_redis_options){ .lease_ns = DUE_S(1) });
    due_change c = put(1, 1);

    redis_server_freeze(&server);
    cr_expect_eq(store->verbs->commit(store, &c, 1, 1, soon(DUE_MS(20))), DUE_EINDOUBT);
    due__link_down(inside(store)->link);
    redis_server_thaw(&server);
    nap(DUE_MS(1100));
    due_store *other = opened((due_redis_options){ 0 });
    cr_expect_eq(info.jobs, 1u);
    cr_expect_eq(commit_one(store, c, 1), 0);
    cr_expect_eq(commit_one(store, c, 2), DUE_EFENCED);
    finish(store);
    finish(other);
}

REDIS_TEST(redis_batch, of_a_stalled_server_gives_the_connection_up_and_goes_on)
{
    due_store *store = opened((due_redis_options){ .answer_ns = DUE_MS(50) });
    due_change c = put(1, 1);

    redis_server_freeze(&server);
    cr_expect_eq(store->verbs->commit(store, &c, 1, 1, soon(DUE_MS(300))), DUE_EINDOUBT);
    redis_server_thaw(&server);
    cr_expect_eq(commit_one(store, c, 1), 0);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1\r\n");
    finish(store);
}

/* After a loss what was not told yet is sent again. */
REDIS_TEST(redis_batch, that_has_landed_and_was_told_is_counted_as_told)
{
    due_store *store = opened((due_redis_options){ 0 });

    for (uint64_t number = 1; number <= 3; number++) {
        cr_expect_eq(commit_one(store, put(number, 1), number), 0);
        cr_expect_eq(inside(store)->told, number);
        cr_expect_eq(inside(store)->counted, number);
    }
    finish(store);
}

REDIS_TEST(redis_batch, waits_for_replicas)
{
    due_store *store =
        opened((due_redis_options){ .wait_replicas = 1, .wait_replicas_ns = DUE_MS(20) });

    cr_expect_eq(commit_one(store, put(1, 1), 1), DUE_EINDOUBT);
    cr_expect_eq(commit_one(store, put(1, 1), 1), DUE_EINDOUBT);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1\r\n");
    cr_expect_eq(stats_of(store).batches, 1u);
    inside(store)->set.wait_replicas = 0;
    cr_expect_eq(commit_one(store, put(1, 1), 1), 0);
    finish(store);
}

/* What the server answers to a batch that is sent for the first time, or, having landed, for its
 * confirmation alone. */
REDIS_PROXY_TEST(redis_batch, waits_for_all_of_several_replicas)
{
    static const struct {
        const char *text;
        int rc;
    } answers[] = { { ":1", DUE_EINDOUBT }, { ":2", 0 }, { ":3", 0 } };
    due_store *store =
        opened_by_proxy((due_redis_options){ .wait_replicas = 2, .wait_replicas_ns = DUE_MS(1) });

    for (uint64_t i = 0; i < 3; i++) {
        struct fault_cell cell = { .command = 1,
                                   .name = "WAIT",
                                   .where = FAULT_SENT,
                                   .what = FAULT_REPLACE,
                                   .text = answers[i].text };
        fault_proxy_plan(proxy, &cell, 1);
        cr_expect_eq(commit_one(store, put(i, 1), i + 1), answers[i].rc, "%s", cell.text);
        cr_expect_eq(fault_proxy_struck(proxy), 1u);
        if (answers[i].rc == 0)
            continue;
        fault_proxy_plan(proxy, &cell, 1);
        cr_expect_eq(commit_one(store, put(i, 1), i + 1), DUE_EINDOUBT, "one is too few");
        cell.text = ":2";
        fault_proxy_plan(proxy, &cell, 1);
        cr_expect_eq(commit_one(store, put(i, 1), i + 1), 0);
    }
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":3\r\n");
    finish(store);
}

REDIS_TEST(redis_batch, asks_for_as_many_replicas_as_are_wanted)
{
    static const char wait[] = "$4\r\nWAIT\r\n$1\r\n3\r\n$1\r\n7\r\n";
    due_store *store =
        opened((due_redis_options){ .wait_replicas = 3, .wait_replicas_ns = DUE_MS(7) });
    due_change c = put(1, 1);

    cr_assert_eq(store->verbs->prepare(store, &c, 1, 1), 0);
    const struct due__bytes *output = &inside(store)->link->output;
    cr_expect_not_null(memmem(output->at, output->len, wait, sizeof wait - 1));
    finish(store);
}

REDIS_TEST(redis_batch, returns_at_once_when_time_is_up_or_interrupted)
{
    due_store *store = opened((due_redis_options){ 0 });
    due_change c = put(1, 1);

    store->verbs->interrupt(store);
    redis_server_freeze(&server);
    cr_expect_eq(store->verbs->commit(store, &c, 1, 1, soon(LONG_NS)), DUE_EINDOUBT);
    redis_server_thaw(&server);
    cr_expect_eq(commit_one(store, c, 1), 0);
    redis_server_kill(&server);
    cr_expect_eq(store->verbs->commit(store, &c, 1, 2, 0), DUE_EAGAIN);
    store->verbs->interrupt(store);
    cr_expect_eq(store->verbs->ready(store, soon(LONG_NS)), DUE_EAGAIN);
    due_redis_free(store);
}

REDIS_TEST(redis_batch, says_when_others_use_its_keys)
{
    due_store *store = opened((due_redis_options){ 0 });

    ASK("SET", "due:{q}:j", "not ours");
    cr_expect_eq(commit_one(store, put(1, 1), 1), DUE_ECORRUPT);
    ASK("DEL", "due:{q}:j");
    cr_expect_eq(commit_one(store, put(2, 1), 1), 0);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1\r\n");
    ASK("SET", "due:{q}:j", "not ours");
    finish(store);
    store = make((due_redis_options){ 0 }, NULL);
    cr_expect_eq(take(store, LONG_NS, &info, &error), DUE_ECORRUPT);
    due_redis_free(store);
}

/* ---- A full server --------------------------------------------------------------------------- */

REDIS_TEST(redis_full, refuses_jobs_and_can_be_drained_and_taken_over)
{
    due_store *store = opened((due_redis_options){ .lease_ns = DUE_MS(500) });
    uint64_t number = fill(store, 1000, 1000, 1000, 1);
    int64_t held = 0;
    due_change both[] = { put(2000, 5), drop(1, 1000) };
    due_change drops[100];

    ASK("CONFIG", "SET", "maxmemory", "1");
    cr_expect_eq(commit_one(store, put(2000, 5), number), DUE_ENOSPC);
    cr_expect_eq(commit(store, both, 2, number), DUE_ENOSPC);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1000\r\n");
    cr_expect_eq(store->verbs->renew(store, &held, soon(LONG_NS)), 0);
    for (uint64_t i = 0; i < 100; i++)
        drops[i] = drop(i + 1, (int64_t)(i + 1) * 1000);
    cr_expect_eq(commit(store, drops, 100, number), 0);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":900\r\n");
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:t:"), ":900\r\n");
    nap(DUE_MS(600));
    due_store *other = opened((due_redis_options){ 0 });
    cr_expect_eq(commit(store, drops, 100, number + 1), DUE_EFENCED);
    cr_expect_eq(other->verbs->renew(other, &held, soon(LONG_NS)), 0);
    ASK("CONFIG", "SET", "maxmemory", "0");
    cr_expect_eq(commit_one(other, put(1, 5), 1), 0);
    finish(store);
    finish(other);
}

/* Who may not run the script that takes over all the same hears what is wrong with the server. */
REDIS_TEST(redis_full, is_said_to_be_full_where_scripts_are_forbidden)
{
    char url[256];

    ASK("ACL", "SETUSER", "due", "reset", "on", ">canary", "~due:{q}:*", REDIS_USER_MAY, "-eval");
    ASK("CONFIG", "SET", "maxmemory", "1");
    snprintf(url, sizeof url, "unix://due:canary@%s", server.socket);
    due_store *store = make((due_redis_options){ 0 }, url);
    cr_expect_eq(take(store, LONG_NS, &info, &error), DUE_ENOSPC, "%s", error.text);
    cr_expect_not_null(strstr(error.text, "full"), "%s", error.text);
    due_redis_free(store);
}
