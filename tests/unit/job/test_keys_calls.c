/* Unique keys: batches, room, memory that is refused, pointers, closing. */
#include <stdio.h>

#include "lab/lab.h"
#include "lab/take.h"

#define SPEC(name, policy, at, text)                                                             \
    {                                                                                            \
        DUE_SPEC_INIT, .at_ns = (at), .data = (text), .len = strlen(text),                       \
                       .more = EXTRA(.key = (name), .key_len = strlen(name), .on_key = (policy)) \
    }

static const due_spec plain = { DUE_SPEC_INIT };

/* ---- Batches ---- */

LAB_TEST(keys_calls, a_batch_ends_at_the_first_job_that_is_refused)
{
    struct lab lab = lab_open(.start_ns = 1);
    due_id had = lab_enqueue(&lab, "had", .at_ns = 1, .more = EXTRA(.key = "b", .key_len = 1));
    due_id ids[3] = { { { 0 } } };
    const due_spec specs[] = { SPEC("a", DUE_KEY_REFUSE, 1, "A"), SPEC("b", DUE_KEY_REFUSE, 1, "B"),
                               SPEC("c", DUE_KEY_REFUSE, 1, "C") };

    cr_expect_eq(due_enqueue_batch(lab.q, specs, 3, 0, ids), 1);
    cr_expect(due_id_equal(ids[1], had), "whose key it is");
    cr_expect_eq(due_enqueue_batch(lab.q, specs + 1, 2, 0, ids), DUE_EEXIST);
    cr_expect_eq(due_enqueue_batch(lab.q, specs + 2, 1, 0, ids), 1);
    cr_expect_str_eq(lab_dequeue_all(&lab), "had A C");
    lab_close(&lab);
}

LAB_TEST(keys_calls, a_batch_goes_on_after_jobs_that_are_changed)
{
    struct lab lab = lab_open(.start_ns = 1);
    enum { N = 300 };
    due_id had = lab_enqueue(&lab, "had", .at_ns = 1, .more = EXTRA(.key = "k", .key_len = 1));
    const due_spec replacing = SPEC("k", DUE_KEY_REPLACE, 1, "new");
    due_spec specs[N];
    due_id ids[N];

    for (int i = 0; i < N; i++) {
        specs[i] = replacing;
        if (i % 3 != 0)
            specs[i].more = NULL;
    }
    cr_expect_eq(due_enqueue_batch(lab.q, specs, N, 0, ids), N);
    for (int i = 0; i < N; i += 3)
        cr_expect(due_id_equal(ids[i], had));
    cr_expect_eq(lab_stats(&lab).waiting, 1u + N - N / 3);
    lab_close(&lab);
}

LAB_TEST(keys_calls, one_batch_may_name_a_key_twice)
{
    struct lab lab = lab_open(.start_ns = 1);
    const due_spec specs[] = { SPEC("k", DUE_KEY_DEBOUNCE, 5, "A"),
                               SPEC("k", DUE_KEY_DEBOUNCE, 9, "B"),
                               SPEC("k", DUE_KEY_DEBOUNCE, 7, "C") };

    cr_expect_eq(due_enqueue_batch(lab.q, specs, 3, 0, NULL), 3);
    cr_expect_eq(lab_stats(&lab).waiting, 1u);
    lab_turn_to(&lab, 8);
    cr_expect_null(lab_dequeue(&lab));
    lab_turn_to(&lab, 9);
    cr_expect_str_eq(lab_dequeue_all(&lab), "C");
    lab_close(&lab);
}

/* ---- Room ---- */

