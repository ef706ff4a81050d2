/* cron_model.c - due_cron_next() against a clock that is looked at minute by minute.
 *
 * The model knows no calendar: the C library says what the clock shows at each minute, and the
 * first that fits is the answer.  Where an hour field leaves hours out it keeps the latest time
 * that the clock has shown so far: a time comes when it is reached or passed.  Most of the
 * questions are asked near a change of the clocks.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <time.h>

#include "due/cron.h"
#include "lab/model.h"

enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS };
enum { DAY_S = 86400, DAYS_MAX = 45, CHANGES_MAX = 512 };

/* What a field names, and how it is written. */
struct field {
    uint64_t bits;
    bool star; /* it begins with one */
};

struct question {
    struct field of[FIELDS];
    char text[512];
    const char *zone;
    int64_t after_ns;
};

static const struct {
    int low, high;
    const char *names; /* or NULL */
} ranges[FIELDS] = {
    { 0, 59, NULL },
    { 0, 23, NULL },
    { 1, 31, NULL },
    { 1, 12, "JanFEBmarAPRmayJUNjulAUGsepOCTnovDEC" },
    { 0, 7, "SUNmonTUEwedTHUfriSAT" },
};

/* Names of the database, and rules of their own. */
static const char *const zones[] = {
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Asia/Kathmandu",
    "America/St_Johns",
    "Pacific/Apia",
    "Europe/Dublin",
    "America/Nuuk",
    "UTC",
    "CET-1CEST,M3.5.0,M10.5.0/3",
    "<-03>3<-02>,M3.5.0/-2,M10.5.0/-1",
    "AAA+10BBB,J60/2,300/2:30",
    "<+0330>-3:30<+0430>,M9.1.4/24,J59/0",
};

static int64_t changes[CHANGES_MAX]; /* of the zone at hand */
static size_t change_count;

static struct tm clock_at(int64_t at)
{
    time_t seconds = at;
    struct tm tm;

    localtime_r(&seconds, &tm);
    return tm;
}

/* From now on the C library's clock is that of this zone. */
static void enter_zone(const char *zone)
{
    long east;

    setenv("TZ", zone, 1);
    tzset();
    change_count = 0;
    east = clock_at(0).tm_gmtoff;
    for (int64_t at = INT64_C(5) * 365 * DAY_S; at < INT64_C(85) * 365 * DAY_S; at += 6 * 3600) {
        long now = clock_at(at).tm_gmtoff;

        if (now != east && change_count < CHANGES_MAX)
            changes[change_count++] = at;
        east = now;
    }
}

/* ---- Questions ---- */

static void write_number(struct question *q, int field, int number, uint64_t *state)
{
    const char *names = ranges[field].names;
    size_t len = strlen(q->text);

    if (names != NULL && number < 7 + ranges[field].low && model_below(state, 2) == 0)
        snprintf(q->text + len, sizeof q->text - len, "%.3s",
                 names + 3 * (number - ranges[field].low));
    else
        snprintf(q->text + len, sizeof q->text - len, "%d", number);
}

static void write_text(struct question *q, const char *text)
{
    strcat(q->text, text);
}

/* One part of a list. */
static void draw_part(struct question *q, int field, uint64_t *state, bool first)
{
    int low = ranges[field].low;
    int high = ranges[field].high;
    unsigned kind = (unsigned)model_below(state, 4);
    int step = 1;
    char text[16];

    if (kind == 0) {
        write_text(q, "*");
        q->of[field].star = q->of[field].star || first;
    } else {
        low += (int)model_below(state, (uint64_t)(high - low + 1));
        write_number(q, field, low, state);
        if (kind == 1) {
            high = low + (int)model_below(state, (uint64_t)(high - low + 1));
            write_text(q, "-");
            write_number(q, field, high, state);
        } else {
            high = low;
        }
    }
    if (kind < 2 && model_below(state, 2) == 0) {
        step = 1 + (int)model_below(state, 20);
        snprintf(text, sizeof text, "/%d", step);
        write_text(q, text);
    }
    for (int i = low; i <= high; i += step)
        q->of[field].bits |= UINT64_C(1) << i;
}

static void draw_field(struct question *q, int field, uint64_t *state)
{
    unsigned often[FIELDS] = { 3, 3, 2, 2, 2 };
    size_t parts = 1 + (size_t)model_below(state, often[field]);

    if (field > 0)
        write_text(q, model_below(state, 8) == 0 ? "\t " : " ");
    if (field != MINUTE && model_below(state, 4) >= (field == HOUR ? 3 : 1)) {
        write_text(q, "*");
        q->of[field] = (struct field){ .bits = UINT64_MAX, .star = true };
        return;
    }
    for (size_t i = 0; i < parts; i++) {
        if (i > 0)
            write_text(q, ",");
        draw_part(q, field, state, i == 0);
    }
}

