/* test_timeline.c - of the timeline, of lines and of their chunks what the random scripts of
 * timeline_model and limiter_model meet too seldom.
 */
#include <criterion/criterion.h>

#include "queue/ready_line.h"
#include "timeline/timeline.h"

enum { SLOTS = 4000, FEW = 500 };

struct chunks {
    struct due__alloc alloc;
    struct due__pool pool;
};

static void chunks_make(struct chunks *c)
{
    due__alloc_init(&c->alloc, NULL);
    due__pool_init(&c->pool, &c->alloc);
    struct due__region *region = due__region_new(&c->alloc, DUE__CHUNKS_AT_OPEN);
    cr_assert_not_null(region);
    due__pool_adopt(&c->pool, region);
}

static size_t keep_all(const void *ctx, struct due__slot *slot, size_t n)
{
    (void)ctx;
    (void)slot;
    return n;
}

/* A bucket is too large to be loaded, and no chunk is left for the rung that it would be split
 * into: then its first slots are found by looking at all of it. */
Test(timeline, is_in_order_without_memory_to_split, .timeout = 60)
{
    struct chunks c;
    struct due__timeline tl;

    chunks_make(&c);
    cr_assert_eq(due__timeline_init(&tl, &c.alloc, &c.pool, keep_all, NULL), 0);

    uint32_t held = 0;
    while (held < FEW) {
        int64_t when =
            held == 0 ? INT64_C(1) << 50 : 1000 + (int64_t)(held * UINT64_C(2654435761) % 100003);
        if (!due__timeline_insert(&tl, due__slot_make(when, 0, held, held)))
            break;
        held++;
    }
    cr_expect_gt(held, 300u);
    struct due__chunk *taken[DUE__CHUNKS_AT_OPEN];
    size_t n = 0;
    int64_t last = 0;
    for (uint32_t i = 0; i < held; i++) {
        struct due__slot head = { 0, 0 };
        while (c.pool.free_count > 0) /* all that popping gives back */
            taken[n++] = due__pool_take(&c.pool);
        while (!due__timeline_ready(&tl))
            ;
        cr_assert(due__timeline_head(&tl, &head), "%u of %u", i, held);
        cr_assert_geq(due__slot_deadline(head), last, "%u of %u", i, held);
        last = due__slot_deadline(due__timeline_pop(&tl));
    }
    cr_expect_eq(due__timeline_count(&tl), 0u);
    while (n > 0)
        due__pool_give(&c.pool, taken[--n]);
    due__timeline_destroy(&tl);
    due__pool_destroy(&c.pool);
}

/* A split that is under way is brought to its end by work alone, a piece at a time. */
Test(timeline, work_ahead_of_need_sorts_as_much_as_it_is_told_and_comes_to_an_end)
{
    struct chunks c;
    struct due__timeline tl;
    uint32_t held = 0;
    unsigned calls = 0;

    chunks_make(&c);
    cr_assert_eq(due__timeline_init(&tl, &c.alloc, &c.pool, keep_all, NULL), 0);
    cr_expect(due__timeline_work(&tl, 1), "there is nothing to do");
    for (; tl.unsettled == 0 && held < SLOTS; held++)
        cr_assert(
            due__timeline_insert(&tl, due__slot_make(1 + held * 7919 % 100003, 0, held, held)));
    cr_assert_eq(tl.unsettled, 1u);
    size_t looked = tl.looked;
    cr_expect_not(due__timeline_work(&tl, 64));
    cr_expect_eq(tl.looked - looked, 64u);
    while (!due__timeline_work(&tl, 64))
        cr_assert_lt(++calls, held / 64 + 2);
    cr_expect_gt(calls, held / 64 - 3);
    size_t chunks;
    cr_expect(due__timeline_check(&tl, &chunks));
    cr_expect_eq(due__timeline_count(&tl), held);
    due__timeline_destroy(&tl);
    due__pool_destroy(&c.pool);
}

/* Whatever the slot: also one that is far behind all others. */
Test(timeline, sorts_some_of_a_split_that_is_under_way_with_each_insert)
{
    struct chunks c;
    struct due__timeline tl;
    uint32_t held = 0;
    uint32_t i = 0;

    chunks_make(&c);
    cr_assert_eq(due__timeline_init(&tl, &c.alloc, &c.pool, keep_all, NULL), 0);
    for (; tl.unsettled == 0 && held < SLOTS; held++)
        cr_assert(
            due__timeline_insert(&tl, due__slot_make(1 + held * 7919 % 100003, 0, held, held)));
    cr_assert_eq(tl.unsettled, 1u);
    while (tl.rung[i]->source.count == 0)
        i++;
    while (tl.unsettled > 0) {
        const struct due__rung *r = tl.rung[i];
        size_t before = r->source.count;

        cr_assert(due__timeline_insert(&tl, due__slot_make(INT64_C(1) << 50, 0, held, held)));
        cr_assert_lt(r->source.count, before, "%zu are left to sort", before);
        held++;
    }
    cr_expect_eq(due__timeline_count(&tl), held);
    due__timeline_destroy(&tl);
    due__pool_destroy(&c.pool);
}

