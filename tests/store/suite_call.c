/* suite_call.c - calls of a store: times, threads, interrupts, forks, and what breaks. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store/suite_frame.h"

static bool opened(struct suite *t)
{
    return suite_answers(t, suite_open(t, 0), 0, __FILE__, __LINE__, "open");
}

static bool put_some(struct suite *t, int n)
{
    for (int i = 0; i < n; i++)
        suite_job(t, i % 3 == 0 ? "a" : "b", DUE_MS(i), &i, sizeof i);
    return suite_put_all(t, 0);
}

/* One of the answers that a call may give that has no time. */
static bool hurried(int rc)
{
    return rc >= 0 || rc == DUE_EAGAIN || rc == DUE_EINDOUBT;
}

static void return_at_once_when_the_time_is_up(struct suite *t)
{
    static const int64_t before_ns[] = { 0, 1, DUE_S(1000) };

    CHECK(t, opened(t) && put_some(t, 20), "");
    for (int i = 0; i < 3; i++) {
        due_store *s = t->stores[0];
        int64_t begun_ns = suite_now_ns();
        int64_t past = i == 0 ? 0 : begun_ns - before_ns[i];
        int64_t held_ns;

        CHECK(t, hurried(s->verbs->ready(s, past)), "ready");
        CHECK(t, hurried(s->verbs->renew(s, &held_ns, past)), "renew");
        suite_begin_load(t);
        CHECK(t, hurried(s->verbs->load(s, 1, 5, suite_visit, t, past)), "load");
        CHECK(t, hurried(s->verbs->find(s, t->jobs[1].record.id, suite_visit, t, past)), "find");
        suite_put(t, suite_job(t, "", DUE_S(i), "x", 1));
        int rc = suite_commit_on(t, 0, past);
        CHECK(t, hurried(rc), "commit");
        CHECK(t, suite_now_ns() - begun_ns < SUITE_SOON_NS / 3, "at once");
        if (rc == 0)
            suite_noted(t, 0);
        else
            ANSWERS(t, suite_commit(t, 0), 0);
        CHECK(t, suite_same(t, 0), "");
    }
}

static void take_an_interrupt_that_comes_between_calls(struct suite *t)
{
    CHECK(t, opened(t) && put_some(t, 20), "");
    for (int i = 0; i < 20; i++) {
        t->stores[0]->verbs->interrupt(t->stores[0]);
        if (i % 4 == 0)
            t->stores[0]->verbs->interrupt(t->stores[0]);
        if (i % 3 == 0)
            CHECK(t, suite_same(t, 0), "");
        suite_put(t, suite_job(t, "", DUE_S(i), "x", 1));
        ANSWERS(t, suite_commit(t, 0), 0);
    }
    CHECK(t, suite_same(t, 0), "");
}

struct storm {
    pthread_t thread;
    due_store *store;
    atomic_bool over;
};

