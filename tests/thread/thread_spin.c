/* thread_spin.c - consumers that spin (spin_ns) until their job is due, and have it in hand, while
 * others are put before and behind it, it is cancelled, moved and changed, others take, and the
 * topic is paused: none is early, none is lost, none comes twice, each has its own bytes, and what
 * is cancelled is not handed out.
 */
#include <stdio.h>

#include "lab/crew.h"

#define CONSUMERS 2
#define JOBS      1024 /* ids that are remembered */
#define CHANGED   24   /* numbers in a job that was changed */

struct world {
    due_queue *q;
    atomic_ullong taken;
    atomic_uchar gone[JOBS]; /* by number: cancelled, or taken */
    uint64_t seed;
};

/* It goes now.  Had it gone before? */
static bool gone(struct world *w, uint32_t number)
{
    return atomic_exchange(&w->gone[number % JOBS], 1) != 0;
}

/* Its bytes are its number, or that and others that are the same. */
static void had(struct world *w, due_job *job)
{
    const uint32_t *number = job->data;

    CREW_CHECK(job->len == sizeof *number || job->len == CHANGED * sizeof *number, ": %zu bytes",
               job->len);
    for (size_t i = 1; i < job->len / sizeof *number; i++)
        CREW_CHECK(number[i] == number[0], ": job %u has bytes of job %u", number[0], number[i]);
    CREW_CHECK(!gone(w, *number), ": job %u was cancelled, or taken before", *number);
    atomic_fetch_add(&w->taken, 1);
    due_job_done(job);
}

static int consume(void *arg)
{
    struct world *w = arg;
    due_job job;
    int rc;

    while ((rc = due_dequeue(w->q, &job, DUE_FOREVER)) == 0) {
        int64_t now = due_now(w->q);

        CREW_CHECK(now >= job.deadline_ns, ": early by %lld ns",
                   (long long)(job.deadline_ns - now));
        CREW_CHECK(job.lateness_ns >= 0, ": %lld", (long long)job.lateness_ns);
        had(w, &job);
    }
    CREW_CHECK(rc == DUE_ECLOSED, ": %s", due_error_name(rc));
    return 0;
}

static due_id put(struct world *w, uint32_t number, int64_t at_ns)
{
    due_spec spec = { DUE_SPEC_INIT, .data = &number, .len = sizeof number, .at_ns = at_ns };
    due_id id;

    atomic_store(&w->gone[number % JOBS], 0);
    int rc = due_enqueue(w->q, &spec, DUE_FOREVER, &id);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    return id;
}

/* More bytes than fit into its place. */
static void change(struct world *w, uint32_t number, due_id id)
{
    uint32_t bytes[CHANGED];

    for (size_t i = 0; i < CHANGED; i++)
        bytes[i] = number;
    int rc = due_update(w->q, id, bytes, sizeof bytes);
    CREW_CHECK(rc == 0 || rc == DUE_EBUSY || rc == DUE_ENOENT, ": %s", due_error_name(rc));
}

static void take_beside(struct world *w)
{
    due_job job;
    int rc = due_dequeue(w->q, &job, 0);

    CREW_CHECK(rc == 0 || rc == DUE_EAGAIN, ": %s", due_error_name(rc));
    if (rc == 0)
        had(w, &job);
}

/* One job, and perhaps something happens to it just when it is due.  Answers how many are left. */
static unsigned one_job(struct world *w, uint32_t number, uint64_t *seed)
{
    int64_t delay = (int64_t)crew_below(seed, 60000);
    int64_t at = due_now(w->q) + delay;
    due_id id = put(w, number, at);
    int rc;

    int64_t until = at - 1000 + (int64_t)crew_below(seed, 2000);
    while (crew_below(seed, 4) != 0 && due_now(w->q) < until)
        ;
    switch (crew_below(seed, 8)) {
    case 0:
        rc = due_cancel(w->q, id, NULL);
        CREW_CHECK(rc == 0 || rc == DUE_EBUSY || rc == DUE_ENOENT, ": %s", due_error_name(rc));
        if (rc == 0)
            CREW_CHECK(!gone(w, number), ": job %u was taken, and is cancelled", number);
        return rc == 0 ? 0 : 1;
    case 1:
        rc = due_reschedule(w->q, id, at + (int64_t)crew_below(seed, 40000) - 20000);
        CREW_CHECK(rc == 0 || rc == DUE_EBUSY || rc == DUE_ENOENT, ": %s", due_error_name(rc));
        break;
    case 2:
        rc = due_pause(w->q, 0);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        rc = due_resume(w->q, 0);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        break;
    case 3:
        put(w, number + 1, at - 30000 + (int64_t)crew_below(seed, 60000));
        return 2;
    case 4:
        change(w, number, id);
        break;
    case 5:
        take_beside(w);
        break;
    default:
        break;
    }
    return 1;
}

static uint64_t round_of(enum due_proxies proxies, int64_t ns, uint64_t seed)
{
    struct world w = { .seed = seed };
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .spin_ns = 200000 };
    struct crew_thread threads[CONSUMERS];
    uint64_t given = 0;
    uint32_t number = 0;
    int64_t end = crew_now_ns() + ns;

    w.q = crew_open(&options);
    for (size_t i = 0; i < CONSUMERS; i++)
        crew_go(&threads[i], consume, &w);
    while (crew_now_ns() < end) {
        given += one_job(&w, number, &seed);
        number += 2;
        while (atomic_load(&w.taken) + 3 < given)
            crew_sleep(10000);
    }
    int rc = due_close(w.q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    for (size_t i = 0; i < CONSUMERS; i++)
        crew_join(&threads[i]);
    CREW_CHECK(atomic_load(&w.taken) == given, ": %llu of %llu",
               (unsigned long long)atomic_load(&w.taken), (unsigned long long)given);
    crew_close(w.q, DUE_CLOSE_DRAIN);
    return given;
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 0.6);
    uint64_t taken = 0;

    for (int mode = 0; mode < 3; mode++) {
        crew_doing(crew_mode_names[mode]);
        taken += round_of((enum due_proxies)mode, o.ns / 3, o.seed);
    }
    printf("thread_spin: %llu jobs, each once or cancelled, none early\n",
           (unsigned long long)taken);
    return 0;
}
