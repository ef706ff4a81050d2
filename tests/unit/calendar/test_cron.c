/* What cron expressions name, and what is said of those that are none. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "due/cron.h"

#define YEAR_2026 INT64_C(1767225600) /* its beginning in UTC; a Thursday */

static int64_t at(const char *utc)
{
    struct tm tm = { .tm_isdst = 0 };

    cr_assert_not_null(strptime(utc, "%Y-%m-%d %H:%M:%S", &tm));
    return (int64_t)timegm(&tm) * DUE_S(1);
}

/* It comes at these instants one after the other, from just before the first on. */
static void comes(const char *expression, const char *zone, const char *const *utc, size_t n)
{
    int64_t now = at(utc[0]) - 1;

    for (size_t i = 0; i < n; i++) {
        int64_t next = -1;

        cr_assert_eq(due_cron_next(expression, zone, now, &next), 0, "%s", expression);
        cr_expect_eq(next, at(utc[i]), "%s in %s: %lld, not %s", expression, zone,
                     (long long)(next / DUE_S(1)), utc[i]);
        now = next;
    }
}
#define COMES(expression, zone, ...)                              \
    comes(expression, zone, (const char *const[]){ __VA_ARGS__ }, \
          sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

Test(cron, names_the_next_instant_and_never_the_given_one)
{
    COMES("30 8 * * *", "UTC", "2026-01-01 08:30:00", "2026-01-02 08:30:00");
    COMES("*/20 9-10 * * *", NULL, "2026-01-01 09:00:00", "2026-01-01 09:20:00",
          "2026-01-01 09:40:00", "2026-01-01 10:00:00", "2026-01-01 10:20:00",
          "2026-01-01 10:40:00", "2026-01-02 09:00:00");
    COMES("0 0 29 FEB *", "UTC", "2096-02-29 00:00:00", "2104-02-29 00:00:00");
    COMES("5,4,3-4 0 1 1 *", "UTC", "2026-01-01 00:03:00", "2026-01-01 00:04:00",
          "2026-01-01 00:05:00", "2027-01-01 00:03:00");
    COMES(" \t0  0\t31 * * ", "UTC", "2026-01-31 00:00:00", "2026-03-31 00:00:00",
          "2026-05-31 00:00:00");
}

Test(cron, knows_the_words)
{
    COMES("@hourly", "UTC", "2026-01-01 00:00:00", "2026-01-01 01:00:00");
    COMES("@daily", "UTC", "2026-01-01 00:00:00", "2026-01-02 00:00:00");
    COMES(" @midnight ", "UTC", "2026-01-01 00:00:00", "2026-01-02 00:00:00");
    COMES("@weekly", "UTC", "2026-01-04 00:00:00", "2026-01-11 00:00:00");
    COMES("@monthly", "UTC", "2026-01-01 00:00:00", "2026-02-01 00:00:00");
    COMES("@yearly", "UTC", "2026-01-01 00:00:00", "2027-01-01 00:00:00");
    COMES("@annually", "UTC", "2026-01-01 00:00:00", "2027-01-01 00:00:00");
}

Test(cron, fits_either_day_if_both_are_restricted_else_both)
{
    COMES("0 0 13 * FRI", "UTC", "2026-01-02 00:00:00", "2026-01-09 00:00:00",
          "2026-01-13 00:00:00", "2026-01-16 00:00:00");
    COMES("0 0 */2 * fri", "UTC", "2026-01-09 00:00:00", "2026-01-23 00:00:00",
          "2026-02-13 00:00:00");
    COMES("0 0 * * 6-7", "UTC", "2026-01-03 00:00:00", "2026-01-04 00:00:00",
          "2026-01-10 00:00:00");
    COMES("0 0 * * Sat-sUN", "UTC", "2026-01-03 00:00:00", "2026-01-04 00:00:00",
          "2026-01-10 00:00:00");
    COMES("0 0 30 2 TUE", "UTC", "2026-02-03 00:00:00", "2026-02-10 00:00:00");
}

/* Berlin goes from 02:00 to 03:00 on 29 March 2026, and from 03:00 to 02:00 on 25 October. */
Test(cron, comes_behind_the_gap_if_its_time_is_skipped)
{
    COMES("30 2 * * *", "Europe/Berlin", "2026-03-28 01:30:00", "2026-03-29 01:00:00",
          "2026-03-30 00:30:00");
    COMES("*/15 2 * * *", "Europe/Berlin", "2026-03-28 01:45:00", "2026-03-29 01:00:00",
          "2026-03-30 00:00:00");
    COMES("0 2-3 * * *", "Europe/Berlin", "2026-03-28 02:00:00", "2026-03-29 01:00:00",
          "2026-03-30 00:00:00");
    /* by half an hour, from 02:00 to 02:30 */
    COMES("10 2 * * *", "Australia/Lord_Howe", "2026-10-02 15:40:00", "2026-10-03 15:30:00",
          "2026-10-04 15:10:00");
}

Test(cron, comes_once_if_its_time_comes_twice)
{
    COMES("30 2 * * *", "Europe/Berlin", "2026-10-24 00:30:00", "2026-10-25 00:30:00",
          "2026-10-26 01:30:00");
    COMES("0 */2 * * *", "Europe/Berlin", "2026-10-24 22:00:00", "2026-10-25 00:00:00",
          "2026-10-25 03:00:00");
    /* asked in the hour that comes for the second time */
    COMES("0 3 * * *", "Europe/Berlin", "2026-10-25 02:00:00");
    COMES("0 1 * * *", "America/New_York", "2026-11-01 05:00:00", "2026-11-02 06:00:00");
}

Test(cron, goes_on_with_every_hour)
{
    COMES("30 * * * *", "Europe/Berlin", "2026-03-29 00:30:00", "2026-03-29 01:30:00",
          "2026-03-29 02:30:00");
    COMES("30 * * * *", "Europe/Berlin", "2026-10-24 23:30:00", "2026-10-25 00:30:00",
          "2026-10-25 01:30:00", "2026-10-25 02:30:00");
    COMES("15 0-23/1 * * *", "Europe/Berlin", "2026-10-25 00:15:00", "2026-10-25 01:15:00");
    COMES("*/30 * * * *", "Australia/Lord_Howe", "2026-04-04 14:00:00", "2026-04-04 14:30:00",
          "2026-04-04 15:00:00", "2026-04-04 15:30:00", "2026-04-04 16:00:00");
    COMES("0 * * * *", "Asia/Kathmandu", "2026-01-01 00:15:00", "2026-01-01 01:15:00");
}

/* A day that Samoa left out: 30 December 2011. */
Test(cron, comes_behind_a_day_that_is_left_out)
{
    COMES("0 12 * * *", "Pacific/Apia", "2011-12-29 22:00:00", "2011-12-30 10:00:00",
          "2011-12-30 22:00:00");
}

static const struct {
    const char *expression;
    const char *zone;
    size_t at;
    const char *says;
} wrong[] = {
    { "", "UTC", 0, "fewer than five fields" },
    { "* * * *", "UTC", 7, "fewer than five fields" },
    { "* * * * * *", "UTC", 10, "more than five fields" },
    { "60 * * * *", "UTC", 0, "no such minute" },
    { "0 24 * * *", "UTC", 2, "no such hour" },
    { "0 0 0 * *", "UTC", 4, "no such day of a month" },
    { "0 0 32 * *", "UTC", 4, "no such day of a month" },
    { "0 0 * 13 *", "UTC", 6, "no such month" },
    { "0 0 * 0 *", "UTC", 6, "no such month" },
    { "0 0 * --- *", "UTC", 6, "no such month" },
    { "0 0 * JUX *", "UTC", 6, "no such month" },
    { "0 0 * MON *", "UTC", 6, "no such month" },
    { "0 0 * * 8", "UTC", 8, "no such day of a week" },
    { "0 0 * * MO", "UTC", 8, "no such day of a week" },
    { "0 0 * * MONDAY", "UTC", 11, "expected a comma" },
    { "0 0 * * SUN5", "UTC", 11, "expected a comma" },
    { "JAN 0 * * *", "UTC", 0, "no such minute" },
    { "-5 0 * * *", "UTC", 0, "no such minute" },
    { "5- 0 * * *", "UTC", 2, "no such minute" },
    { "5, 0 * * *", "UTC", 2, "no such minute" },
    { ",5 0 * * *", "UTC", 0, "no such minute" },
    { "9-5 0 * * *", "UTC", 0, "a range goes up" },
    { "5/15 0 * * *", "UTC", 1, "a step stands behind" },
    { "*/0 0 * * *", "UTC", 2, "a step is a number" },
    { "*/ 0 * * *", "UTC", 2, "a step is a number" },
    { "*/99999 0 * * *", "UTC", 2, "a step is a number" },
    { "99999999999 0 * * *", "UTC", 0, "no such minute" },
    { "00005 0 * * *", "UTC", 0, "no such minute" },
    { "0005 0 * * *", "UTC", SIZE_MAX, NULL },
    { "** 0 * * *", "UTC", 1, "expected a comma" },
    { "0 0 ? * *", "UTC", 4, "no such day" },
    { "0 0 L * *", "UTC", 4, "no such day" },
    { "0\n0 * * *", "UTC", 1, "expected a comma" },
    { "0 0 30 2 *", "UTC", 4, "none of the months" },
    { "0 0 31 2,4,6,9,11 *", "UTC", 4, "none of the months" },
    { "0 0 */30 2 SUN", NULL, SIZE_MAX, NULL }, /* the first of February */
    { "@reboot", "UTC", 0, "no such word" },
    { "@dailyx", "UTC", 0, "no such word" },
    { "@", "UTC", 0, "no such word" },
    { "@daily x", "UTC", 7, "more than one word" },
    { "@daily", "Mars/Olympus", 6, "no such time zone" },
    { "@daily", "", 6, "no such time zone" },
    { "@daily", "../../etc/passwd", 6, "no such time zone" },
    { "@daily", "/etc/localtime", 6, "no such time zone" },
    { "@daily", "Europe", 6, "makes no sense" },
    { "@daily", "CET", SIZE_MAX, NULL },
    { "@daily", "XYZ", 6, "no such time zone" },
    { "@daily", "/Europe/Berlin", 6, "no such time zone" },
    { "@daily", "Europe/../Europe/Berlin", 6, "no such time zone" },
    { "@daily", "Europe/Berlin/x", 6, "no such time zone" },
    { "@daily", "UTD", 6, "no such time zone" },
    { "@daily", "localtimf", 6, "no such time zone" },
    { "@daily", "Europe/Zurich", SIZE_MAX, NULL },
    { "@daily", "America/La_Paz", SIZE_MAX, NULL },
    { "@daily", "Etc/GMT+9", SIZE_MAX, NULL },
    { "@daily", "Etc/GMT-10", SIZE_MAX, NULL },
};

Test(cron, says_what_is_wrong_and_where)
{
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        size_t where = SIZE_MAX;
        int64_t next = 42;
        const char *text = due_cron_error(wrong[i].expression, wrong[i].zone, &where);
        int rc = due_cron_next(wrong[i].expression, wrong[i].zone, 0, &next);

        if (wrong[i].says == NULL) {
            cr_expect_null(text, "%s: %s", wrong[i].expression, text);
            cr_expect_eq(rc, 0);
            continue;
        }
        cr_assert_not_null(text, "%s in %s", wrong[i].expression, wrong[i].zone);
        cr_expect_not_null(strstr(text, wrong[i].says), "%s in %s: %s", wrong[i].expression,
                           wrong[i].zone, text);
        cr_expect_eq(where, wrong[i].at, "%s: %zu", wrong[i].expression, where);
        cr_expect_eq(due_cron_error(wrong[i].expression, wrong[i].zone, NULL), text);
        cr_expect_lt(rc, 0);
        cr_expect_eq(next, 42, "a call that failed has changed something");
    }
}

