/* A pool of workers: what a handler is given, what it may do, and what its answers mean. */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "due/metrics.h"
#include "lab/workers_lab.h"
#include "lab/take.h"

#define LEASE 100

LAB_TEST(workers, a_job_that_is_done_is_acked)
{
    struct lab lab = lab_open();
    struct desk desk = desk_open(&lab, 2);

    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10, .priority = 7);
    lab_turn_to(&lab, 10);
    desk_until_begun(&desk);
    cr_expect_str_eq(desk.state->text, "tea");
    cr_expect(due_id_equal(desk.state->job.id, id));
    cr_expect_eq(desk.state->job.priority, 7);
    cr_expect_eq(desk.state->job.deadline_ns, 10);
    cr_expect_eq(desk.state->job.attempts, 1u);
    cr_expect_eq(desk.state->job.failures, 0u);
    cr_expect_eq(desk_stats(&desk).running, 1u);
    cr_expect_eq(lab_stats(&lab).leased, 1u);
    cr_expect_eq(due_job_stopping(desk.state->at), 0);
    desk_let_go(&desk, due_answer_ack());
    WAIT_UNTIL(desk_stats(&desk).acked == 1);
    cr_expect_eq(lab_stats(&lab).acked, 1u);
    desk_close(&desk);
    lab_close(&lab);
}

LAB_TEST(workers, a_handler_is_not_called_early)
{
    struct lab lab = lab_open();
    struct desk desk = desk_open(&lab, 2);

    lab_enqueue(&lab, "tea", .at_ns = 10);
    lab_turn_to(&lab, 9);
    WAIT_UNTIL(desk_stats(&desk).idle == 2);
    cr_expect_eq(atomic_load(&desk.state->begun_count), 0u);
    lab_turn_to(&lab, 10);
    desk_until_begun(&desk);
    desk_let_go(&desk, due_answer_ack());
    desk_close(&desk);
    lab_close(&lab);
}

LAB_TEST(workers, a_retry_comes_again_after_its_delay)
{
    struct lab lab = lab_open();
    struct desk desk = desk_open(&lab, 1);

    lab_enqueue(&lab, "tea", .at_ns = 10);
    lab_turn_to(&lab, 20);
    desk_until_begun(&desk);
    desk_let_go(&desk, due_answer_nack(30));
    WAIT_UNTIL(desk_stats(&desk).retried == 1);
    lab_turn_to(&lab, 49);
    WAIT_UNTIL(desk_stats(&desk).idle == 1);
    cr_expect_eq(atomic_load(&desk.state->begun_count), 1u);
    lab_turn_to(&lab, 50);
    desk_until_begun(&desk);
    cr_expect_eq(desk.state->job.attempts, 2u);
    cr_expect_eq(desk.state->job.failures, 1u);
    cr_expect_eq(desk.state->job.deadline_ns, 10);
    desk_let_go(&desk, due_answer_nack(-5));
    desk_until_begun(&desk);
    cr_expect_eq(desk.state->job.attempts, 3u);
    desk_let_go(&desk, due_answer_ack());
    WAIT_UNTIL(desk_stats(&desk).acked == 1);
    cr_expect_eq(desk_stats(&desk).handled, 3u);
    desk_close(&desk);
    lab_close(&lab);
}

LAB_TEST(workers, an_answer_that_was_never_made_loses_nothing)
{
    struct lab lab = lab_open();
    struct desk desk = desk_open(&lab, 1);

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    desk_let_go(&desk, (due_answer){ .kind = DUE_ANSWER_NONE });
    WAIT_UNTIL(desk_stats(&desk).retried == 1);
    cr_expect_eq(lab_stats(&lab).acked, 0u);
    desk_until_begun(&desk);
    desk_let_go(&desk, due_answer_ack());
    desk_close(&desk);
    lab_close(&lab);
}

Test(workers, a_reason_is_cut_where_it_does_not_fit)
{
    char why[200];

    memset(why, 'x', sizeof why - 1);
    why[sizeof why - 1] = '\0';
    due_answer answer = due_answer_bury(why);
    cr_expect_eq(answer.kind, DUE_ANSWER_BURY);
    cr_expect_eq(strlen(answer.why), (size_t)DUE_ANSWER_WHY - 1);
    cr_expect_str_eq(due_answer_bury("no such address").why, "no such address");
    cr_expect_str_eq(due_answer_bury(NULL).why, "");
}

