/* What is counted of a queue's jobs, and how a drain that has jobs left shares them out to the
 * shards: so many may leave in each before anybody sums again. (C2, N1 of closing.c) */
#include "lab/lab.h"
#include "lab/watch.h"

#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/counts.h"
#include "queue/queue.h"

static struct lab lab_with(size_t jobs)
{
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);

    for (size_t i = 0; i < jobs; i++)
        lab_enqueue(&lab, "tea", .delay_ns = i % 2 == 0 ? 0 : 5);
    return lab;
}

static void expect_spare(struct lab *lab, uint64_t own, uint64_t others)
{
    for (size_t i = 0; i < DUE__SHARDS; i++)
        cr_expect_eq(lab->q->slab.shard[i].spare, i == due__thread_shard() ? own : others,
                     "%zu: %ju", i, (uintmax_t)lab->q->slab.shard[i].spare);
}

static uint32_t state_of(struct lab *lab)
{
    return due__load_seq(&lab->q->state);
}

Test(counts, of_what_waits_but_one_are_shared_out_in_equal_parts)
{
    static const size_t jobs[] = {
        0, 1, 2, DUE__SHARDS, DUE__SHARDS + 1, DUE__SHARDS + 2, 2 * DUE__SHARDS, 5 * DUE__SHARDS + 1
    };

    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        struct lab lab = lab_with(jobs[i]);
        uint64_t part = jobs[i] > 0 ? (jobs[i] - 1) / DUE__SHARDS : 0;

        expect_spare(&lab, DUE__SPARE_ALL, DUE__SPARE_ALL);
        cr_expect_eq(due__waiting(lab.q), jobs[i]);
        expect_spare(&lab, DUE__SPARE_ALL, DUE__SPARE_ALL);
        cr_expect_eq(due__waiting_shared(lab.q), jobs[i]);
        expect_spare(&lab, part, part);
        lab_close(&lab);
    }
}

Test(counts, of_who_leaves_are_paid_from_the_spare_of_a_shard_and_shared_out_anew_when_it_is_spent)
{
    enum { PART = 5 };
    struct lab lab = lab_with(PART * DUE__SHARDS + 1);

    due__left_draining(lab.q, 3);
    expect_spare(&lab, DUE__SPARE_ALL, DUE__SPARE_ALL);
    due__waiting_shared(lab.q);
    due__left_draining(lab.q, 2);
    expect_spare(&lab, PART - 2, PART);
    due__left_draining(lab.q, PART - 3);
    expect_spare(&lab, 1, PART);
    due__left_draining(lab.q, 1);
    expect_spare(&lab, 0, PART);
    due__left_draining(lab.q, 1);
    expect_spare(&lab, PART, PART);
    due__left_draining(lab.q, PART + 1);
    expect_spare(&lab, PART, PART);
    due__left_draining(lab.q, PART);
    expect_spare(&lab, 0, PART);
    cr_expect_eq(state_of(&lab) & DUE__CLOSING, 0u, "jobs are left");
    lab_close(&lab);
}

Test(counts, of_nothing_end_a_drain)
{
    struct lab lab = lab_with(0);

    due__waiting_shared(lab.q);
    due__left_draining(lab.q, 1);
    cr_expect_eq(state_of(&lab) & DUE__CLOSING, DUE__CLOSING);
    lab_close(&lab);
}

/* ---- Sums ---- */

Test(counts, are_each_in_the_sums_that_they_belong_to)
{
    static struct due_queue q;
    const struct due__sums some = { .enqueued = 1000000,
                                    .revived = 200000,
                                    .refused = 1,
                                    .dequeued = 20,
                                    .cancelled = 300,
                                    .discarded = 4000,
                                    .acked = 50000,
                                    .kept = 600000,
                                    .died = 400000,
                                    .lent = 7,
                                    .done = 9,
                                    .unready = 3 };

    cr_expect_eq(due__sums_held(&some),
                 1000000u + 200000 - 1 - 20 - 300 - 4000 - 50000 - 600000 - 400000);
    cr_expect_eq(due__sums_dead(&some), 200000u);
    cr_expect_eq(due__sums_leased(&some), 18u);
    q.readied = 100;
    q.unreadied = 40;
    cr_expect_eq(due__sums_ready(&q, &some), 37u);
}

/* Counts that are not of one moment. */
Test(counts, that_have_not_come_yet_are_none_less_than_none)
{
    static struct due_queue q;
    struct due__sums all = { .lent = 2, .dequeued = 3, .done = 5, .unready = 1 };

    cr_expect_eq(due__sums_leased(&all), 0u);
    all.done = 6;
    cr_expect_eq(due__sums_leased(&all), 0u);
    all.done = 4;
    cr_expect_eq(due__sums_leased(&all), 1u);
    q.readied = 4;
    cr_expect_eq(due__sums_ready(&q, &all), 0u);
    q.readied = 3;
    cr_expect_eq(due__sums_ready(&q, &all), 0u);
    q.readied = 5;
    cr_expect_eq(due__sums_ready(&q, &all), 1u);
}

