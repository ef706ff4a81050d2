/* test_redis_large.c - jobs that are longer than a server takes: refused, and nothing else is. */
#include "lab/redis/redis_store_lab.h"
#include "redis/link/link_inside.h"

#define MIB ((size_t)1 << 20)

static char bytes[3 << 20];

static void serve_no_more_than_a_mebibyte(void)
{
    serve((const char *const[]){ "--proto-max-bulk-len", "1mb", NULL });
}

static due_change put_large(uint64_t sequence, size_t len)
{
    due_change c = put(sequence, 1);

    c.record.data = bytes;
    c.record.len = len;
    return c;
}

static int sum_lengths(void *ctx, const due_record *r)
{
    *(size_t *)ctx += r->len;
    return 0;
}

static size_t stored_bytes(due_store *store)
{
    size_t sum = 0;
    int rc;

    for (int call = 0;
         (rc = store->verbs->load(store, call == 0, 9, sum_lengths, &sum, soon(LONG_NS))) == 1;
         call++)
        ;
    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    return sum;
}

/* With everything beside its payload that a job can have. */
static due_change put_laden(uint64_t sequence, size_t len)
{
    static const due_retry ladder = { .kind = DUE_RETRY_LADDER, .rungs = DUE_RUNGS_MAX };
    static char topic[DUE_TOPIC_LENGTH + 1];
    due_change c = put_large(sequence, len);

    memset(topic, 't', DUE_TOPIC_LENGTH);
    c.record.topic = topic;
    c.record.headers = bytes;
    c.record.headers_len = DUE_HEADERS_MAX;
    c.record.key = bytes;
    c.record.key_len = DUE_KEY_MAX;
    c.record.group = bytes;
    c.record.group_len = DUE_KEY_MAX;
    c.record.retry = &ladder;
    c.record.ttl_ns = c.record.expires_ns = c.record.keep_key_ns = c.record.every_ns = DUE_S(9);
    return c;
}

Test(redis_large, the_longest_is_what_the_server_says, .init = serve_no_more_than_a_mebibyte,
     .fini = stop)
{
    due_store *store = opened((due_redis_options){ 0 });

    cr_assert_eq(info.payload_max, MIB - 2048);
    cr_expect_eq(commit_one(store, put_large(1, info.payload_max), 1), 0);
    cr_expect_eq(commit_one(store, put_laden(2, info.payload_max), 2), 0);
    cr_expect_eq(commit_one(store, put_large(3, info.payload_max + 1), 3), DUE_ELIMIT);
    cr_expect_eq(stored_bytes(store), 2 * info.payload_max);
    finish(store);
}

/* The server cuts the connection in the middle of the batch; the next one tells why. */
REDIS_TEST(redis_large, a_limit_that_was_lowered_refuses_the_batch_and_the_next_goes_on)
{
    due_store *store = opened((due_redis_options){ 0 });

    cr_assert_eq(info.payload_max, 512 * MIB - 2048);
    cr_expect_eq(commit_one(store, put_large(1, 2 * MIB), 1), 0);
    ASK("CONFIG", "SET", "proto-max-bulk-len", "1mb");
    cr_expect_eq(commit_one(store, put_large(2, 2 * MIB), 2), DUE_ELIMIT);
    cr_expect_eq(commit_one(store, put_large(3, 5), 2), 0);
    cr_expect_eq(stored_bytes(store), 2 * MIB + 5);
    finish(store);
}

Test(redis_large, a_queue_refuses_the_job_and_no_other, .init = serve_no_more_than_a_mebibyte,
     .fini = stop)
{
    due_options o = { DUE_OPTIONS_INIT, .name = "q" };
    due_spec large = { DUE_SPEC_INIT, .at_ns = 1, .data = bytes, .len = MIB };
    due_spec three[] = { { DUE_SPEC_INIT, .at_ns = 1, .data = bytes, .len = 7 },
                         large,
                         { DUE_SPEC_INIT, .at_ns = 1, .data = bytes, .len = 7 } };
    due_queue *q;
    due_id id;

    cr_assert_eq(due_redis_open(&o.store, server.url, NULL, &error), 0);
    cr_assert_eq(due_open(&q, &o, &error), 0, "%s", error.text);
    cr_expect_eq(due_enqueue(q, &large, 0, &id), DUE_ELIMIT);
    cr_expect_eq(due_enqueue_batch(q, three, 3, 0, NULL), DUE_ELIMIT);
    cr_expect_eq(due_enqueue(q, &three[0], 0, NULL), 0);
    cr_expect_eq(due_enqueue(q, &three[2], 0, &id), 0);
    cr_expect_eq(due_update(q, id, bytes, MIB), DUE_ELIMIT);
    cr_expect_eq(due_update(q, id, bytes, MIB - 2048), 0);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:j"), ":2\r\n");
    cr_assert_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
    cr_assert_eq(due_free(q), 0);
}

/* Whatever a page was to hold: then they are read one by one. */
REDIS_TEST(redis_large, jobs_of_which_two_are_too_much_for_one_answer_are_read)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { .times = calloc(21, sizeof(unsigned)) };
    struct due__link *link = inside(store)->link;
    int calls = 0;
    int rc;

    for (uint64_t i = 1; i <= 20; i++)
        cr_assert_eq(commit_one(store, put_large(i, 60000), i), 0);
    due__reader_free(link->reader);
    link->reader = due__reader_new(2000, 100000);
    cr_assert_not_null(link->reader);
    do
        rc = store->verbs->load(store, calls == 0, 100, see, &seen, soon(DUE_S(5)));
    while (rc == 1 && ++calls < 100);
    cr_expect_eq(rc, 0, "%s", due_error_name(rc));
    for (int i = 1; i <= 20; i++)
        cr_expect_geq(seen.times[i], 1u, "%d", i);
    free(seen.times);
    free(seen.data);
    finish(store);
}
