/* Putting in many at once, and taking out many at once. */
#include "due/metrics.h"
#include "lab/lab.h"
#include "lab/take.h"
#include "queue/queue.h"

#include <limits.h>
#include <pthread.h>

#define BATCH 100
#define HUGE  70000 /* never from memory that is kept: each time it is asked for */

static void fill(due_spec *specs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        specs[i] = (due_spec){ DUE_SPEC_INIT, .delay_ns = (int64_t)(n - i), .data = &specs[i],
                               .len = i % 64 };
}

LAB_TEST(enqueue_batch, takes_all_and_answers_how_many)
{
    struct lab lab = lab_open();
    due_spec specs[BATCH];
    due_id ids[BATCH];

    fill(specs, BATCH);
    cr_expect_eq(due_enqueue_batch(lab.q, specs, BATCH, 0, ids), BATCH);
    for (size_t i = 0; i < BATCH; i++)
        cr_expect_eq(lab_find(&lab, ids[i]).deadline_ns, specs[i].delay_ns, "%zu", i);
    cr_expect_eq(lab_stats(&lab).enqueued, BATCH);
    lab_close(&lab);
}

LAB_TEST(enqueue_batch, works_without_room_for_ids)
{
    struct lab lab = lab_open();
    due_spec specs[BATCH];

    fill(specs, BATCH);
    cr_expect_eq(due_enqueue_batch(lab.q, specs, BATCH, 0, NULL), BATCH);
    cr_expect_eq(lab_stats(&lab).waiting, BATCH);
    lab_close(&lab);
}

LAB_TEST(enqueue_batch, keeps_the_order_of_equal_deadlines)
{
    struct lab lab = lab_open();
    due_spec specs[BATCH];

    for (size_t i = 0; i < BATCH; i++)
        specs[i] = (due_spec){ DUE_SPEC_INIT, .at_ns = 5, .ptr = &specs[i] };
    cr_assert_eq(due_enqueue_batch(lab.q, specs, BATCH, 0, NULL), BATCH);
    lab_turn_to(&lab, 5);
    for (size_t i = 0; i < BATCH; i++) {
        due_job job;

        cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
        cr_expect_eq(job.ptr, &specs[i], "%zu", i);
        due_job_done(&job);
    }
    lab_close(&lab);
}

LAB_TEST(enqueue_batch, takes_none_if_any_of_them_is_wrong)
{
    struct lab lab = lab_open();
    due_spec specs[3];

    for (size_t wrong = 0; wrong < 3; wrong++) {
        fill(specs, 3);
        specs[wrong].priority = 256;
        cr_expect_eq(due_enqueue_batch(lab.q, specs, 3, 0, NULL), DUE_EINVAL);
        cr_expect_eq(lab_stats(&lab).enqueued, 0u);
    }
    lab_close(&lab);
}

LAB_TEST(enqueue_batch, refuses_none_at_all)
{
    struct lab lab = lab_open();
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = 1 };

    cr_expect_eq(due_enqueue_batch(lab.q, &spec, 0, 0, NULL), DUE_EINVAL);
    cr_expect_eq(due_enqueue_batch(lab.q, &spec, 1, -1, NULL), DUE_EINVAL);
    lab_close(&lab);
}

LAB_TEST(enqueue_batch, takes_as_many_as_there_is_room_for_in_order)
{
    struct lab lab = lab_open(.with.capacity = 7);
    due_spec specs[10];
    due_id ids[10];

    fill(specs, 10);
    memset(ids, 0x5a, sizeof ids);
    cr_expect_eq(due_enqueue_batch(lab.q, specs, 10, 0, ids), 7);
    for (size_t i = 0; i < 7; i++)
        cr_expect_eq(lab_find(&lab, ids[i]).deadline_ns, specs[i].delay_ns, "%zu", i);
    cr_expect_eq(due_enqueue_batch(lab.q, specs, 10, 0, NULL), DUE_EAGAIN);
    lab_close(&lab);
}

