/* One queue for many processes: of the jobs of a group one is let through at a time, of all of
 * them.
 */
#include "due/metrics.h"
#include "lab/crew.h"
#include "lab/mall.h"
#include "queue/extras.h"

#define LEASE   1000
#define GROUP() EXTRA(.group = "g", .group_len = 1)

static due_id put(struct mall *m, size_t i, const char *text, int64_t at_ns)
{
    return lab_enqueue(&m->lab[i], text, .at_ns = at_ns, .flags = DUE_SPEC_AT, .more = GROUP());
}

static int note_nothing(void *ctx, const due_claimed *job)
{
    (void)ctx;
    (void)job;
    return 0;
}

/* Another process, which comes for this only, is told that nothing is due. */
static bool nothing_comes(struct mall *m)
{
    struct due_claim claim = { .need = 9, .lease_ns = LEASE };
    due_store *s = memory_store_new(m->disk);
    const struct due_shared_verbs *verbs = s->verbs->shared;
    int64_t until_ns = crew_now_ns() + DUE_S(5);
    struct due_store_open how = {
        .name = "q", .until_ns = until_ns, .now = mall_now, .clock = m->clock
    };
    struct due_store_info info;
    struct due_exchange answer;
    due_error error;

    cr_assert_eq(verbs->join(s, &how, &info, &error), 0);
    cr_assert_eq(
        verbs->exchange(s, NULL, 0, 1, NULL, &claim, note_nothing, NULL, &answer, until_ns), 0);
    verbs->leave(s, until_ns);
    s->verbs->free(s);
    return answer.claimed == 0 && !answer.more;
}

static void expect_next(struct mall *m, size_t i, const char *text, due_job *job)
{
    cr_assert_eq(mall_reserve(m, i, job, LEASE), 0);
    cr_expect(job->len == strlen(text) && memcmp(job->data, text, job->len) == 0, "%.*s, not %s",
              (int)job->len, (const char *)job->data, text);
}

