/* thread_workers.c - a pool hands out every job exactly once, whatever happens beside it.
 *
 * Producers, cancellers, a consumer of its own and a pool share a queue; then a million jobs go
 * through eight workers; then a pool is stopped, or its queue closed, at any moment, while somebody
 * reads what the pools have done.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/crew.h"
#include "due/workers.h"
#include "lab/exposition.h"
#include "lab/take.h"

#if defined(__SANITIZE_THREAD__)
#define MILLION 100000u
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MILLION 100000u
#endif
#endif
#ifndef MILLION
#define MILLION 1000000u
#endif

enum { WORKERS = 8, PRODUCERS = 2 };

struct world {
    due_queue *q;
    atomic_uchar *seen; /* how often each job was done */
    atomic_uint next;   /* the next job's number */
    uint32_t jobs;
    atomic_ullong done;
    atomic_ullong retried;
    atomic_ullong taken;
    atomic_ullong discarded;
    atomic_bool over;
    uint64_t seed;
};

static uint32_t number_of(const due_job *job)
{
    uint32_t number;

    CREW_CHECK(job->len == sizeof number, ": %zu bytes", job->len);
    memcpy(&number, job->data, sizeof number);
    return number;
}

static void done(struct world *w, const due_job *job)
{
    unsigned before = atomic_fetch_add(&w->seen[number_of(job)], 1);

    CREW_CHECK(before == 0, ": job %u was done %u times", number_of(job), before + 1);
    atomic_fetch_add(&w->done, 1);
}

