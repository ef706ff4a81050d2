/* A child after fork(): every call answers, none hangs, and the parent does not notice. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "due/figures.h"
#include "due/metrics.h"
#include "lab/shop.h"
#include "lab/workers_lab.h"
#include "lab/take.h"

/* Run @test in a child; its exit status. */
static int in_child(int (*test)(struct lab *lab), struct lab *lab)
{
    int status = 0;

    fflush(NULL);
    pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        alarm(20);
        _exit(test(lab));
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status), "the child ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static due_histogram some_histogram;
static due_id some_id;
static due_job some_job;
static due_job reserved[2];
static struct desk some_desk;

/* Says which answer was another, and ends the child's part. */
#define EXPECT_EFORK(call)                                 \
    do {                                                   \
        if ((call) != DUE_EFORK) {                         \
            fprintf(stderr, "not DUE_EFORK: %s\n", #call); \
            return 1;                                      \
        }                                                  \
    } while (0)

static int putting_in_and_out(struct lab *lab)
{
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = 1 };
    int topic = 0;
    due_job job;

    EXPECT_EFORK(due_enqueue(lab->q, &spec, 0, NULL));
    EXPECT_EFORK(due_enqueue(lab->q, &spec, DUE_FOREVER, NULL));
    EXPECT_EFORK(due_enqueue_batch(lab->q, &spec, 1, 0, NULL));
    EXPECT_EFORK(due_enqueue_at(lab->q, 1, NULL, NULL));
    EXPECT_EFORK(due_enqueue_after(lab->q, 1, NULL, NULL));
    EXPECT_EFORK(due_dequeue(lab->q, &job, 0));
    EXPECT_EFORK(due_dequeue(lab->q, &job, DUE_FOREVER));
    EXPECT_EFORK(take_from(lab->q, &topic, 1, &job, DUE_FOREVER));
    EXPECT_EFORK(take_some(lab->q, NULL, 0, &job, 1, DUE_FOREVER));
    EXPECT_EFORK(take_leased(lab->q, &job, 5, 0));
    EXPECT_EFORK(take_leased(lab->q, &job, 5, DUE_FOREVER));
    EXPECT_EFORK(take_leased_from(lab->q, &topic, 1, &job, 5, DUE_FOREVER));
    EXPECT_EFORK(take_leased_some(lab->q, NULL, 0, &job, 1, 5, DUE_FOREVER));
    spec.more = EXTRA(.key = "new", .key_len = 3);
    EXPECT_EFORK(due_enqueue(lab->q, &spec, 0, NULL));
    return 0;
}

/* They are its copies: nothing of them is the parent's any more. */
static int answering_for_a_job(struct lab *lab)
{
    int results[2] = { 0, 0 };

    (void)lab;
    EXPECT_EFORK(due_ack(&reserved[0]));
    EXPECT_EFORK(due_nack(&reserved[0], 0));
    EXPECT_EFORK(due_snooze(&reserved[0], 0));
    EXPECT_EFORK(due_read(lab->q, some_id, NULL, 0, NULL));
    EXPECT_EFORK(due_nack(&reserved[0], DUE_DELAY_POLICY));
    EXPECT_EFORK(due_bury(&reserved[0], "why"));
    EXPECT_EFORK(due_extend(&reserved[0], 5));
    if (due_ack_batch(reserved, 2, results) != 0)
        return 2;
    EXPECT_EFORK(results[0]);
    EXPECT_EFORK(results[1]);
    if (due_job_stopping(&reserved[0]) != 1)
        return 3;
    due_job_done(&reserved[0]);
    return 0;
}

static int naming_a_job(struct lab *lab)
{
    due_info info;
    int64_t ns;
    due_id id;
    int result;

    EXPECT_EFORK(due_cancel(lab->q, some_id, NULL));
    EXPECT_EFORK(due_cancel_batch(lab->q, &some_id, 1, &result));
    EXPECT_EFORK(due_reschedule(lab->q, some_id, 5));
    EXPECT_EFORK(due_promote(lab->q, some_id));
    EXPECT_EFORK(due_find(lab->q, some_id, &info));
    EXPECT_EFORK(due_remaining(lab->q, some_id, &ns));
    EXPECT_EFORK(due_update(lab->q, some_id, "new", 3));
    EXPECT_EFORK(
        due_amend(lab->q, some_id, &(due_spec){ DUE_SPEC_INIT, .at_ns = 5 }, DUE_SET_TIME));
    EXPECT_EFORK(due_kick(lab->q, some_id));
    EXPECT_EFORK(due_id_of_key(lab->q, "key", 3, &id));
    EXPECT_EFORK(due_cancel_key(lab->q, "key", 3, NULL));
    return 0;
}

