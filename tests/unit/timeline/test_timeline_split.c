/* The timeline by itself: how many buckets it cuts what is too large into, and when it does that
 * ahead of need, to the last slot. */
#include <criterion/criterion.h>

#include "timeline/timeline.h"

enum {
    SMALL = 1024,      /* up to so many slots have buckets of 16, more of them buckets of 64 */
    AHEAD_MIN = 2048,  /* a larger bucket is split ahead of need */
    AHEAD_SHARE = 8,   /* when the front is less than so large a part of it */
    KEEP = 256,        /* what a full heap keeps */
    LOAD_MIN = 32,     /* what is loaded at least */
    APART_NS = 1 << 20 /* so that buckets are of equal size */
};

static struct due__alloc alloc;
static struct due__pool pool;
static struct due__timeline tl;
static uint32_t arrival;

static size_t keep_all(const void *ctx, struct due__slot *slot, size_t n)
{
    (void)ctx;
    (void)slot;
    return n;
}

static void begin(void)
{
    due__alloc_init(&alloc, NULL);
    due__pool_init(&pool, &alloc);
    due__pool_adopt(&pool, due__region_new(&alloc, DUE__CHUNKS_AT_OPEN));
    cr_assert_eq(due__timeline_init(&tl, &alloc, &pool, keep_all, NULL), 0);
    arrival = 0;
}

static void right(void)
{
    size_t chunks = 0;

    cr_assert(due__timeline_check(&tl, &chunks));
}

static void end(void)
{
    right();
    due__timeline_destroy(&tl);
    due__pool_destroy(&pool);
}

TestSuite(timeline_split, .init = begin, .fini = end, .timeout = 60);

static void again(void)
{
    end();
    begin();
}

/* @n slots, the first one at @from_ns. */
static void put(size_t n, int64_t from_ns, int64_t apart_ns)
{
    for (size_t i = 0; i < n; i++, arrival++)
        cr_assert_neq(due__timeline_insert(&tl, due__slot_make(from_ns + (int64_t)i * apart_ns, 0,
                                                               arrival, arrival % (1u << 20))),
                      DUE__NOT_INSERTED);
}

/* All that is there comes out in order. */
static void drain(size_t n)
{
    int64_t last_ns = -1;

    for (; n > 0; n--) {
        for (int pieces = 0; !due__timeline_ready(&tl); pieces++)
            cr_assert_lt(pieces, 1000);
        int64_t now_ns = due__slot_deadline(due__timeline_pop(&tl));
        cr_assert_geq(now_ns, last_ns);
        last_ns = now_ns;
    }
    cr_expect_eq(due__timeline_count(&tl), 0u);
    right();
}

/* ---- How many buckets ---- */

Test(timeline_split, of_few_slots_makes_buckets_of_16_and_of_more_of_64)
{
    static const struct {
        size_t slots;
        uint32_t buckets;
    } rows[] = { { 257, 9 },    { 512, 32 },      { SMALL - 1, 64 / 2 },
                 { SMALL, 64 }, { SMALL + 1, 9 }, { 2 * SMALL, 32 } };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put(rows[i].slots, APART_NS, APART_NS);
        cr_expect_eq(tl.rungs, 1u, "nobody wants %zu slots yet", rows[i].slots);
        while (!due__timeline_ready(&tl))
            ;
        cr_assert_geq(tl.rungs, 2u, "%zu slots", rows[i].slots);
        cr_expect_eq(tl.rung[1]->buckets, rows[i].buckets, "%u buckets of %zu slots",
                     tl.rung[1]->buckets, rows[i].slots);
        right();
        drain(rows[i].slots);
        again();
    }
}

Test(timeline_split, loads_no_more_buckets_than_are_wanted)
{
    put(SMALL, APART_NS, APART_NS);
    while (!due__timeline_ready(&tl))
        ;
    cr_expect_eq(due__timeline_front(&tl), (size_t)LOAD_MIN);
    for (size_t i = 0; i < LOAD_MIN; i++)
        due__timeline_pop(&tl);
    cr_expect_eq(due__timeline_front(&tl), 0u);
    cr_assert(due__timeline_ready(&tl));
    cr_expect_eq(due__timeline_front(&tl), (size_t)LOAD_MIN);
    drain(SMALL - LOAD_MIN);
}

/* Leave @left chunks to it; how many were taken, in @taken. */
static size_t take_chunks(struct due__chunk **taken, size_t left)
{
    size_t n = 0;

    while (pool.free_count > left)
        taken[n++] = due__pool_take(&pool);
    return n;
}

