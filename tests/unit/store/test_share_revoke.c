/* One queue for many processes: a job that one of them has is cancelled by another. */
#include "lab/mall.h"
#include "lab/workers_lab.h"
#include "queue/counts.h"

static int nack(due_job *job)
{
    return due_nack(job, 0);
}

static int snooze(due_job *job)
{
    return due_snooze(job, 0);
}

static int bury(due_job *job)
{
    return due_bury(job, "cold");
}

static int ack(due_job *job)
{
    return due_ack(job);
}

static int (*const answers[])(due_job *job) = { nack, snooze, bury, ack };

#define ANSWERS (sizeof answers / sizeof answers[0])

static due_id put_every(struct mall *m, size_t i, int64_t every_ns)
{
    due_extra more = { DUE_EXTRA_INIT, .every_ns = every_ns };

    return lab_enqueue(&m->lab[i], "tea", .delay_ns = 0, .more = &more);
}

/* Process @i polls, so that a job is claimed that lies untaken. */
static void lay(struct mall *m, size_t i)
{
    due_job job;

    cr_assert_eq(take_leased(m->lab[i].q, &job, 100, 0), DUE_EAGAIN);
    while (due__ready_count(m->lab[i].q) == 0)
        crew_sleep(DUE_US(100));
}

/* Nothing is stored, or held, or counted as it. */
static void expect_nothing(struct mall *m)
{
    due_dead dead[1];
    uint64_t at = 0;

    cr_expect_eq(memory_disk_jobs(m->disk), 0u);
    for (size_t i = 0; i < m->n; i++) {
        cr_expect_eq(lab_stats(&m->lab[i]).leased, 0u);
        cr_expect_eq(due__ready_count(m->lab[i].q), 0u);
    }
    cr_expect_eq(due_list_dead(m->lab[0].q, &at, dead, 1), 0);
}

/* Another one lies untaken, so that a lease which is counted too often is seen beside it. */
MALL_TEST(share_revoke, leaves_no_lease_that_is_counted)
{
    for (int repeats = 0; repeats < 2; repeats++)
        for (size_t i = 0; i < ANSWERS; i++) {
            struct mall m = mall_make(2);
            int plain = lab_topic(&m.lab[1], "");
            due_job job;

            lab_enqueue(&m.lab[1], "milk", .topic = lab_topic(&m.lab[1], "lies"));
            lay(&m, 1);
            due_id id = put_every(&m, 0, repeats ? 50 : 0);
            cr_assert_eq(take_leased_from(m.lab[1].q, &plain, 1, &job, 100, DUE_FOREVER), 0);
            cr_expect_eq(lab_stats(&m.lab[1]).leased, 1u);
            cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), DUE_EBUSY);
            cr_expect_eq(answers[i](&job), 0);
            cr_expect_eq(lab_stats(&m.lab[1]).leased, 0u);
            cr_expect_eq(due__ready_count(m.lab[1].q), 1u);
            cr_expect_eq(memory_disk_jobs(m.disk), 1u);
            mall_close(&m);
        }
}

MALL_TEST(share_revoke, does_not_come_again_whatever_its_holder_says)
{
    for (int repeats = 0; repeats < 2; repeats++)
        for (size_t i = 0; i < ANSWERS; i++) {
            struct mall m = mall_make(2);
            due_job job;

            due_id id = put_every(&m, 0, repeats ? 50 : 0);
            cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
            cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), DUE_EBUSY);
            cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), DUE_EBUSY, "and again");
            cr_expect_eq(answers[i](&job), 0);
            expect_nothing(&m);
            cr_expect_eq(lab_stats(&m.lab[1]).nacked, answers[i] == nack);
            cr_expect_eq(lab_stats(&m.lab[1]).buried, 0u);
            cr_expect_eq(lab_stats(&m.lab[1]).retried, 0u);
            cr_expect_eq(lab_stats(&m.lab[1]).repeated, 0u);
            cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), DUE_ENOENT);
            mall_close(&m);
        }
}

MALL_TEST(share_revoke, who_has_it_is_told_when_he_extends)
{
    struct mall m = mall_make(2);
    due_job job;

    due_id id = put_every(&m, 0, 50);
    cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), DUE_EBUSY);
    cr_expect_eq(due_job_stopping(&job), 0, "he does not know it yet");
    mall_turn_to(&m, 60);
    cr_expect_eq(due_extend(&job, 100), 0);
    cr_expect_eq(due_job_stopping(&job), 1);
    mall_turn_to(&m, 150);
    cr_expect_eq(due_extend(&job, 100), 0, "it is his still");
    cr_expect_eq(due_job_stopping(&job), 1);
    cr_expect_eq(due_ack(&job), 0);
    expect_nothing(&m);
    mall_close(&m);
}