LAB_TEST(workers, only_jobs_of_its_topics_are_taken)
{
    struct lab lab = lab_open();
    int mail = lab_topic(&lab, "mail");
    int post = lab_topic(&lab, "post");
    int topics[] = { post };
    struct desk desk = desk_open_on(&lab, 2, topics, 1, &(due_workers_options){ DUE_WORKERS_INIT });

    topics[0] = mail; /* it has a copy */
    lab_enqueue(&lab, "a letter", .topic = mail);
    lab_enqueue(&lab, "a parcel", .topic = post);
    desk_until_begun(&desk);
    cr_expect_str_eq(desk.state->text, "a parcel");
    desk_let_go(&desk, due_answer_ack());
    WAIT_UNTIL(desk_stats(&desk).idle == 2);
    cr_expect_eq(atomic_load(&desk.state->begun_count), 1u);
    cr_expect_str_eq(lab_dequeue(&lab), "a letter");
    desk_close(&desk);
    lab_close(&lab);
}

/* Of two of three, and what they give back comes to them again. */
LAB_TEST(workers, jobs_of_each_of_its_topics_are_taken)
{
    struct lab lab = lab_open();
    int two[] = { lab_topic(&lab, "mail"), lab_topic(&lab, "post") };
    int third = lab_topic(&lab, "fax");
    struct desk desk = desk_open_on(&lab, 2, two, 2, &(due_workers_options){ DUE_WORKERS_INIT });

    lab_enqueue(&lab, "left alone", .topic = third);
    lab_enqueue(&lab, "also", .topic = 0);
    for (int i = 0; i < 6; i++) {
        WAIT_UNTIL(desk_stats(&desk).idle == 2);
        lab_enqueue(&lab, "job", .topic = two[i % 2]);
        for (unsigned attempt = 1; attempt <= 2; attempt++) {
            desk_until_begun(&desk);
            cr_expect_eq(desk.state->job.topic, two[i % 2]);
            cr_expect_eq(desk.state->job.attempts, attempt);
            desk_let_go(&desk, attempt == 1 ? due_answer_nack(0) : due_answer_ack());
        }
    }
    WAIT_UNTIL(desk_stats(&desk).acked == 6 && desk_stats(&desk).idle == 2);
    cr_expect_eq(atomic_load(&desk.state->begun_count), 12u);
    cr_expect_eq(lab_stats(&lab).waiting, 2u);
    cr_expect_str_eq(lab_dequeue_from(&lab, third), "left alone");
    desk_close(&desk);
    lab_close(&lab);
}

/* However many come while it waits: for the others somebody else may be free sooner. */
LAB_TEST(workers, a_worker_that_waits_takes_one_job)
{
    struct lab lab = lab_open();
    struct desk desk = desk_open(&lab, 1);
    due_spec specs[2] = { { DUE_SPEC_INIT }, { DUE_SPEC_INIT } };

    for (int i = 0; i < 5; i++) {
        WAIT_UNTIL(desk_stats(&desk).idle == 1);
        cr_assert_eq(due_enqueue_batch(lab.q, specs, 2, 0, NULL), 2);
        desk_until_begun(&desk);
        cr_expect_eq(desk_stats(&desk).ahead, 0u);
        cr_expect_eq(lab_stats(&lab).leased, 1u);
        desk_let_go(&desk, due_answer_ack());
        desk_until_begun(&desk);
        desk_let_go(&desk, due_answer_ack());
    }
    desk_close(&desk);
    lab_close(&lab);
}

static bool cancellable(void)
{
    int state;

    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    return state == PTHREAD_CANCEL_ENABLE;
}

