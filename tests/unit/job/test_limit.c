/* Limits of topics, with and without groups: set, raised, lowered under way; beside every call that
 * looks at what is due. */
#include <stdio.h>

#include "queue/queue.h"
#include "lab/limiter_lab.h"
#include "mem/chunks.h"
#include "os/atomic.h"
#include "lab/take.h"

#define TEXTS 8

static const char *const texts[TEXTS] = { "a", "b", "c", "d", "e", "f", "g", "h" };

static void enqueue_all(struct lab *lab, int topic)
{
    for (int i = 0; i < TEXTS; i++)
        lab_enqueue(lab, texts[i], .at_ns = 1 + i, .topic = topic);
}

LAB_TEST(limit, of_a_topic_holds_for_it_alone)
{
    struct lab lab = lab_open();
    int slow = lab_topic(&lab, "slow");
    due_job job[2];

    cr_expect_eq(due_topic_limit(lab.q, slow, 2), 0);
    enqueue_all(&lab, slow);
    lab_enqueue(&lab, "other", .at_ns = 1);
    lab_turn_to(&lab, 10);
    cr_assert_eq(take_some(lab.q, &slow, 1, job, 2, 0), 2);
    cr_expect_null(lab_dequeue_from(&lab, slow));
    cr_expect_str_eq(lab_dequeue(&lab), "other");
    cr_expect_str_eq(lab_text(&lab, &job[0]), "a");
    cr_expect_str_eq(lab_dequeue_from(&lab, slow), "c");
    cr_expect_str_eq(lab_text(&lab, &job[1]), "b");
    cr_expect_str_eq(lab_dequeue_all(&lab), "d e f g h");
    limiter_close(&lab);
}

LAB_TEST(limit, of_a_topic_that_does_not_exist_is_refused)
{
    struct lab lab = lab_open();

    cr_expect_eq(due_topic_limit(lab.q, 1, 1), DUE_EINVAL);
    cr_expect_eq(due_topic_limit(lab.q, -1, 1), DUE_EINVAL);
    limiter_close(&lab);
}

LAB_TEST(limit, that_comes_late_holds_back_also_what_is_shown_already)
{
    struct lab lab = lab_open();
    due_job before;
    due_job job;

    enqueue_all(&lab, 0);
    lab_turn_to(&lab, 10);
    cr_assert_eq(due_dequeue(lab.q, &before, 0), 0);
    cr_expect_eq(due_topic_limit(lab.q, 0, 1), 0);
    limiter_right(&lab);
    cr_expect_eq(lab_stats(&lab).ready, TEXTS - 1u);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0, "what was out before does not count");
    cr_expect_null(lab_dequeue(&lab));
    due_job_done(&before);
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_str_eq(lab_text(&lab, &job), "b");
    cr_expect_str_eq(lab_dequeue_all(&lab), "c d e f g h");
    limiter_close(&lab);
}

LAB_TEST(limit, is_raised_lowered_and_lifted_while_jobs_run)
{
    struct lab lab = lab_open();
    due_job job[TEXTS];

    cr_expect_eq(due_topic_limit(lab.q, 0, 3), 0);
    enqueue_all(&lab, 0);
    lab_turn_to(&lab, 10);
    cr_assert_eq(take_some(lab.q, NULL, 0, job, TEXTS, 0), 3);
    cr_expect_eq(due_topic_limit(lab.q, 0, 4), 0);
    cr_assert_eq(take_some(lab.q, NULL, 0, job + 3, TEXTS, 0), 1);
    cr_expect_eq(due_topic_limit(lab.q, 0, 2), 0);
    due_job_done(&job[0]);
    due_job_done(&job[1]);
    cr_expect_null(lab_dequeue(&lab), "two of four are out still");
    limiter_right(&lab);
    due_job_done(&job[2]);
    cr_assert_eq(take_some(lab.q, NULL, 0, job, TEXTS, 0), 1);
    cr_expect_eq(due_topic_limit(lab.q, 0, 0), 0);
    cr_assert_eq(take_some(lab.q, NULL, 0, job + 4, TEXTS, 0), 3);
    cr_expect_eq(due_topic_limit(lab.q, 0, 1), 0);
    lab_enqueue(&lab, "last", .delay_ns = 0);
    due_job_done(&job[0]);
    for (int i = 3; i < 6; i++) {
        cr_expect_null(lab_dequeue(&lab), "those that began without a limit count too");
        due_job_done(&job[i]);
    }
    due_job_done(&job[6]);
    cr_expect_str_eq(lab_dequeue_all(&lab), "last");
    limiter_close(&lab);
}

