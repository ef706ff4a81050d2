/* Putting one job in. */
#include "lab/lab.h"

#include <stdlib.h>

/* What must be refused, and has then changed nothing. */
static void expect_refused(struct lab *lab, const due_spec *spec, int64_t timeout_ns, int error)
{
    due_spec before = *spec;
    due_id id;
    due_id untouched;

    memset(&id, 0x5a, sizeof id);
    untouched = id;
    struct due_stats was = lab_stats(lab);
    size_t live = atomic_load(&lab->state->memory.live);

    cr_expect_eq(due_enqueue(lab->q, spec, timeout_ns, &id), error);
    if (error == DUE_EINVAL && timeout_ns == 0)
        cr_expect_not_null(due_spec_error(lab->q, spec));
    struct due_stats is = lab_stats(lab);
    cr_expect_eq(is.enqueued, was.enqueued);
    cr_expect_eq(is.waiting, was.waiting);
    cr_expect_eq(atomic_load(&lab->state->memory.live), live);
    cr_expect_arr_eq(id.byte, untouched.byte, sizeof id.byte, "a refused enqueue wrote an id");
    cr_expect_arr_eq(&before, spec, sizeof before);
}

#define expect_invalid(lab, ...) \
    expect_refused((lab), &(due_spec){ DUE_SPEC_INIT, __VA_ARGS__ }, 0, DUE_EINVAL)

LAB_TEST(enqueue, refuses_two_times_at_once)
{
    struct lab lab = lab_open(.start_ns = 10);

    expect_invalid(&lab, .delay_ns = 5, .at_ns = 15);
    lab_close(&lab);
}

LAB_TEST(enqueue, refuses_negative_times)
{
    struct lab lab = lab_open(.start_ns = 10);

    expect_invalid(&lab, .delay_ns = -1);
    expect_invalid(&lab, .delay_ns = INT64_MIN);
    expect_invalid(&lab, .at_ns = -1);
    expect_invalid(&lab, .at_ns = INT64_MIN);
    lab_close(&lab);
}

LAB_TEST(enqueue, refuses_what_only_some_jobs_have_if_it_makes_no_sense)
{
    static const due_retry odd = { .kind = DUE_RETRY_FIXED, .delay_ns = -1 };
    static const char bytes[DUE_HEADERS_MAX + 1];
    struct lab lab = lab_open(.start_ns = 10);

    expect_invalid(&lab, .more = EXTRA(.ttl_ns = -1));
    expect_invalid(&lab, .more = EXTRA(.expires_ns = -1));
    expect_invalid(&lab, .more = EXTRA(.ttl_ns = 5, .expires_ns = 15));
    expect_invalid(&lab, .more = EXTRA(.every_ns = -1));
    expect_invalid(&lab, .more = EXTRA(.repeat = DUE_REPEAT_ONCE));
    expect_invalid(&lab,
                   .more = EXTRA(.every_ns = 5, .repeat = (enum due_repeat)(DUE_REPEAT_SKIP - 1)));
    expect_invalid(&lab,
                   .more = EXTRA(.every_ns = 5, .repeat = (enum due_repeat)(DUE_REPEAT_AFTER + 1)));
    expect_invalid(&lab, .more = EXTRA(.retry = &odd));
    expect_invalid(&lab, .more = EXTRA(.headers = bytes, .headers_len = DUE_HEADERS_MAX + 1));
    expect_invalid(&lab, .more = EXTRA(.headers_len = 1));
    expect_invalid(&lab, .more = EXTRA(.group = bytes, .group_len = DUE_KEY_MAX + 1));
    expect_invalid(&lab, .more = EXTRA(.group = bytes, .group_len = 0));
    expect_invalid(&lab, .more = EXTRA(.key = bytes, .key_len = DUE_KEY_MAX + 1));
    expect_invalid(&lab, .more = EXTRA(.key = bytes, .key_len = 0));
    expect_invalid(&lab, .more = EXTRA(.key = bytes, .key_len = 1, .keep_key_ns = -1));
    expect_invalid(&lab,
                   .more = EXTRA(.key = bytes, .key_len = 1, .on_key = (enum due_key_policy) - 1));
    expect_invalid(&lab, .more = EXTRA(.key = bytes, .key_len = 1,
                                       .on_key = (enum due_key_policy)(DUE_KEY_DEBOUNCE + 1)));
    lab_close(&lab);
}

