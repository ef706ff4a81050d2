/* A queue with a store: what is written through, and what comes back. */
#include <poll.h>

#include "due/metrics.h"
#include "lab/shop.h"
#include "lab/take.h"

#define shop_again(s, ns) shop_crash((s), (struct lab_options){ .start_ns = (ns) })

Test(stored, a_job_is_in_the_store_when_the_call_returns, .timeout = 60)
{
    struct shop s = shop_make();
    due_record r;

    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 1001, .priority = 7);
    cr_assert(memory_disk_find(s.disk, id, &r));
    cr_expect_eq(r.deadline_ns, 1001);
    cr_expect_eq(r.until_ns, 1001);
    cr_expect_eq(r.priority, 7);
    cr_expect_eq(r.len, 3u);
    shop_close(&s);
}

Test(stored, everything_comes_back_after_a_crash, .timeout = 60)
{
    struct shop s = shop_make();
    int mail = lab_topic(&s.lab, "mail");
    due_id a = lab_enqueue(&s.lab, "a", .at_ns = 30, .priority = 3, .topic = mail);
    due_id b = lab_enqueue(&s.lab, "b", .at_ns = 20);

    lab_enqueue(&s.lab, "c", .at_ns = 10);
    shop_again(&s, 0);
    cr_expect_eq(lab_stats(&s.lab).restored, 3u);
    due_info info = lab_find(&s.lab, a);
    cr_expect_eq(info.deadline_ns, 30);
    cr_expect_eq(info.priority, 3);
    cr_expect_str_eq(due_topic_name(s.lab.q, info.topic), "mail");
    lab_turn_to(&s.lab, 19);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "c");
    cr_expect_eq(due_cancel(s.lab.q, b, NULL), 0, "an old id is not known");
    lab_turn_to(&s.lab, 30);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "a");
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    shop_close(&s);
}

Test(stored, a_dequeued_job_has_left_the_store, .timeout = 60)
{
    struct shop s = shop_make();
    due_id id = lab_enqueue(&s.lab, "tea", .delay_ns = 0);
    due_job job;

    cr_assert_eq(lab_take(&s.lab, &job), 0);
    cr_expect_not(memory_disk_find(s.disk, id, NULL));
    due_job_done(&job);
    shop_again(&s, 0);
    cr_expect_null(lab_dequeue(&s.lab));
    shop_close(&s);
}

Test(stored, a_reserved_job_comes_back_until_it_is_acked, .timeout = 60)
{
    struct shop s = shop_make();
    due_job job;

    lab_enqueue(&s.lab, "tea", .at_ns = 5);
    lab_turn_to(&s.lab, 5);
    cr_assert_eq(take_leased(s.lab.q, &job, 100, 0), 0);
    due_job_done(&job); /* it dies with it */
    shop_again(&s, 5);
    cr_assert_eq(take_leased(s.lab.q, &job, 100, 0), 0);
    cr_expect_eq(job.deadline_ns, 5);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    shop_close(&s);
}

Test(stored, a_batch_leaves_and_is_acked_as_one_change, .timeout = 60)
{
    enum { JOBS = 200 };
    struct shop s = shop_make(.start_ns = 5);
    due_job jobs[JOBS + 1];
    int results[JOBS + 1];

    for (int i = 0; i < 2 * JOBS; i++)
        lab_enqueue(&s.lab, "tea", .at_ns = 5);
    uint64_t before = memory_disk_batches(s.disk);
    cr_assert_eq(take_some(s.lab.q, NULL, 0, jobs, JOBS, DUE_S(20)), JOBS);
    cr_expect_leq(memory_disk_batches(s.disk), before + 4);
    for (int i = 0; i < JOBS; i++)
        due_job_done(&jobs[i]);
    cr_assert_eq(take_leased_some(s.lab.q, NULL, 0, jobs, JOBS, 100, 0), JOBS);
    cr_expect_eq(due_nack(&jobs[7], 0), 0);
    due_job late = { 0 };
    cr_assert_eq(take_leased(s.lab.q, &late, 1, 0), 0);
    lab_turn_to(&s.lab, 6);
    jobs[JOBS] = late;
    before = memory_disk_batches(s.disk);
    cr_expect_eq(due_ack_batch(jobs, JOBS + 1, results), JOBS - 1);
    cr_expect_leq(memory_disk_batches(s.disk), before + 4);
    for (int i = 0; i <= JOBS; i++)
        cr_expect_eq(results[i], i == 7 ? DUE_EINVAL : i == JOBS ? DUE_ESTALE : 0);
    cr_expect_eq(memory_disk_jobs(s.disk), 1u);
    shop_close(&s);
}

