/* A queue with a store, where several things come together: dead jobs that are put back among the
 * dead, a cancel while the store is asked for something else, and room that nobody will give. */
#include "lab/shop.h"
#include "lab/take.h"

static due_job reserve(struct shop *s)
{
    due_job job = { 0 };

    cr_assert_eq(take_leased(s->lab.q, &job, DUE_S(1), 0), 0);
    return job;
}

static due_id put_dead(struct shop *s, const char *text)
{
    due_id id = lab_enqueue(&s->lab, text, .delay_ns = 0);
    due_job job = reserve(s);

    cr_assert_eq(due_bury(&job, text), 0);
    lab_advance(&s->lab, 1);
    return id;
}

static bool is_dead(struct shop *s, due_id id)
{
    due_record r;

    return memory_disk_find(s->disk, id, &r) && r.cause != 0;
}

/* What goes is sent by nobody in particular. */
static void until_dead(struct shop *s, uint64_t n)
{
    for (int i = 0; i < 2000 && (lab_stats(&s->lab).dead != n || memory_disk_jobs(s->disk) != n);
         i++)
        crew_sleep(DUE_MS(1));
    cr_assert_eq(lab_stats(&s->lab).dead, n);
}

/* ---- The order of the dead ---- */

enum touched { CHANGED, NOT_KICKED };

static void check_order(enum touched how)
{
    struct shop s = shop_make(.start_ns = 5, .with.dead_max = 2);
    due_id first = put_dead(&s, "first");
    due_id second = put_dead(&s, "second");

    if (how == CHANGED) {
        cr_expect_eq(due_update(s.lab.q, first, "mended", 6), 0);
    } else {
        shop_fail(&s, MEMORY_COMMIT, 1, MEMORY_FULL);
        cr_expect_eq(due_kick(s.lab.q, first), DUE_ENOSPC);
    }
    due_id third = put_dead(&s, "third");
    until_dead(&s, 2);
    cr_expect(!is_dead(&s, first), "the oldest goes");
    cr_expect(is_dead(&s, second));
    cr_expect(is_dead(&s, third));
    shop_close(&s);
}

Test(stored_edges, a_dead_job_that_was_changed_is_as_old_as_it_was, .timeout = 60)
{
    check_order(CHANGED);
}

Test(stored_edges, a_dead_job_that_could_not_be_kicked_is_as_old_as_it_was, .timeout = 60)
{
    check_order(NOT_KICKED);
}

/* ---- Cancelled while it is being buried ---- */

static int bury_it(void *job)
{
    return due_bury(job, "why");
}

/* The store refuses the burial: its holder still has it, and answers otherwise. */
Test(stored_edges, cancelled_during_a_burial_that_is_refused_it_goes_with_the_next_answer,
     .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 5);
    struct memory_limiter *limiter = memory_limiter_new(s.disk);
    struct crew_thread burier;
    due_id id = lab_enqueue(&s.lab, "tea", .delay_ns = 0);
    due_job job = reserve(&s);

    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_COMMIT, .kind = MEMORY_BLOCK, .limiter = limiter });
    shop_fail(&s, MEMORY_COMMIT, 1, MEMORY_FULL);
    crew_go(&burier, bury_it, &job);
    memory_limiter_reached(limiter, 1);
    cr_expect_eq(due_cancel(s.lab.q, id, NULL), DUE_EBUSY);
    memory_limiter_open(limiter);
    cr_expect_eq(crew_join(&burier), DUE_ENOSPC);
    cr_expect_eq(due_nack(&job, 0), 0);
    struct due_stats now = lab_stats(&s.lab);
    cr_expect_eq(now.cancelled, 1u);
    cr_expect_eq(now.buried, 0u);
    cr_expect_eq(now.dead + now.waiting + now.leased, 0u);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    memory_limiter_free(limiter);
    shop_close(&s);
}

/* ---- Room ---- */

static int put_one_more(void *arg)
{
    due_spec spec = { DUE_SPEC_INIT, .data = "2", .len = 1 };
    struct shop *s = arg;

    return due_enqueue(s->lab.q, &spec, DUE_S(1000), NULL);
}

Test(stored_edges, who_waits_for_room_is_told_when_somebody_else_owns_the_jobs, .timeout = 20)
{
    struct shop s = shop_make(.start_ns = 5, .with.capacity = 1);
    struct crew_thread producer;
    due_id id = lab_enqueue(&s.lab, "1", .delay_ns = 0);

    crew_go(&producer, put_one_more, &s);
    crew_sleep(DUE_MS(20)); /* it may wait by then, or come later: the answer is the same */
    memory_disk_fence(s.disk);
    cr_expect_eq(due_cancel(s.lab.q, id, NULL), DUE_EFENCED);
    cr_expect_eq(crew_join(&producer), DUE_EFENCED);
    shop_close(&s);
}

/* ---- What a closed queue knows ---- */

Test(stored_edges, a_closed_queue_says_so_of_what_it_has_left_to_its_store, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 5);
    due_spec spec = { DUE_SPEC_INIT, .priority = 5 };
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10, .more = EXTRA(.key = "k", .key_len = 1));
    due_info info;
    int64_t ns;
    char byte;
    int rc = 1;

    cr_assert_eq(due_close(s.lab.q, DUE_CLOSE_DISCARD, DUE_S(30)), 0);
    cr_expect_eq(due_cancel(s.lab.q, id, NULL), DUE_ECLOSED);
    cr_expect_eq(due_cancel_batch(s.lab.q, &id, 1, &rc), 0);
    cr_expect_eq(rc, DUE_ECLOSED);
    cr_expect_eq(due_reschedule(s.lab.q, id, 20), DUE_ECLOSED);
    cr_expect_eq(due_promote(s.lab.q, id), DUE_ECLOSED);
    cr_expect_eq(due_update(s.lab.q, id, "x", 1), DUE_ECLOSED);
    cr_expect_eq(due_amend(s.lab.q, id, &spec, DUE_SET_PRIORITY), DUE_ECLOSED);
    cr_expect_eq(due_kick(s.lab.q, id), DUE_ECLOSED);
    cr_expect_eq(due_find(s.lab.q, id, &info), DUE_ECLOSED);
    cr_expect_eq(due_remaining(s.lab.q, id, &ns), DUE_ECLOSED);
    cr_expect_eq(due_read(s.lab.q, id, &byte, 1, NULL), DUE_ECLOSED);
    cr_expect_eq(due_id_of_key(s.lab.q, "k", 1, &id), DUE_ECLOSED);
    cr_expect_eq(due_cancel_key(s.lab.q, "k", 1, NULL), DUE_ECLOSED);
    shop_close(&s);
}
