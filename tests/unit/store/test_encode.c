/* What a store is told of each step of a job: which kind of change, and no more than it must. */
#include "lab/shop.h"
#include "lab/take.h"

#define LEASE 100

/* The number of changes that have landed. */
static size_t landed(const struct shop *s)
{
    struct memory_entry entry;
    size_t n = 0;

    while (memory_disk_entry(s->disk, n, &entry))
        n++;
    return n;
}

/* Since there were @before one more has landed, of this kind. */
static void expect_kind(struct shop *s, size_t before, enum due_change_kind kind, const char *of)
{
    struct memory_entry entry = { .kind = 0 };

    cr_assert_eq(due_flush(s->lab.q, DUE_S(30)), 0);
    cr_expect_eq(landed(s), before + 1, "%s: %zu", of, landed(s) - before);
    cr_assert(memory_disk_entry(s->disk, before, &entry));
    cr_expect_eq(entry.kind, kind, "%s: %d", of, (int)entry.kind);
}

#define TELLS(s, kind, call)                      \
    do {                                          \
        size_t before_ = landed(s);               \
        call;                                     \
        expect_kind((s), before_, (kind), #call); \
    } while (0)

static due_job reserve(struct shop *s)
{
    due_job job = { 0 };

    cr_assert_eq(take_leased(s->lab.q, &job, LEASE, DUE_S(20)), 0);
    return job;
}

static const due_retry twice = { .kind = DUE_RETRY_FIXED, .attempts_max = 5, .delay_ns = 0 };

/* A job that waits, is moved, tried, given back and done with. */
Test(encode, of_a_job_that_lives_is_moved_or_gone, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 10);
    due_queue *q = s.lab.q;
    due_job job;
    due_id id;

    TELLS(&s, DUE_CHANGE_PUT, id = lab_enqueue(&s.lab, "tea", .at_ns = 50));
    TELLS(&s, DUE_CHANGE_MOVE, cr_assert_eq(due_reschedule(q, id, 90), 0));
    TELLS(&s, DUE_CHANGE_MOVE, cr_assert_eq(due_promote(q, id), 0));
    TELLS(&s, DUE_CHANGE_PUT, cr_assert_eq(due_update(q, id, "jam", 3), 0));
    job = reserve(&s);
    TELLS(&s, DUE_CHANGE_MOVE, cr_assert_eq(due_nack(&job, 0), 0));
    job = reserve(&s);
    TELLS(&s, DUE_CHANGE_MOVE, cr_assert_eq(due_snooze(&job, 0), 0));
    job = reserve(&s);
    TELLS(&s, DUE_CHANGE_DROP, cr_assert_eq(due_ack(&job), 0));
    TELLS(&s, DUE_CHANGE_PUT, id = lab_enqueue(&s.lab, "tea", .at_ns = 50));
    TELLS(&s, DUE_CHANGE_DROP, cr_assert_eq(due_cancel(q, id, NULL), 0));
    TELLS(&s, DUE_CHANGE_PUT, lab_enqueue(&s.lab, "tea", .at_ns = 1));
    TELLS(&s, DUE_CHANGE_DROP, (void)lab_dequeue(&s.lab));
    TELLS(&s, DUE_CHANGE_PUT, lab_enqueue(&s.lab, "tea", .more = EXTRA(.retry = &twice)));
    TELLS(&s, DUE_CHANGE_MOVE, job = reserve(&s));
    TELLS(&s, DUE_CHANGE_MOVE, cr_assert_eq(due_nack(&job, 0), 0));
    TELLS(&s, DUE_CHANGE_MOVE, job = reserve(&s));
    TELLS(&s, DUE_CHANGE_DROP, cr_assert_eq(due_ack(&job), 0));
    shop_close(&s);
}

