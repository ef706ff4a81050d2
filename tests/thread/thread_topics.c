/* thread_topics.c - topics are made, paused, resumed and cleared while jobs go through them.
 *
 * Every topic's consumer gets its topic's jobs only, all of them, and nobody waits for another.
 */
#include <stdio.h>

#include "lab/crew.h"
#include "lab/take.h"

#define TOPICS 4
#define EACH   4000u

struct world {
    due_queue *q;
    int topics[TOPICS];
    atomic_uint next_consumer;
    atomic_uint taken[TOPICS];
    atomic_uint discarded;
    atomic_bool stop;
    uint64_t seed;
    uint32_t each;
};

static void on_discard(void *ctx, const due_job *job)
{
    struct world *w = ctx;

    (void)job;
    atomic_fetch_add(&w->discarded, 1);
}

static int produce(void *arg)
{
    struct world *w = arg;
    uint64_t seed = w->seed;

    for (uint32_t n = 0; n < w->each * TOPICS; n++) {
        due_spec spec = { DUE_SPEC_INIT, .topic = w->topics[n % TOPICS],
                          .delay_ns = (int64_t)crew_below(&seed, 100000) };
        int rc = due_enqueue(w->q, &spec, 0, NULL);

        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
    return 0;
}

/* Of one topic; the last one takes of all that are left over, several at once. */
static int consume(void *arg)
{
    struct world *w = arg;
    unsigned self = atomic_fetch_add(&w->next_consumer, 1);
    due_job jobs[16];

    for (;;) {
        int rc = self == 0 ? take_some(w->q, w->topics + 2, 2, jobs, 16, DUE_FOREVER)
                           : take_some(w->q, &w->topics[self - 1], 1, jobs, 16, DUE_FOREVER);

        if (rc == DUE_ECLOSED)
            return 0;
        CREW_CHECK(rc > 0, ": %s", due_error_name(rc));
        for (int i = 0; i < rc; i++) {
            int topic = jobs[i].topic;

            CREW_CHECK(self == 0 ? topic == w->topics[2] || topic == w->topics[3]
                                 : topic == w->topics[self - 1],
                       ": consumer %u got topic %d", self, topic);
            atomic_fetch_add(&w->taken[topic], 1);
            due_job_done(&jobs[i]);
        }
    }
}

static int meddle(void *arg)
{
    struct world *w = arg;
    uint64_t seed = w->seed + 7;
    unsigned n = 0;

    while (!atomic_load(&w->stop)) {
        int topic = w->topics[crew_below(&seed, TOPICS)];
        char name[24];
        int rc;

        rc = due_pause(w->q, crew_below(&seed, 8) == 0 ? DUE_ALL_TOPICS : topic);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        snprintf(name, sizeof name, "new-%u", n++ % 2000);
        rc = due_topic(w->q, name);
        CREW_CHECK(rc > 0, ": %s", due_error_name(rc));
        if (crew_below(&seed, 200) == 0) {
            rc = due_clear(w->q, topic, NULL);
            CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        }
        rc = due_resume(w->q, DUE_ALL_TOPICS);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
    return 0;
}

static unsigned round_of(enum due_proxies proxies, uint64_t seed)
{
    struct world w = { .seed = seed, .each = proxies == DUE_PROXIES_ALWAYS ? EACH / 8 : EACH };
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .on_discard = on_discard,
                            .ctx = &w };
    struct crew_thread consumers[3];
    struct crew_thread producer;
    struct crew_thread meddler;
    unsigned sum = 0;
    static const char *const names[TOPICS] = { "", "a", "b", "c" };

    w.q = crew_open(&options);
    for (int i = 0; i < TOPICS; i++) {
        w.topics[i] = due_topic(w.q, names[i]);
        CREW_CHECK(w.topics[i] == i, ": %d", w.topics[i]);
    }
    for (int i = 0; i < 3; i++)
        crew_go(&consumers[i], consume, &w);
    crew_go(&meddler, meddle, &w);
    crew_go(&producer, produce, &w);
    crew_join(&producer);
    atomic_store(&w.stop, true);
    crew_join(&meddler);
    int rc = due_close(w.q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    for (int i = 0; i < 3; i++)
        crew_join(&consumers[i]);
    for (int i = 0; i < TOPICS; i++)
        sum += atomic_load(&w.taken[i]);
    sum += atomic_load(&w.discarded);
    CREW_CHECK(sum == TOPICS * w.each, ": %u", sum);
    crew_close(w.q, DUE_CLOSE_DISCARD);
    return sum;
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    int64_t end = crew_now_ns() + o.ns;
    uint64_t jobs = 0;

    for (uint64_t i = 0; i < 3 || crew_now_ns() < end; i++) {
        crew_doing(crew_mode_names[i % 3]);
        jobs += round_of((enum due_proxies)(i % 3), o.seed + i);
    }
    printf("thread_topics: %llu jobs, each to its topic's consumer\n", (unsigned long long)jobs);
    return 0;
}
