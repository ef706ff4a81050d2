/* cron.h - the next instant that a cron expression names, in a time zone.
 *
 *     int64_t next;
 *     int rc = due_cron_next("30 8 * * MON-FRI", "Europe/Berlin", now_ns, &next);
 *
 * For jobs that come again at local times: whoever has one puts the next in, on a queue of the wall
 * clock (DUE_CLOCK_REALTIME, or one with a store).  It knows no queue, keeps nothing between two
 * calls, and neither reads nor sets the variable TZ.
 *
 * An expression is five fields with blanks between them, or one of the words below.
 *
 *     minute         0 to 59
 *     hour           0 to 23
 *     day of month   1 to 31
 *     month          1 to 12, or JAN to DEC
 *     day of week    0 to 7, or SUN to SAT; 0 and 7 are Sunday
 *
 *     @yearly, @annually   0 0 1 1 *         @daily, @midnight   0 0 * * *
 *     @monthly             0 0 1 * *         @hourly             0 * * * *
 *     @weekly              0 0 * * 0
 *
 * A field is a list with commas of numbers, of ranges such as 9-17, and of * for all; behind a
 * range or * a step such as 9-17/2 names each second one.  Names may be of any case.  If both days
 * are restricted, so that neither field begins with *, a day fits that fits either of them: as in
 * the cron of Vixie.
 *
 * A zone is a name of the system's database (/usr/share/zoneinfo or /etc/zoneinfo); "localtime",
 * which is /etc/localtime; a rule such as "CET-1CEST,M3.5.0,M10.5.0/3"; or "UTC" or NULL.
 *
 * When summer time begins or ends
 *   If the hour field names all hours, an instant fits whenever the clock shows it: what is skipped
 *   does not come, what is shown twice comes twice, so each hour goes on.
 *   Else a time comes when the clock first shows it or a later one: what is skipped comes at the
 *   first instant behind the gap, what is shown twice comes the first time only.
 */
#ifndef DUE_CRON_H
#define DUE_CRON_H

#include "due/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The first instant after @after_ns (since 1970) that @expression names in @zone.
 *
 * Threads:  any
 * Cost:     some ten microseconds; the zone's file is opened and read, no memory is allocated
 * Errors:   DUE_EINVAL (@after_ns is negative; or the expression, or the zone, as due_cron_error()
 *           says), DUE_ELIMIT (no such instant in the 292 years from 1970 on), DUE_ECORRUPT (the
 *           zone's file makes no sense), DUE_ESYS (it cannot be read)
 */
DUE_API int due_cron_next(const char *expression, const char *zone, int64_t after_ns,
                          int64_t *next_ns) DUE_NONNULL(1, 4) DUE_MUST_CHECK;

/**
 * What is wrong with an expression or its zone, in words; NULL: nothing.  A day that no month has
 * is wrong too.  *@at, unless NULL, gets the byte of @expression where that is; its length, if it
 * is the zone.
 *
 * Threads:  any
 * Errors:   NULL: none
 */
DUE_API const char *due_cron_error(const char *expression, const char *zone, size_t *at)
    DUE_NONNULL(1) DUE_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
