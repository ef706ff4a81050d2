/* One queue for many processes: what each verb does, with two of them. */
#include "api/ack.h"
#include "lab/mall.h"

MALL_TEST(share, a_job_put_by_one_is_taken_by_the_other)
{
    struct mall m = mall_make(2);
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], "tea", .delay_ns = 5);
    mall_turn_to(&m, 5);
    cr_assert_eq(mall_take(&m, 1, &job), 0);
    cr_expect(due_id_equal(job.id, id));
    cr_expect_eq(job.deadline_ns, 5);
    cr_expect_str_eq(lab_text(&m.lab[1], &job), "tea");
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

MALL_TEST(share, a_reserved_job_is_acked)
{
    struct mall m = mall_make(2);
    due_job job;

    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
    cr_expect_eq(job.attempts, 1u);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

MALL_TEST(share, who_waits_gets_what_is_put_or_comes_due_later)
{
    struct mall m = mall_make(2);
    struct crew_call c;

    crew_call_reserve(&c, m.lab[1].q, NULL, 0, 100, DUE_FOREVER);
    crew_call_asleep(&c);
    lab_enqueue(&m.lab[0], "tea", .delay_ns = 10);
    mall_turn_to(&m, 10);
    cr_assert_eq(crew_call_answer(&c), 0);
    cr_expect_eq(c.job.deadline_ns, 10);
    cr_expect_eq(due_ack(&c.job), 0);
    mall_close(&m);
}

MALL_TEST(share, a_nacked_job_comes_to_whoever_is_next_with_its_counts)
{
    struct mall m = mall_make(2);
    due_job job;

    lab_enqueue(&m.lab[0], "tea", .at_ns = 1);
    mall_turn_to(&m, 1);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    cr_expect_eq(due_nack(&job, 10), 0);
    mall_turn_to(&m, 11);
    cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
    cr_expect_eq(job.attempts, 2u);
    cr_expect_eq(job.failures, 1u);
    cr_expect_eq(job.deadline_ns, 1);
    cr_expect_eq(due_snooze(&job, 10), 0);
    for (int i = 0; i < 2; i++)
        cr_expect_eq(lab_stats(&m.lab[i]).retried, 1u);
    mall_turn_to(&m, 21);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    cr_expect_eq(job.attempts, 2u);
    cr_expect_eq(job.failures, 1u);
    cr_expect_eq(due_ack(&job), 0);
    mall_close(&m);
}

MALL_TEST(share, a_buried_job_is_dead_for_all)
{
    struct mall m = mall_make(2);
    due_record r;
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
    cr_expect_eq(due_bury(&job, "cold"), 0);
    cr_assert(memory_disk_find(m.disk, id, &r));
    cr_expect_eq(r.cause, DUE_CAUSE_BURIED);
    cr_expect_eq(lab_stats(&m.lab[1]).buried, 1u);
    cr_expect_eq(lab_stats(&m.lab[1]).dead, 0u, "it is not this process's");
    mall_close(&m);
}

MALL_TEST(share, a_lease_that_ends_gives_the_job_to_another_and_fences_the_first)
{
    struct mall m = mall_make(2);
    due_job first;
    due_job second;

    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 0, &first, 100), 0);
    mall_turn_to(&m, 100);
    cr_assert_eq(mall_reserve(&m, 1, &second, 100), 0);
    cr_expect(due_id_equal(first.id, second.id));
    cr_expect_gt(second.token, first.token);
    cr_expect_eq(due_job_stopping(&first), 1);
    cr_expect_eq(due_ack(&first), DUE_ESTALE);
    cr_expect_eq(memory_disk_jobs(m.disk), 1u);
    cr_expect_eq(due_ack(&second), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

/* The local clock says that it is ours still; the store knows better. */
MALL_TEST(share, an_answer_that_is_late_in_the_store_changes_nothing)
{
    due_clock *stores = due_clock_manual(0);
    struct mall m = mall_on(0, stores);
    due_job second;
    due_job job;

    for (int i = 0; i < 2; i++)
        mall_join(&m, (struct lab_options){ .kernel = false });
    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    cr_assert_eq(due_clock_turn_to(stores, 100), 0);
    cr_assert_eq(mall_reserve(&m, 1, &second, 100), 0);
    cr_expect_eq(due_nack(&job, 0), DUE_ESTALE);
    cr_expect_null(job.queue, "it is let go of");
    cr_expect_eq(due_ack(&second), 0);
    mall_close(&m);
    cr_expect_eq(due_clock_free(stores), 0);
}

MALL_TEST(share, the_jobs_of_a_process_that_dies_come_again_at_the_end_of_their_leases)
{
    struct mall m = mall_make(2);
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    mall_die(&m, 0);
    mall_turn_to(&m, 100);
    due_job again;
    cr_assert_eq(mall_reserve(&m, 1, &again, 100), 0);
    cr_expect(due_id_equal(again.id, id));
    cr_expect_eq(due_ack(&again), 0);
    due_job_done(&job);
    mall_close(&m);
}

MALL_TEST(share, an_attempt_of_few_is_counted_in_the_store_and_the_last_one_that_lapses_buries)
{
    struct mall m = mall_make(0);
    const due_retry twice = { .kind = DUE_RETRY_FIXED, .delay_ns = 0, .attempts_max = 2 };
    due_record r;
    due_job job;

    for (int i = 0; i < 2; i++)
        mall_join(&m, (struct lab_options){ .with.retry = twice });
    due_id id = lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(mall_reserve(&m, (size_t)i, &job, 100), 0);
        cr_expect_eq(job.attempts, (uint32_t)i + 1);
        cr_expect_eq(job.failures, (uint32_t)i);
        cr_assert(memory_disk_find(m.disk, id, &r));
        cr_expect_eq(r.attempts, (uint32_t)i + 1);
        due_job_done(&job);
        mall_turn_to(&m, 100 * (i + 1));
    }
    due_id next = lab_enqueue(&m.lab[0], "cake", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    cr_expect(due_id_equal(job.id, next), "it was handed out a third time");
    cr_expect_eq(due_ack(&job), 0);
    cr_assert(memory_disk_find(m.disk, id, &r));
    cr_expect_eq(r.cause, DUE_CAUSE_ATTEMPTS);
    cr_expect_eq(r.failures, 2u);
    mall_close(&m);
}

MALL_TEST(share, a_lease_is_extended_in_the_store_too)
{
    struct mall m = mall_on(0, NULL);
    struct due_topic_stats stats;
    due_job job;

    for (int i = 0; i < 2; i++)
        mall_join(&m, (struct lab_options){ .with.metrics = 1 });
    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    mall_turn_to(&m, 90);
    cr_expect_eq(due_extend(&job, 100), 0);
    cr_assert_eq(due_topic_stats_read(m.lab[0].q, 0, &stats), 0);
    cr_expect_eq(stats.leased, 1u);
    struct crew_call c;
    crew_call_reserve(&c, m.lab[1].q, NULL, 0, 100, DUE_FOREVER);
    crew_call_asleep(&c);
    mall_turn_to(&m, 189);
    cr_expect_eq(due_job_stopping(&job), 0);
    cr_expect_eq(due_ack(&job), 0);
    cr_assert_eq(due_topic_stats_read(m.lab[0].q, 0, &stats), 0);
    cr_expect_eq(stats.leased, 0u);
    lab_enqueue(&m.lab[0], "cake", .delay_ns = 0);
    cr_assert_eq(crew_call_answer(&c), 0);
    cr_expect_str_eq(lab_text(&m.lab[1], &c.job), "cake");
    mall_close(&m);
}

/* Two are claimed by who reserves for 100: one of them is taken for longer. */
MALL_TEST(share, a_lease_longer_than_the_claim_is_extended_before_the_hand_over)
{
    struct mall m = mall_make(1);
    size_t greedy = mall_join(&m, (struct lab_options){ .with.prefetch_max = 8 });
    struct crew_call c[2];
    due_job job;

    for (int i = 0; i < 2; i++) {
        crew_call_reserve(&c[i], m.lab[greedy].q, NULL, 0, 100, DUE_FOREVER);
        crew_call_asleep(&c[i]);
    }
    for (int i = 0; i < 2; i++)
        lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(crew_call_answer(&c[i]), 0);
    cr_expect_eq(due__lease_release(&c[0].job), 0);
    cr_assert_eq(mall_reserve(&m, greedy, &job, 5000), 0);
    mall_turn_to(&m, 4999);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(due_ack(&c[1].job), DUE_ESTALE);
    cr_expect_eq(memory_disk_jobs(m.disk), 1u);
    mall_close(&m);
}

MALL_TEST(share, a_poll_gets_its_job_when_it_asks_again)
{
    struct mall m = mall_make(2);
    due_job job;
    int rc;

    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    while ((rc = due_dequeue(m.lab[1].q, &job, 0)) == DUE_EAGAIN)
        crew_sleep(DUE_US(100));
    cr_assert_eq(rc, 0);
    cr_expect_str_eq(lab_text(&m.lab[1], &job), "tea");
    mall_close(&m);
}

MALL_TEST(share, what_was_claimed_for_nobody_goes_back)
{
    struct mall m = mall_make(2);
    due_job job;

    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_expect_eq(due_dequeue(m.lab[1].q, &job, 0), DUE_EAGAIN);
    while (lab_stats(&m.lab[1]).ready == 0)
        crew_sleep(DUE_US(100));
    cr_expect_eq(due_close(m.lab[1].q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    cr_expect_eq(job.failures, 0u);
    cr_expect_eq(due_ack(&job), 0);
    mall_close(&m);
}

MALL_TEST(share, topics_are_claimed_by_those_who_want_them)
{
    struct mall m = mall_make(2);
    due_job job;
    int tea = lab_topic(&m.lab[0], "tea");
    int cake = lab_topic(&m.lab[0], "cake");
    int there = lab_topic(&m.lab[1], "cake");

    lab_enqueue(&m.lab[0], "green", .topic = tea);
    lab_enqueue(&m.lab[0], "sweet", .topic = cake);
    cr_assert_eq(take_leased_from(m.lab[1].q, &there, 1, &job, 100, DUE_FOREVER), 0);
    cr_expect_eq(job.topic, there);
    cr_expect_eq(due_ack(&job), 0);
    cr_assert_eq(mall_take(&m, 1, &job), 0);
    cr_expect_str_eq(due_topic_name(m.lab[1].q, job.topic), "tea", "a topic it had not heard of");
    due_job_done(&job);
    mall_close(&m);
}

MALL_TEST(share, an_exchange_in_doubt_has_one_effect)
{
    struct mall m = mall_make(2);
    due_job job;

    for (int i = 0; i < 2; i++) {
        memory_store_fault(
            m.store[i], (struct memory_fault){ .verb = MEMORY_PUT, .kind = MEMORY_DOUBT_LANDED });
        memory_store_fault(
            m.store[i],
            (struct memory_fault){ .verb = MEMORY_WORK, .times = 2, .kind = MEMORY_DOUBT_LANDED });
    }
    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 1u);
    cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
    memory_store_fault(m.store[1], (struct memory_fault){
                                       .verb = MEMORY_WORK, .times = 2, .kind = MEMORY_DOUBT_NOT });
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

MALL_TEST(share, a_full_store_refuses_puts_and_takes_the_rest)
{
    struct mall m = mall_make(1);
    due_spec spec = { DUE_SPEC_INIT };
    due_job job;

    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    memory_store_fault(
        m.store[0],
        (struct memory_fault){ .verb = MEMORY_PUT, .times = MEMORY_ALWAYS, .kind = MEMORY_FULL });
    cr_expect_eq(due_enqueue(m.lab[0].q, &spec, 0, NULL), DUE_ENOSPC);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

/* ---- Jobs that are elsewhere ---- */

MALL_TEST(share, a_job_is_found_moved_and_cancelled_by_whoever_knows_its_id)
{
    struct mall m = mall_make(2);
    due_info info;
    int64_t ns;

    due_id id = lab_enqueue(&m.lab[0], "tea", .at_ns = 50, .priority = 3);
    cr_assert_eq(due_find(m.lab[1].q, id, &info), 0);
    cr_expect_eq(info.deadline_ns, 50);
    cr_expect_eq(info.priority, 3);
    cr_expect_eq(info.len, 3u);
    cr_expect_eq(info.ready, 0);
    cr_expect_eq(due_reschedule(m.lab[1].q, id, 70), 0);
    cr_expect_eq(due_remaining(m.lab[0].q, id, &ns), 0);
    cr_expect_eq(ns, 70);
    cr_expect_eq(due_cancel(m.lab[1].q, id, NULL), 0);
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), DUE_ENOENT);
    cr_expect_eq(due_find(m.lab[0].q, id, &info), DUE_ENOENT);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

MALL_TEST(share, a_job_that_another_process_has_is_busy)
{
    struct mall m = mall_make(2);
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), DUE_EBUSY);
    cr_expect_eq(due_reschedule(m.lab[0].q, id, 70), DUE_EBUSY);
    cr_expect_eq(due_kick(m.lab[0].q, id), DUE_ENOENT);
    cr_expect_eq(due_ack(&job), 0);
    mall_close(&m);
}

MALL_TEST(share, dead_jobs_are_listed_and_kicked_by_any)
{
    struct mall m = mall_make(2);
    struct memory_entry entry;
    due_dead dead[3];
    due_id id[2];
    due_job job;
    uint64_t at = 0;

    for (int i = 0; i < 2; i++) {
        id[i] = lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
        cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
        cr_expect_eq(due_bury(&job, "cold"), 0);
        mall_turn_to(&m, i + 1);
    }
    cr_assert_eq(due_list_dead(m.lab[0].q, &at, dead, 1), 1);
    cr_expect(due_id_equal(dead[0].id, id[0]));
    cr_expect_str_eq(dead[0].reason, "cold");
    cr_assert_eq(due_list_dead(m.lab[0].q, &at, dead, 3), 1);
    cr_expect(due_id_equal(dead[0].id, id[1]));
    cr_expect_eq(due_list_dead(m.lab[0].q, &at, dead, 3), 0);
    cr_expect_eq(due_reschedule(m.lab[0].q, id[1], 9), DUE_ENOENT);
    size_t before = 0;
    while (memory_disk_entry(m.disk, before, &entry))
        before++;
    cr_expect_eq(due_kick(m.lab[0].q, id[1]), 0);
    cr_assert(memory_disk_entry(m.disk, before, &entry));
    cr_expect_eq(entry.kind, DUE_CHANGE_MOVE, "its content need not be sent");
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    cr_expect(due_id_equal(job.id, id[1]));
    cr_expect_eq(job.attempts, 1u);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(due_cancel(m.lab[1].q, id[0], NULL), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

MALL_TEST(share, a_promoted_job_is_taken_at_once)
{
    struct mall m = mall_make(2);
    struct crew_call c;

    crew_call_reserve(&c, m.lab[1].q, NULL, 0, 100, DUE_FOREVER);
    crew_call_asleep(&c);
    due_id id = lab_enqueue(&m.lab[0], "tea", .at_ns = 1000);
    cr_expect_eq(due_promote(m.lab[0].q, id), 0);
    cr_assert_eq(crew_call_answer(&c), 0);
    cr_expect(due_id_equal(c.job.id, id));
    cr_expect_eq(due_ack(&c.job), 0);
    mall_close(&m);
}

MALL_TEST(share, a_cancel_in_doubt_is_seen_through)
{
    struct mall m = mall_make(2);

    due_id id = lab_enqueue(&m.lab[0], "tea", .at_ns = 50);
    memory_store_fault(
        m.store[1],
        (struct memory_fault){ .verb = MEMORY_PUT, .times = 2, .kind = MEMORY_DOUBT_LANDED });
    int rc = due_cancel(m.lab[1].q, id, NULL);
    cr_expect(rc == 0 || rc == DUE_EINDOUBT, "%d", rc);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    lab_enqueue(&m.lab[1], "cake", .at_ns = 50);
    cr_expect_eq(memory_disk_jobs(m.disk), 1u);
    mall_close(&m);
}

/* ---- What is not ours any more ---- */

/* Two were claimed; one of them lies untaken.  While the sender is held up nobody tidies. */
MALL_TEST(share, what_lay_untaken_for_too_long_is_not_handed_out)
{
    struct mall m = mall_make(1);
    size_t greedy = mall_join(&m, (struct lab_options){ .with.prefetch_max = 8 });
    struct memory_limiter *gate = memory_limiter_new(m.disk);
    struct crew_call c[2];
    struct crew_call put;
    due_job job;

    for (int i = 0; i < 2; i++) {
        crew_call_reserve(&c[i], m.lab[greedy].q, NULL, 0, 100, DUE_FOREVER);
        crew_call_asleep(&c[i]);
    }
    for (int i = 0; i < 2; i++)
        lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(crew_call_answer(&c[i]), 0);
    cr_expect_eq(due__lease_release(&c[0].job), 0);
    memory_store_fault(
        m.store[greedy],
        (struct memory_fault){ .verb = MEMORY_PUT, .kind = MEMORY_BLOCK, .limiter = gate });
    crew_call_enqueue(&put, m.lab[greedy].q,
                      (due_spec){ DUE_SPEC_INIT, .at_ns = 5000, .data = "late", .len = 4 },
                      DUE_FOREVER);
    memory_limiter_reached(gate, 1);
    mall_turn_to(&m, 100);
    cr_expect_eq(take_leased(m.lab[greedy].q, &job, 100, 0), DUE_EAGAIN);
    memory_limiter_open(gate);
    cr_expect_eq(crew_call_answer(&put), 0);
    cr_expect_eq(due_ack(&c[1].job), DUE_ESTALE);
    memory_limiter_free(gate);
    mall_close(&m);
}

/* By its own clock the process has the job still; the store has given it to another. */
MALL_TEST(share, a_job_that_another_has_by_now_does_not_leave_for_a_taker)
{
    due_clock *stores = due_clock_manual(0);
    struct mall m = mall_on(0, stores);
    struct crew_call c[2];
    due_job job;

    mall_join(&m, (struct lab_options){ .kernel = false });
    size_t greedy = mall_join(&m, (struct lab_options){ .with.prefetch_max = 8 });
    for (int i = 0; i < 2; i++) {
        crew_call_reserve(&c[i], m.lab[greedy].q, NULL, 0, 100, DUE_FOREVER);
        crew_call_asleep(&c[i]);
    }
    for (int i = 0; i < 2; i++)
        lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(crew_call_answer(&c[i]), 0);
    cr_expect_eq(due_ack(&c[1].job), 0);
    cr_expect_eq(due__lease_release(&c[0].job), 0);
    cr_assert_eq(due_clock_turn_to(stores, 100), 0);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    due_id next = lab_enqueue(&m.lab[0], "cake", .delay_ns = 0);
    due_job taken;
    cr_assert_eq(mall_take(&m, greedy, &taken), 0);
    cr_expect(due_id_equal(taken.id, next));
    due_job_done(&taken);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
    cr_expect_eq(due_clock_free(stores), 0);
}

/* It has the job twice: by a lease that is over, and by the one that it claimed after that. */
MALL_TEST(share, a_job_that_comes_again_to_the_same_process_has_one_lease_that_counts)
{
    struct mall m = mall_make(1);
    due_job first;
    due_job second;

    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 0, &first, 100), 0);
    mall_turn_to(&m, 100);
    cr_assert_eq(mall_reserve(&m, 0, &second, 100), 0);
    cr_expect(due_id_equal(first.id, second.id));
    cr_expect_gt(second.token, first.token);
    cr_expect_eq(due_nack(&first, 0), DUE_ESTALE);
    cr_expect_eq(due_cancel(m.lab[0].q, second.id, NULL), DUE_EBUSY);
    cr_expect_eq(due_job_stopping(&second), 1, "it was cancelled meanwhile");
    cr_expect_eq(due_ack(&second), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

/* ---- Who may not share it ---- */

Test(share, one_process_that_owns_the_jobs_and_many_that_share_them_exclude_each_other,
     .timeout = 20)
{
    struct mall m = mall_make(1);
    due_store *store = memory_store_new(m.disk);
    due_options o = { DUE_OPTIONS_INIT, .store = store, .open_timeout_ns = 1, .manual = m.clock };
    due_queue *q;

    cr_expect_eq(due_open(&q, &o, NULL), DUE_EBUSY);
    store->verbs->free(store);
    mall_close(&m);
}

Test(share, a_process_that_may_not_join_leaves_no_memory_behind, .timeout = 20)
{
    struct mall m = mall_make(1);
    struct flaky memory;
    due_options o = { DUE_OPTIONS_INIT, .store = memory_store_new(m.disk), .share = DUE_SHARED,
                      .manual = m.clock, .allocator = &memory.hooks };
    due_queue *q;

    flaky_init(&memory, FLAKY_NEVER);
    memory_store_fault(
        o.store,
        (struct memory_fault){ .verb = MEMORY_JOIN, .kind = MEMORY_ANSWER, .answer = DUE_EACCES });
    cr_expect_eq(due_open(&q, &o, NULL), DUE_EACCES);
    cr_expect_eq(atomic_load(&memory.live), 0u);
    o.store->verbs->free(o.store);
    mall_close(&m);
}
