/* One queue for many processes: the keeper of a pool there, whose word is on its way for a while,
 * may be refused, and may meet that of a handler. */
#include "api/ack.h"
#include "lab/mall.h"
#include "lab/take.h"
#include "lab/workers_lab.h"

#define LEASE 100
#define PART  13 /* an eighth of it, as the keeper counts: so soon it tries again */

/* Process 1 waits for its store however busy the machine is. */
static struct mall mall_of_two(void)
{
    struct mall m = mall_make(1);
    const struct lab_options waits = { .with.store_timeout_ns = DUE_S(50) };

    mall_join(&m, waits);
    return m;
}

/* ---- A handler that runs ---- */

/* Process 1 has a pool, and its handler a job since 0. */
static struct desk begin_handler(struct mall *m)
{
    struct desk desk = desk_open_with(&m->lab[1], 1, .lease_ns = LEASE);

    lab_enqueue(&m->lab[0], "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    crew_until_others_asleep();
    return desk;
}

static void turn(struct mall *m, int64_t to_ns)
{
    mall_turn_to(m, to_ns);
    crew_until_others_asleep();
}

/* Where its lease ends, once nothing is on its way. */
static int64_t settled_end(const struct desk *desk)
{
    int64_t end = 0;
    int rc;

    WAIT_UNTIL((rc = due__lease_end(desk->state->at, &end)) != DUE_EBUSY);
    cr_expect_eq(rc, 0, "%s", due_error_name(rc));
    return end;
}

static void expect_on_its_way(const struct desk *desk, int64_t end_ns)
{
    int64_t end = 0;
    int rc = due__lease_end(desk->state->at, &end);

    cr_expect_eq(rc, DUE_EBUSY, "%s", due_error_name(rc));
    cr_expect_eq(end, end_ns);
}

/* It acks. */
static void end_handler(struct mall *m, struct desk *desk)
{
    cr_expect_eq(due_job_stopping(desk->state->at), 0);
    desk_let_go(desk, due_answer_ack());
    WAIT_UNTIL(desk_stats(desk).acked == 1);
    desk_close(desk);
    cr_expect_eq(memory_disk_jobs(m->disk), 0u);
    mall_close(m);
}

static void fail(struct mall *m, enum memory_fault_kind kind, uint64_t times)
{
    memory_store_fault(m->store[1], (struct memory_fault){ .verb = MEMORY_WORK,
                                                           .times = times,
                                                           .kind = kind,
                                                           .answer = DUE_EDURABILITY });
}

/* ---- The keeper ---- */

/* As often as that may be in half of a lease, and it is counted once. */
MALL_TEST(share_keeper, tries_again_what_the_store_has_refused)
{
    for (int refused = 1; refused <= 3; refused++) {
        struct mall m = mall_of_two();
        struct desk desk = begin_handler(&m);
        int64_t at = 50;

        fail(&m, MEMORY_ANSWER, (uint64_t)refused);
        turn(&m, 49);
        cr_expect_eq(desk_stats(&desk).extended, 0u);
        for (int i = 0; i < refused; i++) {
            turn(&m, at);
            cr_expect_eq(settled_end(&desk), LEASE, "%d of %d", i, refused);
            turn(&m, at + PART - 1);
            cr_expect_eq(settled_end(&desk), LEASE, "too soon: %d of %d", i, refused);
            at += PART;
        }
        turn(&m, at);
        cr_expect_eq(settled_end(&desk), at + LEASE);
        cr_expect_eq(desk_stats(&desk).extended, 1u);
        at += LEASE / 2;
        turn(&m, at);
        cr_expect_eq(settled_end(&desk), at + LEASE);
        cr_expect_eq(desk_stats(&desk).extended, 2u);
        end_handler(&m, &desk);
    }
}

/* However long it was away, as long as nobody else has the job: its handler is told to stop when
 * the lease is over here, and that it need not once it is known that it goes on. */
MALL_TEST(share_keeper, goes_on_when_the_store_is_there_again)
{
    static const struct {
        enum memory_fault_kind kind;
        int64_t at_ns;  /* it is there again */
        int64_t end_ns; /* of the lease, by then: from when it was sent */
    } ways[] = { { MEMORY_AWAY, 80, 180 },         { MEMORY_AWAY, 150, 250 },
                 { MEMORY_AWAY, 1000, 1100 },      { MEMORY_DOUBT_NOT, 80, 160 },
                 { MEMORY_DOUBT_NOT, 140, 160 },   { MEMORY_DOUBT_LANDED, 80, 160 },
                 { MEMORY_DOUBT_LANDED, 140, 160 } };

    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct mall m = mall_of_two();
        struct desk desk = begin_handler(&m);
        int64_t at = ways[i].at_ns;

        fail(&m, ways[i].kind, MEMORY_ALWAYS);
        turn(&m, 60);
        expect_on_its_way(&desk, LEASE);
        turn(&m, 75);
        turn(&m, at);
        expect_on_its_way(&desk, LEASE);
        cr_expect_eq(due_job_stopping(desk.state->at), at >= LEASE);
        memory_store_forgive(m.store[1]);
        cr_expect_eq(settled_end(&desk), ways[i].end_ns, "%zu", i);
        cr_expect_eq(due_job_stopping(desk.state->at), 0);
        cr_expect_eq(desk_stats(&desk).extended, 1u);
        int64_t half = ways[i].end_ns - LEASE / 2;
        at = half > at ? half : at + PART;
        turn(&m, at);
        cr_expect_eq(settled_end(&desk), at + LEASE, "%zu", i);
        cr_expect_eq(desk_stats(&desk).extended, 2u);
        end_handler(&m, &desk);
    }
}

