/* test_redis_unlisted.c - topics that the key `topics` has lost are found by their jobs. */
#include "lab/redis/redis_proxy_lab.h"

#define JOBS   2000u
#define TOPICS 40 /* four of which have dead jobs only, and are not listed */

static void name_topic(due_change *c, char name[8], uint64_t i)
{
    snprintf(name, 8, "%d", (int)(i % TOPICS));
    c->record.topic = name;
}

/* Jobs of many topics, one of ten dead, by an owner that is gone; the next one has read nothing. */
static void fill_topics(struct seen *seen)
{
    due_store *store = opened((due_redis_options){ 0 });
    char name[200][8];
    due_change changes[200];

    for (uint64_t i = 0, number = 1; i < JOBS; number++) {
        for (size_t n = 0; n < 200; n++, i++) {
            changes[n] = i % 10 == 9 ? dead(i + 1, 5000) : put(i + 1, 5000);
            name_topic(&changes[n], name[n], i);
        }
        cr_assert_eq(commit(store, changes, 200, number), 0);
    }
    finish(store);
    *seen = (struct seen){ .times = calloc(JOBS + 100, sizeof(unsigned)) };
    logged[0] = '\0';
}

static due_store *filled(struct seen *seen)
{
    fill_topics(seen);
    return opened((due_redis_options){ 0 });
}

static void expect_all(const struct seen *seen)
{
    for (uint64_t i = 1; i <= JOBS; i++)
        cr_assert_eq(seen->times[i], 1u, "job %d: %u times", (int)i, seen->times[i]);
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:q"), ":0\r\n");
}

static void done(due_store *store, struct seen *seen)
{
    free(seen->times);
    free(seen->data);
    finish(store);
}

/* How often the server was told of a topic. */
static long enterings(void)
{
    const char *at = strstr(ASK("INFO", "commandstats"), "cmdstat_hsetnx:calls=");

    return at != NULL ? atol(strchr(at, '=') + 1) : 0;
}

/* Every job of a topic that is missing, or of all; a tenth is dead, and not hidden. */
static void lose(const char *topic, const char *told)
{
    struct seen seen;
    due_store *store = filled(&seen);
    due_change fresh = put(JOBS + 1, 9000);

    ASK(topic != NULL ? "HDEL" : "DEL", "due:{q}:topics", topic);
    long entered = enterings();
    cr_expect_eq(load_all(store, 100, &seen), 0);
    cr_expect_eq(enterings() - entered, topic != NULL ? 1 : 36, "each is entered once");
    expect_all(&seen);
    cr_expect_not_null(strstr(logged, told), "%s", logged);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:topics"), ":36\r\n");
    cr_expect_eq(inside(store)->load->n_unlisted, topic != NULL ? 1u : 36u, "each is noted once");
    fresh.record.topic = "7";
    entered = enterings();
    cr_assert_eq(commit_one(store, fresh, 1), 0);
    cr_expect_eq(enterings(), entered, "it is known to be listed");
    logged[0] = '\0';
    long before = scans();
    cr_expect_eq(load_all(store, 100, &seen), 0);
    cr_expect_eq(scans(), before, "all is listed again");
    cr_expect_str_empty(logged);
    done(store, &seen);
    ASK("FLUSHALL");
}

REDIS_TEST(redis_unlisted, topics_are_found_by_their_jobs)
{
    lose(NULL, "1800 jobs stood in topics that were missing in due:{q}:topics");
    lose("7", "50 jobs stood in topics that were missing");
}

/* The new owner enters the topic again with a job of its own, before or while it reads. */
REDIS_TEST(redis_unlisted, a_topic_is_found_behind_a_job_that_is_new_in_it)
{
    for (int calls = 0; calls < 30; calls += 7) {
        struct seen seen;
        due_store *store = filled(&seen);
        due_change fresh = put(JOBS + 1, 9000);
        int rc = 1;

        fresh.record.topic = "7";
        ASK("HDEL", "due:{q}:topics", "7");
        for (int call = 0; rc == 1; call++) {
            if (call == calls)
                cr_assert_eq(commit_one(store, fresh, 1), 0);
            rc = store->verbs->load(store, call == 0, 100, see, &seen, soon(LONG_NS));
        }
        cr_expect_eq(rc, 0);
        cr_expect_leq(seen.times[JOBS + 1], 1u);
        expect_all(&seen);
        if (calls > 0) /* else it is listed when the load begins */
            cr_expect_not_null(strstr(logged, "50 jobs stood in topics"), "%d: %s", calls, logged);
        done(store, &seen);
        ASK("FLUSHALL");
    }
}