/* Of half as many each time, until there are chunks for them; of two at least. */
Test(timeline_split, makes_as_many_buckets_as_there_are_chunks_for)
{
    static struct due__chunk *taken[DUE__CHUNKS_AT_OPEN];

    for (size_t left = 0; left <= due__rung_need(64) + 1; left++) {
        uint32_t wish = 64;

        while (wish > 1 && due__rung_need(wish) > left)
            wish /= 2;
        put(SMALL, APART_NS, APART_NS);
        size_t n = take_chunks(taken, left);
        while (!due__timeline_ready(&tl))
            ;
        cr_expect_eq(tl.rungs >= 2, wish >= 2, "with %zu chunks", left);
        if (tl.rungs >= 2)
            cr_expect_eq(tl.rung[1]->buckets, wish, "%u buckets with %zu chunks",
                         tl.rung[1]->buckets, left);
        right();
        while (n > 0)
            due__pool_give(&pool, taken[--n]);
        drain(SMALL);
        again();
    }
}

/* ---- Ahead of need ---- */

/* A front of @front slots, and a bucket of @behind behind it, of which no insert began a split. */
static void front_and_behind(size_t front, size_t behind)
{
    int64_t edge_ns = APART_NS;

    if (front > 0) {
        put(1, edge_ns, 0);
        cr_assert(due__timeline_ready(&tl));
        put(front - 1, 1, 1);
    }
    cr_assert_eq(due__timeline_front(&tl), front);
    put(behind, 2 * edge_ns, APART_NS);
    cr_assert_eq(tl.rungs, 1u);
    cr_assert_eq(tl.rung[0]->count, behind);
}

Test(timeline_split, is_begun_ahead_of_need_once_the_bucket_is_large_and_the_front_is_not)
{
    static const struct {
        size_t front;
        size_t behind;
        bool begins;
    } rows[] = { { 0, AHEAD_MIN, false },
                 { 0, AHEAD_MIN + 1, true },
                 { 1, AHEAD_MIN + 1, true },
                 { AHEAD_MIN / AHEAD_SHARE - 1, AHEAD_MIN + 1, true },
                 { AHEAD_MIN / AHEAD_SHARE, AHEAD_MIN + 1, false },
                 { AHEAD_MIN / AHEAD_SHARE, AHEAD_MIN + 7, false },
                 { AHEAD_MIN / AHEAD_SHARE, AHEAD_MIN + 8, true },
                 { AHEAD_MIN / AHEAD_SHARE + 1, AHEAD_MIN + 8, false } };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        front_and_behind(rows[i].front, rows[i].behind);
        bool pending = !due__timeline_work(&tl, 1);

        cr_expect_eq(tl.rungs == 2, rows[i].begins, "%zu in front of %zu", rows[i].front,
                     rows[i].behind);
        cr_expect_eq(pending, rows[i].begins);
        right();
        drain(rows[i].front + rows[i].behind);
        again();
    }
}

/* A piece of work begins it and goes on with it at once, slot by slot of what it may do. */
Test(timeline_split, goes_on_by_what_each_piece_of_work_may_do)
{
    const size_t all = AHEAD_MIN + 20;
    size_t left = all;

    front_and_behind(0, all);
    for (size_t budget = 100; left > 0; budget += 50) {
        size_t looked = tl.looked;
        size_t part = budget < left ? budget : left;
        bool over = due__timeline_work(&tl, budget);

        left -= part;
        cr_assert_eq(tl.rungs, 2u);
        cr_expect_eq(tl.looked - looked, part);
        cr_expect_eq(tl.rung[1]->source.count, left, "a budget of %zu", budget);
        cr_expect_eq(over, left == 0);
        right();
    }
    cr_expect_eq(tl.owed, 0u);
    cr_expect_eq(tl.unsettled, 0u);
    drain(all);
}

/* ---- A full heap ---- */

Test(timeline_split, a_full_heap_keeps_the_first_and_puts_back_the_others)
{
    put(1, INT64_C(1) << 40, 0);
    cr_assert(due__timeline_ready(&tl));
    put(DUE__TIMELINE_HEAP, 1000, 1000);
    cr_expect_eq(due__timeline_front(&tl), (size_t)DUE__TIMELINE_HEAP + 1);
    put(1, 1500, 0);
    cr_expect_eq(due__timeline_front(&tl), (size_t)KEEP + 1);
    cr_expect_eq(due__timeline_count(&tl), (size_t)DUE__TIMELINE_HEAP + 2);
    right();
    put(1, 1000 * KEEP, 0);     /* the same as the last that was kept, and behind it */
    put(1, 1000 * KEEP - 1, 0); /* before it */
    cr_expect_eq(due__timeline_front(&tl), (size_t)KEEP + 2);
    drain(DUE__TIMELINE_HEAP + 4);
}
