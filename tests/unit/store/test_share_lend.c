/* One queue for many processes: a job that is not here is cancelled by who wants its bytes. */
#include <stdio.h>

#include "lab/mall.h"
#include "store/share.h"

/* He has these bytes, and is done with them. */
static void expect_lent(struct lab *lab, due_job *job, due_id id, const char *text)
{
    cr_expect(due_id_equal(job->id, id));
    cr_assert_eq(job->len, strlen(text));
    if (job->len > 0)
        cr_expect_arr_eq(job->data, text, job->len);
    cr_expect_eq(job->token, 0u);
    cr_expect_eq(lab_stats(lab).lent, 1u);
    due_job_done(job);
    cr_expect_eq(lab_stats(lab).lent, 0u);
}

static due_id put_dead(struct mall *m, const char *text)
{
    due_job job;

    due_id id = lab_enqueue(&m->lab[0], text, .delay_ns = 0);
    cr_assert_eq(mall_reserve(m, 0, &job, 100), 0);
    cr_assert_eq(due_bury(&job, "cold"), 0);
    return id;
}

MALL_TEST(share_lend, whoever_knows_its_id_gets_what_a_job_is)
{
    struct mall m = mall_make(2);
    due_extra headers = { DUE_EXTRA_INIT, .headers = "hot", .headers_len = 3 };
    char much[5000];
    due_job job;

    memset(much, 'm', sizeof much);
    much[sizeof much - 1] = '\0';
    const char *texts[] = { "tea", "", "longer than what a job can have in its own place", much };
    struct due_stats before = lab_stats(&m.lab[1]);
    for (int i = 0; i < 8; i++) {
        due_id id =
            lab_enqueue(&m.lab[0], texts[i / 2], .at_ns = 50, .priority = i,
                        .topic = lab_topic(&m.lab[0], "hot"), .more = i % 2 ? &headers : NULL);
        cr_assert_eq(due_cancel(m.lab[1].q, id, &job), 0);
        cr_expect_eq(job.deadline_ns, 50);
        cr_expect_eq(job.lateness_ns, 0);
        cr_expect_eq(job.priority, i);
        cr_expect_str_eq(due_topic_name(m.lab[1].q, job.topic), "hot");
        cr_expect_eq(job.attempts, 0u);
        cr_expect_eq(job.headers_len, i % 2 ? 3u : 0u);
        if (i % 2)
            cr_expect_arr_eq(job.headers, "hot", 3);
        expect_lent(&m.lab[1], &job, id, texts[i / 2]);
        cr_expect_eq(due_cancel(m.lab[1].q, id, &job), DUE_ENOENT);
        cr_expect_null(job.queue);
        cr_expect_eq(due_cancel(m.lab[0].q, id, &job), DUE_ENOENT);
    }
    struct due_stats after = lab_stats(&m.lab[1]);
    cr_expect_eq(after.enqueued, before.enqueued, "it was never here");
    cr_expect_eq(after.cancelled, before.cancelled);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

MALL_TEST(share_lend, a_job_that_has_failed_shows_its_counts_and_its_deadline)
{
    struct mall m = mall_make(2);
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], "tea", .at_ns = 5);
    mall_turn_to(&m, 7);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
        cr_assert_eq(due_nack(&job, i * 1000), 0);
    }
    cr_assert_eq(due_cancel(m.lab[1].q, id, &job), 0);
    cr_expect_eq(job.attempts, 2u);
    cr_expect_eq(job.failures, 2u);
    cr_expect_eq(job.deadline_ns, 5);
    expect_lent(&m.lab[1], &job, id, "tea");
    mall_close(&m);
}

MALL_TEST(share_lend, a_dead_job_is_lent_too)
{
    struct mall m = mall_make(2);
    due_job job;

    due_id id = put_dead(&m, "tea");
    due_id other = put_dead(&m, "cake");
    cr_assert_eq(due_cancel(m.lab[1].q, id, &job), 0);
    cr_expect_eq(job.attempts, 1u);
    expect_lent(&m.lab[1], &job, id, "tea");
    cr_expect_eq(due_kick(m.lab[1].q, id), DUE_ENOENT);
    cr_expect_eq(due_kick(m.lab[1].q, other), 0);
    cr_expect_eq(memory_disk_jobs(m.disk), 1u);
    mall_close(&m);
}