/* What is later than all that was loaded lies behind the front, unsorted. */
Test(timeline, loads_no_more_than_there_was)
{
    struct chunks c;
    struct due__timeline tl;

    chunks_make(&c);
    cr_assert_eq(due__timeline_init(&tl, &c.alloc, &c.pool, keep_all, NULL), 0);
    for (uint32_t i = 0; i < 10; i++)
        cr_assert(due__timeline_insert(&tl, due__slot_make(1000 + i, 0, i, i)));
    cr_assert(due__timeline_ready(&tl));
    cr_expect_eq(due__timeline_front(&tl), 10u);
    cr_assert(due__timeline_insert(&tl, due__slot_make(5000, 0, 10, 10)));
    cr_expect_eq(due__timeline_front(&tl), 10u);
    cr_assert(due__timeline_insert(&tl, due__slot_make(1005, 0, 11, 11)));
    cr_expect_eq(due__timeline_front(&tl), 11u);
    due__timeline_destroy(&tl);
    due__pool_destroy(&c.pool);
}

/* ---- A pass that is not alone ---- */

/* Of every two of these the second is dead. */
static size_t keep_even(const void *ctx, struct due__slot *slot, size_t n)
{
    const uint32_t *mortal = ctx; /* those with a higher number live */
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        slot[kept] = slot[i];
        kept += due__slot_job(slot[i]) >= *mortal || due__slot_job(slot[i]) % 2 == 0;
    }
    return kept;
}

struct pass {
    struct chunks c;
    struct due__timeline tl;
    uint32_t mortal;
};

static void pass_insert(struct pass *p, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        int64_t when = 1000 + (int64_t)(i * UINT64_C(2654435761) % 100003);
        cr_assert(due__timeline_insert(&p->tl, due__slot_make(when, 0, i, i)));
    }
}

/* Half of 1,000 are dead, and a pass stands among them. */
static void pass_begin(struct pass *p)
{
    size_t dropped = 0;

    chunks_make(&p->c);
    p->mortal = 1000;
    cr_assert_eq(due__timeline_init(&p->tl, &p->c.alloc, &p->c.pool, keep_even, &p->mortal), 0);
    pass_insert(p, 0, 1000);
    cr_assert_not(due__timeline_sweep(&p->tl, 1, &dropped));
    cr_assert_not_null(p->tl.sweep.bag);
}

static void pass_end(struct pass *p, size_t live)
{
    size_t dropped = 0;

    cr_expect_null(p->tl.sweep.bag, "the bucket is not there as it was");
    while (!due__timeline_sweep(&p->tl, 500, &dropped))
        ;
    cr_expect_eq(due__timeline_count(&p->tl), live);
    due__timeline_destroy(&p->tl);
    due__pool_destroy(&p->c.pool);
}

Test(sweep, meets_what_was_split_while_it_stood_there)
{
    struct pass p;

    pass_begin(&p);
    pass_insert(&p, 1000, SLOTS);
    cr_expect_gt(p.tl.rungs, 1u);
    pass_end(&p, SLOTS - 500);
}

/* No rung is left to split it into: its first slots are selected. */
Test(sweep, meets_what_stayed_when_the_first_slots_were_selected)
{
    struct pass p;

    pass_begin(&p);
    uint32_t spares = p.tl.spares;
    p.tl.spares = 0;
    while (!due__timeline_ready(&p.tl))
        ;
    p.tl.spares = spares;
    pass_end(&p, 500);
}

/* One in fifty is alive. */
static size_t keep_few(const void *ctx, struct due__slot *slot, size_t n)
{
    size_t kept = 0;

    (void)ctx;
    for (size_t i = 0; i < n; i++) {
        slot[kept] = slot[i];
        kept += due__slot_job(slot[i]) % 50 == 0;
    }
    return kept;
}

Test(line, gives_its_chunks_back_when_it_is_swept)
{
    struct chunks c;
    struct due__line line = { .count = 0 };

    chunks_make(&c);
    struct due__nodes nodes = { .pool = &c.pool };
    for (uint32_t i = 0; i < SLOTS; i++)
        cr_assert(due__line_push(&line, &nodes, due__slot_make(i, 0, i, i)));
    while (!due__line_sweep(&line, &nodes, keep_few, NULL, 100))
        ;
    cr_expect(due__line_check(&line));
    cr_expect_eq(line.count, (size_t)SLOTS / 50);
    cr_expect_leq(c.pool.total - c.pool.free_count, 4u);
    for (uint32_t i = 0; i < SLOTS; i += 50)
        cr_expect_eq(due__slot_job(due__line_pop(&line, &nodes)), i);
    cr_expect_eq(c.pool.free_count, c.pool.total);
    due__pool_destroy(&c.pool);
}

Test(pool, looks_at_no_more_chunks_in_one_go_than_it_is_told)
{
    struct chunks c;
    struct due__chunk *taken[100];
    unsigned calls = 1;

    chunks_make(&c);
    for (size_t i = 0; i < 100; i++)
        taken[i] = due__pool_take(&c.pool);
    for (size_t i = 0; i < 100; i++)
        due__pool_give(&c.pool, taken[i]);
    cr_expect_not(due__pool_trim(&c.pool, 0));
    while (!due__pool_trim(&c.pool, 16))
        calls++;
    cr_expect_geq(calls, 6u);
    cr_expect_leq(calls, 8u);
    cr_expect_eq(c.pool.free_count, c.pool.total);
    due__pool_destroy(&c.pool);
}
