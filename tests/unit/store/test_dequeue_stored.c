/* Who takes a job from a stored queue, and how long he waits for its store. */
#include "lab/shop.h"
#include "lab/take.h"

/* On a clock of the kernel he waits no longer than he said, however long others may wait for the
 * store; and then it is as he is told. */
static void check(int64_t timeout_ns, bool leased)
{
    static const due_retry twice = { .kind = DUE_RETRY_FIXED, .attempts_max = 2 };
    struct lab_options with = { .kernel = true, .with.store_timeout_ns = DUE_S(1000) };
    struct shop s = shop_new(NULL, with);
    struct memory_limiter *gate = memory_limiter_new(s.disk);
    due_job job = { 0 };

    lab_enqueue(&s.lab, "tea", .more = EXTRA(.retry = &twice));
    cr_assert_eq(due_flush(s.lab.q, DUE_S(50)), 0);
    memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                       .times = MEMORY_ALWAYS,
                                                       .kind = MEMORY_BLOCK,
                                                       .limiter = gate });
    int rc = leased ? take_leased(s.lab.q, &job, DUE_S(100), timeout_ns)
                    : take_from(s.lab.q, NULL, 0, &job, timeout_ns);
    cr_expect(rc == DUE_EINDOUBT || rc == DUE_ESTORE || rc == DUE_ETIMEDOUT, "%s",
              due_error_name(rc));
    memory_limiter_open(gate);
    memory_store_forgive(s.store);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(50)), 0);
    while ((rc = take_from(s.lab.q, NULL, 0, &job, 0)) == DUE_EAGAIN)
        crew_sleep(DUE_MS(1)); /* it left for nobody, and comes back */
    cr_expect_eq(rc, 0, "%s", due_error_name(rc));
    due_job_done(&job);
    shop_close(&s);
    memory_limiter_free(gate);
}

Test(dequeue_stored, waits_for_its_store_no_longer_than_he_said, .timeout = 60)
{
    for (int leased = 0; leased < 2; leased++) {
        check(1, leased != 0);
        check(DUE_MS(20), leased != 0);
    }
}
