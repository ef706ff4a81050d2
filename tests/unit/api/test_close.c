/* Closing: drain, discard, and everybody who waits meanwhile. */
#include <sched.h>

#include "due/metrics.h"
#include "lab/lab.h"
#include "lab/take.h"

LAB_TEST(close, of_an_empty_queue_is_done_at_once)
{
    struct lab lab = lab_open();

    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), 0);
    lab_close(&lab);
}

LAB_TEST(close, may_be_called_again_and_again)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "job", .delay_ns = 5);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, 0), 0);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), 0);
    cr_expect_eq(atomic_load(&lab.state->discarded), 1u);
    lab_close(&lab);
}

LAB_TEST(close, refuses_wrong_arguments_and_stays_open)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "job", .delay_ns = 0);
    cr_expect_eq(due_close(lab.q, (enum due_close_mode)7, 0), DUE_EINVAL);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, -1), DUE_EINVAL);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, INT64_MIN), DUE_EINVAL);
    lab_enqueue(&lab, "still open", .delay_ns = 0);
    cr_expect_str_eq(lab_dequeue_all(&lab), "job still open");
    lab_close(&lab);
}

/* Netty: stop returns what was not processed */
LAB_TEST(close, by_discarding_shows_every_waiting_job_to_the_hook_once)
{
    struct lab lab = lab_open();

    for (int i = 0; i < 100; i++)
        lab_enqueue(&lab, "job", .at_ns = 1 + i);
    lab_turn_to(&lab, 30);
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(atomic_load(&lab.state->discarded), 99u);
    lab_close(&lab);
}

LAB_TEST(close, by_discarding_hands_carried_pointers_to_the_hook)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, NULL, .delay_ns = 5, .ptr = &lab);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(lab.state->last_discarded.ptr, &lab);
    lab_close(&lab);
}

LAB_TEST(close, by_discarding_releases_memory_without_a_hook_too)
{
    static const char large[] = "a payload that does not fit into the thirty-two bytes of a job";
    struct flaky memory;
    due_queue *q;

    flaky_init(&memory, FLAKY_NEVER);
    due_options options = { DUE_OPTIONS_INIT, .allocator = &memory.hooks,
                            .proxies = (enum due_proxies)lab_proxies };
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(100), .data = large, .len = sizeof large };
    cr_assert_eq(due_open(&q, &options, NULL), 0);
    for (int i = 0; i < 100; i++)
        cr_assert_eq(due_enqueue(q, &spec, 0, NULL), 0);
    cr_expect_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(due_free(q), 0);
    cr_expect_eq(atomic_load(&memory.live), 0u);
    cr_expect_eq(atomic_load(&memory.bad), 0u);
}

LAB_TEST(close, by_draining_delivers_each_job_at_its_deadline)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "a", .at_ns = 10);
    lab_enqueue(&lab, "b", .at_ns = 20);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    lab_turn_to(&lab, 9);
    cr_expect_null(lab_dequeue(&lab));
    lab_turn_to(&lab, 10);
    cr_expect_str_eq(lab_dequeue(&lab), "a");
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    lab_turn_to(&lab, 20);
    cr_expect_str_eq(lab_dequeue(&lab), "b");
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), 0);
    cr_expect_eq(atomic_load(&lab.state->discarded), 0u);
    lab_close(&lab);
}

/* A tenure rings 32 bells at most. */
enum { MANY = 70 };

LAB_TEST(close, wakes_more_consumers_than_one_tenure_can_ring)
{
    struct lab lab = lab_open();
    struct crew_call calls[MANY];

    for (size_t i = 0; i < MANY; i++) {
        crew_call_dequeue(&calls[i], lab.q, DUE_FOREVER);
        crew_call_asleep(&calls[i]);
    }
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    for (size_t i = 0; i < MANY; i++)
        cr_expect_eq(crew_call_answer(&calls[i]), DUE_ECLOSED);
    lab_close(&lab);
}