LAB_TEST(enqueue, takes_what_only_some_jobs_have_up_to_its_bounds)
{
    static const char bytes[DUE_HEADERS_MAX];
    struct lab lab = lab_open(.start_ns = 10);

    lab_enqueue(&lab, "a", .more = EXTRA(.headers = bytes, .headers_len = DUE_HEADERS_MAX));
    lab_enqueue(&lab, "b", .more = EXTRA(.headers = bytes, .headers_len = 0));
    lab_enqueue(&lab, "c", .more = EXTRA(.group = bytes, .group_len = DUE_KEY_MAX));
    lab_enqueue(&lab, "d", .more = EXTRA(.key = bytes, .key_len = DUE_KEY_MAX, .keep_key_ns = 0));
    lab_enqueue(&lab, "e", .more = EXTRA(.key = bytes, .key_len = 1, .on_key = DUE_KEY_DEBOUNCE));
    lab_enqueue(&lab, "f", .more = EXTRA(.every_ns = 1, .repeat = DUE_REPEAT_AFTER));
    lab_enqueue(&lab, "g", .more = EXTRA(.ttl_ns = 1));
    lab_enqueue(&lab, "h", .more = EXTRA(.expires_ns = 11));
    cr_expect_eq(lab_stats(&lab).waiting, 8u);
    lab_close(&lab);
}

LAB_TEST(enqueue, refuses_a_negative_timeout)
{
    struct lab lab = lab_open();

    expect_refused(&lab, &(due_spec){ DUE_SPEC_INIT, .delay_ns = 1 }, -1, DUE_EINVAL);
    expect_refused(&lab, &(due_spec){ DUE_SPEC_INIT, .delay_ns = 1 }, INT64_MIN, DUE_EINVAL);
    lab_close(&lab);
}

LAB_TEST(enqueue, refuses_bytes_and_a_pointer_at_once)
{
    struct lab lab = lab_open();

    expect_invalid(&lab, .data = "bytes", .len = 5, .ptr = &lab);
    lab_close(&lab);
}

LAB_TEST(enqueue, refuses_a_length_without_bytes)
{
    struct lab lab = lab_open();

    expect_invalid(&lab, .len = 1);
    lab_close(&lab);
}

LAB_TEST(enqueue, refuses_a_payload_over_the_limit)
{
    struct lab lab = lab_open();
    due_spec spec = { DUE_SPEC_INIT, .data = "x", .len = (size_t)DUE_PAYLOAD_MAX + 1 };

    expect_refused(&lab, &spec, 0, DUE_ELIMIT);
    spec.len = SIZE_MAX;
    expect_refused(&lab, &spec, 0, DUE_ELIMIT);
    lab_close(&lab);
}

LAB_TEST(enqueue, refuses_a_priority_that_is_not_0_to_255)
{
    struct lab lab = lab_open();

    expect_invalid(&lab, .priority = -1);
    expect_invalid(&lab, .priority = 256);
    expect_invalid(&lab, .priority = INT32_MIN);
    lab_close(&lab);
}

LAB_TEST(enqueue, refuses_a_topic_that_was_never_given)
{
    struct lab lab = lab_open();

    expect_invalid(&lab, .topic = 1);
    expect_invalid(&lab, .topic = -1);
    expect_invalid(&lab, .topic = DUE_TOPIC_MAX);
    expect_invalid(&lab, .topic = INT32_MAX);
    lab_close(&lab);
}

LAB_TEST(enqueue, refuses_a_spec_without_its_size)
{
    struct lab lab = lab_open();

    expect_refused(&lab, &(due_spec){ .delay_ns = 1 }, 0, DUE_EINVAL);
    expect_refused(&lab, &(due_spec){ .size = 7, .delay_ns = 1 }, 0, DUE_EINVAL);
    expect_invalid(&lab, .more = &(due_extra){ .ttl_ns = 1 });
    expect_invalid(&lab, .more = &(due_extra){ .size = sizeof(due_extra) + sizeof(size_t) / 2 });
    lab_close(&lab);
}

/* As an older header has it: what stands behind its end is not looked at. */
LAB_TEST(enqueue, takes_what_a_shorter_extra_lacks_as_zero)
{
    struct lab lab = lab_open(.start_ns = 10);
    due_extra old = {
        .size = offsetof(due_extra, ttl_ns), .ttl_ns = -1, .headers = "h", .headers_len = 1
    };
    due_spec specs[2] = { { DUE_SPEC_INIT, .at_ns = 5, .more = &old }, { DUE_SPEC_INIT } };
    due_id ids[2];
    due_job job;

    cr_assert_eq(due_enqueue(lab.q, &specs[0], 0, NULL), 0);
    cr_assert_eq(due_enqueue_batch(lab.q, specs, 2, 0, ids), 2);
    cr_expect_eq(due_amend(lab.q, ids[1], &specs[0], DUE_SET_HEADERS), 0);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
        cr_expect_eq(job.headers_len, 1u);
        due_job_done(&job);
    }
    lab_close(&lab);
}

