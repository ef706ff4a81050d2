/* One queue for many processes: how a job that was claimed leaves memory again, and what is left of
 * it there. */
#include "api/ack.h"
#include "lab/mall.h"
#include "queue/counts.h"

#define JOBS 8 /* some of them come to the place of one before */

static int ack(due_job *job)
{
    return due_ack(job);
}

static int nack(due_job *job)
{
    return due_nack(job, 0);
}

static int snooze(due_job *job)
{
    return due_snooze(job, 0);
}

static int extend(due_job *job)
{
    return due_extend(job, 100);
}

static int bury(due_job *job)
{
    return due_bury(job, "cold");
}

static int (*const answers[])(due_job *job) = { ack, nack, snooze, bury, extend };

#define ANSWERS (sizeof answers / sizeof answers[0])

/* Process @i polls, so that a job is claimed that lies untaken. */
static void poll_for(struct mall *m, size_t i, const int *topics, int64_t lease_ns)
{
    due_job job;

    cr_assert_eq(take_leased_from(m->lab[i].q, topics, topics != NULL, &job, lease_ns, 0),
                 DUE_EAGAIN);
    while (due__ready_count(m->lab[i].q) == 0)
        crew_sleep(DUE_US(100));
}

/* One that lies there, so that what is counted too often is seen beside it. */
static void lay(struct mall *m, size_t i)
{
    int topic = lab_topic(&m->lab[i], "lies");

    lab_enqueue(&m->lab[i], "milk", .topic = topic);
    poll_for(m, i, &topic, DUE_S(100));
}

static void expect_only_that(struct mall *m, size_t i, size_t leased)
{
    cr_expect_eq(lab_stats(&m->lab[i]).leased, leased);
    cr_expect_eq(due__ready_count(m->lab[i].q), 1u);
}

static due_id put_every(struct lab *lab, int64_t every_ns)
{
    due_extra more = { DUE_EXTRA_INIT, .every_ns = every_ns };
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3, .more = &more };
    due_id id;

    cr_assert_eq(due_enqueue(lab->q, &spec, 0, &id), 0);
    return id;
}

MALL_TEST(share_end, of_a_job_that_was_answered_for_no_lease_is_left)
{
    struct mall m = mall_make(1);
    int plain = lab_topic(&m.lab[0], "");
    due_job job;

    lay(&m, 0);
    for (size_t i = 0; i < ANSWERS; i++) {
        due_id id = put_every(&m.lab[0], answers[i] == ack ? 50 : 0);
        cr_assert_eq(take_leased_from(m.lab[0].q, &plain, 1, &job, 100, DUE_FOREVER), 0);
        expect_only_that(&m, 0, 1);
        cr_expect_eq(answers[i](&job), 0);
        expect_only_that(&m, 0, answers[i] == extend);
        if (answers[i] == extend)
            cr_expect_eq(due_ack(&job), 0);
        else
            cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), 0);
    }
    cr_expect_eq(memory_disk_jobs(m.disk), 1u);
    mall_close(&m);
}

/* By its own clock the process has the job still; another one has it in the store. */
MALL_TEST(share_end, of_a_job_that_another_has_by_now_no_lease_is_left)
{
    due_clock *stores = due_clock_manual(0);
    struct mall m = mall_on(2, stores);
    int plain = lab_topic(&m.lab[0], "");
    int64_t now = 0;
    due_job first;
    due_job second;

    lay(&m, 0);
    for (size_t i = 0; i < ANSWERS; i++) {
        put_every(&m.lab[0], 0);
        cr_assert_eq(take_leased_from(m.lab[0].q, &plain, 1, &first, 100, DUE_FOREVER), 0);
        now += 100;
        cr_assert_eq(due_clock_turn_to(stores, now), 0);
        cr_assert_eq(mall_reserve(&m, 1, &second, 100), 0);
        cr_expect_eq(answers[i](&first), DUE_ESTALE);
        expect_only_that(&m, 0, 0);
        if (first.queue != NULL)
            due_job_done(&first);
        cr_expect_eq(due_ack(&second), 0);
    }
    cr_expect_eq(memory_disk_jobs(m.disk), 1u);
    mall_close(&m);
    cr_expect_eq(due_clock_free(stores), 0);
}

