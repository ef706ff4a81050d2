/* Bytes on their way to the store have a bound, and who waits for room there goes on in turn. */
#include <stdlib.h>

#include "lab/exposition.h"
#include "lab/shop.h"

#define BOUND 100u

static const char bytes[1000];

/* On the wall clock: there the timeout of a call is one for the store, too.  That of the store is
 * longer than any test: who is not rung hangs, and is not just late. */
static struct shop room_make(enum due_confirm confirm)
{
    return shop_new(NULL, (struct lab_options){ .kernel = true,
                                                .with.confirm = confirm,
                                                .with.store_timeout_ns = DUE_S(100),
                                                .with.unsettled_bytes_max = BOUND });
}

/* The store is away, until it is forgiven. */
static void cut_off(struct shop *s)
{
    shop_fail(s, MEMORY_READY, MEMORY_ALWAYS, MEMORY_AWAY);
}

static int put_for(struct shop *s, size_t len, int64_t timeout_ns, due_id *id)
{
    due_spec spec = { DUE_SPEC_INIT, .data = bytes, .len = len, .at_ns = 500 };

    return due_enqueue(s->lab.q, &spec, timeout_ns, id);
}

/* Without patience. */
static int put(struct shop *s, size_t len, due_id *id)
{
    return put_for(s, len, DUE_MS(1), id);
}

/* Jobs that are put in without waiting, and are on their way then. */
static due_id left(struct shop *s, size_t len)
{
    due_id id;

    cr_assert_eq(put(s, len, &id), 0);
    return id;
}

static uint64_t owed(struct shop *s)
{
    return lab_stats(&s->lab).unsettled_bytes;
}

static void call_put(struct shop *s, struct crew_call *c, size_t len, int64_t timeout_ns)
{
    crew_call_enqueue(
        c, s->lab.q,
        (due_spec){ DUE_SPEC_INIT, .data = bytes, .len = len, .priority = 1, .at_ns = 500 },
        timeout_ns);
}

/* All that was accepted is there, and nothing is on its way. */
static void arrive(struct shop *s, size_t jobs)
{
    memory_store_forgive(s->store);
    cr_expect_eq(due_flush(s->lab.q, DUE_S(30)), 0);
    cr_expect_eq(memory_disk_jobs(s->disk), jobs);
    cr_expect_eq(owed(s), 0u);
    shop_close(s);
}

/* ---- The bound ---- */

Test(stored_room, is_bounded_in_bytes_while_the_store_is_away, .timeout = 60)
{
    struct shop s = room_make(DUE_CONFIRM_ASYNC);

    cut_off(&s);
    for (int i = 0; i < 3; i++)
        left(&s, 30);
    cr_expect_eq(put(&s, 30, NULL), DUE_ETIMEDOUT);
    cr_expect_eq(owed(&s), 90u);
    left(&s, 10);
    cr_expect_eq(put(&s, 1, NULL), DUE_ETIMEDOUT);
    left(&s, 0);
    cr_expect_eq(owed(&s), BOUND);
    char *text = exposition_text(s.lab.q);
    cr_expect_eq(exposition_value(text, "due_store_unsettled_bytes{queue=\"queue\"}"), 100);
    free(text);
    arrive(&s, 5);
}

Test(stored_room, is_taken_by_headers_and_keys_too, .timeout = 60)
{
    struct shop s = room_make(DUE_CONFIRM_ASYNC);
    due_spec spec = { DUE_SPEC_INIT, .data = bytes, .len = 10,
                      .more =
                          EXTRA(.headers = bytes, .headers_len = 30, .key = "keys", .key_len = 4),
                      .at_ns = 500 };

    cut_off(&s);
    cr_assert_eq(due_enqueue(s.lab.q, &spec, 0, NULL), 0);
    cr_expect_eq(owed(&s), 44u);
    left(&s, 56);
    cr_expect_eq(put(&s, 1, NULL), DUE_ETIMEDOUT);
    arrive(&s, 2);
}