LAB_TEST(close, wakes_more_producers_than_one_tenure_can_ring)
{
    struct lab lab = lab_open(.with.capacity = 1);
    struct crew_call calls[MANY];

    lab_enqueue(&lab, "full", .at_ns = 10);
    for (size_t i = 0; i < MANY; i++) {
        crew_call_enqueue(&calls[i], lab.q, (due_spec){ DUE_SPEC_INIT, .at_ns = 0 }, DUE_FOREVER);
        crew_call_asleep(&calls[i]);
    }
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    for (size_t i = 0; i < MANY; i++)
        cr_expect_eq(crew_call_answer(&calls[i]), DUE_ECLOSED);
    lab_close(&lab);
}

LAB_TEST(close, by_draining_ends_when_the_last_job_is_cancelled)
{
    struct lab lab = lab_open();
    struct crew_call call;
    due_id id = lab_enqueue(&lab, "last", .at_ns = 10);

    crew_call_close(&call, lab.q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    crew_call_asleep(&call);
    cr_expect_eq(due_cancel(lab.q, id, NULL), 0);
    cr_expect_eq(crew_call_answer(&call), 0);
    lab_close(&lab);
}

LAB_TEST(close, by_draining_ends_when_the_last_jobs_are_cancelled_together)
{
    struct lab lab = lab_open();
    struct crew_call call;
    due_id ids[MANY];

    for (int i = 0; i < MANY; i++) /* more than are counted at a time */
        ids[i] = lab_enqueue(&lab, "job", .at_ns = 10 + i);
    crew_call_close(&call, lab.q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    crew_call_asleep(&call);
    lab_turn_to(&lab, 20);
    cr_expect_eq(due_cancel_batch(lab.q, ids, MANY, NULL), MANY);
    cr_expect_eq(crew_call_answer(&call), 0);
    cr_expect_eq(lab_stats(&lab).cancelled, (uint64_t)MANY);
    cr_expect_eq(lab_stats(&lab).ready, 0u);
    lab_close(&lab);
}

LAB_TEST(close, by_draining_ends_when_the_last_job_is_taken)
{
    struct lab lab = lab_open();
    struct crew_call call;

    lab_enqueue(&lab, "last", .at_ns = 10);
    crew_call_close(&call, lab.q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    crew_call_asleep(&call);
    lab_turn_to(&lab, 10);
    cr_expect_str_eq(lab_dequeue(&lab), "last");
    cr_expect_eq(crew_call_answer(&call), 0);
    lab_close(&lab);
}

LAB_TEST(close, by_draining_ends_when_everything_is_cleared)
{
    struct lab lab = lab_open();
    struct crew_call call;

    lab_enqueue(&lab, "a", .at_ns = 10);
    lab_enqueue(&lab, "b", .at_ns = DUE_FOREVER);
    crew_call_close(&call, lab.q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    crew_call_asleep(&call);
    cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
    cr_expect_eq(crew_call_answer(&call), 0);
    lab_close(&lab);
}

LAB_TEST(close, by_draining_can_be_given_up_for_discarding)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "a", .at_ns = 10);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(atomic_load(&lab.state->discarded), 1u);
    lab_close(&lab);
}

LAB_TEST(close, by_discarding_ends_another_threads_draining)
{
    struct lab lab = lab_open();
    struct crew_call call;

    lab_enqueue(&lab, "a", .at_ns = DUE_FOREVER);
    crew_call_close(&call, lab.q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    crew_call_asleep(&call);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(crew_call_answer(&call), 0);
    lab_close(&lab);
}

LAB_TEST(close, by_draining_keeps_its_timeout)
{
    struct lab lab = lab_open();
    struct crew_call call;

    lab_enqueue(&lab, "a", .at_ns = DUE_S(10));
    crew_call_close(&call, lab.q, DUE_CLOSE_DRAIN, 100);
    crew_call_asleep(&call);
    lab_turn_to(&lab, 99);
    crew_call_asleep(&call);
    cr_expect_not(atomic_load(&call.thread.back));
    lab_turn_to(&lab, 100);
    cr_expect_eq(crew_call_answer(&call), DUE_ETIMEDOUT);
    lab_close(&lab);
}

LAB_TEST(close, by_several_callers_keeps_the_timeout_of_each)
{
    struct lab lab = lab_open();
    struct crew_call patient;
    struct crew_call brief;

    lab_enqueue(&lab, "a", .at_ns = DUE_FOREVER);
    crew_call_close(&patient, lab.q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    crew_call_asleep(&patient);
    for (int i = 1; i <= 3; i++) {
        crew_call_close(&brief, lab.q, DUE_CLOSE_DRAIN, 100);
        crew_call_asleep(&brief);
        lab_turn_to(&lab, i * 100 - 1);
        crew_call_asleep(&brief);
        cr_expect_not(atomic_load(&brief.thread.back));
        lab_turn_to(&lab, i * 100);
        cr_expect_eq(crew_call_answer(&brief), DUE_ETIMEDOUT);
    }
    cr_expect_not(atomic_load(&patient.thread.back));
    cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
    cr_expect_eq(crew_call_answer(&patient), 0);
    lab_close(&lab);
}

/* A handler that goes on until its queue is closed, whatever else it is told. */
static void until_closed(void *ctx, const due_job *job, due_answer *answer)
{
    due_queue *q = job->queue;
    int nothing = *(const int *)ctx;
    due_job other;

    while (take_from(q, &nothing, 1, &other, 0) != DUE_ECLOSED)
        sched_yield();
    *answer = due_answer_ack();
}

/* The original's fourth defect, B7: close with callers blocked in every verb that can block */
LAB_TEST(close, wakes_a_caller_blocked_in_every_verb)
{
    enum { DRAIN = 9, STOP, CALLERS };
    struct lab lab = lab_open(.with.capacity = 2);
    int topic = lab_topic(&lab, "mail");
    int work = lab_topic(&lab, "work");
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = 5 };
    struct crew_call call[CALLERS];
    due_workers *pool;

    cr_assert_eq(due_workers_start(&pool, lab.q, &work, 1, 2, until_closed, &topic, NULL), 0);
    lab_enqueue(&lab, "at work", .topic = work);
    while (lab_stats(&lab).leased == 0)
        sched_yield();
    lab_enqueue(&lab, "later", .at_ns = DUE_S(100));
    crew_call_dequeue(&call[0], lab.q, DUE_FOREVER);
    crew_call_asleep(&call[0]);
    crew_call_dequeue(&call[1], lab.q, DUE_S(1000));
    crew_call_asleep(&call[1]);
    crew_call_dequeue_from(&call[2], lab.q, &topic, 1, DUE_FOREVER);
    crew_call_asleep(&call[2]);
    crew_call_dequeue_batch(&call[3], lab.q, DUE_FOREVER);
    crew_call_asleep(&call[3]);
    crew_call_reserve(&call[4], lab.q, NULL, 0, DUE_S(1), DUE_FOREVER);
    crew_call_asleep(&call[4]);
    crew_call_reserve(&call[5], lab.q, &topic, 1, DUE_S(1), DUE_S(1000));
    crew_call_asleep(&call[5]);
    crew_call_reserve_batch(&call[6], lab.q, NULL, 0, DUE_S(1), DUE_FOREVER);
    crew_call_asleep(&call[6]);
    crew_call_enqueue(&call[7], lab.q, spec, DUE_FOREVER);
    crew_call_asleep(&call[7]);
    crew_call_enqueue_batch(&call[8], lab.q, spec, DUE_S(1000));
    crew_call_asleep(&call[8]);
    crew_call_stop(&call[STOP], pool, DUE_FOREVER);
    crew_call_asleep(&call[STOP]);
    for (int i = 0; i < CALLERS; i++)
        cr_expect(i == DRAIN || !atomic_load(&call[i].thread.back), "caller %d", i);
    crew_call_close(&call[DRAIN], lab.q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    crew_call_asleep(&call[DRAIN]);
    for (int i = 0; i < CALLERS; i++) /* who puts in is refused from here on */
        cr_expect(i == 7 || i == 8 || !atomic_load(&call[i].thread.back), "caller %d", i);

    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    for (int i = 0; i < DRAIN; i++)
        cr_expect_eq(crew_call_answer(&call[i]), DUE_ECLOSED, "caller %d", i);
    cr_expect_eq(crew_call_answer(&call[DRAIN]), 0);
    cr_expect_eq(crew_call_answer(&call[STOP]), 0);
    cr_expect_eq(due_workers_free(pool), 0);
    cr_expect_eq(atomic_load(&lab.state->discarded), 1u);
    lab_close(&lab);
}

LAB_TEST(close, by_draining_lets_blocked_consumers_have_what_is_left)
{
    struct lab lab = lab_open();
    struct crew_call call[2];

    lab_enqueue(&lab, "last", .at_ns = 10);
    for (int i = 0; i < 2; i++) {
        crew_call_dequeue(&call[i], lab.q, DUE_FOREVER);
        crew_call_asleep(&call[i]);
    }
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    lab_turn_to(&lab, 10);
    int first = crew_call_answer(&call[0]);
    int second = crew_call_answer(&call[1]);
    cr_expect((first == 0 && second == DUE_ECLOSED) || (first == DUE_ECLOSED && second == 0),
              "%s and %s", due_error_name(first), due_error_name(second));
    due_job_done(first == 0 ? &call[0].job : &call[1].job);
    lab_close(&lab);
}

LAB_TEST(close, leaves_every_call_a_definite_answer)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "job", .delay_ns = 5);
    uint64_t cursor = 0;
    uint64_t cleared = 9;
    int topic = 0;
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = 5 };
    struct due_metrics metrics;
    due_dead dead;
    due_info info;
    due_job job;

    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(due_dequeue(lab.q, &job, 0), DUE_ECLOSED);
    cr_expect_eq(due_dequeue(lab.q, &job, DUE_FOREVER), DUE_ECLOSED);
    cr_expect_eq(take_from(lab.q, &topic, 1, &job, DUE_FOREVER), DUE_ECLOSED);
    cr_expect_eq(take_some(lab.q, NULL, 0, &job, 1, DUE_FOREVER), DUE_ECLOSED);
    cr_expect_eq(take_leased(lab.q, &job, 5, DUE_FOREVER), DUE_ECLOSED);
    cr_expect_eq(take_leased_from(lab.q, &topic, 1, &job, 5, DUE_FOREVER), DUE_ECLOSED);
    cr_expect_eq(take_leased_some(lab.q, NULL, 0, &job, 1, 5, DUE_FOREVER), DUE_ECLOSED);
    cr_expect_eq(due_enqueue(lab.q, &spec, DUE_FOREVER, NULL), DUE_ECLOSED);
    cr_expect_eq(due_enqueue_batch(lab.q, &spec, 1, DUE_FOREVER, NULL), DUE_ECLOSED);
    cr_expect_lt(due_kick(lab.q, id), 0);
    cr_expect_lt(due_update(lab.q, id, "new", 3), 0);
    cr_expect_eq(due_id_of_key(lab.q, "k", 1, &id), DUE_ENOENT);
    cr_expect_eq(due_list_dead(lab.q, &cursor, &dead, 1), 0);
    cr_expect_eq(due_clear_dead(lab.q, DUE_ALL_TOPICS, NULL), 0);
    cr_expect_eq(due_topic_limit(lab.q, 0, 1), 0);
    cr_expect_eq(due_flush(lab.q, DUE_FOREVER), 0);
    cr_expect_eq(due_metrics_read(lab.q, &metrics), 0);
    cursor = 0;
    cr_expect_eq(due_cancel(lab.q, id, NULL), DUE_ENOENT);
    cr_expect_eq(due_find(lab.q, id, &info), DUE_ENOENT);
    cr_expect_lt(due_reschedule(lab.q, id, 5), 0);
    cr_expect_lt(due_promote(lab.q, id), 0);
    cr_expect_eq(due_peek(lab.q, &info), DUE_EAGAIN);
    cr_expect_eq(due_list(lab.q, &cursor, &info, 1), 0);
    cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, &cleared), 0);
    cr_expect_eq(cleared, 0u);
    cr_expect_eq(due_fd(lab.q), DUE_ECLOSED);
    cr_expect_eq(due_trim(lab.q), 0);
    cr_expect_eq(due_poll(lab.q, NULL), 0);
    cr_expect_eq(due_next_deadline(lab.q), DUE_FOREVER);
    cr_expect_eq(due_pause(lab.q, 0), 0);
    cr_expect_eq(due_resume(lab.q, 0), 0);
    lab_close(&lab);
}

