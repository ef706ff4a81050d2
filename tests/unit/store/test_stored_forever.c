/* Durations of DUE_FOREVER and just below it, in a queue with a store: they last as long after a
 * restart. */
#include "lab/redis/stored_both.h"

#define THE_END    (DUE_FOREVER - 1) /* the last that a clock shows */
#define START_NS   1000
#define ROUNDED_NS DUE_US(10) /* more than a store rounds a key's time up by, so far ahead */

static int put_key(struct shop *s, const char *key, int64_t keep_ns)
{
    due_spec spec = { DUE_SPEC_INIT,
                      .more = EXTRA(.key = key, .key_len = strlen(key), .keep_key_ns = keep_ns) };

    return due_enqueue(s->lab.q, &spec, 0, NULL);
}

static void keep_key(struct shop *s, const char *key, int64_t keep_ns)
{
    cr_assert_eq(put_key(s, key, keep_ns), 0);
    due_job job = reserve(s);
    cr_expect_eq(due_ack(&job), 0);
}

static void nack(struct shop *s, const char *text, int64_t delay_ns)
{
    lab_enqueue(&s->lab, text, .delay_ns = 0);
    due_job job = reserve(s);
    cr_expect_eq(due_nack(&job, delay_ns), 0);
}

static void expect_as_it_was(struct shop *s)
{
    struct due_stats now = lab_stats(&s->lab);

    cr_expect_eq(now.waiting, 6u);
    cr_expect_eq(now.dead, 1u);
    cr_expect_eq(put_key(s, "for ever", 0), DUE_EEXIST);
    cr_expect_eq(put_key(s, "to the end", 0), DUE_EEXIST);
}

BOTH_TEST(stored_forever, is_as_long_after_a_restart)
{
    const struct lab_options with = { .start_ns = START_NS, .with.dead_keep_ns = DUE_FOREVER };
    struct lab_options late = with;
    struct shop s = shop_new(where, with);

    lab_enqueue(&s.lab, "buried", .delay_ns = 0);
    due_job job = reserve(&s);
    cr_assert_eq(due_bury(&job, NULL), 0);
    keep_key(&s, "for ever", DUE_FOREVER);
    keep_key(&s, "to the end", THE_END - START_NS - ROUNDED_NS);
    nack(&s, "never", DUE_FOREVER);
    nack(&s, "at the end", THE_END - START_NS);
    lab_enqueue(&s.lab, "tea", .at_ns = START_NS, .more = EXTRA(.ttl_ns = DUE_FOREVER));
    lab_enqueue(&s.lab, "milk", .at_ns = START_NS, .more = EXTRA(.expires_ns = DUE_FOREVER));
    lab_enqueue(&s.lab, "nor this", .at_ns = DUE_FOREVER, .more = EXTRA(.ttl_ns = DUE_FOREVER));
    lab_enqueue(&s.lab, "jam", .at_ns = THE_END - 1, .more = EXTRA(.ttl_ns = 2));
    expect_as_it_was(&s);
    shop_crash(&s, with);
    expect_as_it_was(&s);

    late.start_ns = THE_END - 2 * ROUNDED_NS;
    for (int i = 0; i < 2; i++) { /* that it is, and that it is turned to */
        shop_crash(&s, i == 0 ? late : with);
        lab_turn_to(&s.lab, late.start_ns);
        expect_as_it_was(&s);
    }
    lab_turn_to(&s.lab, THE_END);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "tea milk jam at the end");
    cr_expect_eq(lab_stats(&s.lab).waiting, 2u);
    cr_expect_eq(lab_stats(&s.lab).dead, 1u);
    cr_expect_eq(put_key(&s, "for ever", 0), DUE_EEXIST);
    cr_expect_eq(put_key(&s, "to the end", 0), 0);
    shop_close(&s);
}
