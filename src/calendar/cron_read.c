/* cron_read.c - the text of a cron expression: include/due/cron.h says what it may be. */
#include "calendar/cron.h"

#include <string.h>

/* One of the five. */
struct field {
    int low, high;
    const char *names; /* of three letters, from the lowest on; or NULL */
    const char *wrong;
};

enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS };

static const struct field fields[FIELDS] = {
    { 0, 59, NULL, "no such minute: 0 to 59" },
    { 0, 23, NULL, "no such hour: 0 to 23" },
    { 1, 31, NULL, "no such day of a month: 1 to 31" },
    { 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec", "no such month: 1 to 12, or JAN to DEC" },
    { 0, 7, "sunmontuewedthufrisat", "no such day of a week: 0 to 7, or SUN to SAT" },
};

static const struct {
    const char *word, *means;
} words[] = {
    { "@yearly", "0 0 1 1 *" }, { "@annually", "0 0 1 1 *" }, { "@monthly", "0 0 1 * *" },
    { "@weekly", "0 0 * * 0" }, { "@daily", "0 0 * * *" },    { "@midnight", "0 0 * * *" },
    { "@hourly", "0 * * * *" },
};

struct reader {
    const char *text;
    size_t at;
    const char *wrong; /* NULL: nothing so far */
};

static bool blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool refuse(struct reader *r, size_t at, const char *wrong)
{
    r->at = at;
    r->wrong = wrong;
    return false;
}

static bool next_is(struct reader *r, char wanted)
{
    if (r->text[r->at] != wanted)
        return false;
    r->at++;
    return true;
}

static void skip_blanks(struct reader *r)
{
    while (blank(r->text[r->at]))
        r->at++;
}

/* A name of three letters; -1: none. */
static int read_name(struct reader *r, const struct field *f)
{
    const char *t = r->text + r->at;

    for (int i = 0; f->names != NULL && f->names[3 * i] != '\0'; i++) {
        const char *name = f->names + 3 * i;

        if (lower(t[0]) == name[0] && lower(t[1]) == name[1] && lower(t[2]) == name[2]) {
            r->at += 3;
            return f->low + i;
        }
    }
    return -1;
}

static bool read_value(struct reader *r, const struct field *f, int *value)
{
    size_t begin = r->at;

    *value = read_name(r, f);
    if (*value >= 0)
        return true;
    *value = 0;
    for (; digit(r->text[r->at]) && r->at - begin < 4; r->at++)
        *value = *value * 10 + (r->text[r->at] - '0');
    if (r->at == begin || digit(r->text[r->at]) || *value < f->low || *value > f->high)
        return refuse(r, begin, f->wrong);
    return true;
}

/* A number from 1 on, behind a slash. */
static bool read_step(struct reader *r, int *step)
{
    size_t begin = r->at;

    *step = 0;
    for (; digit(r->text[r->at]) && r->at - begin < 4; r->at++)
        *step = *step * 10 + (r->text[r->at] - '0');
    if (*step == 0 || digit(r->text[r->at]))
        return refuse(r, begin, "a step is a number from 1 to 9999");
    return true;
}

/* "*", "5", "1-5", "0-30/5" or "* / 5" without blanks. */
static bool read_item(struct reader *r, const struct field *f, uint64_t *bits)
{
    size_t begin = r->at;
    int low = f->low;
    int high = f->high;
    int step = 1;
    bool range = true;

    if (!next_is(r, '*')) {
        if (!read_value(r, f, &low))
            return false;
        high = low;
        range = next_is(r, '-');
        if (range && !read_value(r, f, &high))
            return false;
        if (low > high && f == &fields[WEEKDAY] && high == 0)
            high = 7; /* up to Sunday */
        if (low > high)
            return refuse(r, begin, "a range goes up");
    }
    if (!range && r->text[r->at] == '/')
        return refuse(r, r->at, "a step stands behind a range or *");
    if (next_is(r, '/') && !read_step(r, &step))
        return false;
    for (int i = low; i <= high; i += step)
        *bits |= UINT64_C(1) << i;
    return true;
}

static bool read_field(struct reader *r, const struct field *f, uint64_t *bits)
{
    *bits = 0;
    do {
        if (!read_item(r, f, bits))
            return false;
    } while (next_is(r, ','));
    if (!blank(r->text[r->at]) && r->text[r->at] != '\0')
        return refuse(r, r->at, "expected a comma, or a blank and the next field");
    return true;
}

/* Is there a day that one of the months has? */
static bool has_days(const struct due__cron *c)
{
    static const int most[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

    for (int month = 1; month <= 12; month++) {
        uint64_t all = (UINT64_C(2) << most[month - 1]) - 1;

        if ((c->months >> month & 1) != 0 && (c->days & all) != 0)
            return true;
    }
    return c->either; /* then the days of the week do */
}

static bool read_fields(struct reader *r, struct due__cron *c)
{
    uint64_t *const bits[FIELDS] = { &c->minutes, &c->hours, &c->days, &c->months, &c->weekdays };
    bool all[FIELDS];
    size_t day_at = 0;

    for (int i = 0; i < FIELDS; i++) {
        skip_blanks(r);
        if (r->text[r->at] == '\0')
            return refuse(r, r->at, "fewer than five fields");
        if (i == DAY)
            day_at = r->at;
        all[i] = r->text[r->at] == '*';
        if (!read_field(r, &fields[i], bits[i]))
            return false;
    }
    if (c->weekdays >> 7 & 1)
        c->weekdays = (c->weekdays | 1) & 0x7f;
    c->either = !all[DAY] && !all[WEEKDAY];
    skip_blanks(r);
    if (r->text[r->at] != '\0')
        return refuse(r, r->at, "more than five fields");
    return has_days(c) || refuse(r, day_at, "none of the months has such a day");
}

/* "@daily", and what it means. */
static bool read_word(struct reader *r, struct due__cron *c)
{
    size_t len = strcspn(r->text + r->at, " \t");

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t n = strlen(words[i].word);
        struct reader meaning = { .text = words[i].means };

        if (n != len || memcmp(r->text + r->at, words[i].word, n) != 0)
            continue;
        r->at += n;
        skip_blanks(r);
        if (r->text[r->at] != '\0')
            return refuse(r, r->at, "more than one word");
        return read_fields(&meaning, c);
    }
    return refuse(r, r->at,
                  "no such word: @yearly, @annually, @monthly, @weekly, @daily, @midnight or "
                  "@hourly");
}

const char *due__cron_read(struct due__cron *c, const char *text, size_t *at)
{
    struct reader r = { .text = text };

    skip_blanks(&r);
    if (text[r.at] == '@')
        (void)read_word(&r, c);
    else
        (void)read_fields(&r, c);
    *at = r.at;
    return r.wrong;
}
