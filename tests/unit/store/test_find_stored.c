/* A job that was not read yet is looked for in the store: what a call hears that cannot have it. */
#include "lab/shop.h"
#include "os/atomic.h"
#include "queue/queue.h"
#include "store/sender.h"

#define JOBS 600 /* more than a page */

static due_id last;

/* The first page was read; for the second one the store is away, or (@limiter) silent. */
static struct shop half_read(struct memory_limiter **limiter, int64_t store_timeout_ns)
{
    struct shop s = shop_make(.start_ns = 5, .with.confirm = DUE_CONFIRM_ASYNC);
    struct memory_fault fault = {
        .verb = MEMORY_LOAD, .call = 2, .times = MEMORY_ALWAYS, .kind = MEMORY_AWAY
    };

    for (int i = 0; i < JOBS; i++)
        last = lab_enqueue(&s.lab, "tea", .at_ns = 10 + i);
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    shop_die(&s);
    s.store = memory_store_new(s.disk);
    if (limiter != NULL) {
        fault.times = 1;
        fault.kind = MEMORY_BLOCK;
        fault.limiter = *limiter = memory_limiter_new(s.disk);
    }
    memory_store_fault(s.store, fault);
    s.lab =
        lab_open(.start_ns = 5, .with.store = s.store, .with.store_timeout_ns = store_timeout_ns);
    memory_store_until(s.store, MEMORY_LOAD, 2);
    return s;
}

static int find(struct shop *s)
{
    due_info info;

    return due_find(s->lab.q, last, &info);
}

/* The store says so once. */
Test(find_stored, a_loss_that_is_told_then_is_mended, .timeout = 60)
{
    struct shop s = half_read(NULL, DUE_S(30));

    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_FIND, .kind = MEMORY_ANSWER, .answer = DUE_ELOST });
    cr_expect_neq(find(&s), 0);
    cr_expect(due__load_seq(&s.lab.q->commits->lacking), "it was not heard");
    cr_expect_eq(find(&s), 0, "it is there all the same");
    memory_store_forgive(s.store);
    while (due__load_seq(&s.lab.q->commits->lacking) || lab_stats(&s.lab).loading)
        crew_sleep(DUE_MS(1));
    cr_expect_eq(lab_stats(&s.lab).waiting, (uint64_t)JOBS);
    cr_expect_eq(memory_disk_jobs(s.disk), (size_t)JOBS);
    shop_close(&s);
}

/* Whose the jobs are not any more asks the store for none. */
Test(find_stored, who_owns_the_jobs_no_more_does_not_look, .timeout = 60)
{
    struct shop s = half_read(NULL, DUE_S(30));
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3 };

    memory_disk_fence(s.disk);
    cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), DUE_EFENCED);
    uint64_t calls = memory_store_calls(s.store, MEMORY_FIND);
    cr_expect_eq(find(&s), DUE_EFENCED);
    cr_expect_eq(memory_store_calls(s.store, MEMORY_FIND), calls);
    shop_close(&s);
}

/* Errors of the store are the call's; of what is not there the queue says so. */
Test(find_stored, what_the_store_answers_is_the_answer, .timeout = 60)
{
    static const struct {
        int answer, rc;
    } cases[] = { { DUE_ENOENT, DUE_ENOENT },
                  { DUE_EACCES, DUE_EACCES },
                  { DUE_ECORRUPT, DUE_ECORRUPT },
                  { DUE_EDURABILITY, DUE_EDURABILITY } };
    struct shop s = half_read(NULL, DUE_S(30));

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_FIND,
                                                           .kind = MEMORY_ANSWER,
                                                           .answer = cases[i].answer });
        int rc = find(&s);
        cr_expect_eq(rc, cases[i].rc, "%s", due_error_name(rc));
    }
    uint64_t calls = memory_store_calls(s.store, MEMORY_FIND);
    cr_expect_eq(find(&s), 0);
    cr_expect_eq(find(&s), 0, "it is known from then on");
    cr_expect_eq(memory_store_calls(s.store, MEMORY_FIND), calls + 1);
    memory_store_forgive(s.store);
    shop_close(&s);
}

/* While somebody else has the store's ear the proxy looks, as soon as it can; for who has no more
 * time it does not. */
Test(find_stored, it_is_looked_for_when_the_store_can_be_had, .timeout = 60)
{
    struct memory_limiter *limiter;
    struct shop s = half_read(&limiter, DUE_MS(20));

    cr_expect_neq(find(&s), 0);
    cr_expect_eq(memory_store_calls(s.store, MEMORY_FIND), 0u);
    memory_limiter_open(limiter);
    shop_wait_loaded(&s);
    cr_expect_eq(memory_store_calls(s.store, MEMORY_FIND), 0u, "nobody asks any more");
    cr_expect_eq(find(&s), 0);
    cr_expect_eq(memory_store_calls(s.store, MEMORY_FIND), 0u, "it was read");
    shop_close(&s);
    memory_limiter_free(limiter);
}
