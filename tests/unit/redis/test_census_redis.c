/* How much a shared queue in Redis holds, and who has it open. */
#include <unistd.h>

#include "due/metrics.h"
#include "lab/redis/stored_redis_lab.h"
#include "lab/take.h"

#define LONG DUE_S(10)

static due_queue *share(int64_t store_timeout_ns)
{
    due_options o = { DUE_OPTIONS_INIT, .name = "mail", .share = DUE_SHARED, .prefetch_max = 1 };
    due_queue *q;
    due_error error;

    o.store = store_at(server.url, (due_redis_options){ DUE_REDIS_OPTIONS_INIT });
    o.store_timeout_ns = store_timeout_ns;
    cr_assert_eq(due_open(&q, &o, &error), 0, "%s", error.text);
    return q;
}

static void end(due_queue *q)
{
    cr_assert_eq(due_close(q, DUE_CLOSE_DISCARD, LONG), 0);
    cr_assert_eq(due_free(q), 0);
}

static void put(due_queue *q, int topic, int64_t delay_ns)
{
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3, .topic = topic,
                      .delay_ns = delay_ns };

    cr_assert_eq(due_enqueue(q, &spec, LONG, NULL), 0);
}

static struct due_queue_census census_of(due_queue *q, int topic)
{
    struct due_queue_census c;

    cr_assert_eq(due_census(q, topic, &c, LONG), 0);
    return c;
}

STORED_TEST(census_redis, counts_what_all_processes_have)
{
    due_queue *one = share(0);
    due_queue *two = share(0);
    int hot = due_topic(one, "hot");
    int cold = due_topic(one, "cold");
    due_job job;

    put(one, hot, 0);
    cr_assert_eq(take_leased(two, &job, DUE_S(100), LONG), 0);
    put(one, hot, DUE_S(1000));
    put(one, hot, DUE_S(1000));
    struct due_queue_census c = census_of(one, hot);
    cr_expect(c.delayed == 2 && c.ready == 0 && c.leased == 1 && c.dead == 0);
    cr_expect(c.oldest_ns == DUE_FOREVER && c.processes == 2);
    cr_expect(c.head_ns > 0 && c.head_ns <= c.now_ns + DUE_S(100), "not after the lease's end");
    c = census_of(one, cold);
    cr_expect(c.delayed == 0 && c.leased == 0 && c.dead == 0 && c.processes == 2);
    cr_assert_eq(due_bury(&job, "cold"), 0);
    c = census_of(two, DUE_ALL_TOPICS);
    cr_expect(c.delayed == 2 && c.leased == 0 && c.dead == 1);
    end(one);
    cr_expect_eq(census_of(two, DUE_ALL_TOPICS).processes, 1u);
    end(two);
}

/* More topics than the server counts in one script. */
STORED_TEST(census_redis, counts_hundreds_of_topics)
{
    due_queue *one = share(0);
    due_queue *two = share(0);
    char name[16];

    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "t%d", i);
        int topic = due_topic(one, name);
        for (int k = 0; k <= i % 3; k++)
            put(one, topic, DUE_S(1000));
    }
    cr_expect_eq(census_of(two, DUE_ALL_TOPICS).delayed, 399u);
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "t%d", i);
        cr_expect_eq(census_of(two, due_topic(two, name)).delayed, (uint64_t)(i % 3) + 1);
    }
    end(one);
    end(two);
}

STORED_TEST(census_redis, lists_processes_and_who_waits)
{
    due_queue *one = share(0);
    due_queue *two = share(0);
    struct crew_call c;
    due_process p[4];
    uint64_t cursor = 0;

    crew_call_reserve(&c, two, NULL, 0, DUE_S(100), DUE_FOREVER);
    crew_call_asleep(&c);
    do {
        cursor = 0;
        cr_assert_eq(due_processes(one, &cursor, p, 4, LONG), 2);
    } while (!p[1].waits); /* it is about to say so */
    for (int i = 0; i < 2; i++) {
        cr_expect(p[i].pid == getpid() && p[i].self == (i == 0) && p[i].host[0] != '\0');
        cr_expect(p[i].started_ns > 0 && p[i].seen_ns >= p[i].started_ns);
    }
    cr_expect_eq(due_processes(one, &cursor, p, 4, LONG), 0);
    put(one, 0, 0);
    cr_assert_eq(crew_call_answer(&c), 0);
    cr_expect_eq(due_ack(&c.job), 0);
    end(one);
    end(two);
}

STORED_TEST(census_redis, waits_no_longer_than_it_may_for_a_server_that_is_away)
{
    due_queue *q = share(DUE_S(1));
    struct due_queue_census c = { .delayed = 7 };
    due_process p = { .pid = 7 };
    uint64_t cursor = 0;

    redis_server_freeze(&server);
    cr_expect_eq(due_census(q, DUE_ALL_TOPICS, &c, DUE_MS(20)), DUE_ETIMEDOUT);
    cr_expect_eq(due_census(q, DUE_ALL_TOPICS, &c, DUE_FOREVER), DUE_ETIMEDOUT);
    cr_expect_eq(due_processes(q, &cursor, &p, 1, DUE_MS(20)), DUE_ETIMEDOUT);
    cr_expect(c.delayed == 7 && p.pid == 7 && cursor == 0);
    redis_server_thaw(&server);
    cr_expect_eq(census_of(q, DUE_ALL_TOPICS).delayed, 0u);
    end(q);
}

STORED_TEST(census_redis, says_so_when_the_process_was_evicted)
{
    due_queue *q = share(0);
    struct due_queue_census c;
    char lane[2][40];
    due_process p;
    uint64_t cursor = 0;

    cr_assert_eq(due_processes(q, &cursor, &p, 1, LONG), 1);
    for (int i = 0; i < 2; i++)
        snprintf(lane[i], sizeof lane[i], "%llu:%c", (unsigned long long)p.number, "pw"[i]);
    ASK("HSET", "due:{mail}:writers", lane[0], "X", lane[1], "X");
    due_spec spec = { DUE_SPEC_INIT };
    /* If a beat hears it first, this one is on its way. */
    int rc = due_enqueue(q, &spec, LONG, NULL);
    cr_expect(rc == DUE_EFENCED || rc == DUE_EINDOUBT, "%s", due_error_name(rc));
    cr_expect_eq(due_enqueue(q, &spec, LONG, NULL), DUE_EFENCED);
    cr_expect_eq(due_census(q, DUE_ALL_TOPICS, &c, LONG), DUE_EFENCED);
    cursor = 0;
    cr_expect_eq(due_processes(q, &cursor, &p, 1, LONG), DUE_EFENCED);
    end(q);
}