LAB_TEST(limit, lets_thousands_through_when_it_is_lifted)
{
    struct lab lab = lab_open();
    uint64_t n = 0;

    cr_expect_eq(due_topic_limit(lab.q, 0, 1), 0);
    for (int i = 0; i < 5000; i++)
        lab_enqueue(&lab, "x", .at_ns = 1);
    lab_turn_to(&lab, 10);
    cr_expect_eq(lab_stats(&lab).kept_back, 4999u);
    cr_expect_eq(due_topic_limit(lab.q, 0, 0), 0);
    cr_expect_eq(lab_stats(&lab).kept_back, 0u);
    limiter_right(&lab);
    while (lab_dequeue(&lab) != NULL)
        n++;
    cr_expect_eq(n, 5000u);
    limiter_close(&lab);
}

LAB_TEST(limit, and_groups_hold_together)
{
    struct lab lab = lab_open();
    due_job job[4];

    cr_expect_eq(due_topic_limit(lab.q, 0, 2), 0);
    lab_enqueue(&lab, "g1", .at_ns = 1, .more = EXTRA(OF("g")));
    lab_enqueue(&lab, "g2", .at_ns = 2, .more = EXTRA(OF("g")));
    lab_enqueue(&lab, "h1", .at_ns = 3, .more = EXTRA(OF("h")));
    lab_enqueue(&lab, "i1", .at_ns = 4, .more = EXTRA(OF("i")));
    lab_enqueue(&lab, "none", .at_ns = 5);
    lab_turn_to(&lab, 10);
    cr_assert_eq(take_some(lab.q, NULL, 0, job, 4, 0), 2);
    limiter_right(&lab);
    cr_expect_eq(lab_stats(&lab).passed, 3u, "i1 has its group's pass and waits for the topic's");
    cr_expect_str_eq(lab_text(&lab, &job[1]), "h1");
    cr_expect_str_eq(lab_dequeue(&lab), "i1");
    cr_expect_str_eq(lab_dequeue(&lab), "none");
    cr_expect_str_eq(lab_text(&lab, &job[0]), "g1");
    cr_expect_str_eq(lab_dequeue_all(&lab), "g2");
    limiter_close(&lab);
}

LAB_TEST(limit, is_given_up_by_one_that_waits_between_its_group_and_its_topic)
{
    for (int moved = 0; moved < 2; moved++) {
        struct lab lab = lab_open();
        due_job job;

        cr_expect_eq(due_topic_limit(lab.q, 0, 1), 0);
        lab_enqueue(&lab, "runs", .at_ns = 1);
        due_id id = lab_enqueue(&lab, "between", .at_ns = 2, .more = EXTRA(OF("g")));
        lab_enqueue(&lab, "behind", .at_ns = 3, .more = EXTRA(OF("g")));
        lab_turn_to(&lab, 10);
        cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
        cr_expect_eq(lab_stats(&lab).passed, 2u);
        cr_expect_eq(moved ? due_reschedule(lab.q, id, 500) : due_cancel(lab.q, id, NULL), 0);
        limiter_right(&lab);
        cr_expect_eq(lab_stats(&lab).passed, 2u, "now the one behind it has the group's");
        due_job_done(&job);
        cr_expect_str_eq(lab_dequeue_all(&lab), "behind");
        lab_turn_to(&lab, 500);
        cr_expect_str_eq(lab_dequeue_all(&lab), moved ? "between" : "");
        limiter_close(&lab);
    }
}

/* ---- Beside other calls ---- */