Test(stored, acks_of_a_batch_that_are_refused_keep_their_leases, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 5, .with.store_timeout_ns = DUE_MS(50));
    due_job jobs[3];
    int results[3];

    for (int i = 0; i < 3; i++)
        lab_enqueue(&s.lab, "tea", .at_ns = 5);
    cr_assert_eq(take_leased_some(s.lab.q, NULL, 0, jobs, 3, 100, 0), 3);
    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_READY, .times = MEMORY_ALWAYS, .kind = MEMORY_AWAY });
    cr_expect_eq(due_ack_batch(jobs, 3, results), 0);
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(results[i], DUE_ETIMEDOUT);
        cr_expect_not_null(jobs[i].queue, "it was let go of");
    }
    memory_store_forgive(s.store);
    cr_expect_eq(due_ack_batch(jobs, 3, results), 3);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    shop_close(&s);
}

Test(stored, a_nack_is_kept_with_its_time_and_its_count, .timeout = 60)
{
    struct shop s = shop_make();
    due_job job;

    lab_enqueue(&s.lab, "tea", .at_ns = 5);
    lab_turn_to(&s.lab, 5);
    cr_assert_eq(take_leased(s.lab.q, &job, 100, 0), 0);
    cr_expect_eq(due_nack(&job, 1000), 0);
    shop_again(&s, 5);
    lab_turn_to(&s.lab, 1004);
    cr_expect_null(lab_dequeue(&s.lab));
    lab_turn_to(&s.lab, 1005);
    cr_assert_eq(take_leased(s.lab.q, &job, 100, 0), 0);
    cr_expect_eq(job.attempts, 2u);
    cr_expect_eq(job.failures, 1u);
    cr_expect_eq(job.deadline_ns, 5);
    cr_expect_eq(due_ack(&job), 0);
    shop_close(&s);
}

/* Also if its caller is gone by then; one that is refused is not. */
Test(stored, a_nack_is_counted_when_it_has_landed, .timeout = 60)
{
    const due_retry once = { .kind = DUE_RETRY_FIXED, .attempts_max = 1 };

    for (int i = 0; i < 5; i++) {
        bool async = i == 4;
        bool last = i % 2 != 0;
        enum memory_fault_kind kind = async   ? MEMORY_FULL
                                      : i < 2 ? MEMORY_DOUBT_NOT
                                              : MEMORY_DOUBT_LANDED;
        struct shop s = shop_make(.with.store_timeout_ns = DUE_MS(200), .with.metrics = 1,
                                  .with.confirm = async ? DUE_CONFIRM_ASYNC : DUE_CONFIRM_SYNC);
        struct due_topic_stats of_topic;
        due_job job;

        lab_enqueue(&s.lab, "tea", .more = EXTRA(.retry = last ? &once : NULL));
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        cr_assert_eq(lab_reserve(&s.lab, &job, 100), 0);
        shop_fail(&s, MEMORY_COMMIT, MEMORY_ALWAYS, kind);
        cr_expect_eq(due_nack(&job, 5), async ? 0 : DUE_EINDOUBT);
        if (!async)
            memory_store_forgive(s.store);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        cr_expect_eq(lab_stats(&s.lab).dead, (uint64_t)last);
        cr_expect_eq(lab_stats(&s.lab).nacked, (uint64_t)!async, "%d", i);
        cr_expect_eq(due_topic_stats_read(s.lab.q, 0, &of_topic), 0);
        cr_expect_eq(of_topic.nacked, (uint64_t)!async, "%d", i);
        memory_store_forgive(s.store);
        shop_close(&s);
    }
}

