/* Attempts that are counted in the store, while that loses what it had of them. */
#include <stdatomic.h>

#include "due/metrics.h"
#include "lab/shop.h"
#include "lab/take.h"

#define LEASE 100

static const due_retry twice = { .kind = DUE_RETRY_FIXED, .attempts_max = 2, .delay_ns = 1 };

/* A hook that stops whoever is about to have a job: its attempt was counted, its lease has not
 * begun. */
static struct door {
    atomic_bool reached;
    atomic_bool open;
    atomic_uint attempts; /* as it was told of them */
} door;

static void stand(void *ctx, const due_event *e)
{
    (void)ctx;
    if (e->kind != DUE_EVENT_DELIVERED)
        return;
    atomic_store(&door.attempts, e->attempts);
    atomic_store(&door.reached, true);
    while (!atomic_load(&door.open))
        crew_sleep(DUE_MS(1));
}

struct taker {
    struct crew_thread thread;
    due_queue *q;
    due_job job;
};

static int take(void *arg)
{
    struct taker *t = arg;

    return take_leased(t->q, &t->job, LEASE, DUE_S(20));
}

static uint32_t stored_attempts(struct shop *s, due_id id)
{
    due_record r = { .attempts = UINT32_MAX };

    return memory_disk_find(s->disk, id, &r) ? r.attempts : UINT32_MAX;
}

/* What is put again meanwhile says that it was counted. */
Test(stored_attempts, that_were_lost_before_the_lease_began_are_counted_again, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 10, .with.on_event = stand);
    due_id id = lab_enqueue(&s.lab, "tea", .more = EXTRA(.retry = &twice));
    struct taker taker = { .q = s.lab.q };

    crew_go(&taker.thread, take, &taker);
    while (!atomic_load(&door.reached))
        crew_sleep(DUE_MS(1));
    cr_expect_eq(stored_attempts(&s, id), 1u);
    memory_disk_lose(s.disk, 1);
    cr_expect_eq(stored_attempts(&s, id), 0u);
    lab_enqueue(&s.lab, "other", .at_ns = 9000);
    while (lab_stats(&s.lab).mirrored == 0) /* by the proxy */
        crew_sleep(DUE_MS(1));
    cr_expect_eq(stored_attempts(&s, id), 1u);
    atomic_store(&door.open, true);
    cr_assert_eq(crew_join(&taker.thread), 0);
    cr_expect_eq(taker.job.attempts, 1u);
    cr_expect_eq(atomic_load(&door.attempts), 1u);
    due_job_done(&taker.job); /* it dies with it */
    shop_crash(&s, (struct lab_options){ .start_ns = 20 });
    cr_assert_eq(lab_reserve(&s.lab, &taker.job, LEASE), 0);
    cr_expect_eq(taker.job.attempts, 2u, "and no more");
    cr_expect_eq(due_nack(&taker.job, 0), 0);
    cr_expect_eq(lab_stats(&s.lab).dead, 1u);
    shop_close(&s);
}

/* Who has left before it was counted has not had it. */
Test(stored_attempts, that_nobody_waited_for_are_not_counted_twice, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 10, .with.store_timeout_ns = DUE_MS(50));
    struct memory_limiter *limiter = memory_limiter_new(s.disk);
    due_id id = lab_enqueue(&s.lab, "tea", .more = EXTRA(.retry = &twice));
    due_job job = { 0 };

    memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                       .times = MEMORY_ALWAYS,
                                                       .kind = MEMORY_BLOCK_AFTER,
                                                       .limiter = limiter });
    cr_expect_eq(take_leased(s.lab.q, &job, LEASE, 1), DUE_EINDOUBT);
    cr_expect(due_id_equal(job.id, id));
    cr_expect_eq(stored_attempts(&s, id), 1u);
    memory_limiter_open(limiter);
    for (uint32_t i = 1; i <= 2; i++) {
        while (take_leased(s.lab.q, &job, LEASE, 0) != 0) /* it is put back by who sends */
            crew_sleep(DUE_MS(1));
        cr_expect_eq(job.attempts, i);
        cr_expect_eq(due_nack(&job, 0), 0);
    }
    cr_expect_eq(lab_stats(&s.lab).dead, 1u);
    memory_limiter_free(limiter);
    shop_close(&s);
}

/* Whoever wanted it has left when the store says that it has no room for the count. */
Test(apply, of_an_attempt_that_is_refused_when_nobody_waits_leaves_the_job_ready, .timeout = 60)
{
    struct shop s =
        shop_make(.start_ns = 10, .with.store_timeout_ns = DUE_MS(50), .with.metrics = 1);
    lab_enqueue(&s.lab, "tea", .more = EXTRA(.retry = &twice));
    uint64_t calls = memory_store_calls(s.store, MEMORY_COMMIT);
    due_job job;

    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_COMMIT, .call = calls + 1, .kind = MEMORY_BLOCK });
    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_COMMIT, .call = calls + 2, .kind = MEMORY_FULL });
    cr_assert_lt(take_leased(s.lab.q, &job, LEASE, 1), 0, "the store has not answered");
    for (int i = 0; i < 20000 && lab_stats(&s.lab).unsettled > 0; i++)
        crew_sleep(DUE_MS(1));
    cr_expect_eq(memory_store_calls(s.store, MEMORY_COMMIT), calls + 2);
    cr_expect_eq(lab_stats(&s.lab).ready, 1u);
    struct due_topic_stats t;
    cr_assert_eq(due_topic_stats_read(s.lab.q, 0, &t), 0);
    cr_expect_eq(t.ready, 1u);
    cr_assert_eq(take_leased(s.lab.q, &job, LEASE, DUE_S(20)), 0);
    cr_expect_eq(job.attempts, 1u, "the other one was not counted");
    cr_expect_eq(lab_stats(&s.lab).ready, 0u);
    cr_assert_eq(due_ack(&job), 0);
    shop_close(&s);
}
