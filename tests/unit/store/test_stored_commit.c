/* What a stored queue's callers are told when the store refuses, is away, or the queue closes. */
#include "lab/shop.h"
#include "lab/take.h"

static const struct memory_disk_options small_batches = { .batch_changes = 2 };

#define shop_small(...) \
    shop_new(&small_batches, (struct lab_options){ .kernel = false, __VA_ARGS__ })

Test(stored_commit, of_a_batch_that_is_refused_in_the_middle_the_first_ones_are_in, .timeout = 60)
{
    struct shop s = shop_small();
    due_spec spec[6];
    due_id id[6] = { { { 0 } } };

    for (int i = 0; i < 6; i++)
        spec[i] = (due_spec){ DUE_SPEC_INIT, .data = "tea", .len = 3, .at_ns = 10 };
    memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                       .call = 2,
                                                       .times = MEMORY_ALWAYS,
                                                       .kind = MEMORY_FULL });
    cr_expect_eq(due_enqueue_batch(s.lab.q, spec, 6, 0, id), 2);
    for (int i = 0; i < 6; i++)
        cr_expect_eq(memory_disk_find(s.disk, id[i], NULL), i < 2, "%d", i);
    cr_expect_eq(lab_stats(&s.lab).waiting, 2u);
    shop_close(&s);
}

Test(stored_commit, the_room_of_a_refused_job_is_given_back_once, .timeout = 60)
{
    struct shop s = shop_small(.with.capacity = 2, .with.store_timeout_ns = DUE_MS(20));
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3, .at_ns = 10 };

    shop_fail(&s, MEMORY_COMMIT, 1, MEMORY_FULL);
    cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), DUE_ENOSPC);
    shop_fail(&s, MEMORY_READY, MEMORY_ALWAYS, MEMORY_AWAY);
    cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), DUE_ETIMEDOUT);
    memory_store_forgive(s.store);
    cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), 0);
    cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), 0);
    cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), DUE_EAGAIN);
    shop_close(&s);
}

Test(stored_commit, a_take_that_landed_for_nobody_is_put_in_again, .timeout = 60)
{
    struct shop s = shop_small(.with.store_timeout_ns = DUE_MS(20));
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 1);
    due_job job;

    lab_turn_to(&s.lab, 1);
    shop_fail(&s, MEMORY_COMMIT, MEMORY_ALWAYS, MEMORY_DOUBT_LANDED);
    cr_expect_eq(due_dequeue(s.lab.q, &job, 1), DUE_EINDOUBT);
    cr_expect(due_id_equal(job.id, id));
    cr_expect_null(job.queue);
    cr_expect_not(memory_disk_find(s.disk, id, NULL));
    memory_store_forgive(s.store);
    for (int i = 0; i < 3000 && !memory_disk_find(s.disk, id, NULL); i++)
        crew_sleep(DUE_MS(1));
    cr_expect(memory_disk_find(s.disk, id, NULL));
    cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    cr_expect_str_eq(lab_dequeue(&s.lab), "tea");
    cr_expect_not(memory_disk_find(s.disk, id, NULL));
    shop_close(&s);
}

struct told {
    atomic_int settled;
    atomic_int discarded;
};

static void on_settled(void *ctx, due_id id, int rc)
{
    struct told *told = ctx;

    (void)id;
    atomic_store(&told->settled, rc);
}

static void on_discard(void *ctx, const due_job *job)
{
    struct told *told = ctx;

    (void)job;
    atomic_fetch_add(&told->discarded, 1);
}

static int dequeue_it(void *arg)
{
    due_job job;

    return due_dequeue(arg, &job, 1);
}

/* A dequeued job leaves the store, and its caller does not hear of it: the way to the store is shut
 * for as long as he waits.  It is not put back either, because of @back. */
static void take_for_nobody(struct shop *s, struct memory_limiter *limiters[2],
                            enum memory_fault_kind back)
{
    struct memory_fault faults[] = {
        { MEMORY_COMMIT, .call = 2, .kind = MEMORY_BLOCK, .limiter = limiters[0] },
        { MEMORY_COMMIT, .call = 2, .kind = MEMORY_DOUBT_LANDED },
        { MEMORY_COMMIT, .call = 4, .times = MEMORY_ALWAYS, .kind = back },
    };
    struct crew_thread taker;

    for (size_t i = 0; i < 3; i++)
        memory_store_fault(s->store, faults[i]);
    crew_go(&taker, dequeue_it, s->lab.q);
    memory_limiter_reached(limiters[0], 1);
    memory_store_fault(s->store,
                       (struct memory_fault){ MEMORY_READY, .times = MEMORY_ALWAYS,
                                              .kind = MEMORY_BLOCK, .limiter = limiters[1] });
    memory_limiter_open(limiters[0]);
    cr_expect_eq(crew_join(&taker), DUE_EINDOUBT);
    memory_limiter_open(limiters[1]);
}