Test(stored, a_moved_job_is_moved_in_the_store, .timeout = 60)
{
    struct shop s = shop_make();
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 500);
    due_record r;

    cr_expect_eq(due_reschedule(s.lab.q, id, 700), 0);
    cr_assert(memory_disk_find(s.disk, id, &r));
    cr_expect_eq(r.until_ns, 700);
    cr_expect_eq(r.deadline_ns, 700);
    shop_again(&s, 0);
    lab_turn_to(&s.lab, 699);
    cr_expect_null(lab_dequeue(&s.lab));
    cr_expect_eq(due_promote(s.lab.q, id), 0);
    cr_expect_str_eq(lab_dequeue(&s.lab), "tea");
    shop_close(&s);
}

Test(stored, a_cancelled_job_is_gone_for_good, .timeout = 60)
{
    struct shop s = shop_make();
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 500);
    due_id lent = lab_enqueue(&s.lab, "lent", .at_ns = 500);
    due_job job;

    cr_expect_eq(due_cancel(s.lab.q, id, NULL), 0);
    cr_expect_eq(due_cancel(s.lab.q, id, NULL), DUE_ENOENT);
    cr_expect_eq(due_cancel(s.lab.q, lent, &job), 0);
    cr_expect_str_eq(lab_text(&s.lab, &job), "lent");
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    shop_close(&s);
}

Test(stored, clearing_clears_the_store_and_closing_does_not, .timeout = 60)
{
    struct shop s = shop_make();
    uint64_t cleared;

    lab_enqueue(&s.lab, "one", .at_ns = 500);
    lab_enqueue(&s.lab, "two", .at_ns = 501);
    cr_expect_eq(due_clear(s.lab.q, 0, &cleared), 0);
    cr_expect_eq(cleared, 2u);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    lab_enqueue(&s.lab, "three", .at_ns = 502);
    lab_close(&s.lab);
    cr_expect_eq(memory_disk_jobs(s.disk), 1u);
    shop_open(&s, (struct lab_options){ .start_ns = 502 });
    cr_expect_str_eq(lab_dequeue(&s.lab), "three");
    shop_close(&s);
}

Test(stored, async_changes_are_confirmed_by_a_flush, .timeout = 60)
{
    struct shop s = shop_make(.with.confirm = DUE_CONFIRM_ASYNC);
    due_id id = { { 0 } };

    for (int i = 0; i < 1000; i++)
        id = lab_enqueue(&s.lab, "tea", .at_ns = 500 + i);
    cr_expect_eq(due_reschedule(s.lab.q, id, 5), 0);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    cr_expect_eq(memory_disk_jobs(s.disk), 1000u);
    cr_expect_eq(lab_stats(&s.lab).unsettled, 0u);
    lab_turn_to(&s.lab, 5);
    cr_expect_str_eq(lab_dequeue(&s.lab), "tea");
    shop_close(&s);
}