/* Its ack is refused, so that it is looked at again; it has not died. */
static void acked_at_last(struct mall *m, due_job *job)
{
    memory_store_fault(m->store[0], (struct memory_fault){ .verb = MEMORY_WORK,
                                                           .kind = MEMORY_ANSWER,
                                                           .answer = DUE_EDURABILITY });
    cr_expect_eq(due_ack(job), DUE_EDURABILITY);
    cr_expect_eq(due_ack(job), 0);
}

MALL_TEST(share_end, who_comes_to_the_place_of_a_buried_job_is_not_dead)
{
    struct mall m = mall_make(1);
    due_job job;

    for (int i = 0; i < JOBS; i++) {
        lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
        cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
        cr_expect_eq(due_bury(&job, "cold"), 0);
        lab_enqueue(&m.lab[0], "cake", .delay_ns = 0);
        cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
        acked_at_last(&m, &job);
    }
    cr_expect_eq(memory_disk_jobs(m.disk), (size_t)JOBS);
    mall_close(&m);
}

MALL_TEST(share_end, who_comes_to_the_place_of_a_job_that_was_buried_too_late_is_not_dead)
{
    due_clock *stores = due_clock_manual(0);
    struct mall m = mall_on(2, stores);
    due_job first;
    due_job second;

    for (int i = 0; i < JOBS; i++) {
        lab_enqueue(&m.lab[1], "tea", .delay_ns = 0);
        cr_assert_eq(mall_reserve(&m, 0, &first, 100), 0);
        cr_assert_eq(due_clock_turn_to(stores, 100 * (i + 1)), 0);
        cr_assert_eq(mall_reserve(&m, 1, &second, 100), 0);
        cr_expect_eq(due_bury(&first, "cold"), DUE_ESTALE);
        cr_expect_eq(due_ack(&second), 0);
        lab_enqueue(&m.lab[1], "cake", .delay_ns = 0);
        cr_assert_eq(mall_reserve(&m, 0, &first, 100), 0);
        acked_at_last(&m, &first);
    }
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
    cr_expect_eq(due_clock_free(stores), 0);
}

/* The store gives it the job once more, and by its own clock it has the first lease still.  An
 * answer for another job ends whatever it waits for in the store. */
MALL_TEST(share_end, of_two_leases_of_one_process_the_store_takes_the_answer_of_the_second)
{
    for (size_t i = 0; i < ANSWERS; i++) {
        due_clock *stores = due_clock_manual(0);
        struct mall m = mall_on(1, stores);
        due_job first;
        due_job second;
        due_job other;

        lab_enqueue(&m.lab[0], "cake", .delay_ns = 0);
        cr_assert_eq(mall_reserve(&m, 0, &other, 1000), 0);
        lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
        cr_assert_eq(mall_reserve(&m, 0, &first, 100), 0);
        cr_assert_eq(due_clock_turn_to(stores, 100), 0);
        cr_expect_eq(due_ack(&other), 0);
        cr_assert_eq(mall_reserve(&m, 0, &second, 100), 0);
        cr_expect(due_id_equal(first.id, second.id));
        cr_expect_eq(answers[i](&first), DUE_ESTALE);
        if (first.queue != NULL)
            due_job_done(&first);
        cr_expect_eq(memory_disk_jobs(m.disk), 1u);
        cr_expect_eq(due_ack(&second), 0);
        cr_expect_eq(memory_disk_jobs(m.disk), 0u);
        mall_close(&m);
        cr_expect_eq(due_clock_free(stores), 0);
    }
}

/* A lease is counted from the claim as long as no more than an eighth of it is over: then it is
 * made longer, to the whole. */
