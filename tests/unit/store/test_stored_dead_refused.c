/* Stored jobs that die while the store is full, in doubt, or has lost something. */
#include "lab/redis/stored_both.h"
#include "lab/take.h"

static const due_retry twice = { .kind = DUE_RETRY_FIXED, .attempts_max = 2, .delay_ns = 50 };

/* ---- What the store refuses, or loses ---- */

BOTH_TEST(stored_dead, are_put_again_when_the_store_has_lost_them)
{
    struct shop s = shop_new(where, AT(10));
    due_id id = lab_enqueue(&s.lab, "dead", .delay_ns = 0);

    due_job job = reserve(&s);
    cr_expect_eq(due_bury(&job, "why"), 0);
    lab_enqueue(&s.lab, "alive", .delay_ns = 1);
    shop_lose(&s);
    lab_enqueue(&s.lab, "new", .delay_ns = 2);
    until_stored(&s, 3);
    shop_crash(&s, AT(10));
    due_dead dead = only_dead(&s);
    cr_expect(due_id_equal(dead.id, id));
    cr_expect_str_eq(dead.reason, "why");
    lab_turn_to(&s.lab, 100);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "alive new");
    shop_close(&s);
}

/* Without memory for the grave nothing is sent to the store; it dies when somebody wants it. */
BOTH_TEST(stored_dead, are_not_buried_without_memory_but_a_second_later)
{
    struct shop s = shop_new(where, AT(DUE_S(10)));
    const due_retry once = { .kind = DUE_RETRY_FIXED, .attempts_max = 1 };

    lab_enqueue(&s.lab, "tea", .more = EXTRA(.retry = &once));
    due_job job = reserve(&s);
    due_job_done(&job);
    struct flaky *memory = &s.lab.state->memory;
    flaky_fail_in(memory, 0);
    memory->fail_on = true;
    lab_advance(&s.lab, LEASE); /* its only attempt has failed */
    due_poll(s.lab.q, NULL);
    cr_expect_eq(try_reserve(&s), DUE_EAGAIN);
    cr_expect_eq(lab_stats(&s.lab).dead, 0u);
    lab_advance(&s.lab, DUE_S(1));
    cr_expect_eq(try_reserve(&s), DUE_ENOMEM);
    cr_expect_eq(lab_stats(&s.lab).dead, 0u);
    memory->fail_on = false;
    memory->fail_at = FLAKY_NEVER;
    for (int i = 0; i < 200 && lab_stats(&s.lab).dead == 0; i++) {
        lab_advance(&s.lab, DUE_S(1));
        cr_expect_eq(try_reserve(&s), DUE_EAGAIN);
    }
    shop_crash(&s, AT(DUE_S(1000)));
    cr_expect_eq(only_dead(&s).cause, DUE_CAUSE_ATTEMPTS);
    cr_expect_eq(only_dead(&s).failures, 1u);
    shop_close(&s);
}

BOTH_TEST(stored_dead, are_not_buried_by_a_full_store_but_a_second_later)
{
    struct shop s = shop_new(where, AT(DUE_S(10)));
    const due_retry once = { .kind = DUE_RETRY_FIXED, .attempts_max = 1 };

    lab_enqueue(&s.lab, "tea", .more = EXTRA(.retry = &once));
    due_job job = reserve(&s);
    due_job_done(&job);
    shop_fill(&s, true);
    lab_advance(&s.lab, LEASE); /* its only attempt has failed */
    for (int i = 0; i < 3; i++) {
        due_poll(s.lab.q, NULL);
        crew_sleep(DUE_MS(50));
        cr_expect_eq(try_reserve(&s), DUE_EAGAIN);
        cr_expect_eq(lab_stats(&s.lab).dead, 0u);
        uint64_t settled = lab_stats(&s.lab).settled;
        crew_sleep(DUE_MS(100));
        due_poll(s.lab.q, NULL);
        cr_expect_leq(lab_stats(&s.lab).settled, settled + 1, "it is tried all the time");
        lab_advance(&s.lab, DUE_S(1));
    }
    shop_fill(&s, false);
    for (int i = 0; i < 200 && lab_stats(&s.lab).dead == 0; i++) {
        lab_advance(&s.lab, DUE_S(1));
        cr_expect_eq(try_reserve(&s), DUE_EAGAIN);
    }
    due_dead dead = only_dead(&s);
    cr_expect_eq(dead.cause, DUE_CAUSE_ATTEMPTS);
    cr_expect_eq(dead.attempts, 1u);
    cr_expect_eq(dead.failures, 1u, "it has failed once");
    shop_close(&s);
}