static void draw(struct question *q, const char *zone, uint64_t *state)
{
    int64_t at = INT64_C(5) * 365 * DAY_S + (int64_t)model_below(state, UINT64_C(80) * 365 * DAY_S);

    memset(q, 0, sizeof *q);
    q->zone = zone;
    for (int i = 0; i < FIELDS; i++)
        draw_field(q, i, state);
    if (q->of[WEEKDAY].bits & 1 << 7)
        q->of[WEEKDAY].bits |= 1;
    if (change_count > 0 && model_below(state, 4) > 0)
        at = changes[model_below(state, change_count)] - 9 * 3600 +
             (int64_t)model_below(state, 12 * 3600);
    if (model_below(state, 2) == 0)
        at -= at % 60;
    q->after_ns =
        at * 1000000000 + (int64_t)(model_below(state, 2) * model_below(state, 1000000000));
}

/* ---- The model ---- */

static bool has(const struct question *q, int field, int number)
{
    return (q->of[field].bits >> number & 1) != 0;
}

static bool fits(const struct question *q, const struct tm *tm)
{
    bool month = has(q, DAY, tm->tm_mday);
    bool week = has(q, WEEKDAY, tm->tm_wday);
    bool either = !q->of[DAY].star && !q->of[WEEKDAY].star;

    return has(q, MINUTE, tm->tm_min) && has(q, HOUR, tm->tm_hour) &&
           has(q, MONTH, tm->tm_mon + 1) && (either ? month || week : month && week);
}

static bool fits_local(const struct question *q, int64_t local)
{
    time_t seconds = local;
    struct tm tm;

    gmtime_r(&seconds, &tm);
    return fits(q, &tm);
}

/* The first instant after q->after_ns, in seconds; -1: none in DAYS_MAX days. */
static int64_t expect_shown(const struct question *q, int64_t from)
{
    for (int64_t at = from; at < from + (int64_t)DAYS_MAX * DAY_S; at += 60) {
        struct tm tm = clock_at(at);

        if (at * 1000000000 > q->after_ns && fits(q, &tm))
            return at;
    }
    return -1;
}

static int64_t expect_first(const struct question *q, int64_t from)
{
    int64_t latest = from - 3 * DAY_S + clock_at(from - 3 * DAY_S).tm_gmtoff;

    for (int64_t at = from - 3 * DAY_S; at < from + (int64_t)DAYS_MAX * DAY_S; at += 60) {
        int64_t shown = at + clock_at(at).tm_gmtoff;

        for (; latest < shown; latest += 60) {
            if (at * 1000000000 > q->after_ns && fits_local(q, latest + 60))
                return at;
        }
    }
    return -1;
}

static bool ask(const struct question *q)
{
    int64_t from = q->after_ns / 1000000000;
    bool hourly = (q->of[HOUR].bits & 0xffffff) == 0xffffff;
    int64_t next = -1;
    int rc = due_cron_next(q->text, q->zone, q->after_ns, &next);
    int64_t wanted;

    from -= from % 60;
    wanted = hourly ? expect_shown(q, from) : expect_first(q, from);
    if (rc == DUE_EINVAL && wanted < 0 && due_cron_error(q->text, q->zone, NULL) != NULL)
        return true; /* a day that no month has */
    if (rc == DUE_ELIMIT && wanted < 0)
        return true;
    if (rc == 0 && next % 1000000000 == 0) {
        next /= 1000000000;
        if (wanted < 0 ? next > from + (int64_t)(DAYS_MAX - 1) * DAY_S : next == wanted)
            return true;
    }
    printf("failed: \"%s\" in %s after %lld: %s, %lld; wanted %lld\n", q->text, q->zone,
           (long long)q->after_ns, due_error_name(rc), (long long)next, (long long)wanted);
    return false;
}

int main(int argc, char **argv)
{
    struct model_options o = model_options(argc, argv, 1000000);
    size_t n = sizeof zones / sizeof zones[0];
    uint64_t each = o.ops / 4000 / n + 1; /* each looks at many minutes */
    uint64_t state = o.seed;

    if (due_cron_error("@daily", "Europe/Berlin", NULL) != NULL) {
        printf("there is no database of time zones (tzdata)\n");
        return 77;
    }
    for (size_t i = 0; i < n; i++) {
        enter_zone(zones[i]);
        for (uint64_t k = 0; k < each; k++) {
            struct question q;

            draw(&q, zones[i], &state);
            if (!ask(&q))
                return 1;
        }
    }
    return 0;
}
