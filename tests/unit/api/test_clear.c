/* Cancelling everything that waits. */
#include "lab/lab.h"

LAB_TEST(clear, takes_back_everything_and_says_how_much)
{
    struct lab lab = lab_open();
    uint64_t cleared = 99;

    for (int i = 0; i < 100; i++)
        lab_enqueue(&lab, "job", .at_ns = 1 + i);
    lab_turn_to(&lab, 50);
    cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, &cleared), 0);
    cr_expect_eq(cleared, 100u);
    cr_expect_eq(lab_stats(&lab).waiting, 0u);
    cr_expect_eq(lab_stats(&lab).discarded, 100u);
    lab_turn_to(&lab, 1000);
    cr_expect_null(lab_dequeue(&lab));
    lab_close(&lab);
}

LAB_TEST(clear, shows_every_job_to_the_discard_hook_once)
{
    struct lab lab = lab_open();
    int topic = lab_topic(&lab, "mail");
    due_id id = lab_enqueue(&lab, "letter", .at_ns = 5, .topic = topic, .priority = 8);

    cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
    cr_expect_eq(atomic_load(&lab.state->discarded), 1u);
    cr_expect_str_eq(lab.state->discarded_text, "letter");
    due_job *job = &lab.state->last_discarded;
    cr_expect(due_id_equal(job->id, id));
    cr_expect_eq(job->deadline_ns, 5);
    cr_expect_eq(job->topic, topic);
    cr_expect_eq(job->priority, 8);
    cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
    cr_expect_eq(atomic_load(&lab.state->discarded), 1u);
    lab_close(&lab);
}

LAB_TEST(clear, gives_a_carried_pointer_to_the_discard_hook)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, NULL, .delay_ns = 5, .ptr = &lab);
    cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
    cr_expect_eq(lab.state->last_discarded.ptr, &lab);
    lab_close(&lab);
}

LAB_TEST(clear, of_one_topic_leaves_the_others_alone)
{
    struct lab lab = lab_open();
    int a = lab_topic(&lab, "a");
    int b = lab_topic(&lab, "b");
    uint64_t cleared;

    lab_enqueue(&lab, "a", .at_ns = 5, .topic = a);
    lab_enqueue(&lab, "b", .at_ns = 5, .topic = b);
    lab_enqueue(&lab, "default", .at_ns = 6);
    cr_expect_eq(due_clear(lab.q, a, &cleared), 0);
    cr_expect_eq(cleared, 1u);
    lab_turn_to(&lab, 10);
    cr_expect_null(lab_dequeue_from(&lab, a));
    cr_expect_str_eq(lab_dequeue_from(&lab, b), "b");
    cr_expect_str_eq(lab_dequeue_from(&lab, 0), "default");
    lab_close(&lab);
}

LAB_TEST(clear, leaves_lent_jobs_with_who_has_them)
{
    struct lab lab = lab_open();
    uint64_t cleared;
    due_job job;

    lab_enqueue(&lab, "lent", .delay_ns = 0);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, &cleared), 0);
    cr_expect_eq(cleared, 0u);
    cr_expect_str_eq(lab_text(&lab, &job), "lent");
    lab_close(&lab);
}

LAB_TEST(clear, refuses_a_topic_that_was_never_given)
{
    struct lab lab = lab_open();
    uint64_t cleared = 99;

    lab_enqueue(&lab, "job", .delay_ns = 0);
    cr_expect_eq(due_clear(lab.q, 1, &cleared), DUE_EINVAL);
    cr_expect_eq(due_clear(lab.q, -2, &cleared), DUE_EINVAL);
    cr_expect_eq(due_clear(lab.q, DUE_TOPIC_MAX, &cleared), DUE_EINVAL);
    cr_expect_eq(cleared, 99u);
    cr_expect_eq(lab_stats(&lab).waiting, 1u);
    lab_close(&lab);
}

/* tokio: clear wakes the poller; libdue's waits on, and gets what comes next */
LAB_TEST(clear, leaves_a_waiting_consumer_waiting_for_what_comes_next)
{
    struct lab lab = lab_open();
    struct crew_call call;

    lab_enqueue(&lab, "cleared", .at_ns = 10);
    crew_call_dequeue(&call, lab.q, DUE_FOREVER);
    crew_call_asleep(&call);
    cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
    lab_turn_to(&lab, 10);
    crew_call_asleep(&call);
    cr_expect_not(atomic_load(&call.thread.back));
    lab_enqueue(&lab, "next", .at_ns = 20);
    lab_turn_to(&lab, 20);
    cr_assert_eq(crew_call_answer(&call), 0);
    cr_expect_str_eq(lab_text(&lab, &call.job), "next");
    lab_close(&lab);
}

LAB_TEST(clear, makes_room_for_a_blocked_enqueue)
{
    struct lab lab = lab_open(.with.capacity = 1);
    struct crew_call call;

    lab_enqueue(&lab, "in the way", .delay_ns = 10);
    crew_call_enqueue(&call, lab.q, (due_spec){ DUE_SPEC_INIT, .delay_ns = 5 }, DUE_FOREVER);
    crew_call_asleep(&call);
    cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
    cr_expect_eq(crew_call_answer(&call), 0);
    cr_expect_eq(lab_stats(&lab).enqueued, 2u);
    lab_close(&lab);
}

LAB_TEST(clear, of_many_thousands_releases_their_memory)
{
    static const char large[] = "a payload that does not fit into the thirty-two bytes of a job";
    struct lab lab = lab_open(.with.reserve = 20000);
    size_t live = atomic_load(&lab.state->memory.live);
    uint64_t cleared;

    for (int i = 0; i < 20000; i++)
        lab_enqueue(&lab, large, .delay_ns = 1 + i % 100);
    cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, &cleared), 0);
    cr_expect_eq(cleared, 20000u);
    due_poll(lab.q, NULL);
    cr_expect_eq(due_trim(lab.q), 0);
    cr_expect_eq(atomic_load(&lab.state->memory.live), live);
    lab_close(&lab);
}
