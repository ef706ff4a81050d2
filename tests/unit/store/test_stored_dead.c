/* Stored jobs that fail, die, come back and go for good: what a crash leaves of that. */
#include <stdio.h>

#include "lab/redis/stored_both.h"

static const due_retry twice = { .kind = DUE_RETRY_FIXED, .attempts_max = 2, .delay_ns = 50 };

/* ---- Retries ---- */

BOTH_TEST(stored_retry, a_policy_of_its_own_comes_back_with_the_job)
{
    struct shop s = shop_new(where, AT(10));

    lab_enqueue(&s.lab, "tea", .more = EXTRA(.retry = &twice));
    due_job job = reserve(&s);
    cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
    shop_crash(&s, AT(10));
    cr_expect_eq(try_reserve(&s), DUE_EAGAIN);
    lab_turn_to(&s.lab, 59);
    cr_expect_eq(try_reserve(&s), DUE_EAGAIN, "its delay was forgotten");
    lab_turn_to(&s.lab, 60);
    job = reserve(&s);
    cr_expect_eq(job.attempts, 2u);
    cr_expect_eq(job.failures, 1u);
    cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
    cr_expect_eq(only_dead(&s).cause, DUE_CAUSE_ATTEMPTS);
    shop_crash(&s, AT(1000));
    due_dead dead = only_dead(&s);
    cr_expect_eq(dead.cause, DUE_CAUSE_ATTEMPTS);
    cr_expect_eq(dead.attempts, 2u);
    cr_expect_eq(dead.failures, 2u);
    cr_expect_eq(dead.died_ns, 60);
    cr_expect_eq(dead.deadline_ns, 10);
    cr_expect_eq(try_reserve(&s), DUE_EAGAIN);
    shop_close(&s);
}

BOTH_TEST(stored_retry, every_kind_of_policy_comes_back)
{
    due_retry ladder = { .kind = DUE_RETRY_LADDER, .rungs = DUE_RUNGS_MAX };
    const due_retry doubling = {
        .kind = DUE_RETRY_EXPONENTIAL, .attempts_max = 2, .delay_ns = 5, .cap_ns = 9
    };
    struct shop s = shop_new(where, AT(0));

    for (int i = 0; i < DUE_RUNGS_MAX; i++)
        ladder.rung_ns[i] = 1000 + i;
    lab_enqueue(&s.lab, "ladder", .more = EXTRA(.retry = &ladder));
    shop_crash(&s, AT(0));
    for (int i = 0; i < DUE_RUNGS_MAX; i++) {
        due_job job = reserve(&s);
        cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
        lab_advance(&s.lab, 999 + i);
        cr_expect_eq(try_reserve(&s), DUE_EAGAIN, "rung %d is too short", i);
        lab_advance(&s.lab, 1);
    }
    due_job job = reserve(&s);
    cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
    cr_expect_eq(lab_stats(&s.lab).dead, 1u);
    lab_enqueue(&s.lab, "doubling", .more = EXTRA(.retry = &doubling));
    int64_t now = due_now(s.lab.q);
    shop_crash(&s, AT(now));
    job = reserve(&s);
    cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
    lab_advance(&s.lab, 9);
    job = reserve(&s);
    cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
    cr_expect_eq(lab_stats(&s.lab).dead, 2u);
    shop_close(&s);
}

/* ---- Attempts ---- */

BOTH_TEST(stored_attempts, are_counted_before_the_hand_over)
{
    struct shop s = shop_new(where, AT(10));

    lab_enqueue(&s.lab, "poison", .more = EXTRA(.retry = &twice));
    lab_enqueue(&s.lab, "other", .delay_ns = 1);
    for (uint32_t i = 1; i <= 2; i++) {
        due_job job = reserve(&s);
        cr_expect_eq(job.attempts, i);
        due_job_done(&job); /* the program dies of it */
        shop_crash(&s, AT(10));
    }
    cr_expect_eq(lab_stats(&s.lab).dead, 0u, "it dies when it would be handed out");
    cr_expect_eq(try_reserve(&s), DUE_EAGAIN);
    due_dead dead = only_dead(&s);
    cr_expect_eq(dead.cause, DUE_CAUSE_ATTEMPTS);
    cr_expect_eq(dead.attempts, 2u);
    shop_crash(&s, AT(11));
    cr_expect_eq(only_dead(&s).attempts, 2u);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "other");
    shop_close(&s);
}

