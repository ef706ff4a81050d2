/* What the suites of other queues hold about jobs that are answered for, and what their users have
 * met: docs/bugs-of-peers.md says whose. */
#include "lab/workers_lab.h"
#include "lab/take.h"

#define LEASE 100

static due_job reserve(struct lab *lab)
{
    due_job job = { 0 };
    int rc = take_leased(lab->q, &job, LEASE, 0);

    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    return job;
}

/* A job that carries its number, from 1 on. */
static void put(struct lab *lab, size_t n, int64_t at_ns)
{
    lab_enqueue(lab, NULL, .ptr = (void *)(uintptr_t)n, .at_ns = at_ns);
}

static size_t number_of(const due_job *job)
{
    return (size_t)(uintptr_t)job->ptr;
}

static void expect_nothing_out(struct lab *lab)
{
    struct due_stats s = lab_stats(lab);

    cr_expect_eq(s.leased, 0u, "%ju leases", (uintmax_t)s.leased);
    cr_expect_eq(s.lent, 0u, "%ju lent", (uintmax_t)s.lent);
    cr_expect_eq(s.passed, 0u, "%ju passes", (uintmax_t)s.passed);
}

/* ---- One job's way --------------------------------------------------------------------------- */

LAB_TEST(peers, a_peek_shows_the_shortest_delay_also_of_what_was_given_back)
{
    struct lab lab = lab_open();
    due_info info;

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    due_job job = reserve(&lab);
    due_id far = lab_enqueue(&lab, "far", .delay_ns = 60);
    due_id near = lab_enqueue(&lab, "near", .delay_ns = 20);
    cr_assert_eq(due_peek(lab.q, &info), 0);
    cr_expect(due_id_equal(info.id, near));
    cr_expect_eq(due_cancel(lab.q, near, NULL), 0);
    cr_assert_eq(due_peek(lab.q, &info), 0);
    cr_expect(due_id_equal(info.id, far));
    due_id tea = job.id;
    cr_expect_eq(due_nack(&job, 40), 0);
    cr_assert_eq(due_peek(lab.q, &info), 0);
    cr_expect(due_id_equal(info.id, tea), "40 is less than 60");
    cr_expect_eq(info.deadline_ns, 40, "its delay, not what it had before");
    lab_close(&lab);
}

LAB_TEST(peers, a_job_is_buried_kicked_released_and_touched)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .delay_ns = 0);
    due_job job = reserve(&lab);

    cr_expect_eq(due_bury(&job, "cold"), 0);
    lab_advance(&lab, (int64_t)10 * LEASE);
    cr_expect_null(lab_dequeue(&lab), "a buried job came by itself");
    cr_expect_eq(due_kick(lab.q, id), 0);
    cr_expect_eq(due_kick(lab.q, id), DUE_ENOENT, "it is not dead any more");
    job = reserve(&lab);
    cr_expect_eq(due_nack(&job, 30), 0);
    cr_expect_eq(due_kick(lab.q, id), DUE_ENOENT, "what is delayed is not dead");
    lab_advance(&lab, 30);
    job = reserve(&lab);
    for (int i = 0; i < 5; i++) {
        lab_advance(&lab, LEASE - 1);
        cr_expect_eq(due_extend(&job, LEASE), 0);
    }
    cr_expect_null(lab_dequeue(&lab), "it was touched in time");
    cr_expect_eq(job.attempts, 2u, "a touch is no attempt");
    cr_expect_eq(due_ack(&job), 0);
    expect_nothing_out(&lab);
    lab_close(&lab);
}

