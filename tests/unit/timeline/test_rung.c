/* A rung by itself: it has no more buckets than were wished for, and each slot has one. */
#include <criterion/criterion.h>

#include "timeline/rung.h"

static struct due__alloc alloc;
static struct due__pool pool;

static void begin(void)
{
    due__alloc_init(&alloc, NULL);
    due__pool_init(&pool, &alloc);
    due__pool_adopt(&pool, due__region_new(&alloc, DUE__CHUNKS_AT_OPEN));
}

static void end(void)
{
    cr_expect_eq(pool.free_count, pool.total);
    due__pool_destroy(&pool);
}

TestSuite(rung, .init = begin, .fini = end, .timeout = 20);

/* Split two slots that are @apart_ns from each other. */
static void split_two(int64_t apart_ns, uint32_t wish)
{
    static struct due__rung r;
    struct due__bag source;
    due__key last = due__slot_key(due__slot_make(1000 + apart_ns, 0, 0, 0));

    due__bag_init(&source);
    cr_assert(due__bag_put(&source, &pool, due__slot_make(1000, 0, 0, 0)));
    cr_assert(due__bag_put(&source, &pool, due__slot_make(1000 + apart_ns, 0, 0, 0)));
    cr_assert(due__rung_split(&r, &pool, &source, wish, due__key_of(UINT64_MAX, UINT64_MAX)));
    cr_expect_leq(r.buckets, wish, "%ld ns apart", (long)apart_ns);
    cr_expect_geq(r.buckets, wish / 2, "%ld ns apart", (long)apart_ns);
    cr_expect(due__key_before(last, r.end));
    cr_expect_eq(source.count, 0u);
    cr_expect_eq(due__rung_settle(&r, &pool, 10), 2u);
    cr_expect_eq(due__rung_first(&r), 0u);
    cr_expect_eq(due__rung_last(&r, r.buckets), r.buckets - 1);
    for (uint32_t n = due__rung_first(&r); n != DUE__RUNG_NONE; n = due__rung_first(&r)) {
        struct due__bag *bag = due__rung_bucket(&r, n);

        cr_expect(due__key_before(due__slot_key(bag->max), due__rung_bucket_end(&r, n)));
        due__bag_drop_chunk(bag, &pool);
        due__rung_clear(&r, n);
        r.count--;
    }
    due__rung_close(&r, &pool);
}

Test(rung, has_no_more_buckets_than_are_wished_for)
{
    static const uint32_t wishes[] = { 2, 16, 64, DUE__RUNG_BUCKETS };

    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        int64_t wish = wishes[i];

        for (int64_t apart_ns = 2 * wish - 2; apart_ns <= 2 * wish + 2; apart_ns++)
            split_two(apart_ns, wishes[i]);
        split_two(wish - 1, wishes[i]);
        split_two(wish, wishes[i]);
        split_two(wish + 1, wishes[i]);
        split_two(1000 * wish, wishes[i]);
    }
}
