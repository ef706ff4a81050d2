/* No verb is a point of thread cancellation, nor is any hook that it calls, whatever that does: a
 * thread that is cancelled from its first call on makes them all, and ends behind the last.
 * (D4) */
#include <pthread.h>
#include <unistd.h>

#include "due/metrics.h"
#include "lab/lab.h"
#include "lab/memory_store.h"
#include "lab/take.h"

#define ANY_TIME  DUE_S(30)
#define UNFAILING (FLAKY_NEVER / 2) /* allocations */

struct life {
    due_options with;
    struct flaky memory;
    const char *step;  /* the last that was begun */
    const char *wrong; /* the first that answered what it should not */
    int rc;
    unsigned shown; /* jobs to on_discard */
    unsigned told;  /* events */
    unsigned logged;
    bool over;
};

static void on_discard(void *ctx, const due_job *job)
{
    struct life *it = ctx;

    (void)job;
    it->shown++;
    pthread_testcancel();
}

static void on_log(void *ctx, enum due_log_level level, const char *text)
{
    struct life *it = ctx;

    (void)level;
    (void)text;
    it->logged++;
    pthread_testcancel();
}

static void on_event(void *ctx, const due_event *event)
{
    struct life *it = ctx;

    (void)event;
    __atomic_fetch_add(&it->told, 1, __ATOMIC_RELAXED);
    pthread_testcancel();
}

