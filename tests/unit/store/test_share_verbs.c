/* One queue for many processes: verbs and options whose other tests are of a queue of one's own. */
#include <poll.h>
#include <stdio.h>

#include "api/ack.h"
#include "due/metrics.h"
#include "lab/exposition.h"
#include "lab/mall.h"
#include "lab/take.h"
#include "lab/workers_lab.h"

#define JOBS 10
#define LONG DUE_S(20)

/* ---- Answers for many ---- */

MALL_TEST(share_verbs, a_batch_of_acks_has_an_answer_for_each)
{
    struct mall m = mall_make(2);
    due_job jobs[JOBS];
    int results[JOBS];

    for (int i = 0; i < JOBS; i++)
        lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    for (int i = 0; i < JOBS; i++) /* of every other the lease ends, and another has it then */
        cr_assert_eq(mall_reserve(&m, 1, &jobs[i], i % 2 == 0 ? 1000 : 100), 0);
    mall_turn_to(&m, 200);
    for (int i = 0; i < JOBS / 2; i++) {
        due_job job;

        cr_assert_eq(mall_reserve(&m, 0, &job, 1000), 0);
        due_job_done(&job);
    }
    cr_expect_eq(due_ack_batch(jobs, JOBS, results), JOBS / 2);
    for (int i = 0; i < JOBS; i++)
        cr_expect_eq(results[i], i % 2 == 0 ? 0 : DUE_ESTALE, "%d: %d", i, results[i]);
    cr_expect_eq(memory_disk_jobs(m.disk), JOBS / 2u);
    cr_expect_eq(lab_stats(&m.lab[1]).acked, JOBS / 2u);
    mall_close(&m);
}

MALL_TEST(share_verbs, a_batch_of_cancels_has_an_answer_for_each_wherever_it_is)
{
    struct mall m = mall_make(2);
    due_id ids[5];
    int results[5];
    due_job job;

    ids[0] = lab_enqueue(&m.lab[0], "waits", .at_ns = 50);
    ids[1] = lab_enqueue(&m.lab[0], "held", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 0, &job, 1000), 0);
    ids[2] = lab_enqueue(&m.lab[0], "gone", .at_ns = 50);
    cr_assert_eq(due_cancel(m.lab[0].q, ids[2], NULL), 0);
    ids[3] = lab_enqueue(&m.lab[1], "its own", .at_ns = 50);
    ids[4] = ids[0];
    cr_expect_eq(due_cancel_batch(m.lab[1].q, ids, 5, results), 2);
    cr_expect(results[0] == 0 && results[1] == DUE_EBUSY && results[2] == DUE_ENOENT &&
                  results[3] == 0 && results[4] == DUE_ENOENT,
              "%d %d %d %d %d", results[0], results[1], results[2], results[3], results[4]);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

/* An id has 14 bytes in a store, and two of zero: one with others names nobody, whatever is in
 * front of them. */
MALL_TEST(share_verbs, an_id_with_more_bytes_than_any_names_no_job)
{
    struct mall m = mall_make(2);
    due_spec spec = { DUE_SPEC_INIT, .data = "milk", .len = 4 };
    due_id real = lab_enqueue(&m.lab[0], "tea", .at_ns = 50);
    char bytes[8];
    int64_t ns;
    size_t len;
    due_info info;
    due_job job;

    for (size_t i = 0; i < 2; i++) {
        for (int at = 14; at < 16; at++) {
            due_queue *q = m.lab[i].q;
            due_id id = real;
            int result;

            id.byte[at] = 1;
            cr_expect_eq(due_find(q, id, &info), DUE_ENOENT);
            cr_expect_eq(due_remaining(q, id, &ns), DUE_ENOENT);
            cr_expect_eq(due_read(q, id, bytes, sizeof bytes, &len), DUE_ENOENT);
            cr_expect_eq(due_reschedule(q, id, 70), DUE_ENOENT);
            cr_expect_eq(due_promote(q, id), DUE_ENOENT);
            cr_expect_eq(due_update(q, id, "milk", 4), DUE_ENOENT);
            cr_expect_eq(due_amend(q, id, &spec, DUE_SET_DATA), DUE_ENOENT);
            cr_expect_eq(due_kick(q, id), DUE_ENOENT);
            cr_expect_eq(due_cancel_batch(q, &id, 1, &result), 0);
            cr_expect_eq(result, DUE_ENOENT);
            cr_expect_eq(due_cancel(q, id, &job), DUE_ENOENT);
            cr_expect_eq(due_cancel(q, id, NULL), DUE_ENOENT);
        }
    }
    mall_turn_to(&m, 50);
    cr_assert_eq(mall_take(&m, 1, &job), 0);
    cr_expect_eq(job.deadline_ns, 50);
    cr_expect_str_eq(lab_text(&m.lab[1], &job), "tea");
    mall_close(&m);
}