LAB_TEST(peers, a_lease_of_the_maximum_never_ends)
{
    static const int64_t leases[] = { DUE_FOREVER, DUE_FOREVER - 1 };

    for (size_t i = 0; i < sizeof leases / sizeof leases[0]; i++) {
        struct lab lab = lab_open(.start_ns = 1000000);
        due_job job, other;

        lab_enqueue(&lab, "tea", .delay_ns = 0);
        cr_expect_eq(take_leased(lab.q, &job, -2, 0), DUE_EINVAL, "a lease of less than none");
        cr_assert_eq(take_leased(lab.q, &job, leases[i], 0), 0);
        lab_turn_to(&lab, DUE_FOREVER - 2);
        cr_expect_eq(take_leased(lab.q, &other, LEASE, 0), DUE_EAGAIN, "its end has wrapped");
        cr_expect_eq(due_extend(&job, leases[i]), 0);
        cr_expect_eq(take_leased(lab.q, &other, LEASE, 0), DUE_EAGAIN);
        cr_expect_eq(lab_stats(&lab).leased, 1u);
        cr_expect_eq(due_ack(&job), 0);
        lab_close(&lab);
    }
}

LAB_TEST(peers, a_job_survives_all_failures_but_the_last)
{
    enum { MAX = 7, ACKED = 0, NACKED, LEFT, LASTS };
    static const due_retry policy = { .kind = DUE_RETRY_FIXED, .attempts_max = MAX };
    struct lab lab = lab_open(.with.retry = policy);
    due_job job;

    for (int last = ACKED; last < LASTS; last++) {
        lab_enqueue(&lab, "tea", .delay_ns = 0);
        for (uint32_t i = 1; i <= MAX; i++) { /* by turns a nack, and a holder that is gone */
            job = reserve(&lab);
            cr_expect_eq(job.attempts, i);
            cr_expect_eq(job.failures, i - 1);
            if (i == MAX && last == ACKED)
                cr_expect_eq(due_ack(&job), 0);
            else if (i == MAX ? last == NACKED : i % 2 == 0)
                cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
            else
                due_job_done(&job);
            lab_advance(&lab, LEASE);
        }
        cr_expect_null(lab_dequeue(&lab));
        struct due_stats s = lab_stats(&lab);
        cr_expect_eq(s.acked, 1u);
        cr_expect_eq(s.buried, (uint64_t)last);
        cr_expect_eq(s.retried, ((uint64_t)last + 1) * (MAX - 1));
    }
    cr_expect_eq(lab_stats(&lab).lapsed, 3u * (MAX / 2) + 1);
    cr_expect_eq(lab_stats(&lab).nacked, 3u * (MAX / 2) + 1);
    expect_nothing_out(&lab);
    lab_close(&lab);
}

LAB_TEST(peers, a_delay_a_hundred_times_the_lease_is_delivered_once_also_after_a_failure)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "tea", .delay_ns = (int64_t)100 * LEASE);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 99; i++) {
            lab_advance(&lab, LEASE);
            cr_assert_null(lab_dequeue(&lab), "early, by the length of a lease");
        }
        lab_advance(&lab, LEASE);
        due_job job = reserve(&lab);
        cr_expect_eq(job.attempts, (uint32_t)round + 1);
        cr_expect_eq(round == 0 ? due_nack(&job, (int64_t)100 * LEASE) : due_ack(&job), 0);
    }
    lab_advance(&lab, (int64_t)1000 * LEASE);
    cr_expect_null(lab_dequeue(&lab));
    lab_close(&lab);
}

/* ---- Many jobs ------------------------------------------------------------------------------- */

LAB_TEST(peers, odd_jobs_nacked_and_even_ones_acked_are_counted_exactly)
{
    enum { JOBS = 1000 };
    struct lab lab = lab_open();
    due_job job;

    for (size_t i = 1; i <= JOBS; i++)
        put(&lab, i, 0);
    for (size_t i = 1; i <= JOBS; i++) {
        job = reserve(&lab);
        cr_assert_eq(number_of(&job), i);
        cr_assert_eq(i % 2 ? due_nack(&job, 10) : due_ack(&job), 0);
    }
    cr_expect_eq(take_leased(lab.q, &job, LEASE, 0), DUE_EAGAIN);
    struct due_stats s = lab_stats(&lab);
    cr_expect_eq(s.acked, (uint64_t)JOBS / 2);
    cr_expect_eq(s.nacked, (uint64_t)JOBS / 2);
    cr_expect_eq(s.waiting, (uint64_t)JOBS / 2);
    lab_advance(&lab, 10);
    for (size_t i = 1; i <= JOBS; i += 2) {
        job = reserve(&lab);
        cr_assert_eq(number_of(&job), i);
        cr_assert_eq(job.failures, 1u);
        cr_assert_eq(due_ack(&job), 0);
    }
    s = lab_stats(&lab);
    cr_expect_eq(s.acked, (uint64_t)JOBS);
    cr_expect_eq(s.nacked, (uint64_t)JOBS / 2);
    cr_expect_eq(s.retried, (uint64_t)JOBS / 2);
    cr_expect_eq(s.waiting, 0u);
    expect_nothing_out(&lab);
    lab_close(&lab);
}