/* What cannot be buried does not keep others from being taken. */
BOTH_TEST(stored_dead, do_not_block_what_is_behind_them_in_a_full_store)
{
    struct shop s = shop_new(where, AT(DUE_S(10)));

    lab_enqueue(&s.lab, "expired", .delay_ns = 0, .more = EXTRA(.ttl_ns = 5));
    lab_enqueue(&s.lab, "good", .delay_ns = 1);
    lab_enqueue(&s.lab, "fine", .delay_ns = 2);
    lab_advance(&s.lab, 10);
    shop_fill(&s, true);
    cr_expect_str_eq(lab_dequeue(&s.lab), "good");
    due_job job = reserve(&s);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(shop_stored(&s), 1u);
    cr_expect_eq(try_reserve(&s), DUE_EAGAIN);
    shop_fill(&s, false);
    for (int i = 0; i < 200 && lab_stats(&s.lab).dead == 0; i++) {
        lab_advance(&s.lab, DUE_S(1));
        cr_expect_eq(try_reserve(&s), DUE_EAGAIN);
    }
    due_dead dead = only_dead(&s);
    cr_expect_eq(dead.cause, DUE_CAUSE_EXPIRED);
    cr_expect_eq(dead.failures, 0u, "nobody has failed");
    shop_close(&s);
}

BOTH_TEST(stored_dead, stay_dead_if_a_full_store_refuses_the_kick)
{
    struct shop s = shop_new(where, AT(10));
    due_id id = lab_enqueue(&s.lab, "tea", .delay_ns = 0);

    due_job job = reserve(&s);
    cr_expect_eq(due_bury(&job, "why"), 0);
    shop_fill(&s, true);
    cr_expect_eq(due_kick(s.lab.q, id), DUE_ENOSPC);
    cr_expect_eq(lab_stats(&s.lab).dead, 1u);
    cr_expect_eq(try_reserve(&s), DUE_EAGAIN);
    shop_fill(&s, false);
    cr_expect_eq(due_kick(s.lab.q, id), 0);
    job = reserve(&s);
    cr_expect_eq(due_ack(&job), 0);
    shop_close(&s);
}

BOTH_TEST(stored_dead, are_cleared_from_a_full_store)
{
    struct shop s = shop_new(where, AT(10, .with.dead_keep_ns = 100));
    uint64_t n;

    for (int i = 0; i < 4; i++) {
        lab_enqueue(&s.lab, "x", .delay_ns = 0);
        due_job job = reserve(&s);
        cr_expect_eq(due_bury(&job, NULL), 0);
        lab_advance(&s.lab, i == 1 ? 50 : 0);
    }
    shop_fill(&s, true);
    lab_turn_to(&s.lab, 110);
    due_poll(s.lab.q, NULL);
    until_stored(&s, 2);
    cr_expect_eq(due_clear_dead(s.lab.q, DUE_ALL_TOPICS, &n), 0);
    cr_expect_eq(n, 2u);
    cr_expect_eq(shop_stored(&s), 0u);
    shop_fill(&s, false);
    shop_close(&s);
}

BOTH_TEST(stored_dead, are_kept_by_a_queue_that_does_not_wait)
{
    struct shop s = shop_new(where, AT(10, .with.confirm = DUE_CONFIRM_ASYNC));
    due_id id = lab_enqueue(&s.lab, "tea", .delay_ns = 0);

    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    due_job job = reserve(&s);
    cr_expect_eq(due_bury(&job, "why"), 0);
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    until_dead(&s, 1);
    shop_crash(&s, AT(20, .with.confirm = DUE_CONFIRM_ASYNC));
    cr_expect_str_eq(only_dead(&s).reason, "why");
    cr_expect_eq(due_kick(s.lab.q, id), 0);
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    cr_expect_eq(lab_stats(&s.lab).dead, 0u);
    shop_crash(&s, AT(20));
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "tea");
    shop_close(&s);
}

/* ---- In memory only: just the last changes are lost, or in doubt ---- */

