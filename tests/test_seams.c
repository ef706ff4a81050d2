/* Where rooms meet: keys and gates, deaths and those who wait. */
#include "core.h"
#include "gate_lab.h"

#define KEYED(name, policy) .key = (name), .key_len = sizeof(name) - 1, .on_key = (policy)

/* ---- Keys and gates ---- */

LAB_TEST(seams, a_job_put_off_by_its_key_does_not_hold_its_group)
{
    static const enum due_key_policy policies[] = { DUE_KEY_REPLACE, DUE_KEY_DEBOUNCE };

    for (size_t i = 0; i < 2; i++) {
        struct lab lab = lab_open(.start_ns = 10);

        lab_enqueue(&lab, "first", .at_ns = 1, OF("g"), KEYED("k", DUE_KEY_REFUSE));
        lab_enqueue(&lab, "second", .at_ns = 2, OF("g"));
        cr_expect_eq(due_poll(lab.q, NULL), 1);
        gate_right(&lab);
        lab_enqueue(&lab, "later", .at_ns = 1000, OF("g"), KEYED("k", policies[i]));
        gate_right(&lab);
        cr_expect_eq(lab_stats(&lab).passed, 1u);
        cr_expect_str_eq(lab_dequeue_all(&lab), "second", "a job that is not due holds the group");
        lab_turn_to(&lab, 1000);
        cr_expect_str_eq(lab_dequeue_all(&lab), "later");
        gate_close(&lab);
    }
}

/* What was half made is given up, whichever allocation fails. */
LAB_TEST(seams, a_group_goes_with_a_job_whose_key_found_no_memory)
{
    struct lab lab = lab_open();
    struct flaky *memory = &lab.state->memory;
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 5, OF("g"), KEYED("k", DUE_KEY_REFUSE) };
    int rc = DUE_ENOMEM;

    for (size_t n = 0; rc == DUE_ENOMEM; n++) {
        flaky_fail_in(memory, n);
        rc = due_enqueue(lab.q, &spec, 0, NULL);
        memory->fail_at = FLAKY_NEVER;
        cr_expect_eq(lab.q->gates.groups, rc == 0 ? 1u : 0u, "allocation %zu", n);
    }
    cr_assert_eq(rc, 0);
    gate_close(&lab);
}

/* ---- Jobs that are not handed out ---- */

Test(seams, who_waits_goes_on_when_what_was_due_had_expired, .timeout = 60)
{
    struct lab lab = lab_open(.kernel = true);
    due_job job;

    for (unsigned i = 0; i < 2; i++) {
        lab_enqueue(&lab, "expired", .at_ns = 1, .ttl_ns = 1);
        int rc = i == 0 ? due_dequeue_from(lab.q, &(int){ 0 }, 1, &job, DUE_MS(20))
                        : due_reserve(lab.q, &job, LEASE, DUE_MS(20));
        cr_expect_eq(rc, DUE_ETIMEDOUT, "%s", due_error_name(rc));
        cr_expect_eq(lab_stats(&lab).dead, i + 1);
    }
    lab_close(&lab);
}