LAB_TEST(keys_calls, in_a_full_queue_only_a_new_job_needs_room)
{
    struct lab lab = lab_open(.start_ns = 1, .with.capacity = 2);
    due_id a = lab_enqueue(&lab, "a", .at_ns = 5, .more = EXTRA(.key = "a", .key_len = 1));
    due_spec replace = SPEC("a", DUE_KEY_REPLACE, 7, "new");
    due_spec refuse = SPEC("a", DUE_KEY_REFUSE, 7, "new");
    due_spec fresh = SPEC("b", DUE_KEY_REPLACE, 7, "b");
    due_id id;

    lab_enqueue(&lab, "full", .at_ns = 6);
    cr_expect_eq(due_enqueue(lab.q, &refuse, 0, &id), DUE_EEXIST);
    cr_expect(due_id_equal(a, id));
    cr_expect_eq(due_enqueue(lab.q, &replace, 0, &id), 0);
    cr_expect(due_id_equal(a, id));
    cr_expect_eq(due_enqueue(lab.q, &fresh, 0, NULL), DUE_EAGAIN);
    cr_expect_eq(due_enqueue_batch(lab.q, &replace, 1, 0, NULL), 1);
    cr_expect_eq(due_id_of_key(lab.q, "b", 1, &id), DUE_ENOENT);
    lab_turn_to(&lab, 6);
    cr_expect_str_eq(lab_dequeue_all(&lab), "full");
    cr_expect_eq(due_enqueue(lab.q, &fresh, 0, NULL), 0);
    cr_expect_eq(due_enqueue(lab.q, &plain, 0, NULL), DUE_EAGAIN);
    cr_expect_eq(due_cancel_key(lab.q, "a", 1, NULL), 0);
    cr_expect_eq(due_enqueue(lab.q, &plain, 0, NULL), 0);
    lab_close(&lab);
}

LAB_TEST(keys_calls, a_dead_job_that_comes_back_takes_room)
{
    struct lab lab = lab_open(.start_ns = 1, .with.capacity = 1);
    due_spec s = SPEC("a", DUE_KEY_REPLACE, 1, "a");
    due_job job;

    cr_assert_eq(due_enqueue(lab.q, &s, 0, NULL), 0);
    cr_assert_eq(take_leased(lab.q, &job, 100, 0), 0);
    cr_assert_eq(due_bury(&job, NULL), 0);
    cr_assert_eq(due_enqueue(lab.q, &s, 0, NULL), 0);
    cr_expect_eq(due_enqueue(lab.q, &plain, 0, NULL), DUE_EAGAIN);
    cr_expect_str_eq(lab_dequeue_all(&lab), "a");
    cr_expect_eq(due_enqueue(lab.q, &plain, 0, NULL), 0);
    lab_close(&lab);
}

/* ---- Memory ---- */

/* Each allocation of the call fails in turn: then nothing has changed. */
static void each_failure(bool there, enum due_key_policy policy)
{
    for (size_t n = 0;; n++) {
        struct lab lab = lab_open(.start_ns = 1);
        char text[200];
        due_id id = { { 0 } };
        due_id found;

        memset(text, 'x', sizeof text);
        due_spec s = { DUE_SPEC_INIT, .at_ns = 5, .data = text, .len = sizeof text,
                       .more = EXTRA(.headers = text, .headers_len = 50, .key = "k", .key_len = 1,
                                     .on_key = policy) };
        if (there)
            id = lab_enqueue(&lab, "had", .at_ns = 9, .more = EXTRA(.key = "k", .key_len = 1));
        flaky_fail_in(&lab.state->memory, n);
        int rc = due_enqueue(lab.q, &s, 0, NULL);
        bool reached = lab.state->memory.calls > lab.state->memory.fail_at;
        lab.state->memory.fail_at = FLAKY_NEVER;
        cr_assert(rc == 0 || rc == DUE_ENOMEM, "%zu: %d", n, rc);
        if (rc != 0 && !there) {
            cr_expect_eq(due_id_of_key(lab.q, "k", 1, &found), DUE_ENOENT);
            cr_expect_eq(lab_stats(&lab).waiting, 0u);
        } else if (rc != 0) {
            cr_expect_eq(due_id_of_key(lab.q, "k", 1, &found), 0);
            cr_expect(due_id_equal(found, id));
            cr_expect_eq(lab_find(&lab, id).deadline_ns, 9);
            cr_expect_eq(lab_find(&lab, id).len, 3u);
        }
        lab_close(&lab);
        if (!reached)
            break;
    }
}

