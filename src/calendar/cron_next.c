/* cron_next.c - the next instant that a cron expression names.
 *
 * A local time is a number here: the seconds since 1970 of the clock that shows it, as if that were
 * in UTC.  The next local time that fits comes from the calendar alone; what the zone makes of it
 * is another step, and there are two ways (include/due/cron.h says for whom which):
 *
 *     shown    span by span: what fits while the clocks go on unchanged
 *     first    the first instant at which the clock shows that time or a later one.  This never
 *              goes back where local times go on, so the first that is late enough is the answer
 */
#include <string.h>

#include "calendar/civil.h"
#include "calendar/cron.h"
#include "calendar/zone.h"
#include "due/cron.h"

static const int64_t SECOND_NS = INT64_C(1000000000);
static const int64_t NEVER = INT64_MAX;
static const int64_t YEAR_MAX = 2262; /* in it 64 bits of nanoseconds end */
static const int64_t LAST_S = INT64_MAX / INT64_C(1000000000) - 1;

/* ---- The calendar ---- */

static bool names_day(const struct due__cron *c, struct due__date date, int64_t day)
{
    bool of_month = (c->days >> date.day & 1) != 0;
    bool of_week = (c->weekdays >> due__weekday(day) & 1) != 0;

    return c->either ? of_month || of_week : of_month && of_week;
}

/* The first minute of a day from @minute on; -1: none. */
static int minute_in_day(const struct due__cron *c, int minute)
{
    for (; minute < 24 * 60; minute++) {
        if ((c->hours >> (minute / 60) & 1) == 0)
            minute += 59 - minute % 60;
        else if ((c->minutes >> (minute % 60) & 1) != 0)
            return minute;
    }
    return -1;
}

/* The first local time from @from on, which is a full minute. */
static int64_t local_next(const struct due__cron *c, int64_t from)
{
    int64_t day = due__floor(from, DUE__DAY_S);
    int minute = (int)(from - day * DUE__DAY_S) / 60;

    for (;; minute = 0) {
        struct due__date date = due__date_of(day);

        if (date.year > YEAR_MAX)
            return NEVER;
        if ((c->months >> date.month & 1) == 0) {
            day += due__month_days(date.year, date.month) - date.day + 1;
            continue;
        }
        int found = names_day(c, date, day) ? minute_in_day(c, minute) : -1;
        if (found >= 0)
            return day * DUE__DAY_S + found * 60;
        day++;
    }
}

/* ---- The zone ---- */

/* The first instant from @from on at which the clock shows what fits: 0 or an error. */
static int next_shown(const struct due__cron *c, struct due__zone *z, int64_t from, int64_t *next)
{
    for (;;) {
        struct due__zone_span span;
        int rc = due__zone_at(z, from, &span);

        if (rc != 0)
            return rc;
        int64_t local = local_next(c, due__floor(from + span.east + 59, 60) * 60);
        if (local == NEVER)
            return DUE_ELIMIT;
        *next = local - span.east;
        if (*next < span.until)
            return 0;
        from = span.until;
        if (from > LAST_S)
            return DUE_ELIMIT;
    }
}

/* The first instant at which the clock shows @local or a later time. */
static int first_shown(struct due__zone *z, int64_t local, int64_t *first)
{
    int64_t at = local - 2 * DUE__DAY_S; /* long before that, in any zone */

    for (;;) {
        struct due__zone_span span;
        int rc = due__zone_at(z, at, &span);

        if (rc != 0)
            return rc;
        *first = local - span.east;
        if (*first < at)
            *first = at; /* behind a gap */
        if (*first < span.until)
            return 0;
        at = span.until;
    }
}

static int next_first(const struct due__cron *c, struct due__zone *z, int64_t after, int64_t *next)
{
    struct due__zone_span span;
    int rc = due__zone_at(z, after, &span);

    if (rc != 0)
        return rc;
    for (int64_t local = due__floor(after + span.east, 60) * 60;; local += 60) {
        local = local_next(c, local);
        if (local == NEVER)
            return DUE_ELIMIT;
        rc = first_shown(z, local, next);
        if (rc != 0 || *next > after)
            return rc;
    }
}

int due_cron_next(const char *expression, const char *zone, int64_t after_ns, int64_t *next_ns)
{
    struct due__cron cron;
    struct due__zone z;
    size_t at;
    int64_t next = 0;

    if (after_ns < 0 || due__cron_read(&cron, expression, &at) != NULL)
        return DUE_EINVAL;
    int rc = due__zone_open(&z, zone);
    if (rc != 0)
        return rc;
    int64_t after = after_ns / SECOND_NS;
    if (cron.hours == DUE__HOURS_ALL)
        rc = next_shown(&cron, &z, after + 1, &next);
    else
        rc = next_first(&cron, &z, after, &next);
    due__zone_close(&z);
    if (rc == 0 && next > LAST_S)
        rc = DUE_ELIMIT;
    if (rc == 0)
        *next_ns = next * SECOND_NS;
    return rc;
}

const char *due_cron_error(const char *expression, const char *zone, size_t *at)
{
    struct due__cron cron;
    struct due__zone z;
    size_t where;
    const char *wrong = due__cron_read(&cron, expression, &where);

    if (wrong == NULL) {
        int rc = due__zone_open(&z, zone);

        if (rc == 0)
            due__zone_close(&z);
        else if (rc == DUE_EINVAL)
            wrong = "no such time zone";
        else
            wrong = rc == DUE_ECORRUPT ? "the file of the time zone makes no sense"
                                       : "the file of the time zone cannot be read";
        where = strlen(expression);
    }
    if (at != NULL)
        *at = where;
    return wrong;
}