Test(stored_room, is_had_by_one_larger_job_when_nothing_else_is_under_way, .timeout = 60)
{
    struct shop s = room_make(DUE_CONFIRM_ASYNC);

    cut_off(&s);
    left(&s, 1);
    cr_expect_eq(put(&s, 1000, NULL), DUE_ETIMEDOUT);
    memory_store_forgive(s.store);
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    cut_off(&s);
    left(&s, 1000);
    cr_expect_eq(owed(&s), 1000u);
    cr_expect_eq(put(&s, 1, NULL), DUE_ETIMEDOUT);
    cr_expect_eq(put(&s, 1000, NULL), DUE_ETIMEDOUT);
    arrive(&s, 2);
}

/* A batch takes no more at a time than there is room for. */
Test(stored_room, is_had_by_a_larger_batch_bit_by_bit, .timeout = 60)
{
    struct shop s = room_make(DUE_CONFIRM_ASYNC);
    due_spec specs[10];

    for (size_t i = 0; i < 10; i++)
        specs[i] = (due_spec){ DUE_SPEC_INIT, .data = bytes, .len = 30, .at_ns = 500 };
    cut_off(&s);
    cr_expect_eq(due_enqueue_batch(s.lab.q, specs, 10, DUE_MS(1), NULL), 3);
    cr_expect_eq(owed(&s), 90u);
    memory_store_forgive(s.store);
    cr_expect_eq(due_enqueue_batch(s.lab.q, specs, 10, 0, NULL), 10);
    arrive(&s, 13);
}

/* ---- Who waits ---- */

Test(stored_room, wakes_who_waits_when_a_batch_has_landed, .timeout = 60)
{
    struct shop s = room_make(DUE_CONFIRM_ASYNC);
    struct memory_limiter *limiter = memory_limiter_new(s.disk);
    struct crew_call c[3];

    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_COMMIT, .kind = MEMORY_BLOCK, .limiter = limiter });
    left(&s, BOUND);
    memory_limiter_reached(limiter, 1);
    for (int i = 0; i < 3; i++) {
        call_put(&s, &c[i], 30, DUE_S(100));
        crew_call_asleep(&c[i]);
    }
    cr_expect_eq(owed(&s), BOUND);
    memory_limiter_open(limiter);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(crew_call_answer(&c[i]), 0);
    memory_limiter_free(limiter);
    arrive(&s, 4);
}

/* A large job would wait for ever if small ones went past it. */
Test(stored_room, is_had_in_turn, .timeout = 60)
{
    struct shop s = room_make(DUE_CONFIRM_ASYNC);
    struct crew_call large;
    struct crew_call small;

    cut_off(&s);
    due_id id = left(&s, 50);
    due_id other = left(&s, 30);
    call_put(&s, &large, 90, DUE_S(100));
    crew_call_asleep(&large);
    call_put(&s, &small, 10, DUE_S(100));
    crew_call_asleep(&small);
    cr_expect_eq(owed(&s), 80u, "somebody has room who should wait");
    cr_expect_eq(due_cancel(s.lab.q, id, NULL), 0);
    crew_call_asleep(&small);
    cr_expect_eq(owed(&s), 30u, "somebody has room who should wait");
    cr_expect_eq(due_cancel(s.lab.q, other, NULL), 0);
    cr_expect_eq(crew_call_answer(&large), 0);
    cr_expect_eq(crew_call_answer(&small), 0);
    cr_expect_eq(owed(&s), BOUND);
    arrive(&s, 2);
}

