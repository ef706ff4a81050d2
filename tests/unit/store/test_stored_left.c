/* What a poll has begun to take from a queue with a store, and left: who cancels it meanwhile. */
#include "lab/shop.h"
#include "lab/take.h"
#include "lab/workers_lab.h"

static const due_retry twice = { .kind = DUE_RETRY_FIXED, .attempts_max = 2 };

/* From here on what is sent has landed, and nobody hears of it before the limiter is open. */
static void hold(struct shop *s, struct memory_limiter *limiter)
{
    memory_store_fault(s->store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                        .times = MEMORY_ALWAYS,
                                                        .kind = MEMORY_BLOCK_AFTER,
                                                        .limiter = limiter });
}

static struct shop shop_with(enum due_confirm confirm)
{
    return shop_make(.start_ns = 5, .with.store_timeout_ns = DUE_S(20), .with.confirm = confirm);
}

static int poll_for(struct shop *s, bool reserve, due_job *job)
{
    return reserve ? take_leased(s->lab.q, job, 100, 0) : due_dequeue(s->lab.q, job, 0);
}

/* It has gone, and for nobody. */
static void expect_gone(struct shop *s, bool reserve)
{
    due_job job;

    cr_expect_eq(poll_for(s, reserve, &job), DUE_EAGAIN, "it was cancelled");
    cr_expect_eq(due_flush(s->lab.q, DUE_S(20)), 0);
    cr_expect_eq(memory_disk_jobs(s->disk), 0u);
    struct due_stats stats = lab_stats(&s->lab);
    cr_expect_eq(stats.cancelled, 1u);
    cr_expect_eq(stats.waiting, 0u);
    cr_expect_eq(stats.ready, 0u);
    shop_close(s);
}

/* @landed: the cancel comes when the taking has landed already. */
static void expect_cancelled(enum due_confirm confirm, bool reserve, int64_t every_ns, bool landed)
{
    struct shop s = shop_with(confirm);
    struct memory_limiter *limiter = memory_limiter_new(s.disk);
    bool waits_again = landed && every_ns > 0 && !reserve;
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 5,
                            .more = EXTRA(.retry = &twice, .every_ns = every_ns));
    due_job job;

    cr_expect_eq(due_flush(s.lab.q, DUE_S(20)), 0);
    hold(&s, limiter);
    cr_expect_eq(poll_for(&s, reserve, &job), DUE_EAGAIN);
    if (!landed)
        cr_expect_eq(due_cancel(s.lab.q, id, NULL), DUE_EBUSY);
    memory_limiter_open(limiter);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(20)), 0);
    if (landed)
        cr_expect_eq(due_cancel(s.lab.q, id, NULL), waits_again ? 0 : DUE_EBUSY);
    expect_gone(&s, reserve);
    memory_limiter_free(limiter);
}

/* The next poll does not get it, be it a job for good, one on a lease, or a round. */
Test(stored_left, what_was_cancelled_after_a_poll_has_begun_it_is_nobodys, .timeout = 60)
{
    for (int kind = 0; kind < 16; kind++)
        expect_cancelled(kind & 1 ? DUE_CONFIRM_ASYNC : DUE_CONFIRM_SYNC, (kind & 2) != 0,
                         kind & 4 ? 100 : 0, (kind & 8) != 0);
}

/* Nor does who takes from a queue that is closing: who cancelled it was told that it does not come
 * again. */
Test(stored_left, a_round_that_was_cancelled_is_nobodys_while_the_queue_closes, .timeout = 60)
{
    for (int kind = 0; kind < 4; kind++) {
        enum due_close_mode mode = kind & 1 ? DUE_CLOSE_DRAIN : DUE_CLOSE_DISCARD;
        struct shop s = shop_with(kind & 2 ? DUE_CONFIRM_ASYNC : DUE_CONFIRM_SYNC);
        struct memory_limiter *limiter = memory_limiter_new(s.disk);
        due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 5, .more = EXTRA(.every_ns = 100));
        due_job job;

        cr_expect_eq(due_flush(s.lab.q, DUE_S(20)), 0);
        hold(&s, limiter);
        cr_expect_eq(due_dequeue(s.lab.q, &job, 0), DUE_EAGAIN);
        cr_expect_eq(due_cancel(s.lab.q, id, NULL), DUE_EBUSY);
        int rc = due_close(s.lab.q, mode, 0);
        cr_expect(rc == DUE_ETIMEDOUT || mode == DUE_CLOSE_DISCARD, "%s", due_error_name(rc));
        memory_limiter_open(limiter);
        WAIT_UNTIL(lab_stats(&s.lab).unsettled == 0);
        rc = due_dequeue(s.lab.q, &job, 0);
        cr_expect(rc == DUE_ECLOSED || rc == DUE_EAGAIN, "%d: %s", kind, due_error_name(rc));
        cr_expect_eq(due_close(s.lab.q, mode, DUE_S(20)), 0);
        shop_close(&s);
        memory_limiter_free(limiter);
    }
}

