/* Files of time zones, and rules: also such as nobody should have written. */
#define _GNU_SOURCE
#include <errno.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "calendar/civil.h"
#include "calendar/zone.h"
#include "due/base.h"

/* A file that is written byte by byte. */
struct made {
    unsigned char bytes[1024];
    size_t len;
};

static void add(struct made *m, const void *bytes, size_t n)
{
    cr_assert_leq(m->len + n, sizeof m->bytes);
    memcpy(m->bytes + m->len, bytes, n);
    m->len += n;
}

static void add_number(struct made *m, int64_t value, size_t n)
{
    for (size_t i = n; i-- > 0;)
        add(m, &(unsigned char){ i < 8 ? (unsigned char)((uint64_t)value >> 8 * i) : 0 }, 1);
}

static void add_header(struct made *m, char version, const uint32_t counts[6])
{
    add(m, "TZif", 4);
    add(m, &version, 1);
    add_number(m, 0, 15);
    for (size_t i = 0; i < 6; i++)
        add_number(m, counts[i], 4);
}

/* An hour to the east, two from second 1000 to 2000, and then as the rule says. */
static void add_body(struct made *m, char version, size_t width)
{
    add_header(m, version, (const uint32_t[]){ 0, 0, 0, 2, 2, 4 });
    add_number(m, 1000, width);
    add_number(m, 2000, width);
    add(m, "\1\0", 2);
    add_number(m, 3600, 4);
    add(m, "\0\0", 2);
    add_number(m, 7261, 4); /* and a minute and a second */
    add(m, "\1\0", 2);
    add(m, "ABC", 4);
}

static struct made made_file(const char *rule)
{
    struct made m = { .len = 0 };

    add_body(&m, rule == NULL ? '\0' : '2', 4);
    if (rule == NULL)
        return m;
    add_body(&m, '2', 8);
    add(&m, "\n", 1);
    add(&m, rule, strlen(rule));
    add(&m, "\n", 1);
    return m;
}

static int open_made(struct due__zone *z, const struct made *m, size_t len)
{
    int fd = memfd_create("zone", MFD_CLOEXEC);

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, m->bytes, len), (ssize_t)len);
    int rc = due__zone_open_file(z, fd);
    if (rc != 0)
        close(fd);
    return rc;
}

static void expect_span(struct due__zone *z, int64_t at, int64_t from, int64_t until, int64_t east)
{
    struct due__zone_span s;

    cr_assert_eq(due__zone_at(z, at, &s), 0);
    cr_expect(s.from == from && s.until == until && s.east == east, "at %lld: %lld to %lld, %lld",
              (long long)at, (long long)s.from, (long long)s.until, (long long)s.east);
}

Test(zone, is_read_in_both_widths)
{
    for (int wide = 0; wide < 2; wide++) {
        struct made m = made_file(wide ? "ABC-1" : NULL);
        struct due__zone z;

        cr_assert_eq(open_made(&z, &m, m.len), 0);
        expect_span(&z, -5, INT64_MIN, 1000, 3600);
        expect_span(&z, 999, INT64_MIN, 1000, 3600);
        expect_span(&z, 1000, 1000, 2000, 7261);
        expect_span(&z, 1999, 1000, 2000, 7261);
        expect_span(&z, 2000, 2000, INT64_MAX, 3600);
        expect_span(&z, INT64_MAX - 1, 2000, INT64_MAX, 3600);
        due__zone_close(&z);
    }
}

Test(zone, goes_on_by_its_rule_behind_the_last_change)
{
    struct made m = made_file("ABC-1DEF,J60,J300");
    struct due__zone z;
    int64_t begins = INT64_C(59) * 86400 + 3600;

    cr_assert_eq(open_made(&z, &m, m.len), 0);
    expect_span(&z, 3000, 2000, begins, 3600);
    expect_span(&z, begins, begins, INT64_C(299) * 86400, 7200);
    due__zone_close(&z);
}

