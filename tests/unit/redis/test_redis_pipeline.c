/* test_redis_pipeline.c - batches that are formatted while another is in the air. */
#include "lab/redis/redis_proxy_lab.h"

static int prepare_one(due_store *store, const due_change *change, uint64_t number)
{
    return store->verbs->prepare(store, change, 1, number);
}

static int send(due_store *store, uint64_t number)
{
    return store->verbs->send(store, number, soon(LONG_NS));
}

static due_change put_to(const char *topic, uint64_t sequence)
{
    due_change c = put(sequence, (int64_t)sequence);

    c.record.topic = topic;
    return c;
}

/* Whatever has to be asked or mended first is done by commit(). */
REDIS_TEST(redis_pipeline, nothing_is_prepared_or_sent_unless_all_is_well)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct due__redis *s = inside(store);
    due_change one = put(1, 1);
    bool *well[] = { &s->open,    &s->closed,   &s->fenced, &s->lost,
                     &s->rewrite, &s->retaking, &s->below,  &s->probe_due };

    for (size_t i = 0; i < sizeof well / sizeof *well; i++) {
        *well[i] = !*well[i];
        cr_expect_eq(prepare_one(store, &one, 1), DUE_EAGAIN, "%zu", i);
        *well[i] = !*well[i];
        cr_expect_eq(prepare_one(store, &one, 1), 0, "%zu", i);
        *well[i] = !*well[i];
        cr_expect_eq(send(store, 1), DUE_EAGAIN, "%zu", i);
        *well[i] = !*well[i];
    }
    s->unconfirmed = 1;
    cr_expect_eq(prepare_one(store, &one, 2), DUE_EAGAIN);
    s->unconfirmed = 0;
    cr_expect_eq(prepare_one(store, &one, 1), 0);
    cr_expect_eq(send(store, 1), 0);
    cr_expect_eq(commit_one(store, one, 1), 0);
    finish(store);
}

REDIS_TEST(redis_pipeline, only_the_next_batch_is_sent_and_only_if_it_was_prepared)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct due__redis *s = inside(store);
    due_change one = put(1, 1);

    cr_expect_eq(send(store, 1), DUE_EAGAIN, "nothing was prepared");
    cr_assert_eq(prepare_one(store, &one, 2), 0);
    cr_expect_eq(send(store, 1), DUE_EAGAIN, "it was another");
    cr_assert_eq(prepare_one(store, &one, 1), 0);
    s->doubt = 1;
    cr_expect_eq(send(store, 1), DUE_EAGAIN, "it may have landed");
    s->doubt = 0;
    cr_assert_eq(prepare_one(store, &one, 1), 0);
    s->armed = false;
    cr_expect_eq(send(store, 1), DUE_EAGAIN, "no guard stands behind the one before");
    s->armed = true;
    cr_assert_eq(prepare_one(store, &one, 1), 0);
    s->held_ns = 0;
    s->checked_ns = 0;
    cr_expect_eq(send(store, 1), DUE_EAGAIN, "another may be the owner");
    cr_assert_eq(commit_one(store, one, 1), 0);
    cr_assert_eq(prepare_one(store, &one, 1), 0);
    cr_expect_eq(send(store, 1), DUE_EAGAIN, "it has landed");
    cr_expect_eq(stats_of(store).batches, 1u);
    finish(store);
}

REDIS_TEST(redis_pipeline, a_prepared_batch_does_nothing_once_the_fence_was_written)
{
    due_store *store = opened((due_redis_options){ .lease_ns = DUE_S(1) });
    due_change one = put(1, 1);
    due_change two = put(2, 2);
    int64_t held = 0;

    cr_assert_eq(store->verbs->renew(store, &held, soon(LONG_NS)), 0);
    cr_assert_eq(prepare_one(store, &one, 1), 0);
    cr_assert_eq(send(store, 1), 0);
    cr_expect_eq(prepare_one(store, &two, 2), 0);
    cr_expect_eq(commit_one(store, one, 1), 0);
    nap(DUE_MS(1100));
    inside(store)->held_ns = due__boot_ns() + DUE_S(60); /* it thinks that it is alone */
    struct due_store_info own = info;
    due_store *other = opened((due_redis_options){ 0 });
    info = own;
    cr_expect_eq(send(store, 2), 0);
    cr_expect_eq(commit_one(store, two, 2), DUE_EFENCED);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1\r\n");
    finish(store);
    finish(other);
}

/* The guard behind the batch before it was set only after the fence was written, so that this one
 * would not be held back by it. */
