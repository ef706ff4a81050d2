/* When the keeper of a pool looks, to the nanosecond: it is read in the pool, when nobody does
 * anything any more. */
#include "api/ack.h"
#include "os/atomic.h"
#include "lab/shop.h"
#include "lab/take.h"
#include "lab/workers_lab.h"
#include "workers/pool.h"

#define LEASE 101 /* its half is not that of 100 */

/* When the keeper looks next. */
static int64_t looks(const struct desk *desk)
{
    crew_until_others_asleep();
    return due__load_seq(&desk->pool->watch_ns);
}

/* A pool that has had nothing to do for long; it is 1000. */
#define keeper_open(lab, threads, ...) \
    keeper_open_with((lab), (threads), \
                     &(due_workers_options){ DUE_WORKERS_INIT, .lease_ns = LEASE, __VA_ARGS__ })

static struct desk keeper_open_with(struct lab *lab, size_t threads,
                                    const due_workers_options *options)
{
    *lab = lab_open();
    struct desk desk = desk_open_on(lab, threads, NULL, 0, options);

    crew_until_others_asleep();
    lab_turn_to(lab, 1000);
    cr_expect_eq(looks(&desk), DUE_FOREVER);
    return desk;
}

/* At its beginning it looks once more. */
LAB_TEST(keeper, of_an_idle_pool_sleeps_without_end)
{
    struct lab lab = lab_open(.start_ns = 1000);
    struct desk desk = desk_open_with(&lab, 3, .lease_ns = LEASE);

    cr_expect_eq(looks(&desk), 1050);
    lab_turn_to(&lab, 1049);
    cr_expect_eq(looks(&desk), 1050);
    lab_turn_to(&lab, 1050);
    cr_expect_eq(looks(&desk), DUE_FOREVER);
    lab_advance(&lab, 10 * LEASE);
    cr_expect_eq(looks(&desk), DUE_FOREVER);
    desk_close(&desk);
    lab_close(&lab);
}

/* Whoever is the worker. */
LAB_TEST(keeper, looks_when_half_of_the_lease_of_a_handler_is_over)
{
    for (unsigned n = 1; n <= 3; n++) {
        struct lab lab;
        struct desk desk = keeper_open(&lab, n, .extend_max_ns = 0);
        int64_t began[3];

        for (unsigned i = 0; i < n; i++) {
            began[i] = 1000 + (int64_t)i * 10;
            lab_enqueue(&lab, "tea", .delay_ns = 0);
            desk_until_begun(&desk);
            crew_until_others_asleep();
            lab_advance(&lab, 10);
        }
        for (unsigned round = 0; round < 3; round++)
            for (unsigned i = 0; i < n; i++) {
                began[i] += 51;
                cr_expect_eq(looks(&desk), began[i], "%u of %u", i, n);
                lab_turn_to(&lab, began[i] - 1);
                cr_expect_eq(looks(&desk), began[i]);
                cr_expect_eq(desk_stats(&desk).extended, round * n + i, "too soon");
                lab_turn_to(&lab, began[i]);
                crew_until_others_asleep();
                cr_expect_eq(desk_stats(&desk).extended, round * n + i + 1);
            }
        for (unsigned i = 0; i < n; i++)
            desk_let_go(&desk, due_answer_ack());
        desk_close(&desk);
        lab_close(&lab);
    }
}

/* So that jobs which come one by one need not ring it each time; then it sleeps without end. */
LAB_TEST(keeper, that_was_rung_goes_on_looking_for_half_a_lease)
{
    struct lab lab;
    struct desk desk = keeper_open(&lab, 2, .extend_max_ns = 0);

    for (int64_t at = 1000; at < 2000; at += 200) {
        lab_turn_to(&lab, at);
        cr_expect_eq(looks(&desk), DUE_FOREVER);
        due__keep_events(desk.pool, at, 20);
        cr_expect_eq(looks(&desk), at + 50);
        lab_turn_to(&lab, at + 49);
        cr_expect_eq(looks(&desk), at + 50);
        lab_turn_to(&lab, at + 50);
        cr_expect_eq(looks(&desk), DUE_FOREVER);
    }
    desk_close(&desk);
    lab_close(&lab);
}

