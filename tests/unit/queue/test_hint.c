/* What takers without the lock go by: which topic is the only one with jobs, until when that is so
 * (W3 of topic.c), and what is shown of it.  The test has the lock whenever it looks. */
#include "lab/lab.h"

#include "os/atomic.h"
#include "queue/queue.h"

static int64_t bound_of(struct lab *lab)
{
    return due__timeline_bound(&lab->q->timeline);
}

static uint32_t sole(struct lab *lab)
{
    return due__load_relaxed(&lab->q->sole);
}

static int64_t until(struct lab *lab)
{
    return due__load_relaxed(&lab->q->sole_until);
}

/* As the ring has it. */
static uint32_t sole_in_ring(const struct due_queue *q)
{
    return q->ring == NULL ? DUE__NO_TOPIC : q->ring->next == q->ring ? q->ring->number + 1u : 0;
}

LAB_TEST(topic, that_is_the_only_one_with_jobs_is_named_to_takers)
{
    struct lab lab = lab_open();
    struct due__tenure t;
    int topics[] = { 0, lab_topic(&lab, "one"), lab_topic(&lab, "two") };

    due__enter(lab.q, &t);
    cr_expect_eq(sole(&lab), 0u, "nobody knows yet");
    due__topic_list(lab.q, due__topic_at(lab.q, 0));
    due__topic_unlist(lab.q, due__topic_at(lab.q, 0));
    for (uint32_t set = 0; set < 8; set++) {
        for (uint32_t i = 0; i < 3; i++)
            if (set & (1u << i))
                due__topic_list(lab.q, due__topic_at(lab.q, (uint32_t)topics[i]));
        uint32_t want = set == 0 ? DUE__NO_TOPIC : set == 1 ? 1 : set == 2 ? 2 : set == 4 ? 3 : 0;
        cr_expect_eq(sole(&lab), want, "%u: %u", set, sole(&lab));
        cr_expect_eq(sole_in_ring(lab.q), want);
        cr_expect_eq(until(&lab), bound_of(&lab));
        for (uint32_t i = 0; i < 3; i++)
            due__topic_unlist(lab.q, due__topic_at(lab.q, (uint32_t)topics[i]));
        cr_expect_eq(sole(&lab), DUE__NO_TOPIC);
    }
    due__tenure_end(lab.q, &t);
    lab_close(&lab);
}

/* With a second topic it is until the head is due, whose topic it may be. */
LAB_TEST(topic, that_is_the_only_one_of_several_is_so_until_the_head_is_due)
{
    struct lab lab = lab_open(.start_ns = 10);
    struct due__tenure t;

    cr_expect_str_eq((lab_enqueue(&lab, "tea", .delay_ns = 0), lab_dequeue(&lab)), "tea");
    lab_enqueue(&lab, "tea", .at_ns = 500);
    due_poll(lab.q, NULL);
    due__enter(lab.q, &t);
    due__topic_list(lab.q, due__topic_at(lab.q, 0));
    cr_expect_eq(until(&lab), -1, "there is one only");
    due__topic_unlist(lab.q, due__topic_at(lab.q, 0));
    due__tenure_end(lab.q, &t);
    int one = lab_topic(&lab, "one");
    cr_expect_eq(until(&lab), bound_of(&lab));
    cr_expect_eq(until(&lab), 500);
    due_id id = lab_enqueue(&lab, "jam", .at_ns = 300, .topic = one);
    due_poll(lab.q, NULL);
    due__enter(lab.q, &t);
    due__sole_until(lab.q);
    cr_expect_eq(until(&lab), 300);
    due__tenure_end(lab.q, &t);
    cr_assert_eq(due_reschedule(lab.q, id, 700), 0);
    lab_turn_to(&lab, 600);
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    cr_expect_null(lab_dequeue(&lab));
    due__enter(lab.q, &t);
    cr_expect_leq(until(&lab), bound_of(&lab), "never later than the head");
    due__sole_until(lab.q);
    cr_expect_eq(until(&lab), bound_of(&lab));
    due__tenure_end(lab.q, &t);
    lab_close(&lab);
}

/* Who finds nothing says so, unless something is owed to others. */
LAB_TEST(topic, with_jobs_there_is_none_says_who_has_looked_and_owes_nothing)
{
    struct lab lab = lab_open(.start_ns = 10);
    struct due__topic *topic = due__topic_at(lab.q, 0);
    struct due__tenure t;

    lab_enqueue(&lab, "tea", .at_ns = 500);
    cr_expect_null(lab_dequeue(&lab));
    due__enter(lab.q, &t);
    due__topic_list(lab.q, topic);
    due__topic_unlist(lab.q, topic);
    cr_assert_eq(until(&lab), -1);
    for (uint32_t debt = 1; debt <= DUE__DEBT_HOME; debt *= 2) {
        uint32_t before = lab.q->debts;
        bool looks = (debt & (DUE__DEBT_FD | DUE__DEBT_TURN)) != 0;

        lab.q->debts = debt;
        due__sole_none(lab.q);
        cr_expect_eq(until(&lab), looks ? 500 : -1, "debt %u", debt);
        cr_expect_eq(sole(&lab), DUE__NO_TOPIC);
        lab.q->debts = before;
        due__topic_list(lab.q, topic);
        cr_expect_eq(sole(&lab), 1u);
        due__topic_unlist(lab.q, topic);
        cr_assert_eq(until(&lab), -1);
    }
    due__tenure_end(lab.q, &t);
    lab_close(&lab);
}

