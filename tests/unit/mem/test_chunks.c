/* Chunks of one kilobyte: each is in one hand, those given back are used first, and whole pages of
 * those that a trim has noted go back to the kernel. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lab/flaky.h"
#include "mem/chunks.h"

enum {
    BLOCKS = 3,
    ALL = BLOCKS * DUE__BLOCK_CHUNKS,
    BLOCK = DUE__CHUNK_BYTES * (DUE__BLOCK_CHUNKS + 1)
};

struct desk {
    struct due__alloc alloc;
    struct due__pool pool;
    struct due__chunk *chunk[ALL];
    size_t taken;
};

static void desk_open(struct desk *d)
{
    due__alloc_init(&d->alloc, NULL);
    due__pool_init(&d->pool, &d->alloc);
    due__pool_adopt(&d->pool, due__region_new(&d->alloc, ALL));
    cr_assert_eq(d->pool.total, (size_t)ALL);
    cr_assert_eq(d->pool.free_count, (size_t)ALL);
    d->taken = 0;
}

static void desk_take(struct desk *d, size_t n)
{
    for (; n > 0; n--) {
        struct due__chunk *c = due__pool_take(&d->pool);

        cr_assert_not_null(c);
        cr_expect(c->next == NULL && c->first == 0 && c->count == 0);
        memset(c, 0xee, sizeof *c);
        d->chunk[d->taken++] = c;
    }
    cr_expect_eq(d->pool.free_count, ALL - d->taken);
}

static void desk_give(struct desk *d, size_t n)
{
    size_t before = d->pool.free_count;

    for (size_t i = 0; i < n; i++)
        due__pool_give(&d->pool, d->chunk[--d->taken]);
    cr_expect_eq(d->pool.free_count, before + n);
}

static int compare(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) * (struct due__chunk *const *)a;
    uintptr_t y = (uintptr_t) * (struct due__chunk *const *)b;

    return (x > y) - (x < y);
}

static void expect_apart(struct desk *d)
{
    qsort(d->chunk, d->taken, sizeof d->chunk[0], compare);
    for (size_t i = 1; i < d->taken; i++)
        cr_assert_geq((uintptr_t)d->chunk[i] - (uintptr_t)d->chunk[i - 1],
                      (uintptr_t)DUE__CHUNK_BYTES);
}

/* Pages of the block @n that are there; the first one is always, for its header. */
static size_t resident(unsigned char *first, size_t n)
{
    unsigned char page[BLOCK / DUE__PAGE];
    size_t there = 0;

    cr_assert_eq(mincore(first + n * BLOCK, BLOCK, page), 0);
    for (size_t i = 0; i < sizeof page; i++)
        there += page[i] & 1;
    return there;
}

Test(chunks, are_each_in_one_hand_until_none_is_left)
{
    struct desk d;

    desk_open(&d);
    desk_take(&d, ALL);
    cr_expect_null(due__pool_take(&d.pool));
    cr_expect_eq(d.pool.free_count, 0u);
    expect_apart(&d);
    desk_give(&d, ALL);
    due__pool_destroy(&d.pool);
    cr_expect_eq(d.pool.total, 0u);
}

Test(chunks, that_were_given_back_last_are_taken_first)
{
    struct desk d;

    desk_open(&d);
    desk_take(&d, 10);
    struct due__chunk *last = d.chunk[8];
    desk_give(&d, 2);
    cr_expect_eq(due__pool_take(&d.pool), last);
    cr_expect_eq(due__pool_take(&d.pool), d.chunk[9]);
    due__pool_destroy(&d.pool);
}

Test(chunks, that_a_trim_has_noted_give_their_pages_back_and_come_again)
{
    struct desk d;

    desk_open(&d);
    desk_take(&d, ALL);
    expect_apart(&d);
    unsigned char *first = (unsigned char *)d.chunk[0] - DUE__CHUNK_BYTES;
    cr_expect_eq((uintptr_t)first % BLOCK, 0u);
    for (size_t i = 0; i < BLOCKS; i++)
        cr_expect_eq(resident(first, i), (size_t)BLOCK / DUE__PAGE);
    desk_give(&d, ALL);
    while (!due__pool_trim(&d.pool, 7))
        ;
    for (size_t i = 0; i < BLOCKS; i++)
        cr_expect_eq(resident(first, i), 1u);
    cr_expect_eq(d.pool.free_count, (size_t)ALL);
    desk_take(&d, ALL);
    expect_apart(&d);
    desk_give(&d, ALL);
    cr_expect(due__pool_trim(&d.pool, ALL));
    for (size_t i = 0; i < BLOCKS; i++)
        cr_expect_eq(resident(first, i), 1u, "and go back again");
    due__pool_destroy(&d.pool);
}

