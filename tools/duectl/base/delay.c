/* delay.c - delays, and times that stand alone.
 *
 *     time   = delay | "@" date
 *     delay  = (number unit)+         units from large to small, each at most once
 *     number = digits ["." digits] | "." digits
 *     unit   = "d" | "h" | "m" | "s" | "ms" | "us" | "ns"
 *
 * Nothing is rounded towards early: a part of a nanosecond counts as a whole one.
 */
#include "base/base.h"

#include <string.h>
#include <time.h>

__extension__ typedef __int128 wide;

static const struct unit {
    const char *name;
    int64_t ns;
} units[] = {
    { "ns", 1 },
    { "us", 1000 },
    { "ms", 1000000 },
    { "s", 1000000000 },
    { "m", 60 * INT64_C(1000000000) },
    { "h", 3600 * INT64_C(1000000000) },
    { "d", 86400 * INT64_C(1000000000) },
};

enum { UNITS = sizeof units / sizeof units[0] };

static const int64_t ONE = INT64_C(1000000000000000000); /* a fraction is counted in parts of it */

struct number {
    int64_t whole; /* INT64_MAX: that, or more */
    int64_t fraction;
    bool more; /* the fraction is a little more than that */
};

bool ctl_fault(struct ctl_cursor *c, const char *reason)
{
    c->reason = reason;
    return false;
}

int ctl_digits_read(struct ctl_cursor *c, int most, int64_t *value)
{
    int n = 0;

    *value = 0;
    while (n < most && c->at < c->len && c->text[c->at] >= '0' && c->text[c->at] <= '9') {
        *value = *value * 10 + (c->text[c->at] - '0');
        c->at++;
        n++;
    }
    return n;
}

static bool number_read(struct ctl_cursor *c, struct number *number)
{
    size_t begin = c->at;
    int64_t digit;
    size_t points = 0;

    memset(number, 0, sizeof *number);
    while (ctl_digits_read(c, 1, &digit)) {
        if (number->whole > (INT64_MAX - digit) / 10)
            number->whole = INT64_MAX;
        else
            number->whole = number->whole * 10 + digit;
    }
    if (c->at < c->len && c->text[c->at] == '.') {
        points = 1;
        c->at++;
        for (int64_t place = ONE / 10; ctl_digits_read(c, 1, &digit); place /= 10) {
            number->fraction += digit * place;
            number->more = number->more || (place == 0 && digit > 0);
        }
    }
    return c->at - begin > points;
}

static const struct unit *unit_read(struct ctl_cursor *c)
{
    size_t len = 0;

    while (c->at + len < c->len && c->text[c->at + len] >= 'a' && c->text[c->at + len] <= 'z')
        len++;
    for (size_t i = 0; i < UNITS; i++) {
        if (strlen(units[i].name) == len && memcmp(c->text + c->at, units[i].name, len) == 0) {
            c->at += len;
            return &units[i];
        }
    }
    return NULL;
}

/* number * unit in nanoseconds, rounded up; INT64_MAX: that, or more. */
static int64_t length_ns(const struct number *number, int64_t unit_ns)
{
    wide part = (wide)number->fraction * (wide)unit_ns;
    wide ns = (wide)number->whole * (wide)unit_ns + part / (wide)ONE;

    if (number->more || part % (wide)ONE != 0)
        ns++;
    return ns > (wide)INT64_MAX ? INT64_MAX : (int64_t)ns;
}

bool ctl_delay_read(struct ctl_cursor *c, int64_t *ns)
{
    const struct unit *above = NULL;
    size_t begin = c->at;

    *ns = 0;
    do {
        size_t here = c->at;
        struct number number;
        const struct unit *unit;

        if (!number_read(c, &number)) {
            c->at = here;
            return ctl_fault(c, "expected a number");
        }
        unit = unit_read(c);
        if (unit == NULL)
            return ctl_fault(c, "expected a unit: ns, us, ms, s, m, h or d");
        if (above != NULL && unit->ns >= above->ns) {
            c->at = here;
            return ctl_fault(c, "units go from large to small, each at most once");
        }
        above = unit;
        if (__builtin_add_overflow(*ns, length_ns(&number, unit->ns), ns) || *ns == INT64_MAX) {
            c->at = begin;
            return ctl_fault(c, "too far ahead: a delay is less than 292 years");
        }
    } while (c->at < c->len && c->text[c->at] != ' ' && c->text[c->at] != '\t');
    return true;
}

static bool blank_at(const struct ctl_cursor *c)
{
    return c->text[c->at] == ' ' || c->text[c->at] == '\t';
}

bool ctl_once_read(struct ctl_cursor *c, struct ctl_entry *entry)
{
    char first = c->text[c->at];

    if (first == '@') {
        c->at++;
        entry->kind = CTL_DATE;
        if (!ctl_date_read(c, &entry->ns))
            return false;
        if (c->at < c->len && !blank_at(c))
            return ctl_fault(c, "the date does not end here");
        return true;
    }
    if (first == '-')
        return ctl_fault(c, "a delay is not negative");
    if (first != '.' && (first < '0' || first > '9'))
        return ctl_fault(c, "a line begins with a time: a delay such as 1.5s, or @ and a date");
    entry->kind = CTL_DELAY;
    return ctl_delay_read(c, &entry->ns);
}

bool ctl_time_read(struct ctl_entry *entry, const char *text)
{
    struct ctl_cursor c = { .text = text, .len = strlen(text) };

    memset(entry, 0, sizeof *entry);
    if (c.len == 0)
        ctl_fault(&c, "expected a time");
    else if (ctl_once_read(&c, entry) && c.at < c.len)
        ctl_fault(&c, "the time does not end here");
    if (c.reason == NULL)
        return true;
    entry->kind = CTL_FAULT;
    entry->column = c.at + 1;
    entry->reason = c.reason;
    return false;
}

int64_t ctl_at_ns(const struct ctl_entry *entry)
{
    struct timespec now;
    int64_t at_ns;

    if (entry->kind == CTL_DATE)
        return entry->ns < 0 ? 0 : entry->ns;
    clock_gettime(CLOCK_REALTIME, &now);
    return __builtin_add_overflow(DUE_S(now.tv_sec) + now.tv_nsec, entry->ns, &at_ns) ? DUE_FOREVER
                                                                                      : at_ns;
}