MALL_TEST(share_groups, run_one_after_another_whoever_has_them)
{
    struct mall m = mall_make(3);
    due_job job;
    due_job other;

    for (int i = 0; i < 4; i++)
        put(&m, (size_t)i % 3, (const char *[]){ "a", "b", "c", "d" }[i], i);
    lab_enqueue(&m.lab[0], "free", .at_ns = 5);
    mall_turn_to(&m, 10);
    for (int i = 0; i < 4; i++) {
        expect_next(&m, (size_t)i % 3, (const char *[]){ "a", "b", "c", "d" }[i], &job);
        if (i == 0)
            expect_next(&m, 0, "free", &other);
        cr_expect(nothing_comes(&m));
        cr_expect_eq(due_ack(&job), 0);
    }
    cr_expect_eq(due_ack(&other), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

/* The one who waits sleeps until another process has ended its job. */
MALL_TEST(share_groups, who_waits_gets_the_next_when_one_ends)
{
    struct mall m = mall_make(2);
    struct crew_call c;
    due_job job;

    put(&m, 0, "a", 0);
    put(&m, 0, "b", 0);
    expect_next(&m, 0, "a", &job);
    crew_call_reserve(&c, m.lab[1].q, NULL, 0, LEASE, DUE_FOREVER);
    crew_call_asleep(&c);
    cr_expect_eq(due_ack(&job), 0);
    cr_assert_eq(crew_call_answer(&c), 0);
    cr_expect_eq(due_ack(&c.job), 0);
    mall_close(&m);
}

MALL_TEST(share_groups, one_that_waits_to_be_tried_again_is_overtaken_by_nobody)
{
    struct mall m = mall_make(2);
    due_job job;

    put(&m, 0, "a", 1);
    put(&m, 0, "b", 2);
    mall_turn_to(&m, 5);
    expect_next(&m, 0, "a", &job);
    cr_expect_eq(due_nack(&job, 20), 0);
    put(&m, 1, "earlier", 0);
    cr_expect(nothing_comes(&m));
    mall_turn_to(&m, 25);
    expect_next(&m, 1, "a", &job);
    cr_expect_eq(job.failures, 1u);
    cr_expect_eq(due_snooze(&job, 10), 0);
    cr_expect(nothing_comes(&m));
    mall_turn_to(&m, 35);
    expect_next(&m, 0, "a", &job);
    cr_expect_eq(due_nack(&job, 0), 0); /* at its own time again */
    expect_next(&m, 1, "a", &job);
    cr_expect_eq(due_ack(&job), 0);
    expect_next(&m, 0, "earlier", &job);
    cr_expect_eq(due_ack(&job), 0);
    expect_next(&m, 1, "b", &job);
    cr_expect_eq(due_ack(&job), 0);
    mall_close(&m);
}

/* Due at the time of its retry, which is its deadline: it is no other time. */
MALL_TEST(share_groups, one_given_back_at_once_keeps_its_pass)
{
    struct mall m = mall_make(2);
    due_job job;

    put(&m, 0, "b", 0);
    mall_turn_to(&m, 0);
    expect_next(&m, 0, "b", &job);
    put(&m, 1, "a", 0);
    cr_expect_eq(due_nack(&job, 0), 0);
    expect_next(&m, 1, "b", &job);
    cr_expect_eq(due_ack(&job), 0);
    expect_next(&m, 1, "a", &job);
    cr_expect_eq(due_ack(&job), 0);
    mall_close(&m);
}

/* Each of them lets the next through. */
MALL_TEST(share_groups, whatever_ends_a_job_lets_the_next_through)
{
    struct mall m = mall_make(2);
    due_job job;
    due_job next;

    for (int way = 0; way < 7; way++) {
        due_id id = put(&m, 0, "first", 0);
        due_id last = put(&m, 0, "next", 0);

        if (way == 0)
            cr_assert_eq(mall_take(&m, 0, &job), 0);
        else
            expect_next(&m, 0, "first", &job);
        if (way > 2 && way != 6) {
            cr_expect_eq(due_nack(&job, 1000), 0);
            cr_expect(nothing_comes(&m));
        }
        switch (way) {
        case 0:
            due_job_done(&job);
            break;
        case 1:
            cr_expect_eq(due_ack(&job), 0);
            break;
        case 2:
            cr_expect_eq(due_bury(&job, "no"), 0);
            break;
        case 3:
            cr_expect_eq(due_cancel(m.lab[1].q, id, NULL), 0);
            break;
        case 4:
            cr_expect_eq(due_reschedule(m.lab[1].q, id, due_now(m.lab[1].q) + 5000), 0);
            break;
        case 5:
            cr_expect_eq(due_amend(m.lab[1].q, id, &(due_spec){ DUE_SPEC_INIT, .delay_ns = 5000 },
                                   DUE_SET_TIME),
                         0);
            break;
        default: /* its lease was let lapse, and who has it then ends it */
            mall_turn_to(&m, due_now(m.lab[1].q) + 2 * LEASE);
            expect_next(&m, 1, "first", &next);
            cr_expect_eq(due_ack(&job), DUE_ESTALE);
            due_job_done(&job);
            cr_expect_eq(due_ack(&next), 0);
        }
        expect_next(&m, 1, "next", &next);
        cr_expect_eq(due_ack(&next), 0);
        (void)due_cancel(m.lab[0].q, id, NULL);
        cr_expect_eq(due_cancel(m.lab[0].q, last, NULL), DUE_ENOENT);
        cr_expect_eq(memory_disk_jobs(m.disk), 0u, "%d", way);
    }
    mall_close(&m);
}

/* It is in the store no more, though its bytes are lent. */
MALL_TEST(share_groups, a_dequeue_ends_a_job_and_the_next_may_come_to_the_same_process)
{
    static const char *const texts[] = { "a", "b", "c" };
    struct mall m = mall_make(2);
    due_job jobs[3];

    for (int i = 0; i < 3; i++)
        put(&m, 1, texts[i], 0);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(mall_take(&m, (size_t)i / 2, &jobs[i]), 0);
    cr_expect_eq(lab_stats(&m.lab[0]).passed + lab_stats(&m.lab[0]).kept_back, 0u);
    for (int i = 0; i < 3; i++)
        cr_expect_str_eq(lab_text(&m.lab[i / 2], &jobs[i]), texts[i]);
    mall_close(&m);
}

/* Its process is gone, and its lease over. */
MALL_TEST(share_groups, the_job_of_a_process_that_died_comes_again_before_the_others)
{
    struct mall m = mall_make(3);
    due_job job;

    put(&m, 0, "a", 0);
    put(&m, 0, "b", 0);
    expect_next(&m, 2, "a", &job);
    mall_die(&m, 2);
    mall_turn_to(&m, 2 * LEASE);
    due_job again;
    expect_next(&m, 1, "a", &again);
    cr_expect(nothing_comes(&m));
    cr_expect_eq(due_ack(&again), 0);
    expect_next(&m, 0, "b", &again);
    cr_expect_eq(due_ack(&again), 0);
    due_job_done(&job);
    mall_close(&m);
}

MALL_TEST(share_groups, a_round_that_ends_lets_the_next_through)
{
    struct mall m = mall_make(2);
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], "round", .at_ns = 1,
                            .more = EXTRA(.group = "g", .group_len = 1, .every_ns = 10));
    put(&m, 0, "b", 2);
    put(&m, 0, "c", 12);
    mall_turn_to(&m, 5);
    expect_next(&m, 0, "round", &job);
    cr_expect(nothing_comes(&m));
    cr_expect_eq(due_ack(&job), 0);
    expect_next(&m, 1, "b", &job);
    mall_turn_to(&m, 15);
    cr_expect(nothing_comes(&m), "the round is due, and kept back");
    cr_expect_eq(due_ack(&job), 0);
    expect_next(&m, 0, "round", &job);
    cr_expect_eq(job.deadline_ns, 11);
    cr_expect_eq(due_ack(&job), 0);
    expect_next(&m, 1, "c", &job);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(due_cancel(m.lab[1].q, id, NULL), 0);
    mall_close(&m);
}

