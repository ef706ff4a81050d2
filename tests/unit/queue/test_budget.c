/* How much is done in one tenure of the lock, which others wait for: the test has it itself, and
 * counts. */
#include <stdio.h>

#include "lab/lab.h"
#include "lab/watch.h"

#include "queue/compaction.h"
#include "queue/queue.h"
#include "queue/take.h"

/* Slots in the line of the first topic, and shown of it. */
static size_t lies(const struct lab *lab)
{
    const struct due__topic *t = due__topic_at(lab->q, 0);

    return t->line.count + due__window_count(&t->window);
}

/* Those that are shown are passed over besides, and what is taken at a time is not cut short. */
static void expect_passed_over(size_t max)
{
    enum { DEAD = 2 * (DUE__WINDOW_SLOTS + DUE__DEAD_MAX + DUE__TAKE_MAX) + 10 };
    static due_id ids[DEAD];
    const struct due__wanted any = { .topics = NULL };
    const size_t passed = (DUE__DEAD_MAX + max - 1) / max * max;
    struct due__slot slots[DUE__TAKE_MAX];
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    struct due__tenure t;
    size_t got = 0;

    for (int i = 0; i < DEAD; i++)
        ids[i] = lab_enqueue(&lab, "dead", .at_ns = 1);
    lab_enqueue(&lab, "alive", .at_ns = 2);
    lab_turn_to(&lab, 2);
    cr_assert_eq(due_poll(lab.q, NULL), DEAD + 1);
    for (int i = 0; i < DEAD; i++)
        cr_assert_eq(due_cancel(lab.q, ids[i], NULL), 0);
    due__enter(lab.q, &t);
    for (int i = 0; i < 2; i++) {
        size_t shown = due__window_count(&due__topic_at(lab.q, 0)->window);
        size_t before = lies(&lab);

        cr_assert_eq(before - shown, lab.q->in_lines);
        cr_assert_gt(before, shown + passed);
        cr_expect_eq(due__take_ready(lab.q, &any, slots, max, &got), DUE__AGAIN);
        cr_expect_eq(got, 0u);
        cr_expect_eq(lies(&lab), before - shown - passed, "%zu at a time, %d", max, i);
    }
    due__tenure_end(lab.q, &t);
    cr_expect_str_eq(lab_dequeue(&lab), "alive");
    lab_close(&lab);
}

Test(budget, of_a_taker_is_512_dead_ones_or_as_many_as_come_with_them)
{
    expect_passed_over(1);
    expect_passed_over(7);
    expect_passed_over(8);
    expect_passed_over(DUE__TAKE_MAX);
}

Test(budget, of_who_moves_what_is_due_is_64)
{
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    struct due__tenure t;

    for (unsigned i = 0; i < 3 * DUE__MOVES_MAX; i++)
        lab_enqueue(&lab, "tea", .at_ns = 1);
    cr_assert_eq(due_poll(lab.q, NULL), 0);
    lab_turn_to(&lab, 1);
    due__enter(lab.q, &t);
    for (unsigned i = 1; i <= 3; i++) {
        cr_expect_eq(due__move_some(lab.q, 1), i == 3, "%u", i);
        cr_expect_eq(lies(&lab), i * DUE__MOVES_MAX, "%u: %zu", i, lies(&lab));
    }
    due__tenure_end(lab.q, &t);
    lab_close(&lab);
}

Test(budget, of_who_sorts_in_is_what_he_says)
{
    enum { JOBS = 100 };
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    struct due__tenure t;

    lab_enqueue(&lab, "tea", .at_ns = 1); /* its memory is there by then */
    for (uint32_t max = 1; max < 8; max++) {
        due__enter(lab.q, &t);
        for (unsigned i = 0; i < JOBS; i++)
            lab_enqueue(&lab, "tea", .at_ns = 1);
        uint64_t before = lab.q->delegated;
        cr_expect(!due__drain_some(lab.q, max));
        cr_expect_eq(lab.q->delegated, before + max, "%u", max);
        cr_expect(!due__drain_some(lab.q, JOBS - max));
        cr_expect_eq(lab.q->delegated, before + JOBS);
        cr_expect(due__drain_some(lab.q, 1));
        cr_expect_eq(lab.q->delegated, before + JOBS);
        due__tenure_end(lab.q, &t);
    }
    lab_close(&lab);
}