MALL_TEST(share_end, of_a_lease_up_to_an_eighth_may_be_over_when_it_is_handed_out)
{
    for (int64_t at = 100; at <= 101; at++) {
        struct mall m = mall_make(1);
        due_job job;

        lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
        poll_for(&m, 0, NULL, 800);
        uint64_t before = memory_store_calls(m.store[0], MEMORY_WORK);
        mall_turn_to(&m, at);
        cr_assert_eq(mall_reserve(&m, 0, &job, 800), 0);
        cr_expect_eq(memory_store_calls(m.store[0], MEMORY_WORK) - before, at == 100 ? 0u : 1u);
        mall_turn_to(&m, at == 100 ? 799 : 900);
        cr_expect_eq(due_ack(&job), 0, "%d", (int)at);
        cr_expect_eq(memory_disk_jobs(m.disk), 0u);
        mall_close(&m);
    }
}

enum way { FOR_GOOD, COUNTED, LONGER, ROUND, WAYS };

static int take_by(struct lab *lab, enum way way, due_job *job)
{
    return way == FOR_GOOD || way == ROUND
               ? due_dequeue(lab->q, job, DUE_FOREVER)
               : take_leased(lab->q, job, way == LONGER ? 5000 : 100, DUE_FOREVER);
}

/* Whatever is asked of the store for its sake; and nothing lies in the line any more. */
MALL_TEST(share_end, who_takes_a_job_that_another_has_by_now_gets_the_next_one)
{
    for (enum way way = FOR_GOOD; way < WAYS; way++) {
        due_clock *stores = due_clock_manual(0);
        struct mall m = mall_on(1, stores);
        struct lab_options with = { .kernel = false };
        due_job taken;
        due_job job;

        if (way == COUNTED)
            with.with.retry =
                (due_retry){ .kind = DUE_RETRY_FIXED, .delay_ns = 0, .attempts_max = 5 };
        mall_join(&m, with);
        put_every(&m.lab[0], way == ROUND ? 7 : 0);
        poll_for(&m, 1, NULL, 100);
        cr_assert_eq(due_clock_turn_to(stores, 100), 0);
        cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
        due_id next = lab_enqueue(&m.lab[0], "cake", .delay_ns = 0);
        cr_assert_eq(take_by(&m.lab[1], way, &taken), 0);
        cr_expect(due_id_equal(taken.id, next), "%d", (int)way);
        cr_expect_eq(due__ready_count(m.lab[1].q), 0u, "%d", (int)way);
        due_job_done(&taken);
        due_job_done(&job);
        mall_close(&m);
        cr_expect_eq(due_clock_free(stores), 0);
    }
}

static int ack_main(void *arg)
{
    return due_ack(arg);
}

/* What an exchange in doubt asks stays as it is, also where the clock shows 0: who comes to wait
 * meanwhile is for the next one. */
MALL_TEST(share_end, an_answer_in_doubt_brings_no_job_that_it_had_not_asked_for)
{
    for (int landed = 0; landed < 2; landed++)
        for (int64_t now = 0; now < 2; now++) {
            struct mall m = mall_make(2);
            struct crew_thread thread;
            struct crew_call c;
            due_job job;

            mall_turn_to(&m, now);
            lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
            cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
            uint64_t works = memory_store_calls(m.store[1], MEMORY_WORK);
            memory_store_fault(
                m.store[1],
                (struct memory_fault){ .verb = MEMORY_WORK,
                                       .times = MEMORY_ALWAYS,
                                       .kind = landed ? MEMORY_DOUBT_LANDED : MEMORY_DOUBT_NOT });
            crew_go(&thread, ack_main, &job);
            memory_store_until(m.store[1], MEMORY_WORK, works + 1);
            crew_call_reserve(&c, m.lab[1].q, NULL, 0, 100, DUE_FOREVER);
            crew_call_asleep(&c);
            works = memory_store_calls(m.store[1], MEMORY_WORK);
            memory_store_until(m.store[1], MEMORY_WORK, works + 2);
            memory_store_forgive(m.store[1]);
            cr_expect_eq(crew_join(&thread), 0);
            lab_enqueue(&m.lab[0], "cake", .delay_ns = 0);
            cr_assert_eq(crew_call_answer(&c), 0);
            cr_expect_str_eq(lab_text(&m.lab[1], &c.job), "cake");
            mall_close(&m);
        }
}