/* And then the queue closes. */
Test(stored_commit, a_take_that_is_not_put_in_again_for_a_close_is_shown_and_told, .timeout = 60)
{
    for (int landed = 0; landed < 2; landed++) {
        struct told told = { 0 };
        struct shop s = shop_small(.with.store_timeout_ns = DUE_MS(300), .with.ctx = &told,
                                   .with.on_settled = on_settled, .with.on_discard = on_discard);
        struct memory_limiter *limiters[2] = { memory_limiter_new(s.disk),
                                               memory_limiter_new(s.disk) };
        due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 1);

        lab_turn_to(&s.lab, 1);
        take_for_nobody(&s, limiters, landed ? MEMORY_DOUBT_LANDED : MEMORY_DOUBT_NOT);
        memory_store_until(s.store, MEMORY_COMMIT, 4); /* it was tried */
        int rc = due_close(s.lab.q, DUE_CLOSE_DISCARD, DUE_MS(50));
        cr_expect(rc == 0 || rc == DUE_ETIMEDOUT, "%s", due_error_name(rc));
        cr_expect_eq(due_close(s.lab.q, DUE_CLOSE_DISCARD, DUE_S(30)), 0);
        cr_expect_eq(atomic_load(&told.discarded), 1);
        cr_expect_eq(atomic_load(&told.settled), DUE_EINDOUBT);
        cr_expect_eq(memory_disk_find(s.disk, id, NULL), landed != 0);
        memory_limiter_free(limiters[0]);
        memory_limiter_free(limiters[1]);
        shop_close(&s);
    }
}

static void wait_for(atomic_int *count)
{
    for (int i = 0; i < 5000 && atomic_load(count) == 0; i++)
        crew_sleep(DUE_MS(1));
}

/* Another program has the jobs by then, and does not find this one among them. */
Test(stored_commit, a_take_that_is_not_put_in_again_for_another_owner_is_shown_and_told,
     .timeout = 60)
{
    struct told told = { 0 };
    struct shop s = shop_small(.with.store_timeout_ns = DUE_MS(300), .with.ctx = &told,
                               .with.on_settled = on_settled, .with.on_discard = on_discard);
    struct memory_limiter *limiters[2] = { memory_limiter_new(s.disk), memory_limiter_new(s.disk) };

    lab_enqueue(&s.lab, "tea", .at_ns = 1);
    lab_turn_to(&s.lab, 1);
    take_for_nobody(&s, limiters, MEMORY_FENCE);
    wait_for(&told.discarded);
    cr_expect_eq(atomic_load(&told.discarded), 1);
    cr_expect_neq(atomic_load(&told.settled), 0);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    shop_close(&s);
    memory_limiter_free(limiters[0]);
    memory_limiter_free(limiters[1]);
    cr_expect_eq(atomic_load(&told.discarded), 1);
}

/* The store is full until the queue closes. */
Test(stored_commit, a_take_that_the_store_does_not_take_back_is_shown_by_a_close, .timeout = 60)
{
    struct told told = { 0 };
    struct shop s = shop_small(.with.store_timeout_ns = DUE_MS(300), .with.ctx = &told,
                               .with.on_settled = on_settled, .with.on_discard = on_discard);
    struct memory_limiter *limiters[2] = { memory_limiter_new(s.disk), memory_limiter_new(s.disk) };

    lab_enqueue(&s.lab, "tea", .at_ns = 1);
    lab_turn_to(&s.lab, 1);
    take_for_nobody(&s, limiters, MEMORY_FULL);
    memory_store_until(s.store, MEMORY_COMMIT, 5); /* it waits, and is sent again and again */
    cr_expect_eq(atomic_load(&told.discarded), 0);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    shop_close(&s);
    memory_limiter_free(limiters[0]);
    memory_limiter_free(limiters[1]);
    cr_expect_eq(atomic_load(&told.discarded), 1, "it is nowhere");
}

static int close_in_time(void *arg)
{
    return due_close(arg, DUE_CLOSE_DISCARD, DUE_S(30));
}

