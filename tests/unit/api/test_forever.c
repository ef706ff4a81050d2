/* Durations of DUE_FOREVER and just below it, from different times on: what they put off never
 * comes, and no sum overflows. */
#include "lab/workers_lab.h"
#include "lab/take.h"

#define LEASE   100
#define THE_END (DUE_FOREVER - 1) /* the last that a clock shows */

static const struct span {
    int64_t start_ns;
    int64_t ns;
    bool ends; /* before the end of time */
} spans[] = {
    { 0, DUE_FOREVER, false },
    { 1, DUE_FOREVER, false },
    { 1000000, DUE_FOREVER, false },
    { DUE_FOREVER / 2, DUE_FOREVER, false },
    { THE_END - 500, DUE_FOREVER, false },
    { 1, DUE_FOREVER - 1, false },
    { DUE_FOREVER / 2, DUE_FOREVER - 1, false },
    { DUE_FOREVER / 2, DUE_FOREVER / 2 + 1, false },
    { THE_END - 500, 501, false },
    { 0, DUE_FOREVER - 1, true },
    { 1, DUE_FOREVER - 2, true },
    { DUE_FOREVER / 2, DUE_FOREVER / 2, true },
    { THE_END - 500, 500, true },
};

#define EACH_SPAN(s) \
    for (const struct span *s = spans; s < spans + sizeof spans / sizeof *spans; s++)
#define SAYS(s) "from %lld for %lld", (long long)(s)->start_ns, (long long)(s)->ns

static due_job reserve(struct lab *lab, int64_t lease_ns)
{
    due_job job = { 0 };

    cr_assert_eq(take_leased(lab->q, &job, lease_ns, 0), 0);
    return job;
}

/* The only job is put off by that: it waits for exactly so long. */
static void expect_put_off(struct lab *lab, const struct span *s)
{
    due_job job;

    lab_turn_to(lab, THE_END - 1);
    cr_expect_eq(take_leased(lab->q, &job, LEASE, 0), DUE_EAGAIN, SAYS(s));
    lab_turn_to(lab, THE_END);
    int rc = take_leased(lab->q, &job, LEASE, 0);
    cr_expect_eq(rc, s->ends ? 0 : DUE_EAGAIN, SAYS(s));
    cr_expect_eq(lab_stats(lab).dead, 0u, SAYS(s));
    if (rc == 0)
        cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(lab_stats(lab).waiting, (uint64_t)!s->ends, SAYS(s));
}

/* ---- Retries ---- */

enum { BY_NACK, BY_FIXED, BY_LADDER, WAYS };

static void nack_for(struct lab *lab, int way, int64_t ns)
{
    const due_retry fixed = { .kind = DUE_RETRY_FIXED, .delay_ns = ns };
    const due_retry ladder = { .kind = DUE_RETRY_LADDER, .rungs = 2, .rung_ns = { ns, ns } };

    lab_enqueue(lab, "tea",
                .more = EXTRA(.retry = way == BY_FIXED    ? &fixed
                                       : way == BY_LADDER ? &ladder
                                                          : NULL));
    due_job job = reserve(lab, LEASE);
    cr_expect_eq(due_nack(&job, way == BY_NACK ? ns : DUE_DELAY_POLICY), 0);
}

LAB_TEST(forever, is_how_long_a_nack_puts_a_job_off)
{
    EACH_SPAN(s)
    {
        for (int way = 0; way < WAYS; way++) {
            struct lab lab = lab_open(.start_ns = s->start_ns);

            nack_for(&lab, way, s->ns);
            expect_put_off(&lab, s);
            lab_close(&lab);
        }
    }
}

/* It doubles without end, and what is chosen is never in the past. */
LAB_TEST(forever, is_as_far_as_delays_are_doubled)
{
    static const int64_t firsts[] = { 1, DUE_S(1), DUE_FOREVER / 4, DUE_FOREVER - 1, DUE_FOREVER };
    static const int64_t caps[] = { 0, DUE_FOREVER - 1, DUE_FOREVER };

    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++)
        for (size_t k = 0; k < sizeof caps / sizeof *caps; k++) {
            struct lab lab =
                lab_open(.start_ns = 1000, .with.retry = { .kind = DUE_RETRY_EXPONENTIAL,
                                                           .delay_ns = firsts[i],
                                                           .cap_ns = caps[k] });
            due_id id = lab_enqueue(&lab, "tea", .at_ns = 1000);

            for (int n = 0; n < 70; n++) { /* more often than a number has bits */
                int64_t left;
                due_job job = reserve(&lab, LEASE);

                cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
                cr_assert_eq(due_remaining(lab.q, id, &left), 0);
                cr_expect_geq(left, 0, "%lld %lld %d", (long long)firsts[i], (long long)caps[k], n);
                cr_expect_eq(due_promote(lab.q, id), 0);
            }
            lab_close(&lab);
        }
}

/* ---- Leases ---- */