/* A pause while draining holds the drain up, and resume ends it. */
LAB_TEST(close, by_draining_waits_for_paused_topics)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "held back", .delay_ns = 0);
    cr_expect_eq(due_pause(lab.q, 0), 0);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_eq(due_resume(lab.q, 0), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "held back");
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), 0);
    lab_close(&lab);
}

/* B13: nothing depends on further traffic; on the real clock a drain ends by itself */
LAB_TEST(close, by_draining_on_a_real_clock_ends_by_itself)
{
    struct lab lab = lab_open(.kernel = true);
    struct crew_call call;

    lab_enqueue(&lab, "soon", .delay_ns = DUE_MS(20));
    crew_call_dequeue(&call, lab.q, DUE_FOREVER);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, DUE_S(30)), 0);
    cr_assert_eq(crew_call_answer(&call), 0);
    cr_expect_str_eq(lab_text(&lab, &call.job), "soon");
    lab_close(&lab);
}

/* One job leaves, in the @n-th of the ways there are: taken, or cancelled, the last first. */
static void leave(due_queue *q, size_t n, const due_id *ids, size_t *last)
{
    due_job job;

    switch (n % 5) {
    case 0:
        cr_assert_eq(due_dequeue(q, &job, 0), 0);
        due_job_done(&job);
        break;
    case 1:
        cr_assert_eq(due_cancel(q, ids[--*last], NULL), 0);
        break;
    case 2:
        cr_assert_eq(due_reserve(q, &job, 0), 0);
        cr_assert_eq(due_ack(&job), 0);
        break;
    case 3:
        cr_assert_eq(due_reserve(q, &job, 0), 0);
        cr_assert_eq(due_bury(&job, NULL), 0);
        break;
    default:
        cr_assert_eq(due_cancel(q, ids[--*last], &job), 0);
        due_job_done(&job);
    }
}