/* Each shard's own, each once. */
Test(counts, of_the_shards_are_summed_each)
{
    struct lab lab = lab_with(0);
    struct due__sums all = { 0 };
    uint64_t n = 0;

    watch_end(lab.q); /* what a lock guards is changed here */
    for (size_t i = 0; i < DUE__SHARDS; i++) {
        struct due__shard *it = &lab.q->slab.shard[i];
        uint64_t k = (uint64_t)i + 1;

        n += k;
        it->enqueued += k;
        it->refused += 2 * k;
        it->dequeued += 3 * k;
        it->cancelled += 4 * k;
        it->discarded += 5 * k;
        it->unready += 6 * k;
        it->lent += 7 * k;
        it->done += 8 * k;
        it->acked += 9 * k;
        it->kept += 10 * k;
        it->leased += 11 * k;
        it->unleased += 12 * k;
        it->died += 13 * k;
        it->revived += 14 * k;
    }
    lab.q->reserved = 1000000;
    lab.q->taken = 3000000;
    lab.q->placed = 5000000;
    all = due__sum_up(lab.q);
    cr_expect_eq(all.enqueued, n + 5000000);
    cr_expect_eq(all.refused, 2 * n);
    cr_expect_eq(all.dequeued, 3 * n + 3000000);
    cr_expect_eq(all.cancelled, 4 * n);
    cr_expect_eq(all.discarded, 5 * n);
    cr_expect_eq(all.unready, 6 * n + 1000000);
    cr_expect_eq(all.lent, 7 * n + 1000000);
    cr_expect_eq(all.done, 8 * n);
    cr_expect_eq(all.acked, 9 * n);
    cr_expect_eq(all.kept, 10 * n);
    cr_expect_eq(all.leased, 11 * n + 1000000);
    cr_expect_eq(all.unleased, 12 * n);
    cr_expect_eq(all.died, 13 * n);
    cr_expect_eq(all.revived, 14 * n);
    lab.q->reserved = lab.q->taken = lab.q->placed = 0;
    for (size_t i = 0; i < DUE__SHARDS; i++) {
        struct due__shard *it = &lab.q->slab.shard[i];

        it->enqueued = it->refused = it->dequeued = it->cancelled = it->discarded = 0;
        it->unready = it->lent = it->done = it->acked = it->kept = it->leased = 0;
        it->unleased = it->died = it->revived = 0;
    }
    lab_close(&lab);
}

/* ---- Pools of workers ---- */

struct fake_pool {
    struct due__counted counted;
    uint64_t by;
};

static void add_up(struct due__counted *counted, struct due_workers_stats *sum)
{
    uint64_t by = ((const struct fake_pool *)(const void *)counted)->by;

    sum->threads += by;
    sum->running += 2 * by;
    sum->idle += 3 * by;
    sum->ahead += 4 * by;
    sum->handled += 5 * by;
    sum->acked += 6 * by;
    sum->retried += 7 * by;
    sum->buried += 8 * by;
    sum->lost += 9 * by;
    sum->unanswered += 10 * by;
    sum->extended += 11 * by;
    sum->given_back += 12 * by;
}

/* Of pools that are there @now, with those that were before: @ever. */
static void expect_row(const struct due__row *row, const char *name, uint64_t now, uint64_t ever)
{
    cr_assert_not_null(row);
    cr_expect_str_eq(row->name, name);
    cr_expect_eq(row->sum.threads, now);
    cr_expect_eq(row->sum.running, 2 * now);
    cr_expect_eq(row->sum.idle, 3 * now);
    cr_expect_eq(row->sum.ahead, 4 * now);
    cr_expect_eq(row->sum.handled, 5 * ever);
    cr_expect_eq(row->sum.acked, 6 * ever);
    cr_expect_eq(row->sum.retried, 7 * ever);
    cr_expect_eq(row->sum.buried, 8 * ever);
    cr_expect_eq(row->sum.lost, 9 * ever);
    cr_expect_eq(row->sum.unanswered, 10 * ever);
    cr_expect_eq(row->sum.extended, 11 * ever);
    cr_expect_eq(row->sum.given_back, 12 * ever);
}

static void pool_comes(struct lab *lab, struct fake_pool *pool, const char *name)
{
    struct due__row *row = due__row_new(lab->q, name);

    cr_assert_not_null(row);
    pool->counted.add_up = add_up;
    due__pool_stats_enter(lab->q, &pool->counted, row);
}

static const struct due__row *summed(struct lab *lab)
{
    due__pool_stats_sum(&lab->q->pool_stats);
    return lab->q->pool_stats.rows;
}

Test(pool_stats, are_those_of_all_pools_of_a_name_that_are_or_were_there)
{
    struct lab lab = lab_with(0);
    struct fake_pool a = { .by = 1 };
    struct fake_pool b = { .by = 100 };
    struct fake_pool other = { .by = 10000 };
    const struct due__row *row;

    cr_expect_null(summed(&lab));
    pool_comes(&lab, &a, "tea");
    pool_comes(&lab, &other, "te");
    pool_comes(&lab, &b, "tea");
    row = summed(&lab);
    expect_row(row, "tea", 101, 101);
    expect_row(row->next, "te", 10000, 10000);
    cr_expect_null(row->next->next);
    row = summed(&lab);
    expect_row(row, "tea", 101, 101);
    due__pool_stats_leave(lab.q, &a.counted);
    row = summed(&lab);
    expect_row(row, "tea", 100, 101);
    expect_row(row->next, "te", 10000, 10000);
    due__pool_stats_leave(lab.q, &b.counted);
    row = summed(&lab);
    expect_row(row, "tea", 0, 101);
    a.by = 2;
    pool_comes(&lab, &a, "tea");
    row = summed(&lab);
    expect_row(row, "tea", 2, 103);
    due__pool_stats_leave(lab.q, &other.counted);
    due__pool_stats_leave(lab.q, &a.counted);
    row = summed(&lab);
    expect_row(row, "tea", 0, 103);
    expect_row(row->next, "te", 0, 10000);
    lab_close(&lab);
}
