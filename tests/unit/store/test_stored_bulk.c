/* Many jobs of a stored queue cancelled or cleared by one call. */
#include "lab/lab.h"
#include "lab/memory_store.h"
#include "lab/take.h"

#define JOBS    600u
#define BATCHES 6u /* at most: each call of the store's has half of 256 */

struct seen {
    atomic_uint discarded;
    atomic_uint elsewhere; /* in another thread than the test's */
    pthread_t thread;
};

struct shop {
    struct memory_disk *disk;
    due_store *store;
    struct lab lab;
    struct seen seen;
    due_id id[JOBS];
};

static void on_discard(void *ctx, const due_job *job)
{
    struct seen *seen = ctx;

    cr_expect_eq(job->len, 3u);
    atomic_fetch_add(&seen->discarded, 1);
    if (!pthread_equal(pthread_self(), seen->thread))
        atomic_fetch_add(&seen->elsewhere, 1);
}

static void shop_open(struct shop *s, enum due_confirm confirm)
{
    due_spec spec[JOBS];

    *s = (struct shop){ .disk = memory_disk_new(NULL), .seen.thread = pthread_self() };
    s->store = memory_store_new(s->disk);
    s->lab =
        lab_open(.with.store = s->store, .with.confirm = confirm, .with.on_discard = on_discard,
                 .with.ctx = &s->seen, .with.store_timeout_ns = DUE_MS(50));
    while (lab_stats(&s->lab).loading)
        crew_sleep(DUE_MS(1));
    for (unsigned i = 0; i < JOBS; i++)
        spec[i] = (due_spec){ DUE_SPEC_INIT, .data = "tea", .len = 3, .at_ns = 10 + i };
    cr_assert_eq(due_enqueue_batch(s->lab.q, spec, JOBS, 0, s->id), (int)JOBS);
    cr_assert_eq(due_flush(s->lab.q, DUE_S(30)), 0);
}

static void shop_close(struct shop *s)
{
    lab_close(&s->lab);
    const char *wrong = memory_disk_wrong(s->disk);
    cr_expect_null(wrong, "%s", wrong);
    memory_disk_free(s->disk);
}

static void fail(struct shop *s, enum memory_verb verb, enum memory_fault_kind kind)
{
    memory_store_fault(s->store,
                       (struct memory_fault){ .verb = verb, .times = MEMORY_ALWAYS, .kind = kind });
}

Test(stored_bulk, clearing_many_jobs_is_a_few_batches, .timeout = 60)
{
    struct shop s;
    uint64_t cleared = 0;

    shop_open(&s, DUE_CONFIRM_SYNC);
    uint64_t before = memory_disk_batches(s.disk);
    cr_expect_eq(due_clear(s.lab.q, DUE_ALL_TOPICS, &cleared), 0);
    cr_expect_eq(cleared, JOBS);
    cr_expect_leq(memory_disk_batches(s.disk) - before, BATCHES);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    cr_expect_eq(atomic_load(&s.seen.discarded), JOBS);
    cr_expect_eq(atomic_load(&s.seen.elsewhere), 0u);
    cr_expect_eq(lab_stats(&s.lab).discarded, JOBS);
    cr_expect_eq(lab_stats(&s.lab).waiting, 0u);
    shop_close(&s);
}

Test(stored_bulk, cancelling_many_jobs_is_a_few_batches, .timeout = 60)
{
    int results[JOBS + 2];
    due_id id[JOBS + 2];
    struct shop s;

    shop_open(&s, DUE_CONFIRM_SYNC);
    memcpy(id, s.id, sizeof s.id);
    id[JOBS] = id[JOBS - 1]; /* one is named twice, */
    id[JOBS + 1] = id[JOBS];
    id[JOBS + 1].byte[13] ^= 0x40; /* and one is not there */
    uint64_t before = memory_disk_batches(s.disk);
    cr_expect_eq(due_cancel_batch(s.lab.q, id, JOBS + 2, results), (int)JOBS);
    for (unsigned i = 0; i < JOBS + 2; i++)
        cr_expect_eq(results[i], i < JOBS ? 0 : DUE_ENOENT, "%u: %d", i, results[i]);
    cr_expect_leq(memory_disk_batches(s.disk) - before, BATCHES);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    cr_expect_eq(lab_stats(&s.lab).cancelled, JOBS);
    cr_expect_eq(lab_stats(&s.lab).waiting, 0u);
    shop_close(&s);
}