/* By whoever; and when he has given it back it can be had. */
MALL_TEST(share_lend, a_job_that_another_process_has_is_not_lent)
{
    struct mall m = mall_make(2);
    due_job held;
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 0, &held, 100), 0);
    cr_expect_eq(due_cancel(m.lab[1].q, id, &job), DUE_EBUSY);
    cr_expect_null(job.queue);
    cr_expect_eq(lab_stats(&m.lab[1]).lent, 0u);
    cr_assert_eq(due_nack(&held, 50), 0);
    cr_expect_eq(due_cancel(m.lab[1].q, id, &job), DUE_ENOENT, "it went with its holder's answer");
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

/* It was claimed for somebody here who did not wait; or its lease here is over, and it is there. */
MALL_TEST(share_lend, a_job_that_is_or_was_here_is_lent_too)
{
    struct mall m = mall_make(2);
    due_job held;
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_expect_eq(due_dequeue(m.lab[1].q, &job, 0), DUE_EAGAIN);
    while (lab_stats(&m.lab[1]).ready == 0)
        crew_sleep(DUE_US(100));
    cr_expect_eq(due_cancel(m.lab[0].q, id, &job), DUE_EBUSY);
    cr_assert_eq(due_cancel(m.lab[1].q, id, &job), 0);
    expect_lent(&m.lab[1], &job, id, "tea");
    id = lab_enqueue(&m.lab[0], "cake", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 1, &held, 100), 0);
    mall_turn_to(&m, 200);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    cr_assert_eq(due_nack(&job, 50), 0);
    cr_assert_eq(due_cancel(m.lab[1].q, id, &job), 0);
    cr_expect_eq(due_ack(&held), DUE_ESTALE);
    expect_lent(&m.lab[1], &job, id, "cake");
    mall_close(&m);
}

MALL_TEST(share_lend, a_job_is_lent_by_its_key_and_the_key_is_free)
{
    struct mall m = mall_make(2);
    due_id id;
    due_job job;

    for (int i = 0; i < 2; i++) {
        cr_assert_eq(lab_put_as(&m.lab[0], DUE_KEY_REFUSE, "tea", &id, .at_ns = 50), 0);
        cr_assert_eq(due_cancel_key(m.lab[1].q, "k", 1, &job), 0);
        expect_lent(&m.lab[1], &job, id, "tea");
        cr_expect_eq(due_cancel_key(m.lab[1].q, "k", 1, &job), DUE_ENOENT);
    }
    mall_close(&m);
}

/* ---- Between the look and the drop ---- */

struct lending {
    struct lab *lab;
    due_id id;
    bool bytes; /* are wanted */
    bool by_key;
    due_job job;
};

static int lend_main(void *arg)
{
    struct lending *l = arg;
    due_job *job = l->bytes ? &l->job : NULL;

    return l->by_key ? due_cancel_key(l->lab->q, "k", 1, job) : due_cancel(l->lab->q, l->id, job);
}

/* Process 1 cancels, and stands before its exchange number @nth. */
static struct memory_limiter *stand(struct mall *m, struct lending *l, unsigned nth,
                                    struct crew_thread *thread)
{
    struct memory_limiter *gate = memory_limiter_new(m->disk);

    l->lab = &m->lab[1];
    memory_store_fault(m->store[1], (struct memory_fault){
                                        .verb = MEMORY_PUT,
                                        .call = memory_store_calls(m->store[1], MEMORY_PUT) + nth,
                                        .kind = MEMORY_BLOCK,
                                        .limiter = gate });
    crew_go(thread, lend_main, l);
    memory_limiter_reached(gate, 1);
    return gate;
}

/* It goes on: its answer. */
static int go_on(struct memory_limiter *gate, struct crew_thread *thread)
{
    memory_limiter_open(gate);
    int rc = crew_join(thread);
    memory_limiter_free(gate);
    return rc;
}

