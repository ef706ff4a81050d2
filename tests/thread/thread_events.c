/* thread_events.c - many threads at work on the same jobs, and each event of a job comes in the
 * order of its life; what was told adds up to what was counted.
 */
#include <stdio.h>
#include <string.h>

#include "lab/crew.h"
#include "due/metrics.h"
#include "lab/take.h"

#define JOBS  (1u << 15) /* of one round, at most */
#define IDS   512        /* of the last jobs, for those who name one */
#define KINDS (DUE_EVENT_KICKED + 1)

/* Where a job is, as was told: the last event, and whether its life is over. */
struct life {
    pthread_mutex_t lock;
    due_id id;
    enum due_event_kind last;
    bool over;
    bool used;
};

struct world {
    due_queue *q;
    struct life lives[JOBS * 2]; /* a table by id */
    pthread_mutex_t table;
    atomic_ullong told[KINDS];
    atomic_uint next;
    due_id id[IDS];
    pthread_mutex_t ids;
    atomic_bool stop;
    int64_t end_ns;
    uint64_t seed;
    bool drain;
};

static struct world world;

static struct life *life_of(due_id id)
{
    uint64_t h[2];

    memcpy(h, &id, sizeof h);
    uint64_t at = (h[0] * 31 + h[1]) * UINT64_C(0x9e3779b97f4a7c15) >> 32;

    pthread_mutex_lock(&world.table);
    for (;; at++) {
        struct life *l = &world.lives[at % (JOBS * 2)];

        if (!l->used) {
            l->used = true;
            l->id = id;
            pthread_mutex_init(&l->lock, NULL);
        }
        if (due_id_equal(l->id, id)) {
            pthread_mutex_unlock(&world.table);
            return l;
        }
    }
}

/* May @next follow @last? */
static bool follows(enum due_event_kind last, enum due_event_kind next)
{
    bool leaves = next == DUE_EVENT_CANCELLED || next == DUE_EVENT_DISCARDED;

    switch ((int)last) {
    case 0:
        return next == DUE_EVENT_PRODUCED;
    case DUE_EVENT_PRODUCED:
    case DUE_EVENT_RETRIED:
    case DUE_EVENT_KICKED:
        return next == DUE_EVENT_READY || leaves;
    case DUE_EVENT_READY: /* again: it was moved meanwhile */
        return next == DUE_EVENT_READY || next == DUE_EVENT_DELIVERED || leaves ||
               next == DUE_EVENT_DEAD;
    case DUE_EVENT_DELIVERED:
        return next == DUE_EVENT_ACKED || next == DUE_EVENT_RETRIED || next == DUE_EVENT_DEAD ||
               leaves;
    case DUE_EVENT_DEAD:
        return next == DUE_EVENT_KICKED || leaves;
    default:
        return false;
    }
}

static void on_event(void *ctx, const due_event *e)
{
    struct life *l = life_of(e->id);

    (void)ctx;
    if (pthread_mutex_trylock(&l->lock) != 0)
        crew_fail(__FILE__, __LINE__, "two events of one job at a time");
    CREW_CHECK(!l->over && follows(l->last, e->kind), ": %s after %s%s", due_event_name(e->kind),
               due_event_name(l->last), l->over ? ", its last" : "");
    l->last = e->kind;
    l->over = e->kind == DUE_EVENT_ACKED || e->kind == DUE_EVENT_CANCELLED ||
              e->kind == DUE_EVENT_DISCARDED || (e->kind == DUE_EVENT_DELIVERED && !e->leased);
    pthread_mutex_unlock(&l->lock);
    atomic_fetch_add(&world.told[e->kind], 1);
}

static bool goes_on(void)
{
    return !atomic_load(&world.stop) && crew_now_ns() < world.end_ns;
}

static int produce(void *arg)
{
    uint64_t seed = world.seed + (uint64_t)(uintptr_t)arg;
    uint32_t n;

    while (goes_on() && (n = atomic_fetch_add(&world.next, 4)) < JOBS - 4) {
        const due_extra mortal = { DUE_EXTRA_INIT, .ttl_ns = 100000 };
        due_spec specs[4];
        due_id ids[4];

        for (int i = 0; i < 4; i++)
            specs[i] =
                (due_spec){ DUE_SPEC_INIT, .topic = (int)crew_below(&seed, 2),
                            .delay_ns =
                                crew_below(&seed, 3) == 0 ? 0 : (int64_t)crew_below(&seed, 200000),
                            .more = crew_below(&seed, 8) == 0 ? &mortal : NULL };
        bool batch = crew_below(&seed, 2) == 0;
        int rc = batch ? due_enqueue_batch(world.q, specs, 4, 0, ids)
                       : due_enqueue(world.q, specs, 0, ids);
        CREW_CHECK(rc >= 0 || rc == DUE_ECLOSED, ": %s", due_error_name(rc));
        for (int i = 0; i < (batch ? rc : 1) && rc >= 0; i++) {
            pthread_mutex_lock(&world.ids);
            world.id[(n + (uint32_t)i) % IDS] = ids[i];
            pthread_mutex_unlock(&world.ids);
        }
    }
    return 0;
}

