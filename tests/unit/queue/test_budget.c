/* How much is done in one tenure of the lock, which others wait for: the test has it itself, and
 * counts. */
#include "lab/lab.h"

#include "queue/queue.h"
#include "queue/take.h"

/* Slots in the line of the first topic, and shown of it. */
static size_t lies(const struct lab *lab)
{
    const struct due__topic *t = due__topic_at(lab->q, 0);

    return t->line.count + due__window_count(&t->window);
}

/* Those that are shown are passed over besides, and what is taken at a time is not cut short. */
static void expect_passed_over(size_t max)
{
    enum { DEAD = 2 * (DUE__WINDOW_SLOTS + DUE__DEAD_MAX + DUE__TAKE_MAX) + 10 };
    static due_id ids[DEAD];
    const struct due__wanted any = { .topics = NULL };
    const size_t passed = (DUE__DEAD_MAX + max - 1) / max * max;
    struct due__slot slots[DUE__TAKE_MAX];
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    struct due__tenure t;
    size_t got = 0;

    for (int i = 0; i < DEAD; i++)
        ids[i] = lab_enqueue(&lab, "dead", .at_ns = 1);
    lab_enqueue(&lab, "alive", .at_ns = 2);
    lab_turn_to(&lab, 2);
    cr_assert_eq(due_poll(lab.q, NULL), DEAD + 1);
    for (int i = 0; i < DEAD; i++)
        cr_assert_eq(due_cancel(lab.q, ids[i], NULL), 0);
    due__enter(lab.q, &t);
    for (int i = 0; i < 2; i++) {
        size_t shown = due__window_count(&due__topic_at(lab.q, 0)->window);
        size_t before = lies(&lab);

        cr_assert_eq(before - shown, lab.q->in_lines);
        cr_assert_gt(before, shown + passed);
        cr_expect_eq(due__take_ready(lab.q, &any, slots, max, &got), DUE__AGAIN);
        cr_expect_eq(got, 0u);
        cr_expect_eq(lies(&lab), before - shown - passed, "%zu at a time, %d", max, i);
    }
    due__tenure_end(lab.q, &t);
    cr_expect_str_eq(lab_dequeue(&lab), "alive");
    lab_close(&lab);
}

Test(budget, of_a_taker_is_512_dead_ones_or_as_many_as_come_with_them)
{
    expect_passed_over(1);
    expect_passed_over(7);
    expect_passed_over(8);
    expect_passed_over(DUE__TAKE_MAX);
}

Test(budget, of_who_moves_what_is_due_is_64)
{
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    struct due__tenure t;

    for (unsigned i = 0; i < 3 * DUE__MOVES_MAX; i++)
        lab_enqueue(&lab, "tea", .at_ns = 1);
    cr_assert_eq(due_poll(lab.q, NULL), 0);
    lab_turn_to(&lab, 1);
    due__enter(lab.q, &t);
    for (unsigned i = 1; i <= 3; i++) {
        cr_expect_eq(due__move_some(lab.q, 1), i == 3, "%u", i);
        cr_expect_eq(lies(&lab), i * DUE__MOVES_MAX, "%u: %zu", i, lies(&lab));
    }
    due__tenure_end(lab.q, &t);
    lab_close(&lab);
}

Test(budget, of_who_sorts_in_is_what_he_says)
{
    enum { JOBS = 100 };
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    struct due__tenure t;

    lab_enqueue(&lab, "tea", .at_ns = 1); /* its memory is there by then */
    for (uint32_t max = 1; max < 8; max++) {
        due__enter(lab.q, &t);
        for (unsigned i = 0; i < JOBS; i++)
            lab_enqueue(&lab, "tea", .at_ns = 1);
        uint64_t before = lab.q->delegated;
        cr_expect(!due__drain_some(lab.q, max));
        cr_expect_eq(lab.q->delegated, before + max, "%u", max);
        cr_expect(!due__drain_some(lab.q, JOBS - max));
        cr_expect_eq(lab.q->delegated, before + JOBS);
        cr_expect(due__drain_some(lab.q, 1));
        cr_expect_eq(lab.q->delegated, before + JOBS);
        due__tenure_end(lab.q, &t);
    }
    lab_close(&lab);
}
