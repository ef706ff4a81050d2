/* A pool of workers whose store fails just as a handler answers: nothing stays in flight, each job
 * has ended or comes again, without anybody's help, and the pool's figures say how it was. */
#include "lab/shop.h"
#include "lab/workers_lab.h"
#include "lab/take.h"

#define LEASE      100
#define DELAY      30
#define TIMEOUT_NS DUE_MS(300) /* how long a call waits for the store: well over what it takes */

enum { ACK, NACK, BURY, ANSWERS };

static const char *const names[ANSWERS] = { "ack", "nack", "bury" };

static due_answer answer_of(int which)
{
    return which == ACK    ? due_answer_ack()
           : which == NACK ? due_answer_nack(DELAY)
                           : due_answer_bury("bad");
}

/* One job, and the one handler of a pool that has it. */
struct bench {
    struct shop shop;
    struct desk desk;
};

static struct bench bench_open(int mode)
{
    struct bench b = { .shop = shop_make(.with.store_timeout_ns = TIMEOUT_NS,
                                         .with.proxies = (enum due_proxies)mode) };
    due_spec tea = { DUE_SPEC_INIT, .data = "tea", .len = 3 };
    int rc;

    do { /* a busy machine may not get to it in that time */
        rc = due_enqueue(b.shop.lab.q, &tea, 0, NULL);
        if (rc == DUE_EINDOUBT && due_flush(b.shop.lab.q, DUE_S(30)) == 0)
            rc = lab_stats(&b.shop.lab).waiting > 0 ? 0 : DUE_ETIMEDOUT;
    } while (rc == DUE_ETIMEDOUT);
    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    b.desk = desk_open_with(&b.shop.lab, 1, .lease_ns = LEASE);
    desk_until_begun(&b.desk);
    return b;
}

static void bench_close(struct bench *b)
{
    desk_close(&b->desk);
    cr_expect_eq(lab_stats(&b->shop.lab).leased, 0u);
    cr_expect_eq(lab_stats(&b->shop.lab).lent, 0u);
    shop_close(&b->shop);
}

/* In every mode that a queue with a store has. */
#define EACH_ANSWER(mode, answer)                                             \
    for (int mode = DUE_PROXIES_ADAPTIVE; mode <= DUE_PROXIES_ALWAYS; mode++) \
        for (int answer = 0; answer < ANSWERS; answer++)

/* The handler has answered, and its job has ended as it said. */
static void expect_heard(struct bench *b, int answer)
{
    struct due_workers_stats s = desk_stats(&b->desk);
    struct due_stats of = lab_stats(&b->shop.lab);

    cr_expect_eq(of.leased, 0u, "%s", names[answer]);
    cr_expect_eq(of.lent, 0u, "%s", names[answer]);
    cr_expect_eq(of.lapsed, 0u, "%s", names[answer]);
    cr_expect_eq(of.acked, (uint64_t)(answer == ACK));
    cr_expect_eq(of.nacked, (uint64_t)(answer == NACK));
    cr_expect_eq(of.dead, (uint64_t)(answer == BURY));
    cr_expect_eq(s.handled, 1u);
    cr_expect_eq(memory_disk_jobs(b->shop.disk), (size_t)(answer != ACK));
    if (answer != NACK)
        return;
    lab_advance(&b->shop.lab, DELAY);
    desk_until_begun(&b->desk);
    cr_expect_eq(b->desk.state->job.attempts, 2u);
    cr_expect_eq(b->desk.state->job.failures, 1u);
    desk_let_go(&b->desk, due_answer_ack());
    WAIT_UNTIL(lab_stats(&b->shop.lab).acked == 1 && desk_stats(&b->desk).handled == 2);
    cr_expect_eq(memory_disk_jobs(b->shop.disk), 0u);
}

/* The answer has changed nothing: the lease runs out, and the job comes again. */
static void expect_again(struct bench *b, int answer)
{
    cr_expect_eq(lab_stats(&b->shop.lab).acked, 0u, "%s", names[answer]);
    cr_expect_eq(lab_stats(&b->shop.lab).dead, 0u, "%s", names[answer]);
    cr_expect_eq(lab_stats(&b->shop.lab).nacked, 0u, "%s", names[answer]);
    desk_until_begun(&b->desk);
    cr_expect_eq(b->desk.state->job.attempts, 2u, "%s", names[answer]);
    cr_expect_eq(b->desk.state->job.failures, 1u, "%s", names[answer]);
    cr_expect_eq(lab_stats(&b->shop.lab).lapsed, 1u, "%s", names[answer]);
    desk_let_go(&b->desk, due_answer_ack());
    WAIT_UNTIL(lab_stats(&b->shop.lab).acked == 1 && desk_stats(&b->desk).handled == 2);
    cr_expect_eq(lab_stats(&b->shop.lab).lent, 0u, "%s", names[answer]);
    cr_expect_eq(memory_disk_jobs(b->shop.disk), 0u, "%s", names[answer]);
    cr_expect_eq(desk_stats(&b->desk).unanswered, 1u, "%s", names[answer]);
    cr_expect_eq(desk_stats(&b->desk).handled, 2u, "%s", names[answer]);
}

