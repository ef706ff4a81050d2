/* One queue for many processes: what holds back the jobs of a topic. */
#include "lab/mall.h"

/* A poll asks for a claim first, so it is asked again: until there are @want, and then some times
 * more, for there may be no other. */
static size_t taken_of(struct mall *m, size_t i, int topic, due_job *jobs, size_t want, size_t max)
{
    size_t n = 0;

    for (int more = 0, asks = 0; n < max && more < 20 && asks < 50000; asks++) {
        n += take_leased_from(m->lab[i].q, &topic, 1, &jobs[n], 1000, 0) == 0 ? 1 : 0;
        more += n >= want;
        crew_sleep(DUE_US(200));
    }
    return n;
}

static size_t taken_now(struct mall *m, size_t i, int topic, due_job *jobs, size_t max)
{
    return taken_of(m, i, topic, jobs, 0, max);
}

MALL_TEST(share_topic, one_process_pauses_a_topic_for_all)
{
    struct mall m = mall_make(2);
    int tea = lab_topic(&m.lab[0], "tea");
    int there = lab_topic(&m.lab[1], "tea");
    due_job job;

    cr_expect_eq(due_pause(m.lab[0].q, tea), 0);
    lab_enqueue(&m.lab[0], "green", .topic = tea);
    lab_enqueue(&m.lab[0], "sweet", .delay_ns = 0);
    cr_expect_eq(taken_now(&m, 1, there, &job, 1), 0u);
    cr_assert_eq(mall_take(&m, 1, &job), 0, "the other topic's");
    cr_expect_str_eq(lab_text(&m.lab[1], &job), "sweet");
    cr_expect_eq(due_resume(m.lab[1].q, there), 0);
    cr_assert_eq(mall_take(&m, 0, &job), 0);
    cr_expect_str_eq(lab_text(&m.lab[0], &job), "green");
    cr_expect_eq(due_pause(m.lab[0].q, 99), DUE_EINVAL);
    cr_expect_eq(due_resume(m.lab[0].q, 99), DUE_EINVAL);
    mall_close(&m);
}

/* Whoever waits for it sleeps meanwhile; those of topics that another has made, too. */
MALL_TEST(share_topic, all_topics_are_paused_and_who_waits_is_rung_when_they_are_resumed)
{
    struct mall m = mall_make(3);
    int tea = lab_topic(&m.lab[0], "tea");
    struct crew_call c;
    due_job job;

    lab_enqueue(&m.lab[0], "later", .at_ns = 5000, .topic = tea);
    cr_expect_eq(due_pause(m.lab[1].q, DUE_ALL_TOPICS), 0);
    lab_enqueue(&m.lab[0], "green", .topic = tea);
    cr_expect_eq(taken_now(&m, 2, lab_topic(&m.lab[2], "tea"), &job, 1), 0u);
    crew_call_reserve(&c, m.lab[2].q, NULL, 0, 100, DUE_FOREVER);
    crew_call_asleep(&c);
    cr_expect_eq(due_resume(m.lab[1].q, DUE_ALL_TOPICS), 0);
    cr_assert_eq(crew_call_answer(&c), 0);
    cr_expect_eq(c.job.len, 5u);
    cr_expect_eq(due_ack(&c.job), 0);
    mall_close(&m);
}

MALL_TEST(share_topic, so_many_of_a_topic_are_held_by_all_processes_together)
{
    struct mall m = mall_make(2);
    due_job jobs[2][4];

    cr_expect_eq(due_topic_limit(m.lab[0].q, 0, 3), 0);
    for (int i = 0; i < 6; i++)
        lab_enqueue(&m.lab[0], "x", .delay_ns = 0);
    cr_assert_eq(taken_of(&m, 0, 0, jobs[0], 2, 2), 2u);
    cr_assert_eq(taken_of(&m, 1, 0, jobs[1], 1, 3), 1u);
    cr_expect_eq(due_ack(&jobs[0][0]), 0);
    cr_assert_eq(taken_of(&m, 1, 0, &jobs[1][1], 1, 3), 1u, "one has ended");
    cr_expect_eq(due_topic_limit(m.lab[1].q, 0, 0), 0);
    cr_assert_eq(taken_of(&m, 1, 0, &jobs[1][2], 2, 2), 2u, "no limit any more");
    cr_expect_eq(due_ack(&jobs[0][1]), 0);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(due_ack(&jobs[1][i]), 0);
    cr_expect_eq(due_topic_limit(m.lab[0].q, 99, 1), DUE_EINVAL);
    mall_close(&m);
}

/* The one who waits is rung by the ack of another process. */
MALL_TEST(share_topic, who_waits_at_a_limit_gets_the_next_job_when_one_ends)
{
    struct mall m = mall_make(2);
    struct crew_call c;
    due_job job;

    cr_expect_eq(due_topic_limit(m.lab[0].q, 0, 1), 0);
    for (int i = 0; i < 2; i++)
        lab_enqueue(&m.lab[0], "x", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 0, &job, 1000), 0);
    crew_call_reserve(&c, m.lab[1].q, NULL, 0, 1000, DUE_FOREVER);
    crew_call_asleep(&c);
    cr_expect_eq(due_ack(&job), 0);
    cr_assert_eq(crew_call_answer(&c), 0);
    cr_expect_eq(due_ack(&c.job), 0);
    mall_close(&m);
}

MALL_TEST(share_topic, what_was_set_stays_when_all_have_gone)
{
    struct mall m = mall_make(1);
    due_job job;

    cr_expect_eq(due_pause(m.lab[0].q, 0), 0);
    lab_enqueue(&m.lab[0], "x", .delay_ns = 0);
    cr_expect_eq(due_close(m.lab[0].q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
    size_t next = mall_join(&m, (struct lab_options){ .kernel = false });
    cr_expect_eq(taken_now(&m, next, 0, &job, 1), 0u);
    cr_expect_eq(due_resume(m.lab[next].q, 0), 0);
    cr_assert_eq(mall_take(&m, next, &job), 0);
    due_job_done(&job);
    mall_close(&m);
}

MALL_TEST(share_topic, a_pause_whose_answer_gets_lost_is_made_once)
{
    struct mall m = mall_make(2);
    due_job job;

    memory_store_fault(
        m.store[1],
        (struct memory_fault){ .verb = MEMORY_PUT, .times = 2, .kind = MEMORY_DOUBT_LANDED });
    int rc = due_pause(m.lab[1].q, 0);
    cr_expect(rc == 0 || rc == DUE_EINDOUBT, "%d", rc);
    lab_enqueue(&m.lab[1], "x", .delay_ns = 0);
    cr_expect_eq(taken_now(&m, 0, 0, &job, 1), 0u);
    cr_expect_eq(due_resume(m.lab[0].q, 0), 0);
    cr_assert_eq(mall_take(&m, 0, &job), 0);
    due_job_done(&job);
    mall_close(&m);
}