static void *interrupt_often(void *arg)
{
    struct storm *storm = arg;
    struct timespec pause = { .tv_nsec = 50000 };

    while (!atomic_load(&storm->over)) {
        storm->store->verbs->interrupt(storm->store);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* Every change lands once, whatever is interrupted. */
static void lose_nothing_to_interrupts(struct suite *t)
{
    struct storm storm = { .over = false };

    CHECK(t, opened(t) && put_some(t, 50), "");
    storm.store = t->stores[0];
    if (pthread_create(&storm.thread, NULL, interrupt_often, &storm) != 0)
        abort();
    bool good = true;
    for (int i = 0; i < 300 && good; i++) {
        size_t job = suite_job(t, "", DUE_MS(i), &i, sizeof i);

        suite_put(t, job);
        if (i % 2 == 0)
            suite_drop(t, job - 1);
        good = suite_answers(t, suite_commit(t, 0), 0, __FILE__, __LINE__, "commit") &&
               (i % 50 != 0 || suite_same(t, 0));
    }
    atomic_store(&storm.over, true);
    pthread_join(storm.thread, NULL);
    CHECK(t, good && suite_same(t, 0), "");
}

/* However often they are interrupted: here it is before each call. */
static void get_on_though_each_is_interrupted(struct suite *t)
{
    int64_t held_ns;
    int rc;

    t->hurried = true;
    CHECK(t, opened(t) && put_some(t, 300), "");
    for (int i = 0; i < 10; i++) {
        CHECK(t, suite_same(t, 0), "");
        ANSWERS(t, suite_find(t, 0, t->jobs[i].record.id), 0);
        suite_put(t, suite_job(t, "c", DUE_MS(i), &i, sizeof i));
        suite_drop(t, (size_t)i);
        ANSWERS(t, suite_commit(t, 0), 0);
        ANSWERS(t, suite_find(t, 0, t->jobs[i].record.id), DUE_ENOENT);
        int64_t end_ns = suite_soon();
        do
            rc = t->stores[0]->verbs->renew(suite_called(t, 0), &held_ns, end_ns);
        while (rc == DUE_EAGAIN && suite_now_ns() < end_ns);
        ANSWERS(t, rc, 0);
    }
    CHECK(t, suite_same(t, 0), "");
}

/* A page takes several answers, and each batch in between makes those that came worthless. */
static void read_on_though_a_batch_follows_each_interrupt(struct suite *t)
{
    size_t batches = 0;
    int rc = 1;

    CHECK(t, opened(t) && put_some(t, 300), "");
    suite_begin_load(t);
    t->hurried = true;
    for (bool rewind = true; rc == 1 || rc == DUE_EAGAIN; rewind = false) {
        due_store *s = suite_called(t, 0);

        rc = s->verbs->load(s, rewind, 7, suite_visit, t, suite_soon());
        suite_put(t, suite_job(t, "c", DUE_S(100), &batches, sizeof batches));
        ANSWERS(t, suite_commit(t, 0), 0);
        CHECK(t, ++batches < 3000, "no end in sight, %zu jobs shown", t->shown);
    }
    ANSWERS(t, rc, 0);
    CHECK(t, suite_all_seen(t), "");
    t->hurried = false;
    CHECK(t, suite_same(t, 0), "");
}

static atomic_uint alarms;

static void on_alarm(int number)
{
    (void)number;
    atomic_fetch_add(&alarms, 1);
}

/* A timer whose signal interrupts system calls. */
static void lose_nothing_to_signals(struct suite *t)
{
    struct sigaction action = { .sa_handler = on_alarm };
    struct sigaction before;
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 };
    struct itimerspec often = { .it_value.tv_nsec = 300000, .it_interval.tv_nsec = 300000 };
    timer_t timer;

    CHECK(t, opened(t) && put_some(t, 50), "");
    sigaction(SIGUSR2, &action, &before);
    CHECK(t, timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "");
    timer_settime(timer, 0, &often, NULL);
    bool good = true;
    for (int i = 0; i < 300 && good; i++) {
        suite_put(t, suite_job(t, "", DUE_MS(i), &i, sizeof i));
        good = suite_answers(t, suite_commit(t, 0), 0, __FILE__, __LINE__, "commit") &&
               (i % 100 != 0 || suite_same(t, 0));
    }
    timer_delete(timer);
    sigaction(SIGUSR2, &before, NULL);
    CHECK(t, good && suite_same(t, 0), "");
}

struct turn {
    struct suite *t;
    bool good;
};

static void *take_a_turn(void *arg)
{
    struct turn *turn = arg;
    struct suite *t = turn->t;

    for (int i = 0; i < 5; i++) {
        suite_put(t, suite_job(t, "", DUE_MS(i), &i, sizeof i));
        turn->good = turn->good && suite_commit(t, 0) == 0;
    }
    turn->good = turn->good && suite_same(t, 0);
    return NULL;
}

static void come_from_any_thread(struct suite *t)
{
    struct turn turn = { .t = t, .good = true };

    CHECK(t, opened(t), "");
    for (int i = 0; i < 8; i++) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, take_a_turn, &turn) != 0)
            abort();
        pthread_join(thread, NULL);
        CHECK(t, turn.good, "thread %d", i);
    }
}

/* A child interrupts and frees its copy: the parent's store goes on as if nothing had been. */
static void are_not_disturbed_by_a_child(struct suite *t)
{
    int64_t held_ns;

    CHECK(t, opened(t) && put_some(t, 30), "");
    for (int i = 0; i < 3; i++) {
        int status = -1;

        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            if (i > 0)
                t->stores[0]->verbs->interrupt(t->stores[0]);
            t->stores[0]->verbs->free(t->stores[0]);
            _exit(0);
        }
        CHECK(t, child > 0 && waitpid(child, &status, 0) == child && status == 0,
              "the child ended with %d", status);
        suite_put(t, suite_job(t, "", DUE_S(i), "x", 1));
        ANSWERS(t, suite_commit(t, 0), 0);
        CHECK(t, suite_same(t, 0), "");
    }
    ANSWERS(t, t->stores[0]->verbs->renew(t->stores[0], &held_ns, suite_soon()), 0);
    ANSWERS(t, suite_open_in_vain(t, 1), DUE_EBUSY);
}

static void count_batches(struct suite *t)
{
    struct due_store_stats stats = { 0 };

    CHECK(t, opened(t), "");
    for (int i = 0; i < 10; i++) {
        suite_put(t, suite_job(t, "", DUE_S(i), "x", 1));
        ANSWERS(t, suite_commit(t, 0), 0);
    }
    t->stores[0]->verbs->stats(t->stores[0], &stats);
    CHECK(t, stats.batches == 10, "%llu batches", (unsigned long long)stats.batches);
    CHECK(t, stats.resent == 0 && stats.quarantined == 0, "");
    CHECK(t, stats.connected == 1, "");
    CHECK(t, stats.durability == t->info[0].durability, "");
}