/* The jobs come all the same, and the next load enters them. */
REDIS_PROXY_TEST(redis_unlisted, topics_are_read_if_they_cannot_be_entered)
{
    struct fault_cell refuse = { .command = 1,
                                 .name = "HSETNX",
                                 .where = FAULT_BEFORE,
                                 .what = FAULT_REFUSE,
                                 .text =
                                     "-OOM command not allowed when used memory > 'maxmemory'." };
    struct seen seen;

    fill_topics(&seen);
    due_store *store = opened_by_proxy((due_redis_options){ 0 });
    ASK("DEL", "due:{q}:topics");
    fault_proxy_plan(proxy, &refuse, 1);
    cr_expect_eq(load_all(store, 100, &seen), 0);
    cr_expect_eq(fault_proxy_struck(proxy), 1u);
    expect_all(&seen);
    cr_expect_not_null(strstr(logged, "1800 jobs stood in topics"), "%s", logged);
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:topics"), ":0\r\n");
    memset(seen.times, 0, (JOBS + 1) * sizeof *seen.times);
    cr_expect_eq(load_all(store, 100, &seen), 0);
    expect_all(&seen);
    cr_expect_str_eq(ASK("HLEN", "due:{q}:topics"), ":36\r\n");
    done(store, &seen);
}

static unsigned told;

static void count_told(void *queue, enum due_log_level level, const char *text)
{
    (void)queue;
    (void)level;
    told += strstr(text, "1 records that stood in no topic") != NULL;
}

/* The last page of all records shows both: the topic is read, and then the end comes once more. */
REDIS_TEST(redis_unlisted, topics_do_not_make_it_tell_twice_what_stood_nowhere)
{
    struct due_store_open how = { .name = "q", .until_ns = soon(LONG_NS), .log = count_told };
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { 0 };
    char name[8];

    for (uint64_t i = 1; i <= 9; i++) {
        due_change c = put(i, 5000);

        name_topic(&c, name, i % 3);
        cr_assert_eq(commit_one(store, c, i), 0);
    }
    finish(store);
    store = make((due_redis_options){ 0 }, NULL);
    cr_assert_eq(store->verbs->open(store, &how, &info, &error), 0, "%s", error.text);
    ASK("HDEL", "due:{q}:topics", "1");
    ASK("ZPOPMIN", "due:{q}:t:2");
    cr_expect_eq(load_all(store, 100, &seen), 0);
    cr_expect_eq(seen.n, 8u);
    cr_expect_eq(told, 1u);
    free(seen.data);
    finish(store);
}

/* While batches come between, and the connection breaks: each may begin the look anew. */
REDIS_TEST(redis_unlisted, topics_are_found_while_batches_come_between)
{
    struct seen seen;
    due_store *store = filled(&seen);
    uint64_t number = 1;
    int rc = 1;

    ASK("DEL", "due:{q}:topics");
    for (int call = 0; rc == 1 || rc == DUE_EAGAIN; call++) {
        rc = store->verbs->load(store, call == 0, 100, see, &seen,
                                soon(call % 3 == 0 ? DUE_MS(1) : LONG_NS));
        cr_assert_eq(commit_one(store, put(JOBS + 1 + number % 50, 5 + call), number), 0);
        number++;
        if (call % 5 == 4)
            due__link_down(inside(store)->link);
    }
    cr_expect_eq(rc, 0);
    for (uint64_t i = 1; i <= JOBS; i++)
        cr_assert_gt(seen.times[i], 0u, "job %d", (int)i);
    done(store, &seen);
}