LAB_TEST(forever, is_how_long_a_lease_lasts)
{
    EACH_SPAN(s)
    {
        for (int extended = 0; extended < 2; extended++) {
            struct lab lab = lab_open(.start_ns = s->start_ns);

            lab_enqueue(&lab, "tea", .delay_ns = 0);
            due_job job = reserve(&lab, extended ? LEASE : s->ns);
            if (extended)
                cr_expect_eq(due_extend(&job, s->ns), 0);
            lab_turn_to(&lab, THE_END - 1);
            cr_expect_eq(due_job_stopping(&job), 0, SAYS(s));
            lab_turn_to(&lab, THE_END);
            cr_expect_eq(due_job_stopping(&job), (int)s->ends, SAYS(s));
            cr_expect_eq(due_ack(&job), s->ends ? DUE_ESTALE : 0, SAYS(s));
            cr_expect_eq(lab_stats(&lab).waiting, (uint64_t)s->ends, SAYS(s));
            lab_close(&lab);
        }
    }
}

LAB_TEST(forever, is_how_long_a_handler_may_take)
{
    struct lab lab = lab_open(.start_ns = 1000);
    struct desk desk =
        desk_open_with(&lab, 1, .lease_ns = DUE_FOREVER, .extend_max_ns = DUE_FOREVER);

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    lab_turn_to(&lab, THE_END - LEASE);
    cr_expect_eq(due_job_stopping(desk.state->at), 0);
    desk_let_go(&desk, due_answer_nack(LEASE));
    WAIT_UNTIL(desk_stats(&desk).retried == 1);
    lab_turn_to(&lab, THE_END);
    desk_until_begun(&desk);
    desk_let_go(&desk, due_answer_nack(DUE_FOREVER));
    WAIT_UNTIL(desk_stats(&desk).retried == 2);
    cr_expect_eq(lab_stats(&lab).waiting, 1u);
    desk_close(&desk);
    lab_close(&lab);
}

/* ---- Time limits ---- */

LAB_TEST(forever, is_how_long_a_job_may_wait)
{
    EACH_SPAN(s)
    {
        struct lab lab = lab_open(.start_ns = s->start_ns);

        due_id id = lab_enqueue(&lab, "tea", .at_ns = s->start_ns, .more = EXTRA(.ttl_ns = s->ns));
        lab_enqueue(&lab, "milk", .at_ns = s->start_ns, .more = EXTRA(.expires_ns = DUE_FOREVER));
        cr_expect_eq(due_reschedule(lab.q, id, s->start_ns), 0);
        lab_turn_to(&lab, THE_END - 1);
        cr_expect_eq(lab_stats(&lab).ready, 2u, SAYS(s));
        lab_turn_to(&lab, THE_END);
        cr_expect_str_eq(lab_dequeue_all(&lab), s->ends ? "milk" : "milk tea", SAYS(s));
        cr_expect_eq(lab_stats(&lab).dead, (uint64_t)s->ends, SAYS(s));
        cr_expect_eq(due_clear_dead(lab.q, DUE_ALL_TOPICS, NULL), 0);
        lab_close(&lab);
    }
}

LAB_TEST(forever, is_a_time_limit_of_a_job_that_never_comes)
{
    struct lab lab = lab_open(.start_ns = 1000);

    lab_enqueue(&lab, "tea", .at_ns = DUE_FOREVER, .more = EXTRA(.ttl_ns = DUE_FOREVER));
    lab_enqueue(&lab, "milk", .delay_ns = DUE_FOREVER, .more = EXTRA(.ttl_ns = 1));
    lab_enqueue(&lab, "jam", .at_ns = THE_END, .more = EXTRA(.ttl_ns = 1));
    lab_turn_to(&lab, THE_END);
    cr_expect_str_eq(lab_dequeue_all(&lab), "jam");
    cr_expect_eq(lab_stats(&lab).waiting, 2u);
    cr_expect_eq(lab_stats(&lab).dead, 0u);
    lab_close(&lab);
}

/* ---- What is kept ---- */

LAB_TEST(forever, is_how_long_a_dead_job_is_kept)
{
    EACH_SPAN(s)
    {
        struct lab lab = lab_open(.start_ns = s->start_ns, .with.dead_keep_ns = s->ns);

        lab_enqueue(&lab, "tea", .delay_ns = 0);
        due_job job = reserve(&lab, LEASE);
        cr_expect_eq(due_bury(&job, NULL), 0);
        lab_turn_to(&lab, THE_END - 1);
        cr_expect_eq(due_poll(lab.q, NULL), 0);
        cr_expect_eq(lab_stats(&lab).dead, 1u, SAYS(s));
        lab_turn_to(&lab, THE_END);
        cr_expect_eq(due_poll(lab.q, NULL), 0);
        cr_expect_eq(lab_stats(&lab).dead, (uint64_t)!s->ends, SAYS(s));
        cr_expect_eq(atomic_load(&lab.state->discarded), (unsigned)s->ends, SAYS(s));
        lab_close(&lab);
    }
}

LAB_TEST(forever, is_how_long_a_key_is_kept)
{
    EACH_SPAN(s)
    {
        struct lab lab = lab_open(.start_ns = s->start_ns);
        due_spec spec = { DUE_SPEC_INIT,
                          .more = EXTRA(.key = "k", .key_len = 1, .keep_key_ns = s->ns) };

        cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), 0);
        due_job job = reserve(&lab, LEASE);
        cr_expect_eq(due_ack(&job), 0);
        lab_turn_to(&lab, THE_END - 1);
        cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_EEXIST, SAYS(s));
        lab_turn_to(&lab, THE_END);
        cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), s->ends ? 0 : DUE_EEXIST, SAYS(s));
        lab_close(&lab);
    }
}
