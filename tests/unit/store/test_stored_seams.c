/* Where rooms meet in a queue with a store. */
#include "queue/queue.h"
#include "lab/redis/stored_both.h"
#include "lab/take.h"

#define GROUP(name) .group = (name), .group_len = sizeof(name) - 1

#define KEYED(name, policy) .key = (name), .key_len = sizeof(name) - 1, .on_key = (policy)

Test(stored_seams, a_job_put_off_by_its_key_does_not_hold_its_group, .timeout = 60)
{
    struct shop s = shop_new(IN_MEMORY, AT(10));

    lab_enqueue(&s.lab, "first", .at_ns = 1, .more = EXTRA(GROUP("g"), KEYED("k", DUE_KEY_REFUSE)));
    lab_enqueue(&s.lab, "second", .at_ns = 2, .more = EXTRA(GROUP("g")));
    cr_expect_eq(due_poll(s.lab.q, NULL), 1);
    lab_enqueue(&s.lab, "later", .at_ns = 1000,
                .more = EXTRA(GROUP("g"), KEYED("k", DUE_KEY_DEBOUNCE)));
    cr_expect_eq(lab_stats(&s.lab).passed, 1u);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "second", "a job that is not due holds the group");
    lab_turn_to(&s.lab, 1000);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "later");
    shop_close(&s);
}

/* ---- A store that is not to be used ---- */

static due_job reserve_new(struct shop *s)
{
    lab_enqueue(&s->lab, "dead", .delay_ns = 0);
    return reserve(s);
}

static void bury_one(struct shop *s)
{
    due_job job = reserve_new(s);

    cr_assert_eq(due_bury(&job, NULL), 0);
}

/* The next change lands still, and then no other. */
static void refuse_after_one(struct shop *s)
{
    uint64_t calls = memory_store_calls(s->store, MEMORY_READY);

    memory_store_fault(s->store, (struct memory_fault){ .verb = MEMORY_READY,
                                                        .call = calls + 2,
                                                        .times = MEMORY_ALWAYS,
                                                        .kind = MEMORY_ANSWER,
                                                        .answer = DUE_EACCES });
}

/* Few calls of the store in a while. */
static void quiet(struct shop *s)
{
    crew_sleep(DUE_MS(20));
    uint64_t calls = memory_store_calls(s->store, MEMORY_READY);
    crew_sleep(DUE_MS(100));
    cr_expect_leq(memory_store_calls(s->store, MEMORY_READY), calls + 10, "it asks all the time");
}

/* More dead jobs than are kept, of which none can leave the store. */
Test(stored_seams, a_death_too_many_is_not_cleared_all_the_time, .timeout = 30)
{
    struct shop s = shop_new(IN_MEMORY, AT(10, .with.dead_max = 2));

    bury_one(&s);
    bury_one(&s);
    due_job job = reserve_new(&s);
    refuse_after_one(&s);
    cr_assert_eq(due_bury(&job, NULL), 0);
    quiet(&s);
    cr_expect_eq(lab_stats(&s.lab).dead, 3u);
    memory_store_forgive(s.store);
    bury_one(&s);
    until_dead(&s, 2);
    cr_expect_eq(shop_stored(&s), 2u);
    shop_close(&s);
}

/* The same while somebody closes. */
Test(stored_seams, a_death_too_many_does_not_keep_a_queue_from_closing, .timeout = 30)
{
    struct shop s = shop_new(IN_MEMORY, AT(10, .with.dead_max = 2));

    bury_one(&s);
    bury_one(&s);
    due_job job = reserve_new(&s);
    refuse_after_one(&s);
    cr_assert_eq(due_bury(&job, NULL), 0);
    shop_close(&s);
}

/* What has been dead long enough, and cannot leave the store, is tried once a second. */
Test(stored_seams, an_end_of_retention_is_not_tried_all_the_time, .timeout = 30)
{
    struct shop s = shop_new(IN_MEMORY, AT(10, .kernel = true, .with.dead_keep_ns = DUE_MS(20)));
    due_job job;
    due_job none;

    lab_enqueue(&s.lab, "dead", .delay_ns = 0);
    cr_assert_eq(take_leased(s.lab.q, &job, DUE_S(50), 0), 0);
    refuse_after_one(&s);
    cr_assert_eq(due_bury(&job, NULL), 0);
    cr_expect_eq(take_leased(s.lab.q, &none, LEASE, DUE_MS(300)), DUE_ETIMEDOUT);
    cr_expect_leq(lab_stats(&s.lab).settled, 20u, "it is tried all the time");
    cr_expect_eq(lab_stats(&s.lab).dead, 1u);
    memory_store_forgive(s.store);
    cr_expect_eq(take_leased(s.lab.q, &none, LEASE, DUE_MS(1500)), DUE_ETIMEDOUT);
    cr_expect_eq(shop_stored(&s), 0u);
    shop_close(&s);
}

/* ---- No memory ---- */