/* It waits in the queue alone, and is somebody's when the close begins, who gives it back then. */
Test(stored_commit, a_take_that_the_store_does_not_take_back_is_shown_though_it_is_nacked_meanwhile,
     .timeout = 60)
{
    struct told told = { 0 };
    struct shop s = shop_small(.with.store_timeout_ns = DUE_MS(100), .with.ctx = &told,
                               .with.on_settled = on_settled, .with.on_discard = on_discard);
    struct memory_limiter *limiters[2] = { memory_limiter_new(s.disk), memory_limiter_new(s.disk) };
    due_spec spec = { DUE_SPEC_INIT, .data = "rum", .len = 3 };
    struct crew_thread closer;
    due_job job;

    lab_enqueue(&s.lab, "tea", .at_ns = 1);
    lab_turn_to(&s.lab, 1);
    take_for_nobody(&s, limiters, MEMORY_FULL);
    memory_store_until(s.store, MEMORY_COMMIT, 4);
    while (lab_stats(&s.lab).ready == 0)
        crew_sleep(DUE_US(100));
    cr_assert_eq(lab_reserve(&s.lab, &job, DUE_S(60)), 0);
    crew_go(&closer, close_in_time, s.lab.q);
    int rc = 0;
    while (rc != DUE_ECLOSED)
        rc = due_enqueue(s.lab.q, &spec, 0, NULL);
    rc = due_nack(&job, 0);
    if (rc != 0)
        due_job_done(&job);
    memory_store_forgive(s.store);
    cr_expect_eq(crew_join(&closer), 0);
    size_t there = memory_disk_jobs(s.disk);
    memory_limiter_free(limiters[0]);
    memory_limiter_free(limiters[1]);
    shop_close(&s); /* what is still leased leaves now */
    cr_expect_eq(there + (size_t)atomic_load(&told.discarded), 1u, "%s", due_error_name(rc));
}

/* And is cancelled while he has it: it is removed when his lease ends, which a store that is away
 * does not hear of. */
Test(stored_commit, a_take_that_the_store_does_not_take_back_is_shown_though_it_is_cancelled,
     .timeout = 60)
{
    struct told told = { 0 };
    struct shop s = shop_small(.with.store_timeout_ns = DUE_MS(100), .with.ctx = &told,
                               .with.on_settled = on_settled, .with.on_discard = on_discard);
    struct memory_limiter *limiters[2] = { memory_limiter_new(s.disk), memory_limiter_new(s.disk) };
    due_job job;

    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 1);
    lab_turn_to(&s.lab, 1);
    take_for_nobody(&s, limiters, MEMORY_FULL);
    memory_store_until(s.store, MEMORY_COMMIT, 4);
    while (lab_stats(&s.lab).ready == 0)
        crew_sleep(DUE_US(100));
    cr_assert_eq(take_leased(s.lab.q, &job, DUE_S(60), DUE_S(60)), 0);
    cr_expect_eq(due_cancel(s.lab.q, id, NULL), DUE_EBUSY);
    due_job_done(&job);
    shop_fail(&s, MEMORY_READY, MEMORY_ALWAYS, MEMORY_AWAY);
    shop_fail(&s, MEMORY_COMMIT, MEMORY_ALWAYS, MEMORY_AWAY);
    lab_advance(&s.lab, DUE_S(60));
    due_poll(s.lab.q, NULL);
    cr_expect_eq(atomic_load(&told.discarded), 0);
    int rc = due_close(s.lab.q, DUE_CLOSE_DISCARD, DUE_MS(20));
    cr_expect(rc == 0 || rc == DUE_ETIMEDOUT, "%s", due_error_name(rc));
    cr_expect_eq(due_close(s.lab.q, DUE_CLOSE_DISCARD, DUE_S(30)), 0);
    size_t there = memory_disk_jobs(s.disk);
    memory_limiter_free(limiters[0]);
    memory_limiter_free(limiters[1]);
    cr_expect_eq(there + (size_t)atomic_load(&told.discarded), 1u);
    shop_close(&s);
    cr_expect_eq(atomic_load(&told.discarded), there == 0);
}

Test(stored_commit, what_was_removed_is_dropped_after_a_loss_though_somebody_holds_it,
     .timeout = 60)
{
    struct shop s = shop_small();
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 1);
    due_job job;

    lab_turn_to(&s.lab, 1);
    cr_assert_eq(lab_take(&s.lab, &job), 0);
    memory_disk_lose(s.disk, 1);
    cr_expect(memory_disk_find(s.disk, id, NULL));
    lab_enqueue(&s.lab, "new", .at_ns = 5);
    for (int i = 0; i < 3000 && memory_disk_find(s.disk, id, NULL); i++)
        crew_sleep(DUE_MS(1));
    cr_expect_not(memory_disk_find(s.disk, id, NULL), "it would come back");
    due_job_done(&job);
    shop_close(&s);
}

static int close_it(void *arg)
{
    return due_close(arg, DUE_CLOSE_DISCARD, 0);
}

