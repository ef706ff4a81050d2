/* test_scratch.c - where a record is put together. */
#include <criterion/criterion.h>
#include <string.h>

#include "record/scratch.h"

static const due_id id = { .byte = { 127, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 9 } };

static due_record record_of(const void *data, size_t len)
{
    return (due_record){ .id = id, .topic = "mail", .data = data, .len = len, .deadline_ns = 7 };
}

Test(scratch, holds_a_record_in_one_piece)
{
    struct due__scratch s = { 0 };
    struct due__record_room room;
    due_record given = record_of("tea", 3);
    due_record got = { .id = id };
    size_t front;
    size_t len;

    cr_assert_eq(due__scratch_record(&s, &given, &front, &len), 0);
    cr_expect_eq(len, front + 3);
    cr_assert_eq(due__record_read(&got, &room, s.bytes, len), 0);
    cr_expect_eq(got.len, 3);
    cr_expect_eq(memcmp(got.data, "tea", 3), 0);
    due__scratch_free(&s);
    cr_expect_null(s.bytes);
}

Test(scratch, keeps_what_small_records_take_and_gives_back_what_a_large_one_took)
{
    static const char large[DUE__SCRATCH_KEEP];
    struct due__scratch s = { 0 };
    due_record small = record_of("tea", 3);
    due_record big = record_of(large, sizeof large);
    size_t front;
    size_t len;

    cr_assert_eq(due__scratch_record(&s, &small, &front, &len), 0);
    const unsigned char *kept = s.bytes;
    due__scratch_shrink(&s);
    cr_expect_eq(s.bytes, kept);
    cr_assert_eq(due__scratch_record(&s, &big, &front, &len), 0);
    cr_expect_gt(s.room, DUE__SCRATCH_KEEP);
    due__scratch_shrink(&s);
    cr_expect_eq(s.room, 0);
    due__scratch_free(&s);
}

Test(scratch, refuses_a_payload_that_no_memory_holds)
{
    struct due__scratch s = { 0 };
    due_record given = record_of("", SIZE_MAX);
    size_t front;
    size_t len;

    cr_expect_eq(due__scratch_record(&s, &given, &front, &len), DUE_ENOMEM);
    cr_expect_eq(s.room, 0);
    due__scratch_free(&s);
}
