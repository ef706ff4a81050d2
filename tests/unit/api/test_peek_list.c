/* Looking: peek, find, remaining, list. */
#include "lab/lab.h"
#include "lab/take.h"

/* DelayQueue: peek sees an undue head; beanstalkd: the shortest delay */
LAB_TEST(peek, shows_the_next_job_although_it_is_not_due)
{
    struct lab lab = lab_open();
    int topic = lab_topic(&lab, "mail");
    due_info info;

    lab_enqueue(&lab, "later", .at_ns = 500);
    due_id id = lab_enqueue(&lab, "letter", .at_ns = 400, .topic = topic, .priority = 4);
    memset(&info, 0x5a, sizeof info);
    cr_assert_eq(due_peek(lab.q, &info), 0);
    cr_expect(due_id_equal(info.id, id));
    cr_expect_eq(info.deadline_ns, 400);
    cr_expect_eq(info.len, 6u);
    cr_expect_eq(info.topic, topic);
    cr_expect_eq(info.priority, 4);
    cr_expect_eq(info.ready, 0);
    lab_close(&lab);
}

LAB_TEST(peek, shows_a_due_job_before_others)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "due", .at_ns = 10);
    due_info info;

    lab_enqueue(&lab, "later", .at_ns = 20);
    lab_turn_to(&lab, 15);
    cr_assert_eq(due_peek(lab.q, &info), 0);
    cr_expect(due_id_equal(info.id, id));
    cr_expect_eq(info.ready, 1);
    lab_close(&lab);
}

LAB_TEST(peek, takes_nothing)
{
    struct lab lab = lab_open();
    due_info info;

    lab_enqueue(&lab, "job", .delay_ns = 0);
    cr_expect_eq(due_peek(lab.q, &info), 0);
    cr_expect_eq(due_peek(lab.q, &info), 0);
    cr_expect_eq(lab_stats(&lab).waiting, 1u);
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    lab_close(&lab);
}

LAB_TEST(peek, answers_eagain_when_nothing_is_held)
{
    struct lab lab = lab_open();
    due_info info;

    cr_expect_eq(due_peek(lab.q, &info), DUE_EAGAIN);
    due_id id = lab_enqueue(&lab, "job", .delay_ns = 5);
    cr_expect_eq(due_cancel(lab.q, id, NULL), 0);
    cr_expect_eq(due_peek(lab.q, &info), DUE_EAGAIN);
    lab_close(&lab);
}

LAB_TEST(peek, passes_over_paused_topics)
{
    struct lab lab = lab_open();
    int topic = lab_topic(&lab, "paused");
    due_info info;

    cr_expect_eq(due_pause(lab.q, topic), 0);
    lab_enqueue(&lab, "held back", .delay_ns = 0, .topic = topic);
    cr_expect_eq(due_peek(lab.q, &info), DUE_EAGAIN);
    lab_enqueue(&lab, "next", .delay_ns = 0);
    cr_assert_eq(due_peek(lab.q, &info), 0);
    cr_expect_eq(info.topic, 0);
    lab_close(&lab);
}

LAB_TEST(peek, shows_what_becomes_due_next_whatever_its_topic)
{
    struct lab lab = lab_open();
    int topic = lab_topic(&lab, "paused");
    due_info info;

    cr_expect_eq(due_pause(lab.q, topic), 0);
    lab_enqueue(&lab, "held back", .at_ns = 5, .topic = topic);
    lab_enqueue(&lab, "next", .at_ns = 9);
    cr_assert_eq(due_peek(lab.q, &info), 0);
    cr_expect_eq(info.topic, topic);
    lab_turn_to(&lab, 5);
    cr_assert_eq(due_peek(lab.q, &info), 0);
    cr_expect_eq(info.topic, 0, "due, but paused: passed over");
    lab_close(&lab);
}

