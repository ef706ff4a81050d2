/* Ids: comparing, printing, reading; and what an id of another time or place is worth. */
#include "lab/lab.h"

LAB_TEST(id, differs_from_job_to_job)
{
    enum { JOBS = 200 };
    struct lab lab = lab_open();
    due_id id[JOBS];

    for (int i = 0; i < JOBS; i++) {
        id[i] = lab_enqueue(&lab, "job", .delay_ns = i);
        for (int k = 0; k < i; k++)
            cr_expect_not(due_id_equal(id[i], id[k]), "%d and %d", i, k);
    }
    lab_close(&lab);
}

LAB_TEST(id, differs_from_that_of_the_job_before_in_the_same_memory)
{
    struct lab lab = lab_open();
    due_id before = lab_enqueue(&lab, "first", .delay_ns = 0);

    for (int i = 0; i < 1000; i++) {
        cr_assert_not_null(lab_dequeue(&lab));
        due_id now = lab_enqueue(&lab, "next", .delay_ns = 0);

        cr_assert_not(due_id_equal(before, now), "round %d", i);
        cr_assert_eq(due_cancel(lab.q, before, NULL), DUE_ENOENT, "round %d", i);
        before = now;
    }
    lab_close(&lab);
}

LAB_TEST(id, is_printed_as_32_hexadecimal_digits)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "job", .delay_ns = 1);
    char text[DUE_ID_TEXT + 1];

    memset(text, '#', sizeof text);
    cr_expect_eq(due_id_format(id, text), text);
    cr_expect_eq(strlen(text), 32u);
    cr_expect_eq(strspn(text, "0123456789abcdefABCDEF"), 32u);
    cr_expect_eq(text[DUE_ID_TEXT], '#', "wrote past its end");
    lab_close(&lab);
}

LAB_TEST(id, that_was_read_is_as_good_as_the_one_printed)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "job", .delay_ns = 1);
    due_id read = { { 0 } };
    char text[DUE_ID_TEXT];

    due_id_format(id, text);
    cr_expect_eq(due_id_parse(text, &read), 0);
    cr_expect(due_id_equal(id, read));
    cr_expect_eq(due_cancel(lab.q, read, NULL), 0);
    lab_close(&lab);
}

Test(id, reads_back_every_byte)
{
    char text[DUE_ID_TEXT];
    due_id id;
    due_id read;

    for (size_t at = 0; at < sizeof id.byte; at++)
        for (int value = 0; value < 256; value++) {
            memset(&id, 0, sizeof id);
            memset(&read, 0x77, sizeof read);
            id.byte[at] = (unsigned char)value;
            due_id_format(id, text);
            cr_assert_eq(due_id_parse(text, &read), 0);
            cr_assert(due_id_equal(id, read), "byte %zu = %d", at, value);
        }
}

Test(id, refuses_to_read_what_is_not_32_hexadecimal_digits)
{
    static const char *const texts[] = {
        "",
        "0",
        "0000000000000000000000000000000",
        "000000000000000000000000000000000",
        "0000000000000000000000000000000g",
        "g0000000000000000000000000000000",
        "0x000000000000000000000000000000",
        " 0000000000000000000000000000000",
        "0000000000000000000000000000000 ",
        "-0000000000000000000000000000000",
        "00000000-0000-0000-0000-00000000",
    };
    due_id before;
    due_id id;

    memset(&before, 0x55, sizeof before);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        id = before;
        cr_expect_eq(due_id_parse(texts[i], &id), DUE_EINVAL, "\"%s\"", texts[i]);
        cr_expect_arr_eq(id.byte, before.byte, sizeof id.byte, "\"%s\" changed it", texts[i]);
    }
}

Test(id, is_read_from_digits_of_either_case_and_from_nothing_else)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    char text[DUE_ID_TEXT];
    due_id id;

    memset(text, '0', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int c = 1; c < 256; c++) {
        const char *at = strchr(digits, c);
        int value = at == NULL ? 0 : (int)(at - digits) - (at - digits >= 16 ? 6 : 0);

        text[0] = (char)c;
        cr_expect_eq(due_id_parse(text, &id), at != NULL ? 0 : DUE_EINVAL, "%d", c);
        if (at != NULL)
            cr_expect_eq(id.byte[0], value << 4, "%c", c);
    }
}

static void expect_unknown(due_queue *q, due_id id)
{
    due_info info;
    int64_t ns;

    cr_expect_eq(due_cancel(q, id, NULL), DUE_ENOENT);
    cr_expect_eq(due_reschedule(q, id, 5), DUE_ENOENT);
    cr_expect_eq(due_promote(q, id), DUE_ENOENT);
    cr_expect_eq(due_find(q, id, &info), DUE_ENOENT);
    cr_expect_eq(due_remaining(q, id, &ns), DUE_ENOENT);
}

/* D3 */
LAB_TEST(id, of_another_queue_is_unknown)
{
    struct lab lab = lab_open();
    struct lab other = lab_open();
    due_id id = lab_enqueue(&lab, "mine", .delay_ns = 5);
    due_id others = lab_enqueue(&other, "other", .delay_ns = 5);

    cr_expect_not(due_id_equal(id, others));
    expect_unknown(other.q, id);
    expect_unknown(lab.q, others);
    lab_advance(&lab, 5);
    lab_advance(&other, 5);
    cr_expect_str_eq(lab_dequeue(&lab), "mine");
    cr_expect_str_eq(lab_dequeue(&other), "other");
    lab_close(&other);
    lab_close(&lab);
}

/* D3 */
LAB_TEST(id, of_a_finished_job_is_unknown)
{
    struct lab lab = lab_open();
    due_id taken = lab_enqueue(&lab, "taken", .delay_ns = 0);

    cr_expect_str_eq(lab_dequeue(&lab), "taken");
    due_id cancelled = lab_enqueue(&lab, "cancelled", .delay_ns = 0);
    cr_expect_eq(due_cancel(lab.q, cancelled, NULL), 0);

    expect_unknown(lab.q, taken);
    expect_unknown(lab.q, cancelled);
    lab_close(&lab);
}

/* A2, D3 */
LAB_TEST(id, that_was_made_up_is_unknown)
{
    struct lab lab = lab_open();
    uint64_t seed = 1;
    due_id real = lab_enqueue(&lab, "job", .delay_ns = 5);
    due_id id = { { 0 } };

    expect_unknown(lab.q, id);
    memset(&id, 0xff, sizeof id);
    expect_unknown(lab.q, id);
    for (int i = 0; i < 10000; i++) {
        for (size_t k = 0; k < sizeof id.byte; k++)
            id.byte[k] = (unsigned char)crew_random(&seed);
        cr_assert_eq(due_cancel(lab.q, id, NULL), DUE_ENOENT);
    }
    for (size_t k = 0; k < sizeof real.byte; k++)
        for (unsigned bit = 0; bit < 8; bit++) {
            id = real;
            id.byte[k] = (unsigned char)(id.byte[k] ^ 1u << bit);
            cr_assert_eq(due_cancel(lab.q, id, NULL), DUE_ENOENT, "byte %zu bit %u", k, bit);
        }
    cr_expect_eq(due_cancel(lab.q, real, NULL), 0);
    lab_close(&lab);
}
