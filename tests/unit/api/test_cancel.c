/* Taking a job back. */
#include "lab/lab.h"

#include <limits.h>

#define LARGE "a payload that does not fit into the thirty-two bytes of a job"

LAB_TEST(cancel, takes_a_waiting_job_back_for_good)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "job", .at_ns = 10);

    cr_expect_eq(due_cancel(lab.q, id, NULL), 0);
    lab_turn_to(&lab, 10);
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_eq(lab_stats(&lab).cancelled, 1u);
    cr_expect_eq(lab_stats(&lab).waiting, 0u);
    lab_close(&lab);
}

LAB_TEST(cancel, takes_a_job_back_that_is_due_and_not_yet_taken)
{
    struct lab lab = lab_open();
    due_id first = lab_enqueue(&lab, "first", .at_ns = 10);
    due_id second = lab_enqueue(&lab, "second", .at_ns = 11);

    lab_enqueue(&lab, "third", .at_ns = 12);
    lab_turn_to(&lab, 20);
    cr_expect_eq(due_cancel(lab.q, second, NULL), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "first");
    cr_expect_eq(due_cancel(lab.q, first, NULL), DUE_ENOENT);
    cr_expect_str_eq(lab_dequeue(&lab), "third");
    lab_close(&lab);
}

/* A2 */
LAB_TEST(cancel, answers_enoent_the_second_time)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "job", .delay_ns = 10);

    cr_expect_eq(due_cancel(lab.q, id, NULL), 0);
    cr_expect_eq(due_cancel(lab.q, id, NULL), DUE_ENOENT);
    lab_close(&lab);
}

LAB_TEST(cancel, answers_ebusy_while_somebody_has_the_job)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "job", .delay_ns = 0);
    due_job job;

    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(due_cancel(lab.q, id, NULL), DUE_EBUSY);
    due_job_done(&job);
    cr_expect_eq(due_cancel(lab.q, id, NULL), DUE_ENOENT);
    lab_close(&lab);
}

LAB_TEST(cancel, lends_the_job_to_the_caller_who_asks_for_it)
{
    struct lab lab = lab_open();
    int topic = lab_topic(&lab, "mail");
    due_id id = lab_enqueue(&lab, LARGE, .at_ns = 10, .topic = topic, .priority = 3);
    due_job job;

    memset(&job, 0x5a, sizeof job);
    cr_assert_eq(due_cancel(lab.q, id, &job), 0);
    cr_expect(due_id_equal(job.id, id));
    cr_expect_eq(job.deadline_ns, 10);
    cr_expect_eq(job.topic, topic);
    cr_expect_eq(job.priority, 3);
    cr_expect_geq(job.lateness_ns, 0);
    cr_expect_eq(job.len, strlen(LARGE));
    cr_expect_arr_eq(job.data, LARGE, strlen(LARGE));
    cr_expect_eq(due_cancel(lab.q, id, NULL), DUE_EBUSY, "it is lent");
    due_job_done(&job);
    cr_expect_eq(due_cancel(lab.q, id, NULL), DUE_ENOENT);
    lab_close(&lab);
}

LAB_TEST(cancel, releases_the_bytes_when_nobody_asks_for_the_job)
{
    struct lab lab = lab_open(.with.reserve = 10);
    size_t live = atomic_load(&lab.state->memory.live);
    due_id id = lab_enqueue(&lab, LARGE, .delay_ns = 10);

    cr_expect_eq(due_cancel(lab.q, id, NULL), 0);
    cr_expect_eq(due_trim(lab.q), 0);
    cr_expect_eq(atomic_load(&lab.state->memory.live), live);
    lab_close(&lab);
}

LAB_TEST(cancel, gives_a_carried_pointer_back)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, NULL, .delay_ns = 10, .ptr = &lab);
    due_job job;

    cr_assert_eq(due_cancel(lab.q, id, &job), 0);
    cr_expect_eq(job.ptr, &lab);
    due_job_done(&job);
    cr_expect_eq(atomic_load(&lab.state->discarded), 0u, "cancel is not discard");
    lab_close(&lab);
}

LAB_TEST(cancel, changes_nothing_when_it_fails)
{
    struct lab lab = lab_open();
    due_id id = { { 0 } };
    due_job none = { .queue = NULL };
    due_job job;

    memset(&job, 0x5a, sizeof job);
    cr_expect_eq(due_cancel(lab.q, id, &job), DUE_ENOENT);
    cr_expect_arr_eq(&job, &none, sizeof job, "due_job_done() of it does nothing");
    cr_expect_eq(lab_stats(&lab).cancelled, 0u);
    lab_close(&lab);
}

/* Each of the orders of n jobs, and each of them cancelled. */
static void cancel_from_order(const int *order, int n)
{
    struct lab lab = lab_open();

    for (int victim = 0; victim < n; victim++) {
        int64_t from = 100 * victim;
        int64_t last = from;
        due_id id[8];
        due_job job;

        for (int i = 0; i < n; i++)
            id[i] = lab_enqueue(&lab, NULL, .at_ns = from + 1 + order[i]);
        cr_assert_eq(due_cancel(lab.q, id[victim], NULL), 0);
        lab_turn_to(&lab, from + 50);
        for (int i = 0; i < n - 1; i++) {
            cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
            cr_assert_gt(job.deadline_ns, last);
            cr_assert_neq(job.deadline_ns, from + 1 + order[victim], "the cancelled one came");
            last = job.deadline_ns;
            due_job_done(&job);
        }
        cr_assert_null(lab_dequeue(&lab));
    }
    lab_close(&lab);
}