MALL_TEST(share_lend, what_is_lent_is_the_job_as_it_went)
{
    struct mall m = mall_make(2);
    struct crew_thread thread;
    due_extra headers = { DUE_EXTRA_INIT, .headers = "hot", .headers_len = 3 };
    due_spec spec = { DUE_SPEC_INIT, .more = &headers };
    due_job job;

    for (int what = 0; what < 5; what++) {
        struct lending l = { .bytes = true };
        due_id id = l.id = lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);

        struct memory_limiter *gate = stand(&m, &l, 1, &thread);
        if (what == 0)
            cr_expect_eq(due_update(m.lab[0].q, id, "a cake that is longer than its place", 36), 0);
        if (what == 1)
            cr_expect_eq(due_amend(m.lab[0].q, id, &spec, DUE_SET_HEADERS), 0);
        if (what == 2)
            cr_expect_eq(due_reschedule(m.lab[0].q, id, 77), 0);
        if (what > 2)
            cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
        if (what == 3)
            cr_expect_eq(due_nack(&job, 0), 0);
        if (what == 4)
            cr_expect_eq(due_bury(&job, "cold"), 0);
        cr_assert_eq(go_on(gate, &thread), 0, "%d", what);
        cr_expect_eq(l.job.headers_len, what == 1 ? 3u : 0u);
        cr_expect_eq(l.job.deadline_ns, what == 2 ? 77 : 0);
        cr_expect_eq(l.job.attempts, what > 2 ? 1u : 0u);
        cr_expect_eq(l.job.failures, what == 3 ? 1u : 0u);
        expect_lent(&m.lab[1], &l.job, id,
                    what == 0 ? "a cake that is longer than its place" : "tea");
    }
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

MALL_TEST(share_lend, of_two_at_once_one_gets_it)
{
    struct mall m = mall_make(2);
    struct crew_thread thread;
    due_job job;

    for (int what = 0; what < 3; what++) {
        struct lending l = { .bytes = true };
        due_id id = l.id = lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);

        struct memory_limiter *gate = stand(&m, &l, 1, &thread);
        if (what == 0) {
            cr_assert_eq(due_cancel(m.lab[0].q, id, &job), 0);
            expect_lent(&m.lab[0], &job, id, "tea");
        } else if (what == 1) {
            cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
        } else {
            cr_assert_eq(mall_take(&m, 0, &job), 0);
            due_job_done(&job);
        }
        cr_expect_eq(go_on(gate, &thread), what == 1 ? DUE_EBUSY : DUE_ENOENT);
        cr_expect_null(l.job.queue);
        cr_expect_eq(lab_stats(&m.lab[1]).lent, 0u);
        if (what == 1)
            cr_expect_eq(due_ack(&job), 0);
    }
    mall_close(&m);
}

/* The job that had the key was done, or lost it, and another has it.  Nobody looks for it where it
 * is not his any more. */
MALL_TEST(share_lend, who_names_the_key_gets_the_job_that_has_it)
{
    struct mall m = mall_make(2);
    struct crew_thread thread;
    due_id id;
    due_job job;

    for (int i = 0; i < 4; i++) {
        bool taken_over = i % 2 == 1;
        struct lending l = { .bytes = i < 2, .by_key = true };

        cr_assert_eq(lab_put_as(&m.lab[0], DUE_KEY_REFUSE, "tea", &id, .delay_ns = 0), 0);
        struct memory_limiter *gate = stand(&m, &l, 1, &thread);
        cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
        if (!taken_over)
            cr_expect_eq(due_ack(&job), 0);
        cr_assert_geq(lab_put_as(&m.lab[0], DUE_KEY_REPLACE, "cake", &id, .at_ns = 50), 0);
        if (taken_over)
            cr_expect_eq(due_nack(&job, 50), 0);
        uint64_t before = memory_store_calls(m.store[1], MEMORY_PUT);
        cr_assert_eq(go_on(gate, &thread), 0);
        cr_expect_lt(memory_store_calls(m.store[1], MEMORY_PUT) - before, 5u);
        if (l.bytes)
            expect_lent(&m.lab[1], &l.job, id, "cake");
    }
    cr_expect_eq(memory_disk_jobs(m.disk), 2u, "those that lost their keys");
    mall_close(&m);
}

