/* Many jobs acked by one call, of a queue in memory: each as if it were acked by itself, more of
 * them than are counted at a time.
 */
#include "lab/extra.h"
#include "lab/lab.h"
#include "lab/take.h"

#define N     70
#define LEASE DUE_MS(20)

/* Reserves @n, each of them. */
static void reserve(struct lab *lab, due_job *jobs, size_t n, int64_t lease_ns)
{
    for (size_t got = 0; got < n;) {
        int rc = take_leased_some(lab->q, NULL, 0, jobs + got, n - got, lease_ns, DUE_S(30));

        cr_assert_gt(rc, 0, "%s", due_error_name(rc));
        got += (size_t)rc;
    }
}

static void pass(struct lab *lab, int64_t ns)
{
    int64_t until = due_now(lab->q) + ns;

    if (lab->clock != NULL)
        lab_advance(lab, ns);
    while (due_now(lab->q) < until)
        crew_sleep(DUE_MS(1));
}

/* Nobody has come to them since. */
LAB_TEST(ack_batch, answers_that_it_is_late_for_leases_that_have_ended)
{
    static const enum due_clock_kind clocks[] = { DUE_CLOCK_MONOTONIC, DUE_CLOCK_REALTIME,
                                                  DUE_CLOCK_BOOTTIME, DUE_CLOCK_MONOTONIC };

    for (size_t i = 0; i < sizeof clocks / sizeof clocks[0]; i++) { /* the last is turned by hand */
        struct lab lab =
            lab_open(.kernel = i < 3, .start_ns = i < 3 ? 0 : 5, .with.clock = clocks[i]);
        due_job jobs[N];
        int results[N];

        for (int k = 0; k < N; k++)
            lab_enqueue(&lab, "tea", .delay_ns = 0);
        reserve(&lab, jobs, N / 2, DUE_S(1000));
        reserve(&lab, jobs + N / 2, N - N / 2, LEASE);
        pass(&lab, LEASE);
        cr_expect_eq(due_ack_batch(jobs, N, results), N / 2, "%zu", i);
        for (int k = 0; k < N; k++) {
            cr_expect_eq(results[k], k < N / 2 ? 0 : DUE_ESTALE, "%zu, %d: %s", i, k,
                         due_error_name(results[k]));
            cr_expect_null(jobs[k].queue, "it is let go of");
        }
        struct due_stats s = lab_stats(&lab);
        cr_expect_eq(s.acked, (uint64_t)N / 2);
        cr_expect_eq(s.waiting, (uint64_t)(N - N / 2));
        cr_expect_eq(s.lent, 0u);
        lab_close(&lab);
    }
}

/* As many as were acked, and no more. */
LAB_TEST(ack_batch, makes_room_for_as_many_as_were_acked)
{
    for (int kernel = 0; kernel < 2; kernel++) {
        struct lab lab = lab_open(.kernel = kernel, .with.capacity = N);
        due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3, .delay_ns = 0 };
        due_job jobs[N];

        for (int k = 0; k < N; k++)
            cr_assert_eq(due_enqueue(lab.q, &spec, 0, NULL), 0);
        reserve(&lab, jobs, N, DUE_S(1000));
        cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_EAGAIN);
        cr_expect_eq(due_ack_batch(jobs, N - 1, NULL), N - 1);
        for (int k = 0; k < N - 1; k++)
            cr_assert_eq(due_enqueue(lab.q, &spec, 0, NULL), 0, "%d", k);
        cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_EAGAIN, "one is reserved still");
        cr_expect_eq(due_ack(&jobs[N - 1]), 0);
        cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), 0);
        lab_close(&lab);
    }
}

/* What has more than its payload: a key that is free again, a round that comes again. */
LAB_TEST(ack_batch, frees_keys_and_lets_rounds_come_again)
{
    for (int kernel = 0; kernel < 2; kernel++) {
        struct lab lab = lab_open(.kernel = kernel);
        due_job jobs[3];
        due_id id;

        lab_enqueue(&lab, "tea", .delay_ns = 0);
        cr_assert_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "cake", &id, .delay_ns = 0), 0);
        lab_enqueue(&lab, "again", .delay_ns = 0, .more = EXTRA(.every_ns = DUE_S(3600)));
        reserve(&lab, jobs, 3, DUE_S(1000));
        cr_expect_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "cake", NULL, .delay_ns = 0), DUE_EEXIST);
        cr_expect_eq(due_ack_batch(jobs, 3, NULL), 3);
        cr_expect_eq(due_id_of_key(lab.q, "k", 1, &id), DUE_ENOENT);
        cr_expect_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "cake", NULL, .delay_ns = 0), 0);
        struct due_stats s = lab_stats(&lab);
        cr_expect_eq(s.waiting, 2u, "%llu", (unsigned long long)s.waiting);
        cr_expect_eq(s.lent, 0u);
        cr_expect_eq(s.leased, 0u);
        lab_close(&lab);
    }
}
