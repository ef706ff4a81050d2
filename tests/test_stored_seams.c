/* Where rooms meet in a queue with a store. */
#include "stored_both.h"

#define GROUP(name) .group = (name), .group_len = sizeof(name) - 1

#define KEYED(name, policy) .key = (name), .key_len = sizeof(name) - 1, .on_key = (policy)

Test(stored_seams, a_job_put_off_by_its_key_does_not_hold_its_group, .timeout = 60)
{
    struct shop s = shop_new(IN_MEMORY, AT(10));

    lab_enqueue(&s.lab, "first", .at_ns = 1, GROUP("g"), KEYED("k", DUE_KEY_REFUSE));
    lab_enqueue(&s.lab, "second", .at_ns = 2, GROUP("g"));
    cr_expect_eq(due_poll(s.lab.q, NULL), 1);
    lab_enqueue(&s.lab, "later", .at_ns = 1000, GROUP("g"), KEYED("k", DUE_KEY_DEBOUNCE));
    cr_expect_eq(lab_stats(&s.lab).passed, 1u);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "second", "a job that is not due holds the group");
    lab_turn_to(&s.lab, 1000);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "later");
    shop_close(&s);
}