Test(topic, is_looked_for_that_is_ready_among_64_at_a_time)
{
    enum { TOPICS = 2 * DUE__MOVES_MAX + 1 };
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    struct due__tenure t;
    char name[16];

    for (int i = 1; i < TOPICS; i++) {
        snprintf(name, sizeof name, "%d", i);
        cr_assert_eq(lab_topic(&lab, name), i);
    }
    due__enter(lab.q, &t);
    for (unsigned n = 0; n <= TOPICS; n++) {
        for (unsigned i = 0; i < n; i++)
            due__topic_list(lab.q, due__topic_at(lab.q, i));
        for (unsigned left = n; left > 0;) {
            left -= left < DUE__MOVES_MAX ? left : DUE__MOVES_MAX;
            cr_expect_eq(due__topics_ready(lab.q), left > 0, "%u of %u", left, n);
            unsigned listed = 0;
            for (unsigned i = 0; i < n; i++)
                listed += due__topic_at(lab.q, i)->listed;
            cr_expect_eq(listed, left);
        }
        cr_expect_not(due__topics_ready(lab.q));
        cr_expect_null(lab.q->ring);
    }
    due__tenure_end(lab.q, &t);
    lab_close(&lab);
}

/* ---- Limiters ---- */

static void (*own_end)(struct due_queue *q, struct due__tenure *t, bool owing);
static unsigned tenures; /* ended so far, as long as something is owed at each end */

static void count_end(struct due_queue *q, struct due__tenure *t, bool owing)
{
    tenures++;
    own_end(q, t, owing);
}

/* A turn is looked at in each tenure, so each has an end of its own. */
static void count_tenures(struct lab *lab)
{
    own_end = lab->q->tenure_end;
    lab->q->tenure_end = count_end;
    lab->q->debts |= DUE__DEBT_TURN;
    tenures = 0;
}

Test(limit, is_opened_of_64_buckets_of_groups_at_a_time)
{
    enum { GROUPS = 3 * DUE__MOVES_MAX };
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    struct due__limiter *g[GROUPS];
    char name[16];

    watch_end(lab.q); /* what is held back by who opens is, while others have the queue */
    count_tenures(&lab);
    for (int i = 0; i < GROUPS; i++) {
        int len = snprintf(name, sizeof name, "%d", i);

        cr_assert_eq(due__group_join(lab.q, 0, name, (size_t)len, &g[i]), 0);
        due__limiters_hold(lab.q);
        tenures = 0;
        due__limiters_open(lab.q);
        unsigned buckets = lab.q->limiters.buckets;
        cr_expect_eq(tenures, (buckets + DUE__MOVES_MAX - 1) / DUE__MOVES_MAX, "%u", buckets);
        cr_expect_not(lab.q->limiters.reading);
    }
    lab.q->tenure_end = own_end;
    for (int i = 0; i < GROUPS; i++)
        due__group_part(g[i]);
    lab_close(&lab);
}

/* So many wait at the first topic's limiter, which lets one run. */
static struct due__limiter *limited(struct lab *lab, unsigned jobs)
{
    due_job job;

    cr_assert_eq(due_topic_limit(lab->q, 0, 1), 0);
    for (unsigned i = 0; i < jobs + 1; i++)
        lab_enqueue(lab, "tea", .at_ns = 1);
    lab_turn_to(lab, 1);
    while (due_poll(lab->q, NULL) == 0)
        ;
    struct due__limiter *g = due__topic_at(lab->q, 0)->limiter;
    cr_assert_eq(lab_reserve(lab, &job, DUE_S(1)), 0);
    cr_assert_eq(due_nack(&job, DUE_S(100)), 0); /* it keeps its pass */
    return g;
}

