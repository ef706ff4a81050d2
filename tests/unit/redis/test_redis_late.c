/* test_redis_late.c - what was sent on a connection that was given up, and reaches the server after
 * all.
 */
#include "lab/redis/redis_proxy_lab.h"

/* The batch @number is sent, and stops on its way; the client gives the connection up. */
static void send_in_vain(due_store *store, const due_change *c, uint64_t number)
{
    struct fault_cell cell = { .command = 1, .where = FAULT_BEFORE, .what = FAULT_STALL };
    int64_t end = soon(DUE_MS(60));

    fault_proxy_plan(proxy, &cell, 1);
    cr_assert_eq(store->verbs->commit(store, c, 1, number, end), DUE_EINDOUBT);
    cr_assert(fault_proxy_wait(proxy, 1, 5000));
    due__link_down(inside(store)->link);
}

/* The number of the last batch, as the server has it. */
static uint64_t number_there(void)
{
    char writer[24];

    snprintf(writer, sizeof writer, "%llu", (unsigned long long)info.writer);
    const char *answer = ASK("HGET", "due:{q}:writers", writer);
    const char *text = strchr(answer, '\n');
    return text != NULL ? strtoull(text + 1, NULL, 10) : 0;
}

/* Sent again, it has landed, and the job is gone since: the job must not come back. */
REDIS_PROXY_TEST(redis_late, batch_does_not_land_a_second_time)
{
    due_store *store = opened_by_proxy((due_redis_options){ 0 });
    due_change c = put(2, 5);

    cr_assert_eq(commit_one(store, put(1, 5), 1), 0);
    send_in_vain(store, &c, 2);
    cr_expect_eq(commit_one(store, c, 2), 0);
    cr_expect_eq(commit_one(store, drop(2, 5), 3), 0);
    cr_assert(fault_proxy_settle(proxy, 5000));
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1\r\n");
    cr_expect_str_eq(ASK("ZCARD", "due:{q}:t:"), ":1\r\n");
    cr_expect_eq(number_there(), 3u);
    cr_expect_eq(store->verbs->ready(store, soon(LONG_NS)), 0);
    finish(store);
}

/* It lands between the look that says that it has not and the batch that is sent again. */
REDIS_PROXY_TEST(redis_late, batch_that_lands_before_it_is_sent_again_lands_once)
{
    due_store *store = opened_by_proxy((due_redis_options){ 0 });
    due_change c = put(2, 5);

    send_in_vain(store, &c, 2);
    cr_assert_eq(store->verbs->ready(store, soon(LONG_NS)), 0);
    cr_expect_eq(number_there(), 0u);
    cr_assert(fault_proxy_settle(proxy, 5000));
    cr_expect_eq(number_there(), 2u);
    cr_expect_eq(commit_one(store, c, 2), 0);
    cr_expect_eq(stats_of(store).batches, 1u);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1\r\n");
    finish(store);
}

/* The script that drops jobs while the server is full: a key it frees can be another job's by
 * then. */
REDIS_PROXY_TEST(redis_late, script_does_not_land_a_second_time)
{
    due_store *store = opened_by_proxy((due_redis_options){ 0 });
    struct fault_cell eval = {
        .command = 1, .name = "EVAL", .where = FAULT_BEFORE, .what = FAULT_STALL
    };
    due_change first = put(1, 5);
    due_change gone = drop(1, 5);
    due_change next = put(2, 5);

    first.record.key = gone.record.key = next.record.key = "key";
    first.record.key_len = gone.record.key_len = next.record.key_len = 3;
    cr_assert_eq(commit_one(store, first, 1), 0);
    ASK("CONFIG", "SET", "maxmemory", "1");
    fault_proxy_plan(proxy, &eval, 1);
    cr_assert_eq(store->verbs->commit(store, &gone, 1, 2, soon(DUE_MS(200))), DUE_EINDOUBT);
    cr_assert(fault_proxy_wait(proxy, 1, 5000));
    due__link_down(inside(store)->link);
    cr_expect_eq(commit_one(store, gone, 2), 0);
    ASK("CONFIG", "SET", "maxmemory", "0");
    cr_expect_eq(commit_one(store, next, 3), 0);
    cr_assert(fault_proxy_settle(proxy, 5000));
    cr_expect_str_eq(ASK("HEXISTS", "due:{q}:k", "key"), ":1\r\n");
    cr_expect_eq(number_there(), 3u);
    cr_expect_eq(store->verbs->ready(store, soon(LONG_NS)), 0);
    finish(store);
}
