/* Numbers that run out: arrivals, and the generations of a place.
 *
 * These tests look inside: a queue would have to run for hours or years to get there by itself.
 * (A8, J1) */
#include "due/metrics.h"
#include "lab/lab.h"

#include "os/atomic.h"
#include "queue/queue.h"
#include "lab/take.h"

/* The next job to arrive will be one of the last before the numbers start again. */
static void use_up_arrivals(struct lab *lab, uint32_t left)
{
    due__lock_acquire(&lab->q->lock);
    lab->q->arrival = DUE__ARRIVAL_MAX - left;
    due__lock_release(&lab->q->lock);
}

/* The slot of the first job, whose arrival is 0, outlives it; the next one in its place has the
 * same deadline, and its node is in the inbox, where its stamp is 0 too. */
LAB_TEST(wrap, of_arrival_numbers_takes_no_dead_slot_for_that_of_a_job_in_the_inbox)
{
    struct lab lab = lab_open();
    due_id gone = lab_enqueue(&lab, "gone", .at_ns = 50);
    uint32_t number[2];
    uint32_t generation;

    due_poll(lab.q, NULL);
    cr_assert(due__id_read(lab.q, gone, &number[0], &generation));
    cr_expect_eq(due_cancel(lab.q, gone, NULL), 0);
    due__lock_acquire(&lab.q->lock);
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 50);
    cr_assert(due__id_read(lab.q, id, &number[1], &generation));
    cr_expect_eq(number[0], number[1], "another place: this cannot fail");
    due__move_due(lab.q, 50);
    due__lock_release(&lab.q->lock);
    due_poll(lab.q, NULL);
    lab_turn_to(&lab, 50);
    cr_expect_eq(lab_stats(&lab).ready, 1u);
    cr_expect_str_eq(lab_dequeue_all(&lab), "tea");
    cr_expect_eq(lab_stats(&lab).ready, 0u);
    lab_close(&lab);
}

LAB_TEST(wrap, of_arrival_numbers_keeps_the_order_of_equal_deadlines)
{
    enum { JOBS = 3000 };
    static char tag[JOBS];
    struct lab lab = lab_open();
    due_job job;

    use_up_arrivals(&lab, JOBS / 2);
    for (int i = 0; i < JOBS; i++)
        lab_enqueue(&lab, NULL, .at_ns = 50, .ptr = &tag[i]);
    lab_turn_to(&lab, 50);
    for (int i = 0; i < JOBS; i++) {
        cr_assert_eq(due_dequeue(lab.q, &job, 0), 0, "%d are lost", JOBS - i);
        cr_assert_eq(job.ptr, &tag[i], "%td instead of %d", (char *)job.ptr - tag, i);
        due_job_done(&job);
    }
    cr_expect_null(lab_dequeue(&lab));
    lab_close(&lab);
}

LAB_TEST(wrap, of_arrival_numbers_keeps_delayed_ready_paused_and_cancelled_jobs_what_they_are)
{
    struct lab lab = lab_open(.start_ns = 100);
    int topic = lab_topic(&lab, "paused");
    due_id gone = lab_enqueue(&lab, "gone", .at_ns = 20);

    lab_enqueue(&lab, "a", .at_ns = 10);
    lab_enqueue(&lab, "b", .at_ns = 20);
    cr_expect_eq(due_poll(lab.q, NULL), 3);
    cr_expect_eq(due_pause(lab.q, topic), 0);
    lab_enqueue(&lab, "held back", .at_ns = 30, .topic = topic);
    due_id moved = lab_enqueue(&lab, "d", .at_ns = 200);
    lab_enqueue(&lab, "far", .at_ns = DUE_S(1000000));
    cr_expect_eq(due_cancel(lab.q, gone, NULL), 0);
    due_poll(lab.q, NULL);
    use_up_arrivals(&lab, 1);
    lab_enqueue(&lab, "c", .at_ns = 20);
    lab_enqueue(&lab, "e", .at_ns = 200);
    cr_expect_eq(due_reschedule(lab.q, moved, 150), 0);

    cr_expect_str_eq(lab_dequeue_all(&lab), "a b c");
    cr_expect_eq(due_resume(lab.q, topic), 0);
    cr_expect_str_eq(lab_dequeue_from(&lab, topic), "held back");
    lab_turn_to(&lab, 200);
    cr_expect_str_eq(lab_dequeue_all(&lab), "d e");
    cr_expect_eq(lab_stats(&lab).waiting, 1u);
    lab_close(&lab);
}

/* What was ready, shown, behind that, or at a limiter, is so again and counted once. */
LAB_TEST(wrap, of_arrival_numbers_keeps_the_figures_of_topics)
{
    enum { JOBS = 200, TOPICS = 2 };
    struct lab lab = lab_open(.start_ns = 100, .with.metrics = 1);
    struct due_topic_stats s;

    cr_assert_eq(lab_topic(&lab, "limited"), 1);
    cr_assert_eq(due_topic_limit(lab.q, 1, 1), 0);
    for (int i = 0; i < TOPICS * JOBS; i++)
        lab_enqueue(&lab, "job", .at_ns = 10 + i / 8, .topic = i % TOPICS);
    due_poll(lab.q, NULL);
    use_up_arrivals(&lab, 0);
    lab_enqueue(&lab, "job", .at_ns = 200);
    due_poll(lab.q, NULL);
    for (int topic = 0; topic < TOPICS; topic++) {
        cr_assert_eq(due_topic_stats_read(lab.q, topic, &s), 0);
        cr_expect_eq(s.ready, JOBS, "topic %d: %ju", topic, (uintmax_t)s.ready);
        cr_expect_eq(s.delayed, topic == 0, "topic %d: %ju", topic, (uintmax_t)s.delayed);
    }
    for (int i = 0; i < TOPICS * JOBS; i++)
        cr_assert_not_null(lab_dequeue(&lab), "%d", i);
    for (int topic = 0; topic < TOPICS; topic++) {
        cr_assert_eq(due_topic_stats_read(lab.q, topic, &s), 0);
        cr_expect_eq(s.ready, 0u, "topic %d: %ju", topic, (uintmax_t)s.ready);
    }
    cr_expect_eq(lab_stats(&lab).ready, 0u);
    lab_close(&lab);
}

