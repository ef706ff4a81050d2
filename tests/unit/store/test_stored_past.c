/* What a job had behind it when its program ended: whatever the store shows of that is known again,
 * alone or together. */
#include "lab/shop.h"

#include "job/lease.h"
#include "os/atomic.h"
#include "queue/job_records.h"
#include "queue/queue.h"
#include "store/sender.h"

static due_record shown; /* by the store, at its opening, and nothing else */

static int show_it(due_store *store, int rewind, size_t max, due_store_visit *visit, void *ctx,
                   int64_t until_ns)
{
    (void)store, (void)rewind, (void)max, (void)until_ns;
    return visit(ctx, &shown);
}

static struct shop opened_on(due_record record, struct due_store_verbs *verbs)
{
    struct shop s = { .disk = memory_disk_new(NULL) };

    shown = record;
    s.store = memory_store_new(s.disk);
    *verbs = *s.store->verbs;
    verbs->load = show_it;
    s.store->verbs = verbs;
    s.lab = lab_open(.start_ns = 5, .with.store = s.store);
    shop_wait_loaded(&s);
    return s;
}

static void expect_past(due_record record, bool past)
{
    struct due_store_verbs verbs;
    struct shop s = opened_on(record, &verbs);
    due_queue *q = s.lab.q;
    uint32_t number, generation;

    cr_assert(due__index_find(&q->commits->index, record.id, &number, &generation));
    bool known = due__records_has(&q->leases, number) &&
                 (due__load_seq(&due__job_at(&q->slab, number)->word) & DUE__HELD) != 0;
    cr_expect_eq(known, past, "%u attempts, %u failures, until %jd, at %jd, cause %d",
                 record.attempts, record.failures, (intmax_t)record.until_ns,
                 (intmax_t)record.deadline_ns, (int)record.cause);
    if (known) {
        const struct due__lease *l = due__lease_at(q, number);

        cr_expect_eq(due__load_seq(&l->attempts), record.attempts);
        cr_expect_eq(due__load_seq(&l->failures), record.failures);
    }
    struct due_stats now = lab_stats(&s.lab);
    cr_expect_eq(now.waiting, (uint64_t)(record.cause == 0));
    cr_expect_eq(now.dead, (uint64_t)(record.cause != 0));
    lab_close(&s.lab);
    memory_disk_free(s.disk);
}

Test(stored_past, of_a_job_is_known_by_each_of_its_signs, .timeout = 60)
{
    for (unsigned signs = 0; signs < 32; signs++) {
        due_record r = { .id.byte = { 0, 1, 2, 3 }, .topic = "", .data = "tea", .len = 3 };

        r.attempts = (signs & 1) ? 1 : 0;
        r.failures = (signs & 2) ? 1 : 0;
        r.until_ns = (signs & 4) ? 11 : 10;
        r.deadline_ns = (signs & 8) ? 11 : 10;
        if (signs & 16) {
            r.cause = DUE_CAUSE_BURIED;
            r.died_ns = 4;
        }
        expect_past(r, r.attempts > 0 || r.failures > 0 || r.until_ns != r.deadline_ns ||
                           r.cause != 0);
    }
}