REDIS_PROXY_TEST(redis_pipeline, a_prepared_batch_is_not_sent_behind_a_guard_that_came_too_late)
{
    struct fault_cell cell = {
        .command = 1, .name = "WATCH", .where = FAULT_BEFORE, .what = FAULT_STALL
    };
    due_store *store = opened_by_proxy((due_redis_options){ .lease_ns = DUE_S(3600) });
    due_change one = put(1, 1);
    due_change two = put(2, 2);

    fault_proxy_plan(proxy, &cell, 1);
    cr_assert_eq(prepare_one(store, &one, 1), 0);
    cr_assert_eq(send(store, 1), 0);
    cr_expect_eq(prepare_one(store, &two, 2), 0);
    cr_assert(fault_proxy_wait(proxy, 1, 5000));
    ASK("DEL", "due:{q}:owner");
    struct due_store_info own = info;
    due_store *other = opened((due_redis_options){ 0 });
    info = own;
    fault_proxy_go_on(proxy);
    cr_expect_eq(commit_one(store, one, 1), 0);
    cr_expect_eq(send(store, 2), DUE_EAGAIN);
    cr_expect_eq(commit_one(store, two, 2), DUE_EFENCED);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1\r\n");
    finish(store);
    finish(other);
}

REDIS_TEST(redis_pipeline, nothing_is_sent_that_was_prepared_for_a_lost_connection)
{
    due_store *store = opened((due_redis_options){ 0 });
    due_change one = put(1, 1);

    cr_expect_eq(prepare_one(store, &one, 1), 0);
    due__link_down(inside(store)->link);
    cr_expect_eq(send(store, 1), DUE_EAGAIN);
    cr_expect_eq(store->verbs->ready(store, soon(LONG_NS)), 0);
    cr_expect_eq(send(store, 1), DUE_EAGAIN, "it is forgotten");
    cr_expect_eq(commit_one(store, one, 1), 0);
    cr_expect_eq(stats_of(store).resent, 0u);
    finish(store);
}

REDIS_TEST(redis_pipeline, a_call_of_another_kind_comes_first_and_alone)
{
    due_store *store = opened((due_redis_options){ 0 });
    due_change one = put(1, 1);
    due_change two = put(2, 2);
    int64_t held = 0;

    cr_assert_eq(prepare_one(store, &one, 1), 0);
    cr_assert_eq(send(store, 1), 0);
    cr_assert_eq(prepare_one(store, &two, 2), 0);
    cr_expect_eq(store->verbs->renew(store, &held, soon(LONG_NS)), 0);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1\r\n");
    cr_expect_eq(commit_one(store, one, 1), 0);
    cr_expect_eq(send(store, 2), DUE_EAGAIN);
    cr_expect_eq(commit_one(store, two, 2), 0);
    cr_expect_eq(stats_of(store).batches, 2u);
    finish(store);
}

/* Its answer was read, and nobody has heard it, when the server lost it: after DUE_ELOST the queue
 * takes it for one that has not landed. */
REDIS_TEST(redis_pipeline, one_that_landed_unheard_and_was_lost_is_sent_again)
{
    due_store *store = opened((due_redis_options){ 0 });
    due_change one = put(1, 1);
    due_change two = put(2, 2);
    due_change three = put(3, 3);
    struct seen seen = { 0 };

    cr_assert_eq(commit_one(store, one, 1), 0);
    cr_assert_eq(prepare_one(store, &two, 2), 0);
    cr_assert_eq(send(store, 2), 0);
    cr_expect_eq(load_all(store, 1, &seen), 0);
    cr_expect_eq(inside(store)->landed, 2u, "the load did not wait for it");
    redis_server_kill(&server);
    cr_assert_eq(redis_server_run(&server), 0);
    cr_expect_eq(store->verbs->ready(store, soon(LONG_NS)), DUE_ELOST);
    cr_expect_eq(commit_one(store, two, 2), 0);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":1\r\n");
    due__link_down(inside(store)->link);
    cr_expect_eq(commit_one(store, three, 3), 0);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":2\r\n");
    seen.n = 0;
    cr_expect_eq(load_all(store, 1, &seen), 0);
    cr_expect_eq(seen.n, 2u);
    free(seen.data);
    finish(store);
}

/* The list of topics must not lack one because a batch that would have entered it did not land. */
REDIS_TEST(redis_pipeline, a_topic_is_entered_by_a_batch_that_lands)
{
    due_store *store = opened((due_redis_options){ 0 });
    due_change a = put_to("a", 1);
    due_change a_again = put_to("a", 2);
    due_change both[] = { put_to("b", 3), a };

    redis_server_freeze(&server);
    cr_assert_eq(prepare_one(store, &a, 1), 0);
    cr_assert_eq(send(store, 1), 0);
    cr_expect_eq(prepare_one(store, &a_again, 2), 0);
    due__link_down(inside(store)->link);
    redis_server_thaw(&server);
    cr_expect_eq(commit_one(store, a, 1), 0);
    cr_expect_eq(commit_one(store, a_again, 2), 0);
    cr_expect_str_eq(ASK("HEXISTS", "due:{q}:topics", "a"), ":1\r\n");

    both[1].kind = DUE_CHANGE_DROP;
    both[1].was_ns = 1;
    ASK("CONFIG", "SET", "maxmemory", "1");
    cr_expect_eq(commit(store, both, 2, 3), DUE_ENOSPC);
    cr_expect_eq(commit_one(store, both[1], 3), 0);
    ASK("CONFIG", "SET", "maxmemory", "0");
    cr_expect_eq(commit_one(store, both[0], 4), 0);
    cr_expect_str_eq(ASK("HEXISTS", "due:{q}:topics", "b"), ":1\r\n");
    finish(store);
}