static int naming_the_queue(struct lab *lab)
{
    struct due_stats stats;
    uint64_t cursor = 0;
    due_info info;

    EXPECT_EFORK(due_peek(lab->q, &info));
    EXPECT_EFORK(due_list(lab->q, &cursor, &info, 1));
    EXPECT_EFORK(due_clear(lab->q, DUE_ALL_TOPICS, NULL));
    EXPECT_EFORK(due_pause(lab->q, 0));
    EXPECT_EFORK(due_resume(lab->q, 0));
    EXPECT_EFORK(due_trim(lab->q));
    EXPECT_EFORK(due_stats_read(lab->q, &stats));
    EXPECT_EFORK(due_topic(lab->q, "new"));
    EXPECT_EFORK(due_topic_measure(lab->q, 0));
    EXPECT_EFORK(due_topic_durations(lab->q, 0, &some_histogram, &some_histogram));
    EXPECT_EFORK(due_fd(lab->q));
    EXPECT_EFORK(due_poll(lab->q, NULL));
    if (due_next_deadline(lab->q) != DUE_FOREVER || due_now(lab->q) < 0)
        return 1;
    EXPECT_EFORK(due_close(lab->q, DUE_CLOSE_DISCARD, DUE_FOREVER));
    EXPECT_EFORK(due_close(lab->q, DUE_CLOSE_DRAIN, DUE_FOREVER));
    return 0;
}

static int naming_the_dead_and_more(struct lab *lab)
{
    static const due_retry retry = { .kind = DUE_RETRY_FIXED };
    struct due_topic_stats of_topic;
    struct due_metrics metrics;
    struct due_queue_census census;
    due_process process;
    uint64_t cursor = 0;
    char text[64];
    due_dead dead;

    EXPECT_EFORK(due_kick_all(lab->q, DUE_ALL_TOPICS, NULL));
    EXPECT_EFORK(due_list_dead(lab->q, &cursor, &dead, 1));
    EXPECT_EFORK(due_clear_dead(lab->q, DUE_ALL_TOPICS, NULL));
    EXPECT_EFORK(due_topic_limit(lab->q, 0, 1));
    EXPECT_EFORK(due_topic_retry(lab->q, 0, &retry));
    EXPECT_EFORK(due_topic_stats_read(lab->q, 0, &of_topic));
    EXPECT_EFORK(due_metrics_read(lab->q, &metrics));
    EXPECT_EFORK(due_census(lab->q, 0, &census, 0));
    EXPECT_EFORK(due_census_write(lab->q, text, sizeof text, 0));
    EXPECT_EFORK(due_processes(lab->q, &cursor, &process, 1, 0));
    EXPECT_EFORK(due_metrics_write(lab->q, text, sizeof text));
    EXPECT_EFORK(due_metrics_write(lab->q, NULL, 0));
    EXPECT_EFORK(due_figures_open(lab->q, "/no/such/folder/figures"));
    EXPECT_EFORK(due_flush(lab->q, 0));
    EXPECT_EFORK(due_flush(lab->q, DUE_FOREVER));
    return due_topic_name(lab->q, 0) != NULL ? 0 : 2;
}

static int naming_its_workers(struct lab *lab)
{
    struct due_workers_stats stats;
    due_workers *pool;

    EXPECT_EFORK(due_workers_start(&pool, lab->q, NULL, 0, 1, desk_handle, NULL, NULL));
    EXPECT_EFORK(due_workers_stop(some_desk.pool, 0));
    EXPECT_EFORK(due_workers_stop(some_desk.pool, DUE_FOREVER));
    EXPECT_EFORK(due_workers_stats_read(some_desk.pool, &stats));
    return due_workers_free(some_desk.pool); /* the child's copy */
}

