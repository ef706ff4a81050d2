/* What becomes of a job, answer by answer: when it waits again, and what counts. */
#include "lab/workers_lab.h"

#define LEASE  100
#define POLICY 30 /* what the retry policy says */

static const due_retry policy = { .kind = DUE_RETRY_FIXED, .attempts_max = 9, .delay_ns = POLICY };

LAB_TEST(workers_answers, a_job_waits_again_as_long_as_its_handler_says)
{
    const struct {
        due_answer answer;
        int64_t delay_ns;
        unsigned failures;
    } cases[] = { { due_answer_nack(DUE_DELAY_POLICY), POLICY, 1 },
                  { { .kind = DUE_ANSWER_NONE }, POLICY, 1 },
                  { due_answer_nack(7), 7, 1 },
                  { due_answer_nack(1), 1, 1 },
                  { due_answer_snooze(7), 7, 0 },
                  { due_answer_snooze(1), 1, 0 } };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lab lab = lab_open(.start_ns = 1000, .with.retry = policy);
        struct desk desk = desk_open(&lab, 1);

        lab_enqueue(&lab, "tea", .delay_ns = 0);
        desk_until_begun(&desk);
        desk_let_go(&desk, cases[i].answer);
        WAIT_UNTIL(desk_stats(&desk).retried == 1 &&
                   (desk_stats(&desk).idle == 1 || atomic_load(&desk.state->begun_count) > 1));
        cr_assert_eq(atomic_load(&desk.state->begun_count), 1u, "%zu: at once", i);
        cr_expect_eq(due_next_deadline(lab.q), 1000 + cases[i].delay_ns, "%zu", i);
        lab_advance(&lab, cases[i].delay_ns);
        desk_until_begun(&desk);
        cr_expect_eq(desk.state->job.failures, cases[i].failures, "%zu", i);
        desk_let_go(&desk, due_answer_ack());
        desk_close(&desk);
        lab_close(&lab);
    }
}

/* Less than no time is none. */
LAB_TEST(workers_answers, a_job_that_is_to_wait_no_time_comes_again_at_once)
{
    const due_answer answers[] = {
        due_answer_nack(0),         due_answer_nack(DUE_DELAY_POLICY - 1),
        due_answer_nack(INT64_MIN), due_answer_snooze(0),
        due_answer_snooze(-1),      due_answer_snooze(INT64_MIN)
    };

    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct lab lab = lab_open(.start_ns = 1000, .with.retry = policy);
        struct desk desk = desk_open(&lab, 1);

        lab_enqueue(&lab, "tea", .delay_ns = 0);
        desk_until_begun(&desk);
        desk_let_go(&desk, answers[i]);
        desk_until_begun(&desk);
        cr_expect_eq(desk_stats(&desk).retried, 1u, "%zu", i);
        desk_let_go(&desk, due_answer_ack());
        desk_close(&desk);
        lab_close(&lab);
    }
}

/* A handler that fills it in by itself, to the last byte. */
LAB_TEST(workers_answers, a_reason_ends_where_there_is_no_more_room_for_it)
{
    struct lab lab = lab_open();
    struct desk desk = desk_open(&lab, 1);
    due_answer full = { .kind = DUE_ANSWER_BURY };
    uint64_t cursor = 0;
    due_dead dead;

    memset(full.why, 'x', sizeof full.why);
    lab_enqueue(&lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    desk_let_go(&desk, full);
    WAIT_UNTIL(desk_stats(&desk).handled == 1);
    cr_expect_eq(desk_stats(&desk).buried, 1u);
    cr_assert_eq(due_list_dead(lab.q, &cursor, &dead, 1), 1);
    cr_expect_eq(strlen(dead.reason), (size_t)DUE_ANSWER_WHY - 1);
    desk_close(&desk);
    lab_close(&lab);
}

/* ---- Leases that cannot be extended any more ---- */

/* Of two jobs of one pool the first was as long out as it may be when the second is extended. */
static void extend_two(struct lab *lab)
{
    struct desk desk = desk_open_with(lab, 2, .lease_ns = LEASE, .extend_max_ns = LEASE + 30);
    int64_t start = due_now(lab->q);
    uint64_t before = lab_stats(lab).acked;

    lab_enqueue(lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    lab_advance(lab, LEASE / 2);
    WAIT_UNTIL(desk_stats(&desk).extended == 1); /* until 130 */
    lab_turn_to(lab, start + 85);
    lab_enqueue(lab, "cake", .delay_ns = 0);
    desk_until_begun(&desk);
    lab_turn_to(lab, start + 85 + LEASE / 2);
    WAIT_UNTIL(desk_stats(&desk).extended >= 2);
    for (int i = 0; i < 3; i++) /* the first one may come again */
        desk_let_go(&desk, due_answer_ack());
    WAIT_UNTIL(lab_stats(lab).acked == before + 2);
    cr_expect_eq(desk_stats(&desk).extended, 2u);
    desk_close(&desk);
}

LAB_TEST(workers_answers, only_a_lease_that_was_made_longer_counts_as_extended)
{
    struct lab lab = lab_open();

    for (int i = 0; i < 5; i++)
        extend_two(&lab);
    lab_close(&lab);
}
