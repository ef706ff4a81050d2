/* One queue for many processes: jobs that come again. */
#include <time.h>

#include "lab/crew.h"
#include "lab/mall.h"
#include "queue/extras.h"

#define LEASE 1000

static due_id put_round(struct mall *m, const char *text, int64_t at_ns, enum due_repeat kind)
{
    return lab_enqueue(&m->lab[0], text, .at_ns = at_ns,
                       .more = EXTRA(.every_ns = 10, .repeat = kind));
}

static int64_t next_of(struct mall *m, size_t i, due_id id)
{
    return lab_find(&m->lab[i], id).deadline_ns;
}

MALL_TEST(share_rounds, comes_again_to_whoever_is_next_after_each_ack)
{
    for (int kind = DUE_REPEAT_SKIP; kind <= DUE_REPEAT_AFTER; kind++) {
        struct mall m = mall_make(2);
        due_job job;

        due_id id = put_round(&m, "tea", 5, (enum due_repeat)kind);
        for (int round = 0; round < 6; round++) {
            size_t i = (size_t)round % 2;

            mall_turn_to(&m, 5 + 10 * round);
            cr_assert_eq(mall_reserve(&m, i, &job, LEASE), 0);
            cr_expect(due_id_equal(job.id, id));
            cr_expect_eq(job.deadline_ns, 5 + 10 * round);
            cr_expect_eq(job.attempts, 1u);
            cr_expect(job.len == 3 && memcmp(job.data, "tea", 3) == 0);
            cr_assert_eq(due_ack(&job), 0);
            cr_expect_eq(next_of(&m, 1 - i, id), 15 + 10 * round);
        }
        cr_expect_eq(lab_stats(&m.lab[0]).repeated + lab_stats(&m.lab[1]).repeated, 6u);
        cr_expect_eq(lab_stats(&m.lab[0]).acked, 0u, "it has not left");
        cr_expect_eq(memory_disk_jobs(m.disk), 1u);
        cr_expect_eq(due_cancel(m.lab[1].q, id, NULL), 0);
        cr_expect_eq(memory_disk_jobs(m.disk), 0u);
        mall_close(&m);
    }
}

/* Acked late: 27 after its deadline, with a round each 10. */
MALL_TEST(share_rounds, what_was_missed_is_left_out_or_made_up_for_once_or_moves_the_rest)
{
    const int64_t next[][3] = { { 130, 140, 150 }, { 120, 130, 140 }, { 137, 147, 157 } };

    for (int kind = DUE_REPEAT_SKIP; kind <= DUE_REPEAT_AFTER; kind++) {
        struct mall m = mall_make(2);
        int64_t now = 127;
        due_job job;

        due_id id = put_round(&m, "tea", 100, (enum due_repeat)kind);
        for (int round = 0; round < 3; round++) {
            mall_turn_to(&m, now);
            cr_assert_eq(mall_reserve(&m, (size_t)round % 2, &job, LEASE), 0);
            cr_expect_eq(due_ack(&job), 0);
            cr_expect_eq(next_of(&m, 0, id), next[kind][round], "%d, round %d", kind, round);
            now = next[kind][round] > now ? next[kind][round] : now;
        }
        mall_close(&m);
    }
}

/* Its bytes are lent while others have its next rounds. */
MALL_TEST(share_rounds, taken_for_good_it_waits_for_its_next_round_at_once)
{
    struct mall m = mall_make(2);
    due_job jobs[4];

    due_id id = put_round(&m, "tea", 5, DUE_REPEAT_SKIP);
    for (int round = 0; round < 4; round++) {
        mall_turn_to(&m, 5 + 10 * round);
        cr_assert_eq(mall_take(&m, (size_t)round / 2, &jobs[round]), 0);
        cr_expect(due_id_equal(jobs[round].id, id));
        cr_expect_eq(jobs[round].deadline_ns, 5 + 10 * round);
        cr_expect_eq(next_of(&m, 1, id), 15 + 10 * round);
    }
    cr_expect_eq(lab_stats(&m.lab[0]).lent, 2u);
    cr_expect_eq(lab_stats(&m.lab[0]).repeated, 2u);
    cr_expect_eq(lab_stats(&m.lab[0]).waiting, 0u);
    for (int round = 0; round < 4; round++)
        cr_expect_str_eq(lab_text(&m.lab[round / 2], &jobs[round]), "tea");
    cr_expect_eq(lab_stats(&m.lab[0]).lent, 0u);
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), 0);
    mall_close(&m);
}

