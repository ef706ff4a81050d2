/* Limits and groups of a stored queue: what the store refuses changes no pass, what lands does, and
 * after a restart only who is to be tried again has one. */
#include "lab/limiter_lab.h"
#include "lab/shop.h"
#include "lab/take.h"

static void gated_open(struct shop *s)
{
    struct lab_options with = { .start_ns = 100 };

    with.with.store_timeout_ns = DUE_S(5);
    with.with.retry = (due_retry){ .kind = DUE_RETRY_FIXED, .attempts_max = 3 };
    shop_open(s, with);
    cr_assert_eq(due_topic_limit(s->lab.q, 0, 2), 0);
}

static struct shop gated_new(void)
{
    struct shop s = { .disk = memory_disk_new(NULL) };

    gated_open(&s);
    return s;
}

static void gated_close(struct shop *s)
{
    limiter_lost_nothing(&s->lab);
    shop_close(s);
}

/* The next @times calls of a batch are refused. */
static void refuse(struct shop *s, uint64_t times)
{
    memory_store_fault(s->store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                        .times = times,
                                                        .kind = MEMORY_ANSWER,
                                                        .answer = DUE_EACCES });
}

static uint64_t passed(struct shop *s)
{
    limiter_right(&s->lab);
    return lab_stats(&s->lab).passed;
}

Test(stored_limiter, gets_passes_back_when_an_end_has_landed, .timeout = 60)
{
    struct shop s = gated_new();
    due_id ids[6];
    due_job job;

    for (int i = 0; i < 6; i++)
        ids[i] = lab_enqueue(&s.lab, "x", .at_ns = 10 + i, .more = EXTRA(OF("g")));
    job = limiter_reserve(&s.lab);
    limiter_nothing(&s.lab);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(passed(&s), 1u);
    cr_expect_eq(due_cancel(s.lab.q, ids[1], NULL), 0);
    cr_expect_eq(passed(&s), 1u);
    cr_expect_eq(due_reschedule(s.lab.q, ids[2], 500), 0);
    cr_expect_eq(passed(&s), 1u);
    job = limiter_reserve(&s.lab);
    cr_expect(due_id_equal(job.id, ids[3]));
    cr_expect_eq(due_cancel(s.lab.q, ids[3], NULL), DUE_EBUSY);
    cr_expect_eq(due_nack(&job, 0), 0);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(5)), 0);
    cr_expect_eq(passed(&s), 1u);
    cr_expect_eq(due_cancel(s.lab.q, ids[4], &job), 0);
    cr_expect_eq(passed(&s), 1u);
    due_job next = limiter_reserve(&s.lab); /* while the bytes of the one before it are lent */
    cr_expect(due_id_equal(next.id, ids[5]));
    due_job_done(&job);
    cr_expect_eq(due_ack(&next), 0);
    cr_expect_eq(passed(&s), 0u);
    cr_expect_eq(due_clear(s.lab.q, DUE_ALL_TOPICS, NULL), 0);
    gated_close(&s);
}

Test(stored_limiter, keeps_the_pass_of_a_job_whose_end_was_refused, .timeout = 60)
{
    struct shop s = gated_new();
    due_id a = lab_enqueue(&s.lab, "a", .at_ns = 10, .more = EXTRA(OF("g")));
    due_job job;

    lab_enqueue(&s.lab, "b", .at_ns = 11, .more = EXTRA(OF("g")));
    refuse(&s, 1);
    cr_expect_eq(take_leased(s.lab.q, &job, LEASE, DUE_S(20)), DUE_EACCES, "its attempt");
    cr_expect_eq(passed(&s), 1u);
    job = limiter_reserve(&s.lab);
    cr_expect(due_id_equal(job.id, a));
    refuse(&s, 3);
    cr_expect_eq(due_ack(&job), DUE_EACCES);
    cr_expect_eq(due_nack(&job, 0), DUE_EACCES);
    cr_expect_eq(due_bury(&job, NULL), DUE_EACCES);
    cr_expect_eq(passed(&s), 1u);
    limiter_nothing(&s.lab);
    cr_expect_eq(due_nack(&job, 0), 0);
    refuse(&s, 2);
    cr_expect_eq(due_cancel(s.lab.q, a, NULL), DUE_EACCES);
    cr_expect_eq(due_reschedule(s.lab.q, a, 500), DUE_EACCES);
    cr_expect_eq(passed(&s), 1u);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "a b");
    gated_close(&s);
}

