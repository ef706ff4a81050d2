/* thread_cancel_race.c - cancel, reschedule, promote and delivery of one job at the same instant:
 * exactly one wins, and everybody is told the truth.
 *
 * Three threads meet at each job: one takes, one cancels, one moves it.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "lab/crew.h"

#define BATCH 64

struct world {
    due_queue *q;
    due_id id[BATCH];
    atomic_uint taken[BATCH];
    atomic_uint cancelled[BATCH];
    atomic_uint round; /* the batch under way; odd: work, even: rest */
    atomic_uint resting;
    atomic_bool stop;
};

/* Waits for the round after @seen; false: there is none. */
static bool next_round(struct world *w, unsigned *seen)
{
    while (atomic_load(&w->round) <= *seen || atomic_load(&w->round) % 2 == 0) {
        if (atomic_load(&w->stop))
            return false;
        sched_yield();
    }
    *seen = atomic_load(&w->round);
    return true;
}

static int take(void *arg)
{
    struct world *w = arg;
    unsigned seen = 0;
    due_job job;

    while (next_round(w, &seen)) {
        for (int tries = 0; tries < 3 * BATCH; tries++) {
            int rc = due_dequeue(w->q, &job, tries % 8 == 0 ? 1000 : 0);

            if (rc != 0)
                continue;
            atomic_fetch_add(&w->taken[(uintptr_t)job.ptr - 1], 1);
            rc = due_cancel(w->q, job.id, NULL);
            CREW_CHECK(rc == DUE_EBUSY, ": %s", due_error_name(rc));
            due_job_done(&job);
        }
        atomic_fetch_add(&w->resting, 1);
    }
    return 0;
}

static int cancel(void *arg)
{
    struct world *w = arg;
    unsigned seen = 0;

    while (next_round(w, &seen)) {
        for (int i = 0; i < BATCH; i += 2) {
            due_job job;
            int rc = due_cancel(w->q, w->id[i], i % 4 == 0 ? &job : NULL);

            CREW_CHECK(rc == 0 || rc == DUE_EBUSY || rc == DUE_ENOENT, ": %s", due_error_name(rc));
            if (rc != 0)
                continue;
            atomic_fetch_add(&w->cancelled[i], 1);
            if (i % 4 == 0) {
                CREW_CHECK(due_id_equal(job.id, w->id[i]), ": another job came back");
                due_job_done(&job);
            }
        }
        atomic_fetch_add(&w->resting, 1);
    }
    return 0;
}

static int move(void *arg)
{
    struct world *w = arg;
    unsigned seen = 0;

    while (next_round(w, &seen)) {
        for (int i = 0; i < 2 * BATCH; i++) {
            due_id id = w->id[i % BATCH];
            int rc = i % 3 == 0 ? due_promote(w->q, id)
                                : due_reschedule(w->q, id, due_now(w->q) + i % 5 * 500);

            CREW_CHECK(rc == 0 || rc == DUE_EBUSY || rc == DUE_ENOENT, ": %s", due_error_name(rc));
        }
        atomic_fetch_add(&w->resting, 1);
    }
    return 0;
}

static void put_batch(struct world *w)
{
    memset(w->taken, 0, sizeof w->taken);
    memset(w->cancelled, 0, sizeof w->cancelled);
    for (int i = 0; i < BATCH; i++) {
        due_spec spec = { DUE_SPEC_INIT, .delay_ns = i % 3 * 2000,
                          .ptr = (void *)(uintptr_t)(i + 1) };
        int rc = due_enqueue(w->q, &spec, 0, &w->id[i]);

        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
}

/* What nobody got must still be there, once. */
static void take_rest(struct world *w)
{
    due_job job;
    int rc;

    while ((rc = due_dequeue(w->q, &job, DUE_MS(1))) == 0) {
        atomic_fetch_add(&w->taken[(uintptr_t)job.ptr - 1], 1);
        due_job_done(&job);
    }
    CREW_CHECK(rc == DUE_ETIMEDOUT, ": %s", due_error_name(rc));
    for (int i = 0; i < BATCH; i++) {
        unsigned taken = atomic_load(&w->taken[i]);
        unsigned cancelled = atomic_load(&w->cancelled[i]);

        CREW_CHECK(taken + cancelled == 1, ": job %d taken %u cancelled %u times", i, taken,
                   cancelled);
        rc = due_cancel(w->q, w->id[i], NULL);
        CREW_CHECK(rc == DUE_ENOENT, ": %s", due_error_name(rc));
    }
}

static unsigned race(enum due_proxies proxies, int64_t ns)
{
    struct world w = { .stop = false };
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies };
    struct crew_thread threads[3];
    int64_t end = crew_now_ns() + ns;

    w.q = crew_open(&options);
    crew_go(&threads[0], take, &w);
    crew_go(&threads[1], cancel, &w);
    crew_go(&threads[2], move, &w);
    while (crew_now_ns() < end) {
        put_batch(&w);
        atomic_store(&w.resting, 0);
        atomic_fetch_add(&w.round, 1);
        while (atomic_load(&w.resting) < 3)
            sched_yield();
        atomic_fetch_add(&w.round, 1);
        take_rest(&w);
    }
    atomic_store(&w.stop, true);
    for (int i = 0; i < 3; i++)
        crew_join(&threads[i]);
    crew_close(w.q, DUE_CLOSE_DRAIN);
    return atomic_load(&w.round) / 2;
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    unsigned rounds = 0;

    for (int mode = 0; mode < 3; mode++) {
        crew_doing(crew_mode_names[mode]);
        rounds += race((enum due_proxies)mode, o.ns / 3);
    }
    printf("thread_cancel_race: %u jobs raced for, one winner each\n", rounds * BATCH);
    return 0;
}