/* Two jobs are out, one waits, one is dead, and a pool waits for a fifth. */
static void call_everything_in_children(struct lab *lab)
{
    int topic = lab_topic(lab, "the pool's");
    due_job job;

    for (int i = 0; i < 3; i++) {
        lab_enqueue(lab, "out", .delay_ns = 0);
        cr_assert_eq(due_flush(lab->q, DUE_S(30)), 0);
        cr_assert_eq(take_leased(lab->q, i < 2 ? &reserved[i] : &job, DUE_S(100), 0), 0);
    }
    cr_assert_eq(due_bury(&job, NULL), 0);
    cr_assert_eq(due_flush(lab->q, DUE_S(30)), 0);
    some_id = lab_enqueue(lab, "job", .delay_ns = 5, .more = EXTRA(.key = "key", .key_len = 3));
    some_desk = desk_open_on(lab, 2, &topic, 1, &(due_workers_options){ DUE_WORKERS_INIT });
    WAIT_UNTIL(desk_stats(&some_desk).idle == 2);
    cr_expect_eq(in_child(putting_in_and_out, lab), 0, "in or out");
    cr_expect_eq(in_child(answering_for_a_job, lab), 0, "an answer");
    cr_expect_eq(in_child(naming_a_job, lab), 0, "a job");
    cr_expect_eq(in_child(naming_the_queue, lab), 0, "the queue");
    cr_expect_eq(in_child(naming_the_dead_and_more, lab), 0, "the dead, and more");
    cr_expect_eq(in_child(naming_its_workers, lab), 0, "workers");
    desk_close(&some_desk);
    cr_expect_eq(due_ack_batch(reserved, 2, NULL), 2, "the parent's were answered for");
    cr_assert_eq(due_flush(lab->q, DUE_S(30)), 0);
    cr_expect_eq(lab_stats(lab).dead, 1u);
    lab_advance(lab, 5);
    cr_expect_str_eq(lab_dequeue(lab), "job");
    cr_expect_eq(due_clear_dead(lab->q, DUE_ALL_TOPICS, NULL), 0);
}

/* D1 */
LAB_TEST(fork, makes_every_call_answer_efork)
{
    struct lab lab = lab_open();

    call_everything_in_children(&lab);
    lab_close(&lab);
}

static int freeing(struct lab *lab)
{
    return due_free(lab->q) == 0 ? 0 : 1;
}

/* And does not touch the store. */
Test(fork, makes_every_call_of_a_queue_with_a_store_answer_efork, .timeout = 60)
{
    for (int i = 0; i < 2; i++) {
        struct shop s = shop_make(.with.confirm = i == 0 ? DUE_CONFIRM_SYNC : DUE_CONFIRM_ASYNC);

        call_everything_in_children(&s.lab);
        cr_expect_eq(in_child(freeing, &s.lab), 0);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        cr_expect_eq(memory_disk_jobs(s.disk), 0u);
        shop_close(&s);
    }
}

LAB_TEST(fork, lets_the_child_give_its_copy_of_the_memory_back)
{
    struct lab lab = lab_open();

    for (int i = 0; i < 100; i++)
        lab_enqueue(&lab, "a payload that does not fit into the thirty-two bytes", .delay_ns = i);
    cr_expect_eq(in_child(freeing, &lab), 0);
    cr_expect_eq(lab_stats(&lab).waiting, 100u);
    lab_close(&lab);
}

static int freeing_counted(struct lab *lab)
{
    if (due_free(lab->q) != 0)
        return 1;
    if (atomic_load(&lab->state->memory.bad) != 0)
        return 2;
    return atomic_load(&lab->state->memory.live) == 0 ? 0 : 3;
}

LAB_TEST(fork, leaves_no_memory_behind_in_a_child_that_frees)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "small", .delay_ns = 5);
    for (int i = 0; i < 5000; i++) /* in each place of a segment, the first one too */
        lab_enqueue(&lab, "a payload that does not fit into the thirty-two bytes", .delay_ns = i);
    cr_expect_eq(in_child(freeing_counted, &lab), 0);
    lab_close(&lab);
}