Test(stored_limiter, passes_begin_anew_after_a_crash, .timeout = 60)
{
    struct shop s = gated_new();
    due_job jobs[4];

    for (int i = 0; i < 4; i++)
        lab_enqueue(&s.lab, "x", .at_ns = 10 + i);
    cr_assert_eq(take_leased_some(s.lab.q, NULL, 0, jobs, 4, LEASE, DUE_S(20)), 2);
    due_job_done(&jobs[0]);
    due_job_done(&jobs[1]);
    shop_die(&s);
    gated_open(&s);
    cr_expect_eq(lab_stats(&s.lab).waiting, 4u);
    cr_expect_eq(passed(&s), 2u, "of those that are ready");
    cr_assert_eq(take_leased_some(s.lab.q, NULL, 0, jobs, 4, LEASE, DUE_S(20)), 2);
    for (int i = 0; i < 2; i++)
        cr_expect_eq(due_ack(&jobs[i]), 0);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "x x");
    gated_close(&s);
}

Test(stored_limiter, a_group_is_the_same_after_a_crash, .timeout = 60)
{
    struct shop s = gated_new();
    due_job job;

    lab_enqueue(&s.lab, "a", .at_ns = 10, .more = EXTRA(OF("g")));
    lab_enqueue(&s.lab, "b", .at_ns = 11, .more = EXTRA(OF("g")));
    lab_enqueue(&s.lab, "h", .at_ns = 12, .more = EXTRA(OF("h")));
    job = limiter_reserve(&s.lab);
    due_job_done(&job);
    shop_die(&s);
    gated_open(&s);
    job = limiter_reserve(&s.lab);
    cr_expect_eq(memcmp(job.data, "a", 1), 0);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "h");
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "b");
    cr_expect_eq(passed(&s), 0u);
    gated_close(&s);
}

Test(stored_limiter, a_failed_job_is_not_overtaken_after_a_crash, .timeout = 60)
{
    struct shop s = gated_new();
    due_job job;

    lab_enqueue(&s.lab, "a", .at_ns = 10, .more = EXTRA(OF("g")));
    lab_enqueue(&s.lab, "b", .at_ns = 11, .more = EXTRA(OF("g")));
    job = limiter_reserve(&s.lab);
    cr_expect_eq(due_nack(&job, 500), 0);
    shop_die(&s);
    gated_open(&s);
    cr_expect_eq(passed(&s), 1u);
    limiter_nothing(&s.lab);
    lab_turn_to(&s.lab, 600);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "a b");
    gated_close(&s);
}

Test(stored_limiter, a_failed_job_that_was_moved_holds_up_nobody_after_a_crash, .timeout = 60)
{
    struct shop s = gated_new();
    due_job job;

    due_id a = lab_enqueue(&s.lab, "a", .at_ns = 10, .more = EXTRA(OF("g")));
    lab_enqueue(&s.lab, "b", .at_ns = 11, .more = EXTRA(OF("g")));
    job = limiter_reserve(&s.lab);
    cr_expect_eq(due_nack(&job, 500), 0);
    cr_expect_eq(due_reschedule(s.lab.q, a, 9000), 0);
    shop_die(&s);
    gated_open(&s);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "b");
    lab_turn_to(&s.lab, 9000);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "a");
    gated_close(&s);
}

static const struct due_store_verbs *memory_verbs;

struct shown {
    due_store_visit *visit;
    void *ctx;
};

