/* One queue for many processes, in the order of priority. */
#include <string.h>

#include "lab/mall.h"
#include "lab/memory_disk.h"

/* Processes of one queue; all say the order, or the first alone. */
static struct mall ranked_by(size_t n, bool all, size_t prefetch_max)
{
    struct mall m = mall_make(0);

    for (size_t i = 0; i < n; i++) {
        struct lab_options with = { .with.prefetch_max = prefetch_max };

        if (all || i == 0)
            with.with.order = DUE_ORDER_PRIORITY;
        mall_join(&m, with);
    }
    return m;
}

static struct mall ranked(size_t n)
{
    return ranked_by(n, true, 1);
}

/* The next that process @i gets has these bytes; it is held. */
static due_job holds(struct mall *m, size_t i, const char *text)
{
    due_job job = { 0 };

    cr_assert_eq(mall_reserve(m, i, &job, 1000), 0);
    cr_assert_eq(job.len, strlen(text));
    cr_expect(job.len == 0 || memcmp(job.data, text, job.len) == 0, "%.*s instead of %s",
              (int)job.len, (const char *)job.data, text);
    return job;
}

static void gets(struct mall *m, size_t i, const char *text)
{
    due_job job = holds(m, i, text);

    cr_expect_eq(due_ack(&job), 0);
}

MALL_TEST(share_order, any_process_gets_the_highest_of_what_is_due)
{
    struct mall m = ranked(3);

    lab_enqueue(&m.lab[0], "low", .at_ns = 1, .priority = 1);
    lab_enqueue(&m.lab[1], "high", .at_ns = 5, .priority = 9);
    lab_enqueue(&m.lab[2], "middle", .at_ns = 3, .priority = 5);
    lab_enqueue(&m.lab[2], "far", .at_ns = 100, .priority = 255);
    mall_turn_to(&m, 5);
    gets(&m, 1, "high");
    lab_enqueue(&m.lab[1], "newcomer", .delay_ns = 0, .priority = 6);
    gets(&m, 0, "newcomer");
    gets(&m, 2, "middle");
    gets(&m, 1, "low");
    mall_turn_to(&m, 100);
    gets(&m, 0, "far");
    mall_close(&m);
}

/* What a process has claimed ahead it hands out in that order, too: also one that named none. */
MALL_TEST(share_order, is_the_queues_and_not_that_of_an_opening)
{
    struct mall m = ranked_by(2, false, 100);
    due_job job;

    for (int i = 0; i < 40; i++)
        lab_enqueue(&m.lab[0], NULL, .delay_ns = 0, .priority = i * 7 % 40);
    for (int i = 39; i >= 0; i--) {
        cr_assert_eq(mall_take(&m, 1, &job), 0);
        cr_expect_eq(job.priority, i);
        due_job_done(&job);
    }
    mall_close(&m);
}

MALL_TEST(share_order, holds_among_ten_thousand_of_every_priority)
{
    enum { MANY = 10000, AT_ONCE = 250 };
    struct mall m = ranked_by(2, true, 1000);
    static due_spec specs[AT_ONCE];
    due_job jobs[64];
    int last = 255;

    for (int i = 0; i < MANY; i += AT_ONCE) {
        for (int k = 0; k < AT_ONCE; k++)
            specs[k] = (due_spec){ DUE_SPEC_INIT, .at_ns = 1 + (i + k) % 97,
                                   .priority = (i + k) * 31 % 256 };
        cr_assert_eq(due_enqueue_batch(m.lab[0].q, specs, AT_ONCE, DUE_FOREVER, NULL), AT_ONCE);
    }
    mall_turn_to(&m, 200);
    for (int n = 0; n < MANY;) {
        int got = take_some(m.lab[1].q, NULL, 0, jobs, 64, DUE_FOREVER);

        cr_assert_gt(got, 0);
        for (int i = 0; i < got; i++, n++) {
            cr_assert_leq(jobs[i].priority, last);
            last = jobs[i].priority;
            due_job_done(&jobs[i]);
        }
    }
    mall_close(&m);
}