/* Those that are taken come from the front, those that are cancelled from the end. */
LAB_TEST(close, drains_until_the_last_of_many_however_they_leave)
{
    enum { MOST = 150 };

    for (size_t n = 1; n <= MOST; n += n < 40 ? 1 : 11) {
        struct lab lab = lab_open();
        due_id ids[MOST];
        due_job job;

        for (size_t i = 0; i < n; i++) {
            due_spec s = { DUE_SPEC_INIT };

            cr_assert_eq(due_enqueue(lab.q, &s, 0, &ids[i]), 0);
        }
        cr_assert_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
        for (size_t i = 0, last = n; i < n; i++)
            leave(lab.q, i, ids, &last);
        cr_expect_eq(due_dequeue(lab.q, &job, 0), DUE_ECLOSED, "%zu jobs", n);
        lab_close(&lab);
    }
}

/* What a call needs to wait is used again by the next. */
LAB_TEST(close, that_is_tried_again_and_again_takes_no_more_memory)
{
    struct lab lab = lab_open();
    size_t live = 0;

    lab_enqueue(&lab, "tea", .at_ns = 1000);
    for (int i = 0; i < 20; i++) {
        cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
        if (i == 0)
            live = atomic_load(&lab.state->memory.live);
    }
    cr_expect_leq(atomic_load(&lab.state->memory.live), live);
    lab_close(&lab);
}
