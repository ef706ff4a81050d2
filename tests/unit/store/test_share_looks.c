/* One queue for many processes: what the proxy of one sees when it looks, and that it does not look
 * in vain. */
#include <stdio.h>

#include "api/ack.h"
#include "due/metrics.h"
#include "lab/mall.h"
#include "store/share.h"

#define LONG DUE_S(20)

static void topics_of(struct lab *lab, int *topics, int n)
{
    for (int i = 0; i < n; i++) {
        char name[16];

        snprintf(name, sizeof name, "t%d", i);
        topics[i] = lab_topic(lab, name);
    }
}

/* Does process @i wait, as the store has it and process 0 sees it? */
static bool waits(struct mall *m, size_t i)
{
    due_process p[MALL_MOST];
    uint64_t cursor = 0;

    cr_assert_eq(due_processes(m->lab[0].q, &cursor, p, MALL_MOST, LONG), (int)m->n);
    return p[i].waits != 0;
}

static void until_waits(struct mall *m, size_t i)
{
    while (!waits(m, i))
        continue;
}

/* The proxy of the process has looked at everything there is. */
static void until_looked(struct mall *m, size_t i)
{
    for (int n = 0; n < 2; n++) { /* the first time it may be in the midst of it */
        uint64_t before = memory_store_calls(m->store[i], MEMORY_LISTEN);

        due__proxy_call(m->lab[i].q);
        memory_store_until(m->store[i], MEMORY_LISTEN, before + 1);
    }
}

MALL_TEST(share_claim, is_not_made_again_for_a_topic_that_the_store_waits_for)
{
    struct mall m = mall_make(2);
    struct crew_call c[2];
    int topics[2];

    topics_of(&m.lab[1], topics, 2);
    crew_call_reserve(&c[0], m.lab[1].q, &topics[1], 1, 100, DUE_FOREVER);
    crew_call_asleep(&c[0]);
    until_waits(&m, 1);
    until_looked(&m, 1);
    uint64_t before = memory_store_calls(m.store[1], MEMORY_WORK);
    crew_call_reserve(&c[1], m.lab[1].q, &topics[1], 1, 100, DUE_FOREVER);
    crew_call_asleep(&c[1]);
    until_looked(&m, 1);
    crew_sleep(DUE_MS(120)); /* twice as long as topics wait that a claim has no room for */
    until_looked(&m, 1);
    cr_expect_eq(memory_store_calls(m.store[1], MEMORY_WORK), before);
    for (int i = 0; i < 2; i++)
        lab_enqueue(&m.lab[0], "tea", .topic = lab_topic(&m.lab[0], "t1"));
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(crew_call_answer(&c[i]), 0);
        cr_expect_eq(due_ack(&c[i].job), 0);
    }
    mall_close(&m);
}

/* He has left a wish, and what he wished for is due. */
MALL_TEST(share_claim, is_not_made_for_a_wish_of_who_was_turned_out)
{
    struct mall m = mall_make(2);
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], "tea", .at_ns = 50);
    cr_expect_eq(due_dequeue(m.lab[1].q, &job, 0), DUE_EAGAIN);
    until_waits(&m, 1);
    memory_store_evict(m.store[1]);
    cr_expect_eq(due_cancel(m.lab[1].q, id, NULL), DUE_EFENCED);
    until_looked(&m, 1);
    uint64_t before = memory_store_calls(m.store[1], MEMORY_WORK);
    mall_turn_to(&m, 50);
    until_looked(&m, 1);
    cr_expect_eq(memory_store_calls(m.store[1], MEMORY_WORK), before);
    mall_close(&m);
}

static const struct due_shared_verbs *shared_verbs;

/* Of a queue that has no capacity a store need not count how much room there is. */
static int beat_without_room(due_store *store, struct due_beat *beat, int64_t until_ns)
{
    int rc = shared_verbs->beat(store, beat, until_ns);

    if (beat->capacity == 0)
        beat->room = 0;
    return rc;
}