Test(zone, that_is_cut_off_is_refused_wherever, .timeout = 60)
{
    struct made m = made_file("ABC-1DEF,J60,J300");
    struct due__zone z;

    for (size_t len = 0; len < m.len; len++) {
        errno = EINTR; /* of an earlier call: it says nothing of the end of a file */
        cr_expect_eq(open_made(&z, &m, len), DUE_ECORRUPT, "%zu of %zu", len, m.len);
    }
    m = made_file(NULL);
    for (size_t len = 0; len < m.len; len++) {
        struct due__zone_span s;
        int rc = open_made(&z, &m, len);

        cr_expect(rc == 0 || rc == DUE_ECORRUPT);
        if (rc != 0)
            continue;
        for (int64_t at = 500; at < 3000 && rc == 0; at += 1000)
            rc = due__zone_at(&z, at, &s);
        cr_expect(rc == DUE_ECORRUPT || len >= m.len - 6, "%zu of %zu", len, m.len);
        due__zone_close(&z);
    }
}

/* Any byte with any of some values: an answer or an error, and never a span without its time. */
Test(zone, makes_sense_or_is_refused_whatever_its_bytes)
{
    static const unsigned char values[] = { 0, 1, 2, 0x7f, 0x80, 0xff };

    for (size_t i = 0; i < 2 * sizeof values * 300; i++) {
        struct made m = made_file(i % 2 == 0 ? "ABC-1DEF,J60,J300" : NULL);
        size_t byte = i / 2 / sizeof values;
        struct due__zone z;
        struct due__zone_span s;

        if (byte >= m.len)
            continue;
        m.bytes[byte] = values[i / 2 % sizeof values];
        if (open_made(&z, &m, m.len) != 0)
            continue;
        for (int64_t at = 0; at < 4000; at += 500) {
            int rc = due__zone_at(&z, at, &s);

            cr_assert(rc == DUE_ECORRUPT || (rc == 0 && s.from <= at && at < s.until),
                      "byte %zu is %d: at %lld", byte, values[i / 2 % sizeof values],
                      (long long)at);
        }
        due__zone_close(&z);
    }
}

Test(zone, with_leap_seconds_or_without_a_kind_is_refused)
{
    struct made m = made_file(NULL);
    struct due__zone z;

    m.bytes[31] = 1; /* a leap second */
    cr_expect_eq(open_made(&z, &m, m.len), DUE_ECORRUPT);
    m = made_file(NULL);
    m.bytes[39] = 0; /* no kind */
    cr_expect_eq(open_made(&z, &m, m.len), DUE_ECORRUPT);
    m = made_file(NULL);
    m.bytes[36] = 0x40; /* so many that sizes might overflow */
    cr_expect_eq(open_made(&z, &m, m.len), DUE_ECORRUPT);
    cr_expect_eq(due__zone_open(&z, "right/Europe/Berlin") == 0, 0);
}

/* Where the numbers of a narrow file with two changes stand. */
enum { OF_UTC = 20, KINDS = 36, KIND_OF_FIRST = 52, EAST_OF_FIRST = 54, LETTERS = 66 };

static void set_number(struct made *m, size_t at, int64_t value)
{
    size_t len = m->len;

    m->len = at;
    add_number(m, value, 4);
    m->len = len;
}

Test(zone, has_only_the_kinds_that_it_says_it_has)
{
    struct made m = made_file(NULL);
    struct due__zone z;
    struct due__zone_span s;

    m.bytes[KIND_OF_FIRST] = 2;
    set_number(&m, LETTERS, 0); /* they would be one of UTC */
    cr_assert_eq(open_made(&z, &m, m.len), 0);
    cr_expect_eq(due__zone_at(&z, 1500, &s), DUE_ECORRUPT);
    cr_expect_eq(due__zone_at(&z, 2500, &s), 0);
    due__zone_close(&z);
}

Test(zone, is_ahead_of_utc_or_behind_it_by_no_more_than_26_hours)
{
    for (int64_t more = 0; more < 2; more++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            struct made m = made_file(NULL);
            struct due__zone z;
            struct due__zone_span s;

            set_number(&m, EAST_OF_FIRST, sign * (26 * 3600 + more));
            cr_assert_eq(open_made(&z, &m, m.len), 0);
            cr_expect_eq(due__zone_at(&z, 0, &s), more == 0 ? 0 : DUE_ECORRUPT);
            due__zone_close(&z);
        }
    }
}

