/* test_duectl_dump.c - jobs as lines: written, read, and broken in many ways. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "lab/crew.h"
#include "move/move.h"

#define ID  "\"id\":\"f00000000001000000000000002a0000\""
#define JOB ID ",\"topic\":\"\",\"deadline\":\"2030-01-01T00:00:00.000000001Z\""

static const char *const lines[] = {
    "{\"due_export\":1}",
    "{" ID ",\"topic\":\"post/\xc3\xb6\",\"deadline\":\"2030-01-01T00:00:00.000000001Z\","
    "\"until\":\"never\",\"priority\":15,\"attempts\":4294967295,\"failures\":2,"
    "\"headers\":{\"base64\":\"AA==\"},\"key\":\"k \\\"1\\\\\",\"keep_key_ns\":5,\"group\":\"g\","
    "\"retry\":{\"kind\":\"ladder\",\"attempts_max\":4,\"rungs_ns\":[1,9223372036854775807]},"
    "\"ttl_ns\":77,\"every_ns\":9,\"repeat\":\"once\",\"dead\":{\"cause\":\"attempts\","
    "\"at\":\"1970-01-01T00:00:00.000000000Z\",\"reason\":\"why\"},\"data\":\"a\\tb\\nc\\r\"}",
    "{" JOB ",\"priority\":15,\"retry\":{\"kind\":\"exponential\",\"delay_ns\":1,\"cap_ns\":2},"
    "\"expires\":\"2262-04-11T23:47:16.000000000Z\",\"data\":{\"base64\":\"AP+A\"}}",
    "{" JOB ",\"priority\":15,\"retry\":{\"kind\":\"fixed\",\"delay_ns\":1},\"data\":\"\"}",
    ("{\"kept_for\":\"ff0000000001000000000000002a0000\","
     "\"until\":\"2030-01-01T00:00:00.000001000Z\",\"key\":\"k\"}"),
    "{\"jobs\":12,\"kept_keys\":0}",
};

/* Read a copy of the bytes that has no byte behind it.  The caller frees *@copy. */
static bool read_copy(const char *line, size_t len, struct ctl_dump *dump, struct due__ctl_json *j,
                      char **copy)
{
    *copy = malloc(len > 0 ? len : 1);
    memcpy(*copy, line, len);
    *j = (struct due__ctl_json){ .line = *copy, .len = len };
    bool fine = ctl_dump_read(dump, j);

    cr_assert(fine == (j->fault == NULL), "%.*s", (int)len, line);
    cr_assert_leq(j->at, len);
    return fine;
}

static void write_again(struct due__ctl_buffer *b, const struct ctl_dump *d)
{
    if (d->kind == CTL_DUMP_HEAD)
        ctl_dump_head(b);
    else if (d->kind == CTL_DUMP_END)
        ctl_dump_end(b, (uint64_t)d->jobs, (uint64_t)d->keys);
    else if (d->kind == CTL_DUMP_KEY)
        ctl_dump_key(b, d->record.key, d->record.key_len, d->record.id, d->kept_until_ns);
    else
        ctl_dump_job(b, &d->record);
}

/* What is taken is written in one way, which says the same. */
static void expect_stable(const char *line, size_t len)
{
    struct due__ctl_buffer once = { 0 };
    struct due__ctl_buffer twice = { 0 };
    struct ctl_dump dump;
    struct due__ctl_json j;
    char *copy;

    if (read_copy(line, len, &dump, &j, &copy)) {
        write_again(&once, &dump);
        free(copy);
        cr_assert(read_copy(once.bytes, once.len - 1, &dump, &j, &copy), "%.*s: %s", (int)once.len,
                  once.bytes, j.fault);
        write_again(&twice, &dump);
        cr_assert(once.len == twice.len && memcmp(once.bytes, twice.bytes, once.len) == 0);
    }
    free(copy);
    due__ctl_buffer_free(&once);
    due__ctl_buffer_free(&twice);
}

