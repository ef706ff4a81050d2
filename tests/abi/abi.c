/* abi.c - a program that was built against other headers than the library was.
 *
 * Built three times, against what tests/abi/headers.sh makes of the headers; ABI_OLDER or ABI_NEWER
 * says which.  Each runs with the same library: structs that the program fills in may be shorter or
 * longer than the library's, and the library never writes beyond one that it fills in.
 */
#include <stdio.h>
#include <string.h>

#include "due/due.h"
#include "due/metrics.h"
#include "due/workers.h"

#define GUARD 64

static int failed;

#define CHECK(what)                                                           \
    do {                                                                      \
        if (!(what)) {                                                        \
            fprintf(stderr, "abi.c:%d: %s does not hold\n", __LINE__, #what); \
            failed = 1;                                                       \
        }                                                                     \
    } while (0)

/* A struct that the library fills in, with what it must not touch behind it. */
#define FILLED(type)                 \
    struct {                         \
        type is;                     \
        unsigned char behind[GUARD]; \
    }
#define PREPARE(it) memset(&(it), 0xa5, sizeof(it))

static int untouched(const unsigned char *behind)
{
    for (int i = 0; i < GUARD; i++) {
        if (behind[i] != 0xa5)
            return 0;
    }
    return 1;
}

static void opening(due_clock *clock)
{
    due_options options = { DUE_OPTIONS_INIT, .name = "abi", .manual = clock };
    due_queue *q;

    options.size = 0;
    CHECK(due_open(&q, &options, NULL) == DUE_EINVAL);
    options.size = sizeof options + sizeof(size_t) / 2;
    CHECK(due_open(&q, &options, NULL) == DUE_EINVAL);
    options.size = 1u << 20;
    CHECK(due_open(&q, &options, NULL) == DUE_EINVAL);
#ifdef ABI_NEWER
    due_error error;

    options = (due_options){ DUE_OPTIONS_INIT, .manual = clock, .beyond = { 0, 0, 1 } };
    CHECK(due_open(&q, &options, &error) == DUE_ENOTSUP);
    CHECK(error.text[0] != '\0');
#endif
}

static void one_job(due_queue *q, due_clock *clock)
{
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3, .delay_ns = 5, .priority = 7 };
    FILLED(due_info) info;
    FILLED(due_job) job;
    due_id id;

    CHECK(due_enqueue(q, &spec, 0, &id) == 0);
    PREPARE(info);
    CHECK(due_find(q, id, &info.is) == 0);
    CHECK(info.is.len == 3 && info.is.priority == 7 && untouched(info.behind));
    CHECK(due_clock_advance(clock, 5) == 0);
    PREPARE(job);
    CHECK(due_dequeue(q, &job.is, 0) == 0);
    CHECK(job.is.len == 3 && job.is.priority == 7 && memcmp(job.is.data, "tea", 3) == 0);
    CHECK(untouched(job.behind));
#ifdef ABI_NEWER
    CHECK(info.is.newer == 0 && job.is.newer == 0);
#endif
    due_job_done(&job.is);
}

static void many_jobs(due_queue *q)
{
    due_spec specs[3];
    due_job jobs[4];

    for (int i = 0; i < 3; i++)
        specs[i] = (due_spec){ DUE_SPEC_INIT, .data = &"0123"[i], .len = 1, .at_ns = 1 + i };
    CHECK(due_enqueue_batch(q, specs, 3, 0, NULL) == 3);
    CHECK(due_take(q, NULL, jobs, 4, 0) == 3);
    for (int i = 0; i < 3; i++) {
        CHECK(*(const char *)jobs[i].data == '0' + i);
        due_job_done(&jobs[i]);
    }
    specs[1].size = 0;
    CHECK(due_enqueue_batch(q, specs, 3, 0, NULL) == DUE_EINVAL);
    specs[0].size = 0;
    CHECK(due_enqueue_batch(q, specs, 3, 0, NULL) == DUE_EINVAL);
    CHECK(due_dequeue(q, &jobs[0], 0) == DUE_EAGAIN);
#ifdef ABI_NEWER
    due_id id = { { 0 } };

    specs[0] = (due_spec){ DUE_SPEC_INIT, .beyond = { 1 } };
    CHECK(due_enqueue(q, specs, 0, NULL) == DUE_ENOTSUP);
    CHECK(due_amend(q, id, specs, DUE_SET_TIME) == DUE_ENOTSUP);
#endif
}

static void changing(due_queue *q)
{
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3, .delay_ns = 50 };
    due_spec later = { DUE_SPEC_INIT, .delay_ns = 90 };
    due_id id;

    CHECK(due_enqueue(q, &spec, 0, &id) == 0);
    CHECK(due_amend(q, id, &later, DUE_SET_TIME) == 0);
    CHECK(due_cancel(q, id, NULL) == 0);
    later.size = 0;
    CHECK(due_amend(q, id, &later, DUE_SET_TIME) == DUE_EINVAL);
}