/* They are in the store still, so nobody may say that they are not there. */
Test(stored_bulk, what_a_closed_queue_has_left_in_the_store_is_not_said_to_be_gone, .timeout = 60)
{
    int results[3] = { 0 };
    struct shop s;

    shop_open(&s, DUE_CONFIRM_SYNC);
    cr_expect_eq(due_close(s.lab.q, DUE_CLOSE_DISCARD, DUE_S(30)), 0);
    cr_expect_eq(due_cancel(s.lab.q, s.id[0], NULL), DUE_ECLOSED);
    cr_expect_eq(due_cancel_batch(s.lab.q, s.id, 3, results), 0);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(results[i], DUE_ECLOSED, "%d: %s", i, due_error_name(results[i]));
    cr_expect_eq(memory_disk_jobs(s.disk), JOBS);
    shop_close(&s);
}

Test(stored_bulk, what_the_store_does_not_take_waits_as_before, .timeout = 60)
{
    for (int away = 0; away < 2; away++) {
        struct shop s;
        int results[JOBS];
        uint64_t cleared = 99;
        int want = away ? DUE_ETIMEDOUT : DUE_EACCES;

        shop_open(&s, DUE_CONFIRM_SYNC);
        if (away)
            fail(&s, MEMORY_READY, MEMORY_AWAY);
        else
            memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                               .times = MEMORY_ALWAYS,
                                                               .kind = MEMORY_ANSWER,
                                                               .answer = DUE_EACCES });
        cr_expect_eq(due_clear(s.lab.q, DUE_ALL_TOPICS, &cleared), want);
        cr_expect_eq(cleared, 99u); /* none is gone */
        cr_expect_eq(due_cancel_batch(s.lab.q, s.id, JOBS, results), 0);
        cr_expect_eq(results[0], want);
        cr_expect_eq(results[JOBS - 1], want);
        memory_store_forgive(s.store);
        cr_expect_eq(lab_stats(&s.lab).waiting, JOBS);
        cr_expect_eq(atomic_load(&s.seen.discarded), 0u);
        lab_turn_to(&s.lab, 10 + JOBS);
        for (unsigned i = 0; i < JOBS; i++) {
            due_job job;
            cr_assert_eq(lab_take(&s.lab, &job), 0);
            cr_expect(due_id_equal(job.id, s.id[i]), "%u", i);
            due_job_done(&job);
        }
        shop_close(&s);
    }
}

Test(stored_bulk, what_is_in_doubt_is_seen_through_without_the_caller, .timeout = 60)
{
    for (int clears = 0; clears < 2; clears++) {
        struct shop s;
        int results[JOBS];
        uint64_t cleared;

        shop_open(&s, DUE_CONFIRM_SYNC);
        fail(&s, MEMORY_COMMIT, MEMORY_DOUBT_LANDED);
        if (clears)
            cr_expect_eq(due_clear(s.lab.q, DUE_ALL_TOPICS, &cleared), DUE_EINDOUBT);
        else
            cr_expect_eq(due_cancel_batch(s.lab.q, s.id, 256, results), 0);
        cr_expect(clears || results[255] == DUE_EINDOUBT);
        memory_store_forgive(s.store);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        cr_expect_eq(lab_stats(&s.lab).waiting, JOBS - 256);
        cr_expect_eq(memory_disk_jobs(s.disk), JOBS - 256);
        cr_expect_eq(atomic_load(&s.seen.discarded), clears ? 256u : 0u);
        cr_expect_eq(lab_stats(&s.lab).cancelled, clears ? 0u : 256u);
        shop_close(&s);
    }
}