Test(workers, its_calls_leave_their_thread_as_cancellable_as_it_was, .timeout = 60)
{
    struct lab lab = lab_open();
    due_workers_options options = { DUE_WORKERS_INIT };
    struct desk desk = desk_open_on(&lab, 1, NULL, 0, &options);

    cr_expect(cancellable(), "after the start");
    cr_expect_eq(due_workers_stop(desk.pool, DUE_FOREVER), 0);
    cr_expect(cancellable(), "after the stop");
    cr_expect_eq(due_workers_free(desk.pool), 0);
    cr_expect(cancellable(), "after it was freed");
    free(desk.state);
    lab_close(&lab);
}

struct cancelled {
    due_workers *pool;
    atomic_int stopped, freed; /* what the calls have answered, plus 1 */
};

/* It is to be cancelled all the while, and would be in a call that is a point of it.  Afterwards it
 * is not: AddressSanitizer does not know of a stack that is left so. */
static void *stop_and_free(void *arg)
{
    struct cancelled *c = arg;
    int state;

    pthread_cancel(pthread_self());
    atomic_store(&c->stopped, 1 + due_workers_stop(c->pool, DUE_FOREVER));
    atomic_store(&c->freed, 1 + due_workers_free(c->pool));
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state == PTHREAD_CANCEL_ENABLE ? arg : NULL;
}

/* Sometimes it has to wait for one of its threads to end, where it would end before. */
LAB_TEST(workers, a_thread_that_is_cancelled_stops_and_frees_its_pool_first)
{
    enum { ROUNDS = 50 };
    struct lab lab = lab_open();
    due_workers_options options = { DUE_WORKERS_INIT };

    for (int i = 0; i < ROUNDS; i++) {
        struct desk desk = desk_open_on(&lab, 4, NULL, 0, &options);
        struct cancelled c = { .pool = desk.pool };
        pthread_t thread;
        void *end = NULL;

        cr_assert_eq(pthread_create(&thread, NULL, stop_and_free, &c), 0);
        cr_assert_eq(pthread_join(thread, &end), 0);
        cr_expect_eq(end, &c, "it could not have been cancelled");
        cr_assert_eq(atomic_load(&c.stopped), 1);
        cr_assert_eq(atomic_load(&c.freed), 1);
        free(desk.state);
    }
    lab_close(&lab);
}

/* ---- Leases ---------------------------------------------------------------------------------- */

LAB_TEST(workers, a_lease_is_extended_while_its_handler_runs)
{
    struct lab lab = lab_open();
    struct desk desk = desk_open_with(&lab, 2, .lease_ns = LEASE);

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    for (unsigned i = 1; i <= 5; i++) {
        lab_advance(&lab, LEASE / 2);
        WAIT_UNTIL(desk_stats(&desk).extended == i);
    }
    cr_expect_eq(due_job_stopping(desk.state->at), 0);
    desk_let_go(&desk, due_answer_ack());
    WAIT_UNTIL(desk_stats(&desk).acked == 1);
    cr_expect_eq(atomic_load(&desk.state->begun_count), 1u);
    desk_close(&desk);
    lab_close(&lab);
}

/* Whoever extends leases sleeps by then, and has to be rung. */
LAB_TEST(workers, a_lease_is_extended_after_a_while_without_jobs_too)
{
    struct lab lab = lab_open();
    struct desk desk = desk_open_with(&lab, 1, .lease_ns = LEASE);

    for (unsigned i = 1; i <= 10; i++) {
        lab_enqueue(&lab, "tea", .delay_ns = 0);
        desk_until_begun(&desk);
        lab_advance(&lab, LEASE / 2);
        WAIT_UNTIL(desk_stats(&desk).extended == i);
        desk_let_go(&desk, due_answer_ack());
        WAIT_UNTIL(desk_stats(&desk).idle == 1);
        lab_advance(&lab, 10 * LEASE);
    }
    desk_close(&desk);
    lab_close(&lab);
}

