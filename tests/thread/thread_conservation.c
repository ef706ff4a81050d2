/* thread_conservation.c - every job is handed out exactly once, or given back exactly once.
 *
 * Producers, consumers, cancellers and reschedulers work on one queue; every job carries a number,
 * and what became of it is counted under that number.
 */
#include <stdio.h>
#include <string.h>

#include "lab/crew.h"
#include "lab/take.h"

#define PRODUCERS 2
#define CONSUMERS 2
#define JOBS      (1u << 15) /* of one round, at most */

struct fate {
    atomic_uint taken;
    atomic_uint cancelled;
    atomic_uint discarded;
    atomic_uint put; /* 1: the id may be read */
    due_id id;
};

static struct fate fates[JOBS];

struct world {
    due_queue *q;
    atomic_uint next; /* the next number */
    uint32_t limit;   /* of this round */
    atomic_bool stop;
    int64_t end_ns;
    uint64_t seed;
};

static void on_discard(void *ctx, const due_job *job)
{
    (void)ctx;
    atomic_fetch_add(&fates[(uintptr_t)job->ptr - 1].discarded, 1);
}

static uint64_t own_seed(struct world *w, uint64_t salt)
{
    return w->seed * 1000003 + salt + (uint64_t)(uintptr_t)&salt;
}

static int64_t choose_delay(uint64_t *seed)
{
    switch (crew_below(seed, 4)) {
    case 0:
        return 0;
    case 1:
        return (int64_t)crew_below(seed, 1000000);
    case 2:
        return (int64_t)crew_below(seed, 50000);
    default:
        return (int64_t)crew_below(seed, 5000000);
    }
}

static int produce(void *arg)
{
    struct world *w = arg;
    uint64_t seed = own_seed(w, 1);
    uint32_t n;

    while (crew_now_ns() < w->end_ns && (n = atomic_fetch_add(&w->next, 1)) < w->limit) {
        due_spec spec = { DUE_SPEC_INIT, .delay_ns = choose_delay(&seed) };

        spec.ptr = (void *)(uintptr_t)(n + 1);
        spec.topic = (int)(n % 3);
        spec.priority = (int)(n % 5);
        int rc = due_enqueue(w->q, &spec, 0, &fates[n].id);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        atomic_store(&fates[n].put, 1);
    }
    return 0;
}

static void count_taken(due_job *jobs, int n)
{
    for (int i = 0; i < n; i++) {
        CREW_CHECK(jobs[i].lateness_ns >= 0, ": %lld", (long long)jobs[i].lateness_ns);
        atomic_fetch_add(&fates[(uintptr_t)jobs[i].ptr - 1].taken, 1);
        due_job_done(&jobs[i]);
    }
}

static int consume(void *arg)
{
    static const int some[] = { 0, 2 };
    struct world *w = arg;
    uint64_t seed = own_seed(w, 2);
    due_job jobs[8];

    for (;;) {
        int64_t timeout = crew_below(&seed, 4) == 0 ? DUE_US(200) : DUE_MS(20);
        int rc;

        switch (crew_below(&seed, 3)) {
        case 0:
            rc = take_some(w->q, NULL, 0, jobs, 1 + (size_t)crew_below(&seed, 8), timeout);
            break;
        case 1:
            rc = take_from(w->q, some, 2, jobs, timeout);
            rc = rc == 0 ? 1 : rc;
            break;
        default:
            rc = due_dequeue(w->q, jobs, timeout);
            rc = rc == 0 ? 1 : rc;
        }
        if (rc == DUE_ECLOSED)
            return 0;
        CREW_CHECK(rc > 0 || rc == DUE_ETIMEDOUT, ": %s", due_error_name(rc));
        count_taken(jobs, rc > 0 ? rc : 0);
    }
}