MALL_TEST(share_rounds, a_round_fails_and_the_next_one_begins_anew)
{
    struct mall m = mall_make(2);
    due_job job;

    due_id id = put_round(&m, "tea", 5, DUE_REPEAT_SKIP);
    mall_turn_to(&m, 5);
    cr_assert_eq(mall_reserve(&m, 0, &job, LEASE), 0);
    cr_expect_eq(due_nack(&job, 3), 0);
    mall_turn_to(&m, 8);
    cr_assert_eq(mall_reserve(&m, 1, &job, LEASE), 0);
    cr_expect_eq(job.deadline_ns, 5);
    cr_expect_eq(job.attempts, 2u);
    cr_expect_eq(job.failures, 1u);
    cr_expect_eq(due_ack(&job), 0);
    mall_turn_to(&m, 15);
    cr_assert_eq(mall_reserve(&m, 0, &job, LEASE), 0);
    cr_expect_eq(job.deadline_ns, 15);
    cr_expect_eq(job.attempts, 1u);
    cr_expect_eq(job.failures, 0u);
    cr_expect_eq(due_bury(&job, "cold"), 0);
    mall_turn_to(&m, 100);
    cr_expect_eq(due_find(m.lab[1].q, id, &(due_info){ .len = 0 }), DUE_ENOENT, "it is dead");
    cr_expect_eq(due_kick(m.lab[1].q, id), 0);
    cr_assert_eq(mall_reserve(&m, 1, &job, LEASE), 0);
    cr_expect_eq(job.deadline_ns, 15);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(next_of(&m, 1, id), 105);
    mall_close(&m);
}

/* By its lease: the same round, which nobody had ended. */
MALL_TEST(share_rounds, the_round_of_a_process_that_dies_comes_again)
{
    struct mall m = mall_make(3);
    due_job job;
    due_job slow;
    due_job dead;

    due_id id = put_round(&m, "tea", 5, DUE_REPEAT_SKIP);
    mall_turn_to(&m, 5);
    cr_assert_eq(mall_reserve(&m, 2, &dead, LEASE), 0);
    mall_die(&m, 2);
    mall_turn_to(&m, 5 + LEASE);
    cr_assert_eq(mall_reserve(&m, 0, &slow, LEASE), 0);
    cr_expect(due_id_equal(slow.id, id));
    cr_expect_eq(slow.deadline_ns, 5);
    mall_turn_to(&m, 5 + 2 * LEASE);
    cr_assert_eq(mall_reserve(&m, 1, &job, LEASE), 0);
    cr_expect_eq(job.deadline_ns, 5);
    cr_expect_eq(due_ack(&slow), DUE_ESTALE, "too late: another has the round");
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(next_of(&m, 0, id), 5 + 2 * LEASE);
    due_job_done(&dead);
    mall_close(&m);
}

/* The local clock says that it is ours still; the store knows better: no round is ended twice. */
MALL_TEST(share_rounds, an_end_that_is_late_in_the_store_moves_nothing)
{
    due_clock *stores = due_clock_manual(0);
    struct mall m = mall_on(0, stores);
    due_job second;
    due_job job;

    for (int i = 0; i < 2; i++)
        mall_join(&m, (struct lab_options){ .kernel = false });
    due_id id = put_round(&m, "tea", 0, DUE_REPEAT_SKIP);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    cr_assert_eq(due_clock_turn_to(stores, 100), 0);
    cr_assert_eq(mall_reserve(&m, 1, &second, 100), 0);
    cr_expect_eq(due_ack(&job), DUE_ESTALE);
    cr_expect_null(job.queue, "it is let go of");
    cr_expect_eq(next_of(&m, 0, id), 0);
    cr_expect_eq(due_ack(&second), 0);
    cr_expect_eq(next_of(&m, 0, id), 10);
    cr_expect_eq(lab_stats(&m.lab[0]).repeated, 0u);
    mall_close(&m);
    cr_expect_eq(due_clock_free(stores), 0);
}