/* With what jobs have beside their bytes, in each state in which it is the queue's. */
LAB_TEST(fork, leaves_no_keys_and_headers_behind_in_a_child_that_frees)
{
    static const due_extra more[] = {
        { DUE_EXTRA_INIT, .key = "waits", .key_len = 5 },
        { DUE_EXTRA_INIT, .key = "retained", .key_len = 8, .keep_key_ns = 1000 },
        { DUE_EXTRA_INIT, .headers = "h: v", .headers_len = 4 },
        { DUE_EXTRA_INIT, .group = "g", .group_len = 1 },
        { DUE_EXTRA_INIT, .key = "all", .key_len = 3, .headers = "h: v", .headers_len = 4,
          .group = "g", .group_len = 1, .every_ns = 7 },
    };
    enum { KINDS = sizeof more / sizeof more[0] };
    struct lab lab = lab_open();
    due_job job[2];

    for (int i = 0; i < KINDS; i++)
        lab_enqueue(&lab, "a payload", .delay_ns = 10 + i, .more = &more[i]);
    for (int i = 0; i < 3; i++)
        lab_enqueue(&lab, "now", .delay_ns = 0,
                    .more = EXTRA(.key = &"abc"[i], .key_len = 1, .keep_key_ns = 1000));
    for (int i = 0; i < 100; i++) /* in each bucket of their table, the first one too */
        lab_enqueue(&lab, "grouped", .delay_ns = 20,
                    .more = EXTRA(.group = &i, .group_len = sizeof i));
    cr_assert_eq(take_leased(lab.q, &job[0], 100, 0), 0);
    cr_assert_eq(due_bury(&job[0], "dead"), 0);
    cr_assert_eq(take_leased(lab.q, &job[0], 100, 0), 0);
    cr_assert_eq(due_dequeue(lab.q, &job[1], 0), 0);
    due_job_done(&job[1]);
    cr_expect_eq(in_child(freeing_counted, &lab), 0);
    cr_expect_eq(due_ack(&job[0]), 0);
    lab_close(&lab);
}

static int done_with(struct lab *lab)
{
    (void)lab;
    due_job_done(&some_job);
    due_job_done(&some_job);
    return 0;
}

LAB_TEST(fork, lets_the_child_be_done_with_its_copy_of_a_job)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "job", .delay_ns = 0);
    cr_assert_eq(due_dequeue(lab.q, &some_job, 0), 0);
    cr_expect_eq(in_child(done_with, &lab), 0);
    cr_expect_eq(lab_stats(&lab).lent, 1u);
    cr_expect_str_eq(lab_text(&lab, &some_job), "job");
    lab_close(&lab);
}

/* AddressSanitizer itself can hang when a child of a program with threads starts one. */
#ifdef __SANITIZE_ADDRESS__
#define CHILD_PROXIES DUE_PROXIES_NEVER
#else
#define CHILD_PROXIES DUE_PROXIES_ADAPTIVE
#endif

static int own_queue(struct lab *lab)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = CHILD_PROXIES };
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_MS(1) };
    due_queue *q;
    due_job job;

    (void)lab;
    if (due_open(&q, &options, NULL) != 0)
        return 1;
    if (due_enqueue(q, &spec, 0, NULL) != 0 || due_dequeue(q, &job, DUE_S(10)) != 0)
        return 2;
    due_job_done(&job);
    if (due_close(q, DUE_CLOSE_DRAIN, DUE_S(10)) != 0)
        return 3;
    return due_free(q) == 0 ? 0 : 4;
}

LAB_TEST(fork, lets_the_child_open_a_queue_of_its_own)
{
    struct lab lab = lab_open();

    cr_expect_eq(in_child(own_queue, &lab), 0);
    lab_close(&lab);
}

static int three_levels(struct lab *lab)
{
    int rc = putting_in_and_out(lab);

    if (rc != 0)
        return rc;
    return in_child(naming_the_queue, lab);
}

/* D1, D2: children of children, many times, while threads are at work */
LAB_TEST(fork, may_happen_often_while_threads_are_at_work)
{
    struct lab lab = lab_open(.kernel = true);
    struct crew_call call;

    lab_enqueue(&lab, "last", .delay_ns = DUE_MS(200));
    crew_call_dequeue(&call, lab.q, DUE_FOREVER);
    for (int i = 0; i < 20; i++) {
        lab_enqueue(&lab, "later", .delay_ns = DUE_S(100));
        cr_assert_eq(in_child(i % 2 == 0 ? three_levels : freeing, &lab), 0, "%d", i);
    }
    cr_assert_eq(crew_call_answer(&call), 0);
    cr_expect_str_eq(lab_text(&lab, &call.job), "last");
    lab_close(&lab);
}
