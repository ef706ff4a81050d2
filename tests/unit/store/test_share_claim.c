/* One queue for many processes: what is claimed for those who want it, and how often the store is
 * asked. */
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

/* He stands there still, and is rung: then another one is, also if the answer to that is lost. */
MALL_TEST(share_claim, is_made_by_another_when_who_was_rung_has_gone)
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
    memory_store_fault(m.store[1],
                       (struct memory_fault){ .verb = MEMORY_WORK, .kind = MEMORY_DOUBT_NOT });
    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(crew_call_answer(&c[1]), 0);
    cr_expect_eq(memory_store_rings(m.store[1]), 1u);
    cr_expect_not(waits(&m, 1));
    cr_expect_eq(due_ack(&c[1].job), 0);
    mall_close(&m);
}

/* Who sleeps is told when to come, and until then nobody asks the store. */
MALL_TEST(share_claim, is_made_once_for_a_job_that_comes_later)
{
    struct mall m = mall_make(2);
    struct crew_call c;

    crew_call_reserve(&c, m.lab[1].q, NULL, 0, DUE_S(9), DUE_FOREVER);
    crew_call_asleep(&c);
    until_waits(&m, 1);
    uint64_t before = memory_store_calls(m.store[1], MEMORY_WORK);
    uint64_t heard = memory_store_calls(m.store[1], MEMORY_LISTEN);
    lab_enqueue(&m.lab[0], "tea", .delay_ns = DUE_S(3600));
    memory_store_until(m.store[1], MEMORY_LISTEN, heard + 1);
    mall_turn_to(&m, DUE_S(3600) - 1);
    cr_expect_eq(memory_store_calls(m.store[1], MEMORY_WORK), before);
    mall_turn_to(&m, DUE_S(3600));
    cr_assert_eq(crew_call_answer(&c), 0);
    uint64_t calls = memory_store_calls(m.store[1], MEMORY_WORK) - before;
    cr_expect(calls == 1 || (lab_proxies == 1 && calls == 2), "%d, in mode %d", (int)calls,
              lab_proxies); /* if it looks before the dequeue proxy has handed it out */
    cr_expect_eq(memory_store_calls(m.store[0], MEMORY_WORK), 0u);
    cr_expect_eq(due_ack(&c.job), 0);
    mall_close(&m);
}

/* What it was told before its last claim does not count any more, nor does a later time. */
MALL_TEST(share_claim, is_not_made_at_a_time_that_is_no_more)
{
    struct mall m = mall_make(2);
    struct crew_call c;
    due_id id;

    crew_call_reserve(&c, m.lab[1].q, NULL, 0, DUE_S(9), DUE_FOREVER);
    crew_call_asleep(&c);
    until_waits(&m, 1);
    id = lab_enqueue(&m.lab[0], "tea", .delay_ns = DUE_S(50));
    lab_enqueue(&m.lab[0], "cake", .delay_ns = DUE_S(70));
    cr_assert_eq(due_cancel(m.lab[0].q, id, NULL), 0);
    lab_enqueue(&m.lab[0], "milk", .delay_ns = 0); /* it is rung, too */
    cr_assert_eq(crew_call_answer(&c), 0);
    cr_expect_eq(due_ack(&c.job), 0);
    crew_call_reserve(&c, m.lab[1].q, NULL, 0, DUE_S(9), DUE_FOREVER);
    crew_call_asleep(&c);
    until_waits(&m, 1);
    uint64_t before = memory_store_calls(m.store[1], MEMORY_WORK);
    mall_turn_to(&m, DUE_S(60));
    crew_sleep(DUE_MS(20));
    cr_expect_eq(memory_store_calls(m.store[1], MEMORY_WORK), before, "in vain");
    mall_turn_to(&m, DUE_S(70));
    cr_assert_eq(crew_call_answer(&c), 0);
    cr_expect_eq(due_ack(&c.job), 0);
    mall_close(&m);
}

/* The one who is to come first waits no more when it is time: it sees to it that another does. */
MALL_TEST(share_claim, is_made_in_time_when_who_was_to_come_has_gone)
{
    struct mall m = mall_make(3);
    struct crew_call c[2];

    for (size_t i = 0; i < 2; i++) {
        crew_call_reserve(&c[i], m.lab[1 + i].q, NULL, 0, DUE_S(9), i == 0 ? 10 : DUE_FOREVER);
        crew_call_asleep(&c[i]);
        until_waits(&m, 1 + i);
    }
    mall_turn_to(&m, 10);
    cr_expect_eq(crew_call_answer(&c[0]), DUE_ETIMEDOUT);
    lab_enqueue(&m.lab[0], "tea", .delay_ns = DUE_S(50));
    mall_turn_to(&m, DUE_S(50) + 10);
    cr_assert_eq(crew_call_answer(&c[1]), 0, "not as late as who comes after him");
    cr_expect_eq(due_ack(&c[1].job), 0);
    mall_close(&m);
}