MALL_TEST(share_rounds, an_end_in_doubt_is_made_once)
{
    struct mall m = mall_make(1);
    due_job job;

    mall_join(&m, (struct lab_options){ .with.store_timeout_ns = DUE_S(20) });
    due_id id = put_round(&m, "tea", 5, DUE_REPEAT_AFTER);
    for (int round = 0; round < 4; round++) {
        enum memory_fault_kind kind = round % 2 ? MEMORY_DOUBT_LANDED : MEMORY_DOUBT_NOT;

        mall_turn_to(&m, 5 + 10 * round);
        if (round < 2) {
            cr_assert_eq(mall_reserve(&m, 1, &job, LEASE), 0);
            memory_store_fault(
                m.store[1], (struct memory_fault){ .verb = MEMORY_WORK, .times = 3, .kind = kind });
            cr_expect_eq(due_ack(&job), 0);
        } else {
            memory_store_fault(
                m.store[1],
                (struct memory_fault){ .verb = MEMORY_WORK,
                                       .call = memory_store_calls(m.store[1], MEMORY_WORK) + 2,
                                       .times = 3,
                                       .kind = kind });
            cr_assert_eq(mall_take(&m, 1, &job), 0);
            cr_expect_str_eq(lab_text(&m.lab[1], &job), "tea");
        }
        cr_expect_eq(next_of(&m, 0, id), 15 + 10 * round);
    }
    cr_expect_eq(lab_stats(&m.lab[1]).repeated, 4u);
    mall_close(&m);
}

/* Here it goes with the ack; and whoever cancels it between two rounds has ended it. */
MALL_TEST(share_rounds, a_cancel_ends_it)
{
    struct mall m = mall_make(2);
    due_job job;

    due_id id = put_round(&m, "tea", 5, DUE_REPEAT_SKIP);
    mall_turn_to(&m, 5);
    cr_assert_eq(mall_reserve(&m, 1, &job, LEASE), 0);
    cr_expect_eq(due_cancel(m.lab[1].q, id, NULL), DUE_EBUSY);
    cr_expect_eq(due_job_stopping(&job), 1);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    id = put_round(&m, "tea", 15, DUE_REPEAT_SKIP);
    mall_turn_to(&m, 15);
    cr_assert_eq(mall_take(&m, 1, &job), 0);
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    cr_expect_str_eq(lab_text(&m.lab[1], &job), "tea", "its last round");
    id = put_round(&m, "tea", 25, DUE_REPEAT_SKIP);
    mall_turn_to(&m, 25);
    cr_assert_eq(mall_reserve(&m, 1, &job, LEASE), 0);
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), DUE_EBUSY, "another process has it");
    cr_expect_eq(due_ack(&job), 0, "it was not told,");
    cr_expect_eq(memory_disk_jobs(m.disk), 0u, "but there is no next round");
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), DUE_ENOENT);
    mall_close(&m);
}

/* Who polls leaves a round behind that is not answered in time: the next call has it. */
MALL_TEST(share_rounds, a_poll_that_is_made_again_has_the_round)
{
    struct mall m = mall_make(1);
    due_job job;
    int rc;

    due_id id = put_round(&m, "tea", 5, DUE_REPEAT_SKIP);
    mall_turn_to(&m, 5);
    while ((rc = due_dequeue(m.lab[0].q, &job, 0)) == DUE_EAGAIN)
        crew_sleep(DUE_MS(1));
    cr_assert_eq(rc, 0);
    cr_expect_eq(job.deadline_ns, 5);
    cr_expect_str_eq(lab_text(&m.lab[0], &job), "tea");
    cr_expect_eq(next_of(&m, 0, id), 15);
    cr_expect_eq(due_dequeue(m.lab[0].q, &job, 0), DUE_EAGAIN);
    mall_close(&m);
}

