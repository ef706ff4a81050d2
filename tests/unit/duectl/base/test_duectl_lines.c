/* test_duectl_lines.c - a file or a pipe becomes lines. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

/* What the sink got: texts between bars, and how often bytes arrived. */
struct got {
    char text[512];
    uint64_t lines;
    size_t longest;
    int arrivals;
    int too_long;
    uint64_t stop_at;
};

static void arrived(void *ctx)
{
    struct got *got = ctx;

    got->arrivals++;
}

static bool line(void *ctx, const struct ctl_line *line)
{
    struct got *got = ctx;
    size_t len = strlen(got->text);

    got->lines++;
    cr_expect_eq(line->number, got->lines);
    got->too_long += line->too_long;
    if (line->len > got->longest)
        got->longest = line->len;
    if (len + line->len + 2 < sizeof got->text) {
        if (line->len > 0)
            memcpy(got->text + len, line->bytes, line->len);
        memcpy(got->text + len + line->len, "|", 2);
    }
    return got->lines != got->stop_at;
}

static int read_fd(int fd, int stop_fd, struct got *got)
{
    struct ctl_input in = { .name = "test", .fd = fd };
    struct ctl_sink sink = { .arrived = arrived, .line = line, .ctx = got };

    return ctl_lines_read(&in, stop_fd, &sink);
}

/* Read these bytes from a file. */
static int read_bytes(const char *bytes, size_t len, struct got *got)
{
    FILE *file = tmpfile();
    int rc;

    cr_assert_not_null(file);
    cr_assert_eq(fwrite(bytes, 1, len, file), len);
    rewind(file);
    rc = read_fd(fileno(file), -1, got);
    fclose(file);
    return rc;
}

static int read_text(const char *text, struct got *got)
{
    return read_bytes(text, strlen(text), got);
}

Test(lines, end_with_lf_or_cr_lf_or_the_input)
{
    struct got got = { .lines = 0 };

    cr_expect_eq(read_text("a\nb\r\n\nc\rd\r\r\n\r\nlast", &got), 0);
    cr_expect_str_eq(got.text, "a|b||c\rd\r||last|");
}

Test(lines, of_an_empty_input_are_none)
{
    struct got got = { .lines = 0 };

    cr_expect_eq(read_text("", &got), 0);
    cr_expect_eq(got.lines, 0u);
    cr_expect_eq(got.arrivals, 1);
}

Test(lines, of_the_longest_kind_are_whole_and_longer_ones_are_cut)
{
    static const struct {
        size_t len;
        const char *ending;
        bool too_long;
    } cases[] = {
        { CTL_LINE_MAX, "\n", false },    { CTL_LINE_MAX, "\r\n", false },
        { CTL_LINE_MAX, "", false },      { CTL_LINE_MAX + 1, "\n", true },
        { CTL_LINE_MAX + 1, "", true },   { CTL_LINE_MAX + 1, "\r\n", true },
        { 3 * CTL_LINE_MAX, "\n", true },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t ending = strlen(cases[i].ending);
        size_t len = cases[i].len + ending;
        char *bytes = malloc(len + 6);
        struct got got = { .lines = 0 };

        cr_assert_not_null(bytes);
        memset(bytes, 'x', len);
        memcpy(bytes + cases[i].len, cases[i].ending, ending);
        memcpy(bytes + len, "\nnext", 6);
        if (ending == 0)
            cr_expect_eq(read_bytes(bytes, len, &got), 0);
        else
            cr_expect_eq(read_bytes(bytes, len + 5, &got), 0);
        cr_expect_eq(got.too_long, cases[i].too_long, "case %zu", i);
        cr_expect_eq(got.longest, (size_t)CTL_LINE_MAX, "case %zu: %zu", i, got.longest);
        cr_expect_eq(got.lines, ending == 0 ? 1u : 3u, "case %zu", i);
        free(bytes);
    }
}

Test(lines, may_have_any_bytes)
{
    static const char bytes[] = "a\0b\n\xff\xfe\n";
    struct got got = { .lines = 0 };

    cr_expect_eq(read_bytes(bytes, sizeof bytes - 1, &got), 0);
    cr_expect_eq(got.lines, 2u);
    cr_expect_eq(got.longest, 3u);
}

Test(lines, stop_when_the_sink_does)
{
    struct got got = { .stop_at = 2 };

    cr_expect_eq(read_text("a\nb\nc\n", &got), 1);
    cr_expect_str_eq(got.text, "a|b|");
}

Test(lines, stop_when_told_while_a_pipe_says_nothing)
{
    struct got got = { .lines = 0 };
    int input[2];
    int stop[2];

    cr_assert_eq(pipe(input), 0);
    cr_assert_eq(pipe(stop), 0);
    cr_assert_eq(write(stop[1], "x", 1), 1);
    cr_expect_eq(read_fd(input[0], stop[0], &got), 1);
    cr_expect_eq(got.lines, 0u);
}

Test(lines, of_a_directory_are_an_error)
{
    struct ctl_input in;

    cr_expect_not(ctl_input_open(&in, "/"));
    cr_expect_not(ctl_input_open(&in, "/nowhere/at/all"));
}