LAB_TEST(limiter, is_not_peeked_over)
{
    struct lab lab = lab_open();
    int mail = lab_topic(&lab, "mail");
    due_info info;
    due_job job;

    cr_expect_eq(due_topic_limit(lab.q, mail, 1), 0);
    lab_enqueue(&lab, "runs", .at_ns = 1, .topic = mail);
    lab_enqueue(&lab, "kept back", .at_ns = 2, .topic = mail);
    lab_turn_to(&lab, 10);
    job = limiter_reserve(&lab);
    cr_expect_eq(due_peek(lab.q, &info), DUE_EAGAIN, "only a lease is ahead");
    cr_expect_eq(due_next_deadline(lab.q), 10 + LEASE);
    lab_enqueue(&lab, "later", .at_ns = 50000);
    cr_assert_eq(due_peek(lab.q, &info), 0);
    cr_expect_eq(info.deadline_ns, 50000);
    cr_expect_eq(due_next_deadline(lab.q), 10 + LEASE);
    cr_expect_eq(due_poll(lab.q, NULL), 0);
    cr_expect_eq(due_ack(&job), 0);
    cr_assert_eq(due_peek(lab.q, &info), 0);
    cr_expect_eq(info.deadline_ns, 2);
    cr_expect_eq(due_poll(lab.q, NULL), 1);
    limiter_close(&lab);
}

LAB_TEST(limiter, shows_who_is_kept_back_as_ready)
{
    struct lab lab = lab_open();
    uint64_t cursor = 0;
    due_info infos[4];
    due_job job;

    lab_enqueue(&lab, "a", .at_ns = 1, .more = EXTRA(OF("g")));
    due_id id = lab_enqueue(&lab, "b", .at_ns = 2, .more = EXTRA(OF("g")));
    lab_turn_to(&lab, 10);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect(lab_find(&lab, id).ready);
    cr_expect_eq(due_list(lab.q, &cursor, infos, 4), 1);
    cr_expect_eq(lab_stats(&lab).ready, 1u);
    cr_expect_eq(lab_stats(&lab).waiting, 1u);
    due_job_done(&job);
    limiter_close(&lab);
}

LAB_TEST(limiter, goes_with_a_paused_topic)
{
    struct lab lab = lab_open();

    cr_expect_eq(due_pause(lab.q, 0), 0);
    cr_expect_eq(due_topic_limit(lab.q, 0, 2), 0);
    enqueue_all(&lab, 0);
    lab_turn_to(&lab, 10);
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_eq(lab_stats(&lab).passed, 2u);
    cr_expect_eq(due_topic_limit(lab.q, 0, 3), 0);
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_eq(due_resume(lab.q, 0), 0);
    cr_expect_str_eq(lab_dequeue_all(&lab), "a b c d e f g h");
    limiter_close(&lab);
}

LAB_TEST(limiter, calls_who_waits_when_a_pass_comes_back)
{
    struct lab lab = lab_open();
    struct crew_call call;
    due_job job;

    cr_expect_eq(due_topic_limit(lab.q, 0, 1), 0);
    lab_enqueue(&lab, "a", .delay_ns = 0, .more = EXTRA(OF("g")));
    lab_enqueue(&lab, "b", .delay_ns = 0, .more = EXTRA(OF("g")));
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    crew_call_dequeue(&call, lab.q, DUE_FOREVER);
    crew_call_asleep(&call);
    due_job_done(&job);
    cr_expect_eq(crew_call_answer(&call), 0);
    due_job_done(&call.job);
    limiter_close(&lab);
}

LAB_TEST(limiter, is_drained_in_turn)
{
    struct lab lab = lab_open();

    cr_expect_eq(due_topic_limit(lab.q, 0, 1), 0);
    for (int i = 0; i < TEXTS; i++)
        lab_enqueue(&lab, texts[i], .at_ns = 1 + i,
                    .more = EXTRA(.group = texts[i % 2], .group_len = 1));
    lab_turn_to(&lab, 10);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    cr_expect_str_eq(lab_dequeue_all(&lab), "a b c d e f g h");
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), 0);
    limiter_close(&lab);
}

LAB_TEST(limiter, outlives_the_end_of_the_arrival_numbers)
{
    struct lab lab = lab_open();
    due_job job;

    cr_expect_eq(due_topic_limit(lab.q, 0, 2), 0);
    for (int i = 0; i < TEXTS; i++)
        lab_enqueue(&lab, texts[i], .at_ns = 5,
                    .more = EXTRA(.group = texts[i % 2], .group_len = 1));
    lab_turn_to(&lab, 10);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    due__lock_acquire(&lab.q->lock);
    lab.q->arrival = DUE__ARRIVAL_MAX;
    due__lock_release(&lab.q->lock);
    lab_enqueue(&lab, "last", .at_ns = 5, .more = EXTRA(OF("b")));
    cr_expect_eq(lab_stats(&lab).ready, TEXTS);
    limiter_right(&lab);
    cr_expect_str_eq(lab_dequeue_all(&lab), "b d f h last", "who runs holds its group back");
    due_job_done(&job);
    cr_expect_str_eq(lab_dequeue_all(&lab), "c e g");
    limiter_close(&lab);
}