static void go_on_when_the_connection_breaks(struct suite *t)
{
    if (!suite_has(t, t->maker->cut != NULL, "no hook cut"))
        return;
    CHECK(t, opened(t) && put_some(t, 40), "");
    for (int i = 0; i < 12; i++) {
        t->maker->cut(t->maker->ctx);
        suite_put(t, suite_job(t, "", DUE_S(i), "x", 1));
        ANSWERS(t, suite_commit(t, 0), 0);
        int rc = suite_page(t, 0, true, 7);
        t->maker->cut(t->maker->ctx);
        for (int k = 0; k < 1000 && rc == 1; k++)
            rc = suite_page(t, 0, false, 7);
        ANSWERS(t, rc, 0);
        CHECK(t, suite_all_seen(t), "a load that was cut");
        t->maker->cut(t->maker->ctx);
        ANSWERS(t, suite_find(t, 0, t->jobs[5].record.id), 0);
    }
    t->maker->cut(t->maker->ctx);
    suite_close(t, 0);
    ANSWERS(t, suite_open(t, 1), 0);
    CHECK(t, suite_same(t, 1), "");
}

/* A store may notice only when it sends something.  Then that has not landed. */
static int until_lost(struct suite *t)
{
    int rc = suite_ready(t, 0);

    for (int i = 0; i < 10 && (rc == 0 || rc == DUE_EAGAIN || rc == DUE_EINDOUBT); i++) {
        if (rc == 0)
            rc = suite_commit_on(t, 0, suite_soon());
        if (rc == DUE_EAGAIN || rc == DUE_EINDOUBT)
            rc = suite_ready(t, 0);
        else if (rc == 0)
            return 0;
    }
    return rc;
}

/* As the queue does: what it holds is put again; each loss is told once. */
static void tell_a_loss_once(struct suite *t)
{
    if (!suite_has(t, t->maker->lose != NULL, "no hook lose"))
        return;
    CHECK(t, opened(t) && put_some(t, 40), "");
    for (int i = 0; i < 4; i++) {
        t->maker->lose(t->maker->ctx);
        suite_put(t, suite_job(t, "", DUE_S(i), "x", 1));
        ANSWERS(t, until_lost(t), DUE_ELOST);
        ANSWERS(t, suite_ready(t, 0), 0);
        for (size_t k = 0; k < t->n_jobs; k++)
            t->jobs[k].stored = false;
        ANSWERS(t, suite_commit(t, 0), 0);
        CHECK(t, suite_same(t, 0), "nothing else is left");
        CHECK(t, suite_put_all(t, 0), "");
        CHECK(t, suite_same(t, 0), "everything is back");
        ANSWERS(t, suite_ready(t, 0), 0);
    }
    suite_close(t, 0);
    CHECK(t, opened(t) && suite_same(t, 0), "");
}

static void refuse_when_full_and_can_be_drained(struct suite *t)
{
    int64_t held_ns;

    if (!suite_has(t, t->maker->full != NULL, "no hook full"))
        return;
    CHECK(t, opened(t) && put_some(t, 40), "");
    for (int i = 0; i < 3; i++) {
        t->maker->full(t->maker->ctx, true);
        size_t job = suite_job(t, "", DUE_S(i), "x", 1);
        suite_put(t, job);
        suite_drop(t, 10 + (size_t)i);
        ANSWERS(t, suite_commit(t, 0), DUE_ENOSPC);
        suite_dropped(t);
        CHECK(t, suite_same(t, 0), "nothing of it landed");
        suite_drop(t, 20 + (size_t)i);
        ANSWERS(t, suite_commit(t, 0), 0);
        ANSWERS(t, t->stores[0]->verbs->renew(t->stores[0], &held_ns, suite_soon()), 0);
        CHECK(t, suite_same(t, 0), "a removal landed");
        t->maker->full(t->maker->ctx, false);
        suite_put(t, job);
        ANSWERS(t, suite_commit(t, 0), 0);
        CHECK(t, suite_same(t, 0), "there is room again");
    }
}

const struct suite_test suite_call_tests[] = {
    { "calls return at once when the time is up", return_at_once_when_the_time_is_up },
    { "calls take an interrupt that comes between them",
      take_an_interrupt_that_comes_between_calls },
    { "calls lose nothing to interrupts", lose_nothing_to_interrupts },
    { "calls get on though each is interrupted", get_on_though_each_is_interrupted },
    { "calls read on though a batch follows each interrupt",
      read_on_though_a_batch_follows_each_interrupt },
    { "calls lose nothing to signals", lose_nothing_to_signals },
    { "calls come from any thread", come_from_any_thread },
    { "calls are not disturbed by a child", are_not_disturbed_by_a_child },
    { "calls count batches", count_batches },
    { "calls go on when the connection breaks", go_on_when_the_connection_breaks },
    { "calls tell a loss once", tell_a_loss_once },
    { "calls refuse when full and can be drained", refuse_when_full_and_can_be_drained },
    { NULL, NULL },
};