Test(stored, an_async_job_cancelled_before_it_was_sent_never_is, .timeout = 60)
{
    struct shop s = shop_make(.with.confirm = DUE_CONFIRM_ASYNC);
    struct memory_limiter *limiter = memory_limiter_new(s.disk);

    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_COMMIT, .kind = MEMORY_BLOCK, .limiter = limiter });
    lab_enqueue(&s.lab, "first", .at_ns = 500);
    memory_limiter_reached(limiter, 1);
    due_id id = lab_enqueue(&s.lab, "second", .at_ns = 500);
    cr_expect_eq(due_cancel(s.lab.q, id, NULL), 0);
    memory_limiter_open(limiter);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    struct memory_entry entry;
    for (size_t i = 0; memory_disk_entry(s.disk, i, &entry); i++)
        cr_expect_not(due_id_equal(entry.id, id), "it was sent");
    lab_close(&s.lab);
    memory_limiter_free(limiter);
    cr_expect_null(memory_disk_wrong(s.disk));
    memory_disk_free(s.disk);
}

Test(stored, in_doubt_is_told_and_seen_through, .timeout = 60)
{
    for (int landed = 0; landed < 2; landed++) {
        struct shop s = shop_make(.with.store_timeout_ns = DUE_MS(50));
        due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3, .at_ns = 10 };
        due_id id;

        memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                           .times = MEMORY_ALWAYS,
                                                           .kind = landed ? MEMORY_DOUBT_LANDED
                                                                          : MEMORY_DOUBT_NOT });
        cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, &id), DUE_EINDOUBT);
        memory_store_forgive(s.store);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        cr_expect(memory_disk_find(s.disk, id, NULL));
        lab_turn_to(&s.lab, 10);
        cr_expect_str_eq(lab_dequeue(&s.lab), "tea");
        cr_expect_null(lab_dequeue(&s.lab), "it came twice");
        shop_close(&s);
    }
}

Test(stored, while_the_store_is_away_nothing_changes, .timeout = 60)
{
    struct shop s = shop_make(.with.store_timeout_ns = DUE_MS(50));
    due_spec spec = { DUE_SPEC_INIT, .data = "new", .len = 3 };
    due_id id = lab_enqueue(&s.lab, "old", .at_ns = 10);
    due_job job;

    lab_turn_to(&s.lab, 10);
    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_READY, .times = MEMORY_ALWAYS, .kind = MEMORY_AWAY });
    cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), DUE_ETIMEDOUT);
    cr_expect_eq(due_cancel(s.lab.q, id, NULL), DUE_ETIMEDOUT);
    cr_expect_eq(due_reschedule(s.lab.q, id, 50), DUE_ETIMEDOUT);
    cr_expect_eq(due_dequeue(s.lab.q, &job, 0), DUE_ESTORE);
    cr_expect_eq(lab_stats(&s.lab).store_state, DUE_ESTORE);
    cr_expect_eq(lab_stats(&s.lab).waiting, 1u);
    memory_store_forgive(s.store);
    cr_expect_str_eq(lab_dequeue(&s.lab), "old");
    cr_expect_null(lab_dequeue(&s.lab));
    shop_close(&s);
}

Test(stored, a_full_store_refuses_jobs_and_can_be_drained, .timeout = 60)
{
    struct shop s = shop_make();
    due_spec spec = { DUE_SPEC_INIT, .data = "new", .len = 3 };
    due_job job;

    lab_enqueue(&s.lab, "old", .delay_ns = 0);
    lab_enqueue(&s.lab, "older", .delay_ns = 0);
    memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                       .times = MEMORY_ALWAYS,
                                                       .kind = MEMORY_FULL });
    cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), DUE_ENOSPC);
    cr_expect_str_eq(lab_dequeue(&s.lab), "old");
    cr_assert_eq(take_leased(s.lab.q, &job, 100, 0), 0);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(lab_stats(&s.lab).waiting, 0u);
    memory_store_forgive(s.store);
    cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), 0);
    shop_close(&s);
}