LAB_TEST(keys_calls, without_memory_nothing_changes)
{
    each_failure(false, DUE_KEY_REFUSE);
    each_failure(true, DUE_KEY_REPLACE);
    each_failure(true, DUE_KEY_EARLIEST);
    each_failure(true, DUE_KEY_DEBOUNCE);
}

/* ---- Pointers ---- */

static void *shown;

static void show(void *ctx, const due_job *job)
{
    (void)ctx;
    shown = job->ptr;
}

LAB_TEST(keys_calls, a_pointer_that_is_replaced_is_shown)
{
    struct lab lab = lab_open(.start_ns = 1, .with.on_discard = show);
    int old, new;
    due_extra more = { DUE_EXTRA_INIT, .key = "k", .key_len = 1, .on_key = DUE_KEY_REPLACE };
    due_spec s = { DUE_SPEC_INIT, .ptr = &old, .more = &more };
    due_job job;

    shown = NULL;
    cr_assert_eq(due_enqueue(lab.q, &s, 0, NULL), 0);
    s.ptr = &new;
    cr_assert_eq(due_enqueue(lab.q, &s, 0, NULL), 0);
    cr_expect_eq(shown, &old);
    cr_expect_eq(lab_stats(&lab).discarded, 0u, "the job is there still");
    shown = NULL;
    s.ptr = NULL;
    more.on_key = DUE_KEY_EARLIEST;
    cr_assert_eq(due_enqueue(lab.q, &s, 0, NULL), 0);
    cr_expect_null(shown);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(job.ptr, &new);
    due_job_done(&job);
    lab_close(&lab);
}

/* ---- Closing ---- */

LAB_TEST(keys_calls, a_closed_queue_takes_no_keys)
{
    struct lab lab = lab_open(.start_ns = 1);
    due_spec s = SPEC("k", DUE_KEY_REPLACE, 9, "x");
    due_id id;

    lab_enqueue(&lab, "had", .at_ns = 9, .more = EXTRA(.key = "k", .key_len = 1, .keep_key_ns = 5));
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, 0), 0);
    cr_expect_eq(due_enqueue(lab.q, &s, 0, NULL), DUE_ECLOSED);
    cr_expect_eq(due_id_of_key(lab.q, "k", 1, &id), DUE_ENOENT);
    lab_close(&lab);
}

LAB_TEST(keys_calls, a_repeating_job_has_its_key_until_it_is_cancelled)
{
    struct lab lab = lab_open(.start_ns = 1);
    due_spec s = SPEC("k", DUE_KEY_REFUSE, 5, "x");
    due_id id;

    lab_enqueue(&lab, "tick", .at_ns = 5, .more = EXTRA(.every_ns = 10, .key = "k", .key_len = 1));
    for (int i = 0; i < 3; i++) {
        lab_turn_to(&lab, 5 + 10 * i);
        cr_expect_str_eq(lab_dequeue_all(&lab), "tick");
        cr_expect_eq(due_enqueue(lab.q, &s, 0, NULL), DUE_EEXIST);
    }
    cr_expect_eq(due_cancel_key(lab.q, "k", 1, NULL), 0);
    cr_expect_eq(due_id_of_key(lab.q, "k", 1, &id), DUE_ENOENT);
    lab_close(&lab);
}

/* Else it and the job that took the key over would both go on for ever. */
LAB_TEST(keys_calls, a_repeating_job_whose_key_was_taken_over_ends_with_its_round)
{
    struct lab lab = lab_open(.start_ns = 1);
    due_spec s = SPEC("k", DUE_KEY_REPLACE, 50, "new");
    due_job job;

    lab_enqueue(&lab, "tick", .at_ns = 1, .more = EXTRA(.every_ns = 10, .key = "k", .key_len = 1));
    cr_assert_eq(take_leased(lab.q, &job, 100, 0), 0);
    cr_expect_eq(due_enqueue(lab.q, &s, 0, NULL), 0);
    cr_expect_eq(due_ack(&job), 0);
    lab_turn_to(&lab, 100);
    cr_expect_str_eq(lab_dequeue_all(&lab), "new");
    lab_close(&lab);
}
