/* suite_open.c - who owns the jobs of a store. */
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "store/suite_frame.h"

static void shows_nothing_when_new(struct suite *t)
{
    ANSWERS(t, suite_open(t, 0), 0);
    CHECK(t, t->info[0].writer > 0 && t->info[0].writer < UINT64_C(1) << 48, "a writer number");
    CHECK(t, t->info[0].batch_changes > 0 && t->info[0].batch_bytes > 0, "room in a batch");
    CHECK(t, t->info[0].renew_ns > 0, "a time to renew");
    CHECK(t, t->info[0].jobs == 0, "a number of jobs");
    CHECK(t, suite_same(t, 0), "nothing is shown");
    CHECK(t, t->shown == 0, "nothing is shown");
}

static void gives_a_higher_writer_number_each_time(struct suite *t)
{
    uint64_t last = 0;

    for (int i = 0; i < 5; i++) {
        ANSWERS(t, suite_open(t, 0), 0);
        CHECK(t, t->info[0].writer > last, "opening %d", i);
        last = t->info[0].writer;
        suite_close(t, 0);
    }
}

/* Else ids of jobs that came from elsewhere would be given once more. */
static void gives_a_writer_number_no_lower_than_asked(struct suite *t)
{
    ANSWERS(t, suite_open(t, 0), 0);
    uint64_t asked = t->info[0].writer + 1000000;
    suite_close(t, 0);
    t->writer_min = asked;
    ANSWERS(t, suite_open(t, 0), 0);
    CHECK(t, t->info[0].writer >= asked, "at least what was asked for");
    asked = t->info[0].writer;
    suite_close(t, 0);
    t->writer_min = 5;
    ANSWERS(t, suite_open(t, 0), 0);
    CHECK(t, t->info[0].writer > asked, "and never lower");
    suite_close(t, 0);
    t->writer_min = 0;
    ANSWERS(t, suite_open(t, 0), 0);
    CHECK(t, t->info[0].writer > asked, "nor later");
}

static void is_busy_while_owned(struct suite *t)
{
    char pid[24];

    ANSWERS(t, suite_open(t, 0), 0);
    ANSWERS(t, suite_open_in_vain(t, 1), DUE_EBUSY);
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    CHECK(t, strstr(t->error.text, pid) != NULL, "the pid in \"%s\"", t->error.text);
    size_t job = suite_job(t, "", 0, "a", 1);
    suite_put(t, job);
    ANSWERS(t, suite_commit(t, 0), 0);
    CHECK(t, suite_same(t, 0), "the owner goes on");
}

/* A store that has no time to ask cannot know. */
static void is_busy_at_once_if_the_time_is_up(struct suite *t)
{
    int64_t begun_ns = suite_now_ns();

    ANSWERS(t, suite_open(t, 0), 0);
    int rc = suite_open_until(t, 1, begun_ns - 1);
    CHECK(t, rc == DUE_EBUSY || rc == DUE_ESTORE, "%s", due_error_name(rc));
    CHECK(t, suite_now_ns() - begun_ns < SUITE_SOON_NS / 3, "at once");
}

static void is_handed_over_at_once_when_closed(struct suite *t)
{
    int64_t lease_ns = t->maker->lease_ns;

    ANSWERS(t, suite_open(t, 0), 0);
    suite_close(t, 0);
    int64_t closed_ns = suite_now_ns();
    ANSWERS(t, suite_open(t, 1), 0);
    CHECK(t, suite_now_ns() - closed_ns < (lease_ns > 0 ? lease_ns : SUITE_SOON_NS / 3),
          "without waiting for a lease to end");
}

struct later {
    pthread_t thread;
    struct suite *t;
    void (*run)(struct suite *t);
    int64_t after_ns;
};

static void *run_later(void *arg)
{
    struct later *later = arg;
    struct timespec pause = { .tv_nsec = (long)later->after_ns };

    nanosleep(&pause, NULL);
    later->run(later->t);
    return NULL;
}