/* (What Criterion is told is a point.) */
#define STEP(call, right)                         \
    do {                                          \
        int rc = (it->step = #call, (call));      \
        if (it->wrong == NULL && rc != (right)) { \
            it->wrong = #call;                    \
            it->rc = rc;                          \
        }                                         \
    } while (0)

/* Without a store its jobs bring a pointer. */
static due_spec spec_of(const struct life *it, bool keyed)
{
    static const due_extra more = { DUE_EXTRA_INIT, .key = "k", .key_len = 1,
                                    .on_key = DUE_KEY_REPLACE };
    static int something;
    due_spec spec = { DUE_SPEC_INIT };

    if (it->with.store == NULL)
        spec.ptr = &something;
    if (keyed)
        spec.more = &more;
    return spec;
}

static void put_and_take(struct life *it, due_queue *q)
{
    due_spec spec = spec_of(it, false);
    due_spec keyed = spec_of(it, true);
    due_spec later = { DUE_SPEC_INIT, .delay_ns = DUE_S(1000) };
    due_spec some[3] = { later, spec, spec };
    due_id id, ids[3];
    due_job job, jobs[3];

    STEP(due_enqueue(q, &later, ANY_TIME, &id), 0);
    STEP(due_update(q, id, "milk", 4), 0);
    STEP(due_reschedule(q, id, due_now(q) + DUE_S(500)), 0);
    STEP(due_cancel(q, id, NULL), 0);
    STEP(due_enqueue_batch(q, some, 3, ANY_TIME, ids), 3);
    STEP(due_cancel_batch(q, ids, 1, NULL), 1);
    STEP(due_dequeue(q, &job, ANY_TIME), 0);
    due_job_done(&job);
    STEP(due_take(q, NULL, jobs, 3, ANY_TIME), 1);
    due_jobs_done(jobs, 1);
    STEP(due_enqueue(q, &keyed, ANY_TIME, &id), 0);
    keyed.delay_ns = DUE_S(1000);
    STEP(due_enqueue(q, &keyed, ANY_TIME, &id), 0);
    STEP(due_dequeue(q, &job, DUE_MS(1)), DUE_ETIMEDOUT);
    STEP(due_promote(q, id), 0);
    STEP(due_reserve(q, &job, ANY_TIME), 0);
    STEP(due_nack(&job, 0), 0);
    STEP(due_reserve(q, &job, ANY_TIME), 0);
    STEP(due_bury(&job, "no"), 0);
    STEP(due_flush(q, ANY_TIME), 0);
    STEP(due_kick(q, id), 0);
    STEP(due_reserve(q, &job, ANY_TIME), 0);
    STEP(due_ack(&job), 0);
}

static void look(struct life *it, due_queue *q)
{
    struct due_stats stats;
    due_info infos[4];
    uint64_t cursor = 0;

    STEP(due_topic(q, "mail"), 1);
    STEP(due_pause(q, DUE_ALL_TOPICS), 0);
    STEP(due_resume(q, DUE_ALL_TOPICS), 0);
    STEP(due_topic_limit(q, 1, 3), 0);
    STEP(due_list(q, &cursor, infos, 4), 0);
    STEP(due_peek(q, infos), DUE_EAGAIN);
    STEP(due_poll(q, NULL), 0);
    STEP(due_stats_read(q, &stats), 0);
    STEP(due_fd(q) >= 0, 1);
    STEP(due_trim(q), 0);
}

/* Something is left, to be discarded, and someone to be told of that. */
static void leave(struct life *it, due_queue *q)
{
    due_spec spec = spec_of(it, false);

    STEP(due_enqueue(q, &spec, ANY_TIME, NULL), 0);
    STEP(due_clear(q, DUE_ALL_TOPICS, NULL), 0);
    STEP(due_enqueue(q, &spec, ANY_TIME, NULL), 0);
    STEP(due_close(q, DUE_CLOSE_DISCARD, ANY_TIME), 0);
    STEP(due_free(q), 0);
}

/* Also where it fails, whatever cannot be had. */
static due_queue *opened(struct life *it)
{
    due_queue *q = NULL;

    it->with.allocator = &it->memory.hooks;
    for (size_t n = it->with.store != NULL ? UNFAILING : 0; q == NULL && it->wrong == NULL; n++) {
        flaky_fail_in(&it->memory, n);
        STEP(due_open(&q, &it->with, NULL), q != NULL ? 0 : DUE_ENOMEM);
    }
    it->memory.fail_at = FLAKY_NEVER;
    return q;
}

static void *live(void *arg)
{
    struct life *it = arg;

    pthread_cancel(pthread_self());
    due_queue *q = opened(it);
    put_and_take(it, q);
    look(it, q);
    leave(it, q);
    it->over = true;
    pthread_testcancel();
    return NULL;
}

static struct life lived(due_options with)
{
    struct life it = { .with = with };
    pthread_t thread;
    void *end;

    flaky_init(&it.memory, FLAKY_NEVER);
    it.with.ctx = &it;
    it.with.lease_ns = DUE_S(100);
    it.with.on_discard = on_discard;
    it.with.on_log = on_log;
    cr_assert_eq(pthread_create(&thread, NULL, live, &it), 0);
    cr_assert_eq(pthread_join(thread, &end), 0);
    cr_expect(it.over, "a point: %s", it.step);
    cr_expect_null(it.wrong, "%s: %s", it.wrong, due_error_name(it.rc));
    cr_expect_eq(end, PTHREAD_CANCELED, "this proves nothing");
    cr_expect_gt(it.logged, 0u);
    cr_expect_eq(it.memory.live, 0u);
    return it;
}

static const enum due_proxies modes[] = { DUE_PROXIES_ADAPTIVE, DUE_PROXIES_ALWAYS,
                                          DUE_PROXIES_NEVER };
static const enum due_clock_kind clocks[] = { DUE_CLOCK_MONOTONIC, DUE_CLOCK_BOOTTIME,
                                              DUE_CLOCK_REALTIME };

Test(no_point, of_cancellation_is_in_any_verb, .timeout = 60)
{
    for (size_t i = 0; i < 9; i++) {
        struct life it = lived(
            (due_options){ DUE_OPTIONS_INIT, .proxies = modes[i / 3], .clock = clocks[i % 3] });

        cr_expect_eq(it.shown, 3u, "replaced, cleared, and left at the close: %u", it.shown);
    }
}

Test(no_point, of_cancellation_is_in_a_hook_that_is_told_of_each_step, .timeout = 60)
{
    for (size_t i = 0; i < 3; i++) {
        struct life it = lived((due_options){ DUE_OPTIONS_INIT, .proxies = modes[i],
                                              .on_event = on_event, .capacity = 10 });

        cr_expect_gt(it.told, 20u);
    }
}

Test(no_point, of_cancellation_is_in_any_verb_of_a_stored_queue, .timeout = 60)
{
    struct memory_disk *disk = memory_disk_new(NULL);

    lived((due_options){ DUE_OPTIONS_INIT, .store = memory_store_new(disk) });
    const char *wrong = memory_disk_wrong(disk);
    cr_expect_null(wrong, "%s", wrong);
    memory_disk_free(disk);
}