Test(limit, that_has_opened_lets_64_through_at_a_time)
{
    for (unsigned jobs = DUE__MOVES_MAX - 1; jobs <= 2 * DUE__MOVES_MAX + 1; jobs++) {
        struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
        struct due__limiter *g = limited(&lab, jobs);
        struct due__tenure t;
        unsigned left = jobs;

        due__enter(lab.q, &t);
        cr_assert_eq(g->line.count, jobs);
        g->limit = 0;
        g->reopened = true;
        lab.q->limiters.first[DUE__LIMITERS_REOPENED] = g;
        g->next[DUE__LIMITERS_REOPENED] = g->prev[DUE__LIMITERS_REOPENED] = NULL;
        while (left > 0) {
            left -= left < DUE__MOVES_MAX ? left : DUE__MOVES_MAX;
            cr_expect_eq(due__limiters_admit(lab.q), left == 0, "%u of %u", left, jobs);
            cr_expect_eq(g->line.count, left);
            cr_expect_eq(lab.q->limiters.slots, left);
            cr_expect_eq(g->running, 1 + jobs - left);
            cr_expect_eq(lab.q->limiters.passed, 1 + jobs - left);
        }
        cr_expect_not(g->reopened);
        cr_expect_null(lab.q->limiters.first[DUE__LIMITERS_REOPENED]);
        due__tenure_end(lab.q, &t);
        lab_close(&lab);
    }
}

static size_t keep_all(const void *ctx, struct due__slot *slot, size_t n)
{
    (void)ctx;
    (void)slot;
    return n;
}

/* Each of them costs four for itself, and four for each slot. */
Test(limit, is_swept_by_what_waits_there)
{
    enum { GROUPS = 6, EACH = 3, COST = 4 + 4 * EACH };
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    struct due__tenure t;
    char name[16];

    for (int i = 0; i < GROUPS * (EACH + 1); i++) {
        snprintf(name, sizeof name, "%d", i % GROUPS);
        lab_enqueue(&lab, "tea", .at_ns = 1,
                    .more = EXTRA(.group = name, .group_len = strlen(name)));
    }
    lab_turn_to(&lab, 1);
    cr_assert_eq(due_poll(lab.q, NULL), GROUPS);
    due__enter(lab.q, &t);
    cr_assert_eq(lab.q->limiters.slots, (size_t)GROUPS * EACH);
    due__limiters_sweep_begin(lab.q);
    struct due__limiter *first = lab.q->limiters.sweep;
    cr_expect_not(due__limiters_sweep(lab.q, keep_all, 4 * EACH), "no further than its slots");
    cr_expect_eq(lab.q->limiters.sweep, first);
    for (size_t budget = 4 * EACH + 1; budget <= GROUPS * COST + 1; budget++) {
        size_t looked = (budget + COST - 1) / COST;

        due__limiters_sweep_begin(lab.q);
        cr_expect_eq(due__limiters_sweep(lab.q, keep_all, budget), looked >= GROUPS, "%zu", budget);
        size_t left = 0;
        for (struct due__limiter *g = lab.q->limiters.sweep; g != NULL;
             g = g->next[DUE__LIMITERS_WAITED_AT])
            left++;
        cr_expect_eq(left, looked < GROUPS ? GROUPS - looked : 0, "%zu: %zu", budget, left);
    }
    due__tenure_end(lab.q, &t);
    lab_close(&lab);
}

/* ---- Lines ---- */

/* Of a sweep with one piece for the timeline, then the topics: an empty one costs eight. */
Test(compaction, of_topics_costs_8_for_each_that_is_empty)
{
    enum { TOPICS = 20 };
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    struct due__tenure t;
    char name[16];

    for (int i = 1; i < TOPICS; i++) {
        snprintf(name, sizeof name, "%d", i);
        cr_assert_eq(lab_topic(&lab, name), i);
    }
    due__enter(lab.q, &t);
    for (size_t budget = 1; budget <= 8 * TOPICS + 1; budget++) {
        size_t at = 1;

        cr_expect(due__sweep_piece(lab.q, budget), "there is none");
        due__sweep_begin(lab.q);
        cr_expect_not(due__sweep_piece(lab.q, budget));
        cr_expect_eq(lab.q->sweep_topic, 1u, "the timeline is done");
        while (at <= TOPICS) {
            bool through = due__sweep_piece(lab.q, budget);

            at += (budget + 7) / 8;
            if (through)
                break;
            cr_expect_eq(lab.q->sweep_topic, at, "%zu: %u, not %zu", budget, lab.q->sweep_topic,
                         at);
        }
        if (at == TOPICS + 1 && lab.q->sweeping)
            cr_expect(due__sweep_piece(lab.q, budget));
        cr_expect_gt(at, TOPICS);
        cr_expect_not(lab.q->sweeping);
    }
    due__tenure_end(lab.q, &t);
    lab_close(&lab);
}

