/* test_duectl_date.c - dates, and timestamps in the lines of a log. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"

/* 2026-12-01T08:00:00Z */
static const int64_t MORNING = DUE_S(1796112000);

static void in_zone(const char *tz)
{
    setenv("TZ", tz, 1);
    tzset();
}

static bool date_of(const char *text, int64_t *ns, struct ctl_cursor *c)
{
    *c = (struct ctl_cursor){ .text = text, .len = strlen(text) };
    return ctl_date_read(c, ns);
}

Test(date, with_a_zone_is_the_same_everywhere)
{
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        { "2026-12-01T08:00:00Z", MORNING },
        { "2026-12-01t08:00:00z", MORNING },
        { "2026-12-01T08:00Z", MORNING },
        { "2026-12-01T10:00:00+02:00", MORNING },
        { "2026-12-01T10:00:00+0200", MORNING },
        { "2026-12-01T10:00:00+02", MORNING },
        { "2026-12-01T01:30:00-06:30", MORNING },
        { "2026-11-30T23:59:60Z", MORNING - DUE_S(8 * 3600) },
        { "2026-12-01T08:00:00.5Z", MORNING + DUE_MS(500) },
        { "2026-12-01T08:00:00,25Z", MORNING + DUE_MS(250) },
        { "2026-12-01T08:00:00.000000001Z", MORNING + 1 },
        { "1796112000", MORNING },
        { "1796112000.5", MORNING + DUE_MS(500) },
        { "1796112000.0000000001", MORNING + 1 },
        { "9223372036.854775807", INT64_MAX },
        { "1970-01-01T00:00:00Z", 0 },
        { "1969-12-31T23:59:59Z", -DUE_S(1) },
        { "2000-02-29T00:00:00Z", DUE_S(951782400) },
        { "2262-04-11T23:47:16.854775807Z", INT64_MAX },
    };

    in_zone("Asia/Tokyo");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ctl_cursor c;
        int64_t ns = 1;

        cr_expect(date_of(cases[i].text, &ns, &c), "%s", cases[i].text);
        cr_expect_eq(ns, cases[i].ns, "%s: %lld", cases[i].text, (long long)ns);
        cr_expect_eq(c.at, c.len, "%s", cases[i].text);
    }
}

Test(date, without_a_zone_is_local_time)
{
    struct ctl_cursor c;
    int64_t ns;

    in_zone("TST-2");
    cr_expect(date_of("2026-12-01T10:00:00", &ns, &c));
    cr_expect_eq(ns, MORNING);
    cr_expect(date_of("2026-12-01", &ns, &c));
    cr_expect_eq(ns, MORNING - DUE_S(10 * 3600));
    in_zone("UTC");
    cr_expect(date_of("1969-12-31T23:59:59", &ns, &c));
    cr_expect_eq(ns, -DUE_S(1));
}