LAB_TEST(peers, twenty_thousand_due_at_once_come_in_order_once_each)
{
    enum { JOBS = 20000, MOST = 997 };
    static due_job jobs[MOST];
    struct lab lab = lab_open();
    size_t seen = 0;

    for (size_t i = 1; i <= JOBS; i++)
        put(&lab, i, 10);
    cr_expect_eq(take_leased_some(lab.q, NULL, 0, jobs, MOST, LEASE, 0), DUE_EAGAIN);
    lab_turn_to(&lab, 10);
    while (seen < JOBS) {
        int n = take_leased_some(lab.q, NULL, 0, jobs, 1 + seen * 31 % MOST, LEASE, 0);

        cr_assert_gt(n, 0, "%s after %zu", due_error_name(n), seen);
        for (int i = 0; i < n; i++)
            cr_assert_eq(number_of(&jobs[i]), ++seen);
        cr_assert_eq(due_ack_batch(jobs, (size_t)n, NULL), n);
    }
    cr_expect_eq(take_leased_some(lab.q, NULL, 0, jobs, MOST, LEASE, 0), DUE_EAGAIN);
    cr_expect_eq(lab_stats(&lab).acked, (uint64_t)JOBS);
    expect_nothing_out(&lab);
    lab_close(&lab);
}

/* Of one instant: by nack, and by leases that end; the order is that of the answers, or of the
 * hand-over. */
LAB_TEST(peers, jobs_of_one_instant_keep_their_order_through_retries)
{
    enum { JOBS = 50, ROUNDS = 6 };
    struct lab lab = lab_open();
    due_job job[JOBS];

    for (size_t i = 1; i <= JOBS; i++)
        put(&lab, i, 10);
    lab_turn_to(&lab, 10);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < JOBS; i++) {
            job[i] = reserve(&lab);
            cr_assert_eq(number_of(&job[i]), i + 1, "in round %d", round);
        }
        for (size_t i = 0; i < JOBS; i++)
            if (round % 2 == 0)
                cr_assert_eq(due_nack(&job[i], LEASE), 0);
            else
                due_job_done(&job[i]);
        lab_advance(&lab, LEASE);
    }
    lab_close(&lab);
}

LAB_TEST(peers, a_paused_topic_holds_retries_back_and_keeps_their_order)
{
    struct lab lab = lab_open();
    int mail = lab_topic(&lab, "mail");
    due_job job[3];

    lab_enqueue(&lab, "one", .topic = mail);
    lab_enqueue(&lab, "two", .topic = mail);
    lab_enqueue(&lab, "three", .topic = mail);
    for (int i = 0; i < 3; i++)
        job[i] = reserve(&lab);
    cr_expect_eq(due_pause(lab.q, mail), 0);
    due_id third = job[2].id;
    cr_expect_eq(due_nack(&job[1], 10), 0);
    cr_expect_eq(due_bury(&job[2], NULL), 0);
    cr_expect_eq(due_extend(&job[0], 2 * LEASE), 0, "a pause ends no lease");
    lab_enqueue(&lab, "other", .at_ns = 5);
    lab_turn_to(&lab, LEASE);
    cr_expect_eq(due_kick(lab.q, third), 0);
    cr_expect_str_eq(lab_dequeue_all(&lab), "other");
    lab_turn_to(&lab, 2 * LEASE);
    cr_expect_null(lab_dequeue(&lab), "of a lease that ended in a pause");
    cr_expect_eq(due_ack(&job[0]), DUE_ESTALE);
    cr_expect_eq(due_resume(lab.q, mail), 0);
    cr_expect_str_eq(lab_dequeue_all(&lab), "two three one");
    expect_nothing_out(&lab);
    lab_close(&lab);
}