LAB_TEST(workers, a_handler_that_overruns_is_told_and_its_answer_changes_nothing)
{
    struct lab lab = lab_open();
    struct desk desk = desk_open_with(&lab, 1, .lease_ns = LEASE, .extend_max_ns = LEASE + 30);

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    lab_advance(&lab, LEASE / 2);
    WAIT_UNTIL(desk_stats(&desk).extended == 1);
    lab_turn_to(&lab, LEASE + 29);
    cr_expect_eq(due_job_stopping(desk.state->at), 0);
    lab_turn_to(&lab, LEASE + 30);
    cr_expect_eq(due_job_stopping(desk.state->at), 1);

    due_job again;
    cr_assert_eq(take_leased(lab.q, &again, DUE_S(1), 0), 0);
    cr_expect_eq(again.attempts, 2u);
    cr_expect_eq(again.failures, 1u);
    cr_expect_eq(due_job_stopping(&again), 0);
    cr_expect_eq(due_job_stopping(desk.state->at), 1);
    cr_expect(memcmp(desk.state->at->data, "tea", 3) == 0, "the handler lost the bytes");
    desk_let_go(&desk, due_answer_ack());
    WAIT_UNTIL(desk_stats(&desk).lost == 1);
    cr_expect_eq(desk_stats(&desk).acked, 0u);
    cr_expect_eq(lab_stats(&lab).acked, 0u);
    cr_expect_eq(lab_stats(&lab).leased, 1u, "the late answer took the job from who has it");
    cr_expect_eq(due_ack(&again), 0);
    desk_close(&desk);
    lab_close(&lab);
}

LAB_TEST(workers, a_lease_that_may_not_be_extended_ends)
{
    struct lab lab = lab_open();
    struct desk desk = desk_open_with(&lab, 1, .lease_ns = LEASE, .extend_max_ns = 1);

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    lab_turn_to(&lab, LEASE);
    cr_expect_eq(due_job_stopping(desk.state->at), 1);
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    cr_expect_eq(due_job_stopping(desk.state->at), 1);
    desk_let_go(&desk, due_answer_nack(0));
    WAIT_UNTIL(desk_stats(&desk).lost == 1);
    cr_expect_eq(desk_stats(&desk).extended, 0u);
    desk_close(&desk);
    lab_close(&lab);
}

/* On a kernel clock a lease is only promised at first: an extend makes it a real one. */
Test(workers, a_handler_may_extend_its_own_lease_on_any_clock, .timeout = 60)
{
    struct lab lab = lab_open(.kernel = true);
    struct desk desk = desk_open(&lab, 1);

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    due_job copy = *desk.state->at;
    cr_expect_eq(lab_stats(&lab).leased, 1u);
    cr_expect_eq(due_extend(&copy, DUE_S(60)), 0);
    cr_expect_eq(due_extend(&copy, DUE_S(70)), 0);
    cr_expect_eq(due_job_stopping(desk.state->at), 0);
    cr_expect_eq(lab_stats(&lab).leased, 1u);
    desk_let_go(&desk, due_answer_ack());
    WAIT_UNTIL(desk_stats(&desk).acked == 1);
    cr_expect_eq(lab_stats(&lab).leased, 0u);
    desk_close(&desk);
    lab_close(&lab);
}

/* There a lease that was only promised becomes a real one when it is extended, or it had no end. */
Test(workers, a_handler_that_overruns_loses_its_job_on_a_kernel_clock_too, .timeout = 60)
{
    struct lab lab = lab_open(.kernel = true);
    struct desk desk =
        desk_open_with(&lab, 1, .lease_ns = DUE_MS(100), .extend_max_ns = DUE_MS(300));
    due_job again;

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    cr_assert_eq(take_leased(lab.q, &again, DUE_S(60), DUE_S(40)), 0);
    cr_expect_eq(again.attempts, 2u);
    cr_expect_eq(again.failures, 1u);
    cr_expect_eq(due_job_stopping(desk.state->at), 1);
    cr_expect_eq(due_job_stopping(&again), 0);
    desk_let_go(&desk, due_answer_ack());
    WAIT_UNTIL(desk_stats(&desk).handled == 1);
    cr_expect_eq(desk_stats(&desk).lost, 1u);
    cr_expect_eq(lab_stats(&lab).acked, 0u);
    cr_expect_eq(lab_stats(&lab).leased, 1u, "the late answer took the job from who has it");
    cr_expect_eq(due_ack(&again), 0);
    desk_close(&desk);
    lab_close(&lab);
}

