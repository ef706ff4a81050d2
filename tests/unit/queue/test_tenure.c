/* What whoever has the lock does for others: sort in what they left, and wake no more than it
 * takes.  The test has the lock itself, so it knows what was left. */
#include "lab/lab.h"
#include "lab/take.h"

#include "queue/queue.h"
#include "queue/take.h"
#include "queue/tenure.h"

/* A caller sorts in some of what others have left, and no more: the proxy does the rest. */
LAB_TEST(tenure, what_is_left_in_the_inbox_is_sorted_in_without_another_call)
{
    enum { JOBS = 10 * DUE__FOREIGN_MAX };
    static due_spec specs[JOBS];
    struct lab lab = lab_open();
    struct due__tenure t;

    for (int i = 0; i < JOBS; i++)
        specs[i] = (due_spec){ DUE_SPEC_INIT, .delay_ns = DUE_S(1) };
    cr_expect_eq(due_enqueue_batch(lab.q, specs, JOBS, 0, NULL), JOBS); /* it has grown by then */
    cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
    due__enter(lab.q, &t);
    cr_expect_eq(due_enqueue_batch(lab.q, specs, JOBS, 0, NULL), JOBS);
    cr_expect(due__inbox_knocked(&lab.q->inbox));
    due__tenure_end(lab.q, &t);
    for (int i = 0; i < 5000 && !due__inbox_quiet(&lab.q->inbox); i++)
        crew_sleep(DUE_MS(1));
    cr_expect(due__inbox_quiet(&lab.q->inbox), "it is left until somebody calls");
    if (lab_proxies == DUE_PROXIES_ADAPTIVE)
        cr_expect_gt(lab_stats(&lab).proxy_calls, 0u);
    cr_expect_eq(lab_stats(&lab).waiting, (uint64_t)JOBS);
    lab_close(&lab);
}

/* Whoever finds nothing knows by it what was there when he came. */
LAB_TEST(inbox, tells_which_job_was_put_in_last_if_there_is_one)
{
    struct lab lab = lab_open();
    struct due__tenure t;
    uint32_t number;
    uint32_t generation;

    lab_enqueue(&lab, "first", .delay_ns = DUE_S(1));
    due_poll(lab.q, NULL);
    due__enter(lab.q, &t);
    due__drain_some(lab.q, DUE__FOREIGN_MAX);
    cr_expect_null(due__last_in_inbox(lab.q));
    for (int i = 0; i < 3; i++) {
        due_id id = lab_enqueue(&lab, "job", .delay_ns = DUE_S(1));

        cr_assert(due__id_read(lab.q, id, &number, &generation));
        cr_expect_eq(due__last_in_inbox(lab.q), due__job_at(&lab.q->slab, number));
    }
    due__tenure_end(lab.q, &t);
    lab_close(&lab);
}

/* Their numbers are used up after 2^28 only if the queue is never empty. */
LAB_TEST(sort_in, numbers_arrivals_anew_when_nothing_waits)
{
    struct lab lab = lab_open();

    for (int i = 0; i < 10; i++)
        lab_enqueue(&lab, "job", .at_ns = 5 + i % 2);
    due_poll(lab.q, NULL);
    cr_expect_eq(lab.q->arrival, 10u);
    lab_turn_to(&lab, 5);
    for (int i = 0; i < 5; i++)
        cr_expect_str_eq(lab_dequeue(&lab), "job");
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_eq(lab.q->arrival, 10u, "some wait");
    lab_turn_to(&lab, 6);
    for (int i = 0; i < 5; i++)
        cr_expect_str_eq(lab_dequeue(&lab), "job");
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_eq(lab.q->arrival, 0u);
    lab_close(&lab);
}

/* Of what a drain leaves it is known that no call which put it had returned before the clock was
 * read; and that holds for what comes behind it, once it is sorted in. (N1 of inbox.c) */
LAB_TEST(sort_in, knows_since_when_what_is_left_may_be_there)
{
    enum { JOBS = 10, SOME = 3 };
    struct lab lab = lab_open(.start_ns = 50);
    struct due__tenure t;

    lab_enqueue(&lab, "job", .delay_ns = DUE_S(1)); /* its memory is there by then */
    due__drain_all(lab.q);
    lab_turn_to(&lab, 100);
    due__enter(lab.q, &t);
    for (int i = 0; i < JOBS; i++)
        lab_enqueue(&lab, "job", .delay_ns = DUE_S(1));
    cr_assert_lt(lab.q->inbox.after_ns, 100);
    due__help_sort(lab.q, SOME);
    cr_expect_lt(lab.q->inbox.after_ns, 100, "some of it is left");
    due__help_sort(lab.q, JOBS - SOME - 1);
    cr_expect_lt(lab.q->inbox.after_ns, 100, "one is left");
    due__help_sort(lab.q, 1);
    cr_expect_eq(lab.q->inbox.after_ns, 100);
    due__tenure_end(lab.q, &t);
    lab_close(&lab);
}