/* Nor is he there any more: the other is told the time, and nothing was exchanged meanwhile. */
MALL_TEST(share_claim, is_made_in_time_when_who_was_to_come_has_left)
{
    struct mall m = mall_make(3);
    struct crew_call c[2];

    lab_enqueue(&m.lab[0], "tea", .at_ns = 50);
    for (size_t i = 0; i < 2; i++) {
        crew_call_reserve(&c[i], m.lab[1 + i].q, NULL, 0, DUE_S(9), DUE_FOREVER);
        crew_call_asleep(&c[i]);
        until_waits(&m, 1 + i);
    }
    cr_expect_eq(due_close(m.lab[1].q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
    cr_expect_eq(crew_call_answer(&c[0]), DUE_ECLOSED);
    mall_turn_to(&m, 50);
    cr_assert_eq(crew_call_answer(&c[1]), 0);
    cr_expect_eq(due_ack(&c[1].job), 0);
    mall_close(&m);
}

/* Also if the store is not there just then, and he has gone before it is again. */
MALL_TEST(share_claim, is_made_by_another_though_the_first_attempt_to_pass_a_ring_on_has_failed)
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
    memory_store_fault(
        m.store[1],
        (struct memory_fault){ .verb = MEMORY_WORK, .kind = MEMORY_ANSWER, .answer = DUE_EAGAIN });
    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(crew_call_answer(&c[1]), 0);
    cr_expect_eq(due_ack(&c[1].job), 0);
    mall_close(&m);
}

/* On the kernel's clock: what was measured before the store's clock was set does not count. */
Test(share_claim, is_made_in_time_though_the_stores_clock_was_set_meanwhile, .timeout = 60)
{
    due_clock *stores = due_clock_manual(DUE_S(1000));
    struct mall m = mall_on(0, stores);
    struct crew_call c;

    for (int i = 0; i < 2; i++)
        mall_join(&m, (struct lab_options){ .kernel = true });
    crew_call_reserve(&c, m.lab[1].q, NULL, 0, DUE_S(600), DUE_FOREVER);
    crew_call_asleep(&c);
    until_waits(&m, 1);
    cr_assert_eq(due_clock_turn_to(stores, DUE_S(5000)), 0);
    uint64_t heard = memory_store_calls(m.store[1], MEMORY_LISTEN);
    lab_enqueue(&m.lab[0], "tea", .at_ns = DUE_S(5000) + DUE_MS(200));
    memory_store_until(m.store[1], MEMORY_LISTEN, heard + 1);
    cr_assert_eq(due_clock_turn_to(stores, DUE_S(5001)), 0);
    cr_assert_eq(crew_call_answer(&c), 0);
    cr_expect_eq(due_ack(&c.job), 0);
    mall_close(&m);
    cr_expect_eq(due_clock_free(stores), 0);
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
    crew_sleep(DUE_MS(300)); /* it would be made again by now, had it failed */
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

/* On the kernel's clock: long before the lease is over. */
Test(share_claim, that_nobody_takes_is_given_back_in_time, .timeout = 60)
{
    struct mall m = mall_on(0, NULL);
    due_job job;

    for (int i = 0; i < 2; i++)
        mall_join(&m, (struct lab_options){ .kernel = true });
    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_expect_eq(take_leased(m.lab[1].q, &job, DUE_S(600), 0), DUE_EAGAIN);
    while (lab_stats(&m.lab[1]).ready == 0)
        crew_sleep(DUE_US(100));
    cr_assert_eq(mall_reserve(&m, 0, &job, DUE_S(600)), 0);
    cr_expect_eq(job.failures, 0u);
    cr_expect_eq(due_ack(&job), 0);
    mall_close(&m);
}

/* Nor is there a failure if its lease ends so: no attempt was begun. */
MALL_TEST(share_claim, that_nobody_has_taken_when_its_lease_ends_has_not_failed)
{
    struct mall m = mall_make(2);
    due_job job;

    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(take_leased(m.lab[1].q, &job, 100, 0), DUE_EAGAIN);
    while (lab_stats(&m.lab[1]).ready == 0)
        crew_sleep(DUE_US(100));
    for (int verb = MEMORY_PUT; verb <= MEMORY_WORK; verb++)
        memory_store_fault(m.store[1], (struct memory_fault){ .verb = (enum memory_verb)verb,
                                                              .times = MEMORY_ALWAYS,
                                                              .kind = MEMORY_AWAY });
    mall_turn_to(&m, DUE_S(3600));
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    cr_expect_eq(job.attempts, 1u);
    cr_expect_eq(job.failures, 0u);
    cr_expect_eq(due_ack(&job), 0);
    memory_store_forgive(m.store[1]);
    mall_close(&m);
}

/* Its lease stays what it was. */
MALL_TEST(share_claim, that_cannot_be_made_longer_can_be_answered_for)
{
    struct mall m = mall_make(1);
    due_job job;

    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    memory_store_fault(m.store[0], (struct memory_fault){ .verb = MEMORY_WORK,
                                                          .kind = MEMORY_ANSWER,
                                                          .answer = DUE_EDURABILITY });
    cr_expect_eq(due_extend(&job, 1000), DUE_EDURABILITY);
    mall_turn_to(&m, 99);
    cr_expect_eq(due_job_stopping(&job), 0);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

/* Until nothing lies there for the proxy to look at. */
static void until_tidy(struct lab *lab)
{
    struct due__commits *c = lab->q->commits;
    int64_t tidy_ns;

    do {
        due__lock_acquire(&c->key);
        tidy_ns = c->share->tidy_ns;
        due__lock_release(&c->key);
    } while (tidy_ns != DUE_FOREVER);
}

MALL_TEST(share_claim, is_good_for_a_taker_until_its_last_nanosecond)
{
    for (int64_t at = 99; at <= 100; at++) {
        struct mall m = mall_make(1);
        due_job job;

        lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
        cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
        until_tidy(&m.lab[0]);
        uint64_t before = memory_store_calls(m.store[0], MEMORY_WORK);
        cr_assert_eq(due__lease_release(&job), 0);
        mall_turn_to(&m, at);
        cr_assert_eq(mall_take(&m, 0, &job), 0);
        cr_expect_str_eq(lab_text(&m.lab[0], &job), "tea");
        uint64_t calls = memory_store_calls(m.store[0], MEMORY_WORK) - before;
        cr_expect(at == 99 ? calls == 1 : calls > 1, "%d: %d", (int)at, (int)calls);
        mall_close(&m);
    }
}

/* The lease that has begun in the store ends there. */
MALL_TEST(share_claim, for_which_there_is_no_memory_is_made_again)
{
    struct mall m = mall_make(2);
    struct flaky *memory = &m.lab[1].state->memory;
    struct crew_call c;

    crew_call_reserve(&c, m.lab[1].q, NULL, 0, 100, DUE_FOREVER);
    crew_call_asleep(&c);
    until_waits(&m, 1);
    uint64_t before = memory_store_calls(m.store[1], MEMORY_WORK);
    memory->fail_on = true;
    flaky_fail_in(memory, 0);
    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    memory_store_until(m.store[1], MEMORY_WORK, before + 2);
    for (int n = 0; n < 2; n++) { /* until that is answered, too */
        uint64_t listens = memory_store_calls(m.store[1], MEMORY_LISTEN);
        due__proxy_call(m.lab[1].q);
        memory_store_until(m.store[1], MEMORY_LISTEN, listens + 1);
    }
    memory->fail_at = FLAKY_NEVER;
    mall_turn_to(&m, 100);
    cr_assert_eq(crew_call_answer(&c), 0);
    cr_expect_eq(due_ack(&c.job), 0);
    mall_close(&m);
}

/* By its own clock the process has the job still. */
MALL_TEST(share_claim, that_another_has_by_now_is_not_made_longer)
{
    due_clock *stores = due_clock_manual(0);
    struct mall m = mall_on(2, stores);
    due_job taken;
    due_job job;

    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 1, &taken, 100), 0);
    until_tidy(&m.lab[1]);
    cr_assert_eq(due__lease_release(&taken), 0);
    cr_assert_eq(due_clock_turn_to(stores, 100), 0);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    due_id next = lab_enqueue(&m.lab[0], "cake", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 1, &taken, 5000), 0);
    cr_expect(due_id_equal(taken.id, next));
    cr_expect_eq(lab_stats(&m.lab[1]).ready, 0u);
    cr_expect_eq(due_ack(&taken), 0);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
    cr_expect_eq(due_clock_free(stores), 0);
}