Test(stored_room, is_left_to_the_next_by_who_gives_up, .timeout = 60)
{
    struct shop s = room_make(DUE_CONFIRM_ASYNC);
    struct crew_call large;
    struct crew_call small;

    cut_off(&s);
    left(&s, 80);
    call_put(&s, &large, 90, DUE_MS(50));
    crew_call_asleep(&large);
    call_put(&s, &small, 20, DUE_S(100));
    cr_expect_eq(crew_call_answer(&large), DUE_ETIMEDOUT);
    cr_expect_eq(crew_call_answer(&small), 0);
    cr_expect_eq(owed(&s), BOUND);
    arrive(&s, 2);
}

Test(stored_room, is_waited_for_until_the_queue_closes, .timeout = 60)
{
    struct shop s = shop_make(.with.confirm = DUE_CONFIRM_ASYNC, .with.unsettled_bytes_max = BOUND,
                              .with.store_timeout_ns = DUE_S(100));
    struct crew_call c;

    cut_off(&s);
    left(&s, BOUND);
    call_put(&s, &c, 1, DUE_S(100));
    crew_call_asleep(&c);
    cr_expect_eq(due_close(s.lab.q, DUE_CLOSE_DISCARD, DUE_MS(1)), 0);
    cr_expect_eq(crew_call_answer(&c), DUE_ECLOSED);
    cr_expect_eq(owed(&s), 0u);
    shop_close(&s);
}

/* ---- Giving it back ---- */

Test(stored_room, is_given_back_by_what_is_cancelled_before_it_was_sent, .timeout = 60)
{
    struct shop s = room_make(DUE_CONFIRM_ASYNC);
    due_id ids[4];
    due_job job;

    cut_off(&s);
    for (int i = 0; i < 4; i++)
        ids[i] = left(&s, 25);
    cr_expect_eq(due_cancel(s.lab.q, ids[0], NULL), 0);
    cr_expect_eq(owed(&s), 75u);
    cr_expect_eq(due_cancel(s.lab.q, ids[1], &job), 0);
    cr_expect_eq(owed(&s), 50u);
    due_job_done(&job);
    cr_expect_eq(due_cancel_batch(s.lab.q, ids + 2, 1, NULL), 1);
    cr_expect_eq(owed(&s), 25u);
    cr_expect_eq(due_clear(s.lab.q, DUE_ALL_TOPICS, NULL), 0);
    cr_expect_eq(owed(&s), 0u);
    left(&s, BOUND);
    arrive(&s, 1);
}

Test(stored_room, is_given_back_by_calls_whose_time_is_up, .timeout = 60)
{
    struct shop s = room_make(DUE_CONFIRM_SYNC);
    due_spec specs[3];

    for (size_t i = 0; i < 3; i++)
        specs[i] = (due_spec){ DUE_SPEC_INIT, .data = bytes, .len = 30, .at_ns = 500 };
    cut_off(&s);
    cr_expect_eq(put(&s, 30, NULL), DUE_ETIMEDOUT);
    cr_expect_eq(owed(&s), 0u);
    cr_expect_eq(due_enqueue_batch(s.lab.q, specs, 3, DUE_MS(1), NULL), DUE_ETIMEDOUT);
    cr_expect_eq(owed(&s), 0u);
    arrive(&s, 0);
}

Test(stored_room, is_given_back_by_what_the_store_refuses, .timeout = 60)
{
    for (int async = 0; async < 2; async++) {
        struct shop s = room_make(async ? DUE_CONFIRM_ASYNC : DUE_CONFIRM_SYNC);
        due_id id;

        cr_assert_eq(put_for(&s, 10, 0, &id), 0);
        cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        shop_fail(&s, MEMORY_COMMIT, MEMORY_ALWAYS, MEMORY_FULL);
        cr_expect_eq(put_for(&s, 30, 0, NULL), async ? 0 : DUE_ENOSPC);
        cr_expect_eq(due_update(s.lab.q, id, bytes, 60), async ? 0 : DUE_ENOSPC);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        cr_expect_eq(owed(&s), 0u);
        arrive(&s, 1);
    }
}

