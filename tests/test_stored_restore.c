/* What an opening says while it reads what was stored. */
#include "shop.h"

#define JOBS 1300u /* more than are shown between two batches */

struct progress {
    atomic_uint calls;
    atomic_ullong restored; /* as said last */
    atomic_uint finished;   /* times that it was said */
    atomic_bool wrong;      /* it fell, or something was said behind the end */
};

static struct progress progress;

static void note(void *ctx, uint64_t restored, int finished)
{
    (void)ctx;
    if (restored < atomic_load(&progress.restored) || atomic_load(&progress.finished) > 0)
        atomic_store(&progress.wrong, true);
    atomic_store(&progress.restored, restored);
    atomic_fetch_add(&progress.calls, 1);
    atomic_fetch_add(&progress.finished, finished != 0);
}

Test(stored_restore, its_progress_is_told_and_once_that_it_has_finished, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 5, .with.confirm = DUE_CONFIRM_ASYNC);

    for (unsigned i = 0; i < JOBS; i++)
        lab_enqueue(&s.lab, "tea", .at_ns = 1000 + (int64_t)i);
    cr_assert_eq(due_flush(s.lab.q, DUE_S(20)), 0);
    memset(&progress, 0, sizeof progress);
    shop_crash(&s, (struct lab_options){ .start_ns = 5, .with.on_restore = note });
    while (atomic_load(&progress.finished) == 0)
        crew_sleep(DUE_MS(1));
    cr_expect_eq(lab_stats(&s.lab).restored, (uint64_t)JOBS);
    cr_expect_eq(atomic_load(&progress.restored), (uint64_t)JOBS);
    cr_expect_geq(atomic_load(&progress.calls), 3u, "it was told at the end only");
    shop_close(&s);
    cr_expect_eq(atomic_load(&progress.finished), 1u);
    cr_expect_not(atomic_load(&progress.wrong));
}

Test(stored_restore, of_nothing_is_finished_too, .timeout = 60)
{
    memset(&progress, 0, sizeof progress);
    struct shop s = shop_make(.start_ns = 5, .with.on_restore = note);

    while (atomic_load(&progress.finished) == 0)
        crew_sleep(DUE_MS(1));
    cr_expect_eq(atomic_load(&progress.restored), 0u);
    shop_close(&s);
    cr_expect_eq(atomic_load(&progress.finished), 1u);
}