static void answer(due_job *job, uint64_t *seed)
{
    int rc = 0;

    switch (crew_below(seed, 6)) {
    case 0:
        rc = due_nack(job, (int64_t)crew_below(seed, 100000));
        break;
    case 1:
        rc = due_bury(job, NULL);
        break;
    case 2: /* let it lapse */
        due_job_done(job);
        break;
    default:
        rc = due_ack(job);
    }
    CREW_CHECK(rc == 0 || rc == DUE_ESTALE, ": %s", due_error_name(rc));
}

static int consume(void *arg)
{
    uint64_t seed = world.seed * 7 + (uint64_t)(uintptr_t)arg;

    while (!atomic_load(&world.stop)) {
        bool reserve = crew_below(&seed, 3) > 0;
        int64_t timeout = crew_below(&seed, 2) == 0 ? 0 : 100000;
        due_job job;
        int rc = reserve ? take_leased(world.q, &job, 20000 + (int64_t)crew_below(&seed, 300000),
                                       timeout)
                         : due_dequeue(world.q, &job, timeout);

        if (rc == DUE_ECLOSED)
            return 0;
        CREW_CHECK(rc == 0 || rc == DUE_EAGAIN || rc == DUE_ETIMEDOUT, ": %s", due_error_name(rc));
        if (rc == 0 && reserve)
            answer(&job, &seed);
        else if (rc == 0)
            due_job_done(&job);
    }
    return 0;
}

static int name(void *arg)
{
    uint64_t seed = world.seed * 13 + (uint64_t)(uintptr_t)arg;
    struct due_metrics m;

    while (goes_on()) {
        pthread_mutex_lock(&world.ids);
        due_id id = world.id[crew_below(&seed, IDS)];
        pthread_mutex_unlock(&world.ids);
        due_job job;

        switch (crew_below(&seed, 6)) {
        case 0:
            due_cancel(world.q, id, NULL);
            break;
        case 1:
            if (due_cancel(world.q, id, &job) == 0)
                due_job_done(&job);
            break;
        case 2:
            due_promote(world.q, id);
            break;
        case 3:
            due_reschedule(world.q, id, due_now(world.q) + (int64_t)crew_below(&seed, 200000));
            break;
        case 4:
            due_kick(world.q, id);
            CREW_CHECK(due_topic_measure(world.q, 1) == 0, ": refused");
            break;
        default:
            CREW_CHECK(due_metrics_read(world.q, &m) == 0, ": refused");
        }
    }
    return 0;
}

static struct due_topic_stats sum_topics(void)
{
    struct due_topic_stats all = { 0 };

    for (int topic = 0; topic < 2; topic++) {
        struct due_topic_stats s;

        CREW_CHECK(due_topic_stats_read(world.q, topic, &s) == 0, ": refused");
        CREW_CHECK(s.enqueued == s.delayed + s.ready + s.leased + s.dead + s.dequeued + s.acked +
                                     s.cancelled + s.discarded + s.kept,
                   ": topic %d", topic);
        all.delivered += s.delivered;
        all.acked += s.acked;
        all.retried += s.retried;
        all.died += s.died;
        all.kicked += s.kicked;
        all.cancelled += s.cancelled;
        all.dead += s.dead;
        all.leased += s.leased;
        all.ready += s.ready;
    }
    return all;
}

static bool was_told(const struct due_topic_stats *all)
{
    return all->delivered == atomic_load(&world.told[DUE_EVENT_DELIVERED]) &&
           all->acked == atomic_load(&world.told[DUE_EVENT_ACKED]) &&
           all->retried == atomic_load(&world.told[DUE_EVENT_RETRIED]) &&
           all->died == atomic_load(&world.told[DUE_EVENT_DEAD]) &&
           all->kicked == atomic_load(&world.told[DUE_EVENT_KICKED]) &&
           all->cancelled == atomic_load(&world.told[DUE_EVENT_CANCELLED]);
}

static bool agree(const struct due_topic_stats *all, const struct due_stats *q)
{
    return all->dead == q->dead && all->leased == q->leased && all->acked == q->acked &&
           all->cancelled == q->cancelled && all->ready == q->ready;
}

/* When all is quiet, every figure of the topics is what was told, and what the queue counts.  Jobs
 * still become due for a while, also between two looks; and a proxy that ends leases counts them
 * under the lock, and tells of them after it. */