/* ---- What is told ---- */

#define TOLD 32

struct told {
    pthread_mutex_t lock;
    char text[TOLD * 16];
    int settled[TOLD];
    size_t n_settled;
};

static void tell_event(void *ctx, const due_event *e)
{
    struct told *t = ctx;

    pthread_mutex_lock(&t->lock);
    size_t at = strlen(t->text);
    snprintf(t->text + at, sizeof t->text - at, "%s%s", at > 0 ? " " : "", due_event_name(e->kind));
    pthread_mutex_unlock(&t->lock);
}

static void tell_settled(void *ctx, due_id id, int rc)
{
    struct told *t = ctx;

    (void)id;
    pthread_mutex_lock(&t->lock);
    t->settled[t->n_settled++ % TOLD] = rc;
    pthread_mutex_unlock(&t->lock);
}

static void no_discard(void *ctx, const due_job *job)
{
    (void)ctx;
    (void)job;
}

static void told_is(struct told *t, const char *text)
{
    pthread_mutex_lock(&t->lock);
    cr_expect_str_eq(t->text, text);
    t->text[0] = '\0';
    pthread_mutex_unlock(&t->lock);
}

/* Of a job that one puts in, and the other takes, each is told its own part. */
MALL_TEST(share_verbs, the_events_of_a_job_are_told_where_they_come_to_pass)
{
    struct told told[2] = { { .lock = PTHREAD_MUTEX_INITIALIZER },
                            { .lock = PTHREAD_MUTEX_INITIALIZER } };
    struct mall m = mall_make(0);
    due_job job;

    for (int i = 0; i < 2; i++)
        mall_join(&m, (struct lab_options){ .with.on_event = tell_event,
                                            .with.on_discard = no_discard,
                                            .with.ctx = &told[i] });
    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    told_is(&told[0], "produced kept");
    cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
    told_is(&told[1], "restored ready delivered");
    cr_expect_eq(due_nack(&job, 0), 0);
    told_is(&told[1], "retried kept");
    cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
    cr_expect_eq(due_bury(&job, "cold"), 0);
    told_is(&told[1], "restored ready delivered dead kept");
    cr_expect_eq(due_kick(m.lab[0].q, job.id), DUE_ENOENT);
    told_is(&told[0], "");
    mall_close(&m);
}

MALL_TEST(share_verbs, what_nobody_waits_for_is_told_when_it_has_landed)
{
    struct told told = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct mall m = mall_make(1);
    size_t i = mall_join(&m, (struct lab_options){ .with.confirm = DUE_CONFIRM_ASYNC,
                                                   .with.on_settled = tell_settled,
                                                   .with.on_discard = no_discard,
                                                   .with.ctx = &told });
    due_job job;

    for (int n = 0; n < JOBS; n++)
        lab_enqueue(&m.lab[i], "tea", .delay_ns = 0);
    cr_assert_eq(due_flush(m.lab[i].q, LONG), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), (size_t)JOBS);
    cr_expect_eq(told.n_settled, (size_t)JOBS);
    for (int n = 0; n < JOBS; n++)
        cr_expect_eq(told.settled[n], 0);
    cr_assert_eq(mall_reserve(&m, i, &job, 100), 0);
    cr_expect_eq(due_ack(&job), 0);
    cr_assert_eq(due_flush(m.lab[i].q, LONG), 0);
    cr_expect_eq(told.n_settled, JOBS + 1u);
    cr_expect_eq(memory_disk_jobs(m.disk), JOBS - 1u);
    mall_close(&m);
}

