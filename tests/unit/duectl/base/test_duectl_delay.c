/* test_duectl_delay.c - delays, and the lines of a schedule. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static struct ctl_entry entry_of(const char *line)
{
    struct ctl_entry entry;

    ctl_entry_read(&entry, line, strlen(line));
    return entry;
}

Test(delay, is_a_number_and_a_unit)
{
    static const struct {
        const char *line;
        int64_t ns;
    } cases[] = {
        { "7ns x", 7 },
        { "7us x", DUE_US(7) },
        { "250ms x", DUE_MS(250) },
        { "3s x", DUE_S(3) },
        { "2m x", DUE_S(120) },
        { "1h x", DUE_S(3600) },
        { "1d x", DUE_S(86400) },
        { "1.5s x", DUE_MS(1500) },
        { ".5s x", DUE_MS(500) },
        { "2.s x", DUE_S(2) },
        { "0s x", 0 },
        { "007s x", DUE_S(7) },
        { "1m30s x", DUE_S(90) },
        { "1d2h3m4s5ms6us7ns x", DUE_S(93784) + DUE_MS(5) + DUE_US(6) + 7 },
        { "1.5h30m x", DUE_S(7200) },
        { "  \t1s\t x", DUE_S(1) },
        { "36500d x", DUE_S(86400) * 36500 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ctl_entry entry = entry_of(cases[i].line);

        cr_expect_eq(entry.kind, CTL_DELAY, "%s", cases[i].line);
        cr_expect_eq(entry.ns, cases[i].ns, "%s", cases[i].line);
        cr_expect_str_eq(cases[i].line + entry.text, "x");
    }
}

Test(delay, is_rounded_up_to_nanoseconds)
{
    cr_expect_eq(entry_of("0.1ns x").ns, 1);
    cr_expect_eq(entry_of("1.0000000001s x").ns, DUE_S(1) + 1);
    cr_expect_eq(entry_of("0.00000000000000000000000001d x").ns, 1);
    cr_expect_eq(entry_of("0.00000000000000000000000000s x").ns, 0);
    cr_expect_eq(entry_of("0.333333333333333333333s x").ns, 333333334);
}

Test(delay, longer_than_the_clock_can_count_is_a_fault)
{
    static const char *const lines[] = {
        "106752d x",
        "9223372036854775807ns x",
        "9223372036854775808ns x",
        "99999999999999999999999999999999d x",
        "106751d106751h1000000m x",
    };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct ctl_entry entry = entry_of(lines[i]);

        cr_expect_eq(entry.kind, CTL_FAULT, "%s", lines[i]);
        cr_expect_eq(entry.column, 1u, "%s", lines[i]);
        cr_expect_not_null(strstr(entry.reason, "292 years"), "%s", lines[i]);
    }
    cr_expect_eq(entry_of("9223372036854775806ns x").ns, INT64_MAX - 1);
}

Test(line, that_is_blank_or_a_comment_is_nothing)
{
    cr_expect_eq(entry_of("").kind, CTL_NOTHING);
    cr_expect_eq(entry_of(" \t ").kind, CTL_NOTHING);
    cr_expect_eq(entry_of("#").kind, CTL_NOTHING);
    cr_expect_eq(entry_of("  # 1s x").kind, CTL_NOTHING);
}

Test(line, that_cannot_be_read_says_where_and_why)
{
    static const struct {
        const char *line;
        size_t column;
        const char *reason;
    } cases[] = {
        { "tea", 1, "begins with a time" },
        { "  tea", 3, "begins with a time" },
        { "-1s x", 1, "not negative" },
        { "1 x", 2, "expected a unit" },
        { "1x y", 2, "expected a unit" },
        { "1S y", 2, "expected a unit" },
        { "1.5 s x", 4, "expected a unit" },
        { ". x", 1, "expected a number" },
        { "1s,2 x", 3, "expected a number" },
        { "1s-2ms x", 3, "expected a number" },
        { "1e9s x", 2, "expected a unit" },
        { "1s1m x", 3, "large to small" },
        { "1s1s x", 3, "large to small" },
        { "1s", 3, "no text" },
        { "1s  ", 5, "no text" },
        { "@", 2, "expected a date" },
        { "@2026-13-01T00:00Z x", 7, "no such month" },
        { "@2026-12-01T08:00:00Zx x", 22, "does not end here" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ctl_entry entry = entry_of(cases[i].line);

        cr_expect_eq(entry.kind, CTL_FAULT, "%s", cases[i].line);
        cr_expect_eq(entry.column, cases[i].column, "%s: %zu", cases[i].line, entry.column);
        cr_expect_not_null(strstr(entry.reason, cases[i].reason), "%s: %s", cases[i].line,
                           entry.reason);
    }
}

Test(line, with_a_zero_byte_is_read_to_its_end)
{
    struct ctl_entry entry;

    ctl_entry_read(&entry, "1s a\0b", 6);
    cr_expect_eq(entry.kind, CTL_DELAY);
    cr_expect_eq(entry.text, 3u);
    ctl_entry_read(&entry, "1\0s a", 5);
    cr_expect_eq(entry.kind, CTL_FAULT);
    cr_expect_eq(entry.column, 2u);
}

/* Lines cut from an allocation of exactly their size, so that a sanitizer sees a read beyond. */
Test(line, of_any_bytes_is_read_within_its_bounds)
{
    static const char alphabet[] = "@0129-:.TZ+ smnuhd#\xff";
    uint32_t seed = 1;

    for (int round = 0; round < 200000; round++) {
        char stuff[40];
        struct ctl_entry entry;
        size_t len;
        char *line;

        seed = seed * 1664525 + 1013904223;
        len = (seed >> 16) % sizeof stuff;
        for (size_t i = 0; i < len; i++) {
            seed = seed * 1664525 + 1013904223;
            stuff[i] = alphabet[(seed >> 16) % (sizeof alphabet - 1)];
        }
        line = malloc(len);
        cr_assert(line != NULL || len == 0);
        memcpy(line, stuff, len);
        ctl_entry_read(&entry, line, len);
        cr_expect(entry.kind != CTL_FAULT || (entry.reason != NULL && entry.column <= len + 1));
        free(line);
    }
}