/* Nothing is put into the timeline from here on. */
static void use_up_chunks(struct lab *lab)
{
    due__lock_acquire(&lab->q->lock);
    while (due__pool_take(&lab->q->pool) != NULL)
        ;
    due__lock_release(&lab->q->lock);
}

/* Most of those that wait there were cancelled: who comes, and has no room, sweeps them out. */
static void expect_room_at(bool group)
{
    enum { GONE = 900, STAY = 1000, NEW = 600 };
    static due_id id[GONE];
    struct lab lab = lab_open(.start_ns = 10, .with.proxies = DUE_PROXIES_NEVER,
                              .with.reserve = 2 * (GONE + STAY));
    due_extra of = { DUE_EXTRA_INIT, OF("g") };
    const due_extra *more = group ? &of : NULL;
    int waiting = STAY + NEW;

    if (!group)
        cr_assert_eq(due_topic_limit(lab.q, 0, 1), 0);
    lab_enqueue(&lab, "first", .at_ns = 1, .more = more);
    due_job job = limiter_reserve(&lab);
    for (int i = 0; i < GONE; i++)
        id[i] = lab_enqueue(&lab, "gone", .at_ns = 2, .more = more);
    for (int i = 0; i < STAY; i++)
        lab_enqueue(&lab, "x", .at_ns = 3, .more = more);
    due_poll(lab.q, NULL);
    use_up_chunks(&lab);
    for (int i = 0; i < GONE; i++)
        cr_assert_eq(due_cancel(lab.q, id[i], NULL), 0);
    for (int i = 0; i < NEW; i++) {
        lab_enqueue(&lab, "x", .at_ns = 4, .more = more);
        due_poll(lab.q, NULL);
    }
    limiter_right(&lab);
    cr_expect_eq(lab.q->in_lines, lab.q->limiters.slots);
    for (; waiting > 0; waiting--) {
        cr_assert_eq(due_ack(&job), 0);
        job = limiter_reserve(&lab);
    }
    cr_assert_eq(due_ack(&job), 0);
    limiter_nothing(&lab);
    limiter_close(&lab);
}

Test(limiter, has_room_for_who_comes_when_most_were_cancelled, .timeout = 60)
{
    expect_room_at(false);
    expect_room_at(true);
}

LAB_TEST(limiter, has_room_for_thousands_of_groups)
{
    enum { GROUPS = 5000 };
    struct lab lab = lab_open();
    due_job *jobs = calloc(GROUPS, sizeof *jobs);
    int got = 0;

    cr_assert_not_null(jobs);
    for (int i = 0; i < 3 * GROUPS; i++) {
        int group = i % GROUPS;

        lab_enqueue(&lab, "x", .at_ns = 1 + i,
                    .more = EXTRA(.group = &group, .group_len = sizeof group));
    }
    lab_turn_to(&lab, 3 * GROUPS);
    for (int round = 0; round < 3; round++) {
        got = take_some(lab.q, NULL, 0, jobs, GROUPS, 0);
        cr_expect_eq(got, GROUPS, "%d", got);
        limiter_nothing(&lab);
        limiter_right(&lab);
        for (int i = 0; i < got; i++) {
            cr_expect_eq(jobs[i].deadline_ns, 1 + round * GROUPS + i);
            due_job_done(&jobs[i]);
        }
    }
    cr_expect_eq(lab.q->limiters.groups, 0u);
    free(jobs);
    limiter_close(&lab);
}

/* ---- Memory ---- */

Test(limit, changes_nothing_whichever_allocation_fails, .timeout = 60)
{
    struct lab lab = lab_open();
    struct flaky *memory = &lab.state->memory;
    size_t failed = 0;
    int rc;

    lab_enqueue(&lab, "a", .at_ns = 1);
    lab_enqueue(&lab, "b", .at_ns = 2);
    lab_turn_to(&lab, 5);
    do {
        memory->fail_at = atomic_load(&memory->calls) + failed;
        rc = due_topic_limit(lab.q, 0, 1);
        memory->fail_at = FLAKY_NEVER;
        cr_assert(rc == 0 || rc == DUE_ENOMEM);
        cr_expect_eq(due_poll(lab.q, NULL), rc == 0 ? 1 : 2);
        limiter_right(&lab);
        failed += rc != 0;
    } while (rc != 0);
    cr_expect_geq(failed, 2u);
    limiter_close(&lab);
}