/* ---- The descriptor ---- */

static bool readable(int fd, int wait_ms)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, wait_ms) == 1 && (p.revents & POLLIN) != 0;
}

MALL_TEST(share_verbs, a_ring_makes_the_descriptor_readable)
{
    struct mall m = mall_make(2);
    due_queue *q = m.lab[1].q;
    due_job job;
    int rc;

    int fd = due_fd(q);
    cr_assert_geq(fd, 0);
    for (int n = 0; n < 3; n++) {
        while (due_poll(q, NULL) > 0) /* it has not been looked at, yet */
            continue;
        cr_assert_eq(due_dequeue(q, &job, 0), DUE_EAGAIN);
        due_id id = lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
        do
            cr_assert(readable(fd, 20000), "%d", n);
        while ((rc = due_dequeue(q, &job, 0)) == DUE_EAGAIN);
        cr_assert_eq(rc, 0);
        cr_expect(due_id_equal(job.id, id));
        due_job_done(&job);
    }
    mall_close(&m);
}

/* Nobody has taken anything before. */
MALL_TEST(share_verbs, the_descriptor_is_readable_before_anything_was_taken)
{
    struct mall m = mall_make(2);

    for (int before = 0; before < 2; before++) {
        if (before)
            lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
        int fd = due_fd(m.lab[(size_t)before].q);

        cr_assert_geq(fd, 0);
        if (!before)
            lab_enqueue(&m.lab[1], "tea", .delay_ns = 0);
        cr_expect(readable(fd, 2000), "%d", before);
    }
    mall_close(&m);
}

/* Who waits by the descriptor for several topics asks for them one after the other. */
MALL_TEST(share_verbs, the_descriptor_tells_of_each_topic_that_was_asked_for)
{
    for (int any = 0; any < 2; any++) {
        struct mall m = mall_make(2);
        due_queue *q = m.lab[1].q;
        int topic[] = { lab_topic(&m.lab[1], "a"), lab_topic(&m.lab[1], "b") };
        int there = lab_topic(&m.lab[0], "a");
        int fd = due_fd(q);
        due_job job;
        int rc;

        cr_assert_geq(fd, 0);
        cr_assert_eq(take_from(q, any ? NULL : &topic[0], !any, &job, 0), DUE_EAGAIN);
        cr_assert_eq(take_from(q, &topic[1], 1, &job, 0), DUE_EAGAIN);
        lab_enqueue(&m.lab[0], "tea", .topic = there);
        do {
            cr_assert(readable(fd, 20000), "%d", any);
            rc = take_from(q, &topic[1], 1, &job, 0);
            cr_assert_eq(rc, DUE_EAGAIN);
        } while ((rc = take_from(q, &topic[0], 1, &job, 0)) == DUE_EAGAIN);
        cr_assert_eq(rc, 0);
        due_job_done(&job);
        mall_close(&m);
    }
}

/* It has asked, and would wait for ever. */
MALL_TEST(share_verbs, the_descriptor_of_who_was_turned_out_is_readable)
{
    struct mall m = mall_make(2);
    due_queue *q = m.lab[1].q;
    due_id id = lab_enqueue(&m.lab[0], "tea", .at_ns = 50);
    int fd = due_fd(q);
    due_job job;

    cr_assert_geq(fd, 0);
    cr_assert_eq(due_dequeue(q, &job, 0), DUE_EAGAIN);
    memory_store_evict(m.store[1]);
    cr_expect_eq(due_cancel(q, id, NULL), DUE_EFENCED);
    cr_expect(readable(fd, 20000));
    cr_expect_eq(due_dequeue(q, &job, 0), DUE_EFENCED);
    mall_close(&m);
}