Test(zone, has_counts_that_are_not_too_large)
{
    struct made m = made_file(NULL);
    struct due__zone z;

    set_number(&m, OF_UTC, 1 << 20);
    cr_assert_eq(open_made(&z, &m, m.len), 0);
    due__zone_close(&z);
    set_number(&m, OF_UTC, (1 << 20) + 1);
    cr_expect_eq(open_made(&z, &m, m.len), DUE_ECORRUPT);
    m = made_file(NULL);
    set_number(&m, KINDS, 256);
    cr_assert_eq(open_made(&z, &m, m.len), 0);
    due__zone_close(&z);
    set_number(&m, KINDS, 257);
    cr_expect_eq(open_made(&z, &m, m.len), DUE_ECORRUPT);
}

Test(zone, goes_on_unchanged_if_its_rule_is_empty)
{
    struct made m = made_file("");
    struct due__zone z;

    cr_assert_eq(open_made(&z, &m, m.len), 0);
    expect_span(&z, 5000, 2000, INT64_MAX, 3600);
    due__zone_close(&z);
}

Test(zone, with_a_rule_that_is_too_long_is_refused)
{
    char rule[200] = "ABC-1";
    struct due__zone z;

    memset(rule + 5, ' ', sizeof rule - 6);
    rule[sizeof rule - 1] = '\0';
    struct made m = made_file(rule);
    cr_expect_eq(open_made(&z, &m, m.len), DUE_ECORRUPT);
}

Test(zone, that_cannot_be_read_is_said_to_be_so, .timeout = 60)
{
    struct due__zone z;
    int file = memfd_create("zone", MFD_CLOEXEC);
    char path[32];

    cr_assert_geq(file, 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    cr_expect_eq(due__zone_open_file(&z, fd), DUE_ESYS);
    cr_expect_eq(z.fd, -1, "it is the caller's still");
    close(fd);
    close(file);
}

Test(zone, of_utc_needs_no_file)
{
    struct due__zone z;

    cr_assert_eq(due__zone_open(&z, "UTC"), 0);
    cr_expect_eq(z.fd, -1);
    expect_span(&z, 0, INT64_MIN, INT64_MAX, 0);
}

Test(zone, is_no_directory_and_no_pipe)
{
    struct due__zone z;
    int ends[2];

    cr_assert_eq(pipe(ends), 0);
    cr_expect_eq(due__zone_open_file(&z, ends[0]), DUE_ECORRUPT);
    cr_expect_eq(due__zone_open(&z, "Europe"), DUE_ECORRUPT);
    close(ends[0]);
    close(ends[1]);
}

static const char *const no_rules[] = {
    "",
    "A",
    "AB-1",
    "ABC",
    "ABC-",
    "ABC-25",
    "ABC-1:60",
    "<ABC-1",
    "ABC-1DEF",
    "ABC-1DEF,",
    "ABC-1DEF,M3.5.0",
    "ABC-1DEF,M3.5.0,",
    "ABC-1DEF,M13.5.0,M10.5.0",
    "ABC-1DEF,M3.6.0,M10.5.0",
    "ABC-1DEF,M3.5.7,M10.5.0",
    "ABC-1DEF,M3.5,M10.5.0",
    "ABC-1DEF,J0,J300",
    "ABC-1DEF,J366,J300",
    "ABC-1DEF,366,3",
    "ABC-1DEF,3,3x",
    "ABC-1DEF,M3.5.0/168,M10.5.0",
    "ABC-1 ",
    "ABC-1DE,3,4",
    "ABC-1,3,4",
    "ABC-1DEF,M3.5.0/,M10.5.0",
    "ABC-0001",
    "ABC-1:0:0:0",
    "ABC-1DEF,M0003.5.0,M10.5.0",
};

Test(rule, is_refused_unless_it_is_one)
{
    struct due__zone_rule rule;

    for (size_t i = 0; i < sizeof no_rules / sizeof no_rules[0]; i++) {
        size_t len = strlen(no_rules[i]);
        char *alone = malloc(len + (len == 0)); /* AddressSanitizer sees who reads behind it */

        cr_assert_not_null(alone);
        memcpy(alone, no_rules[i], len);
        cr_expect_not(due__zone_rule_read(&rule, alone, len), "%s", no_rules[i]);
        free(alone);
    }
    cr_expect(due__zone_rule_read(&rule, "ABC-1xyz", 5), "it reads behind its end");
    cr_expect_eq(rule.east, 3600);
    cr_expect(due__zone_rule_read(&rule, "AZaz-1", 6));
    cr_expect(due__zone_rule_read(&rule, "ABC-12", 5), "it reads a digit behind its end");
    cr_expect_eq(rule.east, 3600);
}

/* Each hour of many years, as the C library has it. */
Test(rule, says_what_the_c_library_says)
{
    static const char *const rules[] = {
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "EST5EDT,M3.2.0,M11.1.0",
        "IST-1GMT0,M10.5.0,M3.5.0/1",
        "AAA+10BBB,J60/2,300/2:30:15",
        "<+01>-1",
        "<-03>3<-02>,M3.5.0/-2,M10.5.0/-1",

        "ABC-5:00:15",
        "AAA-1BBB,J1,M12.5.6",
        "AAA-1BBB,M1.2.1,J365",
        "ABC-5:30:15DEF-6,M4.1.0/0,M9.4.6/24",
        "NZST-12NZDT,M9.5.0,M4.1.0/3",

        /* around 29 February */
        "AAA-1BBB,J59/0,J300",
        "AAA-1BBB,J300,J60/24",
        "AAA-1BBB,58,59",
        "AAA-1BBB,60/1,J59/23:59:59",
    };

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        struct due__zone_rule rule;

        cr_assert(due__zone_rule_read(&rule, rules[i], strlen(rules[i])));
        setenv("TZ", rules[i], 1);
        tzset();
        for (int64_t at = 0; at < INT64_C(300) * 366 * 86400; at += 3600 * 7 + 1) {
            time_t seconds = at;
            struct tm tm;
            struct due__zone_span s = due__zone_rule_at(&rule, at);

            localtime_r(&seconds, &tm);
            cr_assert_eq(s.east, tm.tm_gmtoff, "%s at %lld: %lld, not %ld", rules[i], (long long)at,
                         (long long)s.east, tm.tm_gmtoff);
            cr_assert(s.from <= at && at < s.until);
        }
    }
}

