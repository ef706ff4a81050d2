/* A job that was cancelled while somebody had it, and whose removal a closing queue refuses: it is
 * left to the store, and not tried again. */
#include "lab/shop.h"
#include "lab/take.h"

#define LEASE   10
#define REFUSED 50 /* times that it may be at most, or the test would not end */

struct told {
    struct lab *lab;
    bool turns; /* the clock, each time that something is refused */
    atomic_uint refused;
    atomic_int last;
    atomic_uint discarded;
};

static void on_settled(void *ctx, due_id id, int rc)
{
    struct told *told = ctx;

    (void)id;
    if (rc == 0)
        return;
    atomic_store(&told->last, rc);
    if (atomic_fetch_add(&told->refused, 1) < REFUSED && told->turns)
        lab_advance(told->lab, DUE_S(2));
}

static void on_discard(void *ctx, const due_job *job)
{
    struct told *told = ctx;

    (void)job;
    atomic_fetch_add(&told->discarded, 1);
}

/* Its lease ends while the store is away, and then the queue closes. */
static due_id revoke_and_close(struct shop *s, bool held)
{
    due_job job;
    due_id id = lab_enqueue(&s->lab, "tea", .at_ns = 1);

    lab_turn_to(&s->lab, 1);
    cr_assert_eq(take_leased(s->lab.q, &job, LEASE, DUE_S(30)), 0);
    cr_expect_eq(due_cancel(s->lab.q, id, NULL), DUE_EBUSY);
    shop_fail(s, MEMORY_READY, MEMORY_ALWAYS, MEMORY_AWAY);
    shop_fail(s, MEMORY_COMMIT, MEMORY_ALWAYS, MEMORY_AWAY);
    if (!held)
        due_job_done(&job);
    lab_advance(&s->lab, LEASE);
    due_poll(s->lab.q, NULL);
    int rc = due_close(s->lab.q, DUE_CLOSE_DISCARD, DUE_MS(20));
    cr_expect(rc == 0 || rc == DUE_ETIMEDOUT, "%s", due_error_name(rc));
    cr_expect_eq(due_close(s->lab.q, DUE_CLOSE_DISCARD, DUE_S(30)), 0);
    if (held)
        due_job_done(&job);
    return id;
}

/* @turns: somebody turns the clock by more than the time after which it would be tried again,
 * whenever it was refused; or a while later. */
static void check(bool turns, bool held, enum due_confirm confirm)
{
    struct told told = { .turns = turns };
    struct shop s =
        shop_make(.start_ns = 0, .with.store_timeout_ns = DUE_MS(50), .with.confirm = confirm,
                  .with.ctx = &told, .with.on_settled = on_settled, .with.on_discard = on_discard);

    told.lab = &s.lab;
    due_id id = revoke_and_close(&s, held);
    for (int i = 0; i < 5; i++) {
        lab_advance(&s.lab, DUE_S(2));
        due_poll(s.lab.q, NULL);
    }
    cr_expect_eq(atomic_load(&told.refused), 1u, "%u", atomic_load(&told.refused));
    cr_expect_eq(atomic_load(&told.last), DUE_ECLOSED);
    cr_expect_eq(atomic_load(&told.discarded), 0u, "the store has it");
    cr_expect(memory_disk_find(s.disk, id, NULL));
    struct due_stats now = lab_stats(&s.lab);
    cr_expect_eq(now.waiting + now.leased + now.ready + now.lent, 0u);
    shop_close(&s);
}

Test(stored_revoked, is_refused_once_by_a_queue_that_closes_and_left_to_its_store, .timeout = 60)
{
    for (int held = 0; held < 2; held++) {
        check(false, held, DUE_CONFIRM_SYNC);
        check(false, held, DUE_CONFIRM_ASYNC);
    }
}

Test(stored_revoked, does_not_keep_a_queue_from_closing_while_the_clock_is_turned, .timeout = 60)
{
    for (int held = 0; held < 2; held++) {
        check(true, held, DUE_CONFIRM_SYNC);
        check(true, held, DUE_CONFIRM_ASYNC);
    }
}