/* It was refused, and when it begins to wait the queue has no capacity any more. */
MALL_TEST(share_capacity, of_none_is_room_for_all_whatever_else_is_said)
{
    struct mall m = mall_make(0);
    struct memory_limiter *gate = memory_limiter_new(m.disk);
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = 5 };
    struct crew_call c;

    mall_join(&m, (struct lab_options){ .with.capacity = 1 });
    struct due_store_verbs verbs = *m.store[0]->verbs;
    struct due_shared_verbs shared = *verbs.shared;
    shared_verbs = verbs.shared;
    shared.beat = beat_without_room;
    verbs.shared = &shared;
    mall_join_by(&m, (struct lab_options){ .kernel = false }, &verbs);
    memory_store_until(m.store[1], MEMORY_BEAT, 1);
    lab_enqueue(&m.lab[0], "in the way", .delay_ns = DUE_S(9));
    memory_store_fault(
        m.store[1],
        (struct memory_fault){ .verb = MEMORY_BEAT, .kind = MEMORY_BLOCK, .limiter = gate });
    crew_call_enqueue(&c, m.lab[1].q, spec, DUE_FOREVER);
    memory_limiter_reached(gate, 1);
    mall_join(&m, (struct lab_options){ .with.capacity = DUE_JOBS_MAX });
    memory_limiter_open(gate);
    cr_expect_eq(crew_call_answer(&c), 0);
    memory_limiter_free(gate);
    mall_close(&m);
}

/* Its caller had gone when it was told of room: it says so once, and is not busy with it. */
MALL_TEST(share_capacity, that_nobody_came_for_is_told_once)
{
    struct mall m = mall_make(0);
    struct memory_limiter *gate = memory_limiter_new(m.disk);
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(9) };
    struct crew_call c;

    mall_join(&m, (struct lab_options){ .with.capacity = 1 });
    mall_join(&m, (struct lab_options){ .kernel = false });
    memory_store_until(m.store[1], MEMORY_BEAT, 1);
    due_id id = lab_enqueue(&m.lab[0], "in the way", .delay_ns = DUE_S(9));
    uint64_t beats = memory_store_calls(m.store[1], MEMORY_BEAT);
    crew_call_enqueue(&c, m.lab[1].q, spec, 10);
    memory_store_until(m.store[1], MEMORY_BEAT, beats + 1);
    crew_call_asleep(&c);
    memory_store_fault(m.store[1], (struct memory_fault){ .verb = MEMORY_BEAT,
                                                          .times = 1,
                                                          .kind = MEMORY_BLOCK_AFTER,
                                                          .limiter = gate });
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), 0);
    memory_limiter_reached(gate, 1);
    mall_turn_to(&m, 10);
    cr_expect_eq(crew_call_answer(&c), DUE_ETIMEDOUT);
    memory_limiter_open(gate);
    memory_store_until(m.store[1], MEMORY_BEAT, beats + 3);
    until_looked(&m, 1);
    beats = memory_store_calls(m.store[1], MEMORY_BEAT);
    for (int i = 0; i < 10; i++)
        until_looked(&m, 1);
    cr_expect_leq(memory_store_calls(m.store[1], MEMORY_BEAT), beats + 1, "and lives, perhaps");
    cr_expect_eq(due_enqueue(m.lab[0].q, &spec, 0, NULL), 0);
    memory_limiter_free(gate);
    mall_close(&m);
}

MALL_TEST(share_claim, in_doubt_is_seen_through_though_nobody_calls_again)
{
    struct mall m = mall_make(2);
    struct crew_call c;

    crew_call_reserve(&c, m.lab[1].q, NULL, 0, 100, DUE_FOREVER);
    crew_call_asleep(&c);
    until_waits(&m, 1);
    until_looked(&m, 1);
    memory_store_fault(m.store[1],
                       (struct memory_fault){ .verb = MEMORY_WORK, .kind = MEMORY_DOUBT_NOT });
    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(crew_call_answer(&c), 0);
    cr_expect_eq(due_ack(&c.job), 0);
    mall_close(&m);
}

#define MANY 200