/* Where jobs are counted by topic, a lease is a real one from its beginning. */
Test(workers, what_a_pool_does_is_counted_by_topic, .timeout = 60)
{
    struct lab lab = lab_open(.kernel = true, .with.metrics = 1);
    struct desk desk = desk_open(&lab, 1);
    struct due_topic_stats s;

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    cr_assert_eq(due_topic_stats_read(lab.q, 0, &s), 0);
    cr_expect_eq(s.delivered, 1u);
    cr_expect_eq(s.leased, 1u);
    desk_let_go(&desk, due_answer_ack());
    WAIT_UNTIL(desk_stats(&desk).acked == 1);
    cr_assert_eq(due_topic_stats_read(lab.q, 0, &s), 0);
    cr_expect_eq(s.acked, 1u);
    cr_expect_eq(s.leased, 0u);
    desk_close(&desk);
    lab_close(&lab);
}

/* ---- Starting -------------------------------------------------------------------------------- */

Test(workers, what_makes_no_sense_is_refused)
{
    struct lab lab = lab_open();
    due_workers_options o = { DUE_WORKERS_INIT };
    due_workers *w = NULL;
    int topic = 1;

    cr_expect_eq(due_workers_start(&w, lab.q, NULL, 0, 0, desk_handle, NULL, NULL), DUE_EINVAL);
    cr_expect_eq(
        due_workers_start(&w, lab.q, NULL, 0, DUE_WORKERS_MAX + 1, desk_handle, NULL, NULL),
        DUE_EINVAL);
    cr_expect_eq(due_workers_start(&w, lab.q, &topic, 1, 1, desk_handle, NULL, NULL), DUE_EINVAL);
    cr_expect_eq(due_workers_start(&w, lab.q, &topic, 0, 1, desk_handle, NULL, NULL), DUE_EINVAL);
    cr_expect_eq(due_workers_start(&w, lab.q, NULL, 1, 1, desk_handle, NULL, NULL), DUE_EINVAL);
    o.lease_ns = -1;
    cr_expect_eq(due_workers_start(&w, lab.q, NULL, 0, 1, desk_handle, NULL, &o), DUE_EINVAL);
    o = (due_workers_options){ DUE_WORKERS_INIT, .extend_max_ns = -1 };
    cr_expect_eq(due_workers_start(&w, lab.q, NULL, 0, 1, desk_handle, NULL, &o), DUE_EINVAL);
    o = (due_workers_options){ DUE_WORKERS_INIT, .in_flight_max = 1 };
    cr_expect_eq(due_workers_start(&w, lab.q, NULL, 0, 2, desk_handle, NULL, &o), DUE_EINVAL);
    o = (due_workers_options){ .size = 1 };
    cr_expect_eq(due_workers_start(&w, lab.q, NULL, 0, 2, desk_handle, NULL, &o), DUE_EINVAL);
    cr_expect_null(w);
    cr_expect_eq(due_workers_free(NULL), 0);

    struct desk desk = desk_open(&lab, 1);
    cr_expect_eq(due_workers_stop(desk.pool, -1), DUE_EINVAL);
    desk_close(&desk);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, 0), 0);
    cr_expect_eq(due_workers_start(&w, lab.q, NULL, 0, 1, desk_handle, NULL, NULL), DUE_ECLOSED);
    lab_close(&lab);
}

/* The most and the least that there may be is refused for want of memory alone. */
Test(workers, what_is_just_allowed_is_not_refused)
{
    static const due_workers_options allowed[] = {
        { DUE_WORKERS_INIT, .lease_ns = 1, .extend_max_ns = 1 },
        { DUE_WORKERS_INIT, .lease_ns = DUE_FOREVER, .extend_max_ns = DUE_FOREVER },
        { DUE_WORKERS_INIT, .in_flight_max = 2 },
        { DUE_WORKERS_INIT, .in_flight_max = SIZE_MAX },
    };
    static int topics[DUE_TOPIC_MAX + 1];
    struct lab lab = lab_open();
    due_workers *w = NULL;

    lab.state->memory.fail_on = true;
    flaky_fail_in(&lab.state->memory, 0);
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
        cr_expect_eq(due_workers_start(&w, lab.q, NULL, 0, 2, desk_handle, NULL, &allowed[i]),
                     DUE_ENOMEM);
    cr_expect_eq(due_workers_start(&w, lab.q, NULL, 0, DUE_WORKERS_MAX, desk_handle, NULL, NULL),
                 DUE_ENOMEM);
    cr_expect_eq(due_workers_start(&w, lab.q, topics, DUE_TOPIC_MAX, 1, desk_handle, NULL, NULL),
                 DUE_ENOMEM);
    cr_expect_eq(
        due_workers_start(&w, lab.q, topics, DUE_TOPIC_MAX + 1, 1, desk_handle, NULL, NULL),
        DUE_EINVAL);
    lab.state->memory.fail_on = false;
    lab.state->memory.fail_at = FLAKY_NEVER;
    lab_close(&lab);
}

