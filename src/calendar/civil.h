/* civil.h - days of the Gregorian calendar, and their numbers. */
#ifndef DUE__CIVIL_H
#define DUE__CIVIL_H

#include <stdint.h>

enum { DUE__DAY_S = 86400 };

struct due__date {
    int64_t year;
    int month; /* 1 to 12 */
    int day;   /* 1 to 31 */
};

/* The number of a day, from 1970-01-01 on; years from 1 on. */
int64_t due__day_number(struct due__date date);
struct due__date due__date_of(int64_t day);

/* 0 is Sunday. */
int due__weekday(int64_t day);

int due__month_days(int64_t year, int month);

/* @a / @b rounded down. */
int64_t due__floor(int64_t a, int64_t b);

#endif
