/* test_record_bytes.c - a job's bytes in a store, byte by byte: as they are stored already. */
#include <criterion/criterion.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* Byte by byte as docs/redis-layout.md says: what reader and writer agree on must not change. */
Test(record, with_all_parts_has_the_bytes_that_it_always_had)
{
    static const unsigned char known[] = {
        1,    0x3f, 0,    0,                         /* version, flags, check */
        0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 1, /* deadline */
        4,    'm',  'a',  'i',  'l',                 /* topic */
        2,    0,    'h',  'd',                       /* headers */
        2,    0x0d, 0x0c, 0x0b, 0x0a,                /* exponential, attempts */
        0x11, 0,    0,    0,    0,    0,    0,    0, /* delay */
        0x22, 0,    0,    0,    0,    0,    0,    0, /* cap */
        0x2f,                                        /* all four numbers, again after */
        1,    0,    0,    0,    0,    0,    0,    0, 2, 0, 0, 0, 0, 0, 0, 0, /* ttl, expires */
        3,    0,    0,    0,    0,    0,    0,    0, 4, 0, 0, 0, 0, 0, 0, 0, /* keep_key, every */
        3,    'k',  'e',  'y',  1,    'g',  'p', /* key, group, payload */
    };
    due_retry retry = {
        .kind = DUE_RETRY_EXPONENTIAL, .attempts_max = 0x0a0b0c0d, .delay_ns = 0x11, .cap_ns = 0x22
    };
    due_record r = sample("mail", "p", 1);
    size_t n;

    r.deadline_ns = r.until_ns = 0x0102030405060708;
    r.headers = "hd";
    r.headers_len = 2;
    r.retry = &retry;
    r.ttl_ns = 1;
    r.expires_ns = 2;
    r.keep_key_ns = 3;
    r.every_ns = 4;
    r.repeat = DUE_REPEAT_AFTER;
    r.key = "key";
    r.key_len = 3;
    r.group = "g";
    r.group_len = 1;
    unsigned char *bytes = written(&r, &n);
    cr_assert_eq(n, sizeof known);
    cr_expect_eq(due__bytes_get(bytes + 2, 2), due__record_check(r.id, bytes, n));
    bytes[2] = bytes[3] = 0;
    for (size_t i = 0; i < n; i++)
        cr_expect_eq(bytes[i], known[i], "byte %zu is %02x", i, bytes[i]);
    free(bytes);
}

Test(record, with_a_ladder_and_some_numbers_has_the_bytes_that_it_always_had)
{
    static const unsigned char known[] = {
        1,    0x0c, 0, 0, 0xfb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 3, 7, 0, 0,
        0,    2, /* ladder, attempts, rungs */
        5,    0,    0, 0, 0,    0,    0,    0,    6,    0,    0,    0,    0, 0, 0, 0,
        0x0a, /* expires and every */
        9,    0,    0, 0, 0,    0,    0,    0,    8,    0,    0,    0,    0, 0, 0, 0,
    };
    due_retry retry = {
        .kind = DUE_RETRY_LADDER, .attempts_max = 7, .rungs = 2, .rung_ns = { 5, 6 }
    };
    due_record r = sample("", NULL, 0);
    size_t n;

    r.retry = &retry;
    r.expires_ns = 9;
    r.every_ns = 8;
    unsigned char *bytes = written(&r, &n);
    cr_assert_eq(n, sizeof known);
    bytes[2] = bytes[3] = 0;
    for (size_t i = 0; i < n; i++)
        cr_expect_eq(bytes[i], known[i], "byte %zu is %02x", i, bytes[i]);
    free(bytes);
}

Test(entry, has_the_bytes_that_it_always_had)
{
    static const unsigned char known[] = {
        1, 1,   0,   0,   0xfb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, /* deadline */
        6, 0,   0,   0,   0,    0,    0,    0,                            /* until */
        4, 3,   2,   1,   8,    7,    6,    5,                            /* counts */
        2, 9,   0,   0,   0,    0,    0,    0,    0,                      /* cause, died */
        3, 'w', 'h', 'y',
    };
    due_record r = sample("", NULL, 0);
    unsigned char entry[DUE__ENTRY_MOST];

    r.until_ns = 6;
    r.attempts = 0x01020304;
    r.failures = 0x05060708;
    r.cause = (enum due_cause)2;
    r.died_ns = 9;
    r.reason = "why";
    cr_assert_eq(due__entry_write(&r, entry), sizeof known);
    cr_expect_eq(due__bytes_get(entry + 2, 2), due__record_check(r.id, entry, sizeof known));
    entry[2] = entry[3] = 0;
    for (size_t i = 0; i < sizeof known; i++)
        cr_expect_eq(entry[i], known[i], "byte %zu is %02x", i, entry[i]);
}

Test(entry, is_needed_as_soon_as_one_thing_differs)
{
    due_record plain = sample("", NULL, 0);
    due_record r = plain;

    r.until_ns++;
    cr_expect(due__record_has_entry(&r));
    r = plain;
    r.attempts = 1;
    cr_expect(due__record_has_entry(&r));
    r = plain;
    r.failures = 1;
    cr_expect(due__record_has_entry(&r));
    r = plain;
    r.cause = DUE_CAUSE_BURIED;
    cr_expect(due__record_has_entry(&r));
}

