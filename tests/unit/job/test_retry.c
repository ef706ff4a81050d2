/* How jobs that fail are tried again, and how often. */
#include "lab/lab.h"
#include "queue/queue.h"
#include "lab/take.h"

#define LEASE 100

static const due_retry twice = { .kind = DUE_RETRY_FIXED, .attempts_max = 2, .delay_ns = 50 };

static due_job reserve(struct lab *lab)
{
    due_job job = { 0 };

    cr_assert_eq(take_leased(lab->q, &job, LEASE, 0), 0);
    return job;
}

/* The only dead job there is. */
static due_dead only_dead(struct lab *lab)
{
    uint64_t cursor = 0;
    due_dead dead[2] = { 0 };

    cr_assert_eq(due_list_dead(lab->q, &cursor, dead, 2), 1);
    return dead[0];
}

LAB_TEST(retry, fixed_delay_between_failures)
{
    struct lab lab = lab_open(.with.retry = { .kind = DUE_RETRY_FIXED, .delay_ns = 50 });

    lab_enqueue(&lab, "tea", .at_ns = 10);
    lab_turn_to(&lab, 10);
    for (uint32_t i = 1; i < 5; i++) {
        due_job job = reserve(&lab);

        cr_expect_eq(job.attempts, i);
        cr_expect_eq(job.failures, i - 1);
        cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
        lab_advance(&lab, 49);
        cr_expect_eq(take_leased(lab.q, &job, LEASE, 0), DUE_EAGAIN);
        lab_advance(&lab, 1);
    }
    lab_close(&lab);
}

LAB_TEST(retry, a_ladder_has_one_attempt_more_than_rungs)
{
    struct lab lab = lab_open();
    const due_retry ladder = { .kind = DUE_RETRY_LADDER, .rungs = 3, .rung_ns = { 10, 200, 50 } };

    lab_enqueue(&lab, "tea", .more = EXTRA(.retry = &ladder));
    for (uint32_t i = 0; i < 3; i++) {
        due_job job = reserve(&lab);

        cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
        lab_advance(&lab, ladder.rung_ns[i] - 1);
        cr_expect_eq(take_leased(lab.q, &job, LEASE, 0), DUE_EAGAIN);
        lab_advance(&lab, 1);
    }
    due_job last = reserve(&lab);
    cr_expect_eq(last.attempts, 4u);
    cr_expect_eq(due_nack(&last, DUE_DELAY_POLICY), 0);
    cr_expect_eq(only_dead(&lab).cause, DUE_CAUSE_ATTEMPTS);
    lab_close(&lab);
}

LAB_TEST(retry, the_named_ladder_is_what_it_says)
{
    struct lab lab = lab_open(.with.retry = DUE_RETRY_LADDER_OF_HOURS);
    const int64_t delay_s[] = { 15, 180, 600, 1800, 1800, 3600, 7200, 21600, 54000 };

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    for (size_t i = 0; i < 9; i++) {
        due_job job = reserve(&lab);

        cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
        lab_advance(&lab, DUE_S(delay_s[i]) - 1);
        cr_expect_eq(take_leased(lab.q, &job, LEASE, 0), DUE_EAGAIN, "rung %zu is too short", i);
        lab_advance(&lab, 1);
    }
    due_job job = reserve(&lab);
    cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
    cr_expect_eq(lab_stats(&lab).dead, 1u);
    lab_close(&lab);
}

/* A delay of jitter is anything between 0 and the bound, and the bound doubles up to the cap. */
LAB_TEST(retry, exponential_with_full_jitter_stays_within_its_bounds)
{
    const due_retry policy = { .kind = DUE_RETRY_EXPONENTIAL, .delay_ns = 1000, .cap_ns = 5000 };
    const int64_t bound[] = { 1000, 2000, 4000, 5000, 5000, 5000 };
    bool low = false;
    bool high = false;

    for (int round = 0; round < 30; round++) {
        struct lab lab = lab_open(.with.retry = policy);

        lab_enqueue(&lab, "tea", .delay_ns = 0);
        for (size_t i = 0; i < 6; i++) {
            due_job job = reserve(&lab);
            int64_t before = due_now(lab.q);

            cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
            int64_t wait = due_next_deadline(lab.q) - before;
            cr_expect(wait >= 0 && wait <= bound[i], "failure %zu: %lld", i, (long long)wait);
            low |= wait < bound[i] / 2;
            high |= wait > bound[i] / 2;
            lab_advance(&lab, bound[i]);
        }
        lab_close(&lab);
    }
    cr_expect(low && high, "no jitter");
}