LAB_TEST(peers, a_job_that_always_fails_holds_nobody_up_and_dies)
{
    enum { OTHERS = 20, MAX = 4 };
    static const due_retry policy = { .kind = DUE_RETRY_FIXED, .attempts_max = MAX };
    struct lab lab = lab_open(.with.retry = policy);
    unsigned poisoned = 0;
    unsigned healthy = 0;
    due_job job;

    put(&lab, 1000, 0);
    for (size_t i = 1; i <= OTHERS; i++)
        put(&lab, i, 0);
    while (take_leased(lab.q, &job, LEASE, 0) == 0) {
        bool poison = number_of(&job) == 1000;

        poisoned += poison;
        healthy += !poison;
        cr_assert_eq(poison ? due_nack(&job, 0) : due_ack(&job), 0);
    }
    cr_expect_eq(poisoned, (unsigned)MAX);
    cr_expect_eq(healthy, (unsigned)OTHERS);
    cr_expect_eq(lab_stats(&lab).dead, 1u);
    expect_nothing_out(&lab);
    lab_close(&lab);
}

LAB_TEST(peers, a_dead_job_may_die_again_and_is_dead_once)
{
    static const due_retry once = { .kind = DUE_RETRY_FIXED, .attempts_max = 1 };
    struct lab lab = lab_open(.with.retry = once);
    due_id id = lab_enqueue(&lab, "tea", .delay_ns = 0);
    uint64_t cursor = 0;
    due_dead dead[2];

    for (unsigned i = 1; i <= 3; i++) {
        due_job job = reserve(&lab);
        cr_expect_eq(job.attempts, 1u, "a kick begins anew");
        cr_expect_eq(due_nack(&job, 0), 0);
        cr_expect_eq(lab_stats(&lab).dead, 1u);
        cr_expect_eq(lab_stats(&lab).buried, i);
        cr_expect_eq(due_kick(lab.q, id), 0);
        cr_expect_eq(lab_stats(&lab).dead, 0u);
    }
    cr_expect_eq(due_list_dead(lab.q, &cursor, dead, 2), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    lab_close(&lab);
}

/* ---- What is out, is counted ----------------------------------------------------------------- */

enum end { ACK, NACK, BURY, LAPSE, LAPSE_AND_ACK, CANCEL, CANCEL_AND_LAPSE, CLEAR, EXPIRE, ENDS };

/* One job comes in and leaves, one way or another. */
static void come_and_end(struct lab *lab, enum end end)
{
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3,
                      .more = EXTRA(.ttl_ns = end == EXPIRE ? LEASE / 2 : 0) };
    due_id id;
    uint64_t cleared;

    cr_assert_eq(due_enqueue(lab->q, &spec, 0, &id), 0, "no room after end %d", (int)end);
    due_job job = reserve(lab);
    if (end == CANCEL || end == CANCEL_AND_LAPSE)
        cr_expect_eq(due_cancel(lab->q, id, NULL), DUE_EBUSY);
    if (end == LAPSE_AND_ACK || end == LAPSE || end == CANCEL_AND_LAPSE || end == EXPIRE)
        lab_advance(lab, LEASE);
    switch (end) {
    case ACK:
        cr_expect_eq(due_ack(&job), 0);
        break;
    case BURY:
        cr_expect_eq(due_bury(&job, "why"), 0);
        break;
    case LAPSE_AND_ACK:
    case CANCEL_AND_LAPSE:
        cr_expect_eq(due_ack(&job), DUE_ESTALE);
        break;
    case LAPSE:
    case EXPIRE:
        due_job_done(&job);
        break;
    default:
        cr_expect_eq(due_nack(&job, 0), 0);
    }
    if (end == CLEAR)
        cr_expect_eq(due_clear(lab->q, DUE_ALL_TOPICS, &cleared), 0);
    const char *rest = lab_dequeue(lab);
    bool stays = end == NACK || end == LAPSE || end == LAPSE_AND_ACK;
    cr_expect_eq(rest != NULL, stays, "end %d", (int)end);
}