/* What was claimed ahead is not overtaken; who takes none ahead has the highest. */
MALL_TEST(share_order, passes_what_waits_in_the_store_and_not_what_was_claimed_ahead)
{
    struct mall m = ranked(1);
    due_job job;
    bool met = false;

    mall_join(&m, (struct lab_options){ .with.prefetch_max = 200 });
    for (int i = 0; i < 100; i++)
        lab_enqueue(&m.lab[0], NULL, .delay_ns = 0, .priority = 1);
    for (int i = 0; i < 40; i++) { /* it learns that it takes many */
        cr_assert_eq(mall_take(&m, 1, &job), 0);
        due_job_done(&job);
    }
    lab_enqueue(&m.lab[0], NULL, .delay_ns = 0, .priority = 9);
    gets(&m, 0, "");
    for (int i = 40; i < 100 && !met; i++) {
        cr_assert_eq(mall_take(&m, 1, &job), 0);
        met = job.priority == 9;
        due_job_done(&job);
    }
    cr_expect(!met, "it was had by who claims nothing ahead");
    mall_close(&m);
}

/* ---- A job's life ---------------------------------------------------------------------------- */

MALL_TEST(share_order, holds_for_what_failed_or_was_moved)
{
    struct mall m = ranked(2);
    due_job job;

    due_id late = lab_enqueue(&m.lab[0], "late", .at_ns = 1000000, .priority = 9);
    due_id away = lab_enqueue(&m.lab[0], "away", .at_ns = 0, .priority = 8);
    lab_enqueue(&m.lab[0], "tried", .at_ns = 2, .priority = 7);
    lab_enqueue(&m.lab[0], "low", .at_ns = 1, .priority = 1);
    mall_turn_to(&m, 10);
    cr_expect_eq(due_reschedule(m.lab[1].q, away, 2000000), 0);
    job = holds(&m, 1, "tried");
    cr_expect_eq(due_nack(&job, 0), 0);
    cr_expect_eq(due_promote(m.lab[1].q, late), 0);
    gets(&m, 0, "late");
    job = holds(&m, 0, "tried");
    cr_expect_eq(due_nack(&job, 5), 0);
    gets(&m, 1, "low");
    lab_enqueue(&m.lab[0], "low", .at_ns = 1, .priority = 1);
    mall_turn_to(&m, 15);
    gets(&m, 0, "tried");
    cr_expect_eq(due_cancel(m.lab[0].q, away, NULL), 0);
    gets(&m, 1, "low");
    mall_close(&m);
}

/* Whose process has died: it waits where its priority is. */
MALL_TEST(share_order, holds_for_what_was_left_by_a_process_that_died)
{
    struct mall m = ranked(2);
    due_job job;

    lab_enqueue(&m.lab[0], "left", .delay_ns = 0, .priority = 4);
    cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
    mall_die(&m, 1);
    lab_enqueue(&m.lab[0], "high", .delay_ns = 0, .priority = 5);
    lab_enqueue(&m.lab[0], "low", .delay_ns = 0, .priority = 3);
    mall_turn_to(&m, DUE_S(60));
    gets(&m, 0, "high");
    gets(&m, 0, "left");
    gets(&m, 0, "low");
    due_job_done(&job);
    mall_close(&m);
}

MALL_TEST(share_order, goes_with_limits_pauses_and_groups)
{
    struct mall m = ranked(2);
    due_job job;

    cr_expect_eq(due_topic_limit(m.lab[0].q, 0, 1), 0);
    lab_enqueue(&m.lab[0], "low", .at_ns = 1, .priority = 1);
    lab_enqueue(&m.lab[0], "high", .at_ns = 2, .priority = 2);
    mall_turn_to(&m, 5);
    job = holds(&m, 0, "high");
    lab_enqueue(&m.lab[1], "higher", .at_ns = 5, .priority = 3);
    cr_expect_eq(due_ack(&job), 0);
    gets(&m, 1, "higher");
    cr_expect_eq(due_pause(m.lab[0].q, 0), 0);
    for (int i = 0; i < 3; i++) { /* of a group the first in time comes first */
        static const char *const names[] = { "first", "second", "third" };
        due_extra more = { DUE_EXTRA_INIT, .group = "g", .group_len = 1 };

        lab_enqueue(&m.lab[1], names[i], .at_ns = 1 + i, .priority = 10 + i, .more = &more);
    }
    cr_expect_eq(due_topic_limit(m.lab[1].q, 0, 0), 0);
    cr_expect_eq(due_resume(m.lab[1].q, 0), 0);
    job = holds(&m, 0, "first");
    gets(&m, 1, "low");
    cr_expect_eq(due_ack(&job), 0);
    gets(&m, 1, "second");
    gets(&m, 0, "third");
    mall_close(&m);
}