/* Of each topic the dead ones are dropped, of the first and of the last. */
Test(compaction, sweeps_the_line_of_every_topic)
{
    enum { TOPICS = 4, EACH = 3 * DUE__WINDOW_SLOTS };
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    static due_id ids[TOPICS][EACH];
    struct due__tenure t;
    char name[16];

    for (int i = 1; i < TOPICS; i++) {
        snprintf(name, sizeof name, "%d", i);
        cr_assert_eq(lab_topic(&lab, name), i);
    }
    for (int i = 0; i < TOPICS * EACH; i++)
        ids[i % TOPICS][i / TOPICS] = lab_enqueue(&lab, "tea", .at_ns = 1, .topic = i % TOPICS);
    lab_turn_to(&lab, 1);
    cr_assert_eq(due_poll(lab.q, NULL), TOPICS * EACH);
    for (int i = 0; i < TOPICS; i++)
        for (int k = 1; k < EACH; k++)
            cr_assert_eq(due_cancel(lab.q, ids[i][k], NULL), 0);
    due__enter(lab.q, &t);
    for (uint32_t i = 0; i < TOPICS; i++)
        due__topic_recall(lab.q, due__topic_at(lab.q, i));
    due__make_room(lab.q);
    for (uint32_t i = 0; i < TOPICS; i++)
        cr_expect_eq(due__topic_at(lab.q, i)->line.count, 1u, "%u", i);
    cr_expect_eq(lab.q->in_lines, (size_t)TOPICS);
    due__tenure_end(lab.q, &t);
    for (int i = 0; i < TOPICS; i++)
        cr_expect_str_eq(lab_dequeue(&lab), "tea");
    lab_close(&lab);
}

/* ---- For others ---- */

/* A job comes into the inbox and stays there, though nobody has the lock. */
static void leave_one(struct lab *lab)
{
    due__lock_acquire(&lab->q->lock);
    lab_enqueue(lab, "left", .delay_ns = DUE_S(1000));
    due__lock_release(&lab->q->lock);
    cr_assert(due__inbox_knocked(&lab->q->inbox));
}

static int bury(due_job *job)
{
    return due_bury(job, "why");
}

static int give_up(due_job *job)
{
    return due_nack(job, DUE_S(1000));
}

static int put_off(due_job *job)
{
    return due_snooze(job, DUE_S(1000));
}

static int extend(due_job *job)
{
    int rc = due_extend(job, DUE_S(1000));

    due_job_done(job);
    return rc;
}

/* How often the proxy was called while a job was ended so, and another one lay in the inbox. */
static uint64_t calls_of(int (*end)(due_job *))
{
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_ADAPTIVE);
    due_job job;

    lab_enqueue(&lab, "job", .delay_ns = 0);
    cr_assert_eq(due_reserve(lab.q, &job, 0), 0);
    leave_one(&lab);
    uint64_t before = due__load_relaxed(&lab.q->proxy_calls);
    cr_expect_eq(end(&job), 0);
    uint64_t calls = due__load_relaxed(&lab.q->proxy_calls) - before;
    lab_close(&lab);
    return calls;
}

/* Many may die at a time: whoever sees to them calls the proxy for what others have left.  On a
 * busy machine that may have been looked after before. */
Test(tenure, of_who_buries_leaves_the_inbox_to_the_proxy_and_no_other_does)
{
    static int (*const ends[])(due_job *) = { bury, give_up, put_off, extend };

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        uint64_t calls = calls_of(ends[i]);

        for (int tries = 1; tries < 20 && calls != (i == 0); tries++)
            calls = calls_of(ends[i]);
        cr_expect_eq(calls, i == 0, "%zu", i);
    }
}