Test(stored, a_fenced_queue_says_so_by_its_descriptor, .timeout = 60)
{
    static const enum due_proxies modes[] = { DUE_PROXIES_ADAPTIVE, DUE_PROXIES_ALWAYS };

    for (int i = 0; i < 2; i++) {
        struct shop s = shop_make(.with.proxies = modes[i]);
        due_spec spec = { DUE_SPEC_INIT, .data = "new", .len = 3 };
        struct pollfd p = { .fd = due_fd(s.lab.q), .events = POLLIN };
        due_job job;

        lab_enqueue(&s.lab, "later", .at_ns = 50);
        cr_assert_eq(due_dequeue(s.lab.q, &job, 0), DUE_EAGAIN);
        cr_expect_eq(poll(&p, 1, 0), 0);
        memory_disk_fence(s.disk);
        cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), DUE_EFENCED);
        cr_expect_eq(poll(&p, 1, 20000), 1, "mode %d", i);
        cr_expect_eq(due_dequeue(s.lab.q, &job, 0), DUE_EFENCED);
        shop_close(&s);
    }
}

Test(stored, of_a_fenced_queue_holders_are_told_to_stop, .timeout = 60)
{
    static const enum due_proxies modes[] = { DUE_PROXIES_ADAPTIVE, DUE_PROXIES_ALWAYS };
    due_spec spec = { DUE_SPEC_INIT, .data = "new", .len = 3 };

    for (size_t n = 1; n <= 10; n += 9)
        for (int mode = 0; mode < 2; mode++) {
            struct shop s = shop_make(.with.proxies = modes[mode]);
            due_job jobs[10];

            for (size_t i = 0; i < n; i++) {
                lab_enqueue(&s.lab, "tea", .delay_ns = 0);
                cr_assert_eq(take_leased(s.lab.q, &jobs[i], 1000, 0), 0);
            }
            memory_disk_fence(s.disk);
            for (size_t i = 0; i < n; i++)
                cr_expect_eq(due_job_stopping(&jobs[i]), 0, "it is not known yet");
            cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), DUE_EFENCED);
            for (size_t i = 0; i < n; i++) {
                cr_expect_eq(due_job_stopping(&jobs[i]), 1, "%zu of %zu", i, n);
                cr_expect_eq(due_ack(&jobs[i]), DUE_EFENCED);
                due_job_done(&jobs[i]);
            }
            shop_close(&s);
        }
}

Test(stored, a_fenced_queue_hands_nothing_out, .timeout = 60)
{
    struct shop s = shop_make();
    due_spec spec = { DUE_SPEC_INIT, .data = "new", .len = 3 };
    due_id id = lab_enqueue(&s.lab, "old", .delay_ns = 0);
    due_job job;

    cr_assert_eq(take_leased(s.lab.q, &job, 1000, 0), 0);
    lab_enqueue(&s.lab, "other", .delay_ns = 0);
    memory_disk_fence(s.disk);
    cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), DUE_EFENCED);
    cr_expect_eq(due_ack(&job), DUE_EFENCED);
    due_job other;
    cr_expect_eq(due_dequeue(s.lab.q, &other, 0), DUE_EFENCED);
    cr_expect_eq(take_leased(s.lab.q, &other, 1000, DUE_FOREVER), DUE_EFENCED);
    cr_expect_eq(due_reschedule(s.lab.q, id, 5), DUE_EBUSY);
    cr_expect_eq(due_extend(&job, 1000), DUE_EFENCED);
    cr_expect_eq(due_flush(s.lab.q, 0), DUE_EFENCED);
    due_job_done(&job);
    cr_expect(memory_disk_find(s.disk, id, NULL));
    shop_close(&s);
}

/* What was counted when it came is taken back. */
Test(stored, what_the_store_refuses_was_not_enqueued, .timeout = 60)
{
    struct shop s = shop_make(.with.metrics = 1);
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 5 };
    struct due_topic_stats stats;

    shop_fail(&s, MEMORY_COMMIT, 1, MEMORY_FULL);
    cr_expect_eq(due_enqueue(s.lab.q, &spec, DUE_FOREVER, NULL), DUE_ENOSPC);
    cr_expect_eq(lab_stats(&s.lab).enqueued, 0u);
    cr_assert_eq(due_topic_stats_read(s.lab.q, 0, &stats), 0);
    cr_expect_eq(stats.enqueued, 0u);
    cr_expect_eq(due_enqueue(s.lab.q, &spec, DUE_FOREVER, NULL), 0);
    cr_assert_eq(due_topic_stats_read(s.lab.q, 0, &stats), 0);
    cr_expect_eq(stats.enqueued, 1u);
    cr_expect_eq(stats.delayed, 1u);
    shop_close(&s);
}