Test(stored_bulk, nobody_waits_where_nobody_is_to, .timeout = 60)
{
    for (int clears = 0; clears < 2; clears++) {
        struct shop s;
        uint64_t cleared = 0;

        shop_open(&s, DUE_CONFIRM_ASYNC);
        fail(&s, MEMORY_READY, MEMORY_AWAY);
        if (clears)
            cr_expect_eq(due_clear(s.lab.q, DUE_ALL_TOPICS, &cleared), 0);
        else
            cleared = (uint64_t)due_cancel_batch(s.lab.q, s.id, JOBS, NULL);
        cr_expect_eq(cleared, JOBS);
        cr_expect_eq(memory_disk_jobs(s.disk), JOBS);
        memory_store_forgive(s.store);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        cr_expect_eq(memory_disk_jobs(s.disk), 0u);
        cr_expect_eq(lab_stats(&s.lab).waiting, 0u);
        cr_expect_eq(atomic_load(&s.seen.discarded), clears ? JOBS : 0u);
        shop_close(&s);
    }
}

/* ---- An owner who may have been replaced ---- */

/* What there is he has read long ago, and there is nothing that the store would be told. */
Test(stored_bulk, nothing_to_clear_or_kick_is_not_confirmed_by_who_may_own_nothing, .timeout = 60)
{
    struct shop s = { .disk = memory_disk_new(
                          &(struct memory_disk_options){ .lease_ns = DUE_MS(30) }) };

    s.store = memory_store_new(s.disk);
    s.lab = lab_open(.with.store = s.store, .with.store_timeout_ns = DUE_MS(50));
    cr_expect_eq(due_clear(s.lab.q, DUE_ALL_TOPICS, NULL), 0);
    cr_expect_eq(due_clear_dead(s.lab.q, DUE_ALL_TOPICS, NULL), 0);
    cr_expect_eq(due_kick_all(s.lab.q, DUE_ALL_TOPICS, NULL), 0);
    fail(&s, MEMORY_RENEW, MEMORY_AWAY);
    crew_sleep(DUE_MS(100)); /* his lease is over */
    cr_expect_eq(due_clear(s.lab.q, DUE_ALL_TOPICS, NULL), DUE_ETIMEDOUT);
    cr_expect_eq(due_clear_dead(s.lab.q, DUE_ALL_TOPICS, NULL), DUE_ETIMEDOUT);
    cr_expect_eq(due_kick_all(s.lab.q, DUE_ALL_TOPICS, NULL), DUE_ETIMEDOUT);
    memory_store_forgive(s.store);
    shop_close(&s);
}

/* ---- Without memory for so many ---- */

/* What a call has no memory to do together it does in smaller parts. */
Test(stored_bulk, calls_go_on_without_memory_for_so_many, .timeout = 60)
{
    struct shop s;
    due_job jobs[100];
    int results[100];

    shop_open(&s, DUE_CONFIRM_SYNC);
    struct flaky *memory = &s.lab.state->memory;
    due_spec spec[100];
    for (unsigned i = 0; i < 100; i++)
        spec[i] = (due_spec){ DUE_SPEC_INIT, .data = "tea", .len = 3, .at_ns = 1 };
    flaky_fail_in(memory, 0);
    cr_expect_eq(due_enqueue_batch(s.lab.q, spec, 100, 0, NULL), 100);
    lab_turn_to(&s.lab, 1);
    flaky_fail_in(memory, 0);
    int n = take_some(s.lab.q, NULL, 0, jobs, 100, DUE_S(20));
    cr_expect(n > 0 && n < 100, "%d", n);
    for (int i = 0; i < n; i++)
        due_job_done(&jobs[i]);
    memory->fail_at = FLAKY_NEVER;
    int some = take_leased_some(s.lab.q, NULL, 0, jobs, 100, DUE_S(1), 0);
    cr_expect_eq(some, 100 - n);
    flaky_fail_in(memory, 0);
    cr_expect_eq(due_ack_batch(jobs, (size_t)some, results), some);
    for (int i = 0; i < some; i++)
        cr_expect_eq(results[i], 0);
    cr_expect_eq(atomic_load(&memory->calls) > memory->fail_at, true, "nothing was refused");
    memory->fail_at = FLAKY_NEVER;
    shop_close(&s);
}