/* Else all of them would have leases that end in vain. */
MALL_TEST(share_claim, for_which_there_is_no_memory_is_not_made_again_and_again)
{
    struct mall m = mall_make(2);
    struct flaky *memory = &m.lab[1].state->memory;
    struct due_queue_census there;
    struct crew_call c;

    crew_call_reserve(&c, m.lab[1].q, NULL, 0, 100, DUE_FOREVER);
    crew_call_asleep(&c);
    until_waits(&m, 1);
    uint64_t before = memory_store_calls(m.store[1], MEMORY_WORK);
    memory->fail_on = true;
    flaky_fail_in(memory, 0);
    for (int i = 0; i < MANY; i++)
        lab_enqueue(&m.lab[0], "tea", .at_ns = 10);
    mall_turn_to(&m, 10);
    memory_store_until(m.store[1], MEMORY_WORK, before + 2);
    memory->fail_at = FLAKY_NEVER;
    cr_assert_eq(crew_call_answer(&c), 0);
    cr_assert_eq(due_census(m.lab[0].q, DUE_ALL_TOPICS, &there, LONG), 0);
    cr_expect_lt(there.leased, (uint64_t)MANY / 2);
    cr_expect_eq(due_ack(&c.job), 0);
    mall_close(&m);
}

/* How many depends on how fast they are taken. */
static void brings_more(size_t prefetch_max)
{
    struct mall m = mall_make(1);
    size_t greedy = mall_join(&m, (struct lab_options){ .with.prefetch_max = prefetch_max });
    due_job job;

    do {
        for (int i = 0; i < 3; i++)
            lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
        cr_assert_eq(mall_reserve(&m, greedy, &job, DUE_S(100)), 0);
        cr_expect_eq(due_ack(&job), 0);
    } while (lab_stats(&m.lab[greedy]).ready == 0);
    mall_close(&m);
}

MALL_TEST(share_claim, brings_more_than_is_needed_where_many_are_taken)
{
    brings_more(8);
    brings_more(2);
}

/* Nor of the topic of jobs that have none. */
MALL_TEST(share_claim, for_a_poll_brings_nothing_of_another_topic)
{
    struct mall m = mall_make(2);
    struct due_queue_census there;
    int topics[2];
    due_job job;

    topics_of(&m.lab[0], topics, 2);
    for (int i = 0; i < 2; i++)
        lab_enqueue(&m.lab[0], "tea", .topic = i == 0 ? 0 : topics[1]);
    topics_of(&m.lab[1], topics, 2);
    cr_expect_eq(take_leased_from(m.lab[1].q, &topics[0], 1, &job, 100, 0), DUE_EAGAIN);
    until_waits(&m, 1);
    cr_assert_eq(due_census(m.lab[0].q, DUE_ALL_TOPICS, &there, LONG), 0);
    cr_expect_eq(there.leased, 0u);
    cr_expect_eq(there.ready, 2u);
    mall_close(&m);
}

/* Told to come for a job that is due later he wants none by then, and sees to it that another is
 * rung at once, and not as late as who comes after him. */
MALL_TEST(share_claim, is_made_by_another_for_a_job_to_come_when_who_was_told_has_gone)
{
    struct mall m = mall_make(3);
    struct crew_call c[2];

    for (size_t i = 0; i < 2; i++) {
        crew_call_reserve(&c[i], m.lab[1 + i].q, NULL, 0, 100, i == 0 ? 10 : DUE_FOREVER);
        crew_call_asleep(&c[i]);
        until_waits(&m, 1 + i);
    }
    mall_turn_to(&m, 10);
    cr_expect_eq(crew_call_answer(&c[0]), DUE_ETIMEDOUT);
    lab_enqueue(&m.lab[0], "tea", .at_ns = 50);
    mall_turn_to(&m, 50);
    cr_assert_eq(crew_call_answer(&c[1]), 0);
    cr_expect_not(waits(&m, 1));
    cr_expect_eq(due_ack(&c[1].job), 0);
    mall_close(&m);
}

/* Who waited has gone meanwhile, and what it is about stays the same until it is known. */
MALL_TEST(share_claim, in_doubt_for_long_stays_what_it_is)
{
    struct mall m = mall_make(2);
    struct crew_call c;
    due_job job;

    lab_enqueue(&m.lab[0], "cake", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 1, &job, 1000), 0);
    crew_call_reserve(&c, m.lab[1].q, NULL, 0, 100, 10);
    crew_call_asleep(&c);
    until_waits(&m, 1);
    uint64_t before = memory_store_calls(m.store[1], MEMORY_WORK);
    memory_store_fault(
        m.store[1],
        (struct memory_fault){ .verb = MEMORY_WORK, .times = 6, .kind = MEMORY_DOUBT_LANDED });
    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    memory_store_until(m.store[1], MEMORY_WORK, before + 1);
    mall_turn_to(&m, 10);
    cr_expect_eq(crew_call_answer(&c), DUE_ETIMEDOUT);
    memory_store_until(m.store[1], MEMORY_WORK, before + 3);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 1u);
    mall_close(&m);
}