/* Its handler is told, and so is who has it now, of nothing. */
MALL_TEST(share_keeper, gives_up_what_another_has_by_then)
{
    struct mall m = mall_of_two();
    struct desk desk = begin_handler(&m);
    due_job job;
    int64_t end;

    fail(&m, MEMORY_AWAY, MEMORY_ALWAYS);
    turn(&m, 60);
    turn(&m, 150);
    cr_assert_eq(mall_reserve(&m, 0, &job, 10 * LEASE), 0);
    expect_on_its_way(&desk, LEASE);
    memory_store_forgive(m.store[1]);
    WAIT_UNTIL(due__lease_end(desk.state->at, &end) == DUE_ESTALE);
    for (int64_t at = 200; at <= 1000; at += 200) {
        turn(&m, at);
        cr_expect_eq(due__lease_end(desk.state->at, &end), DUE_ESTALE);
        cr_expect_eq(due_job_stopping(desk.state->at), 1);
        cr_expect_eq(due_job_stopping(&job), 0);
    }
    cr_expect_eq(desk_stats(&desk).extended, 1u, "which was sent");
    cr_expect_eq(lab_stats(&m.lab[1]).leased, 0u);
    desk_let_go(&desk, due_answer_ack());
    WAIT_UNTIL(desk_stats(&desk).lost == 1);
    cr_expect_eq(due_ack(&job), 0);
    desk_close(&desk);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

/* The keeper is who hears of it. */
MALL_TEST(share_keeper, of_a_process_that_was_turned_out_has_its_handler_stop)
{
    struct mall m = mall_of_two();
    struct desk desk = begin_handler(&m);

    memory_store_evict(m.store[1]);
    turn(&m, 49);
    cr_expect_eq(due_job_stopping(desk.state->at), 0, "it does not know it yet");
    mall_turn_to(&m, 50);
    WAIT_UNTIL(due_job_stopping(desk.state->at) == 1);
    cr_expect_eq(settled_end(&desk), LEASE);
    desk_let_go(&desk, due_answer_ack());
    WAIT_UNTIL(desk_stats(&desk).handled == 1);
    cr_expect_eq(desk_stats(&desk).acked, 0u);
    desk_close(&desk);
    cr_expect_eq(memory_disk_jobs(m.disk), 1u);
    mall_close(&m);
}

/* Its jobs are others' when their leases are over, and no sooner. */
MALL_TEST(share_keeper, of_a_process_that_was_turned_out_extends_nothing)
{
    struct mall m = mall_of_two();
    struct desk desk = begin_handler(&m);
    struct crew_call other;

    memory_store_evict(m.store[1]);
    crew_call_reserve(&other, m.lab[0].q, NULL, 0, 10 * LEASE, DUE_FOREVER);
    crew_call_asleep(&other);
    turn(&m, 60);
    turn(&m, LEASE - 1);
    cr_expect_eq(settled_end(&desk), LEASE);
    cr_expect(!atomic_load(&other.thread.back));
    turn(&m, LEASE);
    cr_expect_eq(due_job_stopping(desk.state->at), 1);
    cr_expect_eq(crew_call_answer(&other), 0);
    turn(&m, 3 * LEASE);
    cr_expect_eq(due_job_stopping(desk.state->at), 1);
    cr_expect_leq(desk_stats(&desk).extended, 1u);
    desk_let_go(&desk, due_answer_ack());
    WAIT_UNTIL(desk_stats(&desk).handled == 1);
    cr_expect_eq(desk_stats(&desk).acked, 0u);
    cr_expect_eq(due_ack(&other.job), 0);
    desk_close(&desk);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

static int close_main(void *q)
{
    return due_close(q, DUE_CLOSE_DISCARD, DUE_FOREVER);
}

/* The handler's answer is sent after it, and waited for. */
MALL_TEST(share_keeper, is_waited_for_by_who_closes_the_queue)
{
    struct mall m = mall_of_two();
    struct desk desk = begin_handler(&m);
    struct crew_thread closes;

    fail(&m, MEMORY_AWAY, MEMORY_ALWAYS);
    turn(&m, 60);
    expect_on_its_way(&desk, LEASE);
    crew_go(&closes, close_main, m.lab[1].q);
    crew_until_asleep(&closes);
    cr_expect_eq(due_job_stopping(desk.state->at), 1);
    turn(&m, 90);
    expect_on_its_way(&desk, LEASE);
    desk_let_go(&desk, due_answer_ack());
    crew_until_others_asleep();
    cr_expect(!atomic_load(&closes.back));
    cr_expect_eq(memory_disk_jobs(m.disk), 1u);
    memory_store_forgive(m.store[1]);
    cr_expect_eq(crew_join(&closes), 0);
    cr_expect_eq(desk_stats(&desk).acked, 1u);
    desk_close(&desk);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

/* There it has one, in a hundred years, from which the keeper counts. */
MALL_TEST(share_keeper, leaves_a_lease_without_end_alone)
{
    struct mall m = mall_of_two();
    struct desk desk = desk_open_with(&m.lab[1], 1, .lease_ns = DUE_FOREVER);

    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    crew_until_others_asleep();
    turn(&m, DUE_S(1));
    turn(&m, DUE_S(2));
    cr_expect_gt(settled_end(&desk), DUE_S(86400) * 36500);
    cr_expect_eq(desk_stats(&desk).extended, 0u);
    end_handler(&m, &desk);
}

/* ---- And a handler ---- */

struct extending {
    due_job job;
    int64_t lease_ns;
    struct crew_thread thread;
};

static int extend_main(void *arg)
{
    struct extending *e = arg;

    return due_extend(&e->job, e->lease_ns);
}

/* It waits for what is on its way. */
static void extend_meanwhile(struct extending *e, const due_job *job, int64_t lease_ns)
{
    *e = (struct extending){ .job = *job, .lease_ns = lease_ns };
    crew_go(&e->thread, extend_main, e);
    crew_until_asleep(&e->thread);
    cr_expect(!atomic_load(&e->thread.back), "%s", due_error_name(e->thread.rc));
}

/* The later end of both holds, whatever becomes of the keeper's. */
MALL_TEST(share_keeper, does_not_take_its_job_from_a_handler_that_extends_it)
{
    static const enum memory_fault_kind kinds[] = { MEMORY_AWAY, MEMORY_DOUBT_NOT,
                                                    MEMORY_DOUBT_LANDED };
    static const int64_t leases[] = { 10, LEASE, 10 * LEASE };

    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++) {
            struct mall m = mall_of_two();
            struct desk desk = begin_handler(&m);
            struct extending e;

            fail(&m, kinds[i], MEMORY_ALWAYS);
            turn(&m, 60);
            expect_on_its_way(&desk, LEASE);
            extend_meanwhile(&e, desk.state->at, leases[j]);
            memory_store_forgive(m.store[1]);
            int rc = crew_join(&e.thread);
            cr_expect_eq(rc, 0, "%s", due_error_name(rc));
            int64_t end = 60 + (leases[j] > LEASE ? leases[j] : LEASE);
            cr_expect_eq(settled_end(&desk), end, "%zu %zu", i, j);
            for (int64_t at = 80; at < end - LEASE / 2; at += 170) {
                turn(&m, at);
                cr_expect_eq(settled_end(&desk), end, "%zu %zu: at %jd", i, j, (intmax_t)at);
            }
            turn(&m, end - LEASE / 2);
            cr_expect_eq(settled_end(&desk), end + LEASE / 2);
            cr_expect_eq(desk_stats(&desk).extended, 2u);
            end_handler(&m, &desk);
        }
}

/* And the other way about. */
MALL_TEST(share_keeper, looks_again_when_a_handler_extends_its_job)
{
    struct mall m = mall_of_two();
    struct desk desk = begin_handler(&m);
    struct extending e;

    fail(&m, MEMORY_AWAY, MEMORY_ALWAYS);
    extend_meanwhile(&e, desk.state->at, 3 * LEASE);
    turn(&m, 60);
    turn(&m, 80);
    expect_on_its_way(&desk, LEASE);
    cr_expect_eq(desk_stats(&desk).extended, 0u);
    memory_store_forgive(m.store[1]);
    int rc = crew_join(&e.thread);
    cr_expect_eq(rc, 0, "%s", due_error_name(rc));
    cr_expect_eq(settled_end(&desk), 80 + 3 * LEASE);
    turn(&m, 80 + 3 * LEASE - LEASE / 2);
    cr_expect_eq(settled_end(&desk), 80 + 3 * LEASE + LEASE / 2);
    cr_expect_eq(desk_stats(&desk).extended, 1u);
    end_handler(&m, &desk);
}

/* It waits no longer than for any store. */
MALL_TEST(share_keeper, leaves_a_handler_in_time_that_extends_its_job)
{
    struct mall m = mall_make(1);
    const struct lab_options hurries = { .with.store_timeout_ns = DUE_MS(20) };

    mall_join(&m, hurries);
    struct desk desk = begin_handler(&m);
    int rc;
    due_job job = *desk.state->at;
    fail(&m, MEMORY_AWAY, MEMORY_ALWAYS);
    turn(&m, 60);
    cr_expect_eq(due_extend(&job, 10 * LEASE), DUE_ETIMEDOUT);
    expect_on_its_way(&desk, LEASE);
    memory_store_forgive(m.store[1]);
    cr_expect_eq(settled_end(&desk), 60 + LEASE, "the keeper's");
    while ((rc = due_extend(&job, 10 * LEASE)) == DUE_ETIMEDOUT || rc == DUE_EINDOUBT)
        continue; /* the machine is busy */
    cr_expect_eq(rc, 0, "%s", due_error_name(rc));
    cr_expect_eq(settled_end(&desk), 60 + 10 * LEASE);
    end_handler(&m, &desk);
}

/* Who has lost his job meanwhile is told so. */
MALL_TEST(share_keeper, waits_with_a_handler_whose_job_another_has)
{
    struct mall m = mall_of_two();
    struct desk desk = begin_handler(&m);
    struct extending e;
    due_job job;

    fail(&m, MEMORY_AWAY, MEMORY_ALWAYS);
    turn(&m, 60);
    extend_meanwhile(&e, desk.state->at, LEASE);
    turn(&m, 150);
    cr_assert_eq(mall_reserve(&m, 0, &job, 10 * LEASE), 0);
    memory_store_forgive(m.store[1]);
    int rc = crew_join(&e.thread);
    cr_expect_eq(rc, DUE_ESTALE, "%s", due_error_name(rc));
    desk_let_go(&desk, due_answer_ack());
    WAIT_UNTIL(desk_stats(&desk).lost == 1);
    cr_expect_eq(due_ack(&job), 0);
    desk_close(&desk);
    mall_close(&m);
}

/* ---- Without a pool ---- */

/* Of a queue whose calls do not wait for the store the second one does for the first. */
MALL_TEST(share_extend, of_two_in_a_row_the_second_one_holds)
{
    static const int64_t leases[] = { 30, 10 * LEASE };

    for (size_t i = 0; i < 2; i++) {
        struct mall m = mall_make(1);
        const struct lab_options async = { .with.confirm = DUE_CONFIRM_ASYNC };
        struct extending e;
        due_job job;
        int64_t end = 0;

        mall_join(&m, async);
        lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
        cr_assert_eq(mall_reserve(&m, 1, &job, LEASE), 0);
        crew_until_others_asleep();
        fail(&m, MEMORY_AWAY, MEMORY_ALWAYS);
        mall_turn_to(&m, 60);
        cr_expect_eq(due_extend(&job, 2 * LEASE), 0);
        extend_meanwhile(&e, &job, leases[i]);
        memory_store_forgive(m.store[1]);
        cr_expect_eq(crew_join(&e.thread), 0);
        WAIT_UNTIL(due__lease_end(&job, &end) == 0);
        cr_expect_eq(end, 60 + leases[i], "it moves the end, also to an earlier one");
        cr_expect_eq(due_ack(&job), 0);
        cr_expect_eq(due_flush(m.lab[1].q, DUE_FOREVER), 0);
        cr_expect_eq(memory_disk_jobs(m.disk), 0u);
        mall_close(&m);
    }
}

struct answering {
    due_job jobs[2];
    size_t n;
    bool batch;
    struct crew_thread thread;
};

static int ack_main(void *arg)
{
    struct answering *a = arg;

    return a->batch ? due_ack_batch(a->jobs, a->n, NULL) : due_ack(&a->jobs[0]);
}

/* Whoever has called before a close is waited for there, though his job was on its way. */
MALL_TEST(share_extend, is_waited_for_with_the_ack_behind_it_by_who_closes)
{
    for (size_t n = 0; n <= 2; n += 2) {
        struct mall m = mall_make(1);
        const struct lab_options async = { .with.confirm = DUE_CONFIRM_ASYNC,
                                           .with.store_timeout_ns = DUE_S(50) };
        struct answering a = { .n = n, .batch = n > 0 };
        struct crew_thread closes;

        mall_join(&m, async);
        for (size_t i = 0; i < (a.batch ? n : 1); i++) {
            lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
            cr_assert_eq(mall_reserve(&m, 1, &a.jobs[i], LEASE), 0);
        }
        crew_until_others_asleep();
        fail(&m, MEMORY_AWAY, MEMORY_ALWAYS);
        mall_turn_to(&m, 60);
        cr_expect_eq(due_extend(&a.jobs[0], 2 * LEASE), 0);
        crew_go(&a.thread, ack_main, &a);
        crew_until_asleep(&a.thread);
        cr_expect(!atomic_load(&a.thread.back));
        crew_go(&closes, close_main, m.lab[1].q);
        crew_until_asleep(&closes);
        cr_expect(!atomic_load(&closes.back));
        memory_store_forgive(m.store[1]);
        cr_expect_eq(crew_join(&a.thread), (int)n);
        cr_expect_eq(crew_join(&closes), 0);
        cr_expect_eq(memory_disk_jobs(m.disk), 0u);
        mall_close(&m);
    }
}
