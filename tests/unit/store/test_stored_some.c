/* A call for several stored jobs, one batch of which the store refuses: the others are done and
 * counted, the caller is told, and those of that batch are what they were. */
#include "lab/shop.h"
#include "lab/take.h"

enum { JOBS = 6, IN_BATCH = 2, BATCHES = JOBS / IN_BATCH };

#define LEASE DUE_S(100)

static const struct memory_disk_options small_batches = { .batch_changes = IN_BATCH };

/* Of the batches that come, the one of this number (from 1) is not taken. */
static void refuse(struct shop *s, unsigned which)
{
    memory_store_fault(s->store, (struct memory_fault){
                                     .verb = MEMORY_COMMIT,
                                     .call = memory_store_calls(s->store, MEMORY_COMMIT) + which,
                                     .times = 1,
                                     .kind = MEMORY_ANSWER,
                                     .answer = DUE_EACCES });
}

struct some {
    struct shop s;
    due_id id[JOBS];
    due_job job[JOBS];
};

enum are { WAITING, RESERVED, DEAD };

static void begin(struct some *it, enum are are)
{
    struct lab *lab;

    it->s = shop_new(&small_batches, (struct lab_options){ .start_ns = 10 });
    lab = &it->s.lab;
    for (int i = 0; i < JOBS; i++)
        it->id[i] = lab_enqueue(lab, "tea", .delay_ns = 0);
    for (int i = 0; i < JOBS && are != WAITING; i++)
        cr_assert_eq(lab_reserve(lab, &it->job[i], LEASE), 0);
    for (int i = 0; i < JOBS && are == DEAD; i++)
        cr_assert_eq(due_bury(&it->job[i], NULL), 0);
    cr_assert_eq(due_flush(lab->q, DUE_S(30)), 0);
}

static void end(struct some *it)
{
    memory_store_forgive(it->s.store);
    shop_close(&it->s);
}

Test(stored_some, of_those_cleared_are_left, .timeout = 60)
{
    for (unsigned which = 1; which <= BATCHES; which++) {
        struct some it;
        uint64_t n = 0;

        begin(&it, WAITING);
        refuse(&it.s, which);
        cr_expect_eq(due_clear(it.s.lab.q, DUE_ALL_TOPICS, &n), DUE_EACCES, "batch %u", which);
        cr_expect_eq(n, JOBS - IN_BATCH, "batch %u: %ju", which, (uintmax_t)n);
        cr_expect_eq(lab_stats(&it.s.lab).waiting, IN_BATCH);
        cr_expect_eq(due_clear(it.s.lab.q, DUE_ALL_TOPICS, &n), 0);
        cr_expect_eq(n, IN_BATCH);
        end(&it);
    }
}

Test(stored_some, of_the_dead_that_are_cleared_are_left, .timeout = 60)
{
    for (unsigned which = 1; which <= BATCHES; which++) {
        struct some it;
        uint64_t n = 0;

        begin(&it, DEAD);
        refuse(&it.s, which);
        cr_expect_eq(due_clear_dead(it.s.lab.q, DUE_ALL_TOPICS, &n), DUE_EACCES, "batch %u", which);
        cr_expect_eq(n, JOBS - IN_BATCH, "batch %u: %ju", which, (uintmax_t)n);
        cr_expect_eq(lab_stats(&it.s.lab).dead, IN_BATCH);
        cr_expect_eq(due_clear_dead(it.s.lab.q, DUE_ALL_TOPICS, &n), 0);
        cr_expect_eq(n, IN_BATCH);
        end(&it);
    }
}

Test(stored_some, of_the_dead_that_are_kicked_stay_dead, .timeout = 60)
{
    for (unsigned which = 1; which <= BATCHES; which++) {
        struct some it;
        uint64_t n = 0;

        begin(&it, DEAD);
        refuse(&it.s, which);
        cr_expect_eq(due_kick_all(it.s.lab.q, DUE_ALL_TOPICS, &n), DUE_EACCES, "batch %u", which);
        cr_expect_eq(n, JOBS - IN_BATCH, "batch %u: %ju", which, (uintmax_t)n);
        cr_expect_eq(lab_stats(&it.s.lab).dead, IN_BATCH);
        cr_expect_eq(due_kick_all(it.s.lab.q, DUE_ALL_TOPICS, &n), 0);
        cr_expect_eq(n, IN_BATCH);
        cr_expect_eq(lab_stats(&it.s.lab).waiting, JOBS);
        end(&it);
    }
}

/* Each has an answer of its own. */
static void expect_answers(const int *results, unsigned which)
{
    unsigned first = IN_BATCH * (which - 1);

    for (unsigned i = 0; i < JOBS; i++)
        cr_expect_eq(results[i], i >= first && i < first + IN_BATCH ? DUE_EACCES : 0,
                     "job %u of batch %u: %s", i, which, due_error_name(results[i]));
}

Test(stored_some, of_those_cancelled_wait_as_before, .timeout = 60)
{
    for (unsigned which = 1; which <= BATCHES; which++) {
        struct some it;
        int results[JOBS];

        begin(&it, WAITING);
        refuse(&it.s, which);
        cr_expect_eq(due_cancel_batch(it.s.lab.q, it.id, JOBS, results), JOBS - IN_BATCH);
        expect_answers(results, which);
        cr_expect_eq(lab_stats(&it.s.lab).waiting, IN_BATCH);
        cr_expect_str_eq(lab_dequeue_all(&it.s.lab), "tea tea");
        end(&it);
    }
}

Test(stored_some, of_those_acked_are_leased_as_before, .timeout = 60)
{
    for (unsigned which = 1; which <= BATCHES; which++) {
        struct some it;
        int results[JOBS];

        begin(&it, RESERVED);
        refuse(&it.s, which);
        cr_expect_eq(due_ack_batch(it.job, JOBS, results), JOBS - IN_BATCH);
        expect_answers(results, which);
        cr_expect_eq(lab_stats(&it.s.lab).leased, IN_BATCH);
        cr_expect_eq(due_ack_batch(it.job, JOBS, results), IN_BATCH);
        end(&it);
    }
}