static void note_discard(void *ctx, const due_job *job)
{
    char *text = ctx;

    strncat(text, job->data, job->len);
}

/* The round is on its way out when its caller goes, and nobody comes for it: it is shown when the
 * queue closes, and the next one is in the store. */
MALL_TEST(share_rounds, a_round_that_nobody_has_had_is_shown)
{
    struct mall m = mall_make(1);
    char text[16] = "";
    size_t i = mall_join(
        &m, (struct lab_options){ .with.on_discard = note_discard, .with.discard_ctx = text });
    due_job job;

    due_id id = put_round(&m, "tea", 5, DUE_REPEAT_SKIP);
    mall_turn_to(&m, 5);
    cr_assert_eq(due_dequeue(m.lab[i].q, &job, 0), DUE_EAGAIN); /* it is claimed for the next */
    while (lab_stats(&m.lab[i]).ready == 0)
        crew_sleep(DUE_MS(1));
    memory_store_fault(
        m.store[i],
        (struct memory_fault){ .verb = MEMORY_WORK, .times = 2, .kind = MEMORY_DOUBT_LANDED });
    cr_assert_eq(due_dequeue(m.lab[i].q, &job, 0), DUE_EAGAIN);
    while (lab_stats(&m.lab[i]).repeated == 0)
        crew_sleep(DUE_MS(1));
    cr_expect_eq(next_of(&m, 0, id), 15);
    cr_expect_str_empty(text);
    cr_expect_eq(due_close(m.lab[i].q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
    cr_expect_str_eq(text, "tea");
    cr_expect_eq(next_of(&m, 0, id), 15);
    mall_close(&m);
}

/* It has been sent, and is not answered in time: it stays for whoever takes a job here next. */
Test(share_rounds, a_round_whose_taker_has_gone_is_the_next_ones, .timeout = 60)
{
    struct memory_disk *disk = memory_disk_new(NULL);
    due_store *store = memory_store_new(disk);
    char text[16] = "";
    due_options o = { DUE_OPTIONS_INIT,           .store = store,      .share = DUE_SHARED,
                      .on_discard = note_discard, .discard_ctx = text, .prefetch_max = 1 };
    due_extra hourly = { DUE_EXTRA_INIT, .every_ns = DUE_S(3600) };
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3, .more = &hourly };
    struct due_stats s = { .ready = 0 };
    due_queue *q;
    due_job job;
    due_id id;
    int rc;

    cr_assert_eq(due_open(&q, &o, NULL), 0);
    cr_assert_eq(due_enqueue(q, &spec, DUE_S(20), &id), 0);
    cr_assert_eq(due_dequeue(q, &job, 0), DUE_EAGAIN); /* it is claimed for the next */
    while (s.ready == 0)
        cr_assert_eq(due_stats_read(q, &s), 0);
    memory_store_fault(store, (struct memory_fault){ .verb = MEMORY_WORK,
                                                     .times = MEMORY_ALWAYS,
                                                     .kind = MEMORY_DOUBT_LANDED });
    do
        rc = due_dequeue(q, &job, DUE_MS(100));
    while (rc == DUE_ETIMEDOUT); /* a slow machine: it was not sent in that time */
    cr_expect_eq(rc, DUE_EINDOUBT);
    cr_expect(due_id_equal(job.id, id));
    memory_store_forgive(store);
    while (s.repeated == 0)
        cr_assert_eq(due_stats_read(q, &s), 0);
    cr_assert_eq(due_dequeue(q, &job, DUE_S(20)), 0);
    cr_expect(due_id_equal(job.id, id));
    cr_expect(job.len == 3 && memcmp(job.data, "tea", 3) == 0);
    due_job_done(&job);
    cr_expect_str_empty(text);
    cr_expect_eq(due_cancel(q, id, NULL), 0);
    cr_expect_eq(memory_disk_jobs(disk), 0u);
    cr_expect_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
    cr_expect_eq(due_free(q), 0);
    cr_expect_null(memory_disk_wrong(disk), "%s", memory_disk_wrong(disk));
    memory_disk_free(disk);
}

/* It was claimed ahead, and that is over in the store: its round is not taken here. */
MALL_TEST(share_rounds, a_round_that_another_has_by_now_is_not_taken)
{
    due_clock *stores = due_clock_manual(0);
    struct mall m = mall_on(0, stores);
    due_job job;

    mall_join(&m, (struct lab_options){ .kernel = false });
    size_t late = mall_join(&m, (struct lab_options){ .kernel = false });
    due_id id = put_round(&m, "tea", 0, DUE_REPEAT_SKIP);
    cr_assert_eq(due_dequeue(m.lab[late].q, &job, 0), DUE_EAGAIN);
    while (lab_stats(&m.lab[late]).ready == 0)
        crew_sleep(DUE_MS(1));
    cr_assert_eq(due_clock_turn_to(stores, DUE_S(3600)), 0);
    cr_assert_eq(mall_reserve(&m, 0, &job, LEASE), 0);
    cr_expect(due_id_equal(job.id, id));
    due_id next = lab_enqueue(&m.lab[0], "cake", .delay_ns = 0);
    due_job taken;
    cr_assert_eq(mall_take(&m, late, &taken), 0);
    cr_expect(due_id_equal(taken.id, next));
    due_job_done(&taken);
    cr_expect_eq(lab_stats(&m.lab[late]).repeated, 0u);
    cr_expect_eq(lab_stats(&m.lab[late]).ready, 0u);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 1u);
    mall_close(&m);
    cr_expect_eq(due_clock_free(stores), 0);
}