static int show_in_one_group(void *ctx, const due_record *record)
{
    const struct shown *to = ctx;
    due_record of_g = *record;

    of_g.group = "g";
    of_g.group_len = 1;
    return to->visit(to->ctx, &of_g);
}

static int load_in_one_group(due_store *store, int rewind, size_t max, due_store_visit *visit,
                             void *ctx, int64_t until_ns)
{
    struct shown to = { .visit = visit, .ctx = ctx };

    return memory_verbs->load(store, rewind, max, show_in_one_group, &to, until_ns);
}

/* What a store has of two lives, if it lost the end of the first one. */
Test(stored_limiter, of_two_failed_jobs_of_a_group_one_runs_at_a_time_after_a_crash, .timeout = 60)
{
    struct shop s = gated_new();
    struct due_store_verbs verbs = *s.store->verbs;
    due_job job;

    memory_verbs = s.store->verbs;
    verbs.load = load_in_one_group;
    lab_enqueue(&s.lab, "a", .at_ns = 10, .more = EXTRA(OF("a")));
    lab_enqueue(&s.lab, "b", .at_ns = 11, .more = EXTRA(OF("b")));
    lab_enqueue(&s.lab, "c", .at_ns = 12, .more = EXTRA(OF("b")));
    for (int i = 0; i < 2; i++) {
        job = limiter_reserve(&s.lab);
        cr_expect_eq(due_nack(&job, 500 + i), 0);
    }
    shop_die(&s);
    shop_begin(&s, (struct lab_options){ .start_ns = 100 }, &verbs);
    shop_wait_loaded(&s);
    cr_expect_eq(passed(&s), 1u);
    limiter_nothing(&s.lab);
    lab_turn_to(&s.lab, 1000);
    for (int i = 0; i < 3; i++) {
        job = limiter_reserve(&s.lab);
        cr_expect_eq(memcmp(job.data, &"acb"[i], 1), 0, "%d: %.1s", i, (const char *)job.data);
        limiter_nothing(&s.lab);
        cr_expect_eq(due_ack(&job), 0);
    }
    gated_close(&s);
}

#define A_PAGE 600 /* jobs, and more than are read at a time */

static struct {
    atomic_bool stands;
    atomic_bool goes_on;
} reader;

/* Stands still after the first page. */
static void stand(void *ctx, uint64_t restored, int finished)
{
    (void)ctx;
    (void)restored;
    (void)finished;
    atomic_store(&reader.stands, true);
    while (!atomic_load(&reader.goes_on))
        crew_sleep(DUE_MS(1));
}

Test(stored_limiter, nobody_overtakes_a_failed_job_that_is_read_later, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 100);
    due_job job;

    lab_enqueue(&s.lab, "a", .at_ns = 10, .more = EXTRA(OF("g")));
    lab_enqueue(&s.lab, "b", .at_ns = 11, .more = EXTRA(OF("g")));
    lab_enqueue(&s.lab, "c", .at_ns = 12);
    for (int i = 0; i < A_PAGE; i++)
        lab_enqueue(&s.lab, "x", .at_ns = 500, .topic = due_topic(s.lab.q, "x"));
    job = limiter_reserve(&s.lab);
    cr_expect_eq(due_nack(&job, 1000), 0);
    shop_die(&s);
    shop_begin(&s, (struct lab_options){ .start_ns = 100, .with.on_restore = stand }, NULL);
    while (!atomic_load(&reader.stands))
        crew_sleep(DUE_MS(1));
    job = limiter_reserve(&s.lab);
    cr_expect_eq(memcmp(job.data, "c", 1), 0, "the others go on");
    limiter_nothing(&s.lab);
    atomic_store(&reader.goes_on, true);
    shop_wait_loaded(&s);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(due_clear(s.lab.q, due_topic(s.lab.q, "x"), NULL), 0);
    limiter_nothing(&s.lab);
    lab_turn_to(&s.lab, 1100);
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "a b");
    gated_close(&s);
}