/* ---- Away ---- */

Test(stored_workers, an_answer_is_given_again_until_the_store_is_back, .timeout = 60)
{
    EACH_ANSWER(mode, answer)
    {
        struct bench b = bench_open(mode);
        uint64_t before = memory_store_calls(b.shop.store, MEMORY_READY);

        shop_fail(&b.shop, MEMORY_READY, MEMORY_ALWAYS, MEMORY_AWAY);
        desk_let_go(&b.desk, answer_of(answer));
        memory_store_until(b.shop.store, MEMORY_READY, before + 6); /* long after its timeout */
        cr_expect_eq(desk_stats(&b.desk).running, 1u);
        memory_store_forgive(b.shop.store);
        WAIT_UNTIL(desk_stats(&b.desk).handled == 1);
        cr_expect_eq(desk_stats(&b.desk).unanswered, 0u);
        expect_heard(&b, answer);
        bench_close(&b);
    }
}

/* The lease ends while the answer stands before the store. */
Test(stored_workers, an_answer_that_the_store_is_away_for_leaves_the_job_to_its_lease,
     .timeout = 60)
{
    EACH_ANSWER(mode, answer)
    {
        struct bench b = bench_open(mode);
        struct memory_limiter *limiter = memory_limiter_new(b.shop.disk);

        memory_store_fault(b.shop.store, (struct memory_fault){ .verb = MEMORY_READY,
                                                                .times = MEMORY_ALWAYS,
                                                                .kind = MEMORY_BLOCK,
                                                                .limiter = limiter });
        desk_let_go(&b.desk, answer_of(answer));
        memory_limiter_reached(limiter, 1);
        lab_advance(&b.shop.lab, LEASE);
        WAIT_UNTIL(desk_stats(&b.desk).unanswered == 1);
        memory_limiter_open(limiter);
        expect_again(&b, answer);
        bench_close(&b);
        memory_limiter_free(limiter);
    }
}

/* ---- Full ---- */

/* A job that leaves is a removal, and those a full store takes. */
Test(stored_workers, an_answer_that_a_full_store_refuses_leaves_the_job_to_its_lease, .timeout = 60)
{
    EACH_ANSWER(mode, answer)
    {
        struct bench b = bench_open(mode);

        shop_fail(&b.shop, MEMORY_COMMIT, MEMORY_ALWAYS, MEMORY_FULL);
        desk_let_go(&b.desk, answer_of(answer));
        WAIT_UNTIL(desk_stats(&b.desk).handled == 1);
        if (answer == ACK) {
            expect_heard(&b, answer);
        } else {
            cr_expect_eq(lab_stats(&b.shop.lab).leased, 1u);
            lab_advance(&b.shop.lab, LEASE);
            expect_again(&b, answer);
        }
        bench_close(&b);
    }
}

/* ---- In doubt ---- */

Test(stored_workers, an_answer_in_doubt_for_a_moment_is_seen_through, .timeout = 60)
{
    for (int kind = MEMORY_DOUBT_NOT; kind <= MEMORY_DOUBT_LANDED; kind++)
        EACH_ANSWER(mode, answer)
        {
            struct bench b = bench_open(mode);

            shop_fail(&b.shop, MEMORY_COMMIT, 1, (enum memory_fault_kind)kind);
            desk_let_go(&b.desk, answer_of(answer));
            WAIT_UNTIL(desk_stats(&b.desk).handled == 1);
            cr_expect_eq(due_flush(b.shop.lab.q, DUE_S(30)), 0);
            expect_heard(&b, answer);
            bench_close(&b);
        }
}

/* The worker goes on without having heard; the queue does not. */
Test(stored_workers, an_answer_that_stays_in_doubt_is_seen_through_without_the_worker,
     .timeout = 60)
{
    for (int kind = MEMORY_DOUBT_NOT; kind <= MEMORY_DOUBT_LANDED; kind++)
        EACH_ANSWER(mode, answer)
        {
            struct bench b = bench_open(mode);

            shop_fail(&b.shop, MEMORY_COMMIT, MEMORY_ALWAYS, (enum memory_fault_kind)kind);
            desk_let_go(&b.desk, answer_of(answer));
            WAIT_UNTIL(desk_stats(&b.desk).unanswered == 1);
            memory_store_forgive(b.shop.store);
            cr_expect_eq(due_flush(b.shop.lab.q, DUE_S(30)), 0);
            expect_heard(&b, answer);
            bench_close(&b);
        }
}