BOTH_TEST(stored_attempts, are_not_counted_at_once_if_that_is_not_wanted)
{
    struct shop s = shop_new(where, AT(10, .with.attempts_lazy = 1));

    lab_enqueue(&s.lab, "tea", .more = EXTRA(.retry = &twice));
    for (int i = 0; i < 4; i++) {
        due_job job = reserve(&s);
        cr_expect_eq(job.attempts, 1u);
        due_job_done(&job);
        shop_crash(&s, AT(10, .with.attempts_lazy = 1));
    }
    due_job job = reserve(&s);
    cr_expect_eq(due_nack(&job, 0), 0); /* a nack counts */
    shop_crash(&s, AT(10, .with.attempts_lazy = 1));
    job = reserve(&s);
    cr_expect_eq(job.attempts, 2u);
    cr_expect_eq(job.failures, 1u);
    due_job_done(&job);
    shop_close(&s);
}

BOTH_TEST(stored_attempts, without_a_limit_cost_no_change)
{
    struct shop s = shop_new(where, AT(10));

    lab_enqueue(&s.lab, "tea", .delay_ns = 0);
    uint64_t before = lab_stats(&s.lab).batches;
    due_job job = reserve(&s);
    cr_expect_eq(lab_stats(&s.lab).batches, before);
    due_job_done(&job);
    shop_close(&s);
}

/* ---- Burying, and back ---- */

BOTH_TEST(stored_dead, a_buried_job_stays_dead_until_it_is_kicked)
{
    struct shop s = shop_new(where, AT(10));
    int mail = lab_topic(&s.lab, "mail");
    due_id id = lab_enqueue(&s.lab, "letter", .topic = mail, .priority = 9, .delay_ns = 0);

    due_job job = reserve(&s);
    cr_expect_eq(due_bury(&job, "no such address"), 0);
    shop_crash(&s, AT(20));
    due_dead dead = only_dead(&s);
    cr_expect(due_id_equal(dead.id, id));
    cr_expect_str_eq(dead.reason, "no such address");
    cr_expect_eq(dead.cause, DUE_CAUSE_BURIED);
    cr_expect_eq(dead.died_ns, 10);
    cr_expect_eq(dead.attempts, 1u);
    cr_expect_eq(dead.priority, 9);
    cr_expect_eq(dead.len, 6u);
    cr_expect_str_eq(due_topic_name(s.lab.q, dead.topic), "mail");
    cr_expect_eq(try_reserve(&s), DUE_EAGAIN);
    cr_expect_eq(due_kick(s.lab.q, id), 0);
    cr_expect_eq(due_kick(s.lab.q, id), DUE_ENOENT);
    shop_crash(&s, AT(20));
    cr_expect_eq(lab_stats(&s.lab).dead, 0u);
    job = reserve(&s);
    cr_expect_eq(job.attempts, 1u);
    cr_expect_eq(job.failures, 0u);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(shop_stored(&s), 0u);
    shop_close(&s);
}

BOTH_TEST(stored_dead, are_kicked_and_cleared_by_topic)
{
    enum { EACH = 300 }; /* more than is sent at once */
    struct shop s = shop_new(where, AT(10));
    int tea = lab_topic(&s.lab, "tea");
    int egg = lab_topic(&s.lab, "egg");
    uint64_t n;

    for (int i = 0; i < 2 * EACH; i++)
        lab_enqueue(&s.lab, "x", .topic = i % 2 == 0 ? tea : egg, .more = EXTRA(.ttl_ns = 5));
    lab_turn_to(&s.lab, 15);
    cr_expect_eq(try_reserve(&s), DUE_EAGAIN);
    cr_expect_eq(lab_stats(&s.lab).dead, 2 * EACH);
    shop_crash(&s, AT(20));
    cr_expect_eq(lab_stats(&s.lab).dead, 2 * EACH);
    tea = lab_topic(&s.lab, "tea");
    cr_expect_eq(due_kick_all(s.lab.q, tea, &n), 0);
    cr_expect_eq(n, EACH);
    cr_expect_eq(due_clear_dead(s.lab.q, DUE_ALL_TOPICS, &n), 0);
    cr_expect_eq(n, EACH);
    shop_crash(&s, AT(1000));
    cr_expect_eq(lab_stats(&s.lab).dead, 0u);
    int taken = 0;
    for (due_job job; lab_take(&s.lab, &job) == 0; taken++) {
        cr_expect_str_eq(due_topic_name(s.lab.q, job.topic), "tea", "its limit was not lifted");
        due_job_done(&job);
    }
    cr_expect_eq(taken, EACH);
    cr_expect_eq(shop_stored(&s), 0u);
    shop_close(&s);
}