/* What lies in the store is not held here; what was claimed is. */
MALL_TEST(share_verbs, the_next_deadline_is_that_of_what_was_claimed)
{
    struct mall m = mall_make(2);
    due_queue *q = m.lab[1].q;
    due_job job;
    int rc;

    lab_enqueue(&m.lab[0], "tea", .at_ns = 50);
    cr_assert_eq(due_dequeue(q, &job, 0), DUE_EAGAIN);
    for (int i = 0; i < 2; i++)
        cr_expect_eq(due_next_deadline(m.lab[(size_t)i].q), DUE_FOREVER);
    int fd = due_fd(q);
    cr_assert_geq(fd, 0);
    mall_turn_to(&m, 60);
    while (due_next_deadline(q) == DUE_FOREVER)
        crew_sleep(DUE_US(100));
    cr_expect_leq(due_next_deadline(q), 60);
    do
        cr_assert(readable(fd, 20000));
    while ((rc = due_dequeue(q, &job, 0)) == DUE_EAGAIN);
    cr_assert_eq(rc, 0);
    due_job_done(&job);
    mall_close(&m);
}

/* ---- Metrics ---- */

MALL_TEST(share_verbs, the_metrics_are_those_of_this_process)
{
    struct mall m = mall_make(0);
    struct due_metrics there;
    struct due_metrics here;
    due_histogram late;
    due_histogram held;
    static char text[1 << 16];
    due_job job;

    for (int i = 0; i < 2; i++)
        mall_join(&m, (struct lab_options){ .with.metrics = 1 });
    int topic = lab_topic(&m.lab[1], "tea");
    cr_assert_eq(due_topic_measure(m.lab[1].q, topic), 0);
    lab_enqueue(&m.lab[0], "tea", .at_ns = 50, .topic = lab_topic(&m.lab[0], "tea"));
    mall_turn_to(&m, 60);
    cr_assert_eq(mall_reserve(&m, 1, &job, 1000), 0);
    mall_turn_to(&m, 90);
    cr_expect_eq(due_ack(&job), 0);
    cr_assert_eq(due_metrics_read(m.lab[0].q, &there), 0);
    cr_assert_eq(due_metrics_read(m.lab[1].q, &here), 0);
    cr_expect(there.late.count == 0 && there.held.count == 0);
    cr_expect(here.late.count == 1 && here.held.count == 1);
    cr_assert_eq(due_topic_durations(m.lab[1].q, topic, &late, &held), 0);
    cr_expect(late.count == 1 && late.sum_ns == 10, "%jd", (intmax_t)late.sum_ns);
    cr_expect(held.count == 1 && held.sum_ns == 30, "%jd", (intmax_t)held.sum_ns);
    int len = due_metrics_write(m.lab[1].q, text, sizeof text);
    cr_assert(len > 0 && (size_t)len < sizeof text);
    mall_close(&m);
}