Test(dump, a_line_is_written_as_it_was_read)
{
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct due__ctl_buffer b = { 0 };
        struct ctl_dump dump;
        struct due__ctl_json j;
        char *copy;

        cr_assert(read_copy(lines[i], strlen(lines[i]), &dump, &j, &copy), "%s: %s", lines[i],
                  j.fault);
        write_again(&b, &dump);
        cr_expect(b.len == strlen(lines[i]) + 1 && memcmp(b.bytes, lines[i], b.len - 1) == 0 &&
                      b.bytes[b.len - 1] == '\n',
                  "%s", lines[i]);
        free(copy);
        due__ctl_buffer_free(&b);
    }
}

Test(dump, any_bytes_come_back_as_they_were)
{
    static const char some[] = "a\xc3\xb6\"\\\n\x7f\xed\xa0\x80\xf0\x9f\x98\x80";
    uint64_t random = 7;

    for (int round = 0; round < 3000; round++) {
        struct due__ctl_buffer b = { 0 };
        unsigned char bytes[40];
        size_t len = (size_t)crew_below(&random, sizeof bytes);
        struct ctl_dump dump;
        struct due__ctl_json j;
        char *copy;

        for (size_t i = 0; i < len; i++) /* some are text */
            bytes[i] = round % 3 == 0 ? (unsigned char)crew_below(&random, 128)
                                      : (unsigned char)some[crew_below(&random, sizeof some - 1)];
        due_record r = { .id = { { 255 } }, .topic = "", .data = bytes, .len = len };
        ctl_dump_job(&b, &r);
        cr_assert(read_copy(b.bytes, b.len - 1, &dump, &j, &copy), "%s", j.fault);
        cr_assert(dump.record.len == len &&
                  (len == 0 || memcmp(dump.record.data, bytes, len) == 0));
        free(copy);
        due__ctl_buffer_free(&b);
    }
}

Test(dump, a_line_that_was_cut_off_is_refused)
{
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        for (size_t len = 0; len < strlen(lines[i]); len++) {
            struct ctl_dump dump;
            struct due__ctl_json j;
            char *copy;

            cr_assert_not(read_copy(lines[i], len, &dump, &j, &copy), "%.*s", (int)len, lines[i]);
            free(copy);
        }
    }
}

Test(dump, a_byte_that_is_another_is_refused_or_says_something, .timeout = 60)
{
    static const char others[] = { 0, '"', '\\', '{', '}', ',', ':', '0', '9', 'u', '=', '\xff' };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        size_t len = strlen(lines[i]);
        char *line = malloc(len + 1);

        for (size_t at = 0; at < len; at++) {
            for (size_t k = 0; k < sizeof others; k++) {
                memcpy(line, lines[i], len);
                line[at] = others[k];
                expect_stable(line, len);
                memmove(line + at, lines[i] + at, len - at); /* one more, one less */
                memmove(line + at + 1, lines[i] + at, len - at);
                line[at] = others[k];
                expect_stable(line, len + 1);
            }
            memcpy(line, lines[i], at);
            memcpy(line + at, lines[i] + at + 1, len - at - 1);
            expect_stable(line, len - 1);
        }
        free(line);
    }
}

