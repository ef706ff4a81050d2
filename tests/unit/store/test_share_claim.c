/* One queue for many processes: what is claimed for those who want it, and how often the store is
 * asked. */
#include <stdio.h>

#include "api/ack.h"
#include "due/metrics.h"
#include "lab/mall.h"

#define LONG DUE_S(20)

static void topics_of(struct lab *lab, int *topics, int n)
{
    for (int i = 0; i < n; i++) {
        char name[16];

        snprintf(name, sizeof name, "t%d", i);
        topics[i] = lab_topic(lab, name);
    }
}

/* Until the store has written down that process @i waits, as process 0 sees it. */
static void until_waits(struct mall *m, size_t i)
{
    due_process p[MALL_MOST];
    uint64_t cursor;

    do {
        cursor = 0;
        cr_assert_eq(due_processes(m->lab[0].q, &cursor, p, MALL_MOST, LONG), (int)m->n);
    } while (!p[i].waits);
}

MALL_TEST(share_claim, who_waits_for_several_topics_gets_a_job_of_any)
{
    struct mall m = mall_make(2);
    int there[3];
    int here[3];

    topics_of(&m.lab[0], here, 3);
    topics_of(&m.lab[1], there, 3);
    for (int i = 0; i < 3; i++) {
        struct crew_call c;

        crew_call_reserve(&c, m.lab[1].q, there, 3, 100, DUE_FOREVER);
        crew_call_asleep(&c);
        lab_enqueue(&m.lab[0], "tea", .topic = here[i]);
        cr_assert_eq(crew_call_answer(&c), 0);
        cr_expect_eq(c.job.topic, there[i]);
        cr_expect_eq(due_ack(&c.job), 0);
    }
    mall_close(&m);
}

#define MORE (DUE_CLAIM_TOPICS + 2) /* than one claim names */

MALL_TEST(share_claim, of_more_topics_than_one_claim_names_each_has_its_turn)
{
    struct mall m = mall_make(2);
    struct crew_call c[MORE];
    int there[MORE];
    int here[MORE];

    topics_of(&m.lab[0], here, MORE);
    topics_of(&m.lab[1], there, MORE);
    for (int i = 0; i < MORE; i++) {
        crew_call_reserve(&c[i], m.lab[1].q, &there[i], 1, 100, DUE_FOREVER);
        crew_call_asleep(&c[i]);
        if (i < DUE_CLAIM_TOPICS) /* the store waits for all so far when the next one comes */
            memory_store_until(m.store[1], MEMORY_WORK, (uint64_t)i + 1);
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MORE; i++) {
            int at = round == 0 ? MORE - 1 - i : i;

            lab_enqueue(&m.lab[0], "tea", .topic = here[at]);
            cr_assert_eq(crew_call_answer(&c[at]), 0);
            cr_expect_eq(c[at].job.topic, there[at]);
            cr_expect_eq(due_ack(&c[at].job), 0);
            if (round == 0)
                crew_call_reserve(&c[at], m.lab[1].q, &there[at], 1, 100, DUE_FOREVER);
        }
    }
    mall_close(&m);
}

/* The store waits for the one already, and has nothing of it. */
MALL_TEST(share_claim, a_poll_of_another_topic_is_claimed_for_too)
{
    struct mall m = mall_make(2);
    int topics[2];
    due_job job;
    int rc;

    topics_of(&m.lab[1], topics, 2);
    cr_expect_eq(take_leased_from(m.lab[1].q, &topics[0], 1, &job, 100, 0), DUE_EAGAIN);
    until_waits(&m, 1);
    lab_enqueue(&m.lab[0], "tea", .topic = lab_topic(&m.lab[0], "t1"));
    while ((rc = take_leased_from(m.lab[1].q, &topics[1], 1, &job, 100, 0)) == DUE_EAGAIN)
        crew_sleep(DUE_US(100));
    cr_assert_eq(rc, 0);
    cr_expect_eq(job.topic, topics[1]);
    cr_expect_eq(due_ack(&job), 0);
    mall_close(&m);
}

MALL_TEST(share_claim, what_a_poll_did_not_find_is_claimed_when_it_comes)
{
    struct mall m = mall_make(2);
    due_job job;

    cr_expect_eq(due_dequeue(m.lab[1].q, &job, 0), DUE_EAGAIN);
    until_waits(&m, 1);
    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    while (lab_stats(&m.lab[1]).ready == 0) /* though nobody asks again */
        crew_sleep(DUE_US(100));
    cr_assert_eq(mall_take(&m, 1, &job), 0);
    cr_expect_str_eq(lab_text(&m.lab[1], &job), "tea");
    mall_close(&m);
}