MALL_TEST(share_revoke, a_handler_is_told_by_the_keeper_of_its_pool)
{
    struct mall m = mall_make(2);

    due_id id = put_every(&m, 0, 50);
    struct desk desk = desk_open_with(&m.lab[1], 1, .lease_ns = 100);
    desk_until_begun(&desk);
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), DUE_EBUSY);
    mall_turn_to(&m, 60);
    WAIT_UNTIL(due_job_stopping(desk.state->at) == 1);
    desk_let_go(&desk, due_answer_nack(0));
    WAIT_UNTIL(memory_disk_jobs(m.disk) == 0);
    desk_close(&desk);
    expect_nothing(&m);
    mall_close(&m);
}

/* Who takes it counts its attempt first, and so is told. */
MALL_TEST(share_revoke, an_attempt_that_begins_tells_who_has_it)
{
    struct mall m = mall_make(0);
    const due_retry twice = { .kind = DUE_RETRY_FIXED, .delay_ns = 0, .attempts_max = 5 };
    due_job job;

    for (int i = 0; i < 2; i++)
        mall_join(&m, (struct lab_options){ .with.retry = twice });
    due_id id = lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    lay(&m, 1);
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), DUE_EBUSY);
    cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
    cr_expect(due_id_equal(job.id, id));
    cr_expect_eq(due_job_stopping(&job), 1);
    cr_expect_eq(due_nack(&job, 0), 0);
    expect_nothing(&m);
    mall_close(&m);
}

/* A longer lease than that of the claim is asked for before it is handed out. */
MALL_TEST(share_revoke, a_longer_lease_tells_who_takes_it)
{
    struct mall m = mall_make(2);
    due_job job;

    due_id id = put_every(&m, 0, 0);
    lay(&m, 1);
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), DUE_EBUSY);
    cr_assert_eq(mall_reserve(&m, 1, &job, 1000), 0);
    cr_expect(due_id_equal(job.id, id));
    cr_expect_eq(due_job_stopping(&job), 1);
    cr_expect_eq(due_nack(&job, 0), 0);
    expect_nothing(&m);
    mall_close(&m);
}

MALL_TEST(share_revoke, who_dequeues_it_has_its_last_round)
{
    for (int repeats = 0; repeats < 2; repeats++) {
        struct mall m = mall_make(2);
        due_job job;

        due_id id = put_every(&m, 0, repeats ? 50 : 0);
        lay(&m, 1);
        cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), DUE_EBUSY);
        cr_assert_eq(mall_take(&m, 1, &job), 0);
        cr_expect(due_id_equal(job.id, id));
        cr_expect_eq(memory_disk_jobs(m.disk), 0u);
        due_job_done(&job);
        expect_nothing(&m);
        mall_close(&m);
    }
}

MALL_TEST(share_revoke, what_lies_untaken_is_gone_when_its_process_closes)
{
    struct mall m = mall_make(2);

    due_id id = put_every(&m, 0, 50);
    lay(&m, 1);
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), DUE_EBUSY);
    cr_expect_eq(due_close(m.lab[1].q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

MALL_TEST(share_revoke, of_a_process_that_dies_it_does_not_come)
{
    struct mall m = mall_make(3);
    due_job job;

    due_id id = put_every(&m, 0, 50);
    due_id next = lab_enqueue(&m.lab[0], "cake", .at_ns = 200);
    cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), DUE_EBUSY);
    due_job_done(&job);
    mall_die(&m, 1);
    mall_turn_to(&m, 200);
    cr_assert_eq(mall_reserve(&m, 2, &job, 100), 0);
    cr_expect(due_id_equal(job.id, next));
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

/* Where nobody claims any more it need not be waited for. */
MALL_TEST(share_revoke, once_its_lease_is_over_it_is_gone_at_once)
{
    struct mall m = mall_make(2);
    due_job job;

    due_id id = put_every(&m, 0, 50);
    cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), DUE_EBUSY);
    mall_turn_to(&m, 100);
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), 0);
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), DUE_ENOENT);
    cr_expect_eq(due_ack(&job), DUE_ESTALE);
    if (job.queue != NULL)
        due_job_done(&job);
    expect_nothing(&m);
    mall_close(&m);
}

