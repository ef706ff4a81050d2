/* thread_capacity.c - a bounded queue is never fuller than it may be, and everyone who waits for
 * room gets it.
 */
#include <stdio.h>

#include "lab/crew.h"

#define CAPACITY 16

struct world {
    due_queue *q;
    atomic_ullong given;
    atomic_ullong taken;
    atomic_ullong refused;
    atomic_bool stop;
    uint64_t seed;
    atomic_uint number;
};

static int produce(void *arg)
{
    struct world *w = arg;
    uint64_t seed = w->seed + atomic_fetch_add(&w->number, 1);

    while (!atomic_load(&w->stop)) {
        static const int64_t timeouts[] = { 0, 1000, 100000, DUE_FOREVER };
        int64_t timeout = timeouts[crew_below(&seed, 4)];
        size_t n = 1 + (size_t)crew_below(&seed, 5);
        due_spec specs[5];
        due_id ids[5];

        for (size_t i = 0; i < n; i++)
            specs[i] = (due_spec){ DUE_SPEC_INIT, .delay_ns = (int64_t)crew_below(&seed, 20000) };
        int rc = n == 1 ? due_enqueue(w->q, specs, timeout, ids)
                        : due_enqueue_batch(w->q, specs, n, timeout, ids);
        if (rc == DUE_ECLOSED)
            break;
        if (rc == DUE_EAGAIN || rc == DUE_ETIMEDOUT) {
            CREW_CHECK((rc == DUE_EAGAIN) == (timeout == 0), ": %s", due_error_name(rc));
            atomic_fetch_add(&w->refused, 1);
            continue;
        }
        CREW_CHECK(rc >= 0, ": %s", due_error_name(rc));
        atomic_fetch_add(&w->given, n == 1 ? 1 : (unsigned)rc);
        if (crew_below(&seed, 3) == 0 && due_cancel(w->q, ids[0], NULL) == 0)
            atomic_fetch_add(&w->taken, 1);
    }
    return 0;
}

static int consume(void *arg)
{
    struct world *w = arg;
    due_job job;
    int rc;

    while ((rc = due_dequeue(w->q, &job, DUE_FOREVER)) == 0) {
        atomic_fetch_add(&w->taken, 1);
        due_job_done(&job);
    }
    CREW_CHECK(rc == DUE_ECLOSED, ": %s", due_error_name(rc));
    return 0;
}

/* What is held and what is lent, as the queue counts them itself while all goes on. */
static int watch(void *arg)
{
    struct world *w = arg;
    due_info infos[4 * CAPACITY];

    while (!atomic_load(&w->stop)) {
        uint64_t cursor = 0;
        due_info info;
        int rc = due_peek(w->q, &info);

        CREW_CHECK(rc == 0 || rc == DUE_EAGAIN, ": %s", due_error_name(rc));
        rc = due_list(w->q, &cursor, infos, 4 * CAPACITY);
        CREW_CHECK(rc >= 0, ": %s", due_error_name(rc));
        crew_sleep(100000);
    }
    return 0;
}

static uint64_t round_of(enum due_proxies proxies, int64_t ns, uint64_t seed)
{
    struct world w = { .seed = seed };
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .capacity = CAPACITY };
    struct crew_thread threads[5];
    size_t n = 0;

    w.q = crew_open(&options);
    for (int i = 0; i < 3; i++)
        crew_go(&threads[n++], produce, &w);
    crew_go(&threads[n++], consume, &w);
    crew_go(&threads[n++], watch, &w);
    crew_sleep(ns);
    atomic_store(&w.stop, true);
    int rc = due_close(w.q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    for (size_t i = 0; i < n; i++)
        crew_join(&threads[i]);
    CREW_CHECK(atomic_load(&w.given) == atomic_load(&w.taken), ": %llu and %llu",
               (unsigned long long)atomic_load(&w.given),
               (unsigned long long)atomic_load(&w.taken));
    crew_close(w.q, DUE_CLOSE_DRAIN);
    return atomic_load(&w.given);
}

/* When all is still, the queue takes exactly as many as it may. */
static void exact(enum due_proxies proxies)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .capacity = CAPACITY };
    due_queue *q = crew_open(&options);
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(1000) };
    int n = 0;
    int rc;

    while ((rc = due_enqueue(q, &spec, 0, NULL)) == 0)
        n++;
    CREW_CHECK(rc == DUE_EAGAIN, ": %s", due_error_name(rc));
    CREW_CHECK(n == CAPACITY, ": %d", n);
    crew_close(q, DUE_CLOSE_DISCARD);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    uint64_t jobs = 0;

    for (int mode = 0; mode < 3; mode++) {
        crew_doing(crew_mode_names[mode]);
        exact((enum due_proxies)mode);
        jobs += round_of((enum due_proxies)mode, o.ns / 3, o.seed);
    }
    printf("thread_capacity: %llu jobs through a queue of %d\n", (unsigned long long)jobs,
           CAPACITY);
    return 0;
}