LAB_TEST(enqueue_batch, refuses_when_closed)
{
    struct lab lab = lab_open();
    due_spec specs[2];

    fill(specs, 2);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), 0);
    cr_expect_eq(due_enqueue_batch(lab.q, specs, 2, 0, NULL), DUE_ECLOSED);
    lab_close(&lab);
}

static void *begin_to_close(void *arg)
{
    struct lab *lab = arg;

    cr_expect_eq(due_close(lab->q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT, "jobs wait");
    return NULL;
}

/* The call has looked at the queue, and has a place for each job, but not all of their memory. */
static void close_meanwhile(void *ctx, size_t size)
{
    struct lab *lab = ctx;
    pthread_t other;

    if (size < HUGE)
        return;
    lab->state->memory.on_alloc = NULL;
    cr_assert_eq(pthread_create(&other, NULL, begin_to_close, lab), 0);
    pthread_join(other, NULL);
}

LAB_TEST(enqueue_batch, that_a_close_refuses_takes_nothing_of_an_earlier_one_away)
{
    enum { FIRST = 5, SECOND = 3 };
    static char bytes[FIRST][HUGE];
    struct lab lab = lab_open();
    due_spec specs[FIRST];
    due_job job;

    for (size_t i = 0; i < FIRST; i++) {
        memset(bytes[i], (int)('a' + i), HUGE);
        specs[i] =
            (due_spec){ DUE_SPEC_INIT, .at_ns = (int64_t)i + 1, .data = bytes[i], .len = HUGE };
    }
    cr_assert_eq(due_enqueue_batch(lab.q, specs, FIRST, 0, NULL), FIRST);
    lab.state->memory.on_alloc_ctx = &lab;
    lab.state->memory.on_alloc = close_meanwhile;
    cr_expect_eq(due_enqueue_batch(lab.q, specs, SECOND, 0, NULL), DUE_ECLOSED);
    cr_expect_null(lab.state->memory.on_alloc, "this proves nothing");
    cr_expect_eq(lab_stats(&lab).waiting, FIRST);
    lab_turn_to(&lab, FIRST);
    due_poll(lab.q, NULL);
    cr_expect_eq(lab_stats(&lab).ready, FIRST);
    for (size_t i = 0; i < FIRST; i++) {
        cr_assert_eq(due_dequeue(lab.q, &job, 0), 0, "%zu", i);
        cr_expect_eq(job.deadline_ns, (int64_t)i + 1);
        cr_expect_eq(job.len, HUGE);
        cr_expect_eq(memcmp(job.data, bytes[i], HUGE), 0, "%zu", i);
        due_job_done(&job);
    }
    cr_expect_eq(due_dequeue(lab.q, &job, 0), DUE_ECLOSED);
    lab_close(&lab);
}

struct refusals {
    unsigned produced;
    unsigned discarded;
    bool wrong; /* one of them was not as the job was */
};

static void on_event(void *ctx, const due_event *event)
{
    struct refusals *r = ctx;

    r->produced += event->kind == DUE_EVENT_PRODUCED;
    r->discarded += event->kind == DUE_EVENT_DISCARDED;
    r->wrong |= event->deadline_ns < 1001 || event->deadline_ns > 1003 || event->priority != 7 ||
                event->topic != 0 || event->attempts != 0;
}

/* It is told of each that it was put in, and of each that it is not. */
LAB_TEST(enqueue_batch, that_a_close_refuses_is_told_as_it_would_have_been)
{
    enum { JOBS = 3 };
    static char bytes[HUGE];
    struct refusals told = { 0 };
    struct lab lab = lab_open(.with.on_event = on_event, .with.event_ctx = &told);
    due_spec specs[JOBS];

    lab_enqueue(&lab, "in the way", .at_ns = 1001, .priority = 7);
    for (size_t i = 0; i < JOBS; i++)
        specs[i] = (due_spec){ DUE_SPEC_INIT, .at_ns = 1001 + (int64_t)i, .priority = 7,
                               .data = bytes, .len = HUGE };
    lab.state->memory.on_alloc_ctx = &lab;
    lab.state->memory.on_alloc = close_meanwhile;
    cr_expect_eq(due_enqueue_batch(lab.q, specs, JOBS, 0, NULL), DUE_ECLOSED);
    cr_expect_null(lab.state->memory.on_alloc, "this proves nothing");
    cr_expect_eq(told.produced - told.discarded, 1u, "%u, %u", told.produced, told.discarded);
    cr_expect_eq(told.discarded, JOBS, "%u", told.discarded);
    cr_expect_not(told.wrong);
    cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
    cr_expect_not(told.wrong);
    lab_close(&lab);
}

/* A job is crowded out by one that has died: the call has put in some, and comes to the next. */
static void close_at_discard(void *ctx, const due_job *job)
{
    struct lab *lab = *(struct lab **)ctx;
    pthread_t other;

    if (lab == NULL)
        return;
    *(struct lab **)ctx = NULL;
    cr_expect_eq(job->len, 3u);
    cr_assert_eq(pthread_create(&other, NULL, begin_to_close, lab), 0);
    pthread_join(other, NULL);
}

Test(enqueue_batch, that_a_close_meets_puts_in_no_more, .timeout = 60)
{
    static const due_retry once = { .kind = DUE_RETRY_FIXED, .attempts_max = 1 };
    enum { JOBS = 5000 };
    static due_spec specs[JOBS];
    struct lab *closes = NULL;
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER, .with.dead_max = 1,
                              .with.on_discard = close_at_discard, .with.discard_ctx = &closes,
                              .with.retry = once, .with.reserve = JOBS);
    due_job job;

    for (int i = 0; i < 2; i++) {
        lab_enqueue(&lab, "tea", .delay_ns = 0);
        cr_assert_eq(lab_reserve(&lab, &job, 100), 0);
        if (i == 0)
            cr_assert_eq(due_bury(&job, NULL), 0);
        else
            due_job_done(&job);
    }
    lab_turn_to(&lab, 100); /* nobody has seen that it was the last attempt of the second */
    cr_assert_eq(lab.q->dead_count, 1u);
    for (int i = 0; i < JOBS; i++)
        specs[i] = (due_spec){ DUE_SPEC_INIT };
    closes = &lab;
    int n = due_enqueue_batch(lab.q, specs, JOBS, 0, NULL);
    cr_expect_null(closes, "this proves nothing");
    cr_expect(n > 0 && n < JOBS, "%d", n);
    cr_expect_eq(lab_stats(&lab).waiting, (uint64_t)n);
    for (int i = 0; i < n; i++)
        cr_assert_not_null(lab_dequeue(&lab), "%d of %d", i, n);
    cr_expect_eq(due_dequeue(lab.q, &job, 0), DUE_ECLOSED);
    lab_close(&lab);
}

