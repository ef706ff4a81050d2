/* test_record.c - a job's bytes in a store. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "record/record.h"

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
    struct due__record_room name;
    size_t n;

    r.deadline_ns = r.until_ns = when;
    unsigned char *bytes = written(&r, &n);
    cr_assert_eq(due__record_read(&back, &name, bytes, n), 0);
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
    struct due__record_room name;
    size_t n;
    unsigned char *bytes = written(&r, &n);
    int taken = 0;

    for (size_t len = 0; len < n; len++) {
        due_record back = { .id = r.id };
        unsigned char *part = malloc(len + 1);
        memcpy(part, bytes, len);
        taken += due__record_read(&back, &name, part, len) == 0;
        free(part);
    }
    cr_expect_eq(taken, 0);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        due_record back = { .id = r.id };
        bytes[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        taken += due__record_read(&back, &name, bytes, n) != DUE_ECORRUPT;
        bytes[bit / 8] ^= (unsigned char)(1u << (bit % 8));
    }
    cr_expect_eq(taken, 0);
    free(bytes);
}

Test(record, of_another_job_is_refused)
{
    due_record r = sample("mail", "some payload", 12);
    struct due__record_room name;
    size_t n;
    unsigned char *bytes = written(&r, &n);

    for (size_t i = 0; i < DUE_STORE_ID_BYTES; i++) {
        due_record back = { .id = r.id };
        back.id.byte[i]++;
        cr_expect_eq(due__record_read(&back, &name, bytes, n), DUE_ECORRUPT);
    }
    free(bytes);
}

/* Finds the check that fits, as a newer version would write it. */
static int read_with_any_check(unsigned char *bytes, size_t n, due_id id)
{
    struct due__record_room name;
    int found = DUE_ECORRUPT;

    for (unsigned c = 0; c <= 0xffff && found == DUE_ECORRUPT; c++) {
        due_record back = { .id = id };
        bytes[2] = (unsigned char)c;
        bytes[3] = (unsigned char)(c >> 8);
        found = due__record_read(&back, &name, bytes, n);
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
    bytes[12] = 1; /* what stands behind a record is none of it */
    cr_expect_eq(read_with_any_check(bytes, DUE__RECORD_HEAD, r.id), DUE_ECORRUPT);
    free(bytes);
}

/* Whatever stands there: refused if a bit is wrong, or some bytes are missing. */
static void expect_entry(const due_record *r)
{
    unsigned char entry[DUE__ENTRY_MOST];
    struct due__record_room room;
    due_record back = { .id = r->id };
    size_t n = due__entry_write(r, entry);
    int taken = 0;

    cr_assert_eq(due__entry_read(&back, &room, entry, n), 0);
    cr_expect_eq(back.deadline_ns, r->deadline_ns);
    cr_expect_eq(back.until_ns, r->until_ns);
    cr_expect_eq(back.attempts, r->attempts);
    cr_expect_eq(back.failures, r->failures);
    cr_expect_eq(back.cause, r->cause);
    cr_expect_eq(back.died_ns, r->died_ns);
    cr_expect_str_eq(back.reason != NULL ? back.reason : "", r->reason != NULL ? r->reason : "");
    for (size_t len = 0; len < n; len++)
        taken += due__entry_read(&back, &room, entry, len) != DUE_ECORRUPT;
    for (size_t bit = 0; bit < 8 * n; bit++) {
        entry[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        taken += due__entry_read(&back, &room, entry, n) != DUE_ECORRUPT;
        entry[bit / 8] ^= (unsigned char)(1u << (bit % 8));
    }
    back.id.byte[3]++;
    taken += due__entry_read(&back, &room, entry, n) != DUE_ECORRUPT;
    cr_expect_eq(taken, 0);
}

Test(entry, is_read_as_it_was_written_and_refused_if_it_was_not)
{
    char reason[DUE_REASON_BYTES];
    due_record r = sample("", NULL, 0);

    cr_expect_not(due__record_has_entry(&r));
    r.until_ns = INT64_MAX;
    r.attempts = UINT32_MAX;
    r.failures = 7;
    cr_expect(due__record_has_entry(&r));
    expect_entry(&r);
    memset(reason, 'r', sizeof reason);
    reason[DUE_REASON_BYTES - 1] = '\0';
    for (int cause = DUE_CAUSE_BURIED; cause <= DUE_CAUSE_EXPIRED; cause++) {
        r.cause = (enum due_cause)cause;
        r.died_ns = INT64_MAX - (cause - DUE_CAUSE_BURIED);
        r.reason = cause == DUE_CAUSE_BURIED ? reason : NULL;
        expect_entry(&r);
    }
}

/* As docs/redis-layout.md says, and examples/read_queue.py computes it: what is stored already has
 * to be read. */
Test(record, has_the_check_that_it_always_had)
{
    static const unsigned char bytes[] = "what was stored by an earlier program";

    cr_expect_eq(due__record_check(sample("", NULL, 0).id, bytes, sizeof bytes - 1), 31202u);
}

/* One that was written so, not one that was damaged. */
Test(entry, with_a_reason_that_ends_before_its_last_byte_makes_no_sense)
{
    due_record r = sample("", NULL, 0);
    struct due__record_room room;
    unsigned char entry[DUE__ENTRY_MOST];

    r.cause = DUE_CAUSE_BURIED;
    r.reason = "why";
    size_t n = due__entry_write(&r, entry);
    for (size_t at = n - 3; at <= n; at++) {
        due_record back = { .id = r.id };
        unsigned char was = at < n ? entry[at] : 0;

        if (at < n)
            entry[at] = '\0';
        due__bytes_put(entry + 2, due__record_check(r.id, entry, n), 2);
        cr_expect_eq(due__entry_read(&back, &room, entry, n), at < n ? DUE_ECORRUPT : 0);
        if (at < n)
            entry[at] = was;
    }
}

Test(entry, of_a_job_that_is_not_dead_has_28_bytes)
{
    due_record r = sample("", NULL, 0);
    unsigned char entry[DUE__ENTRY_MOST];

    r.attempts = 1;
    cr_expect_eq(due__entry_write(&r, entry), 28u);
    r.cause = DUE_CAUSE_ATTEMPTS;
    cr_expect_eq(due__entry_write(&r, entry), 38u);
}

/* ---- What only some jobs have ---------------------------------------------------------------- */

static unsigned char bytes_256[256];

/* As much of everything as there may be. */
static due_record full(due_retry *retry)
{
    due_record r = sample("topic", "payload", 7);

    for (size_t i = 0; i < sizeof bytes_256; i++)
        bytes_256[i] = (unsigned char)i;
    *retry = (due_retry){ .kind = DUE_RETRY_LADDER, .attempts_max = UINT32_MAX, .rungs = 16 };
    for (int i = 0; i < DUE_RUNGS_MAX; i++)
        retry->rung_ns[i] = INT64_MAX - i;
    r.headers = bytes_256;
    r.headers_len = DUE_HEADERS_MAX;
    r.retry = retry;
    r.ttl_ns = INT64_MAX;
    r.expires_ns = 1;
    r.keep_key_ns = INT64_MAX - 1;
    r.every_ns = 5;
    r.repeat = DUE_REPEAT_AFTER;
    r.key = bytes_256;
    r.key_len = DUE_KEY_MAX;
    r.group = bytes_256 + 1;
    r.group_len = DUE_KEY_MAX;
    return r;
}

static void expect_piece(const void *a, size_t a_len, const void *b, size_t b_len)
{
    cr_assert_eq(a_len, b_len);
    cr_expect(a_len == 0 ? a == NULL : memcmp(a, b, a_len) == 0);
}

/* Reads what it wrote; answers how many bytes stand before the payload. */
static size_t expect_same(const due_record *r)
{
    struct due__record_room room;
    due_record back = { .id = r->id, .key = "what was there", .ttl_ns = 77 };
    size_t n;
    unsigned char *bytes = written(r, &n);

    cr_assert_eq(due__record_read(&back, &room, bytes, n), 0);
    expect_piece(back.headers, back.headers_len, r->headers, r->headers_len);
    expect_piece(back.key, back.key_len, r->key, r->key_len);
    expect_piece(back.group, back.group_len, r->group, r->group_len);
    expect_piece(back.data, back.len, r->data, r->len);
    cr_expect_str_eq(back.topic, r->topic);
    cr_expect_eq(back.ttl_ns, r->ttl_ns);
    cr_expect_eq(back.expires_ns, r->expires_ns);
    cr_expect_eq(back.keep_key_ns, r->keep_key_ns);
    cr_expect_eq(back.every_ns, r->every_ns);
    cr_expect_eq(back.repeat, r->repeat);
    cr_expect_eq(back.retry == NULL, r->retry == NULL);
    if (r->retry != NULL && back.retry != NULL)
        cr_expect(memcmp(back.retry, r->retry, sizeof *r->retry) == 0);
    free(bytes);
    return n - r->len;
}

Test(record, keeps_as_much_of_everything_as_there_may_be)
{
    due_retry retry;
    due_record r = full(&retry);

    cr_expect_eq(expect_same(&r) + DUE_TOPIC_LENGTH - 5, DUE__RECORD_FRONT);
}

Test(record, costs_only_what_the_job_has)
{
    due_retry retry;
    due_record all = full(&retry);
    due_record plain = sample("", NULL, 0);

    cr_expect_eq(expect_same(&plain), 12u);
    due_record r = plain;
    r.headers = bytes_256;
    r.headers_len = 3;
    cr_expect_eq(expect_same(&r), 12u + 2 + 3);
    r = plain;
    r.key = bytes_256; /* its first byte is NUL */
    r.key_len = 4;
    cr_expect_eq(expect_same(&r), 12u + 1 + 4);
    r = plain;
    r.group = bytes_256;
    r.group_len = 1;
    cr_expect_eq(expect_same(&r), 12u + 1 + 1);
    r = plain;
    r.ttl_ns = 1;
    cr_expect_eq(expect_same(&r), 12u + 1 + 8);
    r.every_ns = all.every_ns;
    cr_expect_eq(expect_same(&r), 12u + 1 + 16);
}

Test(record, keeps_a_policy_of_each_kind)
{
    due_retry retry = { .kind = DUE_RETRY_FIXED, .attempts_max = 3, .delay_ns = INT64_MAX };
    due_record r = sample("", NULL, 0);

    r.retry = &retry;
    cr_expect_eq(expect_same(&r), 12u + 5 + 8);
    retry.delay_ns = 0;
    cr_expect_eq(expect_same(&r), 12u + 5 + 8);
    retry = (due_retry){ .kind = DUE_RETRY_EXPONENTIAL, .delay_ns = 1, .cap_ns = 2 };
    cr_expect_eq(expect_same(&r), 12u + 5 + 16);
    retry = (due_retry){ .kind = DUE_RETRY_LADDER, .attempts_max = 2, .rungs = 1 };
    cr_expect_eq(expect_same(&r), 12u + 6 + 8);
}

Test(record, with_all_parts_is_refused_if_a_byte_is_wrong_or_missing)
{
    due_retry retry;
    due_record r = full(&retry);
    struct due__record_room room;
    size_t n;
    unsigned char *bytes = written(&r, &n);
    int taken = 0;

    for (size_t len = 0; len < n; len++) {
        due_record back = { .id = r.id };
        unsigned char *part = malloc(len + 1);
        memcpy(part, bytes, len);
        taken += due__record_read(&back, &room, part, len) == 0;
        free(part);
    }
    for (size_t bit = 0; bit < 8 * n; bit++) {
        due_record back = { .id = r.id };
        bytes[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        taken += due__record_read(&back, &room, bytes, n) != DUE_ECORRUPT;
        bytes[bit / 8] ^= (unsigned char)(1u << (bit % 8));
    }
    cr_expect_eq(taken, 0);
    free(bytes);
}

/* Bytes behind the head, with a check that fits. */
static int read_parts(unsigned flags, const unsigned char *parts, size_t len)
{
    unsigned char bytes[64] = { 1, (unsigned char)flags };
    unsigned char *exact = malloc(12 + len);
    due_id id = { { 9 } };

    memcpy(bytes + 12, parts, len);
    memcpy(exact, bytes, 12 + len); /* so that a byte too far is noticed */
    int rc = read_with_any_check(exact, 12 + len, id);
    free(exact);
    return rc;
}

#define PARTS(flags, ...)                                       \
    read_parts((flags), (const unsigned char[]){ __VA_ARGS__ }, \
               sizeof((const unsigned char[]){ __VA_ARGS__ }))

Test(record, with_lengths_that_lie_is_refused, .timeout = 60)
{
    cr_expect_eq(PARTS(DUE__RECORD_HEADERS, 0, 0, 1), DUE_ECORRUPT);
    cr_expect_eq(PARTS(DUE__RECORD_HEADERS, 2, 0, 1), DUE_ECORRUPT);
    cr_expect_eq(PARTS(DUE__RECORD_HEADERS, 255, 255, 1), DUE_ECORRUPT);
    cr_expect_eq(PARTS(DUE__RECORD_HEADERS, 1), DUE_ECORRUPT);
    cr_expect_eq(PARTS(DUE__RECORD_HEADERS, 1, 0, 7), 0);
    cr_expect_eq(PARTS(DUE__RECORD_KEY, 0, 1), DUE_ECORRUPT);
    cr_expect_eq(PARTS(DUE__RECORD_KEY, 2, 1), DUE_ECORRUPT);
    cr_expect_eq(PARTS(DUE__RECORD_KEY, 1, 1), 0);
    cr_expect_eq(PARTS(DUE__RECORD_GROUP, 255, 1), DUE_ECORRUPT);
    cr_expect_eq(PARTS(DUE__RECORD_RETRY, 3, 0, 0, 0, 0, 17, 1, 1), DUE_ECORRUPT);
    cr_expect_eq(PARTS(DUE__RECORD_RETRY, 3, 0, 0, 0, 0, 0), DUE_ECORRUPT);
    cr_expect_eq(PARTS(DUE__RECORD_RETRY, 0, 0, 0, 0, 0), DUE_ECORRUPT);
    cr_expect_eq(PARTS(DUE__RECORD_RETRY, 1, 0, 0, 0, 0, 1, 2), DUE_ECORRUPT);
    cr_expect_eq(PARTS(DUE__RECORD_RETRY, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 0x80), DUE_ECORRUPT);
    cr_expect_eq(PARTS(DUE__RECORD_RETRY, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8), 0);
    cr_expect_eq(PARTS(DUE__RECORD_NUMBERS, 0), DUE_ECORRUPT);
    cr_expect_eq(PARTS(DUE__RECORD_NUMBERS, 1, 0, 0, 0, 0, 0, 0, 0, 0), DUE_ECORRUPT);
    cr_expect_eq(PARTS(DUE__RECORD_NUMBERS, 1, 1, 0, 0, 0, 0, 0, 0, 0), 0);
    cr_expect_eq(PARTS(DUE__RECORD_NUMBERS, 3, 1, 0, 0, 0, 0, 0, 0, 0), DUE_ECORRUPT);
}

Test(record, of_a_kind_that_is_not_known_is_of_a_newer_version, .timeout = 60)
{
    cr_expect_eq(PARTS(DUE__RECORD_RETRY, 4, 0, 0, 0, 0), DUE_EVERSION);
    cr_expect_eq(PARTS(DUE__RECORD_NUMBERS, 0x40), DUE_EVERSION);
    cr_expect_eq(PARTS(DUE__RECORD_NUMBERS, 0x30), DUE_EVERSION);
    cr_expect_eq(PARTS(0x40, 1), DUE_EVERSION);
    cr_expect_eq(PARTS(0x80, 1), DUE_EVERSION);
}
