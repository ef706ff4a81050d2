/* stack_script.h - a script that calls every public function, one after another, in a thread with
 * the smallest stack that there is, 16 KiB.
 *
 * Under that stack is a page that nobody may touch.  Around each call the unused part of the stack
 * is filled, and looked at afterwards: so it is known what each one needs.  The library's threads
 * have such stacks too.
 */
#ifndef STACK_SCRIPT_H
#define STACK_SCRIPT_H

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

#include "due/figures.h"
#include "due/metrics.h"
#include "due/cron.h"
#include "due/signals.h"
#include "due/workers.h"
#include "lab/shop.h"
#include "lab/take.h"

#define STACK ((size_t)16384) /* unless a store needs more */
#define LEAST ((size_t)4096)  /* of it is left for hooks, the C library and other compilers */
#define FILL  0xa5
#define NEAR  512u /* below the script's own frame: not filled */

/* ---- How much is used ---- */

struct stack {
    unsigned char *low; /* of what may be used */
    size_t left;        /* at the call that left least */
    const char *who;
    due_clock *clock;
    due_store *store;
    enum due_proxies proxies;
};

static __attribute__((noinline)) void fill(struct stack *s)
{
    volatile unsigned char *to = (unsigned char *)__builtin_frame_address(0) - NEAR;

    for (volatile unsigned char *at = s->low; at < to; at++)
        *at = FILL;
}

static __attribute__((noinline)) void look(struct stack *s, const char *who)
{
    size_t left = 0;

    while (s->low[left] == FILL)
        left++;
    if (left < s->left) {
        s->left = left;
        s->who = who;
    }
}