static void check_figures(void)
{
    int64_t until = crew_now_ns() + DUE_S(10);

    for (;; crew_sleep(DUE_MS(1))) {
        struct due_stats q;

        due_poll(world.q, NULL);
        struct due_topic_stats all = sum_topics();
        CREW_CHECK(due_stats_read(world.q, &q) == 0, ": refused");
        if (was_told(&all) && agree(&all, &q))
            return;
        CREW_CHECK(crew_now_ns() < until,
                   ": counted %ju retried, %ju dead; told %llu, %llu; ready %ju %ju, leased %ju "
                   "%ju, dead %ju %ju",
                   (uintmax_t)all.retried, (uintmax_t)all.died,
                   (unsigned long long)atomic_load(&world.told[DUE_EVENT_RETRIED]),
                   (unsigned long long)atomic_load(&world.told[DUE_EVENT_DEAD]),
                   (uintmax_t)all.ready, (uintmax_t)q.ready, (uintmax_t)all.leased,
                   (uintmax_t)q.leased, (uintmax_t)all.dead, (uintmax_t)q.dead);
    }
}

/* The first topic was measured from its beginning, the other from some moment on: between them and
 * the queue no hand-over and no answer is lost. */
static void check_durations(void)
{
    struct due_metrics m;
    due_histogram late, held;
    uint64_t answers[2] = { 0 };
    struct due_topic_stats s[2];

    CREW_CHECK(due_metrics_read(world.q, &m) == 0, ": refused");
    CREW_CHECK(m.late.count == m.delivered, ": %ju of %ju hand-overs", (uintmax_t)m.late.count,
               (uintmax_t)m.delivered);
    for (int topic = 0; topic < 2; topic++) {
        CREW_CHECK(due_topic_stats_read(world.q, topic, &s[topic]) == 0, ": refused");
        CREW_CHECK(due_topic_durations(world.q, topic, &late, &held) == 0, ": refused");
        CREW_CHECK(topic == 0 ? late.count == s[0].delivered : late.count <= s[1].delivered,
                   ": %ju of %ju hand-overs of topic %d", (uintmax_t)late.count,
                   (uintmax_t)s[topic].delivered, topic);
        answers[topic] = held.count;
    }
    CREW_CHECK(answers[0] >= s[0].acked + s[0].nacked, ": %ju answers", (uintmax_t)answers[0]);
    CREW_CHECK(m.held.count >= answers[0] + answers[1] &&
                   m.held.count >= s[0].acked + s[0].nacked + s[1].acked + s[1].nacked,
               ": %ju answers", (uintmax_t)m.held.count);
}

/* When the queue is gone, every job's life is over. */
static void check_lives(void)
{
    for (size_t i = 0; i < JOBS * 2; i++) {
        const struct life *l = &world.lives[i];

        CREW_CHECK(!l->used || l->over, ": the last that was told is %s", due_event_name(l->last));
    }
}

static void round_of(uint64_t seed, enum due_proxies proxies, int64_t ns)
{
    struct crew_thread threads[6];
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .metrics = 1,
                            .on_event = on_event,
                            .retry = { .kind = DUE_RETRY_FIXED, .attempts_max = 4 } };

    memset(&world, 0, sizeof world);
    pthread_mutex_init(&world.table, NULL);
    pthread_mutex_init(&world.ids, NULL);
    world.seed = seed;
    world.end_ns = crew_now_ns() + ns;
    world.q = crew_open(&options);
    CREW_CHECK(due_topic(world.q, "other") == 1, ": not the second");
    CREW_CHECK(due_topic_measure(world.q, 0) == 0, ": refused");
    for (uintptr_t i = 0; i < 6; i++)
        crew_go(&threads[i], i < 2 ? produce : i < 4 ? consume : name, (void *)(i + 1));
    for (int i = 0; i < 6; i++) {
        if (i == 2) { /* half of the rounds close while all are at work */
            while (goes_on() && atomic_load(&world.next) < JOBS - 4)
                crew_sleep(DUE_MS(1));
            if (seed % 2 == 0)
                CREW_CHECK(due_close(world.q, DUE_CLOSE_DISCARD, DUE_S(20)) == 0, ": refused");
            atomic_store(&world.stop, true);
        }
        if (i >= 2)
            CREW_CHECK(crew_join(&threads[i]) == 0, ": thread %d", i);
    }
    for (int i = 0; i < 2; i++)
        CREW_CHECK(crew_join(&threads[i]) == 0, ": thread %d", i);
    check_figures();
    check_durations();
    CREW_CHECK(due_close(world.q, DUE_CLOSE_DISCARD, DUE_S(20)) == 0, ": refused");
    CREW_CHECK(due_free(world.q) == 0, ": refused");
    check_lives();
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    int64_t end = crew_now_ns() + o.ns;
    unsigned long long delivered = 0;

    for (uint64_t i = 0; i < 3 || crew_now_ns() < end; i++) {
        crew_doing(crew_mode_names[i % 3]);
        round_of(o.seed + i, (enum due_proxies)(i % 3), o.ns / 6);
        delivered += atomic_load(&world.told[DUE_EVENT_DELIVERED]);
    }
    CREW_CHECK(delivered > 0, ": nothing was at work");
    printf("thread_events: %llu jobs delivered, each told in order\n", delivered);
    return 0;
}