static void start_later(struct later *later, struct suite *t, void (*run)(struct suite *t))
{
    *later = (struct later){ .t = t, .run = run, .after_ns = DUE_MS(100) };
    if (pthread_create(&later->thread, NULL, run_later, later) != 0)
        abort();
}

static void close_first(struct suite *t)
{
    (void)t->stores[0]->verbs->close(t->stores[0], suite_soon());
    t->open[0] = false;
}

static void interrupt_second(struct suite *t)
{
    t->stores[1]->verbs->interrupt(t->stores[1]);
}

/* The owner renews meanwhile as it should: here it is not silent for a whole lease. */
static void lets_in_who_waits_when_closed(struct suite *t)
{
    struct later later;

    ANSWERS(t, suite_open(t, 0), 0);
    start_later(&later, t, close_first);
    int rc = suite_open(t, 1);
    pthread_join(later.thread, NULL);
    ANSWERS(t, rc, 0);
}

static void returns_early_from_opening_when_interrupted(struct suite *t)
{
    struct later later;
    int64_t begun_ns = suite_now_ns();

    if (t->maker->lease_ns > 0 && t->maker->lease_ns < DUE_MS(500)) {
        suite_skip(t, "the lease is too short");
        return;
    }
    ANSWERS(t, suite_open(t, 0), 0);
    (void)suite_store(t, 1);
    start_later(&later, t, interrupt_second);
    int rc = suite_open(t, 1);
    pthread_join(later.thread, NULL);
    CHECK(t, rc < 0, "interrupted");
    CHECK(t, suite_now_ns() - begun_ns < SUITE_SOON_NS / 3, "early");
}