LAB_TEST(retry, the_jobs_policy_before_the_topics_before_the_queues)
{
    struct lab lab = lab_open(.with.retry = { .kind = DUE_RETRY_FIXED, .delay_ns = 10 });
    int mail = due_topic(lab.q, "mail");
    const due_retry of_topic = { .kind = DUE_RETRY_FIXED, .delay_ns = 20 };
    const due_retry of_job = { .kind = DUE_RETRY_FIXED, .delay_ns = 30 };

    cr_assert_eq(due_topic_retry(lab.q, mail, &of_topic), 0);
    lab_enqueue(&lab, "queue", .delay_ns = 0);
    lab_enqueue(&lab, "topic", .delay_ns = 0, .topic = mail);
    lab_enqueue(&lab, "job", .delay_ns = 0, .topic = mail, .more = EXTRA(.retry = &of_job));
    for (int i = 0; i < 3; i++) {
        due_job job = reserve(&lab);

        cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
    }
    lab_advance(&lab, 10);
    cr_expect_str_eq(lab_dequeue(&lab), "queue");
    cr_expect_null(lab_dequeue(&lab));
    lab_advance(&lab, 10);
    cr_expect_str_eq(lab_dequeue(&lab), "topic");
    cr_expect_null(lab_dequeue(&lab));
    lab_advance(&lab, 10);
    cr_expect_str_eq(lab_dequeue(&lab), "job");
    lab_close(&lab);
}

/* The same content, whatever stands in fields of no meaning, is one policy; and one more than there
 * is room for is refused, which costs nothing of those that are known. */
LAB_TEST(retry, equal_policies_are_one_and_there_are_65535)
{
    struct lab lab = lab_open();
    due_retry policy = { .kind = DUE_RETRY_FIXED };
    due_spec spec = { DUE_SPEC_INIT, .more = EXTRA(.retry = &policy) };

    for (int i = 0; i < UINT16_MAX; i++) {
        policy.delay_ns = i;
        cr_assert_eq(due_topic_retry(lab.q, 0, &policy), 0, "%d", i);
    }
    policy.delay_ns = UINT16_MAX;
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_ELIMIT);
    cr_expect_eq(due_topic_retry(lab.q, 0, &policy), DUE_ELIMIT);
    policy.rung_ns[3] = 1; /* of no meaning here */
    for (int i = 0; i < UINT16_MAX; i += 4095) {
        policy.delay_ns = i;
        cr_assert_eq(due_topic_retry(lab.q, 0, &policy), 0, "%d", i);
        cr_assert_eq(due_enqueue(lab.q, &spec, 0, NULL), 0, "%d", i);
    }
    lab_close(&lab);
}

/* Each job fails once, and comes again after its own delay. */
LAB_TEST(retry, a_thousand_policies_say_each_its_own)
{
    enum { N = 1000 };
    struct lab lab = lab_open();
    due_retry policy = { .kind = DUE_RETRY_FIXED };
    int64_t start = due_now(lab.q);
    due_job job;

    for (int i = N; i-- > 0;) {
        policy.delay_ns = 10 * (i + 1);
        due_spec spec = { DUE_SPEC_INIT, .data = &i, .len = sizeof i,
                          .more = EXTRA(.retry = &policy) };
        cr_assert_eq(due_enqueue(lab.q, &spec, 0, NULL), 0);
    }
    for (int i = 0; i < N; i++) {
        cr_assert_eq(due_reserve(lab.q, &job, 0), 0);
        cr_assert_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
    }
    for (int i = 0; i < N; i++) {
        int which;
        cr_assert_eq(due_reserve(lab.q, &job, 0), DUE_EAGAIN, "early");
        lab_turn_to(&lab, start + 10 * (i + 1));
        cr_assert_eq(due_reserve(lab.q, &job, 0), 0);
        memcpy(&which, job.data, sizeof which);
        cr_assert_eq(which, i);
        cr_assert_eq(due_ack(&job), 0);
    }
    lab_close(&lab);
}

static uint16_t number_of(struct lab *lab, due_retry r)
{
    uint16_t number = UINT16_MAX;

    cr_assert_eq(due__retry_number(lab->q, &r, &number), 0);
    return number;
}

/* What has no meaning for a kind tells no two apart. */
LAB_TEST(retry, equal_policies_have_one_number_and_others_another)
{
    const due_retry some[] = {
        { .kind = DUE_RETRY_FIXED },
        { .kind = DUE_RETRY_FIXED, .delay_ns = 1 },
        { .kind = DUE_RETRY_FIXED, .attempts_max = 1 },
        { .kind = DUE_RETRY_EXPONENTIAL },
        { .kind = DUE_RETRY_EXPONENTIAL, .delay_ns = 1 },
        { .kind = DUE_RETRY_EXPONENTIAL, .delay_ns = 1, .cap_ns = 2 },
        { .kind = DUE_RETRY_EXPONENTIAL, .delay_ns = 1, .cap_ns = 2, .attempts_max = 3 },
        { .kind = DUE_RETRY_LADDER, .rungs = 1, .rung_ns = { 5 } },
        { .kind = DUE_RETRY_LADDER, .rungs = 2, .rung_ns = { 5 } },
        { .kind = DUE_RETRY_LADDER, .rungs = 2, .rung_ns = { 5, 6 } },
        { .kind = DUE_RETRY_LADDER, .rungs = 2, .rung_ns = { 5, 6 }, .attempts_max = 4 },
    };
    enum { SOME = sizeof some / sizeof some[0] };
    struct lab lab = lab_open();

    cr_expect_eq(number_of(&lab, (due_retry){ .kind = DUE_RETRY_INHERIT, .delay_ns = 4 }), 0u);
    for (uint16_t i = 0; i < SOME; i++)
        cr_expect_eq(number_of(&lab, some[i]), i + 1u, "%d", i);
    for (uint16_t i = 0; i < SOME; i++) {
        cr_expect_eq(number_of(&lab, some[i]), i + 1u, "%d, once more", i);
        const due_retry *named = due__retry_named(lab.q, (uint16_t)(i + 1));
        cr_expect_eq(named->kind, some[i].kind);
        cr_expect_eq(named->delay_ns, some[i].delay_ns);
    }
    due_retry same = some[1];
    same.cap_ns = 7;
    same.rungs = 1;
    same.rung_ns[0] = 8;
    cr_expect_eq(number_of(&lab, same), 2u);
    same = some[7];
    same.delay_ns = same.cap_ns = same.rung_ns[1] = 9;
    same.attempts_max = 2; /* one more than rungs, as it is without */
    cr_expect_eq(number_of(&lab, same), 8u);
    lab_close(&lab);
}