static int64_t hours_ahead(void *clock)
{
    struct timespec now;

    (void)clock;
    clock_gettime(CLOCK_REALTIME, &now);
    return DUE_S(now.tv_sec) + now.tv_nsec + DUE_S(10000);
}

/* Its clock is hours before that of this machine: the next round is counted on it. */
Test(share_rounds, the_next_round_is_counted_on_the_stores_clock, .timeout = 60)
{
    const struct memory_disk_options with = { .now = hours_ahead };
    struct memory_disk *disk = memory_disk_new(&with);
    due_store *store = memory_store_new(disk);
    due_options o = { DUE_OPTIONS_INIT, .store = store, .share = DUE_SHARED };
    due_extra after = { DUE_EXTRA_INIT, .every_ns = DUE_S(100), .repeat = DUE_REPEAT_AFTER };
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3, .more = &after };
    due_queue *q;
    due_record r;
    due_job job;
    due_id id;

    cr_assert_eq(due_open(&q, &o, NULL), 0);
    cr_assert_eq(due_enqueue(q, &spec, DUE_S(20), &id), 0);
    cr_assert_eq(take_leased(q, &job, DUE_S(600), DUE_S(30)), 0);
    int64_t then = hours_ahead(NULL);
    cr_assert_eq(due_ack(&job), 0);
    cr_assert(memory_disk_find(disk, id, &r));
    cr_expect_geq(r.until_ns, then + DUE_S(100));
    cr_expect_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
    cr_expect_eq(due_free(q), 0);
    memory_disk_free(disk);
}

/* What is reserved when it drains goes to its next round with the ack, and not around in it. */
MALL_TEST(share_rounds, a_drain_leaves_it_in_the_store)
{
    struct mall m = mall_make(2);
    due_job job;

    due_id id = put_round(&m, "tea", 5, DUE_REPEAT_ONCE);
    mall_turn_to(&m, 5);
    cr_assert_eq(mall_reserve(&m, 1, &job, LEASE), 0);
    mall_turn_to(&m, 100);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(due_close(m.lab[1].q, DUE_CLOSE_DRAIN, DUE_S(20)), 0);
    cr_expect_eq(next_of(&m, 0, id), 95);
    mall_close(&m);
}
