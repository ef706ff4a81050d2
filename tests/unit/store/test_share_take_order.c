/* One queue for many processes: what one take brings is in order, whatever has to be done in the
 * store before each of its jobs is handed out.  A plain one leaves it, one that repeats gets the
 * time of its next round there, of one whose attempts are limited this one is counted, and a claim
 * that ends too soon is made longer. */
#include "api/ack.h"
#include "lab/mall.h"

#define MOST     90u /* of which more are made longer than are together */
#define AGAIN_NS DUE_S(1000000)

static const due_retry limited = { .kind = DUE_RETRY_FIXED, .attempts_max = 3, .delay_ns = 1 };

/* How it is taken. */
struct way {
    unsigned n;         /* jobs */
    int64_t lease_ns;   /* 0: for good */
    int64_t timeout_ns; /* 0: it asks again */
};

/* Of all four kinds, put in out of order.  They lie in this process, held each for a long time or
 * a short one. */
static void fill(struct mall *m, unsigned n)
{
    static due_job jobs[MOST];

    for (unsigned i = 0; i < n; i++) {
        unsigned at = (i * 7 + 3) % n; /* no number of jobs here has a 7 in it */

        lab_enqueue(&m->lab[0], "tea", .at_ns = 1000 + (int64_t)at,
                    .more = EXTRA(.every_ns = at % 3 == 1 ? AGAIN_NS : 0,
                                  .retry = at % 5 % 2 == 1 ? &limited : NULL));
    }
    mall_turn_to(m, DUE_MS(1));
    for (unsigned i = 0; i < n; i++)
        cr_assert_eq(mall_reserve(m, 0, &jobs[i], i % 4 == 0 ? DUE_S(500) : DUE_S(1)), 0);
    for (unsigned i = n; i-- > 0;)
        cr_assert_eq(due__lease_release(&jobs[i]), 0);
}

/* Up to so many. */
static unsigned take_next(struct mall *m, const struct way *w, unsigned max, int64_t *last_ns)
{
    static due_job jobs[MOST];
    int got;

    do
        got = take_leased_some(m->lab[0].q, NULL, 0, jobs, max, w->lease_ns, w->timeout_ns);
    while (got == DUE_EAGAIN);
    cr_assert_gt(got, 0, "%s", due_error_name(got));
    if (w->timeout_ns == 0) /* who does not wait gets others in between, when he comes again */
        *last_ns = 0;
    for (int i = 0; i < got; i++) {
        cr_assert_gt(jobs[i].deadline_ns, *last_ns, "%d of %d, %s", i, got,
                     w->lease_ns > 0 ? "leased" : "for good");
        *last_ns = jobs[i].deadline_ns;
    }
    if (w->lease_ns > 0)
        cr_expect_eq(due_ack_batch(jobs, (size_t)got, NULL), got);
    for (int i = 0; i < got && w->lease_ns == 0; i++)
        due_job_done(&jobs[i]);
    return (unsigned)got;
}

static void check(unsigned n, int kind)
{
    struct mall m = mall_make(1);
    const struct way w = { .n = n,
                           .lease_ns = kind & 1 ? DUE_S(400) : 0,
                           .timeout_ns = kind & 2 ? 0 : DUE_FOREVER };
    unsigned max = kind & 4 ? 7 : n;
    int64_t last_ns = 0;

    fill(&m, n);
    for (unsigned got = 0; got < n;)
        got += take_next(&m, &w, n - got < max ? n - got : max, &last_ns);
    mall_close(&m);
}

MALL_TEST(share_take_order, of_whatever_few_jobs_is_theirs)
{
    for (int kind = 0; kind < 8; kind++)
        check(10, kind);
}

MALL_TEST(share_take_order, of_many_for_good_is_theirs)
{
    check(MOST, 0);
}

MALL_TEST(share_take_order, of_many_on_a_lease_is_theirs)
{
    check(MOST, 1);
    check(MOST, 1 | 4);
}
