/* zone_rule.c - a time zone as a rule for all years, in the form that POSIX has for TZ.
 *
 *     rule   = name offset [name [offset] "," change "," change]
 *     name   = three or more letters | "<" letters, digits, + and - ">"
 *     offset = ["+" | "-"] hours [":" minutes [":" seconds]], to the west
 *     change = ("M" month "." week "." day | "J" day | day) ["/" offset]
 *
 * It stands at the end of each file of the database, for the years that come.
 */
#include <string.h>

#include "calendar/civil.h"
#include "calendar/zone.h"

enum { HOUR_S = 3600, MINUTE_S = 60 };
static const int64_t EDGE = INT64_C(1) << 40; /* some 30,000 years: rules have no edges there */

struct rule_reader {
    const char *text;
    size_t len;
    size_t at;
};

static bool next_is(struct rule_reader *r, char wanted)
{
    if (r->at == r->len || r->text[r->at] != wanted)
        return false;
    r->at++;
    return true;
}

static bool letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool digit(const struct rule_reader *r)
{
    return r->at < r->len && r->text[r->at] >= '0' && r->text[r->at] <= '9';
}

static bool read_name(struct rule_reader *r)
{
    size_t begin = r->at;

    if (next_is(r, '<')) {
        while (r->at < r->len && r->text[r->at] != '>')
            r->at++;
        return next_is(r, '>');
    }
    while (r->at < r->len && letter(r->text[r->at]))
        r->at++;
    return r->at - begin >= 3;
}

/* A number of up to three digits. */
static bool read_number(struct rule_reader *r, int low, int high, int *value)
{
    size_t begin = r->at;

    *value = 0;
    while (digit(r) && r->at - begin < 3)
        *value = *value * 10 + (r->text[r->at++] - '0');
    return r->at > begin && *value >= low && *value <= high;
}

/* Hours, and maybe minutes and seconds, in seconds. */
static bool read_time(struct rule_reader *r, int hours_max, int64_t *seconds)
{
    bool negative = next_is(r, '-');
    int parts[3] = { 0, 0, 0 };

    if (!negative)
        (void)next_is(r, '+');
    if (!read_number(r, 0, hours_max, &parts[0]))
        return false;
    for (int i = 1; i < 3 && next_is(r, ':'); i++) {
        if (!read_number(r, 0, 59, &parts[i]))
            return false;
    }
    *seconds = parts[0] * HOUR_S + parts[1] * MINUTE_S + parts[2];
    if (negative)
        *seconds = -*seconds;
    return true;
}

static bool read_day(struct rule_reader *r, struct due__zone_change *c)
{
    c->kind = next_is(r, 'M') ? 'M' : next_is(r, 'J') ? 'J' : 'N';
    if (c->kind == 'M')
        return read_number(r, 1, 12, &c->month) && next_is(r, '.') &&
               read_number(r, 1, 5, &c->week) && next_is(r, '.') && read_number(r, 0, 6, &c->day);
    return read_number(r, c->kind == 'J' ? 1 : 0, 365, &c->day);
}

static bool read_change(struct rule_reader *r, struct due__zone_change *c)
{
    c->time_s = 2 * HOUR_S;
    return next_is(r, ',') && read_day(r, c) && (!next_is(r, '/') || read_time(r, 167, &c->time_s));
}

bool due__zone_rule_read(struct due__zone_rule *rule, const char *text, size_t len)
{
    struct rule_reader r = { .text = text, .len = len };
    int64_t west;

    memset(rule, 0, sizeof *rule);
    if (!read_name(&r) || !read_time(&r, 24, &west))
        return false;
    rule->east = -west;
    rule->summer = r.at < len;
    if (!rule->summer)
        return true;
    west -= HOUR_S;
    if (!read_name(&r) || (r.at < len && text[r.at] != ',' && !read_time(&r, 24, &west)))
        return false;
    rule->summer_east = -west;
    return read_change(&r, &rule->begins) && read_change(&r, &rule->ends) && r.at == len;
}

/* When the clocks are changed in this year, if they were @east of UTC before. */
static int64_t change_in(const struct due__zone_change *c, int64_t year, int64_t east)
{
    int64_t day = due__day_number((struct due__date){ .year = year, .month = 1, .day = 1 });
    bool leap = due__month_days(year, 2) == 29;

    if (c->kind == 'M') {
        day = due__day_number((struct due__date){ .year = year, .month = c->month, .day = 1 });
        int first = (c->day - due__weekday(day) + 7) % 7;
        int at = first + 7 * (c->week - 1);
        if (at >= due__month_days(year, c->month))
            at -= 7; /* the fifth is the last */
        day += at;
    } else if (c->kind == 'J') {
        day += c->day - 1 + (leap && c->day > 59 ? 1 : 0); /* there is no 29 February */
    } else {
        day += c->day;
    }
    return day * DUE__DAY_S + c->time_s - east;
}

/* All changes around a year, in order of time.  Of two at once the earlier year's is first. */
enum { CHANGES = 6 };

static void changes_around(const struct due__zone_rule *rule, int64_t year,
                           struct due__zone_span spans[CHANGES])
{
    size_t n = 0;

    for (int64_t y = year - 1; y <= year + 1; y++) {
        struct due__zone_span both[2] = {
            { .from = change_in(&rule->begins, y, rule->east), .east = rule->summer_east },
            { .from = change_in(&rule->ends, y, rule->summer_east), .east = rule->east },
        };

        for (size_t i = 0; i < 2; i++) {
            size_t at = n++;

            for (; at > 0 && spans[at - 1].from > both[i].from; at--)
                spans[at] = spans[at - 1];
            spans[at] = both[i];
        }
    }
}

struct due__zone_span due__zone_rule_at(const struct due__zone_rule *rule, int64_t at)
{
    struct due__zone_span found = { INT64_MIN, INT64_MAX, rule->east };
    struct due__zone_span spans[CHANGES];

    if (!rule->summer || at > EDGE || at < -EDGE / 32)
        return found;
    changes_around(rule, due__date_of(due__floor(at, DUE__DAY_S)).year, spans);
    for (size_t i = 0; i < CHANGES; i++) {
        if (spans[i].from > at) {
            found.until = spans[i].from;
            return found;
        }
        found.from = spans[i].from;
        found.east = spans[i].east;
    }
    return found;
}