LAB_TEST(peers, nothing_stays_in_flight_whatever_the_end)
{
    struct lab lab = lab_open(.with.capacity = 1);
    struct due_stats s;

    for (int round = 0; round < 3; round++)
        for (int end = 0; end < ENDS; end++) {
            come_and_end(&lab, (enum end)end);
            expect_nothing_out(&lab);
            s = lab_stats(&lab);
            cr_expect_eq(s.waiting, 0u, "%ju wait after end %d", (uintmax_t)s.waiting, end);
        }
    cr_expect_eq(lab_stats(&lab).dead, 3u * 2u, "buried, and expired");
    lab_close(&lab);
}

/* Every answer to a lease that was lost says so by the same code, whoever has the job by now. */
LAB_TEST(peers, answers_to_a_lost_lease_say_so_wherever_the_job_is)
{
    enum { AGAIN, ACKED, DEAD, WAITS, CASES };

    for (int now = 0; now < CASES; now++)
        for (int answer = 0; answer < 4; answer++) {
            struct lab lab = lab_open();
            due_job next = { 0 };

            lab_enqueue(&lab, "tea", .delay_ns = 0);
            due_job late = reserve(&lab);
            lab_advance(&lab, LEASE);
            if (now != WAITS)
                next = reserve(&lab);
            if (now == ACKED)
                cr_expect_eq(due_ack(&next), 0);
            if (now == DEAD)
                cr_expect_eq(due_bury(&next, NULL), 0);
            struct due_stats before = lab_stats(&lab);
            int rc = answer == 0   ? due_ack(&late)
                     : answer == 1 ? due_nack(&late, 0)
                     : answer == 2 ? due_bury(&late, "late")
                                   : due_extend(&late, LEASE);
            cr_expect_eq(rc, DUE_ESTALE, "answer %d in case %d: %s", answer, now,
                         due_error_name(rc));
            struct due_stats after = lab_stats(&lab);
            cr_expect_eq(after.leased, before.leased);
            cr_expect_eq(after.waiting, before.waiting);
            cr_expect_eq(after.dead, before.dead);
            cr_expect_eq(after.acked + after.nacked + after.buried,
                         before.acked + before.nacked + before.buried);
            due_job_done(&late);
            if (now == AGAIN)
                cr_expect_eq(due_ack(&next), 0, "the late one took it away");
            lab_close(&lab);
        }
}

/* ---- Pools ----------------------------------------------------------------------------------- */

struct crowd {
    due_queue *q;
    due_workers *pool;
    size_t cap;
    bool looks;
    atomic_ullong most; /* that were reserved at a time, when it looks */
    atomic_uint done;
    atomic_uchar *seen;
    atomic_int asked; /* what a stop from within was answered */
    atomic_uint begun;
    atomic_bool ahead; /* seen: jobs that were fetched ahead */
    unsigned stop_at;  /* jobs done when one handler stops its pool */
};

static void count(void *ctx, const due_job *job, due_answer *answer)
{
    struct crowd *c = ctx;
    struct due_workers_stats of_pool;
    struct due_stats s;

    if (c->looks && due_stats_read(c->q, &s) == 0 &&
        due_workers_stats_read(c->pool, &of_pool) == 0) {
        unsigned long long most = atomic_load(&c->most);

        atomic_fetch_add(&c->begun, 1);
        while (atomic_load(&c->begun) < 3) /* each has one: for who is idle others leave the rest */
            crew_sleep(DUE_US(100));
        if (of_pool.ahead > 0)
            atomic_store(&c->ahead, true);
        while (s.leased > most && !atomic_compare_exchange_weak(&c->most, &most, s.leased))
            continue;
    }
    atomic_fetch_add(&c->seen[number_of(job)], 1);
    if (atomic_fetch_add(&c->done, 1) + 1 == c->stop_at)
        atomic_store(&c->asked, due_workers_stop(c->pool, 0));
    *answer = due_answer_ack();
}