/* Who was quick to take it in between would lose it to the next. */
Test(stored_seams, a_job_that_finds_no_memory_for_its_attempt_goes_back_once, .timeout = 60)
{
    struct shop s = shop_new(IN_MEMORY, AT(10, .with.confirm = DUE_CONFIRM_ASYNC));
    const due_retry twice = { .kind = DUE_RETRY_FIXED, .attempts_max = 2 };
    struct flaky *memory = &s.lab.state->memory;
    int rc = DUE_ENOMEM;
    due_job job;

    lab_enqueue(&s.lab, "tea", .more = EXTRA(.retry = &twice));
    for (int i = 0; i < 3000 && lab_stats(&s.lab).waiting + lab_stats(&s.lab).unsettled != 1; i++)
        crew_sleep(DUE_MS(1));
    uint64_t failed = 0;
    for (size_t n = 0; rc == DUE_ENOMEM; n++) {
        flaky_fail_in(memory, n);
        rc = take_leased(s.lab.q, &job, LEASE, DUE_S(20));
        memory->fail_at = FLAKY_NEVER;
        failed += rc == DUE_ENOMEM;
        cr_expect_leq(s.lab.q->unreadied, failed, "it went back twice");
    }
    cr_assert_eq(rc, 0);
    cr_assert_gt(failed, 0u);
    cr_expect_eq(due_ack(&job), 0);
    shop_close(&s);
}

/* ---- A loss, and then a store that is not to be used ---- */

/* The second loss is seen while what is not the queue's is looked for. */
Test(stored_seams, what_is_to_be_put_again_is_not_tried_all_the_time, .timeout = 60)
{
    struct shop s = shop_new(IN_MEMORY, AT(10));

    lab_enqueue(&s.lab, "tea", .delay_ns = 50);
    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_LOAD, .kind = MEMORY_ANSWER, .answer = DUE_ELOST });
    memory_disk_lose(s.disk, SIZE_MAX);
    refuse_after_one(&s);
    lab_enqueue(&s.lab, "jam", .delay_ns = 60);
    quiet(&s);
    memory_store_forgive(s.store);
    until_stored(&s, 2);
    lab_turn_to(&s.lab, 100);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "tea jam");
    shop_close(&s);
}

/* ---- Cancelled while it is being changed ---- */

struct mover {
    struct crew_thread thread;
    due_queue *q;
    due_id id;
    int rc;
};

static int reschedule(void *arg)
{
    struct mover *m = arg;

    m->rc = due_reschedule(m->q, m->id, 20);
    return 0;
}

Test(stored_seams, a_job_cancelled_while_it_is_rescheduled_is_not_handed_out, .timeout = 60)
{
    struct shop s = shop_new(IN_MEMORY, AT(10));
    struct memory_limiter *limiter = memory_limiter_new(s.disk);
    struct mover m = { .q = s.lab.q, .id = lab_enqueue(&s.lab, "tea", .delay_ns = 5), .rc = -1 };

    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_COMMIT, .kind = MEMORY_BLOCK, .limiter = limiter });
    crew_go(&m.thread, reschedule, &m);
    memory_limiter_reached(limiter, 1);
    cr_expect_eq(due_cancel(s.lab.q, m.id, NULL), DUE_EBUSY);
    memory_limiter_open(limiter);
    crew_join(&m.thread);
    cr_expect_eq(m.rc, 0);
    lab_turn_to(&s.lab, 20);
    cr_expect_null(lab_dequeue(&s.lab), "it was cancelled");
    until_stored(&s, 0);
    cr_expect_eq(lab_stats(&s.lab).cancelled, 1u);
    memory_limiter_free(limiter);
    shop_close(&s);
}

/* ---- A loss while the queue drains ---- */

Test(stored_seams, a_round_left_to_the_store_is_there_after_a_loss_too, .timeout = 60)
{
    struct shop s = shop_new(IN_MEMORY, AT(0));
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 100, GROUP("g")));
    due_id stays = lab_enqueue(&s.lab, "stays", .at_ns = 1000);
    due_id other = lab_enqueue(&s.lab, "other", .at_ns = 1000);
    due_record r = { .len = 0 };

    cr_expect_eq(due_close(s.lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    lab_turn_to(&s.lab, 10);
    cr_expect_str_eq(lab_dequeue(&s.lab), "tea", "its place is free from here on");
    cr_expect_eq(due_reschedule(s.lab.q, stays, 900), 0);
    memory_disk_lose(s.disk, 1);
    cr_expect_eq(due_reschedule(s.lab.q, stays, 800), 0);
    for (int i = 0; i < 3000 && lab_stats(&s.lab).mirrored == 0; i++)
        crew_sleep(DUE_MS(1));
    cr_expect_eq(due_flush(s.lab.q, DUE_S(20)), 0);
    crew_sleep(DUE_MS(20));
    cr_expect_eq(lab_stats(&s.lab).mirrored, 1u, "not what nobody has");
    cr_assert(memory_disk_find(s.disk, id, &r), "it is lost");
    cr_expect_eq(r.until_ns, 110);
    cr_expect_eq(due_cancel(s.lab.q, stays, NULL), 0);
    cr_expect_eq(due_cancel(s.lab.q, other, NULL), 0);
    cr_expect_eq(due_close(s.lab.q, DUE_CLOSE_DRAIN, DUE_S(20)), 0);
    shop_close(&s);
}