/* One exchange for both; then one more, when it is rung. */
Test(share_claim, goes_with_the_answer_for_a_job_while_somebody_waits, .timeout = 60)
{
    struct mall m = mall_make(2);
    struct crew_call c;
    due_job job;

    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
    crew_call_reserve(&c, m.lab[1].q, NULL, 0, 100, DUE_FOREVER);
    crew_call_asleep(&c);
    until_waits(&m, 1);
    uint64_t before = memory_store_calls(m.store[1], MEMORY_WORK);
    cr_expect_eq(due_ack(&job), 0);
    until_waits(&m, 1);
    lab_enqueue(&m.lab[0], "cake", .delay_ns = 0);
    cr_assert_eq(crew_call_answer(&c), 0);
    cr_expect_eq(memory_store_calls(m.store[1], MEMORY_WORK) - before, 2u);
    cr_expect_eq(due_ack(&c.job), 0);
    mall_close(&m);
}

/* Of two who wait one is rung, and does not hear it: who has put the job sees to that. */
MALL_TEST(share_claim, is_made_by_another_when_a_ring_is_lost)
{
    struct mall m = mall_make(3);
    struct memory_limiter *gate = memory_limiter_new(m.disk);
    struct crew_call c[2];

    for (size_t i = 0; i < 2; i++) {
        crew_call_reserve(&c[i], m.lab[1 + i].q, NULL, 0, DUE_S(9),
                          i == 0 ? DUE_S(5) : DUE_FOREVER);
        crew_call_asleep(&c[i]);
        until_waits(&m, 1 + i);
    }
    memory_store_until(m.store[0], MEMORY_BEAT, 1); /* the first, which is made in any case */
    memory_store_swallow(m.store[1], true);
    memory_store_fault(
        m.store[0],
        (struct memory_fault){ .verb = MEMORY_BEAT, .kind = MEMORY_BLOCK, .limiter = gate });
    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    memory_limiter_reached(gate, 1);
    mall_turn_to(&m, DUE_S(1)); /* it should have come by now */
    memory_limiter_open(gate);
    cr_assert_eq(crew_call_answer(&c[1]), 0);
    cr_expect_eq(due_ack(&c[1].job), 0);
    mall_turn_to(&m, DUE_S(5));
    cr_expect_eq(crew_call_answer(&c[0]), DUE_ETIMEDOUT);
    memory_limiter_free(gate);
    mall_close(&m);
}

MALL_TEST(share_claim, needs_one_beat_where_nobody_is_rung)
{
    struct mall m = mall_make(1);
    due_job job;

    for (int i = 0; i < 5; i++) {
        lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
        cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
        cr_expect_eq(due_ack(&job), 0);
    }
    cr_expect_leq(memory_store_calls(m.store[0], MEMORY_BEAT), 1u);
    mall_close(&m);
}

/* Once told that it was turned out a process leaves the store alone. */
MALL_TEST(share_claim, is_not_made_by_who_was_turned_out)
{
    struct mall m = mall_make(2);
    struct crew_call c;

    due_id id = lab_enqueue(&m.lab[0], "tea", .at_ns = 50);
    crew_call_reserve(&c, m.lab[1].q, NULL, 0, 100, DUE_FOREVER);
    crew_call_asleep(&c);
    until_waits(&m, 1);
    memory_store_evict(m.store[1]);
    cr_expect_eq(due_cancel(m.lab[1].q, id, NULL), DUE_EFENCED);
    cr_expect_eq(crew_call_answer(&c), DUE_EFENCED);
    uint64_t puts = memory_store_calls(m.store[1], MEMORY_PUT);
    cr_expect_eq(due_cancel(m.lab[1].q, id, NULL), DUE_EFENCED);
    cr_expect_eq(memory_store_calls(m.store[1], MEMORY_PUT), puts);
    cr_expect(memory_disk_find(m.disk, id, NULL));
    mall_close(&m);
}

#define HELD 80 /* more than are extended together */

/* All lie in the line again, held for the time of their claims. */
MALL_TEST(share_claim, that_is_too_short_for_many_is_made_longer_for_some_and_the_rest_stay)
{
    struct mall m = mall_make(1);
    static due_job jobs[HELD];
    size_t got = 0;

    for (int i = 0; i < HELD; i++)
        lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    for (int i = 0; i < HELD; i++)
        cr_assert_eq(mall_reserve(&m, 0, &jobs[i], DUE_S(1)), 0);
    for (int i = 0; i < HELD; i++)
        cr_assert_eq(due__lease_release(&jobs[i]), 0);
    while (got < HELD) {
        int n =
            take_leased_some(m.lab[0].q, NULL, 0, jobs + got, HELD - got, DUE_S(50), DUE_FOREVER);

        cr_assert_gt(n, 0);
        got += (size_t)n;
    }
    mall_turn_to(&m, DUE_S(49));
    for (int i = 0; i < HELD; i++)
        cr_expect_eq(due_ack(&jobs[i]), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}