BOTH_TEST(stored_dead, are_cancelled_for_good)
{
    struct shop s = shop_new(where, AT(10));
    due_id one = lab_enqueue(&s.lab, "one", .delay_ns = 0);
    due_id two = lab_enqueue(&s.lab, "two", .delay_ns = 0);

    for (int i = 0; i < 2; i++) {
        due_job job = reserve(&s);
        cr_expect_eq(due_bury(&job, NULL), 0);
    }
    cr_expect_eq(due_cancel(s.lab.q, one, NULL), 0);
    due_job job;
    cr_expect_eq(due_cancel(s.lab.q, two, &job), 0);
    cr_expect_str_eq(lab_text(&s.lab, &job), "two");
    cr_expect_eq(due_cancel(s.lab.q, two, NULL), DUE_ENOENT);
    cr_expect_eq(shop_stored(&s), 0u);
    shop_crash(&s, AT(10));
    cr_expect_eq(lab_stats(&s.lab).dead, 0u);
    shop_close(&s);
}

BOTH_TEST(stored_dead, go_for_good_when_their_time_is_over)
{
    struct shop s = shop_new(where, AT(10, .with.dead_keep_ns = 100));

    for (int i = 0; i < 3; i++) {
        lab_enqueue(&s.lab, "x", .delay_ns = 0);
        due_job job = reserve(&s);
        cr_expect_eq(due_bury(&job, NULL), 0);
        lab_advance(&s.lab, 20); /* they die at 10, 30 and 50 */
    }
    lab_turn_to(&s.lab, 109);
    due_poll(s.lab.q, NULL);
    cr_expect_eq(lab_stats(&s.lab).dead, 3u);
    lab_turn_to(&s.lab, 110);
    due_poll(s.lab.q, NULL);
    until_stored(&s, 2);
    cr_expect_eq(lab_stats(&s.lab).dead, 2u);
    shop_crash(&s, AT(131, .with.dead_keep_ns = 100)); /* one's time has passed meanwhile */
    lab_advance(&s.lab, 1);
    due_poll(s.lab.q, NULL);
    until_stored(&s, 1);
    cr_expect_eq(only_dead(&s).died_ns, 50);
    lab_turn_to(&s.lab, 150);
    due_poll(s.lab.q, NULL);
    until_stored(&s, 0);
    cr_expect_eq(lab_stats(&s.lab).dead, 0u);
    shop_close(&s);
}

static void bury_next(struct shop *s, int number, due_id *id)
{
    char text[12];

    snprintf(text, sizeof text, "%d", number);
    due_id its = lab_enqueue(&s->lab, text, .delay_ns = 0);
    if (id != NULL)
        *id = its;
    due_job job = reserve(s);
    cr_assert_eq(due_bury(&job, NULL), 0);
    lab_advance(&s->lab, 1);
}

/* Also among very many, if it is one of the first or the last; and those beside it, too. */
Test(stored_dead, are_as_old_as_they_were_when_they_are_changed, .timeout = 60)
{
    enum { MOST = 600, MORE = 230 };
    static const int changed[] = { 0, 100, 200, 599 };
    struct shop s = shop_new(IN_MEMORY, AT(10, .with.dead_max = MOST));
    due_id id[MOST];
    char text[12];

    for (int i = 0; i < MOST; i++)
        bury_next(&s, i, &id[i]);
    for (size_t k = 0; k < sizeof changed / sizeof changed[0]; k++) {
        snprintf(text, sizeof text, "%d", changed[k]);
        cr_assert_eq(due_update(s.lab.q, id[changed[k]], text, strlen(text)), 0);
    }
    cr_assert_eq(due_cancel(s.lab.q, id[199], NULL), 0);
    cr_assert_eq(due_cancel(s.lab.q, id[201], NULL), 0);
    for (int i = MOST; i < MOST + 2; i++) /* there is room for two */
        bury_next(&s, i, NULL);
    for (int i = 0, next = 0; i < MORE; i++, next++) {
        bury_next(&s, MOST + 2 + i, NULL);
        until_stored(&s, MOST);
        next += next == 199 || next == 201;
        snprintf(text, sizeof text, "%d", next);
        cr_assert_str_eq(s.lab.state->discarded_text, text, "not the oldest");
    }
    shop_close(&s);
}

BOTH_TEST(stored_dead, are_no_more_than_may_be_kept)
{
    struct shop s = shop_new(where, AT(10));

    for (int i = 0; i < 5; i++) {
        lab_enqueue(&s.lab, "x", .delay_ns = 0);
        due_job job = reserve(&s);
        cr_expect_eq(due_bury(&job, NULL), 0);
        lab_advance(&s.lab, 1);
    }
    shop_crash(&s, AT(100, .with.dead_max = 2));
    due_poll(s.lab.q, NULL);
    until_stored(&s, 2);
    uint64_t cursor = 0;
    due_dead dead[3];
    cr_assert_eq(due_list_dead(s.lab.q, &cursor, dead, 3), 2);
    cr_expect_geq(dead[0].died_ns, 13, "the oldest should have gone");
    cr_expect_geq(dead[1].died_ns, 13, "the oldest should have gone");
    shop_close(&s);
}