/* When it has looked once more for them. */
LAB_TEST(keeper, sleeps_without_end_when_the_handlers_have_returned)
{
    struct lab lab;
    struct desk desk = keeper_open(&lab, 2, .extend_max_ns = 0);

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    cr_expect_eq(looks(&desk), 1051);
    lab_turn_to(&lab, 1040);
    desk_let_go(&desk, due_answer_ack());
    WAIT_UNTIL(desk_stats(&desk).idle == 2);
    cr_expect_eq(looks(&desk), 1051);
    lab_turn_to(&lab, 1051);
    cr_expect_eq(looks(&desk), DUE_FOREVER);
    cr_expect_eq(desk_stats(&desk).extended, 0u);
    desk_close(&desk);
    lab_close(&lab);
}

/* Who is first tells the others: the keeper comes to nothing, since we have a worker's lock. */
LAB_TEST(keeper, is_rung_once_by_those_who_need_it_by_the_same_time)
{
    struct lab lab;
    struct desk desk = keeper_open(&lab, 1, .extend_max_ns = 0);
    struct due_workers *pool = desk.pool;
    struct due__bell *bell = &pool->rest->bell;

    cr_expect_eq(looks(&desk), DUE_FOREVER);
    due__lock_acquire(&pool->worker[0].lock);
    due__keep_events(pool, 1000, 40);
    cr_expect_eq(due__load_seq(&pool->watch_ns), 1040);
    crew_until_others_asleep();
    due__keep_events(pool, 1000, 40);
    due__keep_events(pool, 1001, 40);
    cr_expect(!due__bell_take(bell), "it is rung again, for nothing");
    cr_expect_eq(due__load_seq(&pool->watch_ns), 1040);
    due__keep_events(pool, 1000, 39);
    cr_expect_eq(due__load_seq(&pool->watch_ns), 1039);
    cr_expect(due__bell_take(bell), "it would come too late");
    due__lock_release(&pool->worker[0].lock);
    desk_close(&desk);
    lab_close(&lab);
}

/* At most until its limit, and then the handler is told. */
LAB_TEST(keeper, extends_no_further_than_it_may)
{
    struct lab lab;
    struct desk desk = keeper_open(&lab, 1, .extend_max_ns = 3 * LEASE);

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    const int64_t until = 1000 + 3 * LEASE;
    unsigned extended = 0;
    int64_t next;
    while ((next = looks(&desk)) != DUE_FOREVER) {
        cr_assert_lt(next, until);
        cr_expect_eq(due_job_stopping(desk.state->at), 0);
        cr_expect_eq(desk_stats(&desk).extended, extended);
        lab_turn_to(&lab, next);
        crew_until_others_asleep();
        extended = (unsigned)desk_stats(&desk).extended;
        cr_expect_eq(due_job_stopping(desk.state->at), 0);
    }
    cr_expect_eq(extended, 4u);
    lab_turn_to(&lab, until - 1);
    cr_expect_eq(due_job_stopping(desk.state->at), 0);
    lab_turn_to(&lab, until);
    cr_expect_eq(due_job_stopping(desk.state->at), 1);
    cr_expect_eq(looks(&desk), DUE_FOREVER);
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    desk_let_go(&desk, due_answer_ack());
    desk_close(&desk);
    lab_close(&lab);
}

static int stop_for_a_while(void *pool)
{
    return due_workers_stop(pool, 20);
}

/* Who waits no longer for the handlers wants their jobs to come again. */
LAB_TEST(keeper, extends_nothing_for_a_pool_that_is_waited_for_no_longer)
{
    struct lab lab;
    struct desk desk = keeper_open(&lab, 1, .extend_max_ns = 0);
    struct crew_thread stopper;

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    crew_go(&stopper, stop_for_a_while, desk.pool);
    crew_until_asleep(&stopper);
    cr_expect_eq(looks(&desk), 1051);
    lab_turn_to(&lab, 1019);
    crew_until_asleep(&stopper);
    cr_expect(!atomic_load(&stopper.back));
    lab_turn_to(&lab, 1020);
    cr_expect_eq(crew_join(&stopper), DUE_ETIMEDOUT);
    lab_turn_to(&lab, 1051);
    cr_expect_eq(looks(&desk), DUE_FOREVER);
    cr_expect_eq(desk_stats(&desk).extended, 0u);
    lab_turn_to(&lab, 1000 + LEASE - 1);
    cr_expect_null(lab_dequeue(&lab));
    lab_turn_to(&lab, 1000 + LEASE);
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    desk_let_go(&desk, due_answer_ack());
    desk_close(&desk);
    lab_close(&lab);
}

