/* test_duectl_tally.c - counts and lateness. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static struct ctl_histogram histogram;

Test(percentile, of_small_numbers_is_exact)
{
    for (int64_t ns = 1; ns <= 50; ns++)
        ctl_histogram_add(&histogram, ns);
    cr_expect_eq(ctl_histogram_percentile(&histogram, 50), 25);
    cr_expect_eq(ctl_histogram_percentile(&histogram, 90), 45);
    cr_expect_eq(ctl_histogram_percentile(&histogram, 100), 50);
    cr_expect_eq(ctl_histogram_percentile(&histogram, 0), 1);
}

static int compare(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;

    return (*x > *y) - (*x < *y);
}

Test(percentile, is_never_too_small_and_at_most_one_part_in_32_too_large)
{
    enum { N = 10000 };
    static int64_t all[N];
    static const double percents[] = { 1, 50, 90, 99, 99.9 };
    uint64_t seed = 1;

    for (size_t i = 0; i < N; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        all[i] = (int64_t)(seed >> (1 + i % 63));
        ctl_histogram_add(&histogram, all[i]);
    }
    qsort(all, N, sizeof all[0], compare);
    for (size_t i = 0; i < sizeof percents / sizeof percents[0]; i++) {
        int64_t exact = all[(size_t)(percents[i] / 100 * N + 0.5) - 1];
        int64_t said = ctl_histogram_percentile(&histogram, percents[i]);

        cr_expect_geq(said, exact, "p%g", percents[i]);
        cr_expect_leq(said - exact, exact / 32 + 1, "p%g", percents[i]);
    }
}

Test(percentile, takes_the_ends_of_the_range)
{
    ctl_histogram_add(&histogram, 0);
    ctl_histogram_add(&histogram, -5);
    ctl_histogram_add(&histogram, INT64_MAX);
    cr_expect_eq(ctl_histogram_percentile(&histogram, 50), 0);
    cr_expect_eq(ctl_histogram_percentile(&histogram, 100), INT64_MAX);
}

/* Count a job with this text as left. */
static void leave(struct ctl_tally *tally, int64_t deadline_ns, uint64_t line, const char *text,
                  size_t len)
{
    struct ctl_job *job = malloc(sizeof *job + len);

    cr_assert_not_null(job);
    job->line = line;
    job->len = len;
    memcpy(job->text, text, len);
    ctl_tally_left(tally, CTL_WALL, deadline_ns, job);
    free(job);
}

Test(left, keeps_the_earliest_in_order_of_time_then_of_lines)
{
    static const struct {
        int64_t deadline_ns;
        uint64_t line;
        const char *text;
    } jobs[] = {
        { 50, 1, "a" }, { 20, 6, "b" }, { 90, 3, "c" },
        { 10, 4, "d" }, { 70, 5, "e" }, { 20, 2, "f" },
    };
    struct ctl_tally tally;

    ctl_tally_open(&tally);
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
        leave(&tally, jobs[i].deadline_ns, jobs[i].line, jobs[i].text, 1);
    cr_expect_eq(tally.left[CTL_WALL].count, 6u);
    cr_expect_eq(tally.left[CTL_MONOTONIC].count, 0u);
    cr_expect_str_eq(tally.left[CTL_WALL].first[0].text, "d");
    cr_expect_str_eq(tally.left[CTL_WALL].first[1].text, "f");
    cr_expect_str_eq(tally.left[CTL_WALL].first[2].text, "b");
}

Test(left, shows_no_control_characters_and_no_half_characters)
{
    char text[CTL_EXCERPT + 10];
    struct ctl_tally tally;
    const char *shown;

    memset(text, 'x', sizeof text);
    memcpy(text, "a\033[31m\x7f\0b", 9);
    memcpy(text + CTL_EXCERPT - 1, "\xc3\xa9", 2);
    ctl_tally_open(&tally);
    leave(&tally, 1, 1, text, sizeof text);
    shown = tally.left[CTL_WALL].first[0].text;
    cr_expect_eq(strncmp(shown, "a?[31m??bxx", 11), 0, "%s", shown);
    cr_expect_str_eq(shown + CTL_EXCERPT - 1, "...");
}

Test(duration, is_said_in_a_unit_that_fits)
{
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {
        { 0, "0 ns" },
        { 999, "999 ns" },
        { 1000, "1.0 us" },
        { 31250, "31.2 us" },
        { 999999, "999.9 us" },
        { DUE_MS(2), "2.0 ms" },
        { DUE_MS(59999), "59.9 s" },
        { DUE_S(61), "1 min 1 s" },
        { DUE_S(3 * 3600 + 120), "3 h 2 min" },
        { DUE_S(86400) * 30, "30 days" },
        { INT64_MAX, "106751 days" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[CTL_DURATION];

        cr_expect_str_eq(ctl_duration(text, cases[i].ns), cases[i].text);
    }
}