Test(stored_commit, close_leaves_nothing_though_calls_wait_for_the_store, .timeout = 60)
{
    for (int landed = 0; landed < 2; landed++) {
        struct shop s = shop_small();
        due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 500);
        struct crew_thread closer;

        shop_fail(&s, MEMORY_COMMIT, MEMORY_ALWAYS,
                  landed ? MEMORY_DOUBT_LANDED : MEMORY_DOUBT_NOT);
        crew_go(&closer, close_it, s.lab.q);
        int rc = due_cancel(s.lab.q, id, NULL);
        cr_expect(rc == DUE_EINDOUBT || rc == DUE_ECLOSED || rc == DUE_ENOENT || rc == DUE_EBUSY,
                  "%s", due_error_name(rc));
        rc = crew_join(&closer);
        cr_expect(rc == 0 || rc == DUE_ETIMEDOUT, "%s", due_error_name(rc));
        memory_store_forgive(s.store);
        shop_close(&s);
    }
}

Test(stored_commit, a_lease_may_be_answered_after_the_close, .timeout = 60)
{
    for (int async = 0; async < 2; async++) {
        struct shop s = shop_small(.with.confirm = async ? DUE_CONFIRM_ASYNC : DUE_CONFIRM_SYNC);
        due_job job;

        due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 1);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        lab_turn_to(&s.lab, 1);
        cr_assert_eq(take_leased(s.lab.q, &job, 100, 0), 0);
        cr_assert_eq(due_close(s.lab.q, DUE_CLOSE_DISCARD, DUE_S(30)), 0);
        cr_expect_eq(due_ack(&job), DUE_ECLOSED);
        due_job_done(&job);
        cr_expect(memory_disk_find(s.disk, id, NULL));
        shop_close(&s);
    }
}

Test(stored_commit, a_fenced_queue_rests, .timeout = 60)
{
    struct memory_disk *disk =
        memory_disk_new(&(struct memory_disk_options){ .lease_ns = DUE_MS(30) });
    due_store *store = memory_store_new(disk);
    struct lab lab = lab_open(.with.store = store);

    memory_disk_fence(disk);
    for (int i = 0; i < 3000 && lab_stats(&lab).store_state != DUE_EFENCED; i++) {
        due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3 };
        cr_expect_neq(due_enqueue(lab.q, &spec, 0, NULL), 0);
    }
    crew_sleep(DUE_MS(100)); /* past the next renewal */
    int64_t before = crew_cpu_ns();
    crew_sleep(DUE_MS(300));
    cr_expect_lt(crew_cpu_ns() - before, DUE_MS(100));
    lab_close(&lab);
    cr_expect_null(memory_disk_wrong(disk));
    memory_disk_free(disk);
}

/* ---- Many are told by one batch -------------------------------------------------------------- */

#define CALLERS 9u

/* How many are, long before their time is up, when they would look by themselves. */
static unsigned are_back(struct crew_call *calls)
{
    unsigned back = 0;

    for (int i = 0; i < 3000 && back < CALLERS; i++) {
        back = 0;
        for (unsigned k = 0; k < CALLERS; k++)
            back += atomic_load(&calls[k].thread.back);
        if (back < CALLERS)
            crew_sleep(DUE_MS(1));
    }
    return back;
}

/* While the batch of the first is with the store all the others leave theirs, which are one batch
 * then: who is told rings two others, and these the next. */
LAB_TEST(stored_commit, each_of_many_callers_that_one_batch_tells_is_rung)
{
    if (lab_proxies == DUE_PROXIES_NEVER)
        return; /* a store has its proxies */
    struct shop s = shop_make(.with.store_timeout_ns = DUE_S(1000));
    struct memory_limiter *limiter = memory_limiter_new(s.disk);
    struct crew_call calls[CALLERS];

    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_COMMIT, .kind = MEMORY_BLOCK, .limiter = limiter });
    for (unsigned i = 0; i < CALLERS; i++) {
        crew_call_enqueue(&calls[i], s.lab.q,
                          (due_spec){ DUE_SPEC_INIT, .data = "tea", .len = 3, .at_ns = 10 },
                          DUE_FOREVER);
        if (i == 0)
            memory_limiter_reached(limiter, 1);
        else
            crew_call_asleep(&calls[i]);
    }
    uint64_t before = memory_disk_batches(s.disk);
    memory_limiter_open(limiter);
    cr_expect_eq(are_back(calls), CALLERS);
    cr_expect_eq(memory_disk_batches(s.disk) - before, 2u);
    cr_expect_eq(due_close(s.lab.q, DUE_CLOSE_DISCARD, DUE_S(30)), 0);
    for (unsigned i = 0; i < CALLERS; i++)
        cr_expect_eq(crew_call_answer(&calls[i]), 0);
    memory_limiter_free(limiter);
    shop_close(&s);
}