/* ---- Time limits, headers ---- */

BOTH_TEST(stored_limits, hold_after_a_crash)
{
    struct shop s = shop_new(where, AT(10));

    lab_enqueue(&s.lab, "ttl", .at_ns = 20, .more = EXTRA(.ttl_ns = 30));
    lab_enqueue(&s.lab, "expires", .at_ns = 21, .more = EXTRA(.expires_ns = 50));
    lab_enqueue(&s.lab, "neither", .at_ns = 22);
    shop_crash(&s, AT(49));
    due_job job = reserve(&s);
    cr_expect_str_eq(lab_text(&s.lab, &job), "ttl");
    shop_crash(&s, AT(50));
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "neither");
    cr_expect_eq(lab_stats(&s.lab).dead, 2u);
    shop_crash(&s, AT(50));
    uint64_t cursor = 0;
    due_dead dead[3];
    cr_assert_eq(due_list_dead(s.lab.q, &cursor, dead, 3), 2);
    cr_expect_eq(dead[0].cause, DUE_CAUSE_EXPIRED);
    cr_expect_eq(dead[1].cause, DUE_CAUSE_EXPIRED);
    shop_close(&s);
}

/* The limit is lifted by a kick, for the next program too. */
BOTH_TEST(stored_limits, are_lifted_by_a_kick)
{
    struct shop s = shop_new(where, AT(10));
    due_id id = lab_enqueue(&s.lab, "late",
                            .more = EXTRA(.expires_ns = 11, .headers = "h", .headers_len = 1));

    lab_turn_to(&s.lab, 11);
    cr_expect_null(lab_dequeue(&s.lab));
    cr_expect_eq(due_kick(s.lab.q, id), 0);
    shop_crash(&s, AT(1000));
    due_job job = reserve(&s);
    cr_expect_eq(job.headers_len, 1u);
    cr_expect_str_eq(lab_text(&s.lab, &job), "late");
    shop_close(&s);
}

BOTH_TEST(stored_headers, come_back_byte_by_byte)
{
    static const size_t lengths[] = { 1, 31, 255, DUE_HEADERS_MAX };
    unsigned char bytes[DUE_HEADERS_MAX];
    struct shop s = shop_new(where, AT(10));

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    for (size_t i = 0; i < 4; i++) {
        due_spec spec = { DUE_SPEC_INIT, .at_ns = 20 + (int64_t)i,
                          .more = EXTRA(.headers = bytes, .headers_len = lengths[i]),
                          .data = i % 2 == 0 ? NULL : bytes, .len = i % 2 == 0 ? 0 : 200 };
        cr_assert_eq(due_enqueue(s.lab.q, &spec, 0, NULL), 0);
    }
    shop_crash(&s, AT(100));
    for (size_t i = 0; i < 4; i++) {
        due_job job = reserve(&s);

        cr_assert_eq(job.headers_len, lengths[i]);
        cr_expect(memcmp(job.headers, bytes, lengths[i]) == 0);
        cr_expect_eq(job.len, i % 2 == 0 ? 0u : 200u);
        cr_expect(job.len == 0 || memcmp(job.data, bytes, 200) == 0);
        if (i == 0)
            cr_expect_eq(due_nack(&job, 1), 0);
        else
            cr_expect_eq(due_ack(&job), 0);
    }
    shop_crash(&s, AT(200));
    due_job job = reserve(&s);
    cr_expect_eq(job.headers_len, 1u);
    due_job_done(&job);
    shop_close(&s);
}

/* ---- Cancelled while somebody has it ---- */

BOTH_TEST(stored_cancel, of_a_reserved_job_is_done_when_it_is_given_back)
{
    struct shop s = shop_new(where, AT(10));

    for (int how = 0; how < 3; how++) {
        due_id id = lab_enqueue(&s.lab, "tea", .delay_ns = 0);
        due_job job = reserve(&s);

        cr_expect_eq(due_cancel(s.lab.q, id, NULL), DUE_EBUSY);
        if (how == 0)
            cr_expect_eq(due_nack(&job, 0), 0);
        else if (how == 1)
            cr_expect_eq(due_bury(&job, "why"), 0);
        else
            lab_advance(&s.lab, LEASE);
        due_poll(s.lab.q, NULL);
        until_stored(&s, 0);
        due_job_done(&job);
        cr_expect_eq(try_reserve(&s), DUE_EAGAIN);
        cr_expect_eq(lab_stats(&s.lab).dead, 0u);
    }
    shop_close(&s);
}