/* Whatever happens: whenever the lock is free it is what the ring has. */
LAB_TEST(topic, that_is_the_only_one_is_known_whatever_is_put_in_taken_and_held_back)
{
    struct lab lab = lab_open(.start_ns = 10);
    int topics[] = { 0, lab_topic(&lab, "one"), lab_topic(&lab, "two") };
    uint64_t random = 20261130;
    struct due__tenure t;
    int64_t now = 10;
    due_id last = { { 0 } };

    lab_enqueue(&lab, "first", .delay_ns = 0); /* nothing is said before there was one */
    cr_assert_str_eq(lab_dequeue(&lab), "first");
    for (int i = 0; i < 1500; i++) {
        int topic = topics[crew_below(&random, 3)];

        switch (crew_below(&random, 7)) {
        case 0:
        case 1:
            last = lab_enqueue(&lab, "tea", .topic = topic,
                               .at_ns = now + (int64_t)crew_below(&random, 20) - 5);
            break;
        case 2:
            (void)lab_dequeue_from(&lab, topic);
            break;
        case 3:
            (void)lab_dequeue(&lab);
            break;
        case 4:
            lab_turn_to(&lab, now += (int64_t)crew_below(&random, 8));
            break;
        case 5:
            (void)due_reschedule(lab.q, last, now + (int64_t)crew_below(&random, 20));
            break;
        default:
            cr_assert_eq(due_pause(lab.q, topic), 0);
            (void)lab_dequeue(&lab);
            cr_assert_eq(due_resume(lab.q, topic), 0);
            break;
        }
        due__enter(lab.q, &t);
        cr_assert_eq(sole(&lab), sole_in_ring(lab.q), "step %d", i);
        cr_assert_leq(until(&lab), bound_of(&lab), "step %d", i);
        cr_assert_geq(until(&lab), 0, "step %d: there are several", i);
        due__tenure_end(lab.q, &t);
    }
    lab_close(&lab);
}

/* Many at a time: no sooner than half of what can be shown is gone. */
Test(topic, shows_more_when_half_of_what_was_shown_is_gone)
{
    struct lab lab = lab_open(.start_ns = 10, .with.proxies = DUE_PROXIES_NEVER);
    struct due__topic *topic = due__topic_at(lab.q, 0);
    struct due__slot taken[DUE__WINDOW_SLOTS];
    struct due__tenure t;

    for (int i = 0; i < 3 * (int)DUE__WINDOW_SLOTS; i++)
        lab_enqueue(&lab, "tea", .at_ns = 10 + i);
    lab_turn_to(&lab, 10 + 3 * DUE__WINDOW_SLOTS);
    cr_assert_gt(due_poll(lab.q, NULL), 0);
    due__enter(lab.q, &t);
    while (!due__move_due(lab.q, 10 + 3 * DUE__WINDOW_SLOTS))
        ;
    due__topic_refill(lab.q, topic);
    for (uint32_t n = 1; n <= DUE__WINDOW_SLOTS; n++) {
        due__topic_recall(lab.q, topic);
        due__topic_refill(lab.q, topic);
        cr_assert_eq(due__window_count(&topic->window), DUE__WINDOW_SLOTS);
        cr_assert_eq(due__window_take(&topic->window, taken, n), n);
        size_t before = lab.q->in_lines;
        due__topic_refill(lab.q, topic);
        uint32_t more = n < DUE__WINDOW_SLOTS / 2 ? 0 : n;
        cr_expect_eq(due__window_count(&topic->window), DUE__WINDOW_SLOTS - n + more, "%u", n);
        cr_expect_eq(lab.q->in_lines, before - more);
        due__topic_recall(lab.q, topic);
        for (uint32_t i = n; i-- > 0; lab.q->in_lines++)
            cr_assert(due__line_unpop(&topic->line, &lab.q->nodes, taken[i]));
    }
    due__topic_refill(lab.q, topic);
    due__tenure_end(lab.q, &t);
    for (unsigned i = 0; i < 3 * DUE__WINDOW_SLOTS; i++)
        cr_expect_str_eq(lab_dequeue(&lab), "tea");
    lab_close(&lab);
}