#ifndef ABI_OLDER
/* What only some jobs have: a struct of its own, which several jobs may share. */
static void jobs_with_more(due_queue *q)
{
    due_extra more = { DUE_EXTRA_INIT, .headers = "h", .headers_len = 1 };
    due_spec specs[2] = { { DUE_SPEC_INIT, .at_ns = 1, .more = &more },
                          { DUE_SPEC_INIT, .at_ns = 1, .more = &more } };
    due_extra bare = { DUE_EXTRA_INIT };
    due_spec none = { DUE_SPEC_INIT, .more = &bare };
    due_job jobs[2];
    due_id ids[2];

    CHECK(due_enqueue_batch(q, specs, 2, 0, ids) == 2);
    CHECK(due_amend(q, ids[1], &none, DUE_SET_HEADERS) == 0);
    CHECK(due_take(q, NULL, jobs, 2, 0) == 2);
    CHECK(jobs[0].headers_len + jobs[1].headers_len == 1);
    due_job_done(&jobs[0]);
    due_job_done(&jobs[1]);
    more.size = 0;
    CHECK(due_enqueue(q, specs, 0, NULL) == DUE_EINVAL);
    CHECK(due_enqueue_batch(q, specs, 2, 0, NULL) == DUE_EINVAL);
    CHECK(due_amend(q, ids[0], specs, DUE_SET_HEADERS) == DUE_EINVAL);
#ifdef ABI_NEWER
    more = (due_extra){ DUE_EXTRA_INIT, .beyond = { 1 } };
    CHECK(due_enqueue(q, specs, 0, NULL) == DUE_ENOTSUP);
    CHECK(due_enqueue_batch(q, specs, 2, 0, NULL) == DUE_ENOTSUP);
    CHECK(due_amend(q, ids[0], specs, DUE_SET_HEADERS) == DUE_ENOTSUP);
#endif
    CHECK(due_dequeue(q, &jobs[0], 0) == DUE_EAGAIN);
}
#endif

static void handle(void *ctx, const due_job *job, due_answer *answer)
{
    (void)job;
    *(int *)ctx += 1;
    *answer = due_answer_ack();
}

static void working(due_queue *q)
{
    due_workers_options options = { DUE_WORKERS_INIT, .lease_ns = DUE_S(5) };
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3 };
    FILLED(struct due_workers_stats) stats;
    due_workers *w;
    int handled = 0;

    options.size = 0;
    CHECK(due_workers_start(&w, q, NULL, 0, 1, handle, &handled, &options) == DUE_EINVAL);
#ifdef ABI_NEWER
    options = (due_workers_options){ DUE_WORKERS_INIT, .beyond = { 1 } };
    CHECK(due_workers_start(&w, q, NULL, 0, 1, handle, &handled, &options) == DUE_ENOTSUP);
#endif
    options = (due_workers_options){ DUE_WORKERS_INIT, .lease_ns = DUE_S(5) };
    CHECK(due_workers_start(&w, q, NULL, 0, 1, handle, &handled, &options) == 0);
    CHECK(due_enqueue(q, &spec, 0, NULL) == 0);
    CHECK(due_close(q, DUE_CLOSE_DRAIN, DUE_FOREVER) == 0);
    PREPARE(stats);
    CHECK(due_workers_stats_read(w, &stats.is) == 0);
    CHECK(stats.is.handled == 1 && untouched(stats.behind));
    CHECK(due_workers_stop(w, DUE_FOREVER) == 0);
    CHECK(due_workers_free(w) == 0);
    CHECK(handled == 1);
}

static void figures(due_queue *q)
{
    static FILLED(struct due_metrics) metrics;
    FILLED(struct due_stats) stats;
    FILLED(struct due_topic_stats) topic;

    PREPARE(stats);
    PREPARE(topic);
    PREPARE(metrics);
    CHECK(due_stats_read(q, &stats.is) == 0);
    CHECK(stats.is.enqueued == 5 && untouched(stats.behind));
    CHECK(due_topic_stats_read(q, 0, &topic.is) == 0);
    CHECK(untouched(topic.behind));
    CHECK(due_metrics_read(q, &metrics.is) == 0);
    CHECK(metrics.is.stats.enqueued == 5 && untouched(metrics.behind));
    FILLED(struct due_queue_census) census;
    FILLED(due_process) process;
    uint64_t cursor = 0;

    PREPARE(census);
    PREPARE(process);
    CHECK(due_census(q, 0, &census.is, 0) == 0 && census.is.processes == 1);
    CHECK(untouched(census.behind));
    CHECK(due_processes(q, &cursor, &process.is, 1, 0) == 1 && process.is.self == 1);
    CHECK(untouched(process.behind));
#ifdef ABI_NEWER
    CHECK(stats.is.newer == 0 && topic.is.newer == 0 && metrics.is.newer == 0);
    CHECK(metrics.is.store.newer == 0 && census.is.newer == 0 && process.is.newer == 0);
#endif
}

int main(void)
{
    due_clock *clock = due_clock_manual(1000);
    due_options options = { DUE_OPTIONS_INIT, .name = "abi", .manual = clock };
    due_queue *q;

    CHECK(due_version() == DUE_VERSION);
    opening(clock);
    if (due_open(&q, &options, NULL) != 0)
        return 1;
    one_job(q, clock);
    many_jobs(q);
    changing(q);
    figures(q);
#ifndef ABI_OLDER
    jobs_with_more(q);
#endif
    working(q);
    CHECK(due_free(q) == 0);
    CHECK(due_clock_free(clock) == 0);
    printf("%zu bytes of due_spec, %zu of due_options: %s\n", sizeof(due_spec), sizeof(due_options),
           failed ? "failed" : "good");
    return failed;
}
