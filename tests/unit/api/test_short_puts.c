/* Which jobs are put in by the short way: what it costs shows in no answer, but how many went it is
 * counted. */
#include "os/atomic.h"
#include "queue/queue.h"
#include "lab/lab.h"

#define TEXT "0123456789abcdefghijklmnopqrstuvwxyz"

_Static_assert(sizeof TEXT > DUE__INLINE_BYTES + 1, "one more than lies in a job's place");

/* How many went it so far. */
static uint64_t placed(const struct lab *lab)
{
    return due__load_relaxed(&lab->q->placed);
}

/* By one call, and two by another.  Without proxies nobody else has the lock. */
static void expect_each(enum due_proxies proxies, uint32_t capacity, bool shorter)
{
    static const struct {
        due_spec spec;
        bool other; /* by the other way in any case */
    } cases[] = {
        { { DUE_SPEC_INIT }, false },
        { { DUE_SPEC_INIT, .data = "", .len = 0 }, false },
        { { DUE_SPEC_INIT, .data = TEXT, .len = 1 }, false },
        { { DUE_SPEC_INIT, .data = TEXT, .len = DUE__INLINE_BYTES }, false },
        { { DUE_SPEC_INIT, .data = TEXT, .len = DUE__INLINE_BYTES + 1 }, true },
        { { DUE_SPEC_INIT, .delay_ns = 1 }, false },
        { { DUE_SPEC_INIT, .delay_ns = DUE_S(100) }, false },
        { { DUE_SPEC_INIT, .data = TEXT, .len = 5, .delay_ns = DUE_S(100) }, false },
        { { DUE_SPEC_INIT, .data = TEXT, .len = 5, .at_ns = INT64_MAX / 2 }, false },
        { { DUE_SPEC_INIT, .priority = 1 }, false },
        { { DUE_SPEC_INIT, .priority = 255 }, false },
        { { DUE_SPEC_INIT, .topic = 1 }, false },
        { { DUE_SPEC_INIT, .topic = 2, .data = TEXT, .len = 5 }, false },
    };
    struct lab lab = lab_open(.kernel = true, .with.proxies = proxies, .with.capacity = capacity);

    cr_assert_eq(lab_topic(&lab, "one"), 1);
    cr_assert_eq(lab_topic(&lab, "two"), 2);
    lab_enqueue(&lab, "first", .delay_ns = DUE_S(50)); /* places are at hand by then */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        due_spec two[2] = { cases[i].spec, cases[i].spec };
        uint64_t before = placed(&lab);
        uint64_t ways = shorter && !cases[i].other;

        cr_expect_eq(due_enqueue(lab.q, &cases[i].spec, 0, NULL), 0);
        cr_expect_eq(placed(&lab), before + ways, "%zu", i);
        cr_expect_eq(due_enqueue_batch(lab.q, two, 2, 0, NULL), 2);
        cr_expect_eq(placed(&lab), before + 3 * ways, "two of %zu", i);
    }
    lab_close(&lab);
}

Test(short_puts, is_gone_by_what_fits_into_a_place)
{
    expect_each(DUE_PROXIES_NEVER, 0, true);
    expect_each(DUE_PROXIES_NEVER, 1000, false);
    expect_each(DUE_PROXIES_ALWAYS, 0, false);
}

/* A pointer with a time, by the calls that are made for it. */
Test(short_puts, is_gone_by_pointers_with_a_time)
{
    struct lab lab = lab_open(.kernel = true, .with.proxies = DUE_PROXIES_NEVER);
    int64_t now = due_now(lab.q);

    lab_enqueue(&lab, "first", .delay_ns = DUE_S(50));
    uint64_t before = placed(&lab);
    cr_expect_eq(due_enqueue_at(lab.q, now + DUE_S(100), NULL, NULL), 0);
    cr_expect_eq(placed(&lab), before + 1);
    cr_expect_eq(due_enqueue_after(lab.q, DUE_S(100), NULL, NULL), 0);
    cr_expect_eq(placed(&lab), before + 2);
    cr_expect_eq(due_enqueue_after(lab.q, 0, NULL, NULL), 0);
    cr_expect_eq(placed(&lab), before + 3);
    cr_expect_eq(due_enqueue_at(lab.q, 0, NULL, NULL), 0);
    cr_expect_eq(placed(&lab), before + 4);
    lab_close(&lab);
}

/* The numbers of arrivals are used up: it is left to the usual way, which numbers all anew. */
Test(short_puts, is_not_gone_when_the_numbers_of_arrivals_are_used_up)
{
    for (uint32_t left = 0; left < 2; left++) {
        struct lab lab = lab_open(.kernel = true, .with.proxies = DUE_PROXIES_NEVER);
        struct due__tenure t;

        lab_enqueue(&lab, "first", .delay_ns = DUE_S(50));
        due__enter(lab.q, &t);
        lab.q->arrival = DUE__ARRIVAL_MAX - left;
        due__tenure_end(lab.q, &t);
        cr_expect_eq(due_enqueue_after(lab.q, DUE_S(100), NULL, NULL), 0);
        if (left > 0)
            cr_expect_eq(lab.q->arrival, DUE__ARRIVAL_MAX);
        else
            cr_expect_lt(lab.q->arrival, 10u);
        lab_close(&lab);
    }
}