/* It was dead, and was kicked: whether the bytes are wanted or not, it does not come any more. */
MALL_TEST(share_lend, a_job_that_is_kicked_meanwhile_is_cancelled)
{
    struct mall m = mall_make(2);
    struct crew_thread thread;

    for (int bytes = 0; bytes < 2; bytes++) {
        struct lending l = { .bytes = bytes };
        due_id id = l.id = put_dead(&m, "tea");

        struct memory_limiter *gate = stand(&m, &l, bytes ? 1 : 2, &thread);
        cr_expect_eq(due_kick(m.lab[0].q, id), 0);
        cr_expect_eq(go_on(gate, &thread), 0);
        cr_expect_eq(memory_disk_jobs(m.disk), 0u);
        if (bytes)
            expect_lent(&m.lab[1], &l.job, id, "tea");
    }
    mall_close(&m);
}

/* ---- Answers that get lost, and too little memory ---- */

/* It is gone in the end, and what was copied of it, too. */
MALL_TEST(share_lend, a_drop_in_doubt_is_seen_through_when_its_caller_has_gone)
{
    struct mall m = mall_make(1);
    size_t hasty = mall_join(&m, (struct lab_options){ .with.store_timeout_ns = DUE_MS(5) });
    due_job job;

    for (int lands = 0; lands < 2; lands++) {
        due_id id = lab_enqueue(&m.lab[0], "a job with more bytes than its own place", .at_ns = 50);
        memory_store_fault(
            m.store[hasty],
            (struct memory_fault){ .verb = MEMORY_PUT,
                                   .times = 3,
                                   .kind = lands ? MEMORY_DOUBT_LANDED : MEMORY_DOUBT_NOT });
        int rc = due_cancel(m.lab[hasty].q, id, &job);
        cr_expect_eq(rc, DUE_EINDOUBT, "%s", due_error_name(rc));
        cr_expect_null(job.queue);
        cr_expect_eq(lab_stats(&m.lab[hasty]).lent, 0u);
        while (memory_disk_jobs(m.disk) > 0)
            crew_sleep(DUE_US(100));
        cr_expect_eq(due_cancel(m.lab[0].q, id, &job), DUE_ENOENT);
    }
    mall_close(&m);
}

/* The store is not reached: nothing is said of the job, and it stays. */
MALL_TEST(share_lend, a_cancel_that_does_not_reach_the_store_in_time_has_changed_nothing)
{
    static const enum memory_verb verbs[] = { MEMORY_FIND, MEMORY_PUT };
    struct mall m = mall_make(1);
    size_t i = mall_join(&m, (struct lab_options){ .with.store_timeout_ns = DUE_MS(50) });
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], "tea", .at_ns = 50);
    for (int v = 0; v < 2; v++) {
        memory_store_fault(
            m.store[i],
            (struct memory_fault){ .verb = verbs[v], .times = MEMORY_ALWAYS, .kind = MEMORY_AWAY });
        cr_expect_eq(due_cancel(m.lab[i].q, id, &job), DUE_ETIMEDOUT);
        cr_expect_null(job.queue);
        memory_store_forgive(m.store[i]);
    }
    cr_assert_eq(due_cancel(m.lab[i].q, id, &job), 0);
    expect_lent(&m.lab[i], &job, id, "tea");
    mall_close(&m);
}

/* However little it is, and whatever it is for which there is none. */
MALL_TEST(share_lend, without_memory_the_job_stays)
{
    struct mall m = mall_make(2);
    struct flaky *memory = &m.lab[1].state->memory;
    due_extra headers = { DUE_EXTRA_INIT, .headers = "hot", .headers_len = 3 };
    unsigned refused = 0;
    due_job job;
    int rc = 0;

    due_id id = lab_enqueue(&m.lab[0], "a job with more bytes than its own place", .at_ns = 50,
                            .more = &headers);
    for (unsigned tries = 0; tries < 100; tries++) {
        memory->fail_on = false;
        flaky_fail_in(memory, refused);
        rc = due_cancel(m.lab[1].q, id, &job);
        memory->fail_at = FLAKY_NEVER;
        if (rc == 0)
            break;
        cr_expect_eq(rc, DUE_ENOMEM, "%s", due_error_name(rc));
        cr_expect_eq(memory_disk_jobs(m.disk), 1u);
        refused++;
    }
    cr_assert_eq(rc, 0);
    cr_expect_gt(refused, 2u);
    expect_lent(&m.lab[1], &job, id, "a job with more bytes than its own place");
    mall_close(&m);
}

