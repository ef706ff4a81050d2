/* A shared queue closes while something is under way. */
#include <sched.h>

#include "due/metrics.h"
#include "lab/mall.h"

/* It has taken effect in the store, and its answer comes while the queue closes. */
MALL_TEST(share, a_claim_that_is_under_way_while_it_closes_is_given_back)
{
    struct mall m = mall_make(2);
    struct memory_limiter *gate = memory_limiter_new(m.disk);
    struct due_queue_census census;
    struct crew_call taking;
    struct crew_call closing;
    due_spec spec = { DUE_SPEC_INIT };

    memory_store_fault(
        m.store[1],
        (struct memory_fault){ .verb = MEMORY_WORK, .kind = MEMORY_BLOCK_AFTER, .limiter = gate });
    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    crew_call_reserve(&taking, m.lab[1].q, NULL, 0, 100, 10);
    memory_limiter_reached(gate, 1);
    mall_turn_to(&m, 10);
    cr_expect_eq(crew_call_answer(&taking), DUE_ETIMEDOUT);
    crew_call_close(&closing, m.lab[1].q, DUE_CLOSE_DISCARD, DUE_FOREVER);
    while (due_enqueue(m.lab[1].q, &spec, 0, NULL) != DUE_ECLOSED)
        sched_yield();
    crew_call_asleep(&closing); /* until the claim is answered */
    memory_limiter_open(gate);
    cr_expect_eq(crew_call_answer(&closing), 0);
    cr_assert_eq(due_census(m.lab[0].q, DUE_ALL_TOPICS, &census, DUE_S(10)), 0);
    cr_expect(census.ready > 0 && census.leased == 0, "it waits for a lease to end");
    memory_limiter_free(gate);
    mall_close(&m);
}

/* The proxies have ended by then: nobody else would answer what is asked of them. */
MALL_TEST(share, a_close_that_has_drained_it_waits_for_nobody)
{
    struct mall m = mall_make(0);
    due_job job;

    mall_join(&m, (struct lab_options){ .with.store_timeout_ns = DUE_S(600) });
    lab_enqueue(&m.lab[0], "tea", .at_ns = 1);
    mall_turn_to(&m, 1);
    cr_assert_eq(due_dequeue(m.lab[0].q, &job, DUE_S(600)), 0);
    due_job_done(&job);
    cr_expect_eq(due_close(m.lab[0].q, DUE_CLOSE_DRAIN, DUE_FOREVER), 0);
    mall_close(&m);
}

Test(share, a_store_that_does_not_know_of_it_is_refused, .timeout = 20)
{
    struct memory_disk *disk = memory_disk_new(NULL);
    due_store *store = memory_store_new(disk);
    struct due_shared_verbs shared = *store->verbs->shared;
    struct due_store_verbs verbs = *store->verbs;
    due_options o = { DUE_OPTIONS_INIT, .store = store, .share = DUE_SHARED };
    due_error error;
    due_queue *q;

    store->verbs = &verbs;
    for (int i = 0; i < 2; i++) {
        verbs.shared = i == 0 ? NULL : &shared;
        shared.size--; /* of a version before this one */
        cr_expect_eq(due_open(&q, &o, &error), DUE_ENOTSUP);
        cr_expect_str_eq(error.text, "this store cannot be shared");
    }
    verbs.free(store);
    memory_disk_free(disk);
}