static void sleeps_while_it_waits(struct suite *t)
{
    struct timespec before;
    struct timespec after;

    if (t->maker->lease_ns > 0 && t->maker->lease_ns < DUE_S(1)) {
        suite_skip(t, "the lease is too short");
        return;
    }
    ANSWERS(t, suite_open(t, 0), 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    ANSWERS(t, suite_open_until(t, 1, suite_now_ns() + DUE_MS(600)), DUE_EBUSY);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    int64_t spent_ns = DUE_S(after.tv_sec - before.tv_sec) + after.tv_nsec - before.tv_nsec;
    CHECK(t, spent_ns < DUE_MS(200), "%lld ns of the processor", (long long)spent_ns);
}

static bool can_be_replaced(struct suite *t)
{
    return suite_has(t, t->maker->lease_ns > 0 || t->maker->end_lease != NULL,
                     "no lease, and no hook end_lease");
}

static void fences_who_was_replaced(struct suite *t)
{
    int64_t held_ns = 0;

    if (!can_be_replaced(t))
        return;
    ANSWERS(t, suite_open(t, 0), 0);
    size_t first = suite_job(t, "", DUE_S(1), "first", 5);
    suite_put(t, first);
    ANSWERS(t, suite_commit(t, 0), 0);
    suite_end_lease(t);
    ANSWERS(t, suite_open(t, 1), 0);
    CHECK(t, suite_same(t, 1), "the next owner finds everything");
    for (int again = 0; again < 2; again++) {
        due_store *old = t->stores[0];
        int64_t soon = suite_soon();
        size_t job = suite_job(t, "", DUE_S(2), "late", 4);

        suite_put(t, job);
        int rc = suite_commit_on(t, 0, soon);
        for (int i = 0; i < 100 && (rc == DUE_EAGAIN || rc == DUE_EINDOUBT); i++)
            rc = suite_commit_on(t, 0, soon);
        ANSWERS(t, rc, DUE_EFENCED);
        suite_dropped(t);
        ANSWERS(t, old->verbs->ready(old, soon), DUE_EFENCED);
        ANSWERS(t, old->verbs->renew(old, &held_ns, soon), DUE_EFENCED);
        ANSWERS(t, old->verbs->load(old, 1, 10, suite_visit, t, soon), DUE_EFENCED);
        ANSWERS(t, old->verbs->find(old, t->jobs[first].record.id, suite_visit, t, soon),
                DUE_EFENCED);
    }
    CHECK(t, suite_same(t, 1), "nothing of the old owner's lands");
    suite_drop(t, first);
    ANSWERS(t, suite_commit(t, 1), 0);
    CHECK(t, suite_same(t, 1), "the new owner goes on");
}

static void stays_with_the_new_owner_when_the_old_one_closes(struct suite *t)
{
    if (!can_be_replaced(t))
        return;
    ANSWERS(t, suite_open(t, 0), 0);
    suite_end_lease(t);
    ANSWERS(t, suite_open(t, 1), 0);
    suite_close(t, 0);
    ANSWERS(t, suite_open_in_vain(t, 2), DUE_EBUSY);
    ANSWERS(t, suite_ready(t, 1), 0);
}

static void is_found_whole_by_the_next_owner_after_a_crash(struct suite *t)
{
    if (!can_be_replaced(t))
        return;
    ANSWERS(t, suite_open(t, 0), 0);
    for (int i = 0; i < 300; i++)
        suite_job(t, i % 2 == 0 ? "even" : "odd", DUE_S(i % 7), &i, sizeof i);
    CHECK(t, suite_put_all(t, 0), "put");
    suite_drop(t, 3);
    suite_move(t, 4, DUE_S(9));
    ANSWERS(t, suite_commit(t, 0), 0);
    suite_end_lease(t);
    ANSWERS(t, suite_open(t, 1), 0);
    CHECK(t, suite_same(t, 1), "everything is found");
    suite_close(t, 1);
    ANSWERS(t, suite_open(t, 2), 0);
    CHECK(t, suite_same(t, 2), "and once more");
}

/* While held_ns has not come, nobody else can have become the owner; renewing moves it. */
static void belongs_to_who_renews(struct suite *t)
{
    int64_t renew_ns;
    int64_t last_ns;

    ANSWERS(t, suite_open(t, 0), 0);
    CHECK(t, t->info[0].held_ns > suite_boottime_ns(), "it is held from the opening on");
    last_ns = t->info[0].held_ns;
    renew_ns = t->info[0].renew_ns;
    for (int i = 0; i < 6; i++) {
        int64_t held_ns = 0;
        int64_t wait_ns = renew_ns < DUE_S(1) ? renew_ns : DUE_MS(100);

        ANSWERS(t, t->stores[0]->verbs->renew(t->stores[0], &held_ns, suite_soon()), 0);
        CHECK(t, held_ns > suite_boottime_ns() && held_ns >= last_ns, "renewal %d", i);
        last_ns = held_ns;
        int rc = suite_open_until(t, 1, suite_now_ns() + wait_ns);
        if (suite_boottime_ns() < held_ns && rc != DUE_ESTORE) /* it may not be there in time */
            ANSWERS(t, rc, DUE_EBUSY);
        suite_abandon(t, 1);
    }
}

const struct suite_test suite_open_tests[] = {
    { "open shows nothing when new", shows_nothing_when_new },
    { "open gives a higher writer number each time", gives_a_higher_writer_number_each_time },
    { "open gives a writer number no lower than asked", gives_a_writer_number_no_lower_than_asked },
    { "open is busy while owned", is_busy_while_owned },
    { "open is busy at once if the time is up", is_busy_at_once_if_the_time_is_up },
    { "open is handed over at once when closed", is_handed_over_at_once_when_closed },
    { "open lets in who waits when closed", lets_in_who_waits_when_closed },
    { "open returns early when interrupted", returns_early_from_opening_when_interrupted },
    { "open sleeps while it waits", sleeps_while_it_waits },
    { "owner: who was replaced is fenced", fences_who_was_replaced },
    { "owner: stays when the old one closes", stays_with_the_new_owner_when_the_old_one_closes },
    { "owner: the next one finds everything after a crash",
      is_found_whole_by_the_next_owner_after_a_crash },
    { "owner: stays who renews", belongs_to_who_renews },
    { NULL, NULL },
};
