/* liveness_mixed_waiters.c - everyone who can go on does.  (B6)
 *
 * Consumers with different timeouts and topics, a canceller and a closer: a wake-up must not go to
 * one who cannot use it, nor be used up by one who leaves.  Each round, some jobs come due, some
 * callers' time is up, and the rest is closed; whoever should have returned is counted.
 */
#include <stdio.h>

#include "lab/crew.h"

#define CALLERS 6

static void must(int rc)
{
    CREW_CHECK(rc >= 0, ": %s", due_error_name(rc));
}

static void put(due_queue *q, int topic, int64_t delay_ns, due_id *id)
{
    due_spec spec = { DUE_SPEC_INIT, .topic = topic, .delay_ns = delay_ns };

    must(due_enqueue(q, &spec, 0, id));
}

/* Callers 0 and 1 take anything, 2 to 4 a topic each, 5 two topics.  Their timeouts differ. */
static void start(struct crew_call *c, due_queue *q, const int *topics, uint64_t *seed)
{
    for (int i = 0; i < CALLERS; i++) {
        int64_t timeout =
            crew_below(seed, 2) == 0 ? DUE_FOREVER : 1 + (int64_t)crew_below(seed, 2000000);

        if (i < 2)
            crew_call_dequeue(&c[i], q, timeout);
        else if (i < 5)
            crew_call_dequeue_from(&c[i], q, &topics[i - 2], 1, timeout);
        else
            crew_call_dequeue_from(&c[i], q, topics, 2, timeout);
    }
}

static unsigned round_of(enum due_proxies proxies, uint64_t *seed)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies };
    due_queue *q = crew_open(&options);
    int topics[3] = { due_topic(q, "a"), due_topic(q, "b"), due_topic(q, "c") };
    struct crew_call callers[CALLERS];
    struct due_stats stats;
    unsigned taken = 0;
    due_id doomed[3];

    start(callers, q, topics, seed);
    for (int i = 0; i < 3; i++) {
        put(q, topics[i], (int64_t)crew_below(seed, 1500000), NULL);
        put(q, topics[i], (int64_t)crew_below(seed, 1500000), &doomed[i]);
    }
    int64_t end = crew_now_ns() + DUE_S(5);
    for (int i = 0; i < 3; i++)
        due_cancel(q, doomed[i], NULL);
    /* Two callers take anything.  Those who have no timeout must, between them, empty the queue or
     * have got one job each. */
    crew_doing("waiting for those who can go on");
    do
        must(due_stats_read(q, &stats));
    while (stats.waiting > 0 && stats.dequeued < 2 && crew_now_ns() < end &&
           (callers[0].timeout_ns == DUE_FOREVER || callers[1].timeout_ns == DUE_FOREVER) &&
           !atomic_load(&callers[0].thread.back));
    CREW_CHECK(crew_now_ns() < end, ": %llu jobs wait, %llu were taken",
               (unsigned long long)stats.waiting, (unsigned long long)stats.dequeued);
    crew_doing("waiting for timeouts");
    for (int i = 0; i < CALLERS; i++)
        while (callers[i].timeout_ns != DUE_FOREVER && !atomic_load(&callers[i].thread.back))
            CREW_CHECK(crew_now_ns() < end, ": caller %d did not come back", i);
    crew_doing("closing");
    must(due_close(q, DUE_CLOSE_DISCARD, DUE_S(20)));
    for (int i = 0; i < CALLERS; i++) {
        int rc = crew_call_answer(&callers[i]);

        CREW_CHECK(rc == 0 || rc == DUE_ECLOSED || rc == DUE_ETIMEDOUT, ": %s", due_error_name(rc));
        taken += rc == 0;
        if (rc == 0)
            due_job_done(&callers[i].job);
    }
    crew_close(q, DUE_CLOSE_DISCARD);
    return taken;
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 1);
    int64_t end = crew_now_ns() + o.ns;
    uint64_t seed = o.seed;
    unsigned rounds = 0;
    unsigned taken = 0;

    for (; crew_now_ns() < end || rounds < 30; rounds++)
        taken += round_of((enum due_proxies)(rounds % 3), &seed);
    printf("liveness_mixed_waiters: %u rounds, %u jobs taken\n", rounds, taken);
    return 0;
}