static void permute(int *order, int k, int n)
{
    if (k == n) {
        cancel_from_order(order, n);
        return;
    }
    for (int i = k; i < n; i++) {
        int swap = order[k];

        order[k] = order[i];
        order[i] = swap;
        permute(order, k + 1, n);
        order[i] = order[k];
        order[k] = swap;
    }
}

/* A1, A3: the sole, the last, the first, the middle one, whatever order they came in */
Test(cancel, works_from_every_position_of_every_order, .timeout = 60)
{
    int order[5] = { 0, 1, 2, 3, 4 };

    lab_proxies = DUE_PROXIES_NEVER;
    for (int n = 1; n <= 5; n++)
        permute(order, 0, n);
}

/* A5, J2: what is left behind stays in proportion to what lives */
LAB_TEST(cancel, leaves_no_more_behind_than_there_are_live_jobs)
{
    enum { LIVE = 1000, ROUNDS = 200000 };
    struct lab lab = lab_open();
    static due_id id[LIVE];
    uint64_t seed = 3;
    uint64_t most = 0;

    for (int i = 0; i < LIVE; i++)
        id[i] = lab_enqueue(&lab, NULL, .delay_ns = DUE_S(100));
    for (int i = 0; i < ROUNDS; i++) {
        size_t at = (size_t)crew_below(&seed, LIVE);

        cr_assert_eq(due_cancel(lab.q, id[at], NULL), 0);
        id[at] = lab_enqueue(&lab, NULL, .delay_ns = 1 + (int64_t)crew_below(&seed, 1u << 30));
        if (i % 1000 == 0 && lab_stats(&lab).slots > most)
            most = lab_stats(&lab).slots;
    }
    cr_expect_leq(most, 20 * LIVE, "%ju slots for %d jobs", (uintmax_t)most, LIVE);
    lab_close(&lab);
}

/* A taker passes over a limited number of cancelled jobs in one tenure; what it then shows of the
 * rest must not be taken for the end. */
LAB_TEST(cancel, does_not_hide_a_job_behind_many_cancelled_ones)
{
    enum { JOBS = 640 };
    struct lab lab = lab_open();
    static due_id id[JOBS];

    for (int live = 520; live < JOBS; live += 7) {
        for (int i = 0; i < JOBS; i++)
            id[i] = lab_enqueue(&lab, "job", .delay_ns = 0);
        cr_expect_str_eq(lab_dequeue(&lab), "job");
        for (int i = 1; i < JOBS; i++) {
            if (i != live)
                cr_assert_eq(due_cancel(lab.q, id[i], NULL), 0);
        }
        const char *text = lab_dequeue(&lab);
        cr_assert_not_null(text, "job %d is hidden", live);
        cr_expect_null(lab_dequeue(&lab));
    }
    lab_close(&lab);
}

LAB_TEST(cancel_batch, answers_how_many_and_tells_of_each)
{
    struct lab lab = lab_open();
    due_id ids[4];
    int results[4] = { 1, 1, 1, 1 };
    due_job job;

    ids[0] = lab_enqueue(&lab, "taken", .delay_ns = 0);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    ids[1] = lab_enqueue(&lab, "a", .delay_ns = 1);
    ids[2] = ids[1];
    ids[3] = lab_enqueue(&lab, "b", .delay_ns = 1);
    cr_expect_eq(due_cancel_batch(lab.q, ids, 4, results), 2);
    cr_expect_eq(results[0], DUE_EBUSY);
    cr_expect_eq(results[1], 0);
    cr_expect_eq(results[2], DUE_ENOENT);
    cr_expect_eq(results[3], 0);
    due_job_done(&job);
    lab_close(&lab);
}

LAB_TEST(cancel_batch, works_without_room_for_answers)
{
    struct lab lab = lab_open();
    due_id ids[100];

    for (int i = 0; i < 100; i++)
        ids[i] = lab_enqueue(&lab, LARGE, .delay_ns = 1 + i);
    cr_expect_eq(due_cancel_batch(lab.q, ids, 100, NULL), 100);
    cr_expect_eq(due_cancel_batch(lab.q, ids, 100, NULL), 0);
    cr_expect_eq(due_cancel_batch(lab.q, ids, 0, NULL), 0);
    lab_close(&lab);
}

LAB_TEST(cancel_batch, refuses_more_than_it_can_count)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "left alone", .delay_ns = 1);

    cr_expect_eq(due_cancel_batch(lab.q, &id, (size_t)INT_MAX + 1, NULL), DUE_EINVAL);
    lab_advance(&lab, 1);
    cr_expect_str_eq(lab_dequeue(&lab), "left alone");
    lab_close(&lab);
}