Test(stored, what_the_store_lost_is_put_again, .timeout = 60)
{
    for (int all = 0; all < 2; all++) {
        struct shop s = shop_make();
        due_id dropped = lab_enqueue(&s.lab, "dropped", .at_ns = 1);
        due_id moved = lab_enqueue(&s.lab, "moved", .at_ns = 1000);

        lab_turn_to(&s.lab, 1);
        cr_expect_str_eq(lab_dequeue(&s.lab), "dropped");
        cr_expect_eq(due_reschedule(s.lab.q, moved, 2000), 0);
        due_id kept = lab_enqueue(&s.lab, "kept", .at_ns = 3000);
        memory_disk_lose(s.disk, all ? SIZE_MAX : 3);
        lab_enqueue(&s.lab, "new", .at_ns = 4000);
        due_record r;
        for (int i = 0;
             i < 3000 && (!memory_disk_find(s.disk, kept, NULL) || memory_disk_jobs(s.disk) != 3);
             i++)
            crew_sleep(DUE_MS(10));
        cr_assert(memory_disk_find(s.disk, moved, &r));
        cr_expect_eq(r.until_ns, 2000);
        cr_expect(memory_disk_find(s.disk, kept, NULL));
        cr_expect_not(memory_disk_find(s.disk, dropped, NULL), "it is back from the dead");
        cr_expect_eq(memory_disk_jobs(s.disk), 3u);
        cr_expect_geq(lab_stats(&s.lab).mirrored, 2u);
        shop_again(&s, 10000);
        cr_expect_str_eq(lab_dequeue_all(&s.lab), "moved kept new");
        shop_close(&s);
    }
}

Test(stored, a_pointer_has_no_place_in_a_store, .timeout = 60)
{
    struct shop s = shop_make();
    due_spec spec = { DUE_SPEC_INIT, .ptr = &s };

    cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), DUE_EINVAL);
    shop_close(&s);
}

Test(stored, many_jobs_of_many_sizes_come_back_byte_for_byte, .timeout = 100)
{
    enum { JOBS = 3000 };
    struct shop s = shop_make();
    unsigned char bytes[4096];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7);
    due_spec specs[100];
    for (int at = 0; at < JOBS; at += 100) {
        for (int i = 0; i < 100; i++)
            specs[i] = (due_spec){ DUE_SPEC_INIT, .data = bytes + (at + i) % 64,
                                   .len = (size_t)((at + i) * 31 % 4000) + 1,
                                   .at_ns = 1 + (at + i) * 17 % 911 };
        cr_assert_eq(due_enqueue_batch(s.lab.q, specs, 100, 0, NULL), 100);
    }
    shop_again(&s, 2000);
    cr_assert_eq(lab_stats(&s.lab).restored, (uint64_t)JOBS);
    int64_t last = 0;
    for (int i = 0; i < JOBS; i++) {
        due_job job;

        cr_assert_eq(lab_take(&s.lab, &job), 0);
        cr_expect_geq(job.deadline_ns, last);
        last = job.deadline_ns;
        size_t from = (size_t)((const unsigned char *)job.data)[0] * 183 % 256;
        cr_assert_eq(memcmp(job.data, bytes + from, job.len), 0);
        due_job_done(&job);
    }
    cr_expect_null(lab_dequeue(&s.lab));
    shop_close(&s);
}