/* Nothing is due, and nobody has an alarm. */
static void looks_at_nothing(struct mall *m, size_t i)
{
    uint64_t before = memory_store_calls(m->store[i], MEMORY_LISTEN);

    crew_sleep(DUE_MS(200));
    cr_expect_lt(memory_store_calls(m->store[i], MEMORY_LISTEN) - before, 10u);
}

/* On the kernel's clock the process comes by itself when it is time, and not before that. */
Test(share_claim, is_made_when_a_job_comes_due_and_the_proxy_sleeps_until_then, .timeout = 60)
{
    struct mall m = mall_on(0, NULL);
    struct crew_call c;

    for (int i = 0; i < 2; i++)
        mall_join(&m, (struct lab_options){ .kernel = true });
    crew_call_reserve(&c, m.lab[1].q, NULL, 0, DUE_S(600), DUE_FOREVER);
    crew_call_asleep(&c);
    until_waits(&m, 1);
    for (size_t i = 0; i < 2; i++) /* where nobody waits, and where somebody does */
        looks_at_nothing(&m, i);
    lab_enqueue(&m.lab[0], "tea", .delay_ns = DUE_MS(50));
    cr_assert_eq(crew_call_answer(&c), 0);
    cr_expect_eq(due_ack(&c.job), 0);
    mall_close(&m);
}

/* One that was claimed for so long, and that nobody takes, goes back when it has lain there so. */
static void lies_for(int64_t lease_ns, int64_t patience_ns)
{
    struct mall m = mall_make(1);
    due_job job;

    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_expect_eq(take_leased(m.lab[0].q, &job, lease_ns, 0), DUE_EAGAIN);
    while (lab_stats(&m.lab[0]).ready == 0)
        crew_sleep(DUE_US(100));
    mall_turn_to(&m, patience_ns - 1);
    until_looked(&m, 0);
    cr_expect_eq(lab_stats(&m.lab[0]).ready, 1u);
    mall_turn_to(&m, patience_ns);
    while (lab_stats(&m.lab[0]).ready == 1)
        until_looked(&m, 0);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    cr_expect_eq(job.failures, 0u);
    cr_expect_eq(due_ack(&job), 0);
    mall_close(&m);
}

MALL_TEST(share_claim, that_nobody_takes_lies_there_for_a_quarter_of_its_lease)
{
    lies_for(400, 100);
    lies_for(DUE_S(4), DUE_S(1));
}

MALL_TEST(share_claim, that_nobody_takes_lies_there_for_two_seconds_at_most)
{
    lies_for(DUE_S(8), DUE_S(2));
    lies_for(DUE_S(3600), DUE_S(2));
}

/* Who waited has gone, and the store has waited for him until the process answered for a job. */
MALL_TEST(share, whoever_comes_after_an_answer_is_waited_for_anew)
{
    struct mall m = mall_make(2);
    struct crew_call c;
    due_job job;

    lab_enqueue(&m.lab[0], "cake", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 1, &job, 1000), 0);
    crew_call_reserve(&c, m.lab[1].q, NULL, 0, 100, 10);
    crew_call_asleep(&c);
    until_waits(&m, 1);
    mall_turn_to(&m, 10);
    cr_expect_eq(crew_call_answer(&c), DUE_ETIMEDOUT);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_not(waits(&m, 1));
    crew_call_reserve(&c, m.lab[1].q, NULL, 0, 100, DUE_FOREVER);
    crew_call_asleep(&c);
    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(crew_call_answer(&c), 0);
    cr_expect_eq(due_ack(&c.job), 0);
    mall_close(&m);
}