Test(dump, what_is_wrong_is_said_and_where)
{
    static const struct {
        const char *line;
        const char *fault;
        size_t at;
    } wrong[] = {
        { "", "expected {", 0 },
        { "[]", "expected {", 0 },
        { "{}", "expected a string", 1 },
        { "{\"due_export\":1} x", "something stands behind", 17 },
        { "{\"due_export\":1,}", "expected a string", 16 },
        { "{\"due_export\":1,\"due_export\":1}", "it stands twice", 16 },
        { "{\"export\":1}", "no such word", 1 },
        { "{\"due_export\":1,\"jobs\":1}", "these fields do not belong", 25 },
        { "{\"jobs\":-1,\"kept_keys\":0}", "expected a whole number", 8 },
        { "{\"jobs\":1.5,\"kept_keys\":0}", "expected a whole number", 9 },
        { "{\"jobs\":01,\"kept_keys\":0}", "expected a whole number", 10 },
        { "{\"jobs\":9223372036854775808,\"kept_keys\":0}", "the number is too large", 8 },
        { "{\"id\":\"f0\"}", "expected the id", 6 },
        { "{\"id\":\"f08000000001000000000000002a0000\"}", "expected the id", 6 },
        { "{\"id\":\"f00000000001000000000000002a0001\"}", "expected the id", 6 },
        { "{" JOB ",\"data\":\"\"}", "the priority is not that", 106 },
        { "{" JOB ",\"priority\":15}", "a job needs", 110 },
        { "{" JOB ",\"priority\":256}", "the number is too large", 107 },
        { "{" ID ",\"deadline\":\"1969-12-31T23:59:59Z\"}", "expected a time", 52 },
        { "{" ID ",\"deadline\":\"2030-01-01T00:00:00\"}", "expected a time", 52 },
        { "{" ID ",\"deadline\":\"2030-13-01T00:00:00Z\"}", "expected a time", 52 },
        { "{" ID ",\"topic\":{\"base64\":\"YQBi\"}}", "a zero byte", 49 },
        { "{\"key\":\"\"}", "it is empty", 7 },
        { "{\"key\":{\"base64\":\"AB==\"}}", "this is no base64", 23 },
        { "{\"key\":{\"base64\":\"A\"}}", "this is no base64", 20 },
        { "{\"key\":{\"base32\":\"\"}}", "expected {\"base64\":", 16 },
        { "{\"key\":\"\\ud800\"}", "half a character", 14 },
        { "{\"key\":\"\\udc00\\ud800\"}", "half a character", 14 },
        { "{\"key\":\"\\q\"}", "no such escape", 9 },
        { "{\"key\":\"\\u12g4\"}", "expected four", 12 },
        { "{\"key\":\"a\nb\"}", "a control character", 9 },
        { "{\"retry\":{\"kind\":\"fixed\",\"cap_ns\":1}}", "a policy needs its kind", 36 },
        { "{\"retry\":{\"delay_ns\":1}}", "a policy needs its kind", 23 },
        { "{\"retry\":{\"kind\":\"ladder\"}}", "a policy needs its kind", 26 },
        { "{\"retry\":{\"rungs_ns\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}}", "a ladder has 1 to",
          54 },
        { "{\"repeat\":\"never\"}", "no such word", 10 },
        { "{\"dead\":{\"cause\":\"buried\"}}", "a dead job needs", 26 },
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct ctl_dump dump;
        struct due__ctl_json j;
        char *copy;

        cr_assert_not(read_copy(wrong[i].line, strlen(wrong[i].line), &dump, &j, &copy), "%s",
                      wrong[i].line);
        cr_expect(strncmp(j.fault, wrong[i].fault, strlen(wrong[i].fault)) == 0, "%s: %s",
                  wrong[i].line, j.fault);
        cr_expect_eq(j.at, wrong[i].at, "%s: %s at %zu", wrong[i].line, j.fault, j.at);
        free(copy);
    }
}

/* A million different lines and one: nothing is forgotten, little is taken for what it is not. */
Test(dump, a_filter_knows_all_that_came_before)
{
    struct ctl_filter f;
    unsigned wrong = 0;

    ctl_filter_open(&f);
    for (uint64_t i = 0; i < 100000; i++)
        wrong += ctl_filter_add(&f, ctl_hash(&i, sizeof i));
    cr_expect_leq(wrong, 3u);
    for (uint64_t i = 0; i < 100000; i++)
        cr_assert(ctl_filter_add(&f, ctl_hash(&i, sizeof i)));
    ctl_filter_close(&f);
}