/* Memory in use stays together: one page of which a chunk is in use does not go. */
Test(chunks, keep_a_page_while_one_of_them_is_in_use)
{
    struct desk d;

    desk_open(&d);
    desk_take(&d, DUE__BLOCK_CHUNKS);
    expect_apart(&d);
    unsigned char *first = (unsigned char *)d.chunk[0] - DUE__CHUNK_BYTES;
    struct due__chunk *kept = d.chunk[5]; /* in the second page */
    d.chunk[5] = d.chunk[--d.taken];
    desk_give(&d, d.taken);
    cr_expect(due__pool_trim(&d.pool, ALL));
    cr_expect_eq(resident(first, 0), 2u);
    due__pool_give(&d.pool, kept);
    cr_expect(due__pool_trim(&d.pool, 1));
    cr_expect_eq(resident(first, 0), 1u);
    due__pool_destroy(&d.pool);
}

Test(chunks, of_the_next_block_are_warmed_once_half_of_one_is_used)
{
    struct desk d;
    void *block = NULL;

    desk_open(&d);
    cr_expect_not(due__pool_warm_claim(&d.pool, &block));
    desk_take(&d, DUE__BLOCK_CHUNKS / 2);
    cr_expect_not(due__pool_warm_claim(&d.pool, &block));
    cr_expect_not(d.pool.near);
    unsigned char *first = (unsigned char *)d.chunk[0] - DUE__CHUNK_BYTES;
    desk_take(&d, 1);
    cr_expect(d.pool.near);
    cr_assert(due__pool_warm_claim(&d.pool, &block));
    cr_expect_eq(block, (void *)(first + BLOCK));
    cr_expect_not(d.pool.near);
    cr_expect_not(due__pool_warm_claim(&d.pool, &block), "it is warm");
    size_t before = resident(first, 1);
    due__pool_warm(block);
    cr_expect(before == 0 &&
              (resident(first, 1) == 0 || resident(first, 1) == (size_t)BLOCK / DUE__PAGE));
    cr_expect_eq(resident(first, 2), 0u);
    desk_take(&d, DUE__BLOCK_CHUNKS);
    cr_assert(due__pool_warm_claim(&d.pool, &block));
    cr_expect_eq(block, (void *)(first + 2 * BLOCK));
    desk_take(&d, DUE__BLOCK_CHUNKS);
    cr_expect_not(due__pool_warm_claim(&d.pool, &block), "there is none behind the last");
    due__pool_destroy(&d.pool);
}

Test(chunks, are_refused_that_have_more_bytes_than_there_are_addresses)
{
    struct flaky memory;
    struct due__alloc alloc;

    flaky_init(&memory, FLAKY_NEVER);
    due__alloc_init(&alloc, &memory.hooks);
    cr_expect_null(due__region_new(&alloc, SIZE_MAX / DUE__CHUNK_BYTES));
    cr_expect_null(due__region_new(&alloc, SIZE_MAX));
    cr_expect_eq(atomic_load(&memory.calls), 0u);
}

Test(chunks, come_from_the_older_region_when_the_newer_one_is_used_up)
{
    struct desk d;

    desk_open(&d);
    desk_take(&d, 5);
    struct due__region *more = due__region_new(&d.alloc, 1);
    cr_assert_not_null(more);
    due__pool_adopt(&d.pool, more);
    cr_expect_eq(d.pool.total, (size_t)(ALL + DUE__BLOCK_CHUNKS), "whole blocks");
    for (size_t i = 5; i < ALL + DUE__BLOCK_CHUNKS; i++)
        cr_assert_not_null(due__pool_take(&d.pool));
    cr_expect_null(due__pool_take(&d.pool));
    due__pool_destroy(&d.pool);
}