LAB_TEST(peek, agrees_with_what_is_dequeued_next)
{
    struct lab lab = lab_open();
    uint64_t seed = 21;
    due_info info;
    due_job job;

    for (int i = 0; i < 500; i++)
        lab_enqueue(&lab, NULL, .at_ns = 1 + (int64_t)crew_below(&seed, 100),
                    .priority = (int)crew_below(&seed, 3));
    lab_turn_to(&lab, 100);
    for (int i = 0; i < 500; i++) {
        cr_assert_eq(due_peek(lab.q, &info), 0);
        cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
        cr_assert(due_id_equal(info.id, job.id), "%d", i);
        due_job_done(&job);
    }
    lab_close(&lab);
}

LAB_TEST(find, tells_what_is_known_of_a_waiting_job)
{
    struct lab lab = lab_open();
    int topic = lab_topic(&lab, "mail");
    due_id id = lab_enqueue(&lab, "letter", .at_ns = 400, .topic = topic, .priority = 255);
    due_info info = lab_find(&lab, id);

    cr_expect(due_id_equal(info.id, id));
    cr_expect_eq(info.deadline_ns, 400);
    cr_expect_eq(info.len, 6u);
    cr_expect_eq(info.topic, topic);
    cr_expect_eq(info.priority, 255);
    cr_expect_eq(info.ready, 0);
    lab_turn_to(&lab, 400);
    cr_expect_eq(lab_find(&lab, id).ready, 1);
    lab_close(&lab);
}

LAB_TEST(find, answers_ebusy_for_a_lent_job_and_enoent_for_a_finished_one)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "job", .delay_ns = 0);
    due_info info;
    due_job job;
    int64_t ns;

    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(due_find(lab.q, id, &info), DUE_EBUSY);
    cr_expect_eq(due_remaining(lab.q, id, &ns), DUE_EBUSY);
    due_job_done(&job);
    cr_expect_eq(due_find(lab.q, id, &info), DUE_ENOENT);
    cr_expect_eq(due_remaining(lab.q, id, &ns), DUE_ENOENT);
    lab_close(&lab);
}

LAB_TEST(remaining, counts_down_to_the_deadline_and_beyond)
{
    struct lab lab = lab_open(.start_ns = 100);
    due_id id = lab_enqueue(&lab, "job", .delay_ns = 50);
    int64_t ns = -1;

    cr_expect_eq(due_remaining(lab.q, id, &ns), 0);
    cr_expect_eq(ns, 50);
    lab_turn_to(&lab, 149);
    cr_expect_eq(due_remaining(lab.q, id, &ns), 0);
    cr_expect_eq(ns, 1);
    lab_turn_to(&lab, 170);
    cr_expect_eq(due_remaining(lab.q, id, &ns), 0);
    cr_expect_eq(ns, -20);
    lab_close(&lab);
}

LAB_TEST(remaining, of_what_never_comes_is_for_ever)
{
    struct lab lab = lab_open(.start_ns = 100);
    due_id id = lab_enqueue(&lab, "job", .at_ns = DUE_FOREVER);
    int64_t ns = -1;

    cr_expect_eq(due_remaining(lab.q, id, &ns), 0);
    cr_expect_geq(ns, DUE_FOREVER - 100);
    lab_close(&lab);
}

/* ---- list ---- */

enum { LISTED = 1000 };

/* Marks every listed job in @seen by its deadline; the number of infos written. */
static int list_all(struct lab *lab, size_t max, unsigned char *seen)
{
    due_info infos[64];
    uint64_t cursor = 0;
    int sum = 0;
    int n;

    while ((n = due_list(lab->q, &cursor, infos, max)) > 0) {
        cr_assert_leq((size_t)n, max);
        for (int i = 0; i < n; i++)
            seen[infos[i].deadline_ns]++;
        sum += n;
    }
    cr_assert_eq(n, 0, "%s", due_error_name(n));
    cr_expect_eq(due_list(lab->q, &cursor, infos, max), 0, "the end stays the end");
    return sum;
}

LAB_TEST(list, shows_every_waiting_job_exactly_once)
{
    static const size_t sizes[] = { 1, 2, 7, 64 };
    struct lab lab = lab_open();

    for (int i = 0; i < LISTED; i++)
        lab_enqueue(&lab, NULL, .at_ns = 1 + i);
    lab_turn_to(&lab, LISTED / 2);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        unsigned char seen[LISTED + 1] = { 0 };

        cr_expect_eq(list_all(&lab, sizes[s], seen), LISTED);
        for (int i = 1; i <= LISTED; i++)
            cr_expect_eq(seen[i], 1, "job %d, %zu at a time", i, sizes[s]);
    }
    lab_close(&lab);
}