/* Cancels and moves jobs of numbers that were given lately. */
static int meddle(void *arg)
{
    struct world *w = arg;
    uint64_t seed = own_seed(w, 3);

    while (!atomic_load(&w->stop)) {
        uint32_t made = atomic_load(&w->next);
        uint32_t back = (uint32_t)crew_below(&seed, 64);
        uint32_t n = (made < w->limit ? made : w->limit) - 1 - back;
        due_job job;
        int rc;

        if (made == 0 || n >= w->limit || !atomic_load(&fates[n].put))
            continue;
        switch (crew_below(&seed, 4)) {
        case 0:
            rc = due_reschedule(w->q, fates[n].id, due_now(w->q) + choose_delay(&seed));
            break;
        case 1:
            rc = due_promote(w->q, fates[n].id);
            break;
        case 2:
            rc = due_cancel(w->q, fates[n].id, NULL);
            if (rc == 0)
                atomic_fetch_add(&fates[n].cancelled, 1);
            break;
        default:
            rc = due_cancel(w->q, fates[n].id, &job);
            if (rc == 0) {
                CREW_CHECK(job.ptr == (void *)(uintptr_t)(n + 1), ": %u", n);
                atomic_fetch_add(&fates[n].cancelled, 1);
                due_job_done(&job);
            }
        }
        CREW_CHECK(rc == 0 || rc == DUE_EBUSY || rc == DUE_ENOENT || rc == DUE_ECLOSED, ": %s",
                   due_error_name(rc));
    }
    return 0;
}

/* Everything was handed out, cancelled or discarded, once, and the figures say the same. */
static void add_up(const struct world *w, const struct due_stats *s)
{
    uint32_t made = atomic_load(&w->next) < w->limit ? atomic_load(&w->next) : w->limit;
    uint64_t sum[3] = { 0 };

    for (uint32_t n = 0; n < made; n++) {
        unsigned taken = atomic_load(&fates[n].taken);
        unsigned cancelled = atomic_load(&fates[n].cancelled);
        unsigned discarded = atomic_load(&fates[n].discarded);

        CREW_CHECK(taken + cancelled + discarded == 1,
                   ": job %u taken %u cancelled %u discarded %u times", n, taken, cancelled,
                   discarded);
        sum[0] += taken;
        sum[1] += cancelled;
        sum[2] += discarded;
    }
    CREW_CHECK(s->enqueued == made, ": %llu, not %u", (unsigned long long)s->enqueued, made);
    CREW_CHECK(s->dequeued == sum[0], ": %llu", (unsigned long long)s->dequeued);
    CREW_CHECK(s->cancelled == sum[1], ": %llu", (unsigned long long)s->cancelled);
    CREW_CHECK(s->discarded == sum[2], ": %llu", (unsigned long long)s->discarded);
}

static uint64_t round_of(enum due_proxies proxies, int64_t ns, uint64_t seed, bool drain)
{
    struct world w = { .seed = seed, .end_ns = crew_now_ns() + ns };
    struct crew_thread threads[PRODUCERS + CONSUMERS + 1];
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .on_discard = on_discard };
    struct due_stats stats;
    size_t n = 0;

    w.limit = proxies == DUE_PROXIES_ALWAYS ? JOBS / 16 : JOBS;
    memset(fates, 0, sizeof fates);
    w.q = crew_open(&options);
    int topics = due_topic(w.q, "a") + due_topic(w.q, "b");
    CREW_CHECK(topics == 3, ": %d", topics);
    for (int i = 0; i < PRODUCERS; i++)
        crew_go(&threads[n++], produce, &w);
    for (int i = 0; i < CONSUMERS; i++)
        crew_go(&threads[n++], consume, &w);
    crew_go(&threads[n++], meddle, &w);
    crew_doing("producing");
    for (size_t i = 0; i < PRODUCERS; i++)
        crew_join(&threads[i]);
    crew_doing("closing");
    int rc = due_close(w.q, drain ? DUE_CLOSE_DRAIN : DUE_CLOSE_DISCARD, DUE_FOREVER);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    atomic_store(&w.stop, true);
    crew_doing("joining");
    for (size_t i = PRODUCERS; i < n; i++)
        crew_join(&threads[i]);
    rc = due_stats_read(w.q, &stats);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    add_up(&w, &stats);
    crew_close(w.q, DUE_CLOSE_DISCARD);
    return stats.enqueued;
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    int64_t end = crew_now_ns() + o.ns;
    uint64_t jobs = 0;

    for (int i = 0; i < 6 || crew_now_ns() < end; i++)
        jobs += round_of((enum due_proxies)(i % 3), o.ns / 12, o.seed + (uint64_t)i, i / 3 % 2);
    printf("thread_conservation: %llu jobs, each handed out or given back exactly once\n",
           (unsigned long long)jobs);
    return 0;
}
