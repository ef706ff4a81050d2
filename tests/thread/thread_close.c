/* thread_close.c - close in the middle of everything, with everybody blocked.
 *
 * Everyone who waits returns, and every job is handed out, given back to its enqueuer (an error),
 * or shown to on_discard, exactly once.
 */
#include <stdio.h>
#include <string.h>

#include "lab/crew.h"
#include "lab/take.h"

struct world {
    due_queue *q;
    atomic_ullong given; /* enqueues that answered 0 */
    atomic_ullong taken;
    atomic_ullong discarded;
    uint64_t seed;
    bool drain;
    int64_t pause_ns;
};

static void on_discard(void *ctx, const due_job *job)
{
    struct world *w = ctx;

    (void)job;
    atomic_fetch_add(&w->discarded, 1);
}

/* Fills the queue until it closes; blocked most of the time. */
static int produce(void *arg)
{
    struct world *w = arg;
    uint64_t seed = w->seed + (uint64_t)(uintptr_t)&seed;

    for (;;) {
        due_spec specs[4];
        size_t n = 1 + (size_t)crew_below(&seed, 4);
        int rc;

        for (size_t i = 0; i < n; i++)
            specs[i] = (due_spec){ DUE_SPEC_INIT, .delay_ns = (int64_t)crew_below(&seed, 300000) };
        rc = n == 1 ? due_enqueue(w->q, specs, DUE_FOREVER, NULL)
                    : due_enqueue_batch(w->q, specs, n, DUE_FOREVER, NULL);
        if (rc == DUE_ECLOSED)
            return 0;
        CREW_CHECK(rc >= 0, ": %s", due_error_name(rc));
        atomic_fetch_add(&w->given, n == 1 ? 1 : (unsigned)rc);
    }
}

static int consume(void *arg)
{
    static const int topic = 0;
    struct world *w = arg;
    uint64_t seed = w->seed + (uint64_t)(uintptr_t)&seed;
    due_job job;

    for (;;) {
        int rc = crew_below(&seed, 2) == 0 ? due_dequeue(w->q, &job, DUE_FOREVER)
                                           : take_from(w->q, &topic, 1, &job, DUE_FOREVER);

        if (rc == DUE_ECLOSED)
            return 0;
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        atomic_fetch_add(&w->taken, 1);
        due_job_done(&job);
    }
}

/* Consumers of a topic that never gets a job. */
static int consume_nothing(void *arg)
{
    struct world *w = arg;
    int topic = 1;
    due_job job;
    int rc = take_from(w->q, &topic, 1, &job, DUE_FOREVER);

    CREW_CHECK(rc == DUE_ECLOSED, ": %s", due_error_name(rc));
    return 0;
}

static int close_too(void *arg)
{
    struct world *w = arg;
    int rc;

    crew_sleep(w->pause_ns);
    rc = due_close(w->q, w->drain ? DUE_CLOSE_DRAIN : DUE_CLOSE_DISCARD, DUE_FOREVER);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    return 0;
}

static void round_of(enum due_proxies proxies, uint64_t seed, bool drain)
{
    struct world w = { .seed = seed, .drain = drain };
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .capacity = 8,
                            .on_discard = on_discard, .ctx = &w };
    struct crew_thread threads[6];
    size_t n = 0;

    w.pause_ns = (int64_t)crew_below(&seed, 2000000);
    w.q = crew_open(&options);
    int topic = due_topic(w.q, "nothing");
    CREW_CHECK(topic == 1, ": %d", topic);
    crew_go(&threads[n++], produce, &w);
    crew_go(&threads[n++], produce, &w);
    crew_go(&threads[n++], consume, &w);
    if (seed % 2 == 0)
        crew_go(&threads[n++], consume, &w);
    crew_go(&threads[n++], consume_nothing, &w);
    crew_go(&threads[n++], close_too, &w);
    close_too(&w);
    for (size_t i = 0; i < n; i++)
        crew_join(&threads[i]);

    struct due_stats s;
    int rc = due_stats_read(w.q, &s);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    CREW_CHECK(s.enqueued == atomic_load(&w.given), ": %llu, not %llu",
               (unsigned long long)s.enqueued, (unsigned long long)atomic_load(&w.given));
    CREW_CHECK(s.dequeued == atomic_load(&w.taken), ": %llu", (unsigned long long)s.dequeued);
    CREW_CHECK(s.discarded == atomic_load(&w.discarded), ": %llu", (unsigned long long)s.discarded);
    CREW_CHECK(!drain || s.discarded == 0, ": %llu", (unsigned long long)s.discarded);
    crew_close(w.q, DUE_CLOSE_DISCARD);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    int64_t end = crew_now_ns() + o.ns;
    uint64_t rounds = 0;

    do {
        enum due_proxies proxies = (enum due_proxies)(rounds % 3);

        crew_doing(crew_mode_names[proxies]);
        round_of(proxies, o.seed + rounds, rounds / 3 % 2);
        rounds++;
    } while (crew_now_ns() < end || rounds < 6);
    printf("thread_close: %llu queues closed in the middle\n", (unsigned long long)rounds);
    return 0;
}