LAB_TEST(enqueue_batch, takes_many_thousands)
{
    enum { MANY = 20000 };
    static due_spec specs[MANY];
    struct lab lab = lab_open();

    fill(specs, MANY);
    cr_expect_eq(due_enqueue_batch(lab.q, specs, MANY, 0, NULL), MANY);
    cr_expect_eq(lab_stats(&lab).waiting, MANY);
    lab_close(&lab);
}

LAB_TEST(dequeue_batch, takes_as_many_as_are_due_in_order)
{
    struct lab lab = lab_open();
    due_job jobs[10];

    for (int i = 0; i < 10; i++)
        lab_enqueue(&lab, NULL, .at_ns = 10 - i, .priority = i);
    lab_turn_to(&lab, 6);
    cr_assert_eq(take_some(lab.q, NULL, 0, jobs, 10, 0), 6);
    for (int i = 0; i < 6; i++) {
        cr_expect_eq(jobs[i].deadline_ns, i + 1);
        due_job_done(&jobs[i]);
    }
    cr_expect_eq(take_some(lab.q, NULL, 0, jobs, 10, 0), DUE_EAGAIN);
    lab_close(&lab);
}

LAB_TEST(dequeue_batch, takes_no_more_than_was_asked_for)
{
    struct lab lab = lab_open();
    due_job jobs[5];

    memset(jobs, 0, sizeof jobs);
    for (int i = 0; i < 10; i++)
        lab_enqueue(&lab, NULL, .delay_ns = 0);
    for (int round = 0; round < 5; round++) {
        cr_assert_eq(take_some(lab.q, NULL, 0, jobs, 2, 0), 2);
        cr_expect_null(jobs[2].queue);
        due_job_done(&jobs[0]);
        due_job_done(&jobs[1]);
    }
    cr_expect_eq(take_some(lab.q, NULL, 0, jobs, 2, 0), DUE_EAGAIN);
    lab_close(&lab);
}