Test(cron, refuses_a_time_before_1970_and_ends_with_time)
{
    int64_t next = 42;

    cr_expect_eq(due_cron_next("@daily", "UTC", -1, &next), DUE_EINVAL);
    cr_expect_eq(due_cron_next("@daily", "UTC", DUE_FOREVER, &next), DUE_ELIMIT);
    cr_expect_eq(due_cron_next("@hourly", "Europe/Berlin", DUE_FOREVER, &next), DUE_ELIMIT);
    cr_expect_eq(due_cron_next("0 0 29 2 *", "UTC", at("2260-02-29 00:00:00"), &next), DUE_ELIMIT);
    cr_expect_eq(next, 42);
    cr_expect_eq(due_cron_next("@daily", "UTC", at("2262-04-09 12:00:00"), &next), 0);
    cr_expect_eq(next, at("2262-04-10 00:00:00"));
    cr_expect_eq(due_cron_next("@hourly", "Pacific/Apia", 0, &next), 0);
    cr_expect_eq(due_cron_next("0 23 * * *", "Pacific/Apia", 0, &next), 0);
}

/* Local times before 1970, to the west. */
Test(cron, comes_in_the_first_hours_of_time)
{
    COMES("30 * * * *", "EST5", "1970-01-01 00:30:00", "1970-01-01 01:30:00");
    COMES("30 20 * * *", "EST5", "1970-01-01 01:30:00", "1970-01-02 01:30:00");
}