/* A job that the test has reserved stands with the worker, which is in a handler. */
static void stand(struct lab *lab, struct due__worker *w)
{
    due_job job;

    lab_enqueue(lab, "cake", .delay_ns = 0);
    cr_assert_eq(take_leased(lab->q, &job, DUE_S(1), 0), 0);
    due__lock_acquire(&w->lock);
    cr_assert_eq(w->count, 0u);
    w->at = 0;
    w->ahead[0] = job;
    due__store_seq(&w->count, 1);
    due__lock_release(&w->lock);
}

/* An eighth of a lease, from when the keeper sees it first, or sees that one was begun. */
LAB_TEST(keeper, gives_back_what_nobody_begins_when_its_patience_is_over)
{
    struct lab lab;
    struct desk desk = keeper_open(&lab, 1, .extend_max_ns = 0);
    struct due__worker *w = &desk.pool->worker[0];
    static const int64_t times[] = { 1010, 1060, 1130 }; /* the lease of "tea" ends later */
    uint64_t back = 0;

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    for (int i = 0; i < 3; i++) {
        int64_t at = times[i];

        lab_turn_to(&lab, at);
        crew_until_others_asleep();
        stand(&lab, w);
        due__keep_events(desk.pool, at, 0);
        int64_t over = at + LEASE / 8;
        cr_expect_eq(looks(&desk), over);
        if (i == 1) { /* as if somebody had begun one that stood before it */
            lab_turn_to(&lab, at + 5);
            due__lock_acquire(&w->lock);
            w->taken++;
            due__lock_release(&w->lock);
            due__keep_events(desk.pool, at + 5, 0);
            over += 5;
            crew_until_others_asleep();
        }
        lab_turn_to(&lab, over - 1);
        due__keep_events(desk.pool, over - 1, 0);
        cr_expect_eq(looks(&desk), over, "%jd", (intmax_t)at);
        cr_expect_eq(desk_stats(&desk).ahead, 1u);
        cr_expect_eq(desk_stats(&desk).given_back, back);
        lab_turn_to(&lab, over);
        crew_until_others_asleep();
        cr_expect_eq(desk_stats(&desk).ahead, 0u);
        cr_expect_eq(desk_stats(&desk).given_back, ++back);
        cr_expect_str_eq(lab_dequeue(&lab), "cake");
    }
    desk_let_go(&desk, due_answer_ack());
    desk_close(&desk);
    lab_close(&lab);
}

/* It extends it again when that is nearly over; and a handler does not make it shorter. */
static void extend_by_handler(struct lab *lab, int64_t lease_ns)
{
    struct desk desk = desk_open_with(lab, 1, .lease_ns = LEASE);
    int64_t end = 1000 + (lease_ns > LEASE ? lease_ns : LEASE);

    lab_enqueue(lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    due_job own = *desk.state->at;
    cr_expect_eq(due_extend(&own, lease_ns), 0);
    for (int64_t at = 1001; at < end - LEASE / 2; at += 3 * LEASE) {
        lab_turn_to(lab, at);
        crew_until_others_asleep();
        cr_expect_eq(desk_stats(&desk).extended, 0u);
    }
    lab_turn_to(lab, end - LEASE / 2);
    crew_until_others_asleep();
    cr_expect_eq(desk_stats(&desk).extended, 1u);
    end += LEASE - LEASE / 2;
    own = *desk.state->at;
    cr_expect_eq(due_extend(&own, 1), 0);
    int64_t ends = 0;
    cr_expect_eq(due__lease_end(&own, &ends), 0);
    cr_expect_eq(ends, end, "%jd: %jd", (intmax_t)lease_ns, (intmax_t)ends);
    cr_expect_eq(due_job_stopping(desk.state->at), 0);
    desk_let_go(&desk, due_answer_ack());
    desk_close(&desk);
    cr_expect_eq(lab_stats(lab).acked, 1u);
}

LAB_TEST(keeper, leaves_a_lease_that_its_handler_has_extended_for_longer)
{
    static const int64_t leases[] = { 1, LEASE, LEASE + 1, 10 * LEASE };

    for (size_t i = 0; i < sizeof leases / sizeof leases[0]; i++) {
        struct lab lab = lab_open(.start_ns = 1000);

        extend_by_handler(&lab, leases[i]);
        lab_close(&lab);
        if (lab_proxies == DUE_PROXIES_NEVER) /* there is no stored queue without them */
            continue;
        struct shop shop = shop_make(.start_ns = 1000);
        extend_by_handler(&shop.lab, leases[i]);
        shop_close(&shop);
    }
}
