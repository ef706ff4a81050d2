/* due_read(): the bytes of a job that waits, or is dead. */
#include "lab/shop.h"
#include "lab/take.h"

#define LONG 10000u

static unsigned char bytes[LONG];

static due_id put_long(struct lab *lab)
{
    due_spec spec = { DUE_SPEC_INIT, .data = bytes, .len = LONG, .at_ns = 10 };
    due_id id;

    for (size_t i = 0; i < LONG; i++)
        bytes[i] = (unsigned char)(i * 7 / 3);
    cr_assert_eq(due_enqueue(lab->q, &spec, 0, &id), 0);
    return id;
}

static void read_all(struct lab *lab)
{
    static unsigned char got[LONG + 1];
    due_id tea =
        lab_enqueue(lab, "tea", .at_ns = 10, .more = EXTRA(.headers = "head", .headers_len = 4));
    due_id large = put_long(lab);
    due_id none = lab_enqueue(lab, "", .at_ns = 10);
    size_t len = 99;

    memset(got, '#', sizeof got);
    cr_expect_eq(due_read(lab->q, tea, got, sizeof got, &len), 0);
    cr_expect_eq(len, 3u);
    cr_expect_eq(memcmp(got, "tea#", 4), 0);
    cr_expect_eq(due_read(lab->q, tea, got, 1, NULL), 0);
    cr_expect_eq(due_read(lab->q, large, got, 5, &len), 0, "a part");
    cr_expect_eq(len, LONG);
    cr_expect_eq(memcmp(got, bytes, 5), 0);
    memset(got, '#', sizeof got);
    cr_expect_eq(due_read(lab->q, large, got, sizeof got, &len), 0, "all of it");
    cr_expect_eq(memcmp(got, bytes, LONG), 0);
    cr_expect_eq(got[LONG], '#');
    cr_expect_eq(due_read(lab->q, none, NULL, 0, &len), 0);
    cr_expect_eq(len, 0u);
    cr_expect_eq(due_read(lab->q, tea, NULL, 1, &len), DUE_EINVAL);
    cr_expect_eq(lab_stats(lab).waiting, 3u);
}

static void take_all(struct lab *lab)
{
    due_job job;

    lab_turn_to(lab, 10);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(lab_take(lab, &job), 0, "%d", i);
        due_job_done(&job);
    }
}

Test(read, copies_what_waits_and_leaves_it_there, .timeout = 60)
{
    struct lab lab = lab_open();

    read_all(&lab);
    take_all(&lab);
    lab_close(&lab);
}

Test(read, copies_what_waits_in_a_store, .timeout = 60)
{
    struct shop s = shop_make();

    read_all(&s.lab);
    take_all(&s.lab);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    shop_close(&s);
}

/* A short one keeps its place among equals. */
Test(read, does_not_change_the_order, .timeout = 60)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "first", .at_ns = 10);
    char got[8];

    lab_enqueue(&lab, "second", .at_ns = 10);
    cr_expect_eq(due_read(lab.q, id, got, sizeof got, NULL), 0);
    lab_turn_to(&lab, 10);
    cr_expect_eq(due_read(lab.q, id, got, sizeof got, NULL), 0, "ready");
    cr_expect_str_eq(lab_dequeue_all(&lab), "first second");
    lab_close(&lab);
}

/* Nobody has looked since: whose lease is over waits again. */
Test(read, copies_what_has_been_left_lying, .timeout = 60)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10);
    char got[8];
    due_job job;
    size_t len;

    lab_turn_to(&lab, 10);
    cr_assert_eq(lab_reserve(&lab, &job, 5), 0);
    lab_turn_to(&lab, 14);
    cr_expect_eq(due_read(lab.q, id, got, sizeof got, &len), DUE_EBUSY);
    lab_turn_to(&lab, 15);
    cr_assert_eq(due_read(lab.q, id, got, sizeof got, &len), 0);
    cr_expect_eq(len, 3u);
    cr_expect_arr_eq(got, "tea", 3);
    cr_expect_eq(due_ack(&job), DUE_ESTALE);
    cr_expect_str_eq(lab_dequeue_all(&lab), "tea");
    lab_close(&lab);
}

Test(read, copies_what_is_dead, .timeout = 60)
{
    for (int large = 0; large < 2; large++) {
        struct lab lab = lab_open();
        static unsigned char got[LONG];
        due_id id = large ? put_long(&lab) : lab_enqueue(&lab, "tea", .at_ns = 10);
        due_job job;
        size_t len;

        lab_turn_to(&lab, 10);
        cr_assert_eq(lab_reserve(&lab, &job, 5), 0);
        cr_expect_eq(due_read(lab.q, id, got, LONG, &len), DUE_EBUSY);
        cr_expect_eq(due_bury(&job, "why"), 0);
        cr_expect_eq(due_read(lab.q, id, got, LONG, &len), 0);
        cr_expect_eq(len, large ? LONG : 3u);
        cr_expect_eq(memcmp(got, large ? (const void *)bytes : "tea", len), 0);
        cr_expect_eq(lab_stats(&lab).dead, 1u, "it is dead still");
        cr_expect_eq(due_kick(lab.q, id), 0);
        cr_expect_eq(lab_reserve(&lab, &job, 5), 0);
        cr_expect_eq(due_ack(&job), 0);
        cr_expect_eq(due_read(lab.q, id, got, LONG, &len), DUE_ENOENT);
        lab_close(&lab);
    }
}
