/* test_timeline.c - what the random scripts of timeline_model meet too seldom. */
#include <criterion/criterion.h>

#include "timeline.h"

enum { SLOTS = 4000 };

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
    struct due__alloc alloc;
    struct due__pool pool;
    struct due__timeline tl;

    due__alloc_init(&alloc, NULL);
    due__pool_init(&pool, &alloc);
    struct due__region *region = due__region_new(&alloc, DUE__CHUNKS_AT_OPEN);
    cr_assert_not_null(region);
    due__pool_adopt(&pool, region);
    cr_assert_eq(due__timeline_init(&tl, &alloc, &pool, keep_all, NULL), 0);

    uint32_t held = 0;
    while (held < SLOTS) {
        int64_t when = 1000000 + (int64_t)(held * UINT64_C(2654435761) % 1000003);
        if (!due__timeline_insert(&tl, due__slot_make(when, 0, held, held)))
            break;
        held++;
    }
    cr_expect_gt(held, 300u);
    struct due__chunk *taken[DUE__CHUNKS_AT_OPEN];
    size_t n = 0;
    int64_t last = 0;
    for (uint32_t i = 0; i < held; i++) {
        struct due__slot head;
        while (pool.free_count > 0) /* all that popping gives back */
            taken[n++] = due__pool_take(&pool);
        while (!due__timeline_ready(&tl))
            ;
        cr_assert(due__timeline_head(&tl, &head), "%u of %u", i, held);
        cr_assert_geq(due__slot_deadline(head), last, "%u of %u", i, held);
        last = due__slot_deadline(due__timeline_pop(&tl));
    }
    cr_expect_eq(due__timeline_count(&tl), 0u);
    while (n > 0)
        due__pool_give(&pool, taken[--n]);
    due__timeline_destroy(&tl);
    due__pool_destroy(&pool);
}