MALL_TEST(share_revoke, also_by_who_wants_its_bytes_or_names_its_key)
{
    for (int by_key = 0; by_key < 2; by_key++) {
        struct mall m = mall_make(2);
        due_job bytes;
        due_job job;
        due_id id;

        cr_assert_eq(lab_put_key(&m.lab[0], "k", DUE_KEY_REFUSE, "tea", &id,
                                 (due_spec){ DUE_SPEC_INIT, .delay_ns = 0 }),
                     0);
        cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
        cr_expect_eq(by_key ? due_cancel_key(m.lab[0].q, "k", 1, NULL)
                            : due_cancel(m.lab[0].q, id, &bytes),
                     DUE_EBUSY);
        cr_expect_eq(due_nack(&job, 0), 0);
        expect_nothing(&m);
        cr_expect_eq(lab_put_key(&m.lab[1], "k", DUE_KEY_REFUSE, "cake", &id,
                                 (due_spec){ DUE_SPEC_INIT, .delay_ns = 0 }),
                     0, "its key is free");
        cr_expect_eq(due_cancel(m.lab[1].q, id, NULL), 0);
        mall_close(&m);
    }
}

/* A clear, or another time for it, says nothing of the kind. */
MALL_TEST(share_revoke, nothing_else_says_so)
{
    struct mall m = mall_make(2);
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
    cr_expect_eq(due_reschedule(m.lab[0].q, id, 70), DUE_EBUSY);
    cr_expect_eq(due_clear(m.lab[0].q, DUE_ALL_TOPICS, NULL), 0);
    cr_expect_eq(due_extend(&job, 100), 0);
    cr_expect_eq(due_job_stopping(&job), 0);
    cr_expect_eq(due_nack(&job, 0), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 1u);
    mall_close(&m);
}

/* Many at once, of which one in three is not cancelled.  All are one call, for which the store has
 * 50 s, however busy the machine is. */
static void cancel_of_many(size_t n)
{
    const struct lab_options waits = { .with.store_timeout_ns = DUE_S(50) };
    struct mall m = mall_make(0);
    due_job *jobs = calloc(n, sizeof *jobs);
    due_id *ids = calloc(n, sizeof *ids);
    int *results = calloc(n, sizeof *results);
    size_t named = 0;

    cr_assert(jobs != NULL && ids != NULL && results != NULL);
    while (m.n < 2)
        mall_join(&m, waits);
    for (size_t i = 0; i < n; i++)
        lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    for (size_t i = 0; i < n; i++) {
        cr_assert_eq(mall_reserve(&m, 1, &jobs[i], DUE_S(100)), 0);
        if (i % 3 != 0)
            ids[named++] = jobs[i].id;
    }
    cr_expect_eq(due_cancel_batch(m.lab[0].q, ids, named, results), 0);
    for (size_t i = 0; i < named; i++)
        cr_assert_eq(results[i], DUE_EBUSY, "%zu of %zu: %s", i, named, due_error_name(results[i]));
    for (size_t i = 0; i < n; i++)
        cr_expect_eq(due_nack(&jobs[i], DUE_S(1)), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), n - named);
    free(jobs);
    free(ids);
    free(results);
    mall_close(&m);
}

Test(share_revoke, of_many_none_comes_again, .timeout = 120)
{
    for (lab_proxies = 0; lab_proxies < 2; lab_proxies++)
        cancel_of_many(10);
    lab_proxies = -1;
    cancel_of_many(getenv("LAB_SHARED") != NULL ? 1000 : 10000); /* round trips, one by one */
}

/* ---- What its own process knows of it, or does with it ---- */

/* A take is on its way when the job is cancelled, and lands for nobody.  Answers how many jobs are
 * stored then; -1: the take was not seen on its way. */
static int stored_after_a_take(void)
{
    struct mall m = mall_make(1);
    size_t takes = mall_join(&m, (struct lab_options){ .with.store_timeout_ns = DUE_MS(100) });
    struct memory_limiter *gate = memory_limiter_new(m.disk);
    struct crew_call taking;
    int stored = -1;
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_expect_eq(due_dequeue(m.lab[takes].q, &job, 0), DUE_EAGAIN);
    while (lab_stats(&m.lab[takes]).ready == 0)
        crew_sleep(DUE_US(100));
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), DUE_EBUSY);
    memory_store_fault(m.store[takes], (struct memory_fault){ .verb = MEMORY_WORK,
                                                              .times = MEMORY_ALWAYS,
                                                              .kind = MEMORY_BLOCK_AFTER,
                                                              .limiter = gate });
    crew_call_dequeue(&taking, m.lab[takes].q, 10);
    memory_limiter_reached(gate, 1);
    bool left = memory_disk_jobs(m.disk) == 0;
    if (!left) /* it was another exchange */
        memory_limiter_open(gate);
    mall_turn_to(&m, 10);
    int rc = crew_call_answer(&taking);
    if (rc == 0)
        due_job_done(&taking.job);
    memory_limiter_open(gate);
    if (left && rc != 0) {
        for (int i = 0; i < 20000 && lab_stats(&m.lab[takes]).cancelled == 0; i++)
            crew_sleep(DUE_US(100));
        cr_expect_eq(lab_stats(&m.lab[takes]).cancelled, 1u);
        cr_expect_eq(due__ready_count(m.lab[takes].q), 0u);
        cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), DUE_ENOENT);
        stored = (int)memory_disk_jobs(m.disk);
    }
    memory_limiter_free(gate);
    mall_close(&m);
    return stored;
}

