/* A queue with a store that finds no memory: the call says so, and nobody waits for it in vain. */
#include "lab/shop.h"
#include "lab/take.h"

#include "os/atomic.h"
#include "queue/queue.h"

#define LARGE ((size_t)300)

/* A reserve finds none for the records of leases. */
Test(stored_memory, a_reserve_without_memory_says_so_and_takes_nothing, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 5);
    struct flaky *memory = &s.lab.state->memory;
    due_job job;

    lab_enqueue(&s.lab, "tea", .delay_ns = 0);
    flaky_fail_in(memory, 0);
    cr_expect_eq(take_leased(s.lab.q, &job, 100, 0), DUE_ENOMEM);
    memory->fail_at = FLAKY_NEVER;
    cr_expect_eq(lab_stats(&s.lab).ready, 1u);
    cr_expect_eq(lab_stats(&s.lab).leased, 0u);
    cr_assert_eq(take_leased(s.lab.q, &job, 100, 0), 0);
    cr_expect_eq(job.attempts, 1u);
    cr_expect_eq(due_ack(&job), 0);
    shop_close(&s);
}

/* ---- Two calls that want to change a job by its key ---- */

static struct {
    struct shop *shop;
    struct crew_call second;
    due_id job; /* the first's */
    bool armed;
} between;

/* Others ask for much memory too: has the first claimed the job? */
static bool is_changing(void)
{
    struct due_queue *q = between.shop->lab.q;
    uint32_t number;
    uint32_t generation;

    return due__id_read(q, between.job, &number, &generation) &&
           due__word_state(due__load_acquire(&due__job_at(&q->slab, number)->word)) ==
               DUE__CHANGING;
}

/* The first has the job, and asks for memory for what it is to become, which it could not tell
 * before: the second comes, and waits for it; then the first gets none. */
static void second_comes(void *ctx, size_t size)
{
    struct flaky *memory = ctx;
    size_t call = atomic_load(&memory->calls) - 1;

    if (size < LARGE || !is_changing())
        return;
    memory->fail_at = call; /* it asks again, once it has given back what it keeps */
    if (!between.armed)
        return;
    between.armed = false;
    crew_call_enqueue(
        &between.second, between.shop->lab.q,
        (due_spec){ DUE_SPEC_INIT, .at_ns = 20,
                    .more = EXTRA(.key = "k", .key_len = 1, .on_key = DUE_KEY_REPLACE),
                    .data = "second", .len = 6 },
        DUE_S(30));
    crew_call_asleep(&between.second);
    cr_expect_not(atomic_load(&between.second.thread.back));
}

Test(stored_memory, who_waits_for_a_change_that_finds_none_goes_on, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 5);
    struct flaky *memory = &s.lab.state->memory;
    char changed[LARGE];
    due_id first;

    memset(changed, 'c', sizeof changed);
    cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "as it was", &first, .at_ns = 10), 0);
    between.shop = &s;
    between.job = first;
    between.armed = true;
    memory->on_alloc_ctx = memory;
    memory->on_alloc = second_comes;
    int rc = due_update(s.lab.q, first, changed, sizeof changed);
    cr_expect_eq(rc, DUE_ENOMEM, "%s", due_error_name(rc));
    cr_assert_not(between.armed, "nobody came in between");
    int second = crew_call_answer(&between.second);
    cr_expect_eq(second, 0, "%s", due_error_name(second));
    memory->on_alloc = NULL;
    lab_turn_to(&s.lab, 20);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "second");
    shop_close(&s);
}
