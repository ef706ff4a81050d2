/* thread_fd.c - a loop that sleeps in poll() on the queue's descriptor misses nothing that other
 * threads put in, move, cancel or resume.
 */
#include <poll.h>
#include <stdio.h>

#include "lab/crew.h"

#define LATE_MS 5000 /* poll() without an event for so long, though jobs are due: missed */

struct world {
    due_queue *q;
    int64_t end_ns;
    uint64_t seed;
    atomic_uint number;
    atomic_ullong given;
    atomic_ullong gone; /* taken or cancelled */
};

static int produce(void *arg)
{
    struct world *w = arg;
    uint64_t seed = w->seed + atomic_fetch_add(&w->number, 1);

    while (crew_now_ns() < w->end_ns) {
        due_spec spec = { DUE_SPEC_INIT, .delay_ns = (int64_t)crew_below(&seed, 200000) };
        due_id id;

        if (crew_below(&seed, 4) == 0)
            spec.delay_ns = 0;
        int rc = due_enqueue(w->q, &spec, 0, &id);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        atomic_fetch_add(&w->given, 1);
        switch (crew_below(&seed, 8)) {
        case 0:
            if (due_cancel(w->q, id, NULL) == 0)
                atomic_fetch_add(&w->gone, 1);
            break;
        case 1:
            rc = due_promote(w->q, id);
            CREW_CHECK(rc == 0 || rc == DUE_EBUSY || rc == DUE_ENOENT, ": %s", due_error_name(rc));
            break;
        case 2:
            rc = due_pause(w->q, 0);
            CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
            rc = due_resume(w->q, 0);
            CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
            break;
        default:
            break;
        }
        while (atomic_load(&w->given) > atomic_load(&w->gone) + 20 && crew_now_ns() < w->end_ns)
            crew_sleep(20000);
    }
    return 0;
}

/* As the manual says: take with timeout 0 until there is nothing, then sleep in poll(). */
static uint64_t serve(struct world *w, int fd, struct crew_thread *producers, int n)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    uint64_t wakeups = 0;
    bool producing = true;
    due_job job;
    int rc;

    while (producing || atomic_load(&w->gone) < atomic_load(&w->given)) {
        int events = poll(&p, 1, producing ? 50 : LATE_MS);

        CREW_CHECK(events >= 0, ": poll");
        if (events == 0 && !producing)
            CREW_CHECK(atomic_load(&w->gone) == atomic_load(&w->given),
                       ": a job is due, and the descriptor was not readable");
        wakeups++;
        while ((rc = due_dequeue(w->q, &job, 0)) == 0) {
            atomic_fetch_add(&w->gone, 1);
            due_job_done(&job);
        }
        CREW_CHECK(rc == DUE_EAGAIN, ": %s", due_error_name(rc));
        if (producing && crew_now_ns() > w->end_ns + DUE_MS(1)) {
            for (int i = 0; i < n; i++)
                crew_join(&producers[i]);
            producing = false;
        }
    }
    return wakeups;
}

static void round_of(enum due_proxies proxies, enum due_clock_kind clock, int64_t ns, uint64_t seed)
{
    struct world w = { .seed = seed, .end_ns = crew_now_ns() + ns };
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .clock = clock };
    struct crew_thread producers[2];

    w.q = crew_open(&options);
    int fd = due_fd(w.q);
    CREW_CHECK(fd >= 0, ": %s", due_error_name(fd));
    for (int i = 0; i < 2; i++)
        crew_go(&producers[i], produce, &w);
    uint64_t wakeups = serve(&w, fd, producers, 2);
    printf("  %-8s %llu jobs, %llu wake-ups\n", crew_mode_names[proxies],
           (unsigned long long)atomic_load(&w.given), (unsigned long long)wakeups);
    crew_close(w.q, DUE_CLOSE_DRAIN);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);

    for (int mode = 0; mode < 3; mode++)
        for (int clock = 0; clock < 3; clock++) {
            crew_doing(crew_mode_names[mode]);
            round_of((enum due_proxies)mode, (enum due_clock_kind)clock, o.ns / 9, o.seed);
        }
    printf("thread_fd: nothing missed\n");
    return 0;
}