MALL_TEST(share_revoke, a_take_that_lands_for_nobody_does_not_put_it_back)
{
    int stored = -1;

    for (int i = 0; i < 100 && stored < 0; i++)
        stored = stored_after_a_take();
    cr_expect_eq(stored, 0);
}

/* Who acks its last round has the key kept, as of any other; told or not that it is the last. */
MALL_TEST(share_revoke, an_ack_keeps_the_key_of_one_that_repeats)
{
    for (int told = 0; told < 2; told++)
        for (int takes = 0; takes < 2; takes++) {
            struct mall m = mall_make(2);
            due_extra more = { DUE_EXTRA_INIT, .every_ns = 50, .key = "k", .key_len = 1,
                               .keep_key_ns = 5000 };
            due_job job;

            due_id id = lab_enqueue(&m.lab[0], "tea", .delay_ns = 0, .more = &more);
            if (takes)
                lay(&m, 1);
            else
                cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
            cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), DUE_EBUSY);
            if (told && !takes)
                cr_expect_eq(due_extend(&job, 100), 0);
            if (takes)
                cr_assert_eq(mall_take(&m, 1, &job), 0);
            else
                cr_expect_eq(due_ack(&job), 0);
            if (takes)
                due_job_done(&job);
            expect_nothing(&m);
            cr_expect_eq(lab_stats(&m.lab[1]).repeated, 0u);
            cr_expect_eq(lab_put_key(&m.lab[0], "k", DUE_KEY_REFUSE, "cake", &id,
                                     (due_spec){ DUE_SPEC_INIT, .delay_ns = 0 }),
                         DUE_EEXIST, "it is kept");
            mall_turn_to(&m, 5000);
            cr_expect_eq(lab_put_key(&m.lab[0], "k", DUE_KEY_REFUSE, "cake", &id,
                                     (due_spec){ DUE_SPEC_INIT, .delay_ns = 0 }),
                         0, "and free");
            cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), 0);
            mall_close(&m);
        }
}

/* What its holder's own process cancels is so for all others, whatever becomes of that process. */
MALL_TEST(share_revoke, by_its_own_process_it_does_not_come_to_others)
{
    for (int dies = 0; dies < 2; dies++)
        for (int bytes = 0; bytes < 2; bytes++) {
            struct mall m = mall_make(3);
            due_job lent;
            due_job job;

            due_id id = put_every(&m, 0, 50);
            due_id next = lab_enqueue(&m.lab[0], "cake", .at_ns = 200);
            cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
            cr_expect_eq(due_cancel(m.lab[1].q, id, bytes ? &lent : NULL), DUE_EBUSY);
            cr_expect_eq(due_job_stopping(&job), 1);
            cr_expect_eq(due_extend(&job, 100), 0, "it is his still");
            due_job_done(&job);
            if (dies) { /* before it knows that its lease is over */
                mall_die(&m, 1);
                cr_expect_eq(due_close(m.lab[1].q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
            }
            mall_turn_to(&m, 200);
            cr_assert_eq(mall_reserve(&m, 2, &job, 100), 0);
            cr_expect(due_id_equal(job.id, next), "%.*s", (int)job.len, (const char *)job.data);
            cr_expect_eq(due_ack(&job), 0);
            cr_expect_eq(memory_disk_jobs(m.disk), 0u);
            mall_close(&m);
        }
}

/* A poll begins a take, and who comes next wants what it took on a lease. */
MALL_TEST(share_revoke, what_a_poll_has_taken_is_not_put_back_for_who_wants_a_lease)
{
    struct mall m = mall_make(2);
    due_queue *q = m.lab[1].q;
    due_job job;

    due_id id = put_every(&m, 0, 0);
    lay(&m, 1);
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), DUE_EBUSY);
    int rc = due_dequeue(q, &job, 0);
    if (rc == 0) { /* it waited for nobody */
        due_job_done(&job);
    } else {
        while (memory_disk_jobs(m.disk) > 0)
            crew_sleep(DUE_US(100));
        for (int i = 0; i < 1000 && rc != 0 && lab_stats(&m.lab[1]).cancelled == 0; i++) {
            rc = take_leased(q, &job, 100, 0);
            crew_sleep(DUE_MS(1));
        }
        cr_assert_eq(rc, DUE_EAGAIN, "it came again");
        cr_expect_eq(lab_stats(&m.lab[1]).cancelled, 1u);
    }
    expect_nothing(&m);
    mall_close(&m);
}