/* As files have it that were written in the first years of that form. */
Test(rule, may_say_that_it_is_summer_all_the_time)
{
    struct due__zone_rule rule;

    cr_assert(due__zone_rule_read(&rule, "EST5EDT,0/0,J365/25", 19));
    for (int64_t at = 0; at < INT64_C(20) * 366 * 86400; at += 3600)
        cr_assert_eq(due__zone_rule_at(&rule, at).east, -4 * 3600, "at %lld", (long long)at);
}

Test(zone, names_that_are_too_long_are_refused)
{
    struct due__zone z;
    char name[300];

    memset(name, 'A', sizeof name);
    name[256] = '\0';
    cr_expect_eq(due__zone_open(&z, name), DUE_EINVAL);
    due__zone_close(&z);
}

/* Whatever that is here: where there is none, it is no name and no rule. */
Test(zone, may_be_that_of_this_machine)
{
    struct due__zone z;
    bool there = access("/etc/localtime", R_OK) == 0;

    cr_expect_eq(due__zone_open(&z, "localtime"), there ? 0 : DUE_EINVAL);
    due__zone_close(&z);
}

Test(civil, days_and_dates_are_those_of_the_c_library)
{
    for (int64_t day = -1000; day < 120000; day++) {
        time_t seconds = day * 86400;
        struct due__date date = due__date_of(day);
        struct tm tm;

        gmtime_r(&seconds, &tm);
        cr_assert(date.year == tm.tm_year + 1900 && date.month == tm.tm_mon + 1 &&
                      date.day == tm.tm_mday,
                  "day %lld", (long long)day);
        cr_assert_eq(due__day_number(date), day);
        cr_assert_eq(due__weekday(day), tm.tm_wday);
    }
}

Test(civil, a_month_has_as_many_days_as_come_before_the_next)
{
    for (int64_t day = 0; day < 120000; day++) {
        struct due__date date = due__date_of(day);
        bool last = due__date_of(day + 1).day == 1;
        int days = due__month_days(date.year, date.month);

        cr_assert(last ? date.day == days : date.day < days, "day %lld", (long long)day);
    }
}

Test(civil, division_rounds_down)
{
    static const int64_t wanted[] = { -3, -2, -2, -2, -1, -1, -1, 0, 0, 0, 1, 1, 1, 2 };

    for (int64_t i = 0; i < (int64_t)(sizeof wanted / sizeof wanted[0]); i++)
        cr_expect_eq(due__floor(i - 7, 3), wanted[i], "%lld", (long long)(i - 7));
}
