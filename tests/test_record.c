/* test_record.c - a job's bytes in a store. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "record.h"

static due_record sample(const char *topic, const void *data, size_t len)
{
    due_record r = { .deadline_ns = -5, .until_ns = -5, .topic = topic, .data = data, .len = len };

    for (unsigned char i = 0; i < DUE_STORE_ID_BYTES; i++)
        r.id.byte[i] = (unsigned char)(17 * i + 3);
    return r;
}

/* The whole record of @r; the caller frees it. */
static unsigned char *written(const due_record *r, size_t *len)
{
    unsigned char *bytes = malloc(DUE__RECORD_FRONT + r->len);

    *len = due__record_front(r, bytes);
    if (r->len > 0)
        memcpy(bytes + *len, r->data, r->len);
    *len += r->len;
    return bytes;
}

static void expect_round_trip(const char *topic, const void *data, size_t len, int64_t when)
{
    due_record r = sample(topic, data, len);
    due_record back = { .id = r.id };
    char name[DUE_TOPIC_LENGTH + 1];
    size_t n;

    r.deadline_ns = r.until_ns = when;
    unsigned char *bytes = written(&r, &n);
    cr_assert_eq(due__record_read(&back, name, bytes, n), 0);
    cr_expect_eq(back.deadline_ns, when);
    cr_expect_eq(back.until_ns, when);
    cr_expect_str_eq(back.topic, topic);
    cr_expect_eq(back.len, len);
    cr_expect(len > 0 ? memcmp(back.data, data, len) == 0 : back.data == NULL);
    cr_expect_eq(back.priority, 255 - r.id.byte[0]);
    free(bytes);
}

Test(record, is_read_as_it_was_written)
{
    char longest[DUE_TOPIC_LENGTH + 1];
    char data[300];

    memset(longest, 0xfe, DUE_TOPIC_LENGTH);
    longest[DUE_TOPIC_LENGTH] = '\0';
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)i;
    for (size_t len = 0; len < sizeof data; len++) {
        expect_round_trip("", data, len, INT64_MIN + (int64_t)len);
        expect_round_trip("t", data, len, INT64_MAX - (int64_t)len);
        expect_round_trip(longest, data, len, (int64_t)len);
    }
}

Test(record, of_a_plain_job_has_twelve_bytes_more_than_the_payload)
{
    due_record r = sample("", "x", 1);
    unsigned char front[DUE__RECORD_FRONT];

    cr_expect_eq(due__record_front(&r, front), 12u);
}

Test(record, is_refused_if_a_byte_is_wrong_or_missing)
{
    due_record r = sample("mail", "some payload", 12);
    char name[DUE_TOPIC_LENGTH + 1];
    size_t n;
    unsigned char *bytes = written(&r, &n);
    int taken = 0;

    for (size_t len = 0; len < n; len++) {
        due_record back = { .id = r.id };
        unsigned char *part = malloc(len + 1);
        memcpy(part, bytes, len);
        taken += due__record_read(&back, name, part, len) == 0;
        free(part);
    }
    cr_expect_eq(taken, 0);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        due_record back = { .id = r.id };
        bytes[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        taken += due__record_read(&back, name, bytes, n) != DUE_ECORRUPT;
        bytes[bit / 8] ^= (unsigned char)(1u << (bit % 8));
    }
    cr_expect_eq(taken, 0);
    free(bytes);
}

Test(record, of_another_job_is_refused)
{
    due_record r = sample("mail", "some payload", 12);
    char name[DUE_TOPIC_LENGTH + 1];
    size_t n;
    unsigned char *bytes = written(&r, &n);

    for (size_t i = 0; i < DUE_STORE_ID_BYTES; i++) {
        due_record back = { .id = r.id };
        back.id.byte[i]++;
        cr_expect_eq(due__record_read(&back, name, bytes, n), DUE_ECORRUPT);
    }
    free(bytes);
}

/* Finds the check that fits, as a newer version would write it. */
static int read_with_any_check(unsigned char *bytes, size_t n, due_id id)
{
    char name[DUE_TOPIC_LENGTH + 1];
    int found = DUE_ECORRUPT;

    for (unsigned c = 0; c <= 0xffff && found == DUE_ECORRUPT; c++) {
        due_record back = { .id = id };
        bytes[2] = (unsigned char)c;
        bytes[3] = (unsigned char)(c >> 8);
        found = due__record_read(&back, name, bytes, n);
    }
    return found;
}

Test(record, of_a_newer_version_is_told_from_a_damaged_one)
{
    due_record r = sample("", "some payload", 12);
    size_t n;
    unsigned char *bytes = written(&r, &n);

    bytes[0] = 2;
    cr_expect_eq(read_with_any_check(bytes, n, r.id), DUE_EVERSION);
    bytes[0] = 1;
    bytes[1] = 0x80;
    cr_expect_eq(read_with_any_check(bytes, n, r.id), DUE_EVERSION);
    bytes[0] = 0;
    bytes[1] = 0;
    cr_expect_eq(read_with_any_check(bytes, n, r.id), DUE_ECORRUPT);
    bytes[0] = 1;
    bytes[1] = DUE__RECORD_TOPIC;
    bytes[12] = 200; /* a topic longer than the record */
    cr_expect_eq(read_with_any_check(bytes, n, r.id), DUE_ECORRUPT);
    bytes[12] = 0;
    cr_expect_eq(read_with_any_check(bytes, n, r.id), DUE_ECORRUPT);
    free(bytes);
}

Test(entry, is_read_as_it_was_written_and_refused_if_it_was_not)
{
    due_record r = sample("", NULL, 0);
    unsigned char entry[DUE__ENTRY_BYTES];

    cr_expect(!due__record_has_entry(&r));
    r.until_ns = INT64_MAX;
    r.attempts = UINT32_MAX;
    r.failures = 7;
    cr_expect(due__record_has_entry(&r));
    due__entry_write(&r, entry);
    due_record back = { .id = r.id };
    cr_assert_eq(due__entry_read(&back, entry, sizeof entry), 0);
    cr_expect_eq(back.deadline_ns, r.deadline_ns);
    cr_expect_eq(back.until_ns, r.until_ns);
    cr_expect_eq(back.attempts, r.attempts);
    cr_expect_eq(back.failures, r.failures);
    for (size_t len = 0; len < sizeof entry; len++)
        cr_expect_eq(due__entry_read(&back, entry, len), DUE_ECORRUPT);
    for (size_t bit = 0; bit < 8 * sizeof entry; bit++) {
        entry[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        cr_expect_eq(due__entry_read(&back, entry, sizeof entry), DUE_ECORRUPT);
        entry[bit / 8] ^= (unsigned char)(1u << (bit % 8));
    }
    back.id.byte[3]++;
    cr_expect_eq(due__entry_read(&back, entry, sizeof entry), DUE_ECORRUPT);
}
