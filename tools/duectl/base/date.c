/* date.c - dates of ISO 8601, and timestamps in the lines of a log.
 *
 *     date   = YYYY-MM-DD ["T" HH:MM [":" SS [("." | ",") digits]] [zone]]
 *            | nine or more digits [("." | ",") digits], seconds since 1970
 *     zone   = "Z" | ("+" | "-") HH [[":"] MM]
 *
 * Without a zone it is local time, as the system's rules (TZ) have it.  In a log a date has a time
 * of day, and a blank may stand instead of the T and before the zone.  The common log format has
 * [10/Oct/2000:13:55:36 -0700] instead.  The second 60 is the first of the next minute.
 *
 * Written they have nanoseconds, and Z.
 */
#include "base/base.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const int64_t SECOND = INT64_C(1000000000);

struct date {
    int64_t year, month, day, hour, minute, second, ns;
    bool zoned;
    int64_t zone_s; /* east of Greenwich */
};

static bool peek(const struct ctl_cursor *c, char wanted)
{
    return c->at < c->len && c->text[c->at] == wanted;
}

static bool digit_at(const struct ctl_cursor *c, size_t at)
{
    return at < c->len && c->text[at] >= '0' && c->text[at] <= '9';
}

/* Exactly @digits digits that make a number from @low to @high; or a fault at their first. */
static bool field(struct ctl_cursor *c, int digits, int64_t low, int64_t high, int64_t *value,
                  const char *reason)
{
    size_t begin = c->at;

    if (ctl_digits_read(c, digits, value) == digits && *value >= low && *value <= high)
        return true;
    c->at = begin;
    return ctl_fault(c, reason);
}

static bool expect(struct ctl_cursor *c, char wanted, const char *reason)
{
    if (!peek(c, wanted))
        return ctl_fault(c, reason);
    c->at++;
    return true;
}

static int64_t days_in_month(int64_t year, int64_t month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap ? 1 : 0);
}

/* Days from 1970-01-01 to a day of the Gregorian calendar; years count from March. */
static int64_t days_since_1970(int64_t year, int64_t month, int64_t day)
{
    int64_t y = month > 2 ? year : year - 1;
    int64_t m = month > 2 ? month - 3 : month + 9;
    int64_t leaps = y / 4 - y / 100 + y / 400;

    return y * 365 + leaps + (153 * m + 2) / 5 + day - 719469;
}

/* Seconds since 1970 by the system's rules for local time.  False: it knows no such time. */
static bool local_seconds(const struct date *d, int64_t *seconds)
{
    struct tm tm = {
        .tm_year = (int)d->year - 1900,
        .tm_mon = (int)d->month - 1,
        .tm_mday = (int)d->day,
        .tm_hour = (int)d->hour,
        .tm_min = (int)d->minute,
        .tm_sec = (int)d->second,
        .tm_wday = -1,
        .tm_isdst = -1,
    };

    *seconds = mktime(&tm);
    return tm.tm_wday != -1;
}

static bool to_unix_ns(const struct date *d, int64_t *unix_ns)
{
    int64_t seconds;

    if (d->zoned)
        seconds = days_since_1970(d->year, d->month, d->day) * 86400 + d->hour * 3600 +
                  d->minute * 60 + d->second - d->zone_s;
    else if (!local_seconds(d, &seconds))
        return false;
    return !__builtin_mul_overflow(seconds, SECOND, unix_ns) &&
           !__builtin_add_overflow(*unix_ns, d->ns, unix_ns);
}

static bool day_read(struct ctl_cursor *c, struct date *d)
{
    static const char form[] = "expected a date: YYYY-MM-DD, and a time as in T08:00:00Z";
    size_t day_at;

    if (!field(c, 4, 0, 9999, &d->year, form) || !expect(c, '-', form) ||
        !field(c, 2, 1, 12, &d->month, "no such month") || !expect(c, '-', form))
        return false;
    day_at = c->at;
    if (!field(c, 2, 1, 31, &d->day, "no such day"))
        return false;
    if (d->day > days_in_month(d->year, d->month)) {
        c->at = day_at;
        return ctl_fault(c, "no such day in this month");
    }
    return true;
}

/* Parts of a second after a point or a comma; digits beyond nanoseconds round up. */
static void fraction_read(struct ctl_cursor *c, struct date *d)
{
    int64_t place = SECOND / 10;
    int64_t digit;
    bool more = false;

    if (!(peek(c, '.') || peek(c, ',')) || !digit_at(c, c->at + 1))
        return;
    c->at++;
    for (; ctl_digits_read(c, 1, &digit); place /= 10) {
        d->ns += digit * place;
        more = more || (place == 0 && digit > 0);
    }
    if (more)
        d->ns++;
}

static bool time_of_day_read(struct ctl_cursor *c, struct date *d)
{
    if (!field(c, 2, 0, 23, &d->hour, "no such hour") ||
        !expect(c, ':', "expected a colon between hours and minutes") ||
        !field(c, 2, 0, 59, &d->minute, "no such minute"))
        return false;
    if (!peek(c, ':'))
        return true;
    c->at++;
    if (!field(c, 2, 0, 60, &d->second, "no such second"))
        return false;
    fraction_read(c, d);
    return true;
}