/* Who began far before would be asked for minutes. */
Test(cron, does_not_begin_far_before, .timeout = 60)
{
    int64_t next = 0;

    for (int i = 0; i < 100; i++)
        cr_assert_eq(due_cron_next("* 0-22 * * *", "UTC", at("2262-01-01 12:00:00"), &next), 0);
    cr_expect_eq(next, at("2262-01-01 12:01:00"));
}

/* Whatever TZ says; and it is not touched. */
Test(cron, does_not_look_at_the_environment)
{
    int64_t next;

    setenv("TZ", "America/New_York", 1);
    tzset();
    cr_assert_eq(due_cron_next("0 12 * * *", "Asia/Kathmandu", YEAR_2026 * DUE_S(1), &next), 0);
    cr_expect_eq(next, at("2026-01-01 06:15:00"));
    cr_expect_str_eq(getenv("TZ"), "America/New_York");
    cr_expect_eq(timezone, 5 * 3600);
}

/* In each thread another zone, all at once. */
static void *ask_often(void *arg)
{
    const char *const *zone = arg;
    int64_t first;
    int64_t next;
    int wrong_ones = due_cron_next("30 2 * * *", *zone, YEAR_2026 * DUE_S(1), &first) != 0;

    for (int i = 0; i < 200; i++)
        wrong_ones +=
            due_cron_next("30 2 * * *", *zone, YEAR_2026 * DUE_S(1), &next) != 0 || next != first;
    return wrong_ones == 0 ? NULL : arg;
}

