/* thread_reuse.c - places of jobs are used again and again while stale ids and stale slots of their
 * former owners are still about.
 *
 * Few jobs live at a time, so every place turns over quickly.  Cancelled and moved jobs leave slots
 * behind that must hand nothing out; old ids must never hit the new owner of a place.
 */
#include <stdio.h>

#include "lab/crew.h"

#define OLD 256

struct world {
    due_queue *q;
    int64_t end_ns;
    uint64_t seed;
    atomic_ullong jobs;
    atomic_uint number; /* of the next thread */
};

/* What a job carries: whose it is, and which. */
#define NUMBER_BITS (sizeof(void *) > 4 ? 40 : 24) /* of a pointer; before them the thread's */

static void *mark(uint64_t thread, uint64_t n)
{
    return (void *)(uintptr_t)(thread << NUMBER_BITS | (n & ((UINT64_C(1) << NUMBER_BITS) - 1)));
}

/* Cancels half of what it puts in; an id of a job that it has cancelled stays unknown for ever. */
static int work(void *arg)
{
    struct world *w = arg;
    uint64_t self = atomic_fetch_add(&w->number, 1) + 1;
    uint64_t seed = w->seed + self;
    due_id old[OLD];
    uint64_t n = 0;

    while (crew_now_ns() < w->end_ns) {
        due_spec spec = { DUE_SPEC_INIT, .delay_ns = (int64_t)crew_below(&seed, 3000),
                          .ptr = mark(self, n) };
        due_job job;
        due_id id;
        int rc = due_enqueue(w->q, &spec, 0, &id);

        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        if (crew_below(&seed, 3) == 0) {
            rc = due_reschedule(w->q, id, due_now(w->q) + (int64_t)crew_below(&seed, 3000));
            CREW_CHECK(rc == 0 || rc == DUE_EBUSY || rc == DUE_ENOENT, ": %s", due_error_name(rc));
        }
        rc = due_cancel(w->q, id, n % 2 == 0 ? &job : NULL);
        CREW_CHECK(rc == 0 || rc == DUE_EBUSY || rc == DUE_ENOENT, ": %s", due_error_name(rc));
        if (rc == 0 && n % 2 == 0) {
            CREW_CHECK(job.ptr == spec.ptr, ": %p, not %p", job.ptr, spec.ptr);
            due_job_done(&job);
        }
        old[n % OLD] = id;
        n++;
        id = old[crew_below(&seed, n < OLD ? n : OLD)];
        rc = due_cancel(w->q, id, &job);
        if (rc == 0) { /* it was taken in neither way: it must be its own old job */
            CREW_CHECK(due_id_equal(job.id, id), ": another job came back");
            CREW_CHECK((uintptr_t)job.ptr >> NUMBER_BITS == self,
                       ": another thread's job came back");
            due_job_done(&job);
        }
    }
    atomic_fetch_add(&w->jobs, n);
    return 0;
}

static int consume(void *arg)
{
    struct world *w = arg;
    due_job job;
    int rc;

    while ((rc = due_dequeue(w->q, &job, DUE_MS(20))) != DUE_ECLOSED) {
        due_info info;

        if (rc == DUE_ETIMEDOUT)
            continue;
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        rc = due_find(w->q, job.id, &info);
        CREW_CHECK(rc == DUE_EBUSY, ": %s", due_error_name(rc));
        due_job_done(&job);
    }
    return 0;
}

static uint64_t round_of(enum due_proxies proxies, int64_t ns, uint64_t seed)
{
    struct world w = { .seed = seed, .end_ns = crew_now_ns() + ns };
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies };
    struct crew_thread threads[3];

    w.q = crew_open(&options);
    crew_go(&threads[0], work, &w);
    crew_go(&threads[1], work, &w);
    crew_go(&threads[2], consume, &w);
    crew_join(&threads[0]);
    crew_join(&threads[1]);
    int rc = due_close(w.q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    crew_join(&threads[2]);
    crew_close(w.q, DUE_CLOSE_DRAIN);
    return atomic_load(&w.jobs);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    uint64_t jobs = 0;

    for (int mode = 0; mode < 3; mode++) {
        crew_doing(crew_mode_names[mode]);
        jobs += round_of((enum due_proxies)mode, o.ns / 3, o.seed);
    }
    printf("thread_reuse: %llu jobs, none mistaken for another\n", (unsigned long long)jobs);
    return 0;
}