/* No delay is a delay, and a ladder may have one rung, or all there may be. */
LAB_TEST(retry, what_is_at_the_edge_of_sense_is_taken)
{
    struct lab lab = lab_open();
    const due_retry right[] = {
        { .kind = DUE_RETRY_INHERIT },
        { .kind = DUE_RETRY_LADDER, .rungs = 1 },
        { .kind = DUE_RETRY_LADDER, .rungs = 2, .rung_ns = { 0, 1 } },
        { .kind = DUE_RETRY_LADDER, .rungs = 2, .rung_ns = { 1, 0, -1 } },
        { .kind = DUE_RETRY_LADDER, .rungs = DUE_RUNGS_MAX, .rung_ns = { INT64_MAX } },
        { .kind = DUE_RETRY_FIXED },
        { .kind = DUE_RETRY_EXPONENTIAL },
        { .kind = DUE_RETRY_EXPONENTIAL, .delay_ns = INT64_MAX, .cap_ns = INT64_MAX },
    };

    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        due_spec spec = { DUE_SPEC_INIT, .more = EXTRA(.retry = &right[i]) };

        cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), 0, "%zu", i);
        cr_expect_eq(due_topic_retry(lab.q, 0, &right[i]), 0, "%zu", i);
    }
    lab_close(&lab);
}

LAB_TEST(retry, what_makes_no_sense_is_refused)
{
    struct lab lab = lab_open();
    const due_retry wrong[] = {
        { .kind = DUE_RETRY_LADDER },
        { .kind = DUE_RETRY_LADDER, .rungs = DUE_RUNGS_MAX + 1 },
        { .kind = DUE_RETRY_LADDER, .rungs = 1, .rung_ns = { -1 } },
        { .kind = DUE_RETRY_FIXED, .delay_ns = -1 },
        { .kind = DUE_RETRY_EXPONENTIAL, .cap_ns = -1 },
        { .kind = (enum due_retry_kind)9 },
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        due_spec spec = { DUE_SPEC_INIT, .more = EXTRA(.retry = &wrong[i]) };
        due_options options = { DUE_OPTIONS_INIT, .retry = wrong[i] };
        due_queue *q;

        cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_EINVAL, "%zu", i);
        cr_expect_eq(due_topic_retry(lab.q, 0, &wrong[i]), DUE_EINVAL, "%zu", i);
        cr_expect_eq(due_open(&q, &options, NULL), DUE_EINVAL, "%zu", i);
    }
    cr_expect_eq(due_topic_retry(lab.q, 7, &twice), DUE_EINVAL);
    due_job none = { 0 };
    cr_expect_eq(due_nack(&none, -2), DUE_EINVAL);
    cr_expect_eq(due_bury(&none, NULL), DUE_EINVAL);
    lab_close(&lab);
}

/* A limit that nobody comes to is counted like any other. */
LAB_TEST(retry, the_largest_limits_are_limits)
{
    for (uint32_t below = 0; below < 3; below++) {
        const due_retry most = { .kind = DUE_RETRY_FIXED, .attempts_max = UINT32_MAX - below };
        struct lab lab = lab_open(.start_ns = 5);
        due_job job;

        lab_enqueue(&lab, "tea", .at_ns = 5, .more = EXTRA(.retry = &most));
        for (uint32_t i = 1; i <= 4; i++) {
            cr_assert_eq(take_leased(lab.q, &job, 50, 0), 0);
            cr_expect_eq(job.attempts, i, "%u: %u", below, job.attempts);
            cr_expect_eq(job.failures, i - 1);
            if (i % 2) {
                cr_expect_eq(due_nack(&job, 0), 0);
            } else {
                lab_advance(&lab, 50);
                due_job_done(&job);
            }
        }
        cr_expect_eq(lab_stats(&lab).dead, 0u);
        lab_close(&lab);
    }
}
