/* test_without_delay.c - a job without delay is due at the moment of its submission.
 *
 * Whoever has put it may put another at a time that is later, and has passed already.  Between the
 * two of them nothing may come that was due after the second, whoever held the lock meanwhile and
 * however long the first one lay in the inbox, or was on its way to the store.
 */
#include "queue/queue.h"
#include "lab/lab.h"
#include "lab/shop.h"

#define MANY  10000u
#define OTHER 100u /* jobs that become due while others are put */

/* Job number n, and the moments before and after the call that put it. */
struct submission {
    int64_t from_ns;
    int64_t to_ns;
};

/* Without delay; at_ns not 0: at that time. */
static struct submission put(struct lab *lab, uint32_t n, int64_t at_ns)
{
    struct submission s = { .from_ns = due_now(lab->q) };
    due_spec spec = { DUE_SPEC_INIT, .at_ns = at_ns, .data = &n, .len = sizeof n };
    int rc = due_enqueue(lab->q, &spec, 0, NULL);

    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    s.to_ns = due_now(lab->q);
    return at_ns != 0 ? (struct submission){ at_ns, at_ns } : s;
}

/* All @n of them come in the order of their numbers, and of their deadlines those named NOBODY. */
#define NOBODY UINT32_MAX
static void take_all(struct lab *lab, const struct submission *s, uint32_t n, uint32_t others)
{
    uint32_t next = 0;
    int64_t last = 0;

    for (uint32_t i = 0; i < n + others; i++) {
        uint32_t number;
        due_job job;
        int rc = due_dequeue(lab->q, &job, DUE_S(20));

        cr_assert_eq(rc, 0, "%s", due_error_name(rc));
        memcpy(&number, job.data, sizeof number);
        cr_assert_geq(job.deadline_ns, last, "%jd ns before the one before it",
                      (intmax_t)(last - job.deadline_ns));
        last = job.deadline_ns;
        if (number != NOBODY) {
            cr_assert_eq(number, next, "%u in place of %u", number, next);
            cr_assert(job.deadline_ns >= s[next].from_ns && job.deadline_ns <= s[next].to_ns,
                      "%u is due %jd ns after its call", next,
                      (intmax_t)(job.deadline_ns - s[next].to_ns));
            next++;
        }
        due_job_done(&job);
    }
    cr_assert_eq(next, n);
}

/* ---- On the clocks of the kernel ---- */

static int64_t wall_offset(void)
{
    struct timespec wall;

    clock_gettime(CLOCK_REALTIME, &wall);
    return (int64_t)wall.tv_sec * DUE_S(1) + wall.tv_nsec - crew_now_ns();
}

/* One without delay and one at the time that it is by then, so many times, while others become due.
 * @busy: somebody has the lock all the while. */
static void pairs(enum due_clock_kind clock, uint32_t n, bool busy)
{
    struct lab lab = lab_open(.kernel = true, .with.clock = clock, .with.reserve = n + OTHER);
    struct submission *s = calloc(n, sizeof *s);
    int64_t begin = due_now(lab.q);
    int64_t wall = wall_offset();

    cr_assert_not_null(s);
    for (uint32_t i = 1; i <= OTHER; i++)
        put(&lab, NOBODY, begin + DUE_US(10) + (int64_t)i * n * 2);
    if (busy)
        due__lock_acquire(&lab.q->lock);
    for (uint32_t i = 0; i < n; i++)
        s[i] = put(&lab, i, i % 2 == 1 ? due_now(lab.q) : 0);
    while (due_now(lab.q) < begin + DUE_US(10) + (int64_t)OTHER * n * 2)
        ;
    if (busy)
        due__lock_release(&lab.q->lock);
    if (clock != DUE_CLOCK_REALTIME ||
        llabs(wall_offset() - wall) < DUE_US(100)) /* it was not set */
        take_all(&lab, s, n, OTHER);
    free(s);
    lab_close(&lab);
}

static void pairs_of(uint32_t n)
{
    for (int clock = DUE_CLOCK_MONOTONIC; clock <= DUE_CLOCK_REALTIME; clock++) {
        pairs((enum due_clock_kind)clock, n, false);
        pairs((enum due_clock_kind)clock, n, true);
    }
}

LAB_TEST(without_delay, a_job_is_due_when_it_was_submitted_on_every_clock)
{
    pairs_of(10);
}

LAB_TEST(without_delay, ten_thousand_jobs_are_due_when_they_were_submitted_on_every_clock)
{
    pairs_of(MANY);
}

