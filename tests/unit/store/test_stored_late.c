/* How late a stored job is, which has left the store before it is handed out: by the clock of that
 * moment, whichever way it is taken, alone and among many. */
#include "lab/shop.h"
#include "lab/take.h"

#define MANY 80 /* more than are handed out at once */

static const due_retry twice = { .kind = DUE_RETRY_FIXED, .attempts_max = 2 };

enum way { FOR_GOOD, LEASED, LEASED_AND_COUNTED, LEFT, AGAIN, WAYS };

static int take(struct shop *s, enum way way, due_job *jobs, size_t n)
{
    if (way == LEASED || way == LEASED_AND_COUNTED)
        return take_leased_some(s->lab.q, NULL, 0, jobs, n, DUE_S(5), DUE_S(20));
    if (way == LEFT) { /* the first call leaves them, and a later one has them */
        int rc = take_some(s->lab.q, NULL, 0, jobs, n, 0);

        if (rc != DUE_EAGAIN)
            return rc;
    }
    return take_some(s->lab.q, NULL, 0, jobs, n, DUE_S(20));
}

static void expect_late(enum way way, size_t n)
{
    struct shop s = shop_make(.start_ns = 5);
    due_job jobs[MANY];
    size_t had = 0;

    for (size_t i = 0; i < n; i++)
        lab_enqueue(&s.lab, "tea", .at_ns = 1000 + (int64_t)i,
                    .more = EXTRA(.retry = way == LEASED_AND_COUNTED ? &twice : NULL,
                                  .every_ns = way == AGAIN ? 100000 : 0));
    lab_turn_to(&s.lab, 7000);
    while (had < n) {
        int rc = take(&s, way, jobs, n - had);

        cr_assert_gt(rc, 0, "way %d: %s", (int)way, due_error_name(rc));
        for (int i = 0; i < rc; i++) {
            cr_expect_eq(jobs[i].lateness_ns, 7000 - jobs[i].deadline_ns, "way %d: %jd", (int)way,
                         (intmax_t)jobs[i].lateness_ns);
            cr_expect_eq(jobs[i].deadline_ns, 1000 + (int64_t)had, "way %d", (int)way);
            had++;
            if (way == LEASED || way == LEASED_AND_COUNTED)
                cr_expect_eq(due_ack(&jobs[i]), 0);
            else
                due_job_done(&jobs[i]);
        }
    }
    shop_close(&s);
}

Test(stored_late, a_job_is_as_late_as_the_clock_says, .timeout = 60)
{
    for (int way = 0; way < WAYS; way++) {
        expect_late((enum way)way, 1);
        expect_late((enum way)way, 2);
        expect_late((enum way)way, MANY);
    }
}