/* As a newer header has it. */
LAB_TEST(enqueue, refuses_a_field_of_a_longer_extra_that_it_does_not_know)
{
    struct lab lab = lab_open(.start_ns = 10);
    struct {
        due_extra known;
        uint64_t beyond;
    } more = { .known.size = sizeof more };
    due_spec specs[2] = { { DUE_SPEC_INIT }, { DUE_SPEC_INIT, .more = &more.known } };
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 20);

    cr_expect_eq(due_enqueue_batch(lab.q, specs, 2, 0, NULL), 2);
    more.beyond = 1;
    expect_refused(&lab, &specs[1], 0, DUE_ENOTSUP);
    cr_expect_eq(due_enqueue_batch(lab.q, specs, 2, 0, NULL), DUE_ENOTSUP);
    cr_expect_eq(due_amend(lab.q, id, &specs[1], DUE_SET_HEADERS), DUE_ENOTSUP);
    cr_expect_eq(lab_stats(&lab).waiting, 3u);
    lab_close(&lab);
}

/* I1: sizes on both sides of what fits into a job, and bytes that a text would stumble over */
LAB_TEST(enqueue, keeps_every_byte_of_a_payload_of_any_size)
{
    static const size_t sizes[] = { 0, 1, 7, 8, 31, 32, 33, 63, 64, 65, 4095, 4096, 1000000 };
    struct lab lab = lab_open();
    due_job job;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t size = sizes[i];
        unsigned char *bytes = malloc(size + 1);
        due_spec spec = { DUE_SPEC_INIT, .data = bytes, .len = size };

        cr_assert_not_null(bytes);
        for (size_t k = 0; k < size; k++)
            bytes[k] = (unsigned char)(k * 7 + i);
        cr_assert_eq(due_enqueue(lab.q, &spec, 0, NULL), 0);
        cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
        cr_assert_eq(job.len, size);
        if (size > 0)
            cr_assert_arr_eq(job.data, bytes, size, "%zu bytes", size);
        else
            cr_assert_null(job.data);
        due_job_done(&job);
        free(bytes);
    }
    lab_close(&lab);
}

LAB_TEST(enqueue, copies_the_bytes_it_is_given)
{
    struct lab lab = lab_open();
    char small[] = "small";
    char large[] = "larger than what fits into the job itself";

    lab_enqueue(&lab, small, .delay_ns = 1);
    lab_enqueue(&lab, large, .delay_ns = 2);
    memset(small, '#', sizeof small - 1);
    memset(large, '#', sizeof large - 1);
    lab_advance(&lab, 2);
    cr_expect_str_eq(lab_dequeue(&lab), "small");
    cr_expect_str_eq(lab_dequeue(&lab), "larger than what fits into the job itself");
    lab_close(&lab);
}

LAB_TEST(enqueue, carries_a_pointer_without_touching_what_it_points_to)
{
    struct lab lab = lab_open();
    due_job job;

    lab_enqueue(&lab, NULL, .ptr = (void *)(uintptr_t)0x10);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(job.ptr, (void *)(uintptr_t)0x10);
    cr_expect_null(job.data);
    cr_expect_eq(job.len, 0u);
    due_job_done(&job);
    lab_close(&lab);
}

LAB_TEST(enqueue, takes_a_job_without_any_payload)
{
    struct lab lab = lab_open();
    due_job job;

    lab_enqueue(&lab, NULL, .delay_ns = 0);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_null(job.data);
    cr_expect_null(job.ptr);
    cr_expect_eq(job.len, 0u);
    due_job_done(&job);
    lab_close(&lab);
}

LAB_TEST(enqueue, counts_a_delay_from_the_call)
{
    struct lab lab = lab_open(.start_ns = 1000);
    due_id id = lab_enqueue(&lab, "job", .delay_ns = 500);

    cr_expect_eq(lab_find(&lab, id).deadline_ns, 1500);
    lab_close(&lab);
}

LAB_TEST(enqueue, hands_out_at_once_what_is_overdue)
{
    struct lab lab = lab_open(.start_ns = 1000);
    due_job job;

    lab_enqueue(&lab, "late", .at_ns = 400);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(job.deadline_ns, 400);
    cr_expect_eq(job.lateness_ns, 600);
    due_job_done(&job);
    lab_close(&lab);
}

