/* The processor's counter instead of a look at the kernel's clock. */
#include "lab/lab.h"

#include <time.h>

#include "os/clock.h"

#define MS INT64_C(1000000)

/* Counts three times in a nanosecond. */
#define COUNT(ns) ((uint64_t)(ns)*3)

/* The clock shows @ns, and the counter @count. */
static void anchor(struct due__counter *c, int64_t ns, uint64_t count)
{
    due__counter_anchor(c, count - 60, ns, count);
}

/* Anchors until the rate has been measured twice; the last one is at @ns. */
static void settle(struct due__counter *c, int64_t ns)
{
    for (int64_t at = ns - 20 * MS; at <= ns; at += 10 * MS)
        anchor(c, at, COUNT(at));
}

Test(counter, tells_nothing_before_two_measurements_agree)
{
    struct due__counter c = { .trusted = true };
    int64_t ns;

    anchor(&c, 1000 * MS, COUNT(1000 * MS));
    cr_expect_not(due__counter_ns(&c, COUNT(1000 * MS + 10), &ns));
    anchor(&c, 1010 * MS, COUNT(1010 * MS));
    cr_expect_not(due__counter_ns(&c, COUNT(1010 * MS + 10), &ns));
    anchor(&c, 1020 * MS, COUNT(1020 * MS));
    cr_expect(due__counter_ns(&c, COUNT(1020 * MS + 10), &ns));
}

Test(counter, is_known_after_two_milliseconds_and_measured_every_ten_from_then_on)
{
    struct due__counter c = { .trusted = true };
    int64_t ns;

    for (int64_t at = 1000 * MS; at < 1002 * MS; at += MS / 10) {
        anchor(&c, at, COUNT(at));
        cr_expect_not(due__counter_ns(&c, COUNT(at + 10), &ns));
    }
    anchor(&c, 1002 * MS, COUNT(1002 * MS));
    cr_expect(due__counter_ns(&c, COUNT(1002 * MS + 10), &ns));
    cr_expect(due__counter_measuring(&c, 1011 * MS));
    cr_expect_not(due__counter_measuring(&c, 1012 * MS));
}

/* Whoever loses the processor for a moment at two looks, and not at the third, finds the counter
 * slow, and so its time too late: by as much in both measurements. */
Test(counter, believes_no_measurement_whose_looks_took_long)
{
    struct due__counter c = { .trusted = true };
    int64_t ns;

    due__counter_anchor(&c, COUNT(1000 * MS), 1000 * MS, COUNT(1000 * MS + 900));
    due__counter_anchor(&c, COUNT(1001 * MS), 1001 * MS, COUNT(1001 * MS + 900));
    anchor(&c, 1002 * MS, COUNT(1002 * MS));
    cr_expect_not(due__counter_ns(&c, COUNT(1002 * MS + 10), &ns));
    anchor(&c, 1003 * MS, COUNT(1003 * MS));
    cr_expect_not(due__counter_ns(&c, COUNT(1003 * MS + 10), &ns));
    anchor(&c, 1004 * MS, COUNT(1004 * MS));
    cr_expect(due__counter_ns(&c, COUNT(1004 * MS + 10), &ns));
}

Test(counter, is_never_later_than_the_clock_and_a_little_earlier)
{
    struct due__counter c = { .trusted = true };
    int64_t ns = 0;

    settle(&c, 1000 * MS);
    for (int64_t passed = 0; passed < 24900; passed++) {
        cr_assert(due__counter_ns(&c, COUNT(1000 * MS + passed), &ns));
        cr_assert_leq(ns, 1000 * MS + passed);
        cr_assert_geq(ns, 1000 * MS + passed - 60);
    }
}

Test(counter, is_good_for_25_microseconds_and_not_before_its_anchor)
{
    struct due__counter c = { .trusted = true };
    int64_t ns;

    settle(&c, 1000 * MS);
    cr_expect(due__counter_ns(&c, COUNT(1000 * MS + 24990), &ns));
    cr_expect_not(due__counter_ns(&c, COUNT(1000 * MS + 25010), &ns));
    cr_expect_not(due__counter_ns(&c, COUNT(1000 * MS) - 1, &ns));
    cr_expect_not(due__counter_ns(&c, 0, &ns));
}

Test(counter, has_no_anchor_from_who_lost_the_processor_between_the_looks)
{
    struct due__counter c = { .trusted = true };
    int64_t ns;

    settle(&c, 1000 * MS);
    due__counter_anchor(&c, COUNT(1001 * MS), 1001 * MS, COUNT(1001 * MS + 2000));
    cr_expect_not(due__counter_ns(&c, COUNT(1001 * MS + 2010), &ns));
    due__counter_anchor(&c, COUNT(1001 * MS), 1001 * MS, COUNT(1900 * MS));
    cr_expect_not(due__counter_ns(&c, COUNT(1900 * MS + 10), &ns));
    anchor(&c, 1002 * MS, COUNT(1002 * MS));
    cr_expect(due__counter_ns(&c, COUNT(1002 * MS + 10), &ns));
}