MALL_TEST(share_order, goes_with_a_capacity)
{
    struct mall m = mall_make(0);
    due_spec spec = { DUE_SPEC_INIT, .priority = 200 };

    for (int i = 0; i < 2; i++)
        mall_join(&m, (struct lab_options){ .with.order = DUE_ORDER_PRIORITY, .with.capacity = 3 });
    for (int i = 0; i < 3; i++)
        lab_enqueue(&m.lab[0], "low", .delay_ns = 0, .priority = i);
    cr_expect_eq(due_enqueue(m.lab[1].q, &spec, 0, NULL), DUE_EAGAIN);
    gets(&m, 0, "low");
    spec.data = "high";
    spec.len = 4;
    cr_expect_eq(due_enqueue(m.lab[1].q, &spec, DUE_FOREVER, NULL), 0);
    gets(&m, 0, "high");
    mall_close(&m);
}

/* ---- Openings -------------------------------------------------------------------------------- */

static int open_as(struct mall *m, enum due_order order, due_error *error)
{
    due_options o = { DUE_OPTIONS_INIT, .store = memory_store_new(m->disk), .share = DUE_SHARED,
                      .manual = m->clock, .order = order };
    due_queue *q;
    int rc = due_open(&q, &o, error);

    if (rc != 0)
        o.store->verbs->free(o.store);
    return rc;
}

MALL_TEST(share_order, of_a_queue_that_is_shared_does_not_change)
{
    struct mall m = mall_make(1);
    due_error error = { .text = "" };

    cr_expect_eq(open_as(&m, DUE_ORDER_PRIORITY, &error), DUE_EINVAL);
    cr_expect(error.text[0] != '\0' && error.hint[0] != '\0');
    lab_enqueue(&m.lab[0], "early", .at_ns = 1, .priority = 1);
    lab_enqueue(&m.lab[0], "late", .at_ns = 2, .priority = 2);
    mall_turn_to(&m, 5);
    gets(&m, 0, "early");
    gets(&m, 0, "late");
    mall_close(&m);
}

/* As of an older version: what it does not know of it says nothing of. */
static int join_without(due_store *s, const struct due_store_open *how, struct due_store_info *info,
                        due_error *error)
{
    int rc = memory_shared_verbs.join(s, how, info, error);

    info->by_priority = 0;
    return rc;
}

static unsigned left; /* processes */

static int leave_counted(due_store *s, int64_t until_ns)
{
    left++;
    return memory_shared_verbs.leave(s, until_ns);
}

Test(share_order, needs_a_store_that_knows_it, .timeout = 20)
{
    struct mall m = mall_make(0);
    due_options o = { DUE_OPTIONS_INIT, .store = memory_store_new(m.disk), .share = DUE_SHARED,
                      .manual = m.clock, .order = DUE_ORDER_PRIORITY };
    struct due_shared_verbs shared = memory_shared_verbs;
    struct due_store_verbs verbs = *o.store->verbs;
    struct flaky memory;
    due_error error = { .text = "" };
    due_queue *q;

    flaky_init(&memory, FLAKY_NEVER);
    o.allocator = &memory.hooks;
    shared.join = join_without;
    shared.leave = leave_counted;
    verbs.shared = &shared;
    o.store->verbs = &verbs;
    cr_expect_eq(due_open(&q, &o, &error), DUE_ENOTSUP);
    cr_expect(error.text[0] != '\0' && error.hint[0] != '\0');
    cr_expect_eq(left, 1u, "it does not stay there as one who shares");
    cr_expect_eq(atomic_load(&memory.live), 0u);
    verbs.free(o.store);
    mall_close(&m);
}
