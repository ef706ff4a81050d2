/* loop_checks.c - what every adapter of an event loop keeps: each job once and in the loop's
 * thread, whoever enqueued it; no more than a batch in a turn; sleep where there is nothing to
 * take; an end.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef DUE_HAVE_SQLITE
#include <due/sqlite.h>
#include <sqlite3.h>
#endif

#include "loops/loop_glue.h"

#define THREADS 4
#define EACH    2500

static const char *running;

#define EXPECT(what)                                                         \
    do {                                                                     \
        if (!(what)) {                                                       \
            printf("%s: line %d: %s is not so\n", running, __LINE__, #what); \
            exit(1);                                                         \
        }                                                                    \
    } while (0)

struct seen {
    due_queue *q;
    pthread_t loop;
    int jobs;
    int strangers; /* jobs that were shown in another thread */
    int again;     /* shown twice */
    char *got;     /* by number, or NULL */
    int stop_at;   /* stop the watcher in the function of so many; 0: never */
    bool ack;
    due_job kept; /* taken over, if keep */
    bool keep;
    int ended; /* rc of on_end, times it was called in ends */
    int ends;
};

static void on_job(void *ctx, due_job *job)
{
    struct seen *s = ctx;

    s->jobs++;
    s->strangers += !pthread_equal(pthread_self(), s->loop);
    if (s->got != NULL)
        s->again += s->got[*(const int *)job->data]++ > 0;
    if (s->ack)
        EXPECT(due_ack(job) == 0);
    if (s->keep) {
        s->kept = *job;
        *job = (due_job){ .queue = NULL };
    }
    if (s->jobs == s->stop_at)
        glue_stop();
}

static void on_end(void *ctx, int rc)
{
    struct seen *s = ctx;

    s->ended = rc;
    s->ends++;
}

static struct seen look_at(due_clock *clock)
{
    struct seen s = { .loop = pthread_self() };
    due_options options = { DUE_OPTIONS_INIT, .manual = clock };

    EXPECT(due_open(&s.q, &options, NULL) == 0 && glue_open() == 0);
    return s;
}

static void start(struct seen *s, due_loop_options options)
{
    options.on_end = on_end;
    EXPECT(glue_start(s->q, on_job, s, &options) == 0);
}

static void leave(struct seen *s)
{
    glue_stop();
    glue_stop(); /* may be called twice */
    glue_close();
    EXPECT(due_close(s->q, DUE_CLOSE_DISCARD, DUE_S(10)) == 0 && due_free(s->q) == 0);
}

struct producer {
    due_queue *q;
    int first;
};

static void *produce(void *ctx)
{
    const struct producer *p = ctx;

    for (int i = p->first; i < p->first + EACH; i++) {
        due_spec spec = { DUE_SPEC_INIT, .delay_ns = i % 7 * DUE_US(500), .data = &i,
                          .len = sizeof i };
        EXPECT(due_enqueue(p->q, &spec, 0, NULL) == 0);
    }
    return NULL;
}

static void jobs_come_from_any_thread(void)
{
    static char got[THREADS * EACH];
    struct seen s = look_at(NULL);
    struct producer producers[THREADS];
    pthread_t threads[THREADS];

    s.got = got;
    start(&s, (due_loop_options){ .batch_max = 16 });
    for (int i = 0; i < THREADS; i++) {
        producers[i] = (struct producer){ s.q, i * EACH };
        EXPECT(pthread_create(&threads[i], NULL, produce, &producers[i]) == 0);
    }
    while (s.jobs < THREADS * EACH) {
        int before = s.jobs;

        glue_step();
        EXPECT(s.jobs - before <= 16);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    EXPECT(s.strangers == 0 && s.again == 0 && s.jobs == THREADS * EACH && s.ends == 0);
    leave(&s);
}

static void a_turn_is_bounded(void)
{
    due_clock *clock = due_clock_manual(DUE_S(1));
    struct seen s = look_at(clock);
    int steps = 0;

    start(&s, (due_loop_options){ .batch_max = 10 });
    for (int i = 0; i < 1000; i++)
        EXPECT(due_enqueue_after(s.q, DUE_S(1), NULL, NULL) == 0);
    EXPECT(due_clock_advance(clock, DUE_S(1)) == 0);
    for (; s.jobs < 1000; steps++) {
        int before = s.jobs;

        glue_step();
        EXPECT(s.jobs - before <= 10);
    }
    EXPECT(steps >= 100 && steps <= 220);
    leave(&s);
    EXPECT(due_clock_free(clock) == 0);
}

static void *drain(void *q)
{
    EXPECT(due_close(q, DUE_CLOSE_DRAIN, DUE_FOREVER) == 0);
    return NULL;
}

/* What is held still comes, at its deadline, and then the end. */
static void a_queue_may_be_drained(void)
{
    due_clock *clock = due_clock_manual(DUE_S(1));
    struct seen s = look_at(clock);
    due_extra more = { DUE_EXTRA_INIT, .key = "one", .key_len = 3 };
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(5), .more = &more };
    pthread_t closer;

    start(&s, (due_loop_options){ .reserve = 0 });
    EXPECT(due_enqueue(s.q, &spec, 0, NULL) == 0);
    EXPECT(pthread_create(&closer, NULL, drain, s.q) == 0);
    while (due_enqueue(s.q, &spec, 0, NULL) != DUE_ECLOSED) /* but DUE_EEXIST */
        sched_yield();
    EXPECT(s.jobs == 0 && s.ends == 0);
    EXPECT(due_clock_advance(clock, DUE_S(5)) == 0);
    while (s.ends == 0)
        glue_step();
    EXPECT(s.jobs == 1 && s.ends == 1 && s.ended == DUE_ECLOSED);
    pthread_join(closer, NULL);
    leave(&s);
    EXPECT(due_clock_free(clock) == 0);
}