/* What is kept back is there for all that name jobs, and those that look at them. */
MALL_TEST(share_groups, what_is_kept_back_is_found_counted_changed_and_cleared)
{
    struct mall m = mall_make(2);
    due_queue *q = m.lab[1].q;
    struct due_queue_census c;
    due_info info;
    due_job job;
    due_id id[5];

    for (int i = 0; i < 5; i++)
        id[i] = put(&m, 0, (const char *[]){ "a", "b", "c", "d", "e" }[i], i + 1);
    mall_turn_to(&m, 10);
    expect_next(&m, 0, "a", &job);
    cr_expect_eq(due_find(q, id[1], &info), 0);
    cr_expect_eq(info.deadline_ns, 2);
    cr_assert_eq(due_census(q, DUE_ALL_TOPICS, &c, DUE_S(5)), 0);
    cr_expect(c.ready == 4 && c.leased == 1 && c.delayed == 0 && c.oldest_ns == 2);
    cr_expect_eq(due_reschedule(q, id[1], 8), 0);
    cr_expect_eq(due_promote(q, id[3]), 0);
    cr_expect_eq(
        due_amend(q, id[2], &(due_spec){ DUE_SPEC_INIT, .data = "C", .len = 1 }, DUE_SET_DATA), 0);
    cr_expect_eq(due_cancel(q, id[4], NULL), 0);
    cr_expect(nothing_comes(&m));
    cr_expect_eq(due_ack(&job), 0);
    expect_next(&m, 1, "C", &job);
    cr_expect_eq(due_ack(&job), 0);
    expect_next(&m, 1, "b", &job);
    m.lab[0].state->own_discard = true;
    uint64_t cleared = 0;
    cr_expect_eq(due_clear(m.lab[0].q, DUE_ALL_TOPICS, &cleared), 0);
    cr_expect_eq(cleared, 1u, "the one that is kept back");
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

/* The job that has the key gets other content, wherever it stands in its group. */
MALL_TEST(share_groups, a_key_leads_to_a_job_that_is_kept_back)
{
    struct mall m = mall_make(2);
    due_job job;
    due_id id;

    put(&m, 0, "a", 0);
    due_spec spec = { DUE_SPEC_INIT, .data = "b", .len = 1,
                      .more = EXTRA(.group = "g", .group_len = 1, .key = "k", .key_len = 1) };
    cr_assert_eq(due_enqueue(m.lab[0].q, &spec, 0, &id), 0);
    expect_next(&m, 0, "a", &job);
    spec.data = "B";
    spec.more =
        EXTRA(.group = "g", .group_len = 1, .key = "k", .key_len = 1, .on_key = DUE_KEY_REPLACE);
    cr_assert_eq(due_enqueue(m.lab[1].q, &spec, 0, &id), 0);
    cr_expect(nothing_comes(&m));
    cr_expect_eq(due_ack(&job), 0);
    expect_next(&m, 1, "B", &job);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

/* What this process has claimed ahead is its own to order, and goes back with the pass. */
MALL_TEST(share_groups, what_is_claimed_ahead_goes_back_and_comes_elsewhere)
{
    struct mall m = mall_make(1);
    size_t ahead = mall_join(&m, (struct lab_options){ .with = { .prefetch_max = 64 } });
    due_job jobs[3];

    for (int i = 0; i < 3; i++)
        put(&m, 0, (const char *[]){ "a", "b", "c" }[i], i);
    lab_enqueue(&m.lab[0], "free", .at_ns = 9);
    mall_turn_to(&m, 10);
    expect_next(&m, ahead, "a", &jobs[0]);
    cr_expect_eq(due_ack(&jobs[0]), 0);
    cr_expect_eq(due_close(m.lab[ahead].q, DUE_CLOSE_DISCARD, DUE_S(5)), 0);
    expect_next(&m, 0, "b", &jobs[0]);
    expect_next(&m, 0, "free", &jobs[1]);
    cr_expect_eq(due_ack(&jobs[0]), 0);
    expect_next(&m, 0, "c", &jobs[0]);
    cr_expect_eq(due_ack(&jobs[0]), 0);
    cr_expect_eq(due_ack(&jobs[1]), 0);
    mall_close(&m);
}
