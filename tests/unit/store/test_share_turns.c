/* A shared queue on a clock that is turned by hand: the end of another process's lease comes when
 * the clock is turned past it, for who waits already, for who comes then, and after polls. */
#include "due/metrics.h"
#include "lab/mall.h"

#define LEASE 100

/* Looks, and takes that do not wait: what they leave behind keeps nobody from waiting. */
static void polls(struct mall *m, size_t i, int n)
{
    due_job job;

    for (int k = 0; k < n; k++) {
        cr_expect_eq(due_poll(m->lab[i].q, NULL), 0);
        if (k % 2 == 1)
            cr_expect_eq(take_leased(m->lab[i].q, &job, LEASE, 0), DUE_EAGAIN);
    }
}

/* No claim of the process is on its way: the store waits for it. */
static void until_waits(struct mall *m, size_t i)
{
    due_process p[MALL_MOST];
    uint64_t cursor;

    do {
        cursor = 0;
        cr_assert_eq(due_processes(m->lab[0].q, &cursor, p, MALL_MOST, DUE_S(20)), (int)m->n);
    } while (p[i].waits == 0);
}

static void is_had(struct crew_call *c, due_id id)
{
    cr_assert_eq(crew_call_answer(c), 0);
    cr_expect(due_id_equal(c->job.id, id));
    cr_expect_eq(due_ack(&c->job), 0);
}

static void turn_all(struct mall *m, due_clock *stores, int64_t to_ns)
{
    if (stores != NULL)
        cr_assert_eq(due_clock_turn_to(stores, to_ns), 0);
    mall_turn_to(m, to_ns);
}

/* Process 0 holds a job; 1 polls so many times, and waits in a reserve, before the turn past that
 * lease or after it and some looks more. */
static void lapse(struct mall *m, due_clock *stores, int before, int after, bool waits)
{
    int64_t now = due_clock_now(m->clock);
    struct crew_call call;
    due_job held;

    due_id id = lab_enqueue(&m->lab[2], "tea", .delay_ns = 0);
    cr_assert_eq(mall_reserve(m, 0, &held, LEASE), 0);
    polls(m, 1, before);
    if (waits) {
        crew_call_reserve(&call, m->lab[1].q, NULL, 0, LEASE, DUE_FOREVER);
        crew_call_asleep(&call);
        until_waits(m, 1);
    }
    turn_all(m, stores, now + LEASE + 1);
    if (!waits) {
        for (int k = 0; k < after; k++)
            cr_expect_geq(due_poll(m->lab[1].q, NULL), 0);
        crew_call_reserve(&call, m->lab[1].q, NULL, 0, LEASE, DUE_FOREVER);
    }
    is_had(&call, id);
    cr_expect_eq(due_ack(&held), DUE_ESTALE);
    turn_all(m, stores, now + 10 * LEASE);
}

static void all_ways(struct mall *m, due_clock *stores)
{
    for (int n = 0; n < 6; n++) {
        lapse(m, stores, n, 0, true);
        lapse(m, stores, 0, n, false);
    }
}

MALL_TEST(share_turns, past_the_end_of_anothers_lease_bring_its_job)
{
    struct mall m = mall_make(3);

    all_ways(&m, NULL);
    mall_close(&m);
}

MALL_TEST(share_turns, of_a_clock_of_the_stores_own_bring_it_too_if_it_is_turned_first)
{
    due_clock *stores = due_clock_manual(0);
    struct mall m = mall_on(3, stores);

    all_ways(&m, stores);
    mall_close(&m);
    cr_expect_eq(due_clock_free(stores), 0);
}

/* A job is due by the store's clock, though by the process's own nothing is. */
MALL_TEST(share_turns, of_the_stores_clock_alone_bring_what_is_due_there)
{
    due_clock *stores = due_clock_manual(100);
    struct mall m = mall_on(2, stores);
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], "tea", .at_ns = 50);
    cr_assert_eq(mall_take(&m, 1, &job), 0);
    cr_expect(due_id_equal(job.id, id));
    due_job_done(&job);
    mall_close(&m);
    cr_expect_eq(due_clock_free(stores), 0);
}

/* A claim is on its way when the clock is turned past a whole lease: what it brings is over here
 * when it comes, and the store's until the lease that it has begun there ends. */
MALL_TEST(share_turns, past_a_claim_on_its_way_leave_its_job_for_one_lease_more)
{
    struct mall m = mall_make(3);
    struct memory_limiter *gate = memory_limiter_new(m.disk);
    struct crew_call call;
    due_job held;

    due_id id = lab_enqueue(&m.lab[2], "tea", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 0, &held, LEASE), 0);
    uint64_t works = memory_store_calls(m.store[1], MEMORY_WORK);
    memory_store_fault(
        m.store[1], (struct memory_fault){
                        .verb = MEMORY_WORK, .times = 1, .kind = MEMORY_BLOCK, .limiter = gate });
    crew_call_reserve(&call, m.lab[1].q, NULL, 0, LEASE, DUE_FOREVER);
    memory_limiter_reached(gate, 1);
    mall_turn_to(&m, 2 * LEASE + 1);
    memory_limiter_open(gate);
    memory_store_until(m.store[1], MEMORY_WORK, works + 2);
    crew_call_asleep(&call);
    cr_expect(!atomic_load(&call.thread.back), "it was not handed out");
    mall_turn_to(&m, 4 * LEASE);
    is_had(&call, id);
    cr_expect_eq(due_ack(&held), DUE_ESTALE);
    memory_limiter_free(gate);
    mall_close(&m);
}

/* The next beat is far off, and nobody has ever waited. */
MALL_TEST(share_turns, bring_a_job_to_who_has_only_polled)
{
    const struct memory_disk_options disk = { .lease_ns = DUE_S(3600) };
    struct mall m = { .disk = memory_disk_new(&disk), .clock = due_clock_manual(0) };
    due_job job;
    int rc;

    for (int i = 0; i < 2; i++)
        mall_join(&m, (struct lab_options){ .kernel = false });
    due_id id = lab_enqueue(&m.lab[0], "tea", .delay_ns = 5);
    cr_assert_eq(take_leased(m.lab[1].q, &job, LEASE, 0), DUE_EAGAIN);
    until_waits(&m, 1);
    mall_turn_to(&m, 5);
    while ((rc = take_leased(m.lab[1].q, &job, LEASE, 0)) == DUE_EAGAIN)
        crew_sleep(DUE_MS(1));
    cr_assert_eq(rc, 0);
    cr_expect(due_id_equal(job.id, id));
    cr_expect_eq(due_ack(&job), 0);
    mall_close(&m);
}