Test(cron, may_be_asked_by_many_threads)
{
    static const char *zones[] = { "Europe/Berlin", "America/New_York", "Asia/Kathmandu", NULL };
    pthread_t threads[4];
    void *failed;

    for (size_t i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, ask_often, &zones[i]), 0);
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], &failed);
        cr_expect_null(failed);
    }
}

#ifdef __GLIBC__ /* musl does not say how much is out */
Test(cron, allocates_nothing)
{
    int64_t next;
    size_t before = mallinfo2().uordblks;

    for (int i = 0; i < 100; i++)
        cr_assert_eq(due_cron_next("30 2 * * *", "Europe/Berlin", YEAR_2026 * DUE_S(1), &next), 0);
    cr_expect_eq(mallinfo2().uordblks, before);
}
#endif

/* Also where the first one is 0. */
Test(cron, leaves_no_file_open)
{
    static const char *const zones[] = { "Europe/Berlin", "CET-1", "Europe", "Mars/Olympus", NULL };
    int64_t next;

    close(STDIN_FILENO);
    for (size_t i = 0; i < sizeof zones / sizeof zones[0]; i++) {
        bool fine = due_cron_next("@daily", zones[i], 0, &next) == 0;

        cr_expect_eq(due_cron_error("@daily", zones[i], NULL) == NULL, fine);
        cr_assert_eq(dup(STDERR_FILENO), STDIN_FILENO, "%s", zones[i]);
        close(STDIN_FILENO);
    }
    cr_expect_eq(due_cron_next("@daily", "Europe/Berlin", 0, &next), 0);
}

Test(cron, tells_a_file_that_cannot_be_opened_from_one_that_is_not_there)
{
    struct rlimit before;
    int64_t next = 42;

    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, before.rlim_max }), 0);
    int rc = due_cron_next("@daily", "Europe/Berlin", 0, &next);
    const char *text = due_cron_error("@daily", "Europe/Berlin", NULL);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    cr_expect_eq(rc, DUE_ESYS);
    cr_expect_eq(next, 42);
    cr_assert_not_null(text);
    cr_expect_not_null(strstr(text, "cannot be read"), "%s", text);
}