MALL_TEST(share_verbs, what_is_trimmed_is_had_again)
{
    struct mall m = mall_make(2);
    due_job jobs[JOBS];

    for (int n = 0; n < 2; n++) {
        for (int i = 0; i < JOBS; i++)
            lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
        for (int i = 0; i < JOBS; i++)
            cr_assert_eq(mall_reserve(&m, 1, &jobs[i], 1000), 0);
        cr_expect_eq(due_trim(m.lab[1].q), 0);
        for (int i = 0; i < JOBS; i++)
            cr_expect_eq(due_ack(&jobs[i]), 0);
        for (int i = 0; i < 2; i++)
            cr_expect_eq(due_trim(m.lab[i].q), 0);
    }
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

/* ---- Retries ---- */

/* It fails in one process and the other, by turns: it comes again after that, or before. */
static void fail_by_turns(struct mall *m, const int64_t *delays, bool exact, int n, due_id id)
{
    int64_t now = 0;
    struct due_record r;
    due_job job;

    for (int i = 0; i < n; i++) {
        cr_assert_eq(mall_reserve(m, (size_t)i % 2, &job, 100), 0, "%d", i);
        cr_expect(due_id_equal(job.id, id));
        cr_expect(job.attempts == (uint32_t)i + 1 && job.failures == (uint32_t)i);
        cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
        cr_assert(memory_disk_find(m->disk, id, &r));
        int64_t delay_ns = r.until_ns - now;
        cr_expect(exact ? delay_ns == delays[i] : delay_ns >= 0 && delay_ns <= delays[i], "%d: %jd",
                  i, (intmax_t)delay_ns);
        now = r.until_ns;
        mall_turn_to(m, now);
    }
    cr_assert_eq(mall_reserve(m, 0, &job, 100), 0);
    cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
    cr_assert(memory_disk_find(m->disk, id, &r));
    cr_expect(r.cause == DUE_CAUSE_ATTEMPTS && r.failures == (uint32_t)n + 1);
}

MALL_TEST(share_verbs, a_ladder_is_climbed_in_all_processes)
{
    const due_retry ladder = { .kind = DUE_RETRY_LADDER, .rungs = 3, .rung_ns = { 10, 300, 20 } };
    struct mall m = mall_make(2);
    due_extra more = { DUE_EXTRA_INIT, .retry = &ladder };

    due_id id = lab_enqueue(&m.lab[0], "tea", .delay_ns = 0, .more = &more);
    fail_by_turns(&m, ladder.rung_ns, true, 3, id);
    mall_close(&m);
}

MALL_TEST(share_verbs, a_delay_that_doubles_does_so_in_all_processes)
{
    const due_retry twice = {
        .kind = DUE_RETRY_EXPONENTIAL, .attempts_max = 5, .delay_ns = 10, .cap_ns = 50
    };
    const int64_t delays[] = { 10, 20, 40, 50 };
    struct mall m = mall_make(2);
    due_extra more = { DUE_EXTRA_INIT, .retry = &twice };

    due_id id = lab_enqueue(&m.lab[0], "tea", .delay_ns = 0, .more = &more);
    fail_by_turns(&m, delays, false, 4, id);
    mall_close(&m);
}

/* Which process has the job says what becomes of it. */
MALL_TEST(share_verbs, the_policy_of_a_topic_is_that_of_the_process_that_fails)
{
    const due_retry late = { .kind = DUE_RETRY_FIXED, .delay_ns = 500 };
    struct mall m = mall_make(2);
    struct due_record r;
    due_job job;

    int topic = lab_topic(&m.lab[1], "tea");
    cr_assert_eq(due_topic_retry(m.lab[1].q, topic, &late), 0);
    due_id id = lab_enqueue(&m.lab[0], "tea", .topic = lab_topic(&m.lab[0], "tea"));
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
    cr_assert(memory_disk_find(m.disk, id, &r));
    int64_t plain_ns = r.until_ns;
    cr_expect_neq(plain_ns, 500);
    mall_turn_to(&m, plain_ns);
    cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
    cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
    cr_assert(memory_disk_find(m.disk, id, &r));
    cr_expect_eq(r.until_ns, plain_ns + 500);
    mall_close(&m);
}

/* ---- Time limits ---- */

MALL_TEST(share_verbs, a_job_whose_time_has_passed_is_dead_and_not_handed_out)
{
    struct mall m = mall_make(2);
    struct due_record r;
    due_id ids[2];
    due_job job;

    ids[0] = lab_enqueue(&m.lab[0], "by then", .at_ns = 10, .more = EXTRA(.expires_ns = 50));
    ids[1] = lab_enqueue(&m.lab[0], "so long", .at_ns = 10, .more = EXTRA(.ttl_ns = 40));
    due_id stays = lab_enqueue(&m.lab[0], "stays", .at_ns = 20, .more = EXTRA(.ttl_ns = 500));
    mall_turn_to(&m, 60);
    cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
    cr_expect(due_id_equal(job.id, stays));
    cr_expect_eq(due_ack(&job), 0);
    for (int i = 0; i < 2; i++) {
        cr_assert(memory_disk_find(m.disk, ids[i], &r));
        cr_expect_eq(r.cause, DUE_CAUSE_EXPIRED, "%d", i);
    }
    cr_expect_eq(due_kick(m.lab[0].q, ids[0]), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 2u);
    mall_close(&m);
}

/* ---- Worker pools ---- */

/* Two processes have pools; each job is handled once, in one of them. */
MALL_TEST(share_verbs, pools_of_several_processes_have_each_job_once)
{
    struct mall m = mall_make(3);
    struct desk desk[2];
    unsigned begun = 0;

    for (int i = 0; i < 2; i++) {
        desk[i] = desk_open(&m.lab[1 + i], 2);
        for (int n = 0; n < JOBS; n++)
            desk_let_go(&desk[i], due_answer_ack());
    }
    for (int n = 0; n < JOBS; n++)
        lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    while (memory_disk_jobs(m.disk) > 0)
        crew_sleep(DUE_US(100));
    for (int i = 0; i < 2; i++) {
        begun += atomic_load(&desk[i].state->begun_count);
        desk_close(&desk[i]);
    }
    cr_expect_eq(begun, (unsigned)JOBS);
    cr_expect_eq(lab_stats(&m.lab[1]).acked + lab_stats(&m.lab[2]).acked, (uint64_t)JOBS);
    mall_close(&m);
}

/* It looks before it waits, and is one caller all the same. */
MALL_TEST(share_verbs, a_worker_has_one_job_claimed_for_itself)
{
    struct mall m = mall_make(2);
    struct desk desk = desk_open(&m.lab[1], 1);
    struct due_queue_census there;

    WAIT_UNTIL(desk_stats(&desk).idle == 1);
    crew_sleep(DUE_MS(1)); /* for what it may do besides, which it need not */
    for (int n = 0; n < JOBS; n++)
        lab_enqueue(&m.lab[0], "tea", .at_ns = 10);
    mall_turn_to(&m, 10);
    for (int n = 0; n < 3; n++) {
        desk_until_begun(&desk);
        cr_assert_eq(due_census(m.lab[0].q, DUE_ALL_TOPICS, &there, LONG), 0);
        cr_expect_eq(there.leased, 1u, "%d: %d", n, (int)there.leased);
        desk_let_go(&desk, due_answer_ack());
    }
    for (int n = 0; n < JOBS; n++)
        desk_let_go(&desk, due_answer_ack());
    while (memory_disk_jobs(m.disk) > 0)
        crew_sleep(DUE_US(100));
    desk_close(&desk);
    mall_close(&m);
}

/* However long the handler takes: nobody else gets the job. */
MALL_TEST(share_verbs, a_pool_extends_the_leases_of_its_jobs_in_the_store)
{
    struct mall m = mall_make(2);
    struct desk desk = desk_open_with(&m.lab[1], 1, .lease_ns = 100);
    struct crew_call other;
    int64_t end;

    lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    crew_call_reserve(&other, m.lab[0].q, NULL, 0, 100, DUE_FOREVER);
    crew_call_asleep(&other);
    for (int64_t i = 1; i <= 8; i++) {
        mall_turn_to(&m, 60 * i);
        WAIT_UNTIL(desk_stats(&desk).extended == (uint64_t)i); /* it was sent, */
        WAIT_UNTIL(due__lease_end(desk.state->at, &end) == 0); /* and answered */
        cr_expect_eq(end, 60 * i + 100);
    }
    cr_expect_eq(due_job_stopping(desk.state->at), 0);
    cr_expect(!atomic_load(&other.thread.back));
    desk_let_go(&desk, due_answer_ack());
    while (memory_disk_jobs(m.disk) > 0)
        crew_sleep(DUE_US(100));
    desk_close(&desk);
    crew_until_others_asleep(); /* no claim is on its way from before the clock was turned */
    lab_enqueue(&m.lab[1], "cake", .delay_ns = 0);
    cr_assert_eq(crew_call_answer(&other), 0);
    cr_expect_str_eq(lab_text(&m.lab[0], &other.job), "cake");
    mall_close(&m);
}

/* ---- Opening ---- */

MALL_TEST(share_verbs, there_is_no_such_queue_without_proxies_or_in_boottime)
{
    struct mall m = mall_make(1);
    due_queue *q = NULL;
    due_error error;

    for (int what = 0; what < 2; what++) {
        due_options o = { DUE_OPTIONS_INIT, .share = DUE_SHARED,
                          .store = memory_store_new(m.disk) };

        if (what == 0)
            o.proxies = DUE_PROXIES_NEVER;
        else
            o.clock = DUE_CLOCK_BOOTTIME;
        cr_expect_eq(due_open(&q, &o, &error), DUE_EINVAL, "%d: %s", what, error.text);
        cr_expect_null(q);
        cr_expect_gt(strlen(error.text), 0u);
        o.store->verbs->free(o.store);
    }
    lab_enqueue(&m.lab[0], "tea", .at_ns = 50);
    cr_expect_eq(memory_disk_jobs(m.disk), 1u);
    mall_close(&m);
}