LAB_TEST(wrap, of_arrival_numbers_keeps_priorities)
{
    struct lab lab = lab_open(.with.order = DUE_ORDER_PRIORITY);

    lab_enqueue(&lab, "low", .delay_ns = 0, .priority = 1);
    lab_enqueue(&lab, "high", .delay_ns = 0, .priority = 9);
    due_poll(lab.q, NULL);
    use_up_arrivals(&lab, 0);
    lab_enqueue(&lab, "middle", .delay_ns = 0, .priority = 5);
    cr_expect_str_eq(lab_dequeue_all(&lab), "high middle low");
    lab_close(&lab);
}

LAB_TEST(wrap, again_and_again_loses_nothing)
{
    struct lab lab = lab_open();
    uint64_t seed = 8;
    int64_t last = 0;
    due_job job;

    for (int i = 0; i < 20000; i++) {
        if (i % 500 == 0)
            use_up_arrivals(&lab, (uint32_t)crew_below(&seed, 100));
        lab_enqueue(&lab, NULL, .at_ns = 1 + (int64_t)crew_below(&seed, UINT64_C(1) << 40));
    }
    lab_turn_to(&lab, INT64_C(1) << 41);
    for (int i = 0; i < 20000; i++) {
        cr_assert_eq(due_dequeue(lab.q, &job, 0), 0, "%d are lost", 20000 - i);
        cr_assert_geq(job.deadline_ns, last);
        last = job.deadline_ns;
        due_job_done(&job);
    }
    lab_close(&lab);
}

/* A place whose generations are used up is never used again, so that no old id can be right,
 * whatever its last job ends with. */
enum last { TAKEN, CANCELLED, CANCELLED_TOGETHER, CANCELLED_LENT, RESERVED, CLEARED, LASTS };

static void end_last(struct lab *lab, enum last how, due_id id)
{
    due_job job = { 0 };

    switch (how) {
    case TAKEN:
        cr_expect_eq(due_dequeue(lab->q, &job, 0), 0);
        break;
    case CANCELLED:
        cr_expect_eq(due_cancel(lab->q, id, NULL), 0);
        break;
    case CANCELLED_TOGETHER:
        cr_expect_eq(due_cancel_batch(lab->q, &id, 1, NULL), 1);
        break;
    case CANCELLED_LENT:
        cr_expect_eq(due_cancel(lab->q, id, &job), 0);
        break;
    case RESERVED:
        cr_assert_eq(take_leased(lab->q, &job, 100, 0), 0);
        cr_expect_eq(due_ack(&job), 0);
        break;
    default:
        cr_expect_eq(due_clear(lab->q, DUE_ALL_TOPICS, NULL), 0);
    }
    due_job_done(&job);
}

LAB_TEST(wrap, of_generations_retires_the_place)
{
    for (enum last how = TAKEN; how < LASTS; how++) {
        struct lab lab = lab_open();
        due_id id = lab_enqueue(&lab, "one", .delay_ns = 0);
        uint32_t number;
        uint32_t generation;

        due_poll(lab.q, NULL);
        cr_assert(due__id_read(lab.q, id, &number, &generation));
        struct due__job *place = due__job_at(&lab.q->slab, number);
        uint64_t word = due__load_acquire(&place->word);
        due__store_release(&place->word, (word & UINT32_MAX) | (uint64_t)UINT32_MAX << 32);
        end_last(&lab, how, due__id(lab.q, number, UINT32_MAX));
        cr_expect_eq(lab_stats(&lab).waiting, 0u);
        for (int i = 0; i < 2000; i++) {
            uint32_t other;

            id = lab_enqueue(&lab, "next", .delay_ns = 0);
            cr_assert(due__id_read(lab.q, id, &other, &generation));
            cr_assert_neq(other, number, "a retired place came back: way %d", (int)how);
            cr_assert_str_eq(lab_dequeue(&lab), "next");
        }
        lab_close(&lab);
    }
}

/* Those that lay in lines are counted there once, when they are back. */
LAB_TEST(wrap, of_arrival_numbers_counts_what_lies_in_lines)
{
    struct lab lab = lab_open();
    const struct due__topic *t = due__topic_at(lab.q, 0);

    for (int i = 0; i < 200; i++)
        lab_enqueue(&lab, "due", .at_ns = 10);
    lab_turn_to(&lab, 10);
    due_poll(lab.q, NULL);
    cr_assert_gt(lab.q->in_lines, 0u);
    cr_expect_eq(lab.q->in_lines, t->line.count);
    use_up_arrivals(&lab, 0);
    lab_enqueue(&lab, "last", .at_ns = 10);
    due_poll(lab.q, NULL);
    cr_expect_lt(lab.q->arrival, 1000u, "they are not numbered anew");
    due__lock_acquire(&lab.q->lock);
    cr_expect_eq(lab.q->in_lines, t->line.count);
    due__lock_release(&lab.q->lock);
    for (int i = 0; i < 200; i++)
        cr_expect_str_eq(lab_dequeue(&lab), "due");
    cr_expect_str_eq(lab_dequeue(&lab), "last");
    cr_expect_eq(lab.q->in_lines, 0u);
    lab_close(&lab);
}