Test(group, changes_nothing_whichever_allocation_fails, .timeout = 60)
{
    struct lab lab = lab_open();
    struct flaky *memory = &lab.state->memory;
    due_spec spec = { DUE_SPEC_INIT, .more = EXTRA(OF("g")), .at_ns = 1 };
    size_t failed = 0;
    int rc;

    do {
        memory->fail_at = atomic_load(&memory->calls) + failed;
        rc = due_enqueue(lab.q, &spec, 0, NULL);
        memory->fail_at = FLAKY_NEVER;
        cr_assert(rc == 0 || rc == DUE_ENOMEM);
        cr_expect_eq(lab_stats(&lab).waiting, (uint64_t)(rc == 0));
        cr_expect_eq(lab.q->limiters.groups, (size_t)(rc == 0));
        limiter_right(&lab);
        failed += rc != 0;
    } while (rc != 0);
    cr_expect_geq(failed, 3u);
    limiter_close(&lab);
}

/* The place is there already, so what fails is what a job of a group needs besides. */
Test(group, leaves_no_payload_behind_that_it_found_no_memory_for, .timeout = 60)
{
    static const char large[1 << 20];
    struct lab lab = lab_open();
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 1, .data = large, .len = sizeof large };
    due_spec grouped = { DUE_SPEC_INIT, .at_ns = 1, .data = large, .len = sizeof large,
                         .more = EXTRA(OF("g")) };
    int rc = DUE_ENOMEM;
    size_t n = 0;

    cr_assert_eq(due_enqueue(lab.q, &spec, 0, NULL), 0);
    size_t live = atomic_load(&lab.state->memory.live);
    for (; rc == DUE_ENOMEM; n++) {
        flaky_fail_in(&lab.state->memory, n);
        rc = due_enqueue(lab.q, &grouped, 0, NULL);
        lab.state->memory.fail_at = FLAKY_NEVER;
        cr_expect(rc == 0 || atomic_load(&lab.state->memory.live) == live, "allocation %zu", n);
    }
    cr_assert_eq(rc, 0);
    cr_expect_geq(n, 4u, "the payload, the group, its table");
    limiter_close(&lab);
}

/* Dead ones in front are dropped so many at a time; whoever is the only one behind them is let
 * through all the same. */
static void let_through_behind(bool group)
{
    for (int dead = (int)DUE__MOVES_MAX - 2; dead <= (int)DUE__MOVES_MAX + 2; dead++) {
        struct lab lab = lab_open();
        int topic = lab_topic(&lab, "slow");
        due_extra more = { DUE_EXTRA_INIT, .group = "g", .group_len = 1 };
        due_spec spec = { DUE_SPEC_INIT, .topic = topic, .more = group ? &more : NULL };
        due_id id[DUE__MOVES_MAX + 2];
        due_job first;

        if (!group)
            cr_assert_eq(due_topic_limit(lab.q, topic, 1), 0);
        lab_enqueue_spec(&lab, "first", spec);
        cr_assert_eq(due_reserve(lab.q, &first, 0), 0);
        for (int i = 0; i < dead; i++)
            id[i] = lab_enqueue_spec(&lab, "dead", spec);
        lab_enqueue_spec(&lab, "last", spec);
        cr_expect_null(lab_dequeue(&lab));
        for (int i = 0; i < dead; i++)
            cr_assert_eq(due_cancel(lab.q, id[i], NULL), 0);
        cr_expect_null(lab_dequeue(&lab));
        cr_assert_eq(due_ack(&first), 0);
        const char *text = lab_dequeue(&lab);
        cr_expect(text != NULL && strcmp(text, "last") == 0, "behind %d", dead);
        limiter_close(&lab);
    }
}

LAB_TEST(limit, lets_the_last_one_through_behind_those_that_were_cancelled)
{
    let_through_behind(false);
}

LAB_TEST(group, lets_the_last_one_through_behind_those_that_were_cancelled)
{
    let_through_behind(true);
}