struct canceller {
    struct shop *s;
    due_id id;
    bool batch;
};

static int cancel(void *arg)
{
    const struct canceller *c = arg;
    int rc;

    if (!c->batch)
        return due_cancel(c->s->lab.q, c->id, NULL);
    return due_cancel_batch(c->s->lab.q, &c->id, 1, &rc) == 1 ? rc : DUE_ENOENT;
}

/* The next round waits, and this one has landed: an asynchronous cancel that was answered at once
 * would be refused later perhaps, and nobody could tell whose the round is. */
Test(stored_left, an_asynchronous_cancel_waits_while_a_round_may_be_left, .timeout = 60)
{
    for (int batch = 0; batch < 2; batch++) {
        struct shop s = shop_with(DUE_CONFIRM_ASYNC);
        struct memory_limiter *limiter = memory_limiter_new(s.disk);
        struct memory_limiter *second = memory_limiter_new(s.disk);
        struct canceller c = { .s = &s, .batch = batch != 0 };
        struct crew_thread thread = { 0 };
        due_job job;

        c.id = lab_enqueue(&s.lab, "tea", .at_ns = 5, .more = EXTRA(.every_ns = 100));
        cr_expect_eq(due_flush(s.lab.q, DUE_S(20)), 0);
        hold(&s, limiter);
        cr_expect_eq(due_dequeue(s.lab.q, &job, 0), DUE_EAGAIN);
        memory_limiter_open(limiter);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(20)), 0);
        hold(&s, second);
        crew_go(&thread, cancel, &c);
        memory_limiter_reached(second, 1);
        crew_until_asleep(&thread);
        cr_expect_not(atomic_load(&thread.back), "it has not landed");
        memory_limiter_open(second);
        cr_expect_eq(crew_join(&thread), 0);
        expect_gone(&s, false);
        memory_limiter_free(limiter);
        memory_limiter_free(second);
    }
}

/* A round that nobody came back for is for who takes for good; who takes on a lease gets what else
 * is due, and does not wait for it. */
Test(stored_left, a_round_is_passed_by_who_cannot_have_it, .timeout = 60)
{
    for (int kind = 0; kind < 4; kind++) {
        struct shop s = shop_with(kind & 1 ? DUE_CONFIRM_ASYNC : DUE_CONFIRM_SYNC);
        struct memory_limiter *limiter = memory_limiter_new(s.disk);
        due_job job;

        lab_enqueue(&s.lab, "tea", .at_ns = 5, .more = EXTRA(.every_ns = 1000));
        cr_expect_eq(due_flush(s.lab.q, DUE_S(20)), 0);
        hold(&s, limiter);
        cr_expect_eq(due_dequeue(s.lab.q, &job, 0), DUE_EAGAIN);
        memory_limiter_open(limiter);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(20)), 0);
        if (kind & 2) {
            cr_expect_eq(take_leased(s.lab.q, &job, 100, 0), DUE_EAGAIN, "there is nothing else");
        }
        lab_enqueue(&s.lab, "cake", .at_ns = 5);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(20)), 0);
        cr_assert_eq(take_leased(s.lab.q, &job, 100, 0), 0, "%d", kind);
        cr_expect_eq(memcmp(job.data, "cake", 4), 0);
        cr_expect_eq(due_ack(&job), 0);
        cr_assert_eq(due_dequeue(s.lab.q, &job, 0), 0, "%d", kind);
        cr_expect_eq(memcmp(job.data, "tea", 3), 0);
        due_job_done(&job);
        shop_close(&s);
        memory_limiter_free(limiter); /* it was asked to the end */
    }
}