#ifdef DUE_HAVE_SQLITE
static void clear_file(void)
{
    remove(DUE_TEST_FILE);
    remove(DUE_TEST_FILE "-wal");
    remove(DUE_TEST_FILE "-shm");
    remove(DUE_TEST_FILE "-owner");
}

/* Another program that writes to the file for a while. */
static void *let_go_later(void *other)
{
    const struct timespec while_ns = { 0, 200000000 };

    nanosleep(&while_ns, NULL);
    EXPECT(sqlite3_exec(other, "rollback", NULL, NULL, NULL) == SQLITE_OK);
    return NULL;
}

/* A job is due, but it cannot be taken while another program writes: looks are few until then, and
 * then it comes. */
static void a_store_that_is_away_does_not_spin(void)
{
    struct seen s = { .loop = pthread_self(), .ack = false };
    due_options options = { DUE_OPTIONS_INIT,
                            .retry = { .kind = DUE_RETRY_FIXED, .attempts_max = 3 } };
    sqlite3 *other = NULL;
    pthread_t holder;
    int steps = 0;

    clear_file();
    EXPECT(due_sqlite_open(&options.store, DUE_TEST_FILE, NULL, NULL) == 0);
    EXPECT(due_open(&s.q, &options, NULL) == 0 && glue_open() == 0);
    start(&s, (due_loop_options){ .reserve = 1 });
    EXPECT(due_enqueue_after(s.q, DUE_MS(1), NULL, NULL) == 0);
    EXPECT(sqlite3_open(DUE_TEST_FILE, &other) == SQLITE_OK);
    EXPECT(sqlite3_busy_timeout(other, 10000) == SQLITE_OK);
    EXPECT(sqlite3_exec(other, "begin immediate", NULL, NULL, NULL) == SQLITE_OK);
    EXPECT(pthread_create(&holder, NULL, let_go_later, other) == 0);
    for (; s.jobs == 0; steps++)
        glue_step();
    EXPECT(steps < 200);
    pthread_join(holder, NULL);
    sqlite3_close(other);
    leave(&s);
    clear_file();
}
#endif

static void a_closed_queue_ends_it(void)
{
    struct seen s = look_at(NULL);

    start(&s, (due_loop_options){ .reserve = 1 });
    EXPECT(due_enqueue_after(s.q, DUE_S(100), NULL, NULL) == 0);
    EXPECT(due_close(s.q, DUE_CLOSE_DISCARD, DUE_S(10)) == 0);
    while (s.ends == 0)
        glue_step();
    EXPECT(s.ended == DUE_ECLOSED && s.ends == 1 && s.jobs == 0);
    glue_stop();
    EXPECT(glue_start(s.q, on_job, &s, NULL) == DUE_ECLOSED);
    leave(&s);
}

static void it_may_be_stopped_in_its_function(void)
{
    struct seen s = look_at(NULL);

    s.stop_at = 2;
    start(&s, (due_loop_options){ .reserve = 0 });
    for (int i = 0; i < 5; i++)
        EXPECT(due_enqueue_after(s.q, 0, NULL, NULL) == 0);
    while (s.jobs < 2)
        glue_step();
    struct due_stats stats;
    EXPECT(due_stats_read(s.q, &stats) == 0 && stats.waiting == 3 && stats.lent == 0);
    EXPECT(s.ends == 0);
    leave(&s);
}

/* On a lease, the function answers, leaves it to the lease, or keeps the job for later. */
static void the_function_has_the_job(void)
{
    struct seen s = look_at(NULL);
    struct due_stats stats;

    start(&s, (due_loop_options){ .reserve = 1, .batch_max = 1 });
    s.ack = true;
    EXPECT(due_enqueue_after(s.q, 0, NULL, NULL) == 0);
    while (s.jobs < 1)
        glue_step();
    s.ack = false;
    EXPECT(due_stats_read(s.q, &stats) == 0 && stats.acked == 1 && stats.lent == 0);
    EXPECT(due_enqueue_after(s.q, 0, NULL, NULL) == 0);
    while (s.jobs < 2)
        glue_step();
    EXPECT(due_stats_read(s.q, &stats) == 0 && stats.leased == 1 && stats.lent == 0);
    s.keep = true;
    EXPECT(due_enqueue_after(s.q, 0, NULL, NULL) == 0);
    while (s.jobs < 3)
        glue_step();
    EXPECT(due_stats_read(s.q, &stats) == 0 && stats.leased == 2 && stats.lent == 1);
    EXPECT(due_ack(&s.kept) == 0);
    leave(&s);
}

int main(void)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
        { "jobs_come_from_any_thread", jobs_come_from_any_thread },
        { "a_turn_is_bounded", a_turn_is_bounded },
        { "a_queue_may_be_drained", a_queue_may_be_drained },
#ifdef DUE_HAVE_SQLITE
        { "a_store_that_is_away_does_not_spin", a_store_that_is_away_does_not_spin },
#endif
        { "a_closed_queue_ends_it", a_closed_queue_ends_it },
        { "it_may_be_stopped_in_its_function", it_may_be_stopped_in_its_function },
        { "the_function_has_the_job", the_function_has_the_job },
    };

    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        running = tests[i].name;
        tests[i].run();
    }
    printf("%zu tests\n", sizeof tests / sizeof *tests);
    return 0;
}