LAB_TEST(dequeue_batch, takes_only_of_the_topics_named)
{
    struct lab lab = lab_open();
    int topics[] = { lab_topic(&lab, "a"), lab_topic(&lab, "b"), lab_topic(&lab, "c") };
    due_job jobs[9];

    for (int i = 0; i < 9; i++)
        lab_enqueue(&lab, NULL, .topic = topics[i % 3]);
    int n = take_some(lab.q, topics, 2, jobs, 9, 0);
    cr_assert_eq(n, 6, "%d", n);
    for (int i = 0; i < n; i++) {
        cr_expect_neq(jobs[i].topic, topics[2]);
        due_job_done(&jobs[i]);
    }
    lab_close(&lab);
}

LAB_TEST(dequeue_batch, takes_of_all_topics_when_none_is_named)
{
    struct lab lab = lab_open();
    int topics[] = { 0, lab_topic(&lab, "a"), lab_topic(&lab, "b") };
    int seen[3] = { 0 };
    due_job jobs[9];

    for (int i = 0; i < 9; i++)
        lab_enqueue(&lab, NULL, .topic = topics[i % 3]);
    for (int left = 9; left > 0;) {
        int n = take_some(lab.q, NULL, 0, jobs, 9, 0);

        cr_assert_gt(n, 0, "%d left: %s", left, due_error_name(n));
        for (int i = 0; i < n; i++) {
            seen[jobs[i].topic]++;
            due_job_done(&jobs[i]);
        }
        left -= n;
    }
    for (int i = 0; i < 3; i++)
        cr_expect_eq(seen[i], 3);
    lab_close(&lab);
}

LAB_TEST(dequeue_batch, refuses_wrong_arguments)
{
    struct lab lab = lab_open();
    int topics[] = { 0, 1, -1 };
    due_job job;

    lab_enqueue(&lab, "left alone", .delay_ns = 0);
    cr_expect_eq(take_some(lab.q, NULL, 0, &job, 0, 0), DUE_EINVAL);
    cr_expect_eq(take_some(lab.q, NULL, 0, &job, 1, -1), DUE_EINVAL);
    cr_expect_eq(take_some(lab.q, NULL, 1, &job, 1, 0), DUE_EINVAL);
    cr_expect_eq(take_some(lab.q, topics, 2, &job, 1, 0), DUE_EINVAL);
    cr_expect_eq(take_some(lab.q, &topics[2], 1, &job, 1, 0), DUE_EINVAL);
    cr_expect_str_eq(lab_dequeue(&lab), "left alone");
    lab_close(&lab);
}