MALL_TEST(share_claim, one_poll_of_another_topic_is_seen)
{
    struct mall m = mall_make(2);
    int topics[2];
    due_job job;

    topics_of(&m.lab[1], topics, 2);
    cr_expect_eq(take_leased_from(m.lab[1].q, &topics[0], 1, &job, 100, 0), DUE_EAGAIN);
    until_waits(&m, 1);
    until_looked(&m, 1);
    lab_enqueue(&m.lab[0], "tea", .topic = lab_topic(&m.lab[0], "t1"));
    cr_expect_eq(take_leased_from(m.lab[1].q, &topics[1], 1, &job, 100, 0), DUE_EAGAIN);
    while (lab_stats(&m.lab[1]).ready == 0)
        crew_sleep(DUE_US(100));
    cr_assert_eq(take_leased_from(m.lab[1].q, &topics[1], 1, &job, 100, DUE_FOREVER), 0);
    cr_expect_eq(due_ack(&job), 0);
    mall_close(&m);
}

/* Topic 0 is one like others: that the store waits for another is not enough. */
MALL_TEST(share_claim, is_made_for_who_waits_for_the_topic_without_a_name_only)
{
    struct mall m = mall_make(2);
    struct crew_call named;
    struct crew_call plain;
    int topic = lab_topic(&m.lab[1], "t0");
    int none = 0;

    crew_call_reserve(&named, m.lab[1].q, &topic, 1, 100, DUE_FOREVER);
    crew_call_asleep(&named);
    until_waits(&m, 1);
    until_looked(&m, 1);
    crew_call_reserve(&plain, m.lab[1].q, &none, 1, 100, LONG);
    crew_call_asleep(&plain);
    until_looked(&m, 1);
    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(crew_call_answer(&plain), 0);
    cr_expect_eq(due_ack(&plain.job), 0);
    lab_enqueue(&m.lab[0], "cake", .topic = lab_topic(&m.lab[0], "t0"));
    cr_assert_eq(crew_call_answer(&named), 0);
    cr_expect_eq(due_ack(&named.job), 0);
    mall_close(&m);
}

/* ---- How much at a time ---- */

static const struct due_shared_verbs *its_shared;
static atomic_size_t most_at_once; /* where some was claimed ahead */
static atomic_size_t most_needed;

static int exchange_seen(due_store *s, const due_change *changes, size_t n, uint64_t number,
                         int *results, const struct due_claim *claim,
                         due_store_visit_claimed *visit, void *ctx, struct due_exchange *answer,
                         int64_t until_ns)
{
    if (claim != NULL && claim->extra > 0 && claim->need + claim->extra > most_at_once)
        most_at_once = claim->need + claim->extra;
    if (claim != NULL && claim->need > most_needed)
        most_needed = claim->need;
    return its_shared->exchange(s, changes, n, number, results, claim, visit, ctx, answer,
                                until_ns);
}

/* Whoever takes many has as many at hand as was said; more only if they are needed at once. */
MALL_TEST(share_claim, brings_no_more_ahead_than_was_said)
{
    for (size_t most = 1; most <= 3; most++) {
        struct mall m = mall_make(1);
        struct due_store_verbs verbs = *m.store[0]->verbs;
        struct due_shared_verbs shared = *verbs.shared;
        struct crew_call c[3];

        its_shared = verbs.shared;
        shared.exchange = exchange_seen;
        verbs.shared = &shared;
        most_at_once = most_needed = 0;
        size_t i =
            mall_join_by(&m, (struct lab_options){ .with.prefetch_max = (uint32_t)most }, &verbs);
        for (int round = 0; round < 8; round++) {
            for (int k = 0; k < 3; k++) {
                crew_call_reserve(&c[k], m.lab[i].q, NULL, 0, DUE_S(600), DUE_FOREVER);
                crew_call_asleep(&c[k]);
            }
            for (int k = 0; k < 3; k++)
                lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
            for (int k = 0; k < 3; k++) {
                cr_assert_eq(crew_call_answer(&c[k]), 0);
                cr_expect_eq(due_ack(&c[k].job), 0);
            }
        }
        cr_expect_leq(most_at_once, most, "%zu", (size_t)most_at_once);
        cr_expect_gt(most_needed, 1u);
        mall_close(&m);
    }
}