Test(stored_dead, a_burial_or_a_kick_that_was_lost_is_made_again, .timeout = 60)
{
    for (int kicked = 0; kicked < 2; kicked++) {
        struct shop s = shop_new(IN_MEMORY, AT(10));
        due_id id = lab_enqueue(&s.lab, "tea", .delay_ns = 0);
        due_record r;

        due_job job = reserve(&s);
        cr_expect_eq(due_bury(&job, "why"), 0);
        if (kicked)
            cr_expect_eq(due_kick(s.lab.q, id), 0);
        memory_disk_lose(s.disk, 1);
        cr_assert(memory_disk_find(s.disk, id, &r));
        cr_expect_eq(r.cause != 0, kicked);
        lab_enqueue(&s.lab, "new", .delay_ns = 5);
        for (int i = 0; i < 3000 && memory_disk_find(s.disk, id, &r) && (r.cause != 0) == kicked;
             i++)
            crew_sleep(DUE_MS(5));
        cr_expect_eq(r.cause == 0, kicked);
        shop_crash(&s, AT(100));
        cr_expect_eq(lab_stats(&s.lab).dead, kicked ? 0u : 1u);
        cr_expect_str_eq(lab_dequeue_all(&s.lab), kicked ? "tea new" : "new");
        shop_close(&s);
    }
}

/* A dead job whose kick waits when the loss is noticed comes into the store as it was there. */
Test(stored_dead, a_kick_that_is_refused_after_a_loss_leaves_it_dead_in_the_store, .timeout = 60)
{
    struct shop s = shop_new(IN_MEMORY, AT(10));
    due_id id = lab_enqueue(&s.lab, "tea", .delay_ns = 0);
    due_record r = { .cause = 0 };

    due_job job = reserve(&s);
    cr_expect_eq(due_bury(&job, "why"), 0);
    memory_disk_lose(s.disk, SIZE_MAX);
    shop_fill(&s, true);
    cr_expect_eq(due_kick(s.lab.q, id), DUE_ENOSPC);
    shop_fill(&s, false);
    for (int i = 0; i < 3000 && !memory_disk_find(s.disk, id, &r); i++)
        crew_sleep(DUE_MS(5));
    cr_expect_neq((int)r.cause, 0);
    shop_crash(&s, AT(100));
    cr_expect_eq(lab_stats(&s.lab).dead, 1u);
    shop_close(&s);
}

Test(stored_dead, a_clear_that_is_refused_says_so_and_leaves_them_dead, .timeout = 60)
{
    struct shop s = shop_new(IN_MEMORY, AT(10));
    uint64_t n = 77;

    for (int i = 0; i < 3; i++) {
        lab_enqueue(&s.lab, "tea", .delay_ns = 0);
        due_job job = reserve(&s);
        cr_expect_eq(due_bury(&job, NULL), 0);
    }
    memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                       .times = MEMORY_ALWAYS,
                                                       .kind = MEMORY_ANSWER,
                                                       .answer = DUE_EACCES });
    cr_expect_eq(due_clear_dead(s.lab.q, DUE_ALL_TOPICS, &n), DUE_EACCES);
    cr_expect_eq(n, 77u, "nothing was cleared, so nothing is said");
    cr_expect_eq(lab_stats(&s.lab).dead, 3u);
    memory_store_forgive(s.store);
    cr_expect_eq(due_clear_dead(s.lab.q, DUE_ALL_TOPICS, &n), 0);
    cr_expect_eq(n, 3u);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    shop_close(&s);
}

Test(stored_dead, a_burial_in_doubt_is_seen_through, .timeout = 60)
{
    for (int landed = 0; landed < 2; landed++) {
        struct shop s = shop_new(IN_MEMORY, AT(10, .with.store_timeout_ns = DUE_MS(50)));

        lab_enqueue(&s.lab, "tea", .delay_ns = 0);
        due_job job = reserve(&s);
        memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                           .times = MEMORY_ALWAYS,
                                                           .kind = landed ? MEMORY_DOUBT_LANDED
                                                                          : MEMORY_DOUBT_NOT });
        cr_expect_eq(due_bury(&job, "why"), DUE_EINDOUBT);
        memory_store_forgive(s.store);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        until_dead(&s, 1);
        shop_crash(&s, AT(10));
        cr_expect_str_eq(only_dead(&s).reason, "why");
        shop_close(&s);
    }
}

