/* test_duectl_schedule.c - lines with fields, and lines that come again. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "move/move.h"

static struct ctl_entry entry_of(const char *line)
{
    struct ctl_entry entry;

    ctl_entry_read(&entry, line, strlen(line));
    return entry;
}

static void expect_value(const struct ctl_value *v, const char *bytes, size_t len)
{
    cr_expect(v->given && v->len == len && memcmp(v->bytes, bytes, len) == 0, "%.*s", (int)v->len,
              v->bytes);
}

Test(schedule, has_fields_in_front_of_any_time)
{
    static const char line[] = "  topic=mail priority=255 key=\"a b\\\"\\\\\\x00\\n\\t\" group=g= "
                               "ttl=1m30s\theaders=h  1.5s  key=text";
    struct ctl_entry e = entry_of(line);

    cr_assert_eq(e.kind, CTL_DELAY, "%s", e.reason);
    cr_expect_eq(e.ns, DUE_MS(1500));
    cr_expect_str_eq(line + e.text, "key=text");
    expect_value(&e.fields.topic, "mail", 4);
    expect_value(&e.fields.key, "a b\"\\\0\n\t", 8);
    expect_value(&e.fields.group, "g=", 2);
    expect_value(&e.fields.headers, "h", 1);
    cr_expect_eq(e.fields.priority, 255);
    cr_expect_eq(e.fields.ttl_ns, DUE_S(90));
    cr_expect_not(entry_of("1s topic=a x").fields.any, "behind the time it is text");
}

Test(schedule, knows_what_comes_again)
{
    static const struct {
        const char *line;
        enum ctl_kind kind;
        const char *cron;
    } cases[] = {
        { "every 5m x", CTL_EVERY, "" },
        { "every\t1h30m x", CTL_EVERY, "" },
        { "0 8 * * * x", CTL_CRON, "0 8 * * *" },
        { "*/5 * * * * x", CTL_CRON, "*/5 * * * *" },
        { "0,30 8-17/2 1 JAN sun 5 x", CTL_CRON, "0,30 8-17/2 1 JAN sun" },
        { "key=a 0\t 8 * * * x", CTL_CRON, "0\t 8 * * *" },
        { "@daily x", CTL_CRON, "@daily" },
        { "@2026-12-01 x", CTL_DATE, "" },
        { "@1796112000 x", CTL_DATE, "" },
        { "5s 8 * * * x", CTL_DELAY, "" },
        { "0ns * x", CTL_DELAY, "" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ctl_entry e = entry_of(cases[i].line);

        cr_expect_eq(e.kind, cases[i].kind, "%s: %s", cases[i].line, e.reason);
        cr_expect_str_eq(e.cron, cases[i].cron, "%s", cases[i].line);
    }
}

/* The line that @line's job says in its headers; the job is freed by the caller. */
static struct ctl_more *more_of(const char *line, const char *zone)
{
    struct ctl_entry e = entry_of(line);
    struct ctl_more *m = NULL;
    const char *why = NULL;

    cr_assert(ctl_more_new(&m, &e, zone, line + e.text, strlen(line + e.text), &why), "%s", why);
    return m;
}

Test(rounds, say_their_line_in_the_headers_and_keep_its_key)
{
    struct ctl_more *m =
        more_of("key=\"k\\x01\" group=g ttl=1h headers=hh 30 2 * * * x", "Europe/Berlin");
    struct ctl_entry back;
    int64_t next;

    cr_assert(ctl_round_read(&back, m->extra.headers, m->extra.headers_len));
    expect_value(&back.fields.key, "k\1", 2);
    expect_value(&back.fields.group, "g", 1);
    expect_value(&back.fields.zone, "Europe/Berlin", 13);
    cr_expect_eq(back.fields.ttl_ns, DUE_S(3600));
    cr_expect_eq(memcmp((const char *)m->extra.headers + m->extra.headers_len - 3, "\nhh", 3), 0);
    /* from before the gap of 29 March 2026 to the first instant behind it */
    cr_assert_eq(ctl_round_next(&back, DUE_S(1774656000), DUE_S(1774740000), &next), 0);
    cr_expect_eq(next, DUE_S(1774746000));
    free(m);
}

Test(rounds, of_equal_lines_have_one_key_whatever_the_zone_of_others)
{
    static const char *const lines[] = {
        "every 5m x",           "every 300s x",          "every 5m y",
        "every 6m x",           "topic=t every 5m x",    "group=g every 5m x",
        "headers=h every 5m x", "priority=1 every 5m x", "0 8 * * * x",
        "zone=UTC 0 8 * * * x",
    };
    struct ctl_more *m[10];
    struct ctl_more *other = more_of("0 8 * * * x", "Asia/Kathmandu");

    for (size_t i = 0; i < 10; i++)
        m[i] = more_of(lines[i], "UTC");
    for (size_t i = 0; i < 10; i++) {
        for (size_t k = 0; k < i; k++)
            cr_expect_eq(memcmp(m[i]->extra.key, m[k]->extra.key, m[i]->extra.key_len) == 0,
                         i == 1 && k == 0, "%s, %s", lines[i], lines[k]);
    }
    cr_expect_eq(memcmp(other->extra.key, m[8]->extra.key, other->extra.key_len), 0);
    for (size_t i = 0; i < 10; i++)
        free(m[i]);
    free(other);
}

Test(rounds, that_have_passed_are_left_out)
{
    struct ctl_entry every = entry_of("every 5s x");
    int64_t next;

    cr_assert_eq(ctl_round_next(&every, 100, 100, &next), 0);
    cr_expect_eq(next, 100 + DUE_S(5));
    cr_assert_eq(ctl_round_next(&every, 100, 100 + DUE_S(12), &next), 0);
    cr_expect_eq(next, 100 + DUE_S(15));
    cr_assert_eq(ctl_round_next(&every, 100, 100 + DUE_S(15), &next), 0);
    cr_expect_eq(next, 100 + DUE_S(20));
    cr_assert_eq(ctl_round_next(&every, 100, 50, &next), 0); /* a clock that was set back */
    cr_expect_eq(next, 100 + DUE_S(5));
}

Test(rounds, are_not_read_of_other_headers)
{
    static const char *const others[] = {
        "",
        "x",
        "\1duectl",
        "\1duectl \n",
        "\1duectl every 5m\n",
        "\1duectl key=k 5m\n",
        "\1duectl key=k every 5m",
        "\1duectl key=k every 0s\n",
        "\1duectl key=k 99 * * * *\n",
        "duectl key=k every 5m\n",
    };
    struct ctl_entry e;

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        cr_expect_not(ctl_round_read(&e, others[i], strlen(others[i])), "%s", others[i]);
    cr_expect_not(ctl_round_read(&e, NULL, 0));
    cr_expect(ctl_round_read(&e, "\1duectl key=k every 5m\n\0\n", 25));
}