static int produce(void *arg)
{
    struct world *w = arg;
    uint64_t seed = w->seed + (uint64_t)(uintptr_t)&seed;

    for (;;) {
        uint32_t number = atomic_fetch_add(&w->next, 1);

        if (number >= w->jobs)
            return 0;
        due_spec spec = { DUE_SPEC_INIT, .data = &number, .len = sizeof number,
                          .delay_ns =
                              (int64_t)crew_below(&seed, 2) * (int64_t)crew_below(&seed, 1000000),
                          .topic = (int)crew_below(&seed, 2) };
        int rc = due_enqueue(w->q, &spec, DUE_FOREVER, NULL);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
}

static void handle(void *ctx, const due_job *job, due_answer *answer)
{
    struct world *w = ctx;

    CREW_CHECK(job->attempts >= 1, " is not so");
    if (number_of(job) % 64 == 0 && job->attempts == 1) {
        atomic_fetch_add(&w->retried, 1);
        *answer = number_of(job) % 128 == 0 ? due_answer_nack(1000) : due_answer_nack(0);
        return;
    }
    done(w, job);
    *answer = due_answer_ack();
}

static int consume(void *arg)
{
    struct world *w = arg;
    due_job job;

    for (;;) {
        int rc = take_leased(w->q, &job, DUE_S(30), DUE_FOREVER);

        if (rc == DUE_ECLOSED)
            return 0;
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        done(w, &job);
        atomic_fetch_add(&w->taken, 1);
        rc = due_ack(&job);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
}

static void make(struct world *w, uint32_t jobs, const due_options *options)
{
    w->q = crew_open(options);
    int topic = due_topic(w->q, "other");
    CREW_CHECK(topic == 1, ": %d", topic);
    w->jobs = jobs;
    w->seen = calloc(jobs, sizeof *w->seen);
    CREW_CHECK(w->seen != NULL, " is not so");
}

static struct due_workers_stats figures(due_workers *pool)
{
    struct due_workers_stats s;
    int rc = due_workers_stats_read(pool, &s);

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    return s;
}

/* All of them, once each, with a consumer beside the pool; until the queue has run dry. */
static void every_job_once(enum due_proxies proxies, uint64_t seed, uint32_t jobs)
{
    struct world w = { .seed = seed };
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies };
    struct crew_thread producer[PRODUCERS], consumer;
    due_workers *pool;

    make(&w, jobs, &options);
    int rc = due_workers_start(&pool, w.q, NULL, 0, WORKERS, handle, &w, NULL);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    for (int i = 0; i < PRODUCERS; i++)
        crew_go(&producer[i], produce, &w);
    crew_go(&consumer, consume, &w);
    for (int i = 0; i < PRODUCERS; i++)
        crew_join(&producer[i]);
    rc = due_close(w.q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    crew_join(&consumer);

    CREW_CHECK(atomic_load(&w.done) == jobs, ": %llu", (unsigned long long)atomic_load(&w.done));
    rc = due_workers_stop(pool, DUE_FOREVER);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    struct due_workers_stats s = figures(pool);
    CREW_CHECK(s.acked + atomic_load(&w.taken) == jobs, ": %llu", (unsigned long long)s.acked);
    CREW_CHECK(s.retried == atomic_load(&w.retried), ": %llu", (unsigned long long)s.retried);
    CREW_CHECK(s.lost + s.unanswered + s.buried + s.threads + s.running + s.ahead == 0,
               " is not so");
    rc = due_workers_free(pool);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    free((void *)w.seen);
    crew_close(w.q, DUE_CLOSE_DISCARD);
}

/* ---- An end at any moment -------------------------------------------------------------------- */

static void on_discard(void *ctx, const due_job *job)
{
    struct world *w = ctx;

    done(w, job);
    atomic_fetch_add(&w->discarded, 1);
}

static int produce_until_closed(void *arg)
{
    struct world *w = arg;
    uint64_t seed = w->seed + (uint64_t)(uintptr_t)&seed;

    for (uint32_t number = 0; number < w->jobs; number++) {
        due_spec spec = { DUE_SPEC_INIT, .data = &number, .len = sizeof number,
                          .delay_ns = (int64_t)crew_below(&seed, 200000) };
        int rc = due_enqueue(w->q, &spec, 0, NULL);

        if (rc == DUE_ECLOSED)
            break;
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        atomic_fetch_add(&w->next, 1);
    }
    return 0;
}

static int stop(void *pool)
{
    int rc = due_workers_stop(pool, DUE_FOREVER);

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    return 0;
}

static int close_it(void *arg)
{
    struct world *w = arg;
    int rc = due_close(w->q, DUE_CLOSE_DISCARD, DUE_FOREVER);

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    return 0;
}

/* Handlers that have returned, of all pools there were, as the queue writes it. */
static double handled(struct world *w)
{
    static const char *const results[] = { "acked", "retried", "buried", "lost", "unanswered" };
    char *text = exposition_text(w->q);
    double sum = 0;
    char line[128];

    CREW_CHECK(text != NULL, " is not so");
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        snprintf(line, sizeof line,
                 "due_workers_handled_total{queue=\"queue\",pool=\"workers\",result=\"%s\"}",
                 results[i]);
        double value = exposition_value(text, line);
        sum += isnan(value) ? 0 : value; /* before the first pool */
    }
    free(text);
    return sum;
}

static int look(void *arg)
{
    struct world *w = arg;
    double last = 0;

    while (!atomic_load(&w->over)) {
        double now = handled(w);

        CREW_CHECK(now >= last, ": %g after %g", now, last);
        last = now;
    }
    return 0;
}

/* Stop and close, in one order or the other, or at once, while jobs come and are handled. */
static void end_at(enum due_proxies proxies, uint64_t seed, int order)
{
    struct world w = { .seed = seed };
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .on_discard = on_discard,
                            .ctx = &w };
    struct crew_thread producer, closer, stopper, looker;
    due_workers *pool;

    make(&w, 20000, &options);
    crew_go(&looker, look, &w);
    int rc = due_workers_start(&pool, w.q, NULL, 0, 3, handle, &w, NULL);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    crew_go(&producer, produce_until_closed, &w);
    crew_sleep((int64_t)crew_below(&seed, 3000000));
    if (order == 0) {
        stop(pool);
        close_it(&w);
    } else if (order == 1) {
        close_it(&w);
        stop(pool);
    } else {
        crew_go(&stopper, stop, pool);
        crew_go(&closer, close_it, &w);
        crew_join(&stopper);
        crew_join(&closer);
    }
    crew_join(&producer);
    struct due_workers_stats s = figures(pool);
    CREW_CHECK(s.lost + s.unanswered + s.threads + s.running + s.ahead == 0, ": %llu %llu",
               (unsigned long long)s.lost, (unsigned long long)s.ahead);
    rc = due_workers_free(pool);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    atomic_store(&w.over, true);
    crew_join(&looker);
    CREW_CHECK(handled(&w) == (double)s.handled, ": %g of %llu", handled(&w),
               (unsigned long long)s.handled);
    CREW_CHECK(atomic_load(&w.done) == atomic_load(&w.next), ": %llu of %u",
               (unsigned long long)atomic_load(&w.done), atomic_load(&w.next));
    free((void *)w.seen);
    crew_close(w.q, DUE_CLOSE_DISCARD);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    int64_t end = crew_now_ns() + o.ns;
    uint64_t rounds = 0;

    crew_doing("a million");
    every_job_once(DUE_PROXIES_ADAPTIVE, o.seed, MILLION);
    do {
        enum due_proxies proxies = (enum due_proxies)(rounds % 3);

        crew_doing(crew_mode_names[proxies]);
        every_job_once(proxies, o.seed + rounds, 5000);
        end_at(proxies, o.seed + rounds, (int)(rounds / 3 % 3));
        rounds++;
    } while (crew_now_ns() < end || rounds < 9);
    printf("thread_workers: %u jobs, then %llu pools\n", MILLION, (unsigned long long)rounds);
    return 0;
}