LAB_TEST(list, leaves_out_what_is_lent_cancelled_or_done)
{
    struct lab lab = lab_open();
    unsigned char seen[8] = { 0 };
    due_job job;

    lab_enqueue(&lab, "lent", .at_ns = 1);
    lab_enqueue(&lab, "done", .at_ns = 2);
    due_id id = lab_enqueue(&lab, "cancelled", .at_ns = 3);
    lab_enqueue(&lab, "waits", .at_ns = 4);
    lab_turn_to(&lab, 2);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "done");
    cr_expect_eq(due_cancel(lab.q, id, NULL), 0);
    cr_expect_eq(list_all(&lab, 5, seen), 1);
    cr_expect_eq(seen[4], 1);
    due_job_done(&job);
    lab_close(&lab);
}

/* sidekiq#866: deleting while listing */
LAB_TEST(list, goes_on_while_what_it_showed_is_cancelled)
{
    struct lab lab = lab_open();
    unsigned char seen[LISTED + 1] = { 0 };
    due_info infos[10];
    uint64_t cursor = 0;
    int n;

    for (int i = 0; i < LISTED; i++)
        lab_enqueue(&lab, NULL, .at_ns = 1 + i);
    while ((n = due_list(lab.q, &cursor, infos, 10)) > 0)
        for (int i = 0; i < n; i++) {
            cr_assert_eq(due_cancel(lab.q, infos[i].id, NULL), 0);
            seen[infos[i].deadline_ns]++;
        }
    for (int i = 1; i <= LISTED; i++)
        cr_expect_eq(seen[i], 1, "%d", i);
    cr_expect_eq(lab_stats(&lab).waiting, 0u);
    lab_close(&lab);
}

LAB_TEST(list, of_an_empty_queue_is_empty)
{
    struct lab lab = lab_open();
    uint64_t cursor = 0;
    due_info info;

    cr_expect_eq(due_list(lab.q, &cursor, &info, 1), 0);
    lab_close(&lab);
}

LAB_TEST(list, refuses_no_room_at_all)
{
    struct lab lab = lab_open();
    uint64_t cursor = 0;
    due_info info;

    cr_expect_eq(due_list(lab.q, &cursor, &info, 0), DUE_EINVAL);
    lab_close(&lab);
}

LAB_TEST(list, takes_any_number_for_a_cursor)
{
    static const uint64_t cursors[] = { 1, UINT32_MAX, UINT64_MAX, UINT64_C(1) << 40 };
    struct lab lab = lab_open();
    due_info info;

    lab_enqueue(&lab, "job", .delay_ns = 1);
    for (size_t i = 0; i < sizeof cursors / sizeof cursors[0]; i++) {
        uint64_t cursor = cursors[i];

        cr_expect_geq(due_list(lab.q, &cursor, &info, 1), 0);
    }
    lab_close(&lab);
}

LAB_TEST(peek, tells_what_comes_next_and_not_what_a_pause_holds_back_also_behind_a_lease)
{
    struct lab lab = lab_open();
    int paused = lab_topic(&lab, "paused");
    due_info info;
    due_job job;

    cr_assert_eq(due_pause(lab.q, paused), 0);
    lab_enqueue(&lab, "held back", .at_ns = 1, .topic = paused);
    lab_enqueue(&lab, "reserved", .at_ns = 2);
    lab_turn_to(&lab, 10);
    cr_assert_eq(take_leased(lab.q, &job, 100, 0), 0);
    cr_expect_eq(due_peek(lab.q, &info), DUE_EAGAIN);
    lab_enqueue(&lab, "next", .at_ns = 500);
    cr_assert_eq(due_peek(lab.q, &info), 0);
    cr_expect_eq(info.deadline_ns, 500);
    cr_expect_eq(due_ack(&job), 0);
    lab_close(&lab);
}