/* Whoever cancels and cannot have the lock leaves word that a sweep may be worth it: once. */
LAB_TEST(sort_in, looks_once_whether_a_sweep_is_worth_it_for_who_could_not)
{
    struct lab lab = lab_open(.start_ns = 100);
    struct due__tenure t;

    lab_enqueue(&lab, "job", .delay_ns = DUE_S(1));
    due__drain_all(lab.q);
    due__enter(lab.q, &t);
    due__store_relaxed(&lab.q->unswept, 1);
    due__inbox_knock(&lab.q->inbox);
    lab_enqueue(&lab, "job", .delay_ns = DUE_S(1));
    lab_enqueue(&lab, "job", .delay_ns = DUE_S(1));
    cr_expect_not(due__drain_some(lab.q, 1));
    cr_expect_eq(due__load_relaxed(&lab.q->unswept), 1u, "something is left");
    cr_expect(due__drain_some(lab.q, 2));
    cr_expect_eq(due__load_relaxed(&lab.q->unswept), 0u);
    due__tenure_end(lab.q, &t);
    lab_close(&lab);
}

static uint64_t rings(struct lab *lab)
{
    return lab_stats(lab).rings;
}

/* On a clock of the kernel: one sleeps until the head is due, and another who gives up before.
 * Answers how many were rung until then. */
static uint64_t two_asleep(struct lab *lab, struct crew_call *leader, struct crew_call *brief)
{
    lab_enqueue(lab, "head", .delay_ns = DUE_S(1000));
    crew_call_dequeue(leader, lab->q, DUE_FOREVER);
    crew_call_asleep(leader);
    crew_call_dequeue(brief, lab->q, DUE_S(100));
    crew_call_asleep(brief);
    return rings(lab);
}

static void check_rings(enum due_proxies proxies)
{
    lab_proxies = (int)proxies;
    struct lab lab = lab_open(.kernel = true);
    struct crew_call leader;
    struct crew_call brief;
    uint64_t before = two_asleep(&lab, &leader, &brief);

    for (int i = 0; i < 10; i++)
        lab_enqueue(&lab, "behind it", .delay_ns = DUE_S(2000 + i));
    cr_expect_eq(rings(&lab), before, "a job behind the head wakes nobody");

    lab_enqueue(&lab, "new head", .delay_ns = DUE_S(50));
    cr_expect_eq(rings(&lab), before + 1, "the leader has to sleep for less");
    crew_call_asleep(&leader);
    crew_call_asleep(&brief);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(crew_call_answer(&leader), DUE_ECLOSED);
    cr_expect_eq(crew_call_answer(&brief), DUE_ECLOSED);
    lab_close(&lab);
    lab_proxies = -1;
}

Test(tenure, wakes_no_more_than_it_takes, .timeout = 60)
{
    check_rings(DUE_PROXIES_ADAPTIVE);
    check_rings(DUE_PROXIES_NEVER);
}

/* The next one sleeps for less than the head needs: nothing has changed for it. */
static void check_lead(enum due_proxies proxies)
{
    lab_proxies = (int)proxies;
    struct lab lab = lab_open(.kernel = true);
    struct crew_call leader;
    struct crew_call brief;
    uint64_t before = two_asleep(&lab, &leader, &brief);

    lab_enqueue(&lab, "now", .delay_ns = 0);
    cr_expect_eq(crew_call_answer(&leader), 0);
    cr_expect_str_eq(lab_text(&lab, &leader.job), "now");
    crew_call_asleep(&brief);
    cr_expect_eq(rings(&lab), before + 1, "one who waits is woken for one job");
    lab_enqueue(&lab, "now", .delay_ns = 0);
    cr_expect_eq(crew_call_answer(&brief), 0);
    cr_expect_eq(rings(&lab), before + 2);
    due_job_done(&brief.job);
    lab_close(&lab);
    lab_proxies = -1;
}

Test(tenure, wakes_one_for_a_job_and_nobody_for_the_lead, .timeout = 60)
{
    check_lead(DUE_PROXIES_ADAPTIVE);
    check_lead(DUE_PROXIES_NEVER);
}

/* The deputy sleeps until the second job is due: who parks when there is one.  Who parked before
 * stands in nobody's way. */
Test(tenure, wakes_nobody_for_the_lead_if_one_sleeps_until_the_second_job, .timeout = 60)
{
    struct lab lab = lab_open(.kernel = true);
    int others = lab_topic(&lab, "others");
    int own = 0;
    struct crew_call leader;
    struct crew_call first;
    struct crew_call deputy;

    lab_enqueue(&lab, "second", .delay_ns = DUE_S(1000), .topic = others);
    crew_call_dequeue_from(&leader, lab.q, &own, 1, DUE_FOREVER);
    crew_call_asleep(&leader);
    crew_call_dequeue_from(&first, lab.q, &others, 1, DUE_FOREVER);
    crew_call_asleep(&first);
    due_id head = lab_enqueue(&lab, "head", .delay_ns = DUE_S(500), .topic = others);
    bool awake = true; /* the leader, to sleep for less */
    while (awake) {
        struct due__tenure t;

        due__enter(lab.q, &t);
        awake = lab.q->armed == DUE__AWAKE;
        due__tenure_end(lab.q, &t);
    }
    crew_call_dequeue_from(&deputy, lab.q, &others, 1, DUE_FOREVER);
    crew_call_asleep(&deputy);
    cr_expect_eq(due_cancel(lab.q, head, NULL), 0);
    uint64_t before = rings(&lab);
    lab_enqueue(&lab, "now", .delay_ns = 0);
    cr_expect_eq(crew_call_answer(&leader), 0);
    cr_expect_eq(rings(&lab), before + 1);
    due_job_done(&leader.job);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(crew_call_answer(&first), DUE_ECLOSED);
    cr_expect_eq(crew_call_answer(&deputy), DUE_ECLOSED);
    lab_close(&lab);
}
