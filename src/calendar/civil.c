/* civil.c - days of the Gregorian calendar, and their numbers.
 *
 * A year begins in March here, so that the day that is sometimes there stands at its end; and days
 * count from the first of March of the year 0.
 */
#include "calendar/civil.h"

#include <stdbool.h>

enum { YEAR = 365, YEARS_4 = 1461, YEARS_100 = 36524, YEARS_400 = 146097 };

static const int64_t TO_1970 = 719468;

int64_t due__floor(int64_t a, int64_t b)
{
    return a / b - (a % b < 0 ? 1 : 0);
}

int due__month_days(int64_t year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap ? 1 : 0);
}

/* Days of the year before a month that is so many after March: 31 30 31 30 31, again and again. */
static int before_month(int month)
{
    return (153 * month + 2) / 5;
}

int64_t due__day_number(struct due__date date)
{
    int64_t year = date.month > 2 ? date.year : date.year - 1;
    int month = date.month > 2 ? date.month - 3 : date.month + 9;

    return year * YEAR + year / 4 - year / 100 + year / 400 + before_month(month) + date.day - 1 -
           TO_1970;
}

struct due__date due__date_of(int64_t day)
{
    int64_t left = day + TO_1970;
    int64_t year = left / YEARS_400 * 400;

    left %= YEARS_400;
    int64_t centuries = left / YEARS_100 < 3 ? left / YEARS_100 : 3;
    left -= centuries * YEARS_100;
    int64_t fours = left / YEARS_4;
    left -= fours * YEARS_4;
    int64_t ones = left / YEAR < 3 ? left / YEAR : 3;
    left -= ones * YEAR;
    year += centuries * 100 + fours * 4 + ones;

    int month = (int)(5 * left + 2) / 153;
    return (struct due__date){ .year = month < 10 ? year : year + 1,
                               .month = month < 10 ? month + 3 : month - 9,
                               .day = (int)left - before_month(month) + 1 };
}

int due__weekday(int64_t day)
{
    int64_t at = (day + 4) % 7; /* 1970 began with a Thursday */

    return (int)(at < 0 ? at + 7 : at);
}
