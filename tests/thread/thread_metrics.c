/* thread_metrics.c - the figures of a queue are read in every way, while all that they are about
 * changes: jobs come and go, and wait for limits and groups, topics are paused, leases end.
 *
 * No figure is more than can be, and when all has gone the topics' figures add up.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "due/metrics.h"
#include "lab/crew.h"
#include "lab/take.h"

enum { WORKERS = 3, READERS = 2, TOPICS = 3, LIMITED = 1, GROUPS = 4, CAPACITY = 500 };
enum { TEXT = 1 << 16 };

struct world {
    due_queue *q;
    uint64_t seed;
    int64_t end_ns;
    atomic_uint number; /* of the next thread */
};

static bool is_over(const struct world *w)
{
    return crew_now_ns() >= w->end_ns;
}

static void put(struct world *w, uint64_t *seed)
{
    uint32_t group = (uint32_t)crew_below(seed, 2 * GROUPS);
    bool grouped = group < GROUPS;
    due_spec spec = {
        DUE_SPEC_INIT, .topic = (int)crew_below(seed, TOPICS), .priority = (int)crew_below(seed, 3),
        .delay_ns = crew_below(seed, 2) ? DUE_US(30) : 0,
        .more = EXTRA(.group = grouped ? &group : NULL, .group_len = grouped ? sizeof group : 0)
    };
    due_id id;

    int rc = due_enqueue(w->q, &spec, 0, &id);
    CREW_CHECK(rc == 0 || rc == DUE_EAGAIN, ": %s", due_error_name(rc));
    if (rc == 0 && crew_below(seed, 8) == 0)
        (void)due_cancel(w->q, id, NULL);
}

/* Some answer, and some leave that to the end of the lease. */
static void take(struct world *w, uint64_t *seed)
{
    due_job job;
    bool lasts = crew_below(seed, 4) != 0;
    int rc = crew_below(seed, 3) != 0 ? take_leased(w->q, &job, lasts ? DUE_S(100) : DUE_US(20), 0)
                                      : due_dequeue(w->q, &job, 0);

    CREW_CHECK(rc == 0 || rc == DUE_EAGAIN, ": %s", due_error_name(rc));
    if (rc != 0)
        return;
    if (job.token == 0 || !lasts)
        due_job_done(&job);
    else if (crew_below(seed, 3) == 0)
        CREW_CHECK(due_nack(&job, 0) == 0, "");
    else
        CREW_CHECK(due_ack(&job) == 0, "");
}

static void meddle(struct world *w, uint64_t *seed)
{
    int rc = 0;

    switch (crew_below(seed, 4)) {
    case 0:
        rc = due_topic_limit(w->q, LIMITED, (size_t)crew_below(seed, 3));
        break;
    case 1:
        rc = due_pause(w->q, LIMITED);
        break;
    case 2:
        rc = due_topic_measure(w->q, (int)crew_below(seed, TOPICS));
        rc = rc == DUE_ENOTSUP ? 0 : rc;
        break;
    default:
        rc = due_resume(w->q, LIMITED);
    }
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
}

static int work(void *arg)
{
    struct world *w = arg;
    uint64_t seed = w->seed + atomic_fetch_add(&w->number, 1);

    while (!is_over(w)) {
        uint64_t what = crew_below(&seed, 16);

        if (what < 8)
            put(w, &seed);
        else if (what < 15)
            take(w, &seed);
        else
            meddle(w, &seed);
    }
    return 0;
}

/* More than fit in, and are put just now, are never there. */
static void look_at_topic(const struct due_topic_stats *s)
{
    CREW_CHECK(s->ready <= CAPACITY + WORKERS, ": %llu are ready", (unsigned long long)s->ready);
    CREW_CHECK(s->leased <= CAPACITY + WORKERS, ": %llu are leased", (unsigned long long)s->leased);
    CREW_CHECK(s->dead == 0, "");
}

static int look(void *arg)
{
    struct world *w = arg;
    uint64_t seed = w->seed + 100 + atomic_fetch_add(&w->number, 1);
    char *text = malloc(TEXT);

    CREW_CHECK(text != NULL, "");
    while (!is_over(w)) {
        struct due_topic_stats topic;
        struct due_metrics m;
        due_histogram late;
        due_histogram held;
        int t = (int)crew_below(&seed, TOPICS);

        CREW_CHECK(due_metrics_read(w->q, &m) == 0, "");
        CREW_CHECK(m.stats.ready <= CAPACITY + WORKERS, "");
        CREW_CHECK(due_topic_stats_read(w->q, t, &topic) == 0, "");
        look_at_topic(&topic);
        CREW_CHECK(due_topic_durations(w->q, t, &late, &held) == 0, "");
        int len = due_metrics_write(w->q, text, TEXT);
        CREW_CHECK(len > 0 && strlen(text) == (size_t)len, ": %d", len);
    }
    free(text);
    return 0;
}

/* All is cancelled or discarded. */
static void expect_all_gone(due_queue *q)
{
    for (int t = 0; t < TOPICS; t++) {
        struct due_topic_stats s;

        CREW_CHECK(due_topic_stats_read(q, t, &s) == 0, "");
        uint64_t left = s.dequeued + s.acked + s.cancelled + s.discarded;
        CREW_CHECK(s.enqueued == left && s.ready == 0 && s.leased == 0,
                   ": topic %d: %llu were put, %llu have left, %llu are ready, %llu leased", t,
                   (unsigned long long)s.enqueued, (unsigned long long)left,
                   (unsigned long long)s.ready, (unsigned long long)s.leased);
    }
}

static void round_of(enum due_proxies proxies, uint64_t seed, int64_t end_ns)
{
    struct world w = { .seed = seed, .end_ns = end_ns };
    due_options o = { DUE_OPTIONS_INIT, .proxies = proxies, .capacity = CAPACITY,
                      .metrics = seed % 3 != 0,
                      .order = seed % 2 != 0 ? DUE_ORDER_PRIORITY : DUE_ORDER_DEADLINE };
    struct crew_thread workers[WORKERS];
    struct crew_thread readers[READERS];

    w.q = crew_open(&o);
    CREW_CHECK(due_topic(w.q, "limited") == LIMITED, ": no topic");
    CREW_CHECK(due_topic(w.q, "last") == TOPICS - 1, ": no topic");
    for (int i = 0; i < WORKERS; i++)
        crew_go(&workers[i], work, &w);
    for (int i = 0; i < READERS; i++)
        crew_go(&readers[i], look, &w);
    for (int i = 0; i < WORKERS; i++)
        crew_join(&workers[i]);
    for (int i = 0; i < READERS; i++)
        crew_join(&readers[i]);
    int rc = due_close(w.q, DUE_CLOSE_DISCARD, DUE_FOREVER);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    if (o.metrics)
        expect_all_gone(w.q);
    crew_close(w.q, DUE_CLOSE_DISCARD);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 1);
    int64_t end = crew_now_ns() + o.ns;
    uint64_t rounds = 0;

    for (uint64_t i = 0; i < 6 || crew_now_ns() < end; i++, rounds++) {
        crew_doing(crew_mode_names[i % 3]);
        round_of((enum due_proxies)(i % 3), o.seed + i / 3, crew_now_ns() + DUE_MS(30));
    }
    printf("thread_metrics: %llu rounds\n", (unsigned long long)rounds);
    return 0;
}