/* F1, the in-process part: a limit in the middle of a large batch */
LAB_TEST(dequeue_batch, drains_20000_due_at_once_in_order)
{
    enum { MANY = 20000, PIECE = 999 };
    static due_job jobs[PIECE];
    struct lab lab = lab_open();
    int64_t last = -1;
    int seen = 0;

    for (int i = 0; i < MANY; i++)
        lab_enqueue(&lab, NULL, .at_ns = 1 + (int64_t)i * 7919 % MANY);
    lab_turn_to(&lab, MANY);
    for (;;) {
        int n = take_some(lab.q, NULL, 0, jobs, PIECE, 0);

        if (n == DUE_EAGAIN)
            break;
        cr_assert(n >= 1 && n <= PIECE, "%d", n);
        for (int i = 0; i < n; i++) {
            cr_assert_gt(jobs[i].deadline_ns, last);
            last = jobs[i].deadline_ns;
            due_job_done(&jobs[i]);
        }
        seen += n;
    }
    cr_expect_eq(seen, MANY);
    lab_close(&lab);
}

LAB_TEST(dequeue_batch, waits_for_the_first_only)
{
    struct lab lab = lab_open();
    struct crew_call call = { .n = 1 };

    crew_call_dequeue_batch(&call, lab.q, DUE_FOREVER);
    crew_call_asleep(&call);
    lab_enqueue(&lab, NULL, .at_ns = 5);
    lab_enqueue(&lab, NULL, .at_ns = 6);
    lab_turn_to(&lab, 5);
    cr_expect_eq(crew_call_answer(&call), 1);
    cr_expect_eq(call.job.deadline_ns, 5);
    due_job_done(&call.job);
    lab_close(&lab);
}

/* As many as are due, also when more are due than are shown at a time. */
LAB_TEST(dequeue_batch, takes_more_than_is_shown_without_the_lock)
{
    enum { JOBS = 200, WANTED = 150 };
    struct lab lab = lab_open();
    static due_job jobs[WANTED];

    for (int i = 0; i < JOBS; i++)
        lab_enqueue(&lab, NULL, .delay_ns = 0);
    due_poll(lab.q, NULL);
    cr_assert_eq(due_dequeue(lab.q, &jobs[0], 0), 0);
    due_job_done(&jobs[0]);
    cr_expect_eq(take_some(lab.q, NULL, 0, jobs, WANTED, 0), WANTED);
    for (int i = 0; i < WANTED; i++)
        due_job_done(&jobs[i]);
    lab_close(&lab);
}

/* Of two queues, some reserved, some with bytes of their own, and more than a call does at once. */
LAB_TEST(jobs_done, are_done_with_together_whatever_they_are)
{
    enum { JOBS = 100, LARGE = 300 };
    static const char large[LARGE];
    struct lab lab[2] = { lab_open(), lab_open() };
    static due_job jobs[2 * JOBS + 1], none[2 * JOBS + 1];
    size_t n = 0;

    for (int i = 0; i < JOBS; i++) {
        lab_enqueue(&lab[0], NULL, .data = large, .len = i % 3 == 0 ? LARGE : 8);
        lab_enqueue(&lab[1], NULL, .delay_ns = 0);
    }
    for (int i = 0; i < JOBS; i++) {
        if (i == JOBS / 2)
            n++; /* a zeroed one */
        for (int k = 0; k < (i < 40 ? 1 : 2); k++) {
            int rc = i % 5 == 0 ? take_leased(lab[k].q, &jobs[n++], DUE_S(1), 0)
                                : due_dequeue(lab[k].q, &jobs[n++], 0);

            cr_assert_eq(rc, 0);
        }
    }
    due_jobs_done(jobs, n);
    cr_expect_arr_eq(jobs, none, sizeof jobs);
    for (int k = 0; k < 2; k++) {
        struct due_stats s = lab_stats(&lab[k]);

        cr_expect_eq(s.lent, 0u);
        cr_expect_eq(s.dequeued + s.leased, k == 0 ? JOBS : JOBS - 40);
        cr_expect_eq(s.enqueued - s.dequeued, s.waiting + s.leased);
    }
    due_jobs_done(jobs, 0);
    lab_close(&lab[0]);
    lab_close(&lab[1]);
}