/* "+0200", "+02:00" or "+02" */
static bool offset_read(struct ctl_cursor *c, struct date *d)
{
    int64_t sign = c->text[c->at] == '-' ? -1 : 1;
    int64_t hours;
    int64_t minutes = 0;

    c->at++;
    if (!field(c, 2, 0, 23, &hours, "no such offset"))
        return false;
    if (peek(c, ':'))
        c->at++;
    else if (!digit_at(c, c->at))
        goto done;
    if (!field(c, 2, 0, 59, &minutes, "no such offset"))
        return false;
done:
    d->zoned = true;
    d->zone_s = sign * (hours * 3600 + minutes * 60);
    return true;
}

static bool zone_read(struct ctl_cursor *c, struct date *d)
{
    if (peek(c, 'Z') || peek(c, 'z')) {
        d->zoned = true;
        c->at++;
        return true;
    }
    if (peek(c, '+') || peek(c, '-'))
        return offset_read(c, d);
    return true;
}

/* Are these seconds since 1970?  A date has four digits in a row, or eight by mistake. */
static bool is_seconds(const struct ctl_cursor *c)
{
    size_t n = 0;

    while (digit_at(c, c->at + n))
        n++;
    return n >= 9;
}

/* Nine digits or more, and a fraction, which is rounded up. */
static bool seconds_read(struct ctl_cursor *c, int64_t *unix_ns)
{
    size_t begin = c->at;
    struct date d = { .ns = 0 };
    int64_t seconds;

    (void)ctl_digits_read(c, 18, &seconds);
    if (!digit_at(c, c->at))
        fraction_read(c, &d);
    if (!digit_at(c, c->at) && !__builtin_mul_overflow(seconds, SECOND, unix_ns) &&
        !__builtin_add_overflow(*unix_ns, d.ns, unix_ns))
        return true;
    c->at = begin;
    return ctl_fault(c, "a date outside the years 1678 to 2261");
}

bool ctl_date_read(struct ctl_cursor *c, int64_t *unix_ns)
{
    size_t begin = c->at;
    struct date d = { .ns = 0 };

    if (is_seconds(c))
        return seconds_read(c, unix_ns);

    if (!day_read(c, &d))
        return false;
    if (peek(c, 'T') || peek(c, 't')) {
        c->at++;
        if (!time_of_day_read(c, &d) || !zone_read(c, &d))
            return false;
    }
    if (to_unix_ns(&d, unix_ns))
        return true;
    c->at = begin;
    return ctl_fault(c, "a date outside the years 1678 to 2261");
}

/* ---- Logs ------------------------------------------------------------------------------------ */

/* In a log, what looks like an offset and is none is left alone: it may be the next word. */
static void log_zone_read(struct ctl_cursor *c, struct date *d)
{
    struct ctl_cursor ahead = *c;

    if (peek(c, ' ') && c->at + 1 < c->len &&
        (c->text[c->at + 1] == '+' || c->text[c->at + 1] == '-'))
        ahead.at++;
    if (zone_read(&ahead, d) && d->zoned)
        c->at = ahead.at;
}

static bool iso_stamp_read(struct ctl_cursor *c, int64_t *unix_ns)
{
    struct date d = { .ns = 0 };

    if (!day_read(c, &d) || !(peek(c, 'T') || peek(c, 't') || peek(c, ' ')))
        return false;
    c->at++;
    if (!time_of_day_read(c, &d))
        return false;
    log_zone_read(c, &d);
    return to_unix_ns(&d, unix_ns);
}

static bool month_name_read(struct ctl_cursor *c, int64_t *month)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

    for (int64_t i = 0; i < 12; i++) {
        if (c->len - c->at >= 3 && memcmp(c->text + c->at, names + 3 * i, 3) == 0) {
            c->at += 3;
            *month = i + 1;
            return true;
        }
    }
    return false;
}

/* [10/Oct/2000:13:55:36 -0700] */
static bool common_stamp_read(struct ctl_cursor *c, int64_t *unix_ns)
{
    struct date d = { .ns = 0 };

    c->at++;
    if (!field(c, 2, 1, 31, &d.day, "") || !expect(c, '/', "") || !month_name_read(c, &d.month) ||
        !expect(c, '/', "") || !field(c, 4, 0, 9999, &d.year, "") ||
        d.day > days_in_month(d.year, d.month) || !expect(c, ':', "") || !time_of_day_read(c, &d))
        return false;
    if (peek(c, ' ')) {
        c->at++;
        if (!(peek(c, '+') || peek(c, '-')) || !offset_read(c, &d))
            return false;
    }
    return peek(c, ']') && to_unix_ns(&d, unix_ns);
}

static bool word_byte(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= 'a' && byte <= 'z');
}

bool ctl_stamp_find(const char *line, size_t len, int64_t *unix_ns)
{
    for (size_t at = 0; at < len; at++) {
        struct ctl_cursor c = { .text = line, .len = len, .at = at };

        if (line[at] == '[' && common_stamp_read(&c, unix_ns))
            return true;
        if (digit_at(&c, at) && (at == 0 || !word_byte(line[at - 1])) &&
            iso_stamp_read(&c, unix_ns))
            return true;
    }
    return false;
}

/* ---- Written --------------------------------------------------------------------------------- */

const char *ctl_dump_date(char text[CTL_DUMP_DATE], int64_t ns)
{
    time_t seconds = (time_t)(ns / DUE_S(1));
    struct tm date;
    size_t n;

    if (ns == DUE_FOREVER || gmtime_r(&seconds, &date) == NULL) {
        memcpy(text, "never", sizeof "never");
        return text;
    }
    n = strftime(text, CTL_DUMP_DATE, "%Y-%m-%dT%H:%M:%S", &date);
    snprintf(text + n, CTL_DUMP_DATE - n, ".%09dZ", (int)(ns % DUE_S(1)));
    return text;
}
