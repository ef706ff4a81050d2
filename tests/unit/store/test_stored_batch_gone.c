/* A batch of which some are cancelled while they wait, and those behind them are in doubt: whoever
 * has called is told the id of each that may be in, or he would put it in once more. */
#include "lab/shop.h"

#define JOBS 4u

static due_id ids[JOBS];

static int put_one(void *q)
{
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 10 };

    return due_enqueue(q, &spec, 0, NULL);
}

/* The first two have keys, by which they can be cancelled. */
static int put_all(void *q)
{
    due_spec specs[JOBS];

    memset(ids, 0, sizeof ids);
    for (unsigned i = 0; i < JOBS; i++)
        specs[i] = (due_spec){ DUE_SPEC_INIT, .at_ns = 10 };
    specs[0].more = EXTRA(.key = "a", .key_len = 1);
    specs[1].more = EXTRA(.key = "b", .key_len = 1);
    return due_enqueue_batch(q, specs, JOBS, 0, ids);
}

/* The next commit has landed, and nobody hears of it before the limiter is open. */
static void hold(struct shop *s, struct memory_limiter *limiter)
{
    memory_store_fault(s->store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                        .kind = MEMORY_BLOCK_AFTER,
                                                        .limiter = limiter });
}

static void expect_named(struct shop *s, unsigned gone)
{
    static const due_id none;

    for (unsigned i = 0; i < JOBS; i++)
        cr_expect_not(due_id_equal(ids[i], none), "%u has gone: %u has no id", gone, i);
    for (unsigned i = gone; i < JOBS; i++)
        cr_expect(memory_disk_find(s->disk, ids[i], NULL), "%u has gone: %u is not in", gone, i);
}

/* False: on a slow machine its time was up before it came to that. */
static bool try_with(unsigned gone)
{
    struct shop s = shop_make(.with.store_timeout_ns = DUE_MS(300));
    struct memory_limiter *first = memory_limiter_new(s.disk);
    struct memory_limiter *second = memory_limiter_new(s.disk);
    struct crew_thread one = { 0 };
    struct crew_thread all = { 0 };

    hold(&s, first);
    crew_go(&one, put_one, s.lab.q);
    memory_limiter_reached(first, 1);
    crew_go(&all, put_all, s.lab.q);
    crew_until_asleep(&all);
    for (unsigned i = 0; i < gone; i++)
        (void)!due_cancel_key(s.lab.q, i == 0 ? "a" : "b", 1, NULL);
    hold(&s, second);
    memory_limiter_open(first);
    int rc = crew_join(&one) == 0 ? crew_join(&all) : -crew_join(&all);
    bool proves = rc == DUE_EINDOUBT && lab_stats(&s.lab).cancelled == gone;
    memory_limiter_open(second);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    if (proves)
        expect_named(&s, gone);
    shop_close(&s);
    memory_limiter_free(first);
    memory_limiter_free(second);
    return proves;
}

Test(stored_batch_gone, has_the_ids_of_all_that_may_be_in, .timeout = 100)
{
    for (unsigned gone = 0; gone <= 2; gone++) {
        int tries = 0;

        while (!try_with(gone) && tries < 9)
            tries++;
        cr_expect_lt(tries, 9, "this proves nothing");
    }
}