/* A fresh queue's pool takes one allocation; waiting for it to stop another. */
Test(workers, without_memory_nothing_has_happened)
{
    struct lab lab = lab_open();
    due_workers *w = NULL;
    unsigned before = crew_threads();

    lab.state->memory.fail_at = atomic_load(&lab.state->memory.calls);
    int rc = due_workers_start(&w, lab.q, NULL, 0, 2, desk_handle, NULL, NULL);
    cr_expect_eq(rc, DUE_ENOMEM, "%s", due_error_name(rc));
    cr_expect_null(w);
    cr_expect_eq(crew_threads(), before);
    lab_close(&lab);
}

struct names {
    atomic_uint taken;
    atomic_uint started;
    char name[8][20];
    atomic_uint unblocked; /* signals that some thread does not block */
};

static void note_name(void *ctx, const char *name)
{
    struct names *n = ctx;
    sigset_t blocked;

    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    for (int s = 1; s < 32; s++) {
        if (s != SIGKILL && s != SIGSTOP && !sigismember(&blocked, s))
            atomic_fetch_add(&n->unblocked, 1);
    }
    unsigned at = atomic_fetch_add(&n->taken, 1);
    if (at < 8)
        snprintf(n->name[at], sizeof n->name[at], "%s", name);
    atomic_fetch_add(&n->started, 1); /* who reads it finds the name */
}

static bool named(const struct names *n, const char *name)
{
    for (int i = 0; i < 8; i++) {
        if (strcmp(n->name[i], name) == 0)
            return true;
    }
    return false;
}

static void no_discard(void *ctx, const due_job *job)
{
    (void)ctx;
    (void)job;
}

Test(workers, its_threads_are_named_and_block_all_signals, .timeout = 60)
{
    struct names names = { .started = 0 };
    struct lab lab = lab_open(.with.name = "quite-a-long-name", .with.proxies = DUE_PROXIES_NEVER,
                              .with.on_thread_start = note_name, .with.on_discard = no_discard,
                              .with.ctx = &names);
    struct desk desk = desk_open(&lab, 2);

    WAIT_UNTIL(atomic_load(&names.started) == 3);
    cr_expect(named(&names, "due:quite-a-l:0"));
    cr_expect(named(&names, "due:quite-a-l:1"));
    cr_expect(named(&names, "due:quite-a-l:k"));
    cr_expect_eq(atomic_load(&names.unblocked), 0u);
    desk_close(&desk);
    lab_close(&lab);
}

/* ---- A child --------------------------------------------------------------------------------- */

Test(workers, in_a_child_every_call_is_refused_and_the_memory_goes_back, .timeout = 60)
{
    struct lab lab = lab_open();
    struct desk desk = desk_open(&lab, 2);
    int status;

    WAIT_UNTIL(desk_stats(&desk).idle == 2);
    pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        struct due_workers_stats s;
        due_workers *w;
        int wrong = due_workers_stop(desk.pool, 0) != DUE_EFORK;

        wrong += due_workers_stats_read(desk.pool, &s) != DUE_EFORK;
        wrong += due_workers_start(&w, lab.q, NULL, 0, 1, desk_handle, NULL, NULL) != DUE_EFORK;
        size_t live = atomic_load(&lab.state->memory.live);
        wrong += due_workers_free(desk.pool) != 0;
        wrong += atomic_load(&lab.state->memory.live) != live - 1;
        wrong += due_free(lab.q) != 0;
        _exit(wrong);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
    desk_close(&desk);
    lab_close(&lab);
}