/* What a program does that stops at the first thing that does not work.  0, or what it was told. */
static int life(due_queue *q)
{
    char big[200] = "big";
    due_spec spec = { DUE_SPEC_INIT, .data = big, .len = sizeof big, .priority = 3 };
    due_job job;
    due_id id;

    spec.topic = due_topic(q, "mail");
    int rc = spec.topic < 0 ? spec.topic : due_enqueue(q, &spec, 0, &id);
    if (rc == 0)
        rc = due_enqueue(q, &spec, 0, NULL);
    if (rc == 0)
        rc = take_leased(q, &job, 100, 1);
    if (rc == 0) {
        rc = due_nack(&job, 0);
        due_job_done(&job);
    }
    if (rc == 0)
        rc = due_reschedule(q, id, 1);
    if (rc == 0)
        rc = due_dequeue(q, &job, 1);
    if (rc == 0)
        due_job_done(&job);
    return rc;
}

/* Each allocation of a life, opening included, fails in turn.  Answers how many there were. */
static size_t fail_each(struct memory_disk *disk, size_t reserve, size_t at, int *rc)
{
    struct flaky memory;
    due_store *store = memory_store_new(disk);
    due_clock *clock = due_clock_manual(0);
    due_queue *q = NULL;

    flaky_init(&memory, at);
    due_options options = { DUE_OPTIONS_INIT, .manual = clock, .store = store, .reserve = reserve,
                            .allocator = &memory.hooks };
    *rc = due_open(&q, &options, NULL);
    if (*rc == 0) {
        struct due_stats stats;

        *rc = life(q);
        cr_assert_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(30)), 0);
        cr_assert_eq(due_stats_read(q, &stats), 0);
        cr_expect_eq(stats.enqueued, stats.dequeued + stats.kept + stats.discarded);
        cr_assert_eq(due_free(q), 0);
    } else {
        store->verbs->free(store);
    }
    cr_expect_eq(due_clock_free(clock), 0);
    cr_expect_eq(atomic_load(&memory.live), 0u, "%zu blocks leaked", atomic_load(&memory.live));
    cr_expect_eq(atomic_load(&memory.bad), 0u);
    return atomic_load(&memory.calls);
}

static void fail_all(size_t reserve)
{
    struct memory_disk *first = memory_disk_new(NULL);
    size_t refused = 0;
    int rc;
    size_t calls = fail_each(first, reserve, FLAKY_NEVER, &rc);

    cr_expect_eq(rc, 0, "%s", due_error_name(rc));
    memory_disk_free(first);
    for (size_t at = 0; at < calls; at++) {
        struct memory_disk *disk = memory_disk_new(NULL);

        fail_each(disk, reserve, at, &rc);
        cr_expect(rc == 0 || rc == DUE_ENOMEM, "%zu: %s", at, due_error_name(rc));
        refused += rc != 0;
        cr_expect_null(memory_disk_wrong(disk));
        fail_each(disk, reserve, FLAKY_NEVER,
                  &rc); /* what is stored comes back when there is memory */
        cr_expect_eq(rc, 0, "%zu: %s", at, due_error_name(rc));
        memory_disk_free(disk);
    }
    cr_expect_gt(refused, 8u, "%zu of %zu", refused, calls);
}

Test(stored, each_allocation_may_fail, .timeout = 100)
{
    fail_all(0);
    fail_all(5000);
}

Test(stored, for_reserved_jobs_no_memory_is_asked, .timeout = 60)
{
    enum { JOBS = 5000 };
    struct flaky memory;

    flaky_init(&memory, FLAKY_NEVER);
    struct shop s = shop_make(.with.reserve = JOBS, .with.allocator = &memory.hooks);
    size_t before = atomic_load(&memory.calls);
    for (int i = 0; i < JOBS; i++)
        lab_enqueue(&s.lab, "x", .at_ns = 10 + i);
    cr_expect_eq(atomic_load(&memory.calls), before);
    shop_close(&s);
}