/* ---- Nobody waits ---- */

/* The worker was told that all is well before the store was asked. */
Test(stored_workers, an_answer_that_is_refused_when_nobody_waits_leaves_the_job_to_its_lease,
     .timeout = 60)
{
    for (int answer = NACK; answer < ANSWERS; answer++) {
        struct shop s = shop_make(.with.confirm = DUE_CONFIRM_ASYNC);
        struct desk desk = desk_open_with(&s.lab, 1, .lease_ns = LEASE);

        lab_enqueue(&s.lab, "tea", .delay_ns = 0);
        desk_until_begun(&desk);
        shop_fail(&s, MEMORY_COMMIT, MEMORY_ALWAYS, MEMORY_FULL);
        desk_let_go(&desk, answer_of(answer));
        WAIT_UNTIL(desk_stats(&desk).handled == 1);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        cr_expect_eq(desk_stats(&desk).unanswered, 0u);
        cr_expect_eq(lab_stats(&s.lab).nacked + lab_stats(&s.lab).dead, 0u);
        lab_advance(&s.lab, answer == NACK ? LEASE : DUE_S(1));
        desk_until_begun(&desk);
        cr_expect_eq(desk.state->job.attempts, 2u, "%s", names[answer]);
        desk_let_go(&desk, due_answer_ack());
        WAIT_UNTIL(desk_stats(&desk).acked == 1);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        cr_expect_eq(memory_disk_jobs(s.disk), 0u);
        desk_close(&desk);
        cr_expect_eq(lab_stats(&s.lab).leased + lab_stats(&s.lab).lent, 0u);
        shop_close(&s);
    }
}

/* ---- Somebody else's, and gone ---- */

Test(stored_workers, an_answer_of_who_owns_the_jobs_no_more_ends_the_pool, .timeout = 60)
{
    EACH_ANSWER(mode, answer)
    {
        struct bench b = bench_open(mode);

        memory_disk_fence(b.shop.disk);
        desk_let_go(&b.desk, answer_of(answer));
        WAIT_UNTIL(desk_stats(&b.desk).threads == 0);
        cr_expect_eq(desk_stats(&b.desk).unanswered, 1u, "%s", names[answer]);
        lab_advance(&b.shop.lab, LEASE);
        cr_expect_eq(memory_disk_jobs(b.shop.disk), 1u, "%s", names[answer]);
        bench_close(&b);
    }
}

/* Before the answer landed, or after: then it comes again, or has ended. */
Test(stored_workers, an_answer_in_which_the_program_dies_has_landed_or_the_job_comes_again,
     .timeout = 60)
{
    for (int landed = 0; landed < 2; landed++)
        EACH_ANSWER(mode, answer)
        {
            struct bench b = bench_open(mode);
            due_job job;

            shop_fail(&b.shop, MEMORY_COMMIT, 1, landed ? MEMORY_CRASH_AFTER : MEMORY_CRASH);
            desk_let_go(&b.desk, answer_of(answer));
            desk_close(&b.desk);
            cr_expect_eq(due_close(b.shop.lab.q, DUE_CLOSE_DISCARD, TIMEOUT_NS), 0);
            shop_crash(&b.shop, (struct lab_options){ .start_ns = 0 });
            struct due_stats s = lab_stats(&b.shop.lab);
            cr_expect_eq(s.leased, 0u);
            cr_expect_eq(s.waiting, (uint64_t)(!landed || answer == NACK), "%s", names[answer]);
            cr_expect_eq(s.dead, (uint64_t)(landed && answer == BURY), "%s", names[answer]);
            if (landed && answer == NACK) {
                lab_turn_to(&b.shop.lab, DELAY - 1);
                cr_expect_eq(take_leased(b.shop.lab.q, &job, LEASE, 0), DUE_EAGAIN);
                lab_turn_to(&b.shop.lab, DELAY);
            }
            if (s.waiting > 0) {
                cr_assert_eq(take_leased(b.shop.lab.q, &job, LEASE, 0), 0);
                cr_expect_eq(due_ack(&job), 0);
            }
            shop_close(&b.shop);
        }
}

static atomic_uint ends; /* of workers, as they are told */

static void hear_ends(void *ctx, enum due_log_level level, const char *text)
{
    (void)ctx;
    if (level == DUE_LOG_ERROR && strstr(text, "a worker ends: another process owns") != NULL)
        atomic_fetch_add(&ends, 1);
}

static void let_go(void *ctx, const due_job *job)
{
    (void)ctx;
    (void)job;
}

