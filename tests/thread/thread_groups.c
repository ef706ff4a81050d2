/* thread_groups.c - two producers, five consumers and one who meddles; a hundred groups, and a
 * topic whose limit changes.
 *
 * Of one group never two jobs are out at once, none comes before an earlier one that has not ended,
 * and when everything has gone every pass is back.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "lab/crew.h"
#include "queue/limit.h"
#include "lab/take.h"

#define GROUPS    100u
#define PRODUCERS 2u
#define CONSUMERS 5u
#define EACH      6000u
#define RECENT    64u

struct world {
    due_queue *q;
    uint64_t seed;
    uint32_t each;
    atomic_uint producer;
    atomic_uint consumer;
    atomic_uint out[GROUPS];    /* jobs of it that somebody has */
    atomic_uint latest[GROUPS]; /* the last that was handed out */
    atomic_bool stop;
    bool moves;                       /* jobs are moved, so their order is not kept */
    due_id recent[PRODUCERS][RECENT]; /* under the lock */
    pthread_mutex_t lock;
};

/* What a job carries. */
struct text {
    uint32_t group;
    uint32_t number;
};

/* A group belongs to one producer, so its jobs come in order. */
static int produce(void *arg)
{
    struct world *w = arg;
    unsigned self = atomic_fetch_add(&w->producer, 1);
    uint64_t seed = w->seed + self;

    for (uint32_t n = 1; n <= w->each; n++) {
        uint32_t group = (uint32_t)crew_below(&seed, GROUPS / PRODUCERS) * PRODUCERS + self;
        struct text text = { group, n };
        due_spec spec = { DUE_SPEC_INIT, .data = &text, .len = sizeof text,
                          .more = EXTRA(.group = &group, .group_len = sizeof group),
                          .topic = (int)(group & 1) };
        due_id id;
        int rc = due_enqueue(w->q, &spec, 0, &id);

        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        pthread_mutex_lock(&w->lock);
        w->recent[self][n % RECENT] = id;
        pthread_mutex_unlock(&w->lock);
    }
    return 0;
}

static void look(struct world *w, const struct text *text)
{
    unsigned out = atomic_fetch_add(&w->out[text->group], 1);
    unsigned latest = atomic_exchange(&w->latest[text->group], text->number);

    CREW_CHECK(out == 0, ": %u more of group %u are out", out, text->group);
    CREW_CHECK(w->moves || text->number >= latest, ": %u after %u", text->number, latest);
}

/* It ends, or is given back; nobody may have the group before that. */
static void answer(struct world *w, due_job *job, const struct text *text, uint64_t *seed)
{
    int rc = 0;

    atomic_fetch_sub(&w->out[text->group], 1);
    if (job->token == 0) {
        due_job_done(job);
        return;
    }
    switch (crew_below(seed, 8)) {
    case 0: /* a cancel may have been quicker */
        rc = due_nack(job, 0);
        break;
    case 1:
        rc = due_nack(job, DUE_US(50));
        break;
    default:
        rc = due_ack(job);
    }
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
}

static int consume(void *arg)
{
    struct world *w = arg;
    uint64_t seed = w->seed + 100 + atomic_fetch_add(&w->consumer, 1);
    due_job jobs[4];

    for (;;) {
        bool reserve = crew_below(&seed, 3) != 0;
        size_t max = 1 + (size_t)crew_below(&seed, 4);
        int rc = reserve ? take_leased_some(w->q, NULL, 0, jobs, max, DUE_S(100), DUE_FOREVER)
                         : take_some(w->q, NULL, 0, jobs, max, DUE_FOREVER);

        if (rc == DUE_ECLOSED)
            return 0;
        CREW_CHECK(rc > 0, ": %s", due_error_name(rc));
        for (int i = 0; i < rc; i++) {
            struct text text;

            memcpy(&text, jobs[i].data, sizeof text);
            look(w, &text);
            if (crew_below(&seed, 16) == 0)
                sched_yield();
            answer(w, &jobs[i], &text, &seed);
        }
    }
}

static int meddle(void *arg)
{
    struct world *w = arg;
    uint64_t seed = w->seed + 200;

    while (!atomic_load(&w->stop)) {
        uint64_t some = crew_below(&seed, PRODUCERS * RECENT);

        pthread_mutex_lock(&w->lock);
        due_id id = w->recent[some / RECENT][some % RECENT];
        pthread_mutex_unlock(&w->lock);
        int rc =
            w->moves && crew_below(&seed, 2) ? due_promote(w->q, id) : due_cancel(w->q, id, NULL);
        CREW_CHECK(rc == 0 || rc == DUE_EBUSY || rc == DUE_ENOENT, ": %s", due_error_name(rc));
        rc = due_topic_limit(w->q, 1, (size_t)crew_below(&seed, 6));
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
    return 0;
}

static uint64_t round_of(enum due_proxies proxies, uint64_t seed)
{
    struct world w = { .seed = seed,
                       .each = proxies == DUE_PROXIES_ALWAYS ? EACH / 8 : EACH,
                       .moves = seed % 2 != 0 };
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies };
    struct crew_thread producers[PRODUCERS];
    struct crew_thread consumers[CONSUMERS];
    struct crew_thread meddler;
    struct due_stats s;

    pthread_mutex_init(&w.lock, NULL);
    w.q = crew_open(&options);
    CREW_CHECK(due_topic(w.q, "limited") == 1, ": no topic");
    for (unsigned i = 0; i < CONSUMERS; i++)
        crew_go(&consumers[i], consume, &w);
    crew_go(&meddler, meddle, &w);
    for (unsigned i = 0; i < PRODUCERS; i++)
        crew_go(&producers[i], produce, &w);
    for (unsigned i = 0; i < PRODUCERS; i++)
        crew_join(&producers[i]);
    atomic_store(&w.stop, true);
    crew_join(&meddler);
    int rc = due_close(w.q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    for (unsigned i = 0; i < CONSUMERS; i++)
        crew_join(&consumers[i]);
    rc = due_stats_read(w.q, &s);
    CREW_CHECK(rc == 0 && s.passed == 0, ": %llu passes are lost", (unsigned long long)s.passed);
    CREW_CHECK(due__limiters_check(w.q), ": passes, lists or counts");
    CREW_CHECK(s.acked + s.dequeued + s.cancelled == PRODUCERS * w.each, ": some are lost");
    CREW_CHECK(due_free(w.q) == 0, ": it is busy");
    pthread_mutex_destroy(&w.lock);
    return PRODUCERS * w.each;
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    int64_t end = crew_now_ns() + o.ns;
    uint64_t jobs = 0;

    for (uint64_t i = 0; i < 6 || crew_now_ns() < end; i++) {
        crew_doing(crew_mode_names[i % 3]);
        jobs += round_of((enum due_proxies)(i % 3), o.seed + i);
    }
    printf("thread_groups: %llu jobs, one of a group at a time\n", (unsigned long long)jobs);
    return 0;
}