/* ---- A job that left the store for nobody, and has no room there when it is to go back ---- */

/* Process 1 takes it for somebody who leaves.  False: the take was not seen on its way. */
static bool take_for_nobody(struct mall *m, due_id *id)
{
    struct memory_limiter *gate = memory_limiter_new(m->disk);
    due_store *store = m->store[1];
    struct crew_call taking;

    *id = put_every(m, 0, 0);
    lay(m, 1);
    memory_store_fault(store, (struct memory_fault){ .verb = MEMORY_WORK,
                                                     .times = MEMORY_ALWAYS,
                                                     .kind = MEMORY_BLOCK_AFTER,
                                                     .limiter = gate });
    memory_store_fault(
        store,
        (struct memory_fault){ .verb = MEMORY_PUT, .times = MEMORY_ALWAYS, .kind = MEMORY_FULL });
    uint64_t puts = memory_store_calls(store, MEMORY_PUT);
    crew_call_dequeue(&taking, m->lab[1].q, 10);
    memory_limiter_reached(gate, 1);
    bool left = memory_disk_jobs(m->disk) == 0;
    if (!left) /* it was another exchange */
        memory_limiter_open(gate);
    mall_turn_to(m, 10);
    int rc = crew_call_answer(&taking);
    if (rc == 0)
        due_job_done(&taking.job);
    memory_limiter_open(gate);
    if (left && rc != 0)
        memory_store_until(store, MEMORY_PUT, puts + 2); /* it was refused once */
    memory_limiter_free(gate);
    return left && rc != 0;
}

static bool refused_meanwhile(bool cancels)
{
    struct mall m = mall_make(1);
    due_job job;
    due_id id;

    mall_join(&m, (struct lab_options){ .with.store_timeout_ns = DUE_MS(100) });
    bool seen = take_for_nobody(&m, &id);
    if (seen && cancels)
        cr_expect_eq(due_cancel(m.lab[1].q, id, NULL), DUE_EBUSY);
    memory_store_forgive(m.store[1]);
    if (seen && cancels) {
        WAIT_UNTIL(lab_stats(&m.lab[1]).cancelled == 1);
        expect_nothing(&m);
    } else if (seen) {
        WAIT_UNTIL(memory_disk_jobs(m.disk) == 1);
        cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
        cr_expect(due_id_equal(job.id, id));
        cr_expect_eq(due_ack(&job), 0);
    }
    mall_close(&m);
    return seen;
}

/* @full: and the store has no room for it when its process closes the queue either.  Else it may be
 * that somebody else is at the store just then. */
static bool refused_until_the_close(bool full)
{
    struct mall m = mall_make(1);
    due_id id;

    mall_join(&m, (struct lab_options){ .with.store_timeout_ns = DUE_MS(100) });
    bool seen = take_for_nobody(&m, &id);
    if (!seen || !full)
        memory_store_forgive(m.store[1]);
    cr_assert_eq(due_close(m.lab[1].q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    if (seen) {
        size_t jobs = memory_disk_jobs(m.disk);

        cr_expect(jobs <= (full ? 0u : 1u));
        cr_expect_eq(atomic_load(&m.lab[1].state->discarded), 1 - jobs);
    }
    mall_close(&m);
    return seen;
}

static void try_until_the_close(bool full)
{
    bool seen = false;

    for (int i = 0; i < 100 && !seen; i++)
        seen = refused_until_the_close(full);
    cr_expect(seen);
}

MALL_TEST(share_revoke, what_was_refused_when_it_went_back_does_so_at_the_close)
{
    try_until_the_close(false);
}

MALL_TEST(share_revoke, what_is_refused_at_the_close_too_is_shown)
{
    try_until_the_close(true);
}

static void try_refused(bool cancels)
{
    bool seen = false;

    for (int i = 0; i < 100 && !seen; i++)
        seen = refused_meanwhile(cancels);
    cr_expect(seen);
}

MALL_TEST(share_revoke, what_is_refused_when_it_goes_back_does_so_later)
{
    try_refused(false);
}

MALL_TEST(share_revoke, what_is_refused_when_it_goes_back_is_gone_if_it_was_cancelled)
{
    try_refused(true);
}