/* The call leaves some of the stack. */
#define CALL(call)      \
    do {                \
        fill(s);        \
        call;           \
        look(s, #call); \
    } while (0)

#define RIGHT(call)                                                  \
    do {                                                             \
        fill(s);                                                     \
        int rc_ = (call);                                            \
        look(s, #call);                                              \
        if (rc_ < 0) {                                               \
            fprintf(stderr, "%s: %s\n", #call, due_error_name(rc_)); \
            abort();                                                 \
        }                                                            \
    } while (0)

static void ignore(int rc)
{
    (void)rc;
}

/* ---- The script ---- */

#define MANY 300u /* more than are one batch with a store */

/* Not on the stack. */
static struct {
    due_queue *q;
    due_id id, key;
    due_job job, jobs[MANY];
    due_id ids[MANY];
    due_extra more;
    due_spec specs[MANY];
    int results[MANY];
    due_info info, infos[8];
    due_dead dead[8];
    struct due_stats stats;
    struct due_metrics metrics;
    struct due_topic_stats topic_stats;
    struct due_queue_census census;
    due_process processes[4];
    struct due_workers_stats pool_stats;
    due_histogram late, held;
    due_error error;
    char text[64];
    char page[1 << 20];
    char large[100000];
    uint64_t cursor, n;
    int64_t ns;
    int topic;
} w;

static void no_event(void *ctx, const due_event *event)
{
    (void)ctx;
    (void)event;
}

static void no_discard(void *ctx, const due_job *job)
{
    (void)ctx;
    (void)job;
}

static void no_log(void *ctx, enum due_log_level level, const char *text)
{
    (void)ctx;
    (void)level;
    (void)text;
}

static void handle(void *ctx, const due_job *job, due_answer *answer)
{
    (void)ctx;
    *answer = job->len == 1 ? due_answer_bury("one byte") : due_answer_ack();
}

static void open_it(struct stack *s)
{
    static due_options o;

    o = (due_options){
        DUE_OPTIONS_INIT,      .manual = s->clock,   .store = s->store,        .metrics = 1,
        .proxies = s->proxies, .on_event = no_event, .on_discard = no_discard, .on_log = no_log,
        .dead_max = 5
    };
    RIGHT(due_open(&w.q, &o, &w.error));
    do
        CALL(due_stats_read(w.q, &w.stats));
    while (w.stats.loading);
}

static due_spec spec_of(const char *key, int64_t delay_ns)
{
    w.more = (due_extra){ DUE_EXTRA_INIT,
                          .headers = "a: b",
                          .headers_len = 4,
                          .group = "group",
                          .group_len = 5,
                          .key = key,
                          .key_len = key != NULL ? strlen(key) : 0,
                          .ttl_ns = DUE_S(100000) };
    return (due_spec){ DUE_SPEC_INIT, .data = w.large, .len = 200, .delay_ns = delay_ns,
                       .more = &w.more };
}

static void name_jobs(struct stack *s)
{
    static due_spec spec;

    RIGHT(w.topic = due_topic(w.q, "a topic"));
    CALL(due_topic_name(w.q, w.topic));
    RIGHT(due_topic_measure(w.q, w.topic));
    RIGHT(due_topic_limit(w.q, w.topic, 1000));
    RIGHT(due_topic_retry(
        w.q, w.topic, &(due_retry){ .kind = DUE_RETRY_LADDER, .rungs = 2, .rung_ns = { 1, 2 } }));
    spec = spec_of("k", DUE_S(5));
    RIGHT(due_enqueue(w.q, &spec, DUE_S(30), &w.id));
    RIGHT(due_id_of_key(w.q, "k", 1, &w.key));
    CALL(due_spec_error(w.q, w.specs));
    RIGHT(due_find(w.q, w.id, &w.info));
    RIGHT(due_remaining(w.q, w.id, &w.ns));
    RIGHT(due_read(w.q, w.id, NULL, 0, NULL));
    RIGHT(due_update(w.q, w.id, w.large, sizeof w.large));
    RIGHT(due_amend(w.q, w.id, &spec, DUE_SET_DATA | DUE_SET_TIME | DUE_SET_HEADERS));
    RIGHT(due_reschedule(w.q, w.id, DUE_S(1000)));
    w.more.on_key = DUE_KEY_REPLACE;
    RIGHT(due_enqueue(w.q, &spec, DUE_S(30), NULL));
    RIGHT(due_promote(w.q, w.id));
    RIGHT(due_peek(w.q, &w.info));
    w.cursor = 0;
    RIGHT(due_list(w.q, &w.cursor, w.infos, 8));
    RIGHT(due_cancel(w.q, w.id, &w.job));
    CALL(due_job_done(&w.job));
    RIGHT(due_enqueue(w.q, &spec, DUE_S(30), &w.id));
    RIGHT(due_cancel_key(w.q, "k", 1, NULL));
    RIGHT(due_enqueue_at(w.q, DUE_FOREVER, NULL, &w.id));
    RIGHT(due_cancel(w.q, w.id, NULL));
    RIGHT(due_enqueue_after(w.q, DUE_S(9), NULL, &w.id));
    RIGHT(due_cancel(w.q, w.id, NULL));
    CALL(due_id_format(w.id, w.text));
    RIGHT(due_id_parse(w.text, &w.key));
    CALL(due_id_equal(w.id, w.key));
}

static void put_many(struct stack *s)
{
    for (unsigned i = 0; i < MANY; i++)
        w.specs[i] = spec_of(NULL, 0);
    w.more.group = NULL;
    w.more.group_len = 0;
    RIGHT(due_enqueue_batch(w.q, w.specs, MANY, DUE_S(30), w.ids));
}

static void take_jobs(struct stack *s)
{
    put_many(s);
    RIGHT(due_dequeue(w.q, &w.job, DUE_S(30)));
    CALL(due_job_done(&w.job));
    RIGHT(due_take(
        w.q,
        &(due_take_options){ DUE_TAKE_INIT, .topics = (int[]){ 0, w.topic }, .topic_count = 2 },
        &w.job, 1, DUE_S(30)));
    CALL(due_job_done(&w.job));
    RIGHT((int)(w.n = (uint64_t)take_some(w.q, NULL, 0, w.jobs, MANY, DUE_S(30))));
    CALL(due_jobs_done(w.jobs, (size_t)w.n));
    RIGHT(due_clear(w.q, DUE_ALL_TOPICS, &w.n));
    put_many(s);
    RIGHT(due_cancel_batch(w.q, w.ids, MANY, w.results));
    CALL(ignore(due_dequeue(w.q, &w.job, 0)));
}

static void reserve_jobs(struct stack *s)
{
    put_many(s);
    RIGHT(due_reserve(w.q, &w.job, DUE_S(30)));
    RIGHT(due_extend(&w.job, DUE_S(6)));
    CALL(due_job_stopping(&w.job));
    RIGHT(due_snooze(&w.job, 0));
    RIGHT(due_reserve(w.q, &w.job, DUE_S(30)));
    RIGHT(due_nack(&w.job, DUE_DELAY_POLICY));
    RIGHT(take_leased_from(w.q, &(int){ 0 }, 1, &w.job, DUE_S(5), DUE_S(30)));
    w.id = w.job.id;
    RIGHT(due_bury(&w.job, "a reason"));
    w.cursor = 0;
    RIGHT(due_list_dead(w.q, &w.cursor, w.dead, 8));
    RIGHT(due_kick(w.q, w.id));
    RIGHT(due_reserve(w.q, &w.job, DUE_S(30)));
    RIGHT(due_bury(&w.job, NULL));
    RIGHT(due_kick_all(w.q, DUE_ALL_TOPICS, &w.n));
    for (unsigned i = 0; i < 10; i++) { /* and some more than are kept */
        RIGHT(due_reserve(w.q, &w.job, DUE_S(30)));
        RIGHT(due_bury(&w.job, "a reason"));
    }
    RIGHT(due_clear_dead(w.q, DUE_ALL_TOPICS, &w.n));
    RIGHT(due_reserve(w.q, &w.job, DUE_S(30)));
    RIGHT(due_ack(&w.job));
    RIGHT((int)(w.n = (uint64_t)take_leased_some(w.q, NULL, 0, w.jobs, MANY, DUE_S(5), DUE_S(30))));
    RIGHT(due_ack_batch(w.jobs, (size_t)w.n, w.results));
    RIGHT(due_clear(w.q, DUE_ALL_TOPICS, &w.n));
}

static void look_at_all(struct stack *s)
{
    RIGHT(due_pause(w.q, DUE_ALL_TOPICS));
    RIGHT(due_resume(w.q, DUE_ALL_TOPICS));
    RIGHT(due_trim(w.q));
    RIGHT(due_flush(w.q, DUE_S(30)));
    RIGHT(due_stats_read(w.q, &w.stats));
    RIGHT(due_fd(w.q));
    RIGHT(due_poll(w.q, &w.ns));
    CALL(due_next_deadline(w.q));
    CALL(due_now(w.q));
    RIGHT(due_metrics_read(w.q, &w.metrics));
    RIGHT(due_topic_stats_read(w.q, w.topic, &w.topic_stats));
    RIGHT(due_census(w.q, DUE_ALL_TOPICS, &w.census, DUE_S(1)));
    RIGHT(due_census(w.q, w.topic, &w.census, DUE_S(1)));
    RIGHT(due_census_write(w.q, w.page, sizeof w.page, DUE_S(1)));
    w.cursor = 0;
    RIGHT(due_processes(w.q, &w.cursor, w.processes, 4, DUE_S(1)));
    RIGHT(due_topic_durations(w.q, w.topic, &w.late, &w.held));
    CALL(due_histogram_add(&w.late, &w.held));
    CALL(due_histogram_quantile(&w.late, 0.5));
    CALL(due_histogram_bucket(due_histogram_bound(5)));
    CALL(due_event_name(DUE_EVENT_READY));
    CALL(due_error_text(DUE_EINVAL));
    CALL(due_error_name(DUE_EINVAL));
    CALL(due_version());
    CALL(due_version_text());
    RIGHT(due_metrics_write(w.q, w.page, sizeof w.page));
    snprintf(w.text, sizeof w.text, "/tmp/due_stack_%d", (int)getpid());
    if (s->proxies == DUE_PROXIES_NEVER)
        CALL(ignore(due_figures_open(w.q, w.text)));
    else
        RIGHT(due_figures_open(w.q, w.text));
}

static void have_a_pool(struct stack *s)
{
    due_workers *pool;

    put_many(s);
    RIGHT(due_workers_start(&pool, w.q, NULL, 0, 2, handle, NULL, NULL));
    do
        RIGHT(due_workers_stats_read(pool, &w.pool_stats));
    while (w.pool_stats.handled < MANY / 2);
    RIGHT(due_metrics_write(w.q, w.page, sizeof w.page));
    RIGHT(due_workers_stop(pool, DUE_FOREVER));
    RIGHT(due_workers_free(pool));
}

static void turn_the_clock(struct stack *s)
{
    static due_spec spec;

    for (int i = 0; i < 1000; i++) {
        spec = spec_of(NULL, i + 1);
        RIGHT(due_enqueue(w.q, &spec, DUE_S(30), NULL));
    }
    CALL(due_clock_now(s->clock));
    RIGHT(due_clock_advance(s->clock, DUE_S(1)));
    RIGHT(due_clock_turn_to(s->clock, due_clock_now(s->clock) + DUE_S(200000)));
    CALL(ignore(due_dequeue(w.q, &w.job, 0))); /* their time is over */
}

static void have_signals(struct stack *s)
{
    due_signals *signals;

    RIGHT(due_signals_open(&signals, &(int){ SIGUSR1 }, 1));
    RIGHT(due_signals_fd(signals));
    CALL(ignore(due_signals_wait(signals, 0)));
    CALL(due_signals_close(signals));
}

static void ask_the_calendar(struct stack *s)
{
    int64_t next;

    RIGHT(due_cron_next("30 2 * * *", "CET-1CEST,M3.5.0,M10.5.0/3", 0, &next));
    CALL(ignore(due_cron_next("30 2 29 2 *", "Europe/Berlin", 0, &next)));
    CALL((void)!due_cron_error("30 2 30 2 *", "Europe/Berlin", NULL));
}

static void *stack_run(void *arg)
{
    struct stack *s = arg;

    open_it(s);
    name_jobs(s);
    take_jobs(s);
    reserve_jobs(s);
    look_at_all(s);
    have_a_pool(s);
    turn_the_clock(s);
    have_signals(s);
    ask_the_calendar(s);
    RIGHT(due_close(w.q, DUE_CLOSE_DISCARD, DUE_FOREVER));
    RIGHT(due_free(w.q));
    return NULL;
}

/* ---- In such a thread ---- */

/* From now on every thread has such a stack, unless who starts it says otherwise. */
static inline void threads_have(size_t stack)
{
    pthread_attr_t attr;

    cr_assert_eq(pthread_attr_init(&attr), 0);
    cr_assert_eq(pthread_attr_setstacksize(&attr, stack), 0);
    cr_assert_eq(pthread_setattr_default_np(&attr), 0);
    pthread_attr_destroy(&attr);
}

static inline void threads_are_small(void)
{
#if defined __aarch64__ && defined __GLIBC__
    cr_skip_test("no thread has less than 128 KiB here");
#endif
    threads_have(STACK);
}

static inline void on_a_stack(size_t stack, enum due_proxies proxies, due_store *store)
{
    struct stack s = { .left = SIZE_MAX, .proxies = proxies };
    pthread_attr_t attr;
    pthread_t thread;

    unsigned char *memory =
        mmap(NULL, 4096 + stack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(memory, MAP_FAILED);
    cr_assert_eq(mprotect(memory, 4096, PROT_NONE), 0);
    s.low = memory + 4096;
    s.clock = due_clock_manual(DUE_S(1));
    s.store = store;
    cr_assert_eq(pthread_attr_init(&attr), 0);
    cr_assert_eq(pthread_attr_setstack(&attr, s.low, stack), 0);
    cr_assert_eq(pthread_create(&thread, &attr, stack_run, &s), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    munmap(memory, 4096 + stack);
    cr_expect_eq(due_clock_free(s.clock), 0);
    cr_expect_geq(s.left, LEAST, "%zu bytes are left by %s", s.left, s.who);
}

static inline void on_a_small_stack(enum due_proxies proxies, due_store *store)
{
    on_a_stack(STACK, proxies, store);
}

/* Their frames are larger. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__SANITIZE_UNDEFINED__)
#define STACK_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(undefined_behavior_sanitizer)
#define STACK_SANITIZED 1
#endif
#endif

#endif