/* ---- On a clock turned by hand ---- */

/* Three by three: the first without delay, then the clock is turned to when the third is due, and
 * the second is put at a time between. */
static void by_hand(uint32_t rounds, bool busy)
{
    struct lab lab = lab_open(.start_ns = 100, .with.reserve = 3 * rounds);
    struct submission *s = calloc(3 * (size_t)rounds, sizeof *s);

    cr_assert_not_null(s);
    for (uint32_t i = 0; i < 3 * rounds; i += 3) {
        int64_t now = due_now(lab.q);

        s[i + 2] = put(&lab, i + 2, now + 7);
        if (busy)
            due__lock_acquire(&lab.q->lock);
        s[i] = put(&lab, i, 0);
        if (busy)
            due__lock_release(&lab.q->lock);
        lab_advance(&lab, 10);
        s[i + 1] = put(&lab, i + 1, now + 5);
    }
    take_all(&lab, s, 3 * rounds, 0);
    free(s);
    lab_close(&lab);
}

LAB_TEST(without_delay, a_job_is_due_when_it_was_submitted_by_a_manual_clock)
{
    by_hand(10, false);
    by_hand(10, true);
}

LAB_TEST(without_delay, ten_thousand_jobs_are_due_when_they_were_submitted_by_a_manual_clock)
{
    by_hand(MANY, true);
}

/* ---- On their way to a store ---- */

/* The same, and what is without delay lands when all others are due. */
static void by_store(uint32_t rounds)
{
    struct shop s = shop_make(.start_ns = 100, .with.confirm = DUE_CONFIRM_ASYNC);
    struct submission *moments = calloc(3 * (size_t)rounds, sizeof *moments);
    struct memory_limiter *limiter = memory_limiter_new(s.disk);

    cr_assert_not_null(moments);
    for (uint32_t i = 0; i < 3 * rounds; i += 3)
        moments[i + 2] = put(&s.lab, i + 2, 100 + (int64_t)i / 3 * 10 + 7);
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_COMMIT, .kind = MEMORY_BLOCK, .limiter = limiter });
    for (uint32_t i = 0; i < 3 * rounds; i += 3) {
        int64_t now = due_now(s.lab.q);

        moments[i] = put(&s.lab, i, 0);
        lab_advance(&s.lab, 10);
        moments[i + 1] = put(&s.lab, i + 1, now + 5);
    }
    cr_assert_eq(due_poll(s.lab.q, NULL), (int)rounds);
    memory_limiter_open(limiter);
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    take_all(&s.lab, moments, 3 * rounds, 0);
    free(moments);
    memory_limiter_free(limiter);
    shop_close(&s);
}

static void by_store_in_mode(uint32_t rounds)
{
    if (lab_proxies != DUE_PROXIES_NEVER) /* a store wants a thread of its own */
        by_store(rounds);
}

LAB_TEST(without_delay, a_job_is_due_when_it_was_submitted_however_late_it_is_stored)
{
    by_store_in_mode(10);
}

LAB_TEST(without_delay, ten_thousand_jobs_are_due_when_they_were_submitted_and_not_when_stored)
{
    by_store_in_mode(MANY);
}

Test(without_delay, a_time_of_zero_is_said_by_a_flag, .timeout = 10)
{
    struct lab lab = lab_open(.start_ns = 1000);
    due_info info;
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 0, .delay_ns = 0, .flags = DUE_SPEC_AT);

    cr_assert_eq(due_find(lab.q, id, &info), 0);
    cr_expect_eq(info.deadline_ns, 0);
    due_spec both = { DUE_SPEC_INIT, .flags = DUE_SPEC_AT, .delay_ns = 1 };
    due_spec unknown = { DUE_SPEC_INIT, .flags = 2 };
    cr_expect_eq(due_enqueue(lab.q, &both, 0, NULL), DUE_EINVAL);
    cr_expect_eq(due_enqueue(lab.q, &unknown, 0, NULL), DUE_EINVAL);
    cr_expect_eq(due_amend(lab.q, id, &unknown, DUE_SET_TIME), DUE_EINVAL);
    due_spec again = { DUE_SPEC_INIT, .flags = DUE_SPEC_AT };
    cr_expect_eq(due_amend(lab.q, id, &again, DUE_SET_TIME), 0);
    cr_assert_eq(due_find(lab.q, id, &info), 0);
    cr_expect_eq(info.deadline_ns, 0);
    lab_close(&lab);
}