/* With @more it dies and comes back, and comes back by its key. */
static void dies_and_comes(const due_extra *more, enum due_change_kind back)
{
    struct shop s = shop_make(.start_ns = 10);
    due_queue *q = s.lab.q;
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3, .more = more };
    due_job job;
    due_id id;

    TELLS(&s, DUE_CHANGE_PUT, cr_assert_eq(due_enqueue(q, &spec, 0, &id), 0));
    for (int i = 0; i < 2; i++) {
        job = reserve(&s);
        TELLS(&s, DUE_CHANGE_BURY, cr_assert_eq(due_bury(&job, "it was cold"), 0));
        TELLS(&s, back, cr_assert_eq(due_kick(q, id), 0));
        if (back == DUE_CHANGE_PUT)
            back = DUE_CHANGE_MOVE; /* it has no limit of its time any more */
    }
    job = reserve(&s);
    TELLS(&s, DUE_CHANGE_DROP, cr_assert_eq(due_ack(&job), 0));
    shop_close(&s);
}

/* Whole if that takes something from it, as its limit of time; else it is moved. */
Test(encode, of_a_dead_job_that_comes_back_is_whole_only_if_its_time_was_limited, .timeout = 60)
{
    dies_and_comes(NULL, DUE_CHANGE_MOVE);
    dies_and_comes(EXTRA(.headers = "cold", .headers_len = 4), DUE_CHANGE_MOVE);
    dies_and_comes(EXTRA(.ttl_ns = DUE_S(100)), DUE_CHANGE_PUT);
    dies_and_comes(EXTRA(.ttl_ns = 1000), DUE_CHANGE_PUT);
    dies_and_comes(EXTRA(.expires_ns = DUE_S(100)), DUE_CHANGE_PUT);
}

/* It comes again, and has another time then. */
Test(encode, of_a_job_that_repeats_is_moved_round_by_round, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 10);
    due_job job;

    TELLS(&s, DUE_CHANGE_PUT, lab_enqueue(&s.lab, "tea", .more = EXTRA(.every_ns = 100)));
    for (int round = 1; round < 4; round++) {
        job = reserve(&s);
        TELLS(&s, DUE_CHANGE_MOVE, cr_assert_eq(due_ack(&job), 0));
        lab_advance(&s.lab, 100);
        TELLS(&s, DUE_CHANGE_MOVE, (void)lab_dequeue(&s.lab));
        lab_advance(&s.lab, 100);
    }
    TELLS(&s, DUE_CHANGE_DROP, cr_assert_eq(due_clear(s.lab.q, DUE_ALL_TOPICS, NULL), 0));
    shop_close(&s);
}

/* ---- What is said of a load, and of a flush that does not wait ---- */

static atomic_uint logged;

static void on_log(void *ctx, enum due_log_level level, const char *text)
{
    (void)ctx;
    (void)level;
    (void)text;
    atomic_fetch_add(&logged, 1);
}

static void no_discard(void *ctx, const due_job *job)
{
    (void)ctx;
    (void)job;
}

/* What goes well is no news. */
Test(proxy, says_nothing_of_a_load_that_comes_to_its_end, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 10);

    for (int i = 0; i < 5; i++)
        lab_enqueue(&s.lab, "tea", .at_ns = 50);
    shop_crash(&s, (struct lab_options){
                       .start_ns = 10, .with.on_log = on_log, .with.on_discard = no_discard });
    cr_expect_eq(lab_stats(&s.lab).waiting, 5u);
    lab_enqueue(&s.lab, "jam", .at_ns = 50);
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    cr_expect_eq(atomic_load(&logged), 0u);
    shop_close(&s);
}

Test(wait, of_a_flush_that_does_not_wait_answers_at_once, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 10, .with.confirm = DUE_CONFIRM_ASYNC);
    struct memory_limiter *limiter = memory_limiter_new(s.disk);

    cr_expect_eq(due_flush(s.lab.q, 0), 0, "nothing is under way");
    cr_expect_eq(due_flush(s.lab.q, -1), DUE_EINVAL);
    memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                       .times = MEMORY_ALWAYS,
                                                       .kind = MEMORY_BLOCK,
                                                       .limiter = limiter });
    lab_enqueue(&s.lab, "tea", .at_ns = 50);
    cr_expect_eq(due_flush(s.lab.q, 0), DUE_ETIMEDOUT);
    cr_expect_eq(due_flush(s.lab.q, -1), DUE_EINVAL);
    memory_limiter_open(limiter);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    cr_expect_eq(due_flush(s.lab.q, 0), 0);
    memory_limiter_free(limiter);
    shop_close(&s);
}