/* Each of its workers, once. */
Test(stored_workers, whose_queue_is_somebody_elses_end_and_say_so, .timeout = 60)
{
    for (int mode = DUE_PROXIES_ADAPTIVE; mode <= DUE_PROXIES_ALWAYS; mode++) {
        struct shop s = shop_make(.with.on_log = hear_ends, .with.on_discard = let_go,
                                  .with.proxies = (enum due_proxies)mode);
        due_spec spec = { DUE_SPEC_INIT };

        atomic_store(&ends, 0);
        struct desk desk = desk_open(&s.lab, 2);
        WAIT_UNTIL(desk_stats(&desk).idle == 2);
        memory_disk_fence(s.disk);
        int rc = due_enqueue(s.lab.q, &spec, 0, NULL); /* in doubt, if it was interrupted */
        cr_expect(rc == DUE_EFENCED || rc == DUE_EINDOUBT, "%s", due_error_name(rc));
        cr_expect_eq(memory_disk_jobs(s.disk), 0u, "who does not own the jobs puts one in");
        WAIT_UNTIL(desk_stats(&desk).threads == 0);
        cr_expect_eq(atomic_load(&ends), 2u);
        desk_close(&desk);
        shop_close(&s);
    }
}

/* ---- Many, and a store that fails at random ---- */

enum { JOBS = 400 };

static unsigned kind_of(const due_job *job)
{
    return *(const unsigned char *)job->data;
}

static void answer_by_kind(void *ctx, const due_job *job, due_answer *answer)
{
    (void)ctx;
    switch (kind_of(job)) {
    case 0:
        *answer = due_answer_ack();
        return;
    case 1:
        *answer = job->attempts > 2 ? due_answer_ack() : due_answer_nack(DUE_MS(1));
        return;
    case 2:
        *answer = due_answer_bury("bad");
        return;
    default:
        *answer = due_answer_nack(DUE_DELAY_POLICY); /* until its last attempt */
        return;
    }
}

static int count_living(void *ctx, const due_record *record)
{
    *(unsigned *)ctx += record->cause == 0;
    return 0;
}

static unsigned living(struct shop *s)
{
    unsigned n = 0;

    cr_assert_eq(memory_disk_each(s->disk, count_living, &n), 0);
    return n;
}

/* Nothing is called meanwhile: what comes again comes by itself. */
Test(stored_workers, nothing_stays_in_flight_however_the_store_fails, .timeout = 100)
{
    static const due_retry thrice = { .kind = DUE_RETRY_FIXED,
                                      .attempts_max = 3,
                                      .delay_ns = DUE_MS(1) };
    static const unsigned char kinds[] = { 0, 1, 2, 3 };
    const due_workers_options o = { DUE_WORKERS_INIT, .lease_ns = DUE_MS(100) };
    struct memory_dice dice = { .seed = 7 };
    struct shop s =
        shop_new(NULL, (struct lab_options){ .kernel = true, .with.store_timeout_ns = TIMEOUT_NS });
    struct due_workers_stats pool;
    due_workers *w;

    for (int i = 0; i < JOBS; i++) {
        due_spec spec = { DUE_SPEC_INIT, .data = &kinds[i % 4], .len = 1,
                          .more = EXTRA(.retry = i % 4 == 3 ? &thrice : NULL) };

        cr_assert_eq(due_enqueue(s.lab.q, &spec, 0, NULL), 0);
    }
    dice.per_mille[MEMORY_AWAY] = dice.per_mille[MEMORY_FULL] = 100;
    dice.per_mille[MEMORY_DOUBT_NOT] = dice.per_mille[MEMORY_DOUBT_LANDED] = 100;
    memory_store_dice(s.store, &dice);
    cr_assert_eq(due_workers_start(&w, s.lab.q, NULL, 0, 3, answer_by_kind, NULL, &o), 0);
    while (living(&s) > 0)
        crew_sleep(DUE_MS(1));
    memory_store_dice(s.store, &(struct memory_dice){ .seed = 1 });
    cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    cr_expect_eq(due_workers_stop(w, DUE_FOREVER), 0);
    cr_expect_eq(due_workers_stats_read(w, &pool), 0);
    cr_expect_eq(due_workers_free(w), 0);

    struct due_stats of = lab_stats(&s.lab);
    cr_expect_eq(of.leased + of.lent + of.waiting, 0u);
    cr_expect_eq(of.acked, JOBS / 2u);
    cr_expect_eq(of.dead, JOBS / 2u);
    cr_expect_eq(memory_disk_jobs(s.disk), JOBS / 2u);
    cr_expect_gt(pool.unanswered, 0u, "nothing has failed: this proves nothing");
    cr_expect(pool.acked <= of.acked && of.acked <= pool.acked + pool.unanswered);
    cr_expect(pool.retried <= of.nacked && of.nacked <= pool.retried + pool.unanswered);
    shop_close(&s);
}