/* With a check that fits. */
static int entry_with(size_t at, unsigned char byte, size_t longer)
{
    due_record r = sample("", NULL, 0);
    due_record back = { .id = r.id };
    struct due__record_room room;
    unsigned char entry[DUE__ENTRY_MOST + 1] = { 0 };

    r.cause = DUE_CAUSE_EXPIRED;
    r.died_ns = 5;
    r.reason = "why";
    size_t n = due__entry_write(&r, entry) + longer;
    entry[at] = byte;
    due__bytes_put(entry + 2, due__record_check(r.id, entry, n), 2);
    return due__entry_read(&back, &room, entry, n);
}

Test(entry, of_a_dead_job_that_makes_no_sense_is_refused)
{
    cr_expect_eq(entry_with(28, DUE_CAUSE_EXPIRED, 0), 0);
    cr_expect_eq(entry_with(28, DUE_CAUSE_EXPIRED + 1, 0), DUE_EVERSION);
    cr_expect_eq(entry_with(28, 0, 0), DUE_ECORRUPT);
    cr_expect_eq(entry_with(36, 0x80, 0), DUE_ECORRUPT, "it died before the beginning of time");
    cr_expect_eq(entry_with(36, 0x7f, 0), 0);
    cr_expect_eq(entry_with(37, 2, 0), DUE_ECORRUPT, "there is more than the reason");
    cr_expect_eq(entry_with(37, 4, 0), DUE_ECORRUPT, "there is less than the reason");
    cr_expect_eq(entry_with(37, 4, 1), DUE_ECORRUPT, "a NUL is in it");
    cr_expect_eq(entry_with(1, 3, 0), DUE_EVERSION);
    cr_expect_eq(entry_with(1, 0, 0), DUE_ECORRUPT, "too long for one that is not dead");
}

/* Behind it there is nothing that could be read. */
Test(entry, of_a_dead_job_that_is_cut_off_is_refused_wherever_it_ends)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    due_record r = sample("", NULL, 0);
    struct due__record_room room;
    unsigned char entry[DUE__ENTRY_MOST];
    unsigned char *end =
        (unsigned char *)mmap(NULL, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + page;

    cr_assert_eq(mprotect(end - page, page, PROT_READ | PROT_WRITE), 0);
    r.cause = DUE_CAUSE_EXPIRED;
    r.died_ns = 5;
    r.reason = "why";
    const size_t whole = due__entry_write(&r, entry);
    for (size_t n = 0; n <= whole; n++) {
        due_record back = { .id = r.id };

        memcpy(end - n, entry, n);
        if (n >= 4)
            due__bytes_put(end - n + 2, due__record_check(r.id, end - n, n), 2);
        cr_expect_eq(due__entry_read(&back, &room, end - n, n), n < whole ? DUE_ECORRUPT : 0, "%d",
                     (int)n);
    }
    munmap(end - page, 2 * page);
}

Test(record, tells_its_key_alone)
{
    static const unsigned char longest[DUE_KEY_MAX] = { 7 };
    due_record r = sample("topic", "payload", 7);
    const void *key = NULL;
    size_t len = 0;
    size_t n;

    r.headers = "hd";
    r.headers_len = 2;
    r.key = longest;
    r.key_len = DUE_KEY_MAX;
    r.group = "g";
    r.group_len = 1;
    unsigned char *bytes = written(&r, &n);
    cr_assert(due__record_key(bytes, n, &key, &len));
    cr_expect_eq(len, (size_t)DUE_KEY_MAX);
    cr_expect_eq(memcmp(key, r.key, len), 0);
    bytes[0]++;
    cr_expect_not(due__record_key(bytes, n, &key, &len), "of another version");
    bytes[0]--;
    bytes[12] = 0;
    cr_expect_not(due__record_key(bytes, n, &key, &len), "no topic");
    bytes[12] = (unsigned char)strlen(r.topic);
    cr_expect(due__record_key(bytes, n, &key, &len));
    size_t before = n - r.len - (1 + r.group_len) - 1;
    cr_expect_not(due__record_key(bytes, before, &key, &len), "cut in its key");
    cr_expect_not(due__record_key(bytes, DUE__RECORD_HEAD - 1, &key, &len));
    free(bytes);
    r.key_len = 0;
    r.key = NULL;
    bytes = written(&r, &n);
    cr_expect_not(due__record_key(bytes, n, &key, &len), "none");
    free(bytes);
}

Test(record, of_a_topic_with_a_NUL_is_refused)
{
    due_record r = sample("mail", NULL, 0);
    due_record back = { .id = r.id };
    struct due__record_room room;
    size_t n;
    unsigned char *bytes = written(&r, &n);

    cr_expect_eq(due__record_read(&back, &room, bytes, n), 0);
    bytes[n - 1] = '\0';
    due__bytes_put(bytes + 2, due__record_check(r.id, bytes, n), 2);
    cr_expect_eq(due__record_read(&back, &room, bytes, n), DUE_ECORRUPT);
    free(bytes);
}