/* ---- Many ---- */

/* The places in which they lie are those of jobs that were here before, and are again. */
MALL_TEST(share_lend, ten_thousand_are_lent_and_each_has_its_bytes)
{
    enum { N = 10000, AT_ONCE = 100 };
    struct mall m = mall_make(2);
    due_job jobs[AT_ONCE];
    due_id ids[AT_ONCE];
    char text[64];
    due_job job;

    for (int i = 0; i < N; i += AT_ONCE) {
        for (int k = 0; k < AT_ONCE; k++) {
            snprintf(text, sizeof text, "%*d", 1 + k % 60, i + k);
            ids[k] = lab_enqueue(&m.lab[0], text, .at_ns = i + 1);
        }
        if (i % 1000 == 0) { /* of whose place one is that of what follows */
            lab_enqueue(&m.lab[0], "x", .delay_ns = 0);
            cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
            cr_assert_eq(due_ack(&job), 0);
        }
        for (int k = 0; k < AT_ONCE; k++)
            cr_assert_eq(due_cancel(m.lab[1].q, ids[k], &jobs[k]), 0);
        cr_expect_eq(lab_stats(&m.lab[1]).lent, (uint64_t)AT_ONCE);
        for (int k = 0; k < AT_ONCE; k++) {
            snprintf(text, sizeof text, "%*d", 1 + k % 60, i + k);
            cr_assert(due_id_equal(jobs[k].id, ids[k]));
            cr_assert_eq(jobs[k].len, strlen(text));
            cr_assert_arr_eq(jobs[k].data, text, jobs[k].len);
        }
        due_jobs_done(jobs, AT_ONCE);
        cr_expect_eq(lab_stats(&m.lab[1]).lent, 0u);
    }
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

/* Its place was that of a job that was claimed here; who looks for those that nobody takes does not
 * take it for one. */
MALL_TEST(share_lend, a_job_that_is_lent_does_not_lie_untaken)
{
    struct mall m = mall_make(2);
    due_job held;
    due_job job;

    lab_enqueue(&m.lab[0], "x", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 1, &held, 100), 0);
    cr_assert_eq(due_ack(&held), 0);
    due_id id = lab_enqueue(&m.lab[0], "tea", .at_ns = 50);
    cr_assert_eq(due_cancel(m.lab[1].q, id, &job), 0);
    lab_enqueue(&m.lab[0], "y", .delay_ns = 0); /* which has it looked for them */
    cr_assert_eq(mall_reserve(&m, 1, &held, 100), 0);
    cr_assert_eq(due_ack(&held), 0);
    for (int n = 0; n < 3; n++) { /* the first time it may be in the midst of it */
        uint64_t before = memory_store_calls(m.store[1], MEMORY_LISTEN);

        due__proxy_call(m.lab[1].q);
        memory_store_until(m.store[1], MEMORY_LISTEN, before + 1);
    }
    struct due__sharing *sh = m.lab[1].q->commits->share;
    due__lock_acquire(&m.lab[1].q->commits->key);
    cr_expect_eq(sh->tidy_ns, DUE_FOREVER);
    due__lock_release(&m.lab[1].q->commits->key);
    expect_lent(&m.lab[1], &job, id, "tea");
    mall_close(&m);
}

/* A queue that drains, and one that closes, does not wait for what is lent, and keeps its bytes. */
MALL_TEST(share_lend, what_is_lent_outlives_the_end_of_its_queue)
{
    struct mall m = mall_make(2);
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], "a job with more bytes than its own place", .at_ns = 50);
    cr_assert_eq(due_cancel(m.lab[1].q, id, &job), 0);
    cr_expect_eq(due_close(m.lab[1].q, DUE_CLOSE_DRAIN, DUE_FOREVER), 0);
    expect_lent(&m.lab[1], &job, id, "a job with more bytes than its own place");
    mall_close(&m);
}