/* Whether summer time is in force is for the day to say, not for who writes it. */
Test(date, without_a_zone_follows_summer_time)
{
    static const struct {
        const char *zone;
        const char *local;
        const char *utc;
    } cases[] = {
        { "CET-1CEST,M3.5.0,M10.5.0/3", "2026-01-15T12:00:00", "2026-01-15T11:00:00Z" },
        { "CET-1CEST,M3.5.0,M10.5.0/3", "2026-07-15T12:00:00", "2026-07-15T10:00:00Z" },
        { "CET-1CEST,M3.5.0,M10.5.0/3", "2026-07-15", "2026-07-14T22:00:00Z" },
        { "CET-1CEST,M3.5.0,M10.5.0/3", "2026-03-29T01:59:59", "2026-03-29T00:59:59Z" },
        { "CET-1CEST,M3.5.0,M10.5.0/3", "2026-03-29T03:00:00", "2026-03-29T01:00:00Z" },
        { "CET-1CEST,M3.5.0,M10.5.0/3", "2026-10-25T01:59:59", "2026-10-24T23:59:59Z" },
        { "CET-1CEST,M3.5.0,M10.5.0/3", "2026-10-25T03:00:00", "2026-10-25T02:00:00Z" },
        { "EST5EDT,M3.2.0,M11.1.0", "2026-07-15T12:00:00", "2026-07-15T16:00:00Z" },
        { "NZST-12NZDT,M9.5.0,M4.1.0/3", "2026-01-15T12:00:00", "2026-01-14T23:00:00Z" },
        { "NZST-12NZDT,M9.5.0,M4.1.0/3", "2026-07-15T12:00:00", "2026-07-15T00:00:00Z" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ctl_cursor c;
        int64_t local = 1;
        int64_t utc = 2;

        in_zone(cases[i].zone);
        cr_expect(date_of(cases[i].local, &local, &c), "%s", cases[i].local);
        cr_expect(date_of(cases[i].utc, &utc, &c));
        cr_expect_eq(local, utc, "%s in %s", cases[i].local, cases[i].zone);
    }
}

Test(date, is_rounded_up_to_nanoseconds)
{
    struct ctl_cursor c;
    int64_t ns;

    cr_expect(date_of("2026-12-01T08:00:00.0000000001Z", &ns, &c));
    cr_expect_eq(ns, MORNING + 1);
    cr_expect(date_of("2026-12-01T07:59:59.9999999999Z", &ns, &c));
    cr_expect_eq(ns, MORNING);
}

Test(date, that_does_not_exist_is_a_fault_with_its_place)
{
    static const struct {
        const char *text;
        size_t at;
    } cases[] = {
        { "tomorrow", 0 },
        { "26-12-01T08:00:00Z", 0 },
        { "2026-12", 7 },
        { "2026-00-01T08:00:00Z", 5 },
        { "2026-12-32T08:00:00Z", 8 },
        { "2026-02-29T08:00:00Z", 8 },
        { "1900-02-29T08:00:00Z", 8 },
        { "2026-12-01T24:00:00Z", 11 },
        { "2026-12-01T08-00", 13 },
        { "2026-12-01T08:60:00Z", 14 },
        { "2026-12-01T08:00:61Z", 17 },
        { "2026-12-01T08:00:00+2", 20 },
        { "2026-12-01T08:00:00+02:60", 23 },
        { "2262-04-11T23:47:16.854775808Z", 0 },
        { "9999-12-31T23:59:59Z", 0 },
        { "0000-01-01T00:00:00Z", 0 },
        { "0001-01-01T00:00:00", 0 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ctl_cursor c;
        int64_t ns;

        cr_expect_not(date_of(cases[i].text, &ns, &c), "%s", cases[i].text);
        cr_expect_not_null(c.reason, "%s", cases[i].text);
        cr_expect_eq(c.at, cases[i].at, "%s: %zu", cases[i].text, c.at);
    }
}

static bool stamp_of(const char *line, int64_t *ns)
{
    return ctl_stamp_find(line, strlen(line), ns);
}

Test(stamp, is_found_wherever_it_stands_in_a_line)
{
    static const char *const lines[] = {
        "2026-12-01T08:00:00Z started",
        "2026-12-01 08:00:00 started",
        "2026-12-01 08:00:00,000 INFO started",
        "2026-12-01 10:00:00 +0200 started",
        "2026-12-01 10:00:00.000+02:00 started",
        "2026-12-01T08:00:00 -> started",
        "2026-12-01T08:00:00-app started",
        "[2026-12-01T08:00:00Z] started",
        "level=info ts=2026-12-01T08:00:00Z msg=started",
        "{\"time\":\"2026-12-01T08:00:00.000Z\"}",
        "1.2.3-04 10-20 2026-12-01T08:00:00Z",
        "192.0.2.1 - - [01/Dec/2026:00:00:00 -0800] \"GET / HTTP/1.0\" 200 2326",
        "[x] [[01/Dec/2026:08:00:00 +0000]",
        "[01/Dec/2026:08:00:00]",
    };

    in_zone("UTC");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        int64_t ns = 0;

        cr_expect(stamp_of(lines[i], &ns), "%s", lines[i]);
        cr_expect_eq(ns, MORNING, "%s: %lld", lines[i], (long long)ns);
    }
}

Test(stamp, of_the_common_log_format_has_its_own_zone)
{
    int64_t ns;

    in_zone("Asia/Tokyo");
    cr_expect(stamp_of("a [10/Oct/2000:13:55:36 -0700] b", &ns));
    cr_expect_eq(ns, DUE_S(971211336));
}

Test(stamp, is_not_seen_where_there_is_none)
{
    static const char *const lines[] = {
        "",
        "    at com.example.Queue.take(Queue.java:42)",
        "2026-12-01 no time of day",
        "12026-12-01T08:00:00Z",
        "x2026-12-01T08:00:00Z",
        "2026-13-01T08:00:00Z",
        "[10/Okt/2000:13:55:36 -0700]",
        "[32/Oct/2000:13:55:36 -0700]",
        "[31/Nov/2000:13:55:36 -0700]",
        "[10/Oct/2000:13:55:36 -0700",
        "[10/Oct/2000:13:55:36 PST]",
        "[10/Oct/2000]",
        "[10/Oc",
    };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        int64_t ns;

        cr_expect_not(stamp_of(lines[i], &ns), "%s", lines[i]);
    }
}

/* Lines cut from an allocation of exactly their size, so that a sanitizer sees a read beyond. */
Test(stamp, is_looked_for_within_the_bounds_of_any_bytes)
{
    static const char whole[] = "x 2026-12-01 08:00:00,123 +0200 [10/Oct/2000:13:55:36 -0700] \xff";

    for (size_t from = 0; from < sizeof whole; from++) {
        for (size_t to = from; to < sizeof whole; to++) {
            char *line = malloc(to - from);
            int64_t ns;

            cr_assert(line != NULL || to == from);
            memcpy(line, whole + from, to - from);
            (void)ctl_stamp_find(line, to - from, &ns);
            free(line);
        }
    }
}