Test(stored_room, is_given_back_by_jobs_that_cannot_have_their_key, .timeout = 60)
{
    struct shop s = room_make(DUE_CONFIRM_ASYNC);
    due_spec specs[3];

    for (size_t i = 0; i < 3; i++)
        specs[i] = (due_spec){ DUE_SPEC_INIT, .data = bytes, .len = 9, .at_ns = 500 };
    specs[0].more = EXTRA(.key = "j", .key_len = 1);
    specs[1].more = specs[2].more = EXTRA(.key = "k", .key_len = 1);
    cut_off(&s);
    cr_expect_eq(due_enqueue_batch(s.lab.q, specs, 3, 0, NULL), 2);
    cr_expect_eq(owed(&s), 20u);
    cr_expect_eq(due_enqueue(s.lab.q, &specs[0], 0, NULL), DUE_EEXIST);
    cr_expect_eq(owed(&s), 20u);
    arrive(&s, 2);
}

Test(stored_room, is_given_back_where_there_is_no_memory, .timeout = 60)
{
    struct shop s = room_make(DUE_CONFIRM_SYNC);
    int rc = DUE_ENOMEM;

    cut_off(&s);
    for (size_t n = 0; rc == DUE_ENOMEM; n++) {
        flaky_fail_in(&s.lab.state->memory, n);
        rc = put(&s, 90, NULL);
        s.lab.state->memory.fail_at = FLAKY_NEVER;
        cr_expect_eq(owed(&s), 0u);
    }
    cr_expect_eq(rc, DUE_ETIMEDOUT);
    arrive(&s, 0);
}

/* ---- Updates ---- */

Test(stored_room, is_waited_for_by_updates, .timeout = 60)
{
    struct shop s = shop_make(.with.confirm = DUE_CONFIRM_ASYNC, .with.unsettled_bytes_max = BOUND,
                              .with.store_timeout_ns = DUE_MS(1));
    due_id id = left(&s, 10);
    due_id other = left(&s, 10);

    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    cut_off(&s);
    cr_expect_eq(due_update(s.lab.q, id, bytes, 80), 0);
    cr_expect_eq(owed(&s), 80u);
    cr_expect_eq(put(&s, 30, NULL), DUE_ETIMEDOUT);
    cr_expect_eq(due_update(s.lab.q, other, bytes, 30), DUE_ETIMEDOUT);
    cr_expect_eq(lab_find(&s.lab, other).len, 10u);
    cr_expect_eq(due_update(s.lab.q, other, bytes, 20), 0);
    cr_expect_eq(owed(&s), BOUND);
    memory_store_forgive(s.store);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    cr_expect_eq(lab_find(&s.lab, id).len, 80u);
    cr_expect_eq(lab_find(&s.lab, other).len, 20u);
    arrive(&s, 2);
}

Test(stored_room, is_given_back_by_updates_that_are_given_up, .timeout = 60)
{
    struct shop s =
        shop_make(.with.unsettled_bytes_max = BOUND, .with.store_timeout_ns = DUE_MS(100));
    due_spec spec = { DUE_SPEC_INIT, .data = bytes, .len = 10, .at_ns = 500,
                      .more = EXTRA(.key = "k", .key_len = 1, .on_key = DUE_KEY_REPLACE) };
    due_id id;

    while (due_enqueue(s.lab.q, &spec, 0, &id) != 0)
        ; /* it has little time */
    cut_off(&s);
    cr_expect_eq(due_update(s.lab.q, id, bytes, 60), DUE_ETIMEDOUT);
    cr_expect_eq(owed(&s), 0u);
    spec.len = 60;
    cr_expect_eq(due_enqueue(s.lab.q, &spec, DUE_MS(1), NULL), DUE_ETIMEDOUT);
    cr_expect_eq(owed(&s), 0u);
    cr_expect_eq(lab_find(&s.lab, id).len, 10u);
    arrive(&s, 1);
}