/* Whoever would have got it finds that its time is over, and is not to have it. */
Test(stored_dead, one_that_expires_in_doubt_is_handed_to_nobody, .timeout = 60)
{
    for (int run = 0; run < 4; run++) {
        struct shop s = shop_new(IN_MEMORY, AT(10, .with.store_timeout_ns = DUE_MS(50)));
        struct crew_call call;

        lab_enqueue(&s.lab, "tea", .more = EXTRA(.ttl_ns = 5));
        lab_turn_to(&s.lab, 20);
        memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                           .times = MEMORY_ALWAYS,
                                                           .kind = run % 2 ? MEMORY_DOUBT_LANDED
                                                                           : MEMORY_DOUBT_NOT });
        if (run < 2)
            crew_call_dequeue(&call, s.lab.q, 5);
        else
            crew_call_reserve(&call, s.lab.q, NULL, 0, LEASE, 5);
        crew_sleep(
            DUE_MS(200)); /* so that it has given up waiting; if it has not this shows less */
        memory_store_forgive(s.store);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        until_dead(&s, 1);
        lab_turn_to(&s.lab, 25);
        int rc = crew_call_answer(&call);
        cr_expect_eq(rc, DUE_ETIMEDOUT, "%s", due_error_name(rc));
        cr_expect_eq(try_reserve(&s), DUE_EAGAIN);
        cr_expect_eq(lab_stats(&s.lab).waiting, 0u);
        cr_expect_eq(lab_stats(&s.lab).ready, 0u);
        shop_crash(&s, AT(20));
        cr_expect_eq(only_dead(&s).cause, DUE_CAUSE_EXPIRED);
        cr_expect_eq(try_reserve(&s), DUE_EAGAIN);
        shop_close(&s);
    }
}

/* An attempt that is in doubt is not handed out, and counted at most once. */
Test(stored_attempts, in_doubt_are_not_handed_out_twice, .timeout = 60)
{
    for (int landed = 0; landed < 2; landed++) {
        struct shop s = shop_new(IN_MEMORY, AT(10, .with.store_timeout_ns = DUE_MS(50)));
        due_job job;

        lab_enqueue(&s.lab, "tea", .more = EXTRA(.retry = &twice));
        memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                           .times = MEMORY_ALWAYS,
                                                           .kind = landed ? MEMORY_DOUBT_LANDED
                                                                          : MEMORY_DOUBT_NOT });
        cr_expect_eq(take_leased(s.lab.q, &job, LEASE, 1), DUE_EINDOUBT);
        memory_store_forgive(s.store);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        for (int i = 0; i < 3000 && lab_stats(&s.lab).waiting == 0; i++)
            crew_sleep(DUE_MS(5));
        job = reserve(&s);
        cr_expect_eq(job.attempts, 1u);
        cr_expect_eq(due_nack(&job, 0), 0);
        job = reserve(&s);
        cr_expect_eq(job.attempts, 2u);
        cr_expect_eq(due_ack(&job), 0);
        shop_close(&s);
    }
}

/* ---- Cancelled on the way to the grave ---- */

static int bury_it(void *job)
{
    return due_bury(job, "why");
}

/* The cancel finds that somebody has the job, and is as good as its word. */
Test(stored_dead, one_that_is_cancelled_while_it_is_buried_goes, .timeout = 60)
{
    struct shop s = shop_new(IN_MEMORY, AT(10));
    struct memory_limiter *limiter = memory_limiter_new(s.disk);
    struct crew_thread burier;
    due_id id = lab_enqueue(&s.lab, "tea", .more = EXTRA(.key = "k", .key_len = 1));

    due_job job = reserve(&s);
    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_COMMIT, .kind = MEMORY_BLOCK, .limiter = limiter });
    crew_go(&burier, bury_it, &job);
    memory_limiter_reached(limiter, 1);
    cr_expect_eq(due_cancel(s.lab.q, id, NULL), DUE_EBUSY);
    memory_limiter_open(limiter);
    cr_expect_eq(crew_join(&burier), 0);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    for (int i = 0; i < 1000 && lab_stats(&s.lab).cancelled == 0; i++)
        crew_sleep(DUE_MS(5));
    struct due_stats now = lab_stats(&s.lab);
    cr_expect_eq(now.cancelled, 1u);
    cr_expect_eq(now.buried, 1u);
    cr_expect_eq(now.dead, 0u);
    cr_expect_eq(due_kick(s.lab.q, id), DUE_ENOENT);
    lab_enqueue(&s.lab, "milk", .more = EXTRA(.key = "k", .key_len = 1));
    until_stored(&s, 1);
    memory_limiter_free(limiter);
    shop_close(&s);
}