/* C1: saturate, never wrap */
LAB_TEST(enqueue, lets_times_too_far_ahead_never_come)
{
    static const int64_t delays[] = { INT64_MAX, INT64_MAX - 1, INT64_MAX - 1000 };
    static const int64_t nows[] = { 1000, INT64_MAX / 2, INT64_MAX - 1000, INT64_MAX - 2 };

    for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++)
        for (size_t k = 0; k < sizeof nows / sizeof nows[0]; k++) {
            struct lab lab = lab_open(.start_ns = nows[k]);
            due_id id = lab_enqueue(&lab, "never", .delay_ns = delays[i]);

            cr_expect_eq(lab_find(&lab, id).deadline_ns, DUE_FOREVER, "%zu %zu", i, k);
            lab_turn_to(&lab, INT64_MAX);
            cr_expect_null(lab_dequeue(&lab), "delay %zu now %zu", i, k);
            lab_close(&lab);
        }
}

/* C1: every delay that can be counted is kept to the nanosecond */
LAB_TEST(enqueue, keeps_large_delays_to_the_nanosecond)
{
    static const int64_t delays[] = {
        0, 1, INT64_C(1) << 31, INT64_C(1) << 32, INT64_C(1) << 53, INT64_C(1) << 62,
    };
    static const int64_t nows[] = { 0, 1, INT64_C(1) << 32, INT64_C(1) << 60 };

    for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++)
        for (size_t k = 0; k < sizeof nows / sizeof nows[0]; k++) {
            struct lab lab = lab_open(.start_ns = nows[k]);

            lab_enqueue(&lab, "job", .delay_ns = delays[i]);
            if (delays[i] > 0) {
                lab_advance(&lab, delays[i] - 1);
                cr_expect_null(lab_dequeue(&lab), "early: delay %zu now %zu", i, k);
                lab_advance(&lab, 1);
            }
            cr_expect_not_null(lab_dequeue(&lab), "late: delay %zu now %zu", i, k);
            lab_close(&lab);
        }
}

LAB_TEST(enqueue, allocates_nothing_for_up_to_32_bytes)
{
    struct lab lab = lab_open(.with.reserve = 100);
    size_t calls = atomic_load(&lab.state->memory.calls);

    for (int i = 0; i < 100; i++)
        lab_enqueue(&lab, "exactly thirty-two bytes, no more", .delay_ns = 1 + i);
    cr_expect_eq(atomic_load(&lab.state->memory.calls), calls + 100, "33 bytes take one each");

    calls = atomic_load(&lab.state->memory.calls);
    for (int i = 0; i < 100; i++)
        lab_enqueue(&lab, "exactly thirty-two bytes no more", .delay_ns = 1 + i);
    cr_expect_eq(atomic_load(&lab.state->memory.calls), calls);
    lab_close(&lab);
}

LAB_TEST(enqueue, refuses_with_enomem_and_the_queue_still_works)
{
    static const char large[] = "a payload that does not fit into the thirty-two bytes of a job";
    struct lab lab = lab_open(.with.reserve = 10);
    due_spec spec = { DUE_SPEC_INIT, .data = large, .len = sizeof large };

    flaky_fail_in(&lab.state->memory, 0);
    expect_refused(&lab, &spec, 0, DUE_ENOMEM);
    lab_enqueue(&lab, large, .delay_ns = 0);
    cr_expect_str_eq(lab_dequeue(&lab), large);
    lab_close(&lab);
}

LAB_TEST(enqueue, refuses_everything_once_the_queue_closes)
{
    struct lab lab = lab_open();
    due_spec spec = { DUE_SPEC_INIT, .ptr = &spec };

    lab_enqueue(&lab, "left", .delay_ns = 5);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    expect_refused(&lab, &spec, 0, DUE_ECLOSED);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    expect_refused(&lab, &spec, 0, DUE_ECLOSED);
    lab_close(&lab);
}

/* D8 */
LAB_TEST(enqueue, of_one_job_leaves_no_trace_in_the_next)
{
    struct lab lab = lab_open();
    int topic = lab_topic(&lab, "mail");
    due_job job;

    lab_enqueue(&lab, "special", .topic = topic, .priority = 9, .at_ns = 7);
    lab_enqueue(&lab, NULL, .delay_ns = 0);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(job.topic, 0);
    cr_expect_eq(job.priority, 0);
    cr_expect_eq(job.deadline_ns, 0);
    cr_expect_null(job.data);
    due_job_done(&job);
    lab_close(&lab);
}