static void crowd_start(struct crowd *c, struct lab *lab, size_t jobs, size_t threads)
{
    due_workers_options o = { DUE_WORKERS_INIT, .in_flight_max = c->cap };

    c->q = lab->q;
    c->seen = calloc(jobs + 1, sizeof *c->seen);
    cr_assert_not_null((void *)c->seen);
    cr_assert_eq(due_pause(lab->q, DUE_ALL_TOPICS), 0);
    for (size_t i = 1; i <= jobs; i++)
        put(lab, i, 0);
    cr_assert_eq(due_workers_start(&c->pool, lab->q, NULL, 0, threads, count, c, &o), 0);
    cr_assert_eq(due_resume(lab->q, DUE_ALL_TOPICS), 0);
}

static void crowd_end(struct crowd *c)
{
    cr_expect_eq(due_workers_stop(c->pool, DUE_FOREVER), 0);
    cr_expect_eq(due_workers_free(c->pool), 0);
    free((void *)c->seen);
}

LAB_TEST(peers, a_prime_number_of_jobs_over_three_workers_comes_once_each)
{
    enum { JOBS = 7919 };
    struct lab lab = lab_open();
    struct crowd c = { .looks = false };

    crowd_start(&c, &lab, JOBS, 3);
    WAIT_UNTIL(atomic_load(&c.done) >= JOBS);
    cr_expect_eq(due_workers_stop(c.pool, DUE_FOREVER), 0);
    for (size_t i = 1; i <= JOBS; i++)
        cr_assert_eq(atomic_load(&c.seen[i]), 1, "job %zu", i);
    cr_expect_eq(lab_stats(&lab).acked, (uint64_t)JOBS);
    expect_nothing_out(&lab);
    crowd_end(&c);
    lab_close(&lab);
}

/* On a real clock, where pools fetch ahead of fast handlers. */
Test(peers, a_pool_reserves_no_more_than_its_cap, .timeout = 60)
{
    enum { JOBS = 20000 };

    for (size_t cap = 0; cap <= 6; cap += 6) { /* 0: the default, 32 for each of three */
        struct lab lab = lab_open(.kernel = true);
        struct crowd c = { .looks = true, .cap = cap };

        crowd_start(&c, &lab, JOBS, 3);
        WAIT_UNTIL(atomic_load(&c.done) >= JOBS);
        uint64_t most = atomic_load(&c.most);
        cr_expect(atomic_load(&c.ahead), "nothing was fetched ahead: this cannot fail");
        cr_expect_leq(most, cap > 0 ? cap : 96u);
        crowd_end(&c);
        lab_close(&lab);
    }
}

LAB_TEST(peers, a_handler_may_stop_its_pool_and_what_is_left_stays)
{
    enum { JOBS = 1000, DONE = 100 };
    struct lab lab = lab_open();
    struct crowd c = { .stop_at = DONE };
    struct due_workers_stats s;
    due_job job;

    crowd_start(&c, &lab, JOBS, 1);
    do /* nobody else asks for it */
        cr_assert_eq(due_workers_stats_read(c.pool, &s), 0);
    while (s.threads > 0);
    cr_expect_eq(atomic_load(&c.asked), DUE_EAGAIN, "it runs itself");
    cr_expect_eq(atomic_load(&c.done), (unsigned)DONE);
    cr_expect_eq(lab_stats(&lab).waiting, (uint64_t)JOBS - DONE);
    expect_nothing_out(&lab);
    for (int i = DONE; i < JOBS; i++) {
        job = reserve(&lab);
        cr_assert_eq(atomic_fetch_add(&c.seen[number_of(&job)], 1), 0);
        cr_assert_eq(job.attempts, 1u, "what was not begun counts as an attempt");
        cr_assert_eq(due_ack(&job), 0);
    }
    crowd_end(&c);
    lab_close(&lab);
}