/* As when the machine sleeps: the counter goes on, the clock does not; or the other way round. */
Test(counter, is_not_used_while_it_runs_at_another_rate_than_before)
{
    struct due__counter c = { .trusted = true };
    int64_t ns;

    settle(&c, 1000 * MS);
    anchor(&c, 1010 * MS, COUNT(1030 * MS));
    cr_expect_not(due__counter_ns(&c, COUNT(1030 * MS + 10), &ns));
    anchor(&c, 1020 * MS, COUNT(1040 * MS));
    cr_expect_not(due__counter_ns(&c, COUNT(1040 * MS + 10), &ns));
    anchor(&c, 1030 * MS, COUNT(1050 * MS));
    cr_expect(due__counter_ns(&c, COUNT(1050 * MS + 10), &ns));
    anchor(&c, 1040 * MS, 17); /* it begins anew */
    cr_expect_not(due__counter_ns(&c, 20, &ns));
    anchor(&c, 5000 * MS, COUNT(5000 * MS)); /* long after */
    cr_expect_not(due__counter_ns(&c, COUNT(5000 * MS + 10), &ns));
}

Test(counter, agrees_with_the_kernels_clock)
{
    struct due__counter c = { .trusted = due__counter_trusted() };
    struct due__clock clock;
    int64_t until;
    uint64_t good = 0;

    if (!c.trusted)
        cr_skip_test("the kernel does not tell the time by it");
    cr_assert_eq(due__clock_init(&clock, DUE_CLOCK_MONOTONIC, NULL), 0);
    until = due__clock_now(&clock) + 60 * MS;
    for (int64_t before = 0; before < until;) {
        before = due__clock_now(&clock);
        good += c.width > 0;
        int64_t about = due__clock_about(&clock, &c);
        int64_t after = due__clock_now(&clock);
        cr_assert_leq(about, after);
        cr_assert_geq(about, before - DUE__COUNTER_LAG_NS);
    }
    cr_expect(good > 0, "it was never used");
}

/* ---- Looks at the clock ---- */

/* Whoever looks seldom is told by the clock alone, and so is who looks while a measurement of a
 * counter that is not used yet goes on: to the nanosecond. */
Test(counter, has_an_anchor_from_who_looks_often_and_from_nobody_else)
{
    enum { SELDOM_NS = 50000, FIRST_NS = 1000000 };
    static const struct {
        bool agreed;
        int64_t since_ns; /* the last look */
        int64_t base_ns;  /* since the measurement began; 0: none has */
        bool anchors;
    } rows[] = { { true, 0, 0, true },
                 { true, SELDOM_NS, 0, true },
                 { true, SELDOM_NS + 1, 0, false },
                 { true, SELDOM_NS, 5, true },
                 { false, SELDOM_NS, 0, true },
                 { false, SELDOM_NS + 1, 0, false },
                 { false, SELDOM_NS, FIRST_NS - 1, false },
                 { false, SELDOM_NS, FIRST_NS, true },
                 { false, 0, 1, false } };
    const int64_t now = DUE_S(5);
    due_clock *manual = due_clock_manual(now);
    struct due__clock clock;

    cr_assert_eq(due__clock_init(&clock, DUE_CLOCK_MONOTONIC, manual), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t base = rows[i].base_ns > 0 ? now - rows[i].base_ns : 0;
        struct due__counter c = { .trusted = true,
                                  .agreed = rows[i].agreed,
                                  .rate = UINT64_C(1) << 40,
                                  .at = 1,
                                  .at_ns = now - rows[i].since_ns,
                                  .width = 77,
                                  .base_ns = base };

        cr_expect_eq(due__clock_anchor(&clock, &c), now);
        cr_expect_eq(c.at != 1, rows[i].anchors, "row %zu", i);
        cr_expect_eq(c.at_ns, now, "it was looked at, row %zu", i);
        cr_expect_neq(c.width, 77u, "row %zu", i);
        if (!rows[i].anchors)
            cr_expect_eq(c.base_ns, base, "row %zu", i);
        else if (!rows[i].agreed || rows[i].base_ns == 0)
            cr_expect_eq(c.base_ns, now, "row %zu: a measurement begins", i);
    }
    cr_expect_eq(due_clock_free(manual), 0);
}
